//! What a database stands on: its devices, and the numbers chosen for it.

use crate::log::archive::Archive;
use crate::progress::RecoveryProgress;
use std::sync::Arc;
use std::time::Duration;
use terrace_device::{DeviceRef, MeteredDevice};
use terrace_env::Env;
pub use terrace_policy::flash::{FlashOrder, WritePolicy};

/// The devices of one database, by role. Two roles never share a `Device`, though they may share a disk.
#[derive(Clone)]
pub struct DeviceSet {
    pub control: DeviceRef,
    pub log: DeviceRef,
    pub double_write: DeviceRef,
    pub data: DeviceRef,
    pub undo: DeviceRef,
    /// The flash tier's, if there is one.
    pub flash: Option<DeviceRef>,
}

impl DeviceSet {
    /// A device for each role, by its name, and no flash tier.
    pub fn from_fn(mut make: impl FnMut(&str) -> DeviceRef) -> DeviceSet {
        DeviceSet {
            control: make("control"),
            log: make("log"),
            double_write: make("double-write"),
            data: make("data"),
            undo: make("undo"),
            flash: None,
        }
    }

    /// The same devices, with their transfers counted and timed from now on.
    pub(crate) fn metered(self, env: &Env) -> (DeviceSet, Vec<Arc<MeteredDevice>>) {
        let mut meters = Vec::new();
        let mut meter = |device: DeviceRef| -> DeviceRef {
            let metered = meter(device, env);
            meters.push(metered.clone());
            metered
        };
        let set = DeviceSet {
            control: meter(self.control),
            log: meter(self.log),
            double_write: meter(self.double_write),
            data: meter(self.data),
            undo: meter(self.undo),
            flash: self.flash.map(&mut meter),
        };
        (set, meters)
    }
}

/// The device, with its transfers counted and timed from now on.
pub(crate) fn meter(device: DeviceRef, env: &Env) -> Arc<MeteredDevice> {
    let env = env.clone();
    Arc::new(MeteredDevice::new(device, move || env.now().0))
}

/// Replacement policy of the buffer pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolPolicy {
    Lru,
    Clock,
    Lru2,
}

#[derive(Clone, Debug)]
pub struct StorageConfig {
    /// Bytes; 4, 8, 16 or 32 KiB. Fixed at creation.
    pub page_size: usize,
    /// Buffer pool, bytes.
    pub pool_bytes: usize,
    pub pool_policy: PoolPolicy,
    /// Bytes of log between `redo_lsn` and the end that restart may have to repeat.
    pub redo_bound: u64,
    /// How long a restart may take, about (`checkpoint::target`).
    pub restart_target: Option<Duration>,
    /// Bytes of log kept for discarded flash tiers, archiving and page repair.
    pub log_retention: u64,
    /// Where log segments go before they are used again, if anywhere.
    pub archive: Option<Archive>,
    /// Bytes of a log segment. Fixed at creation. Multiple of 64 KiB.
    pub segment_size: u64,
    /// Bytes of the in-memory log buffer.
    pub log_buffer: usize,
    /// How long the background writer rests between rounds.
    pub writer_interval: Duration,
    /// How often the control file learns the redo LSN.
    pub checkpoint_interval: Duration,
    /// Pages written together, as many as a double-write group holds at most where there are double-writes.
    pub write_group: usize,
    /// Checkpoints are as sharp as the thesis's (section 3.3.2): from its beginning to its end a checkpoint lets
    /// nothing dirty into a tier that writes back; and all that is dirty is in the disks' queue at once, where there
    /// are no double-writes. For experiments: it makes a checkpoint shorter and all else slower.
    pub sharp_checkpoints: bool,
    /// Pages read ahead of a sequential scan.
    pub read_ahead: usize,
    /// How the flash tier works, where `DeviceSet` has a device for it.
    pub flash: FlashConfig,
    /// Bytes of changes that recovery gathers from the log at a time: it reads the log once for each so many of them.
    /// Besides it takes the pool and two segments, and next to nothing more, however long the log is
    /// (`recovery::redo`, invariant 6).
    pub redo_memory: usize,
    /// Where the opening says how far it is.
    pub progress: Arc<RecoveryProgress>,
    /// Safeguards that a test removes to show that it would notice. In production all are there.
    pub safeguards: Safeguards,
}

