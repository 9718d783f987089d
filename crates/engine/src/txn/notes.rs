//! What a transaction's writes have left to judge: foreign keys (`foreign`) and deferrable unique keys (`unique`).
//!
//! 1. What is noted is judged at the end of the statement ([`Txn::next_consequence`]). What is deferred is judged at
//!    the end of the transaction ([`Txn::check_deferred`]), or at SET CONSTRAINTS.
//! 2. Going back to a savepoint takes back what was noted since, and notes again what was judged since.
use super::Txn;
use super::foreign::Consequence;
use crate::catalog::foreign::{Action, ForeignKey};
use crate::catalog::{Index, Table};
use crate::error::{EngineError, Result};
use crate::types::Datum;
use crate::versions::RowVersion;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use terrace_storage::{ObjectId, Rid};

#[derive(Clone, Debug)]
pub(super) enum Event {
    /// The row was written and refers to something.
    Referring(Arc<ForeignKey>, Rid),
    /// This key of the referenced table went; an update put `new` in its place.
    Removed { key: Arc<ForeignKey>, old: Vec<Datum>, new: Option<Vec<Datum>>, action: Action },
    /// The row was written, and another may have its key in a deferrable index.
    Shared(Arc<Index>, Rid),
}

impl Event {
    fn constraint(&self) -> ObjectId {
        match self {
            Event::Referring(key, _) | Event::Removed { key, .. } => key.oid,
            Event::Shared(index, _) => index.oid,
        }
    }

    /// The table whose row was written.
    fn table(&self) -> ObjectId {
        match self {
            Event::Referring(key, _) => key.table,
            Event::Removed { key, .. } => key.referenced,
            Event::Shared(index, _) => index.table,
        }
    }
}

#[derive(Clone, Debug)]
struct Noted {
    event: Event,
    /// The number of the judgement at which it held; 0: not judged yet.
    judged: u32,
}

/// What a transaction has noted.
#[derive(Default)]
pub(super) struct Notes {
    /// To be judged at the end of the statement, in PostgreSQL's order: what a consequence entails comes after all that
    /// was noted before it.
    now: VecDeque<Noted>,
    /// To be judged at the end of the transaction.
    later: Vec<Noted>,
    /// What SET CONSTRAINTS said, oldest first: of one constraint, or of all; deferred or not.
    modes: Vec<(Option<ObjectId>, bool)>,
    /// Judgements of what was deferred.
    judgements: u32,
    /// How many keys of each referenced table it has locked; `None`: all (`foreign`, invariant 5).
    pub(super) locked: FxHashMap<ObjectId, Option<usize>>,
}

/// A place in the notes (invariant 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    now: usize,
    later: usize,
    modes: usize,
    judgements: u32,
}

impl Notes {
    pub(super) fn mark(&self) -> Mark {
        let Notes { now, later, modes, judgements, locked: _ } = self;
        Mark { now: now.len(), later: later.len(), modes: modes.len(), judgements: *judgements }
    }

    pub(super) fn back_to(&mut self, mark: Mark) {
        self.now.truncate(mark.now);
        self.later.truncate(mark.later);
        self.modes.truncate(mark.modes);
        self.later.iter_mut().filter(|noted| noted.judged > mark.judgements).for_each(|noted| noted.judged = 0);
    }

    pub(super) fn note(&mut self, event: Event, deferred: bool) {
        let noted = Noted { event, judged: 0 };
        match deferred {
            true => self.later.push(noted),
            false => self.now.push_back(noted),
        }
    }

    pub(super) fn defers_foreign(&self, key: &ForeignKey) -> bool {
        key.deferrable && self.defers(key.oid, key.deferred)
    }

    /// Of a constraint that is deferrable, and deferred unless SET CONSTRAINTS has said otherwise.
    pub(super) fn defers(&self, constraint: ObjectId, deferred: bool) -> bool {
        let said = self.modes.iter().rev().find(|(oid, _)| oid.is_none_or(|oid| oid == constraint));
        said.map_or(deferred, |(_, deferred)| *deferred)
    }
}

impl Txn {
    /// Made for the first constraint that has to do with it.
    pub(super) fn notes(&mut self) -> &mut Notes {
        self.notes.get_or_insert_default()
    }

    /// Whether the statement has something left to do: [`Txn::next_consequence`] says what.
    pub fn has_consequences(&self) -> bool {
        self.notes.as_ref().is_some_and(|notes| !notes.now.is_empty())
    }

