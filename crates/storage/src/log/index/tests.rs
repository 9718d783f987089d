use super::*;
use crate::types::SpaceId;

fn page(no: u32) -> PageId {
    PageId::new(SpaceId(1), no)
}

/// Where a batch begins and ends, and whether the page begins afresh in it.
type PlaceFacts = (u64, u64, bool);

/// More pages than a sector of the page table has; some of them with many places.
fn filled() -> (OpenIndex, Vec<(PageId, Vec<PlaceFacts>)>) {
    let (mut open, mut expected) = (OpenIndex::default(), Vec::new());
    for no in 0..700 {
        expected.push((page(no * 3), Vec::new()));
    }
    let mut at = 4096;
    for i in 0..4000u64 {
        let (of, length, afresh) = ((i * (i / 700 + 1) * 13 % 700) as usize, 40 + i % 90, i % 5 == 0);
        open.add(expected[of].0, at, at + length, afresh);
        expected[of].1.push((at, at + length, afresh));
        at += length;
    }
    expected.retain(|(_, places)| !places.is_empty());
    (open, expected)
}

fn told(places: &[Place]) -> Vec<PlaceFacts> {
    places.iter().map(|p| (p.start().into(), p.end().into(), p.begins_afresh())).collect()
}

#[test]
fn an_index_has_all_places_of_each_page_in_order() {
    let (open, expected) = filled();
    let base = Lsn(3 << 24);
    let index = open.close(base);
    assert!(index.entries().table_sectors() >= 2, "{:?}", index.entries());
    let mut bytes = vec![0; index.entries().bytes()];
    index.encode(7, &mut bytes);
    let read = SegmentIndex::decode(&bytes, index.entries(), 7, base).expect("an index");
    assert_eq!(read, index);
    let found: Vec<_> = read.pages().map(|(page, places)| (page, told(places))).collect();
    assert_eq!(found, expected);
    assert_eq!(read.places(page(1)), []);
    let (first, last) = (expected[5].1[0], *expected[5].1.last().expect("some"));
    let span = read.spans().find(|(page, ..)| *page == expected[5].0).expect("a page");
    assert_eq!((span.1, span.2), (Lsn(base.0 + first.0), Lsn(base.0 + last.1)));
}

#[test]
fn a_page_is_found_by_its_sector_and_places_alone() {
    let (open, expected) = filled();
    let index = open.close(Lsn(0));
    let mut bytes = vec![0; index.entries().bytes()];
    index.encode(7, &mut bytes);
    let places_at = index.entries().table_sectors() * SECTOR;
    let mut found = Vec::new();
    for sector in 0..index.entries().table_sectors() {
        let of = &bytes[sector * SECTOR..][..SECTOR];
        let count = index.entries().pages_in(sector);
        assert!(table_sector(of, 8, count).is_none(), "of another segment");
        let listed = table_sector(of, 7, count).expect("a sector of the page table");
        assert_eq!((listed[0].page, listed[0].first), index.fences()[sector]);
        found.extend(listed);
    }
    for (at, listed) in found.iter().enumerate() {
        let to = found.get(at + 1).map_or(index.entries().places, |next| next.first as usize);
        let of = &bytes[places_at + listed.first as usize * PLACE..places_at + to * PLACE];
        assert_eq!((listed.page, told(&places_of(listed, of).expect("its places"))), expected[at]);
        // Others are noticed, but for one in 65,536.
        let mut other = of.to_vec();
        other[3] ^= 1;
        assert!(places_of(listed, &other).is_none());
    }
}

#[test]
fn a_damaged_index_is_none() {
    let (open, _) = filled();
    let index = open.close(Lsn(0));
    let entries = index.entries();
    let mut bytes = vec![0; entries.bytes()];
    index.encode(7, &mut bytes);
    for at in (0..entries.table_sectors() * SECTOR).step_by(13) {
        bytes[at] ^= 0x10;
        assert!(SegmentIndex::decode(&bytes, entries, 7, Lsn(0)).is_none(), "byte {at}");
        bytes[at] ^= 0x10;
    }
    let more = Entries { places: entries.places + 1, ..entries };
    assert!(SegmentIndex::decode(&bytes, more, 7, Lsn(0)).is_none());
}

/// What a permit is counted with (`space`, invariant 3).
#[test]
fn no_mix_of_blocks_outgrows_its_segment() {
    let geometry = super::super::segment::Geometry { segment_size: 1 << 20 };
    // Batches of one block with the shortest op, each of a page of its own, is the worst.
    for blocks in [1usize, 2, 300, 20_000] {
        let batch = super::super::batch::BATCH_HEADER + blocks * (super::super::batch::BLOCK_HEADER + 2);
        let batches = geometry.usable() as usize / 2 / batch;
        let entries = Entries { pages: batches * blocks, places: batches * blocks };
        assert!(geometry.fits(SECTOR as u64 + (batches * batch) as u64, entries), "{blocks} blocks in a batch");
    }
}
