//! Finished transactions whose undo is kept, in the order in which they ended: what purge has before it.
//!
//! 1. While a snapshot lives there is one for each writer that ended since: millions, if it lives for hours. So an
//!    entry takes 24 bytes and next to nothing more. The smallest change keeps 86 bytes of undo: what is here takes at
//!    most three tenths of the undo space in use, which has a limit.
//! 2. Entries lie at their places: a chunk holds those of [`CHUNK`] numbers that follow each other, and goes with its
//!    last entry.
use std::collections::BTreeMap;
use terrace_storage::undo::{History, TxnEnd};
use terrace_storage::{TxnId, UndoPtr};

/// Of `History::seq`.
const CHUNK: u64 = 64;

/// A history without its number: transaction; first and last record, 6 bytes each; segment, and in its highest bit
/// whether it was rolled back.
#[derive(Clone, Copy)]
#[repr(C)]
struct Entry {
    txn: u64,
    first: [u8; 6],
    last: [u8; 6],
    slot: u32,
}

const ROLLED_BACK: u32 = 1 << 31;

struct Chunk {
    /// A bit for each place that is taken.
    taken: u64,
    entries: [Entry; CHUNK as usize],
}

/// By `History::seq`.
#[derive(Default)]
pub(crate) struct Histories {
    /// By number / `CHUNK`.
    chunks: BTreeMap<u64, Box<Chunk>>,
    len: usize,
}

impl Entry {
    const NONE: Entry = Entry { txn: 0, first: [0; 6], last: [0; 6], slot: 0 };

    fn of(history: &History) -> Entry {
        let pointer = |ptr: UndoPtr| {
            let bytes = ptr.0.to_le_bytes();
            assert!(bytes[6..] == [0, 0], "an undo pointer is a page and a position, 48 bits");
            [bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]]
        };
        assert!(history.slot < ROLLED_BACK, "there are fewer undo segments than extents");
        let end = if history.end == TxnEnd::RolledBack { ROLLED_BACK } else { 0 };
        let (first, last) = (pointer(history.first), pointer(history.last));
        Entry { txn: history.txn.0, first, last, slot: history.slot | end }
    }

    fn history(&self, seq: u64) -> History {
        let pointer = |b: [u8; 6]| UndoPtr(u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], 0, 0]));
        let end = if self.slot & ROLLED_BACK == 0 { TxnEnd::Committed } else { TxnEnd::RolledBack };
        let (first, last) = (pointer(self.first), pointer(self.last));
        History { txn: TxnId(self.txn), end, slot: self.slot & !ROLLED_BACK, first, last, seq }
    }
}

impl Histories {
    pub(crate) fn insert(&mut self, history: &History) {
        let (chunk, place) = (history.seq / CHUNK, (history.seq % CHUNK) as usize);
        let empty = || Box::new(Chunk { taken: 0, entries: [Entry::NONE; CHUNK as usize] });
        let chunk = self.chunks.entry(chunk).or_insert_with(empty);
        assert!(chunk.taken >> place & 1 == 0, "a transaction ends once");
        chunk.taken |= 1 << place;
        chunk.entries[place] = Entry::of(history);
        self.len += 1;
    }

    /// The one that ended first.
    pub(crate) fn first(&self) -> Option<History> {
        self.iter().next()
    }

    /// Whether it was there.
    pub(crate) fn remove(&mut self, seq: u64) -> bool {
        let (at, place) = (seq / CHUNK, seq % CHUNK);
        let Some(chunk) = self.chunks.get_mut(&at).filter(|chunk| chunk.taken >> place & 1 == 1) else { return false };
        chunk.taken &= !(1 << place);
        if chunk.taken == 0 {
            self.chunks.remove(&at);
        }
        self.len -= 1;
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = History> {
        self.chunks.iter().flat_map(|(at, chunk)| {
            let places = (0..CHUNK).filter(|place| chunk.taken >> place & 1 == 1);
            places.map(move |place| chunk.entries[place as usize].history(at * CHUNK + place))
        })
    }
}

#[cfg(test)]
mod tests;
