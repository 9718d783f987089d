//! What a change of a view needs while it runs: the table behind it, rights, and WITH CHECK OPTION.
use crate::parse::relation;
use crate::plan::bind::over::{Over, Part, Rows, Wanted};
use crate::statement::changes::alone_over;
use crate::statement::run::Run;
use crate::through::{Called, meant};
use crate::values::live_columns;
use datafusion::arrow::array::{Array, AsArray};
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

    /// 44000 where a row that was written does not meet a condition. `written`: the columns that the statement assigns.
    pub(crate) async fn check_options(
        &self,
        table: &Arc<Table>,
        options: Option<&Options>,
        rows: &[Vec<Datum>],
    ) -> Result<()> {
        let Some(options) = options.filter(|_| !rows.is_empty()) else { return Ok(()) };
        let rows: Vec<RowBuf> = rows.iter().map(|row| RowBuf::encode(table, row)).collect::<Result<_>>()?;
        let rows = Arc::new(rows);
        let checked = self.drain(self.stream_given(options.plan.clone(), None, rows.clone())?).await?;
        let mut first = 0;
        for batch in checked.iter() {
            assert_eq!(batch.num_columns(), options.views.len(), "a column for each condition");
            for row in 0..batch.num_rows() {
                let passes = |at: usize| {
                    let column = batch.column(at).as_boolean_opt();
                    column.is_some_and(|column| column.is_valid(row) && column.value(row))
                };
                if let Some(view) = (0..options.views.len()).find(|at| !passes(*at)) {
                    return Err(violated(table, &options.views[view], &rows[first + row]));
                }
            }
            first += batch.num_rows();
        }
        assert_eq!(first, rows.len(), "every row has been checked");
        Ok(())
    }
}

fn violated(table: &Table, view: &str, row: &RowBuf) -> EngineError {
    let row = row.view(table);
    let values = live_columns(table).map(|(at, _)| (at, crate::values::show(&row.get(at).to_datum())));
    EngineError::new("44000", format!("new row violates check option for view \"{view}\""))
        .with_row(table, values.collect())
}
