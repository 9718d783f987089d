//! What can go wrong in storage, each with the thing, the value and the way out.

use crate::types::{Lsn, ObjectId, PageId};
use terrace_device::DeviceError;

pub type Result<T, E = StorageError> = std::result::Result<T, E>;

/// Why a page's bytes are not to be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPage {
    #[error("it was never written (all zeros)")]
    Blank,
    #[error("checksum is {found:08x}, contents give {computed:08x}")]
    Checksum { found: u32, computed: u32 },
    #[error("it says it is page {found}")]
    WrongId { found: PageId },
    #[error("format version {0} is unknown; run the version of terrace that wrote it")]
    Version(u8),
    #[error("kind {0} is unknown")]
    Kind(u8),
    #[error("its LSN {0} is beyond the end of the log")]
    FutureLsn(Lsn),
    #[error("its directory points outside the page")]
    Directory,
    #[error("its sectors cannot be read")]
    Unreadable,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum StorageError {
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Where the log reaches back far enough the page is made again from it instead.
    #[error(
        "page {page} of tablespace {} is damaged: {why}; the log cannot make it again: restore the database from a \
         backup",
        page.space.name()
    )]
    BadPage { page: PageId, why: BadPage },
    /// What the disk has of the page is older than it must be; or nobody knows how new it must be, so that it may be.
    #[error("{}", lost_write(*page, *found, *expected))]
    LostWrite { page: PageId, found: Lsn, expected: Option<Lsn> },
    #[error("tablespace {space} has no room for another extent: {device}")]
    SpaceFull { space: u16, device: String },
    #[error("the log device is full: {0}")]
    LogFull(String),
    #[error("undo space is full: {0}")]
    UndoFull(String),
    #[error("all {0} pages of the buffer pool are pinned; raise `memory.pool`")]
    PoolExhausted(usize),
    #[error("the log failed and the server must restart: {0}")]
    LogFailed(String),
    /// A mistake in this program: it cannot be gone on from.
    #[error("the background task \"{name}\" failed, and storage stopped; a restart recovers: {said}")]
    TaskPanicked { name: &'static str, said: String },
    #[error("index key of {len} bytes exceeds the limit of {limit}")]
    KeyTooLong { len: usize, limit: usize },
    #[error("row of {len} bytes exceeds the limit of {limit}")]
    RowTooLong { len: usize, limit: usize },
    #[error("{file}: {problem}")]
    Foreign { file: String, problem: String },
    #[error("{0} does not exist in storage")]
    NoObject(ObjectId),
    /// Settings that cannot be; nothing was changed.
    #[error("{0}")]
    Config(String),
    #[error("storage is shutting down")]
    ShuttingDown,
    #[error("{0}")]
    Busy(String),
    #[error("damaged structure: {0}")]
    Damaged(String),
}

fn lost_write(page: PageId, found: Lsn, expected: Option<Lsn>) -> String {
    let of = page.space.name();
    match expected {
        Some(expected) => {
            format!("lost write on page {page} of tablespace {of}: its LSN is {found}, the log expects {expected}")
        }
        None => format!("the version on the disk of page {page} of tablespace {of} cannot be known to be current"),
    }
}

impl StorageError {
    /// What is wrong, without what it means where nobody can mend it.
    pub(crate) fn reason(&self) -> String {
        match self {
            StorageError::BadPage { why, .. } => why.to_string(),
            other => other.to_string(),
        }
    }
}

impl BadPage {
    /// Whether the page's bytes are no page of this place. (One that is whole but from another version, or from beyond
    /// the log's end, is good evidence that files or programs are mixed up, and is not to be overwritten.)
    pub(crate) fn is_decay(self) -> bool {
        !matches!(self, BadPage::Version(_) | BadPage::Kind(_) | BadPage::FutureLsn(_))
    }
}

impl std::fmt::Display for ObjectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "object {}", self.0)
    }
}

#[cfg(test)]
mod tests;
