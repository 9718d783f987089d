use super::*;
use crate::machine::{Machine, Run};
use std::sync::Arc;
use std::time::Duration;
use terrace_device::emulate::Profile;
use terrace_storage::StorageConfig;

const SMALL: Sizes = Sizes { customers: 200, trades: 20, days: 25, watched: 10 };

#[test]
fn the_mix_is_of_a_thousand_and_reads_mostly() {
    assert_eq!(MIX.iter().map(|(_, share)| share).sum::<u32>(), 1000);
    let writes = [Kind::MarketFeed, Kind::TradeOrder, Kind::TradeResult, Kind::TradeUpdate];
    let writing: u32 = MIX.iter().filter(|(kind, _)| writes.contains(kind)).map(|(_, share)| share).sum();
    assert_eq!(1000 - writing, 769, "thousandths that only read");
}

#[test]
fn the_conditions_hold_after_a_run() {
    let machine = Machine {
        data: Profile::named("hdd-8x7200").unwrap(),
        log: Profile::named("iodrive-160").unwrap(),
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
        seed: 4,
    };
    let run = Run { terminals: 8, duration: Duration::from_secs(20), window: Duration::from_secs(5) };
    let workload = Arc::new(TpcE::new(SMALL));
    let measured = machine.run(&workload, run, &|_| {}).unwrap();
    assert_eq!(measured.problems, Vec::<String>::new());
    let (all, counted) = measured.samples.iter().fold((0, 0), |(a, c), s| (a + s.transactions, c + s.counted));
    assert!(all > 500, "{all} transactions");
    assert!((0.05..0.15).contains(&(counted as f64 / all as f64)), "{counted} of {all} are trade results");
    assert!(workload.market.lock().len() < 50, "orders are executed");
}
