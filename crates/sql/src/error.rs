//! From DataFusion's errors to errors with SQLSTATE.
//!
//! 1. An [`EngineError`] raised below DataFusion comes out as it went in: it travels as `DataFusionError::External`.
//! 2. Everything else is classified, first by type, then (DataFusion has no codes) by message; what stays unknown is
//!    XX000.
//! 3. No message shows the names that tell columns apart within a plan.
mod planning;

use datafusion::arrow::error::ArrowError;
use datafusion::common::{DataFusionError, SchemaError};
use terrace_engine::EngineError;
use terrace_engine::{Among, RelationName};

/// `0A000 ... is not supported yet`.
pub(crate) fn unsupported(what: impl std::fmt::Display) -> EngineError {
    EngineError::new("0A000", format!("{what} is not supported yet"))
}

/// Wraps an engine error so that it passes through DataFusion.
pub(crate) fn tunnel(error: EngineError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

pub(crate) fn from_datafusion(error: DataFusionError) -> EngineError {
    let mut error = told(error);
    if let "XX000" | "22007" = error.state.0
        && let Some(refused) = planning::lost(&error.message)
    {
        error = refused;
    }
    // Invariant 3.
    for text in std::iter::once(&mut error.message).chain(&mut error.detail).chain(&mut error.hint) {
        if text.contains('\0') {
            *text = without_marks(text);
        }
    }
    error
}

/// Names within a plan are told apart by a number behind a NUL; functions that no user can call begin with one.
fn without_marks(message: &str) -> String {
    let mut parts = message.split('\0');
    let mut made = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|part| made.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit())));
    made
}

