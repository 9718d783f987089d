//! How pages flow under the write policies of others (J. Do's thesis, section 3.5), and to another device.

use super::home::{Bench, back, bytes, page, run};
use crate::FlashState;
use crate::config::{FlashConfig, FlashOrder, WritePolicy};
use crate::flash::layout::frame_at;
use crate::home::{Home, PAGES_AT, Reason, Tier};
use crate::pool::Access;
use crate::sync::atomic::Ordering;
use crate::types::*;
use std::sync::Arc;
use terrace_device::trace::{Direction, Record};
use terrace_device::{DeviceRef, MemoryDevice};

fn with(write: WritePolicy, replacement: FlashOrder) -> FlashConfig {
    FlashConfig { write, replacement, expanded_read: 1, ..FlashConfig::default() }
}

/// One page as a miss of memory reads it: its value, where it lay, whether it leaves the tier.
async fn miss(bench: &Bench, no: u32) -> (u64, Tier, bool) {
    let mut fetched = bench.home.fetch(page(no), 1, Access::Random).await;
    let fetched = fetched.pop().expect("one page").expect("a good page");
    (super::home::value(&fetched.bytes), fetched.tier, fetched.leaves)
}

/// What the disk alone holds.
async fn at_home(bench: &Bench, no: u32) -> u64 {
    let mut fetched = bench.home.disk.fetch(page(no), 1, Access::Random).await;
    super::home::value(&fetched.pop().expect("one page").expect("a good page").bytes)
}

/// A page in memory changes, and its recLSN, if it brings one up, is the pool's from now on.
fn change(bench: &Bench, no: u32) -> Option<Lsn> {
    let rec = bench.home.dirtied(page(no));
    if let Some(rec) = rec {
        bench.home.risen(page(no), rec);
    }
    rec
}

#[test]
fn tac_lets_pages_in_as_they_are_read_and_keeps_their_frames() {
    run(with(WritePolicy::Tac, FlashOrder::Temperature), |bench| async move {
        assert_eq!(miss(&bench, 5).await, (1005, Tier::Disk, false));
        bench.rest().await;
        assert_eq!(miss(&bench, 5).await, (1005, Tier::Flash, false), "ii: written after it was read");
        // iii: invalid, but not evicted: nobody reads it, its space is not free.
        assert_eq!(change(&bench, 5), None);
        assert_eq!(bench.home.stats().used, 1);
        // iv: to both, because there is an invalid version; one that was never in the tier goes to the disk alone.
        bench.write(&[5, 6], 2000).await;
        assert_eq!((at_home(&bench, 5).await, at_home(&bench, 6).await), (2000, 2000));
        assert_eq!(bench.home.stats().admitted_dirty, 1);
        assert_eq!(miss(&bench, 5).await, (2000, Tier::Flash, false));
        assert_eq!(bench.home.stats().dirty, 0, "written through");
        // A checkpoint writes it to the disk only, because it stays in memory; it takes its frame up when it leaves.
        change(&bench, 5);
        bench.home.write_back(vec![back(5, 3000)], Reason::Checkpoint).await.expect("it is written");
        assert_eq!(bench.home.stats().admitted_dirty, 1);
        bench.home.evicted_clean(page(5), &bytes(page(5), 3000), Access::Random);
        bench.rest().await;
        assert_eq!(miss(&bench, 5).await, (3000, Tier::Flash, false));
        assert_eq!(bench.home.stats().used, 1);
        // Pages that were not let in as they were read are not let in as they leave.
        bench.offer([100], Access::Random).await;
        assert_eq!(bench.home.stats().used, 1);
    });
}

#[test]
fn a_full_tier_lets_in_only_what_is_hotter() {
    run(with(WritePolicy::Tac, FlashOrder::Temperature), |bench| async move {
        // Each page missed once: what comes late into a partition is colder than what has been there.
        for no in 0..512 {
            miss(&bench, no).await;
            bench.rest().await;
        }
        assert!(bench.home.stats().rejected_cold > 0 && bench.home.stats().evicted == 0, "{:?}", bench.home.stats());
        let mut cold = 511;
        while miss(&bench, cold).await.1 == Tier::Flash {
            cold -= 1;
        }
        for _ in 0..80 {
            miss(&bench, cold).await;
            bench.rest().await;
        }
        assert_eq!(miss(&bench, cold).await.1, Tier::Flash, "its extent is hotter than the coldest by now");
        assert!(bench.home.stats().evicted > 0);
    });
}

