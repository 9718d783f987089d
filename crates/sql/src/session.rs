//! A session: one client's transaction, settings and prepared statements.
//!
//! 1. A statement that fails rolls its whole transaction back at once, or back to the newest savepoint where there is
//!    one; within a transaction block the block then is `Failed` until the client ends it or goes back to a savepoint.
//! 2. Outside a block, a statement commits by itself, or (after [`Session::begin_pipeline`]) at `sync`.
//! 3. A commit is never cancelled.
pub(crate) mod alter_system;
pub(crate) mod control;
pub(crate) mod cursor;
pub(crate) mod heavy;
pub(crate) mod named;
pub(crate) mod parameters;
pub(crate) mod prepared;
pub(crate) mod rows;
pub(crate) mod run_by_key;
pub(crate) mod running;
pub(crate) mod savepoint;
pub(crate) mod scroll;
pub(crate) mod shapes;
pub(crate) mod short;
pub(crate) mod vacuum;

use crate::by_key::{Bound, ByKey, ByKeyDone};
use crate::cancel::{CancelToken, Canceller};
use crate::database::{Account, SqlDatabase};
use crate::notify::{Note, Voice};
use crate::observe::Present;
use crate::pgcatalog::{SessionInfo, System};
use crate::plan::bind::{Tree, bounds};
use crate::session::cursor::Cursor;
use crate::session::named::{Kept, Named};
use crate::session::prepared::Prepared;
use crate::session::rows::{Worked, rows_of};
use crate::session::run_by_key::Ran;
use crate::session::running::Running;
use crate::session::shapes::{Parsed, Shapes};
use crate::session::short::Gathered;
use crate::settings::{Reported, Settings};
use crate::stack::on_stack_for;
use crate::statement::describe::{Described, Sources};
use crate::statement::dispatch::{concurrently, refuse_write};
use crate::statement::explain;
use crate::statement::generic::Generics;
use crate::statement::kind::{Command, Kind, Returns, Task, Work};
use crate::statement::lock_rows::within::queries as locking_queries;
use crate::statement::outcome::Outcome;
use crate::statement::run::{LazyState, Run};
use crate::statement::shared::Shared;
use crate::transaction::{Block, Notices, TxnSlot};
use crate::{by_key, parse};
use datafusion::logical_expr::execution_props::ExecutionProps;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;
use terrace_engine::advisory::Advisory;
use terrace_engine::types::{Style, clock};
use terrace_engine::{Catalog, DataType, Datum, EngineError, Isolation, Result, Txn, Viewer};
use terrace_env::memory;
use terrace_storage::{Reads, counting};

/// As ReadyForQuery reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TxnStatus {
    Idle,
    InTransaction,
    Failed,
}

/// When parameters and columns of a statement are found out.
#[derive(Clone, Copy)]
pub(crate) enum Describing<'t> {
    /// When it runs, where that is soon enough.
    Later,
    Alone,
    /// Within a statement that runs.
    Within(&'t Arc<CancelToken>),
}

/// Whether running a statement without parameters tells all that describing it would, errors included.
fn plans_when_run(kind: &Kind<'_>) -> bool {
    let (returning, filter) = match kind.work {
        Work::Transaction(Task::Query(_)) => return true,
        Work::Transaction(Task::Insert(insert)) => (&insert.returning, None),
        Work::Transaction(Task::Update(update)) => (&update.returning, update.filter.as_ref()),
        Work::Transaction(Task::Delete(delete)) => (&delete.returning, delete.filter.as_ref()),
        _ => return false,
    };
    returning.is_empty() && locking_queries(filter).is_empty()
}

pub struct Session {
    pub(crate) database: SqlDatabase,
    pub(crate) shared: Arc<Shared>,
    pub(crate) info: SessionInfo,
    /// Prepared statements by name.
    pub(crate) named: BTreeMap<String, Kept>,
    pub(crate) named_bytes: Account,
    /// The one without a name.
    pub(crate) unnamed: Option<Arc<Named>>,
    /// Open cursors by name.
    pub(crate) cursors: BTreeMap<String, Cursor>,
    pub(crate) canceller: Canceller,
    pub(crate) advisory: Arc<Advisory>,
    /// How it sees a catalogue.
    viewer: Arc<Viewer>,
    notices: Notices,
    /// Of the transaction: see [`LazyState`].
    pub(crate) clock: Mutex<Option<ExecutionProps>>,
    pub(crate) isolation: Option<Isolation>,
    /// The statement that runs.
    pub(crate) running: Option<Arc<Running>>,
    _present: Present,
    pub(crate) by_key: bool,
    /// How many generic plans it keeps.
    generics: Arc<AtomicUsize>,
    pub(crate) shapes: Shapes,
    pub(crate) parsed: Parsed,
}

