//! What the database must contain. Writes are noted while their row or definition is locked, so per key they are in the
//! order in which the database has them; which of them count follows from when their transaction's commit was called
//! and when it returned.
//!
//! Times are numbers of device events (`Recorder::events`): a crash after `n` events has seen exactly what is noted at
//! `n` or before.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use terrace_device::fault::Recorder;
use terrace_engine::Datum;

pub(crate) type Row = Vec<Datum>;

/// A table as a reader sees it.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct TableState {
    pub(crate) oid: u32,
    pub(crate) indexes: BTreeSet<String>,
    pub(crate) rows: BTreeMap<i32, Row>,
}

pub(crate) type State = BTreeMap<String, TableState>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// Table (by object id: a new table of an old name is another) and primary key.
    Row(u32, i32),
    Table(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Absent,
    Row(Row),
    Table { oid: u32, indexes: BTreeSet<String> },
}

#[derive(Default)]
struct Transaction {
    /// By number, in the order made over all transactions.
    writes: BTreeMap<u64, (Key, Value)>,
    commit_called: Option<u64>,
    acknowledged: Option<u64>,
    /// Its commit has returned, whether or not it is durable; when, and when it was called, in the order of notes.
    returned: Option<u64>,
    called: u64,
}

#[derive(Default)]
struct Inner {
    base: BTreeMap<Key, Value>,
    transactions: Vec<Transaction>,
    next_write: u64,
    /// Numbers notes about commits.
    notes: u64,
}

impl Inner {
    fn next_note(&mut self) -> u64 {
        self.notes += 1;
        self.notes
    }
}

/// Shared by the clients.
#[derive(Clone)]
pub(crate) struct Model {
    inner: Arc<Mutex<Inner>>,
    recorder: Arc<Recorder>,
}

impl Model {
    pub(crate) fn new(recorder: Arc<Recorder>, base: &State) -> Model {
        let mut inner = Inner::default();
        for (name, table) in base {
            let value = Value::Table { oid: table.oid, indexes: table.indexes.clone() };
            inner.base.insert(Key::Table(name.clone()), value);
            for (key, row) in &table.rows {
                inner.base.insert(Key::Row(table.oid, *key), Value::Row(row.clone()));
            }
        }
        Model { inner: Arc::new(Mutex::new(inner)), recorder }
    }

    pub(crate) fn begin(&self) -> usize {
        let mut inner = self.inner.lock();
        inner.transactions.push(Transaction::default());
        inner.transactions.len() - 1
    }

    /// Notes a write; call while the database still holds its lock.
    pub(crate) fn write(&self, transaction: usize, key: Key, value: Value) {
        let mut inner = self.inner.lock();
        let number = inner.next_write;
        inner.next_write += 1;
        inner.transactions[transaction].writes.insert(number, (key, value));
    }

    /// A savepoint: the number of the next write.
    pub(crate) fn position(&self) -> u64 {
        self.inner.lock().next_write
    }

    pub(crate) fn rollback_to(&self, transaction: usize, position: u64) {
        self.inner.lock().transactions[transaction].writes.retain(|number, _| *number < position);
    }

    pub(crate) fn commit_called(&self, transaction: usize) {
        let mut inner = self.inner.lock();
        let note = inner.next_note();
        let transaction = &mut inner.transactions[transaction];
        (transaction.commit_called, transaction.called) = (Some(self.recorder.events()), note);
    }

    /// It is durable, and with it every commit that had returned before it was called.
    pub(crate) fn acknowledged(&self, transaction: usize) {
        let (mut inner, now) = (self.inner.lock(), self.recorder.events());
        let note = inner.next_note();
        let own = &mut inner.transactions[transaction];
        (own.acknowledged, own.returned) = (Some(now), Some(note));
        if own.writes.is_empty() {
            return; // Nothing was written: nothing waited for the log.
        }
        let called = own.called;
        for other in &mut inner.transactions {
            if other.acknowledged.is_none() && other.returned.is_some_and(|returned| returned < called) {
                other.acknowledged = Some(now);
            }
        }
    }

    /// Its commit has returned; a crash may undo it.
    pub(crate) fn returned(&self, transaction: usize) {
        let mut inner = self.inner.lock();
        let note = inner.next_note();
        inner.transactions[transaction].returned = Some(note);
    }

