//! Tables as DataFusion reads them: a provider, and the node that streams an engine scan into Arrow batches.
//!
//! 1. Nothing here is bound to a transaction: the stream finds it when it is polled first ([`StatementContext`]).
//! 2. Filters are only narrowed to key ranges, never dropped: DataFusion evaluates each of them again (`Inexact`), so a
//!    range may contain too much, never too little.
//! 3. A scan for a join that looks for few keys ([`crate::plan::key_joins`]) chooses its ranges once they are known.
//!    What it sees is settled when it begins, as of every scan.
//! 4. A *target* provider adds the row's address and version as hidden columns, for UPDATE and DELETE. A *given* one
//!    has the table's columns and reads not the table but the rows that the statement is given: RETURNING, CHECK,
//!    EXCLUDED.
use crate::error::tunnel;
use crate::plan::apply::{settled, takes_values};
use crate::plan::key_joins::Keys;
use crate::plan::key_ranges::{choose, has_order, usable};
use crate::transaction::StatementContext;
use crate::values::{ColumnBuilder, live_columns, table_schema};
use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Builder};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, DFSchemaRef, DataFusionError, Result, Statistics, internal_err};
use datafusion::datasource::source_as_provider;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use futures::stream;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Bound;
use std::pin::pin;
use std::sync::Arc;
use terrace_engine::{Begun, Datum, Index, IndexRange, RowBuf, RowView, Scan, ScanDirection, Scanner, Table, Version};
use terrace_env::yield_now;
use terrace_storage::{Reads, Rid, TxnId, UndoPtr, counting};

mod keyed;

use keyed::Keyed;

/// Rows read from the engine at a time.
const BATCH_ROWS: usize = 1024;

/// Hidden columns of a target, after the table's own. No name a user can write contains a NUL.
pub(crate) const RID: &str = "\0rid";
pub(crate) const WRITER: &str = "\0writer";
pub(crate) const UNDO: &str = "\0undo";

pub(crate) fn rid_to_u64(rid: Rid) -> u64 {
    (rid.page as u64) << 16 | rid.slot as u64
}
pub(crate) fn rid_from_u64(v: u64) -> Rid {
    Rid { page: (v >> 16) as u32, slot: v as u16 }
}

#[derive(Clone, Copy, Debug)]
enum Output {
    /// A column of the row, by its position there.
    Column(usize),
    Rid,
    Writer,
    Undo,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Table,
    /// And its number.
    Target(usize),
    Given,
}

#[derive(Debug)]
pub(crate) struct TableScan {
    table: Arc<Table>,
    schema: SchemaRef,
    outputs: Vec<Output>,
    role: Role,
}

impl TableScan {
    pub(crate) fn new(table: Arc<Table>) -> TableScan {
        let schema = table_schema(&table);
        let outputs = live_columns(&table).map(|(at, _)| Output::Column(at)).collect();
        TableScan { table, schema, outputs, role: Role::Table }
    }

    pub(crate) fn target(table: Arc<Table>) -> TableScan {
        let mut scan = TableScan::new(table);
        let mut fields = scan.schema.fields().to_vec();
        for (name, output) in [(RID, Output::Rid), (WRITER, Output::Writer), (UNDO, Output::Undo)] {
            fields.push(Arc::new(Field::new(name, ArrowType::UInt64, false)));
            scan.outputs.push(output);
        }
        scan.schema = Arc::new(Schema::new(fields));
        scan.role = Role::Target(0);
        scan
    }

    /// Another target, of that number.
    pub(crate) fn target_beside(table: Arc<Table>, number: usize) -> TableScan {
        TableScan { role: Role::Target(number), ..TableScan::target(table) }
    }

    /// With addresses; beside targets, which alone are replaced by one row.
    pub(crate) fn addressed(table: Arc<Table>) -> TableScan {
        TableScan { role: Role::Table, ..TableScan::target(table) }
    }

    pub(crate) fn given(table: Arc<Table>) -> TableScan {
        TableScan { role: Role::Given, ..TableScan::new(table) }
    }
}

/// Whether a node of a plan reads the rows of that table.
pub(crate) fn reads(scan: &datafusion::logical_expr::TableScan, table: &Table) -> bool {
    let Ok(provider) = source_as_provider(&scan.source) else { return false };
    let scan = (provider.as_ref() as &dyn Any).downcast_ref::<TableScan>();
    scan.is_some_and(|scan| scan.table.oid == table.oid && scan.role != Role::Given)
}

