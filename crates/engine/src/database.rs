//! A database: storage, catalogue, transactions and purge, opened together.
//!
//! 1. Opening goes in this order: redo (storage); losers are taken over, and those that changed definitions are rolled
//!    back; reading of the committed catalogue; then purge, the rollback of the other losers in the background
//!    (`txn::losers`), and the public start. Purge reads what is left to purge from the run before.
//! 2. A commit whose log flush failed has an unknown outcome. It stays active for ever, and the database stops (58030).
//! 3. A database counts as created when all of it is home. A crash before that leaves files that opening refuses and
//!    creating overwrites.
use crate::advisory::Advisory;
use crate::catalog::{Catalog, Table};
use crate::error::{EngineError, Result};
use crate::histories::Histories;
use crate::locks::{Locks, Owner};
use crate::purge::PurgeFailures;
use crate::serializable::Serializable;
use crate::snapshots::exported::Exports;
use crate::snapshots::{Active, TxnStats};
use crate::status::OpenTxns;
use crate::txn::losers::TURNS;
use crate::txn::resources::TxnResources;
use crate::txn::{Isolation, LAZY_FLUSH, Txn};
use crate::usage::{Counts, Ended, Usage};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use terrace_env::Env;
use terrace_storage::backup::Upto;
use terrace_storage::config::{Restart, Safeguard};
use terrace_storage::undo::Unread;
use terrace_storage::{
    CheckedMutex, DeviceSet, Distribution, Lsn, ObjectId, RecoveryPhase, RecoveryReport, StorageConfig, Store,
};
use tokio::sync::{MutexGuard, Notify, Semaphore};

#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// A snapshot older than this, while undo is over its limit, is cancelled (72000 snapshot too old).
    pub snapshot_age_max: Duration,
    /// Bytes of undo space; beyond it old snapshots are cancelled first, then writers get 53100.
    pub undo_size_max: u64,
    /// Waits longer than this for a row or table lock fail (55P03). Zero = never.
    pub lock_timeout: Duration,
    /// About how many bytes may be used to watch over serialisable transactions.
    pub serializable_memory: usize,
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            snapshot_age_max: Duration::from_secs(3600),
            undo_size_max: 4 << 30,
            lock_timeout: Duration::ZERO,
            serializable_memory: 32 << 20,
        }
    }
}

/// What opening did.
#[derive(Clone, Debug, Default)]
pub struct OpenReport {
    pub storage: RecoveryReport,
    /// Transactions that the run before left unfinished: rolled back by now, and being rolled back in the background.
    pub losers_rolled_back: usize,
    pub losers_left: usize,
}

/// What goes on in a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseStats {
    pub transactions: TxnStats,
    /// Finished transactions whose undo is still kept.
    pub histories: usize,
    /// Bytes of undo space in use, and allowed.
    pub undo_bytes: u64,
    pub undo_limit: u64,
    /// Snapshots given up for undo space since opening.
    pub snapshots_cancelled: u64,
}

/// An open database; cheap to clone.
#[derive(Clone)]
pub struct Database(pub(crate) Arc<Core>);

