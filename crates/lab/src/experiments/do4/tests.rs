use super::*;
use crate::experiment::run::{Options, run};
use crate::testing;
use terrace_device::emulate::Profile;
use terrace_storage::FlashConfig;

fn tiny() -> Bench<TpcC> {
    let mut machine = testing::machine("hdd-18x10k", "nvme-datacentre", 0);
    machine.flash = Some(Profile::named("iodrive-160").expect("one of ours"));
    machine.storage.writer_interval = ROUND;
    machine.storage.flash = FlashConfig { dirty_fraction: LAMBDA, ..case::chapter3(12 << 20, LAMBDA) };
    Bench {
        factor: 2000,
        terminals: 8,
        loading: Loading::new(TpcC { warehouses: 4, items: 1000, customers: 30, terminals: 8 }),
        fresh: |of| *of,
        machine,
        hours: (3.0, 1.0),
        long_hours: (3.0, 3.0),
        config: vec![],
    }
}

fn finished(plan: fn(Scale) -> Plan, threads: usize) -> crate::experiment::run::Finished {
    over_seeds(plan, 1, threads)
}

fn over_seeds(plan: fn(Scale) -> Plan, seeds: u64, threads: usize) -> crate::experiment::run::Finished {
    let options = Options { scale: Scale::Quick, seed: 7, seeds, threads };
    run(&Experiment { plan, ..EXPERIMENTS[0] }, options, &|_| {}).unwrap()
}

/// Each restart method after a crash: phases add up, a cold tier begins with nothing, a warm one with what it held, and
/// without having read it. One seed gives one report.
#[test]
fn a_tiny_crash() {
    let crashed = |_: Scale| intervals(&tiny(), CRASHES.into(), judge::TPCC_CRASH);
    let found = finished(crashed, 2);
    for (policy, _) in POLICIES {
        for method in CRASHES {
            let label = label(policy, method.name);
            let ours = |metric: &str| found.findings.ours(&label, metric).mean;
            let held = ours("frames held when the first life ended");
            assert!(held > 500.0, "{label}: {held}");
            let phases =
                ours("recovery: from power until it answers") + ours("ramp: from its answering until the peak is back");
            assert!((ours("from peak to peak") - phases).abs() < 1e-9 && ours("shutdown") == 0.0, "{label}");
            let (named, current) = (ours("frames that the inventory names"), ours("frames current"));
            if method.name == COLD {
                assert_eq!((named, current), (0.0, 0.0), "{label}");
                continue;
            }
            assert!(named > 0.9 * held && current > 0.7 * held, "{label}: {named} and {current} of {held}");
            // Lazy verification repeats all changes before it answers, on frames of the tier.
            let read = ours("pages read of flash until it answered, over frames held");
            assert!(read < if method.name == INSTANT { 0.5 } else { 0.8 }, "{label}: {read}");
        }
    }
    assert_eq!(found.json(), finished(crashed, 1).json());
}

#[test]
fn a_tiny_shutdown() {
    let stopped = |_: Scale| intervals(&tiny(), STOPS.into(), judge::TPCC_STOP);
    let found = finished(stopped, 2);
    let ours = |method: &str, metric: &str| found.findings.ours(&label(LC, method), metric).mean;
    assert_eq!(ours(WRITTEN, "dirty frames when it answered"), 0.0, "all went home");
    assert!(ours(LAZY, "shutdown") < ours(WRITTEN, "shutdown"), "changed pages stay in tier and log");
    assert!(ours(WRITTEN, "frames found when it answered, over those held") > 0.9);
}

#[test]
fn a_tiny_ramp_and_overview() {
    let found = finished(|_| overview(&tiny()), 2);
    let speedup = "from peak to peak, sooner than chapter 3's";
    assert!(found.findings.ours(&label(DW, INSTANT), speedup).mean > 0.0);
    let ramps = over_seeds(
        |_| {
            tiny().plan(fills(&tiny(), "TPC-C"), |results| {
                let mut found = Findings::default();
                results.labels().for_each(|label| found.row(label, "ramp", "s", results.interval(label, "ramp"), None));
                found
            })
        },
        5,
        2,
    );
    // One ramp is some ten stretches long and one slow stretch makes it another half longer: one seed in eleven had the
    // longer ramp with eight pages.
    let ramp = |to| ramps.findings.ours(&label("TPC-C", to), "ramp").mean;
    let (one, eight) = (ramp("one page"), ramp("eight pages"));
    assert!(eight < 0.9 * one, "{eight} and {one}");
}
