//! Pages that recovery visits, in order of address: in which runs they are read and written.

use super::gather::Changes;
use crate::flash::FlashHome;
use crate::page::header;
use crate::pool::{Access, Pool};
use crate::types::*;
use futures::StreamExt;

/// The longest run read in one, and the pages of one sweep, in bytes.
const RUN_BYTES: usize = 2 << 20;
const SWEEP_BYTES: usize = 16 << 20;
/// Bytes between two pages that are read, or written, along rather than asked for apart: a slow disk moves
/// more than that in the time of a request, a fast one about as much. Pages that the tier holds begin no run and make
/// none longer: each is a request of its own.
const GAP_BYTES: usize = 128 << 10;
const WRITE_GAP_BYTES: usize = 64 << 10;

/// What is known of a page that is visited.
pub(super) trait Visit {
    /// It needs nothing from below.
    fn starts_afresh(&self) -> bool;
}

impl Visit for Changes {
    fn starts_afresh(&self) -> bool {
        Changes::starts_afresh(self)
    }
}

/// No more than that: who visits the page finds its changes elsewhere.
pub(super) struct Afresh(pub(super) bool);

impl Visit for Afresh {
    fn starts_afresh(&self) -> bool {
        self.0
    }
}

/// Pages that are visited together, and the runs in which they are read.
pub(super) struct Sweep<'a, C> {
    pub(super) pages: &'a [(PageId, C)],
    runs: Vec<(PageId, u32)>,
    page_size: usize,
}

/// Cuts pages, in order of address, into sweeps that a quarter of the pool holds.
pub(super) struct Sweeps<'a, C> {
    rest: &'a [(PageId, C)],
    tier: &'a FlashHome,
    /// Pages read in a sweep, in a run, and along between two pages, at most.
    room: usize,
    run: usize,
    gap: usize,
    page_size: usize,
}

impl<'a, C> Sweeps<'a, C> {
    pub(super) fn new(pages: &'a [(PageId, C)], pool: &Pool, tier: &'a FlashHome) -> Sweeps<'a, C> {
        let page_size = pool.page_size();
        let room = (pool.frames() / 4).clamp(1, SWEEP_BYTES / page_size);
        let (run, gap) = ((RUN_BYTES / page_size).min(room), GAP_BYTES / page_size);
        Sweeps { rest: pages, tier, room, run, gap, page_size }
    }
}

impl<'a, C: Visit> Iterator for Sweeps<'a, C> {
    type Item = Sweep<'a, C>;

    fn next(&mut self) -> Option<Sweep<'a, C>> {
        let mut runs: Vec<(PageId, u32)> = Vec::new();
        let (mut count, mut held) = (0, 0);
        let mut last = None; // The last run of the disk.
        for (page, changes) in self.rest {
            let mut more = 1;
            if !changes.starts_afresh() {
                let in_tier = self.tier.holds(*page);
                let run = last.filter(|_| !in_tier).map(|at: usize| &mut runs[at]);
                let run = run.filter(|(first, _)| first.space == page.space);
                let longer = run.map(|run| ((page.no - run.0.no) as usize + 1, run));
                match longer {
                    Some((length, run)) if length <= self.run && length - run.1 as usize <= self.gap + 1 => {
                        more = length - run.1 as usize;
                        if held + more <= self.room {
                            run.1 = length as u32;
                        }
                    }
                    _ if held < self.room => {
                        last = if in_tier { last } else { Some(runs.len()) };
                        runs.push((*page, 1));
                    }
                    _ => {}
                }
            }
            if held + more > self.room {
                break;
            }
            (count, held) = (count + 1, held + more);
        }
        let (pages, rest) = self.rest.split_at(count);
        self.rest = rest;
        (count > 0).then_some(Sweep { pages, runs, page_size: self.page_size })
    }
}

impl<C> Sweep<'_, C> {
    /// `at_once`: runs being read at a time.
    pub(super) async fn read(&self, pool: &Pool, at_once: usize) {
        futures::stream::iter(&self.runs)
            .for_each_concurrent(at_once, |&(first, count)| async move {
                match count {
                    // A failure shows again where it can be dealt with.
                    1 => drop(pool.fetch(first, Access::Random).await),
                    _ => pool.prefetch(first.space, first.no, count).await,
                }
            })
            .await;
    }

    fn visits(&self, page: PageId) -> bool {
        self.pages.binary_search_by_key(&page, |(page, _)| *page).is_ok()
    }

    /// Pages that were only read along need not stay where frames get scarce.
    pub(super) fn forget_gaps(&self, pool: &Pool) {
        if pool.free() >= pool.frames() / 4 {
            return;
        }
        for &(first, count) in &self.runs {
            let all = (first.no..first.no + count).map(|no| PageId::new(first.space, no));
            all.filter(|page| !self.visits(*page)).for_each(|page| pool.drop_clean(page));
        }
    }

    /// The visited pages, and those between two of them that are at hand: one long write is cheaper than two short
    /// ones. Not so where the `tier` has found one of them: a page that is written loses its frame.
    pub(super) fn to_write(&self, pool: &Pool, tier: &FlashHome) -> Vec<PageId> {
        let mut pages: Vec<PageId> = Vec::with_capacity(self.pages.len());
        for (page, _) in self.pages {
            if let Some(&last) = pages.last()
                && last.space == page.space
                && (page.no - last.no) as usize <= WRITE_GAP_BYTES / self.page_size + 1
            {
                let between = (last.no + 1..page.no).map(|no| PageId::new(page.space, no));
                let writable = |page| pool.get(page).filter(|pin| !tier.found_with(page, header::lsn(&pin.read())));
                let pins: Option<Vec<_>> = between.map(writable).collect();
                for pin in pins.iter().flatten() {
                    let lsn = header::lsn(&pin.read());
                    pool.redo(pin, lsn, |_| ());
                    pages.push(pin.id());
                }
            }
            pages.push(*page);
        }
        pages
    }
}
