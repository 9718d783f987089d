//! The disk-only home: pages lie at their place on their tablespace's device, and are written there in groups through
//! the double-write area.
//!
//! Invariants:
//! 1. A page taken by `write_back` counts in `oldest_rec_lsn` from that call until a sync of its device that began
//!    after its write ended. It enters here before the pool lets go of it, so a checkpoint that asks the pool first
//!    misses nothing.
//! 2. A page is in at most one group in flight; later copies wait, so that they land in order.
//! 3. A failed write or sync stops the home for good: what was taken may be lost, and the store must restart from the
//!    log. Nothing that is read from then on is passed on either: the cache may have dropped what it did not get
//!    written.
//! 4. A page may be read while it is written (the flash tier makes a page again from its version here while its cleaner
//!    brings it home): one that fails its checks is read again once what is on its way is written.
//! 5. Sectors that cannot be read are damage like a bad checksum: of their pages, and of no others.
//! 6. A group is of one tablespace, and each has writers of its own: pages of undo, whose device may be a fast one, do
//!    not wait behind what goes to a slow data device.

use super::double_write::{DoubleWrite, MAX_GROUP};
use super::syncs::Syncs;
use super::{Fetched, Home, HomeFuture, Reason, Tier, WriteBack};
use crate::config::{DeviceSet, Safeguard, StorageConfig};
use crate::error::{BadPage, Result, StorageError};
use crate::log::Log;
use crate::page::header;
use crate::pool::Access;
use crate::types::*;
use futures::future::{join_all, try_join_all};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use terrace_device::{DeviceRef, ErrorKind, IoBuf, Purpose};
use tokio::sync::{Notify, oneshot};

/// Where page 0 lies on a tablespace's device: behind the device's identity, on a boundary that suits every page size.
pub const PAGES_AT: u64 = 64 << 10;
/// Groups of data in flight, and all groups in flight: one of undo beside them (invariant 6). Each has its own
/// double-write area.
pub(crate) const DATA_WRITERS: usize = 2;
pub(crate) const WRITERS: usize = DATA_WRITERS + 1;
/// For sharp checkpoints: more than there ever are.
const SHARP_WRITERS: usize = 1024;
/// Groups written but not synced, where nothing but a checkpoint asks for the sync.
const UNSYNCED: usize = 64;

/// Tablespaces and their devices.
#[derive(Clone)]
pub(crate) struct Places {
    data: DeviceRef,
    undo: DeviceRef,
    data_syncs: Arc<Syncs>,
    undo_syncs: Arc<Syncs>,
    page_size: usize,
}

impl Places {
    pub(crate) fn new(devices: &DeviceSet, config: &StorageConfig) -> Places {
        let (page_size, safeguards) = (config.page_size, config.safeguards);
        let data_syncs = Syncs::new(devices.data.clone(), Purpose::Data, safeguards);
        let undo_syncs = Syncs::new(devices.undo.clone(), Purpose::Undo, safeguards);
        Places { data: devices.data.clone(), undo: devices.undo.clone(), data_syncs, undo_syncs, page_size }
    }

    pub(crate) fn device(&self, space: SpaceId) -> (&DeviceRef, Purpose) {
        match space {
            DATA => (&self.data, Purpose::Data),
            UNDO => (&self.undo, Purpose::Undo),
            other => panic!("there is no tablespace {other:?}"),
        }
    }

    pub(crate) fn offset(&self, page: PageId) -> u64 {
        PAGES_AT + page.no as u64 * self.page_size as u64
    }

