//! Reads intervals as PostgreSQL does: `1 year 2 months`, `1 day 02:03:04.5`, `-25:00`, `1-2`, `@ 3 days ago`. Not ISO
//! 8601's `P1Y` (0A000).
use super::{DAY, make, out_of_range};
use datafusion::arrow::datatypes::IntervalMonthDayNano;
use terrace_engine::EngineError;

type Result<T> = std::result::Result<T, EngineError>;

/// The parts as they grow.
#[derive(Default)]
struct Parts {
    months: i64,
    days: i64,
    micros: i64,
    /// What has been said already: each unit is said once.
    said: Vec<Unit>,
}

const SECOND: Unit = Unit::Micros(1_000_000);
const TIME: [Unit; 5] =
    [Unit::Micros(3_600_000_000), Unit::Micros(60_000_000), SECOND, Unit::Micros(1000), Unit::Micros(1)];

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Micros(i64),
    Days(i64),
    Months(i64),
}

fn unit(name: &str) -> Option<Unit> {
    Some(match name {
        "microsecond" | "microseconds" | "us" | "usec" | "usecs" | "usecond" | "useconds" => Unit::Micros(1),
        "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" | "msecond" | "mseconds" => Unit::Micros(1000),
        "second" | "seconds" | "sec" | "secs" | "s" => Unit::Micros(1_000_000),
        "minute" | "minutes" | "min" | "mins" | "m" => Unit::Micros(60_000_000),
        "hour" | "hours" | "hr" | "hrs" | "h" => Unit::Micros(3_600_000_000),
        "day" | "days" | "d" => Unit::Days(1),
        "week" | "weeks" | "w" => Unit::Days(7),
        "month" | "months" | "mon" | "mons" => Unit::Months(1),
        "year" | "years" | "yr" | "yrs" | "y" => Unit::Months(12),
        "decade" | "decades" | "dec" | "decs" => Unit::Months(120),
        "century" | "centuries" | "cent" | "c" => Unit::Months(1200),
        "millennium" | "millennia" | "mil" | "mils" => Unit::Months(12_000),
        _ => return None,
    })
}

pub(super) fn read(text: &str) -> Result<IntervalMonthDayNano> {
    let bad = || EngineError::new("22007", format!("invalid input syntax for type interval: \"{text}\""));
    let words = words(text).ok_or_else(bad)?;
    if words.first().is_some_and(|word| word.starts_with(['P', 'p'])) {
        let error = EngineError::unsupported(format!("intervals in ISO 8601's form (\"{text}\") are not supported"));
        return Err(error.with_hint("Write it as 1 year 2 months 3 days 04:05:06."));
    }
    let mut parts = Parts::default();
    let (mut seen, mut ago) = (false, false);
    let mut rest = words.iter().map(String::as_str).peekable();
    while let Some(word) = rest.next() {
        if ago {
            return Err(bad());
        }
        if word == "@" && !seen {
            continue;
        }
        if word.eq_ignore_ascii_case("ago") && seen {
            ago = true;
            continue;
        }
        if word.contains(':') {
            parts.say(&TIME).ok_or_else(bad)?;
            parts.add_time(word).ok_or_else(bad)??;
        } else if let Some((years, months)) = years_and_months(word) {
            parts.say(&[Unit::Months(1)]).ok_or_else(bad)?;
            parts.months = add(parts.months, years.checked_mul(12).and_then(|y| y.checked_add(months)))?;
        } else {
            let number = Number::read(word).ok_or_else(bad)?;
            let next = rest.peek().map(|next| next.to_ascii_lowercase());
            let named = next.as_deref().and_then(unit);
            let unit = match named {
                Some(unit) => unit,
                // Days before a time, seconds at the end.
                None if next.as_ref().is_some_and(|next| next.contains(':')) => Unit::Days(1),
                None if next.is_none() || next.as_deref() == Some("ago") => SECOND,
                None => return Err(bad()),
            };
            // A part of a second is milliseconds and microseconds too.
            let says = if unit == SECOND && number.fraction != 0.0 { &TIME[2..] } else { &[unit] };
            parts.say(says).ok_or_else(bad)?;
            parts.add(number, unit)?;
            if named.is_some() {
                rest.next();
            }
        }
        seen = true;
    }
    if !seen {
        return Err(bad());
    }
    let sign = if ago { -1 } else { 1 };
    let narrow = |v: i64| i32::try_from(v * sign).map_err(|_| out_of_range());
    make(narrow(parts.months)?, narrow(parts.days)?, parts.micros.checked_mul(sign).ok_or_else(out_of_range)?)
}

