use super::*;
use crate::yield_now;
use std::alloc::System;
use std::pin::pin;

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting(System);

const MIB: usize = 1 << 20;

/// Polls until it is done: nothing here waits for anything.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        if let std::task::Poll::Ready(done) = work.as_mut().poll(&mut context) {
            return done;
        }
    }
}

#[test]
fn what_a_poll_allocates_counts_until_it_is_freed() {
    let limit = Limit::new(Some(64 * MIB));
    let shared = limit.clone();
    block_on(Meter::new(limit.clone()).over(pin!(async move {
        let first = vec![0u8; 10 * MIB];
        yield_now().await;
        assert!(shared.taken() >= 9 * MIB as u64 && shared.taken() < 10 * MIB as u64, "but for what is free");
        let left = room();
        assert!((54 * MIB as i64..=55 * MIB as i64).contains(&left), "{left}");
        drop(first);
        assert!(room() >= 64 * MIB as i64, "at once");
        yield_now().await;
        assert_eq!(shared.taken(), 0);
        let mut grown = Vec::with_capacity(MIB);
        grown.resize(20 * MIB, 1u8);
        yield_now().await;
        assert!(shared.taken() >= 19 * MIB as u64);
        std::mem::forget(grown);
    })));
    assert_eq!(limit.taken(), 0, "the meter is gone");
}

#[test]
fn what_is_handed_over_no_longer_counts() {
    let limit = Limit::new(Some(64 * MIB));
    let shared = limit.clone();
    block_on(Meter::new(limit).over(pin!(async move {
        let (given, bytes) = measured(|| vec![0u8; 40 * MIB]);
        assert_eq!(bytes, 40 * MIB as i64);
        yield_now().await;
        assert!(shared.taken() >= 38 * MIB as u64, "so far it is the work's own");
        handed_over(bytes);
        std::thread::scope(|threads| drop(threads.spawn(move || drop(given))));
        yield_now().await;
        assert_eq!(shared.taken(), 0);
    })));
}

#[test]
fn what_others_freed_counts_until_the_work_is_settled() {
    let limit = Limit::new(Some(64 * MIB));
    let shared = limit.clone();
    block_on(Meter::new(limit).over(pin!(async move {
        let handed_over = vec![0u8; 40 * MIB];
        std::thread::scope(|threads| drop(threads.spawn(move || drop(handed_over))));
        yield_now().await;
        assert!(shared.taken() >= 38 * MIB as u64, "nothing tells whose it was");
        settled();
        yield_now().await;
        assert_eq!(shared.taken(), 0);
        let kept = vec![0u8; 10 * MIB];
        yield_now().await;
        assert!(shared.taken() >= 8 * MIB as u64, "it counts again");
        drop(kept);
        yield_now().await;
        assert_eq!(shared.taken(), 0);
    })));
}

#[test]
fn small_work_has_room_beside_large_work() {
    let limit = Limit::new(Some(4 * MIB));
    let mut large = pin!(Meter::new(limit.clone()).over(Box::pin(async {
        let _kept = vec![0u8; 32 * MIB];
        assert!(room() < 0, "it has taken too much");
        std::future::pending::<()>().await
    })));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(large.as_mut().poll(&mut context).is_pending());
    let left = block_on(Meter::new(limit).over(Box::pin(async { room() })));
    assert!(left > FREE / 2 && left <= FREE, "{left}");
}

#[test]
fn without_a_meter_there_is_room_without_end() {
    let _kept = vec![0u8; 32 * MIB];
    assert!(room() > i64::MAX / 4);
    let endless = block_on(Meter::new(Limit::new(None)).over(Box::pin(async { room() })));
    assert!(endless > i64::MAX / 4);
}
