//! The journal of the inventory, on a device.

use super::home::{Bench, run};
use crate::config::{FlashConfig, FlashOrder, Restart, WritePolicy};
use crate::flash::layout::{self, Inventory, JOURNAL, Journal};
use crate::home::PAGES_AT;
use crate::sync::atomic::Ordering;
use terrace_device::trace::Direction;
use terrace_device::{IoBuf, Purpose, SECTOR};
use terrace_policy::flash::Budget;

const PAGE: usize = 4096;

fn instant() -> FlashConfig {
    FlashConfig {
        write: WritePolicy::LazyCleaning,
        replacement: FlashOrder::Lru2,
        restart: Restart::Instant,
        ..FlashConfig::default()
    }
}

/// Where sectors of inventory were written since the last call, and sectors of journal.
fn written(bench: &Bench) -> (Vec<u64>, Vec<u64>) {
    let records = bench.trace.records();
    bench.trace.clear();
    let writes = records.iter().filter(|r| &*r.device == "flash" && r.direction == Direction::Write);
    let head = writes.map(|r| r.offset).filter(|at| *at < layout::frame_at(0, PAGE));
    head.map(|at| (at - PAGES_AT) / SECTOR as u64).partition(|sector| *sector < layout::SECTORS as u64)
}

async fn sector(bench: &Bench, at: u64) -> IoBuf {
    let device = bench.home.device().expect("the tier is on");
    device.read(at, IoBuf::zeroed(SECTOR), Purpose::Flash).await.expect("a memory device reads")
}

/// A pass of pages in four sectors of inventory writes one sector, and the redo LSN need not wait for them.
#[test]
fn a_pass_is_a_sector_of_journal() {
    run(instant(), |bench| async move {
        let home = &bench.home;
        home.begin_life(7);
        let mut keeping = home.keeping.lock().await;
        written(&bench);
        bench.write(&[10, 100, 200, 300], 5000).await;
        assert!(home.oldest_unhard().is_some());
        home.journal_pass(&mut keeping).await;
        assert_eq!((home.oldest_unhard(), written(&bench)), (None, (vec![], vec![16])));
        let journal = Journal::decode(&sector(&bench, layout::journal_at(0, 4, PAGE)).await, 5).expect("a good sector");
        assert_eq!((journal.life, journal.number, journal.ring), (7, 0, JOURNAL as u32));
        let mut named: Vec<_> = journal.entries.iter().map(|(_, entry)| (entry.page.no, entry.lsn.0)).collect();
        named.sort_unstable();
        assert_eq!(named, [10, 100, 200, 300].map(|no| (no, 5000)));
        home.journal_pass(&mut keeping).await;
        assert_eq!(written(&bench), (vec![], vec![]), "nothing has entered");
    });
}

/// When the ring comes round, the inventory names what its oldest sector names, and says that it is newer.
#[test]
fn the_ring_comes_round() {
    run(instant(), |bench| async move {
        let home = &bench.home;
        home.begin_life(7);
        let mut keeping = home.keeping.lock().await;
        written(&bench);
        for pass in 0..3 {
            bench.write(&[10 + pass], 5000).await;
            home.journal_pass(&mut keeping).await;
        }
        assert_eq!(written(&bench), (vec![], vec![16, 17, 18]));
        bench.write(&[13], 5000).await;
        home.journal_pass(&mut keeping).await;
        let (listed, journaled) = written(&bench);
        assert_eq!((listed.len(), journaled), (1, vec![19]), "in time for the next pass");
        let listed =
            Inventory::decode(&sector(&bench, layout::sector_at(listed[0], PAGE)).await, 5).expect("it is good");
        let named: Vec<u32> = listed.frames.iter().flatten().map(|entry| entry.page.no).collect();
        assert_eq!((named, listed.journal), (vec![10, 11, 12, 13], 4));
        bench.write(&[14], 5000).await;
        home.journal_pass(&mut keeping).await;
        assert_eq!(written(&bench), (vec![], vec![16]));
    });
}

/// What could not be written, or synced, is not taken for being there.
#[test]
fn a_pass_that_fails_is_repeated() {
    run(instant(), |bench| async move {
        let home = &bench.home;
        home.begin_life(7);
        let mut keeping = home.keeping.lock().await;
        bench.write(&[10, 100], 5000).await;
        written(&bench);
        let unhard = home.oldest_unhard();
        bench.flash.broken.store(true, Ordering::SeqCst);
        home.journal_pass(&mut keeping).await;
        bench.flash.broken.store(false, Ordering::SeqCst);
        assert_eq!((home.oldest_unhard(), written(&bench)), (unhard, (vec![], vec![])));
        bench.flash.never_synced.store(true, Ordering::SeqCst);
        home.journal_pass(&mut keeping).await;
        bench.flash.never_synced.store(false, Ordering::SeqCst);
        assert_eq!(
            (home.oldest_unhard(), written(&bench)),
            (unhard, (vec![], vec![17])),
            "the first number is used up"
        );
        home.journal_pass(&mut keeping).await;
        let (listed, journaled) = written(&bench);
        assert_eq!((home.oldest_unhard(), listed.len(), journaled), (None, 2, vec![]), "all of it is written again");
    });
}

/// While nothing may be written, nothing is taken for being in the inventory.
#[test]
fn what_cannot_be_listed_is_not_overwritten() {
    run(instant(), |bench| async move {
        let home = &bench.home;
        home.begin_life(7);
        let mut keeping = home.keeping.lock().await;
        for pass in 0..3 {
            bench.write(&[10 + pass], 5000).await;
            home.journal_pass(&mut keeping).await;
        }
        bench.write(&[13], 5000).await;
        written(&bench);
        // Enough for the sector of journal, and not for the inventory's behind it.
        let now = bench.env.now().0;
        let mut budget = Budget::new(1 << 30, now);
        let left = budget.left(now) as u64;
        budget.spend(now, left - 6000);
        *home.budget.lock() = Some(budget);
        home.journal_pass(&mut keeping).await;
        assert_eq!((keeping.listed_to, written(&bench)), (0, (vec![], vec![19])));
        assert!(home.oldest_unhard().is_some(), "the pass goes on");
        *home.budget.lock() = None;
        bench.write(&[14], 5000).await;
        home.journal_pass(&mut keeping).await;
        let (listed, journaled) = written(&bench);
        assert_eq!((keeping.listed_to, listed.len(), journaled, home.oldest_unhard()), (2, 1, vec![16], None));
    });
}

/// Many pages of one sector of inventory are written in that.
#[test]
fn what_is_crowded_is_not_journaled() {
    run(instant(), |bench| async move {
        let home = &bench.home;
        home.begin_life(7);
        let mut keeping = home.keeping.lock().await;
        written(&bench);
        bench.write(&(0..64).collect::<Vec<_>>(), 5000).await;
        home.journal_pass(&mut keeping).await;
        let (listed, journaled) = written(&bench);
        assert_eq!((listed.len(), journaled.len(), home.oldest_unhard()), (1, 0, None));
    });
}
