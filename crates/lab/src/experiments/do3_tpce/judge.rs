//! The thesis's numbers, and the shapes.
use super::{CW, DESIGNS, DW, INDIRECT, LC, NONE, OFTEN, SELDOM, SIZES, SLOWER, TAC};
use crate::experiment::{Findings, Results};

const SPEEDUP: &str = "speedup over none";
/// Random reads a second.
const DISK_IOPS: f64 = super::DISK_IOPS[0];
const FLASH_IOPS: f64 = super::FLASH_IOPS[0];

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

pub(super) fn designs(results: &Results) -> Findings {
    let mut found = Findings::default();
    for (size, _) in SIZES {
        for (name, _) in DESIGNS {
            let label = format!("{size} {name}");
            let ours = results.ratio(&label, &format!("{size} {NONE}"), "transactions");
            found.row(&label, SPEEDUP, "x", ours, paper(size, name));
        }
    }
    for size in ["10K", "20K"] {
        let (label, none) = (format!("{size} {DW}{SLOWER}"), format!("{size} {NONE}{SLOWER}"));
        found.row(&label, SPEEDUP, "x", results.ratio(&label, &none, "transactions"), None);
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
        found.falls(SPEEDUP, &[&twenty, &forty]);
        found.falls(SPEEDUP, &[&twenty, &ten]);
    }
    let slow = ["20K", "10K"].map(|size| format!("{size} {DW}{SLOWER}"));
    found.falls(SPEEDUP, &slow.each_ref().map(String::as_str));
    let flash = |size: &str| found.ours(&format!("{size} {DW}"), "flash reads").mean / FLASH_IOPS;
    let none = |size: &str| found.ours(&format!("{size} {NONE}"), "transactions").mean;
    let note = format!(
        "The thesis's cause for the smaller gain of 10K is here: without a tier it does {:.1} times as many transactions as 20K, for memory holds more of \
         it. But 10K fits the tier whole, and its limit is the flash device, which reads {:.0}% of what it can (20K: {:.0}%, limited by the \
         disks). What memory holds saves flash reads as it saves disk reads, so 10K gains what the flash device is quicker than the disks: {:.1} \
         times. The thesis's 5.5 are less than half of that: its 10K had a limit that memory does not move. With one (rows \"slow CPU\": \
         processors that limit both sizes) 10K gains {:.1} times and 20K {:.1}.",
        none("10K") / none("20K"),
        100.0 * flash("10K"),
        100.0 * flash("20K"),
        FLASH_IOPS / DISK_IOPS,
        found.ours(&slow[1], SPEEDUP).mean,
        found.ours(&slow[0], SPEEDUP).mean,
    );
    found.notes.push(note);
    for (size, _) in SIZES {
        let all = [TAC, DW, LC].map(|name| found.ours(&format!("{size} {name}"), SPEEDUP).mean);
        let (least, most) =
            (all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(0.0, f64::max));
        let statement = format!("{size}: {TAC}, {DW} and {LC} differ by less than a quarter");
        found.shape(statement, most < 1.25 * least);
    }
    let cw = found.ours(&format!("20K {CW}"), SPEEDUP);
    let least = [DW, LC].map(|name| found.ours(&format!("20K {name}"), SPEEDUP).low);
    found.shape("20K: clean-write is below dual-write and lazy-cleaning", least.iter().all(|low| cw.high < *low));
    found.bars("Speedup over no flash tier, TPC-E", SPEEDUP, "times");
    found
}

