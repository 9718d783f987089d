//! The page table: which frame holds a page, or that it is being read.
//!
//! Invariants:
//! 1. A frame's first pin is made under its page's shard lock (shared is enough); a page leaves its frame only under
//!    that lock, exclusively, when there is no pin. So a pin found here is never a pin of another page.
//! 2. A page is being read by at most one task: the one whose `Loading` stands here.

use crate::error::StorageError;
use crate::sync::RwLock;
use crate::types::PageId;
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock};
use tokio::sync::Semaphore;

/// A model needs few, and pays for each.
const SHARDS: usize = if cfg!(feature = "shuttle") { 2 } else { 128 };

pub(super) enum Entry {
    Resident(u32),
    Loading(Arc<Loading>),
}

pub(super) type Shard = FxHashMap<u64, Entry>;

#[repr(align(64))]
struct Padded(RwLock<Shard>);

pub(super) struct Table {
    shards: Box<[Padded]>,
}

impl Table {
    pub(super) fn new() -> Table {
        Table { shards: (0..SHARDS).map(|_| Padded(RwLock::new(Shard::default()))).collect() }
    }

    pub(super) fn shard(&self, page: PageId) -> &RwLock<Shard> {
        // Multiplicative hashing: the high bits depend on every bit of the id, and neighbours go to different shards.
        let hash = page.to_u64().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.shards[(hash >> 57) as usize % SHARDS].0
    }
}

/// A read under way. Other tasks that want the page wait for its end.
pub(super) struct Loading {
    /// Closed at the end: a gate without permits that opens once, for everybody.
    end: Semaphore,
    error: OnceLock<StorageError>,
}

impl Loading {
    pub(super) fn start() -> Arc<Loading> {
        Arc::new(Loading { end: Semaphore::new(0), error: OnceLock::new() })
    }

    pub(super) fn end(&self, error: Option<StorageError>) {
        if let Some(error) = error {
            let _ = self.error.set(error); // Ends once.
        }
        self.end.close();
    }

    /// Waits for the end; `Ok` where it is worth looking again (the page is there, or its reader gave up).
    pub(super) async fn wait(&self) -> Result<(), StorageError> {
        let closed = self.end.acquire().await;
        assert!(closed.is_err(), "the gate has no permits");
        self.error.get().map_or(Ok(()), |e| Err(e.clone()))
    }
}