/// The user's table that a node of a plan reads, or reads given rows of.
pub(crate) fn table_read(scan: &datafusion::logical_expr::TableScan) -> Option<Arc<Table>> {
    let provider = source_as_provider(&scan.source).ok()?;
    (provider.as_ref() as &dyn Any).downcast_ref::<TableScan>().map(|scan| scan.table.clone())
}

/// Whether a condition can narrow what the node reads.
pub(crate) fn narrows(scan: &datafusion::logical_expr::TableScan, condition: &Expr) -> bool {
    let Ok(provider) = source_as_provider(&scan.source) else { return false };
    let scan = (provider.as_ref() as &dyn Any).downcast_ref::<TableScan>();
    scan.is_some_and(|scan| usable(&scan.table, condition))
}

#[async_trait]
impl TableProvider for TableScan {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let supports = |filter: &&Expr| match usable(&self.table, filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(supports).collect())
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (schema, outputs) = match projection {
            Some(columns) => {
                let outputs = columns.iter().map(|c| self.outputs[*c]).collect();
                (Arc::new(self.schema.project(columns)?), outputs)
            }
            None => (self.schema.clone(), self.outputs.clone()),
        };
        let late = Late::of(&self.table, filters)?.filter(|_| self.role != Role::Given);
        let now = if late.is_some() || self.role == Role::Given { &[] } else { filters };
        let scans = scans_of(&self.table, now);
        // A limit over a range that may contain too much would lose rows (invariant 2).
        let limit = limit.filter(|_| filters.is_empty());
        let scan = ScanExec::new(self.table.clone(), scans, schema, outputs, limit, self.role);
        Ok(Arc::new(ScanExec { late, filters: now.to_vec(), ..scan }))
    }
}

/// How the table is read under these conditions.
fn scans_of(table: &Table, filters: &[Expr]) -> Vec<Scan> {
    let ranges = choose(table, filters);
    ranges.map_or(vec![Scan::Full], |ranges| ranges.into_iter().map(Scan::Index).collect())
}

/// What a scan learns when it begins: conditions whose values are put in before each run.
#[derive(Clone, Debug)]
struct Late {
    filters: Vec<Expr>,
    /// Over which they are.
    schema: DFSchemaRef,
    /// The index, and the conditions, as they are shown.
    shown: Option<(String, String)>,
}

impl Late {
    fn of(table: &Table, filters: &[Expr]) -> Result<Option<Late>> {
        if !filters.iter().any(takes_values) {
            return Ok(None);
        }
        let schema = Arc::new(DFSchema::try_from(table_schema(table).as_ref().clone())?);
        let late = Late { filters: filters.to_vec(), schema, shown: None };
        let index = choose(table, &late.settled(true)?).and_then(|ranges| Some(ranges.first()?.index.name.clone()));
        let conditions: Vec<String> = filters.iter().map(|filter| filter.to_string()).collect();
        let conditions = conditions.join(" AND ").replace("()", "").replace('\0', "");
        Ok(Some(Late { shown: index.map(|index| (index, conditions)), ..late }))
    }

    fn scans(&self, table: &Table) -> Result<Vec<Scan>> {
        Ok(scans_of(table, &self.settled(false)?))
    }

    /// The conditions as they are now; `any`: with some values.
    fn settled(&self, any: bool) -> Result<Vec<Expr>> {
        self.filters.iter().map(|filter| settled(filter, &self.schema, any)).collect()
    }
}

#[derive(Debug)]
pub(crate) struct ScanExec {
    table: Arc<Table>,
    /// One after the other: the whole table, or ranges of one index in key order.
    scans: Vec<Scan>,
    /// They are chosen when it begins.
    late: Option<Late>,
    /// They are chosen when it is polled first.
    keyed: Option<Arc<Keyed>>,
    /// The conditions that were looked at for them.
    filters: Vec<Expr>,
    outputs: Vec<Output>,
    limit: Option<usize>,
    role: Role,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    /// Pages that its runs asked for.
    reads: Arc<Mutex<Reads>>,
}

impl ScanExec {
    /// Whether it reads a part of the table, or no table.
    pub(crate) fn is_narrow(&self) -> bool {
        self.role == Role::Given || self.index().is_some()
    }

    pub(crate) fn table_name(&self) -> &str {
        &self.table.name
    }

