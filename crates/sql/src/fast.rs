//! Statements on one row by the full key of a unique index, run straight on the engine: SELECT of columns, UPDATE with simple
//! expressions, DELETE. They are most of what a transactional client sends, and planning them costs many times what they do.
//!
//! 1. Recognised once, against one version of the catalogue; another version recognises again, or takes the general way.
//! 2. The answer is the general way's, in values, types, names and errors. What is not certain to be is not recognised.
use crate::arithmetic::float_result;
use crate::dml::{check_not_null, delete_target, is_default, update_target};
use crate::error::from_arrow;
use crate::insert::literal;
use crate::naming::shown;
use crate::parse::{fold, type_parameter};
use crate::values::{ColumnBuilder, assign_datum, field_of, live_columns};
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, ObjectName, Query, SelectItem, SetExpr, Statement, TableAlias, TableFactor, Value,
};
use std::sync::Arc;
use terrace_engine::{Catalog, DataType, Datum, EngineError, Index, Result, RowBuf, Table, Txn, UpdateOutcome};

/// A value known when the statement is bound.
#[derive(Clone, Debug)]
enum Given {
    Constant(Datum),
    /// Its number from 0, and the column's type it is assigned to.
    Parameter(usize, DataType),
}

/// A new value of a column.
#[derive(Debug)]
enum NewValue {
    Given(Given),
    /// Another column, or the same, as it was.
    Column(usize),
    /// `column op value` on numbers; `flipped`: `value op column`.
    Computed {
        column: usize,
        op: Arithmetic,
        value: Given,
        flipped: bool,
    },
}

#[derive(Clone, Copy, Debug)]
enum Arithmetic {
    Add,
    Subtract,
    Multiply,
}

#[derive(Debug)]
enum Action {
    Select { columns: Vec<usize>, schema: SchemaRef },
    Update(Vec<(usize, NewValue)>),
    Delete,
}

#[derive(Debug)]
pub(crate) struct Fast {
    /// Of the catalogue it was recognised against.
    pub(crate) version: u64,
    table: Arc<Table>,
    index: Arc<Index>,
    /// In the index's order.
    key: Vec<Given>,
    action: Action,
}

pub(crate) enum FastDone {
    Rows(RecordBatch),
    Tag(String),
}

/// The table of a statement, with the name its columns may be qualified by.
struct Scope<'a> {
    table: &'a Arc<Table>,
    alias: String,
    types: &'a mut Vec<Option<DataType>>,
}

/// `types`: the parameters' as stated; those of a recognised statement are completed.
pub(crate) fn recognise(ast: &Statement, catalog: &Catalog, types: &mut Vec<Option<DataType>>) -> Option<Fast> {
    let mut completed = types.clone();
    let fast = match ast {
        Statement::Query(query) => select(query, catalog, &mut completed),
        Statement::Update(update) => {
            update_target(update).ok()?;
            (update.from.is_none() && update.returning.is_none()).then_some(())?;
            let (table, alias) = plain_table(&update.table.relation, catalog)?;
            table.checks.is_empty().then_some(())?;
            let mut scope = Scope { table: &table, alias, types: &mut completed };
            let (index, key) = scope.key(update.selection.as_ref()?)?;
            let mut sets: Vec<(usize, NewValue)> = vec![];
            for (column, value) in crate::dml::assignments(&update.assignments).ok()? {
                let at = table.column(&fold(&column))?;
                sets.iter().all(|(other, _)| *other != at).then_some(())?;
                sets.push((at, scope.new_value(at, &value)?));
            }
            Some(Fast { version: catalog.version(), index, key, action: Action::Update(sets), table })
        }
        Statement::Delete(delete) => {
            delete_target(delete).ok()?;
            (delete.using.is_none() && delete.returning.is_none()).then_some(())?;
            let datafusion::sql::sqlparser::ast::FromTable::WithFromKeyword(from) = &delete.from else { return None };
            let (table, alias) = plain_table(&from.first()?.relation, catalog)?;
            let mut scope = Scope { table: &table, alias, types: &mut completed };
            let (index, key) = scope.key(delete.selection.as_ref()?)?;
            Some(Fast { version: catalog.version(), index, key, action: Action::Delete, table })
        }
        _ => None,
    }?;
    completed.iter().all(Option::is_some).then_some(())?;
    *types = completed;
    Some(fast)
}

