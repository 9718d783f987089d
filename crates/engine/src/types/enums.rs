//! Enum types: names that have an order.
//!
//! 1. A definition never changes, and is kept as long as the process lives. [`EnumType`] is its number, so a column's
//!    type is copied like any other. Equal definitions have one number. A type that is altered gets another definition
//!    with the same oid; all columns of a catalogue have the same one.
//! 2. A value is the position of its label. Positions are the order, no two labels have the same, and a label keeps its
//!    own: so a new or a renamed label changes no value that is stored. Labels do not go.
//! 3. Positions are PostgreSQL's `enumsortorder`, with 32 bits behind the point: 1, 2, 3 at first. A label that is
//!    added between two gets the position in the middle, one before the first or behind the last is 1 away from it.
//! 4. A label that a transaction has added is no value before that transaction has ended ([`NewLabel`]): who reads it
//!    gets 55P04, as in PostgreSQL. Nobody else sees it until then.
//!
//! Source: PostgreSQL 15 documentation, "Enumerated Types" (8.7) and "pg_enum" (53.20), ALTER TYPE (Notes).
use super::DataType;
#[cfg(test)]
use super::Datum;
use crate::error::{EngineError, Result};
use parking_lot::RwLock;

/// The whole part of a position begins here.
const POINT: u32 = 32;
/// Bytes of a label, as in PostgreSQL.
const LONGEST: usize = 63;

/// The number of a definition (invariant 1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct EnumType(u32);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumDef {
    pub oid: u32,
    /// The oid of the type of its arrays.
    pub array: u32,
    pub name: String,
    /// The name as SQL has it, and that of the type of its arrays; and what the catalogue calls that.
    shown: [String; 3],
    /// In order.
    labels: Vec<Label>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub oid: u32,
    pub position: i64,
    pub name: String,
}

/// Where a label is added.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    Last,
    Before(&'a str),
    After(&'a str),
}

/// The types and the labels, by their oids, that open transactions have added (invariant 4).
static NEW: RwLock<Vec<(u32, u32)>> = RwLock::new(Vec::new());

/// A label that a transaction has added; dropped when that transaction ends.
#[derive(Debug)]
pub(crate) struct NewLabel(u32, u32);

impl NewLabel {
    pub(crate) fn new(of: u32, label: u32) -> NewLabel {
        NEW.write().push((of, label));
        NewLabel(of, label)
    }
}

impl Drop for NewLabel {
    fn drop(&mut self) {
        let mut new = NEW.write();
        if let Some(at) = new.iter().position(|one| *one == (self.0, self.1)) {
            new.swap_remove(at);
        }
    }
}

static KNOWN: RwLock<Vec<&'static EnumDef>> = RwLock::new(Vec::new());

impl EnumType {
    /// Definitions that there may be while the process lives: what stands for an enum in a query has room for so many
    /// numbers.
    pub const MOST: u32 = 9_440;

    /// The number of a definition. 54000 where there are no more numbers.
    pub fn of(def: EnumDef) -> Result<EnumType> {
        let mut known = KNOWN.write();
        if let Some(at) = known.iter().position(|other| **other == def) {
            return Ok(EnumType(at as u32));
        }
        let number = known.len() as u32;
        if number >= EnumType::MOST {
            return Err(no_number(EnumType::MOST, "enum"));
        }
        known.push(Box::leak(Box::new(def)));
        Ok(EnumType(number))
    }

    pub fn number(self) -> u32 {
        self.0
    }

    /// The definition of a number that [`EnumType::number`] gave.
    pub fn from_number(number: u32) -> Option<EnumType> {
        KNOWN.read().get(number as usize).map(|_| EnumType(number))
    }

    pub fn def(self) -> &'static EnumDef {
        KNOWN.read()[self.0 as usize]
    }

    /// Whether both are definitions of one type.
    pub fn is_same(self, other: EnumType) -> bool {
        self == other || self.def().oid == other.def().oid
    }

    /// The label of a value.
    pub fn shown(self, position: i64) -> &'static str {
        if let Some(label) = self.def().at(position) {
            return &label.name;
        }
        // A statement that began before the label was added may meet it.
        let oid = self.def().oid;
        let newer = KNOWN.read().iter().rev().filter(|def| def.oid == oid).find_map(|def| def.at(position));
        newer.map_or("?", |label| &label.name)
    }

    /// The position of a label. 22P02 where the type has no such label.
    pub(crate) fn parse(self, text: &str) -> Result<i64> {
        let label = self.def().label(text).ok_or_else(|| {
            EngineError::new("22P02", format!("invalid input value for enum {}: \"{text}\"", self.name()))
        })?;
        self.check(label)?;
        Ok(label.position)
    }

    /// 55P04 of a label that is no value yet (invariant 4).
    pub fn check(self, label: &Label) -> Result<()> {
        if !NEW.read().contains(&(self.def().oid, label.oid)) {
            return Ok(());
        }
        let (label, name) = (&label.name, self.name());
        let error = EngineError::new("55P04", format!("unsafe use of new value \"{label}\" of enum type {name}"));
        Err(error.with_hint("New enum values must be committed before they can be used."))
    }
}

