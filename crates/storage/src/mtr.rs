//! Mini-transactions: the only way to change pages (R6). See ARCHITECTURE sections 2 to 4.
use crate::log::Log;
use crate::page::op::PageOp;
use crate::pool::{Pin, Pool};
use crate::types::*;
use std::marker::PhantomData;
use std::sync::Arc;

pub use crate::log::LogPermit;

/// An event in the log that changes no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEvent {
    Commit { txn: TxnId, unix_micros: i64 },
}

/// A page latched by a mini-transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latched(usize);

/// Exclusive latches, the ops applied under them, and their records. `!Send`. Ends with `commit`; dropping one that has applied
/// an op is a bug and aborts (the pages would differ from the log); dropping a clean one just releases the latches.
pub struct Mtr {
    _p: PhantomData<*const ()>,
}

impl Mtr {
    /// An empty mini-transaction with the room it may log (`Store::mtr`).
    pub(crate) fn new(_pool: &Arc<Pool>, _log: &Log, _permit: LogPermit) -> Mtr {
        todo!()
    }
    /// Latches the page exclusively until commit. Latch order: R3. Latching the same page twice returns the same handle.
    pub fn latch(&mut self, _pin: &Pin) -> Latched {
        todo!()
    }
    pub fn page(&self, _at: Latched) -> &[u8] {
        todo!()
    }
    pub fn apply(&mut self, _at: Latched, _op: PageOp<'_>) {
        todo!()
    }
    pub fn event(&mut self, _event: LogEvent) {
        todo!()
    }
    /// Releases the latch of a page that was not changed.
    pub fn release(&mut self, _at: Latched) {
        todo!()
    }
    /// Home.dirtied -> append to log -> stamp LSN -> recLSN/dirty -> release latches. Returns the batch's end
    /// (`Lsn(0)` where nothing was changed).
    pub fn commit(self) -> Lsn {
        todo!()
    }
}
