//! Before there is a session: silent sockets, a database that is still being opened.
use crate::common::raw::*;
use crate::common::{PATIENCE, Server, background, database, rows, soon, state};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use terrace_server::{Limits, serve, while_starting};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_postgres::NoTls;

/// A thousand sockets that say nothing, or not enough, keep nobody out.
#[tokio::test(flavor = "multi_thread")]
async fn f4_silent_sockets_keep_nobody_out() {
    let server = Server::with(Limits { max_connections: 5, ..Limits::default() }).await;
    let busy = server.client().await;
    let token = busy.cancel_token();
    let mut silent = vec![];
    for n in 0..1000 {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        if n % 2 == 0 {
            // The beginning of a startup packet.
            socket.write_all(b"\0\0\0\x20\0\x03").await.unwrap();
        }
        silent.push(socket);
    }
    let sleeping = background(async move { busy.batch_execute("SELECT pg_sleep(100)").await });
    let c = soon(server.connect(&server.config())).await.unwrap();
    assert_eq!(rows(&c, "SELECT 1").await.unwrap(), ["1"]);
    // It may not have begun yet.
    let cancelled = async {
        let mut sleeping = sleeping;
        loop {
            token.cancel_query(NoTls).await.unwrap();
            if let Ok(ended) = tokio::time::timeout(PATIENCE, &mut sleeping).await {
                break ended.unwrap();
            }
        }
    };
    assert_eq!(state(soon(cancelled).await), "57014");
    // The oldest went, the newest are still there.
    assert!(matches!(soon(silent[0].read(&mut [0; 100])).await, Ok(0) | Err(_)));
    let mut last = silent.pop().unwrap();
    last.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f").await.unwrap();
    assert_eq!(soon(last.read_u8()).await.unwrap(), b'N', "the answer to SSLRequest");
    // Sessions are limited as before, and told so.
    let mut sessions = vec![];
    let refused = loop {
        match server.connect(&server.config()).await {
            Ok(session) => sessions.push(session),
            Err(error) => break error,
        }
    };
    assert_eq!((refused.code().unwrap().code(), sessions.len() <= 4), ("53300", true));
    assert_eq!(rows(&c, "SELECT 1").await.unwrap(), ["1"]);
}

/// While the database is being opened logins are told so, and how far it is; then the same port serves.
#[tokio::test(flavor = "multi_thread")]
async fn f11_clients_are_told_that_the_database_starts() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let done = Arc::new(AtomicUsize::new(0));
    let shown = done.clone();
    let progress = move || format!("redo, {} of 7 pages", shown.load(Ordering::Relaxed));
    let (open, opened) = oneshot::channel::<()>();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = background(async move {
        let opening = async {
            opened.await.unwrap();
            database().await
        };
        let (listener, db) = while_starting(listener, None, progress, opening).await;
        serve(db, listener, Limits::default(), async { drop(stopped.await) }).await.unwrap();
    });
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(address.port()).user("terrace").dbname("terrace");
    for pages in [0, 3] {
        done.store(pages, Ordering::Relaxed);
        let error = soon(config.connect(NoTls)).await.map(drop).unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!((error.code().code(), error.message()), ("57P03", "the database system is starting up"));
        assert_eq!((error.severity(), error.detail()), ("FATAL", Some(format!("redo, {pages} of 7 pages").as_str())));
    }
    // A request to cancel is passed over; so is a thousand sockets' silence.
    let mut cancel = TcpStream::connect(address).await.unwrap();
    cancel.write_all(b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x01\0\0\0\x02").await.unwrap();
    assert!(soon(messages(&mut cancel)).await.is_empty());
    let mut silent = vec![];
    for _ in 0..1000 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    assert_eq!(state(soon(config.connect(NoTls)).await.map(drop)), "57P03");
    // One that asks for TLS first, and is answered.
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f").await.unwrap();
    assert_eq!(soon(slow.read_u8()).await.unwrap(), b'N');
    open.send(()).unwrap();
    let (client, connection) = loop {
        match soon(config.connect(NoTls)).await {
            Ok(connected) => break connected,
            Err(error) => assert_eq!(error.code().unwrap().code(), "57P03"),
        }
    };
    background(async { drop(connection.await) });
    assert_eq!(rows(&client, "SELECT 1").await.unwrap(), ["1"]);
    // Those that had not said what they want are answered when they do, and not before.
    let mut last = silent.pop().unwrap();
    last.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f").await.unwrap();
    assert_eq!(soon(last.read_u8()).await.unwrap(), b'N', "the answer to SSLRequest");
    for mut late in [slow, last] {
        late.write_all(b"\0\0\0\x16\0\x03\0\0user\0terrace\0\0").await.unwrap();
        assert_eq!(error_state(&soon(messages(&mut late)).await).as_deref(), Some("57P03"));
    }
    drop(stop);
    soon(serving).await.unwrap();
}

