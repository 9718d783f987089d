//! From text to tokens, by PostgreSQL's lexical rules with `standard_conforming_strings` on (it cannot be off).
//!
//! 1. Text is never printed from tokens.
//! 2. A string literal is its value from here on, however it was quoted (`'...'`, `E'...'`, `$$...$$`, `U&'...'`):
//!    nobody reads it twice.
//! 3. Where the tokenizer reads a text otherwise than PostgreSQL, the tokens are put right, or the text is refused.
//! 4. A name has at most [`NAME_MAX`] bytes from here on: what is beyond them is cut off, as PostgreSQL does it.
use crate::error::{from_parser, unsupported};
use crate::parse::grammar::Grammar;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer, Whitespace, Word};
use terrace_engine::{EngineError, Result};

/// Bytes of the longest name.
pub(crate) const NAME_MAX: usize = 63;

fn read(sql: &str) -> Result<Vec<TokenWithSpan>> {
    Tokenizer::new(&Grammar, sql).tokenize_with_location().map_err(|e| from_parser(e.into()))
}

/// The tokens of a statement's text.
pub(crate) fn tokenize(sql: &str) -> Result<Vec<TokenWithSpan>> {
    let tokens = read(sql)?;
    let mut exact: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 1);
    for (at, TokenWithSpan { token, span }) in tokens.iter().enumerate() {
        let token = match token {
            Token::SingleQuotedString(text) => match continued(&mut exact, &tokens[..at]) {
                Some(before) => {
                    before.push_str(text);
                    continue;
                }
                None => Token::SingleQuotedString(text.clone()),
            },
            Token::EscapedStringLiteral(text) => Token::SingleQuotedString(text.clone()),
            Token::UnicodeStringLiteral(text) => {
                refuse_escape(&tokens[at + 1..])?;
                Token::SingleQuotedString(text.clone())
            }
            Token::DollarQuotedString(quoted) => {
                if quoted.tag.as_ref().is_some_and(|tag| tag.starts_with(|c: char| c.is_ascii_digit())) {
                    return Err(junk("$"));
                }
                Token::SingleQuotedString(quoted.value.clone())
            }
            Token::CustomBinaryOperator(operator) => {
                exact.extend(operators(operator)?.into_iter().map(|token| TokenWithSpan { token, span: *span }));
                continue;
            }
            Token::Word(word) if word.value.len() > NAME_MAX => {
                Token::Word(Word { value: terrace_grammar::cut(&word.value).to_owned(), ..word.clone() })
            }
            other => {
                refuse(other, *span, &tokens[at + 1..])?;
                other.clone()
            }
        };
        exact.push(TokenWithSpan { token, span: *span });
    }
    let fits = |t: &TokenWithSpan| !matches!(&t.token, Token::Word(word) if word.value.len() > NAME_MAX);
    debug_assert!(exact.iter().all(fits), "invariant 4");
    Ok(exact)
}

/// The text of the string that the next one continues: `'a'`, white space with the end of a line in it, `'b'`.
fn continued<'e>(exact: &'e mut Vec<TokenWithSpan>, before: &[TokenWithSpan]) -> Option<&'e mut String> {
    let is_white = |t: &&TokenWithSpan| {
        let comment = matches!(t.token, Token::Whitespace(Whitespace::MultiLineComment(_)));
        matches!(t.token, Token::Whitespace(_)) && !comment
    };
    let white = before.iter().rev().take_while(is_white);
    let ends_line = |t: &TokenWithSpan| !matches!(t.token, Token::Whitespace(Whitespace::Space | Whitespace::Tab));
    let (count, line) = white.fold((0, false), |(count, line), t| (count + 1, line || ends_line(t)));
    // Only a plain string goes on as a plain one.
    let plain = matches!(before.iter().rev().nth(count)?.token, Token::SingleQuotedString(_));
    if !(line && plain) {
        return None;
    }
    exact.truncate(exact.len() - count);
    match exact.last_mut().map(|t| &mut t.token) {
        Some(Token::SingleQuotedString(text)) => Some(text),
        _ => unreachable!("the token before the white space is a plain string"),
    }
}

