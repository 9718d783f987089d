//! A dirty page whose frame is lost is made again: the disk's version, and the log from the page's recLSN on.
//!
//! Why that is sound while the server runs: the log is kept back to the tier's oldest recLSN, and every change of the page that the
//! disk may lack lies at or above its own. Nobody holds a newer version: the page is either being read (then it is not in memory), or
//! dirty in the tier (when it is dirtied its frame becomes void, before the change is in the log, and what was made here is dropped).
//! prevPageLSN proves that no change is missing.
//!
//! Where the disk's version is damaged, or is one from before a lost write, the page is made from its beginning in the log. Where that
//! fails too, or the log cannot be read, and goes on failing, storage stops and says so: a restart repeats the whole log.

use super::FlashHome;
use crate::error::{Result, StorageError};
use crate::home::Home;
use crate::log::history::Change;
use crate::page::header;
use crate::pool::Access;
use crate::recovery::{apply_ops, rebuild};
use crate::sync::atomic::Ordering;
use crate::types::*;
use futures::future::join_all;
use std::collections::BTreeMap;
use std::time::Duration;
use terrace_device::IoBuf;
use terrace_env::Nanos;

/// So many times replays may fail in a row; those of one round of the cleaner, which tries again after `ROUND`, are one.
const PATIENCE: u32 = 100;
const ROUND: Duration = Duration::from_millis(40);

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
        self.times >= PATIENCE
    }
}

impl FlashHome {
    /// The newest versions of dirty pages, sealed, with the log durable up to them; each with its recLSN.
    pub(super) async fn replay(&self, pages: &[(PageId, Lsn)]) -> Vec<Result<IoBuf>> {
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
            tracing::error!(%error, "pages of the lost flash tier cannot be made again; storage stops, and must recover");
            self.wake_cleaner.notify_one();
            self.progress.notify_waiters();
        }
    }

    async fn replay_all(&self, pages: &[(PageId, Lsn)]) -> Vec<Result<IoBuf>> {
        let wanted: BTreeMap<PageId, Lsn> = pages.iter().copied().collect();
        let changes = match self.log.changes_since(&wanted).await {
            Ok(changes) => changes,
            Err(error) => return pages.iter().map(|_| Err(error.clone())).collect(),
        };
        let changes = &changes;
        join_all(pages.iter().map(|&(page, _)| async move {
            let changes = changes.get(&page).map_or(&[][..], Vec::as_slice);
            let made = match self.remake(page, changes).await {
                Err(error) => self.remake_whole(page, error).await,
                made => made,
            };
            self.counters.replayed.fetch_add(made.is_ok() as u64, Ordering::Relaxed);
            made
        }))
        .await
    }

    /// As `remake`, without the disk; `why` that is no good, and the error where the log does not reach back to the page's beginning.
    async fn remake_whole(&self, page: PageId, why: StorageError) -> Result<IoBuf> {
        let other = match &why {
            StorageError::BadPage { why, .. } => why.is_decay(),
            StorageError::LostWrite { .. } => true,
            _ => false,
        };
        if !other {
            return Err(why);
        }
        let Some(history) = self.log.page_history(page, self.log.end()).await? else { return Err(why) };
        tracing::warn!(%page, "made again from the log: {}", why.reason());
        let mut bytes = IoBuf::padded(&rebuild(page, self.page_size, &history)?);
        header::seal(&mut bytes);
        Ok(bytes)
    }

    async fn remake(&self, page: PageId, changes: &[Change]) -> Result<IoBuf> {
        let afresh = changes.iter().rposition(Change::starts_afresh);
        let (mut bytes, changes) = match afresh {
            Some(at) => (IoBuf::zeroed(self.page_size), &changes[at..]),
            None => {
                let mut fetched = self.disk.fetch(page, 1, Access::Random).await;
                (fetched.pop().expect("one page was asked for")?.bytes, changes)
            }
        };
        let mut fresh = afresh.is_some();
        for change in changes {
            let found = header::lsn(&bytes);
            if !fresh && change.end <= found {
                continue;
            }
            if !fresh && change.prev != found {
                return Err(StorageError::LostWrite { page, found, expected: change.prev });
            }
            apply_ops(&mut bytes, page, &change.ops, change.end)?;
            fresh = false;
        }
        header::seal(&mut bytes);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Many pages are made again at once; that the log cannot be read just then is one failure, not one for each.
    #[test]
    fn patience_is_not_used_up_in_one_round() {
        let mut stuck = Stuck::default();
        let at = |round: u64| Nanos(round * 50_000_000);
        for round in 0..u64::from(PATIENCE) - 1 {
            assert!((0..1000).all(|i| !stuck.failed(Nanos(at(round).0 + i))), "round {round}");
        }
        assert!(stuck.failed(at(u64::from(PATIENCE))));
    }
}
