//! Results as text: tables as psql draws them, one column to a line, or CSV (RFC 4180).

use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Style {
    Table,
    /// A line for each column.
    Expanded,
    Csv,
}

pub(super) type Row = Vec<Option<String>>;

pub(super) fn rows(style: Style, columns: &[String], rows: &[Row]) -> String {
    match style {
        Style::Table => table(columns, rows),
        Style::Expanded => expanded(columns, rows),
        Style::Csv => csv(columns, rows),
    }
}

fn cell(row: &Row, column: usize) -> &str {
    row.get(column).and_then(|cell| cell.as_deref()).unwrap_or("")
}

/// Columns of a terminal that the widest line of a value takes.
fn width(text: &str) -> usize {
    text.lines().map(UnicodeWidthStr::width).max().unwrap_or(0)
}

#[derive(Clone, Copy)]
enum Align {
    Left,
    Middle,
    Right,
}

fn padded(text: &str, width: usize, align: Align) -> String {
    let missing = width.saturating_sub(text.width());
    let before = match align {
        Align::Left => 0,
        Align::Middle => missing / 2,
        Align::Right => missing,
    };
    format!("{}{text}{}", " ".repeat(before), " ".repeat(missing - before))
}

/// Numbers stand to the right; what is no number anywhere, to the left.
fn is_numeric(rows: &[Row], column: usize) -> bool {
    let number = |row: &Row| cell(row, column).parse::<f64>().is_ok();
    rows.iter().any(|row| !cell(row, column).is_empty())
        && rows.iter().filter(|row| !cell(row, column).is_empty()).all(number)
}

fn table(columns: &[String], rows: &[Row]) -> String {
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, name)| rows.iter().map(|row| width(cell(row, at))).chain([width(name)]).max().unwrap_or(0))
        .collect();
    let right: Vec<bool> = (0..columns.len()).map(|at| is_numeric(rows, at)).collect();
    let mut out = String::new();
    let middle = |(name, width): (&String, &usize)| format!(" {} ", padded(name, *width, Align::Middle));
    let heading: Vec<String> = columns.iter().zip(&widths).map(middle).collect();
    out.push_str(heading.join("|").trim_end());
    out.push('\n');
    out.push_str(&widths.iter().map(|width| "-".repeat(width + 2)).collect::<Vec<_>>().join("+"));
    out.push('\n');
    for row in rows {
        // A value of several lines takes several lines of the table.
        let lines: Vec<Vec<&str>> = (0..columns.len()).map(|at| cell(row, at).lines().collect()).collect();
        for line in 0..lines.iter().map(Vec::len).max().unwrap_or(1).max(1) {
            let cells = (0..columns.len()).map(|at| {
                let (text, width) = (lines[at].get(line).copied().unwrap_or(""), widths[at]);
                format!(" {} ", padded(text, width, if right[at] { Align::Right } else { Align::Left }))
            });
            out.push_str(cells.collect::<Vec<_>>().join("|").trim_end());
            out.push('\n');
        }
    }
    out.push_str(&count(rows.len()));
    out
}

fn count(rows: usize) -> String {
    format!("({rows} row{})\n", if rows == 1 { "" } else { "s" })
}

fn expanded(columns: &[String], rows: &[Row]) -> String {
    let widest = columns.iter().map(|name| width(name)).max().unwrap_or(0);
    let mut out = String::new();
    for (number, row) in rows.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "-[ RECORD {} ]-", number + 1);
        for (at, name) in columns.iter().enumerate() {
            let _ =
                writeln!(out, "{}", format!("{} | {}", padded(name, widest, Align::Left), cell(row, at)).trim_end());
        }
    }
    if rows.is_empty() { count(0) } else { out }
}

fn csv(columns: &[String], rows: &[Row]) -> String {
    let line = |cells: &mut dyn Iterator<Item = String>| cells.collect::<Vec<_>>().join(",") + "\n";
    let mut out = line(&mut columns.iter().map(|name| quoted(name)));
    for row in rows {
        // NULL is nothing, an empty text is "".
        let field = |cell: &Option<String>| match cell.as_deref() {
            None => String::new(),
            Some("") => "\"\"".to_string(),
            Some(text) => quoted(text),
        };
        out += &line(&mut row.iter().map(field));
    }
    out
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_string() }
}

#[cfg(test)]
mod tests;
