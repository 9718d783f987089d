//! How times are read and shown: the time zone, and what the settings DateStyle and IntervalStyle say.
//!
//! 1. The style is that of the work under way: of each thread, for as long as [`Style::scope`] holds (over polls of a
//!    future: [`Style::over`]). Outside it is the default. So values are read and shown alike wherever that happens,
//!    and nothing is passed along.
//! 2. What is kept, or sent to a program rather than to a reader (JSON, the catalogue), is written in the default
//!    style.
//!
//! Source: PostgreSQL 15 documentation, "Date/Time Output" (8.5.2) and "Interval Output" (8.5.5).
use super::zone::Zone;
use std::cell::Cell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Style {
    pub zone: Zone,
    pub dates: DateStyle,
    pub spans: IntervalStyle,
    /// Whether bytea is shown in the older form, with `\\ooo` for what is no letter (the setting bytea_output).
    pub escaped: bool,
    /// Floats are shown rounded, with so many digits less than their type always keeps (extra_float_digits below 1).
    /// `None`: by the shortest text that is read back as the same value.
    pub rounded: Option<u8>,
}

/// The setting DateStyle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct DateStyle {
    pub form: Form,
    pub order: Order,
}

/// How dates are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Form {
    #[default]
    Iso,
    Sql,
    Postgres,
    German,
}

/// In which order day, month and year are read where a text leaves it open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Order {
    #[default]
    Mdy,
    Dmy,
    Ymd,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum IntervalStyle {
    #[default]
    Postgres,
    Verbose,
    SqlStandard,
    Iso,
}

thread_local! {
    static CURRENT: Cell<Style> = const {
        let dates = DateStyle { form: Form::Iso, order: Order::Mdy };
        Cell::new(Style { zone: Zone::Utc, dates, spans: IntervalStyle::Postgres, escaped: false, rounded: None })
    };
}

/// Puts the style before it back.
struct Restore(Style);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

impl Style {
    /// Of the work under way (invariant 1).
    pub fn current() -> Style {
        CURRENT.get()
    }

    /// The same with all that may change how a text is read, but for the zone.
    pub fn readings(self) -> [Style; 4] {
        let order = |order| Style { dates: DateStyle { order, ..self.dates }, spans: IntervalStyle::Postgres, ..self };
        let standard = Style { spans: IntervalStyle::SqlStandard, ..self };
        [order(Order::Mdy), order(Order::Dmy), order(Order::Ymd), standard]
    }

    /// Does `work` in this style.
    pub fn scope<T>(self, work: impl FnOnce() -> T) -> T {
        let _restore = Restore(CURRENT.replace(self));
        work()
    }

    /// Runs a future to its end, each of its polls in this style. It is pinned where it is: taken by value, it would be
    /// copied and kept twice.
    pub async fn over<F: Future + Unpin>(self, mut work: F) -> F::Output {
        if self == Style::default() && Style::current() == self {
            return work.await;
        }
        poll_fn(|context| self.scope(|| Pin::new(&mut work).poll(context))).await
    }
}

impl DateStyle {
    /// The setting's text: a form, an order, or both; what it leaves out stays. `None`: it is wrong, or says two
    /// things.
    pub fn parse(self, text: &str) -> Option<DateStyle> {
        let (mut form, mut order) = (None, None);
        fn take<T: PartialEq + Copy>(known: &mut Option<T>, value: T) -> Option<()> {
            (known.is_none_or(|known| known == value)).then(|| *known = Some(value))
        }
        for word in text.split(',').map(|word| word.trim().trim_matches(['\'', '"']).to_ascii_lowercase()) {
            match word.as_str() {
                "iso" => take(&mut form, Form::Iso)?,
                "sql" => take(&mut form, Form::Sql)?,
                "german" => {
                    take(&mut form, Form::German)?;
                    order = order.or(Some(Order::Dmy));
                }
                "ymd" => take(&mut order, Order::Ymd)?,
                "default" => {
                    form = form.or(Some(Form::Iso));
                    order = order.or(Some(Order::Mdy));
                }
                word if word.starts_with("postgres") => take(&mut form, Form::Postgres)?,
                word if word == "dmy" || word.starts_with("euro") => take(&mut order, Order::Dmy)?,
                word if matches!(word, "mdy" | "us") || word.starts_with("noneuro") => take(&mut order, Order::Mdy)?,
                _ => return None,
            }
        }
        Some(DateStyle { form: form.unwrap_or(self.form), order: order.unwrap_or(self.order) })
    }
}

/// As SHOW tells it.
impl fmt::Display for DateStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.form {
            Form::Iso => "ISO",
            Form::Sql => "SQL",
            Form::Postgres => "Postgres",
            Form::German => "German",
        };
        let order = match self.order {
            Order::Mdy => "MDY",
            Order::Dmy => "DMY",
            Order::Ymd => "YMD",
        };
        write!(f, "{form}, {order}")
    }
}

impl IntervalStyle {
    pub fn parse(text: &str) -> Option<IntervalStyle> {
        Some(match text.trim().to_ascii_lowercase().as_str() {
            "postgres" => IntervalStyle::Postgres,
            "postgres_verbose" => IntervalStyle::Verbose,
            "sql_standard" => IntervalStyle::SqlStandard,
            "iso_8601" => IntervalStyle::Iso,
            _ => return None,
        })
    }
}

/// As SHOW tells it.
impl fmt::Display for IntervalStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IntervalStyle::Postgres => "postgres",
            IntervalStyle::Verbose => "postgres_verbose",
            IntervalStyle::SqlStandard => "sql_standard",
            IntervalStyle::Iso => "iso_8601",
        })
    }
}
