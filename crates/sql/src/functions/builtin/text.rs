//! Functions of text. Most are DataFusion's, which agree with PostgreSQL's once they are given what they should be.
use super::{Builtin, Overload, Run, Takes, wrong_arguments};
use terrace_engine::{DataType, Datum, EngineError, Result};

const TEXT: Takes = Takes::Is(DataType::Text);
const INT: Takes = Takes::Is(DataType::Int4);
const BYTES: Takes = Takes::Is(DataType::Bytea);

const fn theirs(takes: &'static [Takes], gives: DataType) -> Overload {
    Overload { takes, more: false, gives, run: Run::Theirs }
}

const fn ours(takes: &'static [Takes], gives: DataType, run: fn(&[Datum]) -> Result<Datum>) -> Overload {
    Overload { takes, more: false, gives, run: Run::Strict(run) }
}

const LENGTH: &[Overload] = &[
    ours(&[TEXT], DataType::Int4, |v| Ok(Datum::Int4(text(&v[0])?.chars().count() as i32))),
    ours(&[BYTES], DataType::Int4, |v| Ok(Datum::Int4(bytes(&v[0])?.len() as i32))),
];
const CHARACTERS: &[Overload] =
    &[ours(&[TEXT], DataType::Int4, |v| Ok(Datum::Int4(text(&v[0])?.chars().count() as i32)))];
const TRIM: [Overload; 2] = [theirs(&[TEXT], DataType::Text), theirs(&[TEXT, TEXT], DataType::Text)];
const OF_BYTES: &[Takes] = &[BYTES, BYTES];
const PAD: &[Overload] = &[theirs(&[TEXT, INT], DataType::Text), theirs(&[TEXT, INT, TEXT], DataType::Text)];
const PART: &[Overload] = &[
    theirs(&[TEXT, INT], DataType::Text),
    theirs(&[TEXT, INT, INT], DataType::Text),
    ours(&[BYTES, INT], DataType::Bytea, bytes_part),
    ours(&[BYTES, INT, INT], DataType::Bytea, bytes_part),
];
const PART_OR_PATTERN: &[Overload] = &[
    PART[0],
    PART[1],
    PART[2],
    PART[3],
    // What a regular expression matches first.
    ours(&[TEXT, TEXT], DataType::Text, super::regex::substring),
    // What a pattern of SIMILAR TO has between its separators. Constants and parameters without a type are texts, too.
    ours(&[TEXT, TEXT, TEXT], DataType::Text, super::regex::similar_part),
];

/// What LIKE gets for a pattern.
pub(super) const LIKE_PATTERN: &str = "like_pattern";

pub(super) const TABLE: &[Builtin] = &[
    Builtin { name: "ascii", overloads: &[theirs(&[TEXT], DataType::Int4)] },
    Builtin { name: "chr", overloads: &[ours(&[INT], DataType::Text, chr)] },
    Builtin {
        name: "concat",
        overloads: &[Overload { takes: &[Takes::Shown], more: true, gives: DataType::Text, run: Run::Theirs }],
    },
    Builtin {
        name: "concat_ws",
        overloads: &[Overload { takes: &[TEXT, Takes::Shown], more: true, gives: DataType::Text, run: Run::Theirs }],
    },
    Builtin { name: "length", overloads: LENGTH },
    Builtin { name: "char_length", overloads: CHARACTERS },
    Builtin { name: "character_length", overloads: CHARACTERS },
    Builtin {
        name: "octet_length",
        overloads: &[
            ours(&[TEXT], DataType::Int4, |v| Ok(Datum::Int4(text(&v[0])?.len() as i32))),
            ours(&[BYTES], DataType::Int4, |v| Ok(Datum::Int4(bytes(&v[0])?.len() as i32))),
        ],
    },
    Builtin {
        name: "bit_length",
        overloads: &[
            ours(&[TEXT], DataType::Int4, |v| bits(text(&v[0])?.len())),
            ours(&[BYTES], DataType::Int4, |v| bits(bytes(&v[0])?.len())),
        ],
    },
    Builtin { name: "lower", overloads: &[ours(&[TEXT], DataType::Text, |v| mapped(v, small))] },
    Builtin { name: "upper", overloads: &[ours(&[TEXT], DataType::Text, |v| mapped(v, capital))] },
    Builtin { name: "initcap", overloads: &[ours(&[TEXT], DataType::Text, initcap)] },
    Builtin {
        name: LIKE_PATTERN,
        overloads: &[ours(&[TEXT], DataType::Text, like_pattern), ours(&[TEXT, TEXT], DataType::Text, like_pattern)],
    },
    // DataFusion's panics at a NULL without a type, with which its optimiser tries conditions above outer joins.
    Builtin { name: "reverse", overloads: &[ours(&[TEXT], DataType::Text, reverse)] },
    Builtin { name: "left", overloads: &[ours(&[TEXT, INT], DataType::Text, left)] },
    Builtin { name: "right", overloads: &[ours(&[TEXT, INT], DataType::Text, right)] },
    Builtin {
        name: "btrim",
        overloads: &[TRIM[0], TRIM[1], ours(OF_BYTES, DataType::Bytea, |v| super::bytes::trimmed(v, true, true))],
    },
    Builtin {
        name: "ltrim",
        overloads: &[TRIM[0], TRIM[1], ours(OF_BYTES, DataType::Bytea, |v| super::bytes::trimmed(v, true, false))],
    },
    Builtin {
        name: "rtrim",
        overloads: &[TRIM[0], TRIM[1], ours(OF_BYTES, DataType::Bytea, |v| super::bytes::trimmed(v, false, true))],
    },
    Builtin { name: "lpad", overloads: PAD },
    Builtin { name: "rpad", overloads: PAD },
    Builtin { name: "repeat", overloads: &[theirs(&[TEXT, INT], DataType::Text)] },
    Builtin { name: "replace", overloads: &[theirs(&[TEXT, TEXT, TEXT], DataType::Text)] },
    Builtin { name: "translate", overloads: &[theirs(&[TEXT, TEXT, TEXT], DataType::Text)] },
    Builtin { name: "split_part", overloads: &[ours(&[TEXT, TEXT, INT], DataType::Text, split_part)] },
    Builtin { name: "starts_with", overloads: &[theirs(&[TEXT, TEXT], DataType::Bool)] },
    // Of the extension fuzzystrmatch.
    Builtin { name: "levenshtein", overloads: &[theirs(&[TEXT, TEXT], DataType::Int4)] },
    Builtin { name: "unistr", overloads: &[ours(&[TEXT], DataType::Text, unistr)] },
    Builtin {
        name: "strpos",
        overloads: &[theirs(&[TEXT, TEXT], DataType::Int4), ours(OF_BYTES, DataType::Int4, super::bytes::position)],
    },
    Builtin { name: "substr", overloads: PART },
    Builtin { name: "substring", overloads: PART_OR_PATTERN },
    Builtin {
        name: "overlay",
        overloads: &[
            theirs(&[TEXT, TEXT, INT], DataType::Text),
            theirs(&[TEXT, TEXT, INT, INT], DataType::Text),
            ours(&[BYTES, BYTES, INT], DataType::Bytea, super::bytes::overlay),
            ours(&[BYTES, BYTES, INT, INT], DataType::Bytea, super::bytes::overlay),
        ],
    },
];

