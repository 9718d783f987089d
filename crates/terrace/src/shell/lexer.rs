//! Finds the ends of statements: semicolons outside quotes and comments.

/// Where in the text the scan stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State<'t> {
    Plain,
    LineComment,
    /// Nested.
    BlockComment(usize),
    Quote(char),
    /// `E'...'`: a backslash takes the next character with it.
    Escaped,
    /// `$tag$ ... $tag$`.
    Dollar(&'t str),
}

/// The length of the first statement with its semicolon; `None` where it does not end yet.
pub(super) fn statement_end(text: &str) -> Option<usize> {
    scan(text).0
}

/// Whether the text ends within a quoted string, a quoted name or a comment.
pub(super) fn within_quotes(text: &str) -> bool {
    !matches!(scan(text).1, State::Plain | State::LineComment)
}

fn scan(text: &str) -> (Option<usize>, State<'_>) {
    let mut state = State::Plain;
    let mut at = 0;
    let mut before = ' ';
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let mut step = c.len_utf8();
        match state {
            State::Plain => match c {
                ';' => return (Some(at + 1), state),
                '\'' if matches!(before, 'e' | 'E') && starts_word(text, at - 1) => state = State::Escaped,
                '\'' | '"' => state = State::Quote(c),
                '-' if rest.starts_with("--") => state = State::LineComment,
                '/' if rest.starts_with("/*") => (state, step) = (State::BlockComment(1), 2),
                '$' if !is_word(before) => {
                    if let Some(tag) = dollar_tag(rest) {
                        (state, step) = (State::Dollar(tag), tag.len());
                    }
                }
                _ => {}
            },
            State::LineComment if c == '\n' => state = State::Plain,
            State::LineComment => {}
            State::BlockComment(depth) if rest.starts_with("*/") => {
                step = 2;
                state = if depth == 1 { State::Plain } else { State::BlockComment(depth - 1) };
            }
            State::BlockComment(depth) if rest.starts_with("/*") => (state, step) = (State::BlockComment(depth + 1), 2),
            State::BlockComment(_) => {}
            // A doubled quote ends the string and begins it again: the same in the end.
            State::Quote(quote) if c == quote => state = State::Plain,
            State::Quote(_) => {}
            State::Escaped if c == '\\' => step += rest[step..].chars().next().map_or(0, char::len_utf8),
            State::Escaped if c == '\'' => state = State::Plain,
            State::Escaped => {}
            State::Dollar(tag) if rest.starts_with(tag) => (state, step) = (State::Plain, tag.len()),
            State::Dollar(_) => {}
        }
        before = c;
        at += step;
    }
    (None, state)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Whether the character at `at` begins a word.
fn starts_word(text: &str, at: usize) -> bool {
    !text[..at].chars().next_back().is_some_and(is_word)
}

/// `$tag$` at the front of the text.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text[1..].find('$')? + 1;
    let tag = &text[1..end];
    let good = tag.chars().all(|c| c.is_alphanumeric() || c == '_') && !tag.starts_with(|c: char| c.is_ascii_digit());
    good.then(|| &text[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolons_end_statements_and_nothing_else() {
        for (text, statement) in [
            ("SELECT 1; SELECT 2;", Some("SELECT 1;")),
            ("SELECT ';' ;x", Some("SELECT ';' ;")),
            ("SELECT 'it''s; ' || \"a;b\";", Some("SELECT 'it''s; ' || \"a;b\";")),
            ("SELECT E'\\';' ;", Some("SELECT E'\\';' ;")),
            ("SELECT '\\';", Some("SELECT '\\';")),
            ("SELECT name'a\\';", Some("SELECT name'a\\';")),
            ("-- a;\nSELECT 1;", Some("-- a;\nSELECT 1;")),
            ("/* ; /* ; */ ; */ SELECT 1;", Some("/* ; /* ; */ ; */ SELECT 1;")),
            ("SELECT $$a;b$$, $x$;$$;$x$;", Some("SELECT $$a;b$$, $x$;$$;$x$;")),
            ("SELECT $1; x", Some("SELECT $1;")),
            ("SELECT 'ä;", None),
            ("SELECT 1", None),
            ("", None),
        ] {
            assert_eq!(statement_end(text).map(|end| &text[..end]), statement, "{text}");
        }
        assert!(within_quotes("SELECT 'a") && within_quotes("/* x") && within_quotes("SELECT $$"));
        assert!(!within_quotes("SELECT 1") && !within_quotes("-- it's"));
    }
}
