//! An opening after much log: of the part that is settled it reads only the segments' indexes, and repeats a page's
//! changes when the page is read.

use super::*;

/// Nothing goes home by itself, and the log may grow long.
fn long_log() -> StorageConfig {
    let never = Duration::from_secs(3600);
    StorageConfig {
        redo_bound: 4 << 20,
        log_retention: 4 << 20,
        writer_interval: never,
        checkpoint_interval: never,
        ..config()
    }
}

/// A life of much log, at whose end the power goes while the log is written; how many mini-transactions were
/// acknowledged.
fn life(seed: u64) -> (Sim, Arc<Recorder>, Model, usize) {
    let sim = Sim::new(seed, 2);
    let env = sim.env();
    let (recorder, devices) = blank(false);
    let devices = set(&devices);
    let (model, acked) = sim.run(async move {
        let st = Store::create(env.clone(), devices, long_log()).await.expect("creates");
        let mut model = Model::default();
        add_pages(&st, &mut model).await.expect("adds pages");
        let mut acked = 0;
        for i in 0..1000 {
            let lsn = step(&st, &mut model, env.random_u64(), 500).await.expect("works");
            if i < 800 && i % 20 == 0 {
                st.log().flush_to(lsn).await.expect("flushes");
                acked = model.states.len() - 1;
            }
        }
        env.sleep(Duration::from_micros(env.random_u64() % 200)).await;
        (model, acked)
    });
    recorder.power_off();
    sim.crash();
    (sim, recorder, model, acked)
}

#[test]
pub(super) fn the_end_of_a_long_log_is_read_and_no_more() {
    let mut waited = 0;
    for seed in 0..12 {
        let (sim, recorder, model, acked) = life(seed);
        for choice in [Choice::None, Choice::Random(seed), Choice::Random(seed + 100), Choice::OnlyLast] {
            let (_, devices) = restart(&recorder, choice, false);
            let (env, devices, mut model) = (sim.env(), set(&devices), model.clone());
            let opened = async move { Store::open(env, devices, long_log()).await };
            let (st, report) = sim.run(opened).unwrap_or_else(|e| panic!("seed {seed}, {choice:?}: {e}"));
            let whole = report.redo_to.0 - report.redo_from.0;
            assert!(whole < 8 * (64 << 10), "seed {seed}: {whole} bytes of batches were read");
            assert!(report.lacking > 0, "pages lack changes");
            waited += report.pages_waiting;
            sim.run(async move {
                check(&st, &mut model, acked).await;
                // The database goes on, and closes with everything at home.
                for i in 0..30 {
                    step(&st, &mut model, i * 77, 500).await.expect("works");
                }
                st.close().await.expect("closes");
            });
            sim.crash();
        }
    }
    assert!(waited > 100, "{waited} pages waited");
}
