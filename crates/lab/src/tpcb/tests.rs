use super::*;
use crate::machine::Run;
use crate::testing::machine;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn sums_agree_after_a_run() {
    let machine = machine("hdd-7200", "nvme-datacentre", 5);
    let workload = Arc::new(TpcB { branches: 20, tellers: 10, accounts: 500, reads: 10 });
    let run = Run { terminals: 5, duration: Duration::from_secs(10), window: Duration::from_secs(1) };
    let measured = machine.run(&workload, run, &|_| {}).unwrap();
    assert_eq!(measured.problems, Vec::<String>::new());
    assert!(measured.samples.iter().map(|s| s.transactions).sum::<u64>() > 100);
    assert!(measured.data.reads > 100, "the pool is smaller than the data");
}
