//! Buffers that an opening has read parts of the log into, kept for what it reads next: a large buffer is new memory,
//! of which the kernel clears each page, and that takes as long as reading it.
//!
//! Invariants:
//! 1. They are kept until the log is started, and together they take no more than a segment.
//! 2. A buffer holds what was read before. Who takes one writes or reads over all of it.

use crate::sync::Mutex;
use std::ops::Deref;
use std::sync::Arc;
use terrace_device::IoBuf;

/// Smaller buffers are the allocator's, which keeps them itself.
pub(super) const LARGE: usize = 128 << 10;

/// The buffers.
pub(super) struct Spares(Mutex<Option<Vec<IoBuf>>>);

impl Spares {
    /// Of a log that is being opened.
    pub(super) fn new() -> Arc<Spares> {
        Arc::new(Spares(Mutex::new(Some(Vec::new()))))
    }

    /// So many bytes; not zeroed (invariant 2).
    pub(super) fn take(&self, len: usize) -> IoBuf {
        let mut spares = self.0.lock();
        let kept = spares.as_mut().and_then(|kept| Some((kept.iter().position(|buf| buf.len() == len)?, kept)));
        let spare = kept.map(|(at, kept)| kept.swap_remove(at));
        drop(spares);
        spare.unwrap_or_else(|| IoBuf::zeroed(len))
    }

    /// Nobody needs it any more. `room`: bytes of a segment.
    pub(super) fn keep(&self, buf: IoBuf, room: u64) {
        let mut spares = self.0.lock();
        let Some(kept) = spares.as_mut().filter(|_| buf.len() >= LARGE) else { return };
        let held: usize = kept.iter().map(|buf| buf.len()).sum();
        if (held + buf.len()) as u64 <= room {
            kept.push(buf);
        }
    }

    /// None are kept from now on.
    pub(super) fn end(&self) {
        self.0.lock().take();
    }
}

/// Bytes whose buffer is kept when they are dropped.
pub(super) struct Lent {
    /// There until it is dropped.
    buf: Option<IoBuf>,
    spares: Arc<Spares>,
    room: u64,
}

impl Lent {
    pub(super) fn new(buf: IoBuf, spares: Arc<Spares>, room: u64) -> Lent {
        Lent { buf: Some(buf), spares, room }
    }
}

impl Deref for Lent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.buf.as_deref().unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(buf) = self.buf.take() {
            self.spares.keep(buf, self.room);
        }
    }
}

#[cfg(test)]
mod tests;