    /// The page at home, if it checks. A page of an unknown format whose checksum is right counts as good: it is not
    /// torn.
    pub(super) async fn read_good(&self, page: PageId) -> Result<Option<IoBuf>> {
        let (device, purpose) = self.device(page.space);
        match device.read(self.offset(page), IoBuf::zeroed(self.page_size), purpose).await {
            Ok(bytes) => {
                let good = matches!(header::verify(&bytes, page), Ok(()) | Err(BadPage::Version(_) | BadPage::Kind(_)));
                Ok(good.then_some(bytes))
            }
            Err(e) if matches!(e.kind, ErrorKind::PastEnd | ErrorKind::Medium(_)) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    pub(super) async fn write(&self, page: PageId, bytes: IoBuf) -> Result<()> {
        assert_eq!(bytes.len() % self.page_size, 0, "whole pages are written");
        let (device, purpose) = self.device(page.space);
        device.write(self.offset(page), bytes, purpose).await?;
        Ok(())
    }

    pub(super) async fn sync(&self, space: SpaceId) -> Result<()> {
        let syncs = if space == UNDO { &self.undo_syncs } else { &self.data_syncs };
        Ok(syncs.sync().await?)
    }

    pub(super) async fn sync_all(&self) -> Result<()> {
        for space in [DATA, UNDO] {
            self.sync(space).await?;
        }
        Ok(())
    }
}

pub(crate) struct DiskHome {
    places: Places,
    log: Log,
    page_size: usize,
    group: usize,
    writers: usize,
    double_write: Option<DoubleWrite>,
    log_before_data: bool,
    checks: bool,
    queue: Mutex<Queue>,
    /// Wake a writer of data, one of undo; wakes the tasks that wait in `sync`.
    data_work: Notify,
    undo_work: Notify,
    progress: Notify,
    failed: OnceLock<StorageError>,
    closing: AtomicBool,
    /// The largest page LSN read: recovery compares it with the log's end.
    newest_seen: AtomicU64,
}

#[derive(Default)]
struct Queue {
    /// Counts pages taken.
    arrivals: u64,
    waiting: VecDeque<Waiting>,
    /// Calls of `write_back` whose pages are not all written.
    calls: BTreeMap<u64, Call>,
    next_call: u64,
    next_group: u64,
    groups: BTreeMap<u64, Group>,
    /// Pages of groups in flight (invariant 2).
    busy: BTreeSet<PageId>,
}

struct Waiting {
    arrival: u64,
    call: u64,
    page: WriteBack,
}

struct Call {
    left: usize,
    done: oneshot::Sender<()>,
}

struct Group {
    rec_lsn: Lsn,
    /// The smallest `WriteBack::redo`.
    redo: Option<Lsn>,
    arrival: u64,
    space: SpaceId,
    pages: Vec<PageId>,
    written: bool,
}

impl DiskHome {
    pub(crate) fn new(devices: &DeviceSet, config: &StorageConfig, database: u128, log: Log) -> DiskHome {
        let atomic = devices.data.guarantees().atomic_write.min(devices.undo.guarantees().atomic_write);
        let covered = atomic >= config.page_size || !config.safeguards.has(Safeguard::DoubleWrite);
        let double_write = (!covered).then(|| Self::areas(devices, config, database));
        DiskHome {
            places: Places::new(devices, config),
            log,
            page_size: config.page_size,
            group: if covered { config.write_group.max(1) } else { config.write_group.clamp(1, MAX_GROUP) },
            writers: if config.sharp_checkpoints && covered { SHARP_WRITERS } else { WRITERS },
            double_write,
            log_before_data: config.safeguards.has(Safeguard::LogBeforeData),
            checks: config.safeguards.has(Safeguard::PageChecks),
            queue: Mutex::default(),
            data_work: Notify::new(),
            undo_work: Notify::new(),
            progress: Notify::new(),
            failed: OnceLock::new(),
            closing: AtomicBool::new(false),
            newest_seen: AtomicU64::new(0),
        }
    }

    /// The double-write areas, whether or not this opening writes through them: an earlier one may have.
    pub(crate) fn areas(devices: &DeviceSet, config: &StorageConfig, database: u128) -> DoubleWrite {
        let group = config.write_group.clamp(1, MAX_GROUP);
        let device = devices.double_write.clone();
        let syncs = Syncs::new(device.clone(), Purpose::DoubleWrite, config.safeguards);
        DoubleWrite::new((device, syncs), database, config.page_size, group)
    }

    /// Starts the writers.
    pub(crate) fn start(self: &Arc<Self>) {
        for area in 0..self.writers {
            let home = self.clone();
            self.log.spawn("page writer", async move { home.run(area).await });
        }
    }

    pub(crate) fn stop(&self) {
        self.closing.store(true, Ordering::Release);
        for area in 0..WRITERS {
            self.work(space_of(area)).notify_one();
        }
        self.data_work.notify_waiters();
        self.undo_work.notify_waiters();
        self.progress.notify_waiters();
    }

    pub(crate) fn newest_seen(&self) -> Lsn {
        Lsn(self.newest_seen.load(Ordering::Acquire))
    }

    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    fn check(&self) -> Result<()> {
        if let Some(e) = self.failed.get() {
            return Err(e.clone());
        }
        if self.closing.load(Ordering::Acquire) {
            return Err(StorageError::ShuttingDown);
        }
        Ok(())
    }

    pub(crate) fn fail(&self, why: StorageError) {
        tracing::error!("writing pages home failed: {why}");
        self.log.fail(&why); // Nothing may be acknowledged any more.
        let _ = self.failed.set(why); // The first reason stays.
        let calls = std::mem::take(&mut self.queue.lock().calls);
        drop(calls); // Their receivers learn it.
        self.progress.notify_waiters();
        self.stop();
    }

    /// What wakes the writers of a tablespace.
    fn work(&self, space: SpaceId) -> &Notify {
        if space == UNDO { &self.undo_work } else { &self.data_work }
    }

    async fn run(&self, area: usize) {
        let space = space_of(area);
        loop {
            if self.check().is_err() {
                let calls = std::mem::take(&mut self.queue.lock().calls);
                drop(calls);
                return;
            }
            let Some((number, oldest, pages)) = self.next_group(space) else {
                self.work(space).notified().await;
                continue;
            };
            if let Err(e) = self.write_group(area, number, oldest, pages).await {
                self.fail(e);
                return;
            }
        }
    }

    /// The next pages of a tablespace to write together: waiting ones that are in no other group, in order of arrival,
    /// sorted by address.
    fn next_group(&self, space: SpaceId) -> Option<(u64, u64, Vec<Waiting>)> {
        let mut queue = self.queue.lock();
        let queue = &mut *queue;
        let mut taken: Vec<Waiting> = Vec::new();
        let mut left = VecDeque::new();
        // A page passed over holds back its later copies too: `seen` keeps their order.
        let mut seen = queue.busy.clone();
        for waiting in queue.waiting.drain(..) {
            let page = waiting.page.page;
            if page.space == space && taken.len() < self.group && seen.insert(page) {
                taken.push(waiting);
            } else {
                left.push_back(waiting);
            }
        }
        queue.waiting = left;
        if taken.is_empty() {
            return None; // All wait for pages in flight. The task that writes those wakes a writer at its end.
        }
        if queue.waiting.iter().any(|waiting| waiting.page.page.space == space) {
            self.work(space).notify_one(); // Another writer goes on with the rest.
        }
        taken.sort_unstable_by_key(|w| w.page.page);
        let number = queue.next_group;
        queue.next_group += 1;
        let group = Group {
            rec_lsn: taken.iter().map(|w| w.page.rec_lsn).min().expect("not empty"),
            redo: taken.iter().filter_map(|w| w.page.redo).min(),
            arrival: taken.iter().map(|w| w.arrival).min().expect("not empty"),
            space,
            pages: taken.iter().map(|w| w.page.page).collect(),
            written: false,
        };
        queue.busy.extend(group.pages.iter().copied());
        queue.groups.insert(number, group);
        let oldest = *queue.groups.first_key_value().expect("just inserted").0;
        Some((number, oldest, taken))
    }

    async fn write_group(&self, area: usize, number: u64, oldest: u64, group: Vec<Waiting>) -> Result<()> {
        if let Some(double_write) = &self.double_write {
            let copies: Vec<(PageId, &[u8])> = group.iter().map(|w| (w.page.page, &w.page.bytes[..])).collect();
            double_write.write(area, number, oldest, &copies).await?;
        }
        let calls: Vec<u64> = group.iter().map(|w| w.call).collect();
        let runs = runs(group.into_iter().map(|w| (w.page.page, w.page.bytes)).collect(), self.page_size);
        try_join_all(runs.into_iter().map(|(page, bytes)| self.places.write(page, bytes))).await?;
        let unsynced = self.note_written(number, &calls);
        if self.double_write.is_some() {
            self.sync_groups(vec![number]).await // The area is used again only after this (double-write invariant 1).
        } else if unsynced >= UNSYNCED {
            self.sync_written().await
        } else {
            Ok(())
        }
    }

    /// The group is readable at home: its callers may go on. Returns the number of groups that wait for a sync.
    fn note_written(&self, number: u64, calls: &[u64]) -> usize {
        let mut done = Vec::new();
        let mut queue = self.queue.lock();
        let queue = &mut *queue;
        let group = queue.groups.get_mut(&number).expect("in flight until synced");
        group.written = true;
        let space = group.space;
        if self.double_write.is_none() {
            // Nothing but order on the device kept them apart.
            for page in &group.pages {
                queue.busy.remove(page);
            }
        }
        for call in calls {
            let Some(entry) = queue.calls.get_mut(call) else { continue };
            entry.left -= 1;
            if entry.left == 0 {
                done.extend(queue.calls.remove(call));
            }
        }
        for call in done {
            let _ = call.done.send(()); // Its future may have been dropped.
        }
        self.work(space).notify_one(); // Copies that waited for these pages.
        self.progress.notify_waiters();
        queue.groups.values().filter(|g| g.written).count()
    }

    /// Makes what is written durable, and waits for nothing else. Groups with a double-write area do so by themselves.
    pub(crate) async fn settle(&self) -> Result<()> {
        self.check()?;
        if self.double_write.is_some() {
            return Ok(());
        }
        self.sync_written().await.inspect_err(|e| self.fail(e.clone()))
    }

    async fn sync_written(&self) -> Result<()> {
        let written = self.queue.lock().groups.iter().filter(|(_, g)| g.written).map(|(&n, _)| n).collect();
        self.sync_groups(written).await
    }

    /// Syncs what these groups, all written, were written to; they are durable then.
    async fn sync_groups(&self, numbers: Vec<u64>) -> Result<()> {
        let spaces: BTreeSet<SpaceId> = {
            let queue = self.queue.lock();
            numbers.iter().filter_map(|n| queue.groups.get(n)).map(|group| group.space).collect()
        };
        try_join_all(spaces.iter().map(|space| self.places.sync(*space))).await?;
        let mut queue = self.queue.lock();
        for number in numbers {
            // Another sync may have covered it meanwhile.
            let Some(group) = queue.groups.remove(&number) else { continue };
            assert!(group.written, "a group is synced after it is written");
            if self.double_write.is_some() {
                for page in group.pages {
                    queue.busy.remove(&page);
                }
            }
        }
        drop(queue);
        spaces.into_iter().for_each(|space| self.work(space).notify_one());
        self.progress.notify_waiters();
        Ok(())
    }

    fn verify(&self, page: PageId, bytes: IoBuf) -> Result<Fetched> {
        if let Some(e) = self.failed.get() {
            return Err(e.clone()); // Invariant 3.
        }
        match header::verify(&bytes, page) {
            Err(why) if self.checks => return Err(StorageError::BadPage { page, why }),
            _ => {}
        }
        let lsn = header::lsn(&bytes);
        if lsn > self.log.end() {
            return Err(StorageError::BadPage { page, why: BadPage::FutureLsn(lsn) });
        }
        self.newest_seen.fetch_max(lsn.0, Ordering::AcqRel);
        Ok(Fetched { bytes, tier: Tier::Disk, leaves: false })
    }

    async fn fetch_one(&self, page: PageId) -> Result<Fetched> {
        let fetched = self.read_one(page).await;
        self.settled(page, fetched).await
    }

    /// Invariant 4.
    async fn settled(&self, page: PageId, mut fetched: Result<Fetched>) -> Result<Fetched> {
        for again in 0.. {
            let torn =
                matches!(&fetched, Err(StorageError::BadPage { why, .. }) if *why != BadPage::Blank && why.is_decay());
            // Once in any case: the write may have ended meanwhile.
            if !torn || !self.arrived(page).await && again > 0 {
                break;
            }
            fetched = self.read_one(page).await;
        }
        fetched
    }

    /// Waits until nothing of the page is on its way home; whether there was anything.
    async fn arrived(&self, page: PageId) -> bool {
        let mut was = false;
        loop {
            let mut progress = std::pin::pin!(self.progress.notified());
            progress.as_mut().enable();
            let on_its_way = {
                let queue = self.queue.lock();
                let unwritten = queue.groups.values().filter(|group| !group.written);
                queue
                    .waiting
                    .iter()
                    .map(|waiting| &waiting.page.page)
                    .chain(unwritten.flat_map(|g| &g.pages))
                    .any(|p| *p == page)
            };
            if !on_its_way || self.check().is_err() {
                return was;
            }
            was = true;
            progress.await;
        }
    }

    async fn read_one(&self, page: PageId) -> Result<Fetched> {
        let (device, purpose) = self.places.device(page.space);
        match device.read(self.places.offset(page), IoBuf::zeroed(self.page_size), purpose).await {
            Ok(bytes) => self.verify(page, bytes),
            Err(e) if e.kind == ErrorKind::PastEnd => Err(StorageError::BadPage { page, why: BadPage::Blank }),
            Err(e) if matches!(e.kind, ErrorKind::Medium(_)) => {
                tracing::warn!(%page, "{e}");
                Err(StorageError::BadPage { page, why: BadPage::Unreadable })
            }
            Err(e) => Err(e.into()),
        }
    }

    async fn fetch_run(&self, first: PageId, count: u32) -> Vec<Result<Fetched>> {
        let (device, purpose) = self.places.device(first.space);
        let at = self.places.offset(first);
        let there = (device.size().saturating_sub(at) / self.page_size as u64).min(count as u64) as u32;
        let page = |i: u32| PageId::new(first.space, first.no + i);
        let mut results = Vec::with_capacity(count as usize);
        if there > 1 {
            let read = device.read(at, IoBuf::zeroed(there as usize * self.page_size), purpose).await;
            if let Ok(all) = read {
                for (i, bytes) in all.chunks_exact(self.page_size).enumerate() {
                    let read = self.verify(page(i as u32), IoBuf::padded(bytes));
                    results.push(self.settled(page(i as u32), read).await);
                }
            }
        }
        // One page; or the run failed: each for itself, so that only what is damaged fails.
        let rest = (results.len() as u32..there).map(|i| self.fetch_one(page(i)));
        results.extend(join_all(rest).await);
        results.extend((there..count).map(|i| Err(StorageError::BadPage { page: page(i), why: BadPage::Blank })));
        results
    }

    /// Both sides check what crosses the seam: identity, seal, and R4.
    fn accept(&self, page: &WriteBack) {
        assert_eq!(page.bytes.len(), self.page_size, "page {} is written whole", page.page);
        assert_eq!(header::verify(&page.bytes, page.page), Ok(()), "page {} comes sealed", page.page);
        assert_eq!(header::lsn(&page.bytes), page.lsn, "page {} carries its LSN", page.page);
        assert!(page.rec_lsn <= page.lsn, "page {}: recLSN {} above its LSN {}", page.page, page.rec_lsn, page.lsn);
        if self.log_before_data {
            let durable = self.log.durable();
            assert!(
                page.lsn <= durable,
                "R4: page {} at {} goes home, the log is durable to {durable}",
                page.page,
                page.lsn
            );
        }
    }
}

/// The tablespace whose groups a writer writes (invariant 6).
fn space_of(area: usize) -> SpaceId {
    if area % WRITERS == WRITERS - 1 { UNDO } else { DATA }
}

/// Adjacent pages become one write each run. `pages` ascend.
fn runs(pages: Vec<(PageId, IoBuf)>, page_size: usize) -> Vec<(PageId, IoBuf)> {
    let mut runs: Vec<Vec<(PageId, IoBuf)>> = Vec::new();
    for (page, bytes) in pages {
        match runs.last_mut() {
            Some(run) if run[0].0.space == page.space && run[0].0.no + run.len() as u32 == page.no => {
                run.push((page, bytes))
            }
            _ => runs.push(vec![(page, bytes)]),
        }
    }
    runs.into_iter()
        .map(|mut run| {
            if run.len() == 1 {
                return run.pop().expect("one page");
            }
            let mut all = IoBuf::zeroed(run.len() * page_size);
            for (i, (_, bytes)) in run.iter().enumerate() {
                all[i * page_size..(i + 1) * page_size].copy_from_slice(bytes);
            }
            (run[0].0, all)
        })
        .collect()
}

impl Home for DiskHome {
    fn fetch(&self, first: PageId, count: u32, _access: Access) -> HomeFuture<'_, Vec<Result<Fetched>>> {
        assert!(count > 0, "a fetch of no pages");
        if count == 1 {
            return Box::pin(async move { vec![self.fetch_one(first).await] });
        }
        Box::pin(self.fetch_run(first, count))
    }

    fn create(&self, _page: PageId) {}

    fn dirtied(&self, _page: PageId) -> Option<Lsn> {
        None // What is on its way home stays in its group until it is durable.
    }

    fn write_back(&self, pages: Vec<WriteBack>, _reason: Reason) -> HomeFuture<'_, Result<()>> {
        if pages.is_empty() {
            return Box::pin(std::future::ready(Ok(())));
        }
        pages.iter().for_each(|page| self.accept(page));
        // Taken now, not when the future is first polled: from here on the home answers for them (invariant 1).
        // Asked under the lock: the task that stops the home takes the calls that it finds afterwards.
        let spaces: BTreeSet<SpaceId> = pages.iter().map(|page| page.page.space).collect();
        let mut queue = self.queue.lock();
        let taken = self.check().map(|()| {
            let (send, receive) = oneshot::channel();
            let call = queue.next_call;
            queue.next_call += 1;
            queue.calls.insert(call, Call { left: pages.len(), done: send });
            for page in pages {
                let arrival = queue.arrivals;
                queue.arrivals += 1;
                queue.waiting.push_back(Waiting { arrival, call, page });
            }
            receive
        });
        drop(queue);
        spaces.into_iter().for_each(|space| self.work(space).notify_one());
        Box::pin(async move {
            match taken?.await {
                Ok(()) => Ok(()),
                Err(_) => Err(self.check().err().unwrap_or(StorageError::ShuttingDown)),
            }
        })
    }

