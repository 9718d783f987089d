//! Locking queries in the WHERE of UPDATE and DELETE, as workers use them to take a job:
//! `UPDATE jobs SET ... WHERE id = (SELECT id FROM jobs ... ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)`.
//!
//! 1. Such a query runs before the statement, once and to its end. What it locks stays locked to the transaction's end,
//!    whether or not the statement then changes it.
//! 2. What it answers stands in the statement as parameters: a row that is evaluated again (READ COMMITTED) meets the
//!    same values, and keys are looked up in their index.
//! 3. It is a value, or the list of IN (`= ANY (SELECT ...)` and `= ANY (ARRAY(SELECT ...))` are IN), and refers to
//!    nothing outside of it.
use super::LockedRows;
use crate::error::{from_datafusion, unsupported};
use crate::memory::{LISTED, row_bytes};
use crate::parse::locking::{queries, replaced};
use crate::plan::planner::Planner;
use crate::statement::run::Run;
use crate::values::{array_datum, engine_array, field_type};
use datafusion::arrow::array::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::sql::sqlparser::ast::{Expr, Query, Statement, Value};
use terrace_engine::{DataType, Datum, EngineError, Result};

/// Of a condition that could be planned: 0A000 where a locking query in it cannot be planned alone.
pub(crate) async fn refuse_correlated(
    planner: &Planner<'_>,
    condition: &Option<Expr>,
    types: &[Option<DataType>],
) -> Result<()> {
    for (query, _) in queries(condition) {
        let planned = planner.plan(Statement::Query(Box::new(query)), types).await;
        planned.map_err(|error| match error.state.0 {
            "42703" | "42P01" => unsupported("FOR UPDATE in a subquery that refers to the statement's tables")
                .with_hint("Lock the rows with a SELECT of their own before."),
            _ => error,
        })?;
    }
    Ok(())
}

/// A condition whose locking queries have run, and all parameters that it then has.
pub(crate) struct Settled {
    pub(crate) condition: Option<Expr>,
    parameters: Vec<Datum>,
    types: Vec<DataType>,
    /// What the values take.
    _memory: MemoryReservation,
}

impl Settled {
    pub(crate) fn run<'s>(&'s self, run: &Run<'s>) -> Run<'s> {
        Run { parameters: &self.parameters, types: &self.types, ..*run }
    }
}

impl Run<'_> {
    /// Runs a condition's locking queries; `None`: it has none.
    pub(crate) async fn settle(&self, condition: &Option<Expr>) -> Result<Option<Settled>> {
        let queries = queries(condition);
        if queries.is_empty() {
            return Ok(None);
        }
        let (mut parameters, mut types) = (self.parameters.to_vec(), self.types.to_vec());
        let mut values = vec![];
        let memory = self.memory("values of rows that are locked");
        for (query, is_list) in queries {
            let (data_type, mut found) = self.values_of(&query).await?;
            match found.len() {
                0 if !is_list => found.push(Datum::Null),
                0 | 1 => {}
                _ if is_list => {}
                _ => {
                    let message = "more than one row returned by a subquery used as an expression";
                    return Err(EngineError::new("21000", message));
                }
            }
            memory.try_grow(row_bytes(&found) + found.len() * LISTED as usize).map_err(from_datafusion)?;
            let first = parameters.len() + 1;
            parameters.extend(found);
            types.resize(parameters.len(), data_type);
            let placeholder = |n: usize| Expr::Value(Value::Placeholder(format!("${n}")).into());
            values.push((first..=parameters.len()).map(placeholder).collect());
        }
        assert_eq!(parameters.len(), types.len(), "invariant 2: each value stands as a parameter of its type");
        Ok(Some(Settled { condition: replaced(condition, values), parameters, types, _memory: memory }))
    }

    /// What the one column of a locking query holds in the rows that it locks.
    async fn values_of(&self, query: &Query) -> Result<(DataType, Vec<Datum>)> {
        let LockedRows { schema, rows, memory: _counted } = Box::pin(self.lock_rows(query)).await?;
        let [field] = schema.fields().as_ref() else {
            return Err(EngineError::new("42601", "subquery must return only one column"));
        };
        let data_type = field_type(field)
            .ok_or_else(|| unsupported(format!("values of type {} from FOR UPDATE", field.data_type())))?;
        let value = |row: &RecordBatch| Ok(array_datum(&engine_array(row.column(0))?, 0));
        Ok((data_type, rows.iter().map(value).collect::<Result<_>>()?))
    }
}
