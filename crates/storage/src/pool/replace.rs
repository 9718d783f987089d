//! Free frames, victims, and hits on their way to the replacement policy.
//!
//! Invariants:
//! 1. Lock order: policy, then page-table shard, then hit buffer or free list. A hit, which comes with its buffer, only
//!    *tries* the policy.
//! 2. The policy holds a frame from `admit` (after the page is in the table) to `remove` (in the same critical section
//!    in which the page leaves the table). A hit that comes late is recognised by its page id and dropped.
//! 3. A page leaves memory only when it is clean, unpinned and not being written; the home is told before anyone can
//!    read it anew.

use super::table::Entry;
use super::{Access, Pool};
use crate::config::PoolPolicy;
use crate::page::header;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sync::thread_local;
use crate::types::PageId;
use std::cell::Cell;
use terrace_policy::{Class, Clock, Frame, Lru, Lru2, Replacement};

/// A model needs few, and pays for each.
const STRIPES: usize = if cfg!(feature = "shuttle") { 2 } else { 16 };
/// Hits in a buffer before it is drained, and before it is emptied when the policy is busy all the time.
const DRAIN: usize = 32;
const OVERFLOW: usize = 256;

thread_local! {
    static STRIPE: Cell<u32> = const { Cell::new(u32::MAX) };
}

struct Hit {
    frame: Frame,
    page: u64,
    class: Class,
}

/// Data that one thread, or a few, write without waiting for others.
#[repr(align(64))]
struct Stripe {
    hits: AtomicU64,
    buffer: Mutex<Vec<Hit>>,
}

struct Policy {
    order: Box<dyn Replacement>,
    /// The page that each frame was admitted with.
    admitted: Vec<Option<u64>>,
}

pub(super) struct Replacer {
    policy: Mutex<Policy>,
    stripes: Box<[Stripe]>,
    next_stripe: AtomicU32,
    free: Mutex<Vec<Frame>>,
    free_count: AtomicUsize,
    /// Dirty victims to be written, then freed.
    to_write: Mutex<Vec<PageId>>,
}

/// What became of a proposed victim.
enum Fate {
    Freed,
    Dirty(PageId),
    Busy,
}

impl Replacer {
    pub(super) fn new(kind: PoolPolicy, frames: usize) -> Replacer {
        let order: Box<dyn Replacement> = match kind {
            PoolPolicy::Lru => Box::new(Lru::new(frames)),
            PoolPolicy::Clock => Box::new(Clock::new(frames)),
            PoolPolicy::Lru2 => Box::new(Lru2::new(frames)),
        };
        let stripe = || Stripe { hits: AtomicU64::new(0), buffer: Mutex::new(Vec::with_capacity(OVERFLOW)) };
        Replacer {
            policy: Mutex::new(Policy { order, admitted: vec![None; frames] }),
            stripes: (0..STRIPES).map(|_| stripe()).collect(),
            next_stripe: AtomicU32::new(0),
            free: Mutex::new((0..frames as Frame).rev().collect()),
            free_count: AtomicUsize::new(frames),
            to_write: Mutex::new(Vec::new()),
        }
    }

    fn stripe(&self) -> &Stripe {
        let index = STRIPE.with(|stripe| {
            if stripe.get() == u32::MAX {
                stripe.set(self.next_stripe.fetch_add(1, Ordering::Relaxed));
            }
            stripe.get()
        });
        &self.stripes[index as usize % STRIPES]
    }

    pub(super) fn hits(&self) -> u64 {
        self.stripes.iter().map(|s| s.hits.load(Ordering::Relaxed)).sum()
    }

    pub(super) fn free_count(&self) -> usize {
        self.free_count.load(Ordering::Acquire)
    }

    pub(super) fn pop_free(&self) -> Option<Frame> {
        let frame = self.free.lock().pop()?;
        self.free_count.fetch_sub(1, Ordering::AcqRel);
        Some(frame)
    }

