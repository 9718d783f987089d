//! `min`, `max` and `array_agg`: DataFusion's, but for intervals, floats within groups, and what their fields say of
//! char(n).
//!
//! 1. The least of char(n) is a char(n) ([`crate::functions::chars`]); an array of them says what it is made of.
//!
//! Report for DataFusion 55.2: the accumulator of groups of floats takes a value that cannot be compared for the better
//! one, so that a NaN becomes the least of its group, and is the greatest only until the next value; without groups,
//! and in windows, NaN is above all numbers.
use crate::functions::{chars, interval};
use crate::values::field_type;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, FieldRef, IntervalMonthDayNano};
use datafusion::common::Result;
use datafusion::common::ScalarValue;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, SetMonotonicity,
    Signature, StatisticsArgs,
};
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    theirs: Arc<AggregateUDF>,
}

pub(super) fn functions() -> [AggregateUDF; 3] {
    [min_udaf(), max_udaf(), array_agg_udaf()].map(|theirs| AggregateUDF::from(Extreme { theirs }))
}

impl Extreme {
    fn of_intervals(&self, args: &AccumulatorArgs) -> bool {
        matches!(args.return_field.data_type(), DataType::Interval(_))
    }
}

/// The least or greatest interval; of equal ones the last, as in PostgreSQL.
#[derive(Debug)]
struct OfIntervals {
    greatest: bool,
    /// Those of a window whose beginning moves.
    window: Option<VecDeque<IntervalMonthDayNano>>,
    best: Option<IntervalMonthDayNano>,
}

impl OfIntervals {
    fn better(&self, best: Option<IntervalMonthDayNano>, next: IntervalMonthDayNano) -> IntervalMonthDayNano {
        let stays = |best: &IntervalMonthDayNano| {
            let (best, next) = (interval::key_of(*best), interval::key_of(next));
            if self.greatest { best > next } else { best < next }
        };
        best.filter(stays).unwrap_or(next)
    }
}

impl Accumulator for OfIntervals {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in interval::intervals(&values[0])?.iter().flatten() {
            match &mut self.window {
                Some(window) => window.push_back(value),
                None => self.best = Some(self.better(self.best, value)),
            }
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for _ in interval::intervals(&values[0])?.iter().flatten() {
            self.window.as_mut().and_then(VecDeque::pop_front);
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        self.window.is_some()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let best = match &self.window {
            Some(window) => window.iter().fold(None, |best, next| Some(self.better(best, *next))),
            None => self.best,
        };
        Ok(ScalarValue::IntervalMonthDayNano(best))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn size(&self) -> usize {
        let window = self.window.as_ref().map_or(0, VecDeque::capacity);
        size_of_val(self) + window * size_of::<IntervalMonthDayNano>()
    }
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
        let field = self.theirs.return_field(fields)?;
        let [of] = fields else { return Ok(field) };
        Ok(match field_type(of) {
            Some(terrace_engine::DataType::Char(_)) if field.data_type() == of.data_type() => {
                Arc::new(field.as_ref().clone().with_metadata(of.metadata().clone()))
            }
            _ if matches!(field.data_type(), DataType::List(_)) => {
                Arc::new(chars::array_field(field.as_ref().clone(), fields))
            }
            _ => field,
        })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.theirs.state_fields(args)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.theirs.supports_null_handling_clause()
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        beneficial_ordering: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let ordered = AggregateUDF::clone(&self.theirs).with_beneficial_ordering(beneficial_ordering)?;
        Ok(ordered.map(|ordered| ordered.inner().clone()))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match self.of_intervals(&args) {
            true => Ok(Box::new(OfIntervals { greatest: self.name() == "max", window: None, best: None })),
            false => self.theirs.accumulator(args),
        }
    }

    /// Of floats and intervals each group has an accumulator of its own.
    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !self.of_intervals(&args)
            && !args.return_field.data_type().is_floating()
            && self.theirs.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.theirs.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if self.of_intervals(&args) {
            let window = Some(VecDeque::new());
            return Ok(Box::new(OfIntervals { greatest: self.name() == "max", window, best: None }));
        }
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
        self.theirs.reverse_udf()
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
