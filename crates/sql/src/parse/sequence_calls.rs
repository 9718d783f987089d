//! `nextval`, `currval`, `lastval` and `setval` in a statement's tree. They stand where a statement evaluates them
//! once: in VALUES, in a default, in a SELECT without FROM.
use crate::parse::relation;
use crate::parse::stored::Stored;
use terrace_engine::{ColumnDef, EngineError, RelationName, Result};
use terrace_grammar::statement::{self as tree, ExprKind, Literal, Node, walk};

/// A function of sequences, with its arguments.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Next(RelationName),
    Current(RelationName),
    Last,
    Set(RelationName, i64, bool),
    /// One with arguments that are no literals, which have to be computed first.
    Computed(String, Vec<tree::Expr>),
}

impl Call {
    pub(crate) fn writes(&self) -> bool {
        match self {
            Call::Next(_) | Call::Set(..) => true,
            Call::Computed(function, _) => function != "currval",
            Call::Current(_) | Call::Last => false,
        }
    }

    /// The same call, as a definition means it.
    pub(crate) fn of_definition(self) -> Call {
        match self {
            Call::Next(name) => Call::Next(name.of_definition()),
            Call::Current(name) => Call::Current(name.of_definition()),
            Call::Set(name, value, called) => Call::Set(name.of_definition(), value, called),
            Call::Last | Call::Computed(..) => self,
        }
    }
}

/// The sequence that a text names.
pub(crate) fn named(text: &str) -> Result<RelationName> {
    let invalid = || EngineError::new("42602", format!("invalid name syntax: {text}"));
    relation(&terrace_grammar::name_of(text).ok_or_else(invalid)?)
}

/// The literal that names a sequence in a call of such a function, and its text.
pub(crate) fn sequence_literal(expr: &tree::Expr) -> Option<(&tree::Expr, &str)> {
    fn literal(expr: &tree::Expr) -> Option<(&tree::Expr, &str)> {
        match &expr.kind {
            ExprKind::Literal(Literal::Text(text)) => Some((expr, text)),
            ExprKind::Cast { arg, .. } => literal(arg),
            _ => None,
        }
    }
    let ExprKind::Call(call) = &expr.kind else { return None };
    let is_of_sequences = matches!(call.name.last().name.as_str(), "nextval" | "currval" | "setval");
    literal(&call.args.first().filter(|_| is_of_sequences)?.value)
}

/// The call that an expression is.
pub(crate) fn call_of(expr: &tree::Expr) -> Option<Result<Call>> {
    let ExprKind::Call(call) = &expr.kind else { return None };
    let name = call.name.last().name.as_str();
    if !matches!(name, "nextval" | "currval" | "lastval" | "setval") {
        return None;
    }
    let arguments: Vec<&tree::Expr> = call.args.iter().map(|arg| &arg.value).collect();
    let sequence = sequence_literal(expr).map(|(_, text)| text);
    let computed = || Ok(Call::Computed(name.to_owned(), arguments.iter().copied().cloned().collect()));
    Some(match (name, arguments.as_slice()) {
        ("nextval" | "currval", [_]) => match sequence {
            Some(text) if name == "nextval" => named(text).map(Call::Next),
            Some(text) => named(text).map(Call::Current),
            None => computed(),
        },
        ("lastval", []) => Ok(Call::Last),
        ("setval", [_, value, rest @ ..]) if rest.len() <= 1 => {
            let called = rest.first().map_or(&ExprKind::Literal(Literal::Bool(true)), |called| &called.kind);
            match (sequence, &value.kind, called) {
                (Some(text), ExprKind::Literal(Literal::Int(value)), ExprKind::Literal(Literal::Bool(called))) => {
                    named(text).map(|name| Call::Set(name, *value, *called))
                }
                _ => computed(),
            }
        }
        _ => Err(EngineError::new("42883", format!("function {name} with these arguments does not exist"))),
    })
}

/// Whether there is one within an expression: then it is another value each time.
pub(crate) fn calls_within(expr: &tree::Expr) -> bool {
    let mut found = false;
    walk(Node::Expr(expr), &mut |node| {
        found |= matches!(node, Node::Expr(expr) if call_of(expr).is_some());
        !found
    });
    found
}

/// The sequence that a column's default takes its value from.
pub(crate) fn sequence_of(column: &ColumnDef) -> Option<RelationName> {
    let sql = column.default_sql.as_deref().filter(|sql| sql.contains("nextval"))?;
    match call_of(Stored::read(sql)?.expr())?.ok()? {
        Call::Next(name) => Some(name.of_definition()),
        _ => None,
    }
}
