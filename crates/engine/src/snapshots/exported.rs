//! Snapshots that a transaction shows to others by name, until it ends: `pg_export_snapshot`.
//!
//! 1. A name leads to a snapshot only while the transaction that has exported it is open. Who has taken it by then
//!    keeps it: it is registered as long as anybody has it.
use super::Snapshot;
use crate::error::{EngineError, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Those of a database.
#[derive(Default)]
pub(crate) struct Exports(Mutex<BTreeMap<String, Arc<Snapshot>>>);

/// One, which is known by its name while this lives.
pub(crate) struct Exported {
    exports: Arc<Exports>,
    name: String,
}

impl Exports {
    /// `number`: how many the transaction has exported before.
    pub(crate) fn export(self: &Arc<Self>, snapshot: Arc<Snapshot>, number: usize) -> Exported {
        let (low, registered) = snapshot.key;
        let name = format!("{:08X}-{registered:08X}-{}", low.0, number + 1);
        self.0.lock().insert(name.clone(), snapshot);
        Exported { exports: self.clone(), name }
    }

    /// 22023
    pub(crate) fn find(&self, name: &str) -> Result<Arc<Snapshot>> {
        let found = self.0.lock().get(name).cloned();
        found.ok_or_else(|| EngineError::new("22023", format!("invalid snapshot identifier: \"{name}\"")))
    }
}

impl Exported {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        // The snapshot goes after the lock: its drop takes another.
        let gone = self.exports.0.lock().remove(&self.name);
        drop(gone);
    }
}