fn select(query: &Query, catalog: &Catalog, types: &mut Vec<Option<DataType>>) -> Option<Fast> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    // Rebuilt from what is understood: whatever else the query says makes it differ.
    let mut plain = crate::parse::parse_one("SELECT 1").ok()??;
    if let Statement::Query(plain_query) = &mut plain
        && let SetExpr::Select(plain_select) = plain_query.body.as_mut()
    {
        plain_select.projection = select.projection.clone();
        plain_select.from = select.from.clone();
        plain_select.selection = select.selection.clone();
        if plain_query.as_ref() != query {
            return None;
        }
    }
    let [from] = select.from.as_slice() else { return None };
    from.joins.is_empty().then_some(())?;
    let (table, alias) = plain_table(&from.relation, catalog)?;
    let mut scope = Scope { table: &table, alias, types };
    let (index, key) = scope.key(select.selection.as_ref()?)?;
    let (mut columns, mut fields) = (vec![], vec![]);
    let mut add = |at: usize, name: &str| {
        columns.push(at);
        fields.push(field_of(shown(name), table.columns[at].data_type, true));
    };
    for item in &select.projection {
        match item {
            SelectItem::Wildcard(options) if options.to_string().is_empty() => {
                live_columns(&table).for_each(|(at, column)| add(at, &column.name));
            }
            SelectItem::UnnamedExpr(expr) => {
                let at = scope.column(expr)?;
                add(at, &table.columns[at].name);
            }
            SelectItem::ExprWithAlias { expr, alias } => add(scope.column(expr)?, &fold(alias)),
            _ => return None,
        }
    }
    let action = Action::Select { columns, schema: Arc::new(Schema::new(fields)) };
    Some(Fast { version: catalog.version(), index, key, action, table })
}

/// A user's table, named plainly: nothing but a name in `public` and an alias without columns.
fn plain_table(factor: &TableFactor, catalog: &Catalog) -> Option<(Arc<Table>, String)> {
    let TableFactor::Table { name, alias, .. } = factor else { return None };
    let plain = match alias {
        Some(TableAlias { name: alias, .. }) => format!("SELECT 1 FROM {name} AS {alias}"),
        None => format!("SELECT 1 FROM {name}"),
    };
    let Statement::Query(plain) = crate::parse::parse_one(&plain).ok()?? else { return None };
    let plain = match *plain.body {
        SetExpr::Select(mut select) => select.from.pop()?.relation,
        _ => return None,
    };
    // AS may be written or not.
    if plain.to_string().replace(" AS ", " ") != factor.to_string().replace(" AS ", " ") {
        return None;
    }
    let folded = public_name(name)?;
    let alias = alias.as_ref().map_or_else(|| folded.clone(), |a| fold(&a.name));
    Some((catalog.table(&folded)?.clone(), alias))
}

/// An unqualified name may be one of pg_catalog's, which come first; those begin with pg_, and no user's table does.
fn public_name(name: &ObjectName) -> Option<String> {
    let parts: Vec<String> = name.0.iter().map(|p| p.as_ident().map(fold)).collect::<Option<_>>()?;
    match parts.as_slice() {
        [table] => Some(table.clone()),
        [schema, table] if schema == "public" => Some(table.clone()),
        _ => None,
    }
}

