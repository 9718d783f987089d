use super::*;
use crate::{MemoryDevice, SECTOR};
use futures::executor::block_on;

#[test]
fn durations_fall_into_the_bucket_of_their_bound() {
    let h = Histogram::default();
    for nanos in [0, 1, 1000, 1001, 2000, 2001, 4_000_000, u64::MAX / 2] {
        h.record(nanos);
    }
    let read = h.read();
    assert_eq!(read.buckets[0], 3, "up to a microsecond");
    assert_eq!(read.buckets[1], 2, "up to two");
    assert_eq!(read.buckets[2], 1, "up to four");
    assert_eq!(read.buckets[12], 1, "4 ms are below 4.096 ms");
    assert_eq!(read.buckets[BUCKETS - 1], 1, "what no bound holds");
    assert_eq!(read.count(), 8);
    assert_eq!(Distribution::bound(2), Some(4000));
    assert_eq!(Distribution::bound(BUCKETS - 1), None);
}

#[test]
fn quantiles_mean_and_difference() {
    let h = Histogram::default();
    (0..99).for_each(|_| h.record(900));
    let before = h.read();
    h.record(3_000_000);
    let read = h.read();
    assert_eq!(read.quantile(0.5), 1000);
    assert_eq!(read.quantile(1.0), 4_096_000);
    assert_eq!(read.since(&before).count(), 1);
    assert_eq!(read.since(&before).mean(), 3_000_000);
    assert_eq!(Distribution::default().quantile(0.5), 0);
    assert_eq!(Distribution::default().mean(), 0);
    let sum = Histogram::default();
    sum.add(&read);
    sum.add(&before);
    assert_eq!(sum.read().count(), 199);
}

#[test]
fn transfers_are_counted_by_purpose() {
    let ticks = Arc::new(AtomicU64::new(0));
    let clock = ticks.clone();
    let device = MeteredDevice::new(Arc::new(MemoryDevice::new("m", 1 << 20)), move || clock.fetch_add(5000, Relaxed));
    block_on(async {
        device.write(0, IoBuf::zeroed(2 * SECTOR), Purpose::Data).await.unwrap();
        device.read(0, IoBuf::zeroed(SECTOR), Purpose::Data).await.unwrap();
        device.sync(Purpose::Log).await.unwrap();
        assert!(device.read(1 << 19, IoBuf::zeroed(SECTOR), Purpose::Undo).await.is_err());
    });
    let usage = device.usage();
    let purposes: Vec<Purpose> = usage.iter().map(|u| u.purpose).collect();
    assert_eq!(purposes, [Purpose::Log, Purpose::Data, Purpose::Undo]);
    let data = &usage[1];
    assert_eq!((data.read_bytes, data.write_bytes), (SECTOR as u64, 2 * SECTOR as u64));
    assert_eq!((data.reads.count(), data.writes.count(), data.syncs.count()), (1, 1, 0));
    assert_eq!(data.reads.nanos, 5000);
    assert_eq!(usage[0].syncs.count(), 1);
}
