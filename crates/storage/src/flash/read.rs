//! Misses of the memory pool: from the tier where it holds the page, else from the disk.
//!
//! A single page that the tier holds is read there, unless the device is throttled (μ) and the disk's version is as
//! new. For a run of pages, the pages at its two ends that the tier holds come from the tier. The rest is one read of
//! the disk. Pages in the middle that are newer in the tier are replaced by the tier's (thesis, section 3.3.3.3).

use super::trouble::Trouble;
use super::{FlashHome, FrameId};
use crate::config::Safeguard;
use crate::error::Result;
use crate::home::{Fetched, Home, HomeFuture, Tier};
use crate::page::header;
use crate::pool::{Access, class_of};
use crate::sync::atomic::Ordering;
use crate::types::*;
use futures::future::join_all;
use std::ops::Range;
use terrace_device::{IoBuf, Purpose};
use terrace_env::Nanos;
use terrace_policy::Class;
use terrace_policy::flash::Moment;

/// A read of a frame: the frame is not used for another page while this lives.
pub(super) struct Held<'a> {
    home: &'a FlashHome,
    page: PageId,
    at: FrameId,
    lsn: Lsn,
    /// This opening found the frame, and nobody has read it since.
    unread: bool,
    /// Newer than on disk when it was found.
    dirty: bool,
    class: Class,
    hit: bool,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.home.partition(self.at.part).lock().unpin(self.at.frame, self.hit.then_some(self.class));
    }
}

