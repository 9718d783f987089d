//! The formats on disk do not change: `format/version_1.image` is a database that version 1 of the formats wrote.
//!
//! 1. The program of today opens that image, finds nothing wrong and reads every row; so it does with
//!    `format/log_index_1.image` and `format/log_index_2.image`, whose log segments have earlier kinds of index.
//! 2. The program of today writes the same bytes, byte for byte, when it repeats the history that made the image.
//!
//! Where only the history changes (when pages are written, and where), but not what a structure looks like, make the
//! image again: `TERRACE_IMAGE=write cargo test -p terrace-engine --test format`. Review what else such a commit
//! changes with care.
#![allow(clippy::disallowed_methods, reason = "the image is a file of the tree, not of a database")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use terrace_device::memory::MemoryDevice;
use terrace_device::{DeviceRef, Guarantees, Image};
use terrace_engine::types::Numeric;
use terrace_engine::{
    ColumnDef, DataType, Database, Datum, EngineConfig, IndexSpec, Isolation, Role, Scan, Table, TableSpec, Txn,
};
use terrace_env::{Env, Sim};
use terrace_storage::config::{Restart, WritePolicy};
use terrace_storage::{DeviceSet, FlashConfig, StorageConfig};

const NAMES: [&str; 6] = ["control", "log", "double-write", "data", "undo", "flash"];
const COMMITTED: i32 = 60;

struct Machine {
    sim: Sim,
    devices: [Arc<MemoryDevice>; 6],
}

impl Machine {
    fn new(images: [Image; 6]) -> Machine {
        let guarantees = Guarantees { atomic_write: 512, capacity: 1 << 30 };
        let mut images = images.into_iter();
        let image = |name| {
            let image = images.next().expect("an image for each device");
            Arc::new(MemoryDevice::with_image(name, guarantees.clone(), image))
        };
        Machine { sim: Sim::new(7, 2), devices: NAMES.map(image) }
    }

    fn set(&self) -> DeviceSet {
        let [control, log, double_write, data, undo, flash] =
            std::array::from_fn(|device| self.devices[device].clone() as DeviceRef);
        DeviceSet { control, log, double_write, data, undo, flash: Some(flash) }
    }

    fn images(&self) -> [Image; 6] {
        std::array::from_fn(|device| self.devices[device].image())
    }
}

fn config() -> StorageConfig {
    let tier = FlashConfig {
        size: 16 * 4096,
        write: WritePolicy::LazyCleaning,
        restart: Restart::Cold,
        ..FlashConfig::default()
    };
    StorageConfig {
        page_size: 4096,
        pool_bytes: 32 * 4096,
        redo_bound: 128 << 10,
        log_retention: 64 << 10,
        segment_size: 64 << 10,
        log_buffer: 64 << 10,
        writer_interval: Duration::from_millis(5),
        checkpoint_interval: Duration::from_millis(20),
        write_group: 8,
        flash: tier,
        ..StorageConfig::default()
    }
}

fn row(id: i32, v: i32) -> Vec<Datum> {
    // Every sixteenth text needs a chain of fragments.
    let text = "abcdefghij".repeat(if id % 16 == 0 { 500 } else { id as usize % 20 });
    vec![
        Datum::Int4(id),
        Datum::Int4(v),
        Datum::text(text),
        Datum::Bool(id % 2 == 0),
        Datum::Int2(-7),
        Datum::Int8(i64::from(id) << 33),
        Datum::Float4(1.5),
        if id % 3 == 0 { Datum::Null } else { Datum::Float8(-2.25) },
        Datum::Numeric(Numeric { unscaled: i128::from(id) - 50, scale: 2 }),
        Datum::Bytea(vec![id as u8; 3].into()),
        Datum::Date(8000 + id),
        Datum::Timestamp(-5),
        Datum::Timestamptz(i64::from(v)),
        Datum::Uuid(u128::from(id as u32) << 100),
    ]
}

