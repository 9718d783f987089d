//! Online backup, and what a restore does beyond recovery.
//!
//! A backup is a *fuzzy copy*: pages are copied one by one while they change, each as it lies home at that moment, with
//! the log from before the first of them to after the last. To recovery it is what a crash leaves: pages of different
//! ages, none newer than the log's end. (Mohan & Narang 1993, "An efficient and flexible method for archiving a data
//! base".)
//!
//! Invariants:
//! 1. The log is held from `retain_lsn`, as recorded *before* the first page is read, to the end: every change below it
//!    is home already, so every copy has it; every change above it is in the log copied.
//! 2. A page is copied only as it checks. One that is torn because it is written at this moment is read again; one that
//!    does not check then is taken from the pool, which repairs.
//! 3. The log is copied after the last page, up to an end that was durable after it: no copy is beyond it. Its last
//!    segment is written while it is read, so of what lies behind that end a later part may be there and an earlier one
//!    not, as if the log were damaged: the copy ends with the last batch that checks.
//! 4. A restored database gets an id of its own once it is recovered: log of the life it came from never checks in its
//!    own.

use crate::config::{DeviceSet, StorageConfig};
use crate::control::{Control, ControlFile};
use crate::error::{BadPage, Result, StorageError};
pub use crate::home::disk::PAGES_AT;
use crate::home::disk::{DiskHome, WRITERS};
use crate::identity::Role;
use crate::log::Log;
pub use crate::log::inspect::{SegmentFacts, segment_facts};
use crate::page::header;
use crate::pool::Access;
use crate::space::Space;
use crate::store::{Store, identity, stamp_all};
use crate::types::*;
use std::time::Duration;
use terrace_device::{DeviceRef, ErrorKind, IoBuf, Purpose};
use terrace_env::Env;

/// A page that does not check is read so often, with rests between.
const READS: u32 = 20;
const REST: Duration = Duration::from_millis(1);
/// Object ids left unused behind a restored database's largest: what the life it came from made later is not met again.
const OBJECTS_APART: u32 = 1 << 20;

/// How far recovery repeats history.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Upto {
    /// To the log's end.
    #[default]
    End,
    /// Up to the first commit later than this, in microseconds since 1970.
    Time(i64),
    /// Batches that end at or below it.
    Lsn(Lsn),
}

/// A backup under way: while it lives, the log is held (invariant 1).
pub struct Backup {
    store: Store,
    /// As recorded when it began; a restore begins with its `retain_lsn`.
    pub control: Control,
    sizes: [u64; 2],
}

/// What is known at a backup's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackupEnd {
    /// The log is copied up to here at least.
    pub lsn: Lsn,
    /// Microseconds since 1970: everything committed before is in it.
    pub unix_micros: i64,
    /// Numbers of the log segments to copy.
    pub first_segment: u64,
    pub last_segment: u64,
}

impl Store {
    /// Begins a backup, one at a time.
    pub async fn begin_backup(&self) -> Result<Backup> {
        // So that there is little to repeat.
        self.checkpoint().await?;
        let control = self.recorded_and_held().await?;
        let devices = self.devices();
        // Whatever is allocated later is formatted in the log.
        let sizes = [devices.data.size(), devices.undo.size()];
        Ok(Backup { store: self.clone(), control, sizes })
    }

    /// The state in the control file, with the log held from its `retain_lsn` on.
    async fn recorded_and_held(&self) -> Result<Control> {
        // The log is given up only after the control file was written, which this lock orders.
        let control = self.control().lock().await;
        let state = control.state;
        if !self.log().hold(Some(self.log().segment_of(state.retain_lsn))) {
            return Err(StorageError::Busy("another backup is under way".into()));
        }
        Ok(state)
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        self.store.log().hold(None);
    }
}

impl Backup {
    /// Bytes of a tablespace's file, a whole number of pages behind its head of [`PAGES_AT`] bytes.
    pub fn size(&self, space: SpaceId) -> u64 {
        let size = self.sizes[usize::from(space == UNDO)];
        let page = self.store.pool().page_size() as u64;
        PAGES_AT + size.saturating_sub(PAGES_AT) / page * page
    }

