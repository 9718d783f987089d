//! A file or a whole block device, read and written past the page cache where the file system allows it.
//!
//! Invariants: (1) a transfer is submitted when the method is called, not when its future is first polled: the commit
//! path waits for these; (2) a transfer under way owns its buffer and the open file, so dropping the future is safe;
//! (3) `size` grows only after the write that extends the file has completed; (4) nothing that a process which has
//! ended left under way reaches a file after it was opened here: the kernel ends such transfers, and with the last of
//! them the lock, some time after the process. So opening waits for the lock for a while.
#![allow(clippy::disallowed_methods)] // This is where files are opened.

use super::{blocking, uring};
use crate::SECTOR;
use crate::counters::Counters;
use crate::{
    Device, DeviceError, DeviceStats, ErrorKind, Guarantees, IoBuf, IoFuture, Purpose, check_aligned, check_room,
};
use std::fs::{File, TryLockError};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Which machinery moves the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Backend {
    /// io_uring where the kernel offers it, threads elsewhere.
    #[default]
    Auto,
    Uring,
    Threads,
}

#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// For errors, traces and statistics; the path where empty.
    pub name: String,
    /// Makes the file where it does not exist.
    pub create: bool,
    /// Passes the page cache by (`O_DIRECT`); a file system that refuses this is used buffered.
    pub direct: bool,
    /// The most bytes it may hold. A block device holds at most its size.
    pub capacity: u64,
    /// Locks it. Refuses what another process still holds locked after `LOCK_PATIENCE` (`InUse`).
    pub lock: bool,
    /// `allocate` writes zeros. Costs time then, and saves a journal commit at the first `sync` after each later write:
    /// for logs.
    pub zero: bool,
    pub backend: Backend,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            name: String::new(),
            create: false,
            direct: true,
            capacity: u64::MAX,
            lock: true,
            zero: false,
            backend: Backend::Auto,
        }
    }
}

/// How long opening waits for the lock of a file: longer than a slow device needs for the transfers that a killed
/// process left in its queue.
const LOCK_PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 10_000 });

pub struct FileDevice {
    name: String,
    file: Arc<File>,
    block_device: bool,
    zero: bool,
    uring: bool,
    capacity: u64,
    size: Arc<AtomicU64>,
    counters: Counters,
}

impl FileDevice {
    pub fn open(path: &Path, options: &OpenOptions) -> Result<FileDevice, DeviceError> {
        let name = if options.name.is_empty() { path.display().to_string() } else { options.name.clone() };
        Self::open_named(&name, path, options)
            .map_err(|error| DeviceError::new(&path.display().to_string(), "open", 0, 0, kind_of(&error)))
    }

    fn open_named(name: &str, path: &Path, options: &OpenOptions) -> io::Result<FileDevice> {
        let found = std::fs::metadata(path);
        let block_device = found.as_ref().is_ok_and(|m| m.file_type().is_block_device());
        let (mut file, direct) = open_file(path, options, block_device)?;
        if options.lock {
            lock(&file, name)?;
        }
        if found.is_err() {
            sync_parent(path)?;
        }
        let bytes = if block_device { file.seek(SeekFrom::End(0))? } else { file.metadata()?.len() };
        // A full file system, or a copy that was cut, may leave a piece of a sector.
        let size = bytes / SECTOR as u64 * SECTOR as u64;
        let uring = match options.backend {
            Backend::Auto => uring::available(),
            Backend::Threads => false,
            Backend::Uring if uring::available() => true,
            Backend::Uring => return Err(io::Error::other("this kernel does not offer io_uring")),
        };
        tracing::debug!(device = name, path = %path.display(), direct, uring, size, "opened");
        Ok(FileDevice {
            name: name.to_string(),
            file: Arc::new(file),
            block_device,
            zero: options.zero,
            uring,
            capacity: if block_device { options.capacity.min(size) } else { options.capacity },
            size: Arc::new(AtomicU64::new(size)),
            counters: Counters::default(),
        })
    }

    /// Waits for what a back end answers, and gives an error its place.
    async fn finish<T>(
        &self,
        operation: &'static str,
        offset: u64,
        length: u64,
        answer: oneshot::Receiver<io::Result<T>>,
    ) -> Result<T, DeviceError> {
        let kind = match answer.await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => return Err(self.error(operation, offset, length, &error)),
            Err(_) => ErrorKind::Io("the I/O thread is gone".into()),
        };
        Err(DeviceError::new(&self.name, operation, offset, length, kind))
    }

    fn error(&self, operation: &'static str, offset: u64, length: u64, error: &io::Error) -> DeviceError {
        DeviceError::new(&self.name, operation, offset, length, kind_of(error))
    }
}

/// Opens with `O_DIRECT` where wanted and possible; says whether it was.
fn open_file(path: &Path, options: &OpenOptions, block_device: bool) -> io::Result<(File, bool)> {
    // O_EXCL without O_CREAT refuses a block device that is mounted or otherwise claimed.
    let exclusive = if block_device && options.lock { libc::O_EXCL } else { 0 };
    let open = |direct: bool| {
        std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(options.create && !block_device)
            .mode(0o600)
            .truncate(false)
            .custom_flags(exclusive | if direct { libc::O_DIRECT } else { 0 })
            .open(path)
    };
    match open(options.direct) {
        Err(error) if options.direct && error.raw_os_error() == Some(libc::EINVAL) => Ok((open(false)?, false)),
        opened => Ok((opened?, options.direct)),
    }
}

/// Makes the entry of a new file in its directory durable.
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