impl Scope<'_> {
    fn column(&self, expr: &Expr) -> Option<usize> {
        let name: &Ident = match expr {
            Expr::Identifier(name) => name,
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, name] if fold(table) == self.alias => name,
                _ => return None,
            },
            _ => return None,
        };
        self.table.column(&fold(name))
    }

    /// The unique index whose columns the condition sets equal to given values, all of them, and nothing else.
    fn key(&mut self, condition: &Expr) -> Option<(Arc<Index>, Vec<Given>)> {
        let mut equal: Vec<(usize, Given)> = vec![];
        let mut terms = vec![condition];
        while let Some(term) = terms.pop() {
            match term {
                Expr::Nested(inner) => terms.push(inner),
                Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                    terms.extend([left.as_ref(), right.as_ref()])
                }
                Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
                    let (at, value) = match (self.column(left), self.column(right)) {
                        (Some(at), None) => (at, right),
                        (None, Some(at)) => (at, left),
                        _ => return None,
                    };
                    equal.iter().all(|(other, _)| *other != at).then_some(())?;
                    equal.push((at, self.key_value(at, value)?));
                }
                _ => return None,
            }
        }
        let matches = |index: &&Arc<Index>| {
            index.unique
                && index.columns.len() == equal.len()
                && index.columns.iter().all(|c| equal.iter().any(|(at, _)| at == c))
        };
        let index = self.table.indexes.iter().find(matches)?.clone();
        let given = |column: &usize| equal.iter().find(|(at, _)| at == column).map(|(_, given)| given.clone());
        let key = index.columns.iter().map(given).collect::<Option<Vec<Given>>>()?;
        Some((index, key))
    }

    /// A value that is compared: exactly of the column's type, or of none yet.
    fn key_value(&mut self, at: usize, value: &Expr) -> Option<Given> {
        let column = &self.table.columns[at];
        // Equality of floats is DataFusion's affair; a value for varchar or char would be cut to length, for numeric rounded.
        let inexact = matches!(
            column.data_type,
            DataType::Float4
                | DataType::Float8
                | DataType::Varchar(_)
                | DataType::Char(_)
                | DataType::Int2
                | DataType::Numeric(_)
        );
        if inexact {
            return None;
        }
        let is_text = column.data_type == DataType::Text;
        let is_integer = is_integer(column.data_type);
        if let Some(parameter) = self.parameter(value, column.data_type) {
            return Some(parameter);
        }
        let constant = match value {
            Expr::Value(v) => match &v.value {
                Value::Number(text, false) if is_integer && text.parse::<i64>().is_ok() => {
                    literal(value, column)?.ok()?
                }
                Value::SingleQuotedString(_) if is_text => literal(value, column)?.ok()?,
                Value::Boolean(_) if column.data_type == DataType::Bool => literal(value, column)?.ok()?,
                _ => return None,
            },
            Expr::UnaryOp { .. } if is_integer => match literal(value, column)?.ok()? {
                datum if !value.to_string().contains(['.', 'e', 'E']) => datum,
                _ => return None,
            },
            _ => return None,
        };
        Some(Given::Constant(constant))
    }

    /// A parameter whose type is this, or open: then it is this from now on.
    fn parameter(&mut self, value: &Expr, data_type: DataType) -> Option<Given> {
        let Expr::Value(v) = value else { return None };
        let Value::Placeholder(name) = &v.value else { return None };
        let number: usize = name.strip_prefix('$')?.parse().ok()?;
        type_parameter(value, data_type, self.types).then_some(())?;
        (self.types[number - 1] == Some(data_type)).then_some(Given::Parameter(number - 1, data_type))
    }

    fn new_value(&mut self, at: usize, value: &Expr) -> Option<NewValue> {
        let column = &self.table.columns[at];
        if is_default(value) {
            return match &column.default_sql {
                None => Some(NewValue::Given(Given::Constant(Datum::Null))),
                Some(_) => {
                    let default = crate::dml::default_of(self.table, at).ok()?;
                    Some(NewValue::Given(Given::Constant(literal(&default, column)?.ok()?)))
                }
            };
        }
        match value {
            Expr::Nested(inner) => self.new_value(at, inner),
            Expr::BinaryOp { left, op, right } => {
                let op = match op {
                    BinaryOperator::Plus => Arithmetic::Add,
                    BinaryOperator::Minus => Arithmetic::Subtract,
                    BinaryOperator::Multiply => Arithmetic::Multiply,
                    _ => return None,
                };
                let (operand, given, flipped) = match (self.column(left), self.column(right)) {
                    (Some(operand), None) => (operand, right, false),
                    (None, Some(operand)) => (operand, left, true),
                    _ => return None,
                };
                let operand_type = self.table.columns[operand].data_type;
                // Integers stay integers and floats floats: no rounding in between.
                let fits = match operand_type {
                    DataType::Float8 => column.data_type == DataType::Float8,
                    integer => is_integer(integer) && is_integer(column.data_type),
                };
                fits.then_some(())?;
                let value = self.operand(given, operand, operand_type)?;
                Some(NewValue::Computed { column: operand, op, value, flipped })
            }
            value => {
                if let Some(other) = self.column(value) {
                    let from = self.table.columns[other].data_type;
                    let integers = is_integer(from) && is_integer(column.data_type);
                    return (integers || from == column.data_type).then_some(NewValue::Column(other));
                }
                if let Some(parameter) = self.parameter(value, column.data_type) {
                    return Some(NewValue::Given(parameter));
                }
                Some(NewValue::Given(Given::Constant(literal(value, column)?.ok()?)))
            }
        }
    }

    /// A number beside a column in arithmetic.
    fn operand(&mut self, value: &Expr, column: usize, data_type: DataType) -> Option<Given> {
        if let Some(parameter) = self.parameter(value, data_type) {
            return Some(parameter);
        }
        let Expr::Value(v) = value else { return None };
        let Value::Number(text, false) = &v.value else { return None };
        match data_type {
            DataType::Float8 => Some(Given::Constant(literal(value, &self.table.columns[column])?.ok()?)),
            // As PostgreSQL types it.
            _ => Some(Given::Constant(match text.parse::<i32>() {
                Ok(small) => Datum::Int4(small),
                Err(_) => Datum::Int8(text.parse().ok()?),
            })),
        }
    }
}

