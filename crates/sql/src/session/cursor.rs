//! Cursors: DECLARE, FETCH, MOVE, CLOSE.
//!
//! 1. A cursor is the stream of its query's rows, and the rest of a batch that was begun. It goes forward only, unless
//!    it was declared with SCROLL: see [`crate::session::scroll`]. One of a simple query ([`goes_back`]) keeps the
//!    first rows that it reads, up to [`KEPT_MAX`] bytes; as long as these are all, it becomes one with SCROLL when it
//!    is asked for other rows than the next ones.
//! 2. It belongs to its transaction block and is closed with it. ROLLBACK TO closes those that were declared since.
//! 3. Its rows are of the snapshot that DECLARE took. (Later changes of its own transaction may show.) A cursor WITH
//!    HOLD outlives its transaction if that commits. The rest of its rows is read into memory before the commit, or at
//!    once if there is no block (53200 if it does not fit).
use crate::cancel::CancelToken;
use crate::error::{from_datafusion, unsupported};
use crate::functions::advisory::has_effect;
use crate::functions::builtin::is_known_aggregate;
use crate::session::Session;
use crate::session::prepared::Prepared;
use crate::session::rows::Worked;
use crate::session::scroll::Scroll;
use crate::statement::kind::Task;
use crate::statement::outcome::{Done, Outcome, command};
use crate::transaction::Block;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use std::pin::pin;
use std::sync::Arc;
use terrace_engine::{Datum, EngineError, Paused, Result, Underway};
use terrace_grammar::statement::{
    Body, Declare, Direction, Distinct, ExprKind, Fetch, FromItem, Ident, Node, Query, walk,
};
use terrace_storage::{Reads, counting};
use tokio::sync::{Mutex, OwnedMutexGuard};

pub(crate) struct Cursor {
    schema: SchemaRef,
    /// Locked while its rows are sent.
    rows: Arc<Mutex<Remaining>>,
    /// The savepoints that there were.
    savepoints: usize,
    token: Arc<CancelToken>,
    /// WITH HOLD.
    hold: bool,
    /// The transaction that declared it, as [`crate::transaction::TxnSlot`] numbers them.
    transaction: u64,
    /// That transaction has committed, and the cursor is held.
    kept: bool,
    /// The snapshot of its rows. It counts as that of an idle transaction, except while a FETCH runs.
    paused: Option<Paused>,
}

struct Remaining {
    stream: BoxStream<'static, Result<RecordBatch>>,
    begun: Option<RecordBatch>,
    over: bool,
    /// Reading a row has failed: it has no rows any more, which is not the same as being over.
    failed: bool,
    /// How many rows it has answered.
    answered: u64,
    /// All rows that were read (invariant 1).
    kept: Option<Kept>,
    /// Of rows that are held.
    memory: Option<MemoryReservation>,
    /// SCROLL.
    scroll: Option<Scroll>,
}

/// Bytes of the rows that a cursor keeps without SCROLL.
const KEPT_MAX: usize = 8 << 20;

struct Kept {
    batches: Vec<RecordBatch>,
    memory: MemoryReservation,
}

impl Remaining {
    /// Where other rows than the next ones are asked for: becomes a cursor with SCROLL, if it still can.
    fn turn_back(&mut self, pool: &Arc<dyn MemoryPool>) -> Result<()> {
        let Some(Kept { batches, memory }) = self.kept.take() else { return Ok(()) };
        let at = self.answered + u64::from(self.over);
        drop(memory); // It is counted again.
        self.scroll = Some(Scroll::of(batches, at, self.over, scroll_memory(pool))?);
        self.begun = None;
        Ok(())
    }

    fn keep(&mut self, batch: &RecordBatch) {
        let Some(kept) = &mut self.kept else { return };
        let bytes = batch.get_array_memory_size();
        match kept.memory.size() + bytes <= KEPT_MAX && kept.memory.try_grow(bytes).is_ok() {
            true => kept.batches.push(batch.clone()),
            false => self.kept = None,
        }
    }

