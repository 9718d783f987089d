//! Composite types: rows whose attributes have names.
//!
//! 1. A definition is one as of [`super::enums`]: it never changes, has a number as long as the process lives, and one
//!    that is altered becomes another with the same oid.
//! 2. A value's bytes (*format*) are read by the definition alone: they name no type, and so hold no number either.
//!
//! ```text
//! | 1: u8 | n: u16 attributes | null bitmap, (n+7)/8 bytes | each value that is not NULL: u32 length, its bytes |
//! ```
//!
//!    Bit `i % 8` of bitmap byte `i / 8` set: attribute `i` is NULL. A value of a fixed width is as in a row
//!    (`crate::row`). Little-endian.
//! 3. Attributes are only added at the end, and a dropped one keeps its place. So a value that was written before an
//!    attribute was added is shorter (the attribute is NULL), what it has of one that was dropped is skipped, and what
//!    is behind the attributes that a definition knows does not concern it.
//! 4. Order: attribute by attribute, NULL above all values.
//! 5. The text is PostgreSQL's: `(1,"b c",)`.
//!
//! Source: PostgreSQL 15 documentation, "Composite Types" (8.16).
use super::enums::{names_of, no_number};
use super::{DataType, Datum, DatumRef, array, decimal};
use crate::error::{EngineError, Result};
use crate::row::{fixed_value, fixed_width, put_fixed};
use parking_lot::RwLock;
use std::cmp::Ordering;
use std::fmt;

mod read;
#[cfg(test)]
mod tests;

pub use read::fields as read_fields;

/// The number of a definition (invariant 1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct CompositeType(u32);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompositeDef {
    pub oid: u32,
    /// The oid of the type of its arrays.
    pub array: u32,
    /// The oid that it has among relations.
    pub class: u32,
    pub name: String,
    /// As `EnumDef` has them.
    shown: [String; 3],
    /// Those that were dropped, too (invariant 3).
    attributes: Vec<Attribute>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Empty: it was dropped.
    pub name: String,
    pub data_type: DataType,
}

impl Attribute {
    pub fn is_dropped(&self) -> bool {
        self.name.is_empty()
    }
}

/// Attributes of a type, those that were dropped included: a table has as many columns.
pub const MOST_ATTRIBUTES: usize = crate::catalog::MAX_COLUMNS;

static KNOWN: RwLock<Vec<&'static CompositeDef>> = RwLock::new(Vec::new());

impl CompositeType {
    /// Definitions that there may be while the process lives.
    pub const MOST: u32 = 100_000;

    /// The number of a definition. 54000 where there are no more numbers.
    pub fn of(def: CompositeDef) -> Result<CompositeType> {
        let mut known = KNOWN.write();
        if let Some(at) = known.iter().position(|other| **other == def) {
            return Ok(CompositeType(at as u32));
        }
        let number = known.len() as u32;
        if number >= CompositeType::MOST {
            return Err(no_number(CompositeType::MOST, "composite"));
        }
        known.push(Box::leak(Box::new(def)));
        Ok(CompositeType(number))
    }

    pub fn number(self) -> u32 {
        self.0
    }

    /// The definition of a number that [`CompositeType::number`] gave.
    pub fn from_number(number: u32) -> Option<CompositeType> {
        KNOWN.read().get(number as usize).map(|_| CompositeType(number))
    }

    pub fn def(self) -> &'static CompositeDef {
        KNOWN.read()[self.0 as usize]
    }

    /// Whether both are definitions of one type.
    pub fn is_same(self, other: CompositeType) -> bool {
        self == other || self.def().oid == other.def().oid
    }

    pub(super) fn name(self) -> &'static str {
        &self.def().shown[0]
    }

    pub(super) fn array_name(self) -> &'static str {
        &self.def().shown[1]
    }

    /// That of a type of this oid and of a number, as `Items` of arrays keep them.
    pub(super) fn of_items(oid: u32, number: u32) -> Option<DataType> {
        let found = CompositeType::from_number(number)?;
        (found.def().oid == oid).then_some(DataType::Composite(found))
    }
}

