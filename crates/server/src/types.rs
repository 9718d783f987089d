//! How a result column's Arrow type goes over the wire.
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use pgwire::messages::data::{FieldDescription, RowDescription};
use terrace_engine::types::OwnType;
use terrace_sql::pgcatalog::{array_oid, item_oid};
use terrace_sql::{PG_TYPE, PG_TYPMOD, engine_type, enum_of, is_decimal, items_of, origins};

/// A PostgreSQL type as RowDescription states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) oid: u32,
    /// Bytes; negative: variable.
    size: i16,
    typmod: i32,
    /// Where it is a type that a user made, or an array of one.
    of: Option<OwnType>,
}

pub(crate) const INT2: u32 = 21;
pub(crate) const INT2VECTOR: u32 = 22;
pub(crate) const OIDVECTOR: u32 = 30;
pub(crate) const OID: u32 = 26;
pub(crate) const TEXT: u32 = 25;
const RECORD: u32 = 2249;
pub(crate) const BPCHAR: u32 = 1042;
pub(crate) const VARCHAR: u32 = 1043;
const NUMERIC: u32 = 1700;
const TEXT_ARRAY: u32 = 1009;
pub(crate) const BPCHAR_ARRAY: u32 = 1014;
pub(crate) const VARCHAR_ARRAY: u32 = 1015;
const NUMERIC_ARRAY: u32 = 1231;
const JSON: u32 = 114;
pub(crate) const JSONB: u32 = 3802;
/// What the binary form of a jsonb begins with: how the rest is to be read, which is as text.
pub(crate) const JSONB_VERSION: u8 = 1;

pub(crate) fn wire(field: &Field) -> Wire {
    // A cast may have carried the metadata of a text over to another type.
    let is_text = matches!(field.data_type(), DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8);
    let applies = |name: &str| is_text || !matches!(name, "varchar" | "bpchar");
    let named = field.metadata().get(PG_TYPE).filter(|name| applies(name)).and_then(|name| by_name(name));
    let (oid, size) = named.unwrap_or_else(|| by_arrow(field.data_type()));
    let modified = matches!(oid, VARCHAR | BPCHAR | NUMERIC | VARCHAR_ARRAY | BPCHAR_ARRAY | NUMERIC_ARRAY);
    let typmod = field.metadata().get(PG_TYPMOD).filter(|_| modified).and_then(|m| m.parse().ok()).unwrap_or(-1);
    let of = own_of(items_of(field.data_type()).map_or(field.data_type(), |item| item.data_type()));
    Wire { oid, size, typmod, of }
}

/// What the catalogue says of a type that a user made.
fn own_of(data_type: &DataType) -> Option<OwnType> {
    engine_type(data_type).and_then(terrace_engine::DataType::own)
}

impl Wire {
    /// That of an attribute of a row.
    pub(crate) fn of_attribute(of: terrace_engine::DataType) -> Wire {
        let single = of.item().unwrap_or(of);
        let typmod = if let terrace_engine::DataType::Char(n) = single { n as i32 + 4 } else { -1 };
        Wire { oid: of.pg_oid(), size: -1, typmod, of: single.own() }
    }

    /// The characters that a value is filled up to with blanks: n of char(n), 0 of other types.
    pub(crate) fn padded(&self) -> usize {
        if self.oid == BPCHAR { usize::try_from(self.typmod - 4).unwrap_or(0) } else { 0 }
    }

    /// The type of an array's items; that of one is as the array's.
    pub(crate) fn item(&self) -> Wire {
        let own = self.of.filter(|own| own.array == self.oid).map(|own| own.oid);
        let oid = own.or_else(|| item_oid(self.oid)).unwrap_or(TEXT);
        Wire { oid, size: -1, typmod: self.typmod, of: self.of }
    }
}

fn by_name(name: &str) -> Option<(u32, i16)> {
    Some(match name {
        "name" => (19, 64),
        "char" => (18, 1),
        "void" => (2278, 4),
        "varchar" => (VARCHAR, -1),
        "bpchar" => (BPCHAR, -1),
        "pg_node_tree" => (194, -1),
        "int2vector" => (INT2VECTOR, -1),
        "oidvector" => (OIDVECTOR, -1),
        "_int2" => (1005, -1),
        "_text" => (TEXT_ARRAY, -1),
        "_varchar" => (VARCHAR_ARRAY, -1),
        "_bpchar" => (BPCHAR_ARRAY, -1),
        "_name" => (1003, -1),
        "_char" => (1002, -1),
        _ => return None,
    })
}

fn by_arrow(data_type: &DataType) -> (u32, i16) {
    match data_type {
        DataType::Boolean => (16, 1),
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => (INT2, 2),
        DataType::UInt16 | DataType::Int32 => (23, 4),
        DataType::UInt32 => (OID, 4),
        DataType::Int64 | DataType::UInt64 => (20, 8),
        DataType::Float32 => (700, 4),
        DataType::Float64 => (701, 8),
        DataType::Date32 | DataType::Date64 => (1082, 4),
        DataType::Timestamp(_, None) => (1114, 8),
        DataType::Timestamp(_, Some(_)) => enum_of(data_type).map_or((1184, 8), |of| (of.def().oid, 4)),
        DataType::Time64(_) => (1083, 8),
        DataType::Interval(_) | DataType::Duration(_) => (1186, 16),
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            (NUMERIC, -1)
        }
        of if is_decimal(of) => (NUMERIC, -1),
        DataType::Binary => (17, -1),
        DataType::BinaryView => (JSON, -1),
        DataType::LargeBinary => (JSONB, -1),
        DataType::FixedSizeBinary(16) => (2950, 16),
        array if let Some(item) = items_of(array) => match own_of(item.data_type()) {
            Some(own) => (own.array, -1),
            None => (array_oid(by_arrow(item.data_type()).0).unwrap_or(TEXT_ARRAY), -1),
        },
        DataType::Struct(_) => (own_of(data_type).map_or(RECORD, |own| own.oid), -1),
        _ => (TEXT, -1),
    }
}

/// `binary(i)`: whether column i goes in binary.
pub(crate) fn row_description(schema: &Schema, binary: impl Fn(usize) -> bool) -> RowDescription {
    let origins = origins(schema);
    let field = |(i, field): (usize, &std::sync::Arc<Field>)| {
        let (wire, (table, column)) = (wire(field), origins[i]);
        let (name, table) = (field.name().clone(), table.cast_signed());
        FieldDescription::new(name, table, column, wire.oid, wire.size, wire.typmod, i16::from(binary(i)))
    };
    RowDescription::new(schema.fields().iter().enumerate().map(field).collect())
}
