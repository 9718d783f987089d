//! A database directory: making it, opening it, removing it.
//!
//! ```text
//! DIR/terrace.toml     settings                DIR/lock        who has it open
//! DIR/control          the control file        DIR/unfinished  `init` has not come to its end
//! LOG/log, LOG/double-write   UNDO/undo   DATA/data   TEMP/temp/   FLASH/flash   on the devices that the settings name
//! ```
//!
//! Invariants: (1) while DIR/unfinished exists nothing opens the database, and `create` may remove the files that
//! DIR/terrace.toml places; (2) it is there before terrace.toml, which is there before the first file, and goes after
//! the last is durable; (3) nothing that was there before `create` is overwritten; (4) everything happens under
//! DIR/lock; (5) a `create` that fails leaves nothing behind.
#![allow(clippy::disallowed_methods, reason = "directories and their settings; blocks go through the device room")]

use crate::admin::StopMode;
use crate::config::{self, Config, ConfigError};
use crate::settings::Settings;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use terrace_device::lock::{DirectoryLock, LockError};
use terrace_device::{DeviceError, DeviceRef, ErrorKind, FileDevice, OpenOptions};
use terrace_engine::{Database, EngineError, OpenReport};
use terrace_env::{Env, Real};
use terrace_sql::SqlDatabase;
use terrace_storage::config::Restart;
use terrace_storage::control::Control;
use terrace_storage::{DeviceSet, RecoveryProgress};

const UNFINISHED: &str = "unfinished";
const LOCK: &str = "lock";
const CONTROL: &str = "control";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{dir}: {problem}")]
    Directory { dir: String, problem: String },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("{}", with_hint(.0))]
    Engine(#[from] EngineError),
    #[error("{path}: {error}")]
    Io { path: String, error: io::Error },
}

impl Error {
    /// What kind of error it is, in PostgreSQL's five characters.
    pub fn sqlstate(&self) -> &str {
        match self {
            Error::Directory { .. } => "55000",
            Error::Config(_) => "F0000",
            Error::Device(error) if error.kind == ErrorKind::NoSpace => "53100",
            Error::Device(_) | Error::Io { .. } => "58030",
            Error::Engine(error) => error.state.0,
        }
    }
}

fn with_hint(error: &EngineError) -> String {
    error.hint.as_ref().map_or(error.message.clone(), |hint| format!("{}; {hint}", error.message))
}

pub(crate) fn in_directory(dir: &Path, problem: impl Into<String>) -> Error {
    Error::Directory { dir: dir.display().to_string(), problem: problem.into() }
}

pub(crate) fn io_at(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.display().to_string();
    move |error| Error::Io { path, error }
}

/// One of the files that a database consists of.
pub(crate) struct Part {
    pub(crate) path: PathBuf,
    /// The tablespace (`tablespaces.NAME`) it belongs to; the control file belongs to none.
    tablespace: Option<&'static str>,
    options: OpenOptions,
}

/// The files of the database, the control file first.
fn parts(dir: &Path, config: &Config) -> [Part; 5] {
    let control = Part {
        path: dir.join(CONTROL),
        tablespace: None,
        options: OpenOptions { name: CONTROL.into(), ..OpenOptions::default() },
    };
    let part = |name: &'static str, tablespace: &'static str, space: &config::Tablespace| {
        let device = config.devices.get(&space.device).cloned().unwrap_or_default();
        let options = OpenOptions {
            name: format!("{name} on {}", space.device),
            direct: device.direct,
            capacity: space.capacity.0,
            backend: device.backend.into(),
            // Every commit waits for a sync of the log: spare it the journal commit that fresh blocks cost.
            zero: name == "log",
            ..OpenOptions::default()
        };
        let path = config.device_path(dir, &space.device).join(name);
        Part { path, tablespace: Some(tablespace), options }
    };
    let spaces = &config.tablespaces;
    let mut double_write = part("double-write", "log", &spaces.log);
    double_write.options.capacity = u64::MAX;
    [
        control,
        part("log", "log", &spaces.log),
        double_write,
        part("data", "data", &spaces.data),
        part("undo", "undo", &spaces.undo),
    ]
}

