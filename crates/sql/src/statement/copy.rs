//! COPY between a table or a query and the client, or a file of the server.
//!
//! Data comes and goes in the protocol's copy messages or in a file; the server handles both. Here are the statement
//! ([`options`]), the lines of incoming data ([`lines`]), their fields ([`fields`]), the binary format ([`binary`]) and
//! the rows that they become.
//!
//! 1. Rows are stored as their lines arrive: memory holds one message's lines, not the data. Where there is a
//!    WHERE, a table has CHECK constraints, or a column left out is numbered by a sequence, rows go in batches
//!    ([`BATCH_ROWS`]).
//! 2. A COPY that does not reach its end leaves nothing: its transaction is rolled back, also if the COPY is only
//!    dropped.
//! 3. WHERE is evaluated over rows with their defaults, before anything else is asked of them ([`filter`]).
//! 4. An error names the table, the line, and the column if it is about one.
//!
//! FREEZE is accepted and changes nothing: rows are never rewritten to become visible.
//!
//! Source: PostgreSQL 15 documentation, COPY, "File Formats".
pub mod binary;
pub(crate) mod fields;
mod filter;
pub(crate) mod lines;
pub(crate) mod options;

use crate::access::hidden;
use crate::cancel::{CancelToken, Canceller};
use crate::database::SqlDatabase;
use crate::error::{undefined_column, unsupported};
use crate::observe::CopyProgress;
use crate::parse::identity::Identity;
use crate::parse::numbered as numbered_schema;
use crate::parse::relation;
use crate::parse::sequence_calls::sequence_of;
use crate::pgcatalog::SessionInfo;
use crate::statement::changes::named_columns;
use crate::statement::checks::Finishing;
use crate::statement::run::{LazyState, Run};
use crate::statement::shared::Shared;
use crate::transaction::{Block, TxnSlot};
use crate::values::{assign_datum, check_not_null, is_sequence, live_columns};
use binary::{ReadField, Tuples};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::execution_props::ExecutionProps;
use fields::Fields;
use lines::Lines;
pub use options::CopyFormat;
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use terrace_engine::catalog::access::Rights;
use terrace_engine::catalog::roles::{READ_FILES, WRITE_FILES};
use terrace_engine::types::clock;
use terrace_engine::{Datum, EngineError, RelationName, Result, Table, Txn};
use terrace_grammar::statement::{self as tree, CopySource, CopyTarget};

/// What a COPY does once it is planned.
pub(crate) enum Copy {
    In(Box<Target>),
    Out(Box<Source>),
}

/// Where rows come from, and where they go.
pub(crate) struct Source {
    pub(crate) format: CopyFormat,
    pub(crate) rows: SendableRecordBatchStream,
    pub(crate) file: Option<String>,
    /// The table's OID; 0 for a query.
    pub(crate) relation: u32,
}

/// Rows and bytes of lines that are checked together.
const BATCH_ROWS: usize = 1024;
const BATCH_BYTES: usize = 1 << 20;

/// A row, and the line that it came from.
type Numbered = (u64, Vec<Datum>);

/// Where rows go.
pub(crate) struct Target {
    table: Arc<Table>,
    /// Position in the row of each field.
    columns: Vec<usize>,
    /// A row with the other columns' defaults.
    base: Vec<Datum>,
    /// Positions of those that a sequence numbers, and its name.
    numbered: Vec<(usize, RelationName)>,
    /// Which rows are stored (invariant 3).
    wanted: Option<filter::Wanted>,
    format: CopyFormat,
    /// Of the server, if the data does not come from the client.
    file: Option<String>,
}

/// Evaluates expressions over rows that come later.
pub(crate) struct CopyContext {
    pub(crate) database: SqlDatabase,
    pub(crate) info: SessionInfo,
    /// The transaction's number and time.
    pub(crate) number: u64,
    pub(crate) clock: Mutex<Option<ExecutionProps>>,
}

