//! ALTER TABLE, TRUNCATE, VACUUM, ANALYZE.
use crate::common::{Client, Reply, database};
use terrace_sql::TxnStatus;

async fn client() -> Client {
    Client::new(&database().await)
}

#[tokio::test]
async fn pgbench_tables() {
    let mut c = client().await;
    let dropped = c.run("drop table if exists pgbench_accounts, pgbench_branches").await.unwrap();
    assert_eq!(dropped, Reply::Notice("DROP TABLE".into(), "00000".into()));
    c.ok("create table pgbench_branches(bid int not null,bbalance int) with (fillfactor=100)", "CREATE TABLE").await;
    c.ok("create table pgbench_accounts(aid int not null,abalance int) with (fillfactor='100')", "CREATE TABLE").await;
    let noted = c.run("create table slack(a int) with (fillfactor=50)").await.unwrap();
    assert_eq!(noted, Reply::Notice("CREATE TABLE".into(), "01000".into()));
    c.fails("create table x(a int) with (fillfactor=5)", "22023").await;
    c.ok("begin", "BEGIN").await;
    c.ok("truncate table pgbench_accounts, pgbench_branches", "TRUNCATE TABLE").await;
    c.ok("insert into pgbench_branches(bid,bbalance) values(1,0), (2,0)", "INSERT 0 2").await;
    c.ok("end", "COMMIT").await;
    c.ok("vacuum analyze pgbench_branches", "VACUUM").await;
    c.ok("alter table pgbench_branches add primary key (bid)", "ALTER TABLE").await;
    c.fails("insert into pgbench_branches values (1, 1)", "23505").await;
    c.fails("alter table pgbench_branches add primary key (bid)", "42P16").await;
    let tuples = "select reltuples, relpages > 0 from pg_class where relname = 'pgbench_branches'";
    c.rows(tuples, &["2.0|true"]).await;
    c.rows("select reltuples from pg_class where relname = 'pgbench_accounts'", &["-1.0"]).await;
    c.ok("analyze", "ANALYZE").await;
    c.rows("select reltuples from pg_class where relname = 'pgbench_accounts'", &["0.0"]).await;
}

#[tokio::test]
async fn truncate() {
    let db = database().await;
    let (mut a, mut b) = (Client::new(&db), Client::new(&db));
    a.ok("CREATE TABLE t (id int PRIMARY KEY, v int)", "CREATE TABLE").await;
    a.ok("CREATE TABLE u (id int)", "CREATE TABLE").await;
    a.ok("INSERT INTO t SELECT g, g FROM generate_series(1, 500) AS g", "INSERT 0 500").await;
    a.ok("INSERT INTO u VALUES (1)", "INSERT 0 1").await;
    a.ok("BEGIN", "BEGIN").await;
    a.ok("TRUNCATE t, u", "TRUNCATE TABLE").await;
    a.rows("SELECT count(*) FROM t", &["0"]).await;
    a.ok("INSERT INTO t VALUES (1, 1)", "INSERT 0 1").await;
    a.ok("ROLLBACK", "ROLLBACK").await;
    a.rows("SELECT count(*), max(v) FROM t", &["500|500"]).await;
    // Who waits for it finds the table, empty.
    a.ok("BEGIN", "BEGIN").await;
    a.ok("TRUNCATE TABLE ONLY t", "TRUNCATE TABLE").await;
    let waiting = tokio::spawn(async move {
        let mut rows = vec![b.run("SELECT count(*) FROM t").await, b.run("INSERT INTO t VALUES (5, 5)").await];
        rows.push(b.run("UPDATE t SET v = 6 WHERE id = 5").await);
        rows
    });
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert!(!waiting.is_finished(), "TRUNCATE keeps everybody out");
    a.ok("COMMIT", "COMMIT").await;
    let replies: Vec<Reply> = waiting.await.unwrap().into_iter().map(|r| r.expect("the table is there")).collect();
    let tag = |t: &str| Reply::Tag(t.into());
    assert_eq!(replies, [Reply::Rows(vec!["0".into()]), tag("INSERT 0 1"), tag("UPDATE 1")]);
    a.rows("SELECT id, v FROM t", &["5|6"]).await;
    a.rows("SELECT * FROM u", &["1"]).await;
    a.fails("TRUNCATE nosuch", "42P01").await;
    a.fails("TRUNCATE t_pkey", "42809").await;
    a.ok("BEGIN", "BEGIN").await;
    a.fails("VACUUM", "25001").await;
    assert_eq!(a.session.status(), TxnStatus::Failed);
    a.ok("ROLLBACK", "ROLLBACK").await;
    for (sql, tag) in [
        ("VACUUM", "VACUUM"),
        ("VACUUM (VERBOSE, ANALYZE) t", "VACUUM"),
        ("vacuum freeze t;", "VACUUM"),
        ("ANALYZE VERBOSE public.t", "ANALYZE"),
    ] {
        a.ok(sql, tag).await;
    }
    a.fails("VACUUM nosuch", "42P01").await;
    a.fails("ANALYZE nosuch", "42P01").await;
    a.fails("VACUUM t nosuch", "42601").await;
    a.fails("VACUUM (INDEX_CLEANUP off) t", "0A000").await;
}

