//! Two lives of a machine: from an empty tier to the peak; then it is shut down, or crashes, and starts again on what
//! is left, and runs to its peak again.
//!
//! 1. The *peak* is the rate of transactions in the last part ([`STEADY`]) of the first life. It is back when a stretch
//!    of [`case::ENOUGH`] transactions or more has [`REACHED`] of it; the ramp ends with that stretch (the thesis
//!    counts whole minutes).
//! 2. *Peak to peak* is shutdown (none at a crash), recovery (from power until the database answers) and ramp.
//! 3. After the second life what was told to be done is there, and the conditions hold; else it is no result.
use crate::experiment::{Case, Numbers, Runner};
use crate::experiments::case::{self, Loading, numbers};
use crate::heat;
use crate::machine::{Loaded, Machine, Measured, Rig, Run, Running, Work, ramp_up};
use crate::workload::{Sample, Workload};
use std::sync::Arc;
use std::time::Duration;
use terrace_device::DeviceStats;
use terrace_device::fault::Choice;
use terrace_engine::EngineError;
use terrace_storage::FlashStats;

/// The last part of each life that counts as steady.
pub(super) const STEADY: f64 = 0.3;
pub(super) const REACHED: f64 = 0.9;

/// How the first life ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Shut down; all that has changed goes home.
    Clean,
    /// Shut down; what has changed stays in the tier and in the log.
    Fast,
    Crash,
}

/// The lives' lengths.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    pub(super) before: Run,
    pub(super) after: Run,
}

/// A case of two lives; see the module's header. `fresh`: the workload as it was when it was loaded.
pub(super) fn case<W: Workload>(
    label: &str,
    machine: Machine,
    loading: &Arc<Loading<W>>,
    fresh: fn(&W) -> W,
    steps: Steps,
    end: End,
) -> Case {
    let work = (steps.before.duration + steps.after.duration).as_secs_f64();
    let live = move |machine: &Machine, loaded: &Loaded, workload: &Arc<W>, hear: &dyn Fn(f64)| {
        two(machine, loaded, workload, steps, end, hear)
    };
    Case { label: label.into(), work, run: runner(machine, loading, fresh, live) }
}

/// A case of the first life alone: `ramp` is that from an empty tier.
pub(super) fn first<W: Workload>(
    label: &str,
    machine: Machine,
    loading: &Arc<Loading<W>>,
    fresh: fn(&W) -> W,
    run: Run,
) -> Case {
    let live = move |machine: &Machine, loaded: &Loaded, workload: &Arc<W>, hear: &dyn Fn(f64)| {
        let mut rig = Rig::new(machine, None, loaded);
        let running = rig.start()?;
        let (mut found, work) = begin(&running, machine, workload, run, hear);
        let samples = work.samples();
        ramp(&mut found, &samples, run);
        running.settle(work);
        let problems = running.check(workload)?;
        Ok((found, problems))
    };
    Case { label: label.into(), work: run.duration.as_secs_f64(), run: runner(machine, loading, fresh, live) }
}

type Lived = Result<(Numbers, Vec<String>), EngineError>;

fn runner<W: Workload>(
    machine: Machine,
    loading: &Arc<Loading<W>>,
    fresh: fn(&W) -> W,
    live: impl Fn(&Machine, &Loaded, &Arc<W>, &dyn Fn(f64)) -> Lived + Send + Sync + 'static,
) -> Runner {
    let loading = loading.clone();
    Box::new(move |seed, hear| {
        let machine = Machine { seed, ..machine.clone() };
        let loaded = loading.loaded(&machine)?;
        let workload = Arc::new(fresh(&loading.workload));
        let (found, problems) = live(&machine, &loaded, &workload, hear).map_err(|e| e.to_string())?;
        match problems.first() {
            Some(first) => Err(format!("{} problems; the first: {first}", problems.len())),
            None => Ok(found),
        }
    })
}

/// The first life until its end, with what [`numbers`] measures of it.
fn begin<W: Workload>(
    running: &Running<'_>,
    machine: &Machine,
    workload: &Arc<W>,
    run: Run,
    hear: &dyn Fn(f64),
) -> (Numbers, Work) {
    heat::begin();
    let mut work = running.work(workload, run, hear);
    let (heat, samples) = (heat::end(&running.database), work.samples());
    let traffic = std::mem::take(&mut work.traffic);
    let data = DeviceStats::default();
    let measured = Measured { samples, traffic, data, tier: None, heat, problems: vec![] };
    let mut found = numbers(&measured, machine, run, STEADY);
    let of = |name: &str| found.get(name).expect("every run measures its traffic");
    let share = of("disk reads") / DISK_IOPS[0] + of("disk writes") / DISK_IOPS[1];
    found.set("disk share", share);
    (found, work)
}

/// What chapter 4's disks can do (table 4.3): random reads and writes a second.
const DISK_IOPS: [f64; 2] = [2718.0, 2610.0];

