//! Who hears what, and when.
use super::{Hub, INBOX_MAX, Voice};
use std::sync::Arc;
use terrace_engine::Result;

async fn commit(voice: &Voice) -> Result<()> {
    voice.committed(voice.begin_commit().await?);
    Ok(())
}

fn heard(voice: &Voice) -> Vec<(i32, String, String)> {
    voice.heard().iter().map(|note| (note.pid, note.channel.clone(), note.payload.clone())).collect()
}

fn note(pid: i32, channel: &str, payload: &str) -> (i32, String, String) {
    (pid, channel.to_owned(), payload.to_owned())
}

fn two() -> (Voice, Voice) {
    let hub = Arc::new(Hub::default());
    (Voice::new(&hub, 1), Voice::new(&hub, 2))
}

#[tokio::test]
async fn what_commits_is_heard() {
    let (one, two) = two();
    one.listen("a");
    two.say("a", "too early").unwrap();
    commit(&two).await.unwrap();
    commit(&one).await.unwrap();
    for payload in ["x", "y", "x"] {
        two.say("a", payload).unwrap();
    }
    two.say("b", "nobody's").unwrap();
    assert!(heard(&one).is_empty(), "invariant 1");
    commit(&two).await.unwrap();
    assert_eq!(heard(&one), [note(2, "a", "x"), note(2, "a", "y")]);
    one.say("a", "itself").unwrap();
    commit(&one).await.unwrap();
    one.something_comes().await;
    assert_eq!(heard(&one), [note(1, "a", "itself")]);
    one.unlisten(None);
    two.say("a", "before it commits").unwrap();
    commit(&two).await.unwrap();
    commit(&one).await.unwrap();
    two.say("a", "too late").unwrap();
    commit(&two).await.unwrap();
    assert_eq!(heard(&one), [note(2, "a", "before it commits")]);
}

#[tokio::test]
async fn what_is_rolled_back_is_not() {
    let (one, two) = two();
    one.listen("a");
    commit(&one).await.unwrap();
    two.say("a", "first").unwrap();
    two.savepoint();
    two.say("a", "undone").unwrap();
    two.savepoint();
    two.say("a", "undone, too").unwrap();
    two.back_to(0);
    two.say("a", "kept").unwrap();
    two.release(0);
    commit(&two).await.unwrap();
    assert_eq!(heard(&one), [note(2, "a", "first"), note(2, "a", "kept")]);
    two.say("a", "rolled back").unwrap();
    two.listen("a");
    two.forget();
    commit(&two).await.unwrap();
    assert_eq!((heard(&one), two.channels()), (vec![], vec![]));
}

#[tokio::test]
async fn who_does_not_take_it_stops_the_others() {
    let (one, two) = two();
    one.listen("a");
    commit(&one).await.unwrap();
    let payload = "x".repeat(7999);
    let mut said = 0;
    let error = loop {
        two.say("a", &format!("{}{said}", &payload[..7990])).unwrap();
        match commit(&two).await {
            Ok(()) => said += 1,
            Err(error) => break error,
        }
    };
    two.forget();
    assert_eq!(error.state.0, "54000");
    assert!(said >= INBOX_MAX / 8200, "{said}");
    assert_eq!(heard(&one).len(), said);
    two.say("a", "there is room").unwrap();
    commit(&two).await.unwrap();
    assert_eq!(heard(&one), [note(2, "a", "there is room")]);
    drop(one);
    two.say("a", "nobody's").unwrap();
    commit(&two).await.unwrap();
}

#[test]
fn limits() {
    let (one, _) = two();
    let message = |channel: &str, payload: &str| one.say(channel, payload).unwrap_err().message;
    assert_eq!(message("", ""), "channel name cannot be empty");
    assert_eq!(message(&"c".repeat(64), ""), "channel name too long");
    assert_eq!(message("c", &"p".repeat(8000)), "payload string too long");
}
