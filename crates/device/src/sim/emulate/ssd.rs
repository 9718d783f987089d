//! An SSD as a black box: channels that work side by side, a bus that they share, ceilings on operations, reads and
//! writes apart.
//!
//! 1. A transfer occupies a channel for its latency, then the bus for its bytes. A transfer that continues one of the
//!    last streams costs the sequential latency.
//! 2. A ceiling paces the starts of its kind of operation: what a full device can sustain, beyond what its latency
//!    shows when idle.
use super::Part;
use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdParameters {
    /// Transfers served at once.
    pub channels: usize,
    pub read: SsdCost,
    pub write: SsdCost,
    pub sync_us: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdCost {
    /// Nanoseconds before the bytes flow.
    pub random_ns: u64,
    pub sequential_ns: u64,
    /// Bytes per second of the bus.
    pub rate: u64,
    /// Random operations per second at most; 0 = as the channels allow.
    #[serde(default)]
    pub ceiling: u64,
}

/// Streams told apart, for each direction.
const STREAMS: usize = 8;

#[derive(Clone, Debug, Default)]
struct Direction {
    /// Where the last streams ended, oldest first.
    streams: Vec<u64>,
    bus_free: u64,
    next_start: u64,
}

#[derive(Debug)]
pub(crate) struct Ssd {
    p: SsdParameters,
    /// Reads, writes.
    directions: [Direction; 2],
}

impl Ssd {
    pub(crate) fn new(p: SsdParameters) -> Ssd {
        Ssd { p, directions: Default::default() }
    }

    pub(crate) fn channels(&self) -> usize {
        self.p.channels
    }

    pub(crate) fn sync_nanos(&self) -> u64 {
        self.p.sync_us * 1000
    }

    pub(crate) fn serve(&mut self, part: Part, start: u64) -> u64 {
        let cost = if part.write { self.p.write } else { self.p.read };
        let d = &mut self.directions[usize::from(part.write)];
        let stream = d.streams.iter().position(|end| *end == part.offset);
        match stream {
            Some(at) => drop(d.streams.remove(at)),
            None if d.streams.len() == STREAMS => drop(d.streams.remove(0)),
            None => {}
        }
        d.streams.push(part.offset + part.bytes);
        let mut at = start;
        if cost.ceiling > 0 && stream.is_none() {
            at = at.max(d.next_start);
            d.next_start = at + 1_000_000_000 / cost.ceiling;
        }
        at += if stream.is_some() { cost.sequential_ns } else { cost.random_ns };
        let transfer = u64::try_from(u128::from(part.bytes) * 1_000_000_000 / u128::from(cost.rate))
            .expect("a transfer shorter than five centuries");
        d.bus_free = d.bus_free.max(at) + transfer;
        d.bus_free
    }
}
