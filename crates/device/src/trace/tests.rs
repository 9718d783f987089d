use super::*;
use crate::MemoryDevice;
use futures::executor::block_on;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn transfers_are_recorded_in_order_and_exported() {
    let ticks = AtomicU64::new(0);
    let trace = Trace::new(move || ticks.fetch_add(5, Ordering::Relaxed));
    let device = TraceDevice::new(Arc::new(MemoryDevice::new("fast, \"dear\"", 1 << 20)), trace.clone());
    block_on(async {
        device.allocate(0, 8192).await.unwrap();
        device.write(4096, IoBuf::zeroed(4096), Purpose::Log).await.unwrap();
        device.sync(Purpose::Log).await.unwrap();
        device.read(0, IoBuf::zeroed(8192), Purpose::Data).await.unwrap();
        device.read(8192, IoBuf::zeroed(4096), Purpose::Undo).await.unwrap_err();
    });
    let mut csv = Vec::new();
    trace.write_csv(&mut csv).unwrap();
    let name = "\"fast, \"\"dear\"\"\"";
    let expected = format!(
        "nanos,device,direction,offset,length,purpose\n0,{name},Allocate,0,8192,\n5,{name},Write,4096,4096,Log\n\
         10,{name},Sync,0,0,Log\n15,{name},Read,0,8192,Data\n20,{name},Read,8192,4096,Undo\n"
    );
    assert_eq!(String::from_utf8(csv).unwrap(), expected);
    trace.clear();
    assert!(trace.records().is_empty());
}
