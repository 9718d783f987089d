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
//! 2. While pages wait, or rise, redo LSN and retain LSN stay where they were when recovery began: a crash repeats
//!    everything. As in the tier
//!    (`flash`, invariant 4), what rose counts until the next scan begins.
//! 3. A page in memory does not wait. One that is to be made anew is read first: whoever makes it may wait for the redo
//!    LSN to move, and that waits for the page.
//! 4. The levels below know a waiting page as it was before its changes, and may move that version about.
//! 5. A page that cannot be made is reported to its reader. If it is in use, storage stops: what the disk has of it may
//!    look good. A page that was not in use when the database was opened need not be made (it may have been dropped
//!    before it was ever written): it stops waiting. Other errors (no frame is free) pass; they are tried again.
//! 6. A page may *lack* changes from below where redo began (`flash::attach`, invariant 6): it waits with the LSN that
//!    it must have, and with no changes or later ones. An older version is brought up to date from the log; if it does
//!    not lead to that LSN, the page is made again from the disk's version or its beginning. One that is as new need
//!    not be durable (recovery, invariant 4), so it becomes dirty like any other.

use super::gather::Changes;
use super::sweep::{Afresh, Sweeps};
use super::{is_decay, repeat};
use crate::config::{Safeguard, Safeguards};
use crate::error::{BadPage, Result, StorageError};
use crate::flash::{BatchSpan, FlashHome, Lack, Lacking};
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

/// Runs of pages, and pages, that the background task reads at once: few, for statements are waiting for the same
/// devices and the same processor; more where writers wait for the log, which waits for these pages.
const IN_FLIGHT: usize = 4;
const PRESSED: usize = 32;

/// How long it rests before it reads again what it could not read, and how often it does so in vain.
const AGAIN: Duration = Duration::from_millis(50);
const IN_VAIN: u32 = 100;

/// A page that waits.
#[derive(Clone)]
struct Waiting {
    changes: Arc<Changes>,
    /// Where what the disk may lack begins, or earlier.
    since: Lsn,
    /// The least LSN of a base (invariant 6).
    least: Lsn,
    /// Where in the log what it may lack is, if that is known (`flash::lacking`, invariant 1).
    places: Option<Arc<[BatchSpan]>>,
    /// Invariant 5.
    used: bool,
}

/// A page whose base is not enough, and why; a sound base that only lacks what the log's indexes named.
struct Short {
    page: PageId,
    why: StorageError,
    base: Option<Fetched>,
}

/// A version of a page, and what it lacks: what begins at or behind one LSN, up to another.
type Version = (PageId, IoBuf, (Lsn, Lsn));

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
    /// The log of which pages may lack changes.
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
    /// The background task is at work.
    at_work: AtomicBool,
    ended: Notify,
}

/// The background task: at work until this is dropped.
pub(crate) struct AtWork(Arc<OnDemand>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.at_work.store(false, Ordering::Release);
        self.0.wake();
    }
}

impl OnDemand {
    pub(crate) fn new(below: Arc<FlashHome>, page_size: usize, safeguards: Safeguards) -> OnDemand {
        let (active, table) = (AtomicBool::new(false), Mutex::default());
        OnDemand { below, page_size, safeguards, active, table, at_work: AtomicBool::new(false), ended: Notify::new() }
    }

    /// The background task begins.
    pub(crate) fn begin_work(self: Arc<Self>) -> AtWork {
        self.at_work.store(true, Ordering::Release);
        AtWork(self)
    }

