//! Serialisable transactions: snapshot isolation, and a watch over who reads what others write (SSI: Cahill, Röhm and
//! Fekete 2008; the form of Ports and Grittner 2012).
//!
//! Nobody waits for anybody here. What a serialisable transaction reads is noted (`reads`), also where it finds
//! nothing. Where another serialisable transaction that runs at the same time writes a part of that, there is an edge
//! between the two, and edges that could be part of a cycle end one of the transactions with 40001 (`dangers`).
//!
//! 1. A reader notes what it will read, then reads. A writer writes (row and index entries), then looks at what was
//!    noted. So one of the two sees the other: the writer finds the note, or the reader finds a version that its
//!    snapshot does not see (`versions`). This needs no common latch.
//! 2. A transaction is a member from its snapshot on. The number of its snapshot is taken together with the snapshot
//!    itself, under the lock here; that of its commit after others can see it. So "committed before that snapshot" by
//!    numbers is true of the snapshot too.
//! 3. A member prepares after everything that can fail, in the same step that writes its commit record. It can be
//!    doomed before, and not after.
//! 4. What is known of a committed member is kept until all that ran at the same time have ended. If memory is short,
//!    the oldest of these are joined: what they have read counts by table, and of each writer only its number, its
//!    commit and its first edge are kept. If that is too much, too, the oldest are dropped, and who would have to know
//!    them gets 40001.
//! 5. A transaction that only reads has a *safe* snapshot when every other that ran when it was taken has ended, and
//!    none of them has an edge to one that had committed before. Nothing it reads can be wrong then, and it is a member
//!    no more. READ ONLY DEFERRABLE waits for that.
//! 6. Transactions of other isolation levels are no members. They neither note nor look, so nothing here costs them
//!    anything but to see that they are none.
//! 7. Nothing is written down. After a crash no transaction of before goes on, so none runs at the same time as a
//!    later one.
//! 8. A transaction that was to be a member and has ended is none: what is left of its scans notes nothing.
use crate::error::{EngineError, Result};
use crate::locks::Owner;
use crate::snapshots::Snapshot;
use parking_lot::Mutex;
use reads::{Bounds, Id, Reads};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use terrace_storage::{ObjectId, TxnId};
use tokio::sync::Notify;

mod dangers;
mod reads;
#[cfg(test)]
mod tests;

pub(crate) use reads::{Piece, Written};

/// Counts snapshots, preparations and commits of members.
type Seq = u64;
const NEVER: Seq = Seq::MAX;

/// Committed members that are kept one by one.
const KEPT: usize = if cfg!(test) { 32 } else { 2048 };
/// About what a member takes in memory, without what it has read.
const MEMBER: usize = 512;
/// About what a joined writer takes in memory.
const JOINED: usize = 96;

#[derive(Debug)]
struct Member {
    owner: Owner,
    /// 0: it has not written.
    txn: TxnId,
    snapshot: Seq,
    prepared: Option<Seq>,
    committed: Option<Seq>,
    /// It was declared so, or it has committed without writing.
    read_only: bool,
    doomed: bool,
    /// Who has read what it has written over.
    ins: BTreeSet<Id>,
    /// Who has written over what it has read.
    outs: BTreeSet<Id>,
    /// Of joined members: the last commit of those that are in `ins`; 0: none.
    old_in: Seq,
    /// Of members that are gone: the first commit of those that were in `outs`.
    old_out: Seq,
    reads: Reads,
    /// Read only: on whose ends it depends whether its snapshot is safe (invariant 5).
    undecided: BTreeSet<Id>,
    watched: Option<Arc<Watch>>,
}

/// Whether a snapshot is safe, for who waits for that.
#[derive(Default, Debug)]
struct Watch {
    answer: Mutex<Option<bool>>,
    told: Notify,
}

impl Watch {
    fn tell(&self, safe: bool) {
        *self.answer.lock() = Some(safe);
        self.told.notify_one();
    }
}

