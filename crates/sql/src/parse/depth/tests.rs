//! What statements of every kind of nesting take of the stack.
use crate::error::from_datafusion;
use crate::plan::bind::Tree;
use crate::stack::stack_for;
use crate::tests::{planned, tree};
use terrace_engine::EngineError;

/// How a statement nests: what comes before, n times, within, n times, behind.
type Kind = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

const V: &str = " FROM (VALUES (1)) v(x)";

/// Name, head, opening, core, closing, tail.
const KINDS: &[Kind] = &[
    ("parens", "SELECT ", "(", "x", ")", V),
    ("abs", "SELECT ", "abs(", "x", ")", V),
    ("upper", "SELECT ", "upper(", "'a'", ")", V),
    ("coalesce", "SELECT ", "coalesce(NULL, ", "x", ")", V),
    ("greatest", "SELECT ", "greatest(", "x", ", 2)", V),
    ("nullif", "SELECT ", "nullif(", "x", ", 2)", V),
    ("round", "SELECT ", "round(", "1.5 * x", ", 1)", V),
    ("substring", "SELECT ", "substring(", "'abc'", " from 1)", V),
    ("replace", "SELECT ", "replace(", "'abc'", ", 'a', 'b')", V),
    ("cast", "SELECT ", "CAST(", "x", " AS bigint)", V),
    ("cast text", "SELECT ", "CAST(CAST(", "x", " AS text) AS int)", V),
    ("casts", "SELECT x", "::bigint", "", "", V),
    ("casts text", "SELECT x", "::text::int", "", "", V),
    ("case then", "SELECT ", "CASE WHEN x = 1 THEN ", "9", " END", V),
    ("case else", "SELECT ", "CASE WHEN x = 2 THEN 1 ELSE ", "9", " END", V),
    ("case when", "SELECT ", "CASE WHEN ", "x = 1", " THEN true END", V),
    ("case of", "SELECT ", "CASE ", "x", " WHEN 1 THEN 1 END", V),
    ("minus", "SELECT ", "- ", "x", "", V),
    ("minus literal", "SELECT ", "- ", "1", "", V),
    ("not", "SELECT ", "NOT ", "x = 1", "", V),
    ("invert", "SELECT ", "~ ", "x", "", V),
    ("arrays", "SELECT ARRAY", "[", "x", "]", V),
    ("subscripts", "SELECT x", "[1]", "", "", " FROM (VALUES (ARRAY[1])) v(x)"),
    ("sum", "SELECT 1", " + 1", "", "", ""),
    ("sum x", "SELECT x", " + x", "", "", V),
    ("sum mixed", "SELECT x", " + 1.5", "", "", V),
    ("sum right", "SELECT ", "x + (", "1", ")", V),
    ("product where", "SELECT x FROM (VALUES (1)) v(x) WHERE x", " * x", "", "", " = 1"),
    ("concat", "SELECT 'a'", " || 'a'", "", "", ""),
    ("concat x", "SELECT s", " || s", "", "", " FROM (VALUES ('a')) v(s)"),
    ("concat right", "SELECT ", "s || (", "s", ")", " FROM (VALUES ('a')) v(s)"),
    ("bits", "SELECT x", " & x", "", "", V),
    ("power", "SELECT x", " ^ x", "", "", V),
    ("compare right", "SELECT ", "x = 1 AND (true = (", "true", "))", V),
    ("equals", "SELECT ", "(true = ", "(x = 1)", ")", V),
    ("and", "SELECT x FROM (VALUES (1)) v(x) WHERE x = 1", " AND x <> 2", "", "", ""),
    ("or", "SELECT x FROM (VALUES (1)) v(x) WHERE x = 1", " OR x = 2", "", "", ""),
    ("and or", "SELECT x FROM (VALUES (1)) v(x) WHERE ", "x = 1 AND (x = 2 OR (", "x = 1", "))", ""),
    ("is null", "SELECT x", " IS NULL", "", "", V),
    ("is true", "SELECT ", "(", "x = 1", ") IS TRUE", V),
    ("distinct from", "SELECT ", "(", "true", " IS DISTINCT FROM true)", V),
    ("distinct from right", "SELECT ", "true IS DISTINCT FROM (", "true", ")", V),
    ("isnull", "SELECT x", " ISNULL", "", "", V),
    ("like", "SELECT ", "(", "'a'", " LIKE 'a')::text", V),
    ("between", "SELECT ", "(", "x", " BETWEEN 1 AND 2)::int", V),
    ("in list", "SELECT ", "(1 IN (", "1", "))::int", V),
    ("in list left", "SELECT ", "(", "x", " IN (1, 2, 3))::int", V),
    ("any array", "SELECT ", "(1 = ANY (ARRAY[", "1", "]))::int", V),
    ("rows", "SELECT x FROM (VALUES (1)) v(x) WHERE ", "(1, x) = (1, 1) AND (", "true", ")", ""),
    ("extract", "SELECT ", "extract(year FROM date '2020-01-01' + ", "1", "::int)", V),
    ("zone", "SELECT timestamp '2020-01-01 00:00:00'", " AT TIME ZONE 'UTC'", "", "", ""),
    ("interval", "SELECT timestamp '2020-01-01 00:00:00'", " + interval '1 day'", "", "", ""),
    ("scalar subquery", "SELECT ", "(SELECT ", "1", ")", ""),
    ("scalar subquery from", "SELECT ", "(SELECT max(x) + ", "1", " FROM (VALUES (1)) v(x))", V),
    ("scalar subquery where", "SELECT 1 WHERE 1 = ", "(SELECT 1 WHERE 1 = ", "1", ")", ""),
    ("from", "", "SELECT * FROM (", "SELECT 1 x", ") s", ""),
    ("from where", "", "SELECT x + 1 x FROM (", "SELECT 1 x", ") s WHERE x > 0", ""),
    ("from grouped", "", "SELECT max(x) x FROM (", "SELECT 1 x", ") s GROUP BY x + 1", ""),
    ("from window", "", "SELECT sum(x) OVER (ORDER BY x) x FROM (", "SELECT 1::bigint x", ") s", ""),
    ("from sorted", "", "SELECT * FROM (", "SELECT 1 x", ") s ORDER BY x LIMIT 5", ""),
    ("from distinct", "", "SELECT DISTINCT x FROM (", "SELECT 1 x", ") s", ""),
    ("exists", "SELECT 1", " WHERE EXISTS (SELECT 1", "", ")", ""),
    ("exists of x", "SELECT x FROM (VALUES (1)) v(x)", " WHERE EXISTS (SELECT 1 FROM (VALUES (1)) v(x)", "", ")", ""),
    (
        "exists correlated",
        "SELECT x FROM (VALUES (1)) v(x) WHERE true",
        " AND EXISTS (SELECT 1 FROM (VALUES (1)) v(y) WHERE y = x",
        "",
        ")",
        "",
    ),
    ("in", "SELECT 1", " WHERE 1 IN (SELECT 1", "", ")", ""),
    ("in of x", "SELECT x FROM (VALUES (1)) v(x)", " WHERE x IN (SELECT x FROM (VALUES (1)) v(x)", "", ")", ""),
    ("not in", "SELECT x FROM (VALUES (1)) v(x)", " WHERE x NOT IN (SELECT x FROM (VALUES (2)) v(x)", "", ")", ""),
    ("all", "SELECT x FROM (VALUES (1)) v(x)", " WHERE x >= ALL (SELECT x FROM (VALUES (1)) v(x)", "", ")", ""),
    ("union all", "SELECT 1", " UNION ALL SELECT 1", "", "", ""),
    ("union", "SELECT 1", " UNION SELECT 1", "", "", ""),
    ("except", "SELECT 1", " EXCEPT SELECT 2", "", "", ""),
    ("intersect", "SELECT 1", " INTERSECT ALL SELECT 1", "", "", ""),
    ("union right", "", "SELECT 1 UNION ALL (", "SELECT 1", ")", ""),
    ("query parens", "", "(", "SELECT 1", ")", ""),
    ("cross join", "SELECT 1 FROM (VALUES (1)) v(x)", " CROSS JOIN (VALUES (1)) v(x)", "", "", ""),
    ("join", "SELECT 1 FROM (VALUES (1)) v(x)", " JOIN (VALUES (1)) w(y) ON x = y", "", "", ""),
    ("left join on true", "SELECT 1 FROM (VALUES (1)) v(x)", " LEFT JOIN (VALUES (1)) w(y) ON true", "", "", ""),
    ("join parens", "SELECT 1 FROM ", "(", "(VALUES (1)) v(x)", " CROSS JOIN (VALUES (1)) w(y))", ""),
    ("lateral", "", "SELECT 1 x FROM (VALUES (1)) v(y), LATERAL (", "SELECT 1 x", ") s", ""),
    ("with", "", "WITH a AS (", "SELECT 1 x", ") SELECT x FROM a", ""),
    ("values", "", "SELECT * FROM (VALUES ((", "SELECT 1", "))) v(x)", ""),
    ("aggregate of subquery", "SELECT ", "(SELECT count(*) FROM (VALUES (1)) v(x) WHERE x = ", "1", ")", ""),
    ("order by", "SELECT x FROM (VALUES (1)) v(x) ORDER BY ", "abs(", "x", ")", ""),
    ("group by", "SELECT 1 FROM (VALUES (1)) v(x) GROUP BY ", "abs(", "x", ")", ""),
    ("on", "SELECT 1 FROM (VALUES (1)) v(x) JOIN (VALUES (1)) w(y) ON ", "abs(", "x - y", ")", " = 0"),
    ("having", "SELECT 1 FROM (VALUES (1)) v(x) HAVING ", "abs(", "max(x)", ")", " = 1"),
    ("filter", "SELECT count(*) FILTER (WHERE ", "abs(", "x", ") ", " = 1) FROM (VALUES (1)) v(x)"),
    ("in aggregate", "SELECT sum(", "abs(", "x", ")", ") FROM (VALUES (1)) v(x)"),
    ("in window", "SELECT sum(x) OVER (PARTITION BY ", "abs(", "x", ")", ") FROM (VALUES (1)) v(x)"),
    ("array function", "SELECT ", "array_append(", "ARRAY[1]", ", 2)", V),
];

