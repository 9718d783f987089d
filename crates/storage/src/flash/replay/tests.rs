use super::*;

/// Many pages are made again at once; that the log cannot be read just then is one failure, not one for each.
#[test]
fn patience_is_not_used_up_in_one_round() {
    let mut stuck = Stuck::default();
    let at = |round: u64| Nanos(round * 50_000_000);
    for round in 0..u64::from(FAILED_ROUNDS_MAX) - 1 {
        assert!((0..1000).all(|i| !stuck.failed(Nanos(at(round).0 + i))), "round {round}");
    }
    assert!(stuck.failed(at(u64::from(FAILED_ROUNDS_MAX))));
}
