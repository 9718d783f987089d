//! Comments are made and moved, inside a transaction and under the lock of definitions.
use super::system_table;
use crate::catalog::comments::{COMMENTS, Commented, Comments, row};
use crate::catalog::{Catalog, Table, system};
use crate::error::Result;
use crate::txn::Txn;
use std::sync::Arc;

#[cfg(test)]
mod tests;

impl Txn {
    /// Says something of an object that is there, or (`None`) nothing more.
    pub async fn comment(&mut self, of: Commented, text: Option<&str>) -> Result<()> {
        self.lock_ddl().await?;
        let catalog = self.catalog();
        let mut comments = Comments::clone(&catalog.comments);
        let new = text.map(|text| row(of, text));
        let key = row(of, "");
        let found = self.change_definitions(COMMENTS, |row| row[..2] == key[..2], |_| new.clone()).await?;
        match (text, &new) {
            (Some(text), Some(new)) => {
                if found == 0 {
                    self.insert(system_table(COMMENTS), new).await?;
                    self.note_comments().await?;
                }
                comments.insert(of, text.to_owned());
            }
            _ => drop(comments.remove(&of)),
        }
        self.set_catalog(Arc::new(catalog.with_comments(comments)));
        Ok(())
    }

    /// Keeps programs away that know no comments.
    async fn note_comments(&mut self) -> Result<()> {
        let note = system::comments_row();
        if self.change_definitions(system::CHECKS, |r| r[..2] == note[..2], |_| Some(note.clone())).await? == 0 {
            self.insert(system_table(system::CHECKS), &note).await?;
        }
        Ok(())
    }

    /// Those of a table and its indexes. (Those of what else goes stay, and mean nothing.)
    pub(super) async fn delete_comments(&mut self, table: &Table) -> Result<()> {
        let catalog = self.catalog();
        for oid in table.indexes.iter().map(|index| index.oid).chain([table.oid]) {
            if catalog.comments.range((oid, 0)..=(oid, u32::MAX)).next().is_some() {
                self.delete_definitions(COMMENTS, 0, oid).await?;
            }
        }
        Ok(())
    }

    /// The comments of a table that is emptied, and of its indexes (catalog::comments, invariant 2).
    pub(super) async fn move_comments(&mut self, catalog: Catalog, old: &Table, new: &Table) -> Result<Catalog> {
        let indexes = old.indexes.iter().map(|index| index.oid).zip(new.indexes.iter().map(|index| index.oid));
        let mut comments = Comments::clone(&catalog.comments);
        for (from, to) in indexes.chain([(old.oid, new.oid)]) {
            let moved: Vec<(Commented, String)> =
                comments.extract_if((from, 0)..=(from, u32::MAX), |_, _| true).collect();
            if moved.is_empty() {
                continue;
            }
            for ((_, position), text) in moved {
                self.insert(system_table(COMMENTS), &row((to, position), &text)).await?;
                comments.insert((to, position), text);
            }
        }
        Ok(catalog.with_comments(comments))
    }
}
