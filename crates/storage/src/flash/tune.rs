//! Changing the tier while pages flow: switching it on and off, another device, size, write policy or replacement
//! order.
//!
//! Invariants:
//! 1. One change at a time, each in a task of its own: a caller that goes away does not leave a change half done.
//! 2. A change that must be refused is refused before anything changes. Refused are combinations that do not go
//!    together, records that do not fit into memory, and a device that fails, has no space or belongs to another
//!    database.
//! 3. A frame is removed only when it is free: clean frames are dropped, dirty ones are brought home, transfers are
//!    awaited. Switching off is shrinking to nothing. All other frames keep their pages through every change of size,
//!    order and write policy. If the new policy has no dirty frames, the cleaner brings home those that the old policy
//!    left. If the old policy kept a frame for a page in memory, the frame is dropped. The partitions stay, too: with a
//!    policy that gives frames out in turn, there is one turn for all frames if the tier was switched on with that
//!    policy, else one turn for each partition.
//! 4. `parts` changes only while no partition has frames. A task that looked at it before finds no frame, or looks
//!    again (`allocate`).
//! 5. A series of hardened records ends before anything changes, and the method changes before another can begin: a
//!    series is of one method, and nothing is stamped of a tier that changed under it (`hardened`, invariant 7).

use super::floors::Unhard;
use super::inventory::{superblocks, write_superblock};
use super::layout::{self, ENTRIES, Superblock};
use super::partition::frame_bytes;
use super::trouble::Rot;
use super::{FlashHome, FlashState, FrameId, PARTITION_FRAMES, PARTITIONS, Running, STRIPE};
use crate::config::{FlashConfig, Restart, Safeguard};
use crate::error::{Result, StorageError};
use crate::identity::{Identity, Role};
use crate::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;
use terrace_device::{DeviceRef, IoBuf, Purpose};
use terrace_policy::flash::{Budget, Gate};
use tokio::sync::oneshot;

/// How often a task that waits for frames to become free looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// Frames of a partition that are removed at a time.
const GOING: usize = 64;

/// How many partitions, of how many frames each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    pub(super) parts: u32,
    pub(super) each: u32,
}

impl Shape {
    /// For a tier that is switched on. `rotates`: frames are given out in turn, all of the device one after the other.
    pub(super) fn new(frames: u64, rotates: bool) -> Shape {
        let most = if rotates { 1 } else { PARTITIONS as u64 };
        let parts = (frames / PARTITION_FRAMES as u64).clamp(1, most) as u32;
        Shape::of(frames, parts)
    }

    /// With a given number of partitions. Each gets whole stripes where it gets more than one.
    pub(super) fn of(frames: u64, parts: u32) -> Shape {
        let each = (frames / u64::from(parts)).clamp(1, u64::from(u32::MAX >> 1)) as u32;
        let each = if parts > 1 && each > STRIPE { each - each % STRIPE } else { each };
        Shape { parts, each }
    }

    /// Sectors of inventory, of all partitions.
    pub(super) fn sectors(self) -> u64 {
        u64::from(self.parts) * u64::from(self.each).div_ceil(ENTRIES as u64)
    }

    pub(super) fn frames(self) -> usize {
        self.parts as usize * self.each as usize
    }

    /// Frames from the first to the last, on the device.
    fn span(self) -> u64 {
        match self.parts {
            1 => u64::from(self.each),
            parts => u64::from(self.each.next_multiple_of(STRIPE)) * u64::from(parts),
        }
    }
}

impl FlashHome {
    /// At opening, in the database's new `life` (0: none, and no inventory is written): takes the device, whose
    /// contents are void where they are not those that `attach` has found, and starts. A device that fails leaves the
    /// tier off, which only costs speed; one that carries another database's tier is refused.
    pub(crate) async fn start(
        self: &Arc<Self>,
        identity: &Identity,
        life: u64,
        device: Option<DeviceRef>,
    ) -> Result<()> {
        let _one = self.changing.lock().await;
        assert!(self.identity.set(*identity).is_ok(), "a tier is started once");
        self.life.store(life, Ordering::Release);
        let Some(device) = device else { return Ok(()) };
        if self.device().is_some() {
            self.work();
            self.have_series(true).await; // Before a page enters.
            match self.take(identity, &device).await {
                Ok(()) => self.restored_is_on(),
                Err(why) => self.die(&why.to_string()),
            }
            return Ok(());
        }
        let config = self.running.read().config.clone();
        let shape = self.check_config(&config)?;
        match self.prepare(&device, shape).await {
            Ok(()) => self.turn_on(device, config, shape).await,
            Err(e @ StorageError::Foreign { .. }) => return Err(e),
            Err(why) => self.die(&why.to_string()),
        }
        Ok(())
    }

