//! COPY through the wire: simple and extended protocol, formats, errors, and clients that give up.

use crate::common::raw::*;
use crate::common::*;
use bytes::Bytes;
use futures::{SinkExt, StreamExt, TryStreamExt};
use std::pin::pin;
use tokio_postgres::{Client, Error};

async fn send(client: &Client, sql: &str, parts: &[&str]) -> Result<u64, Error> {
    let mut sink = pin!(client.copy_in::<_, Bytes>(sql).await?);
    for part in parts {
        sink.send(Bytes::copy_from_slice(part.as_bytes())).await?;
    }
    sink.finish().await
}

async fn take(client: &Client, sql: &str) -> Result<String, Error> {
    let parts: Vec<Bytes> = client.copy_out(sql).await?.try_collect().await?;
    Ok(String::from_utf8(parts.concat()).unwrap())
}

async fn table(client: &Client) {
    let sql = "CREATE TABLE t (id int PRIMARY KEY, v varchar(5), w text NOT NULL DEFAULT 'dflt', x float8)";
    client.batch_execute(sql).await.unwrap();
}

#[tokio::test]
async fn text_in_and_out() {
    let server = Server::start().await;
    let client = server.client().await;
    table(&client).await;
    // Parts may be cut anywhere.
    let parts = ["1\ta", "\tb\\", "tc\t1.5\n2\t\\N\t", "x\t\\N", "\r"];
    let error = send(&client, "COPY t FROM STDIN", &parts).await;
    assert_eq!(state(error), "22P04", "a carriage return where lines end in newlines");
    let parts = ["1\ta", "\tb\\", "tc\t1.5\n2\t\\N\t", "x\t\\N", "\n"];
    assert_eq!(send(&client, "COPY t FROM STDIN", &parts).await.unwrap(), 2);
    assert_eq!(send(&client, "COPY public.t (v, id) FROM STDIN WITH (FREEZE on)", &["z\t3\n"]).await.unwrap(), 1);
    let all = take(&client, "COPY t TO STDOUT").await.unwrap();
    assert_eq!(all, "1\ta\tb\\tc\t1.5\n2\t\\N\tx\t\\N\n3\tz\tdflt\t\\N\n");
    let query =
        "COPY (SELECT id AS n, v FROM t WHERE id < 3 ORDER BY id DESC) TO STDOUT WITH (FORMAT csv, HEADER true)";
    assert_eq!(take(&client, query).await.unwrap(), "n,v\n2,\n1,a\n");
    assert_eq!(
        take(&client, "COPY t (v) TO STDOUT (NULL '-', FORMAT csv, FORCE_QUOTE (v))").await.unwrap(),
        "\"a\"\n-\n\"z\"\n"
    );
    assert_eq!(state(take(&client, "COPY t (nope) TO STDOUT").await), "42703");
    assert_eq!(state(take(&client, "COPY nope TO STDOUT").await), "42P01");
    assert_eq!(state(client.batch_execute("COPY t (id, id) FROM STDIN").await), "42701");
    assert_eq!(rows(&client, "SELECT count(*) FROM t").await.unwrap(), ["3"]);
}

#[tokio::test]
async fn csv_in() {
    let server = Server::start().await;
    let client = server.client().await;
    table(&client).await;
    let csv = "id,v,w\n1,\"a,\"\"b\",\n2,,\"two\nlines\"\n";
    assert_eq!(state(send(&client, "COPY t (id, v, w) FROM STDIN CSV HEADER", &[csv]).await), "23502");
    let csv = "id,v,w\n1,\"a,\"\"b\",\"\"\n2,,\"two\nlines\"\n";
    assert_eq!(send(&client, "COPY t (id, v, w) FROM STDIN CSV HEADER", &[csv]).await.unwrap(), 2);
    assert_eq!(rows(&client, "SELECT id, v, w FROM t ORDER BY id").await.unwrap(), ["1|a,\"b|", "2|NULL|two\nlines"]);
}

