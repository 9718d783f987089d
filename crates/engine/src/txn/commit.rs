//! Commit: six steps in the order in which a transaction becomes durable, then visible ([`Commit::run`]).
//!
//! 1. Before the point of no return (the commit record is in the log) every step may fail, and its future may be
//!    dropped: the transaction is rolled back.
//! 2. After it nothing can fail but the device. A future dropped there goes on in a background task.
//! 3. Nobody sees the transaction before it is durable. (Except after [`Txn::commit_async`].)
//! 4. If the log cannot be made durable, the outcome is unknown: the transaction stays active for ever and the database
//!    stops (58030).
use super::Txn;
use super::resources::TxnResources;
use crate::error::{EngineError, Result};
use crate::status::Stage;
use std::time::Duration;
use terrace_storage::Lsn;
use terrace_storage::mtr::LogPermit;
use terrace_storage::undo::{History, TxnEnd, UndoSpace};

/// How long after the return of [`Txn::commit_async`] its commit is made durable.
pub const LAZY_FLUSH: Duration = Duration::from_millis(20);

impl Txn {
    /// Returns when the commit is durable. 40001 where it is SERIALIZABLE and has to go, 23503 where a deferred foreign
    /// key does not hold: it is rolled back.
    pub async fn commit(self) -> Result<()> {
        self.commit_with(Durability::Waited).await
    }

    /// Returns before the commit is durable. A crash within about the next [`LAZY_FLUSH`] may undo it, together with
    /// everything committed later, but nothing committed earlier. Others see the changes at once. (A durable commit on
    /// top of it makes it durable too.)
    pub async fn commit_async(self) -> Result<()> {
        self.commit_with(Durability::Later).await
    }

    async fn commit_with(mut self, durability: Durability) -> Result<()> {
        if self.has_noted()
            && let Err(error) = Box::pin(self.check_noted()).await
        {
            Box::pin(self.rollback()).await?; // Boxed: its state is large, and commits seldom fail.
            return Err(error);
        }
        let has_written = self.has_written();
        if has_written
            && self.has_on_commit()
            && let Err(error) = Box::pin(self.on_commit()).await
        {
            Box::pin(self.rollback()).await?;
            return Err(error);
        }
        let resources = self.end_reads_as_committed();
        if !has_written {
            if let Some(serial) = &resources.serial {
                serial.prepare()?;
                serial.committed();
            }
            return resources.leave_unwritten().await;
        }
        Commit::new(resources, durability).run().await
    }

    /// Lets go of the snapshot, and counts what the transaction did.
    pub(super) fn end_reads_as_committed(mut self) -> TxnResources {
        self.tally.committed();
        self.resources
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// The commit waits until the log is durable.
    Waited,
    /// The log becomes durable within about [`LAZY_FLUSH`].
    Later,
}

/// A commit under way.
pub(super) struct Commit {
    /// `None`: done, or failed for good.
    parts: Option<Parts>,
    durability: Durability,
    /// A background task runs this already. If it is dropped there, the executor is going down.
    in_background: bool,
}

struct Parts {
    resources: TxnResources,
    /// The commit record in the log, after step 2.
    record: Option<Record>,
}

/// The end of a commit record in the log, and what purge gets of the transaction.
pub(super) struct Record {
    end: Lsn,
    pub(super) history: History,
}

impl Commit {
    pub(super) fn new(resources: TxnResources, durability: Durability) -> Commit {
        Commit { parts: Some(Parts { resources, record: None }), durability, in_background: false }
    }

    pub(super) async fn run(mut self) -> Result<()> {
        // A commit that goes on in the background has its record in the log.
        if self.record().is_none() {
            // 1. Reserve log space for the record.
            let permit = self.reserve_log_space().await?;
            if let Err(error) = self.prepare() {
                let Parts { resources, .. } = self.parts.take().expect("a commit runs once");
                Box::pin(resources.rollback()).await?;
                return Err(error);
            }
            // 2. Write the record into the undo page and the log. It is one batch.
            self.write_record(permit);
        }

        // ==== Point of no return: from here on a restart may find the transaction committed. ====

        // 3. Wait until the log is durable up to the record.
        self.wait_until_durable().await?;

        let Parts { mut resources, record } = self.parts.take().expect("a commit runs once");
        let history = record.expect("step 2 has written it").history;
        // 4. New snapshots see the changes, its definitions are everybody's, and its history is in purge's list.
        resources.become_visible(&history);
        if let Some(serial) = &resources.serial {
            serial.committed();
        }
        // 5. Others may lock its rows and tables.
        resources.release_locks_and_wake();
        // 6. Purge wakes, and removes the old versions when nobody sees them any more.
        resources.wake_purge(&history);
        Ok(())
    }

    fn parts(&mut self) -> &mut Parts {
        self.parts.as_mut().expect("a commit runs once")
    }

    pub(super) fn record(&self) -> Option<&Record> {
        self.parts.as_ref().and_then(|parts| parts.record.as_ref())
    }

    pub(super) async fn reserve_log_space(&mut self) -> Result<LogPermit> {
        let resources = &self.parts().resources;
        let permit = resources.core.store.reserve(UndoSpace::log_bytes(0)).await?;
        resources.core.check_alive()?;
        resources.entry.enter(Stage::Committing);
        Ok(permit)
    }

    /// 40001 where a serialisable transaction has to go. After that nothing may fail until the record is written.
    fn prepare(&mut self) -> Result<()> {
        self.parts().resources.serial.as_ref().map_or(Ok(()), |serial| serial.prepare())
    }

    pub(super) fn write_record(&mut self, permit: LogPermit) {
        let parts = self.parts();
        let (end, history) = parts.resources.write_end(permit, TxnEnd::Committed);
        parts.record = Some(Record { end, history });
    }

    async fn wait_until_durable(&mut self) -> Result<()> {
        let lsn = self.record().expect("step 2 has written it").end;
        let core = self.parts().resources.core.clone();
        if self.durability == Durability::Later {
            core.flush_later(lsn);
            return Ok(());
        }
        let began = core.env.now();
        let flushed = core.store.log().commit_to(lsn).await;
        core.usage.commit_wait.record(core.env.now().0 - began.0);
        flushed.map_err(|e| {
            // Invariant 4. Its locks go after that, so that the transactions that get them find the database stopped.
            core.fail(format!("the log could not be written: {e}"));
            self.parts = None;
            EngineError::new("58030", format!("the outcome of the commit is unknown: {e}"))
        })
    }
}

impl Drop for Commit {
    fn drop(&mut self) {
        // Without a record, the drop of `parts` rolls back (invariant 1).
        if self.record().is_none() || self.in_background {
            return;
        }
        let parts = self.parts.take();
        let Some(core) = parts.as_ref().map(|parts| parts.resources.core.clone()) else { return };
        let commit = Commit { parts, durability: self.durability, in_background: true };
        core.store.spawn("commit", async move {
            if let Err(e) = commit.run().await {
                tracing::error!("{e}");
            }
        });
    }
}

#[cfg(test)]
mod tests;
