//! Subqueries that take something of the query around them and become no join: a node runs them for each row.
//!
//! 1. [`Apply`] hands its input's rows on, each with what the query within answers for it ([`Kind`]).
//! 2. The query within stays hidden from DataFusion's rules: they see the columns that it takes, as expressions of the
//!    node. In it these columns are `OuterReferenceColumn`s, by the names that they had when it was bound. No two
//!    columns of a statement have one name ([`crate::plan::bind`], invariant 1).
//! 3. The query is planned once, and the values are put into that plan before each run. A scan chooses then whether to
//!    read by an index ([`settled`]). Where a constant must stand, as in LIMIT, it is planned for each set of values.
//!
//! What becomes an `Apply`, and what DataFusion makes joins of: [`crate::plan::rules`], `applied` and `shapes` there.
//! How it runs: [`exec`]. Source: C. Galindo-Legaria and M. Joshi, "Orthogonal Optimization of Subqueries and
//! Aggregation" (SIGMOD 2001), section 1.3.
pub(crate) mod exec;
mod planning;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, Extension, Join, LogicalPlan, Subquery, UserDefinedLogicalNodeCore};
pub(crate) use planning::{Planning, Values, is_given, narrowed, put_in, settled, takes_values};
use std::any::Any;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What becomes of the rows of the query within.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    /// The value of its one row is a column; NULL where it has none.
    Value,
    /// Whether it has a row is a column.
    Exists,
    /// Each is joined with the row that it was run for. `padded`: a row without any is kept, with NULLs.
    Rows { padded: bool },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Apply {
    input: Arc<LogicalPlan>,
    query: Arc<LogicalPlan>,
    kind: Kind,
    /// Of the column that a value is.
    name: String,
    /// The columns that the query takes, as it calls them.
    taken: Vec<Column>,
    /// What they are in the input.
    values: Vec<Expr>,
    schema: DFSchemaRef,
    /// DataFusion's rules have been over the query.
    optimized: bool,
}

impl Apply {
    /// `name`: of the column that a value is.
    pub(crate) fn plan(input: LogicalPlan, query: LogicalPlan, kind: Kind, name: &str) -> Result<LogicalPlan> {
        let mut taken: Vec<Column> = vec![];
        for column in taken_by(&query) {
            if input.schema().has_column(&column) && !taken.contains(&column) {
                taken.push(column);
            }
        }
        let values = taken.iter().cloned().map(Expr::Column).collect();
        let (input, query) = (Arc::new(input), Arc::new(query));
        let schema = schema_of(&input, &query, kind, name)?;
        let node = Apply { input, query, kind, name: name.to_owned(), taken, values, schema, optimized: false };
        Ok(node.into_plan())
    }

    fn into_plan(self) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(self) })
    }

    /// The node, if the plan begins with one.
    pub(crate) fn of(plan: &LogicalPlan) -> Option<&Apply> {
        match plan {
            LogicalPlan::Extension(Extension { node }) => (node.as_any() as &dyn Any).downcast_ref::<Apply>(),
            _ => None,
        }
    }

    /// The query within.
    pub(crate) fn query(&self) -> &LogicalPlan {
        &self.query
    }

    /// Of what it is, for EXPLAIN.
    fn shown(&self) -> String {
        let what = match self.kind {
            Kind::Value => "value",
            Kind::Exists => "exists",
            Kind::Rows { padded: false } => "inner",
            Kind::Rows { padded: true } => "left",
        };
        let taken: Vec<String> = self.taken.iter().map(|column| column.flat_name().replace('\0', "")).collect();
        format!("{what} for each ({})", taken.join(", "))
    }
}

fn schema_of(input: &LogicalPlan, query: &LogicalPlan, kind: Kind, name: &str) -> Result<DFSchemaRef> {
    let mut fields: Vec<_> =
        input.schema().iter().map(|(relation, field)| (relation.cloned(), field.clone())).collect();
    match kind {
        Kind::Value => {
            let field = query.schema().field(0).as_ref().clone().with_name(name).with_nullable(true);
            fields.push((None, Arc::new(field)));
        }
        Kind::Exists => fields.push((None, Arc::new(Field::new(name, DataType::Boolean, false)))),
        Kind::Rows { padded } => fields.extend(query.schema().iter().map(|(relation, field)| {
            let field = field.as_ref().clone().with_nullable(padded || field.is_nullable());
            (relation.cloned(), Arc::new(field))
        })),
    }
    Ok(Arc::new(DFSchema::new_with_metadata(fields, input.schema().metadata().clone())?))
}

