use super::*;
use crate::error::StorageError;
use crate::testing::{Rig, reopen, simulate};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const T: Heap = Heap { object: ObjectId(50), space: DATA };

fn row(n: u64, bytes: Vec<u8>) -> StoredRow {
    StoredRow { header: RowHeader { flags: 0, writer: TxnId(n), undo: UndoPtr(n << 16) }, bytes }
}

async fn insert(st: &Store, row: &StoredRow, spread: u64) -> Result<Rid> {
    loop {
        let room = T.find_room(st, ROW_HEADER + row.bytes.len(), spread).await?;
        let permit = st.reserve(row.bytes.len() + 2 * ROW_LOG).await?;
        let done = {
            let mut mtr = st.mtr(permit);
            let rid = T.insert(st, &mut mtr, room, row);
            rid.inspect(|_| {
                mtr.commit();
            })
        };
        if let Some(rid) = done {
            return Ok(rid);
        }
    }
}

async fn replace(st: &Store, rid: Rid, row: &StoredRow) -> bool {
    let room = T.pin_row(st, rid).await.unwrap();
    let permit = st.reserve(row.bytes.len() + 2 * ROW_LOG).await.unwrap();
    let mut mtr = st.mtr(permit);
    let at = mtr.latch(&room.page);
    let done = T.replace(st, &mut mtr, at, &room.map, rid.slot, row);
    mtr.commit();
    done
}

async fn free(st: &Store, rid: Rid) {
    let room = T.pin_row(st, rid).await.unwrap();
    let permit = st.reserve(ROW_LOG).await.unwrap();
    let mut mtr = st.mtr(permit);
    let at = mtr.latch(&room.page);
    T.free(st, &mut mtr, at, &room.map, rid.slot);
    mtr.commit();
}

async fn read(st: &Store, rid: Rid) -> Option<StoredRow> {
    Heap::read(&st.pool().fetch(PageId::new(DATA, rid.page), Access::Random).await.unwrap(), rid.slot)
}

#[derive(Clone, Debug)]
enum Wish {
    Insert(usize),
    Replace(usize, usize),
    Touch(usize),
    Free(usize),
}

fn wishes() -> impl Strategy<Value = Vec<Wish>> {
    let len = prop_oneof![0usize..40, 0usize..900, 1500usize..2000];
    let wish = prop_oneof![
        4 => len.clone().prop_map(Wish::Insert),
        3 => (any::<usize>(), len).prop_map(|(i, l)| Wish::Replace(i, l)),
        2 => any::<usize>().prop_map(Wish::Touch),
        1 => any::<usize>().prop_map(Wish::Free),
    ];
    prop::collection::vec(wish, 1..300)
}

/// Does what is wished on heap and model; a row that outgrew its page keeps a stub.
async fn act(st: &Store, wishes: Vec<Wish>) -> BTreeMap<Rid, StoredRow> {
    let mut model = BTreeMap::<Rid, StoredRow>::new();
    for (n, wish) in wishes.into_iter().enumerate() {
        let nth = |i: usize| model.keys().nth(i % model.len().max(1)).copied();
        match wish {
            Wish::Insert(len) => {
                let row = row(n as u64, vec![n as u8; len.min(Heap::inline_limit(4096))]);
                let rid = insert(st, &row, n as u64).await.unwrap();
                assert!(model.insert(rid, row).is_none(), "a RID in use was given again");
            }
            Wish::Replace(i, len) => {
                let Some(rid) = nth(i) else { continue };
                let mut new = row(n as u64, vec![n as u8; len]);
                if !replace(st, rid, &new).await {
                    new.bytes = T.write_chain(st, &new.bytes, None).await.unwrap();
                    new.header.flags = CHAINED;
                    assert!(replace(st, rid, &new).await, "a stub always fits");
                }
                if let Some(old) = model.insert(rid, new).filter(|old| old.header.flags & CHAINED != 0) {
                    T.free_chain(st, &old.bytes).await.unwrap();
                }
            }
            Wish::Touch(i) => {
                let Some(rid) = nth(i) else { continue };
                let mut new = model[&rid].clone();
                new.header.writer = TxnId(n as u64);
                new.header.flags ^= DELETED;
                if let Some(b) = new.bytes.last_mut().filter(|_| new.header.flags & CHAINED == 0) {
                    *b ^= 1;
                }
                assert!(replace(st, rid, &new).await);
                model.insert(rid, new);
            }
            Wish::Free(i) => {
                let Some(rid) = nth(i) else { continue };
                free(st, rid).await;
                let old = model.remove(&rid).unwrap();
                if old.header.flags & CHAINED != 0 {
                    T.free_chain(st, &old.bytes).await.unwrap();
                }
            }
        }
    }
    model
}

