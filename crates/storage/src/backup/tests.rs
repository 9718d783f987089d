//! Backups taken while pages change, restored to their end, to later log, and to points in between.

use crate::backup::*;
use crate::home::disk::PAGES_AT;
use crate::log::archive::Archive;
use crate::mtr::LogEvent;
use crate::page::op::PageOp;
use crate::page::{PageKind, slotted};
use crate::pool::Access;
use crate::*;
use std::sync::Arc;
use std::time::Duration;
use terrace_device::{DeviceRef, IoBuf, MemoryDevice};
use terrace_env::{Env, Sim};

const PAGES: usize = 40;
const OWNER: ObjectId = ObjectId(50);

fn config() -> StorageConfig {
    StorageConfig {
        page_size: 4096,
        pool_bytes: if TIER.get() { 12 } else { 64 } * 4096,
        segment_size: 64 << 10,
        log_buffer: 128 << 10,
        redo_bound: 256 << 10,
        log_retention: 256 << 10,
        write_group: 4,
        writer_interval: Duration::from_millis(2),
        checkpoint_interval: Duration::from_millis(10),
        ..tiered()
    }
}

thread_local! {
    /// Whether this thread's stores have a flash tier, and memory for few of their pages.
    static TIER: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn tiered() -> StorageConfig {
    let flash = FlashConfig { size: 64 * 4096, dirty_fraction: 1.0, ..FlashConfig::default() };
    StorageConfig { flash, ..StorageConfig::default() }
}

fn devices() -> DeviceSet {
    let device = |name: &str| Arc::new(MemoryDevice::new(name, 64 << 20)) as DeviceRef;
    DeviceSet { flash: TIER.get().then(|| device("flash")), ..DeviceSet::from_fn(device) }
}

/// Pages with counters, and a commit event for each step: the time of step `n` is `n`.
struct Work {
    pages: Vec<u32>,
    /// The sum of all counters after each step, and the log's end there.
    ends: Vec<Lsn>,
}

async fn begin(st: &Store) -> Work {
    let mut pages = vec![];
    for _ in 0..PAGES {
        let room = st.space(DATA).reserve_page(st, OWNER).await.unwrap();
        let pin = room.pin.clone();
        let permit = st.reserve(2000).await.unwrap();
        let mut mtr = st.mtr(permit);
        let at = mtr.latch(&pin);
        mtr.apply(at, PageOp::Format { kind: PageKind::Heap, owner: OWNER, special: 0 });
        mtr.apply(at, PageOp::Put { slot: 0, cell: &0u64.to_le_bytes() });
        st.space(DATA).use_page(&mut mtr, room);
        mtr.commit();
        pages.push(pin.id().no);
    }
    Work { pages, ends: vec![st.log().end()] }
}

fn counter(page: &[u8]) -> u64 {
    u64::from_le_bytes(slotted::cell(page, 0).unwrap()[..8].try_into().unwrap())
}

impl Work {
    /// Step `n` sets one counter to `n`.
    async fn step(&mut self, st: &Store) {
        let n = self.ends.len() as u64;
        let page = PageId::new(DATA, self.pages[(n as usize * 7) % PAGES]);
        let pin = st.pool().fetch(page, Access::Random).await.unwrap();
        let permit = st.reserve(4000).await.unwrap();
        {
            let mut mtr = st.mtr(permit);
            let at = mtr.latch(&pin);
            mtr.apply(at, PageOp::Patch { slot: 0, offset: 0, bytes: &n.to_le_bytes() });
            mtr.apply(at, PageOp::Put { slot: 1, cell: &vec![n as u8; 700] });
            mtr.event(LogEvent::Commit { txn: TxnId(n), unix_micros: n as i64 });
            self.ends.push(mtr.commit());
        }
        if n.is_multiple_of(3) {
            st.env().sleep(Duration::from_millis(1)).await;
        }
    }

    /// The counters as they stood after step `n`.
    fn counters(&self, n: u64) -> Vec<u64> {
        (0..PAGES as u64).map(|page| (0..=n).rev().find(|n| n * 7 % PAGES as u64 == page).unwrap_or(0)).collect()
    }
}

/// What a backup consists of.
struct Copied {
    control: control::Control,
    end: BackupEnd,
    spaces: Vec<(SpaceId, u64, IoBuf)>,
    segments: Vec<Vec<u8>>,
}

/// Copies page by page while the work goes on.
async fn back_up(st: &Store, work: &mut Work) -> Copied {
    let backup = st.begin_backup().await.unwrap();
    assert!(matches!(st.begin_backup().await, Err(StorageError::Busy(_))), "one at a time");
    let spaces = pages(&backup, st, work).await;
    let end = backup.end().await.unwrap();
    let segments = segments(&backup, &end).await;
    Copied { control: backup.control, end, spaces, segments }
}

async fn segments(backup: &Backup, end: &BackupEnd) -> Vec<Vec<u8>> {
    let mut segments = vec![];
    for number in end.first_segment..=end.last_segment {
        segments.push(backup.segment(number).await.unwrap());
    }
    segments
}

async fn pages(backup: &Backup, st: &Store, work: &mut Work) -> Vec<(SpaceId, u64, IoBuf)> {
    let mut spaces = vec![];
    let mut dirty = 0;
    for space in [DATA, UNDO] {
        let mut at = PAGES_AT;
        while at < backup.size(space) {
            let len = (backup.size(space) - at).min(2 * 4096) as usize;
            spaces.push((space, at, backup.read(space, at, len).await.unwrap()));
            at += len as u64;
            if spaces.len().is_multiple_of(2) && spaces.len() < 100 {
                work.step(st).await;
                work.step(st).await;
            }
            dirty = dirty.max(st.flash().map_or(0, |tier| tier.dirty));
        }
    }
    assert_eq!(dirty > 0, TIER.get(), "pages that are newer in the tier than where the copy reads them");
    spaces
}

/// Restores onto new devices; the counters found, or why not.
async fn restore(env: &Env, copied: &Copied, archived: &[Vec<u8>], upto: Upto) -> Result<(Vec<u64>, RecoveryReport)> {
    let devices = devices();
    let work_pages: Vec<u32> = PAGE_NUMBERS.with(|pages| pages.borrow().clone());
    let restore = Restore::begin(env, &devices, &config(), copied.control).await?;
    for (space, at, bytes) in &copied.spaces {
        let mut copy = IoBuf::zeroed(bytes.len());
        copy.copy_from_slice(bytes);
        restore.write(*space, *at, copy).await?;
    }
    // The archive's whole segment in place of the backup's unfinished one.
    let facts = |bytes: &[u8]| segment_facts(bytes, copied.control.database, 64 << 10).unwrap().unwrap();
    let own = copied.segments.iter().filter(|s| archived.iter().all(|a| facts(a).number != facts(s).number));
    for (slot, segment) in own.chain(archived).enumerate() {
        restore.segment(slot as u32, segment).await?;
    }
    restore.finish().await?;
    let (st, report) = Store::open_upto(env.clone(), devices.clone(), config(), upto).await?;
    let mut found = vec![];
    for no in &work_pages {
        let pin = st.pool().fetch(PageId::new(DATA, *no), Access::Random).await?;
        found.push(counter(&pin.read()));
    }
    st.close().await?;
    rebirth(env, &devices, &config(), 0).await?;
    // It opens as a database of its own, and goes on.
    let (st, again) = Store::open(env.clone(), devices.clone(), config()).await?;
    assert!(again.clean_shutdown && again.batches == 0, "{again:?}");
    let state = control::Control::read(&devices.control).await?;
    assert!(state.database != copied.control.database && state.next_object > copied.control.next_object);
    let mut work = Work { pages: work_pages, ends: vec![st.log().end()] };
    for _ in 0..200 {
        work.step(&st).await;
    }
    st.close().await?;
    let (st, _) = Store::open(env.clone(), devices, config()).await?;
    st.close().await?;
    Ok((found, report))
}

thread_local! {
    static PAGE_NUMBERS: std::cell::RefCell<Vec<u32>> = const { std::cell::RefCell::new(vec![]) };
}

#[test]
fn a_copy_of_changing_pages_is_restored_to_its_end_and_to_points_behind_it() {
    copies(0..5);
}

/// What is newer in a tier than on the disk is in the log that the copy holds, because it begins at `retain_lsn`.
#[test]
fn a_copy_beside_a_dirty_flash_tier_lacks_nothing() {
    TIER.set(true);
    copies(5..10);
    TIER.set(false);
}

/// The last segment is read while it is written: of what lies behind the copy's end a later part may be in it, and an
/// earlier one not.
#[test]
fn r3_a_hole_behind_a_copys_end_is_not_damage() {
    let sim = Sim::new(11, 2);
    let env = sim.env();
    sim.run(async move {
        let (devices, size) = (devices(), 64 << 10);
        let st = Store::create(env.clone(), devices.clone(), config()).await.unwrap();
        let mut work = begin(&st).await;
        PAGE_NUMBERS.with(|pages| *pages.borrow_mut() = work.pages.clone());
        for _ in 0..100 {
            work.step(&st).await;
        }
        let backup = st.begin_backup().await.unwrap();
        let spaces = pages(&backup, &st, &mut work).await;
        while st.log().end().0 % size > size / 2 {
            work.step(&st).await;
        }
        let (end, last) = (backup.end().await.unwrap(), work.ends.len() as u64 - 1);
        for _ in 0..20 {
            work.step(&st).await;
            st.log().flush_to(st.log().end()).await.unwrap();
        }
        assert_eq!(st.log().segment_of(st.log().end()), end.last_segment);
        let found = crate::log::inspect::segments(&devices.log, size, backup.control.database).await.unwrap();
        let slot = found.iter().rfind(|s| s.number == end.last_segment).unwrap().slot;
        let hole = crate::log::inspect::slot_at(slot, size) + (end.lsn.0 % size).next_multiple_of(4096);
        devices.log.write(hole, IoBuf::zeroed(4096), terrace_device::Purpose::Log).await.unwrap();
        let segments = segments(&backup, &end).await;
        let copied = Copied { control: backup.control, end, spaces, segments };
        let (found, report) = restore(&env, &copied, &[], Upto::End).await.unwrap();
        let end = report.last_commit.unwrap() as u64;
        assert!(end >= last && found == work.counters(end), "{end}, {last}");
    });
}

fn copies(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let sim = Sim::new(seed, 2);
        let env = sim.env();
        sim.run(async move {
            let archive = Arc::new(parking_lot::Mutex::new(std::collections::BTreeMap::new()));
            let to = archive.clone();
            let archiving = Archive::new(move |number, bytes| {
                to.lock().insert(number, bytes);
                async { Ok(()) }
            });
            let config = StorageConfig { archive: Some(archiving), ..config() };
            let st = Store::create(env.clone(), devices(), config).await.unwrap();
            let mut work = begin(&st).await;
            PAGE_NUMBERS.with(|pages| *pages.borrow_mut() = work.pages.clone());
            for _ in 0..300 {
                work.step(&st).await;
            }
            let copied = back_up(&st, &mut work).await;
            let last = work.ends.len() as u64 - 1;
            for _ in 0..700 {
                work.step(&st).await;
            }
            st.log().flush_to(st.log().end()).await.unwrap();
            let whole = work.ends.len() as u64 - 1;
            st.close().await.unwrap();
            assert!(copied.segments.len() >= 2, "{:?}", copied.end);

            let (found, report) = restore(&env, &copied, &[], Upto::End).await.unwrap();
            assert!(report.redo_to >= copied.end.lsn && !report.stopped_short);
            let end = report.last_commit.unwrap() as u64;
            assert!(end >= last && found == work.counters(end), "seed {seed}: to the end of the copy");

            let archived: Vec<Vec<u8>> = archive.lock().values().cloned().collect();
            let first = copied.end.first_segment;
            let archived: Vec<Vec<u8>> = archived
                .into_iter()
                .filter(|s| segment_facts(s, copied.control.database, 64 << 10).unwrap().unwrap().number >= first)
                .collect();
            let (found, report) = restore(&env, &copied, &archived, Upto::End).await.unwrap();
            let end = report.last_commit.unwrap() as u64;
            assert!(end > last + 300 && end <= whole && found == work.counters(end), "seed {seed}: {end} of {whole}");
            for n in [last + 1, last + 57, last + 200] {
                let (found, report) = restore(&env, &copied, &archived, Upto::Time(n as i64)).await.unwrap();
                assert_eq!((report.last_commit, report.stopped_short), (Some(n as i64), true));
                assert_eq!(found, work.counters(n), "seed {seed}: to the time of step {n}");
                let lsn = work.ends[n as usize + 1];
                let (found, report) = restore(&env, &copied, &archived, Upto::Lsn(lsn)).await.unwrap();
                assert_eq!((report.last_commit, report.redo_to), (Some(n as i64 + 1), lsn));
                assert_eq!(found, work.counters(n + 1), "seed {seed}: to the LSN of step {n}");
            }
            // Before its end a copy is of no one time.
            let early = restore(&env, &copied, &archived, Upto::Lsn(copied.control.retain_lsn)).await;
            assert!(early.is_err() || early.unwrap().1.redo_to < copied.end.lsn);
        });
    }
}
