//! Settings that change while the server runs: `ALTER SYSTEM SET flash_tier.size = '2GB'`, and what is read again at
//! SIGHUP.
//!
//! Invariants:
//! 1. A change is carried out first, then kept in terrace.toml (its comments and order stay); what cannot be is
//!    refused, and neither happens.
//! 2. One change at a time.
#![allow(clippy::disallowed_methods, reason = "the settings' file; blocks go through the device room")]

use crate::config::{self, Config, ConfigError, FlashTier};
use crate::instance::{Error, flash_part, open_part, read_config, sync_directory, write_file};
use futures::future::BoxFuture;
use std::path::{Path, PathBuf};
use terrace_device::DeviceRef;
use terrace_engine::{Database, EngineError};
use terrace_sql::SystemSettings;
use terrace_storage::FlashState;
use toml_edit::{DocumentMut, Item, Value};

const SECTION: &str = "flash_tier";
/// Not read again: the pool learns it when it is made.
const AT_START: [&str; 1] = ["scan_detection"];

/// The settings of an open database.
pub struct Settings {
    dir: PathBuf,
    database: Database,
    /// Somebody asks for [`Settings::reload`].
    asked: tokio::sync::Notify,
    /// Their present values, without changes that wait for a start.
    now: tokio::sync::Mutex<Config>,
    /// The tier's device that was opened last: statistics keep it open when the tier is off, and a file is opened once.
    opened: parking_lot::Mutex<Option<(PathBuf, DeviceRef)>>,
}

impl Settings {
    pub(crate) fn new(dir: &Path, database: Database, config: Config) -> Settings {
        Settings {
            dir: dir.to_path_buf(),
            database,
            asked: tokio::sync::Notify::new(),
            now: tokio::sync::Mutex::new(config),
            opened: parking_lot::Mutex::default(),
        }
    }

    /// Until a session asks with `pg_reload_conf()` that terrace.toml be read again.
    pub async fn asked(&self) {
        self.asked.notified().await;
    }

    /// Reads terrace.toml again and carries out what it says of the flash tier; answers whether anything else in it
    /// waits for a start.
    pub async fn reload(&self) -> Result<bool, Error> {
        let mut now = self.now.lock().await;
        let (_, wanted) = read_config(&self.dir.join(config::FILE))?;
        self.carry_out(&now, &wanted).await?;
        now.flash_tier = in_effect(&now, &wanted);
        Ok(*now != wanted)
    }

    /// The flash tier as the settings say. Nothing is touched where they say nothing new of one that works.
    async fn carry_out(&self, now: &Config, wanted: &Config) -> Result<(), Error> {
        let store = self.database.store();
        let (_, device) = store.flash_config();
        let works = store.flash().is_none_or(|tier| tier.state == FlashState::On);
        if now.flash_tier == in_effect(now, wanted) && works && device.is_some() == wanted.flash_tier.device().is_some()
        {
            return Ok(());
        }
        if let (Some(device), Some(part)) = (device, flash_part(&self.dir, now)) {
            *self.opened.lock() = Some((part.path, device));
        }
        let device = self.device(wanted)?;
        Ok(store.set_flash(device, wanted.storage().flash).await.map_err(EngineError::from)?)
    }

    /// The tier's device: the open one where it is the same.
    fn device(&self, wanted: &Config) -> Result<Option<DeviceRef>, Error> {
        let Some(part) = flash_part(&self.dir, wanted) else { return Ok(None) };
        let mut opened = self.opened.lock();
        if let Some((_, device)) = opened.as_ref().filter(|(path, _)| *path == part.path) {
            return Ok(Some(device.clone()));
        }
        let device = open_part(&self.dir, &part, true)?;
        *opened = Some((part.path, device.clone()));
        Ok(Some(device))
    }

    async fn change(&self, key: &str, value: Option<&str>) -> Result<(), EngineError> {
        let mut now = self.now.lock().await;
        let path = self.dir.join(config::FILE);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| EngineError::new("58030", format!("{}: {error}", path.display())))?;
        let edited = edit(&text, key, value)
            .map_err(|problem| EngineError::new("55000", format!("{}: {}", path.display(), problem.trim())))?;
        let wanted = Config::parse(&edited, &path).map_err(|ConfigError { problem, .. }| {
            // The parser shows the line and what was expected there.
            EngineError::new("22023", format!("invalid value for parameter \"{SECTION}.{key}\": {}", problem.trim()))
        })?;
        self.carry_out(&now, &wanted).await.map_err(engine_error)?;
        now.flash_tier = in_effect(&now, &wanted);
        let kept = write_file(&path, &edited).and_then(|()| sync_directory(&self.dir));
        kept.map_err(|error| {
            EngineError::new(
                "58030",
                format!("the change is in effect, but cannot be kept for the next start: {error}"),
            )
        })
    }
}

impl SystemSettings for Settings {
    fn reload(&self) {
        self.asked.notify_one();
    }

    fn alter(&self, name: String, value: Option<String>) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            let known = config::is_key(&name);
            match name.split_once('.') {
                Some((SECTION, key)) if known && !AT_START.contains(&key) => {
                    let value = match value.as_deref() {
                        Some("") if key == "device" => Some(config::NO_DEVICE),
                        value => value,
                    };
                    self.change(key, value).await
                }
                _ if known => Err(EngineError::new("55P02", format!("parameter \"{name}\" cannot be changed now"))
                    .with_hint("Change it in terrace.toml and restart the server.")),
                _ => Err(EngineError::new("42704", format!("unrecognized configuration parameter \"{name}\""))),
            }
        })
    }
}

/// The tier's settings once `wanted` is carried out: some wait for a start.
fn in_effect(now: &Config, wanted: &Config) -> FlashTier {
    FlashTier { scan_detection: now.flash_tier.scan_detection, ..wanted.flash_tier.clone() }
}

fn engine_error(error: Error) -> EngineError {
    match error {
        Error::Engine(error) => error,
        error => {
            let state: &'static str = match &error {
                Error::Config(_) => "F0000",
                Error::Directory { .. } => "55000",
                Error::Device(_) | Error::Io { .. } | Error::Engine(_) => "58030",
            };
            EngineError::new(state, error.to_string())
        }
    }
}

/// The text of a configuration with `flash_tier.KEY` set, or (`None`) left out; its other lines and its comments stay.
fn edit(text: &str, key: &str, value: Option<&str>) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    let section = document.entry(SECTION).or_insert_with(toml_edit::table);
    let section =
        section.as_table_like_mut().ok_or_else(|| format!("{SECTION} is not a section; write [{SECTION}]"))?;
    let Some(value) = value else {
        section.remove(key);
        return Ok(document.to_string());
    };
    let mut wanted: Value = match value.parse::<Value>() {
        Ok(number @ (Value::Integer(_) | Value::Float(_))) => number,
        _ => value.into(),
    };
    match section.get_mut(key).and_then(Item::as_value_mut) {
        Some(known) => {
            *wanted.decor_mut() = known.decor().clone();
            *known = wanted;
        }
        None => drop(section.insert(key, Item::Value(wanted))),
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests;
