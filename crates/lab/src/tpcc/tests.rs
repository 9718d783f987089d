use super::*;
use crate::machine::{Machine, Run};
use std::sync::Arc;
use std::time::Duration;
use terrace_device::emulate::Profile;
use terrace_storage::StorageConfig;

fn machine(seed: u64) -> Machine {
    let named = |name| Profile::named(name).expect("one of ours");
    Machine {
        data: named("hdd-8x7200"),
        log: named("iodrive-160"),
        flash: None,
        cores: 8,
        storage: StorageConfig {
            pool_bytes: 2 << 20,
            redo_bound: 4 << 20,
            log_retention: 8 << 20,
            segment_size: 1 << 20,
            ..StorageConfig::default()
        },
        statement_cpu: Duration::from_micros(20),
        seed,
    }
}

const SMALL: TpcC = TpcC { warehouses: 8, items: 100, customers: 30, terminals: 2 };

#[test]
fn the_conditions_hold_after_a_run() {
    let run = Run { terminals: 2, duration: Duration::from_secs(20), window: Duration::from_secs(5) };
    let measured = machine(1).run(&Arc::new(SMALL), run, &|_| {}).unwrap();
    assert_eq!(measured.problems, Vec::<String>::new());
    let (all, counted) = measured.samples.iter().fold((0, 0), |(a, c), s| (a + s.transactions, c + s.counted));
    assert!(all > 200, "{all} transactions");
    assert!((0.3..0.6).contains(&(counted as f64 / all as f64)), "{counted} of {all} are new orders");
}

#[test]
fn one_seed_gives_one_run() {
    let run = Run { terminals: 2, duration: Duration::from_secs(3), window: Duration::from_secs(1) };
    let measure = |seed| format!("{:?}", machine(seed).run(&Arc::new(SMALL), run, &|_| {}).unwrap());
    assert_eq!(measure(3), measure(3));
    assert_ne!(measure(3), measure(4));
}
