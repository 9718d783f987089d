//! Losers: transactions that a crash left unfinished. The database opens without waiting for their rollback. They are
//! active transactions until the background has undone them.
//!
//! ```text
//! Database::open --register--> ACTIVE --definitions changed--> undone before the opening
//!                                |
//!                                '--locks all tables--> opened --survey--> locks what it has written --undone--> ended
//! ```
//!
//! 1. *Registered first.* All losers are active before anything else is done with them, and before there is anybody
//!    who takes a snapshot or purges. So no snapshot sees their changes, their rows are locked by their headers, a
//!    unique key or a foreign key that depends on them waits for their end, and purge keeps all that may be needed
//!    to undo them.
//! 2. *Definitions.* A loser has changed definitions if it wrote the newest version of any of their rows. There is at
//!    most one, because it had the lock of definitions. It is undone before the committed catalogue is read. Of the
//!    others nothing is in the catalogue: what they noted as created is not defined yet, or not any more.
//! 3. *Tables.* A loser's undo needs each table that it has written as it was: rows by their columns, entries by the
//!    indexes. Nobody had changed these definitions, because the loser had the tables locked. It gets these locks again
//!    before anybody can ask for others. Only its undo says which tables they are, and reading all of it may take long:
//!    so it locks every table at first, and lets go of those that it has not written once the background has looked.
//!    A table made later is none of them. A loser waits for no lock, so it is in no deadlock.
//! 4. *What it does not get back.* Locks of rows that it had not changed, and of keys that it referred to, kept others
//!    from what its commit would have relied on. It does not commit.
//! 5. *Again.* Undoing a record is one mini-transaction with the note that it is undone; index entries go before, and
//!    a removal may be repeated. So a crash in the middle leaves a loser with less to undo. A fast stop leaves it so,
//!    too, with its locks: nobody may change what the next start needs.
//! 6. *In turn.* [`TURNS`] rollbacks of the background go on at a time, [`SLICE`] records each, then it is the next
//!    one's turn: a short one does not wait for the end of a long one, and statements find the disk not busy.
//!
//! Source: Graefe, Guy & Sauer, *Instant Recovery with Write-Ahead Logging*, section on undo: pre-crash transactions
//! hold their locks and are rolled back one by one, on demand or in the background.
use crate::catalog::Catalog;
use crate::catalog::load::{self, View};
use crate::database::Core;
use crate::error::{EngineError, Result};
use crate::locks::{LockKey, LockMode};
use crate::record::Record;
use crate::txn::resources::TxnResources;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use terrace_storage::config::Safeguard;
use terrace_storage::undo::Loser;
use terrace_storage::{ObjectId, RecoveryPhase};

/// Invariant 6.
pub(crate) const TURNS: usize = 4;
pub(super) const SLICE: u64 = 32;

impl Core {
    /// Takes over what a crash left, and reads the committed catalogue. Answers the losers that are left to the
    /// background ([`TxnResources::undo_later`]): none, unless they may `wait`.
    pub(crate) async fn take_over(self: &Arc<Self>, losers: Vec<Loser>, wait: bool) -> Result<Vec<TxnResources>> {
        // Invariant 1.
        let losers: Vec<_> = losers.into_iter().map(|loser| TxnResources::of_loser(self, loser.writer)).collect();
        let writers = if losers.is_empty() { FxHashSet::default() } else { load::writers(&self.store).await? };
        // Invariant 2.
        let (defining, mut others): (Vec<_>, Vec<_>) =
            losers.into_iter().partition(|loser| loser.state.as_ref().is_some_and(|state| writers.contains(&state.id)));
        let now = defining.len() + if wait { 0 } else { others.len() };
        let progress = self.store.config().progress.clone();
        if now > 0 {
            progress.enter(RecoveryPhase::RollingBack, now as u64);
        }
        for mut loser in defining {
            // It has definitions of its own: they are read as it undoes.
            loser.catalog = Some(Arc::default());
            loser.rollback_loser().await?;
            progress.add(&self.env, 1);
        }
        *self.catalog.write() = Arc::new(Catalog::load(&self.store, View::Newest).await?);
        if !wait {
            for loser in others.drain(..) {
                loser.rollback_loser().await?;
                progress.add(&self.env, 1);
            }
        }
        others.iter_mut().for_each(TxnResources::lock_all_tables);
        self.losers.store(others.len() as u64, Ordering::Release);
        if !others.is_empty() {
            let transactions = others.len();
            tracing::info!(transactions, "what the crash left unfinished is rolled back in the background");
        }
        Ok(others)
    }
}

impl TxnResources {
    /// Invariant 3, before the database is open: nobody else locks anything.
    fn lock_all_tables(&mut self) {
        if !self.core.guards(Safeguard::LoserLocks) {
            return;
        }
        let mode = LockMode::RowExclusive;
        for table in self.core.catalog().tables() {
            let key = LockKey::Table(table.oid);
            let granted = self.core.locks.try_acquire(self.owner, key, mode);
            assert!(matches!(granted, Ok(Some(true))), "losers lock tables before anybody else, each once");
            self.locks.push((key, mode));
        }
        self.to_survey = true;
    }

    /// Invariant 3: lets go of the tables that it has not written.
    pub(super) async fn survey(&mut self) -> Result<()> {
        let Some(writer) = self.writer.as_ref().filter(|_| self.to_survey) else { return Ok(()) };
        let core = &self.core;
        let (mut written, mut whole) = (FxHashSet::<ObjectId>::default(), Ok(()));
        let look = |body: &[u8]| {
            whole = match Record::decode(body) {
                _ if core.leaving.load(Ordering::Acquire) => Err(left_to_restart()),
                Ok(record) => {
                    written.extend(record.table());
                    Ok(())
                }
                Err(error) => Err(error),
            };
            whole.is_ok()
        };
        core.cleanup.undo().survey(&core.cleanup, writer, look).await?;
        whole?;
        let needed = |(key, _): &(LockKey, LockMode)| matches!(key, LockKey::Table(oid) if written.contains(oid));
        let (kept, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.locks).into_iter().partition(needed);
        self.locks = kept;
        self.core.locks.release_all(self.owner, &rest);
        self.to_survey = false;
        Ok(())
    }

    /// Undoes it in the background.
    pub(crate) fn undo_later(self) {
        let (core, began) = (self.core.clone(), self.core.env.now());
        self.in_background_then(move |undone| {
            if undone && core.losers.fetch_sub(1, Ordering::AcqRel) == 1 {
                let millis = (core.env.now().0 - began.0) / 1_000_000;
                tracing::info!(millis, "what the crash left unfinished has been rolled back");
            }
        });
    }
}

/// Ends a rollback of the background that the next start is to go on with.
pub(super) fn left_to_restart() -> EngineError {
    EngineError::new("57P01", "the database is closing; the next start rolls the rest back")
}

#[cfg(test)]
mod tests;