/// The flash tier's file, where there is to be a tier.
pub(crate) fn flash_part(dir: &Path, config: &Config) -> Option<Part> {
    let name = config.flash_tier.device()?;
    let device = config.devices.get(name).cloned().unwrap_or_default();
    let options = OpenOptions {
        name: format!("flash on {name}"),
        direct: device.direct,
        backend: device.backend.into(),
        ..OpenOptions::default()
    };
    Some(Part { path: config.device_path(dir, name).join("flash"), tablespace: None, options })
}

/// Nothing that the tier holds is needed at a start: a file that is not there is made, and one that cannot be is done
/// without.
fn open_flash(dir: &Path, config: &Config) -> Option<DeviceRef> {
    let part = flash_part(dir, config)?;
    match open_part(dir, &part, true) {
        Ok(device) => Some(device),
        Err(error) => {
            // Nothing on it is needed: what it held dirty is in the log.
            let path = part.path.display();
            tracing::error!(%path, "the flash tier is off until the next start; the database works without it: \
                                    {error}");
            None
        }
    }
}

/// What a directory holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DirectoryContent {
    /// Nothing, or there is no such directory.
    Nothing,
    Database,
    /// `create` was interrupted.
    Unfinished,
    SomethingElse,
}

/// Looks at a directory without changing it.
pub fn look(dir: &Path) -> Result<DirectoryContent, Error> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(DirectoryContent::Nothing),
        Err(error) => return Err(io_at(dir)(error)),
    };
    let names: BTreeSet<String> = entries
        .map(|e| e.map(|e| e.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<_>>()
        .map_err(io_at(dir))?;
    Ok(if names.contains(UNFINISHED) {
        DirectoryContent::Unfinished
    } else if names.contains(CONTROL) && names.contains(config::FILE) {
        DirectoryContent::Database
    } else if names.iter().all(|name| name == LOCK) {
        DirectoryContent::Nothing
    } else {
        DirectoryContent::SomethingElse
    })
}

fn take_lock(dir: &Path) -> Result<DirectoryLock, Error> {
    DirectoryLock::take(dir).map_err(|error| match error {
        LockError::InUse(_) => in_directory(dir, format!("{error}; stop it first")),
        LockError::Io(error) => io_at(&dir.join(LOCK))(error),
    })
}

pub(crate) fn sync_directory(dir: &Path) -> Result<(), Error> {
    fs::File::open(dir).and_then(|d| d.sync_all()).map_err(io_at(dir))
}

/// Where a file is written before it gets its name.
fn partial(path: &Path) -> PathBuf {
    path.with_extension("partial")
}

/// Writes a file durably, its owner's alone: the whole of it is there, or nothing. Its directory is still to be synced.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Error> {
    write_bytes(path, text.as_bytes())
}

/// As `write_file`.
pub(crate) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let partial = partial(path);
    let write = || -> io::Result<()> {
        let mut file = fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&partial, path)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&partial);
        io_at(path)(error)
    })
}

pub(crate) fn read_config(path: &Path) -> Result<(String, Config), Error> {
    let text = fs::read_to_string(path).map_err(io_at(path))?;
    let config = Config::parse(&text, path)?;
    Ok((text, config))
}

