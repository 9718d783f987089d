use super::*;

#[test]
fn a_damaged_header_is_not_another_versions() {
    let geometry = Geometry { segment_size: 64 << 10 };
    let header = SegmentHeader { database: 7, number: 3, epoch: 2, prev_end: Lsn(99) };
    let mut sound = vec![0; SECTOR];
    header.encode(geometry, &mut sound);
    let decode = |block: &[u8]| SegmentHeader::decode(block, geometry, 7, "log");
    assert_eq!(decode(&sound).expect("known"), Some(header));
    for byte in 8..COVERED {
        let mut damaged = sound.clone();
        damaged[byte] ^= 0x41;
        assert_eq!(decode(&damaged).expect("nobody's"), None, "byte {byte}");
    }
    head::seal_as(5, &mut sound, MAGIC, COVERED);
    match decode(&sound) {
        Err(StorageError::Foreign { file, problem }) => assert!(file == "log" && problem.contains("version 5")),
        other => panic!("{other:?}"),
    }
}
