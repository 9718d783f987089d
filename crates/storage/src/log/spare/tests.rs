use super::*;

const ROOM: u64 = 4 * LARGE as u64;

fn held(spares: &Spares) -> Vec<usize> {
    spares.0.lock().iter().flatten().map(|buf| buf.len()).collect()
}

#[test]
fn what_was_read_is_read_into_again() {
    let spares = Spares::new();
    let first = Lent::new(spares.take(2 * LARGE), spares.clone(), ROOM);
    let address = first.as_ptr();
    drop(first);
    assert_eq!(spares.take(LARGE).len(), LARGE);
    let again = spares.take(2 * LARGE);
    assert_eq!(again.as_ptr(), address);
    assert!(held(&spares).is_empty());
}

#[test]
fn no_more_than_a_segment_is_kept_and_none_once_the_log_is_started() {
    let spares = Spares::new();
    let taken: Vec<IoBuf> = [LARGE, 3 * LARGE, LARGE, LARGE / 2].map(|len| spares.take(len)).into();
    taken.into_iter().for_each(|buf| spares.keep(buf, ROOM));
    assert_eq!(held(&spares), [LARGE, 3 * LARGE]);
    let late = Lent::new(spares.take(LARGE), spares.clone(), ROOM);
    spares.end();
    drop(late);
    assert!(held(&spares).is_empty());
}
