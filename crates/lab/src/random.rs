//! Random values that several workloads draw.
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use terrace_engine::Datum;

/// Letters that nothing reads.
pub(crate) fn letters(random: &mut ChaCha8Rng, length: usize) -> Datum {
    Datum::text((0..length).map(|_| char::from(b'a' + random.random_range(0..26u8))).collect::<String>())
}

/// Non-uniform over `0..n`: the specification's A, or the whole range where that is smaller; shrunk in proportion it
/// would vary within a page only, and all pages would be equally hot. `c` is the run's constant.
pub(crate) fn nurand(random: &mut ChaCha8Rng, a: u32, c: u32, n: u32) -> u32 {
    let a = a.min(n.next_power_of_two() - 1);
    let or = random.random_range(0..=a) | random.random_range(0..n);
    (or + c % (a + 1)) % n
}
