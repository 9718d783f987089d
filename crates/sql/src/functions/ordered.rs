//! Ordered-set and hypothetical-set aggregates: `percentile_disc`, `percentile_cont`, `mode`, and `rank` and its kind
//! WITHIN GROUP. The values are gathered in order by `array_agg`; what is asked of them is computed
//! here.
//!
//! 1. The list has its items in the order of WITHIN GROUP; without items it may be NULL. Percentiles and `mode` get no
//!    NULLs.
//! 2. Items are compared by what `crate::plan::comparable` says.
//!
//! So is `string_agg` of bytea: of the values, and of what stands before each but the first.
use crate::error::tunnel;
use crate::functions::compared::compared_by;
use crate::values::arrays::{self as arrays, Arrays, is_array};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, Float64Array, Int64Array, ListArray, UInt32Array,
    make_comparator,
};
use datafusion::arrow::compute::{SortOptions, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use terrace_engine::EngineError;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Asked {
    /// The first item that so great a part of them is not behind.
    Disc,
    /// The same of numbers, in between two items.
    Cont,
    /// The item that is there most often; of several the first.
    Mode,
    /// Values of bytea, joined by others.
    Joined,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
}

impl Asked {
    /// Of a call with WITHIN GROUP.
    pub(crate) fn named(name: &str) -> Option<Asked> {
        Some(match name {
            "percentile_disc" => Asked::Disc,
            "percentile_cont" => Asked::Cont,
            "mode" => Asked::Mode,
            "rank" => Asked::Rank,
            "dense_rank" => Asked::DenseRank,
            "percent_rank" => Asked::PercentRank,
            "cume_dist" => Asked::CumeDist,
            _ => return None,
        })
    }

    /// Whether it is about a row that is not there.
    pub(crate) fn is_hypothetical(self) -> bool {
        matches!(self, Asked::Rank | Asked::DenseRank | Asked::PercentRank | Asked::CumeDist)
    }
}

/// `order`: of the list.
pub(crate) fn call(asked: Asked, order: SortOptions, args: Vec<Expr>) -> Expr {
    let name = format!("{asked:?} {order:?}");
    let signature = Signature::any(args.len(), Volatility::Immutable);
    let function = ScalarUDF::from(Ordered { asked, order, name, signature });
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), args))
}

#[derive(PartialEq, Eq, Hash, Debug)]
struct Ordered {
    asked: Asked,
    order: SortOptions,
    /// Upstream: common subexpressions are told apart by their functions' names.
    name: String,
    signature: Signature,
}

fn item(list: &DataType) -> Result<&FieldRef> {
    match list {
        DataType::List(item) => Ok(item),
        other => internal_err!("items in order are no {other}"),
    }
}

impl ScalarUDFImpl for Ordered {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match self.asked {
            Asked::Rank | Asked::DenseRank => DataType::Int64,
            Asked::PercentRank | Asked::CumeDist => DataType::Float64,
            Asked::Mode | Asked::Joined => item(&types[0])?.data_type().clone(),
            Asked::Disc | Asked::Cont => match &types[1] {
                parts if is_array(parts) => arrays::type_of(item(&types[0])?.data_type().clone()),
                _ => item(&types[0])?.data_type().clone(),
            },
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let columns = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<ArrayRef>>>()?;
        let lists = columns[0].as_list::<i32>();
        let made = match self.asked {
            Asked::Mode => mode(lists)?,
            Asked::Joined => joined(lists, columns[1].as_list::<i32>())?,
            Asked::Disc | Asked::Cont => self.percentiles(lists, &columns[1])?,
            _ => self.hypothetical(lists, &columns[1])?,
        };
        Ok(ColumnarValue::Array(made))
    }
}

/// Where the items of a row's list are.
fn items(lists: &ListArray, row: usize) -> Range<usize> {
    match lists.is_valid(row) {
        true => lists.value_offsets()[row] as usize..lists.value_offsets()[row + 1] as usize,
        false => 0..0,
    }
}

fn mode(lists: &ListArray) -> Result<ArrayRef> {
    let keys = compared_by(lists.values())?;
    let compare = make_comparator(&keys, &keys, SortOptions::default())?;
    let most = |items: Range<usize>| {
        let mut best: Option<Range<usize>> = None;
        let mut run = items.start..items.start;
        for at in items {
            run = if compare(run.start, at) == Ordering::Equal { run.start..at + 1 } else { at..at + 1 };
            if best.as_ref().is_none_or(|best| run.len() > best.len()) {
                best = Some(run.clone());
            }
        }
        best.map(|best| best.start as u32)
    };
    let places: UInt32Array = (0..lists.len()).map(|row| most(items(lists, row))).collect();
    Ok(take(lists.values(), &places, None)?)
}

