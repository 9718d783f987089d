//! Views through which rows are changed: those that PostgreSQL calls automatically updatable.
//!
//! 1. Such a view reads one table, or one such view, and shows its rows as they are: each row of it is one row of the
//!    table. A change of the view is that change of the table, of the rows that meet the views' conditions.
//! 2. A column that is the table's, as it is, may be assigned to. Each other one is read only.
//! 3. The current role needs the right on the view, a view's owner on what the view reads; and SELECT on the columns
//!    that the view names, where the statement names a column of it to read it.
//! 4. WITH CHECK OPTION: rows that are written must meet the conditions of the view, and of those below it that say so
//!    themselves, or that CASCADED reaches. It is asked when the rows are in the table, before foreign keys are.
//! 5. A column that a view shows gets the view's default, which is its domain's; where there is none, that of what the
//!    view reads. An UPDATE's DEFAULT is the outermost view's alone: where it has none, NULL.
use crate::access::{Actor, denied};
use crate::error::{no_table, undefined_column, unsupported};
use crate::functions::builtin::is_known_aggregate;
use crate::functions::json::spread;
use crate::parse;
use crate::parse::identity::{Identity, refused_insert, refused_update};
use crate::parse::types::of_column;
use crate::values::{is_sequence, live_columns};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use terrace_engine::catalog::access::{Rights, Securable};
use terrace_engine::{
    Catalog, ColumnDef, DataType, Domain, EngineError, Result, Space, Table, View, ViewCheck, ViewUse,
};
use terrace_grammar::Parsed;
use terrace_grammar::statement::{
    Alias, Assignment, Body, Call, Conflict, ConflictAction, ConflictTarget, Distinct, Expr, ExprKind, FromItem, Ident,
    Insert, Literal, Name, Node, Query, Select, Statement, TypeName, Update, walk,
};

/// What a statement calls the table that it changes, and the views through which it does.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    pub(crate) name: String,
    pub(crate) through: Option<Arc<Through>>,
}

impl Called {
    /// By its own name, or another.
    pub(crate) fn so(name: &str) -> Called {
        Called { name: name.to_owned(), through: None }
    }

    /// The table, as far as defaults of its columns matter.
    pub(crate) fn defaults<'t>(&'t self, table: &'t Arc<Table>) -> &'t Arc<Table> {
        self.through.as_ref().map_or(table, |through| &through.defaults)
    }

    /// An UPDATE whose assigned columns are the table's.
    pub(crate) fn update<'u>(&self, update: &'u Update, table: &Table) -> Result<Cow<'u, Update>> {
        match &self.through {
            None => Ok(Cow::Borrowed(update)),
            Some(through) => Ok(Cow::Owned(through.update(update, table)?)),
        }
    }

    /// An INSERT whose listed columns are the table's, and those that ON CONFLICT names.
    pub(crate) fn insert<'i>(&self, insert: &'i Insert, table: &Table) -> Result<Cow<'i, Insert>> {
        match &self.through {
            None => Ok(Cow::Borrowed(insert)),
            Some(through) => Ok(Cow::Owned(through.insert(insert, table)?)),
        }
    }
}

/// The views of a change, the one that it names first. The last one reads the table.
#[derive(Debug)]
pub(crate) struct Through {
    pub(crate) levels: Vec<Level>,
    /// The table with the defaults that its columns have through the views (invariant 5).
    defaults: Arc<Table>,
}

/// One of these views.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) view: Arc<View>,
    /// The view's text; [`Level::select`] is in it.
    parsed: Parsed,
    /// What each column is of what the view reads: the column there, or why it cannot be assigned to.
    columns: Vec<std::result::Result<usize, &'static str>>,
}

