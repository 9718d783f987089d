//! How every header of storage's files begins, in this version and in all to come: [`Head`].
//!
//! Invariants:
//! 1. The CRC begins from the version less one (for version 1 that is the ordinary CRC). So it covers the version, too,
//!    and is checked before the version is believed: what is damaged is never taken for another version's.
//! 2. A version that covers more than is covered here has another magic.

use crate::bytes::{U32, U64, front_mut, layout};
use zerocopy::FromBytes;

pub(crate) const VERSION: u32 = 1;

layout! {
    #[derive(Default)]
    /// The front of each header. The layouts of headers (`control`, `identity`, `log::segment`) begin with it.
    pub(crate) struct Head: 16 {
        0 magic: U64,
        8 version: U32,
        /// CRC-32C of the covered bytes, which begin behind this front. Where they end, the header's layout says.
        12 pub(crate) crc: U32,
    }
}

/// Where the covered bytes begin.
const COVERED: usize = size_of::<Head>();

/// What a header says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
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
    *front_mut(header) = Head { magic: magic.into(), version: version.into(), crc: crc.into() };
}

/// Looks at a header whose covered bytes end at `end`.
pub(crate) fn look(header: &[u8], magic: u64, end: usize) -> Verdict {
    let (Ok((head, _)), Some(covered)) = (Head::read_from_prefix(header), header.get(COVERED..end)) else {
        return Verdict::Other;
    };
    match head.version.get() {
        _ if head.magic != magic => Verdict::Other,
        version if head.crc != crc(version, covered) => Verdict::Damaged,
        VERSION => Verdict::Good,
        version => Verdict::Unknown(version),
    }
}

pub(crate) fn unknown_version(version: u32) -> String {
    format!(
        "format version {version} is unknown (this terrace knows {VERSION}); open it with the terrace that wrote it, \
         or upgrade"
    )
}

#[cfg(test)]
mod tests;
