//! Why not a cache under the file system? The same engine with Terrace's flash tier, and without it on a disk whose
//! blocks the same flash caches by itself ([`block_cache`](crate::block_cache), a model of bcache): throughput, what is
//! written to flash, what a crash loses, and what is warm after it.
//!
//! TPC-C as in chapter 3 of the thesis ([`do3_tpcc`]), but with restart bounded, as a server has it: the tier's dirty
//! pages must go to the disk before the log that made them is given up. What a block cache holds dirty is at home for
//! the engine.
//!
//! Each case runs to its steady state, loses power in the middle of it (nothing that was not synced survives), restarts
//! on what is left, runs on, is shut down, started once more, and checked.
use super::case::{self, DW, LC, Loading, NONE, numbers};
use super::{do3_tpcc, own};
use crate::block_cache::{BlockCacheConfig, Mode};
use crate::experiment::{Case, Experiment, Findings, Numbers, Plan, Results, Runner, Scale};
use crate::heat;
use crate::machine::{Loaded, Machine, Measured, Rig, Run, ramp_up};
use crate::tpcc::{TpcC, specified};
use crate::workload::{Sample, Workload};
use std::sync::Arc;
use std::time::Duration;
use terrace_device::DeviceStats;
use terrace_device::fault::Choice;
use terrace_engine::EngineError;
use terrace_storage::config::{Restart, WritePolicy};

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "terrace/block-cache",
    shows: "TPC-C with the flash tier, and on a block cache (as bcache is) of the same flash: \
            throughput, flash wear, crash and restart",
    source: "a question of Terrace's users; the cache: bcache.rst of the Linux kernel",
    plan,
}];

const THROUGH: &str = "block cache, write-through";
const BACK: &str = "block cache, write-back";
const BACK_MOST: &str = "block cache, write-back, 40% dirty";

/// What the flash is in a case.
#[derive(Clone, Copy)]
enum Flash {
    None,
    Tier(WritePolicy),
    Cache(Mode, u32),
}

const CASES: [(&str, Flash); 6] = [
    (NONE, Flash::None),
    (THROUGH, Flash::Cache(Mode::WriteThrough, 10)),
    (BACK, Flash::Cache(Mode::WriteBack, 10)),
    (DW, Flash::Tier(WritePolicy::DualWrite)),
    (LC, Flash::Tier(WritePolicy::LazyCleaning)),
    (BACK_MOST, Flash::Cache(Mode::WriteBack, 40)), // As much as bcache lets one ask for.
];

const STEADY: f64 = 0.3;
const LAMBDA: f64 = 0.5;
const REACHED: f64 = 0.9;

/// The steps' lengths.
#[derive(Clone, Copy)]
struct Steps {
    before: Run,
    after: Run,
    /// "At first" after a crash.
    first: Duration,
}

fn plan(scale: Scale) -> Plan {
    let shrunk = do3_tpcc::shrunk(scale);
    let before = shrunk.run(scale.pick(9, 10));
    // Long enough to be back at 90%, which takes a few seconds.
    let after = Run { duration: Duration::from_secs(scale.pick(10, 12)), ..before };
    let bound = scale.pick(16, 64) << 20;
    let machine = |design| {
        let mut machine = own::bounded(shrunk.machine(design, LAMBDA), bound);
        machine.storage.flash.restart = Restart::LazyVerification;
        machine
    };
    let mut config = own::bounded_config(shrunk.config(&[1.0], before), bound, STEADY);
    let steps = Steps { before, after, first: Duration::from_secs(scale.pick(2, 4)) };
    config.push(("virtual seconds after the crash", after.duration.as_secs_f64().into()));
    plan_of(shrunk.workload(1.0), machine, steps, &CASES[..scale.pick(5, 6)], config)
}

