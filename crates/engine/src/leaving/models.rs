use super::*;
use crate::locks::Owner;
use shuttle::thread;
use std::sync::Arc;
use terrace_storage::UndoPtr;
use terrace_storage::undo::TxnEnd;

const WRITERS: u64 = 3;

/// Writers that have ended, one after the other in one segment, leave in any order while purge is at work.
fn s3_purge_takes_histories_in_the_order_of_their_ends() {
    let (active, histories) = (Arc::new(Active::new(true)), Arc::new(CheckedMutex::<Histories>::default()));
    active.start(TxnId(1));
    let writers: Vec<_> = (1..=WRITERS)
        .map(|n| {
            active.enter(TxnId(n), Owner(n));
            let (active, histories) = (active.clone(), histories.clone());
            thread::spawn(move || {
                let (first, last) = (UndoPtr(n << 16), UndoPtr(n << 16 | 8));
                let history = History { txn: TxnId(n), end: TxnEnd::Committed, slot: 1, first, last, seq: n };
                leave(&active, &histories, TxnId(n), thread::yield_now, Some(&history));
            })
        })
        .collect();
    let purge = thread::spawn(move || {
        let mut taken = 0;
        while taken < WRITERS {
            match next(&active, &histories, true) {
                Some(history) => {
                    assert_eq!(history.seq, taken + 1, "an earlier one of its segment is still to come");
                    assert!(histories.lock().remove(history.seq));
                    taken += 1;
                }
                None => thread::yield_now(),
            }
        }
    });
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    purge.join().unwrap();
}

#[test]
fn model_s3_purge_takes_histories_in_the_order_of_their_ends() {
    let runs = std::env::var("TERRACE_MODEL_RUNS").map_or(300, |n| n.parse().expect("a number of runs"));
    shuttle::check_random(s3_purge_takes_histories_in_the_order_of_their_ends, runs);
    shuttle::check_pct(s3_purge_takes_histories_in_the_order_of_their_ends, runs, 3);
}
