//! The query of a view as PostgreSQL would write it: SELECT from relations, queries and joins of them, with GROUP BY
//! and the like, and windows; VALUES; UNION and its kind; ORDER BY, OFFSET and LIMIT; and queries within expressions.
//!
//! 1. What is not known here is not shown ([`None`]), as in [`super`].
//! 2. A column has the name before it by which its query calls its relation. A bare name means what the joins of FROM
//!    make of it, and then what the query around has under it.
//! 3. Two relations that are called the same, in one query or in one within the other, are not shown: PostgreSQL gives
//!    one of them another name.
//!
//! Source: PostgreSQL 15, what `pg_get_viewdef` answers.
use super::print::{LINE, laid_out, moved};
use super::{Of, Scope, Shown, as_type, plain};
use crate::parse::titles::title;
use from::Visible;
use std::fmt::Write;
use terrace_engine::{ColumnDef, DataType};
use terrace_grammar::quoted;
use terrace_grammar::statement::{
    Body, Distinct, Expr, ExprKind, Group, Item, Literal, Name, NamedWindow, NullsOrder, Query, Select, SetOperator,
    Sort,
};

mod from;

pub(super) use from::From;

/// A relation's name as the session sees it, and its columns as the view does.
pub(crate) type Lookup<'l> = &'l dyn Fn(&Name) -> Option<(String, Vec<ColumnDef>)>;

#[derive(Clone, Copy)]
struct Writer<'w> {
    lookup: Lookup<'w>,
    pretty: bool,
}

/// A query's text, whose lines are not laid out yet, and its columns.
type Made = (String, Vec<ColumnDef>);

/// The text; `columns`: the view's.
pub(crate) fn query(query: &Query, columns: &[ColumnDef], lookup: Lookup<'_>, pretty: bool) -> Option<String> {
    let (text, _) = Writer { lookup, pretty }.query(query, None, Some(columns))?;
    laid_out(&text)
}

/// How far a query's expressions stand to the right of it.
const WITHIN: usize = 8;

impl<'w> Writer<'w> {
    /// `around`: FROM of the query around. `told`: the columns that it has in the end.
    fn query(&self, query: &Query, around: Option<&From<'_>>, told: Option<&[ColumnDef]>) -> Option<Made> {
        let Query { at: _, with: None, body, order, limit, with_ties: false, offset, locking } = query else {
            return None;
        };
        if !locking.is_empty() {
            return None;
        }
        let (mut text, columns) = match body {
            Body::Select(select) => self.select(select, order, around, told)?,
            Body::Values(rows) if order.is_empty() => self.values(rows, around, told)?,
            Body::Values(_) => return None,
            Body::Set { op, all, branches } => {
                // What stands behind one that is within another one is moved in another way.
                if around.is_some() && !(order.is_empty() && limit.is_none() && offset.is_none()) {
                    return None;
                }
                let (mut text, columns) = self.set((*op, *all), branches, around, told)?;
                if !order.is_empty() {
                    let keys = order.iter().map(|key| set_key(key, &columns)).collect::<Option<Vec<String>>>()?;
                    write!(text, "{LINE}  ORDER BY {}", keys.join(", ")).ok()?;
                }
                (text, columns)
            }
        };
        for (clause, count) in [(" OFFSET", offset), (" LIMIT", limit)] {
            if let Some(count) = count {
                let ExprKind::Literal(Literal::Int(count)) = count.kind else { return None };
                write!(text, "{LINE}{clause} {count}").ok()?;
            }
        }
        Some((text, columns))
    }

    fn select(
        &self,
        select: &Select,
        order: &[Sort],
        around: Option<&From<'_>>,
        told: Option<&[ColumnDef]>,
    ) -> Option<Made> {
        let Select { at: _, distinct, items, from, filter, group, having, windows } = select;
        if told.is_some_and(|told| told.len() != items.len()) {
            return None;
        }
        let mut own = From::of(*self, around);
        let sources = from.iter().map(|item| own.add(item)).collect::<Option<Vec<_>>>()?;
        let own = own;
        let scope = Scope::within(&own);
        let sources = sources.iter().map(|source| source.shown(&scope, self.pretty)).collect::<Option<Vec<_>>>()?;
        let listed = items.iter().enumerate().map(|(at, item)| self.item(&scope, item, told.map(|told| &told[at])));
        let (listed, columns): (Vec<String>, Vec<ColumnDef>) = listed.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        let distinct = match distinct {
            Distinct::No => "",
            Distinct::Rows => "DISTINCT ",
            Distinct::On(_) => return None,
        };
        let mut text = format!(" SELECT {distinct}");
        for (at, item) in listed.iter().enumerate() {
            match (at, item.starts_with(LINE)) {
                (0, _) => text.push_str(item),
                (_, true) => write!(text, ",{item}").ok()?,
                (_, false) => write!(text, ",{LINE}    {item}").ok()?,
            }
        }
        if !sources.is_empty() {
            write!(text, "{LINE}   FROM {}", sources.join(&format!(",{LINE}    "))).ok()?;
        }
        let mut add = |clause: &str, shown: &str| write!(text, "{LINE}{clause} {}", moved(shown, WITHIN)).ok();
        if let Some(filter) = filter {
            add("  WHERE", &scope.condition(filter)?.text(self.pretty))?;
        }
        if let Some(group) = group {
            let keys = group.items.iter().map(|key| self.group(&scope, key, items)).collect::<Option<Vec<_>>>()?;
            if group.distinct || keys.is_empty() {
                return None;
            }
            add("  GROUP BY", &keys.join(", "))?;
        }
        if let Some(having) = having {
            add(" HAVING", &scope.condition(having)?.text(self.pretty))?;
        }
        if !windows.is_empty() {
            let one = |window: &NamedWindow| {
                Some(format!("{} AS {}", quoted(&window.name.name), scope.window(&window.window, &own)?))
            };
            add("  WINDOW", &windows.iter().map(one).collect::<Option<Vec<_>>>()?.join(", "))?;
        }
        if !order.is_empty() {
            let keys = order.iter().map(|key| self.key(&scope, key, items)).collect::<Option<Vec<_>>>()?;
            add("  ORDER BY", &keys.join(", "))?;
        }
        Some((text, columns))
    }

