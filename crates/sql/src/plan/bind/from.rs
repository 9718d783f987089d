//! FROM: tables, files, queries, functions and joins.
//!
//! 1. `USING` and `NATURAL` merge columns: the merged ones come first in `*`, in the left side's order; each is the
//!    left one's value, of a RIGHT join the right one's, of a FULL join whichever is not NULL, and of the type that
//!    both have in common.
//! 2. No two items of FROM are called the same (42712); an alias of a join hides what it joins.
//! 3. A LATERAL query is bound among the columns of what stands before it, which are columns of an outer query to it.
use super::query::{Around, deeper};
use super::scope::{Clause, Ctes, Kind, Scope};
use super::sets::Standing;
use super::{Binder, Placed, Result, bounds, fail, records, system, unsupported, wrong};
use crate::error::undefined_table;
use crate::files::FileTable;
use crate::functions::arrays::calls::is_function;
use crate::functions::chars;
use crate::parse::among;
use crate::pgcatalog;
use crate::plan::choosers::{self, Chooser};
use crate::plan::resolve;
use crate::plan::scan::TableScan;
use crate::values::arrays::is_row;
use crate::values::field_type;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, JoinType, Spans, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Subquery, SubqueryAlias, lit};
use std::sync::Arc;
use terrace_engine::catalog::roles::READ_FILES;
use terrace_engine::{Among, DataType, EngineError, RelationName};
use terrace_grammar::statement::{self as tree, Alias, Call, ExprKind, FromItem, Ident, JoinKind, JoinOn, Name};

/// What an item of FROM, or all of it, offers.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) plan: LogicalPlan,
    pub(super) relations: Vec<Relation>,
    /// What `*` means, in order.
    pub(super) visible: Vec<(String, Expr)>,
    /// Whether there is an item at all.
    pub(super) given: bool,
    /// It never has rows.
    pub(super) empty: bool,
}

/// What has a name in FROM.
#[derive(Clone)]
pub(super) struct Relation {
    pub(super) name: String,
    /// The schema that it may be named with: of a table that has no other name.
    pub(super) schemas: Vec<String>,
    /// The table, where it has another name here.
    pub(super) hidden: Option<String>,
    pub(super) columns: Vec<(String, Expr)>,
    /// Columns that tell its rows apart, by number; none where that is not known.
    pub(super) key: Vec<usize>,
    /// A column that is NULL only where an outer join pads it.
    pub(super) never_null: Option<usize>,
    /// An outer join may pad its rows.
    pub(super) padded: bool,
    /// Its `tableoid`, which `*` leaves out: a column of relations of the system, a constant of tables.
    pub(super) table_oid: Option<Expr>,
    /// It stands in a JOIN, whose columns alone bare names mean.
    pub(super) in_join: bool,
    /// Its name means its one column: it is a function that answers single values, whose column has another name.
    pub(super) value: bool,
}

impl Source {
    /// One row without columns.
    pub(super) fn nothing() -> Result<Source> {
        let plan = LogicalPlanBuilder::empty(true).build()?;
        Ok(Source { plan, relations: vec![], visible: vec![], given: false, empty: false })
    }

    pub(super) fn of(plan: LogicalPlan, relation: Relation) -> Source {
        let visible = relation.columns.clone();
        Source { plan, relations: vec![relation], visible, given: true, empty: false }
    }
}

impl Relation {
    /// Tables of two schemas may have one name.
    fn is_called_as(&self, other: &Relation) -> bool {
        let apart = !self.schemas.is_empty() && !other.schemas.is_empty();
        self.name == other.name && (!apart || self.schemas.iter().any(|schema| other.schemas.contains(schema)))
    }
}

