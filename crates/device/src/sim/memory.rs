//! A device in memory. It never waits, and forgets everything when it is dropped; `sync` has nothing to do.

use crate::counters::Counters;
use crate::{
    Device, DeviceError, DeviceStats, ErrorKind, Guarantees, Image, IoBuf, IoFuture, Purpose, SECTOR, check_aligned,
    check_room,
};
use parking_lot::RwLock;
use std::future::ready;

pub struct MemoryDevice {
    name: String,
    guarantees: Guarantees,
    image: RwLock<Image>,
    counters: Counters,
}

impl MemoryDevice {
    /// An empty device that holds at most `capacity` bytes.
    pub fn new(name: &str, capacity: u64) -> MemoryDevice {
        MemoryDevice::with_image(name, Guarantees { atomic_write: SECTOR, capacity }, Image::new())
    }

    pub fn with_image(name: &str, guarantees: Guarantees, image: Image) -> MemoryDevice {
        assert!(guarantees.atomic_write >= 512, "Guarantees::atomic_write is at least 512");
        MemoryDevice { name: name.to_string(), guarantees, image: RwLock::new(image), counters: Counters::default() }
    }

    /// The contents as of now.
    pub fn image(&self) -> Image {
        self.image.read().clone()
    }

    /// Changes the contents without the knowledge of the device's users (bit rot).
    pub fn tamper(&self, change: impl FnOnce(&mut Image)) {
        change(&mut self.image.write());
    }

    fn error(&self, operation: &'static str, offset: u64, length: u64, kind: ErrorKind) -> DeviceError {
        DeviceError::new(&self.name, operation, offset, length, kind)
    }

    pub(crate) fn read_now(&self, offset: u64, mut buf: IoBuf) -> Result<IoBuf, DeviceError> {
        let length = buf.len() as u64;
        check_aligned(offset, length);
        let image = self.image.read();
        if offset.checked_add(length).is_none_or(|end| end > image.size()) {
            return Err(self.error("read", offset, length, ErrorKind::PastEnd));
        }
        if !image.is_readable(offset, length) {
            return Err(self.error("read", offset, length, ErrorKind::Medium("unreadable sector".into())));
        }
        image.read(offset, &mut buf);
        self.counters.read(buf.len());
        Ok(buf)
    }

    pub(crate) fn write_now(&self, offset: u64, buf: &[u8]) -> Result<(), DeviceError> {
        check_aligned(offset, buf.len() as u64);
        check_room(&self.name, "write", offset, buf.len() as u64, self.guarantees.capacity)?;
        self.image.write().write(offset, buf);
        self.counters.write(buf.len());
        Ok(())
    }

    pub(crate) fn allocate_now(&self, offset: u64, len: u64) -> Result<(), DeviceError> {
        check_aligned(offset, len);
        let end = check_room(&self.name, "allocate", offset, len, self.guarantees.capacity)?;
        self.image.write().grow(end);
        Ok(())
    }

    pub(crate) fn discard_now(&self, offset: u64, len: u64) {
        check_aligned(offset, len);
        self.image.write().clear(offset, len);
    }

    pub(crate) fn sync_now(&self) {
        self.counters.sync();
    }
}

impl Device for MemoryDevice {
    fn name(&self) -> &str {
        &self.name
    }
    fn guarantees(&self) -> Guarantees {
        self.guarantees.clone()
    }
    fn size(&self) -> u64 {
        self.image.read().size()
    }
    fn read(&self, offset: u64, buf: IoBuf, _purpose: Purpose) -> IoFuture<'_, IoBuf> {
        Box::pin(ready(self.read_now(offset, buf)))
    }
    fn write(&self, offset: u64, buf: IoBuf, _purpose: Purpose) -> IoFuture<'_, IoBuf> {
        Box::pin(ready(self.write_now(offset, &buf).map(|()| buf)))
    }
    fn sync(&self, _purpose: Purpose) -> IoFuture<'_, ()> {
        self.sync_now();
        Box::pin(ready(Ok(())))
    }
    fn allocate(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        Box::pin(ready(self.allocate_now(offset, len)))
    }
    fn discard(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        self.discard_now(offset, len);
        Box::pin(ready(Ok(())))
    }
    fn stats(&self) -> DeviceStats {
        self.counters.stats()
    }
}
