//! Redo meets pages that are damaged, or of which a write was lost; and pages that are redone on demand.

use super::*;
use futures::future::{Either, select};

#[test]
fn redo_rebuilds_a_page_that_rotted_before_it() {
    with(&RESTART, Restart::LazyVerification, a_page_rotted_before_redo);
    a_page_rotted_before_redo();
}

/// A store that was killed some steps after a checkpoint, all of them in the log.
fn killed_behind_a_checkpoint(seed: u64, steps: usize) -> (Sim, Arc<Recorder>, Vec<Arc<FaultDevice>>, Model) {
    let (sim, recorder, devices, st, model) = created(seed, false);
    let recording = recorder.clone();
    let model = sim.run(async move {
        let mut model = work(st.clone(), recording, model, 40).await;
        st.checkpoint().await.expect("writes home");
        for _ in 0..steps {
            let random = st.env().random_u64();
            step(&st, &mut model, random, 100).await.expect("works");
        }
        st.log().flush_to(st.log().end()).await.expect("flushes");
        model
    });
    sim.crash();
    (sim, recorder, devices, model)
}

fn a_page_rotted_before_redo() {
    let (sim, recorder, _, model) = killed_behind_a_checkpoint(7, 30);
    let (recorder, devices) = restart(&recorder, Choice::None, false);
    devices[3].flip(PAGES_AT + model.pages[5] as u64 * 4096 + 3000, 8);
    let (st, report) = open(&sim, &devices).expect("opens");
    let rebuilt = if RESTART.get() == Restart::Instant { 0 } else { 1 };
    assert!(report.batches > 0 && report.pages_rebuilt == rebuilt, "{report:?}");
    drop(recorder);
    sim.run(async move {
        let state = read_state(&st, &model.pages).await.expect("every page is readable");
        assert_eq!(Some(&state), model.states.last());
    });
}

/// A store whose disk is slow, so that pages wait long; the state that it should show, and its devices.
fn waiting_long(seed: u64) -> (Sim, Store, RecoveryReport, Model, Vec<Arc<FaultDevice>>) {
    let (sim, _, devices, model) = killed_behind_a_checkpoint(seed, 60);
    let recorder = Recorder::new(false);
    let cost = Cost::new(20_000_000, 0);
    let slow = latency::Model { read: cost, write: Cost::new(10, 0), sync: Cost::new(10, 0), parallelism: 1 };
    let slow = Arc::new(Latency::new(slow, Arc::new(Clock(sim.env()))));
    let device = |(i, name): (usize, &&str)| {
        let guarantees = Guarantees { atomic_write: ATOMIC.get(), capacity: 64 << 20 };
        let device = recorder.device(name, guarantees, devices[i].visible());
        Arc::new(if *name == "data" { device.with_latency(slow.clone()) } else { device })
    };
    let disks: Vec<_> = NAMES.iter().enumerate().map(device).collect();
    let (st, report) = open(&sim, &disks).expect("opens");
    assert!(report.pages_waiting > 10, "{report:?}");
    (sim, st, report, model, disks)
}

/// Everything else goes home, and the redo LSN is recorded. Then another crash.
#[test]
pub(super) fn the_redo_lsn_waits_for_pages_that_wait() {
    let (sim, st, report, model, disks) = waiting_long(31);
    let redo = sim.run(async move {
        st.0.pool.write_dirty(Lsn(u64::MAX), usize::MAX, Reason::Checkpoint).await.expect("writes");
        st.0.home.sync().await.expect("syncs");
        st.0.record_redo().await.expect("records");
        assert!(st.pages_waiting() > 5, "the disk is slow");
        st.log().redo_lsn()
    });
    assert_eq!(redo, report.redo_from);
    sim.crash();
    let (_, disks) = from_images(disks.iter().map(|d| d.visible()).collect());
    let (st, _) = open(&sim, &disks).expect("opens");
    sim.run(async move {
        let state = read_state(&st, &model.pages).await.expect("every page is readable");
        assert_eq!(Some(&state), model.states.last());
    });
}