/// Devices that tablespaces use, and the log's archive, must be there: a disk that is not mounted must not become a
/// directory on another one.
fn check_devices(dir: &Path, config: &Config) -> Result<(), Error> {
    if let Some(archive) = config.archive(dir).filter(|path| !path.is_dir()) {
        let problem = format!("log.archive: {} is not a directory; make or mount it", archive.display());
        return Err(
            ConfigError { file: dir.join(config::FILE).display().to_string(), place: String::new(), problem }.into()
        );
    }
    for (role, space) in config.tablespaces() {
        let path = config.device_path(dir, &space.device);
        if path.is_dir() {
            continue;
        }
        let what = if path.exists() { "is not a directory" } else { "does not exist" };
        let problem = format!(
            "devices.{}.path = {:?} (for tablespaces.{role}) {what}; make or mount {}, or change the path",
            space.device,
            config.devices.get(&space.device).map(|d| d.path.display().to_string()).unwrap_or_default(),
            path.display()
        );
        return Err(
            ConfigError { file: dir.join(config::FILE).display().to_string(), place: String::new(), problem }.into()
        );
    }
    Ok(())
}

pub(crate) fn open_part(dir: &Path, part: &Part, create: bool) -> Result<DeviceRef, Error> {
    let options = OpenOptions { create, ..part.options.clone() };
    match FileDevice::open(&part.path, &options) {
        Ok(device) => Ok(Arc::new(device)),
        Err(error) if error.kind == ErrorKind::NotFound => {
            let settings = dir.join(config::FILE);
            let whose = match part.tablespace {
                Some(tablespace) => format!("tablespaces.{tablespace} in {}", settings.display()),
                None if part.path.ends_with("flash") => format!("flash_tier in {}", settings.display()),
                None => "the database".to_string(),
            };
            let problem = format!(
                "{} is missing: {whose} needs it; mount its disk, correct devices.*.path, or restore it from a backup",
                part.path.display()
            );
            Err(in_directory(dir, problem))
        }
        Err(error) => Err(error.into()),
    }
}

fn open_devices(dir: &Path, config: &Config, create: bool) -> Result<(DeviceSet, Vec<DeviceRef>), Error> {
    let open = |part: &Part| open_part(dir, part, create);
    let [control, log, double_write, data, undo] = parts(dir, config);
    let set = DeviceSet {
        control: open(&control)?,
        log: open(&log)?,
        // It lies beside the log: where that is, its disk is mounted. Storage makes a blank one its own.
        double_write: open_part(dir, &double_write, true)?,
        data: open(&data)?,
        undo: open(&undo)?,
        flash: None,
    };
    let all = vec![set.control.clone(), set.log.clone(), set.double_write.clone(), set.data.clone(), set.undo.clone()];
    Ok((set, all))
}

/// Waits until nobody has the files open any more, for a while: a database's tasks end a little after it, and whoever
/// opened them meanwhile would find them in use.
async fn released(env: &Env, devices: Vec<DeviceRef>) {
    let held: Vec<_> = devices.iter().map(Arc::downgrade).collect();
    drop(devices);
    for _ in 0..500 {
        if held.iter().all(|device| device.strong_count() == 0) {
            return;
        }
        env.sleep(Duration::from_millis(1)).await;
    }
}

/// What a database is made of.
pub(crate) struct Parts {
    pub(crate) env: Env,
    pub(crate) devices: DeviceSet,
    pub(crate) config: Config,
}

/// An open database directory.
pub struct Instance {
    pub dir: PathBuf,
    pub config: Config,
    pub env: Env,
    pub database: Database,
    pub report: OpenReport,
    /// Control, log, double-write, data, undo, and the flash tier's where there is one: for statistics.
    pub devices: Vec<DeviceRef>,
    /// A directory on the temp device, emptied at opening.
    pub temp: PathBuf,
    /// What ALTER SYSTEM and a reload change.
    pub settings: Arc<Settings>,
    sql: OnceLock<SqlDatabase>,
    _lock: DirectoryLock,
}

impl Instance {
    /// Makes a new database in `dir`, which must be empty, absent, or left unfinished by an earlier attempt.
    /// `settings`: the configuration file to use, by default the documented defaults.
    pub async fn create(dir: &Path, settings: Option<&Path>) -> Result<(), Error> {
        let (text, config) = match settings {
            Some(path) => read_config(path)?,
            None => (config::DEFAULT.to_string(), Config::default()),
        };
        Self::create_checked(dir, &text, &config).await
    }