fn kind_of(error: &io::Error) -> ErrorKind {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => ErrorKind::NoSpace,
        Some(libc::ENODEV | libc::ENXIO) => ErrorKind::Dead,
        Some(libc::ENOENT) => ErrorKind::NotFound,
        Some(libc::EBUSY) => ErrorKind::InUse,
        // What the kernel makes of unreadable sectors and of wrong protection information, by cache and past it.
        Some(libc::EIO | libc::ENODATA | libc::EILSEQ) => ErrorKind::Medium(error.to_string()),
        _ if error.kind() == io::ErrorKind::UnexpectedEof => ErrorKind::PastEnd,
        _ => ErrorKind::Io(error.to_string()),
    }
}

/// `fallocate`, repeated while signals interrupt it. `Ok(false)`: this file system cannot.
fn fallocate(file: &File, mode: i32, offset: u64, len: u64) -> io::Result<bool> {
    let (Ok(start), Ok(length)) = (libc::off_t::try_from(offset), libc::off_t::try_from(len)) else {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    };
    loop {
        // SAFETY: a system call on an open descriptor, without pointers.
        if unsafe { libc::fallocate(file.as_raw_fd(), mode, start, length) } == 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => return Ok(false),
            _ => return Err(error),
        }
    }
}

fn write_zeros(file: &File, mut offset: u64, end: u64) -> io::Result<()> {
    let zeros = IoBuf::zeroed(1 << 20);
    while offset < end {
        let step = (end - offset).min(zeros.len() as u64);
        file.write_all_at(&zeros[..step as usize], offset)?;
        offset += step;
    }
    Ok(())
}

/// Takes the lock of an open file (invariant 4).
fn lock(file: &File, name: &str) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if began.elapsed() < LOCK_PATIENCE => {
                tracing::debug!(device = name, "locked: what an earlier process left under way has to end first");
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => return Err(io::Error::from_raw_os_error(libc::EBUSY)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

impl Device for FileDevice {
    fn name(&self) -> &str {
        &self.name
    }

    /// A file system promises no more than what every disk does: whole sectors of 512 bytes.
    fn guarantees(&self) -> Guarantees {
        Guarantees { atomic_write: 512, capacity: self.capacity }
    }

    fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    fn read(&self, offset: u64, buf: IoBuf, _purpose: Purpose) -> IoFuture<'_, IoBuf> {
        let length = buf.len() as u64;
        check_aligned(offset, length);
        if offset.checked_add(length).is_none_or(|end| end > self.size()) {
            let error = DeviceError::new(&self.name, "read", offset, length, ErrorKind::PastEnd);
            return Box::pin(std::future::ready(Err(error)));
        }
        self.counters.read(buf.len());
        let file = self.file.clone();
        let answer = if self.uring { uring::read(file, offset, buf) } else { blocking::read(file, offset, buf) };
        Box::pin(self.finish("read", offset, length, answer))
    }

    fn write(&self, offset: u64, buf: IoBuf, _purpose: Purpose) -> IoFuture<'_, IoBuf> {
        let length = buf.len() as u64;
        check_aligned(offset, length);
        let end = match check_room(&self.name, "write", offset, length, self.capacity) {
            Ok(end) => end,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        self.counters.write(buf.len());
        let file = self.file.clone();
        let answer = if self.uring { uring::write(file, offset, buf) } else { blocking::write(file, offset, buf) };
        Box::pin(async move {
            let buf = self.finish("write", offset, length, answer).await?;
            self.size.fetch_max(end, Ordering::AcqRel);
            Ok(buf)
        })
    }

    fn write_and_sync_blocking(
        &self,
        offset: u64,
        buf: &IoBuf,
        _purpose: Purpose,
    ) -> Option<Result<Duration, DeviceError>> {
        let length = buf.len() as u64;
        check_aligned(offset, length);
        let end = match check_room(&self.name, "write", offset, length, self.capacity) {
            Ok(end) => end,
            Err(error) => return Some(Err(error)),
        };
        self.counters.write(buf.len());
        self.counters.sync();
        let began = Instant::now();
        let written = self.file.write_all_at(buf, offset).map(|()| began.elapsed());
        let durable = written.and_then(|took| self.file.sync_data().map(|()| took));
        if durable.is_ok() {
            self.size.fetch_max(end, Ordering::AcqRel);
        }
        Some(durable.map_err(|error| self.error("write and sync", offset, length, &error)))
    }

    fn sync(&self, _purpose: Purpose) -> IoFuture<'_, ()> {
        self.counters.sync();
        let file = self.file.clone();
        let answer = if self.uring { uring::sync(file) } else { blocking::sync(file) };
        Box::pin(self.finish("sync", 0, 0, answer))
    }

    fn allocate(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        check_aligned(offset, len);
        let end = match check_room(&self.name, "allocate", offset, len, self.capacity) {
            Ok(end) => end,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        if self.block_device || len == 0 {
            return Box::pin(std::future::ready(Ok(())));
        }
        let (file, size, zero) = (self.file.clone(), self.size.clone(), self.zero);
        let answer = blocking::run(move || {
            // What lies below the old end may hold data and is not zeroed.
            let fresh = offset.max(size.load(Ordering::Acquire));
            if !fallocate(&file, 0, offset, len)? || zero {
                write_zeros(&file, fresh, end)?;
            }
            size.fetch_max(end, Ordering::AcqRel);
            Ok(())
        });
        Box::pin(self.finish("allocate", offset, len, answer))
    }

    fn discard(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        check_aligned(offset, len);
        if len == 0 {
            return Box::pin(std::future::ready(Ok(())));
        }
        let file = self.file.clone();
        let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // Where it is not supported the old bytes stay, which the contract allows.
        let answer = blocking::run(move || fallocate(&file, punch, offset, len).map(|_| ()));
        Box::pin(self.finish("discard", offset, len, answer))
    }

    fn stats(&self) -> DeviceStats {
        self.counters.stats()
    }
}

#[cfg(test)]
mod tests;
