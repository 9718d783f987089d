//! Redo by page: the log is read, changes are gathered by page within a budget, and the pages are visited in order of
//! address.
//!
//! ```text
//! reading 1   the whole log from the redo LSN: its end, a point-in-time stop, pages with changes; gathers pages a..k
//! visit       a..k: read in long runs, all changes of a page applied at once, written in long runs
//! reading 2   segments whose index names pages from k on; gathers k..s; visit; and so on
//! ```
//!
//! Invariants:
//! 1. A page that is visited becomes dirty, even where its bytes hold every change already (invariant 4 of recovery).
//! 2. While all pages named so far fit into half the pool they stay there, dirty, and what is gathered is applied
//!    whenever the budget is exceeded: one reading does. Else each is written when it has been visited, so that
//!    eviction never writes one here and one there.
//! 3. A page is visited once in a reading then. A page with very many changes is visited whenever a part of them is
//!    gathered.
//! 4. A batch is gathered only when it is known that it is to be repeated.
//! 5. A page is not visited if the flash tier has it in its newest version and memory does not have it
//!    (`flash::attach`). That is known when the first reading has ended. It stays dirty there, with a recLSN that
//!    covers its changes.

use super::gather::{Change, Changes, Gathered, PageSet, Pushed};
use super::{Redone, Suspects, follow};
use crate::backup::Upto;
use crate::config::Safeguard;
use crate::error::{Result, StorageError};
use crate::flash::FlashHome;
use crate::log::Log;
use crate::log::batch::{Batch, EVENT};
use crate::log::history::{Index, Visitor};
use crate::mtr::LogEvent;
use crate::page::header;
use crate::pool::{Access, Pool};
use crate::progress::{RecoveryPhase, RecoveryProgress};
use crate::store::RecoveryReport;
use crate::types::*;
use futures::StreamExt;
use std::sync::Arc;
use terrace_env::Env;

/// Runs of pages being read at once.
const IN_FLIGHT: usize = 16;
/// The longest run read in one, and the pages of one sweep, in bytes.
const RUN_BYTES: usize = 2 << 20;
const SWEEP_BYTES: usize = 16 << 20;
/// Bytes between two pages that are read, or written, along rather than asked for apart: a slow disk moves
/// more than that in the time of a request, a fast one about as much.
const GAP_BYTES: usize = 128 << 10;
const WRITE_GAP_BYTES: usize = 64 << 10;

/// What redo works with.
pub(crate) struct Tools<'a> {
    pub(crate) env: &'a Env,
    pub(crate) log: &'a Log,
    pub(crate) pool: &'a Arc<Pool>,
    pub(crate) tier: &'a FlashHome,
    pub(crate) progress: &'a RecoveryProgress,
    /// Bytes of changes gathered at a time.
    pub(crate) budget: usize,
}

/// Repeats history from `from` to the log's end, or as far as `upto` says.
pub(crate) async fn redo(tools: Tools<'_>, from: Lsn, upto: Upto, report: &mut RecoveryReport) -> Result<Redone> {
    let log = tools.log;
    let mut redo = Redo {
        tools,
        from,
        upto,
        report,
        suspects: Suspects::new(),
        touched: PageSet::default(),
        stopped: false,
        reading: true,
    };
    let (mut gathered, end) = redo.read_log().await?;
    redo.tools.tier.end_finding(end);
    redo.tools.progress.enter(RecoveryPhase::Redo, redo.touched.len());
    redo.reading = false;
    loop {
        let beyond = gathered.beyond();
        redo.visit(gathered.take_all()).await?;
        let Some(next) = beyond else { break };
        let mut reading = Reading { gathered: Gathered::new(redo.tools.budget, Some(next)), redo: &mut redo, to: end };
        let wanted = |index: Index<'_>| index.last().is_some_and(|(page, _)| *page >= next);
        if !log.walk(from, end, &wanted, &mut reading).await? {
            return Err(StorageError::Damaged("the log has lost a segment while it was read".into()));
        }
        gathered = reading.gathered;
    }
    redo.leave_suspects().await;
    let unread = redo.tools.tier.unconfirmed();
    assert!(unread.is_empty(), "redo has left {} pages to frames that it has not read", unread.len());
    redo.report.pages = redo.touched.len();
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
    /// A batch was met that is beyond `upto`.
    stopped: bool,
    /// It is the log that the progress counts.
    reading: bool,
}