    /// Judges what the statement has noted: 23503 or 23505 where a constraint does not hold, or the next rows that have
    /// to be changed; `None` at the end. The caller changes these rows with [`Txn::update`] and [`Txn::delete`], and
    /// asks again.
    pub async fn next_consequence(&mut self) -> Result<Option<Consequence>> {
        while let Some(noted) = self.notes().now.pop_front() {
            match noted.event {
                Event::Removed { key, old, new, action } if !matches!(action, Action::NoAction | Action::Restrict) => {
                    let Some(found) = self.entailed(&key, old.clone(), new, action).await? else { continue };
                    if action == Action::SetDefault {
                        // The default may be the key that went: then the rows have not changed, and nobody else would
                        // see it.
                        let event = Event::Removed { key, old, new: None, action: Action::NoAction };
                        self.notes().now.push_front(Noted { event, ..noted });
                    }
                    return Ok(Some(found));
                }
                event => self.judge_noted(&event).await?,
            }
        }
        Ok(None)
    }

    /// 23503 or 23505 where what was noted does not hold.
    async fn judge_noted(&mut self, event: &Event) -> Result<()> {
        match event {
            Event::Referring(key, rid) => self.judge_referring(key, *rid).await,
            Event::Removed { key, old, action, .. } => self.judge_removed(key, old, *action).await,
            Event::Shared(index, rid) => self.judge_shared(index, *rid).await,
        }
    }

    /// A row that this transaction has written, unless it has gone or was undone since.
    pub(super) async fn written(&mut self, table: &Table, rid: Rid) -> Result<Option<RowVersion>> {
        let (core, own) = (self.core().clone(), self.own());
        match core.settled(own, table.oid, rid).await? {
            Some((row, None)) if row.is_live() => Ok(Some(row)),
            _ => Ok(None),
        }
    }

    /// Judges what was deferred to the end of the transaction: 23503 or 23505. [`Txn::commit`] does it too; the caller
    /// may do it before, where it may be cancelled.
    pub async fn check_deferred(&mut self) -> Result<()> {
        self.judge_deferred(|_| true).await
    }

    pub(super) fn has_noted(&self) -> bool {
        self.notes.as_ref().is_some_and(|notes| !(notes.now.is_empty() && notes.later.is_empty()))
    }

    /// For the caller whose statement can have no consequences: judges what it has noted. 23503 or 23505.
    pub async fn judge_statement(&mut self) -> Result<()> {
        match self.next_consequence().await? {
            None => Ok(()),
            Some(left) => {
                let message =
                    format!("rows of \"{}\" were left as they are, which a foreign key changes", left.table.name);
                Err(EngineError::internal(message))
            }
        }
    }

    /// Before a commit: judges all that is noted.
    pub(super) async fn check_noted(&mut self) -> Result<()> {
        self.judge_statement().await?;
        self.check_deferred().await
    }

    async fn judge_deferred(&mut self, which: impl Fn(ObjectId) -> bool + Send) -> Result<()> {
        if self.notes().later.iter().all(|noted| noted.judged > 0) {
            return Ok(());
        }
        self.notes().judgements += 1;
        for at in 0..self.notes().later.len() {
            let noted = &self.notes().later[at];
            if noted.judged == 0 && which(noted.event.constraint()) {
                let event = noted.event.clone();
                self.judge_noted(&event).await?;
                let notes = self.notes();
                notes.later[at].judged = notes.judgements;
            }
        }
        Ok(())
    }

    /// SET CONSTRAINTS: of these foreign keys and indexes, or of all. Made immediate, they are judged at once (23503,
    /// 23505).
    pub async fn set_constraints(&mut self, of: Option<&[ObjectId]>, deferred: bool) -> Result<()> {
        match of {
            None => {
                self.notes().modes.push((None, deferred));
            }
            Some(of) => self.notes().modes.extend(of.iter().map(|oid| (Some(*oid), deferred))),
        }
        match deferred {
            true => Ok(()),
            false => self.judge_deferred(|oid| of.is_none_or(|of| of.contains(&oid))).await,
        }
    }

    /// 55006 where something of the table is noted and not judged: a definition must not change under it.
    pub(crate) fn refuse_noted(&self, table: &Table, what: &str) -> Result<()> {
        let mut later = self.notes.iter().flat_map(|notes| &notes.later);
        match later.any(|noted| noted.judged == 0 && noted.event.table() == table.oid) {
            true => {
                let message = format!("cannot {what} \"{}\" because it has pending trigger events", table.name);
                Err(EngineError::new("55006", message))
            }
            false => Ok(()),
        }
    }
}
