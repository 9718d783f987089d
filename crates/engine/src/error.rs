//! Errors that carry an SQLSTATE.
use crate::catalog::names::Space;
use crate::catalog::{Index, Table};
use crate::types::{DataType, DatumRef};
use std::fmt::Display;
use terrace_storage::{ObjectId, StorageError};

pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// A five-character SQLSTATE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SqlState(pub &'static str);

/// Values of a table's columns that a detail shows.
#[derive(Debug, Clone)]
pub enum Shown {
    /// Those of a row: columns by their positions, with their values as texts.
    Row(Vec<(usize, String)>),
    /// Those of a key's columns; and what is told who may not read them all.
    Key(Vec<usize>, Option<String>),
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct EngineError {
    pub state: SqlState,
    pub message: String,
    pub detail: Option<String>,
    /// What of a table's rows the detail shows: who may not read that is told less.
    pub shown: Option<Box<(ObjectId, Shown)>>,
    pub hint: Option<String>,
    /// Where in the client's data it happened, e.g. `COPY t, line 3, column a: "x"`.
    pub context: Option<String>,
    /// Table, column and constraint it concerns, where there is one.
    pub table: Option<String>,
    /// Where the table is.
    pub space: Option<Space>,
    pub column: Option<String>,
    pub constraint: Option<String>,
    /// The character of the statement's text that it points at, counted from 1.
    pub position: Option<u32>,
}

impl EngineError {
    pub fn new(state: &'static str, message: impl Into<String>) -> EngineError {
        EngineError {
            state: SqlState(state),
            message: message.into(),
            detail: None,
            shown: None,
            hint: None,
            context: None,
            table: None,
            space: None,
            column: None,
            constraint: None,
            position: None,
        }
    }
    /// Points at a byte of the statement's text.
    pub fn at(mut self, sql: &str, byte: usize) -> EngineError {
        let before = sql.get(..byte).map_or(0, |before| before.chars().count());
        self.position = Some(before as u32 + 1);
        self
    }
    pub fn with_detail(mut self, detail: impl Into<String>) -> EngineError {
        self.detail = Some(detail.into());
        self
    }
    /// Says what of a table the detail shows.
    pub fn showing(mut self, table: &Table, shown: Shown) -> EngineError {
        self.shown = Some(Box::new((table.oid, shown)));
        self
    }
    pub fn with_hint(mut self, hint: impl Into<String>) -> EngineError {
        self.hint = Some(hint.into());
        self
    }
    pub fn with_context(mut self, context: impl Into<String>) -> EngineError {
        self.context = Some(context.into());
        self
    }
    pub fn on_table(mut self, table: &Table) -> EngineError {
        self.table = Some(table.name.clone());
        self.space = Some(table.space);
        self
    }
    pub fn on_column(mut self, column: &str) -> EngineError {
        self.column = Some(column.into());
        self
    }
    pub fn on_constraint(mut self, constraint: &str) -> EngineError {
        self.constraint = Some(constraint.into());
        self
    }

    // ---- values
    pub fn invalid_text(type_name: &str, text: &str) -> EngineError {
        EngineError::new("22P02", format!("invalid input syntax for type {type_name}: \"{text}\""))
    }
    pub fn out_of_range(type_name: &str) -> EngineError {
        EngineError::new("22003", format!("{type_name} out of range"))
    }
    pub(crate) fn string_too_long(data_type: DataType) -> EngineError {
        EngineError::new("22001", format!("value too long for type {data_type}"))
    }
    pub(crate) fn type_mismatch(wanted: DataType, value: DatumRef<'_>) -> EngineError {
        let given = match value {
            DatumRef::Null => "null",
            DatumRef::Bool(_) => "boolean",
            DatumRef::Int2(_) => "smallint",
            DatumRef::Int4(_) => "integer",
            DatumRef::Int8(_) => "bigint",
            DatumRef::Float4(_) => "real",
            DatumRef::Float8(_) => "double precision",
            DatumRef::Numeric(_) | DatumRef::Decimal(_) => "numeric",
            DatumRef::Text(_) => "text",
            DatumRef::Bytea(_) => "bytea",
            DatumRef::Date(_) => "date",
            DatumRef::Timestamp(_) => "timestamp without time zone",
            DatumRef::Timestamptz(_) => "timestamp with time zone",
            DatumRef::Uuid(_) => "uuid",
            DatumRef::Json(_) => "json",
            DatumRef::Jsonb(_) => "jsonb",
            DatumRef::Time(_) => "time without time zone",
            DatumRef::Interval(_) => "interval",
            DatumRef::Array(array) => DataType::Array(array.items()).base_name(),
            DatumRef::Enum(of, _) => DataType::Enum(of).base_name(),
            DatumRef::Record(record) => DataType::Composite(record.of()).base_name(),
        };
        EngineError::new("42804", format!("a value of type {given} does not fit type {wanted}"))
    }

