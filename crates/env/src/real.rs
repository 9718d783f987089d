//! The real environment: the machine's clock, tokio's tasks, the operating system's randomness.
//!
//! The one place, with the device room, that may call them.
#![allow(clippy::disallowed_methods, reason = "this module is what the others must use instead")]

use crate::{BoxFuture, Env, Environment, Nanos};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

thread_local! {
    static HANDS_OVER: Cell<bool> = const { Cell::new(false) };
}

/// To be called as each thread of a multi-threaded runtime starts (`on_thread_start`): its tasks may go to another
/// thread while one of them is at length. (Asking the runtime is not enough: on a thread that runs a `LocalSet` it is a
/// panic.)
pub fn hand_over_here() {
    HANDS_OVER.set(true);
}

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

    /// The thread ends with its task or, as tasks do, with the runtime.
    fn spawn_thread(&self, name: &'static str, task: BoxFuture<()>) {
        let (alive, mut ended) = oneshot::channel::<()>();
        let (hand, given) = mpsc::channel::<BoxFuture<()>>();
        let runtime = self.runtime.clone();
        let body = move || {
            let Ok(mut task) = given.recv() else { return };
            runtime.block_on(poll_fn(|cx| match Pin::new(&mut ended).poll(cx) {
                Poll::Ready(_) => Poll::Ready(()),
                Poll::Pending => task.as_mut().poll(cx),
            }));
        };
        if std::thread::Builder::new().name(name.into()).spawn(body).is_err() {
            return self.spawn(name, task); // No more threads to be had: better among the others than nowhere.
        }
        self.runtime.spawn(async move {
            let _alive = alive;
            std::future::pending::<()>().await
        });
        let _ = hand.send(task); // The thread listens.
    }

    fn run_long(&self, work: &mut dyn FnMut()) {
        match HANDS_OVER.get() {
            // In `block_in_place` alone tasks have no budget: work that gives way by tokio's (as DataFusion's does)
            // would never end its poll, and so could not be cancelled. `block_on` gives it one.
            true => tokio::task::block_in_place(|| self.runtime.block_on(async { work() })),
            false => work(),
        }
    }

    fn random_u64(&self) -> u64 {
        rand::random()
    }

    fn is_simulated(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
