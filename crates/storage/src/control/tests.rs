use super::*;
use crate::bytes::u64_at;
use crate::identity::{Identity, Role};
use std::sync::Arc;
use terrace_device::fault::{Choice, Recorder};
use terrace_device::{Device, Guarantees, Image, MemoryDevice};
use terrace_env::Sim;

fn state() -> Control {
    Control {
        database: 0x1234_5678_9abc_def0_0011_2233_4455_6677,
        epoch: 3,
        page_size: 8192,
        segment_size: 16 << 20,
        redo_lsn: Lsn(500),
        retain_lsn: Lsn(400),
        complete: true,
        clean: false,
        logs_frames: false,
        next_object: 20000,
        created: -5,
        life: 1 << 60,
        durable: Lsn(700),
    }
}

fn memory() -> Arc<MemoryDevice> {
    Arc::new(MemoryDevice::new("control", 1 << 20))
}

#[test]
fn the_state_comes_back() {
    let sim = Sim::new(1, 1);
    sim.run(async {
        let device = memory();
        let mut file = ControlFile::create(device.clone(), state()).await.expect("creates");
        assert_eq!(ControlFile::open(device.clone()).await.expect("opens").state, state());
        let next = Control { redo_lsn: Lsn(900), clean: true, ..state() };
        file.write(next).await.expect("writes");
        assert_eq!(Control::read(&(device as DeviceRef)).await.expect("reads"), next);
    });
}

/// Programs that know no hint begin at the retain LSN, and so does this one where the hint is no good, or another
/// state's.
#[test]
fn where_restart_begins_is_a_hint() {
    let sim = Sim::new(4, 1);
    sim.run(async {
        let device = memory();
        let mut file = ControlFile::create(device.clone(), state()).await.expect("creates");
        file.write(Control { redo_lsn: Lsn(600), ..state() }).await.expect("writes");
        let newest = SECTOR; // The third write went to the second slot.
        let image = device.image();
        let mut sector = vec![0; SECTOR];
        image.read(newest as u64, &mut sector);
        assert_eq!((u64_at(&sector, 64), u64_at(&sector, 72)), (Some(400), Some(400)), "what others read");
        let opened = async |device: Arc<MemoryDevice>| ControlFile::open(device).await.expect("opens").state;
        assert_eq!(opened(device.clone()).await, Control { redo_lsn: Lsn(600), ..state() });
        device.tamper(|image| image.flip((newest + COVERED) as u64, 1));
        assert_eq!(opened(device.clone()).await, Control { redo_lsn: Lsn(400), ..state() }, "damaged");
        device.tamper(|image| {
            let mut other = vec![0; size_of::<Hint>()];
            image.read(COVERED as u64, &mut other);
            image.write((newest + COVERED) as u64, &other);
        });
        assert_eq!(opened(device.clone()).await, Control { redo_lsn: Lsn(400), ..state() }, "another state's");
        file.write(Control { redo_lsn: Lsn(400), ..state() }).await.expect("writes");
        assert_eq!(opened(device).await, Control { redo_lsn: Lsn(400), ..state() });
    });
}

#[test]
fn a_torn_write_leaves_the_state_before_or_after() {
    let sim = Sim::new(2, 1);
    let recorder = Recorder::new(true);
    let guarantees = Guarantees { atomic_write: 512, capacity: 1 << 20 };
    let device: DeviceRef = Arc::new(recorder.device("control", guarantees.clone(), Image::new()));
    let made = sim.run({
        let recorder = recorder.clone();
        async move {
            let mut file = ControlFile::create(device, state()).await.expect("creates");
            let made = recorder.events();
            for redo in 501..505 {
                file.write(Control { redo_lsn: Lsn(redo), ..state() }).await.expect("writes");
            }
            made
        }
    });
    let history = recorder.history().expect("kept");
    let mut cursor = history.cursor();
    let mut last = Lsn(500);
    while cursor.advance() {
        if (cursor.position() as u64) < made {
            continue;
        }
        for choice in [Choice::None, Choice::Torn(1), Choice::Torn(3), Choice::Random(7), Choice::All] {
            let image = cursor.contents(choice).remove(0);
            let device: DeviceRef = Arc::new(MemoryDevice::with_image("control", guarantees.clone(), image));
            let found = sim.run(async move { ControlFile::open(device).await.expect("opens").state.redo_lsn });
            assert!(found == last || found.0 == last.0 + 1, "{found} after {last}");
            if choice == Choice::None {
                last = found;
            }
        }
    }
    assert_eq!(last, Lsn(504));
}