fn statement(kind: &Kind, n: usize) -> String {
    let (_, head, open, core, close, tail) = kind;
    format!("{head}{}{core}{}{tail}", open.repeat(n), close.repeat(n))
}

/// Plans and runs it to its end, or to an error, and drops all of it.
async fn run(tree: &Tree) -> Result<(), EngineError> {
    let (state, planned) = planned(tree, &[])?;
    let physical = state.create_physical_plan(&planned.plan).await.map_err(from_datafusion)?;
    let rows = datafusion::physical_plan::collect(physical, state.task_ctx()).await.map_err(from_datafusion)?;
    drop((planned, rows));
    Ok(())
}

/// On half of the stack that it gets.
fn on_half(sql: &str) -> Result<(), EngineError> {
    let tree = tree(sql)?;
    let depth = tree.depth()?;
    stacker::grow(stack_for(depth) / 2, move || block(run(&tree)))
}

/// Invariant 2, for every kind of nesting: half of the stack is enough. (What overflows one ends the whole run of
/// tests.)
#[test]
fn f7_half_of_the_stack_is_enough() {
    let mut answered = 0;
    for kind in KINDS {
        for n in [1, 6] {
            let sql = statement(kind, n);
            let done = on_half(&sql);
            done.map_or_else(|error| assert_ne!(error.state.0, "54001", "{sql}: {error}"), |()| answered += 1);
        }
    }
    assert!(answered > KINDS.len() * 5 / 3, "{answered}");
}

