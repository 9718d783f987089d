//! How a running statement is stopped: by a cancel request, by its timeout, and by the allocator's count.
//!
//! 1. A statement asks its [`CancelToken`] between steps ([`CancelToken::check`]) and waits through it
//!    ([`CancelToken::run`]), so that a wait ends when the statement is cancelled.
//! 2. The first reason stays: what cancels a statement later does not change its error.
//! 3. A session that is to end runs nothing any more: a statement that begins then is cancelled already.
use crate::error::no_memory;
use parking_lot::Mutex;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;
use terrace_engine::{Database, EngineError, Result};
use terrace_env::memory::room;
use terrace_env::{Env, Nanos};
use tokio::sync::{Notify, watch};

/// Cancels one statement.
#[derive(Default)]
pub(crate) struct CancelToken {
    /// Why; 0: it is not cancelled.
    cancelled: AtomicU8,
    waiters: Notify,
}

/// Why a statement is cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    User = 1,
    Timeout = 2,
    Terminated = 3,
}

/// Longest sleep of a session's watch, so that it does not outlive its session for long.
const WATCH_MAX: Duration = Duration::from_secs(10);

impl CancelToken {
    pub(crate) fn cancel(&self, reason: Reason) {
        // The first reason stays.
        let _ = self.cancelled.compare_exchange(0, reason as u8, Ordering::SeqCst, Ordering::SeqCst);
        debug_assert_ne!(self.cancelled.load(Ordering::SeqCst), 0, "invariant 2: a cancel is never taken back");
        self.waiters.notify_waiters();
    }

    /// Whether the statement may go on: it was not cancelled, and has not taken more memory than there is.
    pub(crate) fn check(&self) -> Result<()> {
        let why = match self.cancelled.load(Ordering::SeqCst) {
            0 => return crate::cancel::check_room(),
            why if why == Reason::Terminated as u8 => return Err(terminated()),
            why if why == Reason::Timeout as u8 => "statement timeout",
            _ => "user request",
        };
        Err(EngineError::new("57014", format!("canceling statement due to {why}")))
    }

    /// Runs `work` until it is done or the statement is cancelled, whichever comes first. Work that is dropped half-way
    /// must be followed by a rollback of its transaction.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let notified = self.waiters.notified();
        tokio::pin!(notified);
        // Registered before the flag is read: a cancel in between is not lost.
        notified.as_mut().enable();
        self.check()?;
        tokio::pin!(work);
        let work = poll_fn(|context| match work.as_mut().poll(context) {
            // Work that takes more and more is stopped where it next gives way.
            Poll::Pending => match crate::cancel::check_room() {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            },
            done => done,
        });
        match futures::future::select(notified, work).await {
            futures::future::Either::Left(_) => Err(self.check().expect_err("woken by a cancel")),
            futures::future::Either::Right((result, _)) => result,
        }
    }
}

/// 53200 where the work under way has taken more than there is, by the allocator's count.
pub(crate) fn check_room() -> Result<()> {
    match room() {
        0.. => Ok(()),
        beyond => Err(no_memory(format!("The statement holds {} bytes more than are left for it.", -beyond))),
    }
}

/// What a session is told that is ended from outside.
fn terminated() -> EngineError {
    EngineError::new("57P01", "terminating connection due to administrator command")
}

/// Cancels what a session runs, from another task, or ends the session.
#[derive(Clone, Default)]
pub struct Canceller {
    running: Arc<Mutex<Running>>,
    terminated: Arc<watch::Sender<bool>>,
}

#[derive(Default)]
struct Running {
    token: Option<Arc<CancelToken>>,
    /// When it is cancelled.
    deadline: Option<Nanos>,
    /// The statement timeout of the session, which a task watches over.
    watched: Option<Duration>,
}

impl Canceller {
    /// Does nothing while nothing runs.
    pub fn cancel(&self) {
        if let Some(token) = &self.running.lock().token {
            token.cancel(Reason::User);
        }
    }

    /// Ends the session: cancels what it runs, and tells who serves it.
    pub(crate) fn terminate(&self) {
        self.terminated.send_replace(true);
        if let Some(token) = &self.running.lock().token {
            token.cancel(Reason::Terminated);
        }
    }

    pub fn is_terminated(&self) -> bool {
        *self.terminated.borrow()
    }

    /// Done once the session is to end.
    pub fn terminated(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut terminated = self.terminated.subscribe();
        async move {
            if terminated.wait_for(|terminated| *terminated).await.is_err() {
                // There is no session any more.
                std::future::pending::<()>().await;
            }
        }
    }

    /// A statement begins; it may take that long.
    pub(crate) fn begin(&self, engine: &Database, timeout: Option<Duration>) -> Arc<CancelToken> {
        let env = engine.env();
        let token = Arc::new(CancelToken::default());
        let mut running = self.running.lock();
        running.token = Some(token.clone());
        // Whoever terminates after this look finds the token.
        if self.is_terminated() {
            token.cancel(Reason::Terminated);
        }
        running.deadline = timeout.map(|timeout| Nanos(env.now().0 + timeout.as_nanos() as u64));
        if running.watched != timeout {
            running.watched = timeout;
            if let Some(timeout) = timeout {
                engine.spawn("statement timeout", watch_over(env.clone(), Arc::downgrade(&self.running), timeout));
            }
        }
        token
    }

    /// A statement goes on that others may have followed (a portal that was suspended).
    pub(crate) fn resume(&self, token: &Arc<CancelToken>) {
        let mut running = self.running.lock();
        if !running.token.as_ref().is_some_and(|current| Arc::ptr_eq(current, token)) {
            running.token = Some(token.clone());
        }
    }

    /// It ended; another may have begun meanwhile.
    pub(crate) fn end(&self, token: &Arc<CancelToken>) {
        let mut running = self.running.lock();
        if running.token.as_ref().is_some_and(|current| Arc::ptr_eq(current, token)) {
            running.token = None;
            running.deadline = None;
        }
    }
}

/// Cancels a session's statements that take longer than `timeout`; ends with the session, and when another timeout is
/// set. One task for all statements: one that begins while it sleeps has a later deadline than its waking.
async fn watch_over(env: Env, running: Weak<Mutex<Running>>, timeout: Duration) {
    assert!(!timeout.is_zero(), "a timeout of 0 is none");
    loop {
        let wait = {
            let Some(running) = running.upgrade() else { return };
            let mut running = running.lock();
            if running.watched != Some(timeout) {
                return;
            }
            let now = env.now();
            match (running.deadline, &running.token) {
                (Some(deadline), Some(token)) if deadline <= now => {
                    token.cancel(Reason::Timeout);
                    running.deadline = None;
                    timeout
                }
                (Some(deadline), Some(_)) => Duration::from_nanos(deadline.0 - now.0),
                _ => timeout,
            }
        };
        env.sleep(wait.min(WATCH_MAX)).await;
    }
}