/// Data that has come, and is not read yet.
enum Incoming {
    Lines(Lines, Fields),
    /// `None`: nobody has said how to read fields.
    Binary(Tuples, Option<ReadField>),
}

impl Incoming {
    fn push(&mut self, bytes: &[u8]) {
        match self {
            Incoming::Lines(lines, _) => lines.push(bytes),
            Incoming::Binary(tuples, _) => tuples.push(bytes),
        }
    }

    /// Of the line or the row that was found last.
    fn number(&self) -> u64 {
        match self {
            Incoming::Lines(lines, _) => lines.number(),
            Incoming::Binary(tuples, _) => tuples.number(),
        }
    }

    /// Of the row that was found last.
    fn bytes(&self) -> usize {
        match self {
            Incoming::Lines(_, fields) => fields.bytes(),
            Incoming::Binary(tuples, _) => tuples.fields().flatten().map(<[u8]>::len).sum(),
        }
    }
}

/// `COPY ... FROM` that runs: give it the data as it comes, then [`CopyIn::finish`] it.
pub struct CopyIn {
    target: Box<Target>,
    incoming: Incoming,
    shared: Arc<Shared>,
    token: Arc<CancelToken>,
    canceller: Canceller,
    context: CopyContext,
    /// What rows pass through, once it is made; `None` within: nothing.
    checking: Option<Option<Finishing>>,
    /// Rows stored.
    count: u64,
    progress: CopyProgress,
    over: bool,
}

