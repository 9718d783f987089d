use super::*;
use crate::types::DATA;

fn blocks() -> Vec<Block<'static>> {
    vec![
        Block { page: PageId::new(DATA, 7), prev: Lsn(55), ops: b"first" },
        Block { page: EVENT, prev: Lsn(0), ops: b"" },
        Block { page: PageId::new(DATA, 9), prev: Lsn(0), ops: b"second ops" },
    ]
}

#[test]
fn comes_back_as_written() {
    let mut bytes = Vec::new();
    encode(&mut bytes, seed(9, 1), Lsn(8192), blocks().into_iter());
    assert_eq!(bytes.len(), encoded_len(blocks().into_iter()));
    let batch = check(&bytes, seed(9, 1), Lsn(8192)).expect("checks");
    assert_eq!(batch.end, Lsn(8192 + bytes.len() as u64));
    assert_eq!(batch.blocks().collect::<Vec<_>>(), blocks());
}

#[test]
fn another_place_time_or_database_does_not_check() {
    let mut bytes = Vec::new();
    encode(&mut bytes, seed(9, 1), Lsn(8192), blocks().into_iter());
    assert!(check(&bytes, seed(9, 1), Lsn(8193)).is_none());
    assert!(check(&bytes, seed(9, 2), Lsn(8192)).is_none());
    assert!(check(&bytes, seed(8, 1), Lsn(8192)).is_none());
}

#[test]
fn every_flipped_byte_and_every_cut_is_noticed() {
    let mut bytes = Vec::new();
    encode(&mut bytes, seed(9, 1), Lsn(8192), blocks().into_iter());
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 0x40;
        assert!(check(&bad, seed(9, 1), Lsn(8192)).is_none(), "byte {at}");
        assert!(check(&bytes[..at], seed(9, 1), Lsn(8192)).is_none(), "cut at {at}");
    }
    assert!(check(&[0; 4096], seed(9, 1), Lsn(8192)).is_none());
}

#[test]
fn a_batch_is_found_wherever_it_may_begin() {
    let noise = |seed: u64| (0..200_000u64).map(move |i| (i.wrapping_mul(seed) >> 7) as u8);
    for (base, seed) in
        [(0, 0), (0, 0x9e37_79b9), (5 << 24, 0), (0x0505_0505_0505_0000, 0x0101_0101_0505), (1 << 40, 3)]
    {
        let base = Lsn(base);
        let bytes: Vec<u8> = noise(seed).collect();
        let by_each_byte = |bytes: &[u8], from: usize| {
            let starts = |at: &usize| bytes[at + 8..].starts_with(&(base.0 + *at as u64).to_le_bytes());
            (from..=bytes.len() - 16).find(starts)
        };
        assert_eq!(may_begin(&bytes, 4096, base), by_each_byte(&bytes, 4096));
        // In front of the end of 64 KiB, on it, behind it; at the very end; none that is cut.
        for at in [4096, 4097, 65_535 - 8, 65_528, 65_535, 65_536, 65_537, 131_071, 199_984, 199_985] {
            let mut bytes = bytes.clone();
            let start = (base.0 + at as u64).to_le_bytes();
            let room = bytes.len().min(at + 16) - (at + 8);
            bytes[at + 8..][..room].copy_from_slice(&start[..room]);
            for from in [4096, at - at % 7 - 1, at, at + 1] {
                assert_eq!(may_begin(&bytes, from, base), by_each_byte(&bytes, from), "{at} from {from}, {base}");
            }
        }
    }
}