/// What transactions, purge and checks share.
pub(crate) struct Core {
    pub(crate) env: Env,
    pub(crate) store: Store,
    /// The same, for rollback and purge: they go on when a full log stops everybody else.
    pub(crate) cleanup: Store,
    pub(crate) config: EngineConfig,
    /// The committed catalogue.
    pub(crate) catalog: RwLock<Arc<Catalog>>,
    /// Tables as the transaction that holds the lock of definitions has changed them: there may be rows that were
    /// written so, which the committed definition cannot read (`Core::read_needed`).
    pub(crate) redefined: Mutex<FxHashMap<ObjectId, Arc<Table>>>,
    pub(crate) active: Arc<Active>,
    pub(crate) exports: Arc<Exports>,
    pub(crate) locks: Arc<Locks>,
    pub(crate) serializable: Arc<Serializable>,
    pub(crate) usage: Arc<Usage>,
    stripes: Vec<tokio::sync::Mutex<()>>,
    /// Finished transactions in the order in which they ended (their commits may become durable, and so be here, in
    /// another). Taken before the lock of `active`.
    pub(crate) histories: CheckedMutex<Histories>,
    /// Those of the run before that nobody has read yet.
    unread: tokio::sync::Mutex<Unread>,
    pub(crate) purge_wanted: Arc<Notify>,
    /// Held while purging, and while checking.
    pub(crate) purging: tokio::sync::Mutex<()>,
    pub(crate) snapshots_cancelled: AtomicU64,
    pub(crate) purge_failures: Mutex<PurgeFailures>,
    pub(crate) open_txns: OpenTxns,
    lazy: Arc<LazyFlush>,
    owners: AtomicU64,
    /// Rollbacks under way in the background.
    pub(crate) background: AtomicU64,
    pub(crate) background_done: Notify,
    /// What they take turns with (`txn::losers`, invariant 6).
    pub(crate) turns: Semaphore,
    /// They end and leave the rest to the next start.
    pub(crate) leaving: AtomicBool,
    /// Losers that are not rolled back yet.
    pub(crate) losers: AtomicU64,
    /// Why nothing can be written any more.
    failed: OnceLock<String>,
    pub(crate) closing: AtomicBool,
    /// What a test does in the middle of `TxnResources::become_visible`.
    #[cfg(test)]
    pub(crate) while_leaving: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

/// Up to where the log is to be made durable without anybody waiting.
#[derive(Default)]
struct LazyFlush {
    upto: AtomicU64,
    wanted: Notify,
}

/// Key stripes (R7): enough that unrelated keys seldom meet.
const STRIPES: usize = 1024;

impl Core {
    fn new(env: Env, store: Store, config: EngineConfig, catalog: Catalog) -> Arc<Core> {
        store.undo().set_limit(config.undo_size_max);
        let active = Arc::new(Active::new(store.config().safeguards.has(Safeguard::SnapshotCheck)));
        active.start(store.undo().next_txn());
        let locks = Arc::new(Locks::new(Some(store.log().clone())));
        let core = Arc::new(Core {
            env,
            locks,
            serializable: Arc::new(Serializable::new(config.serializable_memory)),
            cleanup: store.for_cleanup(),
            store,
            config,
            catalog: RwLock::new(Arc::new(catalog)),
            redefined: Mutex::default(),
            active,
            exports: Arc::default(),
            usage: Arc::default(),
            stripes: (0..STRIPES).map(|_| tokio::sync::Mutex::new(())).collect(),
            histories: CheckedMutex::default(),
            unread: tokio::sync::Mutex::default(),
            purge_wanted: Arc::default(),
            purging: tokio::sync::Mutex::new(()),
            snapshots_cancelled: AtomicU64::new(0),
            purge_failures: Mutex::default(),
            open_txns: OpenTxns::default(),
            lazy: Arc::default(),
            owners: AtomicU64::new(1),
            background: AtomicU64::new(0),
            background_done: Notify::new(),
            turns: Semaphore::new(TURNS),
            leaving: AtomicBool::new(false),
            losers: AtomicU64::new(0),
            failed: OnceLock::new(),
            closing: AtomicBool::new(false),
            #[cfg(test)]
            while_leaving: Mutex::default(),
        });
        let weak = Arc::downgrade(&core);
        core.store.on_panic(move |why| {
            if let Some(core) = weak.upgrade() {
                core.fail(why.to_string());
            }
        });
        core
    }

    pub(crate) fn new_owner(&self) -> Owner {
        Owner(self.owners.fetch_add(1, Ordering::Relaxed))
    }

    /// The stripe of a key (without RID) of an index.
    pub(crate) fn stripe(&self, index: ObjectId, key: &[u8]) -> usize {
        let mut hasher = rustc_hash::FxHasher::default();
        (index.0, key).hash(&mut hasher);
        (hasher.finish() >> 32) as usize % STRIPES
    }

    pub(crate) async fn lock_stripe(&self, index: ObjectId, key: &[u8]) -> Option<MutexGuard<'_, ()>> {
        match self.guards(Safeguard::KeyStripes) {
            true => Some(self.stripes[self.stripe(index, key)].lock().await),
            false => None,
        }
    }

    /// Whether a safeguard is there: always, but in tests that show that it is needed.
    pub(crate) fn guards(&self, safeguard: Safeguard) -> bool {
        self.store.config().safeguards.has(safeguard)
    }

