//! `DIR/terrace.toml`: what may be in it, what it means, and what is wrong with it.
//!
//! `config/default.toml` is the documentation, the list of known keys and (a test holds them together) the defaults.

mod units;
mod unknown;

pub use units::{Capacity, DailyWrites, Size, Span, Switch};

use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use terrace_device::Backend;
use terrace_engine::EngineConfig;
use terrace_sql::Spill;
use terrace_sql::observe::LogOptions;
use terrace_storage::StorageConfig;
use terrace_storage::config::{Classify, FlashConfig, FlashOrder, PoolPolicy, Restart, WritePolicy};

/// What `terrace init` writes: every key, explained.
pub const DEFAULT: &str = include_str!("config/default.toml");

/// The name of the configuration file in a database directory.
pub const FILE: &str = "terrace.toml";

/// The flash tier's device where there is no flash tier.
pub(crate) const NO_DEVICE: &str = "none";

/// The most pages read instead of one.
const MAX_EXPANDED_READ: u32 = 64;

/// Bytes that recovery may take besides the pool, whatever the pool.
const RECOVERY: u64 = 64 << 20;

/// What is wrong with a configuration, and the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}{place}: {problem}")]
pub struct ConfigError {
    pub file: String,
    /// ` line N`, or empty.
    pub place: String,
    pub problem: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default)]
pub struct Config {
    pub page_size: Size,
    pub devices: BTreeMap<String, DeviceConfig>,
    pub tablespaces: Tablespaces,
    pub flash_tier: FlashTier,
    pub memory: Memory,
    pub log: Log,
    pub limits: Limits,
    pub server: Server,
    pub logging: Logging,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    Directory,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum BackendName {
    Auto,
    Uring,
    Threads,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default)]
pub struct DeviceConfig {
    pub kind: DeviceKind,
    pub path: PathBuf,
    pub direct: bool,
    pub backend: BackendName,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default)]
pub struct Tablespace {
    pub device: String,
    pub capacity: Capacity,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Tablespaces {
    pub log: Tablespace,
    pub undo: Tablespace,
    pub data: Tablespace,
    pub temp: Tablespace,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum PolicyName {
    Lru,
    Clock,
    Lru2,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default)]
pub struct FlashTier {
    /// "none", or a device.
    pub device: String,
    pub size: Size,
    #[serde(deserialize_with = "units::write_policy")]
    pub write_policy: WritePolicy,
    #[serde(deserialize_with = "units::flash_order")]
    pub replacement: FlashOrder,
    pub dirty_fraction: f64,
    pub fill_threshold: f64,
    pub throttle_queue_depth: usize,
    pub cleaning_batch: usize,
    pub expanded_read: u32,
    pub scan_detection: ScanDetection,
    pub write_budget: Switch<DailyWrites>,
    pub endurance: Switch<Size>,
    pub restart: RestartMethod,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum RestartMethod {
    Cold,
    MemoryMapped,
    LogBased,
    LazyVerification,
    Instant,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ScanDetection {
    Declared,
    ReadAhead,
    Distance,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default)]
pub struct Memory {
    pub pool: Size,
    pub policy: PolicyName,
    pub log_buffer: Size,
    pub queries: Size,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default)]
pub struct Log {
    pub segment_size: Size,
    pub redo_bound: Size,
    pub restart_target: Switch<Span>,
    pub retention: Size,
    pub checkpoint_interval: Span,
    /// Empty: none.
    pub archive: PathBuf,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default)]
pub struct Limits {
    pub snapshot_age: Span,
    pub undo_size: Size,
    pub serializable_memory: Size,
    pub lock_timeout: Span,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default)]
pub struct Server {
    pub listen: SocketAddr,
    pub max_connections: usize,
    /// That serve clients; 0: as many as there are processors.
    pub threads: usize,
    /// Where `GET /metrics` is answered.
    pub metrics: Switch<SocketAddr>,
    pub auth: AuthName,
    /// Empty: no TLS.
    pub tls_cert: PathBuf,
    pub tls_key: PathBuf,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Text,
    Json,
}

/// The server's messages (not the write-ahead log, which is [`Log`]).
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default)]
pub struct Logging {
    pub format: LogFormat,
    pub min_duration_statement: Switch<Span>,
    pub lock_waits: Switch<Span>,
}

impl Default for Logging {
    fn default() -> Self {
        let lock_waits = Switch(Some(Span(std::time::Duration::from_secs(1))));
        Logging { format: LogFormat::Text, min_duration_statement: Switch(None), lock_waits }
    }
}