    // ---- constraints
    pub fn not_null(table: &Table, column: &str, row: Vec<(usize, String)>) -> EngineError {
        EngineError::new(
            "23502",
            format!("null value in column \"{column}\" of relation \"{}\" violates not-null constraint", table.name),
        )
        .with_row(table, row)
        .on_table(table)
        .on_column(column)
    }
    /// Shows the row that was refused.
    pub fn with_row(self, table: &Table, row: Vec<(usize, String)>) -> EngineError {
        let values: Vec<&str> = row.iter().map(|(_, value)| value.as_str()).collect();
        let detail = format!("Failing row contains ({}).", values.join(", "));
        self.with_detail(detail).showing(table, Shown::Row(row))
    }
    /// `key` reads `(a, b)=(1, x)`.
    pub(crate) fn duplicate_key(table: &Table, index: &Index, key: impl Display) -> EngineError {
        EngineError::new("23505", format!("duplicate key value violates unique constraint \"{}\"", index.name))
            .with_detail(format!("Key {key} already exists."))
            .showing(table, Shown::Key(index.keys().to_vec(), None))
            .on_table(table)
            .on_constraint(&index.name)
    }
    pub(crate) fn cannot_create_unique(table: &Table, index: &str, key: impl Display) -> EngineError {
        EngineError::new("23505", format!("could not create unique index \"{index}\""))
            .with_detail(format!("Key {key} is duplicated."))
            .on_table(table)
            .on_constraint(index)
    }

    // ---- names
    pub(crate) fn duplicate_relation(name: &str) -> EngineError {
        EngineError::new("42P07", format!("relation \"{name}\" already exists"))
    }
    pub(crate) fn duplicate_column(name: &str) -> EngineError {
        EngineError::new("42701", format!("column \"{name}\" specified more than once"))
    }
    pub fn undefined_table(name: &str) -> EngineError {
        EngineError::new("42P01", format!("relation \"{name}\" does not exist"))
    }
    pub fn undefined_column(name: &str) -> EngineError {
        EngineError::new("42703", format!("column \"{name}\" does not exist"))
    }
    pub(crate) fn undefined_index(name: &str) -> EngineError {
        EngineError::new("42704", format!("index \"{name}\" does not exist"))
    }
    pub(crate) fn too_many_columns(limit: usize) -> EngineError {
        EngineError::new("54011", format!("tables can have at most {limit} columns"))
    }

    // ---- transactions
    pub fn deadlock() -> EngineError {
        EngineError::new("40P01", "deadlock detected").with_hint("Run the transaction again.")
    }
    pub(crate) fn serialization() -> EngineError {
        EngineError::new("40001", "could not serialize access due to concurrent update")
            .with_hint("Run the transaction again.")
    }
    /// Of serialisable transactions (`serializable`).
    pub(crate) fn dependencies(reason: &str) -> EngineError {
        let message = "could not serialize access due to read/write dependencies among transactions";
        EngineError::new("40001", message)
            .with_detail(format!("Reason code: {reason}"))
            .with_hint("The transaction might succeed if retried.")
    }
    /// Of bytes that are no UTF-8: names the first that is wrong.
    pub fn not_utf8(bytes: &[u8]) -> EngineError {
        let at = std::str::from_utf8(bytes).map_or_else(|e| e.valid_up_to(), |_| 0);
        // As many as its first byte says.
        let length = match bytes.get(at) {
            Some(0xc0..=0xdf) => 2,
            Some(0xe0..=0xef) => 3,
            Some(0xf0..=0xf7) => 4,
            _ => 1,
        };
        let shown: Vec<String> = bytes.iter().skip(at).take(length).map(|byte| format!("0x{byte:02x}")).collect();
        EngineError::new("22021", format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" ")))
    }
    pub fn lock_timeout() -> EngineError {
        EngineError::new("55P03", "canceling statement due to lock timeout")
    }
    /// LOCK TABLE ... NOWAIT of a table that somebody else has locked.
    pub(crate) fn table_locked(table: &str) -> EngineError {
        EngineError::new("55P03", format!("could not obtain lock on relation \"{table}\""))
    }

    /// NOWAIT.
    pub(crate) fn lock_not_available(table: &Table) -> EngineError {
        let message = format!("could not obtain lock on row in relation \"{}\"", table.name);
        EngineError::new("55P03", message).on_table(table)
    }
    pub(crate) fn too_many_row_locks(limit: usize) -> EngineError {
        EngineError::new("53200", format!("out of memory for row locks: {limit} rows are locked without being changed"))
            .with_hint("Lock fewer rows in one transaction, or update them.")
    }
    pub(crate) fn too_many_advisory_locks(limit: usize) -> EngineError {
        EngineError::new("53200", format!("out of shared memory: there are {limit} advisory locks already"))
            .with_hint("Release some with pg_advisory_unlock, or end transactions that have some.")
    }
    pub(crate) fn snapshot_too_old() -> EngineError {
        EngineError::new("72000", "snapshot too old")
            .with_hint("Run the transaction again, or raise the limits on undo.")
    }

    // ---- the rest
    pub fn unsupported(message: impl Into<String>) -> EngineError {
        EngineError::new("0A000", message)
    }
    /// Stored bytes that are not what this program writes.
    pub fn damaged(message: impl Into<String>) -> EngineError {
        EngineError::new("XX001", message)
    }
    pub fn internal(message: impl Into<String>) -> EngineError {
        EngineError::new("XX000", message)
    }
}

impl From<StorageError> for EngineError {
    fn from(e: StorageError) -> EngineError {
        let state = match &e {
            StorageError::SpaceFull { .. } | StorageError::LogFull(_) | StorageError::UndoFull(_) => "53100",
            StorageError::PoolExhausted(_) => "53200",
            StorageError::KeyTooLong { .. } | StorageError::RowTooLong { .. } => "54000",
            StorageError::BadPage { .. } | StorageError::LostWrite { .. } | StorageError::Damaged(_) => "XX001",
            StorageError::Device(_) => "58030",
            StorageError::Busy(_) => "55006",
            StorageError::Config(_) => "22023",
            StorageError::ShuttingDown => "57P01",
            _ => "XX000",
        };
        EngineError::new(state, e.to_string())
    }
}
