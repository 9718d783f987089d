//! What was found by looking for it: one test for each mend, of several subjects.
use super::client;
use crate::common::Client;

async fn tables() -> Client {
    let mut c = client().await;
    c.ok("CREATE TABLE c (id int PRIMARY KEY, name varchar(5), u int UNIQUE, k char(3))", "CREATE TABLE").await;
    c.ok("INSERT INTO c VALUES (1, 'one', 10, 'a'), (2, 'two', 20, 'b'), (3, NULL, NULL, 'c')", "INSERT 0 3").await;
    c.ok("CREATE TABLE t (a int, cid int, at timestamp)", "CREATE TABLE").await;
    c.ok(
        "INSERT INTO t VALUES (1, 1, '2024-01-01'), (2, 1, '2024-01-02'), (3, 3, NULL), (4, NULL, NULL)",
        "INSERT 0 4",
    )
    .await;
    c
}

/// The type "char" is one byte: what is longer is cut.
#[tokio::test]
async fn n104_the_type_of_one_byte() {
    let mut c = tables().await;
    for sql in [
        "SELECT 'é'::\"char\"",
        "SELECT name::\"char\" FROM c",
        "SELECT 65::\"char\"",
        "SELECT relname::\"char\" FROM pg_class",
        "SELECT ARRAY['abc']::\"char\"[]",
        "CREATE TABLE d (x \"char\")",
    ] {
        c.fails(sql, "0A000").await;
    }
    c.rows("SELECT 'abc'::\"char\"", &["a"]).await;
    c.rows("SELECT relname FROM pg_class WHERE relkind = 'rest'::\"char\" AND relname = 't'", &["t"]).await;
    c.rows("SELECT relkind::\"char\" FROM pg_class WHERE relname = 't'", &["r"]).await;
}

/// A function of a sequence is called as often as PostgreSQL calls it, or not at all.
#[tokio::test]
async fn n105_sequences_are_called_once() {
    let mut c = client().await;
    c.ok("CREATE SEQUENCE s", "CREATE SEQUENCE").await;
    for sql in [
        "WITH q AS (SELECT nextval('s')) SELECT 1",
        "WITH q AS (SELECT nextval('s') AS n) SELECT 1 WHERE EXISTS (SELECT 1 FROM q)",
        "WITH q AS (SELECT nextval('s') AS n) SELECT n FROM q LIMIT 0",
        "SELECT nextval('s') BETWEEN 1 AND 10",
        "SELECT nextval('s') BETWEEN SYMMETRIC 1 AND 10",
        "SELECT nextval('s') WHERE false",
        "SELECT nextval('s') LIMIT 0",
        "SELECT CASE WHEN false THEN nextval('s') END",
        "SELECT coalesce(1, nextval('s'))",
        "SELECT false AND nextval('s') > 0",
        "SELECT EXISTS (SELECT nextval('s'))",
        "SELECT (nextval('s'), 2) = (1, nextval('s'))",
        "SELECT nextval('s') ORDER BY nextval('s')",
        "SELECT nextval('s') + NULL::bigint",
    ] {
        c.fails(sql, "0A000").await;
    }
    c.rows("SELECT nextval('s')", &["1"]).await;
    c.rows("WITH q AS (SELECT nextval('s') AS n) SELECT n, n + 1 FROM q", &["2|3"]).await;
    c.rows("SELECT count(*) FROM (SELECT nextval('s')) q", &["1"]).await;
    c.rows("SELECT nextval('s') UNION ALL SELECT nextval('s')", &["4", "5"]).await;
    c.rows("SELECT nullif(nextval('s'), 5), greatest(nextval('s'), 0), coalesce(nextval('s'), 1)", &["6|7|8"]).await;
    c.rows("SELECT nextval('s') IN (9, 100), 'n' || nextval('s')", &["true|n10"]).await;
    c.ok(
        "CREATE TABLE o (a text DEFAULT 'A' || nextval('s'), b text DEFAULT 'B' || nextval('s'), n int)",
        "CREATE TABLE",
    )
    .await;
    c.ok("INSERT INTO o (n) VALUES (1), (2)", "INSERT 0 2").await;
    c.rows("SELECT a, b FROM o ORDER BY n", &["A11|B12", "A13|B14"]).await;
    c.fails("INSERT INTO o (n) SELECT g FROM generate_series(1, 3) g", "0A000").await;
    c.fails("ALTER TABLE o ADD COLUMN x text DEFAULT 'X' || nextval('s')", "0A000").await;
    c.rows("SELECT nextval('s')", &["15"]).await;
}

