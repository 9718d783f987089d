//! Values of generated columns (GENERATED ALWAYS AS ... STORED), and of computed columns, which indexes on expressions
//! and partial indexes have ([`terrace_engine::catalog::extras`]).
//!
//! 1. A row gets those of generated columns before it is checked, and those of computed columns after it has passed its
//!    constraints, before it is written: whatever writes rows passes them through [`Run::finish_rows`], or
//!    [`Run::finish_by`].
//! 2. The expression depends on nothing but its row, and gives the same value at all times (42P17). That of a generated
//!    column names no generated column.
use crate::parse::sequence_calls::sequence_of;
use crate::parse::stored::{self, Stored};
use crate::plan::bind::over::{Over, Part, Rows, Wanted};
use crate::statement::checks::{Finishing, checking_over, round};
use crate::statement::create_as::column_type;
use crate::statement::immutable::may_change;
use crate::statement::run::Run;
use crate::through::Called;
use crate::values::{assign_array, assign_datum};
use datafusion::arrow::datatypes::Schema;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;
use terrace_engine::{ColumnDef, DataType, Datum, EngineError, Isolation, Result, RowBuf, Scan, Table, UpdateOutcome};
use terrace_grammar::statement::{Node, walk};

/// Rows that get values at a time, where a table has rows already.
const BATCH: usize = 1000;

/// What a computed column is for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum For {
    Key,
    Condition,
}

/// The table's computed columns that name a column.
pub(crate) fn computed_of(table: &Table, column: &str) -> Vec<usize> {
    let names =
        |text: &str| Stored::read(text).is_some_and(|s| stored::columns_of(s.expr()).iter().any(|c| c == column));
    table.computed().filter(|(_, text)| names(text)).map(|(at, _)| at).collect()
}

/// An expression as it is shown in errors, and where it has no shown form as it was written.
pub(crate) fn title(text: &str, table: &Table) -> String {
    let written = stored::of_computed(text);
    crate::parse::shown::value(written, &table.columns, true).map_or(written.to_owned(), |(shown, _)| shown)
}

/// The table's generated columns that name a column.
pub(crate) fn generated_of(table: &Table, column: &str) -> Vec<usize> {
    let names =
        |text: &str| Stored::read(text).is_some_and(|s| stored::columns_of(s.expr()).iter().any(|c| c == column));
    table.generated().filter(|(_, text)| names(text)).map(|(at, _)| at).collect()
}

/// What computes columns: their places, and the plan.
#[derive(Clone)]
struct Columns {
    /// The table, as rows are before they have the values.
    of: Arc<Table>,
    at: Vec<usize>,
    plan: Arc<dyn ExecutionPlan>,
}

/// What computes the columns of a table.
#[derive(Clone)]
pub(crate) struct Computing {
    generated: Option<Columns>,
    keys: Option<Columns>,
}

impl Computing {
    pub(crate) fn generates(&self) -> bool {
        self.generated.is_some()
    }
}

