//! The dimensions of an array.
//!
//! 1. An array without items has no dimensions, and no dimension is without items.
//! 2. The number of a dimension's last item is below 2^31 - 1, and all items are fewer than 2^27.
use crate::error::{EngineError, Result};
use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;

/// Of one array.
pub const MOST_DIMENSIONS: usize = 6;
const MOST_ITEMS: i64 = (1 << 27) - 1;

/// How many items a dimension has, and which number the first of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dimension {
    pub length: i32,
    pub first: i32,
}

impl Dimension {
    /// The number of the last item.
    pub fn last(self) -> i32 {
        self.first + self.length - 1
    }
}

/// The dimensions of an array, the outermost first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    count: usize,
    dimensions: [Dimension; MOST_DIMENSIONS],
}

impl Deref for Shape {
    type Target = [Dimension];

    fn deref(&self) -> &[Dimension] {
        &self.dimensions[..self.count]
    }
}

impl Shape {
    /// 54000 where there are too many of them, or of items. Of a dimension without items all is empty.
    pub fn new(dimensions: &[Dimension]) -> Result<Shape> {
        if dimensions.len() > MOST_DIMENSIONS {
            return Err(Shape::too_many(dimensions.len()));
        }
        let mut all = 1i64;
        for dimension in dimensions {
            all *= i64::from(dimension.length);
            if dimension.length < 0 || all > MOST_ITEMS {
                return Err(Shape::too_large());
            }
        }
        // PostgreSQL has one number less than an int4: that behind the last item is one, too.
        if let Some(wrong) = dimensions.iter().find(|d| d.first.checked_add(d.length).is_none()) {
            return Err(EngineError::new("54000", format!("array lower bound is too large: {}", wrong.first)));
        }
        let mut made = Shape { count: 0, dimensions: [Dimension::default(); MOST_DIMENSIONS] };
        if all > 0 {
            made.count = dimensions.len();
            made.dimensions[..dimensions.len()].copy_from_slice(dimensions);
        }
        Ok(made)
    }

    /// One dimension, of items from number 1.
    pub fn plain(items: usize) -> Result<Shape> {
        let length = i32::try_from(items).map_err(|_| Shape::too_large())?;
        Shape::new(&[Dimension { length, first: 1 }])
    }

    pub fn too_many(count: usize) -> EngineError {
        let most = MOST_DIMENSIONS;
        EngineError::new("54000", format!("number of array dimensions ({count}) exceeds the maximum allowed ({most})"))
    }

    pub fn too_large() -> EngineError {
        EngineError::new("54000", format!("array size exceeds the maximum allowed ({MOST_ITEMS})"))
    }

    /// Of one dimension that begins with number 1, or of no items.
    pub fn is_plain(&self) -> bool {
        matches!(**self, [] | [Dimension { first: 1, .. }])
    }

    /// How many there are in all.
    pub fn items(&self) -> usize {
        if self.is_empty() { 0 } else { self.iter().map(|d| d.length as usize).product() }
    }

    /// The place of an item among all; `None`: there is none of these numbers.
    pub fn place(&self, subscripts: &[i32]) -> Option<usize> {
        if subscripts.len() != self.len() || self.is_empty() {
            return None;
        }
        let mut place = 0;
        for (dimension, subscript) in self.iter().zip(subscripts) {
            let own = i64::from(*subscript) - i64::from(dimension.first);
            if !(0..i64::from(dimension.length)).contains(&own) {
                return None;
            }
            place = place * dimension.length as usize + own as usize;
        }
        Some(place)
    }

    /// How many braces open before an item.
    pub fn opens(&self, item: usize) -> usize {
        self.edges(item)
    }

    /// How many braces close behind an item.
    pub fn closes(&self, item: usize) -> usize {
        self.edges(item + 1)
    }

    fn edges(&self, item: usize) -> usize {
        let mut block = 1;
        let at_edge = |dimension: &&Dimension| {
            block *= dimension.length as usize;
            item.is_multiple_of(block)
        };
        self.iter().rev().take_while(at_edge).count()
    }

    /// Writes an array's text; `item`: writes the one of this place.
    pub fn write_text<W: fmt::Write, E: From<fmt::Error>>(
        &self,
        out: &mut W,
        mut item: impl FnMut(&mut W, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.is_empty() {
            return Ok(out.write_str("{}")?);
        }
        if self.iter().any(|dimension| dimension.first != 1) {
            self.iter().try_for_each(|d| write!(out, "[{}:{}]", d.first, d.last()))?;
            out.write_str("=")?;
        }
        for at in 0..self.items() {
            out.write_str(if at > 0 { "," } else { "" })?;
            (0..self.opens(at)).try_for_each(|_| out.write_str("{"))?;
            item(out, at)?;
            (0..self.closes(at)).try_for_each(|_| out.write_str("}"))?;
        }
        Ok(())
    }

    /// Their bytes: see the format of arrays.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(self.count as u8);
        for dimension in self.iter() {
            out.extend_from_slice(&dimension.length.to_le_bytes());
            out.extend_from_slice(&dimension.first.to_le_bytes());
        }
    }

    /// What [`Shape::write`] wrote, and other bytes behind it; `None`: it is none.
    pub fn read(bytes: &[u8]) -> Option<Shape> {
        let (count, rest) = bytes.split_first()?;
        let rest = rest.get(..usize::from(*count) * 8)?;
        let number = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().expect("4 bytes"));
        let dimension = |own: &[u8]| Dimension { length: number(&own[..4]), first: number(&own[4..]) };
        let dimensions: Vec<Dimension> = rest.chunks_exact(8).map(dimension).collect();
        // Invariant 1.
        Shape::new(&dimensions).ok().filter(|made| made.len() == dimensions.len())
    }

    /// Bytes of these, of so many dimensions.
    pub(super) fn width_of(count: u8) -> usize {
        1 + usize::from(count) * 8
    }

    pub(super) fn width(&self) -> usize {
        Shape::width_of(self.count as u8)
    }

    /// By items, then dimensions, then their lengths, then the numbers of their first items.
    pub(super) fn cmp(&self, other: &Shape) -> Ordering {
        let lengths = self.iter().map(|d| d.length).cmp(other.iter().map(|d| d.length));
        let firsts = || self.iter().map(|d| d.first).cmp(other.iter().map(|d| d.first));
        self.items().cmp(&other.items()).then(self.count.cmp(&other.count)).then(lengths).then_with(firsts)
    }
}
