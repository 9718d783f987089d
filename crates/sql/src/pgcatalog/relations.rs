//! The relations themselves: each is a list of typed columns and the rows that the catalogue implies.
use super::System;
use super::system::*;
use crate::access::Actor;
use crate::values::PG_TYPE;
use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Float32Builder, Float64Builder, Int16Builder, Int32Builder, Int64Builder, ListBuilder,
    RecordBatch, StringBuilder, TimestampMicrosecondBuilder, UInt32Builder,
};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::error::Result;
use datafusion::physical_plan::streaming::PartitionStream;
use std::sync::Arc;
use terrace_engine::{Catalog, Index, Table};

macro_rules! row {
    ($($column:ident: $value:expr),* $(,)?) => { vec![$((stringify!($column), V::from($value))),*] };
}

mod accessible;
mod composites;
mod depend;
pub(crate) mod domains;
pub(crate) mod foreign;
mod grants;
mod inputs;
pub(crate) mod live;
mod opclasses;
pub(crate) mod own;
pub(crate) mod procedures;
mod rows;
mod shapes;
mod usage;
pub(crate) mod views;

pub(crate) use depend::rule_oid;
pub(crate) use rows::{constraint_comments, is_always_empty, schema_comment};
pub(crate) use shapes::is_of_type;

/// A value of a system relation.
pub(crate) enum V {
    Null,
    B(bool),
    I2(i16),
    I4(i32),
    I8(i64),
    F4(f32),
    F8(f64),
    /// Microseconds since 1970, UTC.
    Ts(i64),
    O(u32),
    T(String),
    Shorts(Vec<i16>),
    Oids(Vec<u32>),
    Texts(Vec<String>),
}

impl From<&str> for V {
    fn from(s: &str) -> V {
        V::T(s.to_owned())
    }
}
impl From<String> for V {
    fn from(s: String) -> V {
        V::T(s)
    }
}
impl From<bool> for V {
    fn from(b: bool) -> V {
        V::B(b)
    }
}
impl From<i16> for V {
    fn from(i: i16) -> V {
        V::I2(i)
    }
}
impl From<i32> for V {
    fn from(i: i32) -> V {
        V::I4(i)
    }
}
impl From<u32> for V {
    fn from(oid: u32) -> V {
        V::O(oid)
    }
}

impl From<f64> for V {
    fn from(f: f64) -> V {
        V::F8(f)
    }
}
impl From<u64> for V {
    fn from(n: u64) -> V {
        V::I8(i64::try_from(n).unwrap_or(i64::MAX))
    }
}
impl From<usize> for V {
    fn from(n: usize) -> V {
        V::from(n as u64)
    }
}
impl<T: Into<V>> From<Option<T>> for V {
    fn from(value: Option<T>) -> V {
        value.map_or(V::Null, T::into)
    }
}

/// A row by column names; a column not named is false, zero or (text and lists) NULL.
pub(crate) type Row = Vec<(&'static str, V)>;

/// The relation `schema`.`name`, as the catalogue implies it or as things are when it is read; `None` where there is
/// none.
pub(crate) fn table(
    catalog: &Arc<Catalog>,
    system: Option<&System>,
    schema: &str,
    name: &str,
) -> Result<Option<Arc<dyn TableProvider>>> {
    if let Some(live) = live::Live::new(catalog, system, schema, name) {
        let live = Arc::new(live);
        return Ok(Some(Arc::new(StreamingTable::try_new(live.schema().clone(), vec![live])?)));
    }
    let Some(shape) = shapes::stored(schema, name) else { return Ok(None) };
    let mut columns = columns_of(shape);
    let mut rows = match (system, name) {
        (Some(system), "pg_settings") => rows::settings(&system.settings.lock()),
        (Some(system), _) if schema == "information_schema" => {
            let acting = system.settings.lock().acting();
            let actor = Actor::named(&acting, catalog);
            match name {
                _ if grants::lists(name) => grants::rows(catalog, &actor, name),
                _ if usage::lists(name) => usage::rows(catalog, &actor, name),
                _ => accessible::rows(catalog, &actor, name, rows::rows(catalog, schema, name)),
            }
        }
        _ => rows::rows(catalog, schema, name),
    };
    if schema == "information_schema" {
        // What a row does not say is NULL there, of each type.
        for row in &mut rows {
            let missing = columns.iter().filter(|(column, _)| row.iter().all(|(said, _)| said != column));
            let missing: Row = missing.map(|(column, _)| (*column, V::Null)).collect();
            row.extend(missing);
        }
    }
    if let Some(oid) = own::table_oid(schema, name) {
        columns.push(("tableoid", "oid"));
        rows.iter_mut().for_each(|row| row.push(("tableoid", V::O(oid))));
    }
    let schema = schema_of(&columns);
    let batch = batch(&schema, &columns, &rows)?;
    Ok(Some(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?)))
}

/// Names and types.
fn columns_of(shape: &'static str) -> Vec<(&'static str, &'static str)> {
    shape.split_whitespace().filter_map(|c| c.split_once(':')).collect()
}

fn schema_of(columns: &[(&str, &str)]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|(name, ty)| field(name, ty)).collect::<Vec<_>>()))
}