impl CompositeDef {
    /// 42701 where a name stands twice, 54011 where there are too many attributes.
    pub fn new(
        [oid, array, class]: [u32; 3],
        name: &str,
        attributes: impl IntoIterator<Item = Attribute>,
    ) -> Result<CompositeDef> {
        let mut made = CompositeDef { oid, array, class, name: name.into(), shown: names_of(name), attributes: vec![] };
        for attribute in attributes {
            made.attributes.push(attribute);
        }
        made.checked()
    }

    fn checked(self) -> Result<CompositeDef> {
        if self.attributes.len() > MOST_ATTRIBUTES {
            return Err(EngineError::new("54011", format!("tables can have at most {MOST_ATTRIBUTES} columns")));
        }
        for (at, attribute) in self.attributes.iter().enumerate().filter(|(_, attribute)| !attribute.is_dropped()) {
            if self.attributes[..at].iter().any(|other| other.name == attribute.name) {
                let message = format!("column \"{}\" specified more than once", attribute.name);
                return Err(EngineError::new("42701", message));
            }
        }
        Ok(self)
    }

    /// What the catalogue calls the type of its arrays.
    pub fn name_of_arrays(&self) -> &str {
        &self.shown[2]
    }

    /// Those that were dropped, too (invariant 3).
    pub fn all(&self) -> &[Attribute] {
        &self.attributes
    }

    /// Those that values have.
    pub fn attributes(&self) -> impl Iterator<Item = &Attribute> {
        self.attributes.iter().filter(|attribute| !attribute.is_dropped())
    }

    /// The attribute of a name, and its place among those that values have.
    pub fn attribute(&self, name: &str) -> Option<(usize, &Attribute)> {
        self.attributes().enumerate().find(|(_, attribute)| attribute.name == name)
    }

    /// The same with another name.
    pub fn renamed(&self, name: &str) -> CompositeDef {
        CompositeDef { name: name.into(), shown: names_of(name), ..self.clone() }
    }

    /// The same with other attributes. As [`CompositeDef::new`].
    pub fn with(&self, attributes: Vec<Attribute>) -> Result<CompositeDef> {
        CompositeDef { attributes, ..self.clone() }.checked()
    }
}

const VERSION: u8 = 1;
const HEAD: usize = 3;

/// A row as a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    of: CompositeType,
    bytes: Box<[u8]>,
}

/// The same within a row's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordView<'a> {
    of: CompositeType,
    bytes: &'a [u8],
}

impl Record {
    /// A value for each attribute that is not dropped, of its type (42804).
    pub fn new(of: CompositeType, values: &[Datum]) -> Result<Record> {
        let all = of.def().all();
        let mut bytes = Vec::with_capacity(HEAD + all.len() * 13);
        bytes.push(VERSION);
        bytes.extend_from_slice(&(all.len() as u16).to_le_bytes());
        bytes.resize(HEAD + all.len().div_ceil(8), 0);
        let mut values = values.iter();
        for (at, attribute) in all.iter().enumerate() {
            let value = if attribute.is_dropped() { Some(&Datum::Null) } else { values.next() };
            let value = value.ok_or_else(|| EngineError::internal("a row has a value for each attribute"))?;
            attribute.data_type.admits(value.as_ref())?;
            if value.is_null() {
                bytes[HEAD + at / 8] |= 1 << (at % 8);
                continue;
            }
            let begin = bytes.len();
            bytes.extend_from_slice(&[0; 4]);
            match attribute.data_type.is_variable() {
                true => bytes.extend_from_slice(value.variable()),
                false => put_fixed(&mut bytes, value),
            }
            let length = u32::try_from(bytes.len() - begin - 4)
                .map_err(|_| EngineError::new("54000", "an attribute of a row is longer than 4 GiB"))?;
            bytes[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
        }
        if values.next().is_some() {
            return Err(EngineError::internal("a row has no value but those of its attributes"));
        }
        debug_assert_eq!(check(&bytes, of), Ok(()), "invariant 2");
        Ok(Record { of, bytes: bytes.into() })
    }

    /// Of bytes that were made here, of this type.
    pub(crate) fn of_bytes(of: CompositeType, bytes: &[u8]) -> std::result::Result<Record, &'static str> {
        check(bytes, of)?;
        Ok(Record { of, bytes: bytes.into() })
    }

    pub fn view(&self) -> RecordView<'_> {
        RecordView { of: self.of, bytes: &self.bytes }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same value by another definition of its type.
    pub fn renewed(self, of: CompositeType) -> Record {
        Record { of, ..self }
    }
}

