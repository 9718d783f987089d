//! The pool over a home in memory, in virtual time.
use super::fixture::{Fixture, config, fixture, fixture_with, page, policies, value_of};
use super::*;
use crate::home::Reason;
use crate::mtr::Mtr;
use crate::page::PageKind;
use crate::page::op::PageOp;
use crate::reads::{Reads, counted, counting};
use crate::types::{DATA, UNDO};
use futures::future::join_all;
use std::future::Future;
use std::sync::atomic::Ordering::SeqCst;
use terrace_env::Sim;

fn simulate<F: Future<Output = ()> + Send + 'static>(test: impl FnOnce(Env) -> F) {
    let sim = Sim::new(1, 2);
    let main = test(sim.env());
    sim.run(main);
}

#[test]
fn concurrent_misses_read_once() {
    simulate(|env| async move {
        let f = fixture(env, 16).await;
        f.seed(0..4);
        let values = join_all((0..20).map(|_| f.value(3))).await;
        assert!(values.into_iter().all(|v| v.unwrap() == 3));
        assert_eq!(f.home.inside.lock().reads, [(page(3), 1)]);
        let stats = f.pool.stats();
        assert_eq!((stats.random_reads, stats.joined), (1, 19));
    });
}

#[test]
fn a_failed_read_reaches_every_waiter_and_leaves_nothing() {
    simulate(|env| async move {
        let f = fixture(env, 16).await;
        f.seed(0..4);
        f.home.fail_reads.store(true, SeqCst);
        for _ in 0..10 {
            let results = join_all((0..5).map(|_| f.pool.fetch(page(1), Access::Random))).await;
            assert!(results.iter().all(|r| matches!(r, Err(StorageError::Damaged(_)))));
        }
        assert_eq!(f.home.inside.lock().reads.len(), 10);
        assert_eq!(f.pool.replacer.free_count(), 16);
        f.home.fail_reads.store(false, SeqCst);
        assert_eq!(f.value(1).await.unwrap(), 1);
        let missing = f.pool.fetch(page(99), Access::Random).await;
        assert!(matches!(missing, Err(StorageError::BadPage { .. })));
    });
}

#[test]
fn a_dropped_read_hands_over_to_a_waiter() {
    simulate(|env| async move {
        let f = fixture(env, 16).await;
        f.seed(0..4);
        let mut first = Box::pin(f.pool.fetch(page(2), Access::Random));
        assert!(futures::poll!(&mut first).is_pending());
        let mut second = Box::pin(f.value(2));
        assert!(futures::poll!(&mut second).is_pending());
        drop(first);
        assert_eq!(second.await.unwrap(), 2);
        assert_eq!(f.home.inside.lock().reads.len(), 2);
    });
}

#[test]
fn eviction_under_pressure_keeps_data() {
    for policy in policies() {
        simulate(|env| async move {
            let f = fixture_with(env, StorageConfig { pool_policy: policy, ..config(16) }, None).await;
            f.seed(0..100);
            for round in 1..20u64 {
                for no in (0..100).step_by(1 + round as usize % 3) {
                    f.set(no, round * 1000 + no as u64).await.unwrap();
                    f.value((no * 7) % 100).await.unwrap();
                }
                for no in (0..100).step_by(1 + round as usize % 3) {
                    assert_eq!(f.value(no).await.unwrap(), round * 1000 + no as u64);
                }
            }
            let stats = f.pool.stats();
            assert!(stats.dirty_evictions > 100 && stats.evictions >= stats.dirty_evictions, "{stats:?}");
            assert_eq!(f.home.ahead_of_log.load(SeqCst), 0);
            let writes = f.home.inside.lock().writes.clone();
            assert!(writes.iter().all(|(pages, reason)| pages.len() <= 8 && *reason == Reason::Evict));
            assert!(writes.iter().any(|(pages, _)| pages.len() > 1), "victims are written in groups");
        });
    }
}

#[test]
fn clean_victims_go_without_writing_and_the_home_is_told() {
    simulate(|env| async move {
        let f = fixture(env, 16).await;
        f.seed(0..64);
        for no in 0..64 {
            f.value(no).await.unwrap();
        }
        let inside = f.home.inside.lock();
        assert!(inside.writes.is_empty());
        assert!(inside.evicted_clean.len() >= 64 - 16);
    });
}

