//! Rewrites statements on the system relations into what DataFusion can plan.
//!
//! 1. Names: `pg_catalog.f(..)` becomes `f(..)`; `OPERATOR(pg_catalog.op)` becomes `op`; `COLLATE` goes (there is one
//!    collation).
//! 2. `::regclass` and `::regtype` on a literal become the object's OID; on anything else they are for display and
//!    become names.
//! 3. `x = ANY(array)` becomes a function call. A scalar subquery takes `min` of its column (DataFusion decorrelates
//!    only aggregates; PostgreSQL refuses more than one row there). `EXISTS` in a select list becomes `count(*) > 0`.
//! 4. A `SELECT` that reads an always-empty relation by inner joins has no rows: its list becomes NULLs, its FROM goes.
use super::relations::is_always_empty;
use crate::parse::{call, function_call};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    JoinOperator, ObjectName, Query, Select, SelectItem, SetExpr, Statement, TableFactor, TableWithJoins, Value,
    ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::Span;
use std::ops::ControlFlow;

/// Whether a statement reads system relations or names something of `pg_catalog`.
fn touches(statement: &Statement) -> bool {
    statement.visit(&mut Touches).is_break()
}

struct Touches;

impl Visitor for Touches {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let parts = names(relation);
        let system = match parts.as_slice() {
            [.., schema, _] => is_system_schema(schema),
            [name] => super::relations::shape("pg_catalog", name).is_some(),
            [] => false,
        };
        if system { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let system = match expr {
            Expr::Function(f) => f.name.0.len() > 1 && names(&f.name)[0] == "pg_catalog",
            Expr::Cast { data_type, .. } => reg_type(data_type).is_some(),
            Expr::BinaryOp { op: BinaryOperator::PGCustomBinaryOperator(_), .. } => true,
            _ => false,
        };
        if system { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Rewrites a statement that touches the system relations; leaves any other as it is. Answers whether it does.
pub fn rewrite(statement: &mut Statement) -> bool {
    let touches = touches(statement);
    if touches {
        show_names(statement);
        let ControlFlow::Continue(()) = statement.visit(&mut Rewriter) else {
            unreachable!("the rewriter never breaks")
        };
    }
    touches
}

/// `SELECT 'name'::regclass` shows the name: nothing goes on with the OID that the cast gives elsewhere.
fn show_names(statement: &mut Statement) {
    let Statement::Query(query) = statement else { return };
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
        if let Expr::Cast { expr: inner, data_type, .. } = expr
            && reg_type(data_type) == Some("regclass")
            && matches!(&**inner, Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. }))
        {
            *expr = call("regclass_name", vec![call("regclass_oid", vec![take(inner)])]);
        }
    }
}

struct Rewriter;

type Flow = ControlFlow<()>;

impl VisitorMut for Rewriter {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> Flow {
        if let SetExpr::Select(select) = query.body.as_mut()
            && reads_nothing(select)
        {
            empty(select);
            // What it ordered by is gone with FROM; no rows need no order.
            query.order_by = None;
        }
        Flow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> Flow {
        if reads_nothing(select) {
            empty(select);
        }
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                count_exists(expr);
            }
        }
        name_columns(select);
        Flow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        match expr {
            Expr::Subquery(query) if compares_collations(query) || is_of_identity(query) => *expr = null(),
            // psql's \du: memberships, of which there are none.
            Expr::Function(f) if is_array_of_nothing(f) => *expr = call("no_items", vec![]),
            // psql's \d+: storage options, of which there are none.
            Expr::Function(f) if last(&f.name) == "array_to_string" && f.args.to_string().contains("reloptions") => {
                *expr = string("");
            }
            _ => {}
        }
        Flow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        if let Some(new) = replacement(expr) {
            *expr = new;
        }
        Flow::Continue(())
    }
}

fn replacement(expr: &mut Expr) -> Option<Expr> {
    match expr {
        Expr::Function(f) if f.name.0.len() > 1 && names(&f.name)[0] == "pg_catalog" => {
            f.name = Ident::new(last(&f.name)).into();
            None
        }
        Expr::Collate { expr, .. } => Some(take(expr)),
        Expr::BinaryOp { op, .. } => {
            if let BinaryOperator::PGCustomBinaryOperator(path) = op
                && let Some(plain) = path.last().and_then(|name| operator(name))
            {
                *op = plain;
            }
            None
        }
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } if !matches!(**right, Expr::Subquery(_)) => {
            Some(call("pg_array_contains", vec![take(right), take(left)]))
        }
        Expr::Subquery(query) => {
            aggregate(query);
            None
        }
        Expr::Cast { expr, data_type, .. } if is_vector(expr) && is_text(data_type) => {
            Some(call("array_to_string", vec![take(expr), string(" ")]))
        }
        Expr::Cast { expr, data_type, .. } => reg_type(data_type).map(|kind| reg_cast(kind, expr)),
        Expr::Function(f) if last(&f.name) == "generate_subscripts" => subscripts(f),
        _ => None,
    }
}

