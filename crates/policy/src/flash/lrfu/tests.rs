use super::*;

/// The victim is the clean frame with the smallest sum of 2^-(age of a use in half-lives), summed use by use.
#[test]
fn the_victim_is_wanted_least() {
    const FRAMES: usize = 24;
    let mut order = FlashLrfu::new(FRAMES);
    let mut uses: Vec<Option<(Vec<u64>, bool)>> = vec![None; FRAMES];
    let (mut random, mut now) = (12345u64, 0);
    for step in 0..20_000u64 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let (at, what) = ((random >> 33) as usize % FRAMES, (random >> 50) % 16);
        let frame = at as Frame;
        match (&mut uses[at], what) {
            (held @ None, _) => {
                now += 1;
                order.admit(frame, step, what > 3); // A page not seen before.
                *held = Some((vec![now], what > 3));
            }
            (Some((_, clean @ false)), 0..4) => {
                order.cleaned(frame);
                *clean = true;
            }
            (held @ Some(_), 15) => {
                order.remove(frame, 1 << 40 | step);
                *held = None;
            }
            (Some((times, _)), _) => {
                now += 1;
                order.hit(frame, Class::Random);
                times.push(now);
            }
        }
        let life = (HALF_LIFE * FRAMES as u64) as f64;
        let value = |times: &[u64]| times.iter().map(|&t| (-((now - t) as f64) / life).exp2()).sum::<f64>();
        let clean = uses.iter().flatten().filter(|(_, clean)| *clean);
        let least = clean.map(|(times, _)| value(times)).min_by(f64::total_cmp);
        let ours = order.victim().map(|f| value(&uses[f as usize].as_ref().expect("it is held").0));
        let near = least.zip(ours).is_none_or(|(least, ours)| ours <= least * 1.0001);
        assert!(near && least.is_some() == ours.is_some(), "step {step}: {ours:?}, least {least:?}");
    }
}

/// Keeps the order of what was wanted when time and scores move down.
#[test]
fn time_starts_over() {
    let mut order = FlashLrfu::new(4);
    (0..3).for_each(|frame| order.admit(frame, u64::from(frame), true));
    for _ in 0..FULL * HALF_LIFE * 8 {
        order.missed(77, Class::Random);
        assert!(order.time >> TIME_PLACES < FULL);
    }
    let soon = order.remembered(77).expect("it is wanted all the time");
    assert!(soon > order.once() && soon < order.once() + (8 << PLACES), "64 uses in a half-life");
    (0..2).for_each(|frame| order.hit(frame, Class::Random));
    order.hit(1, Class::Random);
    assert!(order.nodes[2].score < order.nodes[0].score && order.nodes[0].score < order.nodes[1].score);
    assert_eq!(order.victim(), Some(2));
}

/// What 100 frames see of a skewed history: a page wanted often comes in though memory kept it away for long, one
/// wanted once does not.
#[test]
fn pages_wanted_once_do_not_push_out_others() {
    let mut order = FlashLrfu::new(100);
    for frame in 0..100 {
        order.admit(frame, u64::from(frame), true);
        order.hit(frame, Class::Random);
        order.hit(frame, Class::Random);
    }
    order.missed(1000, Class::Random);
    assert!(!order.admits(1000, false) && order.admits(1000, true));
    for once in 2000..2050 {
        order.missed(once, Class::Random);
    }
    (0..3).for_each(|_| order.missed(1000, Class::Random));
    assert!(order.admits(1000, false), "{:?} is remembered of it", order.remembered(1000));
    let gone = order.victim().expect("all are clean");
    let score = order.nodes[gone as usize].score;
    order.remove(gone, u64::from(gone));
    order.admit(gone, 1000, true);
    let kept = order.remembered(u64::from(gone)).expect("history is kept");
    assert!(score - kept < 1 << COARSE, "{kept} of {score}");
    assert_eq!(order.remembered(1000), None, "its frame knows");
}