fn is_integer(data_type: DataType) -> bool {
    matches!(data_type, DataType::Int4 | DataType::Int8)
}

impl Given {
    fn value(&self, parameters: &[Datum]) -> Result<Datum> {
        match self {
            Given::Constant(datum) => Ok(datum.clone()),
            Given::Parameter(number, data_type) => assign_datum(parameters[*number].clone(), *data_type),
        }
    }
}

impl NewValue {
    fn value(&self, row: &[Datum], to: DataType, parameters: &[Datum]) -> Result<Datum> {
        let value = match self {
            NewValue::Given(given) => given.value(parameters)?,
            NewValue::Column(other) => row[*other].clone(),
            NewValue::Computed { column, op, value, flipped } => {
                let (column, value) = (row[*column].clone(), value.value(parameters)?);
                let (left, right) = if *flipped { (value, column) } else { (column, value) };
                compute(*op, left, right)?
            }
        };
        assign_datum(value, to)
    }
}

/// Of two integers, or two floats; NULL with anything is NULL.
fn compute(op: Arithmetic, left: Datum, right: Datum) -> Result<Datum> {
    let both_int4 = matches!((&left, &right), (Datum::Int4(_), Datum::Int4(_)));
    let integer = |datum: &Datum| match datum {
        Datum::Int4(v) => Some(i64::from(*v)),
        Datum::Int8(v) => Some(*v),
        _ => None,
    };
    if let (Some(a), Some(b)) = (integer(&left), integer(&right)) {
        let result = match op {
            Arithmetic::Add => a.checked_add(b),
            Arithmetic::Subtract => a.checked_sub(b),
            Arithmetic::Multiply => a.checked_mul(b),
        };
        return match result {
            Some(v) if both_int4 => i32::try_from(v).map(Datum::Int4).map_err(|_| EngineError::out_of_range("integer")),
            Some(v) => Ok(Datum::Int8(v)),
            None => Err(EngineError::out_of_range("bigint")),
        };
    }
    Ok(match (left, right) {
        (Datum::Null, _) | (_, Datum::Null) => Datum::Null,
        (Datum::Float8(a), Datum::Float8(b)) => {
            let (result, vanishes) = match op {
                Arithmetic::Add => (a + b, false),
                Arithmetic::Subtract => (a - b, false),
                Arithmetic::Multiply => (a * b, a != 0.0 && b != 0.0),
            };
            Datum::Float8(float_result(result, a.is_infinite() || b.is_infinite(), vanishes)?)
        }
        (a, b) => unreachable!("recognised as numbers of one kind: {a:?}, {b:?}"),
    })
}

