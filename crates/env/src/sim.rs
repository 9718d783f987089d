//! The simulated environment: a single-threaded executor in virtual time.
//!
//! Invariants:
//! 1. One seed, one run: every choice (which ready task goes next, every random number) is drawn from one generator,
//!    and nothing else decides.
//! 2. Virtual time moves only when no task is ready, and then to the earliest timer.
//! 3. Futures are polled and dropped with the state unlocked: both may wake, spawn and sleep.
//! 4. Work without end at one instant is a livelock, which no clock would ever end: after [`LIVELOCK`] polls it is a
//!    panic.
//! 5. A panic of a task is the test's. Only a panic that the test has asked for ([`Sim::strike`]) ends just the task,
//!    as tokio would have it.
//! 6. CPU is not free: `cpu(cost)` occupies the core that is free first, for `cost`.

use crate::{BoxFuture, Env, Environment, Nanos};
use parking_lot::Mutex;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// 2024-01-01 00:00:00 UTC: where simulated wall clocks start.
const SIM_EPOCH_MICROS: i64 = 1_704_067_200_000_000;

/// Polls at one instant of virtual time.
const LIVELOCK: u64 = 5_000_000;

/// Nothing is ready and no timer is set, yet the awaited future is not done: a lost wake-up or a deadlock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    pub at: Nanos,
    /// Names of the tasks that wait.
    pub waiting: Vec<&'static str>,
}

/// Owner of a simulation. Dropping it drops every task, as a killed process would.
pub struct Sim {
    shared: Arc<SimShared>,
}

/// What tasks reach through their [`Env`].
struct SimShared {
    state: Mutex<SimState>,
    me: Weak<SimShared>,
}

struct SimState {
    now: u64,
    /// Polls since the clock moved.
    polls: u64,
    random: ChaCha8Rng,
    next_id: u64,
    tasks: BTreeMap<u64, Task>,
    /// Tasks to poll; each at most once.
    ready: Vec<u64>,
    /// By deadline, then by order of registration.
    timers: BTreeMap<(u64, u64), Waker>,
    /// When each core is free again.
    cores: Vec<u64>,
    strike: Strike,
}

/// Whether a task is to panic, and has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strike {
    None,
    Wanted(&'static str),
    Fell,
}

struct Task {
    name: &'static str,
    /// Absent while it is being polled.
    future: Option<BoxFuture<()>>,
    queued: bool,
}

struct TaskWaker {
    id: u64,
    shared: Weak<SimShared>,
}

impl Sim {
    /// A simulation of a machine with `cores` cores.
    pub fn new(seed: u64, cores: usize) -> Sim {
        assert!(cores > 0, "a machine has at least one core");
        let shared = Arc::new_cyclic(|me| SimShared {
            me: me.clone(),
            state: Mutex::new(SimState {
                now: 0,
                polls: 0,
                random: ChaCha8Rng::seed_from_u64(seed),
                next_id: 0,
                tasks: BTreeMap::new(),
                ready: Vec::new(),
                timers: BTreeMap::new(),
                cores: vec![0; cores],
                strike: Strike::None,
            }),
        });
        Sim { shared }
    }

    pub fn env(&self) -> Env {
        Env::new(self.shared.clone())
    }

    /// Runs tasks until `main` is done. Tasks it leaves behind stay and go on in the next `run`.
    ///
    /// # Panics
    /// Where everything waits and nothing can wake it; [`Sim::try_run`] reports that instead.
    pub fn run<T: Send + 'static>(&self, main: impl Future<Output = T> + Send + 'static) -> T {
        self.try_run(main).unwrap_or_else(|stuck| panic!("the simulation is stuck: {stuck:?}"))
    }

    /// As [`Sim::run`], giving back what waits where nothing can go on.
    pub(crate) fn try_run<T: Send + 'static>(
        &self,
        main: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Stuck> {
        let result = Arc::new(Mutex::new(None));
        let slot = result.clone();
        self.shared.spawn("main", Box::pin(async move { *slot.lock() = Some(main.await) }));
        loop {
            if let Some(value) = result.lock().take() {
                return Ok(value);
            }
            if !self.shared.poll_one() && !self.shared.advance() {
                let state = self.shared.state.lock();
                return Err(Stuck { at: Nanos(state.now), waiting: state.tasks.values().map(|t| t.name).collect() });
            }
        }
    }

    /// The next task of that name to be polled panics, where it asks ([`Env::is_struck`]). One that waits is woken for
    /// it.
    pub fn strike(&self, name: &'static str) {
        let mut state = self.shared.state.lock();
        state.strike = Strike::Wanted(name);
        let waiting = state.tasks.iter_mut().filter(|(_, task)| task.name == name && !task.queued);
        let woken: Vec<u64> = waiting.map(|(id, task)| (task.queued = true, *id).1).collect();
        state.ready.extend(woken);
    }

    /// Names of the tasks that there are.
    pub fn tasks(&self) -> Vec<&'static str> {
        self.shared.state.lock().tasks.values().map(|task| task.name).collect()
    }

    /// Drops every task where it stands: what a crash does to a process.
    pub fn crash(&self) {
        loop {
            let tasks = {
                let mut state = self.shared.state.lock();
                state.ready.clear();
                std::mem::take(&mut state.tasks)
            };
            if tasks.is_empty() {
                break;
            }
            drop(tasks); // Unlocked (invariant 3); a destructor may spawn, hence the loop.
        }
        let timers = std::mem::take(&mut self.shared.state.lock().timers);
        drop(timers);
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.crash();
    }
}

