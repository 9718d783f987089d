//! Joins that read one side by the keys of the other. That their answers are right is tested beside PostgreSQL
//! (`key_joins.slt`); here, how much they read.
use crate::common::{Client, Reply, database};

/// Of 2,000 rows of `b`, two have each `a_id`.
async fn client() -> Client {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE a (id int PRIMARY KEY, k int, up int)", "CREATE TABLE").await;
    c.ok("CREATE TABLE b (id int PRIMARY KEY, a_id int, x int)", "CREATE TABLE").await;
    c.ok("CREATE TABLE c (id int PRIMARY KEY, b_id bigint)", "CREATE TABLE").await;
    for index in ["a (k)", "a (up)", "b (a_id, x)", "c (b_id)"] {
        c.ok(&format!("CREATE INDEX ON {index}"), "CREATE INDEX").await;
    }
    c.ok("INSERT INTO a SELECT x, x / 10, x / 2 FROM generate_series(1, 1000) AS g(x)", "INSERT 0 1000").await;
    c.ok("INSERT INTO b SELECT x, x / 2, x % 2 FROM generate_series(1, 2000) AS g(x)", "INSERT 0 2000").await;
    c.ok("INSERT INTO c SELECT x, x FROM generate_series(1, 2000) AS g(x)", "INSERT 0 2000").await;
    c
}

/// The rows that the scans of a statement read, in the order of its plan.
async fn read(c: &mut Client, sql: &str) -> Vec<(String, usize)> {
    let Reply::Rows(lines) = c.run(&format!("EXPLAIN ANALYZE {sql}")).await.unwrap_or_else(|e| panic!("{sql}: {e}"))
    else {
        panic!("{sql} has no plan");
    };
    let scan = |line: &String| {
        let (scan, rest) = line.trim_start().trim_start_matches("->  ").split_once("  (actual")?;
        let rows = rest.rsplit_once("rows=")?.1.trim_end_matches(')').parse().ok()?;
        scan.contains("Scan").then(|| (scan.to_owned(), rows))
    };
    lines.iter().filter_map(scan).collect()
}

#[tokio::test]
async fn the_other_side_is_read_by_keys() {
    let mut c = client().await;
    let (a, b) = ("Index Scan using a_k_idx on a", "Index Scan using b_a_id_x_idx on b");
    for (sql, expected) in [
        ("SELECT id FROM a WHERE k = 7 AND EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id)", [(a, 10), (b, 20)]),
        ("SELECT id FROM a WHERE k = 7 AND EXISTS (SELECT FROM b WHERE b.a_id = a.id AND x = 1)", [(a, 10), (b, 10)]),
        ("SELECT id FROM a WHERE k = 7 AND NOT EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id)", [(a, 10), (b, 20)]),
        ("SELECT id FROM a WHERE k = 7 AND id IN (SELECT a_id FROM b)", [(a, 10), (b, 20)]),
        ("SELECT (SELECT count(*) FROM b WHERE b.a_id = a.id) FROM a WHERE k = 7", [(a, 10), (b, 20)]),
        ("SELECT (SELECT max(x) FROM b WHERE b.a_id = a.id) FROM a WHERE k = 7", [(a, 10), (b, 20)]),
        ("SELECT b.id, a.id + 1 FROM a LEFT JOIN b ON b.a_id = a.id WHERE k = 7", [(a, 10), (b, 20)]),
        ("SELECT sum(b.id) FROM b JOIN a ON b.a_id = a.id WHERE k = 7", [(a, 10), (b, 20)]),
        ("SELECT a.k FROM a WHERE k = 7 AND (up = 3 OR id IN (SELECT a_id FROM b))", [(a, 10), (b, 20)]),
        ("SELECT count(*) FROM b WHERE a_id IN (SELECT id FROM a WHERE k = 7)", [(a, 10), (b, 20)]),
        ("UPDATE a SET up = 0 WHERE k = 7 AND EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id)", [(a, 10), (b, 20)]),
    ] {
        let expected = expected.map(|(scan, rows)| (scan.to_owned(), rows));
        assert_eq!(read(&mut c, sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn keys_pass_through_several_joins() {
    let mut c = client().await;
    let scans = [
        ("Index Scan using a_k_idx on a", 10),
        ("Index Scan using b_a_id_x_idx on b", 20),
        ("Index Scan using c_b_id_idx on c", 20),
    ];
    let scans = scans.map(|(scan, rows)| (scan.to_owned(), rows));
    for sql in [
        "SELECT sum(c.id) FROM a JOIN b ON b.a_id = a.id JOIN c ON c.b_id = b.id WHERE k = 7",
        "SELECT sum(c.id) FROM c JOIN b ON c.b_id = b.id JOIN a ON b.a_id = a.id WHERE k = 7",
        "SELECT k FROM a WHERE k = 7 AND EXISTS (SELECT 1 FROM b JOIN c ON c.b_id = b.id WHERE b.a_id = a.id)",
    ] {
        let mut found = read(&mut c, sql).await;
        found.sort();
        assert_eq!(found, scans, "{sql}");
    }
    let tree =
        "WITH RECURSIVE w (id) AS (SELECT 500 UNION ALL SELECT a.id FROM a JOIN w ON a.up = w.id) SELECT id FROM w";
    let found = read(&mut c, tree).await;
    assert!(found.iter().any(|(scan, _)| scan == "Index Scan using a_up_idx on a"), "{found:?}");
    c.rows(&format!("SELECT * FROM ({tree}) AS t ORDER BY id"), &["500", "1000"]).await;
}

#[tokio::test]
async fn the_first_rows_are_read_in_the_order_of_an_index() {
    let mut c = client().await;
    let first = "SELECT t.id, b.id FROM (SELECT id FROM a ORDER BY id DESC LIMIT 3) AS t LEFT JOIN b ON b.a_id = t.id";
    let found = read(&mut c, first).await;
    assert_eq!(found[0], ("Index Scan Backward using a_pkey on a".to_owned(), 3));
    assert_eq!(found[1], ("Index Scan using b_a_id_x_idx on b".to_owned(), 5), "{found:?}");
    let rows = ["998|1996", "998|1997", "999|1998", "999|1999", "1000|2000"];
    c.rows(&format!("{first} ORDER BY t.id, b.id"), &rows).await;
}

#[tokio::test]
async fn many_keys_have_the_whole_table_read() {
    let mut c = client().await;
    let all = [("Seq Scan on a".to_owned(), 1000), ("Seq Scan on b".to_owned(), 2000)];
    assert_eq!(read(&mut c, "SELECT a.id, b.x FROM a LEFT JOIN b ON b.a_id = a.id").await, all);
    // A NULL anywhere counts.
    let found = read(&mut c, "SELECT id FROM a WHERE k = 7 AND id NOT IN (SELECT a_id FROM b)").await;
    assert_eq!(found[1], all[1]);
    c.ok("ANALYZE", "ANALYZE").await;
    let found = read(&mut c, "SELECT id FROM a WHERE k < 20 AND EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id)").await;
    assert_eq!(found[1].1, 2000, "200 keys in 2,000 rows: {found:?}");
    let found = read(&mut c, "SELECT id FROM a WHERE k < 2 AND EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id)").await;
    assert_eq!(found[1].1, 38, "{found:?}");
}
