//! The two floors of the log: where a restart begins to repeat it (the redo LSN), and from where on it is kept (the
//! retain LSN). The redo LSN passes a dirty frame whose page a restart will find; the retain LSN never does.
//!
//! ```text
//!   ...... | retain LSN ............... | redo LSN .................... end
//!          | dirty frames' changes      | changes that are in memory only
//!          | the restart reads indexes  | the restart reads all
//! ```
//!
//! Source: J. Do, *The Role of Flash Memory in Database Management Systems*, section 4.3.1 (one floor over both tiers,
//! so that the tier can be thrown away at any time); the second floor is ours.
//!
//! Invariants:
//! 1. Every change below the recorded retain LSN is durable on the disk. The retain LSN counts all recLSNs: of memory,
//!    of dirty frames, those that rise, those on their way to the disk.
//! 2. *The redo LSN is a hint.* An opening believes it only for pages of which it finds a version in the tier, or on
//!    the disk, that is as new as the log's indexes from the retain LSN on say (`attach`, invariants 2 and 6). So
//!    nothing is lost where the tier lies, is gone, or is an older one: what is missing is repeated from the retain LSN
//!    on.
//! 3. For that to be rare, the redo LSN passes a change only when it is durable on the disk, or when its page's frame
//!    is written, listed, and both are synced ([`Unhard`]). And a dirty frame stays when its page changes in memory: it
//!    is the version with which the page's later changes begin. It still counts for the retain LSN, may go home as any
//!    other, and becomes void when the page is written next. So a page in memory has one recLSN: since when all levels
//!    below lack changes.
//! 4. A pass names all frames that were written before it began, in inventory or `journal`, and syncs that. A page
//!    enters `fresh` before the pool lets go of it (invariant 3 of the tier), and leaves `passing` after the sync.
//! 5. After an opening the recorded redo LSN may lie above changes that pages still lack: they wait, or are dirty in
//!    memory with an older recLSN. Until a checkpoint finds none of them, the inventory holds for what lies below the
//!    retain LSN that the opening found (`inventory`, invariant 1).
//!
//! There is one floor (the redo LSN waits for dirty frames) where a restart would not find the frames or would visit
//! all pages before it opens (`restart` is not `instant`), while the tier fails or is switched off, and with write
//! policies that need a changed page's frame at once (`WritePolicy::dirty_frames_stay`).

use super::FlashHome;
use crate::config::{Restart, Safeguard};
use crate::sync::atomic::Ordering;
use crate::types::Lsn;

/// The smallest redo LSNs of pages that were written to frames and would not be found there after a crash: since the
/// last pass began, and those that it is about.
#[derive(Default)]
pub(super) struct Unhard {
    fresh: Option<Lsn>,
    passing: Option<Lsn>,
}

impl FlashHome {
    /// The redo LSN passes dirty frames.
    pub(crate) fn has_two_floors(&self) -> bool {
        let running = self.running.read();
        self.is_on()
            && self.life.load(Ordering::Acquire) != 0
            && running.config.restart == Restart::Instant
            && running.config.write.dirty_frames_stay()
    }

    /// A frame has been written with changes from `redo` on.
    pub(super) fn note_unhard(&self, redo: Lsn) {
        let mut unhard = self.unhard.lock();
        unhard.fresh = Some(unhard.fresh.map_or(redo, |fresh| fresh.min(redo)));
    }

    /// Since when frames have changes that a restart would not find there. What has gone home meanwhile does not count:
    /// none of them are older than the oldest dirty frame.
    pub(crate) fn oldest_unhard(&self) -> Option<Lsn> {
        let unhard = {
            let unhard = self.unhard.lock();
            unhard.fresh.into_iter().chain(unhard.passing).min()?
        };
        self.oldest_dirty().map(|oldest| oldest.max(unhard))
    }

    /// Invariant 4: a pass begins, over all that was written by now.
    pub(super) fn begin_pass(&self) {
        let mut unhard = self.unhard.lock();
        let fresh = unhard.fresh.take();
        unhard.passing = unhard.passing.into_iter().chain(fresh).min();
    }

    pub(super) fn end_pass(&self) {
        self.unhard.lock().passing = None;
    }

    /// Names and syncs all that has been written by now, at once: somebody waits for the redo LSN. (What fails counts
    /// on; the redo LSN then waits for the next pass.)
    pub(crate) async fn harden(&self) {
        let mut keeping = self.keeping.lock().await;
        if self.has_two_floors() && self.oldest_unhard().is_some() {
            self.journal_pass(&mut keeping).await;
        }
    }

    /// An opening found this retain LSN, and pages may lack changes from there on (invariant 5).
    pub(crate) fn begin_above(&self, retain: Lsn) {
        *self.listed_for.lock() = Some(retain);
    }

    /// No page in memory lacks a change below the recorded redo LSN (invariant 5).
    pub(crate) fn redo_holds(&self) {
        *self.listed_for.lock() = None;
    }

    /// What a sector that is written now holds for.
    pub(super) fn since(&self) -> Lsn {
        let recorded = self.log.redo_lsn();
        let lower = self.listed_for.lock().filter(|_| self.safeguards.has(Safeguard::ListedAbove));
        lower.map_or(recorded, |retain| retain.min(recorded))
    }
}
