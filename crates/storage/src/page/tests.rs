//! Slotted pages against a naive model, and the log form of operations.
use super::op::PageOp;
use super::{PageKind, header, slotted};
use crate::types::{DATA, ObjectId, PageId};
use proptest::prelude::*;

const ID: PageId = PageId { space: DATA, no: 5 };

/// A wish; it becomes an op where the model says that it fits, and the page must agree.
#[derive(Clone, Debug)]
enum Wish {
    Insert(usize, usize),
    Remove(usize),
    Put(usize, usize),
    Free(usize),
    Patch(usize, usize),
}

fn wish(ordered: bool, page_size: usize) -> BoxedStrategy<Wish> {
    let length = prop_oneof![4 => 0..80usize, 2 => 0..page_size / 4, 1 => Just(usize::MAX)];
    let any = 0..usize::MAX;
    if ordered {
        prop_oneof![
            4 => (any.clone(), length).prop_map(|(s, l)| Wish::Insert(s, l)),
            2 => any.clone().prop_map(Wish::Remove),
            1 => (any.clone(), any).prop_map(|(s, o)| Wish::Patch(s, o)),
        ]
        .boxed()
    } else {
        prop_oneof![
            4 => (any.clone(), length).prop_map(|(s, l)| Wish::Put(s, l)),
            2 => any.clone().prop_map(Wish::Free),
            1 => (any.clone(), any).prop_map(|(s, o)| Wish::Patch(s, o)),
        ]
        .boxed()
    }
}

struct Model {
    cells: Vec<Option<Vec<u8>>>,
    /// Bytes that directory and cells may fill together.
    capacity: usize,
}

impl Model {
    fn free(&self) -> usize {
        let used: usize = self.cells.iter().map(|c| slotted::SLOT + c.as_ref().map_or(0, Vec::len)).sum();
        self.capacity - used
    }

    fn check(&self, page: &[u8]) {
        assert!(slotted::is_sound(page));
        assert_eq!(slotted::slot_count(page) as usize, self.cells.len());
        for (slot, cell) in self.cells.iter().enumerate() {
            assert_eq!(slotted::cell(page, slot as u16), cell.as_deref(), "slot {slot}");
            let present = cell.as_ref().map_or(0, Vec::len);
            assert_eq!(slotted::room_in(page, slot as u16), self.free() + present);
        }
        assert_eq!(slotted::cell(page, self.cells.len() as u16), None);
        assert_eq!(slotted::room(page), self.free().saturating_sub(slotted::SLOT));
        assert_eq!(slotted::fits(page, 0), self.free() >= slotted::SLOT);
        let beyond = slotted::room_in(page, self.cells.len() as u16 + 2);
        assert_eq!(beyond, self.free().saturating_sub(3 * slotted::SLOT));
        let first = self.cells.iter().position(Option::is_none).unwrap_or(self.cells.len());
        assert_eq!(slotted::free_slot(page) as usize, first);
    }

    /// Turns a wish into an op that is legal now, and repeats it here. `usize::MAX` asks for all the room that is
    /// promised.
    fn grant(&mut self, wish: &Wish, page: &[u8], buf: &mut Vec<u8>, n: usize) -> Option<PageOp<'static>> {
        let mut cell = |len: usize| -> &'static [u8] {
            buf.clear();
            buf.extend((0..len).map(|i| (i * 7 + n * 13) as u8));
            Box::leak(buf.clone().into_boxed_slice())
        };
        match *wish {
            Wish::Insert(at, len) => {
                let slot = at % (self.cells.len() + 1);
                let len = if len == usize::MAX { slotted::room(page) } else { len };
                if self.free() < len + slotted::SLOT {
                    assert!(!slotted::fits(page, len));
                    return None;
                }
                let cell = cell(len);
                self.cells.insert(slot, Some(cell.to_vec()));
                Some(PageOp::InsertAt { slot: slot as u16, cell })
            }
            Wish::Remove(at) => {
                let slot = at.checked_rem(self.cells.len())?;
                self.cells.remove(slot);
                Some(PageOp::RemoveAt { slot: slot as u16 })
            }
            Wish::Put(at, len) => {
                let slot = at % (self.cells.len() + 3);
                let len = if len == usize::MAX { slotted::room_in(page, slot as u16) } else { len };
                let grow = (slot + 1).saturating_sub(self.cells.len()) * slotted::SLOT;
                let present = self.cells.get(slot).and_then(|c| c.as_ref()).map_or(0, Vec::len);
                if self.free() + present < len + grow {
                    assert!(len == 0 || slotted::room_in(page, slot as u16) < len);
                    return None;
                }
                let cell = cell(len);
                if slot >= self.cells.len() {
                    self.cells.resize(slot + 1, None);
                }
                self.cells[slot] = Some(cell.to_vec());
                Some(PageOp::Put { slot: slot as u16, cell })
            }
            Wish::Free(at) => {
                let slot = at.checked_rem(self.cells.len())?;
                self.cells[slot].take()?;
                while self.cells.last().is_some_and(Option::is_none) {
                    self.cells.pop();
                }
                Some(PageOp::Free { slot: slot as u16 })
            }
            Wish::Patch(at, from) => {
                let slot = at.checked_rem(self.cells.len())?;
                let target = self.cells[slot].as_mut()?;
                let offset = from % (target.len() + 1);
                let bytes = cell(target.len() - offset);
                target[offset..].copy_from_slice(bytes);
                Some(PageOp::Patch { slot: slot as u16, offset: offset as u16, bytes })
            }
        }
    }
}

