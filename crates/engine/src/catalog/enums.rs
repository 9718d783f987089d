//! Enum types, as rows of a system table (*format*):
//!
//! | table | columns |
//! |---|---|
//! | 9 enums | oid, array (the oid of the type of its arrays), name, labels, positions, oids (of the labels) |
//!
//! 1. Types of a schema have one name space. Relations have another; but as in PostgreSQL, where a relation stands for
//!    a type of its rows, no relation has the name of a type of its schema.
//! 2. All columns of a catalogue have the definitions that it has: one that is altered is replaced in all tables and
//!    views ([`Catalog::with_enum`]).
//! 3. What names a type within SQL text (defaults, conditions, views) is found by its words: see the SQL front end.
use super::names::{Placed, Space};
use super::system::{bad, object};
use super::{Catalog, ColumnDef, Table, next_version};
use crate::error::{EngineError, Result};
use crate::types::enums::{EnumDef, Label};
use crate::types::{Array, DataType, Datum, DatumRef, EnumType, Items, Style};
use std::sync::{Arc, LazyLock};
use terrace_storage::ObjectId;

pub(crate) const ENUMS: ObjectId = ObjectId(9);

pub(crate) type Enums = Placed<EnumType>;

static DEFINITION: LazyLock<Arc<Table>> = LazyLock::new(|| {
    let of = |item: DataType| item.array().expect("these are no arrays");
    let columns = [
        ("oid", DataType::Int8),
        ("array", DataType::Int8),
        ("name", DataType::Text),
        ("labels", of(DataType::Text)),
        ("positions", of(DataType::Int8)),
        ("oids", of(DataType::Int8)),
    ];
    let columns = columns.iter().map(|(name, of)| ColumnDef::new(name, *of)).collect();
    Arc::new(Table::new(ENUMS, "enums".into(), columns, Vec::new()))
});

pub(crate) fn table() -> &'static Arc<Table> {
    &DEFINITION
}

pub(crate) fn row(def: &EnumDef) -> Result<Vec<Datum>> {
    let array = |item: DataType, of: fn(&Label) -> Datum| {
        let values: Vec<Datum> = def.labels().iter().map(of).collect();
        Array::new(Items::of(item).expect("these are no arrays"), &values).map(Datum::Array)
    };
    Ok(vec![
        Datum::Int8(def.oid.into()),
        Datum::Int8(def.array.into()),
        Datum::text(def.name.as_str()),
        array(DataType::Text, |label| Datum::text(label.name.as_str()))?,
        array(DataType::Int8, |label| Datum::Int8(label.position))?,
        array(DataType::Int8, |label| Datum::Int8(label.oid.into()))?,
    ])
}

pub(crate) fn read(row: &[Datum]) -> Result<EnumDef> {
    let [oid, array, Datum::Text(name), Datum::Array(labels), Datum::Array(positions), Datum::Array(oids)] = row else {
        return Err(bad("enums"));
    };
    let values = |array: &Array| array.view().iter().map(|item| item.to_datum()).collect::<Vec<Datum>>();
    let read = || {
        let (names, oids) = (values(labels), values(oids));
        let mut made = vec![];
        for ((name, position), oid) in names.iter().zip(values(positions)).zip(&oids) {
            let (Datum::Text(name), Datum::Int8(position)) = (name, position) else { return None };
            made.push(Label { oid: object(oid)?.0, position, name: name.to_string() });
        }
        let in_order = made.is_sorted_by(|a, b| a.position < b.position);
        (in_order && made.len() == names.len()).then_some(EnumDef::of_labels(
            object(oid)?.0,
            object(array)?.0,
            name,
            made,
        ))
    };
    read().ok_or_else(|| bad("enums"))
}

/// The type that a column's row names by an oid.
pub(crate) fn type_of(enums: &Enums, oid: u32) -> Option<DataType> {
    enums.values().find_map(|of| match of.def() {
        def if def.oid == oid => Some(DataType::Enum(*of)),
        def if def.array == oid => DataType::Enum(*of).array(),
        _ => None,
    })
}

/// What a column's row says of its type besides the oid.
pub(crate) fn stored_length(of: DataType) -> u32 {
    match of.item() {
        Some(DataType::Enum(_)) => 1,
        _ => of.length(),
    }
}

/// How values of an enum, or of its arrays, are stored where the type is gone, and nobody reads them.
pub(crate) fn stored_type(length: u32) -> DataType {
    if length == 1 { DataType::Bytea } else { DataType::Int8 }
}

/// A value as text that neither a change of a type nor a style changes: positions, not labels.
pub(crate) fn stored_text(value: &Datum) -> String {
    Style::default().scope(|| text_of(value))
}

