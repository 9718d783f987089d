//! A case that is one workload on one machine: what every experiment with terminals measures.
//!
//! 1. Cases that share a [`Loading`] run on copies of one load.
//! 2. *Steady state* is the last part of a run, stated in the experiment's configuration; rates are means over it.
//! 3. A run after which the workload's conditions or the database's own check find anything is a failure, not a result.
use crate::experiment::{Case, Findings, Interval, Numbers, Results, Runner, Value};
use crate::machine::{Loaded, Machine, Measured, REJECTED, Run, Traffic};
use crate::workload::{Sample, Workload};
use std::sync::{Arc, OnceLock};
use terrace_device::emulate::Profile;
use terrace_storage::FlashConfig;
use terrace_storage::config::{FlashOrder, Restart, WritePolicy};

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

/// Those of others that its section 3.5 names beside TAC.
pub(super) const OTHERS: [(&str, Option<WritePolicy>); 5] = [
    ("inclusive", Some(WritePolicy::Inclusive)),
    ("exclusive", Some(WritePolicy::Exclusive)),
    ("lazy", Some(WritePolicy::Lazy)),
    ("rotating", Some(WritePolicy::Rotating)),
    ("HeteroDrive", Some(WritePolicy::HeteroDrive)),
];

/// The write policy of a design, if there is such a design.
pub(super) fn policy(name: &str) -> Option<Option<WritePolicy>> {
    DESIGNS.into_iter().chain(OTHERS).find(|(of, _)| *of == name).map(|(_, policy)| policy)
}

/// The tier of a design; of none: as it is. TAC brings its own order of replacement, and frames given out in turn are.
pub(super) fn designed(tier: FlashConfig, design: Option<WritePolicy>) -> FlashConfig {
    let replacement = match design {
        Some(WritePolicy::Tac) => FlashOrder::Temperature,
        Some(policy) if policy.flow().rotates => FlashOrder::Fifo,
        _ => tier.replacement,
    };
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

/// A case of `workload` on `machine` (its seed is replaced). `steady`: the part of the run at its end that counts, 0 to
/// 1.
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

/// What [`case`] measures. Values, in steady state unless it says otherwise, per second where it is a rate: `counted`
/// (the workload's metric), `transactions`, `latency` (ms), `retries`; `disk reads`, `disk writes`, `flash reads`,
/// `flash writes` (operations) and the same with ` MB` (millions of bytes), `pages per disk write`, `pages per flash
/// write`, and what [`sums`] adds; with a tier: `hit ratio` (of reads that memory missed, 0 to 1) and `dirty hits` (of
/// the hits, those of pages newer there than on the disk, 0 to 1), `throttled reads`, what [`REJECTED`] names, `flash
/// bytes` (a transaction), `dirty share` (of the frames); `lock share` (of the terminals' time, in waits for each
/// other), `reads per transaction` (of the disk), `index reads per transaction` (of these); `slowest` (transactions in
/// the slowest stretch over the mean, stretches of [`ENOUGH`] transactions or more), `stretch` (seconds of one),
/// `slowest by chance` (what it would be if transactions ended independently of each other). Of the whole run: `heat
/// stock` and others of [`HEATED`] (of the accesses to a table's pages, the hottest 35%'s), `heat all`, `heat fifth`
/// (of all pages, the hottest fifth's). Series over seconds: `counted`, the six traffics in MB, `dirty` and `used`
/// (parts of the tier's frames).
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
    for (name, bytes, writes) in RUNS {
        let sum = |of: fn(&Traffic) -> u64| traffic.iter().map(of).sum::<u64>() as f64;
        numbers.set(name, sum(bytes) / machine.storage.page_size as f64 / sum(writes).max(1.0));
    }
    let (slowest, stretch) = slowest_stretch(samples);
    let stretches = samples.len() / stretch;
    numbers.set("slowest", slowest).set("stretch", stretch as f64 * width);
    let mean = transactions / samples.len() as f64 * stretch as f64;
    numbers.set("slowest by chance", least_of(mean, stretches as i32));
    let waited = traffic.iter().map(|t| t.lock_wait).sum::<u64>() as f64 / 1e9;
    numbers.set("lock share", waited / (seconds * run.terminals as f64));
    let reads = traffic.iter().map(|t| t.data.reads).sum::<u64>() as f64;
    numbers.set("reads per transaction", reads / transactions.max(1.0));
    let of_indexes = traffic.iter().map(|t| t.index_reads).sum::<u64>() as f64;
    numbers.set("index reads per transaction", of_indexes / transactions.max(1.0));
    for (table, name) in HEATED {
        if let Some(share) = measured.heat.of(table, HOT) {
            numbers.set(name, share);
        }
    }
    for (name, hottest) in [("heat all", HOT), ("heat fifth", 0.2)] {
        if let Some(share) = measured.heat.of_all(hottest) {
            numbers.set(name, share);
        }
    }
    numbers.set_series("counted", smooth(&rates(&measured.samples[..windows], width)));
    if machine.flash.is_some() {
        let frames = tier(&mut numbers, machine, traffic, seconds);
        let bytes = traffic.iter().map(|t| t.tier_written).sum::<u64>() as f64;
        numbers.set("flash bytes", bytes / transactions.max(1.0));
        let part = |of: fn(&Traffic) -> u64| measured.traffic.iter().map(|t| (t.at, of(t) as f64 / frames)).collect();
        numbers.set_series("dirty", part(|t| t.tier_dirty)).set_series("used", part(|t| t.tier_used));
    }
    sums(&mut numbers);
    numbers
}