    /// The control file has a life now.
    pub(crate) fn begin_life(&self, life: u64) {
        self.life.store(life, Ordering::Release);
    }

    /// What was found is used from now on, and pages enter. A device that has died meanwhile stays off.
    fn restored_is_on(&self) {
        let (restoring, on) = (FlashState::Restoring as u8, FlashState::On as u8);
        let _ = self.state.compare_exchange(restoring, on, Ordering::AcqRel, Ordering::Acquire);
        self.wake_cleaner.notify_one();
    }

    /// Changes everything in which the tier differs from the new configuration: on (`device`) or off, its device, size,
    /// policies, thresholds. Returns when all is changed. If the tier becomes smaller or goes off, that is after its
    /// dirty pages have gone home. A tier whose device failed is started anew.
    pub(crate) async fn set(self: &Arc<Self>, device: Option<DeviceRef>, config: FlashConfig) -> Result<()> {
        let (me, (send, receive)) = (self.clone(), oneshot::channel());
        self.log.spawn("flash change", async move {
            let _ = send.send(me.change(device, config).await); // The caller may have gone.
        });
        receive.await.unwrap_or(Err(StorageError::ShuttingDown))
    }

    async fn change(self: &Arc<Self>, device: Option<DeviceRef>, config: FlashConfig) -> Result<()> {
        let _one = self.changing.lock().await;
        self.check()?;
        let budget = config.write_budget;
        let spent = self.running.read().config.write_budget == budget;
        self.change_to(device, config).await?;
        if !spent {
            let now = self.env.now().0;
            *self.budget.lock() = budget.map(|bytes| Budget::new(bytes, now));
        }
        Ok(())
    }

    async fn change_to(self: &Arc<Self>, device: Option<DeviceRef>, config: FlashConfig) -> Result<()> {
        let Some(device) = device else {
            self.turn_off().await?;
            self.running.write().config = config;
            return Ok(());
        };
        let shape = self.check_config(&config)?;
        let same = self.device().is_some_and(|now| Arc::ptr_eq(&now, &device));
        if same && self.is_on() {
            return self.adjust(&device, config).await;
        }
        if !same {
            self.prepare(&device, shape).await?;
        }
        self.turn_off().await?;
        if same {
            self.prepare(&device, shape).await?; // It failed, and may be well again.
        }
        self.turn_on(device, config, shape).await;
        Ok(())
    }

    /// Invariant 2, as far as no device is needed.
    pub(super) fn check_config(&self, config: &FlashConfig) -> Result<Shape> {
        config.check().map_err(StorageError::Config)?;
        let frames = config.size / self.page_size as u64;
        if frames == 0 {
            return Err(StorageError::Config(format!("a flash tier of {} bytes holds no page", config.size)));
        }
        let records = frames.saturating_mul(frame_bytes(config.replacement) as u64);
        if records > self.pool_bytes as u64 {
            return Err(StorageError::Config(format!(
                "a flash tier of {} bytes takes {records} bytes of memory for the records of its frames, \
                 more than the buffer pool itself: {} bytes; make the tier smaller, or the pool larger",
                config.size, self.pool_bytes
            )));
        }
        Ok(Shape::new(frames, config.write.flow().rotates))
    }

    pub(super) fn bytes(&self, shape: Shape) -> u64 {
        layout::end(shape.span(), shape.sectors(), self.page_size)
    }

