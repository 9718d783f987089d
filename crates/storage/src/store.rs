//! `Store`: the rooms of storage, opened together.
//!
//! Opening: control file -> identities of the devices -> torn pages -> flash tier -> redo -> tablespaces, suspect pages
//! -> identities and control file of the new epoch -> log -> background writer. Until the new epoch is recorded nothing
//! is changed that a crash could not simply repeat.
use crate::backup::Upto;
use crate::checkpoint::{self, CheckpointStatus};
use crate::config::{DeviceSet, FlashConfig, Restart, StorageConfig};
use crate::control::{Control, ControlFile};
use crate::error::{Result, StorageError};
use crate::flash::{FlashHome, FlashStats, Floors, Lacking, Restored, Start};
use crate::home::disk::{DiskHome, PAGES_AT, WRITERS};
use crate::home::{Home, Reason};
use crate::identity::{Identity, Role};
use crate::log::{Log, LogUse};
use crate::mtr::{LogPermit, Mtr};
use crate::pool::Pool;
use crate::recovery::{self, AtWork, OnDemand, Redone, Suspects, Tools};
use crate::space::Space;
use crate::types::*;
use crate::undo::UndoSpace;
use futures::future::{join, join_all};
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use terrace_device::{DeviceRef, ErrorKind, IoBuf, MeteredDevice, Usage as IoUsage};
use terrace_env::Env;

/// Ids below this are for objects whose ids are fixed in the program.
pub const FIRST_OBJECT: u32 = 16384;
/// Object ids promised ahead in the control file: `next_object` does not wait. A crash loses at most as many.
const OBJECT_WINDOW: u32 = 1 << 16;

/// What recovery did.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReport {
    pub clean_shutdown: bool,
    pub redo_from: Lsn,
    pub redo_to: Lsn,
    /// Of the last commit repeated, in microseconds since 1970; and whether there was more than was to be repeated.
    pub last_commit: Option<i64>,
    pub stopped_short: bool,
    /// Mini-transactions read, and their bytes (the LSNs also count what segments leave unused).
    pub batches: u64,
    pub bytes: u64,
    /// Changes of pages that were repeated, the same page counted each time.
    pub pages_redone: u64,
    /// Pages that the log since the redo LSN names.
    pub pages: u64,
    /// Pages that may lack changes from before `redo_from`, though the tier was to have them.
    pub lacking: u64,
    /// Pages that are compared with the log, and repeated, when they are read.
    pub pages_waiting: u64,
    pub torn_pages_restored: u64,
    /// Pages in use that were damaged, or whose last write was lost, made again from older log.
    pub pages_rebuilt: u64,
    /// What was found in the flash tier.
    pub tier: Restored,
    /// How long it took.
    pub nanos: u64,
}

/// Open storage; cheap to clone. A handle reserves log room for normal work, or (see `for_cleanup`) for work that frees
/// room.
#[derive(Clone)]
pub struct Store(Arc<Inner>, LogUse);

pub(crate) struct Inner {
    pub(crate) env: Env,
    pub(crate) config: StorageConfig,
    devices: DeviceSet,
    meters: parking_lot::Mutex<Vec<Arc<MeteredDevice>>>,
    /// The flash tier's device as it came, and metered.
    flash_device: parking_lot::Mutex<Option<(DeviceRef, DeviceRef)>>,
    pub(crate) log: Log,
    pub(crate) pool: Arc<Pool>,
    pub(crate) disk: Arc<DiskHome>,
    /// The levels below the pool, the lowest first: each passes on to the one before it.
    pub(crate) flash: Arc<FlashHome>,
    pub(crate) on_demand: Arc<OnDemand>,
    pub(crate) home: Arc<dyn Home>,
    pub(crate) control: tokio::sync::Mutex<ControlFile>,
    data: OnceLock<Space>,
    undo: UndoSpace,
    next_object: AtomicU32,
    /// The control file promises that no id from here on was given out.
    pub(crate) object_limit: AtomicU32,
    pub(crate) checkpoints: parking_lot::Mutex<CheckpointStatus>,
    failed: OnceLock<StorageError>,
    closing: AtomicBool,
}

