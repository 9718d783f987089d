//! Functions of bytea: encodings and hashes.
//!
//! Report for DataFusion 55.2: `encode(x, 'base64')` leaves the padding out (`base64pad` is its name for RFC 4648's
//! base64), and both functions take a text's own bytes.
use super::text::{bytes, text};
use super::{Builtin, Overload, Run, Takes, wrong_arguments};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::Digest;
use terrace_engine::{DataType, Datum, EngineError, Result};

const TEXT: Takes = Takes::Is(DataType::Text);
const BYTES: Takes = Takes::Is(DataType::Bytea);
const INT: Takes = Takes::Is(DataType::Int4);
const LONG: Takes = Takes::Is(DataType::Int8);

const fn of(takes: &'static [Takes], gives: DataType, run: fn(&[Datum]) -> Result<Datum>) -> Overload {
    Overload { takes, more: false, gives, run: Run::Strict(run) }
}

macro_rules! hash {
    ($name:literal, $hash:ty) => {
        Builtin {
            name: $name,
            overloads: &[of(&[BYTES], DataType::Bytea, |v| {
                Ok(Datum::Bytea(<$hash>::digest(bytes(&v[0])?).to_vec().into()))
            })],
        }
    };
}

pub(super) const TABLE: &[Builtin] = &[
    Builtin { name: "encode", overloads: &[of(&[BYTES, TEXT], DataType::Text, encode)] },
    Builtin { name: "decode", overloads: &[of(&[TEXT, TEXT], DataType::Bytea, decode)] },
    // Of the operator ||.
    Builtin {
        name: "byteacat",
        overloads: &[of(&[BYTES, BYTES], DataType::Bytea, |v| {
            Ok(Datum::Bytea([bytes(&v[0])?, bytes(&v[1])?].concat().into()))
        })],
    },
    // LIKE, with its escape; no byte: nothing escapes.
    Builtin { name: LIKE, overloads: &[of(&[BYTES, BYTES, BYTES], DataType::Bool, like)] },
    Builtin { name: "get_byte", overloads: &[of(&[BYTES, INT], DataType::Int4, get_byte)] },
    Builtin { name: "set_byte", overloads: &[of(&[BYTES, INT, INT], DataType::Bytea, set_byte)] },
    Builtin { name: "get_bit", overloads: &[of(&[BYTES, LONG], DataType::Int4, get_bit)] },
    Builtin { name: "set_bit", overloads: &[of(&[BYTES, LONG, INT], DataType::Bytea, set_bit)] },
    Builtin {
        name: "bit_count",
        overloads: &[of(&[BYTES], DataType::Int8, |v| {
            Ok(Datum::Int8(bytes(&v[0])?.iter().map(|b| i64::from(b.count_ones())).sum()))
        })],
    },
    hash!("sha224", sha2::Sha224),
    hash!("sha256", sha2::Sha256),
    hash!("sha384", sha2::Sha384),
    hash!("sha512", sha2::Sha512),
];

/// LIKE of bytea, by a name that no user writes without quotes.
pub(crate) const LIKE: &str = "bytea like";

/// A piece of a pattern.
#[derive(Clone, Copy, PartialEq)]
enum Piece {
    Byte(u8),
    Any,
    Many,
    /// An escape behind which there is nothing.
    Broken,
}

fn like(values: &[Datum]) -> Result<Datum> {
    let (of, escape) = (bytes(&values[0])?, bytes(&values[2])?);
    if escape.len() > 1 {
        let error = EngineError::new("22025", "invalid escape string");
        return Err(error.with_hint("Escape string must be empty or one character."));
    }
    let escape = escape.first();
    let (mut pieces, mut rest) = (vec![], bytes(&values[1])?.iter());
    while let Some(byte) = rest.next() {
        pieces.push(match byte {
            byte if Some(byte) == escape => rest.next().map_or(Piece::Broken, |byte| Piece::Byte(*byte)),
            b'%' => Piece::Many,
            b'_' => Piece::Any,
            byte => Piece::Byte(*byte),
        });
    }
    // Where the last `%` was, and what it took so far: if the rest does not fit, it takes a byte more.
    let (mut at, mut piece, mut many) = (0, 0, None);
    while at < of.len() {
        match pieces.get(piece) {
            Some(Piece::Broken) => {
                return Err(EngineError::new("22025", "LIKE pattern must not end with escape character"));
            }
            Some(Piece::Many) => {
                many = Some((piece, at));
                piece += 1;
            }
            Some(next) if matches!(next, Piece::Any) || *next == Piece::Byte(of[at]) => {
                (at, piece) = (at + 1, piece + 1)
            }
            _ => match many {
                Some((before, taken)) => {
                    many = Some((before, taken + 1));
                    (at, piece) = (taken + 1, before + 1);
                }
                None => return Ok(Datum::Bool(false)),
            },
        }
    }
    Ok(Datum::Bool(pieces[piece..].iter().all(|left| *left == Piece::Many)))
}

/// The number of a byte, or of a bit, of so many. 2202E
fn index(at: i64, count: usize) -> Result<usize> {
    let found = usize::try_from(at).ok().filter(|at| *at < count);
    found.ok_or_else(|| EngineError::new("2202E", format!("index {at} out of valid range, 0..{}", count as i64 - 1)))
}

fn get_byte(values: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(of), Datum::Int4(at)] = values else { return Err(wrong_arguments(values)) };
    Ok(Datum::Int4(of[index((*at).into(), of.len())?].into()))
}

