//! Operator classes: how values of each type are ordered, which is the only way. Their OIDs are PostgreSQL 15's.
use super::*;
use terrace_engine::DataType;

/// OID, name, family, and the type that is ordered.
const CLASSES: [(u32, &str, u32, u32); 21] = [
    (1978, "int4_ops", 1976, 23),
    (1979, "int2_ops", 1976, 21),
    (1981, "oid_ops", 1989, 26),
    (3122, "date_ops", 434, 1082),
    (3123, "float8_ops", 1970, 701),
    (3124, "int8_ops", 1976, 20),
    (3125, "numeric_ops", 1988, 1700),
    (TEXT_OPS, "text_ops", 1994, 25),
    (3127, "timestamptz_ops", 434, 1184),
    (3128, "timestamp_ops", 434, 1114),
    (ARRAY_OPS, "array_ops", 397, 2277),
    (10003, "bool_ops", 424, 16),
    (10004, "bpchar_ops", 426, 1042),
    (10006, "bytea_ops", 428, 17),
    (10012, "float4_ops", 1970, 700),
    (10022, "interval_ops", 1982, 1186),
    (RECORD_OPS, "record_ops", 2994, 2249),
    (10038, "time_ops", 1996, 1083),
    (10065, "uuid_ops", 2968, 2950),
    (ENUM_OPS, "enum_ops", 3522, 3500),
    (10088, "jsonb_ops", 4033, 3802),
];
const TEXT_OPS: u32 = 3126;
const ARRAY_OPS: u32 = 10000;
const RECORD_OPS: u32 = 10034;
const ENUM_OPS: u32 = 10069;

/// The rows of pg_opclass.
pub(super) fn rows() -> Vec<Row> {
    let class = |(oid, name, family, of): (u32, &str, u32, u32)| {
        row! {
            oid: oid, opcmethod: BTREE_AM_OID, opcname: name, opcnamespace: PG_CATALOG_OID, opcowner: OWNER_OID,
            opcfamily: family, opcintype: of, opcdefault: true, opckeytype: 0u32,
        }
    };
    CLASSES.into_iter().map(class).collect()
}

/// The class by which values of a type are ordered.
pub(super) fn of_type(of: DataType) -> u32 {
    match of {
        DataType::Enum(_) => ENUM_OPS,
        DataType::Composite(_) => RECORD_OPS,
        of if of.item().is_some() => ARRAY_OPS,
        of => {
            let oid = PgType::of(of).oid;
            CLASSES.iter().find(|class| class.3 == oid).map_or(TEXT_OPS, |class| class.0)
        }
    }
}
