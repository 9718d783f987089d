//! EXPLAIN as a client sees it.
mod common;
use common::{Client, Reply, database};

async fn client() -> Client {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (a int, b int, note text, PRIMARY KEY (a, b))", "CREATE TABLE").await;
    c.ok("INSERT INTO t SELECT x / 10, x % 10, 'n' FROM generate_series(0, 999) AS g(x)", "INSERT 0 1000").await;
    c
}

async fn plan(c: &mut Client, sql: &str) -> Vec<String> {
    match c.run(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}")) {
        Reply::Rows(lines) => lines,
        other => panic!("{sql}: {other:?}"),
    }
}

fn has(lines: &[String], part: &str) {
    assert!(lines.iter().any(|l| l.contains(part)), "{part:?} is not in\n{}", lines.join("\n"));
}

#[tokio::test]
async fn plans_are_in_postgresqls_words() {
    let mut c = client().await;
    let lines = plan(&mut c, "EXPLAIN SELECT note FROM t WHERE a = 5 AND b >= 3").await;
    has(&lines, "Index Scan using t_pkey on t");
    has(&lines, "Index Cond: (a = 5 AND b >= 3)");
    has(&lines, "Filter: ");
    let lines = plan(&mut c, "EXPLAIN SELECT x.note FROM t x JOIN t y ON x.a = y.b ORDER BY x.b").await;
    has(&lines, "Hash Join");
    has(&lines, "->  Seq Scan on t");
    has(&lines, "Sort Key: ");
    assert!(lines.iter().all(|l| !l.contains("actual") && !l.contains("Time") && !l.contains('@')), "{lines:#?}");
    let lines = plan(&mut c, "EXPLAIN INSERT INTO t VALUES (1000, 1, 'x')").await;
    assert_eq!(lines, ["Insert on t", "  ->  Values"]);
    c.rows("SELECT count(*) FROM t", &["1000"]).await;
}

#[tokio::test]
async fn analyze_counts_rows_and_pages() {
    let mut c = client().await;
    let lines = plan(&mut c, "EXPLAIN (ANALYZE, BUFFERS) SELECT count(*) FROM t WHERE note = 'n'").await;
    has(&lines, "Aggregate");
    let scan = lines.iter().position(|l| l.contains("Seq Scan on t  (actual time=")).expect("the scan");
    assert!(lines[scan].ends_with("rows=1000)"), "{lines:#?}");
    assert!(lines[scan + 1].trim().starts_with("Buffers: hit="), "{lines:#?}");
    has(&lines, "Planning Time: ");
    has(&lines, "Execution Time: ");
    let lines = plan(&mut c, "EXPLAIN (ANALYZE, SUMMARY off) SELECT 1").await;
    assert!(lines.iter().all(|l| !l.contains("Time:") && !l.contains("Buffers")), "{lines:#?}");
}

#[tokio::test]
async fn analyze_of_changes_makes_them() {
    let mut c = client().await;
    let lines = plan(&mut c, "EXPLAIN (ANALYZE, BUFFERS) UPDATE t SET note = 'm' WHERE a = 7").await;
    assert!(lines[0].starts_with("Update on t  (actual time=") && lines[0].ends_with("rows=10)"), "{lines:#?}");
    assert!(lines[1].starts_with("  Buffers: hit="), "{lines:#?}");
    has(&lines, "Index Cond: (a = 7)");
    c.rows("SELECT count(*) FROM t WHERE note = 'm'", &["10"]).await;
    let lines = plan(&mut c, "EXPLAIN ANALYZE DELETE FROM t WHERE a = 8").await;
    assert!(lines[0].starts_with("Delete on t") && lines[0].ends_with("rows=10)"), "{lines:#?}");
    let lines = plan(&mut c, "EXPLAIN ANALYZE INSERT INTO t SELECT a + 1000, b, note FROM t WHERE a = 7").await;
    assert!(lines[0].starts_with("Insert on t") && lines[0].ends_with("rows=10)"), "{lines:#?}");
    c.rows("SELECT count(*) FROM t", &["1000"]).await;
    c.ok("BEGIN", "BEGIN").await;
    plan(&mut c, "EXPLAIN ANALYZE DELETE FROM t").await;
    c.rows("SELECT count(*) FROM t", &["0"]).await;
    c.ok("ROLLBACK", "ROLLBACK").await;
    c.rows("SELECT count(*) FROM t", &["1000"]).await;
}

#[tokio::test]
async fn json_is_one_document() {
    let mut c = client().await;
    let lines = plan(&mut c, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM t WHERE a = 3").await;
    let [document] = lines.as_slice() else { panic!("one row: {lines:#?}") };
    for part in [
        "\"Node Type\": \"Index Scan\"",
        "\"Index Name\": \"t_pkey\"",
        "\"Shared Hit Blocks\": ",
        "\"Read Blocks from data\": ",
    ] {
        assert!(document.contains(part), "{part} is not in\n{document}");
    }
    c.fails("EXPLAIN (FORMAT yaml) SELECT 1", "0A000").await;
    c.fails("EXPLAIN (QUICK) SELECT 1", "42601").await;
    c.fails("EXPLAIN ANALYZE CREATE TABLE u (id int)", "0A000").await;
    c.fails("EXPLAIN ANALYZE SELECT * FROM nothing", "42P01").await;
}
