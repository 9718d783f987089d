use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().expect("threads")
}

#[test]
fn a_thread_of_its_own_may_be_blocked() {
    let runtime = runtime();
    let env = Real::on(runtime.handle().clone());
    let (to_thread, from_worker) = mpsc::channel::<()>();
    let (to_test, from_thread) = oneshot::channel();
    let clock = env.clone();
    env.spawn_thread("apart", async move {
        from_worker.recv().expect("the only worker runs meanwhile");
        clock.sleep(Duration::from_millis(1)).await;
        let _ = to_test.send(std::thread::current().name().map(str::to_owned));
    });
    env.spawn("sender", async move { to_thread.send(()).expect("the thread waits") });
    assert_eq!(runtime.block_on(from_thread).expect("the thread answers").as_deref(), Some("apart"));
}

#[test]
fn a_thread_ends_with_the_runtime() {
    struct Told(mpsc::Sender<()>);
    impl Drop for Told {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let runtime = runtime();
    let env = Real::on(runtime.handle().clone());
    let (sender, dropped) = mpsc::channel();
    let begun = Arc::new(AtomicBool::new(false));
    let (told, at) = (Told(sender), begun.clone());
    let clock = env.clone();
    env.spawn_thread("apart", async move {
        let _told = told;
        at.store(true, Ordering::SeqCst);
        loop {
            clock.sleep(Duration::from_secs(3600)).await;
        }
    });
    while !begun.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    runtime.shutdown_background();
    dropped.recv().expect("dropped with the runtime");
}

#[test]
fn work_at_length_keeps_nobody_waiting() {
    let build =
        |threads: &mut tokio::runtime::Builder| threads.worker_threads(1).enable_time().build().expect("threads");
    let hands_over = build(tokio::runtime::Builder::new_multi_thread().on_thread_start(crate::hand_over_here));
    let env = Real::on(hands_over.handle().clone());
    let (to_worker, from_other) = mpsc::channel::<()>();
    let (done, answer) = oneshot::channel();
    let (long, other) = (env.clone(), env.clone());
    env.spawn("long", async move {
        other.spawn("other", async move { to_worker.send(()).expect("it is waited for") });
        let work = std::pin::pin!(async move { from_other.recv().expect("the other task runs meanwhile") });
        long.run_long(work).await;
        let _ = done.send(());
    });
    hands_over.block_on(answer).expect("it ends");
    // Elsewhere it is work like other work.
    let plain = Real::on(runtime().handle().clone());
    let alone = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    assert_eq!(alone.block_on(plain.run_long(std::future::ready(7))), 7);
}

/// Work that is asked to give way from time to time does, also at length: else nobody could cancel it.
#[test]
fn work_at_length_gives_way() {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    let runtime =
        threads.worker_threads(1).enable_time().on_thread_start(crate::hand_over_here).build().expect("threads");
    let env = Real::on(runtime.handle().clone());
    let (done, answer) = oneshot::channel();
    let long = env.clone();
    env.spawn("long", async move {
        let mut polls = 0;
        let mut work = std::pin::pin!(async {
            for _ in 0..10_000 {
                tokio::task::consume_budget().await;
            }
        });
        let counted = poll_fn(|cx| {
            polls += 1;
            work.as_mut().poll(cx)
        });
        long.run_long(std::pin::pin!(counted)).await;
        let _ = done.send(polls);
    });
    assert!(runtime.block_on(answer).expect("it ends") > 10);
}