    /// Commits that have returned and need not be durable.
    pub(crate) fn not_durable(&self) -> usize {
        let inner = self.inner.lock();
        inner.transactions.iter().filter(|t| t.returned.is_some() && t.acknowledged.is_none()).count()
    }

    /// Numbers of acknowledged transactions and of writes, for reports and for comparing runs.
    pub(crate) fn counts(&self) -> (usize, u64) {
        let inner = self.inner.lock();
        (inner.transactions.iter().filter(|t| t.acknowledged.is_some()).count(), inner.next_write)
    }

    /// The states that a crash after `events` events may leave: everything acknowledged, with every subset of the
    /// transactions in doubt.
    pub(crate) fn states_at(&self, events: u64) -> Vec<State> {
        self.states(events, false)
    }

    /// `live`: what has returned counts, durable or not.
    fn states(&self, events: u64, live: bool) -> Vec<State> {
        let inner = self.inner.lock();
        let before = |time: Option<u64>| time.is_some_and(|t| t <= events);
        let stands = |t: &Transaction| before(t.acknowledged) || live && t.returned.is_some();
        let mut doubtful = Vec::new();
        for (i, t) in inner.transactions.iter().enumerate() {
            if before(t.commit_called) && !stands(t) && !t.writes.is_empty() {
                doubtful.push(i);
            }
        }
        assert!(doubtful.len() <= 8, "{} transactions in doubt", doubtful.len());
        let state_with = |chosen: u32| {
            let counts = |i: usize, t: &Transaction| match doubtful.iter().position(|d| *d == i) {
                Some(bit) => chosen & 1 << bit != 0,
                None => stands(t),
            };
            let mut writes: Vec<(u64, &(Key, Value))> = Vec::new();
            for (_, t) in inner.transactions.iter().enumerate().filter(|(i, t)| counts(*i, t)) {
                writes.extend(t.writes.iter().map(|(n, w)| (*n, w)));
            }
            writes.sort_by_key(|(n, _)| *n);
            let mut all = inner.base.clone();
            all.extend(writes.into_iter().map(|(_, (key, value))| (key.clone(), value.clone())));
            to_state(all)
        };
        (0..1u32 << doubtful.len()).map(state_with).collect()
    }

    /// The state after a run in which nothing is in doubt.
    pub(crate) fn state_now(&self) -> State {
        let mut states = self.states(u64::MAX, true);
        assert_eq!(states.len(), 1, "something is in doubt");
        states.remove(0)
    }
}

fn to_state(all: BTreeMap<Key, Value>) -> State {
    let mut state = State::new();
    let mut names = BTreeMap::new();
    for (key, value) in &all {
        if let (Key::Table(name), Value::Table { oid, indexes }) = (key, value) {
            names.insert(*oid, name.clone());
            state.insert(name.clone(), TableState { oid: *oid, indexes: indexes.clone(), rows: BTreeMap::new() });
        }
    }
    for (key, value) in all {
        // Rows of dropped tables are nobody's.
        if let (Key::Row(oid, id), Value::Row(row)) = (key, value)
            && let Some(name) = names.get(&oid)
        {
            state.get_mut(name).expect("just inserted").rows.insert(id, row);
        }
    }
    state
}

/// The first difference between what must be and what is.
pub(crate) fn difference(want: &State, is: &State) -> Option<String> {
    for name in want.keys().chain(is.keys()) {
        let (a, b) = match (want.get(name), is.get(name)) {
            (Some(a), Some(b)) => (a, b),
            (Some(_), None) => return Some(format!("table {name} is missing")),
            _ => return Some(format!("table {name} should not be there")),
        };
        if (a.oid, &a.indexes) != (b.oid, &b.indexes) {
            return Some(format!("table {name}: want oid {} {:?}, is {} {:?}", a.oid, a.indexes, b.oid, b.indexes));
        }
        for key in a.rows.keys().chain(b.rows.keys()) {
            let (x, y) = (a.rows.get(key), b.rows.get(key));
            if x != y {
                return Some(format!("table {name} ({}), row {key}: want {}, is {}", a.oid, brief(x), brief(y)));
            }
        }
    }
    None
}

fn brief(row: Option<&Row>) -> String {
    let cut = |d: &Datum| {
        let s = d.to_string();
        format!("{}({})", s.chars().take(24).collect::<String>(), s.len())
    };
    row.map_or("nothing".into(), |r| r.iter().map(cut).collect::<Vec<_>>().join(", "))
}
