//! Statements of one session: what they answer, and what they refuse.
mod alter;
mod arrays;
mod by_key;
mod by_key_joins;
mod by_key_values;
mod chars;
mod checks;
mod choosers;
mod conflict;
mod cursors;
mod deep;
mod found;
mod given_up;
mod hidden;
mod kernels;
mod kinds;
mod letters;
mod lock_rows;
mod memory;
mod mistakes;
mod named;
mod numbers;
mod offset;
mod plans;
mod postgres;
mod returning;
mod savepoint;
mod scopes;
mod sequence;
mod settings;
mod times;
mod types;
mod unions;
mod zones;

use crate::common::{Client, Reply, database};
use terrace_engine::{DataType, Datum};
use terrace_sql::TxnStatus;

async fn client() -> Client {
    Client::new(&database().await)
}

async fn people() -> Client {
    let mut c = client().await;
    c.ok(
        "CREATE TABLE people (id int PRIMARY KEY, name text NOT NULL, city varchar(5), \
          born timestamp, tall bool, kg float8, pay bigint DEFAULT 100)",
        "CREATE TABLE",
    )
    .await;
    c.ok(
        "INSERT INTO people (id, name, city, born, tall, kg) VALUES (1, 'Ann', 'Rome', '1970-01-02 03:04:05', true, \
         60.5), (2, 'Bob', 'Oslo', NULL, false, 81), (3, 'Cem', NULL, '2000-01-01', NULL, -1e3)",
        "INSERT 0 3",
    )
    .await;
    c
}

#[tokio::test]
async fn ddl() {
    let mut c = client().await;
    c.ok("CREATE TABLE a (x int4, y text, PRIMARY KEY (x, y), UNIQUE (y))", "CREATE TABLE").await;
    c.fails("create table A (x int)", "42P07").await;
    assert_eq!(
        c.run("CREATE TABLE IF NOT EXISTS a (x int)").await.unwrap(),
        Reply::Notice("CREATE TABLE".into(), "42P07".into())
    );
    c.ok("CREATE TABLE \"A\" (\"X y\" int)", "CREATE TABLE").await;
    c.ok("CREATE INDEX ON a (y, x)", "CREATE INDEX").await;
    c.ok("CREATE UNIQUE INDEX u ON public.a (x)", "CREATE INDEX").await;
    c.fails("CREATE INDEX u ON a (x)", "42P07").await;
    c.fails("CREATE INDEX v ON a (nope)", "42703").await;
    c.fails("CREATE INDEX v ON nope (x)", "42P01").await;
    let catalog = c.session_catalog().await;
    let table = catalog.table("a").unwrap();
    let names: Vec<&str> = table.indexes.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["a_pkey", "a_y_key", "a_y_x_idx", "u"]);
    assert!(table.columns.iter().all(|c| c.not_null), "key columns are NOT NULL");
    c.ok("DROP INDEX u", "DROP INDEX").await;
    c.fails("DROP INDEX u", "42704").await;
    c.fails("DROP INDEX a_pkey", "2BP01").await;
    c.fails("DROP TABLE u", "42P01").await;
    c.ok("DROP TABLE a, \"A\"", "DROP TABLE").await;
    c.fails("SELECT * FROM a", "42P01").await;
    c.fails("DROP TABLE a", "42P01").await;
    assert!(matches!(c.run("DROP TABLE IF EXISTS a").await.unwrap(), Reply::Notice(tag, _) if tag == "DROP TABLE"));
}

