//! What functions and operators of arrays answer, value by value.
//!
//! 1. Items are compared as their type is ([`same`]); NULL is the same as NULL to functions that seek an item, and
//!    nothing to operators.
//! 2. What takes shapes apart and puts them together is in [`parts`].
use super::super::keys::item_key;
use super::{Function, Slot};
use crate::functions::calendar::moved;
use crate::memory;
use rustc_hash::FxHashSet;
use terrace_engine::types::{Array, Decimal, Dimension, Items, Shape, Zone, is_infinite, json};
use terrace_engine::{DataType, Datum, EngineError, Result};

mod parts;

const INT: Slot = Slot::Is(DataType::Int4);
const TEXT: Slot = Slot::Is(DataType::Text);
const BOOL: Slot = Slot::Is(DataType::Bool);

/// Stands for a bound of a slice that is not written.
pub(crate) const OPEN: [i64; 2] = [i64::MIN, i64::MAX];

type Run = fn(DataType, &[Datum]) -> Result<Datum>;

/// Of items that become one type, NULL or not.
const fn joins(name: &'static str, takes: &'static [Slot], gives: Slot, run: Run) -> Function {
    Function { name, takes, least: takes.len(), gives, strict: false, compatible: true, sees: true, run }
}

/// Of one array, NULL of NULL.
const fn measures(name: &'static str, takes: &'static [Slot], gives: Slot, run: Run) -> Function {
    Function { name, takes, least: takes.len(), gives, strict: true, compatible: false, sees: false, run }
}

