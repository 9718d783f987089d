//! What Terrace promises of itself: no cliff, and no loss where a flash tier cannot help.
use super::case::{self, Loading, case, designed};
use super::do3_tpcc;
use crate::experiment::{Experiment, Findings, Plan, Results, Scale, Value};
use crate::machine::{Machine, Run};
use crate::tpcb::TpcB;
use std::time::Duration;
use terrace_device::emulate::Profile;
use terrace_storage::config::WritePolicy;
use terrace_storage::{FlashConfig, StorageConfig};

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "terrace/no-cliff",
        shows: "TPC-C in steady state with restart bounded: the slowest stretch is near the mean",
        source: "a promise of Terrace; the thesis's checkpoints halve throughput (section 3.4.1.2)",
        plan: no_cliff,
    },
    Experiment {
        id: "terrace/no-loss",
        shows: "a flash tier of a tenth of the data under uniform access, where it has nothing to win, loses nothing",
        source: "a promise of Terrace",
        plan: no_loss,
    },
];

const SLOWEST: &str = "slowest stretch of 150 transactions or more over the mean";
const CHANCE: &str = "the same, were there chance alone";

/// The run of `do/fig3.1-c`, but with checkpoints: restart may have to repeat so much log.
fn no_cliff(scale: Scale) -> Plan {
    let shrunk = do3_tpcc::shrunk(scale);
    let loading = shrunk.workload(1.0);
    let bound = scale.pick(16, 64) << 20;
    let steady = 0.5;
    let run = Run { window: Duration::from_millis(250), ..shrunk.run(20) };
    let cases = POLICIES.map(|(name, policy)| {
        let machine = bounded(shrunk.machine(policy, 0.5), bound);
        case(name, machine, &loading, run, steady)
    });
    let config = bounded_config(shrunk.config(&[1.0], run), bound, steady);
    Plan { config, cases: cases.into_iter().collect(), judge: Box::new(judge_no_cliff) }
}

/// A machine of chapter 3's as Terrace runs, with double-writes and indirect checkpoints: a restart repeats so much log
/// at most.
pub(super) fn bounded(mut machine: Machine, bound: u64) -> Machine {
    machine.whole_pages = false;
    machine.storage.sharp_checkpoints = false;
    machine.storage.redo_bound = bound;
    machine.storage.log_retention = 2 * bound;
    machine.storage.writer_interval = StorageConfig::default().writer_interval;
    machine.storage.segment_size = 1 << 20;
    machine
}

/// And what its configuration says.
pub(super) fn bounded_config(
    mut config: Vec<(&'static str, Value)>,
    bound: u64,
    steady: f64,
) -> Vec<(&'static str, Value)> {
    let mut set = |name: &str, value: Value| {
        let found = config.iter_mut().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("no {name} in the configuration")).1 = value;
    };
    set(case::REDO_BOUND, bound.into());
    set(do3_tpcc::STEADY_PART, steady.into());
    set(case::DOUBLE_WRITES, true.into());
    set(case::SHARP, false.into());
    set(case::WRITER, StorageConfig::default().writer_interval.as_secs_f64().into());
    config.push(("lambda (dirty_fraction)", 0.5.into()));
    config.push(("log_retention bytes", (2 * bound).into()));
    config
}

fn judge_no_cliff(results: &Results) -> Findings {
    let mut found = Findings::default();
    for label in results.labels() {
        found.row(label, "transactions", "1/s", results.interval(label, "transactions"), None);
        found.row(label, SLOWEST, "", results.interval(label, "slowest"), None);
        found.row(label, "such a stretch", "s", results.interval(label, "stretch"), None);
        found.row(label, CHANCE, "", results.interval(label, "slowest by chance"), None);
        found.row(label, "log written", "MB/s", results.interval(label, "log writes MB"), None);
    }
    for (label, _) in POLICIES {
        found.at_least(label, SLOWEST, 0.7);
    }
    let none = found.ours(POLICIES[0].0, CHANCE).mean;
    found.notes.push(format!(
        "Transactions that end independently of each other vary: without a tier chance alone takes the slowest \
         stretch to {none:.2} of the mean."
    ));
    case::health(&mut found, results, &[]);
    found.lines(results, "counted", "New orders per second, checkpoints on", "virtual seconds", "new orders/s");
    found
}