/// What is volatile is computed as often as it is written.
#[tokio::test]
async fn n106_volatile_functions_are_not_doubled() {
    let mut c = tables().await;
    let rows = "FROM generate_series(1, 2000) g(i)";
    c.rows(&format!("SELECT count(*) {rows} WHERE CASE WHEN random() < 0.5 THEN i > 0 ELSE i > 0 END"), &["2000"])
        .await;
    let middle = format!("SELECT count(*) BETWEEN 450 AND 750 {rows} WHERE random() BETWEEN 0.5 AND 0.6");
    c.rows(&middle, &["true"]).await;
    c.rows(
        &format!("SELECT count(*) {rows} WHERE CASE random() < 0.5 WHEN true THEN 1 WHEN false THEN 1 END = 1"),
        &["2000"],
    )
    .await;
    c.fails(&format!("SELECT coalesce(CASE WHEN random() < 0.5 THEN i END, 0) {rows}"), "0A000").await;
    c.fails(&format!("SELECT sum(random()) = sum(random()) {rows}"), "0A000").await;
    c.fails(&format!("SELECT sum(random()) OVER (), sum(random()) OVER () {rows}"), "0A000").await;
    c.rows(&format!("SELECT sum(random()) > 0 AS s {rows} ORDER BY s"), &["true"]).await;
}

/// A constant is read when its statement is parsed, and one that the catalogue keeps when it is made.
#[tokio::test]
async fn n107_times_are_read_in_the_zone_of_their_making() {
    let mut c = client().await;
    let table = "CREATE TABLE z (id int PRIMARY KEY, at timestamptz DEFAULT '2024-01-01 00:00', \
                 day timestamp DEFAULT '2024-01-01 00:00', said text DEFAULT '2024-01-01 00:00', \
                 CHECK (at > '2000-01-01 00:00'))";
    c.ok(table, "CREATE TABLE").await;
    c.ok("PREPARE p AS SELECT '2024-01-01 00:00'::timestamptz AT TIME ZONE 'UTC'", "PREPARE").await;
    c.ok("PREPARE r AS SELECT '2024-01-01 00:00'::text::timestamptz AT TIME ZONE 'UTC'", "PREPARE").await;
    c.ok("PREPARE i AS INSERT INTO z (id, at) VALUES (9, '2024-01-01 00:00')", "PREPARE").await;
    c.ok("PREPARE f AS SELECT id FROM z WHERE at = '2024-01-01 00:00' ORDER BY id", "PREPARE").await;
    c.ok("SET TimeZone = 'Asia/Tokyo'", "SET").await;
    c.rows("EXECUTE p", &["2024-01-01T00:00:00"]).await;
    c.rows("EXECUTE r", &["2023-12-31T15:00:00"]).await;
    c.ok("EXECUTE i", "INSERT 0 1").await;
    c.ok("INSERT INTO z (id) VALUES (1)", "INSERT 0 1").await;
    c.ok("INSERT INTO z (id, at) SELECT 2, '2024-01-01 00:00'", "INSERT 0 1").await;
    c.rows("EXECUTE f", &["1", "9"]).await;
    c.rows(
        "SELECT at AT TIME ZONE 'UTC', day, said FROM z WHERE id = 1",
        &["2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01 00:00"],
    )
    .await;
    c.fails("INSERT INTO z (id, at) VALUES (3, '2000-01-01 08:30')", "23514").await;
    c.ok("INSERT INTO z (id, at) VALUES (3, '2000-01-01 09:30')", "INSERT 0 1").await;
    c.ok("ALTER TABLE z ADD COLUMN more timestamptz DEFAULT '2024-01-01 00:00'", "ALTER TABLE").await;
    c.ok("ALTER TABLE z ALTER COLUMN at SET DEFAULT coalesce(NULL, '2024-01-01 00:00'::timestamptz)", "ALTER TABLE")
        .await;
    c.ok("SET TimeZone = 'UTC'", "SET").await;
    c.ok("INSERT INTO z (id) VALUES (4)", "INSERT 0 1").await;
    c.rows(
        "SELECT at AT TIME ZONE 'UTC', more AT TIME ZONE 'UTC' FROM z WHERE id = 4",
        &["2023-12-31T15:00:00|2023-12-31T15:00:00"],
    )
    .await;
}

