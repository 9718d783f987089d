//! The syntax of ALTER SYSTEM. The parser does not know the statement: its tree is a PRAGMA whose name begins with
//! [`MARK`], which nobody else can write.
use crate::error::{from_parser, unsupported};
use crate::parse::grammar::Grammar;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart, Statement, Value};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use terrace_engine::{EngineError, Result};

pub(crate) const MARK: &str = "ALTER SYSTEM";

fn word(token: Option<&Token>) -> Option<String> {
    match token {
        Some(Token::Word(w)) if w.quote_style.is_none() => Some(w.value.to_ascii_lowercase()),
        _ => None,
    }
}

/// `None` where the tokens begin otherwise.
pub(crate) fn parse(tokens: &[TokenWithSpan]) -> Result<Option<Statement>> {
    let tokens = tokens.iter().map(|t| &t.token).filter(|t| !matches!(t, Token::Whitespace(_) | Token::EOF));
    let tokens: Vec<Token> = tokens.cloned().collect();
    let tokens = tokens.strip_suffix(&[Token::SemiColon]).unwrap_or(&tokens);
    if word(tokens.first()).as_deref() != Some("alter") || word(tokens.get(1)).as_deref() != Some("system") {
        return Ok(None);
    }
    let syntax = |at: usize| {
        let near = tokens.get(at).map_or("end of input".to_string(), |t| format!("or near \"{t}\""));
        EngineError::new("42601", format!("syntax error at {near}"))
    };
    let set = match word(tokens.get(2)).as_deref() {
        Some("set") => true,
        Some("reset") => false,
        _ => return Err(syntax(2)),
    };
    if !set && word(tokens.get(3)).as_deref() == Some("all") {
        return Err(unsupported("ALTER SYSTEM RESET ALL (reset each setting by name)"));
    }
    let mut parser = Parser::new(&Grammar).with_tokens(tokens[3.min(tokens.len())..].to_vec());
    let name = parser.parse_object_name(false).map_err(from_parser)?;
    let rest: Vec<Token> = std::iter::from_fn(|| match parser.next_token().token {
        Token::EOF => None,
        token => Some(token),
    })
    .collect();
    let value = match (set, rest.as_slice()) {
        (false, []) => None,
        (true, [equals, value @ ..]) if *equals == Token::Eq || word(Some(equals)).as_deref() == Some("to") => {
            Some(match value {
                [Token::SingleQuotedString(text)] => text.clone(),
                [Token::Number(number, _)] => number.clone(),
                [Token::Minus, Token::Number(number, _)] => format!("-{number}"),
                [Token::Word(word)] => word.value.clone(),
                _ => return Err(syntax(tokens.len() - value.len())),
            })
        }
        _ => return Err(syntax(tokens.len() - rest.len())),
    };
    let parts = std::iter::once(ObjectNamePart::Identifier(Ident::new(MARK))).chain(name.0);
    let value = value.map(|text| Value::SingleQuotedString(text).into());
    Ok(Some(Statement::Pragma { name: ObjectName(parts.collect()), value, is_eq: true }))
}

#[cfg(test)]
mod tests {
    fn shown(sql: &str) -> String {
        match crate::parse::parse_one(sql) {
            Ok(Some(statement)) => statement.to_string(),
            Ok(None) => "nothing".into(),
            Err(e) => format!("{}: {}", e.state.0, e.message),
        }
    }

    #[test]
    fn settings_are_set_and_reset() {
        assert_eq!(shown("alter system set flash_tier.size = '2GB';"), "PRAGMA ALTER SYSTEM.flash_tier.size = '2GB'");
        assert_eq!(shown("ALTER SYSTEM SET flash_tier.size TO 8192"), "PRAGMA ALTER SYSTEM.flash_tier.size = '8192'");
        assert_eq!(shown("ALTER SYSTEM RESET flash_tier.size"), "PRAGMA ALTER SYSTEM.flash_tier.size");
        assert_eq!(shown("ALTER SYSTEM SET x"), "42601: syntax error at end of input");
        assert_eq!(shown("ALTER SYSTEM SET x = 1 2"), "42601: syntax error at or near \"1\"");
        assert_eq!(shown("ALTER SYSTEM DROP x"), "42601: syntax error at or near \"DROP\"");
        assert!(shown("ALTER SYSTEM").starts_with("42601"));
        assert!(shown("ALTER SYSTEM SET").starts_with("42601"), "{}", shown("ALTER SYSTEM SET"));
    }
}