pub(super) const TABLE: &[Function] = &[
    joins("array_append", &[Slot::Array, Slot::Item], Slot::Array, |of, v| parts::extended(of, &v[0], &v[1], false)),
    joins("array_prepend", &[Slot::Item, Slot::Array], Slot::Array, |of, v| parts::extended(of, &v[1], &v[0], true)),
    joins("array_cat", &[Slot::Array, Slot::Array], Slot::Array, |of, v| match v {
        [Datum::Null, other] | [other, Datum::Null] => Ok(other.clone()),
        _ => parts::joined(of, &v[0], &v[1]),
    }),
    joins("array_remove", &[Slot::Array, Slot::Item], Slot::Array, |of, v| match &v[0] {
        Datum::Null => Ok(Datum::Null),
        whole => {
            let what = "removing elements from multidimensional arrays";
            let (first, mut kept) = (one_dimension(whole, what)?, vec![]);
            for item in items(whole)? {
                if !same(of, &item, &v[1])? {
                    kept.push(item);
                }
            }
            shaped(of, &[Dimension { length: kept.len() as i32, first }], kept)
        }
    }),
    joins("array_replace", &[Slot::Array, Slot::Item, Slot::Item], Slot::Array, |of, v| match &v[0] {
        Datum::Null => Ok(Datum::Null),
        whole => {
            let one = |item: Datum| Ok(if same(of, &item, &v[1])? { v[2].clone() } else { item });
            shaped(of, &view(whole)?.shape(), items(whole)?.into_iter().map(one).collect::<Result<Vec<Datum>>>()?)
        }
    }),
    Function { least: 2, ..joins("array_position", &[Slot::Array, Slot::Item, INT], INT, position) },
    joins("array_positions", &[Slot::Array, Slot::Item], Slot::Numbers, |of, v| match &v[0] {
        Datum::Null => Ok(Datum::Null),
        whole => {
            let mut places = vec![];
            for (at, item) in (one_dimension(whole, SEARCH)?..).zip(items(whole)?) {
                if same(of, &item, &v[1])? {
                    places.push(Datum::Int4(at));
                }
            }
            array(DataType::Int4, places)
        }
    }),
    measures("array_length", &[Slot::Array, INT], INT, |_, v| of_dimension(v, |dimension| dimension.length)),
    measures("array_upper", &[Slot::Array, INT], INT, |_, v| of_dimension(v, Dimension::last)),
    measures("array_lower", &[Slot::Array, INT], INT, |_, v| of_dimension(v, |dimension| dimension.first)),
    measures("array_ndims", &[Slot::Array], INT, |_, v| {
        Ok(Some(view(&v[0])?.shape().len() as i32).filter(|count| *count > 0).map_or(Datum::Null, Datum::Int4))
    }),
    measures("array_dims", &[Slot::Array], TEXT, |_, v| {
        let shape = view(&v[0])?.shape();
        let shown: String = shape.iter().map(|d| format!("[{}:{}]", d.first, d.last())).collect();
        Ok(if shape.is_empty() { Datum::Null } else { Datum::text(shown) })
    }),
    measures("cardinality", &[Slot::Array], INT, |_, v| Ok(Datum::Int4(count(&v[0])?))),
    Function {
        least: 2,
        strict: false,
        sees: true,
        ..measures("array_to_string", &[Slot::Array, TEXT, TEXT], TEXT, to_string)
    },
    Function {
        least: 2,
        ..joins("string_to_array", &[TEXT, TEXT, TEXT], Slot::Texts, |_, v| {
            let null = v.get(2).unwrap_or(&Datum::Null);
            match (&v[0], &v[1]) {
                (Datum::Null, _) => Ok(Datum::Null),
                (whole, separator) => split(text(whole)?, separator, null),
            }
        })
    },
    Function {
        least: 2,
        strict: true,
        ..joins("regexp_split_to_array", &[TEXT, TEXT, TEXT], Slot::Texts, |_, v| {
            array(DataType::Text, crate::functions::builtin::split(v)?.into_iter().map(Datum::text))
        })
    },
    Function {
        least: 2,
        strict: true,
        ..joins("regexp_match", &[TEXT, TEXT, TEXT], Slot::Texts, |_, v| {
            let group = |taken: Option<String>| taken.map_or(Datum::Null, Datum::text);
            match crate::functions::builtin::first_match(v)? {
                Some(groups) => array(DataType::Text, groups.into_iter().map(group)),
                None => Ok(Datum::Null),
            }
        })
    },
    // `width_bucket(value, thresholds)`.
    Function {
        sees: true,
        compatible: true,
        ..measures("width_bucket array", &[Slot::Item, Slot::Array], INT, |_, v| {
            if view(&v[1])?.shape().len() > 1 {
                return Err(EngineError::new("2202E", "thresholds must be one-dimensional array"));
            }
            let bounds = items(&v[1])?;
            if bounds.iter().any(Datum::is_null) {
                return Err(EngineError::new("22004", "thresholds array must not contain NULLs"));
            }
            let below = |bound: &Datum| bound.as_ref().cmp_key(v[0].as_ref()).is_le();
            Ok(Datum::Int4(bounds.partition_point(below) as i32))
        })
    },
    Function {
        sees: true,
        ..measures("trim_array", &[Slot::Array, INT], Slot::Array, |of, v| {
            let (shape, less) = (view(&v[0])?.shape(), number(&v[1])?);
            let most = shape.first().map_or(0, |outer| outer.length);
            if !(0..=most).contains(&less) {
                let message = format!("number of elements to trim must be between 0 and {most}");
                return Err(EngineError::new("2202E", message));
            }
            match shape.first() {
                Some(outer) => parts::slice(of, &v[0], &[[OPEN[0], i64::from(outer.last()) - i64::from(less)]]),
                None => Ok(v[0].clone()),
            }
        })
    },
    Function { least: 2, ..joins("array_fill", &[Slot::Item, Slot::Numbers, Slot::Numbers], Slot::Array, parts::fill) },
    // Operators: `@>`, `<@`, `&&`.
    Function {
        sees: true,
        ..measures("array contains", &[Slot::Array, Slot::Array], BOOL, |of, v| has_all(of, &v[0], &v[1]))
    },
    Function {
        sees: true,
        ..measures("array contained", &[Slot::Array, Slot::Array], BOOL, |of, v| has_all(of, &v[1], &v[0]))
    },
    Function {
        sees: true,
        ..measures("array overlaps", &[Slot::Array, Slot::Array], BOOL, |of, v| {
            let others = keys_of(of, &v[1])?;
            Ok(Datum::Bool(keys_of(of, &v[0])?.iter().flatten().any(|own| others.contains(&Some(own.clone())))))
        })
    },
    // `generate_subscripts`: the numbers of the items, the last one first if that is asked for.
    Function {
        least: 2,
        ..measures("array subscripts", &[Slot::Array, INT, BOOL], Slot::Numbers, |_, v| {
            let Some(dimension) = dimension(v)? else { return array(DataType::Int4, []) };
            let (numbers, backwards) = (dimension.first..=dimension.last(), v.get(2) == Some(&Datum::Bool(true)));
            match backwards {
                true => array(DataType::Int4, numbers.rev().map(Datum::Int4)),
                false => array(DataType::Int4, numbers.map(Datum::Int4)),
            }
        })
    },
    // `generate_series` of timestamps.
    measures("time series", &[Slot::Item, Slot::Item, Slot::Is(DataType::Interval)], Slot::Array, series),
    // `generate_series` of numerics.
    measures("numeric series", &[Slot::Item, Slot::Item, Slot::Item], Slot::Array, numeric_series),
    // `generate_series` of integers, all of one type.
    measures("whole series", &[Slot::Item, Slot::Item, Slot::Item], Slot::Array, whole_series),
    // `a[1]`, `a[1][2]`.
    Function {
        least: 2,
        ..measures("array item", &[Slot::Array, INT, INT, INT, INT, INT, INT], Slot::Item, |_, v| {
            let whole = view(&v[0])?;
            let place = whole.shape().place(&numbers(&v[1..])?);
            Ok(place.and_then(|place| whole.iter().nth(place)).map_or(Datum::Null, |item| item.to_datum()))
        })
    },
    // `a[1:2]`, `a[1:2][2:3]`; what is not written is one of [`OPEN`].
    Function {
        least: 3,
        ..measures("array slice", &BOUNDS, Slot::Array, |of, v| parts::slice(of, &v[0], &bounds(&v[1..])?))
    },
    // `SET a[1] = x`, `SET a[1:2] = x`: what becomes of the array.
    Function {
        least: 3,
        ..joins("array with", &[Slot::Array, Slot::Item, INT, INT, INT, INT, INT, INT], Slot::Array, parts::with_item)
    },
    Function { least: 4, ..joins("array with slice", &NEW_BOUNDS, Slot::Array, parts::with_slice) },
    Function {
        least: 1,
        ..measures("json_object", &[Slot::Texts, Slot::Texts], Slot::Is(DataType::Json), |_, v| {
            Ok(Datum::Json(object(v)?.into()))
        })
    },
    Function {
        least: 1,
        ..measures("jsonb_object", &[Slot::Texts, Slot::Texts], Slot::Is(DataType::Jsonb), |_, v| {
            Ok(Datum::Jsonb(json::normal(&object(v)?)?.into()))
        })
    },
];