/// What a read from flash saves is what the devices take now: where that is nothing, no extent gets hotter.
#[test]
fn tac_counts_what_flash_saves_here() {
    run(with(WritePolicy::Tac, FlashOrder::Temperature), |bench| async move {
        for no in 0..400 {
            miss(&bench, no).await;
            bench.rest().await;
        }
        let mut held = 0;
        while miss(&bench, held).await.1 == Tier::Disk {
            held += 1;
        }
        bench.flash.delay.store(1, Ordering::SeqCst); // The disk takes no time.
        for _ in 0..512 {
            assert_eq!(miss(&bench, held).await.1, Tier::Flash);
        }
        for _ in 0..80 {
            assert_eq!(miss(&bench, 500).await.1, Tier::Disk, "flash saves nothing");
            bench.rest().await;
        }
    });
}

#[test]
fn inclusive_writes_back_to_the_frame_that_it_kept() {
    run(with(WritePolicy::Inclusive, FlashOrder::Lru2), |bench| async move {
        miss(&bench, 5).await;
        bench.rest().await;
        change(&bench, 5);
        bench.write(&[5], 2000).await;
        assert_eq!(at_home(&bench, 5).await, 1005, "the disk learns it later");
        assert_eq!(miss(&bench, 5).await, (2000, Tier::Flash, false));
        assert_eq!(change(&bench, 5), Some(Lsn(2000)), "its recLSN goes up with it");
        assert_eq!((bench.home.stats().used, bench.home.stats().dirty), (1, 0));
    });
}

#[test]
fn exclusive_gives_pages_up_as_memory_shows_them() {
    run(with(WritePolicy::Exclusive, FlashOrder::Fifo), |bench| async move {
        bench.offer([5], Access::Random).await;
        bench.write(&[6], 2000).await;
        assert_eq!(miss(&bench, 5).await, (1005, Tier::Flash, true));
        assert_eq!(bench.home.stats().used, 2, "a reader who goes away has changed nothing");
        assert_eq!(bench.home.take_over(page(5)), None, "clean");
        assert_eq!(miss(&bench, 6).await, (2000, Tier::Flash, true));
        assert_eq!(bench.home.take_over(page(6)), Some(Lsn(2000)), "dirty, and memory's to keep");
        assert_eq!(bench.home.oldest_rec_lsn(), Some(Lsn(2000)), "on its way up it counts");
        bench.home.risen(page(6), Lsn(2000));
        assert_eq!((bench.home.stats().used, bench.home.stats().taken_over), (0, 2));
    });
}

/// Through the pool: a dirty page that memory took over is dirty there, and comes back from wherever it went.
#[test]
fn a_page_taken_over_stays_dirty() {
    run(with(WritePolicy::Exclusive, FlashOrder::Fifo), |bench| async move {
        bench.write(&[6], 2000).await;
        let pool = bench.pool();
        let pin = pool.fetch(page(6), Access::Random).await.expect("it is there");
        assert_eq!(super::home::value(&pin.read()), 2000);
        assert_eq!((pool.dirty(), pool.min_rec_lsn()), (1, Some(Lsn(2000))));
        assert_eq!(bench.home.stats().used, 0);
        drop(pin);
        pool.write_dirty(Lsn(u64::MAX), 8, Reason::Age).await.expect("it is written");
        assert_eq!((pool.dirty(), at_home(&bench, 6).await), (0, 2000));
    });
}

#[test]
fn rotating_writes_one_frame_after_another() {
    run(with(WritePolicy::Rotating, FlashOrder::Fifo), |bench| async move {
        // One turn for all 256 frames, whatever the pages' regions.
        let mut turn = 0;
        for i in 0..600 {
            let no = i * 37 % 512;
            bench.trace.clear();
            bench.offer([no], Access::Random).await;
            let records = bench.trace.records();
            let written = |r: &&Record| &*r.device == "flash" && r.direction == Direction::Write;
            let Some(write) = records.iter().find(written) else { continue };
            assert_eq!(write.offset, frame_at(turn % 256, 4096), "page {no}");
            turn += 1;
            // What becomes free in between waits for its turn.
            change(&bench, no.wrapping_mul(5) % 512);
        }
        assert!(turn > 300, "{turn}: it came round");
    });
}

/// Where each write of a device began, in pages.
fn writes(bench: &Bench, device: &str) -> Vec<u64> {
    let records = bench.trace.records();
    let written = records.iter().filter(|r| &*r.device == device && r.direction == Direction::Write);
    written.map(|write| (write.offset - PAGES_AT) / 4096).collect()
}

