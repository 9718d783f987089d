//! Bytes on disk: little-endian numbers at an offset, and layouts declared as structs.
//!
//! 1. A layout is a `#[repr(C)]` struct of the types below: every field is little-endian, has no alignment, and lies
//!    where the declaration says. Its length and its fields' offsets are checked at compile time against the format
//!    (`layout!`).
//! 2. [`u16_at`], [`u32_at`] and [`u64_at`] read bytes that nobody has checked yet: `None` where the bytes end early.

pub use zerocopy::little_endian::{I64, U16, U32, U64, U128};
pub(crate) use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

#[inline]
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

#[inline]
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

/// Declares a layout on disk: a struct, its length, and (by `@`) the offset of each field, all checked at compile time.
macro_rules! layout {
    ($(#[$doc:meta])* $vis:vis struct $name:ident: $length:literal {
        $($(#[$field_doc:meta])* $at:literal $field_vis:vis $field:ident: $type:ty,)*
    }) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq,
            $crate::bytes::FromBytes, $crate::bytes::IntoBytes, $crate::bytes::Immutable, $crate::bytes::KnownLayout,
            $crate::bytes::Unaligned,
        )]
        #[repr(C)]
        $vis struct $name {
            $($(#[$field_doc])* $field_vis $field: $type,)*
        }

        const _: () = {
            assert!(size_of::<$name>() == $length);
            $(assert!(std::mem::offset_of!($name, $field) == $at);)*
        };
    };
}
pub(crate) use layout;

/// The layout at the front of bytes that are known to be long enough.
#[inline]
pub(crate) fn front<T: FromBytes + KnownLayout + Immutable + Unaligned>(bytes: &[u8]) -> &T {
    T::ref_from_prefix(bytes).expect("the caller has checked the length").0
}

/// The same, to be changed.
#[inline]
pub(crate) fn front_mut<T: FromBytes + IntoBytes + KnownLayout + Unaligned>(bytes: &mut [u8]) -> &mut T {
    T::mut_from_prefix(bytes).expect("the caller has checked the length").0
}
