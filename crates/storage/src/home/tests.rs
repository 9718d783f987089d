//! The disk home over simulated devices: what it gives back, what a crash leaves of its groups, what it answers for.

use super::disk::{DiskHome, WRITERS};
use super::*;
use crate::config::{DeviceSet, Safeguard, Safeguards, StorageConfig};
use crate::error::BadPage;
use crate::log::Log;
use crate::page::op::PageOp;
use crate::page::{PageKind, header};
use futures::FutureExt;
use std::sync::Arc;
use std::time::Duration;
use terrace_device::fault::{Choice, Fault, FaultDevice, Operation, Recorder, Rule};
use terrace_device::{
    Device, DeviceRef, DeviceStats, ErrorKind, Guarantees, Image, IoBuf, IoFuture, MemoryDevice, Purpose,
};
use terrace_env::Sim;

const DATABASE: u128 = 5;
const PAGE: usize = 8192;

fn config() -> StorageConfig {
    StorageConfig { page_size: PAGE, segment_size: 128 << 10, write_group: 4, ..StorageConfig::default() }
}

struct Bench {
    recorder: Arc<Recorder>,
    data: Arc<FaultDevice>,
    devices: DeviceSet,
}

/// Devices that hold `images` (double-write, data, undo), tearing at 512 bytes unless `atomic`.
fn bench(images: Option<Vec<Image>>, atomic: usize) -> Bench {
    let recorder = Recorder::new(true);
    let mut images = images.unwrap_or_else(|| vec![Image::new(); 3]).into_iter();
    let mut device = |name: &str| {
        let guarantees = Guarantees { atomic_write: atomic, capacity: 64 << 20 };
        Arc::new(recorder.device(name, guarantees, images.next().expect("three images")))
    };
    let (double_write, data, undo) = (device("double-write"), device("data"), device("undo"));
    let spare = || -> DeviceRef { Arc::new(MemoryDevice::new("spare", 64 << 20)) };
    let devices = DeviceSet { control: spare(), log: spare(), double_write, data: data.clone(), undo, flash: None };
    Bench { recorder, data, devices }
}

/// A home whose log says that everything is durable.
fn home(env: &terrace_env::Env, bench: &Bench, config: &StorageConfig) -> Arc<DiskHome> {
    let log = Log::unopened(env.clone(), bench.devices.log.clone(), DATABASE, config);
    let home = Arc::new(DiskHome::new(&bench.devices, config, DATABASE, log));
    home.start();
    home
}

fn sealed(page: PageId, lsn: u64) -> IoBuf {
    let mut bytes = IoBuf::zeroed(PAGE);
    PageOp::Format { kind: PageKind::Heap, owner: ObjectId(9), special: 0 }.apply(&mut bytes, page);
    for slot in 0..7 {
        let cell = vec![(lsn % 251) as u8 + slot as u8; 1000];
        PageOp::Put { slot, cell: &cell }.apply(&mut bytes, page);
    }
    header::set_lsn(&mut bytes, Lsn(lsn));
    header::seal(&mut bytes);
    bytes
}

fn back(page: PageId, lsn: u64, rec_lsn: u64) -> WriteBack {
    let bytes = sealed(page, lsn);
    WriteBack { page, bytes, lsn: Lsn(lsn), rec_lsn: Lsn(rec_lsn), redo: Some(Lsn(rec_lsn)), access: Access::Random }
}

fn data(no: u32) -> PageId {
    PageId::new(DATA, no)
}

/// Some are of undo.
fn either(no: u32) -> PageId {
    PageId::new(if no % 5 == 4 { UNDO } else { DATA }, no)
}

