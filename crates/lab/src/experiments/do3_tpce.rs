//! TPC-E with a flash tier: J. Do's thesis, section 3.4.3 (figures 3.1 d-f, 3.8, 3.9 and 3.10).
//!
//! The thesis's machine, shrunk: database, memory, flash tier, run time and checkpoint intervals by the same factor, devices as they were.
//! Customers keep their proportion to terminals; the trades of each shrink.
//!
//! Checkpoints are the thesis's: all that is dirty goes home at once, every 40 minutes. The engine's own are indirect, spread out with as much log to
//! repeat; `do/fig3.10` compares them. Different from the thesis: log, double-writes and undo lie on a fast device of their own (there the log had a
//! disk of its own, and no double-writes).
mod judge;

use super::case::{self, CW, DESIGNS, DW, LC, Loading, NONE, TAC, designed, numbers};
use super::do3_tpcc::STATEMENT_CPU;
use super::sharp::Sharp;
use crate::experiment::{Case, Experiment, Numbers, Plan, Runner, Scale, Value};
use crate::machine::{Machine, Measured, Run};
use crate::tpce::{Sizes, TpcE};
use std::sync::Arc;
use std::time::Duration;
use terrace_device::emulate::Profile;
use terrace_storage::config::WritePolicy;
use terrace_storage::{FlashConfig, StorageConfig};

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "do/fig3.1-e",
        shows: "TPC-E with each write policy of the flash tier: it gains most where the working set is about its size",
        source: "J. Do, thesis (2012), figure 3.1 (d)-(f) and section 3.4.3",
        plan: designs,
    },
    Experiment {
        id: "do/fig3.8",
        shows: "TPC-E over time from a cold start: a long ramp, for the tier fills at the disks' pace",
        source: "J. Do, thesis (2012), figure 3.8 and section 3.4.3.1",
        plan: ramp,
    },
    Experiment {
        id: "do/fig3.9",
        shows: "TPC-E's traffic to disks and flash under dual writes: in steady state the disks are the limit",
        source: "J. Do, thesis (2012), figure 3.9 and section 3.4.3.2",
        plan: traffic,
    },
    Experiment {
        id: "do/fig3.10",
        shows: "TPC-E under sharp checkpoints: each is a dip, deeper with lazy cleaning; indirect checkpoints have none",
        source: "J. Do, thesis (2012), figure 3.10 and section 3.4.3.3",
        plan: checkpoints,
    },
];

/// λ for TPC-E (table 3.2).
const LAMBDA: f64 = 0.01;
/// The part of a run at its end that counts as steady state.
const STEADY: f64 = 0.2;
/// Processors so much slower than those measured that they limit whoever has a tier: what then becomes of 10K.
const SLOW: u32 = 250;
const SLOWER: &str = ", slow CPU";
const TERMINALS: usize = 32;
/// The thesis's customers by the name of the database, and what of 20,000 they are.
const SIZES: [(&str, f64); 3] = [("10K", 0.5), ("20K", 1.0), ("40K", 2.0)];
/// Windows in 40 minutes at which throughput is looked at (`do/fig3.10`).
const PHASES: usize = 12;
/// Trades of a customer. With the rest of the tables that is 230 GB for 20,000 customers, shrunk.
const TRADES: u32 = 80;

/// The thesis's bytes and hours, divided by a factor.
#[derive(Clone, Copy)]
struct Shrunk {
    factor: u64,
    /// For the thesis's 20,000.
    customers: u32,
}

impl Shrunk {
    fn of(scale: Scale) -> Shrunk {
        scale.pick(Shrunk { factor: 8000, customers: 500 }, Shrunk { factor: 4000, customers: 1000 })
    }

    /// Larger, where single windows of a run are compared: more transactions in each.
    fn larger(scale: Scale) -> Shrunk {
        scale.pick(Shrunk::of(scale), Shrunk { factor: 2000, customers: 2000 })
    }

    fn hours(&self, hours: f64) -> Duration {
        Duration::from_secs_f64(hours * 3600.0 / self.factor as f64)
    }

    fn loading(&self, size: f64) -> Arc<Loading<TpcE>> {
        let customers = (f64::from(self.customers) * size) as u32;
        Loading::new(TpcE::new(Sizes { customers, trades: TRADES, days: 25, watched: 20 }))
    }

