//! The table and column that a column of a result is, as RowDescription tells it: what PostgreSQL 15 answers.
use crate::common::raw::*;
use crate::common::{Server, rows};
use std::collections::BTreeMap;

const DEFINITIONS: &str = "CREATE TABLE t (a int PRIMARY KEY, gone int, b text, c varchar(5), d char(4), \
     e numeric(6,2), f timestamptz); \
     ALTER TABLE t DROP COLUMN gone; \
     CREATE TABLE u (a int, x bigint, y text, b text); \
     CREATE VIEW v AS SELECT b AS vb, a + 1 AS n, a FROM t; \
     CREATE VIEW w AS SELECT a, vb FROM v; \
     INSERT INTO t VALUES (1, 'x', 'y', 'z', 1.5, '2020-01-01'); \
     INSERT INTO u VALUES (1, 2, 'y', 'z')";

/// Statements, and for each column the relation and the column's number, or `-`.
#[rustfmt::skip]
const CASES: &[(&str, &str)] = &[
    ("SELECT * FROM t", "t.1 t.3 t.4 t.5 t.6 t.7"),
    ("SELECT a, b, c, d, e, f FROM t WHERE a = 1", "t.1 t.3 t.4 t.5 t.6 t.7"),
    ("SELECT b AS other, a AS \"A\" FROM t WHERE a = 1", "t.3 t.1"),
    (
        "SELECT a + 1, -a, +a, (a), a::bigint, c::text, c::varchar, e::numeric FROM t",
        "- - - t.1 - - - -",
    ),
    (
        "SELECT b || 'x', upper(b), coalesce(b), coalesce(b, 'x'), nullif(a, 1), greatest(a), CASE WHEN true \
         THEN a END FROM t",
        "- - - - - - -",
    ),
    ("SELECT t.a, q.a FROM t, t AS q", "t.1 t.1"),
    ("SELECT * FROM t JOIN u USING (a)", "t.1 t.3 t.4 t.5 t.6 t.7 u.2 u.3 u.4"),
    ("SELECT * FROM t LEFT JOIN u USING (a)", "t.1 t.3 t.4 t.5 t.6 t.7 u.2 u.3 u.4"),
    ("SELECT * FROM t RIGHT JOIN u USING (a)", "u.1 t.3 t.4 t.5 t.6 t.7 u.2 u.3 u.4"),
    ("SELECT * FROM t FULL JOIN u USING (a)", "- t.3 t.4 t.5 t.6 t.7 u.2 u.3 u.4"),
    ("SELECT a, t.a, u.a FROM t FULL JOIN u USING (a)", "- t.1 u.1"),
    ("SELECT a, t.a, u.a FROM t RIGHT JOIN u USING (a)", "u.1 t.1 u.1"),
    ("SELECT * FROM t NATURAL JOIN u", "t.1 t.3 t.4 t.5 t.6 t.7 u.2 u.3"),
    ("SELECT * FROM t JOIN u ON t.a = u.a", "t.1 t.3 t.4 t.5 t.6 t.7 u.1 u.2 u.3 u.4"),
    ("SELECT * FROM (t JOIN u USING (a)) AS j", "t.1 t.3 t.4 t.5 t.6 t.7 u.2 u.3 u.4"),
    ("SELECT j.a, x, y FROM (t JOIN u ON t.a = u.a) AS j (a, b, c, d, e, f, g, x, y, z)", "t.1 u.2 u.3"),
    ("SELECT x, z FROM (SELECT a AS x, a + 1 AS y, b AS z FROM t) AS q", "t.1 t.3"),
    ("SELECT * FROM (SELECT a AS x, a + 1 AS y, b AS z FROM t) AS q (p, q)", "t.1 - t.3"),
    ("SELECT * FROM (SELECT * FROM (SELECT a, b FROM t LIMIT 5) AS q ORDER BY b) AS r", "t.1 t.3"),
    ("WITH q AS (SELECT a, b, a + 1 AS n FROM t) SELECT * FROM q", "t.1 t.3 -"),
    ("WITH q AS (SELECT a, b FROM t), r AS (SELECT b, a FROM q) SELECT r.*, q.a FROM q, r", "t.3 t.1 t.1"),
    ("WITH RECURSIVE q AS (SELECT a FROM t UNION SELECT a + 1 FROM q WHERE a < 3) SELECT a FROM q", "-"),
    ("WITH RECURSIVE q AS (SELECT a FROM t) SELECT a FROM q", "t.1"),
    ("SELECT * FROM v", "v.1 v.2 v.3"),
    ("SELECT * FROM w", "w.1 w.2"),
    ("SELECT vb AS x, n, a FROM v WHERE a = 1", "v.1 v.2 v.3"),
    ("SELECT q.* FROM (SELECT vb, n FROM v) AS q", "v.1 v.2"),
    ("SELECT a FROM t UNION SELECT a FROM u", "-"),
    ("SELECT a FROM t UNION ALL SELECT a FROM t", "-"),
    ("SELECT * FROM (SELECT a FROM t UNION ALL SELECT a FROM t) AS q", "-"),
    ("SELECT a FROM t EXCEPT SELECT a FROM u", "-"),
    ("SELECT a FROM t INTERSECT SELECT a FROM u", "-"),
    ("SELECT a, count(*), max(b) FROM t GROUP BY a", "t.1 - -"),
    ("SELECT a, b, count(*) FROM t GROUP BY a", "t.1 t.3 -"),
    ("SELECT b, count(*) FROM t GROUP BY 1 HAVING count(*) > 0 ORDER BY 1", "t.3 -"),
    ("SELECT a + 1, count(*) FROM t GROUP BY a + 1", "- -"),
    ("SELECT a, b FROM t GROUP BY GROUPING SETS ((a), (b))", "t.1 t.3"),
    ("SELECT a, b, count(*) FROM t GROUP BY ROLLUP (a, b)", "t.1 t.3 -"),
    ("SELECT DISTINCT b, a FROM t", "t.3 t.1"),
    ("SELECT DISTINCT b FROM t WHERE a = 1", "t.3"),
    ("SELECT DISTINCT ON (b) b, a FROM t ORDER BY b, a", "t.3 t.1"),
    ("SELECT a, b FROM t ORDER BY c LIMIT 3", "t.1 t.3"),
    ("SELECT a, b FROM t WHERE a > 0 ORDER BY a LIMIT 3", "t.1 t.3"),
    ("SELECT sum(a) FROM t WHERE a > 0", "-"),
    ("SELECT count(*) FROM t WHERE a > 0", "-"),
    ("SELECT b, row_number() OVER (ORDER BY b), max(a) OVER () FROM t", "t.3 - -"),
    ("SELECT (SELECT max(a) FROM t), (SELECT max(u.a) FROM u WHERE u.a = t.a) FROM t", "- -"),
    ("SELECT a, (SELECT max(x) FROM u WHERE u.a = t.a) FROM t", "t.1 -"),
    ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", "t.1"),
    ("SELECT a FROM t WHERE a IN (SELECT a FROM u)", "t.1"),
    ("SELECT q.x, t.b FROM t, LATERAL (SELECT u.x FROM u WHERE u.a = t.a) AS q", "u.2 t.3"),
    ("SELECT g, 1, 'x', NULL, now() FROM generate_series(1, 2) AS g", "- - - - -"),
    ("SELECT * FROM (VALUES (1, 'x')) AS q (a, b)", "- -"),
    ("VALUES (1, 2)", "- -"),
    ("SELECT +a, b COLLATE \"C\", a FROM t WHERE a = 1", "- - t.1"),
    // Casts to a column's own type are the column to PostgreSQL.
    ("SELECT a::int, b::text FROM t", "- -"),
    ("SELECT a FROM t FOR UPDATE", "t.1"),
    ("SELECT b AS x, a + 1, a FROM t WHERE a = 1 FOR SHARE", "t.3 - t.1"),
    ("INSERT INTO u VALUES (7, 8, 'x') RETURNING a, x + 1, y AS z", "u.1 - u.3"),
    ("INSERT INTO u VALUES (7, 8, 'x') RETURNING *", "u.1 u.2 u.3 u.4"),
    ("UPDATE u SET x = 5 WHERE a = 7 RETURNING *", "u.1 u.2 u.3 u.4"),
    ("UPDATE u SET x = 5 WHERE a = 7 RETURNING u.a, x + 1, b", "u.1 - u.4"),
    ("DELETE FROM u WHERE a = 7 RETURNING y, a", "u.3 u.1"),
    ("SELECT min(a), a FROM t GROUP BY a ORDER BY a", "- t.1"),
    ("SELECT t1.b, t2.b FROM t AS t1 JOIN t AS t2 USING (a)", "t.3 t.3"),
    ("SELECT q.* FROM t AS q (p, r, s)", "t.1 t.3 t.4 t.5 t.6 t.7"),
    ("SELECT p FROM t AS q (p, r, s) WHERE p = 1", "t.1"),
    ("SELECT x FROM (SELECT a FROM t) AS q (x), (SELECT b FROM t) AS r", "t.1"),
    ("SELECT unnest(ARRAY[a, 2]), a FROM t", "- t.1"),
    ("SELECT a AS b, b AS a FROM t ORDER BY a, b", "t.1 t.3"),
    ("SELECT a, a, a AS a FROM t", "t.1 t.1 t.1"),
    ("SELECT public.t.a FROM public.t", "t.1"),
    ("SELECT a FROM ONLY t", "t.1"),

];

