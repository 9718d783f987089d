//! Patterns of SIMILAR TO as regular expressions, and SUBSTRING ... SIMILAR.
//!
//! 1. Separators (`#"`, where `#` is the escape character) part a pattern in three at most. SUBSTRING answers what the
//!    second part takes: the first takes as little as it can, the second then as much as it can.
//!
//! Source: PostgreSQL 15 documentation, "SIMILAR TO Regular Expressions" (9.7.2).
use super::super::pattern::translated;
use super::{Answer, compiled, text, wrong_arguments};
use crate::memory;
use regex::Regex;
use terrace_engine::{Datum, EngineError};

/// `similar_to_escape(pattern, escape)`: a regular expression that matches what SIMILAR TO does.
pub(super) fn regular(values: &[Datum]) -> Answer<Datum> {
    let parts = match values {
        [pattern] => parts(text(pattern)?, Some('\\'))?,
        [pattern, escape] => parts(text(pattern)?, escape_of(escape)?)?,
        _ => return Err(wrong_arguments(values)),
    };
    let parts: String = parts.iter().map(|part| format!("(?:{part})")).collect();
    Ok(Datum::text(format!("^{parts}$")))
}

/// `substring(text SIMILAR pattern ESCAPE escape)`
pub(in super::super) fn part(values: &[Datum]) -> Answer<Datum> {
    let [of, pattern, escape] = values else { return Err(wrong_arguments(values)) };
    let (of, parts) = (text(of)?, parts(text(pattern)?, escape_of(escape)?)?);
    let [first, rest @ ..] = parts.as_slice() else { return Err(EngineError::internal("a pattern has a part")) };
    let first = whole(first)?;
    if rest.is_empty() {
        return Ok(if first.is_match(of) { Datum::text(of.to_owned()) } else { Datum::Null });
    }
    let places = || of.char_indices().map(|(at, _)| at).chain([of.len()]);
    let fits = |regex: &Regex, part: &str| {
        memory::check()?;
        Ok::<bool, EngineError>(regex.is_match(part))
    };
    let (both, second) = (whole(&rest.iter().map(|part| format!("(?:{part})")).collect::<String>())?, whole(&rest[0])?);
    let mut start = None;
    for at in places() {
        if fits(&first, &of[..at])? && fits(&both, &of[at..])? {
            start = Some(at);
            break;
        }
    }
    let Some(start) = start else { return Ok(Datum::Null) };
    let Some(last) = rest.get(1) else { return Ok(Datum::text(of[start..].to_owned())) };
    let last = whole(last)?;
    let ends: Vec<usize> = places().filter(|at| *at >= start).collect();
    for end in ends.into_iter().rev() {
        if fits(&last, &of[end..])? && fits(&second, &of[start..end])? {
            return Ok(Datum::text(of[start..end].to_owned()));
        }
    }
    Err(EngineError::internal("what two parts match together has an end of the first"))
}

/// Of all of a text.
fn whole(part: &str) -> Answer<Regex> {
    compiled(&translated(&format!("^(?:{part})$"), false)?.made)
}

fn escape_of(escape: &Datum) -> Answer<Option<char>> {
    let mut letters = text(escape)?.chars();
    let escape = letters.next();
    match letters.next() {
        None => Ok(escape),
        Some(_) => {
            let error = EngineError::new("22025", "invalid escape string");
            Err(error.with_hint("Escape string must be empty or one character."))
        }
    }
}

/// The parts between separators (invariant 1), as regular expressions.
fn parts(pattern: &str, escape: Option<char>) -> Answer<Vec<String>> {
    let (mut parts, mut made) = (vec![], String::new());
    let (mut escaped, mut in_brackets) = (false, false);
    for c in pattern.chars() {
        match c {
            '"' if escaped && !in_brackets => {
                escaped = false;
                parts.push(std::mem::take(&mut made));
                if parts.len() > 2 {
                    let message = "SQL regular expression may not contain more than two escape-double-quote separators";
                    return Err(EngineError::new("2200C", message));
                }
            }
            c if std::mem::take(&mut escaped) => made.extend(['\\', c]),
            c if Some(c) == escape => escaped = true,
            '\\' if in_brackets => made.push_str("\\\\"),
            c if in_brackets => {
                made.push(c);
                in_brackets = c != ']';
            }
            '[' => {
                made.push(c);
                in_brackets = true;
            }
            '%' => made.push_str(".*"),
            '_' => made.push('.'),
            '(' => made.push_str("(?:"),
            '\\' | '.' | '^' | '$' => made.extend(['\\', c]),
            c => made.push(c),
        }
    }
    parts.push(made);
    Ok(parts)
}
