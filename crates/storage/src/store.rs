//! `Store`: the rooms of storage, opened together.
use crate::config::{DeviceSet, StorageConfig};
use crate::error::Result;
use crate::home::Home;
use crate::log::Log;
use crate::mtr::{LogPermit, Mtr};
use crate::pool::Pool;
use crate::space::Space;
use crate::types::*;
use crate::undo::UndoSpace;
use std::sync::Arc;
use terrace_env::Env;

/// What recovery did.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReport {
    pub clean_shutdown: bool,
    pub redo_from: Lsn,
    pub redo_to: Lsn,
    pub batches: u64,
    pub pages_redone: u64,
    pub torn_pages_restored: u64,
    pub nanos: u64,
}

/// Open storage; cheap to clone.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {}

impl Store {
    /// Formats the devices as a new, empty database and opens it. A crash in the middle leaves something that `open` refuses as
    /// half-made and `create` may overwrite.
    pub async fn create(_env: Env, _devices: DeviceSet, _config: StorageConfig) -> Result<Store> {
        todo!()
    }
    /// Opens a database, repairing torn pages and repeating history where needed.
    pub async fn open(_env: Env, _devices: DeviceSet, _config: StorageConfig) -> Result<(Store, RecoveryReport)> {
        todo!()
    }
    pub fn env(&self) -> &Env {
        todo!()
    }
    pub fn config(&self) -> &StorageConfig {
        todo!()
    }
    pub fn pool(&self) -> &Arc<Pool> {
        todo!()
    }
    pub fn log(&self) -> &Log {
        todo!()
    }
    pub fn home(&self) -> &dyn Home {
        todo!()
    }
    /// The data tablespace.
    pub fn space(&self, _id: SpaceId) -> &Space {
        todo!()
    }
    /// Allocates `len` bytes of a tablespace's device from `offset` on (both multiples of an extent), so that later writes there
    /// cannot fail for want of room; no space left becomes `SpaceFull`. The only way a tablespace grows.
    pub(crate) async fn grow(&self, _space: SpaceId, _offset: u64, _len: u64) -> Result<()> {
        todo!()
    }
    /// Bytes that a tablespace's device holds or has allocated.
    pub(crate) fn space_bytes(&self, _space: SpaceId) -> u64 {
        todo!()
    }
    /// Made by `UndoSpace::new()`. The engine calls its `format` once, at creation, and `recover` at every opening.
    pub fn undo(&self) -> &UndoSpace {
        todo!()
    }
    /// As `reserve`, for work that frees room (rollback, purge): never refused for a full log, may use the reserve.
    pub async fn reserve_for_cleanup(&self, _bytes: usize) -> Result<LogPermit> {
        todo!()
    }
    /// Reserves log room for a mini-transaction of at most `bytes`; delays near the redo bound. Before latching (R3).
    pub async fn reserve(&self, _bytes: usize) -> Result<LogPermit> {
        todo!()
    }
    pub fn mtr(&self, _permit: LogPermit) -> Mtr {
        todo!()
    }
    /// An object id never used before.
    pub fn next_object(&self) -> ObjectId {
        todo!()
    }
    /// Writes every dirty page home and records the redo LSN.
    pub async fn checkpoint(&self) -> Result<()> {
        todo!()
    }
    /// Checkpoint, mark clean, stop background tasks.
    pub async fn close(self) -> Result<()> {
        todo!()
    }
}
