//! Archiving: segments go to an archive before their slots are used again.
//!
//! Invariants:
//! 1. The archive is known from the opening on (`StorageConfig::archive`), before any slot can be used again. Segments
//!    that an earlier run could not store are still in the log, and are stored now.
//! 2. Segments are stored in their order, each when it is complete and durable; one that fails is tried again until it
//!    succeeds, and those behind it wait. So the archive has no gaps.

use super::space::RESERVE;
use super::{Core, Result};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

type Stored = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Stores a complete segment: its number and bytes. It must be durable when this returns Ok; it may be offered again
/// after a restart.
#[derive(Clone)]
pub struct Archive(Arc<dyn Fn(u64, Vec<u8>) -> Stored + Send + Sync>);

/// Attempts that failed.
#[derive(Clone, Default)]
pub(super) struct Failures {
    pub(super) count: u64,
    /// Microseconds since 1970 (UTC), and why.
    pub(super) last: Option<(i64, String)>,
}

/// The state that the archive's task shares with others.
pub(super) struct Archiving {
    pub(super) store: Option<Archive>,
    pub(super) wake: Notify,
    /// The newest attempt to store a segment failed.
    pub(super) refuses: AtomicBool,
    pub(super) failures: Mutex<Failures>,
}

impl Archiving {
    pub(super) fn new(store: Option<Archive>) -> Archiving {
        Archiving { store, wake: Notify::new(), refuses: AtomicBool::new(false), failures: Mutex::default() }
    }
}

/// Rest after a failed attempt.
const RETRY: Duration = Duration::from_secs(1);

impl Archive {
    pub fn new<F>(store: impl Fn(u64, Vec<u8>) -> F + Send + Sync + 'static) -> Archive
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        Archive(Arc::new(move |number, bytes| Box::pin(store(number, bytes))))
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Archive")
    }
}

/// If there is an archive: stores segments as they become complete. Ends with the log.
pub(super) async fn run(core: Arc<Core>) {
    loop {
        while let Some(number) = core.next_to_archive() {
            if core.is_closing() {
                return;
            }
            let archived = core.archive(number).await;
            core.tail.lock().slots.recycle();
            core.more_space(); // Reservations that wait learn of a failure, too.
            if archived.is_err() {
                core.env.sleep(RETRY).await;
            }
        }
        if core.is_closing() || core.check().is_err() {
            return;
        }
        core.archiving.wake.notified().await;
    }
}

impl Core {
    /// The oldest segment that is complete, durable and not archived.
    fn next_to_archive(&self) -> Option<u64> {
        let tail = self.tail.lock();
        let next = tail.slots.live().find(|&n| n >= tail.slots.archived)?;
        let durable = self.durable_lsn();
        // At `prev_end` exactly the batches are durable, and the seal only if nothing else is under way.
        let sealed = durable > tail.segment.prev_end || (durable == tail.segment.prev_end && tail.unwritten == 0);
        let complete = next < tail.segment.number && (sealed || durable >= self.geometry.lsn(next + 1, 0));
        complete.then_some(next)
    }

    /// Stores the next segment. A failure is said in the server's log, and by [`super::Log::status`].
    async fn archive(self: &Arc<Self>, number: u64) -> Result<(), ()> {
        let stored = self.store(number).await;
        self.archiving.refuses.store(stored.is_err(), Ordering::Release);
        match stored {
            Ok(()) => {
                self.tail.lock().slots.archived = number + 1;
                Ok(())
            }
            Err(why) => {
                tracing::warn!(segment = number, "archiving failed, will be tried again: {why}");
                let mut failed = self.archiving.failures.lock();
                failed.count += 1;
                failed.last = Some((self.env.unix_micros(), why));
                Err(())
            }
        }
    }

    async fn store(self: &Arc<Self>, number: u64) -> Result<(), String> {
        let Archive(store) = self.archiving.store.as_ref().ok_or("there is no archive")?;
        let slot = self.tail.lock().slots.slot(number).ok_or("the segment is gone")?;
        let image = self.read_segment(slot, number).await.map_err(|e| e.to_string())?;
        let image = image.ok_or("the slot holds something else")?;
        if !image.is_whole() {
            return Err(format!("segment {number} has sectors that cannot be read"));
        }
        store(number, image.bytes().to_vec()).await
    }

    /// Called before the log starts, when every segment in it is complete. If segments that the archive lacks leave no
    /// space to start, this stores as many of them as needed. If the archive refuses them, the device may grow.
    pub(super) async fn archive_for_space(self: &Arc<Self>) -> Result<()> {
        if self.archiving.store.is_none() {
            return Ok(());
        }
        loop {
            let next = {
                let slots = &mut self.tail.lock().slots;
                slots.recycle();
                if slots.free() > RESERVE {
                    return Ok(());
                }
                slots.unarchived()
            };
            let Some(number) = next else { return Ok(()) };
            if self.archive(number).await.is_err() {
                break;
            }
        }
        self.tail.lock().slots.make_way(self.device.guarantees().capacity);
        self.grow().await.map(drop)
    }
}

#[cfg(test)]
mod tests;
