use crate::{Nanos, Sim, yield_now};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn time_passes_only_by_timers() {
    let sim = Sim::new(1, 1);
    let env = sim.env();
    let slept = sim.run(async move {
        env.sleep(Duration::from_secs(3600)).await;
        env.now()
    });
    assert_eq!(slept, Nanos(3_600_000_000_000));
}

/// The order in which tasks ran, with the random numbers they drew.
fn history(seed: u64) -> Vec<(usize, u64, u64)> {
    let sim = Sim::new(seed, 2);
    let env = sim.env();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let out = seen.clone();
    sim.run(async move {
        let (done, mut ended) = tokio::sync::mpsc::channel(16);
        for task in 0..8 {
            let (env2, seen, done) = (env.clone(), seen.clone(), done.clone());
            env.spawn("worker", async move {
                for _ in 0..20 {
                    let r = env2.random_u64();
                    seen.lock().push((task, env2.now().0, r));
                    match r % 3 {
                        0 => yield_now().await,
                        1 => env2.sleep(Duration::from_nanos(r % 1000)).await,
                        _ => env2.cpu(Duration::from_nanos(r % 5000)).await,
                    }
                }
                done.send(()).await.expect("the receiver outlives the workers");
            });
        }
        drop(done);
        while ended.recv().await.is_some() {}
    });
    std::mem::take(&mut *out.lock())
}

#[test]
fn one_seed_one_run() {
    assert_eq!(history(7), history(7));
    assert_ne!(history(7), history(8));
}

#[test]
fn cores_are_shared() {
    let elapsed = |cores| {
        let sim = Sim::new(3, cores);
        let env = sim.env();
        sim.run(async move {
            let (done, mut ended) = tokio::sync::mpsc::channel(4);
            for _ in 0..4 {
                let (env2, done) = (env.clone(), done.clone());
                env.spawn("burner", async move {
                    env2.cpu(Duration::from_millis(10)).await;
                    done.send(()).await.expect("the receiver outlives the burners");
                });
            }
            drop(done);
            while ended.recv().await.is_some() {}
            env.now().0 / 1_000_000
        })
    };
    assert_eq!(elapsed(1), 40);
    assert_eq!(elapsed(2), 20);
    assert_eq!(elapsed(4), 10);
}

#[test]
fn a_deadlock_is_reported_with_names() {
    let sim = Sim::new(1, 1);
    let env = sim.env();
    let stuck = sim.try_run(async move {
        env.spawn("sleeper", std::future::pending());
        std::future::pending::<()>().await
    });
    assert_eq!(stuck.expect_err("nothing can go on").waiting, vec!["main", "sleeper"]);
}

#[test]
fn a_crash_drops_tasks_and_their_timers() {
    struct Flag(Arc<Mutex<u32>>);
    impl Drop for Flag {
        fn drop(&mut self) {
            *self.0.lock() += 1;
        }
    }
    let sim = Sim::new(1, 1);
    let env = sim.env();
    let dropped = Arc::new(Mutex::new(0));
    let flag = Flag(dropped.clone());
    sim.run({
        let env = env.clone();
        async move {
            let env2 = env.clone();
            env.spawn("held", async move {
                let _flag = flag;
                env2.sleep(Duration::from_secs(5)).await;
                panic!("a crashed task must not run");
            });
            env.sleep(Duration::from_secs(1)).await;
        }
    });
    assert_eq!(*dropped.lock(), 0);
    sim.crash();
    assert_eq!(*dropped.lock(), 1);
    sim.run(async move { env.sleep(Duration::from_secs(60)).await });
}
