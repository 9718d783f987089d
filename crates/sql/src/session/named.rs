//! Prepared statements by name: PREPARE, EXECUTE, DEALLOCATE, DISCARD, and the protocol's Parse and Close.
//!
//! 1. Those of PREPARE and those of the protocol are the same, in one space of names. The protocol's unnamed one is
//!    called "".
//! 2. They belong to the session: no rollback brings one back or takes one away.
//! 3. EXECUTE runs the statement that it was described with, or fails.
//! 4. The memory of named statements is bounded, for each session and for all together.
use crate::cancel::CancelToken;
use crate::cast::LOOSE;
use crate::database::Account;
use crate::error::unsupported;
use crate::parse::constants::constant;
use crate::parse::types::data_type;
use crate::pgcatalog::{PreparedStatement, SessionInfo, System};
use crate::session::prepared::Prepared;
use crate::session::{Describing, Session};
use crate::stack::on_stack_for;
use crate::statement::dispatch::refuse_write;
use crate::statement::explain;
use crate::statement::generic::Generics;
use crate::statement::kind::Task;
use crate::statement::outcome::{Outcome, command};
use crate::statement::run::{LazyState, Run};
use crate::transaction::Block;
use crate::values::field_type;
use datafusion::arrow::datatypes::{Field, SchemaRef};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use terrace_engine::types::clock;
use terrace_engine::{Catalog, ColumnDef, DataType, Datum, EngineError, Result, Table};
use terrace_grammar::statement::{
    CreateTableAs, Discard, Execute, Explain, Expr, Ident, Prepare, Statement, TypeName, Written,
};
use terrace_storage::ObjectId;

/// A prepared statement that has a name.
pub struct Named {
    pub prepared: Arc<Prepared>,
    /// PostgreSQL's OIDs of the parameters' types as the client stated them, else as inferred.
    pub parameters: Vec<u32>,
    /// What the client sent, where it was PREPARE that made it.
    pub by_prepare: Option<Arc<str>>,
}

/// Bytes that the named statements of a session may take, about; and those of all sessions.
const SESSION_BYTES: usize = 128 << 20;
const ALL_BYTES: usize = 1 << 30;

/// The memory that a statement takes. (Measured with parsed and planned statements: plain ones, and long lists of
/// literals.)
fn bytes_of(sql: &str) -> usize {
    (16 << 10) + 150 * sql.len()
}

/// A statement with a name, and what is charged for it.
pub(crate) struct Kept {
    statement: Arc<Named>,
    name: String,
    /// Where it is shown.
    system: Option<System>,
    bytes: usize,
    accounts: [Account; 2],
}

impl Kept {
    /// 54000 where a session has too many, 53200 where all have.
    fn new((name, statement): (&str, Named), info: &SessionInfo, own: &Account, all: &Account) -> Result<Kept> {
        let bytes = bytes_of(&statement.prepared.sql);
        let refuse = |state, whose: &str, most: usize| {
            let message = format!("the prepared statements of {whose} take more than {} MB", most >> 20);
            let hint = "Close some (DEALLOCATE), or use the unnamed statement.";
            EngineError::new(state, message).with_hint(hint)
        };
        assert!(!Arc::ptr_eq(own, all), "invariant 4: there are two bounds");
        // Too much may be charged for a moment. At worst, another statement is refused meanwhile.
        let (statement, accounts) = (Arc::new(statement), [own.clone(), all.clone()]);
        let system = info.system.clone();
        if let Some(system) = &system {
            let (at, text) = (system.observed.now_micros(), statement.by_prepare.as_ref());
            let (text, by_prepare) = (text.unwrap_or(&statement.prepared.sql).clone(), text.is_some());
            let shown = PreparedStatement { text, parameters: statement.prepared.parameters.clone(), by_prepare, at };
            system.prepared.lock().insert(name.to_owned(), shown);
        }
        let kept = Kept { statement, name: name.to_owned(), system, bytes, accounts };
        let [own, all] = [own, all].map(|account| account.fetch_add(bytes, Ordering::Relaxed) + bytes);
        match () {
            _ if own > SESSION_BYTES => Err(refuse("54000", "the session", SESSION_BYTES)),
            _ if all > ALL_BYTES => Err(refuse("53200", "all sessions", ALL_BYTES)),
            _ => Ok(kept),
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(system) = &self.system {
            system.prepared.lock().remove(&self.name);
        }
        for account in &self.accounts {
            let before = account.fetch_sub(self.bytes, Ordering::Relaxed);
            debug_assert!(before >= self.bytes, "invariant 4: what is given back was charged");
        }
    }
}

impl Session {
    /// 26000 where there is none of that name.
    pub fn named(&self, name: &str) -> Result<&Arc<Named>> {
        if name.is_empty() {
            let missing = || EngineError::new("26000", "unnamed prepared statement does not exist");
            return self.unnamed.as_ref().ok_or_else(missing);
        }
        let missing = || EngineError::new("26000", format!("prepared statement \"{name}\" does not exist"));
        self.named.get(name).map(|kept| &kept.statement).ok_or_else(missing)
    }

