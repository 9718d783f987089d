use super::*;
use crate::machine::Run;
use crate::testing::machine;
use rand::SeedableRng;
use std::sync::Arc;
use std::time::Duration;

const SMALL: Sizes = Sizes { customers: 200, trades: 20, days: 25, watched: 10, brokers: 2, updates: 1 };

#[test]
fn the_mix_is_of_a_thousand_and_reads_mostly() {
    assert_eq!(MIX.iter().map(|(_, share)| share).sum::<u32>(), 1000);
    let writes = [Kind::MarketFeed, Kind::TradeOrder, Kind::TradeResult, Kind::TradeUpdate];
    let writing: u32 = MIX.iter().filter(|(kind, _)| writes.contains(kind)).map(|(_, share)| share).sum();
    assert_eq!(1000 - writing, 769, "thousandths that only read");
}

#[test]
fn updates_may_be_more() {
    let results = |updates| {
        let random = &mut ChaCha8Rng::seed_from_u64(1);
        (0..100_000).filter(|_| choose(updates, random) == Kind::TradeResult).count()
    };
    assert!((9700..10_300).contains(&results(1)), "100 of 1000: {}", results(1));
    assert!((23_600..24_500).contains(&results(4)), "400 of 1663: {}", results(4));
}

#[test]
fn the_conditions_hold_after_a_run() {
    let machine = machine("hdd-8x7200", "iodrive-160", 4);
    let run = Run { terminals: 8, duration: Duration::from_secs(20), window: Duration::from_secs(5) };
    let workload = Arc::new(TpcE::new(SMALL));
    let measured = machine.run(&workload, run, &|_| {}).unwrap();
    assert_eq!(measured.problems, Vec::<String>::new());
    let (all, counted) = measured.samples.iter().fold((0, 0), |(a, c), s| (a + s.transactions, c + s.counted));
    assert!(all > 500, "{all} transactions");
    assert!((0.05..0.15).contains(&(counted as f64 / all as f64)), "{counted} of {all} are trade results");
    assert!(workload.market.lock().len() < 50, "orders are executed");
}
