//! Functions in FROM whose rows are the items of lists: `unnest`, `generate_subscripts`, and those of JSON.
//!
//! 1. Beside what it takes, such a function is not a join: each row of the left side is repeated for each row of the
//!    function, and of a LEFT join at least once. With a condition, or with numbers of rows that may be missing, it is
//!    a join like that with LATERAL.
//! 2. Several lists go row by row beside each other; where one has ended before another, it is NULL.
use super::from::{Relation, Source, columns, renamed};
use super::query::Around;
use super::records::Member;
use super::scope::{Clause, Scope};
use super::unnest::{is_expandarray, spread};
use super::{Binder, Result, bounds, system, unsupported};
use crate::functions::arrays::{list, ordinals};
use crate::functions::chars::labelled;
use crate::functions::json::spread as spreads;
use crate::values::field_type;
use datafusion::common::Column;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlanBuilder};
use terrace_engine::{DataType, EngineError};
use terrace_grammar::statement::{
    self as tree, Alias, At, Call, ColumnDefinition, ExprKind, FromItem, JoinKind, JoinOn, Literal,
};

/// The columns of a function: their names (empty: the function's), and a list for each.
pub(super) type Lists = Vec<(&'static str, Expr)>;

/// How a function stands in FROM.
#[derive(Clone, Copy)]
pub(super) struct Standing<'s> {
    pub(super) alias: Option<&'s Alias>,
    /// WITH ORDINALITY.
    pub(super) numbered: bool,
    /// Of the records that it answers.
    pub(super) columns: &'s [ColumnDefinition],
}