/// Who makes a page anew may hold it until the redo LSN moves, which waits for the page: so it is read first.
#[test]
fn a_page_that_is_made_anew_does_not_stop_redo() {
    let (sim, st, _, model, _) = waiting_long(32);
    let ended = sim.run(async move {
        let page = PageId::new(DATA, *model.pages.last().expect("there are pages"));
        let _pin = st.pool().create(page).await.expect("there is room");
        let checkpoint = std::pin::pin!(st.checkpoint());
        let patience = std::pin::pin!(st.env().sleep(Duration::from_secs(60)));
        matches!(select(checkpoint, patience).await, Either::Left((Ok(()), _)))
    });
    assert!(ended, "the checkpoint waits for a page that nobody redoes");
}

#[test]
pub(super) fn a_lost_write_is_noticed_and_repaired_or_refused() {
    with(&RESTART, Restart::LazyVerification, a_write_was_lost);
    a_write_was_lost();
}

fn a_write_was_lost() {
    // With history in the log the page is rebuilt; once the log no longer reaches back, opening says which page it is.
    for (filler_steps, repaired) in [(10, true), (1500, false)] {
        let (sim, recorder, devices, st, model) = created(8, false);
        let (model, stale) = sim.run({
            let devices = devices.clone();
            async move {
                let mut model = work(st.clone(), recorder, model, filler_steps).await;
                st.checkpoint().await.expect("writes home");
                let stale = devices[3].visible();
                step(&st, &mut model, 0, 900).await.expect("works");
                st.checkpoint().await.expect("writes home");
                let lsn = step(&st, &mut model, 0, 900).await.expect("works");
                st.log().flush_to(lsn).await.expect("flushes");
                (model, stale)
            }
        });
        sim.crash();
        let mut images: Vec<Image> = devices.iter().map(|d| d.visible()).collect();
        let mut old = vec![0; 4096];
        let at = PAGES_AT + model.pages[0] as u64 * 4096;
        stale.read(at, &mut old);
        images[3].write(at, &old);
        let (_, devices) = from_images(images);
        let opened = open(&sim, &devices).and_then(|(st, report)| {
            // Redone on demand: it is noticed when the page is wanted, and storage stops in any case.
            let (waiting, page) = (st.clone(), PageId::new(DATA, model.pages[0]));
            let read = sim.run(async move { waiting.pool().fetch(page, Access::Random).await.map(drop) });
            let (waiting, failed) = (st.clone(), read.is_err());
            let ended = sim.run(async move { waiting.checkpoint().await });
            assert_eq!(ended.is_err(), failed, "{ended:?}");
            assert_eq!(st.failure().is_some(), failed);
            read.map(|()| (st, report))
        });
        match opened {
            Ok((st, _)) if repaired => sim.run(async move {
                let state = read_state(&st, &model.pages).await.expect("readable");
                assert_eq!(Some(&state), model.states.last());
            }),
            Err(StorageError::LostWrite { page, .. }) if !repaired => assert_eq!(page.no, model.pages[0]),
            Ok(_) => panic!("opened over a lost write"),
            Err(e) => panic!("{e}"),
        }
    }
}

/// The last writes of pages were lost, the log has not got their beginnings any more, and nobody needs them: they were
/// dropped. Redo meets them when they wait, and when it visits them because little is gathered at a time.
#[test]
fn lost_writes_of_dropped_pages_do_not_matter() {
    let (sim, recorder, devices, st, model) = created(8, false);
    let data = devices[3].clone();
    let (stale, pages) = sim.run(async move {
        let mut model = work(st.clone(), recorder, model, 1500).await;
        st.checkpoint().await.expect("writes home");
        let stale = data.visible();
        for i in 0..60 {
            step(&st, &mut model, i, 900).await.expect("works");
        }
        st.checkpoint().await.expect("writes home");
        for i in 0..150 {
            step(&st, &mut model, i * 77, 900).await.expect("works");
        }
        st.space(DATA).free_object(&st, OWNER).await.expect("frees");
        st.log().flush_to(st.log().end()).await.expect("flushes");
        (stale, model.pages)
    });
    sim.crash();
    let mut images: Vec<Image> = devices.iter().map(|d| d.visible()).collect();
    for page in pages {
        let (mut old, at) = (vec![0; 4096], PAGES_AT + u64::from(page) * 4096);
        stale.read(at, &mut old);
        images[3].write(at, &old);
    }
    for redo_memory in [16 << 10, config().redo_memory] {
        let (env, devices) = (sim.env(), set(&from_images(images.clone()).1));
        let opened = sim.run(async move {
            let (st, report) = Store::open(env, devices, StorageConfig { redo_memory, ..config() }).await?;
            st.checkpoint().await?;
            Ok::<_, StorageError>(report)
        });
        let report = opened.unwrap_or_else(|e| panic!("with {redo_memory} bytes: {e}"));
        assert!(report.lacking > 10, "{report:?}");
        sim.crash();
    }
}

