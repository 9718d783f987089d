//! Reading ahead while the pages read before are worked on.
//!
//! 1. The pages are claimed before [`Pool::begin_prefetch`] returns: a task that wants one of them joins the read.
//! 2. The read is a task of its own. So it goes on if its caller goes away, or is not polled for a while: others may
//!    have joined it.
//! 3. What it reads counts for the task that asks for its end ([`crate::reads`]).
use super::Pool;
use crate::reads::{Reads, count_reads, counting};
use crate::types::SpaceId;
use std::ops::Range;
use std::task::{Context, Poll, Waker};
use terrace_env::memory;
use tokio::sync::oneshot;

/// A read that was begun.
pub struct Prefetching(Option<oneshot::Receiver<Reads>>);

impl Prefetching {
    /// Waits for its end.
    pub async fn ended(self) {
        if let Some(receiver) = self.0
            && let Ok(reads) = receiver.await
        {
            count_reads(reads);
        }
    }
}

impl Pool {
    /// Reads a run of pages ahead in as few I/Os as the home can do; returns when they are resident or given up (it
    /// does not wait for frames).
    pub async fn prefetch(&self, space: SpaceId, first: u32, count: u32) {
        Box::pin(self.load_ahead(space, range(first, count))).await;
    }

    /// As [`Pool::prefetch`], of pages that need not follow each other (ascending): all are read at the same time.
    pub async fn prefetch_pages(&self, space: SpaceId, pages: &[u32]) {
        Box::pin(self.load_ahead(space, pages.iter().copied())).await;
    }

    /// As [`Pool::prefetch`], but returns at once.
    pub fn begin_prefetch(&self, space: SpaceId, first: u32, count: u32) -> Prefetching {
        // The task frees it: a scan must not pay for all that was ever read ahead.
        let (begun, grown) = memory::measured(|| self.begin(space, first, count));
        memory::handed_over(grown);
        begun
    }

    fn begin(&self, space: SpaceId, first: u32, count: u32) -> Prefetching {
        let Some(pool) = self.me.upgrade() else { return Prefetching(None) };
        let mut reading = Box::pin(async move { pool.load_ahead(space, range(first, count)).await });
        // Invariant 1. Where it does not end at once, the task asks again, with a waker of its own.
        if let Poll::Ready(()) = reading.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Prefetching(None);
        }
        let (send, receiver) = oneshot::channel();
        self.log.spawn("read-ahead", async move {
            let mut reads = Reads::default();
            counting(&mut reads, reading).await;
            let _ = send.send(reads); // Nobody may wait.
        });
        Prefetching(Some(receiver))
    }
}

fn range(first: u32, count: u32) -> Range<u32> {
    first..first.saturating_add(count)
}