/// An array, and up to six times two bounds, which are integers, or one of [`OPEN`].
const BOUNDS: [Slot; 13] = {
    let mut slots = [Slot::Is(DataType::Int8); 13];
    slots[0] = Slot::Array;
    slots
};

/// The same with the new items.
const NEW_BOUNDS: [Slot; 14] = {
    let mut slots = [Slot::Is(DataType::Int8); 14];
    (slots[0], slots[1]) = (Slot::Array, Slot::Array);
    slots
};

/// Times from the first to the second, a step after the other. Steps are by the session's clock.
fn series(of: DataType, values: &[Datum]) -> Result<Datum> {
    let zone = Zone::current();
    let (from, to, zoned) = match values {
        [Datum::Timestamp(from), Datum::Timestamp(to), _] => (*from, *to, false),
        [Datum::Timestamptz(from), Datum::Timestamptz(to), _] => (*from, *to, true),
        _ => return Err(wrong(&values[0])),
    };
    let Datum::Interval(step) = &values[2] else { return Err(wrong(&values[2])) };
    let forward = match step.key() {
        0 => return Err(EngineError::new("22023", "step size cannot equal zero")),
        key => key > 0,
    };
    if is_infinite(from) {
        return Err(EngineError::unsupported("generate_series from an infinite time is not supported"));
    }
    let next = |at: i64| match zoned {
        false => moved(at, step.months(), step.days(), step.micros()),
        true if step.months() == 0 && step.days() == 0 => at.checked_add(step.micros()),
        true => moved(zone.local(at), step.months(), step.days(), 0)
            .and_then(|local| zone.utc(local))
            .and_then(|at| at.checked_add(step.micros())),
    };
    let (mut made, mut at) = (vec![], from);
    while if forward { at <= to } else { at >= to } {
        made.push(if zoned { Datum::Timestamptz(at) } else { Datum::Timestamp(at) });
        if made.len() % 4096 == 0 {
            memory::check()?;
        }
        if made.len() > SERIES_MAX {
            let message = format!("a series of times of more than {SERIES_MAX} rows is not supported");
            return Err(EngineError::unsupported(message));
        }
        at = next(at).ok_or_else(|| EngineError::new("22008", "timestamp out of range"))?;
    }
    array(of, made)
}

