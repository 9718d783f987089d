//! Which columns FROM has, as far as PostgreSQL's rules for names go further than DataFusion's.
//!
//! 1. `JOIN ... USING` and `NATURAL JOIN` merge columns: the merged ones come first in `*`, a bare name means the
//!    merged column, and that is the left one's value, of a RIGHT join the right one's, of a FULL join whichever is not
//!    NULL, as of the type that both become. They are written out as ON, and `*` and bare names as what they mean.
//! 2. A bare name that two columns of FROM have may not be used (42702), whatever the queries around have under that
//!    name. A name that a subquery in FROM gives two of its columns may not be used with the subquery's name either.
//! 3. `count(t.*)` counts the rows of t, not those that an outer join pads; over a window it is refused beside GROUP
//!    BY.
//! 4. A WITH query that a volatile function makes differ from time to time is read once (0A000 where it is read more
//!    often: it is planned anew for each place that names it).
//! 5. A WITH query may have the name of one around it, which it hides: it gets a name of its own.
//! 6. ORDER BY means a column of the result by a name that stands alone, and columns of FROM by names within an
//!    expression or with a table. An alias of such a name gets another one, and clients and queries around are shown
//!    the first.
//!
//! Upstream: `LogicalPlanBuilder::join_using` and `expand_wildcard` take the left column for the merged one whatever
//! the join, in the left table's order, and WHERE does not see that the name is merged (42702). A table alias renames
//! the second of two equal names (`a:1`) without a word. `count(t.*)` is planned as `count(*)`. CTEs are copied into
//! each place that names them. `plan_with_clause` refuses a name that an outer WITH has. A name that is ambiguous in a
//! subquery is looked up in the query around it, and an unused window is not looked at. ORDER BY finds the result's
//! columns first, whatever it is.
use super::from::{From, Relation, Relations, aliased};
use super::outer::Scope;
use super::syntax::{calls_volatile, name_of};
use crate::error::unsupported;
use crate::parse::fold;
use crate::plan::refusals::has_call;
use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident,
    NamedWindowDefinition, NamedWindowExpr, ObjectName, OrderBy, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Statement, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins,
    Value, Visit, VisitMut, Visitor, VisitorMut,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use terrace_engine::{EngineError, Result};

/// Names of output columns; `None` where they cannot be told.
pub(super) type Names = Option<Vec<String>>;

/// Whether the statement has anything that concerns the rules above.
pub(crate) fn concerns(statement: &Statement) -> bool {
    struct Concerns;
    impl Visitor for Concerns {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            let plain = |expr: &Expr| bare(expr).is_some() || matches!(expr, Expr::Value(_));
            let ordered = match query.order_by.as_ref().map(|order| &order.kind) {
                Some(OrderByKind::Expressions(order)) => !order.iter().all(|by| plain(&by.expr)),
                _ => false,
            };
            if ordered || query.with.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }

        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            let several = select.from.len() > 1 || select.from.iter().any(|table| !table.joins.is_empty());
            let windows = !select.named_window.is_empty();
            match several || windows || select.from.iter().any(super::from::concerns) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let query = matches!(expr, Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. });
            match query || counted_table(expr).is_some() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    statement.visit(&mut Concerns).is_break()
}

/// The table of `count(t.*)`.
fn counted_table(expr: &Expr) -> Option<&ObjectName> {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else { return None };
    match (name.0.last()?.as_ident(), list.args.as_slice()) {
        (Some(name), [FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table))]) if fold(name) == "count" => {
            Some(table)
        }
        _ => None,
    }
}

/// The names of all WITH queries.
pub(crate) fn with_names(statement: &Statement) -> BTreeSet<String> {
    struct With(BTreeSet<String>);
    impl Visitor for With {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            self.0.extend(query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| fold(&cte.alias.name)));
            ControlFlow::Continue(())
        }
    }
    let mut with = With(BTreeSet::new());
    let _ = statement.visit(&mut with);
    with.0
}

/// Writes out what concerns the rules above.
pub(crate) fn resolve(statement: &mut Statement, relations: &Relations<'_>) -> Result<()> {
    let Statement::Query(query) = statement else { return Ok(()) };
    Resolver { relations, ctes: vec![], renamed: false, scopes: vec![] }.query(query).map(|_| ())
}