#[tokio::test]
async fn ddl_refusals() {
    let mut c = client().await;
    c.ok("CREATE TABLE t (a int, b text)", "CREATE TABLE").await;
    for sql in [
        "CREATE TABLE x (a text COLLATE \"de_DE\")",
        "CREATE INDEX i ON t USING hash (a)",
        "CREATE MATERIALIZED VIEW v AS SELECT 1",
        "SELECT * FROM (SELECT * FROM t FOR UPDATE) AS x",
        "VACUUM FULL",
    ] {
        c.fails(sql, "0A000").await;
    }
    for (sql, state) in [
        ("CREATE TABLE x (a int, a int)", "42701"),
        ("CREATE TABLE x (a int PRIMARY KEY, b int PRIMARY KEY)", "42P16"),
        ("CREATE TABLE x (a int NULL NOT NULL)", "42601"),
        ("CREATE TABLE x (a varchar(0))", "22023"),
        ("CREATE TABLE x (a char(0))", "22023"),
        ("CREATE TABLE x (a numeric(5, 1001))", "22023"),
        ("CREATE TABLE x (a numeric(0))", "22023"),
        ("CREATE TABLE x (a numeric(40)[])", "0A000"),
        ("CREATE TABLE x (a interval year)", "0A000"),
        ("CREATE TABLE x (a nosuchtype)", "42704"),
        ("CREATE TABLE x (a int DEFAULT 'abc')", "22P02"),
        ("CREATE TABLE x (a int DEFAULT b)", "0A000"),
        ("CREATE TABLE x (a int DEFAULT lower('a'))", "42804"),
        ("CREATE TABLE nosuch.x (a int)", "3F000"),
        ("CREATE TABLE x (a int, PRIMARY KEY (b))", "42703"),
        ("SELEC 1", "42601"),
        ("SELECT 1; SELECT 2", "42601"),
        ("SET nosuch = 1", "42704"),
    ] {
        c.fails(sql, state).await;
    }
    let deep = format!("SELECT {}1{}", "(".repeat(2000), ")".repeat(2000));
    c.fails(&deep, "54001").await;
    let long = format!("SELECT 1 WHERE {}", vec!["1 = 2"; 20_000].join(" OR "));
    c.rows(&long, &[]).await;
}

#[tokio::test]
async fn select() {
    let mut c = people().await;
    c.rows(
        "SELECT id, name, city, born, tall, kg, pay FROM people ORDER BY id",
        &[
            "1|Ann|Rome|1970-01-02T03:04:05|true|60.5|100",
            "2|Bob|Oslo|NULL|false|81.0|100",
            "3|Cem|NULL|2000-01-01T00:00:00|NULL|-1000.0|100",
        ],
    )
    .await;
    c.rows("SELECT name FROM people WHERE id = 2", &["Bob"]).await;
    c.rows("SELECT name FROM people WHERE id >= 2 AND id < 3", &["Bob"]).await;
    c.rows("SELECT name FROM people WHERE id BETWEEN 2 AND 9 ORDER BY id DESC", &["Cem", "Bob"]).await;
    c.rows("SELECT name FROM people WHERE 2 < id", &["Cem"]).await;
    c.rows("SELECT name FROM people WHERE id IN (1, 3)", &["Ann", "Cem"]).await;
    c.rows("SELECT name FROM people WHERE id = '3'", &["Cem"]).await;
    c.rows("SELECT count(*), sum(pay), max(name) FROM people", &["3|300|Cem"]).await;
    c.rows("SELECT id FROM people ORDER BY city, id", &["2", "1", "3"]).await;
    c.rows("SELECT id FROM people ORDER BY id LIMIT 1 OFFSET 1", &["2"]).await;
    c.rows("SELECT id, id, 1, 2 FROM people WHERE id = 1", &["1|1|1|2"]).await;
    c.rows("SELECT *, id FROM people WHERE false", &[]).await;
    c.rows("SELECT a.name, b.name FROM people a JOIN people b ON a.id + 1 = b.id", &["Ann|Bob", "Bob|Cem"]).await;
    c.rows("SELECT name FROM people p WHERE EXISTS (SELECT 1 FROM people q WHERE q.id = p.id + 2)", &["Ann"]).await;
    c.rows("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT sum(i) FROM n", &["10"])
        .await;
    c.rows("SELECT 1 UNION ALL SELECT 2", &["1", "2"]).await;
    c.rows("SELECT name || ' ' || coalesce(city, '-') FROM people WHERE name LIKE '%e%'", &["Cem -"]).await;
    c.rows("VALUES (1, 'a'), (2, 'b')", &["1|a", "2|b"]).await;
    assert_eq!(c.run("").await.unwrap(), Reply::Empty);
    assert_eq!(c.run(" ; -- nothing").await.unwrap(), Reply::Empty);
}

