//! A piece of work from its beginning to its end, instead of terminals for a while.
use super::{Loaded, Machine, Rig, Traffic};
use terrace_engine::{Database, Result};
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
        let mut rig = Rig::new(self, None, loaded);
        let running = rig.start()?;
        let before = running.totals();
        let result = running.ask(work)?;
        let at = running.now() - running.opening;
        let traffic = running.totals().since(&before, at.as_secs_f64());
        Ok(Session { result, traffic, tier: running.database.store().flash() })
    }
}