    /// As `create`, with the text of a configuration file.
    pub async fn create_with(dir: &Path, settings: &str) -> Result<(), Error> {
        let config = Config::parse(settings, Path::new(config::FILE))?;
        Self::create_checked(dir, settings, &config).await
    }

    async fn create_checked(dir: &Path, text: &str, config: &Config) -> Result<(), Error> {
        let create = |parts: Parts| async move {
            let Parts { env, devices, config } = parts;
            let database = Database::create(env, devices, config.storage(), config.engine()).await?;
            Ok(database.close().await?)
        };
        Self::make_with(dir, text, config, create).await
    }

    /// Makes a database in `dir` with the settings `text`; `fill` writes what is in it to the empty devices and closes
    /// it.
    pub(crate) async fn make_with<T, F>(
        dir: &Path,
        text: &str,
        config: &Config,
        fill: impl FnOnce(Parts) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        refuse_occupied(dir, look(dir)?)?;
        let made = make_directory(dir)?;
        let lock = take_lock(dir)?;
        // Again, now that nobody else can change it.
        refuse_occupied(dir, look(dir)?)?;
        let filled = Self::make(dir, text, config, fill).await;
        if filled.is_err() {
            if let Err(error) = discard(dir) {
                tracing::warn!(%error, "what was made so far stays; `terrace init` removes it when it is run again");
            }
            // Only directories that are empty now go.
            let _ = fs::remove_file(dir.join(LOCK));
            let _ = made.iter().try_for_each(fs::remove_dir);
        }
        drop(lock);
        filled
    }

    /// Under the lock, in a directory that holds nothing or the beginning of a database.
    async fn make<T, F>(dir: &Path, text: &str, config: &Config, fill: impl FnOnce(Parts) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        discard(dir)?;
        check_devices(dir, config)?;
        let files = parts(dir, config).into_iter().chain(flash_part(dir, config)).map(|part| part.path);
        let occupied = files.chain([temp(dir, config)]);
        if let Some(path) = occupied.into_iter().find(|path| path.exists()) {
            let problem = format!(
                "{} exists already: another database uses that device; give this one places of its own \
                 (devices.*.path) in a settings file, and name it with --config",
                path.display()
            );
            return Err(in_directory(dir, problem));
        }
        mark(dir)?;
        write_file(&dir.join(config::FILE), text)?;
        sync_directory(dir)?;
        let temp = temp(dir, config);
        make_directory(&temp)?;
        let (devices, all) = open_devices(dir, config, true)?;
        let env = Real::on(tokio::runtime::Handle::current());
        let filled = fill(Parts { env: env.clone(), devices, config: config.clone() }).await?;
        released(&env, all).await;
        for (_, space) in config.tablespaces() {
            sync_directory(&config.device_path(dir, &space.device))?;
        }
        sync_directory(dir)?;
        fs::remove_file(dir.join(UNFINISHED)).map_err(io_at(dir))?;
        sync_directory(dir)?;
        Ok(filled)
    }

    /// Opens a database, recovering it where it was not closed.
    pub async fn open(dir: &Path) -> Result<Instance, Error> {
        Claimed::new(dir)?.open(Arc::default()).await
    }

    async fn open_claimed(claimed: Claimed, progress: Arc<RecoveryProgress>) -> Result<Instance, Error> {
        let Claimed { dir, config, lock } = claimed;
        let dir = dir.as_path();
        let temp = temp(dir, &config);
        // What queries of an earlier run left there.
        remove_directory(&temp)?;
        make_directory(&temp)?;
        let (mut set, mut devices) = open_devices(dir, &config, false)?;
        set.flash = open_flash(dir, &config);
        devices.extend(set.flash.clone());
        let env = Real::on(tokio::runtime::Handle::current());
        let mut storage = config.storage();
        storage.progress = progress;
        if let Some(archive) = config.archive(dir) {
            let id = Control::read(&set.control).await.map_err(EngineError::from)?.database;
            storage.archive = Some(crate::backup::archive(&archive, id)?);
        }
        let (database, report) = Database::open(env.clone(), set, storage, config.engine()).await?;
        let sql = OnceLock::new();
        let settings = Arc::new(Settings::new(dir, database.clone(), config.clone()));
        Ok(Instance {
            dir: dir.to_path_buf(),
            config,
            env,
            database,
            report,
            devices,
            temp,
            settings,
            sql,
            _lock: lock,
        })
    }

