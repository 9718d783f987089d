//! Functions of regular expressions: their arguments. The matching is DataFusion's.
//!
//! Reports for DataFusion 55.2: `regexp_replace` expands `$1` in the replacement, and knows nothing of `\&`; a point does not match a line's
//! end, as it does in PostgreSQL; `\b` is a word's boundary, where PostgreSQL has a backspace; of alternatives the first is taken, not the
//! longest.
use super::{Builtin, Gives, Overload, Run, Takes};
use crate::error::tunnel;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::ScalarFunction;
use terrace_engine::{DataType, Datum, EngineError};

const TEXT: Takes = Takes::Is(DataType::Text);
const INT: Takes = Takes::Is(DataType::Int4);

const fn theirs(takes: &'static [Takes], gives: DataType) -> Overload {
    Overload { takes, more: false, gives: Gives::Is(gives), run: Run::Theirs }
}

const fn read(run: fn(&[Datum]) -> terrace_engine::Result<Datum>) -> Overload {
    Overload { takes: &[TEXT], more: false, gives: Gives::Is(DataType::Text), run: Run::Strict(run) }
}

pub(super) const TABLE: &[Builtin] = &[
    Builtin { name: PATTERN, overloads: &[read(|v| pattern(super::text::text(&v[0])?).map(Datum::text))] },
    Builtin { name: EXTENT, overloads: &[read(|v| extent(super::text::text(&v[0])?).map(Datum::text))] },
    Builtin { name: REPLACEMENT, overloads: &[read(|v| replacement(super::text::text(&v[0])?).map(Datum::text))] },
    Builtin {
        name: "regexp_match",
        overloads: &[theirs(&[TEXT, TEXT], DataType::Text), theirs(&[TEXT, TEXT, TEXT], DataType::Text)],
    },
    Builtin {
        name: "regexp_replace",
        overloads: &[theirs(&[TEXT, TEXT, TEXT], DataType::Text), theirs(&[TEXT, TEXT, TEXT, TEXT], DataType::Text)],
    },
    Builtin {
        name: "regexp_like",
        overloads: &[theirs(&[TEXT, TEXT], DataType::Bool), theirs(&[TEXT, TEXT, TEXT], DataType::Bool)],
    },
    Builtin {
        name: "regexp_count",
        overloads: &[
            theirs(&[TEXT, TEXT], DataType::Int4),
            theirs(&[TEXT, TEXT, INT], DataType::Int4),
            theirs(&[TEXT, TEXT, INT, TEXT], DataType::Int4),
        ],
    },
];

/// What DataFusion's functions and operators get for a pattern: of the operators, and of functions that say where it matches.
pub(super) const PATTERN: &str = "regex_pattern";
const EXTENT: &str = "regex_extent";
/// And what `regexp_replace` gets for a replacement.
const REPLACEMENT: &str = "regex_replacement";

pub(super) fn prepare(call: &mut ScalarFunction, schema: &DFSchema) -> Result<()> {
    let name = match call.func.name() {
        "regexp_like" => PATTERN,
        "regexp_replace" | "regexp_match" | "regexp_count" => EXTENT,
        _ => return Ok(()),
    };
    if call.args.len() < 2 || matches!(&call.args[1], Expr::ScalarFunction(f) if f.func.name() == name) {
        return Ok(());
    }
    call.args[1] = super::called(name, vec![std::mem::take(&mut call.args[1])], schema)?;
    let flags = match call.func.name() {
        "regexp_like" | "regexp_match" => call.args.get(2),
        _ => call.args.get(3),
    };
    check_flags(flags)?;
    if call.func.name() == "regexp_replace" {
        call.args[2] = super::called(REPLACEMENT, vec![std::mem::take(&mut call.args[2])], schema)?;
    }
    Ok(())
}

/// Of the flags only `g` and `i` mean the same to Rust's regular expressions.
fn check_flags(flags: Option<&Expr>) -> Result<()> {
    let refused = |shown: &str| {
        Err(tunnel(EngineError::unsupported(format!("the flags {shown} of a regular expression are not supported"))))
    };
    match flags {
        None => Ok(()),
        Some(Expr::Literal(ScalarValue::Utf8(Some(flags)), _)) if !flags.is_empty() => {
            if flags.chars().all(|c| matches!(c, 'g' | 'i')) { Ok(()) } else { refused(&format!("\"{flags}\"")) }
        }
        Some(Expr::Literal(value, _)) if value.is_null() => Ok(()),
        Some(Expr::Literal(..)) => refused("\"\""),
        Some(_) => refused("that are no constant"),
    }
}