/// The flash tier. Greek letters: the thesis's names, chapter 3.
#[derive(Clone, Debug)]
pub struct FlashConfig {
    /// Bytes of page frames.
    pub size: u64,
    pub write: WritePolicy,
    pub replacement: FlashOrder,
    /// λ: the part of the frames that may be dirty before cleaning sets in, 0 to 1.
    pub dirty_fraction: f64,
    /// τ: the part of the frames in use up to which scans are let in too, 0 to 1.
    pub fill_threshold: f64,
    /// μ: transfers under way above which the device is passed by.
    pub throttle_queue_depth: usize,
    /// α: the most neighbouring pages brought home together.
    pub cleaning_batch: usize,
    /// Batches brought home at once, if so many are due: a saturated disk gives a share to who has many requests
    /// waiting.
    pub cleaning_groups: usize,
    /// Pages read from the disk instead of one while the tier is being filled; 1: no more than are wanted.
    pub expanded_read: u32,
    /// What tells the tier that a page is part of a scan.
    pub classify: Classify,
    /// The most bytes a day that the tier may write.
    pub write_budget: Option<u64>,
    /// Bytes that the device can take in its life, as its maker says: for the estimate of its life.
    pub endurance: Option<u64>,
    pub restart: Restart,
}

/// What a start does with what the tier holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restart {
    /// It is discarded.
    Cold,
    /// It is kept: a record of each frame is made durable whenever a page enters the frame or leaves it, so that a
    /// start need only read the records (thesis, section 4.3.2; `flash::hardened`). The log is repeated before the
    /// database opens.
    MemoryMapped,
    /// It is kept: the write-ahead log has a record of each page that enters a frame and of each frame that gives way,
    /// and a table of all frames now and then (thesis, section 4.3.3; `flash::logged`). The log is repeated before the
    /// database opens.
    LogBased,
    /// It is kept: the log says which frames are current, and each is read and checked when it is wanted first, or when
    /// recovery meets its page (thesis, section 4.3.4). The log is repeated before the database opens.
    LazyVerification,
    /// The same; and the log is repeated on a page when the page is wanted first. So the database opens when the log
    /// has been read, with a tier or without one (`recovery::on_demand`).
    Instant,
}

impl Restart {
    pub const ALL: [Restart; 5] =
        [Restart::Cold, Restart::MemoryMapped, Restart::LogBased, Restart::LazyVerification, Restart::Instant];

    /// A record on the flash device follows each change of a frame.
    pub(crate) fn hardens_on_flash(self) -> bool {
        self == Restart::MemoryMapped
    }

    /// A record in the log does.
    pub(crate) fn hardens_in_log(self) -> bool {
        self == Restart::LogBased
    }
}

/// How pages that are part of scans are told from others (thesis, section 3.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Classify {
    /// The reader says so.
    Declared,
    /// Those that the read-ahead reads.
    ReadAhead,
    /// Those within 64 pages of the page read before.
    Distance,
}

/// What guards against something that goes wrong only now and then. Each is needed: tests fail where one is removed
/// (scripts/safeguards shows it).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Safeguard {
    /// R4.
    LogBeforeData,
    /// Pages are copied before they are written home.
    DoubleWrite,
    /// A commit waits for a sync.
    CommitSync,
    /// Changes of undo pages are logged.
    UndoLogging,
    /// An opening syncs the log before it believes its end.
    LogSync,
    /// An opening writes the log's end again (log/harden.rs).
    LogTail,
    /// A segment goes on only where its successor says that it ended (log/segment.rs, invariant 1).
    LogChain,
    /// A log that was durable beyond its end is damaged (log/harden.rs, invariant 4).
    DurableBefore,
    /// Every page that redo visits is dirty (recovery.rs, invariant 4).
    VisitedPages,
    /// Redo finds each page as the log left it (recovery.rs, invariant 2).
    PageChain,
    /// What is read is checked (R5).
    PageChecks,
    /// A page that changes in memory voids its frame in the flash tier.
    Voiding,
    /// A page that was newer in the tier is not let in from the disk (flash/read.rs).
    Newer,
    /// A frame is of the version that was written there (flash/read.rs).
    FrameTag,
    /// A recLSN on its way from the tier to memory counts (flash/partition.rs, invariant 4).
    Rising,
    /// A page that was on its way to a tier that died is not there (flash/write.rs, `end_write`).
    DyingFrames,
    /// A frame that became void while it was read for cleaning does not go home (flash/clean.rs).
    VoidAtHome,
    /// What the inventory says of frames holds for changes below the redo LSN (flash/inventory.rs, invariant 1).
    ListedLsn,
    /// An entry of a base counts only with what the log says (flash/partition/inventory.rs, invariant 1).
    BaseEntries,
    /// The inventory of another life of the database does not count (flash/attach.rs, invariant 1).
    Lives,
    /// The log is noted before frames are read (flash/attach.rs, invariant 2).
    Noting,
    /// The redo LSN waits for pages that are redone on demand (recovery/on_demand.rs, invariant 2).
    Waiting,
    /// A page that lacks changes from before where redo began is no base (recovery/on_demand.rs, invariant 6).
    Lacking,
    /// Dirty frames of the tier hold the retain LSN (flash/floors.rs, invariant 1).
    DirtyFrames,
    /// A segment's seal speaks for its batches only where they were durable (log/harden.rs, invariant 2).
    Settled,
    /// The inventory holds for less while pages lack changes (flash/floors.rs, invariant 5).
    ListedAbove,
    /// A page counts as written when the records of its older frames are hard (flash/hardened.rs, invariant 2).
    HardVoids,
    /// A frame is overwritten when its record is hard that says that it is free (flash/hardened.rs, invariant 3).
    HardReuse,
    /// A frame is synced before its record names the page (flash/hardened.rs, invariant 4).
    SyncedFrames,
    /// Records hold for no more than their stamp says (flash/hardened.rs, invariant 5).
    Stamp,
    /// A record that must not be lost is read again (flash/hardened.rs, invariant 6).
    ReadAgain,
    /// What others failed to sync does not count as synced (flash/hardened.rs, invariant 8).
    OthersSyncs,
    /// The same of pages that are written home, and of their copies (home/syncs.rs, invariant 1).
    SyncedTogether,
    /// Frames are taken away when their records are hard (flash/partition/shape.rs).
    HardShrink,
    /// R7.
    KeyStripes,
    /// R8.
    EntriesFirst,
    /// Histories are purged in the order in which transactions ended.
    HistoryOrder,
    /// What was read is believed only where the snapshot has not been given up (engine/snapshots.rs, invariant 5).
    SnapshotCheck,
    /// What a crash left unfinished has its tables locked until it is undone (engine/txn/losers.rs, invariant 3).
    LoserLocks,
    /// A row is looked at again under its latch before it is written (engine/txn/write.rs, invariant 1).
    SecondLook,
}

