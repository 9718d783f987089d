//! Casts that are not between the engine's types: to and from arrays and rows; and whether a row is NULL.
use crate::cast::{Castable, castable};
use crate::error::tunnel;
use crate::functions::convert::{self, convert, convert_scalar};
use crate::functions::{self, builtin, chars};
use crate::values::arrays::{is_array, is_row, items_of, row_fields};
use crate::values::{arrow_type, field_of, field_type, rows};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Cast, Placeholder};
use datafusion::logical_expr::{Expr, ExprSchemable};
use std::sync::Arc;
use terrace_engine::{DataType, EngineError};

/// Casts that are not between the engine's types.
pub(super) fn written_cast(cast: Cast, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let source = cast.expr.to_field(schema)?.1;
    let cannot = |to: &str| {
        let message = format!("cannot cast type {} to {to}", builtin::type_name(source.data_type()));
        Err(tunnel(EngineError::new("42846", message)))
    };
    let is_text = matches!(source.data_type(), ArrowType::Utf8 | ArrowType::Null);
    Ok(match (source.data_type(), cast.field.data_type()) {
        (ArrowType::Utf8, ArrowType::Binary) if let Some(DataType::Char(n)) = field_type(&source) => {
            let expr = Box::new(chars::with_blanks(*cast.expr, n)?);
            Transformed::yes(Expr::Cast(Cast { expr, field: cast.field }))
        }
        (from, to) if let Some(item) = items_of(to) => {
            let Some(to) = field_type(&cast.field) else {
                let message = format!("arrays of {} are not supported", builtin::type_name(item.data_type()));
                return Err(tunnel(EngineError::unsupported(message)));
            };
            match (from, field_type(&source)) {
                (given, Some(from)) if is_array(given) && castable(from, to) != Castable::Never => {}
                (given, None)
                    if let Some(item) = items_of(given)
                        && is_castable_row(item.data_type(), to)? => {}
                _ if is_text => {}
                _ => return cannot(to.base_name()),
            }
            let expr = match *cast.expr {
                Expr::Placeholder(Placeholder { id, field: None }) => {
                    Expr::Placeholder(Placeholder { id, field: Some(Arc::new(field_of("", to, true))) })
                }
                other => other,
            };
            // Items that are texts of another kind are made anew, and of char(n) with their lengths.
            let same =
                expr.get_type(schema)? == arrow_type(to) && field_type(expr.to_field(schema)?.1.as_ref()) == Some(to);
            Transformed::yes(match expr {
                Expr::Literal(value, _) => {
                    let literal = Expr::Literal(convert_scalar(&value, to)?, None);
                    if convert::is_written(&field_of("", to, true)) { chars::labelled(literal, to) } else { literal }
                }
                expr if same => expr,
                expr => convert(expr, to),
            })
        }
        (_, to) if is_row(to) => return cast_to_row(cast, &source),
        (ArrowType::List(_) | ArrowType::Struct(_), to) => match field_type(&cast.field) {
            Some(text) if text.is_text() && field_type(&source) == DataType::Char(0).array() => {
                return Err(chars::array_refused());
            }
            Some(text) if text.is_text() => {
                let of = field_type(&source).filter(|_| chars::is_array_of_char(&source));
                let shown = builtin::as_text_of(*cast.expr, of);
                Transformed::yes(if text == DataType::Text { shown } else { convert(shown, text) })
            }
            Some(other) => return cannot(other.base_name()),
            None => return cannot(&to.to_string()),
        },
        _ => Transformed::no(Expr::Cast(cast)),
    })
}

/// A cast to a composite type.
fn cast_to_row(cast: Cast, source: &Field) -> Result<Transformed<Expr>> {
    let from = source.data_type();
    let cannot = |to: &str| {
        let message = format!("cannot cast type {} to {to}", builtin::type_name(from));
        Err(tunnel(EngineError::new("42846", message)))
    };
    let Some(to @ DataType::Composite(of)) = field_type(&cast.field) else { return cannot("record") };
    Ok(Transformed::yes(match (from, field_type(source)) {
        (row, Some(from)) if is_row(row) && from == to => *cast.expr,
        (row, Some(from)) if is_row(row) && castable(from, to) == Castable::Never => return cannot(to.base_name()),
        (row, Some(_)) if is_row(row) => convert(*cast.expr, to),
        (row, None) if let Some(fields) = row_fields(row) => {
            rows::check_castable(fields, of, Castable::Explicitly).map_err(tunnel)?;
            convert(*cast.expr, to)
        }
        (ArrowType::Utf8 | ArrowType::Null, _) => match *cast.expr {
            Expr::Literal(value, _) => Expr::Literal(convert_scalar(&value, to)?, None),
            Expr::Placeholder(Placeholder { id, field: None }) => {
                Expr::Placeholder(Placeholder { id, field: Some(Arc::new(field_of("", to, true))) })
            }
            other => convert(other, to),
        },
        _ => return cannot(to.base_name()),
    }))
}

/// Whether rows of no type can become items of an array type. 42846
fn is_castable_row(item: &ArrowType, to: DataType) -> Result<bool> {
    match (row_fields(item), to.item()) {
        (Some(fields), Some(DataType::Composite(of))) => {
            rows::check_castable(fields, of, Castable::Explicitly).map_err(tunnel).map(|()| true)
        }
        _ => Ok(false),
    }
}

/// `row IS NULL`: every field is. `row IS NOT NULL`: no field is.
pub(super) fn null_test(value: Expr, schema: &DFSchema, not: bool) -> Result<Expr> {
    let test = |value: Expr| if not { value.is_not_null() } else { value.is_null() };
    if !is_row(&value.get_type(schema)?) {
        return Ok(test(value));
    }
    Ok(functions::rows::is_null(value, not))
}