    fn machine(&self, design: Option<WritePolicy>, lambda: f64) -> Machine {
        let named = |name| Profile::named(name).expect("one of ours");
        // Reads are expanded in chapter 4 only.
        let tier = FlashConfig {
            size: (140 << 30) / self.factor,
            dirty_fraction: lambda,
            expanded_read: 1,
            ..FlashConfig::default()
        };
        Machine {
            data: named("hdd-8x7200").shrunk(self.factor),
            log: named("nvme-datacentre"),
            flash: design.map(|_| named("iodrive-160")),
            cores: 8,
            storage: StorageConfig {
                pool_bytes: ((20 << 30) / self.factor) as usize,
                redo_bound: (8 << 30) / self.factor,
                log_retention: (64 << 30) / self.factor,
                segment_size: 1 << 20,
                flash: designed(tier, design),
                ..StorageConfig::default()
            },
            statement_cpu: STATEMENT_CPU,
            seed: 0,
        }
    }

    /// With checkpoints as the thesis's server made them, at fixed times: nothing goes home by age.
    fn sharp(&self, design: Option<WritePolicy>, lambda: f64) -> Machine {
        let mut machine = self.machine(design, lambda);
        machine.storage.redo_bound = 64 << 30;
        machine.storage.log_retention = 64 << 30;
        machine.storage.writer_interval = Duration::from_secs(3600);
        machine
    }

    fn run(&self, hours: f64, windows: u32) -> Run {
        let duration = self.hours(hours);
        Run { terminals: TERMINALS, duration, window: duration / windows }
    }

    fn case(
        &self,
        label: String,
        machine: Machine,
        loading: &Arc<Loading<TpcE>>,
        run: Run,
        sharp: Option<Duration>,
    ) -> Case {
        let (loading, shrunk) = (loading.clone(), *self);
        let runner: Runner = Box::new(move |seed, hear| {
            let machine = Machine { seed, ..machine.clone() };
            let loaded = loading.loaded(&machine)?;
            let workload = Arc::new(Sharp::new(loading.workload.fresh(), sharp, run.terminals));
            // The checkpoints' own terminal comes last.
            let with = Run { terminals: run.terminals + usize::from(sharp.is_some()), ..run };
            let measured = machine.measure(&loaded, &workload, with, hear).map_err(|e| e.to_string())?;
            match measured.problems.first() {
                Some(first) => Err(format!("{} problems; the first: {first}", measured.problems.len())),
                None => {
                    let mut found = numbers(&measured, &machine, run, STEADY);
                    ramp_of(&measured, run, &mut found);
                    match sharp {
                        Some(every) => dip_of(&measured, run, every, "dip", &mut found),
                        None => {
                            dip_of(&measured, run, shrunk.hours(SHORT), "dip", &mut found);
                            dip_of(&measured, run, shrunk.hours(LONG), "seldom dip", &mut found);
                        }
                    }
                    checkpoints_of(&measured, run, &workload.made(), shrunk, &mut found);
                    sums(&mut found);
                    Ok(found)
                }
            }
        });
        Case { label, work: run.duration.as_secs_f64(), run: runner }
    }

    /// As the thesis ran TPC-E but for figure 3.10: checkpoints every 40 minutes.
    fn often(&self, label: String, machine: Machine, loading: &Arc<Loading<TpcE>>) -> Case {
        self.case(label, machine, loading, self.run(HOURS, 60), Some(self.hours(SHORT)))
    }

    fn config_often(&self) -> Vec<(&'static str, Value)> {
        self.config(&self.sharp(Some(WritePolicy::DualWrite), LAMBDA), HOURS, "0.01", "sharp, every 40 min")
    }

    fn config(
        &self,
        machine: &Machine,
        hours: f64,
        lambda: &'static str,
        checkpoints: &'static str,
    ) -> Vec<(&'static str, Value)> {
        let flash = &machine.storage.flash;
        let mut rows: Vec<(&str, Value)> = vec![
            ("workload", "TPC-E-like, no think times".into()),
            ("shrunk by", self.factor.into()),
            ("customers (for the thesis's 20,000)", self.customers.into()),
            ("trades per customer", TRADES.into()),
            ("terminals", TERMINALS.into()),
            ("virtual seconds", self.hours(hours).as_secs_f64().into()),
            ("hours of the thesis's machine", hours.into()),
            ("steady state: last part of the run", STEADY.into()),
            ("data device", "hdd-8x7200, seeks as over the whole database".into()),
            ("replacement", "LRU-2".into()),
            ("lambda (dirty_fraction)", lambda.into()),
            ("checkpoints", checkpoints.into()),
            ("alpha (cleaning_batch)", flash.cleaning_batch.into()),
            ("CPU per statement, us", (machine.statement_cpu.as_micros() as u64).into()),
        ];
        rows.extend(case::machine_rows(machine));
        rows
    }
}

