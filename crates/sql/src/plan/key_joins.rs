//! Joins one side of which has few rows: the other side is read by an index, for the keys of these rows alone.
//!
//! A side has few rows where it is read by an index, or has a LIMIT ([`Small`]). How many, nobody knows, so it is
//! found out while the join runs. A hash join has read all of its left side before it reads the right one: a
//! [`KeysExec`] on the left notes the keys that pass, and a scan on the right chooses its ranges by them
//! ([`crate::plan::scan`], invariant 3). The join itself stays as it is.
//!
//! 1. Rows of the right side without a row on the left that has their key change nothing in the answer. Joins that keep
//!    them for themselves, and those where a NULL among them counts (NOT IN), are left alone.
//! 2. That holds also below nodes that hand on rows each for itself, or by groups of the key ([`target`]).
//! 3. Keys are noted up to [`MOST_KEYS`] of up to [`MOST_ROWS`] rows, if none is long. Where there are more, the right
//!    side is read as a whole.
//! 4. Joins have the side with few rows on the left, if the other one can be read by keys ([`FewFirst`]).
use crate::plan::key_ranges::MOST_RANGES;
use crate::plan::scan::ScanExec;
use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Result, ScalarValue, internal_err};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{Stream, StreamExt, ready};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Keys that are noted: as many as there may be ranges.
const MOST_KEYS: usize = MOST_RANGES;

/// Rows whose keys are noted.
const MOST_ROWS: usize = 4 * MOST_KEYS;

/// Bytes of a key that is noted.
const LONGEST: usize = 1 << 10;

/// The keys of a join's left side.
#[derive(Debug, Default)]
pub(crate) struct Keys(Mutex<Known>);

#[derive(Debug, Default)]
enum Known {
    #[default]
    NotYet,
    /// Of each key the values, each once. NULL is none: it equals nothing.
    Few(Vec<Vec<ScalarValue>>),
    Many,
}

impl Keys {
    /// The values of a key. `None`: there are too many, or they are not known.
    pub(crate) fn few(&self, number: usize) -> Option<Vec<ScalarValue>> {
        match &*self.0.lock() {
            Known::Few(keys) => keys.get(number).cloned(),
            Known::NotYet | Known::Many => None,
        }
    }
}

/// Puts the side with few rows on the left (invariant 4). It comes before the rules that look at the order of rows.
#[derive(Debug)]
pub(crate) struct FewFirst;

impl PhysicalOptimizerRule for FewFirst {
    fn name(&self) -> &str {
        "few_first"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let mut small = Small::default();
        plan.transform_down(|node| {
            let Some(join) = node.downcast_ref::<HashJoinExec>() else { return Ok(Transformed::no(node)) };
            let turned = small.turned(join)?;
            let now = turned.as_ref().unwrap_or(&node);
            let now = now.downcast_ref::<HashJoinExec>().or_else(|| now.children().first()?.downcast_ref());
            if let Some(join) = now
                && small.is(join.left())
                && let Some(target) = target_of(join)
            {
                small.by_keys.push(address(target.scan(join.right())));
            }
            Ok(turned.map_or_else(|| Transformed::no(node.clone()), Transformed::yes))
        })
        .data()
    }
}

/// Has joins look for the keys of their left side.
#[derive(Debug)]
pub(crate) struct KeyJoins;

impl PhysicalOptimizerRule for KeyJoins {
    fn name(&self) -> &str {
        "key_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|node| {
            let made = node.downcast_ref::<HashJoinExec>().map(by_keys).transpose()?.flatten();
            Ok(made.map_or_else(|| Transformed::no(node.clone()), Transformed::yes))
        })
        .data()
    }
}

/// A join that looks for the keys of its left side; `None`: its right side cannot be read by them.
fn by_keys(join: &HashJoinExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if *join.partition_mode() != PartitionMode::CollectLeft || !Small::default().is(join.left()) {
        return Ok(None);
    }
    let Some(target) = target_of(join) else { return Ok(None) };
    let keys = Arc::new(Keys::default());
    let names: Vec<String> = join.on().iter().map(|(left, _)| name(left)).collect();
    let scan = target.scan(join.right()).downcast_ref::<ScanExec>();
    let Some(scan) = scan.and_then(|scan| scan.for_keys(&keys, &target.columns, &names)) else {
        return Ok(None);
    };
    let exprs = join.on().iter().map(|(left, _)| left.clone()).collect();
    let left: Arc<dyn ExecutionPlan> = Arc::new(KeysExec { input: join.left().clone(), exprs, keys });
    let right = replaced(join.right(), &target.path, Arc::new(scan))?;
    join.builder().with_new_children(vec![left, right])?.build_exec().map(Some)
}

/// What a key is called.
fn name(key: &Arc<dyn PhysicalExpr>) -> String {
    match (key.downcast_ref::<Column>(), key.downcast_ref::<CastExpr>()) {
        (Some(column), _) => column.name().replace('\0', ""),
        (None, Some(cast)) => name(cast.expr()),
        (None, None) => "key".to_owned(),
    }
}

