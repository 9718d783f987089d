//! Sectors that cannot be read, and files that are damaged or missing: repaired, done without, or refused by what is
//! really wrong.

use super::*;
use terrace_device::{Device, SECTOR};

/// A store at work that died, everything durable: its devices, and what must be in it.
fn killed(seed: u64, steps: usize) -> (Sim, Vec<Image>, Model) {
    let (sim, recorder, devices, st, model) = created(seed, false);
    let model = sim.run(async move {
        let model = work(st.clone(), recorder, model, steps).await;
        st.log().flush_to(st.log().end()).await.expect("flushes");
        model
    });
    sim.crash();
    (sim, devices.iter().map(|d| d.visible()).collect(), model)
}

fn closed(seed: u64) -> (Sim, Vec<Image>, Model) {
    let (sim, recorder, devices, st, model) = created(seed, false);
    let model = sim.run(async move {
        let model = work(st.clone(), recorder, model, 40).await;
        st.close().await.expect("closes");
        model
    });
    sim.crash();
    (sim, devices.iter().map(|d| d.visible()).collect(), model)
}

fn holds_all(sim: &Sim, st: Store, model: &Model) {
    let model = model.clone();
    sim.run(async move {
        let state = read_state(&st, &model.pages).await.expect("every page is readable");
        assert_eq!(Some(&state), model.states.last());
    });
}

fn refusal(sim: &Sim, images: Vec<Image>) -> String {
    match open(sim, &from_images(images).1) {
        Ok(_) => panic!("it was opened"),
        Err(e) => e.to_string(),
    }
}

/// Where the log's last batch ends on the device: offset of the segment's slot, and of the end in it.
fn log_end(sim: &Sim, images: &[Image], lsn: Lsn) -> (u64, u64) {
    let (_, devices) = from_images(images.to_vec());
    let size = config().segment_size;
    let number = (lsn.0 - 1) / size;
    let device: DeviceRef = devices[1].clone();
    let state = sim.run({
        let control: DeviceRef = devices[0].clone();
        async move { Control::read(&control).await.expect("reads") }
    });
    let found =
        sim.run(async move { crate::log::inspect::segments(&device, size, state.database).await.expect("reads") });
    let segment = found.iter().rfind(|s| s.number == number).expect("the segment is there");
    (crate::log::inspect::slot_at(segment.slot, size), lsn.0 - number * size)
}

#[test]
fn s4_a_page_that_cannot_be_read_is_made_again_at_run_time() {
    let (sim, images, model) = closed(21);
    let (_, devices) = from_images(images);
    let (st, _) = open(&sim, &devices).expect("opens");
    for page in [model.pages[2], model.pages[9]] {
        devices[3].spoil(PAGES_AT + u64::from(page) * 4096, 4096);
    }
    let store = st.clone();
    holds_all(&sim, st, &model);
    assert_eq!(store.pool().stats().repaired, 2);
    sim.run(async move { store.close().await.expect("closes") });
    // Writing them home has healed the sectors.
    let (st, report) = open(&sim, &devices).expect("opens");
    assert!(report.clean_shutdown);
    holds_all(&sim, st.clone(), &model);
    assert_eq!(st.pool().stats().repaired, 0);
}

#[test]
fn s4_a_page_that_cannot_be_read_is_named_where_the_log_does_not_reach_back() {
    let (sim, images, model) = {
        let (sim, recorder, devices, st, model) = created(22, false);
        let model = sim.run(async move {
            let mut model = work(st.clone(), recorder, model, 10).await;
            for i in 0..1500u64 {
                step(&st, &mut model, i % 2 * 256 + 3, 1200).await.expect("works");
            }
            st.close().await.expect("closes");
            model
        });
        sim.crash();
        (sim, devices.iter().map(|d| d.visible()).collect::<Vec<_>>(), model)
    };
    let (_, devices) = from_images(images);
    let (st, _) = open(&sim, &devices).expect("opens");
    let page = model.pages[0];
    devices[3].spoil(PAGES_AT + u64::from(page) * 4096, 4096);
    let error = sim.run(async move { st.pool().fetch(PageId::new(DATA, page), Access::Random).await.map(drop) });
    let text = error.expect_err("it cannot be read").to_string();
    assert!(
        text.contains(&format!("page 1:{page} of tablespace data is damaged: its sectors cannot be read")),
        "{text}"
    );
    assert!(text.contains("restore the database from a backup"), "{text}");
}

