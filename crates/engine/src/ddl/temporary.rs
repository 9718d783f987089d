//! Temporary tables: what becomes of them when a transaction commits, when their session ends, and when the database
//! is opened again.
//!
//! 1. All of it is DDL in a transaction, as DROP TABLE and TRUNCATE are: a crash leaves nothing half done.
//! 2. What a session leaves, and could not drop, is dropped at the next opening: no other session sees it until then.
use crate::catalog::Table;
use crate::catalog::names::Space;
use crate::catalog::path::Viewer;
use crate::catalog::temporary::OnCommit;
use crate::database::{Core, Database};
use crate::error::{EngineError, Result};
use crate::locks::LockMode;
use crate::txn::{Isolation, Txn};
use std::collections::BTreeSet;
use std::sync::Arc;
use terrace_storage::{DATA, ObjectId};

#[cfg(test)]
mod tests;

impl Txn {
    /// The space of the session, which gets one now if it has none.
    pub fn own_space(&self) -> Result<Space> {
        let own = self.space().ok_or_else(|| EngineError::internal("a temporary table belongs to a session"))?;
        Ok(*own.own.get_or_init(|| {
            let catalog = self.catalog();
            // An id that a crash made free again may still be the space of tables that are not dropped yet.
            let spaces = catalog.spaces();
            let unused = |space: &Space| !spaces.contains(space);
            let ids = std::iter::repeat_with(|| Space(self.next_object()));
            ids.into_iter().find(unused).expect("ids do not end")
        }))
    }

    /// Drops the temporary tables that `which` picks, and the temporary views of `spaces` and those that read such a
    /// table. (Foreign keys of others to them go, too.)
    pub(crate) async fn drop_temporary(
        &mut self,
        which: impl Fn(&Table) -> bool + Send,
        spaces: &BTreeSet<Space>,
    ) -> Result<()> {
        self.lock_ddl().await?;
        let doomed: Vec<Arc<Table>> = self.catalog().temporary_tables().filter(|t| which(t)).cloned().collect();
        for table in &doomed {
            self.lock(table.oid, LockMode::AccessExclusive).await?;
        }
        self.drop_temporary_views(spaces, &doomed).await?;
        let is_doomed = |oid: ObjectId| doomed.iter().any(|table| table.oid == oid);
        for key in doomed.iter().flat_map(|table| &table.referenced_by).filter(|key| !is_doomed(key.table)) {
            let catalog = self.catalog();
            let table = catalog.table_by_oid(key.table).expect("a foreign key has a table");
            self.drop_foreign_key(table, key.oid).await?;
        }
        for table in &doomed {
            self.drop_everything(table).await?;
        }
        let catalog = self.catalog();
        let kept = catalog.tables().filter(|table| !is_doomed(table.oid)).cloned().collect();
        let catalog = doomed.iter().fold(catalog.with_tables(kept), |all, table| all.with_access_to(table.oid, None));
        self.set_catalog(Arc::new(catalog));
        Ok(())
    }

    /// DISCARD TEMP: drops the temporary tables of the session.
    pub async fn discard_temporary(&mut self) -> Result<()> {
        match self.catalog().own_space() {
            Some(space) => self.drop_temporary(|table| table.space == space, &BTreeSet::from([space])).await,
            None => Ok(()),
        }
    }

    /// The session's tables for which something is to be done when this transaction commits.
    fn with_on_commit(&self) -> Vec<Arc<Table>> {
        let catalog = self.catalog();
        let Some(space) = catalog.own_space() else { return vec![] };
        let is_own = |t: &&Arc<Table>| t.space == space && t.temporary != Some(OnCommit::PreserveRows);
        catalog.temporary_tables().filter(is_own).cloned().collect()
    }

    /// Whether ON COMMIT has something to do.
    pub(crate) fn has_on_commit(&self) -> bool {
        self.space().is_some_and(|viewer| viewer.own.get().is_some()) && !self.with_on_commit().is_empty()
    }

    /// ON COMMIT DELETE ROWS and ON COMMIT DROP. 0A000 where another table refers to one that loses its rows.
    pub(crate) async fn on_commit(&mut self) -> Result<()> {
        let is = |table: &Table, what: OnCommit| table.temporary == Some(what);
        let with = self.with_on_commit();
        for table in with.iter().filter(|table| is(table, OnCommit::DeleteRows)) {
            let catalog = self.catalog();
            for key in &table.referenced_by {
                let other = catalog.table_by_oid(key.table).expect("a foreign key has a table");
                if is(other, OnCommit::PreserveRows) {
                    let error = EngineError::unsupported("unsupported ON COMMIT and foreign key combination");
                    return Err(error.with_detail(format!(
                        "Table \"{}\" references \"{}\", but they do not have the same ON COMMIT setting.",
                        other.name, table.name
                    )));
                }
            }
            // Where it has no page it has no rows.
            if !self.store().space(DATA).pages(table.oid, 0, 1).is_empty() {
                self.truncate_table(table).await?;
            }
        }
        match with.iter().any(|table| is(table, OnCommit::Drop)) {
            true => {
                let doomed = |table: &Table| with.iter().any(|t| t.oid == table.oid && is(t, OnCommit::Drop));
                self.drop_temporary(doomed, &BTreeSet::new()).await
            }
            false => Ok(()),
        }
    }
}

impl Core {
    async fn drop_all(self: &Arc<Self>, spaces: &BTreeSet<Space>) {
        let drop = async {
            let mut txn = Txn::new(self.clone(), Isolation::ReadCommitted);
            txn.drop_temporary(|table| spaces.contains(&table.space), spaces).await?;
            txn.commit().await
        };
        if let Err(error) = drop.await {
            tracing::warn!(%error, "temporary tables are left, to be dropped when the database is next opened");
        }
    }

    /// At opening: those of the run before. `waits`: what that left unfinished may have them locked, so it is done in
    /// the background.
    pub(crate) async fn drop_left_temporary(self: &Arc<Self>, waits: bool) {
        let spaces = self.catalog().spaces();
        if spaces.is_empty() {
            return;
        }
        match waits {
            false => self.drop_all(&spaces).await,
            true => {
                let core = self.clone();
                self.store.spawn("temporary tables", async move { core.drop_all(&spaces).await });
            }
        }
    }
}

impl Database {
    /// A session has ended: its temporary tables are dropped, in the background.
    pub fn end_space(&self, viewer: &Viewer) {
        let Some(space) = viewer.own.get().copied() else { return };
        let core = self.0.clone();
        self.spawn("temporary tables", async move {
            core.drop_all(&BTreeSet::from([space])).await;
        });
    }
}
