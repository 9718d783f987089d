//! Random clients. Every write that the database accepts is noted in the model before its lock can go.

use crate::model::{Key, Model, Row, Value};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use terrace_device::fault::Recorder;
use terrace_engine::catalog::extras::{Extras, KeyOption};
use terrace_engine::types::{Interval, Numeric};
use terrace_engine::{
    ColumnDef, DataType, Database, Datum, EngineError, Index, IndexRange, IndexSpec, Isolation, LockWait, RowBuf,
    RowLock, RowLockOutcome, Scan, ScanDirection, Table, TableSpec, Txn, UpdateOutcome, Version,
};
use terrace_env::Env;
use terrace_storage::Rid;

/// Primary keys are below this.
const KEYS: i32 = 40;
const TABLES: [&str; 3] = ["a", "b", "c"];
/// Columns that every table has; what comes behind them depends on the mix, and on ALTER.
const FIXED: usize = 5;
/// The first of those.
const WIDE: &str = "wide";
/// The most columns that a table gets.
const MOST_COLUMNS: usize = 24;
/// Commits that have returned and need not be durable yet, at most.
const MOST_LAZY: usize = 3;

#[derive(Clone, Copy)]
pub(crate) struct Mix {
    pub(crate) transactions: usize,
    /// Of a hundred statements, how many define something.
    pub(crate) ddl: u32,
    /// Of a hundred texts, how many exceed a page.
    pub(crate) long: u32,
    /// Out of space and stopped stores are expected.
    pub(crate) faults: bool,
    /// A column of every type, and indexes over several columns.
    pub(crate) types: bool,
    /// Bytes of the key of an index whose leaves then hold only a few: trees split and shrink. 0: there is none.
    pub(crate) wide: usize,
    /// Definitions change: columns come and go, tables are emptied.
    pub(crate) alter: bool,
    /// Of a hundred commits, how many return before they are durable.
    pub(crate) lazy: u32,
    /// Clients ask for checkpoints and purges now and then.
    pub(crate) housekeeping: bool,
    /// What lies on a device may be damaged.
    pub(crate) damage: bool,
}

impl Default for Mix {
    fn default() -> Self {
        Mix {
            transactions: 30,
            ddl: 5,
            long: 4,
            faults: false,
            types: false,
            wide: 0,
            alter: false,
            lazy: 0,
            housekeeping: true,
            damage: false,
        }
    }
}

/// What ends a transaction or a client.
enum Stop {
    /// The transaction failed as it may; go on with the next.
    Transaction,
    /// The power or the store is gone.
    Client,
}

type Step<T = ()> = Result<T, Stop>;

pub(crate) struct Client {
    db: Database,
    env: Env,
    model: Model,
    recorder: Arc<Recorder>,
    random: ChaCha8Rng,
    mix: Mix,
}

/// A transaction and the model's note of it.
struct Open {
    txn: Txn,
    note: usize,
}

impl Client {
    pub(crate) fn new(
        db: &Database,
        env: &Env,
        model: &Model,
        recorder: &Arc<Recorder>,
        seed: u64,
        mix: Mix,
    ) -> Client {
        let random = ChaCha8Rng::seed_from_u64(seed);
        Client { db: db.clone(), env: env.clone(), model: model.clone(), recorder: recorder.clone(), random, mix }
    }

    /// Makes two of the tables, one with an index on `n`, and fills them a little.
    pub(crate) async fn set_up(mut self) -> terrace_engine::Result<()> {
        let mut open = Open { txn: self.db.begin(Isolation::ReadCommitted), note: self.model.begin() };
        for name in ["a", "b"] {
            let mut table = open.txn.create_table(spec_of(name, &self.mix)).await?;
            if name == "a" {
                table = open.txn.create_index(&table, n_index(&table, true)).await?;
            }
            self.note_table(&open, name, Some(&table));
            for id in 0..12 {
                let mut row = self.row(&table, id * 3);
                row[2] = Datum::Int4(-id);
                open.txn.insert(&table, &row).await?;
                self.note(&open, &table, id * 3, Some(row));
            }
        }
        self.model.commit_called(open.note);
        open.txn.commit().await?;
        self.model.acknowledged(open.note);
        Ok(())
    }

