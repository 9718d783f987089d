//! Redo on demand: a level of [`Home`] above the flash tier. It has the changes that recovery has gathered, and repeats
//! those of a page when the page is read. So a database opens when its log has been read, whatever its disk can do; a
//! task reads the other pages in the background.
//!
//! ```text
//! recovery --hand_over--> WAITING --fetch: base from below, changes repeated--> shown in memory
//!                                                                                    | take_over, or dirtied
//!                                                                                    v
//!                                                                                  RISING --risen--> dirty in the pool
//! ```
//!
//! Source: Graefe, Guy & Sauer, *Instant Recovery with Write-Ahead Logging* (single-page recovery, on-demand restart);
//! here the base may be a frame of the flash tier.
//!
//! Invariants:
//! 1. *No stale page.* A page waits until its newest version is in memory and is about to be dirty there: whoever reads
//!    it before that gets it with its changes repeated. Its reader has claimed it, so no two repeat them at a time.
//! 2. While pages wait, or rise, the redo LSN stays where recovery began: a crash repeats everything. As in the tier
//!    (`flash`, invariant 4), what rose counts until the next scan begins.
//! 3. A page in memory does not wait. One that is to be made anew is read first: whoever makes it may wait for the redo
//!    LSN to move, and that waits for the page.
//! 4. The levels below know a waiting page as it was before its changes, and may move that version about.
//! 5. A page that cannot be made is reported to its reader. If it is in use, storage stops: what the disk has of it may
//!    look good. A page that was not in use when the database was opened need not be made (it may have been dropped
//!    before it was ever written): it stops waiting. Other errors (no frame is free) pass; they are tried again.

use super::gather::Changes;
use super::sweep::Sweeps;
use super::{is_decay, repeat};
use crate::config::{Safeguard, Safeguards};
use crate::error::{Result, StorageError};
use crate::flash::FlashHome;
use crate::home::{Fetched, Home, HomeFuture, Reason, Tier, WriteBack};
use crate::page::header;
use crate::pool::{Access, Pool};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::types::*;
use futures::StreamExt;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use terrace_device::IoBuf;
use terrace_env::Env;
use tokio::sync::Notify;

/// Runs of pages, and pages, that the background task reads at once: few, for statements are waiting for the same disk;
/// more where writers wait for the log, which waits for these pages.
const IN_FLIGHT: usize = 4;
const PRESSED: usize = 32;

/// How long it rests before it reads again what it could not read, and how often it does so in vain.
const AGAIN: Duration = Duration::from_millis(50);
const IN_VAIN: u32 = 100;

/// A page that waits.
struct Waiting {
    changes: Arc<Changes>,
    /// Invariant 5.
    used: bool,
}

/// A page on its way into the pool's dirty set, and the recLSN that rises with it from the level below.
struct Rising {
    page: PageId,
    below: Option<Lsn>,
}

#[derive(Default)]
struct Table {
    waiting: FxHashMap<PageId, Waiting>,
    rising: Vec<Rising>,
    /// Some have risen since the last scan began.
    risen: bool,
    /// The log that is repeated.
    range: (Lsn, Lsn),
}

impl Table {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.rising.is_empty() && !self.risen
    }
}

/// What the pool asks for its pages.
pub(crate) struct OnDemand {
    below: Arc<FlashHome>,
    page_size: usize,
    safeguards: Safeguards,
    /// The table is not empty. All others pay one read of this.
    active: AtomicBool,
    table: Mutex<Table>,
    ended: Notify,
}

impl OnDemand {
    pub(crate) fn new(below: Arc<FlashHome>, page_size: usize, safeguards: Safeguards) -> OnDemand {
        let (active, table) = (AtomicBool::new(false), Mutex::default());
        OnDemand { below, page_size, safeguards, active, table, ended: Notify::new() }
    }

    /// Pages that wait from now on, each with all changes that the log has of it in `range`, or all that its frame in
    /// the tier lacks. Before anybody has read one.
    pub(crate) fn hand_over(&self, pages: Vec<(PageId, Changes)>, range: (Lsn, Lsn)) {
        let mut table = self.table.lock();
        assert!(table.is_empty(), "a database is opened once");
        table.range = range;
        let waiting = |(page, changes)| (page, Waiting { changes: Arc::new(changes), used: true });
        table.waiting = pages.into_iter().map(waiting).collect();
        self.active.store(!table.is_empty(), Ordering::Release);
    }

    /// Says which of the waiting pages are in use, before anybody but recovery has seen the database.
    pub(crate) fn set_used(&self, is_used: impl Fn(PageId) -> bool) {
        self.table.lock().waiting.iter_mut().for_each(|(page, waiting)| waiting.used = is_used(*page));
    }

    /// How many pages wait.
    pub(crate) fn left(&self) -> u64 {
        if self.is_active() { self.table.lock().waiting.len() as u64 } else { 0 }
    }

    fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    fn changes_of(&self, page: PageId) -> Option<Arc<Changes>> {
        self.table.lock().waiting.get(&page).map(|waiting| waiting.changes.clone())
    }

    /// Invariant 5.
    fn give_up(&self, page: PageId) -> bool {
        let mut table = self.table.lock();
        let unused = table.waiting.get(&page).is_some_and(|waiting| !waiting.used);
        if unused {
            table.waiting.remove(&page);
        }
        unused
    }

    fn is_used(&self, page: PageId) -> bool {
        self.table.lock().waiting.get(&page).is_some_and(|waiting| waiting.used)
    }

    /// A waiting page becomes dirty in memory, under its latch; `below`: the recLSN that rises from there.
    fn raise(&self, page: PageId, below: Option<Lsn>) -> Option<Lsn> {
        let mut table = self.table.lock();
        let Some(waiting) = table.waiting.remove(&page) else { return below };
        table.rising.push(Rising { page, below });
        let own = waiting.changes.first();
        Some(below.map_or(own, |below| below.min(own)))
    }

    /// Invariant 1: repeats a page's changes on what the level below has of it.
    async fn redo(&self, page: PageId, changes: &Changes, base: Result<Fetched>) -> Result<Fetched> {
        let range = self.table.lock().range;
        let mut base = match base {
            Ok(base) => base,
            Err(error) if is_decay(&error) => return self.remake(page, range.0, error).await,
            Err(error) => return Err(error),
        };
        let found = header::lsn(&base.bytes);
        if found > range.1 {
            return Err(StorageError::Damaged(format!(
                "page {page} is at {found}, and the log ends at {}: the log has lost its end",
                range.1
            )));
        }
        match repeat(&mut base.bytes, page, changes, self.safeguards.has(Safeguard::PageChain)) {
            Ok(0) if !self.safeguards.has(Safeguard::VisitedPages) => {
                self.table.lock().waiting.remove(&page);
                Ok(base)
            }
            Ok(_) => Ok(Fetched { leaves: true, ..base }),
            Err(error) if is_decay(&error) => self.remake(page, range.0, error).await,
            Err(error) => Err(error),
        }
    }

    /// The base is no good: the page is made from the disk's version and all of the log since `from`, or from its
    /// beginning in the log.
    async fn remake(&self, page: PageId, from: Lsn, why: StorageError) -> Result<Fetched> {
        if !self.is_used(page) {
            return Err(why);
        }
        tracing::warn!(%page, "is made again from older log: {why}");
        let bytes = self.below.replay(&[(page, from)]).await.pop().expect("one page was asked for")?;
        Ok(Fetched { bytes, rec_lsn: None, tier: Tier::Disk, leaves: true })
    }

    /// A page that needs nothing from below.
    async fn fresh(&self, page: PageId, changes: &Changes) -> Result<Fetched> {
        let bytes = IoBuf::zeroed(self.page_size);
        self.redo(page, changes, Ok(Fetched { bytes, rec_lsn: None, tier: Tier::Disk, leaves: true })).await
    }

    async fn fetch_waiting(&self, first: PageId, count: u32, access: Access) -> Vec<Result<Fetched>> {
        if count == 1
            && let Some(changes) = self.changes_of(first).filter(|changes| changes.starts_afresh())
        {
            return vec![self.fresh(first, &changes).await];
        }
        let fetched = self.below.fetch(first, count, access).await;
        let mut pages = Vec::with_capacity(fetched.len());
        for (base, no) in fetched.into_iter().zip(first.no..) {
            let page = PageId::new(first.space, no);
            pages.push(match self.changes_of(page) {
                None => base,
                Some(changes) if changes.starts_afresh() => self.fresh(page, &changes).await,
                Some(changes) => self.redo(page, &changes, base).await,
            });
        }
        pages
    }