#[test]
fn pages_come_back_alone_and_in_runs() {
    let sim = Sim::new(1, 2);
    let env = sim.env();
    sim.run(async move {
        let bench = bench(None, 512);
        let home = home(&env, &bench, &config());
        let pages: Vec<_> = [3, 4, 5, 6, 8, 40, 41].iter().map(|&no| back(data(no), 100 + no as u64, 50)).collect();
        home.write_back(pages, Reason::Age).await.expect("writes");
        home.write_back(vec![back(PageId::new(UNDO, 3), 77, 50)], Reason::Age).await.expect("writes");
        let one = home.fetch(data(8), 1, Access::Random).await.remove(0).expect("reads");
        assert_eq!(one.bytes[..], sealed(data(8), 108)[..]);
        bench.data.flip(PAGES_AT + 5 * PAGE as u64 + 700, 4);
        let run = home.fetch(data(3), 6, Access::Sequential).await;
        for (i, fetched) in run.into_iter().enumerate() {
            let page = data(3 + i as u32);
            match (page.no, fetched) {
                (5, Err(StorageError::BadPage { page: p, why: BadPage::Checksum { .. } })) => assert_eq!(p, page),
                (7, Err(StorageError::BadPage { why: BadPage::Blank, .. })) => {}
                (_, Ok(good)) => assert_eq!(good.bytes[..], sealed(page, 100 + page.no as u64)[..]),
                (no, Err(e)) => panic!("page {no}: {e}"),
            }
        }
        // Across the device's end, and beyond it.
        let end = home.fetch(data(41), 3, Access::Sequential).await;
        assert!(end[0].is_ok());
        assert!(end[1..].iter().all(|r| matches!(r, Err(StorageError::BadPage { why: BadPage::Blank, .. }))));
        assert_eq!(home.newest_seen(), Lsn(141));
        let undo = home.fetch(PageId::new(UNDO, 3), 1, Access::Random).await.remove(0).expect("reads");
        assert_eq!(header::lsn(&undo.bytes), Lsn(77));
    });
}

#[test]
fn adjacent_pages_are_one_write_and_groups_one_sync() {
    let sim = Sim::new(2, 2);
    let env = sim.env();
    sim.run(async move {
        let bench = bench(None, 512);
        let config = StorageConfig { write_group: 16, ..config() };
        let home = home(&env, &bench, &config);
        let before = bench.data.stats();
        let pages = [9, 2, 3, 4, 1, 8].iter().map(|&no| back(data(no), 100, 50)).collect();
        home.write_back(pages, Reason::Age).await.expect("writes");
        home.sync().await.expect("syncs");
        let after = bench.data.stats();
        assert_eq!((after.writes - before.writes, after.syncs - before.syncs), (2, 1));
        assert_eq!(home.oldest_rec_lsn(), None);
    });
}

#[test]
fn it_answers_for_pages_until_they_are_synced() {
    let sim = Sim::new(3, 2);
    let env = sim.env();
    sim.run(async move {
        // Atomic page writes: no double-write, and nothing syncs but the checkpoint.
        let bench = bench(None, PAGE);
        let home = home(&env, &bench, &config());
        let taken = home.write_back(vec![back(data(1), 90, 30)], Reason::Age);
        assert_eq!(home.oldest_rec_lsn(), Some(Lsn(30)), "from the call on, before anybody polls");
        taken.await.expect("writes");
        home.write_back(vec![back(data(1), 95, 91), back(data(2), 95, 40)], Reason::Age).await.expect("writes");
        assert_eq!(home.oldest_rec_lsn(), Some(Lsn(30)), "written is not synced");
        let writes = bench.devices.double_write.stats().writes;
        assert_eq!(writes, 0, "atomic writes need no double-write");
        home.sync().await.expect("syncs");
        assert_eq!(home.oldest_rec_lsn(), None);
        let fetched = home.fetch(data(1), 1, Access::Random).await.remove(0).expect("reads");
        assert_eq!(header::lsn(&fetched.bytes), Lsn(95));
    });
}

#[test]
fn a_failed_sync_stops_the_home_and_the_log() {
    let sim = Sim::new(4, 2);
    let env = sim.env();
    sim.run(async move {
        let bench = bench(None, PAGE);
        let home = home(&env, &bench, &config());
        home.write_back(vec![back(data(1), 90, 30)], Reason::Age).await.expect("writes");
        let fault = Fault::Fail(ErrorKind::Io("gone".into()));
        bench.data.inject(Rule { operation: Operation::Sync, purpose: Some(Purpose::Data), skip: 0, times: 1, fault });
        assert!(matches!(home.sync().await, Err(StorageError::Device(_))));
        assert!(home.failure().is_some());
        assert_eq!(home.oldest_rec_lsn(), Some(Lsn(30)), "it was never durable");
        let again = home.write_back(vec![back(data(1), 91, 30)], Reason::Age).await;
        assert!(matches!(again, Err(StorageError::Device(_))), "nothing is taken any more");
    });
}

