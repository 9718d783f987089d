//! Patterns of times.
use super::refused;
use crate::functions::calendar::{DAY, JULIAN_OF_1970, Part};
use terrace_engine::Result;
use terrace_engine::types::civil_from_days;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    /// A part of the time, modulo, with so many digits at least.
    Number(Part, i64, usize),
    Hour12,
    /// Digits of the second's fraction, all of them even with FM.
    Fraction(usize),
    SecondsOfDay,
    /// Of the year, with a comma before the last three digits.
    YearInGroups,
    DayOfWeek,
    WeekOfYear,
    WeekOfMonth,
    Julian,
    IsoDayOfYear,
    /// Of the month, in four places unless filled.
    Roman(Case),
    Month(Case, bool),
    Day(Case, bool),
    /// Before noon or after it.
    Half(Case, bool),
    Era(Case, bool),
    OffsetHours,
    OffsetMinutes,
    Offset,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Case {
    Upper,
    Title,
    Lower,
}

use Case::{Lower, Title, Upper};
use Field::{Day, Era, Fraction, Half, Hour12, Month, Number};

/// In capitals (but for names as titles); the longer of two that begin alike comes first. `None`: PostgreSQL has it,
/// and it is not done here.
const FIELDS: [(&str, Option<Field>); 58] = [
    ("Month", Some(Month(Title, true))),
    ("Mon", Some(Month(Title, false))),
    ("Day", Some(Day(Title, true))),
    ("Dy", Some(Day(Title, false))),
    ("A.D.", Some(Era(Upper, true))),
    ("A.M.", Some(Half(Upper, true))),
    ("AD", Some(Era(Upper, false))),
    ("AM", Some(Half(Upper, false))),
    ("B.C.", Some(Era(Upper, true))),
    ("BC", Some(Era(Upper, false))),
    ("CC", Some(Number(Part::Century, i64::MAX, 2))),
    ("DAY", Some(Day(Upper, true))),
    ("DDD", Some(Number(Part::DayOfYear, i64::MAX, 3))),
    ("DD", Some(Number(Part::Day, i64::MAX, 2))),
    ("DY", Some(Day(Upper, false))),
    ("D", Some(Field::DayOfWeek)),
    ("FF1", Some(Fraction(1))),
    ("FF2", Some(Fraction(2))),
    ("FF3", Some(Fraction(3))),
    ("FF4", Some(Fraction(4))),
    ("FF5", Some(Fraction(5))),
    ("FF6", Some(Fraction(6))),
    ("FX", None),
    ("HH24", Some(Number(Part::Hour, i64::MAX, 2))),
    ("HH12", Some(Hour12)),
    ("HH", Some(Hour12)),
    ("IDDD", Some(Field::IsoDayOfYear)),
    ("ID", Some(Number(Part::IsoDayOfWeek, i64::MAX, 1))),
    ("IW", Some(Number(Part::Week, i64::MAX, 2))),
    ("IYYY", Some(Number(Part::IsoYear, i64::MAX, 4))),
    ("IYY", Some(Number(Part::IsoYear, 1000, 3))),
    ("IY", Some(Number(Part::IsoYear, 100, 2))),
    ("I", Some(Number(Part::IsoYear, 10, 1))),
    ("J", Some(Field::Julian)),
    ("MI", Some(Number(Part::Minute, i64::MAX, 2))),
    ("MM", Some(Number(Part::Month, i64::MAX, 2))),
    ("MONTH", Some(Month(Upper, true))),
    ("MON", Some(Month(Upper, false))),
    ("MS", Some(Fraction(3))),
    ("OF", Some(Field::Offset)),
    ("P.M.", Some(Half(Upper, true))),
    ("PM", Some(Half(Upper, false))),
    ("Q", Some(Number(Part::Quarter, i64::MAX, 1))),
    ("RM", Some(Field::Roman(Upper))),
    ("SSSSS", Some(Field::SecondsOfDay)),
    ("SSSS", Some(Field::SecondsOfDay)),
    ("SS", Some(Number(Part::Second, i64::MAX, 2))),
    ("TZH", Some(Field::OffsetHours)),
    ("TZM", Some(Field::OffsetMinutes)),
    ("TZ", None),
    ("US", Some(Fraction(6))),
    ("WW", Some(Field::WeekOfYear)),
    ("W", Some(Field::WeekOfMonth)),
    ("Y,YYY", Some(Field::YearInGroups)),
    ("YYYY", Some(Number(Part::Year, i64::MAX, 4))),
    ("YYY", Some(Number(Part::Year, 1000, 3))),
    ("YY", Some(Number(Part::Year, 100, 2))),
    ("Y", Some(Number(Part::Year, 10, 1))),
];

