//! Run-time parameters: SET, SHOW, RESET. A parameter that does nothing here is accepted only with the value that is true.
use crate::error::unsupported;
use std::collections::BTreeMap;
use std::time::Duration;
use terrace_engine::{EngineError, Isolation, Result};

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    values: BTreeMap<&'static str, String>,
    timeouts: Timeouts,
    isolation: Isolation,
}

/// Limits on time that a session has set. `None`: none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timeouts {
    pub(crate) statement: Option<Duration>,
    pub(crate) lock: Option<Duration>,
    pub(crate) idle_in_transaction: Option<Duration>,
    pub(crate) idle_session: Option<Duration>,
}

/// Name as SHOW writes it, and value at the start.
const DEFAULTS: &[(&str, &str)] = &[
    ("application_name", ""),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("client_min_messages", "notice"),
    ("DateStyle", "ISO, MDY"),
    ("default_transaction_isolation", "read committed"),
    ("extra_float_digits", "1"),
    ("integer_datetimes", "on"),
    ("IntervalStyle", "postgres"),
    ("is_superuser", "on"),
    ("lock_timeout", "0"),
    ("search_path", "\"$user\", public"),
    ("server_encoding", "UTF8"),
    ("server_version", crate::pgcatalog::SERVER_VERSION),
    ("standard_conforming_strings", "on"),
    ("statement_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("idle_session_timeout", "0"),
    ("TimeZone", "UTC"),
    ("transaction_read_only", "off"),
    ("default_transaction_read_only", "off"),
];

impl Settings {
    pub(crate) fn new() -> Settings {
        let values = DEFAULTS.iter().map(|(name, value)| (*name, value.to_string())).collect();
        Settings { values, timeouts: Timeouts::default(), isolation: Isolation::ReadCommitted }
    }

    pub(crate) fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    fn store(&mut self, key: &'static str, value: String) {
        self.values.insert(key, value);
        let timeout = |name: &str| match milliseconds(&self.values[name]) {
            None | Some(0) => None,
            Some(ms) => Some(Duration::from_millis(ms)),
        };
        self.timeouts = Timeouts {
            statement: timeout("statement_timeout"),
            lock: timeout("lock_timeout"),
            idle_in_transaction: timeout("idle_in_transaction_session_timeout"),
            idle_session: timeout("idle_session_timeout"),
        };
        self.isolation = match self.values["default_transaction_isolation"].as_str() {
            "repeatable read" => Isolation::RepeatableRead,
            _ => Isolation::ReadCommitted,
        };
    }

    fn key(name: &str) -> Result<&'static str> {
        DEFAULTS
            .iter()
            .map(|(key, _)| *key)
            .find(|key| key.eq_ignore_ascii_case(name))
            .ok_or_else(|| EngineError::new("42704", format!("unrecognized configuration parameter \"{name}\"")))
    }

    /// The parameter's name as SHOW writes it, and its value.
    pub(crate) fn show(&self, name: &str) -> Result<(&'static str, String)> {
        let key = Self::key(name)?;
        Ok((key, self.values[key].clone()))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().map(|(name, value)| (*name, value.as_str()))
    }

    pub(crate) fn reset(&mut self, name: &str) -> Result<()> {
        let key = Self::key(name)?;
        let (_, value) = DEFAULTS.iter().find(|(k, _)| *k == key).expect("keys are of this list");
        self.store(key, value.to_string());
        Ok(())
    }

    pub(crate) fn default_isolation(&self) -> Isolation {
        self.isolation
    }

    pub(crate) fn application_name(&self) -> &str {
        &self.values["application_name"]
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let key = Self::key(name)?;
        let lower = value.to_ascii_lowercase();
        let stored = match key {
            "application_name" => value.to_string(),
            "client_min_messages" => lower,
            "extra_float_digits" => match value.parse::<i32>() {
                Ok(-15..=3) => value.to_string(),
                _ => return Err(invalid(key, value)),
            },
            "search_path" => match lower.split(',').map(|s| s.trim().trim_matches('"')).collect::<Vec<_>>() {
                parts if parts.iter().all(|p| ["public", "$user", "pg_catalog", ""].contains(p)) => value.to_string(),
                _ => return Err(unsupported("a search_path other than public")),
            },
            "default_transaction_isolation" => match lower.as_str() {
                "read committed" | "read uncommitted" => "read committed".into(),
                "repeatable read" => lower,
                "serializable" => return Err(unsupported("isolation level SERIALIZABLE")),
                _ => return Err(invalid(key, value)),
            },
            _ if key.ends_with("_timeout") => match milliseconds(&lower) {
                Some(ms) if ms <= i32::MAX as u64 => shown_time(ms),
                _ => return Err(invalid(key, value).with_hint(TIME_HINT)),
            },
            _ => {
                self.require(key, &lower)?;
                return Ok(());
            }
        };
        self.store(key, stored);
        Ok(())
    }

    /// These have one true value; the spellings PostgreSQL takes for it are taken.
    fn require(&self, key: &'static str, lower: &str) -> Result<()> {
        let spellings: &[&str] = match key {
            "bytea_output" => &["hex"],
            "client_encoding" => &["utf8", "utf-8", "unicode"],
            "DateStyle" => &["iso", "iso, mdy", "iso,mdy"],
            "IntervalStyle" => &["postgres"],
            "standard_conforming_strings" => &["on", "true", "1", "yes"],
            "TimeZone" => &["utc", "gmt", "etc/utc", "0", "utc0"],
            "transaction_read_only" | "default_transaction_read_only" => &["off", "false", "0", "no"],
            _ => return Err(EngineError::new("55P02", format!("parameter \"{key}\" cannot be changed"))),
        };
        if spellings.contains(&lower) || lower == "default" {
            return Ok(());
        }
        Err(unsupported(format!("{key} = '{lower}'")))
    }
}

const TIME_HINT: &str = "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".";

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1)];

/// A time such as `5s`, `1.5min` or `250` (milliseconds), in milliseconds.
fn milliseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number: f64 = text[..text.len() - unit.len()].parse().ok()?;
    let scale = match unit.trim() {
        "" => 1.0,
        "us" => 0.001,
        unit => UNITS.iter().find(|(name, _)| *name == unit)?.1 as f64,
    };
    // Beyond what f64 tells apart, it is too long anyway.
    Some((number * scale).round() as u64)
}

/// In the largest unit that gives a whole number, as SHOW prints it.
fn shown_time(ms: u64) -> String {
    match UNITS.iter().find(|(_, scale)| ms > 0 && ms.is_multiple_of(*scale)) {
        Some((unit, scale)) => format!("{}{unit}", ms / scale),
        None => "0".into(),
    }
}

fn invalid(key: &str, value: &str) -> EngineError {
    EngineError::new("22023", format!("invalid value for parameter \"{key}\": \"{value}\""))
}
