//! Sector-aligned buffers for direct I/O.

use crate::SECTOR;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Buffers of so many bytes and more lie in huge pages where the kernel has them.
const HUGE: usize = 16 << 20;
const HUGE_PAGE: usize = 2 << 20;

/// A heap buffer aligned to [`SECTOR`]; its length is a multiple of it and not zero.
pub struct IoBuf {
    ptr: NonNull<u8>,
    len: usize,
}

// SAFETY: the buffer owns its memory alone, like a `Vec<u8>`.
unsafe impl Send for IoBuf {}
// SAFETY: shared access only reads.
unsafe impl Sync for IoBuf {}

impl IoBuf {
    /// A zeroed buffer of `len` bytes.
    pub fn zeroed(len: usize) -> IoBuf {
        assert!(len > 0 && len.is_multiple_of(SECTOR), "I/O length {len} is not a positive multiple of {SECTOR}");
        let layout = Self::layout(len);
        // SAFETY: the layout's size is not zero (asserted above).
        let ptr = unsafe { alloc_zeroed(layout) };
        if len >= HUGE && !ptr.is_null() {
            // The whole pool is one buffer: with pages of 4 KiB nearly every look at one of its own would miss the TLB. Where the kernel
            // refuses, nothing is lost.
            // SAFETY: advice on memory that was just allocated.
            unsafe { libc::madvise(ptr.cast(), len, libc::MADV_HUGEPAGE) };
        }
        IoBuf { ptr: NonNull::new(ptr).unwrap_or_else(|| handle_alloc_error(layout)), len }
    }

    /// A buffer holding `bytes`, padded with zeros to a whole number of sectors.
    pub fn padded(bytes: &[u8]) -> IoBuf {
        let mut buf = IoBuf::zeroed(bytes.len().next_multiple_of(SECTOR).max(SECTOR));
        buf[..bytes.len()].copy_from_slice(bytes);
        buf
    }

    fn layout(len: usize) -> Layout {
        // The length was checked at construction; both are powers of two.
        Layout::from_size_align(len, if len >= HUGE { HUGE_PAGE } else { SECTOR }).expect("aligned I/O layout")
    }
}

impl Drop for IoBuf {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with the same layout.
        unsafe { dealloc(self.ptr.as_ptr(), Self::layout(self.len)) }
    }
}

impl Deref for IoBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `ptr` is valid for `len` initialised bytes.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }
}

impl DerefMut for IoBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` makes the access unique.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

impl std::fmt::Debug for IoBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IoBuf({} bytes)", self.len)
    }
}
