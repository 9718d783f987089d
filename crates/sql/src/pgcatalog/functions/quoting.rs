//! `quote_ident` and its kind, and `format`.
//!
//! Source: PostgreSQL 15 documentation, 9.4.1 (format).
use super::{Call, Entry, external, quote};
use crate::values::arrays::Arrays;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::DataType::Utf8;
use datafusion::common::internal_err;
use datafusion::error::Result;
use terrace_engine::EngineError;

/// `format(format, VARIADIC array)`, by a name that no user can write.
pub(crate) const FORMAT_OF_ITEMS: &str = "\0format";

pub(super) fn table() -> Vec<Entry> {
    vec![
        ("format", Utf8, |c| {
            let arguments = shown(c)?;
            c.texts(|_, row| formatted(&arguments.iter().map(|of| of[row].as_deref()).collect::<Vec<_>>()))
        }),
        (FORMAT_OF_ITEMS, Utf8, |c| {
            let [formats, arrays] = c.arguments.as_slice() else { return internal_err!("a format and an array") };
            let Some(arrays) = Arrays::of(arrays) else { return internal_err!("no array of arguments") };
            let (formats, items) = (texts(formats)?, texts(arrays.lists().values())?);
            c.texts(|_, row| {
                let places = arrays.lists().value_offsets();
                let of_row = match arrays.lists().is_valid(row) {
                    true => places[row] as usize..places[row + 1] as usize,
                    false => 0..0,
                };
                let own = items[of_row].iter().map(Option::as_deref);
                formatted(&std::iter::once(formats[row].as_deref()).chain(own).collect::<Vec<_>>())
            })
        }),
        ("quote_ident", Utf8, |c| c.texts(|c, row| Ok(c.text(0, row)?.map(|name| quote(&name))))),
        ("quote_literal", Utf8, |c| {
            let arguments = shown(c)?;
            c.texts(|_, row| Ok(arguments[0][row].as_deref().map(literal)))
        }),
        ("quote_nullable", Utf8, |c| {
            let arguments = shown(c)?;
            c.texts(|_, row| Ok(Some(literal_or_null(arguments[0][row].as_deref()))))
        }),
    ]
}

/// All arguments as the texts that they are shown as, by argument and row.
fn shown(c: &Call<'_>) -> Result<Vec<Vec<Option<String>>>> {
    c.arguments.iter().map(texts).collect()
}

fn texts(array: &ArrayRef) -> Result<Vec<Option<String>>> {
    let texts = crate::functions::builtin::shown(array, None)?;
    let texts = texts.as_string::<i32>();
    Ok((0..texts.len()).map(|row| texts.is_valid(row).then(|| texts.value(row).to_owned())).collect())
}

fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    match text.contains('\\') {
        true => format!("E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    }
}

fn literal_or_null(text: Option<&str>) -> String {
    text.map_or_else(|| "NULL".to_owned(), literal)
}

fn wrong(state: &'static str, message: impl Into<String>) -> datafusion::error::DataFusionError {
    external(EngineError::new(state, message))
}

/// `%[position$][flags][width]type` of a format.
struct Specifier {
    /// Of the argument, from 1.
    position: Option<usize>,
    left: bool,
    width: Width,
    kind: char,
}

#[derive(Clone, Copy)]
enum Width {
    None,
    Is(i64),
    /// The next argument, or the one of that position.
    Of(Option<usize>),
}

/// The format, and what it is of.
fn formatted(arguments: &[Option<&str>]) -> Result<Option<String>> {
    let Some(format) = arguments.first().copied().flatten() else { return Ok(None) };
    let (mut out, mut rest, mut next) = (String::new(), format, 1);
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let (specifier, after) = specifier(after)?;
        rest = after;
        let argument = |position: Option<usize>, next: &mut usize| {
            let at = position.unwrap_or(*next);
            *next = at + 1;
            arguments.get(at).copied().ok_or_else(|| wrong("22023", "too few arguments for format()"))
        };
        let width = match specifier.width {
            Width::None => 0,
            Width::Is(width) => width,
            Width::Of(position) => match argument(position, &mut next)? {
                None => 0,
                Some(width) => width.parse().map_err(|_| external(EngineError::invalid_text("integer", width)))?,
            },
        };
        let value = argument(specifier.position, &mut next)?;
        let text = match (specifier.kind, value) {
            ('I', None) => return Err(wrong("22004", "null values cannot be formatted as an SQL identifier")),
            ('I', Some(name)) => quote(name),
            ('L', value) => literal_or_null(value),
            (_, value) => value.unwrap_or_default().to_owned(),
        };
        pad(&mut out, &text, width, specifier.left)?;
    }
    out.push_str(rest);
    Ok(Some(out))
}

/// Fills up to a width, on the right where it is negative.
fn pad(out: &mut String, text: &str, width: i64, left: bool) -> Result<()> {
    let wanted = usize::try_from(width.unsigned_abs()).ok().filter(|width| *width <= i32::MAX as usize);
    let wanted = wanted.ok_or_else(|| wrong("22003", "number is out of range"))?;
    let blanks = wanted.saturating_sub(text.chars().count());
    let _asked = crate::memory::ask("format", (out.len() + text.len() + blanks) as u64).map_err(external)?;
    let blanks = " ".repeat(blanks);
    match left || width < 0 {
        true => out.extend([text, &blanks]),
        false => out.extend([blanks.as_str(), text]),
    }
    Ok(())
}

const PERCENT: &str = "For a single \"%\" use \"%%\".";

/// What stands behind a percent sign, and what is left.
fn specifier(text: &str) -> Result<(Specifier, &str)> {
    let open = || {
        let error = EngineError::new("22023", "unterminated format() type specifier");
        external(error.with_hint(PERCENT))
    };
    let mut specifier = Specifier { position: None, left: false, width: Width::None, kind: 's' };
    let mut rest = text;
    if let (Some(number), after) = digits(rest)?
        && let Some(after) = after.strip_prefix('$')
    {
        specifier.position = Some(position(number)?);
        rest = after;
    }
    while let Some(after) = rest.strip_prefix('-') {
        specifier.left = true;
        rest = after;
    }
    if let Some(after) = rest.strip_prefix('*') {
        let (number, after) = digits(after)?;
        rest = after;
        let of = match number {
            None => None,
            Some(number) => {
                let message = "width argument position must be ended by \"$\"";
                rest = rest.strip_prefix('$').ok_or_else(|| wrong("22023", message))?;
                Some(position(number)?)
            }
        };
        specifier.width = Width::Of(of);
    } else if let (Some(width), after) = digits(rest)? {
        specifier.width = Width::Is(width);
        rest = after;
    }
    specifier.kind = rest.chars().next().ok_or_else(open)?;
    if !matches!(specifier.kind, 's' | 'I' | 'L') {
        let message = format!("unrecognized format() type specifier \"{}\"", specifier.kind);
        return Err(external(EngineError::new("22023", message).with_hint(PERCENT)));
    }
    Ok((specifier, &rest[1..]))
}

fn position(number: i64) -> Result<usize> {
    let message = "format specifies argument 0, but arguments are numbered from 1";
    usize::try_from(number).ok().filter(|number| *number > 0).ok_or_else(|| wrong("22023", message))
}

/// The number at the beginning, if there is one, and what is left.
fn digits(text: &str) -> Result<(Option<i64>, &str)> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = &text[..text.len() - rest.len()];
    let known = number.parse::<i32>().map(i64::from);
    match number.is_empty() {
        true => Ok((None, rest)),
        false => known.map(|number| (Some(number), rest)).map_err(|_| wrong("22003", "number is out of range")),
    }
}