/// What the tier did in these windows: `hit ratio`, `dirty hits`, `throttled reads`, [`REJECTED`], `dirty share`.
/// Returns its frames.
pub(super) fn tier(numbers: &mut Numbers, machine: &Machine, traffic: &[Traffic], seconds: f64) -> f64 {
    let sum = |of: fn(&Traffic) -> u64| traffic.iter().map(of).sum::<u64>() as f64;
    let hits = sum(|t| t.tier_hits);
    numbers.set("hit ratio", hits / (hits + sum(|t| t.tier_misses)).max(1.0));
    numbers.set("dirty hits", sum(|t| t.tier_dirty_hits) / hits.max(1.0));
    numbers.set("throttled reads", sum(|t| t.tier_throttled) / seconds);
    for (at, name) in REJECTED.into_iter().enumerate() {
        numbers.set(name, traffic.iter().map(|t| t.tier_rejected[at]).sum::<u64>() as f64 / seconds);
    }
    let frames = (machine.storage.flash.size / machine.storage.page_size as u64) as f64;
    numbers.set("dirty share", sum(|t| t.tier_dirty) / traffic.len() as f64 / frames);
    frames
}

/// What the devices can do (table 3.1): random reads and writes a second.
pub(super) const DISK_IOPS: [f64; 2] = [1015.0, 895.0];
pub(super) const FLASH_IOPS: [f64; 2] = [12_182.0, 12_374.0];

/// Reads and writes together: `disk operations`, `disk MB`, `flash operations`; and `disk share`, `flash share` of what
/// the device can, each by its own.
fn sums(found: &mut Numbers) {
    let of = |found: &Numbers, name: &str| found.get(name).expect("every run measures its traffic");
    for (sum, one, other) in [
        ("disk operations", "disk reads", "disk writes"),
        ("disk MB", "disk reads MB", "disk writes MB"),
        ("flash operations", "flash reads", "flash writes"),
    ] {
        let both = of(found, one) + of(found, other);
        found.set(sum, both);
    }
    for (share, [reads, writes], [most_reads, most_writes]) in [
        ("disk share", ["disk reads", "disk writes"], DISK_IOPS),
        ("flash share", ["flash reads", "flash writes"], FLASH_IOPS),
    ] {
        let both = of(found, reads) / most_reads + of(found, writes) / most_writes;
        found.set(share, both);
    }
}

pub(super) const FLASH_DEVICE: &str = "flash device";
pub(super) const DOUBLE_WRITES: &str = "double-writes";
pub(super) const SHARP: &str = "all that is written is queued at once; checkpoints close the tier to dirty pages";
pub(super) const WRITER: &str = "background writer's interval, s, unscaled";
pub(super) const REDO_BOUND: &str = "redo_bound bytes";

