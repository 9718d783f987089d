//! Checks a heap against itself.
use super::chain::Stub;
use super::*;
use crate::error::StorageError;
use std::collections::BTreeSet;

/// What a heap holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapCheck {
    /// Rows, deleted ones included.
    pub rows: u64,
    /// Rows whose payload is a chain.
    pub chained: u64,
    pub fragments: u64,
    /// Fragments that belong to the chains of present rows and of the older versions named by the caller; there should
    /// be no others.
    pub reached: u64,
}

impl Heap {
    /// Checks every page, cell and chain of a quiet heap. `older`: stubs of row versions that undo records keep.
    pub async fn check(&self, st: &Store, older: &[Vec<u8>]) -> Result<HeapCheck> {
        let mut found = HeapCheck::default();
        let mut reached = BTreeSet::new();
        for stub in older {
            reached.extend(self.fragments(st, &Stub::decode(stub)?).await?);
        }
        let mut from = 0;
        loop {
            let pages = st.space(self.space).pages(self.object, from, 256);
            let Some(&last) = pages.last() else { break };
            for page in pages {
                let pin = self.pin_page(st, page, Access::Sequential).await?;
                for stub in self.check_page(&pin, &mut found)? {
                    reached.extend(self.fragments(st, &stub).await?);
                    self.read_chain(st, &stub.encode()).await?;
                }
            }
            from = last + 1;
        }
        found.reached = reached.len() as u64;
        Ok(found)
    }

    fn check_page(&self, pin: &Pin, found: &mut HeapCheck) -> Result<Vec<Stub>> {
        let page = pin.read();
        let damaged = |what: &str| StorageError::Damaged(format!("heap page {} of {}: {what}", pin.id(), self.object));
        if !self.owns(&page) || !slotted::is_sound(&page) {
            return Err(damaged("kind, owner or directory"));
        }
        let mut stubs = Vec::new();
        for slot in 0..slotted::slot_count(&page) {
            let Some(cell) = slotted::cell(&page, slot) else { continue };
            if cell.first() == Some(&FRAGMENT) {
                found.fragments += 1;
                continue;
            }
            let padding = if cell.first().is_some_and(|f| f & PADDED != 0) { cell[cell.len() - 1] as usize } else { 0 };
            if cell.len() < ROW_HEADER + STUB || padding > STUB || cell[0] & !(DELETED | CHAINED | PADDED) != 0 {
                return Err(damaged(&format!("slot {slot} is no row")));
            }
            found.rows += 1;
            if cell[0] & CHAINED != 0 {
                found.chained += 1;
                stubs.push(Stub::decode(payload(cell).expect("it is no fragment"))?);
            }
        }
        Ok(stubs)
    }
}
