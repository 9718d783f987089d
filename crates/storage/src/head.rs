//! How every header of storage's files begins, in this version and in all to come:
//!
//! ```text
//!  0 u64 magic   8 u32 format version   12 u32 CRC-32C of what is covered, from byte 16 on
//! ```
//!
//! Invariants:
//! 1. The CRC begins from the version less one (for version 1 that is the ordinary CRC). So it covers the version, too, and is checked
//!    before the version is believed: what is damaged is never taken for another version's.
//! 2. A version that covers more than is covered here has another magic.

use crate::log::batch::{u32_at, u64_at};

pub(crate) const VERSION: u32 = 1;
/// Where what is covered begins.
const COVERED: usize = 16;

/// What a header says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Head {
    /// No header of this kind.
    Other,
    Damaged,
    /// Of another version, and sound.
    Unknown(u32),
    Good,
}

fn crc(version: u32, covered: &[u8]) -> u32 {
    crc32c::crc32c_append(version.wrapping_sub(1), covered)
}

/// Completes a header whose covered bytes end at `end`.
pub(crate) fn seal(header: &mut [u8], magic: u64, end: usize) {
    seal_as(VERSION, header, magic, end);
}

pub(crate) fn seal_as(version: u32, header: &mut [u8], magic: u64, end: usize) {
    let crc = crc(version, &header[COVERED..end]);
    header[0..8].copy_from_slice(&magic.to_le_bytes());
    header[8..12].copy_from_slice(&version.to_le_bytes());
    header[12..16].copy_from_slice(&crc.to_le_bytes());
}

/// Looks at a header whose covered bytes end at `end`.
pub(crate) fn look(header: &[u8], magic: u64, end: usize) -> Head {
    let parts = || Some((u64_at(header, 0)?, u32_at(header, 8)?, u32_at(header, 12)?, header.get(COVERED..end)?));
    match parts() {
        Some((found, ..)) if found != magic => Head::Other,
        Some((_, version, sum, covered)) if sum != crc(version, covered) => Head::Damaged,
        Some((_, VERSION, ..)) => Head::Good,
        Some((_, version, ..)) => Head::Unknown(version),
        None => Head::Other,
    }
}

pub(crate) fn unknown_version(version: u32) -> String {
    format!(
        "format version {version} is unknown (this terrace knows {VERSION}); open it with the terrace that wrote it, or upgrade"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(look(&header, MAGIC, 64), Head::Good);
    }

    #[test]
    fn other_versions_are_told_from_damage() {
        for version in [0, 2, 9, u32::MAX] {
            assert_eq!(look(&sealed(version), MAGIC, 64), Head::Unknown(version));
        }
        for byte in 8..64 {
            for bit in 0..8 {
                let mut header = sealed(1);
                header[byte] ^= 1 << bit;
                assert_eq!(look(&header, MAGIC, 64), Head::Damaged, "bit {bit} of byte {byte}");
            }
        }
        assert_eq!(look(&sealed(1), MAGIC + 1, 64), Head::Other);
        assert_eq!(look(&sealed(1)[..40], MAGIC, 64), Head::Other);
    }
}