    /// Waits until the background task has ended: what it still reads would become dirty.
    pub(crate) async fn work_ended(&self) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if !self.at_work.load(Ordering::Acquire) {
                return;
            }
            ended.await;
        }
    }

    /// Pages that wait from now on, each with all changes that the log has of it where it was repeated, or all that its
    /// frame in the tier lacks; and those that lack earlier ones. `range`: from where on pages may lack changes, to the
    /// log's end. Before anybody has read one.
    pub(crate) fn hand_over(&self, pages: Vec<(PageId, Changes)>, mut lacking: Lacking, range: (Lsn, Lsn)) {
        let mut table = self.table.lock();
        assert!(table.is_empty(), "a database is opened once");
        table.range = range;
        let more = pages.iter().filter(|(page, _)| !lacking.has(*page)).count();
        table.waiting.reserve(lacking.len() + more); // (A table that grows is there twice.)
        let waiting = |changes: Arc<Changes>, Lack { since, last: least, places }: Lack| Waiting {
            changes,
            since,
            least,
            places,
            used: true,
        };
        let changed = |(page, changes): (PageId, Changes)| {
            let first = changes.first();
            let lack = lacking.take(page).unwrap_or(Lack { since: first, last: Lsn(0), places: None });
            (page, waiting(Arc::new(changes), Lack { since: lack.since.min(first), ..lack }))
        };
        table.waiting.extend(pages.into_iter().map(changed));
        let none = Arc::new(Changes::default());
        let lacks = |(page, lack)| (page, waiting(none.clone(), lack));
        table.waiting.extend(lacking.into_pages().map(lacks));
        self.active.store(!table.is_empty(), Ordering::Release);
    }

    /// Says which of the waiting pages are in use, before anybody but recovery has seen the database.
    pub(crate) fn set_used(&self, is_used: impl Fn(PageId) -> bool) {
        self.table.lock().waiting.iter_mut().for_each(|(page, waiting)| waiting.used = is_used(*page));
    }

    /// The page is made anew from the log: what is below does not matter any more.
    pub(crate) fn need_nothing(&self, page: PageId) {
        self.table.lock().waiting.remove(&page);
    }

    /// How many pages wait.
    pub(crate) fn left(&self) -> u64 {
        if self.is_active() { self.table.lock().waiting.len() as u64 } else { 0 }
    }

    fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    fn waiting(&self, page: PageId) -> Option<Waiting> {
        self.table.lock().waiting.get(&page).cloned()
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
        Some(below.map_or(waiting.since, |below| below.min(waiting.since)))
    }

    /// Invariant 1: repeats a page's changes on what the level below has of it. `Err`: that is not enough.
    fn redo(
        &self,
        page: PageId,
        waiting: &Waiting,
        base: Result<Fetched>,
    ) -> std::result::Result<Result<Fetched>, Short> {
        let end = self.table.lock().range.1;
        let mut base = match base {
            Ok(base) => base,
            Err(why) if is_decay(&why) => return Err(Short { page, why, base: None }),
            Err(error) => return Ok(Err(error)),
        };
        let found = header::lsn(&base.bytes);
        if found > end {
            return Ok(Err(StorageError::Damaged(format!(
                "page {page} is at {found}, and the log ends at {end}: the log has lost its end"
            ))));
        }
        let afresh = waiting.changes.starts_afresh();
        if found < waiting.least && !afresh && self.safeguards.has(Safeguard::Lacking) {
            let expected = Some(waiting.least).filter(|least| *least != Lack::UNKNOWN);
            let why = StorageError::LostWrite { page, found, expected };
            // (The beginning of a page may be all that is known of it.)
            let base = Some(base).filter(|_| waiting.least <= end && waiting.used);
            return Err(Short { page, why, base });
        }
        match repeat(&mut base.bytes, page, &waiting.changes, self.safeguards.has(Safeguard::PageChain)) {
            Ok(0) if !self.safeguards.has(Safeguard::VisitedPages) => {
                self.table.lock().waiting.remove(&page);
                Ok(Ok(base))
            }
            Ok(_) => Ok(Ok(Fetched { leaves: true, ..base })),
            Err(why) if is_decay(&why) => Err(Short { page, why, base: None }),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Makes these pages: from their bases where those are sound, else again.
    async fn make(&self, mut short: Vec<Short>) -> Vec<Result<Fetched>> {
        let (mut wanted, mut bases) = (Vec::new(), Vec::new());
        for (at, short) in short.iter_mut().enumerate() {
            if let (Some(base), Some(waiting)) = (short.base.take(), self.waiting(short.page)) {
                let Fetched { bytes, tier, .. } = base;
                wanted.push((short.page, bytes, tier, waiting.clone()));
                bases.push((at, waiting, tier));
            }
        }
        let brought = self.bring_up(wanted).await;
        let mut made: Vec<Option<Result<Fetched>>> = short.iter().map(|_| None).collect();
        for ((at, waiting, tier), bytes) in bases.into_iter().zip(brought) {
            let base = bytes.map(|bytes| Fetched { bytes, tier, leaves: true });
            made[at] = match self.redo(short[at].page, &waiting, base) {
                Ok(redone) => Some(redone.map(|redone| Fetched { leaves: true, ..redone })),
                Err(_) => None,
            };
        }
        let lost = short.into_iter().zip(&made).filter(|(_, made)| made.is_none());
        let mut remade = self.remake(lost.map(|(short, _)| (short.page, short.why)).collect()).await.into_iter();
        made.into_iter().map(|page| page.unwrap_or_else(|| remade.next().expect("one for each page lost"))).collect()
    }

    /// These versions with what they lack of the settled part of the log. (What comes behind it is at hand.)
    async fn bring_up(&self, wanted: Vec<(PageId, IoBuf, Tier, Waiting)>) -> Vec<Result<IoBuf>> {
        let each = wanted.into_iter().map(|(page, bytes, tier, waiting)| async move {
            match self.bring_up_by_places(page, bytes, &waiting).await {
                // An older frame is no base after all: the page has changed between. The disk has that, or nothing.
                Err(version) if tier == Tier::Flash => match self.below.disk_version(page).await {
                    Ok(bytes) => self.bring_up_by_places(page, bytes, &waiting).await,
                    Err(_) => Err(version),
                },
                brought => brought,
            }
        });
        let tried: Vec<_> = futures::stream::iter(each).buffered(PRESSED).collect().await;
        let (mut brought, mut left) = (Vec::with_capacity(tried.len()), Vec::new());
        for one in tried {
            brought.push(one.map_err(|version| left.push(version)).ok());
        }
        let left = if left.is_empty() { Vec::new() } else { self.below.bring_up(left).await };
        let mut left = left.into_iter();
        let brought = brought.into_iter().map(|one| one.map(Ok));
        brought.map(|one| one.unwrap_or_else(|| left.next().expect("one for each that was left"))).collect()
    }

    /// The version with what the known places have; itself, and what it lacks, if they do not lead to what it must be.
    async fn bring_up_by_places(
        &self,
        page: PageId,
        version: IoBuf,
        waiting: &Waiting,
    ) -> std::result::Result<IoBuf, Version> {
        let found = header::lsn(&version);
        if let Some(places) = &waiting.places {
            let from = places.partition_point(|(_, end)| *end <= found);
            if let Some(changes) = self.below.changes_at(page, &places[from..]).await {
                let mut bytes = IoBuf::padded(&version);
                if repeat(&mut bytes, page, &changes, true).is_ok() && header::lsn(&bytes) == waiting.least {
                    return Ok(bytes);
                }
            }
        }
        Err((page, version, (found.max(waiting.since), waiting.least)))
    }

    /// The bases of these pages are no good, each for a reason: they are made from the disk's versions and all of the
    /// log that they may lack, or from their beginnings in the log.
    async fn remake(&self, lost: Vec<(PageId, StorageError)>) -> Vec<Result<Fetched>> {
        let from = self.table.lock().range.0;
        let used = |(page, why): (PageId, StorageError)| if self.is_used(page) { Ok(page) } else { Err(why) };
        self.say_made_again(&lost);
        let lost: Vec<std::result::Result<PageId, StorageError>> = lost.into_iter().map(used).collect();
        let wanted: Vec<(PageId, Lsn)> = lost.iter().flatten().map(|&page| (page, from)).collect();
        let mut made = if wanted.is_empty() { Vec::new() } else { self.below.replay(&wanted).await }.into_iter();
        let fetched = |bytes| Fetched { bytes, tier: Tier::Disk, leaves: true };
        lost.into_iter().map(|page| page.and_then(|_| made.next().expect("one for each page")).map(fetched)).collect()
    }

    /// Of pages in use that are damaged, or may be too old. (A page that was never home is sound: its frame had given
    /// its room away, and memory its last version.)
    fn say_made_again(&self, lost: &[(PageId, StorageError)]) {
        let damaged = |why: &StorageError| !matches!(why, StorageError::BadPage { why: BadPage::Blank, .. });
        let mut bad = lost.iter().filter(|(page, why)| damaged(why) && self.is_used(*page));
        if let Some((first, why)) = bad.next() {
            tracing::warn!(pages = 1 + bad.count(), %first, "pages are made again from older log: {why}");
        }
    }

    fn zeros(&self) -> Result<Fetched> {
        Ok(Fetched { bytes: IoBuf::zeroed(self.page_size), tier: Tier::Disk, leaves: true })
    }

    async fn fetch_waiting(&self, first: PageId, count: u32, access: Access) -> Vec<Result<Fetched>> {
        let afresh = |waiting: &Waiting| waiting.changes.starts_afresh(); // It needs nothing from below.
        let fetched = match self.waiting(first) {
            Some(waiting) if count == 1 && afresh(&waiting) => vec![self.zeros()],
            _ => self.below.fetch(first, count, access).await,
        };
        let (mut pages, mut short) = (Vec::with_capacity(fetched.len()), Vec::new());
        for (base, no) in fetched.into_iter().zip(first.no..) {
            let page = PageId::new(first.space, no);
            let redone = match self.waiting(page) {
                None => Ok(base),
                Some(waiting) if afresh(&waiting) => self.redo(page, &waiting, self.zeros()),
                Some(waiting) => self.redo(page, &waiting, base),
            };
            pages.push(redone.map_err(|page| short.push(page)).ok());
        }
        let mut made = self.make(short).await.into_iter();
        pages.into_iter().map(|page| page.unwrap_or_else(|| made.next().expect("one for each page lost"))).collect()
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
        // (Their changes stay in the table, which lets go of them page by page.)
        let mut pages: Vec<(PageId, Afresh)> = {
            let mut table = self.table.lock();
            table.waiting.retain(|_, waiting| waiting.used); // Invariant 5.
            let afresh = |waiting: &Waiting| Afresh(waiting.changes.starts_afresh());
            table.waiting.iter().map(|(page, waiting)| (*page, afresh(waiting))).collect()
        };
        pages.sort_unstable_by_key(|(page, _)| *page);
        let mut failed = None;
        for sweep in Sweeps::new(&pages, pool, &self.below) {
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
        if self.waiting(page).is_none() {
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
        self.is_active() && self.waiting(page).is_some()
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
            if table.is_empty() {
                (table.waiting, table.rising) = Default::default(); // The room for all of them goes.
            }
            self.active.store(!table.is_empty(), Ordering::Release);
        }
        self.below.begin_scan();
    }

    fn oldest_rec_lsn(&self) -> Option<Lsn> {
        let counts = self.is_active() && self.safeguards.has(Safeguard::Waiting);
        let here = counts.then(|| self.table.lock().range.0); // Invariant 2.
        here.into_iter().chain(self.below.oldest_rec_lsn()).min()
    }

    fn oldest_redo(&self) -> Option<Lsn> {
        let counts = self.is_active() && self.safeguards.has(Safeguard::Waiting);
        let here = counts.then(|| self.table.lock().range.0);
        here.into_iter().chain(self.below.oldest_redo()).min()
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
