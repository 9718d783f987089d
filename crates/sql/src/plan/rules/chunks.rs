//! Deep expressions are cut into chunks. To the code that plans the expression above it, a chunk is one function call.
//!
//! 1. A chunk is typed completely when it is made. The same rules that later work on the whole plan, in the same order,
//!    resolve and coerce its types and put in PostgreSQL's semantics. (The rules on the whole plan do not look into
//!    it.) The arguments of a chunk are the columns, parameters and aggregates in it.
//! 2. A chunk and its arguments contain nothing that must be evaluated anew for each row, or at most once.
//! 3. An expression that stays deeper than [`DEEPEST`] is refused (54001).
//!
//! Upstream: `ExprSchemable::to_field` writes the name of each expression below it. Type coercion calls it at each
//! level, and so do the rules that rewrite plans. So the time grows with the cube of the depth (100 terms of a sum take
//! seconds in a build without optimisation).
use super::common_types::settle_expr;
use crate::error::tunnel;
use crate::plan::{comparable, resolve, semantics};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::optimizer::analyzer::type_coercion::TypeCoercionRewriter;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};
use terrace_engine::EngineError;

/// Levels of a chunk.
const CHUNK: usize = 24;

/// Levels of an expression that cannot be cut.
const DEEPEST: usize = 100;

/// Whether an expression has so many levels that it must be cut.
pub(crate) fn is_deep(expr: &Expr) -> bool {
    fn reaches(expr: &Expr, levels: usize) -> bool {
        if levels == 0 {
            return true;
        }
        let mut deep = false;
        let walked = expr.apply_children(|child| {
            deep = reaches(child, levels - 1);
            Ok(if deep { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        });
        deep && walked.is_ok()
    }
    reaches(expr, CHUNK)
}

/// The expression with its types resolved, and cut wherever it gets deep.
pub(crate) fn cut(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    cut_within(expr, schema).map(|(expr, _)| expr)
}

/// The same, and how many levels it has then.
fn cut_within(expr: Expr, schema: &DFSchema) -> Result<(Expr, usize)> {
    let mut below = 0;
    let expr = expr.map_children(|child| {
        let (child, levels) = cut_within(child, schema)?;
        below = below.max(levels);
        Ok(Transformed::yes(child))
    })?;
    let expr = resolve::rewrite(expr.data, schema)?.data;
    debug_assert!(below <= DEEPEST, "invariant 3: {below} levels below");
    if below + 1 >= CHUNK
        && let Some(chunk) = chunk(&expr, schema)
    {
        return Ok((chunk, 1));
    }
    if below >= DEEPEST {
        let message = format!("an expression nests more than {DEEPEST} operators");
        let hint = "Compute parts of it in a subquery of FROM or in WITH.";
        return Err(tunnel(EngineError::new("54001", message).with_hint(hint)));
    }
    Ok((expr, below + 1))
}

/// Whether an expression's value follows from its children's.
pub(crate) fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(call) => call.func.signature().volatility == Volatility::Immutable,
        Expr::Literal(..)
        | Expr::Alias(_)
        | Expr::BinaryExpr(_)
        | Expr::Like(_)
        | Expr::SimilarTo(_)
        | Expr::Not(_)
        | Expr::IsNotNull(_)
        | Expr::IsNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Negative(_)
        | Expr::Between(_)
        | Expr::Case(_)
        | Expr::Cast(_)
        | Expr::TryCast(_)
        | Expr::InList(_) => true,
        _ => false,
    }
}

/// Whether it is there before expressions are evaluated, or stands for a value that is.
fn is_given(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Column(_)
            | Expr::OuterReferenceColumn(..)
            | Expr::AggregateFunction(_)
            | Expr::WindowFunction(_)
            | Expr::Placeholder(Placeholder { field: Some(_), .. })
    )
}

