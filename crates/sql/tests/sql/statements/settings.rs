//! SET, SET LOCAL, RESET, SHOW: how long a value holds.
use crate::common::{Client, Reply, database};

async fn client() -> Client {
    Client::new(&database().await)
}

#[tokio::test]
async fn a_change_belongs_to_its_transaction() {
    let mut c = client().await;
    c.ok("SET lock_timeout = '1s'", "SET").await;
    c.ok("BEGIN", "BEGIN").await;
    c.ok("SET lock_timeout = '2s'", "SET").await;
    c.ok("ROLLBACK", "ROLLBACK").await;
    c.rows("SHOW lock_timeout", &["1s"]).await;
    c.ok("BEGIN", "BEGIN").await;
    c.ok("SET lock_timeout = '3s'", "SET").await;
    c.fails("SELECT 1 / 0", "22012").await;
    c.ok("ROLLBACK", "ROLLBACK").await;
    c.rows("SHOW lock_timeout", &["1s"]).await;
    c.ok("BEGIN", "BEGIN").await;
    c.ok("SET LOCAL lock_timeout = '4s'", "SET").await;
    c.rows("SHOW lock_timeout", &["4s"]).await;
    c.ok("SET application_name = 'kept'", "SET").await;
    c.ok("COMMIT", "COMMIT").await;
    c.rows("SHOW lock_timeout", &["1s"]).await;
    c.rows("SHOW application_name", &["kept"]).await;
    // SET after SET LOCAL holds on.
    c.ok("BEGIN", "BEGIN").await;
    c.ok("SET LOCAL lock_timeout = '5s'", "SET").await;
    c.ok("SET lock_timeout = '6s'", "SET").await;
    c.ok("COMMIT", "COMMIT").await;
    c.rows("SHOW lock_timeout", &["6s"]).await;
    let outside = c.run("SET LOCAL lock_timeout = '7s'").await.unwrap();
    assert_eq!(outside, Reply::Notice("SET".into(), "25P01".into()));
    c.rows("SHOW lock_timeout", &["6s"]).await;
}

#[tokio::test]
async fn savepoints_take_settings_back() {
    let mut c = client().await;
    c.ok("BEGIN", "BEGIN").await;
    c.ok("SET lock_timeout = '1s'", "SET").await;
    c.ok("SAVEPOINT a", "SAVEPOINT").await;
    c.ok("SET lock_timeout = '2s'", "SET").await;
    c.ok("SAVEPOINT b", "SAVEPOINT").await;
    c.ok("SET LOCAL lock_timeout = '3s'", "SET").await;
    c.fails("SELECT 1 / 0", "22012").await;
    c.ok("ROLLBACK TO b", "ROLLBACK").await;
    c.rows("SHOW lock_timeout", &["2s"]).await;
    c.ok("ROLLBACK TO a", "ROLLBACK").await;
    c.rows("SHOW lock_timeout", &["1s"]).await;
    c.ok("SET lock_timeout = '4s'", "SET").await;
    c.ok("RELEASE a", "RELEASE").await;
    c.ok("COMMIT", "COMMIT").await;
    c.rows("SHOW lock_timeout", &["4s"]).await;
}

#[tokio::test]
async fn reset_goes_back_to_what_the_session_began_with() {
    let mut c = client().await;
    c.session.set("application_name", "began").unwrap();
    c.ok("SET application_name = 'x'", "SET").await;
    c.ok("RESET application_name", "RESET").await;
    c.rows("SHOW application_name", &["began"]).await;
    c.ok("SET application_name = 'x'", "SET").await;
    c.ok("SET statement_timeout = 5000", "SET").await;
    c.ok("RESET ALL", "RESET").await;
    c.rows("SELECT current_setting('application_name'), current_setting('statement_timeout')", &["began|0"]).await;
    c.ok("SET application_name TO DEFAULT", "SET").await;
    c.ok("DISCARD ALL", "DISCARD ALL").await;
    c.rows("SHOW application_name", &["began"]).await;
    c.fails("RESET nosuch", "42704").await;
    c.fails("SET nosuch = 1", "42704").await;
    c.fails("SET TimeZone = 'Europe/Nowhere'", "22023").await;
    let Reply::Rows(all) = c.run("SHOW ALL").await.unwrap() else { panic!("no rows") };
    let names: Vec<String> = all.iter().map(|row| row.split('|').next().unwrap_or_default().to_lowercase()).collect();
    assert!(names.is_sorted() && names.len() > 20, "{names:?}");
}

