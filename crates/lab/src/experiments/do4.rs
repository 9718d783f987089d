//! Warm restart: J. Do's thesis, chapter 4 (figures 4.2 and 4.9 to 4.15). Each case begins with an empty tier, runs to
//! its peak, is shut down or crashes there, starts again on what is left, and runs to its peak again ([`lives`]).
//!
//! The workloads are chapter 3's ([`do3_tpcc`], [`do3_tpce`]), on chapter 4's machine: eighteen disks, 24 GB of memory,
//! lambda 20%, indirect checkpoints, reads expanded to 8 pages while the tier is being filled. Database, memory, tier,
//! hours and the log that a restart may have to repeat shrink by the same factor; devices keep their speed, with seeks
//! as long as over the whole database. There are no double-writes, as there.
//!
//! Restart methods are those that the engine has: cold (the thesis's SSDBP), memory-mapped (its MMR, but many records
//! are made hard with one sync, and the log says which frames are dirty), log-based (its LBR, with a table of frames
//! where the last is old, not at each checkpoint), lazy verification (its LVR, but the log decides what is current, and
//! no frame is read for the opening's sake), instant (the same, and changes are repeated when their page is read).
//!
//! Different from the thesis: a server that restarts warm is not made to write its memory home when it is shut down
//! (`terrace stop` leaves changed pages to tier and log). Where it says *written home*, it was made to, and so is the
//! one that restarts cold; the tier's dirty pages go home then, too (there they stayed).
mod judge;
mod lives;

use super::case::{self, DW, LC, Loading, named};
use super::{do3_tpcc, do3_tpce};
use crate::experiment::{Case, Experiment, Findings, Plan, Results, Scale, Value};
use crate::machine::{Machine, Run};
use crate::tpcc::TpcC;
use crate::tpce::TpcE;
use crate::workload::Workload;
use judge::Paper;
use lives::{End, Steps};
use std::sync::Arc;
use std::time::Duration;
use terrace_storage::StorageConfig;
use terrace_storage::config::{Restart, WritePolicy};

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "do/fig4.2",
        shows: "TPC-E after a shutdown, dual writes: a warm tier and expanded reads against chapter 3's cold start",
        source: "J. Do, thesis (2012), figure 4.2 and section 4.1",
        plan: |scale| overview(&tpce(scale)),
    },
    Experiment {
        id: "do/fig4.9",
        shows: "the ramp from an empty tier, dual writes: eight pages read where one was missed fill it sooner",
        source: "J. Do, thesis (2012), figure 4.9 and section 4.4.1.1",
        plan: fill,
    },
    Experiment {
        id: "do/fig4.10",
        shows: "TPC-C after a shutdown: to be able to restart warm costs no throughput",
        source: "J. Do, thesis (2012), figure 4.10 and section 4.4.2.1",
        plan: |scale| sustained(&tpcc(scale), judge::TPCC_SUSTAINED),
    },
    Experiment {
        id: "do/fig4.11",
        shows: "TPC-C shut down and started: from peak to peak, and each phase's time",
        source: "J. Do, thesis (2012), figure 4.11 and section 4.4.2.2",
        plan: |scale| intervals(&tpcc(scale), stops(scale), judge::TPCC_STOP),
    },
    Experiment {
        id: "do/fig4.12",
        shows: "TPC-C crashed and restarted: from peak to peak, and each phase's time",
        source: "J. Do, thesis (2012), figure 4.12 and section 4.4.2.2",
        plan: |scale| intervals(&tpcc(scale), CRASHES.into(), judge::TPCC_CRASH),
    },
    Experiment {
        id: "do/fig4.13",
        shows: "TPC-E after a shutdown: to be able to restart warm costs no throughput",
        source: "J. Do, thesis (2012), figure 4.13 and section 4.4.3.1",
        plan: |scale| sustained(&tpce(scale), judge::TPCE_SUSTAINED),
    },
    Experiment {
        id: "do/fig4.14",
        shows: "TPC-E shut down and started: from peak to peak, and each phase's time",
        source: "J. Do, thesis (2012), figure 4.14 and section 4.4.3.2",
        plan: |scale| intervals(&tpce(scale), stops(scale), judge::TPCE_STOP),
    },
    Experiment {
        id: "do/fig4.15",
        shows: "TPC-E crashed and restarted: from peak to peak, and each phase's time; the tier is not read for it",
        source: "J. Do, thesis (2012), figure 4.15 and section 4.4.3.2",
        plan: |scale| intervals(&tpce(scale), CRASHES.into(), judge::TPCE_CRASH),
    },
];

/// How a machine ends its first life, and what it does with the tier in its second.
#[derive(Clone, Copy)]
struct Method {
    name: &'static str,
    restart: Restart,
    end: End,
}

const fn method(name: &'static str, restart: Restart, end: End) -> Method {
    Method { name, restart, end }
}

