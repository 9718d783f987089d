//! Types that users made, enums and composite ones, as rows of a system table (*format*):
//!
//! | table | columns |
//! |---|---|
//! | 9 enums | oid, array (the oid of the type of its arrays), name, labels, positions, oids (of the labels), class |
//!
//! The class of a composite type is its oid among relations; of an enum it is NULL, and not written. A composite type
//! has the names of its attributes for labels (an empty one was dropped), the oids of their types for positions, and
//! what a column's row says of its type besides the oid for oids.
//!
//! 1. Types of a schema have one name space. Relations have another; but as in PostgreSQL, where a relation stands for
//!    a type of its rows, no relation has the name of a type of its schema.
//! 2. All columns of a catalogue have the definitions that it has, and so have domains and attributes: one that is
//!    altered is replaced in all ([`Catalog::with_type`]).
//! 3. What names a type within SQL text (defaults, conditions, views) is found by its words: see the SQL front end.
use super::names::{Placed, Space};
use super::system::{bad, object};
use super::temporary::{Placements, space_of};
use super::{Catalog, ColumnDef, Table, next_version};
use crate::error::{EngineError, Result};
use crate::types::composites::{Attribute, CompositeDef};
use crate::types::enums::{EnumDef, Label};
use crate::types::{Array, CompositeType, DataType, Datum, DatumRef, EnumType, Items, Record, Style};
use std::sync::{Arc, LazyLock};
use terrace_storage::ObjectId;

pub(crate) const ENUMS: ObjectId = ObjectId(9);

/// By name: enums and composite types.
pub(crate) type OwnTypes = Placed<DataType>;

static DEFINITION: LazyLock<Arc<Table>> = LazyLock::new(|| {
    let of = |item: DataType| item.array().expect("these are no arrays");
    let columns = [
        ("oid", DataType::Int8),
        ("array", DataType::Int8),
        ("name", DataType::Text),
        ("labels", of(DataType::Text)),
        ("positions", of(DataType::Int8)),
        ("oids", of(DataType::Int8)),
        ("class", DataType::Int8),
    ];
    let columns = columns.iter().map(|(name, of)| ColumnDef::new(name, *of)).collect();
    Arc::new(Table::new(ENUMS, "enums".into(), columns, Vec::new()))
});

pub(crate) fn table() -> &'static Arc<Table> {
    &DEFINITION
}

fn array_of<T>(item: DataType, all: &[T], of: impl Fn(&T) -> Datum) -> Result<Datum> {
    let values: Vec<Datum> = all.iter().map(of).collect();
    Array::new(Items::of(item).expect("these are no arrays"), &values).map(Datum::Array)
}

/// The row of a type that a user made.
pub(crate) fn row(of: DataType) -> Result<Vec<Datum>> {
    let own = of.own().ok_or_else(|| EngineError::internal(format!("{of} is a type of the system")))?;
    let mut row = vec![Datum::Int8(own.oid.into()), Datum::Int8(own.array.into()), Datum::text(own.name)];
    match of {
        DataType::Composite(of) => {
            let all = of.def().all();
            row.push(array_of(DataType::Text, all, |attribute| Datum::text(attribute.name.as_str()))?);
            row.push(array_of(DataType::Int8, all, |attribute| Datum::Int8(attribute.data_type.pg_oid().into()))?);
            row.push(array_of(DataType::Int8, all, |attribute| {
                Datum::Int8(stored_length(attribute.data_type).into())
            })?);
            row.push(Datum::Int8(of.def().class.into()));
        }
        DataType::Enum(of) => {
            let labels = of.def().labels();
            row.push(array_of(DataType::Text, labels, |label| Datum::text(label.name.as_str()))?);
            row.push(array_of(DataType::Int8, labels, |label| Datum::Int8(label.position))?);
            row.push(array_of(DataType::Int8, labels, |label| Datum::Int8(label.oid.into()))?);
        }
        _ => {}
    }
    Ok(row)
}

/// What a row says. The types of attributes may be those of other rows.
struct Raw {
    oid: u32,
    array: u32,
    class: Option<u32>,
    name: String,
    /// Name, position or type, oid or length.
    parts: Vec<(String, i64, u32)>,
}