impl SqlDatabase {
    pub fn session(&self, user: &str) -> Session {
        Session::new(self, user)
    }
}

impl Session {
    pub(crate) fn new(database: &SqlDatabase, user: &str) -> Session {
        let (advisory, notices) = (database.engine.advisory(), Notices::default());
        let present = Present::enter(&database.observed, user, advisory.number());
        let activity = present.activity.clone();
        let (pid, canceller) = (activity.pid, activity.canceller());
        let slot = TxnSlot { sequences: database.sequences.clone(), ..TxnSlot::default() };
        let shared = Shared {
            cell: Arc::new(tokio::sync::Mutex::new(slot)),
            block: Mutex::new(Block::None),
            activity,
            settings: Arc::new(Mutex::new(Settings::of_login(user))),
            voice: Arc::new(Voice::new(&database.hub, pid)),
        };
        let (settings, viewer) = (shared.settings.clone(), shared.settings.lock().viewer().clone());
        let system = System {
            engine: database.engine.clone(),
            observed: database.observed.clone(),
            server: database.system.clone(),
            settings,
            advisory: advisory.clone(),
            notices: notices.clone(),
            voice: shared.voice.clone(),
            cell: shared.cell.clone(),
            random: Arc::default(),
            prepared: Arc::default(),
        };
        Session {
            database: database.clone(),
            shared: Arc::new(shared),
            info: SessionInfo {
                user: user.into(),
                database: database.name.to_string(),
                backend_pid: pid,
                system: Some(system),
            },
            named: BTreeMap::new(),
            named_bytes: Account::default(),
            unnamed: None,
            cursors: BTreeMap::new(),
            canceller,
            advisory,
            viewer,
            notices,
            clock: Mutex::new(None),
            isolation: None,
            running: None,
            _present: present,
            by_key: true,
            generics: Arc::default(),
            shapes: Shapes::default(),
            parsed: Parsed::default(),
        }
    }

    /// What was said on channels that the session listens to: none while a transaction is open.
    pub fn heard(&self) -> Vec<Arc<Note>> {
        match self.hears() {
            true => self.shared.voice.heard(),
            false => vec![],
        }
    }

    /// Done once there is something to hear; not while a transaction is open.
    pub async fn something_to_hear(&self) {
        match self.hears() {
            true => self.shared.voice.something_comes().await,
            false => std::future::pending().await,
        }
    }

    fn hears(&self) -> bool {
        self.shared.cell.try_lock().is_ok_and(|slot| slot.txn.is_none()) && self.shared.block() != Block::Failed
    }

    /// The process id (a number of ours; there is one process) that `pg_backend_pid()` answers: no other session has
    /// it.
    pub fn backend_pid(&self) -> i32 {
        self.info.backend_pid
    }

    /// Where the client is, for `pg_stat_activity`.
    pub fn set_client(&mut self, address: SocketAddr) {
        self.shared.activity.set_client(address);
    }

    pub fn status(&self) -> TxnStatus {
        match self.shared.block() {
            Block::None | Block::Pipeline | Block::Message => TxnStatus::Idle,
            Block::Explicit => TxnStatus::InTransaction,
            Block::Failed => TxnStatus::Failed,
        }
    }

    /// Whether a cursor is open, which may hold rows.
    pub fn has_cursors(&self) -> bool {
        !self.cursors.is_empty()
    }

    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// A run-time parameter as SHOW tells it, e.g. for ParameterStatus.
    pub fn setting(&self, name: &str) -> Result<String> {
        self.shared.settings.lock().show(name).map(|(_, value)| value)
    }

    pub fn application_name(&self) -> Arc<str> {
        self.shared.settings.lock().application_name()
    }

    /// The parameters that clients are told of; another `Arc` once one of them has changed.
    pub fn reported(&self) -> Arc<Reported> {
        self.shared.settings.lock().reported().clone()
    }

    /// In which values are read and shown, [`Session`]'s own included.
    pub fn style(&self) -> Style {
        self.shared.settings.lock().style()
    }