impl Run<'_> {
    pub(crate) async fn copy(&self, copy: &tree::Copy) -> Result<Copy> {
        let file = match &copy.target {
            CopyTarget::Client => None,
            CopyTarget::File(path) => Some(self.permitted_file(path, copy.from).await?),
            CopyTarget::Program(_) => {
                return Err(unsupported("COPY to or from a program of the server")
                    .with_hint("psql's \\copy copies to and from the client's files and programs."));
            }
        };
        let format = options::format(&copy.options, !copy.from)?;
        match &copy.source {
            CopySource::Table { name, columns } if copy.from => {
                let name = relation(name)?;
                if self.begin_statement().await.view(&name).is_some() {
                    let error = EngineError::new("42809", format!("cannot copy to view \"{}\"", name.name));
                    let hint = "To enable copying to a view, provide an INSTEAD OF INSERT trigger.";
                    return Err(error.with_hint(hint));
                }
                let table = self.write_table(&name, Rights::INSERT).await?;
                let columns = copied_columns(columns, &table)?;
                self.permit_columns(&table, Rights::INSERT, &columns).await?;
                let numbered = numbered(&table, &columns);
                let base = self.copy_defaults(&table, &columns, &numbered).await?;
                let format = format.resolve(|name| at(&table, &columns, name))?;
                let wanted = match &copy.filter {
                    Some(filter) => Some(self.wanted(&table, filter).await?),
                    None => None,
                };
                Ok(Copy::In(Box::new(Target { table, columns, base, numbered, wanted, format, file })))
            }
            CopySource::Table { name, columns } => {
                let name = relation(name)?;
                let catalog = self.begin_statement().await;
                self.info.permit_lookup(&catalog, &name)?;
                let table = catalog.table(&name).ok_or_else(|| match catalog.view(&name) {
                    Some(_) => EngineError::new("42809", format!("cannot copy from view \"{name}\""))
                        .with_hint("Try the COPY (SELECT ...) TO variant."),
                    None => crate::error::missing_relation(&catalog, &name),
                })?;
                if is_sequence(table) {
                    let message = format!("cannot copy from sequence \"{}\"", name.name);
                    return Err(EngineError::new("42809", message));
                }
                let positions = copied_columns(columns, table)?;
                let format = format.resolve(|name| at(table, &positions, name))?;
                let text = table_query(table, &positions);
                let parsed = crate::parse::statement(&text)?.expect("a query is a statement");
                let tree::Statement::Query(query) = parsed.statement() else { unreachable!("{text} is a query") };
                let plan = self.plan_tree(query).await?;
                self.copy_out(plan, format, file, table.oid.0).await
            }
            CopySource::Query(statement, _) => match statement.as_ref() {
                tree::Statement::Query(query) => {
                    let plan = self.plan_tree(query).await?;
                    self.copy_out(plan, format, file, 0).await
                }
                _ => Err(unsupported("COPY of a change of rows")),
            },
        }
    }

    /// A file that the current role may read or write.
    async fn permitted_file(&self, path: &str, from: bool) -> Result<String> {
        let (oid, role, verb) = match from {
            true => (READ_FILES, "pg_read_server_files", "from"),
            false => (WRITE_FILES, "pg_write_server_files", "to"),
        };
        let catalog = self.begin_statement().await;
        if !self.info.actor(&catalog).has(oid) {
            let message = format!("must be superuser or have privileges of the {role} role to COPY {verb} a file");
            return Err(EngineError::new("42501", message)
                .with_hint("Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone."));
        }
        if !from && !std::path::Path::new(path).is_absolute() {
            let error = EngineError::new("42602", "relative path not allowed for COPY to file");
            return Err(error.with_hint("Name the file from the root of the file system."));
        }
        Ok(path.to_owned())
    }

    async fn copy_out(
        &self,
        plan: LogicalPlan,
        format: CopyFormat,
        file: Option<String>,
        relation: u32,
    ) -> Result<Copy> {
        let names: Vec<String> =
            plan.schema().fields().iter().map(|f| crate::plan::naming::shown(f.name()).to_string()).collect();
        let format = format.resolve(|name| {
            names.iter().position(|n| n == name).ok_or_else(|| {
                EngineError::new("42703", format!("column \"{name}\" of the query of COPY does not exist"))
            })
        })?;
        let physical = self.physical(&plan).await?;
        Ok(Copy::Out(Box::new(Source { format, rows: self.stream(physical, None)?, file, relation })))
    }

    /// A row of defaults for the columns that are neither copied nor numbered. Such defaults are constant within a
    /// statement.
    async fn copy_defaults(
        &self,
        table: &Arc<Table>,
        columns: &[usize],
        numbered: &[(usize, RelationName)],
    ) -> Result<Vec<Datum>> {
        let rest: Vec<usize> = live_columns(table)
            .filter(|(at, c)| c.default().is_some() && !columns.contains(at) && !numbered.iter().any(|(n, _)| n == at))
            .map(|(at, _)| at)
            .collect();
        if let Some(at) = self.varying_defaults(table, &rest).await?.first() {
            let name = &table.columns[*at].name;
            return Err(unsupported(format!("COPY without column \"{name}\", whose default differs from row to row"))
                .with_hint("Copy the column too, or into another table, and INSERT ... SELECT from there."));
        }
        let others: Vec<usize> = columns.iter().copied().chain(numbered.iter().map(|(at, _)| *at)).collect();
        let rows = self.value_rows(table, &others, &[vec![null(); others.len()]], None).await?;
        Ok(rows.into_iter().next().expect("a row of values for a row of expressions"))
    }
}

/// The columns that are copied: those that are named, or all but generated ones. 42P10
fn copied_columns(names: &[tree::Ident], table: &Table) -> Result<Vec<usize>> {
    let mut columns = named_columns(names, table)?;
    let generated = |at: &usize| table.columns[*at].generated.is_some();
    match columns.iter().find(|at| !names.is_empty() && generated(at)) {
        Some(at) => {
            let message = format!("column \"{}\" is a generated column", table.columns[*at].name);
            Err(EngineError::new("42P10", message).with_detail("Generated columns cannot be used in COPY."))
        }
        None => {
            columns.retain(|at| !generated(at));
            Ok(columns)
        }
    }
}

/// The columns that are not copied and that a sequence numbers.
fn numbered(table: &Table, columns: &[usize]) -> Vec<(usize, RelationName)> {
    let unlisted = live_columns(table).filter(|(at, _)| !columns.contains(at));
    unlisted.filter_map(|(at, c)| Some((at, sequence_of(c)?))).collect()
}

