//! `enum_first`, `enum_last`, `enum_range`.
//!
//! 1. Those of one argument look at its type alone, and are constants.
//! 2. Of two arguments the bounds may be NULL: then that side is open.
use crate::error::tunnel;
use crate::values::{ColumnBuilder, array_datum, arrow_type, enum_of, to_scalar};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::sync::Arc;
use terrace_engine::types::{Array, EnumType, Items};
use terrace_engine::{DataType, Datum, EngineError};

/// Whether there is such a function of so many arguments.
pub(crate) fn is_function(name: &str, arguments: usize) -> bool {
    matches!((name, arguments), ("enum_first" | "enum_last", 1) | ("enum_range", 1 | 2))
}

/// A call; `None`: no argument is an enum, or two are of different types.
pub(crate) fn call(name: &str, args: Vec<Expr>, schema: &DFSchema) -> Result<Option<Expr>> {
    let types = args.iter().map(|arg| arg.get_type(schema)).collect::<Result<Vec<ArrowType>>>()?;
    let mut found = types.iter().filter_map(enum_of);
    let Some(of) = found.next().filter(|of| found.all(|other| other == *of)) else { return Ok(None) };
    let is_open = |arg: &Expr| matches!(arg, Expr::Literal(ScalarValue::Null | ScalarValue::Utf8(_), _));
    if types.iter().zip(&args).any(|(given, arg)| enum_of(given).is_none() && !is_open(arg)) {
        return Ok(None);
    }
    let labels = of.def().labels();
    let one = |label: Option<&terrace_engine::types::enums::Label>| match label {
        Some(label) => {
            of.check(label).map_err(tunnel)?;
            Ok(to_scalar(&Datum::Enum(of, label.position), DataType::Enum(of)))
        }
        None => {
            let message = format!("enum {} contains no values", DataType::Enum(of).base_name());
            Err(tunnel(EngineError::new("55000", message)))
        }
    };
    let value = match (name, args.len()) {
        ("enum_first", _) => one(labels.first())?,
        ("enum_last", _) => one(labels.last())?,
        (_, 1) => {
            let all = between(of, i64::MIN, i64::MAX).map_err(tunnel)?;
            to_scalar(&all, list_of(of))
        }
        _ => {
            let range = EnumRange { of, signature: Signature::any(2, Volatility::Immutable) };
            let args = args.into_iter().map(|arg| match enum_of(&arg.get_type(schema)?) {
                Some(_) => Ok(arg),
                None => Ok(crate::functions::convert::convert(arg, DataType::Enum(of))),
            });
            let args = args.collect::<Result<Vec<Expr>>>()?;
            return Ok(Some(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(range)), args))));
        }
    };
    let value = Expr::Literal(value, None);
    match args.into_iter().find(|arg| arg.exists(|part| Ok(matches!(part, Expr::Placeholder(_)))).unwrap_or(false)) {
        None => Ok(Some(value)),
        // The statement has the parameter, though its value does not matter.
        Some(arg) => {
            let when_then_expr = vec![(Box::new(arg.is_null()), Box::new(value.clone()))];
            Ok(Some(Expr::Case(Case { expr: None, when_then_expr, else_expr: Some(Box::new(value)) })))
        }
    }
}

fn list_of(of: EnumType) -> DataType {
    DataType::Enum(of).array().expect("an enum is no array")
}

/// The labels of these positions, and between them.
fn between(of: EnumType, from: i64, to: i64) -> terrace_engine::Result<Datum> {
    let labels = of.def().labels().iter().filter(|label| (from..=to).contains(&label.position));
    let value = |label: &terrace_engine::types::enums::Label| {
        of.check(label)?;
        Ok(Datum::Enum(of, label.position))
    };
    let values = labels.map(value).collect::<terrace_engine::Result<Vec<Datum>>>()?;
    Array::new(Items::of(DataType::Enum(of)).expect("an enum is no array"), &values).map(Datum::Array)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct EnumRange {
    of: EnumType,
    signature: Signature,
}

impl ScalarUDFImpl for EnumRange {
    fn name(&self) -> &str {
        "enum_range"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        Ok(arrow_type(list_of(self.of)))
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name(), self.return_type(&[])?, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (from, to) = (args.args[0].to_array(args.number_rows)?, args.args[1].to_array(args.number_rows)?);
        let mut builder = ColumnBuilder::new(list_of(self.of), args.number_rows);
        let bound = |value: Datum, open: i64| if let Datum::Enum(_, at) = value { at } else { open };
        for row in 0..args.number_rows {
            let (from, to) = (bound(array_datum(&from, row), i64::MIN), bound(array_datum(&to, row), i64::MAX));
            builder.push(between(self.of, from, to).map_err(tunnel)?.as_ref());
        }
        Ok(ColumnarValue::Array(builder.finish()))
    }
}
