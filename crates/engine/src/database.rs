//! A database: storage, catalogue, transactions, purge, opened together.
use crate::catalog::Catalog;
use crate::error::Result;
use crate::txn::{Isolation, Txn};
use std::sync::Arc;
use std::time::Duration;
use terrace_env::Env;
use terrace_storage::{DeviceSet, RecoveryReport, StorageConfig, Store};

#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// A snapshot older than this, while undo is over its limit, is cancelled (72000 snapshot too old).
    pub snapshot_age_max: Duration,
    /// Bytes of undo space; beyond it old snapshots are cancelled first, then writers get 53100.
    pub undo_size_max: u64,
    /// Waits longer than this for a row or table lock fail (55P03). Zero = never.
    pub lock_timeout: Duration,
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            snapshot_age_max: Duration::from_secs(3600),
            undo_size_max: 4 << 30,
            lock_timeout: Duration::ZERO,
        }
    }
}

/// What opening did.
#[derive(Clone, Debug, Default)]
pub struct OpenReport {
    pub storage: RecoveryReport,
    pub losers_rolled_back: usize,
    pub histories_to_purge: usize,
}

/// An open database; cheap to clone.
#[derive(Clone)]
pub struct Database(Arc<Inner>);
struct Inner {}

impl Database {
    pub async fn create(
        _env: Env,
        _devices: DeviceSet,
        _storage: StorageConfig,
        _engine: EngineConfig,
    ) -> Result<Database> {
        todo!()
    }
    pub async fn open(
        _env: Env,
        _devices: DeviceSet,
        _storage: StorageConfig,
        _engine: EngineConfig,
    ) -> Result<(Database, OpenReport)> {
        todo!()
    }
    pub fn store(&self) -> &Store {
        todo!()
    }
    /// The committed catalogue.
    pub fn catalog(&self) -> Arc<Catalog> {
        todo!()
    }
    pub fn begin(&self, _isolation: Isolation) -> Txn {
        todo!()
    }
    /// Verifies pages, trees, heaps, undo, and that indexes and rows agree. Returns the problems found.
    pub async fn check(&self) -> Result<Vec<String>> {
        todo!()
    }
    /// Purges everything that no snapshot needs, now.
    pub async fn purge(&self) -> Result<()> {
        todo!()
    }
    pub async fn close(self) -> Result<()> {
        todo!()
    }
}
