//! The description of a statement that a client gets before it runs: the types of its parameters, and the columns that
//! it returns.
use crate::error::{from_datafusion, unsupported};
use crate::parse::constants::constant;
use crate::parse::relation;
use crate::parse::sequence_calls::call_of;
use crate::pgcatalog::SessionInfo;
use crate::plan::bind::Tree;
use crate::plan::bind::over::{Over, Part, Wanted};
use crate::plan::naming::shown_schema;
use crate::plan::planner::{Planned, Planner, parameters};
use crate::plan::returned::Returned;
use crate::statement::changes::{
    alone_over, assigned, called, check_filled, check_identities, check_width, delete_over, inserted_columns,
    plain_values, update_over, with_inside, with_whole_columns,
};
use crate::statement::conflict::{arbiters, conflict_over};
use crate::statement::insert::settle_items;
use crate::statement::lock_rows::refuse_shape;
use crate::statement::lock_rows::within::{refuse_correlated, without_locks};
use crate::statement::returning::Returning;
use crate::statement::run::LazyState;
use crate::statement::within::{changed_by, changing_with};
use crate::through::{Called, meant};
use crate::values::parameter_type;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::logical_expr::LogicalPlan;
use std::collections::BTreeSet;
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::{Catalog, ColumnDef, DataType, Result, Table};
use terrace_grammar::statement::{
    ConflictAction, Delete, Expr, ExprKind, Ident, Insert, Name, Query, Statement, Update,
};
use terrace_storage::ObjectId;

/// The description of a statement.
#[derive(Default)]
pub(crate) struct Described {
    pub(crate) parameters: Vec<DataType>,
    pub(crate) columns: Option<SchemaRef>,
}

impl Described {
    pub(crate) fn of(columns: SchemaRef) -> Described {
        Described { columns: Some(columns), ..Described::default() }
    }

    fn planned(plan: &LogicalPlan, types: &[Option<DataType>], columns: Option<SchemaRef>) -> Result<Described> {
        Ok(Described { parameters: parameters(plan, types)?, columns })
    }
}

/// Everything that is needed to describe statements.
pub(crate) struct Sources<'s> {
    pub(crate) state: &'s LazyState<'s>,
    pub(crate) catalog: &'s Arc<Catalog>,
    pub(crate) info: &'s SessionInfo,
    pub(crate) tree: Option<&'s Tree>,
    /// The changes within the statement's WITH.
    pub(crate) parts: &'s [Returned],
}

