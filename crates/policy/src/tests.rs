use crate::{Class, Clock, Frame, Lru, Lru2, Replacement};
use std::collections::BTreeSet;

/// Plays a page-reference string against a policy of `frames` frames; returns the hits.
fn play(policy: &mut dyn Replacement, frames: usize, references: &[(u64, Class)]) -> usize {
    let mut at: Vec<Option<u64>> = vec![None; frames];
    let mut hits = 0;
    for &(page, class) in references {
        if let Some(frame) = at.iter().position(|p| *p == Some(page)) {
            policy.hit(frame as Frame, class);
            hits += 1;
            continue;
        }
        let frame = at.iter().position(Option::is_none).unwrap_or_else(|| {
            let victim = policy.victim().expect("a full pool has a victim");
            policy.remove(victim);
            victim as usize
        });
        at[frame] = Some(page);
        policy.admit(frame as Frame, page, class);
        assert_eq!(policy.len(), at.iter().flatten().count());
    }
    hits
}

fn policies(frames: usize) -> Vec<(&'static str, Box<dyn Replacement>)> {
    vec![
        ("lru", Box::new(Lru::new(frames))),
        ("clock", Box::new(Clock::new(frames))),
        ("lru2", Box::new(Lru2::new(frames))),
    ]
}

/// Hot pages used in turn with a long scan between.
fn hot_and_scan(hot: u64, scan: u64, scan_class: Class) -> Vec<(u64, Class)> {
    let mut references = Vec::new();
    for round in 0..50 {
        references.extend((0..hot).chain(0..hot).map(|p| (p, Class::Random)));
        references.extend((0..scan).map(|i| (1000 + round * scan + i, scan_class)));
    }
    references
}

#[test]
fn a_marked_scan_does_not_flush_hot_pages() {
    for (name, mut policy) in policies(32) {
        let hits = play(policy.as_mut(), 32, &hot_and_scan(12, 100, Class::Sequential));
        let plain_lru_hits = 50 * 12;
        // CLOCK has no memory beyond one bit: it only has to be no worse than plain LRU.
        let least = if name == "clock" { plain_lru_hits } else { 49 * 24 };
        assert!(hits >= least, "{name}: {hits} hits");
    }
}

#[test]
fn vetoed_frames_come_last() {
    for (name, mut policy) in policies(8) {
        for frame in 0..8 {
            policy.admit(frame, frame as u64, Class::Random);
        }
        for frame in [1, 5, 6] {
            policy.hit(frame, Class::Random);
        }
        let mut seen = BTreeSet::new();
        while seen.len() < 8 {
            let victim = policy.victim().expect("eight frames are held");
            assert!(seen.insert(victim), "{name}: frame {victim} proposed again before all others");
            policy.veto(victim);
        }
    }
}

#[test]
fn removed_frames_are_never_victims() {
    for (name, mut policy) in policies(8) {
        for frame in 0..8 {
            policy.admit(frame, frame as u64, Class::Random);
        }
        for frame in 0..7 {
            policy.remove(frame);
        }
        assert_eq!(policy.victim(), Some(7), "{name}");
        policy.remove(7);
        assert_eq!(policy.victim(), None, "{name}");
        assert!(policy.is_empty());
    }
}

/// LRU-2 against its definition, computed from the whole history of each page (no correlated period at this size).
#[test]
fn lru2_is_its_definition() {
    let frames = 8;
    let mut policy = Lru2::new(frames);
    let mut held: Vec<Option<u64>> = vec![None; frames];
    let mut uses: Vec<Vec<u64>> = vec![Vec::new(); 24];
    let mut x = 12345u64;
    for now in 1..2000u64 {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let page = ((x >> 33) % 24).min((x >> 40) % 24);
        if let Some(frame) = held.iter().position(|p| *p == Some(page)) {
            policy.hit(frame as Frame, Class::Random);
        } else {
            let frame = held.iter().position(Option::is_none).unwrap_or_else(|| {
                let victim = policy.victim().expect("full");
                let key = |p: u64| {
                    (uses[p as usize].iter().rev().nth(1).copied().unwrap_or(0), uses[p as usize].last().copied())
                };
                let page = held[victim as usize].expect("held");
                // History older than what is retained may be forgotten: the victim is never *better* than the
                // definition's.
                let best = held.iter().flatten().map(|&p| key(p)).min().expect("held");
                assert!(key(page) == best || key(page).0 > 0, "evicted {page} with {:?}, best was {best:?}", key(page));
                policy.remove(victim);
                victim as usize
            });
            held[frame] = Some(page);
            policy.admit(frame as Frame, page, Class::Random);
        }
        uses[page as usize].push(now);
    }
}
