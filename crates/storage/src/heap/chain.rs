//! Chains of fragments for payloads that do not fit in their slot. Layout and invariants: the heap's own page.
//!
//! A chain is written from its tail and freed from its tail: at any moment of either, what can be reached from its
//! first fragment is whole up to some fragment and gone behind it, so that freeing can always be finished later.
//!
//! Until its stub is stored nothing leads to a chain but the undo records that are appended with its fragments
//! ([`FragmentNote`]): rollback frees each fragment by its record, whether or not the stub was stored by then.
use super::*;
use crate::bytes::{FromBytes, IntoBytes, U32};
use crate::error::StorageError;
use crate::undo::{UndoReservation, UndoSpace, UndoWriter};

layout! {
    /// What a row's cell holds instead of a payload that does not fit.
    struct StubBytes: 16 {
        /// Bytes of the payload.
        0 len: U32,
        4 id: ChainId,
        /// RID of the first fragment.
        10 first: [u8; Rid::LEN],
    }
}

layout! {
    /// What stands in front of a fragment's part of the payload.
    struct FragmentFront: 13 {
        /// `FRAGMENT`.
        0 flags: u8,
        1 chain: ChainId,
        /// RID of the next fragment; zeros: this is the last.
        7 next: [u8; Rid::LEN],
    }
}

/// Bytes of a stub.
pub(super) const STUB: usize = size_of::<StubBytes>();
/// Bytes of a fragment in front of its payload.
const FRAGMENT_HEADER: usize = size_of::<FragmentFront>();
/// "No next fragment". Page 0 is the file header and holds none.
const END: Rid = Rid { page: 0, slot: 0 };

/// What tells a chain's fragments from others in the same slots at other times. Random.
pub type ChainId = [u8; 6];

/// Where to append a record of each fragment written: its body, of `len` bytes, from object, RID and chain.
pub struct FragmentNote<'a> {
    pub writer: &'a mut UndoWriter,
    pub len: usize,
    pub body: fn(ObjectId, Rid, ChainId) -> Vec<u8>,
}

/// A fragment by its place and its chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    pub rid: Rid,
    pub chain: ChainId,
}

/// A chain of one fragment, to be written with its stub in one mini-transaction.
pub struct Spill {
    id: ChainId,
    len: u32,
    cell: Vec<u8>,
}

pub(super) struct Stub {
    pub(super) len: u32,
    pub(super) id: ChainId,
    pub(super) first: Rid,
}

impl Stub {
    pub(super) fn encode(&self) -> Vec<u8> {
        StubBytes { len: self.len.into(), id: self.id, first: self.first.encode() }.as_bytes().to_vec()
    }
    pub(super) fn decode(b: &[u8]) -> Result<Stub> {
        let stub = StubBytes::ref_from_bytes(b);
        let stub = stub.map_err(|_| StorageError::Damaged(format!("stub of {} bytes", b.len())))?;
        Ok(Stub { len: stub.len.get(), id: stub.id, first: Rid::decode(stub.first) })
    }
}

/// Next fragment and payload of a fragment of the chain `id`.
fn fragment<'a>(cell: &'a [u8], id: &ChainId) -> Option<(Rid, &'a [u8])> {
    let (front, bytes) = FragmentFront::ref_from_prefix(cell).ok()?;
    (front.flags & FRAGMENT != 0 && front.chain == *id).then(|| (Rid::decode(front.next), bytes))
}

impl Heap {
    /// Payload bytes of a full fragment: the cell takes fifteen sixteenths of a page, the most that the map can tell
    /// of.
    fn fragment_payload(page_size: usize) -> usize {
        let empty = page_size - slotted::special_offset() as usize - slotted::SLOT;
        (page_size / 16 * 15).min(empty) - FRAGMENT_HEADER
    }

    /// Stores a long payload as a chain of fragments, each in a mini-transaction of its own with its note, and returns
    /// the stub bytes to keep in the slot. After an error or a crash the notes lead to what was written; without notes
    /// it is lost.
    pub async fn write_chain(&self, st: &Store, payload: &[u8], mut note: Option<FragmentNote<'_>>) -> Result<Vec<u8>> {
        if payload.len() > MAX_ROW {
            return Err(StorageError::RowTooLong { len: payload.len(), limit: MAX_ROW });
        }
        let mut stub = Stub { len: payload.len() as u32, id: new_chain(st), first: END };
        let size = Heap::fragment_payload(st.pool().page_size());
        for part in payload.chunks(size).rev() {
            let cell = fragment_cell(&stub.id, stub.first, part);
            stub.first = self.write_fragment(st, stub.id, &cell, note.as_mut()).await?;
        }
        Ok(stub.encode())
    }

    async fn write_fragment(
        &self,
        st: &Store,
        id: ChainId,
        cell: &[u8],
        mut note: Option<&mut FragmentNote<'_>>,
    ) -> Result<Rid> {
        loop {
            let (undo, log) = match &mut note {
                Some(n) => (Some(st.undo().reserve(st, n.writer, n.len).await?), UndoSpace::log_bytes(n.len)),
                None => (None, 0),
            };
            let room = self.find_room(st, cell.len(), u64::from(id[0])).await?;
            let permit = st.reserve(cell.len() + ROW_LOG + log).await?;
            if let Some(rid) = self.insert_fragment(st, st.mtr(permit), room, id, cell, note.as_deref_mut().zip(undo)) {
                return Ok(rid);
            }
        }
    }