fn read(row: &[Datum]) -> Option<Raw> {
    let [oid, array, Datum::Text(name), Datum::Array(names), Datum::Array(numbers), Datum::Array(oids), class] = row
    else {
        return None;
    };
    let values = |array: &Array| array.view().iter().map(|item| item.to_datum()).collect::<Vec<Datum>>();
    let (names, oids) = (values(names), values(oids));
    let mut parts = vec![];
    for ((name, number), oid) in names.iter().zip(values(numbers)).zip(&oids) {
        let (Datum::Text(name), Datum::Int8(number)) = (name, number) else { return None };
        parts.push((name.to_string(), number, object(oid)?.0));
    }
    let class = if class.is_null() { None } else { Some(object(class)?.0) };
    let whole = parts.len() == names.len() && parts.len() == oids.len();
    whole.then_some(Raw { oid: object(oid)?.0, array: object(array)?.0, class, name: name.to_string(), parts })
}

impl Raw {
    /// `Ok(None)`: a type of its attributes is not known yet.
    fn made(&self, known: &OwnTypes) -> Result<Option<DataType>> {
        let Some(class) = self.class else {
            let label = |(name, position, oid): &(String, i64, u32)| Label {
                oid: *oid,
                position: *position,
                name: name.clone(),
            };
            let labels: Vec<Label> = self.parts.iter().map(label).collect();
            if !labels.is_sorted_by(|a, b| a.position < b.position) {
                return Err(bad("enums"));
            }
            let def = EnumDef::of_labels(self.oid, self.array, &self.name, labels);
            return EnumType::of(def).map(DataType::Enum).map(Some);
        };
        let mut attributes = vec![];
        for (name, of, length) in &self.parts {
            let oid = u32::try_from(*of).map_err(|_| bad("enums"))?;
            let of = DataType::from_pg_oid(oid, *length).or_else(|| type_of(known, oid));
            let data_type = match of {
                Some(of) => of,
                None if name.is_empty() => stored_type(*length),
                None => return Ok(None),
            };
            attributes.push(Attribute { name: name.clone(), data_type });
        }
        let def = CompositeDef::new([self.oid, self.array, class], &self.name, attributes)?;
        CompositeType::of(def).map(DataType::Composite).map(Some)
    }
}

/// All types, of all rows. `whole`: refuses those that lack the type of an attribute.
pub(crate) fn read_all(rows: &[Vec<Datum>], places: &Placements, whole: bool) -> Result<OwnTypes> {
    let mut open = rows.iter().map(|row| read(row)).collect::<Option<Vec<Raw>>>().ok_or_else(|| bad("enums"))?;
    let mut known = OwnTypes::default();
    // A type follows those of its attributes.
    loop {
        let mut later = vec![];
        let before = open.len();
        for raw in open {
            match raw.made(&known)? {
                Some(of) => known.insert(space_of(places, ObjectId(raw.oid)), &raw.name, of),
                None => later.push(raw),
            }
        }
        match later.len() {
            0 => return Ok(known),
            left if left == before && whole => return Err(bad("enums")),
            left if left == before => return Ok(known),
            _ => open = later,
        }
    }
}

/// The type that a column's row names by an oid.
pub(crate) fn type_of(known: &OwnTypes, oid: u32) -> Option<DataType> {
    known.values().find_map(|of| match of.own()? {
        own if own.oid == oid => Some(*of),
        own if own.array == oid => of.array(),
        _ => None,
    })
}

/// What a column's row says of its type besides the oid.
pub(crate) fn stored_length(of: DataType) -> u32 {
    match of.item() {
        _ if matches!(of, DataType::Composite(_)) => 1,
        Some(item) if item.own().is_some() => 1,
        _ => of.length(),
    }
}

/// How values of an enum, or of a type of any length, are stored where the type is gone, and nobody reads them.
pub(crate) fn stored_type(length: u32) -> DataType {
    if length == 1 { DataType::Bytea } else { DataType::Int8 }
}

/// A value as text that neither a change of a type nor a style changes: positions, not labels, and the bytes of what
/// has attributes.
pub(crate) fn stored_text(value: &Datum) -> String {
    Style::default().scope(|| text_of(value))
}

