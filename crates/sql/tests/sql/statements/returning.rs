//! RETURNING.
use crate::common::{Client, Reply, database};
use terrace_engine::Datum;

#[tokio::test]
async fn changed_rows_come_back() {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, v int DEFAULT 7, s text)", "CREATE TABLE").await;
    c.rows("INSERT INTO t VALUES (1, 10, 'a'), (2, DEFAULT, 'b') RETURNING *", &["1|10|a", "2|7|b"]).await;
    c.rows("INSERT INTO t (id) SELECT g FROM generate_series(3, 4) AS g RETURNING id * 2 AS twice, v", &["6|7", "8|7"])
        .await;
    let columns = c.columns("INSERT INTO t (id) VALUES (5) RETURNING id, v + 1, upper(s)").await;
    let names: Vec<&str> = columns.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(names, ["id", "?column?", "upper"]);
    c.rows("UPDATE t SET v = v + 1 WHERE id <= 2 RETURNING t.id, v, s || '!'", &["1|11|a!", "2|8|b!"]).await;
    c.rows("UPDATE t AS x SET v = 0 WHERE x.id = 1 RETURNING x.*", &["1|0|a"]).await;
    c.rows("UPDATE t SET v = 0 WHERE id = 99 RETURNING id", &[]).await;
    c.rows("DELETE FROM t WHERE id > 2 RETURNING id, s", &["3|NULL", "4|NULL"]).await;
    c.fails("DELETE FROM t WHERE id = 2 RETURNING (SELECT max(v) FROM t), v", "0A000").await;
    c.ok("DELETE FROM t WHERE id = 2", "DELETE 1").await;
    let reply =
        c.run_with("UPDATE t SET v = $1 WHERE id = $2 RETURNING v + $1", vec![Datum::Int4(3), Datum::Int4(1)]).await;
    assert_eq!(reply.unwrap(), Reply::Rows(vec!["6".into()]));
    c.fails("INSERT INTO t VALUES (1) RETURNING nosuch", "42703").await;
    c.fails("UPDATE t SET v = 1 RETURNING count(*)", "42803").await;
    c.fails("INSERT INTO t VALUES (1) RETURNING id", "23505").await;
    c.rows("SELECT * FROM t", &["1|3|a"]).await;
    // From another table, too.
    c.ok("CREATE TABLE u (id int, w int)", "CREATE TABLE").await;
    c.ok("INSERT INTO u VALUES (1, 100), (9, 900)", "INSERT 0 2").await;
    c.rows("UPDATE t SET v = u.w FROM u WHERE u.id = t.id RETURNING t.v", &["100"]).await;
    // A name that both tables have is neither's.
    c.fails("UPDATE t SET v = u.w FROM u WHERE u.id = t.id RETURNING id", "42702").await;
    c.fails("DELETE FROM t USING u WHERE u.id = t.id RETURNING v + id", "42702").await;
    c.fails("UPDATE t SET v = u.w FROM u WHERE u.id = t.id RETURNING nosuch", "42703").await;
    c.rows("UPDATE t SET v = u.w FROM u WHERE u.id = t.id RETURNING w, t.*, u.id", &["100|1|100|a|1"]).await;
    c.rows("UPDATE t SET v = v RETURNING id, (SELECT max(w) FROM u)", &["1|900"]).await;
    c.rows("UPDATE t SET v = u.w FROM u WHERE u.id = t.id RETURNING v", &["100"]).await;
    c.rows("DELETE FROM t USING u WHERE u.id = t.id AND u.w = 100 RETURNING t.id", &["1"]).await;
    c.rows("SELECT count(*) FROM t", &["0"]).await;
    // Within a block, the rows come and the block goes on.
    c.ok("BEGIN", "BEGIN").await;
    c.rows("INSERT INTO t VALUES (1) RETURNING v", &["7"]).await;
    c.ok("ROLLBACK", "ROLLBACK").await;
    c.rows("SELECT count(*) FROM t", &["0"]).await;
}
