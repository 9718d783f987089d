//! What needs no database: splitting, names, constant expressions, error codes.
use crate::error::from_datafusion;
use crate::parse;
use crate::pgcatalog::SessionInfo;
use crate::plan::bind::Tree;
use crate::plan::naming::shown_schema;
use crate::plan::planner::{Planned, Planner, base_state, parameters};
use crate::statement::kind::Kind;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use std::sync::Arc;
use terrace_engine::{Catalog, DataType, EngineError};
use terrace_grammar::statement::Statement;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime")
}

/// The tree of a query.
pub(crate) fn tree(sql: &str) -> Result<Tree, EngineError> {
    Ok(Tree::new(parse::statement(sql)?.expect("a statement"), sql.into()))
}

/// Plans a query that reads no table of the user's.
pub(crate) fn planned(tree: &Tree, types: &[Option<DataType>]) -> Result<(SessionState, Planned), EngineError> {
    let Statement::Query(query) = tree.statement() else {
        return Err(Kind::of(tree.statement()).refusal(tree.text()).expect("it is refused, or a query"));
    };
    let state = base_state(Arc::new(RuntimeEnv::default()), 10 << 20);
    let (catalog, info) = (Arc::new(Catalog::default()), SessionInfo::default());
    let planner = Planner {
        state: &state,
        catalog: &catalog,
        info: &info,
        unusable_indexes: Default::default(),
        text: None,
        numbers: None,
        parts: &[],
    };
    let planned = planner.plan_tree(query, types)?;
    Ok((state, planned))
}

/// Plans and runs one.
fn answer(sql: &str) -> Result<(Vec<String>, Vec<String>), EngineError> {
    let tree = tree(sql)?;
    runtime().block_on(crate::stack::on_stack_for(tree.depth()?, Box::pin(answer_on_stack(&tree))))
}

async fn answer_on_stack(tree: &Tree) -> Result<(Vec<String>, Vec<String>), EngineError> {
    let (state, planned) = planned(tree, &[])?;
    let physical = state.create_physical_plan(&planned.plan).await.map_err(from_datafusion)?;
    let names = shown_schema(&physical.schema()).fields().iter().map(|f| f.name().clone()).collect();
    let batches = datafusion::physical_plan::collect(physical, state.task_ctx()).await.map_err(from_datafusion)?;
    let mut rows = vec![];
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cell = |c: &datafusion::arrow::array::ArrayRef| match c.is_null(row) {
                true => "NULL".into(),
                false if crate::is_decimal(c.data_type()) => crate::values::array_datum(c, row).to_string(),
                false => array_value_to_string(c, row).expect("a value prints"),
            };
            rows.push(batch.columns().iter().map(cell).collect::<Vec<String>>().join("|"));
        }
    }
    Ok((names, rows))
}

#[test]
fn constant_expressions() {
    for (sql, expected) in [
        ("SELECT 7 / 2, -7 / 2, 7 % -3", "3|-3|1"),
        ("SELECT cast(2.5 AS int), cast(3.5 AS int), cast(-2.7 AS bigint)", "3|4|-3"),
        ("SELECT 'a' || NULL IS NULL", "true"),
        ("SELECT NULL = NULL IS NULL", "true"),
        ("SELECT 1 = 1.0", "true"),
        ("SELECT '5'::int + 1", "6"),
        ("SELECT 'a' < 'b', 'B' < 'a'", "true|true"),
        ("SELECT 9223372036854775806 + 1", "9223372036854775807"),
        ("SELECT coalesce(NULL, 2), nullif(1, 1), greatest(1, 3)", "2|NULL|3"),
        ("SELECT upper('ab'), length('äb'), substring('abcdef' FROM 2 FOR 3), trim('  a ')", "AB|2|bcd|a"),
        ("SELECT CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END", "b"),
        ("SELECT 'abc' LIKE 'a%', 'abc' ILIKE 'A_C', 'abc' ~ '^a'", "true|true|true"),
        ("SELECT count(*), sum(x), avg(x) FROM (VALUES (1), (2)) v(x)", "2|3|1.5000000000000000"),
        ("SELECT extract(year FROM timestamp '2020-02-03 04:05:06')", "2020"),
        ("SELECT timestamp '2020-02-03 04:05:06' + interval '1 day'", "2020-02-04T04:05:06"),
        ("SELECT row_number() OVER (ORDER BY x DESC) FROM (VALUES (1)) v(x)", "1"),
        ("SELECT 1, 1", "1|1"),
        ("SELECT now() IS NOT NULL, current_timestamp IS NOT NULL", "true|true"),
        ("SELECT true AND NULL, false AND NULL, NOT NULL::bool", "NULL|false|NULL"),
        ("SELECT 3 IN (1, NULL)", "NULL"),
        ("SELECT abs(-5), round(2.567, 1), power(2, 10)", "5|2.6|1024.0"),
        ("SELECT sum(g), count(g.g) FROM generate_series(1, 4) g", "10|4"),
        ("SELECT sum(i) FROM generate_series(1, 2 + 1) AS g(i)", "6"),
        ("SELECT -x, - -5 FROM (VALUES (3)) v(x)", "-3|5"),
        ("SELECT sum(x) FROM (VALUES (9223372036854775807), (1), (-1)) v(x)", "9223372036854775807"),
        ("SELECT sum(x) IS NULL FROM (VALUES (1)) v(x) WHERE x > 1", "true"),
        ("SELECT sum(x), sum(1.5 * x) FROM (VALUES (1, 1), (1, 5)) v(g, x) GROUP BY g", "6|9.0"),
        ("SELECT sum(x) FILTER (WHERE x > 1) FROM (VALUES (1, 1), (1, 5)) v(g, x) GROUP BY g", "5"),
        (
            "SELECT max(s) FROM (SELECT sum(x) OVER (ORDER BY x ROWS 1 PRECEDING) AS s \
             FROM (VALUES (1), (2), (4)) v(x)) w",
            "6",
        ),
    ] {
        match answer(sql) {
            Ok((_, rows)) => assert_eq!(rows, [expected], "{sql}"),
            Err(error) => panic!("{sql}: {} {error}", error.state.0),
        }
    }
}