/// A tier of `size` bytes as chapter 3 has it: reads are expanded in chapter 4 only, as restarts are warm, and LRU-2
/// forgets a page that changes in memory.
pub(super) fn chapter3(size: u64, lambda: f64) -> FlashConfig {
    FlashConfig {
        size,
        dirty_fraction: lambda,
        expanded_read: 1,
        replacement: FlashOrder::Lru2,
        restart: Restart::Cold,
        ..FlashConfig::default()
    }
}

/// The thesis's disks for a database `factor` times smaller: seeks as long as over all of it.
pub(super) fn disks(factor: u64) -> Profile {
    named("hdd-8x7200").shrunk(factor)
}

pub(super) fn named(profile: &str) -> Profile {
    Profile::named(profile).expect("one of ours")
}

/// What chapter 3's experiments tell of their machine alike, and what of it shrinks with the database ("scaled").
pub(super) fn machine_rows(machine: &Machine) -> Vec<(&'static str, Value)> {
    let (storage, flash) = (&machine.storage, &machine.storage.flash);
    vec![
        ("log, double-writes and undo", "nvme-datacentre".into()),
        (FLASH_DEVICE, "iodrive-160".into()),
        ("page bytes", storage.page_size.into()),
        ("memory bytes", storage.pool_bytes.into()),
        ("flash tier bytes", flash.size.into()),
        ("tau (fill_threshold)", flash.fill_threshold.into()),
        ("mu (throttle_queue_depth), unscaled; the cleaner's reads do not count", flash.throttle_queue_depth.into()),
        ("alpha (cleaning_batch), unscaled", flash.cleaning_batch.into()),
        ("groups cleaned at once, unscaled", flash.cleaning_groups.into()),
        ("cleaner's rest, unscaled", "50 ms".into()),
        ("dirty frames beyond lambda, scaled", "an eighth of it, or a 256th of the frames if that is more".into()),
        ("clean frames at hand where lambda does not apply, scaled", "a sixteenth".into()),
        ("frames cleaned before their turn, of an eighth: at most, unscaled", "1024; in sweeps 16384".into()),
        ("dirty frames among which the coldest is cleaned, unscaled", 64.into()),
        ("clean pages that wait to enter the tier, at most, unscaled", 64.into()),
        ("pages written home together, unscaled", storage.write_group.into()),
        (DOUBLE_WRITES, (!machine.whole_pages).into()),
        (SHARP, storage.sharp_checkpoints.into()),
        (WRITER, storage.writer_interval.as_secs_f64().into()),
        ("redo LSN recorded at least every, s, unscaled", storage.checkpoint_interval.as_secs_f64().into()),
        ("expanded reads, pages", flash.expanded_read.into()),
        ("read-ahead, pages, unscaled", storage.read_ahead.into()),
        (REDO_BOUND, storage.redo_bound.into()),
        ("cores", machine.cores.into()),
    ]
}

