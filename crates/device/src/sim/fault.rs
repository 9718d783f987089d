//! Devices that crash, fail, fill up and rot, for simulation. Contents lie in memory.
//!
//! A [`Recorder`] is shared by all devices of a database: it numbers the starts and ends of their writes and syncs in
//! one sequence, cuts the power at a chosen point, and says what the media may hold then (`history`). Everything is
//! determined by the calls made and the seeds given. Invariants: (1) a change starts when its method is called and is
//! complete when its future says so; in between a crash may or may not find it, in whole or in part; (2) after the
//! power is cut nothing succeeds and nothing is recorded; (3) a process may die and another go on with the same devices
//! ([`Recorder::process_died`]): what the first had written is readable, and as durable as its syncs made it; (4)
//! overlapping transfers are ordered by nobody: a read that ends while a write of the same bytes is in flight returns a
//! mix of old and new, where torn reads are asked for.

mod history;

pub use history::{Choice, Cursor, History, TEAR};

use crate::latency::{Delay, Operation as Served};
use crate::{
    Device, DeviceError, DeviceStats, ErrorKind, Guarantees, Image, IoBuf, IoFuture, MemoryDevice, Purpose, check_room,
};
use history::{Change, DeviceState, Event, States};
use parking_lot::Mutex;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What a fault waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Read,
    Write,
    Sync,
    Allocate,
    Discard,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The operation fails. A write that fails with anything but `NoSpace` may have changed the medium all the same.
    Fail(ErrorKind),
    /// The device is gone from here on.
    Die,
    /// A write that reports success and does nothing.
    Lose,
    /// A write that goes so many bytes further on (or back) than it was told.
    Misdirect(i64),
    /// A read returns this bit of its first byte flipped; the medium is sound.
    Garble(u8),
    /// A read returns garbage from its middle on; the medium is sound.
    Scramble(u64),
    /// A sync that fails, and the cache forgets what it had not yet written: readers see what is on the medium.
    DropCache,
}

/// Strikes the operations that match, after letting `skip` of them pass, `times` times.
#[derive(Clone, Debug)]
pub struct Rule {
    pub operation: Operation,
    /// `None` = any. Allocate and discard have no purpose.
    pub purpose: Option<Purpose>,
    pub skip: u64,
    pub times: u64,
    pub fault: Fault,
}

/// One sequence of events over the devices of a database.
pub struct Recorder {
    inner: Mutex<Recording>,
}

struct Recording {
    start: States,
    now: States,
    events: u64,
    /// `None` where only the present matters (long runs).
    kept: Option<Vec<Event>>,
    power_off_at: u64,
}

impl Recorder {
    /// `keep`: remember all events, for [`Recorder::history`]. Costs as much memory as is written.
    pub fn new(keep: bool) -> Arc<Recorder> {
        let kept = keep.then(Vec::new);
        let (start, now) = Default::default();
        Arc::new(Recorder { inner: Mutex::new(Recording { start, now, events: 0, kept, power_off_at: u64::MAX }) })
    }

    /// Adds a device that holds `image`, durably. All are added before anything is written.
    pub fn device(self: &Arc<Recorder>, name: &str, guarantees: Guarantees, image: Image) -> FaultDevice {
        let mut recording = self.inner.lock();
        assert_eq!(recording.events, 0, "devices join before the first event");
        let state = DeviceState::new(name, guarantees.atomic_write, guarantees.capacity, image.clone());
        recording.start.0.push(state.clone());
        recording.now.0.push(state);
        FaultDevice {
            recorder: self.clone(),
            index: recording.now.0.len() - 1,
            capacity: AtomicU64::new(guarantees.capacity),
            visible: MemoryDevice::with_image(name, guarantees, image),
            rules: Mutex::default(),
            in_flight: Mutex::default(),
            dead: AtomicBool::new(false),
            latency: None,
            torn_reads: None,
        }
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.inner.lock().events
    }

    /// Cuts the power as soon as `n` events have happened.
    pub fn power_off_at(&self, n: u64) {
        self.inner.lock().power_off_at = n;
    }

    pub fn power_off(&self) {
        self.power_off_at(0);
    }

    pub fn is_off(&self) -> bool {
        self.inner.lock().is_off()
    }

    /// What the media hold after a crash now, in the order in which the devices were added. Cut the power first, or go
    /// on: this changes nothing.
    pub fn contents(&self, choice: Choice) -> Vec<Image> {
        self.inner.lock().now.contents(choice)
    }

