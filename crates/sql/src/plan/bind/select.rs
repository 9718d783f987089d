//! SELECT: its items, conditions, groups, windows, DISTINCT and ORDER BY.
//!
//! 1. All expressions are bound over FROM first; then those that are groups, aggregates and windows become columns of
//!    the plans that compute them ([`group`](super::group), [`windows`](super::windows)).
//! 2. ORDER BY and DISTINCT ON mean an item by a name that stands alone or a number, and columns of FROM by any other
//!    expression; GROUP BY means a column of FROM before an item.
//! 3. What is only ordered by is a column behind the items, and goes once rows are ordered.
//! 4. An item that is a column of FROM keeps its name, unless another item has got it.
use super::expr::symbol;
use super::query::Around;
use super::scope::{Clause, Scope};
use super::{Binder, Bound, Result, fail, from, group, group_queries, system, unsupported, wrong};
use crate::parse::titles;
use crate::plan::naming::shown;
use datafusion::common::Column;
use datafusion::logical_expr::expr::Sort as By;
use datafusion::logical_expr::{Distinct as DfDistinct, Expr, LogicalPlan, LogicalPlanBuilder};
use terrace_engine::EngineError;
use terrace_grammar::statement::{
    self as tree, At, Distinct, ExprKind, Item, Literal, Name, NullsOrder, Query, Select, Sort,
};

/// The expressions of a SELECT, as far as they are computed above FROM.
pub(super) struct Parts {
    pub(super) titles: Vec<String>,
    pub(super) items: Vec<Expr>,
    pub(super) having: Option<Expr>,
    /// Of DISTINCT ON.
    pub(super) on: Vec<Expr>,
    pub(super) order: Vec<(Expr, Order, At)>,
    /// What the windows of the WINDOW clause name.
    pub(super) windows: Vec<Expr>,
}

impl Parts {
    pub(super) fn all(&self) -> impl Iterator<Item = &Expr> {
        let order = self.order.iter().map(|(expr, ..)| expr);
        self.items.iter().chain(&self.having).chain(&self.on).chain(order).chain(&self.windows)
    }

    pub(super) fn change(&mut self, change: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<()> {
        let order = self.order.iter_mut().map(|(expr, ..)| expr);
        let rest = self.on.iter_mut().chain(order).chain(&mut self.windows);
        for expr in self.items.iter_mut().chain(&mut self.having).chain(rest) {
            *expr = change(std::mem::take(expr))?;
        }
        Ok(())
    }
}

/// Which way a key of an order goes.
#[derive(Clone, Copy)]
pub(super) struct Order {
    pub(super) descending: bool,
    pub(super) nulls_first: bool,
}

impl Order {
    pub(super) fn of(by: &Sort) -> Result<Order> {
        let descending = match by.using.as_ref().map(|op| (symbol(op), op)) {
            None => by.descending,
            Some((Ok("<"), _)) => false,
            Some((Ok(">"), _)) => true,
            Some((_, op)) => {
                let message = format!("operator {} is not a valid ordering operator", op.symbol);
                let hint = "Ordering operators must be \"<\" or \">\" members of btree operator families.";
                return fail(op.at, EngineError::new("42809", message).with_hint(hint));
            }
        };
        let nulls_first = by.nulls.map_or(descending, |nulls| nulls == NullsOrder::First);
        Ok(Order { descending, nulls_first })
    }
}

impl Binder<'_> {
    pub(super) fn select(&self, query: &Query, select: &Select, around: Around<'_>) -> Result<Bound> {
        let source = self.from(&select.from, around)?;
        let mut scope = Scope::new(&source, around.scope, around.ctes);
        scope.selects.set(true);
        if source.empty
            && let Some(nothing) = self.without_rows(select, &scope)?
        {
            return Ok(nothing);
        }
        let mut plan = source.plan.clone();
        if let Some(filter) = &select.filter {
            let filter = scope.within(Clause::Where, || self.condition(filter, "WHERE", &scope))?;
            let filter = if self.of_system.get() { system::without_implied(filter) } else { filter };
            plan = LogicalPlanBuilder::from(plan).filter(filter)?.build()?;
        }
        scope.schema = group::above(select, &scope.schema)?;
        let before = scope.named.borrow().len();
        scope.queries.replace(group_queries::has_queries(select).then(Vec::new));
        let mut parts = self.parts(query, select, &scope)?;
        let noted = scope.queries.borrow().as_ref().map_or(0, Vec::len);
        let mut groups = self.groups(select, &parts, &scope)?;
        group_queries::made_one(&mut parts, &mut groups, noted, &scope)?;
        plan = self.unnested_keys(plan, &mut groups, &mut parts)?;
        plan = self.grouped(plan, groups, &mut parts, &scope, before)?;
        if let Some(having) = parts.having.take() {
            plan = LogicalPlanBuilder::from(plan).having(having)?.build()?;
        }
        plan = self.windowed(plan, &mut parts)?;
        plan = self.unnested(plan, &mut parts, select.distinct != Distinct::No)?;
        match &select.distinct {
            Distinct::On(_) => self.distinct_on(plan, parts, query, around),
            distinct => self.projected(plan, parts, *distinct == Distinct::Rows, query, around),
        }
    }

