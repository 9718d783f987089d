//! YCSB's core workloads A to F (B. Cooper et al., *Benchmarking Cloud Serving Systems with YCSB*, SoCC 2010):
//! single-row operations on one table, keys by a Zipfian or the latest distribution.
//!
//! Simplified: keys are numbers instead of `user` and a number. An operation is a transaction. An update reads the row
//! it changes, as one in SQL does.
//!
//! 1. Each record counts its changes: their sum is the number of updates that were acknowledged.
//! 2. A field's content follows from its key, its place and the stamp it begins with: whoever reads it can tell whether
//!    it is whole.
//! 3. Keys are given out in order; a key is read only when all up to it are committed.
mod keys;

use crate::workload::{Client, Outcome, Workload, create, fill, is_lost, named, number, table};
use keys::Keys;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use terrace_engine::{DataType, Database, Datum, Result, ScanDirection};

/// What an operation does, in hundredths of the mix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mix {
    pub read: u32,
    pub update: u32,
    pub insert: u32,
    pub scan: u32,
    /// Reads a record and writes what it made of it, in one transaction.
    pub modify: u32,
    pub latest: bool,
}

impl Mix {
    /// The core workloads by letter, `'a'` to `'f'`.
    pub fn core(letter: char) -> Option<Mix> {
        let none = Mix { read: 0, update: 0, insert: 0, scan: 0, modify: 0, latest: false };
        Some(match letter {
            'a' => Mix { read: 50, update: 50, ..none },
            'b' => Mix { read: 95, update: 5, ..none },
            'c' => Mix { read: 100, ..none },
            'd' => Mix { read: 95, insert: 5, latest: true, ..none },
            'e' => Mix { scan: 95, insert: 5, ..none },
            'f' => Mix { read: 50, modify: 50, ..none },
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub records: u64,
    /// 10 in the original.
    pub fields: usize,
    /// Bytes of a field: 100 in the original, at least [`STAMP`].
    pub field_bytes: usize,
    /// Exponent of the Zipf distribution: 0.99 in the original.
    pub skew: f64,
    /// Most rows of a scan: 100 in the original.
    pub scan: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes { records: 10_000, fields: 10, field_bytes: 100, skew: 0.99, scan: 100 }
    }
}

pub struct Ycsb {
    mix: Mix,
    sizes: Sizes,
    keys: Keys,
    updates: AtomicU64,
    /// Contents that were not whole when they were read.
    broken: AtomicU64,
}

/// Columns before the fields.
const CHANGES: usize = 1;
const FIELDS: usize = 2;
/// Bytes of the stamp that a field begins with: hexadecimal digits.
pub const STAMP: usize = 16;

enum Operation {
    Read(u64),
    Update(u64),
    Insert,
    Scan(u64, usize),
    Modify(u64),
}

impl Ycsb {
    /// # Panics
    /// Where the mix is not of a hundred hundredths, or a field has no room for its stamp.
    pub fn new(mix: Mix, sizes: Sizes) -> Ycsb {
        assert_eq!(mix.read + mix.update + mix.insert + mix.scan + mix.modify, 100, "a mix is of hundredths");
        assert!(sizes.field_bytes >= STAMP, "a field begins with a stamp of {STAMP} bytes");
        assert!(sizes.records > 0 && sizes.fields > 0 && sizes.scan > 0, "there is something to read");
        let keys = Keys::new(sizes.records, sizes.skew);
        Ycsb { mix, sizes, keys, updates: AtomicU64::new(0), broken: AtomicU64::new(0) }
    }

    /// Invariant 2.
    fn content(&self, key: u64, field: usize, stamp: u64) -> Datum {
        let mut text = format!("{stamp:016x}");
        let mut state = keys::scatter(key ^ stamp.rotate_left(32) ^ (field as u64) << 56);
        while text.len() < self.sizes.field_bytes {
            text.push(char::from(b'a' + (state % 26) as u8));
            state = keys::scatter(state);
        }
        Datum::text(text)
    }

    fn record(&self, key: u64) -> Vec<Datum> {
        let fields = (0..self.sizes.fields).map(|field| self.content(key, field, 0));
        [id(key), Datum::Int8(0)].into_iter().chain(fields).collect()
    }

    /// Whether the record is what was once written (invariant 2).
    fn is_whole(&self, row: &[Datum]) -> bool {
        let key = u64::try_from(number(row, 0)).expect("keys count up from zero");
        row[FIELDS..].iter().enumerate().all(|(field, value)| {
            let Datum::Text(text) = value else { return false };
            let stamp = text.get(..STAMP).and_then(|digits| u64::from_str_radix(digits, 16).ok());
            stamp.is_some_and(|stamp| stamp <= number(row, CHANGES) as u64 && *value == self.content(key, field, stamp))
        })
    }

    fn look_at(&self, row: &[Datum]) {
        if !self.is_whole(row) {
            self.broken.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn choose(&self, random: &mut ChaCha8Rng) -> Operation {
        let Mix { read, update, insert, scan, latest, .. } = self.mix;
        let mut key = || if latest { self.keys.latest(random) } else { self.keys.zipfian(random) };
        let key = key();
        let dice = random.random_range(0..100);
        match dice {
            _ if dice < read => Operation::Read(key),
            _ if dice < read + update => Operation::Update(key),
            _ if dice < read + update + insert => Operation::Insert,
            _ if dice < read + update + insert + scan => Operation::Scan(key, random.random_range(1..=self.sizes.scan)),
            _ => Operation::Modify(key),
        }
    }

    /// `field` is the one that is written.
    async fn execute(&self, database: &Database, client: &mut Client, what: &Operation, field: usize) -> Result<()> {
        let table = named(database, "usertable");
        match *what {
            Operation::Read(key) => self.look_at(&client.get(&table, &[id(key)]).await?),
            Operation::Scan(key, rows) => {
                let from = Bound::Included(vec![id(key)]);
                let found = client.between(&table, 0, from, Bound::Unbounded, ScanDirection::Forward, rows).await?;
                found.iter().for_each(|row| self.look_at(row));
            }
            Operation::Update(key) | Operation::Modify(key) => {
                if matches!(what, Operation::Modify(_)) {
                    self.look_at(&client.get(&table, &[id(key)]).await?);
                }
                let change = |row: &mut Vec<Datum>| {
                    let stamp = number(row, CHANGES) + 1;
                    row[CHANGES] = Datum::Int8(stamp);
                    row[FIELDS + field] = self.content(key, field, stamp as u64);
                };
                client.update(&table, &[id(key)], change).await?;
            }
            Operation::Insert => unreachable!("inserts have a path of their own"),
        }
        Ok(())
    }

    async fn insert(&self, database: &Database) -> Result<Outcome> {
        let key = self.keys.begin();
        let mut client = Client::begin(database);
        client.insert(&named(database, "usertable"), &self.record(key)).await?;
        let statements = client.statements;
        client.txn.commit().await?;
        self.keys.done(key);
        Ok(Outcome { counted: true, statements, ..Outcome::default() })
    }
}

fn id(key: u64) -> Datum {
    Datum::Int8(i64::try_from(key).expect("keys count up from zero"))
}

impl Workload for Ycsb {
    async fn load(&self, database: &Database) -> Result<()> {
        let names: Vec<String> = (0..self.sizes.fields).map(|field| format!("field{field}")).collect();
        let mut columns = vec![("key", DataType::Int8), ("changes", DataType::Int8)];
        columns.extend(names.iter().map(|name| (name.as_str(), DataType::Text)));
        create(database, vec![table("usertable", &columns, &[(&["key"], true)])]).await?;
        fill(database, "usertable", (0..self.sizes.records).map(|key| self.record(key))).await
    }

    async fn transaction(&self, database: &Database, _terminal: usize, random: &mut ChaCha8Rng) -> Result<Outcome> {
        let what = self.choose(random);
        if matches!(what, Operation::Insert) {
            return self.insert(database).await;
        }
        let field = random.random_range(0..self.sizes.fields);
        let mut outcome = Outcome { counted: true, ..Outcome::default() };
        loop {
            let mut client = Client::begin(database);
            let result = self.execute(database, &mut client, &what, field).await;
            outcome.statements += client.statements;
            match result {
                Ok(()) => break client.txn.commit().await?,
                Err(e) if is_lost(&e) => client.txn.rollback().await?,
                Err(e) => return Err(e),
            }
            outcome.retries += 1;
        }
        if matches!(what, Operation::Update(_) | Operation::Modify(_)) {
            self.updates.fetch_add(1, Ordering::Relaxed);
        }
        Ok(outcome)
    }

    /// Invariants 1 and 2, and that every key is there once.
    async fn check(&self, database: &Database) -> Result<Vec<String>> {
        let mut client = Client::begin(database);
        let rows = client.all(&named(database, "usertable")).await?;
        client.txn.commit().await?;
        let mut problems = Vec::new();
        let mut require = |holds: bool, what: String| {
            if !holds {
                problems.push(format!("YCSB: {what}"));
            }
        };
        let mut keys: Vec<i64> = rows.iter().map(|row| number(row, 0)).collect();
        keys.sort_unstable();
        let inserted = self.keys.inserted();
        let dense = keys.iter().enumerate().all(|(at, key)| *key == at as i64);
        require(dense && keys.len() as u64 == inserted, format!("{} records of {inserted}", keys.len()));
        let changes: i64 = rows.iter().map(|row| number(row, CHANGES)).sum();
        let updates = self.updates.load(Ordering::Relaxed);
        require(changes as u64 == updates, format!("records changed {changes} times, {updates} updates committed"));
        let broken = rows.iter().filter(|row| !self.is_whole(row)).count();
        require(broken == 0, format!("{broken} records are not what was written"));
        let seen = self.broken.load(Ordering::Relaxed);
        require(seen == 0, format!("{seen} reads returned what was not written"));
        Ok(problems)
    }
}

#[cfg(test)]
mod tests;
