//! What values and lists in a statement may take.
use crate::common::{Client, Reply, database};
use terrace_sql::{Spill, SqlDatabase};

const MIB: usize = 1 << 20;

async fn limited(mib: usize) -> SqlDatabase {
    database().await.limit_memory(mib * MIB)
}

async fn one(c: &mut Client, sql: &str) -> String {
    match c.run(sql).await {
        Ok(Reply::Rows(rows)) if rows.len() == 1 => rows.into_iter().next().expect("one"),
        other => panic!("{sql}: {other:?}"),
    }
}

/// No value is longer than a gigabyte, and none is begun that memory has no room for.
#[tokio::test]
async fn f3_values_are_measured_before_they_are_made() {
    let mut c = Client::new(&limited(128).await);
    for sql in [
        "SELECT length(repeat('x', 2000000000))",
        "SELECT length(repeat('x', 2147483647))",
        "SELECT length(lpad('x', 2000000000, 'y'))",
        "SELECT length(rpad('x', 2147483647))",
        "SELECT length(replace(repeat('x', 10000000), 'x', repeat('y', 1000)))",
    ] {
        let error = c.fails(sql, "54000").await;
        assert!(error.message.contains("requested length too large"), "{error}");
    }
    for sql in [
        "SELECT length(repeat('x', 500000000))",
        "SELECT length(lpad('x', 500000000))",
        "SELECT length(replace(repeat('x', 1000000), 'x', repeat('y', 500)))",
        "SELECT length(translate(repeat('x', 70000000), 'x', 'ä'))",
        "SELECT length(regexp_replace(repeat('x', 1000000), 'x', repeat('y', 500), 'g'))",
        "SELECT length(concat(repeat('x', 60000000), repeat('x', 50000000), repeat('x', 30000000)))",
        "SELECT length(repeat('x', 70000000) || repeat('y', 70000000))",
        "SELECT length(upper(repeat('ä', 40000000)))",
    ] {
        let error = c.fails(sql, "53200").await;
        assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("memory.queries")), "{error:?}");
    }
    assert_eq!(one(&mut c, "SELECT length(repeat('x', 20000000))").await, "20000000");
    assert_eq!(one(&mut c, "SELECT length(lpad('x', 20000000, 'yz'))").await, "20000000");
    assert_eq!(one(&mut c, "SELECT length(repeat('ab', 1000000) || 'c')").await, "2000001");
}

/// Eight thousand rows in a batch: what is made of them is not there at once.
#[tokio::test]
async fn f3_long_values_of_many_rows() {
    let mut c = Client::new(&limited(64).await);
    let sum = "SELECT sum(length(repeat('x', 100000 + g.n))) FROM generate_series(1, 5000) AS g(n)";
    assert_eq!(one(&mut c, sum).await, (100_000u64 * 5000 + 5000 * 5001 / 2).to_string());
    let same = "SELECT count(*) FROM generate_series(1, 9000) AS g(n) WHERE length(repeat('x', 100000) || n) > 100004";
    assert_eq!(one(&mut c, same).await, "0");
    let long = "x".repeat(300_000);
    let constant = format!("SELECT sum(length(concat('{long}', n))) FROM generate_series(1, 3000) AS g(n)");
    assert_eq!(one(&mut c, &constant).await, (300_000u64 * 3000 + 9 + 180 + 2700 + 4 * 2001).to_string());
    let doubled = "WITH RECURSIVE t(n, s) AS (SELECT 1, 'x' UNION ALL SELECT n + 1, s || s FROM t WHERE n < 40) \
                   SELECT max(length(s)) FROM t";
    let refused = c.run(doubled).await.expect_err("2^39 characters");
    assert!(["53200", "54000"].contains(&refused.state.0), "{refused}");
}