pub(super) struct Resolver<'r> {
    pub(super) relations: &'r Relations<'r>,
    /// WITH queries that can be named here, the innermost last.
    pub(super) ctes: Vec<Cte>,
    /// Whether columns of the query have got other names (invariant 6).
    pub(super) renamed: bool,
    /// Of the queries around an expression's, the innermost last.
    pub(super) scopes: Vec<Scope>,
}

pub(super) struct Cte {
    pub(super) name: String,
    /// Its name in what is planned.
    pub(super) written: String,
    pub(super) names: Names,
}

impl Resolver<'_> {
    pub(super) fn query(&mut self, query: &mut Query) -> Result<Names> {
        crate::memory::check()?;
        let known = self.ctes.len();
        self.with(query)?;
        let Query { body, order_by, .. } = query;
        let names = self.body(body, order_by.as_mut());
        self.ctes.truncate(known);
        names
    }

    /// A query whose columns are named around it: they get their names back.
    pub(super) fn inner(&mut self, query: &mut Query) -> Result<Names> {
        let around = std::mem::take(&mut self.renamed);
        let names = self.query(query)?;
        if std::mem::replace(&mut self.renamed, around) {
            name_again(query, &names)?;
        }
        Ok(names)
    }

    fn with(&mut self, query: &mut Query) -> Result<()> {
        let Some(mut with) = query.with.take() else { return Ok(()) };
        let known = self.ctes.len();
        let mut volatile: Vec<String> = vec![];
        for at in 0..with.cte_tables.len() {
            let cte = &mut with.cte_tables[at];
            let name = fold(&cte.alias.name);
            let written = self.written(&name, known)?;
            if written != name {
                cte.alias.name = Ident::with_quote('"', &written);
            }
            let named = |names| Cte { name: name.clone(), written: written.clone(), names };
            if with.recursive {
                settle_recursion(&mut cte.query, &name)?;
                // It may read itself: its own names are those of its first part.
                let mut first = cte.query.clone();
                let names = self.first_names(&mut first);
                self.ctes.push(named(aliased(names, Some(&cte.alias))));
            }
            let differs = calls_volatile(&*cte.query, self.relations.volatile)
                || volatile.iter().any(|name| times_read(&cte.query, name) > 0);
            let names = self.inner(&mut cte.query)?;
            let names = aliased(names, Some(&cte.alias));
            if with.recursive {
                self.ctes.pop();
            }
            self.ctes.push(named(names));
            if differs {
                let later: usize = with.cte_tables[at + 1..].iter().map(|cte| times_read(&cte.query, &name)).sum();
                if later + times_read(&*query, &name) > 1 {
                    return Err(unsupported(format!(
                        "the WITH query \"{name}\", which has a volatile function and is read more than once,"
                    )));
                }
                volatile.push(name);
            }
        }
        query.with = Some(with);
        Ok(())
    }

    /// The name for a WITH query in what is planned. `known`: how many there are around its WITH.
    fn written(&self, name: &str, known: usize) -> Result<String> {
        if self.ctes[known..].iter().any(|cte| cte.name == name) {
            return Err(EngineError::new("42712", format!("WITH query name \"{name}\" specified more than once")));
        }
        let hides = self.ctes.iter().any(|cte| cte.name == name);
        Ok(if hides { format!("{name}\0w{}", self.ctes.len()) } else { name.to_owned() })
    }

    /// The names of the part of a recursive query that does not recurse.
    fn first_names(&mut self, query: &mut Query) -> Names {
        fn first(body: &mut SetExpr) -> &mut SetExpr {
            match body {
                SetExpr::SetOperation { left, .. } => first(left),
                other => other,
            }
        }
        match first(&mut query.body) {
            SetExpr::Select(select) => self.select(select, None).ok().flatten(),
            _ => None,
        }
    }

    fn body(&mut self, body: &mut SetExpr, order_by: Option<&mut OrderBy>) -> Result<Names> {
        match body {
            SetExpr::Select(select) => self.select(select, order_by),
            SetExpr::Query(query) if order_by.is_none() => self.query(query),
            SetExpr::Query(query) => self.inner(query),
            SetExpr::SetOperation { left, right, .. } => {
                if let Some(order_by) = order_by {
                    refuse_expressions(order_by)?;
                }
                let names = self.operand(left)?;
                self.operand(right)?;
                Ok(names)
            }
            SetExpr::Values(values) => {
                for value in values.rows.iter_mut().flat_map(|row| row.content.iter_mut()) {
                    self.within(value)?;
                }
                Ok(values.rows.first().map(|row| (1..=row.len()).map(|n| format!("column{n}")).collect()))
            }
            _ => Ok(None),
        }
    }

    fn operand(&mut self, operand: &mut SetExpr) -> Result<Names> {
        match operand {
            SetExpr::Query(query) => self.inner(query),
            other => self.body(other, None),
        }
    }

    fn select(&mut self, select: &mut Select, mut order_by: Option<&mut OrderBy>) -> Result<Names> {
        let from = self.from(&mut select.from)?;
        self.scopes.push(Scope::of(&from));
        let within = self.subqueries(select, order_by.as_deref_mut());
        self.scopes.pop();
        within?;
        self.expand(select, &from);
        let names = output_names(&select.projection, &from);
        self.columns(select, order_by.as_deref_mut(), &from, &names)?;
        self.check_names(select, order_by.as_deref(), &from)?;
        super::outer::write_tables(select, order_by.as_deref_mut(), &from)?;
        self.renamed |= rename_hidden(select, order_by);
        Ok(names)
    }

    /// Queries within the expressions of a SELECT.
    fn subqueries(&mut self, select: &mut Select, order_by: Option<&mut OrderBy>) -> Result<()> {
        for_each(select, order_by, &mut |expr, _| self.within(expr))
    }

    /// Queries within an expression.
    pub(super) fn within(&mut self, expr: &mut Expr) -> Result<()> {
        match VisitMut::visit(expr, &mut Subqueries { resolver: self, depth: 0 }) {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    /// `*` where columns are merged.
    fn expand(&self, select: &mut Select, from: &From) {
        if from.merged.is_empty() {
            return;
        }
        let Some(columns) = from.columns() else { return };
        let ambiguous = from.ambiguous();
        for item in std::mem::take(&mut select.projection) {
            match &item {
                SelectItem::Wildcard(_) => {
                    select.projection.extend(columns.iter().map(|(name, expr)| column_item(name, expr, &columns)));
                    continue;
                }
                // It keeps its name.
                SelectItem::UnnamedExpr(Expr::Identifier(ident)) => {
                    if let Some(expr) = from.merged.get(&fold(ident)).filter(|_| !ambiguous.contains(&fold(ident))) {
                        select.projection.push(column_item(&fold(ident), expr, &columns));
                        continue;
                    }
                }
                _ => {}
            }
            select.projection.push(item);
        }
    }

    /// Bare names of merged columns, names given twice, and `count(t.*)`.
    fn columns(
        &mut self,
        select: &mut Select,
        order_by: Option<&mut OrderBy>,
        from: &From,
        names: &Names,
    ) -> Result<()> {
        let aggregate = |call: &Function| {
            call.over.is_none() && name_of(call).is_some_and(|name| (self.relations.aggregate)(&name))
        };
        let grouped = select.having.is_some()
            || !matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty())
            || has_call(&select.projection, &aggregate)
            || order_by.as_deref().is_some_and(|order_by| has_call(order_by, &aggregate));
        if grouped {
            refuse_computed(select, order_by.as_deref(), from)?;
        }
        let mut writer = Columns::new(from, self);
        writer.grouped = grouped;
        let position = |name: &str| {
            let names = names.as_ref()?;
            let at = names.iter().position(|n| n == name)?;
            Some(at + 1)
        };
        for_each(select, order_by, &mut |expr, ordered| {
            // ORDER BY takes a bare name for a result column's, if there is one.
            if ordered
                && let Expr::Identifier(ident) = expr
                && let Some(at) = position(&fold(ident))
            {
                if from.merged.contains_key(&fold(ident)) {
                    *expr = Expr::Value(Value::Number(at.to_string(), false).into());
                }
                return Ok(());
            }
            match VisitMut::visit(expr, &mut writer) {
                ControlFlow::Break(error) => Err(error),
                ControlFlow::Continue(()) => Ok(()),
            }
        })
    }
}