fn told(error: DataFusionError) -> EngineError {
    if is_full(&error) {
        return no_temporary_space();
    }
    match error {
        DataFusionError::External(inner) => match inner.downcast::<EngineError>() {
            Ok(engine) => *engine,
            Err(other) => match other.downcast::<DataFusionError>() {
                Ok(nested) => told(*nested),
                Err(other) => EngineError::new("XX000", other.to_string()),
            },
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => told(*inner),
        DataFusionError::Shared(inner) => from_shared(&inner),
        DataFusionError::Collection(mut all) if !all.is_empty() => told(all.swap_remove(0)),
        DataFusionError::ArrowError(arrow, _) => from_arrow(*arrow),
        DataFusionError::SchemaError(schema, _) => from_schema(*schema),
        DataFusionError::NotImplemented(message) => planning::not_implemented(&message),
        DataFusionError::Plan(message) | DataFusionError::Execution(message) => from_message(&message, "42601"),
        DataFusionError::ResourcesExhausted(message) => exhausted(&message),
        DataFusionError::IoError(io) => EngineError::new("58030", io.to_string()),
        other => from_message(&other.to_string(), "XX000"),
    }
}

/// An error that several readers share cannot be moved out of: the engine's are cloned, the others read as text.
fn from_shared(error: &DataFusionError) -> EngineError {
    match error {
        DataFusionError::External(inner) => match inner.downcast_ref::<EngineError>() {
            Some(engine) => engine.clone(),
            None => EngineError::new("XX000", inner.to_string()),
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => from_shared(inner),
        DataFusionError::Shared(inner) => from_shared(inner),
        DataFusionError::ResourcesExhausted(message) => exhausted(message),
        DataFusionError::ArrowError(arrow, _) => match arrow.as_ref() {
            ArrowError::DivideByZero => EngineError::new("22012", "division by zero"),
            ArrowError::ExternalError(inner) => match inner.downcast_ref::<EngineError>() {
                Some(engine) => engine.clone(),
                None => EngineError::new("XX000", inner.to_string()),
            },
            other => from_cast_message(&other.to_string()),
        },
        other => from_message(&other.to_string(), "XX000"),
    }
}

/// Whether a device had no room for a temporary file: DataFusion wraps what the system says in an error of its own,
/// that in one of the system's, and that in one of Arrow's. (The engine's errors are not looked into: they say what
/// they are.)
fn is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match error.downcast_ref::<std::io::Error>() {
        // Its own source is that of what it wraps, not what it wraps.
        Some(io) => {
            matches!(io.kind(), StorageFull | QuotaExceeded | FileTooLarge) || io.get_ref().is_some_and(|e| is_full(e))
        }
        None => !error.is::<EngineError>() && error.source().is_some_and(is_full),
    }
}

pub(crate) fn from_arrow(error: ArrowError) -> EngineError {
    if is_full(&error) {
        return no_temporary_space();
    }
    match error {
        ArrowError::DivideByZero => EngineError::new("22012", "division by zero"),
        ArrowError::ArithmeticOverflow(message) => overflow(&message),
        ArrowError::ExternalError(inner) => match inner.downcast::<EngineError>() {
            Ok(engine) => *engine,
            Err(other) => match other.downcast::<DataFusionError>() {
                Ok(nested) => from_datafusion(*nested),
                Err(other) => EngineError::new("XX000", other.to_string()),
            },
        },
        ArrowError::IoError(message, _) if message.contains("disk space") => no_temporary_space(),
        ArrowError::IoError(message, _) => EngineError::new("58030", message),
        ArrowError::NotYetImplemented(message) => EngineError::new("0A000", message),
        ArrowError::CastError(message) | ArrowError::ParseError(message) => from_cast_message(&message),
        ArrowError::InvalidArgumentError(message) => {
            planning::lost(&message).unwrap_or_else(|| from_cast_message(&format!("Invalid argument error: {message}")))
        }
        ArrowError::OffsetOverflowError(_) => EngineError::new("54000", "text of a batch exceeds 2 GB"),
        other => from_cast_message(&other.to_string()),
    }
}

fn from_schema(error: SchemaError) -> EngineError {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            if let Some(table) = &field.relation
                && !valid_fields.iter().any(|valid| valid.relation.as_ref() == Some(table))
            {
                let message = format!("missing FROM-clause entry for table \"{}\"", table.table());
                return EngineError::new("42P01", message);
            }
            let name = match &field.relation {
                Some(relation) => format!("{}.{}", relation.table(), field.name),
                None => format!("\"{}\"", field.name),
            };
            EngineError::new("42703", format!("column {name} does not exist"))
        }
        SchemaError::AmbiguousReference { field } => {
            EngineError::new("42702", format!("column reference \"{}\" is ambiguous", field.name))
        }
        SchemaError::DuplicateQualifiedField { qualifier, .. } => {
            let message = format!("table name \"{}\" specified more than once", qualifier.table());
            EngineError::new("42712", message)
        }
        SchemaError::DuplicateUnqualifiedField { name } => {
            EngineError::new("42701", format!("column \"{name}\" specified more than once"))
        }
    }
}

/// No memory, or no room for the files that stand in for it.
fn exhausted(message: &str) -> EngineError {
    if message.contains("disk space") {
        return no_temporary_space();
    }
    no_memory(strip(message))
}

pub(crate) fn no_memory(detail: String) -> EngineError {
    let mut error = EngineError::new("53200", "out of memory: the query needs more than it may have");
    error.detail = Some(detail);
    error.hint = Some("raise memory.queries in terrace.toml, or let fewer queries run at a time".into());
    error
}

fn no_temporary_space() -> EngineError {
    let mut error = EngineError::new("53100", "no room for temporary files: the query sorts or groups too much");
    error.hint = Some("raise tablespaces.temp.capacity in terrace.toml, or make room on its device".into());
    error
}

fn overflow(message: &str) -> EngineError {
    let kind = if message.contains("Int32") || message.contains("i32") { "integer" } else { "bigint" };
    EngineError::new("22003", format!("{kind} out of range"))
}

fn from_cast_message(message: &str) -> EngineError {
    let lower = message.to_lowercase();
    if lower.contains("disk space") {
        no_temporary_space()
    } else if lower.contains("divide by zero") {
        EngineError::new("22012", "division by zero")
    } else if lower.contains("overflow") || lower.contains("can't cast value") || lower.contains("out of range") {
        let range = if message.contains("Int32") { "integer out of range" } else { "value out of range" };
        EngineError::new("22003", range)
    } else if lower.contains("timestamp") || lower.contains("date") || lower.contains("time") {
        EngineError::new("22007", strip(message))
    } else if lower.contains("cannot cast string") || lower.contains("cast") {
        EngineError::new("22P02", invalid_text(message))
    } else {
        EngineError::new("XX000", strip(message))
    }
}

