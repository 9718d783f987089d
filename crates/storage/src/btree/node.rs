//! Layout of a B-tree page (*format*) and how to read it. Changes are made by the modules that know why.
//!
//! The special area is a [`NodeSpecial`]. The cells are, in directory order: the high key where there is a right page,
//! then the entries. An entry of a leaf is the key; an entry of an inner page is the child's page number (u32), then
//! the separator.
//!
//! Invariants:
//! 1. Keys of a page are below its high key and not below the left page's. Entries ascend strictly.
//! 2. The child of inner entry *i* covers keys from separator *i* to separator *i + 1* (or the high key). The first
//!    separator counts as minus infinity: below it, only the page's left bound says what its keys are.
//! 3. A page whose right page has no entry in the level above is flagged `INCOMPLETE`.
//! 4. A page flagged `DEAD` is unlinked; its right link still leads to where its keys belong.
use crate::bytes::{U16, U32, front, layout};
use crate::page::op::PageOp;
use crate::page::{PageKind, header, slotted};
use crate::types::*;
use std::mem::offset_of;

layout! {
    pub(super) struct NodeSpecial: 12 {
        /// 0: a leaf.
        0 level: u8,
        1 flags: u8,
        2 zero: U16,
        /// Pages; 0: none.
        4 left: U32,
        8 right: U32,
    }
}

pub(super) const SPECIAL: u16 = size_of::<NodeSpecial>() as u16;
pub(super) const INCOMPLETE: u8 = 1;
pub(super) const DEAD: u8 = 2;
const CHILD: usize = size_of::<U32>();
/// Of so many entries halving finds one soon.
const FEW: usize = 16;

/// Where a descent or search is going.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'a> {
    /// Before all keys.
    First,
    /// Behind all keys.
    Last,
    Key(&'a [u8]),
}

/// A B-tree page, read.
#[derive(Clone, Copy)]
pub(super) struct Node<'a>(pub(super) &'a [u8]);

impl<'a> Node<'a> {
    /// Whether the page is one of this object's tree.
    pub(super) fn belongs(self, object: ObjectId) -> bool {
        header::kind(self.0) == Some(PageKind::BTree)
            && header::owner(self.0) == object
            && slotted::special(self.0).len() == SPECIAL as usize
    }
    fn special(self) -> &'a NodeSpecial {
        front(slotted::special(self.0))
    }
    pub(super) fn level(self) -> u8 {
        self.special().level
    }
    fn flags(self) -> u8 {
        self.special().flags
    }
    pub(super) fn is_incomplete(self) -> bool {
        self.flags() & INCOMPLETE != 0
    }
    pub(super) fn is_dead(self) -> bool {
        self.flags() & DEAD != 0
    }
    pub(super) fn left(self) -> u32 {
        self.special().left.get()
    }
    pub(super) fn right(self) -> u32 {
        self.special().right.get()
    }
    /// The bound above all keys of the page; none where it is the rightmost of its level.
    pub(super) fn high(self) -> Option<&'a [u8]> {
        (self.right() != 0).then(|| self.cell(0))
    }
    /// Slot of entry `i`.
    pub(super) fn slot(self, i: usize) -> u16 {
        i as u16 + (self.right() != 0) as u16
    }
    /// Number of entries.
    pub(super) fn count(self) -> usize {
        slotted::slot_count(self.0) as usize - (self.right() != 0) as usize
    }
    fn cell(self, slot: u16) -> &'a [u8] {
        slotted::cell(self.0, slot).expect("ordered pages have no empty slots")
    }
    /// The cell of entry `i`.
    pub(super) fn entry(self, i: usize) -> &'a [u8] {
        self.cell(self.slot(i))
    }
    /// Key of leaf entry `i`, or separator of inner entry `i`.
    pub(super) fn key(self, i: usize) -> &'a [u8] {
        let entry = self.entry(i);
        if self.level() == 0 { entry } else { &entry[CHILD..] }
    }
    pub(super) fn child(self, i: usize) -> u32 {
        debug_assert!(self.level() > 0);
        front::<U32>(self.entry(i)).get()
    }
    /// Whether a search for `target` has to go on to the right page.
    pub(super) fn is_left_of(self, target: Target<'_>) -> bool {
        self.is_dead()
            || match target {
                Target::First => false,
                Target::Last => self.right() != 0,
                Target::Key(key) => self.high().is_some_and(|high| key >= high),
            }
    }
    /// The first entry in `from..` whose key is not below `key`.
    fn lower_bound(self, from: usize, key: &[u8]) -> usize {
        let (skip, stride) = (self.slot(0), if self.level() == 0 { 0 } else { CHILD });
        let at = |i: usize| &self.cell(i as u16 + skip)[stride..];
        let (mut low, mut high) = (from, self.count());
        if high > low + FEW {
            (low, high) = near(low, high, key, at);
        }
        while low < high {
            let middle = (low + high) / 2;
            if at(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
    /// Position of a leaf key, or where it belongs.
    pub(super) fn search(self, key: &[u8]) -> Result<usize, usize> {
        let i = self.lower_bound(0, key);
        if i < self.count() && self.key(i) == key { Ok(i) } else { Err(i) }
    }
    /// Position of a separator among those of an inner page (the first counts as minus infinity), or where it belongs.
    pub(super) fn search_separator(self, key: &[u8]) -> Result<usize, usize> {
        let i = self.lower_bound(1, key);
        if i < self.count() && self.key(i) == key { Ok(i) } else { Err(i) }
    }
    /// The child to descend to.
    pub(super) fn child_for(self, target: Target<'_>) -> u32 {
        match target {
            Target::First => self.child(0),
            Target::Last => self.child(self.count() - 1),
            Target::Key(key) => match self.search_separator(key) {
                Ok(i) => self.child(i),
                Err(i) => self.child(i - 1),
            },
        }
    }
    /// The number of entries that stay in the left half of a split: about half of the bytes, or nine tenths.
    pub(super) fn split_point(self, append: bool) -> usize {
        let count = self.count();
        assert!(count >= 2, "a page with {count} entries is full");
        let bytes = |i: usize| self.entry(i).len() + slotted::SLOT;
        let total: usize = (0..count).map(bytes).sum();
        let goal = if append { total / 10 * 9 } else { total / 2 };
        let mut sum = 0;
        let point = (0..count).find(|&i| {
            sum += bytes(i);
            sum > goal
        });
        point.unwrap_or(count).clamp(1, count - 1)
    }
    /// The bound between entries `i - 1` and `i`: above the one, not above the other, and as short as may be.
    pub(super) fn separator(self, i: usize) -> &'a [u8] {
        if self.level() == 0 { separator(self.key(i - 1), self.key(i)) } else { self.key(i) }
    }
}

/// Narrows `low..=high`, where the first of the entries `low..high` not below `key` lies, by looking where it would be
/// if the keys were spread evenly (interpolation: Graefe, *B-tree indexes, interpolation search, and skew*, 2006), then
/// ever farther from there. A page of even keys then costs a few cache misses where halving takes a dozen, any other a
/// few more than halving.
pub(super) fn near<'a>(mut low: usize, mut high: usize, key: &[u8], at: impl Fn(usize) -> &'a [u8]) -> (usize, usize) {
    let (first, last) = (at(low), at(high - 1));
    if key <= first {
        return (low, low);
    }
    if last < key {
        return (high, high);
    }
    let common = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let (a, b, k) = (word(first, common), word(last, common), word(key, common));
    // What lies between two keys begins as they do.
    let (all, part) = (b.saturating_sub(a), k.saturating_sub(a));
    let span = (high - 1 - low) as u128;
    let guess = low + (u128::from(part.min(all)) * span / u128::from(all.max(1))) as usize;
    let mut step = 2;
    if at(guess) < key {
        low = guess + 1;
        while low + step < high {
            let probe = low + step;
            if at(probe) < key {
                low = probe + 1;
            } else {
                high = probe;
                break;
            }
            step *= 4;
        }
    } else {
        high = guess;
        while low + step < high {
            let probe = high - step;
            if at(probe) < key {
                low = probe + 1;
                break;
            }
            high = probe;
            step *= 4;
        }
    }
    (low, high)
}

