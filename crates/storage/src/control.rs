//! The control file: what restart must know before it can read anything else.
//!
//! Two slots of 4 KiB, written in turn, each with a sequence number and a CRC; the newer good one counts. A torn write
//! leaves the other slot, so the file always holds the state before or after. A slot that cannot be read counts as
//! damaged.
//!
//! The newest state may be readable and not durable (its sync failed, and the process began anew). Nothing is lost by
//! believing it: what it says was durable before it was written, and no log is used again before the next state is
//! durable, in the slot of the one before.
//!
//! What a slot holds is declared as [`Slot`], with [`Hint`] behind it. Programs that do not know the hint begin restart
//! at the slot's redo LSN, which is the retain LSN then: that is right, and takes longer (`flash::floors`).

use crate::bytes::{I64, IntoBytes, U32, U64, U128, front, front_mut, layout};
use crate::error::{Result, StorageError};
use crate::head::{self, Head, VERSION, Verdict};
use crate::types::Lsn;
use terrace_device::{DeviceRef, ErrorKind, IoBuf, Purpose, SECTOR};

const MAGIC: u64 = u64::from_le_bytes(*b"TERRACTL");
const COMPLETE: u32 = 1;
const CLEAN: u32 = 2;
/// The version of a slot where the log may have records of the flash tier's frames: programs that do not know them
/// refuse the database.
const WITH_FRAMES: u32 = VERSION + 1;

/// The CRC of the head covers all of this.
const COVERED: usize = size_of::<Slot>();

layout! {
    struct Slot: 112 {
        0 head: Head,
        16 sequence: U64,
        24 database: U128,
        40 epoch: U64,
        48 page_size: U32,
        /// `COMPLETE`, `CLEAN`.
        52 flags: U32,
        56 segment_size: U64,
        /// Where any restart may begin.
        64 redo_lsn: U64,
        72 retain_lsn: U64,
        80 next_object: U32,
        84 zero: U32,
        /// Unix microseconds.
        88 created: I64,
        96 life: U64,
        104 durable: U64,
    }
}

