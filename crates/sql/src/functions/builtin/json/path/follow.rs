//! Follows a jsonpath through a JSON.
//!
//! 1. Without strict, an array stands for its items where a step takes none, and what is no array for one of one item.
//! 2. What is wrong with the JSON ([`Wrong::Data`]) makes a condition unknown, in both ways. What is wrong with the
//!    variables ([`Wrong::Path`]) is told.
//! 3. Where it is only asked whether there is an item (`found` is `None`), nothing is looked at behind the first one.
//! 4. Strict conditions look at all items: one that is wrong makes them unknown. Others end with the first that holds.
use super::{Comparison, JsonPath, Method, Path, Step, deeper};
use crate::memory;
use std::borrow::Cow;
use std::cmp::Ordering;
use terrace_engine::types::decimal::Decimal;
use terrace_engine::types::json::Json;
use terrace_engine::{DataType, Datum, EngineError, Result};

pub(super) enum Wrong {
    Data(EngineError),
    Path(EngineError),
}

impl Wrong {
    fn told(self) -> EngineError {
        match self {
            Wrong::Data(error) | Wrong::Path(error) => error,
        }
    }
}

type Answer<T> = std::result::Result<T, Wrong>;

type Item<'j> = Cow<'j, Json>;

/// The items that were found; `None`: it is asked whether there is one.
type Found<'f, 'j> = Option<&'f mut Vec<Item<'j>>>;

fn data<T>(state: &'static str, message: impl Into<String>) -> Answer<T> {
    Err(Wrong::Data(EngineError::new(state, message)))
}

/// What an item has in it.
fn parts<'j>(item: &Item<'j>) -> Vec<Item<'j>> {
    match item {
        Cow::Borrowed(Json::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Json::Object(members)) => members.iter().map(|(_, member)| Cow::Borrowed(member)).collect(),
        Cow::Owned(Json::Array(items)) => items.iter().cloned().map(Cow::Owned).collect(),
        Cow::Owned(Json::Object(members)) => members.iter().map(|(_, member)| Cow::Owned(member.clone())).collect(),
        _ => vec![],
    }
}

fn number_of(item: &Json) -> Option<Decimal> {
    match item {
        Json::Number(digits) => Decimal::parse(digits).ok(),
        _ => None,
    }
}

fn of_number<'j>(number: &Decimal) -> Item<'j> {
    Cow::Owned(Json::Number(number.to_string().into()))
}

fn truth<'j>(holds: Option<bool>) -> Item<'j> {
    Cow::Owned(holds.map_or(Json::Null, Json::Bool))
}

fn is_array(item: &Json) -> bool {
    matches!(item, Json::Array(_))
}

pub(super) struct Follower<'j> {
    strict: bool,
    /// Of the structure of JSON.
    ignores_errors: bool,
    root: &'j Json,
    current: Item<'j>,
    variables: Option<&'j Json>,
    /// Of the innermost array that has subscripts.
    size: usize,
    /// Of steps.
    count: u32,
}

/// Steps between two looks at whether the statement may go on.
const LOOK: u32 = 1024;

