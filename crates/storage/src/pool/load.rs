//! Misses: claiming a page, finding a frame, reading.
//!
//! Invariants:
//! 1. The task that claims a page ends the page's `Loading` on every path: success, error, or the task being dropped.
//! 2. A failed read leaves neither a table entry nor a frame behind. Its error goes to everybody who waited for the
//!    page.
//! 3. A page that fails its checks is made again from the log under its claim. Nobody has the page and nobody else can
//!    bring it in, so the log up to its end holds all there is. Read-ahead leaves this to the task that wants the page.
//! 4. A task that waits for a frame is served by evictions. Evictions wait for the log and the home only, never for a
//!    frame. So misses and write-backs cannot wait for each other in a circle.

use super::pin::assert_unlatched;
use super::table::{Entry, Loading};
use super::{Access, Pin, Pool};
use crate::config::Classify;
use crate::error::{BadPage, Result, StorageError};
use crate::home::Fetched;
use crate::page::header;
use crate::reads::count_read;
use crate::recovery::{Base, Wanted};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::types::{Lsn, PageId, SpaceId};
use futures::future::{Either, join_all, select};
use std::collections::hash_map::Entry as Slot;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use terrace_policy::Class;

/// How long a miss waits before it looks for a frame again, at first and at most.
const FIRST_WAIT: Duration = Duration::from_millis(1);
const MAX_WAIT: Duration = Duration::from_millis(16);
/// How often in a row every frame may be found pinned before a miss gives up (about a second).
const ALL_PINNED_MAX: usize = 64;

enum PageLookup<'a> {
    Resident(Pin),
    Loading(Arc<Loading>),
    Claimed(Claim<'a>),
}

/// The right and the duty to bring a page in (invariant 1).
struct Claim<'a> {
    pool: &'a Pool,
    page: PageId,
    loading: Arc<Loading>,
    frame: Option<u32>,
    /// What the page counts as when it leaves memory, if that differs from how it was asked for.
    class: Option<Access>,
    settled: bool,
}

impl Claim<'_> {
    /// Shows the page, pinned, to everybody.
    fn install(mut self, bytes: Option<&[u8]>, access: Access) -> Pin {
        let class = self.class.unwrap_or(access);
        let frame = self.frame.take().expect("a frame was found for the claim");
        let pool = self.pool;
        pool.all().fill(frame, self.page, bytes, class);
        let pin = Pin::counted(pool.frames, frame);
        let before = pool.table.shard(self.page).write().insert(self.page.to_u64(), Entry::Resident(frame));
        assert!(matches!(before, Some(Entry::Loading(_))), "the claim stands in the table until it is settled");
        pool.admit(frame, self.page, access);
        self.settled = true;
        self.loading.end(None);
        pin
    }

    fn settle(&mut self, error: Option<StorageError>) {
        if std::mem::replace(&mut self.settled, true) {
            return;
        }
        let before = self.pool.table.shard(self.page).write().remove(&self.page.to_u64());
        assert!(matches!(before, Some(Entry::Loading(_))), "the claim stands in the table until it is settled");
        if let Some(frame) = self.frame.take() {
            self.pool.give_back(frame);
        }
        self.loading.end(error);
    }

    fn fail(mut self, error: StorageError) -> StorageError {
        self.settle(Some(error.clone()));
        error
    }

    fn finish(self, fetched: Result<Fetched>, access: Access) -> Result<Pin> {
        match fetched {
            Ok(page) => {
                assert!(page.bytes.len() == self.pool.page_size(), "the home returned {} bytes", page.bytes.len());
                let pool = self.pool;
                let pin = self.install(Some(&page.bytes), access);
                if page.leaves {
                    pool.take_over(&pin);
                }
                Ok(pin)
            }
            Err(error) => Err(self.fail(error)),
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.settle(None);
    }
}