/// Committed members of which there were too many (invariant 4).
#[derive(Default)]
struct Joined {
    /// The last commit of those that have read the table.
    tables: FxHashMap<ObjectId, Seq>,
    /// Preparation, and the first of `outs` that committed before.
    writers: FxHashMap<TxnId, (Seq, Seq)>,
    /// The writers in the order of their commits.
    order: VecDeque<(Seq, TxnId)>,
    /// The last commit, and the greatest id, of writers that were dropped.
    dropped: (Seq, TxnId),
}

struct Inner {
    seq: Seq,
    last: Id,
    all: BTreeMap<Id, Member>,
    by_txn: FxHashMap<TxnId, Id>,
    /// Members that have not committed, by snapshot.
    open: BTreeSet<(Seq, Id)>,
    /// Members that have, in the order of their commits.
    committed: VecDeque<(Seq, Id)>,
    readers: reads::Readers,
    joined: Joined,
    /// Members of which `undecided` is not empty.
    waiting: BTreeSet<Id>,
    /// Bytes that all of this may take.
    limit: usize,
}

/// The members of a database.
pub(crate) struct Serializable(Mutex<Inner>);

/// A transaction's membership. Its scans share it.
pub(crate) struct Serial {
    registry: Arc<Serializable>,
    id: Id,
}

/// A scan of an index that is noted as it goes on.
pub(crate) struct NotedScan {
    serial: Arc<Serial>,
    table: ObjectId,
    scan: u64,
}

/// `reason` ends with a full stop.
fn refused(reason: &str) -> EngineError {
    EngineError::dependencies(reason)
}

impl Serializable {
    pub(crate) fn new(limit: usize) -> Serializable {
        Serializable(Mutex::new(Inner {
            seq: 1,
            last: 0,
            all: BTreeMap::new(),
            by_txn: FxHashMap::default(),
            open: BTreeSet::new(),
            committed: VecDeque::new(),
            readers: reads::Readers::default(),
            joined: Joined::default(),
            waiting: BTreeSet::new(),
            limit,
        }))
    }

    /// A member begins, with its snapshot (invariant 2). `None`: it only reads, and its snapshot is safe already.
    pub(crate) fn begin(
        self: &Arc<Self>,
        owner: Owner,
        read_only: bool,
        snapshot: impl FnOnce() -> Arc<Snapshot>,
    ) -> (Arc<Snapshot>, Option<Arc<Serial>>) {
        let mut inner = self.0.lock();
        let snapshot = snapshot();
        let id = inner.begin(owner, read_only);
        (snapshot, id.map(|id| Arc::new(Serial { registry: self.clone(), id })))
    }

    /// All that was read of a table counts as the whole table: its definition is about to change.
    pub(crate) fn coarsen(&self, table: ObjectId) {
        let inner = &mut *self.0.lock();
        for (id, member) in &mut inner.all {
            if member.reads.tables().any(|t| t == table) {
                inner.readers.coarsen(*id, &mut member.reads, table);
            }
        }
    }

    /// Where that transaction waits for a safe snapshot: those on whose ends it depends.
    pub(crate) fn blockers(&self, owner: Owner) -> Vec<Owner> {
        let inner = self.0.lock();
        let mut waiting = inner.waiting.iter().map(|id| &inner.all[id]);
        let waits = waiting.find(|member| member.owner == owner && member.watched.is_some());
        let owners = waits.map(|member| member.undecided.iter().filter_map(|id| Some(inner.all.get(id)?.owner)));
        owners.into_iter().flatten().collect()
    }

    /// Members, and of these the committed ones; bytes of what they have read.
    #[cfg(test)]
    fn sizes(&self) -> (usize, usize, usize) {
        let inner = self.0.lock();
        (inner.all.len(), inner.committed.len(), inner.readers.bytes)
    }
}

impl Serial {
    /// It is going to read this (invariant 1).
    pub(crate) fn reads(&self, table: ObjectId, piece: Piece) -> Result<()> {
        let inner = &mut *self.registry.0.lock();
        let Some(member) = inner.all.get_mut(&self.id) else { return Ok(()) };
        member.check()?;
        inner.readers.add(self.id, &mut member.reads, table, piece);
        inner.make_room(self.id, table);
        Ok(())
    }