    /// Keeps a statement under a name that is free; 54000 or 53200 where there is no room for it.
    pub fn keep(&mut self, name: String, statement: Named) -> Result<()> {
        if name.is_empty() {
            self.unnamed = Some(Arc::new(statement));
            return Ok(());
        }
        let kept = Kept::new((&name, statement), &self.info, &self.named_bytes, &self.database.named_bytes)?;
        let before = self.named.insert(name, kept);
        assert!(before.is_none(), "refuse_taken came first");
        Ok(())
    }

    /// 42P05 where a statement has that name. A new unnamed one replaces the one before.
    pub fn refuse_taken(&mut self, name: &str) -> Result<()> {
        if name.is_empty() {
            self.unnamed = None;
        }
        match self.named.contains_key(name) {
            true => Err(EngineError::new("42P05", format!("prepared statement \"{name}\" already exists"))),
            false => Ok(()),
        }
    }

    pub fn forget(&mut self, name: &str) {
        if name.is_empty() {
            self.unnamed = None;
        } else {
            self.named.remove(name);
        }
    }

    /// DEALLOCATE. `None`: ALL.
    pub(crate) fn deallocate(&mut self, name: Option<&Ident>) -> Result<Outcome> {
        let Some(Ident { name, .. }) = name else {
            self.named.clear();
            return Ok(command("DEALLOCATE ALL"));
        };
        self.named(name)?;
        self.named.remove(name);
        Ok(command("DEALLOCATE"))
    }

    /// PREPARE. `within`: the statement that it is, and what cancels it.
    pub(crate) async fn prepare_named(
        &mut self,
        within: &Prepared,
        prepare: &Prepare,
        token: &Arc<CancelToken>,
    ) -> Result<Outcome> {
        let name = prepare.name.name.clone();
        self.refuse_taken(&name)?;
        let catalog = self.catalog().await;
        let stated = prepare.types.iter().map(|of| self.stated_type(of, &catalog)).collect::<Result<Vec<_>>>()?;
        let tree = within.statement.as_ref().and_then(|tree| tree.of_prepared());
        let tree = tree.expect("a PREPARE has a statement in it");
        let place = tree.place();
        let whole = tree.text().into();
        let sql = tree.text()[place.start as usize..place.end as usize].into();
        let describing = Describing::Within(token);
        let prepared = Box::pin(self.prepare_tree(sql, Some(tree), &stated, describing)).await?;
        let parameters = prepared.parameter_oids(&catalog);
        self.keep(name, Named { prepared, parameters, by_prepare: Some(whole) })?;
        Ok(command("PREPARE"))
    }