/// A merged column that is computed, in a query within what is grouped: PostgreSQL does not find it among the groups.
fn refuse_computed(select: &Select, order_by: Option<&OrderBy>, from: &From) -> Result<()> {
    let computed = |(name, expr): (&String, &Expr)| matches!(expr, Expr::Function(_)).then(|| name.clone());
    let computed: BTreeSet<String> = from.merged.iter().filter_map(computed).collect();
    if computed.is_empty() {
        return Ok(());
    }
    let mut visitor = Computed { names: &computed, depth: 0 };
    let found = select.projection.visit(&mut visitor).is_break()
        || select.having.visit(&mut visitor).is_break()
        || order_by.is_some_and(|order_by| order_by.visit(&mut visitor).is_break());
    match found {
        true => Err(unsupported("a column that a join merges, in a query beside GROUP BY")),
        false => Ok(()),
    }
}

struct Computed<'n> {
    names: &'n BTreeSet<String>,
    depth: usize,
}

impl Visitor for Computed<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) if self.depth > 0 && self.names.contains(&fold(ident)) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Merged and ambiguous names in the condition of a join.
pub(super) fn write_merged(expr: &mut Expr, from: &From, resolver: &mut Resolver<'_>) -> Result<()> {
    let mut writer = Columns::new(from, resolver);
    match VisitMut::visit(expr, &mut writer) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// `(a JOIN b USING (x)) AS j` as a subquery of what its `*` means.
pub(super) fn derived(join: TableWithJoins, alias: TableAlias, from: &From) -> Result<TableFactor> {
    let mut query = crate::parse::template("SELECT 1")?;
    let SetExpr::Select(select) = query.body.as_mut() else { unreachable!("the template is a SELECT") };
    let columns = from.columns().unwrap_or_default();
    select.projection = columns.iter().map(|(name, expr)| column_item(name, expr, &columns)).collect();
    select.from = vec![join];
    Ok(TableFactor::Derived { lateral: false, subquery: query, alias: Some(alias), sample: None })
}

/// Every expression of a SELECT but those in FROM; whether it is an item of ORDER BY.
pub(super) fn for_each(
    select: &mut Select,
    order_by: Option<&mut OrderBy>,
    f: &mut dyn FnMut(&mut Expr, bool) -> Result<()>,
) -> Result<()> {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            f(expr, false)?;
        }
    }
    if let Some(Distinct::On(exprs)) = &mut select.distinct {
        exprs.iter_mut().try_for_each(|expr| f(expr, false))?;
    }
    if let GroupByExpr::Expressions(exprs, _) = &mut select.group_by {
        exprs.iter_mut().try_for_each(|expr| f(expr, false))?;
    }
    for expr in select.selection.iter_mut().chain(select.having.iter_mut()) {
        f(expr, false)?;
    }
    for NamedWindowDefinition(_, window) in &mut select.named_window {
        if let NamedWindowExpr::WindowSpec(spec) = window {
            let ordered = spec.order_by.iter_mut().map(|item| &mut item.expr);
            spec.partition_by.iter_mut().chain(ordered).try_for_each(|expr| f(expr, false))?;
        }
    }
    if let Some(OrderBy { kind: OrderByKind::Expressions(exprs), .. }) = order_by {
        exprs.iter_mut().try_for_each(|item| f(&mut item.expr, true))?;
    }
    Ok(())
}

