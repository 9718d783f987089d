//! The schemas of names in texts that the catalogue keeps: defaults, conditions, queries of views.
//!
//! 1. A text is kept with the schema of each type, sequence and relation that it names, by the schema's number
//!    ([`numbered`]): what it means depends on nobody's `search_path`, and the schema may get another name. `public`,
//!    or no schema, is the schema that was called so when the database was made.
//! 2. It is shown as PostgreSQL shows it: with a schema's name where the session would not find what is meant without.
use super::sequence_calls::sequence_literal;
use super::stored::Stored;
use super::types::{self, known};
use super::{numbered, relation};
use std::ops::Range;
use std::sync::Arc;
use terrace_engine::{Among, Catalog, DataType, RelationName, Space};
use terrace_grammar::statement::{At, Body, Expr, ExprKind, FromItem, Name, Node, Query, Statement, TypeName, walk};
use terrace_grammar::{Options, parse, quoted, token_end};

/// A place in a text, and what stands there instead.
pub(crate) type Edit = (Range<usize>, String);

/// A schema as kept texts name it (invariant 1).
pub(crate) fn kept_schema(space: Space) -> String {
    if space == Space::PUBLIC { "public".to_owned() } else { numbered(space) }
}

/// Another schema, or none, before the last part of a name.
pub(crate) fn with_schema(name: &Name, schema: Option<&str>) -> Edit {
    let (from, to) = (name.at() as usize, name.last().at as usize);
    (from..to, schema.map_or(String::new(), |schema| format!("{schema}.")))
}

/// The text with its edits.
pub(crate) fn edited(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(place, _)| place.start);
    let (mut made, mut at) = (String::new(), 0);
    for (place, new) in edits {
        made.push_str(&text[at..place.start]);
        made.push_str(&new);
        at = place.end;
    }
    made + &text[at..]
}

/// A user's type: where it is, its name and its oid.
pub(crate) fn type_in(name: &TypeName, catalog: &Catalog) -> Option<(Space, String, u32)> {
    if known(name).is_ok() {
        return None;
    }
    let oid = match name.name.parts() {
        [one] if let Some(oid) = types::numbered_type(&one.name) => oid,
        _ => {
            let single = TypeName { dimensions: vec![], ..name.clone() };
            let of_enum = types::of_user(&single, catalog).map(|of| of.pg_oid());
            of_enum.or_else(|| types::domain_named(&single, catalog).map(|domain| domain.oid))?
        }
    };
    let of_own = catalog.own_types().filter_map(DataType::own).find(|own| own.oid == oid);
    let own = of_own
        .map(|own| own.name.to_owned())
        .or_else(|| catalog.domain_of_oid(oid).map(|domain| domain.name.clone()))?;
    Some((catalog.space_of_type(oid)?, own, oid))
}

/// The name of a user's type as a session sees it (invariant 2).
pub(crate) fn shown_type(oid: u32, (space, name): (Space, &str), catalog: &Catalog) -> String {
    let of_own = catalog.own_type(name).map(DataType::pg_oid);
    let found = of_own.or_else(|| catalog.domain(name).map(|domain| domain.oid));
    let hidden = found != Some(oid);
    if hidden { format!("{}.{}", quoted(&catalog.space_name(space)), quoted(name)) } else { quoted(name) }
}

/// The name of a relation as a session sees it (invariant 2).
pub(crate) fn shown_relation(space: Space, name: &str, catalog: &Catalog) -> String {
    match is_visible(space, name, catalog) {
        true => quoted(name),
        false => format!("{}.{}", quoted(&catalog.space_name(space)), quoted(name)),
    }
}

/// Whether a relation of a space is what its name alone means.
pub(crate) fn is_visible(space: Space, name: &str, catalog: &Catalog) -> bool {
    catalog.space_of_relation(name) == Some(space)
}

