//! Long conditions stay flat.
//!
//! 1. The ANDs of a condition are a balanced tree, as the binder makes them, after each of DataFusion's rules: what
//!    walks the tree recurses as deep as the logarithm of how many there are.
//! 2. The parts keep their order, and nothing names them: aliases of them are left out.
//! 3. A rule may build the deep tree, and copy and drop it, before this can mend it: it has stack for as many levels.
//!
//! Upstream: `conjunction` makes a tree of ANDs as deep as it has parts, each the left side of the next. Most of what
//! walks it finds a stack for that, but `expr_contains` of the simplifier does not. It looks at the whole left side of
//! each AND, too, which takes time with the square of the parts.
use crate::plan::resolve::joined;
use crate::stack::on_stack;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, Operator};

/// ANDs below each other that are left as they are.
const DEEP: usize = 32;

/// ANDs that a level of the stack has room for.
const IN_LEVEL: usize = 64;

/// How far below the node that it is given a rule puts new conditions.
const LEVELS: usize = 3;

/// Invariant 1, of a plan that a rule has changed.
pub(super) fn flattened(changed: Transformed<LogicalPlan>) -> Result<Transformed<LogicalPlan>> {
    if !changed.transformed || !has_deep(&changed.data, LEVELS) {
        return Ok(changed);
    }
    changed.map_data(|plan| plan.transform_up(|node| Ok(flat(node))).map(|flat| flat.data))
}

/// Invariant 3: does a rule's step at this node, with the stack that its conditions may take.
pub(super) fn with_stack<T>(plan: LogicalPlan, step: impl FnOnce(LogicalPlan) -> T) -> T {
    match ands(&plan, LEVELS) {
        few if few <= DEEP => step(plan),
        many => on_stack(many.div_ceil(IN_LEVEL), || step(plan)),
    }
}

/// The ANDs of the conditions that a rule may join at this node.
fn ands(plan: &LogicalPlan, levels: usize) -> usize {
    let own = match plan {
        LogicalPlan::Filter(filter) => Some(&filter.predicate),
        LogicalPlan::Join(join) => join.filter.as_ref(),
        _ => None,
    };
    let (mut left, mut count) = (Vec::from_iter(own), 0);
    while let Some(next) = left.pop() {
        if let Expr::BinaryExpr(BinaryExpr { left: first, op: Operator::And, right }) = next {
            left.extend([&**first, &**right]);
            count += 1;
        }
    }
    let below = plan.inputs().into_iter().filter(|_| levels > 0);
    count + below.map(|input| ands(input, levels - 1)).sum::<usize>()
}

fn has_deep(plan: &LogicalPlan, levels: usize) -> bool {
    let own = match plan {
        LogicalPlan::Filter(filter) => is_deep(&filter.predicate),
        LogicalPlan::Join(join) => join.filter.as_ref().is_some_and(is_deep),
        _ => false,
    };
    own || levels > 0 && plan.inputs().into_iter().any(|input| has_deep(input, levels - 1))
}

fn is_deep(mut condition: &Expr) -> bool {
    for _ in 0..DEEP {
        match condition {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, .. }) => condition = left,
            _ => return false,
        }
    }
    true
}

fn flat(node: LogicalPlan) -> Transformed<LogicalPlan> {
    match node {
        LogicalPlan::Filter(filter) if is_deep(&filter.predicate) => {
            let predicate = all_of(parts(filter.predicate)).expect("a deep one has parts");
            Transformed::yes(LogicalPlan::Filter(Filter::new(predicate, filter.input)))
        }
        LogicalPlan::Join(mut join) if join.filter.as_ref().is_some_and(is_deep) => {
            join.filter = join.filter.and_then(|condition| all_of(parts(condition)));
            Transformed::yes(LogicalPlan::Join(join))
        }
        node => Transformed::no(node),
    }
}

/// What is joined by AND, without recursion: the tree may be a deep one.
pub(super) fn parts(condition: Expr) -> Vec<Expr> {
    let (mut left, mut found) = (vec![condition], vec![]);
    while let Some(next) = left.pop() {
        match next {
            Expr::BinaryExpr(BinaryExpr { left: first, op: Operator::And, right }) => left.extend([*right, *first]),
            Expr::Alias(alias) => left.push(*alias.expr),
            part => found.push(part),
        }
    }
    found
}

/// Joined by AND, as a balanced tree; `None`: there is nothing.
pub(super) fn all_of(parts: impl IntoIterator<Item = Expr>) -> Option<Expr> {
    let parts: Vec<Expr> = parts.into_iter().collect();
    (!parts.is_empty()).then(|| joined(parts, Operator::And))
}
