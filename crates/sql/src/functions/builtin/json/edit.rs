//! Functions that make a jsonb of another one.
use super::{number_of, place, read};
use crate::functions::builtin::text::text;
use crate::functions::builtin::wrong_arguments;
use terrace_engine::types::array;
use terrace_engine::types::json::Json;
use terrace_engine::{Datum, EngineError, Result};

pub(super) fn made(value: &Json) -> Result<Datum> {
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
    let keys = steps(text(&values[1])?)?;
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
    /// Or added with all that leads to it.
    Part,
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

/// `SET x['a'][1] = new`: a jsonb, what is new, and the steps.
pub(super) fn with_part(values: &[Datum]) -> Result<Datum> {
    let path = values[2..].iter().map(|step| match step {
        Datum::Null => Err(EngineError::new("22004", "jsonb subscript in assignment must not be null")),
        step => Ok(Some(text(step)?.to_owned())),
    });
    let path = path.collect::<Result<Vec<Option<String>>>>()?;
    let mut value = read(&values[0])?;
    Edit { doing: Doing::Part, path: &path, new: read(&values[1])? }.walk(&mut value, 0)?;
    made(&value)
}

const TREATMENTS: &str =
    "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"";

/// `jsonb_set_lax`
pub(super) fn set_lax(values: &[Datum]) -> Result<Datum> {
    if [0, 1, 3].iter().any(|at| values.get(*at) == Some(&Datum::Null)) {
        return Ok(Datum::Null);
    }
    let treatment = match values.get(4) {
        None => "use_json_null",
        Some(Datum::Null) => return Err(refused(TREATMENTS)),
        Some(given) => text(given)?,
    };
    let create = values.get(3).cloned().unwrap_or(Datum::Bool(true));
    let replaced = |by: Datum| set(&[values[0].clone(), values[1].clone(), by, create.clone()]);
    match (&values[2], treatment) {
        (Datum::Null, "use_json_null") => replaced(Datum::Jsonb("null".into())),
        (Datum::Null, "delete_key") => delete_path(&values[..2]),
        (Datum::Null, "return_target") => Ok(values[0].clone()),
        (Datum::Null, "raise_exception") => {
            let detail = "Exception was raised because null_value_treatment is \"raise_exception\".";
            let hint =
                "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.";
            Err(EngineError::new("22004", "JSON value must not be null").with_detail(detail).with_hint(hint))
        }
        (Datum::Null, _) => Err(refused(TREATMENTS)),
        (new, _) => replaced(new.clone()),
    }
}

fn edited(values: &[Datum], doing: Doing, of_scalar: &str) -> Result<Datum> {
    let (mut value, path) = (read(&values[0])?, steps(text(&values[1])?)?);
    if is_scalar(&value) {
        return Err(refused(of_scalar));
    }
    if path.is_empty() || (is_empty(&value) && !doing.adds()) {
        return Ok(values[0].clone());
    }
    let new = values.get(2).map_or(Ok(Json::Null), read)?;
    Edit { doing, path: &path, new }.walk(&mut value, 0)?;
    made(&value)
}

/// How many items an assignment may make null before the one that it sets.
const MAX_GAP: usize = 1 << 22;

impl Edit<'_> {
    /// What stands at the step of a level, and is new: all that the steps behind it lead to.
    fn beyond(&self, level: usize) -> Result<Json> {
        let mut made = self.new.clone();
        for step in self.path[level + 1..].iter().rev().flatten() {
            made = match number_of(step) {
                Some(number) => Json::Array(nulls(number.max(0) as usize)?.chain([made]).collect()),
                None => Json::Object(vec![(step.as_str().into(), made)]),
            };
        }
        Ok(made)
    }

    /// Follows the path from `level` on.
    fn walk(&self, value: &mut Json, level: usize) -> Result<()> {
        let Some(step) = &self.path[level] else {
            return Err(EngineError::new("22004", format!("path element at position {} is null", level + 1)));
        };
        match value {
            Json::Array(items) => self.in_array(items, step, level),
            Json::Object(members) => self.in_object(members, step, level),
            _ if self.doing == Doing::Part => {
                let detail = "The path assumes key is a composite object, but it is a scalar value.";
                Err(refused("cannot replace existing key").with_detail(detail))
            }
            _ => Ok(()),
        }
    }

    fn in_array(&self, items: &mut Vec<Json>, step: &str, level: usize) -> Result<()> {
        let last = level + 1 == self.path.len();
        let Some(number) = number_of(step) else {
            let message = format!("path element at position {} is not an integer: \"{step}\"", level + 1);
            return Err(EngineError::new("22P02", message));
        };
        if self.doing == Doing::Part && i64::from(number) < -(items.len() as i64) {
            return Err(refused(&format!("path element at position {} is out of range: {number}", level + 1)));
        }
        match (place(number, items.len()), last) {
            (Some(at), false) => self.walk(&mut items[at], level + 1)?,
            (Some(at), true) => match self.doing {
                Doing::Delete => drop(items.remove(at)),
                Doing::Replace | Doing::Set | Doing::Part => items[at] = self.new.clone(),
                Doing::Before => items.insert(at, self.new.clone()),
                Doing::After => items.insert(at + 1, self.new.clone()),
            },
            (None, _) if self.doing == Doing::Part => {
                items.extend(nulls(number as usize - items.len())?);
                items.push(self.beyond(level)?);
            }
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
                Doing::Replace | Doing::Set | Doing::Part => members[at].1 = self.new.clone(),
                Doing::Before | Doing::After => {
                    let hint = "Try using the function jsonb_set to replace key value.";
                    return Err(refused("cannot replace existing key").with_hint(hint));
                }
            },
            (None, last) if self.doing == Doing::Part || (last && self.doing.adds()) => {
                members.push((step.into(), if last { self.new.clone() } else { self.beyond(level)? }));
                if let Json::Object(ordered) = Json::object(std::mem::take(members)) {
                    *members = ordered;
                }
            }
            (None, _) => {}
        }
        Ok(())
    }
}

/// What fills an array before an item.
fn nulls(count: usize) -> Result<impl Iterator<Item = Json>> {
    match count {
        0..=MAX_GAP => Ok(std::iter::repeat_n(Json::Null, count)),
        _ => {
            let message = format!("an assignment makes at most {MAX_GAP} items of a jsonb null");
            Err(EngineError::new("54000", message))
        }
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

/// The items of an array's text that has one dimension. 2202E
fn steps(text: &str) -> Result<Vec<Option<String>>> {
    let (shape, items) = array::read(text)?;
    match shape.len() {
        0 | 1 => Ok(items),
        _ => Err(EngineError::new("2202E", "wrong number of array subscripts")),
    }
}
