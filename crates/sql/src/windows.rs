//! Window functions: `ntile`, which DataFusion has with another type.
use crate::error::tunnel;
use datafusion::arrow::array::{ArrayRef, Int32Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl};
use datafusion::physical_expr::expressions::Literal;
use std::sync::Arc;
use terrace_engine::EngineError;

/// `ntile(buckets)`, an integer.
pub(crate) fn ntile() -> WindowUDF {
    WindowUDF::from(Ntile { signature: Signature::exact(vec![DataType::Int32], Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Ntile {
    signature: Signature,
}

impl WindowUDFImpl for Ntile {
    fn name(&self) -> &str {
        "ntile"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(args.name(), DataType::Int32, true)))
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let given = args.input_exprs().first().and_then(|expr| expr.downcast_ref::<Literal>());
        match given.map(Literal::value) {
            Some(ScalarValue::Int32(Some(buckets @ 1..))) => Ok(Box::new(Buckets { count: Some(*buckets) })),
            Some(ScalarValue::Int32(Some(_))) => {
                Err(tunnel(EngineError::new("22014", "argument of ntile must be greater than zero")))
            }
            Some(value) if value.is_null() => Ok(Box::new(Buckets { count: None })),
            _ => Err(tunnel(EngineError::unsupported("ntile of what is no constant is not supported"))),
        }
    }
}

/// The rows of a partition in so many parts, of which the first ones have one row more.
#[derive(Debug)]
struct Buckets {
    count: Option<i32>,
}

impl PartitionEvaluator for Buckets {
    fn evaluate_all(&mut self, _values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let Some(count) = self.count else { return Ok(Arc::new(Int32Array::new_null(rows))) };
        let (each, larger) = (rows / count as usize, rows % count as usize);
        let bucket = |row: usize| match row < larger * (each + 1) {
            true => row / (each + 1),
            // There are rows behind the larger ones, so that each of these has some.
            false => larger + (row - larger * (each + 1)) / each,
        };
        Ok(Arc::new((0..rows).map(|row| bucket(row) as i32 + 1).collect::<Int32Array>()))
    }
}
