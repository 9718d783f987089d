//! Rows as values: those that are written out, those of tables, and those of composite types; their fields.
//!
//! 1. Rows that are both written out are compared column by column ([`super::rows`]). Any other two are compared as
//!    values are, by what has PostgreSQL's order of records: there NULL equals NULL, and is above all else.
//! 2. A row that is written out and becomes one of a composite type becomes it field by field: a quoted literal takes
//!    its attribute's type.
use super::from::columns;
use super::scope::{Clause, Scope};
use super::types::read_now;
use super::{Binder, Placed, Result, fail, unsupported, wrong};
use crate::cast::{LOOSE, castable};
use crate::functions::builtin::type_name;
use crate::functions::chars::with_blanks;
use crate::functions::convert::is_open;
use crate::functions::json::make::{self, Made};
use crate::functions::rows as functions;
use crate::plan::operators::{array, with_operator_hint};
use crate::plan::rules::is_volatile;
use crate::values::arrays::{is_array, is_row, row_fields};
use crate::values::rows::{cannot_convert, check_count};
use crate::values::{arrow_type, engine_type, field_type};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Fields};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, when};
use std::borrow::Cow;
use terrace_engine::types::CompositeType;
use terrace_engine::{ColumnDef, DataType, EngineError};
use terrace_grammar::statement::{self as tree, At, ExprKind};

/// Fields of a row, as many as a table may have columns.
const MOST_FIELDS: usize = 1664;

/// How a row becomes one of a composite type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Becomes {
    /// By a cast that is written.
    Cast,
    /// The value of a column.
    Assigned,
}

