//! The numbers of `random()`: PostgreSQL 15's generator (xoroshiro128**), so that they are the same after `setseed`.
//!
//! Invariant: its state is never all zeros, which would give nothing else.

/// A session's generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Random(u64, u64);

impl Random {
    pub(crate) fn new(mut seed: u64) -> Random {
        match (mixed(&mut seed), mixed(&mut seed)) {
            (0, 0) => Random(0x5851_F42D_4C95_7F2D, 0x1405_7B7E_F767_814F),
            (first, second) => Random(first, second),
        }
    }

    /// As `setseed` makes it, from -1 to 1.
    pub(crate) fn seeded(seed: f64) -> Random {
        assert!((-1.0..=1.0).contains(&seed), "setseed refuses others");
        Random::new((((1u64 << 52) - 1) as f64 * seed) as i64 as u64)
    }

    /// The next number, from 0 to below 1.
    pub(crate) fn next(&mut self) -> f64 {
        let (first, both) = (self.0, self.1 ^ self.0);
        let value = first.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        (self.0, self.1) = (first.rotate_left(24) ^ both ^ (both << 16), both.rotate_left(37));
        (value >> 12) as f64 / (1u64 << 52) as f64
    }
}

/// The next number of splitmix64.
fn mixed(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