#[tokio::test]
async fn a_header_that_has_to_match() {
    let server = Server::start().await;
    let client = server.client().await;
    table(&client).await;
    let copied = async |columns: &str, format: &str, data: &str| {
        let sql = format!("COPY t {columns} FROM STDIN (HEADER match, FORMAT {format})");
        send(&client, &sql, &[data]).await
    };
    assert_eq!(copied("", "text", "id\tv\tw\tx\n1\ta\tb\t1.5\n").await.unwrap(), 1);
    assert_eq!(copied("(w, id)", "csv", "w,\"id\"\nq,2\n").await.unwrap(), 1);
    assert_eq!(copied("", "text", "id\tv\tw\tx\n").await.unwrap(), 0);
    for (format, data, message) in [
        ("text", "id\tw\n", "column name mismatch in header line field 1: got \"id\", expected \"w\""),
        ("text", "w\t\\N\n", "column name mismatch in header line field 2: got null value (\"\\N\"), expected \"id\""),
        ("csv", "w\n", "wrong number of fields in header line: got 1, expected 2"),
        ("csv", "", "wrong number of fields in header line: got 1, expected 2"),
        ("text", "", "wrong number of fields in header line: got 1, expected 2"),
        ("csv", "w,id,v\n", "wrong number of fields in header line: got 3, expected 2"),
    ] {
        let error = copied("(w, id)", format, data).await.unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!((error.code().code(), error.message()), ("22P04", message));
    }
    assert_eq!(rows(&client, "SELECT id, w FROM t ORDER BY id").await.unwrap(), ["1|b", "2|q"]);
}

#[tokio::test]
async fn bad_rows_say_where_and_leave_nothing() {
    let server = Server::start().await;
    let client = server.client().await;
    table(&client).await;
    for (data, state, context) in [
        ("1\ta\tb\t1\n2\tb\n", "22P04", "COPY t, line 2: \"2\tb\""),
        ("1\ta\tb\t1\t5\n", "22P04", "COPY t, line 1: \"1\ta\tb\t1\t5\""),
        ("1\ta\tb\tx\n", "22P02", "COPY t, line 1, column x: \"x\""),
        ("1\tlonger\tb\t1\n", "22001", "COPY t, line 1, column v: \"longer\""),
        ("99999999999\ta\tb\t1\n", "22003", "COPY t, line 1, column id: \"99999999999\""),
        ("1\ta\tb\t1\n1\ta\tb\t1\n", "23505", "COPY t, line 2"),
        ("1\ta\t\\N\t1\n", "23502", "COPY t, line 1"),
        ("1\t\\xff\tb\t1\n", "22021", "COPY t, line 1: \"1\t\\xff\tb\t1\""),
        ("1\t\\0\tb\t1\n", "22021", "COPY t, line 1: \"1\t\\0\tb\t1\""),
    ] {
        let error = send(&client, "COPY t FROM STDIN", &[data]).await.expect_err(data);
        let error = error.as_db_error().unwrap_or_else(|| panic!("{data:?}: {error}"));
        assert_eq!(error.code().code(), state, "{data:?}: {error}");
        assert_eq!(error.where_().map(|w| w.replace('\u{fffd}', "\0")), Some(context.to_owned()), "{data:?}: {error}");
    }
    assert_eq!(rows(&client, "SELECT count(*) FROM t").await.unwrap(), ["0"]);
}

#[tokio::test]
async fn a_line_is_a_text_before_its_backslashes_are_looked_at() {
    let server = Server::start().await;
    let client = server.client().await;
    table(&client).await;
    // A letter of which one half is written as `\xc3` or `\xA9`.
    for line in [&b"1\t\xc3\\xA9\tb\t1\n"[..], b"1\t\\xc3\xa9\tb\t1\n", b"1\t\\\xff\tb\t1\n"] {
        let mut sink = pin!(client.copy_in::<_, Bytes>("COPY t FROM STDIN").await.unwrap());
        sink.send(Bytes::copy_from_slice(line)).await.unwrap();
        assert_eq!(state(sink.finish().await), "22021", "{line:?}");
    }
    assert_eq!(send(&client, "COPY t FROM STDIN", &["1\t\\xc3\\xA9\tb\t1\n2\t\\é\tb\t1\n"]).await.unwrap(), 2);
    assert_eq!(rows(&client, "SELECT DISTINCT v FROM t").await.unwrap(), ["é"]);
}