impl Logging {
    pub fn options(&self) -> LogOptions {
        let time = |switch: Switch<Span>| switch.0.map(|span| span.0);
        LogOptions { min_duration: time(self.min_duration_statement), lock_wait: time(self.lock_waits) }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum AuthName {
    /// Clients on this machine need no password.
    Trust,
    Password,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            page_size: Size(StorageConfig::default().page_size as u64),
            devices: BTreeMap::from([("main".to_string(), DeviceConfig::default())]),
            tablespaces: Tablespaces::default(),
            flash_tier: FlashTier::default(),
            memory: Memory::default(),
            log: Log::default(),
            limits: Limits::default(),
            server: Server::default(),
            logging: Logging::default(),
        }
    }
}

impl Default for DeviceConfig {
    fn default() -> Self {
        DeviceConfig { kind: DeviceKind::Directory, path: ".".into(), direct: true, backend: BackendName::Auto }
    }
}

impl Default for Tablespace {
    fn default() -> Self {
        Tablespace { device: "main".into(), capacity: Capacity(u64::MAX) }
    }
}

impl Default for FlashTier {
    fn default() -> Self {
        let flash = FlashConfig::default();
        FlashTier {
            device: NO_DEVICE.into(),
            size: Size(flash.size),
            write_policy: flash.write,
            replacement: flash.replacement,
            dirty_fraction: flash.dirty_fraction,
            fill_threshold: flash.fill_threshold,
            throttle_queue_depth: flash.throttle_queue_depth,
            cleaning_batch: flash.cleaning_batch,
            expanded_read: flash.expanded_read,
            scan_detection: ScanDetection::Declared,
            write_budget: Switch(None),
            endurance: Switch(None),
            restart: RestartMethod::Instant,
        }
    }
}

impl FlashTier {
    /// The device, where there is to be a tier.
    pub fn device(&self) -> Option<&str> {
        (self.device != NO_DEVICE).then_some(&self.device)
    }

    fn validate(&self, page_size: Size) -> Result<(), String> {
        let problem = |key: &str, value: &dyn std::fmt::Display, must: &str| {
            Err(format!("flash_tier.{key} = {value} must be {must}"))
        };
        let least = Size(64 * page_size.0);
        if self.size < least {
            return problem("size", &self.size, &format!("at least 64 pages: {least}"));
        }
        if !(1..=MAX_EXPANDED_READ).contains(&self.expanded_read) {
            return problem("expanded_read", &self.expanded_read, &format!("from 1 to {MAX_EXPANDED_READ}"));
        }
        if let Some(budget) = self.write_budget.0
            && budget.bytes(self.size) < page_size.0 * 1000
        {
            let least = Size(page_size.0 * 1000);
            return problem("write_budget", &budget, &format!("\"off\", or at least {least} a day"));
        }
        if let Some(endurance) = self.endurance.0
            && endurance < self.size
        {
            return problem("endurance", &endurance, "\"off\", or at least flash_tier.size");
        }
        self.storage().check()
    }

    fn storage(&self) -> FlashConfig {
        FlashConfig {
            size: self.size.0,
            write: self.write_policy,
            replacement: self.replacement,
            dirty_fraction: self.dirty_fraction,
            fill_threshold: self.fill_threshold,
            throttle_queue_depth: self.throttle_queue_depth,
            cleaning_batch: self.cleaning_batch,
            expanded_read: self.expanded_read,
            classify: match self.scan_detection {
                ScanDetection::Declared => Classify::Declared,
                ScanDetection::ReadAhead => Classify::ReadAhead,
                ScanDetection::Distance => Classify::Distance,
            },
            write_budget: self.write_budget.0.map(|budget| budget.bytes(self.size)),
            endurance: self.endurance.0.map(|size| size.0),
            restart: match self.restart {
                RestartMethod::Cold => Restart::Cold,
                RestartMethod::MemoryMapped => Restart::MemoryMapped,
                RestartMethod::LogBased => Restart::LogBased,
                RestartMethod::LazyVerification => Restart::LazyVerification,
                RestartMethod::Instant => Restart::Instant,
            },
            ..FlashConfig::default() // Not for servers: how many groups the cleaner takes at once.
        }
    }
}