/// The answers are PostgreSQL's.
#[tokio::test]
async fn f3_results_of_the_functions_made_here() {
    let mut c = Client::new(&database().await);
    for (sql, answer) in [
        (
            "SELECT repeat('ab', 3), repeat('ab', 0), repeat('ab', -1), repeat(NULL, 2), repeat('a', NULL)",
            "ababab|||NULL|NULL",
        ),
        ("SELECT lpad('hi', 5, 'xy'), lpad('hello', 3), lpad('hi', 4), lpad('hi', -2, 'x')", "xyxhi|hel|  hi|"),
        ("SELECT rpad('hi', 5, 'xy'), rpad('hello', 3), rpad('hi', 4) || '|', rpad('hi', 4, '')", "hixyx|hel|hi  ||hi"),
        ("SELECT lpad('ä', 3, 'öü'), rpad('ä', 4, 'öü')", "öüä|äöüö"),
        (
            "SELECT replace('abcabc', 'b', 'xx'), replace('abc', '', 'x'), replace('aaa', 'aa', 'b'), \
             replace('a', NULL, 'b')",
            "axxcaxxc|abc|ba|NULL",
        ),
        (
            "SELECT translate('12345', '143', 'ax'), translate('abc', '', 'x'), translate('aab', 'aa', 'xy')",
            "a2x5|abc|xxb",
        ),
        ("SELECT 'a' || 'b' || 'c', 'a' || NULL, 'n' || 1", "abc|NULL|n1"),
        (
            "SELECT concat('a', NULL, 1), concat_ws('-', 'a', NULL, 'b'), upper('straße'), initcap('hi all')",
            "a1|a-b|STRAßE|Hi All",
        ),
    ] {
        assert_eq!(one(&mut c, sql).await, answer, "{sql}");
    }
}

/// A list of a million texts is weighed before it is parsed; one of ten thousand is none too long.
#[tokio::test]
async fn f5_lists_are_weighed_before_they_are_parsed() {
    let mut c = Client::new(&limited(128).await);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 'value 77'), (2, 'value')", "INSERT 0 2").await;
    let list = |n: usize| (1..=n).map(|i| format!("'value {i}'")).collect::<Vec<_>>().join(",");
    let error = c.fails(&format!("SELECT id FROM t WHERE v IN ({})", list(1_000_000)), "53200").await;
    assert!(error.detail.as_deref().is_some_and(|d| d.contains("statement's text")), "{error:?}");
    c.rows(&format!("SELECT id FROM t WHERE v IN ({})", list(10_000)), &["1"]).await;
    let array = (1..=500_000).map(|i| i.to_string()).collect::<Vec<_>>().join(",");
    c.fails(&format!("SELECT id FROM t WHERE id = ANY ('{{{array}}}')"), "53200").await;
    let values = (0..20_000).map(|i| format!("({i}, 'it''s, a (long) text, it seems')")).collect::<Vec<_>>().join(", ");
    c.ok("CREATE TABLE u (id int PRIMARY KEY, v text)", "CREATE TABLE").await;
    c.ok(&format!("INSERT INTO u VALUES {values}"), "INSERT 0 20000").await;
    // A long literal is one token, whatever is in it.
    let prose = "many, many (words) ".repeat(400_000);
    assert_eq!(one(&mut c, &format!("SELECT length('{prose}')")).await, prose.len().to_string());
    assert_eq!(one(&mut c, &format!("SELECT length($$ {prose} $$)")).await, (prose.len() + 2).to_string());
}

/// Rows that a statement keeps by itself.
#[tokio::test]
async fn f3_rows_that_are_kept() {
    let db = limited(4).await;
    let mut c = Client::new(&db);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE").await;
    for part in 0..10 {
        let (from, to) = (part * 2000 + 1, (part + 1) * 2000);
        let sql = format!("INSERT INTO t SELECT n, repeat('x', 200) FROM generate_series({from}, {to}) AS g(n)");
        c.ok(&sql, "INSERT 0 2000").await;
    }
    for sql in [
        "SELECT * FROM t FOR UPDATE",
        "UPDATE t SET v = v || 'y'",
        "DELETE FROM t WHERE id IN (SELECT id FROM t FOR UPDATE) RETURNING *",
        "UPDATE t SET v = repeat('y', 2000)",
        "INSERT INTO t SELECT id + 1000000, v FROM t",
        "INSERT INTO t SELECT id, v FROM t ON CONFLICT (id) DO UPDATE SET v = excluded.v",
        "SELECT array_agg(v || id) FROM t, generate_series(1, 3)",
        "SELECT string_agg(v || id, ',') FROM t, generate_series(1, 3)",
    ] {
        c.fails(sql, "53200").await;
    }
    assert_eq!(one(&mut c, "SELECT count(*), sum(length(v)) FROM t").await, "20000|4000000");
    c.ok("UPDATE t SET v = 'short' WHERE id <= 100", "UPDATE 100").await;
}

