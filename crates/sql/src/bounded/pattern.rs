//! How long what `regexp_replace` makes can be: its matches are counted, what is put in their place is not made.
use super::texts::Text;
use crate::error::tunnel;
use crate::memory;
use datafusion::common::Result;
use regex::RegexBuilder;

/// Bytes up to which a product of lengths is bound enough.
const SMALL: u64 = 64 << 10;

/// Matches between two looks at whether the statement may go on.
const MATCHES: usize = 4096;

/// A bound on the bytes of a result. Arguments: the text, the pattern, the replacement, perhaps flags.
pub(super) fn bound(texts: &[Text], row: usize) -> Result<u64> {
    let (length, replacement) = (texts[0].length(row), texts[2].length(row));
    let most = (length + 1).saturating_mul(replacement + 1).saturating_add(length);
    let (Some(text), Some(pattern), Some(with)) = (texts[0].get(row), texts[1].get(row), texts[2].get(row)) else {
        return Ok(0);
    };
    // `${1}` (PostgreSQL's `\1`) stands for a group, `${0}` for all that matches: together they are no longer than the text, each.
    let groups = with.bytes().filter(|b| matches!(b, b'$' | b'\\')).count() as u64;
    let most = most.saturating_add(groups.saturating_mul(length));
    if most <= SMALL {
        return Ok(most);
    }
    let flags = texts.get(3).and_then(|flags| flags.get(row)).unwrap_or("");
    if !flags.contains('g') {
        return Ok(length + replacement + groups * length);
    }
    let mut builder = RegexBuilder::new(pattern);
    builder.case_insensitive(flags.contains('i')).multi_line(flags.contains('m'));
    builder.dot_matches_new_line(flags.contains('s')).ignore_whitespace(flags.contains('x'));
    // What is no pattern DataFusion refuses.
    let Ok(regex) = builder.build() else { return Ok(length) };
    let mut matches = 0u64;
    for _ in regex.find_iter(text) {
        matches += 1;
        if matches.is_multiple_of(MATCHES as u64) {
            memory::check().map_err(tunnel)?;
        }
    }
    Ok(length + matches.saturating_mul(replacement) + groups.saturating_mul(length))
}
