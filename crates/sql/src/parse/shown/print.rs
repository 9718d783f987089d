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
}

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
        }
    }

    pub(super) fn is_call(&self) -> bool {
        matches!(self, Shown::Call(..))
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
            | Shown::Array(_)
            | Shown::Cast(..) => false,
            Shown::And(_) => !matches!(self, Shown::Or(_)),
            Shown::Or(_) | Shown::Not(_) => {
                !matches!(self, Shown::Or(_) | Shown::And(_)) || matches!(part, Shown::Or(_))
            }
            Shown::Operator(..) | Shown::Is(..) | Shown::Any { .. } => {
                !matches!(self, Shown::And(_) | Shown::Or(_) | Shown::Not(_))
            }
        }
    }
}

/// A type as it stands before its length.
fn full(label: &str) -> &str {
    if label == "bpchar" { "character(" } else { label }
}