const COLD: &str = "cold";
const MAPPED: &str = "memory-mapped";
const LOGGED: &str = "log-based";
const LAZY: &str = "lazy verification";
const INSTANT: &str = "instant";
const WRITTEN: &str = "lazy verification, written home";

const STOPS: [Method; 6] = [
    method(COLD, Restart::Cold, End::Clean),
    method(MAPPED, Restart::MemoryMapped, End::Fast),
    method(LOGGED, Restart::LogBased, End::Fast),
    method(WRITTEN, Restart::LazyVerification, End::Clean),
    method(LAZY, Restart::LazyVerification, End::Fast),
    method(INSTANT, Restart::Instant, End::Fast),
];

fn stops(scale: Scale) -> Vec<Method> {
    STOPS.into_iter().filter(|method| scale == Scale::Full || method.name != WRITTEN).collect()
}

const CRASHES: [Method; 5] = [
    method(COLD, Restart::Cold, End::Crash),
    method(MAPPED, Restart::MemoryMapped, End::Crash),
    method(LOGGED, Restart::LogBased, End::Crash),
    method(LAZY, Restart::LazyVerification, End::Crash),
    method(INSTANT, Restart::Instant, End::Crash),
];
const POLICIES: [(&str, WritePolicy); 2] = [(DW, WritePolicy::DualWrite), (LC, WritePolicy::LazyCleaning)];

/// Chapter 4's λ, and the pages that a read is expanded to.
const LAMBDA: f64 = 0.2;
const EXPANDED: u32 = 8;
const MEMORY: u64 = 24 << 30;
/// The thesis's pass over the records of frames takes 64 seconds. Here the inventory of all frames takes about five
/// rounds.
const ROUND: Duration = Duration::from_millis(10);

const WRITER: &str = "background writer's and inventory's interval, s, a tenth of the default";

/// Of a customer, in a quarter of chapter 3's customers: half as many pages are read from flash for a transaction
/// (measured for `do/fig3.9`), and the flash device is not the limit of everything.
const TRADES: u32 = 4000;

/// A workload on the thesis's machine, shrunk.
struct Bench<W> {
    factor: u64,
    terminals: usize,
    loading: Arc<Loading<W>>,
    /// The workload as it was when it was loaded.
    fresh: fn(&W) -> W,
    machine: Machine,
    /// Of the thesis's: before the end of the first life, and after it.
    hours: (f64, f64),
    /// The same where reads are not expanded.
    long_hours: (f64, f64),
    config: Vec<(&'static str, Value)>,
}

/// Chapter 4's machine. `bound`: bytes of log that a restart may have to repeat.
fn chapter4(machine: Machine, factor: u64, bound: u64) -> Machine {
    let storage = machine.storage;
    let flash = terrace_storage::FlashConfig { dirty_fraction: LAMBDA, expanded_read: EXPANDED, ..storage.flash };
    let storage = StorageConfig {
        pool_bytes: (MEMORY / factor) as usize,
        redo_bound: bound,
        log_retention: 2 * bound,
        segment_size: 256 << 10,
        writer_interval: ROUND,
        sharp_checkpoints: false,
        flash,
        ..storage
    };
    Machine { data: named("hdd-18x10k").shrunk(factor), storage, ..machine }
}

fn tpcc(scale: Scale) -> Bench<TpcC> {
    let shrunk = do3_tpcc::shrunk(scale);
    let factor = shrunk.factor;
    let loading = shrunk.workload(1.0);
    let machine = chapter4(shrunk.machine(Some(WritePolicy::DualWrite), LAMBDA), factor, (8 << 30) / factor);
    let (hours, long_hours) = scale.pick(((2.5, 2.0), (8.0, 8.0)), ((6.0, 4.0), (20.0, 20.0)));
    let of = &loading.workload;
    let config = vec![
        ("workload", "TPC-C, no think times".into()),
        ("warehouses", of.warehouses.into()),
        ("items (stock rows per warehouse)", of.items.into()),
        ("customers per district", of.customers.into()),
    ];
    Bench { factor, terminals: shrunk.terminals, fresh: |of| *of, machine, hours, long_hours, config, loading }
}

fn tpce(scale: Scale) -> Bench<TpcE> {
    let shrunk = scale.pick(do3_tpce::Shrunk::of(Scale::Full), do3_tpce::Shrunk::larger(Scale::Full));
    let factor = shrunk.factor;
    let loading = shrunk.loading_with(1.0, TRADES, 1);
    let machine = chapter4(shrunk.machine(Some(WritePolicy::DualWrite), LAMBDA), factor, (2 << 30) / factor);
    let (hours, long_hours) = scale.pick(((3.0, 2.0), (10.0, 10.0)), ((6.0, 4.0), (20.0, 20.0)));
    let config = vec![("workload", "TPC-E-like, no think times".into()), ("trades per customer", TRADES.into())];
    Bench { factor, terminals: do3_tpce::TERMINALS, fresh: TpcE::fresh, machine, hours, long_hours, config, loading }
}

impl<W: Workload> Bench<W> {
    fn machine(&self, policy: WritePolicy, restart: Restart, expanded: u32) -> Machine {
        let mut machine = self.machine.clone();
        let flash = &mut machine.storage.flash;
        (flash.write, flash.restart, flash.expanded_read) = (policy, restart, expanded);
        machine
    }