fn plan_of(
    loading: Arc<Loading<TpcC>>,
    machine: impl Fn(Option<WritePolicy>) -> Machine,
    steps: Steps,
    cases: &[(&'static str, Flash)],
    mut config: Vec<(&'static str, crate::experiment::Value)>,
) -> Plan {
    let size = machine(Some(WritePolicy::LazyCleaning)).storage.flash.size;
    let cache = |mode, percent| BlockCacheConfig { writeback_percent: percent, ..BlockCacheConfig::new(mode, size) };
    let cached = cache(Mode::WriteBack, 10);
    config.push(("block cache bytes, metadata included", size.into()));
    config.push(("bucket bytes, unscaled", cached.bucket.into()));
    config.push(("sequential cut-off bytes, unscaled", cached.sequential_cutoff.into()));
    config.push(("writeback_percent, where no other is named", cached.writeback_percent.into()));
    config.push(("crash", "nothing survives that was not synced".into()));
    let cases = cases.iter().map(|(label, flash)| {
        let (machine, cache) = match *flash {
            Flash::None => (machine(None), None),
            Flash::Tier(policy) => (machine(Some(policy)), None),
            Flash::Cache(mode, percent) => (machine(Some(WritePolicy::LazyCleaning)), Some(cache(mode, percent))),
        };
        lives(label, machine, cache, &loading, steps)
    });
    Plan { cases: cases.collect(), config, judge: Box::new(move |results| judge(results, steps)) }
}

/// A case: see the module's header.
fn lives(
    label: &str,
    machine: Machine,
    cache: Option<BlockCacheConfig>,
    loading: &Arc<Loading<TpcC>>,
    steps: Steps,
) -> Case {
    let loading = loading.clone();
    let runner: Runner = Box::new(move |seed, hear| {
        let machine = Machine { seed, ..machine.clone() };
        let loaded = loading.loaded(&machine)?;
        let (measured, problems) =
            live(&machine, cache, &loaded, &loading.workload, steps, hear).map_err(|e| e.to_string())?;
        match problems.first() {
            Some(first) => Err(format!("{} problems; the first: {first}", problems.len())),
            None => Ok(measured),
        }
    });
    let work = (steps.before.duration + steps.after.duration).as_secs_f64();
    Case { label: label.into(), work, run: runner }
}

/// Values: what [`case::numbers`] measures before the crash; `lost` (new orders that were done before a crash or the
/// shutdown, and are not there afterwards); `recovery` and `reopening` (seconds until the database answered, after the
/// crash and after the shutdown), `shutdown` (seconds), `warm` (the part of what flash held before the crash that it
/// gives after it), `at first` (transactions right after the crash over the steady state's), `ramp-up` (seconds, where
/// the end was reached); of a block cache `kept` (of its writes, those that the disk did not get at once) and `dirty
/// buckets` (in hundredths, at the crash).
fn live(
    machine: &Machine,
    cache: Option<BlockCacheConfig>,
    loaded: &Loaded,
    workload: &Arc<TpcC>,
    steps: Steps,
    hear: &dyn Fn(f64),
) -> Result<(Numbers, Vec<String>), EngineError> {
    let mut rig = Rig::new(machine, cache, loaded);
    let running = rig.start()?;
    heat::begin();
    let mut work = running.work(workload, steps.before, hear);
    let heat = heat::end(&running.database);
    let (samples, traffic) = (work.samples(), std::mem::take(&mut work.traffic));
    let held = traffic.last().map_or(0, |window| window.tier_used);
    let stats = running.cache_stats();
    running.crash(Choice::None);
    let mut done = lasting(&samples);
    let data = DeviceStats::default();
    let measured = Measured { samples, traffic, data, tier: None, heat, problems: vec![] };
    let mut found = numbers(&measured, machine, steps.before, STEADY);
    if let Some(stats) = stats {
        let writes = stats.writes_back + stats.writes_through;
        found.set("kept", stats.writes_back as f64 / writes.max(1) as f64);
        found.set("dirty buckets", stats.dirty_buckets.into());
    }
    let steady = found.get("transactions").expect("every run measures it");

    let running = rig.start()?;
    found.set("recovery", running.opening.as_secs_f64());
    if machine.flash.is_some() {
        found.set("warm", running.flash_pages() as f64 / held.max(1) as f64);
    }
    let hear_on = |seconds: f64| hear(steps.before.duration.as_secs_f64() + seconds);
    let work = running.work(workload, steps.after, &hear_on);
    let samples = running.settle(work);
    done += lasting(&samples);
    let windows = (steps.first.as_secs_f64() / steps.after.window.as_secs_f64()).round() as usize;
    let first = samples.iter().take(windows).map(|sample| sample.transactions).sum::<u64>() as f64;
    found.set("at first", first / steps.first.as_secs_f64() / steady.max(f64::MIN_POSITIVE));
    let within = &samples[..samples.len().min(work_windows(steps.after))];
    if let Some(seconds) = ramp_up(within, steps.after.window, steady, REACHED, case::ENOUGH) {
        found.set("ramp-up", seconds);
    }
    found.set("shutdown", running.shut_down()?.as_secs_f64());

    let running = rig.start()?;
    found.set("reopening", running.opening.as_secs_f64());
    let asked = workload.clone();
    let there = running.ask(|database| async move { asked.lasting(&database).await })?;
    found.set("lost", done.saturating_sub(there) as f64);
    Ok((found, running.check(workload)?))
}

fn work_windows(run: Run) -> usize {
    (run.duration.as_nanos() / run.window.as_nanos()) as usize
}

fn lasting(samples: &[Sample]) -> u64 {
    samples.iter().map(|sample| sample.lasting).sum()
}

const NEW_ORDERS: &str = "new orders";
const LOST: &str = "new orders lost that were done";
const WARM: &str = "pages on flash when it answered after the crash, over those before";
const KEPT: &str = "of the writes to the cache, kept from the disk";
const DIRTY_BUCKETS: &str = "buckets with dirty blocks";
const RAMP: &str = "from its answering until 90% of the steady state, after the crash";

fn judge(results: &Results, steps: Steps) -> Findings {
    let mut found = Findings::default();
    let labels: Vec<String> = results.labels().map(String::from).collect();
    for label in &labels {
        let of = |name: &str| results.interval(label, name);
        found.row(label, "throughput over none", "x", results.ratio(label, NONE, "counted"), None);
        found.row(label, NEW_ORDERS, "1/s", of("counted"), None);
        for name in ["disk reads", "disk writes", "flash reads", "flash writes", "flash writes MB"] {
            found.row(label, name, if name.ends_with("MB") { "MB/s" } else { "1/s" }, of(name), None);
        }
        if results.measured(label, "hit ratio") {
            found.row(label, "flash hit ratio", "", of("hit ratio"), None);
            found.row(label, "of the hits, dirty", "", of("dirty hits"), None);
            found.row(label, "flash bytes written per transaction", "B", of("flash bytes"), None);
            found.row(label, WARM, "", of("warm"), None);
        }
        if results.measured(label, "kept") {
            found.row(label, KEPT, "", of("kept"), None);
            found.row(label, DIRTY_BUCKETS, "%", of("dirty buckets"), None);
        }
        found.row(label, LOST, "", of("lost"), None);
        found.row(label, "recovery: from power until it answered", "s", of("recovery"), None);
        let first = format!("transactions in the first {} s after the crash, over steady", steps.first.as_secs_f64());
        found.row(label, &first, "x", of("at first"), None);
        if results.measured(label, "ramp-up") {
            found.row(label, RAMP, "s", of("ramp-up"), None);
        } else {
            let seconds = steps.after.duration.as_secs_f64();
            found.notes.push(format!("{label}: {RAMP}: not in every run's {seconds:.0} s."));
        }
        found.row(label, "shutdown", "s", of("shutdown"), None);
        found.row(label, "opening after the shutdown", "s", of("reopening"), None);
    }
    let lost = labels.iter().map(|label| found.ours(label, LOST).high).fold(0.0, f64::max);
    found.shape("no crash loses a transaction that was done, in no case", lost == 0.0);
    found.falls_paired(results, "counted", NEW_ORDERS, "1/s", &[LC, BACK]);
    found.falls_paired(results, "counted", NEW_ORDERS, "1/s", &[DW, THROUGH]);
    found.falls_paired(results, "flash bytes", "flash bytes written per transaction", "B", &[BACK, LC]);
    for label in [THROUGH, BACK] {
        found.at_least(label, WARM, 0.9);
    }
    for label in [LC, DW] {
        found.at_least(label, WARM, 0.5);
    }
    found.notes.push(
        "The tier finds its pages by its inventory, and the log says which are current. A block cache is as warm as \
         its journal says."
            .into(),
    );
    case::health(&mut found, results, &specified());
    found.bars("New orders, TPC-C, restart bounded", NEW_ORDERS, "1/s");
    found.lines(results, "counted", "New orders per second until the crash", "virtual seconds", "new orders/s");
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::run::{Options, run};
    use crate::testing;
    use terrace_device::emulate::Profile;
    use terrace_storage::FlashConfig;

    fn tiny(_: Scale) -> Plan {
        let machine = |policy: Option<WritePolicy>| {
            let mut machine = testing::machine("hdd-8x7200", "nvme-datacentre", 0);
            machine.flash = policy.map(|_| Profile::named("iodrive-160").expect("one of ours"));
            machine.storage.flash = FlashConfig { size: 12 << 20, ..FlashConfig::default() };
            machine.storage.flash.write = policy.unwrap_or(WritePolicy::LazyCleaning);
            machine
        };
        let before = Run { terminals: 8, duration: Duration::from_secs(8), window: Duration::from_millis(500) };
        let steps = Steps { before, after: before, first: Duration::from_secs(1) };
        let workload = TpcC { warehouses: 4, items: 1000, customers: 30, terminals: 8 };
        plan_of(Loading::new(workload), machine, steps, &CASES[..5], vec![])
    }

    #[test]
    fn a_tiny_run_of_all_cases() {
        let experiment = Experiment { plan: tiny, ..EXPERIMENTS[0] };
        let options = |threads| Options { scale: Scale::Quick, seed: 7, seeds: 1, threads };
        let finished = run(&experiment, options(2), &|_| {}).unwrap();
        let ours = |label, metric| finished.findings.ours(label, metric).mean;
        for (label, _) in &CASES[..5] {
            assert_eq!(ours(label, LOST), 0.0, "{label}");
            assert!(ours(label, NEW_ORDERS) > 1.0, "{label}");
        }
        for label in [THROUGH, BACK] {
            assert!(ours(label, WARM) > 0.9 && ours(label, "flash hit ratio") > 0.3, "{label}");
        }
        for label in [LC, DW] {
            assert!(ours(label, WARM) > 0.5, "{label}: {}", ours(label, WARM));
        }
        assert!(ours(BACK, "of the hits, dirty") > 0.0 && ours(THROUGH, "of the hits, dirty") == 0.0);
        assert_eq!(finished.json(), run(&experiment, options(1), &|_| {}).unwrap().json());
    }
}