pub(super) fn ramp(results: &Results) -> Findings {
    let mut found = Findings::default();
    for label in results.labels().filter(|label| !label.ends_with(NONE)) {
        // The thesis: about 10 and 7 hours, of DW.
        let paper = match label {
            l if l == format!("20K {DW}") => Some(10.0),
            l if l == format!("40K {DW}") => Some(7.0),
            _ => None,
        };
        let ramp = results.interval(label, "ramp hours");
        found.row(label, "until 90% of the steady state", "hours, shrunk", ramp, paper);
        found.row(label, "at the start, of the steady state", "", results.interval(label, "start"), None);
        found.row(label, "transactions in steady state", "1/s", results.interval(label, "transactions"), None);
    }
    for name in [DW, LC] {
        let label = format!("20K {name}");
        let (ramp, start) = (
            found.ours(&label, "until 90% of the steady state"),
            found.ours(&label, "at the start, of the steady state"),
        );
        found.shape(format!("{label}: it begins below half of its steady state"), start.high < 0.5);
        found.shape(format!("{label}: the ramp takes two hours or more of the thesis's machine"), ramp.low > 2.0);
    }
    let [twenty, forty] = [format!("20K {DW}"), format!("40K {DW}")];
    found.falls("until 90% of the steady state", &[&twenty, &forty]);
    found.lines(results, "counted", "Trade results per second from a cold start", "virtual seconds", "trade results/s");
    found.lines(results, "used", "Part of the tier in use", "virtual seconds", "part of the frames");
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
    found.shape(format!("the disks do at least 0.8 of the {DISK_IOPS} operations/s that they can"), disk >= 0.8);
    let statement =
        format!("the flash device is less near its {FLASH_IOPS} operations/s than the disks, by a fifth or more");
    found.shape(statement, flash <= 0.8 * disk);
    for name in ["disk reads MB", "disk writes MB", "flash reads MB", "flash writes MB"] {
        found.lines(results, name, &format!("TPC-E 20K, dual-write: {name}/s"), "virtual seconds", "MB/s");
    }
    found
}

pub(super) fn checkpoints(results: &Results) -> Findings {
    let mut found = Findings::default();
    let (dip, long) = ("worst point of a checkpoint's interval over the mean", "a checkpoint takes");
    let as_seldom = "the same, at the times of those every 5 h";
    let (during, lost) = ("throughput in a checkpoint over that outside", "throughput lost to a checkpoint");
    for label in results.labels() {
        found.row(label, "transactions", "1/s", results.interval(label, "transactions"), None);
        found.row(label, dip, "", results.interval(label, "dip"), None);
        if label.ends_with(INDIRECT) {
            found.row(label, as_seldom, "", results.interval(label, "seldom dip"), None);
        } else {
            found.row(label, long, "minutes, shrunk", results.interval(label, "checkpoint minutes"), None);
            found.row(label, during, "", results.interval(label, "during"), None);
            found.row(label, lost, "minutes, shrunk", results.interval(label, "lost minutes"), None);
        }
    }
    for name in [DW, LC] {
        let of = |when: &str, metric: &str| found.ours(&format!("{name}, {when}"), metric);
        let (sharp, seldom, outside) = (of(OFTEN, dip), of(SELDOM, dip), of(OFTEN, during));
        let (took, ours) = (of(OFTEN, long).mean, of(INDIRECT, dip));
        let ours_then = of(INDIRECT, as_seldom);
        let statement = "throughput in a checkpoint every 40 minutes is below 0.9 of that outside";
        if took < 20.0 {
            found.shape(format!("{name}: {statement}"), outside.high < 0.9);
        } else {
            found.untestable(format!("{name}: {statement} (one takes {took:.0} minutes: there is too little outside)"));
        }
        for (sharp, ours, every) in [(sharp, ours, "40 minutes"), (seldom, ours_then, "5 hours")] {
            let statement =
                format!("the worst point after a sharp checkpoint every {every} is below that of indirect ones");
            found.shape(format!("{name}: {statement}"), sharp.high < ours.low);
        }
        found.shape(format!("{name}: indirect checkpoints have none (0.8 or above)"), ours.low >= 0.8);
    }
    let statement =
        |what: &str| format!("every 5 hours: {what} to a checkpoint with lazy cleaning than with dual writes");
    let [dw, lc] = [DW, LC].map(|name| found.ours(&format!("{name}, {SELDOM}"), lost));
    found.shape(statement("more is lost"), lc.low > dw.high);
    found.lines(results, "counted", "Trade results per second", "virtual seconds", "trade results/s");
    found
}
