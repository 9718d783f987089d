//! COALESCE, CASE, GREATEST, LEAST, NULLIF: their types, and constants without one beside others. Expected: PostgreSQL
//! 15's.
use crate::common::{Client, database};

async fn client() -> Client {
    let mut c = Client::new(&database().await);
    let columns = "id int PRIMARY KEY, b boolean, by bytea, u uuid, d date, ts timestamp, tz timestamptz, i2 smallint, \
                   i int, n numeric(10,2), f4 real, f8 double precision, c5 char(5)";
    c.ok(&format!("CREATE TABLE t ({columns})"), "CREATE TABLE").await;
    let one = "(1, true, '\\xc3a4', '00000000-0000-0000-0000-000000000001', '2020-01-02', '2020-01-02 03:04:05', \
               '2020-01-02 03:04:05+00', 3, 3, 3.50, 3.5, 3.5, 'ab')";
    let two = "(2, false, '', '00000000-0000-0000-0000-000000000002', '1600-01-01', '1600-01-01 01:00:00', \
               '1600-01-01 01:00:00+00', -1, -1, -0.01, '-0', '-0', '')";
    c.ok(&format!("INSERT INTO t VALUES {one}, {two}"), "INSERT 0 2").await;
    c.ok("INSERT INTO t (id) VALUES (3)", "INSERT 0 1").await;
    c
}

#[tokio::test]
async fn n4_types_of_results() {
    let mut c = client().await;
    for (sql, answer) in [
        ("SELECT nullif(1, 2::bigint) + 2147483646, nullif(1::smallint, 2), nullif(2, 1.5)", "2147483647|1|2"),
        ("SELECT coalesce(1::numeric, 0.5::float8) / 3, coalesce(1, 1e-30::float8)", "0.3333333333333333|1.0"),
        ("SELECT nullif(d, ts)::text, nullif(ts, d)::text FROM t WHERE id = 1", "2020-01-02|2020-01-02 03:04:05"),
        (
            "SELECT coalesce(d, '2020-01-01') + 1, CASE WHEN true THEN '2020-01-01' ELSE d END + 1 FROM t WHERE id = 3",
            "2020-01-02|2020-01-02",
        ),
        ("SELECT '[' || coalesce(c5, c5)::text || ']', nullif(n, 3.5) IS NULL FROM t WHERE id = 1", "[ab]|true"),
        ("SELECT coalesce(n, NULL)::text, coalesce(NULL, i, 7.5)::text FROM t WHERE id = 1", "3.50|3"),
    ] {
        c.rows(sql, &[answer]).await;
    }
    c.fails("SELECT nullif(1, 2::bigint) + 2147483647", "22003").await;
    c.fails("SELECT coalesce(i, c5) FROM t", "42804").await;
    c.fails("SELECT greatest(d, b) FROM t", "42804").await;
    c.fails("SELECT coalesce(u, i) FROM t", "42804").await;
    let sets = "SELECT count(*) FROM (SELECT nullif(i, 3), count(*) FROM t GROUP BY ROLLUP (nullif(i, 3), f8 = 0)) x";
    c.rows(sets, &["6"]).await;
    // What is volatile is evaluated once.
    c.rows("SELECT count(*) FROM (SELECT nullif(random(), 2) r FROM t) x WHERE r >= 0 AND r < 1", &["3"]).await;
}

#[tokio::test]
async fn n6_the_first_of_equals() {
    let mut c = client().await;
    let sql = "SELECT least(f8, 0)::text, greatest(0, f8)::text, greatest(f4, 0::real)::text, least(NULL, f8, \
               1)::text FROM t WHERE id = 2";
    c.rows(sql, &["-0|0|-0|-0"]).await;
    c.rows("SELECT greatest('NaN'::float8, 'inf', 1)::text, least('NaN'::float8, NULL)::text", &["NaN|NaN"]).await;
    c.rows(
        "SELECT greatest(interval '1 day', interval '25:00')::text, least(interval '1 day', '24:00')::text",
        &["25:00:00|1 day"],
    )
    .await;
    c.rows("SELECT greatest(id, 2, NULL), least(n, 1.555, 2) FROM t ORDER BY id", &["2|1.555", "2|-0.01", "3|1.555"])
        .await;
}

