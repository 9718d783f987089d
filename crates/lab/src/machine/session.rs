//! A piece of work from its beginning to its end, instead of terminals for a while.
use super::{Loaded, Machine, Media, Traffic};
use terrace_engine::{Database, EngineConfig, Result};
use terrace_env::Sim;
use terrace_storage::FlashStats;

/// What a session did.
#[derive(Clone, Debug)]
pub struct Session<T> {
    pub result: T,
    /// All transfers of the session; the time is that at its end.
    pub traffic: Traffic,
    pub tier: Option<FlashStats>,
}

impl Machine {
    /// Opens a copy of what was loaded and does `work` on it.
    pub fn session<T, F>(&self, loaded: &Loaded, work: impl FnOnce(Database) -> F) -> Result<Session<T>>
    where
        F: Future<Output = Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        let media = Media::new(Some(loaded), self.whole());
        let sim = Sim::new(self.seed, self.cores);
        let devices = media.emulated(self, &sim.env());
        let opening = Database::open(sim.env(), devices, self.storage.clone(), EngineConfig::default());
        let database = sim.run(opening)?.0;
        let (before, begin) = (media.totals(&database), sim.env().now());
        let result = sim.run(work(database.clone()))?;
        let at = (sim.env().now().0 - begin.0) as f64 / 1e9;
        let traffic = media.totals(&database).since(&before, at);
        Ok(Session { result, traffic, tier: database.store().flash() })
    }
}
