use super::*;

const ROOM: u64 = 4 * LARGE as u64;

fn held(spares: &Spares) -> Vec<usize> {
    spares.kept.lock().iter().flatten().map(|buf| buf.len()).collect()
}

#[test]
fn what_was_read_is_read_into_again() {
    let spares = Spares::new(ROOM);
    let first = Lent::new(spares.take(2 * LARGE), spares.clone());
    let address = first.as_ptr();
    drop(first);
    assert_eq!(spares.take(LARGE).len(), LARGE);
    let again = spares.take(2 * LARGE);
    assert_eq!(again.as_ptr(), address);
    assert!(held(&spares).is_empty());
}

#[test]
fn no_more_than_a_segment_is_kept_and_none_once_the_log_is_started() {
    let spares = Spares::new(ROOM);
    let taken: Vec<IoBuf> = [LARGE, 3 * LARGE, LARGE, LARGE / 2].map(|len| spares.take(len)).into();
    taken.into_iter().for_each(|buf| spares.keep(buf));
    assert_eq!(held(&spares), [3 * LARGE, LARGE]);
    // A new one takes the place of what is kept.
    let late = Lent::new(spares.take(2 * LARGE), spares.clone());
    assert_eq!(held(&spares), [LARGE]);
    spares.end();
    drop(late);
    assert!(held(&spares).is_empty());
}
