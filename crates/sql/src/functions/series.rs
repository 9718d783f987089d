//! `generate_series` of constant integers, in FROM. The rows are DataFusion's, whose series is of bigint.
//!
//! 1. Of integers it is integer, of a bigint among them bigint, as in PostgreSQL. A series of anything else is
//!    refused (0A000), and so is one of what is no constant. (Series of times and of numerics are lists.)
//!
//! Source: PostgreSQL 15 documentation, "Set Returning Functions" (9.25).
use crate::error::{tunnel, unsupported};
use crate::functions::convert::{constant, convert_scalar};
use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableFunctionArgs, TableProvider};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::execution::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use std::sync::Arc;
use terrace_engine::{DataType, EngineError};

/// The series of these arguments, as a table of one column.
pub(crate) fn table(state: &SessionState, args: Vec<Expr>) -> Result<Arc<dyn TableProvider>> {
    let given = args.into_iter().map(|arg| folded(state, arg)).collect::<Result<Vec<ScalarValue>>>()?;
    if !(2..=3).contains(&given.len()) {
        let types: Vec<String> =
            given.iter().map(|value| crate::functions::builtin::type_name(&value.data_type())).collect();
        let message = format!("function generate_series({}) does not exist", types.join(", "));
        return Err(tunnel(crate::functions::builtin::with_hint(EngineError::new("42883", message))));
    }
    let wide = given.iter().any(|value| matches!(value, ScalarValue::Int64(_)));
    let whole = given.iter().map(|value| match value {
        null if null.is_null() => Ok(ScalarValue::Null),
        ScalarValue::Int16(_) | ScalarValue::Int32(_) | ScalarValue::Int64(_) => convert_scalar(value, DataType::Int8),
        other => {
            let name = crate::functions::builtin::type_name(&other.data_type());
            Err(tunnel(unsupported(format!("generate_series of {name}"))))
        }
    });
    let whole = whole.collect::<Result<Vec<ScalarValue>>>()?;
    if whole.get(2) == Some(&ScalarValue::Int64(Some(0))) {
        return Err(tunnel(EngineError::new("22023", "step size cannot equal zero")));
    }
    let function = state.table_functions().get("generate_series").expect("it is registered").clone();
    assert!(matches!(whole.len(), 2 | 3), "start, end and step");
    let exprs: Vec<Expr> = whole.into_iter().map(|value| Expr::Literal(value, None)).collect();
    let series = function.create_table_provider_with_args(TableFunctionArgs::new(&exprs, state))?;
    Ok(if wide { series } else { Arc::new(Integers { series }) })
}

/// The value of an argument.
fn folded(state: &SessionState, arg: Expr) -> Result<ScalarValue> {
    if let Some(value) = constant(&arg) {
        return Ok(value);
    }
    let context = SimplifyContext::builder().with_config_options(state.config_options().clone()).build();
    let simplifier = ExprSimplifier::new(context);
    match simplifier.coerce(arg, &DFSchema::empty()).and_then(|arg| simplifier.simplify(arg))? {
        Expr::Literal(value, _) => Ok(value),
        _ => Err(tunnel(unsupported("generate_series of what is no constant"))),
    }
}

/// A series whose values are integers.
#[derive(Debug)]
struct Integers {
    series: Arc<dyn TableProvider>,
}

#[async_trait]
impl TableProvider for Integers {
    fn schema(&self) -> SchemaRef {
        let field = |field: &Arc<Field>| Field::new(field.name(), ArrowType::Int32, field.is_nullable());
        Arc::new(Schema::new(self.series.schema().fields().iter().map(field).collect::<Vec<Field>>()))
    }

    fn table_type(&self) -> TableType {
        self.series.table_type()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = self.series.scan(state, projection, filters, limit).await?;
        if input.schema().fields().is_empty() {
            return Ok(input);
        }
        let schema = input.schema();
        let columns = schema.fields().iter().enumerate().map(|(at, field)| {
            let column = Arc::new(Column::new(field.name(), at));
            let narrow: Arc<dyn PhysicalExpr> = Arc::new(CastExpr::new(column, ArrowType::Int32, None));
            (narrow, field.name().clone())
        });
        let columns: Vec<(Arc<dyn PhysicalExpr>, String)> = columns.collect();
        Ok(Arc::new(ProjectionExec::try_new(columns, input)?))
    }
}
