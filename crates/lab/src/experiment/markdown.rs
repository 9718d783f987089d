//! What was found, as the tables of `docs/experiments/results.md`.
//!
//! 1. A cell is the mean ± half of its 95% interval, then the paper's number in brackets. A half below a two-hundredth
//!    of its mean is left out.
//! 2. Cases are the lines of a table and metrics its columns. A case with a single number is an item of a list.

use super::report::{number, plain, verdict};
use super::run::Finished;
use super::{Interval, Row};
use std::fmt::Write;

/// More columns than these are another table.
const COLUMNS: usize = 9;
/// Characters of a line of prose.
const WIDTH: usize = 120;

impl Finished {
    /// A section that begins with a heading of the second level.
    pub fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n", self.experiment.id);
        let seeds = self.seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let (shows, source) = (self.experiment.shows, self.experiment.source);
        let shows = format!("{}{}", shows[..1].to_uppercase(), &shows[1..]);
        prose(&mut text, &format!("{shows}. {source}. Scale {}, seeds {seeds}.", self.scale.name()), "");
        text.push('\n');
        self.tables(&mut text);
        for shape in &self.findings.shapes {
            prose(&mut text, &format!("- {}: **{}**", shape.statement, verdict(shape)), "  ");
        }
        for note in &self.findings.notes {
            prose(&mut text, &format!("- {note}"), "  ");
        }
        let config: Vec<String> = self.config.iter().map(|(name, value)| format!("{name}: {}", plain(value))).collect();
        text.push('\n');
        prose(&mut text, &format!("Configuration: {}.", config.join("; ")), "");
        text
    }

    /// Invariant 2.
    fn tables(&self, text: &mut String) {
        let rows = &self.findings.rows;
        let of = |label: &str| rows.iter().filter(|row| row.label == label).count();
        let (single, many): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| of(&row.label) == 1);
        let metrics = distinct(many.iter().map(|row| (row.metric.as_str(), row.unit)));
        let labels = distinct(many.iter().map(|row| row.label.as_str()));
        for columns in metrics.chunks(COLUMNS) {
            let head = columns.iter().map(|(metric, unit)| match *unit {
                "" | "x" => metric.to_string(),
                unit => format!("{metric}, {unit}"),
            });
            line(text, "case", head);
            line(text, "---", columns.iter().map(|_| "---".into()));
            for label in &labels {
                let found = columns
                    .iter()
                    .map(|(metric, _)| many.iter().find(|row| row.label == *label && row.metric == *metric));
                let found: Vec<Option<&&Row>> = found.collect();
                if found.iter().any(Option::is_some) {
                    line(text, label, found.iter().map(|row| row.map_or_else(|| "-".into(), |row| cell(row))));
                }
            }
            text.push('\n');
        }
        for row in &single {
            prose(text, &format!("- {}: {} {}, {}", row.label, cell(row), row.unit, row.metric), "  ");
        }
        if !single.is_empty() {
            text.push('\n');
        }
    }
}

fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    all.fold(Vec::new(), |mut seen, one| {
        if !seen.contains(&one) {
            seen.push(one);
        }
        seen
    })
}

fn line(text: &mut String, first: &str, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.collect();
    let _ = writeln!(text, "| {first} | {} |", cells.join(" | "));
}

/// Invariant 1.
fn cell(row: &Row) -> String {
    let Interval { mean, high, seeds, .. } = row.ours;
    let half = high - mean;
    let spread = match seeds > 1 && half > mean.abs() / 200.0 {
        true => format!(" ± {}", number(half)),
        false => String::new(),
    };
    let paper = row.paper.map_or_else(String::new, |paper| format!(" [{}]", number(paper)));
    format!("{}{spread}{paper}", number(mean))
}

/// A paragraph or an item in lines of at most `WIDTH` characters; later lines begin with `indent`.
fn prose(text: &mut String, all: &str, indent: &str) {
    let mut width = 0;
    for word in all.split_whitespace() {
        let long = word.chars().count();
        if width > 0 && width + 1 + long > WIDTH {
            let _ = write!(text, "\n{indent}{word}");
            width = indent.len() + long;
        } else {
            let space = if width > 0 { " " } else { "" };
            let _ = write!(text, "{space}{word}");
            width += space.len() + long;
        }
    }
    text.push('\n');
}