#[test]
fn s4_redo_meets_a_page_that_cannot_be_read() {
    let (sim, mut images, model) = killed(23, 60);
    for page in &model.pages {
        images[3].spoil(PAGES_AT + u64::from(*page) * 4096, 4096);
    }
    let devices = from_images(images.clone()).1;
    let (st, report) = open(&sim, &devices).expect("opens");
    assert!(report.pages_waiting > 0 && report.pages_rebuilt == 0, "{report:?}");
    holds_all(&sim, st, &model);
    with(&RESTART, Restart::LazyVerification, || {
        let (st, report) = open(&sim, &from_images(images).1).expect("opens");
        assert!(report.pages_rebuilt > 0, "{report:?}");
        holds_all(&sim, st, &model);
    });
}

/// A sector behind the log's end, and one of a slot whose segment is not needed, do not matter.
#[test]
fn s4_the_logs_stale_end_need_not_be_readable() {
    (20..28).for_each(stale_end);
}

fn stale_end(seed: u64) {
    let (sim, images, model) = killed(seed, 60);
    let (st, report) = open(&sim, &from_images(images.clone()).1).expect("opens");
    drop(st);
    sim.crash();
    let (slot, end) = log_end(&sim, &images, report.redo_to);
    let size = config().segment_size;
    let mut spoilt = images.clone();
    let stale = slot + end.next_multiple_of(SECTOR as u64);
    assert!(stale < slot + size, "the segment ends in the middle");
    // More of them are taken for a device that fails.
    spoilt[1].spoil(stale, (slot + size - stale).min(7 * SECTOR as u64));
    let (st, again) = open(&sim, &from_images(spoilt).1).expect("opens");
    assert_eq!(again.redo_to, report.redo_to);
    holds_all(&sim, st, &model);
}

/// Nothing but the batch itself says that it was durable: no later commit, no page at home, no control file.
#[test]
fn a_last_batch_that_cannot_be_read_is_not_taken_for_the_logs_end() {
    (20..36).for_each(last_batch);
}

fn last_batch(seed: u64) {
    let (sim, images, _) = killed(seed, 60);
    let (st, report) = open(&sim, &from_images(images.clone()).1).expect("opens");
    drop(st);
    sim.crash();
    let (slot, end) = log_end(&sim, &images, report.redo_to);
    let (images_before, mut spoilt) = (images.clone(), images);
    spoilt[1].spoil(slot + end - 1, 1);
    let text = refusal(&sim, spoilt.clone());
    assert!(text.contains("sectors that cannot be read"), "seed {seed}: {text}");
    // Nor is the end of a segment, where a batch begins the next one, and its header cannot be read.
    let first = SECTOR as u64;
    if (first..2 * first).contains(&end) {
        spoilt[1] = images_before[1].clone();
        spoilt[1].spoil(slot, 1);
        let text = refusal(&sim, spoilt);
        assert!(text.contains("sectors that cannot be read"), "seed {seed}: {text}");
    }
}

#[test]
fn s4_f9_damage_in_the_middle_of_the_log_is_named() {
    // A page at home that is newer than the damage proves that what followed was durable.
    let damaged = |spoil: bool| {
        let (sim, _, disks, st, mut model) = created(26, false);
        sim.run(async move {
            st.checkpoint().await.expect("writes home");
            for i in 0..40 {
                let lsn = step(&st, &mut model, i, 300).await.expect("works");
                st.log().flush_to(lsn).await.expect("flushes");
            }
            // A page changed before and after the damage goes home; the redo LSN stays where it was.
            let page = PageId::new(DATA, model.pages[0]);
            st.0.pool.write_page(page).await.expect("writes home");
            st.0.home.sync().await.expect("syncs");
        });
        sim.crash();
        let mut left: Vec<Image> = disks.iter().map(|d| d.visible()).collect();
        let state = {
            let control: DeviceRef = from_images(left.clone()).1[0].clone();
            sim.run(async move { Control::read(&control).await.expect("reads") })
        };
        let (slot, at) = log_end(&sim, &left, Lsn(state.redo_lsn.0 + 1500));
        match spoil {
            true => left[1].spoil(slot + at + SECTOR as u64, 1),
            false => left[1].flip(slot + at, 4),
        }
        refusal(&sim, left)
    };
    let text = damaged(false);
    assert!(text.contains("the log is damaged at") && text.contains("batches behind the damage check"), "{text}");
    let text = damaged(true);
    assert!(text.contains("sectors that cannot be read"), "{text}");
}

