//! Statements by role and by their text with literals replaced, and what they cost: PostgreSQL's pg_stat_statements.
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::ops::AddAssign;
use std::sync::Arc;
use terrace_grammar::Options;
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
        debug_assert!(self.min <= self.max && self.max <= self.total, "{self:?}");
        debug_assert!(self.failed <= self.calls, "{self:?}");
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
        assert!(all.len() <= MAX_STATEMENTS, "{} texts are kept", all.len());
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
/// What is too long, or cannot be read, ends with `...`.
pub fn normalise(sql: &str) -> String {
    let mut text = String::new();
    let shape = terrace_grammar::shape(sql, Options::default(), MAX_TEXT, &mut text);
    if !shape.whole {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        text.push_str("...");
    }
    text
}