impl Store {
    /// Formats the devices as a new, empty database and opens it. A crash in the middle leaves something that `open`
    /// refuses as half-made and `create` may overwrite.
    pub async fn create(env: Env, devices: DeviceSet, config: StorageConfig) -> Result<Store> {
        let store = Self::begin_creation(env, devices, config).await?;
        store.finish_creation().await?;
        Ok(store)
    }

    /// `create` in two steps, for whoever has more to put in before the database counts as made: until
    /// `finish_creation` has returned, `open` refuses it as half-made.
    pub async fn begin_creation(env: Env, devices: DeviceSet, config: StorageConfig) -> Result<Store> {
        check_config(&config)?;
        let (devices, meters) = metered(devices, &env);
        let database = u128::from(env.random_u64()) | u128::from(env.random_u64()) << 64;
        let state = Control {
            database,
            epoch: 1,
            page_size: config.page_size as u32,
            segment_size: config.segment_size,
            redo_lsn: Lsn(0),
            retain_lsn: Lsn(0),
            complete: false,
            clean: false,
            logs_frames: logs_frames(&config.flash, devices.flash.is_some()),
            next_object: FIRST_OBJECT,
            created: env.unix_micros(),
            life: new_life(&env, &config.flash, devices.flash.is_some()),
            durable: Lsn(0),
        };
        let control = ControlFile::create(devices.control.clone(), state).await?;
        let log = Log::unopened(env.clone(), devices.log.clone(), database, &config);
        log.format().await?;
        DiskHome::areas(&devices, &config, database).prepare(WRITERS).await?;
        for device in [&devices.data, &devices.undo] {
            device.discard(0, device.size()).await?;
            device.write(0, IoBuf::zeroed(PAGES_AT as usize), terrace_device::Purpose::Data).await?;
        }
        stamp_all(&devices, &state).await?;
        let store = Self::assemble(env, (devices, meters), config, log, control);
        let inner = &store.0;
        inner.disk.start();
        inner.log.start(state.epoch, Lsn(0)).await?;
        inner.pool.repair_up_to(Lsn(0));
        store.start_writer(&state).await?;
        store.set_data(Space::create(&store, DATA).await?);
        Ok(store)
    }

    /// Declares the database made: everything so far is home and durable.
    pub async fn finish_creation(&self) -> Result<()> {
        self.checkpoint().await?;
        let mut control = self.0.control.lock().await;
        let state = Control { complete: true, next_object: self.0.object_floor(), ..control.state };
        control.write(state).await?;
        self.0.object_limit.store(state.next_object, Ordering::Release);
        Ok(())
    }

    /// Opens a database, repairing torn pages and repeating history where needed.
    pub async fn open(env: Env, devices: DeviceSet, config: StorageConfig) -> Result<(Store, RecoveryReport)> {
        Self::open_upto(env, devices, config, Upto::End).await
    }

    /// As `open`, with history repeated only so far: for what was just restored. What lay behind is lost.
    pub async fn open_upto(
        env: Env,
        devices: DeviceSet,
        config: StorageConfig,
        upto: Upto,
    ) -> Result<(Store, RecoveryReport)> {
        let began = env.now();
        let (devices, meters) = metered(devices, &env);
        devices.control.sync(terrace_device::Purpose::Control).await?;
        let control = ControlFile::open(devices.control.clone()).await?;
        let state = control.state;
        // Fixed at creation, whatever the configuration says by now.
        let config = StorageConfig { page_size: state.page_size as usize, segment_size: state.segment_size, ..config };
        check_config(&config)?;
        let log = Log::unopened(env.clone(), devices.log.clone(), state.database, &config);
        let store = Self::assemble(env, (devices, meters), config, log, control);
        let opened = store.recover(state, upto).await;
        match opened {
            Ok(mut report) => {
                report.nanos = store.0.env.now().0 - began.0;
                Ok((store, report))
            }
            Err(e) => {
                store.0.stop();
                Err(e)
            }
        }
    }

