//! Addresses and identifiers.

use std::fmt;

/// A position in the log stream, in bytes. 0 = never logged. A page's LSN is the *end* of the batch that last changed
/// it, so `log.flush_to(page_lsn)` makes that change durable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

/// A tablespace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SpaceId(pub u16);

/// The tablespace of tables and indexes.
pub const DATA: SpaceId = SpaceId(1);
/// The tablespace of rollback segments.
pub const UNDO: SpaceId = SpaceId(2);

/// A page: tablespace and page number. Page 0 of every tablespace is its file header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId {
    pub space: SpaceId,
    pub no: u32,
}

/// A row's address within its table's tablespace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Rid {
    pub page: u32,
    pub slot: u16,
}

/// Owner of pages: a table or an index. 0 = the tablespace itself. Never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ObjectId(pub u32);

/// A transaction that writes. Ids ascend in the order of the first write and are never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TxnId(pub u64);

/// Where an undo record lies in the undo tablespace: page number << 16 | position in the page. 0 = none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UndoPtr(pub u64);

impl TxnId {
    /// No transaction, or one before all others.
    pub const NONE: TxnId = TxnId(0);
}

impl SpaceId {
    /// Its name in messages and configuration.
    pub fn name(self) -> &'static str {
        match self {
            DATA => "data",
            UNDO => "undo",
            _ => "?",
        }
    }
}

impl PageId {
    pub fn new(space: SpaceId, no: u32) -> PageId {
        PageId { space, no }
    }
    pub(crate) fn to_u64(self) -> u64 {
        (self.space.0 as u64) << 32 | self.no as u64
    }
    pub(crate) fn from_u64(v: u64) -> PageId {
        PageId { space: SpaceId((v >> 32) as u16), no: v as u32 }
    }
}

impl Rid {
    /// Bytes of an encoded RID, big-endian so that byte order is RID order.
    pub const LEN: usize = 6;
    pub fn encode(self) -> [u8; 6] {
        let (p, s) = (self.page.to_be_bytes(), self.slot.to_be_bytes());
        [p[0], p[1], p[2], p[3], s[0], s[1]]
    }
    pub fn decode(b: [u8; 6]) -> Rid {
        Rid { page: u32::from_be_bytes([b[0], b[1], b[2], b[3]]), slot: u16::from_be_bytes([b[4], b[5]]) }
    }
}

impl UndoPtr {
    pub const NONE: UndoPtr = UndoPtr(0);
    pub fn new(page: u32, offset: u16) -> UndoPtr {
        UndoPtr((page as u64) << 16 | offset as u64)
    }
    pub fn page(self) -> u32 {
        (self.0 >> 16) as u32
    }
    pub fn offset(self) -> u16 {
        self.0 as u16
    }
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for Lsn {
    /// As PostgreSQL prints them: high and low half in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:08X}", self.0 >> 32, self.0 as u32)
    }
}
impl fmt::Debug for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.space.0, self.no)
    }
}
impl fmt::Debug for UndoPtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "undo {}+{}", self.page(), self.offset())
    }
}
