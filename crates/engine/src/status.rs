//! What goes on in a database, for statistics views. Each answer is a copy of one moment, taken under short locks;
//! different calls see different moments.
use crate::advisory::AdvisoryKey;
use crate::catalog::Catalog;
use crate::database::{Core, Database};
use crate::locks::{LockKey, LockMode, Owner, Wait};
use crate::txn::Isolation;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;
use terrace_env::Nanos;
use terrace_storage::log::LogStatus;
use terrace_storage::pool::PoolStats;
use terrace_storage::{CheckpointStatus, ObjectId, Rid, TxnId};

#[cfg(test)]
mod tests;

/// How far a transaction is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Reads and writes, or nothing just now: whether a statement runs, its session knows.
    Open,
    /// Its commit is in the log and waits to be durable.
    Committing,
    RollingBack,
}

/// A transaction that has begun and not ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransactionStatus {
    /// As `Txn::number`: counted from 1 since the database was opened.
    pub number: u64,
    /// Where it has written.
    pub id: Option<TxnId>,
    /// `None`: left by a crash, being rolled back.
    pub isolation: Option<Isolation>,
    pub stage: Stage,
    /// Since it began.
    pub age: Duration,
    pub waiting: Option<WaitStatus>,
}

/// What a transaction waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitStatus {
    pub target: LockTarget,
    /// `None` for the end of a transaction.
    pub mode: Option<LockMode>,
    pub since: Duration,
    /// Numbers of the transactions that stand against it, ascending: holders, and those before it in the queue. Of a
    /// session with an advisory lock and without a transaction, its own ([`crate::advisory::Advisory::number`]).
    pub blocked_by: Vec<u64>,
}

/// What can be locked or waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockTarget {
    Table(ObjectId),
    /// A row locked without being changed.
    Row(ObjectId, Rid),
    /// The turn to wait for a row's writer.
    RowTurn(ObjectId, Rid),
    /// The end of the transaction of this number, which has written a row that is wanted.
    Transaction(u64),
    Advisory(AdvisoryKey),
}

/// A lock held, or asked for. (Rows that a transaction has written are locked by their headers and not listed.)
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockStatus {
    pub target: LockTarget,
    pub mode: LockMode,
    /// Its number; of an advisory lock, the session's ([`crate::advisory::Advisory::number`]).
    pub transaction: u64,
    pub granted: bool,
}

/// Undo space, and what holds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UndoStatus {
    pub bytes: u64,
    pub limit: u64,
    /// Finished transactions whose undo is kept.
    pub histories: usize,
    pub snapshots: usize,
    /// `Duration::ZERO` where there is none.
    pub oldest_snapshot: Duration,
    /// Older snapshots are given up while undo is over its limit.
    pub snapshot_age_limit: Duration,
    pub snapshots_cancelled: u64,
    /// Purge removes what transactions below this id left behind.
    pub horizon: TxnId,
    pub purge_failures: u64,
    /// When purge last failed (microseconds since 1970, UTC), and why.
    pub last_purge_failure: Option<(i64, String)>,
}

/// The buffer pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolStatus {
    /// Bytes of a page; pages that fit, that are there, that are to be written home.
    pub page_size: usize,
    pub capacity: usize,
    pub resident: usize,
    pub dirty: usize,
    /// Hits, misses (`random_reads`, `sequential_reads`), evictions, writes.
    pub counters: PoolStats,
}

const SHARDS: usize = 16;

/// The transactions that have begun and not ended.
#[derive(Default)]
pub(crate) struct OpenTxns([Mutex<BTreeMap<Owner, Arc<OpenTxn>>>; SHARDS]);

pub(crate) struct OpenTxn {
    began: Nanos,
    isolation: Option<Isolation>,
    stage: AtomicU8,
    /// 0: it has not written.
    id: AtomicU64,
}

impl OpenTxn {
    pub(crate) fn has_id(&self, id: TxnId) {
        self.id.store(id.0, Ordering::Relaxed);
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    fn stage(&self) -> Stage {
        let stages = [Stage::Open, Stage::Committing, Stage::RollingBack];
        let number = self.stage.load(Ordering::Relaxed);
        stages.into_iter().find(|s| *s as u8 == number).expect("only stages are stored")
    }
}

impl OpenTxns {
    fn shard(&self, owner: Owner) -> &Mutex<BTreeMap<Owner, Arc<OpenTxn>>> {
        &self.0[owner.0 as usize % SHARDS]
    }