#[tokio::test]
async fn names_of_columns() {
    let mut c = people().await;
    let names = |columns: Vec<(String, String)>| columns.into_iter().map(|(n, _)| n).collect::<Vec<_>>();
    let sql = "SELECT 1, id, id + 1, count(*), max(id), count(*), upper(name), CAST(id AS text), 'a'::varchar, \
               CASE WHEN true THEN 1 END, EXISTS (SELECT 1), (SELECT max(id) FROM people), id AS \"X\" \
               FROM people GROUP BY id, name";
    assert_eq!(
        names(c.columns(sql).await),
        ["?column?", "id", "?column?", "count", "max", "count", "upper", "id", "varchar", "case", "exists", "max", "X"]
    );
    assert_eq!(names(c.columns("SELECT *, id FROM people").await).last().unwrap(), "id");
}

#[tokio::test]
async fn semantics() {
    let mut c = people().await;
    for (sql, answer) in [
        ("SELECT 7 / 2", "3"),
        ("SELECT -7 / 2", "-3"),
        ("SELECT 7 % -3", "1"),
        ("SELECT cast(2.5 AS int), cast(3.5 AS int), cast(-2.7 AS bigint)", "3|4|-3"),
        ("SELECT 'a' || NULL IS NULL", "true"),
        ("SELECT NULL = NULL IS NULL", "true"),
        ("SELECT 1 = 1.0", "true"),
        ("SELECT '5'::int + 1", "6"),
        ("SELECT 'a' < 'b', 'B' < 'a'", "true|true"),
        ("SELECT 9223372036854775806 + 1", "9223372036854775807"),
    ] {
        c.rows(sql, &[answer]).await;
    }
    for (sql, state) in [
        ("SELECT 1 / 0", "22012"),
        ("SELECT id / (id - id) FROM people", "22012"),
        ("SELECT 9223372036854775807 + 1", "22003"),
        ("SELECT pay * 9223372036854775807 FROM people", "22003"),
        ("SELECT -9223372036854775807 - pay FROM people", "22003"),
        ("SELECT id * 2147483647 * 2147483647 * 4 FROM people WHERE id > 1", "22003"),
        ("SELECT cast('abc' AS int)", "22P02"),
        ("SELECT cast(3000000000 AS int)", "22003"),
        ("SELECT nope FROM people", "42703"),
        ("SELECT p.nope FROM people p", "42703"),
        ("SELECT nope(1)", "42883"),
        ("SELECT * FROM nope", "42P01"),
        ("SELECT * FROM nosuch.people", "42P01"),
        ("SELECT id FROM people a, people b", "42702"),
        ("SELECT name, count(*) FROM people", "42803"),
        ("SELECT (SELECT id FROM people)", "21000"),
    ] {
        c.fails(sql, state).await;
    }
}

