//! TPC-C with a flash tier: J. Do's thesis, section 3.4.2 (figures 3.1 a-c, 3.6 and 3.7).
//!
//! The thesis's machine, shrunk: database, memory, flash tier and run time by the same factor; devices as they were,
//! with seeks as long as over the whole database. What is hot lies in the rows of a warehouse, so there are fewer
//! warehouses, a quarter of the specification's size each: 25,000 items with customers and orders in proportion.
//! Reports say what skew came of it. Checkpoints are off there; here `redo_bound` is beyond what a run writes.
//!
//! The tier does what chapter 3's does, and no more: no expanded reads (chapter 4), and no history of pages that
//! changed in LRU-2 (section 3.3.1: the times of the last two accesses are the frame's).
//!
//! Different from the thesis: log and undo lie on a fast device of their own (there the log had a disk of its own);
//! only pages of tables and indexes enter the tier. There are no double-writes, as there, and what is written is in the
//! disks' queue at once.
use super::case::{self, CW, DESIGNS, DW, LC, Loading, NONE, TAC, case, designed, named};
use crate::experiment::{Case, Experiment, Findings, Plan, Results, Scale, Value};
use crate::machine::{Machine, Run};
use crate::tpcc::{TpcC, specified};
use std::sync::Arc;
use std::time::Duration;
use terrace_storage::StorageConfig;
use terrace_storage::config::{FlashOrder, WritePolicy};

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "do/fig3.1-c",
        shows: "TPC-C with each write policy of the flash tier against none: lazy cleaning wins, \
                for it saves disk writes",
        source: "J. Do, thesis (2012), figure 3.1 (a)-(c) and section 3.4.2",
        plan: designs,
    },
    Experiment {
        id: "do/fig3.6",
        shows: "TPC-C over time from a cold start: lazy cleaning drops when dirty pages reach lambda",
        source: "J. Do, thesis (2012), figure 3.6 and section 3.4.2.1",
        plan: over_time,
    },
    Experiment {
        id: "do/fig3.7",
        shows: "TPC-C with more and more dirty pages allowed in the flash tier (lambda)",
        source: "J. Do, thesis (2012), figure 3.7 and section 3.4.2.1",
        plan: lambda,
    },
];

/// Of the engine, without SQL: 3.85 us measured in real time by `examples/statement_cpu.rs` (2 cores of 2.x GHz,
/// release build).
pub(super) const STATEMENT_CPU: Duration = Duration::from_micros(4);
pub(super) const STEADY_PART: &str = "steady state: last part of the run";
/// No checkpoints, nor a background writer that anticipates them.
const UNCHECKED: Duration = Duration::from_secs(HOUR);
/// The thesis reports the last two of ten hours.
pub(super) const STEADY: f64 = 0.2;

/// The thesis's sizes, shrunk.
#[derive(Clone, Copy)]
pub(super) struct Shrunk {
    /// What the thesis's bytes and seconds are divided by.
    pub(super) factor: u64,
    pub(super) terminals: usize,
    /// Of the thesis's 2,000.
    warehouses: u32,
    /// Stock rows in a warehouse.
    items: u32,
    /// Customers in a district.
    customers: u32,
}

const HOUR: u64 = 3600;
pub(super) const HOURS: u64 = 10;
/// Until lambda = 90% is reached, and a steady state after it.
pub(super) const LAMBDA_HOURS: u64 = 25;

/// A warehouse is a quarter of the specification's: 25 MB of the thesis's 100.
pub(super) fn shrunk(scale: Scale) -> Shrunk {
    let (factor, warehouses) = scale.pick((1000, 8), (500, 16));
    Shrunk { factor, terminals: 64, warehouses, items: 25_000, customers: 750 }
}

