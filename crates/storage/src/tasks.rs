//! Background tasks under supervision. A task that panics leaves its work half done. Others would wait for it for ever,
//! or go on without it while the log, undo and memory fill.
//!
//! 1. Every task of storage and engine is started here ([`Log::spawn`]; above it `Store::spawn`).
//! 2. If a task panics, storage stops. The reason has the task's name and its message, and everybody who waits is woken
//!    to learn it. This happens before the panic reaches the executor, which ends the task.
//!
//! A server then starts itself again and recovers. The handles of an embedded database fail.
use crate::error::StorageError;
use crate::log::Log;
use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use terrace_env::Env;

impl Log {
    /// Runs a task in the background: invariant 2.
    pub(crate) fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.env().spawn(name, self.supervised(name, task));
    }

    /// The same on a thread of its own, which it may block.
    pub(crate) fn spawn_thread(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.env().spawn_thread(name, self.supervised(name, task));
    }

    fn supervised(
        &self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (env, log) = (self.env().clone(), self.weak());
        let panicked = move |said: String| {
            if let Some(log) = log.upgrade() {
                log.stop_all(StorageError::TaskPanicked { name, said });
            }
        };
        supervised(env, name, task, panicked)
    }
}

async fn supervised(env: Env, name: &'static str, task: impl Future<Output = ()>, panicked: impl FnOnce(String)) {
    let (mut task, mut panicked) = (pin!(task), Some(panicked));
    poll_fn(|cx| {
        // What it may have left half done is looked at by nobody: everything stops.
        let poll = AssertUnwindSafe(|| {
            assert!(!env.is_struck(name), "struck by a test");
            task.as_mut().poll(cx)
        });
        catch_unwind(poll).unwrap_or_else(|panic| {
            if let Some(panicked) = panicked.take() {
                panicked(said(&*panic));
            }
            resume_unwind(panic)
        })
    })
    .await;
}

/// A panic's message.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it did not say why".into())
}
