//! The lazy cleaner: brings dirty frames home with their neighbours (thesis, section 3.3.3.5). To free the log, it
//! begins with the frames of the oldest recLSN (section 4.2.2.1). To keep below λ, it begins with those that
//! replacement would take first (section 3.3.1): a page that changes often has an old recLSN, and would go home again
//! and again.
//!
//! The cleaner starts when more than λ of the frames are dirty, when the oldest recLSN comes near the log's bounds,
//! when a checkpoint asks for it, and when the device has failed. Nobody else cleans: others ask for it and wait.

use super::partition::Cleaned;
use super::trouble::Trouble;
use super::{FlashHome, FlashState, FrameId};
use crate::config::Safeguard;
use crate::error::Result;
use crate::home::{Home, WriteBack};
use crate::page::header;
use crate::pool::Access;
use crate::sync::atomic::Ordering;
use crate::types::*;
use futures::future::{Either, join_all, select};
use std::time::Duration;
use terrace_device::IoBuf;

/// How long the cleaner rests: if nothing wakes it; after a failure; while the frames that it wants to clean are still
/// being written.
const INTERVAL: Duration = Duration::from_millis(50);
const AFTER_FAILURE: Duration = Duration::from_millis(50);
const BUSY: Duration = Duration::from_millis(1);
/// Frames that are clean before their turn comes: an eighth of the tier, and at most so many; more where they go home
/// in sweeps, which are the better the more pages they have to choose from.
const AHEAD: u32 = 1024;
const SWEPT: u32 = 16 * 1024;
/// Pages made again from the log at a time, when the device is gone: what one pass over it makes.
const REPLAYED: usize = 4096;

/// Neighbouring dirty frames of a partition on their way home.
pub(super) struct Group {
    part: u32,
    frames: Vec<(PageId, u32)>,
}

/// A page's bytes, and whether its frame was good.
type Contents = Option<(IoBuf, bool)>;

/// What a frame was found to hold.
enum Frame {
    Void,
    Good(IoBuf),
    /// Its bytes cannot be used; the page's recLSN.
    Lost(Lsn),
}

impl FlashHome {
    /// Waits until no frame is dirty with a recLSN below `before`. Pages that are as old and are written meanwhile go
    /// to the disk.
    pub(super) async fn bring_home(&self, before: Lsn) -> Result<()> {
        self.wanted_home.fetch_max(before.0, Ordering::AcqRel);
        loop {
            let mut progress = std::pin::pin!(self.progress.notified());
            progress.as_mut().enable();
            if self.oldest_dirty().is_none_or(|rec| rec >= before) {
                return Ok(());
            }
            self.check()?;
            self.wake_cleaner.notify_one();
            progress.await;
        }
    }

    /// How many frames should go home now, and how many of them for the log's sake.
    fn due(&self) -> (usize, usize) {
        let dirty = self.totals.dirty.load(Ordering::Acquire);
        let Some(oldest) = self.oldest_dirty() else { return (0, 0) };
        let leaving = matches!(self.state(), FlashState::Failed | FlashState::Draining);
        if leaving || oldest.0 < self.wanted_home.load(Ordering::Acquire) {
            return (dirty, dirty);
        }
        let age = self.log.end().0.saturating_sub(oldest.0);
        (self.gate().to_clean(dirty, age), self.gate().aged(dirty, age))
    }

    /// Begins to clean frames that are given out soon, where frames are given out in turn, with their neighbours. Where
    /// the write policy sweeps: those of the pages that follow `hand` on the disk, which moves on.
    fn groups_in_turn(&self, hand: &mut PageId) -> Vec<Group> {
        let flow = self.gate().write.flow();
        if !flow.rotates {
            return Vec::new();
        }
        let (batch, most) = self.batches();
        let parts = self.parts.load(Ordering::Acquire);
        let (ahead, each) = if flow.sweeps { (SWEPT, usize::MAX) } else { (AHEAD, most.div_ceil(parts as usize)) };
        let mut soon: Vec<(PageId, FrameId)> = Vec::new();
        for part in 0..parts {
            let partition = self.partition(part).lock();
            let window = (partition.frames() / 8).clamp(2, ahead);
            let frames = partition.cleanable_in_turn(window).take(each);
            soon.extend(frames.map(|frame| (partition.record(frame).page(), FrameId { part, frame })));
        }
        if flow.sweeps {
            soon.sort_unstable();
            let above = soon.partition_point(|(page, _)| page <= hand);
            soon.rotate_left(above);
        }
        let mut groups: Vec<Group> = Vec::new();
        for (_, at) in soon {
            if groups.len() < most {
                groups.extend(self.group(at, batch));
            }
        }
        if let Some((page, _)) = groups.last().and_then(|group| group.frames.last()) {
            *hand = *page;
        }
        groups
    }