impl Binder<'_> {
    /// A row of no type, as a value.
    pub(super) fn record(&self, fields: &[tree::Expr], scope: &Scope<'_>) -> Result<Expr> {
        let mut values = vec![];
        for field in fields {
            match &field.kind {
                ExprKind::Star(_) | ExprKind::AllFields(_) => {
                    let item = tree::Item { expr: field.clone(), alias: None };
                    values.extend(self.items(std::slice::from_ref(&item), scope)?.1);
                }
                _ => values.push(self.expr(field, scope)?),
            }
        }
        if values.is_empty() {
            return unsupported("a row without columns");
        }
        if values.len() > MOST_FIELDS {
            let message = format!("ROW expressions can have at most {MOST_FIELDS} entries");
            return Err(EngineError::new("54011", message).into());
        }
        refuse_loose(&values, &scope.schema)?;
        values.iter().for_each(|value| self.asks_null(value));
        let names = (1..=values.len()).map(|number| format!("f{number}")).collect();
        self.made(make::call(Made::Row(names), false, "", values), &scope.schema)
    }

    /// Rows, or arrays of them, that are written out, as values of a type; `None`: they are not.
    pub(super) fn written_as(
        &self,
        value: &tree::Expr,
        to: DataType,
        by: Becomes,
        scope: &Scope<'_>,
    ) -> Result<Option<Expr>> {
        match (&value.kind, to, to.item()) {
            (_, DataType::Composite(of), _) => self.row_of(value, of, by, scope),
            (ExprKind::Array(items), _, Some(item @ DataType::Composite(_)))
                if by == Becomes::Cast && items.iter().any(super::expr::is_row) =>
            {
                let mut made = vec![];
                for value in items {
                    made.push(match self.written_as(value, item, by, scope)? {
                        Some(row) => row,
                        None => self.cast_to(self.expr(value, scope)?, item, &scope.schema)?,
                    });
                }
                Ok(Some(array(made, &scope.schema)?))
            }
            _ => Ok(None),
        }
    }

    /// Invariant 2; `None`: it is not written out.
    pub(super) fn row_of(
        &self,
        row: &tree::Expr,
        of: CompositeType,
        by: Becomes,
        scope: &Scope<'_>,
    ) -> Result<Option<Expr>> {
        let ExprKind::Row { fields, .. } = &row.kind else { return Ok(None) };
        if fields.iter().any(|field| matches!(field.kind, ExprKind::Star(_) | ExprKind::AllFields(_))) {
            return Ok(None);
        }
        check_count(fields.len(), of)?;
        let mut values = vec![];
        for (number, (field, attribute)) in fields.iter().zip(of.def().attributes()).enumerate() {
            let to = attribute.data_type;
            if let Some(made) = self.written_as(field, to, by, scope)? {
                values.push(made);
                continue;
            }
            let value = self.expr(field, scope)?;
            values.push(self.field_as(value, to, by, (number + 1, of), scope).at_value_of(&[field])?);
        }
        Ok(Some(functions::make(of, values)))
    }

    fn field_as(
        &self,
        value: Expr,
        to: DataType,
        by: Becomes,
        (number, of): (usize, CompositeType),
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let from = value.get_type(&scope.schema)?;
        let least =
            if by == Becomes::Cast { crate::cast::Castable::Explicitly } else { crate::cast::Castable::ByAssignment };
        let fits = match engine_type(&from) {
            _ if is_open(&value) || from == ArrowType::Null => true,
            Some(from) => castable(from, to) >= least,
            None => is_row(&from) || is_array(&from),
        };
        if !fits {
            let detail = format!("Cannot cast type {} to {} in column {number}.", type_name(&from), to.base_name());
            return Err(cannot_convert(of).with_detail(detail).into());
        }
        let is_limited = matches!(to.item().unwrap_or(to), DataType::Varchar(1..) | DataType::Char(_));
        if is_limited && by == Becomes::Assigned && !is_open(&value) {
            // An assignment refuses what a cast cuts.
            return Ok(crate::functions::convert::assigned(value, to));
        }
        if is_limited && is_open(&value) {
            read_now(&value, to)?;
            return Ok(crate::functions::convert::assigned(value, to));
        }
        self.cast_to(value, to, &scope.schema)
    }

    /// `(row).field`; `None`: the value is no row.
    pub(super) fn field_of_row(&self, of: &tree::Expr, name: &str, scope: &Scope<'_>) -> Result<Option<Expr>> {
        let row = self.row_value(of, scope)?;
        if let Expr::ScalarSubquery(subquery) = &row
            && is_volatile(&subquery.subquery)?
        {
            return unsupported("a field of the row of a volatile query");
        }
        let of_row = row.get_type(&scope.schema)?;
        let Some(fields) = row_fields(&of_row) else {
            let name_of_type = if is_open(&row) { "unknown".to_owned() } else { type_name(&of_row) };
            let message =
                format!("column notation .{name} applied to type {name_of_type}, which is not a composite type");
            return wrong(of.at, "42809", message);
        };
        match fields.iter().position(|field| field.name() == name) {
            Some(place) => self.part(row, place, &scope.schema).map(Some),
            None => match engine_type(&of_row) {
                Some(known) => {
                    let message = format!("column \"{name}\" not found in data type {}", known.base_name());
                    wrong(of.at, "42703", message)
                }
                None => wrong(of.at, "42703", format!("could not identify column \"{name}\" in record data type")),
            },
        }
    }

    fn part(&self, row: Expr, place: usize, schema: &DFSchema) -> Result<Expr> {
        self.made(functions::field(row, place), schema)
    }

    /// `(row).*`: the fields and their names.
    pub(super) fn all_fields(&self, of: &tree::Expr, scope: &Scope<'_>) -> Result<Vec<(String, Expr)>> {
        let row = self.row_value(of, scope)?;
        let of_row = row.get_type(&scope.schema)?;
        let Some(fields) = row_fields(&of_row) else {
            return wrong(of.at, "42809", format!("type {} is not composite", type_name(&of_row)));
        };
        if row.is_volatile() {
            return unsupported("the fields of a row that a volatile function makes");
        }
        let parts = fields.iter().enumerate();
        parts.map(|(place, field)| Ok((field.name().clone(), self.part(row.clone(), place, &scope.schema)?))).collect()
    }

    /// Columns of a function in FROM, with each of a composite type as its fields.
    pub(super) fn rows_apart(
        &self,
        plan: LogicalPlan,
        own: Vec<(String, Expr)>,
    ) -> Result<(LogicalPlan, Vec<(String, Expr)>)> {
        let schema = plan.schema().clone();
        let (mut all, mut named, mut any) = (vec![], vec![], false);
        for column in columns(&plan) {
            let title = own.iter().find(|(_, known)| *known == column).map(|(title, _)| title.clone());
            match (title, row_fields(&column.get_type(&schema)?).cloned()) {
                (Some(_), Some(fields)) => {
                    any = true;
                    for (place, field) in fields.iter().enumerate() {
                        let name = self.column_name(field.name());
                        all.push(self.part(column.clone(), place, &schema)?.alias(&name));
                        named.push((field.name().clone(), Expr::Column(Column::new_unqualified(name))));
                    }
                }
                (title, _) => {
                    named.extend(title.map(|title| (title, column.clone())));
                    all.push(column);
                }
            }
        }
        match any {
            true => Ok((LogicalPlanBuilder::from(plan).project(all)?.build()?, named)),
            false => Ok((plan, own)),
        }
    }

    /// A value, or the row of a table.
    fn row_value(&self, of: &tree::Expr, scope: &Scope<'_>) -> Result<Expr> {
        match self.whole_row(of, scope)? {
            Some(row) => Ok(row),
            None => self.expr(of, scope),
        }
    }

    /// The row of a table, or of what else has a name in FROM, as `t` and `t.*` mean it; `None`: it means another
    /// thing.
    pub(super) fn whole_row(&self, arg: &tree::Expr, scope: &Scope<'_>) -> Result<Option<Expr>> {
        let table = match &arg.kind {
            ExprKind::Column(name) if name.qualifier().is_empty() && scope.own(name)?.is_none() => &name.last().name,
            ExprKind::Star(Some(table)) if table.qualifier().is_empty() => &table.last().name,
            _ => return Ok(None),
        };
        let Some(relation) = scope.source.relations.iter().find(|relation| relation.name == *table) else {
            return Ok(None);
        };
        if relation.value && matches!(arg.kind, ExprKind::Column(_)) {
            return Ok(None);
        }
        if relation.columns.is_empty() {
            return unsupported("a row without columns");
        }
        if scope.clause.get() == Clause::Window {
            scope.rows.borrow_mut().push((table.to_owned(), arg.at));
        }
        let (names, columns): (Vec<String>, Vec<Expr>) = relation.columns.iter().cloned().unzip();
        columns.iter().for_each(|column| scope.note(column, arg.at));
        self.note_named(&columns);
        let never_null = relation.never_null.and_then(|at| columns.get(at).cloned());
        refuse_loose(&columns, &scope.schema)?;
        let row = self.made(make::call(Made::Row(names), false, "", columns), &scope.schema)?;
        match (relation.padded, never_null) {
            (false, _) => Ok(Some(row)),
            (true, Some(column)) => Ok(Some(when(column.is_not_null(), row).end()?)),
            (true, None) => unsupported("a row of a table in an outer join"),
        }
    }

    /// What becomes of a column of a composite type by `SET a.b = value`.
    pub(super) fn with_field(
        &self,
        whole: &tree::Expr,
        field: &tree::Ident,
        value: &tree::Expr,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        self.with_field_of((whole, None), field, value, scope)
    }

    /// The same; where the column has no value yet, `of` is its type.
    pub(super) fn with_field_of(
        &self,
        (whole, column): (&tree::Expr, Option<&ColumnDef>),
        field: &tree::Ident,
        value: &tree::Expr,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        if let ExprKind::Default = value.kind {
            return wrong(value.at, "0A000", "cannot set a subfield to DEFAULT");
        }
        let row = match (&whole.kind, column) {
            (ExprKind::Default, Some(column)) => {
                Expr::Literal(ScalarValue::try_from(&arrow_type(column.data_type))?, None)
            }
            (ExprKind::WithField { arg, field, value }, Some(_)) => {
                self.with_field_of((arg, column), field, value, scope)?
            }
            _ => self.assigned_part(whole, scope)?,
        };
        let called = column.map_or_else(|| assigned_to(whole), |column| &column.name);
        let of = row.get_type(&scope.schema)?;
        let name = &field.name;
        let Some(DataType::Composite(composite)) = engine_type(&of) else {
            let of = type_name(&of);
            let message = format!(
                "cannot assign to field \"{name}\" of column \"{}\" because its type {of} is not a composite type",
                called
            );
            return wrong(whole.at, "42804", message);
        };
        let Some((place, attribute)) = composite.def().attribute(name) else {
            let message = format!(
                "cannot assign to field \"{name}\" of column \"{}\" because there is no such column in data type {}",
                called,
                DataType::Composite(composite).base_name()
            );
            return wrong(whole.at, "42703", message);
        };
        let value = self.subfield(value, attribute.data_type, (name, whole.at), scope)?;
        self.made(functions::with_field(row, place, value), &scope.schema)
    }

    /// A value for an attribute. 42804
    fn subfield(&self, value: &tree::Expr, to: DataType, (name, at): (&str, At), scope: &Scope<'_>) -> Result<Expr> {
        if let DataType::Composite(of) = to
            && let Some(made) = self.row_of(value, of, Becomes::Assigned, scope)?
        {
            return Ok(made);
        }
        if let ExprKind::Parameter(number) = value.kind {
            self.settle_parameter(super::query::parameter_number(number)?, to);
        }
        let bound = self.expr(value, scope)?;
        let from = bound.get_type(&scope.schema)?;
        let fits = match engine_type(&from) {
            _ if is_open(&bound) || from == ArrowType::Null => true,
            Some(from) => castable(from, to) == crate::cast::Castable::ByAssignment,
            None => is_row(&from) && matches!(to, DataType::Composite(_)),
        };
        if !fits {
            let (from, to) = (type_name(&from), to.base_name());
            let message = format!("subfield \"{name}\" is of type {to} but expression is of type {from}");
            let error = EngineError::new("42804", message);
            return fail(at, error.with_hint("You will need to rewrite or cast the expression."));
        }
        match to.item().unwrap_or(to) {
            DataType::Varchar(1..) | DataType::Char(_) => {
                read_now(&bound, to)?;
                Ok(crate::functions::convert::assigned(bound, to))
            }
            _ => self.cast_to(bound, to, &scope.schema).at_value_of(&[value]),
        }
    }

    /// Invariant 1; `None`: neither side is a row.
    pub(super) fn row_operator(
        &self,
        symbol: &str,
        left: &Expr,
        right: &Expr,
        schema: &DFSchema,
    ) -> Result<Option<Expr>> {
        let op = match symbol {
            "=" => Operator::Eq,
            "<>" => Operator::NotEq,
            "<" => Operator::Lt,
            "<=" => Operator::LtEq,
            ">" => Operator::Gt,
            ">=" => Operator::GtEq,
            "IS DISTINCT FROM" => Operator::IsDistinctFrom,
            "IS NOT DISTINCT FROM" => Operator::IsNotDistinctFrom,
            _ => return Ok(None),
        };
        let Some([left, right]) = self.two_rows(symbol, left, right, schema)? else { return Ok(None) };
        let [left, right] = [left, right].map(|row| Box::new(functions::key(row)));
        Ok(Some(Expr::BinaryExpr(BinaryExpr { left, op, right })))
    }

    /// Two rows that can be compared; `None`: neither is one. 42883, 42804
    fn two_rows(&self, symbol: &str, left: &Expr, right: &Expr, schema: &DFSchema) -> Result<Option<[Expr; 2]>> {
        let types = [left.get_type(schema)?, right.get_type(schema)?];
        let rows = types.each_ref().map(is_row);
        let literal = |open: &Expr, of: &ArrowType| -> Result<Expr> {
            match open {
                Expr::Literal(ScalarValue::Null, _) => Ok(Expr::Literal(ScalarValue::try_from(of)?, None)),
                _ => {
                    let message = "input of anonymous composite types is not implemented";
                    Err(EngineError::new("0A000", message).into())
                }
            }
        };
        let [left, right] = match rows {
            [false, false] => return Ok(None),
            [true, false] if is_open(right) => [left.clone(), literal(right, &types[0])?],
            [false, true] if is_open(left) => [literal(left, &types[1])?, right.clone()],
            [true, true] => [left.clone(), right.clone()],
            _ => {
                let [left, right] = types.each_ref().map(type_name);
                let symbol = if symbol.starts_with("IS ") { "=" } else { symbol };
                let error = EngineError::new("42883", format!("operator does not exist: {left} {symbol} {right}"));
                return Err(with_operator_hint(error).into());
            }
        };
        let types = [left.get_type(schema)?, right.get_type(schema)?];
        if let [Some(own), Some(other)] = types.each_ref().map(row_fields) {
            refuse_dissimilar((own, &open_fields(&left)), (other, &open_fields(&right)))?;
        }
        Ok(Some([left, right]))
    }

    /// `row IN (rows)`; `None`: neither is a row.
    pub(super) fn row_listed(
        &self,
        arg: &Expr,
        list: &[Expr],
        negated: bool,
        schema: &DFSchema,
    ) -> Result<Option<Expr>> {
        let mut of_rows = false;
        for value in std::iter::once(arg).chain(list) {
            of_rows |= is_row(&value.get_type(schema)?);
        }
        if !of_rows {
            return Ok(None);
        }
        if arg.is_volatile() {
            return unsupported("a volatile function in a row");
        }
        let mut typed = std::iter::once(arg).chain(list).filter(|value| !is_open(value));
        let known = typed.find_map(|value| engine_type(&value.get_type(schema).ok()?));
        let of_row = |value: &Expr| match known {
            // A quoted literal is of the others' type.
            Some(of) if is_open(value) => self.cast_to(value.clone(), of, schema),
            _ => Ok(value.clone()),
        };
        let arg = of_row(arg)?;
        let equal = list.iter().map(|item| self.compared("=", arg.clone(), of_row(item)?, schema));
        let any = super::expr::halved(equal.collect::<Result<_>>()?, Operator::Or);
        Ok(Some(if negated { Expr::Not(Box::new(any)) } else { any }))
    }
}

