//! Types and what PostgreSQL's operators, casts and functions make of them. Answers are PostgreSQL 15's.
use crate::common::{Client, Reply, answers, database, refusals};
use terrace_engine::{DataType, Datum};

async fn client() -> Client {
    Client::new(&database().await)
}

/// The Arrow types of a query's columns.
async fn types(c: &mut Client, sql: &str) -> Vec<String> {
    c.columns(sql).await.into_iter().map(|(_, t)| t).collect()
}

#[tokio::test]
async fn number_literals() {
    let mut c = client().await;
    assert_eq!(
        types(&mut c, "SELECT 1, -2147483648, 3000000000, 9223372036854775808, 2.50, -1e2").await,
        ["Int32", "Int32", "Int64", "Decimal128(19, 0)", "Decimal128(3, 2)", "Decimal128(3, 0)"]
    );
    assert_eq!(
        types(&mut c, "SELECT 1 + 1, 1 + 3000000000, 1 + 1.5, 1.5 * 2.25, 1.5::float8 + 1, 7 / 2, 7.0 / 2").await,
        ["Int32", "Int64", "Decimal128(12, 1)", "Decimal128(5, 3)", "Float64", "Int32", "LargeList(UInt8)"]
    );
    answers(
        &mut c,
        &[
            ("SELECT 2147483647 + 3000000000", "5147483647"),
            ("SELECT 9223372036854775807 + 1.0", "9223372036854775808.0"),
            ("SELECT x + 1 FROM (VALUES (1), (2)) v(x) WHERE x > 1", "3"),
            ("SELECT -9223372036854775808", "-9223372036854775808"),
            ("SELECT sum(x) FROM (VALUES (2147483647), (1)) v(x)", "2147483648"),
            ("SELECT max(g) FROM generate_series(1, 3) g", "3"),
            ("SELECT round(2.567, 1), power(2, 10), abs(-5), substring('abcdef', 2, 3)", "2.6|1024.0|5|bcd"),
            ("SELECT lag(x, 1) OVER (ORDER BY x) FROM (VALUES (1), (2)) v(x) ORDER BY x DESC LIMIT 1", "1"),
            ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT sum(i) FROM n", "10"),
            ("SELECT count(*) FROM (SELECT 1 UNION SELECT 1.0) u", "1"),
            ("SELECT 5 % 3, -5 % 3, 5.5 % 2", "2|-2|1.5"),
        ],
    )
    .await;
}

#[tokio::test]
async fn overflow_is_an_error() {
    let mut c = client().await;
    refusals(
        &mut c,
        &[
            ("SELECT 2147483647 + 1", "22003"),
            ("SELECT -2147483647 - 2", "22003"),
            ("SELECT x * 65536 FROM (VALUES (65536)) v(x)", "22003"),
            ("SELECT 9223372036854775807 + 1", "22003"),
            ("SELECT 32767::int2 + 1::int2", "22003"),
            ("SELECT (-2147483647 - 1) / -1", "22003"),
            ("SELECT 1e308::float8 * 10", "22003"),
            ("SELECT 1e300::float8 * 1e300::float8", "22003"),
            ("SELECT 1e-300::float8 * 1e-300::float8", "22003"),
            ("SELECT 1e-300::float8 / 1e300::float8", "22003"),
            ("SELECT 3e38::float4 * 10::float4", "22003"),
            ("SELECT 1e40::float8::float4", "22003"),
            ("SELECT '1e400'::float8", "22003"),
            ("SELECT exp(1000)", "22003"),
            ("SELECT power(10, 400)", "22003"),
            ("SELECT 1 / 0", "22012"),
            ("SELECT 1 % 0", "22012"),
            ("SELECT 1.5 / 0", "22012"),
            ("SELECT 1.0::float8 / 0", "22012"),
            ("SELECT 0::float8 / 0::float8", "22012"),
            ("SELECT sqrt(-1)", "2201F"),
            ("SELECT ln(0)", "2201E"),
            ("SELECT ln(-1)", "2201E"),
            ("SELECT log10(0)", "2201E"),
            ("SELECT power(0, -1)", "2201F"),
            ("SELECT power(-8, 0.5)", "2201F"),
            ("SELECT 40000::int2", "22003"),
            ("SELECT 3000000000::int", "22003"),
            ("SELECT 1e20::float8::bigint", "22003"),
            ("SELECT 'NaN'::float8::int", "22003"),
            ("SELECT 1000::numeric(5, 2)", "22003"),
        ],
    )
    .await;
    let error = c.fails("SELECT 2147483647 + 1", "22003").await;
    assert_eq!(error.message, "integer out of range");
    answers(
        &mut c,
        &[
            ("SELECT 'Infinity'::float8 * 2", "inf"),
            ("SELECT 99999999999999999999999999999999999999 + 1.0", "100000000000000000000000000000000000000.0"),
            ("SELECT 99999999999999999999 * 99999999999999999999", "9999999999999999999800000000000000000001"),
            ("SELECT 0::float8 * 5", "0.0"),
            ("SELECT (-2147483647 - 1) % -1", "0"),
        ],
    )
    .await;
}

