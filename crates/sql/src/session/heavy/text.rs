//! What a statement's text will take once it is parsed, told before it is.
//!
//! A literal takes what it is long; but each word, number and sign becomes a token, a node of the parser's tree, one of
//! the planner's and one of the plan's, which are a hundred times as large as what stands in the text. So they are
//! counted, without what is quoted or a comment.

/// Bytes that a token takes on its way from text to plan, at the most of them at one time.
pub(crate) const TOKEN: usize = 320;

/// How often a literal's bytes are there at one time.
const COPIES: usize = 4;

/// A bound on the bytes that a text takes.
pub(crate) fn weight(sql: &str) -> usize {
    sql.len().saturating_mul(COPIES).saturating_add(tokens(sql.as_bytes()).saturating_mul(TOKEN))
}

/// Tokens of a text, blanks not counted. Roughly: where a text is broken it is somebody else's to say.
fn tokens(sql: &[u8]) -> usize {
    let (mut at, mut count) = (0, 0);
    while let Some(byte) = sql.get(at) {
        let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80 || *b == b'.';
        at += match byte {
            b if b.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'\'' => {
                let escapes = at > 0 && matches!(sql[at - 1], b'E' | b'e');
                quoted(&sql[at..], b'\'', escapes)
            }
            b'"' => quoted(&sql[at..], b'"', false),
            b'-' if sql[at..].starts_with(b"--") => until(&sql[at..], b"\n"),
            b'/' if sql[at..].starts_with(b"/*") => until(&sql[at..], b"*/"),
            b'$' => dollars(&sql[at..]),
            b if word(b) => sql[at..].iter().position(|b| !word(b)).unwrap_or(sql.len() - at),
            _ => 1,
        };
        count += 1;
    }
    count
}

/// The length of what begins with a quote, up to the quote that ends it.
fn quoted(sql: &[u8], quote: u8, escapes: bool) -> usize {
    let mut at = 1;
    while at < sql.len() {
        match sql[at] {
            b'\\' if escapes => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    sql.len()
}

/// The length up to and with `end`.
fn until(sql: &[u8], end: &[u8]) -> usize {
    sql.windows(end.len()).position(|w| w == end).map_or(sql.len(), |at| at + end.len())
}

/// The length of `$tag$ ... $tag$`; of a parameter's `$`.
fn dollars(sql: &[u8]) -> usize {
    let tag = sql[1..].iter().take(64).position(|b| !(b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80));
    match tag {
        Some(length) if sql[1 + length] == b'$' && !sql[1].is_ascii_digit() => {
            let tag = &sql[..length + 2];
            tag.len() + until(&sql[tag.len()..], tag)
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn what_is_quoted_is_one_token() {
        for (sql, count) in [
            ("", 0),
            ("SELECT a, b FROM t", 6),
            ("IN ('a b, c', 'it''s', 12.5)", 9),
            (r"SELECT E'a\'b c d' || 'x'", 6),
            ("SELECT $$a b c$$, $x$ it's $$ $x$, $1", 7),
            ("SELECT 1 -- a b c\n + /* d e */ 2", 6),
            ("SELECT \"a b\".c", 3),
            ("'never ends, at all", 1),
            ("$tag$ never ends", 1),
            ("'\\", 1),
            ("E'\\", 2),
            ("größer als", 2),
        ] {
            assert_eq!(tokens(sql.as_bytes()), count, "{sql}");
        }
    }
}
