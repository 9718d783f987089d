//! The real environment: the machine's clock, tokio's tasks, the operating system's randomness.
//!
//! The one place, with the device room, that may call them.
#![allow(clippy::disallowed_methods, reason = "this module is what the others must use instead")]

use crate::{BoxFuture, Env, Environment, Nanos};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::Handle;

/// Runs on a tokio runtime that has its timer enabled.
pub struct Real {
    start: Instant,
    runtime: Handle,
}

impl Real {
    /// An environment on the given runtime.
    pub fn on(runtime: Handle) -> Env {
        Env::new(Arc::new(Real { start: Instant::now(), runtime }))
    }
}

impl Environment for Real {
    fn now(&self) -> Nanos {
        Nanos(self.start.elapsed().as_nanos() as u64)
    }

    fn unix_micros(&self) -> i64 {
        // A clock before 1970 is nobody's; zero is as good an answer as any.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64)
    }

    fn sleep_until(&self, deadline: Nanos) -> BoxFuture<()> {
        let at = self.start + Duration::from_nanos(deadline.0);
        // The timer registers with the runtime that is current at creation, which need not be the caller's.
        let _entered = self.runtime.enter();
        Box::pin(tokio::time::sleep_until(at.into()))
    }

    fn cpu(&self, _cost: Duration) -> BoxFuture<()> {
        Box::pin(std::future::ready(()))
    }

    fn spawn(&self, _name: &'static str, task: BoxFuture<()>) {
        self.runtime.spawn(task);
    }

    fn random_u64(&self) -> u64 {
        rand::random()
    }

    fn is_simulated(&self) -> bool {
        false
    }
}
