//! Verifying rollback segments.
use super::format::Layout;
use super::*;
use rustc_hash::FxHashSet;

impl UndoSpace {
    /// Verifies the given finished transactions (what purge has not consumed): begin marks are theirs, their records
    /// lead back from the last, and every extent has one owner. Returns the problems found.
    pub async fn check(&self, st: &Store, histories: &[History]) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        self.check_extents(Layout { page_size: st.pool().page_size() }, &mut problems);
        for history in histories.iter().filter(|h| !h.first.is_none()) {
            match self.read_begin(st, history.first).await {
                Ok(begin) if begin.txn == history.txn => {}
                Ok(begin) => problems.push(format!("undo: the begin mark of {:?} is of {:?}", history.txn, begin.txn)),
                Err(e) => problems.push(format!("undo of {:?}: {e}", history.txn)),
            }
            let mut ptr = history.last;
            while !ptr.is_none() {
                match self.read(st, ptr).await {
                    Ok(record) if record.txn == history.txn && record.prev != ptr => ptr = record.prev,
                    Ok(record) => {
                        problems.push(format!("undo: {ptr:?} of {:?} belongs to {:?}", history.txn, record.txn));
                        break;
                    }
                    Err(e) => {
                        problems.push(format!("undo of {:?}: {e}", history.txn));
                        break;
                    }
                }
            }
        }
        Ok(problems)
    }

    fn check_extents(&self, layout: Layout, problems: &mut Vec<String>) {
        let inner = self.inner.lock();
        let mut seen = FxHashSet::default();
        for (no, slot) in inner.slots.iter().enumerate() {
            for extent in &slot.extents {
                if !seen.insert(*extent) || inner.owners[*extent as usize] != no as u32 + 1 {
                    problems.push(format!("undo: extent {extent} is not segment {no}'s alone"));
                }
            }
            let last = slot.extents.back().copied().unwrap_or(0);
            if slot.tail_page / layout.pages_per_extent() != last {
                problems
                    .push(format!("undo: segment {no} has its tail on page {} outside extent {last}", slot.tail_page));
            }
        }
        for extent in &inner.free_extents {
            if seen.contains(extent) {
                problems.push(format!("undo: extent {extent} is free and in use"));
            }
        }
    }
}
