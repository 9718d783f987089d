//! An opening after much log: of the part that is settled it reads only the segments' indexes, and repeats a page's
//! changes when the page is read.

use super::*;
use terrace_device::Purpose;

/// Events at the end of a life at which the power goes.
const LAST: u64 = 60;

/// Nothing goes home by itself, and the log may grow long.
fn long_log() -> StorageConfig {
    let never = Duration::from_secs(3600);
    StorageConfig {
        redo_bound: 8 << 20,
        log_retention: 8 << 20,
        writer_interval: never,
        checkpoint_interval: never,
        ..config()
    }
}

/// A life of much log, of which the last segments are not waited for.
fn life(seed: u64) -> (Sim, Arc<Recorder>, Model) {
    let sim = Sim::new(seed, 2);
    let env = sim.env();
    let (recorder, devices) = blank(true);
    let (devices, events) = (set(&devices), recorder.clone());
    let model = sim.run(async move {
        let st = Store::create(env.clone(), devices, long_log()).await.expect("creates");
        let mut model = Model::default();
        add_pages(&st, &mut model).await.expect("adds pages");
        for i in 0..1000 {
            let lsn = step(&st, &mut model, env.random_u64(), 500).await.expect("works");
            if i < 700 && i % 20 == 0 {
                st.log().flush_to(lsn).await.expect("flushes");
                model.acked.push((events.events(), model.states.len() - 1));
            }
        }
        model
    });
    sim.crash();
    (sim, recorder, model)
}

#[test]
pub(super) fn the_end_of_a_long_log_is_read_and_no_more() {
    let (mut openings, mut lacking) = (0, 0);
    for seed in 0..6 {
        let (sim, recorder, model) = life(seed);
        let history = recorder.history().expect("kept");
        let mut cursor = history.cursor();
        while cursor.advance() {
            let at = cursor.position() as u64;
            if at + LAST < history.len() as u64 || cursor.unsettled() < 2 {
                continue;
            }
            // Memory for all changes that are read, or for next to none: then pages are visited in several readings.
            let redo_memory = if seed % 2 == 0 { long_log().redo_memory } else { 16 << 10 };
            for choice in [Choice::Random(at), Choice::Random(at + 1000), Choice::Random(at + 2000)] {
                let (_, devices) = from_images(cursor.contents(choice));
                let (env, devices, mut model) = (sim.env(), set(&devices), model.clone());
                let what = format!("seed {seed}, event {at}, {choice:?}");
                let opened = sim
                    .run(async move { Store::open(env, devices, StorageConfig { redo_memory, ..long_log() }).await });
                let (st, report) = opened.unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(report.bytes < 8 * (64 << 10), "{what}: {} bytes of batches were read", report.bytes);
                (openings, lacking) = (openings + 1, lacking + report.lacking);
                let acked = model.acked.iter().rev().find(|(event, _)| *event <= at).map_or(0, |(_, n)| *n);
                sim.run(async move {
                    check(&st, &mut model, acked).await;
                    // The database goes on, and closes with everything at home.
                    for i in 0..20 {
                        step(&st, &mut model, i * 77, 500).await.expect("works");
                    }
                    st.close().await.expect("closes");
                });
                sim.crash();
            }
        }
    }
    assert!(openings > 50 && lacking > 10 * openings, "{lacking} pages lacked changes in {openings} openings");
}

fn log_reads(st: &Store) -> u64 {
    st.io().into_iter().filter(|usage| usage.purpose == Purpose::Log).map(|usage| usage.reads.count()).sum()
}

/// Where its changes are, the opening has learned from the indexes: they are not looked up again.
#[test]
fn a_page_is_made_with_reads_of_its_own_batches() {
    let sim = Sim::new(7, 2);
    let env = sim.env();
    let (recorder, devices) = blank(false);
    let first = set(&devices);
    let mut model = sim.run(async move {
        let st = Store::create(env.clone(), first, long_log()).await.expect("creates");
        let mut model = Model::default();
        add_pages(&st, &mut model).await.expect("adds pages");
        // Some changes of all pages, then so many of the first that theirs are settled long since.
        for i in 0..600 {
            let random = if i < 60 { env.random_u64() } else { 0 };
            let lsn = step(&st, &mut model, random, 1000).await.expect("works");
            st.log().flush_to(lsn).await.expect("flushes");
        }
        model
    });
    sim.crash();
    let (_, devices) = restart(&recorder, Choice::All, false);
    let (env, devices) = (sim.env(), set(&devices));
    let (st, report) = sim.run(async move { Store::open(env, devices, long_log()).await }).expect("opens");
    assert!(report.lacking >= PAGES as u64, "{} pages", report.lacking);
    let (reads, counters) = sim.run(async move {
        let before = log_reads(&st);
        let mut counters = Vec::new();
        for no in model.pages.iter().skip(1) {
            let pin = st.pool().fetch(PageId::new(DATA, *no), Access::Random).await.expect("is made");
            counters.push(counter(&pin.read()));
        }
        let reads = log_reads(&st) - before;
        check(&st, &mut model, 600).await;
        (reads, (counters, model.states.last().expect("the last")[1..].to_vec()))
    });
    assert_eq!(counters.0, counters.1);
    assert!((PAGES as u64 - 1..5 * PAGES as u64).contains(&reads), "{reads} reads of the log for {PAGES} pages");
}
