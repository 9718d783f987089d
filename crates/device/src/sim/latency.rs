//! How long a device takes, in whatever time the timer keeps: a fixed cost per operation, a rate, and a bounded number
//! of operations served at once. A queueing model for tests; `emulate` has the devices.

use crate::{Device, DeviceRef, DeviceStats, Guarantees, IoBuf, IoFuture, Purpose};
use parking_lot::Mutex;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A clock and a way to wait, so that this room need not know the environment.
pub trait Timer: Send + Sync {
    /// Nanoseconds; never goes back.
    fn now(&self) -> u64;
    fn sleep_until(&self, nanos: u64) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// How long operations take: each future is done when the device would be.
pub trait Delay: Send + Sync {
    /// Takes a place in the queue now.
    fn serve(&self, operation: Operation, offset: u64, bytes: u64) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The service time of one kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Nanoseconds for an operation of no bytes.
    pub fixed: u64,
    /// Bytes per second; 0 = without limit.
    pub rate: u64,
}

impl Cost {
    pub const fn new(fixed: u64, rate: u64) -> Cost {
        Cost { fixed, rate }
    }

    /// Nanoseconds for `bytes`.
    pub fn of(&self, bytes: u64) -> u64 {
        let transfer = u128::from(bytes) * 1_000_000_000 / u128::from(self.rate.max(1));
        self.fixed + if self.rate == 0 { 0 } else { u64::try_from(transfer).unwrap_or(u64::MAX / 2) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    pub read: Cost,
    pub write: Cost,
    pub sync: Cost,
    /// Operations served at once; the others queue, first come, first served.
    pub parallelism: usize,
}

/// What an operation does, for choosing its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Read,
    Write,
    Sync,
}

/// The queue of one device. Shared where two devices stand for two files on one disk.
pub struct Latency {
    model: Model,
    timer: Arc<dyn Timer>,
    /// When each server is free again.
    servers: Mutex<Vec<u64>>,
}

impl Latency {
    pub fn new(model: Model, timer: Arc<dyn Timer>) -> Latency {
        assert!(model.parallelism > 0, "a device serves at least one operation at a time");
        Latency { model, timer, servers: Mutex::new(vec![0; model.parallelism]) }
    }
}

impl Delay for Latency {
    fn serve(&self, operation: Operation, _offset: u64, bytes: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let cost = match operation {
            Operation::Read => self.model.read,
            Operation::Write => self.model.write,
            Operation::Sync => self.model.sync,
        };
        let mut servers = self.servers.lock();
        // The assertion in `new` proves that there is one.
        let free = servers.iter_mut().min().expect("at least one server");
        *free = (*free).max(self.timer.now()) + cost.of(bytes);
        self.timer.sleep_until(*free)
    }
}

/// Any device, slowed down. For crash simulation give the latency to the `FaultDevice` instead, which must know when a
/// transfer starts and when it ends.
pub struct LatencyDevice {
    inner: DeviceRef,
    latency: Arc<dyn Delay>,
}

impl LatencyDevice {
    pub fn new(inner: DeviceRef, latency: Arc<dyn Delay>) -> LatencyDevice {
        LatencyDevice { inner, latency }
    }
}

impl Device for LatencyDevice {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn guarantees(&self) -> Guarantees {
        self.inner.guarantees()
    }
    fn size(&self) -> u64 {
        self.inner.size()
    }
    fn read(&self, offset: u64, buf: IoBuf, purpose: Purpose) -> IoFuture<'_, IoBuf> {
        let served = self.latency.serve(Operation::Read, offset, buf.len() as u64);
        Box::pin(async move {
            served.await;
            self.inner.read(offset, buf, purpose).await
        })
    }
    fn write(&self, offset: u64, buf: IoBuf, purpose: Purpose) -> IoFuture<'_, IoBuf> {
        let served = self.latency.serve(Operation::Write, offset, buf.len() as u64);
        Box::pin(async move {
            served.await;
            self.inner.write(offset, buf, purpose).await
        })
    }
    fn sync(&self, purpose: Purpose) -> IoFuture<'_, ()> {
        let served = self.latency.serve(Operation::Sync, 0, 0);
        // The inner sync covers what completed before this one began, not what completes while it waits in the queue.
        let sync = self.inner.sync(purpose);
        Box::pin(async move {
            served.await;
            sync.await
        })
    }
    fn allocate(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        self.inner.allocate(offset, len)
    }
    fn discard(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        self.inner.discard(offset, len)
    }
    fn stats(&self) -> DeviceStats {
        self.inner.stats()
    }
}

#[cfg(test)]
mod tests;
