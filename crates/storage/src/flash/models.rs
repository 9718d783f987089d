//! Models: the production pool over the tier over the disk home, under a scheduler that tries many interleavings; see
//! `pool/models.rs`.

use super::FlashHome;
use crate::config::{DeviceSet, FlashConfig, FlashOrder, StorageConfig, WritePolicy};
use crate::home::disk::DiskHome;
use crate::home::{Home, Reason, WriteBack};
use crate::identity::Identity;
use crate::log::Log;
use crate::page::header;
use crate::pool::fixture::{PAGE, page};
use crate::pool::models::{ModelEnv, explore, increment_in, numbers, read_in, small, zeros};
use crate::pool::{Access, Pool};
use crate::types::*;
use shuttle::future::{block_on, yield_now};
use shuttle::rand::Rng;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use terrace_device::latency::{Delay, LatencyDevice, Operation};
use terrace_device::{Device, DeviceRef, DeviceStats, Guarantees, IoBuf, IoFuture, MemoryDevice, Purpose};
use terrace_env::Env;

const DATABASE: u128 = 7;
/// More than memory and tier hold together.
const PAGES: u32 = 14;

/// Whatever a device does, others may go on first.
struct Others;

impl Delay for Others {
    fn serve(&self, _operation: Operation, _offset: u64, _bytes: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(yield_now())
    }
}

/// Whoever reads what is being written finds the first half new and the second as it was.
struct Torn(Arc<MemoryDevice>);

impl Device for Torn {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }
    fn size(&self) -> u64 {
        self.0.size()
    }
    fn read(&self, offset: u64, buf: IoBuf, purpose: Purpose) -> IoFuture<'_, IoBuf> {
        self.0.read(offset, buf, purpose)
    }
    fn write(&self, offset: u64, buf: IoBuf, purpose: Purpose) -> IoFuture<'_, IoBuf> {
        Box::pin(async move {
            if offset + buf.len() as u64 <= self.0.size() {
                self.0.tamper(|image| image.write(offset, &buf[..buf.len() / 2]));
                yield_now().await;
            }
            self.0.write(offset, buf, purpose).await
        })
    }
    fn sync(&self, purpose: Purpose) -> IoFuture<'_, ()> {
        self.0.sync(purpose)
    }
    fn allocate(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        self.0.allocate(offset, len)
    }
    fn discard(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        self.0.discard(offset, len)
    }
    fn stats(&self) -> DeviceStats {
        self.0.stats()
    }
}

struct Model {
    pool: Arc<Pool>,
    home: Arc<FlashHome>,
    /// Behind the tier.
    flash: Arc<MemoryDevice>,
    log: Log,
    /// Increments of each page, counted when they have happened.
    counted: Vec<AtomicU64>,
}

/// Eight pages in memory, four in the tier. `life`: 0, or one with two floors (`floors`).
fn start(write: WritePolicy, life: u64) -> Arc<Model> {
    let env = Env::new(Arc::new(ModelEnv));
    let replacement = if write.flow().rotates { FlashOrder::Fifo } else { FlashOrder::Lru2 };
    let flash = FlashConfig { size: 4 * PAGE as u64, write, replacement, expanded_read: 1, ..FlashConfig::default() };
    let config = StorageConfig { flash, ..small(8) };
    let memory = |name: &str| Arc::new(MemoryDevice::new(name, 1 << 30));
    let slow = |device: DeviceRef| -> DeviceRef { Arc::new(LatencyDevice::new(device, Arc::new(Others))) };
    let data = slow(Arc::new(Torn(memory("data"))));
    let devices = DeviceSet { data, ..DeviceSet::from_fn(|name| slow(memory(name))) };
    let flash = memory("flash");
    let log = Log::unopened(env.clone(), devices.log.clone(), DATABASE, &config);
    let disk = Arc::new(DiskHome::new(&devices, &config, DATABASE, log.clone()));
    let home = Arc::new(FlashHome::new(env.clone(), disk.clone(), &config, log.clone()));
    let identity = Identity { database: DATABASE, epoch: 1, page_size: PAGE as u32, segment_size: config.segment_size };
    block_on(async {
        log.format().await.unwrap();
        log.start(1, Lsn(0)).await.unwrap();
        disk.start();
        disk.write_back((0..PAGES).map(blank).collect(), Reason::Age).await.unwrap();
        disk.sync().await.unwrap();
        home.start(&identity, life, Some(slow(flash.clone()))).await.unwrap();
    });
    let pool = Pool::new(env, &config, home.clone(), log.clone());
    pool.repair_up_to(Lsn(0));
    let counted = (0..PAGES).map(|_| AtomicU64::new(0)).collect();
    Arc::new(Model { pool, home, flash, log, counted })
}