    fn parts(&self, query: &Query, select: &Select, scope: &Scope<'_>) -> Result<Parts> {
        let windows = scope.within(Clause::Definition, || self.named_windows(&select.windows, scope))?;
        let (titles, items) = self.items(&select.items, scope)?;
        assert_eq!(titles.len(), items.len(), "an item has a title");
        super::bounds::columns(items.len())?;
        let named: Vec<(String, Expr)> = titles.iter().cloned().zip(items.iter().cloned()).collect();
        let by = |expr: &tree::Expr, clause: Clause| {
            scope.within(clause, || match self.output(expr, &named, clause)? {
                Some(item) => Ok(item),
                None => self.expr(expr, scope),
            })
        };
        let order = query.order.iter().map(|key| Ok((by(&key.expr, Clause::Order)?, Order::of(key)?, key.expr.at)));
        let order = order.collect::<Result<Vec<_>>>()?;
        let on = match &select.distinct {
            Distinct::On(keys) => keys.iter().map(|key| by(key, Clause::DistinctOn)).collect::<Result<_>>()?,
            _ => vec![],
        };
        let condition = |having| scope.within(Clause::Having, || self.condition(having, "HAVING", scope));
        let having = select.having.as_ref().map(condition).transpose()?;
        Ok(Parts { titles, items, having, on, order, windows })
    }

    /// The items, with `*` written out.
    pub(super) fn items(&self, items: &[Item], scope: &Scope<'_>) -> Result<(Vec<String>, Vec<Expr>)> {
        let (mut titles, mut exprs) = (vec![], vec![]);
        for item in items {
            match &item.expr.kind {
                ExprKind::Star(of) => {
                    let columns = star(of.as_ref(), scope, item.expr.at)?;
                    self.note_star(&columns, scope, item.expr.at)?;
                    self.note_named(columns.iter().map(|(_, column)| column));
                    let (names, columns): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
                    titles.extend(names);
                    exprs.extend(columns);
                }
                ExprKind::AllFields(of) => {
                    let (names, fields): (Vec<_>, Vec<_>) = self.all_fields(of, scope)?.into_iter().unzip();
                    titles.extend(names);
                    exprs.extend(fields);
                }
                _ => {
                    titles.push(titles::title(item));
                    let bound = self.expr(&item.expr, scope)?;
                    exprs.push(self.shown_class(&item.expr, bound, scope)?);
                }
            }
        }
        Ok((titles, exprs))
    }

    /// The item that ORDER BY or DISTINCT ON means (invariant 2).
    pub(super) fn output(&self, expr: &tree::Expr, items: &[(String, Expr)], clause: Clause) -> Result<Option<Expr>> {
        match &expr.kind {
            ExprKind::Literal(Literal::Int(number)) => item_at(*number, expr.at, items, clause).map(Some),
            ExprKind::Literal(_) => wrong(expr.at, "42601", format!("non-integer constant in {}", clause.name())),
            ExprKind::Column(name) if name.qualifier().is_empty() => {
                let mut found = items.iter().filter(|(title, _)| *title == name.last().name);
                let Some((_, first)) = found.next() else { return Ok(None) };
                match found.any(|(_, other)| other != first) {
                    true => wrong(expr.at, "42702", format!("{} \"{}\" is ambiguous", clause.name(), name.shown())),
                    false => Ok(Some(first.clone())),
                }
            }
            _ => Ok(None),
        }
    }

    /// Expressions as the columns of a plan (invariant 4).
    pub(super) fn called(&self, titles: &[String], exprs: Vec<Expr>) -> Vec<Expr> {
        let mut taken: Vec<String> = vec![];
        assert_eq!(exprs.len(), titles.len(), "a column has a title");
        let columns = exprs.into_iter().zip(titles).map(|(expr, title)| match expr {
            Expr::Column(column) if shown(&column.name) == title && !taken.contains(&column.name) => {
                taken.push(column.name.clone());
                Expr::Column(column)
            }
            other => other.alias(self.column_name(title)),
        });
        columns.collect()
    }