#[tokio::test]
async fn functions_read_and_change_settings() {
    let mut c = client().await;
    c.rows("SELECT set_config('lock_timeout', '2s', false)", &["2s"]).await;
    c.rows("SHOW lock_timeout", &["2s"]).await;
    c.ok("BEGIN", "BEGIN").await;
    c.rows("SELECT pg_catalog.set_config('lock_timeout', '3s', true)", &["3s"]).await;
    c.ok("COMMIT", "COMMIT").await;
    c.rows("SELECT current_setting('lock_timeout')", &["2s"]).await;
    c.fails("SELECT current_setting('nosuch')", "42704").await;
    c.rows("SELECT current_setting('nosuch', true)", &["NULL"]).await;
    c.fails("SELECT set_config('lock_timeout', 'x', false)", "22023").await;
    c.rows("SELECT setting, source, reset_val FROM pg_settings WHERE name = 'lock_timeout'", &["2s|session|0"]).await;
}

/// The statements that pg_dump begins with.
#[tokio::test]
async fn the_head_of_a_dump_is_taken() {
    let mut c = client().await;
    for sql in [
        "SET statement_timeout = 0",
        "SET lock_timeout = 0",
        "SET idle_in_transaction_session_timeout = 0",
        "SET client_encoding = 'UTF8'",
        "SET standard_conforming_strings = on",
        "SET check_function_bodies = false",
        "SET xmloption = content",
        "SET client_min_messages = warning",
        "SET row_security = off",
        "SET default_tablespace = ''",
        "SET default_table_access_method = heap",
    ] {
        c.ok(sql, "SET").await;
    }
    c.rows("SELECT pg_catalog.set_config('search_path', '', false)", &[""]).await;
    c.ok("CREATE TABLE public.t (a integer NOT NULL)", "CREATE TABLE").await;
}

#[tokio::test]
async fn commits_may_be_asynchronous() {
    let mut c = client().await;
    c.ok("CREATE TABLE t (a int)", "CREATE TABLE").await;
    c.ok("SET synchronous_commit = off", "SET").await;
    c.ok("INSERT INTO t VALUES (1)", "INSERT 0 1").await;
    c.rows("SELECT a FROM t", &["1"]).await;
    c.fails("SET synchronous_commit = maybe", "22023").await;
    c.rows("SHOW synchronous_commit", &["off"]).await;
}

#[tokio::test]
async fn read_only_transactions_do_not_write() {
    let mut c = client().await;
    c.ok("CREATE TABLE t (a int PRIMARY KEY, b int)", "CREATE TABLE").await;
    c.ok("CREATE SEQUENCE s", "CREATE SEQUENCE").await;
    for begin in ["BEGIN READ ONLY", "START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"] {
        for write in [
            "INSERT INTO t VALUES (1, 1)",
            "UPDATE t SET b = 2 WHERE a = 1",
            "DELETE FROM t",
            "TRUNCATE t",
            "CREATE TABLE u (a int)",
            "DROP TABLE t",
            "CREATE INDEX ON t (b)",
            "ALTER TABLE t ADD COLUMN c int",
            "COPY t FROM STDIN",
            "SELECT * FROM t FOR UPDATE",
            "SELECT nextval('s')",
            "EXPLAIN ANALYZE DELETE FROM t",
        ] {
            c.run(begin).await.unwrap();
            c.rows("SELECT count(*) FROM t", &["0"]).await;
            c.rows("SHOW transaction_read_only", &["on"]).await;
            c.fails(write, "25006").await;
            c.ok("ROLLBACK", "ROLLBACK").await;
        }
    }
    c.rows("SHOW transaction_read_only", &["off"]).await;
    c.ok("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "SET").await;
    c.fails("INSERT INTO t VALUES (1, 1)", "25006").await;
    c.ok("BEGIN", "BEGIN").await;
    c.ok("SET TRANSACTION READ WRITE", "SET").await;
    c.ok("INSERT INTO t VALUES (1, 1)", "INSERT 0 1").await;
    c.ok("COMMIT", "COMMIT").await;
    c.fails("INSERT INTO t VALUES (2, 1)", "25006").await;
    c.ok("SET default_transaction_read_only = off", "SET").await;
    c.ok("INSERT INTO t VALUES (2, 1)", "INSERT 0 1").await;
}
