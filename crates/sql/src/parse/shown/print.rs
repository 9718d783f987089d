//! The text of an expression whose types are known.
use std::borrow::Cow;

/// An expression, with its conversions written out.
#[derive(Clone, Debug)]
pub(super) enum Shown {
    /// A column, or a function without parentheses.
    Plain(String),
    Constant {
        text: String,
        label: Option<Cow<'static, str>>,
    },
    /// A constant in quotes, or NULL, before it has a type.
    Unknown(Option<String>),
    /// `(x)::type`.
    Cast(Box<Shown>, String),
    Call(String, Vec<Shown>),
    Operator(Box<[Shown; 2]>, String),
    And(Vec<Shown>),
    Or(Vec<Shown>),
    Not(Box<Shown>),
    /// `x IS NULL`.
    Is(Box<Shown>, String),
    Array(Vec<Shown>),
    Any {
        left: Box<Shown>,
        op: String,
        all: bool,
        array: Box<Shown>,
    },
    /// The operand, the conditions with their results, and the last result.
    Case(Option<Box<Shown>>, Vec<[Shown; 2]>, Box<Shown>),
    /// A query that is a value, or has a value or a word before it.
    Query {
        left: Option<Box<Shown>>,
        word: String,
        query: String,
    },
    /// `f(x) FILTER (WHERE c)`.
    Filtered(Box<[Shown; 2]>),
    /// `f(x) OVER w`.
    Over(Box<Shown>, String),
}

/// A line's end that is not within a constant, until all is laid out.
pub(super) const LINE: char = '\0';

/// A text that stands so many columns further to the right.
pub(super) fn moved(text: &str, columns: usize) -> String {
    text.replace(LINE, &format!("{LINE}{}", " ".repeat(columns)))
}

/// A text as it is shown: no line ends with spaces. `None`: it goes too far to the right for PostgreSQL's way.
pub(super) fn laid_out(text: &str) -> Option<String> {
    let mut lines: Vec<&str> = text.split(LINE).collect();
    let last = lines.pop().unwrap_or_default();
    if lines.iter().skip(1).chain([&last]).any(|line| line.len() - line.trim_start_matches(' ').len() > FURTHEST) {
        return None;
    }
    let mut made: String = lines.into_iter().flat_map(|line| [line.trim_end_matches(' '), "\n"]).collect();
    made.push_str(last);
    Some(made)
}

/// Behind it PostgreSQL goes to the right in smaller steps.
const FURTHEST: usize = 39;

impl Shown {
    /// `pretty`: without the parentheses that the precedence of operators makes needless.
    pub(super) fn text(&self, pretty: bool) -> String {
        let wrapped = |text: String| if pretty { text } else { format!("({text})") };
        let list = |all: &[Shown]| all.iter().map(|one| one.text(pretty)).collect::<Vec<_>>().join(", ");
        let joined =
            |all: &[Shown], word: &str| all.iter().map(|one| self.inner(one, pretty)).collect::<Vec<_>>().join(word);
        match self {
            Shown::Plain(text) | Shown::Constant { text, label: None } => text.clone(),
            Shown::Unknown(text) => text.as_deref().map_or("NULL".into(), super::quoted),
            Shown::Constant { text, label: Some(label) } => format!("{text}::{label}"),
            // A constant of the type itself, cut to a length.
            Shown::Cast(arg, to) => match &**arg {
                Shown::Constant { text, label: Some(own) } if to.starts_with(full(own)) => format!("{text}::{to}"),
                arg if pretty => format!("{}::{to}", self.inner(arg, pretty)),
                arg => format!("({})::{to}", arg.text(pretty)),
            },
            Shown::Call(name, args) => format!("{name}({})", list(args)),
            Shown::Operator(args, op) => {
                let [left, right] = &**args;
                wrapped(format!("{} {op} {}", self.inner(left, pretty), self.inner(right, pretty)))
            }
            Shown::And(all) => wrapped(joined(all, " AND ")),
            Shown::Or(all) => wrapped(joined(all, " OR ")),
            Shown::Not(arg) => wrapped(format!("NOT {}", self.inner(arg, pretty))),
            Shown::Is(arg, test) => wrapped(format!("{} {test}", self.inner(arg, pretty))),
            Shown::Array(items) => format!("ARRAY[{}]", list(items)),
            Shown::Any { left, op, all, array } => {
                let word = if *all { "ALL" } else { "ANY" };
                let left = self.inner(left, pretty);
                wrapped(format!("{left} {op} {word} ({})", array.text(pretty)))
            }
            Shown::Case(operand, whens, otherwise) => {
                let operand = operand.as_ref().map_or(String::new(), |operand| format!(" {}", operand.text(pretty)));
                let mut text = format!("{LINE}CASE{operand}");
                for [condition, result] in whens {
                    let when = format!("{LINE}WHEN {} THEN {}", condition.text(pretty), result.text(pretty));
                    text.push_str(&moved(&when, 4));
                }
                text.push_str(&moved(&format!("{LINE}ELSE {}", otherwise.text(pretty)), 4));
                format!("{text}{LINE}END")
            }
            Shown::Query { left: None, word, query } if word.is_empty() => format!("({query})"),
            Shown::Query { left: None, word, query } => format!("({word} ({query}))"),
            Shown::Query { left: Some(left), word, query } => format!("({} {word} ({query}))", left.text(pretty)),
            Shown::Over(call, window) => format!("{} OVER {window}", call.text(pretty)),
            Shown::Filtered(both) => {
                let [call, condition] = &**both;
                format!("{} FILTER (WHERE {})", call.text(pretty), condition.text(pretty))
            }
        }
    }

    pub(super) fn is_call(&self) -> bool {
        matches!(self, Shown::Call(..) | Shown::Filtered(..) | Shown::Over(..))
    }

    /// A part of this.
    fn inner(&self, part: &Shown, pretty: bool) -> String {
        let text = part.text(pretty);
        if pretty && self.needs_parens(part) { format!("({text})") } else { text }
    }

    /// Whether a part of this stands in parentheses where needless ones are left out.
    fn needs_parens(&self, part: &Shown) -> bool {
        match part {
            Shown::Plain(_)
            | Shown::Constant { .. }
            | Shown::Unknown(_)
            | Shown::Call(..)
            | Shown::Case(..)
            | Shown::Filtered(..)
            | Shown::Over(..)
            | Shown::Array(_)
            | Shown::Cast(..) => false,
            Shown::And(_) => !matches!(self, Shown::Or(_)),
            Shown::Or(_) | Shown::Not(_) => {
                !matches!(self, Shown::Or(_) | Shown::And(_)) || matches!(part, Shown::Or(_))
            }
            Shown::Operator(..) | Shown::Is(..) | Shown::Any { .. } | Shown::Query { .. } => {
                !matches!(self, Shown::And(_) | Shown::Or(_) | Shown::Not(_))
            }
        }
    }
}

/// A type as it stands before its length.
fn full(label: &str) -> &str {
    if label == "bpchar" { "character(" } else { label }
}