/// The pattern as Rust's regular expressions take it: a point matches a line's end too. What they take for something else than PostgreSQL
/// does is refused (0A000).
fn pattern(text: &str) -> terrace_engine::Result<String> {
    let refused = |what: &str| EngineError::unsupported(format!("regular expressions with {what} are not supported"));
    if text.starts_with("***") {
        return Err(refused("***"));
    }
    let mut escaped = false;
    for c in text.chars() {
        if escaped && matches!(c, 'b' | 'B' | '<' | '>' | 'p' | 'P' | 'z' | 'Q' | 'E') {
            return Err(refused(&format!("\\{c}")));
        }
        escaped = c == '\\' && !escaped;
    }
    // Rust's operators on sets of characters.
    for operator in ["&&", "--", "~~"] {
        if text.contains('[') && text.contains(operator) {
            return Err(refused(operator));
        }
    }
    Ok(format!("(?s){text}"))
}

/// As [`pattern`], where it matters how much is matched: PostgreSQL takes the longest match, Rust the first alternative that matches. They
/// agree where alternatives are plain texts of which none begins another, and where no quantifier is lazy.
fn extent(text: &str) -> terrace_engine::Result<String> {
    let refused = |what: &str| {
        EngineError::unsupported(format!("{what} in a regular expression are not supported in this function"))
    };
    for lazy in ["*?", "+?", "??", "}?"] {
        if text.contains(lazy) {
            return Err(refused("lazy quantifiers"));
        }
    }
    if text.contains('|') {
        let inner = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')).unwrap_or(text);
        let alternatives: Vec<&str> = inner.split('|').collect();
        let plain = |text: &str| !text.contains(|c: char| "()[]{}*+?.^$\\".contains(c));
        let apart = alternatives.iter().enumerate().all(|(at, one)| {
            plain(one) && alternatives.iter().enumerate().all(|(other, text)| at == other || !text.starts_with(one))
        });
        if !apart {
            return Err(refused("these alternatives"));
        }
    }
    pattern(text)
}

/// The replacement as Rust's regular expressions take it: `\1` to `\9` and `\&` are what was matched, `\\` is a backslash; nothing else is
/// special.
fn replacement(text: &str) -> std::result::Result<String, EngineError> {
    let mut put = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek().copied()) {
            ('$', _) => put.push_str("$$"),
            ('\\', Some('&')) => {
                put.push_str("${0}");
                rest.next();
            }
            ('\\', Some(digit @ '1'..='9')) => {
                put.push_str(&format!("${{{digit}}}"));
                rest.next();
            }
            ('\\', Some('\\')) => {
                put.push('\\');
                rest.next();
                // DataFusion would take the two for a reference.
                if rest.peek().is_some_and(char::is_ascii_digit) {
                    return Err(EngineError::unsupported(
                        "a backslash before a digit in a replacement is not supported",
                    ));
                }
            }
            _ => put.push(c),
        }
    }
    Ok(put)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        assert_eq!(pattern(r"a.b\.").unwrap(), r"(?s)a.b\.");
        assert_eq!(pattern(r"\\b").unwrap(), r"(?s)\\b");
        for refused in [r"\bword\b", "[a-z&&[^b]]", "***=x"] {
            assert_eq!(pattern(refused).unwrap_err().state.0, "0A000", "{refused}");
        }
        assert_eq!(extent("(foo|bar)").unwrap(), "(?s)(foo|bar)");
        for refused in ["ab|abcd", "a*?", "(a|b)c"] {
            assert_eq!(extent(refused).unwrap_err().state.0, "0A000", "{refused}");
        }
    }

    #[test]
    fn replacements() {
        assert_eq!(replacement(r"<\&>").unwrap(), "<${0}>");
        assert_eq!(replacement(r"\2-\1$1").unwrap(), "${2}-${1}$$1");
        assert_eq!(replacement(r"a\\b\c").unwrap(), r"a\b\c");
        assert!(replacement(r"\\1").is_err());
    }
}
