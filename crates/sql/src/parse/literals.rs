//! Number literals as PostgreSQL types them: integer where it fits, else bigint, else numeric; with a point or an
//! exponent numeric. (Numbers of more than 38 digits are double precision: numeric has no more here.)
//!
//! Numbers that DataFusion must see as they stand (positions in ORDER BY and GROUP BY, LIMIT, frames of windows) are
//! marked first, with the flag that the parser sets for another dialect's long literals, and left alone.
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType as SqlType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, GroupByExpr, Interval, LimitClause, OrderByKind, Query, Select, Statement, TypedString,
    UnaryOperator, Value, VisitMut, VisitorMut, WindowFrame, WindowFrameBound, WindowType,
};
use datafusion::sql::sqlparser::tokenizer::Span;
use std::ops::ControlFlow;

/// Types the number literals of a query.
pub(crate) fn type_numbers(statement: &mut Statement) {
    let ControlFlow::Continue(()) = statement.visit(&mut Numbers);
    // Whoever prints a marked number would print its mark.
    let ControlFlow::Continue(()) = statement.visit(&mut Keep(false));
}

struct Numbers;

/// `INTERVAL '...'` as a cast of the text, which is read here ([`crate::functions::interval`]) and not by DataFusion.
/// `None`: it is refused.
fn typed_interval(interval: &Interval) -> Option<Expr> {
    let text = Expr::Value(Value::SingleQuotedString(interval_text(interval)?).into());
    Some(cast(text, SqlType::Interval { fields: None, precision: None }))
}

/// The whole text of an interval, its unit in it; `None`: fields behind it would cut something off.
pub(crate) fn interval_text(interval: &Interval) -> Option<String> {
    let Expr::Value(value) = interval.value.as_ref() else { return None };
    let Value::SingleQuotedString(text) = &value.value else { return None };
    if interval.last_field.is_some() || interval.leading_precision.is_some() {
        return None;
    }
    match &interval.leading_field {
        Some(field) => text.trim().parse::<i64>().is_ok().then(|| format!("{text} {field}")),
        None => Some(text.clone()),
    }
}

/// Everything below is to stay as it is (true), or is typed and needs no mark any more (false).
struct Keep(bool);

impl VisitorMut for Keep {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::Value(value) = expr
            && let Value::Number(_, kept) = &mut value.value
        {
            *kept = self.0;
        }
        ControlFlow::Continue(())
    }
}

fn keep(what: &mut impl VisitMut) {
    let ControlFlow::Continue(()) = what.visit(&mut Keep(true));
}

/// A bare number is a position; within an expression it is a number.
fn keep_position(expr: &mut Expr) {
    if matches!(expr, Expr::Value(_)) {
        keep(expr);
    }
}

