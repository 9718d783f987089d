//! A panic while a query is planned or read fails that statement (XX000), not its session.
//!
//! Only reading is caught: what has been begun is dropped and the transaction is rolled back, as after any other error.
//! A panic while pages are changed goes through.
use futures::FutureExt;
use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use terrace_engine::{EngineError, Result};

pub(crate) async fn caught<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| Err(error_of(&*panic)))
}

pub(crate) fn caught_now<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(error_of(&*panic)))
}

fn error_of(panic: &(dyn Any + Send)) -> EngineError {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let message = format!("the statement met a defect in the server: {}", text.unwrap_or("a panic"));
    tracing::error!("{message}");
    EngineError::new("XX000", message)
}
