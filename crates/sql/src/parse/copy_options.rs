//! COPY's options: the forms that the parser does not know are rewritten to those that it does.
use crate::error::unsupported;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use terrace_engine::Result;

/// Stands for `*` where the parser wants a list of columns; no name a user can write.
pub(crate) const ALL: &str = "\0*";

/// Rewrites the forms of options that the parser does not know to those that it does: `FREEZE on`, `HEADER 1`,
/// `FORMAT 'csv'`, `FORCE_QUOTE *`. Does nothing to statements other than COPY.
pub(crate) fn normalize(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let significant = |t: &TokenWithSpan| !matches!(t.token, Token::Whitespace(_));
    let is = |t: &Token, word: &str| match t {
        Token::Word(w) => w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word),
        _ => false,
    };
    if !tokens.iter().find(|t| significant(t)).is_some_and(|t| is(&t.token, "copy")) {
        return Ok(());
    }
    let ends = ["stdin", "stdout"];
    let Some(target) = tokens.iter().rposition(|t| ends.iter().any(|word| is(&t.token, word))) else { return Ok(()) };
    let mut at = target;
    while let Some(next) = (at + 1..tokens.len()).find(|i| significant(&tokens[*i])) {
        let (option, value) = (tokens[at].token.clone(), tokens[next].token.clone());
        let text = match &value {
            Token::Word(w) => w.value.to_ascii_lowercase(),
            Token::Number(text, _) | Token::SingleQuotedString(text) => text.to_ascii_lowercase(),
            _ => String::new(),
        };
        if is(&option, "freeze") || is(&option, "header") {
            match text.as_str() {
                "on" | "true" | "1" => tokens[next].token = Token::make_keyword("TRUE"),
                "off" | "false" | "0" => tokens[next].token = Token::make_keyword("FALSE"),
                "match" => return Err(unsupported("HEADER MATCH")),
                _ => {}
            }
        } else if is(&option, "format") && matches!(value, Token::SingleQuotedString(_)) {
            tokens[next].token = Token::make_word(&text, None);
        } else if is(&option, "force_quote") && value == Token::Mul {
            let span = tokens[next].span;
            let list = [Token::LParen, Token::make_word(ALL, Some('"')), Token::RParen];
            tokens.splice(next..=next, list.map(|token| TokenWithSpan { token, span }));
        }
        at = next;
    }
    Ok(())
}