/// A reading of the log after the first.
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
        let expected = log.ahead(self.from);
        progress.enter(RecoveryPhase::ReadingLog, expected);
        let mut at = self.from;
        let mut image = match self.from {
            Lsn(0) => log.successor(None, self.from).await?,
            from => log.segment(log.segment_of(from)).await?,
        };
        while let Some(segment) = image.take() {
            let mut batches: Vec<Batch<'_>> = segment.batches(at).collect();
            let end = batches.last().map_or_else(|| segment.end(at), |b| b.end);
            batches.truncate(self.analyse(&batches));
            let guess = Lsn(self.from.0 + expected);
            if self.stopped {
                self.gather(&mut gathered, &batches, guess).await?;
                // Where the last batch that is repeated ends: in this segment, or in the one before.
                at = at.max(self.report.redo_to);
                log.cut(at);
                break;
            }
            // The next segment is read meanwhile.
            let gather = self.gather(&mut gathered, &batches, guess);
            let (next, done) = futures::join!(log.successor(Some(&segment), end), gather);
            done?;
            progress.add(env, end.0.saturating_sub(at.0));
            at = end;
            image = next?;
        }
        Ok((gathered, at))
    }

    /// How many of the batches are to be repeated; notes what they are.
    fn analyse(&mut self, batches: &[Batch<'_>]) -> usize {
        for (i, batch) in batches.iter().enumerate() {
            let commit = batch.blocks().filter(|b| b.page == EVENT).find_map(|b| LogEvent::decode(b.ops).ok());
            let time = commit.map(|LogEvent::Commit { unix_micros, .. }| unix_micros);
            let wanted = match self.upto {
                Upto::End => true,
                Upto::Time(last) => time.is_none_or(|time| time <= last),
                Upto::Lsn(last) => batch.end <= last,
            };
            if !wanted {
                (self.stopped, self.report.stopped_short) = (true, true);
                return i;
            }
            let report = &mut *self.report;
            (report.last_commit, report.redo_to) = (time.or(report.last_commit), batch.end);
            (report.batches, report.bytes) = (report.batches + 1, report.bytes + (batch.end.0 - batch.start.0));
            for block in batch.blocks().filter(|b| b.page != EVENT) {
                self.touched.insert(block.page);
                self.tools.tier.note(block.page, (batch.start, batch.end), true);
            }
        }
        batches.len()
    }

    async fn gather(&mut self, gathered: &mut Gathered, batches: &[Batch<'_>], to: Lsn) -> Result<()> {
        let length = to.0.saturating_sub(self.from.0).max(1) as f64;
        for batch in batches {
            for block in batch.blocks().filter(|b| b.page != EVENT) {
                if !gathered.wants(block.page) {
                    continue;
                }
                match gathered.push(block.page, batch.start, &Change::of(batch, &block)) {
                    Pushed::Fits => {}
                    // Invariant 3.
                    Pushed::Hot => {
                        if let Some(changes) = gathered.take(block.page) {
                            self.page(block.page, &changes).await?;
                        }
                    }
                    Pushed::Full if self.pages_stay() => self.visit(gathered.take_all()).await?, // Invariant 2.
                    Pushed::Full => gathered.let_go(batch.end.0.saturating_sub(self.from.0) as f64 / length),
                }
            }
        }
        Ok(())
    }

    /// Invariant 2.
    fn pages_stay(&self) -> bool {
        self.touched.len() <= self.tools.pool.frames() as u64 / 2
    }

    /// Brings the pages up to date, in sweeps: the next one is read while one is written.
    async fn visit(&mut self, pages: Vec<(PageId, Changes)>) -> Result<()> {
        let pages = self.leave_to_tier(pages).await;
        let (pool, stay) = (self.tools.pool, self.pages_stay());
        let mut sweeps = Sweeps::new(&pages, pool);
        let mut next = sweeps.next();
        if let Some(first) = &next {
            first.read(pool).await;
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
                pool.write_all(&sweep.to_write(pool)).await
            };
            let read = async {
                if let Some(next) = &next {
                    next.read(pool).await;
                }
            };
            futures::join!(write, read).0?;
            if !self.reading {
                self.tools.progress.add(self.tools.env, sweep.pages.len() as u64);
            }
        }
        Ok(())
    }

    /// Pages that the tier has in their newest version stay there, dirty (invariant 5). Returns the others.
    async fn leave_to_tier(&mut self, mut pages: Vec<(PageId, Changes)>) -> Vec<(PageId, Changes)> {
        let pool = self.tools.pool;
        let absent = |page: &PageId| pool.get(*page).is_none() || !pool.safeguards.has(Safeguard::InMemory);
        let asked = pages.iter().map(|(page, _)| *page).filter(absent);
        let left = self.tools.tier.confirm(asked).await;
        if !left.is_empty() {
            let before = pages.len();
            pages.retain(|(page, _)| !left.contains(page));
            self.suspects.retain(|page, _| !left.contains(page));
            self.left_in_tier((before - pages.len()) as u64);
        }
        pages
    }

    /// The same for one page, which memory does not have.
    async fn tier_has(&mut self, page: PageId) -> bool {
        let has = !self.tools.tier.confirm(std::iter::once(page)).await.is_empty();
        if has {
            self.suspects.remove(&page);
        }
        has
    }

    fn left_in_tier(&mut self, count: u64) {
        self.report.pages_left_in_tier += count;
        self.tools.progress.add(self.tools.env, count);
    }

    /// The same for pages that the disk has not got as the log expects them.
    async fn leave_suspects(&mut self) {
        let pool = self.tools.pool;
        let absent = |page: &PageId| {
            pool.drop_clean(*page); // What could not be followed is of no use.
            pool.get(*page).is_none()
        };
        let left = self.tools.tier.confirm(self.suspects.keys().copied().filter(absent)).await;
        self.suspects.retain(|page, _| !left.contains(page));
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
            None if self.tier_has(page).await => return Ok(()),
            None if fresh => pool.create(page).await?,
            None => match pool.fetch(page, Access::Random).await {
                Ok(pin) => pin,
                Err(e @ StorageError::BadPage { .. }) => {
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
            self.suspects.insert(page, StorageError::LostWrite { page, found, expected: change.prev });
            return Ok(());
        }
        let mut outcome = Ok(());
        let report = &mut *self.report;
        // Invariant 1.
        pool.redo(&pin, changes.first(), |bytes| {
            outcome = changes.iter().try_for_each(|change| {
                report.pages_redone += u64::from(follow(bytes, page, &change, chained)?);
                Ok(())
            });
        });
        match outcome {
            Err(e @ StorageError::LostWrite { .. }) => {
                self.suspects.insert(page, e);
                Ok(())
            }
            outcome => outcome,
        }
    }
}

/// Pages that are visited together, and the runs in which they are read.
struct Sweep<'a> {
    pages: &'a [(PageId, Changes)],
    runs: Vec<(PageId, u32)>,
    page_size: usize,
}

