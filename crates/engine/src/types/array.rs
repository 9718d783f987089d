//! Arrays: values of any type that is no array itself, in up to six dimensions ([`Shape`]).
//!
//! 1. An array's bytes (*format*) say of which type its items are, and so they can be read without the column:
//!
//! ```text
//! | 1: u8 | items' type: u32 oid | u32 length | n: u32 | null bitmap, (n+7)/8 bytes | the items that are not NULL |
//! | 2: u8 | the same up to n     | d: u8 | d times: u32 items, i32 number of the first | null bitmap | items as above |
//! ```
//!
//!    Bit `i % 8` of bitmap byte `i / 8` set: item `i` is NULL. An item of a fixed width is as in a row
//!    (`crate::row`), any other is `u32` length and its bytes. Little-endian. The first form is of one dimension that
//!    begins with number 1, and of no items; the second of all else: so an array has one form. Items are in the order
//!    in which the last subscript changes fastest.
//! 2. Order: item by item, NULL above all values, then fewer items first, then fewer dimensions, then these dimensions
//!    one by one, then the numbers of their first items.
//! 3. The length of an enum, or of a composite type, has the number of a definition, which holds as long as the process
//!    lives. In what was stored it means nothing: the column's counts.
//! 4. The text of an array is PostgreSQL's: `{1,"b c",NULL}`.
//!
//! Source: PostgreSQL 15 documentation, "Arrays" (8.15).
use super::{CompositeType, DataType, Datum, DatumRef, EnumType, composites, decimal};
use crate::error::{EngineError, Result};
use crate::row::{fixed_value, fixed_width, put_fixed};
use std::cmp::Ordering;
use std::fmt;
use terrace_storage::FIRST_OBJECT;

mod read;
mod shape;
#[cfg(test)]
mod tests;

pub use read::{items as read_items, read};
pub use shape::{Dimension, MOST_DIMENSIONS, Shape};

/// The type of an array's items.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Items {
    oid: u32,
    /// Of a type that users make: the number of its definition, with [`COMPOSITE`] where it is one of a composite type.
    length: u32,
}

/// Numbers of enums and of composite types are not told apart otherwise: two databases of a process may have an enum
/// and a composite type with the same OID, and the same number.
const COMPOSITE: u32 = 1 << 31;

/// Of each type: its OID, and OID and name of its arrays.
const TYPES: [(u32, u32, &str); 19] = [
    (16, 1000, "boolean[]"),
    (17, 1001, "bytea[]"),
    (20, 1016, "bigint[]"),
    (21, 1005, "smallint[]"),
    (23, 1007, "integer[]"),
    (25, 1009, "text[]"),
    (114, 199, "json[]"),
    (700, 1021, "real[]"),
    (701, 1022, "double precision[]"),
    (1042, 1014, "character[]"),
    (1043, 1015, "character varying[]"),
    (1082, 1182, "date[]"),
    (1083, 1183, "time without time zone[]"),
    (1114, 1115, "timestamp without time zone[]"),
    (1184, 1185, "timestamp with time zone[]"),
    (1186, 1187, "interval[]"),
    (1700, 1231, "numeric[]"),
    (2950, 2951, "uuid[]"),
    (3802, 3807, "jsonb[]"),
];

impl Items {
    /// `None`: the type is an array itself.
    pub fn of(item: DataType) -> Option<Items> {
        match item {
            DataType::Array(_) => None,
            DataType::Enum(of) => Some(Items { oid: of.def().oid, length: of.number() }),
            DataType::Composite(of) => Some(Items { oid: of.def().oid, length: of.number() | COMPOSITE }),
            item => Some(Items { oid: item.pg_oid(), length: item.length() }),
        }
    }

    /// Those of the array type of this OID.
    pub(super) fn of_array(oid: u32, length: u32) -> Option<Items> {
        let (oid, ..) = TYPES.iter().find(|(_, array, _)| *array == oid)?;
        DataType::from_pg_oid(*oid, length).and_then(Items::of)
    }

    pub fn get(self) -> DataType {
        let known = match (self.is_own(), self.length & COMPOSITE) {
            (false, _) => DataType::from_pg_oid(self.oid, self.length),
            (true, 0) => EnumType::of_items(self.oid, self.length),
            (true, _) => CompositeType::of_items(self.oid, self.length()),
        };
        known.expect("it was made of a type that is no array")
    }

    /// Oids below are PostgreSQL's own.
    fn is_own(self) -> bool {
        self.oid >= FIRST_OBJECT
    }

    fn known(self) -> (u32, &'static str) {
        let known = TYPES.iter().find(|(item, ..)| *item == self.oid).map(|(_, array, name)| (*array, *name));
        known.unwrap_or_else(|| match self.get() {
            DataType::Enum(of) => (of.def().array, of.array_name()),
            DataType::Composite(of) => (of.def().array, of.array_name()),
            other => unreachable!("arrays of {other} have a line in the table"),
        })
    }

