//! Changes of rows: INSERT, UPDATE, DELETE.

use super::{At, Expr, FromItem, Ident, Item, Name, NullsOrder, Query, Subscript, With, Written};
use std::ops::Range;

/// INSERT.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    pub at: At,
    pub with: Option<With>,
    pub target: Name,
    pub alias: Option<Ident>,
    /// Empty: all columns.
    pub columns: Vec<Ident>,
    /// Of each of these columns, which part of it is assigned to: no subscripts, all of it.
    pub parts: Vec<Vec<Subscript>>,
    pub overriding: Option<Overriding>,
    /// None: DEFAULT VALUES.
    pub source: Option<Query>,
    /// Where the source stands.
    pub place: Range<At>,
    pub conflict: Option<Conflict>,
    pub returning: Vec<Item>,
}

/// OVERRIDING SYSTEM VALUE or OVERRIDING USER VALUE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Overriding {
    System,
    User,
}

/// ON CONFLICT.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    pub at: At,
    pub target: Option<ConflictTarget>,
    pub action: ConflictAction,
}

/// Which conflict is meant.
#[derive(Clone, Debug, PartialEq)]
pub enum ConflictTarget {
    /// `(a, lower(b)) WHERE ...`.
    Elements { at: At, elements: Vec<IndexElement>, filter: Option<Written> },
    /// `ON CONSTRAINT c`.
    Constraint(Ident),
}

/// What an index is made of: a column, or an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexElement {
    /// A column's name is `ExprKind::Column`.
    pub expr: Expr,
    /// How it is written, without parentheses around it.
    pub text: String,
    pub collation: Option<Name>,
    pub class: Option<Name>,
    pub descending: bool,
    pub nulls: Option<NullsOrder>,
}

/// What is done about a conflict.
#[derive(Clone, Debug, PartialEq)]
pub enum ConflictAction {
    Nothing,
    Update { set: Vec<Assignment>, filter: Option<Expr> },
}

/// One item of SET.
#[derive(Clone, Debug, PartialEq)]
pub enum Assignment {
    /// `a = 1`.
    One { column: Ident, value: Expr },
    /// `(a, b) = (1, 2)`: the value is a `Row`, a `Scalar` or another expression, whose row PostgreSQL takes apart.
    Many { at: At, columns: Vec<Ident>, value: Expr },
}

/// UPDATE.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub at: At,
    pub with: Option<With>,
    pub target: Name,
    pub only: bool,
    pub alias: Option<Ident>,
    pub set: Vec<Assignment>,
    pub from: Vec<FromItem>,
    pub filter: Option<Expr>,
    pub returning: Vec<Item>,
}

/// DELETE.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    pub at: At,
    pub with: Option<With>,
    pub target: Name,
    pub only: bool,
    pub alias: Option<Ident>,
    pub using: Vec<FromItem>,
    pub filter: Option<Expr>,
    pub returning: Vec<Item>,
}
