//! More is dirty than the disk can take in a second: writers go as fast as it does, and none stands still until all of
//! it is home (checkpoint.rs, invariant 4).

use super::*;

const MANY: usize = 400;
/// Bytes a second that the disk writes: two milliseconds a page, however many lie beside each other.
const RATE: u64 = 2 << 20;
/// What it takes to write all pages.
const ALL: Duration = Duration::from_nanos(MANY as u64 * 4096 * 1_000_000_000 / RATE);

/// Pages one after the other, a change each; the longest that one of them took.
async fn longest_change(st: &Store, pages: &[u32], rounds: u8) -> Duration {
    let env = st.env().clone();
    let mut longest = 0;
    for round in 0..rounds {
        for &no in pages {
            let began = env.now().0;
            let pin = st.pool().fetch(PageId::new(DATA, no), Access::Random).await.expect("is in memory");
            let permit = st.reserve(2000).await.expect("waits for room");
            let lsn = {
                let mut mtr = st.mtr(permit);
                let at = mtr.latch(&pin);
                mtr.apply(at, PageOp::Put { slot: 1, cell: &[round; 1000] });
                mtr.commit()
            };
            st.log().flush_to(lsn).await.expect("flushes");
            longest = longest.max(env.now().0 - began);
        }
    }
    Duration::from_nanos(longest)
}

#[test]
fn writers_do_not_wait_for_all_that_is_dirty() {
    with(&ATOMIC, 4096, || with(&FRAMES, 2 * MANY, a_backlog));
}

fn a_backlog() {
    let sim = Sim::new(41, 2);
    let recorder = Recorder::new(false);
    let slow =
        latency::Model { read: Cost::new(10, 0), write: Cost::new(0, RATE), sync: Cost::new(10, 0), parallelism: 1 };
    let slow = Arc::new(Latency::new(slow, Arc::new(Clock(sim.env()))));
    let device = |name: &&str| {
        let guarantees = Guarantees { atomic_write: ATOMIC.get(), capacity: 64 << 20 };
        let device = recorder.device(name, guarantees, Image::new());
        Arc::new(if *name == "data" { device.with_latency(slow.clone()) } else { device })
    };
    let devices: Vec<_> = NAMES.iter().map(device).collect();
    let (env, devices) = (sim.env(), set(&devices));
    sim.run(async move {
        let st = Store::create(env, devices, config()).await.expect("creates");
        let mut model = Model::default();
        while model.pages.len() < MANY {
            add_pages(&st, &mut model).await.expect("adds pages");
        }
        let began = st.log().redo_lsn();
        let longest = longest_change(&st, &model.pages, 6).await;
        let bound = config().redo_bound;
        assert!(st.log().redo_lsn().0 - began.0 > 2 * bound, "the log's bound was not met often enough to tell");
        assert!(longest < ALL / 16, "one change waited {longest:?}, all pages are written in {ALL:?}");
        st.close().await.expect("closes");
    });
}
