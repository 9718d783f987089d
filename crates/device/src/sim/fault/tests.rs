use super::*;
use crate::SECTOR;
use futures::executor::block_on;
use futures::future::FutureExt;
use std::collections::BTreeSet;

const GUARANTEES: Guarantees = Guarantees { atomic_write: 512, capacity: 1 << 20 };

fn page(byte: u8, sectors: usize) -> IoBuf {
    let mut buf = IoBuf::zeroed(sectors * SECTOR);
    buf.fill(byte);
    buf
}

fn byte(image: &Image, offset: u64) -> u8 {
    let mut byte = [0];
    image.read(offset, &mut byte);
    byte[0]
}

fn put(device: &FaultDevice, sector: u64, value: u8) {
    block_on(device.write(sector * SECTOR as u64, page(value, 1), Purpose::Data)).unwrap();
}

fn sync(device: &FaultDevice) {
    block_on(device.sync(Purpose::Data)).unwrap();
}

#[test]
fn a_sync_makes_durable_what_completed_before_it_began() {
    let recorder = Recorder::new(false);
    let device = recorder.device("d", GUARANTEES, Image::new());
    put(&device, 0, 1);
    // One write is under way when the sync begins, and ends before the sync ends.
    let under_way = device.write(4096, page(2, 1), Purpose::Data);
    let syncing = device.sync(Purpose::Data);
    block_on(under_way).unwrap();
    assert_eq!(recorder.contents(Choice::None)[0].size(), 0, "nothing is certain before the sync has ended");
    block_on(syncing).unwrap();
    let image = &recorder.contents(Choice::None)[0];
    assert_eq!((byte(image, 0), image.size()), (1, 4096));
    let image = &recorder.contents(Choice::All)[0];
    assert_eq!((byte(image, 0), byte(image, 4096)), (1, 2));
    sync(&device);
    assert_eq!(byte(&recorder.contents(Choice::None)[0], 4096), 2);
}

#[test]
fn every_point_of_a_history_can_be_rebuilt() {
    let recorder = Recorder::new(true);
    let log = recorder.device("log", GUARANTEES, Image::new());
    let data = recorder.device("data", GUARANTEES, Image::new());
    put(&log, 0, 1); // events 0 (start), 1 (done)
    put(&data, 0, 2); // 2, 3
    sync(&log); // 4, 5
    put(&data, 0, 3); // 6, 7
    sync(&data); // 8, 9
    let history = recorder.history().unwrap();
    assert_eq!((history.len(), history.names()), (10, vec!["log".to_string(), "data".to_string()]));
    let at = |n, choice| {
        let images = history.devices_at(n, choice);
        (byte(&images[0], 0), byte(&images[1], 0))
    };
    assert_eq!(at(0, Choice::All), (0, 0));
    assert_eq!(at(1, Choice::All), (1, 0), "a write that has started may be there");
    assert_eq!(at(5, Choice::None), (0, 0));
    assert_eq!(at(6, Choice::None), (1, 0));
    assert_eq!(at(8, Choice::None), (1, 0));
    assert_eq!(at(8, Choice::All), (1, 3));
    assert_eq!(at(8, Choice::OnlyLast), (1, 3));
    assert_eq!(at(4, Choice::OnlyLast), (0, 2), "the data page without the log before it");
    assert_eq!(at(10, Choice::None), (1, 3));
    let outcomes: BTreeSet<_> = (0..200).map(|seed| at(8, Choice::Random(seed)).1).collect();
    assert_eq!(outcomes, BTreeSet::from([0, 2, 3]), "every subset in order");
    assert_eq!(history.devices_at(8, Choice::Random(7)), history.devices_at(8, Choice::Random(7)));
    // The cursor sees the same, and the live recorder stands at the last point.
    let mut cursor = history.cursor();
    for n in 0..=history.len() {
        assert_eq!(cursor.contents(Choice::Random(n as u64)), history.devices_at(n, Choice::Random(n as u64)));
        assert_eq!(cursor.advance(), n < history.len());
    }
    assert_eq!(cursor.unsettled(), 0);
    assert_eq!(recorder.contents(Choice::None), history.devices_at(10, Choice::All));
}