fn batch(schema: &SchemaRef, columns: &[(&str, &str)], rows: &[Row]) -> Result<RecordBatch> {
    for (column, _) in rows.iter().flatten() {
        debug_assert!(columns.iter().any(|(c, _)| c == column), "there is no column {column} in {schema}");
    }
    let arrays = columns.iter().map(|(column, ty)| {
        let missing = default(ty);
        let value = |row: &'_ Row| row.iter().position(|(c, _)| c == column);
        array(ty, rows.iter().map(|row| value(row).map_or(&missing, |i| &row[i].1)))
    });
    Ok(RecordBatch::try_new(schema.clone(), arrays.collect())?)
}

/// Of all times: as `now()` has it.
const ZONE: &str = "+00:00";

fn field(name: &str, ty: &str) -> Field {
    let list = |item| ArrowType::List(Arc::new(Field::new("item", item, true)));
    let arrow = match ty {
        "bool" => ArrowType::Boolean,
        "int2" => ArrowType::Int16,
        "int4" => ArrowType::Int32,
        "int8" => ArrowType::Int64,
        "float4" => ArrowType::Float32,
        "float8" => ArrowType::Float64,
        "timestamptz" => ArrowType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into())),
        "oid" | "regproc" => ArrowType::UInt32,
        "_text" | "_name" | "_char" | "_aclitem" => list(ArrowType::Utf8),
        "int2vector" | "_int2" => list(ArrowType::Int16),
        "oidvector" | "_oid" => list(ArrowType::UInt32),
        _ => ArrowType::Utf8,
    };
    let field = Field::new(name, arrow, true);
    match ty {
        "name" | "char" | "_text" | "_name" | "_char" | "int2vector" | "oidvector" | "_int2" | "pg_node_tree" => {
            field.with_metadata([(PG_TYPE.to_owned(), ty.to_owned())].into())
        }
        _ => field,
    }
}

fn default(ty: &str) -> V {
    match ty {
        "bool" => V::B(false),
        "int2" => V::I2(0),
        "int4" => V::I4(0),
        "int8" => V::I8(0),
        "float4" => V::F4(0.0),
        "oid" | "regproc" => V::O(0),
        _ => V::Null,
    }
}

fn array<'a>(ty: &str, values: impl Iterator<Item = &'a V>) -> ArrayRef {
    macro_rules! build {
        ($builder:expr, $variant:path) => {{
            let mut b = $builder;
            for v in values {
                match v {
                    $variant(x) => b.append_value(x.clone()),
                    V::Null => b.append_null(),
                    _ => unreachable!("a row's value has its column's type ({ty})"),
                }
            }
            Arc::new(b.finish())
        }};
    }
    match ty {
        "bool" => build!(BooleanBuilder::new(), V::B),
        "int2" => build!(Int16Builder::new(), V::I2),
        "int4" => build!(Int32Builder::new(), V::I4),
        "int8" => build!(Int64Builder::new(), V::I8),
        "float4" => build!(Float32Builder::new(), V::F4),
        "float8" => build!(Float64Builder::new(), V::F8),
        "timestamptz" => build!(TimestampMicrosecondBuilder::new().with_timezone(ZONE), V::Ts),
        "oid" | "regproc" => build!(UInt32Builder::new(), V::O),
        "_text" | "_name" | "_char" | "_aclitem" => {
            let mut b = ListBuilder::new(StringBuilder::new());
            for v in values {
                match v {
                    V::Texts(texts) => b.append_value(texts.iter().map(Some)),
                    V::Null => b.append(false),
                    _ => unreachable!("a row's value has its column's type ({ty})"),
                }
            }
            Arc::new(b.finish())
        }
        "oidvector" | "_oid" => {
            let mut b = ListBuilder::new(UInt32Builder::new());
            for v in values {
                match v {
                    V::Oids(oids) => b.append_value(oids.iter().copied().map(Some)),
                    V::Null => b.append(false),
                    _ => unreachable!("a row's value has its column's type ({ty})"),
                }
            }
            Arc::new(b.finish())
        }
        "int2vector" | "_int2" => {
            let mut b = ListBuilder::new(Int16Builder::new());
            for v in values {
                match v {
                    V::Shorts(xs) => b.append_value(xs.iter().copied().map(Some)),
                    V::Null => b.append(false),
                    _ => unreachable!("a row's value has its column's type ({ty})"),
                }
            }
            Arc::new(b.finish())
        }
        _ => build!(StringBuilder::new(), V::T),
    }
}

/// Live columns with their attribute numbers (from 1; a dropped column keeps its number).
pub(crate) fn attributes(table: &Table) -> impl Iterator<Item = (i16, &terrace_engine::ColumnDef)> {
    table.columns.iter().enumerate().map(|(i, c)| (i as i16 + 1, c)).filter(|(_, c)| !c.dropped)
}

pub(crate) fn find_index(catalog: &Catalog, oid: u32) -> Option<(Arc<Table>, Arc<Index>)> {
    catalog.tables().find_map(|t| t.indexes.iter().find(|i| i.oid.0 == oid).map(|i| (t.clone(), i.clone())))
}

/// The OID of a table's CHECK constraint by its place. It matters to nobody; it only has to be the same each time, and
/// no column default's.
pub(crate) fn check_oid(table: &Table, at: usize) -> u32 {
    table.oid.0.wrapping_mul(2048).wrapping_add(2047 - at as u32)
}
