//! Statements and what they are.

use crate::shown::{query, select, shown, statement, understood};
use terrace_grammar::statement::{
    Assignment, Body, ConflictAction, ConflictTarget, Distinct, Expr, ExprKind, FromItem, Group, JoinKind, JoinOn,
    Literal, LockStrength, LockWait, Overriding, Statement, Subscript,
};
use terrace_grammar::{Options, parse};

fn text_of(sql: &str) -> String {
    match &select(sql).items[0].expr.kind {
        ExprKind::Literal(Literal::Text(text)) => text.clone(),
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn strings_are_decoded() {
    for (sql, text) in [
        (r"select 'it''s'", "it's"),
        ("select 'a'\n  'b'", "ab"),
        ("select 'a' -- comment\n 'b'", "ab"),
        (r"select 'a\b'", r"a\b"),
        (r"select E'a\b\n\t\\\'\x41\101\u00e9\ud83d\ude00'", "a\u{8}\n\t\\'AAé😀"),
        (r"select E'\xc3\xa9'", "é"),
        ("select e'a'\n'\\n'", "a\n"),
        (r"select U&'d\0061t\+000061'", "data"),
        (r"select U&'d!0061t!!''' UESCAPE '!'", "dat!'"),
        (r"select $$it's \n$$", r"it's \n"),
        ("select $a$x$$y$b$$a$", "x$$y$b$"),
    ] {
        assert_eq!(text_of(sql), text, "{sql}");
    }
    let off = Options { standard_conforming_strings: false };
    let parsed = parse(r"select 'a\'b'", off).expect("the backslash escapes");
    assert!(format!("{parsed:?}").contains("\"a'b\""));
}

#[test]
fn names_are_folded_and_cut() {
    let items = select(r#"select Aé, "B""c", u&"d\0061", t.SELECT, a AS "X", b y, c value"#).items;
    let names: Vec<String> = items[..4].iter().map(|item| shown(&item.expr)).collect();
    assert_eq!(names, ["aé", "B\"c", "da", "t.select"]);
    let titles: Vec<&str> = items[4..].iter().map(|item| item.alias.as_ref().expect("a title").name.as_str()).collect();
    assert_eq!(titles, ["X", "y", "value"]);
    let long = format!("select {}é", "a".repeat(62));
    assert_eq!(shown(&select(&long).items[0].expr), "a".repeat(62));
}

#[test]
fn everything_has_its_place() {
    let sql = "select a, f(b), c + d from t where e in (1)";
    let select = select(sql);
    let at = |expr: &Expr| &sql[expr.at as usize..][..1];
    assert_eq!(at(&select.items[0].expr), "a");
    assert_eq!(at(&select.items[1].expr), "f");
    let ExprKind::Binary { op, args } = &select.items[2].expr.kind else { panic!("an operator") };
    assert_eq!((&sql[op.at as usize..][..1], at(&args[1])), ("+", "d"));
    let ExprKind::InList { word_at, .. } = select.filter.expect("a condition").kind else { panic!("a list") };
    assert_eq!(&sql[word_at as usize..][..2], "in");
}

#[test]
fn keywords_become_types_and_functions() {
    for (expr, meant) in [
        ("a::int", "(a::pg_catalog.int4)"),
        ("a::double precision", "(a::pg_catalog.float8)"),
        ("a::float(24)", "(a::pg_catalog.float4)"),
        ("a::timestamp(3) with time zone", "(a::pg_catalog.timestamptz)"),
        ("a::character varying(3)", "(a::pg_catalog.varchar)"),
        ("a::bit varying", "(a::pg_catalog.varbit)"),
        ("a::public.mood", "(a::public.mood)"),
        ("date '2020-01-01'", "('2020-01-01'::date)"),
        ("n'a'", "('a'::pg_catalog.bpchar)"),
        ("interval '1' day to second", "('1'::pg_catalog.interval)"),
        ("numeric(3) '1'", "('1'::pg_catalog.numeric)"),
        ("position(a in b)", "pg_catalog.position(b, a)"),
        ("extract(year from a)", "pg_catalog.extract('year', a)"),
        ("substring(a for 2)", "pg_catalog.substring(a, 1, 2)"),
        ("substring(a similar b escape c)", "pg_catalog.substring(a, b, c)"),
        ("trim(leading 'x' from a)", "pg_catalog.ltrim(a, 'x')"),
        ("overlay(a placing b from 1)", "pg_catalog.overlay(a, b, 1)"),
        ("a is nfc normalized", "pg_catalog.is_normalized(a, 'NFC')"),
    ] {
        assert_eq!(understood(expr), meant, "{expr}");
    }
    let cast = |expr: &str| match select(&format!("select {expr}")).items.remove(0).expr.kind {
        ExprKind::Cast { to, .. } => *to,
        other => panic!("{expr}: {other:?}"),
    };
    assert_eq!(cast("a::char").modifiers.len(), 1);
    assert_eq!(cast("a::varchar").modifiers.len(), 0);
    assert_eq!(cast("a::int[][3]").dimensions, [None, Some(3)]);
    assert_eq!(cast("interval '1' day to second(3)").fields.as_deref(), Some("day to second"));
}

#[test]
fn a_query_has_all_its_clauses() {
    let query = query(
        "WITH RECURSIVE r (n) AS NOT MATERIALIZED (SELECT 1), i AS (INSERT INTO t VALUES (1) RETURNING *)
         SELECT DISTINCT ON (a) a, count(*) FILTER (WHERE b) OVER (w ORDER BY c) FROM t AS u (a, b), LATERAL f(1) WITH
         ORDINALITY x WHERE a GROUP BY DISTINCT a, ROLLUP (b), GROUPING SETS ((), CUBE (c)) HAVING d
         WINDOW w AS (PARTITION BY e ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES)
         ORDER BY a DESC NULLS LAST, b USING < OFFSET 2 ROWS
         FETCH FIRST 3 ROWS WITH TIES FOR NO KEY UPDATE OF t NOWAIT",
    );
    let with = query.with.as_ref().expect("WITH");
    assert!(with.recursive && with.ctes[0].materialized == Some(false));
    assert!(matches!(*with.ctes[1].statement, Statement::Insert(_)));
    assert!(query.with_ties && query.limit.is_some() && query.offset.is_some() && query.order.len() == 2);
    assert_eq!(query.locking[0].strength, LockStrength::NoKeyUpdate);
    assert_eq!(query.locking[0].wait, LockWait::NoWait);
    let Body::Select(select) = &query.body else { panic!("a SELECT") };
    assert!(matches!(select.distinct, Distinct::On(_)));
    assert!(matches!(&select.from[1], FromItem::Functions { lateral: true, ordinality: true, .. }));
    let group = select.group.as_ref().expect("GROUP BY");
    assert!(group.distinct && matches!(&group.items[2], Group::Sets(_, sets) if sets.len() == 2));
    assert!(select.having.is_some() && select.windows.len() == 1);
}

#[test]
fn joins_nest_as_they_are_written() {
    let sql = "select 1 from a join b join c on 1 = 1 on 2 = 2 natural left join (d cross join e) as j
        full join f using (x) as u";
    let FromItem::Join { kind, sides, on, .. } = select(sql).from.remove(0) else { panic!("a join") };
    assert_eq!(kind, JoinKind::Full);
    assert!(matches!(on, JoinOn::Using { alias: Some(_), .. }));
    let [left, _] = *sides;
    let FromItem::Join { kind, sides, on, .. } = left else { panic!("a join") };
    assert_eq!((kind, on), (JoinKind::Left, JoinOn::Natural));
    let [inner, named] = *sides;
    assert!(matches!(named, FromItem::Join { kind: JoinKind::Cross, alias: Some(_), .. }));
    let FromItem::Join { sides, .. } = inner else { panic!("a join") };
    assert!(matches!(&sides[1], FromItem::Join { .. }));
}

#[test]
fn changes_have_all_their_clauses() {
    let sql = "INSERT INTO s.t AS x (a, b) OVERRIDING USER VALUE VALUES (1, DEFAULT) ON CONFLICT (a, lower(b) COLLATE c
        text_ops) WHERE c DO UPDATE SET a = 1, (b, c) = (SELECT 1, 2) WHERE d RETURNING *, a AS z";
    let Statement::Insert(insert) = statement(sql) else { panic!("an INSERT") };
    assert_eq!((insert.columns.len(), insert.overriding), (2, Some(Overriding::User)));
    let conflict = insert.conflict.expect("ON CONFLICT");
    assert!(matches!(&conflict.target, Some(ConflictTarget::Elements { elements, filter: Some(_), .. })
        if elements.len() == 2 && elements[1].class.is_some()));
    assert!(matches!(&conflict.action, ConflictAction::Update { set, filter: Some(_) } if set.len() == 3));
    assert_eq!(insert.returning.len(), 2);
    let Statement::Update(update) = statement("UPDATE t SET a[1] = 2") else { panic!("an UPDATE") };
    assert!(matches!(&update.set[..], [Assignment::One { column, value }]
        if column.name == "a" && matches!(&value.kind, ExprKind::With { subscripts, .. }
            if matches!(subscripts[..], [Subscript::Index(_)]))));
    let Statement::Update(update) = statement("UPDATE t SET a[1] = 2, b = 3, a['x'][4] = 5, a[6] = 7") else {
        panic!("an UPDATE")
    };
    let [Assignment::One { column: b, .. }, Assignment::One { column: a, value }] = &update.set[..] else {
        panic!("two columns")
    };
    assert_eq!((b.name.as_str(), a.name.as_str()), ("b", "a"));
    let (mut part, mut counts) = (value, vec![]);
    while let ExprKind::With { arg, subscripts, .. } = &part.kind {
        counts.push(subscripts.len());
        part = arg;
    }
    // The last one is outermost.
    assert_eq!(counts, [1, 2, 1]);
    assert!(matches!(&part.kind, ExprKind::Column(name) if name.last().name == "a"));
    let Statement::Insert(insert) = statement("INSERT INTO t DEFAULT VALUES ON CONFLICT DO NOTHING") else {
        panic!("an INSERT")
    };
    assert!(insert.source.is_none() && insert.conflict.is_some());
    let sql = "WITH a AS (SELECT 1) UPDATE ONLY t x SET a = DEFAULT FROM u, v WHERE b";
    let Statement::Update(update) = statement(sql) else { panic!("an UPDATE") };
    assert!(update.with.is_some() && update.only && update.alias.is_some() && update.from.len() == 2);
    let Statement::Delete(delete) = statement("DELETE FROM t USING u WHERE CURRENT OF c RETURNING a") else {
        panic!("a DELETE")
    };
    assert!(matches!(delete.filter.expect("WHERE").kind, ExprKind::CurrentOf(_)));
}

#[test]
fn what_terrace_has_not_is_refused_by_name() {
    for (sql, what) in [
        ("MERGE INTO t USING u ON a = b WHEN MATCHED THEN DELETE", "MERGE is not supported"),
        ("SELECT * FROM t TABLESAMPLE bernoulli (1)", "TABLESAMPLE is not supported"),
        ("PREPARE p AS SELECT 1 INTO t", "SELECT INTO within this statement is not supported"),
    ] {
        match statement(sql) {
            Statement::Refused(refused) => assert_eq!((refused.message.as_str(), refused.sqlstate), (what, "0A000")),
            other => panic!("{sql} is {other:?}"),
        }
    }
    // A syntax error comes first.
    assert!(parse("SELECT * FROM t TABLESAMPLE bernoulli (1) WHERE", Options::default()).is_err());
}

#[test]
fn a_text_is_split_by_its_statements() {
    let sql = " ; select ';' ;; /* ; */ select 2 -- ;\n; ";
    let all = parse(sql, Options::default()).expect("they parse");
    let texts: Vec<&str> = all.iter().map(|parsed| &sql[parsed.range.clone()]).collect();
    assert_eq!(texts, ["select ';'", "select 2"]);
    assert!(parse(" ; -- nothing", Options::default()).expect("it is empty").is_empty());
}
