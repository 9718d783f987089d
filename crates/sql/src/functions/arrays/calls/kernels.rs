//! What functions and operators of arrays answer, value by value.
//!
//! 1. Items are compared as their type is ([`same`]); NULL is the same as NULL to functions that seek an item, and
//!    nothing to operators.
//! 2. What would be an array of several dimensions, or one whose first item has another number than 1, is refused
//!    (0A000).
use super::super::keys::item_key;
use super::{Function, Slot};
use crate::functions::calendar::moved;
use crate::memory;
use rustc_hash::FxHashSet;
use terrace_engine::types::{Array, Decimal, Items, Zone, is_infinite, json};
use terrace_engine::{DataType, Datum, EngineError, Result};

const INT: Slot = Slot::Is(DataType::Int4);
const TEXT: Slot = Slot::Is(DataType::Text);
const BOOL: Slot = Slot::Is(DataType::Bool);

/// Stands for a bound of a slice that is not written.
pub(crate) const OPEN: [i32; 2] = [i32::MIN, i32::MAX];

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
    joins("array_append", &[Slot::Array, Slot::Item], Slot::Array, |of, v| {
        array(of, items(&v[0])?.into_iter().chain([v[1].clone()]))
    }),
    joins("array_prepend", &[Slot::Item, Slot::Array], Slot::Array, |of, v| {
        array(of, [v[0].clone()].into_iter().chain(items(&v[1])?))
    }),
    joins("array_cat", &[Slot::Array, Slot::Array], Slot::Array, |of, v| match v {
        [Datum::Null, other] | [other, Datum::Null] => Ok(other.clone()),
        _ => array(of, items(&v[0])?.into_iter().chain(items(&v[1])?)),
    }),
    joins("array_remove", &[Slot::Array, Slot::Item], Slot::Array, |of, v| match &v[0] {
        Datum::Null => Ok(Datum::Null),
        whole => {
            let mut kept = vec![];
            for item in items(whole)? {
                if !same(of, &item, &v[1])? {
                    kept.push(item);
                }
            }
            array(of, kept)
        }
    }),
    joins("array_replace", &[Slot::Array, Slot::Item, Slot::Item], Slot::Array, |of, v| match &v[0] {
        Datum::Null => Ok(Datum::Null),
        whole => {
            let one = |item: Datum| Ok(if same(of, &item, &v[1])? { v[2].clone() } else { item });
            array(of, items(whole)?.into_iter().map(one).collect::<Result<Vec<Datum>>>()?)
        }
    }),
    Function { least: 2, ..joins("array_position", &[Slot::Array, Slot::Item, INT], INT, position) },
    joins("array_positions", &[Slot::Array, Slot::Item], Slot::Numbers, |of, v| match &v[0] {
        Datum::Null => Ok(Datum::Null),
        whole => {
            let mut places = vec![];
            for (at, item) in (1..).zip(items(whole)?) {
                if same(of, &item, &v[1])? {
                    places.push(Datum::Int4(at));
                }
            }
            array(DataType::Int4, places)
        }
    }),
    measures("array_length", &[Slot::Array, INT], INT, |_, v| Ok(bound(v)?.map_or(Datum::Null, Datum::Int4))),
    measures("array_upper", &[Slot::Array, INT], INT, |_, v| Ok(bound(v)?.map_or(Datum::Null, Datum::Int4))),
    measures("array_lower", &[Slot::Array, INT], INT, |_, v| Ok(bound(v)?.map_or(Datum::Null, |_| Datum::Int4(1)))),
    measures("array_ndims", &[Slot::Array], INT, |_, v| {
        Ok(if count(&v[0])? == 0 { Datum::Null } else { Datum::Int4(1) })
    }),
    measures("array_dims", &[Slot::Array], TEXT, |_, v| {
        Ok(match count(&v[0])? {
            0 => Datum::Null,
            n => Datum::text(format!("[1:{n}]")),
        })
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
    // `width_bucket(value, thresholds)`.
    Function {
        sees: true,
        compatible: true,
        ..measures("width_bucket array", &[Slot::Item, Slot::Array], INT, |_, v| {
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
            let (most, less) = (count(&v[0])?, number(&v[1])?);
            if !(0..=most).contains(&less) {
                let message = format!("number of elements to trim must be between 0 and {most}");
                return Err(EngineError::new("2202E", message));
            }
            array(of, items(&v[0])?.into_iter().take((most - less) as usize))
        })
    },
    Function { least: 2, ..joins("array_fill", &[Slot::Item, Slot::Numbers, Slot::Numbers], Slot::Array, fill) },
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
            let last = bound(v)?.unwrap_or(0);
            let backwards = v.get(2) == Some(&Datum::Bool(true));
            array(DataType::Int4, (1..=last).map(|at| Datum::Int4(if backwards { last + 1 - at } else { at })))
        })
    },
    // `generate_series` of timestamps.
    measures("time series", &[Slot::Item, Slot::Item, Slot::Is(DataType::Interval)], Slot::Array, series),
    // `generate_series` of numerics.
    measures("numeric series", &[Slot::Item, Slot::Item, Slot::Item], Slot::Array, numeric_series),
    // `generate_series` of integers, all of one type.
    measures("whole series", &[Slot::Item, Slot::Item, Slot::Item], Slot::Array, whole_series),
    // `a[1]`.
    measures("array item", &[Slot::Array, INT], Slot::Item, |_, v| {
        let at = usize::try_from(i64::from(number(&v[1])?) - 1).ok();
        Ok(at.and_then(|at| view(&v[0]).ok()?.iter().nth(at)).map_or(Datum::Null, |item| item.to_datum()))
    }),
    // `a[1:2]`; what is not written is one of [`OPEN`].
    measures("array slice", &[Slot::Array, INT, INT], Slot::Array, |of, v| {
        let (from, to) = (number(&v[1])?.max(1), number(&v[2])?.min(count(&v[0])?));
        array(of, items(&v[0])?.into_iter().take(to.max(0) as usize).skip(from as usize - 1))
    }),
    // `SET a[1] = x`, `SET a[1:2] = x`: what becomes of the array.
    joins("array with", &[Slot::Array, INT, Slot::Item], Slot::Array, with_item),
    joins("array with slice", &[Slot::Array, INT, INT, Slot::Array], Slot::Array, with_slice),
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
    let items = Items::of(of).ok_or_else(super::super::several_dimensions)?;
    Ok(Datum::Array(Array::new(items, &values)?))
}

