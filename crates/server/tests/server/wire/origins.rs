//! Where the columns of a result come from, as RowDescription says it: what PostgreSQL 15 answered for these.
use crate::common::Server;
use crate::common::raw::*;
use std::collections::BTreeMap;
use tokio::net::TcpStream;

const TABLES: &str = "CREATE TABLE o_t (id int PRIMARY KEY, gone int, a text, b int[]); \
    ALTER TABLE o_t DROP COLUMN gone; CREATE TABLE o_u (id int PRIMARY KEY, x int); \
    INSERT INTO o_t VALUES (1, 'a', '{1,2}'); INSERT INTO o_u VALUES (1, 2); \
    CREATE VIEW o_v AS SELECT a, id AS k, id + 1 AS n FROM o_t; CREATE VIEW o_vv AS SELECT * FROM o_v";

/// Statements, and of each column the relation and its number there; `-`: none.
const SAID: &[(&str, &str)] = &[
    ("SELECT * FROM o_t", "o_t.1 o_t.3 o_t.4"),
    ("SELECT a::text, id::bigint, a::varchar FROM o_t", "o_t.3 - -"),
    ("SELECT a, id, id + 1, a AS z FROM o_t WHERE id = 1", "o_t.3 o_t.1 - o_t.3"),
    ("SELECT * FROM o_t WHERE id BETWEEN 1 AND 3 ORDER BY id", "o_t.1 o_t.3 o_t.4"),
    ("SELECT a, b FROM o_t WHERE id = 1", "o_t.3 o_t.4"),
    ("SELECT count(*) FROM o_t WHERE id = 1", "-"),
    ("SELECT * FROM o_v", "o_v.1 o_v.2 o_v.3"),
    ("SELECT k, n + 1 FROM o_vv WHERE k = 1", "o_vv.2 -"),
    ("SELECT * FROM o_t JOIN o_u USING (id)", "o_t.1 o_t.3 o_t.4 o_u.2"),
    ("SELECT * FROM o_t RIGHT JOIN o_u USING (id)", "o_u.1 o_t.3 o_t.4 o_u.2"),
    ("SELECT * FROM o_t FULL JOIN o_u USING (id)", "- o_t.3 o_t.4 o_u.2"),
    ("SELECT j.* FROM (o_t JOIN o_u USING (id)) AS j(p, q, r, s)", "o_t.1 o_t.3 o_t.4 o_u.2"),
    ("SELECT s.* FROM (SELECT a, id * 2 AS d FROM o_t ORDER BY id LIMIT 1) s", "o_t.3 -"),
    ("WITH w AS (SELECT a, id FROM o_t) SELECT w.a, v.id FROM w JOIN w v USING (id)", "o_t.3 o_t.1"),
    ("WITH RECURSIVE r AS (SELECT id FROM o_t UNION ALL SELECT id + 1 FROM r WHERE id < 3) SELECT * FROM r", "-"),
    ("SELECT a, id, count(*) FROM o_t GROUP BY a, id ORDER BY 1", "o_t.3 o_t.1 -"),
    ("SELECT a, id, count(*) FROM o_t GROUP BY ROLLUP (a, id)", "o_t.3 o_t.1 -"),
    ("SELECT DISTINCT a FROM o_t", "o_t.3"),
    ("SELECT DISTINCT ON (a) a, id FROM o_t", "o_t.3 o_t.1"),
    ("SELECT id FROM o_t UNION ALL SELECT id FROM o_u", "-"),
    ("SELECT id FROM o_t INTERSECT SELECT id FROM o_u", "-"),
    ("SELECT a, unnest(b), generate_series(1, 2) FROM o_t", "o_t.3 - -"),
    ("SELECT t.id, u FROM o_t t, unnest(t.b) u", "o_t.1 -"),
    ("SELECT t.id, s.x FROM o_t t, LATERAL (SELECT x FROM o_u WHERE o_u.id = t.id) s", "o_t.1 o_u.2"),
    ("SELECT (SELECT a FROM o_t LIMIT 1), max(id) FROM o_t", "- -"),
    ("SELECT id, row_number() OVER (ORDER BY id) FROM o_t", "o_t.1 -"),
    ("SELECT t.a, u.x FROM o_t t JOIN o_u u ON t.id = u.id FOR UPDATE OF t", "o_t.3 o_u.2"),
    ("INSERT INTO o_u VALUES (2, 3) RETURNING *", "o_u.1 o_u.2"),
    ("UPDATE o_u SET x = 5 WHERE id = 2 RETURNING x, id AS k, x + 1", "o_u.2 o_u.1 -"),
    ("DELETE FROM o_u WHERE id = 2 RETURNING *", "o_u.1 o_u.2"),
    ("WITH d AS (INSERT INTO o_u VALUES (3, 3) RETURNING id, x) SELECT x, id FROM d", "o_u.2 o_u.1"),
    ("DELETE FROM o_u WHERE id = 3", ""),
    ("VALUES (1)", "-"),
    ("SHOW timezone", "-"),
];

