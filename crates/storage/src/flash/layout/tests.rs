use super::*;
use crate::types::DATA;

const DATABASE: u128 = 77 << 64 | 5;

fn page(no: u32) -> PageId {
    PageId::new(DATA, no)
}

#[test]
fn nothing_overlaps() {
    assert_eq!((ENTRIES, FRAMES), (251, 4016));
    for page_size in [4096, 8192, 32768] {
        let mut places: Vec<(u64, u64)> = (0..3 * FRAMES).map(|n| (frame_at(n, page_size), page_size as u64)).collect();
        places.extend((0..3 * SECTORS as u64).map(|n| (sector_at(n, page_size), SECTOR as u64)));
        let ring = chunks(3 * SECTORS as u64) * JOURNAL as u64;
        places.extend((0..ring).map(|n| (journal_at(n, ring, page_size), SECTOR as u64)));
        assert_eq!(journal_at(7 * ring + 5, ring, page_size), journal_at(5, ring, page_size));
        places.sort_unstable();
        assert_eq!(places[0].0, PAGES_AT);
        assert!(places.windows(2).all(|two| two[0].0 + two[0].1 == two[1].0), "pages of {page_size}");
        let (at, length) = places[places.len() - 1];
        assert_eq!(end(3 * FRAMES, 3 * SECTORS as u64, page_size), at + length);
    }
    let (two, journal) = (sector_at(16, 4096), ((SECTORS + JOURNAL) * SECTOR) as u64);
    assert_eq!(end(1, 17, 4096), two + journal, "more sectors than the frames' chunks have");
}

#[test]
fn an_inventory_comes_back_and_damage_is_noticed() {
    let mut frames = vec![None; ENTRIES];
    (frames[0], frames[250]) = (Some(Entry::of(page(7), Lsn(1 << 40))), Some(Entry::of(page(u32::MAX), Lsn(9))));
    frames[9] = Some(Entry { base: true, ..Entry::of(page(u32::MAX), Lsn(8)) });
    let inventory =
        Inventory { life: 3, since: Lsn(88), part: 2, parts: 16, index: 5, series: 8, journal: 1 << 33, frames };
    let sector = inventory.encode(DATABASE);
    assert_eq!(Inventory::decode(&sector, DATABASE), Some(inventory.clone()));
    let astray = Inventory { part: 16, ..inventory };
    assert_eq!(Inventory::decode(&astray.encode(DATABASE), DATABASE), None, "there is no such partition");
    assert_eq!(Inventory::decode(&sector, DATABASE + 1), None);
    for at in (0..SECTOR).step_by(97) {
        let mut other = IoBuf::padded(&sector);
        other[at] ^= 4;
        assert_eq!(Inventory::decode(&other, DATABASE), None, "byte {at}");
    }
    assert_eq!(Inventory::decode(&IoBuf::zeroed(SECTOR), DATABASE), None);
}

#[test]
fn a_journal_comes_back_and_damage_is_noticed() {
    let entry = |n: usize| {
        let entry = Entry { base: n.is_multiple_of(3), ..Entry::of(page(n as u32), Lsn(9 + n as u64)) };
        (FrameId { part: n as u32 % 16, frame: 7 * n as u32 }, entry)
    };
    for count in [0, 1, JOURNALED] {
        let entries = (0..count).map(entry).collect();
        let journal = Journal { life: 3, since: Lsn(88), number: 1 << 40, ring: 64, parts: 16, entries };
        let sector = journal.encode(DATABASE);
        assert_eq!(Journal::decode(&sector, DATABASE), Some(journal));
        assert_eq!((Journal::decode(&sector, DATABASE + 1), Inventory::decode(&sector, DATABASE)), (None, None));
        for at in (0..SECTOR).step_by(97) {
            let mut other = IoBuf::padded(&sector);
            other[at] ^= 4;
            assert_eq!(Journal::decode(&other, DATABASE), None, "byte {at}");
        }
    }
}

#[test]
fn a_superblock_comes_back() {
    let ancestors: Vec<_> = (0..40).map(|n| (n, Lsn(1000 - n))).collect();
    let all = Superblock { sequence: 4, life: 9, ancestors: ancestors.clone(), parts: 6 };
    let few = Superblock { ancestors: ancestors[..3].to_vec(), ..all.clone() };
    let sector = few.encode(DATABASE);
    assert_eq!(Superblock::decode(&sector, DATABASE), Some(few));
    assert_eq!(Superblock::decode(&sector, DATABASE + 1), None);
    let kept = Superblock::decode(&all.encode(DATABASE), DATABASE).expect("it is sound");
    assert_eq!(kept.ancestors, ancestors[..ANCESTORS], "the last ones");
    let mut other = IoBuf::padded(&sector);
    other[500] ^= 1;
    assert_eq!(Superblock::decode(&other, DATABASE), None);
}

#[test]
fn a_stamp_comes_back() {
    let stamp = Stamp { life: 3, series: 9, holds: Lsn(1 << 40), in_log: true };
    let sector = stamp.encode(DATABASE);
    assert_eq!((Stamp::decode(&sector, DATABASE), Stamp::decode(&sector, DATABASE + 1)), (Some(stamp), None));
    let mut other = IoBuf::padded(&sector);
    other[45] ^= 1;
    assert_eq!(Stamp::decode(&other, DATABASE), None);
    assert!(!Superblock::SLOTS.contains(&Stamp::AT) && Stamp::AT + SECTOR as u64 <= PAGES_AT);
}
