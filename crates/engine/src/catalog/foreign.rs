//! Foreign keys: their definition, and their rows in a system table (*format*).
//!
//! | table | columns |
//! |---|---|
//! | 5 foreign_keys | oid, name, table, columns (positions, "0,2"), referenced (table), key (positions there), index (there), on_delete, on_update (a: no action, r: restrict, c: cascade, n: set null, d: set default), set (positions), match_full, deferrable, deferred, validated |
//!
//! 1. `columns[i]` refers to `key[i]`. The columns of `key` are those of `index`, which is unique, in any order.
//! 2. A table names the keys that it has, and those that refer to it ([`Table::foreign_keys`],
//!    [`Table::referenced_by`]). The second follow from the first: `Catalog::of` enters them.
//! 3. A database of before has no rows here: it has no foreign keys.
use super::system::{bad, object, positions, positions_text};
use super::{Catalog, ColumnDef, Table};
use crate::error::{EngineError, Result};
use crate::types::{DataType, Datum, Decimal, MAX_PRECISION, Numeric, power_of_ten};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use terrace_storage::ObjectId;

#[cfg(test)]
mod tests;

pub(crate) const FOREIGN_KEYS: ObjectId = ObjectId(5);

/// What becomes of the rows that refer to a row which goes, or gets another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// An error, when the constraint is checked.
    NoAction,
    /// An error at the end of the statement.
    Restrict,
    /// They go too, or get the new key.
    Cascade,
    SetNull,
    SetDefault,
}

const ACTIONS: [(Action, &str); 5] = [
    (Action::NoAction, "a"),
    (Action::Restrict, "r"),
    (Action::Cascade, "c"),
    (Action::SetNull, "n"),
    (Action::SetDefault, "d"),
];

impl Action {
    /// PostgreSQL's letter.
    pub fn letter(self) -> &'static str {
        ACTIONS.iter().find(|(action, _)| *action == self).expect("every action is listed").1
    }

    fn of_letter(letter: &str) -> Option<Action> {
        ACTIONS.iter().find(|(_, l)| *l == letter).map(|(action, _)| *action)
    }
}

/// A foreign key (invariant 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    pub oid: ObjectId,
    pub name: String,
    pub table: ObjectId,
    pub columns: Vec<usize>,
    pub referenced: ObjectId,
    pub key: Vec<usize>,
    pub index: ObjectId,
    pub on_delete: Action,
    pub on_update: Action,
    /// Those of `columns` that SET NULL and SET DEFAULT of a deletion set; empty: all.
    pub set: Vec<usize>,
    /// MATCH FULL: of a key, all columns are NULL, or none.
    pub full: bool,
    pub deferrable: bool,
    /// Checked at the end of the transaction, unless SET CONSTRAINTS says otherwise.
    pub deferred: bool,
    /// Holds for all rows, not only for those written since it is there.
    pub validated: bool,
}

impl ForeignKey {
    /// The columns that an action of a deletion, or else of an update, sets.
    pub fn set_columns(&self, deletion: bool) -> &[usize] {
        if deletion && !self.set.is_empty() { &self.set } else { &self.columns }
    }
}

static DEFINITION: LazyLock<Arc<Table>> = LazyLock::new(|| {
    use DataType::{Bool, Int8, Text};
    let columns = [
        ("oid", Int8),
        ("name", Text),
        ("table", Int8),
        ("columns", Text),
        ("referenced", Int8),
        ("key", Text),
        ("index", Int8),
        ("on_delete", Text),
        ("on_update", Text),
        ("set", Text),
        ("match_full", Bool),
        ("deferrable", Bool),
        ("deferred", Bool),
        ("validated", Bool),
    ];
    let columns = columns.iter().map(|(name, data_type)| ColumnDef::new(name, *data_type)).collect();
    Arc::new(Table::new(FOREIGN_KEYS, "foreign_keys".into(), columns, Vec::new()))
});

pub(crate) fn table() -> &'static Arc<Table> {
    &DEFINITION
}

pub(crate) fn row(key: &ForeignKey) -> Vec<Datum> {
    let oid = |oid: ObjectId| Datum::Int8(oid.0 as i64);
    vec![
        oid(key.oid),
        Datum::text(key.name.as_str()),
        oid(key.table),
        Datum::text(positions_text(&key.columns)),
        oid(key.referenced),
        Datum::text(positions_text(&key.key)),
        oid(key.index),
        Datum::text(key.on_delete.letter()),
        Datum::text(key.on_update.letter()),
        Datum::text(positions_text(&key.set)),
        Datum::Bool(key.full),
        Datum::Bool(key.deferrable),
        Datum::Bool(key.deferred),
        Datum::Bool(key.validated),
    ]
}