#[test]
fn pins_prevent_eviction() {
    simulate(|env| async move {
        let f = fixture(env, 16).await;
        f.seed(0..200);
        let pinned = f.pool.fetch(page(0), Access::Random).await.unwrap();
        let other = pinned.clone();
        drop(pinned);
        for no in 1..200 {
            f.value(no).await.unwrap();
        }
        assert_eq!(other.id(), page(0));
        assert_eq!(value_of(&other.read()), 0);
        assert_eq!(f.home.inside.lock().reads.iter().filter(|(p, _)| *p == page(0)).count(), 1);
    });
}

#[test]
fn all_pinned_is_an_error_after_patience() {
    simulate(|env| async move {
        let f = fixture(env, 8).await;
        f.seed(0..20);
        let pins = join_all((0..8).map(|no| f.pool.fetch(page(no), Access::Random))).await;
        let began = f.env.now();
        let more = f.pool.fetch(page(9), Access::Random).await;
        assert!(matches!(more, Err(StorageError::PoolExhausted(8))), "{more:?}");
        assert!(f.env.now().0 - began.0 > 100_000_000, "it waits before it gives up");
        // A pin that goes meanwhile lets a waiter in.
        let mut waiting = Box::pin(f.value(10));
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(pins);
        assert_eq!(waiting.await.unwrap(), 10);
    });
}

#[test]
fn writing_back_waits_for_the_log() {
    simulate(|env| async move {
        let f = fixture(env.clone(), 16).await;
        f.seed(0..4);
        let lsn = f.set(1, 77).await.unwrap();
        assert!(f.log.durable() < lsn);
        assert_eq!(f.pool.write_dirty(Lsn(u64::MAX), 10, Reason::Checkpoint).await.unwrap(), 1);
        assert!(f.log.durable() >= lsn);
        assert_eq!(f.home.ahead_of_log.load(SeqCst), 0);
        assert_eq!((f.pool.dirty(), f.pool.min_rec_lsn()), (0, None));
        assert_eq!(value_of(&f.home.inside.lock().pages[&page(1)]), 77);

        // With the safeguard off the rule is broken, and seen to be.
        let mut careless = config(16);
        careless.safeguards = Safeguards::without(Safeguard::LogBeforeData);
        let f = fixture_with(env, careless, None).await;
        f.seed(0..4);
        f.set(1, 77).await.unwrap();
        f.pool.write_dirty(Lsn(u64::MAX), 10, Reason::Checkpoint).await.unwrap();
        assert_eq!(f.home.ahead_of_log.load(SeqCst), 1);
    });
}

#[test]
fn a_page_changed_while_written_stays_dirty_with_the_later_rec_lsn() {
    simulate(|env| async move {
        let f = fixture(env, 16).await;
        f.seed(0..4);
        let before = f.log.end();
        f.set(1, 10).await.unwrap();
        assert!(f.pool.min_rec_lsn().unwrap() >= before);
        f.home.hold_writes.store(true, SeqCst);
        let pool = f.pool.clone();
        let writing = pool.write_dirty(Lsn(u64::MAX), 10, Reason::Age);
        let changing = async {
            while f.home.inside.lock().writes.is_empty() {
                f.env.sleep(Duration::from_micros(10)).await;
            }
            let middle = f.log.end();
            f.set(1, 20).await.unwrap();
            assert!(f.pool.min_rec_lsn().unwrap() < middle, "the first change is not home yet");
            f.home.hold_writes.store(false, SeqCst);
            middle
        };
        let (written, middle) = futures::join!(writing, changing);
        assert_eq!(written.unwrap(), 1);
        assert_eq!(f.pool.dirty(), 1);
        assert_eq!(f.pool.min_rec_lsn(), Some(middle));
        assert_eq!(value_of(&f.home.inside.lock().pages[&page(1)]), 10);
        f.pool.write_dirty(Lsn(u64::MAX), 10, Reason::Age).await.unwrap();
        assert_eq!((f.pool.dirty(), value_of(&f.home.inside.lock().pages[&page(1)])), (0, 20));
    });
}

