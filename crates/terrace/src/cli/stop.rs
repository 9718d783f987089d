//! `terrace stop`: asks the server of a database to end, and waits until it has.

use crate::Failure;
use crate::cli::serve::say;
use std::path::Path;
use terrace::admin::{StopMode, request_stop};

pub(crate) async fn stop(dir: &Path, mode: Option<StopMode>) -> Result<(), Failure> {
    say!("stopping ...");
    match request_stop(dir, mode, |left| say!("{left} pages are left")).await? {
        true => say!("stopped"),
        false => return Err(Failure::Message(format!("no server takes requests for {}", dir.display()))),
    }
    Ok(())
}