    /// The devices after a crash now and a restart: without latency, rules or death.
    pub fn restart(&self, choice: Choice, keep: bool) -> (Arc<Recorder>, Vec<FaultDevice>) {
        let recording = self.inner.lock();
        let images = recording.now.contents(choice);
        let fresh = Recorder::new(keep);
        let devices = recording.now.0.iter().zip(images).map(|(state, image)| {
            let guarantees = Guarantees { atomic_write: state.atomic_write, capacity: state.capacity };
            fresh.device(&state.name, guarantees, image)
        });
        let devices = devices.collect();
        (fresh, devices)
    }

    /// The process died, the machine lives: what it had in flight on `devices` (all of this recorder's) is there, or,
    /// where `cut` says so, only the first part of it. The next process goes on with the same devices, without the
    /// rules that were made for the first.
    pub fn process_died<'a>(devices: impl IntoIterator<Item = &'a FaultDevice>, cut: Option<u64>) {
        for device in devices {
            device.clear_rules();
            let mut random = cut.map(ChaCha8Rng::seed_from_u64);
            let room = device.recorder.inner.lock().now.unfinished_room(device.index);
            for start in room {
                device.recorder.record(Event::Cut { device: device.index, start, units: 0 });
            }
            let in_flight = std::mem::take(&mut *device.in_flight.lock());
            for (start, write) in in_flight.into_iter().rev() {
                let units = write.before.len().div_ceil(TEAR);
                let kept = random.as_mut().map_or(units, |random| random.random_range(0..=units));
                if device.recorder.record(Event::Cut { device: device.index, start, units: kept }).is_some() {
                    let from = write.before.len().min(kept * TEAR);
                    device.visible.tamper(|image| image.write(write.offset + from as u64, &write.before[from..]));
                }
            }
        }
    }

    /// The history so far; `None` where the recorder does not keep it.
    pub fn history(&self) -> Option<History> {
        let recording = self.inner.lock();
        let events = Arc::new(recording.kept.clone()?);
        Some(History { start: recording.start.clone(), events })
    }

    /// Numbers an event. `None`: the power is off.
    fn record(&self, event: Event) -> Option<u64> {
        let mut recording = self.inner.lock();
        if recording.is_off() {
            return None;
        }
        let number = recording.events;
        recording.events += 1;
        recording.now.apply(number, &event);
        if let Some(kept) = &mut recording.kept {
            kept.push(event);
        }
        Some(number)
    }
}

impl Recording {
    fn is_off(&self) -> bool {
        self.events >= self.power_off_at
    }
}

/// A device in memory under a [`Recorder`].
pub struct FaultDevice {
    recorder: Arc<Recorder>,
    index: usize,
    /// What reads return: every change from its start on.
    visible: MemoryDevice,
    capacity: AtomicU64,
    rules: Mutex<Vec<Rule>>,
    /// Writes that have begun and not ended, by the number of their start.
    in_flight: Mutex<BTreeMap<u64, InFlight>>,
    dead: AtomicBool,
    latency: Option<Arc<dyn Delay>>,
    torn_reads: Option<Mutex<ChaCha8Rng>>,
}

/// What a write in flight writes over.
struct InFlight {
    offset: u64,
    before: Vec<u8>,
}

type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

impl FaultDevice {
    pub fn with_latency(mut self, latency: Arc<dyn Delay>) -> FaultDevice {
        self.latency = Some(latency);
        self
    }

    /// Reads mix what a write in flight writes with what was there (invariant 4).
    pub fn with_torn_reads(mut self, seed: u64) -> FaultDevice {
        self.torn_reads = Some(Mutex::new(ChaCha8Rng::seed_from_u64(seed)));
        self
    }

    pub fn inject(&self, rule: Rule) {
        self.rules.lock().push(rule);
    }

    pub fn clear_rules(&self) {
        self.rules.lock().clear();
    }

    /// From here on every operation fails with `Dead`.
    pub fn kill(&self) {
        self.dead.store(true, Relaxed);
    }

    /// The most bytes it takes from here on (a disk that others fill up, or that grows again). Not above its guarantee.
    pub fn set_capacity(&self, bytes: u64) {
        self.capacity.store(bytes, Relaxed);
    }

    /// Bit rot: flips the bits of `mask` in the byte at `offset`, on the medium and for readers.
    pub fn flip(&self, offset: u64, mask: u8) {
        self.rot(Change::Flip { offset, mask }, |image| image.flip(offset, mask));
    }

    /// Rot of many bytes: garbage from `offset` on, on the medium and for readers.
    pub fn scramble(&self, offset: u64, len: usize, seed: u64) {
        let mut data = vec![0; len];
        ChaCha8Rng::seed_from_u64(seed).fill(&mut data[..]);
        let data: Arc<[u8]> = data.into();
        self.rot(Change::Write { offset, data: data.clone() }, |image| image.write(offset, &data));
    }