    /// Makes the device this database's, with room for the frames.
    async fn prepare(&self, device: &DeviceRef, shape: Shape) -> Result<()> {
        let identity = self.identity.get().ok_or(StorageError::ShuttingDown)?;
        if let Some(owner) = owner(device).await.filter(|owner| *owner != identity.database) {
            let problem = format!(
                "it is the flash tier of database {owner:032x}, this is {:032x}; name another device or directory, \
                 or remove it",
                identity.database
            );
            return Err(StorageError::Foreign { file: device.name().to_string(), problem });
        }
        device.allocate(0, self.bytes(shape)).await?;
        identity.stamp(&**device, Role::Flash).await?;
        let life = self.life.load(Ordering::Acquire);
        if life == 0 {
            return Ok(());
        }
        let next = Superblock { sequence: 0, life, ancestors: Vec::new(), parts: shape.parts };
        write_superblock(device, identity.database, next, life).await
    }

    async fn turn_on(self: &Arc<Self>, device: DeviceRef, config: FlashConfig, shape: Shape) {
        assert_eq!(self.totals.used.load(Ordering::Acquire), 0, "a tier that is switched on is empty");
        self.parts.store(shape.parts, Ordering::Release); // Invariant 4.
        let (order, turns) = (config.replacement, config.write.flow().rotates);
        let bases = config.keeps_bases();
        {
            let mut running = self.running.write();
            let gate = gate(&config, shape.frames(), self.bounds);
            *running = Running { config, gate, device: Some(device) };
        }
        for partition in &self.partitions[..shape.parts as usize] {
            let mut partition = partition.lock();
            partition.set_order(order);
            partition.set_turns(turns);
            partition.keep_bases(bases);
            partition.grow(shape.each);
        }
        self.failures.store(0, Ordering::Relaxed);
        *self.rot.lock() = Rot::default();
        *self.unhard.lock() = Unhard::default();
        *self.problem.lock() = None;
        self.state.store(FlashState::On as u8, Ordering::Release);
        self.work();
        self.wake_cleaner.notify_one();
        self.wake_keeper.notify_one();
        self.have_series(false).await;
    }

    /// The tasks run.
    fn work(self: &Arc<Self>) {
        if !self.working.swap(true, Ordering::AcqRel) {
            let (writer, cleaner, keeper) = (self.clone(), self.clone(), self.clone());
            self.log.spawn("flash writer", async move { writer.run_writer().await });
            self.log.spawn("flash cleaner", async move { cleaner.run_cleaner().await });
            self.log.spawn("flash inventory", async move { keeper.run_keeper().await });
        }
    }

    /// Invariant 3. A device that failed, before or meanwhile, need not answer for that.
    async fn turn_off(&self) -> Result<()> {
        if self.state() == FlashState::Off {
            return Ok(());
        }
        {
            let _keeping = self.keeping.lock().await; // Invariant 5.
            self.end_series();
            let (on, draining) = (FlashState::On as u8, FlashState::Draining as u8);
            // Else it has failed.
            let _ = self.state.compare_exchange(on, draining, Ordering::AcqRel, Ordering::Acquire);
        }
        self.shrink(0).await?;
        while self.partitions.iter().any(|partition| partition.lock().is_rising()) {
            self.env.sleep(LOOK_AGAIN).await;
            self.check()?;
        }
        let mut running = self.running.write();
        running.device = None;
        running.gate.frames = 0;
        drop(running);
        self.urgent.lock().clear();
        *self.problem.lock() = None;
        self.state.store(FlashState::Off as u8, Ordering::Release);
        Ok(())
    }

