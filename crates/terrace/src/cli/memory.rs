//! What is freed goes back to the kernel.
//!
//! The allocator keeps freed memory for a while and gives it back when one of its threads, by and by, next runs short.
//! A server's threads are many and mostly idle, so what a burst of work took would stay for minutes. A thread of its
//! own gives it back a moment later.

use std::time::Duration;

/// How long freed memory is kept at most; what is used again at once stays.
const KEPT: Duration = Duration::from_millis(250);

// SAFETY: mimalloc's own declaration; the library is linked in with the allocator, and the function may be called from
// any thread at any time.
unsafe extern "C" {
    safe fn mi_collect(force: bool);
}

/// For as long as the program runs. Where there is no thread to be had for it, memory goes back when it does.
pub(crate) fn give_back() {
    let work = || {
        loop {
            std::thread::park_timeout(KEPT);
            mi_collect(true);
        }
    };
    if let Err(error) = std::thread::Builder::new().name("memory".into()).spawn(work) {
        tracing::debug!(%error, "no thread gives freed memory back");
    }
}
