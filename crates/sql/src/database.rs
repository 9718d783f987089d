//! A database with its SQL machinery: what sessions have in common, and the memory and files of their queries.
use crate::notify::Hub;
use crate::observe::Observed;
use crate::pgcatalog;
use crate::plan::planner;
use crate::settings::SystemSettings;
use crate::transaction::Sequences;
use datafusion::execution::SessionState;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool, TrackConsumersPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use terrace_engine::Database;
use terrace_env::memory::Limit;
use tracing::warn;

/// A database with its SQL machinery; cheap to clone.
#[derive(Clone)]
pub struct SqlDatabase {
    pub engine: Database,
    /// What goes on.
    pub observed: Arc<Observed>,
    pub(crate) state: Arc<SessionState>,
    pub(crate) name: Arc<str>,
    pub(crate) sequences: Arc<Sequences>,
    /// What sessions may take by the allocator's count: twice what queries may plan for, as batches under way come on
    /// top, and a long message.
    pub memory: Arc<Limit>,
    /// What the named statements of all sessions take.
    pub(crate) named_bytes: Account,
    pub(crate) hub: Arc<Hub>,
    /// Who carries out ALTER SYSTEM.
    pub(crate) system: Arc<OnceLock<Arc<dyn SystemSettings>>>,
}

/// Where queries go on that outgrow their memory.
#[derive(Clone, Debug)]
pub struct Spill {
    /// For temporary files; nobody else uses it.
    pub directory: PathBuf,
    /// Bytes of temporary files at one time.
    pub capacity: u64,
    /// Bytes of memory for sorts, aggregates and joins of all sessions together, shared fairly among those that can
    /// spill.
    pub memory: usize,
}

/// Bytes of memory that a sort sets aside for merging what it spilled.
const SORT_RESERVE: usize = 10 << 20;

/// The same where all queries have `memory` bytes: several sorts at once have room for it each.
fn sort_reserve(memory: usize) -> usize {
    (memory / 32).clamp(64 << 10, SORT_RESERVE)
}

/// Bytes that one message of the greatest length may take on its way to a page.
const MESSAGE: usize = 128 << 20;

fn memory_limit(bytes: usize) -> Arc<Limit> {
    Limit::new(Some(bytes.saturating_mul(2).saturating_add(MESSAGE)))
}

fn memory_pool(bytes: usize) -> Arc<dyn MemoryPool> {
    let largest = NonZeroUsize::new(3).expect("3 is not 0");
    Arc::new(TrackConsumersPool::new(FairSpillPool::new(bytes), largest))
}

impl SqlDatabase {
    /// Queries take the memory that they need: there is nowhere to spill to.
    pub fn new(engine: Database) -> SqlDatabase {
        let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
        let runtime = RuntimeEnvBuilder::new().with_disk_manager_builder(disk).build_arc();
        SqlDatabase::build(engine, runtime.expect("nothing that is made can fail"), SORT_RESERVE)
    }

    /// Statements may have that many bytes of memory for their intermediate results, all together; one that needs more
    /// than is left spills to disk where it can, or fails (53200).
    pub fn limit_memory(mut self, bytes: usize) -> SqlDatabase {
        let mut runtime = RuntimeEnv::clone(self.state.runtime_env());
        runtime.memory_pool = memory_pool(bytes);
        self.state = Arc::new(planner::base_state(Arc::new(runtime), sort_reserve(bytes)));
        self.memory = memory_limit(bytes);
        self
    }

    /// Sorts and aggregates that need more memory than they may have go on in temporary files; what cannot fails with
    /// 53200, and with 53100 where the files have no room either. Where no file can be made at all, as on a full disk,
    /// what needs one fails (53200): the database can be used, not least to delete something.
    pub fn with_spill(engine: Database, spill: Spill) -> SqlDatabase {
        let directory = spill.directory.clone();
        let disk = DiskManagerBuilder::default()
            .with_mode(DiskManagerMode::Directories(vec![spill.directory]))
            .with_max_temp_directory_size(spill.capacity);
        let runtime =
            RuntimeEnvBuilder::new().with_disk_manager_builder(disk).with_memory_pool(memory_pool(spill.memory));
        match runtime.build_arc() {
            Ok(runtime) => {
                let database = SqlDatabase::build(engine, runtime, sort_reserve(spill.memory));
                SqlDatabase { memory: memory_limit(spill.memory), ..database }
            }
            Err(error) => {
                let directory = directory.display();
                warn!(
                    "queries that outgrow memory fail until the next start: no file can be made in {directory}: {error}"
                );
                SqlDatabase::new(engine).limit_memory(spill.memory)
            }
        }
    }

    fn build(engine: Database, runtime: Arc<RuntimeEnv>, sort_reserve: usize) -> SqlDatabase {
        let state = planner::base_state(runtime, sort_reserve);
        let observed = Observed::new(engine.env().clone());
        let (state, name) = (Arc::new(state), pgcatalog::DATABASE.into());
        let (memory, named_bytes, system) = (Limit::new(None), Account::default(), Arc::default());
        SqlDatabase {
            engine,
            observed,
            state,
            name,
            memory,
            sequences: Arc::default(),
            named_bytes,
            hub: Arc::default(),
            system,
        }
    }
}

/// Bytes of named statements: those of a session, or of all.
pub(crate) type Account = Arc<AtomicUsize>;

impl SqlDatabase {
    /// From now on ALTER SYSTEM goes there. Once.
    pub fn set_system(&self, settings: Arc<dyn SystemSettings>) {
        assert!(self.system.set(settings).is_ok(), "who keeps the server's settings is said once");
    }
}