/// An error is sent as soon as it is known, not at the next Sync.
#[tokio::test]
async fn p2_errors_are_sent_at_once() {
    let server = Server::start().await;
    let mut raw = session(&server).await;
    let one = async |raw: &mut TcpStream| soon(message(raw)).await.unwrap();
    // Parse with an error: even without Flush.
    raw_send(&mut raw, &packet(b'P', b"\0SELEKT 1\0\0\0")).await;
    assert_eq!(one(&mut raw).await.0, b'E');
    // What follows up to Sync is skipped; then the connection goes on.
    raw_send(&mut raw, &[packet(b'P', b"\0SELECT 1\0\0\0"), packet(b'H', b""), packet(b'S', b"")].concat()).await;
    assert_eq!(one(&mut raw).await.0, b'Z');
    // Answers to Flush come at once, and the error of what comes later.
    raw_send(&mut raw, &[packet(b'P', b"\0SELECT 1/$1::int\0\0\0"), packet(b'H', b"")].concat()).await;
    assert_eq!(one(&mut raw).await.0, b'1');
    raw_send(&mut raw, &[packet(b'D', b"S\0"), packet(b'H', b"")].concat()).await;
    assert_eq!((one(&mut raw).await.0, one(&mut raw).await.0), (b't', b'T'));
    let bind = packet(b'B', b"\0\0\0\0\0\x01\0\0\0\x010\0\0");
    raw_send(&mut raw, &[bind, packet(b'E', b"\0\0\0\0\0"), packet(b'H', b"")].concat()).await;
    assert_eq!(one(&mut raw).await.0, b'2');
    let failed = vec![one(&mut raw).await];
    assert_eq!(error_state(&failed).as_deref(), Some("22012"));
    let wrong: [(u8, &[u8]); 4] =
        [(b'B', b"\0nope\0\0\0\0\0\0\0"), (b'E', b"nope\0\0\0\0\0"), (b'D', b"Snope\0"), (b'B', b"")];
    for (kind, body) in wrong {
        raw_send(&mut raw, &packet(b'S', b"")).await;
        assert_eq!(one(&mut raw).await.0, b'Z');
        raw_send(&mut raw, &packet(kind, body)).await;
        assert_eq!(one(&mut raw).await.0, b'E', "{}", kind as char);
    }
}

/// A message that is too long is passed over, and the client can read why it failed.
#[tokio::test(flavor = "multi_thread")]
async fn f9_messages_that_are_too_long() {
    let server = Server::with(Limits { max_message: 100_000, max_statement: 50_000, ..Limits::default() }).await;
    let mut raw = session(&server).await;
    let long = |n: usize| format!("SELECT '{}'", "x".repeat(n));
    for n in [60_000, 200_000, 3_000_000] {
        raw_query(&mut raw, &long(n)).await;
        let answers = until_ready(&mut raw).await;
        assert_eq!((kinds(&answers), error_state(&answers)), ("EZ".into(), Some("54000".into())), "{n}");
        let parse = packet(b'P', format!("\0{}\0\0\0", long(n)).as_bytes());
        raw_send(&mut raw, &[parse, packet(b'B', b"\0\0\0\0\0\0\0\0"), packet(b'S', b"")].concat()).await;
        let answers = until_ready(&mut raw).await;
        assert_eq!((kinds(&answers), error_state(&answers)), ("EZ".into(), Some("54000".into())), "{n}");
    }
    let bind = [b"\0\0\0\0\0\x01\0\x03\x0d\x40".as_slice(), &vec![b'x'; 200_000], b"\0\0"].concat();
    let parse = packet(b'P', b"\0SELECT $1::text\0\0\0");
    raw_send(&mut raw, &[parse, packet(b'B', &bind), packet(b'E', b"\0\0\0\0\0"), packet(b'S', b"")].concat()).await;
    let answers = until_ready(&mut raw).await;
    assert_eq!((kinds(&answers), error_state(&answers)), ("1EZ".into(), Some("54000".into())));
    // So is a piece of COPY's data; what follows of it is passed over too.
    raw_query(&mut raw, "CREATE TABLE t (v text)").await;
    until_ready(&mut raw).await;
    raw_query(&mut raw, "COPY t FROM STDIN").await;
    assert_eq!(soon(message(&mut raw)).await.unwrap().0, b'G');
    raw_send(&mut raw, &[packet(b'd', &vec![b'x'; 200_000]), packet(b'd', b"\n"), packet(b'c', b"")].concat()).await;
    let answers = until_ready(&mut raw).await;
    assert_eq!((kinds(&answers), error_state(&answers)), ("EZ".into(), Some("54000".into())));
    raw_query(&mut raw, "SELECT count(*) FROM t").await;
    assert_eq!(kinds(&until_ready(&mut raw).await), "TDCZ");
}