    /// Rows of values, whose columns have the names that they have by themselves.
    fn values(&self, rows: &[Vec<Expr>], around: Option<&From<'_>>, told: Option<&[ColumnDef]>) -> Option<Made> {
        let none = From::of(*self, around);
        let scope = Scope::within(&none);
        let typed = |row: &Vec<Expr>| row.iter().map(|value| scope.show(value)).collect::<Option<Vec<_>>>();
        let rows = rows.iter().map(typed).collect::<Option<Vec<_>>>()?;
        let mut columns = vec![];
        for at in 0..rows.first()?.len() {
            let of = rows.iter().map(|row| row.get(at).cloned()).collect::<Option<Vec<_>>>()?;
            let of = super::of_one_type(&of).unwrap_or(Some(DataType::Text))?;
            columns.push(ColumnDef::new(&format!("column{}", at + 1), of));
        }
        if told.is_some_and(|told| told.iter().zip(&columns).any(|(told, own)| told.name != own.name)) {
            return None;
        }
        let row = |row: Vec<_>| {
            let values = row.into_iter().zip(&columns).map(|(value, column)| as_type(value, column.data_type));
            let values = values.map(|value| value.map(|value| value.text(self.pretty))).collect::<Option<Vec<_>>>()?;
            Some(format!("({})", values.join(",")))
        };
        let text = rows.into_iter().map(row).collect::<Option<Vec<_>>>()?.join(", ");
        (!text.contains(LINE)).then(|| (format!(" VALUES {text}"), columns))
    }

    fn set(
        &self,
        (op, all): (SetOperator, bool),
        branches: &[Query],
        around: Option<&From<'_>>,
        told: Option<&[ColumnDef]>,
    ) -> Option<Made> {
        let word = match op {
            SetOperator::Union => "UNION",
            SetOperator::Intersect => "INTERSECT",
            SetOperator::Except => "EXCEPT",
        };
        let all = if all { " ALL" } else { "" };
        let (mut text, mut columns) = (String::new(), told.map(<[ColumnDef]>::to_vec));
        for (number, branch) in branches.iter().enumerate() {
            if branch.with.is_some() || !branch.order.is_empty() || branch.limit.is_some() || branch.offset.is_some() {
                return None;
            }
            let (made, own) = self.query(branch, around, told)?;
            if let Some(columns) = &columns
                && !own
                    .iter()
                    .zip(columns)
                    .all(|(own, known)| is_set_of(own.data_type, known.data_type, told.is_some()))
            {
                return None;
            }
            columns.get_or_insert(own);
            let within = matches!(branch.body, Body::Set { .. });
            match (number, within) {
                (0, false) => text.push_str(&made),
                (0, true) => write!(text, "({LINE}        {}{LINE}) ", moved(&made, WITHIN)).ok()?,
                (_, false) => write!(text, "{LINE}{made}").ok()?,
                (_, true) => write!(text, " ({LINE}        {}{LINE})", moved(&made, WITHIN)).ok()?,
            }
            if number + 1 < branches.len() {
                let line = if number == 0 && within { String::new() } else { LINE.to_string() };
                write!(text, "{line}{word}{all}").ok()?;
            }
        }
        Some((text, columns?))
    }

    fn value(&self, scope: &Scope<'_>, expr: &Expr, wanted: DataType) -> Option<(Shown, ColumnDef)> {
        if let (ExprKind::Column(name), Some(from)) = (&expr.kind, scope.from) {
            return from.column(name).map(|Visible { shown, column, .. }| (Shown::Plain(shown), column));
        }
        match scope.show(expr)? {
            (shown, Of::Known(of)) => Some((shown, ColumnDef::new("", of))),
            unknown @ (_, Of::Unknown) => Some((as_type(unknown, plain(wanted))?, ColumnDef::new("", plain(wanted)))),
            (_, Of::List(_)) => None,
        }
    }

