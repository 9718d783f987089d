//! Functions of bytea: encodings and hashes.
//!
//! Report for DataFusion 55.2: `encode(x, 'base64')` leaves the padding out (`base64pad` is its name for RFC 4648's
//! base64), and both functions take a text's own bytes.
use super::text::{bytes, text};
use super::{Builtin, Gives, Overload, Run, Takes};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::Digest;
use terrace_engine::{DataType, Datum, EngineError, Result};

const TEXT: Takes = Takes::Is(DataType::Text);
const BYTES: Takes = Takes::Is(DataType::Bytea);

const fn of(takes: &'static [Takes], gives: DataType, run: fn(&[Datum]) -> Result<Datum>) -> Overload {
    Overload { takes, more: false, gives: Gives::Is(gives), run: Run::Strict(run) }
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
    hash!("sha224", sha2::Sha224),
    hash!("sha256", sha2::Sha256),
    hash!("sha384", sha2::Sha384),
    hash!("sha512", sha2::Sha512),
];

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
