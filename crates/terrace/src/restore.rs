//! Restoring a backup, to its end or with archived log to a later point.
//!
//! The files are put in their places, recovery repeats the log as far as it should, unfinished transactions are rolled
//! back, and the database gets an id of its own: log archived by the life it came from never mixes with what it writes.
#![allow(clippy::disallowed_methods, reason = "copies lie in ordinary files, beyond the devices")]

use crate::backup::{FileEntry, Manifest, SPACES, read_checked, segment_name};
use crate::config::{self, Config};
use crate::instance::{Error, Instance, Parts, in_directory, io_at};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use terrace_device::IoBuf;
use terrace_engine::{Database, EngineError};
use terrace_env::Env;
use terrace_storage::backup::{PAGES_AT, Restore, SegmentFacts, Upto, rebirth, segment_facts};
use terrace_storage::{DeviceSet, Lsn, RecoveryReport, SpaceId};

/// What is to be restored, and how far.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub backup: PathBuf,
    /// Where `log.archive` of the database pointed to.
    pub archive: Option<PathBuf>,
    /// Settings in place of the backup's, e.g. for other devices.
    pub settings: Option<PathBuf>,
    pub upto: Upto,
}

/// Where a segment of the log is read from.
struct Segment {
    path: PathBuf,
    facts: SegmentFacts,
    /// Its entry in the manifest, where the backup's own is used.
    entry: Option<FileEntry>,
}

/// Makes a database in `dir`, empty or new, from a backup. What failed leaves nothing.
pub async fn restore(dir: &Path, request: &Request) -> Result<RecoveryReport, Error> {
    let manifest = Manifest::read(&request.backup)?;
    let settings = request.settings.clone().unwrap_or(request.backup.join(config::FILE));
    let text = fs::read_to_string(&settings).map_err(io_at(&settings))?;
    let config = Config::parse(&text, &settings)?;
    if let Upto::Lsn(lsn) = request.upto
        && lsn.0 < manifest.end_lsn
    {
        return Err(too_early(request, &manifest));
    }
    if let Upto::Time(time) = request.upto
        && time < manifest.end_time
    {
        return Err(too_early(request, &manifest));
    }
    let segments = segments(request, &manifest)?;
    Instance::make_with(dir, &text, &config, |parts| fill(parts, request, &manifest, &segments)).await
}

fn too_early(request: &Request, manifest: &Manifest) -> Error {
    let problem = format!(
        "a backup can be restored to its end (LSN {}, {} UTC) and later, not to a point before; use an earlier backup",
        manifest.end_lsn,
        crate::time::format_micros(manifest.end_time)
    );
    in_directory(&request.backup, problem)
}

/// The segments to repeat, by number, the archive's before the backup's own; they connect.
fn segments(request: &Request, manifest: &Manifest) -> Result<BTreeMap<u64, Segment>, Error> {
    let database = manifest.database_id(&request.backup)?;
    let facts = |path: &Path| -> Result<Option<SegmentFacts>, Error> {
        let bytes = fs::read(path).map_err(io_at(path))?;
        Ok(segment_facts(&bytes, database, manifest.segment_size).map_err(EngineError::from)?)
    };
    let mut segments = BTreeMap::new();
    for entry in manifest.segments() {
        let path = request.backup.join(&entry.name);
        let Some(facts) = facts(&path)? else {
            return Err(in_directory(
                &request.backup,
                format!("{} is no log of this database; use another backup", entry.name),
            ));
        };
        segments.insert(facts.number, Segment { path, facts, entry: Some(entry.clone()) });
    }
    let Some(first) = segments.keys().next().copied() else {
        return Err(in_directory(&request.backup, "it has no log; use another backup"));
    };
    if let Some(archive) = &request.archive {
        let dir = archive.join(format!("{database:032x}"));
        if !dir.is_dir() {
            let problem =
                format!("it holds no log of database {database:032x}: there is no directory of that name in it");
            return Err(in_directory(archive, problem));
        }
        for entry in fs::read_dir(&dir).map_err(io_at(&dir))? {
            let path = entry.map_err(io_at(&dir))?.path();
            // Partial files of a writer that was stopped have other names.
            let named = path.file_name().and_then(|name| u64::from_str_radix(name.to_str()?, 16).ok());
            let Some(number) = named.filter(|number| *number >= first) else { continue };
            match facts(&path)? {
                Some(facts) if facts.number == number => segments.insert(number, Segment { path, facts, entry: None }),
                _ => {
                    let problem = format!("{} is damaged: not segment {number} of this database", path.display());
                    return Err(in_directory(archive, problem));
                }
            };
        }
    }
    connected(request, first, &segments)?;
    Ok(segments)
}