fn null() -> tree::Expr {
    tree::Expr { at: 0, kind: tree::ExprKind::Literal(tree::Literal::Null) }
}

/// The position among the copied columns of the one of that name.
fn at(table: &Table, columns: &[usize], name: &str) -> Result<usize> {
    let position = live_columns(table).find(|(_, c)| c.name == name).map(|(at, _)| at);
    let position = position.ok_or_else(|| undefined_column(name, &table.name))?;
    columns.iter().position(|at| *at == position).ok_or_else(|| {
        EngineError::new("42P10", format!("FORCE column \"{name}\" is not referenced by COPY")).on_table(table)
    })
}

/// `SELECT a, b FROM t`.
fn table_query(table: &Table, columns: &[usize]) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let columns: Vec<String> = columns.iter().map(|at| quoted(&table.columns[*at].name)).collect();
    format!("SELECT {} FROM {}.{}", columns.join(", "), numbered_schema(table.space), quoted(&table.name))
}

impl CopyIn {
    pub(crate) fn new(
        target: Box<Target>,
        shared: Arc<Shared>,
        token: Arc<CancelToken>,
        canceller: Canceller,
        context: CopyContext,
    ) -> CopyIn {
        let incoming = match target.format.binary {
            true => Incoming::Binary(Tuples::new(), None),
            false => Incoming::Lines(Lines::new(target.format.clone()), Fields::default()),
        };
        let progress = CopyProgress::begin(&shared.activity, target.table.oid.0, true, target.file.is_some());
        CopyIn { target, incoming, shared, token, canceller, context, checking: None, count: 0, progress, over: false }
    }

    pub fn progress(&self) -> &CopyProgress {
        &self.progress
    }

    /// The server's file that the data lies in; `None`: the client sends it.
    pub fn file(&self) -> Option<&str> {
        self.target.file.as_deref()
    }

    /// Whether the data is in the binary format.
    pub fn is_binary(&self) -> bool {
        self.target.format.binary
    }

    /// Says how the fields of the binary format are read; without it such a COPY is refused.
    pub fn reads_fields_by(&mut self, read: ReadField) {
        if let Incoming::Binary(_, how) = &mut self.incoming {
            *how = Some(read);
        }
    }

    /// Fields of each line.
    pub fn columns(&self) -> usize {
        self.target.columns.len()
    }

    /// Done when the statement is cancelled; for waiting on data and a cancel at once.
    pub async fn cancelled(&self) -> EngineError {
        let never = std::future::pending::<Result<()>>();
        self.token.run(never).await.expect_err("only a cancel ends this wait")
    }

    /// Takes the next part of the data, cut anywhere. After an error the COPY has failed and takes no more.
    pub async fn data(&mut self, bytes: &[u8]) -> Result<()> {
        assert!(!self.over, "a COPY that ended takes no data");
        self.incoming.push(bytes);
        self.progress.passed(0, bytes.len() as u64);
        let stored = self.store(false).await;
        self.checked(stored).await
    }

    /// The data is complete. Answers the command tag.
    pub async fn finish(mut self) -> Result<String> {
        assert!(!self.over, "a COPY ends once");
        let mut stored = self.store(true).await;
        if stored.is_ok() {
            stored = self.judge().await;
        }
        self.checked(stored).await?;
        self.over = true;
        let committed = self.shared.succeed().await;
        self.canceller.end(&self.token);
        if let Err(error) = committed {
            self.shared.fail().await;
            return Err(self.hidden(error).await);
        }
        Ok(format!("COPY {}", self.count))
    }

    /// The client gives up; answers the statement's error.
    pub async fn fail(mut self, message: &str) -> EngineError {
        let error = EngineError::new("57014", format!("COPY from stdin failed: {message}"));
        let error = error.with_context(format!("COPY {}, line {}", self.target.table.name, self.incoming.number() + 1));
        match self.checked(Err(error)).await {
            Err(error) => error,
            Ok(()) => unreachable!("an error stays one"),
        }
    }

