//! The designs that J. Do's thesis names in section 3.5, beside its own and TAC: inclusive, exclusive and lazy
//! (Koltsidas & Viglas), rotating (Holloway), HeteroDrive (Kim et al.). The thesis ran none of them but TAC, so most of
//! what is found here stands beside no number; what it says of them in words is judged.
//!
//! TPC-C at 2,000 warehouses and TPC-E at 20,000 customers, on the machines of `do/fig3.1-c` and `do/fig3.1-e`. Two of
//! the designs run on a second flash device, too, whose random writes are slow: that is what a rotating tier is for.
use super::case::{self, CW, DW, LC, NONE, OTHERS, TAC, case, named};
use super::{do3_tpcc, do3_tpce};
use crate::experiment::{Experiment, Findings, Plan, Results, Scale, Value};
use terrace_storage::config::WritePolicy;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "do/3.5",
    shows: "The designs of related work beside the thesis's: inclusive, exclusive, lazy, rotating, HeteroDrive",
    source: "J. Do, thesis (2012), section 3.5",
    plan,
}];

const C: &str = "TPC-C 2K";
const E: &str = "TPC-E 20K";
const INCLUSIVE: &str = OTHERS[0].0;
const EXCLUSIVE: &str = OTHERS[1].0;
const LAZY: &str = OTHERS[2].0;
const ROTATING: &str = OTHERS[3].0;
const HETERO: &str = OTHERS[4].0;
/// In the order of the report.
const ALL: [&str; 10] = [NONE, CW, DW, LC, TAC, INCLUSIVE, EXCLUSIVE, LAZY, ROTATING, HETERO];
/// A flash device of 2008: 0.35 ms before a random write, none before one that goes on.
const SLOW_DEVICE: &str = "ocz-core";
const SLOW: &str = ", slow random writes";
/// λ of lazy cleaning (table 3.2); the other designs have none.
const LAMBDA_C: f64 = 0.5;

fn label(workload: &str, design: &str) -> String {
    format!("{workload} {design}")
}

fn policy(name: &str) -> Option<WritePolicy> {
    case::policy(name).unwrap_or_else(|| panic!("no design {name}"))
}

fn plan(scale: Scale) -> Plan {
    let (c, e) = (do3_tpcc::shrunk(scale), do3_tpce::Shrunk::of(scale));
    let (warehouses, customers) = (c.workload(1.0), e.loading(1.0));
    // Without λ it takes longer until dirty pages have to go home: as long as with λ = 90%. Quick: about until memory
    // and tier are full, for there are twenty cases.
    let run = c.run(scale.pick(5, do3_tpcc::LAMBDA_HOURS));
    let hours = scale.pick(5.0, do3_tpce::HOURS);
    let mut cases = vec![];
    for name in ALL {
        let machine = c.machine(policy(name), LAMBDA_C);
        cases.push(case(&label(C, name), machine, &warehouses, run, do3_tpcc::STEADY));
        let machine = e.sharp(policy(name), do3_tpce::LAMBDA);
        cases.push(e.often(label(E, name), machine, &customers, hours));
    }
    for name in &[LAZY, ROTATING][..scale.pick(0, 2)] {
        let mut machine = c.machine(policy(name), LAMBDA_C);
        machine.flash = Some(named(SLOW_DEVICE));
        cases.push(case(&label(C, &format!("{name}{SLOW}")), machine, &warehouses, run, do3_tpcc::STEADY));
    }
    let object = |rows: Vec<(&str, Value)>| rows.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    let config = vec![
        (C, Value::Object(object(c.config(&[1.0], run)))),
        (E, Value::Object(object(e.config_often(hours)))),
        ("lambda of lazy cleaning, TPC-C", LAMBDA_C.into()),
        ("replacement of TAC", "temperature of extents of 32 pages".into()),
        ("replacement of rotating and HeteroDrive", "frames in turn".into()),
        ("flash device with slow random writes", SLOW_DEVICE.into()),
    ];
    Plan { config, cases, judge: Box::new(judge) }
}

