//! What an opening waits for: a catalogue on a slow disk.
use super::crash::Clock;
use crate::testing::*;
use crate::{Database, EngineConfig};
use std::sync::Arc;
use std::time::Duration;
use terrace_device::Device;
use terrace_device::latency::{Cost, Latency, LatencyDevice, Model};
use terrace_env::Sim;
use terrace_storage::DeviceSet;

const TABLES: usize = 300;
/// One read of the disk.
const READ: Duration = Duration::from_millis(5);

/// The pages of the catalogue and the maps of the tablespace lie all over the disk. They are read side by side.
#[test]
fn the_catalogue_is_read_side_by_side() {
    let devices = devices();
    let sim = Sim::new(1, 2);
    let (env, first) = (sim.env(), devices.clone());
    sim.run(async move {
        let db = Database::create(env, first, storage(), EngineConfig::default()).await.unwrap();
        for i in 0..TABLES {
            table(&db, &format!("table_{i}")).await;
        }
        db.close().await.unwrap();
    });
    let sim = Sim::new(2, 2);
    let env = sim.env();
    let (read, rest) = (Cost::new(READ.as_nanos() as u64, 0), Cost::new(1000, 0));
    let model = Model { read, write: rest, sync: rest, parallelism: 32 };
    let latency = Latency::new(model, Arc::new(Clock(env.clone())));
    let data = Arc::new(LatencyDevice::new(devices.data.clone(), Arc::new(latency)));
    let before = data.stats().read_bytes;
    let slow = DeviceSet { data: data.clone(), ..devices };
    let (tables, took) = sim.run(async move {
        let began = env.now();
        let (db, _) = Database::open(env.clone(), slow, storage(), EngineConfig::default()).await.unwrap();
        (db.catalog().tables().count(), Duration::from_nanos(env.now().0 - began.0))
    });
    let pages = (data.stats().read_bytes - before) / 4096;
    assert_eq!(tables, TABLES);
    assert!(pages > 20, "{pages} pages: too few to tell");
    assert!(took < 6 * READ, "{pages} pages took {took:?}");
}
