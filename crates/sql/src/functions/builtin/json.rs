//! Functions of json and jsonb that take values apart, and those that PostgreSQL's operators stand for.
//!
//! 1. A part of a json is the text that stands there; of a jsonb it is normal already (see
//!    [`terrace_engine::types::json`]).
//! 2. A path comes as PostgreSQL's text of an array.
//! 3. A json whose strings have escapes that mean nothing is refused as a whole, whichever part is wanted.
//!
//! Source: PostgreSQL 15 documentation, 9.16 (JSON Functions and Operators), and what the server answers.
use super::text::text;
use super::{Builtin, Overload, Run, Takes, wrong_arguments};
use terrace_engine::types::array::read_items;
use terrace_engine::types::json::{self, Event, Json, Kind, Reader};
use terrace_engine::{DataType, Datum, EngineError, Result};

mod edit;
mod members;
pub(crate) mod path;

const JSON: Takes = Takes::Is(DataType::Json);
const JSONB: Takes = Takes::Is(DataType::Jsonb);
const TEXT: Takes = Takes::Is(DataType::Text);
const INT: Takes = Takes::Is(DataType::Int4);
const INT8: Takes = Takes::Is(DataType::Int8);
const BOOL: Takes = Takes::Is(DataType::Bool);

type Kernel = fn(&[Datum]) -> Result<Datum>;

const fn of(takes: &'static [Takes], gives: DataType, run: Kernel) -> Overload {
    Overload { takes, more: false, gives, run: Run::Strict(run) }
}

macro_rules! function {
    ($name:literal, [$($takes:expr),*], $gives:ident, $run:expr) => {
        Builtin { name: $name, overloads: &[of(&[$($takes),*], DataType::$gives, $run)] }
    };
}

/// Of `#>` and `#>>`, whose paths are arrays; the functions take texts.
pub(crate) const PATHS: [[&str; 2]; 2] = [["json #>", "jsonb #>"], ["json #>>", "jsonb #>>"]];

const fn of_path(takes: &'static [Takes], gives: DataType, run: Kernel) -> Overload {
    Overload { takes, more: true, gives, run: Run::Strict(run) }
}

const fn lax(takes: &'static [Takes]) -> Overload {
    Overload { takes, more: false, gives: DataType::Jsonb, run: Run::Nulls(edit::set_lax) }
}

pub(super) const TABLE: &[Builtin] = &[
    function!("json_object_field", [JSON, TEXT], Json, field),
    function!("jsonb_object_field", [JSONB, TEXT], Jsonb, field),
    function!("json_object_field_text", [JSON, TEXT], Text, |v| shown(field(v)?)),
    function!("jsonb_object_field_text", [JSONB, TEXT], Text, |v| shown(field(v)?)),
    function!("json_array_element", [JSON, INT], Json, element),
    function!("jsonb_array_element", [JSONB, INT], Jsonb, element),
    function!("json_array_element_text", [JSON, INT], Text, |v| shown(element(v)?)),
    function!("jsonb_array_element_text", [JSONB, INT], Text, |v| shown(element(v)?)),
    function!("json #>", [JSON, TEXT], Json, by_array),
    function!("jsonb #>", [JSONB, TEXT], Jsonb, by_array),
    function!("json #>>", [JSON, TEXT], Text, |v| shown(by_array(v)?)),
    function!("jsonb #>>", [JSONB, TEXT], Text, |v| shown(by_array(v)?)),
    Builtin { name: "json_extract_path", overloads: &[of_path(&[JSON, TEXT], DataType::Json, by_texts)] },
    Builtin { name: "jsonb_extract_path", overloads: &[of_path(&[JSONB, TEXT], DataType::Jsonb, by_texts)] },
    Builtin {
        name: "json_extract_path_text",
        overloads: &[of_path(&[JSON, TEXT], DataType::Text, |v| shown(by_texts(v)?))],
    },
    Builtin {
        name: "jsonb_extract_path_text",
        overloads: &[of_path(&[JSONB, TEXT], DataType::Text, |v| shown(by_texts(v)?))],
    },
    function!("json_array_length", [JSON], Int4, array_length),
    function!("jsonb_array_length", [JSONB], Int4, array_length),
    function!("json_typeof", [JSON], Text, |v| Ok(Datum::text(json::kind(written(&v[0])?).name()))),
    function!("jsonb_typeof", [JSONB], Text, |v| Ok(Datum::text(json::kind(written(&v[0])?).name()))),
    function!("jsonb_contains", [JSONB, JSONB], Bool, |v| Ok(Datum::Bool(contains(&read(&v[0])?, &read(&v[1])?)))),
    function!("jsonb_contained", [JSONB, JSONB], Bool, |v| Ok(Datum::Bool(contains(&read(&v[1])?, &read(&v[0])?)))),
    function!("jsonb_exists", [JSONB, TEXT], Bool, |v| Ok(Datum::Bool(exists(&read(&v[0])?, text(&v[1])?)))),
    function!("jsonb_exists_any", [JSONB, TEXT], Bool, |v| {
        let whole = read(&v[0])?;
        Ok(Datum::Bool(read_items(text(&v[1])?)?.iter().flatten().any(|key| exists(&whole, key))))
    }),
    function!("jsonb_exists_all", [JSONB, TEXT], Bool, |v| {
        let whole = read(&v[0])?;
        Ok(Datum::Bool(read_items(text(&v[1])?)?.iter().flatten().all(|key| exists(&whole, key))))
    }),
    function!("jsonb_concat", [JSONB, JSONB], Jsonb, edit::concat),
    function!("jsonb_delete", [JSONB, TEXT], Jsonb, edit::delete_key),
    function!("jsonb_delete_idx", [JSONB, INT], Jsonb, edit::delete_index),
    function!("jsonb_delete_array", [JSONB, TEXT], Jsonb, edit::delete_keys),
    function!("jsonb_delete_path", [JSONB, TEXT], Jsonb, edit::delete_path),
    Builtin {
        name: "jsonb_set",
        overloads: &[
            of(&[JSONB, TEXT, JSONB], DataType::Jsonb, edit::set),
            of(&[JSONB, TEXT, JSONB, BOOL], DataType::Jsonb, edit::set),
        ],
    },
    Builtin {
        name: "jsonb_insert",
        overloads: &[
            of(&[JSONB, TEXT, JSONB], DataType::Jsonb, edit::insert),
            of(&[JSONB, TEXT, JSONB, BOOL], DataType::Jsonb, edit::insert),
        ],
    },
    Builtin {
        name: "json member",
        overloads: &[
            of(&[JSON, TEXT, TEXT, INT8, BOOL], DataType::Text, members::member_text),
            of(&[JSONB, TEXT, TEXT, INT8, BOOL], DataType::Text, members::member_text),
        ],
    },
    Builtin {
        name: "jsonb with",
        overloads: &[Overload {
            takes: &[JSONB, JSONB, TEXT],
            more: true,
            gives: DataType::Jsonb,
            run: Run::Nulls(edit::with_part),
        }],
    },
    Builtin {
        name: "jsonb_set_lax",
        overloads: &[
            lax(&[JSONB, TEXT, JSONB]),
            lax(&[JSONB, TEXT, JSONB, BOOL]),
            lax(&[JSONB, TEXT, JSONB, BOOL, TEXT]),
        ],
    },
    function!("jsonb_pretty", [JSONB], Text, |v| {
        let mut out = String::new();
        pretty(&read(&v[0])?, 0, &mut out)?;
        Ok(Datum::text(out))
    }),
    function!("jsonb_strip_nulls", [JSONB], Jsonb, edit::strip_nulls),
    function!("json_strip_nulls", [JSON], Json, strip_nulls),
];