    /// Begins to clean a frame with up to `most - 1` neighbours; `None`: by now it is clean, or gone.
    fn group(&self, at: FrameId, most: usize) -> Option<Group> {
        let mut partition = self.partition(at.part).lock();
        let there = at.frame < partition.frames() && partition.is_cleanable(at.frame);
        there.then(|| Group { part: at.part, frames: partition.start_clean(at.frame, most) })
    }

    /// α, and how many groups of so many pages are cleaned at once.
    fn batches(&self) -> (usize, usize) {
        let config = &self.running.read().config;
        (config.cleaning_batch, config.cleaning_groups)
    }

    pub(super) async fn run_cleaner(&self) {
        let mut hand = PageId::new(DATA, 0);
        while self.check().is_ok() {
            let mut woken = std::pin::pin!(self.wake_cleaner.notified());
            woken.as_mut().enable();
            if self.state() == FlashState::Off {
                woken.await;
                continue;
            }
            let urgent = std::mem::take(&mut *self.urgent.lock());
            let in_turn = self.groups_in_turn(&mut hand);
            match self.due() {
                (0, _) if urgent.is_empty() && in_turn.is_empty() => {
                    match select(woken, self.env.sleep(INTERVAL)).await {
                        Either::Left(_) | Either::Right(_) => {}
                    }
                }
                // A caller that wants more of it must wait too.
                (due, aged) => match self.clean(due, aged, urgent, in_turn).await {
                    Ok(0) => self.env.sleep(BUSY).await,
                    Ok(_) => {}
                    Err(error) => {
                        self.complain(Trouble::Cleaning, &format_args!("{due} frames due"), &error);
                        self.env.sleep(AFTER_FAILURE).await;
                    }
                },
            }
            self.progress.notify_waiters();
        }
        self.progress.notify_waiters();
    }