    /// Everything from the identities to the first caller.
    async fn recover(&self, state: Control, upto: Upto) -> Result<RecoveryReport> {
        let inner = &self.0;
        let mut report =
            RecoveryReport { clean_shutdown: state.clean, redo_from: state.redo_lsn, ..Default::default() };
        // Neither writes, so a device of another database is refused untouched.
        let identities = check_identities(&inner.devices, &inner.config, &state);
        let (checked, scanned) = join(identities, inner.log.scan(state.redo_lsn, state.retain_lsn)).await;
        checked.and(scanned)?;
        inner.disk.start();
        report.torn_pages_restored =
            recovery::restore_torn(&inner.devices, &inner.config, &inner.disk, state.database).await?;
        if !state.clean {
            inner.log.harden(state.redo_lsn).await?;
        }
        let on_demand = upto == Upto::End && inner.config.flash.restart == Restart::Instant;
        let start = self.attach_tier(&state, upto, on_demand).await;
        if state.retain_lsn < state.redo_lsn {
            inner.flash.begin_above(state.retain_lsn);
        }
        let tools = Tools {
            env: &inner.env,
            log: &inner.log,
            pool: &inner.pool,
            tier: &inner.flash,
            progress: &inner.config.progress,
            budget: inner.config.redo_memory,
            on_demand: Some(&*inner.on_demand).filter(|_| on_demand),
            retain: state.retain_lsn,
        };
        let redone = recovery::redo(tools, start, upto, &mut report).await?;
        report.redo_to = redone.end;
        let newest = inner.disk.newest_seen();
        if !report.stopped_short {
            inner.log.check_end(redone.end, newest, &state).await?;
        } else if newest > redone.end {
            return Err(StorageError::Damaged(format!(
                "a page is at {newest}, beyond {}, to where the log was to be repeated: a copy is of no one time \
                 before its end",
                redone.end
            )));
        }
        inner.pool.repair_up_to(redone.end);
        // Before the epoch: where the log is full, that moves the redo LSN past what shows a suspect to be one.
        let end = redone.end;
        report.pages_rebuilt = self.settle(redone, state.retain_lsn).await?;
        self.open_epoch(state, end).await?;
        let state = inner.control.lock().await.state;
        self.start_writer(&state).await?;
        report.tier = inner.flash.restored();
        if report.tier.listed > 0 {
            let Restored { listed, current, dirty, bases, older, unknown, .. } = report.tier;
            let ms = |nanos: u64| nanos / 1_000_000;
            let (inventory_ms, noting_ms) = (ms(report.tier.inventory_nanos), ms(report.tier.noting_nanos));
            tracing::info!(
                listed,
                current,
                dirty,
                bases,
                older,
                unknown,
                inventory_ms,
                noting_ms,
                "the flash tier is warm"
            );
        }
        self.spawn("redo", finish_redo(Arc::downgrade(inner), inner.on_demand.clone().begin_work()));
        Ok(report)
    }

    /// What the flash tier holds is found, if that is to be; where redo begins then (`flash::floors`, invariant 2).
    async fn attach_tier(&self, state: &Control, upto: Upto, on_demand: bool) -> Start {
        let inner = &self.0;
        if upto != Upto::End {
            return Start::at(state.retain_lsn);
        }
        let (retain, redo) = (state.retain_lsn, if on_demand { state.redo_lsn } else { state.retain_lsn });
        let room = inner.config.redo_memory / 4 / Lacking::ENTRY;
        let settled = if on_demand { inner.log.settled(redo) } else { redo };
        let floors = Floors { retain, redo, settled };
        let start = inner.flash.attach(&identity(state), state.life, self.tier_device(), floors, room).await;
        if start.from < state.redo_lsn {
            let (from, redo) = (start.from, state.redo_lsn);
            match on_demand {
                false => {
                    tracing::debug!(%from, %redo, "restart repeats the log from where it is kept, as this restart \
                                                        method always does")
                }
                true if inner.flash.is_finding() => {
                    tracing::info!(%from, %redo, "restart repeats the log from where it is kept: too many pages lack \
                                                  changes that the flash tier has not got, or the log cannot be read")
                }
                true => {
                    tracing::info!(%from, %redo, "restart repeats the log from where it is kept: the flash tier is \
                                                      not there, or begins empty")
                }
            }
        }
        start
    }