/// An item for a column of `*`. Only what is computed needs a name, and the name must differ from its neighbours'.
fn column_item(name: &str, expr: &Expr, columns: &[(String, Expr)]) -> SelectItem {
    match expr {
        Expr::CompoundIdentifier(_) | Expr::Identifier(_) => SelectItem::UnnamedExpr(expr.clone()),
        _ => {
            let repeated = columns.iter().filter(|(other, _)| other == name).count() > 1;
            let alias = if repeated { format!("{name}\0m") } else { name.to_owned() };
            SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', alias) }
        }
    }
}

fn output_names(items: &[SelectItem], from: &From) -> Names {
    let mut names = vec![];
    for item in items {
        match item {
            SelectItem::UnnamedExpr(expr) => names.push(crate::plan::naming::expr_name(expr)),
            SelectItem::ExprWithAlias { alias, .. } => names.push(crate::plan::naming::shown(&fold(alias)).to_owned()),
            SelectItem::Wildcard(_) => names.extend(from.columns()?.into_iter().map(|(name, _)| name)),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), _) => {
                names.extend(from.relation(table)?.columns.clone()?);
            }
            _ => return None,
        }
    }
    Some(names)
}

/// A name, in parentheses or not.
fn bare(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Identifier(ident) => Some(ident),
        Expr::Nested(inner) => bare(inner),
        _ => None,
    }
}

