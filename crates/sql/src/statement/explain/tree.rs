//! A physical plan as a tree of nodes in PostgreSQL's words.
//!
//! DataFusion's nodes that only pass batches on are left out; what has no PostgreSQL name keeps its own.
use super::columns::{self, Join};
use crate::plan::apply::exec::ApplyExec;
use crate::plan::scan::ScanExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use std::collections::BTreeMap;
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
    /// Its columns, if they are shown.
    pub(super) output: Vec<String>,
    pub(super) join: Option<&'static str>,
    /// What it is to the node above it.
    pub(super) role: Option<&'static str>,
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
    &["CooperativeExec", "CoalesceBatchesExec", "CoalescePartitionsExec", "BufferExec", "KeysExec", "PiecesExec"];

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

/// Makes the nodes of a plan.
pub(super) struct Tree {
    /// With what they did.
    analyze: bool,
    /// With their columns.
    verbose: bool,
    /// How often each table was met.
    met: BTreeMap<String, usize>,
}

impl Tree {
    pub(super) fn new(analyze: bool, verbose: bool) -> Tree {
        Tree { analyze, verbose, met: BTreeMap::new() }
    }

    pub(super) fn node(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Node {
        let children: Vec<&Arc<dyn ExecutionPlan>> = plan.children();
        if PASSING.contains(&plan.name())
            && let [child] = children.as_slice()
        {
            return self.node(child);
        }
        let scan = plan.downcast_ref::<ScanExec>();
        let mut node = match scan {
            Some(scan) => scan_node(scan, self.analyze),
            None => other(plan, self.verbose),
        };
        if self.analyze {
            let metrics = plan.metrics().unwrap_or_default();
            let rows = metrics.output_rows().unwrap_or(0) as u64;
            node.actual = Some(Actual { rows, nanos: metrics.elapsed_compute().unwrap_or(0) as u64 });
        }
        node.children = children.into_iter().map(|child| self.node(child)).collect();
        if self.verbose {
            let inputs: Vec<&[String]> = node.children.iter().map(|child| child.output.as_slice()).collect();
            node.output = match scan {
                None => columns::of(plan, &inputs),
                Some(scan) => {
                    let called = self.met(scan.table_name());
                    if called != scan.table_name() {
                        node.on = format!("{} {called}", node.on);
                    }
                    columns::of_table(plan, &called)
                }
            };
        }
        give_roles(&mut node, columns::join(plan));
        if let Some(query) = plan.downcast_ref::<ApplyExec>().and_then(ApplyExec::shown) {
            // It is planned anew for each set of values.
            let query = Tree::new(false, self.verbose).node(query);
            node.children.push(Node { role: Some("SubPlan"), ..query });
        }
        if self.verbose && !self.analyze { folded(plan, node) } else { node }
    }

    /// What a table is called that is met once more.
    fn met(&mut self, table: &str) -> String {
        let times = self.met.entry(table.to_owned()).or_default();
        *times += 1;
        if *times == 1 { table.to_owned() } else { format!("{table}_{}", *times - 1) }
    }
}

/// What the node's children are to it.
fn give_roles(node: &mut Node, join: Option<Join>) {
    let first = match (node.kind.as_str(), join) {
        ("Append", _) => "Member",
        (_, Some(Join { keeps_right: true, .. })) => "Inner",
        _ => "Outer",
    };
    let second = if first == "Inner" { "Outer" } else { "Inner" };
    for (at, child) in node.children.iter_mut().enumerate() {
        child.role = Some(if at == 0 || first == "Member" { first } else { second });
    }
    node.join = join.map(|join| join.kind);
}

/// As PostgreSQL has it: a projection is a part of the node below it, and so is the condition of a scan or a join.
fn folded(plan: &Arc<dyn ExecutionPlan>, mut node: Node) -> Node {
    let takes_filters = |node: &Node| {
        let is_scan = node.kind.ends_with("Scan") || node.kind == "Index Scan Backward";
        (is_scan || node.join.is_some()) && node.details.iter().all(|(name, _)| *name != "Filter")
    };
    let projects = plan.is::<ProjectionExec>();
    if !(projects || plan.is::<FilterExec>() && node.children.iter().all(takes_filters)) {
        return node;
    }
    let Some(mut below) = node.children.pop() else { return node };
    below.output = node.output;
    if !projects {
        below.details.append(&mut node.details);
    }
    Node { role: None, ..below }
}

/// A node of a statement that is no query.
pub(super) fn modifying(verb: &str, table: &str, child: Option<Node>) -> Node {
    let node = plain(verb, child.into_iter().collect());
    Node { on: format!(" on {table}"), relation: Some(table.into()), ..node }
}

/// A node that has no table.
pub(super) fn plain(kind: &str, mut children: Vec<Node>) -> Node {
    children.iter_mut().for_each(|child| child.role = Some("Outer"));
    Node {
        kind: kind.to_owned(),
        on: String::new(),
        relation: None,
        index: None,
        output: vec![],
        join: None,
        role: None,
        details: vec![],
        actual: None,
        reads: None,
        children,
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
    Node { on, relation: Some(table), index, details, reads, ..plain(kind, vec![]) }
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
        "ProjectionExec" => None,
        _ if verbose => Some("Details"),
        _ => None,
    };
    let text = if verbose { text } else { without_positions(&text) };
    let details = label.filter(|_| !text.is_empty()).map(|label| (label, text)).into_iter().collect();
    let kind = known.unwrap_or_else(|| name.strip_suffix("Exec").unwrap_or(name).to_owned());
    Node { details, ..plain(&kind, vec![]) }
}

/// Columns without their positions in the input: `v@1 = 5` is `v = 5`.
pub(super) fn without_positions(text: &str) -> String {
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
