use super::*;
use crate::machine::{Machine, Run};
use crate::testing::machine;
use std::sync::Arc;

#[test]
fn orders_and_lines_agree_after_queries_and_refreshes() {
    let machine = Machine { statement_cpu: Duration::ZERO, ..machine("hdd-8x7200", "iodrive-160", 6) };
    let sizes = Sizes { orders: 2000, row_cpu: Duration::from_nanos(500) };
    let workload = Arc::new(TpcH::new(sizes));
    let run = Run { terminals: 4, duration: Duration::from_secs(8), window: Duration::from_secs(1) };
    let measured = machine.run(&workload, run, &|_| {}).unwrap();
    assert_eq!(measured.problems, Vec::<String>::new());
    let queries: u64 = measured.samples.iter().map(|s| s.counted).sum();
    assert!(queries > 22, "{queries} queries");
    assert!(workload.refreshes.load(Ordering::Relaxed) > 10);
}

#[test]
fn the_power_metric_is_a_geometric_mean() {
    let second = Duration::from_secs(1);
    let mut power = Power { queries: [second; 22], refreshes: [second; 2], scale_factor: 30.0 };
    assert!((power.metric() - 108_000.0).abs() < 1e-6);
    power.queries[3] = second * 16;
    power.queries[4] = second / 16;
    assert!((power.metric() - 108_000.0).abs() < 1e-6, "one time more, one less by the same factor");
}

/// Of 1,500,000 orders at scale factor 1, 57 are in query 18's answer.
#[test]
fn query_18_looks_up_as_many_orders_as_its_answer_has() {
    let [.., queries::Step::Some(queries::Lookup::Orders, millionths)] = queries::QUERIES[17] else {
        panic!("it ends with look-ups of orders: {:?}", queries::QUERIES[17]);
    };
    let share = f64::from(*millionths) / 1e6;
    assert!((share * 1_500_000.0 / 57.0 - 1.0).abs() < 0.1, "{share}");
}
