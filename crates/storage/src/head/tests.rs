use super::*;
use crate::bytes::u32_at;

const MAGIC: u64 = 0x1122_3344_5566_7788;

fn sealed(version: u32) -> [u8; 80] {
    let mut header = std::array::from_fn(|i| i as u8 * 3);
    seal_as(version, &mut header, MAGIC, 64);
    header
}

#[test]
fn the_first_version_has_the_ordinary_checksum() {
    let header = sealed(1);
    assert_eq!(u32_at(&header, 12), Some(crc32c::crc32c(&header[16..64])));
    assert_eq!(look(&header, MAGIC, 64), Verdict::Good);
}

#[test]
fn other_versions_are_told_from_damage() {
    for version in [0, 2, 9, u32::MAX] {
        assert_eq!(look(&sealed(version), MAGIC, 64), Verdict::Unknown(version));
    }
    for byte in 8..64 {
        for bit in 0..8 {
            let mut header = sealed(1);
            header[byte] ^= 1 << bit;
            assert_eq!(look(&header, MAGIC, 64), Verdict::Damaged, "bit {bit} of byte {byte}");
        }
    }
    assert_eq!(look(&sealed(1), MAGIC + 1, 64), Verdict::Other);
    assert_eq!(look(&sealed(1)[..40], MAGIC, 64), Verdict::Other);
}
