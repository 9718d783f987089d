//! The syntax of cursors. The parser's FETCH is not PostgreSQL's, so FETCH and MOVE are parsed here; the tree of a MOVE
//! is a FETCH into [`MOVE`], which nobody else can write.
use crate::error::unsupported;
use datafusion::sql::sqlparser::ast::{Declare, FetchDirection, FetchPosition, Ident, ObjectName, Statement, Value};
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};
use terrace_engine::{EngineError, Result};

pub(crate) const MOVE: &str = "MOVE";

fn word(token: Option<&Token>) -> Option<String> {
    match token {
        Some(Token::Word(w)) if w.quote_style.is_none() => Some(w.value.to_ascii_lowercase()),
        _ => None,
    }
}

/// `FETCH` and `MOVE`; `None` where the tokens begin otherwise.
pub(crate) fn parse(tokens: &[TokenWithSpan]) -> Result<Option<Statement>> {
    let tokens: Vec<&Token> =
        tokens.iter().map(|t| &t.token).filter(|t| !matches!(t, Token::Whitespace(_) | Token::EOF)).collect();
    let tokens = tokens.strip_suffix(&[&Token::SemiColon]).unwrap_or(&tokens);
    let first = word(tokens.first().copied());
    let moves = first.as_deref() == Some("move");
    if !moves && first.as_deref() != Some("fetch") {
        return Ok(None);
    }
    let syntax = |at: usize| {
        let near = tokens.get(at).map_or("end of input".to_string(), |t| format!("or near \"{t}\""));
        EngineError::new("42601", format!("syntax error at {near}"))
    };
    // The cursor's name is last; what is before it says where to go.
    let (name, before) = match &tokens[1..] {
        [] => return Err(syntax(1)),
        [before @ .., Token::Word(w)] => {
            (Ident { value: w.value.clone(), quote_style: w.quote_style, span: Span::empty() }, before)
        }
        _ => return Err(syntax(tokens.len() - 1)),
    };
    let direction = match before.split_last() {
        Some((last, rest)) if matches!(word(Some(*last)).as_deref(), Some("from" | "in")) => rest,
        _ => before,
    };
    let number = |tokens: &[&Token]| -> Option<String> {
        match tokens {
            [Token::Number(n, _)] => Some(n.clone()),
            [Token::Plus, Token::Number(n, _)] => Some(n.clone()),
            [Token::Minus, Token::Number(n, _)] => Some(format!("-{n}")),
            _ => None,
        }
    };
    let limit = |n: String| Value::Number(n, false).into();
    let words: Vec<Option<String>> = direction.iter().map(|t| word(Some(*t))).collect();
    let words: Vec<&str> = words.iter().map(|w| w.as_deref().unwrap_or("")).collect();
    let direction = match words.as_slice() {
        [] | ["next"] | ["forward"] => FetchDirection::Next,
        ["all"] => FetchDirection::All,
        ["forward", "all"] => FetchDirection::ForwardAll,
        ["prior"] | ["backward"] => FetchDirection::Prior,
        ["backward", "all"] => FetchDirection::BackwardAll,
        ["first"] => FetchDirection::First,
        ["last"] => FetchDirection::Last,
        [kind @ ("forward" | "backward" | "absolute" | "relative"), ..] => {
            let limit = limit(number(&direction[1..]).ok_or_else(|| syntax(2))?);
            match *kind {
                "forward" => FetchDirection::Forward { limit: Some(limit) },
                "backward" => FetchDirection::Backward { limit: Some(limit) },
                "absolute" => FetchDirection::Absolute { limit },
                _ => FetchDirection::Relative { limit },
            }
        }
        _ => FetchDirection::Count { limit: limit(number(direction).ok_or_else(|| syntax(1))?) },
    };
    let into = moves.then(|| ObjectName::from(vec![Ident::new(MOVE)]));
    Ok(Some(Statement::Fetch { name, direction, position: FetchPosition::From, into }))
}

/// The query of a DECLARE.
pub(crate) fn declared(ast: &Statement) -> Option<Result<(&Ident, Statement)>> {
    let Statement::Declare { stmts } = ast else { return None };
    let [Declare { names, binary, scroll, hold, for_query: Some(query), .. }] = stmts.as_slice() else {
        return Some(Err(unsupported("this form of DECLARE")));
    };
    let [name] = names.as_slice() else { return Some(Err(unsupported("this form of DECLARE"))) };
    let refused = [
        (*binary == Some(true), "DECLARE ... BINARY"),
        (*scroll == Some(true), "DECLARE ... SCROLL"),
        (*hold == Some(true) && !query.locks.is_empty(), "DECLARE ... WITH HOLD of rows that are locked"),
    ];
    match refused.iter().find(|(is, _)| *is) {
        Some((_, what)) => Some(Err(unsupported(what))),
        None => Some(Ok((name, Statement::Query(query.clone())))),
    }
}
