//! Plans whose answers DataFusion alone would get wrong: NULLs in memberships, conditions on aggregates, UNION ALL,
//! outer joins.
use crate::common::{Client, database};

/// As the tables that the statements below were tried on in PostgreSQL.
async fn tables() -> Client {
    let mut c = Client::new(&database().await);
    for table in ["u", "w", "w2"] {
        let s = if table == "u" { "text NOT NULL" } else { "text" };
        let sql = format!("CREATE TABLE {table} (id int PRIMARY KEY, a int, b int, s {s}, d date)");
        c.ok(&sql, "CREATE TABLE").await;
    }
    let rows = "INSERT INTO u VALUES (1, 1, 10, 'a', '2020-01-01'), (2, NULL, 20, 'b', '2020-02-01'), \
                (3, 5, NULL, 'c', NULL), (4, 5, 10, 'd', '2019-01-01')";
    c.ok(rows, "INSERT 0 4").await;
    c.ok("INSERT INTO w VALUES (1, 5, 10, 'a', '2020-01-01'), (2, NULL, 20, NULL, '2020-02-01')", "INSERT 0 2").await;
    let rows =
        "INSERT INTO w2 VALUES (1, 1, 10, 'a', '2020-01-01'), (2, NULL, 20, NULL, '2020-02-01'), (3, 5, 20, 'x', NULL)";
    c.ok(rows, "INSERT 0 3").await;
    c
}

#[tokio::test]
async fn q2_not_in_with_null() {
    let mut c = tables().await;
    let w = "(SELECT a FROM w)";
    for none in ["1 NOT IN", "1 <> ALL", "a NOT IN", "a <> ALL", "NOT 1 IN", "a + 1 NOT IN", "nullif(id, 3) NOT IN"] {
        c.rows(&format!("SELECT id FROM u WHERE {none} {w}"), &[]).await;
    }
    c.rows("SELECT id FROM u WHERE nullif(id, 3) NOT IN (SELECT a FROM w WHERE a IS NOT NULL)", &["1", "2", "4"]).await;
    c.rows("SELECT id FROM u WHERE a NOT IN (SELECT a FROM w WHERE a IS NOT NULL)", &["1"]).await;
    c.rows("SELECT id FROM u WHERE a NOT IN (SELECT a FROM w WHERE false)", &["1", "2", "3", "4"]).await;
    c.rows("SELECT id FROM u WHERE NULL NOT IN (SELECT a FROM w WHERE false)", &["1", "2", "3", "4"]).await;
    c.rows(&format!("SELECT id FROM u WHERE a NOT IN {w} OR id = 3"), &["3"]).await;
    c.rows(&format!("SELECT id FROM u WHERE (a IN {w}) IS NULL"), &["1", "2"]).await;
    c.rows(&format!("SELECT id FROM u WHERE (a NOT IN {w}) IS NOT NULL"), &["3", "4"]).await;
    c.rows(&format!("SELECT id FROM u WHERE (a IN {w}) IS NOT TRUE"), &["1", "2"]).await;
    c.rows(&format!("SELECT id FROM u WHERE CASE WHEN a IN {w} THEN 1 ELSE 2 END = 2"), &["1", "2"]).await;
    // With the outer query's columns.
    c.rows("SELECT id FROM u WHERE a NOT IN (SELECT a FROM w2 WHERE w2.id > u.id)", &["3", "4"]).await;
    c.rows("SELECT id FROM u WHERE a IN (SELECT a FROM w2 WHERE w2.id >= u.id)", &["1", "3"]).await;
    c.rows("SELECT id FROM u WHERE a > ANY (SELECT a FROM w2)", &["3", "4"]).await;
    c.rows("SELECT id FROM u WHERE a > ALL (SELECT a FROM w2)", &[]).await;
    c.rows("SELECT id FROM u WHERE a >= ALL (SELECT a FROM w2 WHERE a IS NOT NULL)", &["3", "4"]).await;
    c.rows("SELECT id FROM u WHERE NOT a > ALL (SELECT a FROM w2 WHERE id < 3)", &["1"]).await;
    c.fails("SELECT id FROM u WHERE random() NOT IN (SELECT a FROM w)", "0A000").await;
    // What it comes to.
    c.ok("DELETE FROM u WHERE 1 NOT IN (SELECT a FROM w)", "DELETE 0").await;
    c.ok("UPDATE u SET b = 0 WHERE 1 <> ALL (SELECT a FROM w)", "UPDATE 0").await;
    c.rows("SELECT count(*) FROM u", &["4"]).await;
}

/// Siblings of Q2: conditions on the outer query that were taken out of where they belong.
#[tokio::test]
async fn q2_correlated_below_what_depends_on_rows() {
    let mut c = tables().await;
    for (subquery, ids) in [
        ("EXISTS (SELECT count(*) FROM w WHERE w.a = u.a)", vec!["1", "2", "3", "4"]),
        ("0 IN (SELECT count(*) FROM w WHERE w.a = u.a)", vec!["1", "2"]),
        ("EXISTS (SELECT 1 FROM w2 WHERE w2.b = u.b OFFSET 1)", vec!["2"]),
        ("EXISTS (SELECT 1 FROM w2 WHERE w2.b = u.b LIMIT 0)", vec![]),
        ("b IN (SELECT b FROM w2 WHERE w2.id > u.id ORDER BY id LIMIT 1)", vec!["2"]),
        ("EXISTS (SELECT 1 FROM (SELECT row_number() OVER () n FROM w2 WHERE w2.b = u.b) s WHERE n = 2)", vec!["2"]),
        (
            "EXISTS (SELECT 1 FROM w LEFT JOIN (SELECT * FROM w2 WHERE w2.a = u.a) q ON q.id = w.id \
             WHERE q.id IS NULL)",
            vec!["1", "2", "3", "4"],
        ),
        ("EXISTS (SELECT a FROM w2 WHERE w2.a = u.a EXCEPT ALL SELECT a FROM w)", vec!["1"]),
    ] {
        c.rows(&format!("SELECT id FROM u WHERE {subquery} ORDER BY id"), &ids).await;
    }
    c.rows("SELECT id FROM u WHERE EXISTS (SELECT 1 FROM w2 WHERE w2.b = u.b LIMIT 1)", &["1", "2", "4"]).await;
    c.rows("SELECT id FROM u WHERE (SELECT count(*) FROM w2 WHERE w2.b = u.b) = 0", &["3"]).await;
    c.rows("SELECT id FROM u WHERE EXISTS (SELECT max(id) FROM w2 WHERE w2.b = u.b GROUP BY a)", &["1", "2", "4"])
        .await;
}

