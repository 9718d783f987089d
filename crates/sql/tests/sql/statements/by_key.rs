//! Statements by key answer as the planner's way does: the same statements through both, and through the shapes of
//! texts.
use crate::common::{Client, Reply, database};
use std::collections::BTreeMap;
use std::sync::Arc;
use terrace_engine::{DataType, Datum};
use terrace_sql::Prepared;

const COLUMNS: &str = "(a int, b text, n int, m bigint DEFAULT 7, f float8, v varchar(3), \
                       w timestamp, t bool DEFAULT true, p numeric(8, 2) DEFAULT 1.5, q numeric, \
                       PRIMARY KEY (a, b), UNIQUE (m))";
const ROWS: &str = "(1, 'x', 5, 50, 1.5, 'v', '2001-01-01', true, 10, 10), \
                    (1, 'y', 6, 51, 0.5, 'u', NULL, false, 0.05, -0.050), \
                    (1, 'z', NULL, 52, 0.5, NULL, NULL, NULL, NULL, NULL), \
                    (2, 'x', NULL, 60, NULL, NULL, NULL, NULL, -3.33, 'NaN'), \
                    (3, 'x', 6, NULL, 1, '', NULL, true, 999999.99, 1e20), \
                    (2147483647, 'y', 2147483647, 9223372036854775807, 1e300, 'abc', \
                    '1999-12-31 23:59:59.999999', false, 0, 0)";

#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    Planned,
    Prepared,
    Text,
}

/// What one statement on a table of its own answers, and what the table holds afterwards.
async fn answer(c: &mut Client, way: Way, table: &str, statement: &str, by_key: bool) -> Vec<String> {
    c.ok(&format!("CREATE TABLE {table} {COLUMNS}"), "CREATE TABLE").await;
    c.ok(&format!("INSERT INTO {table} VALUES {ROWS}"), "INSERT 0 6").await;
    c.session.run_by_key(way != Way::Planned);
    let sql = statement.replace("TBL", table);
    let mut answer = vec![];
    let prepared = match way {
        Way::Text => match c.session.prepare_text(&sql).await {
            Some(found) => Ok(found),
            // Shapes are for what is recognised, and not for all of that.
            None => c.session.prepare(&sql, &[]).await.map(|p| (p, vec![])),
        },
        _ => c.session.prepare(&sql, &[]).await.map(|p| (p, vec![])),
    };
    let reply = match prepared {
        Err(error) => Err(error),
        Ok((prepared, values)) => {
            assert_eq!(prepared.is_by_key(), by_key && way != Way::Planned, "{way:?} {sql}");
            for field in prepared.columns.iter().flat_map(|columns| columns.fields()) {
                let metadata: BTreeMap<_, _> = field.metadata().iter().collect();
                answer.push(format!("{} {} {metadata:?}", field.name(), field.data_type()));
            }
            if way == Way::Text { c.text(&sql).await } else { c.execute(&prepared, values).await }
        }
    };
    answer.push(match reply {
        Ok(reply) => format!("{reply:?}"),
        Err(error) => {
            format!("{} {} {:?} {:?}", error.state.0, error.message, error.detail, error.column).replace(table, "TBL")
        }
    });
    c.session.run_by_key(true);
    answer.push(format!("{:?}", c.run(&format!("SELECT * FROM {table} ORDER BY a, b")).await.unwrap()));
    c.ok(&format!("DROP TABLE {table}"), "DROP TABLE").await;
    answer
}

async fn compare(statements: &[&str], by_key: bool) {
    let mut c = Client::new(&database().await);
    for (number, statement) in statements.iter().enumerate() {
        let mut answers = vec![];
        for way in [Way::Planned, Way::Prepared, Way::Text] {
            let table = format!("t{number}{way:?}").to_lowercase();
            answers.push(answer(&mut c, way, &table, statement, by_key).await);
        }
        assert_eq!(answers[0], answers[1], "prepared: {statement}");
        assert_eq!(answers[0], answers[2], "by its shape: {statement}");
    }
}

