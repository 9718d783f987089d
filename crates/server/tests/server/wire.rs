//! The protocol as a driver sees it, and as bytes.
mod literals;
mod opening;
mod origins;
mod sessions;
mod types;
use crate::common::raw::*;
use crate::common::{PATIENCE, Server, rows, shown, soon, state, waits};
use std::pin::pin;
use std::time::Duration;
use terrace_server::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::error::ErrorPosition;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{NoTls, SimpleQueryMessage};

#[tokio::test(flavor = "multi_thread")]
async fn simple_queries_and_tags() {
    let server = Server::start().await;
    let c = server.client().await;
    let all = "CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'x'), (2, NULL); \
               SELECT a, b FROM t ORDER BY a; UPDATE t SET b = 'y' WHERE a = 2; DELETE FROM t WHERE a = 1;";
    let messages = c.simple_query(all).await.unwrap();
    assert_eq!(shown(&messages), ["1|x", "2|NULL"]);
    let counts = |m: &SimpleQueryMessage| match m {
        SimpleQueryMessage::CommandComplete(n) => Some(*n),
        _ => None,
    };
    assert_eq!(messages.iter().filter_map(counts).collect::<Vec<_>>(), [0, 2, 2, 1, 1]);
    assert_eq!(rows(&c, "SELECT count(*) FROM t").await.unwrap(), ["1"]);
    assert!(rows(&c, "").await.unwrap().is_empty());
    assert!(rows(&c, " ; ").await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_all_types() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute("CREATE TABLE t (b bool, i int, l bigint, f float8, s text, v varchar(5), w timestamp)")
        .await
        .unwrap();
    c.batch_execute("INSERT INTO t VALUES (true, -1, 9223372036854775807, 1e-5, 'a b', 'ü', '2020-02-29 12:34:56.5')")
        .await
        .unwrap();
    c.batch_execute("INSERT INTO t VALUES (NULL, NULL, NULL, NULL, NULL, NULL, NULL)").await.unwrap();
    let mut found = rows(&c, "SELECT * FROM t").await.unwrap();
    found.sort();
    let nulls = ["NULL"; 7].join("|");
    assert_eq!(found, [nulls.as_str(), "t|-1|9223372036854775807|1e-05|a b|ü|2020-02-29 12:34:56.5"]);
}

/// tokio-postgres asks for everything in binary.
#[tokio::test(flavor = "multi_thread")]
async fn prepared_statements_in_binary() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute(
        "CREATE TABLE t (b bool, i int PRIMARY KEY, l bigint, f float8, s text, v varchar(5), w timestamp)",
    )
    .await
    .unwrap();
    let insert = c.prepare("INSERT INTO t (b, i, l, f, s, v) VALUES ($1, $2, $3, $4, $5, $6)").await.unwrap();
    let types = [Type::BOOL, Type::INT4, Type::INT8, Type::FLOAT8, Type::TEXT, Type::VARCHAR];
    assert_eq!(insert.params(), types);
    let values: [&(dyn ToSql + Sync); 6] = [&true, &1i32, &(1i64 << 40), &0.5f64, &"text", &"ünicö"];
    assert_eq!(c.execute(&insert, &values).await.unwrap(), 1);
    let none: [&(dyn ToSql + Sync); 6] =
        [&None::<bool>, &2i32, &None::<i64>, &None::<f64>, &None::<&str>, &None::<&str>];
    assert_eq!(c.execute(&insert, &none).await.unwrap(), 1);
    let select = c.prepare("SELECT b, i, l, f, s, v, w FROM t WHERE i = $1").await.unwrap();
    let columns: Vec<Type> = select.columns().iter().map(|c| c.type_().clone()).collect();
    assert_eq!(columns, [&types[..], &[Type::TIMESTAMP]].concat());
    let row = c.query_one(&select, &[&1i32]).await.unwrap();
    assert_eq!((row.get::<_, bool>(0), row.get::<_, i32>(1), row.get::<_, i64>(2)), (true, 1, 1 << 40));
    assert_eq!((row.get::<_, f64>(3), row.get::<_, &str>(4), row.get::<_, &str>(5)), (0.5, "text", "ünicö"));
    let row = c.query_one(&select, &[&2i32]).await.unwrap();
    assert_eq!((row.get::<_, Option<bool>>(0), row.get::<_, Option<&str>>(5)), (None, None));
    assert!(c.query_opt(&select, &[&3i32]).await.unwrap().is_none());
    assert_eq!(state(c.execute(&insert, &[&true, &9i32, &1i64, &0.5f64, &"s", &"toolong"]).await), "22001");
}

