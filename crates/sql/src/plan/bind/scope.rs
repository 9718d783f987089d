//! Where names are looked up.
//!
//! 1. A bare name means the one column of FROM's `*` that has it: of columns that a join merges only the merged one is
//!    there. Where two have it, it may not be used (42702), whatever the queries around have under it.
//! 2. What FROM does not have is looked for in the queries around, the nearest first, and is theirs: a column of the
//!    outer query.
//! 3. `t.c` is a column of what FROM calls t; where nothing there is called so, 42P01, and where it has no c, 42703.
//! 4. A WITH query is seen by those behind it and by the query that it belongs to, and hides a table of its name.
use super::from::{Relation, Source};
use super::group_queries::Queries;
use super::{Result, fail, over, unsupported, windows, wrong};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchemaRef, ExprSchema};
use datafusion::logical_expr::{Expr, LogicalPlan, when};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use terrace_engine::EngineError;
use terrace_grammar::statement::{At, Ident, Name};

/// The column of each relation of the system that says which it is. `*` leaves it out.
pub(super) const TABLE_OID: &str = "tableoid";

/// Which part of a query is bound: aggregates and windows may not stand everywhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Clause {
    Items,
    Where,
    On,
    Group,
    Having,
    Order,
    DistinctOn,
    Values,
    Limit,
    Offset,
    /// The offset of a frame.
    FrameRows,
    FrameRange,
    FrameGroups,
    Function,
    Filter,
    Definition,
    /// The arguments of an aggregate.
    Aggregate,
    /// The arguments of a window function.
    Window,
    /// What follows is outside of queries.
    Update,
    Returning,
    Check,
    /// GENERATED ALWAYS AS.
    Generated,
    /// COPY FROM ... WHERE.
    Copied,
    Default,
    /// A SELECT that locks rows.
    Locking,
}

impl Clause {
    /// Whether it belongs to no query: it has no parameters.
    pub(super) fn is_of_no_query(self) -> bool {
        matches!(self, Clause::Check | Clause::Generated | Clause::Copied | Clause::Default)
    }

    /// As PostgreSQL calls it where something may not stand in it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Clause::Items => "SELECT",
            Clause::Where => "WHERE",
            Clause::On => "JOIN conditions",
            Clause::Group => "GROUP BY",
            Clause::Having => "HAVING",
            Clause::Order => "ORDER BY",
            Clause::DistinctOn => "DISTINCT ON",
            Clause::Values => "VALUES",
            Clause::Limit => "LIMIT",
            Clause::Offset => "OFFSET",
            Clause::FrameRows => "ROWS",
            Clause::FrameRange => "RANGE",
            Clause::FrameGroups => "GROUPS",
            Clause::Function => "functions in FROM",
            Clause::Filter => "FILTER",
            Clause::Definition => "window definitions",
            Clause::Aggregate => "aggregates",
            Clause::Window => "window functions",
            Clause::Update => "UPDATE",
            Clause::Returning => "RETURNING",
            Clause::Check => "check constraints",
            Clause::Generated => "column generation expressions",
            Clause::Copied => "COPY FROM WHERE conditions",
            Clause::Default => "DEFAULT expressions",
            Clause::Locking => "FOR UPDATE",
        }
    }
}

pub(super) struct Scope<'s> {
    pub(super) source: &'s Source,
    /// What expressions are over.
    pub(super) schema: DFSchemaRef,
    pub(super) around: Option<&'s Scope<'s>>,
    pub(super) ctes: &'s Ctes<'s>,
    pub(super) clause: Cell<Clause>,
    /// The windows of the WINDOW clause.
    pub(super) windows: RefCell<Vec<(String, windows::Defined)>>,
    /// Columns of FROM that were named, here and in queries within, and where.
    pub(super) named: RefCell<Vec<(Column, At)>>,
    /// Relations whose whole rows windows read, and where.
    pub(super) rows: RefCell<Vec<(String, At)>>,
    /// The first relation is what the statement changes: nothing that stands beside it in FROM may name it.
    pub(super) behind_target: bool,
    /// It is that of a SELECT, which computes aggregates.
    pub(super) selects: Cell<bool>,
    /// Aggregates of its columns in queries within, and the columns that these name ([`super::outer_aggregates`]).
    pub(super) aggregates: RefCell<Vec<(Expr, Column)>>,
    /// What is noted for GROUP BY, while there is something to note.
    pub(super) queries: RefCell<Option<Queries>>,
}