/// Cuts pages, in order of address, into sweeps that a quarter of the pool holds.
struct Sweeps<'a> {
    rest: &'a [(PageId, Changes)],
    /// Pages read in a sweep, in a run, and along between two pages, at most.
    room: usize,
    run: usize,
    gap: usize,
    page_size: usize,
}

impl<'a> Sweeps<'a> {
    fn new(pages: &'a [(PageId, Changes)], pool: &Pool) -> Sweeps<'a> {
        let page_size = pool.page_size();
        let room = (pool.frames() / 4).clamp(1, SWEEP_BYTES / page_size);
        Sweeps { rest: pages, room, run: (RUN_BYTES / page_size).min(room), gap: GAP_BYTES / page_size, page_size }
    }
}

impl<'a> Iterator for Sweeps<'a> {
    type Item = Sweep<'a>;

    fn next(&mut self) -> Option<Sweep<'a>> {
        let mut runs: Vec<(PageId, u32)> = Vec::new();
        let (mut count, mut held) = (0, 0);
        for (page, changes) in self.rest {
            let mut more = 1;
            if !changes.starts_afresh() {
                let run = runs.last_mut().filter(|(first, _)| first.space == page.space);
                let longer = run.map(|run| ((page.no - run.0.no) as usize + 1, run));
                match longer {
                    Some((length, run)) if length <= self.run && length - run.1 as usize <= self.gap + 1 => {
                        more = length - run.1 as usize;
                        if held + more <= self.room {
                            run.1 = length as u32;
                        }
                    }
                    _ if held < self.room => runs.push((*page, 1)),
                    _ => {}
                }
            }
            if held + more > self.room {
                break;
            }
            (count, held) = (count + 1, held + more);
        }
        let (pages, rest) = self.rest.split_at(count);
        self.rest = rest;
        (count > 0).then_some(Sweep { pages, runs, page_size: self.page_size })
    }
}

impl Sweep<'_> {
    async fn read(&self, pool: &Pool) {
        futures::stream::iter(&self.runs)
            .for_each_concurrent(IN_FLIGHT, |&(first, count)| async move {
                match count {
                    // A failure shows again where it can be dealt with.
                    1 => drop(pool.fetch(first, Access::Random).await),
                    _ => pool.prefetch(first.space, first.no, count).await,
                }
            })
            .await;
    }

    fn visits(&self, page: PageId) -> bool {
        self.pages.binary_search_by_key(&page, |(page, _)| *page).is_ok()
    }

    /// Pages that were only read along need not stay where frames get scarce.
    fn forget_gaps(&self, pool: &Pool) {
        if pool.free() >= pool.frames() / 4 {
            return;
        }
        for &(first, count) in &self.runs {
            let all = (first.no..first.no + count).map(|no| PageId::new(first.space, no));
            all.filter(|page| !self.visits(*page)).for_each(|page| pool.drop_clean(page));
        }
    }

    /// The visited pages, and those between two of them that are at hand: one long write is cheaper than two short
    /// ones.
    fn to_write(&self, pool: &Pool) -> Vec<PageId> {
        let mut pages: Vec<PageId> = Vec::with_capacity(self.pages.len());
        for (page, _) in self.pages {
            if let Some(&last) = pages.last()
                && last.space == page.space
                && (page.no - last.no) as usize <= WRITE_GAP_BYTES / self.page_size + 1
            {
                let between = (last.no + 1..page.no).map(|no| PageId::new(page.space, no));
                let pins: Option<Vec<_>> = between.map(|page| pool.get(page)).collect();
                for pin in pins.iter().flatten() {
                    let lsn = header::lsn(&pin.read());
                    pool.redo(pin, lsn, |_| ());
                    pages.push(pin.id());
                }
            }
            pages.push(*page);
        }
        pages
    }
}