#[tokio::test]
async fn copy_belongs_to_its_transaction() {
    let server = Server::start().await;
    let client = server.client().await;
    table(&client).await;
    client.batch_execute("BEGIN; INSERT INTO t (id) VALUES (1)").await.unwrap();
    assert_eq!(send(&client, "COPY t (id) FROM STDIN", &["2\n", "3\n\\.\nrest"]).await.unwrap(), 2);
    assert_eq!(rows(&client, "SELECT count(*) FROM t").await.unwrap(), ["3"]);
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(rows(&client, "SELECT count(*) FROM t").await.unwrap(), ["0"]);
    client.batch_execute("BEGIN").await.unwrap();
    assert_eq!(state(send(&client, "COPY t (id) FROM STDIN", &["x\n"]).await), "22P02");
    assert_eq!(state(rows(&client, "SELECT 1").await), "25P02");
    client.batch_execute("ROLLBACK").await.unwrap();
}

#[tokio::test]
async fn a_client_may_give_up() {
    let server = Server::start().await;
    let client = server.client().await;
    table(&client).await;
    {
        // Dropped without `finish`: the driver sends CopyFail.
        let mut sink = pin!(client.copy_in::<_, Bytes>("COPY t (id) FROM STDIN").await.unwrap());
        sink.send(Bytes::from_static(b"1\n2\n")).await.unwrap();
    }
    assert_eq!(rows(&client, "SELECT count(*) FROM t").await.unwrap(), ["0"]);
    let other = server.client().await;
    {
        let mut sink = pin!(other.copy_in::<_, Bytes>("COPY t (id) FROM STDIN").await.unwrap());
        sink.send(Bytes::from_static(b"1\n2\n")).await.unwrap();
        sink.flush().await.unwrap();
        other.cancel_token().cancel_query(tokio_postgres::NoTls).await.unwrap();
        assert_eq!(state(soon(sink.finish()).await), "57014");
    }
    assert_eq!(rows(&other, "SELECT count(*) FROM t").await.unwrap(), ["0"]);
    // One that vanishes in the middle of a line.
    let mut raw = session(&server).await;
    raw_query(&mut raw, "COPY t (id) FROM STDIN").await;
    assert_eq!(message(&mut raw).await.unwrap().0, b'G');
    raw_send(&mut raw, &packet(b'd', b"7\n8")).await;
    drop(raw);
    soon(send(&client, "COPY t (id) FROM STDIN", &["7\n8\n"])).await.expect("nothing is left of the other's rows");
}

#[tokio::test]
async fn messages_out_of_place() {
    let server = Server::start().await;
    let client = server.client().await;
    table(&client).await;
    let mut raw = session(&server).await;
    raw_query(&mut raw, "COPY t (id) FROM STDIN").await;
    assert_eq!(message(&mut raw).await.unwrap().0, b'G');
    // Sync and Flush are passed over, a query is not.
    raw_send(&mut raw, &[packet(b'S', b""), packet(b'H', b""), packet(b'd', b"1\n")].concat()).await;
    raw_send(&mut raw, &[packet(b'Q', b"SELECT 1\0"), packet(b'd', b"2\n"), packet(b'c', b"")].concat()).await;
    let answers = until_ready(&mut raw).await;
    assert_eq!((kinds(&answers), error_state(&answers)), ("EZ".into(), Some("08P01".into())));
    raw_query(&mut raw, "COPY t (id) FROM STDIN; SELECT count(*) FROM t; COPY t (id) TO STDOUT").await;
    raw_send(&mut raw, &[packet(b'd', b"1\n2"), packet(b'c', b"")].concat()).await;
    assert_eq!(kinds(&until_ready(&mut raw).await), "GCTDCHddcCZ");
    // Extended: the first Sync comes while data is expected, as libpq sends it.
    let parse = packet(b'P', b"\0COPY t (id) FROM STDIN\0\0\0");
    let run = [packet(b'B', b"\0\0\0\0\0\0\0\0"), packet(b'D', b"P\0"), packet(b'E', b"\0\0\0\0\0"), packet(b'S', b"")];
    raw_send(&mut raw, &[parse, run.concat()].concat()).await;
    raw_send(&mut raw, &[packet(b'd', b"5\n"), packet(b'c', b""), packet(b'S', b"")].concat()).await;
    assert_eq!(kinds(&until_ready(&mut raw).await), "12nGCZ");
    assert_eq!(rows(&client, "SELECT count(*) FROM t").await.unwrap(), ["3"]);
}

