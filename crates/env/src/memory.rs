//! Memory that a piece of work holds, as the allocator counts it.
//!
//! 1. Each thread counts the bytes it allocates less those it frees; a [`Meter`] takes the difference over each poll of
//!    a future. So what the future's polls allocate is its own until one of its polls frees it, on any thread; nothing
//!    is passed along.
//! 2. The allocator refuses nothing: a program cannot go on from there. Work that is about to take much asks first
//!    ([`room`]), and long work asks again as it goes.
//! 3. What a meter has taken up to [`FREE`] counts for nobody: small work never fails for what others take.
//! 4. Work that leaves it to others to free what it allocated says so ([`handed_over`]); those bytes count no longer.
//!    So does work that holds nothing for long ([`settled`]): then all that it allocated no longer counts.
//! 5. Where [`Counting`] is not the program's allocator, nothing is counted and there is room without end.
//!
//! What is not counted: memory that is mapped past the allocator (the buffer pool, thread stacks), and what tasks in
//! the background allocate.
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Bytes that each meter may take without being counted against the limit: buffers and caches of a session that does
/// little.
pub const FREE: i64 = 1 << 20;

thread_local! {
    /// Bytes that the thread has allocated less those it freed.
    static NET: Cell<i64> = const { Cell::new(0) };
    /// What `NET` may reach in the poll under way.
    static CEILING: Cell<i64> = const { Cell::new(i64::MAX) };
    /// The poll under way has said that its work is settled.
    static SETTLED: Cell<bool> = const { Cell::new(false) };
}

/// An allocator that counts what another one does.
pub struct Counting<A>(pub A);

/// For each allocation: inlined across crates also where the linker does not optimise.
#[inline]
fn count(bytes: i64) {
    NET.set(NET.get().wrapping_add(bytes));
}

// SAFETY: all work is the inner allocator's; counting touches a cell of the thread that needs neither memory nor a
// destructor.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let memory = unsafe { self.0.alloc(layout) };
        if !memory.is_null() {
            count(layout.size() as i64);
        }
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let memory = unsafe { self.0.alloc_zeroed(layout) };
        if !memory.is_null() {
            count(layout.size() as i64);
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as the caller promises.
        unsafe { self.0.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        let moved = unsafe { self.0.realloc(memory, layout, size) };
        if !moved.is_null() {
            count(size as i64 - layout.size() as i64);
        }
        moved
    }
}

/// What all meters of a program may take together.
#[derive(Debug)]
pub struct Limit {
    bytes: i64,
    taken: AtomicI64,
}

impl Limit {
    /// `None`: no limit.
    pub fn new(bytes: Option<usize>) -> Arc<Limit> {
        // Half of what can be counted, so that sums cannot overflow.
        let bytes = bytes.map_or(i64::MAX / 2, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX / 2));
        Arc::new(Limit { bytes: bytes.min(i64::MAX / 2), taken: AtomicI64::new(0) })
    }

    /// Bytes that meters have taken beyond what is free, at the end of their last polls.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed).max(0) as u64
    }
}

/// Counts what one piece of work holds.
pub struct Meter {
    limit: Arc<Limit>,
    held: i64,
    /// Its part of what the limit has taken.
    noted: i64,
}

impl Meter {
    pub fn new(limit: Arc<Limit>) -> Meter {
        Meter { limit, held: 0, noted: 0 }
    }

    /// Runs a future to its end, each of its polls counted. One piece of work is not metered within another.
    pub async fn over<F: Future + Unpin>(mut self, mut work: F) -> F::Output {
        poll_fn(|context| self.counted(|| Pin::new(&mut work).poll(context))).await
    }

    fn counted<T>(&mut self, work: impl FnOnce() -> T) -> T {
        /// Also where the work panics.
        struct Done<'m> {
            meter: &'m mut Meter,
            before: i64,
            ceiling: i64,
        }
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                match SETTLED.take() {
                    true => self.meter.note(-self.meter.held),
                    false => self.meter.note(NET.get().wrapping_sub(self.before)),
                }
                CEILING.set(self.ceiling);
            }
        }
        let before = NET.get();
        let room = self.room();
        SETTLED.set(false);
        let _done = Done { before, ceiling: CEILING.replace(before.saturating_add(room)), meter: self };
        work()
    }

    fn room(&self) -> i64 {
        let shared = self.limit.bytes - self.limit.taken.load(Ordering::Relaxed);
        (FREE - self.held).max(0) + shared.max(0)
    }

    fn note(&mut self, more: i64) {
        self.held += more;
        let counts = (self.held - FREE).max(0);
        if counts != self.noted {
            self.limit.taken.fetch_add(counts - self.noted, Ordering::Relaxed);
            self.noted = counts;
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.limit.taken.fetch_sub(self.noted, Ordering::Relaxed);
    }
}

/// The work under way holds nothing for long, at the end of this poll (invariant 4).
pub fn settled() {
    SETTLED.set(true);
}

/// Does `work`, and says how many bytes it has allocated on this thread and not freed.
pub fn measured<T>(work: impl FnOnce() -> T) -> (T, i64) {
    let before = NET.get();
    let done = work();
    (done, NET.get().wrapping_sub(before))
}

/// Others will free so many bytes that the work under way has allocated (invariant 4).
pub fn handed_over(bytes: i64) {
    count(-bytes);
}

/// Bytes that the work under way may still take; negative where it has taken too much already.
pub fn room() -> i64 {
    CEILING.get().saturating_sub(NET.get())
}

#[cfg(test)]
mod tests;
