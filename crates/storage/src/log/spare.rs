//! Buffers that an opening has read parts of the log into, kept for what it reads next: a large buffer is new memory,
//! of which the kernel clears each page, and that takes as long as reading it.
//!
//! Invariants:
//! 1. They are kept until the log is started. Together they take no more than what a walk reads into: a segment and the
//!    next one, and the indexes of a few behind it. One that is needed is made only where none of its length is kept.
//!    (Buffers that are in use do not count: so before redo reads whole segments, beside all that it gathers, those for
//!    indexes go; and the rest before pages are visited.)
//! 2. A buffer holds what was read before. Who takes one writes or reads over all of it.

use crate::sync::Mutex;
use std::ops::Deref;
use std::sync::Arc;
use terrace_device::IoBuf;

/// Smaller buffers are the allocator's, which keeps them itself.
pub(super) const LARGE: usize = 128 << 10;

/// The buffers, the last kept last.
pub(super) struct Spares {
    kept: Mutex<Option<Vec<IoBuf>>>,
    /// Bytes.
    room: usize,
}

impl Spares {
    /// Of a log that is being opened. `segment_size`: bytes.
    pub(super) fn new(segment_size: u64) -> Arc<Spares> {
        let room = segment_size as usize / 2 * 5;
        Arc::new(Spares { kept: Mutex::new(Some(Vec::new())), room })
    }

    /// So many bytes; not zeroed (invariant 2).
    pub(super) fn take(&self, len: usize) -> IoBuf {
        let mut guard = self.kept.lock();
        let kept = guard.as_mut().and_then(|kept| Some((kept.iter().rposition(|buf| buf.len() == len)?, kept)));
        let spare = kept.map(|(at, kept)| kept.remove(at));
        drop(guard);
        spare.unwrap_or_else(|| IoBuf::zeroed(len))
    }

    /// Nobody needs it any more. Where there is no room, what was kept first goes (invariant 1).
    pub(super) fn keep(&self, buf: IoBuf) {
        let mut guard = self.kept.lock();
        let Some(kept) = guard.as_mut().filter(|_| (LARGE..=self.room).contains(&buf.len())) else { return };
        kept.push(buf);
        let mut held: usize = kept.iter().map(|buf| buf.len()).sum();
        while held > self.room {
            held -= kept.remove(0).len();
        }
    }

    /// Buffers of other lengths go: they would only lie beside those that are read into from now on.
    pub(super) fn keep_only(&self, len: usize) {
        self.kept.lock().iter_mut().for_each(|kept| kept.retain(|buf| buf.len() == len));
    }

    /// None are kept from now on.
    pub(super) fn end(&self) {
        self.kept.lock().take();
    }
}

/// Bytes whose buffer is kept when they are dropped.
pub(super) struct Lent {
    /// There until it is dropped.
    buf: Option<IoBuf>,
    spares: Arc<Spares>,
}

impl Lent {
    pub(super) fn new(buf: IoBuf, spares: Arc<Spares>) -> Lent {
        Lent { buf: Some(buf), spares }
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
            self.spares.keep(buf);
        }
    }
}

#[cfg(test)]
mod tests;
