//! Writes intervals in the style of the work under way (the setting IntervalStyle).
use super::super::style::{IntervalStyle, Style};
use super::{Interval, write_clock};
use std::fmt::{self, Write};

/// The parts that are shown, with one sign for those of the time.
struct Parts {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    /// With their fraction.
    micros: i64,
}

impl fmt::Display for Interval {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Style::current().spans {
            IntervalStyle::Postgres => self.in_words(out),
            IntervalStyle::Verbose => self.parts().verbose(out),
            IntervalStyle::SqlStandard => self.parts().sql_standard(out),
            IntervalStyle::Iso => self.parts().iso(out),
        }
    }
}

impl Interval {
    fn parts(self) -> Parts {
        Parts {
            years: (self.months / 12).into(),
            months: (self.months % 12).into(),
            days: self.days.into(),
            hours: self.micros / 3_600_000_000,
            minutes: self.micros / 60_000_000 % 60,
            micros: self.micros % 60_000_000,
        }
    }

    /// `1 year 2 mons 3 days 04:05:06.5`; a positive part after a negative one has a plus.
    fn in_words(self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut first, mut negative) = (true, false);
        for (amount, unit) in [(self.months / 12, "year"), (self.months % 12, "mon"), (self.days, "day")] {
            if amount == 0 {
                continue;
            }
            let space = if first { "" } else { " " };
            let sign = if negative && amount > 0 { "+" } else { "" };
            let plural = if amount == 1 { "" } else { "s" };
            write!(out, "{space}{sign}{amount} {unit}{plural}")?;
            (first, negative) = (false, amount < 0);
        }
        if self.micros != 0 || first {
            let space = if first { "" } else { " " };
            let sign = match () {
                () if self.micros < 0 => "-",
                () if negative => "+",
                () => "",
            };
            write!(out, "{space}{sign}")?;
            write_clock(out, self.micros.unsigned_abs())?;
        }
        Ok(())
    }
}

/// `6.5`
fn write_seconds(out: &mut impl Write, micros: u64) -> fmt::Result {
    write!(out, "{}", micros / 1_000_000)?;
    match micros % 1_000_000 {
        0 => Ok(()),
        fraction => write!(out, ".{}", format!("{fraction:06}").trim_end_matches('0')),
    }
}

impl Parts {
    /// `@ 1 year 2 mons -3 days ago`: the sign of the first part is told at the end.
    fn verbose(&self, out: &mut impl Write) -> fmt::Result {
        out.write_char('@')?;
        let mut before = None;
        let units = [
            (self.years, "year"),
            (self.months, "mon"),
            (self.days, "day"),
            (self.hours, "hour"),
            (self.minutes, "min"),
        ];
        for (amount, unit) in units.into_iter().filter(|(amount, _)| *amount != 0) {
            let backwards = *before.get_or_insert(amount < 0);
            let amount = if backwards { -amount } else { amount };
            write!(out, " {amount} {unit}{}", if amount == 1 { "" } else { "s" })?;
        }
        if self.micros != 0 {
            let first = before.is_none();
            let backwards = *before.get_or_insert(self.micros < 0);
            let minus = if !first && (self.micros < 0) != backwards { "-" } else { "" };
            write!(out, " {minus}")?;
            write_seconds(out, self.micros.unsigned_abs())?;
            write!(out, " sec{}", if self.micros.unsigned_abs() == 1_000_000 { "" } else { "s" })?;
        }
        match before {
            None => out.write_str(" 0"),
            Some(true) => out.write_str(" ago"),
            Some(false) => Ok(()),
        }
    }

    fn each(&self) -> [i64; 6] {
        [self.years, self.months, self.days, self.hours, self.minutes, self.micros]
    }

    fn time(&self) -> u64 {
        (self.hours * 3_600_000_000 + self.minutes * 60_000_000 + self.micros).unsigned_abs()
    }

    /// `H:MM:SS.5`
    fn write_time(&self, out: &mut impl Write) -> fmt::Result {
        let micros = self.time();
        let (hours, rest) = (micros / 3_600_000_000, micros % 3_600_000_000);
        let mut clock = String::new();
        write_clock(&mut clock, rest)?;
        write!(out, "{hours}{}", &clock[2..])
    }

    /// `1-2`, `3 4:05:06`; what SQL has no form for, with all of its signs: `+1-2 -3 +4:05:06`.
    fn sql_standard(&self, out: &mut impl Write) -> fmt::Result {
        let each = self.each();
        let (negative, positive) = (each.iter().any(|v| *v < 0), each.iter().any(|v| *v > 0));
        let of_months = self.years != 0 || self.months != 0;
        let of_time = each[2..].iter().any(|v| *v != 0);
        if !negative && !positive {
            return out.write_char('0');
        }
        if (negative && positive) || (of_months && of_time) {
            let sign = |negative: bool| if negative { '-' } else { '+' };
            let months = sign(self.years < 0 || self.months < 0);
            write!(out, "{months}{}-{} ", self.years.abs(), self.months.abs())?;
            write!(out, "{}{} ", sign(self.days < 0), self.days.abs())?;
            out.write_char(sign(each[3..].iter().any(|v| *v < 0)))?;
            return self.write_time(out);
        }
        if negative {
            out.write_char('-')?;
        }
        if of_months {
            return write!(out, "{}-{}", self.years.abs(), self.months.abs());
        }
        if self.days != 0 {
            write!(out, "{} ", self.days.abs())?;
        }
        self.write_time(out)
    }

    /// `P1Y2M3DT4H5M6.5S`
    fn iso(&self, out: &mut impl Write) -> fmt::Result {
        if self.each().iter().all(|v| *v == 0) {
            return out.write_str("PT0S");
        }
        out.write_char('P')?;
        for (amount, unit) in [(self.years, 'Y'), (self.months, 'M'), (self.days, 'D')] {
            if amount != 0 {
                write!(out, "{amount}{unit}")?;
            }
        }
        if self.time() != 0 {
            out.write_char('T')?;
        }
        for (amount, unit) in [(self.hours, 'H'), (self.minutes, 'M')] {
            if amount != 0 {
                write!(out, "{amount}{unit}")?;
            }
        }
        if self.micros != 0 {
            out.write_str(if self.micros < 0 { "-" } else { "" })?;
            write_seconds(out, self.micros.unsigned_abs())?;
            out.write_char('S')?;
        }
        Ok(())
    }
}