#[tokio::test]
async fn insert() {
    let mut c = client().await;
    c.ok(
        "CREATE TABLE t (a int PRIMARY KEY, b varchar(3) DEFAULT 'x', c int8 NOT NULL DEFAULT 1 + 1, \
          d timestamp DEFAULT now())",
        "CREATE TABLE",
    )
    .await;
    c.ok("INSERT INTO t (a) VALUES (1)", "INSERT 0 1").await;
    c.ok(
        "INSERT INTO t VALUES (2, 'ab   ', 1 + 2 * 3, NULL), (3, DEFAULT, '7', '2001-02-03 04:05:06.7')",
        "INSERT 0 2",
    )
    .await;
    c.ok("INSERT INTO t (c, a) SELECT a * 10, a + 10 FROM t", "INSERT 0 3").await;
    c.rows(
        "SELECT a, b, c, d IS NULL FROM t ORDER BY a",
        &["1|x|2|false", "2|ab |7|true", "3|x|7|false", "11|x|10|false", "12|x|20|false", "13|x|30|false"],
    )
    .await;
    for (sql, state) in [
        ("INSERT INTO t (a) VALUES (1)", "23505"),
        ("INSERT INTO t (a, c) VALUES (4, NULL)", "23502"),
        ("INSERT INTO t (b) VALUES ('q')", "23502"),
        ("INSERT INTO t (a, b) VALUES (4, 'abcd')", "22001"),
        ("INSERT INTO t (a) VALUES (3000000000)", "22003"),
        ("INSERT INTO t (a) VALUES ('x')", "22P02"),
        ("INSERT INTO t (a) VALUES (true)", "42804"),
        ("INSERT INTO t (a) SELECT b FROM t", "42804"),
        ("INSERT INTO t (a, d) VALUES (4, 'yesterday-ish')", "22007"),
        ("INSERT INTO t (a) VALUES (1, 2)", "42601"),
        ("INSERT INTO t (a, b) VALUES (1)", "42601"),
        ("INSERT INTO t VALUES (4, 'a'), (5)", "42601"),
        ("INSERT INTO t (a, a) VALUES (1, 2)", "42701"),
        ("INSERT INTO t (nope) VALUES (1)", "42703"),
        ("INSERT INTO nope VALUES (1)", "42P01"),
        ("INSERT INTO t (a) VALUES (1 / 0)", "22012"),
    ] {
        c.fails(sql, state).await;
    }
    let error = c.fails("INSERT INTO t (a, c) VALUES (4, NULL)", "23502").await;
    assert_eq!(error.message, "null value in column \"c\" of relation \"t\" violates not-null constraint");
    assert!(error.detail.unwrap().starts_with("Failing row contains (4, x, null, "));
    // Nothing of a statement that failed half-way stays.
    c.fails("INSERT INTO t (a) VALUES (20), (21), (1)", "23505").await;
    c.rows("SELECT count(*) FROM t", &["6"]).await;
    c.ok("CREATE TABLE e (x text DEFAULT 'd')", "CREATE TABLE").await;
    c.ok("INSERT INTO e DEFAULT VALUES", "INSERT 0 1").await;
    c.ok("INSERT INTO e VALUES (5), (true), (NULL)", "INSERT 0 3").await;
    c.rows("SELECT x FROM e", &["5", "NULL", "d", "true"]).await;
}

#[tokio::test]
async fn update_and_delete() {
    let mut c = people().await;
    c.ok("UPDATE people SET pay = pay + 1 WHERE id = 1", "UPDATE 1").await;
    c.ok("UPDATE people SET id = id + 10", "UPDATE 3").await;
    c.rows("SELECT id, name, pay FROM people ORDER BY id", &["11|Ann|101", "12|Bob|100", "13|Cem|100"]).await;
    // Right-hand sides see the old row.
    c.ok("UPDATE people SET pay = kg, kg = pay WHERE id = 12", "UPDATE 1").await;
    c.rows("SELECT pay, kg FROM people WHERE id = 12", &["81|100.0"]).await;
    c.ok("UPDATE people p SET (city, pay) = ('A', DEFAULT) WHERE p.id IN (SELECT max(id) FROM people)", "UPDATE 1")
        .await;
    c.rows("SELECT city, pay FROM people WHERE id = 13", &["A|100"]).await;
    c.ok("UPDATE people SET pay = 0 WHERE 1 = 0", "UPDATE 0").await;
    c.ok("UPDATE people SET pay = (pay * 7) % 5, kg = (pay * 7) % 5 + 1 WHERE id = 11", "UPDATE 1").await;
    c.rows("SELECT pay, kg FROM people WHERE id = 11", &["2|3.0"]).await;
    for (sql, state) in [
        ("UPDATE people SET id = 12 WHERE id = 13", "23505"),
        ("UPDATE people SET name = NULL", "23502"),
        ("UPDATE people SET city = 'too long'", "22001"),
        ("UPDATE people SET pay = name", "42804"),
        ("UPDATE people SET pay = 'x'", "22P02"),
        ("UPDATE people SET id = pay * 3000000000", "22003"),
        ("UPDATE people SET nope = 1", "42703"),
        ("UPDATE people SET pay = 1, pay = 2", "42601"),
        ("UPDATE nope SET a = 1", "42P01"),
        ("UPDATE people SET pay = nope", "42703"),
    ] {
        c.fails(sql, state).await;
    }
    c.ok("CREATE TABLE raise (who text, by int)", "CREATE TABLE").await;
    c.ok("INSERT INTO raise VALUES ('Ann', 5), ('Ann', 5), ('Cem', 7)", "INSERT 0 3").await;
    c.ok("UPDATE people SET pay = pay + r.by FROM raise r WHERE r.who = name", "UPDATE 2").await;
    c.rows("SELECT name, pay FROM people ORDER BY name", &["Ann|7", "Bob|81", "Cem|107"]).await;
    c.ok("DELETE FROM people USING raise r WHERE r.who = name AND r.by = 7", "DELETE 1").await;
    c.ok("DELETE FROM people WHERE id = 1 AND id = 2", "DELETE 0").await;
    c.ok("DELETE FROM people WHERE id IN (SELECT id FROM people WHERE name = 'Bob')", "DELETE 1").await;
    c.rows("SELECT name FROM people", &["Ann"]).await;
    c.ok("DELETE FROM people", "DELETE 1").await;
    c.ok("DELETE FROM people", "DELETE 0").await;
}

