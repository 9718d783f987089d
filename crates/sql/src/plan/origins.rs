//! Where the columns of a result come from: the relation's OID and the column's number, as clients are told
//! (`getTableName` of JDBC, `ftable` of libpq).
//!
//! 1. A column has an origin where PostgreSQL says one: it is a column of a table or a view as it is, through queries
//!    in FROM, joins, WITH, groups and orders. What is computed has none, and neither have the columns of UNION and its
//!    kind, nor those of a recursive query.
//! 2. What is selected from a view is the view's.
//! 3. Origins are found in the plan as it was bound ([`of`]), because the optimizer's rules lose them. They travel as
//!    metadata of the whole schema ([`Origins::put`]): that of a field says something else.
use crate::values::field_type;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, JoinType, LogicalPlan};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Under which they are metadata: `oid.column`, with a space between them; 0.0 is none.
const ORIGINS: &str = "terrace.origins";

pub(crate) type Origin = Option<(u32, i16)>;

/// The relations of a plan whose columns are told, by their names in it: an OID, and the numbers of the columns.
pub(crate) type Relations = BTreeMap<String, Vec<Origin>>;

/// Of a result's columns, by position; `None`: of no column anything is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origins(Option<Arc<str>>);

impl Origins {
    pub(crate) fn new(columns: impl Iterator<Item = Origin>) -> Origins {
        let columns: Vec<Origin> = columns.collect();
        let text = |origin: &Origin| origin.map_or("0.0".to_owned(), |(oid, number)| format!("{oid}.{number}"));
        let known = columns.iter().any(Option::is_some);
        Origins(known.then(|| columns.iter().map(text).collect::<Vec<String>>().join(" ").into()))
    }

    /// Without the first columns.
    pub(crate) fn skip(&self, columns: usize) -> Origins {
        let rest = |all: &Arc<str>| all.split(' ').skip(columns).collect::<Vec<&str>>().join(" ").into();
        Origins(self.0.as_ref().map(rest))
    }

    pub(crate) fn put(&self, schema: SchemaRef) -> SchemaRef {
        let Some(text) = &self.0 else { return schema };
        let mut metadata = schema.metadata().clone();
        metadata.insert(ORIGINS.to_owned(), text.to_string());
        Arc::new(Schema::new_with_metadata(schema.fields().clone(), metadata))
    }

    /// Rows whose schema says them.
    pub(crate) fn told(&self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        match self.0 {
            None => rows,
            Some(_) => Box::pin(RecordBatchStreamAdapter::new(self.put(rows.schema()), rows)),
        }
    }

    /// As a schema has them.
    pub(crate) fn said(schema: &Schema) -> Origins {
        Origins(schema.metadata().get(ORIGINS).map(|text| text.as_str().into()))
    }
}

/// The relation's OID and the column's number of each column of a result; 0 where it comes from none.
pub fn origins(schema: &Schema) -> Vec<(u32, i16)> {
    let Origins(Some(text)) = Origins::said(schema) else { return vec![(0, 0); schema.fields().len()] };
    let origin = |one: &str| one.split_once('.').and_then(|(oid, at)| Some((oid.parse().ok()?, at.parse().ok()?)));
    let mut origins: Vec<(u32, i16)> = text.split(' ').map(|one| origin(one).unwrap_or_default()).collect();
    origins.resize(schema.fields().len(), (0, 0));
    origins
}

/// Those of a plan's columns.
pub(crate) fn of(plan: &LogicalPlan, relations: &Relations) -> Origins {
    match relations.is_empty() {
        true => Origins::default(),
        false => Origins::new(each(plan, relations).into_iter()),
    }
}

/// The same, one by one.
pub(crate) fn each(plan: &LogicalPlan, relations: &Relations) -> Vec<Origin> {
    (0..plan.schema().fields().len()).map(|at| origin(plan, at, relations)).collect()
}

/// That of one column (invariant 1).
fn origin(mut plan: &LogicalPlan, mut at: usize, relations: &Relations) -> Origin {
    loop {
        (plan, at) = match plan {
            LogicalPlan::TableScan(scan) => {
                let at = scan.projection.as_ref().map_or(Some(at), |shown| shown.get(at).copied())?;
                return *relations.get(scan.table_name.table())?.get(at)?;
            }
            LogicalPlan::SubqueryAlias(alias) => match relations.get(alias.alias.table()) {
                Some(view) => return *view.get(at)?,
                None => (&*alias.input, at),
            },
            LogicalPlan::Projection(of) => (&*of.input, column(of.expr.get(at)?, &of.input)?),
            LogicalPlan::Aggregate(of) => (&*of.input, column(grouped(&of.group_expr, at)?, &of.input)?),
            LogicalPlan::Distinct(Distinct::On(on)) => (&*on.input, column(on.select_expr.get(at)?, &on.input)?),
            LogicalPlan::Distinct(Distinct::All(input)) => (&**input, at),
            LogicalPlan::Filter(of) => (&*of.input, at),
            LogicalPlan::Sort(of) => (&*of.input, at),
            LogicalPlan::Limit(of) => (&*of.input, at),
            LogicalPlan::Subquery(of) => (&*of.subquery, at),
            LogicalPlan::Window(of) if at < of.input.schema().fields().len() => (&*of.input, at),
            LogicalPlan::Unnest(of) => {
                let from = *of.dependency_indices.get(at)?;
                let lists = of.list_type_columns.iter().any(|(list, _)| *list == from);
                if lists || of.struct_type_columns.contains(&from) {
                    return None;
                }
                (&*of.input, from)
            }
            LogicalPlan::Join(join) => {
                let left = join.left.schema().fields().len();
                match join.join_type {
                    // INTERSECT and EXCEPT.
                    JoinType::LeftSemi | JoinType::LeftAnti | JoinType::RightSemi | JoinType::RightAnti => return None,
                    _ if at < left => (&*join.left, at),
                    _ => (&*join.right, at - left),
                }
            }
            _ => return None,
        };
    }
}

/// The position of a column that an expression is.
fn column(expr: &Expr, input: &LogicalPlan) -> Option<usize> {
    match expr {
        Expr::Alias(alias) => column(&alias.expr, input),
        Expr::Column(column) => input.schema().maybe_index_of_column(column),
        // To the type that it has.
        Expr::Cast(cast) => {
            let of = field_type(&cast.expr.to_field(input.schema()).ok()?.1);
            column(&cast.expr, input).filter(|_| of.is_some() && of == field_type(&cast.field))
        }
        _ => None,
    }
}

/// A column of groups.
fn grouped(groups: &[Expr], at: usize) -> Option<&Expr> {
    match groups {
        [Expr::GroupingSet(sets)] => sets.distinct_expr().get(at).copied(),
        groups => groups.get(at),
    }
}