#[tokio::test]
async fn columns_come_and_go() {
    let mut c = client().await;
    c.ok("CREATE TABLE t (id int PRIMARY KEY, a int UNIQUE, b text)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, 10, 'x'), (2, 20, NULL)", "INSERT 0 2").await;
    c.ok("ALTER TABLE t ADD COLUMN c int", "ALTER TABLE").await;
    c.ok("ALTER TABLE t ADD d varchar(5) NOT NULL DEFAULT 'five'", "ALTER TABLE").await;
    c.ok("ALTER TABLE t ADD COLUMN e bigint DEFAULT 3 + 4, ADD COLUMN f bool", "ALTER TABLE").await;
    c.rows("SELECT * FROM t", &["1|10|x|NULL|five|7|NULL", "2|20|NULL|NULL|five|7|NULL"]).await;
    c.ok("INSERT INTO t (id) VALUES (3)", "INSERT 0 1").await;
    c.ok("UPDATE t SET e = e + 1, c = 1 WHERE id = 1", "UPDATE 1").await;
    c.rows("SELECT id, c, d, e FROM t WHERE d = 'five'", &["1|1|five|8", "2|NULL|five|7", "3|NULL|five|7"]).await;
    c.fails("ALTER TABLE t ADD COLUMN c int", "42701").await;
    c.fails("ALTER TABLE t ADD COLUMN g int NOT NULL", "23502").await;
    c.fails("ALTER TABLE t ADD COLUMN g float8 DEFAULT random()", "0A000").await;
    c.fails("ALTER TABLE t ADD COLUMN g varchar(2) DEFAULT 'long'", "22001").await;
    c.ok("CREATE INDEX t_e ON t (e, a)", "CREATE INDEX").await;
    c.ok("ALTER TABLE t DROP COLUMN a", "ALTER TABLE").await;
    c.fails("SELECT a FROM t", "42703").await;
    c.fails("ALTER TABLE t DROP COLUMN a", "42703").await;
    let skipped = c.run("ALTER TABLE t DROP COLUMN IF EXISTS a").await.unwrap();
    assert_eq!(skipped, Reply::Notice("ALTER TABLE".into(), "00000".into()));
    let catalog = c.session_catalog().await;
    assert_eq!(catalog.table("t").unwrap().indexes.len(), 1, "its indexes went with it");
    c.ok("INSERT INTO t VALUES (4, 'y', 4, 'four', 4, true)", "INSERT 0 1").await;
    c.ok("ALTER TABLE t ADD COLUMN a text DEFAULT 'back'", "ALTER TABLE").await;
    c.rows("SELECT * FROM t WHERE id > 2", &["3|NULL|NULL|five|7|NULL|back", "4|y|4|four|4|true|back"]).await;
    c.ok("DELETE FROM t WHERE a = 'back' AND id = 3", "DELETE 1").await;
    // All of it goes with a rollback.
    c.ok("BEGIN", "BEGIN").await;
    c.ok("ALTER TABLE t DROP COLUMN b", "ALTER TABLE").await;
    c.ok("UPDATE t SET c = 0", "UPDATE 3").await;
    c.ok("ROLLBACK", "ROLLBACK").await;
    c.rows("SELECT b, c FROM t", &["NULL|NULL", "x|1", "y|4"]).await;
}

