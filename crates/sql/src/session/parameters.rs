//! What clients are told of a statement's parameters.
//!
//! 1. A parameter that is cast to oid, to oid[] or to a domain is told to be of that; so is one that becomes the value
//!    of a column of a domain, or of varchar, or is compared with an oid of a system relation. Here it is of the base
//!    type, and the domain's conditions are looked at where the cast, or the row, is made.
//! 2. A client may state a domain for a parameter that is told to be of it. For another one it would go unchecked.
use crate::parse::relation;
use crate::parse::types::domain_named;
use crate::pgcatalog::is_of_type;
use crate::plan::bind::{Tree, system_oid};
use crate::session::Session;
use crate::session::prepared::Prepared;
use crate::statement::changes::{assigned, named_columns, plain_values};
use std::borrow::Cow;
use std::sync::Arc;
use terrace_engine::{Catalog, DataType, Table};
use terrace_grammar::statement::{
    Assignment, Body, ConflictAction, Expr, ExprKind, FromItem, Insert, Name, Node, Query, Statement, TypeName, walk,
};
use terrace_storage::store::FIRST_OBJECT;

const OID: u32 = 26;
const VARCHAR: u32 = 1043;

impl Prepared {
    /// The OIDs of its parameters' types, as clients are told them (invariant 1).
    pub fn parameter_oids(&self, catalog: &Catalog) -> Vec<u32> {
        let mut oids: Vec<u32> = self.parameters.iter().map(|of| of.pg_oid()).collect();
        let Some(statement) = self.statement.as_ref().map(Tree::statement).filter(|_| !oids.is_empty()) else {
            return oids;
        };
        let mut told = vec![];
        let written = |to: &TypeName| system_oid(to).or_else(|| Some(domain_named(to, catalog)?.oid));
        for node in parts(statement) {
            walk(node, &mut |node| {
                match node {
                    Node::Query(query) => told.extend(compared_with_oids(query, catalog)),
                    Node::Expr(Expr { kind: ExprKind::Cast { arg, to, .. }, .. }) => {
                        told.extend(parameter(arg).and_then(|number| Some((number, written(to)?))));
                    }
                    Node::Expr(_) => {}
                }
                true
            });
        }
        told.extend(assigned_columns(statement, catalog));
        for (number, of) in told {
            if let Some(oid) = number.checked_sub(1).and_then(|at| oids.get_mut(at)) {
                *oid = of;
            }
        }
        oids
    }
}

fn parameter(expr: &Expr) -> Option<usize> {
    match expr.kind {
        ExprKind::Parameter(number) => usize::try_from(number).ok(),
        _ => None,
    }
}

/// What of a statement may have casts of parameters in it.
fn parts(statement: &Statement) -> Vec<Node<'_>> {
    match statement {
        Statement::Query(query) => vec![Node::Query(query)],
        Statement::Insert(insert) => insert.source.iter().map(Node::Query).collect(),
        Statement::Update(update) => {
            let values = update.set.iter().map(|assignment| match assignment {
                Assignment::One { value, .. } | Assignment::Many { value, .. } => value,
            });
            values.chain(&update.filter).map(Node::Expr).collect()
        }
        Statement::Delete(delete) => delete.filter.iter().map(Node::Expr).collect(),
        _ => vec![],
    }
}

/// The parameters that a query compares with columns of system relations that are of type oid.
fn compared_with_oids(query: &Query, catalog: &Catalog) -> Vec<(usize, u32)> {
    let Body::Select(select) = &query.body else { return vec![] };
    let (mut tables, mut found) = (vec![], vec![]);
    select.from.iter().for_each(|item| system_relations(item, catalog, &mut tables));
    let is_oid = |expr: &Expr| match &expr.kind {
        ExprKind::Column(name) => tables.iter().any(|(called, relation)| match name.parts() {
            [column] => is_of_type(relation, &column.name, "oid"),
            [table, column] => *called == table.name && is_of_type(relation, &column.name, "oid"),
            _ => false,
        }),
        _ => false,
    };
    let Some(filter) = select.filter.as_ref().filter(|_| !tables.is_empty()) else { return found };
    walk(Node::Expr(filter), &mut |node| {
        if let Node::Expr(Expr { kind: ExprKind::Binary { args, .. }, .. }) = node {
            let [left, right] = args.as_ref();
            for (one, other) in [(left, right), (right, left)] {
                found.extend(parameter(one).filter(|_| is_oid(other)).map(|number| (number, OID)));
            }
        }
        matches!(node, Node::Expr(_))
    });
    found
}

