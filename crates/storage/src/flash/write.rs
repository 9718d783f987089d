//! Pages that leave memory: clean ones are copied and written by a task of their own; dirty ones go where the write
//! policy says.
//!
//! Invariants:
//! 1. *Log first* (R4): every image is at or below the log's durable end. Clean ones came from a home, or went to one.
//! 2. A dirty page is in the tier's dirty set from its frame's allocation on; the pool drops it only after its write.
//!    Where the write fails, the page goes to the disk before `write_back` returns.
//! 3. With dual writes the record becomes clean only after *both* writes: a crash between them must not leave a frame
//!    that is taken for home and is newer than home (thesis, section 4.3.1).

use super::partition::{NoFrame, Written};
use super::trouble::Trouble;
use super::{Admission, FlashHome, FrameId};
use crate::config::Safeguard;
use crate::error::Result;
use crate::home::{Home, HomeFuture, Reason, WriteBack};
use crate::page::header;
use crate::pool::Access;
use crate::sync::atomic::Ordering;
use crate::types::*;
use futures::future::join_all;
use terrace_device::{IoBuf, Purpose};
use terrace_policy::flash::{Cause, Moment, Refusal, Route};

/// Clean pages waiting to be written; more are not let in.
const QUEUE: usize = 64;
/// Clean pages written together.
const BATCH: usize = 32;

/// Where each page of one call goes.
#[derive(Default)]
struct Routes {
    disk: Vec<WriteBack>,
    flash: Vec<(FrameId, WriteBack)>,
    /// Copies of pages in `disk`.
    both: Vec<(FrameId, PageId, IoBuf)>,
}

