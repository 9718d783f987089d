//! Point reads and single-row updates of one table in one process: Terrace's typed table API, redb, SQLite, on the same
//! work.
//!
//! ```sh
//! cd bench/embedded && cargo run --release [-- SECONDS]
//! ```
//!
//! 100,000 rows of an integer key, an integer and 84 bytes of text, all in memory. One thread reads or writes at random
//! keys; each read and update is a transaction of its own, committed without waiting for the device (Terrace:
//! `commit_async`; redb: `Durability::None`; SQLite: WAL, `synchronous = OFF`). Terrace's background work runs on a
//! second thread.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use terrace_device::{DeviceRef, FileDevice, OpenOptions};
use terrace_engine::{
    ColumnDef, DataType, Database, Datum, DatumRef, EngineConfig, IndexSpec, Isolation, Peek, RowView, Table, TableSpec,
};
use terrace_env::Real;
use terrace_storage::{DeviceSet, StorageConfig};

const ROWS: u64 = 100_000;
const FILLER: usize = 84;

/// A key at random (xorshift): the same sequence for all.
struct Keys(u64);

impl Keys {
    fn next(&mut self) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % ROWS) as i64
    }
}

/// Operations a second.
fn rate(seconds: f64, mut operation: impl FnMut(i64)) -> f64 {
    let mut keys = Keys(88_172_645_463_325_252);
    let start = Instant::now();
    let mut count = 0u64;
    while start.elapsed().as_secs_f64() < seconds {
        (0..256).for_each(|_| operation(keys.next()));
        count += 256;
    }
    count as f64 / start.elapsed().as_secs_f64()
}

fn report(name: &str, reads: f64, updates: f64) {
    println!("| {name:<40} | {reads:>12.0} | {updates:>12.0} |");
}

fn devices(dir: &Path) -> DeviceSet {
    let open = |name: &str| -> DeviceRef {
        let options = OpenOptions { name: name.into(), create: true, zero: name == "log", ..OpenOptions::default() };
        Arc::new(FileDevice::open(&dir.join(name), &options).expect("the directory exists and is writable"))
    };
    DeviceSet::from_fn(open)
}

async fn load(db: &Database) -> terrace_engine::Result<Arc<Table>> {
    let mut txn = db.begin(Isolation::ReadCommitted);
    let spec = TableSpec {
        name: "t".into(),
        columns: vec![
            ColumnDef::new("id", DataType::Int8).not_null(),
            ColumnDef::new("n", DataType::Int8).not_null(),
            ColumnDef::new("filler", DataType::Text).not_null(),
        ],
        indexes: vec![IndexSpec { name: "t_pkey".into(), columns: vec![0], unique: true, primary: true, extras: None }],
    };
    let table = txn.create_table(spec).await?;
    for id in 0..ROWS as i64 {
        txn.insert(&table, &[Datum::Int8(id), Datum::Int8(id), Datum::Text(" ".repeat(FILLER).into())]).await?;
    }
    txn.commit().await?;
    Ok(table)
}

fn integer(row: RowView<'_>) -> i64 {
    match row.get(1) {
        DatumRef::Int8(n) => n,
        other => panic!("{other:?} in a column of integers"),
    }
}

/// At once where that is possible, which is nearly always.
async fn look_up(db: &Database, version: u64, table: &Table, id: i64) -> terrace_engine::Result<i64> {
    match db.peek(version, table, &table.indexes[0], &[Datum::Int8(id)], integer)? {
        Peek::Found(n) => Ok(n),
        Peek::Missing => panic!("every key is there"),
        Peek::Unsure => get(db, table, id).await,
    }
}

async fn get(db: &Database, table: &Table, id: i64) -> terrace_engine::Result<i64> {
    let mut txn = db.begin(Isolation::ReadCommitted);
    let (_, row, _) = txn.get(table, &table.indexes[0], &[Datum::Int8(id)]).await?.expect("every key is there");
    Ok(integer(row.view(table)))
}

async fn update(db: &Database, table: &Table, id: i64) -> terrace_engine::Result<()> {
    let mut txn = db.begin(Isolation::ReadCommitted);
    let (rid, row, version) = txn.get(table, &table.indexes[0], &[Datum::Int8(id)]).await?.expect("every key is there");
    let mut new = row.view(table).to_datums();
    let Datum::Int8(n) = new[1] else { panic!("not an integer") };
    new[1] = Datum::Int8(n + 1);
    txn.update(table, rid, version, &new).await?;
    txn.commit_async().await
}

