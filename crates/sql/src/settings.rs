//! Run-time parameters: SET, SET LOCAL, SHOW, RESET. A parameter that does nothing here is accepted only with the value
//! that is true.
//!
//! 1. A change belongs to its transaction: what is rolled back, to a savepoint too, is unset, and SET LOCAL ends with
//!    COMMIT.
//! 2. RESET goes back to what the session began with.
//! 3. A name with a dot is the client's own setting. Once set it stays known to the session, and is empty where no
//!    value is in force, as in PostgreSQL.
use crate::error::unsupported;
use futures::future::BoxFuture;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use terrace_engine::types::style::{DateStyle, IntervalStyle};
use terrace_engine::types::{Style, Zone};
use terrace_engine::{EngineError, Isolation, Result, SearchPath, Viewer};

mod harmless;

pub(crate) use harmless::described;

/// A setting's name as SHOW writes it.
type Key = Cow<'static, str>;
type Values = Arc<BTreeMap<Key, String>>;

/// Bytes of a session's own settings, names and values.
const OWN_MAX: usize = 1 << 20;

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
    /// Of the client's own (invariant 3), with which it has set something.
    own: BTreeSet<String>,
    /// Before the open transaction changed anything; `None`: it has not.
    before: Option<State>,
    /// At each savepoint, oldest first.
    savepoints: Vec<State>,
    timeouts: Timeouts,
    isolation: Isolation,
    reported: Arc<Reported>,
    style: Style,
    synchronous_commit: bool,
    read_only: bool,
    deferrable: bool,
    /// Who has logged in, and the current role.
    login: Arc<str>,
    acting: Arc<str>,
    /// What the session sees of a catalogue, by `search_path`.
    viewer: Arc<Viewer>,
}

/// What a client is told of whenever it changes: name as SHOW writes it, and value.
pub type Reported = [(&'static str, Arc<str>); 4];

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
    ("array_nulls", "on"),
    ("backslash_quote", "safe_encoding"),
    ("bytea_output", "hex"),
    ("check_function_bodies", "on"),
    ("client_encoding", "UTF8"),
    ("client_min_messages", "notice"),
    ("DateStyle", "ISO, MDY"),
    ("default_table_access_method", "heap"),
    ("default_tablespace", ""),
    ("default_toast_compression", "pglz"),
    ("default_transaction_isolation", "read committed"),
    ("extra_float_digits", "1"),
    ("integer_datetimes", "on"),
    ("IntervalStyle", "postgres"),
    ("is_superuser", "on"),
    ("lc_collate", "C"),
    ("lc_ctype", "C.UTF-8"),
    ("lc_messages", "C"),
    ("lc_monetary", "C"),
    ("lc_numeric", "C"),
    ("lc_time", "C"),
    ("lock_timeout", "0"),
    ("max_identifier_length", "63"),
    ("password_encryption", "scram-sha-256"),
    ("quote_all_identifiers", "off"),
    ("role", "none"),
    ("row_security", "on"),
    ("search_path", "\"$user\", public"),
    ("server_encoding", "UTF8"),
    // Empty: who has logged in.
    ("session_authorization", ""),
    ("server_version", crate::settings::SERVER_VERSION),
    ("session_replication_role", "origin"),
    ("standard_conforming_strings", "on"),
    ("server_version_num", "150000"),
    ("statement_timeout", "0"),
    ("synchronous_commit", "on"),
    ("idle_in_transaction_session_timeout", "0"),
    ("idle_session_timeout", "0"),
    ("temp_tablespaces", ""),
    ("TimeZone", "UTC"),
    ("transform_null_equals", "off"),
    // Empty: as the default says.
    ("transaction_deferrable", ""),
    ("transaction_read_only", ""),
    ("default_transaction_deferrable", "off"),
    ("default_transaction_read_only", "off"),
    ("xmloption", "content"),
];

/// Names and values at the start of all settings but the clients' own.
fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
    DEFAULTS.iter().copied().chain(harmless::all())
}