impl EnumDef {
    /// 42602 where a text is no label, 42710 where one stands twice. `oids`: one for each label.
    pub fn new(oid: u32, array: u32, name: &str, labels: &[String], oids: &[u32]) -> Result<EnumDef> {
        assert_eq!(labels.len(), oids.len(), "each label has an oid");
        let mut made = EnumDef::of_labels(oid, array, name, vec![]);
        for (at, (label, oid)) in labels.iter().zip(oids).enumerate() {
            check_label(label)?;
            if made.label(label).is_some() {
                let message = "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"";
                let detail = format!("Key (enumtypid, enumlabel)=({}, {label}) already exists.", made.oid);
                return Err(EngineError::new("23505", message).with_detail(detail));
            }
            made.labels.push(Label { oid: *oid, position: (at as i64 + 1) << POINT, name: label.clone() });
        }
        Ok(made)
    }

    /// Of labels that are in order.
    pub(crate) fn of_labels(oid: u32, array: u32, name: &str, labels: Vec<Label>) -> EnumDef {
        EnumDef { oid, array, name: name.into(), shown: names_of(name), labels }
    }

    /// What the catalogue calls the type of its arrays.
    pub fn name_of_arrays(&self) -> &str {
        &self.shown[2]
    }

    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    pub fn label(&self, name: &str) -> Option<&Label> {
        self.labels.iter().find(|label| label.name == name)
    }

    fn at(&self, position: i64) -> Option<&Label> {
        self.labels.binary_search_by_key(&position, |label| label.position).ok().map(|at| &self.labels[at])
    }

    /// The same with a label more (invariant 3). 22023 where its neighbour is no label, 42710 where it is there.
    pub fn with_label(&self, name: &str, place: Place<'_>, oid: u32) -> Result<EnumDef> {
        check_label(name)?;
        if self.label(name).is_some() {
            return Err(EngineError::new("42710", format!("enum label \"{name}\" already exists")));
        }
        let find = |neighbour: &str| {
            let found = self.labels.iter().position(|label| label.name == neighbour);
            found.ok_or_else(|| no_label(neighbour))
        };
        let at = match place {
            Place::Last => self.labels.len(),
            Place::Before(neighbour) => find(neighbour)?,
            Place::After(neighbour) => find(neighbour)? + 1,
        };
        let position = |at: usize| self.labels.get(at).map(|label| label.position);
        let (before, behind) = (at.checked_sub(1).and_then(position), position(at));
        let position = match (before, behind) {
            (None, None) => Some(1 << POINT),
            (Some(before), None) => before.checked_add(1 << POINT),
            (None, Some(behind)) => behind.checked_sub(1 << POINT),
            (Some(before), Some(behind)) => Some(before + (behind - before) / 2).filter(|middle| *middle != before),
        };
        let position = position.ok_or_else(|| {
            let message = format!("there is no room for another label of enum {} at this place", self.name);
            let hint = "Make a new type with all labels, and give the columns that type.";
            EngineError::unsupported(message).with_hint(hint)
        })?;
        let mut made = self.clone();
        made.labels.insert(at, Label { oid, position, name: name.into() });
        Ok(made)
    }

    /// The same with another name of a label. 22023 where there is none, 42710 where the new one is there.
    pub fn with_renamed(&self, from: &str, to: &str) -> Result<EnumDef> {
        check_label(to)?;
        let at = self.labels.iter().position(|label| label.name == from).ok_or_else(|| no_label(from))?;
        if self.label(to).is_some() {
            return Err(EngineError::new("42710", format!("enum label \"{to}\" already exists")));
        }
        let mut made = self.clone();
        made.labels[at].name = to.into();
        Ok(made)
    }

    /// The same with another name.
    pub fn renamed(&self, name: &str) -> EnumDef {
        EnumDef::of_labels(self.oid, self.array, name, self.labels.clone())
    }
}

/// A type's name as SQL has it, and that of the type of its arrays; and what the catalogue calls that.
pub(super) fn names_of(name: &str) -> [String; 3] {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '$');
    let is_word = name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit() || c == '$');
    let shown = if is_word { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) };
    let array_name = format!("{shown}[]");
    let of_arrays = format!("_{}", &name[..name.floor_char_boundary(LONGEST - 1)]);
    [shown, array_name, of_arrays]
}

/// 54000
pub(super) fn no_number(most: u32, kind: &str) -> EngineError {
    let message = format!("more than {most} definitions of {kind} types since the server's start");
    EngineError::new("54000", message).with_hint("Restart the server.")
}

fn no_label(name: &str) -> EngineError {
    EngineError::new("22023", format!("\"{name}\" is not an existing enum label"))
}

fn check_label(name: &str) -> Result<()> {
    if name.len() <= LONGEST {
        return Ok(());
    }
    let error = EngineError::new("42602", format!("invalid enum label \"{name}\""));
    Err(error.with_detail(format!("Labels must be {LONGEST} bytes or less.")))
}

impl EnumType {
    pub(super) fn name(self) -> &'static str {
        &self.def().shown[0]
    }

    pub(super) fn array_name(self) -> &'static str {
        &self.def().shown[1]
    }

    /// Those of a type of this oid and of a number, as `Items` of arrays keep them.
    pub(super) fn of_items(oid: u32, number: u32) -> Option<DataType> {
        let found = EnumType::from_number(number)?;
        (found.def().oid == oid).then_some(DataType::Enum(found))
    }
}

#[cfg(test)]
mod tests;