#[tokio::test]
async fn q5_conditions_on_aggregates_without_groups() {
    let mut c = tables().await;
    c.rows("SELECT * FROM (SELECT 1 k, sum(a) c FROM u) q WHERE k = 2", &[]).await;
    c.rows("SELECT sum(a) FROM u HAVING (SELECT false)", &[]).await;
    c.rows("SELECT sum(a) FROM u HAVING false", &[]).await;
    c.rows("SELECT sum(a) FROM u HAVING (SELECT true)", &["11"]).await;
    c.rows("SELECT * FROM (SELECT 1 k, count(*) c FROM u GROUP BY ROLLUP (a)) q WHERE k = 2", &[]).await;
    c.rows("SELECT a, count(*) FROM u GROUP BY a HAVING (SELECT false)", &[]).await;
    // What differs from row to row stays where it was written.
    c.rows("SELECT c FROM (SELECT count(*) c FROM u) q WHERE random() < 2", &["4"]).await;
    c.rows("SELECT c FROM (SELECT count(*) c FROM u) q WHERE random() < -1", &[]).await;
}

#[tokio::test]
async fn q6_union_all_of_constants_is_sorted() {
    let mut c = tables().await;
    let union = "SELECT 2 k, id FROM u UNION ALL SELECT 1, id FROM w";
    c.rows(&format!("{union} ORDER BY k, id LIMIT 2"), &["1|1", "1|2"]).await;
    c.rows(&format!("{union} ORDER BY k DESC, id LIMIT 1"), &["2|1"]).await;
    c.rows(&format!("{union} ORDER BY k, id"), &["1|1", "1|2", "2|1", "2|2", "2|3", "2|4"]).await;
    let numbered = format!("SELECT row_number() OVER (ORDER BY k, id), k FROM ({union}) s ORDER BY 1 LIMIT 3");
    c.rows(&numbered, &["1|1", "2|1", "3|2"]).await;
}

#[tokio::test]
async fn q7_order_by_a_constant_made_null() {
    let mut c = tables().await;
    let full = "SELECT c, u.id FROM (SELECT 'a' c, id FROM w) s FULL JOIN u ON s.id = u.id";
    c.rows(&format!("{full} ORDER BY c DESC, u.id"), &["NULL|3", "NULL|4", "a|1", "a|2"]).await;
    let left = "SELECT c, u.id FROM u LEFT JOIN (SELECT 'a' c, id FROM w) s ON s.id = u.id + 2";
    c.rows(&format!("{left} ORDER BY c DESC, u.id"), &["NULL|1", "NULL|2", "NULL|3", "NULL|4"]).await;
    let rollup = "SELECT k, count(*) FROM (SELECT 1 k, id FROM u) s GROUP BY ROLLUP (k)";
    c.rows(&format!("{rollup} ORDER BY k"), &["1|4", "NULL|4"]).await;
    c.rows(&format!("{rollup} ORDER BY k DESC"), &["NULL|4", "1|4"]).await;
}

#[tokio::test]
async fn q9_multiplicities_of_intersect_and_except_all() {
    let mut c = tables().await;
    c.rows("SELECT a FROM u INTERSECT ALL SELECT a FROM w2", &["1", "5", "NULL"]).await;
    c.rows("SELECT a FROM u EXCEPT ALL SELECT a FROM w", &["1", "5"]).await;
    c.rows("SELECT b FROM u EXCEPT ALL SELECT b FROM w2", &["10", "NULL"]).await;
    c.rows("SELECT a FROM u INTERSECT SELECT a FROM w2", &["1", "5", "NULL"]).await;
    c.rows("SELECT b FROM u EXCEPT SELECT b FROM w2", &["NULL"]).await;
    let both = "(SELECT b, 1 FROM u EXCEPT ALL SELECT b, 1 FROM w) UNION ALL (SELECT a, 2 FROM u INTERSECT ALL \
                SELECT a, 2 FROM u)";
    c.rows(both, &["10|1", "1|2", "5|2", "5|2", "NULL|1", "NULL|2"]).await;
}

#[tokio::test]
async fn q10_inner_order_by_with_outer_limit() {
    let mut c = tables().await;
    let inner = "SELECT id x FROM u ORDER BY b DESC NULLS LAST, id";
    c.rows(&format!("SELECT x FROM ({inner}) s LIMIT 2 -- ORDER BY"), &["2", "1"]).await;
    c.rows(&format!("WITH s AS ({inner}) SELECT x FROM s LIMIT 2"), &["2", "1"]).await;
}

#[tokio::test]
async fn q29_date_arithmetic_on_a_join_key() {
    let mut c = tables().await;
    let join = "SELECT u.id FROM u LEFT JOIN w ON u.d = w.d WHERE";
    c.rows(&format!("{join} w.d + 1 > date '2020-01-01'"), &["1", "2"]).await;
    c.rows(&format!("{join} w.d - date '2019-01-01' > 380"), &["2"]).await;
    c.rows(&format!("{join} extract(day from w.d) = 1"), &["1", "2"]).await;
    c.rows(&format!("{join} date_trunc('year', w.d) IS NULL"), &["3", "4"]).await;
    c.rows("SELECT u.id FROM u LEFT JOIN w ON u.a = w.a WHERE w.a + 1 > 2", &["3", "4"]).await;
    c.rows("SELECT id, (SELECT max(a) + 1 FROM w WHERE w.id = u.id) m FROM u", &["1|6", "2|NULL", "3|NULL", "4|NULL"])
        .await;
}

