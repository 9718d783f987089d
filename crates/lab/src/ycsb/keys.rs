//! Which record an operation is for.
use parking_lot::Mutex;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::Zipf;
use std::collections::BTreeSet;

/// Mixes the bits of a number (the finalizer of SplitMix64): neighbours are far apart.
pub(super) fn scatter(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

/// Keys given out, and those of them whose insert is under way.
struct Given {
    next: u64,
    open: BTreeSet<u64>,
}

pub(super) struct Keys {
    /// Records to begin with: what the Zipfian distribution is over.
    records: u64,
    skew: f64,
    given: Mutex<Given>,
}

impl Keys {
    pub(super) fn new(records: u64, skew: f64) -> Keys {
        Keys { records, skew, given: Mutex::new(Given { next: records, open: BTreeSet::new() }) }
    }

    /// 0 is the most frequent.
    fn rank(&self, of: u64, random: &mut ChaCha8Rng) -> u64 {
        let zipf = Zipf::new(of as f64, self.skew).expect("some records, and an exponent that is not negative");
        (random.sample(zipf) as u64).clamp(1, of) - 1
    }

    /// The frequent ones lie anywhere (the original's scrambled Zipfian).
    pub(super) fn zipfian(&self, random: &mut ChaCha8Rng) -> u64 {
        scatter(self.rank(self.records, random)) % self.records
    }

    /// The frequent ones are the newest.
    pub(super) fn latest(&self, random: &mut ChaCha8Rng) -> u64 {
        let limit = self.inserted();
        limit - 1 - self.rank(limit, random)
    }

    /// A key to insert, until `done`.
    pub(super) fn begin(&self) -> u64 {
        let mut given = self.given.lock();
        let key = given.next;
        given.next += 1;
        given.open.insert(key);
        key
    }

    pub(super) fn done(&self, key: u64) {
        self.given.lock().open.remove(&key);
    }

    /// All keys below are committed.
    pub(super) fn inserted(&self) -> u64 {
        let given = self.given.lock();
        given.open.first().copied().unwrap_or(given.next)
    }
}
