//! The published write policies and replacement orders, what each does, and which go together: one table.
//!
//! Sources: J. Do's thesis, section 3.2.3 (clean-write, dual-write, lazy-cleaning) and section 3.5, which describes
//! Canim et al.'s TAC, Koltsidas & Viglas's inclusive, exclusive and lazy schemes, Holloway's rotating design, and
//! HeteroDrive (Kim et al., IWSSPS 2009; beyond the thesis's one sentence only its abstract was read).

use super::{FlashFifo, FlashLrfu, FlashLru2, FlashReplacement, FlashTemperature};

/// How pages flow between memory, tier and disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WritePolicy {
    /// Dirty pages go to the disk only; the tier holds clean pages.
    CleanWrite,
    /// Dirty pages go to both; the tier's record is made when both writes are done.
    DualWrite,
    /// Dirty pages go to the tier, and from there to the disk in time.
    LazyCleaning,
    /// TAC: pages enter as they are read; one that changes keeps its frame, which is written again when the page goes
    /// to the disk.
    Tac,
    /// Koltsidas & Viglas: what memory holds the tier holds too. Pages enter as they are read, dirty ones are written
    /// to their frame.
    Inclusive,
    /// Koltsidas & Viglas: a page is in memory or in the tier. Pages enter as they leave memory, and leave the tier as
    /// they are read.
    Exclusive,
    /// Koltsidas & Viglas: as lazy-cleaning, but dirty pages go home only when their frames are wanted.
    Lazy,
    /// Holloway: as lazy, with frames given out in turn, so that the device is written sequentially.
    Rotating,
    /// HeteroDrive: changed pages alone enter, one frame after the other; they go home in sweeps over the disk, so that
    /// random writes become sequential ones on both devices.
    HeteroDrive,
}

/// Which frame gives way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlashOrder {
    Lru2,
    /// LRU-2 which keeps the last use of a page that changes in memory, for when it comes back.
    Lru2History,
    Fifo,
    /// TAC: the coldest extent; it also decides which pages are let into a full tier.
    Temperature,
    /// The page wanted least lately, with a history. It also decides which pages are let into a full tier.
    Lrfu,
}

/// Where dirty pages that leave memory go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dirty {
    Disk,
    Both,
    /// To both where the page kept its frame, else to the disk.
    BothIfKept,
    Flash,
}

/// What a write policy does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Pages are let in as they are read from the disk.
    pub at_read: bool,
    /// Clean pages are let in as they leave memory.
    pub at_eviction: bool,
    pub dirty: Dirty,
    /// A page that changes in memory keeps its frame, whose bytes are void until they are written again.
    pub keeps: bool,
    /// A page that is read into memory leaves the tier.
    pub leaves: bool,
    /// λ applies. Else dirty frames are cleaned when they are about to be wanted (or too old for the log).
    pub lambda: bool,
    /// Frames are given out in turn.
    pub rotates: bool,
    /// Frames whose turn comes go home in the order of their pages on the disk, each sweep from where the last one
    /// stopped. Else in the order of their turns.
    pub sweeps: bool,
}

impl WritePolicy {
    pub const ALL: [WritePolicy; 9] = [
        WritePolicy::CleanWrite,
        WritePolicy::DualWrite,
        WritePolicy::LazyCleaning,
        WritePolicy::Tac,
        WritePolicy::Inclusive,
        WritePolicy::Exclusive,
        WritePolicy::Lazy,
        WritePolicy::Rotating,
        WritePolicy::HeteroDrive,
    ];

