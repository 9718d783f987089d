//! Redo by page: the log is read, changes are gathered by page within a budget, and the pages are visited in order of
//! address.
//!
//! ```text
//! reading 1   the whole log from the redo LSN: its end, a point-in-time stop, pages with changes; gathers pages a..k
//! visit       a..k: read in long runs, all changes of a page applied at once, written in long runs
//! reading 2   segments whose index names pages from k on, or pages set aside; gathers k..s; visit; and so on
//! ```
//!
//! What the first reading has gathered need not be visited now: the changes are handed to whoever reads the pages
//! (`on_demand`). The other readings gather and visit the rest.
//!
//! Invariants:
//! 1. A page that is visited becomes dirty, even where its bytes hold every change already (invariant 4 of recovery).
//! 2. If the tier has found frames, the first reading visits no page: before the log's end is known, nobody knows which
//!    of them are good. Nor if redo begins above the retain LSN (invariant 7). Otherwise, while all pages named so far
//!    fit into half the pool they stay there, dirty, and what is gathered is applied whenever the budget is exceeded:
//!    one reading does. Else each is written when it has been visited, so that eviction never writes one here and one
//!    there.
//! 3. A page is visited once in a reading then. A page with very many changes is visited whenever a part of them is
//!    gathered.
//! 4. A batch is gathered only when it is known that it is to be repeated.
//! 5. Changes that a found frame of the flash tier has are not gathered. A page that has no others is not visited: it
//!    stays dirty there, with a recLSN that covers them. Another page begins with the frame's version
//!    (`flash::attach`, invariant 4).
//! 6. Besides the pool, redo takes the budget of changes (a quarter more at most, if some of them wait for a reader),
//!    two segments of the log, the pages of two sweeps on their way, a bit for each page with changes, and next to
//!    nothing more, however long the log is.
//! 7. Where redo begins above the retain LSN, all pages that may lack changes from below wait before the first page is
//!    visited: so each is read as new as it was there (`on_demand`, invariant 6).

use super::gather::{Change, Changes, Gathered, PageSet, Pushed};
use super::sweep::Sweeps;
use super::{OnDemand, Redone, Suspects, repeat};
use crate::backup::Upto;
use crate::config::Safeguard;
use crate::error::{Result, StorageError};
use crate::flash::{FlashHome, Noted, Start};
use crate::log::Log;
use crate::log::batch::{Batch, Block, EVENT};
use crate::log::history::{Visitor, Wanting, show, starts_afresh};
use crate::log::index::SegmentIndex;
use crate::log::reader::SegmentImage;
use crate::mtr::LogEvent;
use crate::page::header;
use crate::pool::{Access, Pool};
use crate::progress::{RecoveryPhase, RecoveryProgress};
use crate::store::RecoveryReport;
use crate::types::*;
use std::sync::Arc;
use terrace_env::Env;

/// Runs of pages being read at once.
const IN_FLIGHT: usize = 16;

/// What redo works with.
pub(crate) struct Tools<'a> {
    pub(crate) env: &'a Env,
    pub(crate) log: &'a Log,
    pub(crate) pool: &'a Arc<Pool>,
    pub(crate) tier: &'a FlashHome,
    pub(crate) progress: &'a RecoveryProgress,
    /// Bytes of changes gathered at a time.
    pub(crate) budget: usize,
    /// Who takes pages that need not be visited now.
    pub(crate) on_demand: Option<&'a OnDemand>,
    /// The log is kept from here on.
    pub(crate) retain: Lsn,
}

/// Repeats history from `start` to the log's end, or as far as `upto` says.
pub(crate) async fn redo(tools: Tools<'_>, start: Start, upto: Upto, report: &mut RecoveryReport) -> Result<Redone> {
    let Start { from, mut lacking } = start;
    let (log, retain) = (tools.log, tools.retain);
    assert!(from == retain || tools.on_demand.is_some(), "invariant 7");
    let visits = !tools.tier.is_finding() && from == retain; // Invariant 2.
    let (suspects, touched) = (Suspects::new(), PageSet::default());
    let mut redo = Redo { tools, from, upto, report, suspects, touched, visits, stopped: false };
    let (mut gathered, end) = redo.read_log().await?;
    for page in redo.tools.tier.end_finding(end) {
        gathered.set_aside(page);
        if from > retain {
            lacking.add_unknown(page, retain);
        }
    }
    (redo.report.lacking, redo.report.redo_from) = (lacking.len() as u64, from);
    redo.report.pages = redo.touched.len();
    redo.tools.progress.enter(RecoveryPhase::Redo, redo.touched.len());
    let mut budget = redo.tools.budget;
    let mut waits = redo.tools.on_demand.map(|on_demand| (on_demand, lacking));
    loop {
        let (left, used) = (gathered.left(), gathered.used());
        if left.is_none() {
            log.end_redo();
        }
        match waits.take() {
            None => redo.visit(gathered.take_all()).await?,
            Some((on_demand, lacking)) => {
                let waiting = redo.visit_resident(gathered.take_all()).await?;
                on_demand.hand_over(waiting, lacking, (retain, end));
                redo.report.pages_waiting = on_demand.left();
                budget = budget.saturating_sub(used).max(budget / 4); // Invariant 6.
            }
        }
        let Some(left) = left else { break };
        redo.visits = true;
        let names_some = |index: &SegmentIndex| match index.pages().any(|(page, _)| left.has(page)) {
            true => Wanting::All,
            false => Wanting::Nothing,
        };
        gathered = Gathered::new(budget, Some(left.clone()));
        let mut reading = Reading { gathered, redo: &mut redo, to: end };
        if !log.walk(from, end, &names_some, &mut reading).await? {
            return Err(StorageError::Damaged("the log has lost a segment while it was read".into()));
        }
        gathered = reading.gathered;
    }
    Ok(Redone { end, suspects: redo.suspects })
}

