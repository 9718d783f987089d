//! Messages as JSON, one object a line: `time` (microseconds since 1970, UTC), `level`, `target`, `message`, and each
//! field by its name.

use std::fmt::{self, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

#[cfg(test)]
mod tests;

pub(crate) struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        #[expect(clippy::disallowed_methods, reason = "messages are stamped with the machine's time")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros());
        let mut line = format!("{{\"time\":{now}");
        let mut object = Object(&mut line);
        object.text("level", event.metadata().level().as_str());
        object.text("target", event.metadata().target());
        event.record(&mut object);
        writeln!(writer, "{line}}}")
    }
}

/// The fields of an object that was begun.
struct Object<'a>(&'a mut String);

impl Object<'_> {
    fn name(&mut self, name: &str) {
        self.0.push(',');
        self.quoted(name);
        self.0.push(':');
    }

    fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        self.quoted(text);
    }

    fn quoted(&mut self, text: &str) {
        self.0.push('"');
        for c in text.chars() {
            match c {
                '"' => self.0.push_str("\\\""),
                '\\' => self.0.push_str("\\\\"),
                '\n' => self.0.push_str("\\n"),
                c if u32::from(c) < 0x20 => {
                    let _ = write!(self.0, "\\u{:04x}", u32::from(c));
                }
                c => self.0.push(c),
            }
        }
        self.0.push('"');
    }

    fn plain(&mut self, name: &str, value: impl fmt::Display) {
        self.name(name);
        let _ = write!(self.0, "{value}");
    }
}

impl Visit for Object<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field.name(), &format!("{value:?}"));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value);
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field.name(), value);
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.plain(field.name(), value);
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field.name(), value);
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no infinities.
        match value.is_finite() {
            true => self.plain(field.name(), value),
            false => self.text(field.name(), &value.to_string()),
        }
    }
}
