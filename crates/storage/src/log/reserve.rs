//! Reserving log space before a page is latched (R3): permits, and waiting where there is no space.
//!
//! 1. A permit is granted only where its batch can be appended without waiting: memory for it is left, and free slots
//!    cover it (`space`).
//! 2. A waiter registers for the wake-up before it asks again, so that no wake-up is lost.

use super::wait::CountedWaiter;
use super::{Core, Log};
use crate::error::{Result, StorageError};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The longest delay of one reservation before a bound is reached.
const MAX_DELAY: Duration = Duration::from_millis(20);

/// What a reservation is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogUse {
    /// Work that can be refused: delayed near the bounds of redo and of retention, stopped at them, refused when the
    /// log device is full.
    Normal,
    /// Work that frees what normal work fills (rollback, purge): may use the reserve, and waits where even that is
    /// gone.
    Cleanup,
}

/// Log space reserved before latching (R3). Unused space returns when the permit is dropped.
pub struct LogPermit {
    core: Arc<Core>,
    pub(super) bytes: usize,
}

/// The state that waiting reservations share with the background writer and the space task.
#[derive(Default)]
pub(super) struct Reservations {
    /// Reservations that wait for space, and what wakes them.
    pub(super) waiters: AtomicUsize,
    freed: Notify,
    /// Those of `waiters` that wait for dirty pages to go home (and not for the log's writer).
    starving: AtomicUsize,
    /// Asks the background writer of the store for a round.
    pressure: Notify,
    /// Rounds of the background writer that wrote everything home, and whether there is a background writer.
    rounds: AtomicU64,
    has_background_writer: AtomicBool,
    /// Wakes the space task.
    pub(super) wake_space: Notify,
}

/// What an attempt to reserve found.
enum Attempt {
    /// Space is granted, to be used after a delay.
    Granted(Duration),
    NoMemory,
    AtBound,
    NoSlots,
}

impl Log {
    /// Waits for space for a batch of at most `bytes` bytes ([`super::batch::encoded_len`]). Near a bound normal work
    /// is delayed, the nearer the longer. Where the device has no space that a checkpoint could free, normal work
    /// gets `LogFull`.
    pub async fn reserve(&self, bytes: usize, purpose: LogUse) -> Result<LogPermit> {
        let core = &self.core;
        let limit = core.geometry.max_batch().min(core.buffer / 2);
        assert!(bytes <= limit, "a mini-transaction of {bytes} bytes; the log takes {limit}");
        let mut seen = None;
        let mut delayed = false;
        loop {
            core.check()?;
            if core.is_closing() {
                return Err(StorageError::ShuttingDown);
            }
            if let Attempt::Granted(delay) = core.try_reserve(bytes, purpose) {
                if delay.is_zero() || delayed {
                    return Ok(LogPermit { core: core.clone(), bytes });
                }
                // Give it back for the time of the delay: others with a smaller debt may go first.
                drop(LogPermit { core: core.clone(), bytes });
                delayed = true;
                core.reserving.pressure.notify_one();
                core.env.sleep(delay).await;
                continue;
            }
            let _counted = CountedWaiter::among(&core.reserving.waiters);
            self.wait_for_space(bytes, purpose, &mut seen).await?;
        }
    }

    /// The same for those for whom the others may be waiting: it waits for the log's writer only. `None` where there is
    /// no space, or the log is closing.
    pub(crate) async fn reserve_at_once(&self, bytes: usize) -> Result<Option<LogPermit>> {
        let core = &self.core;
        let _counted = CountedWaiter::among(&core.reserving.waiters);
        loop {
            let mut woken = std::pin::pin!(core.reserving.freed.notified());
            woken.as_mut().enable();
            core.check()?;
            if core.is_closing() {
                return Ok(None);
            }
            match core.try_reserve(bytes, LogUse::Cleanup) {
                Attempt::Granted(_) => return Ok(Some(LogPermit { core: core.clone(), bytes })),
                Attempt::NoMemory => core.wait.wake_writer.notify_one(),
                Attempt::AtBound | Attempt::NoSlots => return Ok(None),
            }
            woken.await;
        }
    }

    async fn wait_for_space(&self, bytes: usize, purpose: LogUse, seen: &mut Option<u64>) -> Result<()> {
        let core = &self.core;
        let mut woken = std::pin::pin!(core.reserving.freed.notified());
        woken.as_mut().enable();
        // Invariant 2.
        let attempt = core.try_reserve(bytes, purpose);
        let _starving = matches!(attempt, Attempt::AtBound | Attempt::NoSlots)
            .then(|| CountedWaiter::among(&core.reserving.starving));
        match attempt {
            Attempt::Granted(_) => {
                drop(LogPermit { core: core.clone(), bytes });
                return Ok(());
            }
            Attempt::NoMemory => core.wait.wake_writer.notify_one(),
            Attempt::AtBound => core.reserving.pressure.notify_one(),
            Attempt::NoSlots => core.ask_for_slots(purpose, seen)?,
        }
        core.check()?; // A failure is noted before it wakes waiters: one noted before `enable` is seen here.
        woken.await;
        Ok(())
    }