pub(super) const POLICIES: [(&str, Option<WritePolicy>); 4] = [
    ("none", None),
    ("clean-write", Some(WritePolicy::CleanWrite)),
    ("dual-write", Some(WritePolicy::DualWrite)),
    ("lazy-cleaning", Some(WritePolicy::LazyCleaning)),
];

const ACCOUNTS: u32 = 400_000;
const MIXES: [(&str, u32); 3] = [("read only", 100), ("half read only", 50), ("TPC-B", 0)];
const THROUGHPUT: &str = "throughput over none";

fn no_loss(scale: Scale) -> Plan {
    let branches = 128;
    let run = Run { terminals: 32, duration: Duration::from_secs(scale.pick(10, 60)), window: Duration::from_secs(1) };
    let mut cases = vec![];
    for (mix, reads) in MIXES {
        let loading = Loading::new(TpcB { branches, tellers: 10, accounts: ACCOUNTS / branches, reads });
        for (name, policy) in POLICIES {
            cases.push(case(&format!("{mix}, {name}"), uniform_machine(policy), &loading, run, STEADY));
        }
    }
    let machine = uniform_machine(Some(WritePolicy::LazyCleaning));
    let mut config = vec![
        ("workload", "TPC-B, accounts chosen uniformly but for the 85% at home".into()),
        ("accounts", ACCOUNTS.into()),
        ("branches", branches.into()),
        ("terminals", run.terminals.into()),
        ("virtual seconds", run.duration.as_secs().into()),
        (do3_tpcc::STEADY_PART, STEADY.into()),
    ];
    config.extend(machine_rows(&machine));
    Plan { config, cases, judge: Box::new(judge_no_loss) }
}

const STEADY: f64 = 0.5;

/// Memory and tier are a tenth of the data each.
fn uniform_machine(policy: Option<WritePolicy>) -> Machine {
    let tenth = u64::from(ACCOUNTS) * 130 / 10;
    machine(tenth, tenth, policy)
}

/// Slow disks, a consumer's SSD. Sizes in bytes.
pub(super) fn machine(memory: u64, tier: u64, policy: Option<WritePolicy>) -> Machine {
    let named = |name| Profile::named(name).expect("one of ours");
    let flash = designed(FlashConfig { size: tier, expanded_read: 1, ..FlashConfig::default() }, policy);
    Machine {
        data: named("hdd-8x7200"),
        log: named("nvme-datacentre"),
        flash: policy.map(|_| named("sata-consumer")),
        cores: 8,
        storage: StorageConfig {
            pool_bytes: memory as usize,
            redo_bound: 64 << 20,
            log_retention: 128 << 20,
            segment_size: 1 << 20,
            flash,
            ..StorageConfig::default()
        },
        statement_cpu: do3_tpcc::STATEMENT_CPU,
        whole_pages: false,
        seed: 0,
    }
}

/// What is told of it.
pub(super) fn machine_rows(machine: &Machine) -> Vec<(&'static str, Value)> {
    let mut rows = vec![("data device", "hdd-8x7200".into())];
    rows.extend(case::machine_rows(machine));
    rows.iter_mut().filter(|(name, _)| *name == case::FLASH_DEVICE).for_each(|row| row.1 = "sata-consumer".into());
    rows
}

fn judge_no_loss(results: &Results) -> Findings {
    let mut found = Findings::default();
    for (mix, _) in MIXES {
        for (name, policy) in POLICIES {
            let (label, none) = (format!("{mix}, {name}"), format!("{mix}, none"));
            found.row(&label, THROUGHPUT, "x", results.ratio(&label, &none, "counted"), None);
            found.row(&label, "transactions", "1/s", results.interval(&label, "counted"), None);
            found.row(&label, "disk reads", "1/s", results.interval(&label, "disk reads"), None);
            found.row(&label, "disk writes", "1/s", results.interval(&label, "disk writes"), None);
            if policy.is_some() {
                found.row(&label, "flash hit ratio", "", results.interval(&label, "hit ratio"), None);
                found.at_least(&label, THROUGHPUT, 0.97);
            }
        }
    }
    case::health(&mut found, results, &[]);
    found.bars("Throughput over no flash tier, uniform access", THROUGHPUT, "times");
    found
}