    /// Reads all waiting pages, in order of address. Returns when none waits, or when it is to `stop`; an error if one
    /// cannot be made, or if none can be read for a while. `pressed`: the log has little room until none waits.
    pub(crate) async fn finish(
        &self,
        pool: &Pool,
        env: &Env,
        stop: impl Fn() -> bool,
        pressed: impl Fn() -> bool,
    ) -> Result<()> {
        let (mut in_vain, mut said) = (0, false);
        while self.left() > 0 && !stop() {
            let before = self.left();
            let failed = self.finish_all(pool, &stop, &pressed).await?;
            in_vain = if self.left() < before { 0 } else { in_vain + 1 };
            match failed {
                Some(error) if in_vain >= IN_VAIN => return Err(error),
                Some(error) => {
                    if !std::mem::replace(&mut said, true) {
                        tracing::warn!("redo in the background has to try again: {error}");
                    }
                    env.sleep(AGAIN).await;
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Reads all pages that wait by now. Returns the last error that does not speak against a page.
    async fn finish_all(
        &self,
        pool: &Pool,
        stop: &impl Fn() -> bool,
        pressed: &impl Fn() -> bool,
    ) -> Result<Option<StorageError>> {
        let mut pages: Vec<(PageId, Arc<Changes>)> = {
            let table = self.table.lock();
            table.waiting.iter().map(|(page, waiting)| (*page, waiting.changes.clone())).collect()
        };
        pages.sort_unstable_by_key(|(page, _)| *page);
        let mut failed = None;
        for sweep in Sweeps::new(&pages, pool) {
            if stop() {
                break;
            }
            let at_once = if pressed() { PRESSED } else { IN_FLIGHT };
            sweep.read(pool, at_once).await;
            // Where memory is in use, nothing was read: each page waits for a frame here.
            let visited: Vec<PageId> = sweep.pages.iter().map(|(page, _)| *page).collect();
            let each = futures::stream::iter(visited).map(|page| self.finish_page(pool, page));
            let mut each = each.buffer_unordered(at_once);
            while let Some(ended) = each.next().await {
                failed = ended?.or(failed);
            }
            sweep.forget_gaps(pool);
        }
        Ok(failed)
    }

    async fn finish_page(&self, pool: &Pool, page: PageId) -> Result<Option<StorageError>> {
        if self.changes_of(page).is_none() {
            return Ok(None);
        }
        match pool.fetch(page, Access::Random).await {
            Ok(_) => Ok(None),
            Err(error) if is_decay(&error) && self.give_up(page) => Ok(None),
            Err(error) => match error {
                // Invariant 5.
                StorageError::Damaged(_) | StorageError::BadPage { .. } | StorageError::LostWrite { .. } => Err(error),
                passing => Ok(Some(passing)),
            },
        }
    }

    /// Waits until no page waits; `stop` ends it early.
    pub(crate) async fn finished<E>(
        &self,
        stop: impl Fn() -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if self.left() == 0 {
                return Ok(());
            }
            stop()?;
            ended.await;
        }
    }

    /// Who waits looks again why.
    pub(crate) fn wake(&self) {
        self.ended.notify_waiters();
    }
}

impl Home for OnDemand {
    fn fetch(&self, first: PageId, count: u32, access: Access) -> HomeFuture<'_, Vec<Result<Fetched>>> {
        match self.is_active() {
            false => self.below.fetch(first, count, access),
            true => Box::pin(self.fetch_waiting(first, count, access)),
        }
    }

    fn around(&self, page: PageId, access: Access) -> Range<u32> {
        self.below.around(page, access)
    }

    fn create(&self, page: PageId) {
        assert!(!self.is_waiting(page), "invariant 3: page {page} waits");
        self.below.create(page);
    }

    fn is_waiting(&self, page: PageId) -> bool {
        self.is_active() && self.changes_of(page).is_some()
    }

    fn give_up_waiting(&self, page: PageId) -> bool {
        self.give_up(page)
    }

    fn dirtied(&self, page: PageId) -> Option<Lsn> {
        let below = self.below.dirtied(page);
        if self.is_active() { self.raise(page, below) } else { below }
    }

    fn risen(&self, page: PageId, rec: Lsn) {
        if self.is_active() {
            let mut table = self.table.lock();
            if let Some(at) = table.rising.iter().position(|rising| rising.page == page) {
                let Rising { below, .. } = table.rising.swap_remove(at);
                table.risen = true;
                drop(table);
                below.into_iter().for_each(|rec| self.below.risen(page, rec));
                return;
            }
        }
        self.below.risen(page, rec);
    }

    fn take_over(&self, page: PageId) -> Option<Lsn> {
        match self.is_waiting(page) {
            true => self.dirtied(page), // The frame below is as old as the base.
            false => self.below.take_over(page),
        }
    }

    fn write_back(&self, pages: Vec<WriteBack>, reason: Reason) -> HomeFuture<'_, Result<()>> {
        self.below.write_back(pages, reason)
    }

    fn evicted_clean(&self, page: PageId, bytes: &[u8], access: Access) {
        self.below.evicted_clean(page, bytes, access);
    }

    fn forget(&self, space: SpaceId, first: u32, count: u32) {
        self.below.forget(space, first, count); // As with dirty frames: a crash may bring the pages back.
    }

    fn begin_scan(&self) {
        if self.is_active() {
            let mut table = self.table.lock();
            table.risen = false;
            self.active.store(!table.is_empty(), Ordering::Release);
        }
        self.below.begin_scan();
    }

    fn oldest_rec_lsn(&self) -> Option<Lsn> {
        let counts = self.is_active() && self.safeguards.has(Safeguard::Waiting);
        let here = counts.then(|| self.table.lock().range.0); // Invariant 2.
        here.into_iter().chain(self.below.oldest_rec_lsn()).min()
    }

    fn destage(&self, before: Lsn) -> HomeFuture<'_, Result<()>> {
        self.below.destage(before)
    }

    fn sync(&self) -> HomeFuture<'_, Result<()>> {
        self.below.sync()
    }

    fn failure(&self) -> Option<StorageError> {
        self.below.failure()
    }
}
