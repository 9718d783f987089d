//! Records every transfer of the devices that share a [`Trace`].

use crate::{Device, DeviceRef, DeviceStats, Guarantees, IoBuf, IoFuture, Purpose};
use parking_lot::Mutex;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    Read,
    Write,
    Sync,
    Allocate,
    Discard,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// When it was asked for, by the trace's clock (nanoseconds).
    pub nanos: u64,
    pub device: Arc<str>,
    pub direction: Direction,
    /// Bytes; both 0 for a sync.
    pub offset: u64,
    pub length: u64,
    /// `None` for allocate and discard.
    pub purpose: Option<Purpose>,
}

/// The transfers so far, in the order in which they were asked for.
pub struct Trace {
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
    records: Mutex<Vec<Record>>,
}

impl Trace {
    pub fn new(clock: impl Fn() -> u64 + Send + Sync + 'static) -> Arc<Trace> {
        Arc::new(Trace { clock: Box::new(clock), records: Mutex::default() })
    }

    pub fn records(&self) -> Vec<Record> {
        self.records.lock().clone()
    }

    /// Forgets what was recorded, e.g. after loading.
    pub fn clear(&self) {
        self.records.lock().clear();
    }
}

/// Any device, with its transfers recorded.
pub struct TraceDevice {
    inner: DeviceRef,
    name: Arc<str>,
    trace: Arc<Trace>,
}

impl TraceDevice {
    pub fn new(inner: DeviceRef, trace: Arc<Trace>) -> TraceDevice {
        let name = Arc::from(inner.name());
        TraceDevice { inner, name, trace }
    }

    fn record(&self, direction: Direction, offset: u64, length: u64, purpose: Option<Purpose>) {
        let nanos = (self.trace.clock)();
        self.trace.records.lock().push(Record { nanos, device: self.name.clone(), direction, offset, length, purpose });
    }
}

impl Device for TraceDevice {
    fn name(&self) -> &str {
        &self.name
    }
    fn guarantees(&self) -> Guarantees {
        self.inner.guarantees()
    }
    fn size(&self) -> u64 {
        self.inner.size()
    }
    fn read(&self, offset: u64, buf: IoBuf, purpose: Purpose) -> IoFuture<'_, IoBuf> {
        self.record(Direction::Read, offset, buf.len() as u64, Some(purpose));
        self.inner.read(offset, buf, purpose)
    }
    fn write(&self, offset: u64, buf: IoBuf, purpose: Purpose) -> IoFuture<'_, IoBuf> {
        self.record(Direction::Write, offset, buf.len() as u64, Some(purpose));
        self.inner.write(offset, buf, purpose)
    }
    fn sync(&self, purpose: Purpose) -> IoFuture<'_, ()> {
        self.record(Direction::Sync, 0, 0, Some(purpose));
        self.inner.sync(purpose)
    }
    fn allocate(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        self.record(Direction::Allocate, offset, len, None);
        self.inner.allocate(offset, len)
    }
    fn discard(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        self.record(Direction::Discard, offset, len, None);
        self.inner.discard(offset, len)
    }
    fn stats(&self) -> DeviceStats {
        self.inner.stats()
    }
}

#[cfg(test)]
mod tests;
