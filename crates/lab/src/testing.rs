//! A machine for tests of workloads: so little memory that a small database is larger.
use crate::machine::Machine;
use std::time::Duration;
use terrace_device::emulate::Profile;
use terrace_storage::StorageConfig;

/// `data`, `log`: names of profiles.
pub(crate) fn machine(data: &str, log: &str, seed: u64) -> Machine {
    let named = |name| Profile::named(name).expect("one of ours");
    Machine {
        data: named(data),
        log: named(log),
        flash: None,
        cores: 8,
        storage: StorageConfig {
            pool_bytes: 1 << 20,
            redo_bound: 4 << 20,
            log_retention: 8 << 20,
            segment_size: 1 << 20,
            ..StorageConfig::default()
        },
        statement_cpu: Duration::from_micros(20),
        whole_pages: false,
        seed,
    }
}
