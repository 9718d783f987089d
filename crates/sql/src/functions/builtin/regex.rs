//! Functions of regular expressions, and the patterns of the operators `~`, `~*`, `!~`, `!~*`.
//!
//! 1. A match is the leftmost one, and of these the longest, as POSIX has it; Rust's regular expressions take the first
//!    alternative that matches. So where one begins is asked of Rust's, and where it ends of an automaton of the same
//!    pattern that goes on to the last end.
//! 2. What a group took is Rust's to say; where its match is not the longest, or alternatives may share it out
//!    otherwise, that is refused (0A000). So are lazy quantifiers, where it matters how much is matched.
//! 3. What is put in a match's place is as long as memory allows: more is asked for before it is made.
//!
//! Reports for DataFusion 55.2: `regexp_replace` expands `$1` in the replacement, and knows nothing of `\&`; of
//! alternatives the first is taken, not the longest; `regexp_count` is bigint.
mod places;
mod similar;

use super::pattern::{Mode, Pattern, translated};
use super::text::text;
use super::{Builtin, Overload, Run, Takes, wrong_arguments};
use crate::functions::bounded::PIECE;
use crate::memory;
use crate::memory::Asked;
use regex::Regex;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::{Anchored, Input, MatchKind};
use std::cell::RefCell;
use terrace_engine::{DataType, Datum, EngineError};

type Answer<T> = std::result::Result<T, EngineError>;

const TEXT: Takes = Takes::Is(DataType::Text);
const INT: Takes = Takes::Is(DataType::Int4);

const fn ours(takes: &'static [Takes], gives: DataType, run: fn(&[Datum]) -> Answer<Datum>) -> Overload {
    Overload { takes, more: false, gives, run: Run::Strict(run) }
}

/// What operators get for a pattern.
pub(super) const PATTERN: &str = "regex_pattern";

pub(super) const TABLE: &[Builtin] = &[
    Builtin {
        name: PATTERN,
        overloads: &[ours(&[TEXT], DataType::Text, pattern), ours(&[TEXT, TEXT], DataType::Text, pattern)],
    },
    Builtin {
        name: "regexp_replace",
        overloads: &[
            ours(&[TEXT, TEXT, TEXT], DataType::Text, replace),
            ours(&[TEXT, TEXT, TEXT, TEXT], DataType::Text, replace),
            ours(&[TEXT, TEXT, TEXT, INT], DataType::Text, replace_from),
            ours(&[TEXT, TEXT, TEXT, INT, INT], DataType::Text, replace_from),
            ours(&[TEXT, TEXT, TEXT, INT, INT, TEXT], DataType::Text, replace_from),
        ],
    },
    Builtin {
        name: "regexp_like",
        overloads: &[ours(&[TEXT, TEXT], DataType::Bool, like), ours(&[TEXT, TEXT, TEXT], DataType::Bool, like)],
    },
    Builtin {
        name: "regexp_count",
        overloads: &[
            ours(&[TEXT, TEXT], DataType::Int4, count),
            ours(&[TEXT, TEXT, INT], DataType::Int4, count),
            ours(&[TEXT, TEXT, INT, TEXT], DataType::Int4, count),
        ],
    },
    Builtin {
        name: "similar_to_escape",
        overloads: &[
            ours(&[TEXT], DataType::Text, similar::regular),
            ours(&[TEXT, TEXT], DataType::Text, similar::regular),
        ],
    },
    Builtin {
        name: "regexp_instr",
        overloads: &[
            ours(&[TEXT, TEXT], DataType::Int4, places::instr),
            ours(&[TEXT, TEXT, INT], DataType::Int4, places::instr),
            ours(&[TEXT, TEXT, INT, INT], DataType::Int4, places::instr),
            ours(&[TEXT, TEXT, INT, INT, INT], DataType::Int4, places::instr),
            ours(&[TEXT, TEXT, INT, INT, INT, TEXT], DataType::Int4, places::instr),
            ours(&[TEXT, TEXT, INT, INT, INT, TEXT, INT], DataType::Int4, places::instr),
        ],
    },
    Builtin {
        name: "regexp_substr",
        overloads: &[
            ours(&[TEXT, TEXT], DataType::Text, places::substr),
            ours(&[TEXT, TEXT, INT], DataType::Text, places::substr),
            ours(&[TEXT, TEXT, INT, INT], DataType::Text, places::substr),
            ours(&[TEXT, TEXT, INT, INT, TEXT], DataType::Text, places::substr),
            ours(&[TEXT, TEXT, INT, INT, TEXT, INT], DataType::Text, places::substr),
        ],
    },
];

pub(crate) use places::{first_match, matches, split};
pub(super) use similar::part as similar_part;

