//! What a client is told of a statement before it runs: the types of its parameters, and the columns that it returns.
use crate::error::{from_datafusion, undefined_table};
use crate::parse::{sequence_calls, type_cast_parameters, type_parameter};
use crate::pgcatalog::SessionInfo;
use crate::plan::bind::{Binding, Tree};
use crate::plan::changes::{
    check_count, delete_query, delete_target, insert_columns, insert_target, literal, plain_values, update_query,
    update_target, values_query,
};
use crate::plan::naming::shown_schema;
use crate::plan::planner::{Planner, parameters};
use crate::statement::lock_rows::within::refuse_correlated;
use crate::statement::run::LazyState;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{Expr, Insert, Query, Statement};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use terrace_engine::{Catalog, DataType, Result, Table};

/// What a client is told of a statement before it runs.
#[derive(Default)]
pub(crate) struct Described {
    pub(crate) parameters: Vec<DataType>,
    /// The array types of those that are arrays, by number from 1.
    pub(crate) arrays: BTreeMap<usize, u32>,
    pub(crate) columns: Option<SchemaRef>,
}

impl Described {
    pub(crate) fn of(columns: SchemaRef) -> Described {
        Described { columns: Some(columns), ..Described::default() }
    }

    fn planned(plan: &LogicalPlan, types: &[Option<DataType>], columns: Option<SchemaRef>) -> Result<Described> {
        let arrays = crate::functions::arrays::parameter_types(plan).map_err(from_datafusion)?;
        let parameters = parameters(plan, types)?;
        let among = |number: &usize| (1..=parameters.len()).contains(number);
        debug_assert!(arrays.keys().all(among), "arrays are among the parameters");
        Ok(Described { parameters, arrays, columns })
    }
}

/// What statements are described with.
pub(crate) struct Sources<'s> {
    pub(crate) state: &'s LazyState<'s>,
    pub(crate) catalog: &'s Arc<Catalog>,
    pub(crate) info: &'s SessionInfo,
    pub(crate) tree: Option<&'s Tree>,
}

impl Sources<'_> {
    pub(crate) fn planner(&self, target: Option<Arc<Table>>) -> Planner<'_> {
        Planner {
            state: self.state.get(),
            catalog: self.catalog,
            info: self.info,
            unusable_indexes: BTreeSet::new(),
            target,
            text: self.tree.map(Tree::text),
            numbers: None,
        }
    }

    pub(crate) fn table(&self, name: &str) -> Result<Arc<Table>> {
        self.catalog.table(name).cloned().ok_or_else(|| undefined_table(name))
    }

    async fn describe_query(
        &self,
        tree: Option<&Tree>,
        query: &Query,
        types: &[Option<DataType>],
    ) -> Result<Described> {
        let mut query = Box::new(query.clone());
        query.locks.clear();
        let query = match sequence_calls::calls(&query)?.len() {
            n if n > 0 && tree.is_none_or(|tree| tree.binding == Binding::Never) => {
                sequence_calls::replaced(&query, &vec![0; n])?
            }
            _ => Statement::Query(query),
        };
        let plan = self.planner(None).plan_either(tree, query, types).await?.plan;
        // As it will be after type coercion.
        let typed = crate::plan::planner::typed(self.state.get(), plan.clone())?;
        Described::planned(&plan, types, Some(shown_schema(typed.schema().as_arrow())))
    }

    /// UPDATE and DELETE, which change the rows of a query.
    async fn describe_change(
        &self,
        table: Arc<Table>,
        query: Statement,
        condition: &Option<Expr>,
        types: &[Option<DataType>],
    ) -> Result<Described> {
        let plan = self.planner(Some(table)).plan(query, types).await?.plan;
        refuse_correlated(&self.planner(None), condition, types).await?;
        Described::planned(&plan, types, None)
    }

    async fn describe_insert(&self, insert: &Insert, mut types: Vec<Option<DataType>>) -> Result<Described> {
        let table = self.table(&insert_target(insert)?)?;
        let columns = insert_columns(insert, &table)?;
        if let Some(query) = crate::statement::conflict::update_query(insert, &table, &mut types)? {
            let plan = self.planner(Some(table.clone())).plan(query, &types).await?.plan;
            crate::statement::conflict::type_parameters(&plan, &mut types)?;
        }
        let Some(source) = insert.source.as_deref() else { return Ok(Described::default()) };
        let Some(rows) = plain_values(source) else {
            let query = Statement::Query(Box::new(source.clone()));
            let plan = self.planner(None).plan_either(self.tree, query, &types).await?.plan;
            return Described::planned(&plan, &types, None);
        };
        let mut others = vec![];
        for row in rows {
            check_count(row.len(), &columns, !insert.columns.is_empty())?;
            for (value, at) in row.iter().zip(&columns) {
                let column = &table.columns[*at];
                if !type_parameter(value, column.data_type, &mut types)
                    && !crate::plan::changes::is_default(value)
                    && literal(value, column).is_none()
                    && sequence_calls::old_call_of(value).is_none()
                {
                    others.push(value.clone());
                }
            }
        }
        if others.is_empty() && types.iter().all(Option::is_some) {
            return Ok(Described { parameters: types.into_iter().flatten().collect(), ..Described::default() });
        }
        let plan = self.planner(None).plan(values_query(others.into_iter())?, &types).await?.plan;
        Described::planned(&plan, &types, None)
    }

    /// Parameters and result columns of a query or a change.
    pub(crate) async fn describe(&self, ast: &Statement, types: &[Option<DataType>]) -> Result<Described> {
        let described = self.describe_source(ast, types).await?;
        let returned = self.describe_returning(ast, &described.parameters).await?;
        Ok(Described { columns: described.columns.or(returned), ..described })
    }

    async fn describe_source(&self, ast: &Statement, types: &[Option<DataType>]) -> Result<Described> {
        let mut types = types.to_vec();
        type_cast_parameters(ast, &mut types);
        match ast {
            Statement::Query(query) => self.describe_query(self.tree, query, &types).await,
            Statement::Update(update) => {
                let target = update_target(update)?;
                let table = self.table(&target.name)?;
                let (query, assigned) = update_query(update, &target, &table)?;
                for ((_, value), at) in crate::plan::changes::assignments(&update.assignments)?.iter().zip(&assigned) {
                    type_parameter(value, table.columns[*at].data_type, &mut types);
                }
                self.describe_change(table, query, &update.selection, &types).await
            }
            Statement::Delete(delete) => {
                let target = delete_target(delete)?;
                let table = self.table(&target.name)?;
                let query = delete_query(delete, &target, &table);
                self.describe_change(table, query, &delete.selection, &types).await
            }
            Statement::Insert(insert) => self.describe_insert(insert, types).await,
            _ => Ok(Described::default()),
        }
    }
}