#[tokio::test]
async fn transactions() {
    let mut c = people().await;
    c.ok("BEGIN", "BEGIN").await;
    assert_eq!(c.session.status(), TxnStatus::InTransaction);
    c.ok("DELETE FROM people WHERE id = 1", "DELETE 1").await;
    c.ok("CREATE TABLE inside (a int)", "CREATE TABLE").await;
    c.ok("INSERT INTO inside VALUES (1)", "INSERT 0 1").await;
    c.rows("SELECT count(*) FROM inside, people", &["2"]).await;
    c.ok("ROLLBACK", "ROLLBACK").await;
    assert_eq!(c.session.status(), TxnStatus::Idle);
    c.fails("SELECT * FROM inside", "42P01").await;
    c.rows("SELECT count(*) FROM people", &["3"]).await;

    c.ok("START TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION").await;
    c.rows("SHOW transaction isolation level", &["repeatable read"]).await;
    c.ok("UPDATE people SET pay = 1", "UPDATE 3").await;
    c.ok("END", "COMMIT").await;
    c.rows("SELECT sum(pay) FROM people", &["3"]).await;

    c.ok("BEGIN", "BEGIN").await;
    c.ok("UPDATE people SET pay = 9", "UPDATE 3").await;
    c.fails("SELECT 1 / 0", "22012").await;
    assert_eq!(c.session.status(), TxnStatus::Failed);
    c.fails("SELECT 1", "25P02").await;
    c.ok("COMMIT", "ROLLBACK").await;
    c.rows("SELECT sum(pay) FROM people", &["3"]).await;

    c.ok("BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE", "BEGIN").await;
    c.rows("SHOW transaction_isolation", &["serializable"]).await;
    c.rows("SHOW transaction_deferrable", &["on"]).await;
    c.rows("SELECT sum(pay) FROM people", &["3"]).await;
    c.fails("UPDATE people SET pay = 9", "25006").await;
    c.ok("ROLLBACK", "ROLLBACK").await;
    c.rows("SHOW transaction_deferrable", &["off"]).await;
    assert_eq!(c.run("COMMIT").await.unwrap(), Reply::Notice("COMMIT".into(), "25P01".into()));
    assert_eq!(c.run("ROLLBACK").await.unwrap(), Reply::Notice("ROLLBACK".into(), "25P01".into()));
    c.ok("BEGIN", "BEGIN").await;
    assert_eq!(c.run("BEGIN").await.unwrap(), Reply::Notice("BEGIN".into(), "25001".into()));
    c.ok("ABORT", "ROLLBACK").await;
}

#[tokio::test]
async fn pipelines() {
    let mut c = people().await;
    c.session.begin_pipeline();
    c.ok("UPDATE people SET pay = 5", "UPDATE 3").await;
    c.fails("INSERT INTO people (id, name) VALUES (1, 'again')", "23505").await;
    c.session.sync().await.unwrap();
    c.rows("SELECT sum(pay) FROM people", &["300"]).await;
    c.session.begin_pipeline();
    c.ok("UPDATE people SET pay = 5", "UPDATE 3").await;
    c.rows("SELECT sum(pay) FROM people", &["15"]).await;
    c.session.sync().await.unwrap();
    c.rows("SELECT sum(pay) FROM people", &["15"]).await;
    let statements = c.session.split("SELECT ';' ; /* ; */ ; SELECT 2 -- ;\n; ").unwrap();
    assert_eq!(statements.len(), 2, "{statements:?}");
}