#[tokio::test]
async fn one_row() {
    let statements = [
        "SELECT * FROM TBL WHERE a = 1 AND b = 'x'",
        "SELECT p.b, n, n AS \"N\", a FROM public.TBL p WHERE p.b = 'y' AND 2147483647 = p.a",
        "SELECT a FROM TBL AS p WHERE m = 60;",
        "SELECT a, a FROM TBL WHERE (m = 61)",
        "SELECT a FROM TBL WHERE m = -1",
        "UPDATE TBL SET n = n + 1, f = f * 2, v = 'q', w = NULL WHERE a = 1 AND b = 'x'",
        "UPDATE TBL SET n = 1 + n, f = 2 - f, m = n WHERE m = 50",
        "UPDATE TBL SET n = n + -7 WHERE m = 50",
        "UPDATE TBL SET n = n - -7, f = -3 WHERE m = 50",
        "UPDATE TBL SET n = n + 1 WHERE m = 60",
        "UPDATE TBL SET n = n + 1 WHERE m = 9223372036854775807",
        "UPDATE TBL SET m = m + 1 WHERE m = 9223372036854775807",
        "UPDATE TBL SET m = m * 2 WHERE m = 9223372036854775807",
        "UPDATE TBL SET m = DEFAULT, t = false WHERE m = 60",
        "UPDATE TBL SET m = 50 WHERE m = 60",
        "UPDATE TBL SET a = NULL WHERE m = 60",
        "UPDATE TBL SET v = 'ab   ' WHERE m = 60",
        "UPDATE TBL SET n = 2.5, m = '12', f = 3, b = 4 WHERE m = 60",
        "UPDATE TBL SET w = '2020-02-02 02:02:02' WHERE m = 60",
        "UPDATE TBL SET a = a + 1 WHERE m = 60",
        "UPDATE TBL SET n = m - 1 WHERE m = 60",
        "DELETE FROM TBL WHERE a = 1 AND b = 'x'",
        "DELETE FROM public.TBL d WHERE d.m = 59",
        "SELECT a + 1, 7 - n AS left, p::text, q::text AS \"Q\", n::text FROM TBL WHERE m = 50",
        "SELECT a + 1 FROM TBL WHERE m = 9223372036854775807",
        "SELECT p, q, w FROM TBL WHERE m = 52",
        "SELECT p::text, q::text FROM TBL WHERE m = 52",
        "SELECT n FROM TBL WHERE m = 50 FOR UPDATE",
        "SELECT x.n, p::text FROM TBL x WHERE m = 50 FOR SHARE OF x NOWAIT",
        "SELECT n FROM TBL WHERE m = 51 LIMIT 0 FOR KEY SHARE SKIP LOCKED",
        "UPDATE TBL SET p = p + 1, q = q * 2 WHERE m = 50",
        "UPDATE TBL SET p = p - 0.005, q = 1.50 - q WHERE m = 51",
        "UPDATE TBL SET p = p * 10 WHERE a = 3 AND b = 'x'",
        "UPDATE TBL SET q = q + 1 WHERE m = 60",
        "UPDATE TBL SET p = p + 1 WHERE m = 52 RETURNING p, q",
        "UPDATE TBL x SET n = n + 1, p = 7.777 WHERE m = 50 RETURNING x.n - 1, p, p::text AS t, *",
        "UPDATE TBL SET n = n - 1 WHERE m = 9223372036854775807 RETURNING n + 2",
        "UPDATE TBL x SET n = 1 WHERE m = 50 RETURNING x.*",
        "DELETE FROM TBL WHERE m = 50 RETURNING *, p::text",
        "DELETE FROM TBL WHERE m = 59 RETURNING a",
    ];
    compare(&statements, true).await;
}

