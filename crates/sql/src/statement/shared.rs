//! The transaction of a session, which the session shares with its streams of rows and its COPY.
//!
//! 1. When a statement fails, its whole transaction is rolled back at once, or back to the newest savepoint if there is
//!    one. A transaction block is then `Failed` until the client ends it or goes back to a savepoint.
//! 2. A commit is never cancelled.
use crate::notify::{Turn, Voice};
use crate::observe::Activity;
use crate::settings::Settings;
use crate::transaction::{Block, TxnCell};
use parking_lot::Mutex;
use std::sync::Arc;
use terrace_engine::Result;

/// The state that streams of rows share with their session.
pub(crate) struct Shared {
    pub(crate) cell: TxnCell,
    pub(crate) block: Mutex<Block>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) settings: Arc<Mutex<Settings>>,
    pub(crate) voice: Arc<Voice>,
}

impl Shared {
    pub(crate) fn block(&self) -> Block {
        *self.block.lock()
    }

    /// A statement failed (invariant 1).
    pub(crate) async fn fail(&self) {
        let before = {
            let mut block = self.block.lock();
            let before = *block;
            if before == Block::Explicit {
                *block = Block::Failed;
            }
            before
        };
        let mut slot = self.cell.lock().await;
        if let Some(mark) = slot.savepoints.last().map(|(_, mark)| *mark) {
            self.settings.lock().back_to(slot.savepoints.len() - 1);
            self.voice.back_to(slot.savepoints.len() - 1);
            // A block that has failed before has nothing newer than its savepoint.
            let undone = match before {
                Block::Explicit => Box::pin(slot.open().rollback_to(mark)).await,
                _ => Ok(()),
            };
            match undone {
                Ok(()) => return slot.open().end_statement(),
                Err(error) => tracing::warn!(%error, "rollback to a savepoint failed"),
            }
        }
        drop(slot);
        if let Err(error) = self.rollback().await {
            // The engine goes on rolling back in the background. The error to report is the statement's own.
            tracing::warn!(%error, "rollback failed");
        }
    }

    /// A statement has succeeded: commits it, unless it is in a block.
    pub(crate) async fn succeed(&self) -> Result<()> {
        match self.block() {
            // Boxed: inside a block nobody commits here, and each statement's state would have room for it.
            Block::None => Box::pin(self.commit()).await,
            _ => {
                // An idle transaction holds no snapshot it does not need.
                if let Some(txn) = &mut self.cell.lock().await.txn {
                    txn.end_statement();
                }
                Ok(())
            }
        }
    }

    pub(crate) async fn commit(&self) -> Result<()> {
        debug_assert_ne!(self.block(), Block::Failed, "invariant 1: what failed is rolled back");
        let turn = match self.turn().await {
            Ok(turn) => turn,
            Err(error) => {
                self.rollback().await?;
                return Err(error);
            }
        };
        let txn = self.cell.lock().await.take();
        let durable = {
            let mut settings = self.settings.lock();
            let durable = settings.synchronous_commit();
            settings.end(true);
            durable
        };
        let Some(txn) = txn else { return Ok(()) };
        let result = if durable { txn.commit().await } else { txn.commit_async().await };
        self.activity.ended_transaction();
        match turn {
            Some(turn) if result.is_ok() => self.voice.committed(turn),
            _ => self.voice.forget(),
        }
        result
    }

    /// The right to commit what the transaction has said on channels. Deferred constraints come first: who has the turn
    /// waits for nobody's lock.
    async fn turn(&self) -> Result<Option<Turn>> {
        if self.voice.is_silent() {
            return Ok(None);
        }
        if let Some(txn) = &mut self.cell.lock().await.txn {
            Box::pin(txn.set_constraints(None, false)).await?;
        }
        self.voice.begin_commit().await.map(Some)
    }

    pub(crate) async fn rollback(&self) -> Result<()> {
        let txn = self.cell.lock().await.take();
        self.settings.lock().end(false);
        self.voice.forget();
        let Some(txn) = txn else { return Ok(()) };
        let result = Box::pin(txn.rollback()).await;
        self.activity.ended_transaction();
        result
    }
}
