//! char(n) and varchar in expressions: which blanks count. Expected: PostgreSQL 15's.
use crate::common::{Client, database};
use futures::StreamExt;
use terrace_sql::Outcome;

async fn client() -> Client {
    let mut c = Client::new(&database().await);
    c.ok(
        "CREATE TABLE t (id int PRIMARY KEY, c5 char(5), c3 char(3), v varchar(5), w varchar, x text, b bool)",
        "CREATE TABLE",
    )
    .await;
    c.ok(
        "INSERT INTO t VALUES (1, 'ab', 'ab', 'ab', 'ab', 'ab', true), (2, 'a', 'x', 'b ', 'a ', 'b  ', false)",
        "INSERT 0 2",
    )
    .await;
    c
}

/// `expression` of the first row, and whether it holds.
async fn holds(c: &mut Client, cases: &[(&str, &str)]) {
    for (expression, answer) in cases {
        c.rows(&format!("SELECT {expression} FROM t WHERE id = 1"), &[answer]).await;
    }
}

/// What sees blanks sees those of a char(n) that came out of an expression.
#[tokio::test]
async fn n59_blanks_of_expressions() {
    let mut c = client().await;
    holds(
        &mut c,
        &[
            ("CASE WHEN b THEN c5 ELSE c5 END LIKE 'ab   '", "true"),
            ("CASE WHEN b THEN c5 END LIKE 'ab'", "false"),
            ("CASE 'A'::varchar WHEN v THEN 'z'::char(5) ELSE 'z'::char(5) END !~* '^.$'", "true"),
            ("coalesce(c5, 'abcde') LIKE 'ab   '", "true"),
            ("coalesce(c5, NULL, c5) ~ '^ab   $'", "true"),
            ("nullif(c5, 'zz') ILIKE 'AB   '", "true"),
            ("octet_length(nullif('A'::char(5), 'ab'::char(5)))", "5"),
            ("greatest(c5, c5) LIKE 'ab   ', octet_length(least(c5, c5))", "true|5"),
            ("c5 ~~ 'ab', c5 ~~ 'ab   ', c5 !~~* 'AB'", "false|true|true"),
            ("(SELECT max(c5) FROM t) LIKE 'ab   '", "true"),
            ("concat(coalesce(c5, c5), '|'), (c5, 1)::text", "ab   ||(\"ab   \",1)"),
            ("c5::bytea = 'ab   '::bytea", "true"),
        ],
    )
    .await;
    c.rows("SELECT octet_length(min(c5)), max(c5) LIKE 'ab   ', max(c3) ~ '^x  $' FROM t", &["5|true|true"]).await;
    c.rows("WITH q AS (SELECT min(c5) m FROM t) SELECT octet_length(m) FROM q WHERE m LIKE 'a    '", &["5"]).await;
    c.rows("SELECT DISTINCT octet_length(z) FROM (SELECT c5 z FROM t UNION ALL SELECT c5 FROM t) q", &["5"]).await;
    c.rows("SELECT max(c5) OVER (ORDER BY id) LIKE 'ab   ' FROM t WHERE id = 1", &["true"]).await;
    c.rows(
        "SELECT z LIKE 'ab   ', z ~ '^ab   $' FROM (SELECT coalesce(c5, c5) z FROM t WHERE id = 1) q",
        &["true|true"],
    )
    .await;
}

