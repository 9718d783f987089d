//! The query of a view as PostgreSQL would write it: a SELECT from relations and joins of them, with WHERE, ORDER BY,
//! OFFSET and LIMIT.
//!
//! 1. What is not known here is not shown ([`None`]), as in [`super`].
//! 2. A column has the name before it by which the query calls its relation. A bare name that two of them have is not
//!    shown: a join may merge these.
//!
//! Source: PostgreSQL 15, what `pg_get_viewdef` answers.
use super::{Of, Scope, Shown, as_type};
use std::fmt::Write;
use terrace_engine::{ColumnDef, DataType};
use terrace_grammar::quoted;
use terrace_grammar::statement::{
    Body, Distinct, Expr, ExprKind, FromItem, Item, JoinKind, JoinOn, Literal, Name, NullsOrder, Query, Select, Sort,
};

/// A relation of FROM.
pub(crate) struct Relation {
    /// By which name the query's columns are named.
    called: String,
    columns: Vec<ColumnDef>,
}

impl Relation {
    fn column(&self, name: &str) -> Option<(String, &ColumnDef)> {
        let column = self.columns.iter().find(|column| !column.dropped && column.name == name)?;
        Some((format!("{}.{}", quoted(&self.called), quoted(name)), column))
    }
}

/// The column that a name means within an expression, as it is shown, and its type. PostgreSQL casts one of a domain to
/// what each operator and function takes.
pub(super) fn column(relations: &[Relation], name: &Name) -> Option<(String, DataType)> {
    let (shown, column) = named(relations, name)?;
    column.domain.is_none().then_some((shown, column.data_type))
}

/// The column that a name means in FROM (invariant 2), as it is shown.
fn named<'r>(relations: &'r [Relation], name: &Name) -> Option<(String, &'r ColumnDef)> {
    match name.parts() {
        [own] => {
            let mut found = relations.iter().filter_map(|relation| relation.column(&own.name));
            found.next().filter(|_| found.next().is_none())
        }
        [table, own] => relations.iter().find(|relation| relation.called == table.name)?.column(&own.name),
        _ => None,
    }
}

/// A relation's name as the session sees it, and its columns as the view does.
pub(crate) type Lookup<'l> = &'l dyn Fn(&Name) -> Option<(String, Vec<ColumnDef>)>;

struct Writer<'w> {
    lookup: Lookup<'w>,
    pretty: bool,
}

/// The text; `names`: the view's columns.
pub(crate) fn query(query: &Query, names: &[&str], lookup: Lookup<'_>, pretty: bool) -> Option<String> {
    let Query { at: _, with: None, body: Body::Select(select), order, limit, with_ties: false, offset, locking } =
        query
    else {
        return None;
    };
    let Select { at: _, distinct, items, from, filter, group: None, having: None, windows } = &**select else {
        return None;
    };
    if !locking.is_empty() || !windows.is_empty() || from.is_empty() || items.len() != names.len() {
        return None;
    }
    let (writer, mut relations) = (Writer { lookup, pretty }, vec![]);
    let from = from.iter().map(|item| writer.item_of_from(item, &mut relations)).collect::<Option<Vec<_>>>()?;
    let from = from.into_iter().map(|item| item.shown(&writer, &relations)).collect::<Option<Vec<_>>>()?;
    let scope = Scope { columns: &[], relations: &relations };
    let listed = items.iter().zip(names).map(|(item, name)| writer.item(&scope, item, name));
    let listed = listed.collect::<Option<Vec<_>>>()?.join(",\n    ");
    let distinct = match distinct {
        Distinct::No => "",
        Distinct::Rows => "DISTINCT ",
        Distinct::On(_) => return None,
    };
    let mut text = format!(" SELECT {distinct}{listed}\n   FROM {}", from.join(",\n    "));
    let mut add = |clause: &str, shown: String| write!(text, "\n{clause} {shown}").ok();
    if let Some(filter) = filter {
        add("  WHERE", scope.condition(filter)?.text(pretty))?;
    }
    if !order.is_empty() {
        let keys = order.iter().map(|key| writer.key(&scope, key, items)).collect::<Option<Vec<_>>>()?;
        add("  ORDER BY", keys.join(", "))?;
    }
    for (clause, count) in [(" OFFSET", offset), (" LIMIT", limit)] {
        if let Some(count) = count {
            let ExprKind::Literal(Literal::Int(count)) = count.kind else { return None };
            add(clause, count.to_string())?;
        }
    }
    Some(text)
}

