//! What the parser accepts and nobody here would carry out is refused, instead of being passed over.
//!
//! 1. The parts of a query are taken apart field by field: one that a newer parser adds does not compile until it has
//!    its place here.
//! 2. What comes out has PostgreSQL's names for result columns, and fewer forms: `AT TIME ZONE` is a function.
mod grouping;
mod limit;
mod places;

pub(crate) use places::has_call;

use crate::error::unsupported;
use crate::parse::literals::interval_text;
use crate::parse::locking::query_of;
use crate::parse::{call, fold};
use crate::plan::naming;
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::VisitMut;
use datafusion::sql::sqlparser::ast::{
    CastKind, DuplicateTreatment, Expr, Fetch, Function, FunctionArg, FunctionArgumentClause, FunctionArgumentList,
    FunctionArguments, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator, LimitClause, LockClause, OrderBy,
    OrderByKind, Query, Select, SelectFlavor, SelectItem, SetExpr, SetQuantifier, Statement, TableAlias,
    TableAliasColumnDef, TableFactor, TableWithJoins, Value, Visit, Visitor, VisitorMut, WildcardAdditionalOptions,
};
use std::ops::ControlFlow;
use terrace_engine::{EngineError, Result};

#[derive(Default)]
pub(crate) struct Refusals {
    /// Whether the queries of expressions that are not within a query may lock rows.
    may_lock: bool,
    /// Of queries.
    depth: usize,
    /// The locks of such queries, while what is within is looked at.
    held: Vec<Vec<LockClause>>,
}

impl Refusals {
    /// For the condition of what changes rows: its own queries may lock some.
    pub(crate) fn of_condition() -> Refusals {
        Refusals { may_lock: true, ..Refusals::default() }
    }

    fn may_lock<'e>(&self, expr: &'e mut Expr) -> Option<&'e mut Query> {
        if self.may_lock && self.depth == 0 { query_of(expr) } else { None }
    }
}

fn flow(result: Result<()>) -> ControlFlow<EngineError> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

fn syntax(what: &str) -> EngineError {
    EngineError::new("42601", format!("syntax error: {what} is not SQL of PostgreSQL"))
}

/// Refuses the first clause that is there.
fn refuse(clauses: &[(bool, &str)]) -> Result<()> {
    match clauses.iter().find(|(is, _)| *is) {
        Some((_, what)) => Err(unsupported(what)),
        None => Ok(()),
    }
}

/// The same for what PostgreSQL does not know either.
fn not_postgres(clauses: &[(bool, &str)]) -> Result<()> {
    match clauses.iter().find(|(is, _)| *is) {
        Some((_, what)) => Err(syntax(what)),
        None => Ok(()),
    }
}

/// `FETCH FIRST n ROWS ONLY` is `LIMIT n`.
fn fetch_is_limit(query: &mut Query) {
    let Some(Fetch { with_ties: false, percent: false, quantity }) = &mut query.fetch else { return };
    let one = || Expr::Value(Value::Number("1".into(), false).into());
    let fetched = Some(quantity.take().unwrap_or_else(one));
    match &mut query.limit_clause {
        None => {
            query.limit_clause = Some(LimitClause::LimitOffset { limit: fetched, offset: None, limit_by: vec![] });
        }
        Some(LimitClause::LimitOffset { limit: limit @ None, .. }) => *limit = fetched,
        // Both: refused below.
        Some(_) => return,
    }
    query.fetch = None;
}

