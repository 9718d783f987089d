//! Random crashes: seed after seed, clients run until the power goes at a random event; what is left is recovered (in
//! some rounds crashing again and again while it recovers), verified, and worked on until the next crash.

use crate::faults::gremlin;
use crate::model::{Model, State};
use crate::verify::{go_on, recover, recover_with_crashes, run_clients, set_up, settle, verify};
use crate::workload::Mix;
use crate::world::World;
use crate::{Replay, seeds};
use terrace_device::Image;
use terrace_device::fault::Choice;
use terrace_storage::config::Safeguards;

/// Crashes per seed.
const ROUNDS: u64 = 3;

pub(crate) fn run(seed: u64) -> Result<(), String> {
    let mut state = State::new();
    let mut images: Option<Vec<Image>> = None;
    for round in 0..ROUNDS {
        let at = |e: String| format!("round {round}: {e}");
        let round_seed = seed.wrapping_mul(ROUNDS).wrapping_add(round);
        let (world, db) = match images.take() {
            None => {
                let world = World::new(round_seed, None, false);
                let db = world.create().map_err(|e| at(format!("create failed: {e}")))?;
                (world, db)
            }
            Some(images) => {
                let times = round_seed % 3;
                let (world, db, is) =
                    recover_with_crashes(round_seed, images, std::slice::from_ref(&state), times).map_err(at)?;
                state = is;
                (world, db)
            }
        };
        let (random, model) = (world.sim.env().random_u64(), Model::new(world.recorder.clone(), &state));
        if round == 0 {
            set_up(&world, &db, &model);
        }
        let faults = random.is_multiple_of(3);
        let (ddl, long) = ((random >> 8) as u32 % 12, (random >> 16) as u32 % 10);
        let mix = Mix { transactions: 60, ddl, long, faults, ..Mix::default() };
        // Most crash in the middle; some after the last transaction.
        world.recorder.power_off_at(world.recorder.events() + 20 + (random >> 24) % 2500);
        if faults {
            gremlin(&world, random >> 32);
        }
        run_clients(&world, &db, &model, 1 + (random >> 40) as usize % 4, mix, || false);
        let (recorder, events) = (world.recorder.clone(), world.recorder.events());
        if std::env::var_os("TERRACE_SEED").is_some() {
            let ((commits, writes), stats) = (model.counts(), db.stats());
            println!("round {round}: {events} events, {commits} commits, {writes} writes, {stats:?}");
            println!("{:?}", db.store().pool().stats());
        }
        if !recorder.is_off() && !faults {
            // The power may go any time.
            let sound = settle(&world, &db).and_then(|()| verify(&world, &db, &[model.state_now()]));
            if !recorder.is_off() {
                sound.map_err(at)?;
            }
        }
        drop(db);
        let left = world.crash([Choice::Random(random), Choice::None, Choice::OnlyLast][random as usize / 7 % 3]);
        let (_, db, is) =
            recover(round_seed, left.clone(), &model.states_at(events), Safeguards::default()).map_err(at)?;
        drop(db);
        // The next round begins with what the crash left, not with what this look at it made of it.
        state = is;
        images = Some(left);
    }
    let images = images.expect("a round has been");
    let (world, db, is) = recover(seed, images, &[state], Safeguards::default())?;
    go_on(&world, &db, &is).map(|_| ())
}

#[test]
fn random_crashes() {
    for seed in seeds() {
        let _replay = Replay(seed);
        run(seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
}

/// One seed, one run: the same events, the same bytes on every device, the same answers.
#[test]
fn a_run_repeats_to_the_byte() {
    let once = |seed| {
        let world = World::new(seed, None, false);
        let db = world.create().expect("creation on sound devices");
        let model = Model::new(world.recorder.clone(), &State::new());
        set_up(&world, &db, &model);
        run_clients(&world, &db, &model, 3, Mix::default(), || false);
        settle(&world, &db).unwrap();
        let state = model.state_now();
        verify(&world, &db, std::slice::from_ref(&state)).unwrap();
        drop(db);
        let (events, counts, now) = (world.recorder.events(), model.counts(), world.sim.env().now());
        (events, counts, now, state, world.crash(Choice::All))
    };
    for seed in 100..103 {
        let _replay = Replay(seed);
        let (a, b) = (once(seed), once(seed));
        assert_eq!((a.0, a.1, a.2), (b.0, b.1, b.2), "seed {seed}: events, transactions and writes, end of time");
        assert!(a.3 == b.3 && a.4 == b.4, "seed {seed}: contents");
        assert_ne!(a.0, once(seed + 50).0, "another seed is another run");
    }
}
