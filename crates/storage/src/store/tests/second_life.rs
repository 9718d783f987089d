//! A process that dies after a sync failed, another that begins on what can be read, and then the power goes: what the
//! second one believed and built upon is there.

use super::*;

/// What goes wrong with a sync.
fn faults() -> [Fault; 2] {
    [Fault::Fail(terrace_device::ErrorKind::Medium("sync".into())), Fault::DropCache]
}

struct Lives {
    sim: Sim,
    recorder: Arc<Recorder>,
    devices: Vec<Arc<FaultDevice>>,
    model: Model,
    /// States that the first life has acknowledged, and whether its fault struck.
    acked: usize,
    failed: bool,
}

/// The first life: works until a sync of `device` fails, and dies.
fn first(seed: u64, device: usize, fault: Fault, keep: bool) -> Lives {
    let (sim, recorder, devices, st, model) = created(seed, keep);
    let rule = Rule {
        operation: Operation::Sync,
        purpose: None,
        skip: seed / 2 % if device == 0 { 3 } else { 9 },
        times: 1,
        fault,
    };
    devices[device].inject(rule);
    let (model, failed) = sim.run({
        let recorder = recorder.clone();
        async move {
            let model = work(st, recorder, model, 80).await;
            let failed = model.states.len() < 81;
            (model, failed)
        }
    });
    sim.crash();
    let acked = model.acked.last().map_or(0, |(_, n)| *n);
    Recorder::process_died(devices.iter().map(|d| &**d), (seed % 2 == 1).then_some(seed));
    Lives { sim, recorder, devices, model, acked, failed }
}

/// The second life: opens, shows what there is, does a little more and has it acknowledged.
fn second(lives: &Lives, seed: u64) -> Model {
    let (st, _) = open(&lives.sim, &lives.devices).expect("the process begins anew");
    let (mut model, acked) = (lives.model.clone(), lives.acked);
    lives.sim.run(async move {
        check(&st, &mut model, acked).await;
        for i in 0..1 + seed % 4 {
            let lsn = step(&st, &mut model, seed.wrapping_mul(77) + i, 200).await.expect("works");
            st.log().flush_to(lsn).await.expect("flushes");
        }
        if seed.is_multiple_of(3) {
            st.checkpoint().await.expect("writes home");
        }
        model
    })
}

pub(super) fn lives(device: usize) {
    let mut failures = 0;
    for seed in 0..24 {
        for fault in faults() {
            let lives = first(seed, device, fault.clone(), false);
            failures += u64::from(lives.failed);
            let model = second(&lives, seed);
            lives.recorder.power_off();
            lives.sim.crash();
            for choice in [Choice::None, Choice::Random(seed), Choice::OnlyLast] {
                let (_, devices) = restart(&lives.recorder, choice, false);
                let what = format!("seed {seed}, {fault:?}, {choice:?}");
                let (st, _) = open(&lives.sim, &devices).unwrap_or_else(|e| panic!("{what}: {e}"));
                let (mut model, last) = (model.clone(), model.states.len() - 1);
                lives.sim.run(async move { check(&st, &mut model, last).await });
                lives.sim.crash();
            }
        }
    }
    assert!(failures > 20, "the sync failed in {failures} runs only");
}

#[test]
fn s1_a_failed_log_sync_and_a_second_life() {
    lives(1);
}

#[test]
fn s1_a_failed_double_write_sync_and_a_second_life() {
    lives(2);
}

#[test]
fn s1_a_failed_data_sync_and_a_second_life() {
    lives(3);
}

#[test]
fn s1_a_failed_control_sync_and_a_second_life() {
    lives(0);
}

/// Where no double-write area has copies of what was being written.
#[test]
pub(super) fn s1_a_failed_data_sync_where_pages_are_written_at_once() {
    with(&ATOMIC, 4096, || lives(3));
}

/// Pages that go home while the second life begins, for memory holds few, do not overtake the log's end that it
/// believed.
#[test]
pub(super) fn s1_pages_do_not_overtake_what_a_second_life_believed() {
    with(&RESTART, Restart::LazyVerification, || {
        with(&FRAMES, 16, || {
            let mut home = 0;
            for seed in 0..16 {
                let lives = first(seed, 1, faults()[0].clone(), true);
                let begun = lives.recorder.events();
                let (st, report) = open(&lives.sim, &lives.devices).expect("the process begins anew");
                home += report.pages_redone;
                drop(st);
                lives.sim.crash();
                let mut cursor = lives.recorder.history().expect("kept").cursor();
                while cursor.advance() {
                    if (cursor.position() as u64) < begun {
                        continue;
                    }
                    let (_, devices) = from_images(cursor.contents(Choice::None));
                    let what = format!("seed {seed}, event {} of the opening", cursor.position() as u64 - begun);
                    let (st, _) = open(&lives.sim, &devices).unwrap_or_else(|e| panic!("{what}: {e}"));
                    let (mut model, last) = (lives.model.clone(), lives.acked);
                    lives.sim.run(async move { check(&st, &mut model, last).await });
                    lives.sim.crash();
                }
            }
            assert!(home > 100, "{home} changes were repeated");
        })
    });
}

/// The power goes at any moment of the second life, its opening included.
#[test]
fn s1_the_power_goes_in_the_second_life() {
    for seed in 0..10 {
        let device = [1, 3, 1, 2, 0][seed as usize % 5];
        let lives = first(seed, device, faults()[seed as usize / 5].clone(), true);
        let begun = lives.recorder.events();
        let (st, _) = open(&lives.sim, &lives.devices).expect("the process begins anew");
        let (mut after, acked) = (lives.model.clone(), lives.acked);
        after.acked.clear();
        let after = lives.sim.run({
            let recorder = lives.recorder.clone();
            async move {
                check(&st, &mut after, acked).await;
                after.acked.push((u64::MAX, after.states.len() - 1));
                work(st, recorder, after, 12).await
            }
        });
        lives.sim.crash();
        let history = lives.recorder.history().expect("kept");
        let mut cursor = history.cursor();
        while cursor.advance() {
            let at = cursor.position() as u64;
            if at < begun || !at.is_multiple_of(3) {
                continue;
            }
            // What the second life acknowledged includes all that it believed.
            let acknowledged = after.acked.iter().filter(|(events, _)| *events <= at).map(|(_, n)| *n).max();
            let (model, acked) = match acknowledged {
                Some(acked) => (&after, acked),
                // States beyond what it found may still be what a crash leaves: they were written, and not read again.
                None => (&lives.model, lives.acked),
            };
            let mut model = model.clone();
            if acknowledged.is_none() && after.states.len() > model.states.len() {
                model.states = after.states.clone();
            }
            let choice = [Choice::None, Choice::Random(seed ^ at), Choice::OnlyLast][at as usize / 3 % 3];
            let (_, devices) = from_images(cursor.contents(choice));
            let what = format!("seed {seed}, event {at} of {}, {choice:?}", history.len());
            let (st, _) = open(&lives.sim, &devices).unwrap_or_else(|e| panic!("{what}: {e}"));
            let state = lives.sim.run(async move {
                let state = read_state(&st, &model.pages).await.expect("every page is readable");
                (model.states.iter().rposition(|s| *s == state), state)
            });
            let survived = state.0.or_else(|| after.states.iter().rposition(|s| *s == state.1));
            assert!(survived.is_some_and(|n| n >= acked), "{what}: {acked} were acknowledged, {survived:?} survived");
            lives.sim.crash();
        }
    }
}
