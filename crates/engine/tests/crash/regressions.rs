//! Seeds that once failed, each with what it found.

use crate::Replay;

/// Random runs.
const RANDOM: &[(u64, &str)] = &[];

#[test]
fn random_seeds() {
    for (seed, found) in RANDOM {
        let _replay = Replay(*seed);
        crate::random::run(*seed).unwrap_or_else(|e| panic!("seed {seed} ({found}) again: {e}"));
    }
}