/// The eight bytes from `from` on, as a number; zeros where there are none.
fn word(key: &[u8], from: usize) -> u64 {
    let rest = key.get(from..).unwrap_or_default();
    match rest.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 8];
            bytes[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(bytes)
        }
    }
}

/// The shortest prefix of `right` above `left` (suffix truncation; Bayer and Unterauer, *Prefix B-trees*, section 2).
pub(super) fn separator<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    assert!(left < right, "keys ascend");
    let common = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    &right[..common + 1]
}

/// The cell of an inner entry.
pub(super) fn inner_cell(child: u32, separator: &[u8]) -> Vec<u8> {
    let mut cell = Vec::with_capacity(CHILD + separator.len());
    cell.extend_from_slice(&child.to_le_bytes());
    cell.extend_from_slice(separator);
    cell
}

pub(super) fn format(object: ObjectId) -> PageOp<'static> {
    PageOp::Format { kind: PageKind::BTree, owner: object, special: SPECIAL }
}

/// A whole special area.
pub(super) fn special(level: u8, flags: u8, left: u32, right: u32) -> [u8; SPECIAL as usize] {
    zerocopy::transmute!(NodeSpecial { level, flags, zero: U16::ZERO, left: left.into(), right: right.into() })
}

pub(super) fn write_special(bytes: &[u8; SPECIAL as usize]) -> PageOp<'_> {
    PageOp::Write { offset: slotted::special_offset(), bytes }
}
pub(super) fn write_flags(flags: &[u8; 1]) -> PageOp<'_> {
    PageOp::Write { offset: slotted::special_offset() + offset_of!(NodeSpecial, flags) as u16, bytes: flags }
}
pub(super) fn write_left(left: &[u8; 4]) -> PageOp<'_> {
    PageOp::Write { offset: slotted::special_offset() + offset_of!(NodeSpecial, left) as u16, bytes: left }
}
pub(super) fn write_right(right: &[u8; 4]) -> PageOp<'_> {
    PageOp::Write { offset: slotted::special_offset() + offset_of!(NodeSpecial, right) as u16, bytes: right }
}