    pub(crate) fn add(&self, owner: Owner, began: Nanos, isolation: Option<Isolation>) -> Arc<OpenTxn> {
        let (stage, id) = (AtomicU8::new(Stage::Open as u8), AtomicU64::new(0));
        let open = Arc::new(OpenTxn { began, isolation, stage, id });
        self.shard(owner).lock().insert(owner, open.clone());
        open
    }

    pub(crate) fn remove(&self, owner: Owner) {
        self.shard(owner).lock().remove(&owner);
    }

    fn all(&self) -> BTreeMap<Owner, Arc<OpenTxn>> {
        let all = self.0.iter().flat_map(|s| s.lock().iter().map(|(o, t)| (*o, t.clone())).collect::<Vec<_>>());
        all.collect()
    }
}

fn target(key: LockKey) -> LockTarget {
    match key {
        LockKey::Table(table) | LockKey::Keys(table) => LockTarget::Table(table),
        LockKey::Row(table, rid) => LockTarget::RowTurn(table, rid),
        LockKey::Explicit(table, rid) => LockTarget::Row(table, rid),
        LockKey::Advisory(key) => LockTarget::Advisory(key),
    }
}

fn since(core: &Core, then: Nanos) -> Duration {
    Duration::from_nanos(core.env.now().0.saturating_sub(then.0))
}

impl LockTarget {
    /// The table concerned, by its name in a catalogue, where it is there.
    pub fn table_name<'a>(&self, catalog: &'a Catalog) -> Option<&'a str> {
        match self {
            LockTarget::Table(oid) | LockTarget::Row(oid, _) | LockTarget::RowTurn(oid, _) => {
                catalog.table_by_oid(*oid).map(|t| &t.name[..])
            }
            LockTarget::Transaction(_) | LockTarget::Advisory(_) => None,
        }
    }
}

impl Database {
    /// The open transactions, oldest first.
    pub fn transactions(&self) -> Vec<TransactionStatus> {
        let core = &self.0;
        let status = |(owner, open): (Owner, Arc<OpenTxn>)| {
            let waiting = core.locks.waiting(owner).map(|wait| {
                let (target, mode) = match wait.what {
                    Wait::Txn(holder) => (LockTarget::Transaction(holder.0), None),
                    Wait::Lock(key, mode) => (target(key), Some(mode)),
                };
                let blocked_by = wait.blocked_by.into_iter().map(|o| o.0).collect();
                WaitStatus { target, mode, since: since(core, wait.since), blocked_by }
            });
            let id = open.id.load(Ordering::Relaxed);
            TransactionStatus {
                number: owner.0,
                id: (id != 0).then_some(TxnId(id)),
                isolation: open.isolation,
                stage: open.stage(),
                age: since(core, open.began),
                waiting,
            }
        };
        core.open_txns.all().into_iter().map(status).collect()
    }

    /// Numbers of the transactions whose ends the transaction of that number waits for, to get a safe snapshot
    /// (SERIALIZABLE READ ONLY DEFERRABLE).
    pub fn safe_snapshot_blockers(&self, transaction: u64) -> Vec<u64> {
        self.0.serializable.blockers(Owner(transaction)).into_iter().map(|owner| owner.0).collect()
    }

    /// Locks held and asked for: tables, then rows.
    pub fn locks(&self) -> Vec<LockStatus> {
        let all = self.0.locks.all().into_iter();
        all.map(|lock| LockStatus {
            target: target(lock.key),
            mode: lock.mode,
            transaction: lock.owner.0,
            granted: lock.granted,
        })
        .collect()
    }

    pub fn undo_status(&self) -> UndoStatus {
        let core = &self.0;
        let stats = self.stats();
        let failures = core.purge_failures.lock().clone();
        UndoStatus {
            bytes: stats.undo_bytes,
            limit: stats.undo_limit,
            histories: stats.histories,
            snapshots: stats.transactions.snapshots,
            oldest_snapshot: Duration::from_nanos(stats.transactions.oldest_snapshot),
            snapshot_age_limit: core.config.snapshot_age_max,
            snapshots_cancelled: stats.snapshots_cancelled,
            horizon: stats.transactions.horizon,
            purge_failures: failures.count,
            last_purge_failure: failures.last,
        }
    }

    pub fn log_status(&self) -> LogStatus {
        self.0.store.log().status()
    }

    pub fn checkpoint_status(&self) -> CheckpointStatus {
        self.0.store.checkpoints()
    }

    pub fn pool_status(&self) -> PoolStatus {
        let pool = self.0.store.pool();
        PoolStatus {
            page_size: pool.page_size(),
            capacity: pool.frames(),
            resident: pool.resident(),
            dirty: pool.dirty(),
            counters: pool.stats(),
        }
    }
}
