use super::*;
use crate::testing::{Rig, reopen, simulate};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

mod concurrent;

/// Every operation can be part of a task that moves between threads.
#[expect(dead_code, reason = "that it compiles is the test")]
fn futures_are_send(st: &Store, tree: &BTree, cursor: &mut Cursor, heap: &crate::heap::Heap) {
    fn send(_: impl Send) {}
    send(tree.insert(st, b""));
    send(tree.remove(st, b""));
    send(tree.first_with_prefix(st, b""));
    send(tree.bulk_load(st, std::iter::empty()));
    send(tree.check(st));
    send(cursor.next_batch(st, tree));
    send(heap.write_chain(st, b"", None));
    send(heap.read_chain(st, b""));
    send(heap.free_chain(st, b""));
    send(heap.find_room(st, 0, 0));
    send(heap.check(st, &[]));
    send(st.space(DATA).free_object(st, ObjectId(1)));
    send(st.space(DATA).check(st));
}

async fn scan(
    st: &Store,
    tree: &BTree,
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    direction: Direction,
) -> Vec<Vec<u8>> {
    let mut cursor = tree.cursor(from, to, direction);
    let mut all = Vec::new();
    loop {
        let batch = cursor.next_batch(st, tree).await.unwrap();
        if batch.is_empty() {
            assert!(cursor.next_batch(st, tree).await.unwrap().is_empty(), "an ended scan stays ended");
            return all;
        }
        all.extend(batch);
    }
}

async fn all(st: &Store, tree: &BTree, direction: Direction) -> Vec<Vec<u8>> {
    scan(st, tree, Bound::Unbounded, Bound::Unbounded, direction).await
}

/// Tree and model hold the same, seen in every way, and the tree is sound.
async fn compare(st: &Store, tree: &BTree, model: &BTreeSet<Vec<u8>>) {
    assert_eq!(tree.check(st).await.unwrap(), model.len() as u64);
    assert!(all(st, tree, Direction::Forward).await.iter().eq(model.iter()));
    assert!(all(st, tree, Direction::Backward).await.iter().eq(model.iter().rev()));
    st.space(DATA).check(st).await.unwrap();
}

async fn levels(st: &Store, tree: &BTree) -> u8 {
    let root = st.pool().fetch(PageId::new(tree.space, tree.root), Access::Random).await.unwrap();
    let page = root.read();
    Node(&page).level() + 1
}

#[derive(Clone, Debug)]
enum Wish {
    Insert(Vec<u8>),
    Remove(usize),
    RemoveRange(usize, usize),
    Absent(Vec<u8>),
    Prefix(Vec<u8>),
    Scan(Bound<Vec<u8>>, Bound<Vec<u8>>),
}

/// Keys that share prefixes, of all lengths.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let len = prop_oneof![0usize..6, 0usize..100, 500usize..=BTree::max_key(4096)];
    (prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()], 0..4), len, any::<u16>()).prop_map(
        |(head, len, tail)| {
            let mut key = head;
            key.resize(len.saturating_sub(2).max(key.len()), 1);
            key.extend_from_slice(&tail.to_be_bytes());
            key
        },
    )
}

fn edge() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        1 => Just(Bound::Unbounded),
        3 => key().prop_map(Bound::Included),
        3 => key().prop_map(Bound::Excluded),
    ]
}

fn wishes() -> impl Strategy<Value = Vec<Wish>> {
    let wish = prop_oneof![
        12 => key().prop_map(Wish::Insert),
        3 => any::<usize>().prop_map(Wish::Remove),
        1 => (any::<usize>(), 0usize..40).prop_map(|(i, n)| Wish::RemoveRange(i, n)),
        1 => key().prop_map(Wish::Absent),
        1 => prop::collection::vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], 0..3).prop_map(Wish::Prefix),
        1 => (edge(), edge()).prop_map(|(a, b)| Wish::Scan(a, b)),
    ];
    prop::collection::vec(wish, 1..500)
}

