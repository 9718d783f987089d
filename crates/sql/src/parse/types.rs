//! The names of types: from SQL's to the engine's. What PostgreSQL has and Terrace has not is refused with a type to
//! use instead.
use crate::error::unsupported;
use datafusion::sql::sqlparser::ast::{
    CharacterLength, DataType as SqlType, ExactNumberInfo, ObjectName, TimezoneInfo,
};
use terrace_engine::{DataType, EngineError, Result};
use terrace_grammar::statement::{ExprKind, Literal, TypeName};

/// The type that a name stands for, as far as there is one.
pub(crate) fn data_type(name: &TypeName) -> Result<DataType> {
    if name.set_of || name.of_column {
        return Err(unsupported(format!("the type {}", shown(name))));
    }
    let modifier = |expr: &terrace_grammar::statement::Expr| match &expr.kind {
        ExprKind::Literal(Literal::Int(value)) => Some(*value),
        _ => None,
    };
    let modifiers: Option<Vec<i64>> = name.modifiers.iter().map(modifier).collect();
    let modifiers = modifiers.ok_or_else(|| EngineError::new("42601", "type modifiers must be simple constants"))?;
    let plain = if name.dimensions.is_empty() { own_name(name) } else { None };
    Ok(match (plain, modifiers.as_slice()) {
        (Some("int2"), []) => DataType::Int2,
        (Some("int4"), []) => DataType::Int4,
        (Some("int8"), []) => DataType::Int8,
        (Some("float4"), []) => DataType::Float4,
        (Some("float8"), []) => DataType::Float8,
        (Some("bool"), []) => DataType::Bool,
        (Some("text"), []) => DataType::Text,
        (Some("bytea"), []) => DataType::Bytea,
        (Some("date"), []) => DataType::Date,
        (Some("uuid"), []) => DataType::Uuid,
        (Some("timestamp"), [] | [6]) => DataType::Timestamp,
        (Some("timestamptz"), [] | [6]) => DataType::Timestamptz,
        (Some("numeric"), []) => DataType::Numeric(None),
        (Some("numeric"), [precision]) => exact(*precision, 0)?,
        (Some("numeric"), [precision, scale]) => exact(*precision, *scale)?,
        (Some("varchar"), []) => DataType::Varchar(0),
        (Some("varchar"), [length]) => of_length("varchar", *length)?,
        (Some("bpchar"), [length]) => of_length("char", *length)?,
        // As long as the value, and compared without its blanks: there is no such type here. char(1) would cut values.
        (Some("bpchar"), []) => {
            return Err(unsupported("bpchar without a length").with_hint("Use char(n), or text."));
        }
        _ => return Err(no_type(name)),
    })
}

/// The name of a type that is one of the system's, without the schema.
fn own_name(name: &TypeName) -> Option<&str> {
    match name.name.parts() {
        [own] => Some(&own.name),
        [schema, own] if schema.name == "pg_catalog" => Some(&own.name),
        _ => None,
    }
}

/// The type as messages show it.
fn shown(name: &TypeName) -> String {
    let own = match own_name(name) {
        Some("int4") => "integer",
        Some("int8") => "bigint",
        Some("int2") => "smallint",
        Some("float8") => "double precision",
        Some("float4") => "real",
        Some("bool") => "boolean",
        Some("varbit") => "bit varying",
        Some("timetz") => "time with time zone",
        Some("timestamptz") => "timestamp with time zone",
        Some(own) => own,
        None => return name.name.shown(),
    };
    format!("{own}{}", "[]".repeat(name.dimensions.len()))
}

fn exact(precision: i64, scale: i64) -> Result<DataType> {
    if (39..=1000).contains(&precision) {
        let error = unsupported(format!("numeric of precision {precision}"));
        return Err(error.with_hint("Use a precision of at most 38."));
    }
    let outside = |what: &str, value: i64, limits: &str| {
        EngineError::new("22023", format!("NUMERIC {what} {value} must be between {limits}"))
    };
    let narrow = u8::try_from(precision).map_err(|_| outside("precision", precision, "1 and 1000"))?;
    let small = u8::try_from(scale).map_err(|_| outside("scale", scale, &format!("0 and precision {precision}")))?;
    let data_type = DataType::Numeric(Some((narrow, small)));
    data_type.check().map(|()| data_type)
}