layout! {
    /// Where restart begins if the flash tier is there; zeros: at the slot's redo LSN.
    struct Hint: 16 {
        0 redo_lsn: U64,
        /// CRC-32C of the redo LSN, started from the slot's: a hint of another state does not count.
        8 crc: U32,
        12 zero: U32,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    pub database: u128,
    /// Counts openings; batches of different epochs never mix (log, batch invariant 1).
    pub epoch: u64,
    pub page_size: u32,
    pub segment_size: u64,
    /// Where restart begins if the flash tier is there. Without it: at `retain_lsn`.
    pub redo_lsn: Lsn,
    /// Back to where the log is kept.
    pub retain_lsn: Lsn,
    /// Creation has ended.
    pub complete: bool,
    /// Closed with everything home.
    pub clean: bool,
    /// The log may have records of the flash tier's frames (`flash::logged`).
    pub logs_frames: bool,
    /// No object id from here on was ever given out.
    pub next_object: u32,
    pub created: i64,
    /// Chosen at random by each opening with a flash tier that a restart is to find; 0: an opening without (so it was
    /// written by older programs). A tier's inventory of another life does not count.
    pub life: u64,
    /// The log was durable up to here when this was written; 0: not said (so it was written by older programs).
    pub durable: Lsn,
}

/// The file and the state it last recorded.
pub(crate) struct ControlFile {
    device: DeviceRef,
    sequence: u64,
    pub(crate) state: Control,
}

impl ControlFile {
    /// A file for a database about to be made. Nothing is written yet.
    pub(crate) async fn create(device: DeviceRef, state: Control) -> Result<ControlFile> {
        // Go on behind what an older attempt left, so that the new slot is the newer one.
        let sequence = match Self::read(&device).await {
            Ok(Some((sequence, _))) => sequence,
            _ => 0,
        };
        let mut file = ControlFile { device, sequence, state };
        // Both slots, so that nothing of an overwritten database can come back if one is damaged later.
        file.write(state).await?;
        file.write(state).await?;
        Ok(file)
    }

    pub(crate) async fn open(device: DeviceRef) -> Result<ControlFile> {
        let foreign =
            |problem: &str| StorageError::Foreign { file: device.name().to_string(), problem: problem.to_string() };
        let Some((sequence, state)) = Self::read(&device).await? else {
            return Err(foreign(match device.size() {
                0 => {
                    "the control file is empty: put it back, or restore the database from a backup; where creation of \
                     the database did not finish, create it again"
                }
                _ => {
                    "it is not a control file, or both its copies are damaged: restore the database from a backup; \
                     where creation of the database did not finish, create it again"
                }
            }));
        };
        if !state.complete {
            return Err(foreign("creation of this database did not finish; create it again"));
        }
        Ok(ControlFile { device, sequence, state })
    }

    async fn read(device: &DeviceRef) -> Result<Option<(u64, Control)>> {
        let mut newest = None;
        let mut unknown = None;
        for slot in 0..2 {
            let at = slot * SECTOR as u64;
            if at + SECTOR as u64 > device.size() {
                continue;
            }
            let sector = match device.read(at, IoBuf::zeroed(SECTOR), Purpose::Control).await {
                Err(e) if matches!(e.kind, ErrorKind::Medium(_)) => continue,
                read => read?,
            };
            match decode(&sector) {
                Ok(Some(found)) if newest.is_none_or(|(sequence, _)| sequence < found.0) => newest = Some(found),
                Ok(_) => {}
                Err(version) => unknown = Some(version),
            }
        }
        if let Some(version) = unknown {
            return Err(StorageError::Foreign {
                file: device.name().to_string(),
                problem: head::unknown_version(version),
            });
        }
        Ok(newest)
    }

    /// Records a state durably.
    pub(crate) async fn write(&mut self, state: Control) -> Result<()> {
        assert!(state.redo_lsn >= state.retain_lsn, "the log is kept from the redo LSN on at least");
        self.sequence += 1;
        let slot = self.sequence % 2;
        let buf = encode(self.sequence, &state);
        self.device.write(slot * SECTOR as u64, buf, Purpose::Control).await?;
        self.device.sync(Purpose::Control).await?;
        self.state = state;
        Ok(())
    }
}

fn encode(sequence: u64, state: &Control) -> IoBuf {
    let mut out = IoBuf::zeroed(SECTOR);
    let flags = if state.complete { COMPLETE } else { 0 } | if state.clean { CLEAN } else { 0 };
    *front_mut(&mut out) = Slot {
        head: Head::default(),
        sequence: sequence.into(),
        database: state.database.into(),
        epoch: state.epoch.into(),
        page_size: state.page_size.into(),
        flags: flags.into(),
        segment_size: state.segment_size.into(),
        redo_lsn: state.retain_lsn.0.into(),
        retain_lsn: state.retain_lsn.0.into(),
        next_object: state.next_object.into(),
        zero: U32::ZERO,
        created: state.created.into(),
        life: state.life.into(),
        durable: state.durable.0.into(),
    };
    let version = if state.logs_frames { WITH_FRAMES } else { VERSION };
    head::seal_as(version, &mut out, MAGIC, COVERED);
    if state.redo_lsn > state.retain_lsn {
        let redo_lsn = U64::from(state.redo_lsn.0);
        let hint = Hint { redo_lsn, crc: hint_crc(&out, redo_lsn).into(), zero: U32::ZERO };
        out[COVERED..][..size_of::<Hint>()].copy_from_slice(hint.as_bytes());
    }
    out
}

fn hint_crc(sector: &[u8], redo_lsn: U64) -> u32 {
    let slot: &Slot = front(sector);
    crc32c::crc32c_append(slot.head.crc.get(), redo_lsn.as_bytes())
}

/// The state in a slot; `None` where there is none that checks; an unknown version is an error.
fn decode(sector: &[u8]) -> Result<Option<(u64, Control)>, u32> {
    let verdict = head::look(sector, MAGIC, COVERED);
    match verdict {
        Verdict::Good | Verdict::Unknown(WITH_FRAMES) => {}
        Verdict::Unknown(version) => return Err(version),
        Verdict::Other | Verdict::Damaged => return Ok(None),
    }
    let slot: &Slot = front(sector);
    let hint: &Hint = front(&sector[COVERED..]);
    let hinted = if hint.crc == hint_crc(sector, hint.redo_lsn) { hint.redo_lsn.get() } else { 0 };
    let flags = slot.flags.get();
    let state = Control {
        database: slot.database.get(),
        epoch: slot.epoch.get(),
        page_size: slot.page_size.get(),
        segment_size: slot.segment_size.get(),
        redo_lsn: Lsn(slot.redo_lsn.get().max(hinted)),
        retain_lsn: Lsn(slot.retain_lsn.get()),
        complete: flags & COMPLETE != 0,
        clean: flags & CLEAN != 0,
        logs_frames: verdict == Verdict::Unknown(WITH_FRAMES),
        next_object: slot.next_object.get(),
        created: slot.created.get(),
        life: slot.life.get(),
        durable: Lsn(slot.durable.get()),
    };
    Ok(Some((slot.sequence.get(), state)))
}

impl Control {
    /// Reads the state without opening anything (`terrace inspect`).
    pub async fn read(device: &DeviceRef) -> Result<Control> {
        match ControlFile::read(device).await? {
            Some((_, state)) => Ok(state),
            None => {
                let problem = "it is not a control file, or both its copies are damaged".to_string();
                Err(StorageError::Foreign { file: device.name().to_string(), problem })
            }
        }
    }
}

#[cfg(test)]
mod tests;
