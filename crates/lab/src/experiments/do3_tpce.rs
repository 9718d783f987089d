//! TPC-E with a flash tier: J. Do's thesis, section 3.4.3 (figures 3.1 d-f, 3.8, 3.9 and 3.10).
//!
//! The thesis's machine, shrunk: database, memory, flash tier, run time and checkpoint intervals by the same factor,
//! devices as they were. There are fewer customers, each with a thousand trades (the specification has 17,280), so that
//! the newest fifty that a trade status shows are few of an account's; and as many brokers as the thesis's customers
//! had, for each trade's result changes one of their rows.
//!
//! Checkpoints are the thesis's: all that is dirty goes home at once, every 40 minutes. The engine's own are indirect,
//! spread out with as much log to repeat; `do/fig3.10` compares them. Different from the thesis: log and undo lie on a
//! fast device of their own (there the log had a disk of its own). There are no double-writes, as there.
mod judge;

use super::case::{self, CW, DESIGNS, DW, LC, Loading, NONE, TAC, designed, named, numbers};
use super::do3_tpcc::STATEMENT_CPU;
use super::sharp::Sharp;
use crate::experiment::{Case, Experiment, Numbers, Plan, Runner, Scale, Value};
use crate::machine::{Machine, Measured, Run, Traffic};
use crate::tpce::{Sizes, TpcE};
use std::sync::Arc;
use std::time::Duration;
use terrace_storage::StorageConfig;
use terrace_storage::config::WritePolicy;

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
        id: "do/fig3.8-fill",
        shows: "What the hours until the tier is full hang on: how many pages a second the disks read",
        source: "J. Do, thesis (2012), figure 3.8 and section 3.4.3.1",
        plan: fill,
    },
    Experiment {
        id: "do/fig3.9",
        shows: "TPC-E's traffic to disks and flash under dual writes: in steady state the disks are the limit",
        source: "J. Do, thesis (2012), figure 3.9 and section 3.4.3.2",
        plan: traffic,
    },
    Experiment {
        id: "do/fig3.10",
        shows: "TPC-E under sharp checkpoints: each is a dip, deeper with lazy cleaning; indirect checkpoints have \
                none",
        source: "J. Do, thesis (2012), figure 3.10 and section 3.4.3.3",
        plan: checkpoints,
    },
];

/// Trades of a customer. With the rest of the tables that is the thesis's bytes, shrunk.
const TRADES: u32 = 1000;
/// λ for TPC-E (table 3.2).
pub(super) const LAMBDA: f64 = 0.01;
/// The part of a run at its end that counts as steady state.
const STEADY: f64 = 0.2;
/// What the order of 10K and 20K may hang on: times the CPU that a statement costs, times the memory.
const SWEEP: [(&str, u32, f64); 4] =
    [(", CPU x 50", 50, 1.0), (", CPU x 250", 250, 1.0), (", memory x 1/2", 1, 0.5), (", memory x 2", 1, 2.0)];
/// Without a tier the disks do all that they can with so many. With 80 they did 0.89 of it at 10K (quick): 30 of these
/// waited for pages that others were reading.
pub(super) const TERMINALS: usize = 128;
/// The thesis's customers by the name of the database, and what of 20,000 they are.
const SIZES: [(&str, f64); 3] = [("10K", 0.5), ("20K", 1.0), ("40K", 2.0)];
/// Windows in 40 minutes at which throughput is looked at (`do/fig3.10`).
const PHASES: usize = 12;
/// The thesis's 20,000 customers have 10 brokers for each thousand (clause 2.6.1).
const BROKERS: f64 = 200.0;
/// The thesis's bytes and hours, divided by a factor.
#[derive(Clone, Copy)]
pub(super) struct Shrunk {
    pub(super) factor: u64,
    /// For the thesis's 20,000.
    customers: u32,
}

