//! `min` and `max`: DataFusion's, but for floats within groups.
//!
//! Report for DataFusion 55.2: the accumulator of groups of floats takes a value that cannot be compared for the better one, so that a NaN
//! becomes the least of its group, and is the greatest only until the next value; without groups, and in windows, NaN is above all numbers.
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::common::ScalarValue;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, SetMonotonicity,
    Signature, StatisticsArgs,
};
use std::sync::Arc;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    theirs: Arc<AggregateUDF>,
}

/// The two aggregates.
pub(super) fn functions() -> [AggregateUDF; 2] {
    [min_udaf(), max_udaf()].map(|theirs| AggregateUDF::from(Extreme { theirs }))
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.theirs.name()
    }

    fn signature(&self) -> &Signature {
        self.theirs.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.theirs.return_type(types)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        self.theirs.return_field(fields)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.theirs.accumulator(args)
    }

    /// Of floats each group has an accumulator of its own.
    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.return_field.data_type().is_floating() && self.theirs.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.theirs.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.theirs.create_sliding_accumulator(args)
    }

    fn is_descending(&self) -> Option<bool> {
        self.theirs.is_descending()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.theirs.order_sensitivity()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.theirs.coerce_types(types)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn value_from_stats(&self, statistics: &StatisticsArgs) -> Option<ScalarValue> {
        self.theirs.value_from_stats(statistics)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.theirs.documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.theirs.inner().set_monotonicity(data_type)
    }
}
