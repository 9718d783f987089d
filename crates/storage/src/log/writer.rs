//! The log's writer: one write and one sync for all who wait (group commit), nothing to wait for when idle.
//!
//! It has a thread of its own, which waits for the device itself: between a commit's arrival and its answer no other
//! thread has to be woken.
//!
//! Invariants:
//! 1. One write sequence at a time; each starts at the sector that holds the first new byte and repeats that sector's
//!    older bytes.
//! 2. A segment's seal is written behind its last batches, before the sync that makes them durable.
//! 3. One sync covers less than two segments' worth of batches, so that an opening knows how much may be readable and
//!    not durable (`harden`).

use super::gather::Rhythm;
use super::tail::{Piece, Sealing};
use super::{Core, segment};
use crate::config::Safeguard;
use crate::error::StorageError;
use crate::sync::atomic::Ordering;
use futures::future::try_join_all;
use std::sync::Arc;
use terrace_device::{DeviceError, IoBuf, Purpose, SECTOR};

/// Bytes of one device write.
const CHUNK: usize = 1 << 20;

/// Everything appended up to `end`, as much as one sync may cover.
pub(super) struct Work {
    pub(super) pieces: Vec<Piece>,
    pub(super) end: u64,
    pub(super) bytes: usize,
}

pub(super) async fn run(core: Arc<Core>) {
    // The bytes in front of the next piece in its first sector.
    let mut carry: Vec<u8> = Vec::with_capacity(SECTOR);
    let mut rhythm = Rhythm::default();
    loop {
        core.gather(&mut rhythm).await;
        let Some(mut work) = core.take_work() else {
            if core.is_closing() {
                core.close_waiters();
                return;
            }
            core.wait.wake_writer.notified().await;
            continue;
        };
        let began = core.env.now();
        match write(&core, &work.pieces, &mut carry).await {
            Ok(()) => {
                let took = core.env.now().0.saturating_sub(began.0);
                rhythm.wrote(took, core.now_durable(&mut work));
            }
            Err(e) => {
                core.poison(format!("{}", StorageError::from(e)));
                return;
            }
        }
    }
}

async fn write(core: &Core, pieces: &[Piece], carry: &mut Vec<u8>) -> Result<(), DeviceError> {
    let mut synced = !core.safeguards.has(Safeguard::CommitSync);
    for (number, piece) in pieces.iter().enumerate() {
        let in_sector = (piece.at % SECTOR as u64) as usize;
        let mut bytes = Vec::new();
        let mut at = piece.at - in_sector as u64;
        if let Some(prev_end) = piece.header {
            assert_eq!(piece.at, segment::FIRST, "a segment's header goes out with its first batch");
            bytes.resize(SECTOR, 0);
            let header =
                segment::SegmentHeader { database: core.database, number: piece.number, epoch: piece.epoch, prev_end };
            header.encode(core.geometry, &mut bytes);
            at = 0;
        } else {
            assert_eq!(carry.len(), in_sector, "the writer goes on where it stopped");
            bytes.extend_from_slice(carry);
        }
        bytes.extend_from_slice(&piece.bytes);
        let slot_at = core.geometry.slot_at(piece.slot);
        let is_last = number + 1 == pieces.len() && piece.seal.is_none();
        if is_last && !synced && bytes.len() <= CHUNK {
            let buf = IoBuf::padded(&bytes);
            match core.device.write_and_sync_blocking(slot_at + at, &buf, Purpose::Log) {
                Some(done) => {
                    done?;
                    synced = true;
                }
                None => drop(core.device.write(slot_at + at, buf, Purpose::Log).await?),
            }
            keep(carry, &bytes);
            continue;
        }
        let chunks = bytes.chunks(CHUNK).enumerate();
        let writes = chunks
            .map(|(i, chunk)| core.device.write(slot_at + at + (i * CHUNK) as u64, IoBuf::padded(chunk), Purpose::Log));
        try_join_all(writes).await?;
        carry.clear();
        if let Some(Sealing { end, index }) = &piece.seal {
            let index = index.close(core.geometry.lsn(piece.number, 0));
            let at = slot_at + core.geometry.index_at(index.entries());
            let seal = segment::Seal { number: piece.number, epoch: piece.epoch, end: *end, index };
            core.device.write(at, seal.encode(core.geometry), Purpose::Log).await?;
        } else {
            keep(carry, &bytes);
        }
    }
    if !synced {
        core.device.sync(Purpose::Log).await?;
    }
    Ok(())
}

/// Keeps what the last sector of `bytes` holds (invariant 1).
fn keep(carry: &mut Vec<u8>, bytes: &[u8]) {
    carry.clear();
    carry.extend_from_slice(&bytes[bytes.len() / SECTOR * SECTOR..]);
}

impl Core {
    /// Takes what was appended if somebody waits for it, or enough has gathered.
    fn take_work(&self) -> Option<Work> {
        let mut tail = self.tail.lock();
        let asked = tail.requested > self.wait.durable.load(Ordering::Acquire);
        let starved = self.reserving.waiters.load(Ordering::SeqCst) > 0;
        if !tail.started || tail.unwritten == 0 || !(asked || starved || tail.unwritten >= self.eager()) {
            return None;
        }
        let (mut pieces, mut bytes) = (Vec::new(), 0);
        let enough = self.geometry.segment_size as usize; // Each piece adds a segment's worth at most (invariant 3).
        while bytes < enough {
            let next = tail.sealed.pop_front().or_else(|| (!tail.bytes.is_empty()).then(|| tail.take(None)));
            let Some(piece) = next else { break };
            bytes += piece.bytes.len();
            pieces.push(piece);
        }
        let last = pieces.last().expect("something is unwritten");
        let end = self.geometry.lsn(last.number, last.at + last.bytes.len() as u64).0;
        Some(Work { pieces, end, bytes })
    }
}
