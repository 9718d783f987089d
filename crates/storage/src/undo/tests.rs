//! Segments on memory devices: appending, undoing, ending, consuming, and what a restart finds.
use super::space::KEEP_WARM;
use super::*;
use crate::config::{DeviceSet, StorageConfig};
use std::sync::Arc;
use terrace_device::memory::MemoryDevice;
use terrace_env::Sim;

fn devices() -> DeviceSet {
    let device = |name: &str| Arc::new(MemoryDevice::new(name, 1 << 30)) as terrace_device::DeviceRef;
    DeviceSet::from_fn(device)
}

fn config() -> StorageConfig {
    StorageConfig {
        page_size: 4096,
        pool_bytes: 2 << 20,
        segment_size: 1 << 20,
        log_buffer: 1 << 20,
        ..StorageConfig::default()
    }
}

async fn create(sim_env: terrace_env::Env, devices: DeviceSet) -> Store {
    let st = Store::create(sim_env, devices, config()).await.unwrap();
    st.undo().format(&st).await.unwrap();
    st
}

async fn append(st: &Store, writer: &mut UndoWriter, body: &[u8]) -> UndoPtr {
    let room = st.undo().reserve(st, writer, body.len()).await.unwrap();
    let permit = st.reserve(UndoSpace::log_bytes(body.len())).await.unwrap();
    let mut mtr = st.mtr(permit);
    let ptr = st.undo().append(&mut mtr, writer, room, body);
    mtr.commit();
    ptr
}

async fn finish(st: &Store, writer: UndoWriter, end: TxnEnd) -> History {
    let permit = st.reserve(UndoSpace::log_bytes(0)).await.unwrap();
    let mtr = st.mtr(permit);
    let (lsn, history) = st.undo().end(mtr, writer, end, 0);
    st.log().flush_to(lsn).await.unwrap();
    history
}

/// Bodies of a history, newest first.
async fn bodies(st: &Store, mut ptr: UndoPtr) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    while !ptr.is_none() {
        let record = st.undo().read(st, ptr).await.unwrap();
        out.push(record.body);
        ptr = record.prev;
    }
    out
}

#[test]
fn transactions_follow_each_other_in_a_segment_and_undone_records_are_left_out() {
    let sim = Sim::new(1, 1);
    let env = sim.env();
    sim.run(async move {
        let st = create(env, devices()).await;
        let undo = st.undo();
        let mut a = undo.begin(&st, |id| assert_eq!(id, TxnId(1))).await.unwrap();
        let first = append(&st, &mut a, b"one").await;
        append(&st, &mut a, b"two").await;
        assert_eq!(undo.position(&a).page(), first.page());
        let permit = st.reserve(UndoSpace::log_bytes(0)).await.unwrap();
        {
            let mut mtr = st.mtr(permit);
            undo.undone(&mut mtr, &mut a, first);
            mtr.commit();
        }
        append(&st, &mut a, b"three").await;
        let a = finish(&st, a, TxnEnd::Committed).await;
        assert_eq!(bodies(&st, a.last).await, vec![b"three".to_vec(), b"one".to_vec()]);
        let mut b = undo.begin(&st, |id| assert_eq!(id, TxnId(2))).await.unwrap();
        append(&st, &mut b, b"four").await;
        let b = finish(&st, b, TxnEnd::RolledBack).await;
        assert_eq!((a.slot, a.first.page()), (b.slot, b.first.page()));
        assert!(a.seq < b.seq);
        assert_eq!(undo.check(&st, &[a, b]).await.unwrap(), Vec::<String>::new());
    });
}

