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
use crate::plan::planner::Planner;
use crate::statement::run::Run;
use crate::values::{array_datum, engine_array, field_type};
use datafusion::arrow::array::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use terrace_engine::{DataType, Datum, EngineError, Result};
use terrace_grammar::statement::{
    Expr, ExprKind, Literal, Members, Node, Quantifier, Query, TypeName, children_mut, walk,
};

/// The locking query that an expression is the value or the list of, and whether it is a list.
fn locking(expr: &Expr) -> Option<(&Query, bool)> {
    let (query, is_list) = match &expr.kind {
        ExprKind::Scalar(query) => (query.as_ref(), false),
        ExprKind::InQuery { query, .. } => (query.as_ref(), true),
        ExprKind::Quantified { op, quantifier: Quantifier::Any, left: _, right }
            if op.schema.is_empty() && op.symbol == "=" =>
        {
            match right {
                Members::Query(query) => (query.as_ref(), true),
                Members::Array(array) => (array_query(array)?, true),
            }
        }
        _ => return None,
    };
    (!query.locking.is_empty()).then_some((query, is_list))
}

/// The query whose rows an array is made of. Its type may be written behind it.
fn array_query(array: &Expr) -> Option<&Query> {
    match &array.kind {
        ExprKind::ArrayQuery(query) => Some(query),
        ExprKind::Cast { arg, to, .. } if to.dimensions.len() == 1 => array_query(arg),
        _ => None,
    }
}

/// The locking queries of a condition, in the order in which [`replaced`] takes their values; whether each is a list.
/// Those within another query are not the statement's own.
pub(crate) fn queries(condition: Option<&Expr>) -> Vec<(&Query, bool)> {
    let mut found = vec![];
    if let Some(condition) = condition {
        walk(Node::Expr(condition), &mut |node| match node {
            Node::Query(_) => false,
            Node::Expr(expr) => match locking(expr) {
                None => true,
                Some(query) => {
                    found.push(query);
                    false
                }
            },
        });
    }
    found
}

/// The condition with something else in place of each expression that a locking query is in.
fn replaced(condition: &Expr, with: &mut dyn FnMut(&mut Expr)) -> Expr {
    fn replace(expr: &mut Expr, with: &mut dyn FnMut(&mut Expr)) {
        match locking(expr) {
            Some(_) => with(expr),
            None => children_mut(expr, &mut |child| replace(child, with)),
        }
    }
    let mut condition = condition.clone();
    replace(&mut condition, with);
    condition
}

/// A condition whose queries lock nothing: for what is only described.
pub(crate) fn without_locks(condition: &Expr) -> Expr {
    replaced(condition, &mut |expr| match &mut expr.kind {
        ExprKind::Scalar(query) | ExprKind::InQuery { query, .. } => query.locking.clear(),
        ExprKind::Quantified { right: Members::Query(query), .. } => query.locking.clear(),
        ExprKind::Quantified { right: right @ Members::Array(_), .. } => {
            let Members::Array(array) = &*right else { unreachable!("matched above") };
            let query = array_query(array).expect("a locking query is in it");
            // `= ANY (SELECT ...)` asks the same.
            *right = Members::Query(Box::new(Query { locking: vec![], ..query.clone() }));
        }
        other => unreachable!("{other:?} has no locking query"),
    })
}

/// Puts parameters in the place of a locking query.
fn stand_in(expr: &mut Expr, mut list: Vec<Expr>) {
    let at = expr.at;
    let (arg, negated, word_at) = match std::mem::replace(&mut expr.kind, ExprKind::Literal(Literal::Null)) {
        ExprKind::InQuery { arg, negated, word_at, .. } => (arg, negated, word_at),
        ExprKind::Quantified { left, op, right, .. } => {
            if let Members::Array(array) = right {
                list.iter_mut().for_each(|item| cast_as(item, &array));
            }
            (left, false, op.at)
        }
        _ => {
            expr.kind = list.pop().expect("a value has one, NULL where there is no row").kind;
            return;
        }
    };
    expr.kind = match list.is_empty() {
        true => ExprKind::Literal(Literal::Bool(negated)),
        false => ExprKind::InList { arg, list, negated, word_at },
    };
    expr.at = at;
}