impl Pool {
    fn find(&self, page: PageId) -> PageLookup<'_> {
        let mut shard = self.table.shard(page).write();
        match shard.entry(page.to_u64()) {
            Slot::Occupied(entry) => match entry.get() {
                Entry::Resident(frame) => {
                    self.all().pin(*frame);
                    PageLookup::Resident(Pin::counted(self.frames, *frame))
                }
                Entry::Loading(loading) => PageLookup::Loading(loading.clone()),
            },
            Slot::Vacant(entry) => {
                let loading = Loading::start();
                entry.insert(Entry::Loading(loading.clone()));
                PageLookup::Claimed(Claim { pool: self, page, loading, frame: None, class: None, settled: false })
            }
        }
    }

    /// Waits until the page is resident or this task has claimed it.
    async fn find_or_claim(&self, page: PageId, access: Access) -> Result<Result<Pin, Claim<'_>>> {
        loop {
            match self.find(page) {
                PageLookup::Resident(pin) => {
                    self.note_hit(pin.index(), page, access);
                    return Ok(Ok(pin));
                }
                PageLookup::Claimed(claim) => return Ok(Err(claim)),
                PageLookup::Loading(loading) => {
                    self.counters.joined.fetch_add(1, Ordering::Relaxed);
                    loading.wait().await?;
                }
            }
        }
    }

    pub(super) async fn load(&self, page: PageId, access: Access) -> Result<Pin> {
        assert_unlatched("fetching a page");
        let mut claim = match self.find_or_claim(page, access).await? {
            Ok(pin) => return Ok(pin),
            Err(claim) => claim,
        };
        match access {
            Access::Random => &self.counters.random_reads,
            Access::Sequential => &self.counters.sequential_reads,
        }
        .fetch_add(1, Ordering::Relaxed);
        match self.take_frame().await {
            Ok(frame) => claim.frame = Some(frame),
            Err(error) => return Err(claim.fail(error)),
        }
        claim.class = Some(self.classify(page, access, false));
        let (claim, fetched) = match self.home.around(page, access) {
            range if range.len() > 1 => self.fetch_around(claim, range, access).await,
            _ => {
                let fetched = self.fetch_one(page, access).await;
                (claim, fetched)
            }
        };
        match fetched {
            Err(StorageError::BadPage { why, .. }) if why.is_decay() => self.repair(claim, why, access).await,
            fetched => claim.finish(fetched, access),
        }
    }

    async fn fetch_one(&self, page: PageId, access: Access) -> Result<Fetched> {
        let mut fetched = self.timed_fetch(page, 1, access, Some(0)).await;
        assert!(fetched.len() == 1, "one page was asked for, {} came", fetched.len());
        fetched.pop().expect("counted")
    }

    /// Reads a wanted page in one request with its neighbours in `range` that are absent and for which frames are at
    /// hand (thesis, section 4.4.1.1). Those stay in memory as long as pages of a scan, but the tier below takes them
    /// for what was looked up.
    async fn fetch_around<'a>(
        &'a self,
        wanted: Claim<'a>,
        range: Range<u32>,
        access: Access,
    ) -> (Claim<'a>, Result<Fetched>) {
        let page = wanted.page;
        assert!(range.contains(&page.no), "page {page} is read with its neighbours, and they were {range:?}");
        let neighbour = |no: u32| {
            let PageLookup::Claimed(mut claim) = self.find(PageId::new(page.space, no)) else { return None };
            claim.frame = Some(self.try_take()?);
            claim.class = Some(Access::Random);
            Some(claim)
        };
        let mut claims: Vec<Claim<'a>> = (range.start..page.no).rev().map_while(neighbour).collect();
        claims.reverse();
        let at = claims.len();
        claims.push(wanted);
        claims.extend((page.no + 1..range.end).map_while(neighbour));
        self.counters.expanded.fetch_add(claims.len() as u64 - 1, Ordering::Relaxed);
        let mut fetched = self.timed_fetch(claims[0].page, claims.len() as u32, access, Some(at)).await;
        assert!(fetched.len() == claims.len(), "{} pages were asked for, {} came", claims.len(), fetched.len());
        let (wanted, mine) = (claims.remove(at), fetched.remove(at));
        for (claim, page) in claims.into_iter().zip(fetched) {
            match page {
                // Nobody asked for this page. A task that does will meet the error itself.
                Err(_) => drop(claim),
                page => drop(claim.finish(page, Access::Sequential)),
            }
        }
        (wanted, mine)
    }

    /// What a page that is read now counts as for the tier below, when it leaves memory; `ahead`: by the read-ahead.
    fn classify(&self, page: PageId, access: Access, ahead: bool) -> Access {
        let near = self.distance.lock().classify(page.to_u64()) == Class::Sequential;
        let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
        if ahead {
            count(&self.counters.read_ahead);
        }
        if near {
            count(if access == Access::Sequential {
                &self.counters.near_sequential
            } else {
                &self.counters.near_random
            });
        }
        let scan = match self.classify {
            Classify::Declared => access == Access::Sequential,
            Classify::ReadAhead => ahead,
            Classify::Distance => near,
        };
        if scan { Access::Sequential } else { Access::Random }
    }

    /// Invariant 3. Where the log does not reach back, the page stays damaged.
    async fn repair(&self, claim: Claim<'_>, why: BadPage, access: Access) -> Result<Pin> {
        let page = claim.page;
        let damaged = StorageError::BadPage { page, why };
        let Some(&redo_end) = self.repair_up_to.get() else { return Err(claim.fail(damaged)) };
        // While recovery reads, the log has no end of its own yet.
        let end = self.log.end();
        let upto = if end == Lsn(u64::MAX) { redo_end } else { end };
        let base = Base::Nothing(damaged, upto);
        let mut made = self.remaker.make(vec![Wanted { page, base, upto }]).await;
        let bytes = match made.pop().expect("one page was asked for") {
            Ok(bytes) => bytes,
            Err(e) => {
                tracing::error!(%page, "damaged ({why}), and the log cannot make it again");
                return Err(claim.fail(e));
            }
        };
        let lsn = header::lsn(&bytes);
        let pin = claim.install(Some(&bytes), access);
        self.redo(&pin, lsn, |_| ()); // Dirty: it goes home soon.
        self.counters.repaired.fetch_add(1, Ordering::Relaxed);
        Ok(pin)
    }

    /// Counts what was read for the task that asked. All pages except the one `wanted` are read ahead.
    async fn timed_fetch(
        &self,
        first: PageId,
        count: u32,
        access: Access,
        wanted: Option<usize>,
    ) -> Vec<Result<Fetched>> {
        let began = self.env.now();
        let fetched = self.home.fetch(first, count, access).await;
        // The time is that of the whole request: it goes to the tier of the first page.
        let mut nanos = self.env.now().0 - began.0;
        for (at, page) in fetched.iter().enumerate() {
            if let Ok(page) = page {
                count_read(first, page.tier, 1, std::mem::take(&mut nanos), wanted != Some(at));
            }
        }
        fetched
    }

    pub(super) async fn load_new(&self, page: PageId) -> Result<Pin> {
        assert_unlatched("making a page");
        let mut claim = match self.find_or_claim(page, Access::Random).await {
            Ok(Ok(pin)) => return Ok(pin),
            Ok(Err(claim)) => claim,
            // The page was read ahead, and its contents are not good: this is normal for a free page.
            Err(_) => return Box::pin(self.load_new(page)).await,
        };
        match self.take_frame().await {
            Ok(frame) => claim.frame = Some(frame),
            Err(error) => return Err(claim.fail(error)),
        }
        if self.home.is_waiting(page) {
            // Whoever makes it may wait for the redo LSN to move, which waits for this page.
            match self.fetch_one(page, Access::Random).await {
                // (The background task may have given it up meanwhile.)
                Err(StorageError::BadPage { .. } | StorageError::LostWrite { .. })
                    if self.home.give_up_waiting(page) || !self.home.is_waiting(page) => {}
                fetched => return claim.finish(fetched, Access::Random),
            }
        }
        self.home.create(page);
        Ok(claim.install(None, Access::Random))
    }

    /// Reads those of the pages (ascending) that are absent, each run of them in one request, all at the same time.
    /// Takes a quarter of the frames at most, and none that it would have to wait for.
    pub(super) async fn load_ahead(&self, space: SpaceId, pages: impl Iterator<Item = u32>) {
        assert_unlatched("reading ahead");
        // All pages are claimed before the first read begins, so a task that comes meanwhile joins the read and does
        // not split the run.
        let mut runs: Vec<Vec<Claim<'_>>> = Vec::new();
        let mut claimed = None;
        for no in pages.take(self.all().len() / 4) {
            let PageLookup::Claimed(mut claim) = self.find(PageId::new(space, no)) else { continue };
            let Some(frame) = self.try_take() else { break };
            claim.frame = Some(frame);
            match runs.last_mut().filter(|_| claimed == no.checked_sub(1)) {
                Some(run) => run.push(claim),
                None => runs.push(vec![claim]),
            }
            claimed = Some(no);
        }
        join_all(runs.into_iter().map(|run| self.load_run(run))).await;
    }

    async fn load_run(&self, mut claims: Vec<Claim<'_>>) {
        if claims.is_empty() {
            return;
        }
        self.counters.sequential_reads.fetch_add(claims.len() as u64, Ordering::Relaxed);
        claims.iter_mut().for_each(|claim| claim.class = Some(self.classify(claim.page, Access::Sequential, true)));
        let fetched = self.timed_fetch(claims[0].page, claims.len() as u32, Access::Sequential, None).await;
        assert!(fetched.len() == claims.len(), "{} pages were asked for, {} came", claims.len(), fetched.len());
        for (claim, page) in claims.into_iter().zip(fetched) {
            match page {
                // Tasks that waited look again, and meet the damage themselves (invariant 3).
                Err(StorageError::BadPage { .. }) => drop(claim),
                // Tasks that waited have the error. A task that wants the page later will meet it again.
                page => drop(claim.finish(page, Access::Sequential)),
            }
        }
    }

    /// A free frame, if there is one or a clean victim near at hand.
    fn try_take(&self) -> Option<u32> {
        let frame = self.replacer.pop_free();
        if self.replacer.free_count() < self.reserve {
            self.wake_cleaner.notify_one();
        }
        frame.or_else(|| {
            self.sweep(1, self.reserve.max(16));
            self.replacer.pop_free()
        })
    }

    /// A free frame. Waits while victims are being written; gives up when every page stays pinned.
    async fn take_frame(&self) -> Result<u32> {
        let mut all_pinned = 0;
        let mut wait = FIRST_WAIT;
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable(); // Before looking, so that no wake-up is lost.
            if let Some(frame) = self.try_take() {
                return Ok(frame);
            }
            if let Some(error) = self.eviction_failure() {
                return Err(error);
            }
            self.wake_cleaner.notify_one();
            if let Either::Left(_) = select(freed, self.env.sleep(wait)).await {
                continue;
            }
            wait = (wait * 2).min(MAX_WAIT);
            let stuck = self.all().iter().all(|f| f.page().is_none() || f.pins() > 0 && !f.is_writing());
            all_pinned = if stuck { all_pinned + 1 } else { 0 };
            if all_pinned >= ALL_PINNED_MAX {
                return Err(StorageError::PoolExhausted(self.all().len()));
            }
        }
    }

    fn give_back(&self, frame: u32) {
        self.replacer.push_free(frame);
        self.freed.notify_waiters();
    }
}