    fn projected(
        &self,
        plan: LogicalPlan,
        parts: Parts,
        distinct: bool,
        query: &Query,
        around: Around<'_>,
    ) -> Result<Bound> {
        let Parts { titles, items, order, .. } = parts;
        let mut columns = self.called(&titles, items.clone());
        let (width, mut known) = (columns.len(), items);
        let mut places = vec![];
        for (expr, _, at) in &order {
            let place = known.iter().position(|item| item == expr);
            if place.is_none() && distinct {
                let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
                return wrong(*at, "42P10", message);
            }
            places.push(place.unwrap_or_else(|| {
                known.push(expr.clone());
                columns.push(expr.clone().alias(self.column_name("")));
                known.len() - 1
            }));
        }
        assert_eq!(columns.len(), known.len(), "invariant 3: what is only ordered by is a column");
        assert!(!distinct || known.len() == width, "invariant 3: it would make rows distinct");
        let mut plan = LogicalPlanBuilder::from(plan).project(columns)?.build()?;
        if distinct {
            plan = LogicalPlan::Distinct(DfDistinct::All(plan.into()));
        }
        let columns: Vec<Expr> = from::columns(&plan).collect();
        if !order.is_empty() {
            let by = order.iter().zip(places).map(|((_, order, _), place)| order.sort(columns[place].clone()));
            let by: Vec<By> = by.collect();
            plan = LogicalPlanBuilder::from(plan).sort(by)?.build()?;
        }
        plan = self.limited(plan, query, around)?;
        if columns.len() > width {
            plan = LogicalPlanBuilder::from(plan).project(columns.into_iter().take(width))?.build()?;
        }
        Ok(Bound::new(plan, titles))
    }

    fn distinct_on(&self, plan: LogicalPlan, parts: Parts, query: &Query, around: Around<'_>) -> Result<Bound> {
        let Parts { titles, items, on, .. } = parts;
        let mut order: Vec<(Expr, Order, At)> = vec![];
        for key in parts.order {
            if !order.iter().any(|(known, ..)| *known == key.0) {
                order.push(key);
            }
        }
        // The keys of DISTINCT ON in the order in which ORDER BY names them, and then those that it does not name.
        let mut keys: Vec<Expr> = vec![];
        for key in order.iter().map(|(expr, ..)| expr).filter(|expr| on.contains(expr)).chain(&on) {
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        let on = keys;
        let mut prefix = order.iter().take(on.len()).zip(&on);
        if let Some(((_, _, at), _)) = prefix.find(|((expr, ..), key)| expr != *key) {
            return wrong(*at, "42P10", "SELECT DISTINCT ON expressions must match initial ORDER BY expressions");
        }
        let mut by: Vec<By> = order.iter().map(|(expr, order, _)| order.sort(expr.clone())).collect();
        if !by.is_empty() {
            by.extend(on.iter().skip(order.len()).map(|key| key.clone().sort(true, false)));
        }
        let by = (!by.is_empty()).then_some(by);
        let columns = items.into_iter().zip(&titles).map(|(item, title)| item.alias(self.column_name(title)));
        let columns: Vec<Expr> = columns.collect();
        let plan = LogicalPlanBuilder::from(plan).distinct_on(on, columns, by)?.build()?;
        Ok(Bound::new(self.limited(plan, query, around)?, titles))
    }
}

fn item_at(number: i64, at: At, items: &[(String, Expr)], clause: Clause) -> Result<Expr> {
    let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    match place.and_then(|place| items.get(place)) {
        Some((_, item)) => Ok(item.clone()),
        None => wrong(at, "42P10", format!("{} position {number} is not in select list", clause.name())),
    }
}

/// `*` and `t.*`.
fn star(of: Option<&Name>, scope: &Scope<'_>, at: At) -> Result<Vec<(String, Expr)>> {
    let columns: Vec<(String, Expr)> = match of {
        None if !scope.source.given => {
            return wrong(at, "42601", "SELECT * with no tables specified is not valid");
        }
        None => scope.source.visible.clone(),
        Some(name) if name.qualifier().len() > 1 => return unsupported("a name of several schemas"),
        Some(name) => match scope.relation(name.qualifier().first(), name.last())? {
            Some(relation) => from::columns_of(relation).collect(),
            None => return scope.missing(name.last(), at),
        },
    };
    let mut named = scope.named.borrow_mut();
    for (_, column) in &columns {
        named.extend(column.column_refs().into_iter().map(|column: &Column| (column.clone(), at)));
    }
    drop(named);
    Ok(columns)
}
