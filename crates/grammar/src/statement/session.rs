//! What a session does besides queries: transactions, settings, cursors, prepared statements, COPY, maintenance, roles.

use super::{At, CreateTableAs, Expr, Ident, Name, Query, Statement, TypeName, Written};
use std::ops::Range;

/// Transactions.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    pub at: At,
    pub kind: TransactionKind,
}

/// What is done with a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum TransactionKind {
    /// BEGIN, or START TRANSACTION.
    Begin {
        start: bool,
        modes: Vec<TransactionMode>,
    },
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    Savepoint(Ident),
    Release(Ident),
    RollbackTo(Ident),
}

/// A transaction's modes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TransactionMode {
    Isolation(Isolation),
    ReadOnly(bool),
    Deferrable(bool),
}

/// The levels of isolation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// SET TRANSACTION, or SET SESSION CHARACTERISTICS.
#[derive(Clone, Debug, PartialEq)]
pub struct SetTransaction {
    pub at: At,
    /// For all later transactions.
    pub session: bool,
    pub modes: Vec<TransactionMode>,
    /// Of another transaction: SET TRANSACTION SNAPSHOT. There are no modes then.
    pub snapshot: Option<String>,
}

/// SET CONSTRAINTS.
#[derive(Clone, Debug, PartialEq)]
pub struct SetConstraints {
    pub at: At,
    /// None: ALL.
    pub names: Option<Vec<Name>>,
    pub deferred: bool,
}

/// SET.
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    pub at: At,
    /// SET LOCAL.
    pub local: bool,
    pub name: Setting,
    /// None: DEFAULT.
    pub value: Option<Vec<SettingValue>>,
}

/// The name of a setting, with its dots. SQL's own forms have PostgreSQL's names: TIME ZONE is `timezone`, NAMES is
/// `client_encoding`, SCHEMA is `search_path`.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    pub at: At,
    pub name: String,
}

/// A value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingValue {
    pub at: At,
    pub kind: SettingValueKind,
}

/// The kinds of [`SettingValue`].
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValueKind {
    /// A word or a string.
    Text(String),
    /// A number, as it was written.
    Number(String),
    /// `TIME ZONE INTERVAL '1' HOUR`: the text and the type.
    Interval(String, Box<TypeName>),
}

/// RESET and SHOW. None: ALL.
#[derive(Clone, Debug, PartialEq)]
pub struct OfSetting {
    pub at: At,
    pub name: Option<Setting>,
}

/// ALTER SYSTEM.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterSystem {
    pub at: At,
    /// None: ALL, which can only be reset.
    pub name: Option<Setting>,
    /// None: RESET, or DEFAULT.
    pub value: Option<Vec<SettingValue>>,
}

/// DISCARD.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discard {
    All,
    Plans,
    Sequences,
    Temporary,
}

/// PREPARE.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepare {
    pub at: At,
    pub name: Ident,
    pub types: Vec<TypeName>,
    pub statement: Statement,
    /// Where the statement stands.
    pub place: Range<At>,
}

/// EXECUTE.
#[derive(Clone, Debug, PartialEq)]
pub struct Execute {
    pub at: At,
    pub name: Ident,
    pub args: Vec<Written>,
    /// CREATE TABLE AS EXECUTE: the table, with an empty query in the place of the statement's.
    pub table: Option<Box<CreateTableAs>>,
}

/// DECLARE.
#[derive(Clone, Debug, PartialEq)]
pub struct Declare {
    pub at: At,
    pub name: Ident,
    pub binary: bool,
    pub insensitive: bool,
    /// SCROLL, or NO SCROLL.
    pub scroll: Option<bool>,
    pub hold: bool,
    pub query: Box<Query>,
    /// Where the query stands.
    pub place: Range<At>,
}

/// FETCH, or MOVE.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetch {
    pub at: At,
    /// MOVE: no row is sent.
    pub moves: bool,
    pub direction: Direction,
    pub cursor: Ident,
}

/// Where a cursor goes. FORWARD and BACKWARD without a number go one row; `i64::MAX` is ALL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Direction {
    Forward(i64),
    Backward(i64),
    Absolute(i64),
    Relative(i64),
}

/// EXPLAIN.
#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    pub at: At,
    pub options: Vec<NamedOption>,
    pub statement: Statement,
    /// Where the statement stands.
    pub place: Range<At>,
}

/// An option with a name: of EXPLAIN, VACUUM, ANALYZE and COPY.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedOption {
    /// In lower case unless it was quoted.
    pub name: Ident,
    pub value: OptionValue,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// It is just there.
    None,
    /// A word or a string. TRUE, FALSE and ON are `true`, `false` and `on`.
    Text(String),
    /// A number, as it was written.
    Number(String),
    /// `*`.
    All,
    /// Words or strings in parentheses.
    List(Vec<Ident>),
}

/// LOCK TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct LockTables {
    pub at: At,
    pub tables: Vec<Name>,
    pub mode: TableLock,
    pub nowait: bool,
}

/// The modes of LOCK TABLE, from the weakest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableLock {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

/// VACUUM and ANALYZE.
#[derive(Clone, Debug, PartialEq)]
pub struct Maintain {
    pub at: At,
    pub options: Vec<NamedOption>,
    /// Empty: all tables.
    pub tables: Vec<MaintainedTable>,
}

/// A table of VACUUM or ANALYZE.
#[derive(Clone, Debug, PartialEq)]
pub struct MaintainedTable {
    pub name: Name,
    pub only: bool,
    /// Empty: all columns.
    pub columns: Vec<Ident>,
}

/// COPY.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    pub at: At,
    pub source: CopySource,
    /// FROM; otherwise TO.
    pub from: bool,
    pub target: CopyTarget,
    /// The old forms have the new names: `CSV` is `format csv`.
    pub options: Vec<NamedOption>,
    /// Of FROM.
    pub filter: Option<Expr>,
}

/// What is copied.
#[derive(Clone, Debug, PartialEq)]
pub enum CopySource {
    Table {
        name: Name,
        columns: Vec<Ident>,
    },
    /// And where it stands.
    Query(Box<Statement>, Range<At>),
}

/// Where rows come from or go to.
#[derive(Clone, Debug, PartialEq)]
pub enum CopyTarget {
    /// STDIN or STDOUT: PostgreSQL takes either for either.
    Client,
    File(String),
    Program(String),
}

/// CREATE ROLE, USER or GROUP; ALTER ROLE or USER.
#[derive(Clone, Debug, PartialEq)]
pub struct Role {
    pub at: At,
    pub name: Ident,
    /// CREATE USER: it may log in.
    pub user: bool,
    pub options: Vec<RoleOption>,
}

/// An option of a role.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleOption {
    pub at: At,
    pub kind: RoleOptionKind,
}

/// The kinds of [`RoleOption`].
#[derive(Clone, Debug, PartialEq)]
pub enum RoleOptionKind {
    /// None: PASSWORD NULL.
    Password(Option<String>),
    SuperUser(bool),
    CreateDb(bool),
    CreateRole(bool),
    Inherit(bool),
    Login(bool),
    Replication(bool),
    BypassRls(bool),
    ConnectionLimit(i32),
    ValidUntil(String),
    InRole(Vec<Ident>),
    Roles(Vec<Ident>),
    Admin(Vec<Ident>),
}