impl Fast {
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    pub(crate) fn writes(&self) -> bool {
        !matches!(self.action, Action::Select { .. })
    }

    /// Result columns, as [`crate::Prepared::columns`].
    pub(crate) fn columns(&self) -> Option<SchemaRef> {
        match &self.action {
            Action::Select { schema, .. } => Some(schema.clone()),
            _ => None,
        }
    }

    /// `None`: the index is younger than the snapshot; the general way reads without it. The table is locked.
    pub(crate) async fn run(&self, txn: &mut Txn, parameters: &[Datum]) -> Result<Option<FastDone>> {
        if !txn.can_use_index(&self.index) {
            return Ok(None);
        }
        let key = self.key.iter().map(|given| given.value(parameters)).collect::<Result<Vec<Datum>>>()?;
        let found = match key.contains(&Datum::Null) {
            // Nothing equals NULL.
            true => None,
            false => txn.get(&self.table, &self.index, &key).await?,
        };
        Ok(Some(match &self.action {
            Action::Select { columns, schema } => FastDone::Rows(self.batch(columns, schema, found.map(|f| f.1))?),
            Action::Update(sets) => {
                let changed = match found {
                    Some((rid, row, version)) => {
                        self.change(txn, (rid, row, version), &key, Some(sets), parameters).await?
                    }
                    None => false,
                };
                FastDone::Tag(format!("UPDATE {}", changed as u8))
            }
            Action::Delete => {
                let changed = match found {
                    Some(found) => self.change(txn, found, &key, None, parameters).await?,
                    None => false,
                };
                FastDone::Tag(format!("DELETE {}", changed as u8))
            }
        }))
    }

    fn batch(&self, columns: &[usize], schema: &SchemaRef, row: Option<RowBuf>) -> Result<RecordBatch> {
        let mut builders: Vec<ColumnBuilder> =
            columns.iter().map(|at| ColumnBuilder::new(self.table.columns[*at].data_type, 1)).collect();
        if let Some(row) = &row {
            let view = row.view(&self.table);
            columns.iter().zip(&mut builders).for_each(|(at, builder)| builder.push(view.get(*at)));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(row.is_some() as usize));
        let arrays = builders.into_iter().map(ColumnBuilder::finish).collect();
        RecordBatch::try_new_with_options(schema.clone(), arrays, &options).map_err(from_arrow)
    }

    /// Updates (`sets`) or deletes the row, evaluating the statement again on each newer version that another transaction
    /// has committed meanwhile. Whether it did.
    async fn change(
        &self,
        txn: &mut Txn,
        (rid, mut row, mut version): (terrace_storage::Rid, RowBuf, terrace_engine::Version),
        key: &[Datum],
        sets: Option<&Vec<(usize, NewValue)>>,
        parameters: &[Datum],
    ) -> Result<bool> {
        loop {
            let old = row.view(&self.table).to_datums();
            if self.index.columns.iter().zip(key).any(|(at, value)| old[*at] != *value) {
                return Ok(false);
            }
            let outcome = match sets {
                Some(sets) => {
                    let mut new = old.clone();
                    for (at, value) in sets {
                        new[*at] = value.value(&old, self.table.columns[*at].data_type, parameters)?;
                    }
                    check_not_null(&self.table, &new)?;
                    txn.update(&self.table, rid, version, &new).await?
                }
                None => txn.delete(&self.table, rid, version).await?,
            };
            match outcome {
                UpdateOutcome::Done => return Ok(true),
                UpdateOutcome::Gone => return Ok(false),
                UpdateOutcome::Changed { row: newest, version: newer } => (row, version) = (newest, newer),
            }
        }
    }
}