/// A statement is cancelled within what functions make of one batch of rows.
#[tokio::test(flavor = "multi_thread")]
async fn q30_a_timeout_ends_a_function() {
    let mut c = Client::new(&database().await);
    c.ok("SET statement_timeout = '200ms'", "SET").await;
    c.fails("SELECT length(repeat('a', 2147483647))", "54000").await;
    let endless = "SELECT count(length(repeat('x', 10000000 + g.n))) FROM generate_series(1, 5000000) AS g(n)";
    c.fails(endless, "57014").await;
    let padded = "SELECT count(length(lpad('x', 1000000 + g.n))) FROM generate_series(1, 5000000) AS g(n)";
    c.fails(padded, "57014").await;
    // Numbers with as many digits as there may be, most of which no byte is stored for.
    let long = "SELECT count(length((1e130000 + g.n)::text)) FROM generate_series(1, 100000) AS g(n)";
    c.fails(long, "57014").await;
    let shown = "SELECT count(length((g.n * 1e130000)::text)) FROM generate_series(1, 100000) AS g(n)";
    c.fails(shown, "57014").await;
    c.ok("SET statement_timeout = 0", "SET").await;
    assert_eq!(one(&mut c, "SELECT length(repeat('a', 1000))").await, "1000");
}

#[tokio::test]
async fn f3_letters_compared_one_by_one() {
    let mut c = Client::new(&database().await);
    assert_eq!(one(&mut c, "SELECT levenshtein('kitten', 'sitting')").await, "3");
    c.fails("SELECT levenshtein(repeat('a', 1000000), repeat('b', 1000000))", "54000").await;
}

/// What another table gives is stored while it is read; what the target itself gives is read before anything is stored.
#[tokio::test]
async fn insert_select_holds_a_batch_at_a_time() {
    let database = limited(16).await;
    let mut c = Client::new(&database);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, filler text CHECK (length(filler) < 1000))", "CREATE TABLE").await;
    c.ok("CREATE TABLE u (number serial PRIMARY KEY, id int UNIQUE, filler text)", "CREATE TABLE").await;
    c.ok("INSERT INTO t SELECT n, repeat('x', 600) FROM generate_series(1, 60000) AS g(n)", "INSERT 0 60000").await;
    c.ok("INSERT INTO u (id, filler) SELECT id, filler FROM t", "INSERT 0 60000").await;
    assert_eq!(one(&mut c, "SELECT count(*), sum(number) = sum(id) FROM u").await, "60000|true");
    c.fails("INSERT INTO t SELECT id + 60000, filler FROM t", "53200").await;
    // Fails at its last row, and leaves none.
    let last =
        "INSERT INTO u (id, filler) SELECT 60001 - n + 59999, repeat('y', 600) FROM generate_series(0, 60000) AS g(n)";
    c.fails(last, "23505").await;
    c.fails("INSERT INTO t SELECT 60000 + n, repeat('x', n / 40) FROM generate_series(1, 50000) AS g(n)", "23514")
        .await;
    assert_eq!(one(&mut c, "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM u)").await, "60000|60000");
    c.ok("DELETE FROM t WHERE id > 10", "DELETE 59990").await;
    for (again, rows) in [
        ("INSERT INTO t SELECT id + 10, filler FROM t", 10),
        ("INSERT INTO t SELECT n, 'z' FROM generate_series(21, 40) AS g(n) WHERE (SELECT count(*) FROM t) = 20", 20),
        (
            "INSERT INTO t WITH w AS (SELECT id FROM t) SELECT u.id, 'w' FROM u LEFT JOIN w ON w.id = u.id
             WHERE w.id IS NULL AND u.id <= 50",
            10,
        ),
    ] {
        c.ok(again, &format!("INSERT 0 {rows}")).await;
    }
    assert_eq!(one(&mut c, "SELECT count(*), count(DISTINCT id), max(id) FROM t").await, "50|50|50");
}

