//! Answers of functions, operators and aggregates that DataFusion's or Arrow's kernels get wrong. Expected: PostgreSQL
//! 15's.

use crate::common::{Client, answers, database, refusals};
use terrace_engine::DataType;

async fn client() -> Client {
    Client::new(&database().await)
}

/// A statement with parameters as text, of the types that it takes them as.
async fn bound(c: &mut Client, sql: &str, given: &[&str]) -> Vec<String> {
    let statement = c.session.prepare(sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {} {e}", e.state.0));
    let values = statement.parameters.iter().zip(given).map(|(of, text)| of.parse(text).unwrap()).collect();
    c.rows_of(&statement, values).await.unwrap_or_else(|e| panic!("{sql}: {} {e}", e.state.0))
}

#[tokio::test]
async fn q1_sums_do_not_wrap() {
    let mut c = client().await;
    c.ok("CREATE TABLE t (id int PRIMARY KEY, n numeric, w numeric(38, 0), b bigint)", "CREATE TABLE").await;
    c.ok(
        "INSERT INTO t SELECT g, 1e18, 99999999999999999999999999999999999999, 9223372036854775807 \
          FROM generate_series(1, 200) g",
        "INSERT 0 200",
    )
    .await;
    refusals(
        &mut c,
        &[
            ("SELECT sum(w) FROM t", "22003"),
            ("SELECT id % 2, sum(w) FROM t GROUP BY 1", "22003"),
            ("SELECT avg(w) FROM t", "22003"),
            ("SELECT sum(x) FROM (VALUES (1e308::float8), (1e308::float8)) v(x)", "22003"),
        ],
    )
    .await;
    answers(
        &mut c,
        &[
            ("SELECT sum(n), avg(n) FROM t WHERE id <= 50", "50000000000000000000|1000000000000000000"),
            ("SELECT sum(n) FROM t", "200000000000000000000"),
            ("SELECT sum(DISTINCT w - id) FROM t", "19999999999999999999999999999999999979700"),
            ("SELECT sum(n) OVER (ORDER BY id ROWS 150 PRECEDING) FROM t LIMIT 1", "1000000000000000000"),
            ("SELECT sum(b) FROM t", "1844674407370955161400"),
            (
                "SELECT sum(b) OVER (ORDER BY id ROWS 1 PRECEDING) FROM t \
              ORDER BY id DESC LIMIT 1",
                "18446744073709551614",
            ),
            ("SELECT sum(DISTINCT b), sum(b) FILTER (WHERE id = 1) FROM t", "9223372036854775807|9223372036854775807"),
            ("SELECT sum(n - n) FROM t", "0"),
            ("SELECT sum(n) FROM t WHERE false", "NULL"),
            // Not by subtraction of what left the window.
            (
                "SELECT sum(x) OVER (ORDER BY i ROWS 1 PRECEDING) FROM (VALUES (1, 1e20::float8), (2, 1), \
                 (3, 2)) v(i, x) ORDER BY i DESC LIMIT 1",
                "3.0",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn q13_rounded_numerics_compare() {
    let mut c = client().await;
    c.ok("CREATE TABLE t (id int PRIMARY KEY, n numeric, m numeric(8, 3))", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 1.49, 1.49), (2, 2.45, 2.45), (3, 7, 7)", "INSERT 0 3").await;
    c.rows("SELECT id FROM t WHERE round(n, 1) IN (1.5, 2.5)", &["1", "2"]).await;
    c.rows("SELECT id FROM t WHERE round(m, 1) IN (1.5, 2.5)", &["1", "2"]).await;
    c.rows("SELECT id FROM t WHERE round(n, 1) IN (SELECT 1.5)", &["1"]).await;
    c.rows("SELECT id FROM t WHERE round(n, 0 + 1) IN (1.5, 2.5)", &["1", "2"]).await;
    c.rows("SELECT a.id FROM t a JOIN t b ON round(a.n, 1) = round(b.m, 1)", &["1", "2", "3"]).await;
    c.rows("SELECT id FROM t WHERE round(n, 1) > n", &["1", "2"]).await;
    c.rows("SELECT least(round(n, 1), 1.5) FROM t WHERE id = 2", &["1.5"]).await;
    c.rows("SELECT round(n, id) FROM t WHERE id = 2", &["2.45"]).await;
    assert_eq!(bound(&mut c, "SELECT id FROM t WHERE round(n, $1) = 1.5", &["1"]).await, ["1"]);
}

#[tokio::test]
async fn q14_literals_in_lists_keep_their_digits_and_zones() {
    let mut c = client().await;
    c.ok("CREATE TABLE t (id int PRIMARY KEY, n numeric(8, 2), i int, at timestamp, z timestamptz)", "CREATE TABLE")
        .await;
    c.ok("INSERT INTO t VALUES (1, 2.50, 7, '2024-01-01 12:00', '2024-01-01 12:00+00')", "INSERT 0 1").await;
    let noes = [
        "n IN ('2.501', '9')",
        "n IN (2.501, 9)",
        "n NOT IN ('2.5', '9')",
        "i IN (7.5, 8)",
        "i IN (3000000000, 8)",
        "at IN ('2024-01-01 17:00-05', '2024-01-01')",
        "at BETWEEN '2024-01-01 12:01-05' AND '2024-01-01 13:00-05'",
        "i IN (7.5) OR i NOT IN (7)",
    ];
    for condition in noes {
        c.rows(&format!("SELECT id FROM t WHERE {condition}"), &[]).await;
    }
    let yeses = [
        "n IN ('2.5', '9')",
        "n IN (2.500, 9)",
        "i NOT IN (7.5, 3000000000)",
        "i IN (7.0, 1.5)",
        "at IN ('2024-01-01 12:00-05', '2024-01-01')",
        "z IN ('2024-01-01 07:00-05', '2024-01-01')",
        "at BETWEEN '2024-01-01 11:00-05' AND '2024-01-01 13:00-05'",
        "z BETWEEN '2024-01-01 06:00-05' AND '2024-01-01 08:00-05'",
        "date '2024-01-01' BETWEEN at - interval '1 day' AND at",
    ];
    for condition in yeses {
        c.rows(&format!("SELECT id FROM t WHERE {condition}"), &["1"]).await;
    }
    c.fails("SELECT id FROM t WHERE i IN ('1.5')", "22P02").await;
    c.fails("SELECT id FROM t WHERE i IN ('7'::text, 'a')", "42883").await;
    c.rows("SELECT NULL::int IN (1.5), NULL::int NOT IN (1.5)", &["NULL|NULL"]).await;
}

#[tokio::test]
async fn q15_blanks_of_char_and_signs_of_zero() {
    let mut c = client().await;
    c.ok("CREATE TABLE t (id int PRIMARY KEY, c char(3), f float8)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 'a', 0), (2, 'z', '-0'), (3, 'abc', 'NaN')", "INSERT 0 3").await;
    c.rows("SELECT id FROM t WHERE c IN ('a ', 'z')", &["1", "2"]).await;
    c.rows("SELECT id FROM t WHERE c IN ('a  ')", &["1"]).await;
    assert_eq!(bound(&mut c, "SELECT id FROM t WHERE c = $1 AND id + 0 = 1", &["a "]).await, ["1"]);
    assert_eq!(bound(&mut c, "SELECT id FROM t WHERE c IN ($1, 'q') AND id + 0 = 1", &["a "]).await, ["1"]);
    c.rows("SELECT octet_length(c), length(c), c LIKE 'a', c LIKE 'a%' FROM t WHERE id = 1", &["3|1|false|true"]).await;
    c.rows("SELECT c || 'x' FROM t WHERE id = 1", &["ax"]).await;
    c.rows("SELECT id FROM t WHERE f = 0", &["1", "2"]).await;
    c.rows("SELECT id FROM t WHERE f IN (0, 5)", &["1", "2"]).await;
    c.rows("SELECT a.id, b.id FROM t a JOIN t b ON a.f = b.f", &["1|1", "1|2", "2|1", "2|2", "3|3"]).await;
    c.rows("SELECT f, count(*) FROM t GROUP BY f", &["0.0|2", "NaN|1"]).await;
    c.rows("SELECT count(DISTINCT f) FROM t", &["2"]).await;
    c.rows("SELECT count(*) FROM (SELECT DISTINCT f FROM t) d", &["2"]).await;
    c.rows("SELECT id FROM t ORDER BY f, id DESC", &["2", "1", "3"]).await;
    c.rows("SELECT id FROM t WHERE f IN (SELECT f FROM t WHERE id = 2)", &["1", "2"]).await;
    c.rows("SELECT id FROM t WHERE f = 'inf'::float8 - 'inf'::float8", &["3"]).await;
    c.rows("SELECT max('inf'::float8 - 'inf'::float8 + f) FROM t", &["NaN"]).await;
    c.rows("SELECT nullif(f, 0) FROM t WHERE id = 2", &["NULL"]).await;
    // Out of the column's range, and by key.
    c.rows("SELECT id FROM t WHERE id = 3000000000 OR id = -1", &[]).await;
    c.rows("SELECT id FROM t WHERE id IN (3000000000, 1)", &["1"]).await;
}

#[tokio::test]
async fn q16_bits_of_null() {
    let mut c = client().await;
    c.ok("CREATE TABLE t (id int PRIMARY KEY, a int)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, NULL), (2, 6)", "INSERT 0 2").await;
    c.rows("SELECT id, a # a, a & a, a | a FROM t", &["1|NULL|NULL|NULL", "2|0|6|6"]).await;
    answers(
        &mut c,
        &[
            ("SELECT 5 # '12', 5 & '4', 1 << 33, 32767::int2 << 2147483647, -8 >> 1", "9|4|2|0|-4"),
            (
                "SELECT 9223372036854775807 & 5, 5 # 9223372036854775807, 1::bigint << 40",
                "5|9223372036854775802|1099511627776",
            ),
        ],
    )
    .await;
    refusals(
        &mut c,
        &[("SELECT 1 & 1.5", "42883"), ("SELECT 1 << 2::bigint", "42883"), ("SELECT 'a'::text # 1", "42883")],
    )
    .await;
}

#[tokio::test]
async fn q18_any_and_all_of_arrays_with_null() {
    let mut c = client().await;
    answers(
        &mut c,
        &[
            ("SELECT 1 > ANY (ARRAY[1, NULL]), 2 > ANY (ARRAY[1, NULL]), 1 <= ALL (ARRAY[1, NULL])", "NULL|true|NULL"),
            ("SELECT 0 >= ALL (ARRAY[1, NULL]), 1 <> ANY (ARRAY[1, 2]), 1 = ALL (ARRAY[1, 1])", "false|true|true"),
            ("SELECT 1 > ANY (ARRAY[]::int[]), 1 > ALL (ARRAY[]::int[])", "false|true"),
            ("SELECT 2 = ANY (ARRAY[1.7]::int[])", "true"),
        ],
    )
    .await;
    c.rows("SELECT 1 > ANY ('{1,2}'::int[])", &["false"]).await;
}

#[tokio::test]
async fn q20_doubles_round_to_even() {
    let mut c = client().await;
    answers(
        &mut c,
        &[
            ("SELECT round(2.5::float8), round(-0.5::float8), round(3.5::float8)", "2.0|-0.0|4.0"),
            ("SELECT round(2.5), round(-2.5), round(1.005, 2), round(155, -1)", "3|-3|1.01|160"),
            ("SELECT trunc(-2.57, 1), trunc(2.5::float8), trunc(1234.5, -2)", "-2.5|2.0|1200"),
            ("SELECT ceil(0.005), floor(-0.25), ceiling(-1.5), ceil(-0.5::float8)", "1|-1|-1|-0.0"),
        ],
    )
    .await;
}

#[tokio::test]
async fn q21_averages_and_spreads_are_exact() {
    let mut c = client().await;
    c.ok("CREATE TABLE t (id int PRIMARY KEY, n numeric(10, 2), b bigint)", "CREATE TABLE").await;
    c.ok(
        "INSERT INTO t VALUES (1, 1, 9007199254740993), (2, 2, 9007199254740993), (3, 2, 9007199254740993)",
        "INSERT 0 3",
    )
    .await;
    answers(
        &mut c,
        &[
            (
                "SELECT avg(n), avg(b)::text, avg(id)::text FROM t",
                "1.6666666666666667|9007199254740993.0000|2.0000000000000000",
            ),
            ("SELECT var_pop(n), variance(n), var_samp(b) FROM t", "0.22222222222222222222|0.33333333333333333333|0"),
            ("SELECT stddev(n), stddev_pop(n) FROM t", "0.57735026918962576451|0.47140452079103168293"),
            ("SELECT stddev_samp(id), var_samp(id) FROM t WHERE id = 1", "NULL|NULL"),
            ("SELECT var_pop(x), avg(x) FROM (VALUES ('inf'::float8), (1)) v(x)", "NaN|inf"),
            ("SELECT var_pop(x) FROM (VALUES ('NaN'::float8), (1)) v(x)", "NaN"),
            ("SELECT sum(x), avg(x) FROM (VALUES (1.5::float4), (2)) v(x)", "3.5|1.75"),
            ("SELECT avg(DISTINCT n) FROM t", "1.5000000000000000"),
            (
                "SELECT avg(id) OVER (ORDER BY id ROWS 1 PRECEDING) FROM t ORDER BY id DESC LIMIT 1",
                "2.5000000000000000",
            ),
        ],
    )
    .await;
    refusals(
        &mut c,
        &[("SELECT sum('a'::text)", "42883"), ("SELECT avg(true)", "42883"), ("SELECT median(n) FROM t", "42883")],
    )
    .await;
}

#[tokio::test]
async fn q22_defaults_of_lead_of_another_type() {
    let mut c = client().await;
    let values = "FROM (VALUES (1), (2)) v(x) ORDER BY x DESC LIMIT 1";
    c.rows(&format!("SELECT (lead(x, 1, -1.5) OVER (ORDER BY x))::text {values}"), &["-1.5"]).await;
    c.rows(&format!("SELECT lead(x, 1, 3000000000) OVER (ORDER BY x) {values}"), &["3000000000"]).await;
    c.rows(&format!("SELECT lag(x, 5, '7') OVER (ORDER BY x) {values}"), &["7"]).await;
    c.fails(&format!("SELECT lead(x, 1, true) OVER (ORDER BY x) {values}"), "42883").await;
}

#[tokio::test]
async fn p4_text_becomes_arrays() {
    let mut c = client().await;
    c.ok("CREATE TABLE t (id int PRIMARY KEY, s text)", "CREATE TABLE").await;
    answers(
        &mut c,
        &[
            ("SELECT '{a,b}'::text[]::text, '{1,2}'::int[]::text", "{a,b}|{1,2}"),
            (r#"SELECT '{"a b",NULL,"x\"y"}'::text[]::text"#, r#"{"a b",NULL,"x\"y"}"#),
            ("SELECT ARRAY[1, 2]::text, ARRAY[true]::text, ARRAY['a,b', '']::text", r#"{1,2}|{t}|{"a,b",""}"#),
            ("SELECT ARRAY[1.7, 2]::int[]::text", "{2,2}"),
        ],
    )
    .await;
    c.rows("SELECT unnest('{3,1,2}'::int[])", &["1", "2", "3"]).await;
    let insert = "INSERT INTO t SELECT length(u), u FROM (SELECT unnest($1::text[]) AS u) q";
    let statement = c.session.prepare(insert, &[]).await.unwrap();
    let texts = DataType::Text.array().unwrap();
    assert_eq!(statement.parameters, [texts]);
    c.execute(&statement, vec![texts.parse("{a,bb}").unwrap()]).await.unwrap();
    c.rows("SELECT id, s FROM t", &["1|a", "2|bb"]).await;
    assert_eq!(bound(&mut c, "SELECT unnest($1::bigint[])", &["{5,6}"]).await, ["5", "6"]);
    refusals(
        &mut c,
        &[
            ("SELECT 'a,b'::text[]", "22P02"),
            ("SELECT '{a}'::int[]", "22P02"),
            ("SELECT '{{1},2}'::int[]", "22P02"),
            ("SELECT 1::int[]", "42846"),
        ],
    )
    .await;
}

#[tokio::test]
async fn p8_intervals_compare_by_their_length() {
    let mut c = client().await;
    answers(
        &mut c,
        &[
            ("SELECT interval '1 day' = '24 hours', interval '1 month' > interval '29 days 23:59:59'", "true|true"),
            (
                "SELECT interval '1 day' IN ('24:00', '2 days'), interval '1 mon' BETWEEN '30 days' AND '720:00'",
                "true|true",
            ),
            ("SELECT interval '1 day' IS DISTINCT FROM interval '24:00', nullif(1, 2)", "false|1"),
            (
                "SELECT interval '30 days 1 hour 40 min'::text, 'x' || interval '1 year 2 months'",
                "30 days 01:40:00|x1 year 2 mons",
            ),
            (
                "SELECT (interval '1 day 02:00' * 1.5)::text, (interval '1 mon' / 4)::text, (- interval '1 day')::text",
                "1 day 15:00:00|7 days 12:00:00|-1 days",
            ),
            (
                "SELECT timestamp '2024-01-31' + interval '1 mon 1 day', date '2024-03-31' - interval '1 mon'",
                "2024-03-01T00:00:00|2024-02-29T00:00:00",
            ),
            ("SELECT timestamp '2024-01-31' + '1 day 02:00'", "2024-02-01T02:00:00"),
        ],
    )
    .await;
    let values = "FROM (VALUES (1, interval '25:00'), (2, interval '1 day'), (3, interval '2 days')) v(i, x)";
    c.rows(&format!("SELECT i {values} ORDER BY x, i"), &["2", "1", "3"]).await;
    c.rows(&format!("SELECT i, rank() OVER (ORDER BY x) {values} ORDER BY 1"), &["1|2", "2|1", "3|3"]).await;
    let joined =
        "SELECT a.i FROM (VALUES (1, interval '24:00')) a(i, x) JOIN (VALUES (interval '1 day')) b(x) ON a.x = b.x";
    c.rows(joined, &["1"]).await;
    let folded = format!("SELECT max(x)::text, min(x)::text, sum(x)::text, count(DISTINCT x) {values}");
    c.rows(&folded, &["2 days|1 day|3 days 25:00:00|3"]).await;
    answers(
        &mut c,
        &[
            ("SELECT x::text, count(*) FROM (VALUES (interval '1 day'), ('24:00')) v(x) GROUP BY x", "1 day|2"),
            ("SELECT count(*) FROM (SELECT interval '1 day' UNION SELECT interval '24:00') q", "1"),
        ],
    )
    .await;
    let near = format!("SELECT i, sum(i) OVER (ORDER BY x RANGE BETWEEN '1 day' PRECEDING AND CURRENT ROW) {values}");
    c.rows(&format!("{near} ORDER BY i"), &["1|3", "2|2", "3|6"]).await;
    for sql in [format!("SELECT DISTINCT ON (x) i {values}"), format!("SELECT array_agg(DISTINCT x) {values}")] {
        c.fails(&sql, "0A000").await;
    }
    refusals(&mut c, &[("SELECT interval '1 fortnight'", "22007"), ("SELECT interval '1 day' / 0", "22012")]).await;
}

#[tokio::test]
async fn q27_functions() {
    let mut c = client().await;
    answers(
        &mut c,
        &[
            (r"SELECT regexp_replace('abc', 'b', '<\&>'), regexp_replace('abc', '(b)(c)', '\2\1$1')", "a<b>c|acb$1"),
            (
                r"SELECT encode('\x12', 'hex'), encode('\x1234', 'base64'), encode('\x005c', 'escape')",
                r"12|EjQ=|\000\\",
            ),
            (r"SELECT encode(decode('EjQ=', 'base64'), 'hex'), decode('1234', 'hex')", "1234|1234"),
            ("SELECT to_timestamp(0), to_timestamp(1.5)", "1970-01-01T00:00:00Z|1970-01-01T00:00:01.500Z"),
            (
                "SELECT concat(true, 1, NULL, 'a', timestamp '2020-01-01'), concat_ws(',', 1, NULL, false)",
                "t1a2020-01-01 00:00:00|1,f",
            ),
            ("SELECT to_hex(-1), to_hex(-1::bigint), to_hex(255)", "ffffffff|ffffffffffffffff|ff"),
            ("SELECT make_date(-44, 3, 15)::text, make_date(2024, 2, 29)", "0044-03-15 BC|2024-02-29"),
            ("SELECT to_date('2024-02-29', 'YYYY-MM-DD'), to_date('2024', 'YYYY')", "2024-02-29|2024-01-01"),
            ("SELECT to_timestamp('29.02.2024 13:14:15', 'DD.MM.YYYY HH24:MI:SS')", "2024-02-29T13:14:15Z"),
            (r"SELECT '\x00ff'::bytea || '\x61', length('\x00ff'::bytea), octet_length('ä')", "00ff61|2|2"),
            (
                "SELECT right('abc', -1), left('abc', -1), right('äöü', 2), left('', 3), right('abc', -2147483648)",
                "bc|ab|öü||",
            ),
            (
                "SELECT abs(-5), mod(-7, 3), gcd(12, 18), lcm(4, 6), div(7, 2), sign(-2.5), factorial(5)",
                "5|-1|6|12|3|-1|120",
            ),
        ],
    )
    .await;
    refusals(
        &mut c,
        &[
            ("SELECT log(-1)", "2201E"),
            ("SELECT log(0)", "2201E"),
            ("SELECT acos(2)", "22003"),
            ("SELECT sin('inf'::float8)", "22003"),
            ("SELECT abs(-2147483648)", "22003"),
            ("SELECT lcm(2147483647, 2147483646)", "22003"),
            ("SELECT make_date(0, 1, 1)", "22008"),
            ("SELECT make_date(2023, 2, 29)", "22008"),
            ("SELECT to_timestamp('NaN'::float8)", "22008"),
            ("SELECT to_date('2024 Jan', 'YYYY Mon')", "0A000"),
            ("SELECT to_date('2024-1-5', 'YYYY-MM-DD')", "0A000"),
            ("SELECT to_date('2024-02-30', 'YYYY-MM-DD')", "22008"),
            ("SELECT to_timestamp('24', 'YYYY')", "0A000"),
            ("SELECT decode('1', 'hex')", "22023"),
            ("SELECT encode('a', 'rot13')", "22023"),
            ("SELECT arrow_typeof(1)", "42883"),
            ("SELECT nvl(1, 2)", "42883"),
            ("SELECT first_value(x) FROM (VALUES (1)) v(x)", "42809"),
        ],
    )
    .await;
}

#[tokio::test]
async fn p11_and_q31_small_ones() {
    let mut c = client().await;
    answers(
        &mut c,
        &[
            ("SELECT row(1, 'a b', NULL, '')::text", r#"(1,"a b",,"")"#),
            ("SELECT CASE WHEN true THEN 1 ELSE 3000000000 END % 100", "1"),
            ("SELECT coalesce(NULL, 1.5::float8, 2.5), CASE WHEN false THEN 1.25 ELSE 1e-20::float8 END", "1.5|1e-20"),
            ("SELECT - -0.25, -(-1), - - 5", "0.25|1|5"),
            ("SELECT -2147483648, abs(-9223372036854775807)", "-2147483648|9223372036854775807"),
        ],
    )
    .await;
    c.rows("SELECT 1.5 UNION ALL SELECT avg(x) FROM (VALUES (1), (2)) v(x)", &["1.5", "1.5000000000000000"]).await;
    c.rows("SELECT 1.5 UNION ALL SELECT 1e-20::float8", &["1.5", "1e-20"]).await;
    c.rows("SELECT * FROM (VALUES (1.5), (1e-20::float8)) v(x)", &["1.5", "1e-20"]).await;
    assert_eq!(bound(&mut c, "SELECT $1::varchar(3)", &["abcdef"]).await, ["abc"]);
    refusals(&mut c, &[("SELECT chr(0)", "54000"), ("SELECT chr(-1)", "22023")]).await;
}

#[tokio::test]
async fn p12_functions_of_the_wrong_types() {
    let mut c = client().await;
    let error = c.fails("SELECT length(123)", "42883").await;
    assert_eq!(error.message, "function length(integer) does not exist");
    refusals(
        &mut c,
        &[
            ("SELECT upper(1)", "42883"),
            ("SELECT reverse(true)", "42883"),
            ("SELECT 1 || 2", "42883"),
            ("SELECT round('a'::text)", "42883"),
            ("SELECT log(2.0::float8, 8.0::float8)", "42883"),
            ("SELECT interval '1 day' + 1", "42883"),
        ],
    )
    .await;
}

/// A series of integers is of integers.
#[tokio::test]
async fn p11_generate_series() {
    let mut c = client().await;
    c.rows("SELECT repeat('x', n) FROM generate_series(2, 1, -1) g(n) ORDER BY n", &["x", "xx"]).await;
    c.rows("SELECT n + 2147483647 FROM generate_series(1::bigint, 2) g(n) ORDER BY n", &["2147483648", "2147483649"])
        .await;
    c.rows("SELECT count(*) FROM generate_series(1, NULL) g(n)", &["0"]).await;
    c.rows("SELECT * FROM generate_series(1, 2.5)", &["1", "2"]).await;
    c.rows("SELECT * FROM generate_series(1, 2.0, 0.5)", &["1", "1.5", "2.0"]).await;
    c.rows("SELECT count(*) FROM generate_series(1, 3) g(n), generate_series(1, 2)", &["6"]).await;
    refusals(
        &mut c,
        &[
            ("SELECT n + 2147483647 FROM generate_series(1, 2) g(n)", "22003"),
            ("SELECT * FROM generate_series(1)", "42883"),
            ("SELECT * FROM generate_series(1, 2, 0)", "22023"),
            ("SELECT * FROM generate_series(1, 2.5, 0.0)", "22023"),
            ("SELECT * FROM generate_series(1, 'NaN'::numeric)", "22023"),
        ],
    )
    .await;
}

/// What is put in a match's place may be computed.
#[tokio::test]
async fn q27_computed_replacements() {
    let mut c = client().await;
    let replaced = r"SELECT regexp_replace('abc', '(b)', r) FROM (VALUES ('<\&>'), ('\1\1$1'), (NULL)) v(r) ORDER BY r";
    c.rows(replaced, &["a<b>c", "abb$1c", "NULL"]).await;
}

/// Functions made here ask for what they make.
#[tokio::test]
async fn f3_functions_made_here_are_measured() {
    let mut c = Client::new(&database().await.limit_memory(64 << 20));
    for sql in [
        "SELECT length(encode(repeat('x', 30000000)::bytea, 'escape'))",
        "SELECT length(repeat('x', 40000000)::bytea || repeat('x', 40000000)::bytea)",
        "SELECT g::text::char(10000000) LIKE '1%' FROM generate_series(1, 100) g",
    ] {
        c.fails(sql, "53200").await;
    }
    c.rows("SELECT length(encode(repeat('x', 1000)::bytea, 'hex'))", &["2000"]).await;
}

/// Patterns that Rust's regular expressions read in another way.
#[tokio::test]
async fn q27_patterns() {
    let mut c = client().await;
    answers(
        &mut c,
        &[
            ("SELECT 'a[' ~ '^[a[]+$', 'b]' ~ '^[a[b]]$', 'a&' ~ '^[a&&b]+$'", "true|true|true"),
            (r"SELECT 'two words' ~ '\mwords\M', 'swords' ~ '\mwords', 'a b' ~ '\yb\Z'", "true|false|true"),
            ("SELECT 'a{,2}' ~ '^a{,2}$', 'aa' ~ '^a{,2}$'", "true|false"),
            ("SELECT regexp_replace('abcd', 'ab|abcd', 'x'), regexp_replace('baaac', 'a*', '-', 'g')", "x|-b--c-"),
            (
                "SELECT regexp_count('abcabc', 'b', 3), regexp_count('ABab', 'b', 1, 'i'), regexp_like('B', 'b', 'i')",
                "1|2|true",
            ),
        ],
    )
    .await;
    refusals(
        &mut c,
        &[
            (r"SELECT 'a' ~ '(a)\1'", "0A000"),
            ("SELECT 'a' ~ 'a(?=b)'", "0A000"),
            ("SELECT 'a' ~ 'a**'", "2201B"),
            ("SELECT 'a' ~ '['", "2201B"),
            ("SELECT 'a' ~ '(a'", "2201B"),
            ("SELECT regexp_replace('a', 'a+?', '')", "0A000"),
            ("SELECT regexp_replace('ab', '(a|ab)', '[\\1]')", "0A000"),
            ("SELECT regexp_count('a', 'a', 0)", "22023"),
            ("SELECT regexp_like('a', 'a', 'g')", "22023"),
        ],
    )
    .await;
}

#[tokio::test]
async fn n10_n14_n28_functions() {
    let mut c = client().await;
    answers(
        &mut c,
        &[
            (r"SELECT length('\xc3a4'::bytea), octet_length('\xc3a4'::bytea), bit_length('\x61'::bytea)", "2|2|8"),
            (
                "SELECT split_part('a,b,c', ',', 2), split_part('a,b,c', ',', -1), split_part('a', '', 1), \
              split_part('a', ',', 5)",
                "b|c|a|",
            ),
            ("SELECT ~3::smallint, ~3, ~(-1::bigint), - ~0", "-4|-4|0|1"),
            ("SELECT every(x > 0), bool_and(x > 1) FROM (VALUES (1), (2)) v(x)", "true|false"),
        ],
    )
    .await;
    refusals(
        &mut c,
        &[
            ("SELECT split_part('a', 'a', 0)", "22023"),
            ("SELECT decode('7', 'base64')", "22023"),
            ("SELECT decode('abc', 'base64')", "22023"),
            ("SELECT make_date(1, 13, 1)", "22008"),
            ("SELECT position(2 IN '\\x0102'::bytea)", "42883"),
        ],
    )
    .await;
}

/// NaN is above all numbers, in groups too.
#[tokio::test]
async fn q27_extremes_of_nan() {
    let mut c = client().await;
    let values = "FROM (VALUES (1, 'NaN'::float8), (1, 3), (1, '-inf'), (2, 1), (2, 'NaN')) v(i, x)";
    c.rows(
        &format!("SELECT i, max(x)::text, min(x)::text {values} GROUP BY i ORDER BY i"),
        &["1|NaN|-Infinity", "2|NaN|1"],
    )
    .await;
    c.rows(&format!("SELECT max(x::real)::text, min(x::real)::text {values}"), &["NaN|-Infinity"]).await;
    c.rows(&format!("SELECT max(i), min(i), count(*) {values} GROUP BY x > 5"), &["2|1|2", "2|1|3"]).await;
}

/// What PostgreSQL has no operator for.
#[tokio::test]
async fn p12_operators_that_do_not_exist() {
    let mut c = client().await;
    let from = "FROM (VALUES (1, 'a', true, date '2020-01-01', '\x61'::bytea, 'ab '::varchar(4), \
                'ab'::char(4))) v(i, s, b, d, y, v, c)";
    for condition in [
        "i = s",
        "d = s",
        "b = s",
        "y = s",
        "d < i",
        "b > i",
        "s IN (i, 2)",
        "i BETWEEN 1 AND s",
        "'1'::text = 1",
        "i % 2.5::real = 0",
    ] {
        c.fails(&format!("SELECT 1 {from} WHERE {condition}"), "42883").await;
    }
    c.rows(
        &format!("SELECT v = c, 'ab '::text = c, c = 'ab  ', 'a'::text = s, s < 'b'::text {from}"),
        &["true|false|true|true|true"],
    )
    .await;
}

/// The optimiser tries conditions above outer joins with a NULL that has no type.
#[tokio::test]
async fn n98_reverse_above_a_full_join() {
    let mut c = client().await;
    c.ok("CREATE TABLE a (id int, v varchar)", "CREATE TABLE").await;
    c.ok("INSERT INTO a VALUES (1, 'ab'), (2, 'é!')", "INSERT 0 2").await;
    c.rows("SELECT reverse(v) FROM a b FULL JOIN a USING (v, id) WHERE reverse(v) NOT LIKE 'b%'", &["!é"]).await;
    answers(&mut c, &[("SELECT reverse(''), reverse(NULL), reverse('äöü')", "|NULL|üöä")]).await;
}
