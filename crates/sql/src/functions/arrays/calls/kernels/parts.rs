//! Slices of arrays, arrays with other parts, and arrays that are put together.
//!
//! 1. A slice begins with number 1 in each dimension. A dimension that no slice names is taken whole.
//! 2. An array of one dimension grows in both directions by what is assigned to it, with NULL between; one of several
//!    does not. One without items gets the dimensions that are assigned to.
//!
//! Source: PostgreSQL 15, "Modifying Arrays" (8.15.4), "Array Functions and Operators" (9.19).
use super::{OPEN, bounds, items, number, numbers, shaped, size, view};
use crate::memory;
use terrace_engine::types::{Dimension, Shape};
use terrace_engine::{DataType, Datum, EngineError, Result};

fn wrong(message: &str) -> EngineError {
    EngineError::new("2202E", message)
}

/// Of NULL none.
fn shape_of(whole: &Datum) -> Result<Shape> {
    if whole.is_null() { Shape::new(&[]) } else { Ok(view(whole)?.shape()) }
}

/// The dimensions that the first and last numbers say. 54000
fn between(bounds: &[[i64; 2]]) -> Result<Vec<Dimension>> {
    let one = |[from, to]: &[i64; 2]| {
        let length = i32::try_from(to - from + 1).ok().filter(|length| *length >= 0).ok_or_else(Shape::too_large)?;
        Ok(Dimension { length, first: i32::try_from(*from).map_err(|_| Shape::too_large())? })
    };
    let made = bounds.iter().map(one).collect::<Result<Vec<Dimension>>>()?;
    Shape::new(&made)?;
    Ok(made)
}

/// The places of the items between these numbers, in order.
fn places(shape: &Shape, bounds: &[[i64; 2]]) -> Vec<usize> {
    let mut places = vec![0];
    for (dimension, [from, to]) in shape.iter().zip(bounds) {
        let own = |place: usize| {
            (*from..=*to).map(move |at| place * dimension.length as usize + (at - i64::from(dimension.first)) as usize)
        };
        places = places.into_iter().flat_map(own).collect();
    }
    places
}

/// The bounds of all dimensions, of which the first ones are given.
fn of_all(shape: &Shape, given: &[[i64; 2]]) -> Vec<[i64; 2]> {
    let own = |(at, dimension): (usize, &Dimension)| {
        let [from, to] = given.get(at).copied().unwrap_or(OPEN);
        let first = if from == OPEN[0] { dimension.first.into() } else { from };
        [first, if to == OPEN[1] { dimension.last().into() } else { to }]
    };
    shape.iter().enumerate().map(own).collect()
}

/// Invariant 1.
pub(super) fn slice(of: DataType, whole: &Datum, given: &[[i64; 2]]) -> Result<Datum> {
    let shape = shape_of(whole)?;
    if shape.len() < given.len() || shape.is_empty() {
        return shaped(of, &[], vec![]);
    }
    let mut bounds = of_all(&shape, given);
    for (dimension, [from, to]) in shape.iter().zip(&mut bounds) {
        (*from, *to) = ((*from).max(dimension.first.into()), (*to).min(dimension.last().into()));
        if from > to {
            return shaped(of, &[], vec![]);
        }
    }
    let length = |[from, to]: &[i64; 2]| Dimension { length: (to - from + 1) as i32, first: 1 };
    let dimensions: Vec<Dimension> = bounds.iter().map(length).collect();
    let mut all: Vec<Option<Datum>> = items(whole)?.into_iter().map(Some).collect();
    let values = places(&shape, &bounds).into_iter().filter_map(|place| all.get_mut(place)?.take()).collect();
    shaped(of, &dimensions, values)
}

fn no_subscript() -> EngineError {
    EngineError::new("22004", "array subscript in assignment must not be null")
}

/// An array of one dimension with room for these numbers, NULL where nothing was.
fn grown(whole: &Datum, dimension: Dimension, [from, to]: [i64; 2]) -> Result<(Dimension, Vec<Datum>)> {
    let made = between(&[[from.min(dimension.first.into()), to.max(dimension.last().into())]])?[0];
    let mut values = items(whole)?;
    let _asked = memory::ask("an array", made.length as u64 * 24)?;
    let before = (i64::from(dimension.first) - i64::from(made.first)) as usize;
    values.splice(0..0, std::iter::repeat_n(Datum::Null, before));
    values.resize(made.length as usize, Datum::Null);
    Ok((made, values))
}

/// The array, the item, its numbers.
pub(super) fn with_item(of: DataType, v: &[Datum]) -> Result<Datum> {
    if v[2..].contains(&Datum::Null) {
        return Err(no_subscript());
    }
    let (shape, at) = (shape_of(&v[0])?, numbers(&v[2..])?);
    if shape.is_empty() {
        let dimensions: Vec<Dimension> = at.iter().map(|first| Dimension { length: 1, first: *first }).collect();
        return shaped(of, &dimensions, vec![v[1].clone()]);
    }
    if shape.len() != at.len() {
        return Err(wrong("wrong number of array subscripts"));
    }
    if let ([dimension], [at]) = (&*shape, at.as_slice()) {
        let (dimension, mut values) = grown(&v[0], *dimension, [i64::from(*at); 2])?;
        values[(i64::from(*at) - i64::from(dimension.first)) as usize] = v[1].clone();
        return shaped(of, &[dimension], values);
    }
    let place = shape.place(&at).ok_or_else(|| wrong("array subscript out of range"))?;
    let mut values = items(&v[0])?;
    values[place] = v[1].clone();
    shaped(of, &shape, values)
}