fn blank(no: u32) -> WriteBack {
    let bytes = IoBuf::padded(&zeros(no));
    WriteBack { page: page(no), bytes, lsn: Lsn(0), rec_lsn: Lsn(0), redo: Some(Lsn(0)), access: Access::Random }
}

impl Model {
    async fn increment(&self, no: u32) -> Lsn {
        let least = self.counted[no as usize].load(Ordering::SeqCst);
        let (_, end) = increment_in(&self.pool, &self.log, no).await;
        assert!(self.counted[no as usize].fetch_add(1, Ordering::SeqCst) >= least);
        end
    }

    async fn read(&self, no: u32) {
        let least = self.counted[no as usize].load(Ordering::SeqCst);
        let found = read_in(&self.pool, no).await;
        assert!(found >= least, "page {no} is read as {found}, it was {least} before");
    }

    async fn on_disk(&self, no: u32) -> IoBuf {
        let mut fetched = self.home.disk.fetch(page(no), 1, Access::Random).await;
        fetched.pop().unwrap().unwrap().bytes
    }

    /// A page as the pool would hand it over.
    fn sealed(&self, no: u32) -> WriteBack {
        let mut bytes = IoBuf::padded(&self.pool.get(page(no)).unwrap().read());
        header::seal(&mut bytes);
        let rec_lsn = self.pool.min_rec_lsn().expect("it is dirty");
        WriteBack {
            page: page(no),
            lsn: header::lsn(&bytes),
            bytes,
            rec_lsn,
            redo: Some(rec_lsn),
            access: Access::Random,
        }
    }

    /// A checkpoint's retain LSN, and the LSN that each page has on the disk afterwards.
    async fn checkpoint(&self) -> (Lsn, Vec<Lsn>) {
        let end = self.log.end();
        self.pool.write_dirty(end, 99, Reason::Checkpoint).await.unwrap();
        self.home.destage(end).await.unwrap();
        self.home.sync().await.unwrap();
        self.home.begin_scan();
        let end = self.log.end();
        let pool = self.pool.min_rec_lsn();
        let home = self.home.oldest_rec_lsn();
        let redo = pool.into_iter().chain(home).fold(end, Lsn::min);
        let mut lsns = Vec::new();
        for no in 0..PAGES {
            lsns.push(header::lsn(&self.on_disk(no).await));
        }
        (redo, lsns)
    }

    /// Nothing is under way any more: every page is its newest version, also on the disk, and wherever the tier has it.
    async fn check(&self) {
        for no in 0..PAGES {
            assert_eq!(read_in(&self.pool, no).await, self.counted[no as usize].load(Ordering::SeqCst), "page {no}");
        }
        let (_, lsns) = self.checkpoint().await;
        assert_eq!((self.pool.dirty(), self.home.oldest_dirty()), (0, None));
        for no in 0..PAGES {
            let (disk, count) = (self.on_disk(no).await, self.counted[no as usize].load(Ordering::SeqCst));
            assert_eq!((numbers(&disk, no), header::lsn(&disk)), (count, lsns[no as usize]), "page {no} on the disk");
            let mut tier = self.home.fetch(page(no), 1, Access::Random).await;
            assert_eq!(numbers(&tier.pop().unwrap().unwrap().bytes, no), count, "page {no} below memory");
        }
    }
}

