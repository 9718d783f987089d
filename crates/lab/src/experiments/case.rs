//! A case that is one workload on one machine: what every experiment with terminals measures.
//!
//! 1. Cases that share a [`Loading`] run on copies of one load.
//! 2. *Steady state* is the last part of a run, stated in the experiment's configuration; rates are means over it.
//! 3. A run after which the workload's conditions or the database's own check find anything is a failure, not a result.
use crate::experiment::{Case, Numbers, Runner, Value};
use crate::machine::{Loaded, Machine, Measured, Run, Traffic};
use crate::workload::{Sample, Workload};
use std::sync::{Arc, OnceLock};
use terrace_storage::FlashConfig;
use terrace_storage::config::{FlashOrder, WritePolicy};

/// The designs of the thesis's chapter 3, by the names that its figures and ours give them.
pub(super) const NONE: &str = "none";
pub(super) const CW: &str = "clean-write";
pub(super) const DW: &str = "dual-write";
pub(super) const LC: &str = "lazy-cleaning";
pub(super) const TAC: &str = "TAC";

pub(super) const DESIGNS: [(&str, Option<WritePolicy>); 5] = [
    (NONE, None),
    (CW, Some(WritePolicy::CleanWrite)),
    (TAC, Some(WritePolicy::Tac)),
    (DW, Some(WritePolicy::DualWrite)),
    (LC, Some(WritePolicy::LazyCleaning)),
];

/// The tier of a design; of none: as it is. TAC brings its own order of replacement.
pub(super) fn designed(tier: FlashConfig, design: Option<WritePolicy>) -> FlashConfig {
    let replacement = if design == Some(WritePolicy::Tac) { FlashOrder::Temperature } else { tier.replacement };
    FlashConfig { write: design.unwrap_or(tier.write), replacement, ..tier }
}

/// A workload, loaded once (invariant 1).
pub struct Loading<W> {
    pub workload: Arc<W>,
    loaded: OnceLock<Result<Loaded, String>>,
}

impl<W: Workload> Loading<W> {
    pub fn new(workload: W) -> Arc<Loading<W>> {
        Arc::new(Loading { workload: Arc::new(workload), loaded: OnceLock::new() })
    }

    /// Whoever comes first loads; the others wait.
    pub fn loaded(&self, machine: &Machine) -> Result<Loaded, String> {
        self.loaded.get_or_init(|| machine.load(&self.workload).map_err(|e| format!("loading: {e}"))).clone()
    }
}

/// A case of `workload` on `machine` (its seed is replaced). `steady`: the part of the run at its end that counts, 0 to 1.
pub fn case<W: Workload>(label: &str, machine: Machine, loading: &Arc<Loading<W>>, run: Run, steady: f64) -> Case {
    let loading = loading.clone();
    let runner: Runner = Box::new(move |seed, hear| {
        let machine = Machine { seed, ..machine.clone() };
        let loaded = loading.loaded(&machine)?;
        let measured = machine.measure(&loaded, &loading.workload, run, hear).map_err(|e| e.to_string())?;
        match measured.problems.first() {
            Some(first) => Err(format!("{} problems; the first: {first}", measured.problems.len())),
            None => Ok(numbers(&measured, &machine, run, steady)),
        }
    });
    Case { label: label.into(), work: run.duration.as_secs_f64(), run: runner }
}

