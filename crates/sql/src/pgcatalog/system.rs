//! Fixed objects: types, schemas, roles, access methods, with PostgreSQL's OIDs.
use crate::values::ARRAYS;
use terrace_engine::DataType;

pub(crate) const DATABASE: &str = "terrace";
pub(crate) const OWNER: &str = "terrace";

pub(crate) const OWNER_OID: u32 = 10;
pub(crate) const PG_CATALOG_OID: u32 = 11;
pub(crate) const PUBLIC_OID: u32 = 2200;
pub(crate) const INFORMATION_SCHEMA_OID: u32 = 13183;
/// Not one of PostgreSQL's, and below those of the user's objects.
pub(crate) const TERRACE_OID: u32 = 16_000;
pub(crate) const PG_CLASS_OID: u32 = 1259;
pub(crate) const PG_NAMESPACE_OID: u32 = 2615;
pub(crate) const PG_CONSTRAINT_OID: u32 = 2606;
pub(crate) const DATABASE_OID: u32 = 5;
pub(crate) const HEAP_AM_OID: u32 = 2;
pub(crate) const BTREE_AM_OID: u32 = 403;
pub(crate) const DEFAULT_TABLESPACE_OID: u32 = 1663;
pub(crate) const DEFAULT_COLLATION_OID: u32 = 100;
pub(crate) const C_COLLATION_OID: u32 = 950;

/// One row of pg_type.
#[derive(Clone, Copy)]
pub(crate) struct PgType {
    pub(crate) oid: u32,
    pub(crate) name: &'static str,
    /// As `format_type` prints it.
    pub(crate) sql_name: &'static str,
    /// Bytes; negative: variable.
    pub(crate) len: i16,
    pub(crate) by_value: bool,
    pub(crate) category: &'static str,
    pub(crate) array: u32,
    /// Of an array: its element type.
    pub(crate) element: u32,
    pub(crate) collation: u32,
    /// Of a composite type: its relation.
    pub(crate) relation: u32,
}

impl PgType {
    /// That of a column.
    pub(crate) fn of(data_type: DataType) -> PgType {
        match (PgType::of_own(data_type), data_type.item().and_then(PgType::of_own)) {
            (Some([own, _]), _) | (None, Some([_, own])) => own,
            _ => *type_by_oid(data_type.pg_oid()).expect("every other column type is in TYPES"),
        }
    }

    /// A type that a user made, and the type of its arrays.
    pub(crate) fn of_own(of: DataType) -> Option<[PgType; 2]> {
        let own = of.own()?;
        let (len, category, relation) = match of {
            DataType::Composite(of) => (-1, "C", of.def().class),
            _ => (4, "E", 0),
        };
        let single = PgType {
            oid: own.oid,
            name: own.name,
            sql_name: of.base_name(),
            len,
            by_value: len > 0,
            category,
            array: own.array,
            element: 0,
            collation: 0,
            relation,
        };
        let arrays = PgType {
            oid: own.array,
            name: own.array_name,
            sql_name: of.array().map_or("", DataType::base_name),
            len: -1,
            by_value: false,
            category: "A",
            array: 0,
            element: own.oid,
            collation: 0,
            relation: 0,
        };
        Some([single, arrays])
    }
}

macro_rules! types {
    ($(($oid:literal, $name:literal, $sql:literal, $len:literal, $by_value:literal,
        $cat:literal, $array:literal, $elem:literal, $coll:literal);)*) => {
        pub(crate) const TYPES: &[PgType] = &[$(PgType {
            oid: $oid, name: $name, sql_name: $sql, len: $len, by_value: $by_value, category: $cat, array: $array,
            element: $elem, collation: $coll, relation: 0,
        }),*];
    };
}