/// What a view reads.
enum Below<'c> {
    Table(&'c Arc<Table>),
    View(&'c Arc<View>),
}

const NOT_ONE: &str = "Views that do not select from a single table or view are not automatically updatable.";
const NO_COLUMN: &str = "Views that have no updatable columns are not automatically updatable.";
const COMPUTED: &str = "View columns that are not columns of their base relation are not updatable.";
const WHOLE_ROW: &str = "View columns that return whole-row references are not updatable.";

/// The query in a view's text, without what gives its columns other names.
pub(crate) fn query_of(parsed: &Parsed) -> Option<&Query> {
    let Statement::Query(query) = parsed.statement() else { return None };
    Some(renamed_query(query).unwrap_or(query))
}

/// The query within `SELECT a, b FROM (query) AS v (a, b)`: that is how a view is kept whose columns were given names.
fn renamed_query(query: &Query) -> Option<&Query> {
    let Body::Select(select) = &query.body else { return None };
    let [FromItem::Query { lateral: false, query: inner, alias, .. }] = select.from.as_slice() else { return None };
    let plain = query.with.is_none() && query.order.is_empty() && query.limit.is_none() && query.offset.is_none();
    let plain = plain && select.filter.is_none() && select.group.is_none() && select.having.is_none();
    let plain = plain && matches!(select.distinct, Distinct::No) && select.items.len() == alias.columns.len();
    let mut named = select.items.iter().zip(&alias.columns).map(|(item, name)| match &item.expr.kind {
        ExprKind::Column(own) => item.alias.is_none() && own.qualifier().is_empty() && own.last().name == name.name,
        _ => false,
    });
    (plain && named.all(|same| same)).then_some(inner)
}

/// Whether a function answers any number of rows.
fn answers_rows(call: &Call) -> bool {
    let name = call.name.last().name.as_str();
    const OTHERS: [&str; 7] = [
        "unnest",
        "generate_series",
        "generate_subscripts",
        "string_to_table",
        "regexp_split_to_table",
        "regexp_matches",
        "pg_listening_channels",
    ];
    OTHERS.contains(&name) || spread::function(name).is_some()
}

/// Why a view with such a list is not updatable. What stands in queries within it is theirs.
fn of_items(select: &Select) -> Option<&'static str> {
    let (mut aggregate, mut window, mut rows) = (false, false, false);
    for item in &select.items {
        walk(Node::Expr(&item.expr), &mut |node| {
            if let Node::Expr(Expr { kind: ExprKind::Call(call), .. }) = node {
                window |= call.over.is_some();
                aggregate |= call.over.is_none() && is_known_aggregate(&call.name.last().name);
                rows |= answers_rows(call);
            }
            !matches!(node, Node::Query(_))
        });
    }
    let reasons = [
        (aggregate, "Views that return aggregate functions are not automatically updatable."),
        (window, "Views that return window functions are not automatically updatable."),
        (rows, "Views that return set-returning functions are not automatically updatable."),
    ];
    reasons.into_iter().find_map(|(is, reason)| is.then_some(reason))
}

/// The one SELECT of a query that may be a view's through which rows are changed, or why it is none.
fn simple(query: &Query) -> std::result::Result<&Select, &'static str> {
    let select = match &query.body {
        Body::Select(select) => Some(select),
        _ => None,
    };
    let has = |test: fn(&Select) -> bool| select.is_some_and(|select| test(select));
    let reasons = [
        (
            has(|select| !matches!(select.distinct, Distinct::No)),
            "Views containing DISTINCT are not automatically updatable.",
        ),
        (has(|select| select.group.is_some()), "Views containing GROUP BY are not automatically updatable."),
        (has(|select| select.having.is_some()), "Views containing HAVING are not automatically updatable."),
        (
            matches!(query.body, Body::Set { .. }),
            "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.",
        ),
        (query.with.is_some(), "Views containing WITH are not automatically updatable."),
        (
            query.limit.is_some() || query.offset.is_some(),
            "Views containing LIMIT or OFFSET are not automatically updatable.",
        ),
    ];
    if let Some((_, reason)) = reasons.into_iter().find(|(is, _)| *is) {
        return Err(reason);
    }
    let select = select.ok_or(NOT_ONE)?;
    match of_items(select) {
        Some(reason) => Err(reason),
        None => Ok(select),
    }
}