    /// The devices, then the control file learn the new epoch; then its log begins.
    async fn open_epoch(&self, before: Control, end: Lsn) -> Result<()> {
        let inner = &self.0;
        let life = new_life(&inner.env, &inner.config.flash, self.tier_device().is_some());
        let mut state = Control { epoch: before.epoch + 1, clean: false, life, durable: end, ..before };
        state.next_object = inner.object_floor();
        state.logs_frames |= logs_frames(&inner.config.flash, self.tier_device().is_some());
        if !inner.log.can_start().await? {
            // The log device is full. Nothing of the old log is needed once everything is home, and writing home needs
            // no log.
            inner.on_demand.finish(&inner.pool, &inner.env, || inner.is_closing(), || true).await?;
            while inner.pool.write_dirty(Lsn(u64::MAX), inner.config.write_group, Reason::Checkpoint).await? > 0 {}
            inner.flash.clean_all().await?;
            inner.home.sync().await?;
            state.redo_lsn = end;
            state.retain_lsn = end;
        }
        stamp_all(&inner.devices, &state).await?;
        inner.flash.adopt(&identity(&state), (before.life, end), life).await;
        let mut control = inner.control.lock().await;
        control.write(state).await?;
        inner.object_limit.store(state.next_object, Ordering::Release);
        inner.log.recorded(state.redo_lsn, state.retain_lsn);
        inner.log.start(state.epoch, end).await
    }

    /// Deals with the pages that redo could not follow (recovery invariant 2) and opens the tablespaces.
    async fn settle(&self, redone: Redone, retain: Lsn) -> Result<u64> {
        let inner = &self.0;
        let Redone { end, suspects } = redone;
        // Only extents of the data tablespace are dropped unwritten; its maps and the undo pages never are.
        let page_size = inner.config.page_size;
        let may_be_dropped = |page: PageId| page.space == DATA && !Space::is_map_page(page.no, page_size);
        let (droppable, kept): (Suspects, Suspects) = suspects.into_iter().partition(|(page, _)| may_be_dropped(*page));
        let (range, said) = ((retain, end), (&inner.env, &*inner.config.progress));
        let rebuilt = recovery::rebuild(&inner.pool, kept, range, said).await?;
        self.set_data(Space::open(self, DATA).await?);
        inner.on_demand.set_used(|page| !may_be_dropped(page) || self.space(DATA).is_used(page.no));
        let used = droppable.into_iter().filter(|(page, _)| self.space(DATA).is_used(page.no)).collect();
        Ok(rebuilt + recovery::rebuild(&inner.pool, used, range, said).await?)
    }

    fn assemble(
        env: Env,
        (devices, meters): (DeviceSet, Meters),
        config: StorageConfig,
        log: Log,
        control: ControlFile,
    ) -> Store {
        let disk = Arc::new(DiskHome::new(&devices, &config, control.state.database, log.clone()));
        let flash = Arc::new(FlashHome::new(env.clone(), disk.clone(), &config, log.clone()));
        let on_demand = Arc::new(OnDemand::new(flash.clone(), config.page_size, config.safeguards));
        let home: Arc<dyn Home> = on_demand.clone();
        let pool = Pool::new(env.clone(), &config, home.clone(), log.clone());
        let next = control.state.next_object;
        let inner = Inner {
            env,
            config,
            devices,
            meters: parking_lot::Mutex::new(meters.all),
            flash_device: parking_lot::Mutex::new(meters.flash),
            log,
            pool,
            disk,
            flash,
            on_demand,
            home,
            control: tokio::sync::Mutex::new(control),
            data: OnceLock::new(),
            undo: UndoSpace::new(),
            next_object: AtomicU32::new(next),
            object_limit: AtomicU32::new(next),
            checkpoints: parking_lot::Mutex::default(),
            failed: OnceLock::new(),
            closing: AtomicBool::new(false),
        };
        let inner = Arc::new(inner);
        let weak = Arc::downgrade(&inner);
        inner.log.on_panic(move |why| {
            if let Some(inner) = weak.upgrade() {
                inner.stop_after_panic(why);
            }
        });
        Store(inner, LogUse::Normal)
    }

    /// Nothing more is read of the log: the flash tier and the background writer begin.
    async fn start_writer(&self, state: &Control) -> Result<()> {
        self.0.flash.start(&identity(state), state.life, self.tier_device()).await?;
        self.0.log.attach();
        self.spawn("background writer", checkpoint::run(Arc::downgrade(&self.0)));
        Ok(())
    }

