//! Slotted pages: reading them, and the layout arithmetic that `PageOp` changes them with. Layout: ARCHITECTURE section
//! 3.
//!
//! Invariants (of heap and B-tree pages, and of any other page whose owner uses cells):
//! 1. directory end <= cell_low <= page size; the bytes between are free.
//! 2. A slot's offset is 0 (empty), or its cell lies within cell_low..page size. An empty cell's offset is the page
//!    size: a present cell of length zero never looks like an empty slot.
//! 3. page size - cell_low = bytes of all cells + dead bytes.
//! 4. Every function here is a function of the page's bytes alone, so redo repeats what happened.

use super::HEADER;
use crate::bytes::{U16, layout};
use std::mem::offset_of;

layout! {
    /// What stands behind the page header. The special area follows, then the slot directory; cells grow down from the
    /// page's end.
    struct SlottedHeader: 8 {
        0 slots: U16,
        /// The lowest offset of cell bytes.
        2 cell_low: U16,
        4 dead_bytes: U16,
        /// Bytes of the special area.
        6 special: U16,
    }
}

layout! {
    /// An entry of the slot directory; offset 0 means that the slot is empty.
    struct DirectoryEntry: 4 {
        0 offset: U16,
        2 length: U16,
    }
}

const SLOTS: usize = HEADER + offset_of!(SlottedHeader, slots);
const CELL_LOW: usize = HEADER + offset_of!(SlottedHeader, cell_low);
const DEAD: usize = HEADER + offset_of!(SlottedHeader, dead_bytes);
const SPECIAL: usize = HEADER + offset_of!(SlottedHeader, special);
/// Where the special area begins.
pub(crate) const SPECIAL_START: usize = HEADER + size_of::<SlottedHeader>();
/// Bytes of a directory entry.
pub(crate) const SLOT: usize = size_of::<DirectoryEntry>();

fn get(page: &[u8], at: usize) -> usize {
    u16::from_le_bytes([page[at], page[at + 1]]) as usize
}

