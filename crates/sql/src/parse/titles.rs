//! Titles of result columns as PostgreSQL gives them: a column's name, a function's, a type's, `?column?`.
//!
//! Source: `FigureColname` as PostgreSQL 15's documentation of select lists describes it.
use terrace_grammar::statement::{Body, Expr, ExprKind, Item, Query};

/// The title of an item.
pub(crate) fn title(item: &Item) -> String {
    match &item.alias {
        Some(alias) => alias.name.clone(),
        None => of(&item.expr),
    }
}

fn of(expr: &Expr) -> String {
    figured(expr).map_or_else(|| "?column?".to_owned(), |title| title.text)
}

/// A type's name and `case` are weak: what stands around them may name the column again.
struct Title {
    text: String,
    strong: bool,
}

fn strong(text: &str) -> Option<Title> {
    Some(Title { text: text.to_owned(), strong: true })
}

fn weak(text: &str) -> Option<Title> {
    Some(Title { text: text.to_owned(), strong: false })
}

fn figured(expr: &Expr) -> Option<Title> {
    match &expr.kind {
        ExprKind::Column(name) => strong(&name.last().name),
        ExprKind::Field { field, .. } => strong(&field.name),
        ExprKind::Call(call) => strong(&call.name.last().name),
        ExprKind::Special { function, .. } => strong(function.name()),
        ExprKind::Collate { arg, .. } => figured(arg),
        ExprKind::Subscript { arg, .. } | ExprKind::With { arg, .. } | ExprKind::WithField { arg, .. } => figured(arg),
        ExprKind::Cast { arg, to, .. } => {
            figured(arg).filter(|title| title.strong).or_else(|| weak(&to.name.last().name))
        }
        ExprKind::Case { otherwise, .. } => {
            let otherwise = otherwise.as_ref().and_then(|otherwise| figured(otherwise));
            otherwise.filter(|title| title.strong).or_else(|| weak("case"))
        }
        ExprKind::Exists(_) => strong("exists"),
        ExprKind::Array(_) | ExprKind::ArrayQuery(_) => strong("array"),
        ExprKind::Row { .. } => strong("row"),
        ExprKind::AtTimeZone { .. } => strong("timezone"),
        ExprKind::Grouping(_) => strong("grouping"),
        ExprKind::Scalar(query) => of_query(query),
        _ => None,
    }
}

/// The title of a query's first column.
fn of_query(query: &Query) -> Option<Title> {
    match &query.body {
        Body::Select(select) => match &select.items.first()?.expr.kind {
            ExprKind::Star(_) => None,
            _ => strong(&title(&select.items[0])),
        },
        Body::Values(_) => strong("column1"),
        Body::Set { branches, .. } => of_query(&branches[0]),
    }
}
