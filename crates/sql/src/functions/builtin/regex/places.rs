//! Functions of a regular expression's n-th match, and of what stands between matches.
//!
//! 1. Matches are counted from a start on; behind an empty one the next letter is looked at.
//! 2. Of a text that is split, an empty match counts as nothing where the match before it ends, and at the text's end.
use super::{Answer, Flags, LOOK, Matcher, after, another_share, extent, text, with_matcher, wrong_arguments};
use crate::memory;
use terrace_engine::{Datum, EngineError};

/// Which match is meant, and which of its groups.
pub(super) struct Which {
    pub(super) start: i32,
    pub(super) number: i32,
    group: i32,
}

/// An optional argument that is an integer of at least so much.
pub(super) fn number(values: &[Datum], at: usize, name: &str, least: i32, otherwise: i32) -> Answer<i32> {
    match values.get(at) {
        None => Ok(otherwise),
        Some(Datum::Int4(value)) if *value >= least => Ok(*value),
        Some(Datum::Int4(value)) => {
            Err(EngineError::new("22023", format!("invalid value for parameter \"{name}\": {value}")))
        }
        Some(_) => Err(wrong_arguments(values)),
    }
}

/// The byte where the character of that number begins (from 1); `None`: behind the end.
pub(super) fn place(of: &str, start: i32) -> Option<usize> {
    of.char_indices().map(|(at, _)| at).chain([of.len()]).nth(start as usize - 1)
}

/// Where the match, or its group, begins and ends. `None`: there is none.
fn found(of: &str, pattern: &str, flags: &Flags, which: &Which) -> Answer<Option<(usize, usize)>> {
    if which.group > 0 {
        extent(pattern, flags.mode)?;
    }
    with_matcher(pattern, flags, |matcher| {
        let groups = matcher.regex.captures_len() - 1;
        // Without groups all that matched is the first one.
        let wanted = if groups == 0 && which.group == 1 { 0 } else { which.group };
        if wanted as usize > groups {
            return Ok(None);
        }
        let (mut from, mut left) = (place(of, which.start), which.number);
        while let Some(at) = from
            && let Some(matched) = matcher.find(of, at)?
        {
            left -= 1;
            if left == 0 {
                return group(matcher, of, at, matched, wanted);
            }
            if left % LOOK == 0 {
                memory::check()?;
            }
            from = after(of, matched);
        }
        Ok(None)
    })
}

fn group(
    matcher: &Matcher,
    of: &str,
    at: usize,
    matched: (usize, usize),
    group: i32,
) -> Answer<Option<(usize, usize)>> {
    if group == 0 {
        return Ok(Some(matched));
    }
    let captures = matcher.regex.captures_at(of, at);
    let whole = |c: &regex::Captures<'_>| c.get(0).map(|m| (m.start(), m.end())) == Some(matched);
    let captures = captures.filter(whole).ok_or_else(another_share)?;
    Ok(captures.get(group as usize).map(|m| (m.start(), m.end())))
}

/// `regexp_instr(text, pattern, start, n, behind, flags, group)`: the number of a letter, or 0.
pub(super) fn instr(values: &[Datum]) -> Answer<Datum> {
    let (of, pattern) = (text(&values[0])?, text(&values[1])?);
    let start = number(values, 2, "start", 1, 1)?;
    let nth = number(values, 3, "n", 1, 1)?;
    let behind = match values.get(4) {
        None | Some(Datum::Int4(0)) => false,
        Some(Datum::Int4(1)) => true,
        Some(other) => {
            return Err(EngineError::new("22023", format!("invalid value for parameter \"endoption\": {other}")));
        }
    };
    let flags = Flags::of(values.get(5), Some("regexp_instr"))?;
    let group = number(values, 6, "subexpr", 0, 0)?;
    let found = found(of, pattern, &flags, &Which { start, number: nth, group })?;
    let place = found.map_or(0, |(begin, end)| of[..if behind { end } else { begin }].chars().count() + 1);
    Ok(Datum::Int4(place as i32))
}

/// `regexp_substr(text, pattern, start, n, flags, group)`
pub(super) fn substr(values: &[Datum]) -> Answer<Datum> {
    let (of, pattern) = (text(&values[0])?, text(&values[1])?);
    let start = number(values, 2, "start", 1, 1)?;
    let nth = number(values, 3, "n", 1, 1)?;
    let flags = Flags::of(values.get(4), Some("regexp_substr"))?;
    let group = number(values, 5, "subexpr", 0, 0)?;
    let found = found(of, pattern, &flags, &Which { start, number: nth, group })?;
    Ok(found.map_or(Datum::Null, |(begin, end)| Datum::text(&of[begin..end])))
}

/// `regexp_split_to_array(text, pattern, flags)`: what stands between matches (invariant 2). `name`: as it is called.
pub(crate) fn split(values: &[Datum]) -> Answer<Vec<String>> {
    let (of, pattern) = (text(&values[0])?, text(&values[1])?);
    let flags = Flags::of(values.get(2), Some("regexp_split_to_array"))?;
    with_matcher(pattern, &flags, |matcher| {
        let (mut parts, mut begin, mut before, mut from) = (vec![], 0, 0, Some(0));
        while let Some(at) = from
            && let Some((start, end)) = matcher.find(of, at)?
        {
            if start < of.len() && end > before {
                parts.push(of[begin..start].to_owned());
                begin = end;
                if parts.len() % LOOK as usize == 0 {
                    memory::check()?;
                }
            }
            before = end;
            from = after(of, (start, end));
        }
        parts.push(of[begin..].to_owned());
        Ok(parts)
    })
}

/// What the groups of a match took; of a pattern without groups all that matched.
type Groups = Vec<Option<String>>;

/// What `regexp_matches(text, pattern, flags)` answers: each match. Without the flag "g" it is the first one.
pub(crate) fn matches(values: &[Datum]) -> Answer<Vec<Groups>> {
    matches_by(values, &Flags::of(values.get(2), None)?)
}

/// What `regexp_match(text, pattern, flags)` answers.
pub(crate) fn first_match(values: &[Datum]) -> Answer<Option<Groups>> {
    let flags =
        Flags::of(values.get(2), Some("regexp_match")).map_err(|error| match error.message.contains("\"global\"") {
            true => error.with_hint("Use the regexp_matches function instead."),
            false => error,
        })?;
    Ok(matches_by(values, &flags)?.pop())
}

fn matches_by(values: &[Datum], flags: &Flags) -> Answer<Vec<Groups>> {
    let (of, pattern) = (text(&values[0])?, text(&values[1])?);
    with_matcher(pattern, flags, |matcher| {
        let groups = matcher.regex.captures_len() as i32 - 1;
        if groups > 0 {
            extent(pattern, flags.mode)?;
        }
        let numbers = if groups == 0 { 0..=0 } else { 1..=groups };
        let (mut found, mut from) = (vec![], Some(0));
        while let Some(at) = from
            && let Some(matched) = matcher.find(of, at)?
        {
            let taken = |number: i32| -> Answer<Option<String>> {
                Ok(group(matcher, of, at, matched, number)?.map(|(begin, end)| of[begin..end].to_owned()))
            };
            found.push(numbers.clone().map(taken).collect::<Answer<Vec<Option<String>>>>()?);
            if found.len() % LOOK as usize == 0 {
                memory::check()?;
            }
            from = if flags.global { after(of, matched) } else { None };
        }
        Ok(found)
    })
}