impl Default for Memory {
    fn default() -> Self {
        let storage = StorageConfig::default();
        Memory {
            pool: Size(storage.pool_bytes as u64),
            policy: PolicyName::Lru,
            log_buffer: Size(storage.log_buffer as u64),
            queries: Size(128 << 20),
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        let storage = StorageConfig::default();
        Log {
            segment_size: Size(storage.segment_size),
            redo_bound: Size(storage.redo_bound),
            restart_target: Switch(storage.restart_target.map(Span)),
            retention: Size(storage.log_retention),
            checkpoint_interval: Span(storage.checkpoint_interval),
            archive: PathBuf::new(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let engine = EngineConfig::default();
        Limits {
            snapshot_age: Span(engine.snapshot_age_max),
            undo_size: Size(engine.undo_size_max),
            serializable_memory: Size(engine.serializable_memory as u64),
            lock_timeout: Span(engine.lock_timeout),
        }
    }
}

impl Default for Server {
    fn default() -> Self {
        Server {
            listen: SocketAddr::from(([127, 0, 0, 1], 5433)),
            max_connections: 100,
            threads: 0,
            metrics: Switch(None),
            auth: AuthName::Trust,
            tls_cert: PathBuf::new(),
            tls_key: PathBuf::new(),
        }
    }
}

/// Whether there is such a key, written with dots: `flash_tier.size`.
pub(crate) fn is_key(name: &str) -> bool {
    let known: toml::Table = DEFAULT.parse().expect("the default configuration is valid TOML");
    let mut at = Some(toml::Value::Table(known));
    for part in name.split('.') {
        at = at.and_then(|value| value.get(part).cloned());
    }
    at.is_some_and(|value| !value.is_table())
}

/// How a database is served, which is asked before it is opened; the defaults where its settings cannot be read
/// (opening it says why).
pub fn serving(dir: &Path) -> (Server, Logging) {
    let file = dir.join(FILE);
    let config =
        std::fs::read_to_string(&file).ok().and_then(|text| Config::parse(&text, &file).ok()).unwrap_or_default();
    (config.server, config.logging)
}

impl Config {
    /// Reads and checks a configuration file's text. `file` is for messages.
    pub fn parse(text: &str, file: &Path) -> Result<Config, ConfigError> {
        let error = |problem: String| ConfigError { file: file.display().to_string(), place: String::new(), problem };
        unknown::refuse(text, file)?;
        // The parser's message shows the line and what was expected there.
        let config: Config = toml::from_str(text).map_err(|e| error(format!("\n{}", e.to_string().trim_end())))?;
        config.validate().map_err(error)?;
        Ok(config)
    }

    /// The roles and the tablespaces that hold them.
    pub fn tablespaces(&self) -> [(&'static str, &Tablespace); 4] {
        let Tablespaces { log, undo, data, temp } = &self.tablespaces;
        [("log", log), ("undo", undo), ("data", data), ("temp", temp)]
    }

    fn check_device(&self, key: &str, device: &str) -> Result<(), String> {
        if self.devices.contains_key(device) {
            return Ok(());
        }
        let known: Vec<&str> = self.devices.keys().map(String::as_str).collect();
        let suggestion = unknown::nearest(device, known.iter().copied())
            .map_or(String::new(), |name| format!("; did you mean {name:?}?"));
        Err(format!(
            "{key} = {device:?} names a device that is not defined{suggestion} Defined: {}. Add a table \
             [devices.{device}], or name another",
            known.join(", "),
        ))
    }

    fn validate(&self) -> Result<(), String> {
        for (role, space) in self.tablespaces() {
            self.check_device(&format!("tablespaces.{role}.device"), &space.device)?;
        }
        if let Some(device) = self.flash_tier.device() {
            self.check_device("flash_tier.device", device)?;
        }
        self.flash_tier.validate(self.page_size)?;
        let check = |good: bool, key: &str, value: &dyn std::fmt::Display, must: &str| {
            if good { Ok(()) } else { Err(format!("{key} = {value} {must}")) }
        };
        let (memory, log) = (&self.memory, &self.log);
        let page_sizes = [4096, 8192, 16384, 32768];
        check(page_sizes.contains(&self.page_size.0), "page_size", &self.page_size, "must be 4KB, 8KB, 16KB or 32KB")?;
        let least = Size(256 * self.page_size.0);
        check(memory.pool >= least, "memory.pool", &memory.pool, &format!("must be at least 256 pages: {least}"))?;
        check(memory.log_buffer >= Size(1 << 20), "memory.log_buffer", &memory.log_buffer, "must be at least 1MB")?;
        let least = Size(1 << 20);
        check(memory.queries >= least, "memory.queries", &memory.queries, &format!("must be at least {least}"))?;
        let segment = log.segment_size;
        let fits = segment.0.is_multiple_of(64 << 10) && (Size(1 << 20)..=Size(1 << 30)).contains(&segment);
        check(fits, "log.segment_size", &segment, "must be a multiple of 64KB from 1MB to 1GB")?;
        let least = Size(4 * segment.0);
        check(
            log.redo_bound >= least,
            "log.redo_bound",
            &log.redo_bound,
            &format!("must be at least 4 segments: {least}"),
        )?;
        if let Some(target) = log.restart_target.0 {
            check(target.0.as_millis() >= 100, "log.restart_target", &target, "must be \"off\" or at least 100ms")?;
        }
        let must = format!("must be at least log.redo_bound: {}", log.redo_bound);
        check(log.retention >= log.redo_bound, "log.retention", &log.retention, &must)?;
        let interval = log.checkpoint_interval;
        check(interval.0.as_millis() >= 10, "log.checkpoint_interval", &interval, "must be at least 10ms")?;
        let server = &self.server;
        let must = "must be at least 1";
        check(server.max_connections > 0, "server.max_connections", &server.max_connections, must)?;
        check(server.threads <= 1024, "server.threads", &server.threads, "must be at most 1024")?;
        if server.tls_cert.as_os_str().is_empty() != server.tls_key.as_os_str().is_empty() {
            return Err("server.tls_cert and server.tls_key must be given together".into());
        }
        check_listen(server.listen, server.auth).map_err(|why| format!("server.listen: {why}"))
    }

    /// The file's directory of a device; `dir` is the database directory.
    pub fn device_path(&self, dir: &Path, device: &str) -> PathBuf {
        // `validate` has seen that tablespaces name defined devices.
        dir.join(self.devices.get(device).map_or(Path::new("."), |d| &d.path))
    }

    pub fn storage(&self) -> StorageConfig {
        StorageConfig {
            page_size: self.page_size.0 as usize,
            pool_bytes: self.memory.pool.0 as usize,
            pool_policy: match self.memory.policy {
                PolicyName::Lru => PoolPolicy::Lru,
                PolicyName::Clock => PoolPolicy::Clock,
                PolicyName::Lru2 => PoolPolicy::Lru2,
            },
            redo_bound: self.log.redo_bound.0,
            restart_target: self.log.restart_target.0.map(|target| target.0),
            log_retention: self.log.retention.0,
            segment_size: self.log.segment_size.0,
            log_buffer: self.memory.log_buffer.0 as usize,
            flash: self.flash_tier.storage(),
            checkpoint_interval: self.log.checkpoint_interval.0,
            redo_memory: self.redo_memory(),
            ..StorageConfig::default()
        }
    }

    /// Bytes of changes that recovery gathers. With the two segments that it reads it takes as much as half the pool,
    /// at least `RECOVERY`: no query runs yet. (Changes of pages that nobody has read yet stay until those are read,
    /// beside a pool that fills and statements that run.)
    fn redo_memory(&self) -> usize {
        let all = RECOVERY.max(self.memory.pool.0 / 2);
        all.saturating_sub(2 * self.log.segment_size.0).max(RECOVERY / 4) as usize
    }

    /// Where sealed log segments are archived, if they are; `dir` is the database directory.
    pub fn archive(&self, dir: &Path) -> Option<PathBuf> {
        (!self.log.archive.as_os_str().is_empty()).then(|| dir.join(&self.log.archive))
    }

    /// `directory`: where temporary files go.
    pub fn spill(&self, directory: PathBuf) -> Spill {
        let memory = usize::try_from(self.memory.queries.0).unwrap_or(usize::MAX);
        Spill { directory, capacity: self.tablespaces.temp.capacity.0, memory }
    }

    pub fn engine(&self) -> EngineConfig {
        EngineConfig {
            snapshot_age_max: self.limits.snapshot_age.0,
            undo_size_max: self.limits.undo_size.0,
            serializable_memory: usize::try_from(self.limits.serializable_memory.0).unwrap_or(usize::MAX),
            lock_timeout: self.limits.lock_timeout.0,
        }
    }
}

/// Listening to other machines is a decision to be written down: with passwords.
pub fn check_listen(address: SocketAddr, auth: AuthName) -> Result<(), String> {
    if address.ip().is_loopback() || auth == AuthName::Password {
        return Ok(());
    }
    Err(format!(
        "{address} is not a loopback address: give the roles passwords (ALTER ROLE terrace PASSWORD '...'), then set \
         server.auth = \"password\" in terrace.toml; or use 127.0.0.1:{}",
        address.port()
    ))
}

impl From<BackendName> for Backend {
    fn from(name: BackendName) -> Backend {
        match name {
            BackendName::Auto => Backend::Auto,
            BackendName::Uring => Backend::Uring,
            BackendName::Threads => Backend::Threads,
        }
    }
}

#[cfg(test)]
mod tests;
