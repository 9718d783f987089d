//! Locks on tables and turns on rows.

/// Table lock modes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMode {
    /// Reads rows.
    AccessShare,
    /// Writes rows.
    RowExclusive,
    /// Reads all rows while nobody writes (CREATE INDEX).
    Share,
    /// Alone (DROP, ALTER).
    AccessExclusive,
}
