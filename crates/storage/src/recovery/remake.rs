//! Making pages again from the log, while the database runs or is being opened: damaged pages, lost pages of the flash
//! tier, suspect pages.
//!
//! A task that needs such pages hands them in and waits. Requests that come while a pass over the log is under way
//! share the next pass. So many pages cost one pass, not one pass each.
//!
//! Invariants:
//! 1. There is one pass at a time, over at most `PASS_BYTES` of pages. They lie in memory while the log goes by in
//!    order.
//! 2. A page follows its base exactly (`follow`), or begins afresh in the log. If it does neither, its last beginning
//!    is looked for and the page is made from there. If the log does not reach back to that, the answer says what was
//!    wrong with the base.
//! 3. Nobody changes a page that is being made: its reader has claimed it, or it is dirty in a frame of the tier that
//!    becomes void once the page changes.

use super::follow;
use super::gather::Change;
use crate::error::{Result, StorageError};
use crate::log::Log;
use crate::log::batch::Batch;
use crate::log::history::{ChangesOf, Visitor};
use crate::page::header;
use crate::types::*;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::sync::Arc;
use terrace_device::IoBuf;
use tokio::sync::oneshot;

/// Bytes of pages made in one pass.
const PASS_BYTES: usize = 32 << 20;

/// What a page is made from.
pub(crate) enum Base {
    /// This version, and what the log has from the LSN on.
    Version(IoBuf, Lsn),
    /// The log alone: what is wrong with the version at home, and an LSN from where on the log may begin the page
    /// afresh.
    Nothing(StorageError, Lsn),
}

/// A page that is wanted, as the log has it up to `upto`.
pub(crate) struct Wanted {
    pub(crate) page: PageId,
    pub(crate) base: Base,
    pub(crate) upto: Lsn,
}

/// Makes pages again; shared by the tasks that need some.
pub(crate) struct Remaker(Arc<Inner>);

struct Inner {
    log: Log,
    page_size: usize,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// A task is at work.
    running: bool,
    waiting: VecDeque<(Wanted, oneshot::Sender<Result<IoBuf>>)>,
}

/// A page on its way.
struct Making {
    bytes: IoBuf,
    /// Batches that begin below do not concern it.
    since: Lsn,
    state: Result<()>,
    /// The requests that wait for it.
    asked: usize,
}

/// The pages of one pass.
struct Pass {
    pages: FxHashMap<PageId, Making>,
}

impl Visitor for Pass {
    async fn batches(&mut self, batches: &[Batch<'_>]) -> Result<()> {
        for batch in batches {
            for block in batch.blocks() {
                let Some(making) = self.pages.get_mut(&block.page).filter(|m| batch.start >= m.since) else { continue };
                making.next(block.page, &Change::of(batch, &block))?;
            }
        }
        Ok(())
    }
}

impl Making {
    fn next(&mut self, page: PageId, change: &Change<'_>) -> Result<()> {
        let fresh = change.starts_afresh() && (self.state.is_err() || header::lsn(&self.bytes) < change.end);
        if fresh {
            self.bytes.fill(0);
            self.state = Ok(());
        } else if self.state.is_err() {
            return Ok(());
        }
        match follow(&mut self.bytes, page, change, true) {
            Err(e @ StorageError::LostWrite { .. }) => self.state = Err(e),
            done => drop(done?),
        }
        Ok(())
    }
}

impl Remaker {
    pub(crate) fn new(log: Log, page_size: usize) -> Remaker {
        Remaker(Arc::new(Inner { log, page_size, queue: Mutex::default() }))
    }

    /// Each page sealed, or why it cannot be made.
    pub(crate) async fn make(&self, wanted: Vec<Wanted>) -> Vec<Result<IoBuf>> {
        let mut answers = Vec::with_capacity(wanted.len());
        let start = {
            let mut queue = self.0.queue.lock();
            for one in wanted {
                let (send, receive) = oneshot::channel();
                queue.waiting.push_back((one, send));
                answers.push(receive);
            }
            !queue.waiting.is_empty() && !std::mem::replace(&mut queue.running, true)
        };
        if start {
            // A task of its own: others wait for its passes too, so who goes away must not end them.
            let inner = self.0.clone();
            self.0.log.spawn("page repair", async move { inner.run().await });
        }
        let answers =
            answers.into_iter().map(|answer| async { answer.await.unwrap_or(Err(StorageError::ShuttingDown)) });
        futures::future::join_all(answers).await
    }
}

/// The task has ended, whatever way: who still waits learns it.
struct Running<'a>(&'a Inner);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.running = false;
        let left = std::mem::take(&mut queue.waiting);
        drop(queue);
        drop(left);
    }
}

