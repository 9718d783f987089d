//! Indirect checkpoints and the background writer: dirty pages go home by age, a little in each round, so that restart
//! never has more than `redo_bound` bytes of log to repeat and no round has everything to do.
//!
//! Two LSNs are computed: the *redo LSN*, where a restart begins to repeat the log, and the *retain LSN*, from where on
//! the log is kept. They differ where the flash tier holds dirty pages that a restart finds there (`flash::floors`).
//!
//! Invariants:
//! 1. They are computed in this order: the log's end, then the pool's oldest recLSN, then the home's. A page dirtied
//!    later has a recLSN at or above that end (log invariant 4); a page that moves from pool to home in between is seen
//!    in one of them, and one that moves the other way counts at home until the next scan (`begin_scan`; flash.rs,
//!    invariant 4).
//! 2. The redo LSN is recorded only when the log is durable up to it: otherwise restart could begin in a hole.
//! 3. The recorded LSNs never go back. The retain LSN is never above the redo LSN.
//! 4. However much is dirty, a round writes a bounded part of it and then records: what writers wait for, a redo LSN
//!    that moves on, never waits for all that is dirty.

mod target;

use crate::error::{Result, StorageError};
use crate::home::Reason;
use crate::home::disk::DATA_WRITERS;
use crate::store::Inner;
use crate::types::Lsn;
use futures::future::{Either, select};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use terrace_env::Nanos;

/// Dirty pages go home within about this many rounds even when nothing presses.
const IDLE_ROUNDS: usize = 300;

/// Groups of pages that a round writes at most before it records the redo LSN (invariant 4). With more to do the next
/// round follows at once. A round of all that was dirty took a slow disk ten seconds.
const ROUND_GROUPS: usize = 4;

/// Pages written early in a round at most.
const ROUND_EARLY: usize = 1024;

/// Where an instant restart would read so much less log, the redo LSN is recorded before its interval is over, but not
/// more often than this: to record it syncs the data device.
const SOON_BYTES: u64 = 4 << 20;
const SOON: Duration = Duration::from_secs(1);

/// Parts of `redo_bound` that go home one after the other while writers wait.
const RELIEF_STEPS: u64 = 8;

/// Checkpoints recorded since opening.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct CheckpointStatus {
    /// Times that the control file learnt a new redo LSN.
    pub count: u64,
    /// When it last did: microseconds since 1970, UTC.
    pub last: Option<i64>,
}

impl Inner {
    /// Records how far restart may skip, if that is further than before.
    pub(crate) async fn record_redo(&self) -> Result<()> {
        let mut control = self.control.lock().await;
        self.home.begin_scan();
        let end = self.log.end();
        let pool = self.pool.min_rec_lsn();
        let redo = pool.into_iter().chain(self.home.oldest_redo()).fold(end, Lsn::min);
        // The flash tier may be gone at a restart.
        let retain = self.home.oldest_rec_lsn().into_iter().fold(redo, Lsn::min);
        let mut next = control.state;
        if redo >= next.redo_lsn {
            self.flash.redo_holds();
        }
        let floor = self.object_floor();
        if redo <= next.redo_lsn && retain <= next.retain_lsn && floor == next.next_object {
            return Ok(());
        }
        let retain = self.flash.stamp(retain).await;
        next.redo_lsn = next.redo_lsn.max(redo);
        next.retain_lsn = next.retain_lsn.max(retain);
        next.next_object = floor;
        self.log.flush_to(next.redo_lsn).await?;
        next.durable = self.log.durable();
        assert!(
            (next.redo_lsn..=self.log.end()).contains(&next.durable),
            "the log is started (log/wait.rs, invariant 1)"
        );
        control.write(next).await?;
        self.log.recorded(next.redo_lsn, next.retain_lsn);
        self.object_limit.store(floor, Ordering::Release);
        let mut done = self.checkpoints.lock();
        done.count += 1;
        done.last = Some(self.env.unix_micros());
        Ok(())
    }

    /// Writes home what is dirty now, syncs, records.
    pub(crate) async fn checkpoint(&self) -> Result<()> {
        let _closed = self.config.sharp_checkpoints.then(|| self.flash.close_to_dirty());
        let end = self.log.end();
        self.bring_home(end, end).await
    }

    /// Writes what memory holds with a recLSN < `before`, brings home what the tier holds with one < `kept`, syncs,
    /// records.
    async fn bring_home(&self, before: Lsn, mut kept: Lsn) -> Result<()> {
        self.redo_ended().await?;
        self.write_until(before, usize::MAX, Reason::Checkpoint).await?;
        if kept < before {
            self.flash.harden().await;
            // It cannot be listed: the device refuses, or has used up its budget.
            if self.flash.oldest_unhard().is_some_and(|unhard| unhard < before) {
                kept = before;
            }
        }
        self.home.destage(kept).await?;
        self.home.sync().await?;
        self.record_redo().await
    }

    /// The redo LSN cannot move before (recovery/on_demand.rs, invariant 2).
    async fn redo_ended(&self) -> Result<()> {
        let stop = || match self.failure() {
            Some(e) => Err(e),
            None if self.is_closing() => Err(StorageError::ShuttingDown),
            None => Ok(()),
        };
        self.on_demand.finished(stop).await
    }

    /// Writes pages with recLSN < `before` home until none is left or `most` are written; answers how many were.
    async fn write_until(&self, before: Lsn, most: usize, reason: Reason) -> Result<usize> {
        let step = match self.config.sharp_checkpoints {
            true => usize::MAX,
            false => self.config.write_group * DATA_WRITERS,
        };
        let mut left = most;
        while left > 0 {
            let written = self.pool.write_dirty(before, step.min(left), reason).await?;
            if written == 0 {
                break;
            }
            left = left.saturating_sub(written);
        }
        Ok(most - left)
    }