/// The text of a json or jsonb.
fn written(value: &Datum) -> Result<&str> {
    match value {
        Datum::Json(text) | Datum::Jsonb(text) => Ok(text),
        other => Err(wrong_arguments(std::slice::from_ref(other))),
    }
}

fn read(value: &Datum) -> Result<Json> {
    Json::read(written(value)?)
}

/// A part of a value, of its type (invariant 1).
fn part(of: &Datum, part: Option<&str>) -> Datum {
    match (of, part) {
        (_, None) => Datum::Null,
        (Datum::Jsonb(_), Some(part)) => Datum::Jsonb(part.into()),
        (_, Some(part)) => Datum::Json(part.into()),
    }
}

/// A value as `->>` has it: a string without its quotes, and of null nothing.
fn shown(value: Datum) -> Result<Datum> {
    match &value {
        Datum::Null => Ok(Datum::Null),
        other => Ok(text_of(written(other)?)?.map_or(Datum::Null, |text| Datum::Text(text.into()))),
    }
}

pub(crate) fn text_of(part: &str) -> Result<Option<String>> {
    Ok(match json::kind(part) {
        Kind::Null => None,
        Kind::Text => json::text_of(part)?,
        _ => Some(part.to_owned()),
    })
}

fn member<'a>(whole: &'a str, name: &str) -> Result<Option<&'a str>> {
    // The last one of the name.
    let members = json::members(whole)?;
    let found = members.into_iter().rev().find(|(own, _)| own == name);
    Ok(found.filter(|_| json::kind(whole) == Kind::Object).map(|(_, member)| member))
}

/// An item of an array; one that is negative is counted from its end.
fn item(whole: &str, number: i32) -> Result<Option<&str>> {
    let items = json::items(whole)?;
    if json::kind(whole) != Kind::Array {
        return Ok(None);
    }
    Ok(place(number, items.len()).map(|at| items[at]))
}

/// Where an item stands that is counted from 0, or from the end.
fn place(number: i32, items: usize) -> Option<usize> {
    let at = if number < 0 { i64::from(number) + items as i64 } else { number.into() };
    usize::try_from(at).ok().filter(|at| *at < items)
}

fn field(values: &[Datum]) -> Result<Datum> {
    Ok(part(&values[0], member(written(&values[0])?, text(&values[1])?)?))
}