#[test]
fn rec_lsn_is_inherited_from_below() {
    simulate(|env| async move {
        let f = fixture(env, 16).await;
        f.seed(0..4);
        for no in 0..4 {
            f.set(no, 1).await.unwrap();
        }
        f.pool.write_dirty(Lsn(u64::MAX), 10, Reason::Checkpoint).await.unwrap();
        f.pool.forget(DATA, 0, 4).await;
        let old = Lsn(f.log.end().0 / 2);
        f.home.inside.lock().rec_lsns.insert(page(2), old);
        f.value(2).await.unwrap();
        assert_eq!(f.pool.min_rec_lsn(), None, "clean above the tier that answers for it");
        f.set(2, 5).await.unwrap();
        assert_eq!(f.pool.min_rec_lsn(), Some(old));
    });
}

/// Where somebody else was quicker with all pages that were chosen, none was written here, and that looked as if no
/// page were dirty.
#[test]
fn nothing_was_found_means_that_nothing_is_dirty() {
    for seed in 0..20 {
        let sim = Sim::new(seed, 2);
        let env = sim.env();
        sim.run(async move {
            let f = fixture_with(env, StorageConfig { write_group: 2, ..config(32) }, None).await;
            f.seed(0..20);
            for no in 0..12 {
                f.set(no, 1).await.unwrap();
            }
            f.home.hold_writes.store(true, SeqCst);
            let oldest: Vec<PageId> = (0..8).map(page).collect();
            let quicker = f.pool.write_all(&oldest); // As many as may be copied at a time.
            let late = async {
                while f.home.inside.lock().writes.len() < 4 {
                    f.env.sleep(Duration::from_micros(10)).await;
                }
                let mut late = Box::pin(f.pool.write_dirty(Lsn(u64::MAX), 2, Reason::Age));
                assert!(futures::poll!(&mut late).is_pending());
                f.home.hold_writes.store(false, SeqCst);
                late.await.unwrap()
            };
            let (quicker, found) = futures::join!(quicker, late);
            quicker.unwrap();
            assert_eq!((found, f.pool.dirty()), (2, 4));
        });
    }
}

#[test]
fn the_oldest_are_written_first_and_in_order_of_address() {
    simulate(|env| async move {
        let f = fixture(env, 32).await;
        f.seed(0..20);
        let mut starts = vec![];
        for no in [9, 3, 7, 1, 8, 2] {
            starts.push(f.log.end());
            f.set(no, 1).await.unwrap();
        }
        assert_eq!(f.pool.write_dirty(starts[4], 3, Reason::Age).await.unwrap(), 3);
        assert_eq!(f.home.inside.lock().writes.last().unwrap().0, [page(3), page(7), page(9)]);
        assert_eq!(f.pool.write_dirty(starts[4], 9, Reason::Age).await.unwrap(), 1);
        assert_eq!(f.pool.min_rec_lsn(), Some(starts[4]));
        assert_eq!(f.pool.dirty(), 2);
    });
}

#[test]
fn failed_writes_keep_pages_dirty_and_are_told() {
    simulate(|env| async move {
        let f = fixture(env, 8).await;
        f.seed(0..100);
        f.home.fail_writes.store(true, SeqCst);
        let mut failed = None;
        for no in 0..100 {
            if let Err(e) = f.set(no, 500 + no as u64).await {
                failed = Some((no, e));
                break;
            }
        }
        let (stopped, error) = failed.expect("eight frames do not hold a hundred dirty pages");
        assert!(matches!(error, StorageError::Damaged(_)), "{error}");
        assert!(f.pool.write_dirty(Lsn(u64::MAX), 99, Reason::Age).await.is_err());
        assert_eq!(f.pool.dirty(), stopped as usize);
        f.home.fail_writes.store(false, SeqCst);
        f.env.sleep(Duration::from_secs(1)).await;
        for no in 0..stopped {
            assert_eq!(f.value(no).await.unwrap(), 500 + no as u64);
        }
        f.pool.write_dirty(Lsn(u64::MAX), 99, Reason::Age).await.unwrap();
        assert_eq!(f.pool.dirty(), 0);
        for no in 0..100 {
            f.set(no, no as u64).await.unwrap();
        }
    });
}