fn refuse_query(query: &Query) -> Result<()> {
    let Query {
        with,
        body,
        order_by,
        limit_clause,
        fetch,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators: pipes,
    } = query;
    if let Some(lock) = locks.first() {
        return Err(unsupported(format!("SELECT FOR {}", lock.lock_type)));
    }
    let other = for_clause.is_some() || settings.is_some() || format_clause.is_some() || !pipes.is_empty();
    not_postgres(&[(other, "this clause of SELECT")])?;
    if let Some(fetch) = fetch {
        let what = if fetch.with_ties { "FETCH FIRST ... WITH TIES" } else { "FETCH FIRST" };
        return Err(unsupported(what).with_hint("Use LIMIT."));
    }
    if let Some(OrderBy { kind, interpolate }) = order_by {
        let all = matches!(kind, OrderByKind::All(_));
        let fill = matches!(kind, OrderByKind::Expressions(by) if by.iter().any(|by| by.with_fill.is_some()));
        not_postgres(&[(all, "ORDER BY ALL"), (fill || interpolate.is_some(), "WITH FILL")])?;
    }
    match limit_clause {
        None => {}
        Some(LimitClause::LimitOffset { limit: _, offset: _, limit_by }) => {
            not_postgres(&[(!limit_by.is_empty(), "LIMIT BY")])?;
        }
        Some(LimitClause::OffsetCommaLimit { .. }) => {
            let error = EngineError::new("42601", "LIMIT #,# syntax is not supported");
            return Err(error.with_hint("Use separate LIMIT and OFFSET clauses."));
        }
    }
    for cte in with.iter().flat_map(|with| &with.cte_tables) {
        not_postgres(&[(cte.from.is_some(), "FROM behind a query of WITH")])?;
        refuse_alias(&cte.alias)?;
    }
    refuse_set(body)
}

fn refuse_set(mut set: &SetExpr) -> Result<()> {
    // Chains lean to the left.
    while let SetExpr::SetOperation { left, op: _, set_quantifier, right } = set {
        let by_name =
            matches!(set_quantifier, SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName);
        not_postgres(&[(by_name, "BY NAME")])?;
        refuse_set(right)?;
        set = left;
    }
    match set {
        SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::SetOperation { .. } => Ok(()),
        SetExpr::Values(values) => {
            not_postgres(&[(values.explicit_row || values.value_keyword, "this form of VALUES")])?;
            values.rows.iter().flat_map(|row| row.content.iter()).try_for_each(places::refuse_in_values)
        }
        SetExpr::Table(_) => Err(unsupported("TABLE").with_hint("Use SELECT * FROM.")),
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
            Err(unsupported("INSERT, UPDATE or DELETE within WITH"))
        }
    }
}

fn refuse_select(select: &Select) -> Result<()> {
    let Select {
        select_token: _,
        optimizer_hints,
        distinct: _,
        select_modifiers,
        top,
        top_before_distinct: _,
        projection,
        exclude,
        into,
        from,
        lateral_views,
        prewhere,
        selection: _,
        connect_by,
        group_by,
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window: _,
        qualify,
        window_before_qualify: _,
        value_table_mode,
        flavor,
    } = select;
    refuse(&[(into.is_some(), "SELECT INTO")])?;
    grouping::refuse_many_sets(group_by)?;
    let (all, modified) = match group_by {
        GroupByExpr::All(_) => (true, false),
        GroupByExpr::Expressions(_, modifiers) => (false, !modifiers.is_empty()),
    };
    let other = !optimizer_hints.is_empty() || select_modifiers.is_some() || value_table_mode.is_some();
    let other = other || !lateral_views.is_empty() || prewhere.is_some() || !connect_by.is_empty();
    let other = other || !cluster_by.is_empty() || !distribute_by.is_empty() || !sort_by.is_empty();
    not_postgres(&[
        (top.is_some(), "TOP"),
        (exclude.is_some(), "EXCLUDE"),
        (qualify.is_some(), "QUALIFY"),
        (all, "GROUP BY ALL"),
        (modified, "WITH behind GROUP BY"),
        (*flavor != SelectFlavor::Standard, "FROM before SELECT"),
        (other, "this clause of SELECT"),
    ])?;
    for item in projection {
        match item {
            SelectItem::UnnamedExpr(_) => {}
            // SELECT 'a' 'b' is two strings, not one of that name.
            SelectItem::ExprWithAlias { alias, .. } if alias.quote_style == Some('\'') => {
                let message = "syntax error: a string where a column's name is expected";
                return Err(EngineError::new("42601", message));
            }
            SelectItem::ExprWithAlias { .. } => {}
            SelectItem::ExprWithAliases { .. } => return Err(syntax("several names of a column")),
            SelectItem::QualifiedWildcard(_, options) | SelectItem::Wildcard(options) => refuse_wildcard(options)?,
        }
    }
    from.iter().try_for_each(refuse_joins)
}

fn refuse_wildcard(options: &WildcardAdditionalOptions) -> Result<()> {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    let changed = opt_ilike.is_some() || opt_exclude.is_some() || opt_except.is_some();
    let changed = changed || opt_replace.is_some() || opt_rename.is_some();
    not_postgres(&[(changed, "an option of *"), (opt_alias.is_some(), "a name of *")])
}

