//! `min`, `max`, `array_agg` and `string_agg`, and over windows a few more: DataFusion's, but for intervals, plain
//! numerics, arrays, floats within groups, what their fields say of char(n), and the order of distinct values.
//!
//! 1. The least of char(n) is a char(n) ([`crate::functions::chars`]); an array of them says what it is made of.
//! 2. `array_agg(DISTINCT x ORDER BY x)` and `string_agg` of such are in the order that was asked for, whatever other
//!    aggregates stand beside them.
//! 3. Several `string_agg` may have several orders. (It says that its input has to be sorted, and sorts it all the
//!    same.)
//! 4. Of aggregates side by side that depend on different orders, those with ORDER BY sort their values themselves, and
//!    no other sees its rows in their order ([`sorting_for_itself`]).
//! 5. Over a window, no aggregate here has its rows turned round ([`over_window`]).
//!
//! Upstream: of several such aggregates the planner turns round those whose order is the opposite of another's. Then
//! the accumulator is to answer its values from the last to the first. That of DISTINCT does not look whether it was
//! turned, and answers them in the other order.
//!
//! Report for DataFusion 55.2: the accumulator of groups of floats takes a value that cannot be compared for the better
//! one, so that a NaN becomes the least of its group, and is the greatest only until the next value; without groups,
//! and in windows, NaN is above all numbers.
use crate::functions::chars;
use crate::functions::compared::{By, by, compared_by};
use crate::values::field_type;
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::common::ScalarValue;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::string_agg::string_agg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, SetMonotonicity,
    Signature, StatisticsArgs,
};
use datafusion::physical_expr::PhysicalSortExpr;
use std::any::Any;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    theirs: Arc<AggregateUDF>,
    /// Its rows are not turned round: it sorts its values, whatever order they are in (invariant 4), or the order is
    /// nothing to it (invariant 5).
    unturned: bool,
}

pub(super) fn functions() -> [AggregateUDF; 4] {
    let all = [min_udaf(), max_udaf(), array_agg_udaf(), string_agg_udaf()];
    all.map(|theirs| AggregateUDF::from(Extreme { theirs, unturned: false }))
}

/// `array_agg` and `string_agg` that do not have the rows sorted for them (invariant 4); `None`: another aggregate.
pub(crate) fn sorting_for_itself(function: &AggregateUDF) -> Option<AggregateUDF> {
    let own = (function.inner().as_ref() as &dyn Any).downcast_ref::<Extreme>()?;
    own.gathers().then(|| AggregateUDF::from(Extreme { theirs: own.theirs.clone(), unturned: true }))
}

/// An aggregate over a window (invariant 5); `None`: it answers the same if it is turned round.
///
/// Upstream: where the rows come in the opposite order, the planner turns the window round rather than sort them. Then
/// frames begin with each row, so that a function has to take values back, which these cannot.
pub(crate) fn over_window(function: &Arc<AggregateUDF>) -> Option<AggregateUDF> {
    let keeps_values = matches!(function.name(), "bool_and" | "bool_or" | "bit_and" | "bit_or");
    let own = || AggregateUDF::from(Extreme { theirs: function.clone(), unturned: true });
    if keeps_values { Some(own()) } else { sorting_for_itself(function) }
}

impl Extreme {
    /// Whether it gathers values.
    fn gathers(&self) -> bool {
        matches!(self.name(), "array_agg" | "string_agg")
    }

    /// Whether it is `string_agg`, which sorts for itself (invariant 3).
    fn is_joined(&self) -> bool {
        self.name() == "string_agg"
    }

    /// What goes by keys: intervals, plain numerics and arrays.
    fn by_keys(&self, args: &AccumulatorArgs) -> Option<ByKeys> {
        let of = args.return_field.data_type();
        let keyed = matches!(self.name(), "min" | "max") && matches!(by(of), By::Key);
        let of = of.clone();
        keyed.then(|| ByKeys { greatest: self.name() == "max", of, window: None, best: None })
    }
}

