//! Lines and fields, there and back, cut anywhere.
use super::fields::Fields;
use super::lines::Lines;
use super::options::{self, CopyFormat};
use terrace_engine::Result;
use terrace_grammar::statement::Statement;

type Row = Vec<Option<String>>;

fn format(options: &str) -> Result<CopyFormat> {
    let to = options.starts_with("TO");
    let options = options.trim_start_matches("TO");
    let sql = format!("COPY t {} {options}", if to { "TO STDOUT" } else { "FROM STDIN" });
    let parsed = crate::parse::statement(&sql)?.expect("a statement");
    let Statement::Copy(copy) = parsed.statement() else { panic!("{sql}") };
    options::format(&copy.options, to)?.resolve(|name| Ok(usize::from(name == "b")))
}

/// Reads the data in parts of each size from one byte on: the answer does not depend on it.
fn read(options: &str, data: &[u8]) -> Result<Vec<Row>> {
    let format = format(options).unwrap();
    let parts = |size: usize| -> Result<Vec<Row>> {
        let (mut lines, mut fields, mut rows) = (Lines::new(format.clone()), Fields::default(), vec![]);
        let mut chunks: Vec<(bool, &[u8])> = data.chunks(size).map(|chunk| (false, chunk)).collect();
        chunks.push((true, &[]));
        for (at_end, chunk) in chunks {
            lines.push(chunk);
            while let Some(line) = lines.next(at_end)? {
                fields.split(line.bytes, &format)?;
                let field = |i| fields.get(i).unwrap().map(|b| String::from_utf8(b.to_vec()).unwrap());
                rows.push((0..fields.len()).map(field).collect());
            }
        }
        Ok(rows)
    };
    let whole = parts(data.len().max(1));
    for size in 1..8 {
        match (&whole, parts(size)) {
            (Ok(whole), Ok(cut)) => assert_eq!(whole, &cut, "in parts of {size}: {data:?}"),
            (Err(whole), Err(cut)) => assert_eq!(whole.message, cut.message, "in parts of {size}: {data:?}"),
            (whole, cut) => panic!("{whole:?} whole, {cut:?} in parts of {size}: {data:?}"),
        }
    }
    whole
}

fn shown(rows: &[Row]) -> String {
    let field = |f: &Option<String>| f.clone().unwrap_or_else(|| "NULL".into());
    rows.iter().map(|row| row.iter().map(field).collect::<Vec<_>>().join("|")).collect::<Vec<_>>().join("/")
}

#[test]
fn text_lines() {
    let is = |data: &str, expected: &str| assert_eq!(shown(&read("", data.as_bytes()).unwrap()), expected, "{data:?}");
    is("1\ta\n2\tb\n", "1|a/2|b");
    is("1\ta\r\n2\tb\r\n", "1|a/2|b");
    is("1\ta\r2\tb\r", "1|a/2|b");
    is("1\ta\n2\tb", "1|a/2|b");
    is("\\N\t\n", "NULL|");
    is("\\\\N\t\\t\\n\\r\\b\\f\\v\\\\\n", "\\N|\t\n\r\u{8}\u{c}\u{b}\\");
    is("\\101\\x42\\x4g\\q\\\n\\\t\n", "AB\u{4}gq\n\t");
    is("1\n\\.\nanything\tat all", "1");
    is("", "");
    is("\n", "");
    let stray = |data: &str| read("", data.as_bytes()).unwrap_err().message;
    assert_eq!(stray("1\n2\r\n"), "literal carriage return found in data");
    assert_eq!(stray("1\r\n2\n"), "literal newline found in data");
    assert_eq!(stray("1\\.\n"), "end-of-copy marker corrupt");
    is("1\ta\\", "1|a");
    assert_eq!(stray("1\n\\."), "end-of-copy marker corrupt");
    assert_eq!(shown(&read("(DELIMITER '|', NULL '')", b"1||x\\|y\n").unwrap()), "1|NULL|x|y");
}