/// Calls with each type and each sequence that stands within a node.
fn names<'t>(node: Node<'t>, type_name: &mut dyn FnMut(&'t TypeName), sequence: &mut dyn FnMut(&'t Expr, &'t str)) {
    walk(node, &mut |node| {
        match node {
            Node::Expr(Expr { kind: ExprKind::Cast { to, .. }, .. }) => type_name(to),
            Node::Expr(expr) => {
                if let Some((literal, text)) = sequence_literal(expr) {
                    sequence(literal, text);
                }
            }
            Node::Query(_) => {}
        }
        true
    });
}

/// The types that a node casts to.
pub(crate) fn types_of(node: Node<'_>) -> Vec<&TypeName> {
    let mut types = vec![];
    names(node, &mut |name| types.push(name), &mut |_, _| {});
    types
}

/// What makes the types and the sequences of a node independent of the session (invariant 1).
pub(crate) fn kept_edits(node: Node<'_>, text: &str, catalog: &Catalog) -> Vec<Edit> {
    let (mut edits, mut sequences) = (vec![], vec![]);
    let mut type_name = |name: &TypeName| {
        if let Some((space, ..)) = type_in(name, catalog) {
            edits.push(with_schema(&name.name, Some(&kept_schema(space))));
        }
    };
    let mut sequence = |literal: &Expr, named: &str| {
        let name = terrace_grammar::name_of(named).and_then(|name| relation(&name).ok());
        if let Some(table) = name.and_then(|name| catalog.table(&name)) {
            let kept = match table.space == Space::PUBLIC {
                true => double_quoted(&table.name),
                false => format!("{}.{}", numbered(table.space), double_quoted(&table.name)),
            };
            sequences.push(literal_edit(literal.at, text, &kept));
        }
    };
    names(node, &mut type_name, &mut sequence);
    edits.extend(sequences);
    edits
}

fn double_quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn literal_edit(at: At, text: &str, new: &str) -> Edit {
    (at as usize..token_end(text, at) as usize, format!("'{}'", new.replace('\'', "''")))
}

/// An expression as it is kept.
pub(crate) fn kept(text: &str, catalog: &Catalog) -> String {
    match Stored::read(text) {
        Some(stored) => stored.edited(kept_edits(Node::Expr(stored.expr()), stored.text(), catalog)),
        None => text.to_owned(),
    }
}

/// An expression that is kept, as a session sees it.
pub(crate) fn shown(text: &str, catalog: &Arc<Catalog>) -> String {
    match Stored::read(text) {
        Some(stored) => stored.edited(shown_edits(Node::Expr(stored.expr()), stored.text(), catalog)),
        None => text.to_owned(),
    }
}

fn shown_edits(node: Node<'_>, text: &str, catalog: &Arc<Catalog>) -> Vec<Edit> {
    let kept = catalog.of_definitions();
    let (mut edits, mut sequences) = (vec![], vec![]);
    let mut type_name = |name: &TypeName| {
        if let Some((space, own, oid)) = type_in(name, &kept) {
            let (from, last) = (name.name.at(), name.name.last().at);
            let place = from as usize..token_end(text, last) as usize;
            edits.push((place, shown_type(oid, (space, &own), catalog)));
        }
    };
    let mut sequence = |literal: &Expr, named: &str| {
        let name = terrace_grammar::name_of(named).and_then(|name| relation(&name).ok());
        if let Some(table) = name.and_then(|name| kept.table(&name.of_definition())) {
            let shown = shown_relation(table.space, &table.name, catalog);
            sequences.push(literal_edit(literal.at, text, &shown));
        }
    };
    names(node, &mut type_name, &mut sequence);
    edits.extend(sequences);
    edits
}

/// A query in which types of the user's are called by their numbers, as a session sees it.
pub(crate) fn shown_types(text: &str, catalog: &Arc<Catalog>) -> String {
    let parsed = parse(text, Options::default()).ok().and_then(|mut statements| statements.pop());
    match parsed.map(|parsed| parsed.into_statement()) {
        Some(Statement::Query(query)) => edited(text, shown_edits(Node::Query(&query), text, catalog)),
        _ => text.to_owned(),
    }
}

