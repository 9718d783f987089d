//! What other sessions do to one: its end, and locks that go with it. And what is told of a result's columns.
use crate::common::raw::*;
use crate::common::{Server, rows, soon, waits};
use std::pin::pin;

/// Fields of an ErrorResponse or a NoticeResponse.
fn told(messages: &Messages, kind: u8) -> Vec<String> {
    let of = |body: &[u8]| {
        let fields = body.split(|b| *b == 0).filter(|f| matches!(f.first(), Some(b'S' | b'C' | b'M')));
        fields.map(|f| String::from_utf8_lossy(&f[1..]).into_owned()).collect::<Vec<_>>().join(" ")
    };
    messages.iter().filter(|(k, _)| *k == kind).map(|(_, body)| of(body)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn warnings_of_functions_are_told() {
    let server = Server::start().await;
    let mut raw = session(&server).await;
    raw_query(&mut raw, "SELECT pg_advisory_unlock(1)").await;
    let answers = until_ready(&mut raw).await;
    assert_eq!(told(&answers, b'N'), ["WARNING 01000 you don't own a lock of type ExclusiveLock"]);
    assert_eq!(kinds(&answers), "TNDCZ");
    raw_query(&mut raw, "SELECT 1").await;
    assert_eq!(kinds(&until_ready(&mut raw).await), "TDCZ");
}

/// A connection that dies gives up the session's locks.
#[tokio::test(flavor = "multi_thread")]
async fn advisory_locks_go_with_their_connection() {
    let server = Server::start().await;
    let mut dying = session(&server).await;
    raw_query(&mut dying, "SELECT pg_advisory_lock(1)").await;
    until_ready(&mut dying).await;
    let c = server.client().await;
    let mut asking = pin!(rows(&c, "SELECT pg_advisory_lock(1)"));
    waits(&mut asking).await;
    drop(dying);
    assert_eq!(soon(asking).await.unwrap(), [""]);
    // Who waits for nobody does not wait: the next one gets the lock.
    let mut waiting = session(&server).await;
    raw_query(&mut waiting, "SELECT pg_advisory_lock(1)").await;
    drop(waiting);
    let d = server.client().await;
    let mut asking = pin!(rows(&d, "SELECT pg_advisory_lock(1)"));
    waits(&mut asking).await;
    assert_eq!(rows(&c, "SELECT pg_advisory_unlock(1)").await.unwrap(), ["t"]);
    assert_eq!(soon(asking).await.unwrap(), [""]);
}