impl PartialOrd for Apply {
    fn partial_cmp(&self, other: &Apply) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for Apply {
    fn name(&self) -> &str {
        "Apply"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.values.clone()
    }

    /// A condition on the input's columns alone passes.
    #[expect(clippy::disallowed_types, reason = "the trait wants it, and nobody walks over it")]
    fn prevent_predicate_push_down_columns(&self) -> std::collections::HashSet<String> {
        self.schema.fields().iter().skip(self.input.schema().fields().len()).map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Apply: {}", self.shown())
    }

    fn with_exprs_and_inputs(&self, values: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Apply> {
        let Ok([input]) = <[LogicalPlan; 1]>::try_from(inputs) else { return internal_err!("an Apply has one input") };
        assert_eq!(values.len(), self.taken.len(), "a value for each column that is taken");
        let schema = schema_of(&input, &self.query, self.kind, &self.name)?;
        Ok(Apply { input: Arc::new(input), values, schema, ..self.clone() })
    }

    fn necessary_children_exprs(&self, output: &[usize]) -> Option<Vec<Vec<usize>>> {
        let width = self.input.schema().fields().len();
        Some(vec![output.iter().copied().filter(|at| *at < width).collect()])
    }
}

/// The columns of queries around it that a plan takes, at any depth; some perhaps more than once.
pub(crate) fn taken_by(plan: &LogicalPlan) -> Vec<Column> {
    let mut found = vec![];
    collect(plan, &mut found);
    found
}

fn collect(plan: &LogicalPlan, found: &mut Vec<Column>) {
    let within = |query: &LogicalPlan, has: &dyn Fn(&Column) -> bool, found: &mut Vec<Column>| {
        found.extend(taken_by(query).into_iter().filter(|column| !has(column)));
    };
    if let Some(apply) = Apply::of(plan) {
        within(&apply.query, &|column| apply.taken.contains(column), found);
    }
    if let LogicalPlan::Subquery(lateral) = plan {
        return collect(&lateral.subquery, found);
    }
    let below = match plan.inputs().as_slice() {
        [input] => input.schema().clone(),
        inputs => Arc::new(merge_schema(inputs)),
    };
    let visited = plan.apply_expressions(|expr| {
        expr.apply(|part| {
            match part {
                Expr::OuterReferenceColumn(_, column) => found.push(column.clone()),
                part => {
                    if let Some(query) = query_in(part) {
                        within(&query.subquery, &|column| below.has_column(column), found);
                    }
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })
    });
    visited.expect("nothing in it fails");
    match plan {
        LogicalPlan::Join(Join { left, right, .. }) => {
            collect(left, found);
            within(right, &|column| left.schema().has_column(column), found); // LATERAL
        }
        plan => plan.inputs().into_iter().for_each(|input| collect(input, found)),
    }
}

/// The query that an expression is or asks.
pub(crate) fn query_in(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(query)
        | Expr::Exists(Exists { subquery: query, .. })
        | Expr::InSubquery(InSubquery { subquery: query, .. })
        | Expr::SetComparison(SetComparison { subquery: query, .. }) => Some(query),
        _ => None,
    }
}

/// Whether something in a plan, within its [`Apply`]s too, is computed anew each time.
fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut volatile = super::rules::is_volatile(plan)?;
    plan.apply_with_subqueries(|node| {
        if let Some(apply) = Apply::of(node) {
            volatile |= is_volatile(&apply.query)?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(volatile)
}

/// What stands for a column of a query around.
type Given<'g> = &'g dyn Fn(&FieldRef, &Column) -> Option<Expr>;

/// A plan with expressions in the place of columns of queries around it.
fn with_given(plan: LogicalPlan, given: Given<'_>) -> Result<LogicalPlan> {
    let done = plan.transform_down_with_subqueries(|node| {
        let node = match Apply::of(&node) {
            Some(apply) => {
                let query = Arc::new(with_given(apply.query().clone(), given)?);
                Apply { query, ..apply.clone() }.into_plan()
            }
            None => node,
        };
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            if !expr.contains_outer() {
                return Ok(Transformed::no(expr));
            }
            let name = names.save(&expr);
            let done = expr.transform(|part| match part {
                Expr::OuterReferenceColumn(field, column) => Ok(match given(&field, &column) {
                    Some(value) => Transformed::yes(value),
                    None => Transformed::no(Expr::OuterReferenceColumn(field, column)),
                }),
                part => Ok(Transformed::no(part)),
            })?;
            Ok(done.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(done.data)
}

/// A plan with values in the place of columns of a query around it.
fn with_values(plan: &LogicalPlan, values: &BTreeMap<Column, ScalarValue>) -> Result<LogicalPlan> {
    with_given(plan.clone(), &|field, column| values.get(column).map(|value| literal(value.clone(), field)))
}

/// A value of a column.
fn literal(value: ScalarValue, field: &Field) -> Expr {
    let metadata = (!field.metadata().is_empty()).then(|| FieldMetadata::new_from_field(field));
    Expr::Literal(value, metadata)
}