/// The text of a view, as a session sees it.
pub(crate) fn shown_view(text: &str, catalog: &Arc<Catalog>) -> String {
    let parsed = parse(text, Options::default()).ok().and_then(|mut statements| statements.pop());
    let Some(Statement::Query(query)) = parsed.map(|parsed| parsed.into_statement()) else { return text.to_owned() };
    let (mut relations, mut columns, mut ctes) = (vec![], vec![], vec![]);
    walk(Node::Query(&query), &mut |node| {
        match node {
            Node::Query(query) => {
                ctes.extend(query.with.iter().flat_map(|with| &with.ctes).map(|cte| cte.name.name.as_str()));
                tables(query, &mut relations);
            }
            Node::Expr(Expr { kind: ExprKind::Column(name), .. }) if name.parts().len() == 3 => columns.push(name),
            Node::Expr(_) => {}
        }
        true
    });
    let kept = catalog.of_definitions();
    let mut edits = shown_edits(Node::Query(&query), text, catalog);
    for name in relations {
        let (own, is_bare) = (name.last().name.as_str(), name.qualifier().is_empty());
        let Ok(named) = relation(name).map(RelationName::of_definition) else { continue };
        let has_cte = ctes.contains(&own);
        if (is_bare && has_cte) || !kept.relation_exists(&named) {
            continue;
        }
        let Among::In(space) = named.among else { continue };
        let schema = quoted(&catalog.space_name(space));
        let schema = (has_cte || !is_visible(space, own, catalog)).then_some(schema);
        edits.push(with_schema(name, schema.as_deref()));
    }
    for name in columns {
        if let Some(Among::In(space)) = super::among(&name.parts()[0].name) {
            let at = name.at();
            edits.push((at as usize..token_end(text, at) as usize, quoted(&catalog.space_name(space))));
        }
    }
    edited(text, edits)
}

/// A CREATE INDEX, as a session sees it.
pub(crate) fn shown_index(text: &str, catalog: &Arc<Catalog>) -> String {
    let parsed = parse(text, Options::default()).ok().and_then(|mut statements| statements.pop());
    let Some(Statement::CreateIndex(create)) = parsed.map(|parsed| parsed.into_statement()) else {
        return text.to_owned();
    };
    let exprs = create.elements.iter().map(|element| &element.expr).chain(create.filter.iter().map(|f| &f.expr));
    edited(text, exprs.flat_map(|expr| shown_edits(Node::Expr(expr), text, catalog)).collect())
}

/// The names of tables in FROM.
pub(crate) fn tables<'q>(query: &'q Query, found: &mut Vec<&'q Name>) {
    fn of<'q>(item: &'q FromItem, found: &mut Vec<&'q Name>) {
        match item {
            FromItem::Table { name, .. } => found.push(name),
            FromItem::Join { sides, .. } => sides.iter().for_each(|side| of(side, found)),
            FromItem::File { .. } | FromItem::Query { .. } | FromItem::Functions { .. } => {}
        }
    }
    if let Body::Select(select) = &query.body {
        select.from.iter().for_each(|item| of(item, found));
    }
}

/// The text of a default whose sequence is in another schema now.
pub(crate) fn moved_sequence(text: &str, (to, name): (Space, &str)) -> String {
    let Some(stored) = Stored::read(text) else { return text.to_owned() };
    let mut edits = vec![];
    let mut sequence = |literal: &Expr, _: &str| {
        let schema = if to == Space::PUBLIC { String::new() } else { format!("{}.", numbered(to)) };
        edits.push(literal_edit(literal.at, stored.text(), &format!("{schema}{}", double_quoted(name))));
    };
    names(Node::Expr(stored.expr()), &mut |_| {}, &mut sequence);
    stored.edited(edits)
}