#[test]
fn reading_ahead_reads_runs_and_skips_what_is_there() {
    simulate(|env| async move {
        let f = fixture(env, 128).await;
        f.seed(0..40);
        f.value(10).await.unwrap();
        f.home.inside.lock().reads.clear();
        let (_, value) = futures::join!(f.pool.prefetch(DATA, 5, 15), f.value(12));
        assert_eq!(value.unwrap(), 12);
        assert_eq!(f.home.inside.lock().reads, [(page(5), 5), (page(11), 9)]);
        for no in 5..20 {
            assert!(f.pool.get(page(no)).is_some());
        }
        // Beyond the end: what exists is there, the rest is given up.
        f.pool.prefetch(DATA, 35, 20).await;
        assert!(f.pool.get(page(39)).is_some() && f.pool.get(page(40)).is_none());
        let free = f.pool.replacer.free_count();
        assert_eq!(free, 128 - 15 - 5);
    });
}

#[test]
fn pages_that_do_not_follow_each_other_are_read_ahead_at_the_same_time() {
    simulate(|env| async move {
        let f = fixture(env, 128).await;
        f.seed(0..100);
        f.value(21).await.unwrap();
        f.home.inside.lock().reads.clear();
        let pages = [3, 10, 11, 20, 21, 22, 40];
        f.pool.prefetch_pages(DATA, &pages).await;
        assert_eq!(
            f.home.inside.lock().reads,
            [(page(3), 1), (page(10), 2), (page(20), 1), (page(22), 1), (page(40), 1)]
        );
        assert!(pages.iter().all(|&no| f.pool.get(page(no)).is_some()));
        // No more than a quarter of the frames.
        let many: Vec<u32> = (50..100).collect();
        f.pool.prefetch_pages(DATA, &many).await;
        assert!(f.pool.get(page(81)).is_some() && f.pool.get(page(82)).is_none());
    });
}

/// Reading ahead in the background: the pages are claimed at once, the read goes on whether somebody waits for its end
/// or not, and counts for whoever does.
#[test]
fn reading_ahead_goes_on_beside_other_work() {
    simulate(|env| async move {
        let f = fixture(env, 128).await;
        f.seed(0..40);
        let (mut mine, mut of_others) = (Reads::default(), Reads::default());
        let begun = counted(&mut mine, || f.pool.begin_prefetch(DATA, 0, 10));
        assert_eq!((f.home.inside.lock().reads.clone(), mine), (vec![(page(0), 10)], Reads::default()));
        counting(&mut of_others, Box::pin(f.value(3))).await.expect("it is there");
        assert_eq!((f.pool.stats().joined, of_others.pages), (1, [0; 3]), "another joins the read");
        counting(&mut mine, Box::pin(begun.ended())).await;
        assert_eq!((mine.pages, mine.ahead), ([10, 0, 0], 10));
        drop(f.pool.begin_prefetch(DATA, 20, 10));
        f.env.sleep(Duration::from_millis(1)).await;
        assert!((20..30).all(|no| f.pool.get(page(no)).is_some()), "nobody waited for it");
        let begun = f.pool.begin_prefetch(DATA, 20, 10);
        let again = counting(&mut mine, Box::pin(begun.ended())).await;
        assert_eq!((again, mine.ahead, f.home.inside.lock().reads.len()), ((), 10, 2), "there is nothing to read");
    });
}

#[test]
fn a_made_page_needs_no_read_and_forgotten_pages_leave() {
    simulate(|env| async move {
        let f = fixture(env, 32).await;
        f.seed(0..2);
        let pin = f.pool.create(page(50)).await.unwrap();
        let permit = f.permit().await;
        {
            let mut mtr = Mtr::new(&f.pool, permit);
            let at = mtr.latch(&pin);
            mtr.apply(at, PageOp::Format { kind: PageKind::Heap, owner: ObjectId(4), special: 0 });
            mtr.apply(at, PageOp::Put { slot: 0, cell: &9u64.to_le_bytes() });
            mtr.commit();
        }
        drop(pin);
        assert_eq!(f.value(50).await.unwrap(), 9);
        assert!(f.home.inside.lock().reads.is_empty());
        f.value(1).await.unwrap();
        f.pool.forget(DATA, 0, 64).await;
        assert!(f.pool.get(page(50)).is_none() && f.pool.get(page(1)).is_none());
        assert_eq!((f.pool.dirty(), f.pool.replacer.free_count()), (0, 32));
        assert_eq!(f.home.inside.lock().forgotten, [(0, 64)]);
        // Made and never formatted: not offered to the home, not left in the way.
        drop(f.pool.create(page(60)).await.unwrap());
        assert!(f.pool.try_free(page(60), true));
        assert!(f.home.inside.lock().evicted_clean.is_empty());
    });
}

