//! The sessions there are: how many, and how to cancel each.
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use terrace_env::Env;
use terrace_sql::Canceller;

/// Sessions by process id (a number of ours; there is one process).
#[derive(Default)]
pub(crate) struct Registry {
    sessions: Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    by_pid: BTreeMap<i32, (i32, Canceller)>,
}

/// A session's place; dropping it frees the place.
pub(crate) struct Place {
    pub(crate) pid: i32,
    /// What a cancel request must know.
    pub(crate) secret: i32,
    registry: Arc<Registry>,
}

impl Registry {
    /// `None` where `max` sessions are there already.
    pub(crate) fn enter(self: &Arc<Self>, env: &Env, max: usize, pid: i32, canceller: Canceller) -> Option<Place> {
        let secret = env.random_u64() as i32;
        let mut sessions = self.sessions.lock();
        if sessions.by_pid.len() >= max {
            return None;
        }
        let before = sessions.by_pid.insert(pid, (secret, canceller));
        assert!(before.is_none(), "process ids are given out once while in use");
        Some(Place { pid, secret, registry: self.clone() })
    }

    /// Cancels what the session runs if the secret is its own; says nothing either way.
    pub(crate) fn cancel(&self, pid: i32, secret: i32) {
        let found = self.sessions.lock().by_pid.get(&pid).filter(|(s, _)| *s == secret).map(|(_, c)| c.clone());
        if let Some(canceller) = found {
            canceller.cancel();
        }
    }

    pub(crate) fn cancel_all(&self) {
        let all: Vec<Canceller> = self.sessions.lock().by_pid.values().map(|(_, c)| c.clone()).collect();
        all.iter().for_each(Canceller::cancel);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.registry.sessions.lock().by_pid.remove(&self.pid);
    }
}