    /// Reads all rows into memory.
    async fn hold(&mut self, pool: &Arc<dyn MemoryPool>) -> Result<()> {
        if let Some(scroll) = &mut self.scroll {
            scroll.read_to(&mut self.stream, u64::MAX).await?;
            self.stream = stream::empty().boxed();
            return Ok(());
        }
        if self.memory.is_some() {
            return Ok(());
        }
        let memory = MemoryConsumer::new("rows of a cursor WITH HOLD").register(pool);
        let mut batches = vec![];
        while let Some(batch) = self.stream.next().await {
            let batch = batch?;
            memory.try_grow(batch.get_array_memory_size()).map_err(from_datafusion)?;
            batches.push(Ok(batch));
        }
        assert!(self.memory.is_none(), "invariant 3: rows are read into memory once");
        self.stream = stream::iter(batches).boxed();
        self.memory = Some(memory);
        Ok(())
    }

    /// The next rows, at most so many; `None`: there are no more.
    async fn next(&mut self, most: u64) -> Result<Option<RecordBatch>> {
        assert!(most > 0, "a FETCH that has its rows asks for no more");
        let batch = match self.begun.take() {
            Some(batch) => batch,
            None if self.over => return Ok(None),
            None => match self.stream.next().await.transpose() {
                Ok(Some(batch)) => {
                    self.keep(&batch);
                    batch
                }
                end => {
                    self.over = true;
                    self.failed = end.is_err();
                    return end;
                }
            },
        };
        let rows = batch.num_rows() as u64;
        self.answered += rows.min(most);
        if rows > most {
            self.begun = Some(batch.slice(most as usize, (rows - most) as usize));
            return Ok(Some(batch.slice(0, most as usize)));
        }
        Ok(Some(batch))
    }
}

/// How many rows a FETCH goes forward. 55000 if it goes back.
fn rows_forward(direction: Direction) -> Result<u64> {
    match direction {
        Direction::Forward(i64::MAX) => Ok(u64::MAX),
        Direction::Forward(count @ 0..) => Ok(count as u64),
        Direction::Backward(count @ ..0) => Ok(count.unsigned_abs()),
        Direction::Forward(_) | Direction::Backward(_) => {
            Err(EngineError::new("55000", "cursor can only scan forward")
                .with_hint("Read what you need again with another query."))
        }
        Direction::Absolute(1) => Err(unsupported("FETCH FIRST")),
        Direction::Absolute(-1) => Err(unsupported("FETCH LAST")),
        Direction::Absolute(_) => Err(unsupported("FETCH ABSOLUTE")),
        Direction::Relative(_) => Err(unsupported("FETCH RELATIVE")),
    }
}

fn scroll_memory(pool: &Arc<dyn MemoryPool>) -> MemoryReservation {
    MemoryConsumer::new("rows of a cursor with SCROLL").register(pool)
}

/// Functions that answer rows among the columns of a query.
const ROWS: [&str; 6] =
    ["generate_series", "generate_subscripts", "unnest", "string_to_table", "regexp_split_to_table", "regexp_matches"];

/// Whether a cursor of the query goes back in PostgreSQL without SCROLL: it reads one table, one list of rows or the
/// like, and neither gathers nor joins.
fn goes_back(query: &Query) -> bool {
    if query.with.is_some() || !query.locking.is_empty() {
        return false;
    }
    let select = match &query.body {
        Body::Values(_) => return true,
        Body::Select(select) => select,
        Body::Set { .. } => return false,
    };
    let plain = select.distinct == Distinct::No && select.group.is_none() && select.having.is_none();
    let from = match select.from.as_slice() {
        [FromItem::Table { .. } | FromItem::Functions { .. }] => true,
        [FromItem::Query { query, .. }] => goes_back(query),
        _ => false,
    };
    let mut gathers = false;
    let mut look = |node: Node<'_>| {
        gathers |= match node {
            Node::Query(_) => true,
            Node::Expr(expr) => match &expr.kind {
                ExprKind::Call(call) => {
                    let name = call.name.last().name.as_str();
                    call.over.is_some() || is_known_aggregate(name) || name.ends_with("_agg") || ROWS.contains(&name)
                }
                _ => false,
            },
        };
        !gathers
    };
    let exprs = select.items.iter().map(|item| &item.expr).chain(&select.filter);
    exprs.chain(query.order.iter().map(|by| &by.expr)).for_each(|expr| {
        walk(Node::Expr(expr), &mut look);
    });
    plain && from && !gathers
}

