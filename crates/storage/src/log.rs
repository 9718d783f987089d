//! The write-ahead log. Format: ARCHITECTURE section 4.
use crate::error::Result;
use crate::types::*;

pub struct Log {}

impl Log {
    /// Waits until the log is durable up to `lsn` (group commit). A failed sync poisons the log for good.
    pub async fn flush_to(&self, _lsn: Lsn) -> Result<()> {
        todo!()
    }
    pub fn durable(&self) -> Lsn {
        todo!()
    }
    /// End of what has been appended.
    pub fn end(&self) -> Lsn {
        todo!()
    }
}