/// How many blanks these have depends on the row.
#[tokio::test]
async fn n59_blanks_that_are_not_known_are_refused() {
    let mut c = client().await;
    for expression in [
        "CASE WHEN b THEN c5 ELSE c3 END LIKE 'ab   '",
        "CASE WHEN b THEN c5 ELSE 'ab' END LIKE 'ab   '",
        "coalesce(c5, c3) ~ '^ab'",
        "coalesce(CAST('' AS char(5)), '1') NOT LIKE ''",
        "least('A'::char(5), coalesce('1'::char(5), c5), x::char(1)) !~* '^.$'",
        "octet_length(greatest(c3, c5))",
        "concat(coalesce(c5, x))",
        "octet_length(nullif('a ', c5))",
        "(coalesce(c5, c3), 1)::text",
        "array[c5, c3]::text",
    ] {
        c.fails(&format!("SELECT {expression} FROM t"), "0A000").await;
    }
    c.fails("SELECT z LIKE 'ab   ' FROM (SELECT c5 z FROM t UNION SELECT c3 FROM t) q", "0A000").await;
    c.fails("SELECT octet_length(lag(c5, 1, 'z') OVER (ORDER BY id)) FROM t", "0A000").await;
    c.fails("SELECT unnest(a) FROM (SELECT array[c5, c3] a FROM t) q", "0A000").await;
    // Of one length they have all of them.
    c.rows("SELECT array[c5]::text, array_agg(c5)::text FROM t WHERE id = 1 GROUP BY c5", &[r#"{"ab   "}|{"ab   "}"#])
        .await;
    c.rows("SELECT u LIKE 'ab   ' FROM (SELECT unnest(array[c5, c5]) u FROM t WHERE id = 1) q", &["true", "true"])
        .await;
    // As text they have none.
    holds(
        &mut c,
        &[
            ("coalesce(c5, c3)::text LIKE 'ab', octet_length(CASE WHEN b THEN c5 ELSE 'q' END::text)", "true|2"),
            ("coalesce(c5, c3)::char(4) LIKE 'ab  ', coalesce(c5, c3) || '|'", "true|ab|"),
        ],
    )
    .await;
}

/// A cast to text is one.
#[tokio::test]
async fn a_char_as_text_has_no_blanks() {
    let mut c = client().await;
    holds(
        &mut c,
        &[
            (
                "c5::text LIKE 'ab', c5::text LIKE 'ab   ', octet_length(c5::text), c5::text ~ '^..$'",
                "true|false|2|true",
            ),
            ("c5::text = 'ab ', c5::varchar LIKE 'ab', concat(c5::text, '|')", "false|true|ab|"),
            ("c5::char(10)::text LIKE 'ab', coalesce(c5::text, 'x') LIKE 'ab'", "true|true"),
        ],
    )
    .await;
}

/// Beside a char, a constant's blanks do not count, wherever the char comes from.
#[tokio::test]
async fn chars_of_expressions_compare_without_blanks() {
    let mut c = client().await;
    holds(
        &mut c,
        &[
            (
                "coalesce(c5, c3) = 'ab ', CASE WHEN b THEN c5 ELSE c3 END = 'ab  ', coalesce(c5, 'ab   ') = 'ab'",
                "true|true|true",
            ),
            ("(SELECT max(c5) FROM t) = 'ab '", "true"),
        ],
    )
    .await;
    c.rows("SELECT min(c5) = 'a ', max(coalesce(c3, c5)) = 'x ' FROM t", &["true|true"]).await;
    c.rows("SELECT id FROM (SELECT id, CASE WHEN b THEN c5 ELSE c3 END z FROM t) q WHERE z = 'ab '", &["1"]).await;
    c.rows(
        "SELECT coalesce(c3, x) = 'b', coalesce(x, c5) = 'b', coalesce(v, c5) = 'b' FROM t WHERE id = 2",
        &["false|false|false"],
    )
    .await;
    c.rows("SELECT CASE WHEN b THEN c5 ELSE x END = 'b' FROM t WHERE id = 2", &["false"]).await;
    c.rows("SELECT CASE WHEN b THEN x ELSE c5 END = 'ab ' FROM t WHERE id = 1", &["true"]).await;
    // The array is one of texts.
    let texts = "SELECT c5 IN ('ab '::text, 'q'::text), c5 IN ('ab '::text), c5 = 'ab '::text FROM t WHERE id = 1";
    c.rows(texts, &["true|false|false"]).await;
    c.rows(
        "SELECT c5 = ANY (ARRAY['ab ', 'q']), c5 IN ('ab ', 'q'), c5 = ANY ('{\"ab \"}') FROM t WHERE id = 1",
        &["false|true|true"],
    )
    .await;
}

/// Beside a char a varchar's blanks do not count, with and without a length.
#[tokio::test]
async fn f0_varchar_beside_char() {
    let mut c = client().await;
    c.rows("SELECT id FROM t WHERE c5 = w ORDER BY id", &["1", "2"]).await;
    c.rows("SELECT id FROM t WHERE c5 <> w OR w <> c5 OR c5 IS DISTINCT FROM w", &[]).await;
    c.rows("SELECT count(*) FROM t a JOIN t b ON a.c5 = b.w", &["2"]).await;
    c.rows(
        "SELECT 'a'::char(3) = 'a '::varchar, 'a'::char(3) = 'a '::text, nullif(c5, w) FROM t WHERE id = 2",
        &["true|false|NULL"],
    )
    .await;
    c.rows(
        "SELECT c5 IN (w), w IN (c5), c5 BETWEEN w AND w, CASE c5 WHEN w THEN 1 END FROM t WHERE id = 2",
        &["true|true|true|1"],
    )
    .await;
    c.rows("SELECT id FROM t WHERE c5 IN (SELECT w FROM t) ORDER BY id", &["1", "2"]).await;
    c.rows("SELECT id FROM t WHERE w IN (SELECT c5 FROM t) ORDER BY id", &["1", "2"]).await;
    c.rows("SELECT id FROM t WHERE w LIKE 'a '", &["2"]).await;
    c.fails("SELECT w IN (c5, 'a') FROM t", "0A000").await;
    c.ok("DELETE FROM t WHERE c5 <> w", "DELETE 0").await;
}

#[tokio::test]
async fn f23_unions_have_the_type_of_the_first() {
    let mut c = client().await;
    c.rows("SELECT DISTINCT z = 'b' FROM (SELECT v z FROM t UNION SELECT c5 FROM t) q", &["false"]).await;
    c.rows(
        "SELECT octet_length(z) FROM (SELECT x z FROM t WHERE id = 2 UNION ALL SELECT c5 FROM t) q ORDER BY 1",
        &["1", "2", "3"],
    )
    .await;
    c.rows("SELECT count(*) FROM (SELECT c5 z FROM t WHERE id = 2 UNION SELECT w FROM t WHERE id = 2) q", &["1"]).await;
    c.rows("SELECT count(*) FROM (SELECT w z FROM t WHERE id = 2 UNION SELECT c5 FROM t WHERE id = 2) q", &["2"]).await;
    c.rows("SELECT c5 FROM t INTERSECT SELECT w FROM t ORDER BY 1", &["a", "ab"]).await;
    c.rows("SELECT w FROM t INTERSECT SELECT c5 FROM t ORDER BY 1", &["ab"]).await;
}

#[tokio::test]
async fn f4_string_agg_takes_texts() {
    let mut c = client().await;
    c.rows("SELECT string_agg(c5, ',' ORDER BY id), string_agg(v, NULL) FROM t WHERE id = 1", &["ab|ab"]).await;
    c.rows("SELECT string_agg(a, NULL) FROM (SELECT string_agg(x, ',') a FROM t WHERE id = 1) q", &["ab"]).await;
    c.fails("SELECT string_agg(DISTINCT '\\x12'::bytea, '\\x34'::bytea)", "0A000").await;
    c.fails("SELECT string_agg(id, ',') FROM t", "42883").await;
    c.fails("SELECT string_agg(b, ',') OVER () FROM t", "42883").await;
    c.rows("SELECT array_agg(array[id])::text FROM t", &["{{1},{2}}"]).await;
}

/// Nothing of what has left a window stays behind.
#[tokio::test]
async fn n49_pairs_in_sliding_windows() {
    let mut c = client().await;
    c.ok("CREATE TABLE p (i int PRIMARY KEY, y float8, x float8)", "CREATE TABLE").await;
    c.ok("INSERT INTO p VALUES (1, 1.1, 0.3), (2, 2.7, 1e15), (3, 2.9, 0.1), (4, 5.3, 0.7)", "INSERT 0 4").await;
    let values = "p";
    let over = "OVER (ORDER BY i ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)";
    let last = format!(
        "SELECT corr(y, x) {over}, regr_slope(y, x) {over}, covar_samp(y, x) {over}, regr_sxx(y, x) {over}, \
         regr_count(y, x) {over}, regr_avgx(y, x) {over} FROM {values} ORDER BY i DESC LIMIT 1"
    );
    c.rows(&last, &["NULL|NULL|NULL|0.0|1|0.7"]).await;
    let one =
        |f: &str| format!("SELECT {f}(y, x) OVER (ORDER BY i ROWS 1 PRECEDING) FROM {values} ORDER BY i DESC LIMIT 1");
    c.rows(&one("regr_slope"), &["4.000000000000001"]).await;
    c.rows("SELECT regr_r2(a, b) FROM (VALUES (1::float8, 1::float8), (1, 2), (1, 3)) v(a, b)", &["1.0"]).await;
    let of = "FROM (VALUES (1::float8, 1::float8), (2, 3), (4, NULL), (7, 5)) v(y, x)";
    c.rows(
        &format!(
            "SELECT regr_count(y, x), regr_avgy(y, x), regr_sxy(y, x), regr_slope(y, x), regr_intercept(y, x), \
                  corr(y, x) {of}"
        ),
        &["3|3.3333333333333335|12.0|1.5|-1.1666666666666667|0.9332565252573828"],
    )
    .await;
    c.rows(&format!("SELECT regr_count(y, x), regr_syy(y, x), covar_pop(y, x) {of} WHERE false"), &["0|NULL|NULL"])
        .await;
    c.fails("SELECT corr('a'::text, 1)", "42883").await;
}

#[tokio::test]
async fn n39_n40_n43_parts_of_texts_and_bytes() {
    let mut c = client().await;
    c.fails("SELECT substr('abc', 3, -1)", "22011").await;
    c.fails("SELECT substr('abc'::bytea, 3, -1)", "22011").await;
    let patterns = "substring('foobar' from 'o(.)b'), substring('foobar' from 'o.b'), substring('foobar', '(x)?o'), \
                    substring('abc' from 'z'), substring(c5 from '^(.)'), substring('abc' from 2), substring(c5, 1, 1)";
    holds(&mut c, &[(patterns, "o|oob|NULL|NULL|a|bc|a")]).await;
    let bytes = "substr('\\x0102030405'::bytea, 2, 3)::text, substr('\\x0102'::bytea, 0)::text, \
                 substring('\\x0102030405'::bytea from 2 for 2)::text, substr('\\x01'::bytea, -5, 7)::text";
    holds(&mut c, &[(bytes, "\\x020304|\\x0102|\\x0203|\\x01")]).await;
    holds(&mut c, &[("(interval '1 day' * (-2147483648))::text", "-2147483648 days")]).await;
}

#[tokio::test]
async fn n53_n58_types_of_ntile_and_unions() {
    let mut c = client().await;
    c.rows("SELECT date '2020-01-01' + ntile(2) OVER (ORDER BY id) FROM t ORDER BY id", &["2020-01-02", "2020-01-03"])
        .await;
    c.rows(
        "SELECT ntile(3) OVER (ORDER BY g), ntile(NULL) OVER (ORDER BY g) FROM generate_series(1, 5) g ORDER BY g",
        &["1|NULL", "1|NULL", "2|NULL", "2|NULL", "3|NULL"],
    )
    .await;
    c.rows("SELECT ntile(9) OVER (ORDER BY g) FROM generate_series(1, 2) g ORDER BY g", &["1", "2"]).await;
    c.fails("SELECT ntile(0) OVER (ORDER BY id) FROM t", "22014").await;
    c.rows(
        "WITH q AS (SELECT id a FROM t UNION ALL SELECT 0.5::float8) SELECT a / 2, 1 / a FROM q ORDER BY a",
        &["0.25|2.0", "0.5|1.0", "1.0|0.5"],
    )
    .await;
    c.fails("SELECT u FROM (VALUES ('00000000-0000-0000-0000-000000000001'::uuid), ('a')) v(u)", "22P02").await;
    c.fails("VALUES ('ab'::char(5)), ('x'::char(3))", "0A000").await;
    c.rows("SELECT x = 'a'::char(3) FROM (VALUES ('a '), ('b'::varchar), (NULL)) v(x)", &["NULL", "false", "true"])
        .await;
    c.rows("SELECT x = 'a'::char(3) FROM (VALUES ('a '::text), ('a'::varchar(5))) v(x)", &["false", "true"]).await;
}

/// What is left of a CASE has the type of the whole.
#[tokio::test]
async fn n102_a_branch_that_is_left_of_case() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE n102 (v varchar(5))", "CREATE TABLE").await;
    c.ok("INSERT INTO n102 VALUES ('x')", "INSERT 0 1").await;
    for sql in [
        "SELECT CASE WHEN true THEN 'a'::varchar ELSE 'b'::text END",
        "SELECT CASE WHEN true THEN NULL::varchar ELSE max('b'::varchar) END FROM n102",
        "SELECT CASE WHEN true THEN v ELSE 'b'::text END FROM n102",
    ] {
        let statement = c.session.prepare(sql, &[]).await.expect(sql);
        let Outcome::Rows { mut stream, .. } = c.session.execute(&statement, vec![]).await.expect(sql) else {
            panic!("{sql} is a query");
        };
        let batch = stream.next().await.expect("it has a row").expect(sql);
        assert!(batch.schema().field(0).metadata().is_empty(), "{sql}: {:?}", batch.schema());
    }
}
