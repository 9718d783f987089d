//! The columns of FROM, for [`super::scope`].
use super::outer::Scope;
use super::scope::{Cte, Names, Resolver};
use super::syntax::{call, chain};
use crate::error::unsupported;
use crate::parse::fold;
use crate::values::field_type;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::logical_expr::TableSource;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem,
    SetExpr, TableAlias, TableFactor, TableWithJoins, Value, ValueWithSpan, helpers::attached_token::AttachedToken,
    visit_expressions,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use terrace_engine::{DataType, EngineError, Result};

/// Of a column: Arrow's type, and what that does not say (a text is a char, say).
type Type = (ArrowType, Option<DataType>);

/// What names in FROM stand for.
pub(crate) struct Relations<'r> {
    pub(crate) sources: &'r BTreeMap<String, Arc<dyn TableSource>>,
    /// Whether a function of that name is evaluated anew for each row.
    pub(crate) volatile: &'r dyn Fn(&str) -> bool,
    pub(crate) aggregate: &'r dyn Fn(&str) -> bool,
}

/// One item of FROM.
pub(super) struct Relation {
    pub(super) name: String,
    pub(super) columns: Names,
    /// A column that is NULL only where an outer join pads it.
    pub(super) never_null: Option<String>,
    /// A subquery: it may have given two columns one name.
    derived: bool,
}

#[derive(Default)]
pub(super) struct From {
    relations: Vec<Relation>,
    /// All columns in the order of `*`, with what they are. `None`: not known.
    order: Option<Vec<(String, Expr)>>,
    /// The merged columns.
    pub(super) merged: BTreeMap<String, Expr>,
    /// Of tables' columns, by what they are.
    types: BTreeMap<String, Type>,
    pub(super) has_outer_join: bool,
}

/// Whether names in it may have to be written out.
pub(super) fn concerns(table: &TableWithJoins) -> bool {
    let merges = |operator: &JoinOperator| {
        matches!(constraint(operator), Some(JoinConstraint::Using(_) | JoinConstraint::Natural))
    };
    let derived = |factor: &TableFactor| match factor {
        TableFactor::Derived { .. } => true,
        TableFactor::NestedJoin { table_with_joins, .. } => concerns(table_with_joins),
        _ => false,
    };
    derived(&table.relation) || table.joins.iter().any(|join| merges(&join.join_operator) || derived(&join.relation))
}

fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    use JoinOperator::*;
    match operator {
        Join(c) | Inner(c) | Left(c) | LeftOuter(c) | Right(c) | RightOuter(c) | FullOuter(c) => Some(c),
        _ => None,
    }
}

fn constraint_mut(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    use JoinOperator::*;
    match operator {
        Join(c) | Inner(c) | Left(c) | LeftOuter(c) | Right(c) | RightOuter(c) | FullOuter(c) => Some(c),
        _ => None,
    }
}

impl From {
    pub(super) fn columns(&self) -> Option<Vec<(String, Expr)>> {
        self.order.clone()
    }

