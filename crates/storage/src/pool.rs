//! The buffer pool: pages in frames of one allocation. They are found through a sharded table, replaced by a policy,
//! and read and written through their home. Architecture: section 5. After Effelsberg & Haerder, "Principles of
//! Database Buffer Management" (1984); hits are buffered on their way to the policy as in Ding, Jiang & Zhang,
//! "BP-Wrapper" (2009).
//!
//! The parts and their invariants: [`frame`] (memory, dirty state), [`pin`] (pins and latches), [`table`] (who is
//! where), [`load`] (misses), [`ahead`] (reading ahead), [`replace`] (victims), [`write`] (writing home; why
//! checkpoints miss nothing).

mod ahead;
#[cfg(test)]
pub(crate) mod fixture;
mod frame;
mod load;
#[cfg(all(test, feature = "shuttle"))]
pub(crate) mod models;
mod pin;
mod replace;
#[cfg(test)]
mod stress;
mod table;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use replace::class_of;

use crate::config::{Classify, Safeguard, Safeguards, StorageConfig};
use crate::error::{Result, StorageError};
use crate::home::Home;
use crate::log::Log;
use crate::recovery::Remaker;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::types::*;
pub use ahead::Prefetching;
use frame::Frames;
pub use pin::{Pin, ReadGuard, WriteGuard};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use table::Entry;
use terrace_env::Env;
use terrace_policy::flash::DistanceRule;
use tokio::sync::{Notify, Semaphore};

/// The fewest frames a pool may have: a mini-transaction pins several pages, and several run.
pub(crate) const MIN_FRAMES: usize = 8;
/// Frames kept free for misses: this part of all, at most `MAX_RESERVE`.
const RESERVE_PART: usize = 32;
const MAX_RESERVE: usize = 128;
/// Groups whose copies may be in memory at a time.
const GROUPS_IN_FLIGHT: usize = 4;
/// How long `forget` waits between looks at a page that is still pinned, and how often it looks before that is a bug.
const FORGET_WAIT: Duration = Duration::from_millis(1);
const FORGET_PATIENCE: usize = 60_000;

/// How a page is going to be used; read-ahead marks pages sequential.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Random,
    Sequential,
}

/// Counters since the pool was made.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct PoolStats {
    /// Pages found resident.
    pub hits: u64,
    /// Pages read because they were asked for singly, or as part of a scan or of read-ahead.
    pub random_reads: u64,
    pub sequential_reads: u64,
    /// Requests that joined a read under way.
    pub joined: u64,
    /// Pages that left memory.
    pub evictions: u64,
    /// Pages written to make room, and written by age or for a checkpoint.
    pub dirty_evictions: u64,
    pub written: u64,
    /// Pages that failed their checks and were made again from the log.
    pub repaired: u64,
    /// Neighbours read with a page that was wanted, while the tier below is being filled.
    pub expanded: u64,
    /// Pages read by read-ahead; pages near the one read before, asked for as part of a scan and singly ([`Classify`]).
    pub read_ahead: u64,
    pub near_sequential: u64,
    pub near_random: u64,
}

#[derive(Default)]
struct Counters {
    random_reads: AtomicU64,
    sequential_reads: AtomicU64,
    joined: AtomicU64,
    evictions: AtomicU64,
    dirty_evictions: AtomicU64,
    written: AtomicU64,
    repaired: AtomicU64,
    expanded: AtomicU64,
    read_ahead: AtomicU64,
    near_sequential: AtomicU64,
    near_random: AtomicU64,
}

/// The buffer pool. `Arc<Pool>` is shared by everyone.
pub struct Pool {
    me: Weak<Pool>,
    env: Env,
    home: Arc<dyn Home>,
    log: Log,
    frames: NonNull<Frames>,
    table: table::Table,
    replacer: replace::Replacer,
    counters: Counters,
    classify: Classify,
    distance: Mutex<DistanceRule>,
    /// Frames kept free.
    reserve: usize,
    /// Pages written together.
    write_group: usize,
    /// Of a checkpoint.
    groups_at_once: usize,
    log_before_data: bool,
    /// The safeguard: changes of undo pages are logged.
    pub(crate) undo_logging: bool,
    pub(crate) safeguards: Safeguards,
    /// Page copies that may be in memory, in pages.
    copies: Semaphore,
    wake_cleaner: Arc<Notify>,
    freed: Notify,
    write_done: Notify,
    /// Why the last eviction of dirty pages failed.
    failure: Mutex<Option<StorageError>>,
    /// Set when damaged pages may be made again from the log: up to here while the log is not open for writing.
    repair_up_to: OnceLock<Lsn>,
    remaker: Remaker,
}

