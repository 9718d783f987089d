use super::*;
use crate::machine::{Machine, Run};
use crate::testing;
use std::sync::Arc;
use std::time::Duration;

fn machine(seed: u64) -> Machine {
    testing::machine("hdd-8x7200", "iodrive-160", seed)
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

/// Clause 1.3: the history has no primary key, and so a payment writes no page of an index for it.
#[test]
fn the_history_has_no_key() {
    let history = schema::tables().into_iter().find(|table| table.name == "history").expect("one of the nine");
    assert!(history.indexes.is_empty(), "{:?}", history.indexes);
}

/// Invariant 1: all warehouses are worked in, by as many terminals each, whichever there are more of.
#[test]
fn terminals_share_the_warehouses() {
    use rand::SeedableRng;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for (warehouses, terminals) in [(2, 6), (6, 6), (6, 2)] {
        let workload = TpcC { warehouses, terminals, ..SMALL };
        let mut times = vec![0; warehouses as usize];
        for _ in 0..1000 {
            for terminal in 0..terminals {
                times[workload.warehouse_of(terminal, &mut random) as usize] += 1;
            }
        }
        let mean = 1000 * terminals / warehouses;
        let far = |times: &u32| times.abs_diff(mean) * 5 > mean;
        assert!(!times.iter().any(far), "{terminals} terminals in {warehouses} warehouses: {times:?}");
    }
}
