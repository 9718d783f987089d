//! Sector-aligned buffers for direct I/O.

use crate::SECTOR;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Buffers of so many bytes and more are mapped, and go back to the kernel at once. An allocator keeps what is freed
/// for a while: whole segments of the log, read one after the other, would take many times what one of them does.
const MAPPED: usize = 128 << 10;
/// And of so many lie in huge pages where the kernel has them.
const HUGE: usize = 16 << 20;
const HUGE_PAGE: usize = 2 << 20;
/// Kernels' other pages are no larger.
const LARGEST_PAGE: usize = 64 << 10;

/// A buffer aligned to [`SECTOR`]; its length is a multiple of it and not zero.
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
        let ptr = if len < MAPPED {
            // SAFETY: the layout's size is not zero (asserted above).
            unsafe { alloc_zeroed(Self::layout(len)) }
        } else {
            map(len)
        };
        IoBuf { ptr: NonNull::new(ptr).unwrap_or_else(|| handle_alloc_error(Self::layout(len))), len }
    }

    /// A buffer holding `bytes`, padded with zeros to a whole number of sectors.
    pub fn padded(bytes: &[u8]) -> IoBuf {
        let mut buf = IoBuf::zeroed(bytes.len().next_multiple_of(SECTOR).max(SECTOR));
        buf[..bytes.len()].copy_from_slice(bytes);
        buf
    }

    fn layout(len: usize) -> Layout {
        // The length was checked at construction, and a sector is a power of two.
        Layout::from_size_align(len, SECTOR).expect("aligned I/O layout")
    }
}

fn mapped_len(len: usize) -> usize {
    len.next_multiple_of(LARGEST_PAGE)
}

/// Zeroed memory of its own, from `HUGE` on aligned to huge pages; null where there is none.
fn map(len: usize) -> *mut u8 {
    let len = mapped_len(len);
    let slack = if len >= HUGE { HUGE_PAGE } else { 0 };
    let Some(whole) = len.checked_add(slack) else { return std::ptr::null_mut() };
    // SAFETY: a new mapping at a place that the kernel chooses touches nobody's memory.
    let mapped = unsafe {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        libc::mmap(std::ptr::null_mut(), whole, access, kind, -1, 0)
    };
    if mapped == libc::MAP_FAILED {
        return std::ptr::null_mut();
    }
    let first: *mut u8 = mapped.cast();
    if slack == 0 {
        return first;
    }
    let before = first.align_offset(HUGE_PAGE);
    // SAFETY: what is unmapped lies in the mapping, before and behind the buffer, and nobody has it; `before` is less
    // than `slack`. All is whole pages of the kernel. The advice is on the buffer; where the kernel refuses it, nothing
    // is lost: the whole pool is one buffer, and with pages of 4 KiB nearly every look at one of its own would miss the
    // TLB.
    unsafe {
        let begin = first.add(before);
        if before > 0 {
            libc::munmap(mapped, before);
        }
        if before < slack {
            libc::munmap(begin.add(len).cast(), slack - before);
        }
        libc::madvise(begin.cast(), len, libc::MADV_HUGEPAGE);
        begin
    }
}

impl Drop for IoBuf {
    fn drop(&mut self) {
        if self.len >= MAPPED {
            // SAFETY: mapped in `zeroed` with this length, and nobody else's.
            unsafe { libc::munmap(self.ptr.as_ptr().cast(), mapped_len(self.len)) };
            return;
        }
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

#[cfg(test)]
mod tests;