#[tokio::test]
async fn much_data_goes_through() {
    let server = Server::start().await;
    let client = server.client().await;
    client.batch_execute("CREATE TABLE big (id int PRIMARY KEY, v text)").await.unwrap();
    let mut sink = pin!(client.copy_in::<_, Bytes>("COPY big FROM STDIN").await.unwrap());
    for part in 0..40 {
        let lines: String = (0..500).map(|i| format!("{}\t{}\n", part * 500 + i, "x".repeat(200))).collect();
        sink.send(Bytes::from(lines)).await.unwrap();
    }
    assert_eq!(sink.finish().await.unwrap(), 20_000);
    let mut out = pin!(client.copy_out("COPY big TO STDOUT").await.unwrap());
    let mut bytes = 0;
    while let Some(part) = out.next().await {
        bytes += part.unwrap().len();
    }
    assert_eq!(bytes, 20_000 * 202 + 10 + 90 * 2 + 900 * 3 + 9000 * 4 + 10_000 * 5);
}

#[tokio::test]
async fn rows_are_checked_and_numbered() {
    let server = Server::start().await;
    let client = server.client().await;
    let sql = "CREATE TABLE c (id serial PRIMARY KEY, n int CHECK (n > 0), twice int, at timestamp DEFAULT now(), \
               CHECK (twice IS NULL OR twice = n * 2))";
    client.batch_execute(sql).await.unwrap();
    assert_eq!(send(&client, "COPY c (n, twice) FROM STDIN", &["1\t2\n2", "\t\\N\n"]).await.unwrap(), 2);
    assert_eq!(rows(&client, "SELECT id, n, at IS NOT NULL FROM c ORDER BY 1").await.unwrap(), ["1|1|t", "2|2|t"]);
    assert_eq!(rows(&client, "SELECT currval('c_id_seq')").await.unwrap(), ["2"]);
    // Many batches; the line that breaks the rule is named.
    let good: String = (1..=3000).map(|n| format!("{n}\t{}\n", n * 2)).collect();
    let error = send(&client, "COPY c (n, twice) FROM STDIN", &[&good, "7\t15\n8\t16\n"]).await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!((error.code().code(), error.constraint()), ("23514", Some("c_check")));
    assert_eq!(error.where_(), Some("COPY c, line 3001"));
    // What is wrong on an earlier line comes first, also where a later line cannot be read.
    for (data, state, line) in [("1\t2\n-1\t\\N\nx\t1\n", "23514", 2), ("1\t2\nx\t1\n-1\t\\N\n", "22P02", 2)] {
        let error = send(&client, "COPY c (n, twice) FROM STDIN", &[data]).await.unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), state, "{error}");
        assert!(error.where_().unwrap().starts_with(&format!("COPY c, line {line}")), "{error:?}");
    }
    assert_eq!(rows(&client, "SELECT count(*) FROM c").await.unwrap(), ["2"]);
    assert_eq!(send(&client, "COPY c (n, twice) FROM STDIN", &[&good]).await.unwrap(), 3000);
    assert_eq!(
        rows(&client, "SELECT count(*), count(DISTINCT id), sum(n) FROM c").await.unwrap(),
        ["3002|3002|4501503"]
    );
    // Named, a numbered column takes what comes.
    assert_eq!(send(&client, "COPY c (id, n) FROM STDIN", &["100000\t5\n"]).await.unwrap(), 1);
    // Within a block, after a savepoint.
    client.batch_execute("BEGIN; SAVEPOINT a").await.unwrap();
    assert_eq!(state(send(&client, "COPY c (n) FROM STDIN", &["0\n"]).await), "23514");
    client.batch_execute("ROLLBACK TO a").await.unwrap();
    assert_eq!(send(&client, "COPY c (n) FROM STDIN", &["9\n"]).await.unwrap(), 1);
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(rows(&client, "SELECT n FROM c WHERE n = 9 AND id < 100000").await.unwrap(), ["9", "9"]);
}