impl<'s> Scope<'s> {
    pub(super) fn new(source: &'s Source, around: Option<&'s Scope<'s>>, ctes: &'s Ctes<'s>) -> Scope<'s> {
        Scope::over(source, source.plan.schema().clone(), around, ctes)
    }

    pub(super) fn over(
        source: &'s Source,
        schema: DFSchemaRef,
        around: Option<&'s Scope<'s>>,
        ctes: &'s Ctes<'s>,
    ) -> Scope<'s> {
        Scope {
            source,
            schema,
            around,
            ctes,
            clause: Cell::new(Clause::Items),
            windows: RefCell::default(),
            named: RefCell::default(),
            rows: RefCell::default(),
            behind_target: false,
            selects: Cell::default(),
            aggregates: RefCell::default(),
            queries: RefCell::default(),
        }
    }

    /// Binds a part of the query that is of this clause.
    pub(super) fn within<T>(&self, clause: Clause, bind: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.clause.replace(clause);
        let bound = bind();
        self.clause.set(before);
        bound
    }

    /// What a name means.
    pub(super) fn column(&self, name: &Name) -> Result<Expr> {
        let at = name.at();
        if let Some(own) = self.own(name)? {
            self.note(&own, at);
            return Ok(own);
        }
        let mut around = self.around;
        while let Some(scope) = around {
            if let Some(found) = scope.own(name)? {
                scope.refuse_target(&found, at)?;
                scope.note(&found, at);
                return outer(found, scope);
            }
            around = scope.around;
        }
        if self.clause.get() == Clause::Default {
            return over::no_column(at);
        }
        if let [one] = name.parts()
            && let Some(value) = self.value(one)?
        {
            return Ok(value);
        }
        match name.parts() {
            // A table's name may stand for its whole row.
            [one] if self.calls(&one.name) => unsupported("a row of a table as a value"),
            [one] => {
                let error = EngineError::new("42703", format!("column \"{}\" does not exist", one.name));
                fail(at, EngineError { hint: self.hint_at_columns(None, &one.name), ..error })
            }
            [table, _] | [_, table, _] => self.missing(table, at),
            _ => unsupported("a name of three parts"),
        }
    }

    /// 42P10 of a column of what the statement changes, where it may not be named.
    fn refuse_target(&self, column: &Expr, at: At) -> Result<()> {
        let target = self.source.relations.first().filter(|_| self.behind_target);
        match target.filter(|target| target.columns.iter().any(|(_, own)| own == column)) {
            None => Ok(()),
            Some(Relation { name, .. }) => {
                let message = format!("invalid reference to FROM-clause entry for table \"{name}\"");
                let hint = format!(
                    "There is an entry for table \"{name}\", but it cannot be referenced from this part of the query."
                );
                fail(at, EngineError::new("42P10", message).with_hint(hint))
            }
        }
    }

    /// The value of a function in FROM that is called so.
    fn value(&self, name: &Ident) -> Result<Option<Expr>> {
        let mut scope = Some(self);
        while let Some(here) = scope {
            if let Some(relation) = here.source.relations.iter().find(|relation| relation.name == name.name) {
                let Some((_, column)) = relation.columns.first().filter(|_| relation.value) else { return Ok(None) };
                here.note(column, name.at);
                let own = std::ptr::eq(here, self);
                return if own { Ok(Some(column.clone())) } else { outer(column.clone(), here).map(Some) };
            }
            scope = here.around;
        }
        Ok(None)
    }

    /// Nothing is called so. 42P01
    pub(super) fn missing<T>(&self, table: &Ident, at: At) -> Result<T> {
        let mut scope = Some(self);
        while let Some(here) = scope {
            let hidden = |relation: &&Relation| relation.hidden.as_ref() == Some(&table.name);
            if let Some(relation) = here.source.relations.iter().find(hidden) {
                let message = format!("invalid reference to FROM-clause entry for table \"{}\"", table.name);
                let hint = format!("Perhaps you meant to reference the table alias \"{}\".", relation.name);
                return fail(at, EngineError::new("42P01", message).with_hint(hint));
            }
            scope = here.around;
        }
        wrong(at, "42P01", format!("missing FROM-clause entry for table \"{}\"", table.name))
    }

