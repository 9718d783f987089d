//! Restart: double-write repair, redo. Undo of losers is the engine's, with `undo`.
//!
//! Invariants:
//! 1. Redo is idempotent: a page takes a batch only where its LSN is below the batch's end, and the control file moves only after
//!    redo is done. A crash at any point repeats it from the same redo LSN over the same bytes.
//! 2. A block finds its page exactly as the batch found it (page LSN = prevPageLSN), or begins with an op that needs nothing. A page
//!    that is neither is a *suspect*: its bytes are damaged, or a write was lost, or it was dropped with its object before the crash
//!    (then it was never written, and rightly so). Suspects that are still in use are rebuilt from older log at the end, or reported.
//! 3. What a killed process wrote and did not sync is readable but may yet be lost: every device is synced before its bytes count.
//! 4. Nor need that sync make it durable: where one failed in the life before, the cache counts as clean what never reached the medium. So
//!    every page that redo visits is dirty from then on, with the recLSN of the first block that named it, also where its LSN shows
//!    that it has all of them: the redo LSN moves past those blocks only when the page has been written again, and synced. (The log
//!    itself: `log::harden`; pages with copies in the double-write area: there, invariant 5; the control file: there.)

use crate::backup::Upto;
use crate::error::{Result, StorageError};
use crate::home::disk::{DiskHome, WRITERS};
use crate::log::Log;
use crate::log::batch::{Batch, Block, EVENT};
use crate::log::history::{Change, starts_afresh};
use crate::log::reader::SegmentImage;
use crate::mtr::LogEvent;
use crate::page::header;
use crate::page::op::PageOp;
use crate::pool::{Access, Pin, Pool};
use crate::store::RecoveryReport;
use crate::types::*;
use crate::{DeviceSet, StorageConfig};
use futures::StreamExt;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs of pages being read ahead at once.
const IN_FLIGHT: usize = 64;
/// The longest run read ahead in one.
const RUN: usize = 32;

/// Why a page could not be redone (invariant 2).
pub(crate) type Suspects = BTreeMap<PageId, StorageError>;

pub(crate) struct Redone {
    /// Where the log ends.
    pub(crate) end: Lsn,
    pub(crate) suspects: Suspects,
}

/// Restores torn pages from the double-write areas; syncs the data devices (invariant 3).
pub(crate) async fn restore_torn(
    devices: &DeviceSet,
    config: &StorageConfig,
    home: &DiskHome,
    database: u128,
) -> Result<u64> {
    devices.double_write.sync(terrace_device::Purpose::DoubleWrite).await?;
    let restored = DiskHome::areas(devices, config, database).restore(WRITERS, home.places()).await?;
    for page in &restored {
        tracing::info!(%page, "torn page restored from the double-write area");
    }
    Ok(restored.len() as u64)
}

/// Repeats history from `from` to the log's end, or as far as `upto` says.
pub(crate) async fn redo(
    log: &Log,
    pool: &Arc<Pool>,
    from: Lsn,
    upto: Upto,
    report: &mut RecoveryReport,
) -> Result<Redone> {
    let mut redo = Redo { pool, report, suspects: Suspects::new(), upto, stopped: false };
    let mut at = from;
    let mut image = match from {
        Lsn(0) => log.successor(None, from).await?,
        _ => log.segment(log.segment_of(from)).await?,
    };
    while let Some(segment) = image.take() {
        let end = segment.end(at);
        // The next segment is read while this one is repeated.
        let (next, done) = futures::join!(log.successor(Some(&segment), end), redo.segment(&segment, at));
        done?;
        if redo.stopped {
            // Where the last batch that was repeated ended: in this segment, or in the one before.
            at = at.max(redo.report.redo_to);
            log.cut(at);
            break;
        }
        at = end;
        image = next?;
    }
    let Redo { suspects, .. } = redo;
    Ok(Redone { end: at, suspects })
}

struct Redo<'a> {
    pool: &'a Arc<Pool>,
    report: &'a mut RecoveryReport,
    suspects: Suspects,
    upto: Upto,
    /// A batch was met that is beyond `upto`.
    stopped: bool,
}

