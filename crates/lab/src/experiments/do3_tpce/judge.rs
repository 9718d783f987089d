//! The thesis's numbers, and the shapes.
use super::{CW, DESIGNS, DW, INDIRECT, LC, NONE, OFTEN, SELDOM, SWEEP, TAC, case};
use crate::experiment::{Findings, Results};

const SPEEDUP: &str = "speedup over none";
/// Random reads a second.
const DISK_IOPS: f64 = case::DISK_IOPS[0];
const FLASH_IOPS: f64 = case::FLASH_IOPS[0];

/// "About 5.5X, 7.2X, and 3X", all designs alike; CW 21.6% below DW at 20K.
fn paper(size: &str, name: &str) -> Option<f64> {
    let all = [("10K", 5.5), ("20K", 7.2), ("40K", 3.0)];
    let alike = all.iter().find(|(of, _)| *of == size).map(|(_, speedup)| *speedup);
    match name {
        NONE => Some(1.0),
        CW if size == "20K" => Some(7.2 * (1.0 - 0.216)),
        CW => None,
        _ => alike,
    }
}

pub(super) fn designs(results: &Results, sizes: &[&str]) -> Findings {
    let mut found = Findings::default();
    for size in sizes {
        for (name, _) in DESIGNS {
            let label = format!("{size} {name}");
            let ours = results.ratio(&label, &format!("{size} {NONE}"), "transactions");
            found.row(&label, SPEEDUP, "x", ours, paper(size, name));
        }
    }
    for label in results.labels() {
        found.row(label, "trade results", "1/s", results.interval(label, "counted"), None);
        found.row(label, "transactions", "1/s", results.interval(label, "transactions"), None);
        for name in ["disk reads", "disk writes", "flash reads", "flash writes"] {
            found.row(label, name, "1/s", results.interval(label, name), None);
        }
        if !label.contains(NONE) {
            found.row(label, "flash hit ratio", "", results.interval(label, "hit ratio"), None);
        }
    }
    for name in [TAC, DW, LC] {
        let [ten, twenty, forty] = ["10K", "20K", "40K"].map(|size| format!("{size} {name}"));
        if sizes.contains(&"40K") {
            found.falls(SPEEDUP, &[&twenty, &forty]);
        }
        found.falls(SPEEDUP, &[&twenty, &ten]);
    }
    order_of_sizes(&mut found, results);
    for size in sizes {
        let all = [TAC, DW, LC].map(|name| found.ours(&format!("{size} {name}"), SPEEDUP).mean);
        let (least, most) =
            (all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(0.0, f64::max));
        let statement = format!("{size}: {TAC}, {DW} and {LC} differ by less than a quarter");
        found.shape(statement, most < 1.25 * least);
    }
    for name in [DW, LC] {
        let labels = [format!("20K {name}"), format!("20K {CW}")];
        found.falls_paired(results, "transactions", "transactions", "1/s", &labels.each_ref().map(String::as_str));
    }
    case::health(&mut found, results, &[]);
    sizes.iter().for_each(|size| case::divisor(&mut found, &format!("{size} {NONE}")));
    found.bars("Speedup over no flash tier, TPC-E", SPEEDUP, "times");
    found
}

/// What limits 10K and 20K, and what the order of their gains hangs on.
fn order_of_sizes(found: &mut Findings, results: &Results) {
    let flash = |size: &str| found.ours(&format!("{size} {DW}"), "flash reads").mean / FLASH_IOPS;
    let none = |size: &str| found.ours(&format!("{size} {NONE}"), "transactions").mean;
    let mut note = format!(
        "Without a tier 10K does {:.1} times as many transactions as 20K. With dual writes the flash device reads \
         {:.0}% of what it can at 10K, {:.0}% at 20K. Where the flash device is the limit, \
         the gain is what it is quicker than the disks, {:.1} times by table 3.1, whatever memory holds.",
        none("10K") / none("20K"),
        100.0 * flash("10K"),
        100.0 * flash("20K"),
        FLASH_IOPS / DISK_IOPS,
    );
    for (what, ..) in SWEEP {
        let [ten, twenty] = ["10K", "20K"].map(|size| (format!("{size} {DW}{what}"), format!("{size} {NONE}{what}")));
        if results.labels().any(|label| label == ten.0) {
            let gains = [&ten, &twenty].map(|(with, without)| results.ratio(with, without, "transactions"));
            for (of, gain) in [&ten, &twenty].into_iter().zip(gains) {
                found.row(&of.0, SPEEDUP, "x", gain, None);
            }
            let [ten, twenty] = gains.map(|gain| gain.mean);
            let order = if twenty > ten { "20K gains more" } else { "10K gains more" };
            note.push_str(&format!(" With{}: {ten:.1} and {twenty:.1} times, {order}.", what.trim_start_matches(',')));
        }
    }
    found.notes.push(note);
}