/// Clean and dirty pages leave memory side by side, each by a task of its own: what they write to flash goes on where
/// one of the last writes ended, for the device to see few streams.
#[test]
fn rotating_writes_few_streams_whoever_writes() {
    run(with(WritePolicy::Rotating, FlashOrder::Fifo), |bench| async move {
        for i in 0..100 {
            let no = |k: u32| (i * 8 + k) * 37 % 512;
            let dirty: Vec<u32> = (0..4).map(no).collect();
            futures::join!(bench.offer((4..8).map(no), Access::Random), bench.write(&dirty, 2000 + u64::from(i)));
        }
        let (mut ends, mut random) = (Vec::new(), 0);
        let records = bench.trace.records();
        let written = records.iter().filter(|r| &*r.device == "flash" && r.direction == Direction::Write);
        for write in written.clone() {
            let known = ends.iter().position(|end| *end == write.offset);
            random += usize::from(known.is_none());
            known.map(|at| ends.remove(at));
            ends.push(write.offset + write.length);
            ends.drain(..ends.len().saturating_sub(8));
        }
        let all = written.count();
        assert!(all >= 100 && random * 10 < all, "{random} of {all} writes begin where none ended");
    });
}

/// Only changed pages enter, in turn; those whose frames are wanted soon go home in the order of their addresses, few
/// at a time here, so that nothing but the sweep puts them in order.
#[test]
fn heterodrive_writes_both_devices_in_sequence() {
    let flash = FlashConfig { cleaning_groups: 4, ..with(WritePolicy::HeteroDrive, FlashOrder::Fifo) };
    run(flash, |bench| async move {
        bench.offer([5], Access::Random).await;
        assert_eq!((bench.home.stats().used, bench.home.stats().rejected_policy), (0, 1), "clean");
        bench.trace.clear();
        // Every second page, so that none has neighbours. After 240 the turn comes to the first 16 within an eighth.
        let all: Vec<u32> = (0..240).map(|i| i * 37 % 256 * 2).collect();
        for pages in all[..208].chunks(8) {
            bench.write(pages, 2000).await;
        }
        bench.write(&all[208..], 2000).await;
        let on_flash = writes(&bench, "flash");
        assert!(on_flash.is_sorted() && on_flash[0] == (frame_at(0, 4096) - PAGES_AT) / 4096, "{on_flash:?}");
        while bench.home.stats().cleaned < 16 {
            bench.rest().await;
        }
        let home = writes(&bench, "data");
        let back = home.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert!(home.len() == 16 && back <= 1, "{back} times back in {home:?}");
        assert_eq!(miss(&bench, all[0]).await, (2000, Tier::Flash, false), "what is home is still in its frame");
    });
}

#[test]
fn a_checkpoint_may_close_the_tier_to_dirty_pages() {
    run(with(WritePolicy::LazyCleaning, FlashOrder::Lru2), |bench| async move {
        let closed = bench.home.close_to_dirty();
        bench.write(&[5], 2000).await;
        bench.offer([7], Access::Random).await;
        assert_eq!((bench.home.stats().used, bench.home.stats().rejected_dirty), (1, 1), "clean ones come in");
        assert_eq!(at_home(&bench, 5).await, 2000);
        drop(closed);
        bench.write(&[6], 2000).await;
        assert_eq!((bench.home.stats().dirty, at_home(&bench, 6).await), (1, 1006));
    });
}

#[test]
fn the_tier_moves_to_another_device() {
    run(with(WritePolicy::LazyCleaning, FlashOrder::Lru2), |bench| async move {
        bench.write(&[5, 6], 2000).await;
        let other: DeviceRef = Arc::new(MemoryDevice::new("other", 1 << 30));
        let config = bench.home.config().0;
        bench.home.set(Some(other), config.clone()).await.expect("it is a good device");
        let now = bench.home.stats();
        assert_eq!((now.state, now.used, now.dirty), (FlashState::On, 0, 0));
        assert_eq!((at_home(&bench, 5).await, at_home(&bench, 6).await), (2000, 2000), "dirty pages went home first");
        bench.offer([7], Access::Random).await;
        assert_eq!(miss(&bench, 7).await.1, Tier::Flash);
        // One without room is refused, and the tier goes on where it was.
        let small: DeviceRef = Arc::new(MemoryDevice::new("small", 1 << 16));
        bench.home.set(Some(small), config).await.unwrap_err();
        assert_eq!(miss(&bench, 7).await.1, Tier::Flash);
    });
}
