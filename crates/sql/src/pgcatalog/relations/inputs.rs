//! Functions that read a type's values, by which drivers tell arrays and enums from other types. Their OIDs are
//! PostgreSQL 15's; some of them have no rows in pg_proc.
use super::PgType;

const ARRAY: u32 = 750;
const ENUM: u32 = 3506;
const RECORD: u32 = 2290;
/// Of domains.
pub(super) const DOMAIN: u32 = 2597;

/// Types, and what reads their values; those without a type read values of many.
const INPUTS: [(u32, u32, &str); 32] = [
    (0, ARRAY, "array_in"),
    (0, ENUM, "enum_in"),
    (0, RECORD, "record_in"),
    (0, DOMAIN, "domain_in"),
    (16, 1242, "boolin"),
    (17, 1244, "byteain"),
    (18, 1245, "charin"),
    (19, 34, "namein"),
    (20, 460, "int8in"),
    (21, 38, "int2in"),
    (22, 40, "int2vectorin"),
    (23, 42, "int4in"),
    (24, 44, "regprocin"),
    (25, 46, "textin"),
    (26, 1798, "oidin"),
    (28, 50, "xidin"),
    (30, 54, "oidvectorin"),
    (114, 321, "json_in"),
    (194, 195, "pg_node_tree_in"),
    (700, 200, "float4in"),
    (701, 214, "float8in"),
    (1042, 1044, "bpcharin"),
    (1043, 1046, "varcharin"),
    (1082, 1084, "date_in"),
    (1083, 1143, "time_in"),
    (1114, 1312, "timestamp_in"),
    (1184, 1150, "timestamptz_in"),
    (1186, 1160, "interval_in"),
    (1700, 1701, "numeric_in"),
    (2205, 2218, "regclassin"),
    (2950, 2952, "uuid_in"),
    (3802, 3806, "jsonb_in"),
];

/// pg_type.typinput; 0 where it is not known.
pub(super) fn of_type(of: &PgType) -> u32 {
    let known = INPUTS.iter().find(|input| input.0 == of.oid && of.oid != 0);
    match (known, of.category) {
        (Some(input), _) => input.1,
        (None, "A") => ARRAY,
        (None, "E") => ENUM,
        (None, "C") => RECORD,
        _ => 0,
    }
}

/// The OID of the function of that name, if it is one of these.
pub(super) fn called(name: &str) -> Option<u32> {
    INPUTS.iter().find(|input| input.2 == name).map(|input| input.1)
}

/// A function's name; of others, the number, and `-` of none.
pub(super) fn shown(oid: u32) -> String {
    let known = INPUTS.iter().find(|input| input.1 == oid);
    known.map_or_else(|| if oid == 0 { "-".to_owned() } else { oid.to_string() }, |input| input.2.to_owned())
}