impl Shrunk {
    /// So many times the thesis's 2,000 warehouses.
    pub(super) fn workload(&self, times: f64) -> Arc<Loading<TpcC>> {
        Loading::new(TpcC {
            warehouses: (f64::from(self.warehouses) * times) as u32,
            items: self.items,
            customers: self.customers,
            terminals: self.terminals as u32,
        })
    }

    pub(super) fn machine(&self, design: Option<WritePolicy>, lambda: f64) -> Machine {
        Machine {
            data: case::disks(self.factor),
            log: named("nvme-datacentre"),
            flash: design.map(|_| named("iodrive-160")),
            cores: 8,
            storage: StorageConfig {
                pool_bytes: ((20 << 30) / self.factor) as usize,
                redo_bound: 4 << 30,
                log_retention: 8 << 30,
                segment_size: 16 << 20,
                writer_interval: UNCHECKED,
                sharp_checkpoints: true,
                flash: designed(case::chapter3((140 << 30) / self.factor, lambda), design),
                ..StorageConfig::default()
            },
            statement_cpu: STATEMENT_CPU,
            whole_pages: true,
            seed: 0,
        }
    }

    /// So many of the thesis's hours; its own runs take ten.
    pub(super) fn run(&self, hours: u64) -> Run {
        let millis = hours * HOUR * 1000 / self.factor;
        Run { terminals: self.terminals, duration: Duration::from_millis(millis), window: Duration::from_millis(500) }
    }

    fn case(&self, label: &str, design: Option<WritePolicy>, lambda: f64, loading: &Arc<Loading<TpcC>>) -> Case {
        case(label, self.machine(design, lambda), loading, self.run(HOURS), STEADY)
    }

    pub(super) fn config(&self, times: &[f64], run: Run) -> Vec<(&'static str, Value)> {
        let machine = self.machine(Some(WritePolicy::LazyCleaning), 0.5);
        let loading = self.workload(1.0);
        let of = loading.workload.as_ref();
        let warehouses: Vec<u32> = times.iter().map(|t| (f64::from(of.warehouses) * t) as u32).collect();
        let mut rows: Vec<(&str, Value)> = vec![
            ("workload", "TPC-C, no think times".into()),
            ("shrunk by", self.factor.into()),
            ("warehouses", warehouses.into()),
            ("items (stock rows per warehouse)", of.items.into()),
            ("customers per district", of.customers.into()),
            ("terminals", self.terminals.into()),
            ("virtual seconds", run.duration.as_secs_f64().into()),
            (STEADY_PART, STEADY.into()),
            ("data device", "hdd-8x7200, seeks as over the whole database".into()),
            ("replacement", "LRU-2; of TAC: temperature of extents of 32 pages".into()),
            ("CPU per statement, us", (machine.statement_cpu.as_micros() as u64).into()),
        ];
        rows.extend(case::machine_rows(&machine));
        rows
    }
}

fn designs(scale: Scale) -> Plan {
    let times = scale.pick(vec![("2K", 1.0)], vec![("2K", 1.0), ("1K", 0.5), ("4K", 2.0)]);
    designs_of(shrunk(scale), times)
}