impl Shrunk {
    pub(super) fn of(scale: Scale) -> Shrunk {
        scale.pick(Shrunk { factor: 4000, customers: 88 }, Shrunk { factor: 2000, customers: 176 })
    }

    /// Larger, where stretches of a run are compared: more transactions in each.
    pub(super) fn larger(scale: Scale) -> Shrunk {
        scale.pick(Shrunk::of(scale), Shrunk { factor: 1000, customers: 352 })
    }

    fn hours(&self, hours: f64) -> Duration {
        Duration::from_secs_f64(hours * 3600.0 / self.factor as f64)
    }

    pub(super) fn loading(&self, size: f64) -> Arc<Loading<TpcE>> {
        self.loading_with(size, TRADES, 1)
    }

    /// With so many trades of a customer, and fewer customers for it; with so many times the updates.
    pub(super) fn loading_with(&self, size: f64, trades: u32, updates: u32) -> Arc<Loading<TpcE>> {
        let customers = (f64::from(self.customers) * size) as u32 * TRADES / trades;
        let brokers = (BROKERS * size) as u32;
        Loading::new(TpcE::new(Sizes { customers, trades, days: 25, watched: 20, brokers, updates }))
    }

    pub(super) fn machine(&self, design: Option<WritePolicy>, lambda: f64) -> Machine {
        Machine {
            data: case::disks(self.factor),
            log: named("nvme-datacentre"),
            flash: design.map(|_| named("iodrive-160")),
            cores: 8,
            storage: StorageConfig {
                pool_bytes: ((20 << 30) / self.factor) as usize,
                redo_bound: (8 << 30) / self.factor,
                log_retention: (64 << 30) / self.factor,
                segment_size: 1 << 20,
                flash: designed(case::chapter3((140 << 30) / self.factor, lambda), design),
                ..StorageConfig::default()
            },
            statement_cpu: STATEMENT_CPU,
            whole_pages: true,
            seed: 0,
        }
    }

    /// With checkpoints as the thesis's server made them, at fixed times: nothing goes home by age; lazy cleaning lets
    /// nothing dirty in meanwhile (section 3.3.2); all that is dirty is in the disks' queue at once.
    pub(super) fn sharp(&self, design: Option<WritePolicy>, lambda: f64) -> Machine {
        let mut machine = self.grouped(design, lambda);
        machine.storage.sharp_checkpoints = true;
        machine
    }

    /// The same, but pages go home in the engine's groups, and dirty ones enter the tier meanwhile.
    fn grouped(&self, design: Option<WritePolicy>, lambda: f64) -> Machine {
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
                    ramp_of(&measured, &machine, run, shrunk, &mut found);
                    after_the_ramp(&measured, &mut found);
                    checkpoints_of(&measured, run, &workload.made(), shrunk, &mut found);
                    Ok(found)
                }
            }
        });
        Case { label, work: run.duration.as_secs_f64(), run: runner }
    }

    /// As the thesis ran TPC-E but for figure 3.10: checkpoints every 40 minutes.
    pub(super) fn often(&self, label: String, machine: Machine, loading: &Arc<Loading<TpcE>>, hours: f64) -> Case {
        self.case(label, machine, loading, self.run(hours, 60), Some(self.hours(SHORT)))
    }

    pub(super) fn config_often(&self, hours: f64) -> Vec<(&'static str, Value)> {
        self.config(&self.sharp(Some(WritePolicy::DualWrite), LAMBDA), hours, "0.01", "sharp, every 40 min")
    }

    fn config(
        &self,
        machine: &Machine,
        hours: f64,
        lambda: &'static str,
        checkpoints: &'static str,
    ) -> Vec<(&'static str, Value)> {
        let mut rows: Vec<(&str, Value)> = vec![
            ("workload", "TPC-E-like, no think times".into()),
            ("shrunk by", self.factor.into()),
            ("customers (for the thesis's 20,000)", self.customers.into()),
            ("trades per customer", TRADES.into()),
            ("brokers (for the thesis's 20,000 customers), unscaled", BROKERS.into()),
            ("terminals", TERMINALS.into()),
            ("virtual seconds", self.hours(hours).as_secs_f64().into()),
            ("hours of the thesis's machine", hours.into()),
            ("steady state: last part of the run", STEADY.into()),
            ("data device", "hdd-8x7200, seeks as over the whole database".into()),
            ("replacement", "LRU-2".into()),
            ("lambda (dirty_fraction)", lambda.into()),
            ("checkpoints, scaled", checkpoints.into()),
            ("CPU per statement, us", (machine.statement_cpu.as_micros() as u64).into()),
        ];
        rows.extend(case::machine_rows(machine));
        rows
    }
}