#[tokio::test]
async fn parameters() {
    let mut c = people().await;
    assert_eq!(
        c.parameters("SELECT name FROM people WHERE id = $1 AND kg > $2").await,
        [DataType::Int4, DataType::Float8]
    );
    assert_eq!(
        c.parameters("INSERT INTO people (id, name, pay) VALUES ($1, $2, $3 + 1)").await[..2],
        [DataType::Int4, DataType::Text]
    );
    assert_eq!(c.parameters("UPDATE people SET born = $2 WHERE id = $1").await, [DataType::Int4, DataType::Timestamp]);
    assert_eq!(c.parameters("DELETE FROM people WHERE name = $1").await, [DataType::Text]);
    let with = |values: &[i32]| values.iter().map(|v| Datum::Int4(*v)).collect::<Vec<_>>();
    let found = c.run_with("SELECT name FROM people WHERE id = $1", with(&[2])).await.unwrap();
    assert_eq!(found, Reply::Rows(vec!["Bob".into()]));
    let text = |s: &str| Datum::Text(s.into());
    let insert = "INSERT INTO people (id, name, pay) VALUES ($1, $2, $3)";
    c.run_with(insert, vec![Datum::Int4(9), text("Zoe"), Datum::Int8(5)]).await.unwrap();
    c.run_with("UPDATE people SET city = $1 WHERE id = $2", vec![text("Bonn"), Datum::Int4(9)]).await.unwrap();
    c.rows("SELECT name, city, pay FROM people WHERE id = 9", &["Zoe|Bonn|5"]).await;
    let error = c.run_with("SELECT $1::int", vec![]).await.unwrap_err();
    assert_eq!(error.state.0, "08P01");
}

#[tokio::test]
async fn settings_and_explain() {
    let mut c = people().await;
    c.ok("SET application_name = 'me'", "SET").await;
    c.rows("SHOW application_name", &["me"]).await;
    c.ok("SET TIME ZONE 'UTC'", "SET").await;
    c.ok("SET standard_conforming_strings TO on", "SET").await;
    c.ok("SET client_encoding = 'UTF8'", "SET").await;
    c.ok("RESET ALL", "RESET").await;
    c.rows("SHOW application_name", &[""]).await;
    c.rows("SHOW search_path", &["\"$user\", public"]).await;
    let Reply::Rows(lines) = c.run("EXPLAIN SELECT * FROM people WHERE id = 1").await.unwrap() else { panic!() };
    assert!(lines.iter().any(|l| l.contains("Index Scan using people_pkey on people")), "{lines:#?}");
    let Reply::Rows(lines) = c.run("EXPLAIN UPDATE people SET pay = 1 WHERE id = 1").await.unwrap() else { panic!() };
    assert!(lines[0].contains("Update on people") && lines.iter().any(|l| l.contains("->  Index Scan")), "{lines:#?}");
    let Reply::Rows(lines) = c.run("EXPLAIN ANALYZE SELECT count(*) FROM people").await.unwrap() else { panic!() };
    assert!(
        lines.iter().any(|l| l.contains("Seq Scan on people  (actual time=") && l.ends_with("rows=3)")),
        "{lines:#?}"
    );
    c.rows("SELECT pay FROM people WHERE id = 1", &["100"]).await;
}

#[tokio::test]
async fn prepared_statements_outlive_definitions() {
    let mut c = client().await;
    c.ok("CREATE TABLE t (a int PRIMARY KEY, b text)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 'one')", "INSERT 0 1").await;
    let by_key = c.session.prepare("SELECT b FROM t WHERE a = $1", &[]).await.unwrap();
    let general = c.session.prepare("SELECT b FROM t WHERE a = $1 OR a = $1", &[]).await.unwrap();
    assert!(by_key.is_by_key() && !general.is_by_key());
    for round in 0..3 {
        for statement in [&by_key, &general] {
            assert_eq!(c.rows_of(statement, vec![Datum::Int4(1)]).await.unwrap(), ["one"], "round {round}");
            assert!(c.rows_of(statement, vec![Datum::Null]).await.unwrap().is_empty());
        }
        match round {
            0 => c.ok("CREATE INDEX ON t (b)", "CREATE INDEX").await,
            _ => {
                c.ok("DROP TABLE t", "DROP TABLE").await;
                for statement in [&by_key, &general] {
                    assert_eq!(c.rows_of(statement, vec![Datum::Int4(1)]).await.unwrap_err().state.0, "42P01");
                }
                c.ok("CREATE TABLE t (a int, b text)", "CREATE TABLE").await;
                c.ok("INSERT INTO t VALUES (1, 'one')", "INSERT 0 1").await;
            }
        }
    }
}