fn in_range(key: &[u8], from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> bool {
    let above = match from {
        Bound::Unbounded => true,
        Bound::Included(b) => key >= &b[..],
        Bound::Excluded(b) => key > &b[..],
    };
    let below = match to {
        Bound::Unbounded => true,
        Bound::Included(b) => key <= &b[..],
        Bound::Excluded(b) => key < &b[..],
    };
    above && below
}

async fn act(st: &Store, tree: &BTree, wishes: Vec<Wish>) -> BTreeSet<Vec<u8>> {
    let mut model = BTreeSet::new();
    for wish in wishes {
        match wish {
            Wish::Insert(key) => assert_eq!(tree.insert(st, &key).await.unwrap(), model.insert(key)),
            Wish::Absent(key) => assert_eq!(tree.remove(st, &key).await.unwrap(), model.remove(&key)),
            Wish::Remove(i) => {
                let Some(key) = model.iter().nth(i % model.len().max(1)).cloned() else { continue };
                assert!(tree.remove(st, &key).await.unwrap() && model.remove(&key));
            }
            Wish::RemoveRange(i, n) => {
                for key in model.clone().into_iter().skip(i % model.len().max(1)).take(n) {
                    assert!(tree.remove(st, &key).await.unwrap() && model.remove(&key));
                }
            }
            Wish::Prefix(prefix) => {
                let expected = model.range(prefix.clone()..).next().filter(|k| k.starts_with(&prefix)).cloned();
                assert_eq!(tree.first_with_prefix(st, &prefix).await.unwrap(), expected);
            }
            Wish::Scan(from, to) => {
                let expected: Vec<_> = model.iter().filter(|k| in_range(k, &from, &to)).cloned().collect();
                let mut found = scan(st, tree, from.clone(), to.clone(), Direction::Forward).await;
                assert_eq!(found, expected);
                found.reverse();
                assert_eq!(scan(st, tree, from, to, Direction::Backward).await, found);
            }
        }
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn tree_agrees_with_a_set(wishes in wishes(), seed: u64) {
        let rig = Arc::new(Rig::new(64, u64::MAX));
        let (root, model) = simulate(seed, &rig, |st| async move {
            let tree = BTree::create(&st, ObjectId(9), DATA).await.unwrap();
            let model = act(&st, &tree, wishes).await;
            compare(&st, &tree, &model).await;
            st.log().flush_to(st.log().end()).await.unwrap();
            (tree.root, model)
        });
        reopen(seed, &rig, move |st| async move {
            let tree = BTree { object: ObjectId(9), space: DATA, root };
            compare(&st, &tree, &model).await;
            for key in &model {
                assert!(tree.remove(&st, key).await.unwrap());
            }
            compare(&st, &tree, &BTreeSet::new()).await;
        });
    }

    #[test]
    fn a_guess_narrows_to_where_the_key_is(
        keys in prop::collection::btree_set(
            prop_oneof![key(), (any::<u16>()).prop_map(|n| n.to_be_bytes().to_vec())],
            17..400,
        ),
        sought in key(),
        number: u16,
    ) {
        let keys: Vec<Vec<u8>> = keys.into_iter().collect();
        let begin = keys.len() / 10;
        for key in keys.iter().chain([&sought, &number.to_be_bytes().to_vec()]) {
            let place = keys.partition_point(|other| other < key).max(begin);
            let (low, high) = node::near(begin, keys.len(), key, |i| &keys[i]);
            prop_assert!((low..=high).contains(&place), "{} is not within {} to {}", place, low, high);
        }
    }

    #[test]
    fn bulk_load_agrees_with_a_set(keys in prop::collection::btree_set(key(), 0..600), seed: u64) {
        let rig = Arc::new(Rig::new(64, u64::MAX));
        simulate(seed, &rig, |st| async move {
            let tree = BTree::create(&st, ObjectId(9), DATA).await.unwrap();
            let (odd, even): (Vec<_>, Vec<_>) = keys.iter().cloned().enumerate().partition(|(i, _)| i % 2 == 1);
            tree.bulk_load(&st, even.into_iter().map(|(_, k)| k)).await.unwrap();
            tree.check(&st).await.unwrap();
            for (_, key) in odd {
                assert!(tree.insert(&st, &key).await.unwrap());
            }
            compare(&st, &tree, &keys).await;
        });
    }
}

fn number(i: u32, len: usize) -> Vec<u8> {
    let mut key = i.to_be_bytes().to_vec();
    key.resize(len, b'.');
    key
}

/// As `number`, but alike up to the end, so that separators are long and trees high.
fn tail(i: u32, len: usize) -> Vec<u8> {
    let mut key = vec![b'.'; len - 4];
    key.extend_from_slice(&i.to_be_bytes());
    key
}

/// Inserts and removes in orders that tempt a tree into keeping empty pages.
#[test]
fn emptied_trees_give_their_pages_back() {
    const N: u32 = 4000;
    fn mixed(i: u32) -> u32 {
        (i as u64 * 2_654_435_761 % N as u64) as u32
    }
    type Order = (&'static str, fn(u32) -> u32);
    let orders: [Order; 3] = [("ascending", |i| i), ("descending", |i| N - 1 - i), ("mixed", mixed)];
    for (name, order) in orders {
        let rig = Arc::new(Rig::new(128, u64::MAX));
        simulate(3, &rig, move |st| async move {
            let tree = BTree::create(&st, ObjectId(9), DATA).await.unwrap();
            for i in 0..N {
                assert!(tree.insert(&st, &tail(order(i), 200)).await.unwrap());
            }
            assert!(levels(&st, &tree).await >= 3, "{name}");
            assert_eq!(tree.check(&st).await.unwrap(), N as u64);
            let full = st.space(DATA).page_count(tree.object);
            for i in 0..N {
                assert!(tree.remove(&st, &tail(order(i), 200)).await.unwrap());
            }
            compare(&st, &tree, &BTreeSet::new()).await;
            let left = st.space(DATA).page_count(tree.object);
            assert!(left <= 8, "{name}: {left} of {full} pages are left");
        });
    }
}

/// A queue: keys come at one end and go at the other.
#[test]
fn a_queue_stays_small() {
    let rig = Arc::new(Rig::new(128, u64::MAX));
    simulate(3, &rig, |st| async move {
        let tree = BTree::create(&st, ObjectId(9), DATA).await.unwrap();
        for i in 0..20_000 {
            assert!(tree.insert(&st, &number(i, 100)).await.unwrap());
            if i >= 500 {
                assert!(tree.remove(&st, &number(i - 500, 100)).await.unwrap());
            }
        }
        assert_eq!(tree.check(&st).await.unwrap(), 500);
        let pages = st.space(DATA).page_count(tree.object);
        assert!(pages < 40, "{pages} pages for 500 keys");
    });
}

#[test]
fn ascending_keys_and_bulk_loads_fill_pages() {
    let rig = Arc::new(Rig::new(256, u64::MAX));
    simulate(3, &rig, |st| async move {
        let keys = || (0..20_000).map(|i| number(i, 60));
        let loaded = BTree::create(&st, ObjectId(8), DATA).await.unwrap();
        loaded.bulk_load(&st, keys()).await.unwrap();
        let tree = BTree::create(&st, ObjectId(9), DATA).await.unwrap();
        for key in keys() {
            assert!(tree.insert(&st, &key).await.unwrap());
        }
        for tree in [&loaded, &tree] {
            assert_eq!(tree.check(&st).await.unwrap(), 20_000);
            let fill = 20_000.0 * 64.0 / (4096.0 * st.space(DATA).page_count(tree.object) as f64);
            assert!(fill > 0.84, "pages are {fill} full");
        }
        assert!(matches!(loaded.bulk_load(&st, keys()).await, Err(StorageError::Damaged(_))), "it is not empty");
    });
}

#[test]
fn long_keys_are_refused() {
    let rig = Arc::new(Rig::new(64, u64::MAX));
    simulate(3, &rig, |st| async move {
        let tree = BTree::create(&st, ObjectId(9), DATA).await.unwrap();
        let limit = BTree::max_key(4096);
        for i in 0..200 {
            assert!(tree.insert(&st, &number(i, limit)).await.unwrap());
        }
        assert_eq!(tree.check(&st).await.unwrap(), 200);
        let long = tree.insert(&st, &number(0, limit + 1)).await;
        assert!(matches!(long, Err(StorageError::KeyTooLong { limit: l, .. }) if l == limit));
    });
}

/// Splits a leaf and goes no further, as if the server had died then.
async fn split_halfway(st: &Store, tree: &BTree, key: &[u8]) -> u32 {
    let leaf = tree.descend(st, Target::Key(key), 0, true).await.unwrap();
    assert_ne!(leaf.id().no, tree.root);
    let right = Node(&leaf.read()).right();
    let right = if right == 0 { None } else { Some(tree.pin(st, right, Access::Random).await.unwrap()) };
    let room = st.space(DATA).reserve_page(st, tree.object).await.unwrap();
    let permit = st.reserve(split_log(4096)).await.unwrap();
    assert!(tree.try_split(st, st.mtr(permit), &leaf, right.as_ref(), room, 4096, false));
    leaf.id().no
}

async fn is_incomplete(st: &Store, tree: &BTree, page: u32) -> bool {
    let pin = tree.pin(st, page, Access::Random).await.unwrap();
    let page = pin.read();
    Node(&page).is_incomplete()
}

#[test]
fn an_incomplete_split_is_finished_by_a_writer() {
    let rig = Arc::new(Rig::new(128, u64::MAX));
    let (root, page) = simulate(3, &rig, |st| async move {
        let tree = BTree::create(&st, ObjectId(9), DATA).await.unwrap();
        for i in 0..300 {
            tree.insert(&st, &number(i * 2, 100)).await.unwrap();
        }
        let page = split_halfway(&st, &tree, &number(200, 100)).await;
        st.log().flush_to(st.log().end()).await.unwrap();
        (tree.root, page)
    });
    reopen(4, &rig, move |st| async move {
        let tree = BTree { object: ObjectId(9), space: DATA, root };
        let keys: BTreeSet<_> = (0..300).map(|i| number(i * 2, 100)).collect();
        compare(&st, &tree, &keys).await;
        for key in &keys {
            assert_eq!(tree.first_with_prefix(&st, &key[..4]).await.unwrap().as_ref(), Some(key));
        }
        assert!(is_incomplete(&st, &tree, page).await, "readers leave it as it is");
        for i in 80..120 {
            assert!(tree.insert(&st, &number(i * 2 + 1, 100)).await.unwrap());
        }
        assert!(!is_incomplete(&st, &tree, page).await);
        assert_eq!(tree.check(&st).await.unwrap(), 340);
    });
}

/// Whoever read a leaf's number before it was unlinked still finds it there, dead and with a link to where its keys
/// belong.
#[test]
fn an_unlinked_leaf_waits_for_searches_on_their_way_to_it() {
    let rig = Arc::new(Rig::new(256, u64::MAX));
    simulate(3, &rig, |st| async move {
        let tree = BTree::create(&st, ObjectId(9), DATA).await.unwrap();
        for i in 0..300 {
            tree.insert(&st, &number(i, 100)).await.unwrap();
        }
        let search = st.space(DATA).enter();
        let leaf = tree.descend(&st, Target::Key(&number(150, 100)), 0, false).await.unwrap();
        let keys: Vec<_> = (0..Node(&leaf.read()).count()).map(|i| Node(&leaf.read()).key(i).to_vec()).collect();
        for key in &keys {
            assert!(tree.remove(&st, key).await.unwrap());
        }
        for i in 1000..1300 {
            tree.insert(&st, &number(i, 100)).await.unwrap();
        }
        let right = Node(&leaf.read()).right();
        assert!(Node(&leaf.read()).is_dead());
        tree.insert(&st, &keys[0]).await.unwrap();
        let right = tree.pin(&st, right, Access::Random).await.unwrap();
        assert_eq!(Node(&right.read()).search(&keys[0]), Ok(0), "the right neighbour has taken over");
        drop(search);
        for i in 2000..2300 {
            tree.insert(&st, &number(i, 100)).await.unwrap();
        }
        assert!(!Node(&leaf.read()).is_dead(), "the page has a new life");
        assert_eq!(tree.check(&st).await.unwrap(), 901 - keys.len() as u64);
    });
}

#[test]
fn a_full_tablespace_leaves_the_tree_whole() {
    let rig = Arc::new(Rig::new(128, 4 * 64 * 4096));
    simulate(3, &rig, |st| async move {
        let tree = BTree::create(&st, ObjectId(9), DATA).await.unwrap();
        let mut keys = BTreeSet::new();
        let full = loop {
            let key = number((keys.len() as u32).wrapping_mul(2_654_435_761), 300);
            match tree.insert(&st, &key).await {
                Ok(added) => assert!(added && keys.insert(key)),
                Err(e) => break e,
            }
        };
        assert!(matches!(full, StorageError::SpaceFull { .. }), "{full}");
        compare(&st, &tree, &keys).await;
        for key in keys.iter().take(1000) {
            assert!(tree.remove(&st, key).await.unwrap());
        }
        for key in keys.iter().take(300) {
            assert!(tree.insert(&st, key).await.unwrap(), "freed pages are room again");
        }
        let left = keys.iter().take(300).chain(keys.iter().skip(1000)).cloned().collect();
        compare(&st, &tree, &left).await;
    });
}

/// A cursor goes on correctly whatever happens to the leaves between its batches.
#[test]
fn cursors_survive_changes_between_batches() {
    for direction in [Direction::Forward, Direction::Backward] {
        let rig = Arc::new(Rig::new(128, u64::MAX));
        simulate(3, &rig, move |st| async move {
            let tree = BTree::create(&st, ObjectId(9), DATA).await.unwrap();
            for i in 0..1000 {
                tree.insert(&st, &number(i * 4, 100)).await.unwrap();
            }
            let mut cursor = tree.cursor(Bound::Unbounded, Bound::Unbounded, direction);
            let (mut seen, mut step) = (Vec::new(), 0);
            loop {
                let batch = cursor.next_batch(&st, &tree).await.unwrap();
                if batch.is_empty() {
                    break;
                }
                let last = u32::from_be_bytes(batch.last().unwrap()[..4].try_into().unwrap());
                seen.extend(batch);
                step += 1;
                for k in 1..60u32 {
                    // Odd keys around the cursor come, multiples of four behind and before it go and come back.
                    let near = last.saturating_add(2 * k).saturating_sub(60) | 1;
                    match step % 3 {
                        0 => drop(tree.insert(&st, &number(near, 100)).await.unwrap()),
                        1 => drop(tree.remove(&st, &number(near, 100)).await.unwrap()),
                        _ => drop(tree.remove(&st, &number((last / 4 + k) * 4, 100)).await.unwrap()),
                    }
                }
                for k in 1..60u32 {
                    let back = (last / 4 + k) * 4;
                    if back < 4000 {
                        tree.insert(&st, &number(back, 100)).await.unwrap();
                    }
                }
            }
            let ordered = |w: &[Vec<u8>]| if direction == Direction::Forward { w[0] < w[1] } else { w[0] > w[1] };
            assert!(seen.windows(2).all(ordered));
            let seen: BTreeSet<_> = seen.into_iter().collect();
            assert!((0..1000).all(|i| seen.contains(&number(i * 4, 100))), "a key that was there all along was missed");
            tree.check(&st).await.unwrap();
        });
    }
}

/// What a split logs stays within what is reserved for it: with keys as short and as long as may be, at both ends of
/// the range of page sizes. The log asserts it for every mini-transaction; the root's split, which logs most, is
/// measured here.
#[test]
fn splits_stay_within_their_log_room() {
    for page_size in [4096, 32768] {
        for len in [4, 16, 200, BTree::max_key(page_size)] {
            let mut rig = Rig::new(0, u64::MAX);
            (rig.config.page_size, rig.config.pool_bytes) = (page_size, 256 * page_size);
            let most = simulate(3, &Arc::new(rig), move |st| async move {
                let tree = BTree::create(&st, ObjectId(9), DATA).await.unwrap();
                let mut most = 0;
                for i in 0..if len < 20 { 20_000 } else { 500 } {
                    let (before, height) = (st.log().end(), levels(&st, &tree).await);
                    tree.insert(&st, &tail(i * 7919 % 20_011, len)).await.unwrap();
                    if height == 1 && levels(&st, &tree).await == 2 {
                        most = st.log().end().0 - before.0;
                    }
                }
                assert_eq!(tree.check(&st).await.unwrap(), if len < 20 { 20_000 } else { 500 });
                most as usize
            });
            let bound = split_log(page_size);
            assert!(
                most > page_size / 2 && most < bound,
                "{most} of {bound} bytes, pages of {page_size}, keys of {len}"
            );
            println!("pages of {page_size}, keys of {len}: {most} of {bound} bytes");
        }
    }
}

#[test]
fn separators_are_shortest() {
    let cases: [(&[u8], &[u8], &[u8]); 4] =
        [(b"abc", b"abd", b"abd"), (b"abc", b"b", b"b"), (b"", b"xyz", b"x"), (b"ab", b"abcdef", b"abc")];
    for (left, right, expected) in cases {
        let found = node::separator(left, right);
        assert_eq!(found, expected);
        assert!(left < found && found <= right);
    }
}