impl Redo<'_> {
    /// Whether a batch is to be repeated; notes the commits that are.
    fn wanted(&mut self, batch: &Batch<'_>) -> bool {
        let commit = batch.blocks().filter(|b| b.page == EVENT).find_map(|b| LogEvent::decode(b.ops).ok());
        let time = commit.map(|LogEvent::Commit { unix_micros, .. }| unix_micros);
        let wanted = match self.upto {
            Upto::End => true,
            Upto::Time(last) => time.is_none_or(|time| time <= last),
            Upto::Lsn(last) => batch.end <= last,
        };
        if wanted {
            self.report.last_commit = time.or(self.report.last_commit);
            self.report.redo_to = batch.end;
        }
        self.stopped = !wanted;
        wanted
    }

    async fn segment(&mut self, segment: &SegmentImage, from: Lsn) -> Result<()> {
        // As many pages ahead as the pool holds without pushing out what was just read.
        let ahead = (self.pool.frames() / 4).max(1);
        let mut window: Vec<Batch<'_>> = Vec::new();
        let mut pages: FxHashMap<PageId, bool> = FxHashMap::default();
        for batch in segment.batches(from) {
            if !self.wanted(&batch) {
                self.report.stopped_short = true;
                break;
            }
            for block in batch.blocks().filter(|b| b.page != EVENT) {
                pages.entry(block.page).or_insert_with(|| starts_afresh(block.ops));
            }
            window.push(batch);
            if pages.len() >= ahead {
                self.window(&mut window, &mut pages).await?;
            }
        }
        self.window(&mut window, &mut pages).await
    }

    async fn window(&mut self, window: &mut Vec<Batch<'_>>, pages: &mut FxHashMap<PageId, bool>) -> Result<()> {
        let mut wanted: Vec<PageId> = pages.drain().filter(|(_, fresh)| !fresh).map(|(page, _)| page).collect();
        wanted.retain(|page| self.pool.get(*page).is_none());
        wanted.sort_unstable();
        let pool = self.pool;
        futures::stream::iter(runs(&wanted))
            .for_each_concurrent(IN_FLIGHT, |(first, count)| async move {
                match count {
                    1 => drop(pool.fetch(first, Access::Random).await), // A failure shows again below, where it can be dealt with.
                    _ => pool.prefetch(first.space, first.no, count).await,
                }
            })
            .await;
        for batch in window.drain(..) {
            for block in batch.blocks().filter(|b| b.page != EVENT) {
                self.block(&batch, &block).await?;
            }
            self.report.batches += 1;
            self.report.bytes += batch.end.0 - batch.start.0;
        }
        Ok(())
    }

    async fn block(&mut self, batch: &Batch<'_>, block: &Block<'_>) -> Result<()> {
        let fresh = starts_afresh(block.ops);
        if fresh {
            self.suspects.remove(&block.page);
        } else if self.suspects.contains_key(&block.page) {
            return Ok(());
        }
        let (pin, found) = match self.pool.get(block.page) {
            Some(pin) => {
                let lsn = header::lsn(&pin.read());
                (pin, lsn)
            }
            None if fresh => (self.pool.create(block.page).await?, Lsn(0)),
            None => match self.pool.fetch(block.page, Access::Random).await {
                Ok(pin) => {
                    let lsn = header::lsn(&pin.read());
                    (pin, lsn)
                }
                Err(e @ StorageError::BadPage { .. }) => {
                    self.suspects.insert(block.page, e);
                    return Ok(());
                }
                Err(e) => return Err(e),
            },
        };
        if found >= batch.end {
            self.pool.redo(&pin, batch.start, |_| ()); // Invariant 4.
            return Ok(());
        }
        if !fresh && found != block.prev {
            let lost = StorageError::LostWrite { page: block.page, found, expected: block.prev };
            self.suspects.insert(block.page, lost);
            return Ok(());
        }
        self.apply(&pin, batch, block)
    }

    fn apply(&mut self, pin: &Pin, batch: &Batch<'_>, block: &Block<'_>) -> Result<()> {
        let mut outcome = Ok(());
        self.pool.redo(pin, batch.start, |page| outcome = apply_ops(page, block.page, block.ops, batch.end));
        self.report.pages_redone += 1;
        outcome
    }
}

/// Applies a block's ops and stamps the page LSN.
pub(crate) fn apply_ops(page: &mut [u8], id: PageId, ops: &[u8], end: Lsn) -> Result<()> {
    let mut rest = ops;
    while !rest.is_empty() {
        let op = PageOp::decode(&mut rest)
            .map_err(|e| StorageError::Damaged(format!("log before {end}, page {id}: {e}")))?;
        op.apply(page, id);
    }
    header::set_lsn(page, end);
    Ok(())
}

/// The page that a history, which starts afresh, makes.
pub(crate) fn rebuild(id: PageId, page_size: usize, history: &[Change]) -> Result<Vec<u8>> {
    assert!(history.first().is_some_and(Change::starts_afresh), "a rebuilt page starts from nothing");
    let mut page = vec![0; page_size];
    for change in history {
        apply_ops(&mut page, id, &change.ops, change.end)?;
    }
    Ok(page)
}

/// Rebuilds a suspect from the log, back to before the redo LSN, into the pool; `why` where the log does not reach far enough.
/// `range`: from the redo LSN to the log's end.
pub(crate) async fn rebuild_suspect(
    log: &Log,
    pool: &Arc<Pool>,
    page: PageId,
    (rec_lsn, end): (Lsn, Lsn),
    why: StorageError,
) -> Result<()> {
    let Some(history) = log.page_history(page, end).await? else { return Err(why) };
    let rebuilt = rebuild(page, pool.page_size(), &history)?;
    tracing::warn!(%page, "rebuilt from the log: {}", why.reason());
    let pin = match pool.get(page) {
        Some(pin) => pin,
        None => pool.create(page).await?,
    };
    pool.redo(&pin, rec_lsn, |bytes| bytes.copy_from_slice(&rebuilt));
    Ok(())
}

/// Runs of adjacent pages.
fn runs(pages: &[PageId]) -> Vec<(PageId, u32)> {
    let mut runs: Vec<(PageId, u32)> = Vec::new();
    for &page in pages {
        match runs.last_mut() {
            Some((first, n)) if first.space == page.space && first.no + *n == page.no && (*n as usize) < RUN => *n += 1,
            _ => runs.push((page, 1)),
        }
    }
    runs
}
