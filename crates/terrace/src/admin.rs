//! Requests that another process may send to the one that serves a database: a Unix socket in its directory, for its
//! owner only.
//!
//! One request on each connection, a line. Answers are lines too.
//!
//! | request | answers |
//! |---|---|
//! | `backup DEST` | `progress DONE TOTAL` any number of times, then `ok BYTES END_LSN END_TIME` or `error MESSAGE` |
//! | `stop`, `stop fast`, `stop clean` | `left PAGES` any number of times; the connection ends when the server has |
#![allow(clippy::disallowed_methods, reason = "the socket is a file")]

use crate::backup;
use crate::instance::{Error, in_directory, io_at};
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use terrace_engine::Database;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// The socket's name in the database's directory.
pub const SOCKET: &str = "admin.sock";
/// The longest request.
const REQUEST: u64 = 8192;
/// Between two lines about progress.
const TICK: Duration = Duration::from_millis(500);

/// What a stop does with changed pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum StopMode {
    /// They stay in the flash tier and in the log; the next start goes on from there.
    Fast,
    /// They are written home.
    Clean,
}

/// A request to stop. Who asked waits until this is dropped.
#[derive(Debug)]
pub struct StopRequest {
    /// `None`: whatever suits the database.
    pub mode: Option<StopMode>,
    stream: UnixStream,
}

impl StopRequest {
    /// Says how many pages are left to be written.
    pub async fn tell(&mut self, left: u64) {
        // Who asked may have gone away; the stop goes on.
        let _ = self.stream.write_all(format!("left {left}\n").as_bytes()).await;
    }
}

/// Where requests to stop arrive.
pub type StopRequests = tokio::sync::mpsc::UnboundedSender<StopRequest>;

/// What a backup came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub bytes: u64,
    pub end_lsn: u64,
    /// Microseconds since 1970.
    pub end_time: i64,
}

impl From<&backup::Manifest> for Taken {
    fn from(manifest: &backup::Manifest) -> Taken {
        Taken { bytes: manifest.bytes(), end_lsn: manifest.end_lsn, end_time: manifest.end_time }
    }
}

/// A name for the socket short enough for the system, however deep the directory lies; the directory stays open
/// meanwhile.
fn short_name(dir: &Path) -> Result<(fs::File, PathBuf), Error> {
    let opened = fs::File::open(dir).map_err(io_at(dir))?;
    let name = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd())).join(SOCKET);
    Ok((opened, name))
}

/// Listens in a directory whose lock this process holds.
pub fn listen(dir: &Path) -> Result<UnixListener, Error> {
    let path = dir.join(SOCKET);
    // One that a killed process left.
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io_at(&path)(error)),
        _ => {}
    }
    let (_open, name) = short_name(dir)?;
    let listener = UnixListener::bind(&name).map_err(io_at(&path))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(io_at(&path))?;
    Ok(listener)
}

/// Removes the socket, where it is there.
pub fn remove(dir: &Path) {
    // One that stays is removed at the next start.
    let _ = fs::remove_file(dir.join(SOCKET));
}

/// Answers requests until it is dropped.
pub async fn serve(listener: UnixListener, dir: PathBuf, database: Database, stops: StopRequests) {
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = tasks.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(tasks.spawn(answer(stream, dir.clone(), database.clone(), stops.clone()))),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a request on {SOCKET}");
                    tokio::time::sleep(TICK).await;
                }
            },
        }
    }
}

async fn answer(stream: UnixStream, dir: PathBuf, database: Database, stops: StopRequests) {
    if let Err(error) = respond(stream, &dir, &database, &stops).await {
        tracing::info!(%error, "a request on {SOCKET} broke off");
    }
}