fn element(values: &[Datum]) -> Result<Datum> {
    let (whole, Datum::Int4(number)) = (&values[0], &values[1]) else { return Err(wrong_arguments(values)) };
    let text = written(whole)?;
    if let (Datum::Jsonb(_), Kind::Null | Kind::Bool | Kind::Number | Kind::Text) = (whole, json::kind(text)) {
        // PostgreSQL keeps such a jsonb as an array of one item.
        return Ok(part(whole, place(*number, 1).map(|_| text)));
    }
    Ok(part(whole, item(text, *number)?))
}

fn by_texts(values: &[Datum]) -> Result<Datum> {
    let path =
        values[1..].iter().map(|key| Ok(Some(text(key)?.to_owned()))).collect::<Result<Vec<Option<String>>>>()?;
    by_path(&values[0], &path)
}

fn by_array(values: &[Datum]) -> Result<Datum> {
    by_path(&values[0], &read_items(text(&values[1])?)?)
}

fn by_path(whole: &Datum, path: &[Option<String>]) -> Result<Datum> {
    let mut at = written(whole)?;
    if let Datum::Json(_) = whole {
        // Invariant 3.
        json::items(at)?;
    }
    for key in path {
        let Some(key) = key else { return Ok(Datum::Null) };
        let found = match json::kind(at) {
            Kind::Object => member(at, key)?,
            Kind::Array => match number_of(key) {
                Some(number) => item(at, number)?,
                None => None,
            },
            _ => None,
        };
        match found {
            Some(found) => at = found,
            None => return Ok(Datum::Null),
        }
    }
    Ok(part(whole, Some(at.trim_matches([' ', '\t', '\n', '\r']))))
}

/// The number that a step of a path is.
fn number_of(key: &str) -> Option<i32> {
    let trimmed = key.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    trimmed.parse().ok()
}

fn array_length(values: &[Datum]) -> Result<Datum> {
    let text = written(&values[0])?;
    let items = json::items(text)?;
    let message = match json::kind(text) {
        Kind::Array => return Ok(Datum::Int4(items.len() as i32)),
        Kind::Object => "cannot get array length of a non-array",
        _ => "cannot get array length of a scalar",
    };
    Err(EngineError::new("22023", message))
}

/// `a @> b`
fn contains(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Array(items), Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_)) => {
            items.iter().any(|item| holds(item, b))
        }
        _ => holds(a, b),
    }
}

/// The same within a value: an array does not hold what is none.
fn holds(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Object(_), Json::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| a.member(name).is_some_and(|own| holds(own, wanted)))
        }
        (Json::Array(items), Json::Array(wanted)) => {
            wanted.iter().all(|wanted| items.iter().any(|item| holds(item, wanted)))
        }
        (Json::Object(_) | Json::Array(_), _) | (_, Json::Object(_) | Json::Array(_)) => false,
        (a, b) => a.equals(b),
    }
}

/// `a ? key`
fn exists(a: &Json, key: &str) -> bool {
    match a {
        Json::Object(_) => a.member(key).is_some(),
        Json::Array(items) => items.iter().any(|item| matches!(item, Json::Text(text) if text.as_ref() == key)),
        Json::Text(text) => text.as_ref() == key,
        _ => false,
    }
}

/// The bytes of a text that is made of a jsonb: what stands deep has many blanks before it.
const MAX_PRETTY: usize = 256 << 20;

fn pretty(value: &Json, indent: usize, out: &mut String) -> Result<()> {
    let (begin, end, count) = match value {
        Json::Array(items) => ('[', ']', items.len()),
        Json::Object(members) => ('{', '}', members.len()),
        scalar => {
            out.push_str(&scalar.shown()?);
            return Ok(());
        }
    };
    if out.len() > MAX_PRETTY {
        return Err(EngineError::new("54000", "the text of a jsonb is too long"));
    }
    out.push(begin);
    for at in 0..count {
        out.push_str(if at > 0 { ",\n" } else { "\n" });
        out.extend(std::iter::repeat_n(' ', indent + 4));
        match value {
            Json::Array(items) => pretty(&items[at], indent + 4, out)?,
            Json::Object(members) => {
                json::write_text(out, &members[at].0);
                out.push_str(": ");
                pretty(&members[at].1, indent + 4, out)?;
            }
            _ => {}
        }
    }
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
    out.push(end);
    Ok(())
}

/// Without blanks, and without members that are null.
fn strip_nulls(values: &[Datum]) -> Result<Datum> {
    let written = written(&values[0])?;
    let mut reader = Reader::new(written, true);
    let (mut out, mut name, mut first) = (String::new(), None, true);
    while let Some(event) = reader.next_event()? {
        match (&event, name.take()) {
            (Event::Key(key), _) => {
                name = Some(key.clone());
                continue;
            }
            (Event::Null, Some(_)) => continue,
            (Event::EndObject | Event::EndArray, _) => {}
            (_, named) => {
                out.push_str(if first { "" } else { "," });
                if let Some(name) = named {
                    json::write_text(&mut out, &name);
                    out.push(':');
                }
            }
        }
        first = matches!(event, Event::BeginObject | Event::BeginArray);
        match event {
            Event::Text(text) => json::write_text(&mut out, &text),
            _ => out.push_str(&written[reader.span()]),
        }
    }
    Ok(Datum::Json(out.into()))
}
