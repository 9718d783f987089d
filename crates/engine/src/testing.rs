//! Databases on memory devices, for tests.
use crate::catalog::foreign::{Action, ForeignKey};
use crate::catalog::{ColumnDef, IndexSpec, Table, TableSpec};
use crate::database::{Database, EngineConfig};
use crate::row::RowBuf;
use crate::txn::{Isolation, Scan, Txn, UpdateOutcome, Version};
use crate::types::{DataType, Datum, DatumRef};
use parking_lot::Mutex;
use std::cell::Cell;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use terrace_device::fault::{FaultDevice, Recorder};
use terrace_device::memory::MemoryDevice;
use terrace_device::{DeviceRef, Guarantees, Image};
use terrace_env::{Env, Sim};
use terrace_storage::config::Safeguards;
use terrace_storage::{DeviceSet, ObjectId, Rid, StorageConfig};

/// Where a session's result appears when it is done.
pub(crate) type Slot<T> = Arc<Mutex<Option<T>>>;

/// Runs `work` as another session.
pub(crate) fn session<T: Send + 'static>(env: &Env, work: impl Future<Output = T> + Send + 'static) -> Slot<T> {
    let result = Arc::new(Mutex::new(None));
    let slot = result.clone();
    env.spawn("session", async move { *slot.lock() = Some(work.await) });
    result
}

pub(crate) fn devices() -> DeviceSet {
    let device = |name: &str| Arc::new(MemoryDevice::new(name, 1 << 30)) as terrace_device::DeviceRef;
    DeviceSet::from_fn(device)
}

/// Devices of which the data device can be told to fail.
pub(crate) fn faulty() -> (DeviceSet, Arc<FaultDevice>) {
    let recorder = Recorder::new(false);
    let guarantees = Guarantees { atomic_write: 512, capacity: 1 << 30 };
    let device = |name: &str| Arc::new(recorder.device(name, guarantees.clone(), Image::new()));
    let data = device("data");
    let [control, log, double_write, undo] =
        ["control", "log", "double-write", "undo"].map(|name| device(name) as DeviceRef);
    (DeviceSet { control, log, double_write, data: data.clone(), undo, flash: None }, data)
}

thread_local! {
    /// What this thread's databases guard against: everything, but in the test that shows that each safeguard is
    /// needed.
    pub(crate) static SAFEGUARDS: Cell<Safeguards> = const { Cell::new(Safeguards::all()) };
}

pub(crate) fn storage() -> StorageConfig {
    StorageConfig {
        safeguards: SAFEGUARDS.get(),
        page_size: 4096,
        pool_bytes: 4 << 20,
        segment_size: 1 << 20,
        log_buffer: 1 << 20,
        ..StorageConfig::default()
    }
}

pub(crate) async fn database(env: &Env) -> Database {
    Database::create(env.clone(), devices(), storage(), EngineConfig::default()).await.unwrap()
}

/// Runs a test in a simulation.
pub(crate) fn simulate<F: Future<Output = ()> + Send + 'static>(seed: u64, test: impl FnOnce(Env) -> F) {
    let sim = Sim::new(seed, 2);
    let future = test(sim.env());
    sim.run(future);
}

/// `name (id int4 primary key, v int4, t text)`.
pub(crate) async fn table(db: &Database, name: &str) -> Arc<Table> {
    let mut txn = db.begin(Isolation::ReadCommitted);
    let columns = vec![
        ColumnDef::new("id", DataType::Int4).not_null(),
        ColumnDef::new("v", DataType::Int4),
        ColumnDef::new("t", DataType::Text),
    ];
    let key = IndexSpec { name: format!("{name}_pkey"), columns: vec![0], unique: true, primary: true, extras: None };
    let made = txn.create_table(TableSpec { name: name.into(), columns, indexes: vec![key] }).await.unwrap();
    txn.commit().await.unwrap();
    made
}

pub(crate) fn row(id: i32, v: i32) -> Vec<Datum> {
    vec![Datum::Int4(id), Datum::Int4(v), Datum::text("some text")]
}

