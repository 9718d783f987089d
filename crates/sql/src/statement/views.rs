//! CREATE VIEW, DROP VIEW, and what else goes with what a view reads.
//!
//! 1. A view is defined under the lock of definitions: what it reads stays as it is until the definition is there.
//! 2. What is kept is the query's text, with each `*` written out, and around it the names of columns that were given.
//!    It is bound again before it is kept, and must then have the same columns and read the same.
//! 3. CASCADE drops views before what they read.
use crate::error::unsupported;
use crate::parse;
use crate::parse::depth::depth;
use crate::parse::qualified::{edited, kept_edits, shown_relation};
use crate::parse::stored::{clock_words, has_open_rows, has_open_times, open_times};
use crate::plan::planner::Planner;
use crate::statement::alter_view::check_option;
use crate::statement::create_as::called;
use crate::statement::ddl::{check_name, duplicate};
use crate::statement::dispatch::without_schema;
use crate::statement::outcome::notice;
use crate::statement::run::Run;
use crate::statement::target::Target;
use crate::through::refuse_check;
use std::ops::Range;
use std::sync::Arc;
use terrace_engine::catalog::access::Securable;
use terrace_engine::types::Style;
use terrace_engine::{
    Among, Catalog, ColumnDef, EngineError, Placing, RelationName, Result, Space, Table, View, ViewUse,
};
use terrace_grammar::statement::{At, CreateView, Ident, Name, Node, Query, Statement};
use terrace_grammar::{quoted, token_end};
use terrace_storage::ObjectId;

/// Levels of a view's query, those of the views that it reads included: statements that may read views have stack for
/// so many more.
const DEEPEST: usize = 64;

/// Columns, what is read, and the text that is kept.
type Definition = (Vec<ColumnDef>, Vec<ViewUse>, String);

/// A view's query as it is written, at its place in a text, and the names that are given to the first columns.
struct Written<'v> {
    text: &'v str,
    query: &'v Query,
    place: Range<usize>,
    columns: &'v [Ident],
}

/// A view, and why it goes: `view v depends on table t`.
pub(crate) type Dependent = (Arc<View>, String);