    fn insert_fragment(
        &self,
        st: &Store,
        mut mtr: Mtr,
        room: PinnedHeapPage,
        id: ChainId,
        cell: &[u8],
        note: Option<(&mut FragmentNote<'_>, UndoReservation)>,
    ) -> Option<Rid> {
        let rid = self.insert_cell(st, &mut mtr, room, cell)?;
        if let Some((note, room)) = note {
            st.undo().append(&mut mtr, note.writer, room, &(note.body)(self.object, rid, id));
        }
        mtr.commit();
        Some(rid)
    }

    /// Prepares a payload that some slot once held for a chain of one fragment.
    pub fn spill(st: &Store, payload: &[u8]) -> Spill {
        let limit = Heap::fragment_payload(st.pool().page_size());
        assert!(payload.len() <= limit, "a payload of {} bytes was never in a slot", payload.len());
        let id = new_chain(st);
        Spill { id, len: payload.len() as u32, cell: fragment_cell(&id, END, payload) }
    }

    /// As `find_room`, for the fragment.
    pub async fn find_spill_room(&self, st: &Store, spill: &Spill) -> Result<PinnedHeapPage> {
        self.find_room(st, spill.cell.len(), u64::from(spill.id[0])).await
    }

    /// Writes the fragment and returns the stub; `None` where the room is gone. Logs `ROW_LOG` bytes more than the
    /// payload.
    pub fn insert_spill(&self, st: &Store, mtr: &mut Mtr, room: PinnedHeapPage, spill: &Spill) -> Option<Vec<u8>> {
        let first = self.insert_cell(st, mtr, room, &spill.cell)?;
        Some(Stub { len: spill.len, id: spill.id, first }.encode())
    }

    /// The chain's fragment where it has one only.
    pub fn only_fragment(st: &Store, stub: &[u8]) -> Result<Option<Fragment>> {
        let stub = Stub::decode(stub)?;
        let single = stub.first != END && stub.len as usize <= Heap::fragment_payload(st.pool().page_size());
        Ok(single.then_some(Fragment { rid: stub.first, chain: stub.id }))
    }

    /// Reads the payload behind a stub.
    pub async fn read_chain(&self, st: &Store, stub: &[u8]) -> Result<Vec<u8>> {
        match self.read_if_whole(st, stub).await? {
            Ok(payload) => Ok(payload),
            Err((page, have)) => Err(StorageError::Damaged(format!(
                "chain of {} breaks at page {page}: {have} of {} bytes",
                self.object,
                Stub::decode(stub)?.len
            ))),
        }
    }

    /// Reads the payload behind a stub; where fragments are missing (freed), at which page and after how many bytes.
    pub async fn read_if_whole(&self, st: &Store, stub: &[u8]) -> Result<std::result::Result<Vec<u8>, (u32, usize)>> {
        let stub = Stub::decode(stub)?;
        let mut payload = Vec::with_capacity((stub.len as usize).min(MAX_ROW));
        let mut at = stub.first;
        while at != END {
            let pin = self.pin_page(st, at.page, Access::Random).await?;
            let page = pin.read();
            let cell = slotted::cell(&page, at.slot).filter(|_| self.owns(&page));
            let Some((next, bytes)) = cell.and_then(|cell| fragment(cell, &stub.id)) else { break };
            payload.extend_from_slice(bytes);
            if payload.len() > stub.len as usize {
                break;
            }
            at = next;
        }
        let whole = at == END && payload.len() == stub.len as usize;
        Ok(if whole { Ok(payload) } else { Err((at.page, payload.len())) })
    }

    /// The fragments of a chain, as far as they exist.
    pub(super) async fn fragments(&self, st: &Store, stub: &Stub) -> Result<Vec<Rid>> {
        let mut found = Vec::new();
        let (mut at, mut bytes) = (stub.first, 0);
        while at != END && bytes < stub.len as usize {
            let pin = self.pin_page(st, at.page, Access::Random).await?;
            let page = pin.read();
            let cell = slotted::cell(&page, at.slot).filter(|_| self.owns(&page));
            let Some((next, part)) = cell.and_then(|cell| fragment(cell, &stub.id)) else { break };
            found.push(at);
            bytes += part.len();
            at = next;
        }
        Ok(found)
    }

    /// Frees a chain's fragments. Idempotent, also after a crash in the middle (invariant 2).
    pub async fn free_chain(&self, st: &Store, stub: &[u8]) -> Result<()> {
        let stub = Stub::decode(stub)?;
        for rid in self.fragments(st, &stub).await?.into_iter().rev() {
            let room = self.pin_row(st, rid).await?;
            let permit = st.reserve_for_cleanup(ROW_LOG).await?;
            let mut mtr = st.mtr(permit);
            self.free_fragment(st, &mut mtr, &room, Fragment { rid, chain: stub.id });
            mtr.commit();
        }
        Ok(())
    }

    /// Frees a fragment if it is (still) there; `room` is its page's.
    pub fn free_fragment(&self, st: &Store, mtr: &mut Mtr, room: &PinnedHeapPage, which: Fragment) {
        let at = mtr.latch(&room.page);
        let page = mtr.page(at);
        let cell = slotted::cell(page, which.rid.slot).filter(|_| self.owns(page));
        if cell.is_some_and(|cell| fragment(cell, &which.chain).is_some()) {
            self.free(st, mtr, at, &room.map, which.rid.slot);
        }
    }
}

fn new_chain(st: &Store) -> ChainId {
    st.env().random_u64().to_le_bytes()[..6].try_into().expect("six of eight bytes")
}

fn fragment_cell(id: &ChainId, next: Rid, part: &[u8]) -> Vec<u8> {
    [&[FRAGMENT][..], id, &next.encode(), part].concat()
}
