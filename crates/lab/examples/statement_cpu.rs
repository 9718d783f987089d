//! What a statement of TPC-C costs in CPU time, in real time with everything in memory: what experiments charge to the
//! virtual cores. `cargo run --release -p terrace-lab --example statement_cpu`.
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::error::Error;
use std::sync::Arc;
use terrace_device::{DeviceRef, MemoryDevice};
use terrace_engine::{Database, EngineConfig};
use terrace_env::{Env, Real};
use terrace_lab::tpcc::TpcC;
use terrace_lab::workload::Workload;
use terrace_storage::{DeviceSet, StorageConfig};

const TRANSACTIONS: usize = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let env = Real::on(runtime.handle().clone());
    runtime.block_on(measure(env))
}

/// Microseconds of CPU that this process has used, background tasks of the engine included.
fn cpu_micros() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills a timespec of ours.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(done, 0, "every process has a CPU clock");
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

async fn measure(env: Env) -> Result<(), Box<dyn Error>> {
    let device = |name: &str| -> DeviceRef { Arc::new(MemoryDevice::new(name, u64::MAX)) };
    let devices = DeviceSet::from_fn(device);
    let storage = StorageConfig { pool_bytes: 512 << 20, ..StorageConfig::default() };
    let database = Database::create(env.clone(), devices, storage, EngineConfig::default()).await?;
    let workload = TpcC { warehouses: 4, items: 10_000, customers: 300, terminals: 1 };
    workload.load(&database).await?;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (begin, mut statements) = (cpu_micros(), 0u64);
    for _ in 0..TRANSACTIONS {
        statements += u64::from(workload.transaction(&database, 0, &mut random).await?.statements);
    }
    println!("{statements} statements, {:.2} us of CPU each", (cpu_micros() - begin) / statements as f64);
    database.close().await?;
    Ok(())
}