types! {
    (16, "bool", "boolean", 1, true, "B", 1000, 0, 0);
    (17, "bytea", "bytea", -1, false, "U", 1001, 0, 0);
    (18, "char", "\"char\"", 1, true, "Z", 1002, 0, 0);
    (19, "name", "name", 64, false, "S", 1003, 18, 950);
    (20, "int8", "bigint", 8, true, "N", 1016, 0, 0);
    (21, "int2", "smallint", 2, true, "N", 1005, 0, 0);
    (22, "int2vector", "int2vector", -1, false, "A", 1006, 21, 0);
    (23, "int4", "integer", 4, true, "N", 1007, 0, 0);
    (24, "regproc", "regproc", 4, true, "N", 1008, 0, 0);
    (25, "text", "text", -1, false, "S", 1009, 0, 100);
    (26, "oid", "oid", 4, true, "N", 1028, 0, 0);
    (28, "xid", "xid", 4, true, "U", 1011, 0, 0);
    (30, "oidvector", "oidvector", -1, false, "A", 1013, 26, 0);
    (114, "json", "json", -1, false, "U", 199, 0, 0);
    (194, "pg_node_tree", "pg_node_tree", -1, false, "Z", 0, 0, 100);
    (199, "_json", "json[]", -1, false, "A", 0, 114, 0);
    (700, "float4", "real", 4, true, "N", 1021, 0, 0);
    (701, "float8", "double precision", 8, true, "N", 1022, 0, 0);
    (705, "unknown", "unknown", -2, false, "X", 0, 0, 0);
    (1000, "_bool", "boolean[]", -1, false, "A", 0, 16, 0);
    (1001, "_bytea", "bytea[]", -1, false, "A", 0, 17, 0);
    (1002, "_char", "\"char\"[]", -1, false, "A", 0, 18, 0);
    (1003, "_name", "name[]", -1, false, "A", 0, 19, 950);
    (1005, "_int2", "smallint[]", -1, false, "A", 0, 21, 0);
    (1007, "_int4", "integer[]", -1, false, "A", 0, 23, 0);
    (1009, "_text", "text[]", -1, false, "A", 0, 25, 100);
    (1014, "_bpchar", "character[]", -1, false, "A", 0, 1042, 100);
    (1015, "_varchar", "character varying[]", -1, false, "A", 0, 1043, 100);
    (1016, "_int8", "bigint[]", -1, false, "A", 0, 20, 0);
    (1021, "_float4", "real[]", -1, false, "A", 0, 700, 0);
    (1022, "_float8", "double precision[]", -1, false, "A", 0, 701, 0);
    (1028, "_oid", "oid[]", -1, false, "A", 0, 26, 0);
    (1033, "aclitem", "aclitem", 12, false, "U", 1034, 0, 0);
    (1034, "_aclitem", "aclitem[]", -1, false, "A", 0, 1033, 0);
    (1042, "bpchar", "character", -1, false, "S", 1014, 0, 100);
    (1043, "varchar", "character varying", -1, false, "S", 1015, 0, 100);
    (1082, "date", "date", 4, true, "D", 1182, 0, 0);
    (1083, "time", "time without time zone", 8, true, "D", 1183, 0, 0);
    (1114, "timestamp", "timestamp without time zone", 8, true, "D", 1115, 0, 0);
    (1115, "_timestamp", "timestamp without time zone[]", -1, false, "A", 0, 1114, 0);
    (1182, "_date", "date[]", -1, false, "A", 0, 1082, 0);
    (1183, "_time", "time without time zone[]", -1, false, "A", 0, 1083, 0);
    (1184, "timestamptz", "timestamp with time zone", 8, true, "D", 1185, 0, 0);
    (1185, "_timestamptz", "timestamp with time zone[]", -1, false, "A", 0, 1184, 0);
    (1186, "interval", "interval", 16, false, "T", 1187, 0, 0);
    (1187, "_interval", "interval[]", -1, false, "A", 0, 1186, 0);
    (1231, "_numeric", "numeric[]", -1, false, "A", 0, 1700, 0);
    (1700, "numeric", "numeric", -1, false, "N", 1231, 0, 0);
    (2205, "regclass", "regclass", 4, true, "N", 2210, 0, 0);
    (2206, "regtype", "regtype", 4, true, "N", 2211, 0, 0);
    (2249, "record", "record", -1, false, "P", 2287, 0, 0);
    (2276, "any", "\"any\"", 4, true, "P", 0, 0, 0);
    (2277, "anyarray", "anyarray", -1, false, "P", 0, 0, 0);
    (2278, "void", "void", 4, true, "P", 0, 0, 0);
    (2279, "trigger", "trigger", 4, true, "P", 0, 0, 0);
    (2283, "anyelement", "anyelement", 4, true, "P", 0, 0, 0);
    (2287, "_record", "record[]", -1, false, "P", 0, 2249, 0);
    (2776, "anynonarray", "anynonarray", 4, true, "P", 0, 0, 0);
    (2950, "uuid", "uuid", 16, false, "U", 2951, 0, 0);
    (2951, "_uuid", "uuid[]", -1, false, "A", 0, 2950, 0);
    (3500, "anyenum", "anyenum", 4, true, "P", 0, 0, 0);
    (3802, "jsonb", "jsonb", -1, false, "U", 3807, 0, 0);
    (3807, "_jsonb", "jsonb[]", -1, false, "A", 0, 3802, 0);
    (5077, "anycompatible", "anycompatible", 4, true, "P", 0, 0, 0);
    (5078, "anycompatiblearray", "anycompatiblearray", -1, false, "P", 0, 0, 0);
    (5079, "anycompatiblenonarray", "anycompatiblenonarray", 4, true, "P", 0, 0, 0);
}