#[test]
fn what_is_not_a_finished_database_of_this_version_is_refused() {
    let sim = Sim::new(3, 1);
    sim.run(async {
        let problem = async |device: Arc<MemoryDevice>| match ControlFile::open(device).await {
            Err(StorageError::Foreign { file, problem }) => {
                assert_eq!(file, "control");
                problem
            }
            Err(e) => panic!("{e}"),
            Ok(_) => panic!("opened"),
        };
        assert!(problem(memory()).await.contains("is empty: put it back"));
        let half = memory();
        ControlFile::create(half.clone(), Control { complete: false, ..state() }).await.expect("creates");
        assert!(problem(half.clone()).await.contains("create it again"));
        ControlFile::create(half.clone(), state()).await.expect("a half-made one may be overwritten");
        assert_eq!(ControlFile::open(half.clone()).await.expect("opens").state, state());
        let sound = half.image();
        half.tamper(|image| {
            for slot in 0..2 {
                image.write(slot * SECTOR as u64 + 8, &9u32.to_le_bytes());
            }
        });
        assert!(problem(half.clone()).await.contains("both its copies are damaged"), "no other version wrote this");
        half.tamper(|image| *image = sound);
        half.tamper(|image| image.flip(8, 3));
        assert_eq!(ControlFile::open(half.clone()).await.expect("opens").state, state(), "the other copy is good");
        half.tamper(|image| {
            for slot in 0..2 {
                let mut sector = encode(7 + slot, &state());
                head::seal_as(9, &mut sector, MAGIC, COVERED);
                image.write(slot * SECTOR as u64, &sector);
            }
        });
        let unknown = problem(half.clone()).await;
        assert!(unknown.contains("version 9") && unknown.contains("upgrade"), "{unknown}");
        half.tamper(|image| image.write(0, &[0; 2 * SECTOR]));
        assert!(problem(half).await.contains("both its copies are damaged"));
    });
}

#[test]
fn foreign_devices_are_refused_by_name() {
    let sim = Sim::new(4, 1);
    sim.run(async {
        let mine = Identity { database: 1, epoch: 5, page_size: 8192, segment_size: 16 << 20 };
        let device = MemoryDevice::new("data", 1 << 20);
        let check = async |identity: Identity, role: Role| match identity.check(&device, role).await {
            Ok(()) => String::new(),
            Err(StorageError::Foreign { file, problem }) => {
                assert_eq!(file, "data");
                problem
            }
            Err(e) => panic!("{e}"),
        };
        assert!(check(mine, Role::Data).await.contains("empty"));
        mine.stamp(&device, Role::Data).await.expect("stamps");
        assert_eq!(check(mine, Role::Data).await, "");
        assert_eq!(
            check(Identity { epoch: 4, ..mine }, Role::Data).await,
            "",
            "a crash between devices and control file"
        );
        assert!(check(mine, Role::Log).await.contains("it is the data file, configured as the log file"));
        assert!(check(Identity { database: 2, ..mine }, Role::Data).await.contains("belongs to database"));
        for epoch in [3, 6, 90] {
            assert!(check(Identity { epoch, ..mine }, Role::Data).await.contains("different times"), "epoch {epoch}");
        }
        device.tamper(|image| image.flip(20, 1));
        assert!(check(mine, Role::Data).await.contains("damaged"));
        mine.stamp(&device, Role::Data).await.expect("stamps");
        device.tamper(|image| image.write(8, &77u32.to_le_bytes()));
        assert!(check(mine, Role::Data).await.contains("damaged"), "no other version wrote this");
        device.tamper(|image| {
            let mut sector = [0; 64];
            image.read(0, &mut sector);
            let magic = u64_at(&sector, 0).expect("there");
            head::seal_as(77, &mut sector, magic, 64);
            image.write(0, &sector);
        });
        assert!(check(mine, Role::Data).await.contains("version 77"));
        device.tamper(|image| image.write(0, &[1; 8]));
        assert!(check(mine, Role::Data).await.contains("not a terrace file"));
        assert_eq!(device.size() % SECTOR as u64, 0);
    });
}

/// A program that does not know the log's records of frames takes the file for a newer program's, and says so.
#[test]
fn a_log_with_records_of_frames_is_another_version() {
    let sim = Sim::new(9, 1);
    sim.run(async {
        let device = memory();
        let with = Control { logs_frames: true, ..state() };
        let mut file = ControlFile::create(device.clone(), with).await.expect("creates");
        assert_eq!(ControlFile::open(device.clone()).await.expect("opens").state, with);
        let look = |at: usize| {
            let mut sector = vec![0; SECTOR];
            device.image().read(at as u64, &mut sector);
            head::look(&sector, MAGIC, COVERED)
        };
        assert_eq!((look(0), look(SECTOR)), (Verdict::Unknown(2), Verdict::Unknown(2)));
        assert!(head::unknown_version(2).starts_with("format version 2 is unknown"));
        file.write(state()).await.expect("writes");
        assert_eq!(ControlFile::open(device.clone()).await.expect("opens").state, state());
        file.write(state()).await.expect("writes");
        assert_eq!((look(0), look(SECTOR)), (Verdict::Good, Verdict::Good), "older programs open it again");
    });
}