/// What the operators get: the pattern, and whether there is a flag behind it (which is "i").
fn pattern(values: &[Datum]) -> Answer<Datum> {
    let Pattern { made, .. } = translated(text(&values[0])?, values.len() > 1)?;
    compiled(&made)?;
    Ok(Datum::text(made))
}

fn compiled(made: &str) -> Answer<Regex> {
    Regex::new(made).map_err(|e| EngineError::new("2201B", format!("invalid regular expression: {e}")))
}

/// A pattern of which groups are wanted (invariant 2).
fn extent(pattern: &str, mode: impl Into<Mode>) -> Answer<String> {
    let mode = mode.into();
    let read = translated(pattern, mode)?;
    let shared = read.branches && read.groups && (mode.is_expanded() || !is_apart(pattern));
    match read {
        Pattern { lazy: true, .. } => Err(lazy()),
        _ if shared => Err(EngineError::unsupported("groups beside these alternatives are not supported")),
        Pattern { made, .. } => Ok(made),
    }
}

fn lazy() -> EngineError {
    EngineError::unsupported("lazy quantifiers in a regular expression are not supported in this function")
}

/// Whether all alternatives are plain texts, of which none begins another.
fn is_apart(pattern: &str) -> bool {
    let inner = pattern.strip_prefix('(').and_then(|t| t.strip_suffix(')')).unwrap_or(pattern);
    let alternatives: Vec<&str> = inner.split('|').collect();
    let plain = |text: &str| !text.contains(|c: char| "()[]{}*+?.^$\\".contains(c));
    alternatives.iter().enumerate().all(|(at, one)| {
        plain(one) && alternatives.iter().enumerate().all(|(other, text)| at == other || !text.starts_with(one))
    })
}

/// A pattern, ready to be looked for.
struct Matcher {
    of: (String, Mode),
    regex: Regex,
    longest: DFA,
    cache: Cache,
}

impl Matcher {
    fn new(pattern: &str, mode: Mode) -> Answer<Matcher> {
        let read = translated(pattern, mode)?;
        if read.lazy {
            return Err(lazy());
        }
        let made = read.made;
        let config =
            DFA::config().match_kind(MatchKind::All).unicode_word_boundary(true).skip_cache_capacity_check(true);
        let regex = compiled(&made)?;
        let longest = DFA::builder().configure(config).build(&made);
        let longest = longest.map_err(|_| EngineError::unsupported("this regular expression is too large"))?;
        let cache = longest.create_cache();
        Ok(Matcher { of: (pattern.to_owned(), mode), regex, longest, cache })
    }

    /// The first match at `from` or later (invariant 1).
    fn find(&mut self, text: &str, from: usize) -> Answer<Option<(usize, usize)>> {
        let Some(first) = self.regex.find_at(text, from) else { return Ok(None) };
        let input = Input::new(text).range(first.start()..).anchored(Anchored::Yes);
        match self.longest.try_search_fwd(&mut self.cache, &input) {
            Ok(Some(end)) => Ok(Some((first.start(), end.offset()))),
            Ok(None) => Err(EngineError::internal("a match has no end")),
            Err(_) => {
                let message =
                    "words' boundaries in a regular expression beside characters beyond ASCII are not supported";
                Err(EngineError::unsupported(message))
            }
        }
    }
}

/// Where the next match is looked for.
fn after(text: &str, (start, end): (usize, usize)) -> Option<usize> {
    if end > start {
        return Some(end);
    }
    text[end..].chars().next().map(|c| end + c.len_utf8())
}

thread_local! {
    static LAST: RefCell<Option<Matcher>> = const { RefCell::new(None) };
}

/// Does something with a pattern's matcher; the last one is kept.
fn with_matcher<T>(pattern: &str, flags: &Flags, work: impl FnOnce(&mut Matcher) -> Answer<T>) -> Answer<T> {
    LAST.with_borrow_mut(|last| {
        if last.as_ref().is_none_or(|m| m.of.0 != pattern || m.of.1 != flags.mode) {
            *last = Some(Matcher::new(pattern, flags.mode)?);
        }
        work(last.as_mut().expect("just put there"))
    })
}

#[derive(Default)]
struct Flags {
    mode: Mode,
    global: bool,
}

