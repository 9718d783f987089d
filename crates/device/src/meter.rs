//! How often, how much and how long: transfers by device and purpose, counted without locks.
//!
//! 1. Bytes are counted when a transfer begins, the transfer and its duration when it ends, whether it succeeded or
//!    not; one that is dropped before its end has no duration.
//! 2. Counters only grow. A reader sees each of them as of some moment during its reading, not all of the same moment.

use crate::{Device, DeviceError, DeviceRef, DeviceStats, Guarantees, IoBuf, IoFuture, Purpose};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Buckets of a histogram: the bound of bucket k is 2^k microseconds, of the last there is none.
pub(crate) const BUCKETS: usize = 28;

/// Durations by magnitude. Recording is two additions.
#[derive(Default)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    nanos: AtomicU64,
}

/// What a [`Histogram`] held when it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    pub buckets: [u64; BUCKETS],
    /// The sum of all durations.
    pub nanos: u64,
}

/// The bucket of a duration: the first whose bound is not below it.
fn bucket(nanos: u64) -> usize {
    let micros = nanos.div_ceil(1000).max(1);
    (micros.next_power_of_two().trailing_zeros() as usize).min(BUCKETS - 1)
}

impl Histogram {
    pub fn record(&self, nanos: u64) {
        self.buckets[bucket(nanos)].fetch_add(1, Relaxed);
        self.nanos.fetch_add(nanos, Relaxed);
    }

    /// Adds what another one held.
    pub fn add(&self, other: &Distribution) {
        for (bucket, more) in self.buckets.iter().zip(other.buckets) {
            bucket.fetch_add(more, Relaxed);
        }
        self.nanos.fetch_add(other.nanos, Relaxed);
    }

    pub fn read(&self) -> Distribution {
        let mut read = Distribution { nanos: self.nanos.load(Relaxed), ..Distribution::default() };
        for (out, bucket) in read.buckets.iter_mut().zip(&self.buckets) {
            *out = bucket.load(Relaxed);
        }
        read
    }
}

impl Distribution {
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The upper bound of a bucket in nanoseconds; `None`: there is none.
    pub fn bound(bucket: usize) -> Option<u64> {
        (bucket + 1 < BUCKETS).then(|| 1000 << bucket)
    }

    pub fn merge(&mut self, other: &Distribution) {
        for (mine, more) in self.buckets.iter_mut().zip(other.buckets) {
            *mine += more;
        }
        self.nanos += other.nanos;
    }

    /// What was recorded since `before`, an older reading of the same histogram.
    pub fn since(&self, before: &Distribution) -> Distribution {
        let mut out = *self;
        for (mine, old) in out.buckets.iter_mut().zip(before.buckets) {
            *mine = mine.saturating_sub(old);
        }
        out.nanos = out.nanos.saturating_sub(before.nanos);
        out
    }

    /// In nanoseconds; 0 of nothing.
    pub fn mean(&self) -> u64 {
        self.nanos.checked_div(self.count()).unwrap_or(0)
    }

    /// An upper bound of the `q`-quantile (0..=1) in nanoseconds, within a factor of two; 0 of nothing.
    pub fn quantile(&self, q: f64) -> u64 {
        let wanted = (self.count() as f64 * q).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (at, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return 1000 << at;
            }
        }
        0
    }
}

#[derive(Default)]
struct Cell {
    read_bytes: AtomicU64,
    write_bytes: AtomicU64,
    reads: Histogram,
    writes: Histogram,
    syncs: Histogram,
}

/// Transfers of one device for one purpose.
#[derive(Clone, Debug)]
pub struct Usage {
    pub device: Arc<str>,
    pub purpose: Purpose,
    pub read_bytes: u64,
    pub write_bytes: u64,
    /// Their durations; the count is theirs too.
    pub reads: Distribution,
    pub writes: Distribution,
    pub syncs: Distribution,
}

/// Any device, with its transfers counted and timed.
pub struct MeteredDevice {
    inner: DeviceRef,
    name: Arc<str>,
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
    cells: [Cell; Purpose::ALL.len()],
}

impl MeteredDevice {
    /// `clock`: nanoseconds.
    pub fn new(inner: DeviceRef, clock: impl Fn() -> u64 + Send + Sync + 'static) -> MeteredDevice {
        let name = Arc::from(inner.name());
        MeteredDevice { inner, name, clock: Box::new(clock), cells: Default::default() }
    }

    /// Purposes for which there were transfers.
    pub fn usage(&self) -> Vec<Usage> {
        let one = |(purpose, cell): (Purpose, &Cell)| Usage {
            device: self.name.clone(),
            purpose,
            read_bytes: cell.read_bytes.load(Relaxed),
            write_bytes: cell.write_bytes.load(Relaxed),
            reads: cell.reads.read(),
            writes: cell.writes.read(),
            syncs: cell.syncs.read(),
        };
        let all = Purpose::ALL.into_iter().zip(&self.cells).map(one);
        all.filter(|u| u.reads.count() + u.writes.count() + u.syncs.count() > 0).collect()
    }

    fn cell(&self, purpose: Purpose) -> &Cell {
        &self.cells[purpose as usize]
    }

    fn timed<'a, T: 'a>(&'a self, work: IoFuture<'a, T>, histogram: &'a Histogram) -> IoFuture<'a, T> {
        let began = (self.clock)();
        Box::pin(async move {
            let result = work.await;
            histogram.record((self.clock)().saturating_sub(began));
            result
        })
    }
}

impl Device for MeteredDevice {
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
        let cell = self.cell(purpose);
        cell.read_bytes.fetch_add(buf.len() as u64, Relaxed);
        self.timed(self.inner.read(offset, buf, purpose), &cell.reads)
    }
    fn write(&self, offset: u64, buf: IoBuf, purpose: Purpose) -> IoFuture<'_, IoBuf> {
        let cell = self.cell(purpose);
        cell.write_bytes.fetch_add(buf.len() as u64, Relaxed);
        self.timed(self.inner.write(offset, buf, purpose), &cell.writes)
    }
    fn write_and_sync_blocking(
        &self,
        offset: u64,
        buf: &IoBuf,
        purpose: Purpose,
    ) -> Option<Result<Duration, DeviceError>> {
        let (cell, began) = (self.cell(purpose), (self.clock)());
        let result = self.inner.write_and_sync_blocking(offset, buf, purpose)?;
        let all = (self.clock)().saturating_sub(began);
        let written = result.as_ref().map_or(0, |written| written.as_nanos() as u64).min(all);
        cell.write_bytes.fetch_add(buf.len() as u64, Relaxed);
        cell.writes.record(written);
        cell.syncs.record(all - written);
        Some(result)
    }
    fn sync(&self, purpose: Purpose) -> IoFuture<'_, ()> {
        self.timed(self.inner.sync(purpose), &self.cell(purpose).syncs)
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
