//! A network volume: a latency, and two budgets (operations, bytes) that fill at a rate up to a burst and pace what
//! exceeds them.
//!
//! 1. Operations queue only for a budget: operations within both take the latency, however many are outstanding.
//! 2. A budget is kept as the time at which it would be empty-handed again (the generic cell rate algorithm): an
//!    operation may begin once that lies no further ahead than the burst.
use super::Part;
use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeParameters {
    pub read_latency_us: u64,
    pub write_latency_us: u64,
    pub sync_us: u64,
    /// Operations per second.
    pub iops: u64,
    /// Operations that an idle volume has saved up.
    pub burst_operations: u64,
    /// Bytes per second.
    pub rate: u64,
    pub burst_bytes: u64,
    /// Bytes that count as one operation; larger transfers count as several.
    pub operation_bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Volume {
    p: VolumeParameters,
    operations: Budget,
    bytes: Budget,
}

#[derive(Debug)]
struct Budget {
    per_second: u64,
    burst_nanos: u64,
    spent_until: u64,
}

impl Budget {
    fn new(per_second: u64, burst: u64) -> Budget {
        Budget { per_second, burst_nanos: nanos(burst, per_second), spent_until: 0 }
    }

    /// When `amount` is there, asked for at `now` (invariant 2).
    fn take(&mut self, now: u64, amount: u64) -> u64 {
        let from = self.spent_until.max(now);
        self.spent_until = from + nanos(amount, self.per_second);
        self.spent_until.saturating_sub(self.burst_nanos).max(now)
    }
}

fn nanos(amount: u64, per_second: u64) -> u64 {
    u64::try_from(u128::from(amount) * 1_000_000_000 / u128::from(per_second)).expect("a wait of a budget")
}

impl Volume {
    pub(crate) fn new(p: VolumeParameters) -> Volume {
        let operations = Budget::new(p.iops, p.burst_operations);
        let bytes = Budget::new(p.rate, p.burst_bytes);
        Volume { p, operations, bytes }
    }

    pub(crate) fn sync_nanos(&self) -> u64 {
        self.p.sync_us * 1000
    }

    pub(crate) fn serve(&mut self, part: Part, start: u64) -> u64 {
        let operations = part.bytes.div_ceil(self.p.operation_bytes);
        let begin = self.operations.take(start, operations).max(self.bytes.take(start, part.bytes));
        begin + 1000 * if part.write { self.p.write_latency_us } else { self.p.read_latency_us }
    }
}