/// Of a RowDescription.
fn origins(names: &BTreeMap<u32, String>, messages: &Messages) -> String {
    let Some((_, body)) = messages.iter().find(|(kind, _)| *kind == b'T') else { return "no columns".to_owned() };
    let (mut rest, mut shown) = (&body[2..], vec![]);
    while !rest.is_empty() {
        let name = rest.iter().position(|b| *b == 0).expect("a name ends") + 1;
        let table = u32::from_be_bytes(rest[name..name + 4].try_into().unwrap());
        let column = i16::from_be_bytes(rest[name + 4..name + 6].try_into().unwrap());
        assert_eq!(table == 0, column == 0, "both or none");
        shown.push(names.get(&table).map_or("-".to_owned(), |table| format!("{table}.{column}")));
        rest = &rest[name + 18..];
    }
    shown.join(" ")
}

fn described(sql: &str) -> Vec<u8> {
    let parse = packet(b'P', &[b"\0", sql.as_bytes(), b"\0\0\0"].concat());
    [parse, packet(b'D', b"S\0"), packet(b'S', b"")].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_say_which_they_are() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute(DEFINITIONS).await.unwrap();
    let relations = rows(&c, "SELECT oid, relname FROM pg_class WHERE relname IN ('t', 'u', 'v', 'w')").await.unwrap();
    let named = relations.iter().map(|row| row.split_once('|').expect("two columns"));
    let names: BTreeMap<u32, String> = named.map(|(oid, name)| (oid.parse().unwrap(), name.to_owned())).collect();
    assert_eq!(names.len(), 4);
    let mut raw = session(&server).await;
    for (sql, expected) in CASES {
        raw_send(&mut raw, &described(sql)).await;
        assert_eq!(origins(&names, &until_ready(&mut raw).await), *expected, "described: {sql}");
        raw_query(&mut raw, sql).await;
        assert_eq!(origins(&names, &until_ready(&mut raw).await), *expected, "{sql}");
    }
    let prepared = "BEGIN; DECLARE k CURSOR FOR SELECT b, a + 1, a AS z FROM t; FETCH 1 FROM k";
    for sql in [prepared, "COMMIT; PREPARE e AS SELECT b, a + 1, a AS z FROM t; EXECUTE e"] {
        raw_query(&mut raw, sql).await;
        assert_eq!(origins(&names, &until_ready(&mut raw).await), "t.3 - t.1", "{sql}");
    }
}
