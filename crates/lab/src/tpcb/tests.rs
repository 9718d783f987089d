use super::*;
use crate::machine::{Machine, Run};
use std::sync::Arc;
use std::time::Duration;
use terrace_device::emulate::Profile;
use terrace_storage::StorageConfig;

#[test]
fn sums_agree_after_a_run() {
    let machine = Machine {
        data: Profile::named("hdd-7200").unwrap(),
        log: Profile::named("nvme-datacentre").unwrap(),
        flash: None,
        cores: 4,
        storage: StorageConfig {
            pool_bytes: 1 << 20,
            redo_bound: 4 << 20,
            segment_size: 1 << 20,
            ..StorageConfig::default()
        },
        statement_cpu: Duration::from_micros(20),
        seed: 5,
    };
    let workload = Arc::new(TpcB { branches: 20, tellers: 10, accounts: 500, reads: 10 });
    let run = Run { terminals: 5, duration: Duration::from_secs(10), window: Duration::from_secs(1) };
    let measured = machine.run(&workload, run, &|_| {}).unwrap();
    assert_eq!(measured.problems, Vec::<String>::new());
    assert!(measured.samples.iter().map(|s| s.transactions).sum::<u64>() > 100);
    assert!(measured.data.reads > 100, "the pool is smaller than the data");
}
