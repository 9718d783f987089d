use super::mirror::Mirror;
use super::*;
use crate::testing::{Rig, reopen, simulate};
use proptest::prelude::*;
use std::collections::BTreeMap;

const A: ObjectId = ObjectId(100);
const B: ObjectId = ObjectId(101);

/// Marks a reserved page used, as a heap page with one cell of `len` bytes.
fn fill(st: &Store, permit: crate::mtr::LogPermit, room: ReservedPage, object: ObjectId, len: usize) {
    let mut mtr = st.mtr(permit);
    let (at, map, no) = (mtr.latch(&room.pin), room.map.clone(), room.page.no);
    mtr.apply(at, PageOp::Format { kind: PageKind::Heap, owner: object, special: 0 });
    mtr.apply(at, PageOp::Put { slot: 0, cell: &vec![7; len] });
    let free = slotted::room(mtr.page(at));
    st.space(DATA).use_page(&mut mtr, room);
    st.space(DATA).note_free(&mut mtr, &map, no, free);
    mtr.commit();
}

async fn add(st: &Store, object: ObjectId, len: usize) -> Result<u32> {
    let room = st.space(DATA).reserve_page(st, object).await?;
    let no = room.page.no;
    fill(st, st.reserve(8192).await?, room, object, len);
    Ok(no)
}

async fn free(st: &Store, page: u32) {
    let map = st.space(DATA).map_pin(st, page).await.unwrap();
    let permit = st.reserve(1024).await.unwrap();
    let hold = {
        let mut mtr = st.mtr(permit);
        let hold = st.space(DATA).free_page(&mut mtr, &map, page);
        mtr.commit();
        hold
    };
    st.space(DATA).retire(hold);
}

#[test]
fn pages_are_given_found_freed_and_remembered() {
    let rig = Arc::new(Rig::new(256, u64::MAX));
    let (a, b) = simulate(1, &rig, |st| async move {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for i in 0..200 {
            a.push(add(&st, A, 16 * i).await.unwrap());
            b.push(add(&st, B, 3000).await.unwrap());
        }
        for i in (0..200).step_by(3) {
            free(&st, a[i]).await;
        }
        let a: Vec<u32> = a.into_iter().enumerate().filter(|(i, _)| i % 3 != 0).map(|(_, p)| p).collect();
        st.space(DATA).check(&st).await.unwrap();
        st.log().flush_to(st.log().end()).await.unwrap();
        (a, b)
    });
    reopen(2, &rig, move |st| async move {
        let space = st.space(DATA);
        space.check(&st).await.unwrap();
        let (mut a, mut b) = (a, b);
        a.sort();
        b.sort();
        assert_eq!(space.pages(A, 0, usize::MAX), a);
        assert_eq!(space.pages(B, b[10], 5), b[10..15]);
        assert_eq!(space.page_count(A), a.len() as u64);
        assert_eq!(space.objects(), [A, B]);
        // 4096 - 44 - 3000 bytes are four sixteenths.
        assert!(space.find(B, 1024, 3).is_some_and(|page| b.contains(&page)));
        assert_eq!(space.find(B, 1025, 3), None);
        assert_eq!(space.find(A, 4096, 0), None);
        let spread: std::collections::BTreeSet<_> = (0..8).filter_map(|s| space.find(B, 1000, s)).collect();
        assert_eq!(spread.len(), 8);
        space.free_object(&st, B).await.unwrap();
        space.free_object(&st, B).await.unwrap();
        assert_eq!((space.page_count(B), space.objects()), (0, vec![A]));
        assert!(add(&st, ObjectId(102), 10).await.unwrap() < *a.last().unwrap(), "freed extents are used again");
        space.check(&st).await.unwrap();
    });
}

#[test]
fn a_dropped_reservation_returns() {
    let rig = Arc::new(Rig::new(256, u64::MAX));
    simulate(1, &rig, |st| async move {
        let space = st.space(DATA);
        let first = space.reserve_page(&st, A).await.unwrap();
        let no = first.page.no;
        let second = space.reserve_page(&st, A).await.unwrap();
        assert_eq!(second.page.no, no + 1);
        drop(first);
        assert_eq!(add(&st, A, 1).await.unwrap(), no);
        drop(second);
        free(&st, no).await;
        assert_eq!(add(&st, B, 1).await.unwrap(), no, "the extent is anybody's again");
        space.check(&st).await.unwrap();
    });
}

#[test]
fn a_retired_page_waits_for_those_who_were_there() {
    let rig = Arc::new(Rig::new(256, u64::MAX));
    simulate(1, &rig, |st| async move {
        let space = st.space(DATA);
        let page = add(&st, A, 1).await.unwrap();
        let reader = space.enter();
        free(&st, page).await;
        let other = space.reserve_page(&st, A).await.unwrap();
        assert_ne!(other.page.no, page);
        drop(reader);
        let again = space.reserve_page(&st, A).await.unwrap();
        assert_eq!(again.page.no, page);
    });
}

#[test]
fn a_full_device_is_reported_and_harmless() {
    // The tablespace's own extent and two more.
    let rig = Arc::new(Rig::new(256, 3 * 64 * 4096));
    let count = simulate(1, &rig, |st| async move {
        let mut count = 0;
        let full = loop {
            match add(&st, A, 1).await {
                Ok(_) => count += 1,
                Err(e) => break e,
            }
        };
        assert!(matches!(full, StorageError::SpaceFull { space: 1, .. }), "{full}");
        assert!(matches!(add(&st, B, 1).await, Err(StorageError::SpaceFull { .. })));
        st.space(DATA).check(&st).await.unwrap();
        let first = st.space(DATA).pages(A, 0, 1)[0];
        free(&st, first).await;
        assert_eq!(add(&st, A, 1).await.unwrap(), first, "freed room is room");
        st.log().flush_to(st.log().end()).await.unwrap();
        count
    });
    assert_eq!(count, 128);
    reopen(2, &rig, |st| async move { st.space(DATA).check(&st).await.unwrap() });
}

