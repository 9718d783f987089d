//! What every device of a database carries in its first sector: its database, its role, and the life in which it was
//! last opened. A mixed set of files is refused; otherwise recovery would make nonsense of it.
//!
//! The sector is declared as [`Sector`].
//!
//! Invariants:
//! 1. All of it lies in the first 512 bytes, which devices write whole or not at all. So it is safe to rewrite it at
//!    each opening.
//! 2. Opening writes the new epoch to all devices, syncs them, and then writes it to the control file. So a device's
//!    epoch is the control file's, or one more if a crash fell in between. Anything else is a file from another time.
//! 3. Only the double-write device may be gone, or its sector damaged. It is made anew: its copies are needed only for
//!    pages that a crash tore. Those are found by their checksums and made again from the log, or refused by name. A
//!    whole file of something else is never overwritten.

use crate::bytes::{U32, U64, U128, front, front_mut, layout};
use crate::error::{Result, StorageError};
use crate::head::{self, Head, Verdict};
use terrace_device::{Device, ErrorKind, IoBuf, Purpose, SECTOR};

const MAGIC: u64 = u64::from_le_bytes(*b"TERRADEV");
/// The CRC of the head covers all of this.
const COVERED: usize = size_of::<Sector>();

layout! {
    struct Sector: 64 {
        0 head: Head,
        16 database: U128,
        32 epoch: U64,
        40 role: U32,
        44 page_size: U32,
        48 segment_size: U64,
        56 zeros: [u8; 8],
    }
}

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
        *front_mut(&mut out) = Sector {
            head: Head::default(),
            database: self.database.into(),
            epoch: self.epoch.into(),
            role: (role as u32).into(),
            page_size: self.page_size.into(),
            segment_size: self.segment_size.into(),
            zeros: [0; 8],
        };
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
        let names_owner = matches!(head::look(sector, MAGIC, COVERED), Verdict::Good | Verdict::Unknown(_));
        names_owner.then(|| front::<Sector>(sector).database.get())
    }

    /// Whether the sector of identity is gone, and nothing speaks of another owner (invariant 3).
    pub(crate) async fn is_lost(device: &dyn Device, role: Role) -> Result<bool> {
        if device.size() < SECTOR as u64 {
            return Ok(true);
        }
        match device.read(0, IoBuf::zeroed(SECTOR), role.purpose()).await {
            Ok(sector) => {
                let blank = sector.iter().all(|byte| *byte == 0);
                Ok(blank || head::look(&sector, MAGIC, COVERED) == Verdict::Damaged)
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
        match head::look(&sector, MAGIC, COVERED) {
            Verdict::Good => {}
            Verdict::Other => {
                let way_out = match role {
                    Role::DoubleWrite => "move it away, and it is made anew",
                    _ => "correct the configuration, or restore it from a backup",
                };
                return Err(foreign(format!("it is not a terrace file, or its first sector is damaged; {way_out}")));
            }
            Verdict::Damaged => return Err(foreign("its first sector is damaged; restore it from a backup".into())),
            Verdict::Unknown(version) => return Err(foreign(head::unknown_version(version))),
        }
        let found: &Sector = front(&sector);
        let database = found.database.get();
        if database != self.database {
            let (found, expected) = (database, self.database);
            return Err(foreign(format!(
                "it belongs to database {found:032x}, the control file to {expected:032x}; bring the files of one \
                 database together"
            )));
        }
        if found.role != role as u32 {
            let (found, expected) = (Role::name(found.role.get()), Role::name(role as u32));
            return Err(foreign(format!(
                "it is the {found} file, configured as the {expected} file; correct the configuration"
            )));
        }
        let epoch = found.epoch.get();
        if epoch != self.epoch && epoch != self.epoch + 1 {
            return Err(foreign(format!(
                "it was last opened in epoch {epoch}, the control file in epoch {}: the files are copies from \
                 different times; restore them together",
                self.epoch
            )));
        }
        Ok(())
    }
}
