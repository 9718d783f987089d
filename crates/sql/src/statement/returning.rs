//! RETURNING: the rows that INSERT, UPDATE and DELETE answer.
//!
//! First the whole statement is carried out. Then DataFusion evaluates the list over the rows in their new form
//! (deleted rows in their old form). The list may name the target's columns, but not yet those of other tables in FROM
//! or USING (0A000).
use crate::error::{from_datafusion, unsupported};
use crate::plan::bind::over::{Over, Part, Rows, Wanted};
use crate::plan::naming::shown_schema;
use crate::plan::planner::Asked;
use crate::statement::describe::Sources;
use crate::statement::generic::Slot;
use crate::statement::outcome::{Done, command};
use crate::statement::run::{PlanFor, Run};
use crate::through::Called;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::{DataType, Datum, Result, RowBuf, Table};
use terrace_grammar::statement::{ExprKind, FromItem, Item};

/// The result of a statement that changes rows.
pub(crate) struct Changed {
    pub(crate) count: usize,
    returned: Option<SendableRecordBatchStream>,
}

impl Changed {
    /// What RETURNING answers; `None`: there is none.
    pub(crate) fn into_rows(self) -> Option<SendableRecordBatchStream> {
        self.returned
    }

    pub(crate) fn done(self, verb: &str) -> Done {
        match self.returned {
            Some(rows) => Done::Rows(rows),
            None => Done::Command(command(format!("{verb} {}", self.count))),
        }
    }
}

/// The list, over the rows that the statement has changed.
fn returning_over<'q>((table, called): (&'q Arc<Table>, &'q Called), items: &'q [Item]) -> Over<'q> {
    let wanted = items.iter().map(Wanted::Item).collect();
    let (rows, part) = (Rows::Given, Part::Returning);
    Over {
        table,
        called,
        rows,
        part,
        with: None,
        from: &[],
        beside: &[],
        filter: None,
        order: &[],
        wanted,
        kept: false,
    }
}

impl Run<'_> {
    /// 42501 where the current role may not read what the list names: before anything is changed.
    pub(crate) async fn permit_returning(&self, of: (&Arc<Table>, &Called), returning: &[Item]) -> Result<()> {
        let is_table = of.1.through.is_none();
        if returning.is_empty() || (is_table && self.permit(of.0, Rights::SELECT).await.is_ok()) {
            return Ok(());
        }
        self.plan_asked(Asked::Over(&returning_over(of, returning)), PlanFor { calls: false, judged: true })
            .await
            .map(drop)
    }

    pub(crate) async fn changed(
        &self,
        table: &Arc<Table>,
        called: &Called,
        returning: &[Item],
        count: usize,
        rows: Vec<Vec<Datum>>,
    ) -> Result<Changed> {
        if returning.is_empty() {
            return Ok(Changed { count, returned: None });
        }
        assert_eq!(rows.len(), count, "a row to return for each that was changed");
        let over = returning_over((table, called), returning);
        let plan = self.plan_again(Slot::Returning, Asked::Over(&over)).await?;
        let rows = rows.iter().map(|row| RowBuf::encode(table, row)).collect::<Result<Vec<RowBuf>>>()?;
        let returned = self.stream_again(&plan, None, Arc::new(rows)).await?;
        Ok(Changed { count, returned: Some(plan.origins().told(returned)) })
    }
}

/// `*` stands for the columns of the other tables, too.
fn refuse_others(others: &[FromItem], items: &[Item]) -> Result<()> {
    match !others.is_empty() && items.iter().any(|item| matches!(item.expr.kind, ExprKind::Star(None))) {
        true => Err(unsupported("RETURNING * beside FROM or USING (name the target's columns)")),
        false => Ok(()),
    }
}

impl Sources<'_> {
    /// What the list's names mean beside FROM or USING: 42702 where both have one, 42703 where neither has. `over`: the
    /// rows that the statement changes.
    pub(crate) fn judge_returning<'q>(
        &self,
        over: Over<'q>,
        items: &'q [Item],
        types: &[Option<DataType>],
    ) -> Result<()> {
        if over.from.is_empty() || items.is_empty() {
            return Ok(());
        }
        let wanted = items.iter().map(Wanted::Item).collect();
        let over = Over { part: Part::Returning, filter: None, wanted, ..over };
        self.planner().plan_over(&over, types).map(drop)
    }

    /// The columns of a statement's RETURNING. `others`: what stands in FROM or USING.
    pub(crate) fn describe_returning(
        &self,
        (table, called): (&Arc<Table>, &Called),
        others: &[FromItem],
        items: &[Item],
        parameters: &[DataType],
    ) -> Result<Option<SchemaRef>> {
        if items.is_empty() {
            return Ok(None);
        }
        refuse_others(others, items)?;
        let types: Vec<Option<DataType>> = parameters.iter().copied().map(Some).collect();
        let planned = self.planner().plan_over(&returning_over((table, called), items), &types);
        let planned = planned.map_err(|error| match error.state.0 {
            "42703" | "42P01" if !others.is_empty() => {
                unsupported(format!("RETURNING what the target has not ({error})"))
            }
            _ => error,
        })?;
        if !planned.tables.is_empty() {
            // It would have to see the tables as they were before the statement.
            return Err(unsupported("a subquery over a table in RETURNING"));
        }
        let plan = planned.plan;
        let used = plan.get_parameter_types().map_err(from_datafusion)?;
        if used.keys().any(|id| id.trim_start_matches('$').parse::<usize>().is_ok_and(|n| n > parameters.len())) {
            return Err(unsupported("a parameter that only RETURNING has"));
        }
        let typed = crate::plan::planner::typed(self.state.get(), plan)?;
        Ok(Some(planned.origins.put(shown_schema(typed.schema().as_arrow()))))
    }
}