    /// The sectors that the range touches cannot be read any more, until they are written.
    pub fn spoil(&self, offset: u64, len: u64) {
        self.rot(Change::Spoil { offset, len }, |image| image.spoil(offset, len));
    }

    fn rot(&self, change: Change, apply: impl FnOnce(&mut Image)) {
        if let Change::Flip { offset, .. } | Change::Spoil { offset, .. } | Change::Write { offset, .. } = change {
            assert!(offset < self.visible.size(), "rot beyond the end of the device");
        }
        if self.recorder.record(Event::Rot { device: self.index, change }).is_some() {
            self.visible.tamper(apply);
        }
    }

    /// What readers see now.
    pub fn visible(&self) -> Image {
        self.visible.image()
    }

    fn fail<T: Send + 'static>(
        &self,
        operation: &'static str,
        offset: u64,
        length: u64,
        kind: ErrorKind,
    ) -> IoFuture<'_, T> {
        Box::pin(ready(Err(DeviceError::new(self.visible.name(), operation, offset, length, kind))))
    }

    fn is_dead(&self) -> bool {
        self.dead.load(Relaxed) || self.recorder.is_off()
    }

    /// Decides whether a fault strikes this operation.
    fn fault(&self, operation: Operation, purpose: Option<Purpose>) -> Option<Fault> {
        if self.is_dead() {
            return Some(Fault::Die);
        }
        let mut struck = None;
        for rule in self.rules.lock().iter_mut() {
            let matches = rule.operation == operation && (rule.purpose.is_none() || rule.purpose == purpose);
            if !matches || rule.times == 0 {
                continue;
            }
            if rule.skip > 0 {
                rule.skip -= 1;
            } else if struck.is_none() {
                rule.times -= 1;
                struck = Some(rule.fault.clone());
            }
        }
        if struck == Some(Fault::Die) {
            self.kill();
        }
        struck
    }

    /// Mixes what writes in flight write over into what was read (invariant 4).
    fn tear(&self, offset: u64, buf: &mut [u8]) {
        let Some(random) = &self.torn_reads else { return };
        let in_flight = self.in_flight.lock();
        for write in in_flight.values().rev() {
            for (unit, before) in write.before.chunks(TEAR).enumerate() {
                let at = write.offset + (unit * TEAR) as u64;
                let Some(at) = at.checked_sub(offset).map(|at| at as usize) else { continue };
                if at + before.len() <= buf.len() && random.lock().random_bool(0.5) {
                    buf[at..at + before.len()].copy_from_slice(before);
                }
            }
        }
    }

    fn wait(&self, operation: Served, offset: u64, bytes: usize) -> Option<Wait> {
        self.latency.as_ref().map(|latency| latency.serve(operation, offset, bytes as u64))
    }

    /// Starts a change that readers see at once; the future completes it.
    fn change(
        &self,
        operation: &'static str,
        change: Change,
        apply: Result<(), DeviceError>,
        over: Option<InFlight>,
        wait: Option<Wait>,
    ) -> IoFuture<'_, ()> {
        if let Err(error) = apply {
            return Box::pin(ready(Err(error)));
        }
        let device = self.index;
        let Some(start) = self.recorder.record(Event::Start { device, change }) else {
            return self.fail(operation, 0, 0, ErrorKind::Dead);
        };
        self.in_flight.lock().extend(over.map(|over| (start, over)));
        Box::pin(async move {
            if let Some(wait) = wait {
                wait.await;
            }
            let done = !self.is_dead() && self.recorder.record(Event::Done { device, start }).is_some();
            self.in_flight.lock().remove(&start);
            if done { Ok(()) } else { Err(DeviceError::new(self.visible.name(), operation, 0, 0, ErrorKind::Dead)) }
        })
    }
}

impl Device for FaultDevice {
    fn name(&self) -> &str {
        self.visible.name()
    }

    fn guarantees(&self) -> Guarantees {
        self.visible.guarantees()
    }

    fn size(&self) -> u64 {
        self.visible.size()
    }