fn no_cursor(name: &str) -> EngineError {
    EngineError::new("34000", format!("cursor \"{name}\" does not exist"))
}

/// Refuses options that a cursor cannot have.
pub(crate) fn refuse_form(declare: &Declare) -> Result<()> {
    let locked = declare.hold && !declare.query.locking.is_empty();
    let mut effects = false;
    walk(Node::Query(&declare.query), &mut |node| {
        let called = |kind: &ExprKind| matches!(kind, ExprKind::Call(call) if has_effect(&call.name.last().name));
        effects |= matches!(node, Node::Expr(expr) if called(&expr.kind));
        !effects
    });
    let refused = [
        (declare.binary, "DECLARE ... BINARY"),
        (locked, "DECLARE ... WITH HOLD of rows that are locked"),
        (effects, "DECLARE of a query that calls a function of advisory locks, or pg_terminate_backend"),
    ];
    if let Some((_, what)) = refused.iter().find(|(is, _)| *is) {
        return Err(unsupported(what));
    }
    if declare.scroll == Some(true) && !declare.query.locking.is_empty() {
        let error = EngineError::new("0A000", "DECLARE SCROLL CURSOR ... FOR UPDATE is not supported");
        return Err(error.with_detail("Scrollable cursors must be READ ONLY."));
    }
    Ok(())
}

fn in_use(name: &str) -> EngineError {
    EngineError::new("55006", format!("cursor \"{name}\" is being read"))
}

impl Session {
    /// The columns of an open cursor, as FETCH returns them.
    pub fn cursor_columns(&self, name: &str) -> Option<SchemaRef> {
        self.cursors.get(name).map(|cursor| cursor.schema.clone())
    }

    /// The columns that a FETCH returns; `None`: a MOVE.
    pub(crate) fn fetched_columns(&self, fetch: &Fetch) -> Result<Option<SchemaRef>> {
        let name = &fetch.cursor.name;
        match fetch.moves {
            true => Ok(None),
            false => self.cursor_columns(name).map(Some).ok_or_else(|| no_cursor(name)),
        }
    }

    /// DECLARE.
    pub(crate) async fn declare(
        &mut self,
        prepared: &Prepared,
        declare: &Declare,
        parameters: &[Datum],
        token: &Arc<CancelToken>,
    ) -> Result<Outcome> {
        refuse_form(declare)?;
        self.may_declare(declare)?;
        let task = ("SELECT", Task::Query(&declare.query));
        let done = self.in_transaction(prepared, task, parameters, token).await?;
        self.open_cursor(declare, done, prepared).await
    }

    async fn open_cursor(&mut self, declare: &Declare, done: Worked, prepared: &Prepared) -> Result<Outcome> {
        let Worked::Done { done: Done::Rows(rows), .. } = done else {
            return Err(unsupported("a cursor for a query without rows"));
        };
        let token = Arc::<CancelToken>::default();
        // Each FETCH is counted by itself.
        let running = self.running.take();
        let depth = self.depth_of(prepared).await;
        let (schema, stream) = self.rows(rows, token.clone(), depth);
        self.running = running;
        let (savepoints, transaction, paused) = {
            let mut slot = self.shared.cell.lock().await;
            let paused = slot.txn.as_mut().map(|txn| txn.paused());
            (slot.savepoints.len(), slot.number, paused)
        };
        let hold = declare.hold;
        let scroll = (declare.scroll == Some(true)).then(|| Scroll::new(scroll_memory(self.pool())));
        let kept = (declare.scroll.is_none() && !hold && goes_back(&declare.query))
            .then(|| Kept { batches: vec![], memory: scroll_memory(self.pool()) });
        let mut remaining =
            Remaining { stream, begun: None, over: false, failed: false, answered: 0, kept, memory: None, scroll };
        let block = self.shared.block();
        if hold && !block.is_transaction_block() {
            remaining.hold(self.pool()).await?;
        }
        // Outside of a block, its transaction has ended with its last row.
        let kept = hold && block == Block::None;
        let rows = Arc::new(Mutex::new(remaining));
        let cursor = Cursor { schema, rows, savepoints, token, hold, transaction, kept, paused };
        let before = self.cursors.insert(declare.name.name.clone(), cursor);
        assert!(before.is_none(), "may_declare came first");
        Ok(command("DECLARE CURSOR"))
    }

