//! Measures recovery: fills a table of 20,000 pages, writes 1 GB of log that touches all of them, dies without a word,
//! opens the database again and answers a query.
//!
//! ```sh
//! cargo run --release -p terrace-engine --example recovery_time -- write DIR && echo "it should have died"
//! cargo run --release -p terrace-engine --example recovery_time -- recover DIR
//! ```
//!
//! Real files, real time, `O_DIRECT`. `write` ends by abort (that is the crash); `recover` prints how long the first
//! row took.

use std::path::Path;
use std::sync::Arc;
use terrace_device::{DeviceRef, FileDevice, OpenOptions};
use terrace_engine::{ColumnDef, DataType, Database, Datum, EngineConfig, IndexSpec, Isolation, TableSpec};
use terrace_env::{Env, Real};
use terrace_storage::{DeviceSet, StorageConfig};

/// Seven rows to a page of 8 KiB.
const ROWS: i32 = 140_000;
const ROW_TEXT: usize = 1000;
const LOG_BYTES: u64 = 1 << 30;

fn devices(dir: &Path) -> DeviceSet {
    let open = |name: &str| -> DeviceRef {
        let options = OpenOptions { name: name.into(), create: true, zero: name == "log", ..OpenOptions::default() };
        Arc::new(FileDevice::open(&dir.join(name), &options).expect("the directory exists and is writable"))
    };
    DeviceSet::from_fn(open)
}

/// Nothing is written home between `write`'s checkpoint and its end: the bound is out of reach.
fn config() -> StorageConfig {
    StorageConfig { pool_bytes: 512 << 20, redo_bound: 4 << 30, log_retention: 6 << 30, ..StorageConfig::default() }
}

fn column(name: &str, data_type: DataType) -> ColumnDef {
    ColumnDef::new(name, data_type).not_null()
}

fn row(id: i32, generation: u64) -> [Datum; 2] {
    let text: String =
        (0..ROW_TEXT as u64).map(|i| char::from(b'a' + ((i + generation + id as u64) % 26) as u8)).collect();
    [Datum::Int4(id), Datum::Text(text.into())]
}

async fn write(env: Env, dir: &Path) -> terrace_engine::Result<()> {
    let db = Database::create(env, devices(dir), config(), EngineConfig::default()).await?;
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let spec = TableSpec {
        name: "t".into(),
        columns: vec![column("id", DataType::Int4), column("body", DataType::Text)],
        indexes: vec![IndexSpec { name: "t_pkey".into(), columns: vec![0], unique: true, primary: true, extras: None }],
    };
    let table = txn.create_table(spec).await?;
    for id in 0..ROWS {
        txn.insert(&table, &row(id, 0)).await?;
    }
    txn.commit().await?;
    db.store().checkpoint().await?;
    let start = db.store().log().end().0;
    println!("loaded {ROWS} rows; writing {} MiB of log", LOG_BYTES >> 20);
    for generation in 1.. {
        for first in (0..ROWS).step_by(1000) {
            let mut txn = db.begin(Isolation::ReadCommitted);
            txn.begin_statement();
            for id in first..first + 1000 {
                let (rid, _, version) =
                    txn.get(&table, &table.indexes[0], &[Datum::Int4(id)]).await?.expect("the row was loaded");
                txn.update(&table, rid, version, &row(id, generation)).await?;
            }
            txn.commit().await?;
            if db.store().log().end().0 - start >= LOG_BYTES {
                println!("{} MiB since the checkpoint; dying", (db.store().log().end().0 - start) >> 20);
                std::process::abort();
            }
        }
    }
    unreachable!("generations do not end")
}

async fn recover(env: Env, dir: &Path) -> terrace_engine::Result<()> {
    let before = env.now();
    let (db, report) = Database::open(env.clone(), devices(dir), config(), EngineConfig::default()).await?;
    let table = db.catalog().table("t").expect("the table was committed").clone();
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let found = txn.get(&table, &table.indexes[0], &[Datum::Int4(ROWS / 2)]).await?;
    let seconds = (env.now().0 - before.0) as f64 / 1e9;
    assert!(found.is_some(), "a committed row is missing after recovery");
    txn.rollback().await?;
    println!("first query answered after {seconds:.2} s: {report:?}");
    db.close().await
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(what), Some(dir)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: recovery_time write|recover DIR");
        std::process::exit(2);
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    let env = Real::on(runtime.handle().clone());
    let done = runtime.block_on(async {
        match what.as_str() {
            "write" => write(env, Path::new(&dir)).await,
            "recover" => recover(env, Path::new(&dir)).await,
            other => panic!("unknown word {other}"),
        }
    });
    if let Err(e) = done {
        eprintln!("{e}");
        std::process::exit(1);
    }
}