/// DataFusion leaves casts out of the names of columns.
#[tokio::test]
async fn n108_columns_that_differ_in_a_cast() {
    let mut c = tables().await;
    c.rows("SELECT id::int::text::varchar, id::text::int FROM c WHERE id = 1", &["1|1"]).await;
    c.rows("SELECT id, id::bigint, id::text, id::text::varchar(1), id::int::int FROM c WHERE id = 1", &["1|1|1|1|1"])
        .await;
    c.rows(
        "SELECT id::text, id::text::varchar, id::text::int FROM c WHERE id = 1 ORDER BY id::text::int::text",
        &["1|1|1"],
    )
    .await;
}

/// Arrays of texts of two types are not compared.
#[tokio::test]
async fn n109_arrays_of_two_kinds_of_text() {
    let mut c = tables().await;
    for (left, right, names) in [
        ("array['a']", "array['a'::varchar]", "text[] = character varying[]"),
        ("array['a']::text[]", "array['a'::char(3)]", "text[] = character[]"),
        ("array['a'::varchar, 'b'::text]", "array['a']", "character varying[] = text[]"),
        ("'{a}'::varchar[]", "array['a']", "character varying[] = text[]"),
    ] {
        let error = c.fails(&format!("SELECT {left} = {right}"), "42883").await;
        assert_eq!(error.message, format!("operator does not exist: {names}"));
        c.fails(&format!("SELECT {left} IS DISTINCT FROM {right}"), "42883").await;
        c.fails(&format!("SELECT {left} IN ({right})"), "42883").await;
    }
    c.rows("SELECT array['a'::varchar] = array['a'::varchar(10)], array['a'] = array['a'::text]", &["true|true"]).await;
}

/// The items of a list that depend on no column are made one type, aggregates of no column among them.
#[tokio::test]
async fn n110_aggregates_in_lists() {
    let mut c = tables().await;
    c.rows("SELECT 16777217 IN (16777216 + count(*) * 0, 1.5::real) FROM t", &["false"]).await;
    c.rows("SELECT a IN (count(*), 1.5::real) FROM t GROUP BY a HAVING a < 3 ORDER BY a", &["true", "false"]).await;
}