/// A sequence of the statement's own transaction: taking its numbers takes snapshots.
#[tokio::test]
async fn insert_select_beside_a_sequence_of_its_own() {
    let database = limited(64).await;
    let (mut c, mut other) = (Client::new(&database), Client::new(&database));
    c.ok("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE").await;
    c.ok("INSERT INTO t SELECT n FROM generate_series(1, 9000) AS g(n)", "INSERT 0 9000").await;
    c.ok("BEGIN", "BEGIN").await;
    c.ok("CREATE TABLE u (number serial, id int)", "CREATE TABLE").await;
    other.ok("INSERT INTO t VALUES (9001)", "INSERT 0 1").await;
    c.ok("INSERT INTO u (id) SELECT a.id FROM t AS a JOIN t AS b ON a.id = b.id ORDER BY a.id", "INSERT 0 9001").await;
    assert_eq!(one(&mut c, "SELECT count(*), sum(number) = sum(id), max(number) FROM u").await, "9001|true|9001");
    c.ok("COMMIT", "COMMIT").await;
}

/// Planning ends with the statement's timeout, and with a cancel; also where it is only described (N48, review R6).
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn n48_a_timeout_ends_planning() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (a int)", "CREATE TABLE").await;
    let columns: Vec<String> = (0..9000).map(|n| format!("a + {n} AS c{n}")).collect();
    let wide = format!("SELECT {} FROM t", columns.join(", "));
    let tables: Vec<String> = (0..100).map(|n| format!("t t{n}")).collect();
    let joined = format!("SELECT 1 FROM {}", tables.join(", "));
    c.ok("SET statement_timeout = '100ms'", "SET").await;
    for (sql, described) in [(&wide, true), (&wide, false), (&joined, false)] {
        let begun = std::time::Instant::now();
        let outcome = match described {
            true => c.session.prepare(sql, &[]).await.map(drop),
            false => match c.session.prepare_to_run(sql).await {
                Ok(statement) => c.session.execute(&statement, vec![]).await.map(drop),
                Err(error) => Err(error),
            },
        };
        let (outcome, took) = (outcome.map_err(|error| error.state.0), begun.elapsed());
        assert_eq!(outcome, Err("57014"), "{described} {took:?}: {}", &sql[..40]);
        assert!(took.as_millis() < 4000, "{described} {took:?}: {}", &sql[..40]);
    }
    let canceller = c.session.canceller();
    c.ok("SET statement_timeout = 0", "SET").await;
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let told = done.clone();
    let cancels = std::thread::spawn(move || {
        while !told.load(std::sync::atomic::Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_millis(100));
            canceller.cancel();
        }
    });
    c.fails(&joined, "57014").await;
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    cancels.join().unwrap();
}

/// Where no temporary file can be made, as on a full disk, the database is there all the same.
#[tokio::test]
async fn without_temporary_files() {
    let file = std::env::temp_dir().join(format!("terrace-no-directory-{}", std::process::id()));
    std::fs::write(&file, b"").unwrap();
    let spill = Spill { directory: file.join("temp"), capacity: 1 << 30, memory: 4 * MIB };
    let mut c = Client::new(&SqlDatabase::with_spill(database().await.engine, spill));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(one(&mut c, "SELECT sum(n) FROM generate_series(1, 100) AS g(n)").await, "5050");
    c.ok("CREATE TABLE t (a int PRIMARY KEY, b text)", "CREATE TABLE").await;
    c.ok("INSERT INTO t SELECT n, repeat('x', 200) || n FROM generate_series(1, 50000) AS g(n)", "INSERT 0 50000")
        .await;
    c.fails("SELECT count(*) FROM (SELECT b FROM t ORDER BY b DESC OFFSET 1) s", "53200").await;
    c.ok("DELETE FROM t WHERE a > 10", "DELETE 49990").await;
}
