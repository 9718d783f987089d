//! How much memory an opening takes, as the allocator counts it (the pool's frames are mapped, and not counted).

use super::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that the thread has allocated less those it freed, and the most that was.
    static HELD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

/// Counts what each thread holds. A simulation runs on one thread.
struct Peak;

#[global_allocator]
static ALLOCATOR: Peak = Peak;

fn count(bytes: i64) {
    let (held, most) = HELD.get();
    HELD.set((held + bytes, most.max(held + bytes)));
}

// SAFETY: all work is the system's; counting touches a cell of the thread that needs neither memory nor a destructor.
unsafe impl GlobalAlloc for Peak {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

const POOL_PAGES: usize = 128;

/// The most that an opening takes after so many changes of 1,200 pages, and the bytes of log that it reads.
fn most_while_opening(changes: usize, redo_memory: usize, segment: usize) -> (usize, u64) {
    let mut machine = Machine::new(4000, redo_memory);
    (machine.config.segment_size, machine.config.log_buffer) = (segment as u64, 2 * segment);
    machine.work(21, 1200, changes, 1);
    machine.config.pool_bytes = POOL_PAGES * PAGE;
    let (before, _) = HELD.get();
    HELD.set((before, before));
    let (_sim, _store, report) = machine.open(22, Upto::End);
    let (_, most) = HELD.get();
    assert!(report.pages > 1000, "{report:?}");
    ((most - before) as usize, report.bytes)
}

/// What it takes is bounded, and the same for sixteen times the log.
#[test]
fn an_opening_takes_its_budget_and_two_segments_however_long_the_log_is() {
    // Buffers of 1 MiB are mapped, and not counted; those of 64 KiB are: the log's own is one of two segments.
    for (segment, buffers) in [(64 << 10, 4 * (64 << 10)), (1 << 20, 0)] {
        for redo_memory in [64 << 10, 512 << 10] {
            // Two sweeps of a quarter of the pool each are on their way.
            let bound = redo_memory + redo_memory / 8 + buffers + POOL_PAGES / 2 * PAGE + (192 << 10);
            for changes in [2_000, 32_000] {
                let (most, log) = most_while_opening(changes, redo_memory, segment);
                assert!(most < bound, "{most} bytes, {bound} allowed, for {log} of log and {redo_memory} of changes");
            }
        }
    }
}

/// What the thread holds.
fn held() -> i64 {
    HELD.get().0
}

/// The background task held the changes of all pages until it had read the last one: on a slow disk for minutes, beside
/// a pool that filled up.
#[test]
fn changes_go_as_their_pages_are_read() {
    let mut machine = Machine::new(4000, 4 << 20);
    machine.config.flash.restart = Restart::Instant;
    (machine.config.segment_size, machine.config.log_buffer) = (4 << 20, 8 << 20); // All of it is repeated.
    machine.work(23, 1200, 6000, 1);
    machine.config.pool_bytes = 400 * PAGE; // A sweep is of a hundred pages.
    let sim = Sim::new(24, 2);
    let env = sim.env();
    machine.slow(&env, Duration::from_millis(5), Duration::ZERO);
    let (devices, config) = (machine.devices.clone(), machine.config.clone());
    sim.run(async move {
        let before = held();
        let (st, report) = Store::open(env.clone(), devices, config).await.expect("opens");
        let (opened, all) = (held(), report.pages_waiting);
        assert!(all > 1000 && opened - before > 1 << 20, "{} bytes for {all} pages", opened - before);
        while st.pages_waiting() > all / 2 {
            env.sleep(Duration::from_micros(100)).await;
        }
        let (left, freed) = (st.pages_waiting(), opened - held());
        assert!(left > 0 && freed * 3 > opened - before, "{freed} bytes of {} freed, {left} left", opened - before);
    });
}