impl Run<'_> {
    pub(crate) async fn create_view(&self, create: &CreateView) -> Result<Vec<EngineError>> {
        check_name(&parse::relation(&create.name)?.name)?;
        self.lock_definitions().await?;
        let catalog = self.begin_statement().await;
        let target = Target::of(&create.name, create.temporary, None, &catalog)?;
        let actor = self.info.actor(&catalog);
        actor.permit_creation(&catalog, target.placing)?;
        let (mut columns, uses, sql) = match create.recursive {
            true => self.defined_recursive(create, &catalog).await?,
            false => {
                let text = self.tree.map(|tree| tree.text()).expect("CREATE VIEW was parsed from a text");
                let place = create.place.start as usize..create.place.end as usize;
                let written = Written { text, query: &create.query, place, columns: &create.columns };
                self.defined(&create.name, written, Some(text), &catalog).await?
            }
        };
        let own = catalog.own_space();
        let reads_own = uses.iter().any(|used| Some(used.space) == own);
        let (target, notices) = match reads_own && !target.is_temporary() {
            true => {
                let told = notice("00000", format!("view \"{}\" will be a temporary view", target.name));
                (Target::of(&create.name, true, None, &catalog)?, vec![told])
            }
            false => (target, vec![]),
        };
        let temporary = target.is_temporary();
        let space = match target.placing {
            Placing::In(space) => space,
            Placing::Temporary(_) => self.cell.lock().await.open().own_space()?,
        };
        let (named, name) = (RelationName::new(Among::In(space), target.name.as_str()), target.name);
        let before = catalog.view(&named).cloned();
        match &before {
            Some(before) if create.or_replace => {
                actor.require_owner(&catalog, before.oid, ("view", &before.name))?;
                refuse_others(before, &columns)?;
            }
            Some(_) => return Err(duplicate(&name)),
            None if catalog.table(&named).is_some() && create.or_replace => {
                return Err(EngineError::new("42809", format!("\"{name}\" is not a view")));
            }
            None if catalog.name_taken(space, &name) => return Err(duplicate(&name)),
            None => {}
        }
        let zone = self.style().zone.to_string();
        let depth = levels(&sql, &uses, &catalog)?;
        let check = check_option(&create.options, create.check)?;
        if let Some(before) = &before {
            for (column, old) in columns.iter_mut().zip(&before.columns) {
                column.default_sql.clone_from(&old.default_sql);
            }
        }
        let view = View { oid: ObjectId(0), space, temporary, name, columns, sql, zone, depth, uses, check };
        if check.is_some() {
            refuse_check(&catalog, &view)?;
        }
        if catalog.reads(&view, space, &view.name) {
            let message = format!("infinite recursion detected in rules for relation \"{}\"", view.name);
            return Err(EngineError::new("42P17", message));
        }
        let put = async { self.cell.lock().await.open().put_view(view).await };
        self.cancel.run(put).await?;
        if before.is_none()
            && let Some(view) = self.begin_statement().await.view(&named)
        {
            self.own_in(view.oid, (!temporary).then_some((space, Securable::Table))).await?;
        }
        Ok(notices)
    }

    /// Of RECURSIVE, which stands for `WITH RECURSIVE v (a, b) AS (query) SELECT a, b FROM v`.
    async fn defined_recursive(&self, create: &CreateView, catalog: &Arc<Catalog>) -> Result<Definition> {
        let text = self.tree.map(|tree| tree.text()).expect("CREATE VIEW was parsed from a text");
        let query = &text[create.place.start as usize..create.place.end as usize];
        let names: Vec<String> = create.columns.iter().map(|column| quoted(&column.name)).collect();
        let (name, names) = (quoted(&create.name.last().name), names.join(", "));
        let sql = format!("WITH RECURSIVE {name} ({names}) AS ({query}) SELECT {names} FROM {name}");
        let broken = || unsupported("the form of this view's query");
        let parsed = parse::statement(&sql)?.ok_or_else(broken)?;
        let Statement::Query(query) = parsed.statement() else { return Err(broken()) };
        let written = Written { text: &sql, query, place: 0..sql.len(), columns: &[] };
        self.defined(&create.name, written, None, catalog).await
    }

    pub(crate) async fn lock_definitions(&self) -> Result<()> {
        let lock = async { self.cell.lock().await.open().lock_definitions().await };
        self.cancel.run(lock).await
    }

    /// Columns, what is read, and the text that is kept (invariant 2). `shown`: the text into which errors point.
    async fn defined(
        &self,
        name: &Name,
        Written { text, query, place, columns: names }: Written<'_>,
        shown: Option<&str>,
        catalog: &Arc<Catalog>,
    ) -> Result<Definition> {
        let planner = Planner { text: shown, ..self.planner(catalog).await };
        let define = |style: Style, query: &Query| style.scope(|| planner.define_view(query));
        let (defined, plan) = define(self.style(), query)?;
        if has_open_times(Node::Query(query)) {
            let shown = plan.display_indent().to_string();
            let is_same =
                |style: Style| define(style, query).is_ok_and(|(_, plan)| plan.display_indent().to_string() == shown);
            if has_open_rows(Node::Query(query)) || !self.style().readings().into_iter().all(is_same) {
                return Err(open_times());
            }
        }
        let mut columns = self.result_columns(plan)?;
        let from = place.start;
        let mut sql = text[place].to_owned();
        let mut edits = kept_edits(Node::Query(query), text, catalog);
        for (at, columns) in &defined.stars {
            let word = *at as usize..token_end(text, *at) as usize;
            edits.push(match text[word.clone()].eq_ignore_ascii_case("table") {
                true => (word, format!("SELECT {columns} FROM")),
                false => (*at as usize..end_of_star(text, *at)? as usize, columns.clone()),
            });
        }
        edits.extend(defined.schemas);
        let edits = edits.into_iter().map(|(place, new)| (place.start - from..place.end - from, new));
        sql = edited(&sql, edits.collect());
        if !names.is_empty() {
            let too_many = || EngineError::new("42601", "CREATE VIEW specifies more column names than columns");
            columns = called(columns, names, too_many)?;
            let names: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
            let (names, name) = (names.join(", "), quoted(&name.last().name));
            sql = format!("SELECT {names} FROM ({sql}) AS {name} ({names})");
        }
        let columns = called(columns, &[], || unreachable!("no name is given"))?;
        let sql = self.with_clock_in(&planner, sql);
        let broken = || unsupported("the form of this view's query");
        let parsed = parse::statement(&sql)?.ok_or_else(broken)?;
        let Statement::Query(query) = parsed.statement() else { return Err(broken()) };
        let (again, plan) = planner_of_kept(&planner, |planner| self.style().scope(|| planner.define_view(query)))?;
        if self.result_columns(plan)? != columns || again.uses != defined.uses {
            return Err(broken());
        }
        Ok((columns, defined.uses, sql))
    }

    /// A view's text with the times that its words of the clock mean now: those that are read as times.
    fn with_clock_in(&self, planner: &Planner<'_>, mut sql: String) -> String {
        let words = |sql: &str| match parse::statement(sql) {
            Ok(Some(parsed)) => match parsed.statement() {
                Statement::Query(query) => clock_words(Node::Query(query), sql),
                _ => vec![],
            },
            _ => vec![],
        };
        let planned = |sql: &str| {
            let parsed = parse::statement(sql).ok()??;
            let Statement::Query(query) = parsed.statement() else { return None };
            let define = |planner: &Planner<'_>| self.style().scope(|| planner.define_view(query));
            planner_of_kept(planner, define).ok().map(|(_, plan)| plan.display_indent().to_string())
        };
        for number in (0..words(&sql).len()).rev() {
            let Some(word) = words(&sql).into_iter().nth(number) else { break };
            let kept = edited(&sql, vec![word]);
            let before = planned(&sql);
            if before.is_some() && before == planned(&kept) {
                sql = kept;
            }
        }
        sql
    }

    /// Views that group by a key of the table, which has just gone, and those that read them. `what` has gone.
    pub(crate) async fn views_without_key(&self, table: &Table, what: &str) -> Result<Vec<Dependent>> {
        let catalog = self.begin_statement().await;
        let planner = self.planner(&catalog).await;
        let mut found: Vec<Dependent> = vec![];
        for view in &catalog.views_on((table.space, &table.name), None) {
            let parsed = parse::statement(&view.sql)?;
            let Some(Statement::Query(query)) = parsed.as_ref().map(|parsed| parsed.statement()) else { continue };
            let bound = planner_of_kept(&planner, |planner| self.style().scope(|| planner.define_view(query)));
            if bound.is_err_and(|error| error.state.0 == "42803") {
                let shown = shown_view(view, &catalog);
                found.push((view.clone(), format!("{shown} depends on {what}")));
                dependent_views(&catalog, (view.space, &view.name), None, &shown, &mut found);
            }
        }
        Ok(found)
    }

    /// Of the names of a DROP VIEW, in order.
    pub(crate) async fn drop_views(
        &self,
        names: &[Name],
        (if_exists, cascade): (bool, bool),
    ) -> Result<Vec<EngineError>> {
        self.lock_definitions().await?;
        let catalog = self.begin_statement().await;
        let (mut notices, mut doomed) = (vec![], vec![]);
        for name in names {
            let name = parse::relation(name)?;
            if let Some(told) = without_schema(&name, &catalog, if_exists)? {
                notices.push(told);
                continue;
            }
            match catalog.view(&name) {
                Some(view) => {
                    let object = (view.oid, view.space);
                    self.info.actor(&catalog).require_dropper(&catalog, object, ("view", &view.name))?;
                    doomed.push(view.clone());
                }
                None if catalog.relation_exists(&name) => {
                    let error = EngineError::new("42809", format!("\"{}\" is not a view", name.name));
                    return Err(match catalog.table(&name) {
                        Some(_) => error.with_hint("Use DROP TABLE to remove a table."),
                        None => error,
                    });
                }
                None if if_exists => {
                    notices.push(notice("00000", format!("view \"{}\" does not exist, skipping", name.name)));
                }
                None => return Err(EngineError::new("42P01", format!("view \"{}\" does not exist", name.name))),
            }
        }
        let what = match doomed.as_slice() {
            [one] => shown_view(one, &catalog),
            _ => "desired object(s)".into(),
        };
        let mut others: Vec<Dependent> = vec![];
        for view in &doomed {
            dependent_views(&catalog, (view.space, &view.name), None, &shown_view(view, &catalog), &mut others);
        }
        others.retain(|(view, _)| doomed.iter().all(|gone| gone.oid != view.oid));
        if !cascade {
            refuse_views(&what, &others)?;
        }
        self.drop_dependent_views(&others, &mut notices).await?;
        self.drop_all_views(doomed).await?;
        Ok(notices)
    }

    /// Those that others of them read come last (invariant 3).
    async fn drop_all_views(&self, mut left: Vec<Arc<View>>) -> Result<()> {
        while !left.is_empty() {
            let catalog = self.begin_statement().await;
            let (now, later): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|view| catalog.views_on((view.space, &view.name), None).is_empty());
            assert!(!now.is_empty(), "no view reads itself, and none that reads these is kept");
            for view in now {
                self.drop_view(&view.full_name()).await?;
            }
            left = later;
        }
        Ok(())
    }

    async fn drop_view(&self, name: &RelationName) -> Result<()> {
        // Named twice, it has gone.
        if self.begin_statement().await.view(name).is_none() {
            return Ok(());
        }
        let drop = async { self.cell.lock().await.open().drop_view(name).await };
        self.cancel.run(drop).await
    }

    /// CASCADE (invariant 3): a notice for each view, or one with all.
    pub(crate) async fn drop_dependent_views(
        &self,
        dependents: &[Dependent],
        notices: &mut Vec<EngineError>,
    ) -> Result<()> {
        let catalog = self.begin_statement().await;
        let cascades = |(view, _): &Dependent| format!("drop cascades to {}", shown_view(view, &catalog));
        self.drop_all_views(dependents.iter().map(|(view, _)| view.clone()).collect()).await?;
        match dependents {
            [] => {}
            [one] => notices.push(notice("00000", cascades(one))),
            all => {
                let lines: Vec<String> = all.iter().map(cascades).collect();
                let told = notice("00000", format!("drop cascades to {} other objects", all.len()));
                notices.push(told.with_detail(lines.join("\n")));
            }
        }
        Ok(())
    }
}

