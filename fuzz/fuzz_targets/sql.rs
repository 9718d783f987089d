//! Statements, prepared and run on a small database in memory.
#![no_main]

use futures::StreamExt;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use terrace_device::MemoryDevice;
use terrace_engine::{Database, Datum, EngineConfig};
use terrace_env::Real;
use terrace_sql::{Outcome, Session, SqlDatabase};
use terrace_storage::{DeviceSet, StorageConfig};
use tokio::runtime::{Builder, Runtime};

/// One session for all: what a statement leaves must not harm the next.
static SESSION: LazyLock<Mutex<(Runtime, Session)>> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let session = runtime.block_on(async {
        let devices = DeviceSet::from_fn(|name| Arc::new(MemoryDevice::new(name, 1 << 34)));
        let storage =
            StorageConfig { pool_bytes: 32 << 20, segment_size: 1 << 20, log_buffer: 1 << 20, ..Default::default() };
        let env = Real::on(tokio::runtime::Handle::current());
        let engine = Database::create(env, devices, storage, EngineConfig::default()).await.unwrap();
        let mut session = SqlDatabase::new(engine).limit_memory(64 << 20).session("terrace");
        session.set("statement_timeout", "5s").unwrap();
        let tables = ["CREATE TABLE t (a int PRIMARY KEY, b text)", "CREATE TABLE u (a int, b int)"];
        for sql in tables.into_iter().chain(["INSERT INTO t VALUES (1, 'a')"]) {
            run(&mut session, sql).await.unwrap();
        }
        session
    });
    Mutex::new((runtime, session))
});

async fn run(session: &mut Session, sql: &str) -> terrace_engine::Result<()> {
    let statement = session.prepare(sql, &[]).await?;
    let parameters = statement.parameters.iter().map(|_| Datum::Null).collect();
    if let Outcome::Rows { mut stream, .. } = session.execute(&statement, parameters).await? {
        while let Some(batch) = stream.next().await {
            batch?;
        }
    }
    Ok(())
}

libfuzzer_sys::fuzz_target!(|sql: &str| {
    let mut guard = SESSION.lock().unwrap();
    let (runtime, session) = &mut *guard;
    runtime.block_on(async {
        let work = async {
            let _ = session.split(sql);
            let _ = run(session, sql).await;
            let _ = run(session, "ROLLBACK").await;
        };
        tokio::time::timeout(Duration::from_secs(20), work).await.expect("a statement hangs");
    });
});
