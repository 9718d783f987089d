//! Times, intervals, letters and patterns where DataFusion or Unicode answer otherwise than PostgreSQL 15, whose
//! answers are expected.
use crate::common::{Client, database};

async fn client() -> Client {
    Client::new(&database().await)
}

/// N65: an abbreviation is a fixed offset, hours in a zone's name are west of UTC.
#[tokio::test]
async fn n65_zones_in_expressions() {
    let mut c = client().await;
    for (sql, answer) in [
        ("SELECT (timestamptz '2024-01-01 00:00+00' AT TIME ZONE '+03')::text", "2023-12-31 21:00:00"),
        ("SELECT (timestamptz '2024-07-01 00:00+00' AT TIME ZONE 'CET')::text", "2024-07-01 01:00:00"),
        ("SELECT (timestamptz '2024-07-01 00:00+00' AT TIME ZONE 'Europe/Berlin')::text", "2024-07-01 02:00:00"),
        ("SELECT (timestamptz '2024-07-01 12:00 EST')::text", "2024-07-01 17:00:00+00"),
        ("SELECT (timestamptz '2024-07-01 12:00+03')::text", "2024-07-01 09:00:00+00"),
    ] {
        c.rows(sql, &[answer]).await;
    }
    c.ok("SET TimeZone = '+03'", "SET").await;
    c.rows("SELECT (timestamptz '2024-07-01 00:00+00')::text", &["2024-07-01 03:00:00+03"]).await;
}

#[tokio::test]
async fn n66_fields_that_a_type_does_not_have() {
    let mut c = client().await;
    for field in ["hour", "minute", "second", "milliseconds", "microseconds", "timezone"] {
        c.fails(&format!("SELECT extract({field} FROM date '2024-01-01')"), "0A000").await;
    }
    c.fails("SELECT extract(timezone FROM timestamp '2024-01-01')", "0A000").await;
    c.fails("SELECT date_part('timezone_hour', timestamp '2024-01-01')", "0A000").await;
    c.rows("SELECT extract(day FROM date '2024-01-09'), date_part('hour', date '2024-01-01')", &["9|0.0"]).await;
    let length = "interval '1 year 2 months 3 days 04:05:06.789'";
    c.rows(&format!("SELECT date_part('epoch', {length})::text"), &["37015506.789000005"]).await;
}

#[tokio::test]
async fn n67_date_bin() {
    let mut c = client().await;
    for (sql, answer) in [
        ("date_bin('15 minutes', timestamp '2020-02-11 15:44:17', timestamp '2001-01-01')", "2020-02-11 15:30:00"),
        ("date_bin('1 hour', timestamp '2020-01-01 00:30', timestamp '2020-01-01 03:15')", "2020-01-01 00:15:00"),
        ("date_bin('1 hour', timestamp '2020-01-01 00:15', timestamp '2020-01-01 03:15')", "2020-01-01 00:15:00"),
        ("date_bin('1 day', timestamptz '2020-01-01 05:00+00', timestamptz '2001-01-01')", "2020-01-01 00:00:00+00"),
        ("date_bin(interval '2 days', date '2020-01-02', date '2001-01-01')", "2020-01-02 00:00:00+00"),
        ("date_bin(NULL, timestamp '2020-01-01', timestamp '2001-01-01')", "NULL"),
    ] {
        c.rows(&format!("SELECT ({sql})::text"), &[answer]).await;
    }
    c.fails("SELECT date_bin('1 month', timestamp '2020-01-01', timestamp '2001-01-01')", "0A000").await;
    c.fails("SELECT date_bin('-1 hour', timestamp '2020-01-01', timestamp '2001-01-01')", "22008").await;
    c.fails("SELECT date_bin('0 s', timestamp '2020-01-01', timestamp '2001-01-01')", "22008").await;
}

#[tokio::test]
async fn n68_patterns_of_like() {
    let mut c = client().await;
    c.ok("CREATE TABLE t (id int PRIMARY KEY, s text, p text)", "CREATE TABLE").await;
    c.ok(r"INSERT INTO t VALUES (1, 'a%c', 'a#%c'), (2, 'abc', 'a%'), (3, 'a\', 'a\\'), (4, 'x', 'x\')", "INSERT 0 4")
        .await;
    c.rows("SELECT id FROM t WHERE s LIKE 'a#%c' ESCAPE '#' ORDER BY id", &["1"]).await;
    c.rows("SELECT id FROM t WHERE s LIKE p ESCAPE '#' ORDER BY id", &["1", "2"]).await;
    c.rows("SELECT id FROM t WHERE id < 4 AND s LIKE p ORDER BY id", &["2", "3"]).await;
    c.rows(
        r"SELECT 'a\b' LIKE 'a\\b', 'a\b' LIKE 'a\b' ESCAPE '#', 'A#b' ILIKE 'a##B' ESCAPE '#'",
        &["true|true|true"],
    )
    .await;
    c.rows("SELECT id FROM t WHERE s NOT LIKE 'a%' ORDER BY id", &["4"]).await;
    for wrong in [
        r"SELECT 'abc' LIKE 'a\'",
        "SELECT 'abc' LIKE '%' ESCAPE '%'",
        "SELECT id FROM t WHERE s LIKE p",
        r"SELECT id FROM t WHERE s ILIKE 'b\'",
    ] {
        c.fails(wrong, "22025").await;
    }
}

