//! Measures a profile as its source measured the device: a closed loop of so many outstanding transfers, in virtual
//! time, on the mechanism alone.
use super::profile::{Calibration, Metric, Pattern};
use super::{Emulation, Part, Profile};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Transfers measured, after a quarter as many that are not.
const TRANSFERS: u64 = 20_000;

struct Loop<'a> {
    wanted: &'a Calibration,
    emulation: Emulation,
    random: ChaCha8Rng,
    next: u64,
    tickets: u64,
    /// Time, and what is due: a part's end, or a pause's.
    events: BinaryHeap<Reverse<(u64, u64, Due)>>,
    /// Of each transfer by its first ticket: parts outstanding, and when it began.
    transfers: BTreeMap<u64, (usize, u64)>,
    /// A ticket's transfer and queue.
    parts: BTreeMap<u64, (u64, usize)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    Begin,
    End,
}

/// What the profile does in the calibration's own unit.
pub fn measure(profile: &Profile, wanted: &Calibration, seed: u64) -> f64 {
    let mut run = Loop {
        wanted,
        emulation: profile.emulation(),
        random: ChaCha8Rng::seed_from_u64(seed),
        next: 0,
        tickets: 0,
        events: BinaryHeap::new(),
        transfers: BTreeMap::new(),
        parts: BTreeMap::new(),
    };
    for _ in 0..wanted.depth {
        run.begin(0);
    }
    let (mut done, mut begun_at, mut waited) = (0, 0, 0u64);
    let mut now = 0;
    while done < TRANSFERS + TRANSFERS / 4 {
        let Reverse((at, ticket, due)) = run.events.pop().expect("transfers are outstanding");
        now = at;
        if due == Due::Begin {
            run.begin(now);
        } else if let Some(began) = run.end(now, ticket) {
            done += 1;
            match done <= TRANSFERS / 4 {
                true => begun_at = now,
                false => waited += now - began,
            }
            run.pause(now);
        }
    }
    let seconds = (now - begun_at) as f64 / 1e9;
    match wanted.metric {
        Metric::Iops => TRANSFERS as f64 / seconds,
        Metric::MbPerS => (TRANSFERS * wanted.block) as f64 / 1e6 / seconds,
        Metric::Ms => waited as f64 / 1e6 / TRANSFERS as f64,
    }
}

impl Loop<'_> {
    fn begin(&mut self, now: u64) {
        let blocks = self.wanted.span / self.wanted.block;
        let block = match self.wanted.pattern {
            Pattern::Random => self.random.random_range(0..blocks),
            Pattern::Sequential => {
                self.next += 1;
                (self.next - 1) % blocks
            }
        };
        let parts = self.emulation.parts(self.wanted.write, block * self.wanted.block, self.wanted.block);
        let first = self.tickets + 1;
        self.transfers.insert(first, (parts.len(), now));
        for part in parts {
            self.tickets += 1;
            self.arrive(now, self.tickets, first, part);
        }
    }

    fn arrive(&mut self, now: u64, ticket: u64, transfer: u64, part: Part) {
        self.parts.insert(ticket, (transfer, part.queue));
        if let Some(end) = self.emulation.arrive(now, ticket, part) {
            self.events.push(Reverse((end, ticket, Due::End)));
        }
    }

    /// When the transfer began whose last part this was.
    fn end(&mut self, now: u64, ticket: u64) -> Option<u64> {
        let (transfer, queue) = self.parts.remove(&ticket).expect("a part ends once");
        if let Some((next, end)) = self.emulation.leave(now, queue) {
            self.events.push(Reverse((end, next, Due::End)));
        }
        let (left, began) = self.transfers.get_mut(&transfer).expect("a transfer has parts outstanding");
        *left -= 1;
        let began = *began;
        (*left == 0).then(|| {
            self.transfers.remove(&transfer);
            began
        })
    }

    /// The next of this client's transfers: at once, or after a pause of random length.
    fn pause(&mut self, now: u64) {
        if self.wanted.pause_us == 0 {
            return self.begin(now);
        }
        let pause = self.random.random_range(0..2000 * self.wanted.pause_us);
        self.tickets += 1;
        self.events.push(Reverse((now + pause, self.tickets, Due::Begin)));
    }
}
