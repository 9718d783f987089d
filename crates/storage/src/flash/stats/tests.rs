use super::*;

#[test]
fn a_saving_is_measured() {
    let mut prices = Prices::default();
    let mut told = Vec::new();
    for _ in 0..200 {
        told.extend(prices.note(Class::Random, Tier::Disk, 9_000_000));
        told.extend(prices.note(Class::Random, Tier::Flash, 90_000));
        told.extend(prices.note(Class::Sequential, Tier::Disk, 40_000));
    }
    assert_eq!(told, [[8910, 0]; 2], "every 256 reads; a scan's page is not read faster from flash");
    assert_eq!(Prices::default().note(Class::Random, Tier::Flash, 1), None);
}

#[test]
fn a_rate_forgets() {
    let rate = Rate::default();
    let at = |seconds: u64| Nanos(seconds * 1_000_000_000);
    for second in 0..60 {
        rate.add(100, at(second));
    }
    let steady = rate.read(at(60));
    assert!((90.0..110.0).contains(&steady), "100 events a second were read as {steady}");
    assert!(rate.read(at(90)) < steady / 10.0, "half a minute of rest");
}