/// The relation that a SELECT reads, if it is one alone.
fn only_relation(select: &Select) -> Option<(&Name, Option<&Alias>)> {
    match select.from.as_slice() {
        [FromItem::Table { name, alias, .. }] => Some((name, alias.as_ref())),
        _ => None,
    }
}

impl<'c> Below<'c> {
    fn of(catalog: &'c Catalog, name: &Name) -> Option<Below<'c>> {
        let name = parse::relation(name).ok()?.of_definition();
        if let Some(view) = catalog.view(&name) {
            return Some(Below::View(view));
        }
        catalog.table(&name).filter(|table| !is_sequence(table)).map(Below::Table)
    }

    /// The table's column that one of its columns is.
    fn column(&self, catalog: &Catalog, at: usize) -> Option<ColumnDef> {
        match self {
            Below::Table(table) => table.columns.get(at).cloned(),
            Below::View(view) => {
                let (level, below) = Level::of(catalog, view).ok()?.ok()?;
                below.column(catalog, level.columns.get(at)?.ok()?)
            }
        }
    }

    /// Whether a column is of the type that a name means, with the same digits, and of the same domain.
    fn is_of(&self, catalog: &Catalog, at: usize, name: &TypeName) -> bool {
        let Ok((data_type, digits, domain)) = of_column(name, catalog) else { return false };
        let of_time =
            matches!(data_type, DataType::Timestamp | DataType::Timestamptz | DataType::Time | DataType::Interval);
        // Six digits are kept as none, and are not the same.
        let unclear = of_time && digits.is_none() && !name.modifiers.is_empty();
        let oid = |domain: &Option<Arc<Domain>>| domain.as_ref().map(|domain| domain.oid);
        let same = |column: ColumnDef| {
            column.data_type == data_type && column.digits == digits && oid(&column.domain) == oid(&domain)
        };
        !unclear && self.column(catalog, at).is_some_and(same)
    }

    /// What a view sees of it: the names of its columns, and where they are.
    fn columns(&self, used: &ViewUse, alias: Option<&'c Alias>) -> Vec<(&'c str, usize)> {
        let all: Vec<(usize, &str)> = match self {
            Below::Table(table) => live_columns(table).map(|(at, column)| (at, column.name.as_str())).collect(),
            Below::View(view) => view.columns.iter().map(|column| column.name.as_str()).enumerate().collect(),
        };
        let given = alias.map_or(&[][..], |alias| &alias.columns);
        let seen = all.into_iter().take_while(|(at, _)| *at < used.columns);
        seen.enumerate().map(|(number, (at, own))| (given.get(number).map_or(own, |name| &name.name), at)).collect()
    }
}

/// What a view's column is of what the view reads. A cast to the very type that a column has is none.
fn column_of(
    expr: &Expr,
    columns: &[(&str, usize)],
    is_of: &impl Fn(usize, &TypeName) -> bool,
) -> std::result::Result<usize, &'static str> {
    match &expr.kind {
        ExprKind::Column(name) => {
            let found = columns.iter().find(|(own, _)| *own == name.last().name);
            found.map(|(_, at)| *at).ok_or(if name.qualifier().is_empty() { WHOLE_ROW } else { COMPUTED })
        }
        ExprKind::Cast { arg, to, .. } => {
            let at = column_of(arg, columns, is_of).map_err(|_| COMPUTED)?;
            if is_of(at, to) { Ok(at) } else { Err(COMPUTED) }
        }
        _ => Err(COMPUTED),
    }
}