fn spec() -> TableSpec {
    let columns = vec![
        ColumnDef::new("id", DataType::Int4).not_null(),
        ColumnDef::new("v", DataType::Int4),
        ColumnDef::new("t", DataType::Text),
        ColumnDef::new("b", DataType::Bool),
        ColumnDef::new("s", DataType::Int2),
        ColumnDef::new("l", DataType::Int8),
        ColumnDef::new("f", DataType::Float4),
        ColumnDef::new("d", DataType::Float8),
        ColumnDef::new("n", DataType::Numeric(Some((10, 2)))),
        ColumnDef::new("y", DataType::Bytea),
        ColumnDef::new("day", DataType::Date),
        ColumnDef::new("at", DataType::Timestamp),
        ColumnDef::new("tz", DataType::Timestamptz),
        ColumnDef::new("u", DataType::Uuid),
    ];
    let index = |name: &str, columns: Vec<usize>, primary| IndexSpec {
        name: name.into(),
        columns,
        unique: primary,
        primary,
        extras: None,
    };
    let indexes = vec![index("t_pkey", vec![0], true), index("t_v", vec![1, 8, 13], false)];
    TableSpec { name: "t".into(), columns, indexes }
}

/// The rows of `t` that a new transaction sees, in the order of their keys.
async fn rows(db: &Database, table: &Arc<Table>) -> Vec<Vec<Datum>> {
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let mut scanner = txn.scan(table, Scan::Full);
    let mut rows = Vec::new();
    loop {
        let batch = scanner.next_batch(50).await.expect("the table can be read");
        if batch.is_empty() {
            break;
        }
        let values = |columns: usize, row: &terrace_engine::RowBuf| -> Vec<Datum> {
            (0..columns).map(|column| row.view(table).get(column).to_datum()).collect()
        };
        rows.extend(batch.iter().map(|(_, row, _)| values(table.columns.len(), row)));
    }
    rows.sort_by_key(|row| match row[0] {
        Datum::Int4(id) => id,
        _ => panic!("the key is an int4"),
    });
    txn.commit().await.expect("nothing was written");
    rows
}

/// What each row of `t` must be: the third part of the rows was updated, the rows from `COMMITTED - 10` on were
/// deleted.
fn expected() -> Vec<Vec<Datum>> {
    (0..COMMITTED - 10).map(|id| row(id, if id % 3 == 0 { id + 1000 } else { id })).collect()
}

async fn change(txn: &mut Txn, table: &Table, id: i32, to: Option<i32>) {
    txn.begin_statement();
    let found = txn.get(table, &table.indexes[0], &[Datum::Int4(id)]).await.expect("the index can be read");
    let (rid, _, version) = found.expect("the row is there");
    match to {
        Some(v) => drop(txn.update(table, rid, version, &row(id, v)).await.expect("nobody else writes")),
        None => drop(txn.delete(table, rid, version).await.expect("nobody else writes")),
    }
}

/// A history that meets every structure on disk. Its last transaction is still open at the end.
async fn history(env: Env, db: Database) -> (Database, Txn) {
    let mut txn = db.begin(Isolation::ReadCommitted);
    let table = txn.create_table(spec()).await.expect("the name is free");
    txn.create_role(Role::new("someone")).await.expect("the name is free");
    txn.commit().await.expect("the devices are sound");
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    for id in 0..COMMITTED {
        txn.insert(&table, &row(id, id)).await.expect("the key is free");
    }
    txn.commit().await.expect("the devices are sound");
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in (0..COMMITTED).step_by(3) {
        change(&mut txn, &table, id, Some(id + 1000)).await;
    }
    let savepoint = txn.savepoint();
    change(&mut txn, &table, 7, None).await;
    txn.rollback_to(savepoint).await.expect("the devices are sound");
    txn.commit().await.expect("the devices are sound");
    db.store().checkpoint().await.expect("the devices are sound");
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    txn.insert(&table, &row(5000, 1)).await.expect("the key is free");
    txn.rollback().await.expect("the devices are sound");
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in COMMITTED - 10..COMMITTED {
        change(&mut txn, &table, id, None).await;
    }
    txn.analyze(&table).await.expect("the devices are sound");
    txn.commit().await.expect("the devices are sound");
    env.sleep(Duration::from_secs(1)).await;
    let mut open = db.begin(Isolation::ReadCommitted);
    change(&mut open, &table, 16, Some(3)).await;
    change(&mut open, &table, 17, None).await;
    open.begin_statement();
    open.insert(&table, &row(6000, 1)).await.expect("the key is free");
    let end = db.store().log().end();
    db.store().log().flush_to(end).await.expect("the devices are sound");
    (db, open)
}

