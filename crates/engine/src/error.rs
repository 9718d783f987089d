//! Errors that carry an SQLSTATE.
use terrace_storage::StorageError;

pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// A five-character SQLSTATE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SqlState(pub &'static str);

#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct EngineError {
    pub state: SqlState,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// Table, column and constraint it concerns, where there is one.
    pub table: Option<String>,
    pub column: Option<String>,
    pub constraint: Option<String>,
}

impl EngineError {
    pub fn new(state: &'static str, message: impl Into<String>) -> EngineError {
        EngineError {
            state: SqlState(state),
            message: message.into(),
            detail: None,
            hint: None,
            table: None,
            column: None,
            constraint: None,
        }
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
            StorageError::ShuttingDown => "57P01",
            _ => "XX000",
        };
        EngineError::new(state, e.to_string())
    }
}