#[tokio::test]
async fn names_defaults_and_keys() {
    let mut c = client().await;
    c.ok("CREATE TABLE t (id int, a int)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, NULL), (2, 5)", "INSERT 0 2").await;
    c.ok("ALTER TABLE t RENAME COLUMN a TO \"B\"", "ALTER TABLE").await;
    c.fails("ALTER TABLE t RENAME COLUMN id TO \"B\"", "42701").await;
    c.fails("ALTER TABLE t RENAME nosuch TO x", "42703").await;
    c.rows("SELECT \"B\" FROM t WHERE id = 2", &["5"]).await;
    c.fails("ALTER TABLE t ALTER COLUMN \"B\" SET NOT NULL", "23502").await;
    c.ok("UPDATE t SET \"B\" = 4 WHERE id = 1", "UPDATE 1").await;
    c.ok("ALTER TABLE t ALTER COLUMN \"B\" SET NOT NULL, ALTER \"B\" SET DEFAULT 8", "ALTER TABLE").await;
    c.ok("INSERT INTO t (id) VALUES (3)", "INSERT 0 1").await;
    c.fails("INSERT INTO t VALUES (4, NULL)", "23502").await;
    c.ok("ALTER TABLE t ALTER \"B\" DROP DEFAULT, ALTER \"B\" DROP NOT NULL", "ALTER TABLE").await;
    c.ok("INSERT INTO t (id) VALUES (4)", "INSERT 0 1").await;
    c.rows("SELECT id, \"B\" FROM t WHERE id > 2", &["3|8", "4|NULL"]).await;
    c.fails("ALTER TABLE t ALTER id SET DEFAULT 'x'", "22P02").await;
    c.ok("ALTER TABLE t ADD CONSTRAINT k UNIQUE (id)", "ALTER TABLE").await;
    c.fails("INSERT INTO t (id) VALUES (4)", "23505").await;
    c.fails("ALTER TABLE t ADD CONSTRAINT k UNIQUE (\"B\")", "42P07").await;
    c.ok("ALTER TABLE t RENAME CONSTRAINT k TO kk", "ALTER TABLE").await;
    c.fails("ALTER TABLE t DROP CONSTRAINT k", "42704").await;
    c.ok("ALTER TABLE t DROP CONSTRAINT kk", "ALTER TABLE").await;
    c.ok("INSERT INTO t (id) VALUES (4)", "INSERT 0 1").await;
    let error = c.fails("ALTER TABLE t ADD PRIMARY KEY (id)", "23505").await;
    assert_eq!(error.message, "could not create unique index \"t_pkey\"");
    c.ok("DELETE FROM t WHERE id = 4", "DELETE 2").await;
    c.ok("ALTER TABLE t ADD PRIMARY KEY (id)", "ALTER TABLE").await;
    c.fails("ALTER TABLE t ALTER id DROP NOT NULL", "42P16").await;
    c.ok("ALTER TABLE t DROP CONSTRAINT t_pkey", "ALTER TABLE").await;
    c.ok("ALTER TABLE t RENAME TO u", "ALTER TABLE").await;
    c.fails("SELECT * FROM t", "42P01").await;
    c.rows("SELECT id FROM u", &["1", "2", "3"]).await;
    c.fails("ALTER TABLE t RENAME TO v", "42P01").await;
    let skipped = c.run("ALTER TABLE IF EXISTS t RENAME TO v").await.unwrap();
    assert_eq!(skipped, Reply::Notice("ALTER TABLE".into(), "00000".into()));
}