    fn tier_device(&self) -> Option<DeviceRef> {
        self.0.flash_device.lock().as_ref().map(|(_, metered)| metered.clone())
    }

    fn set_data(&self, space: Space) {
        assert!(self.0.data.set(space).is_ok(), "the data tablespace is opened once");
    }

    pub fn env(&self) -> &Env {
        &self.0.env
    }
    pub fn config(&self) -> &StorageConfig {
        &self.0.config
    }
    pub fn pool(&self) -> &Arc<Pool> {
        &self.0.pool
    }
    pub fn log(&self) -> &Log {
        &self.0.log
    }
    pub fn home(&self) -> &dyn Home {
        &*self.0.home
    }
    /// The data tablespace. There is no other whose pages are given out through a `Space`.
    pub fn space(&self, id: SpaceId) -> &Space {
        assert_eq!(id, DATA, "only the data tablespace has a space map");
        self.0.data.get().expect("set before create or open hand the store out")
    }
    /// Allocates `len` bytes of a tablespace's device from `offset` on (both multiples of an extent), so that later
    /// writes there cannot fail for want of room; no space left becomes `SpaceFull`. The only way a tablespace grows.
    pub(crate) async fn grow(&self, space: SpaceId, offset: u64, len: u64) -> Result<()> {
        let device = self.device(space);
        device.allocate(PAGES_AT + offset, len).await.map_err(|e| match e.kind {
            ErrorKind::NoSpace => StorageError::SpaceFull { space: space.0, device: device.name().to_string() },
            _ => e.into(),
        })
    }
    /// Bytes that a tablespace's device holds or has allocated.
    pub(crate) fn space_bytes(&self, space: SpaceId) -> u64 {
        self.device(space).size().saturating_sub(PAGES_AT)
    }
    fn device(&self, space: SpaceId) -> &DeviceRef {
        self.0.disk.places().device(space).0
    }
    /// What the flash tier did, where there is one.
    pub fn flash(&self) -> Option<FlashStats> {
        let (_, there) = self.0.flash.config();
        there.then(|| self.0.flash.stats())
    }
    /// How the flash tier runs, or would if it were on; and its device, as it was handed in.
    pub fn flash_config(&self) -> (FlashConfig, Option<DeviceRef>) {
        let (config, there) = self.0.flash.config();
        (config, self.0.flash_device.lock().as_ref().filter(|_| there).map(|(device, _)| device.clone()))
    }
    /// Switches the flash tier on (`device`) or off, to another device, size, write policy, replacement or thresholds,
    /// under load: see `flash::tune`. `Config` where the settings cannot be, `Foreign` and `Device` where the device
    /// cannot: then the tier runs on as it was, unless it had to be switched off for its own failure. Returns when the
    /// change is complete.
    pub async fn set_flash(&self, device: Option<DeviceRef>, config: FlashConfig) -> Result<()> {
        let inner = &self.0;
        self.begin_life(&config, device.is_some()).await?;
        let metered = device.map(|device| {
            let known = inner.flash_device.lock().clone().filter(|(raw, _)| Arc::ptr_eq(raw, &device));
            known.unwrap_or_else(|| {
                let meter = crate::config::meter(device.clone(), &inner.env);
                inner.meters.lock().push(meter.clone());
                (device, meter)
            })
        });
        let changed = inner.flash.set(metered.as_ref().map(|(_, metered)| metered.clone()), config).await;
        if changed.is_ok() {
            *inner.flash_device.lock() = metered;
        }
        changed
    }
    /// A tier that is switched on gets a life if this opening had none; and the control file says what the log may have
    /// from now on.
    async fn begin_life(&self, config: &FlashConfig, there: bool) -> Result<()> {
        let inner = &self.0;
        let mut control = inner.control.lock().await;
        let life = if control.state.life == 0 { new_life(&inner.env, config, there) } else { 0 };
        let frames = logs_frames(config, there) && !control.state.logs_frames;
        if life != 0 || frames {
            let mut state = control.state;
            (state.life, state.logs_frames) = (life.max(state.life), state.logs_frames || frames);
            control.write(state).await.inspect_err(|e| inner.fail(e.clone()))?;
        }
        if life != 0 {
            inner.flash.begin_life(life);
        }
        Ok(())
    }
    /// About how long a restart would take until all changes are repeated, if the process died now.
    pub fn restart_estimate(&self) -> std::time::Duration {
        self.0.restart_estimate()
    }
    /// Transfers since opening, by device and purpose.
    pub fn io(&self) -> Vec<IoUsage> {
        self.0.io()
    }
    pub(crate) fn control(&self) -> &tokio::sync::Mutex<ControlFile> {
        &self.0.control
    }
    /// The devices, by role (statistics).
    pub fn devices(&self) -> &DeviceSet {
        &self.0.devices
    }
    /// Made by `UndoSpace::new()`. The engine calls its `format` once, at creation, and `recover` at every opening.
    pub fn undo(&self) -> &UndoSpace {
        &self.0.undo
    }
    /// A handle for rollback and purge: what it reserves is never refused for a full log, may use the log's reserve,
    /// and is not held up by the redo bound, because it frees what holds the others up.
    pub fn for_cleanup(&self) -> Store {
        Store(self.0.clone(), LogUse::Cleanup)
    }
    /// Reserves log room for a mini-transaction of at most `bytes`; delays near the redo bound. Before latching (R3).
    pub async fn reserve(&self, bytes: usize) -> Result<LogPermit> {
        self.0.log.reserve(bytes, self.1).await
    }
    /// As `reserve` on a handle for cleaning up, for steps that free room whoever makes them.
    pub(crate) async fn reserve_for_cleanup(&self, bytes: usize) -> Result<LogPermit> {
        self.0.log.reserve(bytes, LogUse::Cleanup).await
    }
    pub fn mtr(&self, permit: LogPermit) -> Mtr {
        Mtr::new(&self.0.pool, permit)
    }