    /// Sets a run-time parameter that the session begins with, e.g. one of the startup packet: RESET goes back to it.
    /// Not within a transaction.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        self.shared.settings.lock().begin_with(name, value)?;
        self.shared.activity.set_application(&self.setting("application_name")?);
        Ok(())
    }

    /// Whether statements by key run straight on the engine (as they do unless this is called), or are planned as all
    /// others are. The answers are the same: for tests and measurements.
    pub fn run_by_key(&mut self, by_key: bool) {
        self.by_key = by_key;
        self.parsed = Parsed::default();
    }

    /// Plans that its prepared statements keep: for tests and measurements.
    pub fn generic_plans(&self) -> usize {
        self.generics.load(Ordering::Relaxed)
    }

    /// An error outside of [`Session::prepare`] and [`Session::execute`] (a malformed message, a value that cannot be
    /// sent) fails what is open, as a failed statement does.
    pub async fn fail(&mut self) {
        self.shared.fail().await;
    }

    /// Splits a simple-protocol string into statements' texts (42601 on a syntax error).
    pub fn split(&self, sql: &str) -> Result<Vec<String>> {
        let _counted = self.heavy(sql)?;
        Ok(parse::parsed(sql)?.into_iter().map(|parsed| sql[parsed.range.clone()].to_owned()).collect())
    }

    /// How long the client may leave the session alone, as it is now: a setting's name, and the time.
    pub fn idle_timeout(&self) -> Option<(&'static str, Duration)> {
        let timeouts = self.shared.settings.lock().timeouts();
        match self.status() {
            TxnStatus::Idle => timeouts.idle_session.map(|t| ("idle_session_timeout", t)),
            _ => timeouts.idle_in_transaction.map(|t| ("idle_in_transaction_session_timeout", t)),
        }
    }

    /// From here to `sync`, statements outside a block are one transaction: what comes between two Syncs.
    pub fn begin_pipeline(&mut self) {
        let mut block = self.shared.block.lock();
        if *block == Block::None {
            *block = Block::Pipeline;
        }
    }

    /// The same for a simple query of several statements, before each of them. Their transaction begins at once, so
    /// that `default_transaction_*` are of those after it.
    pub async fn begin_message(&mut self) {
        if matches!(self.shared.block(), Block::None | Block::Pipeline) {
            *self.shared.block.lock() = Block::Message;
            self.ensure_transaction().await;
        }
    }

    /// Parses one statement. `types`: parameter types the client stated.
    pub async fn prepare(&mut self, sql: &str, types: &[Option<DataType>]) -> Result<Arc<Prepared>> {
        self.prepare_for(sql, types, true).await
    }

    /// The same for a statement that is run at once: its columns may be told only by then, so that it is planned once.
    pub async fn prepare_to_run(&mut self, sql: &str) -> Result<Arc<Prepared>> {
        self.prepare_for(sql, &[], false).await
    }

    async fn prepare_for(&mut self, sql: &str, types: &[Option<DataType>], described: bool) -> Result<Arc<Prepared>> {
        let prepared = self.style().over(pin!(self.try_prepare(sql, types, described))).await;
        if prepared.is_err() {
            self.shared.fail().await;
            self.database.observed.failed.fetch_add(1, Ordering::Relaxed);
            self.shared.activity.settle(self.shared.block(), self.database.engine.env().unix_micros());
        }
        prepared
    }

    async fn try_prepare(&mut self, sql: &str, types: &[Option<DataType>], described: bool) -> Result<Arc<Prepared>> {
        if let Some(known) = self.known(sql, types).await {
            return Ok(known);
        }
        let mut heavy = self.heavy(sql)?;
        let (parsed, allocated) = memory::measured(|| -> Result<_> { Ok((Arc::from(sql), parse::statement(sql)?)) });
        let (text, parsed): (Arc<str>, _) = parsed?;
        if let Some(heavy) = &mut heavy {
            heavy.has_allocated(allocated);
        }
        // Where there are parameters, it is told that they cannot be.
        let described = described || parsed.as_ref().is_some_and(|parsed| parsed.parameters > 0);
        let describing = if described { Describing::Alone } else { Describing::Later };
        let tree = parsed.map(|parsed| Tree::new(parsed, text.clone()));
        let mut prepared = Box::pin(self.prepare_tree(text, tree, types, describing)).await?;
        if let Some(prepared) = Arc::get_mut(&mut prepared) {
            prepared.heavy = heavy;
        }
        self.parsed.remember(&prepared, types);
        Ok(prepared)
    }

    /// `sql`: how the statement is shown. `tree`: none where there is no statement.
    pub(crate) async fn prepare_tree(
        &mut self,
        sql: Arc<str>,
        tree: Option<Tree>,
        types: &[Option<DataType>],
        describing: Describing<'_>,
    ) -> Result<Arc<Prepared>> {
        let (mut described, mut by_key, mut executes) = (Described::default(), None, None);
        let mut depth = 0;
        if let Some(tree) = &tree {
            let kind = Kind::of(tree.statement());
            self.refuse_if_failed(&kind)?;
            if let Some(refusal) = kind.refusal(tree.text()) {
                return Err(refusal);
            }
            if let Work::Session(Command::Execute(execute)) = kind.work {
                executes = Some(self.executed(&execute.name.name)?.prepared.clone());
            }
            let catalog = self.catalog().await;
            let mut known = types.to_vec();
            by_key = match self.by_key {
                true => {
                    let found = by_key::recognise(tree.statement(), &catalog, &mut known);
                    found
                        .and_then(|found| found.permitted(&self.shared.settings.lock().acting(), &catalog))
                        .map(Arc::new)
                }
                false => None,
            };
            depth = tree.depth()?;
            let views = catalog.deepest_view();
            let open = by_key.is_some() && known.iter().any(Option::is_none);
            assert!(!open, "recognise.rs, invariant 2: every parameter has a type");
            described = match (&by_key, &executes) {
                (Some(by_key), _) => {
                    Described { parameters: known.into_iter().flatten().collect(), columns: by_key.columns() }
                }
                (None, Some(_)) if kind.returns == Returns::Nothing => Described::default(),
                (None, Some(inner)) => Described { columns: inner.columns.clone(), ..Described::default() },
                (None, None) => {
                    let describe = Box::pin(self.described(tree, types, describing));
                    on_stack_for(depth + views, describe).await?
                }
            };
        }
        let Described { parameters, columns } = described;
        bounds::columns(columns.as_ref().map_or(0, |columns| columns.fields().len()))?;
        let by_key = Mutex::new(by_key);
        let (entry, attached) = (OnceLock::new(), OnceLock::new());
        let notices = parse::cut_names(&sql);
        Ok(Arc::new(Prepared {
            sql,
            parameters,
            columns,
            notices,
            statement: tree,
            depth,
            by_key,
            generics: Generics::of(&self.generics),
            executes,
            heavy: None,
            entry,
            attached,
        }))
    }

    /// What a client is told; planning for that ends as running would: by a cancel, and by the statement's timeout.
    async fn described(
        &mut self,
        tree: &Tree,
        types: &[Option<DataType>],
        describing: Describing<'_>,
    ) -> Result<Described> {
        let env = self.database.engine.env().clone();
        let kind = Kind::of(tree.statement());
        let token = match describing {
            Describing::Later if plans_when_run(&kind) => return Ok(Described::default()),
            Describing::Later | Describing::Alone => {
                let timeout = self.shared.settings.lock().timeouts().statement;
                self.canceller.begin(&self.database.engine, timeout)
            }
            Describing::Within(token) => token.clone(),
        };
        let work = self.work(token.clone());
        let described = env.run_long(pin!(work.over(pin!(self.describe(&kind, tree, types))))).await;
        if !matches!(describing, Describing::Within(_)) {
            self.canceller.end(&token);
        }
        described
    }

    /// Parameters and result columns of a statement.
    async fn describe(&mut self, kind: &Kind<'_>, tree: &Tree, types: &[Option<DataType>]) -> Result<Described> {
        match (kind.work, kind.returns) {
            (Work::Session(Command::Show(show)), _) => return Ok(Described::of(self.show(show)?.0)),
            (Work::Session(Command::Fetch(fetch)), _) => {
                return Ok(self.fetched_columns(fetch)?.map_or_else(Described::default, Described::of));
            }
            (_, Returns::Plan) => return Ok(Described::of(explain::schema(tree.statement())?)),
            (Work::Session(Command::Declare(declare)), _) => cursor::refuse_form(declare)?,
            (_, Returns::Query | Returns::Changes) | (Work::Transaction(Task::CreateTableAs(_)), _) => {}
            _ => return Ok(Described::default()),
        }
        let catalog = self.catalog().await;
        let state = LazyState::new(&self.database.state, &self.clock);
        let sources = Sources { state: &state, catalog: &catalog, info: &self.info, tree: Some(tree), parts: &[] };
        let described = sources.describe(tree.statement(), types)?;
        let columns = if kind.returns == Returns::Nothing { None } else { described.columns };
        Ok(Described { columns, ..described })
    }

    /// A bound on the levels of a statement, with those of the views that it may read now.
    pub(crate) async fn depth_of(&self, prepared: &Prepared) -> usize {
        prepared.depth + self.catalog().await.deepest_view()
    }

    /// The schema of the table that an error is about.
    pub async fn schema_of(&self, error: &EngineError) -> Option<String> {
        let space = error.space?;
        Some(self.catalog().await.space_name(space))
    }

    /// An error as the current role may see it.
    async fn hidden(&self, error: EngineError) -> EngineError {
        let catalog = self.catalog().await;
        crate::access::hidden(error, &self.info.actor(&catalog), &catalog, &[])
    }

    /// The catalogue that the next statement would see.
    pub async fn catalog(&self) -> Arc<Catalog> {
        match &self.shared.cell.lock().await.txn {
            Some(txn) => txn.catalog(),
            None => self.database.engine.catalog().seen_by(&self.viewer),
        }
    }

    fn refuse_if_failed(&self, kind: &Kind<'_>) -> Result<()> {
        if self.shared.block() == Block::Failed && !kind.in_failed_block {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(EngineError::new("25P02", message));
        }
        Ok(())
    }

    /// Runs a statement. Outside an explicit transaction the statement commits by itself, before `Outcome` says it is
    /// done (for rows: when the stream ends). A failed statement inside one makes the status Failed (25P02 until rolled
    /// back).
    pub async fn execute(&mut self, statement: &Arc<Prepared>, parameters: Vec<Datum>) -> Result<Outcome> {
        let Some(tree) = &statement.statement else { return Ok(Outcome::Empty) };
        let mut waited = None;
        if let Some(by_key) = self.runs_by_key(statement, &parameters) {
            // Boxed as below.
            let style = self.style();
            match style.over(Box::pin(self.execute_by_key(statement, by_key, &parameters))).await {
                Ran::Done(done) => return done,
                Ran::General(running) => waited = running,
            }
        }
        let counted = statement.executes.as_ref().unwrap_or(statement);
        let observed = &self.database.observed;
        let running = waited.unwrap_or_else(|| Running::begin(observed, &self.shared, counted, observed.env.now()));
        self.running = Some(running.clone());
        let token = self.canceller.begin(&self.database.engine, self.shared.settings.lock().timeouts().statement);
        let mut reads = Reads::default();
        let style = self.style();
        let depth = self.depth_of(statement).await;
        let work = on_stack_for(depth, Box::pin(self.try_execute(statement, tree, parameters, &token)));
        let result = style.over(pin!(counting(&mut reads, pin!(work)))).await;
        running.read(reads);
        if !matches!(result, Ok(Outcome::CopyIn(_))) {
            // Rows hold on to it; a COPY from the client runs until `sync`.
            self.running = None;
        }
        match result {
            // Rows and data end the statement when they end.
            Ok(open @ (Outcome::Rows { .. } | Outcome::CopyIn(_) | Outcome::CopyOut { .. })) => Ok(open),
            Ok(outcome) => {
                let committed = self.shared.succeed().await;
                self.canceller.end(&token);
                match (&committed, &outcome) {
                    (Err(_), _) => {
                        running.failed();
                        self.shared.fail().await;
                    }
                    (Ok(()), Outcome::Command { tag, .. }) => running.returned(rows_of(tag)),
                    _ => {}
                }
                match committed {
                    Ok(()) => Ok(outcome),
                    Err(error) => Err(self.hidden(error).await),
                }
            }
            Err(error) => {
                running.failed();
                let error = self.hidden(error).await;
                self.shared.fail().await;
                self.canceller.end(&token);
                Err(error)
            }
        }
    }

    pub(crate) async fn try_execute(
        &mut self,
        prepared: &Prepared,
        tree: &Tree,
        parameters: Vec<Datum>,
        token: &Arc<CancelToken>,
    ) -> Result<Outcome> {
        let kind = Kind::of(tree.statement());
        self.refuse_if_failed(&kind)?;
        if parameters.len() != prepared.parameters.len() {
            let message = format!(
                "bind message supplies {} parameters, but prepared statement requires {}",
                parameters.len(),
                prepared.parameters.len()
            );
            return Err(EngineError::new("08P01", message));
        }
        if self.shared.block() == Block::None {
            // Rows that nobody read to the end left their transaction open.
            Box::pin(self.shared.commit()).await?;
        }
        if self.shared.settings.lock().read_only() {
            refuse_write(tree.statement())?;
        }
        if let Some(what) = concurrently(tree.statement())
            && self.in_block().await
        {
            return Err(EngineError::new("25001", format!("{what} cannot run inside a transaction block")));
        }
        match kind.work {
            Work::Session(command) => self.command(prepared, command, &parameters, token).await,
            Work::Transaction(task) => {
                let done = Box::pin(self.in_transaction(prepared, (kind.tag, task), &parameters, token)).await?;
                let depth = self.depth_of(prepared).await;
                Ok(done.into_outcome(self, depth, token))
            }
            Work::Refused(_) | Work::Missing => Err(kind.refusal(tree.text()).expect("it is refused")),
        }
    }

    /// What runs in a transaction: a task, and what the statement is called.
    pub(crate) async fn in_transaction(
        &mut self,
        prepared: &Prepared,
        task: (&'static str, Task<'_>),
        parameters: &[Datum],
        token: &Arc<CancelToken>,
    ) -> Result<Worked> {
        let number = self.ensure_transaction().await;
        if self.shared.settings.lock().deferrable() {
            let wait = async {
                self.wait_for_snapshot().await;
                Ok(())
            };
            token.run(Box::pin(wait)).await?;
        }
        let state = LazyState::new(&self.database.state, &self.clock);
        let by_key = prepared.by_key.lock().clone();
        if let Some(by_key) = by_key.filter(|_| !matches!(task.1, Task::Explain(..))) {
            let now = if by_key.uses_now { state.now() } else { 0 };
            let bound = Bound { parameters, now };
            if let Some(outcome) = self.run_by_key_in_transaction(prepared, by_key, bound, token).await? {
                return Ok(Worked::Handed(outcome));
            }
        }
        let run = Run {
            engine: &self.database.engine,
            state: &state,
            info: &self.info,
            cell: &self.shared.cell,
            number,
            cancel: token,
            parameters,
            types: &prepared.parameters,
            tree: prepared.statement.as_ref(),
            captured: None,
            earlier: None,
            generics: Some(&prepared.generics),
        };
        let (short, env) = (prepared.is_short(), self.database.engine.env());
        let statement = async {
            let done = run.statement(task).await?;
            if short { run.gathered(done).await } else { Ok(Gathered::Other(done)) }
        };
        let statement = Box::pin(self.work(token.clone()).over(Box::pin(statement)));
        let mut statement = Box::pin(clock::at(state.now(), statement));
        let first = match short {
            true => poll_fn(|cx| Poll::Ready(statement.as_mut().poll(cx))).await,
            false => Poll::Pending,
        };
        let done = match first {
            Poll::Ready(done) => done?,
            Poll::Pending => env.run_long(statement).await?,
        };
        self.end_short(done, number).await
    }

    /// `None`: the general way is needed after all.
    async fn run_by_key_in_transaction(
        &self,
        prepared: &Prepared,
        by_key: Arc<ByKey>,
        bound: Bound<'_>,
        token: &Arc<CancelToken>,
    ) -> Result<Option<Outcome>> {
        let Some(done) = token.run(self.by_key(prepared, by_key, bound)).await? else { return Ok(None) };
        if let ByKeyDone::Rows(batch) = &done {
            // All of it is here: the statement is over.
            self.shared.succeed().await?;
            if let Some(running) = &self.running {
                running.returned(batch.num_rows() as u64);
            }
        }
        Ok(Some(done.outcome()))
    }

    /// Runs a statement by key in the open transaction. `None`: the general way is needed after all.
    pub(crate) async fn by_key(
        &self,
        prepared: &Prepared,
        mut by_key: Arc<ByKey>,
        bound: Bound<'_>,
    ) -> Result<Option<ByKeyDone>> {
        let mut slot = self.shared.cell.lock().await;
        slot.queried = true;
        let txn = slot.open();
        loop {
            txn.begin_statement();
            let catalog = txn.catalog();
            let Some(tree) = &prepared.statement else { return Ok(None) };
            let acting = self.shared.settings.lock().acting();
            if by_key.version != catalog.version() || by_key.style != tree.style() || by_key.role != acting {
                let mut types: Vec<Option<DataType>> = prepared.parameters.iter().copied().map(Some).collect();
                let again = tree.style().scope(|| by_key::recognise(tree.statement(), &catalog, &mut types));
                let again = again.and_then(|again| again.permitted(&acting, &catalog));
                let again = again.filter(|f| f.returns(&prepared.columns) && f.uses_now == by_key.uses_now);
                let Some(again) = again else { return Ok(None) };
                by_key = Arc::new(again);
                *prepared.by_key.lock() = Some(by_key.clone());
            }
            for table in by_key.tables() {
                match txn.lock_table(table, by_key.writes()).await {
                    // Dropped, or given another identity by TRUNCATE, meanwhile: the name is looked up again below.
                    Err(error) if error.state.0 == "42P01" && txn.catalog().version() != by_key.version => break,
                    locked => locked?,
                }
            }
            // Locked: from here on the definition stays. It may have changed while this waited.
            if txn.catalog().version() == by_key.version {
                return by_key.run(txn, bound).await;
            }
        }
    }

    /// A transaction of this session.
    pub(crate) fn new_transaction(&self, isolation: Isolation) -> Txn {
        self.database.engine.begin(isolation).of_session(&self.advisory).seen_by(&self.viewer)
    }

    /// Begins a transaction where none is open; answers its number.
    pub(crate) async fn ensure_transaction(&mut self) -> u64 {
        let isolation = self.isolation.unwrap_or_else(|| self.shared.settings.lock().default_isolation());
        let mut slot = self.shared.cell.lock().await;
        if slot.txn.is_none() {
            slot.number += 1;
            slot.queried = false;
            let txn = self.new_transaction(isolation);
            self.shared.activity.began_transaction(txn.number(), self.database.engine.env().unix_micros());
            slot.txn = Some(txn);
            if !std::mem::take(&mut slot.timed) {
                *self.clock.lock() = None;
            }
        }
        let settings = self.shared.settings.lock();
        let txn = slot.open();
        txn.set_lock_timeout(settings.timeouts().lock);
        txn.set_read_only(settings.read_only());
        slot.number
    }

    /// Where the open transaction is SERIALIZABLE READ ONLY DEFERRABLE, before its first statement: waits until its
    /// snapshot is safe.
    pub(crate) async fn wait_for_snapshot(&self) {
        if self.shared.settings.lock().deferrable() {
            self.shared.cell.lock().await.open().wait_for_safe_snapshot().await;
        }
    }

    /// Ends the implicit transaction of a pipeline (Sync) or of a multi-statement simple query.
    pub async fn sync(&mut self) -> Result<()> {
        self.running = None;
        self.shared.cell.lock().await.timed = false;
        let alone = {
            let mut block = self.shared.block.lock();
            if matches!(*block, Block::Pipeline | Block::Message) {
                *block = Block::None;
                self.isolation = None;
            }
            *block == Block::None
        };
        if !alone {
            return Ok(());
        }
        let open = self.transaction().await;
        let committed = Box::pin(self.shared.commit()).await;
        self.end_cursors(open.filter(|_| committed.is_ok()));
        match committed {
            Err(error) => Err(self.hidden(error).await),
            done => done,
        }
    }

    /// Gives up the open transaction without waiting: it is rolled back in the background. No rows of it may be under
    /// way.
    pub fn abandon(&mut self) {
        *self.shared.block.lock() = Block::None;
        self.cursors.clear();
        if let Ok(mut slot) = self.shared.cell.try_lock() {
            drop(slot.take());
        }
        self.shared.settings.lock().end(false);
    }

    /// Where its functions leave warnings and notices for the client.
    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    /// Rolls back what is open: the client left.
    pub async fn close(mut self) {
        self.cursors.clear();
        if let Err(error) = self.shared.rollback().await {
            tracing::warn!(%error, "rollback failed");
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.advisory.unlock_all();
        self.shared.voice.leave();
        self.database.engine.end_space(&self.viewer);
    }
}
