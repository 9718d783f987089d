//! Memory for the values that a statement makes.
//!
//! 1. No value is longer than [`LARGEST`] (54000), as in PostgreSQL.
//! 2. Code that is about to make a large value, or many values, asks first ([`ask`]). The bytes are taken from the
//!    budget of all queries, and the allocator's count must leave room for them ([`terrace_env::memory`]). Otherwise
//!    the statement fails with 53200 before anything is made.
//! 3. Work within functions checks ([`check`]) whether its statement was cancelled, has timed out, or has taken too
//!    much. A thread knows the statement that it works for: [`Work::over`] sets it for each poll of a future, as
//!    [`terrace_engine::types::Zone`] does.
//! 4. A large constant is not made while a query is planned, because plans are copied and printed.
use crate::cancel::{CancelToken, check_room};
use crate::error::no_memory;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use terrace_engine::{Datum, EngineError, Result};
use terrace_env::memory::room;

/// Bytes of the longest value, as in PostgreSQL: a gigabyte less one.
pub(crate) const LARGEST: u64 = 0x3fff_ffff;

/// Bytes that nobody needs to ask for.
const SMALL: u64 = 64 << 10;

/// Bytes of the longest constant that a plan may hold in the place of the expression that makes it.
pub(crate) const FOLDED: u64 = 16 << 10;

/// Bytes that a value in a list takes on its way through a plan, beside itself.
pub(crate) const LISTED: u64 = 1024;

/// What the work of a statement's poll belongs to.
pub(crate) struct Work {
    token: Arc<CancelToken>,
    pool: Arc<dyn MemoryPool>,
    /// Bytes that functions have made so far.
    made: AtomicU64,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Work>>> = const { RefCell::new(None) };
    static PLANNING: Cell<bool> = const { Cell::new(false) };
}

/// Puts back what was current.
struct Restore(Option<Arc<Work>>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

impl Work {
    pub(crate) fn new(token: Arc<CancelToken>, pool: Arc<dyn MemoryPool>) -> Arc<Work> {
        Arc::new(Work { token, pool, made: AtomicU64::new(0) })
    }

    /// Runs a future to its end, each of its polls as this statement's work.
    pub(crate) async fn over<F: Future + Unpin>(self: Arc<Work>, mut work: F) -> F::Output {
        poll_fn(|context| {
            let _restore = Restore(CURRENT.replace(Some(self.clone())));
            Pin::new(&mut work).poll(context)
        })
        .await
    }
}

fn current() -> Option<Arc<Work>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs the making of a plan to its end (invariant 4).
pub(crate) async fn planning<F: Future + Unpin>(mut work: F) -> F::Output {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            PLANNING.set(self.0);
        }
    }
    poll_fn(|context| {
        let _restore = Restore(PLANNING.replace(true));
        Pin::new(&mut work).poll(context)
    })
    .await
}

pub(crate) fn is_planning() -> bool {
    PLANNING.get()
}

/// Whether the statement under way may go on.
pub(crate) fn check() -> Result<()> {
    match current() {
        Some(work) => work.token.check(),
        None => check_room(),
    }
}

/// 54000 where a value would be too long.
pub(crate) fn check_length(bytes: u64) -> Result<()> {
    if bytes <= LARGEST {
        return Ok(());
    }
    let detail = format!("A value of {bytes} bytes was asked for; at most {LARGEST} are possible.");
    Err(EngineError::new("54000", "requested length too large").with_detail(detail))
}

/// What was asked for; held for as long as it is being made.
#[must_use]
pub(crate) struct Asked(#[expect(dead_code, reason = "held, not looked at")] Option<MemoryReservation>);

/// Asks for that many bytes (invariant 2).
pub(crate) fn ask(what: &str, bytes: u64) -> Result<Asked> {
    if bytes < SMALL {
        return Ok(Asked(None));
    }
    let missing = || no_memory(format!("{what} needs {bytes} bytes."));
    if i64::try_from(bytes).map_or(true, |bytes| bytes > room()) {
        return Err(missing());
    }
    let Some(work) = current() else { return Ok(Asked(None)) };
    work.token.check()?;
    let memory = MemoryConsumer::new(what).register(&work.pool);
    memory.try_grow(usize::try_from(bytes).map_err(|_| missing())?).map_err(|_| missing())?;
    debug_assert_eq!(memory.size() as u64, bytes, "invariant 2: what is asked for is taken");
    Ok(Asked(Some(memory)))
}

/// Notes that a function has made so many bytes.
pub(crate) fn made(bytes: u64) {
    CURRENT.with_borrow(|work| {
        if let Some(work) = work {
            work.made.fetch_add(bytes, Ordering::Relaxed);
        }
    });
}

/// What functions have made of the work under way.
pub(crate) fn made_so_far() -> u64 {
    CURRENT.with_borrow(|work| work.as_ref().map_or(0, |work| work.made.load(Ordering::Relaxed)))
}

/// A buffer of so many bytes, or 53200 where the machine has none.
pub(crate) fn buffer(what: &str, bytes: u64) -> Result<Vec<u8>> {
    let mut buffer = vec![];
    let none = || no_memory(format!("{what} needs {bytes} bytes, which the machine does not have."));
    buffer.try_reserve_exact(usize::try_from(bytes).map_err(|_| none())?).map_err(|_| none())?;
    Ok(buffer)
}

/// Bytes that a row of values takes.
pub(crate) fn row_bytes(row: &[Datum]) -> usize {
    let beyond = |datum: &Datum| match datum {
        Datum::Text(text) => text.len(),
        Datum::Bytea(bytes) => bytes.len(),
        _ => 0,
    };
    size_of::<Vec<Datum>>() + size_of_val(row) + row.iter().map(beyond).sum::<usize>()
}

#[cfg(test)]
mod tests;