fn joined(values: &ListArray, before: &ListArray) -> Result<ArrayRef> {
    let of = |lists: &ListArray| lists.values().as_binary::<i32>().clone();
    let (bytes, between) = (of(values), of(before));
    let mut builder = BinaryBuilder::new();
    for row in 0..values.len() {
        let (own, others) = (items(values, row), items(before, row));
        if own.is_empty() {
            builder.append_null();
            continue;
        }
        let length = |of: &BinaryArray, at: usize| if of.is_null(at) { 0 } else { of.value_length(at) as u64 };
        let all: u64 =
            own.clone().map(|at| length(&bytes, at)).chain(others.clone().map(|at| length(&between, at))).sum();
        crate::memory::check_length(all).map_err(tunnel)?;
        let mut made = Vec::with_capacity(all as usize);
        for (number, (at, other)) in own.zip(others).enumerate() {
            if number > 0 && between.is_valid(other) {
                made.extend_from_slice(between.value(other));
            }
            made.extend_from_slice(bytes.value(at));
        }
        builder.append_value(made);
    }
    Ok(Arc::new(builder.finish()))
}

impl Ordered {
    fn percentiles(&self, lists: &ListArray, parts: &ArrayRef) -> Result<ArrayRef> {
        let Some(arrays) = Arrays::of(parts) else {
            let parts = parts.as_primitive::<Float64Type>();
            let pairs = (0..lists.len()).map(|row| (items(lists, row), parts.is_valid(row).then(|| parts.value(row))));
            return self.picked(lists.values(), pairs);
        };
        let parts = arrays.lists();
        let values = parts.values().as_primitive::<Float64Type>();
        let (mut pairs, mut shapes) = (vec![], vec![]);
        for row in 0..lists.len() {
            let own = items(lists, row);
            // Of no items there are no percentiles.
            let asked = if own.is_empty() { 0..0 } else { items(parts, row) };
            shapes.push((parts.is_valid(row) && !own.is_empty()).then(|| arrays.shape(row)));
            pairs.extend(asked.map(|at| (own.clone(), values.is_valid(at).then(|| values.value(at)))));
        }
        let picked = self.picked(lists.values(), pairs.into_iter())?;
        Ok(arrays::made(picked, shapes))
    }

    /// Of each of these ranges of items what lies at that part of it. 22003
    fn picked(&self, values: &ArrayRef, pairs: impl Iterator<Item = (Range<usize>, Option<f64>)>) -> Result<ArrayRef> {
        let mut places = vec![];
        for (items, part) in pairs {
            if let Some(part) = part.filter(|part| !(0.0..=1.0).contains(part)) {
                let message = format!("percentile value {part} is not between 0 and 1");
                return Err(tunnel(EngineError::new("22003", message)));
            }
            places.push(part.filter(|_| !items.is_empty()).map(|part| (items, part)));
        }
        if self.asked == Asked::Disc {
            let place = |(items, part): &(Range<usize>, f64)| {
                let number = (part * items.len() as f64).ceil() as usize;
                (items.start + number.max(1) - 1) as u32
            };
            let places: UInt32Array = places.iter().map(|one| one.as_ref().map(place)).collect();
            return Ok(take(values, &places, None)?);
        }
        let values = values.as_primitive::<Float64Type>();
        let between = |(items, part): &(Range<usize>, f64)| {
            let at = part * (items.len() - 1) as f64;
            let [below, above] = [at.floor(), at.ceil()].map(|at| values.value(items.start + at as usize));
            if at.floor() == at.ceil() { below } else { below + (at - at.floor()) * (above - below) }
        };
        Ok(Arc::new(places.iter().map(|one| one.as_ref().map(between)).collect::<Float64Array>()))
    }

    fn hypothetical(&self, lists: &ListArray, given: &ArrayRef) -> Result<ArrayRef> {
        let (keys, given) = (compared_by(lists.values())?, compared_by(given)?);
        let beside = make_comparator(&keys, &given, self.order)?;
        let alike = make_comparator(&keys, &keys, self.order)?;
        let before = |row: usize, at: usize| match (self.asked, beside(at, row)) {
            (Asked::CumeDist, Ordering::Equal) => true,
            (_, order) => order == Ordering::Less,
        };
        let places: Vec<(usize, usize, usize)> = (0..lists.len())
            .map(|row| {
                let items = items(lists, row);
                let found = items.clone().take_while(|at| before(row, *at));
                let (mut count, mut distinct) = (0, 0);
                for at in found {
                    count += 1;
                    distinct += usize::from(at == items.start || alike(at - 1, at) != Ordering::Equal);
                }
                (count, distinct, items.len())
            })
            .collect();
        let float = |of: fn(usize, usize) -> f64| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values(places.iter().map(|(count, _, all)| of(*count, *all))))
        };
        Ok(match self.asked {
            Asked::DenseRank => Arc::new(Int64Array::from_iter_values(places.iter().map(|(_, n, _)| *n as i64 + 1))),
            Asked::PercentRank => float(|count, all| if all == 0 { 0.0 } else { count as f64 / all as f64 }),
            Asked::CumeDist => float(|count, all| (count + 1) as f64 / (all + 1) as f64),
            _ => Arc::new(Int64Array::from_iter_values(places.iter().map(|(count, ..)| *count as i64 + 1))),
        })
    }
}