async fn take_bytes(client: &Client, sql: &str) -> Vec<u8> {
    let parts: Vec<Bytes> = client.copy_out(sql).await.unwrap().try_collect().await.unwrap();
    parts.concat()
}

async fn send_bytes(client: &Client, sql: &str, bytes: &[u8], size: usize) -> Result<u64, Error> {
    let mut sink = pin!(client.copy_in::<_, Bytes>(sql).await?);
    for part in bytes.chunks(size) {
        sink.send(Bytes::copy_from_slice(part)).await?;
    }
    sink.finish().await
}

const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

#[tokio::test]
async fn binary_there_and_back() {
    let server = Server::start().await;
    let client = server.client().await;
    let columns = "id int PRIMARY KEY, b bool, s smallint, l bigint, r real, f float8, n numeric(10, 2), t text, \
                   v varchar(5), c char(3), d date, ts timestamp, tz timestamptz, u uuid, by bytea, j json, jb jsonb";
    client.batch_execute(&format!("CREATE TABLE a ({columns}); CREATE TABLE z ({columns})")).await.unwrap();
    let row = "INSERT INTO a VALUES (1, true, -2, 1::bigint << 62, 0.5, 'NaN', -1.20, 'ü', 'v', 'c', '2024-02-29', \
               '2024-02-29 12:30:15.123456', '1900-01-01 00:00+00', '00000000-0000-0000-0000-00000000000f', '\\x00ff', \
               '{\"a\":1}', '[null]')";
    client.batch_execute(row).await.unwrap();
    client.batch_execute("INSERT INTO a (id) VALUES (2)").await.unwrap();
    let bytes = take_bytes(&client, "COPY a TO STDOUT (FORMAT binary)").await;
    assert_eq!(&bytes[..21], [HEADER, b"\0\x11"].concat());
    assert_eq!(&bytes[bytes.len() - 2..], b"\xff\xff");
    for size in [1, 7, bytes.len()] {
        client.batch_execute("TRUNCATE z").await.unwrap();
        assert_eq!(send_bytes(&client, "COPY z FROM STDIN BINARY", &bytes, size).await.unwrap(), 2);
        let all = |table: &str| format!("COPY (SELECT * FROM {table} ORDER BY id) TO STDOUT");
        assert_eq!(take(&client, &all("z")).await.unwrap(), take(&client, &all("a")).await.unwrap(), "parts of {size}");
    }
    assert_eq!(
        take_bytes(&client, "COPY (SELECT id FROM a WHERE id = 2) TO STDOUT BINARY").await,
        [HEADER, b"\0\x01\0\0\0\x04\0\0\0\x02\xff\xff"].concat()
    );
}

