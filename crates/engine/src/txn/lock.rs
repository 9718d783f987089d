//! Locking rows without changing them, for SELECT ... FOR UPDATE and its weaker forms.
//!
//! 1. Such locks exist in memory only: they end with the transaction, and a crash ends all transactions. They leave no
//!    version behind, so a reader or a later writer does not find the row changed.
//! 2. The lock is entered first, then the row is looked at. If a writer is still active, the transaction waits for it;
//!    a later writer finds the lock (`locks`, invariant 5). Once the lock is granted, nobody else writes the row until
//!    the transaction ends (with an exclusive lock, nobody else locks it either).
//! 3. A lock of a row's key does not mind versions that have the same unique keys, whether they are committed or not:
//!    the version expected stays the answer, as in PostgreSQL, under REPEATABLE READ too.
//! 4. A lock of a row's key is given beside a running writer that has left the row's unique keys as they were:
//!    whichever way the writer ends, the row is there with these keys. Otherwise the lock is let go *before* the wait
//!    for the writer, because that writer would wait for it (`locks`, invariant 6).
use super::write::{Ready, takes_key};
use super::{Txn, UpdateOutcome, Version};
use crate::catalog::Table;
use crate::database::Core;
use crate::error::{EngineError, Result};
use crate::locks::{LockKey, LockMode, TxnState};
use crate::row::RowBuf;
use crate::versions::{RowVersion, is_version};
use std::sync::Arc;
use terrace_storage::{Rid, TxnId};

/// How a row is locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowLock {
    /// Against deletion and changes of unique keys (FOR KEY SHARE).
    KeyShare,
    /// With others; against writers (FOR SHARE).
    Share,
    /// Alone, but for locks of the key (FOR NO KEY UPDATE).
    NoKeyUpdate,
    /// Alone (FOR UPDATE).
    Exclusive,
}

impl RowLock {
    fn mode(self) -> LockMode {
        match self {
            RowLock::KeyShare => LockMode::AccessShare,
            RowLock::Share => LockMode::Share,
            RowLock::NoKeyUpdate => LockMode::ShareRowExclusive,
            RowLock::Exclusive => LockMode::AccessExclusive,
        }
    }
}

/// What to do if another transaction is in the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockWait {
    Wait,
    /// 55P03.
    NoWait,
    /// [`RowLockOutcome::Skipped`].
    Skip,
}

#[derive(Clone, Debug)]
pub enum RowLockOutcome {
    /// In the version expected, to the end of the transaction.
    Locked,
    /// READ COMMITTED: locked, but another transaction has changed the row and committed; here is the newest version.
    /// Re-evaluate the statement's condition on it (the lock is this version's; no need to ask again).
    Changed { row: RowBuf, version: Version },
    /// Deleted, by a committed transaction or by this one. Not locked.
    Gone,
    /// [`LockWait::Skip`]: somebody else has it. Not locked.
    Skipped,
}

/// What a look at a locked row says.
enum Look {
    Done(RowLockOutcome),
    /// The lock must be let go, and this transaction waited for.
    Wait(Arc<TxnState>),
}

/// A row that a running transaction has written.
pub(super) struct Underway {
    /// Its versions, newest first.
    pub(super) written: Vec<RowVersion>,
    /// The one before them.
    pub(super) before: Option<RowVersion>,
}

impl Underway {
    /// The version before, if all that were written since have its unique keys.
    fn if_keys_stay(self, table: &Table) -> Option<RowVersion> {
        let before = self.before.filter(RowVersion::is_live)?;
        let old = before.view(table);
        let same = |v: &RowVersion| v.is_live() && !takes_key(table, old, v.view(table));
        self.written.iter().all(same).then_some(before)
    }
}

impl Core {
    /// The versions of a row whose newest one is the running transaction's. `None`: it was undone meanwhile.
    pub(super) async fn underway(
        &self,
        table: &Table,
        rid: Rid,
        newest: RowVersion,
        holder: &TxnState,
    ) -> Result<Option<Underway>> {
        let (header, mut written, mut next) = (newest.header, Vec::new(), Some(newest));
        while let Some(version) = next.take_if(|v| v.header.writer == holder.id) {
            next = match self.older(table.oid, rid, version.clone()).await {
                Ok(older) => older,
                Err(_) if self.stored(rid).await?.is_none_or(|row| row.header != header) => return Ok(None),
                Err(error) => return Err(error),
            };
            written.push(version);
        }
        Ok(Some(Underway { written, before: next }))
    }

