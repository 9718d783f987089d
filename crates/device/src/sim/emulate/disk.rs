//! Magnetic disks striped into one device: seek by distance, rotation, transfer, an elevator over what is outstanding.
//!
//! 1. The platters turn all the time: where a sector is follows from the clock. A write that continues the one before
//!    comes a command's overhead too late for its sector and waits a whole turn (so do the 946 and 2,970 writes/s of
//!    Do's Tables 3.1 and 4.3, with write caching off).
//! 2. A read that continues the one before is served from the track buffer, at the rate of the medium.
//! 3. Seek time is `seek_min + (seek_max - seek_min) * sqrt(distance / capacity)`; none within a track.
use super::Part;
use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskParameters {
    pub spindles: u64,
    /// Bytes that lie together on one spindle.
    pub stripe: u64,
    /// Bytes of one spindle.
    pub capacity: u64,
    pub rpm: u64,
    pub seek_min_us: u64,
    pub seek_max_us: u64,
    /// Added to a write's seek.
    pub write_settle_us: u64,
    /// Bytes per second under the head.
    pub rate: u64,
    /// Of each command.
    pub overhead_us: u64,
    pub sync_us: u64,
    /// Bytes that one byte stands for, as far as seeks go (`Profile::shrunk`).
    #[serde(default = "one")]
    pub stretch: u64,
}

fn one() -> u64 {
    1
}

#[derive(Clone, Debug, Default)]
struct Spindle {
    /// Where the head is, in bytes.
    head: u64,
    /// Where the last transfer ended, if it was a read.
    buffered: Option<u64>,
    /// The elevator's direction.
    down: bool,
}

#[derive(Debug)]
pub(crate) struct DiskArray {
    p: DiskParameters,
    /// Nanoseconds of a turn, and bytes that pass in it.
    turn: u64,
    track: u64,
    spindles: Vec<Spindle>,
}

impl DiskArray {
    pub(crate) fn new(p: DiskParameters) -> DiskArray {
        let turn = 60_000_000_000 / p.rpm;
        let track = per(p.rate, turn, 1_000_000_000).max(1);
        let spindles = vec![Spindle::default(); usize::try_from(p.spindles).expect("a number of disks")];
        DiskArray { p, turn, track, spindles }
    }

    pub(crate) fn spindles(&self) -> usize {
        self.spindles.len()
    }

    pub(crate) fn sync_nanos(&self) -> u64 {
        self.p.sync_us * 1000
    }

    /// One part for each spindle that the range touches: stripes of one spindle that follow each other lie together
    /// there.
    pub(crate) fn parts(&self, write: bool, offset: u64, bytes: u64) -> Vec<Part> {
        let (n, stripe) = (self.p.spindles, self.p.stripe);
        let mut parts: Vec<Part> = Vec::new();
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let (unit, within) = (at / stripe, at % stripe);
            let len = (stripe - within).min(end - at);
            let queue = usize::try_from(unit % n).expect("below the number of spindles");
            let on_disk = unit / n * stripe + within;
            match parts.iter_mut().find(|part| part.queue == queue) {
                Some(part) => {
                    assert!(part.offset + part.bytes == on_disk, "stripes of a range follow each other on a spindle");
                    part.bytes += len;
                }
                None => parts.push(Part { queue, write, offset: on_disk, bytes: len }),
            }
            at += len;
        }
        parts
    }

    /// The elevator: the nearest in the direction of travel, turning where there is none.
    pub(crate) fn choose(&mut self, queue: usize, offsets: impl Iterator<Item = u64> + Clone) -> usize {
        let spindle = &mut self.spindles[queue];
        let nearest = |down: bool, head: u64| {
            let ahead = offsets.clone().enumerate().filter(move |(_, o)| if down { *o <= head } else { *o >= head });
            ahead.min_by_key(|(at, o)| (o.abs_diff(head), *at)).map(|(at, _)| at)
        };
        if let Some(at) = nearest(spindle.down, spindle.head) {
            return at;
        }
        spindle.down = !spindle.down;
        nearest(spindle.down, spindle.head).expect("somebody waits, in one direction or the other")
    }

    pub(crate) fn serve(&mut self, part: Part, start: u64) -> u64 {
        let spindle = &mut self.spindles[part.queue];
        let transfer = per(part.bytes, 1_000_000_000, self.p.rate);
        let mut at = start + self.p.overhead_us * 1000;
        if part.write || spindle.buffered != Some(part.offset) {
            let distance = part.offset.abs_diff(spindle.head).saturating_mul(self.p.stretch);
            if distance > self.track {
                let share = (distance as f64 / self.p.capacity as f64).min(1.0).sqrt();
                let seek = self.p.seek_min_us as f64 + (self.p.seek_max_us - self.p.seek_min_us) as f64 * share;
                at += (seek * 1000.0) as u64;
                if part.write {
                    at += self.p.write_settle_us * 1000;
                }
            }
            // Invariant 1, in nanoseconds of a turn.
            let sector = per(part.offset % self.track, self.turn, self.track);
            at += (sector + self.turn - at % self.turn) % self.turn;
        }
        spindle.head = part.offset + part.bytes;
        spindle.buffered = (!part.write).then_some(spindle.head);
        at + transfer
    }
}

/// `a * b / c` without overflow.
fn per(a: u64, b: u64, c: u64) -> u64 {
    u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).expect("a duration or a length of a device")
}