/// The column of which a part is assigned to.
fn assigned_to(whole: &tree::Expr) -> &str {
    match &whole.kind {
        ExprKind::Column(name) => name.last().name.as_str(),
        ExprKind::With { column, .. } => &column.name,
        ExprKind::Field { arg, .. } | ExprKind::WithField { arg, .. } | ExprKind::Subscript { arg, .. } => {
            assigned_to(arg)
        }
        _ => "",
    }
}

/// 42804 where rows have columns of different types.
fn refuse_dissimilar((own, open): (&Fields, &[bool]), (other, other_open): (&Fields, &[bool])) -> Result<()> {
    if own.len() != other.len() {
        let message = "cannot compare record types with different numbers of columns";
        return Err(EngineError::new("42804", message).into());
    }
    for (number, (own, other)) in own.iter().zip(other).enumerate() {
        if let (Some(own), Some(other)) = (row_fields(own.data_type()), row_fields(other.data_type())) {
            refuse_dissimilar((own, &[]), (other, &[]))?;
            continue;
        }
        let shown = |field: &Field, open: &[bool]| match open.get(number) {
            Some(true) => Cow::Borrowed("unknown"),
            _ => shown_type(field),
        };
        let (left, right) = (shown(own, open), shown(other, other_open));
        if left != right {
            let number = number + 1;
            let message =
                format!("cannot compare dissimilar column types {left} and {right} at record column {number}");
            return Err(EngineError::new("42804", message).into());
        }
        if is_array(own.data_type()) && own.data_type() != other.data_type() {
            return unsupported("a comparison of rows with arrays of different numerics");
        }
    }
    Ok(())
}

/// 0A000 where the blanks of a char are not known, which the row's text has.
fn refuse_loose(values: &[Expr], schema: &DFSchema) -> Result<()> {
    for value in values {
        if field_type(value.to_field(schema)?.1.as_ref()) == Some(LOOSE) {
            with_blanks(value.clone(), 0)?;
        }
    }
    Ok(())
}

/// Which fields of a row that is written out are quoted literals.
fn open_fields(row: &Expr) -> Vec<bool> {
    match row {
        Expr::ScalarFunction(call) if make::is_row(call) => call.args.iter().map(is_open).collect(),
        _ => vec![],
    }
}

/// A field's type, as PostgreSQL names it.
fn shown_type(field: &Field) -> Cow<'static, str> {
    match (field.data_type(), field_type(field)) {
        (ArrowType::Null, _) => "unknown".into(),
        (_, Some(of)) => of.base_name().into(),
        (of, None) => type_name(of).into(),
    }
}