impl Flags {
    /// `function`: it knows no flag "g".
    fn of(flags: Option<&Datum>, function: Option<&str>) -> Answer<Flags> {
        let mut read = Flags::default();
        let Some(flags) = flags else { return Ok(read) };
        for flag in text(flags)?.chars() {
            match (flag, function) {
                ('g', None) => read.global = true,
                ('g', Some(name)) => {
                    let message = format!("{name}() does not support the \"global\" option");
                    return Err(EngineError::new("22023", message));
                }
                (flag, _) if read.mode.take(flag) => {}
                ('b', _) => {
                    return Err(EngineError::unsupported(format!(
                        "the flag \"{flag}\" of a regular expression is not supported"
                    )));
                }
                _ => {
                    let message = format!("invalid regular expression option: \"{flag}\"");
                    return Err(EngineError::new("22023", message));
                }
            }
        }
        Ok(read)
    }
}

fn like(values: &[Datum]) -> Answer<Datum> {
    let flags = Flags::of(values.get(2), Some("regexp_like"))?;
    let made = translated(text(&values[1])?, flags.mode)?.made;
    Ok(Datum::Bool(compiled(&made)?.is_match(text(&values[0])?)))
}

fn count(values: &[Datum]) -> Answer<Datum> {
    let (of, pattern) = (text(&values[0])?, text(&values[1])?);
    let flags = Flags::of(values.get(3), Some("regexp_count"))?;
    let from = places::place(of, places::number(values, 2, "start", 1, 1)?);
    with_matcher(pattern, &flags, |matcher| {
        let (mut from, mut found) = (from, 0i32);
        while let Some(at) = from
            && let Some(matched) = matcher.find(of, at)?
        {
            found = found.checked_add(1).ok_or_else(|| EngineError::out_of_range("integer"))?;
            if found % LOOK == 0 {
                memory::check()?;
            }
            from = after(of, matched);
        }
        Ok(Datum::Int4(found))
    })
}

/// Matches between two looks at whether the statement may go on.
const LOOK: i32 = 4096;

/// `substring(text from pattern)`: what the first group took, or all that matched where there is none.
pub(super) fn substring(values: &[Datum]) -> Answer<Datum> {
    let (of, pattern) = (text(&values[0])?, text(&values[1])?);
    extent(pattern, false)?;
    with_matcher(pattern, &Flags::default(), |matcher| {
        let Some((start, end)) = matcher.find(of, 0)? else { return Ok(Datum::Null) };
        if matcher.regex.captures_len() == 1 {
            return Ok(Datum::text(of[start..end].to_owned()));
        }
        match matcher.regex.captures(of) {
            Some(groups) if groups.get(0).is_some_and(|all| (all.start(), all.end()) == (start, end)) => {
                Ok(groups.get(1).map_or(Datum::Null, |group| Datum::text(group.as_str().to_owned())))
            }
            _ => Err(another_share()),
        }
    })
}

fn another_share() -> EngineError {
    EngineError::unsupported("groups of a regular expression whose longest match is not its first are not supported")
}

/// A piece of a replacement.
#[derive(Debug, PartialEq)]
enum Piece<'r> {
    Text(&'r str),
    /// 0: all that matched.
    Group(usize),
}

/// `\1` to `\9` and `\&` are what was matched, `\\` is a backslash; nothing else is special.
fn pieces(replacement: &str) -> Vec<Piece<'_>> {
    let mut pieces = vec![];
    let mut begin = 0;
    let mut rest = replacement.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        if c != '\\' {
            continue;
        }
        let Some((next, special @ ('&' | '\\' | '1'..='9'))) = rest.peek().copied() else { continue };
        pieces.push(Piece::Text(&replacement[begin..at]));
        match special {
            '&' => pieces.push(Piece::Group(0)),
            '\\' => pieces.push(Piece::Text("\\")),
            digit => pieces.push(Piece::Group(digit as usize - '0' as usize)),
        }
        rest.next();
        begin = next + 1;
    }
    pieces.push(Piece::Text(&replacement[begin..]));
    pieces
}

/// A text as it grows (invariant 3).
#[derive(Default)]
struct Growing {
    text: String,
    asked: Vec<Asked>,
    room: usize,
    looked: usize,
}

impl Growing {
    fn put(&mut self, piece: &str) -> Answer<()> {
        let end = self.text.len() + piece.len();
        if end > self.room {
            memory::check_length(end as u64)?;
            let more = self.room.max(end - self.room).max(1 << 10);
            self.asked.push(memory::ask("regexp_replace", more as u64)?);
            self.text.reserve_exact(self.room + more - self.text.len());
            self.room += more;
        }
        self.text.push_str(piece);
        if end - self.looked >= PIECE as usize {
            self.looked = end;
            memory::check()?;
        }
        Ok(())
    }
}

fn replace(values: &[Datum]) -> Answer<Datum> {
    let flags = Flags::of(values.get(3), None)?;
    let number = if flags.global { 0 } else { 1 };
    replaced_in(values, &flags, 1, number)
}

