//! Both back ends go through the same tests.

use super::*;
use crate::SECTOR;
use futures::executor::block_on;
use futures::future::join_all;

struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str, backend: Backend) -> Scratch {
        let dir = std::env::temp_dir().join(format!("terrace-device-{}-{name}-{backend:?}", std::process::id()));
        std::fs::remove_dir_all(&dir).ok();
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }
    fn path(&self) -> std::path::PathBuf {
        self.0.join("device")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// The back ends this machine has; io_uring may be forbidden in a container.
fn backends() -> Vec<Backend> {
    if uring::available() { vec![Backend::Threads, Backend::Uring] } else { vec![Backend::Threads] }
}

fn options(backend: Backend) -> OpenOptions {
    OpenOptions { create: true, backend, ..OpenOptions::default() }
}

fn pattern(seed: u64, len: usize) -> IoBuf {
    let mut buf = IoBuf::zeroed(len);
    buf.iter_mut().enumerate().for_each(|(i, b)| *b = (i as u64).wrapping_mul(31).wrapping_add(seed * 7 + 1) as u8);
    buf
}

#[test]
fn writes_are_read_back_and_survive_reopening() {
    for backend in backends() {
        for direct in [true, false] {
            let scratch = Scratch::new("roundtrip", backend);
            let options = OpenOptions { direct, ..options(backend) };
            let device = FileDevice::open(&scratch.path(), &options).unwrap();
            assert_eq!(device.size(), 0);
            block_on(async {
                let writes = (0..64).map(|i| device.write(i * 16384, pattern(i, 16384), Purpose::Data));
                for written in join_all(writes).await {
                    written.unwrap();
                }
                device.sync(Purpose::Data).await.unwrap();
            });
            assert_eq!(device.size(), 64 * 16384);
            let stats = device.stats();
            assert_eq!((stats.writes, stats.write_bytes, stats.syncs), (64, 64 * 16384, 1));
            drop(device);
            let device = FileDevice::open(&scratch.path(), &OpenOptions { create: false, ..options }).unwrap();
            block_on(async {
                let reads = (0..64).map(|i| device.read(i * 16384, IoBuf::zeroed(16384), Purpose::Data));
                for (i, read) in join_all(reads).await.into_iter().enumerate() {
                    assert_eq!(&read.unwrap()[..], &pattern(i as u64, 16384)[..]);
                }
            });
        }
    }
}

#[test]
fn the_blocking_way_writes_and_syncs() {
    let scratch = Scratch::new("blocking", Backend::Threads);
    let limited = OpenOptions { capacity: 8 * SECTOR as u64, ..options(Backend::Threads) };
    let device = FileDevice::open(&scratch.path(), &limited).unwrap();
    let bytes = pattern(1, 2 * SECTOR);
    device.write_and_sync_blocking(6 * SECTOR as u64, &bytes, Purpose::Log).expect("files have it").unwrap();
    assert_eq!((device.size(), device.stats().writes, device.stats().syncs), (8 * SECTOR as u64, 1, 1));
    let read = block_on(device.read(6 * SECTOR as u64, IoBuf::zeroed(2 * SECTOR), Purpose::Log)).unwrap();
    assert_eq!(*read, *bytes);
    let beyond = device.write_and_sync_blocking(7 * SECTOR as u64, &bytes, Purpose::Log).expect("files have it");
    assert_eq!(beyond.unwrap_err().kind, ErrorKind::NoSpace);
}

/// A killed process's lock goes with the last of its transfers, which may be after the process (invariant 4).
#[test]
fn opening_waits_for_what_an_ended_process_left_under_way() {
    for backend in backends() {
        let scratch = Scratch::new("left", backend);
        let device = FileDevice::open(&scratch.path(), &options(backend)).unwrap();
        let last_transfer = device.file.clone();
        drop(device);
        let ended = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(last_transfer);
        });
        FileDevice::open(&scratch.path(), &options(backend)).unwrap();
        ended.join().unwrap();
    }
}

#[test]
fn errors_say_what_happened() {
    for backend in backends() {
        let scratch = Scratch::new("errors", backend);
        let missing = FileDevice::open(&scratch.path(), &OpenOptions { create: false, ..options(backend) });
        assert_eq!(missing.err().unwrap().kind, ErrorKind::NotFound);
        let device = FileDevice::open(&scratch.path(), &OpenOptions { capacity: 8192, ..options(backend) }).unwrap();
        let again = FileDevice::open(&scratch.path(), &options(backend));
        assert_eq!(again.err().unwrap().kind, ErrorKind::InUse);
        block_on(async {
            let past = device.read(0, IoBuf::zeroed(SECTOR), Purpose::Data).await.unwrap_err();
            assert_eq!((past.kind, past.operation, past.length), (ErrorKind::PastEnd, "read", SECTOR as u64));
            device.write(4096, pattern(1, SECTOR), Purpose::Data).await.unwrap();
            let full = device.write(8192, pattern(1, SECTOR), Purpose::Data).await.unwrap_err();
            assert_eq!((full.kind, full.offset), (ErrorKind::NoSpace, 8192));
            let full = device.allocate(4096, 8192).await.unwrap_err();
            assert_eq!(full.kind, ErrorKind::NoSpace);
            // A file that shrank behind the device's back: the end is found by the transfer itself.
            std::fs::OpenOptions::new().write(true).open(scratch.path()).unwrap().set_len(4096).unwrap();
            let past = device.read(4096, IoBuf::zeroed(SECTOR), Purpose::Data).await.unwrap_err();
            assert_eq!(past.kind, ErrorKind::PastEnd);
            let past = device.read(0, IoBuf::zeroed(2 * SECTOR), Purpose::Data).await.unwrap_err();
            assert_eq!(past.kind, ErrorKind::PastEnd);
        });
    }
}

