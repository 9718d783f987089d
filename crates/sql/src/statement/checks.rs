//! CHECK constraints.
//!
//! 1. A constraint is kept as SQL text over the table's columns, without the table's name, and evaluated by DataFusion
//!    over all rows that a statement is about to write, before the first is written. NULL passes, as in PostgreSQL.
//! 2. It may depend on nothing but its row: no subquery, no aggregate, no parameter.
use crate::error::{from_datafusion, unsupported};
use crate::functions::domains::{self, no_nulls};
use crate::parse::stored::{self, Stored, columns_of, over_column};
use crate::plan::bind::over::{Over, Part, Rows, Wanted};
use crate::stack::on_stack_for;
use crate::statement::computed::Computing;
use crate::statement::ddl::{check_name, choose_name};
use crate::statement::foreign_keys::two_constraints;
use crate::statement::run::Run;
use crate::through::Called;
use crate::values::{check_generated_not_null, live_columns};
use datafusion::arrow::array::{Array, AsArray};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;
use terrace_engine::types::Digits;
use terrace_engine::{Check, Datum, EngineError, Isolation, Result, RowBuf, Table, TableSpec};
use terrace_engine::{Domain, DomainCheck};
use terrace_grammar::statement::{
    ColumnConstraintKind, CreateTable, Deferral, Expr, ExprKind, TableConstraintKind, Written,
};
use terrace_storage::ObjectId;

/// A bound on the depth of a table's constraints and computed columns. Statements that are not deep themselves evaluate
/// them.
fn depth(table: &Table) -> usize {
    let of_domains = table.columns.iter().filter_map(|column| column.domain.as_ref());
    let of_domains = of_domains.flat_map(|domain| domain.all_checks()).map(|check| check.sql.as_str());
    let texts = table.checks.iter().map(|check| check.sql.as_str()).chain(of_domains);
    let texts = texts.chain(table.computed().chain(table.generated()).map(|(_, text)| text));
    texts.filter_map(|text| Stored::read(text)?.depth().ok()).max().unwrap_or(0)
}

/// What rows of a table pass through before they are written, any number of times.
#[derive(Clone)]
pub(crate) struct Finishing {
    /// The conditions of the columns' domains, then the table's own.
    conditions: Arc<[Condition]>,
    checks: Option<Arc<dyn ExecutionPlan>>,
    computing: Computing,
}

/// A constraint, as it is checked.
struct Condition {
    check: Check,
    /// Whose it is, if it is a domain's.
    of: Option<(Arc<Domain>, DomainCheck)>,
}

/// Those that rows of a table must meet, domains' first.
fn conditions(table: &Table) -> Result<Vec<Condition>> {
    let mut all = vec![];
    for (_, column) in live_columns(table) {
        let Some(domain) = &column.domain else { continue };
        for check in domain.all_checks() {
            let of = Some((domain.clone(), check.clone()));
            all.push(Condition { check: over_column(check, &column.name)?, of });
        }
    }
    all.extend(table.checks.iter().map(|check| Condition { check: check.clone(), of: None }));
    Ok(all)
}

/// Values at the digits that their columns keep; or the first row with one that does not fit, and the error.
pub(crate) fn round(table: &Table, rows: &mut [&mut Vec<Datum>]) -> std::result::Result<(), (usize, EngineError)> {
    let kept: Vec<(usize, Digits)> =
        table.columns.iter().enumerate().filter_map(|(at, column)| Some((at, column.digits?))).collect();
    for (number, row) in rows.iter_mut().enumerate().filter(|_| !kept.is_empty()) {
        for &(at, digits) in &kept {
            let value = std::mem::replace(&mut row[at], Datum::Null);
            row[at] = digits.keep(value).map_err(|error| (number, error))?;
        }
    }
    Ok(())
}

/// The first row with NULL where its domain takes none.
fn null_of_domain(table: &Table, rows: &[&mut Vec<Datum>]) -> Option<(usize, EngineError)> {
    let strict: Vec<(usize, &Arc<Domain>)> = live_columns(table)
        .filter_map(|(at, column)| Some((at, column.domain.as_ref().filter(|domain| domain.takes_no_null())?)))
        .collect();
    rows.iter().enumerate().find_map(|(number, row)| {
        let (_, domain) = strict.iter().find(|(at, _)| row[*at].is_null())?;
        Some((number, no_nulls(domain)))
    })
}

/// Checks what a constraint says beside its condition: NO INHERIT, and when it is checked.
type Form = (bool, Deferral);

/// A constraint that will be made.
struct NewCheck<'n> {
    condition: &'n Written,
    form: Form,
    name: Option<&'n str>,
    /// The column that it was written with.
    column: Option<&'n str>,
}

impl NewCheck<'_> {
    fn refuse_form(&self) -> Result<()> {
        match self.form {
            (true, _) => Err(unsupported("NO INHERIT")),
            (false, deferral) if deferral != Deferral::default() => Err(unsupported("DEFERRABLE")),
            _ => Ok(()),
        }
    }
}

