//! Look-ups of one row by key that are answered at once: without a transaction of their own, without waiting, from the stored row to
//! whoever sends it.
//!
//! 1. The answer is [`Session::execute`]'s. Whatever may make it another (a failed block, a snapshot that stands still, a definition that
//!    changes, a wrong value, a page that must be read) makes it `execute`'s to give; nothing has been done then.
//! 2. The statement is in the books as any other. It is not shown as running: it ends before anybody can look.
use crate::fast::Bound;
use crate::observe::ran;
use crate::session::{Block, Prepared, Session};
use std::sync::Arc;
use terrace_engine::{Datum, DatumRef, Isolation, Peek, RowView};
use terrace_storage::{Reads, counted};

/// The columns that a look-up shows, of the row it found.
#[derive(Clone, Copy)]
pub struct FoundRow<'a> {
    row: RowView<'a>,
    columns: &'a [usize],
}

impl<'a> FoundRow<'a> {
    pub fn values(self) -> impl ExactSizeIterator<Item = DatumRef<'a>> {
        self.columns.iter().map(move |column| self.row.get(*column))
    }
}

impl Session {
    /// Runs a look-up of one row by its key, where that can be done at once; `show` sees the row, if there is one, under a latch: it does
    /// not wait. Answers the number of rows; `None`: the statement is to be executed.
    pub fn look_up(
        &mut self,
        statement: &Arc<Prepared>,
        parameters: &[Datum],
        show: impl FnOnce(FoundRow<'_>),
    ) -> Option<u64> {
        let fast = statement.fast.lock().clone()?;
        if parameters.len() != statement.parameters.len() {
            return None;
        }
        let block = self.shared.block();
        let began = self.database.observed.env.now();
        let (index, key, columns) = fast.look_up(Bound { parameters, now: 0 })?;
        let key = key.ok()?;
        let mut slot = self.shared.cell.try_lock().ok()?;
        let mut reads = Reads::default();
        let found = counted(&mut reads, || {
            if key.contains(&Datum::Null) {
                // Nothing equals NULL.
                return Some(Peek::Missing);
            }
            match (&mut slot.txn, block) {
                (None, Block::None | Block::Pipeline) => {
                    let still = block == Block::Pipeline
                        && self.shared.settings.lock().default_isolation() != Isolation::ReadCommitted;
                    let show = |row: RowView<'_>| show(FoundRow { row, columns });
                    let engine = &self.database.engine;
                    (!still).then(|| engine.peek(fast.version, fast.table(), index, &key, show).ok())?
                }
                (Some(txn), Block::Pipeline | Block::Explicit) => {
                    let usable = txn.try_lock_table(fast.table(), false) && txn.catalog().version() == fast.version;
                    let show = |_, _, row: RowView<'_>| show(FoundRow { row, columns });
                    usable.then(|| txn.peek(fast.table(), index, &key, show).ok())?
                }
                _ => None,
            }
        })?;
        let rows = match found {
            Peek::Found(()) => 1,
            Peek::Missing => 0,
            Peek::Unsure => return None,
        };
        slot.queried |= slot.txn.is_some();
        drop(slot);
        ran(&self.database.observed, &self.shared, statement, began, rows, reads);
        Some(rows)
    }
}
