//! Mini-transactions: what they log repeats what they did.
use super::*;
use crate::log::batch;
use crate::page::{PageKind, slotted};
use crate::pool::fixture::{PAGE, fixture, page};
use std::sync::atomic::Ordering::SeqCst;
use terrace_env::Sim;

fn insert(mtr: &mut Mtr, at: Latched, cell: &[u8]) {
    let slot = slotted::slot_count(mtr.page(at));
    mtr.apply(at, PageOp::InsertAt { slot, cell });
}

#[test]
fn redo_of_logged_ops_gives_the_pages() {
    let sim = Sim::new(3, 2);
    let env = sim.env();
    sim.run(async move {
        let f = fixture(env, 16).await;
        let pins = [f.pool.create(page(5)).await.unwrap(), f.pool.create(page(6)).await.unwrap()];
        let mut ends = vec![];
        let permit = f.permit().await;
        {
            let mut mtr = Mtr::new(&f.pool, permit);
            for pin in &pins {
                let at = mtr.latch(pin);
                assert_eq!(mtr.latch(pin), at, "the same page, the same handle");
                mtr.apply(at, PageOp::Format { kind: PageKind::BTree, owner: ObjectId(8), special: 16 });
            }
            ends.push(mtr.commit());
        }
        for round in 0..60u32 {
            let permit = f.permit().await;
            let mut mtr = Mtr::new(&f.pool, permit);
            let (a, b) = (mtr.latch(&pins[0]), mtr.latch(&pins[1]));
            insert(&mut mtr, a, &[round as u8; 150]);
            if round % 3 == 1 {
                mtr.apply(b, PageOp::Write { offset: slotted::special_offset(), bytes: &round.to_le_bytes() });
                mtr.event(LogEvent::Commit { txn: TxnId(round as u64), unix_micros: -5 });
            } else {
                mtr.release(b);
            }
            if slotted::slot_count(mtr.page(a)) > 12 {
                mtr.apply(a, PageOp::RemoveAt { slot: round as u16 % 12 });
                mtr.apply(a, PageOp::Patch { slot: 1, offset: 3, bytes: b"patched" });
            }
            ends.push(mtr.commit());
        }
        assert!(ends.is_sorted());
        f.log.flush_to(f.log.end()).await.unwrap();
        let segment = f.log.segment(0).await.unwrap().expect("the first segment is there");
        let mut pages = [vec![1; PAGE], vec![2; PAGE]];
        let mut events = 0;
        for (batch, end) in segment.batches(Lsn(0)).zip(&ends) {
            assert_eq!(batch.end, *end);
            for block in batch.blocks() {
                if block.page == batch::EVENT {
                    let LogEvent::Commit { txn, unix_micros } = LogEvent::decode(block.ops).unwrap();
                    assert_eq!((txn.0 % 3, unix_micros), (1, -5));
                    events += 1;
                    continue;
                }
                let bytes = &mut pages[(block.page.no - 5) as usize];
                let mut ops = block.ops;
                while !ops.is_empty() {
                    let op = PageOp::decode(&mut ops).unwrap();
                    assert!(op.starts_afresh() || header::lsn(bytes) == block.prev);
                    let lsn = header::lsn(bytes);
                    op.apply(bytes, block.page);
                    if !op.starts_afresh() {
                        assert_eq!(header::lsn(bytes), lsn);
                    }
                }
                header::set_lsn(bytes, batch.end);
            }
        }
        assert_eq!(events, 20);
        for (pin, bytes) in pins.iter().zip(&pages) {
            assert_eq!(pin.read()[4..], bytes[4..]);
        }
        assert_eq!(f.home.inside.lock().dirtied.len(), 2 + 60 + 20);
        assert_eq!(f.home.ahead_of_log.load(SeqCst), 0);
    });
}

#[test]
fn an_unused_mini_transaction_leaves_no_trace() {
    let sim = Sim::new(3, 2);
    let env = sim.env();
    sim.run(async move {
        let f = fixture(env, 16).await;
        f.seed(0..2);
        let pin = f.pool.fetch(page(1), crate::pool::Access::Random).await.unwrap();
        let end = f.log.end();
        let permits = (f.permit().await, f.permit().await);
        let mut mtr = Mtr::new(&f.pool, permits.0);
        mtr.latch(&pin);
        assert_eq!(mtr.commit(), Lsn(0));
        let mut mtr = Mtr::new(&f.pool, permits.1);
        mtr.latch(&pin);
        drop(mtr);
        drop(pin.read());
        assert_eq!((f.log.end(), f.pool.dirty()), (end, 0));
    });
}

#[test]
fn after_a_panic_between_change_and_log_nothing_is_written() {
    let sim = Sim::new(3, 2);
    let env = sim.env();
    sim.run(async move {
        let f = fixture(env, 16).await;
        f.seed(0..3);
        f.set(2, 4).await.unwrap();
        let pin = f.pool.fetch(page(1), crate::pool::Access::Random).await.unwrap();
        let permit = f.permit().await;
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut mtr = Mtr::new(&f.pool, permit);
            let at = mtr.latch(&pin);
            mtr.apply(at, PageOp::Patch { slot: 0, offset: 0, bytes: b"half" });
            mtr.apply(at, PageOp::Patch { slot: 0, offset: 100, bytes: b"outside the cell" });
        }));
        assert!(panicked.is_err());
        let written = f.pool.write_dirty(Lsn(u64::MAX), 9, crate::home::Reason::Checkpoint).await;
        assert!(written.is_err());
        assert!(f.home.inside.lock().writes.is_empty());
    });
}

#[test]
fn garbage_is_no_event() {
    let mut bytes = vec![];
    let event = LogEvent::Commit { txn: TxnId(u64::MAX), unix_micros: i64::MIN };
    event.encode(Lsn(77), &mut bytes);
    assert_eq!((LogEvent::decode(&bytes), LogEvent::durable(&bytes)), (Ok(event), Some(Lsn(77))));
    assert!(LogEvent::decode(&bytes[..16]).is_err() && LogEvent::decode(&bytes[..17]).is_err());
    let mut older = bytes[..17].to_vec();
    older[0] = 1;
    assert_eq!((LogEvent::decode(&older), LogEvent::durable(&older)), (Ok(event), None));
    bytes[0] = 9;
    assert!(LogEvent::decode(&bytes).is_err());
}