// SAFETY: `frames` points to a `Frames`, which is Send and Sync, and which lives as long as the pool.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    /// `config.pool_bytes` worth of frames over a home; the log is flushed up to a page's LSN before the page is
    /// written back (R4; not where the safeguard `log_before_data` is off).
    pub(crate) fn new(env: Env, config: &StorageConfig, home: Arc<dyn Home>, log: Log) -> Arc<Pool> {
        let count = config.pool_bytes / config.page_size;
        assert!(count >= MIN_FRAMES, "a buffer pool of {count} pages; {MIN_FRAMES} are the least");
        assert!(config.write_group > 0, "pages are written in groups of at least one");
        let wake_cleaner = Arc::new(Notify::new());
        let repairs = log.clone();
        let pool = Arc::new_cyclic(|me: &Weak<Pool>| Pool {
            me: me.clone(),
            env: env.clone(),
            home,
            log,
            frames: Frames::allocate(count, config.page_size, env.is_simulated()),
            table: table::Table::new(),
            replacer: replace::Replacer::new(config.pool_policy, count),
            counters: Counters::default(),
            classify: config.flash.classify,
            distance: Mutex::new(DistanceRule::default()),
            reserve: (count / RESERVE_PART).clamp(1, MAX_RESERVE),
            write_group: config.write_group,
            log_before_data: config.safeguards.has(Safeguard::LogBeforeData),
            undo_logging: config.safeguards.has(Safeguard::UndoLogging),
            safeguards: config.safeguards,
            copies: Semaphore::new(match config.sharp_checkpoints {
                true => count.max(config.write_group),
                false => config.write_group * GROUPS_IN_FLIGHT,
            }),
            groups_at_once: if config.sharp_checkpoints { usize::MAX } else { 1 },
            wake_cleaner: wake_cleaner.clone(),
            freed: Notify::new(),
            write_done: Notify::new(),
            failure: Mutex::new(None),
            repair_up_to: OnceLock::new(),
            remaker: Remaker::new(repairs, config.page_size),
        });
        pool.log.spawn("pool cleaner", write::cleaner(Arc::downgrade(&pool), wake_cleaner));
        pool
    }

    fn all(&self) -> &Frames {
        // SAFETY: allocated in `new`, given up in `drop`.
        unsafe { self.frames.as_ref() }
    }

    /// All changes in the log, up to `end`, are in the pages. From now on a damaged page is made again from the log.
    pub(crate) fn repair_up_to(&self, end: Lsn) {
        assert!(self.repair_up_to.set(end).is_ok(), "redo ends once");
    }

    /// The log that the pool's pages are logged in.
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// What makes damaged pages again.
    pub(crate) fn remaker(&self) -> &Remaker {
        &self.remaker
    }

    pub(crate) fn home(&self) -> &dyn Home {
        &*self.home
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> usize {
        self.all().page_size()
    }

    /// Number of frames.
    pub fn frames(&self) -> usize {
        self.all().len()
    }

    /// Number of dirty pages.
    pub fn dirty(&self) -> usize {
        self.all().dirty()
    }

    /// Number of frames that hold a page.
    pub fn resident(&self) -> usize {
        self.all().iter().filter(|f| f.page().is_some()).count()
    }

    /// The smallest recLSN of dirty pages, those included that are being written back: a page leaves only after
    /// `home.write_back` returned Ok. The checkpoint reads `log.end()`, then this, then `home.oldest_rec_lsn()`
    /// (write.rs, invariant 3).
    pub(crate) fn min_rec_lsn(&self) -> Option<Lsn> {
        self.all().min_rec_lsn()
    }

    pub fn stats(&self) -> PoolStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PoolStats {
            hits: self.replacer.hits(),
            random_reads: get(&self.counters.random_reads),
            sequential_reads: get(&self.counters.sequential_reads),
            joined: get(&self.counters.joined),
            evictions: get(&self.counters.evictions),
            dirty_evictions: get(&self.counters.dirty_evictions),
            written: get(&self.counters.written),
            repaired: get(&self.counters.repaired),
            expanded: get(&self.counters.expanded),
            read_ahead: get(&self.counters.read_ahead),
            near_sequential: get(&self.counters.near_sequential),
            near_random: get(&self.counters.near_random),
        }
    }

    /// The pin of a resident page, at once; `None` where it must be read.
    pub fn get(&self, page: PageId) -> Option<Pin> {
        self.get_for(page, Access::Random)
    }

    fn get_for(&self, page: PageId, access: Access) -> Option<Pin> {
        let pin = self.peek(page)?;
        self.note_hit(pin.index(), page, access);
        Some(pin)
    }

    /// As `get`, but policy and statistics do not count it.
    fn peek(&self, page: PageId) -> Option<Pin> {
        let shard = self.table.shard(page).read();
        let Some(Entry::Resident(frame)) = shard.get(&page.to_u64()) else { return None };
        self.all().expect(*frame);
        self.all().pin(*frame); // Under the shard's lock: table.rs, invariant 1.
        Some(Pin::counted(self.frames, *frame))
    }

    /// Pins a page, and reads it through its home if needed (one read for any number of concurrent misses). A page that
    /// fails its checks is made again from the log, if that reaches back far enough. Errors: that of the home (every
    /// waiter gets it), and `PoolExhausted` if all frames stay pinned.
    pub async fn fetch(&self, page: PageId, access: Access) -> Result<Pin> {
        match self.get_for(page, access) {
            Some(pin) => Ok(pin),
            // Boxed so that the future of a hit, which is nearly every one, stays small.
            None => Box::pin(self.load(page, access)).await,
        }
    }

    /// Pins a frame for a page that is about to be formatted; nothing is read. The frame has zeros, unless the page is
    /// still resident.
    pub async fn create(&self, page: PageId) -> Result<Pin> {
        match self.get(page) {
            Some(pin) => Ok(pin),
            None => Box::pin(self.load_new(page)).await,
        }
    }

    /// Drops the pages of a freed range from memory. Nobody may hold pins for long.
    ///
    /// Dirty ones are written first. Until the log of the freeing is durable, a crash brings them back, and redo of
    /// earlier changes must find each page as the log left it. (A dropped change would look like a lost write.)
    pub async fn forget(&self, space: SpaceId, first: u32, count: u32) {
        pin::assert_unlatched("forgetting pages");
        let pages: Vec<PageId> = (first..first.saturating_add(count)).map(|no| PageId::new(space, no)).collect();
        if let Err(error) = self.write_range(&pages).await {
            tracing::warn!(%error, "freed pages stay in memory");
            return;
        }
        for page in pages {
            for attempt in 0.. {
                let resident = self.table.shard(page).read().contains_key(&page.to_u64());
                if !resident || self.try_free(page, false) {
                    break;
                }
                assert!(attempt < FORGET_PATIENCE, "page {page} was freed and is still in use");
                self.env.sleep(FORGET_WAIT).await;
                if self.write_range(&[page]).await.is_err() {
                    return;
                }
            }
        }
        self.freed.notify_waiters();
        self.home.forget(space, first, count);
    }

    /// Writes a page home if it is dirty.
    #[cfg(test)]
    pub(crate) async fn write_page(&self, page: PageId) -> Result<()> {
        self.write_range(&[page]).await
    }

    /// Number of frames that hold nothing.
    pub(crate) fn free(&self) -> usize {
        self.replacer.free_count()
    }

    /// Redo: a page that was only read along with others need not stay.
    pub(crate) fn drop_clean(&self, page: PageId) {
        self.try_free(page, false);
    }

    /// Redo (and page repair): changes a page's bytes outside of a mini-transaction, marks it dirty with `rec_lsn`
    /// (kept where it is dirty with a smaller one); `change` stamps the page LSN.
    pub(crate) fn redo(&self, pin: &Pin, rec_lsn: Lsn, change: impl FnOnce(&mut [u8])) {
        let mut page = pin.write();
        let below = self.home.dirtied(pin.id());
        page.mark_dirty(below.map_or(rec_lsn, |rec| rec.min(rec_lsn)));
        if let Some(rec) = below {
            self.home.risen(pin.id(), rec);
        }
        change(&mut page);
    }

    /// A page that was read leaves the tier below. From now on memory has the newest version; it is dirty if it was
    /// dirty in the tier.
    fn take_over(&self, pin: &Pin) {
        let page = pin.write();
        if let Some(rec) = self.home.take_over(pin.id()) {
            page.mark_dirty(rec);
            self.home.risen(pin.id(), rec);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.wake_cleaner.notify_one(); // It finds the pool gone.
        // SAFETY: called once; the pool, which alone could make a first pin, is gone.
        unsafe { Frames::abandon(self.frames) }
    }
}