#[test]
fn csv_lines() {
    let is = |options: &str, data: &str, expected: &str| {
        assert_eq!(shown(&read(options, data.as_bytes()).unwrap()), expected, "{options} {data:?}");
    };
    is("CSV", "1,a\n2,\"b,\"\"c\"\"\nd\"\n", "1|a/2|b,\"c\"\nd");
    is("(FORMAT csv)", ",\"\"\n", "NULL|");
    is("(FORMAT 'csv', NULL 'x')", "x,\"x\",\n", "NULL|x|");
    is("(FORMAT csv, ESCAPE '\\')", "\"a\\\"b\\\\\",\\c\n", "a\"b\\|\\c");
    is("(FORMAT csv, QUOTE '''', DELIMITER ';')", "'a;b';\"c\n", "a;b|\"c");
    is("(FORMAT csv, FORCE_NOT_NULL (b))", ",\n", "NULL|");
    is("(FORMAT csv, FORCE_NULL (b))", "\"\",\"\"\n", "|NULL");
    is("CSV", "\\N,a\n\\.\nrest", "\\N|a");
    is("CSV", "a\n\\.", "a/\\.");
    assert_eq!(read("CSV", b"1,\"a\n").unwrap_err().message, "unterminated CSV quoted field");
    assert_eq!(read("CSV", b"1\n2\r\n").unwrap_err().message, "unquoted carriage return found in data");
}

#[test]
fn what_is_written_is_read() {
    let texts =
        ["", "a", "\\N", "\\.", "NULL", "x,y", "\"q\"", "a\tb", "l\nm\r", "\\", "ü", "\u{8}\u{b}\u{c}", "|", "''"];
    let all = ["", "(DELIMITER '|', NULL 'none')", "CSV", "(FORMAT csv, NULL 'x,', DELIMITER '|')"];
    let more = ["(FORMAT csv, QUOTE '''', ESCAPE '\\')", "(FORMAT csv, ESCAPE '\\')", "(FORMAT csv, DELIMITER E'\\t')"];
    for options in all.iter().chain(&more) {
        let format = format(options).unwrap();
        for width in 1..=3 {
            let mut rows: Vec<Row> = vec![];
            for i in 0..texts.len() {
                let field = |n: usize| (n != 1 || i % 3 > 0).then(|| texts[(i + n * 5) % texts.len()].to_string());
                rows.push((0..width).map(field).collect());
            }
            let mut data = vec![];
            for row in &rows {
                for (number, field) in row.iter().enumerate() {
                    format.write_field(&mut data, number, row.len(), field.as_deref().map(str::as_bytes));
                }
                data.push(b'\n');
            }
            assert_eq!(read(options, &data).unwrap(), rows, "{options}");
        }
    }
}

#[test]
fn options_are_checked() {
    let refused = |options: &str, state: &str| {
        let error = format(options).expect_err(options);
        assert_eq!(error.state.0, state, "{options}: {error}");
    };
    for fine in [
        "(FREEZE on)",
        "(FREEZE)",
        "(HEADER 1)",
        "(HEADER match)",
        "(header off)",
        "WITH CSV HEADER",
        "WITH DELIMITER AS ','",
    ] {
        assert!(format(fine).is_ok(), "{fine}");
    }
    let quoting = format("TO (FORMAT csv, FORCE_QUOTE *)").unwrap();
    assert!(quoting.csv.as_ref().unwrap().force_quote.has(7));
    let mut line = vec![];
    quoting.write_name(&mut line, 0, 2, "i");
    quoting.write_name(&mut line, 1, 2, "a,b");
    quoting.write_field(&mut line, 1, 2, Some(b"1"));
    assert_eq!(String::from_utf8(line).unwrap(), "i,\"a,b\",\"1\"", "f38: names are quoted where they must be");
    refused("(FORMAT binary, DELIMITER '|')", "42601");
    refused("(FORMAT binary, NULL 'x')", "42601");
    refused("(FORMAT binary, HEADER)", "0A000");
    refused("(FORMAT binary, QUOTE 'x')", "0A000");
    refused("(FORMAT json)", "22023");
    refused("(QUOTE '\"')", "0A000");
    refused("(DELIMITER 'a')", "22023");
    refused("(DELIMITER E'\\n')", "22023");
    refused("(FORMAT csv, QUOTE ',')", "22023");
    refused("(NULL E'\\n')", "22023");
    refused("(NULL 'a\tb')", "0A000");
    refused("(FORMAT csv, NULL '\"')", "0A000");
    refused("(FORMAT csv, FORCE_NULL *)", "22023");
    refused("(FORMAT csv, FORCE_NOT_NULL *)", "22023");
    refused("(FORMAT csv, FORMAT csv)", "42601");
    refused("(ENCODING 'latin1')", "0A000");
    refused("TO (HEADER match)", "0A000");
    refused("(HEADER wrong)", "42601");
    refused("(FORMAT csv, FORCE_QUOTE (b))", "0A000");
    refused("TO (FREEZE)", "0A000");
}
