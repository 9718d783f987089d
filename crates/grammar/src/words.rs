//! What can be told of a text from its tokens alone.

use crate::lexer::{Kind, Lexer, NAME_MAX, Options, Token, lex, skip_space};
use crate::statement::{At, Ident, Name};

/// A name that is longer than names may be.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    pub written: String,
    pub kept: String,
}

/// The names of a text that are cut, in order.
pub fn cut_names(sql: &str) -> Vec<Cut> {
    if sql.len() <= NAME_MAX {
        return vec![];
    }
    let long = |token: &Token| token.end - token.start > NAME_MAX as u32;
    let tokens = lex(sql, Options::default()).tokens;
    let names = tokens.into_iter().filter(long).filter_map(|token| word(sql, token));
    let cut_name = |written: String| Cut { kept: cut(&written).to_owned(), written };
    names.filter(|name| name.len() > NAME_MAX).map(cut_name).collect()
}

/// As many whole characters of a name as it may have.
pub fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_MAX)]
}

/// What a word or a quoted name says.
fn word(sql: &str, token: Token) -> Option<String> {
    let text = &sql[token.start as usize..token.end as usize];
    match token.kind {
        Kind::Word => Some(text.to_ascii_lowercase()),
        Kind::Quoted => Some(text[1..text.len() - 1].replace("\"\"", "\"")),
        _ => None,
    }
}

/// The name that a text is: `a.b`, `"A"."B"`. None: it is something else.
pub fn name_of(text: &str) -> Option<Name> {
    let tokens = lex(text, Options::default()).tokens;
    let (end, tokens) = tokens.split_last()?;
    if end.kind != Kind::End || tokens.len() % 2 == 0 {
        return None;
    }
    let mut parts = vec![];
    for (number, token) in tokens.iter().enumerate() {
        if number % 2 == 1 {
            if token.kind != Kind::Dot {
                return None;
            }
            continue;
        }
        parts.push(Ident { at: token.start, name: cut(&word(text, *token)?).to_owned() });
    }
    Some(Name::new(parts))
}

/// The end of the token that begins at a place.
pub fn token_end(sql: &str, at: At) -> At {
    let lexer = Lexer::new(sql, Options::default());
    lexer.next(at as usize).map_or(sql.len() as At, |token| token.end)
}

/// An expression's text without the parentheses around all of it.
pub fn without_parens(text: &str) -> &str {
    let tokens = lex(text, Options::default()).tokens;
    let (mut first, mut last) = (0, tokens.len() - 1);
    // The closing parenthesis of each open one.
    let (mut open, mut closes) = (vec![], vec![None; tokens.len()]);
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::LeftParen => open.push(at),
            Kind::RightParen => {
                if let Some(opened) = open.pop() {
                    closes[opened] = Some(at);
                }
            }
            _ => {}
        }
    }
    while first + 1 < last && closes[first] == Some(last - 1) {
        (first, last) = (first + 1, last - 1);
    }
    match last.checked_sub(1) {
        Some(end) if end >= first => &text[tokens[first].start as usize..tokens[end].end as usize],
        _ => text,
    }
}

/// The length of a text's first statement with its semicolon. None: it does not end yet.
pub fn statement_end(text: &str) -> Option<usize> {
    readable(text).find(|token| token.kind == Kind::Semicolon).map(|token| token.end as usize)
}

/// Whether a text ends within a string, a quoted name or a comment, which what follows goes on with.
pub fn within_quotes(text: &str) -> bool {
    readable(text).last().is_some_and(|token| token.kind == Kind::Broken)
}

/// The tokens of a text up to what has no end (`Broken`). What else cannot be read is passed by, character by
/// character.
fn readable(text: &str) -> impl Iterator<Item = Token> + '_ {
    let lexer = Lexer::new(text, Options::default());
    let (mut at, mut over) = (0, false);
    std::iter::from_fn(move || {
        while !over {
            match lexer.next(at) {
                Ok(token) if token.kind == Kind::End => over = true,
                Ok(token) => {
                    at = token.end as usize;
                    return Some(token);
                }
                Err(error) if error.message.starts_with("unterminated") => {
                    over = true;
                    let end = text.len() as At;
                    return Some(Token { kind: Kind::Broken, keyword: None, start: end, end });
                }
                Err(_) => {
                    at = behind_unreadable(text, skip_space(text.as_bytes(), at).unwrap_or(at));
                }
            }
        }
        None
    })
}

/// Where a text goes on behind what cannot be read: behind a string with a wrong escape, or one character further.
fn behind_unreadable(text: &str, start: usize) -> usize {
    let rest = &text[start..];
    if rest.starts_with("\"\"") {
        return start + 2;
    }
    let quote = match rest.as_bytes() {
        [b'\'', ..] => 0,
        [b'e' | b'E', b'\'', ..] => 1,
        [b'u' | b'U', b'&', b'\'', ..] => 2,
        _ => return start + rest.chars().next().map_or(1, char::len_utf8),
    };
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(quote + 1) {
        match character {
            '\'' if !escaped => return start + at + 1,
            '\\' if quote == 1 => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}
