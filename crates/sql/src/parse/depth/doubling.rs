//! What planning doubles with each level of nesting is bounded before it is planned.
//!
//! 1. Of subqueries in expressions, WITH queries, BETWEENs, conditions of CASE and arguments of COALESCE and NULLIF
//!    (but for the last) at most [`NESTED_MAX`] stand in each other.
//! 2. The WITH queries of a statement, each copied to wherever it is read, come to at most [`COPIES_MAX`] readings.
//!
//! Upstream: `LogicalPlan::check_invariants` looks at each subquery from each query around it, and `RelationVisitor` at
//! each WITH query twice. The simplifier makes `a >= b AND a <= c` of BETWEEN, and `(x AND y) OR (NOT x AND z)` of a
//! CASE of booleans, with two copies of what may hold the same again; COALESCE and NULLIF become CASEs that hold an
//! argument twice. A WITH query is planned once, but every rule walks each of its copies.
use crate::parse::fold;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Statement, TableFactor, Visit, Visitor,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::Token;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::ControlFlow;
use terrace_engine::{EngineError, Result};

const NESTED_MAX: usize = 10;

const COPIES_MAX: usize = 500;

/// Whether a statement of these tokens could be beyond a bound: most need not be looked at.
pub(crate) fn may_double<'t>(tokens: impl Iterator<Item = &'t Token>) -> bool {
    let doubles = |token: &&Token| match token {
        Token::Word(word) => {
            matches!(word.keyword, Keyword::SELECT | Keyword::BETWEEN | Keyword::WHEN | Keyword::WITH | Keyword::TABLE)
                || holds_twice(&word.value)
        }
        _ => false,
    };
    tokens.filter(doubles).nth(NESTED_MAX).is_some()
}

/// Whether a function of that name is planned as a CASE with copies of its arguments.
fn holds_twice(name: &str) -> bool {
    name.eq_ignore_ascii_case("coalesce") || name.eq_ignore_ascii_case("nullif")
}

/// The arguments of a function that are planned twice.
fn held_twice(function: &Function) -> &[FunctionArg] {
    match (function.name.0.last().and_then(|part| part.as_ident()), &function.args) {
        (Some(name), FunctionArguments::List(list)) if holds_twice(&name.value) => {
            list.args.split_last().map_or(&[], |(_, args)| args)
        }
        _ => &[],
    }
}

/// 54001 where a statement is beyond a bound.
pub(crate) fn check(statement: &Statement) -> Result<()> {
    match statement.visit(&mut Doublings::default()) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

#[derive(Default)]
struct Doublings {
    nested: usize,
    /// Conditions of CASE and arguments that are planned twice, by address.
    copied: FxHashSet<usize>,
    /// WITH queries that are still to be visited, by address.
    with: FxHashMap<usize, String>,
    /// WITH queries that can be read here, each with how many readings a copy of it is.
    known: Vec<(String, usize)>,
    /// Of each query that has been entered: how many WITH queries were known around it, and the readings in it so far.
    queries: Vec<(usize, usize)>,
}

impl Doublings {
    fn doubles(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Between { .. } | Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. })
            || self.copied.contains(&address(expr))
    }

    fn enter(&mut self) -> ControlFlow<EngineError> {
        self.nested += 1;
        if self.nested > NESTED_MAX {
            let what = "subqueries, WITH queries, BETWEENs, conditions of CASE or arguments of COALESCE and NULLIF";
            let hint = "Compute the inner ones in a subquery of FROM.";
            let error = EngineError::new("54001", format!("more than {NESTED_MAX} {what} stand in each other"));
            return ControlFlow::Break(error.with_hint(hint));
        }
        ControlFlow::Continue(())
    }

    fn reads(&mut self, copies: usize) -> ControlFlow<EngineError> {
        let Some((_, readings)) = self.queries.last_mut() else { return ControlFlow::Continue(()) };
        *readings = readings.saturating_add(copies);
        if *readings > COPIES_MAX {
            let message = format!("the WITH queries of the statement are read more than {COPIES_MAX} times");
            let detail = "A WITH query is planned anew for each place that reads it, with those that it reads.";
            return ControlFlow::Break(EngineError::new("54001", message).with_detail(detail));
        }
        ControlFlow::Continue(())
    }
}

fn address<T>(node: &T) -> usize {
    std::ptr::from_ref(node) as usize
}

impl Visitor for Doublings {
    type Break = EngineError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<EngineError> {
        if self.with.contains_key(&address(query)) {
            self.enter()?;
        }
        self.queries.push((self.known.len(), 0));
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.with.extend(with.map(|cte| (address(&*cte.query), fold(&cte.alias.name))));
        ControlFlow::Continue(())
    }

    /// WITH queries are visited before what may read them.
    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<EngineError> {
        let (known, readings) = self.queries.pop().expect("each query that is left was entered");
        self.known.truncate(known);
        match self.with.remove(&address(query)) {
            Some(name) => {
                self.nested -= 1;
                self.known.push((name, readings.max(1)));
            }
            None => self.reads(readings)?,
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<EngineError> {
        if let TableFactor::Table { name, .. } = factor
            && let [part] = name.0.as_slice()
            && let Some(name) = part.as_ident().map(fold)
            && let Some(&(_, copies)) = self.known.iter().rev().find(|(known, _)| *known == name)
        {
            return self.reads(copies);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<EngineError> {
        if let Expr::Case { conditions, .. } = expr {
            self.copied.extend(conditions.iter().map(|when| address(&when.condition)));
        }
        if let Expr::Function(function) = expr {
            for arg in held_twice(function) {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) = arg {
                    self.copied.insert(address(arg));
                }
            }
        }
        if self.doubles(expr) { self.enter() } else { ControlFlow::Continue(()) }
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<EngineError> {
        if self.doubles(expr) {
            self.nested -= 1;
        }
        ControlFlow::Continue(())
    }
}
