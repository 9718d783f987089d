//! TRUNCATE, VACUUM, ANALYZE.
//!
//! 1. VACUUM purges every finished transaction that no snapshot needs, of all tables: histories are kept by
//!    transaction, not by table. If it is cancelled, purge goes on in the background. There is no
//!    FULL (pages of a heap are not moved), and nothing to freeze (transaction ids do not wrap).
use crate::error::{undefined_table, unsupported};
use crate::parse::object_name;
use crate::statement::ddl::find_index;
use crate::statement::run::Run;
use datafusion::sql::sqlparser::ast::{CascadeOption, ObjectName, Truncate, TruncateIdentityOption};
use std::sync::Arc;
use terrace_engine::{EngineError, Result, Table};

impl Run<'_> {
    /// Waits until the table of that name is this transaction's alone, and answers it as it is then.
    pub(crate) async fn alone(&self, name: &str) -> Result<Arc<Table>> {
        self.alone_if(name, crate::statement::sequence::refuse_sequence).await
    }

    /// The same, of a table that passes `check`.
    pub(crate) async fn alone_if(&self, name: &str, check: impl Fn(&Table) -> Result<()>) -> Result<Arc<Table>> {
        loop {
            let version = self.engine.catalog().version();
            let catalog = self.begin_statement().await;
            let Some(table) = catalog.table(name) else {
                return Err(match find_index(&catalog, name) {
                    Some(_) => EngineError::new("42809", format!("\"{name}\" is not a table")),
                    None => undefined_table(name),
                });
            };
            check(table)?;
            let lock = async { self.cell.lock().await.open().lock_definition(table).await };
            match self.cancel.run(lock).await {
                Ok(table) if table.name == name => return Ok(table),
                // Renamed, or replaced by TRUNCATE, meanwhile: whatever has the name now.
                Ok(_) => {}
                Err(error) if error.state.0 == "42P01" && self.engine.catalog().version() != version => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) async fn truncate(&self, truncate: &Truncate) -> Result<()> {
        let Truncate { table_names, partitions, table: _, if_exists, identity, cascade, on_cluster } = truncate;
        let refused = [
            (partitions.is_some() || *if_exists || on_cluster.is_some(), "this form of TRUNCATE"),
            (matches!(cascade, Some(CascadeOption::Cascade)), "CASCADE"),
        ];
        if let Some((_, what)) = refused.iter().find(|(is, _)| *is) {
            return Err(unsupported(what));
        }
        let mut done: Vec<String> = vec![];
        for target in table_names {
            let name = object_name(&target.name)?;
            if done.contains(&name) {
                continue;
            }
            let table = self.alone(&name).await?;
            let empty = async { self.cell.lock().await.open().truncate_table(&table).await };
            self.cancel.run(empty).await?;
            if matches!(identity, Some(TruncateIdentityOption::Restart)) {
                self.restart_owned(&table.columns).await?;
            }
            done.push(name);
        }
        Ok(())
    }

    /// One table, or all.
    pub(crate) async fn analyze(&self, name: Option<&ObjectName>) -> Result<()> {
        let catalog = self.begin_statement().await;
        let names: Vec<String> = match name {
            Some(name) => vec![object_name(name)?],
            None => catalog.tables().map(|t| t.name.clone()).collect(),
        };
        for one in names {
            loop {
                let version = self.engine.catalog().version();
                let catalog = self.begin_statement().await;
                let Some(table) = catalog.table(&one) else {
                    if name.is_some() {
                        return Err(undefined_table(&one));
                    }
                    break;
                };
                let analyze = async { self.cell.lock().await.open().analyze(table).await };
                match self.cancel.run(analyze).await {
                    Ok(_) => break,
                    Err(error) if error.state.0 == "42P01" && self.engine.catalog().version() != version => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}