/// The system relations of an item of FROM, and what they are called.
fn system_relations<'q>(item: &'q FromItem, catalog: &Catalog, found: &mut Vec<(&'q str, &'q str)>) {
    match item {
        FromItem::Table { name, alias, .. } => {
            let is_own = relation(name).is_ok_and(|name| catalog.table(&name).is_some());
            let relation = &name.last().name;
            if !is_own {
                found.push((alias.as_ref().map_or(relation, |alias| &alias.name.name), relation));
            }
        }
        FromItem::Join { sides, .. } => sides.iter().for_each(|side| system_relations(side, catalog, found)),
        _ => {}
    }
}

/// The parameters that become values of columns of domains, and those domains' OIDs; and those of columns of varchar.
fn assigned_columns(statement: &Statement, catalog: &Catalog) -> Vec<(usize, u32)> {
    let table = |name: &Name| catalog.table(&relation(name).ok()?).cloned();
    let pairs = match statement {
        Statement::Insert(insert) => table(&insert.target).and_then(|table| inserted(insert, &table)),
        Statement::Update(update) => table(&update.target).and_then(|table| set(&update.set, &table)),
        _ => None,
    };
    pairs.unwrap_or_default()
}

fn inserted(insert: &Insert, table: &Arc<Table>) -> Option<Vec<(usize, u32)>> {
    let columns = named_columns(&insert.columns, table).ok()?;
    let rows: &[Vec<Expr>] = insert.source.as_ref().and_then(plain_values).map_or(&[], Vec::as_slice);
    let values = rows.iter().flat_map(|row| columns.iter().copied().zip(row));
    let whole = insert.parts.iter().all(Vec::is_empty);
    let mut found: Vec<(usize, u32)> = values.filter(|_| whole).filter_map(|pair| of_domain(pair, table)).collect();
    if let Some(ConflictAction::Update { set: assignments, .. }) = insert.conflict.as_ref().map(|of| &of.action) {
        found.extend(set(assignments, table)?);
    }
    Some(found)
}

fn set(assignments: &[Assignment], table: &Arc<Table>) -> Option<Vec<(usize, u32)>> {
    let pairs = assigned(assignments, table).ok()?;
    Some(pairs.into_iter().filter_map(|pair| of_domain(pair, table)).collect())
}

fn of_domain((column, value): (usize, &Expr), table: &Table) -> Option<(usize, u32)> {
    let column = table.columns.get(column)?;
    let varchar = matches!(column.data_type, DataType::Varchar(_)).then_some(VARCHAR);
    Some((parameter(value)?, column.domain.as_ref().map(|domain| domain.oid).or(varchar)?))
}

impl Session {
    /// The types of parameters as they are now: one that a user made may have been altered since the statement was
    /// prepared.
    pub async fn types_now<'t>(&self, types: &'t [DataType]) -> Cow<'t, [DataType]> {
        let is_own = |of: &DataType| of.item().unwrap_or(*of).own().is_some();
        if !types.iter().any(is_own) {
            return Cow::Borrowed(types);
        }
        let catalog = self.catalog().await;
        types.iter().map(|of| catalog.type_now(*of)).collect()
    }

    /// The OIDs of the types that values are sent as: of a domain, its base.
    pub async fn sent_as<'o>(&self, oids: &'o [u32]) -> Cow<'o, [u32]> {
        if oids.iter().all(|oid| *oid < FIRST_OBJECT) {
            return Cow::Borrowed(oids);
        }
        let catalog = self.catalog().await;
        let base = |oid: &u32| catalog.domain_of_oid(*oid).map_or(*oid, |domain| domain.base.pg_oid());
        oids.iter().map(base).collect()
    }
}
