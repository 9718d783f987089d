//! LISTEN and NOTIFY through the wire: who is told, when, and in which order.
use crate::common::*;
use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use futures::{StreamExt, stream};
use tokio_postgres::{AsyncMessage, Client, NoTls};

type Heard = UnboundedReceiver<(String, String)>;

/// A client, and what it is told without being asked.
async fn listener(server: &Server) -> (Client, Heard) {
    let (client, mut connection) = server.config().connect(NoTls).await.unwrap();
    let (tell, heard) = unbounded();
    background(async move {
        let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(note) = message {
                let _ = tell.unbounded_send((note.channel().to_owned(), note.payload().to_owned()));
            }
        }
    });
    (client, heard)
}

async fn next(heard: &mut Heard) -> (String, String) {
    tokio::time::timeout(PATIENCE * 50, heard.next()).await.expect("it is told soon").expect("the client is there")
}

async fn nothing(heard: &mut Heard) -> bool {
    tokio::time::timeout(PATIENCE, heard.next()).await.is_err()
}

fn note(channel: &str, payload: &str) -> (String, String) {
    (channel.to_owned(), payload.to_owned())
}

#[tokio::test]
async fn an_idle_client_is_told() {
    let server = Server::start().await;
    let ((client, mut heard), other) = (listener(&server).await, server.client().await);
    client.batch_execute("LISTEN a; LISTEN \"B\"").await.unwrap();
    other.batch_execute("NOTIFY a, 'one'; NOTIFY b, 'nobody''s'; NOTIFY \"B\"").await.unwrap();
    assert_eq!([next(&mut heard).await, next(&mut heard).await], [note("a", "one"), note("B", "")]);
    // By a function, once for each row, and by the extended protocol; the same twice is told once.
    other.execute("SELECT pg_notify('a', (g / 2)::text) FROM generate_series(1, 4) AS g", &[]).await.unwrap();
    for payload in ["0", "1", "2"] {
        assert_eq!(next(&mut heard).await, note("a", payload));
    }
    assert_eq!(rows(&client, "SELECT pg_listening_channels()").await.unwrap(), ["B", "a"]);
    client.batch_execute("UNLISTEN a").await.unwrap();
    other.batch_execute("NOTIFY a").await.unwrap();
    client.batch_execute("DISCARD ALL").await.unwrap();
    other.batch_execute("NOTIFY \"B\"").await.unwrap();
    assert!(nothing(&mut heard).await);
}

#[tokio::test]
async fn it_happens_at_the_commit() {
    let server = Server::start().await;
    let ((client, mut heard), other) = (listener(&server).await, server.client().await);
    client.batch_execute("LISTEN a").await.unwrap();
    other.batch_execute("BEGIN; NOTIFY a, 'kept'; SAVEPOINT s; NOTIFY a, 'undone'; ROLLBACK TO s").await.unwrap();
    assert_eq!(state(other.batch_execute("SAVEPOINT f; NOTIFY a, 'failed'; SELECT 1 / 0").await), "22012");
    assert!(nothing(&mut heard).await);
    other.batch_execute("ROLLBACK TO f; COMMIT").await.unwrap();
    assert_eq!(next(&mut heard).await, note("a", "kept"));
    other.batch_execute("BEGIN; NOTIFY a, 'rolled back'; ROLLBACK").await.unwrap();
    assert_eq!(state(other.batch_execute("NOTIFY a, 'of a string that fails'; SELECT 1 / 0").await), "22012");
    // Who is in a transaction is told behind it.
    client.batch_execute("BEGIN").await.unwrap();
    other.batch_execute("NOTIFY a, 'later'").await.unwrap();
    assert!(nothing(&mut heard).await);
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(next(&mut heard).await, note("a", "later"));
    // A LISTEN that is rolled back.
    client.batch_execute("UNLISTEN *").await.unwrap();
    client.batch_execute("BEGIN; LISTEN a; ROLLBACK").await.unwrap();
    other.batch_execute("NOTIFY a").await.unwrap();
    assert!(nothing(&mut heard).await);
}

#[tokio::test]
async fn what_is_refused() {
    let server = Server::start().await;
    let client = server.client().await;
    assert_eq!(state(client.batch_execute("SELECT pg_notify('', 'x')").await), "22023");
    assert_eq!(state(client.batch_execute(&format!("NOTIFY a, '{}'", "x".repeat(8000))).await), "22023");
    client.batch_execute(&format!("NOTIFY a, '{}'", "x".repeat(7999))).await.unwrap();
    // Where nobody reads its answer it would not be called.
    let unread = "SELECT 1 FROM (SELECT pg_notify('a', 'x')) AS q";
    assert_eq!(state(client.batch_execute(unread).await), "0A000");
}

/// Sessions that say much at once are heard in whole, each in its own order.
#[tokio::test]
async fn many_at_once() {
    let server = Server::start().await;
    let (client, mut heard) = listener(&server).await;
    client.batch_execute("LISTEN a").await.unwrap();
    let said = (0..4).map(|who| {
        let client = server.client();
        async move {
            let client = client.await;
            for n in 0..25 {
                client.batch_execute(&format!("BEGIN; NOTIFY a, '{who} {n}'; COMMIT")).await.unwrap();
            }
        }
    });
    futures::future::join_all(said).await;
    let mut counts = [0; 4];
    for _ in 0..100 {
        let (_, payload) = next(&mut heard).await;
        let (who, n) = payload.split_once(' ').unwrap();
        let count = &mut counts[who.parse::<usize>().unwrap()];
        assert_eq!(n.parse::<i32>().unwrap(), *count);
        *count += 1;
    }
    assert!(nothing(&mut heard).await);
}
