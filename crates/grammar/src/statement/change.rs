//! Changes of rows: INSERT, UPDATE, DELETE.

use super::{At, Expr, ExprKind, FromItem, Ident, Item, Literal, Name, NullsOrder, Query, Subscript, With, Written};
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
    /// Of each of these columns, which part of it is assigned to: no steps, all of it.
    pub parts: Vec<Vec<Step>>,
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

/// Assignments to parts of parts for which what becomes of the column is written several times ([`multiplies`]).
pub const PARTS_MAX: usize = 2;

/// A step from a column into a part of it that is assigned to.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// `[1]['a']`: all brackets that stand together.
    Item(Vec<Subscript>),
    /// `.b`
    Field(Ident),
}

/// What becomes of a value of `column` when the part of it that the steps lead to is assigned to. `made`: what has
/// become of it so far.
pub fn with_part(column: &Ident, made: Expr, steps: &[Step], value: Expr) -> Expr {
    let Some((step, rest)) = steps.split_first() else { return value };
    let at = value.at;
    let (arg, value) = match made {
        // What has become of this very part goes on there, and nothing is written twice.
        Expr { kind: ExprKind::WithField { arg, field, value: part }, .. }
            if (rest.is_empty() || is_made(&part)) && matches!(step, Step::Field(own) if own.name == field.name) =>
        {
            (arg, with_part(column, *part, rest, value))
        }
        Expr { kind: ExprKind::With { arg, subscripts, value: part, .. }, .. }
            if (rest.is_empty() || is_made(&part))
                && matches!(step, Step::Item(own) if are_alike(own, &subscripts) == Some(true)) =>
        {
            (arg, with_part(column, *part, rest, value))
        }
        made if rest.is_empty() => (Box::new(made), value),
        made => {
            let part = step.of(&made);
            (Box::new(made), with_part(column, part, rest, value))
        }
    };
    let value = Box::new(value);
    let kind = match step {
        Step::Field(field) => ExprKind::WithField { arg, field: field.clone(), value },
        Step::Item(subscripts) => ExprKind::With { column: column.clone(), arg, subscripts: subscripts.clone(), value },
    };
    Expr { at, kind }
}

fn is_made(value: &Expr) -> bool {
    matches!(value.kind, ExprKind::With { .. } | ExprKind::WithField { .. })
}

impl Step {
    /// The part of a value that it leads to.
    fn of(&self, whole: &Expr) -> Expr {
        let (at, arg) = (whole.at, whole.clone());
        match self {
            Step::Field(field) => match arg.kind {
                // Another field is what it was.
                ExprKind::WithField { arg, field: other, .. } if other.name != field.name => self.of(&arg),
                _ => Expr { at, kind: ExprKind::Field { arg: Box::new(arg), field: field.clone() } },
            },
            Step::Item(subscripts) => match arg.kind {
                // Another item is what it was, too.
                ExprKind::With { arg, subscripts: other, .. } if are_alike(subscripts, &other) == Some(false) => {
                    self.of(&arg)
                }
                _ => subscripts.iter().enumerate().fold(arg, |arg, (number, subscript)| {
                    let (arg, subscript) = (Box::new(arg), subscript.clone());
                    Expr { at, kind: ExprKind::Subscript { arg, subscript, continues: number > 0 } }
                }),
            },
        }
    }

    /// Whether it is told from another step where the statement is read.
    fn is_known(&self) -> bool {
        match self {
            Step::Field(_) => true,
            Step::Item(subscripts) => subscripts.iter().all(|one| number(one).is_some()),
        }
    }
}

/// Whether what becomes of a value may be written several times, and with each part that is assigned to more often:
/// where that cannot be told from what was assigned to before.
pub fn multiplies(steps: &[Step]) -> bool {
    steps.len() > 1 && !steps.iter().all(Step::is_known)
}

/// The number in brackets, if it is written out.
fn number(subscript: &Subscript) -> Option<i64> {
    match subscript {
        Subscript::Index(index) => match index.kind {
            ExprKind::Literal(Literal::Int(number)) => Some(number),
            _ => None,
        },
        Subscript::Slice(..) => None,
    }
}

/// Whether two lists of brackets mean the same item; `None`: that is not known yet.
fn are_alike(own: &[Subscript], other: &[Subscript]) -> Option<bool> {
    if own.len() != other.len() {
        return None;
    }
    let pairs = own.iter().zip(other).map(|(own, other)| Some(number(own)? == number(other)?));
    Some(pairs.collect::<Option<Vec<bool>>>()?.into_iter().all(|alike| alike))
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