    /// The ranges of the index that it reads; none where it reads the table.
    fn ranges(&self) -> Vec<&IndexRange> {
        let range = |scan| match scan {
            &Scan::Full => None,
            Scan::Index(range) => Some(range),
        };
        self.scans.iter().filter_map(range).collect()
    }

    /// The index it reads, whether backward, and the ranges as a condition (empty: all of it).
    pub(crate) fn index(&self) -> Option<(&str, bool, String)> {
        let late = self.late.as_ref().and_then(|late| late.shown.as_ref());
        if let Some((index, conditions)) = late.or(self.keyed.as_ref().map(|keyed| &keyed.shown)) {
            return Some((index, false, conditions.clone()));
        }
        let ranges = self.ranges();
        let first = ranges.first()?;
        let backward = first.direction == ScanDirection::Backward;
        Some((&first.index.name, backward, conditions(&self.table, &ranges)))
    }

    /// The same scan for a join that looks for few keys. `columns`: numbers of keys, and the positions of the columns
    /// that they are compared with; `names`: what the keys are called. `None`: it reads a part of the table already, or
    /// no index has a column of these.
    pub(crate) fn for_keys(&self, keys: &Arc<Keys>, columns: &[(usize, usize)], names: &[String]) -> Option<ScanExec> {
        let narrow = self.keyed.is_some() || self.limit.is_some() || self.is_narrow();
        let keyed = if narrow { None } else { Keyed::of(self, keys, columns, names) };
        let (table, scans, outputs) = (self.table.clone(), self.scans.clone(), self.outputs.clone());
        let scan = ScanExec::new(table, scans, self.schema(), outputs, None, self.role);
        let (late, filters) = (self.late.clone(), self.filters.clone());
        Some(ScanExec { late, keyed: Some(Arc::new(keyed?)), filters, ..scan })
    }

    /// The first rows of the whole table in the order of these columns, by an index; for each whether downwards.
    pub(crate) fn in_order(&self, by: &[(usize, bool)], rows: usize) -> Option<ScanExec> {
        let narrow = self.keyed.is_some() || self.late.is_some() || self.limit.is_some() || self.is_narrow();
        if narrow || !self.filters.is_empty() || self.role != Role::Table || rows > keyed::most_keys(&self.table) {
            return None;
        }
        let column = |(at, down): &(usize, bool)| match self.outputs[*at] {
            Output::Column(column) if has_order(self.table.columns[column].data_type) => Some((column, *down)),
            _ => None,
        };
        let by: Vec<(usize, bool)> = by.iter().map(column).collect::<Option<_>>()?;
        let (_, down) = by.first()?;
        let leads = |index: &&Arc<Index>| {
            by.len() <= index.columns.len() && by.iter().zip(&index.columns).all(|(by, at)| *by == (*at, *down))
        };
        let index = self.table.indexes.iter().find(leads)?.clone();
        let direction = if *down { ScanDirection::Backward } else { ScanDirection::Forward };
        let scans = vec![Scan::Index(IndexRange { index, from: Bound::Unbounded, to: Bound::Unbounded, direction })];
        let (table, outputs) = (self.table.clone(), self.outputs.clone());
        Some(ScanExec::new(table, scans, self.schema(), outputs, Some(rows), self.role))
    }

    pub(crate) fn reads(&self) -> Reads {
        *self.reads.lock()
    }

    fn new(
        table: Arc<Table>,
        scans: Vec<Scan>,
        schema: SchemaRef,
        outputs: Vec<Output>,
        limit: Option<usize>,
        role: Role,
    ) -> ScanExec {
        assert!(!scans.is_empty(), "a scan reads the table, or a range of it at least");
        assert_eq!(schema.fields().len(), outputs.len(), "an output for each column");
        let ordering = match scans.first() {
            // The newest version of one row is in any order.
            Some(Scan::Index(range)) => key_order(range, &schema, &outputs),
            _ => None,
        };
        let equivalences = EquivalenceProperties::new_with_orderings(schema, ordering);
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        ScanExec {
            table,
            scans,
            late: None,
            keyed: None,
            filters: vec![],
            outputs,
            limit,
            role,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            reads: Arc::default(),
        }
    }
}

/// Ranges shown of many.
const SHOWN: usize = 10;