#[test]
fn errors_have_codes() {
    for (sql, state) in [
        ("SELECT 1 / 0", "22012"),
        ("SELECT x / (x - x) FROM (VALUES (1)) v(x)", "22012"),
        ("SELECT 9223372036854775807 + 1", "22003"),
        ("SELECT x * 9223372036854775807 FROM (VALUES (2)) v(x)", "22003"),
        ("SELECT sum(x) FROM (VALUES (99999999999999999999999999999999999999), (1)) v(x)", "22003"),
        ("SELECT sum(x) FROM (VALUES (1, 99999999999999999999999999999999999999), (1, 1)) v(g, x) GROUP BY g", "22003"),
        ("SELECT sum(x) OVER () FROM (VALUES (99999999999999999999999999999999999999), (1)) v(x)", "22003"),
        ("SELECT sum(x + 9223372036854775800) FROM (VALUES (1), (8)) v(x)", "22003"),
        ("SELECT -x FROM (VALUES (-9223372036854775807 - 1)) v(x)", "22003"),
        ("SELECT 'a' 'b'", "42601"),
        ("SELECT 1 FROM (VALUES (1)) v(x), pg_class TABLESAMPLE system (10)", "0A000"),
        ("SELECT to_char(date '2024-01-01', 'TMMonth')", "0A000"),
        ("SELECT cast('abc' AS int)", "22P02"),
        ("SELECT cast(x AS int) FROM (VALUES ('abc')) v(x)", "22P02"),
        ("SELECT cast(3000000000 AS int)", "22003"),
        ("SELECT cast('nope' AS timestamp)", "22007"),
        ("SELECT nope FROM (VALUES (2)) v(x)", "42703"),
        ("SELECT v.nope FROM (VALUES (2)) v(x)", "42703"),
        ("SELECT nope(1)", "42883"),
        ("SELECT * FROM nope", "42P01"),
        ("SELECT * FROM nope.nope", "42P01"),
        ("SELECT x FROM (VALUES (1)) a(x), (VALUES (1)) b(x)", "42702"),
        ("SELECT x, count(*) FROM (VALUES (1)) a(x)", "42803"),
        ("SELECT (SELECT x FROM (VALUES (1), (2)) a(x))", "21000"),
        ("SELECT upper()", "42883"),
        ("SELECT true + 1", "42883"),
        ("SELECT * FROM nope(1, 2)", "0A000"),
        ("SELECT 1 > ALL (SELECT 1)", "0A000"),
    ] {
        match answer(sql) {
            Ok((_, rows)) => panic!("{sql}: {rows:?} instead of {state}"),
            Err(error) => assert_eq!(error.state.0, state, "{sql}: {error}"),
        }
    }
}

