//! Telling scans from look-ups: J. Do's thesis, section 3.2.2, which compares asking the read-ahead with a rule by
//! distance.
//!
//! Scans of three of TPC-H's tables go on side by side, and look-ups between them. Each method says of each page, when
//! it is read, whether it is part of a scan; who reads it is known, so what is called wrongly is counted for every
//! method: look-ups by index read leaves one after the other, too.
use super::case::Loading;
use super::do3_tpch;
use crate::experiment::{Case, Experiment, Findings, Numbers, Plan, Results, Runner, Scale};
use crate::machine::{Machine, Traffic};
use crate::tpch::{Called, TpcH};
use std::sync::Arc;
use terrace_engine::{Database, Result};

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "do/readahead",
    shows: "Which reads are called parts of scans: by the reader's word (ours), \
            by the read-ahead, by a distance of 64 pages",
    source: "J. Do, thesis (2012), section 3.2.2",
    plan,
}];

const DECLARED: &str = "declared by the reader (ours)";
const AHEAD: &str = "read-ahead";
const DISTANCE: &str = "distance of 64 pages";
const OF_SCANS: &str = "reads of scans called so";
const OF_LOOKUPS: &str = "reads of look-ups called parts of scans";
const OF_ALL: &str = "all reads called what they are";
const PACE: &str = "of what the disks read in sequence";
const BUSY: &str = "spindles, of the time at work";

fn plan(scale: Scale) -> Plan {
    let (machine, loading) = do3_tpch::thirty(scale);
    let mut config = do3_tpch::config_of(scale);
    config.push(("scans at a time", 3.into()));
    config.push(("look-ups beside them", "lines of parts with their orders, 8 workers".into()));
    let mut cases = vec![case(machine.clone(), loading.clone())];
    cases.extend(AHEADS.map(|pages| alone(pages, machine.clone(), loading.clone())));
    Plan { config, cases, judge: Box::new(judge) }
}

/// Pages read ahead by a scan that has the machine for itself.
const AHEADS: [usize; 6] = [8, 16, 32, 64, 128, 256];

fn alone_label(pages: usize) -> String {
    format!("a scan alone, {pages} pages ahead")
}

/// A scan of the largest table, and how busy the disk's spindles are with it.
fn alone(pages: usize, mut machine: Machine, loading: Arc<Loading<TpcH>>) -> Case {
    machine.storage.read_ahead = pages;
    let runner: Runner = Box::new(move |seed, hear| {
        let machine = Machine { seed, ..machine.clone() };
        let loaded = loading.loaded(&machine)?;
        let tpch = Arc::new(loading.workload.fresh());
        let scan = |database: Database| async move { tpch.scan(&database, "lineitem").await };
        let traffic = machine.session(&loaded, scan).map_err(|e| e.to_string())?.traffic;
        hear(1.0);
        let mut found = Numbers::default();
        busy(&traffic, &mut found);
        let pages = traffic.data.read_bytes as f64 / machine.storage.page_size as f64;
        found.set("pace", pages / traffic.at / SEQUENTIAL);
        Ok(found)
    });
    Case { label: alone_label(pages), work: 1.0, run: runner }
}

fn case(machine: Machine, loading: Arc<Loading<TpcH>>) -> Case {
    let runner: Runner = Box::new(move |seed, hear| {
        let machine = Machine { seed, ..machine.clone() };
        let loaded = loading.loaded(&machine)?;
        let tpch = Arc::new(loading.workload.fresh());
        let session = machine.session(&loaded, |database| mixed(tpch, database, seed)).map_err(|e| e.to_string())?;
        hear(1.0);
        let mut found = numbers(session.result, session.traffic.at);
        busy(&session.traffic, &mut found);
        Ok(found)
    });
    Case { label: "scans and look-ups".into(), work: 1.0, run: runner }
}

/// `busy` and `least busy`: of the time, what the disk's spindles were at work, on average and the idlest.
fn busy(traffic: &Traffic, found: &mut Numbers) {
    let busy = traffic.spindles.iter().map(|nanos| *nanos as f64 / 1e9 / traffic.at);
    found.set("busy", busy.clone().sum::<f64>() / traffic.spindles.len() as f64);
    found.set("least busy", busy.fold(f64::INFINITY, f64::min));
}

async fn mixed(tpch: Arc<TpcH>, database: Database, seed: u64) -> Result<(Called, Called)> {
    tpch.scans_and_lookups(&database, seed).await
}

/// Of each method: what it is called here, the names of what is measured of it, what it called parts of scans, the
/// thesis's number.
type Method = (&'static str, [&'static str; 3], fn(&Called) -> u64, Option<f64>);

