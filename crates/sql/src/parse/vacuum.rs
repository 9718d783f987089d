//! The syntax of VACUUM and ANALYZE. The parser's VACUUM is not PostgreSQL's, so it is parsed here; its tree carries
//! ANALYZE as `boost`.
use crate::error::{from_parser, unsupported};
use crate::parse::grammar::Grammar;
use datafusion::sql::sqlparser::ast::{Analyze, ObjectName, Statement, VacuumStatement};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use terrace_engine::{EngineError, Result};

/// `VACUUM` and `ANALYZE` as PostgreSQL writes them; `None` where the tokens begin otherwise.
pub(crate) fn parse(tokens: &[TokenWithSpan]) -> Result<Option<Statement>> {
    let words: Vec<&Token> =
        tokens.iter().map(|t| &t.token).filter(|t| !matches!(t, Token::Whitespace(_) | Token::EOF)).collect();
    let words = words.strip_suffix(&[&Token::SemiColon]).unwrap_or(&words);
    let is = |token: Option<&&Token>, word: &str| match token {
        Some(Token::Word(w)) => w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word),
        _ => false,
    };
    let vacuum = is(words.first(), "vacuum");
    if !vacuum && !is(words.first(), "analyze") && !is(words.first(), "analyse") {
        return Ok(None);
    }
    let (mut full, mut analyze, mut at) = (false, false, 1);
    let listed = words.get(1) == Some(&&Token::LParen);
    if listed {
        at += 1;
    }
    loop {
        match words.get(at) {
            full_word if vacuum && is(full_word, "full") => full = true,
            word if vacuum && (is(word, "analyze") || is(word, "analyse")) => analyze = true,
            word if is(word, "verbose") || vacuum && is(word, "freeze") => {}
            Some(Token::Comma) if listed => {}
            Some(Token::RParen) if listed => {
                at += 1;
                break;
            }
            other if listed => {
                let word = other.map_or("end of input".to_string(), |t| t.to_string());
                return Err(unsupported(format!("the option {word} of {}", words[0])));
            }
            _ => break,
        }
        at += 1;
    }
    let rest = &words[at..];
    let table_name = (!rest.is_empty()).then(|| one_name(rest)).transpose()?;
    Ok(Some(match vacuum {
        true => Statement::Vacuum(VacuumStatement {
            full,
            sort_only: false,
            delete_only: false,
            reindex: false,
            recluster: false,
            table_name,
            threshold: None,
            boost: analyze,
        }),
        false => Statement::Analyze(Analyze {
            table_name,
            partitions: None,
            for_columns: false,
            columns: vec![],
            cache_metadata: false,
            noscan: false,
            compute_statistics: false,
            has_table_keyword: false,
        }),
    }))
}

fn one_name(tokens: &[&Token]) -> Result<ObjectName> {
    let tokens = tokens.iter().copied().cloned().collect();
    let mut parser = Parser::new(&Grammar).with_tokens(tokens);
    let name = parser.parse_object_name(false).map_err(from_parser)?;
    match &parser.peek_token().token {
        Token::EOF => Ok(name),
        Token::Comma => Err(unsupported("a list of tables here")),
        Token::LParen => Err(unsupported("a list of columns here")),
        other => Err(EngineError::new("42601", format!("syntax error at or near \"{other}\""))),
    }
}
