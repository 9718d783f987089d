//! What a statement reads of the user's relations: for the privileges that it needs.
//!
//! 1. Each relation that is named is noted, in the order of the names; a view before what it reads.
//! 2. A column is noted where it is named: by its name, in `*`, as a part of a whole row, or by USING. That a plan
//!    passes a column along is no reading.
//! 3. What a view's query reads is read by the view's owner, and all else by the current role. What the catalogue keeps
//!    (defaults, conditions), and queries that stand for relations of the system, are read by nobody.
//! 4. Nothing is refused here: to describe a statement, or to define a view, needs no privilege ([`Read::permit`]).
use super::Binder;
use super::from::Source;
use super::scope::Scope;
use super::views::Within;
use crate::access::{Actor, denied, kind_of, securable};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, TableReference};
use datafusion::logical_expr::Expr;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use terrace_engine::catalog::access::{Rights, Securable};
use terrace_engine::{Catalog, Result, Table, View};
use terrace_grammar::statement::{self as tree, ExprKind};
use terrace_storage::ObjectId;

/// A relation that a statement names.
pub(crate) struct Read {
    object: (ObjectId, Securable),
    /// As errors call it.
    named: (&'static str, String),
    /// Whose privileges count (invariant 3); `None`: the current role's.
    reader: Option<u32>,
    /// It is read even where none of its columns is named. (What a statement changes need not be.)
    listed: bool,
    /// The columns that are named, by their positions.
    columns: BTreeSet<usize>,
    /// It is read where a column of that one is named, and not elsewhere.
    below: Option<Number>,
}

impl Read {
    pub(super) fn of_table(table: &Table, listed: bool) -> Read {
        let (object, named) = ((table.oid, securable(table)), (kind_of(table), table.name.clone()));
        Read { object, named, reader: None, listed, columns: BTreeSet::new(), below: None }
    }

    pub(super) fn of_view(view: &View) -> Read {
        let (object, named) = ((view.oid, Securable::Table), ("view", view.name.clone()));
        Read { object, named, reader: None, listed: true, columns: BTreeSet::new(), below: None }
    }

    /// A view whose rows are changed: read where its columns are named.
    pub(super) fn seen_through(view: &View) -> Read {
        Read { listed: false, ..Read::of_view(view) }
    }

    /// What such a view reads, these columns of it.
    pub(super) fn below(self, view: Number, used: &[usize]) -> Read {
        Read { listed: true, columns: used.iter().copied().collect(), below: Some(view), ..self }
    }

    /// A relation of the system's that is not everybody's to read.
    pub(super) fn of_system(oid: u32, name: &str) -> Read {
        let (object, named) = ((ObjectId(oid), Securable::Table), ("table", name.to_owned()));
        Read { object, named, reader: None, listed: true, columns: BTreeSet::new(), below: None }
    }

