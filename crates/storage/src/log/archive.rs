//! Archiving: sealed segments go to a copy hook before their slots are used again.

use super::{Core, Log};
use crate::error::StorageError;
use crate::sync::atomic::Ordering;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Stores a sealed segment: its number and bytes. It must be durable when this returns Ok; it may be offered again after a restart.
pub type Hook = Box<dyn Fn(u64, Vec<u8>) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync>;

/// Rest after a failed attempt.
const RETRY: Duration = Duration::from_secs(1);

impl Log {
    /// From now on segments are used again only after `hook` has stored them. Once per opened log.
    pub fn set_archive_hook(&self, hook: Hook) {
        let core = &self.core;
        let set = core.archive.set(hook);
        assert!(set.is_ok(), "the archive hook is set once");
        {
            let mut tail = core.tail.lock();
            let oldest = tail.slots.live().next().unwrap_or(0);
            tail.slots.archived = oldest;
        }
        core.env.spawn("log archive", run(core.clone()));
    }
}

async fn run(core: Arc<Core>) {
    let hook = core.archive.get().expect("spawned by set_archive_hook, which sets it");
    loop {
        while let Some(number) = core.next_to_archive() {
            if core.closing.load(Ordering::Acquire) {
                return;
            }
            match archive(&core, hook, number).await {
                Ok(()) => {
                    let mut tail = core.tail.lock();
                    tail.slots.archived = number + 1;
                    tail.slots.recycle();
                    drop(tail);
                    core.more_room();
                }
                Err(e) => {
                    tracing::warn!(segment = number, "archiving failed, will be tried again: {e}");
                    core.env.sleep(RETRY).await;
                }
            }
        }
        if core.closing.load(Ordering::Acquire) || core.check().is_err() {
            return;
        }
        core.wake_archive.notified().await;
    }
}

async fn archive(core: &Arc<Core>, hook: &Hook, number: u64) -> Result<(), String> {
    let slot = core.tail.lock().slots.slot(number).ok_or("the segment is gone")?;
    let image = core.read_segment(slot, number).await.map_err(|e: StorageError| e.to_string())?;
    let image = image.ok_or("the slot holds something else")?;
    hook(number, image.bytes().to_vec()).await
}

impl Core {
    /// The oldest segment that is complete, durable and not archived.
    fn next_to_archive(&self) -> Option<u64> {
        let tail = self.tail.lock();
        let next = tail.slots.live().find(|&n| n >= tail.slots.archived)?;
        let durable = self.durable_lsn();
        // At `prev_end` exactly the batches are durable, and the seal only if nothing else is under way.
        let sealed = durable > tail.prev_end || (durable == tail.prev_end && tail.unwritten == 0);
        let complete = next < tail.number && (sealed || durable >= self.geometry.lsn(next + 1, 0));
        complete.then_some(next)
    }
}