/// A value's key, and the value.
type Keyed = (ScalarValue, ScalarValue);

/// The least or greatest of values that go by keys; of equal ones the last, as in PostgreSQL.
#[derive(Debug)]
struct ByKeys {
    greatest: bool,
    of: DataType,
    /// Those of a window whose beginning moves.
    window: Option<VecDeque<Keyed>>,
    best: Option<Keyed>,
}

impl ByKeys {
    fn beats(&self, best: &Keyed, next: &Keyed) -> bool {
        let order = best.0.partial_cmp(&next.0);
        order == Some(if self.greatest { Ordering::Greater } else { Ordering::Less })
    }
}

impl Accumulator for ByKeys {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let keys = compared_by(&values[0])?;
        for row in (0..keys.len()).filter(|row| keys.is_valid(*row)) {
            let next = (ScalarValue::try_from_array(&keys, row)?, ScalarValue::try_from_array(&values[0], row)?);
            let stays = self.best.as_ref().is_some_and(|best| self.beats(best, &next));
            match &mut self.window {
                Some(window) => window.push_back(next),
                None if stays => {}
                None => self.best = Some(next),
            }
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for _ in (0..values[0].len()).filter(|row| values[0].is_valid(*row)) {
            self.window.as_mut().and_then(VecDeque::pop_front);
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        self.window.is_some()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let better = |best: &'_ Keyed, next: &'_ Keyed| self.beats(best, next);
        let best = match &self.window {
            Some(window) => window.iter().reduce(|best, next| if better(best, next) { best } else { next }),
            None => self.best.as_ref(),
        };
        best.map_or_else(|| ScalarValue::try_from(&self.of), |(_, value)| Ok(value.clone()))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn size(&self) -> usize {
        let window = self.window.as_ref().map_or(0, VecDeque::capacity);
        size_of_val(self) + window * size_of::<Keyed>()
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
            Some(told)
                if matches!(told.item().unwrap_or(told), terrace_engine::DataType::Char(_))
                    && field.data_type() == of.data_type() =>
            {
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
        if self.is_joined() || self.unturned {
            return Ok(Some(self));
        }
        let ordered = AggregateUDF::clone(&self.theirs).with_beneficial_ordering(beneficial_ordering)?;
        Ok(ordered.map(|ordered| {
            Arc::new(Extreme { theirs: Arc::new(ordered), unturned: false }) as Arc<dyn AggregateUDFImpl>
        }))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match self.by_keys(&args) {
            Some(own) => Ok(Box::new(own)),
            // Invariant 2.
            None if args.is_distinct && args.is_reversed => {
                let asked: Vec<_> = args.order_bys.iter().map(PhysicalSortExpr::reverse).collect();
                self.theirs.accumulator(AccumulatorArgs { order_bys: &asked, ..args })
            }
            None => self.theirs.accumulator(args),
        }
    }

    /// Of floats and of what goes by keys each group has an accumulator of its own.
    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.by_keys(&args).is_none()
            && !args.return_field.data_type().is_floating()
            && self.theirs.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.theirs.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match self.by_keys(&args) {
            Some(own) => Ok(Box::new(ByKeys { window: Some(VecDeque::new()), ..own })),
            None => self.theirs.create_sliding_accumulator(args),
        }
    }

    fn is_descending(&self) -> Option<bool> {
        self.theirs.is_descending()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        match self.is_joined() {
            _ if self.unturned && self.gathers() => AggregateOrderSensitivity::Beneficial,
            true => AggregateOrderSensitivity::SoftRequirement,
            false => self.theirs.order_sensitivity(),
        }
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.theirs.coerce_types(types)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.theirs.reverse_udf() {
            _ if self.unturned => ReversedUDAF::NotSupported,
            ReversedUDAF::Reversed(theirs) => {
                ReversedUDAF::Reversed(Arc::new(AggregateUDF::from(Extreme { theirs, unturned: false })))
            }
            other => other,
        }
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