fn address(plan: &Arc<dyn ExecutionPlan>) -> *const () {
    Arc::as_ptr(plan).cast()
}

/// Which parts of a plan have few rows, as far as that is seen.
#[derive(Default)]
struct Small {
    /// Scans that will be read by keys.
    by_keys: Vec<*const ()>,
}

impl Small {
    fn is(&self, plan: &Arc<dyn ExecutionPlan>) -> bool {
        if plan.fetch().is_some() || self.by_keys.contains(&address(plan)) {
            return true;
        }
        if let Some(scan) = plan.downcast_ref::<ScanExec>() {
            return scan.is_narrow();
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            let (left, right) = (|| self.is(join.left()), || self.is(join.right()));
            return match join.join_type() {
                JoinType::Inner | JoinType::LeftSemi | JoinType::RightSemi => left() || right(),
                JoinType::Left | JoinType::LeftAnti | JoinType::LeftMark => left(),
                JoinType::Right | JoinType::RightAnti | JoinType::RightMark => right(),
                JoinType::Full => left() && right(),
            };
        }
        let one_group = plan.downcast_ref::<AggregateExec>().is_some_and(|of| of.group_expr().is_true_no_grouping());
        let all = || plan.children().into_iter().all(|child| self.is(child));
        match plan.name() {
            "PlaceholderRowExec" | "EmptyExec" | "DataSourceExec" | "WorkTableExec" => true,
            "RecursiveQueryExec" => false,
            _ => one_group || !plan.children().is_empty() && all(),
        }
    }

    /// A join with its sides in the other order, where these are better.
    fn turned(&self, join: &HashJoinExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let may =
            matches!(join.join_type(), JoinType::Inner | JoinType::LeftSemi | JoinType::Right) && !join.null_aware;
        if !may || self.is(join.left()) || !self.is(join.right()) {
            return Ok(None);
        }
        let turned = join.swap_inputs(*join.partition_mode())?;
        let now = turned.downcast_ref::<HashJoinExec>().or_else(|| turned.children().first()?.downcast_ref());
        Ok(now.and_then(target_of).is_some().then_some(turned))
    }
}

/// Numbers of keys, and positions among a plan's columns.
type Columns = Vec<(usize, usize)>;

/// The scan that a join may read by the keys of its left side.
struct Target {
    /// Numbers of children, from the join's right side down.
    path: Vec<usize>,
    /// Numbers of keys, and the positions of the scan's columns that are compared with them.
    columns: Columns,
}

impl Target {
    fn scan<'p>(&self, right: &'p Arc<dyn ExecutionPlan>) -> &'p Arc<dyn ExecutionPlan> {
        self.path.iter().fold(right, |plan, child| plan.children()[*child])
    }
}

/// Invariant 1.
fn target_of(join: &HashJoinExec) -> Option<Target> {
    use JoinType::{Inner, Left, LeftAnti, LeftMark, LeftSemi, RightSemi};
    let leaves_out = matches!(join.join_type(), Inner | Left | LeftSemi | LeftAnti | LeftMark | RightSemi);
    if !leaves_out || join.null_aware || join.null_equality() != NullEquality::NullEqualsNothing {
        return None;
    }
    let schema = join.right().schema();
    let keys = join.on().iter().enumerate();
    target(join.right(), keys.filter_map(|(key, (_, right))| Some((key, column_of(right, &schema)?))).collect())
}

/// Invariant 2. `columns`: numbers of keys, and positions among the plan's columns.
fn target(plan: &Arc<dyn ExecutionPlan>, columns: Columns) -> Option<Target> {
    // Of the first rows, others would be the first.
    if columns.is_empty() || plan.fetch().is_some() {
        return None;
    }
    if plan.is::<ScanExec>() {
        return Some(Target { path: vec![], columns });
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let (left, right) = sides(join, columns);
        return below(plan, 0, left).or_else(|| below(plan, 1, right));
    }
    let input = plan.children().first()?.schema();
    let by = |exprs: &dyn Fn(usize) -> Option<Arc<dyn PhysicalExpr>>| -> Columns {
        let through = columns.iter().filter_map(|(key, at)| Some((*key, column_of(&exprs(*at)?, &input)?)));
        through.collect()
    };
    let columns = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        by(&|at| projection.expr().get(at).map(|item| item.expr.clone()))
    } else if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let groups = aggregate.group_expr();
        let at_once = matches!(aggregate.mode(), AggregateMode::Single | AggregateMode::SinglePartitioned);
        if !at_once || groups.has_grouping_set() || aggregate.limit_options().is_some() {
            return None;
        }
        by(&|at| groups.expr().get(at).map(|(expr, _)| expr.clone()))
    } else if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let through = |at: usize| filter.projection().as_ref().map_or(Some(at), |kept| kept.get(at).copied());
        columns.iter().filter_map(|(key, at)| Some((*key, through(*at)?))).collect()
    } else {
        match plan.name() {
            "SortExec" | "CooperativeExec" | "CoalesceBatchesExec" | "Padded" | "KeysExec" => columns,
            _ => return None,
        }
    };
    below(plan, 0, columns)
}

