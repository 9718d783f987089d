//! `PageOp`: every way in which a page's bytes change, with its log encoding. Forward work and redo share `apply`.
//!
//! Invariants:
//! 1. `apply` is a function of the op, the page's bytes and its id: redo gives the bytes that forward work gave. The
//!    page LSN is not among its results (but Format and Image set it to 0): who applies a batch stamps it.
//! 2. `decode(encode(op)) = op`; decoding garbage is an error, never a panic.

use super::{HEADER, PageKind, header, slotted};
use crate::types::{ObjectId, PageId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageOp<'a> {
    /// Makes an empty page of a kind: header, slotted body with a zeroed special area of `special` bytes. Needs no
    /// previous content.
    Format { kind: PageKind, owner: ObjectId, special: u16 },
    /// Replaces everything behind the header, and kind and owner; what `body` does not reach becomes zero. Needs no
    /// previous content.
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

const FORMAT: u8 = 1;
const IMAGE: u8 = 2;
const WRITE: u8 = 3;
const INSERT_AT: u8 = 4;
const REMOVE_AT: u8 = 5;
const PUT: u8 = 6;
const FREE: u8 = 7;
const PATCH: u8 = 8;

impl<'a> PageOp<'a> {
    /// Whether the op makes the page's content from nothing.
    pub(crate) fn starts_afresh(&self) -> bool {
        matches!(self, PageOp::Format { .. } | PageOp::Image { .. })
    }

    /// Applies the op to a page. The caller has made sure that it fits; a violation is a panic, for the engine is
    /// wrong.
    pub fn apply(&self, page: &mut [u8], id: PageId) {
        match *self {
            PageOp::Format { kind, owner, special } => {
                page[HEADER..].fill(0);
                header::format(page, id, kind, owner);
                slotted::init(page, special);
            }
            PageOp::Image { kind, owner, body } => {
                let end = HEADER + body.len();
                assert!(end <= page.len(), "image of {} bytes on a page of {}", body.len(), page.len());
                header::format(page, id, kind, owner);
                page[HEADER..end].copy_from_slice(body);
                page[end..].fill(0);
            }
            PageOp::Write { offset, bytes } => {
                let offset = offset as usize;
                assert!(offset >= HEADER, "raw write at {offset}, inside the page header");
                page[offset..offset + bytes.len()].copy_from_slice(bytes);
            }
            PageOp::InsertAt { slot, cell } => slotted::insert_at(page, slot, cell),
            PageOp::RemoveAt { slot } => slotted::remove_at(page, slot),
            PageOp::Put { slot, cell } => slotted::put(page, slot, cell),
            PageOp::Free { slot } => slotted::free(page, slot),
            PageOp::Patch { slot, offset, bytes } => slotted::patch(page, slot, offset, bytes),
        }
    }

    /// Appends the op's log form: a tag byte, then fields as LEB128 numbers, byte strings with their length in front.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            PageOp::Format { kind, owner, special } => {
                out.extend_from_slice(&[FORMAT, kind as u8]);
                put_number(out, owner.0);
                put_number(out, special as u32);
            }
            PageOp::Image { kind, owner, body } => {
                out.extend_from_slice(&[IMAGE, kind as u8]);
                put_number(out, owner.0);
                put_bytes(out, body);
            }
            PageOp::Write { offset, bytes } => {
                out.push(WRITE);
                put_number(out, offset as u32);
                put_bytes(out, bytes);
            }
            PageOp::InsertAt { slot, cell } => put_cell(out, INSERT_AT, slot, cell),
            PageOp::RemoveAt { slot } => {
                out.push(REMOVE_AT);
                put_number(out, slot as u32);
            }
            PageOp::Put { slot, cell } => put_cell(out, PUT, slot, cell),
            PageOp::Free { slot } => {
                out.push(FREE);
                put_number(out, slot as u32);
            }
            PageOp::Patch { slot, offset, bytes } => {
                out.push(PATCH);
                put_number(out, slot as u32);
                put_number(out, offset as u32);
                put_bytes(out, bytes);
            }
        }
    }

    /// Decodes one op from the front of `bytes`, advancing it.
    pub fn decode(bytes: &mut &'a [u8]) -> Result<PageOp<'a>, String> {
        Ok(match take_byte(bytes)? {
            FORMAT => PageOp::Format {
                kind: take_kind(bytes)?,
                owner: ObjectId(take_number(bytes)?),
                special: take_u16(bytes)?,
            },
            IMAGE => PageOp::Image {
                kind: take_kind(bytes)?,
                owner: ObjectId(take_number(bytes)?),
                body: take_bytes(bytes)?,
            },
            WRITE => PageOp::Write { offset: take_u16(bytes)?, bytes: take_bytes(bytes)? },
            INSERT_AT => PageOp::InsertAt { slot: take_u16(bytes)?, cell: take_bytes(bytes)? },
            REMOVE_AT => PageOp::RemoveAt { slot: take_u16(bytes)? },
            PUT => PageOp::Put { slot: take_u16(bytes)?, cell: take_bytes(bytes)? },
            FREE => PageOp::Free { slot: take_u16(bytes)? },
            PATCH => PageOp::Patch { slot: take_u16(bytes)?, offset: take_u16(bytes)?, bytes: take_bytes(bytes)? },
            tag => return Err(format!("page operation {tag} is unknown")),
        })
    }
}

fn put_number(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

fn put_cell(out: &mut Vec<u8>, tag: u8, slot: u16, cell: &[u8]) {
    out.push(tag);
    put_number(out, slot as u32);
    put_bytes(out, cell);
}

fn take_byte(bytes: &mut &[u8]) -> Result<u8, String> {
    let (&first, rest) = bytes.split_first().ok_or("page operation ends early")?;
    *bytes = rest;
    Ok(first)
}

fn take_number(bytes: &mut &[u8]) -> Result<u32, String> {
    let mut value = 0u64;
    for shift in (0..35).step_by(7) {
        let byte = take_byte(bytes)?;
        value |= ((byte & 0x7F) as u64) << shift;
        if byte < 0x80 {
            return u32::try_from(value).map_err(|_| format!("number {value} exceeds 32 bits"));
        }
    }
    Err("number of more than five bytes".into())
}

fn take_u16(bytes: &mut &[u8]) -> Result<u16, String> {
    let value = take_number(bytes)?;
    u16::try_from(value).map_err(|_| format!("number {value} exceeds 16 bits"))
}

fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], String> {
    let len = take_number(bytes)? as usize;
    let (taken, rest) = bytes.split_at_checked(len).ok_or("byte string ends early")?;
    *bytes = rest;
    Ok(taken)
}

fn take_kind(bytes: &mut &[u8]) -> Result<PageKind, String> {
    let byte = take_byte(bytes)?;
    PageKind::from_u8(byte).ok_or_else(|| format!("page kind {byte} is unknown"))
}
