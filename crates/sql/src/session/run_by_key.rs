//! Running statements by key without the steps that other statements need. A look-up of one row needs no transaction of
//! its own and does not wait: the stored row is shown to the sender under its page's latch. Any other is shown as
//! running only if it has to wait.
//!
//! 1. A look-up answers what [`Session::execute`] would answer. Where it might not (a failed block, a snapshot of a
//!    whole transaction, a definition that changes, a wrong value, a page that must be read), the look-up does nothing,
//!    and the caller executes the statement.
//! 2. The statement is counted as any other. From its first wait on, it is shown as running and can be cancelled.
use crate::by_key::{Bound, ByKey, ByKeyDone, FoundRow};
use crate::session::Session;
use crate::session::prepared::Prepared;
use crate::session::rows::rows_of;
use crate::session::running::{Running, ran};
use crate::statement::outcome::Outcome;
use crate::statement::run::LazyState;
use crate::transaction::Block;
use futures::stream;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use terrace_engine::types::Style;
use terrace_engine::{Datum, Isolation, Peek, Result, RowView};
use terrace_storage::{Reads, counted, counting};

impl Session {
    /// Runs a look-up of one row by its key, where that can be done at once; `show` sees the row, if there is one,
    /// under a latch: it does not wait. Answers the number of rows; `None`: the statement is to be executed.
    pub fn look_up(
        &mut self,
        statement: &Arc<Prepared>,
        parameters: &[Datum],
        show: impl FnOnce(FoundRow<'_>),
    ) -> Option<u64> {
        let by_key = statement.by_key.lock().clone()?;
        if self.style() != Style::default() || !by_key.means(by_key.version, &self.shared.settings.lock().acting()) {
            return None;
        }
        if parameters.len() != statement.parameters.len() {
            return None;
        }
        let block = self.shared.block();
        let began = self.database.observed.env.now();
        let look_up = by_key.look_up(Bound { parameters, now: 0 })?;
        let [table] = by_key.tables() else { unreachable!("a look-up is of one table") };
        let (index, key) = (look_up.index, &look_up.key);
        let mut slot = self.shared.cell.try_lock().ok()?;
        let mut reads = Reads::default();
        let found = counted(&mut reads, || {
            if key.contains(&Datum::Null) {
                // Nothing equals NULL.
                return Some(Peek::Missing);
            }
            match (&mut slot.txn, block) {
                (None, Block::None | Block::Pipeline) => {
                    let still = block == Block::Pipeline
                        && self.shared.settings.lock().default_isolation() != Isolation::ReadCommitted;
                    let show = |row: RowView<'_>| look_up.show(row, show);
                    let engine = &self.database.engine;
                    (!still).then(|| engine.peek(by_key.version, table, index, key, show).ok())?
                }
                (Some(txn), Block::Pipeline | Block::Message | Block::Explicit) => {
                    let usable = txn.try_lock_table(table, false) && txn.catalog().version() == by_key.version;
                    let show = |_, _, row: RowView<'_>| look_up.show(row, show);
                    usable.then(|| txn.peek(table, index, key, show).ok())?
                }
                _ => None,
            }
        })?;
        let rows = match found {
            Peek::Found(()) => 1,
            Peek::Missing => 0,
            Peek::Unsure => return None,
        };
        debug_assert_ne!(block, Block::Failed, "invariant 1: nothing is answered in a failed block");
        slot.queried |= slot.txn.is_some();
        drop(slot);
        ran(&self.database.observed, &self.shared, statement, began, Some(rows), reads);
        Some(rows)
    }

    /// What was recognised of a statement, if it is one by key that `execute_by_key` may run.
    pub(crate) fn runs_by_key(&self, statement: &Prepared, parameters: &[Datum]) -> Option<Arc<ByKey>> {
        let by_key = statement.by_key.lock().clone()?;
        let ready = match self.shared.block() {
            Block::Failed => false,
            // Rows that nobody read to the end left their transaction open.
            Block::None => self.shared.cell.try_lock().is_ok_and(|slot| slot.txn.is_none()),
            Block::Pipeline | Block::Message | Block::Explicit => true,
        };
        let settings = self.shared.settings.lock();
        let may = (by_key.only_reads() || !settings.read_only()) && !settings.deferrable();
        (ready && may && parameters.len() == statement.parameters.len()).then_some(by_key)
    }

    /// Runs a statement by key. It can be cancelled (by its token) from when it first waits for something.
    pub(crate) async fn execute_by_key(
        &mut self,
        statement: &Arc<Prepared>,
        by_key: Arc<ByKey>,
        parameters: &[Datum],
    ) -> Ran {
        assert_eq!(parameters.len(), statement.parameters.len(), "runs_by_key has counted them");
        let only_reads = by_key.only_reads();
        let began = self.database.observed.env.now();
        self.ensure_transaction().await;
        let now = if by_key.uses_now { LazyState::new(&self.database.state, &self.clock).now() } else { 0 };
        let this = &*self;
        let observed = &this.database.observed;
        let begin = || Running::begin(observed, &this.shared, statement, began);
        let (mut reads, mut running) = (Reads::default(), None);
        let done = {
            let work = pin!(this.by_key(statement, by_key, Bound { parameters, now }));
            let mut work = pin!(counting(&mut reads, work));
            match poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await {
                Poll::Ready(done) => done,
                Poll::Pending => {
                    running = Some(begin());
                    let timeout = this.shared.settings.lock().timeouts().statement;
                    let token = this.canceller.begin(&this.database.engine, timeout);
                    let done = token.run(work).await;
                    this.canceller.end(&token);
                    done
                }
            }
        };
        let result = match done {
            Ok(None) => return Ran::General(running),
            Ok(Some(done)) => {
                if this.shared.block() == Block::None && !only_reads {
                    // The commit waits for the log.
                    running.get_or_insert_with(begin);
                }
                this.shared.succeed().await.map(|()| done)
            }
            Err(error) => Err(error),
        };
        if result.is_err() {
            this.shared.fail().await;
        }
        let rows = result.as_ref().ok().map(|done| match done {
            ByKeyDone::Rows(batch) => batch.num_rows() as u64,
            ByKeyDone::Tag(tag) => rows_of(tag),
        });
        match running {
            None => ran(observed, &this.shared, statement, began, rows, reads),
            Some(running) => {
                running.read(reads);
                match rows {
                    Some(rows) => running.returned(rows),
                    None => running.failed(),
                }
            }
        }
        Ran::Done(result.map(ByKeyDone::outcome))
    }
}

impl ByKeyDone {
    /// All of it is here.
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            ByKeyDone::Tag(tag) => Outcome::Command { tag, notices: vec![] },
            ByKeyDone::Rows(batch) => {
                Outcome::Rows { schema: batch.schema(), stream: Box::pin(stream::iter([Ok(batch)])) }
            }
        }
    }
}

/// What became of a statement by key.
pub(crate) enum Ran {
    Done(Result<Outcome>),
    /// It was not run and must be executed in the general way. If it had to wait, it is shown as running already: that
    /// is handed on.
    General(Option<Arc<Running>>),
}
