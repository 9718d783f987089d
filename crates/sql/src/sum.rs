//! `sum` of integers that says 22003 where it leaves bigint, where DataFusion would wrap.
//!
//! Sums are kept in 128 bits and checked when they are handed on, so that an excursion in between is no error. (PostgreSQL's
//! sum of bigint is numeric and never overflows.) A sum of numerics is a numeric of 38 digits.
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};
use std::sync::Arc;
use terrace_engine::EngineError;

pub(crate) fn checked_sum() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(CheckedSum { inner: Sum::new() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedSum {
    inner: Sum,
}

fn is_checked(args: &AccumulatorArgs) -> bool {
    !args.is_distinct && args.return_field.data_type() == &DataType::Int64
}

fn narrow(sum: Option<i128>) -> Result<Option<i64>> {
    let overflow = |_| crate::error::tunnel(EngineError::new("22003", "bigint out of range"));
    sum.map(|sum| i64::try_from(sum).map_err(overflow)).transpose()
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            // The same for a sum of sums, into which the optimizer may split one.
            [DataType::Decimal128(_, scale)] => Ok(DataType::Decimal128(DECIMAL128_MAX_PRECISION, *scale)),
            _ => self.inner.return_type(types),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if is_checked(&args) { Ok(Box::new(OneSum::default())) } else { self.inner.accumulator(args) }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if is_checked(&args) { Ok(Box::new(OneSum::default())) } else { self.inner.create_sliding_accumulator(args) }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        if is_checked(&args) { Ok(Box::new(GroupSums::default())) } else { self.inner.create_groups_accumulator(args) }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

#[derive(Debug, Default)]
struct OneSum {
    sum: i128,
    /// Values in the sum; it is NULL without any.
    count: u64,
}

impl OneSum {
    fn value(&self) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(narrow((self.count > 0).then_some(self.sum))?))
    }
}

fn total(values: &ArrayRef) -> (i128, u64) {
    let values = values.as_primitive::<Int64Type>();
    let sum = values.iter().flatten().map(i128::from).sum();
    (sum, (values.len() - values.null_count()) as u64)
}

impl Accumulator for OneSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sum, count) = total(&values[0]);
        self.sum += sum;
        self.count += count;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sum, count) = total(&values[0]);
        self.sum -= sum;
        self.count -= count;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.value()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

#[derive(Debug, Default)]
struct GroupSums {
    sums: Vec<Option<i128>>,
}

impl GroupsAccumulator for GroupSums {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.sums.resize(total, None);
        let values = values[0].as_primitive::<Int64Type>();
        assert_eq!(values.len(), groups.len(), "each value has a group");
        for (row, (value, group)) in values.iter().zip(groups).enumerate() {
            let passes = filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            if let (Some(value), true) = (value, passes) {
                *self.sums[*group].get_or_insert(0) += i128::from(value);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = emit_to.take_needed(&mut self.sums);
        Ok(Arc::new(sums.into_iter().map(narrow).collect::<Result<Int64Array>>()?))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.update_batch(states, groups, None, total)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<Int64Type>();
        let passes = |row| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        let kept = values.iter().enumerate().map(|(row, value)| value.filter(|_| passes(row)));
        Ok(vec![Arc::new(kept.collect::<Int64Array>())])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<Option<i128>>()
    }
}