    /// Of the tables and what else is in it.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.relations.iter().map(|relation| relation.name.as_str())
    }

    pub(super) fn relation(&self, name: &ObjectName) -> Option<&Relation> {
        let name = fold(name.0.last()?.as_ident()?);
        self.relations.iter().find(|relation| relation.name == name)
    }

    /// Names that subqueries of FROM gave more than one of their columns, with those subqueries.
    pub(super) fn given_twice(&self) -> BTreeMap<String, Vec<String>> {
        let mut twice: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for relation in self.relations.iter().filter(|relation| relation.derived) {
            let columns = relation.columns.as_deref().unwrap_or_default();
            for (at, column) in columns.iter().enumerate() {
                if columns[..at].contains(column) && column != "?column?" {
                    twice.entry(column.clone()).or_default().push(relation.name.clone());
                }
            }
        }
        twice
    }

    /// Names that more than one column has.
    pub(super) fn ambiguous(&self) -> BTreeSet<String> {
        let (mut seen, mut twice) = (BTreeSet::new(), BTreeSet::new());
        for (name, _) in self.order.iter().flatten() {
            if !seen.insert(name) && name != "?column?" {
                twice.insert(name.clone());
            }
        }
        twice
    }

    fn of(relation: Relation) -> From {
        let column = |name: &String| {
            let parts = vec![Ident::with_quote('"', &relation.name), Ident::with_quote('"', name)];
            (name.clone(), Expr::CompoundIdentifier(parts))
        };
        let columns = relation.columns.as_ref().filter(|_| !relation.name.is_empty());
        let order = columns.map(|names| names.iter().map(column).collect());
        From { order, relations: vec![relation], ..From::default() }
    }

    /// Beside another.
    fn beside(&mut self, other: From) {
        self.order = match (self.order.take(), other.order) {
            (Some(mut left), Some(right)) => {
                left.extend(right);
                Some(left)
            }
            _ => None,
        };
        self.relations.extend(other.relations);
        self.merged.extend(other.merged);
        self.types.extend(other.types);
        self.has_outer_join |= other.has_outer_join;
    }
}