    pub(super) fn array_oid(self) -> u32 {
        self.known().0
    }

    pub(super) fn length(self) -> u32 {
        if self.is_own() { self.length & !COMPOSITE } else { self.length }
    }

    pub(super) fn array_name(self) -> &'static str {
        self.known().1
    }
}

/// Of what has a shape that is plain; and of what has another.
const VERSION: u8 = 1;
const SHAPED: u8 = 2;
const HEAD: usize = 13;

/// An array as a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Array(Box<[u8]>);

/// An array within a row's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayView<'a>(&'a [u8], Items);

impl Array {
    /// Of one dimension that begins with 1. The items are of this type (42804), lengths, precision and scale included.
    pub fn new(items: Items, values: &[Datum]) -> Result<Array> {
        Array::shaped(items, &Shape::plain(values.len())?, values)
    }

    /// The same of any shape, which is of so many items.
    pub fn shaped(items: Items, shape: &Shape, values: &[Datum]) -> Result<Array> {
        if shape.items() != values.len() {
            return Err(EngineError::internal(format!("{} items of an array of {}", values.len(), shape.items())));
        }
        let mut bytes = Vec::with_capacity(HEAD + values.len() * 9);
        bytes.push(if shape.is_plain() { VERSION } else { SHAPED });
        bytes.extend_from_slice(&items.oid.to_le_bytes());
        bytes.extend_from_slice(&items.length.to_le_bytes());
        bytes.extend_from_slice(&(values.len() as u32).to_le_bytes());
        if !shape.is_plain() {
            shape.write(&mut bytes);
        }
        let head = bytes.len();
        bytes.resize(head + values.len().div_ceil(8), 0);
        let of = items.get();
        for (at, value) in values.iter().enumerate() {
            of.admits(value.as_ref())?;
            match value {
                Datum::Null => bytes[head + at / 8] |= 1 << (at % 8),
                value if of.is_variable() => {
                    let own = value.variable();
                    let length = u32::try_from(own.len())
                        .map_err(|_| EngineError::new("54000", "an item of an array is longer than 4 GiB"))?;
                    bytes.extend_from_slice(&length.to_le_bytes());
                    bytes.extend_from_slice(own);
                }
                value => put_fixed(&mut bytes, value),
            }
        }
        let array = Array(bytes.into());
        debug_assert_eq!(check(&array.0, Some(items)), Ok(()), "invariant 1");
        Ok(array)
    }

    pub fn view(&self) -> ArrayView<'_> {
        ArrayView::of(&self.0)
    }

    /// Of bytes that were stored, with these items.
    pub(crate) fn of_bytes(items: Items, bytes: &[u8]) -> std::result::Result<Array, &'static str> {
        check(bytes, Some(items))?;
        Ok(ArrayView::stored(bytes, items).to_array())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Whether bytes that were read from storage are an array (invariant 1), of these items.
pub(crate) fn check(bytes: &[u8], items: Option<Items>) -> Result<(), &'static str> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    if bytes.len() < HEAD || !matches!(bytes[0], VERSION | SHAPED) {
        return Err("unknown format of an array");
    }
    let known = || DataType::from_pg_oid(word(1), word(5)).filter(|of| Items::of(*of).is_some());
    let of = items.filter(|items| items.is_own() && items.oid == word(1)).map_or_else(known, |items| Some(items.get()));
    let Some(of) = of else { return Err("an array of an unknown type") };
    let count = word(9) as usize;
    let mut head = HEAD;
    if bytes[0] == SHAPED {
        let shape = Shape::read(&bytes[HEAD..]).filter(|shape| !shape.is_plain() && shape.items() == count);
        let Some(shape) = shape else { return Err("an array's dimensions are not those of its items") };
        head += shape.width();
    }
    let mut at = head + count.div_ceil(8);
    if bytes.len() < at {
        return Err("an array is cut short");
    }
    for item in 0..count {
        if bytes[head + item / 8] & 1 << (item % 8) != 0 {
            continue;
        }
        let width = match of.is_variable() {
            true if bytes.len() - at < 4 => return Err("an array is cut short"),
            true => 4 + word(at) as usize,
            false => fixed_width(of) as usize,
        };
        let Some(own) = bytes.get(at..at + width) else { return Err("an array is cut short") };
        if of.is_utf8() && std::str::from_utf8(&own[4..]).is_err() {
            return Err("a text in an array is not UTF-8");
        }
        if of == DataType::Numeric(None) {
            decimal::check(&own[4..])?;
        }
        if let DataType::Composite(of) = of {
            composites::check(&own[4..], of)?;
        }
        at += width;
    }
    if at == bytes.len() { Ok(()) } else { Err("an array's length is wrong") }
}