impl FlashHome {
    pub(super) fn fetch_pages(
        &self,
        first: PageId,
        count: u32,
        access: Access,
    ) -> HomeFuture<'_, Vec<Result<Fetched>>> {
        if count > 1 {
            return Box::pin(self.fetch_run(first, count, access));
        }
        let began = self.env.now();
        match self.look(first, access) {
            Some(held) => Box::pin(async move {
                let read = self.read_held(held, access).await;
                let from_flash = matches!(&read, Ok(page) if page.tier == Tier::Flash);
                self.note_time(began, from_flash);
                if from_flash {
                    self.price(class_of(access), Tier::Flash, began, 1);
                }
                vec![read]
            }),
            None => {
                self.counters.misses.fetch_add(1, Ordering::Relaxed);
                Box::pin(async move {
                    let read = self.fetch_and_admit(first, &[false], access).await;
                    self.note_time(began, false);
                    self.price(class_of(access), Tier::Disk, began, 1);
                    read
                })
            }
        }
    }

    /// A request for one page has been answered.
    fn note_time(&self, began: Nanos, from_flash: bool) {
        let times = if from_flash { &self.times.hits } else { &self.times.misses };
        times.record(self.env.now().0.saturating_sub(began.0));
    }

    /// What a page took to read, for replacement orders that count what flash saves.
    fn price(&self, class: Class, tier: Tier, began: Nanos, pages: u64) {
        let took = self.env.now().0.saturating_sub(began.0) / pages.max(1);
        let Some(saved) = self.times.prices.lock().note(class, tier, took) else { return };
        for part in 0..self.parts.load(Ordering::Acquire) {
            self.partition(part).lock().priced(saved);
        }
    }

    /// Reads as many pages from the disk as `newer` has items, and offers those to the tier that enter it when they are
    /// read. The reader has claimed the pages, so nobody can change one meanwhile. If the tier held a newer version of
    /// a page when the read began, the page is not offered: the disk may have given the older version, even if the
    /// newer one has come home and left the tier since.
    async fn fetch_and_admit(&self, first: PageId, newer: &[bool], access: Access) -> Vec<Result<Fetched>> {
        let began = self.env.now();
        let fetched = self.disk.fetch(first, newer.len() as u32, access).await;
        if newer.len() > 1 {
            self.price(class_of(access), Tier::Disk, began, newer.len() as u64);
        }
        if self.is_on() && self.gate().write.flow().at_read {
            for (i, page) in fetched.iter().enumerate() {
                let Ok(page) = page else { continue };
                if newer[i] && self.safeguards.has(Safeguard::Newer) {
                    continue;
                }
                self.offer_clean(PageId::new(first.space, first.no + i as u32), &page.bytes, access, Moment::Read);
            }
        }
        fetched
    }

    /// Whether the page has a frame.
    pub(crate) fn holds(&self, page: PageId) -> bool {
        page.space == DATA && self.part(page).lock().find(page).is_some()
    }

    /// The page's frame, if the page is read from there.
    fn look(&self, page: PageId, access: Access) -> Option<Held<'_>> {
        let (part, class) = (self.partition_of(page), class_of(access));
        let mut partition = self.partition(part).lock();
        let pinned = partition.find(page).and_then(|frame| Some((frame, partition.pin(frame)?)));
        let Some((frame, dirty)) = pinned else {
            partition.missed(page, class);
            return None;
        };
        let (lsn, unread) = (partition.record(frame).lsn(), partition.record(frame).is_unread());
        drop(partition);
        let held = Held { home: self, page, at: FrameId { part, frame }, lsn, unread, dirty, class, hit: false };
        if !dirty && self.gate().throttled(self.pending.load(Ordering::Acquire)) {
            self.counters.throttled_reads.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(held)
    }

    /// The frame's bytes; `None` if they are not the version of the page that was written there. If this opening found
    /// the frame and it is `unread`, it may well hold something else: that does not speak against the device.
    pub(super) async fn read_frame(&self, at: FrameId, page: PageId, (lsn, unread): (Lsn, bool)) -> Option<IoBuf> {
        let device = self.device().filter(|_| self.is_readable())?;
        match device.read(self.offset(at), IoBuf::zeroed(self.page_size), Purpose::Flash).await {
            Ok(bytes) => {
                self.note_success();
                let same = header::lsn(&bytes) == lsn || !self.safeguards.has(Safeguard::FrameTag);
                let good = header::verify(&bytes, page).is_ok() && same;
                if good || !unread {
                    self.note_frame(&page, good);
                } else {
                    self.count_restored(|r| r.lost += 1);
                }
                if good {
                    return Some(bytes);
                }
            }
            Err(error) => self.note_failure(Trouble::Read, &page, &error),
        }
        None
    }

    /// Whether a dirty frame that this opening has found holds what it should; true if it is not that any more. It does
    /// not count as a use of the page.
    pub(super) async fn verify(&self, at: FrameId, page: PageId) -> bool {
        let held = {
            let mut partition = self.partition(at.part).lock();
            if partition.find(page) != Some(at.frame) || !partition.record(at.frame).is_unread() {
                return true;
            }
            let lsn = partition.record(at.frame).lsn();
            let Some(dirty) = partition.pin(at.frame) else { return true };
            Held { home: self, page, at, lsn, unread: true, dirty, class: Class::Random, hit: false }
        };
        let good = self.read_frame(at, page, (held.lsn, true)).await.is_some();
        if good {
            self.partition(at.part).lock().set_read(at.frame);
        }
        good
    }

    async fn read_held(&self, mut held: Held<'_>, access: Access) -> Result<Fetched> {
        let page = held.page;
        let read = {
            let _pending = self.count_pending();
            self.read_frame(held.at, page, (held.lsn, held.unread)).await
        };
        if let Some(bytes) = read {
            held.hit = true;
            self.counters.hits.fetch_add(1, Ordering::Relaxed);
            self.counters.dirty_hits.fetch_add(held.dirty as u64, Ordering::Relaxed);
            // The recLSN, if there is one, is inherited when the page is dirtied: the cleaner may bring it home before.
            let leaves = self.gate().write.flow().leaves;
            return Ok(Fetched { bytes, tier: Tier::Flash, leaves });
        }
        self.counters.misses.fetch_add(1, Ordering::Relaxed);
        let mut failed = None;
        loop {
            // Nobody changes the page while it is being read. But the cleaner may have brought it home, and then the
            // log from which it could be made again may be gone, too.
            let dropped = self.part(page).lock().drop_clean(page);
            let lost = {
                let partition = self.part(page).lock();
                partition.find(page).map(|frame| partition.record(frame).rec())
            };
            let rec = match (lost, failed.take()) {
                (Some(rec), None) if !dropped => rec,
                (Some(_), Some(error)) if !dropped => return Err(error),
                _ => break,
            };
            self.urgent.lock().push(held.at);
            self.wake_cleaner.notify_one();
            match self.replay(&[(page, rec)]).await.pop().expect("one page was asked for") {
                Ok(bytes) => return Ok(Fetched { bytes, tier: Tier::Disk, leaves: false }),
                Err(error) => failed = Some(error),
            }
        }
        drop(held);
        let mut fetched = self.disk.fetch(page, 1, access).await;
        fetched.pop().expect("one page was asked for")
    }

    /// While the tier is being filled (τ), a page that it lacks is read from the disk with its neighbours that it lacks
    /// too, in one request: how fast it fills is what the disk gives in random reads (thesis, section 4.4.1.1; SQL
    /// Server, section 3.4.3.2).
    pub(super) fn worth_reading(&self, page: PageId, access: Access) -> Range<u32> {
        let alone = page.no..page.no + 1;
        let (gate, expanded) = {
            let running = self.running.read();
            (running.gate, running.config.expanded_read.max(1))
        };
        let filling = (self.totals.used.load(Ordering::Acquire) as f64) < gate.fill_threshold * gate.frames as f64;
        let wanted = expanded > 1 && access == Access::Random && page.space == DATA;
        let lacks = |no: &u32| {
            let page = PageId::new(page.space, *no);
            self.part(page).lock().find(page).is_none()
        };
        if !wanted || !filling || !self.is_on() || !self.within_budget() || !lacks(&page.no) {
            return alone;
        }
        let begin = page.no / expanded * expanded;
        let end = begin.saturating_add(expanded);
        let below = (begin..page.no).rev().take_while(lacks).last();
        let above = (page.no + 1..end).take_while(lacks).last();
        below.unwrap_or(page.no)..above.unwrap_or(page.no) + 1
    }

    async fn fetch_run(&self, first: PageId, count: u32, access: Access) -> Vec<Result<Fetched>> {
        let mut held: Vec<Option<Held<'_>>> =
            (0..count).map(|i| self.look(PageId::new(first.space, first.no + i), access)).collect();
        let lead = held.iter().take_while(|h| h.is_some()).count();
        let trail = held[lead..].iter().rev().take_while(|h| h.is_some()).count();
        let middle = lead..held.len() - trail;
        for page in &mut held[middle.clone()] {
            if page.as_ref().is_some_and(|h| !h.dirty) {
                *page = None; // As good on disk, in the same read.
            }
        }
        let newer: Vec<bool> = held[middle.clone()].iter().map(Option::is_some).collect();
        let from_disk = async {
            match newer.is_empty() {
                true => Vec::new(),
                false => self.fetch_and_admit(PageId::new(first.space, first.no + lead as u32), &newer, access).await,
            }
        };
        let from_flash = join_all(held.into_iter().map(|h| async move {
            match h {
                Some(held) => Some(self.read_held(held, access).await),
                None => None,
            }
        }));
        let (mut disk, flash) = futures::join!(from_disk, from_flash);
        self.counters.misses.fetch_add(flash.iter().filter(|f| f.is_none()).count() as u64, Ordering::Relaxed);
        let mut disk = disk.drain(..);
        let mut pages = Vec::with_capacity(count as usize);
        for (i, page) in flash.into_iter().enumerate() {
            let older = if middle.contains(&i) { disk.next() } else { None };
            pages.push(page.or(older).expect("every page was asked for somewhere"));
        }
        pages
    }
}