    /// Other policies, thresholds, size; the same device.
    async fn adjust(&self, device: &DeviceRef, config: FlashConfig) -> Result<()> {
        let parts = self.parts.load(Ordering::Acquire);
        let shape = Shape::of(config.size / self.page_size as u64, parts);
        let (before, order) = {
            let running = self.running.read();
            (running.gate.frames, running.config.replacement)
        };
        if shape.frames() > before {
            device.allocate(0, self.bytes(shape)).await?;
        }
        let (flow, reordered) = (config.write.flow(), config.replacement != order);
        let (size, replacement, bases) = (config.size, config.replacement, config.keeps_bases());
        {
            let _keeping = self.keeping.lock().await; // Invariant 5.
            self.end_series();
            {
                let mut running = self.running.write();
                running.gate = gate(&config, shape.frames().min(before), self.bounds);
                running.config = FlashConfig { size: running.config.size, ..config };
            }
            self.name_life(device, parts).await;
        }
        for partition in &self.partitions[..parts as usize] {
            let mut partition = partition.lock();
            if reordered {
                partition.set_order(replacement);
            }
            partition.set_turns(flow.rotates);
            partition.keep_bases(bases);
            let dropped = if flow.keeps { Vec::new() } else { partition.drop_kept() };
            self.counters.invalidated.fetch_add(dropped.len() as u64, Ordering::Relaxed);
            if shape.frames() > before {
                partition.grow(shape.each);
            }
        }
        {
            let mut running = self.running.write();
            running.gate.frames = shape.frames();
            running.config.size = size;
        }
        self.have_series(false).await;
        self.wake_cleaner.notify_one();
        self.wake_keeper.notify_one();
        if shape.frames() < before {
            self.shrink(shape.each).await?;
            let larger = Shape { parts, each: (before / parts as usize) as u32 };
            let (end, before) = (self.bytes(shape), self.bytes(larger));
            if end < before && self.leave_journal().await {
                // Room that nobody needs. The device may keep what lies there: no sector of it names a page that
                // changes unnoticed (`shape`).
                if let Err(error) = device.discard(end, before - end).await {
                    tracing::warn!(%error, "the end of the flash tier cannot be given back");
                }
            }
        }
        Ok(())
    }

    /// A tier that a restart was not to find, and now is: its inventories count from this life on.
    async fn name_life(&self, device: &DeviceRef, parts: u32) {
        let life = self.life.load(Ordering::Acquire);
        let warm = self.running.read().config.restart != Restart::Cold;
        let Some(identity) = self.identity.get().filter(|_| warm && life != 0) else { return };
        let known = superblocks(device, identity.database).await;
        if known.iter().flatten().any(|superblock| superblock.life == life) {
            return;
        }
        let next = Superblock { sequence: 0, life, ancestors: Vec::new(), parts };
        if let Err(error) = write_superblock(device, identity.database, next, life).await {
            tracing::warn!(device = device.name(), "after a restart the flash tier will be empty: {error}");
        }
    }

    /// Leaves `each` frames in every partition: waits until the others are free.
    async fn shrink(&self, each: u32) -> Result<()> {
        for partition in &self.partitions {
            let mut partition = partition.lock();
            let each = each.min(partition.frames());
            partition.begin_shrink(each);
        }
        let hard = || if self.safeguards.has(Safeguard::HardShrink) { self.hard_to() } else { u64::MAX };
        loop {
            let mut going = Vec::new();
            let mut done = true;
            for (part, partition) in self.partitions.iter().enumerate() {
                let mut partition = partition.lock();
                if !partition.end_shrink(hard()) {
                    done = false;
                    going.extend(partition.going(GOING).into_iter().map(|frame| FrameId { part: part as u32, frame }));
                }
            }
            if done {
                return Ok(());
            }
            self.check()?;
            self.want(going);
            for wake in [&self.wake_writer, &self.wake_cleaner, &self.wake_keeper] {
                wake.notify_one();
            }
            self.env.sleep(LOOK_AGAIN).await;
        }
    }
}

impl FlashHome {
    /// The cleaner takes these first.
    fn want(&self, frames: Vec<FrameId>) {
        let mut urgent = self.urgent.lock();
        if urgent.len() < GOING * PARTITIONS {
            urgent.extend(frames);
        }
    }
}

/// The thresholds that a configuration means for so many frames; the two `bounds` are of one floor and of two.
pub(super) fn gate(config: &FlashConfig, frames: usize, bounds: (u64, u64)) -> Gate {
    let two = config.restart == Restart::Instant && config.write.dirty_frames_stay();
    Gate {
        redo_bound: if two { bounds.1 } else { bounds.0 },
        write: config.write,
        frames,
        fill_threshold: config.fill_threshold,
        throttle: config.throttle_queue_depth,
        dirty_fraction: config.dirty_fraction,
    }
}

/// The database whose tier a device carries.
pub(super) async fn owner(device: &DeviceRef) -> Option<u128> {
    if device.size() < terrace_device::SECTOR as u64 {
        return None;
    }
    let sector = device.read(0, IoBuf::zeroed(terrace_device::SECTOR), Purpose::Flash).await.ok()?;
    Identity::owner(&sector)
}