fn write_now() -> [Image; 6] {
    let machine = Machine::new(std::array::from_fn(|_| Image::new()));
    let env = machine.sim.env();
    let create = Database::create(env.clone(), machine.set(), config(), EngineConfig::default());
    let db = machine.sim.run(create).expect("the devices are sound");
    let _open = machine.sim.run(history(env, db));
    machine.images()
}

/// What the program of today writes.
const TODAY: &str = "version_1";

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/format/{name}.image"))
}

/// Of each device its size, then runs of zeros and of other bytes in turn: length of each, and the bytes.
fn pack(images: &[Image; 6]) -> Vec<u8> {
    const GAP: usize = 16; // Shorter runs of zeros are stored as they are.
    let mut out = Vec::new();
    for image in images {
        let mut bytes = vec![0; image.size() as usize];
        image.read(0, &mut bytes);
        out.extend_from_slice(&image.size().to_le_bytes());
        let mut at = 0;
        while at < bytes.len() {
            let zeros = bytes[at..].iter().take_while(|byte| **byte == 0).count();
            let from = at + zeros;
            let mut to = from;
            while to < bytes.len() && bytes[to..].iter().take(GAP).any(|byte| *byte != 0) {
                to += 1;
            }
            out.extend_from_slice(&(zeros as u32).to_le_bytes());
            out.extend_from_slice(&((to - from) as u32).to_le_bytes());
            out.extend_from_slice(&bytes[from..to]);
            at = to;
        }
    }
    out
}

fn unpack(mut packed: &[u8]) -> [Image; 6] {
    let mut take = |n: usize| {
        let (taken, rest) = packed.split_at(n);
        packed = rest;
        taken
    };
    std::array::from_fn(|_| {
        let size = u64::from_le_bytes(take(8).try_into().expect("eight bytes"));
        let (mut image, mut at) = (Image::new(), 0);
        image.grow(size);
        while at < size {
            let mut number = || u64::from(u32::from_le_bytes(take(4).try_into().expect("four bytes")));
            let (zeros, other) = (number(), number());
            if other > 0 {
                image.write(at + zeros, take(other as usize));
            }
            at += zeros + other;
        }
        image
    })
}

#[test]
fn an_image_of_version_1_opens_and_has_its_rows() {
    for name in [TODAY, "log_index_1", "log_index_2"] {
        let machine = Machine::new(unpack(&std::fs::read(path(name)).expect("the image is in the tree")));
        let env = machine.sim.env();
        let open = Database::open(env, machine.set(), config(), EngineConfig::default());
        let (db, report) = machine.sim.run(open).expect("version 1 can be read");
        assert_eq!(report.losers_rolled_back, 1);
        machine.sim.run(async move {
            assert_eq!(db.check().await.expect("the devices are sound"), Vec::<String>::new());
            let catalog = db.catalog();
            assert!(catalog.role("someone").is_some());
            let table = catalog.table("t").expect("the table was committed");
            assert_eq!(rows(&db, table).await, expected());
            db.close().await.expect("the devices are sound");
        });
    }
}

#[test]
fn the_same_history_writes_the_same_bytes() {
    let images = write_now();
    if std::env::var("TERRACE_IMAGE").is_ok_and(|wanted| wanted == "write") {
        std::fs::create_dir_all(path(TODAY).parent().expect("a folder")).expect("the tree can be written");
        std::fs::write(path(TODAY), pack(&images)).expect("the tree can be written");
    }
    let before = unpack(&std::fs::read(path(TODAY)).expect("the image is in the tree"));
    for ((name, now), before) in NAMES.iter().zip(&images).zip(&before) {
        assert_eq!(now.first_difference(before), None, "the {name} device, first at this offset");
    }
}