    /// Cleans some of the `due` frames, of the `aged` oldest first, the urgent ones, and the groups begun because their
    /// turn comes; returns how many.
    pub(super) async fn clean(
        &self,
        due: usize,
        aged: usize,
        urgent: Vec<FrameId>,
        in_turn: Vec<Group>,
    ) -> Result<usize> {
        let gone = self.state() == FlashState::Failed;
        let (batch, most_groups) = self.batches();
        let mut groups = in_turn;
        groups.extend(urgent.into_iter().filter_map(|at| self.group(at, 1)));
        let sharp = self.closed.load(Ordering::Acquire) > 0;
        let (most_groups, most_pages) = match gone {
            true => (REPLAYED, REPLAYED),
            false if sharp => (due, due), // All of it in the disks' queue at once.
            false => (most_groups, due),
        };
        let most_groups = groups.len() + most_groups; // Whatever else is wanted, the log's are not passed over.
        let mut pages = 0;
        while groups.len() < most_groups && pages < most_pages {
            let Some(group) = self.next_group(batch, pages < aged) else { break };
            pages += group.frames.len();
            groups.push(group);
        }
        if groups.is_empty() {
            return Ok(0);
        }
        if self.gate().write.flow().sweeps {
            groups.sort_unstable_by_key(|group| group.frames[0]);
        }
        let contents = self.contents(&groups).await;
        let done = join_all(groups.into_iter().zip(contents).map(|(group, contents)| self.send_home(group, contents)));
        let mut cleaned = 0;
        let mut failure = None;
        for result in done.await {
            match result {
                Ok(count) => cleaned += count,
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(cleaned), Err)
    }

    /// A dirty frame that nobody is writing or cleaning, and its neighbours: the oldest of all, or one that replacement
    /// would take soon in the partition with the most dirty frames.
    fn next_group(&self, batch: usize, oldest: bool) -> Option<Group> {
        if !oldest {
            let parts = 0..self.partitions.len() as u32;
            let part = parts.max_by_key(|&part| self.partition(part).lock().dirty_frames())?;
            let mut partition = self.partition(part).lock();
            if let Some(frame) = partition.coldest_cleanable() {
                return Some(Group { part, frames: partition.start_clean(frame, batch) });
            }
        }
        let oldest = |part: u32| self.partition(part).lock().oldest_cleanable().map(|(rec, _)| (rec, part));
        let (_, part) = (0..self.partitions.len() as u32).filter_map(oldest).min()?;
        let mut partition = self.partition(part).lock();
        let (_, frame) = partition.oldest_cleanable()?;
        Some(Group { part, frames: partition.start_clean(frame, batch) })
    }

    /// The groups' pages: from their frames; those whose frames cannot be read, or are not what they should be, made
    /// again together.
    async fn contents(&self, groups: &[Group]) -> Vec<Vec<Result<Contents>>> {
        let frames: Vec<(FrameId, PageId)> = groups
            .iter()
            .flat_map(|group| group.frames.iter().map(|&(page, frame)| (FrameId { part: group.part, frame }, page)))
            .collect();
        let read = join_all(frames.iter().map(|&(at, page)| async move {
            let (void, lsn, rec) = {
                let partition = self.partition(at.part).lock();
                let record = partition.record(at.frame);
                (record.is_void(), (record.lsn(), record.is_unread()), record.rec())
            };
            match void {
                true => Frame::Void,
                false => self.read_frame(at, page, lsn).await.map_or(Frame::Lost(rec), Frame::Good),
            }
        }));
        let read = read.await;
        let lost = |(frame, (_, page)): (&Frame, &(FrameId, PageId))| match frame {
            Frame::Lost(rec) => Some((*page, *rec)),
            _ => None,
        };
        let lost: Vec<(PageId, Lsn)> = read.iter().zip(&frames).filter_map(lost).collect();
        let mut made = if lost.is_empty() { Vec::new() } else { self.replay(&lost).await }.into_iter();
        let mut contents = read.into_iter().map(|frame| match frame {
            Frame::Void => Ok(None),
            Frame::Good(bytes) => Ok(Some((bytes, true))),
            Frame::Lost(_) => Ok(Some((made.next().expect("one for each page that was lost")?, false))),
        });
        groups.iter().map(|group| contents.by_ref().take(group.frames.len()).collect()).collect()
    }

    /// Hands a group to the disk home (invariant 2 of the tier), waits, and settles its frames. Returns how many went
    /// home.
    async fn send_home(&self, group: Group, contents: Vec<Result<Contents>>) -> Result<usize> {
        let mut failure = None;
        let mut frames = Vec::new();
        let writing = {
            let mut partition = self.partition(group.part).lock();
            let mut pages = Vec::new();
            for ((page, frame), contents) in group.frames.into_iter().zip(contents) {
                let (void, rec_lsn) = (partition.record(frame).is_void(), partition.record(frame).rec());
                let void = void && self.safeguards.has(Safeguard::VoidAtHome);
                match contents {
                    Ok(Some((bytes, good))) if !void => {
                        let lsn = header::lsn(&bytes);
                        let rec_lsn = rec_lsn.min(lsn);
                        pages.push(WriteBack { page, bytes, lsn, rec_lsn, redo: None, access: Access::Random });
                        frames.push((frame, if good { Cleaned::Home } else { Cleaned::Unreadable }));
                    }
                    contents => {
                        // A void frame is given back; one whose page could not be made again stays dirty.
                        if partition.end_clean(frame, Cleaned::Failed) {
                            failure = failure.or(contents.err());
                        }
                    }
                }
            }
            self.disk.write_back(pages, crate::home::Reason::Age)
        };
        let written = writing.await;
        let mut partition = self.partition(group.part).lock();
        let mut home = 0;
        for (frame, how) in frames {
            let how = if written.is_err() {
                Cleaned::Failed
            } else if self.is_readable() {
                how
            } else {
                Cleaned::Unreadable
            };
            home += (partition.end_clean(frame, how) && how != Cleaned::Failed) as usize;
        }
        drop(partition);
        self.counters.cleaned.fetch_add(home as u64, Ordering::Relaxed);
        self.times.cleaned.add(home as u64, self.env.now());
        self.counters.cleaning_groups.fetch_add(1, Ordering::Relaxed);
        written?;
        failure.map_or(Ok(home), Err)
    }
}
