//! The clock that texts of times ask: what `now`, `today`, `tomorrow` and `yesterday` mean.
//!
//! 1. The engine has no clock. Whoever has one reads such texts within [`scope`]; elsewhere they are no times.
//! 2. What was read by the clock is of that moment. Who keeps a result is told by [`scope`] whether it was asked.
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;

thread_local! {
    /// Microseconds since 1970, UTC.
    static NOW: Cell<Option<i64>> = const { Cell::new(None) };
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

/// Puts what was before back.
struct Restore(Option<i64>, bool);

impl Drop for Restore {
    fn drop(&mut self) {
        NOW.set(self.0);
        // Whoever is around has asked, too.
        ASKED.set(ASKED.get() || self.1);
    }
}

/// Does `work` at a time, in microseconds since 1970. Answers whether a text has asked for it, too.
pub fn scope<T>(now: i64, work: impl FnOnce() -> T) -> (T, bool) {
    let _restore = Restore(NOW.replace(Some(now)), ASKED.replace(false));
    let done = work();
    (done, ASKED.get())
}

/// Whether a text that `work` reads asks for the time that there is around it.
pub fn watch<T>(work: impl FnOnce() -> T) -> (T, bool) {
    let _restore = Restore(NOW.get(), ASKED.replace(false));
    let done = work();
    (done, ASKED.get())
}

/// Runs a future to its end, each of its polls at that time. Answers whether a text has asked for it, too.
pub async fn over<F: Future + Unpin>(now: i64, mut work: F) -> (F::Output, bool) {
    let mut asked = false;
    let done = poll_fn(|context| {
        let (polled, was) = scope(now, || Pin::new(&mut work).poll(context));
        asked |= was;
        polled
    });
    let done = done.await;
    (done, asked)
}

/// The same, where nobody keeps the result.
pub async fn at<F: Future + Unpin>(now: i64, work: F) -> F::Output {
    over(now, work).await.0
}

/// The time, where there is a clock.
pub(super) fn now() -> Option<i64> {
    let now = NOW.get();
    ASKED.set(ASKED.get() || now.is_some());
    now
}