/// A client that was told integers is not sent texts.
#[tokio::test(flavor = "multi_thread")]
async fn n103_prepared_statements_whose_columns_became_others() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute("CREATE TABLE t (id int PRIMARY KEY, c int); INSERT INTO t VALUES (1, 2)").await.unwrap();
    let planned = c.prepare("SELECT c FROM t").await.unwrap();
    let by_key = c.prepare("SELECT c FROM t WHERE id = $1").await.unwrap();
    assert_eq!(c.query_one(&planned, &[]).await.unwrap().get::<_, i32>(0), 2);
    assert_eq!(c.query_one(&by_key, &[&1i32]).await.unwrap().get::<_, i32>(0), 2);
    c.batch_execute("ALTER TABLE t DROP COLUMN c; ALTER TABLE t ADD COLUMN c text DEFAULT 'abc'").await.unwrap();
    assert_eq!(state(c.query(&planned, &[]).await), "0A000");
    assert_eq!(state(c.query(&by_key, &[&1i32]).await), "0A000");
    assert_eq!(c.query_one("SELECT c FROM t WHERE id = $1", &[&1i32]).await.unwrap().get::<_, &str>(0), "abc");
}

/// A value's binary form, whatever its type.
#[derive(Debug)]
struct Raw(Vec<u8>);

impl<'a> tokio_postgres::types::FromSql<'a> for Raw {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Raw, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Raw(raw.to_vec()))
    }
    fn accepts(_: &Type) -> bool {
        true
    }
}