/// Numerics from the first to the second, a step after the other.
fn numeric_series(of: DataType, values: &[Datum]) -> Result<Datum> {
    let bound = |value: &Datum, name: &str| {
        let Datum::Decimal(bytes) = value else { return Err(wrong(value)) };
        match Decimal::decode(bytes) {
            Decimal::NaN => Err(EngineError::new("22023", format!("{name} cannot be NaN"))),
            value if !value.is_finite() => Err(EngineError::new("22023", format!("{name} cannot be infinity"))),
            value => Ok(value),
        }
    };
    let (from, to) = (bound(&values[0], "start value")?, bound(&values[1], "stop value")?);
    let step = bound(&values[2], "step size")?;
    if step.is_zero() {
        return Err(EngineError::new("22023", "step size cannot equal zero"));
    }
    let (mut made, mut next) = (vec![], Some(from));
    while let Some(at) = next.filter(|at| if step.is_negative() { *at >= to } else { *at <= to }) {
        made.push(Datum::Decimal(at.encode()));
        if made.len() % 4096 == 0 {
            memory::check()?;
        }
        if made.len() > SERIES_MAX {
            let message = format!("a series of numerics of more than {SERIES_MAX} rows is not supported");
            return Err(EngineError::unsupported(message));
        }
        // What has too many digits is behind the end.
        next = at.add(&step).ok();
    }
    array(of, made)
}

/// Integers from the first to the second.
fn whole_series(of: DataType, values: &[Datum]) -> Result<Datum> {
    let whole = |value: &Datum| match value {
        Datum::Int4(value) => Ok(i64::from(*value)),
        Datum::Int8(value) => Ok(*value),
        other => Err(wrong(other)),
    };
    let (from, to, step) = (whole(&values[0])?, whole(&values[1])?, whole(&values[2])?);
    if step == 0 {
        return Err(EngineError::new("22023", "step size cannot equal zero"));
    }
    let (mut made, mut next) = (vec![], Some(from));
    while let Some(at) = next.filter(|at| if step > 0 { *at <= to } else { *at >= to }) {
        made.push(if of == DataType::Int4 { Datum::Int4(at as i32) } else { Datum::Int8(at) });
        if made.len() % 4096 == 0 {
            memory::check()?;
        }
        if made.len() > SERIES_MAX {
            let message =
                format!("a series of what stands beside it, of more than {SERIES_MAX} rows, is not supported");
            return Err(EngineError::unsupported(message));
        }
        next = at.checked_add(step);
    }
    array(of, made)
}

/// Values of one series: they are made at once.
const SERIES_MAX: usize = 4_000_000;

/// Bytes of a value, about.
pub(super) fn size(value: &Datum) -> usize {
    match value {
        Datum::Array(array) => array.view().size(),
        Datum::Text(text) => text.len(),
        _ => 8,
    }
}