#[tokio::test]
async fn p5_empty_scalar_subquery_is_null() {
    let mut c = tables().await;
    c.rows("SELECT 1 WHERE (SELECT s FROM u WHERE id = 99) IS NULL", &["1"]).await;
    c.rows("SELECT 1 WHERE (SELECT s FROM u WHERE id = 1) IS NULL", &[]).await;
    c.rows("SELECT (SELECT s FROM u WHERE id = 99)", &["NULL"]).await;
    c.rows("SELECT coalesce((SELECT s FROM u WHERE id = 99), 'none')", &["none"]).await;
    c.rows("SELECT coalesce((SELECT 1 WHERE false), 5)", &["5"]).await;
    c.rows("SELECT (SELECT s FROM u WHERE id = 99) || 'x'", &["NULL"]).await;
    c.rows("SELECT id, (SELECT max(s) FROM w WHERE w.id = u.id) m FROM u", &["1|a", "2|NULL", "3|NULL", "4|NULL"])
        .await;
    c.ok("UPDATE u SET b = coalesce((SELECT id FROM w WHERE id = 99), 7) WHERE id = 1", "UPDATE 1").await;
    c.rows("SELECT b FROM u WHERE id = 1", &["7"]).await;
}

#[tokio::test]
async fn p7_q3_q4_merged_columns_of_using_and_natural() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE a (x int, y int)", "CREATE TABLE").await;
    c.ok("CREATE TABLE b (x int, z int)", "CREATE TABLE").await;
    c.ok("CREATE TABLE c (x int, y int, q text)", "CREATE TABLE").await;
    c.ok("INSERT INTO a VALUES (1, 10), (2, 20), (2, 21), (NULL, 30)", "INSERT 0 4").await;
    c.ok("INSERT INTO b VALUES (2, 200), (3, 300), (NULL, 400)", "INSERT 0 3").await;
    c.ok("INSERT INTO c VALUES (2, 20, 'q'), (5, 50, 'r'), (NULL, NULL, 'n')", "INSERT 0 3").await;
    c.rows("SELECT * FROM a RIGHT JOIN b USING (x)", &["2|20|200", "2|21|200", "3|NULL|300", "NULL|NULL|400"]).await;
    let full = ["1|10|NULL", "2|20|200", "2|21|200", "3|NULL|300", "NULL|30|NULL", "NULL|NULL|400"];
    c.rows("SELECT * FROM a FULL JOIN b USING (x)", &full).await;
    c.rows("SELECT * FROM a NATURAL FULL JOIN b", &full).await;
    c.rows("SELECT * FROM (SELECT * FROM a NATURAL FULL JOIN b) s WHERE x = 3", &["3|NULL|300"]).await;
    let named = "SELECT j.x, j.z FROM (a FULL JOIN b USING (x)) AS j WHERE j.x > 1";
    c.rows(named, &["2|200", "2|200", "3|300"]).await;
    c.rows("SELECT x FROM a FULL JOIN b USING (x) ORDER BY x DESC", &["NULL", "NULL", "3", "2", "2", "1"]).await;
    c.rows("SELECT x, count(*) FROM a FULL JOIN b USING (x) GROUP BY x HAVING x > 1", &["2|2", "3|1"]).await;
    c.rows("SELECT * FROM a JOIN b USING (x) WHERE x = 2 AND y > 20", &["2|21|200"]).await;
    c.rows("SELECT a.*, b.* FROM a JOIN b USING (x) WHERE x = 2 AND y > 20", &["2|21|2|200"]).await;
    // The merged columns first, as USING names them.
    c.rows("SELECT * FROM a JOIN c USING (y, x)", &["20|2|q"]).await;
    c.rows("SELECT * FROM b JOIN c USING (x)", &["2|200|20|q"]).await;
    c.rows("SELECT * FROM b RIGHT JOIN c USING (x)", &["2|200|20|q", "5|NULL|50|r", "NULL|NULL|NULL|n"]).await;
    let three = "SELECT * FROM a FULL JOIN b USING (x) FULL JOIN c USING (x) WHERE x IS NOT NULL";
    c.rows(
        three,
        &["1|10|NULL|NULL|NULL", "2|20|200|20|q", "2|21|200|20|q", "3|NULL|300|NULL|NULL", "5|NULL|NULL|50|r"],
    )
    .await;
    c.rows("SELECT x FROM a RIGHT JOIN b USING (x) WHERE EXISTS (SELECT 1 FROM c WHERE c.x = b.x)", &["2", "2"]).await;
    c.rows("SELECT count(*) FROM a NATURAL JOIN (SELECT 1 one) s", &["4"]).await;
    c.fails("SELECT * FROM a JOIN b USING (nosuch)", "42703").await;
    c.fails("SELECT * FROM a JOIN b ON true JOIN c USING (x)", "42702").await;
}

#[tokio::test]
async fn p6_q8_named_windows() {
    let mut c = tables().await;
    let of = |over: &str, w: &str| format!("SELECT id, sum(id) OVER ({over}) FROM u WINDOW w AS ({w}) ORDER BY id");
    c.rows(&of("w", "ORDER BY id"), &["1|1", "2|3", "3|6", "4|10"]).await;
    c.rows(&of("w ORDER BY id", "PARTITION BY b"), &["1|1", "2|2", "3|3", "4|5"]).await;
    let frame = "w ROWS BETWEEN 1 PRECEDING AND CURRENT ROW";
    c.rows(&of(frame, "ORDER BY id"), &["1|1", "2|3", "3|5", "4|7"]).await;
    let chained = "SELECT id, sum(id) OVER v FROM u WINDOW w AS (PARTITION BY b), v AS (w ORDER BY id) ORDER BY id";
    c.rows(chained, &["1|1", "2|2", "3|3", "4|5"]).await;
    c.rows(
        "SELECT id FROM u WINDOW w AS (PARTITION BY b) ORDER BY rank() OVER (w ORDER BY id DESC), id",
        &["2", "3", "4", "1"],
    )
    .await;
    c.fails(&of("nosuch ORDER BY id", "ORDER BY id"), "42704").await;
    c.fails(&of("w ORDER BY id", "ORDER BY id"), "42P20").await;
    c.fails(&of("w PARTITION BY id", "ORDER BY id"), "42P20").await;
    c.fails(&of("w", "ORDER BY id ROWS 1 PRECEDING"), "42P20").await;
}