/// A correlated value of a table's row.
#[tokio::test]
async fn n111_values_of_subqueries_without_aggregates() {
    let mut c = tables().await;
    c.rows("SELECT a, (SELECT name FROM c WHERE c.id = t.cid) FROM t", &["1|one", "2|one", "3|NULL", "4|NULL"]).await;
    c.rows("SELECT a FROM t WHERE (SELECT u FROM c WHERE c.id = t.cid) = 10", &["1", "2"]).await;
    c.rows("SELECT a, (SELECT u + 1 FROM c WHERE u = cid * 10) FROM t", &["1|11", "2|11", "3|NULL", "4|NULL"]).await;
    c.fails("SELECT id, (SELECT a FROM t WHERE t.cid = c.id) FROM c", "21000").await;
    c.rows("SELECT id, (SELECT a FROM t WHERE t.cid = c.id) FROM c WHERE id > 1", &["2|NULL", "3|3"]).await;
    c.rows(
        "SELECT id, (SELECT a FROM t WHERE t.cid = c.id ORDER BY at DESC LIMIT 1) FROM c ORDER BY id",
        &["1|2", "2|NULL", "3|3"],
    )
    .await;
    c.rows(
        "SELECT id, (SELECT at::date FROM t WHERE t.cid = c.id ORDER BY a LIMIT 1) FROM c WHERE id = 1",
        &["1|2024-01-01"],
    )
    .await;
    c.rows("SELECT (SELECT k FROM c WHERE c.id = t.cid) || '|' FROM t WHERE a = 1", &["a|"]).await;
    c.ok("UPDATE t SET cid = (SELECT u FROM c WHERE c.id = t.cid) WHERE a < 3", "UPDATE 2").await;
    c.rows("SELECT cid FROM t WHERE a < 3", &["10", "10"]).await;
}

/// Keys in another order, joins without a name in common, constants beside uuids.
#[tokio::test]
async fn n112_what_programs_write() {
    let mut c = tables().await;
    c.rows("SELECT DISTINCT ON (cid, a) a FROM t WHERE a < 3 ORDER BY a, cid", &["1", "2"]).await;
    c.rows("SELECT DISTINCT ON (cid, at) a FROM t ORDER BY at NULLS LAST, cid, a", &["1", "2", "3", "4"]).await;
    c.rows("SELECT DISTINCT ON (cid) a FROM t WHERE cid = 1 ORDER BY cid, cid, a DESC", &["2"]).await;
    c.fails("SELECT DISTINCT ON (cid) a FROM t ORDER BY a, cid", "42P10").await;
    c.ok("CREATE TABLE z (zz int)", "CREATE TABLE").await;
    c.rows("SELECT count(*), count(zz) FROM t NATURAL LEFT JOIN z", &["4|0"]).await;
    c.rows("SELECT count(*) FROM t NATURAL RIGHT JOIN z", &["0"]).await;
    c.ok("INSERT INTO z VALUES (1), (2)", "INSERT 0 2").await;
    c.rows("SELECT count(*) FROM t NATURAL FULL JOIN z", &["8"]).await;
    c.rows("SELECT count(*) FROM t NATURAL JOIN z", &["8"]).await;
    c.ok("CREATE TABLE us (id uuid)", "CREATE TABLE").await;
    let (one, two) = ("00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002");
    c.ok(&format!("INSERT INTO us VALUES ('{one}')"), "INSERT 0 1").await;
    c.rows(&format!("SELECT count(*) FROM (SELECT id FROM us UNION SELECT '{two}' UNION SELECT '{one}') q"), &["2"])
        .await;
    c.rows(&format!("SELECT count(*) FROM (SELECT '{two}' UNION SELECT id FROM us) q(id) WHERE id = '{two}'"), &["1"])
        .await;
    c.rows(&format!("SELECT count(*) FROM (SELECT id FROM us INTERSECT SELECT '{one}') q"), &["1"]).await;
    c.fails("SELECT id FROM us UNION ALL SELECT 'xx'", "22P02").await;
    c.rows("SELECT true UNION SELECT 'f'", &["false", "true"]).await;
    c.ok("PREPARE later AS SELECT at + $1 FROM t WHERE a = 1", "PREPARE").await;
    c.rows("EXECUTE later('1 day')", &["2024-01-02T00:00:00"]).await;
    c.ok("PREPARE within AS SELECT interval '1 day' < $1, $2 + timestamp '2024-01-01'", "PREPARE").await;
    c.rows("EXECUTE within('2 days', '1 hour')", &["true|2024-01-01T01:00:00"]).await;
}

