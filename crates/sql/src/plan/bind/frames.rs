//! The frames of windows: which rows beside each a function sees.
//!
//! 1. An offset holds no variables (42P10). Of ROWS and GROUPS it is a bigint; of RANGE it is of the type that the one
//!    column of ORDER BY is moved by (0A000 where there is none).
//! 2. What DataFusion does as PostgreSQL does it is left to it ([`Framing::plain`]); all else is done by
//!    [`framed`](crate::functions::framed).
use super::query::{Around, parameter_number};
use super::scope::{Clause, Scope};
use super::{Binder, Placed, Result, fail, unsupported, windows::Defined, wrong};
use crate::functions::arithmetic::is_number;
use crate::functions::builtin::type_name;
use crate::functions::convert::{convert, is_open};
use crate::functions::framed::{self, Edge, Exclude, Inner, Shape, Units, edges};
use crate::plan::{comparable, operators};
use crate::values::decimal::is_decimal;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::expr::{Sort as By, WindowFunction, WindowFunctionDefinition};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, WindowFrame, WindowFrameBound, WindowFrameUnits};
use terrace_engine::{DataType, EngineError};
use terrace_grammar::statement::{self as tree, At, ExprKind, Frame, FrameBound};

/// A frame that is bound.
#[derive(Clone)]
pub(super) struct Framing {
    units: Units,
    edges: [Edge; 2],
    exclude: Exclude,
    /// Of each edge that has one: a bigint, or with RANGE the bound.
    offsets: [Option<Expr>; 2],
    /// What the bounds of RANGE are compared with.
    key: Option<Expr>,
    /// The offsets of ROWS and GROUPS that are not known now, and the bounds of RANGE: what is found wrong with them is
    /// an error also of a function that looks at no frame.
    open: [Option<Expr>; 2],
}

/// Aggregates of which DataFusion takes values back as PostgreSQL does, where the beginning of a frame moves.
const TAKEN_BACK: [&str; 6] = ["sum", "exact_sum", "avg", "count", "min", "max"];

impl Framing {
    /// The same for DataFusion (invariant 2).
    fn plain(&self, order: &mut Vec<By>) -> Result<Option<WindowFrame>> {
        if self.exclude != Exclude::NoOthers || self.key.is_some() {
            return Ok(None);
        }
        let bound = |number: usize| {
            let rows = match &self.offsets[number] {
                Some(Expr::Literal(ScalarValue::Int64(Some(rows)), _)) => {
                    ScalarValue::UInt64(u64::try_from(*rows).ok())
                }
                Some(_) => return None,
                None => ScalarValue::UInt64(None),
            };
            Some(match (self.edges[number], number) {
                (Edge::Current, _) => WindowFrameBound::CurrentRow,
                (Edge::Preceding, _) | (Edge::Unbounded, 0) => WindowFrameBound::Preceding(rows),
                _ => WindowFrameBound::Following(rows),
            })
        };
        let (Some(start), Some(end)) = (bound(0), bound(1)) else { return Ok(None) };
        // Where both are on one side, the frame may be empty, which DataFusion does not take.
        if self.edges[0] == self.edges[1] && self.edges[0].has_offset() {
            return Ok(None);
        }
        let units = match self.units {
            Units::Rows => WindowFrameUnits::Rows,
            Units::Range => WindowFrameUnits::Range,
            Units::Groups => WindowFrameUnits::Groups,
        };
        let frame = WindowFrame::new_bounds(units, start, end);
        frame.regularize_order_bys(order)?;
        Ok(Some(frame))
    }

    /// What a function gives that looks at no frame, if the offsets are some.
    fn checked(self, value: Expr) -> Result<Expr> {
        let of = |start: bool| (self.units != Units::Range).then_some(start);
        let [start, end] = self.open.map(|offset| offset.map(not_a_query).transpose());
        let value = match start? {
            Some(offset) => edges::checked(value, offset, of(true)),
            None => value,
        };
        Ok(match end? {
            Some(offset) => edges::checked(value, offset, of(false)),
            None => value,
        })
    }

    fn moves(&self) -> bool {
        self.edges[0] != Edge::Unbounded
    }
}

fn not_a_query(offset: Expr) -> Result<Expr> {
    match has_query(&offset) {
        true => unsupported("a query in the offset of a frame"),
        false => Ok(offset),
    }
}

fn has_query(expr: &Expr) -> bool {
    expr.exists(|part| Ok(matches!(part, Expr::ScalarSubquery(_)))).unwrap_or(true)
}

fn edge(bound: &FrameBound) -> (Edge, Option<&tree::Expr>) {
    match bound {
        FrameBound::UnboundedPreceding | FrameBound::UnboundedFollowing => (Edge::Unbounded, None),
        FrameBound::CurrentRow => (Edge::Current, None),
        FrameBound::Preceding(offset) => (Edge::Preceding, Some(offset)),
        FrameBound::Following(offset) => (Edge::Following, Some(offset)),
    }
}

