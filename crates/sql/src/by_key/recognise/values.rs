//! Values that a statement by key is given: parameters and literals, by what they meet.
use super::super::ByKey;
use super::super::values::{Arithmetic, Given, NewValue};
use super::outputs::is_call_of;
use super::{Place, Scope, Use, is_integer, literal};
use crate::parse::constants::{constant, of_literal};
use crate::parse::stored::Stored;
use crate::parse::types::known;
use terrace_engine::{ColumnDef, DataType, Datum};
use terrace_grammar::statement::{Expr, ExprKind, Literal, SpecialFunction};
use terrace_grammar::{ShapeKind, ShapeLiteral};

/// Kinds of types that are converted into each other.
type KindOf = fn(DataType) -> bool;
const INTEGER: KindOf = |of| matches!(of, DataType::Int2 | DataType::Int4 | DataType::Int8);
const TEXT: KindOf = |of| matches!(of, DataType::Text | DataType::Varchar(_));
const NUMERIC: KindOf = |of| matches!(of, DataType::Numeric(_));

/// Types whose values are compared as an index compares them. Equality of floats is DataFusion's affair; literals of
/// varchar(n) would be cut to length.
pub(super) const COMPARED: [DataType; 9] = {
    use DataType::*;
    [Bool, Int2, Int4, Int8, Text, Timestamp, Timestamptz, Date, Uuid]
};

fn is_a(kind: KindOf, one: DataType, other: DataType) -> bool {
    kind(one) && kind(other)
}

