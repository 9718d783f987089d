//! Buffers that an opening has read parts of the log into, kept for what it reads next: a large buffer is new memory,
//! of which the kernel clears each page, and that takes as long as reading it.
//!
//! Invariants:
//! 1. They are kept until the log is started. Together with a buffer that is new they take no more than a segment:
//!    an opening takes no more memory than if none were kept.
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
    /// Bytes of a segment.
    room: u64,
}

impl Spares {
    /// Of a log that is being opened.
    pub(super) fn new(segment_size: u64) -> Arc<Spares> {
        Arc::new(Spares { kept: Mutex::new(Some(Vec::new())), room: segment_size })
    }

    /// So many bytes; not zeroed (invariant 2).
    pub(super) fn take(&self, len: usize) -> IoBuf {
        let mut guard = self.kept.lock();
        if let Some(kept) = guard.as_mut() {
            if let Some(at) = kept.iter().rposition(|buf| buf.len() == len) {
                return kept.remove(at);
            }
            self.make_room(kept, len);
        }
        drop(guard);
        IoBuf::zeroed(len)
    }

    /// Nobody needs it any more.
    pub(super) fn keep(&self, buf: IoBuf) {
        let mut guard = self.kept.lock();
        let Some(kept) = guard.as_mut().filter(|_| (LARGE as u64..=self.room).contains(&(buf.len() as u64))) else {
            return;
        };
        self.make_room(kept, buf.len());
        kept.push(buf);
    }

    /// Invariant 1: what was kept first goes first.
    fn make_room(&self, kept: &mut Vec<IoBuf>, len: usize) {
        let mut held: usize = kept.iter().map(|buf| buf.len()).sum();
        let over = kept.iter().take_while(|buf| {
            let over = (held + len) as u64 > self.room;
            held -= buf.len();
            over
        });
        let over = over.count();
        kept.drain(..over);
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