/// Whether bytes that were read from storage are a value of a type (invariant 2).
pub(crate) fn check(bytes: &[u8], of: CompositeType) -> std::result::Result<(), &'static str> {
    if bytes.len() < HEAD || bytes[0] != VERSION {
        return Err("unknown format of a row");
    }
    let count = usize::from(u16::from_le_bytes([bytes[1], bytes[2]]));
    let mut at = HEAD + count.div_ceil(8);
    if bytes.len() < at {
        return Err("a row is cut short");
    }
    let all = of.def().all();
    for number in 0..count {
        if bytes[HEAD + number / 8] & 1 << (number % 8) != 0 {
            continue;
        }
        let Some(length) = bytes.get(at..at + 4) else { return Err("a row is cut short") };
        let length = u32::from_le_bytes(length.try_into().expect("4 bytes")) as usize;
        let Some(own) = bytes.get(at + 4..at + 4 + length) else { return Err("a row is cut short") };
        at += 4 + length;
        let Some(attribute) = all.get(number).filter(|attribute| !attribute.is_dropped()) else { continue };
        check_value(own, attribute.data_type)?;
    }
    if at == bytes.len() { Ok(()) } else { Err("a row's length is wrong") }
}

fn check_value(bytes: &[u8], of: DataType) -> std::result::Result<(), &'static str> {
    match of {
        DataType::Array(items) => array::check(bytes, Some(items)),
        DataType::Composite(of) => check(bytes, of),
        DataType::Numeric(None) => decimal::check(bytes),
        of if of.is_utf8() => std::str::from_utf8(bytes).map(drop).map_err(|_| "a text in a row is not UTF-8"),
        of if !of.is_variable() && bytes.len() != fixed_width(of) as usize => Err("a value in a row is cut short"),
        _ => Ok(()),
    }
}

impl<'a> RecordView<'a> {
    /// Of bytes that were stored, and checked.
    pub(crate) fn stored(bytes: &'a [u8], of: CompositeType) -> RecordView<'a> {
        RecordView { of, bytes }
    }

    pub fn of(self) -> CompositeType {
        self.of
    }

    pub fn to_record(self) -> Record {
        Record { of: self.of, bytes: self.bytes.into() }
    }

    /// The values of the attributes that are not dropped.
    pub fn values(self) -> impl Iterator<Item = DatumRef<'a>> {
        let bytes = self.bytes;
        let count = usize::from(u16::from_le_bytes([bytes[1], bytes[2]]));
        let mut at = HEAD + count.div_ceil(8);
        self.of.def().all().iter().enumerate().filter_map(move |(number, attribute)| {
            let mut value = DatumRef::Null;
            if number < count && bytes[HEAD + number / 8] & 1 << (number % 8) == 0 {
                let length = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes")) as usize;
                let own: &'a [u8] = &bytes[at + 4..at + 4 + length];
                at += 4 + length;
                value = match attribute.data_type {
                    _ if attribute.is_dropped() => DatumRef::Null,
                    of if of.is_variable() => of.variable_value(own),
                    of => fixed_value(of, own),
                };
            }
            (!attribute.is_dropped()).then_some(value)
        })
    }

    /// Invariant 4.
    pub(super) fn cmp(self, other: RecordView<'_>) -> Ordering {
        let unequal = self.values().zip(other.values()).map(|(own, other)| own.cmp_key(other));
        unequal.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

/// Invariant 5.
impl fmt::Display for RecordView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (at, (value, attribute)) in self.values().zip(self.of.def().attributes()).enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            if !value.is_null() {
                write_field(f, &attribute.data_type.shown(value))?;
            }
        }
        f.write_str(")")
    }
}

/// A field's text as it stands within a row's.
pub fn write_field(f: &mut impl fmt::Write, field: &str) -> fmt::Result {
    let special = |c: char| matches!(c, '"' | '\\' | '(' | ')' | ',' | ' ' | '\t'..='\r');
    if !field.is_empty() && !field.contains(special) {
        return f.write_str(field);
    }
    f.write_char('"')?;
    for c in field.chars() {
        if matches!(c, '"' | '\\') {
            f.write_char(c)?;
        }
        f.write_char(c)?;
    }
    f.write_char('"')
}
