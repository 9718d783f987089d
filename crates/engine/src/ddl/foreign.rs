//! Foreign keys are added, checked, renamed and dropped, under the lock of definitions.
//!
//! 1. A foreign key is added while the referring table is this transaction's alone and nobody else writes the
//!    referenced one. So the rows that it finds are all that there are; and whoever writes either table later looks up
//!    its definition after this transaction's end.
//! 2. TRUNCATE gives a table and its indexes other object ids. Its foreign keys, and those that refer to it, keep
//!    their own.
use super::system_table;
use crate::catalog::foreign::{FOREIGN_KEYS, ForeignKey, row};
use crate::catalog::{Catalog, Table, system, truncate_name};
use crate::error::{EngineError, Result};
use crate::locks::LockMode;
use crate::txn::Txn;
use std::sync::Arc;
use terrace_storage::ObjectId;

#[cfg(test)]
mod tests;

/// A table's foreign key, by its object id. 42704 where it has gone.
fn found(table: &Table, oid: ObjectId) -> Result<Arc<ForeignKey>> {
    let key = table.foreign_keys.iter().find(|key| key.oid == oid).cloned();
    let gone = || format!("constraint {} of relation \"{}\" does not exist", oid.0, table.name);
    key.ok_or_else(|| EngineError::new("42704", gone()))
}

impl Txn {
    /// Adds a foreign key to `table`. `key` has everything but its object id and its table's. 23503 where it is
    /// validated and a row does not satisfy it; 42P01 where a table has gone.
    pub async fn add_foreign_key(&mut self, table: &Table, mut key: ForeignKey) -> Result<Arc<Table>> {
        let (_, table) = self.alone(table).await?;
        key.name = truncate_name(&key.name).into();
        (key.oid, key.table) = (self.next_object(), table.oid);
        assert!(table.foreign_keys.iter().all(|other| other.name != key.name), "the caller names them apart");
        if key.validated {
            self.refuse_violations(&table, &key).await?;
        } else {
            self.referenced_alone(&key).await?;
        }
        self.insert(system_table(FOREIGN_KEYS), &row(&key)).await?;
        let note = system::foreign_keys_row();
        if self.change_definitions(system::CHECKS, |r| r[..2] == note[..2], |_| Some(note.clone())).await? == 0 {
            self.insert(system_table(system::CHECKS), &note).await?;
        }
        let mut keys = table.foreign_keys.clone();
        keys.push(Arc::new(key));
        self.publish_keys(&table, keys)
    }

    /// Replaces a foreign key by itself with another name, or with `validated` set: 23503 where a row does not satisfy
    /// it.
    pub async fn alter_foreign_key(&mut self, table: &Table, key: ForeignKey) -> Result<Arc<Table>> {
        let (_, table) = self.alone(table).await?;
        let before = found(&table, key.oid)?;
        if key.validated && !before.validated {
            self.refuse_violations(&table, &key).await?;
        }
        self.write_key(&key).await?;
        let mut keys = table.foreign_keys.clone();
        keys.retain(|other| other.oid != key.oid);
        keys.push(Arc::new(key));
        self.publish_keys(&table, keys)
    }

    /// 42704 where it has gone. 55006 where it has not been judged of a key that went.
    pub async fn drop_foreign_key(&mut self, table: &Table, key: ObjectId) -> Result<Arc<Table>> {
        let (catalog, table) = self.alone(table).await?;
        if let Some(referenced) = catalog.table_by_oid(found(&table, key)?.referenced) {
            self.refuse_noted(referenced, "ALTER TABLE")?;
        }
        self.delete_definitions(FOREIGN_KEYS, 0, key).await?;
        let keys = table.foreign_keys.iter().filter(|other| other.oid != key).cloned().collect();
        self.publish_keys(&table, keys)
    }

    fn publish_keys(&mut self, table: &Table, mut keys: Vec<Arc<ForeignKey>>) -> Result<Arc<Table>> {
        keys.sort_by_key(|key| key.oid);
        let catalog = self.catalog();
        Ok(self.publish(&catalog, Table { foreign_keys: keys, ..table.clone() }))
    }

    async fn write_key(&mut self, key: &ForeignKey) -> Result<()> {
        let row = row(key);
        let count = self.change_definitions(FOREIGN_KEYS, |r| r[0] == row[0], |_| Some(row.clone())).await?;
        assert_eq!(count, 1, "each foreign key has one definition");
        Ok(())
    }

    /// The referenced table, while nobody else writes it (invariant 1).
    async fn referenced_alone(&mut self, key: &ForeignKey) -> Result<Arc<Table>> {
        self.lock(key.referenced, LockMode::ShareRowExclusive).await?;
        let table = self.catalog().table_by_oid(key.referenced).cloned();
        table.ok_or_else(|| EngineError::undefined_table(&key.referenced.0.to_string()))
    }

    async fn refuse_violations(&mut self, table: &Table, key: &ForeignKey) -> Result<()> {
        let referenced = self.referenced_alone(key).await?;
        match self.first_violation(table, key, &referenced).await? {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Gives the foreign keys that refer to a table its new object ids (invariant 2): `new` has its own already.
    /// Answers the catalogue in which `new` is in the place of `old`.
    pub(super) async fn refer_to_new(&mut self, catalog: &Catalog, old: &Table, new: &Table) -> Result<Catalog> {
        let mut catalog = catalog.without(old.oid);
        for key in old.referenced_by.iter().filter(|key| key.table != old.oid) {
            let moved = moved(key, old, new);
            self.write_key(&moved).await?;
            let mut table = Table::clone(catalog.table_by_oid(key.table).expect("a foreign key has a table"));
            for other in table.foreign_keys.iter_mut().filter(|other| other.oid == key.oid) {
                *other = Arc::new(moved.clone());
            }
            catalog = catalog.with(Arc::new(table));
        }
        Ok(catalog)
    }
}

/// The same foreign key after TRUNCATE has made `new` of `old`, on whichever side that is.
pub(super) fn moved(key: &ForeignKey, old: &Table, new: &Table) -> ForeignKey {
    let mut moved = key.clone();
    if key.table == old.oid {
        moved.table = new.oid;
    }
    if key.referenced == old.oid {
        moved.referenced = new.oid;
        let name = &old.index(key.index).expect("catalog::foreign, invariant 1").name;
        let index = new.indexes.iter().find(|index| index.name == *name);
        moved.index = index.expect("TRUNCATE makes every index again").oid;
    }
    moved
}