fn text_of(value: &Datum) -> String {
    match value {
        Datum::Enum(_, position) => position.to_string(),
        Datum::Array(array) if matches!(array.view().items().get(), DataType::Enum(_)) => {
            let position = |item: DatumRef<'_>| match item {
                DatumRef::Enum(_, position) => Ok(Datum::Int8(position)),
                _ => Ok(Datum::Null),
            };
            let of = Items::of(DataType::Int8).expect("no array");
            array.view().map(of, position).map_or_else(|_| array.view().to_string(), |of| of.view().to_string())
        }
        other => other.to_string(),
    }
}

/// The value of such a text.
pub(crate) fn read_text(of: DataType, text: &str) -> Result<Datum> {
    Style::default().scope(|| value_of(of, text))
}

fn value_of(of: DataType, text: &str) -> Result<Datum> {
    let value = |of: EnumType, position: Datum| match position {
        Datum::Int8(position) => Datum::Enum(of, position),
        other => other,
    };
    Ok(match (of, of.item()) {
        (DataType::Enum(of), _) => value(of, DataType::Int8.parse(text)?),
        (_, Some(item @ DataType::Enum(of))) => {
            let positions = DataType::Int8.array().expect("no array").parse(text)?;
            let Datum::Array(positions) = positions else { return Err(bad("columns")) };
            let items = Items::of(item).expect("no array");
            Datum::Array(positions.view().map(items, |item| Ok(value(of, item.to_datum())))?)
        }
        _ => of.parse(text)?,
    })
}

impl Catalog {
    /// 42710 where a type has the name that a relation would get (invariant 1).
    pub(crate) fn refuse_type(&self, space: Space, name: &str) -> Result<()> {
        if !self.type_name_taken(space, name) {
            return Ok(());
        }
        let hint = "A relation has an associated type of the same name, so you must use a name that doesn't conflict \
                    with any existing type.";
        Err(EngineError::new("42710", format!("type \"{name}\" already exists")).with_hint(hint))
    }

    /// By schema, then by name.
    pub fn enum_types(&self) -> impl Iterator<Item = EnumType> {
        self.enums.values().copied()
    }

    /// The enum type, or the type of its arrays, of an oid.
    pub fn type_of_oid(&self, oid: u32) -> Option<DataType> {
        type_of(&self.enums, oid)
    }

    /// A type as this catalogue defines it.
    pub fn type_now(&self, of: DataType) -> DataType {
        match of.item().unwrap_or(of) {
            DataType::Enum(_) => self.type_of_oid(of.pg_oid()).unwrap_or(of),
            _ => of,
        }
    }

    pub(crate) fn with_enums(&self, enums: Enums) -> Catalog {
        Catalog { enums: Arc::new(enums), version: next_version(), ..self.clone() }
    }

    /// This catalogue with a type added, or one of the same oid replaced (invariant 2).
    pub(crate) fn with_enum(&self, space: Space, of: EnumType) -> Catalog {
        let mut enums = Enums::clone(&self.enums);
        let oid = of.def().oid;
        let before = enums.take(|old| old.def().oid == oid);
        enums.insert(space, &of.def().name, of);
        let catalog = self.with_enums(enums);
        if before == 0 {
            return catalog;
        }
        let renewed = |columns: &[ColumnDef]| -> Option<Vec<ColumnDef>> {
            let new = |column: &ColumnDef| {
                let data_type = renewed_type(column.data_type, of)?;
                Some(ColumnDef { data_type, missing: renewed_value(&column.missing, of), ..column.clone() })
            };
            let found: Vec<Option<ColumnDef>> = columns.iter().map(new).collect();
            let any = found.iter().any(Option::is_some);
            any.then(|| found.into_iter().zip(columns).map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect())
        };
        let tables = catalog.by_oid.values().map(|table| match renewed(&table.columns) {
            Some(columns) => Arc::new(table.redefined(columns, table.indexes.clone())),
            None => table.clone(),
        });
        let views = catalog.views.values().map(|view| match renewed(&view.columns) {
            Some(columns) => Arc::new(super::views::View { columns, ..(**view).clone() }),
            None => view.clone(),
        });
        catalog.with_tables(tables.collect()).with_views(views.collect())
    }

    pub(crate) fn without_enum(&self, of: EnumType) -> Catalog {
        let mut enums = Enums::clone(&self.enums);
        enums.take(|own| own.is_same(of));
        self.with_enums(enums)
    }
}

fn renewed_type(old: DataType, of: EnumType) -> Option<DataType> {
    match old {
        DataType::Enum(old) if old.is_same(of) => Some(DataType::Enum(of)),
        DataType::Array(items) => renewed_type(items.get(), of)?.array(),
        _ => None,
    }
}

fn renewed_value(old: &Datum, of: EnumType) -> Datum {
    match old {
        Datum::Enum(_, position) => Datum::Enum(of, *position),
        Datum::Array(array) => {
            let renewed = |item: DatumRef<'_>| Ok(renewed_value(&item.to_datum(), of));
            let items = Items::of(DataType::Enum(of)).expect("no array");
            array.view().map(items, renewed).map_or_else(|_| old.clone(), Datum::Array)
        }
        other => other.clone(),
    }
}