/// `fill hours`: the hours of the thesis's machine until the tier first holds nine tenths of what it holds in the end,
/// which is what the ramp waits for; `fill reads`, `fill writes`: operations of the disks a second until then; `fill
/// pages`: reads of the disks until then for each page that the tier holds then; `start`: what transactions per second
/// are in the run's first twentieth, of their steady state.
fn ramp_of(measured: &Measured, machine: &Machine, run: Run, shrunk: Shrunk, found: &mut Numbers) {
    let n = measured.traffic.len().min(measured.samples.len());
    let windows = &measured.samples[..n];
    let mean = |from: usize, to: usize| {
        let to = to.min(n);
        windows[from..to].iter().map(|s| s.transactions).sum::<u64>() as f64 / (to - from) as f64
    };
    let steady = mean((n as f64 * (1.0 - STEADY)) as usize, n);
    found.set("start", mean(0, (n / 20).max(1)) / steady.max(1e-9));
    if machine.flash.is_some() {
        let last = measured.traffic[n - 1].tier_used;
        let full = measured.traffic[..n].iter().position(|t| t.tier_used * 10 >= last * 9).unwrap_or(n).max(1);
        let seconds = run.duration.as_secs_f64() * full as f64 / n as f64;
        found.set("fill hours", seconds * shrunk.factor as f64 / 3600.0);
        let until = |of: fn(&Traffic) -> u64| measured.traffic[..full].iter().map(of).sum::<u64>() as f64 / seconds;
        found.set("fill reads", until(|t| t.data.reads)).set("fill writes", until(|t| t.data.writes));
        let frames = measured.traffic[..n].get(full).unwrap_or(&measured.traffic[n - 1]).tier_used;
        found.set("fill pages", until(|t| t.data.reads) * seconds / frames.max(1) as f64);
    }
}

/// `least`: transactions in the slowest stretch of [`case::ENOUGH`] or more over the mean, in the last three quarters
/// of the run.
fn after_the_ramp(measured: &Measured, found: &mut Numbers) {
    let n = measured.traffic.len().min(measured.samples.len());
    found.set("least", case::slowest_stretch(&measured.samples[n / 4..n]).0);
}

/// What sharp checkpoints cost, in the last three quarters of the run. `checkpoint minutes`: how long one takes, in
/// minutes of the thesis's machine; `during`: transactions per second in the windows that one touches over those in the
/// others; `lost minutes`: both together.
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
    for ((size, _), loading) in SIZES.iter().zip(&loadings).take(scale.pick(2, 3)) {
        for (name, design) in DESIGNS {
            let machine = shrunk.sharp(design, LAMBDA);
            cases.push(shrunk.often(format!("{size} {name}"), machine, loading, HOURS));
        }
    }
    for ((size, _), loading) in SIZES.iter().zip(&loadings).take(scale.pick(0, 2)) {
        for (name, design) in DESIGNS.into_iter().filter(|(name, _)| [NONE, DW].contains(name)) {
            for (what, cpu, memory) in SWEEP {
                let mut machine = Machine { statement_cpu: STATEMENT_CPU * cpu, ..shrunk.sharp(design, LAMBDA) };
                machine.storage.pool_bytes = (machine.storage.pool_bytes as f64 * memory) as usize;
                cases.push(shrunk.often(format!("{size} {name}{what}"), machine, loading, HOURS));
            }
        }
    }
    let sizes: Vec<&'static str> = SIZES.iter().map(|(size, _)| *size).take(scale.pick(2, 3)).collect();
    Plan { config: shrunk.config_often(HOURS), cases, judge: Box::new(move |results| judge::designs(results, &sizes)) }
}