    async fn checked(&mut self, result: Result<()>) -> Result<()> {
        let Err(error) = result else { return Ok(()) };
        self.over = true;
        let error = self.hidden(error).await;
        self.shared.fail().await;
        self.canceller.end(&self.token);
        Err(error)
    }

    /// An error as the current role may see it, which has written the columns that are copied.
    async fn hidden(&self, error: EngineError) -> EngineError {
        if error.shown.is_none() {
            return error;
        }
        let own = self.shared.cell.lock().await.txn.as_ref().map(|txn| txn.catalog());
        let catalog = own.unwrap_or_else(|| self.context.database.engine.catalog());
        hidden(error, &self.context.info.actor(&catalog), &catalog, &self.target.columns)
    }

    /// Whether the foreign keys hold. The error is not one of a line.
    async fn judge(&mut self) -> Result<()> {
        let token = self.token.clone();
        token.run(async { still_open(&mut *self.shared.cell.lock().await)?.judge_statement().await }).await
    }

    /// Stores the rows of the lines that have come.
    async fn store(&mut self, at_end: bool) -> Result<()> {
        let token = self.token.clone();
        let style = self.shared.settings.lock().style();
        style.over(pin!(token.run(pin!(self.store_lines(at_end))))).await
    }

    async fn store_lines(&mut self, at_end: bool) -> Result<()> {
        let table = &self.target.table;
        if self.target.numbered.is_empty() && self.target.wanted.is_none() && table.is_plain() {
            let shared = self.shared.clone();
            let mut slot = shared.cell.lock().await;
            let txn = still_open(&mut slot)?;
            while let Some(row) = self.next_row(at_end)? {
                self.store_row(txn, row).await?;
            }
            return Ok(());
        }
        loop {
            let (rows, more) = self.batch(at_end);
            self.store_batch(rows).await?;
            if !more? {
                return Ok(());
            }
        }
    }

    /// The row of the next line that has come.
    fn next_row(&mut self, at_end: bool) -> Result<Option<Numbered>> {
        let now = LazyState::new(&self.context.database.state, &self.context.clock).now();
        let (lines, fields) = match &mut self.incoming {
            Incoming::Lines(lines, fields) => (lines, fields),
            Incoming::Binary(tuples, read) => return self.target.binary_row(tuples, *read, at_end),
        };
        loop {
            let line = match lines.next(at_end) {
                Ok(Some(line)) => line,
                // What has no line has an empty one where the header is.
                Ok(None) => {
                    let headless = at_end && lines.number() == 0 && self.target.format.matched;
                    let empty = headless.then_some(lines::Line { number: 1, bytes: b"" });
                    let row = empty.map_or(Ok(None), |line| self.target.row(line, fields));
                    return row.map(|_| None).map_err(|e| self.target.at_line(1, e));
                }
                Err(e) => return Err(self.target.at_line(lines.number(), e)),
            };
            let row = clock::scope(now, || self.target.row(line, fields)).0;
            let number = lines.number();
            if let Some(row) = row.map_err(|e| self.target.at_line(number, e))? {
                return Ok(Some((number, row)));
            }
        }
    }

    /// The next rows that have come, and whether there may be more, or the error of the line after them.
    fn batch(&mut self, at_end: bool) -> (Vec<Numbered>, Result<bool>) {
        let (mut rows, mut bytes) = (vec![], 0);
        while rows.len() < BATCH_ROWS && bytes < BATCH_BYTES {
            match self.next_row(at_end) {
                Ok(Some(row)) => rows.push(row),
                Ok(None) => return (rows, Ok(false)),
                Err(e) => return (rows, Err(e)),
            }
            bytes += self.incoming.bytes();
        }
        assert!(rows.len() <= BATCH_ROWS, "invariant 1: a batch, not the data");
        (rows, Ok(true))
    }