#[tokio::test]
async fn q12_count_of_rows_beside_an_outer_join() {
    let mut c = tables().await;
    c.rows("SELECT count(w.*), count(u.*), count(*) FROM u LEFT JOIN w ON u.id = w.id", &["2|4|4"]).await;
    c.rows("SELECT count(w.*) FROM w", &["2"]).await;
    c.rows("SELECT u.id, count(x.*) FROM u LEFT JOIN w x ON x.b = u.b GROUP BY u.id", &["1|1", "2|1", "3|0", "4|1"])
        .await;
    c.fails("SELECT count(s.*) FROM u LEFT JOIN (SELECT a FROM w) s ON s.a = u.a", "0A000").await;
}

#[tokio::test]
async fn q17_rows_are_compared_column_by_column() {
    let mut c = tables().await;
    c.rows("SELECT (1, 'x') < (1, NULL), row(1, NULL) = row(1, 2), row(1, NULL) = row(2, 2)", &["NULL|NULL|false"])
        .await;
    c.rows(
        "SELECT (1, 2) < (1, 3), (1, 2) <= (1, 2), (2, 1) > (1, 9), (1, 2) <> (1, NULL), (1, 2) <> (2, NULL)",
        &["true|true|true|NULL|true"],
    )
    .await;
    c.rows("SELECT row(1, NULL) IS NULL, row(NULL, NULL) IS NULL, row(1, NULL) IS NOT NULL", &["false|true|false"])
        .await;
    c.rows("SELECT (1, NULL) IS DISTINCT FROM (1, NULL), (1, NULL) IS NOT DISTINCT FROM (1, 2)", &["false|false"])
        .await;
    c.rows("SELECT id FROM u WHERE (a, b) > (1, 2)", &["1", "3", "4"]).await;
    c.rows("SELECT id FROM u WHERE (a, b) IN ((1, 10), (5, NULL))", &["1"]).await;
    c.rows("SELECT id FROM u WHERE (a, b) NOT IN ((1, 10), (6, NULL))", &["3", "4"]).await;
    c.fails("SELECT (1, 2) = (1, 2, 3)", "42601").await;
    c.fails("SELECT (random(), 2) < (1, 2)", "0A000").await;
}

#[tokio::test]
async fn q18_any_and_all_of_arrays_with_null() {
    let mut c = tables().await;
    c.rows(
        "SELECT 1 > ANY (ARRAY[1, NULL]), 2 > ANY (ARRAY[1, NULL]), 1 > ALL (ARRAY[0, NULL]), 1 > ALL (ARRAY[2, NULL])",
        &["NULL|true|NULL|false"],
    )
    .await;
    c.rows(
        "SELECT 1 = ANY (ARRAY[2, NULL]), 2 <> ALL (ARRAY[2, NULL]), 1 <> ALL (ARRAY[2, NULL])",
        &["NULL|false|NULL"],
    )
    .await;
    // Q31: with a column of the outer query.
    c.rows("SELECT id FROM u WHERE EXISTS (SELECT 1 FROM w WHERE w.a = ANY (ARRAY[u.a, 7]))", &["3", "4"]).await;
}

#[tokio::test]
async fn q24_volatile_with_queries_are_read_once() {
    let mut c = tables().await;
    c.fails("WITH q AS (SELECT random() r) SELECT a.r = b.r FROM q a, q b", "0A000").await;
    c.fails("WITH q AS (SELECT random() r), p AS (SELECT r FROM q) SELECT 1 FROM p a, p b", "0A000").await;
    c.rows("WITH q AS (SELECT random() r) SELECT r = s FROM (SELECT r, r s FROM q) t", &["true"]).await;
    c.rows("WITH q AS (SELECT id FROM u) SELECT count(*) FROM q a, q b", &["16"]).await;
}

#[tokio::test]
async fn q26_returning_beside_using() {
    let mut c = tables().await;
    c.rows("UPDATE u SET b = 1 FROM w WHERE u.id = w.id RETURNING w.id, u.b", &["1|1", "2|1"]).await;
    c.rows("DELETE FROM u USING w WHERE u.id = w.id RETURNING u.id, w.id", &["1|1", "2|2"]).await;
}

#[tokio::test]
async fn p9_order_by_a_column_that_an_alias_hides() {
    let mut c = tables().await;
    c.ok("INSERT INTO u VALUES (10, 1, 1, 'k', NULL)", "INSERT 0 1").await;
    c.rows("SELECT CAST(id AS text) AS id FROM u t ORDER BY t.id DESC", &["10", "4", "3", "2", "1"]).await;
    c.rows("SELECT CAST(id AS text) AS id FROM u t ORDER BY id, t.id", &["1", "10", "2", "3", "4"]).await;
    assert_eq!(c.columns("SELECT CAST(id AS text) AS id FROM u t ORDER BY t.id").await[0].0, "id");
}

#[tokio::test]
async fn p12_what_has_no_common_type_or_two_meanings() {
    let mut c = tables().await;
    for sql in [
        "SELECT CASE WHEN true THEN 1 ELSE s END FROM u",
        "SELECT coalesce(a, s) FROM u",
        "SELECT greatest(a, s) FROM u",
        "SELECT a FROM u UNION SELECT s FROM u",
        "SELECT id FROM u WHERE a IN (SELECT a FROM w UNION ALL SELECT s FROM w)",
        "SELECT d FROM u UNION ALL SELECT id FROM u",
    ] {
        c.fails(sql, "42804").await;
    }
    c.fails("SELECT 1 UNION SELECT 'a'", "22P02").await;
    c.fails("SELECT CASE WHEN id = 1 THEN 1 ELSE 'x' END FROM u", "22P02").await;
    c.rows("SELECT 1 UNION SELECT '2' UNION SELECT NULL", &["1", "2", "NULL"]).await;
    c.rows("SELECT CASE WHEN id = 1 THEN 1 ELSE '7' END FROM u", &["1", "7", "7", "7"]).await;
    c.rows("SELECT CASE WHEN d IS NULL THEN '2000-01-01' ELSE d END FROM u WHERE id = 3", &["2000-01-01"]).await;
    c.rows("SELECT coalesce(a, 1.5) > 1 FROM u WHERE id < 3", &["false", "true"]).await;
    c.fails("SELECT a FROM (SELECT 1 AS a, 2 AS a) s", "42702").await;
    c.fails("SELECT s.a FROM (SELECT 1 AS a, 2 AS a) s", "42702").await;
    c.rows("SELECT b FROM (SELECT 1 AS a, 2 AS a, 3 AS b) s", &["3"]).await;
}