#[tokio::test]
async fn bad_binary_says_where() {
    let server = Server::start().await;
    let client = server.client().await;
    table(&client).await;
    let sql = "COPY t (id, v) FROM STDIN (FORMAT binary)";
    let fails = async |rest: &[u8]| {
        let error = send_bytes(&client, sql, &[HEADER, rest].concat(), 1000).await.unwrap_err();
        let error = error.as_db_error().unwrap().clone();
        (error.code().code().to_owned(), error.message().to_owned(), error.where_().unwrap_or_default().to_owned())
    };
    let told = |code: &str, message: &str, context: &str| (code.to_owned(), message.to_owned(), context.to_owned());
    assert_eq!(fails(b"\0\x01").await, told("22P04", "row field count is 1, expected 2", "COPY t, line 1"));
    assert_eq!(
        fails(b"\0\x02\0\0\0\x03abc").await,
        told("22P04", "unexpected EOF in COPY data", "COPY t, line 1, column v")
    );
    assert_eq!(
        fails(b"\0\x02\0\0\0\x03abc\xff\xff\xff\xff").await,
        told("08P01", "insufficient data left in message", "COPY t, line 1, column id")
    );
    assert_eq!(
        fails(b"\0\x02\0\0\0\x05abcde\xff\xff\xff\xff").await,
        told("22P03", "incorrect binary data format", "COPY t, line 1, column id")
    );
    assert_eq!(
        fails(b"\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x06abcdef").await,
        told("22001", "value too long for type character varying(5)", "COPY t, line 1, column v")
    );
    assert_eq!(
        fails(b"\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x01\xff").await,
        told("22021", "invalid byte sequence for encoding \"UTF8\": 0xff", "COPY t, line 1, column v")
    );
    let error = send_bytes(&client, sql, b"no header at all, but text", 1000).await.unwrap_err();
    assert_eq!(error.as_db_error().unwrap().message(), "COPY file signature not recognized");
    assert_eq!(rows(&client, "SELECT count(*) FROM t").await.unwrap(), ["0"]);
    // The session goes on.
    let good = [HEADER, b"\0\x02\0\0\0\x04\0\0\0\x01\xff\xff\xff\xff\xff\xff"].concat();
    assert_eq!(send_bytes(&client, sql, &good, 1000).await.unwrap(), 1);
}

#[tokio::test]
async fn only_wanted_rows_are_stored() {
    let server = Server::start().await;
    let client = server.client().await;
    let sql = "CREATE TABLE w (id int PRIMARY KEY, v text NOT NULL, n serial, d int DEFAULT 7, CHECK (id < 100))";
    client.batch_execute(sql).await.unwrap();
    // Rows that are not wanted may break any constraint. They are numbered all the same.
    let lines = ["1\ta\n2\tb\n3\tno\n", "5\te\n200\tz\n4\t\\N\n1\tno\n"];
    let sql = "COPY w (id, v) FROM STDIN WHERE id % 2 = 1 AND v <> 'no' AND d = 7 AND n > 0";
    assert_eq!(send(&client, sql, &lines).await.unwrap(), 2);
    assert_eq!(rows(&client, "SELECT id, v, n, d FROM w ORDER BY id").await.unwrap(), ["1|a|1|7", "5|e|4|7"]);
    // Of a table without constraints; what is unknown is not wanted.
    client.batch_execute("CREATE TABLE p (a int, b text)").await.unwrap();
    let lines: String = (0..5000).map(|n| if n % 5 == 0 { "\\N\tx\n".into() } else { format!("{n}\ty\n") }).collect();
    assert_eq!(send(&client, "COPY p FROM STDIN WHERE a > 2500", &[&lines]).await.unwrap(), 2000);
    assert_eq!(rows(&client, "SELECT count(*), min(a), max(a) FROM p").await.unwrap(), ["2000|2501|4999"]);
    assert_eq!(send(&client, "COPY p FROM STDIN WHERE NULL", &["1\tx\n"]).await.unwrap(), 0);
    let error = send(&client, "COPY w (id, v) FROM STDIN WHERE id > 0", &["7\tx\n200\tz\n"]).await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!((error.code().code(), error.where_()), ("23514", Some("COPY w, line 2")));
    for (wrong, code) in [
        ("nope > 1", "42703"),
        ("a + 1", "42804"),
        ("a = (SELECT 1)", "0A000"),
        ("sum(a) > 1", "42803"),
        ("a = $1", "42P02"),
    ] {
        let refused = client.batch_execute(&format!("COPY p FROM STDIN WHERE {wrong}")).await;
        assert_eq!(state(refused), code, "{wrong}");
    }
    assert_eq!(state(client.batch_execute("COPY p TO STDOUT WHERE a = 1").await), "42601");
}

