//! EXPLAIN's output: text in PostgreSQL's shape, or JSON.
use super::tree::{Actual, Node};
use std::fmt::Write;
use terrace_storage::{Place, Reads};

/// The document of a statement that has no plan.
pub(super) const UTILITY: &str = "[\n  \"Utility Statement\"\n]";

/// What the whole statement cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Total {
    /// Nanoseconds; 0: within the execution.
    pub(super) planning: u64,
    /// Where it was executed: nanoseconds, rows returned or changed, pages.
    pub(super) execution: Option<(u64, u64, Reads)>,
}

fn ms(nanos: u64) -> String {
    format!("{:.3}", nanos as f64 / 1e6)
}

/// By place, of those that have something: `data=3 flash=1`.
fn by_place(values: [u64; Place::ALL.len()], show: impl Fn(u64) -> String) -> String {
    let some = Place::ALL.iter().zip(values).filter(|(_, value)| *value > 0);
    some.map(|(place, value)| format!("{}={}", place.name(), show(value))).collect::<Vec<_>>().join(" ")
}

fn buffer_lines(reads: &Reads) -> Vec<String> {
    let mut parts = vec![];
    if reads.hits() > 0 {
        parts.push(format!("hit={}", reads.hits()));
    }
    if reads.total_pages() > 0 {
        parts.push(format!("read={} ({})", reads.total_pages(), by_place(reads.pages, |n| n.to_string())));
    }
    let mut lines = vec![];
    if !parts.is_empty() {
        lines.push(format!("Buffers: {}", parts.join(" ")));
    }
    if reads.total_nanos() > 0 {
        lines.push(format!("I/O Timings: read={} ({})", ms(reads.total_nanos()), by_place(reads.nanos, ms)));
    }
    lines
}

fn actual_text(actual: Option<Actual>) -> String {
    actual.map_or(String::new(), |a| format!("  (actual time={} rows={})", ms(a.nanos), a.rows))
}

/// Lines as psql shows PostgreSQL's.
pub(super) fn text(root: &Node, total: &Total, buffers: bool, summary: bool) -> Vec<String> {
    let mut lines = vec![];
    text_node(root, 0, buffers, total.execution.filter(|_| buffers).map(|(_, _, reads)| reads), &mut lines);
    if summary {
        if total.planning > 0 {
            lines.push(format!("Planning Time: {} ms", ms(total.planning)));
        }
        if let Some((nanos, ..)) = total.execution {
            lines.push(format!("Execution Time: {} ms", ms(nanos)));
        }
    }
    lines
}

/// `whole`: what the root shows, which is everything.
fn text_node(node: &Node, depth: usize, buffers: bool, whole: Option<Reads>, lines: &mut Vec<String>) {
    // The root stands at the margin; a child's arrow stands six columns right of its parent's text, as in PostgreSQL.
    let (indent, arrow) = if depth == 0 { (0, "") } else { (depth * 6 - 4, "->  ") };
    lines.push(format!("{:indent$}{arrow}{}{}{}", "", node.kind, node.on, actual_text(node.actual)));
    let inner = indent + arrow.len() + 2;
    if !node.output.is_empty() {
        lines.push(format!("{:inner$}Output: {}", "", node.output.join(", ")));
    }
    for (name, text) in &node.details {
        lines.push(format!("{:inner$}{name}: {text}", ""));
    }
    if let Some(reads) = whole.or(node.reads).filter(|_| buffers) {
        lines.extend(buffer_lines(&reads).into_iter().map(|line| format!("{:inner$}{line}", "")));
    }
    for child in &node.children {
        text_node(child, depth + 1, buffers, None, lines);
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out + "\""
}

/// An object's fields, values as JSON already.
struct Fields(Vec<(String, String)>);

impl Fields {
    fn text(&mut self, name: &str, text: &str) {
        self.plain(name, quoted(text));
    }
    fn plain(&mut self, name: &str, value: impl ToString) {
        self.0.push((name.to_owned(), value.to_string()));
    }
    fn object(&self, indent: usize) -> String {
        let lines = self.0.iter().map(|(name, value)| format!("{:w$}{}: {value}", "", quoted(name), w = indent + 2));
        format!("{{\n{}\n{:indent$}}}", lines.collect::<Vec<_>>().join(",\n"), "")
    }
}

fn json_reads(fields: &mut Fields, reads: &Reads) {
    fields.plain("Shared Hit Blocks", reads.hits());
    fields.plain("Shared Read Blocks", reads.total_pages());
    fields.plain("I/O Read Time", ms(reads.total_nanos()));
    for (i, place) in Place::ALL.iter().enumerate() {
        fields.plain(&format!("Read Blocks from {}", place.name()), reads.pages[i]);
        fields.plain(&format!("Read Time from {}", place.name()), ms(reads.nanos[i]));
    }
}

fn json_node(node: &Node, buffers: bool, whole: Option<Reads>, indent: usize) -> String {
    let mut fields = Fields(vec![]);
    fields.text("Node Type", &node.kind);
    for (name, text) in [("Parent Relationship", node.role), ("Join Type", node.join)] {
        text.into_iter().for_each(|text| fields.text(name, text));
    }
    if let Some(relation) = &node.relation {
        fields.text("Relation Name", relation);
    }
    if let Some(index) = &node.index {
        fields.text("Index Name", index);
    }
    if !node.output.is_empty() {
        let columns: Vec<String> = node.output.iter().map(|column| quoted(column)).collect();
        fields.plain("Output", format!("[{}]", columns.join(", ")));
    }
    for (name, text) in &node.details {
        fields.text(name, text);
    }
    if let Some(actual) = node.actual {
        fields.plain("Actual Rows", actual.rows);
        fields.plain("Actual Time", ms(actual.nanos));
    }
    if let Some(reads) = whole.or(node.reads).filter(|_| buffers) {
        json_reads(&mut fields, &reads);
    }
    if !node.children.is_empty() {
        let inner = indent + 4;
        let plans = node.children.iter().map(|c| format!("{:inner$}{}", "", json_node(c, buffers, None, inner)));
        let plans = plans.collect::<Vec<_>>().join(",\n");
        fields.plain("Plans", format!("[\n{plans}\n{:w$}]", "", w = indent + 2));
    }
    fields.object(indent)
}

/// One document, in PostgreSQL's shape.
pub(super) fn json(root: &Node, total: &Total, buffers: bool, summary: bool) -> String {
    let mut fields = Fields(vec![]);
    let whole = total.execution.filter(|_| buffers).map(|(_, _, reads)| reads);
    fields.plain("Plan", json_node(root, buffers, whole, 4));
    if summary {
        if total.planning > 0 {
            fields.plain("Planning Time", ms(total.planning));
        }
        if let Some((nanos, ..)) = total.execution {
            fields.plain("Execution Time", ms(nanos));
        }
    }
    format!("[\n  {}\n]", fields.object(2))
}