#[test]
fn extents_are_reused_and_the_limit_holds() {
    let sim = Sim::new(2, 1);
    let env = sim.env();
    sim.run(async move {
        let st = create(env, devices()).await;
        let undo = st.undo();
        undo.set_limit(8 << 20);
        let body = vec![7; UndoSpace::max_body(4096)];
        let per_extent = (EXTENT_BYTES / 4096) as usize;
        // Forty extents' worth of transactions within a limit of eight, for each is consumed.
        for i in 0..80u64 {
            let mut writer = undo.begin(&st, |_| {}).await.unwrap();
            for _ in 0..per_extent / 2 {
                append(&st, &mut writer, &body).await;
            }
            let history = finish(&st, writer, TxnEnd::Committed).await;
            assert_eq!(history.txn, TxnId(i + 1));
            undo.consumed(&st, &history).await.unwrap();
            assert!(undo.used_bytes() <= 4 << 20, "{} bytes in use", undo.used_bytes());
        }
        let mut writer = undo.begin(&st, |_| {}).await.unwrap();
        let full = loop {
            let room = match undo.reserve(&st, &mut writer, body.len()).await {
                Ok(room) => room,
                Err(e) => break e,
            };
            let permit = st.reserve(UndoSpace::log_bytes(body.len())).await.unwrap();
            {
                let mut mtr = st.mtr(permit);
                undo.append(&mut mtr, &mut writer, room, &body);
                mtr.commit();
            }
        };
        assert!(matches!(full, StorageError::UndoFull(_)), "{full}");
        assert_eq!(undo.used_bytes(), 8 << 20);
        // Ending needs no room.
        let history = finish(&st, writer, TxnEnd::RolledBack).await;
        undo.consumed(&st, &history).await.unwrap();
        assert_eq!(undo.check(&st, &[]).await.unwrap(), Vec::<String>::new());
    });
}

#[test]
fn purge_that_is_cut_off_loses_no_extent() {
    let sim = Sim::new(4, 1);
    let env = sim.env();
    sim.run(async move {
        let st = create(env.clone(), devices()).await;
        let undo = st.undo();
        let body = vec![7; UndoSpace::max_body(4096)];
        let mut writer = undo.begin(&st, |_| {}).await.unwrap();
        for _ in 0..3 * EXTENT_BYTES / 4096 {
            append(&st, &mut writer, &body).await;
        }
        let history = finish(&st, writer, TxnEnd::Committed).await;
        let before = undo.used_bytes();
        // Nobody gets log room; the purge waits and is given up.
        let mut held = Vec::new();
        for bytes in [64 << 10, 4 << 10, 512, 64, 1] {
            loop {
                let permit = std::pin::pin!(st.reserve_for_cleanup(bytes));
                match futures::future::select(permit, env.sleep(std::time::Duration::from_millis(1))).await {
                    futures::future::Either::Left((permit, _)) => held.push(permit.unwrap()),
                    futures::future::Either::Right(_) => break,
                }
            }
        }
        {
            let purge = std::pin::pin!(undo.consumed(&st, &history));
            let cut = futures::future::select(purge, env.sleep(std::time::Duration::from_millis(50))).await;
            assert!(matches!(cut, futures::future::Either::Right(_)), "there was log room left");
        }
        drop(held);
        undo.consumed(&st, &history).await.unwrap();
        assert_eq!(before - undo.used_bytes(), 2 * EXTENT_BYTES);
        assert_eq!(undo.check(&st, &[]).await.unwrap(), Vec::<String>::new());
    });
}

/// As after a purge that was cut off when nothing of its extents was left: the next in the segment has the same extent,
/// or, where somebody else has taken that, another.
#[test]
fn purge_that_is_repeated_takes_nothing_from_the_next_in_its_segment() {
    purge_again(false);
    purge_again(true);
}

fn purge_again(taken: bool) {
    let sim = Sim::new(5, 1);
    let env = sim.env();
    sim.run(async move {
        let st = create(env, devices()).await;
        let undo = st.undo();
        let mut busy = Vec::new();
        for _ in 0..KEEP_WARM {
            busy.push(undo.begin(&st, |_| {}).await.unwrap());
        }
        let mut writer = undo.begin(&st, |_| {}).await.unwrap();
        append(&st, &mut writer, b"first").await;
        let history = finish(&st, writer, TxnEnd::Committed).await;
        assert!(!undo.is_leaving(&history));
        undo.consumed(&st, &history).await.unwrap();
        assert!(undo.is_leaving(&history));
        let before = undo.used_bytes();
        while taken && undo.used_bytes() == before {
            append(&st, &mut busy[0], &vec![7; UndoSpace::max_body(4096)]).await;
        }
        let mut next = undo.begin(&st, |_| {}).await.unwrap();
        let at = append(&st, &mut next, b"next").await;
        assert_eq!(next.slot, history.slot, "the only segment that is free");
        let used = undo.used_bytes();
        undo.consumed(&st, &history).await.unwrap();
        assert_eq!(undo.used_bytes(), used);
        assert_eq!(bodies(&st, at).await, [b"next"]);
        let next = finish(&st, next, TxnEnd::Committed).await;
        assert_eq!(undo.check(&st, &[next]).await.unwrap(), Vec::<String>::new());
    });
}