pub(crate) fn read(row: &[Datum]) -> Result<ForeignKey> {
    let [
        oid,
        Datum::Text(name),
        table,
        Datum::Text(columns),
        referenced,
        Datum::Text(key),
        index,
        Datum::Text(on_delete),
        Datum::Text(on_update),
        Datum::Text(set),
        Datum::Bool(full),
        Datum::Bool(deferrable),
        Datum::Bool(deferred),
        Datum::Bool(validated),
    ] = row
    else {
        return Err(bad("foreign keys"));
    };
    let read = || {
        Some(ForeignKey {
            oid: object(oid)?,
            name: name.to_string(),
            table: object(table)?,
            columns: positions(columns)?,
            referenced: object(referenced)?,
            key: positions(key)?,
            index: object(index)?,
            on_delete: Action::of_letter(on_delete)?,
            on_update: Action::of_letter(on_update)?,
            set: if set.is_empty() { Vec::new() } else { positions(set)? },
            full: *full,
            deferrable: *deferrable,
            deferred: *deferred,
            validated: *validated,
        })
    };
    read().ok_or_else(|| bad("foreign keys"))
}

/// Enters in each table the foreign keys that refer to it (invariant 2).
pub(super) fn connect(tables: &mut BTreeMap<ObjectId, Arc<Table>>) {
    let mut referring: BTreeMap<ObjectId, Vec<Arc<ForeignKey>>> = BTreeMap::new();
    for key in tables.values().flat_map(|table| &table.foreign_keys) {
        referring.entry(key.referenced).or_default().push(key.clone());
    }
    for table in tables.values_mut() {
        let mut keys = referring.remove(&table.oid).unwrap_or_default();
        keys.sort_by_key(|key| key.oid);
        if table.referenced_by != keys {
            Arc::make_mut(table).referenced_by = keys;
        }
    }
}

impl Catalog {
    /// A foreign key that is still there, by its table and its object id.
    pub fn foreign_key(&self, table: ObjectId, oid: ObjectId) -> Option<&Arc<ForeignKey>> {
        self.table_by_oid(table)?.foreign_keys.iter().find(|key| key.oid == oid)
    }
}

/// Whether a column of the first type may refer to one of the second: [`convert`] goes both ways.
pub fn may_refer(from: DataType, to: DataType) -> bool {
    use DataType::*;
    match (from, to) {
        (Int2 | Int4 | Int8, Int2 | Int4 | Int8 | Numeric(_)) => true,
        (Float4 | Float8, Float4 | Float8) | (Text | Varchar(_), Text | Varchar(_)) => true,
        (from, to) => from.pg_oid() == to.pg_oid(),
    }
}

/// A value as one of another type (see [`may_refer`]); `None` where that type has no value equal to it.
pub(crate) fn convert(value: Datum, to: DataType) -> Option<Datum> {
    let number = |unscaled: i128, from: u8| match to {
        DataType::Numeric(None) => Some(Datum::Decimal(Decimal::from(Numeric { unscaled, scale: from }).encode())),
        DataType::Numeric(Some((_, scale))) => {
            Some(Datum::Numeric(Numeric { unscaled: scaled(unscaled, from, scale)?, scale }))
        }
        DataType::Int2 => Some(Datum::Int2(scaled(unscaled, from, 0)?.try_into().ok()?)),
        DataType::Int4 => Some(Datum::Int4(scaled(unscaled, from, 0)?.try_into().ok()?)),
        _ => Some(Datum::Int8(scaled(unscaled, from, 0)?.try_into().ok()?)),
    };
    match (value, to) {
        (Datum::Int2(v), _) => number(v.into(), 0),
        (Datum::Int4(v), _) => number(v.into(), 0),
        (Datum::Int8(v), _) => number(v.into(), 0),
        (Datum::Numeric(v), _) => number(v.unscaled, v.scale),
        (Datum::Decimal(v), DataType::Numeric(None)) => Some(Datum::Decimal(v)),
        // At the least scale that shows all of it.
        (Datum::Decimal(v), _) => match Decimal::decode(&v).trimmed() {
            Decimal::Finite(v) if v.scale() <= MAX_PRECISION.into() => {
                number(v.unscaled().try_into().ok()?, v.scale() as u8)
            }
            _ => None,
        },
        (Datum::Float4(v), DataType::Float8) => Some(Datum::Float8(v.into())),
        (Datum::Float8(v), DataType::Float4) => {
            let short = v as f32;
            (f64::from(short) == v || v.is_nan()).then_some(Datum::Float4(short))
        }
        (other, _) => Some(other),
    }
}

/// A number at another scale; `None` where it has more digits.
fn scaled(unscaled: i128, from: u8, to: u8) -> Option<i128> {
    let factor = power_of_ten(to.abs_diff(from));
    match to >= from {
        true => unscaled.checked_mul(factor),
        false => (unscaled % factor == 0).then(|| unscaled / factor),
    }
}

/// 2BP01: what cannot go because a foreign key needs it. `what` reads `table t`; `object`: what of it is needed.
pub(crate) fn needed(what: &str, key: &ForeignKey, referring: &str, object: &str) -> EngineError {
    EngineError::new("2BP01", format!("cannot drop {what} because other objects depend on it"))
        .with_detail(format!("constraint {} on table {referring} depends on {object}", key.name))
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}
