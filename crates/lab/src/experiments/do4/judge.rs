//! The thesis's numbers, and the shapes.
use super::lives::REACHED;
use super::{COLD, DW, EXPANDED_TO, INSTANT, LAZY, LC, LOGGED, MAPPED, Method, OLD, POLICIES, STOPS, WRITTEN, label};
use crate::experiment::{Findings, Results};

/// What a restart gains over a cold one (from peak to peak, or in throughput): policy, method, the thesis's number.
pub(super) type Paper = (&'static str, &'static str, f64);

/// "About 3.5X" with DW; LC: 1.4 with LVR, 2.8 with MMR, which instant restart is to beat.
pub(super) const TPCC_STOP: &[Paper] = &[
    (DW, MAPPED, 3.5),
    (DW, LOGGED, 3.5),
    (DW, WRITTEN, 3.5),
    (DW, LAZY, 3.5),
    (DW, INSTANT, 3.5),
    (LC, MAPPED, 2.8),
    (LC, LOGGED, 1.4),
    (LC, WRITTEN, 1.4),
    (LC, LAZY, 1.4),
    (LC, INSTANT, 2.8),
];
/// "From 1.3X to 1.8X. MMR has the best."
pub(super) const TPCC_CRASH: &[Paper] =
    &[(DW, MAPPED, 1.8), (DW, LAZY, 1.3), (DW, INSTANT, 1.8), (LC, MAPPED, 1.8), (LC, LAZY, 1.3), (LC, INSTANT, 1.8)];
pub(super) const TPCE_STOP: &[Paper] = &[
    (DW, MAPPED, 3.8),
    (DW, LOGGED, 3.8),
    (DW, WRITTEN, 3.8),
    (DW, LAZY, 3.8),
    (DW, INSTANT, 3.8),
    (LC, MAPPED, 3.4),
    (LC, LOGGED, 3.4),
    (LC, WRITTEN, 3.4),
    (LC, LAZY, 3.4),
    (LC, INSTANT, 3.4),
];
/// LVR 2.4, LBR between that and MMR's 3.5 and 3.2, which instant restart is to beat.
pub(super) const TPCE_CRASH: &[Paper] =
    &[(DW, MAPPED, 3.5), (DW, LAZY, 2.4), (DW, INSTANT, 3.5), (LC, MAPPED, 3.2), (LC, LAZY, 2.4), (LC, INSTANT, 3.2)];
/// Sustained throughput over cold's: MMR loses much with TPC-C, LBR "5% - 7%"; LVR is "close".
pub(super) const TPCC_SUSTAINED: &[Paper] =
    &[(DW, MAPPED, 0.62), (DW, LAZY, 1.0), (DW, INSTANT, 1.0), (LC, MAPPED, 0.46), (LC, LAZY, 1.0), (LC, INSTANT, 1.0)];
pub(super) const TPCE_SUSTAINED: &[Paper] =
    &[(DW, MAPPED, 1.0), (DW, LAZY, 1.0), (DW, INSTANT, 1.0), (LC, MAPPED, 1.0), (LC, LAZY, 1.0), (LC, INSTANT, 1.0)];
/// By how much reading eight pages shortens the ramp.
pub(super) const FILLED: [(&str, f64); 2] = [("TPC-C", 7.0), ("TPC-E", 3.6)];

const PEAK_TO_PEAK: &str = "from peak to peak";
const SPEEDUP: &str = "from peak to peak, sooner than cold";
/// What instant restart is to gain over each method, from peak to peak: twice what the best of the thesis's two gain
/// that it recommends, and no less than MMR. The shortest ramp of any method is taken off: memory has to be filled
/// again whatever becomes of the tier.
const INSTANT_GAINS: [(&str, [&str; 2], f64); 3] = [
    (LOGGED, ["from peak to peak, sooner than log-based", "the same, less the shortest ramp: log-based"], 2.0),
    (
        LAZY,
        ["from peak to peak, sooner than lazy verification", "the same, less the shortest ramp: lazy verification"],
        2.0,
    ),
    (MAPPED, ["from peak to peak, sooner than memory-mapped", "the same, less the shortest ramp: memory-mapped"], 1.0),
];
const WARM: &str = "frames found when it answered, over those held";
const READ: &str = "pages read of flash until it answered, over frames held";