#[tokio::test]
async fn inserts() {
    let statements = [
        "INSERT INTO TBL VALUES (7, 'q', 1, 2, -1.5, 'v', '2001-01-01', true)",
        "INSERT INTO TBL (b, a) VALUES ('q', 7)",
        "INSERT INTO TBL (b, a) VALUES ('q', 7), ('r', 8)",
        "INSERT INTO TBL (b, a, m) VALUES ('q', 7, 1), ('it''s', -8, DEFAULT), ('s', '9', NULL)",
        "INSERT INTO TBL (a, b, m) VALUES (1, 'x', 1)",
        "INSERT INTO TBL (a, b, m) VALUES (7, 'q', 50)",
        "INSERT INTO TBL (a, b, m) VALUES (7, NULL, 1)",
        "INSERT INTO TBL (a, b, n) VALUES (7, 'q', 2.5)",
        "INSERT INTO TBL VALUES (7, 'q')",
        "INSERT INTO TBL AS x (a, b, p) VALUES (7, 'q', 2.345), (8, 'r', NULL) RETURNING x.a + 1, p, q, m",
        "INSERT INTO TBL (a, b, p) VALUES (1, 'x', 2.345) RETURNING *",
    ];
    compare(&statements, true).await;
}

#[tokio::test]
async fn short_ranges() {
    let statements = [
        "SELECT * FROM TBL WHERE a = 1 ORDER BY b",
        "SELECT b FROM TBL WHERE a = 1 ORDER BY b DESC LIMIT 2",
        "SELECT b, n FROM TBL WHERE a = 1 AND b BETWEEN 'x' AND 'y' ORDER BY a, b",
        "SELECT b FROM TBL WHERE a = 1 AND b > 'x' ORDER BY b",
        "SELECT m FROM TBL WHERE m >= 51 ORDER BY m",
        "SELECT m FROM TBL WHERE m > 51 AND 60 >= m ORDER BY m DESC",
        "SELECT m FROM TBL WHERE m < 52 AND m > 90 ORDER BY m",
        "SELECT m AS a FROM TBL WHERE a < 3 ORDER BY a DESC",
        "SELECT n FROM TBL WHERE a BETWEEN 1 AND 3 ORDER BY n, b",
        "SELECT n FROM TBL WHERE a BETWEEN 1 AND 3 ORDER BY n DESC, b DESC LIMIT 3",
        "SELECT DISTINCT n FROM TBL WHERE a BETWEEN 1 AND 3 ORDER BY n",
        "SELECT sum(n) FROM TBL WHERE a BETWEEN 1 AND 3",
        "SELECT SUM(n) AS total FROM TBL WHERE a = 2",
        "SELECT sum(n) FROM TBL WHERE a > 5 AND a < 2",
        "SELECT count(*) FROM TBL WHERE m BETWEEN 50 AND 52",
        "SELECT m FROM TBL WHERE m BETWEEN 50 AND 52 ORDER BY m LIMIT 0",
        "SELECT a FROM TBL WHERE m = 50 LIMIT 1",
        "SELECT a FROM TBL WHERE a = 1 AND b = 'x' ORDER BY n",
        "SELECT sum(p)::text FROM TBL WHERE a < 4",
        "SELECT sum(q)::text AS s FROM TBL WHERE a = 1",
        "SELECT sum(q) FROM TBL WHERE a < 4",
        "SELECT sum(p)::text FROM TBL WHERE a > 7 AND a < 9",
        "SELECT min(m) FROM TBL WHERE a = 1",
        "SELECT max(n) FROM TBL WHERE a < 4",
        "SELECT max(n) FROM TBL WHERE a = 2",
        "SELECT count(*)::text FROM TBL WHERE a = 1",
        "SELECT b FROM TBL WHERE a = 1 ORDER BY b DESC LIMIT 1 FOR UPDATE",
        "SELECT b, p::text FROM TBL WHERE a = 1 ORDER BY n DESC LIMIT 2 FOR NO KEY UPDATE",
        "SELECT b AS a FROM TBL WHERE a BETWEEN 1 AND 3 ORDER BY a, m FOR UPDATE",
        "SELECT a FROM TBL WHERE m = 50 LIMIT 1 OFFSET 1",
        "SELECT m FROM TBL WHERE m > 50 ORDER BY m LIMIT 2 OFFSET 1",
        "SELECT m FROM TBL WHERE m > 50 ORDER BY m OFFSET 2",
        "SELECT n FROM TBL WHERE a < 9 ORDER BY n, m DESC LIMIT 2 OFFSET 3",
        "SELECT m, b FROM TBL ORDER BY m LIMIT 3",
        "SELECT m FROM TBL ORDER BY m DESC LIMIT 2",
        "SELECT * FROM TBL ORDER BY a DESC, b DESC LIMIT 2",
        "SELECT x.a, n::text FROM TBL x ORDER BY x.a, b LIMIT 2 OFFSET 3",
        "SELECT a FROM TBL ORDER BY m LIMIT 100 OFFSET 200",
        "SELECT b FROM TBL ORDER BY a, b LIMIT 2 FOR UPDATE",
        "SELECT 1 FROM TBL WHERE m = 50",
        "SELECT 1 AS one, 2, b FROM TBL WHERE a = 1 ORDER BY b LIMIT 1",
        "SELECT 1 AS a FROM TBL WHERE m = 59 LIMIT 1",
        "SELECT max(m) FROM TBL",
        "SELECT max(m)::text AS most FROM TBL",
        "SELECT min(a) FROM TBL",
        "SELECT max(m) FROM TBL WHERE m < 60",
        "SELECT min(m) FROM TBL WHERE m > 50",
        "SELECT max(a) FROM TBL WHERE a > 5 AND a < 7",
        "SELECT max(w) FROM TBL WHERE a = 1",
    ];
    compare(&statements, true).await;
}

