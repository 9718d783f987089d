//! Expressions that the catalogue keeps as text: defaults and check constraints.
//!
//! 1. A text is kept as it was written, with single spaces. It is changed in the places of names only, so that what is
//!    read back is what was written.
use crate::error::unsupported;
use crate::parse::depth::{OF_DEFAULT, depth};
use crate::parse::qualified::{Edit, edited};
use terrace_engine::types::{Style, Zone, clock};
use terrace_engine::{Check, DataType, DomainCheck, EngineError, Result};
use terrace_grammar::statement::{Body, Expr, ExprKind, Literal, Node, Statement, walk};
use terrace_grammar::{Parsed, token_end};

const BEFORE: &str = "SELECT ";

/// An expression that was kept, with the text that its places are places of.
pub(crate) struct Stored {
    text: String,
    parsed: Parsed,
}

impl Stored {
    /// `None` where the text is no expression.
    pub(crate) fn read(text: &str) -> Option<Stored> {
        let text = format!("{BEFORE}{text}");
        let mut all = crate::parse::parsed(&text).ok()?;
        let parsed = all.pop().filter(|_| all.is_empty())?;
        item(&parsed)?;
        Some(Stored { text, parsed })
    }

    /// A bound on its levels.
    pub(crate) fn depth(&self) -> Result<usize> {
        depth(&self.parsed)
    }

    /// The text that places are places of.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn expr(&self) -> &Expr {
        item(&self.parsed).expect("it was looked at when it was read")
    }

    /// Constants that may be times in the session's zone: their places, each with the same time in UTC.
    pub(crate) fn times(&self) -> Vec<Edit> {
        let mut found = vec![];
        walk(Node::Expr(self.expr()), &mut |node| {
            if let Node::Expr(Expr { at, kind: ExprKind::Literal(Literal::Text(text)) }) = node
                && self.text[*at as usize..].trim_start_matches(['e', 'E']).starts_with('\'')
                && let Some(utc) = in_utc(text)
            {
                found.push((*at as usize..token_end(&self.text, *at) as usize, format!("'{utc}'")));
            }
            true
        });
        found.sort_by_key(|(place, _)| place.start);
        found
    }

    /// Constants that may be times of the clock: their places, each with the time that it is now.
    pub(crate) fn clock_words(&self) -> Vec<Edit> {
        clock_words(Node::Expr(self.expr()), &self.text)
    }

    /// The text with other texts in some places.
    pub(crate) fn edited(&self, edits: Vec<Edit>) -> String {
        edited(&self.text, edits)[BEFORE.len()..].to_owned()
    }
}

/// The same of any text.
pub(crate) fn clock_words(node: Node<'_>, whole: &str) -> Vec<Edit> {
    let mut found = vec![];
    walk(node, &mut |node| {
        if let Node::Expr(Expr { at, kind: ExprKind::Literal(Literal::Text(text)) }) = node
            && let Some(time) = of_clock(text)
        {
            found.push((*at as usize..token_end(whole, *at) as usize, format!("'{time}'")));
        }
        true
    });
    found.sort_by_key(|(place, _)| place.start);
    found
}

/// What a text that asks for the clock means now, with its zone.
fn of_clock(text: &str) -> Option<String> {
    let (time, asked) = clock::watch(|| DataType::Timestamptz.parse(text));
    let style = Style { zone: Style::current().zone, ..Style::default() };
    time.ok().filter(|_| asked).map(|time| style.scope(|| crate::values::show(&time)))
}

/// A time whose text states no zone, in UTC.
fn in_utc(text: &str) -> Option<String> {
    let read = || DataType::Timestamptz.parse(text).ok();
    let time = read()?;
    let stated = Zone::Fixed(3600).scope(read) == Zone::Fixed(7200).scope(read);
    (!stated).then(|| Style::default().scope(|| crate::values::show(&time)))
}

/// Whether there are constants that are read as other times where DateStyle or IntervalStyle is another.
pub(crate) fn has_open_times(node: Node<'_>) -> bool {
    let mut found = false;
    walk(node, &mut |node| {
        if let Node::Expr(Expr { kind: ExprKind::Literal(Literal::Text(text)), .. }) = node {
            let read = || (DataType::Timestamptz.parse(text).ok(), DataType::Interval.parse(text).ok());
            let here = read();
            found |= Style::current().readings().into_iter().any(|style| style.scope(read) != here);
        }
        true
    });
    found
}

/// Whether such constants stand in a row that is cast to a type: no plan tells how its parts are read.
pub(crate) fn has_open_rows(node: Node<'_>) -> bool {
    let mut found = false;
    walk(node, &mut |node| {
        if let Node::Expr(Expr { kind: ExprKind::Cast { arg, .. }, .. }) = node {
            found |= matches!(arg.kind, ExprKind::Row { .. }) && has_open_times(Node::Expr(arg));
        }
        !found
    });
    found
}

pub(crate) fn open_times() -> EngineError {
    let error = unsupported("a constant in a definition whose reading depends on DateStyle or IntervalStyle");
    error.with_hint("Write dates as YYYY-MM-DD, and each part of an interval with its sign.")
}

/// The one item of a SELECT.
fn item(parsed: &Parsed) -> Option<&Expr> {
    let Statement::Query(query) = parsed.statement() else { return None };
    let Body::Select(select) = &query.body else { return None };
    match select.items.as_slice() {
        [item] if item.alias.is_none() => Some(&item.expr),
        _ => None,
    }
}

/// A column's default. 54001 if it has more levels than the statements that evaluate it have stack for.
pub(crate) fn of_default(text: &str) -> Result<Stored> {
    let broken = || EngineError::new("XX000", format!("the default {text} is not an expression"));
    let stored = Stored::read(text).ok_or_else(broken)?;
    if stored.depth()? > OF_DEFAULT {
        return Err(EngineError::new("54001", format!("a default chains or nests more than {OF_DEFAULT} levels")));
    }
    Ok(stored)
}