impl<'j> Follower<'j> {
    pub(super) fn new(path: &JsonPath, root: &'j Json, variables: Option<&'j Json>) -> Follower<'j> {
        let current = Cow::Borrowed(root);
        let strict = path.strict;
        Follower { strict, ignores_errors: !strict, root, current, variables, size: 0, count: 0 }
    }

    /// All items; of a silent call those before something was wrong.
    pub(super) fn all(&mut self, path: &JsonPath, silent: bool) -> Result<Vec<Json>> {
        let mut found = vec![];
        match self.path(&path.path, Cow::Borrowed(self.root), &mut Some(&mut found)) {
            Err(Wrong::Data(_)) if silent => {}
            Err(wrong) => return Err(wrong.told()),
            Ok(_) => {}
        }
        Ok(found.into_iter().map(Cow::into_owned).collect())
    }

    /// Whether there is an item; of a silent call `None` where something was wrong.
    pub(super) fn any(&mut self, path: &JsonPath, silent: bool) -> Result<Option<bool>> {
        match self.is_there(&path.path, Cow::Borrowed(self.root)) {
            Err(Wrong::Data(_)) if silent => Ok(None),
            Err(wrong) => Err(wrong.told()),
            Ok(is) => Ok(Some(is)),
        }
    }

    /// Invariants 3 and 4.
    fn is_there(&mut self, path: &[Step], item: Item<'j>) -> Answer<bool> {
        if !self.strict {
            return self.path(path, item, &mut None);
        }
        let mut found = vec![];
        self.path(path, item, &mut Some(&mut found))?;
        Ok(!found.is_empty())
    }

    fn path(&mut self, path: &[Step], item: Item<'j>, found: &mut Found<'_, 'j>) -> Answer<bool> {
        self.steps(path, item, found, !self.strict)
    }

    /// What a path gives, arrays taken apart (invariant 1).
    fn operand(&mut self, path: &[Step], item: &Item<'j>, apart: bool) -> Answer<Vec<Item<'j>>> {
        let mut found = vec![];
        self.path(path, item.clone(), &mut Some(&mut found))?;
        if !apart || self.strict {
            return Ok(found);
        }
        let items = found.into_iter().flat_map(|item| if is_array(&item) { parts(&item) } else { vec![item] });
        Ok(items.collect())
    }

    /// What follows a step that has given an item.
    fn on(&mut self, rest: &[Step], item: Item<'j>, found: &mut Found<'_, 'j>) -> Answer<bool> {
        if !rest.is_empty() {
            return self.path(rest, item, found);
        }
        if let Some(found) = found {
            found.push(item);
        }
        Ok(true)
    }

    /// The same for several items.
    fn on_each(
        &mut self,
        rest: &[Step],
        items: impl IntoIterator<Item = Item<'j>>,
        found: &mut Found<'_, 'j>,
        apart: bool,
    ) -> Answer<bool> {
        let mut any = false;
        for item in items {
            any = match rest {
                [] => self.on(rest, item, found)?,
                _ => self.steps(rest, item, found, apart)?,
            };
            if any && found.is_none() {
                break;
            }
        }
        Ok(any)
    }

    /// The steps from here on; `apart`: the first one may take an array's items for the array.
    fn steps(&mut self, path: &[Step], item: Item<'j>, found: &mut Found<'_, 'j>, apart: bool) -> Answer<bool> {
        self.count += 1;
        if self.count.is_multiple_of(LOOK) {
            memory::check().map_err(Wrong::Path)?;
        }
        deeper(|| self.step(path, item, found, apart))
    }

    fn step(&mut self, path: &[Step], item: Item<'j>, found: &mut Found<'_, 'j>, apart: bool) -> Answer<bool> {
        let Some((step, rest)) = path.split_first() else { return self.on(path, item, found) };
        let apart = apart && is_array(&item);
        match step {
            Step::Literal(value) => self.on(rest, Cow::Owned(value.clone()), found),
            Step::Variable(name) => {
                let value = self.variable(name)?;
                self.on(rest, value, found)
            }
            Step::Root => self.on(rest, Cow::Borrowed(self.root), found),
            Step::Current => self.on(rest, self.current.clone(), found),
            Step::Last => self.on(rest, of_number(&Decimal::from_int(self.size as i64 - 1)), found),
            Step::Key(_) | Step::AnyKey | Step::Filter(_) if apart => self.on_each(path, parts(&item), found, false),
            Step::Method(Method::Abs | Method::Floor | Method::Ceiling | Method::Double) if apart => {
                self.on_each(path, parts(&item), found, false)
            }
            Step::Key(name) => self.member(name, rest, item, found),
            Step::AnyKey => match item.as_ref() {
                Json::Object(_) => self.on_each(rest, parts(&item), found, !self.strict),
                _ if self.ignores_errors => Ok(false),
                _ => data("2203C", "jsonpath wildcard member accessor can only be applied to an object"),
            },
            Step::AnyItem => match item.as_ref() {
                Json::Array(_) => self.on_each(rest, parts(&item), found, !self.strict),
                _ if !self.strict => self.on(rest, item, found),
                _ if self.ignores_errors => Ok(false),
                _ => data("22039", "jsonpath wildcard array accessor can only be applied to an array"),
            },
            Step::Any(from, to) => self.any_depth(rest, item, found, (*from, *to)),
            Step::Items(subscripts) => {
                let size = self.size;
                let done = self.items(subscripts, rest, item, found);
                self.size = size;
                done
            }
            Step::Filter(condition) => {
                let current = std::mem::replace(&mut self.current, item.clone());
                let holds = self.condition(condition, &item);
                self.current = current;
                if holds? == Some(true) { self.on(rest, item, found) } else { Ok(false) }
            }
            Step::Method(method) => self.method(*method, rest, item, found),
            Step::Binary(sign, sides) => self.binary(*sign, sides, rest, &item, found),
            Step::Unary(sign, operand) => self.unary(*sign, operand, rest, &item, found),
            _ => {
                let holds = self.condition(std::slice::from_ref(step), &item)?;
                self.on(rest, truth(holds), found)
            }
        }
    }

    fn variable(&self, name: &str) -> Answer<Item<'j>> {
        let value = self.variables.and_then(|variables| variables.member(name));
        let missing = || EngineError::new("42704", format!("could not find jsonpath variable \"{name}\""));
        value.map(Cow::Borrowed).ok_or_else(|| Wrong::Path(missing()))
    }

    fn member(&mut self, name: &str, rest: &[Step], item: Item<'j>, found: &mut Found<'_, 'j>) -> Answer<bool> {
        let member = match &item {
            Cow::Borrowed(object @ Json::Object(_)) => object.member(name).map(Cow::Borrowed),
            Cow::Owned(object @ Json::Object(_)) => object.member(name).cloned().map(Cow::Owned),
            _ if self.ignores_errors => return Ok(false),
            _ => return data("2203A", "jsonpath member accessor can only be applied to an object"),
        };
        match member {
            Some(member) => self.on(rest, member, found),
            None if self.ignores_errors => Ok(false),
            None => data("2203A", format!("JSON object does not contain key \"{name}\"")),
        }
    }

    /// `.**`, whose depths count from the item, which is 0.
    fn any_depth(
        &mut self,
        rest: &[Step],
        item: Item<'j>,
        found: &mut Found<'_, 'j>,
        (from, to): (u32, u32),
    ) -> Answer<bool> {
        let mut any = false;
        if from == 0 {
            any = self.leniently(|follower| follower.on(rest, item.clone(), found))?;
            if any && found.is_none() {
                return Ok(true);
            }
        }
        match item.as_ref() {
            Json::Array(_) | Json::Object(_) => self.below(rest, &item, found, (from, to), 1),
            _ => Ok(any),
        }
    }

    fn below(
        &mut self,
        rest: &[Step],
        item: &Item<'j>,
        found: &mut Found<'_, 'j>,
        (from, to): (u32, u32),
        depth: u32,
    ) -> Answer<bool> {
        let mut any = false;
        if depth > to {
            return Ok(any);
        }
        let leaves = (from, to) == (u32::MAX, u32::MAX);
        for part in parts(item) {
            let has_parts = matches!(part.as_ref(), Json::Array(_) | Json::Object(_));
            if depth >= from || (leaves && !has_parts) {
                any = self.leniently(|follower| follower.on_each(rest, [part.clone()], found, !follower.strict))?;
                if any && found.is_none() {
                    return Ok(true);
                }
            }
            if depth < to && has_parts {
                any = deeper(|| self.below(rest, &part, found, (from, to), depth + 1))?;
                if any && found.is_none() {
                    return Ok(true);
                }
            }
        }
        Ok(any)
    }

    fn leniently<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let ignores_errors = std::mem::replace(&mut self.ignores_errors, true);
        let done = work(self);
        self.ignores_errors = ignores_errors;
        done
    }

    fn items(
        &mut self,
        subscripts: &[(Path, Option<Path>)],
        rest: &[Step],
        item: Item<'j>,
        found: &mut Found<'_, 'j>,
    ) -> Answer<bool> {
        let items = match item.as_ref() {
            Json::Array(_) => parts(&item),
            _ if !self.strict => vec![item.clone()],
            _ if self.ignores_errors => return Ok(false),
            _ => return data("22039", "jsonpath array accessor can only be applied to an array"),
        };
        self.size = items.len();
        let mut any = false;
        for (from, to) in subscripts {
            let from = self.subscript(from, &item)?;
            let to = match to {
                Some(to) => self.subscript(to, &item)?,
                None => from,
            };
            if !self.ignores_errors && (from < 0 || from > to || to >= items.len() as i128) {
                return data("22033", "jsonpath array subscript is out of bounds");
            }
            let (from, to) = (from.max(0), to.min(items.len() as i128 - 1));
            let wanted = if from <= to { &items[from as usize..=to as usize] } else { &[] };
            any = false;
            for item in wanted {
                any = self.on(rest, item.clone(), found)?;
                if any && found.is_none() {
                    return Ok(true);
                }
            }
        }
        Ok(any)
    }

    fn subscript(&mut self, path: &[Step], item: &Item<'j>) -> Answer<i128> {
        let found = self.operand(path, item, false)?;
        let [number] = found.as_slice() else {
            return data("22033", "jsonpath array subscript is not a single numeric value");
        };
        let Some(number) = number_of(number) else {
            return data("22033", "jsonpath array subscript is not a single numeric value");
        };
        let whole = number.truncate(0).and_then(|number| number.to_int("integer")).map_err(Wrong::Data)?;
        match whole.filter(|whole| i32::try_from(*whole).is_ok()) {
            Some(whole) => Ok(whole),
            None => data("22033", "jsonpath array subscript is out of integer range"),
        }
    }

    fn method(&mut self, method: Method, rest: &[Step], item: Item<'j>, found: &mut Found<'_, 'j>) -> Answer<bool> {
        let made = match (method, item.as_ref()) {
            (Method::Type, of) => Cow::Owned(Json::Text(kind(of).into())),
            (Method::Size, Json::Array(items)) => of_number(&Decimal::from_int(items.len() as i64)),
            (Method::Size, _) if !self.strict => of_number(&Decimal::from_int(1)),
            (Method::Size, _) if self.ignores_errors => return Ok(false),
            (Method::Size, _) => return data("22039", "jsonpath item method .size() can only be applied to an array"),
            (Method::Double, of) => match double(of)? {
                Some(number) => number,
                None => item,
            },
            (method, of) => match number_of(of) {
                None => {
                    let name = method.name();
                    let message = format!("jsonpath item method .{name}() can only be applied to a numeric value");
                    return data("22036", message);
                }
                Some(number) => {
                    let made = match method {
                        Method::Abs => Ok(number.absolute()),
                        Method::Floor => number.floor(),
                        _ => number.ceiling(),
                    };
                    of_number(&made.map_err(Wrong::Data)?)
                }
            },
        };
        self.on(rest, made, found)
    }

    fn binary(
        &mut self,
        sign: char,
        [left, right]: &[Path; 2],
        rest: &[Step],
        item: &Item<'j>,
        found: &mut Found<'_, 'j>,
    ) -> Answer<bool> {
        let (left, right) = (self.operand(left, item, true)?, self.operand(right, item, true)?);
        let single = |side: &str, found: &[Item<'j>]| match found {
            [one] if number_of(one).is_some() => Ok(number_of(one).expect("it is one")),
            _ => {
                let message = format!("{side} operand of jsonpath operator {sign} is not a single numeric value");
                data("22038", message)
            }
        };
        let (left, right) = (single("left", &left)?, single("right", &right)?);
        let made = match sign {
            '+' => left.add(&right),
            '-' => left.subtract(&right),
            '*' => left.multiply(&right),
            '/' => left.divide(&right),
            _ => left.remainder(&right),
        };
        self.on(rest, of_number(&made.map_err(Wrong::Data)?), found)
    }

    fn unary(
        &mut self,
        sign: char,
        operand: &[Step],
        rest: &[Step],
        item: &Item<'j>,
        found: &mut Found<'_, 'j>,
    ) -> Answer<bool> {
        let mut any = false;
        for item in self.operand(operand, item, true)? {
            let number = match number_of(&item) {
                Some(number) => number,
                None if rest.is_empty() && found.is_none() => continue,
                None => {
                    let message = format!("operand of unary jsonpath operator {sign} is not a numeric value");
                    return data("2203B", message);
                }
            };
            let number = if sign == '-' { number.negated() } else { number };
            if self.on(rest, of_number(&number), found)? {
                any = true;
                if found.is_none() {
                    break;
                }
            }
        }
        Ok(any)
    }

    /// Whether a condition holds; `None`: it is unknown.
    fn condition(&mut self, condition: &[Step], item: &Item<'j>) -> Answer<Option<bool>> {
        let [step] = condition else {
            return Err(Wrong::Path(EngineError::internal("a condition of several steps")));
        };
        match step {
            Step::And(all) => self.first_of(false, all, item),
            Step::Or(all) => self.first_of(true, all, item),
            Step::Not(denied) => Ok(deeper(|| self.condition(denied, item))?.map(|holds| !holds)),
            Step::IsUnknown(condition) => Ok(Some(deeper(|| self.condition(condition, item))?.is_none())),
            Step::Exists(path) => known(self.is_there(path, item.clone())),
            Step::Compare(comparison, sides) => {
                let holds = |left: &Json, right: Option<&Json>| compare(*comparison, left, right?);
                self.predicate(&sides[0], Some((&sides[1], true)), item, holds)
            }
            Step::StartsWith(sides) => {
                let holds = |whole: &Json, initial: Option<&Json>| match (whole, initial?) {
                    (Json::Text(whole), Json::Text(initial)) => Some(whole.starts_with(initial.as_ref())),
                    _ => None,
                };
                self.predicate(&sides[0], Some((&sides[1], false)), item, holds)
            }
            Step::LikeRegex(path, regex) => {
                let holds = |of: &Json, _: Option<&Json>| match of {
                    Json::Text(text) => Some(regex.0.is_match(text)),
                    _ => None,
                };
                self.predicate(path, None, item, holds)
            }
            _ => Err(Wrong::Path(EngineError::internal("this step is no condition"))),
        }
    }

    /// `decisive` if a condition is; else unknown if one is.
    fn first_of(&mut self, decisive: bool, conditions: &[Path], item: &Item<'j>) -> Answer<Option<bool>> {
        let mut all = Some(!decisive);
        for condition in conditions {
            match deeper(|| self.condition(condition, item))? {
                Some(holds) if holds == decisive => return Ok(Some(decisive)),
                Some(_) => {}
                None => all = None,
            }
        }
        Ok(all)
    }

    /// Whether something holds of an item on the left side and one on the right side, where there is one (invariant 4).
    fn predicate(
        &mut self,
        left: &[Step],
        right: Option<(&Path, bool)>,
        item: &Item<'j>,
        holds: impl Fn(&Json, Option<&Json>) -> Option<bool>,
    ) -> Answer<Option<bool>> {
        let Some(left) = known(self.operand(left, item, true))? else { return Ok(None) };
        let right = match right {
            None => None,
            Some((right, apart)) => match known(self.operand(right, item, apart))? {
                None => return Ok(None),
                right => right,
            },
        };
        let (mut found, mut unknown) = (false, false);
        for left in &left {
            let each: Vec<Option<&Json>> = match &right {
                None => vec![None],
                Some(right) => right.iter().map(|right| Some(right.as_ref())).collect(),
            };
            for right in each {
                match holds(left, right) {
                    None if self.strict => return Ok(None),
                    None => unknown = true,
                    Some(true) if !self.strict => return Ok(Some(true)),
                    Some(true) => found = true,
                    Some(false) => {}
                }
            }
        }
        Ok(if unknown { None } else { Some(found) })
    }
}