fn of_length(name: &str, length: i64) -> Result<DataType> {
    if length < 1 {
        // The engine's varchar of length 0 is one without a length.
        return Err(EngineError::new("22023", format!("length for type {name} must be at least 1")));
    }
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let data_type = if name == "char" { DataType::Char(length) } else { DataType::Varchar(length) };
    data_type.check().map(|()| data_type)
}

fn no_type(name: &TypeName) -> EngineError {
    let use_instead = match own_name(name) {
        Some("serial" | "serial2" | "serial4" | "serial8" | "smallserial" | "bigserial") => {
            "bigint, with keys from the client"
        }
        Some("timestamp") => "timestamp without time zone",
        Some("timestamptz") => "timestamp with time zone",
        Some("time" | "timetz") => "timestamp or text",
        Some(own) if DATA_TYPES.contains(&own) => "text",
        _ => return EngineError::new("42704", format!("type \"{}\" does not exist", shown(name))),
    };
    unsupported(format!("type {}", shown(name))).with_hint(format!("Use {use_instead}."))
}

/// Types of PostgreSQL that are none here, and those that are, for arrays of them.
const DATA_TYPES: &[&str] = &[
    "bit",
    "bool",
    "box",
    "bpchar",
    "bytea",
    "char",
    "cid",
    "cidr",
    "circle",
    "citext",
    "date",
    "daterange",
    "float4",
    "float8",
    "hstore",
    "inet",
    "int2",
    "int2vector",
    "int4",
    "int4range",
    "int8",
    "int8range",
    "interval",
    "json",
    "jsonb",
    "jsonpath",
    "line",
    "lseg",
    "macaddr",
    "macaddr8",
    "money",
    "name",
    "numeric",
    "numrange",
    "oid",
    "oidvector",
    "path",
    "pg_lsn",
    "pg_snapshot",
    "point",
    "polygon",
    "refcursor",
    "regclass",
    "regcollation",
    "regconfig",
    "regdictionary",
    "regnamespace",
    "regoper",
    "regoperator",
    "regproc",
    "regprocedure",
    "regrole",
    "regtype",
    "text",
    "tid",
    "tsquery",
    "tsrange",
    "tstzrange",
    "tsvector",
    "txid_snapshot",
    "uuid",
    "varbit",
    "varchar",
    "xid",
    "xid8",
    "xml",
];

