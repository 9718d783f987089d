//! Prepared statements that run again and again. With a plan that is kept from run to run they answer what they answer
//! when they are planned anew, as a statement is that runs for the first time.
use crate::common::{Client, Reply, database};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use std::time::Duration;
use terrace_engine::EngineError;

/// Parameters' types, and the statement.
const STATEMENTS: &[(&str, &str)] = &[
    ("int", "SELECT * FROM t WHERE id = $1"),
    ("bigint", "SELECT id, a, b FROM t WHERE id = $1"),
    ("smallint", "SELECT id, n::text || '!' FROM t WHERE id = $1"),
    ("bigint, bigint", "SELECT id FROM t WHERE a = $1 AND b >= $2 ORDER BY b DESC, id LIMIT 3"),
    ("int, int", "SELECT id FROM t WHERE a BETWEEN $1 AND $2 ORDER BY id"),
    ("bigint, bigint", "SELECT id FROM t WHERE id BETWEEN $1 AND $2 ORDER BY c, id"),
    ("bigint, bigint", "SELECT id FROM t WHERE s >= $1 AND s < $2 AND s <> 2 ORDER BY id"),
    ("int, bigint", "SELECT count(*), sum(b), min(x), max(n), avg(s) FROM t WHERE a IN ($1, $2, 3)"),
    ("text", "SELECT id, x FROM t WHERE x = $1 ORDER BY id"),
    ("varchar", "SELECT id, x FROM t WHERE x = $1 OR v = $1 ORDER BY id"),
    ("text", "SELECT id FROM t WHERE x LIKE $1 || '%' ORDER BY id"),
    ("text", "SELECT id, c FROM t WHERE c = $1 ORDER BY id"),
    ("numeric", "SELECT id, n + $1, m * $1, n = $1 FROM t ORDER BY id"),
    ("numeric, int", "SELECT id FROM t WHERE n > $1 AND id < $2 ORDER BY id"),
    ("float8", "SELECT id, f + $1 FROM t WHERE f >= $1 ORDER BY id"),
    ("date, timestamp", "SELECT id FROM t WHERE d >= $1 AND ts < $2 ORDER BY id"),
    ("timestamptz", "SELECT id, z::text, z - $1 FROM t WHERE z > $1 ORDER BY id"),
    ("boolean, bytea", "SELECT id, y::text FROM t WHERE ok = $1 OR y = $2 ORDER BY id"),
    ("int", "SELECT id FROM t WHERE a IS NOT DISTINCT FROM $1 ORDER BY id"),
    ("int", "SELECT id, $1 IS NULL, coalesce($1, a), CASE WHEN a > $1 THEN 'more' ELSE 'less' END FROM t ORDER BY id"),
    ("int, int", "SELECT id, a / nullif($1, 0), a % $2 FROM t WHERE id < 6 ORDER BY id"),
    ("int", "SELECT a, count(*) FROM t WHERE id <> $1 GROUP BY a HAVING count(*) > 1 ORDER BY a NULLS FIRST"),
    ("int", "SELECT DISTINCT a FROM t WHERE id > $1 ORDER BY a"),
    ("int, int", "SELECT t.id, o.k, o.q * t.n FROM t JOIN o ON o.t = t.id WHERE t.a = $1 AND o.k < $2 ORDER BY 1, 2"),
    ("int", "SELECT t.id, o.k FROM t LEFT JOIN o ON o.t = t.id AND o.k = $1 ORDER BY 1, 2"),
    ("int, text", "SELECT e.id, e.x FROM (SELECT id, x FROM t WHERE a > $1) AS e WHERE e.x < $2 ORDER BY e.id"),
    ("int", "SELECT id FROM seen WHERE a = $1 ORDER BY id"),
    ("int, int", "SELECT id FROM t WHERE id = $1 FOR UPDATE"),
    ("int", "SELECT id, n FROM t WHERE a = $1 ORDER BY id LIMIT 2 FOR UPDATE"),
    ("int, int", "SELECT id FROM t ORDER BY id LIMIT $1 OFFSET abs($2)"),
    ("int", "SELECT id FROM t WHERE a = (SELECT max(a) FROM t WHERE id < $1) ORDER BY id"),
    ("int", "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM o WHERE o.t = t.id AND o.k = $1) ORDER BY id"),
    ("int", "SELECT id, (SELECT count(*) FROM o WHERE o.t = t.id) FROM t WHERE a = $1 ORDER BY id"),
    ("int, int", "SELECT id, (SELECT max(k) FROM o WHERE o.t = t.id AND k < $2) FROM t WHERE a < $1 ORDER BY id"),
    ("int, int", "SELECT id FROM t WHERE a = $1 AND id NOT IN (SELECT o.t FROM o WHERE o.k = $2) ORDER BY id"),
    ("int, int", "SELECT id FROM t WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM o WHERE o.t = t.id AND o.k > $2)"),
    ("int", "SELECT id FROM t WHERE id IN (SELECT o.t FROM o WHERE o.k = $1) ORDER BY id"),
    ("int", "SELECT EXISTS (SELECT 1 FROM o WHERE o.k = $1), (SELECT count(*) FROM o WHERE at <= now() AND t = $1)"),
    ("int", "SELECT id, a IN (SELECT o.k FROM o WHERE o.t = $1) FROM t ORDER BY id LIMIT 5"),
    ("int, int", "SELECT id FROM t WHERE id = $1 UNION ALL SELECT k FROM o WHERE o.t = $2 ORDER BY 1"),
    ("int, int", "SELECT a, x FROM t WHERE id < $1 UNION SELECT k, 'o' FROM o WHERE o.t = $2 ORDER BY 1, 2"),
    (
        "int",
        "SELECT id, row_number() OVER (ORDER BY b DESC NULLS LAST, id), sum(b) OVER (ORDER BY id) FROM t WHERE a = $1",
    ),
    (
        "int",
        "SELECT id, lag(id, 1) OVER w, array_agg(id) OVER w FROM t WHERE a = $1 WINDOW w AS (ORDER BY id) ORDER BY id",
    ),
    (
        "int, int",
        "SELECT id, ntile($1) OVER (ORDER BY id), lead(b, $2) OVER (ORDER BY id) FROM t WHERE a = 1 ORDER BY id",
    ),
    ("int, int", "SELECT * FROM (VALUES ($1), ($2)) AS v(n) ORDER BY n"),
    ("int, text", "SELECT $1 + 1, $2 || 'x'"),
    ("numeric, int", "UPDATE t SET n = n + $1 WHERE id = $2 RETURNING id, n, n - $1"),
    ("bigint, bigint", "UPDATE t SET a = a + $1, b = $1 WHERE id = $2 RETURNING *"),
    ("int", "UPDATE t SET a = a + 1, m = m * 2, x = x || '+' WHERE a = $1"),
    ("int, int", "UPDATE t SET b = o.k FROM o WHERE o.t = t.id AND t.a = $1 AND o.k > $2 RETURNING t.id, t.b"),
    ("int, int", "UPDATE t SET b = o.k FROM o WHERE o.t = t.id AND t.a = $1 AND o.k > $2 RETURNING o.*, t.b + $1"),
    ("text, int", "UPDATE t SET v = $1 WHERE id = $2 RETURNING v"),
    ("numeric, int", "UPDATE t SET s = $1, c = 'z' WHERE id = $2 RETURNING s, c"),
    ("int", "UPDATE t SET z = now(), ts = now() WHERE id = $1 RETURNING z = now(), ts = localtimestamp"),
    ("int", "DELETE FROM o WHERE t = $1 RETURNING k, q"),
    ("int, int", "DELETE FROM o USING t WHERE o.t = t.id AND t.a = $1 AND o.k = $2"),
    ("int, text", "INSERT INTO o (t, k, q) VALUES ($1, 77, $2::numeric) RETURNING t, k, q"),
    ("int, int", "INSERT INTO o (t, k) VALUES ($1, $2 * 2 + 100), ($1, $2 * 2 + 101) RETURNING t, k, q, at = now()"),
    ("int, int", "INSERT INTO o (t, k) VALUES ($1, $2) ON CONFLICT (t, k) DO UPDATE SET q = o.q + $2 RETURNING k, q"),
    ("int", "INSERT INTO o (t, k) SELECT id, 500 + $1 FROM t WHERE a = $1"),
    ("int", "INSERT INTO numbered (a) VALUES ($1 + 1) RETURNING id > 0, a"),
];

