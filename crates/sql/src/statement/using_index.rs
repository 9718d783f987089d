//! `ALTER TABLE ... ADD CONSTRAINT ... UNIQUE USING INDEX`, and PRIMARY KEY so: a unique index becomes a constraint.
use crate::error::unsupported;
use crate::statement::ddl::check_name;
use crate::statement::foreign_keys::{constraint_exists, two_constraints};
use crate::statement::outcome::notice;
use crate::statement::run::Run;
use std::sync::Arc;
use terrace_engine::catalog::extras::KeyOption;
use terrace_engine::ddl::NewConstraint;
use terrace_engine::{Catalog, EngineError, Index, RelationName, Result, Table};
use terrace_grammar::statement::{Ident, TableConstraint};

impl Run<'_> {
    /// The index gets the constraint's name, as in PostgreSQL: 42P07 where it is taken.
    pub(super) async fn add_constraint_using_index(
        &self,
        table: &Arc<Table>,
        constraint: &TableConstraint,
        (index, primary): (&Ident, bool),
        notices: &mut Vec<EngineError>,
    ) -> Result<Arc<Table>> {
        let catalog = self.begin_statement().await;
        let index = usable(&index.name, table, &catalog)?;
        if primary && table.primary_key().is_some() {
            let message = format!("multiple primary keys for table \"{}\" are not allowed", table.name);
            return Err(EngineError::new("42P16", message));
        }
        if index.is_nulls_not_distinct() && primary {
            return Err(unsupported("a primary key of an index with NULLS NOT DISTINCT"));
        }
        let name = constraint.name.as_ref().map_or(&index.name, |name| &name.name);
        if constraint_exists(table, name) {
            return Err(two_constraints(name, &table.name));
        }
        let mut table = table.clone();
        if *name != index.name {
            check_name(name)?;
            let old = &index.name;
            let message = format!("ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{old}\" to \"{name}\"");
            notices.push(notice("00000", message));
            let rename = async { self.cell.lock().await.open().rename_index(&table, index.oid, name).await };
            table = self.cancel.run(rename).await?;
        }
        let (deferrable, deferred) = (constraint.deferral.deferrable, constraint.deferral.initially_deferred);
        let of = NewConstraint { primary, deferrable, deferred };
        let make = async { self.cell.lock().await.open().make_constraint(&table, index.oid, of).await };
        self.cancel.run(make).await
    }
}

/// The index of that name, where a constraint may use it. 42704, 42809, 55000
fn usable(name: &str, table: &Table, catalog: &Catalog) -> Result<Arc<Index>> {
    let place = RelationName { name: name.to_owned(), ..table.full_name() };
    let Some(index) = catalog.index(&place) else {
        return Err(match catalog.relation_exists(&place) {
            true => EngineError::new("42809", format!("\"{name}\" is not an index")),
            false => EngineError::new("42704", format!("index \"{name}\" does not exist")),
        });
    };
    if index.is_constraint() {
        return Err(EngineError::new("55000", format!("index \"{name}\" is already associated with a constraint")));
    }
    if index.table != table.oid {
        let message = format!("index \"{name}\" does not belong to table \"{}\"", table.name);
        return Err(EngineError::new("55000", message));
    }
    let computed = |at: &usize| table.columns[*at].computed().is_some();
    let sorted_otherwise = (0..index.keys().len()).find(|at| index.key_option(*at) != KeyOption::default());
    let why = if !index.unique {
        format!("\"{name}\" is not a unique index")
    } else if index.keys().iter().any(computed) {
        format!("index \"{name}\" contains expressions")
    } else if index.is_partial() {
        format!("\"{name}\" is a partial index")
    } else if let Some(at) = sorted_otherwise {
        format!("index \"{name}\" column number {} does not have default sorting behavior", at + 1)
    } else {
        return Ok(index.clone());
    };
    let detail = "Cannot create a primary key or unique constraint using such an index.";
    Err(EngineError::new("42809", why).with_detail(detail))
}