    /// As in configurations and views.
    pub fn name(self) -> &'static str {
        match self {
            WritePolicy::CleanWrite => "clean-write",
            WritePolicy::DualWrite => "dual-write",
            WritePolicy::LazyCleaning => "lazy-cleaning",
            WritePolicy::Tac => "tac",
            WritePolicy::Inclusive => "inclusive",
            WritePolicy::Exclusive => "exclusive",
            WritePolicy::Lazy => "lazy",
            WritePolicy::Rotating => "rotating",
            WritePolicy::HeteroDrive => "heterodrive",
        }
    }

    pub fn named(name: &str) -> Option<WritePolicy> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }

    pub fn flow(self) -> Flow {
        const EVICTION: Flow = Flow {
            at_read: false,
            at_eviction: true,
            dirty: Dirty::Flash,
            keeps: false,
            leaves: false,
            lambda: false,
            rotates: false,
            sweeps: false,
        };
        const READ: Flow = Flow { at_read: true, at_eviction: false, keeps: true, ..EVICTION };
        match self {
            WritePolicy::CleanWrite => Flow { dirty: Dirty::Disk, ..EVICTION },
            WritePolicy::DualWrite => Flow { dirty: Dirty::Both, ..EVICTION },
            WritePolicy::LazyCleaning => Flow { lambda: true, ..EVICTION },
            WritePolicy::Tac => Flow { dirty: Dirty::BothIfKept, ..READ },
            WritePolicy::Inclusive => READ,
            WritePolicy::Exclusive => Flow { leaves: true, ..EVICTION },
            WritePolicy::Lazy => EVICTION,
            WritePolicy::Rotating => Flow { rotates: true, ..EVICTION },
            WritePolicy::HeteroDrive => Flow { at_eviction: false, rotates: true, sweeps: true, ..EVICTION },
        }
    }

    /// Frames may be newer than the disk.
    pub fn writes_back(self) -> bool {
        self.flow().dirty == Dirty::Flash
    }

    /// A dirty frame may stay while its page changes in memory, and the redo LSN may pass it. Not where pages leave the
    /// tier as they are read, nor where the next frame in turn must be free.
    pub fn dirty_frames_stay(self) -> bool {
        let flow = self.flow();
        self.writes_back() && !flow.leaves && !flow.rotates
    }

    /// The compatibility matrix: why the two do not go together, if they do not.
    pub fn with(self, order: FlashOrder) -> Result<(), String> {
        if !self.flow().rotates || order == FlashOrder::Fifo {
            return Ok(());
        }
        Err(format!(
            "write_policy = \"{}\" gives frames out in turn and leaves nothing to choose: it needs replacement = \
             \"{}\", not \"{}\"",
            self.name(),
            FlashOrder::Fifo.name(),
            order.name()
        ))
    }
}

impl FlashOrder {
    pub const ALL: [FlashOrder; 5] =
        [FlashOrder::Lru2, FlashOrder::Lru2History, FlashOrder::Fifo, FlashOrder::Temperature, FlashOrder::Lrfu];

    /// As in configurations and views.
    pub fn name(self) -> &'static str {
        match self {
            FlashOrder::Lru2 => "lru2",
            FlashOrder::Lru2History => "lru2-history",
            FlashOrder::Fifo => "fifo",
            FlashOrder::Temperature => "temperature",
            FlashOrder::Lrfu => "lrfu",
        }
    }

    pub fn named(name: &str) -> Option<FlashOrder> {
        Self::ALL.into_iter().find(|order| order.name() == name)
    }

    /// An order over frames `0..capacity`.
    pub fn make(self, capacity: usize) -> Box<dyn FlashReplacement> {
        match self {
            FlashOrder::Lru2 => Box::new(FlashLru2::new(capacity)),
            FlashOrder::Lru2History => Box::new(FlashLru2::with_history(capacity)),
            FlashOrder::Fifo => Box::new(FlashFifo::new(capacity)),
            FlashOrder::Temperature => Box::new(FlashTemperature::new(capacity)),
            FlashOrder::Lrfu => Box::new(FlashLrfu::new(capacity)),
        }
    }

    /// Bytes of memory that the order takes for each frame.
    pub fn frame_bytes(self) -> usize {
        match self {
            FlashOrder::Lru2 => FlashLru2::FRAME_BYTES,
            FlashOrder::Lru2History => FlashLru2::FRAME_BYTES + FlashLru2::HISTORY_BYTES,
            FlashOrder::Fifo => FlashFifo::FRAME_BYTES,
            FlashOrder::Temperature => FlashTemperature::FRAME_BYTES,
            FlashOrder::Lrfu => FlashLrfu::FRAME_BYTES,
        }
    }

    /// Bytes of memory for each extent of [`FlashTemperature::EXTENT`] pages that it knows, and how many extents it
    /// knows at most for each frame.
    pub fn extent_bytes(self) -> (usize, usize) {
        match self {
            FlashOrder::Temperature => (FlashTemperature::EXTENT_BYTES, 1),
            _ => (0, 0),
        }
    }
}
