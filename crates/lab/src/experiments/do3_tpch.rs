//! TPC-H with a flash tier: J. Do's thesis, section 3.4.4 (table 3.3, figure 3.1 g-h).
//!
//! The thesis's machine, shrunk: database, memory, flash tier and the log between checkpoints by the same factor,
//! devices as they were. The metrics multiply by the scale factor what they divide by the time, so they compare with
//! the thesis's as they are; how fast the thesis's processors and plans were is fitted nowhere, so what counts are
//! ratios. The throughput test follows the power test on the running server. There are no double-writes, as there.
use super::case::{self, CW, DESIGNS, DW, LC, Loading, NONE, TAC, designed, named};
use crate::experiment::{Case, Experiment, Findings, Numbers, Plan, Results, Runner, Scale, Value};
use crate::machine::Machine;
use crate::tpch::{Power, Sizes, Throughput, TpcH, composite};
use crate::workload::Workload;
use std::sync::Arc;
use std::time::Duration;
use terrace_storage::StorageConfig;
use terrace_storage::config::WritePolicy;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "do/3.3",
    shows: "TPC-H's power and throughput tests with the tier and without: about three times, \
            throughput more than power",
    source: "J. Do, thesis (2012), table 3.3 and section 3.4.4",
    plan,
}];

/// The thesis's scale factor, bytes of its database, and query streams.
const DATABASES: [(&str, u64, usize); 2] = [("SF 30", 45 << 30, 4), ("SF 100", 160 << 30, 5)];
/// Bytes that an order takes, with its lines, its share of the other tables and all indexes: measured.
const ORDER_BYTES: u64 = 1000;
/// Pages read ahead: 512 KiB, as SQL Server reads ahead at most, are a stripe of each of the eight disks.
pub(super) const READ_AHEAD: usize = 64;
/// λ for TPC-H (table 3.2).
const LAMBDA: f64 = 0.01;
/// Charged for each row that a query reads.
const ROW_CPU: Duration = Duration::from_nanos(500);

fn factor(scale: Scale) -> u64 {
    scale.pick(4000, 1000)
}

fn machine(factor: u64, design: Option<WritePolicy>) -> Machine {
    Machine {
        data: case::disks(factor),
        log: named("nvme-datacentre"),
        flash: design.map(|_| named("iodrive-160")),
        cores: 8,
        storage: StorageConfig {
            pool_bytes: ((20 << 30) / factor) as usize,
            redo_bound: ((8 << 30) / factor).max(1 << 20),
            log_retention: ((64 << 30) / factor).max(8 << 20),
            segment_size: 256 << 10,
            read_ahead: READ_AHEAD,
            flash: designed(case::chapter3((140 << 30) / factor, LAMBDA), design),
            ..StorageConfig::default()
        },
        statement_cpu: Duration::ZERO,
        whole_pages: true,
        seed: 0,
    }
}

fn plan(scale: Scale) -> Plan {
    let factor = factor(scale);
    let mut cases = vec![];
    let mut orders = vec![];
    for (name, bytes, streams) in DATABASES {
        let sizes = sizes(factor, bytes);
        orders.push(sizes.orders);
        let loading = Loading::new(TpcH::new(sizes));
        for (design, policy) in DESIGNS.into_iter().filter(|(design, _)| *design != CW) {
            cases.push(case(format!("{name} {design}"), machine(factor, policy), &loading, streams));
        }
    }
    Plan { config: config(factor, &orders), cases, judge: Box::new(judge) }
}

/// The machine without a tier, and its database, for other experiments: SF 30.
pub(super) fn thirty(scale: Scale) -> (Machine, Arc<Loading<TpcH>>) {
    let factor = factor(scale);
    (machine(factor, None), Loading::new(TpcH::new(sizes(factor, DATABASES[0].1))))
}

pub(super) fn config_of(scale: Scale) -> Vec<(&'static str, Value)> {
    let factor = factor(scale);
    config(factor, &[sizes(factor, DATABASES[0].1).orders])
}

fn sizes(factor: u64, bytes: u64) -> Sizes {
    Sizes { orders: u32::try_from(bytes / factor / ORDER_BYTES).expect("shrunk"), row_cpu: ROW_CPU }
}

fn config(factor: u64, orders: &[u32]) -> Vec<(&'static str, Value)> {
    let machine = machine(factor, Some(WritePolicy::DualWrite));
    let streams: Vec<usize> = DATABASES.iter().map(|(_, _, streams)| *streams).collect();
    let mut rows: Vec<(&str, Value)> = vec![
        ("workload", "TPC-H-like: what the queries read".into()),
        ("shrunk by", factor.into()),
        ("orders", orders.into()),
        ("query streams", streams.into()),
        ("data device", "hdd-8x7200, seeks as over the whole database".into()),
        ("replacement", "LRU-2".into()),
        ("lambda (dirty_fraction)", LAMBDA.into()),
        ("CPU per row, ns", (ROW_CPU.as_nanos() as u64).into()),
    ];
    rows.extend(case::machine_rows(&machine));
    rows
}