/// What [`case`] measures. Values, in steady state unless it says otherwise, per second where it is a rate: `counted` (the workload's
/// metric), `transactions`, `latency` (ms), `retries`; `disk reads`, `disk writes`, `flash reads`, `flash writes` (operations) and the same with
/// ` MB` (millions of bytes); with a tier: `hit ratio` (of reads that memory missed, 0 to 1) and `dirty hits` (of the hits, those of pages newer there than on
/// the disk, 0 to 1); `slowest` (transactions in the
/// slowest second over the mean), `slowest by chance` (what it would be if transactions ended independently of each other).
/// Series over seconds: `counted`, the six traffics in MB, `dirty` and `used` (parts of the tier's frames).
pub fn numbers(measured: &Measured, machine: &Machine, run: Run, steady: f64) -> Numbers {
    let mut numbers = Numbers::default();
    let width = run.window.as_secs_f64();
    let windows = measured.traffic.len().min(measured.samples.len());
    let from = ((windows as f64 * (1.0 - steady)).round() as usize).min(windows.saturating_sub(1));
    let (samples, traffic) = (&measured.samples[from..windows], &measured.traffic[from..windows]);
    let seconds = samples.len() as f64 * width;
    let sum = |of: fn(&Sample) -> u64| samples.iter().map(of).sum::<u64>() as f64;
    let transactions = sum(|s| s.transactions);
    numbers.set("counted", sum(|s| s.counted) / seconds).set("transactions", transactions / seconds);
    numbers.set("latency", sum(|s| s.nanos) / transactions.max(1.0) / 1e6).set("retries", sum(|s| s.retries) / seconds);
    for (name, of) in TRAFFIC {
        numbers.set(name, traffic.iter().map(of).sum::<u64>() as f64 / seconds);
    }
    for (name, of) in BYTES {
        numbers.set(name, traffic.iter().map(of).sum::<u64>() as f64 / 1e6 / seconds);
        numbers.set_series(name, measured.traffic.iter().map(|t| (t.at, of(t) as f64 / 1e6 / width)).collect());
    }
    numbers.set("slowest", slowest_second(samples, width) / (transactions / seconds).max(1.0));
    numbers.set("slowest by chance", least_of(transactions / seconds, seconds as i32));
    numbers.set_series("counted", smooth(&rates(&measured.samples[..windows], width)));
    if machine.flash.is_some() {
        let sum = |of: fn(&Traffic) -> u64| traffic.iter().map(of).sum::<u64>() as f64;
        let hits = sum(|t| t.tier_hits);
        numbers.set("hit ratio", hits / (hits + sum(|t| t.tier_misses)).max(1.0));
        numbers.set("dirty hits", sum(|t| t.tier_dirty_hits) / hits.max(1.0));
        let frames = (machine.storage.flash.size / machine.storage.page_size as u64) as f64;
        let part = |of: fn(&Traffic) -> u64| measured.traffic.iter().map(|t| (t.at, of(t) as f64 / frames)).collect();
        numbers.set_series("dirty", part(|t| t.tier_dirty)).set_series("used", part(|t| t.tier_used));
    }
    numbers
}

pub(super) const REDO_BOUND: &str = "redo_bound bytes";

/// What chapter 3's experiments tell of their machine alike.
pub(super) fn machine_rows(machine: &Machine) -> [(&'static str, Value); 9] {
    let (storage, flash) = (&machine.storage, &machine.storage.flash);
    [
        ("log, double-writes and undo", "nvme-datacentre".into()),
        ("flash device", "iodrive-160".into()),
        ("page bytes", storage.page_size.into()),
        ("memory bytes", storage.pool_bytes.into()),
        ("flash tier bytes", flash.size.into()),
        ("tau (fill_threshold)", flash.fill_threshold.into()),
        ("mu (throttle_queue_depth)", flash.throttle_queue_depth.into()),
        (REDO_BOUND, storage.redo_bound.into()),
        ("cores", machine.cores.into()),
    ]
}

type Gauge = (&'static str, fn(&Traffic) -> u64);

const TRAFFIC: [Gauge; 4] = [
    ("disk reads", |t| t.data.reads),
    ("disk writes", |t| t.data.writes),
    ("flash reads", |t| t.flash.reads),
    ("flash writes", |t| t.flash.writes),
];
const BYTES: [Gauge; 6] = [
    ("disk reads MB", |t| t.data.read_bytes),
    ("disk writes MB", |t| t.data.write_bytes),
    ("flash reads MB", |t| t.flash.read_bytes),
    ("flash writes MB", |t| t.flash.write_bytes),
    ("log reads MB", |t| t.log.read_bytes),
    ("log writes MB", |t| t.log.write_bytes),
];

/// Transactions in the slowest second. Windows are a second or a whole part of one.
fn slowest_second(samples: &[Sample], width: f64) -> f64 {
    let windows = ((1.0 / width).round() as usize).max(1);
    let seconds = samples.chunks_exact(windows).map(|second| second.iter().map(|s| s.transactions).sum::<u64>());
    seconds.min().unwrap_or(0) as f64
}

/// The least of so many independent Poisson variables of this mean, over the mean, as expected: the sum over k of the probability that all reach k.
fn least_of(mean: f64, count: i32) -> f64 {
    let (mut below, mut log_term, mut sum) = (0.0, -mean, 0.0);
    for k in 1..=(mean.ceil() as u32) {
        below += log_term.exp(); // P(X < k)
        sum += (1.0 - below).max(0.0).powi(count);
        log_term += (mean / f64::from(k)).ln();
    }
    sum / mean.max(1.0)
}

/// Counted transactions per second, at the end of each window.
fn rates(samples: &[Sample], width: f64) -> Vec<(f64, f64)> {
    (1..).zip(samples).map(|(at, s)| (f64::from(at) * width, s.counted as f64 / width)).collect()
}

/// The mean of three adjacent points, as the thesis draws its curves.
fn smooth(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mean = |at: usize| {
        let near = &points[at.saturating_sub(1)..(at + 2).min(points.len())];
        near.iter().map(|p| p.1).sum::<f64>() / near.len() as f64
    };
    points.iter().enumerate().map(|(at, p)| (p.0, mean(at))).collect()
}