/// Values, besides those of [`numbers`] (which are of the first life). Seconds: `shutdown`, `recovery`, of it
/// `inventory` (reading it) and `noting` (log that redo does not read), `ramp`, `interval` (all three); `reached` (1 if
/// the peak was back; else `ramp` is all of the second life). Frames: `held` and `held dirty` when the first life
/// ended; `listed`, `current`, `current dirty`, `bases`, `older`, `unknown` (what the opening said of them); `found`
/// and `found dirty` (in the tier when it answered); `lost` (had other bytes when they were read); `warm` (those found
/// over those held). Of the opening: `opening flash pages`, `opening disk pages` (read), `opening log MB`, `redo pages`
/// (named by the log), `waiting` (of these, redone when they are read). `sustained` (the second life's metric, a
/// second, in its steady part), `flash share after`, `at first` (transactions of the first tenth over the peak's),
/// `slowest after` (in the second half). Series over seconds since it answered: `after`.
fn two<W: Workload>(
    machine: &Machine,
    loaded: &Loaded,
    workload: &Arc<W>,
    steps: Steps,
    end: End,
    hear: &dyn Fn(f64),
) -> Lived {
    let mut rig = Rig::new(machine, None, loaded);
    let running = rig.start()?;
    let (mut found, work) = begin(&running, machine, workload, steps.before, hear);
    let mut done;
    let shutdown = match end {
        End::Crash => {
            done = lasting(&work.samples());
            held(&mut found, &running);
            running.crash(Choice::None);
            Duration::ZERO
        }
        End::Clean | End::Fast => {
            done = lasting(&running.settle(work));
            held(&mut found, &running);
            if end == End::Clean { running.shut_down()? } else { running.shut_down_fast()? }
        }
    };
    found.set("shutdown", shutdown.as_secs_f64());
    let running = rig.start()?;
    opened(&mut found, &running, machine);
    let hear_on = |seconds: f64| hear(steps.before.duration.as_secs_f64() + seconds);
    let mut work = running.work(workload, steps.after, &hear_on);
    let traffic = std::mem::take(&mut work.traffic);
    let within = work.samples();
    done += lasting(&running.settle(work));
    ramp(&mut found, &within, steps.after);
    let of = |name: &str| found.get(name).expect("measured above");
    let interval = of("shutdown") + of("recovery") + of("ramp");
    found.set("interval", interval);
    found.set("lost", tier(&running).restored.lost as f64);
    second_life(&mut found, machine, &within, traffic, steps.after);
    let asked = workload.clone();
    let there = running.ask(|database| async move { asked.lasting(&database).await })?;
    let mut problems = running.check(workload)?;
    if there < done {
        problems.insert(0, format!("{done} transactions were done, {there} are there"));
    }
    Ok((found, problems))
}

fn lasting(samples: &[Sample]) -> u64 {
    samples.iter().map(|sample| sample.lasting).sum()
}

fn tier(running: &Running<'_>) -> FlashStats {
    running.database.store().flash().expect("the machine has a tier")
}

fn held(found: &mut Numbers, running: &Running<'_>) {
    let tier = tier(running);
    found.set("held", tier.used as f64).set("held dirty", tier.dirty as f64);
}

fn opened(found: &mut Numbers, running: &Running<'_>, machine: &Machine) {
    let (report, tier, totals) = (&running.report.storage, tier(running), running.totals());
    let restored = report.tier;
    for (name, frames) in [
        ("listed", restored.listed),
        ("current", restored.current),
        ("current dirty", restored.dirty),
        ("bases", restored.bases),
        ("older", restored.older),
        ("unknown", restored.unknown),
        ("found", tier.used),
        ("found dirty", tier.dirty),
        ("redo pages", report.pages),
        ("waiting", report.pages_waiting),
    ] {
        found.set(name, frames as f64);
    }
    let held = found.get("held").expect("measured when the first life ended");
    found.set("warm", tier.used as f64 / held.max(1.0));
    found.set("recovery", running.opening.as_secs_f64());
    found.set("inventory", restored.inventory_nanos as f64 / 1e9).set("noting", restored.noting_nanos as f64 / 1e9);
    let pages = |bytes: u64| bytes as f64 / machine.storage.page_size as f64;
    found.set("opening flash pages", pages(totals.flash.read_bytes));
    found.set("opening disk pages", pages(totals.data.read_bytes));
    found.set("opening log MB", totals.log.read_bytes as f64 / 1e6);
}

/// Invariant 1.
fn ramp(found: &mut Numbers, samples: &[Sample], run: Run) {
    let windows = (run.duration.as_nanos() / run.window.as_nanos()) as usize;
    let within = &samples[..samples.len().min(windows)];
    let peak = found.get("transactions").expect("every run measures it");
    let stretch = (case::ENOUGH / (peak * run.window.as_secs_f64())).ceil().max(1.0) * run.window.as_secs_f64();
    let back = ramp_up(within, run.window, peak, REACHED, case::ENOUGH);
    found.set("ramp", back.map_or(run.duration.as_secs_f64(), |begin| begin + stretch));
    found.set("reached", if back.is_some() { 1.0 } else { 0.0 }).set("stretch", stretch);
}

fn second_life(
    found: &mut Numbers,
    machine: &Machine,
    samples: &[Sample],
    traffic: Vec<crate::machine::Traffic>,
    run: Run,
) {
    let peak = found.get("transactions").expect("every run measures it");
    let first = (samples.len() / 10).max(1);
    let at_first = samples[..first].iter().map(|s| s.transactions).sum::<u64>() as f64;
    found.set("at first", at_first / (first as f64 * run.window.as_secs_f64()) / peak.max(f64::MIN_POSITIVE));
    found.set("slowest after", case::slowest_stretch(&samples[samples.len() / 2..]).0);
    let heat = heat::Heat::default();
    let measured = Measured {
        samples: samples.to_vec(),
        traffic,
        data: DeviceStats::default(),
        tier: None,
        heat,
        problems: vec![],
    };
    let after = numbers(&measured, machine, run, STEADY);
    for (name, of) in [("sustained", "counted"), ("flash share after", "flash share"), ("dirty after", "dirty share")] {
        found.set(name, after.get(of).expect("every run measures it"));
    }
    found.set_series("after", after.series("counted"));
}