/// Hours until the tier is full and throughput steady, of dual writes (section 3.4.3.1).
const RAMPS: [(&str, f64); 2] = [("20K", 10.0), ("40K", 7.0)];

const FILLS: &str = "until the tier holds nine tenths of what it will";

pub(super) fn ramp(results: &Results) -> Findings {
    let mut found = Findings::default();
    let fills = FILLS;
    for label in results.labels() {
        found.row(label, "at the start, of the steady state", "", results.interval(label, "start"), None);
        found.row(label, "transactions in steady state", "1/s", results.interval(label, "transactions"), None);
        if label.ends_with(NONE) {
            continue;
        }
        let paper = RAMPS.iter().find(|(size, _)| label == format!("{size} {DW}")).map(|(_, hours)| 0.9 * hours);
        found.row(label, fills, "hours, shrunk", results.interval(label, "fill hours"), paper);
    }
    for name in [DW, LC] {
        let label = format!("20K {name}");
        let start = found.ours(&label, "at the start, of the steady state");
        found.shape(format!("{label}: it begins below half of its steady state"), start.high < 0.5);
    }
    for (size, hours) in RAMPS {
        found.at_least(&format!("{size} {DW}"), fills, 0.9 * hours);
    }
    let [twenty, forty] = [format!("20K {DW}"), format!("40K {DW}")];
    found.falls_paired(results, "fill hours", fills, "hours, shrunk", &[&twenty, &forty]);
    case::health(&mut found, results, &[]);
    found.lines(results, "counted", "Trade results per second from a cold start", "virtual seconds", "trade results/s");
    found.lines(results, "used", "Part of the tier in use", "virtual seconds", "part of the frames");
    found
}

pub(super) fn fill(results: &Results) -> Findings {
    const READS: &str = "disk reads until then";
    let mut found = Findings::default();
    for label in results.labels() {
        let paper = RAMPS.iter().find(|(size, _)| *size == label).map(|(_, hours)| 0.9 * hours);
        found.row(label, FILLS, "hours, shrunk", results.interval(label, "fill hours"), paper);
        found.row(label, READS, "1/s", results.interval(label, "fill reads"), None);
        found.row(label, "disk writes until then", "1/s", results.interval(label, "fill writes"), None);
        let pages = "pages read for each that it holds then";
        found.row(label, pages, "", results.interval(label, "fill pages"), None);
        let [reads, writes] = ["flash reads", "flash writes"];
        found.row(label, "flash reads for each write, steady", "", results.quotient(label, reads, writes), None);
    }
    for (size, _) in RAMPS {
        let fewer = format!("{size}, six disks");
        let longer = found.ours(&fewer, FILLS).mean / found.ours(size, FILLS).mean;
        let slower = found.ours(size, READS).mean / found.ours(&fewer, READS).mean;
        let statement = format!("{size}: with six disks it takes longer by as much as fewer pages a second are read");
        found.shape(format!("{statement} (within a tenth)"), (longer / slower - 1.0).abs() < 0.1);
    }
    for pair in [["20K, six disks", "20K"], ["40K, six disks", "40K"], ["20K, updates x 8", "20K"]] {
        found.falls_paired(results, "fill hours", FILLS, "hours, shrunk", &pair);
    }
    for (size, hours) in RAMPS {
        found.at_least(&format!("{size}, six disks"), FILLS, 0.9 * hours);
    }
    found.bars("Hours until the tier holds nine tenths of what it will", FILLS, "hours, shrunk");
    found
}

