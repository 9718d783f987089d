//! Queries: SELECT, VALUES, WITH, set operations and FROM.

use super::{At, Expr, Ident, Name, Sort, Statement, TypeName, Window};

/// A query. `TABLE t` is `SELECT * FROM t`.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub at: At,
    pub with: Option<With>,
    pub body: Body,
    pub order: Vec<Sort>,
    /// LIMIT or FETCH FIRST. LIMIT ALL is none.
    pub limit: Option<Expr>,
    /// FETCH FIRST n ROWS WITH TIES.
    pub with_ties: bool,
    pub offset: Option<Expr>,
    pub locking: Vec<Locking>,
}

impl Query {
    /// VALUES without rows: stands for a query that is not known yet.
    pub(crate) fn nothing(at: At) -> Query {
        let body = Body::Values(vec![]);
        Query { at, with: None, body, order: vec![], limit: None, with_ties: false, offset: None, locking: vec![] }
    }
}

/// What a query takes its rows from.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Select(Box<Select>),
    /// At least one row. In an INSERT, a value may be DEFAULT.
    Values(Vec<Vec<Expr>>),
    /// A chain of one operator is flat: `a UNION ALL b UNION ALL c` has three branches. A branch with an ORDER BY,
    /// LIMIT or WITH of its own was in parentheses.
    Set {
        op: SetOperator,
        all: bool,
        branches: Vec<Query>,
    },
}

/// A set operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SetOperator {
    Union,
    Intersect,
    Except,
}

/// A single SELECT.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    pub at: At,
    pub distinct: Distinct,
    pub items: Vec<Item>,
    /// What stands between commas.
    pub from: Vec<FromItem>,
    pub filter: Option<Expr>,
    /// None without GROUP BY.
    pub group: Option<GroupBy>,
    pub having: Option<Expr>,
    pub windows: Vec<NamedWindow>,
}

/// DISTINCT, or not.
#[derive(Clone, Debug, PartialEq)]
pub enum Distinct {
    No,
    Rows,
    On(Vec<Expr>),
}

/// One item of the list of SELECT or RETURNING.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub expr: Expr,
    pub alias: Option<Ident>,
}

/// What GROUP BY names.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupBy {
    pub distinct: bool,
    pub items: Vec<Group>,
}

/// One item of GROUP BY.
#[derive(Clone, Debug, PartialEq)]
pub enum Group {
    Expr(Expr),
    /// `()`.
    Empty(At),
    Cube(At, Vec<Expr>),
    Rollup(At, Vec<Expr>),
    Sets(At, Vec<Group>),
}

/// One window of the WINDOW clause.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedWindow {
    pub name: Ident,
    pub window: Window,
}

/// WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct With {
    pub at: At,
    pub recursive: bool,
    pub ctes: Vec<Cte>,
}

/// One query of WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct Cte {
    pub name: Ident,
    pub columns: Vec<Ident>,
    /// MATERIALIZED or NOT MATERIALIZED.
    pub materialized: Option<bool>,
    /// A query, or an INSERT, UPDATE or DELETE.
    pub statement: Box<Statement>,
}

/// FOR UPDATE and its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Locking {
    pub at: At,
    pub strength: LockStrength,
    /// Empty: all tables.
    pub of: Vec<Name>,
    pub wait: LockWait,
}

/// How strong a lock of rows is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LockStrength {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

/// What is done about a row that another transaction holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LockWait {
    Wait,
    NoWait,
    SkipLocked,
}

/// One item of FROM.
#[derive(Clone, Debug, PartialEq)]
pub enum FromItem {
    Table {
        name: Name,
        /// ONLY stands before it.
        only: bool,
        alias: Option<Alias>,
    },
    /// A file of the server, by its path as a constant. (PostgreSQL has none.)
    File {
        at: At,
        path: String,
        alias: Option<Alias>,
    },
    Query {
        at: At,
        lateral: bool,
        query: Box<Query>,
        alias: Alias,
    },
    /// A function, or ROWS FROM with any number of them.
    Functions {
        at: At,
        lateral: bool,
        /// At least one.
        functions: Vec<TableFunction>,
        rows_from: bool,
        /// WITH ORDINALITY.
        ordinality: bool,
        alias: Option<Alias>,
    },
    Join {
        /// The place of the first word of the join itself (`LEFT`, `JOIN`).
        at: At,
        kind: JoinKind,
        sides: Box<[FromItem; 2]>,
        on: JoinOn,
        /// Of a join in parentheses.
        alias: Option<Alias>,
    },
}

/// A function in FROM.
#[derive(Clone, Debug, PartialEq)]
pub struct TableFunction {
    /// A `Call`, or a `Special`.
    pub call: Expr,
    /// `AS (a int, b text)`.
    pub columns: Vec<ColumnDefinition>,
}

/// A column that a function in FROM is told to have.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    pub name: Ident,
    pub data_type: TypeName,
    pub collation: Option<Name>,
}

/// `AS t (a, b)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    pub name: Ident,
    pub columns: Vec<Ident>,
}

/// The kinds of joins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JoinKind {
    Cross,
    Inner,
    Left,
    Right,
    Full,
}

/// What a join compares. Only a cross join has nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinOn {
    Nothing,
    Natural,
    Using { columns: Vec<Ident>, alias: Option<Ident> },
    On(Box<Expr>),
}