/// Pages rewritten over and over by two callers at once; at every point, whatever the crash leaves, restoring gives
/// whole pages, none older than what had been synced, and none newer than what was handed over.
fn crash_sweep(seed: u64, choice: impl Fn(u64) -> Choice) {
    let sim = Sim::new(seed, 2);
    let env = sim.env();
    let work = bench(None, 512);
    let recorder = work.recorder.clone();
    let synced = sim.run({
        let env = env.clone();
        async move {
            DiskHome::areas(&work.devices, &config(), DATABASE).prepare(WRITERS).await.expect("prepares");
            let home = home(&env, &work, &config());
            let first = (0..10).map(|no| back(either(no), 1, 1)).collect();
            home.write_back(first, Reason::Age).await.expect("writes");
            home.sync().await.expect("syncs");
            let mut synced = vec![(work.recorder.events(), 1)];
            for round in 2..6u64 {
                let even =
                    home.write_back((0..10).step_by(2).map(|no| back(either(no), round, 1)).collect(), Reason::Age);
                let odd = home
                    .write_back((0..10).skip(1).step_by(2).map(|no| back(either(no), round, 1)).collect(), Reason::Age);
                futures::future::try_join(even, odd).await.expect("writes");
                if round % 2 == 0 {
                    home.sync().await.expect("syncs");
                    synced.push((work.recorder.events(), round));
                }
            }
            synced
        }
    });
    let history = recorder.history().expect("kept");
    let mut cursor = history.cursor();
    let mut restored = 0;
    while cursor.advance() {
        let at = cursor.position() as u64;
        let Some(floor) = synced.iter().filter(|(events, _)| *events <= at).map(|(_, round)| *round).max() else {
            continue;
        };
        let after = bench(Some(cursor.contents(choice(at))), 512);
        let env = env.clone();
        restored += sim.run(async move {
            let home = home(&env, &after, &config());
            let areas = DiskHome::areas(&after.devices, &config(), DATABASE);
            let restored = areas.restore(WRITERS, home.places()).await.expect("restores").len();
            for no in 0..10 {
                let page = home.fetch(either(no), 1, Access::Random).await.remove(0);
                let page = page.unwrap_or_else(|e| panic!("event {at}, page {no}: {e}"));
                let round = header::lsn(&page.bytes).0;
                assert!(round >= floor && round < 6, "event {at}: page {no} is at {round}, {floor} was synced");
            }
            assert_eq!(areas.restore(WRITERS, home.places()).await.expect("restores"), [], "wiped");
            home.stop();
            restored
        });
    }
    if matches!(choice(0), Choice::Random(_)) {
        assert!(restored > 0, "no page was ever torn");
    }
}

#[test]
fn torn_pages_are_restored_at_every_point() {
    crash_sweep(1, |_| Choice::None);
    crash_sweep(2, |_| Choice::All);
    crash_sweep(3, |_| Choice::OnlyLast);
    for units in 1..16 {
        crash_sweep(4, |_| Choice::Torn(units));
    }
    for seed in 0..8 {
        crash_sweep(seed, |at| Choice::Random(seed << 32 | at));
    }
}

#[test]
fn a_stale_copy_never_replaces_a_page_that_rots_later() {
    let sim = Sim::new(5, 1);
    let env = sim.env();
    sim.run(async move {
        let bench = bench(None, 512);
        let areas = DiskHome::areas(&bench.devices, &config(), DATABASE);
        areas.prepare(WRITERS).await.expect("prepares");
        let home = home(&env, &bench, &config());
        // Page 1 in group 0, again in group 1; the area of group 1 is then used by groups without it.
        for (lsn, no) in [(10, 1), (20, 1), (30, 2), (40, 2), (50, 2), (60, 2), (70, 2), (80, 2)] {
            home.write_back(vec![back(data(no), lsn, 5)], Reason::Age).await.expect("writes");
            home.sync().await.expect("syncs");
        }
        bench.data.flip(PAGES_AT + PAGE as u64 + 3000, 1);
        let restored = areas.restore(WRITERS, home.places()).await.expect("restores");
        let page = home.fetch(data(1), 1, Access::Random).await.remove(0);
        match page {
            Err(StorageError::BadPage { .. }) => assert_eq!(restored, []),
            Ok(page) => assert_eq!(header::lsn(&page.bytes), Lsn(20), "an older version came back"),
            Err(e) => panic!("{e}"),
        }
    });
}

#[test]
#[should_panic(expected = "R4")]
fn a_page_ahead_of_the_log_is_refused() {
    let sim = Sim::new(6, 1);
    let env = sim.env();
    sim.run(async move {
        let bench = bench(None, 512);
        let log = Log::unopened(env.clone(), bench.devices.log.clone(), DATABASE, &config());
        log.format().await.expect("formats");
        log.start(1, Lsn(0)).await.expect("starts");
        let home = DiskHome::new(&bench.devices, &config(), DATABASE, log);
        let _ = home.write_back(vec![back(data(1), 90, 30)], Reason::Age).await;
    });
}

