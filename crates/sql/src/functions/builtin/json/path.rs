//! jsonpath: `@?`, `@@`, and the functions `jsonb_path_exists`, `_match`, `_query`, `_query_array`, `_query_first`.
//!
//! 1. A path is read by [`read`] and followed by [`follow`]. Its numbers are numerics.
//! 2. A silent call does not tell what is wrong with the JSON. What is wrong with the path, or its variables, is told.
//! 3. The functions with `_tz` differ from the others in times alone, and `.datetime()` is refused.
//!
//! Not a library: those that there are compute with doubles.
//! Source: PostgreSQL 15 documentation, 9.16.2 (The SQL/JSON Path Language), and what the server answers.
use super::edit::made;
use super::{BOOL, JSONB, Kernel, TEXT, read as value};
use crate::functions::builtin::text::text;
use crate::functions::builtin::{Builtin, Overload, Run, Takes};
use std::cell::RefCell;
use std::rc::Rc;
use terrace_engine::types::json::Json;
use terrace_engine::{DataType, Datum, EngineError, Result};

mod follow;
mod read;
#[cfg(test)]
mod tests;

/// A step, an operator or a value. What has a `rest` is followed by it, for each item that it gives.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Literal(Json),
    Variable(Box<str>),
    Root,
    Current,
    /// The last number of the innermost array.
    Last,
    Key(Box<str>),
    AnyKey,
    AnyItem,
    /// `.**`, between two depths.
    Any(u32, u32),
    Items(Vec<(Path, Option<Path>)>),
    Filter(Path),
    Method(Method),
    /// `+ - * / %`
    Binary(char, Box<[Path; 2]>),
    /// `+ -`
    Unary(char, Path),
    And(Vec<Path>),
    Or(Vec<Path>),
    Not(Path),
    IsUnknown(Path),
    Exists(Path),
    Compare(Comparison, Box<[Path; 2]>),
    StartsWith(Box<[Path; 2]>),
    LikeRegex(Path, Regex),
}

/// A step and those behind it: at least one.
pub(super) type Path = Vec<Step>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Method {
    Type,
    Size,
    Abs,
    Floor,
    Ceiling,
    Double,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Method::Type => "type",
            Method::Size => "size",
            Method::Abs => "abs",
            Method::Floor => "floor",
            Method::Ceiling => "ceiling",
            Method::Double => "double",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug)]
pub(super) struct Regex(regex::Regex);

impl PartialEq for Regex {
    fn eq(&self, other: &Regex) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct JsonPath {
    strict: bool,
    path: Path,
}

const fn of(takes: &'static [Takes], gives: DataType, run: Kernel) -> Overload {
    Overload { takes, more: false, gives, run: Run::Strict(run) }
}

macro_rules! functions {
    ($($name:literal, $gives:ident, $run:expr;)*) => {
        &[$(Builtin {
            name: $name,
            overloads: &[
                of(&[JSONB, TEXT], DataType::$gives, $run),
                of(&[JSONB, TEXT, JSONB], DataType::$gives, $run),
                of(&[JSONB, TEXT, JSONB, BOOL], DataType::$gives, $run),
            ],
        }),*]
    };
}

pub(in crate::functions::builtin) const TABLE: &[Builtin] = functions! {
    "jsonb_path_exists", Bool, |v| exists(v, false);
    "jsonb_path_exists_tz", Bool, |v| exists(v, false);
    "jsonb_path_exists_opr", Bool, |v| exists(v, true);
    "jsonb_path_match", Bool, |v| matches(v, false);
    "jsonb_path_match_tz", Bool, |v| matches(v, false);
    "jsonb_path_match_opr", Bool, |v| matches(v, true);
    "jsonb_path_query_array", Jsonb, |v| made(&Json::Array(found(v, false)?));
    "jsonb_path_query_array_tz", Jsonb, |v| made(&Json::Array(found(v, false)?));
    "jsonb_path_query_first", Jsonb, first;
    "jsonb_path_query_first_tz", Jsonb, first;
};

thread_local! {
    static LAST: RefCell<Option<(Box<str>, Rc<JsonPath>)>> = const { RefCell::new(None) };
}

/// Does what calls itself again and again, on a larger stack where little is left of this one.
fn deeper<T>(work: impl FnOnce() -> T) -> T {
    const LEAST: usize = 256 << 10;
    stacker::maybe_grow(LEAST, 16 * LEAST, work)
}

/// The path that a text is; the last one is kept. 42601, 22P02, 2201B
fn path(text: &str) -> Result<Rc<JsonPath>> {
    LAST.with_borrow_mut(|last| {
        if let Some((of, path)) = last
            && **of == *text
        {
            return Ok(path.clone());
        }
        let path = Rc::new(read::path(text)?);
        *last = Some((text.into(), path.clone()));
        Ok(path)
    })
}

/// Whether a text is a path. 42601, 22P02, 2201B
pub(crate) fn check(text: &str) -> Result<()> {
    path(text).map(drop)
}

/// Follows the path that was given, as `work` says.
fn followed<T>(
    values: &[Datum],
    silent: bool,
    work: impl FnOnce(&mut follow::Follower<'_>, &JsonPath, bool) -> Result<T>,
) -> Result<T> {
    let (whole, path) = (value(&values[0])?, path(text(&values[1])?)?);
    let variables = values.get(2).map(value).transpose()?;
    if variables.as_ref().is_some_and(|variables| !matches!(variables, Json::Object(_))) {
        let detail = "Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.";
        return Err(EngineError::new("22023", "\"vars\" argument is not an object").with_detail(detail));
    }
    let silent = silent || values.get(3) == Some(&Datum::Bool(true));
    work(&mut follow::Follower::new(&path, &whole, variables.as_ref()), &path, silent)
}

/// The items, as far as they were found before something was wrong.
fn found(values: &[Datum], silent: bool) -> Result<Vec<Json>> {
    followed(values, silent, |follower, path, silent| follower.all(path, silent))
}

fn exists(values: &[Datum], silent: bool) -> Result<Datum> {
    followed(values, silent, |follower, path, silent| Ok(follower.any(path, silent)?.map_or(Datum::Null, Datum::Bool)))
}

fn first(values: &[Datum]) -> Result<Datum> {
    found(values, false)?.first().map_or(Ok(Datum::Null), made)
}

fn matches(values: &[Datum], silent: bool) -> Result<Datum> {
    let silent = silent || values.get(3) == Some(&Datum::Bool(true));
    match found(values, silent)?.as_slice() {
        [Json::Bool(value)] => Ok(Datum::Bool(*value)),
        [Json::Null] => Ok(Datum::Null),
        _ if silent => Ok(Datum::Null),
        _ => Err(EngineError::new("22038", "single boolean result is expected")),
    }
}