#[tokio::test]
async fn q31_casts_within_aggregates_and_case() {
    let mut c = tables().await;
    c.rows("SELECT max(a::bigint), max(a), max(a::text) FROM u", &["5|5|5"]).await;
    c.rows("SELECT max(d::timestamp), max(d) FROM u", &["2020-02-01T00:00:00|2020-02-01"]).await;
    c.rows("SELECT CASE WHEN id = 1 THEN 1 ELSE 102::bigint END % 100 FROM u WHERE id < 3", &["1", "2"]).await;
    c.rows("SELECT coalesce(a, 7::bigint) + 1 FROM u WHERE id < 3", &["2", "8"]).await;
}

#[tokio::test]
async fn q25_grouping_sets_over_no_rows() {
    let mut c = tables().await;
    for by in
        ["ROLLUP (s)", "ROLLUP (s::char(4)::text)", "CUBE (s::char(4)::text, a + 1)", "GROUPING SETS ((), (a::text))"]
    {
        c.rows(&format!("SELECT count(*), true FROM u WHERE false GROUP BY {by}"), &["0|true"]).await;
        c.rows(&format!("SELECT count(*), true FROM u WHERE id > 100 GROUP BY {by}"), &["0|true"]).await;
    }
    c.rows("SELECT a::text, count(*) FROM u GROUP BY ROLLUP (a::text)", &["1|1", "5|2", "NULL|1", "NULL|4"]).await;
}

#[tokio::test]
async fn q11_right_join_on_false() {
    let mut c = tables().await;
    let left = "(SELECT u.id, w2.a FROM u LEFT JOIN w2 ON true) t";
    c.rows(
        &format!("SELECT * FROM {left} RIGHT JOIN generate_series(1, 2) g ON false"),
        &["NULL|NULL|1", "NULL|NULL|2"],
    )
    .await;
    c.rows(&format!("SELECT count(*), count(t.id) FROM {left} FULL JOIN w ON false"), &["14|12"]).await;
    c.rows(&format!("SELECT w.id, t.id FROM w LEFT JOIN {left} ON false"), &["1|NULL", "2|NULL"]).await;
}

/// A sibling of Q10: values are collected in the order of the subquery.
#[tokio::test]
async fn q10_collected_in_the_order_of_a_subquery() {
    let mut c = tables().await;
    let inner = "SELECT id, b, s FROM u ORDER BY b DESC NULLS LAST, id DESC";
    c.rows(&format!("SELECT array_agg(id), string_agg(s, '') FROM ({inner}) q"), &["[2, 4, 1, 3]|bdac"]).await;
    c.rows(&format!("SELECT b, array_agg(id) FROM ({inner}) q WHERE b = 10 GROUP BY b"), &["10|[4, 1]"]).await;
}

/// A scalar subquery without a row is NULL, whatever its column is; DELETE would take all rows.
#[tokio::test]
async fn n32_scalar_subqueries_are_nullable() {
    let mut c = tables().await;
    c.rows("SELECT 1 WHERE (SELECT 1 WHERE NULL::bool) IS NOT NULL", &[]).await;
    c.rows("SELECT 1 WHERE (SELECT date '2020-01-02' FROM w WHERE id = 99) IS NOT NULL", &[]).await;
    c.rows("WITH q AS (SELECT id FROM w WHERE id = 99) SELECT 1 WHERE (SELECT id FROM q) IS NOT NULL", &[]).await;
    c.rows("SELECT 1 WHERE NOT ((SELECT id FROM w WHERE id = 99) IS NULL)", &[]).await;
    c.rows("SELECT count(*) FROM u WHERE coalesce((SELECT id FROM w WHERE id = 99), 2) = 2", &["4"]).await;
    c.ok("DELETE FROM u WHERE (SELECT 1 WHERE NULL::bool) IS NOT NULL", "DELETE 0").await;
    c.ok("UPDATE u SET b = 0 WHERE (SELECT id FROM w WHERE id = 99) IS NOT NULL", "UPDATE 0").await;
}

#[tokio::test]
async fn n23_conditions_on_an_aggregate_beside_a_join() {
    let mut c = tables().await;
    let with = "WITH q AS (SELECT sum(3) c0, 1::int8 c1)";
    c.rows(&format!("{with} SELECT x FROM q CROSS JOIN LATERAL (SELECT 'a' AS x) l WHERE q.c1 <= -2"), &[]).await;
    c.rows(&format!("{with} SELECT x FROM q CROSS JOIN (SELECT 'a' AS x) l WHERE q.c1 <= -2"), &[]).await;
    c.rows("SELECT * FROM (SELECT count(*) c, 1 k FROM u) a JOIN (SELECT 2 k) b ON a.k = b.k", &[]).await;
    c.ok(&format!("PREPARE p AS {with} SELECT x FROM q CROSS JOIN (SELECT 'a' AS x) l WHERE q.c1 <= $1"), "PREPARE")
        .await;
    c.rows("EXECUTE p(-2)", &[]).await;
    c.rows("EXECUTE p(1)", &["a"]).await;
}

