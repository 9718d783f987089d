//! The kind of each statement: who carries it out, how it is described to a client, its name, and where it may run.
//!
//! 1. There is one table, [`Kind::of`]. It has a line for every statement of the grammar: a new statement does not
//!    compile without one. So the code that carries statements out and the code that describes them cannot disagree.
//! 2. The code that carries out a [`Command`] or a [`Task`] has an arm for each: there is no "other statement" besides
//!    this table.
use crate::error::unsupported;
use terrace_engine::EngineError;
use terrace_grammar::statement::{
    AlterComposite, AlterDomain, AlterEnum, AlterSequence, AlterSystem, AlterTable, Comment, Copy, CreateComposite,
    CreateDomain, CreateEnum, CreateIndex, CreateSchema, CreateSequence, CreateTable, CreateTableAs, CreateView,
    Declare, DefaultPrivileges, Delete, Discard, Drop, Execute, Explain, Fetch, Grant, GrantRole, Ident, Insert,
    LockTables, Maintain, ObjectKind, OfSetting, Owner, Prepare, Query, Refused, Rename, Role, Set, SetConstraints,
    SetSchema, SetTransaction, Statement, Transaction, TransactionKind, Truncate, Update,
};

/// The kind of a statement.
pub(crate) struct Kind<'s> {
    /// PostgreSQL's name of the statement, for its command tag and in errors.
    pub(crate) tag: &'static str,
    pub(crate) work: Work<'s>,
    pub(crate) returns: Returns,
    pub(crate) writes: Writes,
    /// Whether it may run in a block that failed.
    pub(crate) in_failed_block: bool,
}