async fn compare(st: &Store, model: &BTreeMap<Rid, StoredRow>) {
    for (rid, row) in model {
        assert_eq!(read(st, *rid).await.as_ref(), Some(row), "{rid:?}");
    }
    let found = T.check(st, &[]).await.unwrap();
    let chained = model.values().filter(|row| row.header.flags & CHAINED != 0).count();
    assert_eq!((found.rows, found.chained), (model.len() as u64, chained as u64));
    assert_eq!(found.fragments, found.reached, "no fragment is left over");
    let mut seen = 0;
    for page in st.space(DATA).pages(T.object, 0, usize::MAX) {
        let pin = st.pool().fetch(PageId::new(DATA, page), Access::Sequential).await.unwrap();
        Heap::read_page(&pin, |slot, header, bytes| {
            let row = &model[&Rid { page, slot }];
            assert_eq!((header, bytes), (row.header, &row.bytes[..]));
            seen += 1;
        });
    }
    assert_eq!(seen, model.len());
    st.space(DATA).check(st).await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn heap_agrees_with_a_map(wishes in wishes(), seed: u64) {
        let rig = Arc::new(Rig::new(64, u64::MAX));
        let model = simulate(seed, &rig, |st| async move {
            let model = act(&st, wishes).await;
            compare(&st, &model).await;
            st.log().flush_to(st.log().end()).await.unwrap();
            model
        });
        reopen(seed, &rig, |st| async move { compare(&st, &model).await });
    }
}

#[test]
fn chains_of_every_length() {
    let rig = Arc::new(Rig::new(64, u64::MAX));
    simulate(7, &rig, |st| async move {
        let full = 4096 / 16 * 15 - 13;
        let mut stubs = Vec::new();
        for len in [0, 1, full - 1, full, full + 1, 3 * full, 10 * full + 17, 1 << 20] {
            let payload: Vec<u8> = (0..len).map(|i| (i / 7) as u8).collect();
            let stub = T.write_chain(&st, &payload, None).await.unwrap();
            assert_eq!(T.read_chain(&st, &stub).await.unwrap(), payload);
            stubs.push((stub, payload));
        }
        let pages = st.space(DATA).page_count(T.object);
        let (gone, _) = stubs.pop().unwrap();
        T.free_chain(&st, &gone).await.unwrap();
        assert!(matches!(T.read_chain(&st, &gone).await, Err(StorageError::Damaged(_))));
        let again = T.write_chain(&st, &vec![9; 1 << 20], None).await.unwrap();
        assert_eq!(st.space(DATA).page_count(T.object), pages, "emptied pages are used again");
        // The freed chain's slots are another's now: freeing it a second time must not touch them.
        T.free_chain(&st, &gone).await.unwrap();
        assert_eq!(T.read_chain(&st, &again).await.unwrap(), vec![9; 1 << 20]);
        for (stub, payload) in &stubs {
            assert_eq!(T.read_chain(&st, stub).await.unwrap(), *payload);
            T.free_chain(&st, stub).await.unwrap();
        }
        T.free_chain(&st, &again).await.unwrap();
        assert_eq!(T.check(&st, &[]).await.unwrap(), HeapCheck::default());
        let long = T.write_chain(&st, &vec![0; MAX_ROW + 1], None).await;
        assert!(matches!(long, Err(StorageError::RowTooLong { .. })));
    });
}

#[test]
fn unchanged_length_logs_the_difference() {
    let rig = Arc::new(Rig::new(64, u64::MAX));
    simulate(7, &rig, |st| async move {
        let mut row = row(1, vec![5; 1500]);
        let rid = insert(&st, &row, 0).await.unwrap();
        row.bytes[700] = 6;
        row.header.writer = TxnId(2);
        let before = st.log().end();
        assert!(replace(&st, rid, &row).await);
        let logged = st.log().end().0 - before.0;
        assert!(logged < 100, "{logged} bytes for two changed");
        assert_eq!(read(&st, rid).await, Some(row));
    });
}

#[test]
fn differences_are_smallest() {
    let old = [0u8; 64];
    let mut new = old;
    assert_eq!(differences(&old, &new), (0..0, ROW_HEADER..ROW_HEADER));
    (new[3], new[9], new[40], new[60]) = (1, 1, 1, 1);
    assert_eq!(differences(&old, &new), (3..10, 40..61));
    new[18] = 1;
    assert_eq!(differences(&old, &new), (3..10, 18..61));
    new[16] = 1;
    assert_eq!(differences(&old, &new), (3..61, 0..0));
}