#[test]
fn deep_statements_are_refused() {
    let state = |sql: &str| answer(sql).map(|_| ()).map_err(|e| e.state.0);
    assert_eq!(state(&format!("SELECT {}1{}", "(".repeat(2000), ")".repeat(2000))), Err("54001"));
    assert_eq!(state(&format!("SELECT {}1", "- ".repeat(5000))), Err("54001"));
    assert_eq!(state(&format!("SELECT 1 WHERE {}", vec!["1 = 2"; 30_000].join(" OR "))), Err("54001"));
    assert_eq!(state(&format!("SELECT 1 WHERE {}", vec!["1 = 2"; 30_000].join(" AND "))), Err("54001"));
    assert_eq!(state(&format!("SELECT {}", vec!["1"; 5000].join(" + "))), Err("54001"));
    assert_eq!(state(&format!("SELECT 1 WHERE {}", vec!["1 = 2"; 290].join(" OR "))), Ok(()));
    assert_eq!(state(&format!("SELECT {}", vec!["1"; 290].join(" + "))), Ok(()));
    assert_eq!(state(&vec!["SELECT 1"; 290].join(" UNION ALL ")), Ok(()));
    assert_eq!(state(&format!("SELECT 1 WHERE 1 IN ({})", vec!["1 + 1"; 3000].join(", "))), Ok(()));
    assert_eq!(state(&format!("SELECT {}", vec!["CASE WHEN true THEN 1 END"; 3000].join(" + "))), Err("54001"));
    assert_eq!(state(&format!("SELECT 1{}", " IS DISTINCT FROM 1".repeat(3000))), Err("42601"));
    assert_eq!(state(&format!("SELECT 1{}", "::int".repeat(3000))), Err("54001"));
    let whens = "WHEN 1 = 2 THEN 1 + 2 ".repeat(1000);
    assert_eq!(state(&format!("SELECT CASE {whens} END")), Ok(()));
    let unions = vec!["SELECT 1"; 3000].join(" UNION ALL ");
    assert_eq!(state(&unions), Err("54001"));
}

/// Deep and long, as programs write them: they work, or the error says why. (Each on a stack of its own where it is
/// deep.)
#[test]
fn f7_deep_and_long_statements() {
    let rows = |sql: &str| answer(sql).map(|(_, rows)| rows).map_err(|e| e.state.0);
    let is = |rows: Result<Vec<String>, &'static str>, value: &str| assert_eq!(rows, Ok(vec![value.to_owned()]));
    let from = "SELECT count(*) FROM (VALUES (1), (2)) v(x) WHERE";
    let ors: Vec<String> = (0..2000).map(|n| format!("x = {n}")).collect();
    is(rows(&format!("{from} {}", ors.join(" OR "))), "2");
    let mixed: Vec<String> = (0..2000).map(|n| format!("(x = {n} AND x < 2)")).collect();
    is(rows(&format!("{from} {}", mixed.join(" OR "))), "1");
    let ands: Vec<String> = (0..310).map(|n| format!("x <> {}", n + 2)).collect();
    is(rows(&format!("{from} {}", ands.join(" AND "))), "1");
    is(rows(&format!("SELECT {}", vec!["1"; 310].join(" + "))), "310");
    is(rows(&format!("SELECT {} FROM (VALUES (1)) v(x)", vec!["x"; 590].join("+"))), "590");
    is(rows(&format!("SELECT {}", vec!["'a'"; 310].join("||"))), &"a".repeat(310));
    is(rows(&format!("SELECT {} FROM (VALUES ('a')) v(s)", vec!["s"; 310].join("||"))), &"a".repeat(310));
    is(rows(&format!("SELECT {}x FROM (VALUES (1)) v(x)", "- ".repeat(300))), "1");
    is(rows(&format!("SELECT {}1{}", "abs(".repeat(300), ")".repeat(300))), "1");
    is(rows(&format!("SELECT {}x{} FROM (VALUES (1)) v(x)", "abs(".repeat(300), ")".repeat(300))), "1");
    is(rows(&format!("SELECT {}1{}", "(".repeat(200), ")".repeat(200))), "1");
    let cases =
        |n: usize| format!("SELECT {}9{} FROM (VALUES (1)) v(x)", "CASE WHEN x = 1 THEN ".repeat(n), " END".repeat(n));
    is(rows(&cases(290)), "9");
    assert_eq!(rows(&cases(1000)), Err("54001"));
}

#[test]
fn f7_what_is_too_deep_says_so() {
    let n = 100_000;
    for sql in [
        format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("SELECT {}", "(".repeat(n)),
        format!("SELECT 1 WHERE {}", vec!["1=2"; n].join(" OR ")),
        format!("SELECT 1 WHERE {}", vec!["1=2"; n].join(" AND ")),
        format!("SELECT {}1{}", "CASE WHEN true THEN ".repeat(n), " END".repeat(n)),
        format!("SELECT {}", "CASE WHEN ".repeat(n)),
        format!("SELECT {}1", "NOT ".repeat(n)),
        format!("SELECT {}1", "-".to_owned() + &" -".repeat(n)),
        format!("SELECT 1{}", "::int".repeat(n)),
        format!("SELECT x{}", "[1]".repeat(n)),
        format!("SELECT {}1{}", "abs(".repeat(n), ")".repeat(n)),
        format!("SELECT * FROM {}t{}", "(".repeat(n), ")".repeat(n)),
        format!("SELECT {}1{}", "(SELECT ".repeat(n), ")".repeat(n)),
        format!("SELECT ARRAY{}1{}", "[".repeat(n), "]".repeat(n)),
        vec!["SELECT 1"; n].join(" UNION ALL "),
        format!("SELECT 1 FROM t{}", " JOIN t ON true".repeat(n)),
    ] {
        let error = answer(&sql).map(drop).unwrap_err();
        assert_eq!(error.state.0, "54001", "{}: {error}", &sql[..60]);
    }
}