impl Run<'_> {
    /// Those of CREATE TABLE, checked and named.
    pub(crate) async fn new_checks(&self, create: &CreateTable, spec: &TableSpec) -> Result<Vec<Check>> {
        let table = Arc::new(Table::new(ObjectId(0), spec.name.clone(), spec.columns.clone(), vec![]));
        let mut checks: Vec<Check> = vec![];
        let taken: Vec<String> = spec.indexes.iter().map(|i| i.name.clone()).collect();
        for column in &create.columns {
            for constraint in &column.constraints {
                if let ColumnConstraintKind::Check { expr, no_inherit } = &constraint.kind {
                    let name = constraint.name.as_ref().map(|name| name.name.as_str());
                    let form = (*no_inherit, constraint.deferral);
                    let new = NewCheck { condition: expr, form, name, column: Some(&column.name.name) };
                    checks.push(self.new_check(&table, new, &checks, &taken).await?);
                }
            }
        }
        for constraint in &create.constraints {
            if let TableConstraintKind::Check { expr, no_inherit } = &constraint.kind {
                let name = constraint.name.as_ref().map(|name| name.name.as_str());
                let new = NewCheck { condition: expr, form: (*no_inherit, constraint.deferral), name, column: None };
                checks.push(self.new_check(&table, new, &checks, &taken).await?);
            }
        }
        Ok(checks)
    }

    /// `others`, `taken`: names it may not have.
    async fn new_check(
        &self,
        table: &Arc<Table>,
        new: NewCheck<'_>,
        others: &[Check],
        taken: &[String],
    ) -> Result<Check> {
        new.refuse_form()?;
        let sql = stored::constraint(&new.condition.text, &table.name)?;
        let taken = |n: &str| others.iter().any(|c| c.name == n) || taken.iter().any(|t| t == n);
        let name = match new.name.map(str::to_owned) {
            Some(given) if taken(&given) => return Err(two_constraints(&given, &table.name)),
            Some(given) => given,
            None => {
                let columns = Stored::read(&sql).map_or(vec![], |stored| columns_of(stored.expr()));
                let one = new.column.or(match columns.as_slice() {
                    [one] => Some(one.as_str()),
                    _ => None,
                });
                let parts: Vec<&str> = [table.name.as_str()].into_iter().chain(one).collect();
                choose_name(&parts, "check", &taken)
            }
        };
        check_name(&name)?;
        let sql = self.kept_check(table, &sql).await?;
        let check = Check { name, sql };
        self.check_plan(table, std::slice::from_ref(&check)).await?;
        Ok(check)
    }

    /// A column for each constraint, over the rows that the statement is given.
    pub(crate) async fn check_plan(&self, table: &Arc<Table>, checks: &[Check]) -> Result<LogicalPlan> {
        let stored = checks.iter().map(stored::of_check).collect::<Result<Vec<Stored>>>()?;
        let called = Called::so(&table.name);
        let wanted: Vec<Wanted<'_>> = stored.iter().map(|stored| Wanted::Condition(stored.expr())).collect();
        assert_eq!(wanted.len(), checks.len(), "a column for each constraint");
        self.plan_over_alone(&checking_over((table, &called), Rows::Given, wanted)).await
    }

    /// What rows of the table pass through; `None`: it has neither constraints nor computed or generated columns.
    pub(crate) async fn checking(&self, table: &Arc<Table>) -> Result<Option<Finishing>> {
        if table.is_plain() {
            return Ok(None);
        }
        let work = async {
            let conditions: Arc<[Condition]> = conditions(table)?.into();
            let texts: Vec<Check> = conditions.iter().map(|condition| condition.check.clone()).collect();
            let checks = match texts.is_empty() {
                true => None,
                false => Some(self.physical(&self.check_plan(table, &texts).await?).await?),
            };
            Ok(Some(Finishing { conditions, checks, computing: self.computing(table).await? }))
        };
        on_stack_for(depth(table), Box::pin(work)).await
    }

    /// The first row that violates a constraint, counted from 0, and the error. If none does, the rows have the values
    /// of their generated and computed columns.
    pub(crate) async fn violation_by(
        &self,
        table: &Arc<Table>,
        by: &Finishing,
        rows: &mut [&mut Vec<Datum>],
    ) -> Result<Option<(usize, EngineError)>> {
        if let Err(found) = round(table, rows) {
            return Ok(Some(found));
        }
        if let Some(found) = self.generate(table, &by.computing, rows).await? {
            return Ok(Some(found));
        }
        let null = null_of_domain(table, rows);
        let checked = null.as_ref().map_or(rows.len(), |(row, _)| *row);
        if let Some(plan) = &by.checks
            && let Some(found) = self.violation(table, by, plan.clone(), &rows[..checked]).await?
        {
            return Ok(Some(found));
        }
        if null.is_some() {
            return Ok(null);
        }
        on_stack_for(depth(table), Box::pin(self.compute_keys(table, &by.computing, rows))).await?;
        Ok(None)
    }

    /// Gives rows the values of their generated columns. Answers the first row that has NULL where there may be none.
    async fn generate(
        &self,
        table: &Arc<Table>,
        by: &Computing,
        rows: &mut [&mut Vec<Datum>],
    ) -> Result<Option<(usize, EngineError)>> {
        if !by.generates() {
            return Ok(None);
        }
        on_stack_for(depth(table), Box::pin(self.generate_rows(table, by, rows))).await?;
        if let Err(found) = round(table, rows) {
            return Ok(Some(found));
        }
        let checked = rows.iter().enumerate();
        Ok(checked.filter_map(|(at, row)| Some((at, check_generated_not_null(table, row).err()?))).next())
    }

    async fn violation(
        &self,
        table: &Arc<Table>,
        by: &Finishing,
        plan: Arc<dyn ExecutionPlan>,
        rows: &[&mut Vec<Datum>],
    ) -> Result<Option<(usize, EngineError)>> {
        let rows: Vec<RowBuf> = rows.iter().map(|row| RowBuf::encode(table, row)).collect::<Result<_>>()?;
        let rows = Arc::new(rows);
        let work = async { self.drain(self.stream_given(plan, None, rows.clone())?).await };
        let checked = on_stack_for(depth(table), Box::pin(work)).await?;
        let mut first = 0;
        for batch in checked.iter() {
            assert_eq!(batch.num_columns(), by.conditions.len(), "a column for each constraint");
            for row in 0..batch.num_rows() {
                for (column, condition) in batch.columns().iter().zip(by.conditions.iter()) {
                    let Some(passed) = column.as_boolean_opt() else { continue };
                    if passed.is_valid(row) && !passed.value(row) {
                        let error = match &condition.of {
                            Some((domain, check)) => domains::violated(domain, check),
                            None => violated(table, &condition.check, &rows[first + row]),
                        };
                        return Ok(Some((first + row, error)));
                    }
                }
            }
            first += batch.num_rows();
        }
        assert_eq!(first, rows.len(), "invariant 1: every row has been checked");
        Ok(None)
    }

    /// ALTER TABLE ADD CHECK: checks the rows that exist, too. The transaction has the table for itself alone.
    pub(crate) async fn add_check(
        &self,
        table: &Arc<Table>,
        condition: &Written,
        form: Form,
        name: Option<&str>,
        column: Option<&str>,
    ) -> Result<Arc<Table>> {
        let level = match self.cell.lock().await.open().isolation() {
            Isolation::ReadCommitted => None,
            Isolation::RepeatableRead => Some("REPEATABLE READ"),
            Isolation::Serializable => Some("SERIALIZABLE"),
        };
        if let Some(level) = level {
            // Its snapshot may not have the newest rows.
            return Err(unsupported(format!("adding a check constraint in a {level} transaction")));
        }
        let keys = table.indexes.iter().filter(|index| index.is_constraint()).map(|index| index.name.clone());
        let taken: Vec<String> = keys.chain(table.foreign_keys.iter().map(|key| key.name.clone())).collect();
        let new = NewCheck { condition, form, name, column };
        let new = self.new_check(table, new, &table.checks, &taken).await?;
        let broken = stored::of_check(&new)?.expr().clone();
        let broken = Expr { at: broken.at, kind: ExprKind::Not(Box::new(broken)) };
        let called = Called::so(&table.name);
        let over = Over { filter: Some(&broken), ..checking_over((table, &called), Rows::All, vec![Wanted::Row]) };
        let plan = LogicalPlanBuilder::from(self.plan_over(&over).await?).limit(0, Some(1));
        let plan = plan.and_then(LogicalPlanBuilder::build).map_err(from_datafusion)?;
        if self.collect(&plan, None).await?.iter().any(|b| b.num_rows() > 0) {
            let (c, t) = (&new.name, &table.name);
            let message = format!("check constraint \"{c}\" of relation \"{t}\" is violated by some row");
            return Err(EngineError::new("23514", message).on_table(table).on_constraint(c));
        }
        let checks = table.checks.iter().cloned().chain([new]).collect();
        self.set_checks(table, checks).await
    }

    pub(crate) async fn set_checks(&self, table: &Table, checks: Vec<Check>) -> Result<Arc<Table>> {
        self.follow_checks(table, &checks).await?;
        let set = async { self.cell.lock().await.open().set_checks(table, checks).await };
        self.cancel.run(set).await
    }
}

pub(crate) fn checking_over<'q>(
    (table, called): (&'q Arc<Table>, &'q Called),
    rows: Rows,
    wanted: Vec<Wanted<'q>>,
) -> Over<'q> {
    let (part, filter) = (Part::Check, None);
    Over {
        table,
        called,
        rows,
        part,
        with: None,
        from: &[],
        given: None,
        beside: &[],
        filter,
        order: &[],
        wanted,
        kept: true,
    }
}

fn violated(table: &Table, check: &Check, row: &RowBuf) -> EngineError {
    let view = row.view(table);
    let values = live_columns(table).map(|(at, _)| (at, crate::values::show(&view.get(at).to_datum())));
    let (c, t) = (&check.name, &table.name);
    EngineError::new("23514", format!("new row for relation \"{t}\" violates check constraint \"{c}\""))
        .with_row(table, values.collect())
        .on_table(table)
        .on_constraint(c)
}
