//! Measures what the flash tier itself adds to a page read from it: the median time of a hit on a device that answers
//! at once, less that of the device's own read of as many bytes.
//!
//! ```sh
//! cargo run --release -p terrace-engine --example flash_hit
//! ```
//!
//! Memory devices, real time, one thread. Ends with 1 where the difference is 5 microseconds or more.

use std::sync::Arc;
use terrace_device::{DeviceRef, IoBuf, MemoryDevice, Purpose};
use terrace_engine::{ColumnDef, DataType, Database, Datum, EngineConfig, IndexSpec, Isolation, TableSpec};
use terrace_env::{Env, Real};
use terrace_storage::home::{PAGES_AT, Tier};
use terrace_storage::pool::Access;
use terrace_storage::{DATA, DeviceSet, FlashConfig, PageId, StorageConfig};

const PAGE: usize = 8192;
const ROWS: i32 = 14_000;
const READS: usize = 50_000;
const LIMIT_NANOS: u64 = 5_000;

fn devices() -> DeviceSet {
    let memory = |name: &str| -> DeviceRef { Arc::new(MemoryDevice::new(name, 4 << 30)) };
    DeviceSet { flash: Some(memory("flash")), ..DeviceSet::from_fn(memory) }
}

/// The tier holds what the pool does not.
fn config() -> StorageConfig {
    let flash = FlashConfig { size: 64 << 20, fill_threshold: 1.0, ..FlashConfig::default() };
    StorageConfig { page_size: PAGE, pool_bytes: 512 * PAGE, flash, ..StorageConfig::default() }
}

/// A table of some 2,000 pages, most of which are in the tier by now.
async fn fill(db: &Database) -> terrace_engine::Result<()> {
    let mut txn = db.begin(Isolation::ReadCommitted);
    let spec = TableSpec {
        name: "t".into(),
        columns: vec![ColumnDef::new("id", DataType::Int4).not_null(), ColumnDef::new("body", DataType::Text)],
        indexes: vec![IndexSpec { name: "t_pkey".into(), columns: vec![0], unique: true, primary: true, extras: None }],
    };
    let table = txn.create_table(spec).await?;
    for id in 0..ROWS {
        txn.insert(&table, &[Datum::Int4(id), Datum::text("x".repeat(1000))]).await?;
    }
    txn.commit().await?;
    db.store().checkpoint().await?;
    Ok(())
}

/// The middle one, and the one that only 1 in 100 exceed.
fn quantiles(mut nanos: Vec<u64>) -> (u64, u64) {
    nanos.sort_unstable();
    (nanos[nanos.len() / 2], nanos[nanos.len() * 99 / 100])
}

async fn measure(env: Env) -> terrace_engine::Result<bool> {
    let devices = devices();
    let flash = devices.flash.clone().expect("there is a tier");
    let db = Database::create(env.clone(), devices, config(), EngineConfig::default()).await?;
    fill(&db).await?;
    let home = db.store().home();
    let mut held = Vec::new();
    for no in 1..2_500 {
        let fetched = home.fetch(PageId::new(DATA, no), 1, Access::Random).await;
        if fetched.into_iter().flatten().any(|page| page.tier == Tier::Flash) {
            held.push(no);
        }
    }
    assert!(held.len() > 500, "only {} pages are in the tier", held.len());
    let (mut hits, mut reads) = (Vec::with_capacity(READS), Vec::with_capacity(READS));
    for i in 0..READS {
        // Another order than they lie in.
        let no = held[i.wrapping_mul(7919) % held.len()];
        let began = env.now();
        let fetched = home.fetch(PageId::new(DATA, no), 1, Access::Random).await;
        let nanos = env.now().0 - began.0;
        let hit = fetched.into_iter().flatten().any(|page| page.tier == Tier::Flash);
        assert!(hit, "page {no} has left the tier");
        hits.push(nanos);
        let offset = PAGES_AT + (i.wrapping_mul(7919) % held.len() * PAGE) as u64;
        let began = env.now();
        let read = flash.read(offset, IoBuf::zeroed(PAGE), Purpose::Flash).await;
        reads.push(env.now().0 - began.0);
        read.expect("a memory device reads");
    }
    let ((hit, slow_hit), (read, slow_read)) = (quantiles(hits), quantiles(reads));
    let beyond = hit.saturating_sub(read);
    println!("a hit: median {hit} ns, 99% within {slow_hit} ns");
    println!("the device's read: median {read} ns, 99% within {slow_read} ns");
    println!("the manager's own: {beyond} ns (limit {LIMIT_NANOS})");
    db.close().await?;
    Ok(beyond < LIMIT_NANOS)
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    let env = Real::on(runtime.handle().clone());
    let good = runtime.block_on(measure(env)).expect("memory devices do not fail");
    std::process::exit(if good { 0 } else { 1 });
}