impl Level {
    /// One view, and what it reads; or why rows cannot be changed through it.
    fn of<'c>(catalog: &'c Catalog, view: &Arc<View>) -> Result<std::result::Result<(Level, Below<'c>), &'static str>> {
        let broken = || EngineError::damaged(format!("the text of view \"{}\" makes no sense", view.name));
        let parsed = parse::statement(&view.sql).ok().flatten().ok_or_else(broken)?;
        let select = match simple(query_of(&parsed).ok_or_else(broken)?) {
            Ok(select) => select,
            Err(reason) => return Ok(Err(reason)),
        };
        let Some((name, alias)) = only_relation(select) else { return Ok(Err(NOT_ONE)) };
        let Some(below) = Below::of(catalog, name) else { return Ok(Err(NOT_ONE)) };
        let used = below.used_by(view).ok_or_else(broken)?;
        let known = below.columns(used, alias);
        let is_of = |at: usize, name: &TypeName| below.is_of(catalog, at, name);
        let columns: Vec<_> = select.items.iter().map(|item| column_of(&item.expr, &known, &is_of)).collect();
        if columns.len() != view.columns.len() {
            return Err(broken());
        }
        Ok(Ok((Level { view: view.clone(), parsed, columns }, below)))
    }

    pub(crate) fn select(&self) -> &Select {
        let query = query_of(&self.parsed).expect("it was looked at when the level was made");
        simple(query).expect("it was looked at when the level was made")
    }

    /// The columns that it names of what it reads.
    pub(crate) fn used_of(&self, (space, name): (Space, &str)) -> &[usize] {
        let used = self.view.uses.iter().find(|used| used.space == space && used.relation == name);
        used.map_or(&[], |used| &used.used)
    }

    /// What a name of a column means below (invariant 2).
    fn column(&self, number: usize, change: &str) -> Result<usize> {
        self.columns[number].map_err(|reason| {
            let (column, view) = (&self.view.columns[number].name, &self.view.name);
            EngineError::new("0A000", format!("cannot {change} column \"{column}\" of view \"{view}\""))
                .with_detail(reason)
        })
    }
}

impl Below<'_> {
    fn used_by<'v>(&self, view: &'v View) -> Option<&'v ViewUse> {
        let (space, name) = match self {
            Below::Table(table) => (table.space, &table.name),
            Below::View(view) => (view.space, &view.name),
        };
        view.uses.iter().find(|used| used.space == space && used.relation == *name)
    }
}

/// Why a view cannot be changed, as PostgreSQL says it.
fn refused(view: &View, right: Rights, reason: &'static str) -> EngineError {
    let (what, doing, event) = match right {
        Rights::INSERT => ("insert into", "inserting into", "INSERT"),
        Rights::UPDATE => ("update", "updating", "UPDATE"),
        _ => ("delete from", "deleting from", "DELETE"),
    };
    let hint = format!(
        "To enable {doing} the view, provide an INSTEAD OF {event} trigger or an unconditional ON {event} DO INSTEAD \
         rule."
    );
    EngineError::new("55000", format!("cannot {what} view \"{}\"", view.name)).with_detail(reason).with_hint(hint)
}

/// What can be done with a view's rows, or with those of its columns: PostgreSQL's bits of UPDATE (4), INSERT (8) and
/// DELETE (16).
pub(crate) fn events(catalog: &Catalog, view: &Arc<View>, columns: Option<BTreeSet<usize>>) -> i32 {
    let Ok(Ok((level, below))) = Level::of(catalog, view) else { return 0 };
    let wanted = |at: &usize| columns.as_ref().is_none_or(|columns| columns.contains(at));
    let shown = level.columns.iter().enumerate().filter(|(at, _)| wanted(at));
    let shown: BTreeSet<usize> = shown.filter_map(|(_, column)| column.ok()).collect();
    let own = if shown.is_empty() { 16 } else { 28 };
    match below {
        Below::Table(_) => own,
        Below::View(view) => own & events(catalog, view, Some(shown)),
    }
}

/// Why a view cannot have WITH CHECK OPTION. 0A000
pub(crate) fn refuse_check(catalog: &Catalog, view: &View) -> Result<()> {
    let reason = match Level::of(catalog, &Arc::new(view.clone()))? {
        Err(reason) => Some(reason),
        Ok((level, _)) if level.columns.iter().all(std::result::Result::is_err) => Some(NO_COLUMN),
        Ok((level, Below::Table(_))) => return level.refuse_queries(),
        Ok((level, Below::View(below))) => match Through::of(catalog, below, Rights::INSERT) {
            Err(_) => return level.refuse_queries(),
            Ok((through, _)) => {
                level.refuse_queries()?;
                return through.levels.iter().try_for_each(Level::refuse_queries);
            }
        },
    };
    let message = "WITH CHECK OPTION is supported only on automatically updatable views";
    let error = EngineError::new("0A000", message);
    Err(match reason {
        Some(reason) => error.with_hint(reason),
        None => error,
    })
}