#[tokio::test]
async fn casts_round_and_cut() {
    let mut c = client().await;
    answers(
        &mut c,
        &[
            ("SELECT 2.5::int, 3.5::int, -2.5::int, 0.5::bigint", "3|4|-3|1"),
            ("SELECT 2.5::float8::int, 3.5::float8::int, (-2.5)::float8::int", "2|4|-2"),
            ("SELECT 1.005::numeric(5, 2), '7'::numeric(5, 1), 12::numeric(4, 2)", "1.01|7.0|12.00"),
            ("SELECT 0.1::float8::numeric, 0.1::float4::numeric, (1.0::float8 / 3)::numeric(10, 5)", "0.1|0.1|0.33333"),
            ("SELECT 'abcdef'::varchar(3), 'ab'::varchar(3), 12345::varchar(2)", "abc|ab|12"),
            ("SELECT 'abcdef'::char(3), 'ab '::char(3) || 'x', length('ab '::char(5))", "abc|abx|2"),
            ("SELECT true::text, 1::bool, true::int, 'yes'::bool", "true|true|1|true"),
            ("SELECT 1.50::text, 1.5::numeric::text, 2::numeric::text", "1.50|1.5|2"),
            ("SELECT timestamp '2020-01-02 03:04:05'::text", "2020-01-02 03:04:05"),
            ("SELECT '2020-01-02 03:04:05.5'::timestamp::date::text", "2020-01-02"),
            ("SELECT '2020-01-02 10:00:00+02'::timestamp::text", "2020-01-02 10:00:00"),
            ("SELECT '2020-01-02 10:00:00+02'::timestamptz::text", "2020-01-02 08:00:00+00"),
            (
                "SELECT '1500-01-01'::timestamp::text, '9999-12-31 23:59:59'::timestamp::text",
                "1500-01-01 00:00:00|9999-12-31 23:59:59",
            ),
            (
                "SELECT timestamp '0044-03-15 BC'::text, date '0044-03-15 BC'::text",
                "0044-03-15 00:00:00 BC|0044-03-15 BC",
            ),
            ("SELECT '\\x00ff'::bytea::text, 'abc'::bytea::text", "\\x00ff|\\x616263"),
            ("SELECT 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid::text", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
            ("SELECT 0.1::float4::text, 1e15::float8::text", "0.1|1e+15"),
            ("SELECT CAST('12' AS smallint) + 1", "13"),
        ],
    )
    .await;
    refusals(
        &mut c,
        &[
            ("SELECT 'abc'::int", "22P02"),
            ("SELECT 'abc'::numeric", "22P02"),
            ("SELECT 'nope'::date", "22007"),
            ("SELECT '2020-02-30'::date", "22008"),
            ("SELECT '2020-02-30'::timestamptz", "22008"),
            ("SELECT '\\xzz'::bytea", "22023"),
            ("SELECT 'x'::uuid", "22P02"),
            ("SELECT true::date", "42846"),
            ("SELECT 1::timestamp", "42846"),
            ("SELECT now()::int", "42846"),
            ("SELECT '{1}'::numeric(40, 2)[]", "0A000"),
            ("SELECT 'a'::varchar(0)", "22023"),
        ],
    )
    .await;
}

/// A table with a column of each type, and three rows.
async fn every_type() -> Client {
    let mut c = client().await;
    c.ok(
        "CREATE TABLE t (id int PRIMARY KEY, s smallint, r real, n numeric(8, 2), p numeric, c char(4), b bytea, \
         d date, z timestamptz, u uuid)",
        "CREATE TABLE",
    )
    .await;
    c.ok(
        "INSERT INTO t VALUES (1, 7, 0.5, 2.345, 1.5, 'ab  ', '\\xdeadbeef', '2020-02-29', \
         '2020-01-01 12:00+02', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), \
         (2, -7, -1e3, -0.005, 12345678901234567890, 'abcd', '', '1999-12-31', '1999-12-31 23:59:59.5', \
         '00000000-0000-0000-0000-000000000000'), (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "INSERT 0 3",
    )
    .await;
    c
}

#[tokio::test]
async fn columns_of_every_type() {
    let mut c = every_type().await;
    c.rows(
        "SELECT id, s, r, n, p::text, c, b::text, d, z::text, u::text FROM t ORDER BY id",
        &[
            "1|7|0.5|2.35|1.5|ab|\\xdeadbeef|2020-02-29|2020-01-01 10:00:00+00|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "2|-7|-1000.0|-0.01|12345678901234567890|abcd|\\x|1999-12-31|\
             1999-12-31 23:59:59.5+00|00000000-0000-0000-0000-000000000000",
            "3|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL",
        ],
    )
    .await;
    for (condition, ids) in [
        ("s = 7", vec!["1"]),
        ("s < 0", vec!["2"]),
        ("r = 0.5", vec!["1"]),
        ("n = 2.35", vec!["1"]),
        ("n > 0", vec!["1"]),
        ("n = 2.3456", vec![]),
        ("p = 1.50", vec!["1"]),
        ("p > 3000000000", vec!["2"]),
        ("c = 'ab'", vec!["1"]),
        ("c = 'ab    '", vec!["1"]),
        ("c < 'abcd'", vec!["1"]),
        ("b = '\\xDEADBEEF'", vec!["1"]),
        ("d = '2020-02-29'", vec!["1"]),
        ("d < date '2000-01-01'", vec!["2"]),
        ("d + 1 = '2020-03-01'", vec!["1"]),
        ("z = '2020-01-01 10:00'", vec!["1"]),
        ("z >= '2020-01-01 13:00:00+03'", vec!["1"]),
        ("z < timestamp '2000-01-01'", vec!["2"]),
        ("u = 'A0EEBC999C0B4EF8BB6D6BB9BD380A11'", vec!["1"]),
        ("n IN (2.35, 7)", vec!["1"]),
        ("n BETWEEN 2 AND 3", vec!["1"]),
        ("d BETWEEN '1999-01-01' AND '2000-01-01'", vec!["2"]),
        ("c LIKE 'ab%'", vec!["1", "2"]),
    ] {
        c.rows(&format!("SELECT id FROM t WHERE {condition} ORDER BY id"), &ids).await;
    }
    c.ok(
        "UPDATE t SET n = n + 1.234, p = p * 2, s = s + 1, d = d + 1, z = z + interval '1 hour' WHERE id = 1",
        "UPDATE 1",
    )
    .await;
    c.rows("SELECT n, p::text, s, d, z::text FROM t WHERE id = 1", &["3.58|3.0|8|2020-03-01|2020-01-01 11:00:00+00"])
        .await;
    refusals(
        &mut c,
        &[
            ("UPDATE t SET s = 40000", "22003"),
            ("UPDATE t SET n = 1000000", "22003"),
            ("UPDATE t SET c = 'abcde'", "22001"),
            ("UPDATE t SET d = 5", "42804"),
            ("UPDATE t SET b = 5", "42804"),
            ("UPDATE t SET d = 'never'", "22007"),
            ("INSERT INTO t (id, u) VALUES (9, 'x')", "22P02"),
            ("SELECT * FROM t WHERE d = 'never'", "22007"),
            ("SELECT d + true FROM t", "42883"),
            ("SELECT b + 1 FROM t", "42883"),
        ],
    )
    .await;
    c.ok("UPDATE t SET c = 'x         ', n = '9.999' WHERE id = 3", "UPDATE 1").await;
    c.rows("SELECT c, n FROM t WHERE id = 3", &["x|10.00"]).await;
    c.rows(
        "SELECT sum(n), min(d), max(z)::text, count(DISTINCT c) FROM t",
        &["13.57|1999-12-31|2020-01-01 11:00:00+00|3"],
    )
    .await;
}

#[tokio::test]
async fn keys_of_every_type() {
    let mut c = client().await;
    for (kind, values) in [
        ("smallint", ["-5", "0", "7"]),
        ("numeric(6, 2)", ["-1.50", "0", "2.25"]),
        ("numeric", ["-1.5", "0", "123456789012345.5"]),
        ("char(5)", ["'a'", "'ab'", "'b'"]),
        ("bytea", ["'\\x'", "'\\x0001'", "'\\xff'"]),
        ("date", ["'0044-03-15 BC'", "'1999-01-01'", "'2020-01-01'"]),
        ("timestamptz", ["'1500-01-01 00:00+00'", "'1999-01-01 00:00+02'", "'2020-01-01 00:00-02'"]),
        (
            "uuid",
            [
                "'00000000-0000-0000-0000-000000000000'",
                "'10000000-0000-0000-0000-000000000000'",
                "'f0000000-0000-0000-0000-000000000000'",
            ],
        ),
    ] {
        c.ok(&format!("CREATE TABLE k (k {kind} PRIMARY KEY, v int)"), "CREATE TABLE").await;
        let [a, b, z] = values;
        c.ok(&format!("INSERT INTO k VALUES ({z}, 3), ({a}, 1), ({b}, 2)"), "INSERT 0 3").await;
        c.fails(&format!("INSERT INTO k VALUES ({b}, 9)"), "23505").await;
        c.rows("SELECT v FROM k ORDER BY k", &["1", "2", "3"]).await;
        c.rows(&format!("SELECT v FROM k WHERE k = {b}"), &["2"]).await;
        c.rows(&format!("SELECT v FROM k WHERE k > {a} AND k <= {z} ORDER BY v"), &["2", "3"]).await;
        c.ok(&format!("UPDATE k SET v = 20 WHERE k = {b}"), "UPDATE 1").await;
        c.ok(&format!("DELETE FROM k WHERE k = {a}"), "DELETE 1").await;
        c.rows("SELECT sum(v) FROM k", &["23"]).await;
        let Reply::Rows(lines) = c.run(&format!("EXPLAIN SELECT v FROM k WHERE k = {b}")).await.unwrap() else {
            panic!()
        };
        assert!(lines.iter().any(|l| l.contains("Index Scan")), "{kind}: {lines:#?}");
        c.ok("DROP TABLE k", "DROP TABLE").await;
    }
}

#[tokio::test]
async fn arithmetic_of_numerics() {
    let mut c = client().await;
    answers(
        &mut c,
        &[
            ("SELECT 1.1 + 2.22, 1.1 - 2.22, 1.1 * 2.22", "3.32|-1.12|2.442"),
            (
                "SELECT (1.0 / 3)::text, (10 / 4.0)::text, (-2.0 / 3)::text",
                "0.33333333333333333333|2.5000000000000000|-0.66666666666666666667",
            ),
            ("SELECT 0.1 + 0.2 = 0.3", "true"),
            ("SELECT 1.5 > 1, 1 = 1.0, 2.50 = 2.5", "true|true|true"),
            ("SELECT 12345678901234567890.5 * 2", "24691357802469135781.0"),
            ("SELECT -(1.5), abs(-1.5), -x FROM (VALUES (2.5)) v(x)", "-1.5|1.5|-2.5"),
            ("SELECT (3.5::numeric(10, 2) * 2::smallint)::text", "7.00"),
            ("SELECT 1.5 + '2.25'", "3.75"),
            ("SELECT sum(x), max(x) FROM (VALUES (1.10), (2.25)) v(x)", "3.35|2.25"),
        ],
    )
    .await;
}

#[tokio::test]
async fn days_and_times() {
    let mut c = client().await;
    answers(
        &mut c,
        &[
            (
                "SELECT date '2020-02-28' + 2, date '2020-03-01' - 1, 1 + date '2020-01-01'",
                "2020-03-01|2020-02-29|2020-01-02",
            ),
            ("SELECT date '2020-03-01' - date '2020-02-01'", "29"),
            ("SELECT (date '2020-01-31' + interval '1 month')::text", "2020-02-29 00:00:00"),
            ("SELECT (timestamp '2020-01-01 10:00' - interval '90 minutes')::text", "2020-01-01 08:30:00"),
            ("SELECT (timestamp '1500-01-01' + interval '1 day')::text", "1500-01-02 00:00:00"),
            ("SELECT (timestamptz '2020-01-01 00:00+02' + interval '1 day')::text", "2020-01-01 22:00:00+00"),
            ("SELECT extract(epoch FROM timestamp '2020-01-03 12:00' - timestamp '2020-01-01')", "216000.000000"),
            ("SELECT extract(second FROM timestamp '2020-01-01 10:00:06.5')", "6.500000"),
            ("SELECT extract(year FROM date '2020-05-06'), extract(doy FROM date '2020-12-31')", "2020|366"),
            (
                "SELECT extract(dow FROM timestamptz '2020-01-05 12:00'), extract(hour FROM interval '90 minutes')",
                "0|1",
            ),
            ("SELECT date_part('second', timestamp '2020-01-01 10:00:06.5')", "6.5"),
            ("SELECT date_trunc('month', timestamp '2020-05-06 07:08')::text", "2020-05-01 00:00:00"),
            ("SELECT date_trunc('hour', timestamptz '1500-05-06 07:08')::text", "1500-05-06 07:00:00+00"),
            ("SELECT date_trunc('week', date '2020-05-06')::date::text", "2020-05-04"),
            (
                "SELECT timestamp '2020-01-01' < date '2020-01-02', date '2020-01-01' = timestamp '2020-01-01'",
                "true|true",
            ),
            ("SELECT timestamp '2020-01-01' = timestamptz '2020-01-01 00:00+00'", "true"),
            (
                "SELECT now() = current_timestamp, current_date = now()::date, localtimestamp = now()::timestamp",
                "true|true|true",
            ),
        ],
    )
    .await;
    assert_eq!(
        types(&mut c, "SELECT now(), current_date, localtimestamp, date '2020-01-01' - date '2020-01-01'").await,
        ["Timestamp(µs, \"+00:00\")", "Date32", "Timestamp(µs)", "Int32"]
    );
    refusals(
        &mut c,
        &[
            ("SELECT extract(fortnight FROM now())", "22023"),
            ("SELECT date_trunc('fortnight', now())", "22023"),
            ("SELECT date_trunc('day', 5)", "42883"),
            ("SELECT date '5874897-12-31' + 1000000000", "22008"),
            ("SELECT to_char(now(), 'TMMonth')", "0A000"),
        ],
    )
    .await;
}

#[tokio::test]
async fn names_that_are_ambiguous() {
    let mut c = client().await;
    c.ok("CREATE TABLE a (id int, x int)", "CREATE TABLE").await;
    c.ok("CREATE TABLE b (id int, y int)", "CREATE TABLE").await;
    for sql in [
        "SELECT id FROM a, b",
        "SELECT x FROM a, b WHERE id = 1",
        "SELECT x FROM a JOIN b ON id = id",
        "SELECT x FROM a, b ORDER BY id",
        "SELECT count(*) FROM a, b GROUP BY id",
        "SELECT x + id FROM a, b",
    ] {
        c.fails(sql, "42702").await;
    }
}

#[tokio::test]
async fn parameters_take_their_types() {
    let mut c = client().await;
    c.ok("CREATE TABLE t (n numeric(8, 2), c char(4), d date, z timestamptz, s smallint, b bytea)", "CREATE TABLE")
        .await;
    assert_eq!(
        c.parameters("INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6)").await,
        [
            DataType::Numeric(Some((8, 2))),
            DataType::Char(4),
            DataType::Date,
            DataType::Timestamptz,
            DataType::Int2,
            DataType::Bytea
        ]
    );
    assert_eq!(
        c.parameters("SELECT 1 FROM t WHERE n > $1 AND c = $2 AND d = $3 AND z < $4 AND s = $5 AND b = $6").await,
        [
            DataType::Numeric(None),
            DataType::Char(0),
            DataType::Date,
            DataType::Timestamptz,
            DataType::Int2,
            DataType::Bytea
        ]
    );
    assert_eq!(
        c.parameters("SELECT s + $1, $2 * 1.5, d - $3 FROM t").await,
        [DataType::Int2, DataType::Numeric(None), DataType::Date]
    );
    c.ok("INSERT INTO t VALUES (1.5, 'ab', '2020-01-01', '2020-01-01', 1, '\\x01')", "INSERT 0 1").await;
    let n = DataType::Numeric(None).parse("1.499").unwrap();
    let found = c.run_with("SELECT n FROM t WHERE n > $1", vec![n]).await.unwrap();
    assert_eq!(found, Reply::Rows(vec!["1.50".into()]));
    let found = c.run_with("SELECT s FROM t WHERE c = $1", vec![Datum::text("ab")]).await.unwrap();
    assert_eq!(found, Reply::Rows(vec!["1".into()]));
}
