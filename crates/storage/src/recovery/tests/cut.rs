//! A tier whose file was cut off, with each way to find its frames again.

use super::*;
use crate::config::WritePolicy;
use crate::flash::{Empty, FlashState};
use terrace_device::{Guarantees, Image, SECTOR};

/// The frames behind the file's end are lost, with pages that the disk has not got; the others are used. Recovery read
/// them all, and sixteen errors in a row switched the tier off for as long as the server ran.
#[test]
fn a_tier_that_was_cut_off_is_used() {
    for restart in [Restart::MemoryMapped, Restart::LogBased, Restart::LazyVerification, Restart::Instant] {
        for percent in [10, 30, 50] {
            use_after_cut(restart, percent);
        }
    }
}

/// A machine with a warm tier, and its store killed; the tier's device.
fn killed(restart: Restart) -> (Machine, Arc<MemoryDevice>) {
    let mut machine = Machine::new(256, 1 << 20);
    let flash = Arc::new(MemoryDevice::new("flash", 64 << 20));
    machine.devices.flash = Some(flash.clone());
    machine.config.writer_interval = Duration::from_millis(10);
    let config = &mut machine.config.flash;
    (config.size, config.write, config.restart) = (8 << 20, WritePolicy::LazyCleaning, restart);
    let sim = Sim::new(3, 2);
    let (env, devices, config) = (sim.env(), machine.devices.clone(), machine.config.clone());
    sim.run(async move {
        let st = Store::create(env, devices, config).await.expect("creates");
        let pages = make_pages(&st, 1500).await;
        st.env().sleep(Duration::from_secs(2)).await;
        for one in pages.chunks(2) {
            change(&st, &one[..1]).await;
        }
        st.env().sleep(Duration::from_secs(2)).await; // The inventory is written.
        st.log().flush_to(st.log().end()).await.expect("flushes");
        assert!(st.flash().expect("there is a tier").dirty > 100);
    });
    sim.crash();
    (machine, flash)
}

/// What an opening says of a tier in which it finds nothing. (By the seed the database gets its life.)
fn why_empty(machine: &Machine, seed: u64) -> Option<Empty> {
    let (sim, st, report) = machine.open(seed, Upto::End);
    assert_eq!(st.flash().expect("there is a tier").state, FlashState::On);
    assert!(report.tier.empty.is_none() || report.tier.listed == 0);
    sim.run(async move { st.close().await.expect("closes") });
    report.tier.empty
}

#[test]
fn a_tier_that_begins_empty_says_why() {
    let (mut machine, flash) = killed(Restart::LogBased);
    let (first, empty): (DeviceRef, DeviceRef) = (flash.clone(), Arc::new(MemoryDevice::new("flash", 64 << 20)));
    machine.config.flash.restart = Restart::LazyVerification;
    assert_eq!(why_empty(&machine, 11), Some(Empty::OtherMethod));
    assert_eq!(why_empty(&machine, 12), None);
    machine.config.flash.restart = Restart::LogBased;
    assert_eq!(why_empty(&machine, 13), Some(Empty::Unstamped));
    assert_eq!(why_empty(&machine, 14), None);
    machine.devices.flash = Some(empty);
    assert_eq!(why_empty(&machine, 15), Some(Empty::New));
    machine.devices.flash = Some(first.clone());
    assert_eq!(why_empty(&machine, 16), Some(Empty::OtherLife));
    flash.tamper(|image| image.clear(0, SECTOR as u64));
    assert_eq!(why_empty(&machine, 17), Some(Empty::Damaged));
    machine.config.flash.restart = Restart::Cold;
    assert_eq!(why_empty(&machine, 18), None, "as it is to be");
    machine.config.flash.restart = Restart::Instant;
    assert_eq!(why_empty(&machine, 19), Some(Empty::Apart));
    assert_eq!(why_empty(&machine, 20), Some(Empty::Unlisted), "no page has entered it");
}

fn use_after_cut(restart: Restart, percent: u64) {
    let what = format!("{restart:?}, {percent} % of the file");
    let (mut machine, flash) = killed(restart);
    let (whole, mut left) = (flash.image(), Image::new());
    let mut bytes = vec![0; (whole.size() * percent / 100) as usize / SECTOR * SECTOR];
    whole.read(0, &mut bytes);
    left.write(0, &bytes);
    let guarantees = Guarantees { atomic_write: SECTOR, capacity: 64 << 20 };
    machine.devices.flash = Some(Arc::new(MemoryDevice::with_image("flash", guarantees, left)));
    let (expected, _) = machine.in_log_order(Lsn(u64::MAX));
    let data: BTreeMap<PageId, Vec<u8>> = expected.into_iter().filter(|(page, _)| page.space == DATA).collect();
    let (sim, st, report) = machine.open(4, Upto::End);
    same_pages(&sim, &st, &data, &what);
    let tier = st.flash().expect("there is a tier");
    assert_eq!(tier.state, FlashState::On, "{what}: {report:?}");
    assert!(tier.device_errors == 0 && report.tier.listed > 0, "{what}: {report:?}");
}
