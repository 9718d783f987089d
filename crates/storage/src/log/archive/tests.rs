//! Archives that refuse for a while: what they have not got is kept through restarts, and arrives without a gap.

use super::*;
use crate::backup::segment_facts;
use crate::log::tests::{config, create, put, reopen};
use crate::log::{Block, EVENT, Log, LogUse, batch};
use crate::testing::{Rig, reopen as open_again, simulate};
use crate::types::Lsn;
use crate::{StorageConfig, StorageError, Store};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use terrace_device::{DeviceRef, MemoryDevice, SECTOR};
use terrace_env::{Env, Sim};

const SEGMENT: u64 = 64 << 10;
/// The most segments that the log has on the rig's device, but for openings that the archive leaves no room for.
const MOST: usize = 12;

/// An archive that can be away.
#[derive(Clone, Default)]
struct Shelf {
    away: Arc<AtomicBool>,
    stored: Arc<parking_lot::Mutex<BTreeMap<u64, Vec<u8>>>>,
}

impl Shelf {
    fn away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }

    fn archive(&self) -> Archive {
        let shelf = self.clone();
        Archive::new(move |number, bytes| {
            let away = shelf.away.load(Ordering::SeqCst);
            if !away {
                shelf.stored.lock().insert(number, bytes);
            }
            async move { if away { Err("it is away".to_string()) } else { Ok(()) } }
        })
    }

    /// The first segment that is not here; all below it are, and each goes on where the one before ended.
    fn next(&self, database: u128) -> u64 {
        let stored = self.stored.lock();
        let mut ends = Lsn(0);
        for (number, (stored, bytes)) in stored.iter().enumerate() {
            let facts = segment_facts(bytes, database, SEGMENT).expect("known").expect("this database's");
            assert_eq!((facts.number, *stored), (number as u64, number as u64), "a gap");
            assert_eq!(facts.begins, ends, "segment {number} goes on elsewhere");
            ends = facts.ends;
        }
        stored.len() as u64
    }

    fn rig(&self) -> Arc<Rig> {
        let mut rig = Rig::new(64, u64::MAX);
        rig.config = StorageConfig {
            segment_size: SEGMENT,
            log_buffer: 128 << 10,
            redo_bound: 2 * SEGMENT,
            log_retention: 4 * SEGMENT,
            archive: Some(self.archive()),
            ..rig.config
        };
        Arc::new(rig)
    }
}

/// Appends so many segments' worth of log.
async fn write(st: &Store, segments: u64) -> crate::Result<()> {
    let log = st.log();
    let until = log.end().0 + segments * SEGMENT;
    while log.end().0 < until {
        let blocks = [Block { page: EVENT, prev: Lsn(0), ops: &[0; 5000] }];
        let permit = st.reserve(batch::encoded_len(blocks.iter().copied())).await?;
        let (_, end) = log.append(permit, blocks.iter().copied());
        log.flush_to(end).await?;
    }
    Ok(())
}

/// An orderly end, or none.
async fn close(st: Store, orderly: bool) {
    if orderly {
        st.close().await.expect("closes");
    }
}

/// Appends until nothing is taken any more, for the archive's sake.
async fn write_all(st: &Store) {
    match write(st, u64::from(u32::MAX)).await {
        Err(StorageError::LogFull(why)) => assert!(why.contains("archive"), "{why}"),
        other => panic!("{other:?}"),
    }
}

/// The open segment's number, and that every segment below it from `first` on is still there.
async fn kept(log: &Log, first: u64) -> u64 {
    let open = log.segment_of(log.end());
    for number in first..open {
        assert!(log.segment(number).await.expect("reads").is_some(), "segment {number} is gone");
    }
    open
}

#[test]
fn what_the_archive_lacks_is_kept_through_restarts() {
    for seed in 0..8 {
        let shelf = Shelf::default();
        let rig = shelf.rig();
        let of = shelf.clone();
        simulate(seed, &rig, move |st| async move {
            write(&st, 3).await.expect("the log has room");
            st.env().sleep(RETRY).await;
            of.away(true);
            write(&st, 4).await.expect("the log has room");
            let lacks = of.next(st.log().core.database);
            let open = kept(st.log(), lacks).await;
            assert!(open > lacks, "the archive lacks some");
            let shown = st.log().status().archive.expect("there is one");
            assert_eq!((shown.lsn.0, shown.lacks as u64), (lacks * SEGMENT, open - lacks));
            close(st, seed & 1 != 0).await;
        });
        let of = shelf.clone();
        open_again(seed + 100, &rig, move |st| async move {
            write_all(&st).await;
            let lacks = of.next(st.log().core.database);
            let open = kept(st.log(), lacks).await;
            assert!(lacks < 4 && open > lacks + 4, "more than is kept without an archive: {lacks} to {open}");
            close(st, seed & 2 != 0).await;
        });
        shelf.away(false);
        open_again(seed + 200, &rig, move |st| async move {
            write(&st, MOST as u64).await.expect("the log has room again");
            st.env().sleep(RETRY).await;
            let log = st.log();
            assert_eq!(shelf.next(log.core.database), log.segment_of(log.end()), "all but the open segment");
            assert!(log.segments()[0] > 4, "they are used again");
            close(st, seed & 4 != 0).await;
        });
    }
}