fn designs_of(shrunk: Shrunk, times: Vec<(&'static str, f64)>) -> Plan {
    let mut cases = vec![];
    for &(size, times) in &times {
        let loading = shrunk.workload(times);
        for (name, design) in DESIGNS {
            cases.push(shrunk.case(&format!("{size} {name}"), design, 0.5, &loading));
        }
    }
    let mut config = shrunk.config(&times.iter().map(|t| t.1).collect::<Vec<_>>(), shrunk.run(HOURS));
    config.push(("lambda (dirty_fraction)", 0.5.into()));
    let sizes: Vec<&'static str> = times.iter().map(|t| t.0).collect();
    Plan { config, cases, judge: Box::new(move |results| judge_designs(results, &sizes)) }
}

const SPEEDUP: &str = "speedup over none";
/// The thesis's, of lazy cleaning over the others, at 2,000 warehouses.
const LEAD: &str = "lazy cleaning over it";
const LEADS: [(&str, f64); 3] = [(NONE, 8.0), (DW, 4.3), (TAC, 5.4)];
const DIRTY_HITS: &str = "of the hits, dirty";

fn judge_designs(results: &Results, sizes: &[&str]) -> Findings {
    let mut found = Findings::default();
    for size in sizes {
        for (name, _) in DESIGNS {
            let label = format!("{size} {name}");
            let paper = match (*size, name) {
                (_, NONE) => Some(1.0),
                ("2K", LC) => Some(8.0),
                ("2K", DW) => Some(8.0 / 4.3),
                ("2K", TAC) => Some(8.0 / 5.4),
                _ => None,
            };
            found.row(&label, SPEEDUP, "x", results.ratio(&label, &format!("{size} {NONE}"), "counted"), paper);
        }
    }
    for label in results.labels() {
        found.row(label, "new orders", "1/s", results.interval(label, "counted"), None);
        for name in ["disk reads", "disk writes", "flash reads", "flash writes"] {
            found.row(label, name, "1/s", results.interval(label, name), None);
        }
        if !label.ends_with(NONE) {
            let paper = (label == format!("2K {LC}")).then_some(0.89);
            found.row(label, "flash hit ratio", "", results.interval(label, "hit ratio"), paper);
        }
        // The thesis's reason why writing back wins; there are none with the others.
        if label.ends_with(LC) {
            let paper = (label == format!("2K {LC}")).then_some(0.83);
            found.row(label, DIRTY_HITS, "", results.interval(label, "dirty hits"), paper);
        }
    }
    for size in sizes {
        let labels = [LC, DW, TAC, NONE].map(|name| format!("{size} {name}"));
        found.falls_paired(results, "counted", "new orders", "1/s", &labels.each_ref().map(String::as_str));
        let labels = [LC, DW, CW].map(|name| format!("{size} {name}"));
        let [lc, dw, cw] = labels.each_ref().map(|label| found.ours(label, SPEEDUP).mean);
        found.shape(format!("{size}: clean-write is the slowest of the tier's designs"), cw <= dw && cw <= lc);
    }
    for (name, paper) in LEADS.into_iter().filter(|_| sizes.contains(&"2K")) {
        let label = format!("2K {name}");
        let lead = results.ratio(&format!("2K {LC}"), &label, "counted");
        found.row(&label, LEAD, "x", lead, Some(paper));
        found.at_least(&label, LEAD, paper);
    }
    let most = found.ours(&format!("2K {LC}"), DIRTY_HITS).low > 0.5;
    found.shape(format!("2K {LC}: most of the hits are of dirty pages"), most);
    case::health(&mut found, results, &specified());
    sizes.iter().for_each(|size| case::divisor(&mut found, &format!("{size} {NONE}")));
    found.bars("Speedup over no flash tier, TPC-C", SPEEDUP, "times");
    found
}

fn over_time(scale: Scale) -> Plan {
    let shrunk = shrunk(scale);
    let times = scale.pick(vec![("2K", 1.0)], vec![("2K", 1.0), ("4K", 2.0)]);
    let mut cases = vec![];
    for &(size, times) in &times {
        let loading = shrunk.workload(times);
        for (name, design) in DESIGNS.into_iter().filter(|(name, _)| *name != CW) {
            cases.push(shrunk.case(&format!("{size} {name}"), design, 0.5, &loading));
        }
    }
    let mut config = shrunk.config(&times.iter().map(|t| t.1).collect::<Vec<_>>(), shrunk.run(HOURS));
    config.push(("lambda (dirty_fraction)", 0.5.into()));
    let sizes: Vec<&'static str> = times.iter().map(|t| t.0).collect();
    Plan { config, cases, judge: Box::new(move |results| judge_over_time(results, &sizes)) }
}

fn judge_over_time(results: &Results, sizes: &[&str]) -> Findings {
    let mut found = Findings::default();
    for size in sizes {
        let label = format!("{size} {LC}");
        let (dirty, speed) = (results.series(&label, "dirty"), results.series(&label, "counted"));
        let steady = results.interval(&label, "counted");
        found.row(&label, "new orders in steady state", "1/s", steady, None);
        let Some(knee) = dirty.iter().position(|point| point.1 >= 0.499) else {
            found.untestable(format!("{label}: dirty pages reach lambda (they did not in this run)"));
            continue;
        };
        let whole = dirty.last().expect("a knee is a point").0;
        let paper = if *size == "2K" { 100.0 / 600.0 } else { 150.0 / 600.0 };
        let one = |value: f64| crate::experiment::Interval::of(&[value]);
        found.row(&label, "lambda is reached after this part of the run", "", one(dirty[knee].0 / whole), Some(paper));
        // As many windows before the knee as have enough new orders to be compared.
        let width = speed[0].0;
        let windows = ((case::ENOUGH / (steady.mean * width).max(1e-9)).ceil() as usize).clamp(1, knee + 1);
        let before = speed[knee + 1 - windows..=knee].iter().map(|p| p.1).sum::<f64>() / windows as f64;
        found.row(&label, "new orders at the knee", "1/s", one(before), None);
        found.shape(
            format!("{label}: throughput drops once dirty pages reach lambda (by a tenth or more)"),
            steady.high < 0.9 * before,
        );
    }
    case::health(&mut found, results, &specified());
    found.lines(results, "counted", "New orders per second from a cold start", "virtual seconds", "new orders/s");
    found.lines(results, "dirty", "Dirty part of the tier", "virtual seconds", "part of the frames");
    found
}

fn lambda(scale: Scale) -> Plan {
    let shrunk = shrunk(scale);
    let loading = shrunk.workload(2.0);
    let run = shrunk.run(LAMBDA_HOURS);
    let machine = |lambda| shrunk.machine(Some(WritePolicy::LazyCleaning), lambda);
    let mut cases: Vec<Case> =
        LAMBDAS.iter().map(|(label, lambda)| case(label, machine(*lambda), &loading, run, STEADY)).collect();
    for (label, lambda) in &LAMBDAS[..scale.pick(0, LAMBDAS.len())] {
        let mut machine = machine(*lambda);
        machine.storage.flash.replacement = FlashOrder::Lru2History;
        cases.push(case(&format!("{label}{REMEMBERED}"), machine, &loading, run, STEADY));
    }
    Plan { config: shrunk.config(&[2.0], run), cases, judge: Box::new(judge_lambda) }
}

/// LRU-2 that keeps the last use of a page which changes in memory.
const REMEMBERED: &str = ", history kept";

const LAMBDAS: [(&str, f64); 3] = [("lambda 10%", 0.1), ("lambda 50%", 0.5), ("lambda 90%", 0.9)];

fn judge_lambda(results: &Results) -> Findings {
    let mut found = Findings::default();
    let [ten, fifty, ninety] = LAMBDAS.map(|(label, _)| label);
    for (label, paper) in [(ten, 1.0), (fifty, 3.5 / 1.3), (ninety, 3.5)] {
        found.row(label, "throughput over lambda 10%", "x", results.ratio(label, ten, "counted"), Some(paper));
    }
    for (label, paper) in [(ten, 808.0), (fifty, 726.0), (ninety, 470.0)] {
        found.row(label, "new orders", "1/s", results.interval(label, "counted"), None);
        found.row(label, "disk writes", "1/s", results.interval(label, "disk writes"), Some(paper));
        found.row(label, "disk reads", "1/s", results.interval(label, "disk reads"), None);
        found.row(label, "flash hit ratio", "", results.interval(label, "hit ratio"), None);
    }
    found.falls_paired(results, "counted", "new orders", "1/s", &[ninety, fifty, ten]);
    found.at_least(ninety, "throughput over lambda 10%", 3.5);
    found.row(ninety, "throughput over lambda 50%", "x", results.ratio(ninety, fifty, "counted"), Some(1.3));
    found.at_least(ninety, "throughput over lambda 50%", 1.3);
    for label in [ten, fifty, ninety] {
        let share = results.interval(label, "dirty share");
        let wanted = LAMBDAS.iter().find(|(of, _)| *of == label).expect("one of them").1;
        found.shape(
            format!("{label}: the steady share of dirty pages is within a fifth of it"),
            (share.mean / wanted - 1.0).abs() < 0.2,
        );
    }
    let rate = |label: &str, metric: &str| found.ours(label, metric).mean;
    let note = format!(
        "Of the disks' operations at {ten} {:.0} a second are reads and {:.0} writes, \
         at {ninety} {:.0} and {:.0}. In the thesis the cleaner alone did 808 of \
         the 895 writes a second that they can at 10%.",
        rate(ten, "disk reads"),
        rate(ten, "disk writes"),
        rate(ninety, "disk reads"),
        rate(ninety, "disk writes"),
    );
    found.notes.push(note);
    for (label, _) in LAMBDAS {
        let kept = format!("{label}{REMEMBERED}");
        if results.labels().any(|known| known == kept) {
            let saved = results.ratio(&kept, label, "reads per transaction");
            found.row(&kept, "disk reads per transaction over those without history", "x", saved, None);
            found.row(&kept, "new orders", "1/s", results.interval(&kept, "counted"), None);
        }
    }
    case::health(&mut found, results, &specified());
    found.bars("Throughput over lambda 10%, TPC-C, 4K warehouses", "throughput over lambda 10%", "times");
    found.lines(results, "counted", "New orders per second", "virtual seconds", "new orders/s");
    found.lines(results, "dirty", "Dirty part of the tier", "virtual seconds", "part of the frames");
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::run::{Options, run};

    fn tiny(_: Scale) -> Plan {
        designs_of(
            Shrunk { factor: 20_000, terminals: 8, warehouses: 4, items: 2500, customers: 30 },
            vec![("2K", 1.0)],
        )
    }

    /// The smallest version that has all of it; one seed gives one report.
    #[test]
    fn a_tiny_run_of_all_designs() {
        let experiment = Experiment { plan: tiny, ..EXPERIMENTS[0] };
        let options = |threads| Options { scale: Scale::Quick, seed: 7, seeds: 1, threads };
        let finished = run(&experiment, options(2), &|_| {}).unwrap();
        let lc = finished.findings.ours("2K lazy-cleaning", SPEEDUP).mean;
        assert!(lc > 1.0, "lazy cleaning beats no tier: {lc}");
        assert!(finished.findings.ours("2K lazy-cleaning", "flash hit ratio").mean > 0.1);
        let skew = "share of accesses on the hottest 35% of the pages of stock (the specification's)";
        assert!((0.4..1.0).contains(&finished.findings.ours("2K none", skew).mean), "the skew reached is told");
        let waits = finished.findings.ours("2K none", "share of the terminals' time in lock waits").mean;
        assert!((0.0..0.3).contains(&waits), "{waits}: twice as many terminals as warehouses");
        let reads = |metric| finished.findings.ours("2K none", metric).mean;
        let (all, of_indexes) = (reads("disk reads per transaction"), reads("of these, reads of index pages"));
        assert!(0.0 < of_indexes && of_indexes < all, "{of_indexes} of {all}: rows are read, and so are indexes");
        let dirty = finished.findings.ours("2K lazy-cleaning", DIRTY_HITS).mean;
        assert!(dirty > 0.1 && dirty <= 1.0, "{dirty}");
        assert_eq!(finished.json(), run(&experiment, options(1), &|_| {}).unwrap().json());
    }
}
