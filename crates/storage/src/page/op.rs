//! `PageOp`: every way in which a page's bytes change, with its log encoding. Forward work and redo share `apply`.
use super::PageKind;
use crate::types::{ObjectId, PageId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageOp<'a> {
    /// Makes an empty page of a kind: header, slotted body with a zeroed special area of `special` bytes. Needs no previous content.
    Format { kind: PageKind, owner: ObjectId, special: u16 },
    /// Replaces everything behind the header, and kind and owner. Needs no previous content.
    Image { kind: PageKind, owner: ObjectId, body: &'a [u8] },
    /// Overwrites raw bytes at an offset from the page's start; never inside the header.
    Write { offset: u16, bytes: &'a [u8] },
    /// Inserts a cell before directory position `slot`, shifting later ones up (ordered pages).
    InsertAt { slot: u16, cell: &'a [u8] },
    /// Removes directory position `slot`, shifting later ones down (ordered pages).
    RemoveAt { slot: u16 },
    /// Sets the cell of a stable slot, extending the directory as needed; replaces what is there.
    Put { slot: u16, cell: &'a [u8] },
    /// Empties a stable slot (trailing empty slots leave the directory).
    Free { slot: u16 },
    /// Overwrites bytes within a cell.
    Patch { slot: u16, offset: u16, bytes: &'a [u8] },
}

impl<'a> PageOp<'a> {
    /// Whether the op makes the page's content from nothing.
    pub fn starts_afresh(&self) -> bool {
        matches!(self, PageOp::Format { .. } | PageOp::Image { .. })
    }
    /// Applies the op to a page. The caller has made sure that it fits; a violation is a panic, for the engine is wrong.
    pub fn apply(&self, _page: &mut [u8], _id: PageId) {
        todo!()
    }
    pub fn encode(&self, _out: &mut Vec<u8>) {
        todo!()
    }
    /// Decodes one op from the front of `bytes`, advancing it.
    pub fn decode(_bytes: &mut &'a [u8]) -> Result<PageOp<'a>, String> {
        todo!()
    }
}