#[test]
fn the_last_write_tears_at_each_unit_unless_it_is_atomic() {
    for (atomic_write, torn) in [(512, true), (8192, false)] {
        let recorder = Recorder::new(true);
        let device = recorder.device("d", Guarantees { atomic_write, ..GUARANTEES }, Image::new());
        block_on(device.write(0, page(1, 2), Purpose::Data)).unwrap();
        sync(&device);
        block_on(device.write(0, page(2, 2), Purpose::Data)).unwrap();
        let mut cursor = recorder.history().unwrap().cursor();
        while !(cursor.at_write() && cursor.position() > 4) {
            assert!(cursor.advance());
        }
        assert_eq!(cursor.last_write_units(), if torn { 16 } else { 0 });
        for units in 0..=16u64 {
            let image = &cursor.contents(Choice::Torn(units as usize))[0];
            let new = (0..8192).filter(|at| byte(image, *at) == 2).count() as u64;
            assert_eq!(new, if torn || units == 16 { units * 512 } else { 0 });
        }
        for seed in 0..50 {
            let image = &cursor.contents(Choice::Random(seed))[0];
            let new = (0..16).filter(|unit| byte(image, unit * 512) == 2).count();
            assert!(torn || new == 0 || new == 16, "an atomic write is whole");
        }
    }
}

#[test]
fn the_power_goes_off_at_an_event_and_comes_back() {
    let recorder = Recorder::new(false);
    let device = recorder.device("d", GUARANTEES, Image::new());
    put(&device, 0, 1);
    sync(&device);
    recorder.power_off_at(5);
    let error = block_on(device.write(0, page(2, 1), Purpose::Data)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Dead, "it started, and the power went before it ended");
    assert!(recorder.is_off());
    assert_eq!(block_on(device.read(0, page(0, 1), Purpose::Data)).unwrap_err().kind, ErrorKind::Dead);
    assert_eq!(block_on(device.sync(Purpose::Data)).unwrap_err().kind, ErrorKind::Dead);
    assert_eq!(block_on(device.allocate(0, 4096)).unwrap_err().kind, ErrorKind::Dead);
    assert_eq!(recorder.events(), 5);
    for (choice, expected) in [(Choice::None, 1), (Choice::All, 2)] {
        let (fresh, devices) = recorder.restart(choice, true);
        let read = block_on(devices[0].read(0, page(0, 1), Purpose::Data)).unwrap();
        assert_eq!((read[0], fresh.events(), devices[0].name()), (expected, 0, "d"));
        put(&devices[0], 1, 9);
    }
}

#[test]
fn rules_strike_the_operations_they_name() {
    let recorder = Recorder::new(false);
    let device = recorder.device("d", GUARANTEES, Image::new());
    let rule = |operation, purpose, skip, fault| Rule { operation, purpose, skip, times: 1, fault };
    put(&device, 0, 1);
    sync(&device);
    device.inject(rule(Operation::Read, Some(Purpose::Log), 1, Fault::Fail(ErrorKind::Io("scratched".into()))));
    let read = |purpose| block_on(device.read(0, page(0, 1), purpose));
    assert!(read(Purpose::Log).is_ok());
    assert!(read(Purpose::Data).is_ok());
    assert_eq!(read(Purpose::Log).unwrap_err().kind, ErrorKind::Io("scratched".into()));
    assert!(read(Purpose::Log).is_ok());

    device.inject(rule(Operation::Read, None, 0, Fault::Garble(3)));
    assert_eq!(read(Purpose::Data).unwrap()[0], 1 ^ 8);
    assert_eq!(read(Purpose::Data).unwrap()[0], 1);

    device.inject(rule(Operation::Write, None, 0, Fault::Lose));
    put(&device, 0, 5);
    sync(&device);
    assert_eq!((read(Purpose::Data).unwrap()[0], byte(&recorder.contents(Choice::All)[0], 0)), (1, 1));

    device.inject(rule(Operation::Write, None, 0, Fault::Fail(ErrorKind::Io("torn cable".into()))));
    assert!(block_on(device.write(0, page(6, 1), Purpose::Data)).is_err());
    assert_eq!(byte(&recorder.contents(Choice::None)[0], 0), 1);
    assert_eq!(byte(&recorder.contents(Choice::All)[0], 0), 6, "a failed write may have reached the medium");
    put(&device, 0, 7);
    sync(&device);
    assert_eq!(byte(&recorder.contents(Choice::All)[0], 0), 7, "a later durable write wins over it");

    device.inject(rule(Operation::Sync, None, 0, Fault::Die));
    assert_eq!(block_on(device.sync(Purpose::Data)).unwrap_err().kind, ErrorKind::Dead);
    assert_eq!(read(Purpose::Data).unwrap_err().kind, ErrorKind::Dead);
}

#[test]
fn after_a_failed_sync_its_writes_stay_uncertain() {
    let recorder = Recorder::new(true);
    let device = recorder.device("d", GUARANTEES, Image::new());
    put(&device, 0, 1);
    device.inject(Rule {
        operation: Operation::Sync,
        purpose: None,
        skip: 0,
        times: 1,
        fault: Fault::Fail(ErrorKind::Io("flush failed".into())),
    });
    block_on(device.sync(Purpose::Data)).unwrap_err();
    put(&device, 1, 2);
    sync(&device);
    let image = &recorder.contents(Choice::None)[0];
    assert_eq!((byte(image, 0), byte(image, 4096)), (0, 2));
    assert_eq!(byte(&recorder.contents(Choice::All)[0], 0), 1);
    // The recorded history tells the same story as the live state.
    let history = recorder.history().unwrap();
    assert_eq!(history.devices_at(history.len(), Choice::None), recorder.contents(Choice::None));
}