    /// Whether a relation here or around is called so.
    fn calls(&self, name: &str) -> bool {
        let here = self.source.relations.iter().any(|relation| relation.name == name);
        here || self.around.is_some_and(|around| around.calls(name))
    }

    /// The same among this query's own columns.
    pub(super) fn own(&self, name: &Name) -> Result<Option<Expr>> {
        match name.parts() {
            [one] => self.bare(one),
            [table, column] => self.qualified(None, table, column),
            [schema, table, column] => self.qualified(Some(schema), table, column),
            _ => unsupported("a name of three parts"),
        }
    }

    /// Whether FROM itself has a column of that name.
    pub(super) fn has_own(&self, name: &Name) -> Result<bool> {
        Ok(self.own(name)?.is_some())
    }

    /// Invariant 1.
    fn bare(&self, name: &Ident) -> Result<Option<Expr>> {
        let mut found = self.source.visible.iter().filter(|(visible, _)| *visible == name.name);
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => wrong(name.at, "42702", format!("column reference \"{}\" is ambiguous", name.name)),
            (Some((_, column)), None) => Ok(Some(column.clone())),
            (None, _) if name.name == TABLE_OID => self.table_oid(name),
            (None, _) => Ok(None),
        }
    }

    /// `tableoid`, of the one relation of FROM that has it.
    fn table_oid(&self, name: &Ident) -> Result<Option<Expr>> {
        let has = |relation: &&Relation| relation.table_oid.is_some() && !relation.in_join;
        let mut found = self.source.relations.iter().filter(has);
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => wrong(name.at, "42702", format!("column reference \"{}\" is ambiguous", name.name)),
            (Some(one), None) => self.table_oid_of(one),
            (None, _) => Ok(None),
        }
    }

    /// It is NULL where an outer join pads the relation. What the catalogue keeps has no columns of the system.
    fn table_oid_of(&self, relation: &Relation) -> Result<Option<Expr>> {
        let Some(oid) = relation.table_oid.clone().filter(|_| !self.clause.get().is_of_no_query()) else {
            return Ok(None);
        };
        if !relation.padded || matches!(oid, Expr::Column(_)) {
            return Ok(Some(oid));
        }
        let Some((_, column)) = relation.never_null.and_then(|at| relation.columns.get(at)) else {
            return unsupported("tableoid beside an outer join, of a table without a NOT NULL column");
        };
        Ok(Some(when(column.clone().is_not_null(), oid).end()?))
    }

    /// What FROM calls so.
    pub(super) fn relation(&self, schema: Option<&Ident>, table: &Ident) -> Result<Option<&Relation>> {
        let of = |relation: &&Relation| schema.is_none_or(|schema| relation.schemas.contains(&schema.name));
        let mut found = self.source.relations.iter().filter(of).filter(|relation| relation.name == table.name);
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => wrong(table.at, "42P09", format!("table reference \"{}\" is ambiguous", table.name)),
            (first, _) => Ok(first),
        }
    }

    /// Invariant 3.
    fn qualified(&self, schema: Option<&Ident>, table: &Ident, column: &Ident) -> Result<Option<Expr>> {
        let Some(relation) = self.relation(schema, table)? else { return Ok(None) };
        let at = schema.unwrap_or(table).at;
        let mut found = relation.columns.iter().filter(|(own, _)| *own == column.name);
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => wrong(at, "42702", format!("column reference \"{}\" is ambiguous", column.name)),
            (Some((_, column)), None) => Ok(Some(column.clone())),
            (None, _) if column.name == TABLE_OID && relation.table_oid.is_some() => self.table_oid_of(relation),
            (None, _) => {
                let error = EngineError::new("42703", format!("column {}.{} does not exist", table.name, column.name));
                fail(at, EngineError { hint: self.hint_at_columns(Some(&table.name), &column.name), ..error })
            }
        }
    }

    pub(super) fn note(&self, expr: &Expr, at: At) {
        self.named.borrow_mut().extend(expr.column_refs().into_iter().map(|column| (column.clone(), at)));
    }

    /// Where a column was named.
    pub(super) fn place(&self, column: &Column) -> Option<At> {
        self.named.borrow().iter().find(|(named, _)| named == column).map(|(_, at)| *at)
    }

    /// A column as messages show it.
    pub(super) fn shown(&self, column: &Column) -> String {
        let of = self.source.relations.iter().find_map(|relation| {
            let own = relation.columns.iter().find(|(_, expr)| expr.try_as_col() == Some(column));
            own.map(|(name, _)| format!("{}.{name}", relation.name))
        });
        of.unwrap_or_else(|| crate::plan::naming::shown(&column.name).to_owned())
    }
}