/// Invariant 2.
fn known<T>(answer: Answer<T>) -> Answer<Option<T>> {
    match answer {
        Err(Wrong::Data(_)) => Ok(None),
        answer => answer.map(Some),
    }
}

fn kind(of: &Json) -> &'static str {
    match of {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::Text(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// `.double()`; `None`: the number stays as it is.
fn double<'j>(of: &Json) -> Answer<Option<Item<'j>>> {
    let finite = |text: &str| match DataType::Float8.parse(text) {
        Ok(Datum::Float8(value)) if value.is_finite() => Some(value),
        _ => None,
    };
    match of {
        Json::Number(digits) => match finite(digits) {
            Some(_) => Ok(None),
            None => {
                let message =
                    "numeric argument of jsonpath item method .double() is out of range for type double precision";
                data("22036", message)
            }
        },
        Json::Text(text) => match finite(text) {
            Some(value) => {
                let number = Decimal::from_float(value, false).map_err(Wrong::Data)?;
                Ok(Some(of_number(&number)))
            }
            None => {
                let message = "string argument of jsonpath item method .double() is not a valid representation of a \
                    double precision number";
                data("22036", message)
            }
        },
        _ => data("22036", "jsonpath item method .double() can only be applied to a string or numeric value"),
    }
}

/// `None`: they are not compared.
fn compare(comparison: Comparison, left: &Json, right: &Json) -> Option<bool> {
    let order = match (left, right) {
        (Json::Null, Json::Null) => Ordering::Equal,
        (Json::Bool(left), Json::Bool(right)) => left.cmp(right),
        (Json::Number(_), Json::Number(_)) => number_of(left)?.cmp(&number_of(right)?),
        (Json::Text(left), Json::Text(right)) => left.as_bytes().cmp(right.as_bytes()),
        (Json::Null, _) | (_, Json::Null) => return Some(comparison == Comparison::NotEqual),
        _ => return None,
    };
    Some(match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    })
}