/// What RowDescription says, with the names of the relations.
fn said(messages: &Messages, names: &BTreeMap<u32, String>) -> String {
    let Some((_, body)) = messages.iter().find(|(kind, _)| *kind == b'T') else { return String::new() };
    let (count, mut rest) = (u16::from_be_bytes([body[0], body[1]]), &body[2..]);
    let mut said = vec![];
    for _ in 0..count {
        let name = rest.iter().position(|byte| *byte == 0).expect("a name ends");
        let field = &rest[name + 1..];
        let table = u32::from_be_bytes(field[..4].try_into().unwrap());
        let column = u16::from_be_bytes(field[4..6].try_into().unwrap());
        said.push(match table {
            0 => {
                assert_eq!(column, 0);
                "-".to_owned()
            }
            table => format!("{}.{column}", names[&table]),
        });
        rest = &field[18..];
    }
    said.join(" ")
}

async fn asked(raw: &mut TcpStream, sql: &str) -> Messages {
    raw_query(raw, sql).await;
    let answered = until_ready(raw).await;
    assert_eq!(error_state(&answered), None, "{sql}");
    answered
}

#[tokio::test(flavor = "multi_thread")]
async fn row_description_says_where_columns_come_from() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute(TABLES).await.unwrap();
    let named = c.query("SELECT oid, relname FROM pg_class WHERE relname LIKE 'o\\_%'", &[]).await.unwrap();
    let names = named.iter().map(|row| (row.get::<_, u32>(0), row.get::<_, String>(1))).collect();
    let mut raw = session(&server).await;
    for (sql, expected) in SAID {
        assert_eq!(said(&asked(&mut raw, sql).await, &names), *expected, "{sql}");
    }
    // A prepared statement is told the same, however often it has run: by key, and with a plan that is kept.
    for (sql, expected) in SAID.iter().filter(|(sql, _)| sql.starts_with("SELECT")) {
        raw_send(&mut raw, &packet(b'P', format!("s\0{sql}\0\0\0").as_bytes())).await;
        for _ in 0..4 {
            raw_send(&mut raw, &packet(b'B', b"\0s\0\0\0\0\0\0\0")).await;
            raw_send(&mut raw, &packet(b'D', b"P\0")).await;
            raw_send(&mut raw, &packet(b'E', b"\0\0\0\0\0")).await;
            raw_send(&mut raw, &packet(b'D', b"Ss\0")).await;
        }
        raw_send(&mut raw, &packet(b'C', b"Ss\0")).await;
        raw_send(&mut raw, &packet(b'S', b"")).await;
        let answered = until_ready(&mut raw).await;
        assert_eq!(error_state(&answered), None, "{sql}");
        let told: Vec<_> = answered.into_iter().filter(|(kind, _)| *kind == b'T').collect();
        assert_eq!(told.len(), 8, "{sql}");
        assert!(told.into_iter().all(|one| said(&vec![one], &names) == *expected), "{sql}");
    }
    asked(&mut raw, "BEGIN; DECLARE k CURSOR FOR SELECT a, id FROM o_v JOIN o_t USING (a)").await;
    assert_eq!(said(&asked(&mut raw, "FETCH k").await, &names), "o_v.1 o_t.1");
    asked(&mut raw, "COMMIT; PREPARE p AS SELECT a, id FROM o_t").await;
    for _ in 0..4 {
        assert_eq!(said(&asked(&mut raw, "EXECUTE p").await, &names), "o_t.3 o_t.1");
    }
}
