//! What a statement by key answers: columns and what is computed of them, or an aggregate.
use super::super::answer::{Output, Total};
use super::super::change::Returning;
use super::super::values::{Cell, Given, NewValue};
use super::values::shown_literal;
use super::{Named, Place, Scope, literal};
use crate::parse::titles::title;
use crate::parse::types::known;
use crate::plan::origins::Origins;
use crate::values::{field_of, live_columns};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use std::sync::Arc;
use terrace_engine::types::MAX_PRECISION;
use terrace_engine::{DataType, Datum};
use terrace_grammar::statement::{Call, Expr, ExprKind, Item, Name};

fn schema_of(names: &[String], types: impl Iterator<Item = DataType>) -> SchemaRef {
    let fields = names.iter().zip(types).map(|(name, of)| field_of(name, of, true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

impl Scope<'_> {
    /// What is shown, and how it is called.
    pub(super) fn output(&mut self, items: &[Item]) -> Option<(Output, Vec<String>, SchemaRef)> {
        if let [item] = items
            && let (ExprKind::Call(call), as_text) = uncast(&item.expr)
        {
            let (total, of) = self.total(call)?;
            // Its digits are those of no column, but for a text.
            (as_text || !matches!(of, DataType::Numeric(Some(_)))).then_some(())?;
            let cell = Cell { value: NewValue::Column(0), of, as_text };
            let (names, of) = (vec![title(item)], cell.data_type());
            let schema = schema_of(&names, [of].into_iter());
            return Some((Output::Total(total, cell), names, schema));
        }
        let (cells, names, schema) = self.cells(items)?;
        Some((Output::Cells(cells), names, schema))
    }

    /// The outer `None`: it is not plain.
    pub(super) fn returning(&mut self, items: &[Item]) -> Option<Option<Returning>> {
        if items.is_empty() {
            return Some(None);
        }
        let (cells, _, schema) = self.cells(items)?;
        Some(Some(Returning { cells, schema }))
    }

    fn cells(&mut self, items: &[Item]) -> Option<(Vec<Cell>, Vec<String>, SchemaRef)> {
        let (mut cells, mut names) = (vec![], vec![]);
        for item in items {
            if let ExprKind::Star(of) = &item.expr.kind {
                for named in self.starred(of.as_ref())? {
                    for (at, column) in live_columns(named.table) {
                        cells.push(Cell::column(named.first + at, column.data_type));
                        names.push(column.name.clone());
                    }
                }
                continue;
            }
            cells.push(self.cell(&item.expr)?);
            names.push(title(item));
        }
        let schema = schema_of(&names, cells.iter().map(Cell::data_type));
        let from = |cell: &Cell| match cell.plain() {
            Some((at, false)) => {
                let Named { table, first, .. } = &self.tables[self.table_of(at)];
                i16::try_from(at - first + 1).ok().map(|number| (table.oid.0, number))
            }
            _ => None,
        };
        let schema = Origins::new(cells.iter().map(from)).put(schema);
        Some((cells, names, schema))
    }

    /// The tables of `*`, or of `name.*`.
    fn starred(&self, of: Option<&Name>) -> Option<&[Named<'_>]> {
        let Some(name) = of else { return Some(&self.tables) };
        let [alias] = name.parts() else { return None };
        let at = self.tables.iter().position(|named| named.alias == alias.name)?;
        Some(&self.tables[at..=at])
    }

    fn cell(&mut self, expr: &Expr) -> Option<Cell> {
        if let Some(value) = self.shown_number(expr) {
            return Some(Cell { value: NewValue::Given(value), of: DataType::Int4, as_text: false });
        }
        if let Some(at) = self.column(expr) {
            return Some(Cell::column(at, self.data_type(at)));
        }
        if let ExprKind::Cast { arg, to, .. } = &expr.kind {
            let at = self.column(arg)?;
            let of = self.data_type(at);
            let shown = matches!(of, DataType::Int4 | DataType::Int8 | DataType::Numeric(_));
            let as_text = known(to).ok()? == DataType::Text && shown;
            return as_text.then_some(Cell { as_text, ..Cell::column(at, of) });
        }
        let (value, of) = self.computed(expr)?;
        let fits = match &value {
            // A parameter is not taken here; those of a shape are literals.
            NewValue::Computed { value: Given::Constant(datum), .. } => matches!(datum, Datum::Int4(_)),
            _ => self.seen.uses.is_some(),
        };
        (of == DataType::Int4 && fits).then_some(Cell { value, of, as_text: false })
    }

    /// An integer that is written in the list, as in `SELECT 1`.
    fn shown_number(&mut self, expr: &Expr) -> Option<Given> {
        match literal(expr) {
            Some(number) => shown_literal(number).map(Given::Constant),
            // In a shape it is a parameter.
            None if self.seen.uses.is_some() => self.parameter(expr, DataType::Int4, Place::Shown),
            None => None,
        }
    }

    /// `count(*)`; `count` of different values; `sum` of an int4 or a numeric column; `min` and `max` of one that has
    /// ends.
    fn total(&self, call: &Call) -> Option<(Total, DataType)> {
        (is_plain(call) && called_plainly(call, &call.name.last().name)).then_some(())?;
        let function = call.name.last().name.as_str();
        if call.star {
            return (function == "count" && !call.distinct).then_some((Total::Count, DataType::Int8));
        }
        let [argument] = call.args.as_slice() else { return None };
        argument.name.is_none().then_some(())?;
        let at = self.column(&argument.value)?;
        let of = self.data_type(at);
        if call.distinct {
            let plain = matches!(of, DataType::Int4 | DataType::Int8 | DataType::Text);
            return (function == "count" && plain).then_some((Total::Different(at), DataType::Int8));
        }
        match (of, function) {
            (DataType::Int4, "sum") => Some((Total::Sum(at), DataType::Int8)),
            (DataType::Numeric(of), "sum") => {
                let of = of.map(|(_, scale)| (MAX_PRECISION, scale));
                Some((Total::Sum(at), DataType::Numeric(of)))
            }
            (of, "min") if has_ends(of) => Some((Total::Least(at), of)),
            (of, "max") if has_ends(of) => Some((Total::Greatest(at), of)),
            _ => None,
        }
    }
}

/// Types whose values `min` and `max` compare as keys are compared, and answer as they are.
fn has_ends(of: DataType) -> bool {
    use DataType::*;
    matches!(of, Int2 | Int4 | Int8 | Date | Timestamp | Timestamptz)
}

/// An expression, or what it casts to text; and whether it does.
fn uncast(expr: &Expr) -> (&ExprKind, bool) {
    match &expr.kind {
        ExprKind::Cast { arg, to, .. } if known(to).ok() == Some(DataType::Text) => (&arg.kind, true),
        kind => (kind, false),
    }
}

/// A call with nothing but arguments, which may be DISTINCT.
fn is_plain(call: &Call) -> bool {
    let Call { name: _, args: _, star: _, distinct: _, variadic, order, within, filter, over } = call;
    !variadic && order.is_empty() && within.is_empty() && filter.is_none() && over.is_none()
}

fn called_plainly(call: &Call, function: &str) -> bool {
    matches!(call.name.parts(), [name] if name.name == function)
}

/// A call of a function without arguments.
pub(super) fn is_call_of(call: &Call, function: &str) -> bool {
    is_plain(call) && called_plainly(call, function) && call.args.is_empty() && !call.star && !call.distinct
}