/// Words, a number apart from the letters that follow it.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = vec![];
    for word in text.split_ascii_whitespace() {
        let letters = word.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(word.len());
        if word.starts_with(['P', 'p']) && letters == 0 && word.len() > 1 {
            return Some(vec![word.to_owned()]);
        }
        if letters > 0 {
            words.push(word[..letters].to_owned());
        }
        if letters < word.len() {
            let name = &word[letters..];
            if !name.bytes().all(|b| b.is_ascii_alphabetic()) {
                // 1y2m and the like.
                words.extend(self::words(&spaced(name)?)?);
            } else {
                words.push(name.to_owned());
            }
        }
    }
    Some(words)
}

/// With a space between letters and what follows them.
fn spaced(text: &str) -> Option<String> {
    let at = text.find(|c: char| !c.is_ascii_alphabetic())?;
    let next = text[at..].chars().next()?;
    (next.is_ascii_digit() || matches!(next, '-' | '+' | '.')).then(|| format!("{} {}", &text[..at], &text[at..]))
}

fn add(a: i64, b: Option<i64>) -> Result<i64> {
    b.and_then(|b| a.checked_add(b)).ok_or_else(out_of_range)
}

/// `[+-]Y-M`.
fn years_and_months(word: &str) -> Option<(i64, i64)> {
    let (negative, unsigned) = signed(word);
    let (years, months) = unsigned.split_once('-')?;
    let digits = |text: &str| (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok());
    let (years, months): (i64, i64) = (digits(years)??, digits(months)??);
    if months > 11 {
        return None;
    }
    Some(if negative { (-years, -months) } else { (years, months) })
}

fn signed(word: &str) -> (bool, &str) {
    match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    }
}

/// A decimal number: its whole part, and its fraction, of the same sign.
#[derive(Clone, Copy)]
struct Number {
    whole: i64,
    fraction: f64,
}

impl Number {
    fn read(word: &str) -> Option<Number> {
        let (negative, unsigned) = signed(word);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
            return None;
        }
        let value: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let part: f64 = if fraction.is_empty() { 0.0 } else { format!("0.{fraction}").parse().ok()? };
        Some(if negative { Number { whole: -value, fraction: -part } } else { Number { whole: value, fraction: part } })
    }
}

impl Parts {
    /// `None`: one of these units has been said already.
    fn say(&mut self, units: &[Unit]) -> Option<()> {
        let again = units.iter().any(|unit| self.said.contains(unit));
        self.said.extend_from_slice(units);
        (!again).then_some(())
    }

    fn add(&mut self, number: Number, unit: Unit) -> Result<()> {
        match unit {
            Unit::Micros(size) => {
                self.micros = add(self.micros, number.whole.checked_mul(size))?;
                self.micros = add(self.micros, Some((number.fraction * size as f64).round_ties_even() as i64))?;
            }
            Unit::Days(size) => {
                self.days = add(self.days, number.whole.checked_mul(size))?;
                self.add_days(number.fraction * size as f64)?;
            }
            Unit::Months(1) => {
                self.months = add(self.months, Some(number.whole))?;
                self.add_days(number.fraction * 30.0)?;
            }
            // A part of a year is whole months.
            Unit::Months(size) => {
                self.months = add(self.months, number.whole.checked_mul(size))?;
                self.months = add(self.months, Some((number.fraction * size as f64).round_ties_even() as i64))?;
            }
        }
        Ok(())
    }