    /// The background writer has written everything home that was dirty when the round began.
    pub(crate) fn round_done(&self) {
        self.core.reserving.rounds.fetch_add(1, Ordering::AcqRel);
        self.core.more_space();
    }

    /// Waits until a reservation waits for a bound or a full device.
    pub(crate) async fn pressure(&self) {
        self.core.reserving.pressure.notified().await;
    }

    /// Whether a reservation waits for dirty pages to go home.
    pub(crate) fn starved(&self) -> bool {
        self.core.reserving.starving.load(Ordering::Acquire) > 0
    }

    /// There is a background writer from now on: a full device is worth waiting for.
    pub(crate) fn attach(&self) {
        self.core.reserving.has_background_writer.store(true, Ordering::Release);
    }

    /// Asks the background writer for a round now.
    pub(crate) fn press(&self) {
        self.core.reserving.pressure.notify_one();
    }
}

impl Core {
    /// Grants (noting the bytes as given out) or says what is missing.
    fn try_reserve(&self, bytes: usize, purpose: LogUse) -> Attempt {
        let mut tail = self.tail.lock();
        let in_memory = tail.permits + tail.unwritten;
        if in_memory + bytes > self.buffer {
            return Attempt::NoMemory;
        }
        let all = tail.permits + bytes;
        if !tail.slots.covers(all, purpose == LogUse::Cleanup) {
            tail.slots.demand(all);
            tail.slots.recycle();
            if !tail.slots.covers(all, purpose == LogUse::Cleanup) {
                return Attempt::NoSlots;
            }
        }
        let mut delay = Duration::ZERO;
        if purpose == LogUse::Normal {
            let end = self.end.load(Ordering::Acquire);
            for (floor, bound) in [(tail.slots.redo, self.redo_bound), (tail.slots.retain, self.retain_bound)] {
                let (debt, soft) = (end.saturating_sub(floor.0), bound / 4 * 3);
                if debt >= bound {
                    return Attempt::AtBound;
                }
                if debt > soft {
                    let x = (debt - soft) as f64 / (bound - soft) as f64;
                    delay = delay.max(MAX_DELAY.mul_f64(x * x));
                }
            }
        }
        tail.permits += bytes;
        Attempt::Granted(delay)
    }

    /// Asks all tasks that can free a slot, or refuses normal work if none can. `seen`: the round of the background
    /// writer at the first call.
    fn ask_for_slots(&self, purpose: LogUse, seen: &mut Option<u64>) -> Result<()> {
        let (can_grow, unarchived) = {
            let slots = &self.tail.lock().slots;
            (slots.growth().is_some(), slots.unarchived().is_some())
        };
        let round = self.reserving.rounds.load(Ordering::Acquire);
        // An archive that works is waited for. Two whole rounds: the first may have begun before the slots ran out.
        let tried = match unarchived {
            true => self.archiving.refuses.load(Ordering::Acquire),
            false => {
                let has_writer = self.reserving.has_background_writer.load(Ordering::Acquire);
                !has_writer || seen.is_some_and(|s| round >= s + 2)
            }
        };
        if purpose == LogUse::Normal && !can_grow && tried {
            return Err(self.full());
        }
        // If only the archive can help, others must not be asked: they would wake the waiter, which asks again, without
        // end.
        if can_grow || !unarchived {
            seen.get_or_insert(round);
            self.reserving.wake_space.notify_one();
            self.reserving.pressure.notify_one();
        }
        Ok(())
    }

    /// Why there is no space, and what helps.
    pub(super) fn full(&self) -> StorageError {
        let (name, size) = (self.device.name(), self.device.size());
        StorageError::LogFull(match self.tail.lock().slots.unarchived() {
            Some(number) => format!(
                "{name} holds {size} bytes of log that the archive does not have, \
                 from segment {number} on; look for the reason in the \
                 server's log, or give the log more room"
            ),
            None => format!("{name} holds {size} bytes of log that is still needed; give it more room"),
        })
    }

    pub(super) fn more_space(&self) {
        self.reserving.wake_space.notify_one();
        self.wake_reservations();
    }

    /// Wakes reservations that wait, if there are any.
    pub(super) fn wake_reservations(&self) {
        if self.reserving.waiters.load(Ordering::SeqCst) > 0 {
            self.reserving.freed.notify_waiters();
        }
    }

    /// Wakes everybody who waits for space, to learn that the log has stopped.
    pub(super) fn stop_reservations(&self) {
        self.reserving.freed.notify_waiters();
        self.reserving.pressure.notify_one();
    }
}

impl LogPermit {
    /// Bytes that a batch may take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for LogPermit {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.core.tail.lock().permits -= self.bytes;
            self.core.wake_reservations();
        }
    }
}