fn refuse_joins(from: &TableWithJoins) -> Result<()> {
    for Join { relation: _, global, join_operator } in &from.joins {
        use JoinOperator::*;
        let known = matches!(
            join_operator,
            Join(_) | Inner(_) | Left(_) | LeftOuter(_) | Right(_) | RightOuter(_) | FullOuter(_) | CrossJoin(_)
        );
        not_postgres(&[(*global || !known, "this kind of join")])?;
    }
    Ok(())
}

/// Whether a join makes one column of two.
fn merges(join: &Join) -> bool {
    use JoinOperator::{FullOuter, Inner, Left, LeftOuter, Right, RightOuter};
    match &join.join_operator {
        JoinOperator::Join(on) | Inner(on) | Left(on) | LeftOuter(on) | Right(on) | RightOuter(on) | FullOuter(on) => {
            matches!(on, JoinConstraint::Using(_) | JoinConstraint::Natural)
        }
        _ => false,
    }
}

fn refuse_alias(alias: &TableAlias) -> Result<()> {
    let TableAlias { explicit: _, name: _, columns, at } = alias;
    not_postgres(&[(at.is_some(), "AT behind a table")])?;
    if columns.iter().any(|column| column.data_type.is_some()) {
        let message = "a column definition list is only allowed for functions returning \"record\"";
        return Err(EngineError::new("42601", message));
    }
    Ok(())
}

fn refuse_factor(factor: &TableFactor) -> Result<()> {
    let ordinality = "WITH ORDINALITY";
    let alias = match factor {
        TableFactor::Table {
            name: _,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } => {
            refuse(&[(*with_ordinality, ordinality), (sample.is_some(), "TABLESAMPLE")])?;
            let other = !with_hints.is_empty() || version.is_some() || !partitions.is_empty() || json_path.is_some();
            let settings = args.as_ref().is_some_and(|args| args.settings.is_some());
            not_postgres(&[(other || settings || !index_hints.is_empty(), "this clause behind a table")])?;
            args.iter().flat_map(|args| &args.args).try_for_each(refuse_named)?;
            alias
        }
        TableFactor::Derived { lateral: _, subquery: _, alias, sample } => {
            not_postgres(&[(sample.is_some(), "TABLESAMPLE of a query")])?;
            alias
        }
        TableFactor::Function { lateral: _, name: _, args, with_ordinality, alias } => {
            refuse(&[(*with_ordinality, ordinality)])?;
            args.iter().try_for_each(refuse_named)?;
            alias
        }
        TableFactor::UNNEST { alias, array_exprs: _, with_offset, with_offset_alias, with_ordinality } => {
            refuse(&[(*with_ordinality, ordinality)])?;
            not_postgres(&[(*with_offset || with_offset_alias.is_some(), "WITH OFFSET")])?;
            alias
        }
        TableFactor::NestedJoin { table_with_joins, alias } => {
            refuse_joins(table_with_joins)?;
            refuse(&[(alias.is_some() && table_with_joins.joins.iter().any(merges), "a name for a join with USING")])?;
            alias
        }
        TableFactor::XmlTable { .. } | TableFactor::JsonTable { .. } => {
            return Err(unsupported("XMLTABLE and JSON_TABLE"));
        }
        TableFactor::TableFunction { .. }
        | TableFactor::OpenJsonTable { .. }
        | TableFactor::Pivot { .. }
        | TableFactor::Unpivot { .. }
        | TableFactor::MatchRecognize { .. }
        | TableFactor::SemanticView { .. } => return Err(syntax("this in FROM")),
    };
    alias.iter().try_for_each(refuse_alias)
}

fn refuse_named(argument: &FunctionArg) -> Result<()> {
    match argument {
        FunctionArg::Unnamed(_) => Ok(()),
        FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => {
            Err(unsupported("an argument by name").with_hint("Give the arguments in their order."))
        }
    }
}

fn refuse_function(function: &Function) -> Result<()> {
    let Function {
        name: _,
        uses_odbc_syntax,
        parameters,
        args,
        filter: _,
        null_treatment: _,
        over: _,
        within_group: _,
    } = function;
    let parameters = !matches!(parameters, FunctionArguments::None);
    not_postgres(&[(*uses_odbc_syntax || parameters, "this form of a function call")])?;
    match args {
        FunctionArguments::None | FunctionArguments::Subquery(_) => Ok(()),
        FunctionArguments::List(list) => list.args.iter().try_for_each(refuse_named),
    }
}

