//! Definitions as they are shown where `search_path` does not have the schema public: names of relations with it.
//! pg_dump asks so, that its output means the same everywhere.
use super::Call;
use crate::parse::stored::Stored;
use crate::parse::types::{domain_named, of_user};
use terrace_engine::Catalog;
use terrace_grammar::statement::{Body, Expr, ExprKind, FromItem, Node, Query, Statement, walk};
use terrace_grammar::{Options, parse};

pub(super) const SCHEMA: &str = "public.";

/// Whether a name alone does not find relations of the schema public.
pub(super) fn is_hidden(c: &Call<'_>) -> bool {
    let shown = c.info.system.as_ref().and_then(|system| system.settings.lock().show("search_path").ok());
    shown.is_some_and(|(_, path)| !path.split(',').any(|part| part.trim().trim_matches('"') == "public"))
}

/// A default: that of a column numbered by a sequence is `nextval('name'::regclass)`.
pub(super) fn default(text: String, catalog: &Catalog) -> String {
    match text.strip_prefix("nextval('") {
        Some(rest) if rest.ends_with("'::regclass)") => format!("nextval('{SCHEMA}{rest}"),
        _ => types(text, catalog),
    }
}

/// An expression that may cast to types of the user's.
pub(super) fn types(text: String, catalog: &Catalog) -> String {
    match Stored::read(&text) {
        Some(stored) if has_types(catalog) => stored.with_before(&casts(Node::Expr(stored.expr()), catalog), SCHEMA),
        _ => text,
    }
}

/// Whether there are types of the user's.
fn has_types(catalog: &Catalog) -> bool {
    catalog.enum_types().next().is_some() || catalog.domains().next().is_some()
}

/// A CREATE INDEX.
pub(super) fn index(mut text: String, catalog: &Catalog) -> String {
    if !has_types(catalog) {
        return text;
    }
    let parsed = parse(&text, Options::default()).ok().and_then(|mut statements| statements.pop());
    let Some(Statement::CreateIndex(create)) = parsed.map(|parsed| parsed.into_statement()) else { return text };
    let exprs = create.elements.iter().map(|element| &element.expr).chain(create.filter.iter().map(|f| &f.expr));
    let mut places: Vec<usize> = exprs.flat_map(|expr| casts(Node::Expr(expr), catalog)).collect();
    places.sort_unstable();
    places.iter().rev().for_each(|at| text.insert_str(*at, SCHEMA));
    text
}

/// The places of names of the user's types without a schema.
fn casts(node: Node<'_>, catalog: &Catalog) -> Vec<usize> {
    let mut places = vec![];
    walk(node, &mut |node| {
        if let Node::Expr(Expr { kind: ExprKind::Cast { to, .. }, .. }) = node
            && (of_user(to, catalog).is_some() || domain_named(to, catalog).is_some())
            && to.name.qualifier().is_empty()
        {
            places.push(to.name.at() as usize);
        }
        true
    });
    places
}

/// The text of a view.
pub(super) fn view(text: &str, catalog: &Catalog) -> String {
    let parsed = parse(text, Options::default()).ok().and_then(|mut statements| statements.pop());
    let Some(Statement::Query(query)) = parsed.map(|parsed| parsed.into_statement()) else { return text.to_owned() };
    let (mut places, mut ctes) = (vec![], vec![]);
    walk(Node::Query(&query), &mut |node| {
        if let Node::Query(query) = node {
            ctes.extend(query.with.iter().flat_map(|with| &with.ctes).map(|cte| cte.name.name.clone()));
            tables(query, &mut places);
        }
        true
    });
    let known = |name: &str| catalog.table(name).is_some() || catalog.view(name).is_some();
    places.retain(|(_, name)| known(name) && !ctes.contains(name));
    let mut places: Vec<usize> =
        places.into_iter().map(|(at, _)| at).chain(casts(Node::Query(&query), catalog)).collect();
    places.sort_unstable();
    let mut text = text.to_owned();
    for at in places.iter().rev() {
        text.insert_str(*at, SCHEMA);
    }
    text
}

/// The places of names without a schema in FROM.
fn tables(query: &Query, places: &mut Vec<(usize, String)>) {
    fn of(item: &FromItem, places: &mut Vec<(usize, String)>) {
        match item {
            FromItem::Table { name, .. } if name.qualifier().is_empty() => {
                places.push((name.at() as usize, name.last().name.clone()));
            }
            FromItem::Join { sides, .. } => sides.iter().for_each(|side| of(side, places)),
            FromItem::Table { .. } | FromItem::Query { .. } | FromItem::Functions { .. } => {}
        }
    }
    if let Body::Select(select) = &query.body {
        select.from.iter().for_each(|item| of(item, places));
    }
}