    /// The database as SQL sees it. Queries that outgrow `memory.queries` go on in the temp tablespace.
    pub fn sql(&self) -> SqlDatabase {
        let make = || {
            let sql = SqlDatabase::with_spill(self.database.clone(), self.config.spill(self.temp.clone()));
            sql.set_system(self.settings.clone());
            sql
        };
        self.sql.get_or_init(make).clone()
    }

    /// Writes everything home and marks the database as closed.
    pub async fn close(self) -> Result<(), Error> {
        self.close_as(StopMode::Clean).await
    }

    /// Closes it as `mode` says.
    pub async fn close_as(self, mode: StopMode) -> Result<(), Error> {
        let Instance { env, database, devices, settings, sql, _lock, .. } = self;
        drop((sql, settings)); // They have the database open too.
        let closed = match mode {
            StopMode::Clean => database.close().await,
            StopMode::Fast => database.close_fast().await,
        };
        released(&env, devices).await;
        Ok(closed?)
    }

    /// How it is best closed: where changed pages may stay on flash, they do.
    pub fn stop_mode(&self) -> StopMode {
        let (config, device) = self.database.store().flash_config();
        if device.is_some() && config.restart != Restart::Cold { StopMode::Fast } else { StopMode::Clean }
    }
}

/// A database that nobody else can open: its settings are read, nothing else is.
pub struct Claimed {
    pub dir: PathBuf,
    pub config: Config,
    lock: DirectoryLock,
}

impl Claimed {
    pub fn new(dir: &Path) -> Result<Claimed, Error> {
        let (config, lock) = claim(dir)?;
        Ok(Claimed { dir: dir.to_path_buf(), config, lock })
    }

    /// Opens it, recovering it where it was not closed; `progress` learns how far that is.
    pub async fn open(self, progress: Arc<RecoveryProgress>) -> Result<Instance, Error> {
        Instance::open_claimed(self, progress).await
    }
}

/// The devices of a database that is not opened, for looking at raw bytes. Hold the lock meanwhile.
pub struct Closed {
    pub config: Config,
    pub set: DeviceSet,
    _lock: DirectoryLock,
}

impl Closed {
    pub fn open(dir: &Path) -> Result<Closed, Error> {
        let (config, lock) = claim(dir)?;
        let (set, _) = open_devices(dir, &config, false)?;
        Ok(Closed { config, set, _lock: lock })
    }
}

/// Removes a database's files, wherever its devices are, and its directory if nothing else is in it.
pub fn remove(dir: &Path) -> Result<(), Error> {
    let _lock = take_lock(dir)?;
    read_config(&dir.join(config::FILE))?;
    // From here on it is no database any more, however far this gets.
    mark(dir)?;
    discard(dir)?;
    fs::remove_file(dir.join(LOCK)).map_err(io_at(dir))?;
    match fs::remove_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            Err(in_directory(dir, "the database is gone, but other files are there; remove them yourself"))
        }
        removed => removed.map_err(io_at(dir)),
    }
}

/// Declares that there is no database here, whatever files are.
fn mark(dir: &Path) -> Result<(), Error> {
    let path = dir.join(UNFINISHED);
    fs::File::create(&path).and_then(|file| file.sync_all()).map_err(io_at(&path))?;
    sync_directory(dir)
}