/// `(a, b)` or `ROW(a, b)`.
fn is_row(expr: &Expr) -> bool {
    match expr {
        Expr::Tuple(_) => true,
        Expr::Function(Function { name, .. }) => name.to_string().eq_ignore_ascii_case("row"),
        _ => false,
    }
}

fn refuse_expr(expr: &Expr) -> Result<()> {
    match expr {
        Expr::Function(function) => refuse_function(function),
        Expr::SimilarTo { .. } => Err(unsupported("SIMILAR TO").with_hint("Use LIKE, or a regular expression with ~.")),
        Expr::InSubquery { expr, .. } if is_row(expr) => {
            Err(unsupported("a row before IN (SELECT ...)").with_hint("Use EXISTS."))
        }
        Expr::Interval(interval) if interval_text(interval).is_none() => {
            let error = unsupported("INTERVAL with fields behind its text");
            Err(error.with_hint("Write the units within the text: interval '1 year 2 months'."))
        }
        Expr::IsNormalized { .. } => Err(unsupported("IS NORMALIZED")),
        Expr::Like { any: true, .. } | Expr::ILike { any: true, .. } => Err(unsupported("LIKE ANY")),
        Expr::Substring { special: true, shorthand: false, .. } => Ok(()),
        Expr::Cast { kind: CastKind::TryCast | CastKind::SafeCast, .. } => Err(syntax("this form of CAST")),
        Expr::Cast { array, format, .. } => not_postgres(&[(*array || format.is_some(), "this form of CAST")]),
        Expr::Trim { trim_characters: Some(characters), .. } if characters.len() > 1 => {
            Err(syntax("this form of TRIM"))
        }
        Expr::Convert { .. }
        | Expr::RLike { .. }
        | Expr::InUnnest { .. }
        | Expr::JsonAccess { .. }
        | Expr::Prefixed { .. }
        | Expr::Struct { .. }
        | Expr::Dictionary(_)
        | Expr::Map(_)
        | Expr::MatchAgainst { .. }
        | Expr::OuterJoin(_)
        | Expr::Prior(_)
        | Expr::Lambda(_)
        | Expr::MemberOf(_) => Err(syntax("this expression")),
        _ => Ok(()),
    }
}