/// Values of a type, as they are written.
fn values(of: &str) -> &'static [&'static str] {
    match of {
        "smallint" => &["NULL", "0", "3", "-1", "32767"],
        "int" => &["NULL", "0", "1", "2", "3", "5", "17", "-4", "2147483647", "-2147483648"],
        "bigint" => &["NULL", "0", "1", "2", "3", "30", "5000000000", "9223372036854775807", "-9223372036854775808"],
        "numeric" => &["NULL", "0", "1.50", "-2.25", "99999999.99", "1e20", "'NaN'", "0.005"],
        "float8" => &["NULL", "0", "-0.0", "'NaN'", "1.5", "'Infinity'", "1e300"],
        "text" | "varchar" => &["NULL", "''", "'a'", "'b'", "'x3'", "'7'", "'longer than five'", "'1.5'", "'a   '"],
        "date" => &["NULL", "'2024-02-29'", "'2000-01-01'", "'infinity'"],
        "timestamp" => &["NULL", "'2024-02-29 12:00:00'", "'infinity'", "'1999-12-31 23:59:59.5'"],
        "timestamptz" => &["NULL", "'2024-02-29 12:00:00+02'", "'-infinity'", "'2001-01-01 00:00:00Z'"],
        "boolean" => &["NULL", "true", "false"],
        "bytea" => &["NULL", r"'\x00ff'", r"'\x'", r"'\x03'"],
        other => panic!("no values of {other}"),
    }
}

