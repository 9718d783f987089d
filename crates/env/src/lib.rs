//! Clock, tasks, randomness and CPU time: the real ones ([`Real`]) and the simulated ones ([`Sim`]); and the count of
//! memory.
//!
//! In: futures to run, durations to wait. Never: devices, pages, or anything that knows what the time is for.
//!
//! Everything above this room asks an [`Env`] instead of the operating system (rule R2), so that the same engine runs
//! on real devices in real time and, under [`Sim`], in virtual time where one seed gives one run.

pub mod memory;
mod real;
mod sim;

pub use real::{Real, hand_over_here};
pub use sim::{Sim, Stuck};

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// A boxed future, as environments hand them out.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// Nanoseconds since the environment was made; never goes back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Nanos(pub u64);

/// What an environment provides; see [`Env`] for the meaning of each.
pub trait Environment: Send + Sync {
    fn now(&self) -> Nanos;
    fn unix_micros(&self) -> i64;
    fn sleep_until(&self, deadline: Nanos) -> BoxFuture<()>;
    fn cpu(&self, cost: Duration) -> BoxFuture<()>;
    fn spawn(&self, name: &'static str, task: BoxFuture<()>);
    fn spawn_thread(&self, name: &'static str, task: BoxFuture<()>) {
        self.spawn(name, task);
    }
    fn run_long(&self, work: &mut dyn FnMut()) {
        work();
    }
    fn random_u64(&self) -> u64;
    fn is_simulated(&self) -> bool;
    fn is_struck(&self, _task: &'static str) -> bool {
        false
    }
}

/// A handle to the environment; cheap to clone.
#[derive(Clone)]
pub struct Env(Arc<dyn Environment>);

impl Env {
    pub fn new(environment: Arc<dyn Environment>) -> Env {
        Env(environment)
    }
    pub fn now(&self) -> Nanos {
        self.0.now()
    }
    /// Microseconds since the Unix epoch (simulated: a fixed date plus virtual time).
    pub fn unix_micros(&self) -> i64 {
        self.0.unix_micros()
    }
    pub fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        self.sleep_until(Nanos(self.now().0 + duration.as_nanos() as u64))
    }
    pub fn sleep_until(&self, deadline: Nanos) -> BoxFuture<()> {
        self.0.sleep_until(deadline)
    }
    /// Charges CPU time: queues on N virtual cores when simulated, returns at once when real.
    pub async fn cpu(&self, cost: Duration) {
        if self.0.is_simulated() {
            self.0.cpu(cost).await;
        }
    }
    /// Runs `task` in the background. `Send` is demanded in simulation too.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(name, Box::pin(task));
    }
    /// The same on a thread of the task's own, which it may block. Simulated, it is a task like others.
    pub fn spawn_thread(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn_thread(name, Box::pin(task));
    }
    /// Runs a future whose polls may take long (milliseconds of computing): other tasks of the thread go to another one
    /// meanwhile, where the thread allows it ([`hand_over_here`]). That costs some microseconds a poll.
    pub async fn run_long<F: Future + Unpin>(&self, mut work: F) -> F::Output {
        poll_fn(|cx| {
            let mut polled = Poll::Pending;
            self.0.run_long(&mut || polled = Pin::new(&mut work).poll(cx));
            polled
        })
        .await
    }
    pub fn random_u64(&self) -> u64 {
        self.0.random_u64()
    }
    pub fn is_simulated(&self) -> bool {
        self.0.is_simulated()
    }
    /// Whether a test wants the task of that name to panic now ([`Sim::strike`]); answered once.
    pub fn is_struck(&self, task: &'static str) -> bool {
        self.0.is_struck(task)
    }
}

/// Lets other ready tasks run first.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(move |cx| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}