pub(crate) fn int(row: &RowBuf, table: &Table, column: usize) -> i32 {
    match row.view(table).get(column) {
        DatumRef::Int4(v) => v,
        other => panic!("column {column} is {other:?}"),
    }
}

pub(crate) async fn get(txn: &mut Txn, table: &Table, id: i32) -> Option<(Rid, i32, Version)> {
    let found = txn.get(table, &table.indexes[0], &[Datum::Int4(id)]).await.unwrap();
    found.map(|(rid, row, version)| (rid, int(&row, table, 1), version))
}

pub(crate) async fn value(txn: &mut Txn, table: &Table, id: i32) -> Option<i32> {
    txn.begin_statement();
    get(txn, table, id).await.map(|f| f.1)
}

/// A committed insert.
pub(crate) async fn put(db: &Database, table: &Table, id: i32, v: i32) -> Rid {
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let rid = txn.insert(table, &row(id, v)).await.unwrap();
    txn.commit().await.unwrap();
    rid
}

/// UPDATE ... SET v = `to` WHERE id = `id`, within a transaction.
pub(crate) async fn set(txn: &mut Txn, table: &Table, id: i32, to: i32) -> crate::Result<UpdateOutcome> {
    txn.begin_statement();
    let (rid, _, version) = get(txn, table, id).await.expect("the row is visible");
    txn.update(table, rid, version, &row(id, to)).await
}

pub(crate) async fn all(txn: &mut Txn, table: &Arc<Table>, scan: Scan) -> Vec<(i32, i32)> {
    txn.begin_statement();
    let mut scanner = txn.scan(table, scan);
    let mut out = Vec::new();
    loop {
        let batch = scanner.next_batch(7).await.unwrap();
        if batch.is_empty() {
            return out;
        }
        out.extend(batch.iter().map(|(_, r, _)| (int(r, table, 0), int(r, table, 1))));
    }
}

/// All rows as they are.
pub(crate) async fn rows(txn: &mut Txn, table: &Arc<Table>) -> Vec<Vec<Datum>> {
    txn.begin_statement();
    let mut scanner = txn.scan(table, Scan::Full);
    let mut out = Vec::new();
    loop {
        let batch = scanner.next_batch(7).await.unwrap();
        if batch.is_empty() {
            return out;
        }
        out.extend(batch.iter().map(|(_, row, _)| row.view(table).to_datums()));
    }
}

pub(crate) async fn clean(db: &Database) {
    assert_eq!(db.check().await.unwrap(), Vec::<String>::new());
}

/// Lets everybody else run.
pub(crate) async fn rest(env: &Env) {
    env.sleep(Duration::from_millis(1)).await;
}

/// A foreign key of column `v` of a table to the primary key of another.
pub(crate) fn foreign_key(name: &str, referenced: &Table) -> ForeignKey {
    ForeignKey {
        oid: ObjectId(0),
        name: name.into(),
        table: ObjectId(0),
        columns: vec![1],
        referenced: referenced.oid,
        key: vec![0],
        index: referenced.indexes[0].oid,
        on_delete: Action::NoAction,
        on_update: Action::NoAction,
        set: vec![],
        full: false,
        deferrable: false,
        deferred: false,
        validated: true,
    }
}

/// Tables `pa` and `ch`, whose column `v` refers to `pa` as `change` says; answers them as they are then.
pub(crate) async fn linked(db: &Database, change: impl FnOnce(&mut ForeignKey)) -> (Arc<Table>, Arc<Table>) {
    let (pa, ch) = (table(db, "pa").await, table(db, "ch").await);
    let mut key = foreign_key("ch_v_fkey", &pa);
    change(&mut key);
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.add_foreign_key(&ch, key).await.unwrap();
    txn.commit().await.unwrap();
    let catalog = db.catalog();
    (catalog.table("pa").unwrap().clone(), catalog.table("ch").unwrap().clone())
}

/// An index on column `v`.
pub(crate) async fn index_v(db: &Database, table: &Table) {
    let mut txn = db.begin(Isolation::ReadCommitted);
    let name = format!("{}_v", table.name);
    txn.create_index(table, IndexSpec { name, columns: vec![1], unique: false, primary: false, extras: None })
        .await
        .unwrap();
    txn.commit().await.unwrap();
}