pub(super) fn text(value: &Datum) -> Result<&str> {
    match value {
        Datum::Text(text) => Ok(text),
        other => Err(wrong_arguments(std::slice::from_ref(other))),
    }
}

fn reverse(args: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(text(&args[0])?.chars().rev().collect::<String>()))
}

pub(super) fn bytes(value: &Datum) -> Result<&[u8]> {
    match value {
        Datum::Bytea(bytes) => Ok(bytes),
        other => Err(wrong_arguments(std::slice::from_ref(other))),
    }
}

/// The capital of one character, as a C library has it: what has none of a single character (`ß`) stays.
pub(super) fn capital(c: char) -> char {
    let mut capitals = c.to_uppercase();
    match (capitals.next(), capitals.next()) {
        (Some(one), None) => one,
        // A small letter with an iota below: Unicode's capital is two letters, the C library's one.
        _ => match c {
            '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => {
                char::from_u32(c as u32 + 8).unwrap_or(c)
            }
            '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => char::from_u32(c as u32 + 9).unwrap_or(c),
            _ => c,
        },
    }
}

/// The small letter of one character: of `İ`, the only one with two, the first.
pub(super) fn small(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

fn mapped(values: &[Datum], letter: fn(char) -> char) -> Result<Datum> {
    Ok(Datum::text(text(&values[0])?.chars().map(letter).collect::<String>()))
}

fn initcap(values: &[Datum]) -> Result<Datum> {
    let mut within = false;
    let changed = text(&values[0])?.chars().map(|c| {
        let changed = if within { small(c) } else { capital(c) };
        within = super::character_classes::is_letter_or_digit(c);
        changed
    });
    Ok(Datum::text(changed.collect::<String>()))
}

/// A pattern of LIKE with the backslash as its escape; it must not end with its escape. 22025
fn like_pattern(values: &[Datum]) -> Result<Datum> {
    let (pattern, escape) = match values {
        [pattern] => (text(pattern)?, '\\'),
        [pattern, escape] => (text(pattern)?, text(escape)?.chars().next().unwrap_or('\\')),
        _ => return Err(wrong_arguments(values)),
    };
    let mut made = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        if c == escape {
            let next = rest.next();
            let next =
                next.ok_or_else(|| EngineError::new("22025", "LIKE pattern must not end with escape character"))?;
            made.extend(['\\', next]);
        } else if c == '\\' {
            made.push_str("\\\\");
        } else {
            made.push(c);
        }
    }
    Ok(Datum::text(made))
}

fn bits(bytes: usize) -> Result<Datum> {
    let bits = i32::try_from(bytes * 8).map_err(|_| EngineError::out_of_range("integer"))?;
    Ok(Datum::Int4(bits))
}

