use super::*;
use crate::MemoryDevice;
use futures::executor::block_on;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn transfers_are_recorded_in_order() {
    let ticks = AtomicU64::new(0);
    let trace = Trace::new(move || ticks.fetch_add(5, Ordering::Relaxed));
    let device = TraceDevice::new(Arc::new(MemoryDevice::new("fast", 1 << 20)), trace.clone());
    block_on(async {
        device.allocate(0, 8192).await.unwrap();
        device.write(4096, IoBuf::zeroed(4096), Purpose::Log).await.unwrap();
        device.sync(Purpose::Log).await.unwrap();
        device.read(0, IoBuf::zeroed(8192), Purpose::Data).await.unwrap();
        device.read(8192, IoBuf::zeroed(4096), Purpose::Undo).await.unwrap_err();
    });
    let expected = [
        (0, Direction::Allocate, 0, 8192, None),
        (5, Direction::Write, 4096, 4096, Some(Purpose::Log)),
        (10, Direction::Sync, 0, 0, Some(Purpose::Log)),
        (15, Direction::Read, 0, 8192, Some(Purpose::Data)),
        (20, Direction::Read, 8192, 4096, Some(Purpose::Undo)),
    ];
    let records = trace.records();
    let found: Vec<_> = records.iter().map(|r| (r.nanos, r.direction, r.offset, r.length, r.purpose)).collect();
    assert_eq!(found, expected);
    assert!(records.iter().all(|record| &*record.device == "fast"));
    trace.clear();
    assert!(trace.records().is_empty());
}