impl Binder<'_> {
    pub(super) fn from(&self, items: &[FromItem], around: Around<'_>) -> Result<Source> {
        let mut all: Option<Source> = None;
        for item in items {
            all = Some(match all {
                None => self.item(item, around, None)?,
                Some(left) => match self.lists_beside(item, &left, JoinKind::Cross, &JoinOn::Nothing, around)? {
                    Some(both) => both,
                    None => {
                        let right = self.behind(item, &left, around)?;
                        self.joined(left, right, JoinKind::Cross, &JoinOn::Nothing, around)?
                    }
                },
            });
        }
        all.map_or_else(Source::nothing, Ok)
    }

    /// An item that may be LATERAL, behind `left`.
    pub(super) fn behind(&self, item: &FromItem, left: &Source, around: Around<'_>) -> Result<Source> {
        let scope = Scope::new(left, around.scope, around.ctes);
        self.item(item, around, Some(&scope))
    }

    /// An item of FROM or USING beside what a statement changes, the first relation of `left`.
    pub(super) fn beside_target(&self, item: &FromItem, left: &Source, around: Around<'_>) -> Result<Source> {
        let scope = Scope { behind_target: true, ..Scope::new(left, around.scope, around.ctes) };
        self.item(item, around, Some(&scope))
    }

    /// `before`: what stands before it, for LATERAL.
    fn item(&self, item: &FromItem, around: Around<'_>, before: Option<&Scope<'_>>) -> Result<Source> {
        match item {
            FromItem::Table { name, alias, .. } => self.table(name, alias.as_ref(), around.ctes),
            FromItem::File { at, path, alias } => self.file(path, alias.as_ref()).at(*at),
            FromItem::Query { lateral, query, alias, .. } => {
                let scope = if *lateral { before.or(around.scope) } else { around.scope };
                let bound = self.query(query, scope, around.ctes)?;
                let plan = if *lateral { apart(bound.plan) } else { bound.plan };
                self.derived(plan, bound.titles, &alias.name.name, Some(alias))
            }
            FromItem::Functions { functions, ordinality, rows_from: false, alias, .. } => {
                let [function] = functions.as_slice() else { return unsupported("several functions in FROM") };
                let around = Around { scope: before.or(around.scope), ..around };
                let standing = Standing { alias: alias.as_ref(), numbered: *ordinality, columns: &function.columns };
                if let ExprKind::Call(call) = &function.call.kind {
                    let nothing = Source::nothing()?;
                    let scope = Scope::new(&nothing, around.scope, around.ctes);
                    scope.clause.set(Clause::Function);
                    if let Some(source) = self.lists_in_from(call, standing, &scope, function.call.at)? {
                        return Ok(source);
                    }
                }
                records::refuse_columns(&function.columns)?;
                match &function.call.kind {
                    ExprKind::Call(call) => self.function_in_from(call, standing, around, &function.call),
                    ExprKind::Special { function: special, .. } => {
                        self.value_in_from(&function.call, special.name(), standing, around)
                    }
                    _ => unsupported("this function in FROM"),
                }
            }
            FromItem::Functions { .. } => unsupported("ROWS FROM"),
            FromItem::Join { kind, sides, on, alias, .. } => {
                let left = self.item(&sides[0], around, before)?;
                let mut joined = match self.lists_beside(&sides[1], &left, *kind, on, around)? {
                    Some(both) => both,
                    None => {
                        let right = self.right_side(&sides[1], &left, around, before, *kind)?;
                        self.joined(left, right, *kind, on, around)?
                    }
                };
                joined.relations.iter_mut().for_each(|relation| relation.in_join = true);
                match alias {
                    None => Ok(joined),
                    Some(alias) => self.hidden(joined, alias),
                }
            }
        }
    }

    /// The right side of a join.
    fn right_side(
        &self,
        item: &FromItem,
        left: &Source,
        around: Around<'_>,
        before: Option<&Scope<'_>>,
        kind: JoinKind,
    ) -> Result<Source> {
        if matches!(kind, JoinKind::Right | JoinKind::Full) && is_lateral(item) {
            return unsupported("LATERAL in a RIGHT or FULL join");
        }
        let scope = Scope::new(left, before.or(around.scope), around.ctes);
        self.item(item, around, Some(&scope))
    }

    /// A table, a query of WITH, or a relation of the system.
    pub(super) fn table(&self, name: &Name, alias: Option<&Alias>, ctes: &Ctes<'_>) -> Result<Source> {
        let at = name.at();
        let parts: Vec<&str> = name.parts().iter().map(|part| part.name.as_str()).collect();
        if parts.len() == 1 {
            ctes.check_bound(name.last())?;
        }
        if let [own] = parts.as_slice()
            && let Some(cte) = ctes.find(own)
        {
            cte.reads.set(cte.reads.get() + 1);
            self.reads(cte.copies)?;
            if cte.kind == Kind::Volatile && cte.reads.get() > 1 {
                return unsupported("a volatile query of WITH that is read twice");
            }
            if cte.kind == Kind::Silent {
                return wrong(at, "0A000", format!("WITH query \"{own}\" does not have a RETURNING clause"));
            }
            let shown = alias.map_or(*own, |alias| alias.name.name.as_str());
            return self.derived(LogicalPlan::clone(&cte.plan), cte.titles, shown, alias);
        }
        if let Some(source) = self.of_system(&parts, alias, at)? {
            return Ok(source);
        }
        let among = match parts.as_slice() {
            [_] => Some(Among::All),
            [schema, _] => among(schema),
            _ => None,
        };
        let Some(among) = among else { return fail(at, undefined_table(name.shown())) };
        let own = name.last().name.as_str();
        let named = RelationName::new(among, own);
        let named = if self.is_of_text() { named.of_definition() } else { named };
        self.permit_lookup(&named).at(at)?;
        if let Some(view) = self.planner.catalog.view(&named) {
            self.note_schema(name, view.space);
            return deeper(|| self.view_in_from(view, alias));
        }
        let Some(table) = self.planner.catalog.table(&named) else { return fail(at, undefined_table(name.shown())) };
        self.note_schema(name, table.space);
        self.tables.borrow_mut().push(table.clone());
        let shown = alias.map_or(own, |alias| alias.name.name.as_str());
        let scanned = self.scanned(TableScan::new(self.planner.without_unusable(table)), shown, table)?;
        self.table_in_from(scanned, table, alias)
    }

    /// A file of the server.
    fn file(&self, path: &str, alias: Option<&Alias>) -> Result<Source> {
        if self.defines_view() || self.is_of_text() {
            return unsupported("a file in the query of a view");
        }
        if !self.planner.info.actor(self.planner.catalog).has(READ_FILES) {
            let message = "must be superuser or have privileges of the pg_read_server_files role to read a file";
            return Err(EngineError::new("42501", message).into());
        }
        let file = FileTable::open(path)?;
        let shown = alias.map_or_else(|| file.name().to_owned(), |alias| alias.name.name.clone());
        let (called, titles) = (TableReference::bare(self.relation_name(&shown)), file.titles.clone());
        let plan = LogicalPlanBuilder::scan(called, provider_as_source(Arc::new(file)), None)?.build()?;
        self.named(plan, Some(titles), &shown, alias)
    }

    /// A query in FROM.
    pub(super) fn derived(
        &self,
        plan: LogicalPlan,
        titles: Vec<String>,
        shown: &str,
        alias: Option<&Alias>,
    ) -> Result<Source> {
        let called = TableReference::bare(self.relation_name(shown));
        let plan = SubqueryAlias::try_new(Arc::new(plan), called).map(LogicalPlan::SubqueryAlias)?;
        self.named(plan, Some(titles), shown, alias)
    }

    /// A relation of a plan's columns, as they are called, or as the alias calls them.
    pub(super) fn named(
        &self,
        plan: LogicalPlan,
        titles: Option<Vec<String>>,
        shown: &str,
        alias: Option<&Alias>,
    ) -> Result<Source> {
        let schema = plan.schema();
        let titles = titles.unwrap_or_else(|| schema.fields().iter().map(|field| field.name().clone()).collect());
        let columns = titles.into_iter().zip(schema.columns().into_iter().map(Expr::Column)).collect();
        let never_null = schema.fields().iter().position(|field| !field.is_nullable());
        let relation = Relation {
            name: shown.to_owned(),
            schemas: vec![],
            hidden: None,
            columns,
            key: vec![],
            never_null,
            padded: false,
            table_oid: None,
            in_join: false,
            value: false,
        };
        renamed(Source::of(plan, relation), alias)
    }

    /// A join with a name (invariant 2). Its columns get names of their own.
    fn hidden(&self, joined: Source, alias: &Alias) -> Result<Source> {
        let titles: Vec<String> = joined.visible.iter().map(|(title, _)| title.clone()).collect();
        let columns = joined.visible.iter().map(|(title, expr)| expr.clone().alias(self.column_name(title)));
        let columns: Vec<Expr> = columns.collect();
        let plan = LogicalPlanBuilder::from(joined.plan).project(columns)?.build()?;
        let made = self.derived(plan, titles, &alias.name.name, Some(alias))?;
        made.visible.iter().zip(&joined.visible).for_each(|((_, new), (_, old))| self.note_stand_in(new, old));
        Ok(made)
    }

    /// A function in FROM: a series of integers, or one value.
    fn function_in_from(
        &self,
        call: &Call,
        standing: Standing<'_>,
        around: Around<'_>,
        whole: &tree::Expr,
    ) -> Result<Source> {
        let (at, alias) = (whole.at, standing.alias);
        let of_catalog = match call.name.parts() {
            [_] => true,
            [schema, _] => schema.name == "pg_catalog",
            _ => false,
        };
        let plain = call.args.iter().all(|arg| arg.name.is_none())
            && !(call.star || call.distinct || call.variadic)
            && (call.order.is_empty() && call.within.is_empty() && call.filter.is_none() && call.over.is_none());
        let nothing = Source::nothing()?;
        let scope = Scope::new(&nothing, around.scope, around.ctes);
        scope.clause.set(Clause::Function);
        match call.name.last().name.as_str() {
            _ if !of_catalog => return unsupported("a function of another schema"),
            "generate_series" if plain && !standing.numbered => {}
            "pg_get_keywords" if plain && call.args.is_empty() && !standing.numbered => {
                return self.relation_in_from("pg_get_keywords", alias);
            }
            one if plain && (self.planner.scalar(one).is_some() || is_function(one)) => {
                return self.value_in_from(whole, one, standing, around);
            }
            _ if standing.numbered => return unsupported("WITH ORDINALITY of this function"),
            _ => return unsupported("this function in FROM"),
        }
        let args = call.args.iter().map(|arg| self.expr(&arg.value, &scope)).collect::<Result<Vec<Expr>>>()?;
        if args.iter().any(Expr::contains_outer) {
            return unsupported("a series beside what it is made of");
        }
        let provider = crate::functions::series::table(self.planner.state, args).at(at)?;
        let shown = alias.map_or("generate_series", |alias| alias.name.name.as_str());
        let called = TableReference::bare(self.relation_name(shown));
        let plan = LogicalPlanBuilder::scan(called, provider_as_source(provider), None)?.build()?;
        self.named(plan, Some(vec![shown.to_owned()]), shown, alias)
    }

    /// A function of one value: a relation of one row.
    fn value_in_from(
        &self,
        call: &tree::Expr,
        name: &str,
        Standing { alias, numbered, .. }: Standing<'_>,
        around: Around<'_>,
    ) -> Result<Source> {
        let nothing = Source::nothing()?;
        let scope = Scope::new(&nothing, around.scope, around.ctes);
        scope.clause.set(Clause::Function);
        let value = self.expr(call, &scope)?;
        if is_row(&value.get_type(&scope.schema)?) {
            return unsupported("a function in FROM that answers a row");
        }
        let value = match system::class_of(call) {
            Some(class) => self.name_of_class(class, value, &scope)?,
            None => value,
        };
        let shown = alias.map_or(name, |alias| alias.name.name.as_str());
        let mut columns = vec![value.alias(self.column_name(shown))];
        let mut titles = vec![shown.to_owned()];
        if numbered {
            columns.push(lit(1i64).alias(self.column_name("ordinality")));
            titles.push("ordinality".to_owned());
        }
        let plan = LogicalPlanBuilder::from(nothing.plan).project(columns)?.build()?;
        self.derived(plan, titles, shown, alias)
    }

    /// A function that answers rows of the system.
    fn relation_in_from(&self, name: &str, alias: Option<&Alias>) -> Result<Source> {
        let provider = pgcatalog::relation("functions", name, self.planner.catalog, self.planner.info)?;
        let provider = provider.expect("it is one of the relations there are");
        let shown = alias.map_or(name, |alias| alias.name.name.as_str());
        let called = TableReference::bare(self.relation_name(shown));
        let plan = LogicalPlanBuilder::scan(called, provider_as_source(provider), None)?.build()?;
        self.named(plan, None, shown, alias)
    }

    pub(super) fn joined(
        &self,
        left: Source,
        right: Source,
        kind: JoinKind,
        on: &JoinOn,
        around: Around<'_>,
    ) -> Result<Source> {
        bounds::joins(left.relations.len() + right.relations.len())?;
        let known = |one: &Relation| left.relations.iter().any(|other| one.is_called_as(other));
        if let Some(twice) = right.relations.iter().find(|relation| known(relation)) {
            let message = format!("table name \"{}\" specified more than once", twice.name);
            return Err(EngineError::new("42712", message).into());
        }
        let both = Arc::new(left.plan.schema().join(right.plan.schema())?);
        let (mut conditions, mut merged) = (vec![], vec![]);
        let natural: Vec<Ident>;
        let keys = match on {
            JoinOn::Using { columns, .. } => columns.as_slice(),
            JoinOn::Natural => {
                natural = common(&left, &right);
                &natural
            }
            JoinOn::Nothing | JoinOn::On(_) => &[],
        };
        for (number, key) in keys.iter().enumerate() {
            if keys[..number].iter().any(|other| other.name == key.name) {
                let message = format!("column name \"{}\" appears more than once in USING clause", key.name);
                return Err(EngineError::new("42701", message).into());
            }
            let (a, b) = (side(&left, key, "left")?, side(&right, key, "right")?);
            self.note_named([&a, &b]);
            let equal = self.compared("=", a.clone(), b.clone(), &both).at(key.at)?;
            conditions.push(equal);
            merged.push((key.name.clone(), merge(kind, a, b, &both).at(key.at)?));
        }
        let is_merged = |name: &str| keys.iter().any(|key| key.name == name);
        let rest = left.visible.iter().chain(&right.visible).filter(|(name, _)| !is_merged(name)).cloned();
        let visible = merged.into_iter().chain(rest).collect();
        let padded = |relations: &[Relation], by: &[JoinKind]| {
            let pad =
                |relation: &Relation| Relation { padded: relation.padded || by.contains(&kind), ..relation.clone() };
            relations.iter().map(pad).collect::<Vec<Relation>>()
        };
        let mut relations = padded(&left.relations, &[JoinKind::Right, JoinKind::Full]);
        relations.extend(padded(&right.relations, &[JoinKind::Left, JoinKind::Full]));
        let empty = match kind {
            JoinKind::Cross | JoinKind::Inner => left.empty || right.empty,
            JoinKind::Left => left.empty,
            JoinKind::Right => right.empty,
            JoinKind::Full => left.empty && right.empty,
        };
        let (left, mut right) = (left.plan, right.plan);
        let mut source = Source { plan: left, relations, visible, given: true, empty };
        if let JoinOn::On(condition) = on {
            let scope = Scope::over(&source, both, around.scope, around.ctes);
            scope.clause.set(Clause::On);
            let condition = self.condition(condition, "JOIN/ON", &scope)?;
            conditions.push(self.with_values_beside(condition, &mut source.plan, &mut right)?);
        }
        source.plan = join(source.plan, right, kind, conditions)?;
        if kind == JoinKind::Full && !keys.is_empty() {
            self.compute_merged(&mut source, keys.len())?;
        }
        if let JoinOn::Using { alias: Some(alias), .. } = on {
            let merged = source.visible[..keys.len()].to_vec();
            source.relations.push(of_merged(alias, merged, &source.relations)?);
        }
        Ok(source)
    }

    /// A condition of a join, in which the values of subqueries are columns of the side whose columns they take:
    /// DataFusion has no subqueries in conditions of joins.
    fn with_values_beside(&self, on: Expr, left: &mut LogicalPlan, right: &mut LogicalPlan) -> Result<Expr> {
        let is_of = |subquery: &Subquery, side: &LogicalPlan| {
            subquery.outer_ref_columns.iter().all(|taken| match taken {
                Expr::OuterReferenceColumn(_, column) => side.schema().has_column(column),
                _ => false,
            })
        };
        let (mut of_left, mut of_right) = (vec![], vec![]);
        let on = on.transform(|expr| {
            let Expr::ScalarSubquery(subquery) = &expr else { return Ok(Transformed::no(expr)) };
            let side = match () {
                () if is_of(subquery, left) => &mut of_left,
                () if is_of(subquery, right) => &mut of_right,
                () => return Ok(Transformed::no(expr)),
            };
            let name = self.column_name("subquery");
            side.push(expr.alias(&name));
            Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name))))
        })?;
        for (side, values) in [(left, of_left), (right, of_right)] {
            if !values.is_empty() {
                let plan = std::mem::replace(side, LogicalPlanBuilder::empty(false).build()?);
                let all: Vec<Expr> = columns(&plan).chain(values).collect();
                *side = LogicalPlanBuilder::from(plan).project(all)?.build()?;
            }
        }
        Ok(on.data)
    }

    /// The first `count` columns of a FULL join become columns of its plan: a join above merges them again, and written
    /// out they would double with each.
    fn compute_merged(&self, source: &mut Source, count: usize) -> Result<()> {
        let mut columns: Vec<Expr> = columns(&source.plan).collect();
        for (title, merged) in &mut source.visible[..count] {
            let name = self.column_name(title);
            columns.push(std::mem::take(merged).alias(&name));
            *merged = Expr::Column(Column::new_unqualified(name));
        }
        let plan = std::mem::replace(&mut source.plan, LogicalPlanBuilder::empty(false).build()?);
        source.plan = LogicalPlanBuilder::from(plan).project(columns)?.build()?;
        Ok(())
    }
}

