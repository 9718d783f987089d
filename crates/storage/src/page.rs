//! Page header, slotted body, and the operations that change them (R6). Layout: ARCHITECTURE section 3.
pub mod header;
pub mod op;
pub mod slotted;

#[cfg(test)]
mod tests;

/// Bytes of the page header.
pub const HEADER: usize = 32;

/// What a page is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PageKind {
    FileHeader = 1,
    SpaceMap = 2,
    Heap = 3,
    BTree = 4,
    UndoDirectory = 5,
    Undo = 6,
}

impl PageKind {
    /// The kind of a stored byte, `None` where it is unknown.
    pub(crate) fn from_u8(byte: u8) -> Option<PageKind> {
        Some(match byte {
            1 => PageKind::FileHeader,
            2 => PageKind::SpaceMap,
            3 => PageKind::Heap,
            4 => PageKind::BTree,
            5 => PageKind::UndoDirectory,
            6 => PageKind::Undo,
            _ => return None,
        })
    }
}
