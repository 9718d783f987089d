use crate::parse::parse_one;
use datafusion::sql::sqlparser::ast::{Expr, SelectItem, SetExpr, Statement, VisitMut, VisitorMut};
use std::ops::ControlFlow;
use terrace_engine::EngineError;

struct Bare;

impl VisitorMut for Bare {
    type Break = ();
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        while let Expr::Nested(inner) = expr {
            *expr = std::mem::replace(inner, Expr::Identifier("x".into()));
        }
        ControlFlow::Continue(())
    }
}

/// The tree of an expression without its parentheses.
fn tree(sql: &str) -> Result<Expr, EngineError> {
    let Some(Statement::Query(query)) = parse_one(&format!("SELECT {sql}"))? else { panic!("{sql}") };
    let SetExpr::Select(mut select) = *query.body else { panic!("{sql}") };
    let Some(SelectItem::UnnamedExpr(mut expr)) = select.projection.pop() else { panic!("{sql}") };
    let _ = VisitMut::visit(&mut expr, &mut Bare);
    Ok(expr)
}

/// On the right the tree that the precedences of PostgreSQL 15's grammar make of the left.
#[test]
fn p3_operators_bind_as_in_postgresql() {
    for (plain, explicit) in [
        ("a or b and c or d", "(a or (b and c)) or d"),
        ("not a and b", "(not a) and b"),
        ("not a = b", "not (a = b)"),
        ("not a is null", "not (a is null)"),
        ("not a in (1) or b", "(not (a in (1))) or b"),
        ("a = b is null", "(a = b) is null"),
        ("a is null = b", "(a is null) = b"),
        ("a is distinct from b and c", "(a is distinct from b) and c"),
        ("a is not distinct from b or c", "(a is not distinct from b) or c"),
        ("a is not distinct from b = c", "a is not distinct from (b = c)"),
        ("a is distinct from b + 1 and not c", "(a is distinct from (b + 1)) and (not c)"),
        ("not a is distinct from b", "not (a is distinct from b)"),
        ("a isnull and b notnull", "(a is null) and (b is not null)"),
        ("a = b isnull", "(a = b) is null"),
        ("-2 ^ 2", "(-2) ^ 2"),
        ("2 ^ -2 ^ 2", "(2 ^ (-2)) ^ 2"),
        ("- a * b", "(- a) * b"),
        ("- a :: int", "- (a :: int)"),
        ("- a at time zone b", "(- a) at time zone b"),
        ("a + b at time zone c", "a + (b at time zone c)"),
        ("a :: date at time zone c :: text", "(a :: date) at time zone (c :: text)"),
        ("a ^ b ^ c * d", "((a ^ b) ^ c) * d"),
        ("a - b - c * d / e % f", "(a - b) - (((c * d) / e) % f)"),
        ("a || b + c", "a || (b + c)"),
        ("a + b || c - d", "(a + b) || (c - d)"),
        ("a || b = c || d", "(a || b) = (c || d)"),
        ("a & b | c # d << e >> f", "((((a & b) | c) # d) << e) >> f"),
        ("a & b + c", "a & (b + c)"),
        ("a & b = c", "(a & b) = c"),
        ("a ~ b || c", "(a ~ b) || c"),
        ("a || b ~ c", "(a || b) ~ c"),
        ("a !~* b || c", "(a !~* b) || c"),
        ("a ~~ b || c", "(a ~~ b) || c"),
        ("a = b ~ c", "a = (b ~ c)"),
        ("a ~ b = c ~ d", "(a ~ b) = (c ~ d)"),
        ("a -> b = c ->> d", "(a -> b) = (c ->> d)"),
        ("~ a + b", "~ (a + b)"),
        ("~ a & b", "(~ a) & b"),
        ("a * ~ b + c", "a * (~ (b + c))"),
        ("@ a - b", "@ (a - b)"),
        ("|/ a + b", "|/ (a + b)"),
        ("a like b || c", "a like (b || c)"),
        ("a like b = c", "(a like b) = c"),
        ("a = b like c", "a = (b like c)"),
        ("a < b in (c)", "a < (b in (c))"),
        ("a in (b) = c", "(a in (b)) = c"),
        ("a + b between c and d and e", "((a + b) between c and d) and e"),
        ("a between b and c = d", "(a between b and c) = d"),
        ("a = b between c and d", "a = (b between c and d)"),
        ("a not like b and c", "(a not like b) and c"),
        ("a not between b + 1 and c * 2 or d", "(a not between (b + 1) and (c * 2)) or d"),
        ("a = any (b) and c", "(a = any (b)) and c"),
        ("a = any (select 1) in (b)", "(a = any (select 1)) in (b)"),
        ("not exists (select 1) is null", "not ((exists (select 1)) is null)"),
        ("not exists (select 1)", "not exists (select 1)"),
        ("a operator(pg_catalog.+) b * c", "a operator(pg_catalog.+) (b * c)"),
        ("a > -1 and b>=-1", "(a > (-1)) and (b >= (-1))"),
    ] {
        let trees = (tree(plain).unwrap(), tree(explicit).unwrap());
        assert_eq!(trees.0, trees.1, "{plain}");
    }
}

#[test]
fn p3_what_needs_parentheses_is_refused() {
    for sql in [
        "a < b < c",
        "a = b = c",
        "a = b <> c",
        "a is distinct from b is null",
        "a like b like c",
        "a between b and c in (d)",
        "a like b between c and d",
        "a == b",
        "a xor b = c",
        "a div b * c",
        "a rlike b and c",
    ] {
        assert_eq!(tree(sql).map_err(|e| e.state.0), Err("42601"), "{sql}");
    }
    for sql in ["(a < b) < c", "a is null is null", "a in (b) in (c)", "a = any (b) = c", "(a like b) like c"] {
        assert!(tree(sql).is_ok(), "{sql}");
    }
}

/// Chains keep their order, and their trees are not deep.
#[test]
fn f7_chains_of_or_and_and_are_not_deep() {
    fn leaves(expr: &Expr, depth: usize, deepest: &mut usize, found: &mut Vec<String>) {
        *deepest = depth.max(*deepest);
        match expr {
            Expr::BinaryOp { left, right, .. } => {
                leaves(left, depth + 1, deepest, found);
                leaves(right, depth + 1, deepest, found);
            }
            other => found.push(other.to_string()),
        }
    }
    for word in [" or ", " and "] {
        let names: Vec<String> = (0..500).map(|n| format!("c{n}")).collect();
        let (mut found, mut deepest) = (vec![], 0);
        leaves(&tree(&names.join(word)).unwrap(), 0, &mut deepest, &mut found);
        assert_eq!(found, names);
        assert!(deepest < 32, "{deepest}");
    }
}
