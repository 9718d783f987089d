//! Sparse contents of a device in memory, cheap to clone.
//!
//! Invariants: (1) a chunk that is absent reads as zeros; (2) clones share chunks and copy one only when it is written;
//! (3) no chunk begins at or beyond `size`; (4) a sector that is unreadable becomes readable when the whole of it is
//! written or cleared.

use crate::SECTOR;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const CHUNK: usize = 8192;
type Chunk = [u8; CHUNK];

/// The bytes of a device from 0 to `size`.
#[derive(Clone, Default)]
pub struct Image {
    chunks: BTreeMap<u64, Arc<Chunk>>,
    size: u64,
    /// Numbers of sectors that cannot be read.
    unreadable: BTreeSet<u64>,
}

/// The parts of `offset..offset + len` by chunk: chunk number, offset inside it, range of the transfer.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        (at < len).then(|| {
            let position = offset + at as u64;
            let inside = (position % CHUNK as u64) as usize;
            let range = at..len.min(at + CHUNK - inside);
            at = range.end;
            (position / CHUNK as u64, inside, range)
        })
    })
}

impl Image {
    pub fn new() -> Image {
        Image::default()
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// Grows to at least `size`; the new bytes are zeros.
    pub fn grow(&mut self, size: u64) {
        self.size = self.size.max(size);
    }

    /// Makes the sectors that the range touches unreadable.
    pub fn spoil(&mut self, offset: u64, len: u64) {
        let sector = SECTOR as u64;
        self.unreadable.extend(offset / sector..(offset + len).div_ceil(sector));
    }

    /// Whether every sector that the range touches can be read. A reader that does not ask gets the bytes.
    pub fn is_readable(&self, offset: u64, len: u64) -> bool {
        let sector = SECTOR as u64;
        self.unreadable.range(offset / sector..(offset + len).div_ceil(sector)).next().is_none()
    }

    /// Invariant 4.
    fn heal(&mut self, offset: u64, len: u64) {
        if !self.unreadable.is_empty() {
            let sector = SECTOR as u64;
            let whole = offset.div_ceil(sector)..(offset + len) / sector;
            self.unreadable.retain(|number| !whole.contains(number));
        }
    }

    /// Fills `buf` from `offset`; bytes beyond the end read as zeros.
    pub fn read(&self, offset: u64, buf: &mut [u8]) {
        for (chunk, inside, range) in parts(offset, buf.len()) {
            let target = &mut buf[range];
            match self.chunks.get(&chunk) {
                Some(bytes) => target.copy_from_slice(&bytes[inside..inside + target.len()]),
                None => target.fill(0),
            }
        }
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (chunk, inside, range) in parts(offset, bytes.len()) {
            let source = &bytes[range];
            let target = Arc::make_mut(self.chunks.entry(chunk).or_insert_with(|| Arc::new([0; CHUNK])));
            target[inside..inside + source.len()].copy_from_slice(source);
        }
        self.grow(offset + bytes.len() as u64);
        self.heal(offset, bytes.len() as u64);
    }

    /// Makes the part of the range that exists read as zeros; the size stays.
    pub fn clear(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(self.size);
        if offset >= end {
            return;
        }
        self.heal(offset, end - offset);
        let (first, last) = (offset / CHUNK as u64, (end - 1) / CHUNK as u64);
        let touched: Vec<u64> = self.chunks.range(first..=last).map(|(chunk, _)| *chunk).collect();
        for chunk in touched {
            let start = chunk * CHUNK as u64;
            let from = offset.saturating_sub(start) as usize;
            let to = (end - start).min(CHUNK as u64) as usize;
            if (from, to) == (0, CHUNK) {
                self.chunks.remove(&chunk);
            } else if let Some(bytes) = self.chunks.get_mut(&chunk) {
                Arc::make_mut(bytes)[from..to].fill(0);
            }
        }
    }

    /// Flips the bits of `mask` in the byte at `offset`.
    pub fn flip(&mut self, offset: u64, mask: u8) {
        let mut byte = [0];
        self.read(offset, &mut byte);
        self.write(offset, &[byte[0] ^ mask]);
    }

    /// The first offset at which the two differ, their sizes included.
    pub fn first_difference(&self, other: &Image) -> Option<u64> {
        let size = self.size.min(other.size);
        let chunks =
            self.chunks.keys().chain(other.chunks.keys()).copied().collect::<std::collections::BTreeSet<u64>>();
        let (mut mine, mut theirs) = ([0; CHUNK], [0; CHUNK]);
        for chunk in chunks {
            let start = chunk * CHUNK as u64;
            if let (Some(a), Some(b)) = (self.chunks.get(&chunk), other.chunks.get(&chunk))
                && Arc::ptr_eq(a, b)
            {
                continue;
            }
            self.read(start, &mut mine);
            other.read(start, &mut theirs);
            if let Some(at) = mine.iter().zip(&theirs).position(|(a, b)| a != b) {
                return Some((start + at as u64).min(size));
            }
        }
        (self.size != other.size).then_some(size)
    }
}

impl PartialEq for Image {
    fn eq(&self, other: &Image) -> bool {
        self.unreadable == other.unreadable && self.first_difference(other).is_none()
    }
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Image({} bytes, {} chunks)", self.size, self.chunks.len())
    }
}

#[cfg(test)]
mod tests;
