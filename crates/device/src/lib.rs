//! Block devices: those of the operating system (`real`), and those for tests and experiments (`sim`): in memory, or
//! wrappers that trace, delay and fail.
//!
//! In: aligned buffers, offsets, the purpose of a transfer. Out: the same buffers, errors with device and offset.
//! Never: what a page is. The only room that starts threads and opens files.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub mod buf;
mod counters;
pub mod meter;
mod real;
mod sim;

pub use buf::IoBuf;
pub use meter::{Distribution, Histogram, MeteredDevice, Usage};
pub use real::file::{self, Backend, FileDevice, OpenOptions};
pub use real::lock;
pub use sim::image::{self, Image};
pub use sim::memory::{self, MemoryDevice};
pub use sim::{emulate, fault, latency, trace};

pub type IoFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, DeviceError>> + Send + 'a>>;

/// Offsets, lengths and buffers of every transfer are multiples of this.
pub const SECTOR: usize = 4096;

/// Why a transfer is made: traces and statistics are grouped by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Purpose {
    Control,
    Log,
    DoubleWrite,
    Data,
    Undo,
    Flash,
}

impl Purpose {
    /// In the order of their declaration.
    pub const ALL: [Purpose; 6] =
        [Purpose::Control, Purpose::Log, Purpose::DoubleWrite, Purpose::Data, Purpose::Undo, Purpose::Flash];

    /// As views and metrics name it.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Control => "control",
            Purpose::Log => "log",
            Purpose::DoubleWrite => "double-write",
            Purpose::Data => "data",
            Purpose::Undo => "undo",
            Purpose::Flash => "flash",
        }
    }
}

/// What a device promises. Nobody may rely on more than this.
#[derive(Clone, Debug)]
pub struct Guarantees {
    /// Aligned writes of up to this many bytes reach the medium whole or not at all (at least 512).
    pub atomic_write: usize,
    /// The most bytes it may ever hold; `u64::MAX` where only the file system sets a limit.
    pub capacity: u64,
}

/// Counters since opening, for statistics views.
#[derive(Clone, Copy, Default, Debug)]
pub struct DeviceStats {
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub write_bytes: u64,
    pub syncs: u64,
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", in_words(device, operation, *offset, *length, kind))]
pub struct DeviceError {
    pub device: String,
    pub operation: &'static str,
    pub offset: u64,
    pub length: u64,
    pub kind: ErrorKind,
}

fn in_words(device: &str, operation: &str, offset: u64, length: u64, kind: &ErrorKind) -> String {
    match (operation, kind) {
        // Nothing was transferred. The system's number of the error says no more than its words.
        ("open", ErrorKind::Io(why)) => {
            format!("cannot open {device}: {}", why.split(" (os error").next().unwrap_or(why))
        }
        ("open", _) => format!("cannot open {device}: {kind}"),
        _ => format!("device {device}: {operation} of {length} bytes at offset {offset}: {kind}"),
    }
}

impl DeviceError {
    pub fn new(device: &str, operation: &'static str, offset: u64, length: u64, kind: ErrorKind) -> DeviceError {
        DeviceError { device: device.to_string(), operation, offset, length, kind }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    #[error("no space left")]
    NoSpace,
    #[error("read past the end")]
    PastEnd,
    #[error("input/output error ({0})")]
    Io(String),
    /// The medium has lost, or does not take, what lies there; other places may be sound.
    #[error("the medium fails ({0})")]
    Medium(String),
    #[error("the device is gone")]
    Dead,
    #[error("not found")]
    NotFound,
    #[error("in use by another process")]
    InUse,
}

/// A block device, or a file that serves as one. All methods may be called concurrently; overlapping transfers in
/// flight are ordered by nobody. A completed write is readable at once and durable after a `sync` that began later.
pub trait Device: Send + Sync {
    fn name(&self) -> &str;
    fn guarantees(&self) -> Guarantees;
    /// Bytes from 0 to the end of what was written or allocated.
    fn size(&self) -> u64;
    /// Fills `buf` from `offset`; the buffer comes back. Reading past `size()` is `PastEnd`.
    fn read(&self, offset: u64, buf: IoBuf, purpose: Purpose) -> IoFuture<'_, IoBuf>;
    /// Writes `buf` at `offset`, growing the device where needed; the buffer comes back.
    fn write(&self, offset: u64, buf: IoBuf, purpose: Purpose) -> IoFuture<'_, IoBuf>;
    fn sync(&self, purpose: Purpose) -> IoFuture<'_, ()>;
    /// `write` and `sync` on the calling thread, which waits for them: no other thread has to be woken. Answers how
    /// long the writing took; `None`: the device knows no such way, nothing was done.
    fn write_and_sync_blocking(&self, _: u64, _: &IoBuf, _: Purpose) -> Option<Result<Duration, DeviceError>> {
        None
    }
    /// Reserves the range so that writes in it cannot fail for want of space; it reads as zeros until written.
    fn allocate(&self, offset: u64, len: u64) -> IoFuture<'_, ()>;
    /// Gives the range back; it reads as zeros or old bytes afterwards.
    fn discard(&self, offset: u64, len: u64) -> IoFuture<'_, ()>;
    fn stats(&self) -> DeviceStats;
}

pub type DeviceRef = Arc<dyn Device>;

/// The caller's side of the contract: offsets and lengths are whole sectors.
fn check_aligned(offset: u64, length: u64) {
    assert!(offset.is_multiple_of(SECTOR as u64), "offset {offset} is not a multiple of {SECTOR}");
    assert!(length.is_multiple_of(SECTOR as u64), "length {length} is not a multiple of {SECTOR}");
}

/// The end of the range, or `NoSpace` where it lies beyond `capacity`.
fn check_room(
    device: &str,
    operation: &'static str,
    offset: u64,
    length: u64,
    capacity: u64,
) -> Result<u64, DeviceError> {
    match offset.checked_add(length) {
        Some(end) if end <= capacity => Ok(end),
        _ => Err(DeviceError::new(device, operation, offset, length, ErrorKind::NoSpace)),
    }
}

#[cfg(test)]
mod tests;