/// A device whose writes reach it in two halves, some time apart.
struct InHalves {
    device: MemoryDevice,
    env: terrace_env::Env,
}

impl Device for InHalves {
    fn name(&self) -> &str {
        self.device.name()
    }
    fn guarantees(&self) -> Guarantees {
        self.device.guarantees()
    }
    fn size(&self) -> u64 {
        self.device.size()
    }
    fn read(&self, offset: u64, buf: IoBuf, purpose: Purpose) -> IoFuture<'_, IoBuf> {
        self.device.read(offset, buf, purpose)
    }
    fn write(&self, offset: u64, buf: IoBuf, purpose: Purpose) -> IoFuture<'_, IoBuf> {
        Box::pin(async move {
            let half = buf.len() / 2;
            self.device.write(offset, IoBuf::padded(&buf[..half]), purpose).await?;
            self.env.sleep(Duration::from_millis(5)).await;
            self.device.write(offset + half as u64, IoBuf::padded(&buf[half..]), purpose).await?;
            Ok(buf)
        })
    }
    fn sync(&self, purpose: Purpose) -> IoFuture<'_, ()> {
        self.device.sync(purpose)
    }
    fn allocate(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        self.device.allocate(offset, len)
    }
    fn discard(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        self.device.discard(offset, len)
    }
    fn stats(&self) -> DeviceStats {
        self.device.stats()
    }
}

/// A home whose data device takes its time.
fn written_in_halves(env: &terrace_env::Env, double_write: bool) -> Arc<DiskHome> {
    let mut bench = bench(None, 512);
    bench.devices.data = Arc::new(InHalves { device: MemoryDevice::new("data", 64 << 20), env: env.clone() });
    let mut config = config();
    if !double_write {
        config.safeguards = Safeguards::without(Safeguard::DoubleWrite);
    }
    home(env, &bench, &config)
}

/// A page that is read while it is written is no damaged page.
#[test]
fn s8_a_page_read_while_it_is_written_is_read_again() {
    for (seed, double_write) in [(1, true), (2, false), (3, true), (4, false)] {
        let sim = Sim::new(seed, 2);
        let env = sim.env();
        sim.run(async move {
            let home = written_in_halves(&env, double_write);
            for lsn in 1..8 {
                let written = home.write_back((3..6).map(|no| back(data(no), lsn, lsn)).collect(), Reason::Age);
                let read = async {
                    for _ in 0..20 {
                        env.sleep(Duration::from_micros(env.random_u64() % 900)).await;
                        let count = 1 + (env.random_u64() % 3) as u32;
                        for (no, fetched) in (3..).zip(home.fetch(data(3), count, Access::Random).await) {
                            match fetched {
                                Ok(page) => {
                                    let found = header::lsn(&page.bytes).0;
                                    assert!((lsn - 1..=lsn).contains(&found), "page {no} at {found}");
                                    assert_eq!(page.bytes[..], sealed(data(no), found)[..]);
                                }
                                Err(StorageError::BadPage { why: BadPage::Blank, .. }) if lsn == 1 => {}
                                Err(e) => panic!("page {no}: {e}"),
                            }
                        }
                    }
                };
                let (written, ()) = futures::join!(written, read);
                written.expect("it writes");
            }
            home.stop();
        });
    }
}

/// Invariant 6 of the disk home.
#[test]
fn pages_of_undo_do_not_wait_behind_a_slow_data_device() {
    for (seed, double_write) in [(1, true), (2, false)] {
        let sim = Sim::new(seed, 2);
        let env = sim.env();
        sim.run(async move {
            let home = written_in_halves(&env, double_write);
            let from = env.now();
            let of_data = home.write_back((0..64).map(|no| back(data(2 * no), 10, 5)).collect(), Reason::Evict);
            let of_undo = home.write_back(vec![back(PageId::new(UNDO, 1), 10, 5)], Reason::Evict);
            let took = |done: Result<()>| done.map(|()| env.now().0 - from.0).expect("it writes");
            let (of_data, of_undo) = futures::join!(of_data.map(took), of_undo.map(took));
            assert!(of_undo * 8 < of_data, "undo after {of_undo} ns, data after {of_data} ns");
            home.sync().await.expect("it syncs");
            assert_eq!(home.oldest_rec_lsn(), None);
            home.stop();
        });
    }
}