/// A C library's letters are single ones.
#[tokio::test]
async fn n69_letters_without_a_capital() {
    let mut c = client().await;
    c.rows(
        "SELECT upper('straße ŉ ᾳ ﬁ é'), lower('ΑΣ İ É'), initcap('ßa ÉCOLE o''neil x2y')",
        &["STRAßE ŉ ᾼ ﬁ É|ασ i é|ßa École O'Neil X2y"],
    )
    .await;
}

#[tokio::test]
async fn n70_intervals_with_fields() {
    let mut c = client().await;
    c.rows("SELECT (interval '25' month)::text, (interval '-90' minute)::text", &["2 years 1 mon|-01:30:00"]).await;
    let limited = "SELECT (interval '1.5' day)::text, (interval '1 year 5 days' year)::text, \
                   (interval '1-2' year to month)::text, (interval '1.25' second(1))::text";
    c.rows(limited, &["1 day|1 year|1 year 2 mons|00:00:01.3"]).await;
    c.fails("SELECT interval '1 day 1 day'", "22007").await;
}

#[tokio::test]
async fn n71_percentiles_lie_on_a_straight_line() {
    let mut c = client().await;
    let of = |part: &str, order: &str, from: &str| {
        format!("SELECT percentile_cont({part}) WITHIN GROUP (ORDER BY i{order})::text FROM (VALUES {from}) v(i)")
    };
    let numbers = "(1), (2), (3), (3), (-5), (NULL)";
    for (part, order, answer) in [
        ("0.3", " DESC", "2.8"),
        ("0.3", "", "1.2"),
        ("0", "", "-5"),
        ("1", "", "3"),
        ("0.5", "", "2"),
        ("NULL", "", "NULL"),
    ] {
        c.rows(&of(part, order, numbers), &[answer]).await;
    }
    c.rows(&of("0.5", "", "(1.5::real), ('NaN')"), &["NaN"]).await;
    c.rows(&of("0.5", "", "(NULL::int)"), &["NULL"]).await;
    let groups =
        "SELECT g % 2, percentile_cont(0.1) WITHIN GROUP (ORDER BY g) FROM generate_series(1, 10) g GROUP BY 1";
    c.rows(&format!("{groups} ORDER BY 1"), &["0|2.8", "1|1.8"]).await;
    c.fails(&of("1.5", "", numbers), "22003").await;
}

/// A window's name in a subquery of a select list is looked up in that subquery.
#[tokio::test]
async fn n78_windows_of_subqueries() {
    let mut c = client().await;
    let within = "SELECT rank() OVER w FROM (VALUES (5), (7)) AS i(y) WINDOW w AS (ORDER BY y)";
    c.rows(&format!("SELECT x, (SELECT max(r) FROM ({within}) AS q(r)) FROM (VALUES (1)) AS o(x)"), &["1|2"]).await;
    c.rows(
        "SELECT sum(x) OVER w FROM (VALUES (1), (2)) v(x) WINDOW w AS (ORDER BY x) ORDER BY rank() OVER w DESC",
        &["3", "1"],
    )
    .await;
    c.fails("SELECT rank() OVER w FROM (VALUES (1)) v(x)", "42704").await;
    let every = "SELECT (SELECT every(t.b) FROM (VALUES (1)) u(y)) FROM (VALUES (true)) t(b)";
    c.rows(every, &["true"]).await;
}

#[tokio::test]
async fn n72_arguments_of_window_functions() {
    let mut c = client().await;
    c.rows("SELECT lag(g, NULL) OVER (ORDER BY g) FROM generate_series(1, 2) g", &["NULL", "NULL"]).await;
    c.fails("SELECT nth_value(g, 0) OVER (ORDER BY g) FROM generate_series(1, 2) g", "22016").await;
    c.fails("SELECT sum(DISTINCT g) OVER () FROM generate_series(1, 2) g", "0A000").await;
    c.rows("SELECT lag(g, 1, 7) OVER (ORDER BY g) FROM generate_series(1, 2) g ORDER BY 1", &["1", "7"]).await;
    c.rows("SELECT lead(g, -1) OVER (ORDER BY g) FROM generate_series(1, 2) g ORDER BY 1", &["1", "NULL"]).await;
}

#[tokio::test]
async fn n73_signs_and_radians() {
    let mut c = client().await;
    c.rows("SELECT sign('NaN'::float8), sign(-0.5::float8), sign('inf'::float8)", &["0.0|-1.0|1.0"]).await;
    c.fails("SELECT radians('5e-324'::float8)", "22003").await;
    c.fails("SELECT ' a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", "22P02").await;
    for early in ["'4714-11-23 BC'::date", "'4714-11-23 BC'::timestamp", "'4714-11-23 23:59 BC'::timestamptz"] {
        c.fails(&format!("SELECT {early}"), "22008").await;
    }
    c.rows("SELECT '4714-11-24 BC'::date::text", &["4714-11-24 BC"]).await;
}

