//! Patterns of SIMILAR TO as regular expressions.
//!
//! Source: PostgreSQL 15 documentation, "SIMILAR TO Regular Expressions" (9.7.2).
use super::{Answer, text, wrong_arguments};
use terrace_engine::{Datum, EngineError};

/// `similar_to_escape(pattern, escape)`: a regular expression that matches what SIMILAR TO does.
pub(super) fn regular(values: &[Datum]) -> Answer<Datum> {
    let (pattern, escape) = match values {
        [pattern] => (text(pattern)?, Some('\\')),
        [pattern, escape] => {
            let mut letters = text(escape)?.chars();
            let escape = letters.next();
            if letters.next().is_some() {
                let error = EngineError::new("22025", "invalid escape string");
                return Err(error.with_hint("Escape string must be empty or one character."));
            }
            (text(pattern)?, escape)
        }
        _ => return Err(wrong_arguments(values)),
    };
    let mut made = String::from("^(?:");
    let (mut escaped, mut in_brackets) = (false, false);
    for c in pattern.chars() {
        match c {
            // Parts that SUBSTRING takes out of a text.
            '"' if escaped && !in_brackets => {
                return Err(EngineError::unsupported("a separator in a pattern of SIMILAR TO is not supported"));
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
    made.push_str(")$");
    Ok(Datum::text(made))
}