/// `USING (a) AS x`: the merged columns have a name of their own. 42712
fn of_merged(alias: &Ident, columns: Vec<(String, Expr)>, known: &[Relation]) -> Result<Relation> {
    let made = Relation {
        name: alias.name.clone(),
        schemas: vec![],
        hidden: None,
        columns,
        key: vec![],
        never_null: None,
        padded: false,
        table_oid: None,
        in_join: true,
        value: false,
    };
    match known.iter().any(|other| made.is_called_as(other)) {
        true => {
            let message = format!("table name \"{}\" specified more than once", alias.name);
            Err(EngineError::new("42712", message).into())
        }
        false => Ok(made),
    }
}

/// A relation with its columns as the alias calls them.
pub(super) fn renamed(mut source: Source, alias: Option<&Alias>) -> Result<Source> {
    let [relation] = source.relations.as_mut_slice() else { unreachable!("one relation was made") };
    let available = relation.columns.len();
    for (at, name) in alias.iter().flat_map(|alias| &alias.columns).enumerate() {
        let Some((title, _)) = relation.columns.get_mut(at) else {
            let (shown, given) = (&relation.name, alias.map_or(0, |alias| alias.columns.len()));
            let message = format!("table \"{shown}\" has {available} columns available but {given} columns specified");
            return Err(EngineError::new("42P10", message).into());
        };
        title.clone_from(&name.name);
    }
    source.visible.clone_from(&relation.columns);
    Ok(source)
}