/// The condition of a constraint.
pub(crate) fn of_check(check: &Check) -> Result<Stored> {
    let broken = || EngineError::new("XX000", format!("the constraint {} is not an expression", check.name));
    Stored::read(&check.sql).ok_or_else(broken)
}

/// The names of the columns that an expression names.
pub(crate) fn columns_of(expr: &Expr) -> Vec<String> {
    let mut names = vec![];
    walk(Node::Expr(expr), &mut |node| {
        if let Node::Expr(Expr { kind: ExprKind::Column(name), .. }) = node
            && let [column] = name.parts()
        {
            names.push(column.name.clone());
        }
        true
    });
    names.sort();
    names.dedup();
    names
}

/// What makes FALSE NULL.
const OR_NULL: &str = " OR NULL";

/// The condition of a partial index, as its computed column has it: TRUE or NULL.
pub(crate) fn as_condition(text: &str) -> String {
    format!("({text}){OR_NULL}")
}

/// The condition that a computed column stands for, or its expression.
pub(crate) fn of_computed(text: &str) -> &str {
    text.strip_suffix(OR_NULL).map_or(text, terrace_grammar::without_parens)
}

/// What an expression of an index is called where it needs a name, beside these.
pub(crate) fn key_name(expr: &Expr, others: &[String]) -> String {
    fn title(expr: &Expr) -> &str {
        match &expr.kind {
            ExprKind::Column(name) => &name.last().name,
            ExprKind::Call(call) => &call.name.last().name,
            ExprKind::Special { function, .. } => function.name(),
            ExprKind::Case { .. } => "case",
            ExprKind::Cast { arg, to, .. } => match title(arg) {
                "expr" => &to.name.last().name,
                inner => inner,
            },
            _ => "expr",
        }
    }
    let base = title(expr);
    let numbered = |n: usize| if n == 0 { base.to_owned() } else { format!("{base}{n}") };
    (0..).map(numbered).find(|name| !others.contains(name)).expect("some number is free")
}

/// The names of the columns that a stored constraint is about.
pub(crate) fn columns_named(check: &Check) -> Vec<String> {
    of_check(check).map_or(vec![], |stored| columns_of(stored.expr()))
}

/// The text of a new constraint, with the table's name taken off its columns. What depends on more than its row is
/// refused.
pub(crate) fn constraint(text: &str, table: &str) -> Result<String> {
    let stored = Stored::read(terrace_grammar::without_parens(text)).or_else(|| Stored::read(text));
    let stored = stored.ok_or_else(|| EngineError::new("XX000", format!("{text} is not an expression")))?;
    let (mut edits, mut refused) = (vec![], None);
    walk(Node::Expr(stored.expr()), &mut |node| {
        match node {
            Node::Query(_) => refused = Some(unsupported("a subquery in a check constraint")),
            Node::Expr(expr) => match &expr.kind {
                ExprKind::Parameter(_) => {
                    let message = "there is no parameter in a check constraint";
                    refused = Some(EngineError::new("42P02", message));
                }
                ExprKind::Column(name) => {
                    if let [of, column] = name.parts()
                        && of.name == table
                    {
                        edits.push((of.at as usize..column.at as usize, String::new()));
                    }
                }
                _ => {}
            },
        }
        refused.is_none()
    });
    match refused {
        Some(error) => Err(error),
        None => Ok(stored.edited(edits)),
    }
}

/// Constraints with a column renamed.
pub(crate) fn renamed(checks: &[Check], from: &str, to: &str) -> Result<Vec<Check>> {
    let quoted = format!("\"{}\"", to.replace('"', "\"\""));
    let rename = |check: &Check| {
        let stored = of_check(check)?;
        let mut edits = vec![];
        walk(Node::Expr(stored.expr()), &mut |node| {
            if let Node::Expr(Expr { kind: ExprKind::Column(name), .. }) = node
                && let [column] = name.parts()
                && column.name == from
            {
                let place = column.at as usize..token_end(&stored.text, column.at) as usize;
                edits.push((place, quoted.clone()));
            }
            true
        });
        Ok(Check { name: check.name.clone(), sql: stored.edited(edits) })
    };
    checks.iter().map(rename).collect()
}

/// What a condition of a domain calls the value.
pub(crate) const VALUE: &str = "value";

/// A condition of a domain as a constraint over a column.
pub(crate) fn over_column(check: &DomainCheck, column: &str) -> Result<Check> {
    let own = Check { name: check.name.clone(), sql: check.sql.clone() };
    let renamed = renamed(std::slice::from_ref(&own), VALUE, column)?;
    Ok(renamed.into_iter().next().unwrap_or(own))
}

/// A condition of a domain as PostgreSQL shows it: VALUE in capitals.
pub(crate) fn value_in_capitals(text: &str) -> String {
    let Some(stored) = Stored::read(text) else { return text.to_owned() };
    let mut edits = vec![];
    walk(Node::Expr(stored.expr()), &mut |node| {
        if let Node::Expr(Expr { kind: ExprKind::Column(name), .. }) = node
            && let [column] = name.parts()
            && column.name == VALUE
        {
            let place = column.at as usize..token_end(&stored.text, column.at) as usize;
            edits.push((place, VALUE.to_ascii_uppercase()));
        }
        true
    });
    stored.edited(edits)
}

/// Those that do not name the column.
pub(crate) fn without(checks: &[Check], column: &str) -> Result<Vec<Check>> {
    let mut kept = vec![];
    for check in checks {
        if !columns_of(of_check(check)?.expr()).iter().any(|name| name == column) {
            kept.push(check.clone());
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests;
