//! A server whose database has failed starts anew: the process executes its own program again, under the same number.
//!
//! Invariants:
//! 1. Nothing of the failed run goes on beside recovery: executing ends all threads, closes all files, ends or awaits
//!    their transfers.
//! 2. A server that fails again soon after such a start ends instead, with both reasons in its log: whoever watches it
//!    decides.
//!
//! What was acknowledged is in the log; recovery is what a start after a crash does (PostgreSQL does the same when a
//! process of its dies). Sessions were told 57P02.

use crate::Failure;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use terrace::engine::EngineError;

/// Set in the environment of a process that started like this.
const MARK: &str = "TERRACE_RECOVERED";
/// A run that failed sooner than this after such a start is not started again.
const SHORTEST_RUN: Duration = Duration::from_secs(30);

/// Does not return where it succeeds. `served`: how long this run served.
pub(crate) fn restart(dir: &Path, listen: SocketAddr, error: &EngineError, served: Duration) -> Failure {
    if std::env::var_os(MARK).is_some() && served < SHORTEST_RUN {
        let again = format!("the database failed again {} s after the server had recovered: {error}", served.as_secs());
        return Failure::Message(again);
    }
    tracing::error!(%error, "the database failed; the server starts again and recovers");
    let mut command = Command::new("/proc/self/exe");
    command.arg0("terrace").arg("serve").arg(dir).arg("--listen").arg(listen.to_string());
    for option in log_options(std::env::args().skip(1)) {
        command.arg(option);
    }
    let failed = command.env(MARK, "1").exec();
    Failure::Message(format!("storage failed: {error}; the server cannot start again by itself: {failed}"))
}

/// The options of a command line that say what is logged.
fn log_options(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut found = vec![];
    let mut value = false;
    for argument in arguments {
        let named = argument == "--log";
        if std::mem::replace(&mut value, named) || named || argument.starts_with("--log=") {
            found.push(argument);
        }
    }
    found
}

#[cfg(test)]
mod tests;