    /// The number of the open transaction.
    pub(crate) async fn transaction(&self) -> Option<u64> {
        let slot = self.shared.cell.lock().await;
        slot.txn.is_some().then_some(slot.number)
    }

    /// A transaction is about to commit: reads the rest of its cursors WITH HOLD, so that they no longer need it
    /// (invariant 3).
    pub(crate) async fn hold_cursors(&self) -> Result<()> {
        for (name, cursor) in self.cursors.iter().filter(|(_, cursor)| cursor.hold && !cursor.kept) {
            let mut rows = cursor.rows.try_lock().map_err(|_| in_use(name))?;
            rows.hold(self.pool()).await?;
        }
        Ok(())
    }

    /// A transaction is about to end; `committing`: it commits, so its cursors WITH HOLD stay.
    pub(crate) fn close_cursors_but_of(&mut self, committing: Option<u64>) {
        self.cursors.retain(|_, cursor| cursor.kept || cursor.hold && Some(cursor.transaction) == committing);
    }

    /// The transaction has ended. `committed`: its number, if it has committed.
    pub(crate) fn end_cursors(&mut self, committed: Option<u64>) {
        self.cursors.retain(|_, cursor| {
            if cursor.hold && Some(cursor.transaction) == committed {
                (cursor.kept, cursor.savepoints) = (true, 0);
            }
            cursor.kept
        });
        let held = |cursor: &Cursor| cursor.hold && cursor.savepoints == 0;
        assert!(self.cursors.values().all(held), "invariants 2 and 3: without a transaction there are those WITH HOLD");
    }

    /// Whether a cursor of that name may be declared now.
    fn may_declare(&self, declare: &Declare) -> Result<()> {
        let name = &declare.name.name;
        if !self.shared.block().is_transaction_block() && !declare.hold {
            return Err(EngineError::new("25P01", "DECLARE CURSOR can only be used in transaction blocks"));
        }
        match self.cursors.contains_key(name) {
            true => Err(EngineError::new("42P03", format!("cursor \"{name}\" already exists"))),
            false => Ok(()),
        }
    }