/// All of them, but for those that a test removes: a bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Safeguards(u64);

impl Safeguards {
    pub const fn all() -> Safeguards {
        Safeguards(0)
    }

    pub const fn without(removed: Safeguard) -> Safeguards {
        Safeguards::all().and_without(removed)
    }

    pub(crate) const fn and_without(self, removed: Safeguard) -> Safeguards {
        Safeguards(self.0 | 1 << removed as u64)
    }

    pub fn has(self, safeguard: Safeguard) -> bool {
        self.0 >> safeguard as u64 & 1 == 0
    }
}

impl Default for FlashConfig {
    /// The values of the thesis's table 3.2, and a size to be replaced.
    fn default() -> Self {
        FlashConfig {
            size: 1 << 30,
            write: WritePolicy::LazyCleaning,
            replacement: FlashOrder::Lru2History,
            dirty_fraction: 0.5,
            fill_threshold: 0.95,
            throttle_queue_depth: 100,
            cleaning_batch: 32,
            cleaning_groups: 32,
            expanded_read: 8,
            classify: Classify::Declared,
            write_budget: None,
            endurance: None,
            restart: Restart::Instant,
        }
    }
}

impl FlashConfig {
    /// Whether a restart may begin with a page's older version (`flash::partition::inventory`, invariant 1). Policies
    /// that keep a page's frame use it again at once.
    pub(crate) fn keeps_bases(&self) -> bool {
        self.restart == Restart::Instant && !self.write.flow().keeps
    }

    /// What is wrong with these settings, whatever the device: the one place where they are checked.
    pub fn check(&self) -> Result<(), String> {
        for (key, part) in [("dirty_fraction", self.dirty_fraction), ("fill_threshold", self.fill_threshold)] {
            if !(0.0..=1.0).contains(&part) {
                return Err(format!("flash_tier.{key} = {part} must be from 0 to 1"));
            }
        }
        let counts = [
            ("throttle_queue_depth", self.throttle_queue_depth),
            ("cleaning_batch", self.cleaning_batch),
            ("cleaning_groups", self.cleaning_groups),
        ];
        for (key, count) in counts {
            if count == 0 {
                return Err(format!("flash_tier.{key} = {count} must be at least 1"));
            }
        }
        if self.restart.hardens_on_flash() && self.write_budget.is_some() {
            return Err(
                "flash_tier.restart = \"memory-mapped\" writes to the device whenever a page enters a frame or \
                        leaves it, also when write_budget is used up: it needs write_budget = \"off\", or another \
                        restart (\"instant\")"
                    .into(),
            );
        }
        self.write.with(self.replacement).map_err(|why| format!("flash_tier: {why}"))
    }
}

impl Default for StorageConfig {
    fn default() -> Self {
        StorageConfig {
            page_size: 8192,
            pool_bytes: 128 << 20,
            pool_policy: PoolPolicy::Lru,
            redo_bound: 1 << 30,
            restart_target: None,
            log_retention: 2 << 30,
            archive: None,
            segment_size: 16 << 20,
            log_buffer: 16 << 20,
            writer_interval: Duration::from_millis(100),
            checkpoint_interval: Duration::from_secs(5),
            write_group: 64,
            sharp_checkpoints: false,
            read_ahead: 32,
            flash: FlashConfig::default(),
            redo_memory: 32 << 20,
            progress: Arc::default(),
            safeguards: Safeguards::default(),
        }
    }
}