fn case(label: String, machine: Machine, loading: &Arc<Loading<TpcH>>, streams: usize) -> Case {
    let loading = loading.clone();
    let runner: Runner = Box::new(move |seed, hear| {
        let machine = Machine { seed, ..machine.clone() };
        let loaded = loading.loaded(&machine)?;
        let tpch = Arc::new(loading.workload.fresh());
        let work = |database| tests(tpch, database, streams, seed);
        let session = machine.session(&loaded, work).map_err(|e| e.to_string())?;
        let (power, throughput, problems) = session.result;
        if let Some(first) = problems.first() {
            return Err(format!("{} problems; the first: {first}", problems.len()));
        }
        hear(1.0);
        let mut found = Numbers::default();
        found.set("power", power.metric()).set("throughput", throughput.metric());
        found.set("QphH", composite(&power, &throughput));
        let traffic = session.traffic;
        found.set("disk reads", (traffic.data.read_bytes / machine.storage.page_size as u64) as f64);
        found.set("flash reads", (traffic.flash.read_bytes / machine.storage.page_size as u64) as f64);
        if machine.flash.is_some() {
            case::tier(&mut found, &machine, std::slice::from_ref(&traffic), traffic.at);
        }
        Ok(found)
    });
    Case { label, work: 1.0, run: runner }
}

type Tested = (Power, Throughput, Vec<String>);

async fn tests(
    tpch: Arc<TpcH>,
    database: terrace_engine::Database,
    streams: usize,
    seed: u64,
) -> terrace_engine::Result<Tested> {
    let power = tpch.power(&database, seed).await?;
    let throughput = tpch.clone().throughput(&database, streams, seed).await?;
    let mut problems = tpch.check(&database).await?;
    problems.extend(database.check().await?);
    Ok((power, throughput, problems))
}

/// Table 3.3: power, throughput, QphH.
const PAPER: [(&str, [f64; 3]); 8] = [
    ("SF 30 none", [2733.0, 1229.0, 1832.0]),
    ("SF 30 TAC", [6386.0, 5639.0, 6001.0]),
    ("SF 30 dual-write", [5917.0, 6643.0, 6269.0]),
    ("SF 30 lazy-cleaning", [5978.0, 5601.0, 5787.0]),
    ("SF 100 none", [1536.0, 953.0, 1210.0]),
    ("SF 100 TAC", [3705.0, 3235.0, 3462.0]),
    ("SF 100 dual-write", [3204.0, 3691.0, 3439.0]),
    ("SF 100 lazy-cleaning", [3836.0, 3228.0, 3519.0]),
];
const METRICS: [&str; 3] = ["power", "throughput", "QphH"];

fn judge(results: &Results) -> Findings {
    let mut found = Findings::default();
    for (label, paper) in PAPER {
        for (at, metric) in METRICS.into_iter().enumerate() {
            found.row(label, metric, "per hour", results.interval(label, metric), Some(paper[at]));
        }
        if label.ends_with(NONE) {
            continue;
        }
        let (none, of_none) = none_of(label);
        for (at, metric) in METRICS.into_iter().enumerate() {
            let ours = results.ratio(label, none, metric);
            found.row(label, &gain(metric), "x", ours, Some(paper[at] / of_none[at]));
        }
        found.row(label, "pages read from flash", "", results.interval(label, "flash reads"), None);
        found.row(label, "pages read from disk", "", results.interval(label, "disk reads"), None);
    }
    for (label, paper) in PAPER.iter().filter(|(label, _)| !label.ends_with(NONE)) {
        let [power, throughput] = ["power", "throughput"].map(|metric| found.ours(label, &gain(metric)));
        found
            .shape(format!("{label}: the throughput test gains more than the power test"), throughput.low > power.high);
        let thesis = (paper[2] / none_of(label).1[2] * 100.0).round() / 100.0;
        found.at_least(label, &gain("QphH"), thesis);
    }
    for size in ["SF 30", "SF 100"] {
        let all = [TAC, DW, LC].map(|name| found.ours(&format!("{size} {name}"), "QphH").mean);
        let (least, most) =
            (all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(0.0, f64::max));
        let statement = format!("{size}: {TAC}, {DW} and {LC} differ by less than a quarter");
        found.shape(statement, most < 1.25 * least);
    }
    case::health(&mut found, results, &[]);
    found.bars("QphH over no flash tier", &gain("QphH"), "times");
    found
}

/// The case without a tier that a case is compared with.
fn none_of(label: &str) -> (&'static str, [f64; 3]) {
    if label.starts_with("SF 30") { PAPER[0] } else { PAPER[4] }
}

fn gain(metric: &str) -> String {
    format!("{metric} over none")
}