#[test]
fn writes_and_misses_do_not_wait_for_each_other_in_a_circle() {
    simulate(|env| async move {
        let f = fixture(env, 8).await;
        f.seed(0..400);
        // More writers than frames, each dirtying its own pages, with checkpoints going on.
        let writer = |w: u32, f: Fixture| async move {
            for i in 0..30u32 {
                f.set(w * 20 + i % 20, i as u64).await.unwrap();
            }
        };
        let done = std::sync::atomic::AtomicBool::new(false);
        let writers = async {
            join_all((0..20).map(|w| writer(w, f.clone()))).await;
            done.store(true, SeqCst);
        };
        let checkpoints = async {
            while !done.load(SeqCst) {
                f.pool.write_dirty(Lsn(u64::MAX), usize::MAX, Reason::Checkpoint).await.unwrap();
                f.env.sleep(Duration::from_micros(300)).await;
            }
        };
        futures::join!(writers, checkpoints);
        for w in 0..20 {
            assert_eq!(f.value(w * 20 + 9).await.unwrap(), 29);
        }
    });
}

#[test]
fn pins_outlive_the_pool() {
    simulate(|env| async move {
        let f = fixture(env, 16).await;
        f.seed(0..4);
        let pins = join_all((0..4).map(|no| f.pool.fetch(page(no), Access::Random))).await;
        let Fixture { pool, env, .. } = f;
        let weak = Arc::downgrade(&pool);
        drop(pool);
        env.sleep(Duration::from_millis(5)).await;
        assert!(weak.upgrade().is_none(), "the cleaner keeps no pool alive");
        for (no, pin) in pins.into_iter().enumerate() {
            let pin = pin.unwrap();
            let again = pin.clone();
            drop(pin);
            assert_eq!(value_of(&again.read()), no as u64);
        }
    });
}

#[test]
#[should_panic(expected = "what can wait comes before latching")]
fn fetching_under_a_latch_is_refused() {
    simulate(|env| async move {
        let f = fixture(env, 16).await;
        f.seed(0..4);
        let pin = f.pool.fetch(page(0), Access::Random).await.unwrap();
        let mut miss = Box::pin(f.pool.fetch(page(1), Access::Random));
        let _latched = pin.read();
        let _ = futures::FutureExt::now_or_never(miss.as_mut());
    });
}

#[test]
#[should_panic(expected = "latched already by the only thread")]
fn a_latch_that_waits_for_itself_is_found_in_simulation() {
    simulate(|env| async move {
        let f = fixture(env, 16).await;
        f.seed(0..4);
        let pin = f.pool.fetch(page(0), Access::Random).await.unwrap();
        let permit = f.permit().await;
        let mut mtr = Mtr::new(&f.pool, permit);
        mtr.latch(&pin);
        drop(pin.read());
    });
}

/// A page for the tier waited for those of undo space, which go to a disk.
#[test]
fn pages_of_one_tablespace_are_written_early_together() {
    simulate(|env| async move {
        let f = fixture(env, 64).await;
        for no in 0..20 {
            for space in [DATA, UNDO] {
                let id = PageId::new(space, no);
                let pin = f.pool.create(id).await.unwrap();
                let mut mtr = Mtr::new(&f.pool, f.permit().await);
                let at = mtr.latch(&pin);
                mtr.apply(at, PageOp::Format { kind: PageKind::Heap, owner: ObjectId(1), special: 0 });
                mtr.commit();
            }
        }
        assert_eq!(f.pool.write_early(30, |_| true).await.unwrap(), 30);
        let writes = std::mem::take(&mut f.home.inside.lock().writes);
        assert!(writes.iter().all(|(pages, _)| pages.iter().all(|page| page.space == pages[0].space)), "{writes:?}");
        let mut oldest: Vec<u32> = writes.iter().flat_map(|(pages, _)| pages.iter().map(|page| page.no)).collect();
        oldest.sort_unstable();
        assert_eq!(oldest, (0..30).map(|i| i / 2).collect::<Vec<u32>>());
        // What the tier does not take stays; nobody else does for it.
        assert_eq!((f.pool.write_early(10, |_| false).await.unwrap(), f.pool.dirty()), (5, 5));
    });
}
