//! A physical plan as a tree of nodes in PostgreSQL's words.
//!
//! DataFusion's nodes that only pass batches on are left out; what has no PostgreSQL name keeps its own.
use crate::plan::apply::exec::ApplyExec;
use crate::plan::scan::ScanExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use std::sync::Arc;
use terrace_storage::Reads;

/// What a node did when it ran.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Actual {
    pub(super) rows: u64,
    /// Of the node alone, without its children.
    pub(super) nanos: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    /// E.g. `Index Scan`.
    pub(super) kind: String,
    /// E.g. ` using t_pkey on t`.
    pub(super) on: String,
    pub(super) relation: Option<String>,
    pub(super) index: Option<String>,
    /// Names and texts, e.g. a filter.
    pub(super) details: Vec<(&'static str, String)>,
    /// Where it has run.
    pub(super) actual: Option<Actual>,
    /// Pages that a scan asked for.
    pub(super) reads: Option<Reads>,
    pub(super) children: Vec<Node>,
}

/// Nodes that a reader need not see.
const PASSING: &[&str] =
    &["CooperativeExec", "CoalesceBatchesExec", "CoalescePartitionsExec", "BufferExec", "PiecesExec"];

/// PostgreSQL's names of DataFusion's nodes.
const NAMES: &[(&str, &str)] = &[
    ("ApplyExec", "Apply"),
    ("AggregateExec", "Aggregate"),
    ("BoundedWindowAggExec", "WindowAgg"),
    ("CrossJoinExec", "Nested Loop"),
    ("DataSourceExec", "Values Scan"),
    ("EmptyExec", "Result"),
    ("FilterExec", "Filter"),
    ("GlobalLimitExec", "Limit"),
    ("HashJoinExec", "Hash Join"),
    ("LocalLimitExec", "Limit"),
    ("NestedLoopJoinExec", "Nested Loop"),
    ("PlaceholderRowExec", "Result"),
    ("ProjectionExec", "Project"),
    ("RecursiveQueryExec", "Recursive Union"),
    ("SortExec", "Sort"),
    ("SortMergeJoinExec", "Merge Join"),
    ("SortPreservingMergeExec", "Gather Merge"),
    ("StreamingTableExec", "System View Scan"),
    ("UnionExec", "Append"),
    ("WindowAggExec", "WindowAgg"),
    ("WorkTableExec", "WorkTable Scan"),
];

/// `analyze`: with what the nodes did.
pub(super) fn tree(plan: &Arc<dyn ExecutionPlan>, analyze: bool, verbose: bool) -> Node {
    let children: Vec<&Arc<dyn ExecutionPlan>> = plan.children();
    if PASSING.contains(&plan.name())
        && let [child] = children.as_slice()
    {
        return tree(child, analyze, verbose);
    }
    let mut node = match plan.downcast_ref::<ScanExec>() {
        Some(scan) => scan_node(scan, analyze),
        None => other(plan, verbose),
    };
    if analyze {
        let metrics = plan.metrics().unwrap_or_default();
        let rows = metrics.output_rows().unwrap_or(0) as u64;
        node.actual = Some(Actual { rows, nanos: metrics.elapsed_compute().unwrap_or(0) as u64 });
    }
    node.children = children.into_iter().map(|child| tree(child, analyze, verbose)).collect();
    if let Some(query) = plan.downcast_ref::<ApplyExec>().and_then(ApplyExec::shown) {
        // It is planned anew for each set of values.
        node.children.push(tree(query, false, verbose));
    }
    node
}

/// A node of a statement that is no query.
pub(super) fn modifying(verb: &str, table: &str, child: Option<Node>) -> Node {
    Node {
        kind: verb.into(),
        on: format!(" on {table}"),
        relation: Some(table.into()),
        index: None,
        details: vec![],
        actual: None,
        reads: None,
        children: child.into_iter().collect(),
    }
}

fn scan_node(scan: &ScanExec, analyze: bool) -> Node {
    let table = scan.table_name().to_owned();
    let (kind, on, index, details) = match scan.index() {
        None => ("Seq Scan", format!(" on {table}"), None, vec![]),
        Some((index, backward, condition)) => {
            let kind = if backward { "Index Scan Backward" } else { "Index Scan" };
            let details = if condition.is_empty() { vec![] } else { vec![("Index Cond", format!("({condition})"))] };
            (kind, format!(" using {index} on {table}"), Some(index.to_owned()), details)
        }
    };
    let reads = analyze.then(|| scan.reads());
    Node { kind: kind.into(), on, relation: Some(table), index, details, actual: None, reads, children: vec![] }
}

fn other(plan: &Arc<dyn ExecutionPlan>, verbose: bool) -> Node {
    let name = plan.name();
    let known = NAMES.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| (*ours).to_owned());
    let line = DisplayableExecutionPlan::new(plan.as_ref()).one_line().to_string();
    let text = line.split_once(':').map_or("", |(_, text)| text).trim().replace('\0', "");
    let label = match name {
        "ApplyExec" => Some("SubPlan"),
        "FilterExec" => Some("Filter"),
        "SortExec" | "SortPreservingMergeExec" => Some("Sort Key"),
        name if name.ends_with("JoinExec") => Some("Join"),
        "AggregateExec" => Some("Group"),
        name if name.ends_with("LimitExec") => Some("Rows"),
        _ if verbose => Some("Output"),
        _ => None,
    };
    let text = if verbose { text } else { without_positions(&text) };
    let details = label.filter(|_| !text.is_empty()).map(|label| (label, text)).into_iter().collect();
    let kind = known.unwrap_or_else(|| name.strip_suffix("Exec").unwrap_or(name).to_owned());
    Node { kind, on: String::new(), relation: None, index: None, details, actual: None, reads: None, children: vec![] }
}

/// Columns without their positions in the input: `v@1 = 5` is `v = 5`.
fn without_positions(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let position = c == '@' && out.ends_with(|p: char| p.is_alphanumeric() || p == '_' || p == ')');
        if position && chars.peek().is_some_and(char::is_ascii_digit) {
            while chars.peek().is_some_and(char::is_ascii_digit) {
                chars.next();
            }
            continue;
        }
        out.push(c);
    }
    out
}