    /// Numbers rows, checks them, and stores them.
    async fn store_batch(&mut self, mut rows: Vec<Numbered>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let state = LazyState::new(&self.context.database.state, &self.context.clock);
        let run = Run {
            engine: &self.context.database.engine,
            state: &state,
            info: &self.context.info,
            cell: &self.shared.cell,
            number: self.context.number,
            cancel: &self.token,
            parameters: &[],
            types: &[],
            tree: None,
            captured: None,
            earlier: None,
            generics: None,
        };
        let table = &self.target.table;
        still_open(&mut *self.shared.cell.lock().await)?;
        for (at, sequence) in &self.target.numbered {
            let numbers = run.numbers(sequence, rows.len(), Identity::of(&table.columns[*at]).is_some()).await?;
            assert_eq!(numbers.len(), rows.len(), "a number for each row");
            for ((line, row), number) in rows.iter_mut().zip(numbers) {
                let value = assign_datum(Datum::Int8(number), table.columns[*at].data_type);
                row[*at] = value.map_err(|e| self.target.at_line(*line, e))?;
            }
        }
        if let Some(wanted) = &self.target.wanted {
            let all = rows.len();
            rows = Box::pin(run.wanted_of(wanted, rows)).await?;
            self.progress.left_out((all - rows.len()) as u64);
        }
        for (line, row) in &rows {
            check_not_null(table, row).map_err(|e| self.target.at_line(*line, e))?;
        }
        if self.checking.is_none() {
            // Once for all batches: planning costs more than checking.
            self.checking = Some(Box::pin(run.checking(table)).await?);
        }
        let mut all: Vec<&mut Vec<Datum>> = rows.iter_mut().map(|(_, row)| row).collect();
        if let Some(Some(by)) = &self.checking
            && let Some((n, error)) = Box::pin(run.violation_by(table, by, &mut all)).await?
        {
            return Err(self.target.at_line(rows[n].0, error));
        }
        let shared = self.shared.clone();
        let mut slot = shared.cell.lock().await;
        let txn = still_open(&mut slot)?;
        for row in rows {
            self.store_row(txn, row).await?;
        }
        Ok(())
    }

    async fn store_row(&mut self, txn: &mut Txn, (line, row): Numbered) -> Result<()> {
        let stored = match check_not_null(&self.target.table, &row) {
            Ok(()) => txn.insert(&self.target.table, &row).await.map(|_| ()),
            Err(e) => Err(e),
        };
        stored.map_err(|e| self.target.at_line(line, e))?;
        self.count += 1;
        self.progress.passed(1, 0);
        // Changing a page in memory does not wait, so other tasks would get no turn.
        if self.count.is_multiple_of(256) {
            turn().await;
        }
        Ok(())
    }
}

fn still_open(slot: &mut TxnSlot) -> Result<&mut Txn> {
    slot.txn.as_mut().ok_or_else(|| EngineError::new("25P01", "the transaction of this COPY has ended"))
}

impl Drop for CopyIn {
    /// Invariant 2, if the client or the future has gone.
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let mut block = self.shared.block.lock();
        match self.shared.cell.try_lock() {
            // A transaction that is dropped is rolled back.
            Ok(mut slot) => drop(slot.take()),
            // Another stream of the session is reading now: the block fails, so that nothing is committed after it.
            Err(_) => *block = Block::Failed,
        }
        if *block == Block::Explicit {
            *block = Block::Failed;
        }
        self.canceller.end(&self.token);
    }
}

impl Target {
    /// An error says on which line it was.
    fn at_line(&self, number: u64, error: EngineError) -> EngineError {
        let rest = error.context.as_deref().unwrap_or_default();
        let context = format!("COPY {}, line {number}{rest}", self.table.name);
        EngineError { context: Some(context), ..error }
    }