/// What the tokenizer takes for one operator. In PostgreSQL a comment ends an operator, and a sign at the end of one
/// that has none of the rarer characters is a sign of its own: `a>=-1` is `a >= -1`.
fn operators(text: &str) -> Result<Vec<Token>> {
    if text.contains("--") || text.contains("/*") {
        let message = format!("syntax error at or near \"{text}\"");
        return Err(EngineError::new("42601", message).with_hint("Write a space before the comment."));
    }
    let signs = text.len() - text.trim_end_matches(['+', '-']).len();
    let first = match &text[..text.len() - signs] {
        "<" => Token::Lt,
        ">" => Token::Gt,
        "<=" => Token::LtEq,
        ">=" => Token::GtEq,
        "<>" => Token::Neq,
        "" => return Ok(text.chars().map(sign).collect()),
        _ => return Ok(vec![Token::CustomBinaryOperator(text.to_owned())]),
    };
    Ok(std::iter::once(first).chain(text[text.len() - signs..].chars().map(sign)).collect())
}

fn sign(c: char) -> Token {
    if c == '-' { Token::Minus } else { Token::Plus }
}

fn junk(near: &str) -> EngineError {
    EngineError::new("42601", format!("syntax error: trailing junk at or near \"{near}\""))
}

fn is_word(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
}

/// `U&'...' UESCAPE '!'`.
fn refuse_escape(next: &[TokenWithSpan]) -> Result<()> {
    match next.iter().find(|t| !matches!(t.token, Token::Whitespace(_))) {
        Some(token) if is_word(token, "uescape") => Err(unsupported("UESCAPE")),
        _ => Ok(()),
    }
}

/// `next`: the tokens that follow.
fn refuse(token: &Token, span: Span, next: &[TokenWithSpan]) -> Result<()> {
    match token {
        // `0x1f`, of PostgreSQL 16; `x'1f'` has a character more.
        Token::HexStringLiteral(digits)
            if span.end.column.saturating_sub(span.start.column) == digits.chars().count() as u64 + 2 =>
        {
            Err(junk(&format!("0x{digits}")))
        }
        Token::Placeholder(name)
            if name[1..].starts_with(|c: char| c.is_ascii_digit())
                && !name[1..].bytes().all(|b| b.is_ascii_digit()) =>
        {
            Err(junk(name))
        }
        Token::Number(number, true) => Err(junk(&format!("{number}L"))),
        Token::Number(number, false) => match next.first().map(|t| &t.token) {
            Some(Token::Word(word)) if word.quote_style.is_none() => Err(junk(&format!("{number}{}", word.value))),
            _ => Ok(()),
        },
        Token::HexStringLiteral(_)
        | Token::SingleQuotedByteStringLiteral(_)
        | Token::DoubleQuotedByteStringLiteral(_) => {
            Err(unsupported("a bit string or a hexadecimal number").with_hint("Use bytea: '\\x00ff'::bytea."))
        }
        Token::NationalStringLiteral(_) => Err(unsupported("N'...'")),
        Token::Word(Word { value, quote_style: Some(_), .. }) if value.is_empty() => {
            Err(EngineError::new("42601", "zero-length delimited identifier at or near \"\"\"\""))
        }
        Token::Word(Word { value, quote_style: None, keyword: Keyword::NoKeyword })
            if value.eq_ignore_ascii_case("u") =>
        {
            match next {
                [and, name, ..] if and.token == Token::Ampersand && is_quoted(&name.token) => {
                    Err(unsupported("a name as U&\"...\""))
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn is_quoted(token: &Token) -> bool {
    matches!(token, Token::Word(w) if w.quote_style.is_some())
}

#[cfg(test)]
mod tests;