/// Who carries a statement out.
#[derive(Clone, Copy)]
pub(crate) enum Work<'s> {
    /// The session, which opens a transaction where that is needed.
    Session(Command<'s>),
    /// The session's transaction, which is open already.
    Transaction(Task<'s>),
    /// Nobody: PostgreSQL has it, Terrace has not.
    Refused(&'s Refused),
    /// The same, for a statement that the grammar has a tree for.
    Missing,
}

/// A statement that the session carries out.
#[derive(Clone, Copy)]
pub(crate) enum Command<'s> {
    Transaction(&'s Transaction),
    SetTransaction(&'s SetTransaction),
    SetConstraints(&'s SetConstraints),
    Set(&'s Set),
    Reset(&'s OfSetting),
    Show(&'s OfSetting),
    Discard(Discard),
    Listen(&'s Ident),
    Notify(&'s Ident, &'s str),
    /// None: `*`.
    Unlisten(Option<&'s Ident>),
    Prepare(&'s Prepare),
    Execute(&'s Execute),
    ExplainExecute(&'s Explain, &'s Execute),
    Deallocate(Option<&'s Ident>),
    Declare(&'s Declare),
    Fetch(&'s Fetch),
    Close(Option<&'s Ident>),
    Vacuum(&'s Maintain),
    Lock(&'s LockTables),
    AlterSystem(&'s AlterSystem),
}

/// A statement that is carried out in a transaction.
#[derive(Clone, Copy)]
pub(crate) enum Task<'s> {
    Query(&'s Query),
    Insert(&'s Insert),
    Update(&'s Update),
    Delete(&'s Delete),
    /// With the statement that is explained.
    Explain(&'s Explain, &'s Statement),
    Copy(&'s Copy),
    CreateTable(&'s CreateTable),
    CreateTableAs(&'s CreateTableAs),
    CreateView(&'s CreateView),
    CreateIndex(&'s CreateIndex),
    CreateSequence(&'s CreateSequence),
    AlterSequence(&'s AlterSequence),
    CreateEnum(&'s CreateEnum),
    CreateComposite(&'s CreateComposite),
    CreateDomain(&'s CreateDomain),
    CreateRole(&'s Role),
    CreateSchema(&'s CreateSchema),
    SetSchema(&'s SetSchema),
    AlterTable(&'s AlterTable),
    AlterEnum(&'s AlterEnum),
    AlterComposite(&'s AlterComposite),
    AlterDomain(&'s AlterDomain),
    AlterRole(&'s Role),
    Rename(&'s Rename),
    Owner(&'s Owner),
    Drop(&'s Drop),
    Comment(&'s Comment),
    Grant(&'s Grant),
    GrantRole(&'s GrantRole),
    DefaultPrivileges(&'s DefaultPrivileges),
    Truncate(&'s Truncate),
    Lock(&'s LockTables),
    Analyze(&'s Maintain),
}

/// The columns that a statement returns, and where they are found.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Returns {
    Nothing,
    /// Those of the query that it is.
    Query,
    /// Those of RETURNING.
    Changes,
    /// Lines of a plan.
    Plan,
    /// The setting's value.
    Setting,
    /// The cursor's.
    Cursor,
    /// Those of the statement that it executes.
    Executed,
}

/// Whether a statement may run in a read-only transaction.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Writes {
    /// It may.
    Never,
    /// It may not.
    Always,
    /// It may, unless its query (or its cursor's) locks rows, or calls a function that changes a sequence.
    AsQuery,
    /// It may, unless it is ANALYZE of a statement that may not.
    AsExplained,
}

impl<'s> Kind<'s> {
    /// The table (invariant 1).
    pub(crate) fn of(statement: &'s Statement) -> Kind<'s> {
        use Command as C;
        use Task as T;
        match statement {
            Statement::Query(query) if query.locking.is_empty() => Kind::query("SELECT", query),
            Statement::Query(query) => Kind::query("SELECT FOR UPDATE", query),
            Statement::Insert(insert) => Kind::task("INSERT", T::Insert(insert)).returns(Returns::Changes),
            Statement::Update(update) => Kind::task("UPDATE", T::Update(update)).returns(Returns::Changes),
            Statement::Delete(delete) => Kind::task("DELETE", T::Delete(delete)).returns(Returns::Changes),
            Statement::Explain(explain) => Kind::explained(explain),
            Statement::Copy(copy) if copy.from => Kind::task("COPY FROM", T::Copy(copy)),
            Statement::Copy(copy) => Kind::task("COPY", T::Copy(copy)).writes(Writes::Never),
            Statement::CreateTable(create) => Kind::task("CREATE TABLE", T::CreateTable(create)),
            Statement::CreateTableAs(create) if create.select_into => {
                Kind::task("SELECT INTO", T::CreateTableAs(create))
            }
            Statement::CreateTableAs(create) => Kind::task("CREATE TABLE AS", T::CreateTableAs(create)),
            Statement::CreateView(create) => Kind::task("CREATE VIEW", T::CreateView(create)),
            Statement::CreateIndex(create) => Kind::task("CREATE INDEX", T::CreateIndex(create)),
            Statement::CreateSequence(create) => Kind::task("CREATE SEQUENCE", T::CreateSequence(create)),
            Statement::CreateEnum(create) => Kind::task("CREATE TYPE", T::CreateEnum(create)),
            Statement::CreateComposite(create) => Kind::task("CREATE TYPE", T::CreateComposite(create)),
            Statement::CreateDomain(create) => Kind::task("CREATE DOMAIN", T::CreateDomain(create)),
            Statement::CreateSchema(create) => Kind::task("CREATE SCHEMA", T::CreateSchema(create)),
            Statement::SetSchema(set) => Kind::task(altered(set.kind), T::SetSchema(set)),
            Statement::CreateRole(role) => Kind::task("CREATE ROLE", T::CreateRole(role)),
            Statement::AlterTable(alter) => Kind::task(altered(alter.kind), T::AlterTable(alter)),
            Statement::AlterSequence(alter) => Kind::task("ALTER SEQUENCE", T::AlterSequence(alter)),
            Statement::AlterEnum(alter) => Kind::task("ALTER TYPE", T::AlterEnum(alter)),
            Statement::AlterComposite(alter) => Kind::task("ALTER TYPE", T::AlterComposite(alter)),
            Statement::AlterDomain(alter) => Kind::task("ALTER DOMAIN", T::AlterDomain(alter)),
            Statement::AlterRole(role) => Kind::task("ALTER ROLE", T::AlterRole(role)),
            Statement::AlterSystem(alter) => Kind::session("ALTER SYSTEM", C::AlterSystem(alter)),
            Statement::Rename(rename) => Kind::task(altered(rename.kind), T::Rename(rename)),
            Statement::Owner(owner) => Kind::task(altered(owner.kind), T::Owner(owner)),
            Statement::Drop(drop) => Kind::task(dropped(drop.kind), T::Drop(drop)),
            Statement::Comment(comment) => Kind::task("COMMENT", T::Comment(comment)),
            Statement::Grant(grant) => Kind::task(if grant.revoke { "REVOKE" } else { "GRANT" }, T::Grant(grant)),
            Statement::GrantRole(grant) => Kind::task(granted(grant.group, grant.revoke), T::GrantRole(grant)),
            Statement::DefaultPrivileges(alter) => Kind::task("ALTER DEFAULT PRIVILEGES", T::DefaultPrivileges(alter)),
            Statement::Truncate(truncate) => Kind::task("TRUNCATE TABLE", T::Truncate(truncate)),
            Statement::Lock(lock) => Kind::session("LOCK TABLE", C::Lock(lock)),
            Statement::Vacuum(vacuum) => Kind::session("VACUUM", C::Vacuum(vacuum)),
            // As in PostgreSQL, because it does not change the contents of tables.
            Statement::Analyze(analyze) => Kind::task("ANALYZE", T::Analyze(analyze)).writes(Writes::Never),
            Statement::Checkpoint(_) => Kind::missing("CHECKPOINT"),
            Statement::Prepare(prepare) => Kind::session("PREPARE", C::Prepare(prepare)),
            Statement::Execute(execute) => Kind::executing(execute),
            Statement::Deallocate(None) => Kind::session("DEALLOCATE ALL", C::Deallocate(None)),
            Statement::Deallocate(name) => Kind::session("DEALLOCATE", C::Deallocate(name.as_ref())),
            Statement::Declare(declare) => Kind::session("DECLARE CURSOR", C::Declare(declare)).writes(Writes::AsQuery),
            Statement::Fetch(fetch) if fetch.moves => Kind::session("MOVE", C::Fetch(fetch)),
            Statement::Fetch(fetch) => Kind::session("FETCH", C::Fetch(fetch)).returns(Returns::Cursor),
            Statement::Close(None) => Kind::session("CLOSE CURSOR ALL", C::Close(None)),
            Statement::Close(name) => Kind::session("CLOSE CURSOR", C::Close(name.as_ref())),
            Statement::Transaction(transaction) => Kind::transaction(transaction),
            Statement::SetTransaction(set) => Kind::session("SET", C::SetTransaction(set)),
            Statement::SetConstraints(set) => Kind::session("SET CONSTRAINTS", C::SetConstraints(set)),
            Statement::Set(set) => Kind::session("SET", C::Set(set)),
            Statement::Reset(reset) => Kind::session("RESET", C::Reset(reset)),
            Statement::Show(show) => Kind::session("SHOW", C::Show(show)).returns(Returns::Setting),
            Statement::Discard(discard) => Kind::session(discarded(*discard), C::Discard(*discard)),
            Statement::Listen(channel) => Kind::session("LISTEN", C::Listen(channel)),
            Statement::Notify(channel, payload) => Kind::session("NOTIFY", C::Notify(channel, payload)),
            Statement::Unlisten(channel) => Kind::session("UNLISTEN", C::Unlisten(channel.as_ref())),
            Statement::Refused(refused) => Kind::new("", Work::Refused(refused), Writes::Never),
        }
    }

    fn new(tag: &'static str, work: Work<'s>, writes: Writes) -> Kind<'s> {
        Kind { tag, work, returns: Returns::Nothing, writes, in_failed_block: false }
    }

    fn executing(execute: &'s Execute) -> Kind<'s> {
        match execute.table {
            None => Kind::session("EXECUTE", Command::Execute(execute)).returns(Returns::Executed),
            Some(_) => Kind::session("CREATE TABLE AS", Command::Execute(execute)),
        }
    }

    fn session(tag: &'static str, command: Command<'s>) -> Kind<'s> {
        Kind::new(tag, Work::Session(command), Writes::Never)
    }

    fn task(tag: &'static str, task: Task<'s>) -> Kind<'s> {
        Kind::new(tag, Work::Transaction(task), Writes::Always)
    }

    fn missing(tag: &'static str) -> Kind<'s> {
        Kind::new(tag, Work::Missing, Writes::Never)
    }

    fn query(tag: &'static str, query: &'s Query) -> Kind<'s> {
        Kind::task(tag, Task::Query(query)).returns(Returns::Query).writes(Writes::AsQuery)
    }

    fn explained(explain: &'s Explain) -> Kind<'s> {
        let kind = match &explain.statement {
            Statement::Execute(execute) => Kind::session("EXPLAIN", Command::ExplainExecute(explain, execute)),
            statement => Kind::task("EXPLAIN", Task::Explain(explain, statement)),
        };
        kind.returns(Returns::Plan).writes(Writes::AsExplained)
    }

    fn transaction(transaction: &'s Transaction) -> Kind<'s> {
        let (tag, ends) = match &transaction.kind {
            TransactionKind::Begin { start: true, .. } => ("START TRANSACTION", false),
            TransactionKind::Begin { start: false, .. } => ("BEGIN", false),
            TransactionKind::Commit { .. } => ("COMMIT", true),
            TransactionKind::Rollback { .. } | TransactionKind::RollbackTo(_) => ("ROLLBACK", true),
            TransactionKind::Savepoint(_) => ("SAVEPOINT", false),
            TransactionKind::Release(_) => ("RELEASE", false),
        };
        Kind { in_failed_block: ends, ..Kind::session(tag, Command::Transaction(transaction)) }
    }

    fn returns(self, returns: Returns) -> Kind<'s> {
        Kind { returns, ..self }
    }

    fn writes(self, writes: Writes) -> Kind<'s> {
        Kind { writes, ..self }
    }

    /// The error of a statement that Terrace does not have. `sql`: the statement's text.
    pub(crate) fn refusal(&self, sql: &str) -> Option<EngineError> {
        match self.work {
            Work::Refused(refused) => {
                let mut error = EngineError::new(refused.sqlstate, refused.message.clone());
                error.hint = refused.hint.clone();
                Some(error.at(sql, refused.at as usize))
            }
            Work::Missing => Some(unsupported(self.tag)),
            Work::Session(_) | Work::Transaction(_) => None,
        }
    }

    /// The command tag of a result with so many rows.
    pub(crate) fn tag_of_rows(&self, rows: u64) -> String {
        match (self.work, self.returns) {
            (_, Returns::Plan | Returns::Setting) => self.tag.to_owned(),
            (Work::Transaction(Task::Insert(_)), _) => format!("INSERT 0 {rows}"),
            (Work::Transaction(Task::Query(_)), _) => format!("SELECT {rows}"),
            _ => format!("{} {rows}", self.tag),
        }
    }

    /// BEGIN, COMMIT, ROLLBACK: the same whatever is in the catalogue.
    pub(crate) fn is_plain_control(&self) -> bool {
        match self.work {
            Work::Session(Command::Transaction(transaction)) => matches!(
                transaction.kind,
                TransactionKind::Begin { .. } | TransactionKind::Commit { .. } | TransactionKind::Rollback { .. }
            ),
            _ => false,
        }
    }
}

fn altered(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Table => "ALTER TABLE",
        ObjectKind::Index => "ALTER INDEX",
        ObjectKind::Sequence => "ALTER SEQUENCE",
        ObjectKind::View => "ALTER VIEW",
        ObjectKind::Schema => "ALTER SCHEMA",
        ObjectKind::Type => "ALTER TYPE",
        ObjectKind::Domain => "ALTER DOMAIN",
        ObjectKind::Role => "ALTER ROLE",
    }
}

fn dropped(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Table => "DROP TABLE",
        ObjectKind::Index => "DROP INDEX",
        ObjectKind::Sequence => "DROP SEQUENCE",
        ObjectKind::View => "DROP VIEW",
        ObjectKind::Schema => "DROP SCHEMA",
        ObjectKind::Type => "DROP TYPE",
        ObjectKind::Domain => "DROP DOMAIN",
        ObjectKind::Role => "DROP ROLE",
    }
}

/// Of a role, to another or by ALTER GROUP.
fn granted(group: bool, revoke: bool) -> &'static str {
    match (group, revoke) {
        (true, _) => "ALTER ROLE",
        (false, true) => "REVOKE ROLE",
        (false, false) => "GRANT ROLE",
    }
}

fn discarded(what: Discard) -> &'static str {
    match what {
        Discard::All => "DISCARD ALL",
        Discard::Plans => "DISCARD PLANS",
        Discard::Sequences => "DISCARD SEQUENCES",
        Discard::Temporary => "DISCARD TEMP",
    }
}