/// A file system that was full, or a copy that was cut, may leave the file with a piece of a sector where a slot would
/// begin.
#[test]
fn r1_a_log_that_ends_within_a_slots_first_sector_is_opened() {
    let (sim, images, model) = killed(30, 30);
    let (_, devices) = from_images(images);
    // It dies before it has logged anything: the next one looks for batches of its in all slots.
    drop(open(&sim, &devices).expect("opens"));
    sim.crash();
    let mut images: Vec<Image> = devices.iter().map(|d| d.visible()).collect();
    let size = config().segment_size;
    let slots = (images[1].size() - SECTOR as u64).div_ceil(size) as u32;
    images[1].grow(crate::log::inspect::slot_at(slots, size) + 100);
    let (st, _) = open(&sim, &from_images(images).1).expect("opens");
    holds_all(&sim, st, &model);
}

/// The log file is cut before the place where restart begins, up to which it was durable.
#[test]
fn a_log_that_is_cut_before_the_redo_lsn_is_refused() {
    let mut cut = 0;
    for seed in 20..28 {
        let (sim, mut images, _) = killed(seed, 60);
        let control: DeviceRef = from_images(images.clone()).1[0].clone();
        let redo = sim.run(async move { Control::read(&control).await.expect("reads") }).redo_lsn;
        let (slot, at) = log_end(&sim, &images, redo);
        let length = (slot + at / 2) / SECTOR as u64 * SECTOR as u64;
        if length <= slot {
            continue;
        }
        let mut bytes = vec![0; length as usize];
        images[1].read(0, &mut bytes);
        images[1] = Image::new();
        images[1].write(0, &bytes);
        let text = refusal(&sim, images);
        assert!(text.contains("the log file was cut"), "seed {seed}: {text}");
        cut += 1;
    }
    assert!(cut > 0, "the redo LSN was always near a segment's beginning");
}

/// A segment of a later opening says that the stream before it went on, whatever the pages say.
#[test]
fn f9_a_later_opening_proves_that_the_log_went_on() {
    let (sim, images, model) = killed(27, 30);
    let (_, devices) = from_images(images);
    let (st, report) = open(&sim, &devices).expect("opens");
    let images: Vec<Image> = sim.run({
        let devices = devices.clone();
        let mut model = model.clone();
        async move {
            let lsn = step(&st, &mut model, 1, 100).await.expect("works");
            st.log().flush_to(lsn).await.expect("flushes");
            devices.iter().map(|d| d.visible()).collect()
        }
    });
    sim.crash();
    let (slot, end) = log_end(&sim, &images, report.redo_to);
    let mut flipped = images;
    flipped[1].flip(slot + end - 20, 1);
    let text = refusal(&sim, flipped);
    assert!(text.contains("the log is damaged at") && text.contains("follows, which began at"), "{text}");
}

#[test]
fn f9_settings_that_do_not_fit_are_refused() {
    let (sim, images, _) = closed(28);
    let (env, devices) = (sim.env(), set(&from_images(images).1));
    let small = StorageConfig { redo_bound: 32 << 10, ..config() };
    match sim.run(async move { Store::open(env, devices, small).await.map(drop) }) {
        Err(StorageError::Config(problem)) => {
            assert!(problem.contains("log.redo_bound of 32768 bytes") && problem.contains("65536"), "{problem}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn f9_a_double_write_file_is_made_anew() {
    for clean in [true, false] {
        let (sim, images, model) = if clean { closed(29) } else { killed(29, 40) };
        let size = images[2].size();
        let damages: [fn(&mut Image); 6] = [
            |image| *image = Image::new(),
            |image| image.flip(20, 1),
            |image| image.write(0, &[0; SECTOR]),
            |image| image.write(0, &[0x5a; SECTOR]),
            |image| image.spoil(0, 1),
            // What says which copies there are.
            |image| image.spoil(SECTOR as u64, 1),
        ];
        for (i, damage) in damages.into_iter().enumerate() {
            let mut images = images.clone();
            damage(&mut images[2]);
            let (_, devices) = from_images(images);
            let (st, report) = open(&sim, &devices).unwrap_or_else(|e| panic!("clean {clean}, damage {i}: {e}"));
            assert_eq!(report.clean_shutdown, clean);
            assert!(devices[2].size() >= size.min(SECTOR as u64 * 2), "there is room for the areas");
            holds_all(&sim, st, &model);
            sim.crash();
        }
        // Something else's file is left alone.
        let mut images = images.clone();
        images[2] = Image::new();
        images[2].write(0, &[0x5a; 4 * SECTOR]);
        let text = refusal(&sim, images);
        assert!(text.starts_with("double-write: it is not a terrace file") && text.contains("move it away"), "{text}");
    }
}