/// Invariant 6. Whether there was any such alias.
fn rename_hidden(select: &mut Select, order_by: Option<&mut OrderBy>) -> bool {
    let Some(OrderBy { kind: OrderByKind::Expressions(order), .. }) = order_by else { return false };
    let mut renamed = false;
    for item in &mut select.projection {
        let SelectItem::ExprWithAlias { expr, alias } = item else { continue };
        let name = fold(alias);
        let names_it = |expr: &Expr| match expr {
            Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|part| fold(part) == name),
            Expr::Identifier(ident) => fold(ident) == name,
            _ => false,
        };
        if names_it(expr) || !order.iter().any(|by| bare(&by.expr).is_none() && contains(&by.expr, &names_it)) {
            continue;
        }
        let own = Ident::with_quote('"', format!("{name}\0o"));
        for by in order.iter_mut() {
            if bare(&by.expr).is_some_and(|ident| fold(ident) == name) {
                by.expr = Expr::Identifier(own.clone());
            }
        }
        *alias = own;
        renamed = true;
    }
    renamed
}

/// `SELECT * FROM (query) AS q (names)`.
fn name_again(query: &mut Query, names: &Names) -> Result<()> {
    let unknown = || unsupported("ORDER BY an expression in a subquery whose columns cannot be told");
    let names = names.as_ref().ok_or_else(unknown)?;
    if names.iter().enumerate().any(|(at, name)| names[..at].contains(name)) {
        return Err(unsupported("ORDER BY an expression in a subquery that names two columns alike"));
    }
    let column = |name: &String| TableAliasColumnDef { name: Ident::with_quote('"', name), data_type: None };
    let columns = names.iter().map(column).collect();
    let alias = TableAlias { explicit: true, name: Ident::with_quote('"', "\0o"), columns, at: None };
    let mut around = crate::parse::template("SELECT * FROM (SELECT 1) AS q")?;
    let SetExpr::Select(select) = around.body.as_mut() else { unreachable!("the template is a SELECT") };
    let inner = std::mem::replace(query, *crate::parse::template("SELECT 1")?);
    let subquery = Box::new(inner);
    select.from[0].relation = TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None };
    *query = *around;
    Ok(())
}

/// A set operation is ordered by columns of its result.
fn refuse_expressions(order_by: &OrderBy) -> Result<()> {
    let OrderByKind::Expressions(order) = &order_by.kind else { return Ok(()) };
    match order.iter().any(|by| bare(&by.expr).is_none() && !matches!(by.expr, Expr::Value(_))) {
        true => {
            let error = EngineError::new("0A000", "invalid UNION/INTERSECT/EXCEPT ORDER BY clause");
            Err(error.with_detail("Only result column names can be used, not expressions or functions."))
        }
        false => Ok(()),
    }
}

fn contains(expr: &Expr, test: &dyn Fn(&Expr) -> bool) -> bool {
    struct Contains<'t>(&'t dyn Fn(&Expr) -> bool);
    impl Visitor for Contains<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if (self.0)(expr) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    expr.visit(&mut Contains(test)).is_break()
}

/// One query of WITH RECURSIVE.
///
/// Upstream: each UNION there is planned as recursive, also where it does not read itself, and its ORDER BY and LIMIT
/// are passed over. What does not read itself goes into a query around it, which is planned as it stands.
fn settle_recursion(query: &mut Query, name: &str) -> Result<()> {
    let ends = query.order_by.is_some() || query.limit_clause.is_some() || query.fetch.is_some();
    if times_read(query, name) > 0 {
        let refused = ends || !query.locks.is_empty();
        return if refused { Err(unsupported("ORDER BY, LIMIT or a lock in a recursive query")) } else { Ok(()) };
    }
    if ends && matches!(*query.body, SetExpr::SetOperation { .. }) {
        let whole = query.clone();
        (query.with, query.order_by, query.limit_clause, query.fetch) = (None, None, None, None);
        query.locks.clear();
        *query.body = SetExpr::Query(Box::new(whole));
    }
    Ok(())
}

/// How many places in a query read the relation of that name.
fn times_read(query: &Query, name: &str) -> usize {
    struct Reads<'n>(&'n str, usize);
    impl Visitor for Reads<'_> {
        type Break = ();

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            if let TableFactor::Table { name, .. } = factor
                && let [part] = name.0.as_slice()
                && part.as_ident().is_some_and(|ident| fold(ident) == self.0)
            {
                self.1 += 1;
            }
            ControlFlow::Continue(())
        }
    }
    let mut reads = Reads(name, 0);
    let _ = query.visit(&mut reads);
    reads.1
}

