//! Locking rows without changing them, for SELECT ... FOR UPDATE and FOR SHARE.
//!
//! 1. Such locks exist in memory only: they end with the transaction, and a crash ends all transactions. They leave no
//!    version behind, so a reader or a later writer does not find the row changed.
//! 2. The lock is entered first, then the row is looked at. If a writer is still active, the transaction waits for it;
//!    a later writer finds the lock (`locks`, invariant 5). Once the lock is granted, nobody else writes the row until
//!    the transaction ends (with an exclusive lock, nobody else locks it either).
use super::write::Ready;
use super::{Txn, UpdateOutcome, Version};
use crate::catalog::Table;
use crate::error::{EngineError, Result};
use crate::locks::{LockKey, LockMode};
use crate::row::RowBuf;
use terrace_storage::Rid;

/// How a row is locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowLock {
    /// With others; against writers (FOR SHARE).
    Share,
    /// Alone (FOR UPDATE).
    Exclusive,
}

impl RowLock {
    fn mode(self) -> LockMode {
        match self {
            RowLock::Share => LockMode::Share,
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
        let Some(new) = self.enter_row_lock(table, rid, lock, wait).await? else {
            return Ok(RowLockOutcome::Skipped);
        };
        let outcome = self.look_at_locked(table, rid, expected, wait).await;
        let keep = matches!(outcome, Ok(RowLockOutcome::Locked | RowLockOutcome::Changed { .. }));
        if let (false, true) = (keep, new) {
            let (key, mode) = self.resources.row_locks.pop().expect("entered above");
            self.core().locks.release(self.resources.owner, key, mode);
        }
        outcome
    }

    /// Whether the lock is new; `None`: skipped.
    async fn enter_row_lock(&mut self, table: &Table, rid: Rid, lock: RowLock, wait: LockWait) -> Result<Option<bool>> {
        let (core, owner) = (self.resources.core.clone(), self.resources.owner);
        let (key, mode) = (LockKey::Explicit(table.oid, rid), lock.mode());
        let new = match wait {
            LockWait::Wait => core.locks.acquire(&core.env, owner, key, mode, self.lock_timeout).await?,
            _ => match core.locks.try_acquire(owner, key, mode)? {
                Some(new) => new,
                None if wait == LockWait::Skip => return Ok(None),
                None => return Err(EngineError::lock_not_available(&table.name)),
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
        wait: LockWait,
    ) -> Result<RowLockOutcome> {
        let snapshot = self.snapshot();
        let core = self.resources.core.clone();
        loop {
            // Without the snapshot the slot may have been freed and given to another row.
            let settled = snapshot.believe(core.settled(self.own(), table.oid, rid).await)?;
            let (row, holder) = match settled {
                None => return Ok(RowLockOutcome::Gone),
                Some(found) => found,
            };
            match (holder, wait) {
                (None, _) => {
                    return Ok(match self.judge(row, expected, &snapshot)? {
                        Ready::Yes(_) => RowLockOutcome::Locked,
                        Ready::No(UpdateOutcome::Changed { row, version }) => RowLockOutcome::Changed { row, version },
                        Ready::No(_) => RowLockOutcome::Gone,
                    });
                }
                (Some(holder), LockWait::Wait) => core.wait(self.resources.owner, &holder, self.lock_timeout).await?,
                (Some(_), LockWait::NoWait) => return Err(EngineError::lock_not_available(&table.name)),
                (Some(_), LockWait::Skip) => return Ok(RowLockOutcome::Skipped),
            }
        }
    }
}

#[cfg(test)]
mod tests;
