//! RENAME: of tables, views, sequences, indexes, types, domains and schemas, and of columns and constraints.
//!
//! 1. A default names its sequence by text, so the defaults that name one which is renamed are written anew.
//! 2. What a view reads keeps its name (`terrace_engine`, catalog::views): renaming it is refused.
use crate::error::{missing_relation, unsupported};
use crate::parse::qualified::moved_sequence;
use crate::parse::sequence_calls::sequence_of;
use crate::parse::{relation, stored};
use crate::statement::ddl::{check_name, find_index};
use crate::statement::foreign_keys::{constraint_exists, two_constraints};
use crate::statement::outcome::notice;
use crate::statement::run::Run;
use crate::values::is_sequence;
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::{ColumnDef, EngineError, ForeignKey, RelationName, Result, Space, Table};
use terrace_grammar::statement::{ObjectKind, Rename, RenamedPart};

type Notices = Vec<EngineError>;

impl Run<'_> {
    /// RENAME of a table, or of a part of one.
    pub(crate) async fn rename(&self, rename: &Rename) -> Result<Notices> {
        let Rename { at: _, kind, if_exists, name, part, to } = rename;
        match (kind, part) {
            (ObjectKind::Table, RenamedPart::Whole) => {
                if let Some(done) = self.rename_other(rename).await? {
                    return Ok(done);
                }
            }
            (ObjectKind::Index | ObjectKind::Sequence | ObjectKind::View, RenamedPart::Whole) => {
                return match self.rename_other(rename).await? {
                    Some(done) => Ok(done),
                    None => self.refuse_rename(rename).await,
                };
            }
            _ => {}
        }
        match kind {
            ObjectKind::Table => {}
            ObjectKind::Type if self.is_domain(name).await => return self.rename_domain(name, None, &to.name).await,
            ObjectKind::Type => return self.rename_type(name, &to.name).await,
            ObjectKind::Domain => {
                let part = match part {
                    RenamedPart::Constraint(part) => Some(part),
                    _ => None,
                };
                return self.rename_domain(name, part, &to.name).await;
            }
            ObjectKind::Schema => return self.rename_schema(&name.last().name, &to.name).await,
            ObjectKind::View | ObjectKind::Role | ObjectKind::Index | ObjectKind::Sequence => {
                return Err(unsupported("RENAME of this"));
            }
        }
        let mut notices = vec![];
        let Some(table) = self.altered(name, *if_exists, &mut notices).await? else { return Ok(notices) };
        let to = &to.name;
        match part {
            RenamedPart::Whole => {
                check_name(to)?;
                let catalog = self.begin_statement().await;
                self.info.actor(&catalog).permit_beside(&catalog, &table)?;
                let rename = async { self.cell.lock().await.open().rename_table(&table, to).await };
                self.cancel.run(rename).await?;
            }
            RenamedPart::Column(old) => {
                let at = self.column(&table, old)?;
                if table.columns[at].name == *to {
                    let message = format!("column \"{to}\" of relation \"{}\" already exists", table.name);
                    return Err(EngineError::new("42701", message));
                }
                let checks = stored::renamed(&table.checks, &table.columns[at].name, to)?;
                let column = ColumnDef { name: to.clone(), ..table.columns[at].clone() };
                let renamed = self.change_column(&table, at, column).await?;
                let table = self.rename_computed(renamed, &table.columns[at].name, to).await?;
                if !checks.is_empty() {
                    self.set_checks(&table, checks).await?;
                }
            }
            RenamedPart::Constraint(old) => drop(self.rename_constraint(&table, &old.name, to).await?),
        }
        Ok(notices)
    }

    /// Renames what is no table: an index, a sequence or a view. `None`: there is none of the kind.
    async fn rename_other(&self, rename: &Rename) -> Result<Option<Notices>> {
        let (name, to) = (relation(&rename.name)?, &rename.to.name);
        let catalog = self.begin_statement().await;
        let actor = self.info.actor(&catalog);
        let is = |kind: ObjectKind| rename.kind == kind || rename.kind == ObjectKind::Table;
        if let Some((table, index)) = find_index(&catalog, &name).filter(|_| is(ObjectKind::Index)) {
            check_name(to)?;
            actor.require_owner(&catalog, table.oid, ("index", &index.name))?;
            actor.permit_beside(&catalog, table)?;
            if index.is_constraint() && constraint_exists(table, to) && !catalog.name_taken(table.space, to) {
                return Err(two_constraints(to, &table.name));
            }
            let (table, oid) = (self.alone(&table.full_name()).await?, index.oid);
            let run = async { self.cell.lock().await.open().rename_index(&table, oid, to).await };
            return self.cancel.run(run).await.map(|_| Some(vec![]));
        }
        if let Some(view) = catalog.view(&name).filter(|_| is(ObjectKind::View)) {
            check_name(to)?;
            actor.require_owner(&catalog, view.oid, ("view", &view.name))?;
            if !view.temporary {
                actor.permit_schema(&catalog, view.space, Rights::CREATE)?;
            }
            let run = async { self.cell.lock().await.open().rename_view(view.oid, to).await };
            return self.cancel.run(run).await.map(|()| Some(vec![]));
        }
        match catalog.table(&name).filter(|table| is(ObjectKind::Sequence) && is_sequence(table)) {
            Some(sequence) => {
                check_name(to)?;
                actor.require_owner_of(&catalog, sequence)?;
                actor.permit_beside(&catalog, sequence)?;
                self.rename_sequence(&name, to).await.map(|()| Some(vec![]))
            }
            None => Ok(None),
        }
    }

    /// Where [`Run::rename_other`] has found nothing.
    async fn refuse_rename(&self, rename: &Rename) -> Result<Notices> {
        let (name, catalog) = (relation(&rename.name)?, self.begin_statement().await);
        if !catalog.relation_exists(&name) && catalog.index(&name).is_none() {
            let missing = missing_relation(&catalog, &name);
            return match rename.if_exists {
                true => Ok(vec![notice("00000", format!("{}, skipping", missing.message))]),
                false => Err(missing),
            };
        }
        let kind = match rename.kind {
            ObjectKind::Index => "an index",
            ObjectKind::View => "a view",
            _ => "a sequence",
        };
        Err(EngineError::new("42809", format!("\"{}\" is not {kind}", name.name)))
    }

    async fn rename_sequence(&self, name: &RelationName, to: &str) -> Result<()> {
        self.require_owner_named(name).await?;
        let sequence = self.alone_if(name, |_| Ok(())).await?;
        if sequence.temporary.is_some() {
            return Err(unsupported("RENAME of a temporary sequence"));
        }
        let old = sequence.full_name();
        let run = async { self.cell.lock().await.open().rename_table(&sequence, to).await };
        let new = self.cancel.run(run).await?;
        self.point_defaults(&old, (new.space, &new.name)).await
    }

    /// The defaults that name a sequence name it as it is called now (invariant 1).
    pub(super) async fn point_defaults(&self, old: &RelationName, now: (Space, &str)) -> Result<()> {
        let tables: Vec<Arc<Table>> = self.begin_statement().await.tables().cloned().collect();
        for table in tables {
            for (at, column) in table.columns.iter().enumerate() {
                let named = sequence_of(column).is_some_and(|name| name == *old);
                let Some(sql) = column.default_sql.as_deref().filter(|_| named) else { continue };
                let default_sql = Some(moved_sequence(sql, now));
                let table = self.alone(&table.full_name()).await?;
                self.change_column(&table, at, ColumnDef { default_sql, ..table.columns[at].clone() }).await?;
            }
        }
        Ok(())
    }

    async fn rename_constraint(&self, table: &Arc<Table>, old: &str, new: &str) -> Result<Arc<Table>> {
        check_name(new)?;
        let free = || match constraint_exists(table, new) {
            true => Err(two_constraints(new, &table.name)),
            false => Ok(()),
        };
        if let Some(key) = table.foreign_keys.iter().find(|key| key.name == old) {
            free()?;
            let renamed = ForeignKey { name: new.into(), ..ForeignKey::clone(key) };
            return self.alter_foreign_key(table, renamed).await;
        }
        if let Some(at) = table.checks.iter().position(|c| c.name == old) {
            free()?;
            let mut checks = table.checks.clone();
            checks[at].name = new.to_owned();
            return self.set_checks(table, checks).await;
        }
        let index = table.indexes.iter().find(|i| i.is_constraint() && i.name == old);
        let missing = || format!("constraint \"{old}\" for table \"{}\" does not exist", table.name);
        let oid = index.ok_or_else(|| EngineError::new("42704", missing()))?.oid;
        if !self.begin_statement().await.name_taken(table.space, new) {
            free()?;
        }
        let rename = async { self.cell.lock().await.open().rename_index(table, oid, new).await };
        self.cancel.run(rename).await
    }
}
