//! White space and comments.

/// The first byte at or behind a place that is neither white space nor comment. The error is where a comment begins
/// that does not end.
pub(crate) fn skip_space(bytes: &[u8], mut at: usize) -> Result<usize, usize> {
    loop {
        match bytes.get(at) {
            Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0c) => at += 1,
            Some(b'-') if bytes.get(at + 1) == Some(&b'-') => at = line_end(bytes, at),
            Some(b'/') if bytes.get(at + 1) == Some(&b'*') => at = comment_end(bytes, at).ok_or(at)?,
            _ => return Ok(at),
        }
    }
}

/// The end of the line, before the character that ends it.
fn line_end(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|byte| !matches!(byte, b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Behind a comment, which may have comments in it.
fn comment_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut open = 0_usize;
    loop {
        match (bytes.get(at)?, bytes.get(at + 1)) {
            (b'/', Some(b'*')) => {
                open += 1;
                at += 2;
            }
            (b'*', Some(b'/')) => {
                open -= 1;
                at += 2;
                if open == 0 {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
}

/// Where the next part of a string begins, whose last part ended at a place: a quote behind white space with at least
/// one line's end in it. Comments of one line count as white space.
pub(super) fn continued(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut lines = 0;
    loop {
        match bytes.get(at)? {
            b'\n' | b'\r' => {
                lines += 1;
                at += 1;
            }
            b' ' | b'\t' | 0x0c => at += 1,
            b'-' if bytes.get(at + 1) == Some(&b'-') => at = line_end(bytes, at),
            b'\'' if lines > 0 => return Some(at),
            _ => return None,
        }
    }
}
