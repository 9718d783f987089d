use super::*;

fn records() -> Vec<Record> {
    let page = |no| PageId::new(DATA, no);
    let first = FrameId { part: 15, frame: 1 << 30 };
    vec![
        Record::Anew { parts: 16 },
        Record::Hold { first, frames: vec![None, Some((page(7), Lsn(1 << 50))), Some((page(u32::MAX), Lsn(9)))] },
        Record::Hold { first: FrameId { part: 0, frame: 3 }, frames: vec![None] },
    ]
}

#[test]
fn records_come_back_and_damage_is_noticed() {
    let mut event = vec![TAG];
    records().iter().for_each(|record| record.encode(&mut event));
    assert_eq!(decode(&event), Some(records()));
    assert_eq!(decode(&event[..event.len() - 1]), None, "cut short");
    assert_eq!(decode(&[2, 0, 0]), None, "a commit");
    assert_eq!(decode(&[]), None);
    event[1] = 9;
    assert_eq!(decode(&event), None, "an unknown kind");
}

#[test]
fn the_last_record_of_a_frame_counts() {
    let mut map = Map { parts: 2, frames: vec![vec![None; 4]; 2], other: false };
    let held = |no| Some((PageId::new(DATA, no), Lsn(u64::from(no))));
    let hold = |part, frame, frames: &[Holds]| Record::Hold { first: FrameId { part, frame }, frames: frames.to_vec() };
    map.apply(hold(1, 0, &[held(1), None, held(3), held(4), held(5)])); // One more than there are.
    map.apply(hold(1, 2, &[None]));
    map.apply(hold(0, 1, &[held(9)]));
    map.apply(hold(7, 0, &[held(9)]));
    assert_eq!(map.frames, [[None, held(9), None, None], [held(1), None, None, held(4)]]);
    map.apply(Record::Anew { parts: 2 });
    assert_eq!((map.frames.concat(), map.other), (vec![None; 8], false));
    map.apply(Record::Anew { parts: 1 });
    assert!(map.other, "what follows is of another shape");
}
