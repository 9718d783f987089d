//! One user: transactions one after the other until the end, without think time.
use crate::workload::{Outcome, Sample, Workload};
use futures::FutureExt;
use parking_lot::Mutex;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use std::time::Duration;
use terrace_engine::Database;
use terrace_env::Nanos;

pub(super) struct Terminal<W> {
    pub(super) database: Database,
    pub(super) workload: Arc<W>,
    pub(super) seed: u64,
    pub(super) number: usize,
    pub(super) statement_cpu: Duration,
    pub(super) samples: Arc<Mutex<Vec<Sample>>>,
    pub(super) _ended: tokio::sync::mpsc::Sender<()>,
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    pub(super) window: Duration,
}

impl<W: Workload> Terminal<W> {
    pub(super) fn work(self) -> impl Future<Output = ()> + Send + 'static {
        async move {
            let env = self.database.env().clone();
            let mut random = ChaCha8Rng::seed_from_u64(self.seed ^ (self.number as u64 + 1) << 32);
            while env.now() < self.end {
                let from = env.now();
                let outcome = self.workload.transaction(&self.database, self.number, &mut random).await;
                let outcome = outcome.unwrap_or_else(|e| panic!("terminal {}: {e}", self.number));
                env.cpu(self.statement_cpu * outcome.statements).await;
                self.note(&outcome, env.now(), env.now().0 - from.0);
            }
        }
        .boxed()
    }

    fn note(&self, outcome: &Outcome, now: Nanos, took: u64) {
        let window = (now.0 - self.begin.0) / self.window.as_nanos() as u64;
        let mut samples = self.samples.lock();
        let at = usize::try_from(window).expect("a number of windows");
        if samples.len() <= at {
            samples.resize(at + 1, Sample::default());
        }
        let sample = &mut samples[at];
        sample.transactions += 1;
        sample.counted += u64::from(outcome.counted);
        sample.lasting += u64::from(outcome.lasting);
        sample.retries += u64::from(outcome.retries);
        sample.nanos += took;
    }
}
