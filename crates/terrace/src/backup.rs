//! Backups on disk: a directory with copies of the tablespaces, the log segments they need, the settings, and a
//! manifest.
//!
//! ```text
//! DEST/data, DEST/undo      the tablespaces' files (their first 64 KiB are not used)
//! DEST/log/NUMBER           log segments, sixteen hexadecimal digits
//! DEST/terrace.toml         the settings
//! DEST/manifest.toml        versions, LSNs, sizes, checksums; written last
//! ```
//!
//! An archive (`log.archive`) holds `DATABASE/NUMBER`, segments as they were sealed, per database id.
//!
//! Invariants: (1) what has no manifest is no backup; (2) every byte of a file counts in its checksum in the manifest,
//! and the manifest's own bytes in its last line; (3) an archived segment is durable under its name before its slot in
//! the log is used again.
#![allow(clippy::disallowed_methods, reason = "copies lie in ordinary files, beyond the devices")]

use crate::instance::{self, Error, Instance, in_directory, io_at};
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Deref;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use terrace_engine::EngineError;
use terrace_storage::backup::{Backup, PAGES_AT, page_checks, segment_facts};
use terrace_storage::control::Control;
use terrace_storage::log::archive::Archive;
use terrace_storage::{DATA, Lsn, PageId, SpaceId, Store, UNDO};

pub const MANIFEST: &str = "manifest.toml";
const LOG: &str = "log";
const VERSION: u32 = 1;
/// Bytes copied at a time.
const CHUNK: usize = 1 << 20;
/// Bytes after which a copy is synced: what the device has yet to write stays little, and with it the wait of everybody
/// else.
const SYNC_EVERY: usize = 32 << 20;
pub(crate) const SPACES: [(SpaceId, &str); 2] = [(DATA, "data"), (UNDO, "undo")];

/// What a backup says of itself.
#[derive(Clone, Debug, Deserialize)]
pub struct Manifest {
    pub version: u32,
    /// The program that made it.
    pub terrace: String,
    /// The database's id, in hexadecimal.
    pub database: String,
    pub epoch: u64,
    pub page_size: u32,
    pub segment_size: u64,
    /// A restore repeats the log from here ...
    pub start_lsn: u64,
    /// ... to here at least.
    pub end_lsn: u64,
    /// Microseconds since 1970: everything committed before is in it.
    pub end_time: i64,
    pub next_object: u32,
    /// When the database was made.
    pub created: i64,
    pub files: Vec<FileEntry>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct FileEntry {
    pub name: String,
    pub bytes: u64,
    pub crc32c: u32,
}

impl Manifest {
    /// Reads the manifest of a backup; refuses what is none, or damaged.
    pub fn read(dir: &Path) -> Result<Manifest, Error> {
        let path = dir.join(MANIFEST);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(in_directory(
                    dir,
                    "there is no backup here: it has no manifest.toml, which is written last",
                ));
            }
            read => read.map_err(io_at(&path))?,
        };
        let damaged =
            |why: &str| in_directory(dir, format!("the backup's manifest.toml is damaged ({why}); use another backup"));
        let (body, last) = text.rsplit_once("# crc32c ").ok_or_else(|| damaged("its last line is missing"))?;
        if last.trim().parse() != Ok(crc32c::crc32c(body.as_bytes())) {
            return Err(damaged("its checksum does not agree"));
        }
        let manifest: Manifest = toml::from_str(body).map_err(|error| damaged(&error.to_string()))?;
        if manifest.version != VERSION {
            let version = manifest.version;
            return Err(in_directory(
                dir,
                format!("backup format {version} is unknown; restore it with the terrace that made it"),
            ));
        }
        Ok(manifest)
    }

    fn write(&self, dir: &Path) -> Result<(), Error> {
        let mut body = format!(
            "# A backup of a Terrace database; `terrace restore` reads it.\nversion = {}\nterrace = {:?}\n\
             database = {:?}\nepoch = {}\n\
             page_size = {}\nsegment_size = {}\nstart_lsn = {}\nend_lsn = {}\nend_time = {}\nnext_object = {}\n\
             created = {}\n",
            self.version,
            self.terrace,
            self.database,
            self.epoch,
            self.page_size,
            self.segment_size,
            self.start_lsn,
            self.end_lsn,
            self.end_time,
            self.next_object,
            self.created
        );
        for file in &self.files {
            body += &format!("[[files]]\nname = {:?}\nbytes = {}\ncrc32c = {}\n", file.name, file.bytes, file.crc32c);
        }
        let crc = crc32c::crc32c(body.as_bytes());
        instance::write_file(&dir.join(MANIFEST), &format!("{body}# crc32c {crc}\n"))?;
        instance::sync_directory(dir)
    }

    /// The database's id.
    pub(crate) fn database_id(&self, dir: &Path) -> Result<u128, Error> {
        u128::from_str_radix(&self.database, 16).map_err(|_| in_directory(dir, "the manifest's database id is none"))
    }

    /// The control state that a restore begins with.
    pub(crate) fn control(&self, dir: &Path) -> Result<Control, Error> {
        Ok(Control {
            database: self.database_id(dir)?,
            epoch: self.epoch,
            page_size: self.page_size,
            segment_size: self.segment_size,
            redo_lsn: Lsn(self.start_lsn),
            retain_lsn: Lsn(self.start_lsn),
            complete: true,
            clean: false,
            logs_frames: false, // What its log has of them is nothing to a restore.
            next_object: self.next_object,
            created: self.created,
            life: 0,
            durable: Lsn(0),
        })
    }

    /// The files of log segments.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &FileEntry> {
        self.files.iter().filter(|file| file.name.starts_with("log/"))
    }

    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// The name of a segment's file.