#[tokio::test]
async fn changes_of_short_ranges() {
    let statements = [
        "UPDATE TBL SET n = 1, p = p + 1 WHERE a = 1",
        "UPDATE TBL SET b = 'w' WHERE a = 1 AND b > 'y'",
        "UPDATE TBL SET m = m + 1 WHERE m BETWEEN 50 AND 51",
        "UPDATE TBL SET a = a + 1 WHERE a >= 1 AND a < 3",
        "UPDATE TBL SET a = a + 1 WHERE a > 2",
        "UPDATE TBL SET n = 7 WHERE a > 5 AND a < 7",
        "UPDATE TBL SET a = NULL WHERE a = 1",
        "UPDATE TBL SET p = 999999 + p WHERE a < 4 AND a > 2",
        "UPDATE TBL SET w = '2020-02-02' WHERE m > 51",
        "DELETE FROM TBL WHERE a = 1",
        "DELETE FROM TBL WHERE a = 1 AND b < 'y'",
        "DELETE FROM TBL WHERE m > 51",
    ];
    compare(&statements, true).await;
    compare(&["UPDATE TBL SET n = n + 1 WHERE a = 1 RETURNING n", "DELETE FROM TBL WHERE a = 1 RETURNING b"], true)
        .await;
}

#[tokio::test]
async fn first_rows_and_constants_that_are_not_recognised() {
    let statements = [
        "SELECT a FROM TBL ORDER BY a, b DESC LIMIT 1",
        "SELECT a FROM TBL ORDER BY b, a LIMIT 1",
        "SELECT a FROM TBL ORDER BY a, b, n LIMIT 1",
        "SELECT m FROM TBL ORDER BY m NULLS FIRST LIMIT 1",
        "SELECT DISTINCT m FROM TBL ORDER BY m LIMIT 2",
        "SELECT max(m) FROM TBL OFFSET 1",
        "SELECT max(b) FROM TBL",
        "SELECT max(n) FROM TBL",
        "SELECT 'a' FROM TBL WHERE m = 50",
        "SELECT NULL FROM TBL WHERE m = 50",
        "SELECT 3000000000 FROM TBL WHERE m = 50",
        "SELECT 1.5 FROM TBL WHERE m = 50",
        "SELECT DISTINCT 1 FROM TBL WHERE a = 1",
        "SELECT 1 AS b FROM TBL WHERE a = 1 ORDER BY b",
    ];
    compare(&statements, false).await;
}

