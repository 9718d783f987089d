//! How far the COPYs that run are.
//!
//! Source of the shape: PostgreSQL 15 documentation, `pg_stat_progress_copy`.
use super::Activity;
use parking_lot::Mutex;
use std::sync::Arc;

/// A COPY at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Copying {
    /// The table's; 0 for a query.
    pub(crate) relation: u32,
    /// Into the table.
    pub(crate) from: bool,
    /// A file of the server, not the client.
    pub(crate) file: bool,
    pub(crate) bytes: u64,
    /// Of the file that is read; 0 where that is not known.
    pub(crate) bytes_total: u64,
    pub(crate) rows: u64,
    /// That WHERE left out.
    pub(crate) excluded: u64,
}

/// Where a COPY tells how far it is. It is shown until this is dropped.
pub struct CopyProgress {
    activity: Arc<Activity>,
}

/// In its session.
pub(super) type Place = Mutex<Option<Copying>>;

impl CopyProgress {
    pub(crate) fn begin(activity: &Arc<Activity>, relation: u32, from: bool, file: bool) -> CopyProgress {
        let begun = Copying { relation, from, file, bytes: 0, bytes_total: 0, rows: 0, excluded: 0 };
        *activity.copying.lock() = Some(begun);
        CopyProgress { activity: activity.clone() }
    }

    /// The file has so many bytes.
    pub fn expects(&self, bytes: u64) {
        self.note(|copying| copying.bytes_total = bytes);
    }

    /// So many more.
    pub fn passed(&self, rows: u64, bytes: u64) {
        self.note(|copying| {
            copying.rows += rows;
            copying.bytes += bytes;
        });
    }

    /// WHERE left out so many more rows.
    pub(crate) fn left_out(&self, rows: u64) {
        self.note(|copying| copying.excluded += rows);
    }

    fn note(&self, change: impl FnOnce(&mut Copying)) {
        if let Some(copying) = &mut *self.activity.copying.lock() {
            change(copying);
        }
    }
}

impl Drop for CopyProgress {
    fn drop(&mut self) {
        *self.activity.copying.lock() = None;
    }
}

impl Activity {
    /// The COPY that the session runs.
    pub(crate) fn copying(&self) -> Option<Copying> {
        *self.copying.lock()
    }
}
