//! Restart: double-write repair, redo by page ([`redo`]) before the opening ends or when a page is read
//! ([`on_demand`]), pages made again from older log ([`remake`], which serves the running database too). Undo of losers
//! is the engine's, with `undo`.
//!
//! Invariants:
//! 1. Redo is idempotent: a page takes a batch only where its LSN is below the batch's end, and the control file moves
//!    only after redo is done and what it made is durable. A crash at any point repeats it from the same redo LSN over
//!    the same bytes.
//! 2. A block finds its page exactly as the batch found it (page LSN = prevPageLSN), or begins with an op that needs
//!    nothing (`follow`). A page that is neither is a *suspect*: its bytes are damaged, or a write was lost, or it was
//!    dropped with its object before the crash (then it was never written, and rightly so). Suspects that are still in
//!    use are rebuilt from older log at the end, or reported.
//! 3. What a killed process wrote and did not sync is readable but may yet be lost: every device is synced before its
//!    bytes count.
//! 4. Nor need that sync make it durable: where one failed in the life before, the cache counts as clean what never
//!    reached the medium. So every page that redo visits is dirty from then on, with the recLSN of the first block that
//!    is repeated on it, also where its LSN shows that it has all of them: the redo LSN moves past those blocks only
//!    when the page has been written again, and synced. (The log itself: `log::harden`; pages with copies in the
//!    double-write area: there, invariant 5; the control file: there.)

mod gather;
mod on_demand;
mod redo;
mod remake;
mod sweep;
#[cfg(test)]
mod tests;

pub(crate) use gather::Changes;
pub(crate) use on_demand::{AtWork, OnDemand};
pub(crate) use redo::{Tools, redo};
pub(crate) use remake::{Base, Remaker, Wanted};

use crate::error::{Result, StorageError};
use crate::home::disk::{DiskHome, WRITERS};
use crate::page::header;
use crate::page::op::PageOp;
use crate::pool::Pool;
use crate::progress::{RecoveryPhase, RecoveryProgress};
use crate::types::*;
use crate::{DeviceSet, StorageConfig};
use gather::Change;
use remake::is_decay;
use std::collections::BTreeMap;
use std::sync::Arc;
use terrace_env::Env;

/// Suspects made again at a time.
const SUSPECTS: usize = 1024;

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

/// Repeats a change on its page (invariant 2: `chained`, but in tests that show that it is needed); false where the
/// page has it already.
fn follow(bytes: &mut [u8], page: PageId, change: &Change<'_>, chained: bool) -> Result<bool> {
    let found = header::lsn(bytes);
    if found >= change.end {
        return Ok(false);
    }
    if chained && !change.starts_afresh() && found != change.prev {
        return Err(StorageError::LostWrite { page, found, expected: Some(change.prev) });
    }
    apply_ops(bytes, page, change.ops, change.end)?;
    Ok(true)
}

/// Repeats all changes on their page; how many it had not.
fn repeat(bytes: &mut [u8], page: PageId, changes: &Changes, chained: bool) -> Result<u64> {
    changes.iter().try_fold(0, |count, change| Ok(count + u64::from(follow(bytes, page, &change, chained)?)))
}

/// Applies a block's ops and stamps the page LSN.
fn apply_ops(page: &mut [u8], id: PageId, ops: &[u8], end: Lsn) -> Result<()> {
    let mut rest = ops;
    while !rest.is_empty() {
        let op = PageOp::decode(&mut rest)
            .map_err(|e| StorageError::Damaged(format!("log before {end}, page {id}: {e}")))?;
        op.apply(page, id);
    }
    header::set_lsn(page, end);
    Ok(())
}

/// Rebuilds suspects from the log, back to before the redo LSN, into the pool; the first one's reason where the log
/// does not reach far enough. `range`: from the retain LSN to the log's end.
pub(crate) async fn rebuild(
    pool: &Arc<Pool>,
    suspects: Suspects,
    (rec_lsn, end): (Lsn, Lsn),
    (env, progress): (&Env, &RecoveryProgress),
) -> Result<u64> {
    if suspects.is_empty() {
        return Ok(0);
    }
    progress.enter(RecoveryPhase::Rebuilding, suspects.len() as u64);
    let mut left = suspects.into_iter().peekable();
    let mut rebuilt = 0;
    while left.peek().is_some() {
        let some: Vec<_> = left.by_ref().take(SUSPECTS).collect();
        let pages: Vec<PageId> = some.iter().map(|(page, _)| *page).collect();
        let wanted = some.into_iter().map(|(page, why)| Wanted { page, base: Base::Nothing(why, end), upto: end });
        let made = pool.remaker().make(wanted.collect()).await;
        for (page, bytes) in pages.into_iter().zip(made) {
            let bytes = bytes?;
            let pin = match pool.get(page) {
                Some(pin) => pin,
                None => pool.create(page).await?,
            };
            pool.redo(&pin, rec_lsn, |to| to.copy_from_slice(&bytes));
            rebuilt += 1;
            progress.add(env, 1);
        }
    }
    Ok(rebuilt)
}