    /// `told`: what it is called, and of what type it is where it has none. A query within another one calls its items
    /// by themselves.
    fn item(&self, scope: &Scope<'_>, item: &Item, told: Option<&ColumnDef>) -> Option<(String, ColumnDef)> {
        if matches!(item.expr.kind, ExprKind::Star(_) | ExprKind::AllFields(_)) {
            return None;
        }
        let wanted = told.map_or(DataType::Text, |told| told.data_type);
        let (shown, column) = self.value(scope, &item.expr, wanted)?;
        let shown = moved(&shown.text(self.pretty), WITHIN);
        let name = told.map_or_else(|| title(item), |told| told.name.clone());
        let own = match &item.expr.kind {
            ExprKind::Column(column) => column.last().name.as_str(),
            _ => "?column?",
        };
        let is_own = *own == name && (told.is_none() || matches!(item.expr.kind, ExprKind::Column(_)));
        let text = if is_own { shown } else { format!("{shown} AS {}", quoted(&name)) };
        Some((text, ColumnDef { name, ..column }))
    }

    fn group(&self, scope: &Scope<'_>, key: &Group, items: &[Item]) -> Option<String> {
        let Group::Expr(expr) = key else { return None };
        let expr = match &expr.kind {
            ExprKind::Literal(Literal::Int(number)) => item_at(items, *number)?,
            ExprKind::Column(name) if scope.from?.column(name).is_none() => item_called(items, name)?,
            _ => expr,
        };
        self.shown_key(scope, expr)
    }

    /// A key of ORDER BY: the number or the name of an item is that item.
    fn key(&self, scope: &Scope<'_>, key: &Sort, items: &[Item]) -> Option<String> {
        let expr = match &key.expr.kind {
            ExprKind::Literal(Literal::Int(number)) => item_at(items, *number)?,
            ExprKind::Column(name) => item_called(items, name).unwrap_or(&key.expr),
            _ => &key.expr,
        };
        let shown = self.shown_key(scope, expr)?;
        direction(key).map(|direction| format!("{shown}{direction}"))
    }

    fn shown_key(&self, scope: &Scope<'_>, expr: &Expr) -> Option<String> {
        match (self.value(scope, expr, DataType::Text)?.0, &expr.kind) {
            (shown, ExprKind::Column(_)) => Some(shown.text(self.pretty)),
            (shown @ Shown::Operator(..), _) if !self.pretty => Some(shown.text(false)),
            (shown @ (Shown::Operator(..) | Shown::Call(..) | Shown::Filtered(..) | Shown::Over(..)), _) => {
                Some(format!("({})", shown.text(self.pretty)))
            }
            _ => None,
        }
    }
}

fn item_at(items: &[Item], number: i64) -> Option<&Expr> {
    items.get(usize::try_from(number).ok()?.checked_sub(1)?).map(|item| &item.expr)
}

fn item_called<'i>(items: &'i [Item], name: &Name) -> Option<&'i Expr> {
    let [own] = name.parts() else { return None };
    let mut found = items.iter().filter(|item| match (&item.alias, &item.expr.kind) {
        (Some(alias), _) => alias.name == own.name,
        (None, ExprKind::Column(column)) => column.last().name == own.name,
        _ => false,
    });
    found.next().map(|item| &item.expr)
}

/// Whether values of a type are such a column's of a set operation. `settled`: it is of the type that they all become.
fn is_set_of(own: DataType, known: DataType, settled: bool) -> bool {
    let (own, known) = (plain(own), plain(known));
    let is_text = |of: DataType| matches!(of, DataType::Text | DataType::Varchar(_));
    let alike = super::is_number(own) && super::is_number(known) || is_text(own) && is_text(known);
    own == known || settled && alike
}

/// A key of ORDER BY behind UNION and its kind, where columns are numbers.
fn set_key(key: &Sort, columns: &[ColumnDef]) -> Option<String> {
    let number = match &key.expr.kind {
        ExprKind::Literal(Literal::Int(number)) => *number,
        ExprKind::Column(name) if name.qualifier().is_empty() => {
            let at = columns.iter().position(|column| column.name == name.last().name)?;
            i64::try_from(at + 1).ok()?
        }
        _ => return None,
    };
    direction(key).map(|direction| format!("{number}{direction}"))
}

fn direction(key: &Sort) -> Option<String> {
    if key.using.is_some() {
        return None;
    }
    let nulls = match (key.descending, key.nulls) {
        (_, None) | (false, Some(NullsOrder::Last)) | (true, Some(NullsOrder::First)) => "",
        (false, Some(NullsOrder::First)) => " NULLS FIRST",
        (true, Some(NullsOrder::Last)) => " NULLS LAST",
    };
    Some(format!("{}{nulls}", if key.descending { " DESC" } else { "" }))
}