    /// Copies pages of a tablespace's file, `offset` and `len` in whole pages behind the head, each checked (invariant
    /// 2).
    pub async fn read(&self, space: SpaceId, offset: u64, len: usize) -> Result<IoBuf> {
        let page_size = self.store.pool().page_size();
        assert!(offset >= PAGES_AT && (offset - PAGES_AT).is_multiple_of(page_size as u64), "whole pages are copied");
        assert!(
            len.is_multiple_of(page_size) && offset + len as u64 <= self.size(space),
            "pages of the file are copied"
        );
        let device = self.device(space);
        // What cannot be read stands for zeros, which is looked at again.
        let read = device.read(offset, IoBuf::zeroed(len), purpose(space)).await;
        let whole = read.is_ok();
        let mut bytes = match read {
            Err(e) if matches!(e.kind, ErrorKind::Medium(_)) => IoBuf::zeroed(len),
            read => read?,
        };
        let first = (offset - PAGES_AT) / page_size as u64;
        for at in 0..len / page_size {
            let id = PageId::new(space, (first + at as u64) as u32);
            let place = at * page_size..(at + 1) * page_size;
            if !whole || !checks(&bytes[place.clone()], id) {
                let good = self.read_again(id).await?;
                bytes[place].copy_from_slice(&good);
            }
        }
        Ok(bytes)
    }

    async fn read_again(&self, page: PageId) -> Result<Vec<u8>> {
        let page_size = self.store.pool().page_size();
        for _ in 0..READS {
            self.store.env().sleep(REST).await;
            let at = PAGES_AT + page.no as u64 * page_size as u64;
            match self.device(page.space).read(at, IoBuf::zeroed(page_size), purpose(page.space)).await {
                Ok(bytes) if checks(&bytes, page) => return Ok(bytes.to_vec()),
                Err(e) if !matches!(e.kind, ErrorKind::Medium(_)) => return Err(e.into()),
                _ => {}
            }
        }
        let unused =
            page.space == DATA && !Space::is_map_page(page.no, page_size) && !self.store.space(DATA).is_used(page.no);
        if unused {
            return Ok(vec![0; page_size]);
        }
        let pin = self.store.pool().fetch(page, Access::Random).await?;
        let mut bytes = pin.read().to_vec();
        header::seal(&mut bytes);
        Ok(bytes)
    }

    fn device(&self, space: SpaceId) -> &DeviceRef {
        match space {
            DATA => &self.store.devices().data,
            UNDO => &self.store.devices().undo,
            other => panic!("there is no tablespace {other:?}"),
        }
    }

    /// All pages are copied: how far the log must be.
    pub async fn end(&self) -> Result<BackupEnd> {
        let log = self.store.log();
        let lsn = log.end();
        log.flush_to(lsn).await?;
        let first_segment = log.segment_of(self.control.retain_lsn);
        let unix_micros = self.store.env().unix_micros();
        Ok(BackupEnd { lsn, unix_micros, first_segment, last_segment: log.segment_of(lsn) })
    }

    /// A log segment's bytes. Of one that is still being written as far as its batches check (invariant 3), zeros
    /// behind them.
    pub async fn segment(&self, number: u64) -> Result<Vec<u8>> {
        let log = self.store.log();
        let (from, written) = (self.control.retain_lsn, number < log.segment_of(log.durable()));
        match log.segment(number).await? {
            Some(segment) if segment.is_whole() && written => Ok(segment.bytes().to_vec()),
            Some(segment) if segment.is_whole() => {
                Ok(segment.proven(if log.segment_of(from) == number { from } else { Lsn(0) }))
            }
            _ => Err(StorageError::Damaged(format!("log segment {number} cannot be read back"))),
        }
    }
}

fn purpose(space: SpaceId) -> Purpose {
    if space == UNDO { Purpose::Undo } else { Purpose::Data }
}

/// Whether a page may be copied. Blank ones may: they are not in use, or the log formats them.
fn checks(bytes: &[u8], page: PageId) -> bool {
    matches!(header::verify(bytes, page), Ok(()) | Err(BadPage::Blank | BadPage::Version(_) | BadPage::Kind(_)))
}

