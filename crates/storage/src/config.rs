//! What a database stands on: its devices, and the numbers chosen for it.

use std::sync::Arc;
use std::time::Duration;
use terrace_device::{DeviceRef, MeteredDevice};
use terrace_env::Env;

/// The devices of one database, by role. Two roles never share a `Device`, though they may share a disk.
#[derive(Clone)]
pub struct DeviceSet {
    pub control: DeviceRef,
    pub log: DeviceRef,
    pub double_write: DeviceRef,
    pub data: DeviceRef,
    pub undo: DeviceRef,
}

impl DeviceSet {
    /// The same devices, with their transfers counted and timed from now on.
    pub(crate) fn metered(self, env: &Env) -> (DeviceSet, Vec<Arc<MeteredDevice>>) {
        let mut meters = Vec::new();
        let mut meter = |device: DeviceRef| -> DeviceRef {
            let env = env.clone();
            let metered = Arc::new(MeteredDevice::new(device, move || env.now().0));
            meters.push(metered.clone());
            metered
        };
        let set = DeviceSet {
            control: meter(self.control),
            log: meter(self.log),
            double_write: meter(self.double_write),
            data: meter(self.data),
            undo: meter(self.undo),
        };
        (set, meters)
    }
}

/// Replacement policy of the buffer pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolPolicy {
    Lru,
    Clock,
    Lru2,
}

#[derive(Clone, Debug)]
pub struct StorageConfig {
    /// Bytes; 4, 8, 16 or 32 KiB. Fixed at creation.
    pub page_size: usize,
    /// Buffer pool, bytes.
    pub pool_bytes: usize,
    pub pool_policy: PoolPolicy,
    /// Bytes of log between `redo_lsn` and the end that restart may have to repeat.
    pub redo_bound: u64,
    /// Bytes of log kept for discarded flash tiers, archiving and page repair.
    pub log_retention: u64,
    /// Bytes of a log segment. Fixed at creation. Multiple of 64 KiB.
    pub segment_size: u64,
    /// Bytes of the in-memory log buffer.
    pub log_buffer: usize,
    /// How long the background writer rests between rounds.
    pub writer_interval: Duration,
    /// How often the control file learns the redo LSN.
    pub checkpoint_interval: Duration,
    /// Pages in one double-write group.
    pub write_group: usize,
    /// Pages read ahead of a sequential scan.
    pub read_ahead: usize,
    /// Safeguards that a test removes to show that it would notice. All true in production.
    pub safeguards: Safeguards,
}

/// Each is needed; the crash sweep fails when one is off (scripts/safeguards shows it).
#[derive(Clone, Copy, Debug)]
pub struct Safeguards {
    pub log_before_data: bool,
    pub double_write: bool,
    pub commit_sync: bool,
    pub undo_logging: bool,
}

impl Default for Safeguards {
    fn default() -> Self {
        Safeguards { log_before_data: true, double_write: true, commit_sync: true, undo_logging: true }
    }
}

impl Default for StorageConfig {
    fn default() -> Self {
        StorageConfig {
            page_size: 8192,
            pool_bytes: 128 << 20,
            pool_policy: PoolPolicy::Lru,
            redo_bound: 1 << 30,
            log_retention: 2 << 30,
            segment_size: 16 << 20,
            log_buffer: 16 << 20,
            writer_interval: Duration::from_millis(100),
            checkpoint_interval: Duration::from_secs(5),
            write_group: 64,
            read_ahead: 32,
            safeguards: Safeguards::default(),
        }
    }
}