impl Sources<'_> {
    pub(crate) fn planner(&self) -> Planner<'_> {
        Planner {
            state: self.state.get(),
            catalog: self.catalog,
            info: self.info,
            unusable_indexes: BTreeSet::new(),
            text: self.tree.map(Tree::text),
            numbers: None,
            parts: self.parts,
        }
    }

    /// The table that a statement changes, by its name or a view's; and what the statement calls it.
    fn aimed(&self, target: &Name, alias: Option<&Ident>, right: Rights) -> Result<(Arc<Table>, Called)> {
        let name = relation(target)?;
        self.info.permit_lookup(self.catalog, &name)?;
        let (table, through) = meant(self.catalog, &name, right)?;
        Ok((table, Called { through, ..called(target, alias) }))
    }

    fn describe_query(&self, query: &Query, types: &[Option<DataType>]) -> Result<Described> {
        let planner = self.planner();
        let Planned { plan, origins, .. } = match query.locking.is_empty() {
            true => planner.plan_tree(query, types)?,
            false => planner.plan_tree(&Query { locking: vec![], ..query.clone() }, types)?,
        };
        if !query.locking.is_empty() {
            refuse_shape(query, &plan)?;
        }
        // The type that it will have after type coercion.
        let typed = crate::plan::planner::typed(self.state.get(), plan.clone())?;
        let columns = origins.put(shown_schema(typed.schema().as_arrow()));
        Described::planned(&plan, types, Some(columns))
    }

    /// UPDATE and DELETE, which change the rows of a query.
    fn describe_change(
        &self,
        over: &Over<'_>,
        condition: Option<&Expr>,
        types: &[Option<DataType>],
    ) -> Result<Described> {
        let planner = self.planner();
        let plan = planner.plan_over(over, types)?.plan;
        refuse_correlated(&planner, condition, types)?;
        Described::planned(&plan, types, None)
    }

    fn describe_insert(&self, insert: &Insert, mut types: Vec<Option<DataType>>) -> Result<Described> {
        let insert = &*with_inside(insert)?;
        let (table, called) = self.aimed(&insert.target, insert.alias.as_ref(), Rights::INSERT)?;
        let insert = &*called.insert(insert, &table)?;
        let insert = &*with_whole_columns(insert, &table)?;
        let columns = inserted_columns(&insert.columns, (&table, &called))?;
        let planner = self.planner();
        if let Some(conflict) = &insert.conflict {
            arbiters(conflict, &table)?;
            if let ConflictAction::Update { set, filter } = &conflict.action {
                let assigned = assigned(set, &table)?;
                let over = conflict_over((&table, &called), insert.with.as_ref(), filter.as_ref(), &assigned);
                note_types(&planner.plan_over(&over, &types)?.plan, &mut types)?;
            }
        }
        let Some(source) = &insert.source else { return Ok(Described::default()) };
        let Some(rows) = plain_values(source) else {
            return self.describe_source((insert, source), (&table, &columns), types);
        };
        let mut others = vec![];
        for row in rows {
            check_width(row.len(), &columns, !insert.columns.is_empty(), (&table, &called))?;
            for (value, at) in row.iter().zip(&columns) {
                let column = &table.columns[*at];
                let open = !matches!(value.kind, ExprKind::Default);
                if open && constant(value, column).is_none() && call_of(value).is_none() {
                    others.push(Wanted::Value { column, value });
                }
            }
        }
        check_filled(insert, &table, &columns, rows)?;
        if others.is_empty() && types.iter().all(Option::is_some) {
            return Ok(Described { parameters: types.into_iter().flatten().collect(), ..Described::default() });
        }
        let over = alone_over(&table, &called, Part::Values, others);
        Described::planned(&planner.plan_over(&over, &types)?.plan, &types, None)
    }

    /// A query whose rows are inserted.
    fn describe_source(
        &self,
        (insert, source): (&Insert, &Query),
        (table, columns): (&Table, &[usize]),
        mut types: Vec<Option<DataType>>,
    ) -> Result<Described> {
        let mut described = self.describe_query(source, &types)?;
        let width = described.columns.as_ref().map_or(0, |columns| columns.fields().len());
        check_identities(insert, table, columns.get(..width).unwrap_or(columns), None)?;
        let columns: Vec<&ColumnDef> = columns.iter().map(|at| &table.columns[*at]).collect();
        if settle_items(source, (width, &columns), &described.parameters, &mut types)
            && let Ok(settled) = self.describe_query(source, &types)
        {
            described = settled;
        }
        Ok(Described { columns: None, ..described })
    }

    /// Parameters and result columns of a query or a change, and of those in other statements.
    pub(crate) fn describe(&self, statement: &Statement, types: &[Option<DataType>]) -> Result<Described> {
        match changing_with(statement).filter(|_| self.parts.is_empty()) {
            None => self.describe_whole(statement, types),
            Some(with) => {
                let mut types = types.to_vec();
                let parts = self.describe_parts(with, &mut types)?;
                Sources { parts: &parts, ..*self }.describe_whole(statement, &types)
            }
        }
    }

    fn describe_whole(&self, statement: &Statement, types: &[Option<DataType>]) -> Result<Described> {
        match statement {
            Statement::Query(query) => self.describe_query(query, types),
            Statement::Declare(declare) => self.describe_query(&declare.query, types),
            Statement::CreateTableAs(create) => self.describe_query(&create.query, types),
            Statement::Insert(insert) => {
                let described = self.describe_insert(insert, types.to_vec())?;
                let target = self.aimed(&insert.target, insert.alias.as_ref(), Rights::INSERT)?;
                let changed = changed_by(statement, self.catalog)?;
                self.returning((&target.0, &target.1), Returning::of(&insert.returning), &changed, described)
            }
            Statement::Update(update) => self.describe_update(update, &changed_by(statement, self.catalog)?, types),
            Statement::Delete(delete) => self.describe_delete(delete, &changed_by(statement, self.catalog)?, types),
            _ => Ok(Described::default()),
        }
    }

    fn describe_update(
        &self,
        update: &Update,
        changed: &BTreeSet<ObjectId>,
        types: &[Option<DataType>],
    ) -> Result<Described> {
        let (table, called) = self.aimed(&update.target, update.alias.as_ref(), Rights::UPDATE)?;
        let update = &*called.update(update, &table)?;
        let assigned = assigned(&update.set, &table)?;
        let filter = update.filter.as_ref().map(without_locks);
        let over = update_over(update, (&table, &called), filter.as_ref(), &assigned);
        let described = self.describe_change(&over, update.filter.as_ref(), types)?;
        let returning = Returning { items: &update.returning, with: update.with.as_ref(), from: &update.from };
        self.returning((&table, &called), returning, changed, described)
    }

    fn describe_delete(
        &self,
        delete: &Delete,
        changed: &BTreeSet<ObjectId>,
        types: &[Option<DataType>],
    ) -> Result<Described> {
        let (table, called) = self.aimed(&delete.target, delete.alias.as_ref(), Rights::DELETE)?;
        let filter = delete.filter.as_ref().map(without_locks);
        let over = delete_over(delete, (&table, &called), filter.as_ref());
        let described = self.describe_change(&over, delete.filter.as_ref(), types)?;
        let returning = Returning { items: &delete.returning, with: delete.with.as_ref(), from: &delete.using };
        self.returning((&table, &called), returning, changed, described)
    }

    /// With the columns of RETURNING.
    fn returning(
        &self,
        target: (&Arc<Table>, &Called),
        returning: Returning<'_>,
        changed: &BTreeSet<ObjectId>,
        described: Described,
    ) -> Result<Described> {
        let columns = self.describe_returning(target, returning, changed, &described.parameters)?;
        Ok(Described { columns, ..described })
    }
}

/// Notes the types that a plan gives its parameters.
fn note_types(plan: &LogicalPlan, types: &mut Vec<Option<DataType>>) -> Result<()> {
    for (id, field) in plan.get_parameter_fields().map_err(from_datafusion)? {
        let number = id.strip_prefix('$').and_then(|n| n.parse::<usize>().ok());
        let (Some(number), Some(field)) = (number.filter(|n| (1..=65_535).contains(n)), field) else { continue };
        if types.len() < number {
            types.resize(number, None);
        }
        let unknown = || unsupported(format!("a parameter of type {}", field.data_type()));
        types[number - 1].get_or_insert(parameter_type(&field).ok_or_else(unknown)?);
        assert!(types.len() <= 65_535, "the protocol has no more parameters");
    }
    Ok(())
}