impl Binder<'_> {
    pub(super) fn framing(&self, frame: &Frame, at: At, order: &[By], scope: &Scope<'_>) -> Result<Framing> {
        check_edges(frame, at)?;
        let units = match frame.units {
            tree::Units::Rows => Units::Rows,
            tree::Units::Range => Units::Range,
            tree::Units::Groups => Units::Groups,
        };
        if units == Units::Groups && order.is_empty() {
            return wrong(at, "42P20", "GROUPS mode requires an ORDER BY clause");
        }
        let sides = [edge(&frame.start), edge(&frame.end)];
        let mut framing = Framing {
            units,
            edges: sides.map(|(edge, _)| edge),
            exclude: match frame.exclude {
                tree::Exclude::NoOthers => Exclude::NoOthers,
                tree::Exclude::CurrentRow => Exclude::CurrentRow,
                tree::Exclude::Group => Exclude::Group,
                tree::Exclude::Ties => Exclude::Ties,
            },
            offsets: [None, None],
            key: None,
            open: [None, None],
        };
        for (number, (edge, offset)) in sides.into_iter().enumerate() {
            let Some(offset) = offset else { continue };
            if units != Units::Range {
                let rows = self.rows_of_offset(offset, number, units, scope)?;
                framing.open[number] = (!matches!(rows, Expr::Literal(..))).then(|| rows.clone());
                framing.offsets[number] = Some(rows);
                continue;
            }
            let [by] = order else {
                let message = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
                return wrong(at, "42P20", message);
            };
            let start = number == 0;
            // As PostgreSQL: where the order is descending, both are turned round.
            let side = edges::Side { start, less: (edge == Edge::Preceding) == by.asc, up_to: start != by.asc };
            let (key, bound) = self.bound_of(offset, by, side, scope)?;
            framing.open[number] = Some(bound.clone());
            (framing.key, framing.offsets[number]) = (Some(key), Some(bound));
        }
        Ok(framing)
    }

    /// An offset of ROWS or GROUPS.
    fn rows_of_offset(&self, offset: &tree::Expr, number: usize, units: Units, scope: &Scope<'_>) -> Result<Expr> {
        let clause = if units == Units::Rows { Clause::FrameRows } else { Clause::FrameGroups };
        let around = Around { scope: None, ctes: scope.ctes };
        let side = if number == 0 { "starting" } else { "ending" };
        match self.count(offset, clause, around)? {
            None => wrong(offset.at, "22004", format!("frame {side} offset must not be null")),
            Some(Expr::Literal(ScalarValue::Int64(Some(..0)), _)) => {
                wrong(offset.at, "22013", format!("frame {side} offset must not be negative"))
            }
            Some(rows) => Ok(rows),
        }
    }

    /// The key of RANGE, and its bound.
    fn bound_of(&self, written: &tree::Expr, by: &By, side: edges::Side, scope: &Scope<'_>) -> Result<(Expr, Expr)> {
        use ArrowType::{Date32, Float32, Float64, Int16, Int32, Int64, Interval, Time64, Timestamp};
        let of = by.expr.get_type(&scope.schema)?;
        let takes = match &of {
            Int16 | Int32 | Int64 => DataType::Int8,
            Float32 | Float64 => DataType::Float8,
            of if is_number(of) => DataType::Numeric(None),
            Date32 | Timestamp(..) | Time64(_) | Interval(_) => DataType::Interval,
            of => {
                let column = type_name(of);
                let message =
                    format!("RANGE with offset PRECEDING/FOLLOWING is not supported for column type {column}");
                return wrong(written.at, "0A000", message);
            }
        };
        if let ExprKind::Parameter(number) = written.kind {
            self.settle_parameter(parameter_number(number)?, takes);
        }
        let around = Around { scope: None, ctes: scope.ctes };
        let offset = self.without_variables(written, Clause::FrameRange, around)?;
        let given = offset.get_type(&scope.schema)?;
        let fits = is_open(&offset)
            || match takes {
                DataType::Int8 => matches!(given, Int16 | Int32 | Int64),
                DataType::Float8 => is_number(&given),
                DataType::Numeric(_) => is_number(&given) && !given.is_floating(),
                _ => matches!(given, Interval(_)),
            };
        if !fits {
            let (column, given) = (type_name(&of), type_name(&given));
            let message = format!(
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {column} and offset type \
                {given}"
            );
            let error = EngineError::new("0A000", message);
            return fail(written.at, error.with_hint("Cast the offset value to an appropriate type."));
        }
        let offset = self.cast_to(offset, takes, &scope.schema).at_value(written.at)?;
        let key = match takes {
            DataType::Numeric(_) if !is_decimal(&of) => convert(by.expr.clone(), takes),
            _ if of == Date32 => convert(by.expr.clone(), DataType::Timestamp),
            _ => by.expr.clone(),
        };
        if takes != DataType::Interval || matches!(of, Time64(_)) {
            return Ok((edges::key(key.clone()), edges::bound(key, offset, side)));
        }
        let offset = edges::offset(key.clone(), offset, side);
        let op = if side.less { Operator::Minus } else { Operator::Plus };
        let bound = operators::operated(op, key.clone(), offset, &scope.schema)?;
        Ok((key, bound))
    }

    /// A window function over its window. `inner`: how it is done here where DataFusion does it otherwise; `None`: it
    /// looks at no frame.
    pub(super) fn over_frames(
        &self,
        mut call: WindowFunction,
        defined: Defined,
        inner: Option<Inner>,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let Defined { partition, mut order, frame } = defined;
        let default = WindowFrame::new((!order.is_empty()).then_some(false));
        let moves = frame.as_ref().is_some_and(Framing::moves);
        let looks = !matches!(inner, None | Some(Inner::Lag | Inner::Lead));
        let plain = match &frame {
            Some(frame) if looks => frame.plain(&mut order)?,
            _ => Some(default.clone()),
        };
        let plain = plain.filter(|_| match &inner {
            Some(Inner::Aggregate(function)) => !moves || TAKEN_BACK.contains(&function.name()),
            Some(Inner::First | Inner::Last) | None => true,
            Some(Inner::Nth | Inner::Lag | Inner::Lead) => has_number(&call.params.args),
        });
        call.params.window_frame = plain.clone().unwrap_or_else(|| WindowFrame::new(None));
        (call.params.partition_by, call.params.order_by) = (partition, order);
        let made = self.made(Expr::WindowFunction(Box::new(call)), &scope.schema)?;
        let Expr::WindowFunction(made) = made else { return Ok(made) };
        let (framing, passed) = if looks { (frame, None) } else { (None, frame) };
        let made = match inner.filter(|_| plain.is_none()) {
            None => crate::plan::rules::settle_window(made, &scope.schema)?,
            Some(inner) => framed_call(*made, inner, framing, scope)?,
        };
        match passed {
            Some(passed) => passed.checked(made),
            None => Ok(made),
        }
    }
}

