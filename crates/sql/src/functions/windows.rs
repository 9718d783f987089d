//! Window functions that DataFusion has with another type: `ntile` is an integer, `row_number`, `rank` and `dense_rank`
//! are bigints.
use crate::error::tunnel;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int32Array};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int32Type, Int64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_window::rank::{dense_rank_udwf, rank_udwf};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::window_state::WindowAggState;
use datafusion::logical_expr::{LimitEffect, PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl};
use datafusion::physical_expr::PhysicalExpr;
use std::ops::Range;
use std::sync::Arc;
use terrace_engine::EngineError;

/// All of them: they take the places of DataFusion's.
pub(crate) fn functions() -> Vec<WindowUDF> {
    let counts = [row_number_udwf(), rank_udwf(), dense_rank_udwf()];
    counts.into_iter().map(|inner| WindowUDF::from(Place { inner })).chain([ntile()]).collect()
}

/// A function that says in which place a row comes, as a bigint.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Place {
    inner: Arc<WindowUDF>,
}

impl WindowUDFImpl for Place {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(args.name(), DataType::Int64, false)))
    }

    fn sort_options(&self) -> Option<SortOptions> {
        self.inner.sort_options()
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.inner.inner().limit_effect(args)
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Places { inner: self.inner.partition_evaluator_factory(args)? }))
    }
}

#[derive(Debug)]
struct Places {
    inner: Box<dyn PartitionEvaluator>,
}

impl PartitionEvaluator for Places {
    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.inner.memoize(state)
    }

    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.inner.get_range(row, rows)
    }

    fn is_causal(&self) -> bool {
        self.inner.is_causal()
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        Ok(signed(&self.inner.evaluate_all(values, rows)?))
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        Ok(match self.inner.evaluate(values, range)? {
            ScalarValue::UInt64(place) => ScalarValue::Int64(place.map(|place| place as i64)),
            other => other,
        })
    }

    fn evaluate_all_with_rank(&self, rows: usize, peers: &[Range<usize>]) -> Result<ArrayRef> {
        Ok(signed(&self.inner.evaluate_all_with_rank(rows, peers)?))
    }

    fn supports_bounded_execution(&self) -> bool {
        self.inner.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.inner.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.inner.include_rank()
    }
}

/// Places are counted from one up: none has the highest bit.
fn signed(places: &ArrayRef) -> ArrayRef {
    let places = places.as_primitive::<UInt64Type>();
    Arc::new(places.unary::<_, Int64Type>(|place| place as i64)) as ArrayRef
}

/// `ntile(buckets)`, an integer.
fn ntile() -> WindowUDF {
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

    fn partition_evaluator(&self, _args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Buckets))
    }
}

/// The rows of a partition in so many parts, of which the first ones have one row more.
#[derive(Debug)]
struct Buckets;

impl PartitionEvaluator for Buckets {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let counts = values[0].as_primitive::<Int32Type>();
        // The first row's says it for all of them.
        if rows == 0 || counts.is_null(0) {
            return Ok(Arc::new(Int32Array::new_null(rows)));
        }
        let count @ 1.. = counts.value(0) else {
            return Err(tunnel(EngineError::new("22014", "argument of ntile must be greater than zero")));
        };
        let (each, larger) = (rows / count as usize, rows % count as usize);
        let bucket = |row: usize| match row < larger * (each + 1) {
            true => row / (each + 1),
            // There are rows behind the larger ones, so that each of these has some.
            false => larger + (row - larger * (each + 1)) / each,
        };
        Ok(Arc::new((0..rows).map(|row| bucket(row) as i32 + 1).collect::<Int32Array>()))
    }
}
