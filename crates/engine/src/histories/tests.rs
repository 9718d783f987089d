use super::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn history(seq: u64, random: &mut ChaCha8Rng) -> History {
    let end = if random.random() { TxnEnd::Committed } else { TxnEnd::RolledBack };
    let mut pointer = || UndoPtr(random.random::<u64>() >> 16);
    let (first, last) = (pointer(), pointer());
    History { txn: TxnId(random.random()), end, slot: random.random::<u32>() >> 1, first, last, seq }
}

#[test]
fn histories_come_back_as_they_went_in_and_in_their_order() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let (mut model, mut histories) = (BTreeMap::new(), Histories::default());
    for _ in 0..20_000 {
        let seq = random.random_range(0..1000) * random.random_range(1..3u64);
        match model.remove(&seq) {
            Some(_) => assert!(histories.remove(seq)),
            None => {
                assert!(!histories.remove(seq));
                let new = history(seq, &mut random);
                histories.insert(&new);
                model.insert(seq, new);
            }
        }
        assert_eq!((histories.len(), histories.first().as_ref()), (model.len(), model.values().next()));
    }
    assert!(histories.iter().eq(model.into_values()));
}

#[test]
fn s7_a_million_finished_transactions_take_24_mb() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut histories = Histories::default();
    (0..1_000_000).for_each(|seq| histories.insert(&history(seq, &mut random)));
    assert_eq!(size_of::<Entry>(), 24);
    // Keys, pointers and the tree's own nodes, half full at worst, are a small part of a chunk.
    assert_eq!((histories.chunks.len(), size_of::<Chunk>()), (1_000_000usize.div_ceil(CHUNK as usize), 24 * 64 + 8));
    (0..1_000_000).for_each(|seq| assert!(histories.remove(seq)));
    assert!(histories.is_empty() && histories.chunks.is_empty(), "and nothing once they are purged");
}