#[test]
fn without_an_archive_nothing_is_held() {
    let shelf = Shelf::default();
    shelf.away(true);
    let rig = shelf.rig();
    simulate(1, &rig, |st| async move { write_all(&st).await });
    let mut without = (*rig).clone();
    without.config.archive = None;
    open_again(2, &Arc::new(without), |st| async move {
        write(&st, 3 * MOST as u64).await.expect("the log has room");
        assert!(st.log().segments().len() <= MOST && st.log().segments()[0] > MOST as u64);
    });
}

/// Each opening takes a segment of its own, and rolling back needs room.
#[test]
fn an_archive_that_refuses_stops_no_opening() {
    let shelf = Shelf::default();
    shelf.away(true);
    let rig = shelf.rig();
    simulate(1, &rig, |st| async move { write_all(&st).await });
    for life in 0..6 {
        open_again(10 + life, &rig, |st| async move {
            write_all(&st).await;
            write(&st.for_cleanup(), 1).await.expect("the reserve is there");
            kept(st.log(), 0).await;
        });
    }
    shelf.away(false);
    open_again(20, &rig, move |st| async move {
        write(&st, 2 * MOST as u64).await.expect("the log has room again");
        st.env().sleep(RETRY).await;
        let log = st.log();
        assert_eq!(shelf.next(log.core.database), log.segment_of(log.end()));
        let most = MOST as u32 + 6 * 3;
        assert!(log.status().capacity_segments <= most, "{:?}", log.status());
    });
}

/// A log that has used all of its device up, its archive away: with the archive, the configuration and the device.
async fn full_device(env: &Env) -> (Shelf, StorageConfig, DeviceRef, Log) {
    let device: DeviceRef = Arc::new(MemoryDevice::new("log", SECTOR as u64 + 6 * SEGMENT));
    let shelf = Shelf::default();
    shelf.away(true);
    let config = StorageConfig { archive: Some(shelf.archive()), ..config() };
    let log = create(env.clone(), device.clone(), &config).await.expect("creates");
    loop {
        match put(&log, 1, Lsn(0), &[0; 5000]).await {
            Ok((_, end)) => {
                log.flush_to(end).await.expect("flushes");
                log.recorded(end, end);
            }
            Err(StorageError::LogFull(_)) => return (shelf, config, device, log),
            Err(other) => panic!("{other}"),
        }
    }
}

/// Nothing can be had from the device: openings use the reserve up, until what the archive takes makes room.
#[test]
fn a_full_device_opens_when_the_archive_is_back() {
    let sim = Sim::new(9, 1);
    let env = sim.env();
    sim.run(async move {
        let (shelf, config, device, mut log) = full_device(&env).await;
        for epoch in 2..4 {
            log.stop();
            let end = log.durable();
            (log, ..) = reopen(env.clone(), device.clone(), end, &config).await.expect("reads");
            log.start(epoch, end).await.expect("there is a reserve");
            if epoch == 2 {
                let room = log.reserve(100, LogUse::Cleanup).await.expect("the reserve");
                let (_, end) = log.append(room, [Block { page: EVENT, prev: Lsn(0), ops: &[1] }].into_iter());
                log.flush_to(end).await.expect("flushes");
            }
        }
        assert!(shelf.stored.lock().is_empty());
        let (l, granted) = (log.clone(), Arc::new(AtomicBool::new(false)));
        let g = granted.clone();
        env.spawn("rollback", async move {
            drop(l.reserve(100, LogUse::Cleanup).await.expect("granted in the end"));
            g.store(true, Ordering::SeqCst);
        });
        env.sleep(5 * RETRY).await;
        assert!(!granted.load(Ordering::SeqCst), "the reserve is gone, and the archive away");
        shelf.away(false);
        env.sleep(2 * RETRY).await;
        assert!(granted.load(Ordering::SeqCst), "what the archive takes makes room");
        assert!(shelf.next(log.core.database) > 0 && log.segments()[0] > 0);
        // And where a start finds the archive back, it begins with room.
        log.stop();
        let end = log.durable();
        (log, ..) = reopen(env.clone(), device.clone(), end, &config).await.expect("reads");
        log.start(4, end).await.expect("there is room");
        put(&log, 1, Lsn(0), &[0; 5000]).await.expect("goes on");
    });
}

#[test]
fn nothing_is_recycled_before_it_is_archived() {
    let sim = Sim::new(9, 1);
    let env = sim.env();
    sim.run(async move {
        let (shelf, _, _, log) = full_device(&env).await;
        assert!(shelf.stored.lock().is_empty() && log.segments()[0] == 0, "nothing archived, nothing recycled");
        let before = log.status().archive.expect("there is one");
        assert!(before.refuses && before.failures > 0 && before.lacks == log.segments().len() - 1, "{before:?}");
        assert_eq!((before.lsn, before.last_failure.map(|(_, why)| why)), (Lsn(0), Some("it is away".into())));
        shelf.away(false);
        env.sleep(5 * RETRY).await;
        let after = log.status().archive.expect("there is one");
        assert_eq!((after.refuses, after.lacks, after.failures), (false, 0, before.failures), "{after:?}");
        assert_eq!(after.lsn.0, shelf.next(log.core.database) * SEGMENT);
        assert!(shelf.next(log.core.database) > 0, "tried again after the failure");
        put(&log, 1, Lsn(0), &[0; 5000]).await.expect("goes on once archived");
        assert!(log.segments()[0] > 0);
    });
}