/// The phases and the frames of each case.
fn phases(found: &mut Findings, results: &Results) {
    for label in results.labels() {
        let of = |name: &str| results.interval(label, name);
        found.row(label, "transactions at the peak", "1/s", of("transactions"), None);
        for (name, metric) in [
            ("shutdown", "shutdown"),
            ("recovery", "recovery: from power until it answers"),
            ("inventory", "of it, reading the inventory"),
            ("noting", "of it, reading log for the tier alone"),
            ("ramp", "ramp: from its answering until the peak is back"),
            ("interval", PEAK_TO_PEAK),
        ] {
            found.row(label, metric, "s", of(name), None);
        }
        found.row(
            label,
            "transactions in the first tenth of the second life, over the peak",
            "x",
            of("at first"),
            None,
        );
        found.row(label, "slowest stretch in the second half of it, over the mean", "x", of("slowest after"), None);
        for (name, metric) in [
            ("held", "frames held when the first life ended"),
            ("held dirty", "of them dirty"),
            ("listed", "frames that the inventory names"),
            ("current", "frames current"),
            ("current dirty", "of them dirty, as the log says"),
            ("bases", "frames that redo begins with"),
            ("older", "frames dropped: the log has a newer version"),
            ("unknown", "frames dropped: the log has not their version"),
            ("lost", "frames dropped when they were read"),
            ("found dirty", "dirty frames when it answered"),
            ("redo pages", "pages that the log names"),
            ("waiting", "of them, redone when they are read"),
            ("opening disk pages", "pages read of the disks until it answered"),
        ] {
            found.row(label, metric, "", of(name), None);
        }
        found.row(label, "log read until it answered", "MB", of("opening log MB"), None);
        found.row(label, WARM, "", of("warm"), None);
        found.row(label, READ, "", results.quotient(label, "opening flash pages", "held"), None);
        found.row(label, "log written at the peak", "MB/s", of("log writes MB"), None);
        health(found, results, label);
        if of("reached").low < 1.0 {
            found.notes.push(format!("{label}: not every run was at {REACHED} of its peak again when it ended."));
        }
    }
    found.lines(results, "after", "Throughput after the restart", "virtual seconds since it answered", "1/s");
}

fn health(found: &mut Findings, results: &Results, label: &str) {
    for (name, metric) in [
        ("hit ratio", "flash hit ratio"),
        ("dirty share", "dirty part of the tier, steady"),
        ("disk share", "reads and writes of the disks, each of what they can (table 4.3)"),
        ("flash share", "reads and writes of the flash device, each of what it can"),
        ("lock share", "share of the terminals' time in lock waits"),
    ] {
        found.row(label, metric, "", results.interval(label, name), None);
    }
}

/// Ours is at least the thesis's, where every run got there.
fn gains(found: &mut Findings, results: &Results, label: &str, metric: &str, bound: f64) {
    if results.interval(label, "reached").low < 1.0 {
        found.untestable(format!("{metric} of {label} is at least {bound} (its peak was not back in every run)"));
    } else {
        found.at_least(label, metric, bound);
    }
}

fn of(papers: &[Paper], policy: &str, method: &str) -> Option<f64> {
    papers.iter().find(|paper| (paper.0, paper.1) == (policy, method)).map(|paper| paper.2)
}