/// A view, as messages name it.
pub(crate) fn shown_view(view: &View, catalog: &Catalog) -> String {
    format!("view {}", shown_relation(view.space, &view.name, catalog))
}

/// The same planner, for a text that is kept: errors do not point into that, and names mean what they mean there.
fn planner_of_kept<T>(planner: &Planner<'_>, plan: impl FnOnce(&Planner<'_>) -> T) -> T {
    let Planner { state, catalog, info, ref unusable_indexes, text: _, numbers, parts } = *planner;
    let catalog = &catalog.of_definitions();
    plan(&Planner { state, catalog, info, unusable_indexes: unusable_indexes.clone(), text: None, numbers, parts })
}

/// Where a `*` or `t.*` that begins there ends.
fn end_of_star(text: &str, at: At) -> Result<At> {
    let mut next = at;
    loop {
        let end = token_end(text, next);
        match &text[next as usize..end as usize] {
            "*" => return Ok(end),
            "" => return Err(unsupported("a comment within t.* in a view")),
            _ => {}
        }
        let rest = &text[end as usize..];
        next = end + (rest.len() - rest.trim_start().len()) as At;
    }
}

/// A bound on the levels of a view's query. 54001
fn levels(sql: &str, uses: &[ViewUse], catalog: &Catalog) -> Result<u32> {
    let own = parse::statement(sql)?.map(|parsed| depth(&parsed)).transpose()?.unwrap_or(0);
    let inner = uses.iter().filter_map(|used| catalog.view(&used.name())).map(|view| view.depth as usize).max();
    // What stands around a view in a plan.
    let levels = own + inner.unwrap_or(0) + 2;
    if levels > DEEPEST {
        let message =
            format!("a view, with those that it reads, chains or nests more than {DEEPEST} operators or queries");
        return Err(EngineError::new("54001", message).with_hint("Define a simpler view."));
    }
    Ok(levels as u32)
}

