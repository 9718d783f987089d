//! RETURNING: the rows that INSERT, UPDATE and DELETE answer.
//!
//! 1. First the whole statement is carried out. Then DataFusion evaluates the list over the rows in their new form
//!    (deleted rows in their old form), each beside the row of FROM or USING that it was joined with.
//! 2. Queries in the list read the tables as they were before the statement. So they are refused (0A000) where they
//!    read a table that it may change.
use crate::error::{from_datafusion, unsupported};
use crate::plan::bind::over::{Over, Part, Rows, Wanted};
use crate::plan::naming::shown_schema;
use crate::plan::planner::Asked;
use crate::statement::describe::Sources;
use crate::statement::generic::Slot;
use crate::statement::outcome::{Done, command};
use crate::statement::run::{PlanFor, Run};
use crate::statement::within::Earlier;
use crate::through::Called;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use std::collections::BTreeSet;
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::{DataType, Datum, Result, RowBuf, Table};
use terrace_grammar::statement::{FromItem, Item, Node, With, walk};
use terrace_storage::ObjectId;

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

/// RETURNING, and what its items may name.
#[derive(Clone, Copy)]
pub(crate) struct Returning<'q> {
    pub(crate) items: &'q [Item],
    pub(crate) with: Option<&'q With>,
    /// FROM of UPDATE, USING of DELETE.
    pub(crate) from: &'q [FromItem],
}

impl<'q> Returning<'q> {
    /// Of a statement that changes its target alone.
    pub(crate) fn of(items: &'q [Item]) -> Returning<'q> {
        Returning { items, with: None, from: &[] }
    }

    /// Whether its items may name what stands beside the target.
    pub(crate) fn names_others(self) -> bool {
        !self.items.is_empty() && !self.from.is_empty()
    }

    /// Whether it has a query in it.
    fn has_queries(self) -> bool {
        let mut found = false;
        for item in self.items {
            walk(Node::Expr(&item.expr), &mut |node| {
                found |= matches!(node, Node::Query(_));
                !found
            });
        }
        found
    }

    /// The list, over the rows that the statement has changed.
    fn over(self, (table, called): (&'q Arc<Table>, &'q Called), given: Option<&'q [RecordBatch]>) -> Over<'q> {
        let Returning { items, with, from } = self;
        let wanted = items.iter().map(Wanted::Item).collect();
        let (rows, part, filter) = (Rows::Given, Part::Returning, None);
        Over { table, called, rows, part, with, from, given, beside: &[], filter, order: &[], wanted, kept: false }
    }
}

impl Run<'_> {
    /// 42501 where the current role may not read what the list names: before anything is changed. Beside FROM and USING
    /// the plan of the change names it.
    pub(crate) async fn permit_returning(&self, of: (&Arc<Table>, &Called), returning: Returning<'_>) -> Result<()> {
        let is_table = of.1.through.is_none();
        if returning.items.is_empty() || returning.names_others() {
            return Ok(());
        }
        if is_table && !returning.has_queries() && self.permit(of.0, Rights::SELECT).await.is_ok() {
            return Ok(());
        }
        self.plan_asked(Asked::Over(&returning.over(of, None)), PlanFor { calls: false, judged: true }).await.map(drop)
    }

    /// `rows`: those that were changed, where there is a list.
    pub(crate) async fn changed(
        &self,
        of: (&Arc<Table>, &Called),
        returning: Returning<'_>,
        count: usize,
        rows: Vec<Vec<Datum>>,
    ) -> Result<Changed> {
        if returning.items.is_empty() {
            return Ok(Changed { count, returned: None });
        }
        assert_eq!(rows.len(), count, "a row to return for each that was changed");
        let rows = rows.iter().map(|row| RowBuf::encode(of.0, row)).collect::<Result<Vec<RowBuf>>>()?;
        let over = returning.over(of, None);
        let returned = match returning.has_queries() {
            false => {
                let plan = self.plan_again(Slot::Returning, Asked::Over(&over)).await?;
                let returned = self.stream_again(&plan, None, Arc::new(rows)).await?;
                plan.origins().told(returned)
            }
            true => self.with_queries(&over, rows).await?,
        };
        Ok(Changed { count, returned: Some(returned) })
    }

    /// The same of rows with what stood beside them.
    pub(crate) async fn changed_beside(
        &self,
        of: (&Arc<Table>, &Called),
        returning: Returning<'_>,
        count: usize,
        given: &[RecordBatch],
    ) -> Result<Changed> {
        let returned = self.with_queries(&returning.over(of, Some(given)), vec![]).await?;
        Ok(Changed { count, returned: Some(returned) })
    }

    /// A list with queries in it, which read with the snapshot of the change.
    async fn with_queries(&self, over: &Over<'_>, rows: Vec<RowBuf>) -> Result<SendableRecordBatchStream> {
        let none = Earlier::default();
        let run = Run { earlier: Some(self.earlier.unwrap_or(&none)), ..*self };
        let plan = run.plan_again(Slot::Returning, Asked::Over(over)).await?;
        let returned = run.stream_again(&plan, None, Arc::new(rows)).await?;
        Ok(plan.origins().told(returned))
    }
}

impl Sources<'_> {
    /// The columns of a statement's RETURNING. `changed`: the tables whose rows the statement may change.
    pub(crate) fn describe_returning(
        &self,
        of: (&Arc<Table>, &Called),
        returning: Returning<'_>,
        changed: &BTreeSet<ObjectId>,
        parameters: &[DataType],
    ) -> Result<Option<SchemaRef>> {
        if returning.items.is_empty() {
            return Ok(None);
        }
        let types: Vec<Option<DataType>> = parameters.iter().copied().map(Some).collect();
        let planned = self.planner().plan_over(&returning.over(of, None), &types)?;
        if returning.has_queries() && planned.tables.iter().any(|table| changed.contains(&table.oid)) {
            // It would have to see the tables as they were before the statement.
            return Err(unsupported("a query in RETURNING that reads a table which the statement may change"));
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