pub(super) fn traffic(results: &Results) -> Findings {
    let mut found = Findings::default();
    let label = &format!("20K {DW}");
    found.row(label, "disk reads and writes", "MB/s", results.interval(label, "disk MB"), Some(6.5));
    found.row(label, "disk operations", "1/s", results.interval(label, "disk operations"), Some(832.0));
    found.row(label, "flash reads", "MB/s", results.interval(label, "flash reads MB"), Some(46.0));
    found.row(label, "flash writes", "MB/s", results.interval(label, "flash writes MB"), Some(9.7));
    found.row(label, "flash operations", "1/s", results.interval(label, "flash operations"), None);
    let share = "reads and writes, each of what the device can of them";
    found.row("disks", share, "", results.interval(label, "disk share"), None);
    found.row("flash", share, "", results.interval(label, "flash share"), None);
    found.falls(share, &["disks", "flash"]);
    found.row(label, "flash hit ratio", "", results.interval(label, "hit ratio"), None);
    let disk = found.ours(label, "disk operations").mean / DISK_IOPS;
    let flash = found.ours(label, "flash operations").mean / FLASH_IOPS;
    let near = |share: f64| format!("{:.0}%", share * 100.0);
    found.notes.push(format!(
        "The disks do {} of the random reads that they can, the flash device {}.",
        near(disk),
        near(flash)
    ));
    found.shape("the disks do 832 operations/s or more", disk >= 832.0 / DISK_IOPS);
    let (pages, most) = ((46.0 + 9.7) * 1048576.0 / 8192.0, 832.0 / DISK_IOPS);
    let part = pages / FLASH_IOPS / most; // 0.71
    found.shape(
        format!("the flash device is at most {part:.2} as near its {FLASH_IOPS} operations/s as the disks"),
        flash <= part * disk,
    );
    case::health(&mut found, results, &[]);
    for name in ["disk reads MB", "disk writes MB", "flash reads MB", "flash writes MB"] {
        found.lines(results, name, &format!("TPC-E 20K, dual-write: {name}/s"), "virtual seconds", "MB/s");
    }
    found
}

pub(super) fn checkpoints(results: &Results) -> Findings {
    let mut found = Findings::default();
    let (during, lost) = ("throughput in a checkpoint over that outside", "throughput lost to a checkpoint");
    let (long, least) = ("a checkpoint takes", "slowest stretch of 150 transactions or more over the mean");
    for label in results.labels() {
        found.row(label, "transactions", "1/s", results.interval(label, "transactions"), None);
        found.row(label, least, "", results.interval(label, "least"), None);
        if !label.ends_with(INDIRECT) {
            found.row(label, long, "minutes, shrunk", results.interval(label, "checkpoint minutes"), None);
            found.row(label, during, "", results.interval(label, "during"), None);
            found.row(label, lost, "minutes, shrunk", results.interval(label, "lost minutes"), None);
        }
    }
    for name in [DW, LC] {
        for (when, every, enough) in [(OFTEN, "40 minutes", 20.0), (SELDOM, "5 hours", 240.0)] {
            let label = format!("{name}, {when}");
            let (took, of) = (found.ours(&label, long).mean, found.ours(&label, during));
            let statement = format!("{name}: a sharp checkpoint every {every} costs throughput while it lasts");
            if took < enough {
                found.shape(statement, of.high < 1.0);
            } else {
                found.untestable(format!("{statement} (one takes {took:.0} minutes: there is too little outside)"));
            }
        }
        let ours = found.ours(&format!("{name}, {INDIRECT}"), least);
        found.shape(format!("{name}: indirect checkpoints have no dips (0.8 or above)"), ours.low >= 0.8);
    }
    let labels = [LC, DW].map(|name| format!("{name}, {SELDOM}"));
    let statement = format!("{lost}, {SELDOM}");
    found.falls_paired(results, "lost minutes", &statement, "minutes, shrunk", &labels.each_ref().map(String::as_str));
    case::health(&mut found, results, &[]);
    found.lines(results, "counted", "Trade results per second", "virtual seconds", "trade results/s");
    found
}