impl<'a> ArrayView<'a> {
    /// Of bytes that were made here.
    pub(crate) fn of(bytes: &'a [u8]) -> ArrayView<'a> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        ArrayView(bytes, Items { oid: word(1), length: word(5) })
    }

    /// Of bytes that were stored, and checked (invariant 3).
    pub(crate) fn stored(bytes: &'a [u8], items: Items) -> ArrayView<'a> {
        if items.is_own() { ArrayView(bytes, items) } else { ArrayView::of(bytes) }
    }

    fn word(self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("4 bytes"))
    }

    pub fn items(self) -> Items {
        self.1
    }

    pub fn len(self) -> usize {
        self.word(9) as usize
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Of one dimension that begins with 1, or of no items.
    pub fn is_plain(self) -> bool {
        self.0[0] == VERSION
    }

    pub fn shape(self) -> Shape {
        match self.is_plain() {
            true => Shape::plain(self.len()).expect("invariant 1: a count was taken of an array"),
            false => Shape::read(&self.0[HEAD..]).expect("invariant 1: the bytes were made here, or checked"),
        }
    }

    /// Where the bitmap begins.
    fn head(self) -> usize {
        if self.is_plain() { HEAD } else { HEAD + Shape::width_of(self.0[HEAD]) }
    }

    /// Bytes of the whole.
    pub fn size(self) -> usize {
        self.0.len()
    }

    pub fn to_array(self) -> Array {
        let mut bytes: Box<[u8]> = self.0.into();
        bytes[5..9].copy_from_slice(&self.1.length.to_le_bytes());
        Array(bytes)
    }

    pub fn iter(self) -> impl Iterator<Item = DatumRef<'a>> {
        let of = self.items().get();
        let head = self.head();
        let mut at = head + self.len().div_ceil(8);
        let (bytes, variable) = (self.0, of.is_variable());
        (0..self.len()).map(move |item| {
            if bytes[head + item / 8] & 1 << (item % 8) != 0 {
                return DatumRef::Null;
            }
            let width = if variable { self.word(at) as usize } else { fixed_width(of) as usize };
            let begin = if variable { at + 4 } else { at };
            at = begin + width;
            let own: &'a [u8] = &bytes[begin..at];
            if variable { of.variable_value(own) } else { fixed_value(of, own) }
        })
    }

    /// An array of the same shape, of these items.
    pub fn map(self, to: Items, one: impl FnMut(DatumRef<'a>) -> Result<Datum>) -> Result<Array> {
        let values = self.iter().map(one).collect::<Result<Vec<Datum>>>()?;
        Array::shaped(to, &self.shape(), &values)
    }

    /// Invariant 2.
    pub(super) fn cmp(self, other: ArrayView<'_>) -> Ordering {
        let mut others = other.iter();
        for own in self.iter() {
            match others.next().map(|other| own.cmp_key(other)) {
                Some(Ordering::Equal) => {}
                Some(order) => return order,
                None => return Ordering::Greater,
            }
        }
        match (self.is_plain(), other.is_plain()) {
            (true, true) => self.len().cmp(&other.len()),
            _ => self.shape().cmp(&other.shape()),
        }
    }
}

/// Invariant 4.
impl fmt::Display for ArrayView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = self.items().get();
        let mut items = self.iter();
        self.shape().write_text(f, |f, _| match items.next().expect("a shape is of as many items") {
            DatumRef::Null => f.write_str("NULL"),
            item => write_item(f, &of.shown(item)),
        })
    }
}

/// An item's text as it stands within an array's.
pub fn write_item(f: &mut impl fmt::Write, item: &str) -> fmt::Result {
    let special = |c: char| "{},\"\\ \t\n\r\u{b}\u{c}".contains(c);
    if !item.is_empty() && !item.contains(special) && !item.eq_ignore_ascii_case("null") {
        return f.write_str(item);
    }
    f.write_char('"')?;
    for c in item.chars() {
        if matches!(c, '"' | '\\') {
            f.write_char('\\')?;
        }
        f.write_char(c)?;
    }
    f.write_char('"')
}

impl DataType {
    /// The type of arrays of this type; `None`: it is one itself.
    pub fn array(self) -> Option<DataType> {
        Items::of(self).map(DataType::Array)
    }

    /// The type of an array's items.
    pub fn item(self) -> Option<DataType> {
        match self {
            DataType::Array(items) => Some(items.get()),
            _ => None,
        }
    }

    /// The text of one of its values as it is shown within others: char(n) with its blanks.
    pub fn shown(self, value: DatumRef<'_>) -> String {
        match (self, value) {
            (DataType::Char(n), DatumRef::Text(text)) => {
                let missing = (n as usize).saturating_sub(text.chars().count());
                text.chars().chain(std::iter::repeat_n(' ', missing)).collect()
            }
            (_, value) => value.to_string(),
        }
    }
}