    pub(crate) async fn run(mut self) {
        for _ in 0..self.mix.transactions {
            if self.random.random_ratio(1, 8) {
                let rest = Duration::from_micros(self.random.random_range(0..2000));
                self.env.sleep(rest).await;
            }
            let step = match self.random.random_range(0..40) {
                0 if self.mix.housekeeping => self.housekeeping().await,
                _ => self.transaction().await,
            };
            if let Err(Stop::Client) = step {
                return;
            }
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.random_ratio(percent, 100)
    }

    /// Errors that may happen are sorted; any other is a failure of the test.
    fn sort(&self, e: EngineError) -> Stop {
        if self.recorder.is_off() {
            return Stop::Client;
        }
        match e.state.0 {
            "40001" | "40P01" | "55P03" | "72000" | "23505" | "42P07" | "42P01" | "42703" | "42704" | "42701" => {
                Stop::Transaction
            }
            "53100" if self.mix.faults => Stop::Transaction,
            "58030" | "XX000" | "57P01" if self.mix.faults => Stop::Client,
            // A checkpoint that finds out says so first, before the database's failure does.
            "XX001" if self.mix.damage => Stop::Client,
            "XX001" if self.mix.faults && e.message.contains("cannot be made again") => Stop::Client,
            state => panic!("unexpected error {state}: {e}; {:?}", e.detail),
        }
    }

    async fn housekeeping(&mut self) -> Step {
        let result = match self.random.random_bool(0.5) {
            true => self.db.store().checkpoint().await.map_err(EngineError::from),
            false => self.db.purge().await,
        };
        result.map_err(|e| self.sort(e))
    }

    async fn transaction(&mut self) -> Step {
        let isolation = if self.chance(70) { Isolation::ReadCommitted } else { Isolation::RepeatableRead };
        let mut open = Open { txn: self.db.begin(isolation), note: self.model.begin() };
        let statements = self.random.random_range(1..7);
        let mut marks = Vec::new();
        for _ in 0..statements {
            if self.chance(15) {
                marks.push((open.txn.savepoint(), self.model.position()));
            }
            let mark = (open.txn.savepoint(), self.model.position());
            open.txn.begin_statement();
            if let Err(e) = self.statement(&mut open).await {
                let fatal = matches!(e.state.0, "40001" | "40P01" | "72000");
                match self.sort(e) {
                    Stop::Transaction if fatal => return self.roll_back(open).await,
                    Stop::Transaction => self.roll_back_to(&mut open, mark).await?,
                    stop => return Err(stop),
                }
            }
            if self.chance(8)
                && let Some(mark) = marks.pop()
            {
                self.roll_back_to(&mut open, mark).await?;
            }
        }
        match self.random.random_range(0..100) {
            0..80 => self.commit(open).await,
            80..92 => self.roll_back(open).await,
            _ => {
                // Dropped: rolled back in the background.
                self.model.rollback_to(open.note, 0);
                Ok(())
            }
        }
    }

    async fn commit(&mut self, open: Open) -> Step {
        let lazy = self.mix.lazy;
        let lazy = lazy > 0 && self.chance(lazy) && self.model.not_durable() < MOST_LAZY;
        self.model.commit_called(open.note);
        let committed = if lazy { open.txn.commit_async().await } else { open.txn.commit().await };
        match committed {
            Ok(()) if lazy => self.model.returned(open.note),
            Ok(()) => self.model.acknowledged(open.note),
            Err(e) => return Err(self.sort(e)),
        }
        Ok(())
    }

    async fn roll_back(&mut self, open: Open) -> Step {
        self.model.rollback_to(open.note, 0);
        open.txn.rollback().await.map_err(|e| self.sort(e))
    }

    async fn roll_back_to(&mut self, open: &mut Open, mark: (terrace_engine::txn::Savepoint, u64)) -> Step {
        // Noted first: the rows' locks go while it runs.
        self.model.rollback_to(open.note, mark.1);
        open.txn.rollback_to(mark.0).await.map_err(|e| self.sort(e))
    }

    async fn statement(&mut self, open: &mut Open) -> terrace_engine::Result<()> {
        let ddl = self.mix.ddl;
        if self.chance(ddl) {
            return self.define(open).await;
        }
        let name = *TABLES.choose(&mut self.random).expect("there are tables");
        let Some(table) = open.txn.catalog().table(name).cloned() else { return Ok(()) };
        open.txn.lock_table(&table, true).await?;
        // It may have been dropped, or have got an index, while we waited.
        let Some(table) = open.txn.catalog().table_by_oid(table.oid).cloned() else { return Ok(()) };
        open.txn.begin_statement();
        let id = self.random.random_range(0..KEYS);
        match self.random.random_range(0..100) {
            0..6 => self.read_all(open, &table).await,
            6..12 => self.read_range(open, &table).await,
            n => match find(&mut open.txn, &table, id).await? {
                None => self.insert(open, &table, id).await,
                Some((rid, row, version)) => {
                    let locked = match self.chance(15) {
                        true => self.lock(open, &table, id, rid, row, version).await?,
                        false => Some((row, version)),
                    };
                    match locked {
                        None => Ok(()),
                        Some((_, version)) if n < 35 => self.delete(open, &table, id, rid, version).await,
                        Some((row, version)) => self.update(open, &table, id, rid, row, version).await,
                    }
                }
            },
        }
    }

    fn row(&mut self, table: &Table, id: i32) -> Row {
        let mut row = self.fixed(id);
        for column in &table.columns[FIXED..] {
            let value = match column.dropped || !column.not_null && self.chance(15) {
                true => Datum::Null,
                false => self.value(column),
            };
            row.push(value);
        }
        row
    }

    /// A value for a column behind the fixed ones.
    fn value(&mut self, column: &ColumnDef) -> Datum {
        let random = &mut self.random;
        let mut letters = |least: usize, most: usize| -> String {
            let length = random.random_range(least..=most);
            (0..length).map(|_| random.random_range(b'a'..=b'z') as char).collect()
        };
        match column.data_type {
            DataType::Text => {
                let mut text = letters(3, 3);
                text.extend(std::iter::repeat_n('x', self.mix.wide.saturating_sub(3)));
                Datum::text(text)
            }
            DataType::Varchar(most) | DataType::Char(most) => Datum::text(letters(1, most as usize)),
            DataType::Bytea => Datum::Bytea(letters(0, 40).into_bytes().into()),
            DataType::Bool => Datum::Bool(random.random()),
            DataType::Int2 => Datum::Int2(random.random()),
            DataType::Int4 => Datum::Int4(random.random()),
            DataType::Int8 => Datum::Int8(random.random()),
            DataType::Float4 => Datum::Float4(random.random_range(-1e6..1e6)),
            DataType::Float8 => Datum::Float8(random.random_range(-1e12..1e12)),
            DataType::Numeric(_) => {
                Datum::Numeric(Numeric { unscaled: random.random_range(-1_000_000..1_000_000), scale: 2 })
            }
            DataType::Date => Datum::Date(random.random_range(-100_000..100_000)),
            DataType::Timestamp => Datum::Timestamp(random.random_range(-(1 << 50)..1 << 50)),
            DataType::Timestamptz => Datum::Timestamptz(random.random_range(-(1 << 50)..1 << 50)),
            DataType::Time => Datum::Time(random.random_range(0..86_400_000_000)),
            DataType::Interval => {
                let (months, days) = (random.random_range(-99..99), random.random_range(-99..99));
                Datum::Interval(Interval::new(months, days, random.random_range(-1000..1000)))
            }
            DataType::Uuid => Datum::Uuid(random.random()),
            DataType::Json | DataType::Jsonb | DataType::Array(_) | DataType::Enum(_) | DataType::Composite(_) => {
                panic!("no table here has such a column")
            }
        }
    }

    fn fixed(&mut self, id: i32) -> Row {
        let long = self.mix.long;
        let length = match self.random.random_range(0..100) {
            n if n < long => self.random.random_range(4000..20_000),
            n if n < 30 => self.random.random_range(200..1500),
            _ => self.random.random_range(0..60),
        };
        let letter = self.random.random_range(b'a'..=b'z') as char;
        let text: String = std::iter::repeat_n(letter, length).collect();
        let unique = if self.chance(50) { Datum::Null } else { Datum::Int4(self.random.random_range(0..10_000)) };
        let stamp = Datum::Int8(self.random.random());
        vec![Datum::Int4(id), Datum::Int4(self.random.random_range(0..10)), unique, stamp, Datum::text(text)]
    }

    fn note(&self, open: &Open, table: &Table, id: i32, row: Option<Row>) {
        self.model.write(open.note, Key::Row(table.oid.0, id), row.map_or(Value::Absent, Value::Row));
    }

    async fn insert(&mut self, open: &mut Open, table: &Table, id: i32) -> terrace_engine::Result<()> {
        let row = self.row(table, id);
        open.txn.insert(table, &row).await?;
        self.note(open, table, id, Some(row));
        Ok(())
    }

    /// SELECT ... FOR UPDATE or FOR SHARE; the row as locked, `None` where it is not (any more) to be had.
    async fn lock(
        &mut self,
        open: &mut Open,
        table: &Table,
        id: i32,
        rid: Rid,
        row: RowBuf,
        version: Version,
    ) -> terrace_engine::Result<Option<(RowBuf, Version)>> {
        let how = if self.chance(50) { RowLock::Exclusive } else { RowLock::Share };
        let wait = *[LockWait::Wait, LockWait::NoWait, LockWait::Skip].choose(&mut self.random).expect("three ways");
        let locked = match open.txn.lock_row(table, rid, version, how, wait).await? {
            RowLockOutcome::Locked => (row, version),
            RowLockOutcome::Changed { row, .. } if row.view(table).get(0).to_datum() != Datum::Int4(id) => {
                return Ok(None);
            }
            RowLockOutcome::Changed { row, version } => (row, version),
            RowLockOutcome::Gone | RowLockOutcome::Skipped => return Ok(None),
        };
        self.env.sleep(Duration::from_micros(self.random.random_range(0..300))).await;
        let now = open.txn.lock_row(table, rid, locked.1, how, LockWait::NoWait).await?;
        assert!(matches!(now, RowLockOutcome::Locked), "row {id} of {} changed while it was locked", table.name);
        Ok(Some(locked))
    }

    async fn delete(
        &mut self,
        open: &mut Open,
        table: &Table,
        id: i32,
        rid: Rid,
        mut version: Version,
    ) -> terrace_engine::Result<()> {
        loop {
            match open.txn.delete(table, rid, version).await? {
                UpdateOutcome::Done => {
                    self.note(open, table, id, None);
                    return Ok(());
                }
                UpdateOutcome::Changed { row, version: newer } => {
                    if row.view(table).get(0).to_datum() != Datum::Int4(id) {
                        return Ok(());
                    }
                    version = newer;
                }
                UpdateOutcome::Gone => return Ok(()),
            }
        }
    }

    async fn update(
        &mut self,
        open: &mut Open,
        table: &Table,
        id: i32,
        rid: Rid,
        old: RowBuf,
        mut version: Version,
    ) -> terrace_engine::Result<()> {
        let new_id = if self.chance(15) { self.random.random_range(0..KEYS) } else { id };
        let mut row = self.row(table, new_id);
        if self.chance(40) {
            // A small change of a row that stays as long as it is.
            let stamp = row[3].clone();
            row = old.view(table).to_datums();
            row[0] = Datum::Int4(new_id);
            row[3] = stamp;
        }
        loop {
            match open.txn.update(table, rid, version, &row).await? {
                UpdateOutcome::Done => {
                    if new_id != id {
                        self.note(open, table, id, None);
                    }
                    self.note(open, table, new_id, Some(row));
                    return Ok(());
                }
                UpdateOutcome::Changed { row, version: newer } => {
                    if row.view(table).get(0).to_datum() != Datum::Int4(id) {
                        return Ok(());
                    }
                    version = newer;
                }
                UpdateOutcome::Gone => return Ok(()),
            }
        }
    }

    /// Two reads of a statement see the same.
    async fn read_all(&mut self, open: &mut Open, table: &Arc<Table>) -> terrace_engine::Result<()> {
        let mut first = all_rows(&mut open.txn, table, Scan::Full).await?;
        if let Some(index) = table.primary_key() {
            let mut second = all_rows(&mut open.txn, table, whole(index)).await?;
            // A REPEATABLE READ transaction may see a row that has been deleted since, and its own new row of that key.
            let own_too = open.txn.isolation() == Isolation::RepeatableRead && open.txn.has_written();
            let in_order = second.is_sorted_by(|a, b| match a[0].as_ref().cmp_key(b[0].as_ref()) {
                Ordering::Equal => own_too,
                other => other.is_lt(),
            });
            assert!(in_order, "primary key order: {:?}", second.iter().map(|r| &r[0]).collect::<Vec<_>>());
            let by_id = |r: &Row| format!("{} {}", r[0], r[3]);
            first.sort_by_key(by_id);
            second.sort_by_key(by_id);
            assert!(first == second, "table {} and its primary key disagree within a snapshot", table.name);
        }
        Ok(())
    }

    async fn read_range(&mut self, open: &mut Open, table: &Arc<Table>) -> terrace_engine::Result<()> {
        let Some(index) = table.indexes.iter().find(|i| i.columns == [1]) else { return Ok(()) };
        let n = self.random.random_range(0..10);
        let bound = vec![Datum::Int4(n)];
        let direction = if self.chance(50) { ScanDirection::Forward } else { ScanDirection::Backward };
        let range = IndexRange {
            index: index.clone(),
            from: Bound::Included(bound.clone()),
            to: Bound::Included(bound),
            direction,
        };
        let found = all_rows(&mut open.txn, table, Scan::Index(range)).await?;
        let mut all = all_rows(&mut open.txn, table, Scan::Full).await?;
        all.retain(|r| r[1] == Datum::Int4(n));
        assert_eq!(found.len(), all.len(), "table {}: index {} and rows disagree on n = {n}", table.name, index.name);
        Ok(())
    }

    async fn define(&mut self, open: &mut Open) -> terrace_engine::Result<()> {
        let name = *TABLES.choose(&mut self.random).expect("there are tables");
        let Some(table) = open.txn.catalog().table(name).cloned() else {
            let table = open.txn.create_table(spec_of(name, &self.mix)).await?;
            self.note_table(open, name, Some(&table));
            return Ok(());
        };
        if self.mix.alter && self.chance(60) {
            return self.alter(open, name, &table).await;
        }
        let index = table.indexes.iter().find(|i| i.name == n_index(&table, false).name).cloned();
        match (self.random.random_range(0..4), index) {
            (0, _) => {
                open.txn.drop_table(&table).await?;
                self.note_table(open, name, None);
            }
            (_, Some(index)) => {
                open.txn.drop_index(&index).await?;
                let table = open.txn.catalog().table_by_oid(table.oid).cloned();
                self.note_table(open, name, table.as_ref());
            }
            (_, None) => {
                let with_extras = self.random.random_bool(0.5);
                let table = open.txn.create_index(&table, n_index(&table, with_extras)).await?;
                self.note_table(open, name, Some(&table));
            }
        }
        Ok(())
    }

    /// ALTER TABLE and TRUNCATE.
    async fn alter(&mut self, open: &mut Open, name: &str, table: &Arc<Table>) -> terrace_engine::Result<()> {
        // A repeatable read does not see all the rows that the new definition applies to.
        if open.txn.isolation() == Isolation::RepeatableRead {
            return Ok(());
        }
        let table = open.txn.lock_definition(table).await?;
        let (columns, extra) = (table.columns.len(), format!("x{}", self.random.random_range(0..1000)));
        let altered = match self.random.random_range(0..3) {
            0 => open.txn.truncate_table(&table).await?,
            1 if columns > FIXED && !table.columns[columns - 1].dropped => {
                open.txn.drop_column(&table, columns - 1).await?
            }
            _ if columns < MOST_COLUMNS => {
                let mut column = ColumnDef::new(&extra, DataType::Int4);
                column.missing = Datum::Int4(self.random.random_range(0..100));
                open.txn.add_column(&table, column).await?
            }
            _ => return Ok(()),
        };
        self.note_table(open, name, Some(&altered));
        // The rows read otherwise now.
        open.txn.begin_statement();
        for row in all_rows(&mut open.txn, &altered, Scan::Full).await? {
            let Datum::Int4(id) = row[0] else { panic!("a NULL primary key in {name}") };
            self.note(open, &altered, id, Some(row));
        }
        Ok(())
    }

    fn note_table(&self, open: &Open, name: &str, table: Option<&Arc<Table>>) {
        let value = table.map_or(Value::Absent, |t| Value::Table { oid: t.oid.0, indexes: index_names(t) });
        self.model.write(open.note, Key::Table(name.into()), value);
    }
}

/// Its indexes, and its columns in order.
pub(crate) fn index_names(table: &Table) -> BTreeSet<String> {
    let columns = table.columns.iter().enumerate().map(|(at, c)| format!("column {at}: {}", c.name));
    table.indexes.iter().map(|i| format!("{} {:?}", i.name, i.extras)).chain(columns).collect()
}

/// On `n`; where there are wide keys on these too, so that making it fills several leaves. With extras: DESC, and
/// INCLUDE of the last of the columns that are always there.
fn n_index(table: &Table, with_extras: bool) -> IndexSpec {
    let wide = table.columns.get(FIXED).is_some_and(|column| column.name == WIDE && !column.dropped);
    let columns = if wide { vec![1, FIXED] } else { vec![1] };
    let option = KeyOption { descending: true, nulls_first: true, class: None };
    let keys = vec![option; columns.len()];
    let extras = with_extras.then(|| Extras { keys, included: vec![FIXED - 1], ..Extras::default() }.into());
    IndexSpec { name: format!("{}_n_idx", table.name), columns, unique: false, primary: false, extras }
}

pub(crate) fn spec(name: &str) -> TableSpec {
    let column = ColumnDef::new;
    let columns = vec![
        column("id", DataType::Int4),
        column("n", DataType::Int4),
        column("u", DataType::Int4),
        column("stamp", DataType::Int8),
        column("body", DataType::Text),
    ];
    let index = |suffix: &str, column: usize, unique: bool, primary: bool| IndexSpec {
        name: format!("{name}_{suffix}"),
        columns: vec![column],
        unique,
        primary,
        extras: None,
    };
    let indexes = vec![index("pkey", 0, true, true), index("u_key", 2, true, false)];
    TableSpec { name: name.into(), columns, indexes }
}

/// The table of `spec`, with what the mix adds to it.
fn spec_of(name: &str, mix: &Mix) -> TableSpec {
    let mut made = spec(name);
    let mut add = |column: &str, data_type: DataType| {
        made.columns.push(ColumnDef::new(column, data_type));
        made.columns.len() - 1
    };
    let wide = (mix.wide > 0).then(|| add(WIDE, DataType::Text));
    let mut indexes = Vec::new();
    let mut index = |suffix: &str, columns: Vec<usize>, unique: bool| {
        // Unique ones stand for no constraint.
        let extras = unique.then(|| Extras::plain(columns.len()).into());
        indexes.push(IndexSpec { name: format!("{name}_{suffix}"), columns, unique, primary: false, extras });
    };
    if let Some(wide) = wide {
        index("wide", vec![wide], false);
    }
    if mix.types {
        let plain = [
            ("t0", DataType::Bool),
            ("t1", DataType::Int2),
            ("t2", DataType::Float4),
            ("t3", DataType::Float8),
            ("t4", DataType::Numeric(Some((12, 2)))),
            ("t5", DataType::Varchar(20)),
            ("t6", DataType::Char(8)),
            ("t7", DataType::Bytea),
            ("t8", DataType::Date),
            ("t9", DataType::Timestamp),
            ("t10", DataType::Timestamptz),
        ];
        for (column, data_type) in plain {
            add(column, data_type);
        }
        let uuid = add("t11", DataType::Uuid);
        index("n_stamp", vec![1, 3], false);
        index("id_u", vec![0, 2], true);
        index("mixed", vec![uuid - 3, uuid - 7, uuid - 5, uuid - 11], false);
        index("uuid", vec![uuid, 1], true);
    }
    made.indexes.extend(indexes);
    made
}

/// All of an index.
pub(crate) fn whole(index: &Arc<Index>) -> Scan {
    let (from, to) = (Bound::Unbounded, Bound::Unbounded);
    Scan::Index(IndexRange { index: index.clone(), from, to, direction: ScanDirection::Forward })
}

pub(crate) async fn find(
    txn: &mut Txn,
    table: &Table,
    id: i32,
) -> terrace_engine::Result<Option<(Rid, RowBuf, Version)>> {
    let index = table.primary_key().expect("every table here has one").clone();
    txn.get(table, &index, &[Datum::Int4(id)]).await
}

pub(crate) async fn all_rows(txn: &mut Txn, table: &Arc<Table>, scan: Scan) -> terrace_engine::Result<Vec<Row>> {
    let mut scanner = txn.scan(table, scan);
    let mut out = Vec::new();
    loop {
        let batch = scanner.next_batch(7).await?;
        if batch.is_empty() {
            return Ok(out);
        }
        out.extend(batch.iter().map(|(_, row, _)| row.view(table).to_datums()));
    }
}