/// Whether the number of `lag`, `lead` and `nth_value` is a constant that DataFusion takes, or not given.
fn has_number(args: &[Expr]) -> bool {
    args.get(1)
        .is_none_or(|number| matches!(number, Expr::Literal(of, _) if !of.is_null() && of.data_type().is_integer()))
}

/// The call, as [`framed`] has it.
fn framed_call(call: WindowFunction, inner: Inner, framing: Option<Framing>, scope: &Scope<'_>) -> Result<Expr> {
    let mut call = comparable::with_compared_arguments(call, &scope.schema)?;
    if let (Inner::Nth | Inner::Lag | Inner::Lead, Some(number)) = (&inner, call.params.args.get_mut(1)) {
        *number = convert(std::mem::take(number), DataType::Int4);
    }
    let null = |arg: &Expr| matches!(arg, Expr::Literal(value, _) if value.is_null());
    if call.params.args.len() > 2 && null(&call.params.args[2]) {
        call.params.args.truncate(2); // NULL is the default that is not given.
    }
    let unframed = match call.params.order_by.is_empty() {
        true => [Edge::Unbounded, Edge::Unbounded],
        false => [Edge::Unbounded, Edge::Current],
    };
    let framing = framing.unwrap_or(Framing {
        units: Units::Range,
        edges: unframed,
        exclude: Exclude::NoOthers,
        offsets: [None, None],
        key: None,
        open: [None, None],
    });
    let params = &mut call.params;
    let peers = framing.units != Units::Rows || matches!(framing.exclude, Exclude::Group | Exclude::Ties);
    let by = params.order_by.first();
    let shape = Shape {
        args: params.args.len(),
        filtered: params.filter.is_some(),
        keys: if peers { params.order_by.len() } else { 0 },
        units: framing.units,
        edges: framing.edges,
        exclude: framing.exclude,
        descending: by.is_some_and(|by| !by.asc),
        nulls_first: by.is_some_and(|by| by.nulls_first),
    };
    params.args.extend(params.filter.take().map(|filter| *filter));
    params.args.extend(params.order_by.iter().take(shape.keys).map(|by| by.expr.clone()));
    params.args.extend(framing.key);
    params.args.extend(framing.offsets.into_iter().flatten());
    if params.args.iter().any(has_query) {
        return unsupported("a query in the arguments, or in the frame, of this window function");
    }
    call.fun = WindowFunctionDefinition::WindowUDF(framed::function(inner, shape));
    Ok(Expr::WindowFunction(Box::new(call)))
}

fn check_edges(frame: &Frame, at: At) -> Result<()> {
    let refused = |message: &str| wrong(at, "42P20", message);
    match (&frame.start, &frame.end) {
        (FrameBound::UnboundedFollowing, _) => refused("frame start cannot be UNBOUNDED FOLLOWING"),
        (_, FrameBound::UnboundedPreceding) => refused("frame end cannot be UNBOUNDED PRECEDING"),
        (FrameBound::CurrentRow, FrameBound::Preceding(_)) => {
            refused("frame starting from current row cannot have preceding rows")
        }
        (FrameBound::Following(_), FrameBound::Preceding(_)) => {
            refused("frame starting from following row cannot have preceding rows")
        }
        (FrameBound::Following(_), FrameBound::CurrentRow) => {
            refused("frame starting from following row cannot end with current row")
        }
        _ => Ok(()),
    }
}
