use super::show::{Total, json, text};
use super::*;

fn sample() -> (Node, Total) {
    let reads = Reads { resident: 7, ahead: 2, pages: [2, 0, 1], nanos: [1_500_000, 0, 250_000] };
    let mut scan = modifying("Index Scan", "t", None);
    scan.on = " using t_pkey on t".into();
    scan.index = Some("t_pkey".into());
    scan.details = vec![("Index Cond", "(id > 5)".into())];
    scan.actual = Some(Actual { rows: 3, nanos: 2_000_000 });
    scan.reads = Some(reads);
    let mut sort = modifying("Sort", "", Some(scan));
    sort.on.clear();
    sort.relation = None;
    let mut root = modifying("Update", "t", Some(sort));
    root.actual = Some(Actual { rows: 3, nanos: 4_000_000 });
    (root, Total { planning: 10_000, execution: Some((4_000_000, 3, reads)) })
}

#[test]
fn text_has_postgresqls_shape() {
    let (root, total) = sample();
    assert_eq!(
        text(&root, &total, true, true),
        [
            "Update on t  (actual time=4.000 rows=3)",
            "  Buffers: hit=5 read=3 (data=2 flash=1)",
            "  I/O Timings: read=1.750 (data=1.500 flash=0.250)",
            "  ->  Sort",
            "        ->  Index Scan using t_pkey on t  (actual time=2.000 rows=3)",
            "              Index Cond: (id > 5)",
            "              Buffers: hit=5 read=3 (data=2 flash=1)",
            "              I/O Timings: read=1.750 (data=1.500 flash=0.250)",
            "Planning Time: 0.010 ms",
            "Execution Time: 4.000 ms",
        ]
    );
    assert!(text(&root, &total, false, false).iter().all(|line| !line.contains("Buffers") && !line.contains("Time:")));
}

#[test]
fn json_nests_plans() {
    let (root, total) = sample();
    let document = json(&root, &total, true, true);
    for line in [
        "    \"Plan\": {",
        "      \"Node Type\": \"Update\",",
        "      \"Relation Name\": \"t\",",
        "      \"Actual Rows\": 3,",
        "      \"Read Blocks from flash\": 1,",
        "      \"Plans\": [",
        "          \"Node Type\": \"Sort\",",
        "              \"Index Name\": \"t_pkey\",",
        "              \"Index Cond\": \"(id > 5)\",",
        "    \"Execution Time\": 4.000",
    ] {
        assert!(document.lines().any(|l| l == line), "{line:?} is not in\n{document}");
    }
    assert_eq!(document.matches(['{', '[']).count(), document.matches(['}', ']']).count());
}

fn options(sql: &str) -> Result<Options> {
    let parsed = crate::parse::statement(sql)?.expect("a statement");
    let Statement::Explain(explain) = parsed.statement() else { panic!("{sql}") };
    Options::of(explain)
}

#[test]
fn options_are_postgresqls() {
    let found = options("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON, COSTS off, SUMMARY false) SELECT 1").unwrap();
    let expected = Options { analyze: true, verbose: false, buffers: true, json: true, summary: Some(false) };
    assert_eq!(found, expected);
    assert!(!options("EXPLAIN (ANALYZE false) SELECT 1").unwrap().analyze);
    assert!(options("EXPLAIN ANALYZE VERBOSE SELECT 1").unwrap().verbose);
    for (sql, state) in [
        ("EXPLAIN (FAST) SELECT 1", "42601"),
        ("EXPLAIN (ANALYZE maybe) SELECT 1", "42601"),
        ("EXPLAIN (FORMAT xml) SELECT 1", "0A000"),
        ("EXPLAIN (FORMAT nothing) SELECT 1", "22023"),
        ("EXPLAIN (WAL) SELECT 1", "0A000"),
    ] {
        assert_eq!(options(sql).unwrap_err().state.0, state, "{sql}");
    }
}
