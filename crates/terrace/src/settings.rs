//! Settings that change while the server runs: `ALTER SYSTEM SET flash_tier.size = '2GB'`, and what is read again at SIGHUP.
//!
//! Invariants:
//! 1. A change is carried out first, then kept in terrace.toml (its comments and order stay); what cannot be is refused, and neither happens.
//! 2. One change at a time.
#![allow(clippy::disallowed_methods, reason = "the settings' file; blocks go through the device room")]

use crate::config::{self, Config, ConfigError};
use crate::instance::{Error, flash_part, open_part, read_config, sync_directory, write_file};
use futures::future::BoxFuture;
use std::path::{Path, PathBuf};
use terrace_device::DeviceRef;
use terrace_engine::{Database, EngineError};
use terrace_sql::SystemSettings;
use terrace_storage::FlashState;

const SECTION: &str = "flash_tier";
/// Not read again: the pool learns it when it is made.
const AT_START: [&str; 1] = ["scan_detection"];

/// The settings of an open database.
pub struct Settings {
    dir: PathBuf,
    database: Database,
    /// What they are now, but for what waits for a start.
    now: tokio::sync::Mutex<Config>,
    /// The tier's device that was opened last: statistics keep it open when the tier is off, and a file is opened once.
    opened: parking_lot::Mutex<Option<(PathBuf, DeviceRef)>>,
}

impl Settings {
    pub(crate) fn new(dir: &Path, database: Database, config: Config) -> Settings {
        Settings {
            dir: dir.to_path_buf(),
            database,
            now: tokio::sync::Mutex::new(config),
            opened: parking_lot::Mutex::default(),
        }
    }

    /// Reads terrace.toml again and carries out what it says of the flash tier; answers whether anything else in it waits for a start.
    pub async fn reload(&self) -> Result<bool, Error> {
        let mut now = self.now.lock().await;
        let (_, wanted) = read_config(&self.dir.join(config::FILE))?;
        self.carry_out(&now, &wanted).await?;
        now.flash_tier = wanted.flash_tier.clone();
        Ok(*now != wanted)
    }

    /// The flash tier as the settings say. Nothing is touched where they say nothing new of one that works.
    async fn carry_out(&self, now: &Config, wanted: &Config) -> Result<(), Error> {
        let store = self.database.store();
        let (_, device) = store.flash_config();
        let works = store.flash().is_none_or(|tier| tier.state == FlashState::On);
        if now.flash_tier == wanted.flash_tier && works && device.is_some() == wanted.flash_tier.device().is_some() {
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
        let edited = edit(&text, key, value).ok_or_else(|| {
            EngineError::new("55000", format!("{} has no plain [{SECTION}] to change", path.display()))
        })?;
        let wanted = Config::parse(&edited, &path).map_err(|ConfigError { problem, .. }| {
            // The parser shows the line and what was expected there.
            EngineError::new("22023", format!("invalid value for parameter \"{SECTION}.{key}\": {}", problem.trim()))
        })?;
        self.carry_out(&now, &wanted).await.map_err(engine_error)?;
        now.flash_tier = wanted.flash_tier;
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
    fn alter(&self, name: String, value: Option<String>) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            let known = config::is_key(&name);
            match name.split_once('.') {
                Some((SECTION, key)) if known && !AT_START.contains(&key) => {
                    let value = value.as_deref().map(|value| if value.is_empty() { config::NO_DEVICE } else { value });
                    self.change(key, value).await
                }
                _ if known => Err(EngineError::new("55P02", format!("parameter \"{name}\" cannot be changed now"))
                    .with_hint("Change it in terrace.toml and restart the server.")),
                _ => Err(EngineError::new("42704", format!("unrecognized configuration parameter \"{name}\""))),
            }
        })
    }
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

/// The text of a configuration with `flash_tier.KEY` set, or (`None`) left out; `None` where that cannot be done line by line.
fn edit(text: &str, key: &str, value: Option<&str>) -> Option<String> {
    let written = value.map(|value| match value.parse::<f64>() {
        Ok(number) if number.is_finite() => value.to_string(),
        _ => toml::Value::String(value.to_string()).to_string(),
    });
    let line = written.as_ref().map(|written| format!("{key} = {written}"));
    let mut lines: Vec<&str> = text.lines().collect();
    let header = lines.iter().position(|l| l.trim() == format!("[{SECTION}]"));
    let at = match header {
        Some(header) => {
            let end = lines[header + 1..].iter().position(|l| l.trim_start().starts_with('['));
            let end = end.map_or(lines.len(), |end| header + 1 + end);
            let is_key = |l: &&str| l.split_once('=').is_some_and(|(name, _)| name.trim() == key);
            match lines[header + 1..end].iter().position(is_key) {
                Some(at) => {
                    lines.remove(header + 1 + at);
                    header + 1 + at
                }
                None => header + 1,
            }
        }
        None => {
            if line.is_some() {
                lines.extend(["", "[flash_tier]"]);
            }
            lines.len()
        }
    };
    if let Some(line) = &line {
        lines.insert(at, line);
    }
    let edited = lines.join("\n") + "\n";
    // What it says is what was wanted: the section may be written in another way.
    let table: toml::Table = edited.parse().ok()?;
    let found = table.get(SECTION).and_then(|section| section.get(key)).map(ToString::to_string);
    let wanted = written.as_ref().map(|w| format!("x = {w}").parse::<toml::Table>().map(|t| t["x"].to_string()));
    (found == wanted.transpose().ok()?).then_some(edited)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_changed_where_they_are() {
        let text =
            "# A\n[flash_tier]\n# how large\nsize = \"1GB\" # not much\ndevice = \"main\"\n\n[memory]\nsize = 3\n";
        let changed = edit(text, "size", Some("2GB")).unwrap();
        assert_eq!(changed, text.replace("size = \"1GB\" # not much", "size = \"2GB\""));
        assert_eq!(edit(text, "size", Some("4096")).unwrap(), text.replace("\"1GB\" # not much", "4096"));
        assert_eq!(edit(&changed, "device", None).unwrap(), changed.replace("device = \"main\"\n", ""));
        assert_eq!(edit("a = 1", "size", Some("1GB")).unwrap(), "a = 1\n\n[flash_tier]\nsize = \"1GB\"\n");
        assert_eq!(edit("a = 1", "size", None).unwrap(), "a = 1\n");
        assert_eq!(
            edit(text, "device", Some("a\"b\n")).unwrap().parse::<toml::Table>().unwrap()["flash_tier"]["device"]
                .as_str(),
            Some("a\"b\n")
        );
        assert_eq!(edit("flash_tier = { size = 1 }\n", "size", Some("2")), None);
        assert_eq!(edit("flash_tier.size = 1\n", "size", None), None);
        assert!(edit(config::DEFAULT, "size", Some("2GB")).is_some());
    }
}
