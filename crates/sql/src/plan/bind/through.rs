//! The rows of a table that is changed through views: what the views make of its columns, and their conditions.
//!
//! 1. The columns of the outermost view are expressions over the table's. So nothing stands between the change and the
//!    table's scan, which has the rows' addresses.
//! 2. Each view is bound as [`super::views`] binds it: within it, in its time zone, with the columns that it saw when
//!    it was made. Its owner reads what it names.
use super::from::{Relation, Source, renamed};
use super::reads::{Number, Read};
use super::scope::{Clause, Ctes, Scope};
use super::views::Within;
use super::{Binder, Fault, Result, unsupported};
use crate::functions::convert::is_open;
use crate::through::{Level, Through};
use crate::values::live_columns;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Expr;
use std::sync::Arc;
use terrace_engine::types::Zone;
use terrace_engine::{DataType, EngineError, Table};
use terrace_grammar::statement::FromItem;

/// What is seen of a table through views.
pub(super) struct Seen {
    /// The table's plan, and the outermost view's columns.
    pub(super) source: Source,
    /// The condition of each view that has one, with the view's number; the innermost first.
    pub(super) conditions: Vec<(usize, Expr)>,
}

impl Binder<'_> {
    /// `called`: what the statement calls the outermost view. `conditioned`: the conditions are wanted.
    pub(super) fn seen(
        &self,
        mut source: Source,
        table: &Arc<Table>,
        (through, called): (&Through, &str),
        conditioned: bool,
    ) -> Result<Seen> {
        let reading = self.note_relation(Read::seen_through(through.view()));
        if let Some(reading) = reading {
            self.note_below(reading, table, through);
        }
        let mut conditions = vec![];
        let mut positions: Vec<usize> = live_columns(table).map(|(at, _)| at).collect();
        let (mut width, mut read) = (table.columns.len(), (table.space, table.name.as_str()));
        for (number, level) in through.levels.iter().enumerate().rev() {
            let bind = || -> Result<(Source, Option<Expr>)> {
                self.restrict(&mut source, read, width, std::mem::take(&mut positions), None)?;
                self.level(source, level, conditioned)
            };
            let (made, condition) = self.within_of(Within::View(level.view.clone()), bind)?;
            conditions.extend(condition.map(|condition| (number, condition)));
            source = made;
            positions = (0..level.view.columns.len()).collect();
            (width, read) = (positions.len(), (level.view.space, level.view.name.as_str()));
        }
        self.note_seen(reading, &source);
        let view = through.view();
        let relation = &mut source.relations[0];
        relation.hidden = (view.name != called).then(|| view.name.clone());
        relation.schemas = if view.name == called { self.schemas_of(view.space) } else { vec![] };
        called.clone_into(&mut relation.name);
        Ok(Seen { source, conditions })
    }

    /// What views read where a column of the outermost is named: each what it names itself.
    fn note_below(&self, reading: Number, table: &Arc<Table>, through: &Through) {
        for (number, level) in through.levels.iter().enumerate() {
            let (read, used) = match through.levels.get(number + 1) {
                Some(below) => (Read::of_view(&below.view), level.used_of((below.view.space, &below.view.name))),
                None => (Read::of_table(table, true), level.used_of((table.space, &table.name))),
            };
            let note = || self.note_relation(read.below(reading, used));
            self.within_of(Within::View(level.view.clone()), note);
        }
    }

    /// What one view makes of what it reads, and its condition.
    fn level(&self, below: Source, level: &Level, conditioned: bool) -> Result<(Source, Option<Expr>)> {
        let view = &level.view;
        let broken = || EngineError::damaged(format!("the text of view \"{}\" makes no sense", view.name));
        let zone = Zone::named(&view.zone).ok_or_else(broken)?;
        let select = level.select();
        let [FromItem::Table { name, alias, .. }] = select.from.as_slice() else { return Err(broken().into()) };
        let mut below = renamed(below, alias.as_ref())?;
        below.relations[0].name.clone_from(&alias.as_ref().map_or(name.last(), |alias| &alias.name).name);
        let schemas = name.qualifier().iter().map(|schema| schema.name.clone()).collect();
        below.relations[0].schemas = if alias.is_none() { schemas } else { vec![] };
        let bind = || -> Result<(Vec<Expr>, Option<Expr>)> {
            let ctes = Ctes::none();
            let scope = Scope::new(&below, None, &ctes);
            let (_, mut items) = self.items(&select.items, &scope)?;
            for item in items.iter_mut().filter(|item| is_open(item)) {
                // In a view, what has no type is a text.
                *item = self.cast_to(item.clone(), DataType::Text, &scope.schema)?;
            }
            refuse_others(&items)?;
            let condition = match select.filter.as_ref().filter(|_| conditioned) {
                Some(filter) => Some(scope.within(Clause::Where, || self.condition(filter, "WHERE", &scope))?),
                None => None,
            };
            Ok((items, condition))
        };
        // Its places are none of the statement's.
        let (items, condition) = zone.scope(bind).map_err(|fault| match fault {
            Fault::Wrong { error, at: _ } => Fault::Wrong { error, at: None },
            other => other,
        })?;
        if items.len() != view.columns.len() {
            return Err(broken().into());
        }
        let columns = view.columns.iter().map(|column| column.name.clone()).zip(items).collect();
        let relation = Relation {
            name: view.name.clone(),
            schemas: vec![],
            hidden: None,
            columns,
            key: vec![],
            never_null: None,
            padded: false,
            table_oid: None,
            in_join: false,
            value: false,
        };
        Ok((Source::of(below.plan, relation), condition))
    }
}

/// What would make other rows of the table's. (A view with it is not updatable.)
fn refuse_others(items: &[Expr]) -> Result<()> {
    for item in items {
        let mut found = false;
        item.apply(|expr| {
            found |= matches!(expr, Expr::AggregateFunction(_) | Expr::WindowFunction(_) | Expr::Unnest(_));
            Ok(TreeNodeRecursion::Continue)
        })?;
        if found {
            return unsupported("a change through a view whose columns are computed from several rows");
        }
    }
    Ok(())
}