fn pages_move_between_the_tiers() {
    let write = WritePolicy::ALL[shuttle::rand::thread_rng().gen_range(0..WritePolicy::ALL.len())];
    let model = start(write, shuttle::rand::thread_rng().gen_range(0..2));
    let tasks: Vec<_> = (0..2)
        .map(|_| {
            let model = model.clone();
            thread::spawn(move || {
                let mut ends = Vec::new();
                for _ in 0..10 {
                    let mut random = shuttle::rand::thread_rng();
                    // One page is everybody's; the others push it out of memory.
                    let no = if random.gen_range(0..3) == 0 { 0 } else { random.gen_range(0..PAGES) };
                    match random.gen_range(0..2) {
                        0 => block_on(model.read(no)),
                        _ => ends.push((no, block_on(model.increment(no)))),
                    }
                }
                ends
            })
        })
        .collect();
    let keeper = {
        let model = model.clone();
        thread::spawn(move || (0..2).map(|_| block_on(model.checkpoint())).collect::<Vec<_>>())
    };
    let ends: Vec<_> = tasks.into_iter().flat_map(|task| task.join().unwrap()).collect();
    for (redo, disk) in keeper.join().unwrap() {
        for (no, end) in ends.iter().filter(|(_, end)| *end <= redo) {
            let disk = disk[*no as usize];
            assert!(disk >= *end, "redo from {redo} misses batch {end} of page {no}: the disk has {disk}");
        }
    }
    block_on(model.check());
}

#[test]
fn model_pages_move_between_the_tiers() {
    explore(pages_move_between_the_tiers);
}

/// A page whose frame has rotted is wanted while the cleaner, who has made it again, writes it home: what the disk
/// gives meanwhile may be torn, and the log does not reach back to the page's beginning.
fn s8_a_lost_page_is_read_while_it_goes_home() {
    let model = start(WritePolicy::LazyCleaning, 0);
    let (no, task) = (3, model.clone());
    block_on(model.increment(no));
    let end = block_on(model.increment(no));
    block_on(model.log.flush_to(end)).unwrap();
    block_on(model.home.write_back(vec![model.sealed(no)], Reason::Evict)).unwrap();
    assert_eq!(model.home.stats().dirty, 1);
    model.flash.tamper(|image| image.write(super::layout::frame_at(0, PAGE), &[0xa5; 4 * PAGE]));
    let reader = thread::spawn(move || {
        let mut fetched = block_on(task.home.fetch(page(no), 1, Access::Random));
        numbers(&fetched.pop().unwrap().expect("it is in the log").bytes, no)
    });
    block_on(model.home.destage(Lsn(u64::MAX))).unwrap();
    assert_eq!(reader.join().unwrap(), 2);
    assert_eq!(numbers(&block_on(model.on_disk(no)), no), 2);
}

#[test]
fn model_s8_a_lost_page_is_read_while_it_goes_home() {
    explore(s8_a_lost_page_is_read_while_it_goes_home);
}

/// The only dirty frame is still being written when it is wanted home.
fn destage_waits_for_what_is_being_written() {
    let model = start(WritePolicy::LazyCleaning, 0);
    let (no, task) = (3, model.clone());
    let end = block_on(model.increment(no));
    block_on(model.log.flush_to(end)).unwrap();
    let back = model.sealed(no); // Taken by the call.
    let writer = thread::spawn(move || {
        let writing = task.home.write_back(vec![back], Reason::Evict);
        assert_eq!(task.home.stats().dirty, 1);
        task.counted[1].store(1, Ordering::SeqCst);
        block_on(writing).unwrap();
    });
    while model.counted[1].load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
    block_on(model.home.destage(Lsn(u64::MAX))).unwrap();
    let dirty = |part: &super::Mutex<super::Partition>| part.lock().oldest_dirty().is_some();
    assert!(!model.home.partitions.iter().any(dirty), "it came back before the frame was home");
    assert_eq!(numbers(&block_on(model.on_disk(no)), no), 1);
    writer.join().unwrap();
}

#[test]
fn model_destage_waits_for_what_is_being_written() {
    explore(destage_waits_for_what_is_being_written);
}