#[tokio::test]
async fn n34_conditions_on_grouping_sets_of_no_rows() {
    let mut c = tables().await;
    let cube = "SELECT NULL::int c0, -1 c1 FROM generate_series(1, 0) g(x) GROUP BY CUBE (g.x)";
    c.rows(&format!("SELECT 1 FROM ({cube}) q WHERE c0 <> 3"), &[]).await;
    c.rows(&format!("SELECT 1 FROM ({cube}) q WHERE c1 = -1"), &["1"]).await;
    let none = "FROM u WHERE id > 99 GROUP BY";
    c.rows(&format!("SELECT 1 FROM (SELECT 1 c0, count(*) {none} ROLLUP (a)) q WHERE c0 <> 1"), &[]).await;
    c.rows(&format!("SELECT 1 FROM (SELECT 1 c0, a {none} GROUPING SETS ((), (a))) q WHERE c0 = 2"), &[]).await;
}

#[tokio::test]
async fn n37_is_true_as_a_group() {
    let mut c = tables().await;
    c.rows("SELECT DISTINCT (a = 5) IS TRUE FROM u", &["false", "true"]).await;
    c.rows("SELECT x, count(*) FROM (SELECT (a = 5) IS TRUE x FROM u) q GROUP BY x", &["false|2", "true|2"]).await;
    c.rows(
        "SELECT DISTINCT (a = 5) IS NOT FALSE, (a = 5) IS UNKNOWN FROM u",
        &["false|false", "true|false", "true|true"],
    )
    .await;
    c.rows("SELECT count(DISTINCT (a = 5) IS TRUE) FROM u", &["2"]).await;
}

#[tokio::test]
async fn n20_windows_ordered_by_uuid_and_bytea() {
    let mut c = tables().await;
    c.ok("CREATE TABLE k (id int PRIMARY KEY, g uuid, y bytea)", "CREATE TABLE").await;
    let uuid = |n: u8| format!("'00000000-0000-0000-0000-00000000000{n}'");
    let rows = format!(
        "INSERT INTO k VALUES (1, {}, '\\x03'), (2, {}, '\\x02'), (3, {}, '\\x02'), (4, NULL, NULL)",
        uuid(1),
        uuid(2),
        uuid(2)
    );
    c.ok(&rows, "INSERT 0 4").await;
    let of = |call: &str| format!("SELECT id, {call} FROM k ORDER BY id");
    c.rows(&of("sum(id) OVER (ORDER BY g)"), &["1|1", "2|6", "3|6", "4|10"]).await;
    c.rows(&of("sum(id) OVER (ORDER BY y DESC)"), &["1|5", "2|10", "3|10", "4|4"]).await;
    c.rows(&of("rank() OVER (ORDER BY g)"), &["1|1", "2|2", "3|2", "4|4"]).await;
    let following = "sum(id) OVER (ORDER BY g RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)";
    c.rows(&of(following), &["1|10", "2|9", "3|9", "4|4"]).await;
    c.rows(&of("sum(id) OVER (ORDER BY g ROWS UNBOUNDED PRECEDING) > 0"), &["1|true", "2|true", "3|true", "4|true"])
        .await;
}

#[tokio::test]
async fn n31_a_value_less_a_correlated_sum() {
    let mut c = tables().await;
    let less = "b - (SELECT coalesce(sum(a), 0) FROM w WHERE w.id = u.id)";
    c.rows(&format!("SELECT id, {less} FROM u ORDER BY id"), &["1|5", "2|20", "3|NULL", "4|10"]).await;
    c.ok(&format!("UPDATE u SET b = {less}"), "UPDATE 4").await;
    c.rows("SELECT id, b FROM u ORDER BY id", &["1|5", "2|20", "3|NULL", "4|10"]).await;
}

#[tokio::test]
async fn n16_n18_rows_with_null() {
    let mut c = tables().await;
    c.rows("SELECT id FROM u WHERE (a, b) <= (a, b)", &["1", "4"]).await;
    c.rows("SELECT a, ROW(a, 1) IS NOT NULL FROM u GROUP BY a", &["1|true", "5|true", "NULL|false"]).await;
    c.rows("SELECT (ROW(coalesce(a, a), 1) IS NOT NULL) FROM u GROUP BY a", &["false", "true", "true"]).await;
    c.ok("DELETE FROM u WHERE (u.a, u.b) < (u.a, u.b) OR (a, b) >= (a, b)", "DELETE 2").await;
}

#[tokio::test]
async fn n21_using_over_columns_of_two_types() {
    let mut c = tables().await;
    let (int, double) = ("(SELECT id k FROM u) a", "(SELECT id::float8 k FROM w) b");
    c.rows(&format!("SELECT count(*) FROM {int} JOIN {double} USING (k)"), &["2"]).await;
    c.rows(&format!("SELECT count(*), count(k) FROM {int} FULL JOIN {double} USING (k)"), &["4|4"]).await;
    let real = "(SELECT id::real k FROM w) b";
    c.rows(&format!("SELECT count(*) FROM {int} LEFT JOIN {real} USING (k) WHERE k > 1"), &["3"]).await;
}

