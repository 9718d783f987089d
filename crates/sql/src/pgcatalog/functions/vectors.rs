//! Items of lists that only the system has: of `oid[]`, and of the vectors, whose first item has the number 0.
use super::{Call, Entry, classes, list_of};
use crate::error::tunnel;
use crate::values::arrays::items_of;
use datafusion::arrow::array::{Array, ArrayRef, Int32Array, Int32Builder, ListBuilder, UInt32Array, cast::AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, UInt32Type};
use datafusion::error::Result;
use std::sync::Arc;
use terrace_engine::EngineError;

pub(super) fn entries() -> Vec<Entry> {
    use DataType::{Int32, UInt32, Utf8};
    vec![
        ("pg_subscripts", list_of(Int32), |c| Ok(subscripts(c, 1))),
        ("pg_vector_subscripts", list_of(Int32), |c| Ok(subscripts(c, 0))),
        ("pg_vector_lower", Int32, |c| bounds(c, |_| 0)),
        ("pg_vector_upper", Int32, |c| bounds(c, |items| items as i32 - 1)),
        ("pg_vector_item", UInt32, items),
        ("oidvectortypes", Utf8, |c| c.texts(types)),
    ]
}

/// The numbers of the items of the lists that are the first argument.
fn subscripts(c: &Call<'_>, first: i32) -> ArrayRef {
    let mut lists = ListBuilder::new(Int32Builder::new());
    for row in 0..c.rows {
        let items = c.list(0, row).map_or(0, |items| items.len() as i32);
        (first..first + items).for_each(|at| lists.values().append_value(at));
        lists.append(true);
    }
    Arc::new(lists.finish())
}

/// A bound of each of the vectors that are the first argument, by how many items it has; NULL of another dimension than
/// the first.
fn bounds(c: &Call<'_>, of: impl Fn(usize) -> i32) -> Result<ArrayRef> {
    let bound = |row| -> Result<Option<i32>> {
        let is_first = c.int(1, row)? == Some(1);
        Ok(c.list(0, row).filter(|_| is_first).map(|items| of(items.len())))
    };
    Ok(Arc::new(Int32Array::from((0..c.rows).map(bound).collect::<Result<Vec<_>>>()?)))
}

/// The items of oidvectors by their numbers.
fn items(c: &Call<'_>) -> Result<ArrayRef> {
    let item = |row| -> Result<Option<u32>> {
        let (Some(items), Some(at)) = (c.list(0, row), c.int(1, row)?) else { return Ok(None) };
        let items = cast(&items, &DataType::UInt32)?;
        let items = items.as_primitive::<UInt32Type>();
        Ok(usize::try_from(at).ok().filter(|at| *at < items.len()).map(|at| items.value(at)))
    };
    Ok(Arc::new(UInt32Array::from((0..c.rows).map(item).collect::<Result<Vec<_>>>()?)))
}

/// The names of the types whose OIDs a vector has: `text, integer`.
fn types(c: &Call<'_>, row: usize) -> Result<Option<String>> {
    if !c.arguments.first().and_then(|lists| items_of(lists.data_type())).is_some_and(|of| of.data_type().is_integer())
    {
        return Err(tunnel(EngineError::unsupported("oidvectortypes of anything but an oidvector")));
    }
    let Some(items) = c.list(0, row) else { return Ok(None) };
    let items = cast(&items, &DataType::UInt32)?;
    let names =
        items.as_primitive::<UInt32Type>().iter().flatten().map(|oid| classes::format_type(c.catalog, oid, None));
    Ok(Some(names.collect::<Vec<String>>().join(", ")))
}