    fn steps(&self, (before, after): (f64, f64)) -> Steps {
        let run = |hours: f64| {
            let duration = Duration::from_secs_f64(hours * 3600.0 / self.factor as f64);
            // Two minutes of the thesis's machine.
            Run { terminals: self.terminals, duration, window: Duration::from_secs_f64(120.0 / self.factor as f64) }
        };
        Steps { before: run(before), after: run(after) }
    }

    fn case(&self, policy: (&str, WritePolicy), method: Method) -> Case {
        let machine = self.machine(policy.1, method.restart, EXPANDED);
        lives::case(
            &label(policy.0, method.name),
            machine,
            &self.loading,
            self.fresh,
            self.steps(self.hours),
            method.end,
        )
    }

    fn cases(&self, methods: &[Method]) -> Vec<Case> {
        POLICIES.into_iter().flat_map(|policy| methods.iter().map(move |m| self.case(policy, *m))).collect()
    }

    fn config(&self) -> Vec<(&'static str, Value)> {
        let mut rows = self.config.clone();
        let steps = self.steps(self.hours);
        rows.extend([
            ("shrunk by", self.factor.into()),
            ("terminals", self.terminals.into()),
            ("virtual seconds before the restart", steps.before.duration.as_secs_f64().into()),
            ("virtual seconds after it", steps.after.duration.as_secs_f64().into()),
            (do3_tpcc::STEADY_PART, lives::STEADY.into()),
            ("data device", "hdd-18x10k, seeks as over the whole database".into()),
            ("replacement", "LRU-2".into()),
            ("lambda (dirty_fraction)", LAMBDA.into()),
            ("log_retention bytes", self.machine.storage.log_retention.into()),
            ("crash", "nothing survives that was not synced; the tier's device keeps what was written".into()),
            ("CPU per statement, us", (self.machine.statement_cpu.as_micros() as u64).into()),
        ]);
        let machine = case::machine_rows(&self.machine).into_iter();
        rows.extend(machine.map(|(name, value)| (if name == case::WRITER { WRITER } else { name }, value)));
        rows
    }

    fn plan(&self, cases: Vec<Case>, judge: impl Fn(&Results) -> Findings + Send + Sync + 'static) -> Plan {
        Plan { config: self.config(), cases, judge: Box::new(judge) }
    }
}

fn label(policy: &str, method: &str) -> String {
    format!("{policy}, {method}")
}

/// Chapter 3's tier: reads are not expanded.
const OLD: &str = "cold, reads not expanded";

fn overview<W: Workload>(bench: &Bench<W>) -> Plan {
    let old = bench.machine(WritePolicy::DualWrite, Restart::Cold, 1);
    let steps = bench.steps(bench.long_hours);
    let mut cases = vec![lives::case(&label(DW, OLD), old, &bench.loading, bench.fresh, steps, End::Clean)];
    cases.extend(STOPS.map(|method| bench.case(POLICIES[0], method)));
    bench.plan(cases, judge::overview)
}

fn fill(scale: Scale) -> Plan {
    let (c, e) = (tpcc(scale), tpce(scale));
    let mut cases = fills(&c, judge::FILLED[0].0);
    cases.extend(fills(&e, judge::FILLED[1].0));
    let mut plan = c.plan(cases, judge::fill);
    plan.config.push(("TPC-E: shrunk by", e.factor.into()));
    plan.config.push(("TPC-E: memory bytes", e.machine.storage.pool_bytes.into()));
    plan.config.push(("TPC-E: flash tier bytes", e.machine.storage.flash.size.into()));
    plan
}

const EXPANDED_TO: [(&str, u32); 2] = [("one page", 1), ("eight pages", EXPANDED)];

fn fills<W: Workload>(bench: &Bench<W>, name: &str) -> Vec<Case> {
    let run = bench.steps(bench.long_hours).before;
    let case = |(to, pages)| {
        let machine = bench.machine(WritePolicy::DualWrite, Restart::Cold, pages);
        lives::first(&label(name, to), machine, &bench.loading, bench.fresh, run)
    };
    EXPANDED_TO.map(case).into()
}

fn sustained<W: Workload>(bench: &Bench<W>, papers: &'static [Paper]) -> Plan {
    let methods: Vec<Method> = STOPS.into_iter().filter(|method| method.name != WRITTEN).collect();
    bench.plan(bench.cases(&methods), move |results| judge::sustained(results, &methods, papers))
}

fn intervals<W: Workload>(bench: &Bench<W>, methods: Vec<Method>, papers: &'static [Paper]) -> Plan {
    bench.plan(bench.cases(&methods), move |results| judge::intervals(results, &methods, papers))
}

#[cfg(test)]
mod tests;
