use super::measure::measure;
use super::*;
use crate::latency::LatencyDevice;
use crate::{Device, IoBuf, MemoryDevice, Purpose};
use futures::task::noop_waker;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

/// Every profile's device does what its source measured.
#[test]
fn profiles_meet_their_calibration() {
    let mut misses = vec![];
    for name in Profile::names() {
        let profile = Profile::named(name).unwrap();
        assert!(!profile.calibration.is_empty(), "{name} is calibrated to nothing");
        for wanted in &profile.calibration {
            let ours = measure(&profile, wanted, 1);
            let off = (ours / wanted.value - 1.0) * 100.0;
            if off.abs() > 5.0 {
                misses.push(format!("{name}: {ours:.4} is {off:+.1}% off {wanted:?}"));
            }
        }
    }
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

/// Random reads of a database a thousand times smaller take as long.
#[test]
fn shrunk_disks_keep_their_pace() {
    let whole = Profile::named("hdd-8x7200").unwrap();
    let shrunk = whole.clone().shrunk(1000);
    let (wanted, near) = (whole.calibration[0].value, &shrunk.calibration[0]);
    let ours = measure(&shrunk, near, 1);
    assert!((ours / wanted - 1.0).abs() < 0.08, "{ours} of {wanted}");
    let unshrunk = measure(&whole, near, 1);
    assert!(unshrunk > 1.05 * ours, "it seeks less: {unshrunk} against {ours}");
}

#[test]
fn the_same_arrivals_have_the_same_ends() {
    let profile = Profile::named("hdd-8x7200").unwrap();
    let run = |seed| measure(&profile, &profile.calibration[0], seed);
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8), "the seed chooses the addresses");
}

#[test]
fn wrong_profiles_are_refused_by_name() {
    let unknown = Profile::named("floppy").unwrap_err().to_string();
    assert!(unknown.contains("floppy") && unknown.contains("iodrive-160"), "{unknown}");
    let text = include_str!("../../../profiles/volume-gp.toml");
    let zero = Profile::parse(&text.replace("iops = 3000", "iops = 0")).unwrap_err();
    assert_eq!(zero, ProfileError::Zero("iops"));
    let typo = Profile::parse(&text.replace("burst_bytes", "brust_bytes")).unwrap_err().to_string();
    assert!(typo.contains("brust_bytes"), "{typo}");
}

/// Time that goes on when told.
#[derive(Clone, Default)]
struct Manual(Arc<AtomicU64>);

impl Timer for Manual {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn sleep_until(&self, nanos: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let now = self.0.clone();
        Box::pin(std::future::poll_fn(move |_| match now.load(Ordering::Relaxed) >= nanos {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }))
    }
}

/// A device whose reads take 70,385 ns + 4 KiB at 700 MB/s, one after the other.
fn one_channel() -> (Manual, LatencyDevice) {
    let timer = Manual::default();
    let emulator = Emulator::new(&Profile::named("iodrive-160").unwrap(), Arc::new(timer.clone()));
    (timer, LatencyDevice::new(Arc::new(MemoryDevice::new("m", 1 << 20)), Arc::new(emulator)))
}

const READ: u64 = 70_385 + 4096 * 1000 / 700;

fn done<T>(future: &mut Pin<Box<impl Future<Output = T> + ?Sized>>) -> bool {
    future.as_mut().poll(&mut Context::from_waker(&noop_waker())).is_ready()
}

#[test]
fn transfers_wait_for_the_channel_in_turn() {
    let (timer, device) = one_channel();
    let read = |offset| device.read(offset, IoBuf::zeroed(4096), Purpose::Data);
    // Descending, so that none continues another.
    let (mut a, mut b) = (read(65536), read(8192));
    assert!(!done(&mut a) && !done(&mut b));
    timer.0.store(READ, Ordering::Relaxed);
    assert!(!done(&mut b), "the second has not begun before the first was seen to end");
    assert!(done(&mut a));
    drop(a);
    timer.0.store(2 * READ - 1, Ordering::Relaxed);
    assert!(!done(&mut b));
    timer.0.store(2 * READ, Ordering::Relaxed);
    assert!(done(&mut b), "it began at the end of the first, however late that was seen (invariant 2)");
}

#[test]
fn a_dropped_transfer_holds_nobody_up() {
    let (timer, device) = one_channel();
    let read = |offset| device.read(offset, IoBuf::zeroed(4096), Purpose::Data);
    let (mut a, mut b, mut c) = (read(65536), read(32768), read(8192));
    assert!(!done(&mut a) && !done(&mut b) && !done(&mut c));
    drop(b); // It waited: it goes.
    drop(a); // It was being served: it is served to its end.
    timer.0.store(2 * READ - 1, Ordering::Relaxed);
    assert!(!done(&mut c), "after the first, not at once (invariant 3)");
    timer.0.store(2 * READ, Ordering::Relaxed);
    assert!(done(&mut c));
}

#[test]
fn a_large_read_is_spread_over_the_spindles() {
    let profile = Profile::named("hdd-8x7200").unwrap();
    let emulation = profile.emulation();
    let parts = emulation.parts(false, 65536 * 3 + 4096, 1 << 20);
    assert_eq!(parts.len(), 8);
    assert_eq!(parts.iter().map(|p| p.bytes).sum::<u64>(), 1 << 20);
    assert_eq!((parts[0].queue, parts[0].offset), (3, 4096));
}