/// Whether the bytes are what a backup holds of a page: for who verifies one.
pub fn page_checks(bytes: &[u8], page: PageId) -> bool {
    checks(bytes, page)
}

/// Writes the log of a database to be restored, and what else belongs to it but the tablespaces' pages, which are
/// written before or after. Then `Store::open_upto` recovers it.
pub struct Restore<'a> {
    devices: &'a DeviceSet,
    config: StorageConfig,
    state: Control,
}

impl<'a> Restore<'a> {
    /// `state`: as the backup recorded it.
    pub async fn begin(
        env: &Env,
        devices: &'a DeviceSet,
        config: &StorageConfig,
        state: Control,
    ) -> Result<Restore<'a>> {
        let config =
            StorageConfig { page_size: state.page_size as usize, segment_size: state.segment_size, ..config.clone() };
        let state =
            Control { redo_lsn: state.retain_lsn, complete: true, clean: false, life: 0, durable: Lsn(0), ..state };
        Log::unopened(env.clone(), devices.log.clone(), state.database, &config).format().await?;
        DiskHome::areas(devices, &config, state.database).prepare(WRITERS).await?;
        Ok(Restore { devices, config, state })
    }

    /// Pages of a tablespace's file, at the offset they had.
    pub async fn write(&self, space: SpaceId, offset: u64, bytes: IoBuf) -> Result<()> {
        let device = if space == UNDO { &self.devices.undo } else { &self.devices.data };
        device.write(offset, bytes, purpose(space)).await?;
        Ok(())
    }

    /// A log segment into a slot of the log device; slots and segments in any order.
    pub async fn segment(&self, slot: u32, bytes: &[u8]) -> Result<()> {
        let size = self.config.segment_size as usize;
        assert!(bytes.len() <= size, "a segment of {} bytes", bytes.len());
        let mut whole = IoBuf::zeroed(size);
        whole[..bytes.len()].copy_from_slice(bytes);
        self.devices
            .log
            .write(crate::log::inspect::slot_at(slot, self.config.segment_size), whole, Purpose::Log)
            .await?;
        Ok(())
    }

    /// Everything is written: makes it a database that can be opened.
    pub async fn finish(self) -> Result<()> {
        for (device, purpose) in [
            (&self.devices.data, Purpose::Data),
            (&self.devices.undo, Purpose::Undo),
            (&self.devices.log, Purpose::Log),
        ] {
            device.sync(purpose).await?;
        }
        stamp_all(self.devices, &self.state).await?;
        ControlFile::create(self.devices.control.clone(), self.state).await?;
        Ok(())
    }
}

/// Gives a database that was restored, recovered and closed cleanly an id of its own and an empty log (invariant 4).
/// `objects`: above every object id in its catalogue. Not safe against crashes: its maker counts it as unfinished until
/// then.
pub async fn rebirth(env: &Env, devices: &DeviceSet, config: &StorageConfig, objects: u32) -> Result<()> {
    let old = Control::read(&devices.control).await?;
    assert!(old.clean && old.complete, "only a database at rest changes its id");
    let database = u128::from(env.random_u64()) | u128::from(env.random_u64()) << 64;
    let next_object = old.next_object.max(objects).saturating_add(OBJECTS_APART);
    let end = old.redo_lsn;
    let state = Control { database, retain_lsn: end, durable: end, next_object, logs_frames: false, ..old };
    let config = StorageConfig { page_size: old.page_size as usize, segment_size: old.segment_size, ..config.clone() };
    let log = Log::unopened(env.clone(), devices.log.clone(), database, &config);
    log.format().await?;
    log.begin_empty(state.epoch, state.redo_lsn).await?;
    DiskHome::areas(devices, &config, database).prepare(WRITERS).await?;
    stamp_all(devices, &state).await?;
    if let Some(flash) = &devices.flash {
        identity(&state).stamp(&**flash, Role::Flash).await?; // Its own, of the life before: what it holds is void.
    }
    ControlFile::create(devices.control.clone(), state).await?;
    Ok(())
}

#[cfg(test)]
mod tests;