/// Ranges in SQL, e.g. `a IN (1, 2)`.
fn conditions(table: &Table, ranges: &[&IndexRange]) -> String {
    if let [one] = ranges {
        return condition(table, one);
    }
    let more = if ranges.len() > SHOWN { format!(", ... ({} values)", ranges.len()) } else { String::new() };
    let ranges = &ranges[..ranges.len().min(SHOWN)];
    let single = |range: &&IndexRange| match (&range.from, &range.to) {
        (Bound::Included(from), Bound::Included(to)) if from.len() == 1 && from == to => Some(shown(&from[0])),
        _ => None,
    };
    if let Some(values) = ranges.iter().map(single).collect::<Option<Vec<_>>>() {
        let column = &table.columns[ranges[0].index.columns[0]].name;
        return format!("{column} IN ({}{more})", values.join(", "));
    }
    let all: Vec<String> = ranges.iter().map(|range| format!("({})", condition(table, range))).collect();
    format!("{}{more}", all.join(" OR "))
}

/// A value in SQL.
fn shown(datum: &Datum) -> String {
    match datum {
        Datum::Text(_)
        | Datum::Bytea(_)
        | Datum::Date(_)
        | Datum::Timestamp(_)
        | Datum::Timestamptz(_)
        | Datum::Time(_)
        | Datum::Interval(_)
        | Datum::Uuid(_)
        | Datum::Json(_)
        | Datum::Jsonb(_)
        | Datum::Array(_)
        | Datum::Record(_)
        | Datum::Enum(..) => {
            format!("'{}'", datum.to_string().replace('\'', "''"))
        }
        number => number.to_string(),
    }
}

/// A range in SQL, e.g. `a = 1 AND b >= 2 AND b < 5`.
fn condition(table: &Table, range: &IndexRange) -> String {
    let bound = |bound: &Bound<Vec<Datum>>, inclusive: &'static str, exclusive: &'static str| match bound {
        Bound::Included(values) => (values.clone(), inclusive),
        Bound::Excluded(values) => (values.clone(), exclusive),
        Bound::Unbounded => (vec![], inclusive),
    };
    let (from, at_least) = bound(&range.from, ">=", ">");
    let (to, at_most) = bound(&range.to, "<=", "<");
    let name = |key: usize| table.columns[range.index.columns[key]].name.as_str();
    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    // Equal bounds that exclude themselves are no equality.
    let same =
        if from.len() == to.len() && same == from.len() && (at_least, at_most) != (">=", "<=") { 0 } else { same };
    let mut parts: Vec<String> = (0..same).map(|key| format!("{} = {}", name(key), shown(&from[key]))).collect();
    for (values, operator) in [(from, at_least), (to, at_most)] {
        match values.len() - same.min(values.len()) {
            0 => {}
            1 => parts.push(format!("{} {operator} {}", name(same), shown(&values[same]))),
            _ => {
                let names: Vec<&str> = (same..values.len()).map(name).collect();
                let values: Vec<String> = values[same..].iter().map(shown).collect();
                parts.push(format!("({}) {operator} ({})", names.join(", "), values.join(", ")));
            }
        }
    }
    parts.join(" AND ")
}

/// The order of an index scan, as far as its key columns are in the output.
fn key_order(range: &IndexRange, schema: &SchemaRef, outputs: &[Output]) -> Option<LexOrdering> {
    let backward = range.direction == ScanDirection::Backward;
    let options = datafusion::arrow::compute::SortOptions { descending: backward, nulls_first: backward };
    let position = |key: &usize| outputs.iter().position(|o| matches!(o, Output::Column(c) if c == key));
    let keys = range.index.columns.iter().map_while(position);
    LexOrdering::new(keys.map(|at| PhysicalSortExpr {
        expr: Arc::new(Column::new(schema.field(at).name(), at)) as Arc<dyn PhysicalExpr>,
        options,
    }))
}