fn wrong(value: &Datum) -> EngineError {
    EngineError::internal(format!("a function of arrays was called with {value:?}"))
}

fn view(value: &Datum) -> Result<terrace_engine::types::ArrayView<'_>> {
    match value {
        Datum::Array(array) => Ok(array.view()),
        other => Err(wrong(other)),
    }
}

/// Of NULL none.
fn items(value: &Datum) -> Result<Vec<Datum>> {
    match value {
        Datum::Null => Ok(vec![]),
        value => Ok(view(value)?.iter().map(|item| item.to_datum()).collect()),
    }
}

fn count(value: &Datum) -> Result<i32> {
    Ok(view(value)?.len() as i32)
}

fn number(value: &Datum) -> Result<i32> {
    match value {
        Datum::Int4(v) => Ok(*v),
        other => Err(wrong(other)),
    }
}

fn text(value: &Datum) -> Result<&str> {
    match value {
        Datum::Text(text) => Ok(text),
        other => Err(wrong(other)),
    }
}

fn array(of: DataType, values: impl IntoIterator<Item = Datum>) -> Result<Datum> {
    let values: Vec<Datum> = values.into_iter().collect();
    Ok(Datum::Array(Array::new(items_of(of)?, &values)?))
}

/// An array of these dimensions.
fn shaped(of: DataType, dimensions: &[Dimension], values: Vec<Datum>) -> Result<Datum> {
    Ok(Datum::Array(Array::shaped(items_of(of)?, &Shape::new(dimensions)?, &values)?))
}

fn items_of(of: DataType) -> Result<Items> {
    Items::of(of).ok_or_else(|| EngineError::internal(format!("items of type {of}")))
}

fn numbers(values: &[Datum]) -> Result<Vec<i32>> {
    values.iter().map(number).collect()
}

/// Bounds of slices, by twos.
fn bounds(values: &[Datum]) -> Result<Vec<[i64; 2]>> {
    let bound = |value: &Datum| match value {
        Datum::Int8(bound) => Ok(*bound),
        other => Err(wrong(other)),
    };
    values.chunks_exact(2).map(|pair| Ok([bound(&pair[0])?, bound(&pair[1])?])).collect()
}

/// The dimension that is asked for; `None`: there is none.
fn dimension(values: &[Datum]) -> Result<Option<Dimension>> {
    let at = usize::try_from(i64::from(number(&values[1])?) - 1).ok();
    Ok(at.and_then(|at| view(&values[0]).ok()?.shape().get(at).copied()))
}

fn of_dimension(values: &[Datum], what: fn(Dimension) -> i32) -> Result<Datum> {
    Ok(dimension(values)?.map_or(Datum::Null, |dimension| Datum::Int4(what(dimension))))
}

const SEARCH: &str = "searching for elements in multidimensional arrays";

/// The number of an array's first item. 0A000, as in PostgreSQL, where it has several dimensions.
fn one_dimension(whole: &Datum, what: &str) -> Result<i32> {
    match &*view(whole)?.shape() {
        [] => Ok(1),
        [one] => Ok(one.first),
        _ => Err(EngineError::unsupported(format!("{what} is not supported"))),
    }
}

fn key(of: DataType, item: &Datum) -> Result<Option<Vec<u8>>> {
    if of == DataType::Json {
        return Err(EngineError::new("42883", "could not identify an equality operator for type json"));
    }
    if item.is_null() {
        return Ok(None);
    }
    let mut key = vec![];
    item_key(&mut key, item.as_ref()).map_err(crate::error::from_datafusion)?;
    Ok(Some(key))
}

fn keys_of(of: DataType, whole: &Datum) -> Result<FxHashSet<Option<Vec<u8>>>> {
    items(whole)?.iter().map(|item| key(of, item)).collect()
}

/// Invariant 1.
fn same(of: DataType, a: &Datum, b: &Datum) -> Result<bool> {
    Ok(key(of, a)? == key(of, b)?)
}