    pub(crate) async fn discard(&mut self, what: Discard) -> Result<Outcome> {
        Ok(command(match what {
            Discard::All if self.in_block().await => {
                return Err(EngineError::new("25001", "DISCARD ALL cannot run inside a transaction block"));
            }
            Discard::All => {
                self.named.clear();
                self.cursors.clear();
                self.forget_plans();
                self.shared.cell.lock().await.given = Default::default();
                self.shared.settings.lock().reset_all();
                self.shared.settings.lock().set_session_user(None, false);
                self.advisory.unlock_all();
                self.ensure_transaction().await;
                self.shared.voice.unlisten(None);
                self.discard_temporary().await?;
                "DISCARD ALL"
            }
            Discard::Plans => {
                self.forget_plans();
                "DISCARD PLANS"
            }
            Discard::Sequences => {
                self.shared.cell.lock().await.given = Default::default();
                "DISCARD SEQUENCES"
            }
            Discard::Temporary => {
                self.discard_temporary().await?;
                "DISCARD TEMP"
            }
        }))
    }

    async fn discard_temporary(&mut self) -> Result<()> {
        self.ensure_transaction().await;
        self.shared.cell.lock().await.open().discard_temporary().await
    }

    /// Whether earlier statements of the client belong to the same transaction.
    pub(crate) async fn in_block(&self) -> bool {
        match self.shared.block() {
            Block::None => false,
            Block::Pipeline => self.shared.cell.lock().await.txn.is_some(),
            Block::Message | Block::Explicit | Block::Failed => true,
        }
    }

    fn forget_plans(&mut self) {
        self.shapes = Default::default();
        self.parsed = Default::default();
    }

    /// The statement that an EXECUTE of that name runs.
    pub(crate) fn executed(&self, name: &str) -> Result<&Arc<Named>> {
        let named = self.named(name)?;
        match named.prepared.executes {
            Some(_) => Err(unsupported("EXECUTE of an EXECUTE")),
            None => Ok(named),
        }
    }