const SPEEDUP: &str = "speedup over none";
const HITS: &str = "flash hit ratio";
const RUNS: &str = "pages in a disk write";

fn judge(results: &Results) -> Findings {
    let mut found = Findings::default();
    for workload in [C, E] {
        for name in ALL {
            rows(&mut found, results, workload, name);
        }
        let of = |name: &str| label(workload, name);
        let pair = |more: &str, less: &str| [of(more), of(less)];
        let mut more = |name, metric: &str, unit, labels: [String; 2]| {
            found.falls_paired(results, name, metric, unit, &labels.each_ref().map(String::as_str));
        };
        // "Later when the page is evicted from the buffer pool, it has to be written to the SSD again."
        more("flash bytes", "bytes written to flash for a transaction", "bytes", pair(EXCLUSIVE, LAZY));
        // "The design sacrifices the quality of the SSD replacement policy."
        more("hit ratio", HITS, "", pair(LAZY, ROTATING));
        // "To convert random writes to the disk into sequential ones."
        more("pages per disk write", RUNS, "pages", pair(HETERO, NONE));
    }
    slow_device(&mut found, results);
    case::health_of(&mut found, results, C, &crate::tpcc::specified());
    case::health_of(&mut found, results, E, &[]);
    found.bars("Speedup over no flash tier", SPEEDUP, "times");
    found.bars("Pages in a disk write", RUNS, "pages");
    found
}

fn rows(found: &mut Findings, results: &Results, workload: &str, name: &str) {
    let (label, none) = (label(workload, name), label(workload, NONE));
    let counted = if workload == C { "new orders" } else { "trade results" };
    found.row(&label, SPEEDUP, "x", results.ratio(&label, &none, "transactions"), None);
    found.row(&label, counted, "1/s", results.interval(&label, "counted"), None);
    for name in ["disk reads", "disk writes", "flash reads", "flash writes"] {
        found.row(&label, name, "1/s", results.interval(&label, name), None);
    }
    found.row(&label, RUNS, "pages", results.interval(&label, "pages per disk write"), None);
    if name != NONE {
        found.row(&label, HITS, "", results.interval(&label, "hit ratio"), None);
        found.row(&label, "pages in a flash write", "pages", results.interval(&label, "pages per flash write"), None);
        let bytes = "bytes written to flash for a transaction";
        found.row(&label, bytes, "bytes", results.interval(&label, "flash bytes"), None);
    }
}

/// "The design was motivated by the relatively slow random write performance of non-enterprise class SSDs", and "is
/// less interesting now".
fn slow_device(found: &mut Findings, results: &Results) {
    let metric = "rotating over lazy, new orders";
    let slow = |name: &str| label(C, &format!("{name}{SLOW}"));
    if !results.labels().any(|label| label == slow(LAZY)) {
        return found.untestable(format!("{metric}: {SLOW_DEVICE} > iodrive-160"));
    }
    let quick = results.ratio(&label(C, ROTATING), &label(C, LAZY), "counted");
    found.row("iodrive-160", metric, "x", quick, None);
    found.row(SLOW_DEVICE, metric, "x", results.ratio(&slow(ROTATING), &slow(LAZY), "counted"), None);
    found.falls(metric, &[SLOW_DEVICE, "iodrive-160"]);
    for name in [LAZY, ROTATING] {
        found.row(&slow(name), "new orders", "1/s", results.interval(&slow(name), "counted"), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each design has its cases, on a tier whose parts go together.
    #[test]
    fn every_design_runs_on_both_workloads() {
        let plan = plan(Scale::Quick);
        let labels: Vec<&str> = plan.cases.iter().map(|case| case.label.as_str()).collect();
        for name in ALL {
            assert!(labels.contains(&&*label(C, name)) && labels.contains(&&*label(E, name)), "{name}: {labels:?}");
            let machine = do3_tpcc::shrunk(Scale::Quick).machine(policy(name), LAMBDA_C);
            assert_eq!(machine.storage.flash.check(), Ok(()), "{name}");
        }
    }
}