impl Resolver<'_> {
    pub(super) fn from(&mut self, tables: &mut [TableWithJoins]) -> Result<From> {
        let mut all: Option<From> = None;
        for table in tables {
            let from = self.joins(table)?;
            match &mut all {
                Some(all) => all.beside(from),
                None => all = Some(from),
            }
        }
        Ok(all.unwrap_or_else(|| From { order: Some(vec![]), ..From::default() }))
    }

    fn joins(&mut self, table: &mut TableWithJoins) -> Result<From> {
        let mut left = self.factor(&mut table.relation)?;
        for join in &mut table.joins {
            self.refuse_merged(&left, &join.relation)?;
            let right = self.factor(&mut join.relation)?;
            use JoinOperator::*;
            let (keeps_left, keeps_right) = match &join.join_operator {
                Left(_) | LeftOuter(_) => (true, false),
                Right(_) | RightOuter(_) => (false, true),
                FullOuter(_) => (true, true),
                _ => (false, false),
            };
            left.has_outer_join |= keeps_left || keeps_right;
            let keys = match constraint(&join.join_operator) {
                Some(JoinConstraint::Using(names)) => Some(using_names(names)?),
                Some(JoinConstraint::Natural) => common(&left, &right),
                _ => None,
            };
            let on = match (&keys, &left.order, &right.order) {
                (Some(keys), Some(columns), Some(others)) => {
                    let natural = matches!(constraint(&join.join_operator), Some(JoinConstraint::Natural));
                    let merged = merged(keys, columns, others, natural)?;
                    Some((merge(&mut left, right, &merged, keeps_left, keeps_right), merged))
                }
                _ => {
                    left.beside(right);
                    self.written_on(&mut join.join_operator, &left)?;
                    None
                }
            };
            if let Some(((), merged)) = on
                && let Some(constraint) = constraint_mut(&mut join.join_operator)
            {
                *constraint = JoinConstraint::On(condition(&merged));
            }
        }
        Ok(left)
    }

    /// A LATERAL query that names a merged column, which no table has. 0A000
    fn refuse_merged(&mut self, left: &From, factor: &TableFactor) -> Result<()> {
        let TableFactor::Derived { lateral: true, subquery, .. } = factor else { return Ok(()) };
        if left.merged.is_empty() {
            return Ok(());
        }
        let own = self.own_names(subquery);
        let merged = left.merged.keys().filter(|name| !own.as_ref().is_none_or(|own| own.contains(name)));
        let merged: BTreeSet<&str> = merged.map(String::as_str).collect();
        let found = visit_expressions(subquery.as_ref(), |expr: &Expr| match expr {
            Expr::Identifier(name) if merged.contains(fold(name).as_str()) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        match found {
            ControlFlow::Break(()) => Err(unsupported("a column that a join merges, in a LATERAL query beside it")),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    /// Queries in ON, and merged and ambiguous names.
    fn written_on(&mut self, operator: &mut JoinOperator, both: &From) -> Result<()> {
        let Some(JoinConstraint::On(expr)) = constraint_mut(operator) else { return Ok(()) };
        self.scopes.push(Scope::of(both));
        let within = self.within(expr);
        self.scopes.pop();
        within?;
        if !(both.merged.is_empty() && both.ambiguous().is_empty()) {
            super::scope::write_merged(expr, both, self)?;
        }
        Ok(())
    }

    fn factor(&mut self, factor: &mut TableFactor) -> Result<From> {
        let relation = match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let types = self.column_types(name);
                let relation = self.table(name, alias.as_ref());
                self.write_name(name, alias);
                let mut from = From::of(relation);
                let columns = from.order.iter().flatten().map(|(_, column)| column.to_string());
                from.types = columns.zip(types).collect();
                return Ok(from);
            }
            TableFactor::Table { name, alias, args: Some(_), .. } | TableFactor::Function { name, alias, .. } => {
                let own = name.0.last().and_then(|part| part.as_ident()).map(fold).unwrap_or_default();
                function(own, alias.as_ref())
            }
            TableFactor::UNNEST { alias, .. } => function("unnest".into(), alias.as_ref()),
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                let scopes = self.scopes.len();
                self.scopes.extend(lateral.then(Scope::any));
                let names = self.inner(subquery);
                self.scopes.truncate(scopes);
                let names = names?;
                let name = alias.as_ref().map(|alias| fold(&alias.name)).unwrap_or_default();
                let columns = aliased(names, alias.as_ref());
                Relation { name, columns, never_null: None, derived: true }
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => return self.joins(table_with_joins),
            TableFactor::NestedJoin { table_with_joins, alias: Some(alias) } => {
                let inner = self.joins(table_with_joins)?;
                let names = inner.order.as_ref().map(|columns| columns.iter().map(|(name, _)| name.clone()).collect());
                let (name, columns) = (fold(&alias.name), aliased(names, Some(&*alias)));
                if !inner.merged.is_empty() {
                    let (join, alias) = (table_with_joins.as_ref().clone(), alias.clone());
                    *factor = super::scope::derived(join, alias, &inner)?;
                }
                Relation { name, columns, never_null: None, derived: true }
            }
            _ => Relation { name: String::new(), columns: None, never_null: None, derived: false },
        };
        Ok(From::of(relation))
    }

    /// The WITH query of that name, or what was written for it.
    fn cte(&self, name: &str) -> Option<&Cte> {
        self.ctes.iter().rev().find(|cte| cte.name == name || cte.written == name)
    }

    /// The name that a WITH query which hides another has got.
    fn write_name(&self, name: &mut ObjectName, alias: &mut Option<TableAlias>) {
        let [part] = name.0.as_slice() else { return };
        let Some(own) = part.as_ident().cloned() else { return };
        let Some(cte) = self.cte(&fold(&own)).filter(|cte| cte.written != fold(&own)) else { return };
        *name = ObjectName::from(vec![Ident::with_quote('"', &cte.written)]);
        alias.get_or_insert_with(|| TableAlias { explicit: true, name: own, columns: vec![], at: None });
    }

    fn table(&mut self, name: &ObjectName, alias: Option<&TableAlias>) -> Relation {
        let own = name.0.last().and_then(|part| part.as_ident()).map(fold).unwrap_or_default();
        let shown = alias.map_or_else(|| own.clone(), |alias| fold(&alias.name));
        if name.0.len() == 1
            && let Some(cte) = self.cte(&own)
        {
            let columns = aliased(cte.names.clone(), alias);
            return Relation { name: shown, columns, never_null: None, derived: true };
        }
        let key = object_name_to_table_reference(name.clone(), true).map(|reference| reference.to_string());
        let source = key.ok().and_then(|key| self.relations.sources.get(&key));
        let schema = source.map(|source| source.schema());
        let fields = schema.iter().flat_map(|schema| schema.fields().iter()).filter(|f| !f.name().contains('\0'));
        let names: Vec<String> = fields.clone().map(|field| field.name().clone()).collect();
        let never_null = fields.clone().position(|field| !field.is_nullable());
        let columns = aliased(source.map(|_| names), alias);
        let never_null = never_null.and_then(|at| columns.as_ref()?.get(at).cloned());
        Relation { name: shown, columns, never_null, derived: false }
    }

    /// Of a table's columns; none are told of a WITH query's.
    fn column_types(&self, name: &ObjectName) -> Vec<Type> {
        let own = name.0.last().and_then(|part| part.as_ident()).map(fold).unwrap_or_default();
        if name.0.len() == 1 && self.cte(&own).is_some() {
            return vec![];
        }
        let key = object_name_to_table_reference(name.clone(), true).map(|reference| reference.to_string());
        let source = key.ok().and_then(|key| self.relations.sources.get(&key));
        let schema = source.map(|source| source.schema());
        let fields = schema.iter().flat_map(|schema| schema.fields().iter()).filter(|f| !f.name().contains('\0'));
        fields.map(|field| (field.data_type().clone(), field_type(field))).collect()
    }

    /// The names that mean a query's own columns.
    pub(super) fn own_names(&mut self, query: &Query) -> Names {
        let mut query = query.clone();
        let known = self.ctes.len();
        if let Some(with) = &query.with {
            let hidden = with.cte_tables.iter().map(|cte| fold(&cte.alias.name));
            self.ctes.extend(hidden.map(|name| Cte { written: name.clone(), name, names: None }));
        }
        let names = self.body_names(&mut query.body);
        self.ctes.truncate(known);
        names
    }

    fn body_names(&mut self, body: &mut SetExpr) -> Names {
        match body {
            SetExpr::Select(select) => self.select_names(select),
            SetExpr::Query(query) => self.own_names(query),
            SetExpr::SetOperation { left, right, .. } => {
                let mut names = self.body_names(left)?;
                names.extend(self.body_names(right)?);
                Some(names)
            }
            SetExpr::Values(_) => Some(vec![]),
            _ => None,
        }
    }

    fn select_names(&mut self, select: &mut Select) -> Names {
        let from = self.from(&mut select.from).ok()?;
        let mut names: Vec<String> = from.order?.into_iter().map(|(name, _)| name).collect();
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                names.push(fold(alias));
            }
        }
        Some(names)
    }
}