    /// It is going to read a range of an index. `None`: nothing of it is left to note.
    pub(crate) fn scans(
        self: &Arc<Self>,
        table: ObjectId,
        index: ObjectId,
        bounds: Bounds,
    ) -> Result<Option<NotedScan>> {
        let inner = &mut *self.registry.0.lock();
        let Some(member) = inner.all.get_mut(&self.id) else { return Ok(None) };
        member.check()?;
        let scan = inner.readers.scan(self.id, &mut member.reads, table, index, bounds);
        inner.make_room(self.id, table);
        Ok(scan.map(|scan| NotedScan { serial: self.clone(), table, scan }))
    }

    /// It has read a row in the version before one that `writer` has written.
    pub(crate) fn overwritten(&self, writer: TxnId) -> Result<()> {
        let inner = &mut *self.registry.0.lock();
        let Some(member) = inner.all.get(&self.id) else { return Ok(()) };
        member.check()?;
        match inner.by_txn.get(&writer) {
            Some(other) if *other != self.id => inner.edge(self.id, *other, self.id),
            Some(_) => Ok(()),
            None => inner.edge_to_joined(self.id, writer),
        }
    }

    /// Its transaction has an id from here on, and has written nothing yet.
    pub(crate) fn has_id(&self, txn: TxnId) {
        let inner = &mut *self.registry.0.lock();
        if let Some(member) = inner.all.get_mut(&self.id) {
            member.txn = txn;
            inner.by_txn.insert(txn, self.id);
        }
    }

    /// It has written this (invariant 1).
    pub(crate) fn wrote(&self, written: &Written) -> Result<()> {
        let inner = &mut *self.registry.0.lock();
        let Some(member) = inner.all.get(&self.id) else { return Ok(()) };
        member.check_write()?;
        let readers = inner.readers.of(written, |id| inner.all.get(&id).map(|member| &member.reads));
        inner.edges_from(self.id, written.table, readers)
    }

    /// It is about to empty or drop a table.
    pub(crate) fn wrote_all(&self, table: ObjectId) -> Result<()> {
        let inner = &mut *self.registry.0.lock();
        let Some(member) = inner.all.get(&self.id) else { return Ok(()) };
        member.check_write()?;
        let has_read = |member: &Member| member.reads.tables().any(|t| t == table);
        let readers = inner.all.iter().filter(|(_, member)| has_read(member)).map(|(id, _)| *id).collect();
        inner.edges_from(self.id, table, readers)
    }

    /// The last step before its commit record is written (invariant 3).
    pub(crate) fn prepare(&self) -> Result<()> {
        let mut inner = self.registry.0.lock();
        let Some(member) = inner.all.get(&self.id) else { return Ok(()) };
        if member.doomed {
            return Err(refused("Canceled on identification as a pivot, during commit attempt."));
        }
        inner.before_commit(self.id)?;
        inner.seq += 1;
        let seq = inner.seq;
        inner.member(self.id).prepared = Some(seq);
        Ok(())
    }

    /// Others can see what it has written (invariant 2).
    pub(crate) fn committed(&self) {
        let mut inner = self.registry.0.lock();
        if inner.all.contains_key(&self.id) {
            inner.committed(self.id);
        }
    }

    /// It will not commit. (Not one that has prepared and not committed: nobody knows its outcome, and the database has
    /// stopped.)
    pub(crate) fn leave(&self) {
        let mut inner = self.registry.0.lock();
        if inner.all.get(&self.id).is_some_and(|member| member.prepared.is_none()) {
            inner.ended(self.id, None);
            inner.remove(self.id);
            inner.forget_past();
        }
    }

    /// Waits until it is known whether its snapshot is safe (invariant 5), and answers that.
    pub(crate) async fn is_safe(&self) -> bool {
        let watch = {
            let mut inner = self.registry.0.lock();
            let Some(member) = inner.all.get_mut(&self.id) else { return true };
            if member.undecided.is_empty() {
                return false;
            }
            member.watched.get_or_insert_default().clone()
        };
        loop {
            if let Some(safe) = *watch.answer.lock() {
                return safe;
            }
            watch.told.notified().await;
        }
    }
}

impl Drop for Serial {
    fn drop(&mut self) {
        self.leave();
    }
}