impl FlashHome {
    /// A frame for the page, dirty with `rec` if there is one.
    fn allocate(&self, page: PageId, rec: Option<Lsn>, lsn: Lsn) -> Option<FrameId> {
        if !self.within_budget() {
            self.counters.rejected_budget.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let part = self.partition_of(page);
        let allocated = {
            let mut partition = self.partition(part).lock();
            // Under the latch: see `end_records`. A log that failed closes without it.
            if (self.records_ended.load(Ordering::Acquire) || self.log.is_closing()) && self.logs() {
                return None; // Nothing can be said of it any more.
            }
            match self.partition_of(page) == part {
                true => partition.allocate(page, rec, lsn),
                false => Err(NoFrame::Busy), // The tier was off for a moment, and has other partitions now.
            }
        };
        let allocated = match allocated {
            Ok(allocated) => allocated,
            Err(NoFrame::Cold) => {
                self.counters.refused(Refusal::Cold);
                return None;
            }
            Err(NoFrame::Busy) => {
                self.counters.rejected_no_frame.fetch_add(1, Ordering::Relaxed);
                self.wake_cleaner.notify_one();
                return None;
            }
        };
        if allocated.evicted.is_some() {
            self.counters.evicted.fetch_add(1, Ordering::Relaxed);
        }
        Some(FrameId { part, frame: allocated.frame })
    }

    /// Whether the tier takes so many dirty pages that stay in memory, so that a restart repeats less: it is warm then,
    /// and those who wait for the device hardly wait longer.
    pub(crate) fn takes_early(&self, pages: usize) -> bool {
        let (offer, gate) = (self.offer(Access::Random, 0, false), self.gate());
        self.has_two_floors()
            && self.within_budget()
            && !gate.throttled(2 * (offer.pending + pages))
            && gate.dirty(&offer, Cause::Early) == Route::Flash
    }

    /// Whether the write budget has room for another page.
    pub(super) fn within_budget(&self) -> bool {
        let now = self.env.now().0;
        self.budget.lock().as_mut().is_none_or(|budget| budget.allows(now, self.page_size as u64))
    }

    /// So many bytes are written to the device.
    pub(super) fn spend(&self, bytes: u64) {
        self.counters.written_bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(budget) = self.budget.lock().as_mut() {
            budget.spend(self.env.now().0, bytes);
        }
    }

    /// A clean page leaves memory, or is on its way there. Called under locks of the pool: it only copies.
    pub(super) fn offer_clean(&self, page: PageId, bytes: &[u8], access: Access, moment: Moment) {
        let kept = self.part(page).lock().is_kept(page);
        if kept == Some(false) {
            return; // The same version (invariant 1 of the tier).
        }
        let mut queue = self.admissions.lock();
        let mut offer = self.offer(access, 0, kept.is_some());
        offer.pending += queue.len();
        let verdict = match self.gate().clean(&offer, moment) {
            Ok(()) if queue.len() >= QUEUE => Err(Refusal::Throttled),
            verdict => verdict,
        };
        if let Err(why) = verdict {
            return self.counters.refused(why);
        }
        let Some(at) = self.allocate(page, None, header::lsn(bytes)) else { return };
        let mut copy = self.spare.lock().pop().unwrap_or_else(|| IoBuf::zeroed(self.page_size));
        copy.copy_from_slice(bytes);
        queue.push_back(Admission { at, bytes: copy });
        drop(queue);
        self.wake_writer.notify_one();
    }

    /// Writes what `offer_clean` took. Ends with the home.
    pub(super) async fn run_writer(&self) {
        while self.check().is_ok() {
            let batch = self.begin_admissions(BATCH);
            if batch.is_empty() {
                self.wake_writer.notified().await;
                continue;
            }
            let views: Vec<(FrameId, &[u8])> = batch.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
            let written = self.write_frames(views).await;
            self.end_admissions(batch, written);
        }
    }

    /// Takes up to `most` of the clean pages that wait, and begins their writes.
    fn begin_admissions(&self, most: usize) -> Vec<(FrameId, IoBuf)> {
        let (mut wanted, mut spare) = (Vec::new(), Vec::new());
        while wanted.len() < most {
            let Some(mut admission) = self.admissions.lock().pop_front() else { break };
            if self.partition(admission.at.part).lock().start_write(admission.at.frame) {
                header::seal(&mut admission.bytes);
                self.assert_logged(header::lsn(&admission.bytes), header::id(&admission.bytes));
                wanted.push((admission.at, admission.bytes));
            } else {
                spare.push(admission.bytes);
            }
        }
        self.keep(spare);
        wanted
    }

    fn end_admissions(&self, batch: Vec<(FrameId, IoBuf)>, written: impl IntoIterator<Item = bool>) {
        let mut spare = Vec::new();
        for ((at, bytes), good) in batch.into_iter().zip(written) {
            let how = if good { Written::Clean } else { Written::Failed };
            if self.end_write(at, how) {
                self.counters.admitted_clean.fetch_add(1, Ordering::Relaxed);
            }
            spare.push(bytes);
        }
        self.keep(spare);
    }

    /// Buffers for the next admissions.
    fn keep(&self, mut spare: Vec<IoBuf>) {
        let mut kept = self.spare.lock();
        spare.truncate(QUEUE.saturating_sub(kept.len()));
        kept.append(&mut spare);
    }

    /// Ends the write of a frame. If the device has died meanwhile, the frame holds nothing.
    fn end_write(&self, at: FrameId, how: Written) -> bool {
        let mut partition = self.partition(at.part).lock();
        let died = !self.is_on() && self.safeguards.has(Safeguard::DyingFrames);
        let how = if how == Written::Clean && died { Written::Failed } else { how };
        let entered = partition.end_write(at.frame, how);
        drop(partition);
        if entered && self.series() != 0 {
            self.wake_keeper.notify_one();
        }
        entered
    }

    fn assert_logged(&self, lsn: Lsn, page: PageId) {
        let durable = self.log.durable();
        assert!(
            !self.log_before_data || lsn <= durable,
            "R4: page {page} at {lsn} goes to flash, the log is durable to {durable}"
        );
    }

    /// Writes frames, adjacent ones together; whether each succeeded.
    async fn write_frames(&self, frames: Vec<(FrameId, &[u8])>) -> Vec<bool> {
        let Some(device) = self.device().filter(|_| self.is_on()) else { return vec![false; frames.len()] };
        self.free_to_write(frames.iter().map(|(at, _)| *at)).await;
        let page_size = self.page_size as u64;
        let mut sorted: Vec<usize> = (0..frames.len()).collect();
        sorted.sort_unstable_by_key(|&i| self.offset(frames[i].0));
        let follows = |a: &usize, b: &usize| self.offset(frames[*a].0) + page_size == self.offset(frames[*b].0);
        let runs = sorted.chunk_by(follows).map(|run| {
            let mut all = IoBuf::zeroed(run.len() * self.page_size);
            for (i, &frame) in run.iter().enumerate() {
                all[i * self.page_size..][..self.page_size].copy_from_slice(frames[frame].1);
            }
            self.spend(all.len() as u64);
            self.list_credit.fetch_add(all.len() as u64, Ordering::Relaxed);
            let pending = self.count_pending();
            let first = self.number(frames[run[0]].0);
            let (device, offset) = (device.clone(), self.offset(frames[run[0]].0));
            async move {
                let written = device.write(offset, all, Purpose::Flash).await;
                drop(pending);
                match written {
                    Ok(_) => self.note_success(),
                    Err(error) => {
                        self.note_failure(Trouble::Write, &first, &error);
                        return (run, false);
                    }
                }
                (run, true)
            }
        });
        let mut good = vec![false; frames.len()];
        for (run, written) in join_all(runs).await {
            run.iter().for_each(|&i| good[i] = written);
        }
        if good.contains(&true) && !self.sync_frames(&device).await {
            good.fill(false);
        }
        good
    }

    pub(super) fn write_pages(&self, mut pages: Vec<WriteBack>, reason: Reason) -> HomeFuture<'_, Result<()>> {
        if let Err(error) = self.check() {
            return Box::pin(std::future::ready(Err(error)));
        }
        // Frames that hold an older version now (invariant 1 of the tier). Their recLSNs go along.
        let mut rising = Vec::new();
        for page in &mut pages {
            if let Some(rec) = self.supersede(page.page, false) {
                page.rec_lsn = page.rec_lsn.min(rec);
                rising.push((page.page, rec));
            }
        }
        let older = match self.safeguards.has(Safeguard::HardVoids) {
            true => self.ticket(),
            false => 0,
        };
        let routes = self.route(pages, reason);
        let disk = self.disk.write_back(routes.disk, reason); // Taken by this call.
        for (page, rec) in rising {
            self.risen(page, rec);
        }
        Box::pin(async move {
            let (disk, flash, both, ()) = futures::join!(
                disk,
                self.write_dirty(routes.flash),
                self.write_copies(&routes.both),
                self.hard(older) // `hardened`, invariant 2.
            );
            for ((at, _, _), good) in routes.both.iter().zip(both) {
                let how = if good && disk.is_ok() { Written::Clean } else { Written::Failed };
                if self.end_write(*at, how) {
                    self.counters.admitted_dirty.fetch_add(1, Ordering::Relaxed);
                }
            }
            disk.and(flash)
        })
    }