/// A column of a query around (invariant 2).
pub(super) fn outer(expr: Expr, scope: &Scope<'_>) -> Result<Expr> {
    let made = expr.transform_up(|expr| match expr {
        Expr::Column(column) => {
            let field = scope.schema.field_from_column(&column)?.clone();
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(made.data)
}

/// A query of WITH.
#[derive(Clone)]
pub(super) struct Cte {
    pub(super) name: String,
    pub(super) plan: Arc<LogicalPlan>,
    pub(super) titles: Vec<String>,
    pub(super) kind: Kind,
    /// How many readings of WITH queries a copy of it is.
    pub(super) copies: usize,
    /// How often it has been read.
    pub(super) reads: std::rc::Rc<Cell<usize>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// It answers something else each time that it is read.
    Volatile,
    /// A change without RETURNING.
    Silent,
    /// The rows of the round before, of a recursive query.
    Working,
}

/// The queries of WITH that can be named.
pub(super) struct Ctes<'s> {
    list: RefCell<Vec<Cte>>,
    /// Those of WITH RECURSIVE that are not bound yet, the last one first. They hide tables too.
    unbound: RefCell<Vec<String>>,
    around: Option<&'s Ctes<'s>>,
}

impl<'s> Ctes<'s> {
    pub(super) fn none() -> Ctes<'s> {
        Ctes { list: RefCell::default(), unbound: RefCell::default(), around: None }
    }

    pub(super) fn within(around: &'s Ctes<'s>) -> Ctes<'s> {
        Ctes { list: RefCell::default(), unbound: RefCell::default(), around: Some(around) }
    }

    /// Whether one of this WITH is called so.
    pub(super) fn has(&self, name: &str) -> bool {
        self.list.borrow().iter().any(|cte| cte.name == name)
    }

    /// Names that will be there, in the order of their queries.
    pub(super) fn expect_names<'n>(&self, names: impl DoubleEndedIterator<Item = &'n str>) {
        assert!(self.unbound.borrow().is_empty(), "a WITH announces its names once");
        *self.unbound.borrow_mut() = names.rev().map(str::to_owned).collect();
    }

    /// The next of these names has its query.
    pub(super) fn next_is_bound(&self) {
        self.unbound.borrow_mut().pop();
    }

    /// Refuses a name that means a query which is not bound yet: itself, or one behind it.
    pub(super) fn check_bound(&self, name: &Ident) -> Result<()> {
        if self.has(&name.name) {
            return Ok(());
        }
        let unbound = self.unbound.borrow();
        if unbound.last() == Some(&name.name) {
            let own = &name.name;
            let message =
                format!("recursive reference to query \"{own}\" must not appear within its non-recursive term");
            return wrong(name.at, "42P19", message);
        }
        if unbound.contains(&name.name) {
            let message = format!("WITH query \"{}\" is not supported before its definition", name.name);
            return wrong(name.at, "0A000", message);
        }
        self.around.map_or(Ok(()), |around| around.check_bound(name))
    }

    pub(super) fn add(&self, cte: Cte) {
        self.list.borrow_mut().push(cte);
    }

    pub(super) fn remove(&self) {
        let removed = self.list.borrow_mut().pop();
        assert!(removed.is_some_and(|cte| cte.kind == Kind::Working), "what is removed was added");
    }

    /// Invariant 4.
    pub(super) fn find(&self, name: &str) -> Option<Cte> {
        let own = self.list.borrow().iter().rev().find(|cte| cte.name == name).cloned();
        debug_assert!(own.as_ref().is_none_or(|cte| cte.titles.len() == cte.plan.schema().fields().len()), "{name}");
        own.or_else(|| self.around?.find(name))
    }
}