/// Removes what the marker `unfinished` declares to be no database: the files that DIR/terrace.toml places, then that
/// file, then the marker. Nothing where there is no marker; the lock stays.
fn discard(dir: &Path) -> Result<(), Error> {
    if !dir.join(UNFINISHED).exists() {
        return Ok(());
    }
    let settings = dir.join(config::FILE);
    for path in [partial(&settings), dir.join(crate::admin::SOCKET)].iter().filter(|path| path.exists()) {
        fs::remove_file(path).map_err(io_at(path))?;
    }
    // No settings: nothing else was made (invariant 2).
    if settings.exists() {
        let (_, config) = read_config(&settings)?;
        remove_directory(&temp(dir, &config))?;
        let files = parts(dir, &config).into_iter().chain(flash_part(dir, &config)).map(|part| part.path);
        for path in files.filter(|path| path.exists()) {
            fs::remove_file(&path).map_err(io_at(&path))?;
        }
        fs::remove_file(&settings).map_err(io_at(&settings))?;
        sync_directory(dir)?;
    }
    fs::remove_file(dir.join(UNFINISHED)).map_err(io_at(dir))?;
    sync_directory(dir)
}

/// Makes a directory and those above it, durably and their owner's alone; answers which are new, the innermost first.
pub(crate) fn make_directory(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let absent = dir.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
    let absent: Vec<PathBuf> = absent.map(Path::to_path_buf).collect();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(io_at(dir))?;
    // A directory's name is durable when the one above it is.
    for path in absent.iter().rev() {
        sync_directory(path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    }
    Ok(absent)
}

/// Removes a directory with what is in it, where there is one.
fn remove_directory(path: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_at(path)(error)),
        _ => Ok(()),
    }
}

/// Where temporary files go.
fn temp(dir: &Path, config: &Config) -> PathBuf {
    config.device_path(dir, &config.tablespaces.temp.device).join("temp")
}

/// What a database that lost a file has not got.
fn missing(dir: &Path) -> Option<&'static str> {
    let has = |name: &str| dir.join(name).exists();
    let (control, settings, files) = (has(CONTROL), has(config::FILE), ["data", "log", "undo"].iter().all(|f| has(f)));
    match (control, settings) {
        (false, true) => Some("the control file"),
        (false, false) if files => Some("the control file"),
        (true, false) if files => Some("terrace.toml"),
        _ => None,
    }
}

/// Refuses what is not a finished database, locks what is, reads its settings.
fn claim(dir: &Path) -> Result<(Config, DirectoryLock), Error> {
    let refuse = |found| match found {
        DirectoryContent::Database => Ok(()),
        DirectoryContent::SomethingElse if let Some(missing) = missing(dir) => {
            Err(in_directory(dir, format!("{missing} is missing: put it back, or restore the database from a backup")))
        }
        DirectoryContent::Nothing | DirectoryContent::SomethingElse => {
            Err(in_directory(dir, format!("there is no database here; `terrace init {}` makes one", dir.display())))
        }
        DirectoryContent::Unfinished => {
            let again = format!("`terrace init` was interrupted here; run `terrace init {}` again", dir.display());
            Err(in_directory(dir, again))
        }
    };
    // `unfinished` may only mean that somebody is at it right now: the lock knows.
    let found = look(dir)?;
    if found != DirectoryContent::Unfinished {
        refuse(found)?;
    }
    let lock = take_lock(dir)?;
    refuse(look(dir)?)?;
    let (_, config) = read_config(&dir.join(config::FILE))?;
    check_devices(dir, &config)?;
    Ok((config, lock))
}

fn refuse_occupied(dir: &Path, found: DirectoryContent) -> Result<(), Error> {
    match found {
        DirectoryContent::Nothing | DirectoryContent::Unfinished => Ok(()),
        DirectoryContent::Database => Err(in_directory(
            dir,
            format!("there is a database here already; `terrace serve {}` serves it", dir.display()),
        )),
        DirectoryContent::SomethingElse => {
            Err(in_directory(dir, "the directory is not empty; name an empty or a new one"))
        }
    }
}
