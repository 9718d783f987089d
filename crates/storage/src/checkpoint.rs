//! Indirect checkpoints and the background writer: dirty pages go home by age, a little in each round, so that restart
//! never has more than `redo_bound` bytes of log to repeat and no round has everything to do.
//!
//! Invariants:
//! 1. A redo LSN is computed in this order: the log's end, then the pool's oldest recLSN, then the home's. A page
//!    dirtied later has a recLSN at or above that end (log invariant 4); a page that moves from pool to home in between
//!    is seen in one of them, and one that moves the other way counts at home until the next scan (`begin_scan`;
//!    flash.rs, invariant 4).
//! 2. The redo LSN is recorded only when the log is durable up to it: otherwise restart could begin in a hole.
//! 3. The recorded redo LSN never goes back.

use crate::error::{Result, StorageError};
use crate::home::Reason;
use crate::store::Inner;
use crate::types::Lsn;
use futures::future::{Either, select};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use terrace_env::Nanos;

/// Dirty pages go home within about this many rounds even when nothing presses.
const IDLE_ROUNDS: usize = 300;

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
        let home = self.home.oldest_rec_lsn();
        let redo = pool.into_iter().chain(home).fold(end, Lsn::min);
        let mut next = control.state;
        let floor = self.object_floor();
        if redo <= next.redo_lsn && floor == next.next_object {
            return Ok(());
        }
        next.redo_lsn = next.redo_lsn.max(redo);
        // The flash tier may be gone at a restart: its dirty pages count for both.
        next.retain_lsn = next.redo_lsn;
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
        self.bring_home(self.log.end()).await
    }

    /// Writes home what is dirty with a recLSN < `before`, syncs, records.
    async fn bring_home(&self, before: Lsn) -> Result<()> {
        self.redo_ended().await?;
        self.write_until(before, usize::MAX, Reason::Checkpoint).await?;
        self.home.destage(before).await?;
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

    /// Pages written between two looks at what else is due.
    fn step(&self) -> usize {
        match self.config.sharp_checkpoints {
            true => usize::MAX,
            false => self.config.write_group * crate::home::disk::WRITERS,
        }
    }

    /// Writes pages with recLSN < `before` home until none is left or `most` are written.
    async fn write_until(&self, before: Lsn, most: usize, reason: Reason) -> Result<()> {
        let mut left = most;
        while left > 0 {
            let written = self.pool.write_dirty(before, self.step().min(left), reason).await?;
            if written == 0 {
                break;
            }
            left = left.saturating_sub(written);
        }
        Ok(())
    }

    /// How many pages this round should write: few while the debt is small, all of it as the debt nears three quarters
    /// of the bound.
    fn pace(&self, debt: u64) -> usize {
        let dirty = self.pool.dirty();
        let idle = dirty.div_ceil(IDLE_ROUNDS);
        let x = (debt as f64 / self.config.redo_bound as f64 - 0.25) * 2.0;
        if x <= 0.0 {
            return idle;
        }
        idle.max((dirty as f64 * x.min(1.0).powi(2)).ceil() as usize)
    }

    async fn round(&self, last: &mut Nanos) -> Result<()> {
        if let Some(e) = self.failure() {
            return Err(e);
        }
        let starved = self.log.starved();
        let end = self.log.end();
        let oldest = self.pool.min_rec_lsn().unwrap_or(end);
        let debt = end.0 - oldest.min(end).0;
        let mut left = self.pace(debt);
        // A round may take long, and writers are delayed by the redo LSN that is recorded: it moves on meanwhile.
        while left > 0 {
            let written = self.pool.write_dirty(end, self.step().min(left), Reason::Age).await?;
            if written == 0 {
                break;
            }
            left = left.saturating_sub(written);
            if self.advance() > self.config.redo_bound / 16 {
                self.record(last).await?;
            }
        }
        let due = self.env.now().0 - last.0 >= self.config.checkpoint_interval.as_nanos() as u64;
        // The redo LSN cannot move while pages wait for redo.
        let pressed = (starved || self.log_debt() > self.config.redo_bound / 4 * 3) && self.on_demand.left() == 0;
        if due || pressed || self.advance() > self.config.redo_bound / 16 || self.object_ids_short() {
            self.record(last).await?;
        }
        if starved && self.log.starved() && self.relieve().await? {
            self.log.round_done();
        }
        Ok(())
    }

    /// By how much the redo LSN can move on.
    fn advance(&self) -> u64 {
        if self.on_demand.left() > 0 {
            return 0;
        }
        let oldest =
            self.pool.min_rec_lsn().into_iter().chain(self.flash.oldest_dirty()).fold(self.log.end(), Lsn::min);
        oldest.0.saturating_sub(self.log.redo_lsn().0)
    }

    /// Makes durable what is home, and records how far restart may skip.
    async fn record(&self, last: &mut Nanos) -> Result<()> {
        self.home.sync().await?;
        self.record_redo().await?;
        *last = self.env.now();
        Ok(())
    }

    /// Somebody waits, and a round was not enough: all that is dirty now goes home, the oldest first and in steps, each
    /// of which moves the redo LSN on. Ends when nobody waits any more; answers whether there was no more to do.
    async fn relieve(&self) -> Result<bool> {
        let end = self.log.end();
        let mut before = Lsn(0);
        loop {
            // From where the last step ended, too: a page that is busy may hold the redo LSN.
            let from = self.log.redo_lsn().max(before);
            before = end.min(Lsn(from.0.saturating_add(self.config.redo_bound / RELIEF_STEPS)));
            self.bring_home(before).await?;
            if before == end {
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
        if let Err(e) = inner.round(&mut last).await {
            if !matches!(e, StorageError::ShuttingDown) {
                inner.fail(e);
            }
            return;
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