/// A constant before a column is one condition with the same behind it.
#[tokio::test]
async fn n115_constants_on_either_side() {
    let mut c = tables().await;
    for condition in [
        "id = 2 AND 2 = CASE WHEN true THEN id ELSE id END",
        "2 = id AND 2 = CASE WHEN true THEN id END",
        "2 = ALL (ARRAY[id, CASE WHEN true THEN id ELSE id END])",
        "id >= 1 AND 1 < CASE WHEN true THEN id END AND id < 3",
        "id <= 3 AND 3 > CASE WHEN true THEN id END AND id > 1",
    ] {
        c.rows(&format!("SELECT id FROM c WHERE {condition}"), &["2"]).await;
        c.rows(&format!("SELECT id FROM (SELECT * FROM c WHERE {condition}) q WHERE 2 = id"), &["2"]).await;
    }
}

/// What DataFusion loses is refused, and is no internal error.
#[tokio::test]
async fn n116_plans_that_are_lost_are_refused() {
    let mut c = tables().await;
    c.ok("CREATE TABLE l (id int NOT NULL, b boolean, g real)", "CREATE TABLE").await;
    c.ok("CREATE TABLE r (id int NOT NULL, b boolean, g real)", "CREATE TABLE").await;
    for sql in [
        "SELECT coalesce(g, g), r.id FROM l FULL JOIN r USING (g, b) \
         WHERE date '2020-02-29' - l.id > timestamp '2021-03-31'",
        "SELECT lag(1) OVER (PARTITION BY (SELECT 1) ORDER BY 1) EXCEPT SELECT NULL::int",
        "UPDATE t SET a = c.id FROM c WHERE c.id = t.a RETURNING (SELECT a FROM t AS x)",
        "SELECT string_agg((SELECT '1' FROM t LIMIT 1), ',' ORDER BY (SELECT '1' FROM t LIMIT 1)) \
         FROM c GROUP BY GROUPING SETS ((), (coalesce(id, id)))",
    ] {
        c.fails(sql, "0A000").await;
    }
}

/// Where a frame's beginning moves, bit_xor had 0 for no value.
#[tokio::test]
async fn n118_bit_xor_over_moving_frames() {
    let mut c = tables().await;
    let over = |frame: &str| format!("SELECT bit_xor(u) OVER (ORDER BY id ROWS {frame}) FROM c ORDER BY id");
    c.rows(&over("UNBOUNDED PRECEDING"), &["10", "30", "30"]).await;
    let after = |frame: &str| format!("SELECT bit_xor(u) OVER (ORDER BY id ROWS BETWEEN {frame}) FROM c ORDER BY id");
    c.rows(&after("CURRENT ROW AND CURRENT ROW"), &["10", "20", "NULL"]).await;
    c.rows(&after("1 FOLLOWING AND 2 FOLLOWING"), &["20", "NULL", "NULL"]).await;
}

/// A window function kept two names after its condition had been simplified, and was XX000.
#[tokio::test]
async fn n119_conditions_within_windows() {
    let mut c = tables().await;
    for over in ["lag(id = 9 OR u = u, 1, true)", "lag((u, id) IN ((u, id), (7, id)), 1, true)"] {
        c.rows(&format!("SELECT {over} OVER (ORDER BY id) FROM c ORDER BY id LIMIT 1"), &["true"]).await;
    }
    c.rows("SELECT max(CASE WHEN id = 9 OR id = id THEN 1 END) OVER (ORDER BY id) FROM c", &["1", "1", "1"]).await;
}

/// The inner one was false where it is NULL, and rows were kept.
#[tokio::test]
async fn n120_memberships_within_the_value_of_others() {
    let mut c = tables().await;
    c.rows("SELECT count(*) FROM c WHERE (u IN (SELECT NULL::int)) IS NULL", &["3"]).await;
    for condition in [
        "true NOT BETWEEN true AND ((id NOT IN (SELECT NULL::int)) IN (SELECT false))",
        "((u IN (SELECT NULL::int)) IN (SELECT false)) IS NULL",
        "(id > ALL (SELECT NULL::int)) = ANY (SELECT false)",
    ] {
        c.fails(&format!("SELECT count(*) FROM c WHERE {condition}"), "0A000").await;
        c.fails(&format!("SELECT count(*) FROM c LEFT JOIN t ON {condition}"), "0A000").await;
    }
}