/// A condition on one of two columns of one name is about that one, also above a join that keeps the other's rows.
#[tokio::test]
async fn n79_conditions_stay_above_right_joins() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE a (id int PRIMARY KEY, b bool, n numeric)", "CREATE TABLE").await;
    c.ok("CREATE TABLE k (id int PRIMARY KEY, i int)", "CREATE TABLE").await;
    c.ok("INSERT INTO a VALUES (1, true, 2.5), (2, false, NULL)", "INSERT 0 2").await;
    c.ok("INSERT INTO k VALUES (1, 1), (2, 2), (5, 1), (6, 0), (8, 7)", "INSERT 0 5").await;
    for condition in ["abs(a.id) > 0", "a.id + 1::bigint IS NOT NULL", "a.id + 1 > 0", "length(a.id::text) = 1"] {
        let sql = format!("SELECT k.id FROM a RIGHT JOIN k ON a.id = k.i WHERE {condition} ORDER BY 1");
        c.rows(&sql, &["1", "2", "5"]).await;
        let sql = format!("SELECT k.id FROM k LEFT JOIN a ON a.id = k.i WHERE {condition} ORDER BY 1");
        c.rows(&sql, &["1", "2", "5"]).await;
        let sql = format!("SELECT k.id, a.id FROM a FULL JOIN k ON a.id = k.i WHERE {condition} ORDER BY 1");
        c.rows(&sql, &["1|1", "2|2", "5|1"]).await;
    }
    c.rows(
        "SELECT a.id, k.id FROM a RIGHT JOIN k ON a.id = k.i WHERE abs(a.id) IS NULL ORDER BY 2",
        &["NULL|6", "NULL|8"],
    )
    .await;
    c.rows(
        "SELECT 1.5 AS c0 FROM (SELECT 1.5 AS c0, NULL::char(5) AS c1) q RIGHT JOIN \
         (SELECT 1 AS c0, (SELECT max(n) FROM a) AS c1 ORDER BY 1, 2) r ON q.c0 = r.c1 WHERE q.c1 IS NULL",
        &["1.5"],
    )
    .await;
    let crossed = "SELECT k.id FROM a CROSS JOIN a b RIGHT JOIN k ON b.id = k.i AND a.id = k.i";
    c.rows(&format!("{crossed} WHERE a.id + 1::bigint IS NOT NULL ORDER BY 1"), &["1", "2", "5"]).await;
    c.ok("DELETE FROM k WHERE id IN (SELECT k.id FROM a RIGHT JOIN k ON a.id = k.i WHERE abs(a.id) > 1)", "DELETE 1")
        .await;
}

/// `row_number`, `rank` and `dense_rank` are bigints, as PostgreSQL has them, not numbers without a sign.
#[tokio::test]
async fn n81_places_are_bigints() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, j bigint)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 5), (2, 5), (3, 7)", "INSERT 0 3").await;
    let ranks =
        "SELECT id, - row_number() OVER w, rank() OVER w, dense_rank() OVER w FROM t WINDOW w AS (ORDER BY j, id / 3)";
    c.rows(&format!("{ranks} ORDER BY id"), &["1|-1|1|1", "2|-2|1|1", "3|-3|3|2"]).await;
    for call in ["row_number()", "rank()", "dense_rank()"] {
        let sql = format!("SELECT 1::bigint UNION ALL SELECT {call} OVER (ORDER BY j, id) FROM t");
        let columns = c.columns(&sql).await;
        assert_eq!(columns[0].1, "Int64", "{sql}");
        let sql = format!("SELECT coalesce({call} OVER (), 2::bigint) - j FROM t ORDER BY j DESC LIMIT 1");
        assert_eq!(c.columns(&sql).await[0].1, "Int64", "{sql}");
    }
    c.rows(
        "SELECT n FROM (SELECT row_number() OVER (PARTITION BY j ORDER BY id) n FROM t) q WHERE n <= 1",
        &["1", "1"],
    )
    .await;
    c.rows(
        "SELECT every(id > 1) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM t",
        &["false", "true", "true"],
    )
    .await;
    c.rows(
        "SELECT every(true) OVER (RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) EXCEPT ALL SELECT id = 1 FROM t",
        &[],
    )
    .await;
    c.fails("SELECT first_value(2) OVER (PARTITION BY (SELECT 1 FROM t WHERE id = 1) ORDER BY 1)", "0A000").await;
}

/// Two columns of one name in the conditions of a correlated subquery: `a.id` and `u.id` would become one.
#[tokio::test]
async fn n82_correlated_conditions_of_two_columns_of_one_name() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE a (id int, b bool)", "CREATE TABLE").await;
    c.ok("CREATE TABLE k (id int PRIMARY KEY, i int)", "CREATE TABLE").await;
    c.ok("INSERT INTO a VALUES (1, false), (2, true), (3, false)", "INSERT 0 3").await;
    c.ok("INSERT INTO k VALUES (1, NULL), (2, 0), (3, 5), (4, 1), (5, -3)", "INSERT 0 5").await;
    let both = "a CROSS JOIN k u WHERE (1 < t.i OR 1 > (u.id - a.id))";
    for (sql, rows) in [
        (format!("SELECT count(*) FROM k t CROSS JOIN LATERAL (SELECT a.b FROM {both}) q"), vec!["39"]),
        (format!("SELECT t.id FROM k t WHERE EXISTS (SELECT 1 FROM {both}) ORDER BY 1"), vec!["1", "2", "3", "4", "5"]),
        (format!("SELECT t.id FROM k t WHERE t.id IN (SELECT a.id FROM {both}) ORDER BY 1"), vec!["1", "2", "3"]),
        (format!("SELECT t.id FROM k t WHERE t.id NOT IN (SELECT a.id FROM {both}) ORDER BY 1"), vec!["4", "5"]),
        (
            "SELECT (SELECT count(*) FROM a CROSS JOIN k u WHERE u.id = t.id AND a.id = t.id) FROM k t ORDER BY t.id"
                .into(),
            vec!["1", "1", "1", "0", "0"],
        ),
        (
            "SELECT t.id, q.id FROM k t LEFT JOIN LATERAL \
             (SELECT u.id FROM a JOIN k u ON a.id = u.id + 1 WHERE a.id = t.id) q ON true ORDER BY 1"
                .into(),
            vec!["1|NULL", "2|1", "3|2", "4|NULL", "5|NULL"],
        ),
        (
            "SELECT t.id FROM k t WHERE EXISTS (SELECT * FROM a JOIN k u ON a.id = u.id + 1 WHERE u.id = t.id) \
             ORDER BY 1"
                .into(),
            vec!["1", "2"],
        ),
    ] {
        c.rows(&sql, &rows).await;
    }
    // What reads one of them is answered, and so is what names the result otherwise.
    let sql = "SELECT count(*) FROM k t CROSS JOIN LATERAL \
               (SELECT a.b FROM a CROSS JOIN (SELECT id AS other FROM k) u WHERE 1 < t.i OR 1 > (other - a.id)) q";
    c.rows(sql, &["39"]).await;
    let sql =
        "SELECT t.id FROM k t WHERE EXISTS (SELECT 1 FROM a JOIN k u ON a.id = u.id + 1 WHERE u.id = t.id) ORDER BY 1";
    c.rows(sql, &["1", "2"]).await;
    let sql = "SELECT t.id, q.x FROM k t JOIN LATERAL (SELECT u.id AS x FROM a JOIN k u ON a.id = u.id + 1 \
               WHERE a.id = t.id) q ON true ORDER BY 1";
    c.rows(sql, &["2|1", "3|2"]).await;
    c.rows(
        "SELECT q.id FROM k t JOIN LATERAL (SELECT a.id FROM a WHERE a.id = t.id + 1) q ON true ORDER BY 1",
        &["2", "3"],
    )
    .await;
    for earlier in ["interval '2 years'", "interval '3000000 days'", "(now() - timestamptz '3000-01-01 BC')"] {
        c.fails(&format!("SELECT timestamptz '4713-02-01 00:00:00+00 BC' - {earlier}"), "22008").await;
    }
}

