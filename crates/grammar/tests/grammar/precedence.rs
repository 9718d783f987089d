//! Operators bind as in PostgreSQL. Each of these was asked of PostgreSQL 15, which shows how it understood an
//! expression in a view's definition.

use crate::shown::{query, understood};
use terrace_grammar::statement::{Body, SetOperator};
use terrace_grammar::{Options, parse};

#[test]
fn isnull_ends_an_item() {
    assert_eq!(understood("1 isnull"), "(1 is Null)");
    assert_eq!(understood("1 notnull isnull"), "((1 is not Null) is Null)");
}

#[test]
fn operators_bind_as_in_postgresql() {
    for (expr, meant) in [
        ("a + b * c", "(a + (b * c))"),
        ("a * b ^ c ^ d", "(a * ((b ^ c) ^ d))"),
        ("-a ^ 2", "((- a) ^ 2)"),
        ("-2 ^ 2", "(-2 ^ 2)"),
        ("- -0.25", "0.25"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("- 1::int", "(- (1::pg_catalog.int4))"),
        ("a - b - c", "((a - b) - c)"),
        ("a || b || c", "((a || b) || c)"),
        ("a || b + c", "(a || (b + c))"),
        ("@ a + b", "(@ (a + b))"),
        ("a OPERATOR(pg_catalog.+) b * c", "(a + (b * c))"),
        ("NOT a = b", "(not (a = b))"),
        ("NOT a IS NULL AND b", "((not (a is Null)) and b)"),
        ("a IS NULL = b", "((a is Null) = b)"),
        ("a = b IS NULL", "((a = b) is Null)"),
        ("a IS NULL IS NULL", "((a is Null) is Null)"),
        ("a IS NOT DISTINCT FROM b = c", "(a is not distinct from (b = c))"),
        ("a IS NOT DISTINCT FROM true AND id = 1", "((a is not distinct from true) and (id = 1))"),
        ("x BETWEEN 1 AND 2 AND y", "((x between 1 and 2) and y)"),
        ("x BETWEEN 1 AND 2 = y", "((x between 1 and 2) = y)"),
        ("x NOT BETWEEN a + 1 AND b || c OR d", "((x not between (a + 1) and (b || c)) or d)"),
        ("a LIKE b ESCAPE c || d", "(a Like b escape (c || d))"),
        ("a LIKE b || c", "(a Like (b || c))"),
        ("a = b LIKE c", "(a = (b Like c))"),
        ("a = b IN (1, 2)", "(a = (b in (1, 2)))"),
        ("a IN (1) = b", "((a in (1)) = b)"),
        ("a NOT IN (1, 2) AND b", "((a not in (1, 2)) and b)"),
        ("a AND b AND c OR d OR e AND f", "((a and b and c) or d or (e and f))"),
        ("a AT TIME ZONE b || c", "((a at time zone b) || c)"),
        ("a || b AT TIME ZONE c", "(a || (b at time zone c))"),
        ("a || b COLLATE \"C\"", "(a || (b collate C))"),
        ("a::text::int + b", "(((a::text)::pg_catalog.int4) + b)"),
        ("a = ANY (b) AND c", "((a = Any b) and c)"),
        ("a < ALL (b) = c", "((a < All b) = c)"),
        ("(a, b) OVERLAPS (c, d) AND e", "(pg_catalog.overlaps(a, b, c, d) and e)"),
        ("a = NOT b AND c", "((a = (not b)) and c)"),
        ("((a))", "a"),
        ("((SELECT 1)) + 1", "((select) + 1)"),
        ("a ISNULL OR b NOTNULL", "((a is Null) or (b is not Null))"),
        ("a <> b", "(a <> b)"),
        ("a != b", "(a <> b)"),
        ("a*-b", "(a * (- b))"),
        ("a<-b", "(a < (- b))"),
        ("a@-b", "(a @- b)"),
    ] {
        assert_eq!(understood(expr), meant, "{expr}");
    }
}

/// On the right, the parentheses that PostgreSQL's precedences make of the left.
#[test]
fn parentheses_say_how_operators_bind() {
    let pairs = [
        ("a or b and c or d", "a or (b and c) or d"),
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
        ("not exists (select 1)", "not exists (select 1)"),
        ("a operator(pg_catalog.+) b * c", "a operator(pg_catalog.+) (b * c)"),
        ("a > -1 and b>=-1", "(a > (-1)) and (b >= (-1))"),
    ];
    let otherwise = pairs.iter().filter(|(plain, explicit)| understood(plain) != understood(explicit));
    assert_eq!(otherwise.collect::<Vec<_>>(), Vec::<&(&str, &str)>::new());
}

#[test]
fn what_does_not_associate_is_refused() {
    for (expr, near) in [
        ("a < b = c", "="),
        ("a < b < c", "<"),
        ("a LIKE b LIKE c", "LIKE"),
        ("a BETWEEN 1 AND 2 BETWEEN 3 AND 4", "BETWEEN"),
        ("a IS DISTINCT FROM b IS NULL", "IS"),
        ("a BETWEEN b OR c AND d", "OR"),
        ("a BETWEEN b IS NULL AND d", "NULL"),
    ] {
        let sql = format!("SELECT {expr}");
        let error = parse(&sql, Options::default()).expect_err(expr);
        assert_eq!(error.message, format!("syntax error at or near \"{near}\""), "{expr}");
    }
}

#[test]
fn set_operations_bind_as_in_postgresql() {
    let Body::Set { op, all, branches } =
        query("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 INTERSECT SELECT 4").body
    else {
        panic!("it is a set operation")
    };
    assert_eq!((op, all, branches.len()), (SetOperator::Union, true, 3));
    assert!(matches!(branches[2].body, Body::Set { op: SetOperator::Intersect, .. }));
    let Body::Set { op, branches, .. } = query("SELECT 1 UNION SELECT 2 EXCEPT SELECT 3 ORDER BY 1").body else {
        panic!("it is a set operation")
    };
    assert_eq!((op, branches.len()), (SetOperator::Except, 2));
    assert!(matches!(branches[0].body, Body::Set { op: SetOperator::Union, .. }));
}

#[test]
fn what_follows_a_query_in_parentheses_is_its_own() {
    let sorted = query("(SELECT a FROM t LIMIT 3) ORDER BY a");
    assert!(matches!(sorted.body, Body::Select(_)));
    assert_eq!((sorted.order.len(), sorted.limit.is_some()), (1, true));
}
