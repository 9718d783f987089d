//! Chains of fragments for payloads that do not fit in their slot. Layout and invariants: the heap's own page.
//!
//! A chain is written from its tail and freed from its tail: at any moment of either, what can be reached from its first fragment
//! is whole up to some fragment and gone behind it, so that freeing can always be finished later.
use super::*;
use crate::error::StorageError;

/// Bytes of a stub.
pub(super) const STUB: usize = 4 + 6 + Rid::LEN;
/// Bytes of a fragment in front of its payload.
const FRAGMENT_HEADER: usize = 1 + 6 + Rid::LEN;
/// "No next fragment". Page 0 is the file header and holds none.
const END: Rid = Rid { page: 0, slot: 0 };

type ChainId = [u8; 6];

pub(super) struct Stub {
    pub(super) len: u32,
    pub(super) id: ChainId,
    pub(super) first: Rid,
}

impl Stub {
    pub(super) fn encode(&self) -> Vec<u8> {
        [&self.len.to_le_bytes()[..], &self.id, &self.first.encode()].concat()
    }
    pub(super) fn decode(b: &[u8]) -> Result<Stub> {
        if b.len() != STUB {
            return Err(StorageError::Damaged(format!("stub of {} bytes", b.len())));
        }
        Ok(Stub {
            len: u32::from_le_bytes(b[..4].try_into().expect("four bytes")),
            id: b[4..10].try_into().expect("six bytes"),
            first: Rid::decode(b[10..16].try_into().expect("six bytes")),
        })
    }
}

/// Next fragment and payload of a fragment of the chain `id`.
fn fragment<'a>(cell: &'a [u8], id: &ChainId) -> Option<(Rid, &'a [u8])> {
    if cell[0] & FRAGMENT == 0 || cell[1..7] != *id {
        return None;
    }
    Some((Rid::decode(cell[7..13].try_into().expect("six bytes")), &cell[FRAGMENT_HEADER..]))
}

impl Heap {
    /// Payload bytes of a full fragment: the cell takes fifteen sixteenths of a page, the most that the map can tell of.
    fn fragment_payload(page_size: usize) -> usize {
        let empty = page_size - slotted::special_offset() as usize - slotted::SLOT;
        (page_size / 16 * 15).min(empty) - FRAGMENT_HEADER
    }

    /// Stores a long payload as a chain of fragments (own mini-transactions, before the row itself is written) and returns the
    /// stub bytes to keep in the slot. A crash in between leaks fragments that `free_chain` of the undo record or check collects.
    pub async fn write_chain(&self, st: &Store, payload: &[u8]) -> Result<Vec<u8>> {
        if payload.len() > MAX_ROW {
            return Err(StorageError::RowTooLong { len: payload.len(), limit: MAX_ROW });
        }
        let random = st.env().random_u64().to_le_bytes();
        let id: ChainId = random[..6].try_into().expect("six of eight bytes");
        let mut stub = Stub { len: payload.len() as u32, id, first: END };
        let size = Heap::fragment_payload(st.pool().page_size());
        for part in payload.chunks(size).rev() {
            match self.write_fragment(st, &id, stub.first, part).await {
                Ok(rid) => stub.first = rid,
                Err(e) => {
                    // What was written stays unreachable unless it is freed now; the first error is the one to report.
                    let _ = self.free_chain(st, &stub.encode()).await;
                    return Err(e);
                }
            }
        }
        Ok(stub.encode())
    }

    async fn write_fragment(&self, st: &Store, id: &ChainId, next: Rid, part: &[u8]) -> Result<Rid> {
        let cell = [&[FRAGMENT][..], id, &next.encode(), part].concat();
        loop {
            let room = self.find_room(st, cell.len(), u64::from(id[0])).await?;
            let permit = st.reserve(cell.len() + ROW_LOG).await?;
            if let Some(rid) = self.insert_fragment(st, st.mtr(permit), room, &cell) {
                return Ok(rid);
            }
        }
    }

    fn insert_fragment(&self, st: &Store, mut mtr: Mtr, room: HeapRoom, cell: &[u8]) -> Option<Rid> {
        let rid = self.insert_cell(st, &mut mtr, room, cell)?;
        mtr.commit();
        Some(rid)
    }

    /// Reads the payload behind a stub.
    pub async fn read_chain(&self, st: &Store, stub: &[u8]) -> Result<Vec<u8>> {
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
        if at != END || payload.len() != stub.len as usize {
            let (page, have, want) = (at.page, payload.len(), stub.len);
            return Err(StorageError::Damaged(format!(
                "chain of {} breaks at page {page}: {have} of {want} bytes",
                self.object
            )));
        }
        Ok(payload)
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
            self.free_fragment(st, st.mtr(permit), &room, rid.slot, &stub.id);
        }
        Ok(())
    }

    fn free_fragment(&self, st: &Store, mut mtr: Mtr, room: &HeapRoom, slot: u16, id: &ChainId) {
        let at = mtr.latch(&room.page);
        let cell = slotted::cell(mtr.page(at), slot);
        if cell.is_some_and(|cell| fragment(cell, id).is_some()) {
            self.free(st, &mut mtr, at, &room.map, slot);
            mtr.commit();
        }
    }
}
