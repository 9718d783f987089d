//! RETURNING: the rows that INSERT, UPDATE and DELETE answer.
//!
//! First the whole statement is carried out. Then DataFusion evaluates the list over the rows in their new form
//! (deleted rows in their old form). The list may name the target's columns, but not yet those of other tables in FROM
//! or USING (0A000).
use crate::error::{from_datafusion, unsupported};
use crate::parse::relation;
use crate::plan::bind::over::{Over, Part, Rows, Wanted};
use crate::plan::naming::shown_schema;
use crate::plan::planner::Asked;
use crate::statement::changes::tables_of;
use crate::statement::describe::Sources;
use crate::statement::generic::Slot;
use crate::statement::outcome::{Done, command};
use crate::statement::run::{PlanFor, Run};
use crate::through::Called;
use crate::values::live_columns;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use std::collections::BTreeSet;
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::{Catalog, DataType, Datum, EngineError, Result, RowBuf, Table};
use terrace_grammar::statement::{Expr, ExprKind, FromItem, Item, Node, walk};

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

/// A bare name of a column that another table has, too. 42702
fn refuse_ambiguous(
    others: &[FromItem],
    items: &[Item],
    (target, called): (&Table, &Called),
    catalog: &Catalog,
) -> Result<()> {
    let mut tables = vec![];
    tables_of(others, &mut tables);
    let tables = tables.into_iter().filter_map(|name| catalog.table(&relation(name).ok()?));
    let names = |table| live_columns(table).map(|(_, column)| column.name.clone());
    let others: BTreeSet<String> = tables.flat_map(|table| names(table)).collect();
    let own: Vec<String> = match &called.through {
        Some(through) => through.view().columns.iter().map(|column| column.name.clone()).collect(),
        None => names(target).collect(),
    };
    let twice: BTreeSet<String> = own.into_iter().filter(|name| others.contains(name)).collect();
    let mut found = None;
    for item in items {
        walk(Node::Expr(&item.expr), &mut |node| {
            if let Node::Expr(Expr { kind: ExprKind::Column(name), .. }) = node
                && let [column] = name.parts()
                && twice.contains(&column.name)
            {
                found.get_or_insert_with(|| column.name.clone());
            }
            // A query's names are its own.
            found.is_none() && !matches!(node, Node::Query(_))
        });
    }
    match found {
        Some(name) => Err(EngineError::new("42702", format!("column reference \"{name}\" is ambiguous"))),
        None => Ok(()),
    }
}

impl Sources<'_> {
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
        refuse_ambiguous(others, items, (table, called), self.catalog)?;
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