/// Settings that say who acts: SET ROLE and SET SESSION AUTHORIZATION alone change them, and RESET ALL does not.
const OF_ROLES: [&str; 2] = ["role", "session_authorization"];

/// Whether a setting is one of the open transaction.
fn of_transaction(key: &str) -> bool {
    matches!(key, "transaction_read_only" | "transaction_deferrable")
}

fn unrecognized(name: &str) -> EngineError {
    EngineError::new("42704", format!("unrecognized configuration parameter \"{name}\""))
}

impl Settings {
    pub(crate) fn new() -> Settings {
        let values: Values = Arc::new(known().map(|(name, value)| (name.into(), value.to_string())).collect());
        Settings {
            state: State { now: values.clone(), kept: values.clone() },
            initial: values,
            own: BTreeSet::new(),
            before: None,
            savepoints: vec![],
            timeouts: Timeouts::default(),
            isolation: Isolation::ReadCommitted,
            reported: Arc::new([
                ("application_name", "".into()),
                ("TimeZone", "UTC".into()),
                ("DateStyle", "ISO, MDY".into()),
                ("IntervalStyle", "postgres".into()),
            ]),
            style: Style::default(),
            synchronous_commit: true,
            read_only: false,
            deferrable: false,
            login: "".into(),
            acting: "".into(),
            viewer: Arc::default(),
        }
    }

    /// Of the session of a role.
    pub(crate) fn of_login(role: &str) -> Settings {
        let settings = Settings { login: role.into(), acting: role.into(), ..Settings::new() };
        settings.look_along(None);
        settings
    }

    /// What follows is done in a schema that is made, and as its owner; `None`: as the settings say again.
    pub(crate) fn within_schema(&mut self, schema: Option<(&str, &str)>) {
        let Some((schema, owner)) = schema else { return self.take_effect() };
        self.acting = owner.into();
        self.look_along(Some(schema));
    }

    pub(crate) fn viewer(&self) -> &Arc<Viewer> {
        &self.viewer
    }

    /// Names are looked up along `search_path`; `first`: in that schema before.
    fn look_along(&self, first: Option<&str>) {
        let said = list(&self.state.now["search_path"]).unwrap_or_default();
        let schemas = first.map(str::to_owned).into_iter().chain(said).collect();
        self.viewer.set_path(SearchPath { schemas, role: self.acting.clone() });
    }

    /// Who has logged in.
    pub(crate) fn login(&self) -> &Arc<str> {
        &self.login
    }

    /// `session_user`.
    pub(crate) fn session_user(&self) -> &str {
        match self.state.now["session_authorization"].as_str() {
            "" => &self.login,
            other => other,
        }
    }

    /// The current role.
    pub(crate) fn acting(&self) -> Arc<str> {
        self.acting.clone()
    }

    /// SET ROLE, where the caller has seen that it may be; `None`: back to the session's.
    pub(crate) fn set_role(&mut self, role: Option<&str>, local: bool) {
        self.store(Cow::Borrowed("role"), role.unwrap_or("none").to_owned(), local);
    }

