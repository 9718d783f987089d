use super::*;

#[test]
fn rot_is_borne_while_it_is_rare() {
    let mut rot = Rot::default();
    assert!((1..BAD_IN_A_ROW).all(|_| rot.note(false).is_none()));
    assert!(rot.note(false).is_some(), "nothing but bad frames");
    let mut rot = Rot::default();
    let mut seen = 0;
    while rot.note(false).is_none() {
        seen += 1;
        assert!((0..GOOD_FOR_BAD).all(|_| rot.note(true).is_none()));
    }
    assert_eq!(seen, BAD_FRAMES - 1, "one of seventeen: no more than so many in all");
    let mut rot = Rot::default();
    let half = |rot: &mut Rot| rot.note(false).or_else(|| rot.note(true));
    assert!((0..100).any(|_| half(&mut rot).is_some()), "every second one");
}

#[test]
fn the_first_is_said_and_the_rest_are_counted() {
    let complaints = Complaints::default();
    let second = |n: u64| Nanos(n * 1_000_000_000);
    assert_eq!(complaints.note(Trouble::Write, second(1)), Some(0));
    assert_eq!(complaints.note(Trouble::Read, second(1)), Some(0), "another kind is said too");
    for _ in 0..1000 {
        assert_eq!(complaints.note(Trouble::Write, second(30)), None);
    }
    assert_eq!(complaints.note(Trouble::Write, second(61)), Some(1000));
    assert_eq!(complaints.note(Trouble::Write, second(62)), None);
}