/// What the devices can do (table 3.1): random reads and writes a second.
const DISK_IOPS: [f64; 2] = [1015.0, 895.0];
const FLASH_IOPS: [f64; 2] = [12_182.0, 12_374.0];

/// Reads and writes together: `disk operations`, `disk MB`, `flash operations`; and `disk share`, `flash share` of what the device can, each by its own.
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

/// `ramp hours`: the hours of the thesis's machine until transactions per second (the mean of five windows: few are in one) first reach nine
/// tenths of their steady state; `start`: what they are in the run's first twentieth, of their steady state.
fn ramp_of(measured: &Measured, run: Run, found: &mut Numbers) {
    let windows = &measured.samples[..measured.traffic.len().min(measured.samples.len())];
    let n = windows.len();
    let mean = |from: usize, to: usize| {
        let to = to.min(n);
        windows[from..to].iter().map(|s| s.transactions).sum::<u64>() as f64 / (to - from) as f64
    };
    let steady = mean((n as f64 * (1.0 - STEADY)) as usize, n);
    let reached = (0..n).find(|&at| mean(at.saturating_sub(2), at + 3) >= 0.9 * steady).unwrap_or(n);
    found.set("ramp hours", HOURS * reached as f64 * run.window.as_secs_f64() / run.duration.as_secs_f64());
    found.set("start", mean(0, (n / 20).max(1)) / steady.max(1e-9));
}

/// Transactions per second in the worst window of the 40 minutes after a checkpoint's beginning, over their mean, as `name`; the mean over the last three
/// quarters of the run at each of these windows. Without sharp checkpoints: as if there were one `every` so often, for what chance makes of so few.
fn dip_of(measured: &Measured, run: Run, every: Duration, name: &'static str, found: &mut Numbers) {
    let n = measured.traffic.len().min(measured.samples.len());
    let period = ((every.as_secs_f64() / run.window.as_secs_f64()).round() as usize).max(PHASES);
    let begins: Vec<usize> =
        (1..).map(|at| at * period).take_while(|at| at + PHASES <= n).filter(|at| *at >= n / 4).collect();
    if begins.is_empty() {
        return;
    }
    let phase = |at: usize| begins.iter().map(|begin| measured.samples[begin + at].transactions).sum::<u64>() as f64;
    let least = (0..PHASES).map(phase).fold(f64::INFINITY, f64::min) / begins.len() as f64;
    let mean = measured.samples[n / 4..n].iter().map(|s| s.transactions).sum::<u64>() as f64 / (n - n / 4) as f64;
    found.set(name, least / mean.max(1e-9));
}

/// What sharp checkpoints cost, in the last three quarters of the run. `checkpoint minutes`: how long one takes, in minutes of the thesis's machine; `during`:
/// transactions per second in the windows that one touches over those in the others; `lost minutes`: both together.
fn checkpoints_of(measured: &Measured, run: Run, made: &[(f64, f64)], shrunk: Shrunk, found: &mut Numbers) {
    let n = measured.traffic.len().min(measured.samples.len());
    let width = run.window.as_secs_f64();
    let first = n / 4;
    let made: Vec<(f64, f64)> = made
        .iter()
        .copied()
        .filter(|(begin, end)| *begin >= first as f64 * width && *end <= n as f64 * width)
        .collect();
    if made.is_empty() {
        return;
    }
    let (mut during, mut others) = ((0u64, 0u64), (0u64, 0u64));
    for (at, sample) in measured.samples[first..n].iter().enumerate() {
        let (begin, end) = ((first + at) as f64 * width, (first + at + 1) as f64 * width);
        let touched = made.iter().any(|of| of.0 < end && of.1 > begin);
        let of = if touched { &mut during } else { &mut others };
        *of = (of.0 + sample.transactions, of.1 + 1);
    }
    let rate = |of: (u64, u64)| of.0 as f64 / of.1.max(1) as f64;
    let depth = rate(during) / rate(others).max(1e-9);
    let seconds = made.iter().map(|(begin, end)| end - begin).sum::<f64>() / made.len() as f64;
    let minutes = seconds * shrunk.factor as f64 / 60.0;
    found.set("checkpoint minutes", minutes).set("during", depth).set("lost minutes", minutes * (1.0 - depth));
}

