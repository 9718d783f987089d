//! Telling scans from look-ups: J. Do's thesis, section 3.2.2, which compares asking the read-ahead with a rule by distance.
//!
//! Scans of three of TPC-H's tables go on side by side, and look-ups between them. Who read a page is known from counting what each task reads; each
//! method says of each page, when it is read, whether it is part of a scan.
use super::case::Loading;
use super::do3_tpch;
use crate::experiment::{Case, Experiment, Findings, Numbers, Plan, Results, Runner, Scale};
use crate::tpch::TpcH;
use std::sync::Arc;
use terrace_engine::{Database, Result};
use terrace_storage::Reads;
use terrace_storage::pool::PoolStats;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "do/readahead",
    shows: "Which reads are called parts of scans: by the reader's word (ours), by the read-ahead, by a distance of 64 pages",
    source: "J. Do, thesis (2012), section 3.2.2",
    plan,
}];

const DECLARED: &str = "declared by the reader (ours)";
const AHEAD: &str = "read-ahead";
const DISTANCE: &str = "distance of 64 pages";
const OF_SCANS: &str = "reads of scans called so";
const OF_ALL: &str = "all reads called what they are";

fn plan(scale: Scale) -> Plan {
    let (machine, loading) = do3_tpch::thirty(scale);
    let mut config = do3_tpch::config_of(scale);
    config.push(("scans at a time", 3.into()));
    config.push(("look-ups beside them", "lines of parts with their orders, 8 workers".into()));
    let case = case(machine, loading);
    Plan { config, cases: vec![case], judge: Box::new(judge) }
}

fn case(machine: crate::machine::Machine, loading: Arc<Loading<TpcH>>) -> Case {
    let runner: Runner = Box::new(move |seed, hear| {
        let machine = crate::machine::Machine { seed, ..machine.clone() };
        let loaded = loading.loaded(&machine)?;
        let tpch = Arc::new(loading.workload.fresh());
        let session = machine.session(&loaded, |database| mixed(tpch, database, seed)).map_err(|e| e.to_string())?;
        hear(1.0);
        Ok(numbers(session.result))
    });
    Case { label: "scans and look-ups".into(), work: 1.0, run: runner }
}

/// What the scans and the look-ups read, and what the pool called it.
type Mixed = (Reads, Reads, PoolStats);

async fn mixed(tpch: Arc<TpcH>, database: Database, seed: u64) -> Result<Mixed> {
    let before = database.store().pool().stats();
    let (scans, lookups) = tpch.scans_and_lookups(&database, seed).await?;
    let after = database.store().pool().stats();
    let called = PoolStats {
        sequential_reads: after.sequential_reads - before.sequential_reads,
        random_reads: after.random_reads - before.random_reads,
        read_ahead: after.read_ahead - before.read_ahead,
        near_sequential: after.near_sequential - before.near_sequential,
        near_random: after.near_random - before.near_random,
        ..after
    };
    Ok((scans, lookups, called))
}

fn numbers((scans, lookups, called): Mixed) -> Numbers {
    let (scanned, looked_up) = (scans.total_pages() as f64, lookups.total_pages() as f64);
    let mut found = Numbers::default();
    let all = scanned + looked_up;
    // Pages of scans called so, and pages of look-ups called parts of scans.
    let mut method = |names: [&'static str; 2], right: u64, wrong: u64| {
        found.set(names[0], right as f64 / scanned);
        found.set(names[1], (right as f64 + looked_up - wrong as f64) / all);
    };
    method(["declared scans", "declared all"], called.sequential_reads, 0);
    method(["ahead scans", "ahead all"], called.read_ahead, 0);
    method(["near scans", "near all"], called.near_sequential, called.near_random);
    found.set("scanned", scanned).set("looked up", looked_up);
    found
}

fn judge(results: &Results) -> Findings {
    let mut found = Findings::default();
    let label = "scans and look-ups";
    let methods = [
        (DECLARED, ["declared scans", "declared all"], None),
        (AHEAD, ["ahead scans", "ahead all"], Some(0.82)),
        (DISTANCE, ["near scans", "near all"], Some(0.51)),
    ];
    for (method, [scans, all], paper) in methods {
        found.row(method, OF_SCANS, "", results.interval(label, scans), paper);
        found.row(method, OF_ALL, "", results.interval(label, all), None);
    }
    found.row("pages read", "by scans", "pages", results.interval(label, "scanned"), None);
    found.row("pages read", "by look-ups", "pages", results.interval(label, "looked up"), None);
    for metric in [OF_SCANS, OF_ALL] {
        let [ours, ahead, near] = [DECLARED, AHEAD, DISTANCE].map(|method| found.ours(method, metric));
        found.shape(format!("{metric}: the read-ahead tells better than the distance"), ahead.low > near.high);
        let best = ours.mean >= ahead.mean && ours.mean > near.mean;
        found.shape(
            format!("{metric}: the reader's word is no worse than the read-ahead, better than the distance"),
            best,
        );
    }
    found.bars("Reads of scans that are called so", OF_SCANS, "part of the reads");
    found
}