    fn add_days(&mut self, days: f64) -> Result<()> {
        self.days = add(self.days, Some(days as i64))?;
        self.micros = add(self.micros, Some(((days - days.trunc()) * DAY as f64).round_ties_even() as i64))?;
        Ok(())
    }

    /// `[+-]h:mm[:ss[.ffffff]]`; `None`: it is none.
    fn add_time(&mut self, word: &str) -> Option<Result<()>> {
        let (negative, unsigned) = signed(word);
        let fields: Vec<&str> = unsigned.split(':').collect();
        let whole = |text: &str| -> Option<i64> {
            (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
        };
        // mm:ss.fff is minutes and seconds.
        let (hours, minutes, seconds) = match fields.as_slice() {
            [minutes, seconds] if seconds.contains('.') => (0, whole(minutes)?, Number::read(seconds)?),
            [hours, minutes] => (whole(hours)?, whole(minutes)?, Number { whole: 0, fraction: 0.0 }),
            [hours, minutes, seconds] => (whole(hours)?, whole(minutes)?, Number::read(seconds)?),
            _ => return None,
        };
        if minutes > 59 || !(0..=59).contains(&seconds.whole) || seconds.fraction.is_sign_negative() {
            return Some(Err(EngineError::new("22015", format!("interval field value out of range: \"{word}\""))));
        }
        let fraction = (seconds.fraction * 1e6).round_ties_even() as i64;
        let rest = minutes * 60_000_000 + seconds.whole * 1_000_000 + fraction;
        let micros = hours.checked_mul(3_600_000_000).and_then(|hours| hours.checked_add(rest));
        let micros = micros.map(|micros| if negative { -micros } else { micros });
        Some(add(self.micros, micros).map(|micros| self.micros = micros))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Shown;
    use super::*;

    fn shown(text: &str) -> String {
        match read(text) {
            Ok(interval) => Shown(interval).to_string(),
            Err(error) => error.state.0.to_owned(),
        }
    }

    #[test]
    fn as_postgresql_reads_them() {
        for (text, answer) in [
            ("1 day", "1 day"),
            ("30 days 1 hour 40 min", "30 days 01:40:00"),
            ("1 day 02:00", "1 day 02:00:00"),
            ("-25:00:00", "-25:00:00"),
            ("1-2", "1 year 2 mons"),
            ("-1-2", "-1 years -2 mons"),
            ("@ 3 days ago", "-3 days"),
            ("1.5 months", "1 mon 15 days"),
            ("1.5 years", "1 year 6 mons"),
            ("0.5 weeks", "3 days 12:00:00"),
            ("1.5 days", "1 day 12:00:00"),
            ("1 mon -1 day", "1 mon -1 days"),
            ("-1 mon +1 day 00:00:01", "-1 mons +1 day 00:00:01"),
            ("12", "00:00:12"),
            ("3 04:05:06.7", "3 days 04:05:06.7"),
            ("1y2mon3d4h5m6s", "1 year 2 mons 3 days 04:05:06"),
            ("1 century", "100 years"),
            ("12:30.5", "00:12:30.5"),
            ("0", "00:00:00"),
            ("", "22007"),
            ("abc", "22007"),
            ("1 fortnight", "22007"),
            ("1 day 1 day", "22007"),
            ("1 hour 1:00", "22007"),
            ("1.5 s 1 ms", "22007"),
            ("1 s 1 ms", "00:00:01.001"),
            ("1 week 1 day", "8 days"),
            ("1:60", "22015"),
            ("P1D", "0A000"),
            ("3000000000 days", "22008"),
        ] {
            assert_eq!(shown(text), answer, "{text}");
        }
    }
}