/// The number of the last item, in the dimension that is asked for; `None`: there is none.
fn bound(values: &[Datum]) -> Result<Option<i32>> {
    let most = count(&values[0])?;
    Ok((most > 0 && number(&values[1])? == 1).then_some(most))
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
        None => 1,
    };
    for (at, item) in (1..).zip(items(&values[0])?) {
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

fn fill(of: DataType, values: &[Datum]) -> Result<Datum> {
    let null = |what| EngineError::new("22004", format!("{what} cannot be null"));
    if values[1].is_null() || values.get(2).is_some_and(Datum::is_null) {
        return Err(null("dimension array or low bound array"));
    }
    let lengths = items(&values[1])?;
    let from = values.get(2).map(items).transpose()?;
    if let Some(from) = &from
        && from.len() != lengths.len()
    {
        let error = EngineError::new("2202E", "wrong number of array subscripts");
        return Err(error.with_detail("Low bound array has different size than dimensions array.".to_owned()));
    }
    if lengths.iter().chain(from.iter().flatten()).any(Datum::is_null) {
        return Err(null("dimension values"));
    }
    match (lengths.as_slice(), from.as_deref()) {
        ([], _) => array(of, []),
        ([_], Some([from])) if *from != Datum::Int4(1) => Err(other_first()),
        ([length], _) => {
            let most = "array size exceeds the maximum allowed (134217727)";
            let length = usize::try_from(number(length)?).map_err(|_| EngineError::new("54000", most))?;
            let _asked = memory::ask("an array", (length * (size(&values[0]) + 24)) as u64)?;
            array(of, std::iter::repeat_n(values[0].clone(), length))
        }
        _ => Err(super::super::several_dimensions()),
    }
}

fn other_first() -> EngineError {
    EngineError::unsupported("arrays whose items do not begin with number 1 are not supported")
}

fn no_subscript() -> EngineError {
    EngineError::new("22004", "array subscript in assignment must not be null")
}

/// Items up to a number, NULL where there were none.
fn grown(whole: &Datum, to: i32) -> Result<Vec<Datum>> {
    let mut items = items(whole)?;
    let to = to as usize;
    if to > items.len() {
        let _asked = memory::ask("an array", (to * 24) as u64)?;
        items.resize(to, Datum::Null);
    }
    Ok(items)
}

fn with_item(of: DataType, values: &[Datum]) -> Result<Datum> {
    let at = if values[1].is_null() { return Err(no_subscript()) } else { number(&values[1])? };
    let held = if values[0].is_null() { 0 } else { count(&values[0])? };
    if at < 1 || (held == 0 && at > 1) {
        return Err(other_first());
    }
    let mut items = grown(&values[0], at)?;
    items[at as usize - 1] = values[2].clone();
    array(of, items)
}

fn with_slice(of: DataType, values: &[Datum]) -> Result<Datum> {
    if values[1].is_null() || values[2].is_null() {
        return Err(no_subscript());
    }
    if values[3].is_null() {
        return Ok(values[0].clone());
    }
    let held = if values[0].is_null() { 0 } else { count(&values[0])? };
    let (from, to) = (number(&values[1])?, number(&values[2])?);
    if held == 0 && (from == OPEN[0] || to == OPEN[1]) {
        let error = EngineError::new("2202E", "array slice subscript must provide both boundaries");
        let detail = "When assigning to a slice of an empty array value, slice boundaries must be fully specified.";
        return Err(error.with_detail(detail.to_owned()));
    }
    let (from, to) = (if from == OPEN[0] { 1 } else { from }, if to == OPEN[1] { held } else { to });
    if to < from {
        return Err(EngineError::new("2202E", "upper bound cannot be less than lower bound"));
    }
    if from < 1 || (held == 0 && from > 1) {
        return Err(other_first());
    }
    let new = items(&values[3])?;
    let wanted = (i64::from(to) - i64::from(from) + 1) as usize;
    if new.len() < wanted {
        return Err(EngineError::new("2202E", "source array too small"));
    }
    let mut items = grown(&values[0], to)?;
    for (place, item) in items[from as usize - 1..].iter_mut().zip(new.into_iter().take(wanted)) {
        *place = item;
    }
    array(of, items)
}

/// JSON of keys and values: of one array, where they take turns, or of two.
fn object(v: &[Datum]) -> Result<String> {
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
