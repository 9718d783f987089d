//! Results as text: tables as psql draws them, one column to a line, or CSV (RFC 4180).

use std::fmt::Write;

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

fn width(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
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
    let heading: Vec<String> = columns.iter().zip(&widths).map(|(name, width)| format!(" {name:^width$} ")).collect();
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
                if right[at] { format!(" {text:>width$} ") } else { format!(" {text:<width$} ") }
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
            let _ = writeln!(out, "{}", format!("{name:<widest$} | {}", cell(row, at)).trim_end());
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
mod tests {
    use super::*;

    #[test]
    fn each_style_shows_values_of_every_kind() {
        let columns = ["id".to_string(), "text".to_string()];
        let data = [
            vec![Some("7".to_string()), Some("a, \"b\"\nc".to_string())],
            vec![Some("10".to_string()), None],
            vec![None, Some(String::new())],
        ];
        let table = " id |  text\n----+--------\n  7 | a, \"b\"\n    | c\n 10 |\n    |\n(3 rows)\n";
        assert_eq!(rows(Style::Table, &columns, &data), table);
        assert_eq!(rows(Style::Csv, &columns, &data), "id,text\n7,\"a, \"\"b\"\"\nc\"\n10,\n,\"\"\n");
        let expanded = "-[ RECORD 1 ]-\nid   | 10\ntext |\n";
        assert_eq!(rows(Style::Expanded, &columns, &data[1..2]), expanded);
        assert_eq!(rows(Style::Table, &columns, &data[1..2]), " id | text\n----+------\n 10 |\n(1 row)\n");
    }
}