struct Redo<'a> {
    tools: Tools<'a>,
    from: Lsn,
    upto: Upto,
    report: &'a mut RecoveryReport,
    suspects: Suspects,
    /// Pages that have changes.
    touched: PageSet,
    /// Pages may be visited while the log is read (invariant 2).
    visits: bool,
    /// A batch was met that is beyond `upto`.
    stopped: bool,
}

/// A reading of the log.
struct Reading<'a, 'b> {
    redo: &'a mut Redo<'b>,
    gathered: Gathered,
    to: Lsn,
}

impl Visitor for Reading<'_, '_> {
    async fn batches(&mut self, batches: &[Batch<'_>]) -> Result<()> {
        self.redo.gather(&mut self.gathered, batches, self.to).await
    }
}

impl Redo<'_> {
    /// The first reading. Returns where the log ends, too; behind a stop it is cut.
    async fn read_log(&mut self) -> Result<(Gathered, Lsn)> {
        let (log, env, progress) = (self.tools.log, self.tools.env, self.tools.progress);
        let mut gathered = Gathered::new(self.tools.budget, None);
        log.begin_redo();
        let expected = log.ahead(self.from);
        progress.enter(RecoveryPhase::ReadingLog, expected);
        let mut at = self.from;
        let mut image = match self.from {
            Lsn(0) => log.successor(None, self.from).await?,
            from => log.segment(log.segment_of(from)).await?,
        };
        let guess = Lsn(self.from.0 + expected);
        while let Some(segment) = image.take() {
            let end = self.analyse(&segment, at);
            if self.stopped {
                let mut reading = Reading { redo: &mut *self, gathered, to: guess };
                show(&segment, at, end, &mut reading).await?;
                gathered = reading.gathered;
                // Where the last batch that is repeated ends: in this segment, or in the one before.
                at = at.max(self.report.redo_to);
                log.cut(at);
                break;
            }
            let mut reading = Reading { redo: &mut *self, gathered, to: guess };
            // The next segment is read meanwhile.
            let (next, shown) =
                futures::join!(log.successor(Some(&segment), end), show(&segment, at, end, &mut reading));
            shown?;
            gathered = reading.gathered;
            progress.add(env, end.0.saturating_sub(at.0));
            at = end;
            image = next?;
        }
        Ok((gathered, at))
    }

    /// Notes what a segment's batches from `from` on are, up to a stop. Returns where the last of them that is to be
    /// repeated ends.
    fn analyse(&mut self, segment: &SegmentImage, from: Lsn) -> Lsn {
        let mut end = None;
        for batch in segment.batches(from) {
            let commit = batch.blocks().filter(|b| b.page == EVENT).find_map(|b| LogEvent::decode(b.ops).ok());
            let time = commit.map(|LogEvent::Commit { unix_micros, .. }| unix_micros);
            let wanted = match self.upto {
                Upto::End => true,
                Upto::Time(last) => time.is_none_or(|time| time <= last),
                Upto::Lsn(last) => batch.end <= last,
            };
            if !wanted {
                (self.stopped, self.report.stopped_short) = (true, true);
                return end.unwrap_or(from);
            }
            end = Some(batch.end);
            let report = &mut *self.report;
            (report.last_commit, report.redo_to) = (time.or(report.last_commit), batch.end);
            (report.batches, report.bytes) = (report.batches + 1, report.bytes + (batch.end.0 - batch.start.0));
            for block in batch.blocks().filter(|b| b.page != EVENT) {
                self.touched.insert(block.page);
                let before = (!starts_afresh(block.ops)).then_some(block.prev);
                self.tools.tier.note(block.page, Noted { start: batch.start, end: batch.end, redo: Some(before) });
            }
        }
        end.unwrap_or_else(|| segment.end(from))
    }