fn set(page: &mut [u8], at: usize, value: usize) {
    debug_assert!(value <= u16::MAX as usize);
    page[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
}

fn entry(page: &[u8], slot: usize) -> usize {
    SPECIAL_START + get(page, SPECIAL) + SLOT * slot
}

/// Offset and length of a slot's cell; offset 0 = empty.
fn slot_at(page: &[u8], slot: usize) -> (usize, usize) {
    let at = entry(page, slot);
    (get(page, at + offset_of!(DirectoryEntry, offset)), get(page, at + offset_of!(DirectoryEntry, length)))
}

fn set_slot(page: &mut [u8], slot: usize, offset: usize, len: usize) {
    let at = entry(page, slot);
    set(page, at + offset_of!(DirectoryEntry, offset), offset);
    set(page, at + offset_of!(DirectoryEntry, length), len);
}

/// Entries of the slot directory, empty ones included.
pub fn slot_count(page: &[u8]) -> u16 {
    get(page, SLOTS) as u16
}

/// The cell of a slot; `None` where the slot is empty or beyond the directory.
pub fn cell(page: &[u8], slot: u16) -> Option<&[u8]> {
    let (offset, len) = cell_range(page, slot)?;
    Some(&page[offset..offset + len])
}

fn cell_range(page: &[u8], slot: u16) -> Option<(usize, usize)> {
    if slot >= slot_count(page) {
        return None;
    }
    let (offset, len) = slot_at(page, slot as usize);
    (offset != 0).then_some((offset, len))
}

/// The special area.
pub fn special(page: &[u8]) -> &[u8] {
    &page[SPECIAL_START..SPECIAL_START + get(page, SPECIAL)]
}

/// Offset of the special area from the page's start (for `PageOp::Write`).
pub(crate) fn special_offset() -> u16 {
    SPECIAL_START as u16
}

/// Free bytes, compaction included.
fn free_bytes(page: &[u8]) -> usize {
    get(page, CELL_LOW) - entry(page, slot_count(page) as usize) + get(page, DEAD)
}

/// The largest cell that InsertAt (or Put into a new slot) can take now, compaction included, directory entry deducted.
/// 0 also where not even an empty cell fits ([`fits`] tells).
pub fn room(page: &[u8]) -> usize {
    free_bytes(page).saturating_sub(SLOT)
}

/// Whether a cell of `len` bytes fits in a new slot: exact for empty cells too.
pub fn fits(page: &[u8], len: usize) -> bool {
    free_bytes(page) >= len + SLOT
}

/// The largest cell that Put can store in `slot` now (its present cell's bytes count as free; directory entries that a
/// slot beyond the end needs are deducted). 0 also where not even an empty cell fits.
pub(crate) fn room_in(page: &[u8], slot: u16) -> usize {
    let present = cell_range(page, slot).map_or(0, |(_, len)| len);
    let grow = (slot as usize + 1).saturating_sub(slot_count(page) as usize) * SLOT;
    (free_bytes(page) + present).saturating_sub(grow)
}

/// The first empty slot, or the directory's end.
pub fn free_slot(page: &[u8]) -> u16 {
    let count = slot_count(page);
    (0..count).find(|&s| slot_at(page, s as usize).0 == 0).unwrap_or(count)
}

/// Whether invariants 1 to 3 hold, without trusting any byte.
pub(crate) fn is_sound(page: &[u8]) -> bool {
    let (slots, low, dead) = (get(page, SLOTS), get(page, CELL_LOW), get(page, DEAD));
    if entry(page, slots) > low || low > page.len() {
        return false;
    }
    let mut used = dead;
    for slot in 0..slots {
        let (offset, len) = slot_at(page, slot);
        if offset != 0 && (offset < low || offset + len > page.len()) {
            return false;
        }
        used += if offset == 0 { 0 } else { len };
    }
    used == page.len() - low
}

// ---- changes: only `PageOp::apply` calls these ----

pub(super) fn init(page: &mut [u8], special: u16) {
    assert!(SPECIAL_START + special as usize <= page.len(), "special area of {special} bytes exceeds the page");
    let len = page.len();
    set(page, SLOTS, 0);
    set(page, CELL_LOW, len);
    set(page, DEAD, 0);
    set(page, SPECIAL, special as usize);
}

pub(super) fn insert_at(page: &mut [u8], slot: u16, bytes: &[u8]) {
    let count = slot_count(page) as usize;
    let slot = slot as usize;
    assert!(slot <= count, "insert at {slot} of {count} slots");
    make_room(page, SLOT + bytes.len());
    let (from, to) = (entry(page, slot), entry(page, count));
    page.copy_within(from..to, from + SLOT);
    set(page, SLOTS, count + 1);
    store(page, slot, bytes);
}

pub(super) fn remove_at(page: &mut [u8], slot: u16) {
    release(page, slot);
    let count = slot_count(page) as usize;
    let (from, to) = (entry(page, slot as usize + 1), entry(page, count));
    page.copy_within(from..to, from - SLOT);
    set(page, SLOTS, count - 1);
}

pub(super) fn put(page: &mut [u8], slot: u16, bytes: &[u8]) {
    if let Some((offset, len)) = cell_range(page, slot) {
        if bytes.len() == len {
            page[offset..offset + len].copy_from_slice(bytes);
            return;
        }
        release(page, slot);
    }
    let count = slot_count(page) as usize;
    let grown = count.max(slot as usize + 1);
    make_room(page, (grown - count) * SLOT + bytes.len());
    for new in count..grown {
        set_slot(page, new, 0, 0);
    }
    set(page, SLOTS, grown);
    store(page, slot as usize, bytes);
}

pub(super) fn free(page: &mut [u8], slot: u16) {
    release(page, slot);
    let mut count = slot_count(page) as usize;
    while count > 0 && slot_at(page, count - 1).0 == 0 {
        count -= 1;
    }
    set(page, SLOTS, count);
}

pub(super) fn patch(page: &mut [u8], slot: u16, offset: u16, bytes: &[u8]) {
    let (start, len) = cell_range(page, slot).unwrap_or_else(|| panic!("patch of empty slot {slot}"));
    let end = offset as usize + bytes.len();
    assert!(end <= len, "patch up to {end} of a cell of {len} bytes");
    page[start + offset as usize..start + end].copy_from_slice(bytes);
}

/// Empties a slot, keeping its directory entry.
fn release(page: &mut [u8], slot: u16) {
    let (offset, len) = cell_range(page, slot).unwrap_or_else(|| panic!("slot {slot} is empty"));
    set_slot(page, slot as usize, 0, 0);
    if offset == get(page, CELL_LOW) {
        set(page, CELL_LOW, offset + len);
    } else {
        let dead = get(page, DEAD);
        set(page, DEAD, dead + len);
    }
}

/// Makes `need` bytes free between directory and cells, compacting where they are scattered.
fn make_room(page: &mut [u8], need: usize) {
    let free = free_bytes(page);
    assert!(need <= free, "{need} bytes needed on a page with {free} free");
    let contiguous = free - get(page, DEAD);
    if need > contiguous {
        compact(page);
    }
}

/// Packs the cells against the page's end, in directory order.
fn compact(page: &mut [u8]) {
    let before = page.to_vec();
    let mut low = page.len();
    for slot in 0..slot_count(&before) {
        if let Some((offset, len)) = cell_range(&before, slot).filter(|&(_, len)| len > 0) {
            low -= len;
            page[low..low + len].copy_from_slice(&before[offset..offset + len]);
            set_slot(page, slot as usize, low, len);
        }
    }
    set(page, CELL_LOW, low);
    set(page, DEAD, 0);
}

/// Writes a cell for an entry of the directory; the room was made.
fn store(page: &mut [u8], slot: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        set_slot(page, slot, page.len(), 0); // invariant 2
        return;
    }
    let low = get(page, CELL_LOW) - bytes.len();
    assert!(low >= entry(page, get(page, SLOTS)), "cells run into the directory");
    page[low..low + bytes.len()].copy_from_slice(bytes);
    set(page, CELL_LOW, low);
    set_slot(page, slot, low, bytes.len());
}