/// Whether each item of the second is in the first; NULL is in none.
fn has_all(of: DataType, whole: &Datum, part: &Datum) -> Result<Datum> {
    let (own, wanted) = (keys_of(of, whole)?, keys_of(of, part)?);
    Ok(Datum::Bool(wanted.iter().all(|item| item.is_some() && own.contains(item))))
}

fn position(of: DataType, values: &[Datum]) -> Result<Datum> {
    if values[0].is_null() {
        return Ok(Datum::Null);
    }
    let from = match values.get(2) {
        Some(Datum::Null) => return Err(EngineError::new("22004", "initial position must not be null")),
        Some(from) => number(from)?,
        None => i32::MIN,
    };
    for (at, item) in (one_dimension(&values[0], SEARCH)?..).zip(items(&values[0])?) {
        if at >= from && same(of, &item, &values[1])? {
            return Ok(Datum::Int4(at));
        }
    }
    Ok(Datum::Null)
}

fn to_string(of: DataType, values: &[Datum]) -> Result<Datum> {
    let null = values.get(2).filter(|null| !null.is_null()).map(text).transpose()?;
    let (Datum::Array(array), Datum::Text(separator)) = (&values[0], &values[1]) else { return Ok(Datum::Null) };
    let mut out = String::new();
    let mut first = true;
    for item in array.view().iter() {
        let shown = match (item.is_null(), null) {
            (true, None) => continue,
            (true, Some(null)) => null.to_owned(),
            (false, _) => of.shown(item),
        };
        if !std::mem::take(&mut first) {
            out.push_str(separator);
        }
        out.push_str(&shown);
        if out.len() > 1 << 30 {
            return Err(EngineError::new("54000", "the text of an array exceeds 1 GB"));
        }
    }
    Ok(Datum::Text(out.into()))
}

fn split(whole: &str, separator: &Datum, null: &Datum) -> Result<Datum> {
    let parts: Vec<String> = match separator {
        _ if whole.is_empty() => vec![],
        Datum::Null => whole.chars().map(String::from).collect(),
        separator => match text(separator)? {
            "" => vec![whole.to_owned()],
            separator => whole.split(separator).map(str::to_owned).collect(),
        },
    };
    let item = |part: String| match null {
        Datum::Text(null) if **null == *part => Datum::Null,
        _ => Datum::Text(part.into()),
    };
    array(DataType::Text, parts.into_iter().map(item))
}

/// JSON of keys and values: of one array, where they take turns, or of two.
fn object(v: &[Datum]) -> Result<String> {
    let shape = view(&v[0])?.shape();
    let wrong_number = || EngineError::new("2202E", "wrong number of array subscripts");
    match (v.get(1), &*shape) {
        (Some(values), own) if own.len() > 1 || own.len() != view(values)?.shape().len() => return Err(wrong_number()),
        (None, [_, pair]) if pair.length != 2 => {
            return Err(EngineError::new("2202E", "array must have two columns"));
        }
        (None, [_, _, _, ..]) => return Err(wrong_number()),
        _ => {}
    }
    let mut keys = items(&v[0])?;
    let values = match v.get(1) {
        Some(values) => items(values)?,
        None if keys.len() % 2 == 1 => {
            return Err(EngineError::new("2202E", "array must have even number of elements"));
        }
        None => {
            let (first, second): (Vec<_>, Vec<_>) = keys.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
            keys = first.into_iter().map(|(_, key)| key).collect();
            second.into_iter().map(|(_, value)| value).collect()
        }
    };
    if keys.len() != values.len() {
        return Err(EngineError::new("2202E", "mismatched array dimensions"));
    }
    let mut out = String::from("{");
    for (at, (key, value)) in keys.iter().zip(&values).enumerate() {
        if key.is_null() {
            return Err(EngineError::new("22004", "null value not allowed for object key"));
        }
        out.push_str(if at == 0 { "" } else { ", " });
        json::write_text(&mut out, text(key)?);
        out.push_str(" : ");
        match value {
            Datum::Null => out.push_str("null"),
            value => json::write_text(&mut out, text(value)?),
        }
    }
    out.push('}');
    Ok(out)
}
