//! Sharp checkpoints beside a workload: everything dirty goes home at once, at fixed times.
use crate::workload::{Outcome, Workload};
use parking_lot::Mutex;
use rand_chacha::ChaCha8Rng;
use std::sync::OnceLock;
use std::time::Duration;
use terrace_engine::{Database, Result};
use terrace_env::Nanos;

/// The workload, with a terminal more (the last) that makes checkpoints, where there are to be any.
pub(super) struct Sharp<W> {
    workload: W,
    every: Option<Duration>,
    terminal: usize,
    /// When the first transaction began; when each checkpoint began and ended, in seconds from then on.
    begin: OnceLock<Nanos>,
    made: Mutex<Vec<(f64, f64)>>,
}

impl<W: Workload> Sharp<W> {
    pub(super) fn new(workload: W, every: Option<Duration>, terminal: usize) -> Sharp<W> {
        Sharp { workload, every, terminal, begin: OnceLock::new(), made: Mutex::default() }
    }

    /// The checkpoints made: begin and end, in seconds from the run's beginning.
    pub(super) fn made(&self) -> Vec<(f64, f64)> {
        self.made.lock().clone()
    }
}

impl<W: Workload> Workload for Sharp<W> {
    async fn load(&self, database: &Database) -> Result<()> {
        self.workload.load(database).await
    }

    async fn transaction(&self, database: &Database, terminal: usize, random: &mut ChaCha8Rng) -> Result<Outcome> {
        let begin = self.begin.get_or_init(|| database.env().now()).0;
        let Some(every) = self.every.filter(|_| terminal == self.terminal) else {
            return self.workload.transaction(database, terminal, random).await;
        };
        let env = database.env();
        let every = every.as_nanos() as u64;
        let seconds = || (env.now().0 - begin) as f64 / 1e9;
        env.sleep_until(Nanos(begin + ((env.now().0 - begin) / every + 1) * every)).await;
        let from = seconds();
        database.store().checkpoint().await?;
        self.made.lock().push((from, seconds()));
        Ok(Outcome::default())
    }

    async fn check(&self, database: &Database) -> Result<Vec<String>> {
        self.workload.check(database).await
    }
}

#[cfg(test)]
mod tests;