#[tokio::test]
async fn n74_small_ones() {
    let mut c = client().await;
    c.rows(
        "SELECT array_to_string(ARRAY['a', NULL, 'b'], ',', 'N'), array_to_string(ARRAY['a', NULL], ',')",
        &["a,N,b|a"],
    )
    .await;
    c.rows("SELECT array_to_string(ARRAY[true, false], ','), array_to_string(ARRAY[1, NULL, 2], ';')", &["t,f|1;2"])
        .await;
    c.fails("SELECT -d FROM (VALUES (timestamp '2020-01-01')) v(d)", "42883").await;
    c.fails("SELECT CASE WHEN 1 THEN 2 END", "42804").await;
    c.rows("SELECT CASE WHEN NULL THEN 1 ELSE 2 END, CASE WHEN 'true' THEN 1 END", &["2|1"]).await;
    c.fails("SET extra_float_digits = 4", "22023").await;
    c.ok("SET extra_float_digits = 3", "SET").await;
}

/// Arrow orders NULL items first, and knows two zeros.
#[tokio::test]
async fn n75_arrays_and_rows_are_ordered() {
    let mut c = client().await;
    let from = "FROM (VALUES (1, 2.5::float8), (2, NULL)) v(i, f)";
    c.fails(&format!("SELECT DISTINCT ON (ARRAY[i]) i {from}"), "0A000").await;
    c.rows(&format!("SELECT max(ARRAY[i])::text {from}"), &["{2}"]).await;
    c.rows(&format!("SELECT i {from} ORDER BY ROW(i, f) DESC"), &["2", "1"]).await;
    c.rows("SELECT ARRAY[NULL::int] < ARRAY[1], ARRAY['-0'::float8] = ARRAY[0::float8]", &["false|true"]).await;
    c.rows("SELECT greatest(ARRAY[NULL::int], ARRAY[1])::text, least('{}', ARRAY[1])::text", &["{NULL}|{}"]).await;
    c.rows(&format!("SELECT i {from} ORDER BY ARRAY[f] DESC"), &["2", "1"]).await;
    c.rows(&format!("SELECT count(DISTINCT ARRAY[f]) {from}"), &["2"]).await;
    c.rows("SELECT count(*) FROM (VALUES (ARRAY[0::float8]), (ARRAY['-0'::float8])) v(a) GROUP BY a", &["2"]).await;
    c.rows(&format!("SELECT rank() OVER (ORDER BY ARRAY[i] DESC), i {from} ORDER BY 1"), &["1|2", "2|1"]).await;
    c.rows(&format!("SELECT count(DISTINCT ARRAY[i]), bool_and(ARRAY[i] = ARRAY[i]) {from}"), &["2|true"]).await;
    c.rows(&format!("SELECT i {from} WHERE (i, f) < (2, 3) ORDER BY i"), &["1"]).await;
}

#[tokio::test]
async fn n76_windows_outside_of_select_and_grouping_sets() {
    let mut c = client().await;
    c.ok("CREATE TABLE t (id int PRIMARY KEY, f float8, s text)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, -0.0, -0.0), (2, -1.5, -1.50)", "INSERT 0 2").await;
    c.rows("SELECT f::text, s FROM t ORDER BY id", &["0|0.0", "-1.5|-1.50"]).await;
    c.fails("UPDATE t SET f = row_number() OVER ()", "42P20").await;
    c.fails("INSERT INTO t VALUES (row_number() OVER (), 1)", "42P20").await;
    c.fails("VALUES (rank() OVER ())", "42P20").await;
    c.fails("INSERT INTO t VALUES (count(*), 1)", "42803").await;
    c.fails("INSERT INTO t VALUES (pg_catalog.count(*), 1)", "42803").await;
    let cube = |n: usize| (0..n).map(|n| format!("id + {n}")).collect::<Vec<_>>().join(", ");
    c.fails(&format!("SELECT 1 FROM t GROUP BY CUBE ({})", cube(13)), "54011").await;
    c.fails(&format!("SELECT 1 FROM t GROUP BY CUBE ({}), ROLLUP (id)", cube(12)), "54001").await;
    c.rows("SELECT count(*) FROM (SELECT 1 FROM t GROUP BY CUBE (id, s), ROLLUP (s)) q", &["15"]).await;
    c.fails("SELECT 1 WHERE random() < ANY (ARRAY[0.5, 0.5])", "0A000").await;
    c.rows(
        "SELECT 3 > ANY (ARRAY[5, 2]), 3 < ALL (ARRAY['4', '5']::int[]), 3 > ALL (ARRAY[NULL, 5])",
        &["true|true|false"],
    )
    .await;
}