/// `substr(bytea, from, count)`; before the first byte and behind the last one there is nothing.
fn bytes_part(values: &[Datum]) -> Result<Datum> {
    let [of, Datum::Int4(from), rest @ ..] = values else { return Err(wrong_arguments(values)) };
    let (of, from) = (bytes(of)?, i64::from(*from));
    let end = match rest {
        [] => i64::MAX,
        [Datum::Int4(count)] if *count >= 0 => from + i64::from(*count),
        [Datum::Int4(_)] => return Err(EngineError::new("22011", "negative substring length not allowed")),
        _ => return Err(wrong_arguments(values)),
    };
    let at = |place: i64| (place - 1).clamp(0, of.len() as i64) as usize;
    Ok(Datum::Bytea(of[at(from)..at(end)].to_vec().into()))
}

/// Letters by their numbers: `\0061`, `\u0061`, `\+000061`, `\U00000061`; `\\` is a backslash. Two that are halves of
/// a letter are one.
fn unistr(values: &[Datum]) -> Result<Datum> {
    let mut rest = text(&values[0])?;
    let mut made = String::with_capacity(rest.len());
    let mut half: Option<u32> = None;
    let pair = || EngineError::new("42601", "invalid Unicode surrogate pair");
    while let Some(at) = rest.find('\\') {
        if half.is_some() && at > 0 {
            return Err(pair());
        }
        made.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if half.is_none()
            && let Some(behind) = rest.strip_prefix('\\')
        {
            made.push('\\');
            rest = behind;
            continue;
        }
        let (digits, behind) = match rest.chars().next() {
            Some('u') => (rest.get(1..5), 5),
            Some('U') => (rest.get(1..9), 9),
            Some('+') => (rest.get(1..7), 7),
            _ => (rest.get(..4), 4),
        };
        let digits = digits.filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let number = number.ok_or_else(|| {
            let hint = "Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.";
            EngineError::new("42601", "invalid Unicode escape").with_hint(hint)
        })?;
        rest = &rest[behind..];
        let number = match (half.take(), number) {
            (None, 0xd800..0xdc00) => {
                half = Some(number);
                continue;
            }
            (Some(first), 0xdc00..0xe000) => 0x1_0000 + ((first & 0x3ff) << 10) + (number & 0x3ff),
            (Some(_), _) | (None, 0xdc00..0xe000) => return Err(pair()),
            (None, number) => number,
        };
        let letter = char::from_u32(number).filter(|c| *c != '\0');
        let unknown = || EngineError::new("22023", format!("invalid Unicode code point: {number:04X}"));
        made.push(letter.ok_or_else(unknown)?);
    }
    if half.is_some() {
        return Err(pair());
    }
    made.push_str(rest);
    Ok(Datum::text(made))
}

fn chr(values: &[Datum]) -> Result<Datum> {
    let [Datum::Int4(code)] = values else { return Err(wrong_arguments(values)) };
    let refused = |message: String| Err(EngineError::new("54000", message));
    match u32::try_from(*code) {
        Err(_) => Err(EngineError::new("22023", "character number must be positive")),
        Ok(0) => refused("null character not permitted".into()),
        Ok(code) if code > 0x10_ffff => refused(format!("requested character too large for encoding: {code}")),
        Ok(code) => match char::from_u32(code) {
            Some(c) => Ok(Datum::text(c.to_string())),
            None => refused(format!("requested character not valid for encoding: {code}")),
        },
    }
}

/// The byte where the character number `n` begins, or the end.
fn place(text: &str, n: usize) -> usize {
    text.char_indices().nth(n).map_or(text.len(), |(at, _)| at)
}

/// How many characters a count takes: of a negative one all but so many.
fn taken(text: &str, count: i32) -> usize {
    match usize::try_from(count) {
        Ok(count) => count,
        Err(_) => text.chars().count().saturating_sub(count.unsigned_abs() as usize),
    }
}

fn left(values: &[Datum]) -> Result<Datum> {
    let [Datum::Text(of), Datum::Int4(count)] = values else { return Err(wrong_arguments(values)) };
    Ok(Datum::text(&of[..place(of, taken(of, *count))]))
}

fn right(values: &[Datum]) -> Result<Datum> {
    let [Datum::Text(of), Datum::Int4(count)] = values else { return Err(wrong_arguments(values)) };
    let gone = of.chars().count().saturating_sub(taken(of, *count));
    Ok(Datum::text(&of[place(of, gone)..]))
}

/// The field of that number between separators, from the end where it is negative.
fn split_part(values: &[Datum]) -> Result<Datum> {
    let [Datum::Text(of), Datum::Text(separator), Datum::Int4(number)] = values else {
        return Err(wrong_arguments(values));
    };
    let at = match number.unsigned_abs().checked_sub(1) {
        Some(at) => at as usize,
        None => return Err(EngineError::new("22023", "field position must not be zero")),
    };
    let field = match (separator.is_empty(), *number > 0) {
        (true, _) => (at == 0).then_some(&**of),
        (false, true) => of.split(&**separator).nth(at),
        (false, false) => of.rsplit(&**separator).nth(at),
    };
    Ok(Datum::text(field.unwrap_or("")))
}
