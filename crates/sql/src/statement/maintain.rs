//! TRUNCATE, VACUUM, ANALYZE.
//!
//! 1. VACUUM purges every finished transaction that no snapshot needs, of all tables: histories are kept by
//!    transaction, not by table. If it is cancelled, purge goes on in the background. There is no
//!    FULL (pages of a heap are not moved), and nothing to freeze (transaction ids do not wrap).
use crate::access::Actor;
use crate::error::{missing_relation, no_table, unsupported};
use crate::parse;
use crate::statement::ddl::find_index;
use crate::statement::foreign_keys::dependents;
use crate::statement::options::switch;
use crate::statement::outcome::notice;
use crate::statement::run::Run;
use crate::values::is_sequence;
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::{Catalog, EngineError, LockMode, RelationName, Result, Table};
use terrace_grammar::statement::{LockTables, Maintain, TableLock, Truncate};

fn referenced(table: &Table, referring: &Table) -> EngineError {
    let (t, r) = (&table.name, &referring.name);
    EngineError::new("0A000", "cannot truncate a table referenced in a foreign key constraint")
        .with_detail(format!("Table \"{r}\" references \"{t}\"."))
        .with_hint(format!("Truncate table \"{r}\" at the same time, or use TRUNCATE ... CASCADE."))
}

/// The options of VACUUM and ANALYZE.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) full: bool,
    pub(crate) analyze: bool,
}

impl Options {
    /// `verb`: VACUUM or ANALYZE.
    pub(crate) fn of(verb: &str, maintain: &Maintain) -> Result<Options> {
        let mut options = Options::default();
        for option in &maintain.options {
            match (verb, option.name.name.as_str()) {
                ("VACUUM", "full") => options.full = switch(option)?,
                ("VACUUM", "analyze") => options.analyze = switch(option)?,
                // There are no messages, and nothing to freeze.
                (_, "verbose") | ("VACUUM", "freeze") => drop(switch(option)?),
                (
                    "VACUUM",
                    name @ ("disable_page_skipping" | "index_cleanup" | "parallel" | "process_toast" | "truncate"),
                )
                | (_, name @ "skip_locked") => {
                    return Err(unsupported(format!("the option {} of {verb}", name.to_uppercase())));
                }
                (_, other) => {
                    return Err(EngineError::new("42601", format!("unrecognized {verb} option \"{other}\"")));
                }
            }
        }
        if maintain.tables.iter().any(|table| !table.columns.is_empty()) {
            return Err(unsupported("a list of columns here"));
        }
        Ok(options)
    }
}

/// What is told of a relation that VACUUM or ANALYZE passes over; `None`: it does not. 42P01
pub(crate) fn skipped(
    verb: &str,
    actor: &Actor,
    name: &RelationName,
    catalog: &Catalog,
) -> Result<Option<EngineError>> {
    let index = find_index(catalog, name).map(|(table, _)| table.oid);
    let (table, view) = (catalog.table(name), catalog.view(name));
    let found = table.map(|table| table.oid).or(view.map(|view| view.oid)).or(index);
    let oid = found.ok_or_else(|| missing_relation(catalog, name))?;
    let own = &name.name;
    let why = match table {
        _ if !actor.owns(catalog, oid) => format!("only table or database owner can {verb} it"),
        Some(table) if !is_sequence(table) => return Ok(None),
        _ => format!("cannot {verb} non-tables or special system tables"),
    };
    Ok(Some(notice("01000", format!("skipping \"{own}\" --- {why}"))))
}

