use super::*;

#[test]
fn one_reader_is_told_apart_and_two_are_mixed_up() {
    let mut rule = DistanceRule::default();
    let scan = (1000..1100).map(|page| rule.classify(page)).filter(|c| *c == Class::Sequential).count();
    assert_eq!(scan, 99, "all but the first");
    assert_eq!(rule.classify(5000), Class::Random);
    assert_eq!(rule.classify(5064), Class::Sequential);
    assert_eq!(rule.classify(5129), Class::Random, "65 pages on");
    // A look-up elsewhere after each page of the scan: nothing is near what came before.
    let mixed = (0..100).filter(|i| {
        rule.classify(9_000_000 - 1000 * i);
        rule.classify(1000 + i) == Class::Sequential
    });
    assert_eq!(mixed.count(), 0);
}