/// A list of so many values, out of order.
fn many(values: usize) -> String {
    let list: Vec<String> = (0..values).map(|n| (n * 7919 % 4999).to_string()).collect();
    format!("k IN ({})", list.join(", "))
}

#[tokio::test]
async fn index_scans_agree_with_full_scans() {
    let mut c = client().await;
    c.ok("CREATE TABLE i (k int PRIMARY KEY, a int, b text)", "CREATE TABLE").await;
    c.ok("CREATE TABLE f (k int, a int, b text)", "CREATE TABLE").await;
    for start in (0..3000).step_by(500) {
        let rows: Vec<String> = (start..start + 500)
            .map(|k| match k % 11 {
                0 => format!("({k}, NULL, 'b{}')", k % 7),
                _ => format!("({k}, {}, 'b{}')", k % 13, k % 7),
            })
            .collect();
        for table in ["i", "f"] {
            c.ok(&format!("INSERT INTO {table} VALUES {}", rows.join(", ")), "INSERT 0 500").await;
        }
    }
    c.ok("CREATE INDEX ON i (a, b)", "CREATE INDEX").await;
    for condition in [
        "k = 77",
        "k > 2990",
        "k >= 2990",
        "k < 3",
        "k <= 3",
        "k BETWEEN 100 AND 1200",
        "a = 5",
        "a = 5 AND b = 'b3'",
        "a = 5 AND b > 'b3'",
        "a = 5 AND b <= 'b3'",
        "a > 10",
        "a >= 12 AND b = 'b1'",
        "a IS NULL",
        "a = 5 AND k < 900",
        "a < 3 AND a > 0",
        "k = 5 AND k = 6",
        "a = NULL",
        "b = 'b2'",
        "NOT a = 5",
        "a = 3 OR a = 4",
        "k IN (7)",
        "k IN (5, 2999, 5, NULL, 9999, -1)",
        "k IN (NULL)",
        "k IN (1, 2, 3, 4, 5) AND k IN (4, 5, 6, 7, 8)",
        "k IN (10, 20, 30, 40) AND k > 20 AND a IS NOT NULL",
        "k NOT IN (1, 2, 3, 4)",
        "k = 3 OR k IN (4, 5, 6, 7) OR k = 8",
        "k = 3 OR a = 4",
        "k = 3 OR k > 2990",
        "a IN (3, 4, 12, 11)",
        "a IN (3, 4, 12, 11) AND b = 'b3'",
        "a = 3 AND b IN ('b0', 'b6', 'b2', 'nosuch')",
        "a IN (3, 4, 12, 11) AND b IN ('b0', 'b6', 'b2', 'b1')",
        "a IN (3, 4, 12, 11) AND b > 'b1' AND b <= 'b4'",
        "a IN (3, 4, 12, 11) AND k IN (3, 4, 12, 17, 30)",
        "k = ANY (ARRAY[5, 6, 7, 8])",
        "k = ANY ('{5,NULL,7,8,2000}')",
        "k <> ALL ('{5,7,8,2000}')",
        "k IN (1.5, 2.0, 3)",
        "b IN ('b1', 'b2', 'b3', 'b4')",
        &many(400),
        &many(2400),
    ] {
        let mut answers = vec![];
        for table in ["i", "f"] {
            let sql = format!("SELECT count(*), sum(k), min(b) FROM {table} WHERE {condition}");
            answers.push(c.run(&sql).await.unwrap_or_else(|e| panic!("{sql}: {e}")));
        }
        assert_eq!(answers[0], answers[1], "{condition}");
    }
    c.rows("SELECT k FROM i WHERE a = 5 ORDER BY a, b, k LIMIT 2", &["70", "161"]).await;
}
