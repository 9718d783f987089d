//! Run-time parameters: SET, SET LOCAL, SHOW, RESET. A parameter that does nothing here is accepted only with the value
//! that is true.
//!
//! 1. A change belongs to its transaction: what is rolled back, to a savepoint too, is unset, and SET LOCAL ends with
//!    COMMIT.
//! 2. RESET goes back to what the session began with.
use crate::error::unsupported;
use futures::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use terrace_engine::types::Zone;
use terrace_engine::{EngineError, Isolation, Result};

type Values = Arc<BTreeMap<&'static str, String>>;

#[derive(Clone, Debug)]
struct State {
    /// In force.
    now: Values,
    /// What COMMIT leaves: without SET LOCAL.
    kept: Values,
}

#[derive(Debug)]
pub(crate) struct Settings {
    state: State,
    initial: Values,
    /// Before the open transaction changed anything; `None`: it has not.
    before: Option<State>,
    /// At each savepoint, oldest first.
    savepoints: Vec<State>,
    timeouts: Timeouts,
    isolation: Isolation,
    reported: Arc<Reported>,
    zone: Zone,
    synchronous_commit: bool,
    read_only: bool,
}

/// What a client is told of whenever it changes: name as SHOW writes it, and value.
pub type Reported = [(&'static str, Arc<str>); 2];

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
    ("backslash_quote", "safe_encoding"),
    ("bytea_output", "hex"),
    ("check_function_bodies", "on"),
    ("client_encoding", "UTF8"),
    ("client_min_messages", "notice"),
    ("DateStyle", "ISO, MDY"),
    ("default_table_access_method", "heap"),
    ("default_tablespace", ""),
    ("default_transaction_isolation", "read committed"),
    ("extra_float_digits", "1"),
    ("integer_datetimes", "on"),
    ("IntervalStyle", "postgres"),
    ("is_superuser", "on"),
    ("lock_timeout", "0"),
    ("max_identifier_length", "63"),
    ("password_encryption", "scram-sha-256"),
    ("row_security", "on"),
    ("search_path", "\"$user\", public"),
    ("server_encoding", "UTF8"),
    ("server_version", crate::settings::SERVER_VERSION),
    ("standard_conforming_strings", "on"),
    ("server_version_num", "150000"),
    ("statement_timeout", "0"),
    ("synchronous_commit", "on"),
    ("idle_in_transaction_session_timeout", "0"),
    ("idle_session_timeout", "0"),
    ("TimeZone", "UTC"),
    // Empty: as default_transaction_read_only says.
    ("transaction_read_only", ""),
    ("default_transaction_read_only", "off"),
    ("xmloption", "content"),
];

impl Settings {
    pub(crate) fn new() -> Settings {
        let values: Values = Arc::new(DEFAULTS.iter().map(|(name, value)| (*name, value.to_string())).collect());
        Settings {
            state: State { now: values.clone(), kept: values.clone() },
            initial: values,
            before: None,
            savepoints: vec![],
            timeouts: Timeouts::default(),
            isolation: Isolation::ReadCommitted,
            reported: Arc::new([("application_name", "".into()), ("TimeZone", "UTC".into())]),
            zone: Zone::Utc,
            synchronous_commit: true,
            read_only: false,
        }
    }

    pub(crate) fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Whether a commit waits until it is durable.
    pub(crate) fn synchronous_commit(&self) -> bool {
        self.synchronous_commit
    }

    /// Whether the open transaction, or the next one, may not write.
    pub(crate) fn read_only(&self) -> bool {
        self.read_only
    }

    fn store(&mut self, key: &'static str, value: String, local: bool) {
        self.before.get_or_insert_with(|| self.state.clone());
        let before = Arc::make_mut(&mut self.state.now).insert(key, value.clone());
        assert!(before.is_some(), "{key} is one of DEFAULTS");
        if !local {
            Arc::make_mut(&mut self.state.kept).insert(key, value);
        }
        self.take_effect();
    }

    fn take_effect(&mut self) {
        let timeout = |name: &str| match milliseconds(&self.state.now[name]) {
            None | Some(0) => None,
            Some(ms) => Some(Duration::from_millis(ms)),
        };
        self.timeouts = Timeouts {
            statement: timeout("statement_timeout"),
            lock: timeout("lock_timeout"),
            idle_in_transaction: timeout("idle_in_transaction_session_timeout"),
            idle_session: timeout("idle_session_timeout"),
        };
        self.isolation = match self.state.now["default_transaction_isolation"].as_str() {
            "repeatable read" => Isolation::RepeatableRead,
            _ => Isolation::ReadCommitted,
        };
        if self.reported.iter().any(|(name, value)| **value != *self.state.now[name]) {
            self.reported =
                Arc::new(Reported::clone(&self.reported).map(|(name, _)| (name, self.state.now[name].as_str().into())));
        }
        self.zone = Zone::named(&self.state.now["TimeZone"]).expect("stored as a zone is shown");
        self.synchronous_commit = self.state.now["synchronous_commit"] != "off";
        self.read_only = Self::shown(&self.state.now, "transaction_read_only") == "on";
    }

    fn restore(&mut self, state: State) {
        self.state = state;
        self.take_effect();
    }

    /// The transaction ends.
    pub(crate) fn end(&mut self, committed: bool) {
        self.savepoints.clear();
        if let Some(before) = self.before.take() {
            let kept = self.state.kept.clone();
            self.restore(if committed { State { now: kept.clone(), kept } } else { before });
        }
        debug_assert!(self.savepoints.is_empty() && self.before.is_none(), "invariant 1: nothing of it is left");
    }

    /// Answers how many there are now.
    pub(crate) fn savepoint(&mut self) -> usize {
        self.savepoints.push(self.state.clone());
        self.savepoints.len()
    }

    /// Forgets the savepoint of that number, from 0, and those after it.
    pub(crate) fn release(&mut self, at: usize) {
        debug_assert!(at < self.savepoints.len(), "invariant 1: a savepoint of the transaction is one here");
        self.savepoints.truncate(at);
    }

    /// As it was at the savepoint of that number, which stays.
    pub(crate) fn back_to(&mut self, at: usize) {
        debug_assert!(at < self.savepoints.len(), "invariant 1: a savepoint of the transaction is one here");
        self.savepoints.truncate(at + 1);
        if let Some(state) = self.savepoints.last().cloned() {
            self.restore(state);
        }
    }

    /// What the session begins with (invariant 2). Not within a transaction.
    pub(crate) fn begin_with(&mut self, name: &str, value: &str) -> Result<()> {
        self.set(name, value, false)?;
        self.end(true);
        self.initial = self.state.kept.clone();
        Ok(())
    }

    fn key(name: &str) -> Result<&'static str> {
        DEFAULTS
            .iter()
            .map(|(key, _)| *key)
            .find(|key| key.eq_ignore_ascii_case(name))
            .ok_or_else(|| EngineError::new("42704", format!("unrecognized configuration parameter \"{name}\"")))
    }

    fn shown<'v>(values: &'v Values, key: &str) -> &'v str {
        match (key, values[key].as_str()) {
            ("transaction_read_only", "") => &values["default_transaction_read_only"],
            (_, value) => value,
        }
    }

    /// The parameter's name as SHOW writes it, and its value.
    pub(crate) fn show(&self, name: &str) -> Result<(&'static str, String)> {
        let key = Self::key(name)?;
        Ok((key, Self::shown(&self.state.now, key).to_string()))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.state.now.keys().map(|name| (*name, Self::shown(&self.state.now, name)))
    }

    pub(crate) fn reset(&mut self, name: &str, local: bool) -> Result<()> {
        let key = Self::key(name)?;
        let value = self.initial[key].clone();
        self.store(key, value, local);
        debug_assert_eq!(self.state.now[key], self.initial[key], "invariant 2");
        Ok(())
    }

    pub(crate) fn reset_all(&mut self) {
        self.before.get_or_insert_with(|| self.state.clone());
        self.restore(State { now: self.initial.clone(), kept: self.initial.clone() });
    }

    /// Name, and the value in force, after RESET, and without anybody's asking.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static str, &str, &str, &'static str)> {
        let one = |(name, boot): &(&'static str, &'static str)| {
            let (now, initial) = (Self::shown(&self.state.now, name), Self::shown(&self.initial, name));
            (
                *name,
                now,
                initial,
                if boot.is_empty() && !now.is_empty() && *name == "transaction_read_only" { "off" } else { *boot },
            )
        };
        DEFAULTS.iter().map(one)
    }

    pub(crate) fn default_isolation(&self) -> Isolation {
        self.isolation
    }

    pub(crate) fn application_name(&self) -> Arc<str> {
        self.reported[0].1.clone()
    }

    pub(crate) fn reported(&self) -> &Arc<Reported> {
        &self.reported
    }

    /// In which timestamps with time zone are read and shown.
    pub(crate) fn zone(&self) -> Zone {
        self.zone
    }

    pub(crate) fn set(&mut self, name: &str, value: &str, local: bool) -> Result<()> {
        let key = Self::key(name)?;
        let lower = value.to_ascii_lowercase();
        let stored = match key {
            "application_name" => value.to_string(),
            "TimeZone" => Zone::named(value).ok_or_else(|| invalid(key, value))?.to_string(),
            "client_min_messages" => lower,
            "extra_float_digits" => match value.parse::<i32>() {
                Ok(1..=3) => value.to_string(),
                Ok(-15..=0) => {
                    let error = unsupported("rounding of shown floats (extra_float_digits below 1)");
                    return Err(
                        error.with_hint("From 1 on each float is shown by the shortest text that is read back as it.")
                    );
                }
                _ => return Err(invalid(key, value)),
            },
            // Of a transaction: it ends with it.
            "transaction_read_only" => {
                let value = boolean(key, &lower)?;
                self.store(key, value.into(), true);
                return Ok(());
            }
            "default_transaction_read_only" => boolean(key, &lower)?.into(),
            "synchronous_commit" => match lower.as_str() {
                "on" | "true" | "yes" | "1" | "local" | "remote_write" | "remote_apply" => "on".into(),
                "off" | "false" | "no" | "0" => "off".into(),
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
        self.store(key, stored, local);
        Ok(())
    }

    /// These have one true value; the spellings PostgreSQL takes for it are taken.
    fn require(&self, key: &'static str, lower: &str) -> Result<()> {
        let spellings: &[&str] = match key {
            "backslash_quote" => &["safe_encoding"],
            // There are no functions, no row security and no XML that either value would change anything for.
            "check_function_bodies" | "row_security" => &["on", "off", "true", "false"],
            "xmloption" => &["content", "document"],
            "default_table_access_method" => &["heap"],
            "default_tablespace" => &["", "pg_default"],
            "bytea_output" => &["hex"],
            "client_encoding" => &["utf8", "utf-8", "unicode"],
            "DateStyle" => &["iso", "iso, mdy", "iso,mdy"],
            "IntervalStyle" => &["postgres"],
            "standard_conforming_strings" => &["on", "true", "1", "yes"],
            _ => return Err(EngineError::new("55P02", format!("parameter \"{key}\" cannot be changed"))),
        };
        if spellings.contains(&lower) || lower == "default" {
            return Ok(());
        }
        let only = self.state.now[key].as_str();
        Err(unsupported(format!("{key} = '{lower}'")).with_hint(format!("Only '{only}' is.")))
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

fn boolean(key: &str, lower: &str) -> Result<&'static str> {
    match lower {
        "on" | "true" | "yes" | "1" => Ok("on"),
        "off" | "false" | "no" | "0" => Ok("off"),
        _ => Err(EngineError::new("22023", format!("parameter \"{key}\" requires a Boolean value"))),
    }
}

fn invalid(key: &str, value: &str) -> EngineError {
    EngineError::new("22023", format!("invalid value for parameter \"{key}\": \"{value}\""))
}

/// The PostgreSQL version whose protocol and catalogues we speak, then ours; drivers parse the first number.
pub const SERVER_VERSION: &str = concat!("15.0 (Terrace ", env!("CARGO_PKG_VERSION"), ")");

/// Settings that ALTER SYSTEM changes, at once and for later starts.
pub trait SystemSettings: Send + Sync {
    /// `value` `None`: the default again. Names are as in the configuration file: `flash_tier.size`. 42704: there is no
    /// such setting; 55P02: it cannot be changed while the server runs; 22023: the value cannot be.
    fn alter(&self, name: String, value: Option<String>) -> BoxFuture<'_, Result<()>>;

    /// Reads the configuration file again, soon: as SIGHUP does, and without waiting for it.
    fn reload(&self);
}