#[tokio::test]
async fn what_is_not_recognised() {
    let statements = [
        "SELECT a FROM TBL WHERE n = 1",
        "SELECT a FROM TBL WHERE m = NULL",
        "SELECT a FROM TBL WHERE m = 5e1",
        "SELECT m + 1 FROM TBL WHERE m = 50",
        "SELECT p + 1 FROM TBL WHERE m = 50",
        "SELECT f::text FROM TBL WHERE m = 50",
        "SELECT n::bigint FROM TBL WHERE m = 50",
        "SELECT a + 3000000000 FROM TBL WHERE m = 50",
        "SELECT n + n FROM TBL WHERE m = 50",
        "SELECT n / 2 FROM TBL WHERE m = 50",
        "SELECT count(*) FROM TBL WHERE a = 1 FOR UPDATE",
        "SELECT DISTINCT b FROM TBL WHERE a = 1 ORDER BY b FOR UPDATE",
        "SELECT a FROM TBL WHERE m = 50 FOR UPDATE OF nope",
        "SELECT a FROM TBL WHERE m = 50 FOR UPDATE FOR SHARE",
        "SELECT sum(m) FROM TBL WHERE a = 1",
        "SELECT sum(p) FROM TBL WHERE a = 1",
        "SELECT max(b) FROM TBL WHERE a = 1",
        "SELECT n::text AS z FROM TBL WHERE a = 1 ORDER BY z",
        "UPDATE TBL SET p = '5'::numeric WHERE m = 50",
        "UPDATE TBL SET n = p + 1 WHERE m = 50",
        "UPDATE TBL SET p = q, q = p WHERE m = 51",
        "UPDATE TBL SET p = n + 1 WHERE m = 50",
        "UPDATE TBL SET n = 1 WHERE m = 50 RETURNING nope",
        "UPDATE TBL SET n = 1 WHERE m = 50 RETURNING count(*)",
        "UPDATE TBL SET n = 1 WHERE n = 5",
        "SELECT a FROM TBL WHERE m = 50 AND m = 60",
        "SELECT a FROM TBL WHERE m = 50 AND n = 5",
        "SELECT a FROM TBL WHERE m = 9223372036854775808",
        "SELECT a FROM TBL WHERE m = 50 LIMIT -1",
        "SELECT a FROM TBL WHERE m = 50 LIMIT 1 OFFSET 1 FOR UPDATE",
        "SELECT n FROM TBL WHERE a = 1 ORDER BY n NULLS FIRST",
        "SELECT n FROM TBL WHERE a = 1 ORDER BY 1",
        "SELECT DISTINCT a FROM TBL WHERE a = 1",
        "SELECT sum(n), count(*) FROM TBL WHERE a = 1",
        "SELECT sum(n) FROM TBL WHERE a = 1 GROUP BY b ORDER BY 1",
        "SELECT count(*) FROM TBL WHERE a = 1 LIMIT 0",
        "SELECT nope FROM TBL WHERE m = 50",
        "SELECT x.a FROM TBL WHERE m = 50",
        "UPDATE TBL SET n = n / 2 WHERE m = 50",
        "UPDATE TBL SET n = f * 2 WHERE m = 50",
        "UPDATE TBL SET m = n + 1 WHERE a = 2147483647 AND b = 'y'",
        "UPDATE TBL SET n = true WHERE m = 50",
        "UPDATE TBL SET v = 'too long' WHERE m = 50",
        "UPDATE TBL SET n = 3000000000 WHERE m = 50",
        "UPDATE TBL SET n = 'x' WHERE m = 50",
        "UPDATE TBL SET n = 1, n = 2 WHERE m = 50",
        "DELETE FROM TBL WHERE m IN (50)",
        "INSERT INTO TBL VALUES (7, 'q', 1 + 1)",
        "INSERT INTO TBL VALUES (7, 'q', 3000000000)",
        "INSERT INTO TBL VALUES (7, 'q', true)",
        "INSERT INTO TBL (a, b) VALUES (7)",
        "INSERT INTO TBL (a, b) VALUES (7, 'q'), (8)",
        "INSERT INTO TBL (a, nope) VALUES (7, 'q')",
        "INSERT INTO TBL (a, a) VALUES (7, 8)",
    ];
    compare(&statements, false).await;
}

#[tokio::test]
async fn a_long_range_is_planned() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (a int PRIMARY KEY, n int)", "CREATE TABLE").await;
    c.ok("INSERT INTO t SELECT value, 1 FROM generate_series(1, 3000) AS g(value)", "INSERT 0 3000").await;
    for (sql, expected) in [
        ("SELECT sum(n) FROM t WHERE a BETWEEN 1 AND 1000", "1000"),
        ("SELECT sum(n) FROM t WHERE a BETWEEN 1 AND 1001", "1001"),
        ("SELECT count(*) FROM t WHERE a > 0", "3000"),
    ] {
        assert!(c.session.prepare(sql, &[]).await.unwrap().is_by_key());
        c.rows(sql, &[expected]).await;
    }
}