impl Level {
    /// Check options are evaluated when the rows are written, over the columns of all views: a query would see them.
    /// 0A000
    pub(crate) fn refuse_queries(&self) -> Result<()> {
        let (mut found, select) = (false, self.select());
        for expr in select.items.iter().map(|item| &item.expr).chain(&select.filter) {
            walk(Node::Expr(expr), &mut |node| {
                found |= matches!(node, Node::Query(_));
                !found
            });
        }
        match found {
            true => {
                let what = format!("WITH CHECK OPTION over view \"{}\", which has a query within,", self.view.name);
                Err(unsupported(what).with_hint("Leave the option out, or change the table below it."))
            }
            false => Ok(()),
        }
    }
}

impl Through {
    /// The views of a change through this one, and the table. 55000 where PostgreSQL says so.
    pub(crate) fn of(catalog: &Catalog, view: &Arc<View>, right: Rights) -> Result<(Through, Arc<Table>)> {
        let (mut levels, mut next) = (vec![], view.clone());
        loop {
            let (level, below) = Level::of(catalog, &next)?.map_err(|reason| refused(&next, right, reason))?;
            if right != Rights::DELETE && level.columns.iter().all(std::result::Result::is_err) {
                return Err(refused(&next, right, NO_COLUMN));
            }
            levels.push(level);
            match below {
                Below::Table(table) => {
                    let through = Through { levels, defaults: table.clone() };
                    return Ok((Through { defaults: through.with_defaults(table), ..through }, table.clone()));
                }
                Below::View(view) => next = view.clone(),
            }
        }
    }

    pub(crate) fn view(&self) -> &Arc<View> {
        &self.levels[0].view
    }

    /// The default that a column of a level has there (invariant 5).
    fn default_of(&self, level: usize, number: usize, table: &Table) -> Option<String> {
        let of_domain = || domain_default(&table.columns[self.down(level, number, "").ok()?]);
        self.levels[level].view.columns[number].default_sql.clone().or_else(of_domain)
    }

    /// The table with the defaults that its columns get through the views: the outermost view's come first.
    fn with_defaults(&self, table: &Arc<Table>) -> Arc<Table> {
        let found = |at: usize| {
            let own = |level: usize| {
                self.up(level, &[at]).into_iter().find_map(|number| self.default_of(level, number, table))
            };
            (0..self.levels.len()).find_map(own)
        };
        let found: Vec<(usize, String)> =
            live_columns(table).filter_map(|(at, _)| found(at).map(|default| (at, default))).collect();
        if found.is_empty() {
            return table.clone();
        }
        let mut made = Table::clone(table);
        found.into_iter().for_each(|(at, default)| made.columns[at].default_sql = Some(default));
        Arc::new(made)
    }

    /// The views whose conditions written rows must meet, the innermost first. `cascaded`: a view above them says so.
    pub(crate) fn checked(&self, mut cascaded: bool) -> impl Iterator<Item = &Level> {
        let mut found: Vec<&Level> = vec![];
        for level in &self.levels {
            cascaded |= level.view.check == Some(ViewCheck::Cascaded);
            if (cascaded || level.view.check.is_some()) && level.select().filter.is_some() {
                found.push(level);
            }
        }
        found.into_iter().rev()
    }

    /// The table's column that a level's column is. `change`: as the error calls what is done.
    fn down(&self, from: usize, number: usize, change: &str) -> Result<usize> {
        self.levels[from..].iter().try_fold(number, |number, level| level.column(number, change))
    }