async fn filled() -> Client {
    let mut c = Client::new(&database().await);
    // What runs by key without a plan has tests of its own.
    c.session.run_by_key(false);
    for sql in [
        "CREATE TABLE t (id int PRIMARY KEY, a int, b bigint, s smallint, n numeric(10, 2), m numeric, f float8, x text,
          v varchar(5), c char(4), d date, ts timestamp, z timestamptz, ok boolean, y bytea)",
        "CREATE INDEX t_a ON t (a, b)",
        "CREATE INDEX t_x ON t (x)",
        "CREATE TABLE o (t int REFERENCES t, k int, q numeric(8, 2) DEFAULT 1.5 CHECK (q < 5000),
          at timestamptz DEFAULT now(), PRIMARY KEY (t, k))",
        "CREATE TABLE numbered (id serial PRIMARY KEY, a int)",
        "CREATE VIEW seen AS SELECT id, a FROM t WHERE id > 2",
        "INSERT INTO t SELECT n, n % 4, n * 10, n % 7, n / 4.0, n / 3.0, n / 8.0, 'x' || n % 5,
          'v' || n % 3, 'c' || n % 3, date '2024-01-01' + n, timestamp '2024-01-01 00:00' + n * interval '1 hour',
          timestamptz '2024-01-01 00:00Z' + n * interval '1 day', n % 2 = 0, '\\x03'
          FROM generate_series(1, 30) AS g(n)",
        "INSERT INTO t (id) VALUES (0), (31)",
        "INSERT INTO o (t, k) SELECT n % 10, n FROM generate_series(1, 40) AS g(n)",
    ] {
        c.run(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    c
}

/// What a statement answers, and what the tables hold after it; nothing of it stays.
async fn outcome(c: &mut Client, execute: &str) -> Result<(Reply, Vec<Reply>), EngineError> {
    c.run("BEGIN").await?;
    let done = async {
        let reply = c.run(execute).await?;
        let mut left = vec![];
        for table in
            ["SELECT id, a, b, s, n, m, f, x, v, c, d, ok, y FROM t ORDER BY id", "SELECT t, k, q FROM o ORDER BY t, k"]
        {
            left.push(c.run(table).await?);
        }
        Ok((reply, left))
    };
    let done = done.await;
    c.run("ROLLBACK").await?;
    done
}

/// With an order, or as a set.
fn compared(sql: &str, outcome: Result<(Reply, Vec<Reply>), EngineError>) -> String {
    match outcome {
        Ok((Reply::Rows(mut rows), left)) => {
            if !sql.contains("ORDER BY") {
                rows.sort();
            }
            format!("{rows:?} {left:?}")
        }
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("{} {}", error.state.0, error.message),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_that_are_kept_answer_as_new_ones() {
    let mut c = filled().await;
    let mut random = StdRng::seed_from_u64(11);
    let mut planned = vec![];
    for (types, sql) in STATEMENTS {
        c.run(&format!("PREPARE kept ({types}) AS {sql}")).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let before = c.session.generic_plans();
        for run in 0..8 {
            let values: Vec<&str> =
                types.split(", ").map(|of| *values(of).choose(&mut random).expect("there are some")).collect();
            let values = values.join(", ");
            let again = outcome(&mut c, &format!("EXECUTE kept ({values})")).await;
            c.run(&format!("PREPARE new ({types}) AS {sql}")).await.expect("it was prepared before");
            let new = outcome(&mut c, &format!("EXECUTE new ({values})")).await;
            c.run("DEALLOCATE new").await.expect("it is there");
            assert_eq!(compared(sql, again), compared(sql, new), "run {run} of {sql} with {values}");
        }
        if c.session.generic_plans() == before {
            planned.push(sql);
        }
        c.run("DEALLOCATE kept").await.expect("it is there");
    }
    assert_eq!(c.session.generic_plans(), 0, "statements take their plans along");
    assert!(planned.len() <= 9, "planned each time: {planned:#?}");
}

/// Some drivers state bigint for every integer.
#[tokio::test(flavor = "multi_thread")]
async fn a_kept_plan_reads_a_range_of_a_key_also_by_wider_parameters() {
    let mut c = filled().await;
    let scans = "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 't'";
    c.run("PREPARE kept (bigint, bigint) AS SELECT id FROM t WHERE id BETWEEN $1 AND $2 ORDER BY c, id").await.unwrap();
    let before = c.run(scans).await.unwrap();
    for _ in 0..5 {
        c.rows("EXECUTE kept (7, 8)", &["7", "8"]).await;
    }
    assert_eq!(c.session.generic_plans(), 1);
    assert_eq!(c.run(scans).await.unwrap(), before, "no run read the whole table");
    c.rows("EXECUTE kept (30, 5000000000)", &["30", "31"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_goes_with_what_it_was_made_for() {
    let mut c = filled().await;
    // The constants are shown when the statement is planned.
    let shown = r"timestamptz '2024-01-02 00:00Z'::text, '\x03'::bytea::text";
    let sql = format!("PREPARE kept (int) AS SELECT id, a, {shown} FROM t WHERE a = $1 ORDER BY id LIMIT 1");
    c.run(&sql).await.unwrap();
    let row = r"1|1|2024-01-02 00:00:00+00|\x03";
    for _ in 0..3 {
        c.rows("EXECUTE kept (1)", &[row]).await;
    }
    assert_eq!(c.session.generic_plans(), 1);
    for sql in ["DROP INDEX t_a", "CREATE INDEX t_b ON t (b)", "CREATE INDEX t_a ON t (a)", "TRUNCATE numbered"] {
        c.run(sql).await.unwrap();
        for _ in 0..3 {
            c.rows("EXECUTE kept (1)", &[row]).await;
        }
    }
    c.run("SET TIME ZONE 'Asia/Tokyo'").await.unwrap();
    c.run("SET bytea_output = 'escape'").await.unwrap();
    for _ in 0..3 {
        c.rows("EXECUTE kept (1)", &["1|1|2024-01-02 09:00:00+09|\\003"]).await;
    }
    c.run("RESET ALL").await.unwrap();
    c.run("CREATE SCHEMA other").await.unwrap();
    c.run("CREATE TABLE other.t AS SELECT 100 + id AS id, a, z, y FROM t").await.unwrap();
    c.run("SET search_path = other").await.unwrap();
    for _ in 0..3 {
        c.rows("EXECUTE kept (1)", &["101|1|2024-01-02 00:00:00+00|\\x03"]).await;
    }
    c.run("RESET search_path").await.unwrap();
    c.run("TRUNCATE t CASCADE").await.unwrap();
    for _ in 0..3 {
        c.rows("EXECUTE kept (1)", &[]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_of_the_role_that_may_run_it() {
    let mut c = filled().await;
    for sql in ["CREATE ROLE reader", "CREATE ROLE stranger", "GRANT SELECT ON t TO reader"] {
        c.run(sql).await.unwrap();
    }
    c.run("PREPARE kept (int) AS SELECT id FROM t WHERE a = $1 AND id < 4 ORDER BY id").await.unwrap();
    for _ in 0..3 {
        c.rows("EXECUTE kept (1)", &["1"]).await;
    }
    c.run("SET ROLE stranger").await.unwrap();
    c.fails("EXECUTE kept (1)", "42501").await;
    c.run("SET ROLE reader").await.unwrap();
    for _ in 0..3 {
        c.rows("EXECUTE kept (1)", &["1"]).await;
    }
    c.run("RESET ROLE").await.unwrap();
    c.run("REVOKE SELECT ON t FROM reader").await.unwrap();
    c.run("SET ROLE reader").await.unwrap();
    for _ in 0..3 {
        c.fails("EXECUTE kept (1)", "42501").await;
    }
    c.run("RESET ROLE").await.unwrap();
    c.rows("EXECUTE kept (1)", &["1"]).await;
}

/// An index that is younger than a transaction's snapshot lacks rows that the transaction sees.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_does_not_use_an_index_that_is_too_young() {
    let db = database().await;
    let (mut a, mut b) = (Client::new(&db), Client::new(&db));
    a.session.run_by_key(false);
    a.ok("CREATE TABLE t (id int PRIMARY KEY, a int)", "CREATE TABLE").await;
    a.ok("INSERT INTO t SELECT n, n % 3 FROM generate_series(1, 30) AS g(n)", "INSERT 0 30").await;
    a.run("PREPARE kept (int) AS SELECT count(*) + 0 FROM t WHERE a = $1").await.unwrap();
    a.ok("BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN").await;
    a.rows("EXECUTE kept (1)", &["10"]).await;
    b.ok("UPDATE t SET a = 5", "UPDATE 30").await;
    b.ok("CREATE INDEX t_a ON t (a)", "CREATE INDEX").await;
    for _ in 0..4 {
        a.rows("EXECUTE kept (1)", &["10"]).await;
    }
    a.ok("COMMIT", "COMMIT").await;
    for _ in 0..4 {
        a.rows("EXECUTE kept (1)", &["0"]).await;
        a.rows("EXECUTE kept (5)", &["30"]).await;
    }
}

/// A session keeps so many plans; statements beyond are planned each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_keeps_some_plans() {
    let mut c = filled().await;
    for n in 0..100 {
        c.run(&format!("PREPARE p{n} (int) AS SELECT {n} + a FROM t WHERE id = $1")).await.unwrap();
        for _ in 0..3 {
            c.rows(&format!("EXECUTE p{n} (1)"), &[&(n + 1).to_string()]).await;
        }
    }
    assert_eq!(c.session.generic_plans(), 64);
    c.run("DEALLOCATE ALL").await.unwrap();
    assert_eq!(c.session.generic_plans(), 0);
}

/// A row that has changed while a kept plan waited for it is evaluated again with that plan, and the run's own values.
#[tokio::test(flavor = "multi_thread")]
async fn a_kept_plan_sees_a_row_that_changed_meanwhile() {
    let db = database().await;
    let mut a = Client::new(&db);
    a.ok("CREATE TABLE t (id int PRIMARY KEY, n numeric)", "CREATE TABLE").await;
    a.ok("INSERT INTO t VALUES (1, 100), (2, 100)", "INSERT 0 2").await;
    let cases = [
        ("UPDATE t SET n = n - $2 WHERE id = $1 AND n >= $2 RETURNING n", "(1, 30)", &["40"][..]),
        ("UPDATE t SET n = n - $2 WHERE id = $1 AND n >= $2 RETURNING n", "(1, 80)", &[]),
        ("SELECT n - $2 FROM t WHERE id = $1 FOR UPDATE", "(1, 5)", &["65"]),
        ("DELETE FROM t WHERE id = $1 AND n >= $2 RETURNING id", "(1, 70)", &["1"]),
    ];
    for (sql, values, answer) in cases {
        let mut b = Client::new(&db);
        b.session.run_by_key(false);
        b.run(&format!("PREPARE kept (int, numeric) AS {sql}")).await.unwrap();
        for _ in 0..3 {
            b.ok("BEGIN", "BEGIN").await;
            b.run("EXECUTE kept (2, 1)").await.unwrap();
            b.ok("ROLLBACK", "ROLLBACK").await;
        }
        assert!(b.session.generic_plans() > 0, "{sql}");
        a.ok("UPDATE t SET n = 100", "UPDATE 2").await;
        a.ok("BEGIN", "BEGIN").await;
        a.ok("UPDATE t SET n = n - 30 WHERE id = 1", "UPDATE 1").await;
        let waits = tokio::spawn(async move {
            b.run("BEGIN").await.unwrap();
            let reply = b.run(&format!("EXECUTE kept {values}")).await.unwrap();
            b.run("ROLLBACK").await.unwrap();
            reply
        });
        tokio::time::sleep(Duration::from_millis(150)).await;
        assert!(!waits.is_finished(), "{sql} did not wait");
        a.ok("COMMIT", "COMMIT").await;
        let answer = answer.iter().map(|row| row.to_string()).collect();
        assert_eq!(waits.await.unwrap(), Reply::Rows(answer), "{sql} with {values}");
    }
}