/// Refuses what only aggregates and window functions have, where another function has it.
pub(crate) fn refuse_clauses_of_functions(statement: &Statement, state: &SessionState) -> Result<()> {
    struct Calls<'s>(&'s SessionState);
    impl Visitor for Calls<'_> {
        type Break = EngineError;

        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<EngineError> {
            flow(places::refuse_windows(select))
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<EngineError> {
            match expr {
                Expr::Function(function) => {
                    flow(refuse_clauses(function, self.0))?;
                    let name = function.name.0.last().and_then(|part| part.as_ident()).map(fold);
                    let aggregate = name.is_some_and(|name| self.0.aggregate_functions().contains_key(&name));
                    flow(places::refuse_nested(function, aggregate))
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    match statement.visit(&mut Calls(state)) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

fn refuse_clauses(function: &Function, state: &SessionState) -> Result<()> {
    let Some(name) = function.name.0.last().and_then(|part| part.as_ident()).map(fold) else { return Ok(()) };
    let (mut distinct, mut ordered) = (false, !function.within_group.is_empty());
    let (mut nulls, mut count) = (function.null_treatment.is_some(), 0);
    if let FunctionArguments::List(FunctionArgumentList { duplicate_treatment, args, clauses }) = &function.args {
        count = args.len();
        distinct = matches!(duplicate_treatment, Some(DuplicateTreatment::Distinct));
        for clause in clauses {
            match clause {
                FunctionArgumentClause::OrderBy(_) => ordered = true,
                FunctionArgumentClause::IgnoreOrRespectNulls(_) => nulls = true,
                _ => return Err(syntax("this clause of a function call")),
            }
        }
    }
    let (filtered, windowed) = (function.filter.is_some(), function.over.is_some());
    let found =
        [(distinct, "DISTINCT"), (ordered, "ORDER BY"), (filtered, "FILTER"), (windowed, "OVER"), (nulls, "NULLS")];
    if name == "count" && count > 1 {
        return Err(EngineError::new("42883", "function count of several arguments does not exist"));
    }
    if state.aggregate_functions().contains_key(&name) {
        let message = "aggregate ORDER BY is not implemented for window functions";
        return if windowed && ordered { Err(EngineError::new("0A000", message)) } else { Ok(()) };
    }
    if state.window_functions().contains_key(&name) {
        let what = found[..3].iter().find(|(is, _)| *is);
        return what.map_or(Ok(()), |(_, what)| Err(unsupported(format!("{what} for a window function"))));
    }
    if !state.scalar_functions().contains_key(&name) {
        return Ok(());
    }
    match found.iter().find(|(is, _)| *is) {
        Some((_, what)) => {
            let message = format!("{what} specified, but {name} is not an aggregate or window function");
            Err(EngineError::new("42809", message))
        }
        None => Ok(()),
    }
}

impl VisitorMut for Refusals {
    type Break = EngineError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<EngineError> {
        fetch_is_limit(query);
        flow(refuse_query(query))?;
        flow(limit::settle(query))?;
        self.depth += 1;
        naming::name_columns(&mut query.body);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<EngineError> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<EngineError> {
        flow(refuse_select(select))
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<EngineError> {
        flow(refuse_expr(expr))?;
        if let Some(rewritten) = crate::functions::arrays::rewritten(expr) {
            *expr = rewritten;
        }
        if let Some(query) = self.may_lock(expr) {
            let locks = std::mem::take(&mut query.locks);
            self.held.push(locks);
        }
        ControlFlow::Continue(())
    }

    /// `timestamp AT TIME ZONE zone` is `timezone(zone, timestamp)`.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<EngineError> {
        if let Some(query) = self.may_lock(expr) {
            query.locks = self.held.pop().expect("taken before");
        }
        let blank = || Box::new(Expr::Identifier(Ident::new("")));
        if let Expr::AtTimeZone { timestamp, time_zone } = expr {
            let arguments = [time_zone, timestamp].map(|argument| *std::mem::replace(argument, blank()));
            *expr = call("timezone", arguments.into());
        }
        ControlFlow::Continue(())
    }

    /// `generate_series(1, 3) AS g` has a column g.
    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<EngineError> {
        flow(refuse_factor(factor))?;
        if let TableFactor::Table { name, alias, args: Some(_), .. } = factor {
            let column = match alias {
                Some(alias) => alias.name.clone(),
                None => match name.0.last().and_then(|part| part.as_ident()) {
                    Some(function) => function.clone(),
                    None => return ControlFlow::Continue(()),
                },
            };
            let alias = alias.get_or_insert_with(|| TableAlias {
                explicit: true,
                name: column.clone(),
                columns: vec![],
                at: None,
            });
            if alias.columns.is_empty() {
                alias.columns.push(TableAliasColumnDef::from_name(column.value));
            }
        }
        ControlFlow::Continue(())
    }
}

/// Refuses what nobody would carry out, and gives result columns PostgreSQL's names.
pub(crate) fn prepare(statement: &mut Statement) -> Result<()> {
    match statement {
        Statement::Prepare { statement, .. } => return prepare(statement),
        Statement::Explain { statement, .. } if matches!(**statement, Statement::Update(_) | Statement::Delete(_)) => {
            return prepare(statement);
        }
        _ => {}
    }
    // Rows are locked for the client, or for the condition of what changes them.
    let locks = match statement {
        Statement::Query(query) => std::mem::take(&mut query.locks),
        _ => vec![],
    };
    let mut condition = condition(statement).and_then(Option::take);
    let mut visited = statement.visit(&mut Refusals::default());
    if visited.is_continue() {
        visited = VisitMut::visit(&mut condition, &mut Refusals::of_condition());
    }
    if let Some(place) = self::condition(statement) {
        *place = condition;
    }
    if let Statement::Query(query) = statement {
        query.locks = locks;
    }
    match visited {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// The WHERE of UPDATE and DELETE.
fn condition(statement: &mut Statement) -> Option<&mut Option<Expr>> {
    match statement {
        Statement::Update(update) => Some(&mut update.selection),
        Statement::Delete(delete) => Some(&mut delete.selection),
        _ => None,
    }
}