#[tokio::test]
async fn n83_unions_of_with_recursive_that_do_not_recurse() {
    let mut c = Client::new(&database().await);
    let with = "WITH RECURSIVE w(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM w WHERE n < 4), \
                v AS (SELECT n AS c FROM w UNION SELECT 1 ORDER BY 1 DESC LIMIT 2)";
    c.rows(&format!("{with} SELECT c FROM v ORDER BY 1"), &["3", "4"]).await;
    c.rows(&format!("{with} SELECT count(*) FROM v JOIN w ON w.n = v.c"), &["2"]).await;
    c.rows("WITH RECURSIVE w AS (SELECT 1 AS n UNION ALL SELECT 2 ORDER BY n DESC LIMIT 1) SELECT n FROM w", &["2"])
        .await;
    for end in ["LIMIT 2", "ORDER BY 1", "OFFSET 1"] {
        let sql = format!(
            "WITH RECURSIVE w(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM w WHERE n < 4 {end}) SELECT * FROM w"
        );
        c.fails(&sql, "0A000").await;
    }
}

/// NOT IN in ON, where the subquery has a NULL.
#[tokio::test]
async fn n84_memberships_in_conditions_of_joins() {
    let mut c = tables().await;
    let nothing = "(SELECT stddev_pop(id) FROM u WHERE NULL::bool)";
    c.rows(&format!("SELECT count(*) FROM u JOIN w ON 1.5 NOT IN {nothing}"), &["0"]).await;
    c.rows(&format!("SELECT count(*) FROM u JOIN w ON u.id = w.id AND 1.5 NOT IN {nothing}"), &["0"]).await;
    c.rows("SELECT count(*) FROM u JOIN w ON u.id = w.id AND u.id NOT IN (SELECT a FROM u)", &["0"]).await;
    c.rows("SELECT count(*) FROM u JOIN w ON u.id = w.id AND u.id + 0 NOT IN (SELECT NULL::int)", &["0"]).await;
    c.rows("SELECT count(*) FROM u JOIN w ON u.id IN (SELECT id FROM u) AND w.id = u.id AND u.id = 1", &["1"]).await;
    c.rows(&format!("SELECT count(*) FROM u LEFT JOIN w ON 1.5 NOT IN {nothing}"), &["4"]).await;
    c.rows(&format!("SELECT count(*) FROM u RIGHT JOIN w ON 1.5 NOT IN {nothing}"), &["2"]).await;
    c.fails(&format!("SELECT count(*) FROM u FULL JOIN w ON 1.5 NOT IN {nothing}"), "0A000").await;
    c.rows("SELECT count(w.id) FROM u LEFT JOIN w ON w.id NOT IN (SELECT NULL::int)", &["0"]).await;
}

/// Joins by IS NOT DISTINCT FROM beside others lost the rows of NULLs, or found them by `=`.
#[tokio::test]
async fn n92_joins_that_take_nulls_for_equal() {
    let mut c = tables().await;
    let same = "a.a IS NOT DISTINCT FROM b.a";
    c.rows(&format!("SELECT count(*) FROM u a JOIN u b ON {same}"), &["6"]).await;
    c.rows(&format!("SELECT count(*) FROM u a JOIN u b ON {same} CROSS JOIN w"), &["12"]).await;
    c.rows(&format!("SELECT count(*) FROM u a JOIN u b ON {same} JOIN u d ON d.a = b.a"), &["9"]).await;
    c.rows(&format!("SELECT count(*) FROM u d JOIN u a ON d.a = a.a JOIN u b ON {same}"), &["9"]).await;
    c.rows(&format!("SELECT count(*) FROM u a, u b, w WHERE {same} AND a.id = w.id"), &["2"]).await;
}

/// A constant with a written type and the same one without were taken for two: the second condition hid the first.
#[tokio::test]
async fn n93_a_constant_has_one_value_whatever_type_is_written() {
    let mut c = tables().await;
    c.ok("CREATE TABLE texts (id int PRIMARY KEY, c char(3), v varchar(3), t text)", "CREATE TABLE").await;
    c.ok("INSERT INTO texts VALUES (1, 'ab', 'ab', 'ab'), (2, 'b', 'b', 'b')", "INSERT 0 2").await;
    for (column, written) in
        [("c", "char(3)"), ("v", "varchar(3)"), ("t", "varchar(3)"), ("t", "text"), ("c", "char(2)")]
    {
        for condition in [
            format!("{column} <> 'ab'::{written} AND {column} = 'ab'"),
            format!("{column} NOT IN ('ab'::{written}) AND {column} = 'ab'"),
            format!("{column} NOT IN ('ab'::{written}, 'x') AND {column} IN ('ab', 'y')"),
            format!("NOT ({column} = 'ab'::{written}) AND {column} IN ('ab')"),
        ] {
            c.rows(&format!("SELECT id FROM texts WHERE {condition}"), &[]).await;
        }
        let both = format!("SELECT id FROM texts WHERE {column} = 'ab'::{written} AND {column} = 'ab'");
        c.rows(&both, &["1"]).await;
    }
    c.rows("SELECT id FROM texts WHERE t <> CAST('ab' AS varchar(5)) AND t = 'ab'::varchar(3)", &[]).await;
}
