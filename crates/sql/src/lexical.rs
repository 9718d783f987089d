//! From text to tokens, by PostgreSQL's lexical rules with `standard_conforming_strings` on (it cannot be off).
//!
//! 1. Text is never printed from tokens: a string of statements is cut where its semicolons stand in the source.
//! 2. A string literal is its value from here on, however it was quoted (`'...'`, `E'...'`, `$$...$$`, `U&'...'`): nobody reads it
//!    twice.
//! 3. Where the tokenizer reads a text otherwise than PostgreSQL, the tokens are put right, or the text is refused.
use crate::error::{from_parser, unsupported};
use crate::grammar::Grammar;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Whitespace, Word};
use std::str::Chars;
use terrace_engine::{EngineError, Result};

fn read(sql: &str) -> Result<Vec<TokenWithSpan>> {
    Tokenizer::new(&Grammar, sql).tokenize_with_location().map_err(|e| from_parser(e.into()))
}

/// Splits a string of statements at its top-level semicolons. Empty statements are left out.
pub(crate) fn split(sql: &str) -> Result<Vec<String>> {
    let mut place = Place { rest: sql.chars(), line: 1, column: 1 };
    let (mut statements, mut start, mut empty) = (vec![], 0, true);
    for token in read(sql)? {
        match token.token {
            Token::SemiColon => {
                let end = sql.len() - place.after(token.span.start);
                if !std::mem::replace(&mut empty, true) {
                    statements.push(sql[start..end].trim_ascii().to_owned());
                }
                start = end + 1;
            }
            Token::Whitespace(_) | Token::EOF => {}
            _ => empty = false,
        }
    }
    if !empty {
        statements.push(sql[start..].trim_ascii().to_owned());
    }
    Ok(statements)
}

/// Where in the source one stands, as the tokenizer counts: `\n` ends a line, every other character is a column.
struct Place<'s> {
    rest: Chars<'s>,
    line: u64,
    column: u64,
}

impl Place<'_> {
    /// Goes on to a place that is not behind this one; answers how many bytes follow it.
    fn after(&mut self, place: Location) -> usize {
        while (self.line, self.column) < (place.line, place.column) {
            match self.rest.next() {
                Some('\n') => (self.line, self.column) = (self.line + 1, 1),
                Some(_) => self.column += 1,
                None => break,
            }
        }
        self.rest.as_str().len()
    }
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
            other => {
                refuse(other, &tokens[at + 1..])?;
                other.clone()
            }
        };
        exact.push(TokenWithSpan { token, span: *span });
    }
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
fn refuse(token: &Token, next: &[TokenWithSpan]) -> Result<()> {
    match token {
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