fn reg_cast(kind: &'static str, expr: &mut Box<Expr>) -> Expr {
    // A literal or parameter names the object; anything else is its OID.
    let is_name = matches!(
        &**expr,
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_) | Value::Placeholder(_), .. })
    );
    match (kind, is_name) {
        ("regclass", true) => call("regclass_oid", vec![take(expr)]),
        ("regclass", false) => call("regclass_name", vec![take(expr)]),
        ("regtype", true) => call("regtype_oid", vec![take(expr)]),
        ("regtype", false) => call("format_type", vec![take(expr), null()]),
        ("regnamespace", false) => call("regnamespace_name", vec![take(expr)]),
        ("oid", _) => call("to_oid", vec![take(expr)]),
        ("xid", _) => cast(take(expr), DataType::BigInt(None)),
        // regproc, name, "char", text under their pg_catalog names: as close as Arrow's types come.
        _ => cast(take(expr), DataType::Text),
    }
}

/// A column of type int2vector, which is written `1 2`.
fn is_vector(expr: &Expr) -> bool {
    let name = match expr {
        Expr::Identifier(name) => name,
        Expr::CompoundIdentifier(parts) => match parts.last() {
            Some(name) => name,
            None => return false,
        },
        _ => return false,
    };
    matches!(name.value.as_str(), "indkey" | "indoption")
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Text | DataType::Varchar(_) | DataType::CharacterVarying(_))
        || reg_type(data_type) == Some("text")
}

/// `generate_subscripts(array, 1)` beside `unnest(array)`, row by row: the places of the array's items.
fn subscripts(f: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &f.args else { return None };
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(array)) = list.args.first()? else { return None };
    Some(call("unnest", vec![call("pg_subscripts", vec![array.clone()])]))
}

/// The cast target if it is one of PostgreSQL's that Arrow does not have.
fn reg_type(data_type: &DataType) -> Option<&'static str> {
    let DataType::Custom(name, _) = data_type else {
        return matches!(data_type, DataType::Regclass).then_some("regclass");
    };
    let known = [
        "regclass",
        "regtype",
        "regnamespace",
        "regproc",
        "regprocedure",
        "regrole",
        "oid",
        "xid",
        "name",
        "char",
        "text",
    ];
    let name = last(name);
    known.into_iter().find(|k| *k == name)
}

fn names(name: &ObjectName) -> Vec<String> {
    let fold = |i: &Ident| if i.quote_style.is_some() { i.value.clone() } else { i.value.to_lowercase() };
    name.0.iter().filter_map(|p| p.as_ident()).map(fold).collect()
}

fn last(name: &ObjectName) -> String {
    names(name).pop().unwrap_or_default()
}

fn is_system_schema(name: &str) -> bool {
    matches!(name, "pg_catalog" | "information_schema" | "terrace")
}

fn operator(name: &str) -> Option<BinaryOperator> {
    Some(match name {
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "||" => BinaryOperator::StringConcat,
        _ => return None,
    })
}

/// Whether FROM contains, by inner joins (or as the left side of outer ones), a relation that never has rows, and no
/// aggregate makes a row of nothing.
fn reads_nothing(select: &Select) -> bool {
    let aggregates = |item: &SelectItem| {
        let text = item.to_string().to_lowercase();
        // Subqueries may aggregate for themselves, but then keeping the statement as it is costs nothing.
        ["count(", "sum(", "min(", "max(", "avg("].iter().any(|f| text.contains(f))
    };
    let nothing = |t: &TableFactor| match t {
        TableFactor::Table { name, .. } => match names(name).as_slice() {
            [schema, name] => schema == "pg_catalog" && is_always_empty(name),
            [name] => is_always_empty(name),
            _ => false,
        },
        _ => false,
    };
    let tree = |t: &TableWithJoins| {
        let mut empty = nothing(&t.relation);
        for join in &t.joins {
            empty = match &join.join_operator {
                JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => {
                    empty || nothing(&join.relation)
                }
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => empty,
                _ => false,
            };
        }
        empty
    };
    select.from.iter().any(tree) && !select.projection.iter().any(aggregates)
}

/// Makes a select that is known to have no rows say so.
fn empty(select: &mut Select) {
    name_columns(select);
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            *expr = cast(null(), DataType::Text);
        }
    }
    select.from.clear();
    select.selection = Some(Expr::Value(value(Value::Boolean(false))));
    select.having = None;
    select.distinct = None;
}

/// Names every column as PostgreSQL does, and the same name never twice (DataFusion refuses that; psql goes by
/// position).
fn name_columns(select: &mut Select) {
    let mut seen = std::collections::BTreeSet::new();
    for item in &mut select.projection {
        let (expr, name) = match item {
            SelectItem::UnnamedExpr(expr) => {
                let name = column_name(expr);
                (expr, name)
            }
            SelectItem::ExprWithAlias { expr, alias } => (expr, alias.value.clone()),
            _ => return,
        };
        let mut unique = name.clone();
        let mut n = 1;
        while !seen.insert(unique.clone()) {
            n += 1;
            unique = format!("{name}_{n}");
        }
        *item =
            SelectItem::ExprWithAlias { expr: std::mem::replace(expr, null()), alias: Ident::with_quote('"', unique) };
    }
}