    /// The next row of the binary format that has come.
    fn binary_row(&self, tuples: &mut Tuples, read: Option<ReadField>, at_end: bool) -> Result<Option<Numbered>> {
        let read = read.ok_or_else(|| unsupported("the binary format of COPY here"))?;
        let name = |at: usize| &self.table.columns[self.columns[at]].name;
        let found = tuples.next(self.columns.len(), at_end);
        let number = tuples.number();
        match found {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            // Of the header.
            Err((error, _)) if number == 0 => return Err(error),
            Err((error, None)) => return Err(self.at_line(number, error)),
            Err((error, Some(at))) => {
                return Err(self.at_line(number, error.with_context(format!(", column {}", name(at)))));
            }
        }
        let mut row = self.base.clone();
        for (at, field) in tuples.fields().enumerate() {
            let of = self.table.columns[self.columns[at]].data_type;
            let value = field.map_or(Ok(Datum::Null), |bytes| read(bytes, of));
            let value = value.map_err(|error| error.with_context(format!(", column {}", name(at))));
            row[self.columns[at]] = value.map_err(|error| self.at_line(number, error))?;
        }
        Ok(Some((number, row)))
    }

    /// HEADER MATCH: 22P04 where the line is not the columns' names.
    fn match_header(&self, line: &lines::Line<'_>, fields: &Fields) -> Result<()> {
        let nothing = self.columns.is_empty() && line.bytes.is_empty();
        if !self.format.matched || nothing {
            return Ok(());
        }
        let context = || format!(": {}", line.shown());
        let differs = |message: String| Err(EngineError::new("22P04", message).with_context(context()));
        if fields.len() != self.columns.len() {
            let (got, expected) = (fields.len(), self.columns.len());
            return differs(format!("wrong number of fields in header line: got {got}, expected {expected}"));
        }
        for (i, at) in self.columns.iter().enumerate() {
            let (number, expected) = (i + 1, &self.table.columns[*at].name);
            let got = match fields.get(i).flatten() {
                None => format!("null value (\"{}\")", self.format.null),
                Some(name) if name == expected.as_bytes() => continue,
                Some(name) => format!("\"{}\"", String::from_utf8_lossy(name)),
            };
            let what = "column name mismatch in header line field";
            return differs(format!("{what} {number}: got {got}, expected \"{expected}\""));
        }
        Ok(())
    }

    /// The row of a line; `None`: the line is a header. The context of an error begins after the line number.
    fn row(&self, line: lines::Line<'_>, fields: &mut Fields) -> Result<Option<Vec<Datum>>> {
        std::str::from_utf8(line.bytes).map_err(|_| EngineError::not_utf8(line.bytes))?;
        fields.split(line.bytes, &self.format)?;
        if line.number == 1 && self.format.header {
            return self.match_header(&line, fields).map(|()| None);
        }
        let mut row = self.base.clone();
        for (i, at) in self.columns.iter().enumerate() {
            let column = &self.table.columns[*at];
            let Some(field) = fields.get(i) else {
                let message = format!("missing data for column \"{}\"", column.name);
                return Err(EngineError::new("22P04", message).with_context(format!(": {}", line.shown())));
            };
            let text =
                field.map(|bytes| std::str::from_utf8(bytes).map_err(|_| EngineError::not_utf8(bytes))).transpose();
            let value = text.and_then(|text| text.map_or(Ok(Datum::Null), |text| column.data_type.parse(text)));
            row[*at] = value.map_err(|e| {
                // What backslashes made of the line is no text: that is known before the columns are.
                if e.state.0 == "22021" {
                    return e.with_context(format!(": {}", line.shown()));
                }
                let shown = field.map_or("null input".into(), lines::shown);
                e.with_context(format!(", column {}: {shown}", column.name))
            })?;
        }
        if fields.len() > self.columns.len() {
            let extra = EngineError::new("22P04", "extra data after last expected column");
            return Err(extra.with_context(format!(": {}", line.shown())));
        }
        Ok(Some(row))
    }
}

/// Lets other tasks have a turn.
async fn turn() {
    let mut waited = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests;