/// A constant takes the type of what is beside it.
#[tokio::test]
async fn n12_constants_beside_any_type() {
    let mut c = client().await;
    for (column, constant) in [
        ("b", "true"),
        ("by", "\\xff"),
        ("u", "00000000-0000-0000-0000-000000000009"),
        ("d", "2021-01-01"),
        ("ts", "2021-01-01 00:00:00"),
        ("tz", "2021-01-01 00:00:00+00"),
        ("i", "7"),
        ("f8", "7.5"),
    ] {
        let shown: &[&str] = &[constant];
        c.rows(&format!("SELECT coalesce({column}, '{constant}')::text FROM t WHERE id = 3"), shown).await;
        c.rows(&format!("SELECT coalesce('{constant}', {column})::text FROM t WHERE id = 1"), shown).await;
        c.rows(&format!("SELECT greatest({column}, '{constant}')::text FROM t WHERE id = 2"), shown).await;
        c.rows(
            &format!("SELECT CASE WHEN id = 1 THEN {column} ELSE '{constant}' END::text FROM t WHERE id = 3"),
            shown,
        )
        .await;
        c.rows(&format!("SELECT nullif('{constant}', {column})::text FROM t WHERE id = 2"), shown).await;
        c.rows(
            &format!("SELECT nullif({column}, {column}::text::{kind}) FROM t WHERE id = 1", kind = kind(column)),
            &["NULL"],
        )
        .await;
        c.rows(
            &format!(
                "SELECT count(*) FROM t WHERE {column} IN ('{constant}') OR {column} BETWEEN '{constant}' \
                         AND '{constant}'"
            ),
            &[if column == "b" { "1" } else { "0" }],
        )
        .await;
    }
    c.fails("SELECT coalesce(i, 'seven') FROM t", "22P02").await;
}

fn kind(column: &str) -> &'static str {
    match column {
        "b" => "boolean",
        "by" => "bytea",
        "u" => "uuid",
        "d" => "date",
        "ts" => "timestamp",
        "tz" => "timestamptz",
        "i" => "int",
        _ => "double precision",
    }
}

/// Days that nanoseconds do not reach.
#[tokio::test]
async fn n13_far_times() {
    let mut c = client().await;
    let sql = "SELECT coalesce(d, ts)::text, greatest(d, tz)::text, CASE WHEN true THEN d ELSE ts END::text \
               FROM t WHERE id = 2";
    c.rows(sql, &["1600-01-01 00:00:00|1600-01-01 01:00:00+00|1600-01-01 00:00:00"]).await;
    c.rows(
        "SELECT x::text FROM (SELECT d FROM t WHERE id = 2 UNION SELECT ts FROM t WHERE id = 2) v(x) ORDER BY x",
        &["1600-01-01 00:00:00", "1600-01-01 01:00:00"],
    )
    .await;
}

#[tokio::test]
async fn n33_n36_minus_zero_is_zero() {
    let mut c = client().await;
    c.rows("SELECT 0::real NOT IN (f4, f4), 0 IN (f8), f8 NOT IN (1, 0) FROM t WHERE id = 2", &["false|true|false"])
        .await;
    c.rows("SELECT f8 / nullif(f8, 0), f4 / nullif(f4, '0') FROM t WHERE id = 2", &["NULL|NULL"]).await;
    c.rows("SELECT CASE (-f8) WHEN 0::real THEN 'zero' ELSE 'no' END FROM t WHERE id = 2", &["zero"]).await;
    c.ok("UPDATE t SET i = 9 WHERE 0::real NOT IN (f4, f4)", "UPDATE 1").await;
}

#[tokio::test]
async fn n38_case_has_the_type_of_what_has_one() {
    let mut c = client().await;
    c.rows(
        "SELECT CASE WHEN false THEN 2::real ELSE '1.5' END + 1, CASE WHEN true THEN 5 ELSE '7' END / 2",
        &["2.5|2"],
    )
    .await;
    c.fails("SELECT CASE WHEN true THEN 5 ELSE 'seven' END", "22P02").await;
}
