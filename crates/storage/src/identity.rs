//! What every device of a database carries in its first sector: whose it is, which part it plays, and in which life it was last
//! opened. A mixed set of files is refused instead of repaired into nonsense.
//!
//! ```text
//!  0 magic, version, CRC of 16..64 (head.rs)
//! 16 u128 database id   32 u64 epoch   40 u32 role   44 u32 page size   48 u64 segment size
//! ```
//!
//! Invariants:
//! 1. All of it lies in the first 512 bytes, which devices write whole or not at all: rewriting it at each opening is safe.
//! 2. Opening writes the new epoch to all devices, syncs, and then to the control file. So a device's epoch is the control file's, or
//!    one more where a crash fell between; anything else is a file from another time.
//! 3. The double-write device alone may be gone, or its sector damaged: it is made anew, for what it held is needed only by pages that a
//!    crash tore, and these are found out by their checksums and made again from the log, or refused by name. A whole file of
//!    something else is never written over.

use crate::error::{Result, StorageError};
use crate::head::{self, Head};
use crate::log::batch::{u32_at, u64_at};
use terrace_device::{Device, ErrorKind, IoBuf, Purpose, SECTOR};

const MAGIC: u64 = u64::from_le_bytes(*b"TERRADEV");
/// End of what the CRC covers.
const COVERED: usize = 64;

/// The part a device plays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Log = 1,
    DoubleWrite = 2,
    Data = 3,
    Undo = 4,
    Flash = 5,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub(crate) database: u128,
    pub(crate) epoch: u64,
    pub(crate) page_size: u32,
    pub(crate) segment_size: u64,
}

impl Role {
    fn purpose(self) -> Purpose {
        match self {
            Role::Log => Purpose::Log,
            Role::DoubleWrite => Purpose::DoubleWrite,
            Role::Data => Purpose::Data,
            Role::Undo => Purpose::Undo,
            Role::Flash => Purpose::Flash,
        }
    }
    fn name(number: u32) -> &'static str {
        match number {
            1 => "log",
            2 => "double-write",
            3 => "data",
            4 => "undo",
            5 => "flash",
            _ => "unknown",
        }
    }
}

impl Identity {
    fn encode(&self, role: Role) -> IoBuf {
        let mut out = IoBuf::zeroed(SECTOR);
        out[16..32].copy_from_slice(&self.database.to_le_bytes());
        out[32..40].copy_from_slice(&self.epoch.to_le_bytes());
        out[40..44].copy_from_slice(&(role as u32).to_le_bytes());
        out[44..48].copy_from_slice(&self.page_size.to_le_bytes());
        out[48..56].copy_from_slice(&self.segment_size.to_le_bytes());
        head::seal(&mut out, MAGIC, COVERED);
        out
    }

    /// Writes the first sector and syncs.
    pub(crate) async fn stamp(&self, device: &dyn Device, role: Role) -> Result<()> {
        device.write(0, self.encode(role), role.purpose()).await?;
        device.sync(role.purpose()).await?;
        Ok(())
    }

    /// The database that a sector of identity names; `None` where it is none, or damaged.
    pub(crate) fn owner(sector: &[u8]) -> Option<u128> {
        let whose = u128::from(u64_at(sector, 16)?) | u128::from(u64_at(sector, 24)?) << 64;
        matches!(head::look(sector, MAGIC, COVERED), Head::Good | Head::Unknown(_)).then_some(whose)
    }

    /// Whether the sector of identity is gone, and nothing speaks of another owner (invariant 3).
    pub(crate) async fn is_lost(device: &dyn Device, role: Role) -> Result<bool> {
        if device.size() < SECTOR as u64 {
            return Ok(true);
        }
        match device.read(0, IoBuf::zeroed(SECTOR), role.purpose()).await {
            Ok(sector) => {
                let blank = sector.iter().all(|byte| *byte == 0);
                Ok(blank || head::look(&sector, MAGIC, COVERED) == Head::Damaged)
            }
            Err(e) if matches!(e.kind, ErrorKind::Medium(_)) => Ok(true),
            Err(e) => Err(e.into()),
        }
    }

    /// The database that a device's sector of identity names.
    pub(crate) async fn owner_of(device: &dyn Device, role: Role) -> Result<Option<u128>> {
        Ok(Self::owner(&device.read(0, IoBuf::zeroed(SECTOR), role.purpose()).await?))
    }

    /// Refuses a device that is not this database's, or not of this time (invariant 2).
    pub(crate) async fn check(&self, device: &dyn Device, role: Role) -> Result<()> {
        let foreign = |problem: String| StorageError::Foreign { file: device.name().to_string(), problem };
        if device.size() < SECTOR as u64 {
            return Err(foreign("it is empty; restore it from a backup with the rest of the database".into()));
        }
        let sector = match device.read(0, IoBuf::zeroed(SECTOR), role.purpose()).await {
            Err(e) if matches!(e.kind, ErrorKind::Medium(_)) => {
                return Err(foreign(format!("its first sector cannot be read ({e}); restore it from a backup")));
            }
            read => read?,
        };
        let field = |at| u64_at(&sector, at).expect("a whole sector");
        let short = |at| u32_at(&sector, at).expect("a whole sector");
        match head::look(&sector, MAGIC, COVERED) {
            Head::Good => {}
            Head::Other => {
                let way_out = match role {
                    Role::DoubleWrite => "move it away, and it is made anew",
                    _ => "correct the configuration, or restore it from a backup",
                };
                return Err(foreign(format!("it is not a terrace file, or its first sector is damaged; {way_out}")));
            }
            Head::Damaged => return Err(foreign("its first sector is damaged; restore it from a backup".into())),
            Head::Unknown(version) => return Err(foreign(head::unknown_version(version))),
        }
        let database = u128::from(field(16)) | u128::from(field(24)) << 64;
        if database != self.database {
            let (found, expected) = (database, self.database);
            return Err(foreign(format!(
                "it belongs to database {found:032x}, the control file to {expected:032x}; bring the files of one database together"
            )));
        }
        if short(40) != role as u32 {
            let (found, expected) = (Role::name(short(40)), Role::name(role as u32));
            return Err(foreign(format!(
                "it is the {found} file, configured as the {expected} file; correct the configuration"
            )));
        }
        let epoch = field(32);
        if epoch != self.epoch && epoch != self.epoch + 1 {
            return Err(foreign(format!(
                "it was last opened in epoch {epoch}, the control file in epoch {}: the files are copies from different times; \
                 restore them together",
                self.epoch
            )));
        }
        Ok(())
    }
}