pub(super) fn aliased(names: Names, alias: Option<&TableAlias>) -> Names {
    let columns = alias.map(|alias| alias.columns.as_slice()).unwrap_or_default();
    if columns.is_empty() {
        return names;
    }
    let mut result: Vec<String> = columns.iter().map(|column| fold(&column.name)).collect();
    result.extend(names?.into_iter().skip(columns.len()));
    Some(result)
}

/// A function's one column has its alias's name.
fn function(own: String, alias: Option<&TableAlias>) -> Relation {
    let name = alias.map_or(own, |alias| fold(&alias.name));
    let columns = aliased(Some(vec![name.clone()]), alias);
    Relation { name, columns, never_null: None, derived: false }
}

fn using_names(names: &[ObjectName]) -> Result<Vec<String>> {
    let ident = |name: &ObjectName| name.0.last().and_then(|part| part.as_ident()).map(fold);
    let names: Vec<String> = names.iter().filter_map(ident).collect();
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            let message = format!("column name \"{name}\" appears more than once in USING clause");
            return Err(EngineError::new("42701", message));
        }
    }
    Ok(names)
}

/// The names that both sides have, in the left one's order.
fn common(left: &From, right: &From) -> Option<Vec<String>> {
    let (left, right) = (left.order.as_ref()?, right.order.as_ref()?);
    let mut names: Vec<String> = vec![];
    for (name, _) in left {
        if right.iter().any(|(other, _)| other == name) && !names.contains(name) {
            names.push(name.clone());
        }
    }
    Some(names)
}

