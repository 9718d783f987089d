//! The syncs of one device, several of which may be under way at once.
//!
//! 1. A sync that fails may have lost writes of others than the one who asked for it, and the device need not tell
//!    them (Linux counts such pages as clean, and tells each of its callers once at most). So a sync succeeds where
//!    none that was under way at its end, or had ended before, has failed; from the first failure on, all fail.
//! 2. A sync that its caller does not wait for has failed: nobody learns what became of it.

use crate::config::{Safeguard, Safeguards};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use terrace_device::{DeviceError, DeviceRef, ErrorKind, Purpose};
use tokio::sync::Notify;

pub(super) struct Syncs {
    device: DeviceRef,
    purpose: Purpose,
    /// Invariant 1 holds: no test has removed it.
    together: bool,
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Default)]
struct State {
    begun: u64,
    under_way: BTreeSet<u64>,
    failed: Option<DeviceError>,
}

/// A sync under way.
struct UnderWay<'s> {
    syncs: &'s Syncs,
    number: u64,
    waited_for: bool,
}

impl Syncs {
    pub(super) fn new(device: DeviceRef, purpose: Purpose, safeguards: Safeguards) -> Arc<Syncs> {
        let together = safeguards.has(Safeguard::SyncedTogether);
        Arc::new(Syncs { device, purpose, together, state: Mutex::default(), ended: Notify::new() })
    }

    pub(super) async fn sync(&self) -> Result<(), DeviceError> {
        self.together(|| self.device.sync(self.purpose)).await
    }

    async fn together<S>(&self, sync: impl FnOnce() -> S) -> Result<(), DeviceError>
    where
        S: Future<Output = Result<(), DeviceError>>,
    {
        if !self.together {
            return sync().await;
        }
        let mut mine = self.begin()?;
        let synced = sync().await;
        mine.waited_for = true;
        if let Err(error) = synced {
            self.state.lock().failed.get_or_insert(error);
        }
        drop(mine);
        self.no_other_failed().await
    }

    fn begin(&self) -> Result<UnderWay<'_>, DeviceError> {
        let mut state = self.state.lock();
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        let number = state.begun;
        state.begun += 1;
        state.under_way.insert(number);
        Ok(UnderWay { syncs: self, number, waited_for: false })
    }

    /// Waits for the syncs that are under way now (invariant 1).
    async fn no_other_failed(&self) -> Result<(), DeviceError> {
        let begun = self.state.lock().begun;
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            {
                let state = self.state.lock();
                if let Some(error) = &state.failed {
                    return Err(error.clone());
                }
                if state.under_way.range(..begun).next().is_none() {
                    return Ok(());
                }
            }
            ended.await;
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.syncs.state.lock();
        assert!(state.under_way.remove(&self.number), "a sync ends once");
        if !self.waited_for {
            let given_up = ErrorKind::Io("a sync was given up".into());
            state.failed.get_or_insert(DeviceError::new(self.syncs.device.name(), "sync", 0, 0, given_up));
        }
        drop(state);
        self.syncs.ended.notify_waiters();
    }
}

#[cfg(test)]
pub(crate) mod tests;