async fn respond(mut stream: UnixStream, dir: &Path, database: &Database, stops: &StopRequests) -> std::io::Result<()> {
    let (read, mut write) = stream.split();
    let mut line = String::new();
    BufReader::new(tokio::io::AsyncReadExt::take(read, REQUEST)).read_line(&mut line).await?;
    let stop = match line.as_str() {
        "stop\n" => Some(None),
        "stop fast\n" => Some(Some(StopMode::Fast)),
        "stop clean\n" => Some(Some(StopMode::Clean)),
        _ => None,
    };
    if let Some(mode) = stop {
        if let Err(mut refused) = stops.send(StopRequest { mode, stream }) {
            return refused.0.stream.write_all(b"error the server is being stopped already\n").await;
        }
        return Ok(());
    }
    let Some(dest) = line.strip_prefix("backup ").and_then(|rest| rest.strip_suffix('\n')) else {
        return write.write_all(b"error the request is unknown; is this the same terrace as the server?\n").await;
    };
    let counts = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let noted = counts.clone();
    let note = move |done, total| {
        noted.0.store(done, Ordering::Relaxed);
        noted.1.store(total, Ordering::Relaxed);
    };
    let work = backup::take(dir, database.store(), Path::new(dest), note);
    tokio::pin!(work);
    let taken = loop {
        tokio::select! {
            taken = &mut work => break taken,
            () = tokio::time::sleep(TICK) => {
                let (done, total) = (counts.0.load(Ordering::Relaxed), counts.1.load(Ordering::Relaxed));
                // If the client that asked is gone, nobody wants the backup.
                write.write_all(format!("progress {done} {total}\n").as_bytes()).await?;
            }
        }
    };
    let last = match taken {
        Ok(manifest) => {
            let Taken { bytes, end_lsn, end_time } = (&manifest).into();
            format!("ok {bytes} {end_lsn} {end_time}\n")
        }
        Err(error) => format!("error {}\n", error.to_string().replace('\n', " ")),
    };
    write.write_all(last.as_bytes()).await
}

/// Asks the process that serves `dir` to stop, and waits until it has; `progress` learns how many pages are left.
/// False: nobody serves it.
pub async fn request_stop(dir: &Path, mode: Option<StopMode>, progress: impl Fn(u64)) -> Result<bool, Error> {
    let path = dir.join(SOCKET);
    let (_open, name) = short_name(dir)?;
    let Ok(mut stream) = UnixStream::connect(&name).await else { return Ok(false) };
    let request = match mode {
        None => "stop\n",
        Some(StopMode::Fast) => "stop fast\n",
        Some(StopMode::Clean) => "stop clean\n",
    };
    stream.write_all(request.as_bytes()).await.map_err(io_at(&path))?;
    let mut lines = BufReader::new(stream).lines();
    // A server that ends may break the connection off.
    while let Ok(Some(line)) = lines.next_line().await {
        match line.split_once(' ') {
            Some(("left", pages)) => progress(pages.parse().unwrap_or(0)),
            Some(("error", why)) => return Err(in_directory(dir, why)),
            _ => return Err(in_directory(dir, line)),
        }
    }
    Ok(true)
}

/// Asks the process that serves `dir` for a backup. `None`: nobody serves it.
pub async fn request_backup(dir: &Path, dest: &Path, progress: impl Fn(u64, u64)) -> Result<Option<Taken>, Error> {
    let path = dir.join(SOCKET);
    let (_open, name) = short_name(dir)?;
    let Ok(mut stream) = UnixStream::connect(&name).await else { return Ok(None) };
    let dest = std::path::absolute(dest).map_err(io_at(dest))?;
    let Some(text) = dest.to_str().filter(|text| !text.contains('\n')) else {
        return Err(in_directory(&dest, "the name is not plain text; choose another"));
    };
    stream.write_all(format!("backup {text}\n").as_bytes()).await.map_err(io_at(&path))?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(line) = lines.next_line().await.map_err(io_at(&path))? {
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let number = |at: usize| rest.split(' ').nth(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        match word {
            "progress" => progress(number(0), number(1)),
            "ok" => return Ok(Some(Taken { bytes: number(0), end_lsn: number(1), end_time: number(2) as i64 })),
            _ => return Err(in_directory(dir, rest)),
        }
    }
    Err(in_directory(dir, "the server ended before the backup was complete"))
}