fn run(page_size: usize, special: u16, wishes: &[Wish]) {
    let mut page = vec![0xEE; page_size];
    let mut log = Vec::new();
    let mut replayed = vec![0x11; page_size];
    let format = PageOp::Format { kind: PageKind::Heap, owner: ObjectId(3), special };
    format.apply(&mut page, ID);
    format.encode(&mut log);
    let mut model = Model { cells: vec![], capacity: page_size - 40 - special as usize };
    let mut buf = Vec::new();
    for (n, wish) in wishes.iter().enumerate() {
        if let Some(op) = model.grant(wish, &page, &mut buf, n) {
            op.apply(&mut page, ID);
            op.encode(&mut log);
        }
        model.check(&page);
    }
    let mut rest = log.as_slice();
    while !rest.is_empty() {
        PageOp::decode(&mut rest).unwrap().apply(&mut replayed, ID);
    }
    assert_eq!(page, replayed, "redo gives other bytes than forward work");
    header::seal(&mut page);
    assert_eq!(header::verify(&page, ID), Ok(()));
    // An image of the page is the page.
    let mut copy = vec![0x77; page_size];
    PageOp::Image { kind: PageKind::Heap, owner: ObjectId(3), body: &page[super::HEADER..] }.apply(&mut copy, ID);
    assert_eq!(copy[4..], page[4..]);
}

fn case() -> impl Strategy<Value = (usize, u16, Vec<Wish>)> {
    (prop_oneof![Just(4096usize), Just(8192), Just(16384), Just(32768)], 0..200u16, any::<bool>()).prop_flat_map(
        |(size, special, ordered)| (Just(size), Just(special), proptest::collection::vec(wish(ordered, size), 0..150)),
    )
}

fn any_op() -> impl Strategy<Value = PageOp<'static>> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..300).prop_map(|v| &*Box::leak(v.into_boxed_slice()));
    let kind = (1..7u8).prop_map(|k| PageKind::from_u8(k).unwrap());
    let (b1, b2, b3, b4, k2) = (bytes.clone(), bytes.clone(), bytes.clone(), bytes.clone(), kind.clone());
    prop_oneof![
        (kind, any::<u32>(), any::<u16>()).prop_map(|(kind, owner, special)| PageOp::Format {
            kind,
            owner: ObjectId(owner),
            special
        }),
        (k2, any::<u32>(), bytes).prop_map(|(kind, owner, body)| PageOp::Image { kind, owner: ObjectId(owner), body }),
        (any::<u16>(), b1).prop_map(|(offset, bytes)| PageOp::Write { offset, bytes }),
        (any::<u16>(), b2).prop_map(|(slot, cell)| PageOp::InsertAt { slot, cell }),
        any::<u16>().prop_map(|slot| PageOp::RemoveAt { slot }),
        (any::<u16>(), b3).prop_map(|(slot, cell)| PageOp::Put { slot, cell }),
        any::<u16>().prop_map(|slot| PageOp::Free { slot }),
        (any::<u16>(), any::<u16>(), b4).prop_map(|(slot, offset, bytes)| PageOp::Patch { slot, offset, bytes }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn slotted_page_follows_the_model((size, special, wishes) in case()) {
        run(size, special, &wishes);
    }

    #[test]
    fn ops_come_back_from_the_log(ops in proptest::collection::vec(any_op(), 0..8)) {
        let mut out = Vec::new();
        for op in &ops {
            op.encode(&mut out);
        }
        let mut rest = out.as_slice();
        for op in &ops {
            prop_assert_eq!(&PageOp::decode(&mut rest).unwrap(), op);
        }
        prop_assert!(rest.is_empty());
        // Every prefix that ends within an op is an error or a shorter list, never a panic.
        for cut in 0..out.len() {
            let mut rest = &out[..cut];
            while !rest.is_empty() && PageOp::decode(&mut rest).is_ok() {}
        }
    }

    #[test]
    fn garbage_is_no_op_and_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let mut rest = bytes.as_slice();
        while !rest.is_empty() && PageOp::decode(&mut rest).is_ok() {}
        let mut page = vec![0u8; 4096];
        page[32..32 + bytes.len()].copy_from_slice(&bytes);
        slotted::is_sound(&page);
    }
}