fn set_byte(values: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(of), Datum::Int4(at), Datum::Int4(byte)] = values else { return Err(wrong_arguments(values)) };
    let mut of = of.clone();
    let at = index((*at).into(), of.len())?;
    of[at] = *byte as u8;
    Ok(Datum::Bytea(of))
}

/// Bit 0 is the lowest of the first byte.
fn get_bit(values: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(of), Datum::Int8(at)] = values else { return Err(wrong_arguments(values)) };
    let at = index(*at, of.len() * 8)?;
    Ok(Datum::Int4((of[at / 8] >> (at % 8) & 1).into()))
}

fn set_bit(values: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(of), Datum::Int8(at), Datum::Int4(bit)] = values else { return Err(wrong_arguments(values)) };
    let at = index(*at, of.len() * 8)?;
    let bit = u8::try_from(*bit).ok().filter(|bit| *bit <= 1);
    let bit = bit.ok_or_else(|| EngineError::new("22023", "new bit must be 0 or 1"))?;
    let mut of = of.clone();
    of[at / 8] = of[at / 8] & !(1 << (at % 8)) | bit << (at % 8);
    Ok(Datum::Bytea(of))
}

/// `btrim(bytea, bytea)` and its kind: without the bytes of the second at the ends.
pub(super) fn trimmed(values: &[Datum], front: bool, back: bool) -> Result<Datum> {
    let (mut of, gone) = (bytes(&values[0])?, bytes(&values[1])?);
    while front
        && let Some((first, rest)) = of.split_first()
        && gone.contains(first)
    {
        of = rest;
    }
    while back
        && let Some((last, rest)) = of.split_last()
        && gone.contains(last)
    {
        of = rest;
    }
    Ok(Datum::Bytea(of.into()))
}

/// `overlay(bytea placing bytea from n for m)`
pub(super) fn overlay(values: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(of), Datum::Bytea(with), Datum::Int4(from), rest @ ..] = values else {
        return Err(wrong_arguments(values));
    };
    let count = match rest {
        [] => with.len() as i64,
        [Datum::Int4(count)] => (*count).into(),
        _ => return Err(wrong_arguments(values)),
    };
    if *from <= 0 {
        return Err(EngineError::new("22011", "negative substring length not allowed"));
    }
    let behind = i64::from(*from) + count;
    if i32::try_from(behind).is_err() {
        return Err(EngineError::out_of_range("integer"));
    }
    let place = |at: i64| (at - 1).clamp(0, of.len() as i64) as usize;
    Ok(Datum::Bytea([&of[..place((*from).into())], with, &of[place(behind)..]].concat().into()))
}

/// `position(bytea in bytea)`: of the first byte, from 1; 0 where there is none.
pub(super) fn position(values: &[Datum]) -> Result<Datum> {
    let (of, part) = (bytes(&values[0])?, bytes(&values[1])?);
    let at = match part.is_empty() {
        true => Some(0),
        false => of.windows(part.len()).position(|window| window == part),
    };
    Ok(Datum::Int4(at.map_or(0, |at| at as i32 + 1)))
}

fn unrecognized(encoding: &str) -> EngineError {
    EngineError::new("22023", format!("unrecognized encoding: \"{encoding}\""))
}

fn encode(values: &[Datum]) -> Result<Datum> {
    let (bytes, encoding) = (bytes(&values[0])?, text(&values[1])?);
    let shown = match encoding.to_ascii_lowercase().as_str() {
        "hex" => bytes.iter().map(|b| format!("{b:02x}")).collect(),
        "base64" => in_lines(&STANDARD.encode(bytes)),
        "escape" => bytes.iter().map(|b| escaped(*b)).collect(),
        _ => return Err(unrecognized(encoding)),
    };
    Ok(Datum::text(shown))
}

/// Lines of 76 characters, as RFC 2045 has them.
fn in_lines(encoded: &str) -> String {
    let mut lines = String::with_capacity(encoded.len() + encoded.len() / 76);
    for (at, c) in encoded.chars().enumerate() {
        if at > 0 && at % 76 == 0 {
            lines.push('\n');
        }
        lines.push(c);
    }
    lines
}

fn escaped(byte: u8) -> String {
    match byte {
        b'\\' => "\\\\".to_owned(),
        1..0x80 => char::from(byte).to_string(),
        0 | 0x80.. => format!("\\{byte:03o}"),
    }
}

fn decode(values: &[Datum]) -> Result<Datum> {
    let (encoded, encoding) = (text(&values[0])?, text(&values[1])?);
    match encoding.to_ascii_lowercase().as_str() {
        "hex" => DataType::Bytea.parse(&format!("\\x{encoded}")),
        "base64" => {
            let symbols: String = encoded.chars().filter(|c| !matches!(c, ' ' | '\t' | '\n' | '\r')).collect();
            let bytes = STANDARD.decode(&symbols).map_err(|e| match e {
                base64::DecodeError::InvalidByte(_, byte) => {
                    let symbol = char::from(byte);
                    EngineError::new(
                        "22023",
                        format!("invalid symbol \"{symbol}\" found while decoding base64 sequence"),
                    )
                }
                _ => {
                    let error = EngineError::new("22023", "invalid base64 end sequence");
                    error.with_hint("Input data is missing padding, is truncated, or is otherwise corrupted.")
                }
            })?;
            Ok(Datum::Bytea(bytes.into()))
        }
        // Without the prefix that would make it hexadecimal.
        "escape" if !encoded.starts_with("\\x") => DataType::Bytea.parse(encoded),
        "escape" => Err(EngineError::new("22P02", "invalid input syntax for type bytea")),
        _ => Err(unrecognized(encoding)),
    }
}
