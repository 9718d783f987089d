//! Functions that make a jsonb of another one.
use super::{number_of, place, read};
use crate::functions::builtin::text::text;
use crate::functions::builtin::wrong_arguments;
use terrace_engine::types::array::read_items;
use terrace_engine::types::json::Json;
use terrace_engine::{Datum, EngineError, Result};

fn made(value: &Json) -> Result<Datum> {
    Ok(Datum::Jsonb(value.shown()?.into()))
}

fn refused(message: &str) -> EngineError {
    EngineError::new("22023", message)
}

fn is_scalar(value: &Json) -> bool {
    !matches!(value, Json::Array(_) | Json::Object(_))
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// `a || b`: the members of both, or an array.
pub(super) fn concat(values: &[Datum]) -> Result<Datum> {
    let items = |value: Json| match value {
        Json::Array(items) => items,
        other => vec![other],
    };
    made(&match (read(&values[0])?, read(&values[1])?) {
        (Json::Object(left), Json::Object(right)) => Json::object(left.into_iter().chain(right).collect()),
        (left, right) => Json::Array(items(left).into_iter().chain(items(right)).collect()),
    })
}

pub(super) fn delete_key(values: &[Datum]) -> Result<Datum> {
    let key = text(&values[1])?;
    without(read(&values[0])?, |name| name == key)
}

pub(super) fn delete_keys(values: &[Datum]) -> Result<Datum> {
    let keys = read_items(text(&values[1])?)?;
    without(read(&values[0])?, |name| keys.iter().flatten().any(|key| key == name))
}

fn without(mut value: Json, is_gone: impl Fn(&str) -> bool) -> Result<Datum> {
    match &mut value {
        Json::Object(members) => members.retain(|(name, _)| !is_gone(name)),
        Json::Array(items) => items.retain(|item| !matches!(item, Json::Text(text) if is_gone(text))),
        _ => return Err(refused("cannot delete from scalar")),
    }
    made(&value)
}

pub(super) fn delete_index(values: &[Datum]) -> Result<Datum> {
    let Datum::Int4(number) = values[1] else { return Err(wrong_arguments(values)) };
    let mut value = read(&values[0])?;
    match &mut value {
        Json::Array(items) => {
            if let Some(at) = place(number, items.len()) {
                items.remove(at);
            }
        }
        Json::Object(_) => return Err(refused("cannot delete from object using integer index")),
        _ => return Err(refused("cannot delete from scalar")),
    }
    made(&value)
}

/// What is done at the end of a path.
#[derive(Clone, Copy, PartialEq)]
enum Doing {
    Delete,
    /// Where it is there.
    Replace,
    /// Or added where it is not.
    Set,
    Before,
    After,
}

impl Doing {
    fn adds(self) -> bool {
        !matches!(self, Doing::Delete | Doing::Replace)
    }
}

struct Edit<'a> {
    doing: Doing,
    path: &'a [Option<String>],
    new: Json,
}

pub(super) fn delete_path(values: &[Datum]) -> Result<Datum> {
    edited(values, Doing::Delete, "cannot delete path in scalar")
}

pub(super) fn set(values: &[Datum]) -> Result<Datum> {
    let create = !matches!(values.get(3), Some(Datum::Bool(false)));
    edited(values, if create { Doing::Set } else { Doing::Replace }, "cannot set path in scalar")
}

pub(super) fn insert(values: &[Datum]) -> Result<Datum> {
    let after = matches!(values.get(3), Some(Datum::Bool(true)));
    edited(values, if after { Doing::After } else { Doing::Before }, "cannot set path in scalar")
}

fn edited(values: &[Datum], doing: Doing, of_scalar: &str) -> Result<Datum> {
    let mut value = read(&values[0])?;
    if is_scalar(&value) {
        return Err(refused(of_scalar));
    }
    let path = read_items(text(&values[1])?)?;
    if path.is_empty() || (is_empty(&value) && !doing.adds()) {
        return Ok(values[0].clone());
    }
    let new = values.get(2).map_or(Ok(Json::Null), read)?;
    Edit { doing, path: &path, new }.walk(&mut value, 0)?;
    made(&value)
}

impl Edit<'_> {
    /// Follows the path from `level` on.
    fn walk(&self, value: &mut Json, level: usize) -> Result<()> {
        let Some(step) = &self.path[level] else {
            return Err(EngineError::new("22004", format!("path element at position {} is null", level + 1)));
        };
        match value {
            Json::Array(items) => self.in_array(items, step, level),
            Json::Object(members) => self.in_object(members, step, level),
            _ => Ok(()),
        }
    }

    fn in_array(&self, items: &mut Vec<Json>, step: &str, level: usize) -> Result<()> {
        let last = level + 1 == self.path.len();
        let Some(number) = number_of(step) else {
            let message = format!("path element at position {} is not an integer: \"{step}\"", level + 1);
            return Err(EngineError::new("22P02", message));
        };
        match (place(number, items.len()), last) {
            (Some(at), false) => self.walk(&mut items[at], level + 1)?,
            (Some(at), true) => match self.doing {
                Doing::Delete => drop(items.remove(at)),
                Doing::Replace | Doing::Set => items[at] = self.new.clone(),
                Doing::Before => items.insert(at, self.new.clone()),
                Doing::After => items.insert(at + 1, self.new.clone()),
            },
            (None, true) if self.doing.adds() => {
                let at = if number < 0 { 0 } else { items.len() };
                items.insert(at, self.new.clone());
            }
            (None, _) => {}
        }
        Ok(())
    }

    fn in_object(&self, members: &mut Vec<(Box<str>, Json)>, step: &str, level: usize) -> Result<()> {
        let last = level + 1 == self.path.len();
        let at = members.iter().position(|(name, _)| name.as_ref() == step);
        match (at, last) {
            (Some(at), false) => self.walk(&mut members[at].1, level + 1)?,
            (Some(at), true) => match self.doing {
                Doing::Delete => drop(members.remove(at)),
                Doing::Replace | Doing::Set => members[at].1 = self.new.clone(),
                Doing::Before | Doing::After => {
                    let hint = "Try using the function jsonb_set to replace key value.";
                    return Err(refused("cannot replace existing key").with_hint(hint));
                }
            },
            (None, true) if self.doing.adds() => {
                members.push((step.into(), self.new.clone()));
                if let Json::Object(ordered) = Json::object(std::mem::take(members)) {
                    *members = ordered;
                }
            }
            (None, _) => {}
        }
        Ok(())
    }
}

pub(super) fn strip_nulls(values: &[Datum]) -> Result<Datum> {
    let mut value = read(&values[0])?;
    strip(&mut value);
    made(&value)
}

fn strip(value: &mut Json) {
    match value {
        Json::Array(items) => items.iter_mut().for_each(strip),
        Json::Object(members) => {
            members.retain(|(_, member)| *member != Json::Null);
            members.iter_mut().for_each(|(_, member)| strip(member));
        }
        _ => {}
    }
}