#[tokio::test]
async fn an_insert_of_many_rows_lets_others_in() {
    let db = database().await;
    let (mut a, mut b) = (Client::new(&db), Client::new(&db));
    a.ok("CREATE TABLE t (a int PRIMARY KEY)", "CREATE TABLE").await;
    a.ok("INSERT INTO t VALUES (-1)", "INSERT 0 1").await;
    a.ok("BEGIN", "BEGIN").await;
    let values: Vec<String> = (0..1000).map(|n| format!("({n})")).collect();
    let insert = a.session.prepare(&format!("INSERT INTO t VALUES {}", values.join(", ")), &[]).await.unwrap();
    assert!(insert.is_by_key());
    let ended = parking_lot::Mutex::new(vec![]);
    let long = async {
        assert!(a.execute(&insert, vec![]).await.is_ok());
        ended.lock().push("insert");
    };
    let short = async {
        b.rows("SELECT a FROM t WHERE a = -1", &["-1"]).await;
        ended.lock().push("look-up");
    };
    futures::join!(long, short);
    assert_eq!(*ended.lock(), ["look-up", "insert"]);
    a.ok("COMMIT", "COMMIT").await;
    b.rows("SELECT count(*) FROM t", &["1001"]).await;
}

/// What is too long to be run by key is planned with the literals of its text, not with parameters in their place.
#[tokio::test]
async fn a_long_range_is_planned_with_its_literals() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (a int PRIMARY KEY, b int, v bigint)", "CREATE TABLE").await;
    c.ok("INSERT INTO t SELECT g, g, 0 FROM generate_series(1, 1500) g", "INSERT 0 1500").await;
    let one = |row: &str| Reply::Rows(vec![row.into()]);
    for (text, answer) in [
        ("SELECT count(*) FROM t WHERE a > -10", one("1500")),
        ("SELECT sum(b) FROM t WHERE a BETWEEN -10 AND 1400", one("980700")),
        ("SELECT a, -1 FROM t WHERE a >= 1 ORDER BY b LIMIT 1", one("1|-1")),
        ("SELECT count(*) FROM t JOIN t u ON u.a = t.a WHERE t.a > -3", one("1500")),
        ("UPDATE t SET b = b + -1, v = v - 2 WHERE a >= 0", Reply::Tag("UPDATE 1500".into())),
        ("UPDATE t SET v = v + 1 WHERE a > -1", Reply::Tag("UPDATE 1500".into())),
        ("SELECT sum(b), sum(v) FROM t", one("1124250|-1500")),
        ("UPDATE t SET b = -1 WHERE a > 0", Reply::Tag("UPDATE 1500".into())),
        ("SELECT min(b), max(b) FROM t", one("-1|-1")),
        ("DELETE FROM t WHERE a > -2000", Reply::Tag("DELETE 1500".into())),
    ] {
        assert_eq!(c.text(text).await.unwrap(), answer, "{text}");
    }
}

/// A shape is used for other literals, and each literal is judged by itself.
#[tokio::test]
async fn a_shape_serves_many_texts() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (a int PRIMARY KEY, b text)", "CREATE TABLE").await;
    for (a, b) in [("1", "'one'"), ("2", "'it''s'"), ("-3", "4")] {
        let (insert, values) = c.session.prepare_text(&format!("INSERT INTO t VALUES ({a}, {b})")).await.unwrap();
        assert!(c.execute(&insert, values).await.is_ok());
    }
    c.rows("SELECT * FROM t ORDER BY a", &["-3|4", "1|one", "2|it's"]).await;
    let (first, _) = c.session.prepare_text("SELECT b FROM t WHERE a = 1").await.unwrap();
    let (second, values) = c.session.prepare_text("SELECT b FROM t WHERE a = 2;").await.unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &second));
    assert_eq!(values, [Datum::Int4(2)]);
    for other in
        ["SELECT b FROM t WHERE a = 2.5", "SELECT b FROM t WHERE a = '2'", "SELECT b FROM t WHERE a = 3000000000"]
    {
        assert!(c.session.prepare_text(other).await.is_none(), "{other}");
    }
    // The table becomes another.
    c.ok("DROP TABLE t", "DROP TABLE").await;
    assert!(c.session.prepare_text("SELECT b FROM t WHERE a = 2").await.is_none());
    for (sql, control) in [("BEGIN", true), ("COMMIT;", true), ("ROLLBACK", true), ("SHOW all", false)] {
        assert_eq!(c.session.prepare_text(sql).await.is_some(), control, "{sql}");
    }
}