    async fn gather(&mut self, gathered: &mut Gathered, batches: &[Batch<'_>], to: Lsn) -> Result<()> {
        for batch in batches {
            for block in batch.blocks() {
                if !self.is_wanted(gathered, batch, &block) {
                    continue;
                }
                match gathered.push(block.page, batch.start, &Change::of(batch, &block)) {
                    Pushed::Fits => {}
                    _ if !self.visits => gathered.make_room(self.part(batch.end, to)),
                    // Invariant 3.
                    Pushed::Hot => {
                        if let Some(changes) = gathered.take(block.page) {
                            self.page(block.page, &changes).await?;
                        }
                    }
                    Pushed::Full if self.pages_stay() => self.visit(gathered.take_all()).await?, // Invariant 2.
                    Pushed::Full => gathered.let_go(self.part(batch.end, to)),
                }
            }
        }
        Ok(())
    }

    /// How much of the log has been read, 0 to 1.
    fn part(&self, at: Lsn, to: Lsn) -> f64 {
        at.0.saturating_sub(self.from.0) as f64 / to.0.saturating_sub(self.from.0).max(1) as f64
    }

    /// Invariant 5.
    fn is_wanted(&self, gathered: &Gathered, batch: &Batch<'_>, block: &Block<'_>) -> bool {
        let page = block.page;
        page != EVENT && gathered.wants(page) && !self.tools.tier.found_with(page, batch.end)
    }

    /// Invariant 2.
    fn pages_stay(&self) -> bool {
        self.touched.len() <= self.tools.pool.frames() as u64 / 2
    }

    /// Brings the pages up to date, in sweeps: the next one is read while one is written.
    async fn visit(&mut self, pages: Vec<(PageId, Changes)>) -> Result<()> {
        let (pool, stay) = (self.tools.pool, self.pages_stay());
        let mut sweeps = Sweeps::new(&pages, pool, self.tools.tier);
        let mut next = sweeps.next();
        if let Some(first) = &next {
            first.read(pool, IN_FLIGHT).await;
        }
        while let Some(sweep) = next {
            next = sweeps.next();
            for (page, changes) in sweep.pages {
                self.page(*page, changes).await?;
            }
            let write = async {
                if stay {
                    sweep.forget_gaps(pool);
                    return Ok(());
                }
                pool.write_all(&sweep.to_write(pool, self.tools.tier)).await
            };
            let read = async {
                if let Some(next) = &next {
                    next.read(pool, IN_FLIGHT).await;
                }
            };
            futures::join!(write, read).0?;
            self.tools.progress.add(self.tools.env, sweep.pages.len() as u64);
        }
        Ok(())
    }

    /// Pages in memory must be as new as the log. Returns the others.
    async fn visit_resident(&mut self, pages: Vec<(PageId, Changes)>) -> Result<Vec<(PageId, Changes)>> {
        let mut absent = Vec::with_capacity(pages.len());
        for (page, changes) in pages {
            match self.tools.pool.get(page) {
                Some(_) => self.page(page, &changes).await?,
                None => absent.push((page, changes)),
            }
        }
        Ok(absent)
    }

    /// Brings one page up to date, or notes that it cannot be.
    async fn page(&mut self, page: PageId, changes: &Changes) -> Result<()> {
        let fresh = changes.starts_afresh();
        if fresh {
            self.suspects.remove(&page);
        } else if self.suspects.contains_key(&page) {
            return Ok(());
        }
        let pool = self.tools.pool;
        let pin = match pool.get(page) {
            Some(pin) => pin,
            None if fresh => {
                self.tools.on_demand.inspect(|on_demand| on_demand.need_nothing(page));
                pool.create(page).await?
            }
            None => match pool.fetch(page, Access::Random).await {
                Ok(pin) => pin,
                // (A lost write is found by who makes a page that waits.)
                Err(e @ (StorageError::BadPage { .. } | StorageError::LostWrite { .. })) => {
                    self.suspects.insert(page, e);
                    return Ok(());
                }
                Err(e) => return Err(e),
            },
        };
        let found = header::lsn(&pin.read());
        let first = changes.iter().find(|change| change.end > found);
        if first.is_none() && !pool.safeguards.has(Safeguard::VisitedPages) {
            return Ok(());
        }
        let chained = pool.safeguards.has(Safeguard::PageChain);
        if let Some(change) = first.filter(|change| chained && !change.starts_afresh() && change.prev != found) {
            let expected = Some(change.prev);
            self.suspects.insert(page, StorageError::LostWrite { page, found, expected });
            return Ok(());
        }
        let mut outcome = Ok(0);
        // Invariant 1.
        pool.redo(&pin, changes.first(), |bytes| outcome = repeat(bytes, page, changes, chained));
        match outcome {
            Err(e @ StorageError::LostWrite { .. }) => drop(self.suspects.insert(page, e)),
            outcome => self.report.pages_redone += outcome?,
        }
        Ok(())
    }
}
