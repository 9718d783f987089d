//! RETURNING beside FROM or USING: columns of the rows that a changed row was joined with.
//!
//! 1. The plan of the change answers those of them that the list names, behind the new values ([`Wanted::Beside`]).
//! 2. When the rows are changed, the list is bound over the same source, in whose place the rows are put as they are
//!    now, each with these columns: what the list names is found under the same names.
use super::over::Wanted;
use super::scope::{Clause, Scope};
use super::{Binder, Result};
use crate::plan::origins;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::catalog::MemTable;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DataFusionError, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use std::collections::BTreeSet;
use std::sync::Arc;
use terrace_grammar::statement::Item;

impl Binder<'_> {
    /// The positions of the columns that the items name, behind the first `own` ones of the source; all of them where a
    /// query within an item may name them.
    pub(super) fn beside_named<'i>(
        &self,
        items: impl IntoIterator<Item = &'i Item>,
        own: usize,
        scope: &Scope<'_>,
    ) -> Result<BTreeSet<usize>> {
        let (mut titles, mut exprs) = (vec![], vec![]);
        scope.within(Clause::Returning, || {
            items.into_iter().try_for_each(|item| self.wanted(&Wanted::Item(item), scope, &mut titles, &mut exprs))
        })?;
        let (mut named, mut queries) = (BTreeSet::new(), false);
        for expr in &exprs {
            expr.apply(|expr| {
                match expr {
                    Expr::Column(column) => named.extend(scope.schema.maybe_index_of_column(column)),
                    Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => {
                        queries = true;
                    }
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        let all = own..scope.schema.fields().len();
        Ok(all.filter(|at| queries || named.contains(at)).collect())
    }

    /// The rows that are given, as columns of the source at these positions.
    pub(super) fn stood_beside(
        &self,
        source: &LogicalPlan,
        positions: impl Iterator<Item = usize>,
        given: &[RecordBatch],
    ) -> Result<LogicalPlan> {
        let positions: Vec<usize> = positions.collect();
        let has_all = given.iter().all(|batch| batch.num_columns() == positions.len());
        assert!(has_all, "the change has answered what the list names");
        let schema = source.schema();
        let field = |(number, at): (usize, &usize)| -> Field {
            let field = schema.field(*at).as_ref().clone().with_name(number.to_string());
            // Of the type that it has come to be in the plan of the change.
            match given.first() {
                Some(batch) => field.with_data_type(batch.column(number).data_type().clone()),
                None => field,
            }
        };
        let fields: Vec<Field> = positions.iter().enumerate().map(field).collect();
        let told = Arc::new(Schema::new(fields));
        let batch = |batch: &RecordBatch| {
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let made = RecordBatch::try_new_with_options(told.clone(), batch.columns().to_vec(), &options);
            made.map_err(DataFusionError::from)
        };
        let batches = given.iter().map(batch).collect::<std::result::Result<Vec<RecordBatch>, DataFusionError>>()?;
        let table = MemTable::try_new(told, vec![batches])?;
        let name = self.relation_name("returned");
        let origins = origins::each(source, &self.origins.borrow());
        self.origins.borrow_mut().insert(name.clone(), positions.iter().map(|at| origins[*at]).collect());
        let name = TableReference::bare(name);
        let columns = positions.iter().enumerate().map(|(number, at)| {
            let (relation, field) = schema.qualified_field(*at);
            let own = Expr::Column(Column::new(Some(name.clone()), number.to_string()));
            own.alias_qualified(relation.cloned(), field.name())
        });
        let columns: Vec<Expr> = columns.collect();
        let plan = LogicalPlanBuilder::scan(name.clone(), provider_as_source(Arc::new(table)), None)?;
        Ok(plan.project(columns)?.build()?)
    }
}