    /// Columns of a level that are these of the table.
    pub(crate) fn up(&self, level: usize, table: &[usize]) -> Vec<usize> {
        let own = |at: &usize| {
            (0..self.levels[level].columns.len()).find(|number| self.down(level, *number, "").is_ok_and(|to| to == *at))
        };
        table.iter().filter_map(own).collect()
    }

    /// Invariant 3, of these columns of the table; empty: of any.
    pub(crate) fn permit(&self, catalog: &Catalog, actor: &Actor, right: Rights, columns: &[usize]) -> Result<()> {
        let mut owner: Option<Actor> = None;
        for (number, level) in self.levels.iter().enumerate() {
            let (object, own) = ((level.view.oid, Securable::Table), self.up(number, columns));
            let who = owner.as_ref().unwrap_or(actor);
            if !who.may_with(catalog, object, right, own) {
                return Err(denied("view", &level.view.name));
            }
            owner = Some(Actor::of_oid(catalog.owner(level.view.oid), catalog));
        }
        Ok(())
    }

    /// The same of the table: its reader is the last view's owner.
    pub(crate) fn permit_table(
        &self,
        catalog: &Catalog,
        table: &Arc<Table>,
        right: Rights,
        columns: &[usize],
    ) -> Result<()> {
        let last = &self.levels[self.levels.len() - 1].view;
        let owner = Actor::of_oid(catalog.owner(last.oid), catalog);
        owner.permit_columns(catalog, table, right, columns.iter().copied())
    }

    /// The same of reading: each view's owner needs SELECT on the columns that the view names.
    pub(crate) fn permit_reads(&self, catalog: &Catalog, table: &Arc<Table>) -> Result<()> {
        for (number, level) in self.levels.iter().enumerate() {
            let owner = Actor::of_oid(catalog.owner(level.view.oid), catalog);
            let Some(Level { view: below, .. }) = self.levels.get(number + 1) else {
                let used = level.used_of((table.space, &table.name));
                return owner.permit_columns(catalog, table, Rights::SELECT, used.iter().copied());
            };
            let used = level.used_of((below.space, &below.name)).to_vec();
            if !owner.may_with(catalog, (below.oid, Securable::Table), Rights::SELECT, used) {
                return Err(denied("view", &below.name));
            }
        }
        Ok(())
    }

    /// A column of the view by its name, as the table calls it.
    fn named(&self, name: &Ident, table: &Table, change: &str) -> Result<Ident> {
        let view = self.view();
        let number = view.columns.iter().position(|column| column.name == name.name);
        let number = number.ok_or_else(|| undefined_column(&name.name, &view.name))?;
        let at = self.down(0, number, change)?;
        Ok(Ident { at: name.at, name: table.columns[at].name.clone() })
    }

    fn assignments(&self, set: &mut [Assignment], table: &Table, change: &str) -> Result<()> {
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut named = |column: &mut Ident, value: Option<&mut Expr>| {
            let new = self.named(column, table, change)?;
            let number = self.view().columns.iter().position(|own| own.name == column.name);
            let has_default = number.is_some_and(|number| self.default_of(0, number, table).is_some());
            let is_default = value.as_ref().is_some_and(|value| matches!(value.kind, ExprKind::Default));
            let below = table.column(&new.name).map(|at| &table.columns[at]);
            if let Some(below) = below.filter(|below| has_default && is_default && is_always_made(below)) {
                return Err(refused_update(below));
            }
            if let Some(value) = value.filter(|value| !has_default && matches!(value.kind, ExprKind::Default)) {
                value.kind = ExprKind::Literal(Literal::Null); // Invariant 5.
            }
            let own = std::mem::replace(column, new).name;
            match seen.insert(own.clone()) {
                true => Ok(()),
                false => Err(assigned_twice(&own)),
            }
        };
        set.iter_mut().try_for_each(|assignment| match assignment {
            Assignment::One { column, value } => named(column, Some(value)),
            Assignment::Many { columns, value, .. } => {
                let mut fields = match &mut value.kind {
                    ExprKind::Row { fields, .. } => fields.as_mut_slice(),
                    _ => &mut [],
                }
                .iter_mut();
                columns.iter_mut().try_for_each(|column| named(column, fields.next()))
            }
        })
    }

