//! Making a dirty page again whose frame is lost: from the disk's version, and the log from the page's recLSN on
//! (`recovery::remake`).
//!
//! This is sound while the server runs, for three reasons. The log is kept back to the tier's oldest recLSN, and every
//! change of the page that the disk may lack lies at or above the page's own recLSN. Nothing newer is overwritten:
//! either the page is being read, and so is not in memory; or what was made here is handed to the disk only while its
//! frame is not void, and it becomes void before the page is written next. (The page may be newer in memory, where a
//! dirty frame stays when its page changes: `floors`, invariant 3.) prevPageLSN proves that no change is missing.
//!
//! If the disk's version is damaged, or is one from before a lost write, the page is made from its beginning in the
//! log. If that fails too, or the log cannot be read, and this goes on, storage stops and says so: a restart repeats
//! the whole log.

use super::{BatchSpan, FlashHome};
use crate::error::{Result, StorageError};
use crate::home::{Fetched, Home};
use crate::page::header;
use crate::pool::Access;
use crate::recovery::{Base, Changes, Wanted};
use crate::sync::atomic::Ordering;
use crate::types::*;
use futures::StreamExt;
use std::time::Duration;
use terrace_device::IoBuf;
use terrace_env::Nanos;

/// How often replays may fail in a row. All failures in one round of the cleaner count once; it tries again after
/// `ROUND`.
const FAILED_ROUNDS_MAX: u32 = 100;
const ROUND: Duration = Duration::from_millis(40);
/// Pages of the disk that one request reads, with those between two wanted ones; the most pages between two wanted
/// ones; requests at a time.
const RUN: u32 = 256;
const GAP: u32 = 32;
const IN_FLIGHT: usize = 8;

/// Replays that failed since the last that succeeded.
#[derive(Default)]
pub(super) struct Stuck {
    times: u32,
    counted: Option<Nanos>,
}

impl Stuck {
    /// Another failed; whether there were too many.
    fn failed(&mut self, now: Nanos) -> bool {
        let round = self.counted.is_none_or(|at| now.0.saturating_sub(at.0) >= ROUND.as_nanos() as u64);
        if round {
            (self.times, self.counted) = (self.times + 1, Some(now));
        }
        self.times >= FAILED_ROUNDS_MAX
    }
}

impl FlashHome {
    /// The newest versions of dirty pages, sealed, with the log durable up to them; each with its recLSN.
    pub(crate) async fn replay(&self, pages: &[(PageId, Lsn)]) -> Vec<Result<IoBuf>> {
        let made = self.replay_all(pages).await;
        match made.iter().find_map(|page| page.as_ref().err()) {
            None => *self.stuck.lock() = Stuck::default(),
            Some(error) if self.stuck.lock().failed(self.env.now()) => self.give_up(error),
            Some(_) => {}
        }
        made
    }

    fn give_up(&self, error: &StorageError) {
        let why = format!("pages of the lost flash tier cannot be made again while the server runs: {error}");
        if self.check().is_ok() && self.hopeless.set(StorageError::Damaged(why)).is_ok() {
            tracing::error!(%error, "pages of the lost flash tier cannot be made again; storage stops, \
                                     and must recover");
            self.wake_cleaner.notify_one();
            self.progress.notify_waiters();
        }
    }

    /// Versions of pages with what the log has of them: of each what begins at or behind one LSN and ends at or before
    /// another.
    pub(crate) async fn bring_up(&self, pages: Vec<(PageId, IoBuf, (Lsn, Lsn))>) -> Vec<Result<IoBuf>> {
        let wanted = |(page, bytes, (since, upto))| Wanted { page, base: Base::Version(bytes, since), upto };
        self.remaker.make(pages.into_iter().map(wanted).collect()).await
    }

    /// The page's changes in these batches, ascending; `None` where they cannot be read.
    pub(crate) async fn changes_at(&self, page: PageId, spans: &[BatchSpan]) -> Option<Changes> {
        Changes::at(&self.log, page, spans).await
    }

    async fn replay_all(&self, pages: &[(PageId, Lsn)]) -> Vec<Result<IoBuf>> {
        let upto = self.log_end();
        let bases = self.disk_versions(pages).await;
        let wanted = pages.iter().zip(bases).map(|(&(page, rec), base)| {
            let base = match base {
                Ok(bytes) => {
                    let since = rec.max(header::lsn(&bytes));
                    Base::Version(bytes, since)
                }
                Err(why) => Base::Nothing(why, rec),
            };
            Wanted { page, base, upto }
        });
        let made = self.remaker.make(wanted.collect()).await;
        let count = made.iter().filter(|page| page.is_ok()).count() as u64;
        self.counters.replayed.fetch_add(count, Ordering::Relaxed);
        made
    }

    /// What the disk has of the page.
    pub(crate) async fn disk_version(&self, page: PageId) -> Result<IoBuf> {
        let fetched = self.disk.fetch(page, 1, Access::Random).await.pop().expect("one page was asked for");
        fetched.map(|fetched| fetched.bytes)
    }

    /// What the disk has of the pages, in their order.
    async fn disk_versions(&self, pages: &[(PageId, Lsn)]) -> Vec<Result<IoBuf>> {
        let mut order: Vec<usize> = (0..pages.len()).collect();
        order.sort_unstable_by_key(|&at| pages[at].0);
        let mut runs: Vec<Vec<usize>> = Vec::new();
        for at in order {
            let page = pages[at].0;
            let joins = |run: &&mut Vec<usize>| {
                let (first, last) = (pages[run[0]].0, pages[run[run.len() - 1]].0);
                first.space == page.space && page.no - last.no <= GAP && page.no - first.no < RUN
            };
            match runs.last_mut().filter(joins) {
                Some(run) => run.push(at),
                None => runs.push(vec![at]),
            }
        }
        let read = futures::stream::iter(runs).map(|run| async move {
            let (first, last) = (pages[run[0]].0, pages[run[run.len() - 1]].0);
            let fetched = self.disk.fetch(first, last.no - first.no + 1, Access::Random).await;
            let mut fetched: Vec<_> = fetched.into_iter().map(Some).collect();
            let take = |at: usize| (at, fetched[(pages[at].0.no - first.no) as usize].take());
            run.into_iter().map(take).collect::<Vec<_>>()
        });
        let mut versions: Vec<Option<Result<IoBuf>>> = pages.iter().map(|_| None).collect();
        for (at, version) in read.buffer_unordered(IN_FLIGHT).collect::<Vec<_>>().await.into_iter().flatten() {
            let version: Result<Fetched> = version.expect("a page is wanted once");
            versions[at] = Some(version.map(|fetched| fetched.bytes));
        }
        versions.into_iter().map(|version| version.expect("each page lies in one run")).collect()
    }
}

#[cfg(test)]
mod tests;
