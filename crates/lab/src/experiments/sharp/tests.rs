use super::*;
use crate::machine::{Machine, Run};
use crate::testing;
use crate::tpcb::TpcB;
use std::sync::Arc;
use terrace_storage::StorageConfig;

fn machine() -> Machine {
    let small = testing::machine("hdd-7200", "nvme-datacentre", 5);
    let writer_interval = Duration::from_secs(3600);
    let storage = StorageConfig { redo_bound: 1 << 30, log_retention: 1 << 30, writer_interval, ..small.storage };
    Machine { storage, ..small }
}

const SMALL: TpcB = TpcB { branches: 20, tellers: 10, accounts: 300, reads: 10 };

#[test]
fn checkpoints_come_at_their_times_and_leave_nothing_dirty() {
    let run = Run { terminals: 5, duration: Duration::from_secs(7), window: Duration::from_secs(1) };
    let workload = Arc::new(Sharp::new(SMALL, Some(Duration::from_secs(2)), 4));
    let measured = machine().run(&workload, run, &|_| {}).unwrap();
    assert_eq!(measured.problems, Vec::<String>::new());
    let made = workload.made();
    assert!(made.len() >= 3, "{made:?}");
    assert!(made.iter().zip(1..).all(|((begin, _), at)| *begin >= 2.0 * f64::from(at)), "{made:?}");
    assert!(made.iter().all(|(begin, end)| begin < end), "something was to be written: {made:?}");
    assert!(measured.data.writes > 50, "pages go home");
}

/// The disk has all dirty pages to choose from, and seeks less.
#[test]
fn a_checkpoint_that_queues_all_at_once_is_shorter() {
    let run = Run { terminals: 5, duration: Duration::from_secs(7), window: Duration::from_secs(1) };
    let took = |sharp_checkpoints| {
        let machine = machine();
        let storage = StorageConfig { sharp_checkpoints, write_group: 8, ..machine.storage };
        let workload = Arc::new(Sharp::new(SMALL, Some(Duration::from_secs(2)), 4));
        let measured = Machine { storage, whole_pages: true, ..machine }.run(&workload, run, &|_| {}).unwrap();
        assert_eq!(measured.problems, Vec::<String>::new());
        let made = workload.made();
        made.iter().map(|(begin, end)| end - begin).sum::<f64>() / made.len() as f64
    };
    let (sharp, grouped) = (took(true), took(false));
    assert!(sharp < 0.8 * grouped, "{sharp} s, in groups {grouped} s");
}

#[test]
fn a_session_works_on_a_copy_of_what_was_loaded() {
    let machine = machine();
    let workload = Arc::new(SMALL);
    let loaded = machine.load(&workload).unwrap();
    let check = || {
        let workload = workload.clone();
        machine.session(&loaded, |database| async move { workload.check(&database).await })
    };
    let (first, second) = (check().unwrap(), check().unwrap());
    assert_eq!(first.result, Vec::<String>::new());
    assert!(first.traffic.data.reads > 0 && first.traffic.at > 0.0);
    assert_eq!(format!("{first:?}"), format!("{second:?}"), "each begins from the same");
}