fn join(left: LogicalPlan, right: LogicalPlan, kind: JoinKind, mut on: Vec<Expr>) -> Result<LogicalPlan> {
    if on.is_empty() {
        // Of a NATURAL join without a name in common.
        on.push(lit(true));
    }
    let builder = LogicalPlanBuilder::from(left);
    let joined = match kind {
        JoinKind::Cross => builder.cross_join(right)?,
        JoinKind::Inner if on == [lit(true)] => builder.cross_join(right)?,
        JoinKind::Inner => builder.join_on(right, JoinType::Inner, on)?,
        JoinKind::Left => builder.join_on(right, JoinType::Left, on)?,
        JoinKind::Right => builder.join_on(right, JoinType::Right, on)?,
        JoinKind::Full => builder.join_on(right, JoinType::Full, on)?,
    };
    Ok(joined.build()?)
}

fn is_lateral(item: &FromItem) -> bool {
    match item {
        FromItem::Query { lateral, .. } | FromItem::Functions { lateral, .. } => *lateral,
        FromItem::Table { .. } | FromItem::File { .. } | FromItem::Join { .. } => false,
    }
}

/// A LATERAL query, for DataFusion to make a join of; one that names nothing before it is as any other.
fn apart(plan: LogicalPlan) -> LogicalPlan {
    let outer_ref_columns = plan.all_out_ref_exprs();
    if outer_ref_columns.is_empty() {
        return plan;
    }
    LogicalPlan::Subquery(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() })
}

