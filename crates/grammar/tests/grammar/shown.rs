//! Expressions with all their parentheses.

use terrace_grammar::statement::{Body, Expr, ExprKind, Literal, Members, Query, Select, Statement};
use terrace_grammar::{Options, parse};

/// The only statement of a text.
pub(crate) fn statement(sql: &str) -> Statement {
    let mut all = parse(sql, Options::default()).unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!(all.len(), 1, "{sql}");
    all.remove(0).into_statement()
}

pub(crate) fn query(sql: &str) -> Query {
    match statement(sql) {
        Statement::Query(query) => *query,
        other => panic!("{sql} is {other:?}"),
    }
}

pub(crate) fn select(sql: &str) -> Select {
    match query(sql).body {
        Body::Select(select) => *select,
        other => panic!("{sql} is {other:?}"),
    }
}

/// An expression as it is understood.
pub(crate) fn understood(expr: &str) -> String {
    let select = select(&format!("SELECT {expr}"));
    assert_eq!(select.items.len(), 1, "{expr}");
    shown(&select.items[0].expr)
}

fn joined(list: &[Expr], between: &str) -> String {
    list.iter().map(shown).collect::<Vec<_>>().join(between)
}

pub(crate) fn shown(expr: &Expr) -> String {
    let not = |negated: bool| if negated { "not " } else { "" };
    match &expr.kind {
        ExprKind::Column(name) => name.shown(),
        ExprKind::Literal(Literal::Int(value)) => value.to_string(),
        ExprKind::Literal(Literal::Number(digits)) => digits.clone(),
        ExprKind::Literal(Literal::Text(text)) => format!("'{text}'"),
        ExprKind::Literal(Literal::Null) => "null".to_owned(),
        ExprKind::Literal(Literal::Bool(value)) => value.to_string(),
        ExprKind::Unary { op, arg } => format!("({} {})", op.symbol, shown(arg)),
        ExprKind::Binary { op, args } => format!("({} {} {})", shown(&args[0]), op.symbol, shown(&args[1])),
        ExprKind::And(all) => format!("({})", joined(all, " and ")),
        ExprKind::Or(all) => format!("({})", joined(all, " or ")),
        ExprKind::Not(arg) => format!("(not {})", shown(arg)),
        ExprKind::Is { arg, test, negated } => format!("({} is {}{test:?})", shown(arg), not(*negated)),
        ExprKind::Distinct { args, negated, .. } => {
            format!("({} is {}distinct from {})", shown(&args[0]), not(*negated), shown(&args[1]))
        }
        ExprKind::Between { args, negated, .. } => {
            format!("({} {}between {} and {})", shown(&args[0]), not(*negated), shown(&args[1]), shown(&args[2]))
        }
        ExprKind::InList { arg, list, negated, .. } => {
            format!("({} {}in ({}))", shown(arg), not(*negated), joined(list, ", "))
        }
        ExprKind::Match { kind, negated, args, escape, .. } => {
            let escape = escape.as_ref().map_or(String::new(), |escape| format!(" escape {}", shown(escape)));
            format!("({} {}{kind:?} {}{escape})", shown(&args[0]), not(*negated), shown(&args[1]))
        }
        ExprKind::Quantified { op, quantifier, left, right: Members::Array(right) } => {
            format!("({} {} {quantifier:?} {})", shown(left), op.symbol, shown(right))
        }
        ExprKind::Cast { arg, to, .. } => format!("({}::{})", shown(arg), to.name.shown()),
        ExprKind::Collate { arg, collation, .. } => format!("({} collate {})", shown(arg), collation.shown()),
        ExprKind::AtTimeZone { args, .. } => format!("({} at time zone {})", shown(&args[0]), shown(&args[1])),
        ExprKind::Call(call) => {
            let args: Vec<String> = call.args.iter().map(|arg| shown(&arg.value)).collect();
            format!("{}({})", call.name.shown(), args.join(", "))
        }
        ExprKind::Row { fields, .. } => format!("row({})", joined(fields, ", ")),
        ExprKind::Scalar(_) => "(select)".to_owned(),
        other => format!("{other:?}"),
    }
}