    fn update(&self, update: &Update, table: &Table) -> Result<Update> {
        let mut made = update.clone();
        self.assignments(&mut made.set, table, "update")?;
        Ok(made)
    }

    /// An INSERT of one row without the columns that get a DEFAULT which the view has not: they get the table's. So a
    /// column of the table may be named twice.
    fn without_defaults(&self, insert: &Insert, table: &Table) -> Insert {
        let mut made = insert.clone();
        let Some(source) = &mut made.source else { return made };
        let is_plain =
            source.with.is_none() && source.order.is_empty() && source.limit.is_none() && source.offset.is_none();
        let Body::Values(rows) = &mut source.body else { return made };
        let ([row], true) = (rows.as_mut_slice(), is_plain && insert.parts.iter().all(Vec::is_empty)) else {
            return made;
        };
        let columns = &self.view().columns;
        let named = match insert.columns.as_slice() {
            [] => columns.iter().map(|column| Ident { at: insert.target.at(), name: column.name.clone() }).collect(),
            named => named.to_vec(),
        };
        if row.len() > named.len() || !insert.columns.is_empty() && row.len() < named.len() {
            return made; // It is refused later.
        }
        let is_left_out = |name: &Ident, value: &Expr| {
            let number = columns.iter().position(|column| column.name == name.name);
            let has_default = |number: usize| self.default_of(0, number, table).is_some();
            let is_left_out = |number: usize| self.down(0, number, "").is_ok() && !has_default(number);
            matches!(value.kind, ExprKind::Default) && number.is_some_and(is_left_out)
        };
        let names: BTreeSet<&str> = named.iter().map(|name| name.name.as_str()).collect();
        if names.len() < named.len() || !named.iter().zip(row.iter()).any(|(name, value)| is_left_out(name, value)) {
            return made;
        }
        let pairs = named.into_iter().zip(std::mem::take(row));
        let kept = pairs.filter(|(name, value)| !is_left_out(name, value));
        (made.columns, *row) = kept.unzip();
        made.parts = made.columns.iter().map(|_| vec![]).collect();
        if made.columns.is_empty() {
            made.source = None;
        }
        made
    }

    /// A view's default of a column that is computed would be assigned to it: 0A000; 428C9 where the table computes it.
    fn refuse_defaults(&self, table: &Table) -> Result<()> {
        for (number, level) in self.levels.iter().enumerate() {
            let given = level.view.columns.iter().enumerate().filter(|(_, column)| column.default_sql.is_some());
            for (at, _) in given {
                let column = &table.columns[self.down(number, at, "insert into")?];
                if is_always_made(column) {
                    return Err(refused_insert(column));
                }
            }
        }
        Ok(())
    }

    /// The table's columns that an INSERT names, as far as they may be assigned to: those that get a DEFAULT, too.
    pub(crate) fn filled(&self, insert: &Insert) -> Vec<usize> {
        let columns = &self.view().columns;
        let width = match insert.source.as_ref().map(|source| &source.body) {
            Some(Body::Values(rows)) => rows.first().map_or(0, |row| row.len()),
            _ => 0,
        };
        let place = |name: &Ident| columns.iter().position(|column| column.name == name.name);
        let numbers: Vec<usize> = match insert.columns.as_slice() {
            [] => (0..width.min(columns.len())).collect(),
            named => named.iter().filter_map(place).collect(),
        };
        numbers.into_iter().filter_map(|number| self.down(0, number, "").ok()).collect()
    }

