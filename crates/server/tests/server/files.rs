//! Files of the server by their path: in FROM, and as Parquet files that COPY makes.

use crate::common::*;
use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use std::path::PathBuf;
use std::pin::pin;

/// A directory of a test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("terrace-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn put(&self, name: &str, text: &str) -> String {
        std::fs::write(self.at(name), text).unwrap();
        self.at(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const EVERY_TYPE: &str = "CREATE TYPE mood AS ENUM ('sad', 'ok');
    CREATE TABLE every (b boolean, i2 smallint, i4 int, i8 bigint, f4 real, f8 float8, n numeric(12, 3), plain numeric,
        t text, v varchar(9), c char(5), bytes bytea, u uuid, d date, ti time, ts timestamp, tz timestamptz,
        iv interval, j json, jb jsonb, a int[], m mood);
    INSERT INTO every VALUES (true, 1, 2, 3, 0.1, 1e300, 12.345, 1.2300, 'täxt', 'var', 'ch', '\\x00ff',
        'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '2026-11-27', '12:30:00.000001', '1999-12-31 23:59:59.999999',
        '2026-11-27 12:00+02', '1 day 2 hours', '{\"a\":  1}', '{\"b\": 2}', '{1,NULL}', 'ok');
    INSERT INTO every (b) VALUES (NULL);
    INSERT INTO every (i8, t, d)
        SELECT n, repeat('x', n % 40), date '2000-01-01' + n FROM generate_series(1, 5000) AS g(n);";

#[tokio::test]
async fn a_parquet_file_there_and_back() {
    let server = Server::start().await;
    let client = server.client().await;
    let folder = Folder::new("parquet");
    client.batch_execute(EVERY_TYPE).await.unwrap();
    let file = folder.at("every.parquet");
    let count = client.execute(&format!("COPY every TO '{file}' (FORMAT parquet)"), &[]).await.unwrap();
    assert_eq!(count, 5002);
    // What Parquet has no type for comes back as text.
    let texts = "SELECT b, i2, i4, i8, f4, f8, n, plain::text, t, v, rpad(c::text, 5), bytes, u::text, d, ti, ts, tz, \
                 iv::text, j::text, jb::text, a::text, m::text FROM every";
    let back = format!("SELECT * FROM '{file}'");
    for (one, other) in [(texts, back.as_str()), (back.as_str(), texts)] {
        let differ = format!("SELECT count(*) FROM ({one} EXCEPT ALL {other}) AS d");
        assert_eq!(rows(&client, &differ).await.unwrap(), ["0"], "{differ}");
    }
    // Some of its columns, in another order; none of them; as a table of its own name; beside a table.
    let of = |sql: &str| sql.replace("FILE", &format!("'{file}'"));
    for (sql, expected) in [
        ("SELECT d, i8 FROM FILE WHERE i8 = 7", "2000-01-08|7"),
        ("SELECT count(*) FROM FILE", "5002"),
        ("SELECT every.t FROM FILE WHERE every.i8 = 2", "xx"),
        ("SELECT count(*) FROM FILE AS f JOIN every AS e ON f.i8 = e.i8", "5003"),
        ("SELECT x FROM FILE AS f(x) WHERE x", "t"),
        ("SELECT count(*) FROM (SELECT i8 FROM FILE LIMIT 3) AS l", "3"),
    ] {
        assert_eq!(rows(&client, &of(sql)).await.unwrap(), [expected], "{sql}");
    }
    client
        .batch_execute(&of("CREATE TABLE again AS SELECT i8, t FROM FILE; INSERT INTO again SELECT i8, t FROM FILE"))
        .await
        .unwrap();
    assert_eq!(rows(&client, "SELECT count(*) FROM again").await.unwrap(), ["10004"]);
    for (sql, code) in [
        (of("CREATE VIEW v AS SELECT * FROM FILE"), "0A000"),
        (of("COPY again FROM FILE (FORMAT parquet)"), "0A000"),
        (format!("COPY (SELECT 1 AS a, 2 AS a) TO '{}' (FORMAT parquet)", folder.at("twice")), "42701"),
        (format!("COPY (SELECT date 'infinity' AS d) TO '{}' (FORMAT parquet)", folder.at("infinite")), "22008"),
        ("COPY again TO STDOUT (FORMAT parquet, HEADER)".into(), "0A000"),
        ("COPY again TO STDOUT (FORMAT parquet, NULL 'x')".into(), "42601"),
        ("SELECT * FROM 'every.parquet'".into(), "42602"),
        (format!("SELECT * FROM '{}'", folder.at("none.parquet")), "58P01"),
        (format!("SELECT * FROM '{}'", folder.at("")), "0A000"),
    ] {
        assert_eq!(state(client.batch_execute(&sql).await), code, "{sql}");
    }
    client.batch_execute("CREATE ROLE plain; SET ROLE plain").await.unwrap();
    assert_eq!(state(client.batch_execute(&of("SELECT * FROM FILE")).await), "42501");
}

#[tokio::test]
async fn a_csv_file_in_from() {
    let server = Server::start().await;
    let client = server.client().await;
    let folder = Folder::new("csv");
    let file =
        folder.put("sales.csv", "day,amount,note\n2026-11-27,1.50,\"a \"\"b\"\"\"\n2026-11-28,,\"\"\n2026-11-29,10,\n");
    let sql = format!("SELECT day + 1, amount * 2, note, note IS NULL FROM '{file}' ORDER BY day");
    let expected = ["2026-11-28|3.00|a \"b\"|f", "2026-11-29|NULL||f", "2026-11-30|20|NULL|t"];
    assert_eq!(rows(&client, &sql).await.unwrap(), expected);
    assert_eq!(rows(&client, &format!("SELECT count(*) FROM '{file}'")).await.unwrap(), ["3"]);
    // It is read anew each time; other columns are not taken for those that were planned.
    let prepared = client.prepare(&format!("SELECT amount FROM '{file}' WHERE day > '2026-11-28'")).await.unwrap();
    assert_eq!(client.query(&prepared, &[]).await.unwrap().len(), 1);
    folder.put("sales.csv", "day,amount,note\n2026-11-29,1.5,\n2026-11-30,2.5,\n");
    assert_eq!(client.query(&prepared, &[]).await.unwrap().len(), 2);
    folder.put("sales.csv", "day,amount,note\n2026-11-29,much,\n");
    assert_eq!(state(client.query(&prepared, &[]).await), "0A000");
    // A value that does not fit is an error that names its line.
    let long: String = (0..3000).map(|n| if n == 2500 { "x\n".into() } else { format!("{n}\n") }).collect();
    let long = folder.put("long.csv", &format!("n\n{long}"));
    let error = client.batch_execute(&format!("SELECT sum(n) FROM '{long}'")).await.unwrap_err();
    let error = error.as_db_error().unwrap();
    let context = format!("file \"{long}\", line 2502");
    assert_eq!((error.code().code(), error.where_()), ("22P02", Some(context.as_str())));
    // What nobody reads to the end is let go.
    assert_eq!(rows(&client, &format!("SELECT n FROM '{long}' LIMIT 1")).await.unwrap(), ["0"]);
}

#[tokio::test]
async fn how_far_a_copy_is() {
    let server = Server::start().await;
    let (client, watcher) = (server.client().await, server.client().await);
    client.batch_execute("CREATE TABLE t (a int)").await.unwrap();
    let shown = "SELECT command, type, relid::regclass, bytes_processed, bytes_total, tuples_processed, \
                 tuples_excluded FROM pg_stat_progress_copy WHERE datname = current_database()";
    let mut sink = pin!(client.copy_in::<_, Bytes>("COPY t FROM STDIN WHERE a < 3").await.unwrap());
    sink.send(Bytes::from_static(b"1\n2\n3\n")).await.unwrap();
    sink.flush().await.unwrap();
    let expected = ["COPY FROM|PIPE|t|6|0|2|1"];
    for _ in 0..200 {
        if rows(&watcher, shown).await.unwrap() == expected {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(rows(&watcher, shown).await.unwrap(), expected);
    sink.finish().await.unwrap();
    assert!(rows(&watcher, shown).await.unwrap().is_empty());
    // The server waits for a client that takes none of many rows.
    let many = "COPY (SELECT repeat('x', 1000) FROM generate_series(1, 100000)) TO STDOUT";
    let out = client.copy_out(many).await.unwrap();
    let shown = "SELECT command, type, relid, bytes_processed > 0, tuples_processed > 0 FROM pg_stat_progress_copy";
    for _ in 0..200 {
        if rows(&watcher, shown).await.unwrap() == ["COPY TO|PIPE|0|t|t"] {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(rows(&watcher, shown).await.unwrap(), ["COPY TO|PIPE|0|t|t"]);
    let parts: Vec<Bytes> = out.try_collect().await.unwrap();
    assert_eq!(parts.iter().map(Bytes::len).sum::<usize>(), 100_000 * 1001);
}