/// The type of a column or a cast, as far as there is one.
pub(crate) fn column_type(sql: &SqlType) -> Result<DataType> {
    Ok(match sql {
        SqlType::Int(None) | SqlType::Integer(None) | SqlType::Int4(None) => DataType::Int4,
        SqlType::BigInt(None) | SqlType::Int8(None) => DataType::Int8,
        SqlType::DoublePrecision | SqlType::Float8 | SqlType::Float(ExactNumberInfo::None) => DataType::Float8,
        SqlType::Float(ExactNumberInfo::Precision(25..=53)) => DataType::Float8,
        SqlType::Bool | SqlType::Boolean => DataType::Bool,
        SqlType::Text => DataType::Text,
        SqlType::Varchar(None) | SqlType::CharacterVarying(None) => DataType::Varchar(0),
        SqlType::SmallInt(None) | SqlType::Int2(None) => DataType::Int2,
        SqlType::Real | SqlType::Float4 | SqlType::Float(ExactNumberInfo::Precision(1..=24)) => DataType::Float4,
        SqlType::Numeric(digits) | SqlType::Decimal(digits) | SqlType::Dec(digits) => numeric(digits)?,
        SqlType::Varchar(Some(length)) | SqlType::CharacterVarying(Some(length)) => text_of("varchar", length)?,
        SqlType::Char(None) | SqlType::Character(None) => DataType::Char(1),
        SqlType::Char(Some(length)) | SqlType::Character(Some(length)) => text_of("char", length)?,
        SqlType::Bytea => DataType::Bytea,
        SqlType::Date => DataType::Date,
        SqlType::Timestamp(None | Some(6), TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => DataType::Timestamp,
        SqlType::Timestamp(None | Some(6), TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => DataType::Timestamptz,
        SqlType::TimestampNtz(None | Some(6)) => DataType::Timestamp,
        SqlType::Uuid => DataType::Uuid,
        SqlType::Custom(name, modifiers) => custom(name, modifiers, sql)?,
        other => return Err(unknown_type(other)),
    })
}

/// Names that the parser leaves open.
fn custom(name: &ObjectName, modifiers: &[String], sql: &SqlType) -> Result<DataType> {
    let name = name.to_string().to_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    Ok(match (name, modifiers.len()) {
        ("int2", 0) => DataType::Int2,
        ("int4", 0) => DataType::Int4,
        ("int8", 0) => DataType::Int8,
        ("bool", 0) => DataType::Bool,
        ("text", 0) => DataType::Text,
        ("float4", 0) => DataType::Float4,
        ("float8", 0) => DataType::Float8,
        ("bytea", 0) => DataType::Bytea,
        ("timestamptz", 0) => DataType::Timestamptz,
        ("uuid", 0) => DataType::Uuid,
        // As long as the value, and compared without its blanks: there is no such type here. char(1) would cut values.
        ("bpchar", 0) => {
            let mut error = unsupported("bpchar without a length");
            error.hint = Some("Use char(n), or text.".into());
            return Err(error);
        }
        ("bpchar", 1) => match modifiers[0].parse() {
            Ok(length) => text_of("char", &CharacterLength::IntegerLength { length, unit: None })?,
            Err(_) => return Err(unknown_type(sql)),
        },
        _ => return Err(unknown_type(sql)),
    })
}

fn numeric(digits: &ExactNumberInfo) -> Result<DataType> {
    let (precision, scale) = match digits {
        ExactNumberInfo::None => return Ok(DataType::Numeric(None)),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    if (39..=1000).contains(&precision) {
        let mut error = unsupported(format!("numeric of precision {precision}"));
        error.hint = Some("Use a precision of at most 38.".into());
        return Err(error);
    }
    let outside = |what: &str, value: &dyn std::fmt::Display, limits: &str| {
        EngineError::new("22023", format!("NUMERIC {what} {value} must be between {limits}"))
    };
    let narrow = u8::try_from(precision).map_err(|_| outside("precision", &precision, "1 and 1000"))?;
    let small = u8::try_from(scale).map_err(|_| outside("scale", &scale, &format!("0 and precision {precision}")))?;
    let data_type = DataType::Numeric(Some((narrow, small)));
    data_type.check().map(|()| data_type)
}

fn text_of(name: &str, length: &CharacterLength) -> Result<DataType> {
    match length {
        CharacterLength::IntegerLength { length, unit: None } => {
            let length = u32::try_from(*length).unwrap_or(u32::MAX);
            if length == 0 {
                // The engine's varchar of length 0 is one without a length.
                return Err(EngineError::new("22023", format!("length for type {name} must be at least 1")));
            }
            let data_type = if name == "char" { DataType::Char(length) } else { DataType::Varchar(length) };
            data_type.check().map(|()| data_type)
        }
        _ => Err(EngineError::new("22023", format!("length for type {name} must be a number of characters"))),
    }
}

fn unknown_type(sql: &SqlType) -> EngineError {
    let name = sql.to_string().to_lowercase();
    let use_instead = match sql {
        SqlType::TinyInt(_) => "smallint",
        SqlType::Float(_) => "double precision",
        SqlType::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => "timestamp with time zone",
        SqlType::Timestamp(..) => "timestamp without time zone",
        SqlType::Time(..) => "timestamp or text",
        SqlType::Custom(custom, _) => match custom.to_string().to_lowercase().as_str() {
            "serial" | "bigserial" | "smallserial" => "bigint, with keys from the client",
            known if KNOWN_TYPES.contains(&known) => "text",
            _ => return EngineError::new("42704", format!("type \"{name}\" does not exist")),
        },
        _ => "text",
    };
    let mut error = unsupported(format!("type {name}"));
    error.hint = Some(format!("Use {use_instead}."));
    error
}

/// Types of PostgreSQL that the parser does not name.
const KNOWN_TYPES: &[&str] = &[
    "citext", "inet", "cidr", "macaddr", "money", "name", "oid", "point", "box", "xml", "tsvector", "tsquery", "hstore",
];