/// With a full log the opening itself moves the redo LSN to the log's end: what it has not repaired by then nobody
/// would notice again.
#[test]
fn a_lost_write_is_repaired_before_a_full_log_forgets_it() {
    with(&RESTART, Restart::LazyVerification, a_write_was_lost_and_the_log_is_full);
    a_write_was_lost_and_the_log_is_full();
}

fn a_write_was_lost_and_the_log_is_full() {
    let capacity = 4096 + 7 * (64 << 10);
    let devices = |images: Vec<Image>| {
        let recorder = Recorder::new(false);
        let device = |(name, image): (&&str, Image)| {
            let capacity = if *name == "log" { capacity } else { 64 << 20 };
            Arc::new(recorder.device(name, Guarantees { atomic_write: 512, capacity }, image))
        };
        NAMES.iter().zip(images).map(device).collect::<Vec<_>>()
    };
    let sim = Sim::new(12, 2);
    let disks = devices(vec![Image::new(); 5]);
    let (env, devs, data) = (sim.env(), set(&disks), disks[3].clone());
    let (model, stale) = sim.run(async move {
        let st = Store::create(env, devs, config()).await.expect("creates");
        let mut model = Model::default();
        add_pages(&st, &mut model).await.expect("adds pages");
        st.checkpoint().await.expect("writes home");
        let stale = data.visible();
        step(&st, &mut model, 0, 900).await.expect("works");
        st.checkpoint().await.expect("writes home");
        // No time passes, so that the background writer rests: the log is kept from here on.
        while st.log().segments().len() < 5 {
            let random = st.env().random_u64();
            step(&st, &mut model, random, 1200).await.expect("works");
        }
        st.log().flush_to(st.log().end()).await.expect("flushes");
        (model, stale)
    });
    sim.crash();
    let mut images: Vec<Image> = disks.iter().map(|d| d.visible()).collect();
    let (mut old, at) = (vec![0; 4096], PAGES_AT + model.pages[0] as u64 * 4096);
    stale.read(at, &mut old);
    images[3].write(at, &old);
    let disks = devices(images);
    let (st, report) = open(&sim, &disks).expect("opens");
    let rebuilt = if RESTART.get() == Restart::Instant { 0 } else { 1 };
    assert!(report.pages_rebuilt == rebuilt, "{report:?}");
    assert_eq!(st.log().redo_lsn(), report.redo_to, "the log was full");
    drop(st);
    sim.crash();
    let disks = devices(disks.iter().map(|d| d.visible()).collect());
    let (st, _) = open(&sim, &disks).expect("opens");
    sim.run(async move {
        let state = read_state(&st, &model.pages).await.expect("readable");
        assert_eq!(Some(&state), model.states.last());
    });
}

/// The control file knows how far the log was durable: a log that ends before, for its file is older or its device has
/// lied, is refused before anybody reads a page.
#[test]
fn a_log_that_was_durable_further_on_is_refused() {
    let (sim, _, devices, _) = killed_behind_a_checkpoint(33, 20);
    let images: Vec<Image> = devices.iter().map(|d| d.visible()).collect();
    let (st, report) = open(&sim, &from_images(images.clone()).1).expect("opens");
    drop(st);
    sim.crash();
    let (_, devices) = from_images(images);
    let control: DeviceRef = devices[0].clone();
    sim.run(async move {
        let mut file = ControlFile::open(control).await.expect("opens");
        assert!(file.state.durable > Lsn(0) && file.state.durable <= report.redo_to, "{:?}", file.state);
        let state = Control { durable: Lsn(report.redo_to.0 + 1), ..file.state };
        file.write(state).await.expect("writes");
    });
    let refused = open(&sim, &devices).map(drop).expect_err("the log has lost its end").to_string();
    assert!(refused.contains("it was durable to") && refused.contains("the log file is older"), "{refused}");
}
