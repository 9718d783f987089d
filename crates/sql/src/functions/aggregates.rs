//! `sum`, `avg`, variances and standard deviations as PostgreSQL has them. DataFusion's wrap (sums of decimals),
//! truncate (averages of decimals) or go by doubles (all of integers).
//!
//! 1. Of integers and numerics they are exact; what leaves the result's type is 22003. `sum` of smallint and integer is
//!    bigint, of bigint numeric; `sum` of numeric(p, s) is numeric(38, s), all else plain numeric. Sums of what is no
//!    plain numeric are kept in 128 bits and squares in 256; an excursion beyond these is 22003 too.
//! 2. Of real and double precision they are PostgreSQL's own steps (Youngs and Cramer), hence its last digits; a finite
//!    sum that becomes infinite is 22003.
//! 3. Floats do not leave a sliding window by subtraction, which would leave their rounding behind: the window is added
//!    up anew. So it is of plain numerics ([`plain`]).
//!
//! Reports for DataFusion 55.2: `sum` of Decimal128 adds with `add_wrapping` and never checks, so that 200 times 1e18
//! at scale 18 is negative; `avg` of Decimal128(p, s) truncates at s + 4 digits where rounding is expected;
//! `retract_batch` of a double sum subtracts, so that 1e20 leaves a window and takes the small numbers with it.
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;
use terrace_engine::EngineError;

mod exact;
mod extremes;
mod float;
mod pairs;
mod percentile;
mod plain;
mod spans;

use crate::error::tunnel;
use crate::functions::compared::compared_by;
use crate::values::INTERVAL;
use crate::values::decimal::{self, is_decimal};
use exact::Exact;
pub(crate) use extremes::{over_window, sorting_for_itself};
use float::Float;
use plain::Plain;
use spans::Span;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Kind {
    Sum,
    Average,
    Variance,
    Deviation,
}

/// What is computed of which values.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Task {
    kind: Kind,
    /// Of a sample: divided by one less than there are values.
    sample: bool,
    of: DataType,
    gives: DataType,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Aggregate {
    name: &'static str,
    aliases: Vec<String>,
    kind: Kind,
    sample: bool,
    signature: Signature,
}