impl Binder<'_> {
    /// The lists of a function; `None`: it is another one. `numbered`: WITH ORDINALITY. `padded`: each makes at least
    /// one row.
    fn lists(&self, call: &Call, at: At, scope: &Scope<'_>, (numbered, padded): (bool, bool)) -> Result<Option<Lists>> {
        let pad = |array: Expr| if padded { ordinals::padded(list(array)) } else { list(array) };
        if is_expandarray(call) {
            let [array] = call.args.as_slice() else { return Ok(None) };
            let array = self.array_of(&array.value, call, at, scope)?;
            if !system::is_vector(&array, &scope.schema)? {
                return unsupported("_pg_expandarray of no vector, in FROM");
            }
            let numbers = self.function_of("pg_subscripts", vec![array.clone()], &scope.schema)?;
            return Ok(Some(vec![("x", pad(array)), ("n", pad(numbers))]));
        }
        let of_catalog = matches!(call.name.qualifier(), [] | [_])
            && call.name.qualifier().iter().all(|schema| schema.name == "pg_catalog");
        let plain = call.args.iter().all(|arg| arg.name.is_none())
            && !(call.star || call.distinct || call.variadic)
            && (call.order.is_empty() && call.within.is_empty() && call.filter.is_none() && call.over.is_none());
        if !of_catalog || !plain {
            return Ok(None);
        }
        Ok(Some(match call.name.last().name.as_str() {
            "unnest" if !call.args.is_empty() => {
                let title = if call.args.len() == 1 { "" } else { "unnest" };
                let mut lists = vec![];
                for arg in &call.args {
                    lists.push((title, pad(self.array_of(&arg.value, call, at, scope)?)));
                }
                lists
            }
            "generate_series" if matches!(call.args.len(), 2 | 3) => {
                let args = call.args.iter().map(|arg| self.expr(&arg.value, scope)).collect::<Result<Vec<Expr>>>()?;
                self.refuse_untyped(("generate_series", &args), call, at, scope)?;
                // One of constants is a table, if nobody numbers its rows.
                let mut depends = args.iter().any(|arg| arg.any_column_refs() || arg.contains_outer());
                for arg in &args {
                    depends |= arg.exists(|part| Ok(matches!(part, Expr::Placeholder(_))))?;
                }
                let list = match args.len() {
                    3 => self.time_series(args.clone(), scope)?,
                    _ => None,
                };
                let list = match list {
                    None => self.numeric_series(args.clone(), scope)?,
                    list => list,
                };
                let list = match list {
                    None if depends || numbered => self.whole_series(args, scope)?,
                    list => list,
                };
                match list {
                    Some(list) => vec![("", pad(list))],
                    None => return Ok(None),
                }
            }
            "generate_subscripts" => vec![("", pad(self.subscripts(call, at, scope)?))],
            name @ ("string_to_table" | "regexp_split_to_table") => {
                vec![("", pad(self.split_list(name, call, at, scope)?))]
            }
            "regexp_matches" => vec![("", pad(self.matches_list(call, at, scope)?))],
            name => match spreads::function(name) {
                Some(spread) => spread.columns(&self.spread_arg(spread, call, at, scope)?, padded),
                None => return Ok(None),
            },
        }))
    }

    /// A function of what stands nowhere in FROM; `None`: it is another one.
    pub(super) fn lists_in_from(
        &self,
        call: &Call,
        standing: Standing<'_>,
        scope: &Scope<'_>,
        at: At,
    ) -> Result<Option<Source>> {
        let Some(lists) = self.lists(call, at, scope, (standing.numbered, false))? else { return Ok(None) };
        let members = self.members_of(call, standing, scope)?;
        let mut made = self.lists_over(Source::nothing()?, lists, (call, members), standing, false)?;
        // Whether there is a row is not known.
        made.empty = false;
        Ok(Some(made))
    }

    /// Invariant 1; `None`: the item is joined as any other.
    pub(super) fn lists_beside(
        &self,
        item: &FromItem,
        left: &Source,
        kind: JoinKind,
        on: &JoinOn,
        around: Around<'_>,
    ) -> Result<Option<Source>> {
        let FromItem::Functions { functions, ordinality, rows_from: false, alias, .. } = item else {
            return Ok(None);
        };
        let [tree::TableFunction { call: tree::Expr { kind: ExprKind::Call(call), at, .. }, columns }] =
            functions.as_slice()
        else {
            return Ok(None);
        };
        let scope = Scope::new(left, around.scope, around.ctes);
        scope.clause.set(Clause::Function);
        let padded = kind == JoinKind::Left;
        // Of nothing there is no number, and a condition chooses among rows: then the rows are joined.
        let always = match on {
            JoinOn::Nothing => true,
            JoinOn::On(condition) => matches!(condition.kind, ExprKind::Literal(Literal::Bool(true))),
            _ => false,
        };
        if !always || (padded && *ordinality) || !matches!(kind, JoinKind::Cross | JoinKind::Inner | JoinKind::Left) {
            return Ok(None);
        }
        let Some(lists) = self.lists(call, *at, &scope, (*ordinality, padded))? else { return Ok(None) };
        if !lists.iter().any(|(_, list)| list.any_column_refs()) {
            return Ok(None);
        }
        bounds::joins(left.relations.len() + 1)?;
        let standing = Standing { alias: alias.as_ref(), numbered: *ordinality, columns };
        let members = self.members_of(call, standing, &scope)?;
        let mut made = self.lists_over(left.clone(), lists, (call, members), standing, padded)?;
        let [relation] = made.relations.as_mut_slice() else { unreachable!("one relation was made") };
        relation.padded = padded;
        if left.relations.iter().any(|known| known.name == relation.name) {
            let message = format!("table name \"{}\" specified more than once", relation.name);
            return Err(EngineError::new("42712", message).into());
        }
        made.relations.splice(0..0, left.relations.iter().cloned());
        made.visible.splice(0..0, left.visible.iter().cloned());
        made.empty = left.empty;
        Ok(Some(made))
    }

    /// The rows of a source, each as often as the lists have items. With members, these are records.
    fn lists_over(
        &self,
        source: Source,
        mut lists: Lists,
        (call, members): (&Call, Option<Vec<Member>>),
        standing: Standing<'_>,
        padded: bool,
    ) -> Result<Source> {
        let shown = standing.alias.map_or(call.name.last().name.as_str(), |alias| alias.name.name.as_str());
        let value = lists.len() == 1 && !standing.numbered;
        if standing.numbered {
            let all = lists.iter().map(|(_, list)| list.clone()).collect();
            lists.push(("ordinality", ordinals::numbers(all, padded)));
        }
        let mut all: Vec<Expr> = columns(&source.plan).collect();
        let (mut names, mut own, mut told) = (vec![], vec![], vec![]);
        for (title, list) in lists {
            let title = if title.is_empty() { shown } else { title };
            let name = self.column_name(title);
            // What Arrow's type of the items does not tell.
            told.push(match field_type(list.to_field(source.plan.schema())?.1.as_ref()).and_then(DataType::item) {
                Some(of @ (DataType::Char(1..) | DataType::Varchar(_))) => Some(of),
                _ => None,
            });
            all.push(list.alias(&name));
            let column = Column::new_unqualified(name);
            own.push((title.to_owned(), Expr::Column(column.clone())));
            names.push(column);
        }
        let mut plan = spread(LogicalPlanBuilder::from(source.plan).project(all)?, names.clone())?;
        if told.iter().any(Option::is_some) {
            let labels = names.iter().zip(&told).filter_map(|(column, of)| Some((column, (*of)?)));
            let labels: Vec<(&Column, DataType)> = labels.collect();
            let label = |column: Expr| match labels.iter().find(|(name, _)| column == Expr::Column((*name).clone())) {
                Some((name, of)) => labelled(column, *of).alias(&name.name),
                None => column,
            };
            let all: Vec<Expr> = columns(&plan).map(label).collect();
            plan = LogicalPlanBuilder::from(plan).project(all)?.build()?;
        }
        let width = own.len();
        if members.is_none() {
            (plan, own) = self.rows_apart(plan, own)?;
        }
        let value = value && own.len() == width;
        let relation = Relation {
            name: shown.to_owned(),
            schemas: vec![],
            hidden: None,
            columns: own,
            key: vec![],
            never_null: None,
            padded: false,
            table_oid: None,
            in_join: false,
            value: value && members.is_none(),
        };
        let source = Source::of(plan, relation);
        match (members, spreads::function(&call.name.last().name)) {
            (Some(members), Some(of)) => {
                let source = self.with_members(source, of, members)?;
                // The columns that stand behind the function have their names.
                if standing.columns.is_empty() { renamed(source, standing.alias) } else { Ok(source) }
            }
            _ => renamed(source, standing.alias),
        }
    }
}