pub(super) fn intervals(results: &Results, methods: &[Method], papers: &[Paper]) -> Findings {
    let mut found = Findings::default();
    for (policy, _) in POLICIES {
        let cold = label(policy, COLD);
        for method in methods.iter().filter(|method| method.name != COLD) {
            let label = label(policy, method.name);
            let paper = of(papers, policy, method.name);
            found.row(&label, SPEEDUP, "x", results.ratio(&cold, &label, "interval"), paper);
            if let Some(bound) = paper {
                gains(&mut found, results, &label, SPEEDUP, bound);
            }
        }
    }
    for (policy, _) in POLICIES {
        let instant = label(policy, INSTANT);
        let all: Vec<String> = methods.iter().map(|method| label(policy, method.name)).collect();
        for (method, [metric, beyond], bound) in INSTANT_GAINS {
            let other = label(policy, method);
            found.row(&instant, metric, "x", results.ratio(&other, &instant, "interval"), None);
            let less = results.ratio_beyond(&other, &instant, "interval", ("ramp", &all));
            found.row(&instant, beyond, "x", less, None);
            gains(&mut found, results, &instant, beyond, bound);
        }
    }
    phases(&mut found, results);
    for (policy, _) in POLICIES {
        for method in methods.iter().filter(|method| method.name != COLD) {
            let label = label(policy, method.name);
            found.at_least(&label, WARM, 0.9);
            let few = found.ours(&label, READ).high < 0.5;
            found.shape(format!("{label}: it answers without having read half of the tier"), few);
        }
    }
    found.bars("From peak to peak", PEAK_TO_PEAK, "virtual seconds");
    found
}

const SUSTAINED: &str = "sustained after the restart";
const OVER_COLD: &str = "sustained after the restart, over cold's";

pub(super) fn sustained(results: &Results, methods: &[Method], papers: &[Paper]) -> Findings {
    let mut found = Findings::default();
    for (policy, _) in POLICIES {
        let cold = label(policy, COLD);
        for name in methods.iter().map(|method| method.name) {
            let label = label(policy, name);
            found.row(&label, SUSTAINED, "1/s", results.interval(&label, "sustained"), None);
            let share = results.interval(&label, "flash share after");
            found.row(&label, "flash device's reads and writes, each of what it can", "", share, None);
            health(&mut found, results, &label);
            if let Some(paper) = of(papers, policy, name) {
                found.row(&label, OVER_COLD, "x", results.ratio(&label, &cold, "sustained"), Some(paper));
                found.at_least(&label, OVER_COLD, if name == INSTANT { 0.98 } else { 0.95 * paper });
                let more = results.difference(&label, &cold, "flash share after");
                let paper = (name != MAPPED).then_some(0.03);
                found.row(&label, "of the flash device's time, more than cold, seed by seed", "", more, paper);
            }
        }
    }
    found.bars("Sustained throughput after a shutdown", SUSTAINED, "1/s");
    found
}

const ALL: &str = "from peak to peak, sooner than chapter 3's";

pub(super) fn overview(results: &Results) -> Findings {
    let mut found = Findings::default();
    let (old, cold) = (label(DW, OLD), label(DW, COLD));
    found.row(&cold, ALL, "x", results.ratio(&old, &cold, "interval"), Some(13.0 / 3.8));
    for method in STOPS.iter().filter(|method| method.name != COLD) {
        let label = label(DW, method.name);
        found.row(&label, ALL, "x", results.ratio(&old, &label, "interval"), Some(13.0));
        found.row(&label, SPEEDUP, "x", results.ratio(&cold, &label, "interval"), Some(3.8));
        gains(&mut found, results, &label, ALL, 13.0);
        gains(&mut found, results, &label, SPEEDUP, 3.8);
    }
    phases(&mut found, results);
    found
}

const RAMP: &str = "from an empty tier to the peak";
const SHORTER: &str = "ramp, shorter by";

pub(super) fn fill(results: &Results) -> Findings {
    let mut found = Findings::default();
    for (name, paper) in FILLED {
        let [one, eight] = EXPANDED_TO.map(|(to, _)| label(name, to));
        for label in [&one, &eight] {
            found.row(label, RAMP, "s", results.interval(label, "ramp"), None);
            found.row(label, "transactions at the peak", "1/s", results.interval(label, "transactions"), None);
            health(&mut found, results, label);
        }
        found.row(&eight, SHORTER, "x", results.ratio(&one, &eight, "ramp"), Some(paper));
        found.at_least(&eight, SHORTER, paper);
    }
    found.bars("Ramp, dual writes", RAMP, "virtual seconds");
    found.lines(results, "counted", "Throughput from an empty tier", "virtual seconds", "1/s");
    found
}
