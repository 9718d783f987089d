//! YCSB's core workloads on slow disks, with a flash tier and without.
//!
//! Memory holds a twentieth of the records, the tier a quarter. What is read by Zipf's law gains; what is read in
//! scans, or was written lately, has less to gain and must lose nothing.
use super::case::{self, Loading, numbers};
use super::own::{POLICIES, machine, machine_rows};
use crate::experiment::{Case, Experiment, Findings, Plan, Results, Runner, Scale};
use crate::machine::{Machine, Run};
use crate::ycsb::{Mix, Sizes, Ycsb};
use std::sync::Arc;
use std::time::Duration;
use terrace_storage::config::WritePolicy;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "terrace/ycsb",
    shows: "YCSB A to F with each write policy of the flash tier against none: Zipfian access gains, \
            scans lose nothing",
    source: "workloads: Cooper et al., SoCC 2010; a promise of Terrace",
    plan,
}];

const LETTERS: [char; 6] = ['a', 'b', 'c', 'd', 'e', 'f'];
/// Keys by Zipf's law, whatever is done with them.
const ZIPFIAN: [char; 4] = ['a', 'b', 'c', 'f'];
const STEADY: f64 = 0.5;
const THROUGHPUT: &str = "throughput over none";
/// A record of ten fields, with its share of the index.
const RECORD_BYTES: u64 = 1_200;

fn plan(scale: Scale) -> Plan {
    let sizes = Sizes { records: scale.pick(10_000, 40_000), ..Sizes::default() };
    let run = Run { terminals: 32, duration: Duration::from_secs(scale.pick(10, 60)), window: Duration::from_secs(1) };
    let of = |policy| machine(sizes.records * RECORD_BYTES / 20, sizes.records * RECORD_BYTES / 4, policy);
    // All begin with the same records.
    let loading = Loading::new(workload('c', sizes));
    let mut cases = vec![];
    for letter in LETTERS {
        for (name, policy) in POLICIES {
            cases.push(case(label(letter, name), letter, sizes, of(policy), &loading, run));
        }
    }
    let mut config = vec![
        ("workload", "YCSB, core workloads".into()),
        ("records", sizes.records.into()),
        ("fields", sizes.fields.into()),
        ("bytes of a field", sizes.field_bytes.into()),
        ("Zipf's exponent", sizes.skew.into()),
        ("rows of a scan, at most", sizes.scan.into()),
        ("terminals", run.terminals.into()),
        ("virtual seconds", run.duration.as_secs().into()),
        (super::do3_tpcc::STEADY_PART, STEADY.into()),
    ];
    config.extend(machine_rows(&of(Some(WritePolicy::LazyCleaning))));
    Plan { config, cases, judge: Box::new(judge) }
}

fn label(letter: char, policy: &str) -> String {
    format!("{}, {policy}", letter.to_ascii_uppercase())
}

fn workload(letter: char, sizes: Sizes) -> Ycsb {
    Ycsb::new(Mix::core(letter).expect("one of the six"), sizes)
}

/// A run has a workload of its own, which knows what it has written.
fn case(label: String, letter: char, sizes: Sizes, machine: Machine, loading: &Arc<Loading<Ycsb>>, run: Run) -> Case {
    let loading = loading.clone();
    let runner: Runner = Box::new(move |seed, hear| {
        let machine = Machine { seed, ..machine.clone() };
        let loaded = loading.loaded(&machine)?;
        let workload = Arc::new(workload(letter, sizes));
        let measured = machine.measure(&loaded, &workload, run, hear).map_err(|e| e.to_string())?;
        match measured.problems.first() {
            Some(first) => Err(format!("{} problems; the first: {first}", measured.problems.len())),
            None => Ok(numbers(&measured, &machine, run, STEADY)),
        }
    });
    Case { label, work: run.duration.as_secs_f64(), run: runner }
}

fn judge(results: &Results) -> Findings {
    let mut found = Findings::default();
    for letter in LETTERS {
        let none = label(letter, POLICIES[0].0);
        for (name, policy) in POLICIES {
            let label = label(letter, name);
            found.row(&label, THROUGHPUT, "x", results.ratio(&label, &none, "transactions"), None);
            found.row(&label, "transactions", "1/s", results.interval(&label, "transactions"), None);
            found.row(&label, "latency", "ms", results.interval(&label, "latency"), None);
            if policy.is_none() {
                continue;
            }
            found.row(&label, "flash hit ratio", "", results.interval(&label, "hit ratio"), None);
            found.at_least(&label, THROUGHPUT, 0.97);
            if ZIPFIAN.contains(&letter) {
                found.falls("transactions", &[&label, &none]);
            }
        }
    }
    case::health(&mut found, results, &[]);
    found.bars("Throughput over no flash tier, YCSB", THROUGHPUT, "times");
    found
}
