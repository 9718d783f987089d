//! Finds the ends of statements: semicolons outside quotes and comments.

/// Where in the text the scan stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LexerState<'t> {
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
    !matches!(scan(text).1, LexerState::Plain | LexerState::LineComment)
}

fn scan(text: &str) -> (Option<usize>, LexerState<'_>) {
    let mut state = LexerState::Plain;
    let mut at = 0;
    let mut before = ' ';
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let mut step = c.len_utf8();
        match state {
            LexerState::Plain => match c {
                ';' => return (Some(at + 1), state),
                '\'' if matches!(before, 'e' | 'E') && starts_word(text, at - 1) => state = LexerState::Escaped,
                '\'' | '"' => state = LexerState::Quote(c),
                '-' if rest.starts_with("--") => state = LexerState::LineComment,
                '/' if rest.starts_with("/*") => (state, step) = (LexerState::BlockComment(1), 2),
                '$' if !is_word(before) => {
                    if let Some(tag) = dollar_tag(rest) {
                        (state, step) = (LexerState::Dollar(tag), tag.len());
                    }
                }
                _ => {}
            },
            LexerState::LineComment if c == '\n' => state = LexerState::Plain,
            LexerState::LineComment => {}
            LexerState::BlockComment(depth) if rest.starts_with("*/") => {
                step = 2;
                state = if depth == 1 { LexerState::Plain } else { LexerState::BlockComment(depth - 1) };
            }
            LexerState::BlockComment(depth) if rest.starts_with("/*") => {
                (state, step) = (LexerState::BlockComment(depth + 1), 2)
            }
            LexerState::BlockComment(_) => {}
            // A doubled quote ends the string and begins it again: the same in the end.
            LexerState::Quote(quote) if c == quote => state = LexerState::Plain,
            LexerState::Quote(_) => {}
            LexerState::Escaped if c == '\\' => step += rest[step..].chars().next().map_or(0, char::len_utf8),
            LexerState::Escaped if c == '\'' => state = LexerState::Plain,
            LexerState::Escaped => {}
            LexerState::Dollar(tag) if rest.starts_with(tag) => (state, step) = (LexerState::Plain, tag.len()),
            LexerState::Dollar(_) => {}
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
mod tests;
