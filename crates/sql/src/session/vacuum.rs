//! VACUUM: the part that needs no transaction.
//!
//! 1. VACUUM purges every finished transaction that no snapshot needs, of all tables: histories are kept by
//!    transaction, not by table. If it is cancelled, purge goes on with the rest in the background. There is no FULL
//!    (pages of a heap are not moved), and nothing to freeze (transaction ids do not wrap).
use crate::error::unsupported;
use crate::parse;
use crate::session::Session;
use crate::statement::maintain::{Options, skipped};
use terrace_engine::{EngineError, Result};
use terrace_grammar::statement::Maintain;
use tokio::sync::oneshot;

impl Session {
    /// The part of VACUUM that needs no transaction. What ANALYZE is to follow of, if it is, and what is told of the
    /// tables that are skipped.
    pub(crate) async fn vacuum(&mut self, vacuum: &Maintain) -> Result<(Option<Maintain>, Vec<EngineError>)> {
        let options = Options::of("VACUUM", vacuum)?;
        if options.full {
            return Err(unsupported("VACUUM FULL").with_hint(
                "VACUUM makes room within a table for new rows of it; \
                 TRUNCATE and DROP TABLE give a table's pages back.",
            ));
        }
        if self.in_block().await {
            return Err(EngineError::new("25001", "VACUUM cannot run inside a transaction block"));
        }
        let (mut rest, mut notices) = (Maintain { tables: vec![], ..vacuum.clone() }, vec![]);
        for table in &vacuum.tables {
            let name = parse::relation(&table.name)?;
            let catalog = self.catalog().await;
            self.info.permit_lookup(&catalog, &name)?;
            match skipped("vacuum", &self.info.actor(&catalog), &name, &catalog)? {
                Some(told) => notices.push(told),
                None => rest.tables.push(table.clone()),
            }
        }
        if rest.tables.is_empty() && !vacuum.tables.is_empty() {
            return Ok((None, notices));
        }
        // Purge runs in a task of its own, so that a cancel need not wait until purge can stop. What is not purged now
        // is purged in the background anyway.
        let (told, outcome) = oneshot::channel();
        let engine = self.database.engine.clone();
        self.database.engine.spawn("vacuum", async move {
            drop(told.send(engine.purge().await)); // Nobody may listen any more.
        });
        outcome.await.map_err(|_| EngineError::new("57P01", "the server stops"))??;
        Ok((options.analyze.then_some(rest), notices))
    }
}
