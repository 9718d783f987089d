//! Each safeguard of `StorageConfig::safeguards` is needed: without it, sweeps fail. (`scripts/safeguards` prints what was noticed.)

use crate::sweep::{Plan, sweep};
use crate::workload::Mix;
use std::panic::{AssertUnwindSafe, catch_unwind};
use terrace_storage::config::Safeguards;

/// The first failure that sweeps find, if any.
fn noticed(safeguards: Safeguards) -> Option<String> {
    for seed in 1..12 {
        let plan = Plan {
            seed,
            writes: 250,
            mix: Mix { ddl: 10, ..Mix::default() },
            clients: 2,
            safeguards,
            deeper: u64::MAX,
        };
        let failure = match catch_unwind(AssertUnwindSafe(|| sweep(plan))) {
            Ok(Ok(_)) => continue,
            Ok(Err(e)) => e,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                format!("panic: {}", text.or(panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default())
            }
        };
        return Some(format!("seed {seed}, {failure}"));
    }
    None
}

#[test]
fn every_safeguard_is_missed() {
    let all = Safeguards::default();
    let without = [
        ("log before data", Safeguards { log_before_data: false, ..all }),
        ("double write", Safeguards { double_write: false, ..all }),
        ("commit sync", Safeguards { commit_sync: false, ..all }),
        ("undo logging", Safeguards { undo_logging: false, ..all }),
    ];
    let mut unnoticed = Vec::new();
    for (name, safeguards) in without {
        match noticed(safeguards) {
            Some(failure) => println!("without {name}: noticed ({})", failure.chars().take(300).collect::<String>()),
            None => unnoticed.push(name),
        }
    }
    assert!(unnoticed.is_empty(), "sweeps pass without: {unnoticed:?}");
}
