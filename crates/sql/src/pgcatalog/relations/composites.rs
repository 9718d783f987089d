//! Composite types, as the system's relations show them: each is a relation of kind `c`, too.
use super::depend::{PG_TYPE_OID, row as depends};
use super::rows::{attribute_rows, schema_of_type};
use super::*;
use terrace_engine::types::CompositeType;
use terrace_engine::{ColumnDef, Space};
use terrace_storage::{FIRST_OBJECT, ObjectId};

/// A table of the type's attributes.
fn shape(of: CompositeType) -> Table {
    let def = of.def();
    let column = |(number, attribute): (usize, &terrace_engine::types::composites::Attribute)| {
        let name = match attribute.is_dropped() {
            true => format!("........pg.dropped.{}........", number + 1),
            false => attribute.name.clone(),
        };
        ColumnDef { dropped: attribute.is_dropped(), ..ColumnDef::new(&name, attribute.data_type) }
    };
    let columns = def.all().iter().enumerate().map(column).collect();
    Table::new(ObjectId(def.class), def.name.clone(), columns, vec![])
}

pub(super) fn class(catalog: &Catalog, of: CompositeType) -> Row {
    let def = of.def();
    let space = catalog.space_of_type(def.oid).unwrap_or(Space::PUBLIC);
    row! {
        oid: def.class, relname: &*def.name, relnamespace: space.0.0, relowner: catalog.owner(ObjectId(def.oid)),
        reltype: def.oid, reltuples: V::F4(-1.0), relpersistence: "p", relkind: "c",
        relnatts: def.all().len() as i16, relispopulated: true, relreplident: "n",
    }
}

pub(super) fn attributes(of: CompositeType) -> Vec<Row> {
    attribute_rows(&shape(of))
}

/// Of `information_schema.attributes`.
pub(super) fn standard_attributes(catalog: &Catalog, of: CompositeType) -> Vec<Row> {
    let (def, shape) = (of.def(), shape(of));
    let one = |(number, column): (i16, &ColumnDef)| {
        let ty = PgType::of(column.data_type);
        let mut row = row! {
            udt_catalog: DATABASE, udt_schema: schema_of_type(catalog, def.oid), udt_name: &*def.name,
            attribute_name: &*column.name, ordinal_position: i32::from(number), is_nullable: "YES",
            attribute_udt_catalog: DATABASE, attribute_udt_schema: schema_of_type(catalog, ty.oid),
            attribute_udt_name: ty.name, dtd_identifier: number.to_string(), is_derived_reference_attribute: "NO",
        };
        row.extend(domains::measures(column.data_type, None));
        row
    };
    super::attributes(&shape).map(one).collect()
}

/// Of `pg_depend`: the relation is a part of the type, and needs the types of its attributes.
pub(super) fn dependencies(of: CompositeType) -> Vec<Row> {
    let def = of.def();
    let mut rows = vec![depends((PG_CLASS_OID, def.class), (PG_TYPE_OID, def.oid, 0), "i")];
    for attribute in def.attributes() {
        let used = attribute.data_type.item().unwrap_or(attribute.data_type).pg_oid();
        if used >= FIRST_OBJECT {
            rows.push(depends((PG_CLASS_OID, def.class), (PG_TYPE_OID, used, 0), "n"));
        }
    }
    rows
}
