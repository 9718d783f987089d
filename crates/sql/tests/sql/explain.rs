//! EXPLAIN as a client sees it.
use crate::common::{Client, Reply, database};
use terrace_engine::DataType;

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
async fn lists_of_keys_are_looked_up() {
    let mut c = client().await;
    for (condition, shown) in [
        ("a IN (9, 3, 5, 3, 1)", "Index Cond: (a IN (1, 3, 5, 9))"),
        ("a = 7 OR a = 2", "Index Cond: (a IN (2, 7))"),
        ("a = ANY (ARRAY[4, 6])", "Index Cond: (a IN (4, 6))"),
        ("a = ANY ('{8,6,4,2}')", "Index Cond: (a IN (2, 4, 6, 8))"),
        ("a IN (4, 2) AND b > 7", "Index Cond: ((a = 2 AND b > 7) OR (a = 4 AND b > 7))"),
        ("a = 4 AND b IN (1, 2)", "Index Cond: ((a = 4 AND b = 1) OR (a = 4 AND b = 2))"),
        ("a IN (0,1,2,3,4,5,6,7,8,9,10,11)", "Index Cond: (a IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (12 values)))"),
    ] {
        for verb in ["SELECT * FROM", "DELETE FROM"] {
            let lines = plan(&mut c, &format!("EXPLAIN {verb} t WHERE {condition}")).await;
            has(&lines, "Index Scan using t_pkey on t");
            has(&lines, shown);
        }
    }
    let lines = plan(&mut c, "EXPLAIN SELECT a, b FROM t WHERE a IN (5, 3) ORDER BY a, b").await;
    assert!(!lines.iter().any(|l| l.contains("Sort")), "they come in the order of the keys: {lines:#?}");
    c.rows("SELECT a, b FROM t WHERE a IN (5, 3) AND b IN (9, 0) ORDER BY a, b", &["3|0", "3|9", "5|0", "5|9"]).await;
    c.rows("SELECT a, b FROM t WHERE a IN (5, 3) ORDER BY a DESC, b DESC LIMIT 2", &["5|9", "5|8"]).await;
    c.ok("UPDATE t SET a = a + 100 WHERE a IN (97, 98, 99) AND b = 1", "UPDATE 3").await;
    c.rows("SELECT a FROM t WHERE b = 1 AND a IN (97, 198, 99, 199) ORDER BY a", &["198", "199"]).await;
    // As drivers bind it.
    let bound = c.session.prepare("SELECT count(*) FROM t WHERE a = ANY($1)", &[]).await.unwrap();
    let list: Vec<String> = (0..2000).map(|n| n.to_string()).collect();
    for (list, count) in [("{1,2,NULL}".into(), "20"), ("{}".into(), "0"), (format!("{{{}}}", list.join(",")), "1000")]
    {
        let list: String = list;
        let list = DataType::Int4.array().expect("integers have arrays").parse(&list).expect("a list");
        let rows = c.rows_of(&bound, vec![list]).await.unwrap();
        assert_eq!(rows, [count]);
    }
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
    let document = document(&mut c, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM t WHERE a = 3").await;
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

#[tokio::test]
async fn subqueries_that_are_no_joins_are_applied() {
    let mut c = client().await;
    let of = "(SELECT y.note FROM t y WHERE y.a = x.b ORDER BY y.b LIMIT 1 OFFSET 1)";
    let lines = plan(&mut c, &format!("EXPLAIN SELECT {of} FROM t x")).await;
    has(&lines, "Apply");
    has(&lines, "SubPlan: value for each (x.b)");
    has(&lines, "Index Scan using t_pkey on t");
    has(&lines, "Index Cond: (a = x.b)");
    has(&lines, "->  Limit");
    c.rows(&format!("SELECT count({of}), count(*) FROM t x"), &["1000|1000"]).await;
    let lines = plan(&mut c, &format!("EXPLAIN ANALYZE SELECT {of} FROM t x")).await;
    has(&lines, "Apply  (actual ");
    // What becomes a join stays one.
    let lines = plan(&mut c, "EXPLAIN SELECT (SELECT count(*) FROM t y WHERE y.a = x.b) FROM t x").await;
    assert!(lines.iter().all(|line| !line.contains("Apply")), "{lines:#?}");
}

/// A document without the blanks that make it readable.
async fn document(c: &mut Client, sql: &str) -> String {
    let lines = plan(c, sql).await;
    let [shown] = lines.as_slice() else { panic!("one row: {lines:#?}") };
    // A json is shown by its bytes.
    let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    let document = String::from_utf8(shown.as_bytes().chunks(2).map(byte).collect()).unwrap();
    document.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// As sqlx needs it, which finds out there which columns of an outer join may be NULL.
#[tokio::test]
async fn verbose_tells_columns_and_sides_of_joins() {
    let mut c = client().await;
    c.ok("CREATE TABLE l (id int PRIMARY KEY, n int)", "CREATE TABLE").await;
    c.ok("CREATE TABLE r (id int PRIMARY KEY, n int)", "CREATE TABLE").await;
    for on in ["l.id = r.n", "l.id > r.n"] {
        for (join, kind, kept, other) in
            [("l LEFT JOIN r", "Left", "l", "r"), ("l RIGHT JOIN r", "Left", "r", "l"), ("l JOIN r", "Inner", "", "")]
        {
            let sql = format!("EXPLAIN (VERBOSE, FORMAT JSON) SELECT l.n AS x, r.id FROM {join} ON {on}");
            let shown = document(&mut c, &sql).await;
            assert!(shown.contains(&format!("\"Join Type\": \"{kind}\", \"Output\": [\"l.n\", \"r.id\"]")), "{shown}");
            for (side, table) in [("Outer", kept), ("Inner", other)].into_iter().filter(|_| kind == "Left") {
                let scan = format!("\"Parent Relationship\": \"{side}\", \"Relation Name\": \"{table}\"");
                assert!(shown.contains(&scan), "{scan} is not in {shown}");
            }
        }
    }
    let sql = "EXPLAIN (VERBOSE, FORMAT JSON) SELECT x.id, y.id FROM l x FULL JOIN l y ON x.id = y.n WHERE true";
    let shown = document(&mut c, sql).await;
    assert!(shown.contains("\"Join Type\": \"Full\", \"Output\": [\"l.id\", \"l_1.id\"]"), "{shown}");
    let sql = "EXPLAIN (VERBOSE, FORMAT JSON) SELECT l.id + 1, n FROM l WHERE n > 3";
    let shown = document(&mut c, sql).await;
    assert!(shown.contains("\"Node Type\": \"Seq Scan\", \"Relation Name\": \"l\""), "{shown}");
    assert!(
        shown.contains("\"Output\": [\"(checked_add(l.id, 1))\", \"l.n\"]") && shown.contains("\"Filter\": "),
        "{shown}"
    );
    let lines = plan(&mut c, "EXPLAIN VERBOSE SELECT max(n) AS m, id FROM l GROUP BY id").await;
    has(&lines, "Output: l.id, l.n");
}

#[tokio::test]
async fn what_execute_runs_is_explained() {
    let mut c = client().await;
    c.ok("PREPARE s(int) AS SELECT note FROM t WHERE a = $1", "PREPARE").await;
    let lines = plan(&mut c, "EXPLAIN EXECUTE s(2 + 3)").await;
    has(&lines, "Index Scan using t_pkey on t");
    has(&lines, "Index Cond: (a = 5)");
    // A statement by key is planned, too.
    c.ok("PREPARE k(int, int) AS SELECT note FROM t WHERE a = $1 AND b = $2", "PREPARE").await;
    c.rows("EXECUTE k(3, 4)", &["n"]).await;
    let lines = plan(&mut c, "EXPLAIN EXECUTE k(3, 4)").await;
    has(&lines, "Index Cond: (a = 3 AND b = 4)");
    plan(&mut c, "EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE k(NULL, NULL)").await;
    c.ok("PREPARE d AS DELETE FROM t WHERE a = $1", "PREPARE").await;
    let lines = plan(&mut c, "EXPLAIN EXECUTE d(1)").await;
    assert_eq!(lines[0], "Delete on t");
    c.rows("SELECT count(*) FROM t WHERE a = 1", &["10"]).await;
    let lines = plan(&mut c, "EXPLAIN ANALYZE EXECUTE d(1)").await;
    assert!(lines[0].ends_with("rows=10)"), "{lines:#?}");
    c.rows("SELECT count(*) FROM t WHERE a = 1", &["0"]).await;
    c.fails("EXPLAIN EXECUTE s", "42601").await;
    c.fails("EXPLAIN EXECUTE nothing", "26000").await;
    c.ok("BEGIN READ ONLY", "BEGIN").await;
    plan(&mut c, "EXPLAIN EXECUTE d(2)").await;
    c.fails("EXPLAIN ANALYZE EXECUTE d(2)", "25006").await;
    c.ok("ROLLBACK", "ROLLBACK").await;
}

#[tokio::test]
async fn locking_queries_and_changes_within_with_are_explained() {
    let mut c = client().await;
    let lines = plan(&mut c, "EXPLAIN SELECT b FROM t WHERE a = 1 ORDER BY b LIMIT 1 FOR UPDATE SKIP LOCKED").await;
    assert_eq!(lines[0], "LockRows");
    has(&lines, "Index Scan using t_pkey on t");
    c.fails("EXPLAIN SELECT count(*) FROM t GROUP BY a FOR UPDATE", "0A000").await;
    c.ok("CREATE TABLE u (id int)", "CREATE TABLE").await;
    let sql = "WITH x AS (DELETE FROM t WHERE a = 1 RETURNING b) SELECT b FROM x WHERE b > 3";
    let lines = plan(&mut c, &format!("EXPLAIN {sql}")).await;
    has(&lines, "Delete on t");
    has(&lines, "Subplan Name: CTE x");
    has(&lines, "Index Cond: (a = 1)");
    let sql = "WITH x AS (UPDATE t SET b = b RETURNING b), y AS (INSERT INTO u SELECT b FROM x RETURNING id) TABLE y";
    let lines = plan(&mut c, &format!("EXPLAIN {sql}")).await;
    has(&lines, "Subplan Name: CTE y");
    c.rows("SELECT count(*), (SELECT count(*) FROM u) FROM t", &["1000|0"]).await;
    c.fails("EXPLAIN WITH x AS (DELETE FROM t RETURNING b) SELECT * FROM x, t", "0A000").await;
}