impl SimShared {
    /// Polls one ready task, chosen at random; false where none is ready.
    fn poll_one(&self) -> bool {
        let (id, mut future) = {
            let mut state = self.state.lock();
            if state.ready.is_empty() {
                return false;
            }
            let n = state.ready.len() as u64;
            let pick = (state.random.next_u64() % n) as usize;
            let id = state.ready.swap_remove(pick);
            state.polls += 1;
            let polls = state.polls;
            let Some(task) = state.tasks.get_mut(&id) else { return true };
            assert!(polls < LIVELOCK, "livelock: task \"{}\" and others never wait for time", task.name);
            task.queued = false;
            let Some(future) = task.future.take() else { return true };
            (id, future)
        };
        let waker = Waker::from(Arc::new(TaskWaker { id, shared: self.me.clone() }));
        let poll = AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker)));
        let polled = catch_unwind(poll);
        let mut state = self.state.lock();
        let polled = match polled {
            Ok(polled) => polled,
            // Invariant 5.
            Err(_) if state.strike == Strike::Fell => {
                state.strike = Strike::None;
                Poll::Ready(())
            }
            Err(panic) => {
                drop(state);
                resume_unwind(panic)
            }
        };
        let done = match polled {
            Poll::Ready(()) => state.tasks.remove(&id),
            Poll::Pending => {
                // Absent where the task crashed the simulation while it ran.
                if let Some(task) = state.tasks.get_mut(&id) {
                    task.future = Some(future);
                    return true;
                }
                None
            }
        };
        drop(state);
        drop(done);
        true
    }

    /// Moves the clock to the earliest timer (invariant 2); false where there is none.
    fn advance(&self) -> bool {
        let waker = {
            let mut state = self.state.lock();
            let Some(((deadline, _), waker)) = state.timers.pop_first() else { return false };
            assert!(deadline >= state.now, "virtual time does not go back");
            state.now = deadline;
            state.polls = 0;
            waker
        };
        waker.wake();
        true
    }
}

impl Environment for SimShared {
    fn now(&self) -> Nanos {
        Nanos(self.state.lock().now)
    }

    fn unix_micros(&self) -> i64 {
        SIM_EPOCH_MICROS + (self.state.lock().now / 1000) as i64
    }

    fn sleep_until(&self, deadline: Nanos) -> BoxFuture<()> {
        Box::pin(Sleep { shared: self.me.clone(), deadline: deadline.0, registered: None })
    }

    fn cpu(&self, cost: Duration) -> BoxFuture<()> {
        let until = {
            let mut state = self.state.lock();
            let now = state.now;
            let core = state.cores.iter_mut().min().expect("at least one core (checked in new)");
            *core = (*core).max(now) + cost.as_nanos() as u64;
            *core
        };
        self.sleep_until(Nanos(until))
    }

    fn spawn(&self, name: &'static str, task: BoxFuture<()>) {
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        state.tasks.insert(id, Task { name, future: Some(task), queued: true });
        state.ready.push(id);
    }

    fn random_u64(&self) -> u64 {
        self.state.lock().random.next_u64()
    }

    fn is_simulated(&self) -> bool {
        true
    }

    fn is_struck(&self, task: &'static str) -> bool {
        let mut state = self.state.lock();
        let struck = state.strike == Strike::Wanted(task);
        if struck {
            state.strike = Strike::Fell;
        }
        struck
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let Some(shared) = self.shared.upgrade() else { return };
        let mut state = shared.state.lock();
        if let Some(task) = state.tasks.get_mut(&self.id)
            && !task.queued
        {
            task.queued = true;
            state.ready.push(self.id);
        }
    }
}

struct Sleep {
    shared: Weak<SimShared>,
    deadline: u64,
    /// Key of the timer, once polled.
    registered: Option<(u64, u64)>,
}

impl Future for Sleep {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(shared) = self.shared.upgrade() else { return Poll::Pending };
        let mut state = shared.state.lock();
        if state.now >= self.deadline {
            return Poll::Ready(());
        }
        let key = self.registered.unwrap_or_else(|| {
            state.next_id += 1;
            (self.deadline, state.next_id)
        });
        state.timers.insert(key, cx.waker().clone());
        drop(state);
        self.registered = Some(key);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let (Some(key), Some(shared)) = (self.registered, self.shared.upgrade()) {
            let waker = shared.state.lock().timers.remove(&key);
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests;
