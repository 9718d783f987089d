//! SAVEPOINT, ROLLBACK TO SAVEPOINT, RELEASE.
//!
//! 1. A savepoint is a place in the transaction's undo. Going back to it undoes all later changes. Locks that were
//!    taken since stay; rows whose changes were undone are free for others.
//! 2. When a statement fails, everything since the newest savepoint is undone at once, because it cannot be kept and
//!    others might wait for it. The block is then `Failed` until ROLLBACK TO, or until its end.
//! 3. Savepoints belong to the transaction and go with it.
use crate::session::Session;
use crate::statement::outcome::{Outcome, command};
use crate::transaction::Block;
use terrace_engine::{EngineError, Result};

impl Session {
    /// 25P01 outside of a block.
    fn require_block(&self, what: &str) -> Result<()> {
        match self.shared.block() {
            Block::Explicit | Block::Failed => Ok(()),
            Block::None | Block::Pipeline | Block::Message => {
                Err(EngineError::new("25P01", format!("{what} can only be used in transaction blocks")))
            }
        }
    }

    pub(crate) async fn savepoint(&mut self, name: &str) -> Result<Outcome> {
        self.require_block("SAVEPOINT")?;
        let mut slot = self.shared.cell.lock().await;
        let mark = slot.open().savepoint();
        slot.savepoints.push((name.to_owned(), mark));
        let settings = self.shared.settings.lock().savepoint();
        self.shared.voice.savepoint();
        assert_eq!(settings, slot.savepoints.len(), "invariant 3: a savepoint is one of the settings, too");
        Ok(command("SAVEPOINT"))
    }

    pub(crate) async fn release(&mut self, name: &str) -> Result<Outcome> {
        self.require_block("RELEASE SAVEPOINT")?;
        let mut slot = self.shared.cell.lock().await;
        let at = slot.find(name)?;
        slot.savepoints.truncate(at);
        self.shared.settings.lock().release(at);
        self.shared.voice.release(at);
        drop(slot);
        self.keep_cursors_of(at);
        Ok(command("RELEASE"))
    }

    pub(crate) async fn rollback_to(&mut self, name: &str) -> Result<Outcome> {
        self.require_block("ROLLBACK TO SAVEPOINT")?;
        let mut slot = self.shared.cell.lock().await;
        let at = slot.find(name)?;
        slot.savepoints.truncate(at + 1);
        let mark = slot.savepoints[at].1;
        slot.open().rollback_to(mark).await?;
        self.shared.settings.lock().back_to(at);
        self.shared.voice.back_to(at);
        assert_eq!(slot.savepoints.len(), at + 1, "the savepoint itself stays");
        *self.shared.block.lock() = Block::Explicit;
        drop(slot);
        self.close_cursors_since(at);
        Ok(command("ROLLBACK"))
    }
}

impl crate::transaction::TxnSlot {
    /// The newest savepoint of that name.
    fn find(&self, name: &str) -> Result<usize> {
        let found = self.savepoints.iter().rposition(|(n, _)| n == name);
        found.ok_or_else(|| EngineError::new("3B001", format!("savepoint \"{name}\" does not exist")))
    }
}
