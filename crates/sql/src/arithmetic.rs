//! Integer arithmetic as SQL has it: +, - and * (and the minus sign) that leave the type's range are 22003, where DataFusion would wrap; and a cast
//! of a float to an integer rounds, where DataFusion would truncate.
//!
//! An analyzer rule, run after type coercion, replaces the operators by functions. Names of result columns stay.
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::kernels::{arity, numeric};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
use std::sync::{Arc, LazyLock};

#[derive(Debug)]
pub(crate) struct CheckedArithmetic;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Function {
    Add,
    Subtract,
    Multiply,
    Round,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    function: Function,
    signature: Signature,
}

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 4]> = LazyLock::new(|| {
    [Function::Add, Function::Subtract, Function::Multiply, Function::Round].map(|function| {
        let arguments = if function == Function::Round { 1 } else { 2 };
        let signature = Signature::any(arguments, Volatility::Immutable);
        Arc::new(ScalarUDF::from(Checked { function, signature }))
    })
});

impl Function {
    fn call(self, args: Vec<Expr>) -> Expr {
        Expr::ScalarFunction(ScalarFunction::new_udf(FUNCTIONS[self as usize].clone(), args))
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        match self.function {
            Function::Add => "checked_add",
            Function::Subtract => "checked_subtract",
            Function::Multiply => "checked_multiply",
            Function::Round => "round_ties_even",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let result: ArrayRef = match (self.function, args.args.as_slice()) {
            (Function::Round, [value]) => {
                let array = value.to_array(if scalar { 1 } else { args.number_rows })?;
                let rounded = arity::unary::<Float64Type, _, Float64Type>(array.as_primitive(), f64::round_ties_even);
                Arc::new(rounded)
            }
            (function, [left, right]) => {
                let datum = |v: &ColumnarValue| -> Result<(ArrayRef, bool)> {
                    let is_scalar = matches!(v, ColumnarValue::Scalar(_));
                    Ok((v.to_array(if is_scalar { 1 } else { args.number_rows })?, is_scalar))
                };
                let (left, right) = (Operand(datum(left)?), Operand(datum(right)?));
                match function {
                    Function::Add => numeric::add(&left, &right)?,
                    Function::Subtract => numeric::sub(&left, &right)?,
                    _ => numeric::mul(&left, &right)?,
                }
            }
            (function, args) => unreachable!("{function:?} of {} arguments", args.len()),
        };
        if scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }
}

/// An array, or a scalar as an array of one.
struct Operand((ArrayRef, bool));

impl datafusion::arrow::array::Datum for Operand {
    fn get(&self) -> (&dyn datafusion::arrow::array::Array, bool) {
        (self.0.0.as_ref(), self.0.1)
    }
}

impl AnalyzerRule for CheckedArithmetic {
    fn name(&self) -> &str {
        "checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewrite_plan = |plan: LogicalPlan| {
            // The schema that the expressions refer to: their inputs', and for a scan its own.
            let mut schema = merge_schema(&plan.inputs());
            if let LogicalPlan::TableScan(scan) = &plan {
                schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
            }
            let names = NamePreserver::new(&plan);
            let rewritten = plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let expr = expr.transform_up(|e| rewrite(e, &schema))?;
                Ok(expr.update_data(|e| name.restore(e)))
            })?;
            rewritten.map_data(|plan| plan.recompute_schema())
        };
        Ok(plan.transform_up_with_subqueries(rewrite_plan)?.data)
    }
}

fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_integer = |e: &Expr| matches!(e.get_type(schema), Ok(DataType::Int32 | DataType::Int64));
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply)
                && is_integer(&left)
                && is_integer(&right) =>
        {
            let function = match op {
                Operator::Plus => Function::Add,
                Operator::Minus => Function::Subtract,
                _ => Function::Multiply,
            };
            // Coercion has made both of one type, except where both are literals of a DEFAULT.
            if left.get_type(schema)? != right.get_type(schema)? {
                return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
            }
            Ok(Transformed::yes(function.call(vec![*left, *right])))
        }
        Expr::Cast(Cast { expr, field })
            if matches!(field.data_type(), DataType::Int32 | DataType::Int64)
                && matches!(expr.get_type(schema), Ok(DataType::Float64)) =>
        {
            let rounded = Function::Round.call(vec![*expr]);
            Ok(Transformed::yes(Expr::Cast(Cast { expr: Box::new(rounded), field })))
        }
        Expr::Negative(value) if is_integer(&value) => {
            let zero = Expr::Literal(ScalarValue::new_zero(&value.get_type(schema)?)?, None);
            Ok(Transformed::yes(Function::Subtract.call(vec![zero, *value])))
        }
        other => Ok(Transformed::no(other)),
    }
}
