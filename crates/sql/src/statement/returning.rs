//! RETURNING: what INSERT, UPDATE and DELETE answer.
//!
//! The statement is carried out whole, then its list is evaluated by DataFusion over the rows as they became (deleted
//! ones as they were). The list may name the target's columns; those of other tables in FROM or USING it may not yet
//! (0A000).
use crate::error::{from_datafusion, unsupported};
use crate::parse::{fold, object_name, template};
use crate::plan::changes::{delete_target, insert_alias, insert_target, update_target};
use crate::plan::naming;
use crate::plan::naming::shown_schema;
use crate::plan::planner::GIVEN;
use crate::statement::describe::Sources;
use crate::statement::outcome::{Done, command};
use crate::statement::run::Run;
use crate::values::live_columns;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, SelectItem, SetExpr, Statement, TableFactor, TableWithJoins, UpdateTableFromKind, Visit,
    Visitor,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use terrace_engine::{Catalog, DataType, Datum, EngineError, Result, RowBuf, Table};

/// What a statement that changes rows has done.
pub(crate) struct Changed {
    pub(crate) count: usize,
    returned: Option<SendableRecordBatchStream>,
}

impl Changed {
    pub(crate) fn done(self, verb: &str) -> Done {
        match self.returned {
            Some(rows) => Done::Rows(rows),
            None => Done::Command(command(format!("{verb} {}", self.count))),
        }
    }
}

/// `SELECT <items> FROM <given> AS <alias>`.
pub(crate) fn given_query(alias: &Ident, items: &[SelectItem]) -> Result<Statement> {
    let mut query = template(&format!("SELECT 1 FROM x AS {alias}"))?;
    let SetExpr::Select(select) = query.body.as_mut() else { unreachable!("the template is a SELECT") };
    select.projection = items.to_vec();
    if let TableFactor::Table { name, .. } = &mut select.from[0].relation {
        *name = ObjectName::from(vec![Ident::with_quote('"', GIVEN)]);
    }
    naming::name_columns(&mut query.body);
    Ok(Statement::Query(query))
}

/// The list is evaluated row by row.
fn refuse_aggregates(plan: &LogicalPlan) -> Result<()> {
    let mut found = None;
    let visited = plan.apply(|node| {
        match node {
            LogicalPlan::Aggregate(_) => found = Some(("42803", "aggregate functions are not allowed in RETURNING")),
            LogicalPlan::Window(_) => found = Some(("42P20", "window functions are not allowed in RETURNING")),
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    });
    visited.map_err(from_datafusion)?;
    found.map_or(Ok(()), |(state, message)| Err(EngineError::new(state, message)))
}

impl Run<'_> {
    pub(crate) async fn changed(
        &self,
        table: &Arc<Table>,
        alias: &Ident,
        returning: Option<&[SelectItem]>,
        count: usize,
        rows: Vec<Vec<Datum>>,
    ) -> Result<Changed> {
        let Some(items) = returning else { return Ok(Changed { count, returned: None }) };
        assert_eq!(rows.len(), count, "a row to return for each that was changed");
        let plan = self.plan(&given_query(alias, items)?, Some(table)).await?;
        let rows = rows.iter().map(|row| RowBuf::encode(table, row)).collect::<Result<Vec<RowBuf>>>()?;
        let returned = self.stream_given(self.physical(&plan).await?, None, Arc::new(rows))?;
        Ok(Changed { count, returned: Some(returned) })
    }
}

/// Whether the statement reads other tables beside its target.
fn has_others(ast: &Statement) -> bool {
    match ast {
        Statement::Update(update) => update.from.is_some(),
        Statement::Delete(delete) => delete.using.is_some(),
        _ => false,
    }
}

/// `*` stands for the columns of the other tables, too.
fn refuse_others(ast: &Statement, items: &[SelectItem]) -> Result<()> {
    match has_others(ast) && items.iter().any(|item| matches!(item, SelectItem::Wildcard(_))) {
        true => Err(unsupported("RETURNING * beside FROM or USING (name the target's columns)")),
        false => Ok(()),
    }
}

/// The tables that a statement reads beside its target, as they are written.
fn others(ast: &Statement) -> &[TableWithJoins] {
    match ast {
        Statement::Update(update) => match &update.from {
            Some(UpdateTableFromKind::BeforeSet(tables) | UpdateTableFromKind::AfterSet(tables)) => tables,
            None => &[],
        },
        Statement::Delete(delete) => delete.using.as_deref().unwrap_or_default(),
        _ => &[],
    }
}

/// A bare name of a column that another table has, too. 42702
fn refuse_ambiguous(ast: &Statement, items: &[SelectItem], target: &Table, catalog: &Catalog) -> Result<()> {
    let factors = others(ast).iter().flat_map(|t| t.joins.iter().map(|join| &join.relation).chain([&t.relation]));
    let tables = factors.filter_map(|factor| match factor {
        TableFactor::Table { name, .. } => catalog.table(&object_name(name).ok()?),
        _ => None,
    });
    let names = |table| live_columns(table).map(|(_, column)| column.name.clone());
    let others: BTreeSet<String> = tables.flat_map(|table| names(table)).collect();
    let twice: BTreeSet<String> = names(target).filter(|name| others.contains(name)).collect();
    struct Bare<'n>(&'n BTreeSet<String>);
    impl Visitor for Bare<'_> {
        type Break = EngineError;

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<EngineError> {
            match expr {
                Expr::Identifier(name) if self.0.contains(&fold(name)) => {
                    let message = format!("column reference \"{}\" is ambiguous", fold(name));
                    ControlFlow::Break(EngineError::new("42702", message))
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    match items.iter().try_for_each(|item| item.visit(&mut Bare(&twice))) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

impl Sources<'_> {
    /// The columns of a statement's RETURNING.
    pub(crate) async fn describe_returning(
        &self,
        ast: &Statement,
        parameters: &[DataType],
    ) -> Result<Option<SchemaRef>> {
        let (name, alias, items) = match ast {
            Statement::Insert(insert) => {
                let name = insert_target(insert)?;
                let alias = insert_alias(insert, &name);
                (name, alias, &insert.returning)
            }
            Statement::Update(update) => {
                let target = update_target(update)?;
                (target.name, target.alias, &update.returning)
            }
            Statement::Delete(delete) => {
                let target = delete_target(delete)?;
                (target.name, target.alias, &delete.returning)
            }
            _ => return Ok(None),
        };
        let Some(items) = items else { return Ok(None) };
        refuse_others(ast, items)?;
        let table = self.table(&name)?;
        refuse_ambiguous(ast, items, &table, self.catalog)?;
        let planner = self.planner(Some(table));
        let types: Vec<Option<DataType>> = parameters.iter().copied().map(Some).collect();
        let planned = planner.plan(given_query(&alias, items)?, &types).await.map_err(|error| match error.state.0 {
            "42703" | "42P01" if has_others(ast) => unsupported(format!("RETURNING what the target has not ({error})")),
            _ => error,
        })?;
        if !planned.tables.is_empty() {
            // It would have to see what the statement saw, not what it did.
            return Err(unsupported("a subquery over a table in RETURNING"));
        }
        let plan = planned.plan;
        refuse_aggregates(&plan)?;
        let used = plan.get_parameter_types().map_err(from_datafusion)?;
        if used.keys().any(|id| id.trim_start_matches('$').parse::<usize>().is_ok_and(|n| n > parameters.len())) {
            return Err(unsupported("a parameter that only RETURNING has"));
        }
        let typed = crate::plan::planner::typed(self.state.get(), plan)?;
        Ok(Some(shown_schema(typed.schema().as_arrow())))
    }
}