/// An expression as a chunk; `None`: it can be none, or DataFusion is to say what is wrong with it.
fn chunk(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let mut given: Vec<Expr> = vec![];
    let numbered = expr.clone().transform_down(|expr| {
        if is_given(&expr) {
            let at = given.iter().position(|known| *known == expr).unwrap_or_else(|| {
                given.push(expr);
                given.len() - 1
            });
            let column = Expr::Column(Column::new_unqualified(at.to_string()));
            return Ok(Transformed::new(column, true, TreeNodeRecursion::Jump));
        }
        if is_plain(&expr) { Ok(Transformed::no(expr)) } else { internal_err!("not plain") }
    });
    let fields = given.iter().enumerate().map(|(at, expr)| {
        let field = expr.to_field(schema).ok()?.1;
        Some(field.as_ref().clone().with_name(at.to_string()).with_nullable(true))
    });
    let fields = Schema::new(fields.collect::<Option<Vec<Field>>>()?);
    let own = DFSchema::try_from(fields.clone()).ok()?;
    let settled = numbered.ok()?.data.transform_up(|expr| settle_expr(expr, &own)).ok()?.data;
    let typed = settled.rewrite(&mut TypeCoercionRewriter::new(&own)).ok()?.data;
    let expr = typed.transform_up(|expr| semantics::rewrite(expr, &own)).ok()?.data;
    let expr = expr.transform_up(|expr| comparable::rewrite(expr, &own)).ok()?.data;
    let field = expr.to_field(&own).ok()?.1.as_ref().clone().with_nullable(true);
    let mut hasher = FxHasher::default();
    expr.hash(&mut hasher);
    let signature = match given.len() {
        0 => Signature::nullary(Volatility::Immutable),
        given => Signature::any(given, Volatility::Immutable),
    };
    let name = format!("expression_{:016x}", hasher.finish());
    let chunk = Chunk { name, expr, fields: Arc::new(fields), field, signature, compiled: Compiled::default() };
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(chunk)), given)))
}

/// What evaluates a chunk: made when it is first needed. It says nothing of which chunk it is.
#[derive(Default)]
struct Compiled(OnceLock<Arc<dyn PhysicalExpr>>);

impl PartialEq for Compiled {
    fn eq(&self, _: &Compiled) -> bool {
        true
    }
}

impl Eq for Compiled {}

impl Hash for Compiled {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[derive(PartialEq, Eq, Hash)]
struct Chunk {
    /// It differs from those of other chunks, for columns are found by it.
    name: String,
    /// Over the arguments by number.
    expr: Expr,
    fields: SchemaRef,
    field: Field,
    signature: Signature,
    compiled: Compiled,
}

impl std::fmt::Debug for Chunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl Chunk {
    fn compiled(&self) -> Result<&Arc<dyn PhysicalExpr>> {
        if let Some(made) = self.compiled.0.get() {
            return Ok(made);
        }
        let schema = Arc::new(DFSchema::try_from(self.fields.as_ref().clone())?);
        // Some functions are there only to be made into something else.
        let context = SimplifyContext::builder().with_schema(schema.clone()).build();
        let expr = ExprSimplifier::new(context).simplify(self.expr.clone())?;
        let (properties, subqueries) = (ExecutionProps::new(), PhysicalPlanningContext::default());
        let made = create_physical_expr(&expr, &schema, &properties, &subqueries)?;
        Ok(self.compiled.0.get_or_init(|| made))
    }
}

impl ScalarUDFImpl for Chunk {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.field.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(self.field.clone()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let column = |(arg, field): (ColumnarValue, &FieldRef)| -> Result<ArrayRef> {
            let array = arg.into_array(rows)?;
            match array.data_type() == field.data_type() {
                true => Ok(array),
                false => Ok(cast(&array, field.data_type())?),
            }
        };
        let columns = args.args.into_iter().zip(self.fields.fields()).map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.fields.clone(), columns, &options)?;
        match self.compiled()?.evaluate(&batch)? {
            ColumnarValue::Array(array) if constant => {
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
            value => Ok(value),
        }
    }
}