#[test]
fn allocated_space_reads_as_zeros_and_discarded_space_may() {
    for backend in backends() {
        for zero in [false, true] {
            let scratch = Scratch::new("allocate", backend);
            let device = FileDevice::open(&scratch.path(), &OpenOptions { zero, ..options(backend) }).unwrap();
            block_on(async {
                device.write(0, pattern(3, SECTOR), Purpose::Data).await.unwrap();
                device.allocate(0, 3 << 20).await.unwrap();
                assert_eq!(device.size(), 3 << 20);
                let first = device.read(0, IoBuf::zeroed(SECTOR), Purpose::Data).await.unwrap();
                assert_eq!(&first[..], &pattern(3, SECTOR)[..], "allocating keeps what is there");
                let rest = device.read(SECTOR as u64, IoBuf::zeroed((3 << 20) - SECTOR), Purpose::Data).await.unwrap();
                assert!(rest.iter().all(|b| *b == 0));
                device.discard(0, SECTOR as u64).await.unwrap();
                assert_eq!(device.size(), 3 << 20);
                let first = device.read(0, IoBuf::zeroed(SECTOR), Purpose::Data).await.unwrap();
                assert!(first.iter().all(|b| *b == 0) || first[..] == pattern(3, SECTOR)[..]);
            });
        }
    }
}

/// The piece of a sector at a cut file's end counts as not there, and does not stand in the way of what comes there.
#[test]
fn r6_a_file_that_ends_within_a_sector_is_taken_into_use() {
    for backend in backends() {
        let scratch = Scratch::new("cut", backend);
        std::fs::write(scratch.path(), vec![7; 2 * SECTOR + 904]).unwrap();
        for direct in [true, false] {
            let options = OpenOptions { direct, zero: true, ..options(backend) };
            let device = FileDevice::open(&scratch.path(), &options).unwrap();
            assert_eq!(device.size(), 2 * SECTOR as u64);
            block_on(device.allocate(SECTOR as u64, 4 * SECTOR as u64)).unwrap();
            assert_eq!(device.size(), 5 * SECTOR as u64);
            let read = block_on(device.read(0, IoBuf::zeroed(5 * SECTOR), Purpose::Log)).unwrap();
            assert!(read[..2 * SECTOR].iter().all(|&b| b == 7) && read[2 * SECTOR..].iter().all(|&b| b == 0));
            drop(device);
            std::fs::OpenOptions::new()
                .write(true)
                .open(scratch.path())
                .unwrap()
                .set_len(2 * SECTOR as u64 + 100)
                .unwrap();
        }
    }
}

#[test]
fn dropped_futures_leave_their_transfers_running_safely() {
    for backend in backends() {
        let scratch = Scratch::new("dropped", backend);
        let device = FileDevice::open(&scratch.path(), &options(backend)).unwrap();
        block_on(device.allocate(0, 4 << 20)).unwrap();
        // Each thread ends with its transfers under way; none may be lost or touch freed memory.
        for round in 0..4u64 {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for i in 0..64 {
                        drop(device.write((round * 64 + i) * 16384, pattern(i, 16384), Purpose::Data));
                        drop(device.read(0, IoBuf::zeroed(16384), Purpose::Data));
                    }
                });
            });
        }
        // Nobody orders transfers in flight, so wait until the last one is visible.
        for i in 0..256u64 {
            let at = i * 16384;
            let whole = || {
                let read = block_on(device.read(at, IoBuf::zeroed(16384), Purpose::Data)).unwrap();
                read[..] == pattern(i % 64, 16384)[..]
            };
            assert!((0..2000).any(|_| whole() || {
                std::thread::sleep(std::time::Duration::from_millis(1));
                false
            }));
        }
    }
}

#[test]
fn many_threads_share_one_device() {
    for backend in backends() {
        let scratch = Scratch::new("threads", backend);
        let device = FileDevice::open(&scratch.path(), &options(backend)).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let device = &device;
                scope.spawn(move || {
                    block_on(async {
                        for i in 0..32u64 {
                            let at = (i * 8 + thread) * 8192;
                            device.write(at, pattern(at, 8192), Purpose::Log).await.unwrap();
                            device.sync(Purpose::Log).await.unwrap();
                            let read = device.read(at, IoBuf::zeroed(8192), Purpose::Log).await.unwrap();
                            assert_eq!(&read[..], &pattern(at, 8192)[..]);
                        }
                    });
                });
            }
        });
        assert_eq!(device.stats().syncs, 256);
    }
}