fn terrace(dir: &Path, seconds: f64) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let env = Real::on(runtime.handle().clone());
    runtime.block_on(async {
        let config = StorageConfig { pool_bytes: 512 << 20, ..StorageConfig::default() };
        let db = Database::create(env, devices(dir), config, EngineConfig::default()).await;
        let db = db.expect("an empty directory");
        let table = load(&db).await.expect("the rows fit");
        let handle = tokio::runtime::Handle::current();
        let (reads, updates) = tokio::task::block_in_place(|| {
            let reads = rate(seconds, |id| assert!(handle.block_on(get(&db, &table, id)).expect("it reads") >= id));
            (reads, rate(seconds, |id| handle.block_on(update(&db, &table, id)).expect("it writes")))
        });
        report("Terrace, a transaction each", reads, updates);
        let version = db.catalog().version();
        let reads = tokio::task::block_in_place(|| {
            rate(seconds, |id| assert!(handle.block_on(look_up(&db, version, &table, id)).expect("it reads") >= id))
        });
        report("Terrace, peek", reads, f64::NAN);
        // One transaction for all reads: what the lookup itself costs.
        let mut txn = db.begin(Isolation::RepeatableRead);
        let mut keys = Keys(1);
        let start = Instant::now();
        let mut count = 0;
        while start.elapsed().as_secs_f64() < seconds {
            for _ in 0..256 {
                let key = [Datum::Int8(keys.next())];
                assert!(txn.get(&table, &table.indexes[0], &key).await.expect("it reads").is_some());
            }
            count += 256;
        }
        report("Terrace, reads in one transaction", f64::from(count) / start.elapsed().as_secs_f64(), f64::NAN);
        txn.rollback().await.expect("nothing to undo");
        db.close().await.expect("it closes");
    });
}

fn redb(dir: &Path, seconds: f64) {
    use redb::{Durability, ReadableDatabase, ReadableTable, TableDefinition};
    const TABLE: TableDefinition<'_, i64, (i64, &str)> = TableDefinition::new("t");
    let db = redb::Database::create(dir.join("redb")).expect("an empty directory");
    let filler = " ".repeat(FILLER);
    let txn = db.begin_write().expect("nobody else writes");
    {
        let mut table = txn.open_table(TABLE).expect("a new table");
        for id in 0..ROWS as i64 {
            table.insert(id, (id, filler.as_str())).expect("it is stored");
        }
    }
    txn.commit().expect("it commits");
    let reads = rate(seconds, |id| {
        let txn = db.begin_read().expect("it begins");
        let table = txn.open_table(TABLE).expect("the table");
        let row = table.get(id).expect("it reads").expect("every key is there");
        assert!(row.value().0 >= id);
    });
    let updates = rate(seconds, |id| {
        let mut txn = db.begin_write().expect("it begins");
        txn.set_durability(Durability::None).expect("nothing precious was changed");
        {
            let mut table = txn.open_table(TABLE).expect("the table");
            let n = table.get(id).expect("it reads").expect("every key is there").value().0;
            table.insert(id, (n + 1, filler.as_str())).expect("it is stored");
        }
        txn.commit().expect("it commits");
    });
    report("redb", reads, updates);
}

fn sqlite(dir: &Path, seconds: f64) {
    let db = rusqlite::Connection::open(dir.join("sqlite")).expect("an empty directory");
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -500000;
         CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, filler TEXT NOT NULL); BEGIN",
    )
    .expect("plain SQL");
    {
        let mut insert = db.prepare("INSERT INTO t VALUES (?1, ?1, ?2)").expect("plain SQL");
        for id in 0..ROWS as i64 {
            insert.execute((id, " ".repeat(FILLER))).expect("it is stored");
        }
    }
    db.execute_batch("COMMIT").expect("it commits");
    let mut select = db.prepare("SELECT n FROM t WHERE id = ?1").expect("plain SQL");
    let reads = rate(seconds, |id| {
        let read = select.query_row([id], |row| row.get::<_, i64>(0));
        assert!(read.expect("it reads") >= id);
    });
    let mut update = db.prepare("UPDATE t SET n = n + 1 WHERE id = ?1").expect("plain SQL");
    let updates = rate(seconds, |id| assert_eq!(update.execute([id]).expect("it writes"), 1));
    report("SQLite, prepared statements", reads, updates);
}

fn main() {
    let seconds = std::env::args().nth(1).map_or(5.0, |s| s.parse().expect("seconds"));
    let dir = std::env::temp_dir().join(format!("terrace-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a writable temporary directory");
    println!("| {:<40} | {:>12} | {:>12} |\n|---|---:|---:|", "one thread, 100,000 rows", "reads/s", "updates/s");
    terrace(&dir, seconds);
    redb(&dir, seconds);
    sqlite(&dir, seconds);
    std::fs::remove_dir_all(&dir).expect("it was made here");
}