#[test]
fn a_restart_finds_losers_and_histories_over_many_segments() {
    let devices = devices();
    let sim = Sim::new(3, 1);
    let (env, d) = (sim.env(), devices.clone());
    let (before, top) = sim.run(async move {
        let st = create(env, d).await;
        let undo = st.undo();
        let mut histories = Vec::new();
        // More at once than a directory page has segments.
        let mut writers = Vec::new();
        for _ in 0..200u64 {
            let mut writer = undo.begin(&st, |_| {}).await.unwrap();
            let id = writer.txn.0.to_le_bytes();
            append(&st, &mut writer, &id).await;
            writers.push(writer);
        }
        let loser = writers.remove(57);
        for writer in writers {
            histories.push(finish(&st, writer, TxnEnd::Committed).await);
        }
        for history in histories.drain(..150) {
            undo.consumed(&st, &history).await.unwrap();
        }
        for _ in 0..30 {
            let mut writer = undo.begin(&st, |_| {}).await.unwrap();
            append(&st, &mut writer, b"later").await;
            histories.push(finish(&st, writer, TxnEnd::RolledBack).await);
        }
        st.log().flush_to(st.log().end()).await.unwrap();
        (histories, (loser.txn, undo.position(&loser)))
    });
    sim.crash();
    let sim = Sim::new(4, 1);
    let env = sim.env();
    sim.run(async move {
        let (st, _) = Store::open(env, devices, config()).await.unwrap();
        let (losers, mut unread) = st.undo().recover(&st).await.unwrap();
        let mut histories = Vec::new();
        while let Some(history) = unread.next(&st).await.unwrap() {
            histories.push(history);
        }
        histories.sort_by_key(|history| history.seq);
        assert_eq!(histories, before);
        let losers: Vec<_> = losers.into_iter().map(|l| (l.writer.txn, l.next)).collect();
        assert_eq!(losers, vec![top]);
        assert_eq!(st.undo().next_txn(), TxnId(231));
        assert_eq!(st.undo().check(&st, &histories).await.unwrap(), Vec::<String>::new());
        let segments = st.undo().used_bytes() >> 20;
        for history in &histories {
            st.undo().consumed(&st, history).await.unwrap();
        }
        assert!(st.undo().used_bytes() >> 20 < segments, "idle segments give their extents back");
        assert_eq!(st.undo().check(&st, &[]).await.unwrap(), Vec::<String>::new());
    });
}

#[test]
fn a_directory_without_its_special_area_is_damage() {
    let devices = devices();
    let sim = Sim::new(5, 1);
    let (env, d) = (sim.env(), devices.clone());
    sim.run(async move {
        let st = create(env, d).await;
        let directory = st.pool().fetch(PageId::new(UNDO, 1), Access::Random).await.unwrap();
        let permit = st.reserve(UndoSpace::log_bytes(0)).await.unwrap();
        let lsn = {
            let mut mtr = st.mtr(permit);
            let at = mtr.latch(&directory);
            mtr.apply(at, PageOp::Format { kind: PageKind::UndoDirectory, owner: ObjectId(0), special: 0 });
            mtr.commit()
        };
        st.log().flush_to(lsn).await.unwrap();
    });
    let sim = Sim::new(6, 1);
    let env = sim.env();
    sim.run(async move {
        let (st, _) = Store::open(env, devices, config()).await.unwrap();
        let refused = st.undo().recover(&st).await.err();
        assert!(matches!(refused, Some(StorageError::Damaged(_))), "{refused:?}");
    });
}
