//! The lock of a database directory: a file with the id of the process that has it open.
#![allow(clippy::disallowed_methods)] // This is where files are opened.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The holder's process id, where it could be read.
    #[error("in use by process {}", .0.map_or("(unknown)".to_string(), |pid| pid.to_string()))]
    InUse(Option<u32>),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Held while it lives; the operating system releases it when the process ends, however it ends.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Locks `dir/lock`, making the file where needed.
    pub fn take(dir: &Path) -> Result<DirectoryLock, LockError> {
        let path = dir.join("lock");
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        match file.try_lock() {
            // Somebody removed the file after it was opened here: a lock on it would keep nobody out.
            Ok(()) if !is_file_at(&file, &path)? => return Err(LockError::InUse(None)),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder)?;
                return Err(LockError::InUse(holder.trim().parse().ok()));
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        writeln!(file, "{}", std::process::id())?;
        Ok(DirectoryLock { _file: file })
    }
}

/// Whether `path` still names the open file.
fn is_file_at(file: &File, path: &Path) -> io::Result<bool> {
    match std::fs::metadata(path) {
        Ok(found) => {
            let held = file.metadata()?;
            Ok((found.dev(), found.ino()) == (held.dev(), held.ino()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