#[derive(Clone, Copy, PartialEq)]
enum Ordinal {
    None,
    Upper,
    Lower,
}

enum Item {
    Text(String),
    Field { field: Field, fill: bool, ordinal: Ordinal },
}

pub(super) struct Pattern(Vec<Item>);

/// The field that the text begins with, and its length in bytes.
fn field_at(text: &str) -> Option<(Option<Field>, usize)> {
    // Names are tried as they are written, then (all of them in small letters) as if in capitals.
    let exact = FIELDS.iter().find(|(name, _)| text.starts_with(name));
    if let Some((name, field)) = exact {
        return Some((*field, name.len()));
    }
    let small = |name: &str| text.get(..name.len()).is_some_and(|head| head == name.to_ascii_lowercase());
    let (name, field) = FIELDS.iter().find(|(name, _)| small(name))?;
    let lower = match *field {
        Some(Day(_, long)) => Some(Day(Lower, long)),
        Some(Month(_, long)) => Some(Month(Lower, long)),
        Some(Field::Roman(_)) => Some(Field::Roman(Lower)),
        Some(Half(_, dots)) => Some(Half(Lower, dots)),
        Some(Era(_, dots)) => Some(Era(Lower, dots)),
        other => other,
    };
    Some((lower, name.len()))
}

/// What a pattern begins with that is no field: a character, or a text in quotes, where a backslash stands before a
/// character that is one of the text. And what is behind it.
fn literal_at(text: &str) -> (String, &str) {
    let mut rest = text.chars();
    let Some(quoted) = text.strip_prefix('"') else {
        // Elsewhere a backslash is one, but before a quote.
        let first = rest.next();
        let shown = match text.starts_with("\\\"") {
            true => rest.next(),
            false => first,
        };
        return (shown.into_iter().collect(), rest.as_str());
    };
    let (mut shown, mut rest) = (String::new(), quoted.chars());
    while let Some(next) = rest.next() {
        match next {
            '"' => break,
            '\\' => shown.extend(rest.next().or(Some('\\'))),
            other => shown.push(other),
        }
    }
    (shown, rest.as_str())
}

impl Pattern {
    pub(super) fn read(text: &str) -> Result<Pattern> {
        if text.is_empty() {
            return Err(refused("", text));
        }
        let (mut items, mut rest) = (vec![], text);
        while !rest.is_empty() {
            // Before what is no field it says nothing.
            let fill = rest.starts_with("FM") || rest.starts_with("fm");
            rest = if fill { &rest[2..] } else { rest };
            if rest.starts_with("TM") || rest.starts_with("tm") {
                return Err(refused(&rest[..2], text));
            }
            if let Some((field, length)) = field_at(rest) {
                let field = field.ok_or_else(|| refused(&rest[..length], text))?;
                rest = &rest[length..];
                let ordinal = match rest.get(..2) {
                    Some("TH") => Ordinal::Upper,
                    Some("th") => Ordinal::Lower,
                    Some("SP" | "sp") => return Err(refused(&rest[..2], text)),
                    _ => Ordinal::None,
                };
                rest = if ordinal == Ordinal::None { rest } else { &rest[2..] };
                items.push(Item::Field { field, fill, ordinal });
                continue;
            }
            let (literal, behind) = literal_at(rest);
            rest = behind;
            items.push(Item::Text(literal));
        }
        Ok(Pattern(items))
    }

    /// `micros`: since 1970, by the clock; `offset`: of the clock, in seconds east of UTC.
    pub(super) fn write(&self, micros: i64, offset: i64) -> String {
        let mut out = String::new();
        for item in &self.0 {
            match item {
                Item::Text(text) => out.push_str(text),
                Item::Field { field, fill, ordinal } => {
                    let begin = out.len();
                    field.write(micros, offset, *fill, &mut out);
                    if *ordinal != Ordinal::None && field.is_number() {
                        let ending = ordinal_of(&out[begin..]);
                        out.push_str(&if *ordinal == Ordinal::Upper {
                            ending.to_uppercase()
                        } else {
                            ending.to_owned()
                        });
                    }
                }
            }
        }
        out
    }
}

