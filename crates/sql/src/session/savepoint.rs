//! SAVEPOINT, ROLLBACK TO SAVEPOINT, RELEASE.
//!
//! 1. A savepoint is a place in the transaction's undo: going back undoes what came after. Locks taken since stay, rows
//!    given back are free for others.
//! 2. A statement that fails undoes everything since the newest savepoint at once, so that others need not wait for
//!    what cannot be kept; the block then is `Failed` until ROLLBACK TO, or its end.
//! 3. Savepoints belong to the transaction and go with it.
use crate::parse::fold;
use crate::session::Session;
use crate::statement::outcome::Outcome;
use crate::transaction::Block;
use datafusion::sql::sqlparser::ast::{Ident, Statement};
use terrace_engine::{EngineError, Result};

impl Session {
    /// `None` where the statement is none of these.
    pub(crate) async fn savepoint(&mut self, ast: &Statement) -> Result<Option<Outcome>> {
        let (verb, tag, name) = match ast {
            Statement::Savepoint { name } => ("SAVEPOINT", "SAVEPOINT", name),
            Statement::ReleaseSavepoint { name } => ("RELEASE SAVEPOINT", "RELEASE", name),
            Statement::Rollback { chain: false, savepoint: Some(name) } => ("ROLLBACK TO SAVEPOINT", "ROLLBACK", name),
            _ => return Ok(None),
        };
        if !matches!(self.shared.block(), Block::Explicit | Block::Failed) {
            let message = format!("{verb} can only be used in transaction blocks");
            return Err(EngineError::new("25P01", message));
        }
        match tag {
            "SAVEPOINT" => {
                let mut slot = self.shared.cell.lock().await;
                let mark = slot.open().savepoint();
                slot.savepoints.push((fold(name), mark));
                self.shared.settings.lock().savepoint();
            }
            "RELEASE" => {
                let mut slot = self.shared.cell.lock().await;
                let at = slot.find(name)?;
                slot.savepoints.truncate(at);
                self.shared.settings.lock().release(at);
                drop(slot);
                self.keep_cursors_of(at);
            }
            _ => {
                let mut slot = self.shared.cell.lock().await;
                let at = slot.find(name)?;
                slot.savepoints.truncate(at + 1);
                let mark = slot.savepoints[at].1;
                slot.open().rollback_to(mark).await?;
                self.shared.settings.lock().back_to(at);
                *self.shared.block.lock() = Block::Explicit;
                drop(slot);
                self.close_cursors_since(at);
            }
        }
        Ok(Some(Outcome::Command { tag: tag.into(), notices: vec![] }))
    }
}

impl crate::transaction::TxnSlot {
    /// The newest savepoint of that name.
    fn find(&self, name: &Ident) -> Result<usize> {
        let folded = fold(name);
        let found = self.savepoints.iter().rposition(|(n, _)| *n == folded);
        found.ok_or_else(|| EngineError::new("3B001", format!("savepoint \"{folded}\" does not exist")))
    }
}