impl NotedScan {
    /// How far the scan goes or has gone. `ended`: it has read all of this, and goes no further.
    pub(crate) fn set_bounds(&self, bounds: Bounds, ended: bool) {
        let inner = &mut *self.serial.registry.0.lock();
        if let Some(member) = inner.all.get_mut(&self.serial.id) {
            inner.readers.set_bounds(&mut member.reads, self.table, self.scan, bounds, ended);
        }
    }
}

impl Member {
    /// 40001 where it is doomed.
    fn check(&self) -> Result<()> {
        match self.doomed {
            true => Err(refused("Canceled on identification as a pivot, during conflict out checking.")),
            false => Ok(()),
        }
    }

    fn check_write(&self) -> Result<()> {
        match self.doomed {
            true => Err(refused("Canceled on identification as a pivot, during conflict in checking.")),
            false => Ok(()),
        }
    }
}

impl Inner {
    fn member(&mut self, id: Id) -> &mut Member {
        self.all.get_mut(&id).expect("the caller has found it")
    }

    fn doom(&mut self, id: Id) {
        self.member(id).doomed = true;
    }

    fn begin(&mut self, owner: Owner, read_only: bool) -> Option<Id> {
        let mut undecided = BTreeSet::new();
        if read_only {
            let open = self.open.iter().map(|(_, id)| id);
            undecided = open.filter(|id| !self.all[id].read_only && !self.all[id].doomed).copied().collect();
            if undecided.is_empty() {
                return None;
            }
        }
        self.last += 1;
        let (id, snapshot) = (self.last, self.seq);
        if read_only {
            self.waiting.insert(id);
        }
        self.open.insert((snapshot, id));
        let member = Member {
            owner,
            txn: TxnId::NONE,
            snapshot,
            prepared: None,
            committed: None,
            read_only,
            doomed: false,
            ins: BTreeSet::new(),
            outs: BTreeSet::new(),
            old_in: 0,
            old_out: NEVER,
            reads: Reads::default(),
            undecided,
            watched: None,
        };
        self.all.insert(id, member);
        Some(id)
    }

    /// Edges to `writer` from those of the readers that run at the same time.
    fn edges_from(&mut self, writer: Id, table: ObjectId, readers: BTreeSet<Id>) -> Result<()> {
        let snapshot = self.all[&writer].snapshot;
        for reader in readers.into_iter().filter(|reader| *reader != writer) {
            let other = &self.all[&reader];
            if !other.doomed && other.committed.is_none_or(|committed| committed > snapshot) {
                self.edge(reader, writer, writer)?;
            }
        }
        let Some(committed) = self.joined.tables.get(&table).copied().filter(|c| *c > snapshot) else { return Ok(()) };
        if self.first_out(&self.all[&writer]) <= committed {
            return Err(refused("Canceled on identification as a pivot, with conflict in from an old transaction."));
        }
        let member = self.member(writer);
        member.old_in = member.old_in.max(committed);
        Ok(())
    }

    /// An edge to a transaction that is no member any more, or has never been one.
    fn edge_to_joined(&mut self, reader: Id, writer: TxnId) -> Result<()> {
        let member = &self.all[&reader];
        let (prepared, first_out) = match self.joined.writers.get(&writer) {
            Some(joined) => *joined,
            None if member.snapshot < self.joined.dropped.0 && writer <= self.joined.dropped.1 => (0, 0),
            None => return Ok(()),
        };
        if first_out < NEVER && (!member.read_only || first_out <= member.snapshot) {
            return Err(refused(&format!("Canceled on conflict out to old pivot {}.", writer.0)));
        }
        if !member.read_only && self.has_late_in(member, prepared) {
            let reason = "Canceled on identification as a pivot, with conflict out to old committed transaction";
            return Err(refused(&format!("{reason} {}.", writer.0)));
        }
        let member = self.member(reader);
        member.old_out = member.old_out.min(prepared);
        Ok(())
    }

