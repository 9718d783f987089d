//! The relations themselves: each is a list of typed columns and the rows that the catalogue implies.
use super::PG_TYPE;
use super::system::*;
use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Float32Builder, Int16Builder, Int32Builder, Int64Builder, ListArray, ListBuilder,
    RecordBatch, StringBuilder, UInt32Builder,
};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::error::Result;
use std::sync::Arc;
use terrace_engine::{Catalog, Index, Table};

mod rows;
mod shapes;

pub(crate) use rows::is_always_empty;
pub(crate) use shapes::{names, shape};

/// A value of a system relation.
pub(crate) enum V {
    Null,
    B(bool),
    I2(i16),
    I4(i32),
    I8(i64),
    F4(f32),
    O(u32),
    T(String),
    Shorts(Vec<i16>),
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

/// A row by column names; a column not named is false, zero or (text and lists) NULL.
pub(crate) type Row = Vec<(&'static str, V)>;

/// The relation `schema`.`name` as the catalogue implies it; `None` where there is none.
pub(crate) fn table(catalog: &Catalog, schema: &str, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
    let Some(shape) = shape(schema, name) else { return Ok(None) };
    let columns: Vec<(&str, &str)> = shape.split_whitespace().filter_map(|c| c.split_once(':')).collect();
    let rows = rows::rows(catalog, schema, name);
    for (column, _) in rows.iter().flatten() {
        debug_assert!(columns.iter().any(|(c, _)| c == column), "{name} has no column {column}");
    }
    let schema = Arc::new(Schema::new(columns.iter().map(|(name, ty)| field(name, ty)).collect::<Vec<_>>()));
    let arrays = columns.iter().map(|(column, ty)| {
        let missing = default(ty);
        let value = |row: &'_ Row| row.iter().position(|(c, _)| c == column);
        array(ty, rows.iter().map(|row| value(row).map_or(&missing, |i| &row[i].1)))
    });
    let batch = RecordBatch::try_new(schema.clone(), arrays.collect())?;
    Ok(Some(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?)))
}

fn field(name: &str, ty: &str) -> Field {
    let list = |item| ArrowType::List(Arc::new(Field::new("item", item, true)));
    let arrow = match ty {
        "bool" => ArrowType::Boolean,
        "int2" => ArrowType::Int16,
        "int4" => ArrowType::Int32,
        "int8" => ArrowType::Int64,
        "float4" => ArrowType::Float32,
        "oid" | "regproc" => ArrowType::UInt32,
        "_text" | "_name" | "_char" => list(ArrowType::Utf8),
        "int2vector" | "_int2" => list(ArrowType::Int16),
        _ => ArrowType::Utf8,
    };
    let field = Field::new(name, arrow, true);
    match ty {
        "name" | "char" | "_text" | "_name" | "_char" | "int2vector" | "_int2" | "pg_node_tree" => {
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
        "oid" | "regproc" => build!(UInt32Builder::new(), V::O),
        // No row has a list of texts (options, privileges) that is not NULL.
        "_text" | "_name" | "_char" => Arc::new(new_nulls(values.count())),
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

fn new_nulls(rows: usize) -> ListArray {
    let mut b = ListBuilder::new(StringBuilder::new());
    (0..rows).for_each(|_| b.append(false));
    b.finish()
}

/// Live columns with their attribute numbers (from 1; a dropped column keeps its number).
pub(crate) fn attributes(table: &Table) -> impl Iterator<Item = (i16, &terrace_engine::ColumnDef)> {
    table.columns.iter().enumerate().map(|(i, c)| (i as i16 + 1, c)).filter(|(_, c)| !c.dropped)
}

pub(crate) fn find_index(catalog: &Catalog, oid: u32) -> Option<(Arc<Table>, Arc<Index>)> {
    catalog.tables().find_map(|t| t.indexes.iter().find(|i| i.oid.0 == oid).map(|i| (t.clone(), i.clone())))
}

/// Whether an index stands for a constraint: a primary key does, and a unique index that a constraint made.
pub(crate) fn is_constraint(index: &Index) -> bool {
    index.primary
}