    fn route(&self, pages: Vec<WriteBack>, reason: Reason) -> Routes {
        let cause = match reason {
            Reason::Evict => Cause::Evicted,
            Reason::Age => Cause::Aged,
            Reason::Early => Cause::Early,
            Reason::Checkpoint => Cause::Checkpoint,
        };
        let mut routes = Routes::default();
        let end = self.log.end();
        let (on, gate) = (self.is_on(), self.gate());
        let closed = self.closed.load(Ordering::Acquire) > 0 && gate.write.writes_back();
        for page in pages {
            if !on || page.page.space != DATA {
                routes.disk.push(page);
                continue;
            }
            let wanted_home = Lsn(self.wanted_home.load(Ordering::Acquire));
            let young = page.rec_lsn >= wanted_home;
            let age = if young { end.0.saturating_sub(page.rec_lsn.0) } else { u64::MAX };
            let kept = self.part(page.page).lock().is_kept(page.page) == Some(true);
            let route = match gate.dirty(&self.offer(page.access, age, kept), cause) {
                Route::Flash if closed => Route::Disk(Refusal::Dirty),
                route => route,
            };
            match route {
                Route::Disk(why) => {
                    if reason == Reason::Evict {
                        self.counters.refused(why);
                    }
                    routes.disk.push(page);
                }
                Route::Flash => match self.allocate(page.page, Some(page.rec_lsn), page.lsn) {
                    Some(at) => routes.flash.push((at, page)),
                    None => routes.disk.push(page),
                },
                Route::Both => {
                    if let Some(at) = self.allocate(page.page, None, page.lsn).filter(|at| self.begin(*at)) {
                        routes.both.push((at, page.page, IoBuf::padded(&page.bytes)));
                    }
                    routes.disk.push(page);
                }
            }
        }
        routes
    }

    /// False where the frame is void by now: the page has changed again, or the frame is going.
    fn begin(&self, at: FrameId) -> bool {
        self.partition(at.part).lock().start_write(at.frame)
    }

    async fn write_copies(&self, copies: &[(FrameId, PageId, IoBuf)]) -> Vec<bool> {
        if copies.is_empty() {
            return Vec::new();
        }
        self.write_frames(copies.iter().map(|(at, _, bytes)| (*at, &bytes[..])).collect()).await
    }

    /// Invariant 2. Where frames are given out in turn, clean pages that got theirs before and still wait are written
    /// along: the device is to see the frames in their order.
    async fn write_dirty(&self, pages: Vec<(FrameId, WriteBack)>) -> Result<()> {
        if pages.is_empty() {
            return Ok(());
        }
        let mut begun = Vec::new();
        for (at, page) in pages {
            self.assert_logged(page.lsn, page.page);
            // Void by now: it has changed again, and the pool has inherited its recLSN. (With two floors such a frame
            // stays.)
            if self.begin(at) {
                begun.push((at, page));
            }
        }
        let clean = self.begin_admissions(if self.gate().write.flow().rotates { QUEUE } else { 0 });
        let views = clean.iter().map(|(at, bytes)| (*at, &bytes[..]));
        let views = views.chain(begun.iter().map(|(at, page)| (*at, &page.bytes[..]))).collect();
        let mut written = self.write_frames(views).await.into_iter();
        let of_clean: Vec<bool> = written.by_ref().take(clean.len()).collect();
        self.end_admissions(clean, of_clean);
        let (mut failed, mut rising) = (Vec::new(), Vec::new());
        for ((at, mut page), good) in begun.into_iter().zip(written) {
            if good {
                if self.end_write(at, Written::Dirty) {
                    self.counters.admitted_dirty.fetch_add(1, Ordering::Relaxed);
                }
                // When its sector is to be written: a pass that begins in between lists it, and the next once more.
                self.note_unhard(page.redo.unwrap_or(page.rec_lsn));
                continue;
            }
            if let Some(rec) = self.partition(at.part).lock().fail_write(at.frame) {
                page.rec_lsn = page.rec_lsn.min(rec);
                rising.push((page.page, rec));
                failed.push(page);
            }
        }
        let disk = self.disk.write_back(failed, Reason::Evict);
        for (page, rec) in rising {
            self.risen(page, rec);
        }
        self.wake_cleaner.notify_one();
        self.progress.notify_waiters();
        disk.await
    }
}