    /// SET SESSION AUTHORIZATION, likewise; `None`: back to who has logged in.
    pub(crate) fn set_session_user(&mut self, role: Option<&str>, local: bool) {
        self.store(Cow::Borrowed("session_authorization"), role.unwrap_or_default().to_owned(), local);
        self.set_role(None, local);
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

    /// Whether the open transaction, or the next one, is to wait for a safe snapshot (if it is SERIALIZABLE READ ONLY).
    pub(crate) fn deferrable(&self) -> bool {
        self.deferrable
    }

    fn store(&mut self, key: Key, value: String, local: bool) {
        self.before.get_or_insert_with(|| self.state.clone());
        let known = self.state.now.contains_key(&key) || self.own.contains(&*key);
        assert!(known, "{key} is one of the settings there are");
        Arc::make_mut(&mut self.state.now).insert(key.clone(), value.clone());
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
        self.isolation = match self.begun()["default_transaction_isolation"].as_str() {
            "repeatable read" => Isolation::RepeatableRead,
            "serializable" => Isolation::Serializable,
            _ => Isolation::ReadCommitted,
        };
        if self.reported.iter().any(|(name, value)| **value != *self.state.now[*name]) {
            self.reported =
                Arc::new(Reported::clone(&self.reported).map(|(name, _)| (name, self.state.now[name].as_str().into())));
        }
        let acting = match self.state.now["role"].as_str() {
            "none" => self.session_user(),
            role => role,
        };
        if *acting != *self.acting {
            let acting: Arc<str> = acting.into();
            self.acting = acting;
        }
        self.look_along(None);
        let value = |name: &str| &self.state.now[name];
        self.style = Style {
            zone: Zone::named(value("TimeZone")).expect("stored as a zone is shown"),
            dates: DateStyle::default().parse(value("DateStyle")).expect("stored as it is shown"),
            spans: IntervalStyle::parse(value("IntervalStyle")).expect("stored as it is shown"),
            escaped: value("bytea_output") == "escape",
            rounded: match value("extra_float_digits").parse::<i8>() {
                Ok(digits @ ..1) => Some(digits.unsigned_abs()),
                _ => None,
            },
        };
        self.synchronous_commit = self.state.now["synchronous_commit"] != "off";
        self.read_only = self.shown_now("transaction_read_only") == "on";
        self.deferrable = self.shown_now("transaction_deferrable") == "on";
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
        // READ ONLY within a savepoint ends with it.
        let read_only = self.savepoints[at].now["transaction_read_only"].clone();
        self.savepoints.truncate(at);
        if self.state.now["transaction_read_only"] != read_only {
            Arc::make_mut(&mut self.state.now).insert("transaction_read_only".into(), read_only);
            self.take_effect();
        }
    }

    /// Whether the transaction was read-only when its last savepoint was made.
    pub(crate) fn was_read_only(&self) -> bool {
        self.savepoints
            .last()
            .is_some_and(|state| Self::shown((&state.now, self.begun()), "transaction_read_only") == "on")
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

    fn key(&self, name: &str) -> Result<Key> {
        let known = known().map(|(key, _)| key).find(|key| key.eq_ignore_ascii_case(name));
        let own = || self.own.get(&name.to_lowercase()).cloned();
        known.map(Cow::Borrowed).or_else(|| own().map(Cow::Owned)).ok_or_else(|| unrecognized(name))
    }

    /// The same, where a client's own setting is known from now on (invariant 3).
    fn key_to_set(&mut self, name: &str, value: &str) -> Result<Key> {
        if let Ok(key) = self.key(name) {
            self.refuse_many(&key, value)?;
            return Ok(key);
        }
        if !name.contains('.') {
            return Err(unrecognized(name));
        }
        let plain = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii())
                && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii())
        };
        if !name.split('.').all(plain) {
            let error = EngineError::new("42602", format!("invalid configuration parameter name \"{name}\""));
            let detail = "Custom parameter names must be two or more simple identifiers separated by dots.";
            return Err(error.with_detail(detail));
        }
        let name = name.to_lowercase();
        self.refuse_many(&name, value)?;
        self.own.insert(name.clone());
        Ok(Cow::Owned(name))
    }

    /// 54000 where a session keeps more of its own than a server should.
    fn refuse_many(&self, key: &str, value: &str) -> Result<()> {
        let kept = |name: &String| name.len() + self.state.now.get(name.as_str()).map_or(0, String::len);
        if key.contains('.') && self.own.iter().map(kept).sum::<usize>() + key.len() + value.len() > OWN_MAX {
            let message = format!("the session's own settings would have more than {OWN_MAX} bytes");
            return Err(EngineError::new("54000", message));
        }
        Ok(())
    }

    /// `begun`: the values with which the transaction has begun.
    fn shown<'v>((values, begun): (&'v Values, &'v Values), key: &str) -> &'v str {
        match (key, values.get(key).map_or("", String::as_str)) {
            ("transaction_read_only", "") => &begun["default_transaction_read_only"],
            ("transaction_deferrable", "") => &begun["default_transaction_deferrable"],
            (_, value) => value,
        }
    }

    fn shown_now(&self, key: &str) -> &str {
        Self::shown((&self.state.now, self.begun()), key)
    }

    /// The values with which the open transaction has begun: its modes are theirs, whatever is set meanwhile.
    fn begun(&self) -> &Values {
        &self.before.as_ref().unwrap_or(&self.state).now
    }

    /// The parameter's name as SHOW writes it, and its value.
    pub(crate) fn show(&self, name: &str) -> Result<(Key, String)> {
        let key = self.key(name)?;
        let value = self.shown_now(&key).to_string();
        Ok((key, value))
    }

    /// All but the client's own, as PostgreSQL lists them.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        let listed = self.state.now.keys().filter(|name| !name.contains('.') && !OF_ROLES.contains(&&***name));
        listed.map(|name| (&**name, self.shown_now(name)))
    }

    pub(crate) fn reset(&mut self, name: &str, local: bool) -> Result<()> {
        let key = self.key_to_set(name, "")?;
        let value = self.initial.get(&key).cloned().unwrap_or_default();
        self.store(key, value, local);
        Ok(())
    }

    pub(crate) fn reset_all(&mut self) {
        self.before.get_or_insert_with(|| self.state.clone());
        let mut values = Values::clone(&self.initial);
        for name in OF_ROLES {
            Arc::make_mut(&mut values).insert(Cow::Borrowed(name), self.state.now[name].clone());
        }
        self.restore(State { now: values.clone(), kept: values });
    }

    /// Name, and the value in force, after RESET, and without anybody's asking.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static str, &str, &str, &'static str)> {
        let one = |(name, boot): (&'static str, &'static str)| {
            let (now, initial) = (self.shown_now(name), Self::shown((&self.initial, &self.initial), name));
            (name, now, initial, if boot.is_empty() && of_transaction(name) { "off" } else { boot })
        };
        known().filter(|(name, _)| !OF_ROLES.contains(name)).map(one)
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

    /// In which values are read and shown.
    pub(crate) fn style(&self) -> Style {
        self.style
    }

    pub(crate) fn set(&mut self, name: &str, value: &str, local: bool) -> Result<()> {
        let key = self.key_to_set(name, value)?;
        let lower = value.to_ascii_lowercase();
        let stored = self.checked(&key, value, &lower)?;
        if let Some(stored) = stored {
            // Of a transaction: it ends with it.
            let local = local || of_transaction(&key);
            self.store(key, stored, local);
        }
        Ok(())
    }

    /// A value as it is stored; `None`: the one that there is.
    fn checked(&self, key: &str, value: &str, lower: &str) -> Result<Option<String>> {
        if let Some(stored) = harmless::stored(key, value) {
            return stored.map(Some);
        }
        Ok(Some(match key {
            own if own.contains('.') => value.to_string(),
            "application_name" => value.to_string(),
            "TimeZone" => Zone::shown(value).ok_or_else(|| invalid(key, value))?,
            "DateStyle" => self.style.dates.parse(value).ok_or_else(|| invalid(key, value))?.to_string(),
            "IntervalStyle" => IntervalStyle::parse(value).ok_or_else(|| invalid(key, value))?.to_string(),
            "bytea_output" => match lower {
                "hex" | "escape" => lower.into(),
                _ => return Err(invalid(key, value).with_hint("Available values: escape, hex.")),
            },
            "client_min_messages" => lower.into(),
            "extra_float_digits" => match value.parse::<i32>() {
                Ok(-15..=3) => value.to_string(),
                _ => return Err(invalid(key, value)),
            },
            "transaction_read_only" | "default_transaction_read_only" => boolean(key, lower)?.into(),
            "transaction_deferrable" | "default_transaction_deferrable" => boolean(key, lower)?.into(),
            "synchronous_commit" => match lower {
                "on" | "true" | "yes" | "1" | "local" | "remote_write" | "remote_apply" => "on".into(),
                "off" | "false" | "no" | "0" => "off".into(),
                _ => return Err(invalid(key, value)),
            },
            "search_path" => match list(value) {
                Some(_) => value.to_string(),
                None => return Err(invalid(key, value).with_detail("List syntax is invalid.")),
            },
            "default_transaction_isolation" => match lower {
                "read committed" | "read uncommitted" => "read committed".into(),
                "repeatable read" | "serializable" => lower.into(),
                _ => return Err(invalid(key, value)),
            },
            _ if key.ends_with("_timeout") => match milliseconds(lower) {
                Some(ms) if ms <= i32::MAX as u64 => shown_time(ms),
                _ => return Err(invalid(key, value).with_hint(TIME_HINT)),
            },
            _ => {
                self.require(key, lower)?;
                return Ok(None);
            }
        }))
    }

    /// These have one true value; the spellings PostgreSQL takes for it are taken.
    fn require(&self, key: &str, lower: &str) -> Result<()> {
        let spellings: &[&str] = match key {
            "backslash_quote" => &["safe_encoding"],
            // There are no functions, no row security and no XML that either value would change anything for.
            "check_function_bodies" | "row_security" => &["on", "off", "true", "false"],
            "xmloption" => &["content", "document"],
            "default_table_access_method" => &["heap"],
            "default_tablespace" => &["", "pg_default"],
            "client_encoding" => &["utf8", "utf-8", "unicode"],
            "standard_conforming_strings" | "array_nulls" => &["on", "true", "1", "yes"],
            "quote_all_identifiers" | "transform_null_equals" => &["off", "false", "0", "no"],
            "session_replication_role" => &["origin", "local"],
            "default_toast_compression" => &["pglz"],
            "temp_tablespaces" => &[""],
            "lc_messages" | "lc_monetary" | "lc_numeric" | "lc_time" => &["c", "posix", ""],
            _ => return Err(EngineError::new("55P02", format!("parameter \"{key}\" cannot be changed"))),
        };
        if spellings.contains(&lower) || lower == "default" {
            return Ok(());
        }
        let only = self.state.now[key].as_str();
        Err(unsupported(format!("{key} = '{lower}'")).with_hint(format!("Only '{only}' is.")))
    }
}

/// The names of a list such as `search_path`, whose value is one; `None`: it is no list.
pub(crate) fn list(value: &str) -> Option<Vec<String>> {
    let (mut names, mut rest) = (vec![], value.trim());
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        let name = match rest.strip_prefix('"') {
            Some(_) => {
                let end = terrace_grammar::token_end(rest, 0) as usize;
                let quoted = rest[..end].strip_prefix('"')?.strip_suffix('"').filter(|_| end > 1)?;
                rest = &rest[end..];
                quoted.replace("\"\"", "\"")
            }
            None => {
                let end = rest.find(|c: char| c == ',' || c.is_whitespace()).unwrap_or(rest.len());
                let name = Some(rest[..end].to_lowercase()).filter(|name| !name.is_empty())?;
                rest = &rest[end..];
                name
            }
        };
        names.push(terrace_grammar::cut(&name).to_owned());
        rest = rest.trim_start();
        if rest.is_empty() {
            return Some(names);
        }
        rest = rest.strip_prefix(',')?.trim_start();
        if rest.is_empty() {
            return None;
        }
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