#[test]
fn columns_have_postgresql_names() {
    let names = |sql| answer(sql).unwrap_or_else(|e: EngineError| panic!("{sql}: {e}")).0;
    assert_eq!(
        names(
            "SELECT 1, x, x + 1, count(*), max(x), count(*), upper('a'), CAST(x AS text), \
             'a'::varchar, x AS \"X\" FROM (VALUES (1)) v(x) GROUP BY x"
        ),
        ["?column?", "x", "?column?", "count", "max", "count", "upper", "x", "varchar", "X"]
    );
    assert_eq!(names("SELECT *, x FROM (VALUES (1)) v(x)"), ["x", "x"]);
    assert_eq!(names("SELECT CASE WHEN true THEN 1 END, (SELECT max(x) FROM (VALUES (1)) v(x))"), ["case", "max"]);
    assert_eq!(names("SELECT count(*) AS n, x FROM (VALUES (1)) v(x) GROUP BY x ORDER BY count(*), n"), ["n", "x"]);
    assert_eq!(names("SELECT x, x FROM (SELECT 1 AS x UNION SELECT 2) v ORDER BY x"), ["x", "x"]);
    // The outermost cast's type, unless something inside has a name of its own.
    assert_eq!(
        names(
            "SELECT 1::bigint::real, CASE WHEN true THEN 1 ELSE 2::bigint END, \
             CASE WHEN true THEN 1 ELSE x END, date '2024-01-01', \
             true, substr('ab', 1), substring('ab' from 1), trim(leading 'a'), (x::text)::int FROM (VALUES (1)) v(x)"
        ),
        ["float4", "case", "x", "date", "?column?", "substr", "substring", "ltrim", "x"]
    );
}

/// DataFusion's own table for this panics at NaN, which is not equal to itself.
#[test]
fn groups_with_nan_can_be_limited() {
    let sql = "SELECT x FROM (VALUES ('NaN'::float8), (2::float8), (1::float8), (NULL), (2::float8)) v(x) \
               GROUP BY x ORDER BY x LIMIT 1";
    assert_eq!(answer(sql).unwrap().1, ["1.0"]);
    let sql = "SELECT DISTINCT x FROM (VALUES ('NaN'::float8), (2::float8), (1::float8)) v(x) ORDER BY x DESC LIMIT 2";
    assert_eq!(answer(sql).unwrap().1, ["NaN", "2.0"]);
}

#[test]
fn parameters_have_types() {
    let types = |sql: &str, stated: &[Option<DataType>]| {
        let (_, planned) = planned(&tree(sql).unwrap(), stated)?;
        parameters(&planned.plan, stated)
    };
    let from = "FROM (VALUES (1, 'a', 1.5)) v(i, t, f)";
    assert_eq!(
        types(&format!("SELECT 1 {from} WHERE i = $1 AND t = $2 AND f < $3"), &[]).unwrap(),
        [DataType::Int4, DataType::Text, DataType::Numeric(None)]
    );
    assert_eq!(types("SELECT $1::int", &[]).unwrap(), [DataType::Int4]);
    assert_eq!(types("SELECT $1", &[]).unwrap(), [DataType::Text]);
    assert_eq!(types(&format!("SELECT 1 {from} WHERE i = $1"), &[Some(DataType::Int8)]).unwrap(), [DataType::Int8]);
    assert_eq!(types("SELECT $2::int", &[]).unwrap_err().state.0, "42P18");
    assert_eq!(types(&format!("SELECT 1 {from} LIMIT $1"), &[]).unwrap(), [DataType::Int8]);
}

/// Q29: whatever panics while a query is planned or read fails that statement alone.
#[test]
fn q29_a_panic_fails_its_statement() {
    let failed = runtime().block_on(crate::panics::caught(async {
        let none: Option<i32> = std::hint::black_box(None);
        Ok(none.expect("a value that is not there"))
    }));
    let error = failed.expect_err("it panicked");
    assert_eq!(error.state.0, "XX000");
    assert!(error.to_string().contains("a value that is not there"), "{error}");
    let failed = crate::panics::caught_now(|| -> Result<(), EngineError> { panic!("number {}", 7) });
    assert!(failed.expect_err("it panicked").to_string().contains("number 7"));
}
