//! Where transactions that end meet purge.
//!
//! Purge takes the histories of an undo segment in the order in which their transactions ended, and only those below
//! the horizon. A transaction must therefore leave the active ones and hand its history over in one step. Purge looks
//! at the histories and at the horizon under one lock. Without that, purge could see the horizon move and a later
//! history of the same segment, but not yet this one. It would then take the later one and could never take this one.

use crate::histories::Histories;
use crate::snapshots::Active;
use terrace_storage::undo::History;
use terrace_storage::{CheckedMutex, TxnId};

/// A writer leaves. `publish`: what comes between, before purge knows of the history.
pub(crate) fn leave(
    active: &Active,
    histories: &CheckedMutex<Histories>,
    id: TxnId,
    publish: impl FnOnce(),
    history: Option<&History>,
) {
    let mut histories = histories.lock();
    active.leave(id);
    publish();
    if let Some(history) = history {
        histories.insert(history);
    }
}

/// What purge takes next. (Not `in_order`: for tests that show that the order is needed.)
pub(crate) fn next(active: &Active, histories: &CheckedMutex<Histories>, in_order: bool) -> Option<History> {
    let histories = histories.lock();
    let horizon = active.horizon();
    match in_order {
        true => histories.first().filter(|history| history.txn < horizon),
        false => histories.iter().filter(|history| history.txn < horizon).last(),
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod models;