#[test]
fn space_runs_out_and_bits_rot() {
    let recorder = Recorder::new(true);
    let device = recorder.device("d", GUARANTEES, Image::new());
    block_on(device.allocate(0, 8192)).unwrap();
    put(&device, 0, 1);
    sync(&device);
    assert_eq!(recorder.contents(Choice::None)[0].size(), 8192);
    device.set_capacity(8192);
    let full = block_on(device.write(8192, page(1, 1), Purpose::Data)).unwrap_err();
    assert_eq!((full.kind, full.offset), (ErrorKind::NoSpace, 8192));
    assert_eq!(block_on(device.allocate(8192, 4096)).unwrap_err().kind, ErrorKind::NoSpace);
    device.set_capacity(1 << 20);
    block_on(device.write(8192, page(1, 1), Purpose::Data)).unwrap();
    device.flip(100, 0x80);
    assert_eq!(byte(&device.visible(), 100), 0x81);
    for choice in [Choice::None, Choice::All] {
        assert_eq!(byte(&recorder.contents(choice)[0], 100), 0x81);
    }
    block_on(device.discard(0, 4096)).unwrap();
    assert_eq!(byte(&recorder.contents(Choice::None)[0], 0), 1, "a discard is a change like another");
    assert_eq!(byte(&recorder.contents(Choice::All)[0], 0), 0);
}

#[test]
fn a_dropped_write_stays_uncertain_and_is_not_settled() {
    let recorder = Recorder::new(false);
    let device = recorder.device("d", GUARANTEES, Image::new());
    put(&device, 0, 1);
    drop(device.write(0, page(2, 1), Purpose::Data));
    sync(&device);
    assert_eq!(byte(&recorder.contents(Choice::None)[0], 0), 1);
    assert_eq!(byte(&recorder.contents(Choice::All)[0], 0), 2);
    assert!(device.read(0, page(0, 1), Purpose::Data).now_or_never().unwrap().is_ok());
}

/// A device with torn reads and writes that take a while; whoever polls decides when they end.
struct Slow;

impl crate::latency::Delay for Slow {
    fn serve(&self, _: Served, _: u64, _: u64) -> Wait {
        let mut polled = false;
        Box::pin(std::future::poll_fn(move |cx| {
            cx.waker().wake_by_ref();
            match std::mem::replace(&mut polled, true) {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            }
        }))
    }
}

#[test]
fn a_second_process_reads_what_the_first_had_not_synced() {
    let recorder = Recorder::new(true);
    let device = recorder.device("d", GUARANTEES, Image::new());
    put(&device, 0, 1);
    sync(&device);
    put(&device, 0, 2);
    device.inject(Rule {
        operation: Operation::Sync,
        purpose: None,
        skip: 0,
        times: 1,
        fault: Fault::Fail(ErrorKind::Io("no".into())),
    });
    assert!(block_on(device.sync(Purpose::Data)).is_err());
    put(&device, 1, 3);
    Recorder::process_died([&device], None);
    // The next one reads both, and its sync settles only what no failed sync has covered.
    assert_eq!((byte(&device.visible(), 0), byte(&device.visible(), 4096)), (2, 3));
    sync(&device);
    let left = &recorder.contents(Choice::None)[0];
    assert_eq!((byte(left, 0), byte(left, 4096)), (1, 3));
    // Written again it is as durable as anything.
    put(&device, 0, 2);
    sync(&device);
    assert_eq!(byte(&recorder.contents(Choice::None)[0], 0), 2);
    assert_eq!(recorder.history().unwrap().devices_at(recorder.events() as usize, Choice::None), [device.visible()]);
}

#[test]
fn a_process_dies_over_its_writes() {
    let mut seen = BTreeSet::new();
    for seed in 0..60 {
        let recorder = Recorder::new(false);
        let device = recorder.device("d", GUARANTEES, Image::new()).with_latency(Arc::new(Slow));
        block_on(device.write(0, page(1, 2), Purpose::Data)).unwrap();
        let mut under_way = device.write(0, page(2, 2), Purpose::Data);
        assert!((&mut under_way).now_or_never().is_none());
        drop(under_way);
        Recorder::process_died([&device], Some(seed));
        let image = device.visible();
        let new = (0..8192).filter(|at| byte(&image, *at) == 2).count();
        assert!(new % 512 == 0 && (0..new as u64).all(|at| byte(&image, at) == 2), "its first part");
        seen.insert(new);
        block_on(device.sync(Purpose::Data)).unwrap();
        assert_eq!(recorder.contents(Choice::None), [image], "what was made settles like any other write");
    }
    assert!(seen.len() > 8, "{seen:?}");
}

