use super::*;
use crate::types::{DATA, UNDO};

fn page(no: u32) -> PageId {
    PageId::new(DATA, no)
}

/// Where a batch begins and ends, and whether the page begins afresh in it.
type PlaceFacts = (u64, u64, bool);

/// More pages than a sector of either table has, some of them with many places; a few of another tablespace.
fn filled() -> (OpenIndex, Vec<(PageId, Vec<PlaceFacts>)>) {
    let (mut open, mut expected) = (OpenIndex::default(), Vec::new());
    for no in 0..690 {
        expected.push((page(no * 3), Vec::new()));
    }
    for no in 0..10 {
        expected.push((PageId::new(UNDO, no), Vec::new()));
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
    assert_eq!((index.entries().pages, index.entries().sectors), (700, 3));
    let mut bytes = vec![0; index.entries().bytes()];
    index.encode(7, &mut bytes);
    let read = SegmentIndex::decode(&bytes, index.entries(), 7, base).expect("an index");
    assert_eq!(read, index);
    let found: Vec<_> = read.pages().map(|(page, places)| (page, told(places))).collect();
    assert_eq!(found, expected);
    assert_eq!(read.places(page(1)), []);
    let table = PageTable::decode(&bytes, index.entries(), 7, base).expect("a page table");
    let newest: Vec<_> = table.newest().collect();
    let last = |(page, places): &(PageId, Vec<PlaceFacts>)| (*page, Lsn(base.0 + places.last().expect("some").1));
    assert_eq!(newest, expected.iter().map(last).collect::<Vec<_>>());
    assert_eq!(table.fences(), index.fences());
}

#[test]
fn a_page_is_found_by_its_sectors_and_places_alone() {
    let (open, expected) = filled();
    let index = open.close(Lsn(0));
    let entries = index.entries();
    let mut bytes = vec![0; entries.bytes()];
    index.encode(7, &mut bytes);
    let (mut pages, mut begun) = (Vec::new(), Vec::new());
    for (sector, fence) in bytes[..entries.table_bytes()].chunks_exact(SECTOR).zip(index.fences()) {
        assert!(table_sector(sector, 8).is_none(), "of another segment");
        assert_eq!(fence.1 as usize, pages.len());
        pages.extend(table_sector(sector, 7).expect("a sector of the page table"));
        assert_eq!(pages[fence.1 as usize].0, fence.0);
    }
    begun.extend(beginnings(&bytes[entries.table_bytes()..entries.places_at()]).expect("beginnings"));
    for (at, (page, _)) in pages.iter().enumerate() {
        let (beginning, next) = (&begun[at], begun.get(at + 1));
        let to = next.map_or(entries.places, |next| next.first as usize);
        let of = &bytes[entries.places_at()..][beginning.first as usize * PLACE..to * PLACE];
        assert_eq!((*page, told(&places_of(*page, beginning, of).expect("its places"))), expected[at]);
        // Others are noticed, but for one in 65,536.
        let mut other = of.to_vec();
        other[3] ^= 1;
        assert!(places_of(*page, beginning, &other).is_none());
        assert!(places_of(PageId::new(DATA, 1), beginning, of).is_none());
    }
}

#[test]
fn a_damaged_index_is_none() {
    let (open, _) = filled();
    let index = open.close(Lsn(0));
    let entries = index.entries();
    let mut bytes = vec![0; entries.bytes()];
    index.encode(7, &mut bytes);
    for at in (0..entries.table_bytes()).step_by(13) {
        bytes[at] ^= 0x10;
        assert!(PageTable::decode(&bytes, entries, 7, Lsn(0)).is_none(), "byte {at}");
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
        let (pages, places) = (batches * blocks, batches * blocks);
        let entries = Entries { pages, places, sectors: pages.div_ceil(PAGES) + SPACES - 1 };
        assert!(geometry.fits(SECTOR as u64 + (batches * batch) as u64, entries), "{blocks} blocks in a batch");
    }
}
