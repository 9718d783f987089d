//! What a change of a view needs while it runs: the table behind it, rights, and WITH CHECK OPTION.
use crate::parse::relation;
use crate::plan::bind::over::{Over, Part, Rows, Wanted};
use crate::statement::changes::alone_over;
use crate::statement::run::Run;
use crate::through::{Called, meant};
use crate::values::live_columns;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int32Type;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::{Datum, EngineError, Result, RowBuf, Table};
use terrace_grammar::statement::{Ident, Name};

/// The conditions that written rows must meet.
pub(crate) struct Options {
    /// The views that have them.
    views: Vec<String>,
    plan: Arc<dyn ExecutionPlan>,
}

impl Run<'_> {
    /// Finds and locks the table that a statement changes, by its name or a view's; and what the statement calls it.
    pub(crate) async fn aimed(
        &self,
        target: &Name,
        alias: Option<&Ident>,
        right: Rights,
    ) -> Result<(Arc<Table>, Called)> {
        let name = relation(target)?;
        let shown = alias.unwrap_or(target.last()).name.clone();
        loop {
            let version = self.engine.catalog().version();
            let catalog = self.begin_statement().await;
            if catalog.view(&name).is_none() {
                let table = self.write_table(&name, right).await?;
                return Ok((table, Called { name: shown, through: None }));
            }
            self.info.permit_lookup(&catalog, &name)?;
            let (table, through) = meant(&catalog, &name, right)?;
            let called = Called { name: shown.clone(), through };
            self.permit_changed((&table, &called), right, &[]).await?;
            let locked = self.lock(&table, true).await;
            if self.engine.catalog().version() == version {
                return locked.map(|()| (table, called));
            }
            locked.or_else(|e| if e.state.0 == "42P01" { Ok(()) } else { Err(e) })?;
        }
    }

    /// 42501 where the current role may not do that with columns of what it changes; none: with any.
    pub(crate) async fn permit_changed(
        &self,
        (table, called): (&Arc<Table>, &Called),
        right: Rights,
        columns: &[usize],
    ) -> Result<()> {
        let Some(through) = &called.through else { return self.permit_columns(table, right, columns).await };
        let catalog = self.cell.lock().await.open().catalog();
        through.permit(&catalog, &self.info.actor(&catalog), right, columns)?;
        through.permit_table(&catalog, table, right, columns)
    }

    /// The conditions of WITH CHECK OPTION; `None`: there are none.
    pub(crate) async fn options(&self, (table, called): (&Arc<Table>, &Called)) -> Result<Option<Options>> {
        let Some(through) = &called.through else { return Ok(None) };
        let views: Vec<String> = through.checked(false).map(|level| level.view.name.clone()).collect();
        if views.is_empty() {
            return Ok(None);
        }
        through.levels.iter().try_for_each(|level| level.refuse_queries())?;
        let over = Over { rows: Rows::Given, ..alone_over(table, called, Part::Returning, vec![Wanted::Options]) };
        let plan = self.physical(&self.plan_over_alone(&over).await?).await?;
        Ok(Some(Options { views, plan }))
    }

    /// Which view's condition each of the rows does not meet.
    pub(crate) async fn judged(
        &self,
        table: &Arc<Table>,
        options: &Options,
        rows: &[Vec<Datum>],
    ) -> Result<Vec<Option<usize>>> {
        let rows: Vec<RowBuf> = rows.iter().map(|row| RowBuf::encode(table, row)).collect::<Result<_>>()?;
        let rows = Arc::new(rows);
        let judged = self.drain(self.stream_given(options.plan.clone(), None, rows.clone())?).await?;
        let numbers = judged.iter().flat_map(|batch| batch.column(0).as_primitive::<Int32Type>());
        let failed: Vec<Option<usize>> = numbers.map(|number| number.and_then(|at| usize::try_from(at).ok())).collect();
        assert_eq!(failed.len(), rows.len(), "every row has been judged");
        Ok(failed)
    }

    /// Stores rows, each of which must then meet the conditions: the first that cannot be stored, or does not, decides.
    pub(crate) async fn store_all(
        &self,
        table: &Arc<Table>,
        options: Option<&Options>,
        rows: &[Vec<Datum>],
    ) -> Result<()> {
        let judged = match options.filter(|_| !rows.is_empty()) {
            Some(options) => self.judged(table, options, rows).await.ok(),
            None => None,
        };
        for (at, row) in rows.iter().enumerate() {
            self.store(table, row).await?;
            match (options, &judged) {
                (Some(options), Some(judged)) => {
                    if let Some(view) = judged[at] {
                        return Err(violated(table, &options.views[view], &RowBuf::encode(table, row)?));
                    }
                }
                // One of the rows could not be judged.
                (Some(_), None) => self.check_options(table, options, std::slice::from_ref(row)).await?,
                (None, _) => {}
            }
        }
        Ok(())
    }

    /// 44000 where a row that was written does not meet a condition: the first of them decides, and of its conditions
    /// the innermost.
    pub(crate) async fn check_options(
        &self,
        table: &Arc<Table>,
        options: Option<&Options>,
        rows: &[Vec<Datum>],
    ) -> Result<()> {
        let Some(options) = options.filter(|_| !rows.is_empty()) else { return Ok(()) };
        let failed = match self.judged(table, options, rows).await {
            Err(_) if rows.len() > 1 => {
                // A row before that which it is about may not meet a condition.
                for row in rows {
                    Box::pin(self.check_options(table, Some(options), std::slice::from_ref(row))).await?;
                }
                return Ok(());
            }
            failed => failed?,
        };
        let first = failed.into_iter().zip(rows).find_map(|(failed, row)| failed.map(|view| (view, row)));
        match first {
            Some((view, row)) => Err(violated(table, &options.views[view], &RowBuf::encode(table, row)?)),
            None => Ok(()),
        }
    }
}

fn violated(table: &Table, view: &str, row: &RowBuf) -> EngineError {
    let row = row.view(table);
    let values = live_columns(table).map(|(at, _)| (at, crate::values::show(&row.get(at).to_datum())));
    EngineError::new("44000", format!("new row violates check option for view \"{view}\""))
        .with_row(table, values.collect())
}