fn below(plan: &Arc<dyn ExecutionPlan>, child: usize, columns: Columns) -> Option<Target> {
    let mut target = target(plan.children().get(child)?, columns)?;
    target.path.insert(0, child);
    Some(target)
}

/// Columns of a join as those of its sides, where a side's rows may be left out without the others.
fn sides(join: &HashJoinExec, columns: Columns) -> (Columns, Columns) {
    use JoinType::{Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};
    let of_left = join.left().schema().fields().len();
    let (left, right, behind) = match join.join_type() {
        Inner => (true, true, of_left),
        Left => (true, false, of_left),
        Right => (false, true, of_left),
        LeftSemi | LeftAnti | LeftMark => (true, false, of_left),
        RightSemi | RightAnti | RightMark => (false, true, 0),
        JoinType::Full => (false, false, of_left),
    };
    let of_right = join.right().schema().fields().len();
    let (mut of_sides, projection) = ((vec![], vec![]), join.projection.as_ref());
    for (key, at) in columns {
        let Some(at) = projection.map_or(Some(at), |kept| kept.get(at).copied()) else { continue };
        if left && at < of_left {
            of_sides.0.push((key, at));
        } else if right && (behind..behind + of_right).contains(&at) {
            of_sides.1.push((key, at - behind));
        }
    }
    of_sides
}

/// The column that an expression is, or a wider integer that it becomes.
fn column_of(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<usize> {
    let width = |of: &DataType| match of {
        DataType::Int16 => Some(16),
        DataType::Int32 => Some(32),
        DataType::Int64 => Some(64),
        _ => None,
    };
    if let Some(column) = expr.downcast_ref::<Column>() {
        return Some(column.index());
    }
    let cast = expr.downcast_ref::<CastExpr>()?;
    let from = width(&cast.expr().data_type(schema).ok()?)?;
    if from <= width(cast.cast_type())? { column_of(cast.expr(), schema) } else { None }
}

/// A plan with another node at the end of the path.
pub(crate) fn replaced(
    plan: &Arc<dyn ExecutionPlan>,
    path: &[usize],
    with: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let [child, path @ ..] = path else { return Ok(with) };
    let mut children: Vec<Arc<dyn ExecutionPlan>> = plan.children().into_iter().cloned().collect();
    children[*child] = replaced(&children[*child], path, with)?;
    plan.clone().replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// Hands rows on, and notes their keys (invariant 3).
#[derive(Debug)]
struct KeysExec {
    input: Arc<dyn ExecutionPlan>,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    keys: Arc<Keys>,
}

impl DisplayAs for KeysExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeysExec")
    }
}

impl ExecutionPlan for KeysExec {
    fn name(&self) -> &'static str {
        "KeysExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expr in &self.exprs {
            if f(expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([input]) = <[_; 1]>::try_from(children) else { return internal_err!("KeysExec has one child") };
        Ok(Arc::new(KeysExec { input, exprs: self.exprs.clone(), keys: self.keys.clone() }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, task: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        // Those of a run before are none of this one.
        *self.keys.0.lock() = Known::NotYet;
        let found = Some(vec![FxHashSet::default(); self.exprs.len()]);
        let input = self.input.execute(partition, task)?;
        Ok(Box::pin(Noting { input, exprs: self.exprs.clone(), keys: self.keys.clone(), found, rows: 0, ended: false }))
    }
}

struct Noting {
    input: SendableRecordBatchStream,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    keys: Arc<Keys>,
    /// `None`: there are too many.
    found: Option<Vec<FxHashSet<ScalarValue>>>,
    rows: usize,
    ended: bool,
}

impl Noting {
    fn note(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows();
        let Some(mut found) = self.found.take().filter(|_| self.rows <= MOST_ROWS) else { return Ok(()) };
        for (expr, found) in self.exprs.iter().zip(&mut found) {
            let values = expr.evaluate(batch)?.into_array(batch.num_rows())?;
            for row in (0..values.len()).filter(|row| values.is_valid(*row)) {
                let key = ScalarValue::try_from_array(&values, row)?;
                if key.size() > LONGEST {
                    return Ok(());
                }
                found.insert(key);
            }
        }
        self.found = Some(found).filter(|found| found.iter().all(|keys| keys.len() <= MOST_KEYS));
        Ok(())
    }
}

impl Stream for Noting {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.input.poll_next_unpin(context));
        match &next {
            Some(Ok(batch)) => self.note(batch)?,
            Some(Err(_)) => {}
            None if self.ended => {}
            None => {
                self.ended = true;
                *self.keys.0.lock() = match self.found.take() {
                    Some(found) => Known::Few(found.into_iter().map(|keys| keys.into_iter().collect()).collect()),
                    None => Known::Many,
                };
            }
        }
        Poll::Ready(next)
    }
}

impl RecordBatchStream for Noting {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
