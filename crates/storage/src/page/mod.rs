//! Page header, slotted body, and the operations that change them (R6). Layout: ARCHITECTURE section 3.
pub mod header;
pub mod op;
pub mod slotted;

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
