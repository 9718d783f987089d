//! Mini-transactions: the only way to change pages (R6). See ARCHITECTURE sections 2 to 4.
//!
//! Invariants:
//! 1. A page stays latched exclusively from its first op to the commit: nobody sees, and nobody copies for writing,
//!    bytes that the log does not describe.
//! 2. Commit goes: tell the home, read the log's end, mark dirty with it, append, stamp, release. So a page is dirty
//!    with a recLSN at or below its batch before the batch is in the log (pool/write.rs, invariant 3).
//! 3. An applied op is logged. A mini-transaction that is dropped after its first op ends the process; if that happens
//!    while a panic unwinds, the pool writes nothing any more.

use crate::bytes::{FromBytes, I64, IntoBytes, U64, front, layout};
use crate::log::{Block, EVENT};
use crate::page::header;
use crate::page::op::PageOp;
use crate::pool::{Pin, Pool, WriteGuard};
use crate::sync::thread_local;
use crate::types::*;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

pub use crate::log::LogPermit;

/// An event in the log that changes no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEvent {
    Commit { txn: TxnId, unix_micros: i64 },
}

/// A commit as older programs wrote it, and with the LSN up to which the log was durable.
const COMMIT_ONLY: u8 = 1;
const COMMIT: u8 = 2;

layout! {
    /// A commit in the log.
    struct CommitBytes: 25 {
        0 front: CommitFront,
        /// Up to where the log was durable when this was written.
        17 durable: U64,
    }
}

layout! {
    /// A commit as older programs wrote it (`COMMIT_ONLY`).
    struct CommitFront: 17 {
        0 tag: u8,
        1 txn: U64,
        9 unix_micros: I64,
    }
}

impl LogEvent {
    /// Appends the event's log form. `durable`: up to where the log is durable.
    pub fn encode(&self, durable: Lsn, out: &mut Vec<u8>) {
        let LogEvent::Commit { txn, unix_micros } = *self;
        let front = CommitFront { tag: COMMIT, txn: txn.0.into(), unix_micros: unix_micros.into() };
        out.extend_from_slice(CommitBytes { front, durable: durable.0.into() }.as_bytes());
    }

    /// Up to where the log was durable when the event of these bytes was written, where they say so.
    pub fn durable(bytes: &[u8]) -> Option<Lsn> {
        let commit = CommitBytes::ref_from_bytes(bytes).ok()?;
        (commit.front.tag == COMMIT).then(|| Lsn(commit.durable.get()))
    }

    /// The event in the ops of a block whose page is [`EVENT`].
    pub fn decode(bytes: &[u8]) -> Result<LogEvent, String> {
        const WHOLE: usize = size_of::<CommitBytes>();
        const ONLY: usize = size_of::<CommitFront>();
        match (bytes.first(), bytes.len()) {
            (Some(&COMMIT), WHOLE) | (Some(&COMMIT_ONLY), ONLY) => {
                let commit: &CommitFront = front(bytes);
                Ok(LogEvent::Commit { txn: TxnId(commit.txn.get()), unix_micros: commit.unix_micros.get() })
            }
            (tag, length) => Err(format!("log event {tag:?} of {length} bytes is unknown")),
        }
    }
}

/// A page latched by a mini-transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latched(usize);

/// A latched page, what was done to it, and its LSN before.
struct Held {
    guard: WriteGuard,
    prev: Lsn,
    ops: Vec<u8>,
    /// What the page inherits: it is dirty below the pool.
    below: Option<Lsn>,
}

thread_local! {
    /// Empty buffers for ops: a mini-transaction in the steady state allocates none.
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Buffers that a thread keeps, and the largest it keeps.
const SPARES: usize = 8;
const SPARE_BYTES: usize = 64 << 10;

fn take_buffer() -> Vec<u8> {
    SPARE.with(|spare| spare.borrow_mut().pop()).unwrap_or_default()
}

fn keep_buffer(mut buffer: Vec<u8>) {
    buffer.clear();
    if buffer.capacity() <= SPARE_BYTES {
        SPARE.with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARES {
                spare.push(buffer);
            }
        });
    }
}

/// Exclusive latches, the ops applied under them, and their records. `!Send`. Ends with `commit`; dropping one that has
/// applied an op is a bug and aborts (the pages would differ from the log); dropping a clean one just releases the
/// latches.
pub struct Mtr {
    pool: Arc<Pool>,
    permit: Option<LogPermit>,
    /// By handle; `None` where the latch was released.
    pages: Vec<Option<Held>>,
    event: Option<LogEvent>,
    _not_send: PhantomData<*const ()>,
}

