//! Writing dirty pages home: for eviction, by age, for checkpoints.
//!
//! Invariants:
//! 1. A copy is taken under the page's latch, sealed, and only then does its write wait for the log up to the copy's
//!    LSN (R4).
//! 2. A page stops being dirty when `home.write_back` has returned Ok, and not before. If it has changed since the
//!    copy, it stays dirty with the recLSN of those changes.
//! 3. *Checkpoints miss nothing.* A mini-transaction marks its pages dirty with a recLSN not above the log's end, then
//!    appends. A checkpoint reads the log's end E, then scans the frames, then asks the home. A change whose batch ends
//!    at or below E was marked before it was appended, so before E was read. Then the scan finds its page dirty, with a
//!    recLSN at or below the batch; or the page has left the dirty set by then, and the home counts it (by 2; the home
//!    is asked last). A change that the scan may miss was appended after E was read. It lies at or above E, and the
//!    redo LSN never exceeds E.
//! 4. A group in flight is a task of its own, so it goes on if its caller goes away (frame.rs, invariant 3, needs its
//!    end).

use super::pin::assert_unlatched;
use super::{Pin, Pool};
use crate::error::{Result, StorageError};
use crate::home::{Reason, WriteBack};
use crate::page::header;
use crate::sync::atomic::Ordering;
use crate::types::{DATA, Lsn, PageId};
use futures::future::try_join_all;
use std::sync::{Arc, Weak};
use std::time::Duration;
use terrace_device::IoBuf;
use tokio::sync::{Notify, oneshot};

/// Pages written early together: each is a request of its own on the flash device.
const EARLY: usize = 16;

/// How long the cleaner rests after a failed write.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// A page that is being written. If this is dropped before the end, the page stays as dirty as it was.
struct Writing {
    pin: Pin,
    taken: bool,
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.pin.frames().end_writing(self.pin.index(), self.taken);
    }
}

/// What became of a group.
#[derive(Default)]
struct GroupWrite {
    written: Vec<PageId>,
    /// Were being written by somebody else.
    busy: Vec<PageId>,
}

impl Pool {
    /// Writes dirty pages with recLSN < `before` home, the oldest, at most `max`, in groups sorted by address; returns
    /// how many were found. Pages dirtied again meanwhile stay dirty. Those that somebody else writes count, too, and
    /// are waited for: 0 says that there was nothing to do. (If only pages written here counted, somebody else who was
    /// quicker with all that were found would hide the ones behind them.)
    pub(crate) async fn write_dirty(&self, before: Lsn, max: usize, reason: Reason) -> Result<usize> {
        assert_unlatched("writing pages");
        let mut found = self.all().dirty_before(before);
        if found.len() > max {
            // The oldest, in whatever order: they are written by address.
            found.select_nth_unstable(max);
            found.truncate(max);
        }
        let mut pages: Vec<PageId> = found.into_iter().map(|(_, page)| page).collect();
        let found = pages.len();
        while !pages.is_empty() {
            pages.sort_unstable();
            let mut busy = Vec::new();
            for some in pages.chunks(self.write_group.saturating_mul(self.groups_at_once)) {
                let groups = some.chunks(self.write_group).map(|group| self.write_group(group.to_vec(), reason));
                busy.extend(try_join_all(groups).await?.into_iter().flat_map(|outcome| outcome.busy));
            }
            pages.clear();
            for page in busy {
                if self.written(page, before).await {
                    pages.push(page);
                }
            }
        }
        Ok(found)
    }

    /// Writes the oldest dirty pages early, at most `most`, a few at a time and while the home `takes` so many. Those
    /// that no tier takes go to their own device meanwhile, which may be slow: nobody waits for both. Answers how many
    /// were written.
    pub(crate) async fn write_early(&self, most: usize, takes: impl Fn(usize) -> bool) -> Result<usize> {
        let mut found = self.all().dirty_before(Lsn(u64::MAX));
        if found.len() > most {
            found.select_nth_unstable(most);
            found.truncate(most);
        }
        found.sort_unstable();
        let pages = found.into_iter().map(|(_, page)| page);
        let (pages, others): (Vec<PageId>, Vec<PageId>) = pages.partition(|page| page.space == DATA);
        let early = async {
            let mut written = 0;
            for some in pages.chunks(EARLY) {
                if !takes(some.len()) {
                    break;
                }
                written += self.write_group(some.to_vec(), Reason::Early).await?.written.len();
            }
            Ok::<usize, StorageError>(written)
        };
        let home = async {
            let mut written = 0;
            for some in others.chunks(self.write_group) {
                written += self.write_group(some.to_vec(), Reason::Early).await?.written.len();
            }
            Ok(written)
        };
        let (early, home) = futures::try_join!(early, home)?;
        Ok(early + home)
    }

    /// Waits until nobody writes the page, or only a version younger than `before` is being written. Answers whether
    /// the page must still be written.
    async fn written(&self, page: PageId, before: Lsn) -> bool {
        loop {
            let mut done = std::pin::pin!(self.write_done.notified());
            done.as_mut().enable();
            let Some(pin) = self.peek(page) else { return false };
            if pin.rec_lsn().is_none_or(|rec| rec >= before) {
                return false;
            }
            if !pin.frame().is_writing() {
                return true;
            }
            drop(pin);
            done.await;
        }
    }

    /// Invariant 4.
    async fn write_group(&self, pages: Vec<PageId>, reason: Reason) -> Result<GroupWrite> {
        let pool = self.me.upgrade().ok_or(StorageError::ShuttingDown)?;
        let (send, receive) = oneshot::channel();
        self.log.spawn("page write", async move {
            let outcome = pool.write_now(pages, reason).await;
            pool.write_done.notify_waiters();
            let _ = send.send(outcome); // The caller may have gone.
        });
        receive.await.unwrap_or_else(|_| Err(self.why_stopped()))
    }