fn text_of(value: &Datum) -> String {
    match value {
        Datum::Enum(_, position) => position.to_string(),
        Datum::Record(record) => Datum::Bytea(record.bytes().into()).to_string(),
        Datum::Array(array) if matches!(array.view().items().get(), DataType::Composite(_)) => {
            Datum::Bytea(array.bytes().into()).to_string()
        }
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
        (DataType::Composite(of), _) => {
            let Datum::Bytea(bytes) = DataType::Bytea.parse(text)? else { return Err(bad("columns")) };
            Datum::Record(Record::of_bytes(of, &bytes).map_err(|_| bad("columns"))?)
        }
        (DataType::Array(items), Some(DataType::Composite(_))) => {
            let Datum::Bytea(bytes) = DataType::Bytea.parse(text)? else { return Err(bad("columns")) };
            Datum::Array(Array::of_bytes(items, &bytes).map_err(|_| bad("columns"))?)
        }
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

    /// Enums and composite types, by schema, then by name.
    pub fn own_types(&self) -> impl Iterator<Item = DataType> {
        self.enums.values().copied()
    }

    /// By schema, then by name.
    pub fn enum_types(&self) -> impl Iterator<Item = EnumType> {
        self.enums.values().filter_map(|of| match of {
            DataType::Enum(of) => Some(*of),
            _ => None,
        })
    }

    /// By schema, then by name.
    pub fn composite_types(&self) -> impl Iterator<Item = CompositeType> {
        self.enums.values().filter_map(|of| match of {
            DataType::Composite(of) => Some(*of),
            _ => None,
        })
    }

    /// The type that a user made, or the type of its arrays, of an oid.
    pub fn type_of_oid(&self, oid: u32) -> Option<DataType> {
        type_of(&self.enums, oid)
    }

    /// A type as this catalogue defines it.
    pub fn type_now(&self, of: DataType) -> DataType {
        match of.item().unwrap_or(of).own() {
            Some(_) => self.type_of_oid(of.pg_oid()).unwrap_or(of),
            None => of,
        }
    }

    pub(crate) fn with_own_types(&self, types: OwnTypes) -> Catalog {
        Catalog { enums: Arc::new(types), version: next_version(), ..self.clone() }
    }

    /// This catalogue with a type added, or one of the same oid replaced (invariant 2). 54000
    pub(crate) fn with_type(&self, space: Space, of: DataType) -> Result<Catalog> {
        let mut types = OwnTypes::clone(&self.enums);
        let own = of.own().ok_or_else(|| EngineError::internal(format!("{of} is a type of the system")))?;
        let before = types.take(|old| old.pg_oid() == own.oid);
        types.insert(space, own.name, of);
        if before == 0 {
            return Ok(self.with_own_types(types));
        }
        renew_attributes(&mut types)?;
        let catalog = self.with_own_types(types);
        let now = |of: DataType| Some(catalog.type_now(of)).filter(|now| *now != of);
        let renewed = |columns: &[ColumnDef]| -> Option<Vec<ColumnDef>> {
            let new = |column: &ColumnDef| {
                let data_type = now(column.data_type)?;
                Some(ColumnDef { data_type, missing: renewed_value(&column.missing, data_type), ..column.clone() })
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
        let mut made = catalog.with_tables(tables.collect()).with_views(views.collect());
        for domain in self.domains() {
            if let Some(base) = now(domain.base) {
                made = made.with_domain(super::domains::Domain { base, ..(**domain).clone() });
            }
        }
        Ok(made)
    }

    pub(crate) fn without_type(&self, of: DataType) -> Catalog {
        let mut types = OwnTypes::clone(&self.enums);
        types.take(|own| own.pg_oid() == of.pg_oid());
        self.with_own_types(types)
    }
}

/// Composite types that have attributes of types that were altered are altered, too.
fn renew_attributes(types: &mut OwnTypes) -> Result<()> {
    loop {
        let mut altered = None;
        for (space, of) in types.entries() {
            let DataType::Composite(composite) = of else { continue };
            let now = |attribute: &Attribute| match attribute.data_type.item().unwrap_or(attribute.data_type).own() {
                Some(_) => type_of(types, attribute.data_type.pg_oid()).unwrap_or(attribute.data_type),
                None => attribute.data_type,
            };
            let all = composite.def().all();
            if all.iter().any(|attribute| now(attribute) != attribute.data_type) {
                let new = |attribute: &Attribute| Attribute { data_type: now(attribute), ..attribute.clone() };
                altered = Some((space, composite.def().with(all.iter().map(new).collect())?));
                break;
            }
        }
        let Some((space, def)) = altered else { return Ok(()) };
        let name = def.name.clone();
        types.insert(space, &name, DataType::Composite(CompositeType::of(def)?));
    }
}

/// A value by another definition of its type.
fn renewed_value(old: &Datum, of: DataType) -> Datum {
    match (old, of) {
        (Datum::Enum(_, position), DataType::Enum(of)) => Datum::Enum(of, *position),
        (Datum::Record(record), DataType::Composite(of)) => Datum::Record(record.clone().renewed(of)),
        (Datum::Array(array), DataType::Array(items)) => {
            let renewed = |item: DatumRef<'_>| Ok(renewed_value(&item.to_datum(), items.get()));
            array.view().map(items, renewed).map_or_else(|_| old.clone(), Datum::Array)
        }
        (other, _) => other.clone(),
    }
}