/// The aggregates, to be put in the place of DataFusion's.
pub(crate) fn functions() -> Vec<AggregateUDF> {
    let of = |name, kind, sample, aliases: &[&str]| {
        let aliases = aliases.iter().map(|a| (*a).to_owned()).collect();
        AggregateUDF::from(Aggregate {
            name,
            aliases,
            kind,
            sample,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    };
    let computed = [
        // Not named "sum": the optimizer makes sums of sums of what is, which are of another type here.
        of("exact_sum", Kind::Sum, false, &["sum"]),
        of("avg", Kind::Average, false, &[]),
        of("var_pop", Kind::Variance, false, &[]),
        of("var_samp", Kind::Variance, true, &["variance"]),
        of("stddev_pop", Kind::Deviation, false, &[]),
        of("stddev_samp", Kind::Deviation, true, &["stddev"]),
    ];
    let others = extremes::functions().into_iter().chain(pairs::functions()).chain([percentile::function()]);
    computed.into_iter().chain(others).collect()
}

/// Whether it is one of these, by its name; else it is one of [`extremes`], [`pairs`] and so on.
pub(crate) fn is_computed(name: &str) -> bool {
    matches!(name, "exact_sum" | "avg" | "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp")
}

/// Whether it takes numbers as doubles.
pub(crate) fn takes_doubles(name: &str) -> bool {
    name == "percentile_cont" || pairs::is_one(name)
}

impl Aggregate {
    fn shown_name(&self) -> &'static str {
        if self.kind == Kind::Sum { "sum" } else { self.name }
    }

    fn task(&self, of: &DataType) -> Result<Task> {
        Ok(Task {
            kind: self.kind,
            sample: self.sample,
            of: of.clone(),
            gives: self.return_type(std::slice::from_ref(of))?,
        })
    }

    /// The task of an accumulator; `None`: it is of an argument that is not computed with.
    fn task_of(&self, args: &AccumulatorArgs) -> Result<Task> {
        match args.expr_fields {
            [field] => self.task(field.data_type()),
            _ => internal_err!("{} takes one argument", self.name),
        }
    }

    fn plain(&self, args: &AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let task = self.task_of(args)?;
        Ok(match () {
            () if task.is_float() => Box::new(One::<Float>::of(task)),
            () if task.is_of_intervals() => Box::new(One::<Span>::of(task)),
            () if task.is_plain() => Box::new(One::<Plain>::of(task)),
            () => Box::new(One::<Exact>::of(task)),
        })
    }
}

impl Task {
    fn is_float(&self) -> bool {
        self.of.is_floating()
    }

    fn is_of_intervals(&self) -> bool {
        matches!(self.of, DataType::Interval(_))
    }

    fn is_plain(&self) -> bool {
        is_decimal(&self.of)
    }

    /// Whether squares are needed.
    fn spreads(&self) -> bool {
        matches!(self.kind, Kind::Variance | Kind::Deviation)
    }
}

impl AggregateUDFImpl for Aggregate {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        use DataType::*;
        let name = self.shown_name();
        let no_function = |given: &str| {
            let message = format!("function {name}({given}) does not exist");
            tunnel(crate::functions::builtin::with_hint(EngineError::new("42883", message)))
        };
        let [given] = types else { return Err(no_function(&format!("{} arguments", types.len()))) };
        Ok(vec![match given {
            of if crate::functions::arithmetic::is_number(of) => of.clone(),
            Int8 | UInt8 => Int16,
            UInt16 => Int32,
            UInt32 | UInt64 => Int64,
            Interval(_) if matches!(self.kind, Kind::Sum | Kind::Average) => INTERVAL,
            Null => {
                let message = format!("function {name}(unknown) is not unique");
                let mut error = EngineError::new("42725", message);
                error.hint = Some(
                    "Could not choose a best candidate function. You might need to add explicit type casts.".into(),
                );
                return Err(tunnel(error));
            }
            other => return Err(no_function(&crate::functions::builtin::type_name(other))),
        }])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        use DataType::*;
        Ok(match (self.kind, &types[0]) {
            (_, Interval(_)) => INTERVAL,
            (Kind::Sum, Int16 | Int32) => Int64,
            (Kind::Sum, Int64) => Decimal128(DECIMAL128_MAX_PRECISION, 0),
            (Kind::Sum, Decimal128(_, scale)) => Decimal128(DECIMAL128_MAX_PRECISION, *scale),
            (Kind::Sum, Float32) => Float32,
            (_, Float32 | Float64) => Float64,
            (_, of) if crate::functions::arithmetic::is_number(of) => decimal::arrow_type(),
            (_, other) => return internal_err!("{} of {other}", self.name),
        })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let of = args.input_fields[0].data_type();
        let field = |name: &str, t: DataType| Arc::new(Field::new(format!("{}[{name}]", args.name), t, true));
        if args.is_distinct {
            return Ok(vec![field("values", DataType::new_list(of.clone(), true))]);
        }
        let types = match of {
            of if of.is_floating() => Float::state_types(),
            DataType::Interval(_) => Span::state_types(),
            of if is_decimal(of) => Plain::state_types(),
            _ => Exact::state_types(),
        };
        Ok(["count", "sum", "squares"].into_iter().zip(types).map(|(name, t)| field(name, t)).collect())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let plain = self.plain(&args)?;
        if args.is_distinct {
            let of = args.expr_fields[0].data_type().clone();
            let (seen, keys) = (FxHashSet::default(), FxHashSet::default());
            return Ok(Box::new(Distinct { seen, keys, of, inner: plain }));
        }
        Ok(plain)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let task = self.task_of(&args)?;
        // Invariant 3.
        Ok(match () {
            () if task.is_float() => Box::new(Sliding::<Float> { window: VecDeque::new(), task }),
            () if task.is_plain() => Box::new(Sliding::<Plain> { window: VecDeque::new(), task }),
            () => self.accumulator(args)?,
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let task = self.task_of(&args)?;
        Ok(match () {
            () if task.is_float() => Box::new(Groups::<Float>::of(task)),
            () if task.is_of_intervals() => Box::new(Groups::<Span>::of(task)),
            () if task.is_plain() => Box::new(Groups::<Plain>::of(task)),
            () => Box::new(Groups::<Exact>::of(task)),
        })
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// What is kept of the values seen.
trait Total: Clone + Default + Debug + Send + Sync + 'static {
    type Value: Clone + Debug + Send + Sync;

    /// Calls `f` with each value that is not NULL, and its row.
    fn each(array: &ArrayRef, f: impl FnMut(usize, Self::Value) -> Result<()>) -> Result<()>;
    fn add(&mut self, task: &Task, value: Self::Value) -> Result<()>;
    /// Takes back what was added.
    fn remove(&mut self, task: &Task, value: Self::Value) -> Result<()>;
    fn merge(&mut self, task: &Task, other: &Self) -> Result<()>;
    fn results(task: &Task, totals: &[Self]) -> Result<ArrayRef>;
    fn state_types() -> [DataType; 3];
    fn states(totals: &[Self]) -> Result<Vec<ArrayRef>>;
    fn from_states(states: &[ArrayRef], row: usize) -> Self;
}

#[derive(Debug)]
struct One<T> {
    total: T,
    task: Task,
}

impl<T: Total> One<T> {
    fn of(task: Task) -> One<T> {
        One { total: T::default(), task }
    }
}

impl<T: Total> Accumulator for One<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        T::each(&values[0], |_, value| self.total.add(&self.task, value))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        T::each(&values[0], |_, value| self.total.remove(&self.task, value))
    }

    fn supports_retract_batch(&self) -> bool {
        !self.task.is_float() && !self.task.is_plain()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&T::results(&self.task, std::slice::from_ref(&self.total))?, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        T::states(std::slice::from_ref(&self.total))?
            .iter()
            .map(|state| ScalarValue::try_from_array(state, 0))
            .collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        (0..states[0].len()).try_for_each(|row| self.total.merge(&self.task, &T::from_states(states, row)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// Floats, or plain numerics, in a window (invariant 3).
#[derive(Debug)]
struct Sliding<T: Total> {
    window: VecDeque<T::Value>,
    task: Task,
}

impl<T: Total> Accumulator for Sliding<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        T::each(&values[0], |_, value| {
            self.window.push_back(value);
            Ok(())
        })
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        T::each(&values[0], |_, _| {
            self.window.pop_front();
            Ok(())
        })
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut total = T::default();
        self.window.iter().try_for_each(|value| total.add(&self.task, value.clone()))?;
        ScalarValue::try_from_array(&T::results(&self.task, &[total])?, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("a window has no state to hand on")
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        internal_err!("a window has no state to hand on")
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.window.capacity() * size_of::<T::Value>()
    }
}

/// Each value once; of equal plain numerics the first.
#[derive(Debug)]
struct Distinct {
    seen: FxHashSet<ScalarValue>,
    /// Of the plain numerics seen.
    keys: FxHashSet<ScalarValue>,
    of: DataType,
    inner: Box<dyn Accumulator>,
}

impl Accumulator for Distinct {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let keys = if is_decimal(values[0].data_type()) { Some(compared_by(&values[0])?) } else { None };
        for row in 0..values[0].len() {
            let new = match &keys {
                Some(keys) => self.keys.insert(ScalarValue::try_from_array(keys, row)?),
                None => true,
            };
            if values[0].is_valid(row) && new {
                self.seen.insert(ScalarValue::try_from_array(&values[0], row)?);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if !self.seen.is_empty() {
            let values = ScalarValue::iter_to_array(std::mem::take(&mut self.seen))?;
            self.inner.update_batch(&[values])?;
        }
        self.inner.evaluate()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: Vec<ScalarValue> = self.seen.iter().cloned().collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &self.of))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states[0].as_list::<i32>();
        lists.iter().flatten().try_for_each(|values| self.update_batch(&[values]))
    }

    fn size(&self) -> usize {
        let held = self.seen.capacity() + self.keys.capacity();
        size_of_val(self) + held * size_of::<ScalarValue>() + self.inner.size()
    }
}

#[derive(Debug)]
struct Groups<T> {
    totals: Vec<T>,
    task: Task,
    of: PhantomData<T>,
}

impl<T: Total> Groups<T> {
    fn of(task: Task) -> Groups<T> {
        Groups { totals: vec![], task, of: PhantomData }
    }
}

impl<T: Total> GroupsAccumulator for Groups<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.totals.resize(total, T::default());
        assert_eq!(values[0].len(), groups.len(), "each value has a group");
        T::each(&values[0], |row, value| match filter {
            Some(filter) if filter.is_null(row) || !filter.value(row) => Ok(()),
            _ => self.totals[groups[row]].add(&self.task, value),
        })
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let totals = emit_to.take_needed(&mut self.totals);
        let results = T::results(&self.task, &totals)?;
        assert_eq!(results.len(), totals.len(), "a result for each group");
        Ok(results)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        T::states(&emit_to.take_needed(&mut self.totals))
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.totals.resize(total, T::default());
        assert!(states.iter().all(|state| state.len() == groups.len()), "each state has a group");
        let merge = |(row, group): (usize, &usize)| self.totals[*group].merge(&self.task, &T::from_states(states, row));
        groups.iter().enumerate().try_for_each(merge)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let mut totals = vec![T::default(); values[0].len()];
        T::each(&values[0], |row, value| match filter {
            Some(filter) if filter.is_null(row) || !filter.value(row) => Ok(()),
            _ => totals[row].add(&self.task, value),
        })?;
        T::states(&totals)
    }

    fn size(&self) -> usize {
        self.totals.capacity() * size_of::<T>()
    }
}

#[cfg(test)]
mod tests;
