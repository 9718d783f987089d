//! Deterministic crash simulation: the engine in virtual time on devices that crash, fail and fill up, against a model
//! of what was committed. One seed, one run, to the byte.
//!
//! ```text
//! cargo test -p terrace-engine --test crash                     the default: 50 seeds, short sweeps
//! TERRACE_SEEDS=2000 cargo test -p terrace-engine --test crash  the long run; from TERRACE_FROM on, if that is set
//! scripts/seeds 2000                                            the same in parts that report progress
//! TERRACE_SEED=17 cargo test -p terrace-engine --test crash     replays one seed (of random runs and of sweeps)
//! scripts/safeguards                                            removes each safeguard and shows that it is missed
//! ```
//!
//! What must hold after every crash ([`verify`]): every transaction whose commit returned is there; one whose commit
//! had been called may be there, but wholly; no other is; `Database::check` finds nothing; and work goes on.

mod archive;
mod devices;
mod faults;
mod flash;
mod flash_tune;
mod floors;
mod foreign;
mod hardened;
mod history;
mod losers;
mod model;
mod random;
mod regressions;
mod safeguards;
mod serializable;
mod swarm;
mod sweep;
mod tier_lost;
mod undo;
mod verify;
mod warm;
mod wide;
mod workload;
mod world;

/// Seeds of the random runs.
fn seeds() -> std::ops::Range<u64> {
    let number =
        |name: &str| std::env::var(name).ok().map(|v| v.parse().unwrap_or_else(|_| panic!("{name}={v}: not a number")));
    match number("TERRACE_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let from = number("TERRACE_FROM").unwrap_or(0);
            from..from + number("TERRACE_SEEDS").unwrap_or(50)
        }
    }
}

/// Whether seeds are enough to have shown together what one alone need not.
fn many_seeds() -> bool {
    seeds().count() >= 50
}

/// Says how to repeat what panics while it lives.
struct Replay(u64);

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay: TERRACE_SEED={} cargo test -p terrace-engine --test crash", self.0);
        }
    }
}