impl ToSql for Raw {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut bytes::BytesMut,
    ) -> Result<tokio_postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(tokio_postgres::types::IsNull::No)
    }
    fn accepts(_: &Type) -> bool {
        true
    }
    tokio_postgres::types::to_sql_checked!();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_in_text_and_binary() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute(
        "CREATE TABLE t (id int PRIMARY KEY, s smallint, r real, n numeric(8, 2), p numeric, c char(4), \
         b bytea, d date, z timestamptz, u uuid)",
    )
    .await
    .unwrap();
    c.batch_execute(
        "INSERT INTO t VALUES (1, -7, 0.1, 12.3, 1.50, 'ab', '\\x00ff', '2020-02-29', '2020-01-01 12:00+02', \
         'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')",
    )
    .await
    .unwrap();
    let shown =
        "1|-7|0.1|12.30|1.50|ab  |\\x00ff|2020-02-29|2020-01-01 10:00:00+00|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
    assert_eq!(rows(&c, "SELECT * FROM t").await.unwrap(), [shown]);
    let answers =
        "SELECT interval '1 month 2 days 3 hours', 2.50, 1.0 / 3, date '0044-03-15 BC', c || '!', 'ab'::char(3) FROM t";
    assert_eq!(
        rows(&c, answers).await.unwrap(),
        ["1 mon 2 days 03:00:00|2.50|0.33333333333333333333|0044-03-15 BC|ab!|ab "]
    );
    let select = c.prepare("SELECT * FROM t WHERE id = $1").await.unwrap();
    let types: Vec<Type> = select.columns().iter().map(|c| c.type_().clone()).collect();
    let of_columns = [
        Type::INT4,
        Type::INT2,
        Type::FLOAT4,
        Type::NUMERIC,
        Type::NUMERIC,
        Type::BPCHAR,
        Type::BYTEA,
        Type::DATE,
        Type::TIMESTAMPTZ,
        Type::UUID,
    ];
    assert_eq!(types, of_columns);
    let row = c.query_one(&select, &[&1i32]).await.unwrap();
    let raw: Vec<Raw> = (1..10).map(|i| row.get::<_, Raw>(i)).collect();
    assert_eq!(raw[2].0, [0, 2, 0, 0, 0, 0, 0, 2, 0, 12, 0x0b, 0xb8], "12.30");
    assert_eq!(raw[4].0, b"ab  ");
    assert_eq!(raw[6].0, 7364i32.to_be_bytes(), "days since 2000-01-01");
    // What came in binary goes back in binary, and is the same row.
    let insert = c.prepare("INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)").await.unwrap();
    assert_eq!(insert.params(), of_columns);
    let id = Raw(2i32.to_be_bytes().to_vec());
    let values: Vec<&(dyn ToSql + Sync)> = [&id].into_iter().chain(&raw).map(|v| v as &(dyn ToSql + Sync)).collect();
    assert_eq!(c.execute(&insert, &values).await.unwrap(), 1);
    assert_eq!(rows(&c, "SELECT * FROM t WHERE id = 2").await.unwrap(), [shown.replacen('1', "2", 1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_carry_what_drivers_read() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute("CREATE TABLE t (a int PRIMARY KEY, b text NOT NULL)").await.unwrap();
    c.batch_execute("INSERT INTO t VALUES (1, 'x')").await.unwrap();
    let error = c.batch_execute("INSERT INTO t VALUES (1, 'y')").await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!((error.code().code(), error.severity()), ("23505", "ERROR"));
    assert_eq!((error.table(), error.constraint()), (Some("t"), Some("t_pkey")));
    let error = c.batch_execute("INSERT INTO t VALUES (2, NULL)").await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!((error.code().code(), error.column()), ("23502", Some("b")));
    for (sql, wanted) in [("SELEC 1", "42601"), ("SELECT * FROM nope", "42P01"), ("SELECT nope FROM t", "42703")] {
        assert_eq!(state(c.batch_execute(sql).await), wanted, "{sql}");
        assert_eq!(state(c.prepare(sql).await), wanted, "{sql}");
    }
    assert_eq!(rows(&c, "SELECT b FROM t").await.unwrap(), ["x"], "the session goes on");
}

/// psql shows the line and points at the place.
#[tokio::test(flavor = "multi_thread")]
async fn syntax_errors_have_their_place() {
    let server = Server::start().await;
    let c = server.client().await;
    for (sql, message, position) in [
        ("SELEC 1", "syntax error at or near \"SELEC\"", 1),
        ("SELECT 'ü' FROM", "syntax error at end of input", 16),
        ("SELECT 'ü', 'a", "unterminated quoted string at or near \"'a\"", 13),
        ("SELECT a b c", "syntax error at or near \"c\"", 12),
    ] {
        let simple = c.batch_execute(&format!("SELECT 1; {sql}")).await.unwrap_err();
        let extended = c.prepare(sql).await.unwrap_err();
        for (error, before) in [(simple, 10), (extended, 0)] {
            let error = error.as_db_error().unwrap();
            assert_eq!((error.code().code(), error.message()), ("42601", message), "{sql}");
            assert_eq!(error.position(), Some(&ErrorPosition::Original(position + before)), "{sql}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_string_of_statements_is_one_transaction() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute("CREATE TABLE t (a int PRIMARY KEY)").await.unwrap();
    assert_eq!(state(c.batch_execute("INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)").await), "23505");
    assert!(rows(&c, "SELECT * FROM t").await.unwrap().is_empty());
    c.batch_execute("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)").await.unwrap();
    assert_eq!(rows(&c, "SELECT count(*) FROM t").await.unwrap(), ["2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_transaction_refuses_until_it_ends() {
    let server = Server::start().await;
    let mut c = server.client().await;
    c.batch_execute("CREATE TABLE t (a int PRIMARY KEY)").await.unwrap();
    let txn = c.transaction().await.unwrap();
    txn.batch_execute("INSERT INTO t VALUES (1)").await.unwrap();
    assert_eq!(state(txn.batch_execute("SELECT nope").await), "42703");
    assert_eq!(state(txn.batch_execute("SELECT 1").await), "25P02");
    assert_eq!(state(txn.prepare("SELECT 1").await), "25P02");
    txn.rollback().await.unwrap();
    assert!(rows(&c, "SELECT * FROM t").await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn portals_hand_out_rows_in_parts() {
    let server = Server::start().await;
    let mut c = server.client().await;
    c.batch_execute("CREATE TABLE t (a int PRIMARY KEY)").await.unwrap();
    let values: Vec<String> = (0..1000).map(|i| format!("({i})")).collect();
    c.batch_execute(&format!("INSERT INTO t VALUES {}", values.join(","))).await.unwrap();
    let txn = c.transaction().await.unwrap();
    let portal = txn.bind("SELECT a FROM t ORDER BY a", &[]).await.unwrap();
    let other = txn.bind("SELECT a FROM t WHERE a < 3 ORDER BY a", &[]).await.unwrap();
    let mut seen: Vec<i32> = vec![];
    for wanted in [300, 300, 300, 100, 0] {
        let part = txn.query_portal(&portal, 300).await.unwrap();
        assert_eq!(part.len(), wanted);
        seen.extend(part.iter().map(|r| r.get::<_, i32>(0)));
        assert!(txn.query_portal(&other, 1).await.unwrap().len() <= 1, "two portals do not disturb each other");
    }
    assert_eq!(seen, (0..1000).collect::<Vec<_>>());
    txn.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_wait_is_cancelled() {
    let server = Server::start().await;
    let (a, b) = (server.client().await, server.client().await);
    a.batch_execute("CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 1)").await.unwrap();
    a.batch_execute("BEGIN; UPDATE t SET b = 2 WHERE a = 1").await.unwrap();
    let mut blocked = pin!(b.batch_execute("UPDATE t SET b = 3 WHERE a = 1"));
    waits(&mut blocked).await;
    b.cancel_token().cancel_query(NoTls).await.unwrap();
    assert_eq!(state(soon(blocked).await), "57014");
    a.batch_execute("COMMIT").await.unwrap();
    assert_eq!(rows(&b, "SELECT b FROM t").await.unwrap(), ["2"], "the session goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_cancelled_on_their_way() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute("CREATE TABLE t (a int PRIMARY KEY)").await.unwrap();
    let values: Vec<String> = (0..1000).map(|i| format!("({i})")).collect();
    c.batch_execute(&format!("INSERT INTO t VALUES {}", values.join(","))).await.unwrap();
    // A thousand million rows.
    let token = c.cancel_token();
    let mut endless = pin!(c.query_raw("SELECT x.a FROM t x, t y, t z", Vec::<i32>::new()));
    let stream = soon(&mut endless).await.unwrap();
    let mut stream = pin!(stream);
    use futures::StreamExt;
    soon(stream.next()).await.unwrap().unwrap();
    token.cancel_query(NoTls).await.unwrap();
    let end = async {
        loop {
            match stream.next().await {
                Some(Ok(_)) => {}
                Some(Err(e)) => return Err(e),
                None => return Ok(()),
            }
        }
    };
    assert_eq!(state(soon(end).await), "57014");
    assert_eq!(rows(&c, "SELECT 1").await.unwrap(), ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_of_many_rows_is_cancelled_before_there_is_one() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute("CREATE TABLE t (a int PRIMARY KEY)").await.unwrap();
    let values: Vec<String> = (0..1000).map(|i| format!("({i})")).collect();
    c.batch_execute(&format!("INSERT INTO t VALUES {}", values.join(","))).await.unwrap();
    for endless in [
        "SELECT count(*) FROM t a, t b, t c, t d",
        "SELECT count(*) FROM t a JOIN t b ON a.a <> b.a JOIN t c ON c.a <> b.a JOIN t d ON d.a <> c.a",
        "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT 1 FROM r) SELECT count(*) FROM r",
    ] {
        let mut count = pin!(c.batch_execute(endless));
        waits(&mut count).await;
        c.cancel_token().cancel_query(NoTls).await.unwrap();
        assert_eq!(state(soon(count).await), "57014", "{endless}");
    }
    assert_eq!(rows(&c, "SELECT 1").await.unwrap(), ["1"], "the session goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_secret_cancels_nothing() {
    let server = Server::start().await;
    let (a, b) = (server.client().await, server.client().await);
    a.batch_execute("CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 1)").await.unwrap();
    a.batch_execute("BEGIN; UPDATE t SET b = 2 WHERE a = 1").await.unwrap();
    let mut blocked = pin!(b.batch_execute("UPDATE t SET b = 3 WHERE a = 1"));
    waits(&mut blocked).await;
    for pid in 0..10u32 {
        let mut raw = TcpStream::connect(server.address).await.unwrap();
        let packet = [16u32, 80877102, pid, 12345].map(u32::to_be_bytes).concat();
        raw.write_all(&packet).await.unwrap();
        assert_eq!(raw.read_to_end(&mut vec![]).await.unwrap(), 0, "a cancel request is not answered");
    }
    waits(&mut blocked).await;
    a.batch_execute("COMMIT").await.unwrap();
    soon(blocked).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_connect() {
    let server = Server::with(Limits { max_connections: 2, ..Limits::default() }).await;
    let refused = async |user: &str, database: &str| {
        let mut config = server.config();
        state(server.connect(config.user(user).dbname(database)).await.map(|_| ()))
    };
    assert_eq!(refused("mallory", "terrace").await, "28000");
    assert_eq!(refused("terrace", "other").await, "3D000");
    let first = server.client().await;
    let _second = server.client().await;
    assert_eq!(refused("terrace", "terrace").await, "53300");
    drop(first);
    let again = async {
        while server.connect(&server.config()).await.is_err() {
            pause(Duration::from_millis(10)).await;
        }
    };
    soon(again).await;
}

#[expect(clippy::disallowed_methods, reason = "tests run on tokio")]
async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_is_rolled_back() {
    let server = Server::start().await;
    let (a, b) = (server.client().await, server.client().await);
    a.batch_execute("CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 1)").await.unwrap();
    a.batch_execute("BEGIN; UPDATE t SET b = 2 WHERE a = 1").await.unwrap();
    let mut blocked = pin!(b.execute("UPDATE t SET b = b + 10 WHERE a = 1", &[]));
    waits(&mut blocked).await;
    drop(a);
    assert_eq!(soon(blocked).await.unwrap(), 1);
    assert_eq!(rows(&b, "SELECT b FROM t").await.unwrap(), ["11"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_tells_clients() {
    let server = Server::start().await;
    let (idle, busy) = (server.client().await, server.client().await);
    idle.batch_execute("CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 1)").await.unwrap();
    idle.batch_execute("BEGIN; UPDATE t SET b = 2 WHERE a = 1").await.unwrap();
    let mut raw = session(&server).await;
    let mut blocked = pin!(busy.batch_execute("UPDATE t SET b = 3 WHERE a = 1"));
    waits(&mut blocked).await;
    let (stopped, busy_end) = soon(async { tokio::join!(server.stop(), blocked) }).await;
    stopped.unwrap();
    assert_eq!(state(busy_end), "57P01");
    assert_eq!(error_state(&messages(&mut raw).await), Some("57P01".to_owned()));
    assert!(idle.batch_execute("SELECT 1").await.is_err());
}

// --- bytes ---

#[tokio::test(flavor = "multi_thread")]
async fn startup_tells_what_drivers_ask_for() {
    let server = Server::start().await;
    let mut raw = TcpStream::connect(server.address).await.unwrap();
    raw.write_all(&[8u32, 80877103].map(u32::to_be_bytes).concat()).await.unwrap();
    assert_eq!(raw.read_u8().await.unwrap(), b'N');
    let body = b"\0\x03\0\x02user\0terrace\0application_name\0me\0_pq_.x\0y\0\0";
    raw.write_all(&[&(body.len() as u32 + 4).to_be_bytes()[..], body].concat()).await.unwrap();
    let all = until_ready(&mut raw).await;
    assert_eq!(kinds(&all), format!("vR{}KZ", "S".repeat(13)));
    let has =
        |name: &str, value: &str| all.iter().any(|(k, b)| *k == b'S' && *b == format!("{name}\0{value}\0").as_bytes());
    assert!(has("server_encoding", "UTF8") && has("application_name", "me") && has("integer_datetimes", "on"));
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_bytes_end_their_connection_only() {
    let server = Server::with(Limits { max_message: 1 << 16, ..Limits::default() }).await;
    for body in [&b"\0\x03\0\0user\0terrace"[..], b"\0\x03\0\0\xff\xff", b"", b"abc", b"\0\x03\0\0\0"] {
        let mut raw = startup(&server, body).await;
        let state = error_state(&messages(&mut raw).await).unwrap();
        assert!(["08P01", "28000", "22021", "0A000"].contains(&state.as_str()), "{state}");
    }
    for bytes in [&b"z\0\0\0\x04"[..], b"Q\0\0\0\x03", b"Q\x7f\xff\xff\xff", b"Q\xff\xff\xff\xff"] {
        let mut raw = session(&server).await;
        raw.write_all(bytes).await.unwrap();
        assert_eq!(error_state(&messages(&mut raw).await), Some("08P01".to_owned()), "{bytes:?}");
    }
    // A whole message with a body that makes no sense fails like a statement: the stream can still be followed.
    let mut raw = session(&server).await;
    raw.write_all(&packet(b'B', b"\0\0\xff\xff")).await.unwrap();
    raw.write_all(&packet(b'E', b"\0\0\0\0\0")).await.unwrap();
    raw.write_all(&packet(b'S', b"")).await.unwrap();
    let answer = until_ready(&mut raw).await;
    assert_eq!((kinds(&answer), error_state(&answer)), ("EZ".to_owned(), Some("08P01".to_owned())));
    raw.write_all(&packet(b'Q', b"SELECT 1")).await.unwrap();
    assert_eq!(error_state(&until_ready(&mut raw).await), Some("08P01".to_owned()), "no NUL at the end");
    raw.write_all(&packet(b'Q', b"SELECT 1\0")).await.unwrap();
    assert_eq!(kinds(&until_ready(&mut raw).await), "TDCZ");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_skips_to_sync() {
    let server = Server::start().await;
    let mut raw = session(&server).await;
    let pipeline = [
        packet(b'P', b"\0SELECT nope\0\0\0"),
        packet(b'B', b"\0\0\0\0\0\0\0\0"),
        packet(b'E', b"\0\0\0\0\0"),
        packet(b'H', b""),
        packet(b'S', b""),
        packet(b'P', b"\0SELECT 1\0\0\0"),
        packet(b'B', b"\0\0\0\0\0\0\0\0"),
        packet(b'D', b"P\0"),
        packet(b'E', b"\0\0\0\0\0"),
        packet(b'S', b""),
    ];
    raw.write_all(&pipeline.concat()).await.unwrap();
    let first = until_ready(&mut raw).await;
    assert_eq!((kinds(&first), error_state(&first)), ("EZ".to_owned(), Some("42703".to_owned())));
    assert_eq!(kinds(&until_ready(&mut raw).await), "12TDCZ");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_statements_and_portals() {
    let server = Server::start().await;
    let mut raw = session(&server).await;
    let mut ask = async |parts: &[Vec<u8>]| {
        raw.write_all(&[&parts.concat()[..], &packet(b'S', b"")].concat()).await.unwrap();
        let answer = until_ready(&mut raw).await;
        (kinds(&answer), error_state(&answer).unwrap_or_default())
    };
    let parse = |name: &str| packet(b'P', format!("{name}\0SELECT 1\0\0\0").as_bytes());
    let bind = |portal: &str, name: &str| packet(b'B', format!("{portal}\0{name}\0\0\0\0\0\0\0").as_bytes());
    assert_eq!(ask(&[parse("s")]).await, ("1Z".into(), "".into()));
    assert_eq!(ask(&[parse("s")]).await, ("EZ".into(), "42P05".into()));
    assert_eq!(ask(&[bind("", "none")]).await, ("EZ".into(), "26000".into()));
    assert_eq!(ask(&[packet(b'E', b"none\0\0\0\0\0")]).await, ("EZ".into(), "34000".into()));
    assert_eq!(ask(&[bind("p", "s"), bind("p", "s")]).await, ("2EZ".into(), "42P03".into()));
    assert_eq!(ask(&[bind("p", "s")]).await.0, "2Z", "a portal ends with its transaction");
    assert_eq!(ask(&[packet(b'D', b"Ss\0")]).await.0, "tTZ");
    assert_eq!(ask(&[packet(b'C', b"Ss\0"), packet(b'C', b"Ss\0")]).await.0, "33Z");
    assert_eq!(ask(&[packet(b'D', b"Ss\0")]).await, ("EZ".into(), "26000".into()));
    assert_eq!(ask(&[packet(b'P', b"\0\0\0\0"), bind("", ""), packet(b'E', b"\0\0\0\0\0")]).await.0, "12IZ");
}

#[tokio::test(flavor = "multi_thread")]
async fn ready_for_query_tells_the_transaction() {
    let server = Server::start().await;
    let mut raw = session(&server).await;
    for (sql, status) in
        [("BEGIN", b'T'), ("SELECT nope", b'E'), ("SELECT 1", b'E'), ("ROLLBACK", b'I'), ("SELECT 1", b'I')]
    {
        raw.write_all(&packet(b'Q', format!("{sql}\0").as_bytes())).await.unwrap();
        assert_eq!(until_ready(&mut raw).await.last().unwrap().1, [status], "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_sessions_end_if_so_configured() {
    let server = Server::with(Limits { idle_timeout: Some(PATIENCE), ..Limits::default() }).await;
    let mut raw = session(&server).await;
    assert_eq!(error_state(&messages(&mut raw).await), Some("57P05".to_owned()));
}

#[tokio::test]
async fn statements_have_one_space_of_names_in_sql_and_in_the_protocol() {
    let server = Server::start().await;
    let client = server.client().await;
    client.batch_execute("CREATE TABLE n (id int PRIMARY KEY, v text); INSERT INTO n VALUES (1, 'one')").await.unwrap();
    let mut raw = session(&server).await;
    let parse = packet(b'P', b"proto\0SELECT v FROM n WHERE id = $1\0\0\0");
    raw_send(&mut raw, &[parse, packet(b'S', b"")].concat()).await;
    assert_eq!(kinds(&until_ready(&mut raw).await), "1Z");
    raw_query(&mut raw, "EXECUTE proto(1); PREPARE sql AS SELECT id FROM n WHERE v = $1; PREPARE proto AS SELECT 1")
        .await;
    let answers = until_ready(&mut raw).await;
    assert_eq!((kinds(&answers), error_state(&answers)), ("TDCCEZ".into(), Some("42P05".into())));
    // Bound and run through the protocol, as text: the one that SQL made.
    let bind = packet(b'B', b"\0sql\0\0\0\0\x01\0\0\0\x03one\0\0");
    let run = [bind, packet(b'D', b"P\0"), packet(b'E', b"\0\0\0\0\0"), packet(b'S', b"")];
    raw_send(&mut raw, &run.concat()).await;
    assert_eq!(kinds(&until_ready(&mut raw).await), "2TDCZ");
    // EXECUTE through the extended protocol is described as what it runs.
    let parse = packet(b'P', b"\0EXECUTE sql('one')\0\0\0");
    let run = [parse, packet(b'B', b"\0\0\0\0\0\0\0\0"), packet(b'D', b"P\0"), packet(b'E', b"\0\0\0\0\0")];
    raw_send(&mut raw, &[run.concat(), packet(b'S', b"")].concat()).await;
    assert_eq!(kinds(&until_ready(&mut raw).await), "12TDCZ");
    // An EXECUTE that is prepared under a name does not run itself.
    raw_send(&mut raw, &[packet(b'C', b"Sproto\0"), packet(b'S', b"")].concat()).await;
    assert_eq!(kinds(&until_ready(&mut raw).await), "3Z");
    raw_query(&mut raw, "PREPARE again AS SELECT 1").await;
    assert_eq!(kinds(&until_ready(&mut raw).await), "CZ");
    raw_send(&mut raw, &[packet(b'P', b"loop\0EXECUTE again\0\0\0"), packet(b'S', b"")].concat()).await;
    assert_eq!(kinds(&until_ready(&mut raw).await), "1Z");
    raw_query(&mut raw, "EXECUTE loop").await;
    assert_eq!(error_state(&until_ready(&mut raw).await), Some("0A000".into()));
    raw_query(&mut raw, "SELECT 1; DISCARD ALL").await;
    assert_eq!(error_state(&until_ready(&mut raw).await), Some("25001".into()));
    let parse = packet(b'P', b"\0DISCARD ALL\0\0\0");
    let run = [parse, packet(b'B', b"\0\0\0\0\0\0\0\0"), packet(b'E', b"\0\0\0\0\0"), packet(b'S', b"")];
    raw_send(&mut raw, &run.concat()).await;
    assert_eq!(kinds(&until_ready(&mut raw).await), "12CZ");
    raw_query(&mut raw, "EXECUTE again").await;
    assert_eq!(error_state(&until_ready(&mut raw).await), Some("26000".into()));
    raw_query(&mut raw, "PREPARE sql AS SELECT 1; DEALLOCATE ALL").await;
    assert_eq!(kinds(&until_ready(&mut raw).await), "CCZ");
    raw_query(&mut raw, "EXECUTE sql('one')").await;
    assert_eq!(error_state(&until_ready(&mut raw).await), Some("26000".into()));
}

#[tokio::test]
async fn columns_stay_as_they_were_described() {
    let server = Server::start().await;
    let client = server.client().await;
    client.batch_execute("CREATE TABLE w (id int PRIMARY KEY, v text); INSERT INTO w VALUES (1, 'one')").await.unwrap();
    for sql in ["SELECT * FROM w WHERE id = $1", "SELECT * FROM w WHERE id + 0 = $1"] {
        let statement = client.prepare(sql).await.unwrap();
        assert_eq!(client.query(&statement, &[&1]).await.unwrap().len(), 1);
        client.batch_execute("ALTER TABLE w ADD COLUMN x int").await.unwrap();
        assert_eq!(state(client.query(&statement, &[&1]).await), "0A000", "{sql}");
        assert_eq!(client.query(sql, &[&1]).await.unwrap()[0].len(), 3);
        client.batch_execute("ALTER TABLE w DROP COLUMN x").await.unwrap();
        assert_eq!(client.query(&statement, &[&1]).await.unwrap()[0].len(), 2);
    }
}