    fn read(&self, offset: u64, buf: IoBuf, purpose: Purpose) -> IoFuture<'_, IoBuf> {
        let length = buf.len();
        let fault = self.fault(Operation::Read, Some(purpose));
        match fault {
            Some(Fault::Fail(kind)) => return self.fail("read", offset, length as u64, kind),
            Some(Fault::Die) => return self.fail("read", offset, length as u64, ErrorKind::Dead),
            _ => {}
        }
        let wait = self.wait(Served::Read, offset, length);
        Box::pin(async move {
            if let Some(wait) = wait {
                wait.await;
            }
            if self.is_dead() {
                return self.fail("read", offset, length as u64, ErrorKind::Dead).await;
            }
            let mut buf = self.visible.read_now(offset, buf)?;
            self.tear(offset, &mut buf);
            match fault {
                Some(Fault::Garble(bit)) => buf[0] ^= 1 << (bit % 8),
                Some(Fault::Scramble(seed)) => ChaCha8Rng::seed_from_u64(seed).fill(&mut buf[length / 2..]),
                _ => {}
            }
            Ok(buf)
        })
    }

    fn write(&self, offset: u64, buf: IoBuf, purpose: Purpose) -> IoFuture<'_, IoBuf> {
        let length = buf.len() as u64;
        let fault = self.fault(Operation::Write, Some(purpose));
        let offset = match fault {
            Some(Fault::Misdirect(by)) => offset.saturating_add_signed(by),
            _ => offset,
        };
        let change = Change::Write { offset, data: Arc::from(&buf[..]) };
        match fault {
            None | Some(Fault::Garble(_) | Fault::Scramble(_) | Fault::Misdirect(_) | Fault::DropCache) => {}
            Some(Fault::Lose) => return Box::pin(ready(Ok(buf))),
            Some(Fault::Fail(ErrorKind::NoSpace)) => return self.fail("write", offset, length, ErrorKind::NoSpace),
            Some(Fault::Fail(kind)) => {
                // It started and will never be done: a crash may find it or not.
                self.recorder.record(Event::Start { device: self.index, change });
                return self.fail("write", offset, length, kind);
            }
            Some(Fault::Die) => return self.fail("write", offset, length, ErrorKind::Dead),
        }
        let wait = self.wait(Served::Write, offset, buf.len());
        let room = check_room(self.name(), "write", offset, length, self.capacity.load(Relaxed));
        let mut over = InFlight { offset, before: vec![0; buf.len()] };
        self.visible.tamper(|image| image.read(offset, &mut over.before));
        let apply = room.and_then(|_| self.visible.write_now(offset, &buf));
        let done = self.change("write", change, apply, Some(over), wait);
        Box::pin(async move { done.await.map(|()| buf) })
    }

    fn sync(&self, purpose: Purpose) -> IoFuture<'_, ()> {
        let device = self.index;
        let fault = self.fault(Operation::Sync, Some(purpose));
        let Some(start) = self.recorder.record(Event::SyncStart) else {
            return self.fail("sync", 0, 0, ErrorKind::Dead);
        };
        match fault {
            None | Some(Fault::Garble(_) | Fault::Scramble(_) | Fault::Misdirect(_)) => {}
            Some(Fault::Lose) => return Box::pin(ready(Ok(()))),
            Some(Fault::Fail(kind)) => {
                self.recorder.record(Event::SyncFailed { device, start });
                return self.fail("sync", 0, 0, kind);
            }
            Some(Fault::DropCache) => {
                self.recorder.record(Event::Dropped { device, start });
                let left = self.recorder.inner.lock().now.visible(device);
                self.visible.tamper(|image| *image = left);
                return self.fail("sync", 0, 0, ErrorKind::Io("sync".into()));
            }
            Some(Fault::Die) => return self.fail("sync", 0, 0, ErrorKind::Dead),
        }
        self.visible.sync_now();
        let wait = self.wait(Served::Sync, 0, 0);
        Box::pin(async move {
            if let Some(wait) = wait {
                wait.await;
            }
            let done = !self.is_dead() && self.recorder.record(Event::SyncDone { device, start }).is_some();
            if done { Ok(()) } else { self.fail("sync", 0, 0, ErrorKind::Dead).await }
        })
    }

    fn allocate(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        match self.fault(Operation::Allocate, None) {
            Some(Fault::Fail(kind)) => return self.fail("allocate", offset, len, kind),
            Some(Fault::Die) => return self.fail("allocate", offset, len, ErrorKind::Dead),
            _ => {}
        }
        let room = check_room(self.name(), "allocate", offset, len, self.capacity.load(Relaxed));
        let apply = room.and_then(|_| self.visible.allocate_now(offset, len));
        // An error leaves `change` before the size is looked at.
        self.change("allocate", Change::Grow { size: offset.saturating_add(len) }, apply, None, None)
    }

    fn discard(&self, offset: u64, len: u64) -> IoFuture<'_, ()> {
        match self.fault(Operation::Discard, None) {
            Some(Fault::Fail(kind)) => return self.fail("discard", offset, len, kind),
            Some(Fault::Die) => return self.fail("discard", offset, len, ErrorKind::Dead),
            Some(Fault::Lose) => return Box::pin(ready(Ok(()))),
            _ => {}
        }
        self.visible.discard_now(offset, len);
        self.change("discard", Change::Clear { offset, len }, Ok(()), None, None)
    }

    fn stats(&self) -> DeviceStats {
        self.visible.stats()
    }
}

#[cfg(test)]
mod tests;
