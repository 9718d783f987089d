//! Statements by role and by their text with literals replaced, and what they cost: PostgreSQL's pg_stat_statements.
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::ops::AddAssign;
use std::sync::Arc;
use terrace_storage::Reads;

/// Texts kept; where there are more, the tenth that was called least is forgotten.
pub(super) const MAX_STATEMENTS: usize = 5000;
/// Bytes of a normalised text.
const MAX_TEXT: usize = 4096;

/// Of all runs of one text. Times are nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementTotals {
    pub calls: u64,
    pub failed: u64,
    pub total: u64,
    pub min: u64,
    pub max: u64,
    /// Returned or changed.
    pub rows: u64,
    pub reads: Reads,
}

impl AddAssign for StatementTotals {
    fn add_assign(&mut self, other: StatementTotals) {
        self.min = match (self.calls, other.calls) {
            (0, _) => other.min,
            (_, 0) => self.min,
            _ => self.min.min(other.min),
        };
        self.max = self.max.max(other.max);
        self.calls += other.calls;
        self.failed += other.failed;
        self.total += other.total;
        self.rows += other.rows;
        self.reads += other.reads;
    }
}

pub(crate) struct Entry {
    totals: Mutex<StatementTotals>,
}

impl Entry {
    pub(crate) fn record(&self, nanos: u64, rows: u64, reads: Reads, failed: bool) {
        let failed = u64::from(failed);
        *self.totals.lock() += StatementTotals { calls: 1, failed, total: nanos, min: nanos, max: nanos, rows, reads };
    }
}

/// Role and text.
type Key = (Arc<str>, Arc<str>);

#[derive(Default)]
pub(crate) struct Statements {
    entries: Mutex<FxHashMap<Key, Arc<Entry>>>,
}

impl Statements {
    pub(crate) fn entry(&self, role: &str, sql: &str) -> Arc<Entry> {
        let key = (role.into(), normalise(sql).into());
        let mut all = self.entries.lock();
        if let Some(entry) = all.get(&key) {
            return entry.clone();
        }
        if all.len() >= MAX_STATEMENTS {
            let mut calls: Vec<u64> = all.values().map(|e| e.totals.lock().calls).collect();
            calls.sort_unstable();
            let limit = calls[calls.len() / 10];
            let mut left = calls.len() / 10 + 1;
            all.retain(|_, e| {
                let goes = left > 0 && e.totals.lock().calls <= limit;
                left -= usize::from(goes);
                !goes
            });
        }
        let entry = Arc::new(Entry { totals: Mutex::default() });
        all.insert(key, entry.clone());
        entry
    }

    /// Role, text and cost, in the order of texts and roles, without those that have never ended.
    pub(super) fn all(&self) -> Vec<(Arc<str>, Arc<str>, StatementTotals)> {
        let entries = self.entries.lock();
        let mut all: Vec<_> =
            entries.iter().map(|((role, text), e)| (role.clone(), text.clone(), *e.totals.lock())).collect();
        all.retain(|(_, _, totals)| totals.calls > 0);
        all.sort_by(|a, b| (&a.1, &a.0).cmp(&(&b.1, &b.0)));
        all
    }

    /// Sets all to nothing: prepared statements keep their entries.
    pub(super) fn clear(&self) {
        for entry in self.entries.lock().values() {
            *entry.totals.lock() = StatementTotals::default();
        }
    }
}

/// The text with `$n` in place of literals (numbered on from its own parameters), without comments, in single spaces.
pub fn normalise(sql: &str) -> String {
    let scan = Scan { text: sql, at: 0 };
    let mut next = scan.clone().last_parameter() + 1;
    let mut out = String::with_capacity(sql.len().min(MAX_TEXT));
    let mut space = false;
    for token in scan {
        if out.len() >= MAX_TEXT {
            out.truncate(out.floor_char_boundary(MAX_TEXT));
            out.push_str("...");
            break;
        }
        if let Token::Space = token {
            space = !out.is_empty();
            continue;
        }
        if std::mem::take(&mut space) {
            out.push(' ');
        }
        match token {
            Token::Literal => {
                out.push_str(&format!("${next}"));
                next += 1;
            }
            Token::Other(text) => out.push_str(text),
            Token::Space => unreachable!("handled above"),
        }
    }
    out
}