type Merged = Vec<(String, Expr, Expr)>;

/// Each name's column on the left and on the right.
fn merged(keys: &[String], left: &[(String, Expr)], right: &[(String, Expr)], natural: bool) -> Result<Merged> {
    let find = |columns: &[(String, Expr)], name: &str, side: &str| -> Result<Expr> {
        let mut found = columns.iter().filter(|(column, _)| column == name);
        match (found.next(), found.next()) {
            (Some((_, expr)), None) => Ok(expr.clone()),
            (Some(_), Some(_)) => {
                let message = format!("common column name \"{name}\" appears more than once in {side} table");
                Err(EngineError::new("42702", message))
            }
            (None, _) => {
                let message = format!("column \"{name}\" specified in USING clause does not exist in {side} table");
                Err(EngineError::new(if natural { "XX000" } else { "42703" }, message))
            }
        }
    };
    keys.iter().map(|key| Ok((key.clone(), find(left, key, "left")?, find(right, key, "right")?))).collect()
}

fn merge(left: &mut From, right: From, merged: &Merged, keeps_left: bool, keeps_right: bool) {
    let mut columns: Vec<(String, Expr)> = vec![];
    for (name, a, b) in merged {
        let expr = match (keeps_left, keeps_right) {
            (true, true) => call(Ident::new("coalesce"), vec![a.clone(), b.clone()]),
            (keeps_left, keeps_right) => {
                let right_one = keeps_right && !keeps_left;
                match (left.types.get(&a.to_string()), right.types.get(&b.to_string())) {
                    // Of two kinds of text it is the left one's.
                    (Some((its, kind)), Some((other, kind_of_other)))
                        if its == other && (its != &ArrowType::Utf8 || kind == kind_of_other || !right_one) =>
                    {
                        (if right_one { b } else { a }).clone()
                    }
                    // Where one is NULL so is the other.
                    (Some((its, _)), Some((other, _))) if its != other => {
                        let (kept, other) = if right_one { (b, a) } else { (a, b) };
                        call(Ident::new("coalesce"), vec![kept.clone(), other.clone()])
                    }
                    _ => of_both(a, b, right_one),
                }
            }
        };
        columns.push((name.clone(), expr));
    }
    let others = |order: &Option<Vec<(String, Expr)>>| -> Vec<(String, Expr)> {
        let rest = order.iter().flatten().filter(|(name, _)| !merged.iter().any(|(key, ..)| key == name));
        rest.cloned().collect()
    };
    let rest: Vec<(String, Expr)> = others(&left.order).into_iter().chain(others(&right.order)).collect();
    left.beside(right);
    left.merged.extend(columns.iter().cloned());
    columns.extend(rest);
    left.order = Some(columns);
}

/// The value of one of two, as of the type that both become: the left one's comes first.
fn of_both(left: &Expr, right: &Expr, right_one: bool) -> Expr {
    let when =
        CaseWhen { condition: Expr::Value(ValueWithSpan::from(Value::Boolean(right_one))), result: right.clone() };
    let missing = AttachedToken::empty;
    Expr::Case {
        case_token: missing(),
        end_token: missing(),
        operand: None,
        conditions: vec![when],
        else_result: Some(Box::new(left.clone())),
    }
}

fn condition(merged: &Merged) -> Expr {
    let equal = |(_, a, b): &(String, Expr, Expr)| Expr::BinaryOp {
        left: Box::new(a.clone()),
        op: BinaryOperator::Eq,
        right: Box::new(b.clone()),
    };
    // Without a name in common each row goes with each.
    chain(merged.iter().map(equal).collect(), BinaryOperator::And)
}
