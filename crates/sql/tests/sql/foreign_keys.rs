//! FOREIGN KEY: what a session is told, sessions that meet, and histories that leave no row without its key.
//! (What statements answer is in `slt/foreign_keys.slt`, beside PostgreSQL.)
use crate::common::{Client, Reply, database};
use std::time::Duration;
use terrace_engine::{Datum, EngineError, Result};
use terrace_sql::SqlDatabase;

async fn tables(how: &str) -> (SqlDatabase, Client, Client) {
    let db = database().await;
    let mut c = Client::new(&db);
    c.ok("CREATE TABLE pa (id int PRIMARY KEY, x int)", "CREATE TABLE").await;
    c.ok(&format!("CREATE TABLE ch (id int PRIMARY KEY, a int REFERENCES pa {how})"), "CREATE TABLE").await;
    c.ok("INSERT INTO pa VALUES (1, 0), (2, 0), (3, 0)", "INSERT 0 3").await;
    let other = Client::new(&db);
    (db, c, other)
}

type Waiting = tokio::task::JoinHandle<(Client, Result<Reply>)>;

/// Runs a statement that has to wait, and lets it begin.
async fn waiting(mut client: Client, sql: &'static str) -> Waiting {
    let task = tokio::spawn(async move {
        let reply = client.run(sql).await;
        (client, reply)
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!task.is_finished(), "{sql} did not wait");
    task
}

fn code(reply: Result<Reply>) -> String {
    reply.map_or_else(|error| error.state.0.to_owned(), |reply| panic!("{reply:?} instead of an error"))
}

fn fields(error: &EngineError) -> [Option<&str>; 3] {
    [error.detail.as_deref(), error.table.as_deref(), error.constraint.as_deref()]
}

#[tokio::test]
async fn errors_name_both_tables_the_key_and_the_constraint() {
    let (_db, mut c, _) = tables("").await;
    let e = c.fails("INSERT INTO ch VALUES (1, 9)", "23503").await;
    assert_eq!(e.message, "insert or update on table \"ch\" violates foreign key constraint \"ch_a_fkey\"");
    assert_eq!(fields(&e), [Some("Key (a)=(9) is not present in table \"pa\"."), Some("ch"), Some("ch_a_fkey")]);
    c.ok("INSERT INTO ch VALUES (1, 1)", "INSERT 0 1").await;
    let e = c.fails("DELETE FROM pa WHERE id = 1", "23503").await;
    let message = "update or delete on table \"pa\" violates foreign key constraint \"ch_a_fkey\" on table \"ch\"";
    assert_eq!(e.message, message);
    let detail = "Key (id)=(1) is still referenced from table \"ch\".";
    assert_eq!(fields(&e), [Some(detail), Some("ch"), Some("ch_a_fkey")]);
    let e = c.fails("DROP TABLE pa", "2BP01").await;
    assert_eq!(e.detail.as_deref(), Some("constraint ch_a_fkey on table ch depends on table pa"));
    assert_eq!(e.hint.as_deref(), Some("Use DROP ... CASCADE to drop the dependent objects too."));
    let e = c.fails("TRUNCATE pa", "0A000").await;
    assert_eq!(e.detail.as_deref(), Some("Table \"ch\" references \"pa\"."));
    let dropped = c.run("DROP TABLE pa CASCADE").await.unwrap();
    assert_eq!(dropped, Reply::Notice("DROP TABLE".into(), "00000".into()));
    c.ok("INSERT INTO ch VALUES (2, 9)", "INSERT 0 1").await;
}

/// By key and by the planner, prepared and not.
#[tokio::test]
async fn every_way_to_write_is_checked() {
    let (_db, mut c, _) = tables("ON DELETE CASCADE").await;
    let insert = c.session.prepare("INSERT INTO ch VALUES ($1, $2)", &[]).await.unwrap();
    let pair = |a: i32, b: i32| vec![Datum::Int4(a), Datum::Int4(b)];
    c.execute(&insert, pair(1, 1)).await.unwrap();
    assert_eq!(code(c.execute(&insert, pair(2, 9)).await), "23503");
    let update = c.session.prepare("UPDATE ch SET a = $2 WHERE id = $1", &[]).await.unwrap();
    c.execute(&update, pair(1, 2)).await.unwrap();
    assert_eq!(code(c.execute(&update, pair(1, 9)).await), "23503");
    c.fails("UPDATE ch SET a = a + 7", "23503").await;
    c.fails("INSERT INTO ch SELECT id + 10, id + 10 FROM pa", "23503").await;
    c.fails("INSERT INTO ch VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET a = 9", "23503").await;
    c.fails("UPDATE pa SET id = 9 WHERE id = 2", "23503").await;
    // One that was recognised before the foreign key was made.
    c.ok("CREATE TABLE late (id int PRIMARY KEY, a int)", "CREATE TABLE").await;
    let late = c.session.prepare("INSERT INTO late VALUES ($1, $2)", &[]).await.unwrap();
    c.execute(&late, pair(1, 1)).await.unwrap();
    let delete = c.session.prepare("DELETE FROM pa WHERE id = $1", &[]).await.unwrap();
    c.ok("ALTER TABLE late ADD FOREIGN KEY (a) REFERENCES pa ON DELETE CASCADE", "ALTER TABLE").await;
    assert_eq!(code(c.execute(&late, pair(2, 9)).await), "23503");
    c.execute(&delete, vec![Datum::Int4(1)]).await.unwrap();
    c.execute(&delete, vec![Datum::Int4(2)]).await.unwrap();
    c.rows("SELECT id FROM late UNION ALL SELECT id FROM ch", &[]).await;
    c.rows("DELETE FROM pa RETURNING id", &["3"]).await;
}

#[tokio::test]
async fn set_default_takes_the_default_of_each_row_and_constraints_apply() {
    let db = database().await;
    let mut c = Client::new(&db);
    c.ok("CREATE TABLE pa (id int PRIMARY KEY)", "CREATE TABLE").await;
    c.ok("CREATE SEQUENCE numbers START 10", "CREATE SEQUENCE").await;
    let table = "CREATE TABLE ch (id int PRIMARY KEY, a int DEFAULT nextval('numbers') REFERENCES pa \
                 ON DELETE SET DEFAULT, b int DEFAULT nextval('numbers'), CHECK (a <> 12))";
    c.ok(table, "CREATE TABLE").await;
    c.ok("INSERT INTO pa VALUES (1), (10), (11), (12), (13)", "INSERT 0 5").await;
    c.ok("INSERT INTO ch VALUES (1, 1, 0), (2, 1, 0)", "INSERT 0 2").await;
    c.ok("DELETE FROM pa WHERE id = 1", "DELETE 1").await;
    c.rows("SELECT id, a, b FROM ch", &["1|10|0", "2|11|0"]).await;
    c.fails("DELETE FROM pa WHERE id = 10", "23514").await;
    c.ok("DELETE FROM pa WHERE id = 10", "DELETE 1").await;
    c.rows("SELECT id, a FROM ch", &["1|13", "2|11"]).await;
    // The default is what goes.
    c.ok("CREATE TABLE fix (a int DEFAULT 13 REFERENCES pa ON DELETE SET DEFAULT)", "CREATE TABLE").await;
    c.ok("INSERT INTO fix VALUES (13)", "INSERT 0 1").await;
    c.ok("DELETE FROM ch", "DELETE 2").await;
    c.fails("DELETE FROM pa WHERE id = 13", "23503").await;
}

#[tokio::test]
async fn cascades_go_through_any_number_of_tables() {
    let db = database().await;
    let mut c = Client::new(&db);
    c.ok("CREATE TABLE t0 (id int PRIMARY KEY)", "CREATE TABLE").await;
    for n in 1..=6 {
        let (table, before) = (format!("t{n}"), n - 1);
        let sql = format!(
            "CREATE TABLE {table} (id int PRIMARY KEY REFERENCES t{before} ON UPDATE CASCADE ON DELETE CASCADE)"
        );
        c.ok(&sql, "CREATE TABLE").await;
    }
    for n in 0..=6 {
        c.ok(&format!("INSERT INTO t{n} SELECT g FROM generate_series(1, 100) AS s(g)"), "INSERT 0 100").await;
    }
    c.ok("UPDATE t0 SET id = id + 1000 WHERE id <= 10", "UPDATE 10").await;
    c.rows("SELECT count(*), max(id) FROM t6", &["100|1010"]).await;
    c.ok("DELETE FROM t0 WHERE id > 50", "DELETE 60").await;
    c.rows("SELECT count(*), max(id) FROM t6", &["40|50"]).await;
    c.ok("TRUNCATE t3, t4, t5, t6", "TRUNCATE TABLE").await;
    assert!(matches!(c.run("TRUNCATE t0 CASCADE").await.unwrap(), Reply::Notice(..)));
    c.rows("SELECT count(*) FROM t2", &["0"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_and_the_deletion_of_what_it_refers_to_meet() {
    for (begin, late) in [("BEGIN", "23503"), ("BEGIN ISOLATION LEVEL REPEATABLE READ", "40001")] {
        let (_db, mut a, mut b) = tables("").await;
        // The row first.
        a.ok("BEGIN", "BEGIN").await;
        a.ok("INSERT INTO ch VALUES (1, 1)", "INSERT 0 1").await;
        b.ok("UPDATE pa SET x = x + 1 WHERE id = 1", "UPDATE 1").await;
        b.ok(begin, "BEGIN").await;
        let b = waiting(b, "DELETE FROM pa WHERE id = 1").await;
        a.ok("COMMIT", "COMMIT").await;
        let (mut b, reply) = b.await.unwrap();
        assert_eq!(code(reply), "23503");
        b.ok("ROLLBACK", "ROLLBACK").await;
        // The deletion first; it ends in either way.
        for (end, state) in [("ROLLBACK", None), ("COMMIT", Some(late))] {
            a.ok("BEGIN", "BEGIN").await;
            a.ok("DELETE FROM pa WHERE id = 2", "DELETE 1").await;
            b.ok(begin, "BEGIN").await;
            b.rows("SELECT count(*) FROM pa", &["3"]).await;
            let waits = waiting(b, "INSERT INTO ch VALUES (2, 2)").await;
            a.ok(end, end).await;
            let (back, reply) = waits.await.unwrap();
            b = back;
            match state {
                None => assert_eq!(reply.unwrap(), Reply::Tag("INSERT 0 1".into())),
                Some(state) => assert_eq!(code(reply), state),
            }
            b.ok("ROLLBACK", "ROLLBACK").await;
        }
    }
}

#[tokio::test]
async fn repeatable_read_refers_to_what_it_sees() {
    let (_db, mut a, mut b) = tables("ON DELETE CASCADE").await;
    a.ok("BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN").await;
    a.rows("SELECT count(*) FROM pa", &["3"]).await;
    b.ok("INSERT INTO pa VALUES (4, 0)", "INSERT 0 1").await;
    b.ok("INSERT INTO ch VALUES (1, 1)", "INSERT 0 1").await;
    a.ok("SAVEPOINT s", "SAVEPOINT").await;
    a.fails("INSERT INTO ch VALUES (4, 4)", "23503").await;
    a.ok("ROLLBACK TO s", "ROLLBACK").await;
    // It would have to delete a row that it does not see.
    a.fails("DELETE FROM pa WHERE id = 1", "40001").await;
    a.ok("ROLLBACK", "ROLLBACK").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deferred_is_checked_by_commit_and_by_sync() {
    let (_db, mut a, mut b) = tables("DEFERRABLE INITIALLY DEFERRED").await;
    a.fails("INSERT INTO ch VALUES (1, 9)", "23503").await;
    a.ok("BEGIN", "BEGIN").await;
    a.ok("INSERT INTO ch VALUES (1, 9)", "INSERT 0 1").await;
    let e = a.fails("COMMIT", "23503").await;
    assert_eq!(e.constraint.as_deref(), Some("ch_a_fkey"));
    a.rows("SELECT count(*) FROM ch", &["0"]).await;
    // The check of a commit waits, and is told how the other ends.
    a.ok("BEGIN", "BEGIN").await;
    a.ok("INSERT INTO ch VALUES (1, 1)", "INSERT 0 1").await;
    b.ok("BEGIN", "BEGIN").await;
    b.ok("DELETE FROM pa WHERE id = 1", "DELETE 1").await;
    let a = waiting(a, "COMMIT").await;
    b.ok("COMMIT", "COMMIT").await;
    let (mut a, reply) = a.await.unwrap();
    assert_eq!(code(reply), "23503");
    // SET CONSTRAINTS of one transaction is over with it.
    a.ok("BEGIN", "BEGIN").await;
    a.ok("SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS").await;
    a.fails("INSERT INTO ch VALUES (1, 9)", "23503").await;
    a.ok("ROLLBACK", "ROLLBACK").await;
    a.ok("BEGIN", "BEGIN").await;
    a.ok("INSERT INTO ch VALUES (1, 9)", "INSERT 0 1").await;
    a.ok("ROLLBACK", "ROLLBACK").await;
    let outside = a.run("SET CONSTRAINTS ALL DEFERRED").await.unwrap();
    assert_eq!(outside, Reply::Notice("SET CONSTRAINTS".into(), "25P01".into()));
}

/// Writers of both tables, in both isolations, who give up, go back and collide. Each ends as it may; no row is left
/// without its key.
#[tokio::test(flavor = "multi_thread")]
async fn no_history_leaves_a_row_without_its_key() {
    for how in ["", "ON DELETE CASCADE ON UPDATE CASCADE", "ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED"] {
        for index in [false, true] {
            let (db, mut c, _) = tables(how).await;
            if index {
                c.ok("CREATE INDEX ch_a ON ch (a, id)", "CREATE INDEX").await;
            }
            let writers: Vec<_> = (0..4).map(|n| tokio::spawn(write(Client::new(&db), n * 7919 + 17))).collect();
            let mut done = 0;
            for writer in writers {
                done += writer.await.unwrap();
            }
            assert!(done > 40, "{how}: only {done} transactions were committed");
            let orphans = "SELECT ch.id, a FROM ch LEFT JOIN pa ON pa.id = a WHERE a IS NOT NULL AND pa.id IS NULL";
            c.rows(orphans, &[]).await;
            assert_eq!(db.engine.check().await.unwrap(), Vec::<String>::new());
        }
    }
}

/// How many transactions it has committed.
async fn write(mut c: Client, seed: u64) -> usize {
    let mut state = seed;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut committed = 0;
    for _ in 0..60 {
        let begin = ["BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"][random(2) as usize];
        c.ok(begin, "BEGIN").await;
        let mut failed = false;
        for _ in 0..=random(3) {
            let (key, row) = (random(5), random(12));
            let sql = match random(7) {
                0 => format!("INSERT INTO pa VALUES ({key}, 0)"),
                1 => format!("DELETE FROM pa WHERE id = {key}"),
                2 => format!("UPDATE pa SET id = {} WHERE id = {key}", random(5)),
                3 => format!("UPDATE pa SET x = x + 1 WHERE id >= {key}"),
                4 => format!("DELETE FROM ch WHERE id = {row}"),
                _ => format!("INSERT INTO ch VALUES ({row}, {key}) ON CONFLICT (id) DO UPDATE SET a = {key}"),
            };
            failed = match c.run(&sql).await {
                Ok(_) => false,
                Err(e) => {
                    let expected = ["23503", "23505", "40001", "40P01"];
                    assert!(expected.contains(&e.state.0), "{sql}: {} {e}", e.state.0);
                    true
                }
            };
            if failed {
                break;
            }
        }
        match c.run(if failed || random(5) == 0 { "ROLLBACK" } else { "COMMIT" }).await {
            Ok(Reply::Tag(tag)) => committed += usize::from(tag == "COMMIT"),
            Ok(other) => panic!("{other:?}"),
            Err(e) => assert!(matches!(e.state.0, "23503" | "40001" | "40P01"), "{} {e}", e.state.0),
        }
    }
    committed
}

/// What a change entails comes after all changes that were due before it, as in PostgreSQL: the row of `d` goes by way
/// of `c`, before it is missed by way of `b` and `x`.
#[tokio::test]
async fn consequences_come_in_postgresqls_order() {
    let db = database().await;
    let mut c = Client::new(&db);
    for sql in [
        "CREATE TABLE a (id int PRIMARY KEY)",
        "CREATE TABLE b (id int PRIMARY KEY REFERENCES a ON DELETE CASCADE)",
        "CREATE TABLE c (id int PRIMARY KEY REFERENCES a ON DELETE CASCADE)",
        "CREATE TABLE x (id int PRIMARY KEY REFERENCES b ON DELETE CASCADE)",
        "CREATE TABLE d (id int REFERENCES c ON DELETE CASCADE, x int REFERENCES x)",
    ] {
        c.ok(sql, "CREATE TABLE").await;
    }
    for table in ["a", "b", "c", "x"] {
        c.ok(&format!("INSERT INTO {table} VALUES (1)"), "INSERT 0 1").await;
    }
    c.ok("INSERT INTO d VALUES (1, 1)", "INSERT 0 1").await;
    c.ok("DELETE FROM a", "DELETE 1").await;
    c.rows("SELECT count(*) FROM d", &["0"]).await;
}