    /// FETCH and MOVE.
    pub(crate) async fn fetch(&mut self, fetch: &Fetch, token: &Arc<CancelToken>) -> Result<Outcome> {
        let name = fetch.cursor.name.clone();
        let cursor = self.cursors.get(&name).ok_or_else(|| no_cursor(&name))?;
        let mut rows = cursor.rows.clone().try_lock_owned().map_err(|_| in_use(&name))?;
        if rows.failed {
            return Err(EngineError::new("55000", format!("portal \"{name}\" cannot be run")));
        }
        let ahead = matches!(fetch.direction, Direction::Forward(1..) | Direction::Backward(..0));
        if !ahead {
            rows.turn_back(self.pool())?;
        }
        let left = if rows.scroll.is_some() { 0 } else { rows_forward(fetch.direction)? };
        let mut fetching = Fetching {
            rows,
            left,
            statement: token.clone(),
            cursor: cursor.token.clone(),
            canceller: self.canceller(),
            running: self.running.clone(),
            _underway: cursor.paused.as_ref().and_then(Paused::go_on),
        };
        if fetching.rows.scroll.is_some() {
            let batches = fetching.scroll(fetch.direction).await?;
            if fetch.moves {
                let moved: usize = batches.iter().map(RecordBatch::num_rows).sum();
                return Ok(command(format!("MOVE {moved}")));
            }
            let stream = stream::iter(batches.into_iter().map(Ok)).boxed();
            return Ok(Outcome::Rows { schema: cursor.schema.clone(), stream });
        }
        if fetch.moves {
            let mut moved = 0;
            while let Some(batch) = fetching.next().await? {
                moved += batch.num_rows();
            }
            return Ok(command(format!("MOVE {moved}")));
        }
        let stream = stream::unfold(Some(fetching), |fetching| async move {
            let mut fetching = fetching?;
            match fetching.next().await.transpose()? {
                Ok(batch) => Some((Ok(batch), Some(fetching))),
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(Outcome::Rows { schema: cursor.schema.clone(), stream: stream.boxed() })
    }

    /// CLOSE. `None`: ALL.
    pub(crate) fn close_cursor(&mut self, name: Option<&Ident>) -> Result<Outcome> {
        match name {
            None => {
                self.cursors.clear();
                Ok(command("CLOSE CURSOR ALL"))
            }
            Some(Ident { name, .. }) => {
                self.cursors.remove(name).ok_or_else(|| no_cursor(name))?;
                Ok(command("CLOSE CURSOR"))
            }
        }
    }

    /// The block went back to its savepoint of that number, from 0 (invariant 2).
    pub(crate) fn close_cursors_since(&mut self, savepoint: usize) {
        self.cursors.retain(|_, cursor| cursor.savepoints <= savepoint);
    }

    /// The savepoint of that number, and those after it, are released: their cursors belong to the one before.
    pub(crate) fn keep_cursors_of(&mut self, savepoint: usize) {
        self.cursors.values_mut().for_each(|cursor| cursor.savepoints = cursor.savepoints.min(savepoint));
    }
}

/// Rows of a cursor that are being sent.
struct Fetching {
    rows: OwnedMutexGuard<Remaining>,
    left: u64,
    /// Of the FETCH.
    statement: Arc<CancelToken>,
    cursor: Arc<CancelToken>,
    canceller: crate::cancel::Canceller,
    running: Option<Arc<crate::session::running::Running>>,
    _underway: Option<Underway>,
}

impl Fetching {
    /// The rows of a FETCH of a cursor with SCROLL.
    async fn scroll(&mut self, direction: Direction) -> Result<Vec<RecordBatch>> {
        let mut reads = Reads::default();
        let Remaining { stream, scroll, .. } = &mut *self.rows;
        let scroll = scroll.as_mut().expect("the caller has looked");
        let batches = counting(&mut reads, pin!(scroll.fetch(stream, direction))).await;
        if let Some(running) = &self.running {
            running.read(reads);
            match &batches {
                Ok(batches) => batches.iter().for_each(|batch| running.returned(batch.num_rows() as u64)),
                Err(_) => running.failed(),
            }
        }
        self.rows.failed = batches.is_err();
        self.end();
        batches
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if self.left == 0 {
            self.end();
            return Ok(None);
        }
        let mut reads = Reads::default();
        let batch = counting(&mut reads, pin!(self.rows.next(self.left))).await;
        if let Some(running) = &self.running {
            running.read(reads);
            match &batch {
                Ok(Some(batch)) => running.returned(batch.num_rows() as u64),
                Ok(None) => {}
                Err(_) => running.failed(),
            }
        }
        match &batch {
            Ok(Some(batch)) => {
                let rows = batch.num_rows() as u64;
                assert!(rows <= self.left, "no more rows than are left to fetch");
                self.left -= rows;
            }
            _ => self.end(),
        }
        batch
    }

    /// The statement is over: nothing cancels the cursor while it rests.
    fn end(&self) {
        self.canceller.end(&self.cursor);
        self.canceller.end(&self.statement);
    }
}