/// What takes twice as long with each level is refused before it takes long; what is below the bounds is planned.
#[test]
fn f7_what_doubles_is_bounded() {
    let nested = |open: &str, core: &str, close: &str, n: usize| {
        format!("SELECT {}{core}{} FROM (VALUES (1)) v(x)", open.repeat(n), close.repeat(n))
    };
    for (open, core, close) in [
        ("(", "x", " BETWEEN 1 AND 2)::int"),
        ("CASE WHEN ", "x = 1", " THEN true END"),
        ("CASE WHEN ", "x", " = 1 THEN 1 END"),
        ("(SELECT max(x) + ", "1", " FROM (VALUES (1)) v(x))"),
        ("(SELECT x WHERE x IN (SELECT ", "1", "))"),
        ("coalesce(", "x", ", 1)"),
        ("nullif(", "x", ", 7)"),
    ] {
        let error = on_half(&nested(open, core, close, 11)).expect_err(open);
        assert_eq!(error.state.0, "54001", "{open}: {error}");
        let error = on_half(&nested(open, core, close, 4)).map_or_else(|error| error.state.0, |()| "");
        assert_ne!(error, "54001", "{open}");
    }
    let with = |n: usize| {
        let each = |n: usize| format!(", q{} AS (SELECT a.x FROM q{n} a, q{n} b)", n + 1);
        format!("WITH q0 AS (SELECT 1 x){} SELECT * FROM q{n}", (0..n).map(each).collect::<String>())
    };
    assert_eq!(on_half(&with(40)).map_err(|error| error.state.0), Err("54001"));
    assert_eq!(on_half(&with(4)).map_err(|error| error.state.0), Ok(()));
    let within = |n: usize| format!("{}SELECT 1 x{}", "WITH q AS (".repeat(n), ") SELECT x FROM q".repeat(n));
    assert_eq!(on_half(&within(40)).map_err(|error| error.state.0), Err("54001"));
    assert_eq!(on_half(&within(8)).map_err(|error| error.state.0), Ok(()));
    assert_eq!(on_half(&nested("abs(", "x", ")", 60)).map_err(|error| error.state.0), Ok(()));
}