impl VisitorMut for Numbers {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if let Some(order) = &mut query.order_by
            && let OrderByKind::Expressions(exprs) = &mut order.kind
        {
            exprs.iter_mut().for_each(|e| keep_position(&mut e.expr));
        }
        if let Some(limit) = &mut query.limit_clause {
            match limit {
                LimitClause::LimitOffset { limit, offset, .. } => {
                    limit.iter_mut().for_each(keep);
                    offset.iter_mut().for_each(|o| keep(&mut o.value));
                }
                LimitClause::OffsetCommaLimit { offset, limit } => {
                    keep(offset);
                    keep(limit);
                }
            }
        }
        if let Some(fetch) = &mut query.fetch {
            fetch.quantity.iter_mut().for_each(keep);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        if let GroupByExpr::Expressions(exprs, _) = &mut select.group_by {
            exprs.iter_mut().for_each(keep_position);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Interval(interval) => {
                if let Some(cast) = typed_interval(interval) {
                    *expr = cast;
                }
            }
            // How many digits a number is rounded to is part of the result's type, which a cast would hide.
            Expr::Function(Function { name, args: FunctionArguments::List(list), .. })
                if matches!(name.to_string().as_str(), "round" | "trunc") =>
            {
                for argument in list.args.iter_mut().skip(1) {
                    let FunctionArg::Unnamed(FunctionArgExpr::Expr(digits)) = argument else { continue };
                    let number = match &*digits {
                        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => expr.as_ref(),
                        other => other,
                    };
                    if matches!(number, Expr::Value(_)) {
                        keep(digits);
                    }
                }
            }
            Expr::Function(Function { over: Some(WindowType::WindowSpec(window)), .. }) => {
                if let Some(WindowFrame { start_bound, end_bound, .. }) = &mut window.window_frame {
                    for bound in [Some(start_bound), end_bound.as_mut()].into_iter().flatten() {
                        if let WindowFrameBound::Preceding(Some(rows)) | WindowFrameBound::Following(Some(rows)) = bound
                        {
                            keep(rows.as_mut());
                        }
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Value(value) => {
                if let Value::Number(text, false) = &value.value
                    && let Some(typed) = typed(text)
                {
                    *expr = typed;
                }
            }
            // `~ x` is `x # -1`, and a smallint makes nothing wider.
            Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: inner } => {
                let inner = std::mem::replace(inner.as_mut(), Expr::Value(Value::Null.into()));
                let ones = Expr::UnaryOp {
                    op: UnaryOperator::Minus,
                    expr: Box::new(Expr::Value(Value::Number("1".into(), false).into())),
                };
                let right = Box::new(cast(ones, SqlType::Int2(None)));
                let not = Expr::BinaryOp {
                    left: Box::new(Expr::Nested(Box::new(inner))),
                    op: BinaryOperator::PGBitwiseXor,
                    right,
                };
                *expr = Expr::Nested(Box::new(not));
            }
            // -1 is a literal too.
            Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => {
                negate(inner.as_mut()).into_iter().for_each(|e| *expr = e)
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn integer_cast(number: Expr) -> Expr {
    cast(number, SqlType::Int4(None))
}

fn cast(expr: Expr, data_type: SqlType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

fn is_number(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::Number(..)))
}

/// What [`typed`] made of a number, with a minus before it.
fn negate(typed: &mut Expr) -> Option<Expr> {
    let nothing = || Expr::Value(Value::Null.into());
    match typed {
        Expr::Cast { expr, data_type: SqlType::Int4(None), .. } if is_number(expr) => {
            let number = std::mem::replace(expr.as_mut(), nothing());
            Some(integer_cast(Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number) }))
        }
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) if text == LEAST_INTEGER => {
                let number = Expr::Value(Value::Number(LEAST_INTEGER.to_owned(), false).into());
                Some(integer_cast(Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number) }))
            }
            _ => None,
        },
        Expr::TypedString(TypedString { value, .. }) => match &mut value.value {
            Value::Number(_, _) => None,
            // The least integers are integers, as the parser of PostgreSQL has it.
            Value::SingleQuotedString(text) if text.trim_start_matches(MARK) == LEAST_BIGINT => {
                let number = Expr::Value(Value::Number(LEAST_BIGINT.to_owned(), false).into());
                Some(Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number) })
            }
            Value::SingleQuotedString(text) if text.starts_with(MARK) => {
                match text[MARK.len_utf8()..].strip_prefix('-') {
                    Some(positive) => *text = format!("{MARK}{positive}"),
                    None => text.insert(MARK.len_utf8(), '-'),
                }
                Some(std::mem::replace(typed, nothing()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whitespace that a number's text may begin with, and that tells our typed strings from the user's.
const MARK: char = '\x0b';

/// Of integer and bigint, without their signs.
const LEAST_INTEGER: &str = "2147483648";
const LEAST_BIGINT: &str = "9223372036854775808";

/// `None` where DataFusion's own typing (bigint) is right.
fn typed(text: &str) -> Option<Expr> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        if text.parse::<i32>().is_ok() {
            return Some(integer_cast(Expr::Value(Value::Number(text.to_owned(), false).into())));
        }
        if text.parse::<i64>().is_ok() {
            return None;
        }
    }
    let data_type = match digits(text) {
        Some((precision, scale)) => {
            SqlType::Numeric(ExactNumberInfo::PrecisionAndScale(precision as u64, scale as i64))
        }
        None => SqlType::Float8,
    };
    let value = Value::SingleQuotedString(format!("{MARK}{text}"));
    Some(Expr::TypedString(TypedString { data_type, value: value.with_span(Span::empty()), uses_odbc_syntax: false }))
}

/// Precision and scale of a number; `None` where it has more than 38 digits.
pub(crate) fn digits(text: &str) -> Option<(usize, usize)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let scale = (fraction.len() as i64 - exponent).max(0);
    let leading = whole.trim_start_matches('0').len() as i64;
    let before = match leading {
        0 => {
            let zeros = fraction.len() - fraction.trim_start_matches('0').len();
            if zeros == fraction.len() { 0 } else { (exponent - zeros as i64).max(0) }
        }
        digits => (digits + exponent).max(0),
    };
    let precision = (before + scale).max(1);
    (precision <= 38).then_some((precision as usize, scale as usize))
}

#[cfg(test)]
mod tests;