/// `regexp_replace(text, pattern, with, start, n, flags)`
fn replace_from(values: &[Datum]) -> Answer<Datum> {
    let start = places::number(values, 3, "start", 1, 1)?;
    let number = places::number(values, 4, "n", 0, 1)?;
    replaced_in(values, &Flags::of(values.get(5), None)?, start, number)
}

/// From the letter of that number on; the match of that number, or all where it is 0.
fn replaced_in(values: &[Datum], flags: &Flags, start: i32, number: i32) -> Answer<Datum> {
    let (of, pattern, replacement) = (text(&values[0])?, text(&values[1])?, text(&values[2])?);
    let pieces = pieces(replacement);
    let groups = pieces.iter().any(|piece| matches!(piece, Piece::Group(1..)));
    if groups {
        extent(pattern, flags.mode)?;
    }
    with_matcher(pattern, flags, |matcher| {
        let mut made = Growing::default();
        let (mut from, mut put, mut found) = (places::place(of, start), 0, 0i32);
        while let Some(at) = from
            && let Some((start, end)) = matcher.find(of, at)?
        {
            found = found.wrapping_add(1);
            if found % LOOK == 0 {
                memory::check()?;
            }
            from = if number == found { None } else { after(of, (start, end)) };
            if number > found {
                continue;
            }
            made.put(&of[put..start])?;
            let captured = if groups { matcher.regex.captures_at(of, at) } else { None };
            if captured.as_ref().is_some_and(|c| c.get(0).map(|m| m.end()) != Some(end)) {
                return Err(another_share());
            }
            for piece in &pieces {
                match piece {
                    Piece::Text(text) => made.put(text)?,
                    Piece::Group(0) => made.put(&of[start..end])?,
                    Piece::Group(n) => {
                        made.put(captured.as_ref().and_then(|c| c.get(*n)).map_or("", |group| group.as_str()))?;
                    }
                }
            }
            put = end;
        }
        made.put(&of[put..])?;
        Ok(Datum::text(made.text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(of: &str, pattern: &str, with: &str, flags: &str) -> String {
        let arguments: Vec<Datum> = [of, pattern, with, flags].into_iter().map(Datum::text).collect();
        match replace(&arguments) {
            Ok(Datum::Text(text)) => text.to_string(),
            Ok(other) => panic!("{other:?}"),
            Err(error) => error.state.0.to_string(),
        }
    }

    #[test]
    fn the_longest_match_is_replaced() {
        assert_eq!(replaced("abcd", "ab|abcd", "x", ""), "x");
        assert_eq!(replaced("ab", "a?(ab)?", "x", ""), "x");
        assert_eq!(replaced("ab", "(a?)(ab)?", r"\1", ""), "0A000");
        assert_eq!(replaced("baaac", "a*", "-", "g"), "-b--c-");
        assert_eq!(replaced("abc", "x*", "-", "g"), "-a-b-c-");
        assert_eq!(replaced("äbä", "Ä", "x", "gi"), "xbx");
        assert_eq!(replaced("abc", "b", r"<\&>", ""), "a<b>c");
        assert_eq!(replaced("abc", "(b)(c)", r"\2\1$1\\1\x", ""), r"acb$1\1\x");
        assert_eq!(replaced("abc", " b #c", "", "x"), "ac");
        assert_eq!(replaced("a.c", ".", "-", "q"), "a-c");
        assert_eq!(replaced("a\nb", "^.?$", "-", "gn"), "-\n-");
        assert_eq!(replaced("a\nb", "a.b|[^a]", "-", "p"), "a\n-");
        assert_eq!(replaced("a\nb", "^.", "-", "gw"), "-\n-");
        assert_eq!(replaced("abc", "b", "", "b"), "0A000");
        assert_eq!(replaced("abc", "b", "", "z"), "22023");
        assert_eq!(replaced("abc", "b+?", "", ""), "0A000");
        assert_eq!(replaced("aXa", "(a?)(X)?", r"[\1]", "g"), "[a][a][]");
    }

    #[test]
    fn pieces_of_replacements() {
        assert_eq!(
            pieces(r"\2-\&"),
            [Piece::Text(""), Piece::Group(2), Piece::Text("-"), Piece::Group(0), Piece::Text("")]
        );
        assert_eq!(pieces(r"a\"), [Piece::Text(r"a\")]);
    }

    #[test]
    fn groups_beside_alternatives() {
        assert_eq!(extent("(foo|bar)", false).unwrap(), "(?s)(foo|bar)");
        assert_eq!(extent("ab|abcd", false).unwrap(), "(?s)ab|abcd");
        for refused in ["(ab|abcd)", "a*?", "(a|b)c"] {
            assert_eq!(extent(refused, false).unwrap_err().state.0, "0A000", "{refused}");
        }
    }
}