impl Scope<'_> {
    /// A value that is compared: exactly of the column's type, or of none yet.
    pub(super) fn compared(&mut self, at: usize, value: &Expr) -> Option<Given> {
        let data_type = match self.data_type(at) {
            DataType::Varchar(0) => DataType::Text,
            other => other,
        };
        COMPARED.contains(&data_type).then_some(())?;
        if let Some(parameter) = self.parameter(value, data_type, Place::Compared(at)) {
            return Some(parameter);
        }
        compared_literal(self.definition(at), literal(value)?).map(Given::Constant)
    }

    /// A parameter whose type is this, or (but as an operand) another of its kind, or open: then it is this from
    /// now on.
    pub(super) fn parameter(&mut self, value: &Expr, data_type: DataType, place: Place) -> Option<Given> {
        let (value, negated) = match &value.kind {
            ExprKind::Unary { op, arg }
                if self.seen.uses.is_some() && op.schema.is_empty() && op.symbol.as_str() == "-" =>
            {
                (arg.as_ref(), true)
            }
            _ => (value, false),
        };
        let ExprKind::Parameter(number) = value.kind else { return None };
        // More parameters than the protocol can carry do not get a place.
        let at = (number as usize).checked_sub(1).filter(|at| *at < 65_535)?;
        if self.seen.types.len() <= at {
            self.seen.types.resize(at + 1, None);
        }
        let is = *self.seen.types[at].get_or_insert(data_type);
        // Some drivers state bigint for every integer: what does not fit then takes the general way.
        let of_a_kind = is_a(INTEGER, is, data_type) || is_a(TEXT, is, data_type) || is_a(NUMERIC, is, data_type);
        // A text becomes a char(n) when it is assigned.
        let of_a_kind = of_a_kind || matches!((place, data_type), (Place::Assigned(_), DataType::Char(_))) && TEXT(is);
        // Which of two types it gets if the client states none, and whether it may meet both, the planner knows.
        let stated = self.seen.stated.get(at).is_some_and(Option::is_some);
        (stated || is == data_type).then_some(())?;
        let operand = matches!(place, Place::Operand(_));
        // An operand keeps its type, which decides the result's.
        let becomes = if operand && is_a(INTEGER, is, data_type) { is } else { data_type };
        (is == becomes || of_a_kind && !operand).then_some(())?;
        if let Some(uses) = &mut self.seen.uses {
            uses[at] = Some(Use { place, negated });
        }
        Some(Given::Parameter(at, becomes))
    }

    /// A parameter that is cast to this type, of which `data_type` is: a text, or one of this type, or open.
    fn cast(&mut self, value: &Expr, data_type: DataType) -> Option<Given> {
        let ExprKind::Cast { arg, to, .. } = &value.kind else { return None };
        let through = known(to).ok()?;
        let fits = match through {
            DataType::Int4 | DataType::Int8 | DataType::Text => through == data_type,
            DataType::Numeric(None) => NUMERIC(data_type),
            _ => false,
        };
        // A literal that is cast is the general way's.
        (fits && self.seen.uses.is_none()).then_some(())?;
        let ExprKind::Parameter(number) = arg.kind else { return None };
        let stated = self.seen.types.get((number as usize).checked_sub(1)?).copied().flatten();
        let is = stated.filter(|is| TEXT(*is)).unwrap_or(through);
        match self.parameter(arg, is, Place::Operand(0))? {
            Given::Parameter(at, _) => Some(Given::Cast(at, through, data_type)),
            other => unreachable!("{other:?} is no parameter"),
        }
    }

    pub(super) fn default(&mut self, at: usize) -> Option<Given> {
        let column = self.definition(at);
        let Some(sql) = column.default() else { return Some(Given::Constant(Datum::Null)) };
        let default = Stored::read(sql)?;
        match self.now(at, default.expr()) {
            Some(now) => Some(now),
            None => Some(Given::Constant(constant(default.expr(), column)?.ok()?)),
        }
    }

    /// The transaction's time, where the column is a timestamp.
    fn now(&mut self, at: usize, value: &Expr) -> Option<Given> {
        let is_now = match &value.kind {
            ExprKind::Special { function: SpecialFunction::CurrentTimestamp, args } => args.is_empty(),
            ExprKind::Call(call) => is_call_of(call, "now"),
            _ => false,
        };
        (is_now && self.data_type(at) == DataType::Timestamp).then_some(())?;
        self.seen.now = true;
        Some(Given::Now)
    }

    /// A value that is given to a column and depends on no row.
    pub(super) fn assigned(&mut self, at: usize, value: &Expr) -> Option<Given> {
        if matches!(value.kind, ExprKind::Default) {
            return self.default(at);
        }
        if let Some(cast) = self.cast(value, self.data_type(at)) {
            return Some(cast);
        }
        if let Some(parameter) = self.parameter(value, self.data_type(at), Place::Assigned(at)) {
            return Some(parameter);
        }
        if let Some(now) = self.now(at, value) {
            return Some(now);
        }
        Some(Given::Constant(constant(value, self.definition(at))?.ok()?))
    }

    pub(super) fn new_value(&mut self, at: usize, value: &Expr) -> Option<NewValue> {
        let to = self.data_type(at);
        match &value.kind {
            ExprKind::Binary { .. } => {
                let (computed, of) = self.computed(value)?;
                // Integers stay integers and floats floats: no rounding in between. An int4 that becomes an int8 would
                // hide that int4 overflows.
                let fits = match of {
                    DataType::Float8 | DataType::Int4 => to == of,
                    DataType::Int8 => is_integer(to),
                    of => NUMERIC(of) && NUMERIC(to),
                };
                fits.then_some(computed)
            }
            ExprKind::Column(_) => {
                let other = self.column(value)?;
                let from = self.data_type(other);
                let integers = is_integer(from) && is_integer(to);
                (integers || from == to).then_some(NewValue::Column(other))
            }
            _ => self.assigned(at, value).map(NewValue::Given),
        }
    }

    /// Arithmetic of a column and a number, and the column's type.
    pub(super) fn computed(&mut self, value: &Expr) -> Option<(NewValue, DataType)> {
        let ExprKind::Binary { op, args } = &value.kind else { return None };
        op.schema.is_empty().then_some(())?;
        let op = match op.symbol.as_str() {
            "+" => Arithmetic::Add,
            "-" => Arithmetic::Subtract,
            "*" => Arithmetic::Multiply,
            _ => return None,
        };
        let [left, right] = args.as_ref();
        let (column, given, flipped) = match (self.column(left), self.column(right)) {
            (Some(column), None) => (column, right, false),
            (None, Some(column)) => (column, left, true),
            _ => return None,
        };
        let of = self.data_type(column);
        let number = matches!(of, DataType::Float8 | DataType::Int4 | DataType::Int8) || NUMERIC(of);
        number.then_some(())?;
        let value = self.operand(given, column)?;
        // Of two integers, the wider type; a column of these is no narrower than int4.
        let of = match value {
            Given::Parameter(_, DataType::Int8) if is_integer(of) => DataType::Int8,
            _ => of,
        };
        Some((NewValue::Computed { column, op, value, flipped }, of))
    }

    /// A number beside a column in arithmetic.
    fn operand(&mut self, value: &Expr, column: usize) -> Option<Given> {
        let of = operand_type(self.data_type(column));
        if let Some(cast) = self.cast(value, of) {
            return Some(cast);
        }
        match self.parameter(value, of, Place::Operand(column)) {
            Some(parameter) => Some(parameter),
            None => operand_literal(self.definition(column), literal(value)?).map(Given::Constant),
        }
    }
}

