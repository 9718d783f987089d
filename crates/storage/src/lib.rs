//! Pages, buffer pool, homes, flash tier, tablespaces, log, double-writes, checkpoint, recovery, heap, B-link tree,
//! undo.
//!
//! In: page ids, bytes, transaction ids. Never: what a column is, SQL, the operating system.

pub mod backup;
pub mod btree;
pub mod bytes;
mod checkpoint;
pub mod config;
pub mod control;
pub mod error;
pub mod flash;
mod head;
pub mod heap;
pub mod home;
mod identity;
pub mod log;
pub mod mtr;
pub mod page;
pub mod pool;
mod progress;
pub mod reads;
pub mod recovery;
pub mod space;
pub mod store;
mod sync;
mod tasks;
#[cfg(test)]
mod testing;
pub mod types;
pub mod undo;

pub use checkpoint::CheckpointStatus;
pub use config::{DeviceSet, FlashConfig, StorageConfig};
pub use error::{Result, StorageError};
pub use flash::{Empty, FlashCounter, FlashState, FlashStats, Restored};
pub use progress::{RecoveryPhase, RecoveryProgress, RecoveryState};
pub use reads::{Place, Reads, counted, counting};
pub use store::{FIRST_OBJECT, RecoveryReport, Store};
/// The engine's, where a model of it is checked.
#[doc(hidden)]
pub use sync::Mutex as CheckedMutex;
pub use terrace_device::{Distribution, Histogram, Purpose, Usage as IoUsage};
pub use types::*;