/// Rows that DISTINCT had made one were told apart by a column that only the condition on the outer query reads.
#[tokio::test]
async fn n121_distinct_rows_of_lateral() {
    let mut c = tables().await;
    let lateral = |query: &str| format!("SELECT c.id, q.* FROM c CROSS JOIN LATERAL ({query}) AS q ORDER BY c.id");
    for query in [
        "SELECT DISTINCT 1 AS one FROM t WHERE t.a + 10 > c.id",
        "SELECT DISTINCT 1 AS one FROM t WHERE CASE WHEN t.a > 0 THEN true ELSE c.id > 0 END",
        "SELECT 1 AS one FROM t WHERE t.a + 10 > c.id GROUP BY 1 + 0 * t.a",
    ] {
        c.rows(&lateral(query), &["1|1", "2|1", "3|1"]).await;
    }
    c.rows("SELECT (SELECT DISTINCT 1 FROM t WHERE t.a + 10 > c.id) FROM c", &["1", "1", "1"]).await;
    c.rows(&lateral("SELECT DISTINCT 1 AS one FROM t WHERE t.a = c.id"), &["1|1", "2|1", "3|1"]).await;
    c.rows(
        "SELECT id FROM c WHERE 1 IN (SELECT DISTINCT 1 FROM t WHERE t.a + 10 > c.id) ORDER BY id",
        &["1", "2", "3"],
    )
    .await;
    c.rows(
        "SELECT id FROM c WHERE EXISTS (SELECT DISTINCT 1 FROM t WHERE t.a + 10 > c.id) ORDER BY 1",
        &["1", "2", "3"],
    )
    .await;
}

/// A timestamp and a timestamptz of one moment were one constant, and what was made of them had the first one's type.
#[tokio::test]
async fn n122_timestamps_with_and_without_a_zone() {
    let mut c = tables().await;
    let both = |template: &str| {
        let of = |constant: &str| template.replace("{}", constant);
        let of = [of("timestamptz '2020-01-01 00:00:00+00'"), of("timestamp '2020-01-01 00:00:00'")];
        (of.join(", "), of[1].clone() + ", " + &of[0])
    };
    for (template, rows) in [("min({})::text", 1), ("(CASE WHEN id > 0 THEN {} END)::text", 3)] {
        let (first, second) = both(template);
        let row = "2020-01-01 00:00:00+00|2020-01-01 00:00:00";
        c.rows(&format!("SELECT {first} FROM c"), &vec![row; rows]).await;
        let row = "2020-01-01 00:00:00|2020-01-01 00:00:00+00";
        c.rows(&format!("SELECT {second} FROM c"), &vec![row; rows]).await;
    }
    let windows = both("(max({}) OVER ())::text").0;
    c.rows(&format!("SELECT {windows} FROM c LIMIT 1"), &["2020-01-01 00:00:00+00|2020-01-01 00:00:00"]).await;
    c.rows("SELECT min(timestamp '1999-12-31') <= min(timestamptz '1999-12-31')", &["true"]).await;
    let grouped = both("CASE WHEN id > 0 THEN {} END").0;
    let query = format!("SELECT count(*) FROM c GROUP BY {grouped}");
    c.rows(&query, &["3"]).await;
}