    /// 42501 where its reader may not. `actor`: the current role.
    pub(crate) fn permit(&self, actor: &Actor, catalog: &Catalog) -> Result<()> {
        if !self.listed && self.columns.is_empty() {
            return Ok(());
        }
        let owner = self.reader.map(|oid| Actor::of_oid(oid, catalog));
        let reader = owner.as_ref().unwrap_or(actor);
        match reader.may_with(catalog, self.object, Rights::SELECT, self.columns.iter().copied()) {
            true => Ok(()),
            false => Err(denied(self.named.0, &self.named.1)),
        }
    }
}

/// The number of a [`Read`].
pub(super) type Number = usize;

type Known = (Option<TableReference>, String);

#[derive(Default)]
pub(super) struct Reads {
    all: RefCell<Vec<Read>>,
    /// Columns of plans, and which of which relations they are.
    columns: RefCell<BTreeMap<Known, Vec<(Number, usize)>>>,
    /// The columns of views through which rows are changed: expressions over the table's columns.
    seen: RefCell<Vec<(Expr, Number, usize)>>,
    /// What is bound now stays what it is, and is not read.
    silent: Cell<bool>,
}

impl Reads {
    pub(super) fn into_all(self) -> Vec<Read> {
        let mut all = self.all.into_inner();
        let named: Vec<bool> = all.iter().map(|read| !read.columns.is_empty()).collect();
        all.retain(|read| read.below.is_none_or(|above| named[above]));
        all
    }
}

/// Whether it is a part of a column.
fn is_part(whole: &tree::Expr) -> bool {
    match &whole.kind {
        ExprKind::Field { arg, .. } | ExprKind::Subscript { arg, .. } => {
            matches!(arg.kind, ExprKind::Column(_)) || is_part(arg)
        }
        _ => false,
    }
}

fn known(column: &Column) -> Known {
    (column.relation.clone(), column.name.clone())
}

/// The columns of FROM, and of queries around, in an expression.
fn columns_in(expr: &Expr) -> Vec<Known> {
    let mut found = vec![];
    let visited = expr.apply(|expr| {
        if let Expr::Column(column) | Expr::OuterReferenceColumn(_, column) = expr {
            found.push(known(column));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    visited.expect("nothing fails in it");
    found
}

/// The expression as the query has it whose columns it names.
fn of_own_query(expr: &Expr) -> Expr {
    let made = expr.clone().transform_up(|expr| match expr {
        Expr::OuterReferenceColumn(_, column) => Ok(Transformed::yes(Expr::Column(column))),
        other => Ok(Transformed::no(other)),
    });
    made.expect("nothing fails in it").data
}

impl Binder<'_> {
    /// A relation is named; `None`: nobody reads it (invariant 3).
    pub(super) fn note_relation(&self, read: Read) -> Option<Number> {
        let reader = match self.views.innermost() {
            Some(Within::System | Within::Kept) => return None,
            Some(Within::View(view)) => Some(self.planner.catalog.owner(view.oid)),
            None => None,
        };
        let mut all = self.reads.all.borrow_mut();
        all.push(Read { reader, ..read });
        Some(all.len() - 1)
    }

    /// What a source offers of a relation: its columns, with their positions.
    pub(super) fn note_offered(&self, of: Option<Number>, source: &Source, positions: impl Iterator<Item = usize>) {
        let Some(of) = of else { return };
        let mut columns = self.reads.columns.borrow_mut();
        for ((_, expr), at) in source.relations[0].columns.iter().zip(positions) {
            for column in columns_in(expr) {
                columns.entry(column).or_default().push((of, at));
            }
        }
    }

    /// The same of a view through which rows are changed.
    pub(super) fn note_seen(&self, of: Option<Number>, source: &Source) {
        let Some(of) = of else { return };
        let columns = source.relations[0].columns.iter().enumerate();
        self.reads.seen.borrow_mut().extend(columns.map(|(at, (_, expr))| (expr.clone(), of, at)));
    }

    /// A column of a plan stands for what an expression reads.
    pub(super) fn note_stand_in(&self, column: &Expr, stands_for: &Expr) {
        let mut columns = self.reads.columns.borrow_mut();
        let known = columns_in(stands_for);
        let of: Vec<(Number, usize)> = known.iter().filter_map(|one| columns.get(one)).flatten().copied().collect();
        for column in columns_in(column) {
            columns.insert(column, of.clone());
        }
    }

    /// The column that gets a part: its other parts stay what they are, and are not read.
    pub(super) fn assigned_part(&self, whole: &tree::Expr, scope: &Scope<'_>) -> super::Result<Expr> {
        match &whole.kind {
            ExprKind::Column(name) => scope.column(name),
            _ if is_part(whole) => {
                let before = self.reads.silent.replace(true);
                let bound = self.expr(whole, scope);
                self.reads.silent.set(before);
                bound
            }
            _ => self.expr(whole, scope),
        }
    }

    /// Columns are named (invariant 2).
    pub(super) fn note_named<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) {
        let (columns, seen) = (self.reads.columns.borrow(), self.reads.seen.borrow());
        if self.reads.silent.get() || columns.is_empty() && seen.is_empty() {
            return;
        }
        let mut all = self.reads.all.borrow_mut();
        for expr in exprs {
            for column in columns_in(expr) {
                for (of, at) in columns.get(&column).into_iter().flatten() {
                    all[*of].columns.insert(*at);
                }
            }
            let own = if seen.is_empty() { None } else { Some(of_own_query(expr)) };
            for (_, of, at) in seen.iter().filter(|(known, ..)| Some(known) == own.as_ref()) {
                all[*of].columns.insert(*at);
            }
        }
    }
}