impl Run<'_> {
    pub(crate) async fn computing(&self, table: &Arc<Table>) -> Result<Computing> {
        let generated = match table.generated().next() {
            Some(_) => {
                let mut open = Table::clone(table);
                open.columns.iter_mut().filter(|c| c.generated.is_some()).for_each(|column| column.not_null = false);
                let open = Arc::new(open);
                self.computing_of(&open, open.generated().collect()).await?
            }
            None => None,
        };
        Ok(Computing { generated, keys: self.computing_of(table, table.computed().collect()).await? })
    }

    async fn computing_of(&self, table: &Arc<Table>, texts: Vec<(usize, &str)>) -> Result<Option<Columns>> {
        let read = |(at, text): (usize, &str)| {
            let broken = || EngineError::new("XX000", format!("the column's {text} is not an expression"));
            Ok((at, Stored::read(text).ok_or_else(broken)?))
        };
        let stored = texts.into_iter().map(read).collect::<Result<Vec<(usize, Stored)>>>()?;
        if stored.is_empty() {
            return Ok(None);
        }
        let value = |(at, stored): &'_ (usize, Stored)| (*at, stored.expr().clone());
        let values: Vec<_> = stored.iter().map(value).collect();
        let wanted = values.iter().map(|(at, value)| Wanted::Value { column: &table.columns[*at], value }).collect();
        let called = Called::so(&table.name);
        let plan = self.plan_over_alone(&checking_over((table, &called), Rows::Given, wanted)).await?;
        let at = values.iter().map(|(at, _)| *at).collect();
        Ok(Some(Columns { of: table.clone(), at, plan: self.physical(&plan).await? }))
    }

    /// Gives rows the values of generated columns.
    pub(crate) async fn generate_rows(
        &self,
        table: &Arc<Table>,
        by: &Computing,
        rows: &mut [&mut Vec<Datum>],
    ) -> Result<()> {
        self.compute_rows(table, &by.generated, rows).await
    }

    /// Gives rows the values of computed columns.
    pub(crate) async fn compute_keys(
        &self,
        table: &Arc<Table>,
        by: &Computing,
        rows: &mut [&mut Vec<Datum>],
    ) -> Result<()> {
        self.compute_rows(table, &by.keys, rows).await
    }

    /// Both, of rows that have passed their constraints with them.
    pub(crate) async fn compute_again(
        &self,
        table: &Arc<Table>,
        by: &Computing,
        rows: &mut [&mut Vec<Datum>],
    ) -> Result<()> {
        self.generate_rows(table, by, rows).await?;
        round(table, rows).map_err(|(_, error)| error)?;
        self.compute_keys(table, by, rows).await
    }

    async fn compute_rows(&self, table: &Arc<Table>, by: &Option<Columns>, rows: &mut [&mut Vec<Datum>]) -> Result<()> {
        let Some(by) = by else { return Ok(()) };
        let given = rows.iter().map(|row| RowBuf::encode(&by.of, row)).collect::<Result<Vec<RowBuf>>>()?;
        let batches = self.drain(self.stream_given(by.plan.clone(), None, Arc::new(given))?).await?;
        let columns = &by.at;
        let mut first = 0;
        for batch in batches.iter() {
            assert_eq!(batch.num_columns(), columns.len(), "a column for each computed one");
            for (number, at) in columns.iter().enumerate() {
                let values = assign_array(batch.column(number), &table.columns[*at])?;
                for (row, value) in rows[first..].iter_mut().zip(values) {
                    row[*at] = value;
                }
            }
            first += batch.num_rows();
        }
        assert_eq!(first, rows.len(), "every row has its values");
        Ok(())
    }

    /// Rows that are about to be written (invariant 1). 23514 if one violates a constraint.
    pub(crate) async fn finish_rows(&self, table: &Arc<Table>, mut rows: Vec<&mut Vec<Datum>>) -> Result<()> {
        match Box::pin(self.checking(table)).await? {
            Some(finishing) => self.finish_by(table, &finishing, &mut rows).await,
            None => Ok(()),
        }
    }

    /// The same; `by`: what [`Run::checking`] answered.
    pub(crate) async fn finish_by(
        &self,
        table: &Arc<Table>,
        by: &Finishing,
        rows: &mut [&mut Vec<Datum>],
    ) -> Result<()> {
        match self.violation_by(table, by, rows).await? {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    /// A computed column for an expression of an index, which the table does not have yet.
    pub(crate) async fn new_computed(&self, table: &Arc<Table>, text: &str, of: For) -> Result<ColumnDef> {
        refuse_subquery(text, of)?;
        let text = stored::constraint(text, &table.name)?;
        let text = match of {
            For::Condition => self.kept_check(table, &stored::as_condition(&text)).await?,
            For::Key => self.kept_key(table, &text).await?,
        };
        let broken = || EngineError::new("XX000", format!("{text} is not an expression"));
        let stored = Stored::read(&text).ok_or_else(broken)?;
        let item = terrace_grammar::statement::Item { expr: stored.expr().clone(), alias: None };
        let wanted = match of {
            For::Key => Wanted::Item(&item),
            For::Condition => Wanted::Condition(stored.expr()),
        };
        let called = Called::so(&table.name);
        let plan = self.plan_over_alone(&checking_over((table, &called), Rows::Given, vec![wanted])).await;
        let plan = plan.map_err(|mut error| {
            // As the condition is kept, OR NULL stands behind it.
            for of in ["argument of CHECK", "argument of OR"].into_iter().filter(|_| error.state.0 == "42804") {
                error.message = error.message.replacen(of, "argument of WHERE", 1);
            }
            error
        })?;
        refuse_changing(&plan, &text, of)?;
        let typed = crate::plan::planner::typed(self.state.get(), plan)?;
        refuse_changing(&typed, &text, of)?;
        let schema: &Schema = typed.schema().as_arrow();
        let data_type = column_type(schema.field(0))?;
        if matches!(data_type, DataType::Char(_)) {
            return Err(crate::error::unsupported("an index on an expression of type char"));
        }
        let name = title(&text, table);
        Ok(ColumnDef { default_sql: Some(text), dropped: true, ..ColumnDef::new(&name, data_type) })
    }

    /// The expression of a generated column of a table that is, or will be, as `table` is: as it is kept.
    pub(crate) async fn new_generated(&self, table: &Arc<Table>, at: usize) -> Result<String> {
        let column = &table.columns[at];
        let text = column.generated.as_deref().expect("the caller has looked");
        let text = stored::constraint(text, &table.name).map_err(|mut error| {
            error.message = error.message.replacen("check constraint", "column generation expression", 1);
            error
        })?;
        let text = self.kept_generated(table, at, &text).await?;
        let broken = || EngineError::new("XX000", format!("{text} is not an expression"));
        let stored = Stored::read(&text).ok_or_else(broken)?;
        let named = stored::columns_of(stored.expr());
        let other = table.generated().map(|(at, _)| &table.columns[at].name).find(|name| named.contains(*name));
        if let Some(other) = other {
            let message = format!("cannot use generated column \"{other}\" in column generation expression");
            let detail = "A generated column cannot reference another generated column.";
            return Err(EngineError::new("42P17", message).with_detail(detail));
        }
        let called = Called::so(&table.name);
        let wanted = vec![Wanted::Value { column, value: stored.expr() }];
        let over = Over { part: Part::Generated, ..checking_over((table, &called), Rows::Given, wanted) };
        let plan = self.plan_over_alone(&over).await?;
        let typed = crate::plan::planner::typed(self.state.get(), plan.clone())?;
        if may_change(&plan, &text)? || may_change(&typed, &text)? {
            return Err(EngineError::new("42P17", "generation expression is not immutable"));
        }
        Ok(text)
    }

    /// Gives the rows that are there the values of columns that are new. The table is this transaction's alone.
    pub(crate) async fn fill_computed(&self, table: &Arc<Table>) -> Result<()> {
        self.fill_in(table, None).await
    }

    /// The same, and numbers from its sequence for a column that is new.
    pub(crate) async fn fill_in(&self, table: &Arc<Table>, numbered: Option<usize>) -> Result<()> {
        if self.cell.lock().await.open().isolation() != Isolation::ReadCommitted {
            let what = "a generated column that is added, and an index on an expression or a partial one, under \
                        REPEATABLE READ or SERIALIZABLE";
            return Err(crate::error::unsupported(what));
        }
        self.begin_statement().await;
        if numbered.is_none() && table.generated().chain(table.computed()).next().is_none() {
            return Ok(());
        }
        let by = self.computing(table).await?;
        let mut scanner = self.cell.lock().await.open().scan(table, Scan::Full);
        loop {
            let batch = self.cancel.run(scanner.next_batch(BATCH)).await?;
            if batch.is_empty() {
                return Ok(());
            }
            let mut rows: Vec<Vec<Datum>> = batch.iter().map(|(_, row, _)| row.view(table).to_datums()).collect();
            if let Some(at) = numbered {
                let column = &table.columns[at];
                let name = sequence_of(column).expect("the column is numbered");
                for (row, number) in rows.iter_mut().zip(self.numbers(&name, batch.len(), true).await?) {
                    row[at] = assign_datum(Datum::Int8(number), column.data_type)?;
                }
            }
            self.compute_again(table, &by, &mut rows.iter_mut().collect::<Vec<_>>()).await?;
            for ((rid, _, version), row) in batch.into_iter().zip(rows) {
                let update = async { self.cell.lock().await.open().update(table, rid, version, &row).await };
                match self.cancel.run(update).await? {
                    UpdateOutcome::Done => {}
                    other => {
                        let message = format!("a row changed although its table is locked: {other:?}");
                        return Err(EngineError::internal(message));
                    }
                }
            }
        }
    }

    /// Computed columns that no index has any more compute nothing from now on.
    pub(crate) async fn tidy_computed(&self, mut table: Arc<Table>) -> Result<Arc<Table>> {
        let unused: Vec<usize> = table
            .computed()
            .map(|(at, _)| at)
            .filter(|at| !table.indexes.iter().any(|index| index.columns.contains(at)))
            .collect();
        for at in unused {
            let name = format!("........pg.dropped.{}........", at + 1);
            let column = ColumnDef { name, default_sql: None, ..table.columns[at].clone() };
            let alter = async { self.cell.lock().await.open().alter_column(&table, at, column).await };
            table = self.cancel.run(alter).await?;
        }
        Ok(table)
    }
}

impl For {
    fn part(self) -> &'static str {
        match self {
            For::Key => "expression",
            For::Condition => "predicate",
        }
    }
}

fn refuse_subquery(text: &str, of: For) -> Result<()> {
    let mut found = false;
    if let Some(stored) = Stored::read(text) {
        walk(Node::Expr(stored.expr()), &mut |node| {
            found |= matches!(node, Node::Query(_));
            !found
        });
    }
    match found {
        true => Err(EngineError::new("0A000", format!("cannot use subquery in index {}", of.part()))),
        false => Ok(()),
    }
}

/// Invariant 2.
fn refuse_changing(plan: &LogicalPlan, text: &str, of: For) -> Result<()> {
    match may_change(plan, text)? {
        true => Err(EngineError::new("42P17", format!("functions in index {} must be marked IMMUTABLE", of.part()))),
        false => Ok(()),
    }
}