    /// An object id never used before.
    pub fn next_object(&self) -> ObjectId {
        let id = self.0.next_object.fetch_add(1, Ordering::AcqRel);
        // Half a window is left when the background writer is asked for more, which takes one write of the control
        // file.
        assert!(id < self.0.object_limit.load(Ordering::Acquire), "object ids ran out between two checkpoints");
        if self.0.object_ids_short() {
            self.0.log.press();
        }
        ObjectId(id)
    }

    /// Writes every dirty page home and records the redo LSN.
    pub async fn checkpoint(&self) -> Result<()> {
        self.0.checkpoint().await
    }

    /// Pages that the crash left behind their log, and that nobody has read since the opening: their changes are
    /// repeated when they are read.
    pub fn pages_waiting(&self) -> u64 {
        self.0.on_demand.left()
    }

    /// What checkpoints were recorded since opening.
    pub fn checkpoints(&self) -> CheckpointStatus {
        *self.0.checkpoints.lock()
    }

    /// Runs a task in the background, under supervision: where it panics storage stops
    /// ([`StorageError::TaskPanicked`]).
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.0.log.spawn(name, task);
    }

    /// Calls `stop` where a background task has panicked and storage has stopped.
    pub fn on_panic(&self, stop: impl Fn(&StorageError) + Send + Sync + 'static) {
        self.0.log.on_panic(stop);
    }

    /// Why storage stopped, if it did: the log or a home failed, or a background task panicked. Everything waiting was
    /// woken with it; reopen to recover.
    pub fn failure(&self) -> Option<StorageError> {
        self.0.failure()
    }

    /// Checkpoint, mark clean, stop background tasks.
    pub async fn close(self) -> Result<()> {
        self.stop_after(self.close_cleanly()).await
    }

    /// The same without the checkpoint: changed pages stay in the flash tier, which is listed, or in the log, which is
    /// durable. The next opening repeats the log from the redo LSN, as after a crash.
    pub async fn close_fast(self) -> Result<()> {
        self.stop_after(async {
            let inner = &self.0;
            inner.closing.store(true, Ordering::Release);
            inner.flash.end_records().await;
            inner.log.shut_down().await?;
            inner.flash.list_all().await;
            Ok(())
        })
        .await
    }

    async fn stop_after(&self, closing: impl Future<Output = Result<()>>) -> Result<()> {
        let inner = &self.0;
        let closed = match inner.failure() {
            Some(e) => Err(e),
            None => closing.await,
        };
        inner.stop();
        closed
    }

    /// Pages that an orderly stop has yet to write home, about: dirty in memory, dirty in the tier, waiting for redo.
    pub fn pages_to_write(&self) -> u64 {
        let inner = &self.0;
        inner.pool.dirty() as u64 + inner.flash.dirty_frames() + inner.on_demand.left()
    }

    async fn close_cleanly(&self) -> Result<()> {
        let inner = &self.0;
        inner.checkpoint().await?;
        inner.closing.store(true, Ordering::Release); // The background writer stops; no log is written from here on.
        inner.on_demand.work_ended().await;
        inner.flash.end_records().await;
        inner.log.shut_down().await?;
        inner.checkpoint().await?;
        inner.flash.list_all().await;
        let mut control = inner.control.lock().await;
        let next_object = inner.next_object.load(Ordering::Acquire);
        let (end, logs) = (inner.log.end(), inner.flash.logs());
        // A log with records of frames is kept for them, too.
        let home = control.state.redo_lsn == end && inner.flash.oldest_dirty().is_none();
        let clean = control.state.retain_lsn == end || logs && home;
        // From its end on the log has none yet.
        let logs_frames = control.state.logs_frames && (!clean || logs);
        let state = Control { clean, next_object, logs_frames, ..control.state };
        control.write(state).await
    }
}

