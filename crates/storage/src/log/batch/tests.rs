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