/// The type of a number beside a column of this one.
fn operand_type(of: DataType) -> DataType {
    if NUMERIC(of) { DataType::Numeric(None) } else { of }
}

fn compared_literal(column: &ColumnDef, literal: &Literal) -> Option<Datum> {
    let fits = match literal {
        Literal::Int(_) => is_integer(column.data_type),
        Literal::Text(_) => matches!(column.data_type, DataType::Text | DataType::Varchar(0) | DataType::Uuid),
        Literal::Bool(_) => column.data_type == DataType::Bool,
        Literal::Null | Literal::Number(_) | Literal::Bits { .. } => false,
    };
    fits.then_some(())?;
    of_literal(literal, column)?.ok()
}

fn operand_literal(column: &ColumnDef, literal: &Literal) -> Option<Datum> {
    match (column.data_type, literal) {
        (DataType::Float8, Literal::Int(_) | Literal::Number(_)) => of_literal(literal, column)?.ok(),
        // As PostgreSQL types it.
        (DataType::Int4 | DataType::Int8, Literal::Int(value)) => {
            Some(i32::try_from(*value).map_or(Datum::Int8(*value), Datum::Int4))
        }
        (DataType::Numeric(_), Literal::Int(value)) => DataType::Numeric(None).parse(&value.to_string()).ok(),
        (DataType::Numeric(_), Literal::Number(text)) => DataType::Numeric(None).parse(text).ok(),
        _ => None,
    }
}

/// An int4: the type that PostgreSQL gives it.
pub(super) fn shown_literal(literal: &Literal) -> Option<Datum> {
    if let Literal::Int(value) = literal { i32::try_from(*value).ok().map(Datum::Int4) } else { None }
}

pub(super) fn limit_literal(literal: &Literal) -> Option<Datum> {
    match literal {
        Literal::Int(count @ 0..) => Some(Datum::Int8(*count)),
        _ => None,
    }
}

impl Use {
    /// The literal's value as the parameter that stands for it; `None` where the statement with it is the general
    /// way's.
    pub(crate) fn value(self, by_key: &ByKey, literal: &ShapeLiteral<'_>) -> Option<Datum> {
        let sign = if self.negated { "-" } else { "" };
        let literal = match literal.kind {
            ShapeKind::Integer | ShapeKind::Number => {
                let text = format!("{sign}{}", literal.value);
                text.parse().map_or_else(|_| Literal::Number(text), Literal::Int)
            }
            ShapeKind::Text if !self.negated => Literal::Text(literal.value.clone().into_owned()),
            ShapeKind::Text | ShapeKind::Other => return None,
        };
        match self.place {
            Place::Compared(at) => compared_literal(by_key.column(at), &literal),
            Place::Assigned(at) => of_literal(&literal, by_key.column(at))?.ok(),
            Place::Limit => limit_literal(&literal),
            Place::Shown => shown_literal(&literal),
            Place::Operand(at) => {
                let datum = operand_literal(by_key.column(at), &literal)?;
                match (by_key.column(at).data_type, datum) {
                    (DataType::Int4, Datum::Int8(v)) => i32::try_from(v).ok().map(Datum::Int4),
                    (_, datum) => Some(datum),
                }
            }
        }
    }
}