pub(crate) fn type_by_oid(oid: u32) -> Option<&'static PgType> {
    TYPES.binary_search_by_key(&oid, |t| t.oid).ok().map(|i| &TYPES[i])
}

/// By either of its names.
pub(crate) fn type_by_name(name: &str) -> Option<&'static PgType> {
    TYPES.iter().find(|t| t.name == name || t.sql_name == name)
}

/// The OID of the type of an array's items, where the OID is an array type's.
pub fn item_oid(oid: u32) -> Option<u32> {
    ARRAYS.iter().find(|(array, _)| *array == oid).map(|(_, item)| *item)
}

/// The type that takes values a client declares with this OID; `None` where the client left it open or we have none.
pub fn data_type_of_oid(oid: u32) -> Option<DataType> {
    Some(match oid {
        26 => DataType::Int8,
        18 | 19 | 1042 | 1043 => DataType::Text,
        _ if let Some(item) = item_oid(oid) => return data_type_of_oid(item)?.array(),
        1700 => DataType::Numeric(None),
        _ => return DataType::from_pg_oid(oid, 0),
    })
}

/// `format_type`: the SQL name of a type with its modifier. `schema`: what stands before the names of the user's.
pub(crate) fn known_type(oid: u32, typmod: Option<i32>) -> String {
    match (type_by_oid(oid), typmod) {
        (Some(t), Some(_)) if t.category == "A" && type_by_oid(t.element).is_some_and(|item| item.array == oid) => {
            format!("{}[]", known_type(t.element, typmod))
        }
        (Some(t), Some(m)) if matches!(t.oid, 1042 | 1043) && m >= 4 => format!("{}({})", t.sql_name, m - 4),
        (Some(t), Some(m)) if t.oid == 1700 && m >= 4 => {
            let scale = ((m - 4) & 0x7ff ^ 0x400) - 0x400; // Of 11 bits, with a sign.
            format!("{}({},{scale})", t.sql_name, (m - 4) >> 16)
        }
        (Some(t), Some(m)) if m >= 0 && matches!(t.oid, 1083 | 1114 | 1184 | 1186) => {
            let (first, rest) = t.sql_name.split_once(' ').map_or((t.sql_name, ""), |(first, rest)| (first, rest));
            let space = if rest.is_empty() { "" } else { " " };
            format!("{first}({}){space}{rest}", m & 0xffff)
        }
        (Some(t), _) => t.sql_name.to_owned(),
        (None, _) if oid == 0 => "-".to_owned(),
        (None, _) => "???".to_owned(),
    }
}