/// 42P16 where a view that is replaced would lose a column, or a column would become another.
fn refuse_others(before: &View, columns: &[ColumnDef]) -> Result<()> {
    if columns.len() < before.columns.len() {
        return Err(EngineError::new("42P16", "cannot drop columns from view"));
    }
    for (old, new) in before.columns.iter().zip(columns) {
        if old.name != new.name {
            let message = format!("cannot change name of view column \"{}\" to \"{}\"", old.name, new.name);
            let hint = "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.";
            return Err(EngineError::new("42P16", message).with_hint(hint));
        }
        if old.data_type != new.data_type {
            let (from, to) = (old.data_type, new.data_type);
            let message = format!("cannot change data type of view column \"{}\" from {from} to {to}", old.name);
            return Err(EngineError::new("42P16", message));
        }
    }
    Ok(())
}

/// Adds the views that read a relation (or name its column), which `object` names, and then those that read them: each
/// once.
pub(crate) fn dependent_views(
    catalog: &Catalog,
    relation: (Space, &str),
    column: Option<usize>,
    object: &str,
    found: &mut Vec<Dependent>,
) {
    let mut next = found.len();
    let add = |found: &mut Vec<Dependent>, views: Vec<Arc<View>>, object: &str| {
        for view in views {
            if found.iter().all(|(known, _)| known.oid != view.oid) {
                let line = format!("{} depends on {object}", shown_view(&view, catalog));
                found.push((view, line));
            }
        }
    };
    add(found, catalog.views_on(relation, column), object);
    while let Some((view, _)) = found.get(next).cloned() {
        add(found, catalog.views_on((view.space, &view.name), None), &shown_view(&view, catalog));
        next += 1;
    }
}

/// The same error, with the views that need what goes among what depends on it.
pub(crate) fn with_views(mut error: EngineError, dependents: &[Dependent]) -> EngineError {
    let lines = error.detail.into_iter().chain(dependents.iter().map(|(_, line)| line.clone()));
    error.detail = Some(lines.collect::<Vec<_>>().join("\n"));
    error
}

/// 2BP01 where views depend on `what`.
pub(crate) fn refuse_views(what: &str, dependents: &[Dependent]) -> Result<()> {
    if dependents.is_empty() {
        return Ok(());
    }
    let lines: Vec<&str> = dependents.iter().map(|(_, line)| line.as_str()).collect();
    let them = if what.ends_with("(s)") { "them" } else { "it" };
    let message = format!("cannot drop {what} because other objects depend on {them}");
    let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
    Err(EngineError::new("2BP01", message).with_detail(lines.join("\n")).with_hint(hint))
}