/// A condition on what a derived table says of a membership took NULL for true.
#[tokio::test]
async fn n123_memberships_of_derived_tables() {
    let mut c = tables().await;
    let derived = |value: &str| format!("(SELECT {value} AS e, id AS i FROM c) AS q");
    for (value, when_true, when_null) in [
        ("1 NOT IN (SELECT NULL::int)", &[] as &[&str], &["1", "2", "3"] as &[&str]),
        ("NULL::int NOT IN (SELECT a FROM t)", &[], &["1", "2", "3"]),
        ("id NOT IN (SELECT cid FROM t)", &[], &["2"]),
        ("u NOT IN (SELECT 20)", &["1"], &["3"]),
        ("id IN (SELECT cid FROM t)", &["1", "3"], &["2"]),
        ("id > ALL (SELECT cid FROM t WHERE a < 3)", &["2", "3"], &[]),
        ("id <> ALL (SELECT a FROM t WHERE t.cid = c.id)", &["2"], &[]),
    ] {
        let from = derived(value);
        c.rows(&format!("SELECT i FROM {from} WHERE e ORDER BY 1"), when_true).await;
        c.rows(&format!("SELECT i FROM {from} WHERE e IS NULL ORDER BY 1"), when_null).await;
        c.rows(&format!("SELECT i FROM {from} JOIN t ON t.a = 1 AND e ORDER BY 1"), when_true).await;
        let shown = format!("SELECT i, e FROM {from} ORDER BY 1");
        if value.starts_with("id > ALL") {
            c.fails(&shown, "0A000").await;
            continue;
        }
        let rows = ["1", "2", "3"].map(|i| match (when_true.contains(&i), when_null.contains(&i)) {
            (true, _) => format!("{i}|true"),
            (false, true) => format!("{i}|NULL"),
            (false, false) => format!("{i}|false"),
        });
        c.rows(&shown, &rows.each_ref().map(String::as_str)).await;
    }
    c.ok(&format!("DELETE FROM t USING {} WHERE e", derived("1 NOT IN (SELECT NULL::int)")), "DELETE 0").await;
}

/// A condition with EXISTS went further down than the columns that it names.
#[tokio::test]
async fn n124_subqueries_of_derived_tables() {
    let mut c = tables().await;
    let inner = "(SELECT id + 1 AS x FROM c) AS q";
    for (value, with, without) in [
        ("EXISTS (SELECT 1 FROM t WHERE t.cid = q.x)", &["3"] as &[&str], &["2", "4"] as &[&str]),
        ("q.x > ANY (SELECT a FROM t WHERE a >= q.x - 1)", &["2", "3", "4"], &[]),
        ("(SELECT count(*) FROM t WHERE t.cid = q.x) > 0", &["3"], &["2", "4"]),
    ] {
        let from = format!("(SELECT {value} AS e, q.x FROM {inner}) AS p");
        c.rows(&format!("SELECT x FROM {from} WHERE e ORDER BY 1"), with).await;
        c.rows(&format!("SELECT x FROM {from} WHERE NOT e ORDER BY 1"), without).await;
        let joined = format!("SELECT x FROM (SELECT {value} AS e, q.x FROM {inner} LEFT JOIN t ON t.a = q.x) AS p");
        c.rows(&format!("{joined} WHERE e ORDER BY 1"), with).await;
    }
}

/// Functions with too few arguments met a defect (XX000), or had a default of their own.
#[tokio::test]
async fn n125_too_few_arguments() {
    let mut c = client().await;
    let times =
        ["date_trunc()", "date_trunc('day')", "date_part()", "date_part('day')", "date_bin()", "date_bin('1 day')"];
    let windows = ["first_value", "last_value", "nth_value", "lag", "lead", "ntile"];
    let windows = windows.map(|name| format!("{name}() OVER ()"));
    let more =
        ["first_value(1, 2) OVER ()", "nth_value(1) OVER ()", "row_number(1) OVER ()", "lag(1, 1, 1, 1) OVER ()"];
    let internal = ["equals_any()", "equals_any(1)", "differs_from_all(NULL)", "equals_any(1, ARRAY[1], 1)"];
    for call in times.into_iter().chain(windows.iter().map(String::as_str)).chain(more).chain(internal) {
        c.fails(&format!("SELECT {call}"), "42883").await;
    }
}