#[test]
fn a_tablespace_grows_beyond_its_first_map() {
    let rig = Arc::new(Rig::new(512, u64::MAX));
    let g = Geometry { page_size: 4096 };
    let total = g.entries() * EXTENT + 100;
    simulate(1, &rig, move |st| async move {
        for _ in 0..total {
            add(&st, A, 1).await.unwrap();
        }
        st.space(DATA).check(&st).await.unwrap();
        st.log().flush_to(st.log().end()).await.unwrap();
    });
    reopen(2, &rig, move |st| async move {
        st.space(DATA).check(&st).await.unwrap();
        assert_eq!(st.space(DATA).page_count(A), total as u64);
        assert!(st.space(DATA).pages(A, 0, usize::MAX).iter().all(|p| p % (g.entries() * EXTENT) >= EXTENT));
        st.space(DATA).free_object(&st, A).await.unwrap();
        assert!(st.space(DATA).objects().is_empty());
        st.space(DATA).check(&st).await.unwrap();
    });
}

#[test]
fn geometry() {
    for page_size in [4096, 8192, 16384, 32768] {
        let g = Geometry { page_size };
        let last = g.entries() - 1;
        assert!(g.entry(last) as usize + 44 <= page_size && g.entry(last) as usize + 88 > page_size);
        assert_eq!((g.map_page(0), g.map_page(1)), (1, g.entries() * EXTENT + 1));
        assert_eq!(g.map_page_for(g.map_page(3)), g.map_page(3));
        assert_eq!(g.map_of_extent(g.max_extents() - 1) as u64 + 1, (g.max_extents() / g.entries()) as u64);
    }
    assert_eq!((map::category_of(0, 4096), map::category_of(255, 4096), map::category_of(256, 4096)), (0, 0, 1));
    assert_eq!(
        (map::category_of(4096, 4096), map::category_for(257, 4096), map::category_for(3841, 4096)),
        (15, 2, 16)
    );
}

#[derive(Clone, Debug)]
enum Wish {
    Take(u32),
    Use(usize),
    GiveBack(usize),
    Unuse(usize),
    Category(usize, u8),
    Find(u32, u8, u64),
}

fn wish() -> impl Strategy<Value = Wish> {
    prop_oneof![
        4 => (1u32..4).prop_map(Wish::Take),
        4 => any::<usize>().prop_map(Wish::Use),
        1 => any::<usize>().prop_map(Wish::GiveBack),
        2 => any::<usize>().prop_map(Wish::Unuse),
        2 => (any::<usize>(), 0u8..16).prop_map(|(i, c)| Wish::Category(i, c)),
        1 => (1u32..4, 0u8..16, any::<u64>()).prop_map(|(o, c, s)| Wish::Find(o, c, s)),
    ]
}

fn nth<K: Copy + Ord, V>(map: &BTreeMap<K, V>, i: usize) -> Option<K> {
    map.keys().nth(i % map.len().max(1)).copied()
}

proptest! {
    #[test]
    fn the_mirror_agrees_with_a_naive_one(wishes in prop::collection::vec(wish(), 1..400)) {
        let mut mirror = Mirror::default();
        mirror.push(ObjectId(0), 3, [0; 32]);
        for _ in 0..4 {
            mirror.push(ObjectId(0), 0, [0; 32]);
        }
        let (mut held, mut used) = (BTreeMap::new(), BTreeMap::<u32, (ObjectId, u8)>::new());
        for wish in wishes {
            match wish {
                Wish::Take(object) => if let Some(page) = mirror.take(ObjectId(object)) {
                    prop_assert!(!held.contains_key(&page) && !used.contains_key(&page) && page >= EXTENT);
                    let same_extent = |p: &u32| p / EXTENT == page / EXTENT;
                    prop_assert!(used.iter().filter(|(p, _)| same_extent(p)).all(|(_, u)| u.0.0 == object));
                    held.insert(page, ObjectId(object));
                },
                Wish::Use(i) => if let Some(page) = nth(&held, i) {
                    let object = held.remove(&page).unwrap();
                    prop_assert_eq!(mirror.set_used(page), object);
                    used.insert(page, (object, 0));
                },
                Wish::GiveBack(i) => if let Some(page) = nth(&held, i) {
                    held.remove(&page);
                    mirror.unhold(page);
                },
                Wish::Unuse(i) => if let Some(page) = nth(&used, i) {
                    held.insert(page, used.remove(&page).unwrap().0);
                    mirror.set_unused(page);
                },
                Wish::Category(i, category) => if let Some(page) = nth(&used, i) {
                    mirror.set_category(page, category);
                    used.get_mut(&page).unwrap().1 = category;
                },
                Wish::Find(object, category, spread) => {
                    let fits = |p: &u32| used[p].0.0 == object && used[p].1 >= category.max(1);
                    match mirror.find(ObjectId(object), category, spread, 8) {
                        Some(page) => prop_assert!(fits(&page)),
                        None => prop_assert!(!used.keys().any(fits)),
                    }
                }
            }
            for object in 1..4 {
                let pages: Vec<u32> = used.iter().filter(|(_, u)| u.0.0 == object).map(|(p, _)| *p).collect();
                prop_assert_eq!(mirror.page_count(ObjectId(object)), pages.len() as u64);
                prop_assert_eq!(mirror.pages(ObjectId(object), 0, usize::MAX), pages);
            }
        }
    }
}
