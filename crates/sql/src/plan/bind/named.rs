//! Calls with arguments by name (`days => 3`): they are put in their places, and what is not given has its default.
use terrace_grammar::statement::{Argument, At, Call, Expr, ExprKind, Literal};

use Missing::{Bool, Needed, Text, Zero};

/// What an argument is that is not given.
#[derive(Clone, Copy)]
enum Missing {
    Needed,
    Zero,
    Bool(bool),
    Text(&'static str),
}

type Params = &'static [(&'static str, Missing)];

const TARGET: [(&str, Missing); 2] = [("target", Needed), ("path", Needed)];

/// The functions whose arguments have names.
const FUNCTIONS: &[(&str, Params)] = &[
    (
        "make_interval",
        &[
            ("years", Zero),
            ("months", Zero),
            ("weeks", Zero),
            ("days", Zero),
            ("hours", Zero),
            ("mins", Zero),
            ("secs", Zero),
        ],
    ),
    (
        "jsonb_set",
        &[("jsonb_in", Needed), ("path", Needed), ("replacement", Needed), ("create_if_missing", Bool(true))],
    ),
    ("jsonb_insert", &[("jsonb_in", Needed), ("path", Needed), ("replacement", Needed), ("insert_after", Bool(false))]),
    (
        "jsonb_set_lax",
        &[
            ("jsonb_in", Needed),
            ("path", Needed),
            ("replacement", Needed),
            ("create_if_missing", Bool(true)),
            ("null_value_treatment", Text("use_json_null")),
        ],
    ),
    ("jsonb_path_exists", &[TARGET[0], TARGET[1], ("vars", Text("{}")), ("silent", Bool(false))]),
    ("jsonb_path_match", &[TARGET[0], TARGET[1], ("vars", Text("{}")), ("silent", Bool(false))]),
    ("jsonb_path_query", &[TARGET[0], TARGET[1], ("vars", Text("{}")), ("silent", Bool(false))]),
    ("jsonb_path_query_array", &[TARGET[0], TARGET[1], ("vars", Text("{}")), ("silent", Bool(false))]),
    ("jsonb_path_query_first", &[TARGET[0], TARGET[1], ("vars", Text("{}")), ("silent", Bool(false))]),
];

/// Whether a function's arguments have names that are known.
pub(super) fn has_names(function: &str) -> bool {
    FUNCTIONS.iter().any(|(name, _)| *name == function)
}

/// The call with its arguments in their places; `None`: no function has arguments of these names.
pub(super) fn in_places(call: &Call, at: At) -> Option<Call> {
    let (_, params) = FUNCTIONS.iter().find(|(name, _)| *name == call.name.last().name)?;
    let mut places: Vec<Option<Expr>> = vec![None; params.len()];
    let mut named = false;
    for (number, arg) in call.args.iter().enumerate() {
        let place = match &arg.name {
            Some(name) => params.iter().position(|(known, _)| *known == name.name)?,
            // Behind one that has a name, all have.
            None if named => return None,
            None => number,
        };
        named |= arg.name.is_some();
        let place = places.get_mut(place).filter(|place| place.is_none())?;
        *place = Some(arg.value.clone());
    }
    let mut args = vec![];
    for (place, (_, default)) in places.into_iter().zip(*params) {
        let literal = |literal: Literal| Expr { at, kind: ExprKind::Literal(literal) };
        let value = match (place, default) {
            (Some(value), _) => value,
            (None, Needed) => return None,
            (None, Zero) => literal(Literal::Int(0)),
            (None, Bool(value)) => literal(Literal::Bool(*value)),
            (None, Text(text)) => literal(Literal::Text((*text).into())),
        };
        args.push(Argument { name: None, value });
    }
    Some(Call { args, ..call.clone() })
}