    fn insert(&self, insert: &Insert, table: &Table) -> Result<Insert> {
        self.refuse_defaults(table)?;
        let mut made = self.without_defaults(insert, table);
        let (mut seen, mut filled) = (BTreeSet::new(), BTreeSet::new());
        for (number, column) in made.columns.iter_mut().enumerate() {
            let new = self.named(column, table, "insert into")?;
            let is_part = insert.parts.get(number).is_some_and(|part| !part.is_empty());
            if !seen.insert(column.name.clone()) && !is_part {
                let message = format!("column \"{}\" specified more than once", column.name);
                return Err(EngineError::new("42701", message));
            }
            if !filled.insert(new.name.clone()) && !is_part {
                return Err(assigned_twice(&new.name));
            }
            *column = new;
        }
        if let Some(conflict) = &mut made.conflict {
            self.conflict(conflict, table)?;
        }
        Ok(made)
    }

    fn conflict(&self, conflict: &mut Conflict, table: &Table) -> Result<()> {
        match &mut conflict.target {
            None => {}
            Some(ConflictTarget::Constraint(name)) => {
                let (name, view) = (&name.name, &self.view().name);
                let message = format!("constraint \"{name}\" for table \"{view}\" does not exist");
                return Err(EngineError::new("42704", message));
            }
            Some(ConflictTarget::Elements { elements, filter, .. }) => {
                if filter.is_some() {
                    return Err(unsupported("ON CONFLICT (...) WHERE of a view")
                        .with_hint("Insert into the table below the view."));
                }
                for element in elements {
                    let ExprKind::Column(name) = &element.expr.kind else {
                        return Err(unsupported("ON CONFLICT of an expression over a view")
                            .with_hint("Insert into the table below the view."));
                    };
                    let new = self.conflicting(name.last(), table)?;
                    element.text = terrace_grammar::quoted(&new.name);
                    element.expr.kind = ExprKind::Column(Name::one(new));
                }
            }
        }
        match &mut conflict.action {
            ConflictAction::Nothing => Ok(()),
            ConflictAction::Update { set, .. } => self.assignments(set, table, "insert into"),
        }
    }

    /// A column of a conflict's target, as the table calls it.
    fn conflicting(&self, name: &Ident, table: &Table) -> Result<Ident> {
        let named = self.named(name, table, "");
        named.map_err(|error| match error.state.0 {
            "0A000" => {
                let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
                EngineError::new("42P10", message)
            }
            _ => EngineError::new("42703", format!("column \"{}\" does not exist", name.name)),
        })
    }

    /// The columns of the table that an INSERT without a list fills, up to the first that it cannot.
    pub(crate) fn leading(&self) -> Vec<usize> {
        let all = 0..self.view().columns.len();
        let at = all.map(|number| self.down(0, number, "").ok()).take_while(Option::is_some);
        at.flatten().collect()
    }

    /// So many values for the first columns. 0A000 where one of these cannot be assigned to, 42601 where two are one.
    pub(crate) fn permit_width(&self, values: usize, table: &Table) -> Result<()> {
        let mut filled = BTreeSet::new();
        for number in 0..values.min(self.view().columns.len()) {
            let at = self.down(0, number, "insert into")?;
            if !filled.insert(at) {
                return Err(assigned_twice(&table.columns[at].name));
            }
        }
        Ok(())
    }
}

/// Whether the table gives it its value, and nobody else.
fn is_always_made(column: &ColumnDef) -> bool {
    column.generated.is_some() || Identity::of(column) == Some(Identity::Always)
}

fn domain_default(column: &ColumnDef) -> Option<String> {
    column.domain.as_ref().and_then(|domain| domain.default_sql.clone())
}

fn assigned_twice(column: &str) -> EngineError {
    EngineError::new("42601", format!("multiple assignments to same column \"{column}\""))
}

/// The table that a name means, and the views through which it does. `right`: what is done with its rows.
pub(crate) fn meant(
    catalog: &Catalog,
    name: &terrace_engine::RelationName,
    right: Rights,
) -> Result<(Arc<Table>, Option<Arc<Through>>)> {
    if let Some(table) = catalog.table(name) {
        return Ok((table.clone(), None));
    }
    let view = catalog.view(name).ok_or_else(|| no_table(catalog, name))?;
    let (through, table) = Through::of(catalog, view, right)?;
    Ok((table, Some(Arc::new(through))))
}
