//! A partition's structures against a model, and the memory they take.

use super::partition::{Cleaned, Partition, Totals, Written, frame_bytes};
use super::record::State;
use crate::types::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use terrace_policy::flash::FlashOrder;

#[test]
fn a_frame_takes_48_bytes_of_memory() {
    assert_eq!(frame_bytes(FlashOrder::Lru2), 48);
    assert_eq!(frame_bytes(FlashOrder::Fifo), 40);
}

fn page(no: u64) -> PageId {
    PageId::new(DATA, no as u32)
}

#[test]
fn a_partition_keeps_its_invariants() {
    for (seed, order) in [FlashOrder::Lru2, FlashOrder::Fifo].into_iter().enumerate() {
        let totals = Arc::new(Totals::default());
        let mut part = Partition::new(16, order, totals);
        // Pages in the tier with their recLSNs; frames in transfer; recLSNs that rose.
        let mut model: BTreeMap<u64, Option<Lsn>> = BTreeMap::new();
        let mut writing: Vec<(u32, bool)> = Vec::new();
        let mut cleaning: Vec<u32> = Vec::new();
        let mut readers: Vec<u32> = Vec::new();
        let mut random = 77 + seed as u64;
        for step in 0..40_000u64 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (what, no) = ((random >> 33) % 9, (random >> 40) % 40);
            match what {
                0 | 1 if !model.contains_key(&no) => {
                    let rec = (what == 0).then_some(Lsn(step << 20 | 5));
                    let Some(allocated) = part.allocate(page(no), rec, step as u32 & 0xffff) else { continue };
                    if let Some(gone) = allocated.evicted {
                        let rec = model.remove(&u64::from(gone.no)).expect("what is evicted was there");
                        assert_eq!(rec, None, "dirty pages are not evicted");
                    }
                    model.insert(no, rec);
                    assert!(part.start_write(allocated.frame));
                    writing.push((allocated.frame, rec.is_some()));
                }
                2 | 3 if !writing.is_empty() => {
                    let (frame, dirty) = writing.swap_remove(no as usize % writing.len());
                    part.end_write(frame, if dirty { Written::Dirty } else { Written::Clean });
                }
                4 => {
                    let expected = model.remove(&no);
                    let rec = part.invalidate(page(no));
                    assert_eq!(rec, expected);
                    if let Some(Some(rec)) = rec {
                        assert!(part.oldest_rec().is_some_and(|oldest| oldest <= rec), "rising recLSNs count");
                        part.risen(page(no), rec);
                        assert!(part.oldest_rec().is_some_and(|oldest| oldest <= rec), "until the next scan begins");
                    }
                }
                5 => {
                    if let Some((_, first)) = part.oldest_cleanable() {
                        cleaning.extend(part.start_clean(first, 4).into_iter().map(|(_, frame)| frame));
                    }
                }
                6 if !cleaning.is_empty() => {
                    let frame = cleaning.swap_remove(no as usize % cleaning.len());
                    let at = u64::from(part.record(frame).page().no);
                    let how = [Cleaned::Home, Cleaned::Failed, Cleaned::Unreadable][step as usize % 3];
                    if part.end_clean(frame, how) {
                        match how {
                            Cleaned::Home => drop(model.insert(at, None)),
                            Cleaned::Unreadable => drop(model.remove(&at)),
                            Cleaned::Failed => {}
                        }
                    }
                }
                7 => {
                    if let Some(frame) = part.find(page(no))
                        && part.record(frame).readers() < 3
                        && part.pin(frame).is_some()
                    {
                        readers.push(frame);
                    }
                }
                8 if !readers.is_empty() => {
                    let frame = readers.swap_remove(no as usize % readers.len());
                    part.unpin(frame, step % 2 == 0);
                }
                _ => part.begin_scan(),
            }
            part.assert_sound();
            for no in 0..40 {
                let found = part.find(page(no));
                assert_eq!(found.is_some(), model.contains_key(&no), "page {no}");
                if let Some(frame) = found {
                    assert_ne!(part.record(frame).state(), State::Free);
                }
            }
            assert_eq!(part.oldest_dirty(), model.values().flatten().min().copied());
        }
    }
}
