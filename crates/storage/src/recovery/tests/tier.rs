//! What redo leaves of the frames that an opening has found.

use super::*;
use crate::config::WritePolicy;

/// Pages with changes are written in long runs, and so were the pages between them: a page that is written loses its
/// frame, and the tier lost most of what it held.
#[test]
fn redo_leaves_frames_of_pages_without_changes() {
    let mut machine = Machine::new(4000, 64 << 10);
    machine.devices.flash = Some(Arc::new(MemoryDevice::new("flash", 64 << 20)));
    machine.config.writer_interval = Duration::from_millis(10);
    let flash = &mut machine.config.flash;
    (flash.size, flash.write) = (8 << 20, WritePolicy::DualWrite);
    let sim = Sim::new(3, 2);
    let (env, devices, config) = (sim.env(), machine.devices.clone(), machine.config.clone());
    sim.run(async move {
        let st = Store::create(env, devices, config).await.expect("creates");
        let pages = make_pages(&st, 1200).await;
        st.checkpoint().await.expect("writes home, and to the tier");
        st.env().sleep(Duration::from_secs(2)).await; // The inventory is written.
        for one in pages.chunks(4) {
            change(&st, &one[..1]).await;
        }
        st.log().flush_to(st.log().end()).await.expect("flushes");
    });
    sim.crash();
    machine.config.pool_bytes = 128 * PAGE;
    let (_sim, st, report) = machine.open(4, Upto::End);
    let used = st.flash().expect("there is a tier").used;
    assert!(report.tier.current > 800 && report.pages > 250, "{report:?}");
    assert!(used >= report.tier.current, "{used} frames are left: {report:?}");
}

fn disk_reads(st: &Store) -> u64 {
    st.io().into_iter().filter(|usage| usage.purpose == Purpose::Data).map(|usage| usage.reads.count()).sum()
}

/// A machine with a warm tier for all pages, into which checkpoints write too.
fn with_warm_tier() -> Machine {
    let mut machine = Machine::new(4000, 1 << 20);
    machine.devices.flash = Some(Arc::new(MemoryDevice::new("flash", 64 << 20)));
    machine.config.writer_interval = Duration::from_millis(10);
    let flash = &mut machine.config.flash;
    (flash.size, flash.write, flash.restart) = (16 << 20, WritePolicy::DualWrite, Restart::Instant);
    machine
}

/// After the crash these pages are as the log makes them, and next to none of them is read from the disk.
fn begin_with_their_frames(machine: &Machine, (sim, st): (&Sim, &Store), changed: &[u32]) {
    let (expected, _) = machine.in_log_order(Lsn(u64::MAX));
    let before = disk_reads(st);
    let left: BTreeMap<PageId, Vec<u8>> =
        expected.into_iter().filter(|(page, _)| page.space == DATA && changed.contains(&page.no)).collect();
    assert_eq!(left.len(), changed.len());
    same_pages(sim, st, &left, "after the crash");
    let reads = disk_reads(st) - before;
    assert!(reads * 20 < changed.len() as u64, "{reads} of {} pages were read from the disk", changed.len());
}

/// Pages that had changed in memory were read from the disk after a crash, though their older versions still lay on
/// flash, in frames that were free.
#[test]
fn pages_that_changed_begin_with_what_their_free_frames_hold() {
    let machine = with_warm_tier();
    let sim = Sim::new(3, 2);
    let (env, devices, config) = (sim.env(), machine.devices.clone(), machine.config.clone());
    let changed = sim.run(async move {
        let st = Store::create(env, devices, config).await.expect("creates");
        let pages = make_pages(&st, 1200).await;
        st.checkpoint().await.expect("writes home, and to the tier");
        let (left, taken): (Vec<u32>, Vec<u32>) = pages.iter().partition(|no| *no % 4 == 0);
        for no in &taken {
            change(&st, &[*no]).await;
        }
        // They enter the tier, so that its inventory is written anew: after the others have changed.
        let home: Vec<PageId> = taken.iter().map(|no| PageId::new(DATA, *no)).collect();
        st.pool().write_all(&home).await.expect("writes");
        for no in &left {
            change(&st, &[*no]).await;
        }
        st.env().sleep(Duration::from_millis(50)).await;
        st.log().flush_to(st.log().end()).await.expect("flushes");
        left
    });
    sim.crash();
    let (sim, st, report) = machine.open(4, Upto::End);
    assert!(report.tier.bases * 10 > changed.len() as u64 * 8, "{} pages: {report:?}", changed.len());
    begin_with_their_frames(&machine, (&sim, &st), &changed);
}

/// The index of the segment that the retain LSN lies in also names what lies behind it. Pages with such changes lost
/// their frames to what was noted for the tier alone.
#[test]
fn pages_that_changed_just_behind_the_retain_lsn_keep_their_frames() {
    let machine = with_warm_tier();
    let sim = Sim::new(3, 2);
    let (env, devices, config) = (sim.env(), machine.devices.clone(), machine.config.clone());
    let changed = sim.run(async move {
        let st = Store::create(env, devices, config).await.expect("creates");
        let pages = make_pages(&st, 1200).await;
        st.checkpoint().await.expect("writes home, and to the tier");
        st.env().sleep(Duration::from_secs(2)).await; // The inventory is written.
        let (left, taken): (Vec<u32>, Vec<u32>) = pages.iter().partition(|no| *no % 8 == 0);
        for no in &taken[..20] {
            change(&st, &[*no]).await;
        }
        st.checkpoint().await.expect("moves the retain LSN beyond what the inventory holds for");
        for no in &left {
            change(&st, &[*no]).await;
        }
        for no in &taken[..900] {
            change(&st, &[*no]).await;
        }
        st.log().flush_to(st.log().end()).await.expect("flushes");
        left
    });
    sim.crash();
    let (sim, st, report) = machine.open(4, Upto::End);
    // (Of a page that was made anew the frame is no base.)
    assert!(report.tier.bases * 10 > (changed.len() as u64 + 900) * 9, "{report:?}");
    begin_with_their_frames(&machine, (&sim, &st), &changed);
}
