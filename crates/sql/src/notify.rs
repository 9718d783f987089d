//! LISTEN, UNLISTEN and NOTIFY: texts on channels, from a session to those that listen.
//!
//! 1. What a transaction says, and what it begins or ends to listen to, happens when it commits. What is rolled back,
//!    whole or to a savepoint, has not happened.
//! 2. Transactions that say something commit one at a time, so that everybody hears them in the order of their commits.
//! 3. The same text on the same channel is heard once for each transaction.
//! 4. Who does not take what has come for it stops those who would say more ([`INBOX_MAX`]): nothing is dropped.
//! 5. Nothing is kept on disk: what nobody has heard is gone with the server.
//!
//! Source: PostgreSQL 15 documentation, NOTIFY.
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use terrace_engine::{EngineError, Result};

/// Bytes of texts, PostgreSQL's limits.
const PAYLOAD_MAX: usize = 8000;
const CHANNEL_MAX: usize = 64;

/// Bytes that wait for one session (invariant 4).
const INBOX_MAX: usize = if cfg!(test) { 64 << 10 } else { 64 << 20 };
/// What a note takes beside its texts.
const NOTE_BYTES: usize = 128;

/// A text on a channel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// The process id of the session that said it.
    pub pid: i32,
    pub channel: String,
    pub payload: String,
}

impl Note {
    fn bytes(&self) -> usize {
        NOTE_BYTES + self.channel.len() + self.payload.len()
    }
}

/// The sessions of a database that listen.
#[derive(Default)]
pub(crate) struct Hub {
    ears: Mutex<BTreeMap<i32, Arc<Ear>>>,
    /// Invariant 2.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// What one session listens to, and what has come for it.
#[derive(Default)]
struct Ear {
    channels: Mutex<BTreeSet<String>>,
    inbox: Mutex<Inbox>,
    arrived: tokio::sync::Notify,
}

#[derive(Default)]
struct Inbox {
    notes: VecDeque<Arc<Note>>,
    bytes: usize,
}

/// What a transaction will have done (invariant 1).
enum Pending {
    Say(Note),
    Listen(String),
    /// None: `*`.
    Unlisten(Option<String>),
}

/// A session's part.
pub(crate) struct Voice {
    hub: Arc<Hub>,
    pid: i32,
    ear: Arc<Ear>,
    pending: Mutex<Vec<Pending>>,
    /// How much there was at each savepoint.
    marks: Mutex<Vec<usize>>,
}

/// The right to commit what was said (invariant 2).
pub(crate) type Turn = tokio::sync::OwnedMutexGuard<()>;

fn invalid(message: &str) -> EngineError {
    EngineError::new("22023", message)
}

impl Voice {
    pub(crate) fn new(hub: &Arc<Hub>, pid: i32) -> Voice {
        let (ear, pending, marks) = Default::default();
        Voice { hub: hub.clone(), pid, ear, pending, marks }
    }

    pub(crate) fn listen(&self, channel: &str) {
        self.pending.lock().push(Pending::Listen(channel.to_owned()));
    }

    pub(crate) fn unlisten(&self, channel: Option<&str>) {
        self.pending.lock().push(Pending::Unlisten(channel.map(str::to_owned)));
    }

    pub(crate) fn say(&self, channel: &str, payload: &str) -> Result<()> {
        if channel.is_empty() {
            return Err(invalid("channel name cannot be empty"));
        }
        if channel.len() >= CHANNEL_MAX {
            return Err(invalid("channel name too long"));
        }
        if payload.len() >= PAYLOAD_MAX {
            return Err(invalid("payload string too long"));
        }
        let note = Note { pid: self.pid, channel: channel.to_owned(), payload: payload.to_owned() };
        self.pending.lock().push(Pending::Say(note));
        Ok(())
    }

    pub(crate) fn savepoint(&self) {
        self.marks.lock().push(self.pending.lock().len());
    }

    pub(crate) fn release(&self, at: usize) {
        self.marks.lock().truncate(at);
    }

    /// Back to a savepoint, which stays.
    pub(crate) fn back_to(&self, at: usize) {
        let mut marks = self.marks.lock();
        marks.truncate(at + 1);
        let mark = *marks.last().expect("the savepoint is one of those that were made");
        self.pending.lock().truncate(mark);
    }

    /// The transaction is rolled back.
    pub(crate) fn forget(&self) {
        self.marks.lock().clear();
        self.pending.lock().clear();
    }

    /// Whether the transaction has done nothing here.
    pub(crate) fn is_silent(&self) -> bool {
        self.pending.lock().is_empty()
    }

    /// Before a commit: the turn. 54000 where somebody has no room for what was said.
    pub(crate) async fn begin_commit(&self) -> Result<Turn> {
        let turn = self.hub.turn.clone().lock_owned().await;
        let pending = self.pending.lock();
        for ear in self.hub.ears.lock().values() {
            let heard = pending.iter().filter_map(|pending| match pending {
                Pending::Say(note) if ear.hears(&note.channel) => Some(note.bytes()),
                _ => None,
            });
            if ear.inbox.lock().bytes.saturating_add(heard.sum()) > INBOX_MAX {
                let error = EngineError::new("54000", "too many notifications in the NOTIFY queue");
                let hint = "A session that listens does not end its transaction, or does not read what is sent to it.";
                return Err(error.with_hint(hint));
            }
        }
        Ok(turn)
    }

    /// The commit has happened. First of all the session listens to what it is to listen to: it hears itself.
    pub(crate) fn committed(&self, _turn: Turn) {
        self.marks.lock().clear();
        let (mut said, mut known) = (vec![], BTreeSet::new());
        for pending in std::mem::take(&mut *self.pending.lock()) {
            let mut channels = self.ear.channels.lock();
            match pending {
                Pending::Listen(channel) => drop(channels.insert(channel)),
                Pending::Unlisten(Some(channel)) => drop(channels.remove(&channel)),
                Pending::Unlisten(None) => channels.clear(),
                // Invariant 3.
                Pending::Say(note) if known.insert((note.channel.clone(), note.payload.clone())) => said.push(note),
                Pending::Say(_) => {}
            }
        }
        let mut ears = self.hub.ears.lock();
        match self.ear.channels.lock().is_empty() {
            true => drop(ears.remove(&self.pid)),
            false => drop(ears.insert(self.pid, self.ear.clone())),
        }
        for note in said.into_iter().map(Arc::new) {
            ears.values().filter(|ear| ear.hears(&note.channel)).for_each(|ear| ear.take_in(&note));
        }
    }

    /// What the session listens to.
    pub(crate) fn channels(&self) -> Vec<String> {
        self.ear.channels.lock().iter().cloned().collect()
    }

    /// What has come.
    pub(crate) fn heard(&self) -> Vec<Arc<Note>> {
        let inbox = std::mem::take(&mut *self.ear.inbox.lock());
        inbox.notes.into()
    }

    /// Done once something has come.
    pub(crate) async fn something_comes(&self) {
        while self.ear.inbox.lock().notes.is_empty() {
            self.ear.arrived.notified().await;
        }
    }
}

impl Ear {
    fn hears(&self, channel: &str) -> bool {
        self.channels.lock().contains(channel)
    }

    fn take_in(&self, note: &Arc<Note>) {
        let mut inbox = self.inbox.lock();
        inbox.bytes += note.bytes();
        inbox.notes.push_back(note.clone());
        self.arrived.notify_one();
    }
}

impl Voice {
    /// The session has ended: nothing more is kept for it.
    pub(crate) fn leave(&self) {
        self.hub.ears.lock().remove(&self.pid);
    }
}

impl Drop for Voice {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests;