/// "Cannot cast string 'abc' to value of Int32 type" as PostgreSQL says it.
fn invalid_text(message: &str) -> String {
    let mut quoted = message.splitn(3, '\'');
    let (Some(_), Some(value)) = (quoted.next(), quoted.next()) else { return strip(message) };
    let kind = match message {
        m if m.contains("Int32") => "integer",
        m if m.contains("Int64") => "bigint",
        m if m.contains("Float64") => "double precision",
        m if m.contains("Boolean") => "boolean",
        _ => return strip(message),
    };
    format!("invalid input syntax for type {kind}: \"{value}\"")
}

fn from_message(message: &str, otherwise: &'static str) -> EngineError {
    if let Some(error) = planning::error(message) {
        return error;
    }
    let lower = message.to_lowercase();
    let has = |needle: &str| lower.contains(needle);
    let state = if has("divide by zero") {
        return EngineError::new("22012", "division by zero");
    } else if has("async functions should not be called") {
        return unsupported("pg_sleep or pg_advisory_lock outside of SELECT lists and WHERE");
    } else if has("overflow") && !has("stack") {
        return overflow(message);
    } else if ["invalid function", "no function matches", "cannot infer common argument type"].iter().any(|n| has(n))
        || ["coerce", "coercion", "does not support"].iter().any(|n| has(n))
    {
        "42883"
    } else if has("correlated scalar subquery") {
        "0A000"
    } else if has("group by") || has("aggregat") {
        "42803"
    } else if has("no field named") || has("column not found") {
        "42703"
    } else if has("recursion") || has("too deep") {
        "54001"
    } else if has("unsupported") || has("not supported") || has("not implemented") {
        "0A000"
    } else if has("cannot cast") || has("can't cast") || has("error parsing") {
        return from_cast_message(message);
    } else if has("scalar subquery") && has("more than one row") {
        "21000"
    } else if has("placeholder") {
        "42P18"
    } else {
        otherwise
    };
    EngineError::new(state, strip(message))
}

/// Drops DataFusion's prefixes and its request to file a bug.
fn strip(message: &str) -> String {
    let first = message.split("\n\nbacktrace:").next().unwrap_or(message);
    let first = first.split(".\nThis issue was likely caused by a bug").next().unwrap_or(first);
    let mut text = first;
    for prefix in ["Error during planning: ", "Execution error: ", "This feature is not implemented: ", "Arrow error: "]
    {
        text = text.strip_prefix(prefix).unwrap_or(text);
    }
    text.trim().to_string()
}

#[cfg(test)]
mod tests;

pub(crate) fn undefined_table(name: impl std::fmt::Display) -> EngineError {
    EngineError::new("42P01", format!("relation \"{name}\" does not exist"))
}

pub(crate) fn undefined_schema(name: impl std::fmt::Display) -> EngineError {
    EngineError::new("3F000", format!("schema \"{name}\" does not exist"))
}

/// A name that is no relation's: 42P01, or 3F000 where its schema is none. (Queries say 42P01 of either.)
pub(crate) fn missing_relation(catalog: &terrace_engine::Catalog, name: &RelationName) -> EngineError {
    match &name.among {
        Among::Schema(schema) if catalog.schema(schema).is_none() => undefined_schema(schema),
        _ => undefined_table(name),
    }
}

/// A name that is no table's: 42P01, or 0A000 where it is a view's.
pub(crate) fn no_table(catalog: &terrace_engine::Catalog, name: &RelationName) -> EngineError {
    match catalog.view(name) {
        Some(_) => unsupported(format!("this statement for the view \"{name}\"")),
        None => undefined_table(name),
    }
}

pub(crate) fn undefined_column(column: &str, table: &str) -> EngineError {
    let mut error = EngineError::new("42703", format!("column \"{column}\" of relation \"{table}\" does not exist"));
    error.column = Some(column.into());
    error.table = Some(table.into());
    error
}