fn ordinal_of(number: &str) -> &'static str {
    let mut last = number.bytes().rev();
    match (last.next(), last.next()) {
        (_, Some(b'1')) => "th",
        (Some(b'1'), _) => "st",
        (Some(b'2'), _) => "nd",
        (Some(b'3'), _) => "rd",
        _ => "th",
    }
}

fn cased(name: &str, case: Case) -> String {
    match case {
        Upper => name.to_uppercase(),
        Title => name.to_owned(),
        Lower => name.to_lowercase(),
    }
}

/// A name, whole (nine characters unless filled) or its first three.
fn named(name: &str, case: Case, long: bool, fill: bool) -> String {
    match (long, fill) {
        (false, _) => cased(&name[..3], case),
        (true, true) => cased(name, case),
        (true, false) => format!("{:<9}", cased(name, case)),
    }
}

impl Field {
    fn is_number(self) -> bool {
        !matches!(
            self,
            Month(..)
                | Day(..)
                | Half(..)
                | Era(..)
                | Field::Roman(_)
                | Field::OffsetHours
                | Field::OffsetMinutes
                | Field::Offset
        )
    }

    fn write(self, micros: i64, offset: i64, fill: bool, out: &mut String) {
        let part = |part: Part| (part.of_timestamp(micros) / 10i128.pow(part.scale().into())) as i64;
        let number = |value: i64, width: usize| match fill {
            true => value.to_string(),
            false => format!("{value:0width$}"),
        };
        let dotted = |letters: &str, case: Case, dots: bool| {
            let letters = cased(letters, case);
            if dots { letters.chars().flat_map(|c| [c, '.']).collect() } else { letters }
        };
        let (year, month, of_month) = civil_from_days(micros.div_euclid(DAY));
        let (hours, minutes) = (offset.abs() / 3600, offset.abs() / 60 % 60);
        let sign = if offset < 0 { '-' } else { '+' };
        let text = match self {
            Number(Part::Century, ..) => {
                let century = part(Part::Century);
                number(century, if century < 0 { 3 } else { 2 })
            }
            // Years before Christ are counted back from their era's end.
            Number(of, modulo, width) => number(part(of).abs() % modulo, width),
            Hour12 => number((part(Part::Hour) + 11) % 12 + 1, 2),
            Fraction(digits) => {
                let micros = micros.rem_euclid(1_000_000);
                format!("{:0digits$}", micros / 10i64.pow(6 - digits as u32))
            }
            Field::SecondsOfDay => (micros.rem_euclid(DAY) / 1_000_000).to_string(),
            Field::YearInGroups => {
                let year = part(Part::Year).abs();
                format!("{},{:03}", year / 1000, year % 1000)
            }
            Field::DayOfWeek => (part(Part::DayOfWeek) + 1).to_string(),
            Field::WeekOfYear => number((part(Part::DayOfYear) - 1) / 7 + 1, 2),
            Field::WeekOfMonth => ((of_month - 1) / 7 + 1).to_string(),
            Field::Julian => (micros.div_euclid(DAY) + JULIAN_OF_1970).to_string(),
            Field::IsoDayOfYear => number((part(Part::Week) - 1) * 7 + part(Part::IsoDayOfWeek), 3),
            Field::Roman(case) => {
                let roman = cased(ROMAN[(month - 1) as usize], case);
                if fill { roman } else { format!("{roman:<4}") }
            }
            Month(case, long) => named(MONTHS[(month - 1) as usize], case, long, fill),
            Day(case, long) => named(DAYS[part(Part::DayOfWeek) as usize], case, long, fill),
            Half(case, dots) => dotted(if part(Part::Hour) < 12 { "AM" } else { "PM" }, case, dots),
            Era(case, dots) => dotted(if year > 0 { "AD" } else { "BC" }, case, dots),
            Field::OffsetHours => format!("{sign}{hours:02}"),
            Field::OffsetMinutes => format!("{minutes:02}"),
            Field::Offset if minutes == 0 => format!("{sign}{}", number(hours, 2)),
            Field::Offset => format!("{sign}{}:{minutes:02}", number(hours, 2)),
        };
        out.push_str(&text);
    }
}