    /// How many pages should go home now: few while the debt is small (none if so many went to the tier), all of it as
    /// the debt nears three quarters of the bound, or a restart's estimate three quarters of its target.
    fn pace(&self, debt: u64, early: usize) -> usize {
        let dirty = self.pool.dirty();
        let idle = dirty.div_ceil(IDLE_ROUNDS).saturating_sub(early);
        let full = (debt as f64 / self.config.redo_bound as f64).max(self.of_target());
        let x = (full - 0.25) * 2.0;
        if x <= 0.0 {
            return idle;
        }
        idle.max((dirty as f64 * x.min(1.0).powi(2)).ceil() as usize)
    }

    /// Takes to the tier what is dirty beyond `most_dirty`, the oldest first, as far as it takes that; how many pages.
    async fn write_early(&self) -> Result<usize> {
        match self.pool.dirty().saturating_sub(self.most_dirty()).min(ROUND_EARLY) {
            0 => Ok(0),
            _ if !self.flash.takes_early(0) => Ok(0), // Nobody need look which are the oldest.
            excess => self.pool.write_early(excess, |pages| self.flash.takes_early(pages)).await,
        }
    }

    /// Writes a part of what should go home and records the redo LSN; answers whether the next round is to follow at
    /// once.
    async fn round(&self, last: &mut Nanos) -> Result<bool> {
        if let Some(e) = self.failure() {
            return Err(e);
        }
        let starved = self.log.starved();
        let end = self.log.end();
        let oldest = self.pool.min_rec_lsn().unwrap_or(end);
        let debt = end.0 - oldest.min(end).0;
        let early = self.write_early().await?;
        let wanted = self.pace(debt, early);
        let written = self.write_until(end, wanted.min(ROUND_GROUPS * self.config.write_group), Reason::Age).await?;
        let recorded = self.log.redo_lsn();
        let two = self.flash.has_two_floors();
        let below = if two { self.flash.oldest_unhard() } else { self.flash.oldest_dirty() };
        let waiting = (self.on_demand.left() > 0).then_some(recorded);
        let oldest = self.pool.min_rec_lsn().into_iter().chain(below).chain(waiting).fold(end, Lsn::min);
        let advance = oldest.0.saturating_sub(recorded.0);
        let now = self.env.now();
        let due = now.0 - last.0 >= self.config.checkpoint_interval.as_nanos() as u64;
        let soon = two && advance > SOON_BYTES && now.0 - last.0 >= SOON.as_nanos() as u64;
        // The redo LSN cannot move while pages wait for redo.
        let far = end.0.saturating_sub(recorded.0) > self.config.redo_bound / 4 * 3;
        let pressed = (starved || far || self.is_retention_short()) && waiting.is_none();
        if due || soon || pressed || advance > self.config.redo_bound / 16 || self.object_ids_short() {
            if far {
                self.flash.harden().await;
            }
            self.disk.settle().await?;
            self.record_redo().await?;
            *last = now;
        }
        if starved && self.log.starved() && self.relieve().await? {
            self.log.round_done();
        }
        // One that found nothing to write, because pages are busy, waits for the next interval.
        Ok(written > 0 && written < wanted || early == ROUND_EARLY)
    }

    /// The log is kept back to where it nears its bound.
    fn is_retention_short(&self) -> bool {
        let kept = self.log.end().0.saturating_sub(self.log.retain_lsn().0);
        kept > self.log.retain_bound() / 4 * 3
    }

    /// Somebody waits, and a round was not enough: all that is dirty now goes home, the oldest first and in steps, each
    /// of which moves the redo LSN on, or the retain LSN where the log is short of room. Ends when nobody waits any
    /// more; answers whether there was no more to do.
    async fn relieve(&self) -> Result<bool> {
        let end = self.log.end();
        let (mut before, mut kept) = (Lsn(0), Lsn(0));
        loop {
            // From where the last step ended, too: a page that is busy may hold the redo LSN.
            let from = self.log.redo_lsn().max(before);
            let last = before == end;
            before = end.min(Lsn(from.0.saturating_add(self.config.redo_bound / RELIEF_STEPS)));
            if !self.flash.has_two_floors() {
                kept = before;
            } else if last || self.is_retention_short() {
                let from = self.log.retain_lsn().max(kept);
                kept = end.min(Lsn(from.0.saturating_add(self.log.retain_bound() / RELIEF_STEPS)));
            }
            self.bring_home(before, kept).await?;
            if before == end && kept == end {
                return Ok(true);
            }
            if !self.log.starved() {
                return Ok(false);
            }
        }
    }
}

/// The background writer. Ends with the store.
pub(crate) async fn run(store: Weak<Inner>) {
    let mut last = Nanos(0);
    loop {
        let Some(inner) = store.upgrade() else { return };
        if inner.is_closing() {
            return;
        }
        match inner.round(&mut last).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(StorageError::ShuttingDown) => return,
            Err(e) => return inner.fail(e),
        }
        let (env, log) = (inner.env.clone(), inner.log.clone());
        let interval = inner.config.writer_interval;
        drop::<Arc<Inner>>(inner);
        let pressure = std::pin::pin!(log.pressure());
        match select(pressure, env.sleep(interval)).await {
            Either::Left(_) | Either::Right(_) => {}
        }
    }
}