    /// Several stripes at once: ascending, so that those who hold several never wait for each other (everybody else
    /// holds one).
    pub(crate) async fn lock_stripes(&self, mut wanted: Vec<usize>) -> Vec<MutexGuard<'_, ()>> {
        if !self.guards(Safeguard::KeyStripes) {
            wanted.clear();
        }
        wanted.sort_unstable();
        wanted.dedup();
        let mut guards = Vec::with_capacity(wanted.len());
        for stripe in wanted {
            guards.push(self.stripes[stripe].lock().await);
        }
        guards
    }

    /// Nothing can be written any more (invariant 2).
    pub(crate) fn fail(&self, why: String) {
        let _ = self.failed.set(why); // The first reason stays.
        self.active.wake_all();
    }

    pub(crate) fn check_alive(&self) -> Result<()> {
        match self.failed.get() {
            Some(why) => Err(EngineError::new("58030", format!("{why}; the server must be restarted"))),
            None => Ok(()),
        }
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.read().clone()
    }

    /// The log will be durable up to there within about `LAZY_FLUSH`.
    pub(crate) fn flush_later(&self, lsn: Lsn) {
        if self.lazy.upto.fetch_max(lsn.0, Ordering::AcqRel) < lsn.0 {
            self.lazy.wanted.notify_one();
        }
    }

    /// The background task for `flush_later`. Ends with the database.
    fn spawn_lazy_flush(self: &Arc<Self>) {
        let (lazy, weak, env) = (self.lazy.clone(), Arc::downgrade(self), self.env.clone());
        self.store.spawn("lazy flush", async move {
            loop {
                lazy.wanted.notified().await;
                env.sleep(LAZY_FLUSH).await;
                let Some(core) = weak.upgrade() else { return };
                if core.closing.load(Ordering::Acquire) {
                    return; // Closing writes the whole log out.
                }
                if let Err(e) = core.store.log().flush_to(Lsn(lazy.upto.load(Ordering::Acquire))).await {
                    core.fail(format!("the log could not be written: {e}"));
                    return;
                }
            }
        });
    }

    /// Finished transactions of the run before are read when they are needed, by purge and checks: behind the first
    /// query, because there may be millions. Purge consumes none before all are read, because they lie in the order of
    /// their segments.
    pub(crate) async fn read_histories(&self) -> Result<()> {
        let mut unread = self.unread.lock().await;
        while !self.closing.load(Ordering::Acquire) {
            let Some(history) = unread.next(&self.cleanup).await? else { break };
            self.histories.lock().insert(&history);
        }
        Ok(())
    }

    /// Waits until no rollback runs in the background.
    pub(crate) async fn settle(&self) {
        loop {
            let mut done = std::pin::pin!(self.background_done.notified());
            done.as_mut().enable();
            if self.background.load(Ordering::Acquire) == 0 {
                return;
            }
            done.await;
        }
    }
}

impl Database {
    pub async fn create(
        env: Env,
        devices: DeviceSet,
        storage: StorageConfig,
        engine: EngineConfig,
    ) -> Result<Database> {
        let store = Store::begin_creation(env.clone(), devices, storage).await?;
        // The system tables are heaps without indexes: empty, they need no page.
        store.undo().format(&store).await?;
        // Last: from here on it can be opened (invariant 3).
        store.finish_creation().await?;
        let core = Core::new(env, store, engine, Catalog::default());
        core.spawn_purge();
        core.spawn_lazy_flush();
        Ok(Database(core))
    }

    pub async fn open(
        env: Env,
        devices: DeviceSet,
        storage: StorageConfig,
        engine: EngineConfig,
    ) -> Result<(Database, OpenReport)> {
        Self::open_upto(env, devices, storage, engine, Upto::End).await
    }

    /// As `open`, with history repeated only so far: for what was just restored from a backup.
    pub async fn open_upto(
        env: Env,
        devices: DeviceSet,
        storage: StorageConfig,
        engine: EngineConfig,
        upto: Upto,
    ) -> Result<(Database, OpenReport)> {
        let progress = storage.progress.clone();
        // Redo on demand and undo in the background: they belong together.
        let instant = storage.flash.restart == Restart::Instant && upto == Upto::End;
        let (store, storage) = Store::open_upto(env.clone(), devices, storage, upto).await?;
        let (losers, unread) = store.undo().recover(&store).await?;
        let found = losers.len();
        let core = Core::new(env, store, engine, Catalog::default());
        *core.unread.lock().await = unread;
        let left = core.take_over(losers, instant).await?;
        let report = OpenReport { storage, losers_rolled_back: found - left.len(), losers_left: left.len() };
        core.spawn_purge();
        core.spawn_lazy_flush();
        core.purge_wanted.notify_one();
        let waits = !left.is_empty();
        left.into_iter().for_each(TxnResources::undo_later);
        core.drop_left_temporary(waits).await;
        progress.enter(RecoveryPhase::Open, 0);
        Ok((Database(core), report))
    }