#[tokio::test]
async fn the_time_is_the_transactions() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (a int PRIMARY KEY, w timestamp DEFAULT now())", "CREATE TABLE").await;
    c.ok("BEGIN", "BEGIN").await;
    for (way, a) in [(true, 1), (false, 2)] {
        c.session.run_by_key(way);
        let insert = format!("INSERT INTO t VALUES ({a}, CURRENT_TIMESTAMP), ({a}0, DEFAULT)");
        assert_eq!(c.session.prepare(&insert, &[]).await.unwrap().is_by_key(), way);
        c.ok(&insert, "INSERT 0 2").await;
    }
    c.rows("SELECT count(*) FROM (SELECT DISTINCT w FROM t) AS d", &["1"]).await;
    c.ok("COMMIT", "COMMIT").await;
    c.session.run_by_key(true);
    let again = c.session.prepare("UPDATE t SET w = now() WHERE a = $1", &[]).await.unwrap();
    assert!(again.is_by_key());
    for a in [1, 2] {
        assert!(c.execute(&again, vec![Datum::Int4(a)]).await.is_ok());
    }
    c.rows("SELECT count(*) FROM (SELECT DISTINCT w FROM t) AS d", &["3"]).await;
}

/// What a look-up that is answered at once shows; `None` where it has to be executed.
fn at_once(c: &mut Client, statement: &Arc<Prepared>) -> Option<Vec<String>> {
    let mut rows = vec![];
    let count = c.session.look_up(statement, &[], |row| {
        rows.push(row.values().map(|value| value.to_string().replace("null", "NULL")).collect::<Vec<_>>().join("|"));
    })?;
    assert_eq!(count, rows.len() as u64);
    Some(rows)
}

#[tokio::test]
async fn look_ups_at_once() {
    let mut c = Client::new(&database().await);
    c.ok(&format!("CREATE TABLE t {COLUMNS}"), "CREATE TABLE").await;
    c.ok(&format!("INSERT INTO t VALUES {ROWS}"), "INSERT 0 6").await;
    let statements = [
        "SELECT b, n, m, v FROM t WHERE a = 1 AND b = 'x'",
        "SELECT a, a FROM t WHERE m = 52",
        "SELECT a FROM t WHERE m = 53",
    ];
    for sql in statements {
        let statement = c.session.prepare(sql, &[]).await.unwrap();
        let executed = c.rows_of(&statement, vec![]).await.unwrap();
        assert_eq!(at_once(&mut c, &statement), Some(executed), "{sql}");
    }
    let by_m = c.session.prepare("SELECT n FROM t WHERE m = 50", &[]).await.unwrap();
    let others = c.session.prepare("SELECT n FROM t ORDER BY m", &[]).await.unwrap();
    assert_eq!(at_once(&mut c, &others), None, "it is no look-up");
    // In a block: what it has changed itself, until the block fails.
    c.ok("BEGIN", "BEGIN").await;
    c.ok("UPDATE t SET n = 55 WHERE m = 50", "UPDATE 1").await;
    assert_eq!(at_once(&mut c, &by_m), Some(vec!["55".into()]));
    c.run("SELECT 1 / 0").await.unwrap_err();
    assert_eq!(at_once(&mut c, &by_m), None, "the block has failed");
    c.ok("ROLLBACK", "ROLLBACK").await;
    assert_eq!(at_once(&mut c, &by_m), Some(vec!["5".into()]));
    // A snapshot that stands still is not passed by.
    c.ok("BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN").await;
    assert_eq!(at_once(&mut c, &by_m), None);
    c.ok("COMMIT", "COMMIT").await;
    // Another definition: the statement is recognised again, by executing it.
    c.ok("ALTER TABLE t ADD COLUMN z int", "ALTER TABLE").await;
    assert_eq!(at_once(&mut c, &by_m), None);
    assert_eq!(c.rows_of(&by_m, vec![]).await.unwrap(), ["5"]);
    assert_eq!(at_once(&mut c, &by_m), Some(vec!["5".into()]));
}