/// The array, the new items, the bounds. The shape of the new items does not matter.
pub(super) fn with_slice(of: DataType, v: &[Datum]) -> Result<Datum> {
    if v[2..].contains(&Datum::Null) {
        return Err(no_subscript());
    }
    if v[1].is_null() {
        return if v[0].is_null() { shaped(of, &[], vec![]) } else { Ok(v[0].clone()) };
    }
    let (shape, given, new) = (shape_of(&v[0])?, bounds(&v[2..])?, items(&v[1])?);
    let small = || wrong("source array too small");
    if shape.is_empty() {
        if given.iter().any(|[from, to]| *from == OPEN[0] || *to == OPEN[1]) {
            let detail = "When assigning to a slice of an empty array value, slice boundaries must be fully specified.";
            return Err(wrong("array slice subscript must provide both boundaries").with_detail(detail.to_owned()));
        }
        let made = Shape::new(&between(&given)?)?;
        let values: Vec<Datum> = new.into_iter().take(made.items()).collect();
        return if values.len() < made.items() { Err(small()) } else { shaped(of, &made, values) };
    }
    if shape.len() < given.len() {
        return Err(wrong("wrong number of array subscripts"));
    }
    let bounds = of_all(&shape, &given);
    let alone = shape.len() == 1;
    for (dimension, [from, to]) in shape.iter().zip(&bounds) {
        if from > to {
            return Err(wrong("upper bound cannot be less than lower bound"));
        }
        if !alone && (*from < dimension.first.into() || *to > dimension.last().into()) {
            return Err(wrong("array subscript out of range"));
        }
    }
    let (made, mut values) = match (&*shape, bounds.as_slice()) {
        ([dimension], [bound]) => {
            let (dimension, values) = grown(&v[0], *dimension, *bound)?;
            (Shape::new(&[dimension])?, values)
        }
        _ => (shape, items(&v[0])?),
    };
    let places = places(&made, &bounds);
    if new.len() < places.len() {
        return Err(small());
    }
    for (place, item) in places.into_iter().zip(new) {
        values[place] = item;
    }
    shaped(of, &made, values)
}

/// With one item more, behind or before the others. An item before them takes the number of the first.
pub(super) fn extended(of: DataType, whole: &Datum, item: &Datum, before: bool) -> Result<Datum> {
    let dimension = match &*shape_of(whole)? {
        [] => Dimension { length: 0, first: 1 },
        [one] => *one,
        _ => return Err(EngineError::new("22000", "argument must be empty or one-dimensional array")),
    };
    let beyond = if before { dimension.first.checked_sub(1) } else { dimension.first.checked_add(dimension.length) };
    if beyond.is_none() {
        return Err(EngineError::out_of_range("integer"));
    }
    let mut values = items(whole)?;
    let at = if before { 0 } else { values.len() };
    values.insert(at, item.clone());
    shaped(of, &[Dimension { length: dimension.length + 1, first: dimension.first }], values)
}

/// One array behind another: as items, or as parts of the other's first dimension.
pub(super) fn joined(of: DataType, left: &Datum, right: &Datum) -> Result<Datum> {
    let (a, b) = (shape_of(left)?, shape_of(right)?);
    if a.is_empty() {
        return Ok(right.clone());
    }
    if b.is_empty() {
        return Ok(left.clone());
    }
    let unlike = |detail: String| wrong("cannot concatenate incompatible arrays").with_detail(detail);
    let of_parts = || unlike("Arrays with differing dimensions are not compatible for concatenation.".to_owned());
    let mut made: Vec<Dimension> = if a.len() >= b.len() { a.to_vec() } else { b.to_vec() };
    let more = match a.len() as i64 - b.len() as i64 {
        0 if a[1..] == b[1..] => b[0].length,
        0 => {
            let detail = "Arrays with differing element dimensions are not compatible for concatenation.";
            return Err(unlike(detail.to_owned()));
        }
        1 if a[1..] == *b => 1,
        -1 if b[1..] == *a => 1,
        1 | -1 => return Err(of_parts()),
        _ => {
            let (a, b) = (a.len(), b.len());
            let detail = format!("Arrays of {a} and {b} dimensions are not compatible for concatenation.");
            return Err(unlike(detail));
        }
    };
    made[0].length = made[0].length.checked_add(more).ok_or_else(Shape::too_large)?;
    shaped(of, &made, items(left)?.into_iter().chain(items(right)?).collect())
}

pub(super) fn fill(of: DataType, values: &[Datum]) -> Result<Datum> {
    let null = |what| EngineError::new("22004", format!("{what} cannot be null"));
    if values[1].is_null() || values.get(2).is_some_and(Datum::is_null) {
        return Err(null("dimension array or low bound array"));
    }
    let wrong_number = |detail: &str| wrong("wrong number of array subscripts").with_detail(detail.to_owned());
    let lengths = items(&values[1])?;
    let from = values.get(2).map(items).transpose()?;
    for array in &values[1..] {
        if shape_of(array)?.len() > 1 {
            return Err(wrong_number("Dimension array must be one dimensional."));
        }
        if items(array)?.iter().any(Datum::is_null) {
            return Err(null("dimension values"));
        }
    }
    if from.as_ref().is_some_and(|from| from.len() != lengths.len()) {
        return Err(wrong_number("Low bound array has different size than dimensions array."));
    }
    let mut dimensions = vec![];
    for (at, length) in lengths.iter().enumerate() {
        let first = from.as_ref().map_or(Ok(1), |from| number(&from[at]))?;
        dimensions.push(Dimension { length: number(length)?, first });
    }
    let shape = Shape::new(&dimensions)?;
    let _asked = memory::ask("an array", (shape.items() * (size(&values[0]) + 24)) as u64)?;
    shaped(of, &shape, std::iter::repeat_n(values[0].clone(), shape.items()).collect())
}
