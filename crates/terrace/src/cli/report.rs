//! Sentences and tables that several commands print.

use crate::cli::serve::say;
use std::time::Duration;
use terrace::config::Size;
use terrace::device::{DeviceRef, DeviceStats};
use terrace::engine::OpenReport;
use terrace::storage::FlashStats;

/// Says what opening did: how far recovery went and how long it took.
pub(crate) fn opened(report: &OpenReport) {
    let storage = &report.storage;
    let took = duration(Duration::from_nanos(storage.nanos));
    if storage.clean_shutdown {
        say!("opened in {took}: the last run ended cleanly");
    } else {
        say!(
            "recovered in {took}: read the log from {} to {} ({} in {} batches; {} page changes repeated, {} pages to \
             be redone when they are read), restored {} torn pages, found {} unfinished transactions",
            storage.redo_from,
            storage.redo_to,
            bytes(storage.bytes),
            storage.batches,
            storage.pages_redone,
            storage.pages_waiting,
            storage.torn_pages_restored,
            report.losers_rolled_back + report.losers_left
        );
    }
}

/// What the flash tier did.
pub(crate) fn flash(tier: &FlashStats) {
    let reads = tier.hits + tier.misses;
    say!(
        "flash tier: {} of {} reads ({:.0}%), {} of {} frames in use, {} dirty; let in {} clean and {} dirty pages, \
         brought {} home, wrote {}",
        tier.hits,
        reads,
        100.0 * tier.hits as f64 / reads.max(1) as f64,
        tier.used,
        tier.frames,
        tier.dirty,
        tier.admitted_clean,
        tier.admitted_dirty,
        tier.cleaned,
        bytes(tier.written_bytes)
    );
    if let Some(problem) = &tier.problem {
        say!("flash tier: off, {problem}");
    }
}

/// "3.42 ms", "1.2 s": three figures or so.
pub(crate) fn duration(duration: Duration) -> String {
    let nanos = duration.as_nanos() as f64;
    match nanos {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.1} us", n / 1e3),
        n if n < 1e9 => format!("{:.2} ms", n / 1e6),
        n => format!("{:.2} s", n / 1e9),
    }
}

/// "12.3 MB".
pub(crate) fn bytes(bytes: u64) -> String {
    let scale = [(1u64 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")];
    match scale.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => Size(bytes).to_string(),
    }
}

/// Prints rows under a heading, the first column to the left, the others to the right.
pub(crate) fn table(heading: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([heading[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::new();
        for (column, cell) in cells.enumerate() {
            let width = widths[column];
            text += &if column == 0 { format!("  {cell:<width$}") } else { format!("  {cell:>width$}") };
        }
        println!("{}", text.trim_end());
    };
    line(&mut heading.iter().copied());
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
}

/// Reads and writes by device between two readings of their statistics.
pub(crate) fn devices(devices: &[DeviceRef], before: &[DeviceStats], after: &[DeviceStats]) {
    let rows: Vec<Vec<String>> = devices
        .iter()
        .zip(before.iter().zip(after))
        .map(|(device, (before, now))| {
            vec![
                device.name().to_string(),
                (now.reads - before.reads).to_string(),
                bytes(now.read_bytes - before.read_bytes),
                (now.writes - before.writes).to_string(),
                bytes(now.write_bytes - before.write_bytes),
                (now.syncs - before.syncs).to_string(),
            ]
        })
        .collect();
    table(&["file on device", "reads", "read", "writes", "written", "syncs"], &rows);
}
