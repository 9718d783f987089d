//! What a piece of work reads: pages found in memory, pages read from devices, and how long that took.
//!
//! 1. Each thread counts into cells of its own. [`counting`] takes the difference over each poll of a future. So
//!    everything that the future's polls do is counted for it, and nothing else, on whatever thread it runs. Nothing is
//!    passed along.
//! 2. What a future does inside another's polls counts for both.
//! 3. A read is counted by the task that asked for it, when it ends, or when the task asks for its end. A task that
//!    joins another's read finds the page in memory afterwards.

use crate::home::Tier;
use crate::sync::thread_local;
use crate::types::{PageId, UNDO};
use std::cell::Cell;
use std::future::Future;
use std::ops::{AddAssign, Sub};
use std::pin::Pin;

#[cfg(test)]
mod tests;

/// Where pages are read from. A tier below memory is a place of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Data,
    Undo,
    Flash,
}

impl Place {
    /// In the order of their declaration.
    pub const ALL: [Place; 3] = [Place::Data, Place::Undo, Place::Flash];

    pub fn name(self) -> &'static str {
        match self {
            Place::Data => "data",
            Place::Undo => "undo",
            Place::Flash => "flash",
        }
    }
}

/// Reads of one piece of work.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Reads {
    /// Times that a page was asked for and was in memory.
    pub resident: u64,
    /// Pages read ahead: each is counted as resident when it is asked for.
    pub ahead: u64,
    /// Pages read, by [`Place`].
    pub pages: [u64; Place::ALL.len()],
    /// How long reading took, by [`Place`], nanoseconds.
    pub nanos: [u64; Place::ALL.len()],
}

impl Reads {
    /// Times that a page was found in memory which this work had not read ahead itself.
    pub fn hits(&self) -> u64 {
        self.resident.saturating_sub(self.ahead)
    }

    pub fn total_pages(&self) -> u64 {
        self.pages.iter().sum()
    }

    pub fn total_nanos(&self) -> u64 {
        self.nanos.iter().sum()
    }

    fn zip(self, other: Reads, with: impl Fn(u64, u64) -> u64) -> Reads {
        let both = |a: [u64; 3], b: [u64; 3]| std::array::from_fn(|i| with(a[i], b[i]));
        Reads {
            resident: with(self.resident, other.resident),
            ahead: with(self.ahead, other.ahead),
            pages: both(self.pages, other.pages),
            nanos: both(self.nanos, other.nanos),
        }
    }
}

impl AddAssign for Reads {
    fn add_assign(&mut self, more: Reads) {
        *self = self.zip(more, u64::wrapping_add);
    }
}

impl Sub for Reads {
    type Output = Reads;
    fn sub(self, before: Reads) -> Reads {
        self.zip(before, u64::wrapping_sub)
    }
}

thread_local! {
    static HITS: Cell<u64> = const { Cell::new(0) };
    /// All but `resident`.
    static MISSES: Cell<Reads> = const { Cell::new(Reads { resident: 0, ahead: 0, pages: [0; 3], nanos: [0; 3] }) };
}

pub(crate) fn count_hit() {
    HITS.with(|hits| hits.set(hits.get().wrapping_add(1)));
}

/// Pages that were read for somebody, `ahead` of being asked for or not; `page` is one of them.
pub(crate) fn count_read(page: PageId, tier: Tier, pages: u64, nanos: u64, ahead: bool) {
    let place = match tier {
        Tier::Flash => Place::Flash,
        Tier::Disk if page.space == UNDO => Place::Undo,
        Tier::Disk => Place::Data,
    };
    MISSES.with(|misses| {
        let mut all = misses.get();
        all.pages[place as usize] = all.pages[place as usize].wrapping_add(pages);
        all.nanos[place as usize] = all.nanos[place as usize].wrapping_add(nanos);
        all.ahead = all.ahead.wrapping_add(if ahead { pages } else { 0 });
        misses.set(all);
    });
}

/// What another task read for this one.
pub(crate) fn count_reads(more: Reads) {
    let (hits, misses) = (more.resident, more - Reads { resident: more.resident, ..Reads::default() });
    HITS.with(|all| all.set(all.get().wrapping_add(hits)));
    MISSES.with(|all| all.set(all.get().zip(misses, u64::wrapping_add)));
}

fn so_far() -> Reads {
    Reads { resident: HITS.with(Cell::get), ..MISSES.with(Cell::get) }
}

/// Runs `work`, which does not wait, and adds what it reads to `into`.
pub fn counted<T>(into: &mut Reads, work: impl FnOnce() -> T) -> T {
    let before = so_far();
    let done = work();
    *into += so_far() - before;
    done
}

/// Runs `work` and adds what it reads to `into`, poll by poll. `work` is pinned where it is: taken by value, it would
/// be copied and kept twice.
pub async fn counting<F: Future + Unpin>(into: &mut Reads, mut work: F) -> F::Output {
    std::future::poll_fn(move |cx| {
        let before = so_far();
        let polled = Pin::new(&mut work).poll(cx);
        *into += so_far() - before;
        polled
    })
    .await
}