    /// Runs the statement that an EXECUTE names.
    pub(crate) fn execute_inner<'e>(
        &'e mut self,
        inner: &'e Arc<Prepared>,
        values: Vec<Datum>,
        token: &'e Arc<CancelToken>,
    ) -> BoxFuture<'e, Result<Outcome>> {
        assert!(inner.executes.is_none(), "an EXECUTE of an EXECUTE was refused");
        match &inner.statement {
            None => Box::pin(std::future::ready(Ok(Outcome::Empty))),
            Some(tree) => Box::pin(async move {
                let depth = self.depth_of(inner).await;
                let done = on_stack_for(depth, Box::pin(self.try_execute(inner, tree, values, token))).await?;
                match (&done, &inner.columns) {
                    (Outcome::Rows { schema, .. }, Some(described)) if are_changed(described, schema) => Err(changed()),
                    _ => Ok(done),
                }
            }),
        }
    }

    /// 0A000 where the statement's columns are not those that it was described with (invariant 3).
    async fn refuse_changed(&mut self, inner: &Arc<Prepared>, token: &Arc<CancelToken>) -> Result<()> {
        let (Some(tree), Some(described)) = (&inner.statement, &inner.columns) else { return Ok(()) };
        let types: Vec<Option<DataType>> = self.types_now(&inner.parameters).await.iter().copied().map(Some).collect();
        let depth = self.depth_of(inner).await;
        let describe = Box::pin(self.described(tree, &types, Describing::Within(token)));
        match on_stack_for(depth, describe).await?.columns {
            Some(now) if are_changed(described, &now) => Err(changed()),
            _ => Ok(()),
        }
    }

    /// CREATE TABLE AS EXECUTE: makes a table of what the statement answers. 42809 where that is no query.
    pub(crate) async fn execute_into(
        &mut self,
        table: &CreateTableAs,
        inner: &Arc<Prepared>,
        values: Vec<Datum>,
        token: &Arc<CancelToken>,
    ) -> Result<Outcome> {
        let Some((tree, Statement::Query(query))) = inner.statement.as_ref().map(|tree| (tree, tree.statement()))
        else {
            return Err(EngineError::new("42809", "prepared statement is not a SELECT"));
        };
        self.refuse_changed(inner, token).await?;
        let create = CreateTableAs { query: query.as_ref().clone(), ..table.clone() };
        let made = Arc::new(Prepared {
            sql: inner.sql.clone(),
            parameters: inner.parameters.clone(),
            columns: None,
            notices: vec![],
            statement: Some(tree.made(Statement::CreateTableAs(Box::new(create)))),
            depth: inner.depth,
            by_key: Mutex::new(None),
            generics: Generics::of(&self.generics),
            executes: None,
            heavy: None,
            entry: OnceLock::new(),
            attached: OnceLock::new(),
        });
        let done = self.execute_inner(&made, values, token).await?;
        Ok(match done {
            // Nothing was asked for, and it was made.
            Outcome::Command { notices, .. } if !table.with_data && notices.iter().all(|n| n.state.0 != "42P07") => {
                Outcome::Command { tag: "SELECT 0".into(), notices }
            }
            done => done,
        })
    }

    /// EXPLAIN of an EXECUTE: of the statement that it names, with these values.
    pub(crate) async fn explain_execute(
        &mut self,
        explain: &Explain,
        execute: &Execute,
        token: &Arc<CancelToken>,
    ) -> Result<Outcome> {
        let inner = self.executed(&execute.name.name)?.prepared.clone();
        let Some(tree) = &inner.statement else { return Err(unsupported("EXPLAIN of no statement")) };
        if self.shared.settings.lock().read_only() && explain::analyzes(explain)? {
            refuse_write(tree.statement())?;
        }
        let values = self.arguments(execute, &inner, token).await?;
        self.refuse_changed(&inner, token).await?;
        let depth = self.depth_of(&inner).await;
        let task = ("EXPLAIN", Task::Explain(explain, tree.statement()));
        let done = on_stack_for(depth, Box::pin(self.in_transaction(&inner, task, &values, token))).await?;
        Ok(done.into_outcome(self, depth, token))
    }

    /// The values of an EXECUTE's arguments.
    pub(crate) async fn arguments(
        &mut self,
        execute: &Execute,
        inner: &Arc<Prepared>,
        token: &Arc<CancelToken>,
    ) -> Result<Vec<Datum>> {
        let name = &execute.name.name;
        if !Arc::ptr_eq(&self.executed(name)?.prepared, inner) {
            return Err(changed());
        }
        let wanted = self.types_now(&inner.parameters).await;
        if execute.args.len() != wanted.len() {
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            let detail = format!("Expected {} parameters but got {}.", wanted.len(), execute.args.len());
            return Err(EngineError::new("42601", message).with_detail(detail));
        }
        let columns: Vec<ColumnDef> =
            (1..).zip(wanted.iter()).map(|(n, data_type)| ColumnDef::new(&format!("${n}"), *data_type)).collect();
        let args = execute.args.iter().zip(&columns);
        let constants: Option<Vec<Result<Datum>>> =
            self.reading(|| args.clone().map(|(arg, column)| constant(&arg.expr, column)).collect()).await;
        match constants {
            Some(values) => values.into_iter().collect(),
            None => self.evaluated(&execute.args, columns, token).await,
        }
        .map_err(not_a_column)
    }

    /// Reads values that a client states in its style and, where they ask for the clock (`now`), as of the transaction
    /// that they are used in: one that has not begun will begin at that time.
    pub async fn reading<T>(&mut self, work: impl Fn() -> T) -> T {
        let read = |session: &Session| clock::scope(session.now(), || session.style().scope(&work));
        let (done, of_clock) = read(self);
        let block = self.shared.block();
        let mut slot = self.shared.cell.lock().await;
        // Outside of blocks, what is open ends before the next statement.
        if !of_clock || block == Block::Failed || (block != Block::None && slot.txn.is_some()) {
            return done;
        }
        slot.timed = true;
        drop(slot);
        *self.clock.lock() = None;
        read(self).0
    }

    /// The transaction's time, in microseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        LazyState::new(&self.database.state, &self.clock).now()
    }

    async fn evaluated(
        &mut self,
        arguments: &[Written],
        columns: Vec<ColumnDef>,
        token: &Arc<CancelToken>,
    ) -> Result<Vec<Datum>> {
        let arguments: Vec<Expr> = arguments.iter().map(|arg| arg.expr.clone()).collect();
        let number = self.ensure_transaction().await;
        self.wait_for_snapshot().await;
        let state = LazyState::new(&self.database.state, &self.clock);
        let run = Run {
            engine: &self.database.engine,
            state: &state,
            info: &self.info,
            cell: &self.shared.cell,
            number,
            cancel: token,
            parameters: &[],
            types: &[],
            tree: None,
            captured: None,
            earlier: None,
            generics: None,
        };
        let positions: Vec<usize> = (0..columns.len()).collect();
        let table = Arc::new(Table::new(ObjectId(0), "parameters".into(), columns, vec![]));
        let arguments = [arguments];
        let values = run.value_rows(&table, &positions, &arguments, None);
        let rows = Box::pin(clock::at(state.now(), Box::pin(values))).await?;
        if self.shared.block() == Block::None {
            // The statement is of the same time.
            self.shared.cell.lock().await.timed = true;
        }
        assert_eq!(rows.len(), 1, "a row of values for a row of expressions");
        Ok(rows.into_iter().next().expect("a row of values for a row of expressions"))
    }

    /// `unknown` leaves it to the server.
    fn stated_type(&self, written: &TypeName, catalog: &Catalog) -> Result<Option<DataType>> {
        self.info.permit_type(catalog, written)?;
        match written.name.parts() {
            [name] if name.name == "unknown" => Ok(None),
            // As a client that states its OID.
            _ if is_oid(written) && written.dimensions.is_empty() => Ok(Some(DataType::Int8)),
            _ if is_oid(written) => Ok(DataType::Int8.array()),
            _ => Ok(Some(without_modifier(data_type(written, catalog)?))),
        }
    }
}