/// An item of FROM, whose conditions are not looked at yet.
enum Source<'q> {
    Relation(String),
    Join(Box<Source<'q>>, JoinKind, &'q JoinOn, String),
}

impl Source<'_> {
    fn shown(&self, writer: &Writer<'_>, relations: &[Relation]) -> Option<String> {
        let Source::Join(left, kind, on, right) = self else {
            let Source::Relation(text) = self else { return None };
            return Some(text.clone());
        };
        let word = match kind {
            JoinKind::Cross => "CROSS JOIN",
            JoinKind::Inner => "JOIN",
            JoinKind::Left => "LEFT JOIN",
            JoinKind::Right => "RIGHT JOIN",
            JoinKind::Full => "FULL JOIN",
        };
        let on = match on {
            JoinOn::Nothing => String::new(),
            JoinOn::Using { columns, alias: None } => {
                let names: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
                format!(" USING ({})", names.join(", "))
            }
            JoinOn::On(condition) => {
                let shown = Scope { columns: &[], relations }.condition(condition)?.text(writer.pretty);
                if writer.pretty { format!(" ON {shown}") } else { format!(" ON ({shown})") }
            }
            JoinOn::Using { .. } | JoinOn::Natural => return None,
        };
        let joined = format!("{}\n     {word} {right}{on}", left.shown(writer, relations)?);
        Some(if writer.pretty { joined } else { format!("({joined})") })
    }
}

impl Writer<'_> {
    fn item_of_from<'q>(&self, item: &'q FromItem, relations: &mut Vec<Relation>) -> Option<Source<'q>> {
        match item {
            FromItem::Table { name, only: false, alias } => {
                if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
                    return None;
                }
                let (mut shown, columns) = (self.lookup)(name)?;
                let called = &alias.as_ref().map_or(name.last(), |alias| &alias.name).name;
                if *called != name.last().name {
                    write!(shown, " {}", quoted(called)).ok()?;
                }
                relations.push(Relation { called: called.clone(), columns });
                Some(Source::Relation(shown))
            }
            FromItem::Join { at: _, kind, sides, on, alias: None } => {
                let left = self.item_of_from(&sides[0], relations)?;
                let Source::Relation(right) = self.item_of_from(&sides[1], relations)? else { return None };
                Some(Source::Join(Box::new(left), *kind, on, right))
            }
            _ => None,
        }
    }

    fn value(&self, scope: &Scope<'_>, expr: &Expr) -> Option<Shown> {
        if let ExprKind::Column(name) = &expr.kind {
            return named(scope.relations, name).map(|(shown, _)| Shown::Plain(shown));
        }
        match scope.show(expr)? {
            (shown, Of::Known(_)) => Some(shown),
            unknown @ (_, Of::Unknown) => as_type(unknown, DataType::Text),
            (_, Of::List(_)) => None,
        }
    }

    fn item(&self, scope: &Scope<'_>, item: &Item, name: &str) -> Option<String> {
        let shown = self.value(scope, &item.expr)?.text(self.pretty);
        let own = match &item.expr.kind {
            ExprKind::Column(column) => &column.last().name,
            _ => "?column?",
        };
        Some(if own == name { shown } else { format!("{shown} AS {}", quoted(name)) })
    }

    /// A key of ORDER BY: the number or the name of an item is that item.
    fn key(&self, scope: &Scope<'_>, key: &Sort, items: &[Item]) -> Option<String> {
        let named = |name: &Name| {
            let [own] = name.parts() else { return None };
            let mut found = items.iter().filter(|item| match (&item.alias, &item.expr.kind) {
                (Some(alias), _) => alias.name == own.name,
                (None, ExprKind::Column(column)) => column.last().name == own.name,
                _ => false,
            });
            found.next().map(|item| &item.expr)
        };
        let expr = match &key.expr.kind {
            ExprKind::Literal(Literal::Int(number)) => &items.get(usize::try_from(*number).ok()?.checked_sub(1)?)?.expr,
            ExprKind::Column(name) => named(name).unwrap_or(&key.expr),
            _ => &key.expr,
        };
        let shown = match (self.value(scope, expr)?, &expr.kind) {
            (shown, ExprKind::Column(_)) => shown.text(self.pretty),
            (shown @ Shown::Operator(..), _) if !self.pretty => shown.text(false),
            (shown @ (Shown::Operator(..) | Shown::Call(..)), _) => format!("({})", shown.text(self.pretty)),
            _ => return None,
        };
        direction(key).map(|direction| format!("{shown}{direction}"))
    }
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