    /// Whether a row is there with the same unique keys in all versions since one that the snapshot sees, up to the
    /// newest. `seen`: whose versions the snapshot sees. `None`: the newest was undone meanwhile.
    async fn keys_stay_since(
        &self,
        table: &Table,
        rid: Rid,
        newest: RowVersion,
        since: Version,
        seen: impl Fn(TxnId) -> bool,
    ) -> Result<Option<bool>> {
        let (header, mut later) = (newest.header, newest);
        loop {
            if !later.is_live() || seen(later.header.writer) {
                return Ok(Some(false));
            }
            let earlier = match self.older(table.oid, rid, later.clone()).await {
                Ok(Some(earlier)) => earlier,
                Ok(None) => return Ok(Some(false)),
                Err(_) if self.stored(rid).await?.is_none_or(|row| row.header != header) => return Ok(None),
                Err(error) => return Err(error),
            };
            if !earlier.is_live() || takes_key(table, earlier.view(table), later.view(table)) {
                return Ok(Some(false));
            }
            if is_version(&earlier.header, since) {
                return Ok(Some(true));
            }
            later = earlier;
        }
    }
}

impl Txn {
    /// Locks a row whose version is `expected` until the transaction ends, waiting for writers and lockers as `wait`
    /// says. 40P01 on deadlock; 40001 under REPEATABLE READ where the row has changed; 55P03; 53200 where too many rows
    /// are locked.
    pub async fn lock_row(
        &mut self,
        table: &Table,
        rid: Rid,
        expected: Version,
        lock: RowLock,
        wait: LockWait,
    ) -> Result<RowLockOutcome> {
        self.lock_table(table, false).await?;
        loop {
            let Some(new) = self.enter_row_lock(table, rid, lock, wait).await? else {
                return Ok(RowLockOutcome::Skipped);
            };
            let looked = self.look_at_locked(table, rid, expected, lock, wait).await;
            let keep = matches!(looked, Ok(Look::Done(RowLockOutcome::Locked | RowLockOutcome::Changed { .. })));
            if let (false, true) = (keep, new) {
                self.leave_row_lock();
            }
            match looked? {
                Look::Done(outcome) => return Ok(outcome),
                Look::Wait(holder) => self.core().wait(self.resources.owner, &holder, self.lock_timeout).await?,
            }
        }
    }

    /// Gives back the lock of a row that was entered last.
    pub(super) fn leave_row_lock(&mut self) {
        let (key, mode) = self.resources.row_locks.pop().expect("it was entered");
        self.core().locks.release(self.resources.owner, key, mode);
    }

    /// Whether the lock is new; `None`: skipped.
    pub(super) async fn enter_row_lock(
        &mut self,
        table: &Table,
        rid: Rid,
        lock: RowLock,
        wait: LockWait,
    ) -> Result<Option<bool>> {
        let (core, owner) = (self.resources.core.clone(), self.resources.owner);
        let (key, mode) = (LockKey::Explicit(table.oid, rid), lock.mode());
        let new = match wait {
            LockWait::Wait => core.locks.acquire(&core.env, owner, key, mode, self.lock_timeout).await?,
            _ => match core.locks.try_acquire(owner, key, mode)? {
                Some(new) => new,
                None if wait == LockWait::Skip => return Ok(None),
                None => return Err(EngineError::lock_not_available(table)),
            },
        };
        if new {
            self.resources.row_locks.push((key, mode));
        }
        Ok(Some(new))
    }

    async fn look_at_locked(
        &mut self,
        table: &Table,
        rid: Rid,
        expected: Version,
        lock: RowLock,
        wait: LockWait,
    ) -> Result<Look> {
        let snapshot = self.snapshot();
        let core = self.resources.core.clone();
        loop {
            // Without the snapshot the slot may have been freed and given to another row.
            let settled = snapshot.believe(core.settled(self.own(), table.oid, rid).await)?;
            let (mut row, mut holder) = match settled {
                None => return Ok(Look::Done(RowLockOutcome::Gone)),
                Some(found) => found,
            };
            if lock == RowLock::KeyShare && !is_version(&row.header, expected) {
                let kept =
                    core.keys_stay_since(table, rid, row.clone(), expected, |writer| snapshot.sees(writer, self.own()));
                match snapshot.believe(kept.await)? {
                    None => continue,
                    Some(true) => return Ok(Look::Done(RowLockOutcome::Locked)),
                    Some(false) => {}
                }
            }
            if let (Some(writer), RowLock::KeyShare) = (&holder, lock) {
                // Invariant 4.
                let Some(underway) = core.underway(table, rid, row.clone(), writer).await? else { continue };
                if let Some(before) = underway.if_keys_stay(table) {
                    (row, holder) = (before, None);
                }
            }
            match (holder, wait) {
                (None, _) => {
                    return Ok(Look::Done(match self.judge(row, expected, &snapshot)? {
                        Ready::Yes(_) => RowLockOutcome::Locked,
                        Ready::No(UpdateOutcome::Changed { row, version }) => RowLockOutcome::Changed { row, version },
                        Ready::No(_) => RowLockOutcome::Gone,
                    }));
                }
                (Some(holder), LockWait::Wait) if lock == RowLock::KeyShare => return Ok(Look::Wait(holder)),
                (Some(holder), LockWait::Wait) => core.wait(self.resources.owner, &holder, self.lock_timeout).await?,
                (Some(_), LockWait::NoWait) => return Err(EngineError::lock_not_available(table)),
                (Some(_), LockWait::Skip) => return Ok(Look::Done(RowLockOutcome::Skipped)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
