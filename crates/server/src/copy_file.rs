//! A file of the server that COPY reads or writes.
//!
//! Calls of the file system are made on threads that may wait.
#![expect(
    clippy::disallowed_methods,
    reason = "a file of COPY is none of the database's, and lies on none of its devices"
)]

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use terrace_engine::{EngineError, Result};
use tokio::task::spawn_blocking;

/// Bytes that are read at once.
const PART: usize = 256 << 10;

pub(crate) struct CopyFile {
    path: String,
    /// `None` while a call is under way.
    file: Option<File>,
    /// When it was opened; 0 of a pipe.
    bytes: u64,
}

impl CopyFile {
    /// Opens a file to be read.
    pub(crate) async fn open(path: String) -> Result<CopyFile> {
        const HINT: &str = "COPY FROM instructs the server to read a file. You may want a client-side facility such as \
                            psql's \\copy.";
        let (opened, path) = apart(path, |path| {
            // PostgreSQL looks in its own directory, where Terrace keeps no files of users.
            if !std::path::Path::new(path.as_str()).is_absolute() {
                return Err(std::io::Error::from_raw_os_error(2)); // ENOENT
            }
            let file = File::open(path)?;
            let found = file.metadata()?;
            let bytes = if found.is_file() { found.len() } else { 0 };
            Ok((file, found.is_dir(), bytes))
        })
        .await;
        match opened {
            Ok((_, true, _)) => Err(EngineError::new("42809", format!("\"{path}\" is a directory"))),
            Ok((file, false, bytes)) => Ok(CopyFile { path, file: Some(file), bytes }),
            Err(error) => Err(failed("open", &path, " for reading", &error).with_hint(HINT)),
        }
    }

    /// Makes a file, or empties the one that is there.
    pub(crate) async fn create(path: String) -> Result<CopyFile> {
        const HINT: &str = "COPY TO instructs the server to write a file. You may want a client-side facility such as \
                            psql's \\copy.";
        let (created, path) = apart(path, |path| File::create(path)).await;
        match created {
            Ok(file) => Ok(CopyFile { path, file: Some(file), bytes: 0 }),
            Err(error) if error.kind() == ErrorKind::IsADirectory => {
                Err(EngineError::new("42809", format!("\"{path}\" is a directory")))
            }
            Err(error) => Err(failed("open", &path, " for writing", &error).with_hint(HINT)),
        }
    }

    /// How many it has to be read; 0 where that is not known.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next part; empty at the end.
    pub(crate) async fn read(&mut self) -> Result<Vec<u8>> {
        let file = self.file.take().expect("one call at a time");
        let (read, file) = apart(file, |file| {
            let mut part = vec![];
            file.take(PART as u64).read_to_end(&mut part)?;
            Ok(part)
        })
        .await;
        self.file = Some(file);
        read.map_err(|error| failed("read", &self.path, "", &error))
    }

    pub(crate) async fn write(&mut self, data: Vec<u8>) -> Result<()> {
        let file = self.file.take().expect("one call at a time");
        let (written, file) = apart(file, move |file| file.write_all(&data)).await;
        self.file = Some(file);
        written.map_err(|error| failed("write", &self.path, "", &error))
    }
}

/// Runs a call of the file system where it may wait, and hands back what it worked on.
async fn apart<T: Send + 'static, R: Send + 'static>(
    mut on: T,
    call: impl FnOnce(&mut T) -> std::io::Result<R> + Send + 'static,
) -> (std::io::Result<R>, T) {
    let work = move || (call(&mut on), on);
    spawn_blocking(work).await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

fn failed(what: &str, path: &str, to: &str, error: &std::io::Error) -> EngineError {
    let state = match error.kind() {
        ErrorKind::NotFound => "58P01",
        ErrorKind::PermissionDenied => "42501",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "53100",
        _ => "58030",
    };
    let text = error.to_string();
    let why = text.split(" (os error").next().unwrap_or_default();
    EngineError::new(state, format!("could not {what} file \"{path}\"{to}: {why}"))
}
