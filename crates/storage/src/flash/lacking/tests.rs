use super::*;

fn page(no: u32) -> PageId {
    PageId::new(DATA, no)
}

fn spans(from: u64, count: u64) -> impl Iterator<Item = BatchSpan> {
    (from..from + count).map(|at| (Lsn(at * 10), Lsn(at * 10 + 10)))
}

#[test]
fn places_are_kept_in_order_up_to_a_bound() {
    let mut lacking = Lacking::default();
    lacking.add(page(1), (Lsn(10), Lsn(30)), spans(1, 2), false, 100);
    lacking.add(page(1), (Lsn(70), Lsn(80)), spans(7, 1), false, 100);
    lacking.add(page(2), (Lsn(10), Lsn(20)), spans(1, 1), false, 100);
    let places = [(Lsn(10), Lsn(20)), (Lsn(20), Lsn(30)), (Lsn(70), Lsn(80))];
    assert_eq!(lacking.pages[&page(1)], Lack { since: Lsn(10), last: Lsn(80), places: Some(places.into()) });
    // More than one page may have; all from where it begins afresh.
    lacking.add(page(1), (Lsn(90), Lsn(400)), spans(9, EACH as u64), false, 100);
    assert_eq!((lacking.pages[&page(1)].last, &lacking.pages[&page(1)].places), (Lsn(400), &None));
    lacking.add(page(1), (Lsn(500), Lsn(510)), spans(50, 1), false, 100);
    assert_eq!(lacking.pages[&page(1)].places, None);
    lacking.add(page(1), (Lsn(600), Lsn(620)), spans(60, 2), true, 100);
    assert_eq!(lacking.pages[&page(1)].places, Some(spans(60, 2).collect()));
    assert_eq!((lacking.places, lacking.len()), (3, 2));
}

#[test]
fn memory_for_places_and_pages_is_bounded() {
    let mut lacking = Lacking::default();
    for no in 0..10 {
        lacking.add(page(no), (Lsn(0), Lsn(50)), spans(0, 5), false, 10);
    }
    assert!(!lacking.is_full());
    let with = lacking.pages.values().filter(|lack| lack.places.is_some()).count();
    assert_eq!((with, lacking.places), (4, 20), "a share of 2 for each of 10 pages is 20 places");
    lacking.add(page(10), (Lsn(0), Lsn(50)), spans(0, 0), false, 10);
    assert!(lacking.is_full() && lacking.len() == 10);
}