impl Inner {
    pub(crate) fn io(&self) -> Vec<IoUsage> {
        self.meters.lock().iter().flat_map(|meter| meter.usage()).collect()
    }

    /// Bytes of log that a restart would repeat now.
    pub(crate) fn log_debt(&self) -> u64 {
        self.log.end().0.saturating_sub(self.log.redo_lsn().0)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    pub(crate) fn failure(&self) -> Option<StorageError> {
        self.failed.get().cloned().or_else(|| self.log.failure()).or_else(|| self.home.failure())
    }

    /// Stops everything for good. Everybody who waits for the log learns why.
    pub(crate) fn fail(&self, why: StorageError) {
        self.log.fail(&why);
        let _ = self.failed.set(why); // The first reason stays.
        self.on_demand.wake();
    }

    /// Wakes everybody who waits here; they learn why storage has stopped.
    fn stop_after_panic(&self, why: &StorageError) {
        let _ = self.failed.set(why.clone()); // The first reason stays.
        self.disk.fail(why.clone());
        self.pool.fail(why);
        self.flash.stop();
        self.on_demand.wake();
    }

    fn stop(&self) {
        self.closing.store(true, Ordering::Release);
        self.log.stop();
        self.stop_homes();
    }

    fn stop_homes(&self) {
        self.on_demand.wake();
        self.flash.stop();
        self.disk.stop();
    }

    /// The id that the control file should promise next.
    pub(crate) fn object_floor(&self) -> u32 {
        let limit = self.object_limit.load(Ordering::Acquire);
        let next = self.next_object.load(Ordering::Acquire);
        if limit.saturating_sub(next) < OBJECT_WINDOW / 2 { next + OBJECT_WINDOW } else { limit }
    }

    pub(crate) fn object_ids_short(&self) -> bool {
        self.object_floor() != self.object_limit.load(Ordering::Acquire)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.log.stop();
        self.stop_homes();
    }
}

/// Redoes what nobody has asked for yet, and reads what the tier has not shown to be good.
async fn finish_redo(store: Weak<Inner>, at_work: AtWork) {
    let Some(inner) = store.upgrade() else { return };
    let (env, pool) = (inner.env.clone(), inner.pool.clone());
    let (flash, on_demand) = (inner.flash.clone(), inner.on_demand.clone());
    drop(inner);
    let stop = || store.upgrade().is_none_or(|inner| inner.is_closing() || inner.failure().is_some());
    let (pages, began) = (on_demand.left(), env.now());
    let pressed = || store.upgrade().is_some_and(|inner| inner.log_debt() > inner.config.redo_bound / 2);
    let ended = on_demand.finish(&pool, &env, stop, pressed).await;
    let millis = (env.now().0 - began.0) / 1_000_000;
    match (ended, store.upgrade()) {
        (Ok(()), _) if pages > 0 && on_demand.left() == 0 => {
            tracing::info!(pages, millis, "redo has ended in the background")
        }
        (Err(e), Some(inner)) if !inner.is_closing() => inner.fail(e),
        _ => {}
    }
    drop(at_work); // Who closes the store need not wait for what follows.
    flash.verify_found(stop, pressed).await;
}

/// The life of a database with a flash tier that a restart is to find; else 0.
fn new_life(env: &Env, config: &FlashConfig, there: bool) -> u64 {
    if there && config.restart != Restart::Cold { env.random_u64().max(1) } else { 0 }
}

/// What counts the devices' transfers.
struct Meters {
    all: Vec<Arc<MeteredDevice>>,
    flash: Option<(DeviceRef, DeviceRef)>,
}

/// The log gets records of the flash tier's frames.
fn logs_frames(config: &FlashConfig, there: bool) -> bool {
    there && config.restart.hardens_in_log()
}

fn metered(devices: DeviceSet, env: &Env) -> (DeviceSet, Meters) {
    let raw = devices.flash.clone();
    let (devices, all) = devices.metered(env);
    let flash = raw.zip(devices.flash.clone());
    (devices, Meters { all, flash })
}

pub(crate) fn identity(state: &Control) -> Identity {
    Identity {
        database: state.database,
        epoch: state.epoch,
        page_size: state.page_size,
        segment_size: state.segment_size,
    }
}

fn roles(devices: &DeviceSet) -> [(&DeviceRef, Role); 4] {
    [
        (&devices.log, Role::Log),
        (&devices.double_write, Role::DoubleWrite),
        (&devices.data, Role::Data),
        (&devices.undo, Role::Undo),
    ]
}

async fn check_identities(devices: &DeviceSet, config: &StorageConfig, state: &Control) -> Result<()> {
    let checks = roles(devices).map(|(device, role)| async move { identity(state).check(&**device, role).await });
    for ((device, role), checked) in roles(devices).into_iter().zip(join_all(checks).await) {
        let Err(e) = checked else { continue };
        // Identity invariant 3.
        let may_be_gone = role == Role::DoubleWrite
            && (Identity::is_lost(&**device, role).await?
                || Identity::owner_of(&**device, role).await?.is_none()
                    && DiskHome::areas(devices, config, state.database).is_ours(WRITERS).await?);
        if !may_be_gone {
            return Err(e);
        }
        tracing::warn!(
            clean = state.clean,
            "the double-write file is made anew ({e}); pages that a crash tore are made again from the log"
        );
    }
    Ok(())
}

pub(crate) async fn stamp_all(devices: &DeviceSet, state: &Control) -> Result<()> {
    let stamps = roles(devices).map(|(device, role)| async move { identity(state).stamp(&**device, role).await });
    // Not `try_join_all`: no write may still be under way when this returns.
    join_all(stamps).await.into_iter().collect()
}

/// A configuration file is checked by itself; sizes that were fixed at creation need not be those in it.
fn check_config(config: &StorageConfig) -> Result<()> {
    let (page, segment, bound, buffer) = (config.page_size, config.segment_size, config.redo_bound, config.log_buffer);
    let least = 8 * page;
    let problem = match () {
        _ if !matches!(page, 4096 | 8192 | 16384 | 32768) => {
            format!("pages of {page} bytes; they have 4, 8, 16 or 32 KiB")
        }
        _ if segment < 65536 || !segment.is_multiple_of(65536) => {
            format!("log segments of {segment} bytes; a multiple of 64 KiB is needed")
        }
        _ if segment < least as u64 => {
            format!("log segments of {segment} bytes; pages of {page} need {least} at least")
        }
        _ if bound < segment => format!(
            "log.redo_bound of {bound} bytes; the log segments of this database have {segment} bytes, \
             which is the least: raise it"
        ),
        _ if buffer < least => {
            format!("memory.log_buffer of {buffer} bytes; pages of {page} need {least} at least: raise it")
        }
        _ if config.pool_bytes / page < crate::pool::MIN_FRAMES => {
            format!(
                "memory.pool of {} bytes; pages of {page} need {} at least: raise it",
                config.pool_bytes,
                page * crate::pool::MIN_FRAMES
            )
        }
        _ => return Ok(()),
    };
    Err(StorageError::Config(problem))
}

#[cfg(test)]
mod tests;
