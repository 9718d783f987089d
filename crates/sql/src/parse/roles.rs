//! The syntax of CREATE USER and ALTER USER.
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Rewrites `CREATE USER` and `ALTER USER` to what they are short for, and drops ENCRYPTED, which means nothing.
pub(crate) fn normalize(tokens: &mut Vec<TokenWithSpan>) {
    let words: Vec<(usize, String)> = tokens
        .iter()
        .enumerate()
        .filter_map(|(at, t)| match &t.token {
            Token::Word(w) if w.quote_style.is_none() => Some((at, w.value.to_ascii_lowercase())),
            _ => None,
        })
        .collect();
    let [(_, verb), (object_at, object), options @ ..] = words.as_slice() else { return };
    if !(verb == "create" || verb == "alter") || !(object == "user" || object == "role") {
        return;
    }
    if object == "user" {
        tokens[*object_at].token = Token::make_keyword("ROLE");
        let says = options.iter().any(|(_, word)| word == "login" || word == "nologin");
        if verb == "create" && !says {
            let end =
                tokens.iter().rposition(|t| !matches!(t.token, Token::EOF | Token::SemiColon | Token::Whitespace(_)));
            let end = end.expect("there are words");
            let span = tokens[end].span;
            tokens.insert(end + 1, TokenWithSpan { token: Token::make_keyword("LOGIN"), span });
        }
    }
    if let Some(pair) = options.windows(2).find(|pair| pair[0].1 == "encrypted" && pair[1].1 == "password") {
        tokens.remove(pair[0].0);
    }
}