pub(crate) fn segment_name(number: u64) -> String {
    format!("{number:016x}")
}

/// A file being written, with its checksum.
struct Copy {
    path: PathBuf,
    name: String,
    file: File,
    bytes: u64,
    crc: u32,
    /// Bytes since the last sync.
    unsynced: usize,
}

impl Copy {
    fn create(dir: &Path, name: &str) -> Result<Copy, Error> {
        let path = dir.join(name);
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path).map_err(io_at(&path))?;
        Ok(Copy { path, name: name.into(), file, bytes: 0, crc: 0, unsynced: 0 })
    }

    /// Adds to it on a thread that may block: the server's own threads go on serving.
    async fn append(mut self, bytes: impl Deref<Target = [u8]> + Send + 'static) -> Result<Copy, Error> {
        blocking(move || self.append_now(&bytes).map(|()| self)).await
    }

    fn append_now(&mut self, bytes: &[u8]) -> Result<(), Error> {
        // What was never written stays a hole.
        let written = if bytes.iter().all(|byte| *byte == 0) {
            self.file.seek(SeekFrom::Current(bytes.len() as i64)).map(|_| ())
        } else {
            self.file.write_all(bytes)
        };
        written.map_err(io_at(&self.path))?;
        self.bytes += bytes.len() as u64;
        self.unsynced += bytes.len();
        if self.unsynced >= SYNC_EVERY {
            self.file.sync_data().map_err(io_at(&self.path))?;
            self.unsynced = 0;
        }
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        Ok(())
    }

    async fn finish(self) -> Result<FileEntry, Error> {
        blocking(move || {
            self.file.set_len(self.bytes).and_then(|()| self.file.sync_all()).map_err(io_at(&self.path))?;
            Ok(FileEntry { name: self.name, bytes: self.bytes, crc32c: self.crc })
        })
        .await
    }
}

/// Runs what waits for files apart from the threads that serve.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    // It fails by a panic only: what waits for it keeps the runtime from ending.
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Copies an open database into `dest`, an empty or new directory, while it works. `progress` hears of bytes done and
/// in all. What a failed copy left has no manifest and can be removed.
pub async fn take(
    instance_dir: &Path,
    store: &Store,
    dest: &Path,
    progress: impl Fn(u64, u64),
) -> Result<Manifest, Error> {
    instance::make_directory(dest)?;
    if fs::read_dir(dest).map_err(io_at(dest))?.next().is_some() {
        return Err(in_directory(dest, "the directory is not empty; name an empty or a new one for the backup"));
    }
    let log = dest.join(LOG);
    instance::make_directory(&log)?;
    let backup = store.begin_backup().await.map_err(EngineError::from)?;
    let mut files = vec![];
    let total = SPACES.iter().map(|(space, _)| backup.size(*space)).sum();
    let mut done = 0;
    for (space, name) in SPACES {
        files.push(copy_space(&backup, space, dest, name, |bytes| progress(done + bytes, total)).await?);
        done += backup.size(space);
    }
    let end = backup.end().await.map_err(EngineError::from)?;
    for number in end.first_segment..=end.last_segment {
        let bytes = backup.segment(number).await.map_err(EngineError::from)?;
        let copy = Copy::create(dest, &format!("{LOG}/{}", segment_name(number)))?;
        files.push(copy.append(bytes).await?.finish().await?);
    }
    let state = backup.control;
    drop(backup);
    let settings = instance_dir.join(crate::config::FILE);
    let text = fs::read(&settings).map_err(io_at(&settings))?;
    files.push(Copy::create(dest, crate::config::FILE)?.append(text).await?.finish().await?);
    instance::sync_directory(&dest.join(LOG))?;
    let manifest = Manifest {
        version: VERSION,
        terrace: env!("CARGO_PKG_VERSION").into(),
        database: format!("{:032x}", state.database),
        epoch: state.epoch,
        page_size: state.page_size,
        segment_size: state.segment_size,
        start_lsn: state.retain_lsn.0,
        end_lsn: end.lsn.0,
        end_time: end.unix_micros,
        next_object: state.next_object,
        created: state.created,
        files,
    };
    manifest.write(dest)?;
    Ok(manifest)
}