fn column_name(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(i) => names(&i.clone().into()).pop().unwrap_or_default(),
        Expr::CompoundIdentifier(parts) => names(&parts.clone().into()).pop().unwrap_or_default(),
        Expr::Function(f) => last(&f.name),
        Expr::Case { .. } => "case".to_owned(),
        Expr::Exists { .. } => "exists".to_owned(),
        Expr::Nested(e) | Expr::Collate { expr: e, .. } => column_name(e),
        Expr::Cast { expr, data_type, .. } => match column_name(expr).as_str() {
            "?column?" => reg_type(data_type).map_or_else(|| data_type.to_string().to_lowercase(), str::to_owned),
            name => name.to_owned(),
        },
        Expr::Subquery(q) => match q.body.as_ref() {
            SetExpr::Select(s) => match s.projection.first() {
                Some(SelectItem::UnnamedExpr(e)) => column_name(e),
                Some(SelectItem::ExprWithAlias { alias, .. }) => alias.value.clone(),
                _ => "?column?".to_owned(),
            },
            _ => "?column?".to_owned(),
        },
        _ => "?column?".to_owned(),
    }
}

/// `(SELECT e FROM ..)` becomes `(SELECT min(e) FROM ..)` unless it aggregates already.
fn aggregate(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] = select.projection.as_mut_slice()
    else {
        return;
    };
    let text = expr.to_string().to_lowercase();
    if select.from.is_empty()
        || ["count(", "sum(", "min(", "max(", "avg(", "string_agg("].iter().any(|f| text.starts_with(f))
    {
        return;
    }
    let inner = std::mem::replace(expr, null());
    *expr = call("min", vec![inner]);
    if let Some(selection) = &mut select.selection {
        drop_implied(selection);
    }
    query.order_by = None;
    query.limit_clause = None;
}

/// Takes `a.atthasdef` out of a conjunction: pg_attrdef has a row exactly where it is true, and a condition on the
/// outer query alone would keep DataFusion from decorrelating.
fn drop_implied(selection: &mut Expr) {
    let implied =
        |e: &Expr| matches!(e, Expr::CompoundIdentifier(parts) if parts.last().is_some_and(|p| p.value == "atthasdef"));
    if let Expr::BinaryOp { left, op: BinaryOperator::And, right } = selection {
        drop_implied(left);
        drop_implied(right);
        if implied(right) {
            *selection = take(left);
        } else if implied(left) {
            *selection = take(right);
        }
    }
}

/// `EXISTS (SELECT .. )` becomes `(SELECT count(*) FROM ..) > 0`, through the connectives of a select list.
fn count_exists(expr: &mut Expr) {
    match expr {
        Expr::BinaryOp { left, right, .. } => {
            count_exists(left);
            count_exists(right);
        }
        Expr::Nested(e) | Expr::UnaryOp { expr: e, .. } => count_exists(e),
        Expr::Exists { subquery, negated } => {
            let SetExpr::Select(select) = subquery.body.as_mut() else { return };
            let star = FunctionArg::Unnamed(FunctionArgExpr::Wildcard);
            select.projection = vec![SelectItem::UnnamedExpr(function_call("count", vec![star]))];
            let op = if *negated { BinaryOperator::Eq } else { BinaryOperator::Gt };
            let zero = Expr::Value(value(Value::Number("0".into(), false)));
            let count = Expr::Subquery(std::mem::replace(subquery, Box::new(nothing_query())));
            *expr = Expr::BinaryOp { left: Box::new(count), op, right: Box::new(zero) };
        }
        _ => {}
    }
}

/// psql's question whether a column's collation differs from its type's: it never does, there is one.
fn compares_collations(query: &Query) -> bool {
    let text = query.to_string();
    text.contains("collation <>") && text.contains("typcollation")
}

/// SQLAlchemy's question about the sequence of an identity column: columns that are numbered have a default, none is
/// `attidentity`.
fn is_of_identity(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    select.selection.as_ref().is_some_and(|selection| selection.to_string().contains("attidentity <> ''"))
}

fn is_array_of_nothing(f: &Function) -> bool {
    let FunctionArguments::Subquery(query) = &f.args else { return false };
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    // No column has privileges of its own, and there are no domains to be constrained.
    let text = select.selection.as_ref().map(ToString::to_string).unwrap_or_default();
    last(&f.name) == "array"
        && (reads_nothing(select) || text.contains("attacl IS NOT NULL") || text.contains("contypid"))
}

fn nothing_query() -> Query {
    Query {
        with: None,
        body: Box::new(SetExpr::Values(datafusion::sql::sqlparser::ast::Values {
            explicit_row: false,
            value_keyword: false,
            rows: vec![],
        })),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: vec![],
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: vec![],
    }
}

fn value(value: Value) -> ValueWithSpan {
    ValueWithSpan { value, span: Span::empty() }
}
fn null() -> Expr {
    Expr::Value(value(Value::Null))
}
fn string(s: &str) -> Expr {
    Expr::Value(value(Value::SingleQuotedString(s.to_owned())))
}
fn take(expr: &mut Box<Expr>) -> Expr {
    std::mem::replace(expr, null())
}
fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}