const METHODS: [Method; 3] = [
    (DECLARED, ["declared scans", "declared look-ups", "declared all"], |called| called.declared, None),
    (AHEAD, ["ahead scans", "ahead look-ups", "ahead all"], |called| called.ahead, Some(0.82)),
    (DISTANCE, ["near scans", "near look-ups", "near all"], |called| called.near, Some(0.51)),
];

fn numbers((scans, lookups): (Called, Called), seconds: f64) -> Numbers {
    let (scanned, looked_up) = (scans.read as f64, lookups.read as f64);
    let mut found = Numbers::default();
    for (_, names, of, _) in METHODS {
        let (right, wrong) = (of(&scans) as f64, of(&lookups) as f64);
        found.set(names[0], right / scanned);
        found.set(names[1], wrong / looked_up);
        found.set(names[2], (right + looked_up - wrong) / (scanned + looked_up));
    }
    found.set("scanned", scanned).set("looked up", looked_up).set("pace", scanned / seconds / SEQUENTIAL);
    found
}

/// Pages a second that the eight disks read in sequence (table 3.1).
const SEQUENTIAL: f64 = 26_370.0;

fn judge(results: &Results) -> Findings {
    let mut found = Findings::default();
    let label = "scans and look-ups";
    for (method, [scans, lookups, all], _, paper) in METHODS {
        found.row(method, OF_SCANS, "", results.interval(label, scans), paper);
        found.row(method, OF_LOOKUPS, "", results.interval(label, lookups), None);
        found.row(method, OF_ALL, "", results.interval(label, all), None);
    }
    found.row("pages read", "by scans", "pages", results.interval(label, "scanned"), None);
    found.row("pages read", "by look-ups", "pages", results.interval(label, "looked up"), None);
    let measured = [("scans beside look-ups".to_string(), label.to_string())];
    for (row, label) in measured.into_iter().chain(AHEADS.map(alone_label).map(|label| (label.clone(), label))) {
        found.row(&row, PACE, "", results.interval(&label, "pace"), None);
        found.row(&row, BUSY, "", results.interval(&label, "busy"), None);
        found.row(&row, "the idlest", "", results.interval(&label, "least busy"), None);
    }
    let [ours, ahead, near] = [DECLARED, AHEAD, DISTANCE].map(|method| found.ours(method, OF_SCANS));
    found.shape(format!("{OF_SCANS}: the read-ahead tells better than the distance"), ahead.low > near.high);
    let best = ours.mean >= ahead.mean && ours.mean > near.mean;
    found.shape(
        format!("{OF_SCANS}: the reader's word is no worse than the read-ahead, better than the distance"),
        best,
    );
    let [ours, ahead, near] = [DECLARED, AHEAD, DISTANCE].map(|method| found.ours(method, OF_ALL));
    found.shape(format!("{OF_ALL}: the read-ahead tells better than the distance"), ahead.low > near.high);
    let best = ours.mean >= ahead.mean && ours.mean > near.mean;
    found.shape(format!("{OF_ALL}: the reader's word is no worse than the read-ahead, better than the distance"), best);
    let ours = alone_label(do3_tpch::READ_AHEAD);
    found.at_least(&ours, BUSY, 0.75);
    let pace = |pages: usize| found.ours(&alone_label(pages), PACE).mean;
    let longest = AHEADS.iter().map(|pages| pace(*pages)).fold(0.0, f64::max);
    let enough = longest <= 1.02 * pace(do3_tpch::READ_AHEAD);
    found.shape(format!("{PACE}: no longer read-ahead is quicker than {ours}"), enough);
    found.bars("Reads of scans that are called so", OF_SCANS, "part of the reads");
    found.bars("Reads of look-ups that are called parts of scans", OF_LOOKUPS, "part of the reads");
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scan that has the disks for itself reads on while its rows are worked on: what it was before that, 0.61.
    #[test]
    fn read_ahead_keeps_the_spindles_busy() {
        let (machine, loading) = do3_tpch::thirty(Scale::Quick);
        let ahead = machine.storage.read_ahead;
        let found = (alone(ahead, machine, loading).run)(1, &|_| {}).expect("it runs");
        let of = |name: &str| found.get(name).expect("it was measured");
        assert!(of("least busy") > 0.7 && of("busy") <= 1.0, "{found:?}");
    }

    /// What a method wrongly calls a scan counts against it, whichever method it is.
    #[test]
    fn false_positives_count_for_every_method() {
        let scans = Called { read: 100, declared: 100, ahead: 90, near: 50 };
        let lookups = Called { read: 50, declared: 5, ahead: 10, near: 25 };
        let found = numbers((scans, lookups), 1.0);
        let of = |name: &str| found.get(name).expect("it was measured");
        assert_eq!(["declared look-ups", "ahead look-ups", "near look-ups"].map(of), [0.1, 0.2, 0.5]);
        assert_eq!(["declared all", "ahead all", "near all"].map(of), [145.0 / 150.0, 130.0 / 150.0, 0.5]);
    }
}