fn designs(scale: Scale) -> Plan {
    let shrunk = Shrunk::of(scale);
    let mut cases = vec![];
    let loadings = SIZES.map(|(_, times)| shrunk.loading(times));
    for ((size, _), loading) in SIZES.iter().zip(&loadings) {
        for (name, design) in DESIGNS {
            let machine = shrunk.sharp(design, LAMBDA);
            cases.push(shrunk.often(format!("{size} {name}"), machine, loading));
        }
    }
    for ((size, _), loading) in SIZES[..2].iter().zip(&loadings) {
        for (name, design) in DESIGNS.into_iter().filter(|(name, _)| [NONE, DW].contains(name)) {
            let machine = Machine { statement_cpu: STATEMENT_CPU * SLOW, ..shrunk.sharp(design, LAMBDA) };
            cases.push(shrunk.often(format!("{size} {name}{SLOWER}"), machine, loading));
        }
    }
    let mut config = shrunk.config_often();
    config.push(("slow CPU: times slower", SLOW.into()));
    Plan { config, cases, judge: Box::new(judge::designs) }
}

/// What the thesis's ten hours are here: the ramp is to be over before the last fifth begins.
const HOURS: f64 = 15.0;

fn ramp(scale: Scale) -> Plan {
    let shrunk = Shrunk::larger(scale);
    let mut cases = vec![];
    for (size, times) in &SIZES[1..] {
        let loading = shrunk.loading(*times);
        for (name, design) in DESIGNS.into_iter().filter(|(name, _)| *name != CW) {
            let machine = shrunk.sharp(design, LAMBDA);
            cases.push(shrunk.often(format!("{size} {name}"), machine, &loading));
        }
    }
    Plan { config: shrunk.config_often(), cases, judge: Box::new(judge::ramp) }
}

fn traffic(scale: Scale) -> Plan {
    let shrunk = Shrunk::of(scale);
    let machine = shrunk.sharp(Some(WritePolicy::DualWrite), LAMBDA);
    let case = shrunk.often(format!("20K {DW}"), machine, &shrunk.loading(1.0));
    Plan { config: shrunk.config_often(), cases: vec![case], judge: Box::new(judge::traffic) }
}

const OFTEN: &str = "40 min";
const SELDOM: &str = "5 h";
const INDIRECT: &str = "indirect";
/// Hours between sharp checkpoints.
const SHORT: f64 = 2.0 / 3.0;
const LONG: f64 = 5.0;
/// Hours of a run: the thesis looks at what comes after the ramp, too, and four of the seldom checkpoints are to count.
const AFTER: f64 = 30.0;

fn checkpoints(scale: Scale) -> Plan {
    let shrunk = Shrunk::larger(scale);
    let loading = shrunk.loading(1.0);
    let run = shrunk.run(AFTER, (AFTER / SHORT).round() as u32 * PHASES as u32);
    let mut cases = vec![];
    for (name, design) in [(DW, WritePolicy::DualWrite), (LC, WritePolicy::LazyCleaning)] {
        for (when, every, lambda) in [(OFTEN, Some(SHORT), LAMBDA), (SELDOM, Some(LONG), 0.5), (INDIRECT, None, 0.5)] {
            let design = Some(design);
            let machine = if every.is_some() { shrunk.sharp(design, lambda) } else { shrunk.machine(design, lambda) };
            let every = every.map(|hours| shrunk.hours(hours));
            cases.push(shrunk.case(format!("{name}, {when}"), machine, &loading, run, every));
        }
    }
    let indirect = shrunk.machine(Some(WritePolicy::DualWrite), LAMBDA);
    let made = "sharp, every 40 min or 5 h; indirect, by redo_bound";
    let config = shrunk.config(&indirect, AFTER, "0.01 (40 min), 0.5 (5 h, indirect)", made);
    Plan { config, cases, judge: Box::new(judge::checkpoints) }
}
