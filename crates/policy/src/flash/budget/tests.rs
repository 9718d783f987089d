use super::*;

const HOUR: u64 = 3_600_000_000_000;
const PAGE: u64 = 8192;

/// Writes all it may, every `step` nanoseconds; returns what was written in each hour.
fn greedy(budget: &mut Budget, hours: usize, step: u64) -> Vec<u64> {
    let mut written = vec![0; hours];
    for now in (0..hours as u64 * HOUR).step_by(step as usize) {
        while budget.allows(now, PAGE) {
            budget.spend(now, PAGE);
            written[(now / HOUR) as usize] += PAGE;
        }
    }
    written
}

#[test]
fn no_day_sees_more_than_its_bytes() {
    let a_day = 25 << 30;
    let written = greedy(&mut Budget::new(a_day, 0), 72, HOUR / 60);
    for (begin, day) in written.windows(24).enumerate() {
        let sum: u64 = day.iter().sum();
        assert!(sum <= a_day, "the day from hour {begin} on: {sum} bytes");
        assert!(sum >= a_day / 100 * 95, "the day from hour {begin} on: {sum} bytes, there was room for more");
    }
    assert!(written[0] > written[1], "a rested bucket gives a burst: {written:?}");
}

#[test]
fn what_was_overdrawn_is_waited_for() {
    let mut budget = Budget::new(24 << 20, 0);
    budget.spend(0, 10 << 20);
    assert!(budget.left(0) < 0.0 && !budget.allows(HOUR, PAGE));
    assert!(budget.allows(12 * HOUR, PAGE), "{} bytes", budget.left(12 * HOUR));
    assert!(budget.left(12 * HOUR) <= budget.left(11 * HOUR), "time does not go back");
}

#[test]
fn a_budget_of_nothing_allows_nothing() {
    assert!(!Budget::new(0, 0).allows(1000 * HOUR, 1));
}