    fn evicted_clean(&self, _page: PageId, _bytes: &[u8], _access: Access) {}

    fn forget(&self, _space: SpaceId, _first: u32, _count: u32) {
        // The device keeps its room (it was allocated so that writes cannot fail), and what the log frees may yet be
        // undone by a crash: the bytes stay.
    }

    fn oldest_rec_lsn(&self) -> Option<Lsn> {
        let queue = self.queue.lock();
        let waiting = queue.waiting.iter().map(|w| w.page.rec_lsn);
        waiting.chain(queue.groups.values().map(|g| g.rec_lsn)).min()
    }

    fn oldest_redo(&self) -> Option<Lsn> {
        let queue = self.queue.lock();
        let waiting = queue.waiting.iter().filter_map(|w| w.page.redo);
        waiting.chain(queue.groups.values().filter_map(|g| g.redo)).min()
    }

    fn sync(&self) -> HomeFuture<'_, Result<()>> {
        let upto = self.queue.lock().arrivals;
        Box::pin(async move {
            loop {
                let mut progress = std::pin::pin!(self.progress.notified());
                progress.as_mut().enable();
                self.check()?;
                let (pending, written) = {
                    let queue = self.queue.lock();
                    let old = queue.groups.values().filter(|g| g.arrival < upto);
                    let unwritten = queue.waiting.iter().any(|w| w.arrival < upto) || old.clone().any(|g| !g.written);
                    (unwritten, old.filter(|g| g.written).count())
                };
                if !pending && written == 0 {
                    return Ok(());
                }
                if !pending && self.double_write.is_none() {
                    self.settle().await?;
                    continue;
                }
                progress.await;
            }
        })
    }

    fn failure(&self) -> Option<StorageError> {
        self.failed.get().cloned()
    }
}