async fn copy_space(
    backup: &Backup,
    space: SpaceId,
    dest: &Path,
    name: &str,
    progress: impl Fn(u64),
) -> Result<FileEntry, Error> {
    let size = backup.size(space);
    let mut copy = Copy::create(dest, name)?.append(vec![0; PAGES_AT as usize]).await?;
    let mut at = PAGES_AT;
    while at < size {
        let len = (size - at).min(CHUNK as u64);
        let bytes = backup.read(space, at, len as usize).await.map_err(EngineError::from)?;
        copy = copy.append(bytes).await?;
        at += len;
        progress(at);
    }
    copy.finish().await
}

/// Reads a file of a backup, a chunk at a time, and holds it against the manifest (invariant 2).
pub(crate) async fn read_checked<F: Future<Output = Result<(), Error>>>(
    dir: &Path,
    entry: &FileEntry,
    mut each: impl FnMut(u64, Vec<u8>) -> F,
) -> Result<(), Error> {
    let path = dir.join(&entry.name);
    let mut file = File::open(&path).map_err(io_at(&path))?;
    let damaged = |why: String| in_directory(dir, format!("{} is damaged ({why}); use another backup", entry.name));
    let found = file.metadata().map_err(io_at(&path))?.len();
    if found != entry.bytes {
        return Err(damaged(format!("{found} bytes in place of {}", entry.bytes)));
    }
    let (mut at, mut crc) = (0, 0);
    while at < entry.bytes {
        let mut chunk = vec![0; (entry.bytes - at).min(CHUNK as u64) as usize];
        file.read_exact(&mut chunk).map_err(io_at(&path))?;
        crc = crc32c::crc32c_append(crc, &chunk);
        let len = chunk.len() as u64;
        each(at, chunk).await?;
        at += len;
    }
    if crc != entry.crc32c {
        return Err(damaged("its checksum does not agree with the manifest".into()));
    }
    Ok(())
}

/// Verifies a backup: every file against the manifest, every page, every log segment and that they connect.
pub async fn verify(dir: &Path) -> Result<Manifest, Error> {
    let manifest = Manifest::read(dir)?;
    let page_size = manifest.page_size as usize;
    for entry in &manifest.files {
        let space = SPACES.iter().find(|(_, name)| *name == entry.name).map(|(space, _)| *space);
        let damaged =
            |what: String| in_directory(dir, format!("{what} in {} is damaged; use another backup", entry.name));
        read_checked(dir, entry, |at, bytes| {
            let pages = space.filter(|_| at >= PAGES_AT || bytes.len() as u64 > PAGES_AT).map(|space| {
                let skip = PAGES_AT.saturating_sub(at) as usize;
                let first = (at.max(PAGES_AT) - PAGES_AT) / page_size as u64;
                let mut pages = bytes[skip..].chunks_exact(page_size).zip(first..);
                pages.find(|(page, no)| !page_checks(page, PageId::new(space, *no as u32))).map(|(_, no)| no)
            });
            let bad = pages.flatten();
            std::future::ready(bad.map_or(Ok(()), |no| Err(damaged(format!("page {no}")))))
        })
        .await?;
    }
    let mut ends = None;
    for entry in manifest.segments() {
        let path = dir.join(&entry.name);
        let bytes = fs::read(&path).map_err(io_at(&path))?;
        let facts =
            segment_facts(&bytes, manifest.database_id(dir)?, manifest.segment_size).map_err(EngineError::from)?;
        let facts = facts.filter(|facts| ends.is_none_or(|ends| ends == facts.begins));
        let Some(facts) = facts else {
            return Err(in_directory(
                dir,
                format!("{} does not continue the log before it; use another backup", entry.name),
            ));
        };
        ends = Some(facts.ends);
    }
    if ends.is_none_or(|ends| ends.0 < manifest.end_lsn) {
        return Err(in_directory(dir, "its log does not reach the end that the manifest names; use another backup"));
    }
    Ok(manifest)
}

/// Where complete segments of the log go before their place is used again (invariant 3).
pub(crate) fn archive(archive: &Path, database: u128) -> Result<Archive, Error> {
    let dir = archive.join(format!("{database:032x}"));
    instance::make_directory(&dir)?;
    let dir: Arc<Path> = dir.into();
    Ok(Archive::new(move |number, bytes| {
        let dir = dir.clone();
        let store = move || -> Result<(), Error> {
            let path = dir.join(segment_name(number));
            // Offered again after a restart.
            if fs::read(&path).is_ok_and(|stored| stored == bytes) {
                return Ok(());
            }
            instance::write_bytes(&path, &bytes)?;
            instance::sync_directory(&dir)
        };
        async move {
            let stored = tokio::task::spawn_blocking(store).await.map_err(|error| error.to_string())?;
            stored.map_err(|error| error.to_string())
        }
    }))
}

/// Backs up a database that nobody serves.
pub async fn take_closed(dir: &Path, dest: &Path, progress: impl Fn(u64, u64)) -> Result<Manifest, Error> {
    let instance = Instance::open(dir).await?;
    let taken = take(dir, instance.database.store(), dest, progress).await;
    let closed = instance.close().await;
    let manifest = taken?;
    closed?;
    Ok(manifest)
}

/// A time of a manifest as text, in UTC.
pub fn time(micros: i64) -> String {
    crate::time::format_micros(micros)
}