/// Files of the server: text, CSV and binary, there and back.
#[tokio::test]
async fn files_of_the_server() {
    let server = Server::start().await;
    let client = server.client().await;
    table(&client).await;
    let folder = std::env::temp_dir().join(format!("terrace-copy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let sql = "INSERT INTO t SELECT n, 'v' || n % 7, repeat('w', n % 50), n / 3.0 FROM generate_series(1, 20000) n";
    client.batch_execute(sql).await.unwrap();
    client.batch_execute("CREATE TABLE u (id int PRIMARY KEY, v varchar(5), w text, x float8)").await.unwrap();
    for (name, options) in [("text", ""), ("csv", "(FORMAT csv, HEADER)"), ("binary", "(FORMAT binary)")] {
        let file = at(name);
        client.batch_execute("TRUNCATE u").await.unwrap();
        let out = client.execute(&format!("COPY t TO '{file}' {options}"), &[]).await.unwrap();
        assert_eq!(out, 20000);
        let back = client.execute(&format!("COPY u FROM '{file}' {options}"), &[]).await.unwrap();
        assert_eq!(back, 20000, "{name}");
        let differ = "SELECT count(*) FROM (SELECT * FROM t EXCEPT SELECT * FROM u) d";
        assert_eq!(rows(&client, differ).await.unwrap(), ["0"], "{name}");
    }
    let text = std::fs::read_to_string(at("text")).unwrap();
    assert!(text.starts_with("1\tv1\tw\t0.3"), "{}", &text[..40]);
    // The message that goes before is not in the file, nor is what follows.
    client.batch_execute(&format!("SELECT 1; COPY (SELECT 5 AS five) TO '{}'; SELECT 2", at("five"))).await.unwrap();
    assert_eq!(std::fs::read_to_string(at("five")).unwrap(), "5\n");
    // Failures leave nothing in the table, and the session as it was.
    std::fs::write(at("bad"), "30000\tv\tw\t1\nx\tv\tw\t1\n").unwrap();
    let error = client.batch_execute(&format!("COPY t FROM '{}'", at("bad"))).await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!((error.code().code(), error.where_()), ("22P02", Some("COPY t, line 2, column id: \"x\"")));
    for (sql, code) in [
        (format!("COPY t FROM '{}'", at("none")), "58P01"),
        (format!("COPY t TO '{}/none/x'", folder.display()), "58P01"),
        (format!("COPY t FROM '{}'", folder.display()), "42809"),
        (format!("COPY t TO '{}'", folder.display()), "42809"),
        ("COPY t TO 'x'".into(), "42602"),
        ("COPY t FROM PROGRAM 'cat x'".into(), "0A000"),
    ] {
        assert_eq!(state(client.batch_execute(&sql).await), code, "{sql}");
    }
    assert_eq!(rows(&client, "SELECT count(*) FROM t").await.unwrap(), ["20000"]);
    let plain = "CREATE ROLE plain; GRANT ALL ON t TO plain; SET ROLE plain";
    client.batch_execute(plain).await.unwrap();
    assert_eq!(state(client.batch_execute(&format!("COPY t TO '{}'", at("secret"))).await), "42501");
    assert_eq!(state(client.batch_execute(&format!("COPY t FROM '{}'", at("text"))).await), "42501");
    assert!(!std::path::Path::new(&at("secret")).exists());
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A pipe that nobody writes to, and one whose writer says nothing.
#[tokio::test]
async fn a_copy_that_waits_for_its_file_can_be_cancelled() {
    let server = Server::start().await;
    let client = server.client().await;
    table(&client).await;
    let pipe = std::env::temp_dir().join(format!("terrace-pipe-{}", std::process::id()));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    client.batch_execute("SET statement_timeout = '300ms'").await.unwrap();
    let sql = format!("COPY t FROM '{}'", pipe.display());
    assert_eq!(state(client.batch_execute(&sql).await), "57014");
    // It lets go the thread that waits there, and then the next one opens it.
    let writer = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    assert_eq!(state(client.batch_execute(&sql).await), "57014");
    drop(writer);
    std::fs::remove_file(&pipe).unwrap();
    assert_eq!(rows(&client, "SELECT count(*) FROM t").await.unwrap(), ["0"]);
}