/// An item of an array, with the type that is written behind the array.
fn cast_as(item: &mut Expr, array: &Expr) {
    let ExprKind::Cast { arg, to, word_at } = &array.kind else { return };
    cast_as(item, arg);
    let to = Box::new(TypeName { dimensions: vec![], ..to.as_ref().clone() });
    let arg = Box::new(item.clone());
    item.kind = ExprKind::Cast { arg, to, word_at: *word_at };
}

/// Of a condition that could be planned: 0A000 where a locking query in it cannot be planned alone.
pub(crate) fn refuse_correlated(
    planner: &Planner<'_>,
    condition: Option<&Expr>,
    types: &[Option<DataType>],
) -> Result<()> {
    for (query, _) in queries(condition) {
        let query = Query { locking: vec![], ..query.clone() };
        planner.plan_tree(&query, types).map_err(|error| match error.state.0 {
            "42703" | "42P01" => unsupported("FOR UPDATE in a subquery that refers to the statement's tables")
                .with_hint("Lock the rows with a SELECT of their own before."),
            _ => error,
        })?;
    }
    Ok(())
}

/// A condition whose locking queries have run, and all parameters that it then has.
pub(crate) struct Settled<'q> {
    /// As it is written, where nothing in it locks.
    written: Option<&'q Expr>,
    changed: Option<Changed>,
}

struct Changed {
    condition: Expr,
    parameters: Vec<Datum>,
    types: Vec<DataType>,
    /// What the values take.
    _memory: MemoryReservation,
}

impl Settled<'_> {
    pub(crate) fn condition(&self) -> Option<&Expr> {
        match &self.changed {
            Some(changed) => Some(&changed.condition),
            None => self.written,
        }
    }

    pub(crate) fn run<'s>(&'s self, run: &Run<'s>) -> Run<'s> {
        match &self.changed {
            Some(changed) => Run { parameters: &changed.parameters, types: &changed.types, generics: None, ..*run },
            None => Run { ..*run },
        }
    }
}

impl Run<'_> {
    /// Runs a condition's locking queries.
    pub(crate) async fn settle<'q>(&self, condition: Option<&'q Expr>) -> Result<Settled<'q>> {
        let queries = queries(condition);
        let Some(written) = condition.filter(|_| !queries.is_empty()) else {
            return Ok(Settled { written: condition, changed: None });
        };
        let (mut parameters, mut types) = (self.parameters.to_vec(), self.types.to_vec());
        let mut values = vec![];
        let memory = self.memory("values of rows that are locked");
        for (query, is_list) in queries {
            let (data_type, mut found) = self.values_of(query).await?;
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
            let parameter = |n: usize| Expr { at: query.at, kind: ExprKind::Parameter(n as u32) };
            values.push((first..=parameters.len()).map(parameter).collect::<Vec<Expr>>());
        }
        assert_eq!(parameters.len(), types.len(), "invariant 2: each value stands as a parameter of its type");
        let mut values = values.into_iter();
        let mut next = || values.next().expect("values for each query that was found");
        let condition = replaced(written, &mut |expr| stand_in(expr, next()));
        assert!(values.next().is_none(), "values for each query that was found, and no more");
        Ok(Settled { written: None, changed: Some(Changed { condition, parameters, types, _memory: memory }) })
    }

    /// What the one column of a locking query holds in the rows that it locks.
    async fn values_of(&self, query: &Query) -> Result<(DataType, Vec<Datum>)> {
        let LockedRows { schema, rows, memory: _counted } = Box::pin(self.lock_rows(query, false)).await?;
        let [field] = schema.fields().as_ref() else {
            return Err(EngineError::new("42601", "subquery must return only one column"));
        };
        let data_type = field_type(field)
            .ok_or_else(|| unsupported(format!("values of type {} from FOR UPDATE", field.data_type())))?;
        let value = |row: &RecordBatch| Ok(array_datum(&engine_array(row.column(0))?, 0));
        Ok((data_type, rows.iter().map(value).collect::<Result<_>>()?))
    }
}
