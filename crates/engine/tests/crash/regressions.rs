//! Seeds that once failed, each with what it found.

use crate::Replay;

/// Random runs.
const RANDOM: &[(u64, &str)] = &[
    (0, "purge took a segment's histories in the order in which they left, not in which they ended"),
    (1, "undo space took its size from the device, which had lost an allocation in the crash"),
    (2, "page writers woke each other for ever"),
    (40, "a checkpoint spun on a page that somebody else was writing again"),
    (
        119,
        "waiters for log room and the task that makes it woke each other for ever (also: sweep of long rows, \
         seed 2013)",
    ),
    (144, "a REPEATABLE READ transaction used its own index, made later than its snapshot"),
    (
        1024,
        "a long row under a deletion that the reader does not see came back empty where its chain could not be read",
    ),
    (425, "fragments shorter than a row's header were read as rows"),
];

/// The same of `swarm`.
const SWARM: &[(u64, &str)] = &[
    (419, "a crash kept a log segment's seal and lost batches in front of it, and the next opening was refused"),
    (467, "definitions changed behind a commit that had failed, whose locks were gone"),
    (1587, "purge read a row with columns that a transaction under way had added, by the committed definition"),
    (393, OTHERS_SYNCS),
    (4115, OTHERS_SYNCS),
    (4300, OTHERS_SYNCS),
];

/// The same over a tier.
const SWARM_OVER_A_TIER: &[(u64, &str)] = &[(771, OTHERS_SYNCS), (3765, OTHERS_SYNCS)];

const OTHERS_SYNCS: &str = "a sync of the double-write area failed, and another writer's sync after it succeeded";

#[test]
fn swarm_seeds() {
    for (seed, found) in SWARM {
        let _replay = Replay(*seed);
        crate::swarm::shaped(*seed).unwrap_or_else(|e| panic!("seed {seed} ({found}) again: {e}"));
    }
}

#[test]
fn swarm_seeds_over_a_tier() {
    for (seed, found) in SWARM_OVER_A_TIER {
        let _replay = Replay(*seed);
        crate::swarm::over_a_tier(*seed).unwrap_or_else(|e| panic!("seed {seed} ({found}) again: {e}"));
    }
}

#[test]
fn random_seeds() {
    for (seed, found) in RANDOM {
        let _replay = Replay(*seed);
        crate::random::run(*seed).unwrap_or_else(|e| panic!("seed {seed} ({found}) again: {e}"));
    }
}