/// Resolves queries within expressions.
struct Subqueries<'s, 'r> {
    resolver: &'s mut Resolver<'r>,
    depth: usize,
}

impl VisitorMut for Subqueries<'_, '_> {
    type Break = EngineError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<EngineError> {
        self.depth += 1;
        // What is within it, it resolves itself.
        if self.depth == 1 {
            // How it names its columns is nobody's concern.
            let around = self.resolver.renamed;
            let resolved = self.resolver.query(query);
            self.resolver.renamed = around;
            if let Err(error) = resolved {
                return ControlFlow::Break(error);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<EngineError> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

/// Writes out the columns of one SELECT, also where queries within it refer to them.
struct Columns<'c, 'r> {
    from: &'c From,
    twice: BTreeMap<String, Vec<String>>,
    ambiguous: BTreeSet<String>,
    grouped: bool,
    resolver: &'c mut Resolver<'r>,
    /// Of each query that has been entered, the names that mean its own columns; `None`: any may.
    inner: Vec<Names>,
}

impl<'c, 'r> Columns<'c, 'r> {
    fn new(from: &'c From, resolver: &'c mut Resolver<'r>) -> Columns<'c, 'r> {
        let (twice, ambiguous) = (from.given_twice(), from.ambiguous());
        Columns { from, twice, ambiguous, grouped: false, resolver, inner: vec![] }
    }

    fn is_hidden(&self, name: &str) -> bool {
        self.inner.iter().any(|names| names.as_ref().is_none_or(|names| names.iter().any(|n| n == name)))
    }
}

impl VisitorMut for Columns<'_, '_> {
    type Break = EngineError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<EngineError> {
        let nothing = self.from.merged.is_empty() && self.twice.is_empty() && self.ambiguous.is_empty();
        self.inner.push(if nothing { Some(vec![]) } else { self.resolver.own_names(query) });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<EngineError> {
        self.inner.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<EngineError> {
        if !self.inner.is_empty() {
            return ControlFlow::Continue(());
        }
        if let Expr::CompoundIdentifier(parts) = expr
            && let [table, column] = parts.as_slice()
            && self.twice.get(&fold(column)).is_some_and(|tables| tables.contains(&fold(table)))
        {
            return ambiguous(&fold(column));
        }
        match count_rows(expr, self.from, self.grouped) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<EngineError> {
        if let Expr::Identifier(ident) = expr {
            let name = fold(ident);
            if self.is_hidden(&name) {
                return ControlFlow::Continue(());
            }
            if self.ambiguous.contains(&name) || self.twice.contains_key(&name) {
                return ambiguous(&name);
            }
            if let Some(merged) = self.from.merged.get(&name) {
                *expr = Expr::Nested(Box::new(merged.clone()));
            }
        }
        ControlFlow::Continue(())
    }
}

fn ambiguous(name: &str) -> ControlFlow<EngineError> {
    ControlFlow::Break(EngineError::new("42702", format!("column reference \"{name}\" is ambiguous")))
}

/// `count(t.*)` as the count of a column of t that is never NULL, or of rows where nothing pads them.
fn count_rows(expr: &mut Expr, from: &From, grouped: bool) -> Result<()> {
    let Some(table) = counted_table(expr) else { return Ok(()) };
    if grouped && matches!(expr, Expr::Function(Function { over: Some(_), .. })) {
        return Err(unsupported(format!("count({table}.*) over a window beside GROUP BY")));
    }
    let Some(relation) = from.relation(table) else { return Ok(()) };
    let argument = match (&relation.never_null, from.has_outer_join) {
        (_, false) => FunctionArgExpr::Wildcard,
        (Some(column), true) => FunctionArgExpr::Expr(relation.column(column)),
        (None, true) => {
            return Err(unsupported(format!("count({table}.*) beside an outer join, of what has no NOT NULL column,")));
        }
    };
    let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = expr else { return Ok(()) };
    if list.duplicate_treatment.is_some() {
        return Err(unsupported("count(DISTINCT) of rows"));
    }
    list.args = vec![FunctionArg::Unnamed(argument)];
    Ok(())
}

impl Relation {
    fn column(&self, name: &str) -> Expr {
        Expr::CompoundIdentifier(vec![Ident::with_quote('"', &self.name), Ident::with_quote('"', name)])
    }
}