enum Token<'a> {
    /// White space and comments.
    Space,
    Literal,
    Other(&'a str),
}

#[derive(Clone)]
struct Scan<'a> {
    text: &'a str,
    at: usize,
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

impl<'a> Scan<'a> {
    fn last_parameter(self) -> u64 {
        let number = |token| match token {
            Token::Other(text) => text.strip_prefix('$').and_then(|n: &str| n.parse().ok()),
            _ => None,
        };
        self.filter_map(number).max().unwrap_or(0)
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn skip(&mut self, while_: impl Fn(u8) -> bool) {
        self.at += self.rest().iter().take_while(|b| while_(**b)).count();
    }

    /// To behind the closing quote; a doubled one does not close, nor does an escaped one in an escape string.
    fn skip_quoted(&mut self, quote: u8, escapes: bool) {
        self.at += 1;
        while let Some(byte) = self.rest().first().copied() {
            self.at += 1;
            if escapes && byte == b'\\' {
                self.at = (self.at + 1).min(self.text.len());
            } else if byte == quote {
                if self.rest().first() != Some(&quote) {
                    return;
                }
                self.at += 1;
            }
        }
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0;
        loop {
            match self.rest() {
                [b'/', b'*', ..] => {
                    depth += 1;
                    self.at += 2;
                }
                [b'*', b'/', ..] => {
                    depth -= 1;
                    self.at += 2;
                }
                [_, ..] => self.at += 1,
                [] => return,
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// `$tag$ ... $tag$`, if that is what begins here.
    fn dollar_quoted(&self) -> Option<usize> {
        let rest = &self.text[self.at..];
        let tag = &rest[..rest[1..].find('$')? + 2];
        let plain = tag[1..tag.len() - 1]
            .bytes()
            .enumerate()
            .all(|(i, b)| is_name(b) && b != b'$' && !(i == 0 && b.is_ascii_digit()));
        plain.then_some(())?;
        Some(self.at + tag.len() + rest[tag.len()..].find(tag).map_or(rest.len() - tag.len(), |end| end + tag.len()))
    }

    fn number(&mut self) {
        self.skip(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'_');
        // 1e-5
        let signed = self.text[..self.at].ends_with(['e', 'E']) && matches!(self.rest().first(), Some(b'+' | b'-'));
        if signed {
            self.at += 1;
            self.skip(|b| b.is_ascii_digit());
        }
    }
}

impl<'a> Iterator for Scan<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let begin = self.at;
        match self.rest() {
            [] => return None,
            [b, ..] if b.is_ascii_whitespace() => {
                self.skip(|b| b.is_ascii_whitespace());
                return Some(Token::Space);
            }
            [b'-', b'-', ..] => {
                self.skip(|b| b != b'\n');
                return Some(Token::Space);
            }
            [b'/', b'*', ..] => {
                self.skip_block_comment();
                return Some(Token::Space);
            }
            [b'\'', ..] => {
                self.skip_quoted(b'\'', false);
                return Some(Token::Literal);
            }
            [b'e' | b'E', b'\'', ..] => {
                self.at += 1;
                self.skip_quoted(b'\'', true);
                return Some(Token::Literal);
            }
            [b'"', ..] => self.skip_quoted(b'"', false),
            [b'$', b, ..] if b.is_ascii_digit() => {
                self.at += 1;
                self.skip(|b| b.is_ascii_digit());
            }
            [b'$', ..] => match self.dollar_quoted() {
                Some(end) => {
                    self.at = end;
                    return Some(Token::Literal);
                }
                None => self.at += 1,
            },
            [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..] => {
                self.number();
                return Some(Token::Literal);
            }
            [b, ..] if is_name(*b) => self.skip(is_name),
            _ => self.at += 1,
        }
        Some(Token::Other(&self.text[begin..self.at]))
    }
}