/// The names that both sides have, in the left one's order.
fn common(left: &Source, right: &Source) -> Vec<Ident> {
    let mut names: Vec<Ident> = vec![];
    for (name, _) in &left.visible {
        let both = right.visible.iter().any(|(other, _)| other == name);
        if both && !names.iter().any(|known| known.name == *name) {
            names.push(Ident { at: 0, name: name.clone() });
        }
    }
    names
}

/// A side's column of that name.
fn side(source: &Source, key: &Ident, which: &str) -> Result<Expr> {
    let mut found = source.visible.iter().filter(|(name, _)| *name == key.name);
    match (found.next(), found.next()) {
        (Some((_, column)), None) => Ok(column.clone()),
        (None, _) => {
            let message = format!("column \"{}\" specified in USING clause does not exist in {which} table", key.name);
            Err(EngineError::new("42703", message).into())
        }
        _ => {
            let message = format!("common column name \"{}\" appears more than once in {which} table", key.name);
            Err(EngineError::new("42702", message).into())
        }
    }
}

/// Invariant 1.
fn merge(kind: JoinKind, left: Expr, right: Expr, both: &DFSchema) -> Result<Expr> {
    if kind == JoinKind::Full {
        let coalesce = choosers::function("coalesce").expect("it is one of them");
        let call = Expr::ScalarFunction(ScalarFunction::new_udf(coalesce, vec![left, right]));
        return Ok(resolve::rewrite(call, both)?.data);
    }
    let (made, common) = choosers::of_one_type(Chooser::Coalesce, vec![left, right], both)?;
    let [left, right] = <[Expr; 2]>::try_from(made).expect("two come back of two");
    let merged = if kind == JoinKind::Right { right } else { left };
    let has = field_type(&merged.to_field(both)?.1);
    Ok(match (common.as_ref().and_then(field_type), has) {
        // Of two kinds of texts the left one's. No value has the blanks of char(n).
        (Some(text @ DataType::Text), Some(DataType::Varchar(_) | DataType::Char(_)))
        | (Some(text @ DataType::Varchar(_)), Some(DataType::Text | DataType::Char(_))) => {
            chars::labelled(merged, text)
        }
        _ => merged,
    })
}

/// A relation's columns, as `t.*` means them.
pub(super) fn columns_of(relation: &Relation) -> impl Iterator<Item = (String, Expr)> {
    relation.columns.iter().cloned()
}

/// A plan's own columns.
pub(super) fn columns(plan: &LogicalPlan) -> impl Iterator<Item = Expr> {
    plan.schema().columns().into_iter().map(|column: Column| Expr::Column(column))
}