    fn committed(&mut self, id: Id) {
        self.seq += 1;
        let seq = self.seq;
        let member = self.member(id);
        member.committed = Some(seq);
        member.read_only |= member.txn == TxnId::NONE;
        let first_out = self.first_out(&self.all[&id]);
        self.ended(id, Some(first_out));
        self.committed.push_back((seq, id));
        self.forget_past();
        while self.committed.len() > KEPT {
            self.join_oldest();
        }
        self.drop_joined();
    }

    /// A member is open no more. `committed`: with its first edge to one that had committed.
    fn ended(&mut self, id: Id, committed: Option<Seq>) {
        let snapshot = self.all[&id].snapshot;
        self.open.remove(&(snapshot, id));
        self.waiting.remove(&id);
        for waits in self.waiting.clone() {
            let member = self.member(waits);
            if !member.undecided.remove(&id) {
                continue;
            }
            let safe = match committed {
                Some(first_out) if first_out <= member.snapshot => false,
                _ if member.undecided.is_empty() => true,
                _ => continue,
            };
            member.undecided.clear();
            if let Some(watch) = &member.watched {
                watch.tell(safe);
            }
            self.waiting.remove(&waits);
            if safe {
                let snapshot = self.all[&waits].snapshot;
                self.open.remove(&(snapshot, waits));
                self.remove(waits);
            }
        }
    }

    /// Takes a member out. Who had an edge to it keeps what matters of that (`old_out`).
    fn remove(&mut self, id: Id) {
        let member = self.all.remove(&id).expect("a member is removed once");
        self.readers.forget(id, member.reads);
        self.by_txn.remove(&member.txn);
        for reader in &member.ins {
            let reader = self.member(*reader);
            reader.outs.remove(&id);
            if member.committed.is_some() {
                reader.old_out = reader.old_out.min(member.prepared.expect("who has committed had prepared"));
            }
        }
        for writer in &member.outs {
            self.member(*writer).ins.remove(&id);
        }
    }

    /// Takes out those committed members that had committed before every open one's snapshot (invariant 4).
    fn forget_past(&mut self) {
        let oldest = self.open.first().map_or(NEVER, |(snapshot, _)| *snapshot);
        while let Some((_, id)) = self.committed.pop_front_if(|(committed, _)| *committed <= oldest) {
            self.remove(id);
        }
        while let Some((_, txn)) = self.joined.order.pop_front_if(|(committed, _)| *committed <= oldest) {
            self.joined.writers.remove(&txn);
        }
        self.joined.tables.retain(|_, committed| *committed > oldest);
    }

    /// Invariant 4. False where there is none.
    fn join_oldest(&mut self) -> bool {
        let Some((committed, id)) = self.committed.pop_front() else { return false };
        let member = &self.all[&id];
        for table in member.reads.tables() {
            let last = self.joined.tables.entry(table).or_default();
            *last = committed.max(*last);
        }
        if member.txn != TxnId::NONE {
            let first_out = Some(self.first_out(member)).filter(|first| *first <= committed);
            let prepared = member.prepared.expect("who has committed had prepared");
            self.joined.writers.insert(member.txn, (prepared, first_out.unwrap_or(NEVER)));
            self.joined.order.push_back((committed, member.txn));
        }
        for writer in member.outs.clone() {
            let writer = self.member(writer);
            writer.old_in = writer.old_in.max(committed);
        }
        self.remove(id);
        true
    }

    /// Joined members may take half of the limit.
    fn drop_joined(&mut self) {
        while self.joined.writers.len() * JOINED > self.limit / 2 {
            let Some((committed, txn)) = self.joined.order.pop_front() else { return };
            self.joined.writers.remove(&txn);
            self.joined.dropped = (committed, self.joined.dropped.1.max(txn));
        }
    }

    /// A member has noted more: others that have committed are joined, or what it has read of the table gets coarse.
    fn make_room(&mut self, id: Id, table: ObjectId) {
        let is_short = |inner: &Inner| inner.readers.bytes + inner.all.len() * MEMBER > inner.limit / 2;
        while is_short(self) && self.join_oldest() {}
        self.drop_joined();
        if is_short(self) {
            let member = self.all.get_mut(&id).expect("it reads");
            self.readers.coarsen(id, &mut member.reads, table);
        }
    }
}
