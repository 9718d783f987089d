//! Whether an expression gives the same value at all times, whatever a session has set: what an index is on must
//! (42P17). As PostgreSQL's `provolatile`, for what PostgreSQL calls stable and what is a pure function here.
//!
//! 1. Dates and times become text, and text becomes them, by DateStyle and the session's zone; moments become dates,
//!    and are cut, taken apart and moved by months, in the session's zone.
//! 2. A label of an enum may be renamed, and a type may get new ones. The same is so for arrays of enums: no array
//!    becomes text or the other way round.
use crate::error::from_datafusion;
use crate::parse::stored::Stored;
use crate::values::arrays::is_array;
use crate::values::{enum_of, is_zoned};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, Volatility};
use terrace_engine::Result;
use terrace_grammar::statement::{ExprKind, Node, walk};

/// Functions that show values of any type, or read or write dates and times.
const BY_SETTINGS: [&str; 16] = [
    "as_text",
    "array_to_json",
    "array_to_string",
    "concat",
    "concat_ws",
    "format",
    "json_build_array",
    "json_build_object",
    "jsonb_build_array",
    "jsonb_build_object",
    "quote_literal",
    "quote_nullable",
    "row_to_json",
    "to_char",
    "to_json",
    "to_jsonb",
];
/// Functions of moments that go by the session's zone, and of plain timestamps that do not.
const BY_ZONE: [&str; 9] = [
    "date_part",
    "date_trunc",
    "extract",
    "move_days",
    "move_days_back",
    "move_time",
    "move_time_back",
    "Later",
    "Earlier",
];
/// Functions that answer a moment of the session's zone, or read a text by what the session has set.
const STABLE: [&str; 4] = ["make_timestamptz", "to_date", "to_number", "to_timestamp"];
/// What answers a constant as it is planned.
const OF_TYPES: [&str; 5] = ["age", "enum_first", "enum_last", "enum_range", "pg_typeof"];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    /// A date, a time, a timestamp or an interval: by their texts.
    Time,
    Moment,
    Enum,
    Array,
    Other,
}

fn kind(of: &ArrowType) -> Kind {
    match of {
        _ if enum_of(of).is_some() => Kind::Enum,
        _ if is_zoned(of) => Kind::Moment,
        ArrowType::Utf8 => Kind::Text,
        ArrowType::Date32 | ArrowType::Timestamp(..) | ArrowType::Time64(_) | ArrowType::Interval(_) => Kind::Time,
        of if is_array(of) => Kind::Array,
        _ => Kind::Other,
    }
}

fn cast_changes(from: &ArrowType, to: &ArrowType) -> bool {
    match (kind(from), kind(to)) {
        // A time of day is always written alike.
        (Kind::Time, Kind::Text) => !matches!(from, ArrowType::Time64(_)),
        (Kind::Text, Kind::Time | Kind::Moment | Kind::Enum | Kind::Array)
        | (Kind::Moment | Kind::Enum | Kind::Array, Kind::Text)
        | (Kind::Time, Kind::Moment)
        | (Kind::Moment, Kind::Time) => true,
        _ => false,
    }
}

/// Whether a function writes a time as a text, or reads one of a text (invariant 1).
fn is_by_text(made: Kind, args: &[Expr], of: &impl Fn(&Expr) -> ArrowType) -> bool {
    let given: Vec<Kind> =
        args.iter().filter(|arg| !matches!(arg, Expr::Literal(..))).map(|arg| kind(&of(arg))).collect();
    let has_time = given.iter().any(|of| matches!(of, Kind::Time | Kind::Moment));
    match made {
        Kind::Text => has_time && !args.iter().any(|arg| matches!(of(arg), ArrowType::Time64(_))),
        Kind::Time | Kind::Moment => given.contains(&Kind::Text) && !has_time,
        _ => false,
    }
}

fn changes(expr: &Expr, schema: &DFSchema) -> bool {
    let of = |expr: &Expr| expr.get_type(schema).unwrap_or(ArrowType::Null);
    match expr {
        Expr::Cast(cast) => cast_changes(&of(&cast.expr), cast.field.data_type()),
        Expr::ScalarFunction(call) => {
            let name = call.func.name();
            let first = name.split(' ').next().unwrap_or(name);
            call.func.signature().volatility != Volatility::Immutable
                || BY_SETTINGS.contains(&first)
                || BY_ZONE.contains(&first) && call.args.iter().any(|arg| is_zoned(&of(arg)))
                || matches!(first, "convert" | "compare")
                    && call.args.iter().any(|arg| cast_changes(&of(arg), &of(expr)))
                || is_by_text(kind(&of(expr)), &call.args, &of)
                || STABLE.contains(&first) && (first != "to_timestamp" || call.args.len() == 2)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (left, right) = (kind(&of(left)), kind(&of(right)));
            let moves = matches!(op, Operator::Plus | Operator::Minus) && [left, right].contains(&Kind::Moment);
            moves && left != right || matches!((left, right), (Kind::Moment, Kind::Time) | (Kind::Time, Kind::Moment))
        }
        _ => false,
    }
}

/// Whether the expression of the plan may give other values at other times. `plan`: as it was bound; and with all
/// conversions that it needs. `text`: as it is kept.
pub(super) fn may_change(plan: &LogicalPlan, text: &str) -> Result<bool> {
    let mut found = false;
    let visited = plan.apply_with_subqueries(|node| {
        let schema = node.inputs().first().map_or(node.schema().clone(), |input| input.schema().clone());
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                found |= changes(expr, &schema);
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    visited.map_err(from_datafusion)?;
    if let Some(stored) = Stored::read(text) {
        walk(Node::Expr(stored.expr()), &mut |node| {
            if let Node::Expr(expr) = node
                && let ExprKind::Call(call) = &expr.kind
            {
                found |= OF_TYPES.contains(&&*call.name.last().name)
                    && (call.name.last().name != "age" || call.args.len() == 1);
            }
            !found
        });
    }
    Ok(found)
}