impl ScanExec {
    /// Rows that are read later come from this moment's snapshot.
    fn opened(&self, context: &StatementContext) -> Result<Source> {
        if let Some(keyed) = &self.keyed {
            let filters = self.late.as_ref().map_or_else(|| Ok(self.filters.clone()), |late| late.settled(false))?;
            return Ok(Source::Begun(context.try_begin(&self.table).map(Box::new), keyed.clone(), filters));
        }
        let scans = match &self.late {
            Some(late) => late.scans(&self.table)?,
            None => self.scans.clone(),
        };
        Ok(match context.try_scanners(&self.table, &scans) {
            Some(scanners) => Source::Scanners(scanners),
            None => Source::Unopened(scans),
        })
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ranges().as_slice() {
            [] => write!(f, "Scan: table={}", self.table.name)?,
            [first, rest @ ..] => {
                write!(f, "IndexScan: table={}, index={}", self.table.name, first.index.name)?;
                write!(f, ", from={:?}, to={:?}", first.from, first.to)?;
                if !rest.is_empty() {
                    write!(f, ", and {} more", rest.len())?;
                }
            }
        }
        if let Some(limit) = self.limit {
            write!(f, ", limit={limit}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &'static str {
        "ScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("a scan has no children") }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, task: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        assert_eq!(partition, 0, "a scan has one partition");
        let context = StatementContext::of(&task)?;
        let one = context.targets.iter().find(|one| self.role == Role::Target(one.target));
        let source = match (one, self.role) {
            (Some(one), _) => Source::Row(Some((one.rid, one.row.clone(), one.version))),
            (None, Role::Given) => Source::Given(0),
            _ => self.opened(&context)?,
        };
        let reading = Reading {
            context,
            table: self.table.clone(),
            schema: self.schema(),
            outputs: self.outputs.clone(),
            left: self.limit.unwrap_or(usize::MAX),
            full: false,
            source,
            found: VecDeque::new(),
            metrics: BaselineMetrics::new(&self.metrics, partition),
            reads: self.reads.clone(),
        };
        let batches = stream::try_unfold(reading, |mut reading| async move {
            let batch = reading.next().await?;
            Ok(batch.map(|batch| (batch, reading)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }

    /// What ANALYZE found, where the whole table is read.
    fn statistics_from_inputs(&self, _inputs: &[Arc<Statistics>], _args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        if let ([Scan::Full], None, Some(found)) = (self.scans.as_slice(), self.limit, self.table.statistics)
            && self.role != Role::Given
        {
            statistics.num_rows = Precision::Inexact(found.rows as usize);
        }
        Ok(Arc::new(statistics))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

enum Source {
    Unopened(Vec<Scan>),
    /// It is for a join that looks for keys, which are not known yet.
    Begun(Option<Box<Begun>>, Arc<Keyed>, Vec<Expr>),
    /// Those that are left, the one that is read first.
    Scanners(VecDeque<Scanner>),
    Row(Option<(Rid, RowBuf, Version)>),
    /// The next of the rows given.
    Given(usize),
}

/// At most `max` rows; none at the end.
async fn next_rows(scanners: &mut VecDeque<Scanner>, max: usize) -> terrace_engine::Result<Vec<FoundRow>> {
    let mut rows = vec![];
    while rows.len() < max
        && let Some(scanner) = scanners.front_mut()
    {
        let more = scanner.next_batch(max - rows.len()).await?;
        match (more.is_empty(), rows.is_empty()) {
            (true, _) => drop(scanners.pop_front()),
            (false, true) => rows = more,
            (false, false) => rows.extend(more),
        }
    }
    assert!(rows.len() <= max, "a scanner answers no more than it is asked for");
    Ok(rows)
}

type FoundRow = (Rid, RowBuf, Version);

struct Reading {
    context: Arc<StatementContext>,
    table: Arc<Table>,
    schema: SchemaRef,
    outputs: Vec<Output>,
    /// Rows still wanted.
    left: usize,
    /// The last batch was as large as one gets.
    full: bool,
    source: Source,
    /// Rows that come before those of the source.
    found: VecDeque<FoundRow>,
    metrics: BaselineMetrics,
    reads: Arc<Mutex<Reads>>,
}

impl Reading {
    async fn next(&mut self) -> Result<Option<RecordBatch>, DataFusionError> {
        self.context.cancel.check().map_err(tunnel)?;
        if self.full && self.context.gives_way {
            yield_now().await;
        }
        // Waiting for devices included.
        let time = self.metrics.elapsed_compute().clone();
        let _timer = time.timer();
        if self.left == 0 {
            return Ok(None);
        }
        self.open().await?;
        let most = BATCH_ROWS.min(self.left);
        let rows = match &mut self.source {
            _ if !self.found.is_empty() => self.found.drain(..most.min(self.found.len())).collect(),
            Source::Scanners(scanners) => {
                let mut reads = Reads::default();
                let rows = counting(&mut reads, pin!(next_rows(scanners, most))).await;
                *self.reads.lock() += reads;
                rows.map_err(tunnel)?
            }
            Source::Row(row) => row.take().into_iter().collect(),
            Source::Given(next) => {
                let rest = self.context.given.iter().skip(*next).take(most);
                let rows: Vec<_> = rest.map(|row| (Rid::default(), row.clone(), version_from(0, 0))).collect();
                *next += rows.len();
                rows
            }
            Source::Unopened(_) | Source::Begun(..) => unreachable!("opened above"),
        };
        if rows.is_empty() {
            return Ok(None);
        }
        assert!(rows.len() <= self.left, "no more rows than are wanted");
        self.left -= rows.len();
        self.full = rows.len() == BATCH_ROWS;
        self.metrics.record_output(rows.len());
        Ok(Some(self.batch(&rows)?))
    }

    async fn open(&mut self) -> Result<()> {
        let scanners = match &mut self.source {
            Source::Unopened(scans) => self.context.scanners(&self.table, scans).await?,
            Source::Begun(begun, keyed, filters) => {
                let begun = match begun.take() {
                    Some(begun) => *begun,
                    None => self.context.begin(&self.table).await?,
                };
                match keyed.scans(&self.table, filters).filter(|_| begun.may_use_indexes()) {
                    Some(ranges) => self.looked_up(&begun, ranges).await?,
                    None => [begun.scan(Scan::Full)].into(),
                }
            }
            _ => return Ok(()),
        };
        self.source = Source::Scanners(scanners);
        Ok(())
    }

    /// What is left of these ranges behind some rows that are found already; the whole table where they have too many.
    async fn looked_up(&mut self, begun: &Begun, ranges: Vec<Scan>) -> Result<VecDeque<Scanner>> {
        let mut left: VecDeque<Scanner> = ranges.into_iter().map(|range| begun.scan(range)).collect();
        let (mut reads, mut bytes) = (Reads::default(), 0);
        while bytes < keyed::MOST_BYTES {
            self.context.cancel.check().map_err(tunnel)?;
            let rows = counting(&mut reads, pin!(next_rows(&mut left, BATCH_ROWS))).await.map_err(tunnel)?;
            if rows.is_empty() {
                break;
            }
            bytes += rows.iter().map(|(_, row, _)| row.0.len()).sum::<usize>();
            self.found.extend(rows);
            if self.found.len() > keyed::most_rows(&self.table) {
                self.found.clear();
                left = [begun.scan(Scan::Full)].into();
                break;
            }
        }
        *self.reads.lock() += reads;
        Ok(left)
    }

    /// Column by column: one type test per column and batch would need a macro per type; the builder's match is cheap.
    fn batch(&self, rows: &[FoundRow]) -> Result<RecordBatch> {
        let numbers = |of: &dyn Fn(&FoundRow) -> u64| -> ArrayRef {
            let mut builder = UInt64Builder::with_capacity(rows.len());
            rows.iter().for_each(|row| builder.append_value(of(row)));
            Arc::new(builder.finish())
        };
        let output = |output: &Output| match output {
            Output::Column(at) => column(&self.table, *at, rows.iter().map(|(_, row, _)| row)),
            Output::Rid => numbers(&|(rid, _, _)| rid_to_u64(*rid)),
            Output::Writer => numbers(&|(_, _, version)| version.writer.0),
            Output::Undo => numbers(&|(_, _, version)| version.undo.0),
        };
        debug_assert!(!rows.is_empty(), "a batch has rows");
        let columns = self.outputs.iter().map(output).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

/// One column of rows.
fn column<'r>(table: &Table, at: usize, rows: impl ExactSizeIterator<Item = &'r RowBuf>) -> ArrayRef {
    let mut builder = ColumnBuilder::new(table.columns[at].data_type, rows.len());
    rows.for_each(|row| builder.push(RowView { table, bytes: &row.0 }.get(at)));
    builder.finish()
}

/// The columns of rows, as a scan answers them.
pub(crate) fn arrays(table: &Table, rows: &[RowBuf]) -> Vec<ArrayRef> {
    live_columns(table).map(|(at, _)| column(table, at, rows.iter())).collect()
}

pub(crate) fn version_from(writer: u64, undo: u64) -> Version {
    Version { writer: TxnId(writer), undo: UndoPtr(undo) }
}