/// A parameter has no length and no precision, whatever is written.
fn without_modifier(of: DataType) -> DataType {
    match of {
        DataType::Numeric(_) => DataType::Numeric(None),
        DataType::Varchar(_) => DataType::Varchar(0),
        DataType::Char(_) => LOOSE,
        of => of.item().and_then(|item| without_modifier(item).array()).unwrap_or(of),
    }
}

fn changed() -> EngineError {
    EngineError::new("0A000", "cached plan must not change result type")
}

/// Whether columns are others than a client was told: others' names, or types whose values it would read wrongly.
pub fn are_changed(described: &SchemaRef, now: &SchemaRef) -> bool {
    // Texts of all kinds look alike on the wire.
    let form =
        |field: &Field| field_type(field).map(|of| if of.is_text() { DataType::Text.pg_oid() } else { of.pg_oid() });
    let same = |(told, now): (&Arc<Field>, &Arc<Field>)| told.name() == now.name() && form(told) == form(now);
    let (told, now_told) = (described.fields(), now.fields());
    !Arc::ptr_eq(described, now) && (told.len() != now_told.len() || !told.iter().zip(now_told).all(same))
}

fn is_oid(written: &TypeName) -> bool {
    let own = match written.name.parts() {
        [schema, own] if schema.name == "pg_catalog" => own,
        [own] => own,
        _ => return false,
    };
    own.name == "oid" && written.modifiers.is_empty() && !written.set_of && !written.of_column
}

/// The error of an argument of the wrong type: that of a value of INSERT, but about a parameter instead of a column.
fn not_a_column(mut error: EngineError) -> EngineError {
    if error.state.0 == "42804"
        && let Some(parameter) = error.column.take()
    {
        let rest =
            error.message.split_once(" is of type ").and_then(|(_, r)| r.split_once(" but expression is of type "));
        if let Some((wanted, given)) = rest {
            error.message =
                format!("parameter {parameter} of type {given} cannot be coerced to the expected type {wanted}");
        }
    }
    error
}
