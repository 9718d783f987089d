use super::*;
use crate::MemoryDevice;
use futures::executor::block_on;
use std::sync::atomic::{AtomicU64, Ordering};

/// Time that jumps to whatever is slept for; deadlines must be asked for in order.
#[derive(Default)]
struct Jumping(Arc<AtomicU64>);

impl Timer for Jumping {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn sleep_until(&self, nanos: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let now = self.0.clone();
        Box::pin(async move {
            now.fetch_max(nanos, Ordering::Relaxed);
        })
    }
}

#[test]
fn operations_queue_on_the_servers() {
    let timer = Arc::new(Jumping::default());
    let model = Model {
        read: Cost::new(100, 1_000_000_000),
        write: Cost::new(10, 0),
        sync: Cost::new(1000, 0),
        parallelism: 2,
    };
    let latency = Arc::new(Latency::new(model, timer.clone()));
    let device = LatencyDevice::new(Arc::new(MemoryDevice::new("m", 1 << 20)), latency);
    block_on(async {
        device.write(0, IoBuf::zeroed(4096), Purpose::Data).await.unwrap();
        assert_eq!(timer.now(), 10);
        // Three reads of 4196 ns each on two servers, asked for at 10: one of them waits for a server.
        let reads = [0; 3].map(|offset| device.read(offset, IoBuf::zeroed(4096), Purpose::Data));
        for (read, end) in reads.into_iter().zip([10 + 4196, 10 + 4196, 10 + 2 * 4196]) {
            read.await.unwrap();
            assert_eq!(timer.now(), end);
        }
        device.sync(Purpose::Data).await.unwrap();
        assert_eq!(timer.now(), 10 + 2 * 4196 + 1000, "an idle server takes it at once");
    });
}
