//! COPY FROM ... WHERE: which of the rows that come are stored.
use super::Numbered;
use crate::plan::bind::over::{Over, Part, Rows, Wanted as Column};
use crate::statement::changes::alone_over;
use crate::statement::run::Run;
use crate::through::Called;
use datafusion::arrow::array::AsArray;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;
use terrace_engine::{ColumnDef, EngineError, Result, RowBuf, Table};
use terrace_grammar::statement::{Expr, ExprKind, Node, walk};

/// The condition, planned once for all batches.
pub(super) struct Wanted {
    /// Without NOT NULL: rows that are not wanted may have any NULL.
    table: Arc<Table>,
    plan: Arc<dyn ExecutionPlan>,
}

impl Run<'_> {
    pub(super) async fn wanted(&self, table: &Table, filter: &Expr) -> Result<Wanted> {
        let mut nullable = Table::clone(table);
        nullable.columns.iter_mut().for_each(|column| column.not_null = false);
        let table = Arc::new(nullable);
        let called = Called::so(&table.name);
        let over = alone_over(&table, &called, Part::Copied, vec![Column::Condition(filter)]);
        let plan = self.plan_over_alone(&Over { rows: Rows::Given, ..over }).await?;
        refuse_generated(&table, filter)?;
        let plan = self.physical(&plan).await?;
        Ok(Wanted { table, plan })
    }

    /// The rows for which the condition is true, in their order.
    pub(super) async fn wanted_of(&self, wanted: &Wanted, rows: Vec<Numbered>) -> Result<Vec<Numbered>> {
        let given = rows.iter().map(|(_, row)| RowBuf::encode(&wanted.table, row)).collect::<Result<Vec<RowBuf>>>()?;
        let answers = self.drain(self.stream_given(wanted.plan.clone(), None, Arc::new(given))?).await?;
        let columns = answers.iter().map(|batch| batch.column(0).as_boolean_opt());
        let answers: Vec<bool> = columns
            .flat_map(|column| column.into_iter().flat_map(|of| of.iter().map(|answer| answer == Some(true))))
            .collect();
        // NULL alone, whatever its type, is true of no row.
        assert!(answers.is_empty() || answers.len() == rows.len(), "an answer for each row");
        Ok(rows.into_iter().zip(answers).filter_map(|(row, is_wanted)| is_wanted.then_some(row)).collect())
    }
}

/// 42P10 where a condition names a generated column, which has no value yet, or the whole row.
fn refuse_generated(table: &Table, filter: &Expr) -> Result<()> {
    let generated = |column: &&ColumnDef| !column.dropped && column.generated.is_some();
    let mut found = None;
    walk(Node::Expr(filter), &mut |node| {
        let named = match node {
            Node::Expr(Expr { kind: ExprKind::Column(name), .. }) => match table.column(&name.last().name) {
                Some(at) => table.columns.get(at).filter(generated),
                None => table.columns.iter().find(generated),
            },
            Node::Expr(Expr { kind: ExprKind::Star(_) | ExprKind::AllFields(_), .. }) => {
                table.columns.iter().find(generated)
            }
            _ => None,
        };
        found = found.or(named);
        true
    });
    match found {
        None => Ok(()),
        Some(column) => {
            let error = EngineError::new("42P10", "generated columns are not supported in COPY FROM WHERE conditions");
            Err(error.with_detail(format!("Column \"{}\" is a generated column.", column.name)))
        }
    }
}
