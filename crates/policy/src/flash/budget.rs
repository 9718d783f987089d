//! A write budget: how many bytes a day the tier may write, so that the device lives as long as it was bought for.
//!
//! A token bucket of bytes. Invariants:
//! 1. In any 24 hours at most `bytes_per_day` are written, and what was under way when the bucket ran dry: the bucket
//!    holds one part in `PARTS` of the day's bytes and is filled with the others evenly.
//! 2. Time comes with the call and does not go back (R1); a bucket that is not asked meanwhile is filled all the same.

const DAY: f64 = 86_400e9;
const PARTS: f64 = 25.0;

/// The bytes that may be written, in nanoseconds of a clock of the caller's.
#[derive(Clone, Debug)]
pub struct Budget {
    bytes_per_day: u64,
    tokens: f64,
    at: u64,
}

impl Budget {
    /// A full bucket.
    pub fn new(bytes_per_day: u64, now: u64) -> Budget {
        let mut budget = Budget { bytes_per_day, tokens: 0.0, at: now };
        budget.tokens = budget.depth();
        budget
    }

    fn depth(&self) -> f64 {
        self.bytes_per_day as f64 / PARTS
    }

    fn refill(&mut self, now: u64) {
        let elapsed = now.saturating_sub(self.at) as f64;
        self.at = self.at.max(now);
        let gained = elapsed / DAY * self.bytes_per_day as f64 * (1.0 - 1.0 / PARTS);
        self.tokens = (self.tokens + gained).min(self.depth());
    }

    /// Bytes that may be written now; negative: they were written already.
    pub fn left(&mut self, now: u64) -> f64 {
        self.refill(now);
        self.tokens
    }

    /// Whether a write of `bytes` may begin.
    pub fn allows(&mut self, now: u64, bytes: u64) -> bool {
        self.left(now) >= bytes as f64
    }

    /// So many were written.
    pub fn spend(&mut self, now: u64, bytes: u64) {
        self.refill(now);
        self.tokens -= bytes as f64;
    }
}

#[cfg(test)]
mod tests;