fn block<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// What stands within each other without parentheses, or beside each other where each is joined to the one before:
/// 54001 (or another error), before a stack overflows.
#[test]
fn r1_r2_r4_what_has_no_parentheses_has_a_height() {
    let chained = |n: usize| {
        let each = (1..n).map(|n| format!(", w{n} AS (SELECT * FROM w{})", n - 1));
        format!("WITH w0 AS (SELECT 1 x){} SELECT * FROM w{}", each.collect::<String>(), n - 1)
    };
    let listed = |n: usize| {
        let each = (1..n).map(|n| format!(", (VALUES (1)) v{n}(x)"));
        format!("SELECT 1 FROM (VALUES (1)) v0(x){}", each.collect::<String>())
    };
    let dml = |n: usize| format!("{}SELECT 1", "WITH w AS (SELECT 1) INSERT INTO t ".repeat(n));
    assert_eq!(on_half(&chained(700)).map_err(|error| error.state.0), Err("54001"));
    assert_eq!(on_half(&listed(400)).map_err(|error| error.state.0), Err("54001"));
    for sql in [dml(400), "INSERT INTO t ".repeat(400) + "SELECT 1"] {
        crate::parse::parsed(&sql).expect_err(&sql[..60]);
    }
    for sql in [chained(100), listed(20)] {
        on_half(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    for nested in ["EXPLAIN ", "PREPARE p AS ", "BEGIN "] {
        let sql = format!("{}SELECT 1", nested.repeat(10_000));
        crate::parse::parsed(&sql).map(drop).expect_err(nested);
    }
    // No list of tables.
    let columns =
        format!("SELECT {}x IS DISTINCT FROM 1{} FROM (VALUES (1)) v(x)", "x, ".repeat(400), ", x".repeat(400));
    on_half(&columns).expect("as many columns as wanted");
    let groups = format!("SELECT x FROM (VALUES (1)) v(x) GROUP BY x{}", ", x".repeat(400));
    on_half(&groups).expect("as many groups as wanted");
}
