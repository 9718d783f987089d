use super::*;

const SEGMENT: u64 = 2 * LARGE as u64;

fn held(spares: &Spares) -> Vec<usize> {
    spares.kept.lock().iter().flatten().map(|buf| buf.len()).collect()
}

#[test]
fn what_was_read_is_read_into_again() {
    let spares = Spares::new(SEGMENT);
    let first = Lent::new(spares.take(2 * LARGE), spares.clone());
    let address = first.as_ptr();
    drop(first);
    assert_eq!(spares.take(LARGE).len(), LARGE);
    let again = spares.take(2 * LARGE);
    assert_eq!(again.as_ptr(), address);
    assert!(held(&spares).is_empty());
}

#[test]
fn no_more_than_a_walk_needs_is_kept_and_none_once_the_log_is_started() {
    let spares = Spares::new(SEGMENT);
    let taken: Vec<IoBuf> = [LARGE, 3 * LARGE, LARGE, LARGE / 2, LARGE].map(|len| spares.take(len)).into();
    taken.into_iter().for_each(|buf| spares.keep(buf));
    assert_eq!(held(&spares), [3 * LARGE, LARGE, LARGE], "the first has given way, a small one is the allocator's");
    let late = Lent::new(spares.take(LARGE), spares.clone());
    assert_eq!(held(&spares), [3 * LARGE, LARGE]);
    spares.end();
    drop(late);
    assert!(held(&spares).is_empty());
}

/// What indexes were read into stayed beside the two segments that redo reads, and beside all that it gathers.
#[test]
fn only_buffers_of_one_length_stay_where_no_others_are_read() {
    let spares = Spares::new(8 * SEGMENT);
    let taken: Vec<IoBuf> = [2 * LARGE, LARGE, 3 * LARGE, 2 * LARGE].map(|len| spares.take(len)).into();
    taken.into_iter().for_each(|buf| spares.keep(buf));
    spares.keep_only(2 * LARGE);
    assert_eq!(held(&spares), [2 * LARGE, 2 * LARGE]);
    spares.end();
    spares.keep_only(2 * LARGE);
    assert!(held(&spares).is_empty());
}
