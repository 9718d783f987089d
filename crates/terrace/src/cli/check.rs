//! `terrace check`.

use crate::Failure;
use crate::cli::report;
use crate::cli::serve::say;
use std::path::Path;
use std::time::Duration;
use terrace::Instance;

pub(crate) async fn check(dir: &Path) -> Result<(), Failure> {
    let instance = Instance::open(dir).await?;
    report::opened(&instance.report);
    let bar = indicatif::ProgressBar::new_spinner();
    bar.set_style(report_style());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar.set_message("checking pages, trees, rows and undo records");
    let problems = instance.database.check().await;
    bar.finish_and_clear();
    let tables = instance.database.catalog().tables().count();
    // The database is closed also where the check itself failed.
    let closed = instance.close().await;
    let problems = problems?;
    closed?;
    for problem in &problems {
        say!("PROBLEM  {problem}");
    }
    if problems.is_empty() {
        say!("{}: sound ({tables} tables)", dir.display());
        return Ok(());
    }
    say!("{}: {} problems; restore it from a backup, or export what can be read", dir.display(), problems.len());
    Err(Failure::Said)
}

fn report_style() -> indicatif::ProgressStyle {
    // A constant template: a test of the binary would show a mistake in it.
    indicatif::ProgressStyle::with_template("{spinner} {msg} ({elapsed})").expect("a valid template")
}