/// What tells whether a run was limited by what it should be, for each case that measured it: rows of skew (beside the
/// specification's), disk reads a transaction, time in lock waits, what the tier was too busy for and did not let in,
/// its steady share of dirty pages.
pub(super) fn health(found: &mut Findings, results: &Results, specified: &[(&'static str, f64)]) {
    health_of(found, results, "", specified);
}

/// The same of the cases whose labels begin so.
pub(super) fn health_of(found: &mut Findings, results: &Results, of: &str, specified: &[(&'static str, f64)]) {
    let labels: Vec<String> = results.labels().filter(|label| label.starts_with(of)).map(String::from).collect();
    let mut row = |label: &str, name: &str, metric: &str, unit: &'static str, paper: Option<f64>| {
        if results.measured(label, name) {
            found.row(label, metric, unit, results.interval(label, name), paper);
        }
    };
    for label in &labels {
        row(label, "reads per transaction", "disk reads per transaction", "", None);
        row(label, "index reads per transaction", "of these, reads of index pages", "", None);
        row(label, "disk share", DISK_SHARE, "", None);
        row(label, "lock share", "share of the terminals' time in lock waits", "", None);
        for name in ["heat stock", "heat customer", "heat trade", "heat account", "heat all"] {
            let paper = specified.iter().find(|(known, _)| *known == name).map(|(_, share)| *share);
            let of = name.trim_start_matches("heat ");
            row(
                label,
                name,
                &format!("share of accesses on the hottest 35% of the pages of {of} (the specification's)"),
                "",
                paper,
            );
        }
        let paper = specified.iter().find(|(known, _)| *known == "heat fifth").map(|(_, share)| *share);
        row(label, "heat fifth", "share of accesses on the hottest fifth of all pages", "", paper);
        row(label, "dirty share", "dirty part of the tier, steady", "", None);
        for name in ["throttled reads"].into_iter().chain(REJECTED) {
            row(label, name, name, "1/s", None);
        }
    }
    let most = labels.iter().filter(|label| results.measured(label, "lock share"));
    let most = most.map(|label| (results.interval(label, "lock share"), label.clone()));
    if let Some((share, label)) = most.max_by(|a, b| a.0.mean.total_cmp(&b.0.mean)) {
        let Interval { mean, .. } = share;
        found.notes.push(format!(
            "Terminals spent {:.1}% of their time in lock waits at most ({label}): {}.",
            100.0 * mean,
            if mean < 0.05 { "row locks are not the limit" } else { "more than the 5% at which they begin to count" }
        ));
    }
}

const DISK_SHARE: &str = "reads and writes of the disks, each of what they can (table 3.1)";

/// The divisor does what table 3.1 says that the disks can: they are the limit without a tier. After [`health`].
pub(super) fn divisor(found: &mut Findings, label: &str) {
    let holds = found.ours(label, DISK_SHARE).low >= 0.95;
    found.shape(format!("{label}: the disks do what they can by table 3.1 (0.95 of it or more)"), holds);
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

/// Pages that a write writes, on average: the bytes, and the writes.
type Runs = (&'static str, fn(&Traffic) -> u64, fn(&Traffic) -> u64);

const RUNS: [Runs; 2] = [
    ("pages per disk write", |t| t.data.write_bytes, |t| t.data.writes),
    ("pages per flash write", |t| t.flash.write_bytes, |t| t.flash.writes),
];

/// Transactions that a stretch of time must have to be compared with others: chance makes the least of a dozen such
/// about 0.87 of their mean.
pub(super) const ENOUGH: f64 = 150.0;
/// The part of the pages that the thesis's tier holds of its largest database.
const HOT: f64 = 0.35;
/// Tables whose heat is told, where a workload has them.
const HEATED: [(&str, &str); 4] =
    [("stock", "heat stock"), ("customer", "heat customer"), ("trade", "heat trade"), ("account", "heat account")];

/// Transactions in the slowest stretch over the mean; windows of a stretch, so many that there are [`ENOUGH`]
/// transactions in one on average.
pub(super) fn slowest_stretch(samples: &[Sample]) -> (f64, usize) {
    let all: u64 = samples.iter().map(|s| s.transactions).sum();
    let mean = all as f64 / samples.len() as f64;
    let stretch = ((ENOUGH / mean.max(1e-9)).ceil() as usize).clamp(1, samples.len());
    let sums = samples.chunks_exact(stretch).map(|of| of.iter().map(|s| s.transactions).sum::<u64>());
    (sums.min().unwrap_or(0) as f64 / (mean * stretch as f64).max(1e-9), stretch)
}

/// The least of so many independent Poisson variables of this mean, over the mean, as expected: the sum over k of the
/// probability that all reach k.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_long_enough_to_be_compared() {
        let samples = |all: &[u64]| {
            all.iter().map(|&transactions| Sample { transactions, ..Sample::default() }).collect::<Vec<_>>()
        };
        // 50 in a window: three windows to a stretch.
        assert_eq!(slowest_stretch(&samples(&[50, 20, 80, 50, 50, 50])), (1.0, 3));
        assert_eq!(slowest_stretch(&samples(&[200, 100, 300])), (0.5, 1));
    }
}
