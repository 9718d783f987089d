//! Arrays in Arrow.
//!
//! 1. Arrow's lists have no place for dimensions, and a column is of one type whatever shapes its arrays have. So an
//!    array is a pair: the list of its items, flat, and its shape (the bytes of [`Shape::write`]), which is NULL where
//!    the list says all: of one dimension that begins with number 1. A column of such arrays has a list, which is read
//!    as one, and beside it shapes that are all NULL.
//! 2. A pair, and not a list whose items have the shape beside them: what reads items has them as plain columns, and
//!    an item does not pay for the shape of its array. And not a list that hides the shape among its items: what does
//!    not know arrays must fail, and not answer wrongly.
//! 3. Lists without shapes are arrays, too: those of the system's relations, and those that aggregates gather. What
//!    reads arrays takes both; what makes them makes pairs.
//! 4. The names of a pair's fields are none that a user's record could have.
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, ListArray, StructArray, new_null_array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Fields};
use datafusion::common::ScalarValue;
use std::sync::Arc;
use terrace_engine::types::Shape;

const ITEMS: &str = "\0items";
const SHAPE: &str = "\0shape";

/// The type of arrays of such items.
pub(crate) fn type_of(item: ArrowType) -> ArrowType {
    ArrowType::Struct(fields(item))
}

fn fields(item: ArrowType) -> Fields {
    let items = Field::new(ITEMS, ArrowType::new_list(item, true), true);
    [items, Field::new(SHAPE, ArrowType::Binary, true)].into_iter().collect()
}

/// The field of the items of an array, or of a list; `None`: it is neither.
pub fn items_of(of: &ArrowType) -> Option<&FieldRef> {
    let list = match of {
        ArrowType::Struct(fields) => fields.first().filter(|field| field.name() == ITEMS)?.data_type(),
        list => list,
    };
    match list {
        ArrowType::List(item) => Some(item),
        _ => None,
    }
}

/// Whether it is a type of arrays (invariant 3).
pub(crate) fn is_array(of: &ArrowType) -> bool {
    items_of(of).is_some()
}

/// The fields of a type of rows; `None`: it is none.
pub(crate) fn row_fields(of: &ArrowType) -> Option<&Fields> {
    match of {
        ArrowType::Struct(fields) if !is_array(of) => Some(fields),
        _ => None,
    }
}

/// Whether it is a type of rows.
pub(crate) fn is_row(of: &ArrowType) -> bool {
    row_fields(of).is_some()
}

/// A column of arrays, in either form.
pub struct Arrays {
    lists: ListArray,
    shapes: Option<BinaryArray>,
}

impl Arrays {
    /// `None`: it is another column.
    pub fn of(array: &dyn Array) -> Option<Arrays> {
        items_of(array.data_type())?;
        let Some(pairs) = array.as_struct_opt() else {
            return Some(Arrays { lists: array.as_list().clone(), shapes: None });
        };
        let lists = pairs.column(0).as_list::<i32>();
        let nulls = NullBuffer::union(pairs.nulls(), lists.nulls());
        let ArrowType::List(item) = lists.data_type() else { return None };
        let lists = ListArray::new(item.clone(), lists.offsets().clone(), lists.values().clone(), nulls);
        let shapes = pairs.column(1).as_binary::<i32>();
        Some(Arrays { lists, shapes: (shapes.null_count() < shapes.len()).then(|| shapes.clone()) })
    }

    /// Of a constant.
    pub(crate) fn of_scalar(scalar: &ScalarValue) -> Option<Arrays> {
        match scalar {
            ScalarValue::List(list) => Arrays::of(list.as_ref()),
            ScalarValue::Struct(pair) => Arrays::of(pair.as_ref()),
            _ => None,
        }
    }

    /// The items, flat, whatever the shapes are.
    pub fn lists(&self) -> &ListArray {
        &self.lists
    }

    /// The same arrays of other items, which stand in the places of these.
    pub(crate) fn with_items(&self, items: ArrayRef) -> ArrayRef {
        let of = items.data_type().clone();
        let (_, offsets, _, nulls) = self.lists.clone().into_parts();
        let field = Arc::new(Field::new_list_field(of.clone(), true));
        let lists = ListArray::new(field, offsets, items, nulls.clone());
        let none = || new_null_array(&ArrowType::Binary, self.lists.len());
        let shapes = self.shapes.clone().map_or_else(none, |shapes| Arc::new(shapes));
        Arc::new(StructArray::new(fields(of), vec![Arc::new(lists), shapes], nulls))
    }

    pub fn is_plain(&self, row: usize) -> bool {
        self.shapes.as_ref().is_none_or(|shapes| shapes.is_null(row))
    }

    /// Of a row that is not NULL.
    pub fn shape(&self, row: usize) -> Shape {
        let shaped = self.shapes.as_ref().filter(|shapes| shapes.is_valid(row));
        let shape = shaped.and_then(|shapes| Shape::read(shapes.value(row)));
        let plain = || Shape::plain(self.lists.value_length(row) as usize).expect("an array has no more items");
        shape.unwrap_or_else(plain)
    }
}

/// Lists as arrays (invariant 3).
pub(crate) fn of_lists(lists: &ListArray) -> ArrayRef {
    let shapes = new_null_array(&ArrowType::Binary, lists.len());
    let item = Field::new_list_field(lists.value_type(), true);
    let (_, offsets, values, nulls) = lists.clone().into_parts();
    let lists = ListArray::new(Arc::new(item), offsets, values, nulls.clone());
    Arc::new(StructArray::new(fields(lists.value_type()), vec![Arc::new(lists), shapes], nulls))
}

/// Arrays of these items, one behind another; `None`: NULL.
pub(crate) fn made(values: ArrayRef, shapes: impl IntoIterator<Item = Option<Shape>>) -> ArrayRef {
    let (mut lengths, mut valid, mut told) = (vec![], vec![], BinaryBuilder::new());
    for shape in shapes {
        valid.push(shape.is_some());
        lengths.push(shape.map_or(0, |shape| shape.items()));
        match shape.filter(|shape| !shape.is_plain()) {
            Some(shape) => {
                let mut bytes = vec![];
                shape.write(&mut bytes);
                told.append_value(bytes);
            }
            None => told.append_null(),
        }
    }
    let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
    let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
    let fields = fields(values.data_type().clone());
    let lists = ListArray::new(item, offsets, values, nulls.clone());
    Arc::new(StructArray::new(fields, vec![Arc::new(lists), Arc::new(told.finish())], nulls))
}
