//! Each safeguard that the engine's histories can miss is needed: without it, sweeps or random runs fail.
//! (`scripts/safeguards` prints what was noticed, here and by the tests of storage.)

use crate::sweep::{Plan, sweep};
use crate::workload::Mix;
use crate::world::with_shape;
use std::panic::{AssertUnwindSafe, catch_unwind};
use terrace_storage::config::{Restart, Safeguard, Safeguards};

/// What a run says, or how it panics.
fn failure(run: impl FnOnce() -> Result<(), String>) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.err(),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or(panic.downcast_ref::<&str>().map(|s| s.to_string()));
            Some(format!("panic: {}", text.unwrap_or_default()))
        }
    }
}

/// The first failure that sweeps find, if any.
fn swept(safeguard: Safeguard) -> Option<String> {
    (1..12).find_map(|seed| {
        let plan = Plan {
            seed,
            writes: 250,
            mix: Mix { ddl: 10, ..Mix::default() },
            clients: 2,
            safeguards: Safeguards::without(safeguard),
            deeper: u64::MAX,
        };
        failure(|| sweep(plan).map(drop)).map(|e| format!("seed {seed}, {e}"))
    })
}

/// The same by random runs.
fn ran(safeguard: Safeguard) -> Option<String> {
    with_shape(
        |shape| shape.safeguards = Safeguards::without(safeguard),
        || (0..200).find_map(|seed| failure(|| crate::random::run(seed)).map(|e| format!("seed {seed}, {e}"))),
    )
}

/// The same by crashes with a flash tier.
fn restarted(safeguard: Safeguard) -> Option<String> {
    let run = |seed| match safeguard {
        Safeguard::Lives => crate::warm::other_life(seed, Safeguards::without(safeguard)),
        Safeguard::Lacking | Safeguard::DirtyFrames => crate::floors::earlier(seed, Safeguards::without(safeguard)),
        _ => {
            crate::warm::crashes_in_a_row(seed);
            Ok(())
        }
    };
    let search = || (0..400).find_map(|seed| failure(|| run(seed)).map(|e| format!("seed {seed}, {e}")));
    match safeguard {
        Safeguard::Lives | Safeguard::Lacking | Safeguard::DirtyFrames => search(),
        _ => with_shape(|shape| shape.safeguards = Safeguards::without(safeguard), search),
    }
}

fn all_are_missed(removals: &[Safeguard], noticed: impl Fn(Safeguard) -> Option<String>) {
    let mut unnoticed = Vec::new();
    for &safeguard in removals {
        match noticed(safeguard) {
            Some(failure) => {
                let failure: String = failure.chars().take(300).collect();
                println!("without {safeguard:?}: noticed ({})", failure.replace('\n', " "));
            }
            None => unnoticed.push(safeguard),
        }
    }
    assert!(unnoticed.is_empty(), "histories pass without: {unnoticed:?}");
}

#[test]
fn every_safeguard_is_missed() {
    let removals = [
        Safeguard::LogBeforeData,
        Safeguard::DoubleWrite,
        Safeguard::CommitSync,
        Safeguard::UndoLogging,
        Safeguard::EntriesFirst,
    ];
    all_are_missed(&removals, swept);
}

#[test]
fn every_safeguard_of_transactions_is_missed() {
    let removals = [Safeguard::KeyStripes, Safeguard::HistoryOrder, Safeguard::SecondLook];
    all_are_missed(&removals, ran);
}

/// The same by crashes while losers are undone.
fn met(safeguard: Safeguard) -> Option<String> {
    with_shape(
        |shape| (shape.safeguards, shape.disk) = (Safeguards::without(safeguard), Some(crate::losers::SLOW)),
        || (0..60).find_map(|seed| failure(|| crate::losers::run(seed).map(drop)).map(|e| format!("seed {seed}, {e}"))),
    )
}

#[test]
fn every_safeguard_of_losers_is_missed() {
    all_are_missed(&[Safeguard::LoserLocks], met);
}

#[test]
fn every_safeguard_of_a_warm_restart_is_missed() {
    use Safeguard::{BaseEntries, DirtyFrames, Lacking, ListedLsn, Lives, Noting};
    let removals = [ListedLsn, Lives, Noting, Lacking, DirtyFrames, BaseEntries];
    all_are_missed(&removals, restarted);
}

/// The same by restarts from hardened records.
fn hardened(safeguard: Safeguard, method: Restart) -> Option<String> {
    let without = Safeguards::without(safeguard);
    let run = |seed| match safeguard {
        Safeguard::Stamp => crate::hardened::earlier(method, seed, without).map(drop),
        Safeguard::ReadAgain => crate::hardened::lying(method, seed, without),
        Safeguard::OthersSyncs => crate::hardened::failing_syncs(method, seed, without),
        Safeguard::HardShrink => crate::hardened::smaller_for_a_while(method, seed, without),
        _ => crate::hardened::crashes(method, seed, without).map(drop),
    };
    (0..1500).find_map(|seed| failure(|| run(seed)).map(|e| format!("{method:?}, seed {seed}, {e}")))
}

#[test]
fn every_safeguard_of_hardened_records_is_missed() {
    use Safeguard::{HardReuse, HardShrink, HardVoids, OthersSyncs, ReadAgain, Stamp, SyncedFrames};
    let on_flash = [HardVoids, HardReuse, SyncedFrames, Stamp, ReadAgain, OthersSyncs, HardShrink];
    all_are_missed(&on_flash, |safeguard| hardened(safeguard, Restart::MemoryMapped));
    all_are_missed(&[HardReuse, SyncedFrames], |safeguard| hardened(safeguard, Restart::LogBased));
}
