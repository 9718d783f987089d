//! `terrace backup` and `terrace restore`.

use crate::Failure;
use crate::cli::report;
use crate::cli::serve::say;
use std::path::{Path, PathBuf};
use std::time::Duration;
use terrace::admin::{Taken, request_backup};
use terrace::restore::{Request, restore, target};
use terrace::{Error, backup};

#[derive(clap::Args)]
pub(crate) struct RestoreOptions {
    /// What `terrace backup` made.
    backup: PathBuf,
    /// An empty or a new directory.
    dir: PathBuf,
    /// Where `log.archive` of the database pointed to: for points behind the backup's end.
    #[arg(long, value_name = "DIR")]
    archive: Option<PathBuf>,
    /// Up to the last commit at or before this time, in UTC: 'YYYY-MM-DD HH:MM:SS'.
    #[arg(long, value_name = "TIMESTAMP", conflicts_with = "to_lsn")]
    to: Option<String>,
    /// Up to this place in the log.
    #[arg(long, value_name = "LSN")]
    to_lsn: Option<u64>,
    /// Settings in place of the backup's, e.g. for other devices.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(crate) async fn back_up(dir: &Path, dest: &Path) -> Result<(), Failure> {
    let bar = indicatif::ProgressBar::no_length();
    // A constant template.
    let style = indicatif::ProgressStyle::with_template("copying {wide_bar} {bytes}/{total_bytes}  {eta} left");
    bar.set_style(style.expect("a valid template"));
    let progress = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let taken = match dir.is_dir() {
        true => request_backup(dir, dest, progress).await,
        false => Ok(None),
    };
    let taken = match taken {
        Ok(None) => backup::take_closed(dir, dest, progress).await.map(|manifest| Taken::from(&manifest)),
        Ok(Some(taken)) => Ok(taken),
        Err(error) => Err(error),
    };
    bar.finish_and_clear();
    let Taken { bytes, end_lsn, end_time } = taken?;
    say!("{}: {} up to LSN {end_lsn}, {} UTC", dest.display(), report::bytes(bytes), backup::time(end_time));
    say!("restore it:  terrace restore {} NEW_DIR", dest.display());
    Ok(())
}

pub(crate) async fn bring_back(options: RestoreOptions) -> Result<(), Failure> {
    let upto = target(options.to.as_deref(), options.to_lsn).map_err(Error::from)?;
    let request = Request { backup: options.backup, archive: options.archive, settings: options.config, upto };
    let done = restore(&options.dir, &request).await?;
    let dir = options.dir.display();
    let last = done
        .last_commit
        .map_or("no commit was repeated".to_string(), |at| format!("last commit: {} UTC", backup::time(at)));
    say!(
        "restored {dir} up to LSN {} ({last}) in {}",
        done.redo_to,
        report::duration(Duration::from_nanos(done.nanos))
    );
    say!("serve it:  terrace serve {dir}");
    Ok(())
}

/// `terrace check` of a backup.
pub(crate) async fn check(dir: &Path) -> Result<(), Failure> {
    let manifest = backup::verify(dir).await?;
    say!(
        "{}: a sound backup, {} up to LSN {}, {} UTC",
        dir.display(),
        report::bytes(manifest.bytes()),
        manifest.end_lsn,
        backup::time(manifest.end_time)
    );
    Ok(())
}