impl Inner {
    async fn run(&self) {
        let running = Running(self);
        loop {
            let batch: Vec<_> = {
                let mut queue = self.queue.lock();
                let count = queue.waiting.len().min((PASS_BYTES / self.page_size).max(1));
                if count == 0 {
                    queue.running = false;
                    std::mem::forget(running);
                    return;
                }
                queue.waiting.drain(..count).collect()
            };
            let (wanted, answers): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
            for (answer, made) in answers.into_iter().zip(self.pass(wanted).await) {
                let _ = answer.send(made); // Its future may have been dropped.
            }
        }
    }

    /// Makes some pages; one answer each.
    async fn pass(&self, wanted: Vec<Wanted>) -> Vec<Result<IoBuf>> {
        let order: Vec<PageId> = wanted.iter().map(|w| w.page).collect();
        let mut pages = match self.make(wanted).await {
            Ok(pages) => pages,
            Err(error) => return order.iter().map(|_| Err(error.clone())).collect(),
        };
        pages.values_mut().for_each(|made| header::seal(&mut made.bytes));
        let made = |page: &PageId| {
            let making = pages.get_mut(page).expect("one for each page wanted");
            making.asked -= 1;
            making.state.clone()?;
            if making.asked > 0 {
                return Ok(IoBuf::padded(&making.bytes));
            }
            Ok(pages.remove(page).expect("it was just here").bytes)
        };
        order.iter().map(made).collect()
    }

    async fn make(&self, wanted: Vec<Wanted>) -> Result<FxHashMap<PageId, Making>> {
        let Some(upto) = wanted.iter().map(|w| w.upto).max() else { return Ok(FxHashMap::default()) };
        if self.log.durable() < upto {
            self.log.flush_to(upto).await?;
        }
        let mut pass = Pass { pages: FxHashMap::default() };
        for one in wanted {
            let (bytes, since, state) = match one.base {
                Base::Version(bytes, since) => (bytes, since, Ok(())),
                Base::Nothing(why, since) => (IoBuf::zeroed(self.page_size), since, Err(why)),
            };
            let making = pass.pages.entry(one.page).or_insert(Making { bytes, since, state, asked: 0 });
            making.asked += 1;
        }
        if !self.follow_log(&mut pass, upto).await? {
            let problem = "the log has not got any more what pages of the flash tier need";
            return Err(StorageError::Damaged(problem.into()));
        }
        match self.begin_anew(&mut pass, upto).await {
            // The pages stay as damaged as they are.
            Err(e @ StorageError::Damaged(_)) => tracing::error!("the log that could make pages again is damaged: {e}"),
            done => done?,
        }
        Ok(pass.pages)
    }

    /// One pass over the log, from the oldest LSN that a page needs. False where the log does not reach back to there.
    async fn follow_log(&self, pass: &mut Pass, upto: Lsn) -> Result<bool> {
        let Some(from) = pass.pages.values().map(|m| m.since).min() else { return Ok(true) };
        let order: Vec<(PageId, Lsn)> = pass.pages.iter().map(|(&page, making)| (page, making.since)).collect();
        self.log.walk(from, upto, &ChangesOf(&order), pass).await
    }

    /// Invariant 2: a second pass for pages whose base is no good.
    async fn begin_anew(&self, pass: &mut Pass, upto: Lsn) -> Result<()> {
        let bad = pass.pages.iter().filter(|(_, making)| making.state.as_ref().is_err_and(is_decay));
        let bad: BTreeSet<PageId> = bad.map(|(&page, _)| page).collect();
        let begun = if bad.is_empty() { return Ok(()) } else { self.log.beginnings(&bad, upto).await? };
        let mut second = Pass { pages: FxHashMap::default() };
        for (page, since) in begun {
            let (state, asked) = (pass.pages[&page].state.clone(), pass.pages[&page].asked);
            second.pages.insert(page, Making { bytes: IoBuf::zeroed(self.page_size), since, state, asked });
        }
        // Where the log is used again meanwhile, what is made is not whole.
        if self.follow_log(&mut second, upto).await? {
            for (page, made) in second.pages {
                let sound = made.state.is_ok();
                let before = pass.pages.insert(page, made);
                if let Some(Making { state: Err(why), .. }) = before.filter(|_| sound) {
                    tracing::warn!(%page, "made again from the log: {}", why.reason());
                }
            }
        }
        Ok(())
    }
}

/// Whether this is wrong with a page's bytes, so that the log alone may make it.
pub(super) fn is_decay(error: &StorageError) -> bool {
    match error {
        StorageError::BadPage { why, .. } => why.is_decay(),
        StorageError::LostWrite { .. } => true,
        _ => false,
    }
}