#[tokio::test]
async fn look_ups_at_once_are_counted() {
    let db = database().await;
    let mut c = Client::new(&db);
    c.ok(&format!("CREATE TABLE t {COLUMNS}"), "CREATE TABLE").await;
    c.ok(&format!("INSERT INTO t VALUES {ROWS}"), "INSERT 0 6").await;
    let by_m = c.session.prepare("SELECT n FROM t WHERE m = 50", &[]).await.unwrap();
    let before = db.engine.ended().committed;
    for _ in 0..3 {
        assert!(at_once(&mut c, &by_m).is_some());
    }
    let statements = db.observed.statements();
    let (_, totals) = statements.iter().find(|(text, _)| text.starts_with("SELECT n FROM t")).unwrap();
    assert_eq!((totals.calls, totals.rows, totals.failed), (3, 3, 0));
    assert!(totals.reads.resident >= 6, "{totals:?}");
    assert_eq!(db.engine.ended().committed - before, 3);
    let t = db.engine.catalog().table("t").unwrap().clone();
    let index = t.indexes.iter().find(|index| index.columns == [3]).unwrap();
    assert_eq!((db.engine.usage(index.oid).scans, db.engine.usage(index.oid).rows), (3, 3));
}

/// As sysbench's driver does.
#[tokio::test]
async fn integers_of_another_width_are_converted() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE s (id int PRIMARY KEY, k int, c char(8))", "CREATE TABLE").await;
    let types = |n: usize| vec![Some(DataType::Int8); n];
    let int = Datum::Int8;
    let insert = c.session.prepare("INSERT INTO s (id, k) VALUES ($1, $2)", &types(2)).await.unwrap();
    assert!(insert.is_by_key() && insert.parameters == [DataType::Int8; 2]);
    for n in 1..=4 {
        assert_eq!(c.execute(&insert, vec![int(n), int(n * 10)]).await.unwrap(), Reply::Tag("INSERT 0 1".into()));
    }
    assert_eq!(c.execute(&insert, vec![int(1 << 40), int(1)]).await.unwrap_err().state.0, "22003");
    let get = c.session.prepare("SELECT k FROM s WHERE id = $1", &types(1)).await.unwrap();
    let range = c.session.prepare("SELECT k FROM s WHERE id BETWEEN $1 AND $2 ORDER BY id", &types(2)).await.unwrap();
    let update = c.session.prepare("UPDATE s SET k = k + 1 WHERE id = $1", &types(1)).await.unwrap();
    let delete = c.session.prepare("DELETE FROM s WHERE id = $1", &types(1)).await.unwrap();
    for statement in [&get, &range, &update, &delete] {
        assert!(statement.is_by_key(), "{}", statement.sql);
    }
    assert_eq!(c.rows_of(&get, vec![int(2)]).await.unwrap(), ["20"]);
    // No row equals what no row can hold.
    assert_eq!(c.rows_of(&get, vec![int(1 << 40)]).await.unwrap(), Vec::<String>::new());
    assert_eq!(c.rows_of(&range, vec![int(3), int(1 << 40)]).await.unwrap(), ["30", "40"]);
    for (statement, key, tag) in
        [(&update, 2, "UPDATE 1"), (&update, 1 << 40, "UPDATE 0"), (&delete, 1 << 40, "DELETE 0")]
    {
        assert_eq!(c.execute(statement, vec![int(key)]).await.unwrap(), Reply::Tag(tag.into()));
    }
    assert_eq!(c.rows_of(&get, vec![int(2)]).await.unwrap(), ["21"]);
}