    pub(super) fn push_free(&self, frame: Frame) {
        self.free.lock().push(frame);
        self.free_count.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn take_to_write(&self) -> Vec<PageId> {
        std::mem::take(&mut *self.to_write.lock())
    }
}

pub(crate) fn class_of(access: Access) -> Class {
    match access {
        Access::Random => Class::Random,
        Access::Sequential => Class::Sequential,
    }
}

impl Pool {
    /// Notes a hit of a pinned page. It takes no contended lock, and does nothing if a hit of the page is queued
    /// already.
    pub(super) fn note_hit(&self, frame: Frame, page: PageId, access: Access) {
        crate::reads::count_hit();
        let stripe = self.replacer.stripe();
        stripe.hits.fetch_add(1, Ordering::Relaxed);
        let touched = &self.all().at(frame).touched;
        if touched.load(Ordering::Relaxed) {
            return;
        }
        let Some(mut buffer) = stripe.buffer.try_lock() else { return };
        touched.store(true, Ordering::Relaxed);
        buffer.push(Hit { frame, page: page.to_u64(), class: class_of(access) });
        if buffer.len() >= DRAIN {
            match self.replacer.policy.try_lock() {
                Some(mut policy) => self.drain(&mut policy, &mut buffer),
                None if buffer.len() >= OVERFLOW => {
                    for hit in buffer.drain(..) {
                        self.all().at(hit.frame).touched.store(false, Ordering::Relaxed);
                    }
                }
                None => {}
            }
        }
    }

    fn drain(&self, policy: &mut Policy, buffer: &mut Vec<Hit>) {
        for hit in buffer.drain(..) {
            self.all().at(hit.frame).touched.store(false, Ordering::Relaxed);
            if policy.admitted[hit.frame as usize] == Some(hit.page) {
                policy.order.hit(hit.frame, hit.class);
            }
        }
    }

    /// A page came into a frame that the caller has pinned.
    pub(super) fn admit(&self, frame: Frame, page: PageId, access: Access) {
        let mut policy = self.replacer.policy.lock();
        let before = policy.admitted[frame as usize].replace(page.to_u64());
        assert!(before.is_none(), "frame {frame} is admitted twice");
        policy.order.admit(frame, page.to_u64(), class_of(access));
    }

    /// Frees up to `want` clean victims, looking at no more than `limit`; dirty ones on the way are queued for writing,
    /// at most a group of them. Returns how many were freed.
    pub(super) fn sweep(&self, want: usize, limit: usize) -> usize {
        let mut policy = self.replacer.policy.lock();
        for stripe in &self.replacer.stripes {
            self.drain(&mut policy, &mut stripe.buffer.lock());
        }
        let mut freed = 0;
        for _ in 0..limit {
            if freed == want {
                break;
            }
            let Some(frame) = policy.order.victim() else { break };
            match self.try_evict(&mut policy, frame, true) {
                Fate::Freed => freed += 1,
                Fate::Busy => policy.order.veto(frame),
                Fate::Dirty(page) => {
                    policy.order.veto(frame);
                    let mut queue = self.replacer.to_write.lock();
                    if !self.all().at(frame).queued.swap(true, Ordering::AcqRel) {
                        queue.push(page);
                    }
                    if queue.len() >= self.write_group {
                        break;
                    }
                }
            }
        }
        drop(policy);
        if freed > 0 {
            self.freed.notify_waiters();
        }
        freed
    }

    /// Frees the frame of a page if it is clean and nobody uses it.
    pub(super) fn try_free(&self, page: PageId, tell_home: bool) -> bool {
        let mut policy = self.replacer.policy.lock();
        let frame = match self.table.shard(page).read().get(&page.to_u64()) {
            Some(Entry::Resident(frame)) => *frame,
            _ => return false,
        };
        // Not admitted yet: its reader still holds it.
        let held = policy.admitted[frame as usize] == Some(page.to_u64());
        held && matches!(self.try_evict(&mut policy, frame, tell_home), Fate::Freed)
    }

    /// Invariants 2 and 3. The frame is admitted.
    fn try_evict(&self, policy: &mut Policy, index: Frame, tell_home: bool) -> Fate {
        let frame = self.all().at(index);
        let page = frame.page().expect("an admitted frame holds a page");
        assert!(policy.admitted[index as usize] == Some(page.to_u64()));
        let mut shard = self.table.shard(page).write();
        assert!(matches!(shard.get(&page.to_u64()), Some(Entry::Resident(f)) if *f == index));
        if frame.pins() > 0 || frame.is_writing() {
            return Fate::Busy;
        }
        if self.all().rec_lsn(index).is_some() {
            return Fate::Dirty(page);
        }
        // SAFETY: no pins and the shard is locked, so nobody has or gets a latch.
        let bytes = unsafe { self.all().bytes(index) };
        // A page that was made by `create` and never formatted does not count as a page.
        if tell_home && header::kind(bytes).is_some() {
            self.home.evicted_clean(page, bytes, frame.access());
        }
        shard.remove(&page.to_u64());
        self.all().vacate(index);
        drop(shard);
        frame.queued.store(false, Ordering::Release);
        policy.admitted[index as usize] = None;
        policy.order.remove(index);
        self.counters.evictions.fetch_add(1, Ordering::Relaxed);
        self.replacer.push_free(index);
        Fate::Freed
    }
}
