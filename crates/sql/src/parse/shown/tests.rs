use super::*;

fn columns() -> Vec<ColumnDef> {
    let of = [
        ("i", DataType::Int4),
        ("l", DataType::Int8),
        ("n", DataType::Numeric(Some((8, 2)))),
        ("f", DataType::Float8),
        ("t", DataType::Text),
        ("v", DataType::Varchar(20)),
        ("c", DataType::Char(5)),
        ("d", DataType::Date),
        ("ts", DataType::Timestamp),
        ("b", DataType::Bool),
        ("B q", DataType::Int4),
    ];
    of.iter().map(|(name, of)| ColumnDef::new(name, *of)).collect()
}

/// What PostgreSQL 15 answers to pg_get_constraintdef, without CHECK and its parentheses; the second with few of them.
const CONDITIONS: &[(&str, &str, &str)] = &[
    ("n >= 0", "(n >= (0)::numeric)", "n >= 0::numeric"),
    ("d < '2020-01-01'", "(d < '2020-01-01'::date)", "d < '2020-01-01'::date"),
    ("i > 0 and l < 10", "((i > 0) AND (l < 10))", "i > 0 AND l < 10"),
    ("i > 0 or l < 10 and b", "((i > 0) OR ((l < 10) AND b))", "i > 0 OR l < 10 AND b"),
    ("(i > 0 or l < 10) and b", "(((i > 0) OR (l < 10)) AND b)", "(i > 0 OR l < 10) AND b"),
    (
        "v in ('a', 'b')",
        "((v)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[]))",
        "v::text = ANY (ARRAY['a'::character varying, 'b'::character varying]::text[])",
    ),
    ("t in ('a', 'b')", "(t = ANY (ARRAY['a'::text, 'b'::text]))", "t = ANY (ARRAY['a'::text, 'b'::text])"),
    ("i not in (1, 2)", "(i <> ALL (ARRAY[1, 2]))", "i <> ALL (ARRAY[1, 2])"),
    ("i in (7)", "(i = 7)", "i = 7"),
    ("i between 1 and 10", "((i >= 1) AND (i <= 10))", "i >= 1 AND i <= 10"),
    ("not b", "(NOT b)", "NOT b"),
    ("not (i > 1)", "(NOT (i > 1))", "NOT i > 1"),
    ("i is not null", "(i IS NOT NULL)", "i IS NOT NULL"),
    ("b is true", "(b IS TRUE)", "b IS TRUE"),
    ("v = 'x'", "((v)::text = 'x'::text)", "v::text = 'x'::text"),
    ("c = 'x'", "(c = 'x'::bpchar)", "c = 'x'::bpchar"),
    ("v like 'a%'", "((v)::text ~~ 'a%'::text)", "v::text ~~ 'a%'::text"),
    ("length(v) > 3", "(length((v)::text) > 3)", "length(v::text) > 3"),
    ("lower(t) = t", "(lower(t) = t)", "lower(t) = t"),
    ("f > 1", "(f > (1)::double precision)", "f > 1::double precision"),
    ("i + 1 > l", "((i + 1) > l)", "(i + 1) > l"),
    ("n * 2 > 1.50", "((n * (2)::numeric) > 1.50)", "(n * 2::numeric) > 1.50"),
    ("ts > d", "(ts > d)", "ts > d"),
    ("i = -1", "(i = '-1'::integer)", "i = '-1'::integer"),
    ("\"B q\" > 3000000000", "(\"B q\" > '3000000000'::bigint)", "\"B q\" > '3000000000'::bigint"),
    ("coalesce(i, 0) > 0", "(COALESCE(i, 0) > 0)", "COALESCE(i, 0) > 0"),
    ("t || 'x' <> v", "((t || 'x'::text) <> (v)::text)", "(t || 'x'::text) <> v::text"),
    ("i::text = '1'", "((i)::text = '1'::text)", "i::text = '1'::text"),
    ("t = 'a''\\b'", "(t = 'a''\\b'::text)", "t = 'a''\\b'::text"),
    ("b", "b", "b"),
];

#[test]
fn conditions_are_shown_as_postgresql_shows_them() {
    let columns = columns();
    for (written, shown, pretty) in CONDITIONS {
        assert_eq!(condition(written, &columns, false).as_deref(), Some(*shown), "{written}");
        assert_eq!(condition(written, &columns, true).as_deref(), Some(*pretty), "{written}");
        // Invariant 3.
        assert_eq!(condition(shown, &columns, false).as_deref(), Some(*shown), "{written}");
    }
    for unknown in ["soundex(t) = 'x'", "i", "nobody > 1", "c = v"] {
        assert_eq!(condition(unknown, &columns, false), None, "{unknown}");
    }
    let case = "\nCASE\n    WHEN b THEN true\n    ELSE NULL::boolean\nEND";
    assert_eq!(condition("case when b then true end", &columns, false).as_deref(), Some(case));
    let deep = vec!["i"; 5_000].join(" + ") + " > 0";
    assert_eq!(condition(&deep, &columns, false), None);
    let many = vec!["i"; 60].join(" + ") + " > 0";
    assert!(condition(&many, &columns, false).is_some());
}

#[test]
fn defaults_are_shown_as_postgresql_shows_them() {
    let shown = |text: &str, of| default(text, &ColumnDef::new("x", of));
    let is = |text: &str, of, wanted: &str| assert_eq!(shown(text, of), Some(Some(wanted.to_owned())), "{text}");
    is("'3'", DataType::Int4, "3");
    is("'-3'", DataType::Int4, "'-3'::integer");
    is("'3'", DataType::Int8, "'3'::bigint");
    is("0", DataType::Numeric(Some((8, 2))), "0");
    is("'0'", DataType::Numeric(None), "'0'::numeric");
    is("'a'", DataType::Varchar(50), "'a'::character varying");
    is("'a'::varchar(3)", DataType::Varchar(50), "'a'::character varying(3)");
    is("'a'", DataType::Char(5), "'a'::bpchar");
    is("'t'", DataType::Bool, "true");
    is("current_timestamp", DataType::Timestamptz, "CURRENT_TIMESTAMP");
    is("now()", DataType::Timestamptz, "now()");
    is("'24:00'", DataType::Interval, "'24:00:00'::interval");
    is("'2020-1-2'", DataType::Date, "'2020-01-02'::date");
    is("'{}'", DataType::Jsonb, "'{}'::jsonb");
    is("null", DataType::Varchar(9), "NULL::character varying");
    assert_eq!(shown("null", DataType::Int4), Some(None));
    assert_eq!(shown("'2020-01-01 00:00:00+00'", DataType::Timestamptz), None);
}