/// Refuses a gap in the log.
fn connected(request: &Request, first: u64, segments: &BTreeMap<u64, Segment>) -> Result<(), Error> {
    let place = request.archive.as_deref().unwrap_or(&request.backup);
    let mut before: Option<SegmentFacts> = None;
    for (at, (number, segment)) in segments.iter().enumerate() {
        let expected = first + at as u64;
        if *number != expected {
            let name = segment_name(expected);
            return Err(in_directory(place, format!("log segment {expected} ({name}) is missing, {number} is there")));
        }
        if let Some(before) = before
            && before.ends != segment.facts.begins
        {
            let problem = format!(
                "log segment {number} begins at {}, the one before ends at {}",
                segment.facts.begins, before.ends
            );
            return Err(in_directory(place, problem));
        }
        before = Some(segment.facts);
    }
    Ok(())
}

/// Fills the devices, recovers, rolls back, and gives the database its own id.
async fn fill(
    parts: Parts,
    request: &Request,
    manifest: &Manifest,
    segments: &BTreeMap<u64, Segment>,
) -> Result<RecoveryReport, Error> {
    let Parts { env, devices, config } = parts;
    copy_all(&env, &devices, &config, request, manifest, segments).await?;
    let (database, report) =
        Database::open_upto(env.clone(), devices.clone(), config.storage(), config.engine(), request.upto).await?;
    let report = report.storage;
    if report.redo_to.0 < manifest.end_lsn {
        return Err(in_directory(
            &request.backup,
            format!("its log ends at {}, before the end of the backup", report.redo_to),
        ));
    }
    reached(request, &report)?;
    // Old row versions go, and with them every mention of objects that are no more.
    database.purge().await?;
    let catalog = database.catalog();
    let objects = catalog.tables().flat_map(|table| table.indexes.iter().map(|index| index.oid.0).chain([table.oid.0]));
    let above = objects.max().map_or(0, |largest| largest + 1);
    database.close().await?;
    rebirth(&env, &devices, &config.storage(), above).await.map_err(EngineError::from)?;
    Ok(report)
}

/// Whether there was as much log as the request needs.
fn reached(request: &Request, report: &RecoveryReport) -> Result<(), Error> {
    let wanted = match request.upto {
        Upto::End => return Ok(()),
        Upto::Lsn(lsn) if report.redo_to >= lsn => return Ok(()),
        _ if report.stopped_short => return Ok(()),
        Upto::Lsn(lsn) => format!("LSN {lsn}"),
        Upto::Time(time) => crate::time::format_micros(time),
    };
    let last = report.last_commit.map_or("none".to_string(), crate::time::format_micros);
    let problem = format!(
        "the log at hand ends at LSN {} (last commit: {last}), before {wanted}; add the archive that goes on, \
         or restore without --to",
        report.redo_to
    );
    Err(in_directory(request.archive.as_deref().unwrap_or(&request.backup), problem))
}

async fn copy_all(
    env: &Env,
    devices: &DeviceSet,
    config: &Config,
    request: &Request,
    manifest: &Manifest,
    segments: &BTreeMap<u64, Segment>,
) -> Result<(), Error> {
    let state = manifest.control(&request.backup)?;
    let restore = Restore::begin(env, devices, &config.storage(), state).await.map_err(EngineError::from)?;
    for entry in &manifest.files {
        match SPACES.iter().find(|(_, name)| *name == entry.name) {
            Some((space, _)) => copy_space(&restore, *space, request, entry).await?,
            // Log that the archive has in a later state is still to be whole here.
            None => read_checked(&request.backup, entry, |_, _| std::future::ready(Ok(()))).await?,
        }
    }
    for (slot, segment) in segments.values().enumerate() {
        let bytes = fs::read(&segment.path).map_err(io_at(&segment.path))?;
        if segment.entry.as_ref().is_some_and(|entry| crc32c::crc32c(&bytes) != entry.crc32c) {
            return Err(in_directory(&request.backup, format!("{} changed while it was read", segment.path.display())));
        }
        restore.segment(slot as u32, &bytes).await.map_err(EngineError::from)?;
    }
    Ok(restore.finish().await.map_err(EngineError::from)?)
}

async fn copy_space(restore: &Restore<'_>, space: SpaceId, request: &Request, entry: &FileEntry) -> Result<(), Error> {
    read_checked(&request.backup, entry, |at, bytes| async move {
        // The head of the file is the database's to write.
        let skip = PAGES_AT.saturating_sub(at) as usize;
        if skip >= bytes.len() {
            return Ok(());
        }
        let mut pages = IoBuf::zeroed(bytes.len() - skip);
        pages.copy_from_slice(&bytes[skip..]);
        Ok(restore.write(space, at + skip as u64, pages).await.map_err(EngineError::from)?)
    })
    .await
}

/// A point in time for `--to`: an LSN (a number) or a timestamp in UTC.
pub fn target(time: Option<&str>, lsn: Option<u64>) -> Result<Upto, EngineError> {
    match (time, lsn) {
        (None, None) => Ok(Upto::End),
        (None, Some(lsn)) => Ok(Upto::Lsn(Lsn(lsn))),
        (Some(text), _) => crate::time::parse_micros(text).map(Upto::Time),
    }
}