    pub fn store(&self) -> &Store {
        &self.0.store
    }

    pub fn env(&self) -> &Env {
        &self.0.env
    }

    /// The committed catalogue.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.catalog()
    }

    pub fn begin(&self, isolation: Isolation) -> Txn {
        Txn::new(self.0.clone(), isolation)
    }

    /// For the advisory locks of one session.
    pub fn advisory(&self) -> Arc<Advisory> {
        Advisory::new(self.0.clone())
    }

    /// Verifies pages, trees, heaps, undo, and that indexes and rows agree. Returns the problems found. Waits for
    /// writers to finish and holds new ones up, a table at a time.
    pub async fn check(&self) -> Result<Vec<String>> {
        crate::check::check(&self.0).await
    }

    /// Purges everything that no snapshot needs, now.
    pub async fn purge(&self) -> Result<()> {
        self.0.settle().await;
        self.0.purge_now().await
    }

    pub fn stats(&self) -> DatabaseStats {
        let core = &self.0;
        DatabaseStats {
            transactions: core.active.stats(core.env.now()),
            histories: core.histories.lock().len(),
            undo_bytes: core.store.undo().used_bytes(),
            undo_limit: core.config.undo_size_max,
            snapshots_cancelled: core.snapshots_cancelled.load(Ordering::Relaxed),
        }
    }

    /// How a table or an index was used since opening, by transactions that have ended.
    pub fn usage(&self, object: ObjectId) -> Counts {
        self.0.usage.of(object)
    }

    /// Transactions that the run before left unfinished and that are not rolled back yet.
    pub fn losers_left(&self) -> u64 {
        self.0.losers.load(Ordering::Acquire)
    }

    /// Rollbacks under way in the background, these included: an orderly stop waits for them.
    pub fn rollbacks_left(&self) -> u64 {
        self.0.background.load(Ordering::Acquire)
    }

    /// Transactions that ended since opening.
    pub fn ended(&self) -> Ended {
        self.0.usage.ended()
    }

    /// How long commits waited for the log.
    pub fn commit_wait(&self) -> Distribution {
        self.0.usage.commit_wait.read()
    }

    /// How long transactions have waited for each other since opening.
    pub fn lock_wait(&self) -> Duration {
        self.0.locks.waited()
    }

    /// The limits that were set.
    pub fn config(&self) -> &EngineConfig {
        &self.0.config
    }

    /// Why nothing can be written until a restart: storage has failed, a background task has panicked, a commit's
    /// outcome is unknown, or a rollback cannot be done.
    pub fn failure(&self) -> Option<EngineError> {
        self.store().failure().map(EngineError::from).or_else(|| self.0.check_alive().err())
    }

    /// Runs a task in the background, under supervision: where it panics the database stops (`failure`).
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.store().spawn(name, task);
    }

    /// Lets rollbacks finish, stops purge, writes everything home. Transactions still open are lost (and rolled back at
    /// the next opening).
    pub async fn close(self) -> Result<()> {
        let _purge_stopped = self.settle_down().await;
        Ok(self.0.store.clone().close().await?)
    }

    /// The same, but changed pages stay in the flash tier or in the log (see [`Store::close_fast`]), and the next start
    /// goes on with rollbacks of the background.
    pub async fn close_fast(self) -> Result<()> {
        self.0.leaving.store(true, Ordering::Release);
        let _purge_stopped = self.settle_down().await;
        Ok(self.0.store.clone().close_fast().await?)
    }

    async fn settle_down(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.settle().await;
        self.0.closing.store(true, Ordering::Release);
        self.0.purge_wanted.notify_one();
        self.0.lazy.wanted.notify_one();
        self.0.purging.lock().await
    }
}