#[test]
fn a_dropped_cache_shows_the_medium() {
    let recorder = Recorder::new(false);
    let device = recorder.device("d", GUARANTEES, Image::new());
    put(&device, 0, 1);
    sync(&device);
    put(&device, 0, 2);
    put(&device, 1, 2);
    device.inject(Rule { operation: Operation::Sync, purpose: None, skip: 0, times: 1, fault: Fault::DropCache });
    assert!(block_on(device.sync(Purpose::Data)).is_err());
    assert_eq!(byte(&device.visible(), 0), 1);
    sync(&device);
    assert_eq!(byte(&recorder.contents(Choice::All)[0], 0), 1);
}

#[test]
fn reads_are_torn_over_writes_in_flight_where_asked() {
    let recorder = Recorder::new(false);
    let device = recorder.device("d", GUARANTEES, Image::new()).with_latency(Arc::new(Slow)).with_torn_reads(7);
    block_on(device.write(0, page(1, 2), Purpose::Data)).unwrap();
    let read = || block_on(device.read(0, page(0, 2), Purpose::Data)).unwrap();
    assert!(read().iter().all(|byte| *byte == 1));
    let mut under_way = device.write(0, page(2, 2), Purpose::Data);
    assert!((&mut under_way).now_or_never().is_none());
    let mixed = read();
    assert!(mixed.contains(&1) && mixed.contains(&2), "a mix");
    assert!(mixed.chunks(TEAR).all(|unit| unit.iter().all(|byte| *byte == unit[0])), "of whole units");
    block_on(under_way).unwrap();
    assert!(read().iter().all(|byte| *byte == 2));
}

#[test]
fn unreadable_sectors_fail_until_they_are_written() {
    let recorder = Recorder::new(true);
    let device = recorder.device("d", GUARANTEES, Image::new());
    block_on(device.write(0, page(1, 4), Purpose::Data)).unwrap();
    sync(&device);
    device.spoil(4096 + 100, 4096);
    let read = |sector: u64| block_on(device.read(sector * 4096, page(0, 1), Purpose::Data)).map(|buf| buf[0]);
    assert_eq!((read(0).ok(), read(3).ok()), (Some(1), Some(1)));
    assert!(matches!(read(1).unwrap_err().kind, ErrorKind::Medium(_)) && read(2).is_err());
    // They stay so over a crash; writing heals them.
    let (_, devices) = recorder.restart(Choice::None, false);
    assert!(block_on(devices[0].read(0, page(0, 4), Purpose::Data)).is_err());
    put(&devices[0], 1, 5);
    assert_eq!(block_on(devices[0].read(0, page(0, 2), Purpose::Data)).unwrap()[4096], 5);
    assert!(block_on(devices[0].read(8192, page(0, 1), Purpose::Data)).is_err());
    // A write that is cut leaves the sector unreadable in which it was cut.
    put(&device, 1, 6);
    sync(&device);
    block_on(device.write(0, page(7, 2), Purpose::Data)).unwrap();
    let image = &recorder.contents(Choice::Unreadable(9))[0];
    assert!(image.is_readable(0, 4096) && !image.is_readable(4096, 4096));
    assert_eq!((byte(image, 0), byte(image, 4096), byte(image, 4608)), (7, 7, 6));
}

#[test]
fn writes_go_astray_and_many_bytes_rot() {
    let recorder = Recorder::new(false);
    let device = recorder.device("d", GUARANTEES, Image::new());
    let rule = |operation, fault| device.inject(Rule { operation, purpose: None, skip: 0, times: 1, fault });
    block_on(device.write(0, page(1, 4), Purpose::Data)).unwrap();
    rule(Operation::Write, Fault::Misdirect(8192));
    put(&device, 0, 9);
    let image = device.visible();
    assert_eq!((byte(&image, 0), byte(&image, 8192)), (1, 9));
    sync(&device);
    assert_eq!(recorder.contents(Choice::None), [image]);
    device.scramble(100, 1000, 3);
    let image = device.visible();
    assert!((100..1100).filter(|at| byte(&image, *at) == 1).count() < 50);
    assert_eq!((byte(&image, 99), byte(&image, 1100)), (1, 1));
    assert_eq!(recorder.contents(Choice::None), [image], "rot is certain");
    rule(Operation::Read, Fault::Scramble(4));
    let bad = block_on(device.read(12288, page(0, 1), Purpose::Data)).unwrap();
    assert!(bad[..2048].iter().all(|b| *b == 1) && bad[2048..].iter().filter(|b| **b == 1).count() < 50);
}
