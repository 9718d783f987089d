//! What clients hear of a device that is full, fails or is gone.
use crate::common::*;
use std::sync::Arc;
use terrace_device::fault::{FaultDevice, Recorder};
use terrace_device::{DeviceRef, Guarantees, Image};
use terrace_engine::{Database, EngineConfig};
use terrace_env::{Env, Real};
use terrace_server::Limits;
use terrace_sql::{Spill, SqlDatabase};
use terrace_storage::{DeviceSet, FlashConfig, StorageConfig};
use tokio_postgres::Client;

const NAMES: [&str; 6] = ["control", "log", "double-write", "data", "undo", "flash"];
const LOG: usize = 1;
const DATA: usize = 3;
const FLASH: usize = 5;
/// Of some 9 MB in all: more than the pool and the tier hold together.
const ROWS: usize = 9000;

/// A server over devices that can fail, with a table `t`.
async fn machine(spill: Option<Spill>) -> (Server, [Arc<FaultDevice>; 6], Client) {
    let recorder = Recorder::new(false);
    let sound = Guarantees { atomic_write: 512, capacity: 1 << 34 };
    let devices = NAMES.map(|name| Arc::new(recorder.device(name, sound.clone(), Image::new())));
    let [control, log, double_write, data, undo, flash] = devices.each_ref().map(|device| device.clone() as DeviceRef);
    let set = DeviceSet { control, log, double_write, data, undo, flash: Some(flash) };
    let storage = StorageConfig {
        pool_bytes: 2 << 20,
        segment_size: 1 << 20,
        log_buffer: 1 << 20,
        flash: FlashConfig { size: 2 << 20, ..FlashConfig::default() },
        ..StorageConfig::default()
    };
    let env: Env = Real::on(tokio::runtime::Handle::current());
    let engine = Database::create(env, set, storage, EngineConfig::default()).await.expect("an empty database");
    let db = match spill {
        Some(spill) => SqlDatabase::with_spill(engine, spill),
        None => SqlDatabase::new(engine),
    };
    let server = Server::of(db, Limits::default()).await;
    let client = server.client().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v text)").await.unwrap();
    for part in 0..ROWS / 1000 {
        let (first, last) = (part * 1000 + 1, part * 1000 + 1000);
        let load = format!(
            "INSERT INTO t SELECT g.n, repeat(md5(g.n::text), 30) FROM generate_series({first}, {last}) AS g(n)"
        );
        client.batch_execute(&load).await.unwrap();
    }
    (server, devices, client)
}

const SUM: &str = "SELECT count(*), sum(length(v)) FROM t";

fn all() -> String {
    format!("{ROWS}|{}", ROWS * 30 * 32)
}

#[tokio::test(flavor = "multi_thread")]
async fn f6_a_dead_data_device_is_told_as_such() {
    let (_server, devices, client) = machine(None).await;
    assert_eq!(rows(&client, SUM).await.unwrap(), [all()]);
    devices[DATA].kill();
    assert_eq!(state(rows(&client, SUM).await), "58030");
}

#[tokio::test(flavor = "multi_thread")]
async fn f6_a_dead_log_device_is_told_as_such() {
    let (_server, devices, client) = machine(None).await;
    devices[LOG].kill();
    assert_eq!(state(client.batch_execute("UPDATE t SET v = 'x' WHERE id = 1").await), "58030");
}

/// The tier is a cache: without it everything goes on, and nothing is missing.
#[tokio::test(flavor = "multi_thread")]
async fn f6_a_dead_flash_device_fails_nothing() {
    let (server, devices, client) = machine(None).await;
    devices[FLASH].kill();
    assert_eq!(rows(&client, SUM).await.unwrap(), [all()]);
    client.batch_execute("UPDATE t SET v = 'x' WHERE id <= 1000").await.unwrap();
    let left = format!("{ROWS}|{}", (ROWS - 1000) * 30 * 32 + 1000);
    assert_eq!(rows(&client, SUM).await.unwrap(), [left]);
    drop(client);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn f6_a_full_data_device_fails_what_needs_room() {
    let (server, devices, client) = machine(None).await;
    devices[DATA].set_capacity(devices[DATA].visible().size());
    let more = "INSERT INTO t SELECT n + 100000, repeat('x', 2000) FROM generate_series(1, 20000) AS g(n)";
    assert_eq!(state(client.batch_execute(more).await), "53100");
    assert_eq!(rows(&client, SUM).await.unwrap(), [all()], "nothing of it stays");
    devices[DATA].set_capacity(1 << 34);
    client.batch_execute("INSERT INTO t VALUES (0, '')").await.unwrap();
    drop(client);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn f6_temporary_files_without_room_or_place() {
    let directory = std::env::temp_dir().join(format!("terrace-devices-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let spill = Spill { directory: directory.clone(), capacity: 1 << 20, memory: 4 << 20 };
    let (server, _, client) = machine(Some(spill)).await;
    let sorted = "SELECT md5(g.n::text) FROM generate_series(1, 200000) AS g(n) ORDER BY 1";
    assert_eq!(state(rows(&client, sorted).await), "53100");
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(state(rows(&client, sorted).await), "58030", "the place for the files is gone");
    assert_eq!(rows(&client, SUM).await.unwrap(), [all()], "the session goes on");
    drop(client);
    server.stop().await.unwrap();
}