/// What the thesis's ten hours are here: the ramp is to be over before the last fifth begins.
pub(super) const HOURS: f64 = 15.0;

fn ramp(scale: Scale) -> Plan {
    let shrunk = Shrunk::larger(scale);
    let mut cases = vec![];
    for (size, times) in &SIZES[1..] {
        let loading = shrunk.loading(*times);
        for (name, design) in DESIGNS.into_iter().filter(|(name, _)| *name != CW) {
            let machine = shrunk.sharp(design, LAMBDA);
            cases.push(shrunk.often(format!("{size} {name}"), machine, &loading, HOURS));
        }
    }
    Plan { config: shrunk.config_often(HOURS), cases, judge: Box::new(judge::ramp) }
}

/// Dual writes: size, trades of a customer, times the updates, disks of the array's eight.
const FILLS: [(&str, f64, u32, u32, u64); 6] = [
    ("20K", 1.0, TRADES, 1, 8),
    ("20K, 4 times the trades", 1.0, 4 * TRADES, 1, 8),
    ("20K, updates x 8", 1.0, TRADES, 8, 8),
    ("20K, six disks", 1.0, TRADES, 1, 6),
    ("40K", 2.0, TRADES, 1, 8),
    ("40K, six disks", 2.0, TRADES, 1, 6),
];

fn fill(scale: Scale) -> Plan {
    let shrunk = Shrunk::of(scale);
    let cases = FILLS.map(|(label, size, trades, updates, disks)| {
        let mut machine = shrunk.sharp(Some(WritePolicy::DualWrite), LAMBDA);
        machine.data = machine.data.with_spindles(disks);
        shrunk.often(label.into(), machine, &shrunk.loading_with(size, trades, updates), HOURS)
    });
    Plan { config: shrunk.config_often(HOURS), cases: cases.into(), judge: Box::new(judge::fill) }
}

fn traffic(scale: Scale) -> Plan {
    let shrunk = Shrunk::of(scale);
    let machine = shrunk.sharp(Some(WritePolicy::DualWrite), LAMBDA);
    let case = shrunk.often(format!("20K {DW}"), machine, &shrunk.loading(1.0), HOURS);
    Plan { config: shrunk.config_often(HOURS), cases: vec![case], judge: Box::new(judge::traffic) }
}

const OFTEN: &str = "40 min";
const SELDOM: &str = "5 h";
const INDIRECT: &str = "indirect";
/// [`Shrunk::grouped`].
const GROUPED: &str = "5 h, in groups";
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
        let kinds = [
            (OFTEN, Some(SHORT), LAMBDA),
            (SELDOM, Some(LONG), 0.5),
            (GROUPED, Some(LONG), 0.5),
            (INDIRECT, None, 0.5),
        ];
        for (when, every, lambda) in kinds {
            let design = Some(design);
            let machine = match when {
                INDIRECT => shrunk.machine(design, lambda),
                GROUPED => shrunk.grouped(design, lambda),
                _ => shrunk.sharp(design, lambda),
            };
            let every = every.map(|hours| shrunk.hours(hours));
            cases.push(shrunk.case(format!("{name}, {when}"), machine, &loading, run, every));
        }
    }
    let indirect = shrunk.machine(Some(WritePolicy::DualWrite), LAMBDA);
    let made = "sharp, every 40 min or 5 h; indirect, by redo_bound";
    let config = shrunk.config(&indirect, AFTER, "0.01 (40 min), 0.5 (5 h, indirect)", made);
    Plan { config, cases, judge: Box::new(judge::checkpoints) }
}