    /// Why nothing is written any more.
    fn why_stopped(&self) -> StorageError {
        self.log.failure().unwrap_or(StorageError::ShuttingDown)
    }

    async fn write_now(&self, pages: Vec<PageId>, reason: Reason) -> Result<GroupWrite> {
        let memory = self.copies.acquire_many(pages.len() as u32).await;
        let _memory = memory.map_err(|_| self.why_stopped())?;
        let mut outcome = GroupWrite::default();
        let mut writing = Vec::new();
        let mut batch = Vec::new();
        let mut lsn = Lsn(0);
        for page in pages {
            let Some(pin) = self.peek(page) else { continue };
            if !pin.frame().start_writing() {
                outcome.busy.push(page);
                continue;
            }
            let guard = Writing { pin, taken: false };
            if let Some(copy) = self.copy(&guard.pin) {
                lsn = lsn.max(copy.lsn);
                batch.push(copy);
                writing.push(guard);
            }
        }
        if batch.is_empty() {
            return Ok(outcome);
        }
        if self.log_before_data {
            self.log.flush_to(lsn).await?;
        }
        if self.all().is_broken() {
            return Err(StorageError::Damaged("a change was applied and not logged; restart".into()));
        }
        self.home.write_back(batch, reason).await?;
        for mut guard in writing {
            guard.taken = true;
            outcome.written.push(guard.pin.id());
        }
        let counter = if reason == Reason::Evict { &self.counters.dirty_evictions } else { &self.counters.written };
        counter.fetch_add(outcome.written.len() as u64, Ordering::Relaxed);
        Ok(outcome)
    }

    /// A stable, sealed copy; `None` if the page is clean by now. The caller has the right to write the page.
    fn copy(&self, pin: &Pin) -> Option<WriteBack> {
        let mut bytes = IoBuf::zeroed(self.page_size());
        let latched = pin.read();
        let rec_lsn = pin.rec_lsn()?;
        pin.frame().copying();
        bytes.copy_from_slice(&latched);
        drop(latched);
        assert!(header::id(&bytes) == pin.id(), "page {} says it is {}", pin.id(), header::id(&bytes));
        header::seal(&mut bytes);
        let (lsn, access) = (header::lsn(&bytes), pin.frame().access());
        Some(WriteBack { page: pin.id(), lsn, bytes, rec_lsn, redo: Some(rec_lsn), access })
    }

    /// Writes those of the pages that are dirty.
    pub(super) async fn write_range(&self, pages: &[PageId]) -> Result<()> {
        let mut dirty = Vec::new();
        for &page in pages {
            if self.peek(page).is_some_and(|pin| pin.rec_lsn().is_some()) {
                dirty.push(page);
            }
        }
        for group in dirty.chunks(self.write_group) {
            self.write_group(group.to_vec(), Reason::Age).await?;
        }
        Ok(())
    }

    /// Storage has stopped. Tasks that wait for a frame, or for a page to be written, learn it.
    pub(crate) fn fail(&self, why: &StorageError) {
        *self.failure.lock() = Some(why.clone());
        self.freed.notify_waiters();
        self.write_done.notify_waiters();
    }

    /// Redo: writes the pages that are dirty home, groups of them at once.
    pub(crate) async fn write_all(&self, pages: &[PageId]) -> Result<()> {
        let groups = pages.chunks(self.write_group).map(|group| self.write_group(group.to_vec(), Reason::Checkpoint));
        futures::future::try_join_all(groups).await.map(drop)
    }

    /// Why victims cannot be written, if so.
    pub(super) fn eviction_failure(&self) -> Option<StorageError> {
        self.failure.lock().clone()
    }

    /// Refills the reserve of free frames: from clean victims first, then from dirty ones, in groups.
    async fn refill(&self) {
        loop {
            let want = self.reserve.saturating_sub(self.replacer.free_count());
            if want == 0 {
                return;
            }
            let freed = self.sweep(want, self.all().len());
            if freed == want {
                return;
            }
            let mut victims = self.replacer.take_to_write();
            if victims.is_empty() {
                if freed == 0 {
                    return; // All in use; tasks that wait for a frame ask again.
                }
                continue;
            }
            victims.sort_unstable();
            let result = self.evict_dirty(&victims).await;
            let failed = result.is_err();
            *self.failure.lock() = result.err();
            self.freed.notify_waiters();
            if failed {
                self.env.sleep(AFTER_FAILURE).await;
                return;
            }
        }
    }

    async fn evict_dirty(&self, victims: &[PageId]) -> Result<()> {
        for &page in victims {
            if let Some(pin) = self.peek(page) {
                pin.frame().queued.store(false, Ordering::Release);
            }
        }
        // Groups of one tablespace, which is one device: none waits for two.
        let spaces = victims.chunk_by(|a, b| a.space == b.space);
        for group in spaces.flat_map(|of| of.chunks(self.write_group)) {
            for page in self.write_group(group.to_vec(), Reason::Evict).await?.written {
                self.try_free(page, false); // The home was offered it, dirty, just now.
            }
        }
        Ok(())
    }
}

/// Keeps free frames at hand so that a miss seldom waits. Ends with the pool.
pub(super) async fn cleaner(pool: Weak<Pool>, wake: Arc<Notify>) {
    loop {
        wake.notified().await;
        let Some(pool) = pool.upgrade() else { return };
        pool.refill().await;
    }
}