impl Run<'_> {
    /// Waits until this transaction has the table of that name for itself alone, and answers the table as it is then.
    pub(crate) async fn alone(&self, name: &RelationName) -> Result<Arc<Table>> {
        self.alone_if(name, crate::statement::sequence::refuse_sequence).await
    }

    /// The same, of a table that passes `check`.
    pub(crate) async fn alone_if(
        &self,
        name: &RelationName,
        check: impl Fn(&Table) -> Result<()>,
    ) -> Result<Arc<Table>> {
        loop {
            let version = self.engine.catalog().version();
            let catalog = self.begin_statement().await;
            let Some(table) = catalog.table(name) else {
                return Err(match find_index(&catalog, name) {
                    Some(_) => EngineError::new("42809", format!("\"{name}\" is not a table")),
                    None if catalog.relation_exists(name) => {
                        EngineError::new("42809", format!("\"{}\" is not a table", name.name))
                    }
                    None => missing_relation(&catalog, name),
                });
            };
            check(table)?;
            let lock = async { self.cell.lock().await.open().lock_definition(table).await };
            match self.cancel.run(lock).await {
                Ok(table) if table.name == name.name => return Ok(table),
                // It was renamed, or replaced by TRUNCATE, meanwhile: take the table that has the name now.
                Ok(_) => {}
                Err(error) if error.state.0 == "42P01" && self.engine.catalog().version() != version => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) async fn truncate(&self, truncate: &Truncate) -> Result<Vec<EngineError>> {
        let mut notices = vec![];
        let mut tables: Vec<Arc<Table>> = vec![];
        for (target, _only) in &truncate.tables {
            let name = parse::relation(target)?;
            let catalog = self.begin_statement().await;
            if let Some(table) = catalog.table(&name).filter(|table| !is_sequence(table)) {
                self.info.actor(&catalog).permit(&catalog, table, Rights::TRUNCATE)?;
            }
            let table = self.alone(&name).await?;
            if tables.iter().all(|other| other.oid != table.oid) {
                tables.push(table);
            }
        }
        let mut at = 0;
        while let Some(table) = tables.get(at).cloned() {
            at += 1;
            let catalog = self.begin_statement().await;
            for (_, referring) in dependents(&catalog, &table, &[], |key| tables.iter().all(|t| t.oid != key.table)) {
                if tables.iter().any(|other| other.oid == referring.oid) {
                    continue;
                }
                if !truncate.cascade {
                    return Err(referenced(&table, &referring));
                }
                self.permit(&referring, Rights::TRUNCATE).await?;
                notices.push(notice("00000", format!("truncate cascades to table \"{}\"", referring.name)));
                tables.push(self.alone(&referring.full_name()).await?);
            }
        }
        for table in &tables {
            // It has been locked by its name; the ones before may have changed its foreign keys.
            let empty = async { self.cell.lock().await.open().truncate_table(table).await };
            self.cancel.run(empty).await?;
            if truncate.restart_identity {
                self.restart_owned(&table.columns).await?;
            }
        }
        Ok(notices)
    }

    /// LOCK TABLE. A mode that the engine does not have is taken as the next stronger one.
    pub(crate) async fn lock_tables(&self, lock: &LockTables) -> Result<Vec<EngineError>> {
        let mode = match lock.mode {
            TableLock::AccessShare | TableLock::RowShare => LockMode::AccessShare,
            TableLock::RowExclusive => LockMode::RowExclusive,
            TableLock::Share => LockMode::Share,
            TableLock::ShareUpdateExclusive | TableLock::ShareRowExclusive => LockMode::ShareRowExclusive,
            TableLock::Exclusive | TableLock::AccessExclusive => LockMode::AccessExclusive,
        };
        for name in &lock.tables {
            let name = parse::relation(name)?;
            loop {
                let catalog = self.begin_statement().await;
                let Some(table) = catalog.table(&name) else { return Err(no_table(&catalog, &name)) };
                if is_sequence(table) {
                    let error = EngineError::new("42809", format!("cannot lock relation \"{name}\""));
                    return Err(error.with_detail("This operation is not supported for sequences."));
                }
                let changes = Rights::UPDATE | Rights::DELETE | Rights::TRUNCATE;
                let rights = match lock.mode {
                    TableLock::AccessShare => changes | Rights::SELECT,
                    TableLock::RowExclusive => changes | Rights::INSERT,
                    _ => changes,
                };
                self.info.actor(&catalog).permit_any(&catalog, table, rights)?;
                let waits = async { self.cell.lock().await.open().lock_table_as(table, mode, !lock.nowait).await };
                match self.cancel.run(waits).await {
                    // It may have been renamed while this waited.
                    Ok(()) if self.begin_statement().await.table(&name).is_some_and(|now| now.oid == table.oid) => {
                        break;
                    }
                    Ok(()) => {}
                    Err(error) if error.state.0 == "42P01" => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(vec![])
    }

    /// Some tables, or all.
    pub(crate) async fn analyze(&self, maintain: &Maintain) -> Result<Vec<EngineError>> {
        let named = maintain.tables.iter().map(|table| parse::relation(&table.name)).collect::<Result<Vec<_>>>()?;
        let (all, mut notices) = (named.is_empty(), vec![]);
        let catalog = self.begin_statement().await;
        let names = if all { catalog.tables().map(|t| t.full_name()).collect() } else { named };
        for one in names {
            loop {
                let version = self.engine.catalog().version();
                let catalog = self.begin_statement().await;
                if !all {
                    self.info.permit_lookup(&catalog, &one)?;
                }
                match skipped("analyze", &self.info.actor(&catalog), &one, &catalog) {
                    Ok(None) => {}
                    // Of all tables those are meant that are there, and that the role may analyze.
                    _ if all => break,
                    Ok(told) => {
                        notices.extend(told);
                        break;
                    }
                    Err(error) => return Err(error),
                }
                let Some(table) = catalog.table(&one) else { return Err(no_table(&catalog, &one)) };
                let analyze = async { self.cell.lock().await.open().analyze(table).await };
                match self.cancel.run(analyze).await {
                    Ok(_) => break,
                    Err(error) if error.state.0 == "42P01" && self.engine.catalog().version() != version => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(notices)
    }
}