impl Mtr {
    /// A mini-transaction whose batch takes at most the permit's bytes.
    pub(crate) fn new(pool: &Arc<Pool>, permit: LogPermit) -> Mtr {
        Mtr { pool: pool.clone(), permit: Some(permit), pages: Vec::new(), event: None, _not_send: PhantomData }
    }

    /// Latches the page exclusively until commit. Latch order: R3. Latching the same page twice returns the same
    /// handle.
    pub fn latch(&mut self, pin: &Pin) -> Latched {
        let same = self.pages.iter().position(|p| p.as_ref().is_some_and(|held| held.guard.is_on(pin)));
        Latched(same.unwrap_or_else(|| {
            let guard = pin.write();
            let prev = header::lsn(&guard);
            self.pages.push(Some(Held { guard, prev, ops: take_buffer(), below: None }));
            self.pages.len() - 1
        }))
    }

    fn held(&self, at: Latched) -> &Held {
        self.pages[at.0].as_ref().expect("the latch was released")
    }

    pub fn page(&self, at: Latched) -> &[u8] {
        &self.held(at).guard
    }

    /// Changes the page and notes the op for the log. Panics where the op does not fit the page.
    pub fn apply(&mut self, at: Latched, op: PageOp<'_>) {
        let held = self.pages[at.0].as_mut().expect("the latch was released");
        let page = held.guard.id();
        op.encode(&mut held.ops); // Noted before it is done: a panic in between counts as a change.
        op.apply(&mut held.guard, page);
    }

    /// Adds an event to the batch; at most one.
    pub fn event(&mut self, event: LogEvent) {
        let before = self.event.replace(event);
        assert!(before.is_none(), "a second event in one mini-transaction");
    }

    /// Releases the latch of a page that was not changed.
    pub fn release(&mut self, at: Latched) {
        let held = self.pages[at.0].take().expect("the latch was released before");
        assert!(held.ops.is_empty(), "page {} was changed: it stays latched until commit", held.guard.id());
        keep_buffer(held.ops);
    }

    fn changed(&self) -> impl Iterator<Item = &Held> + Clone {
        self.pages.iter().flatten().filter(|held| !held.ops.is_empty())
    }

    /// Home.dirtied -> recLSN/dirty -> append to log -> stamp LSN -> release latches (invariant 2). Returns the batch's
    /// end (`Lsn(0)` where nothing was changed).
    pub fn commit(mut self) -> Lsn {
        if self.changed().next().is_none() && self.event.is_none() {
            return Lsn(0);
        }
        let home = self.pool.home();
        for held in self.pages.iter_mut().flatten().filter(|held| !held.ops.is_empty()) {
            assert!(!held.guard.is_broken(), "an earlier change was applied and not logged");
            held.below = home.dirtied(held.guard.id());
        }
        let rec = self.pool.log().end();
        for held in self.changed() {
            held.guard.mark_dirty(held.below.map_or(rec, |below| below.min(rec)));
            if let Some(below) = held.below {
                home.risen(held.guard.id(), below);
            }
        }
        let mut event = take_buffer();
        if let Some(e) = self.event {
            e.encode(self.pool.log().durable(), &mut event);
        }
        let permit = self.permit.take().expect("kept until commit");
        // Undo pages are data like any other: without their redo, losers cannot be rolled back (the sweep shows it).
        let logged = self.changed().filter(|held| self.pool.undo_logging || held.guard.id().space != UNDO);
        let blocks = logged.map(|held| Block { page: held.guard.id(), prev: held.prev, ops: &held.ops });
        let events = self.event.iter().map(|_| Block { page: EVENT, prev: Lsn(0), ops: &event });
        let (start, end) = self.pool.log().append(permit, blocks.chain(events));
        assert!(rec <= start && start < end, "recLSN {rec}, batch {start} to {end}");
        keep_buffer(event);
        for held in self.pages.iter_mut().flatten().filter(|held| !held.ops.is_empty()) {
            assert!(held.prev < end, "the log goes back: page {} has LSN {}", held.guard.id(), held.prev);
            header::set_lsn(&mut held.guard, end);
            held.ops.clear();
        }
        end
    }
}

impl Drop for Mtr {
    fn drop(&mut self) {
        if let Some(held) = self.changed().next() {
            if !std::thread::panicking() {
                let page = held.guard.id();
                tracing::error!(%page, "a mini-transaction was dropped after it had changed a page");
                eprintln!("terrace: a mini-transaction was dropped after it had changed page {page}; stopping");
                std::process::abort();
            }
            held.guard.break_off(); // Invariant 3: memory and log differ; nothing of it may reach a device.
        }
        for held in self.pages.drain(..).flatten() {
            keep_buffer(held.ops);
        }
    }
}

#[cfg(test)]
mod tests;
