use super::*;
use crate::page::op::PageOp;
use crate::types::DATA;

fn sealed(id: PageId) -> Vec<u8> {
    let mut page = vec![0xAA; 4096];
    PageOp::Format { kind: PageKind::Heap, owner: ObjectId(7), special: 8 }.apply(&mut page, id);
    PageOp::Put { slot: 0, cell: b"cell" }.apply(&mut page, id);
    set_lsn(&mut page, Lsn(99));
    seal(&mut page);
    page
}

#[test]
fn fields_come_back() {
    let at = PageId::new(DATA, 12);
    let page = sealed(at);
    assert_eq!(verify(&page, at), Ok(()));
    assert_eq!((lsn(&page), id(&page), kind(&page)), (Lsn(99), at, Some(PageKind::Heap)));
    assert_eq!(owner(&page), ObjectId(7));
}

#[test]
fn every_flipped_bit_is_noticed() {
    let at = PageId::new(DATA, 12);
    let page = sealed(at);
    for byte in (0..80).chain([2000, 4095]) {
        let mut bad = page.clone();
        bad[byte] ^= 0x10;
        assert!(matches!(verify(&bad, at), Err(BadPage::Checksum { .. })), "byte {byte}");
    }
}

#[test]
fn foreign_pages_are_refused() {
    let at = PageId::new(DATA, 12);
    let page = sealed(at);
    assert_eq!(verify(&page, PageId::new(DATA, 13)), Err(BadPage::WrongId { found: at }));
    assert_eq!(verify(&[0; 4096], at), Err(BadPage::Blank));
    let reseal = |at_byte: usize, value: u8| {
        let mut bad = page.clone();
        bad[at_byte] = value;
        seal(&mut bad);
        bad
    };
    assert_eq!(verify(&reseal(offset_of!(PageHeader, version), 2), at), Err(BadPage::Version(2)));
    assert_eq!(verify(&reseal(offset_of!(PageHeader, kind), 77), at), Err(BadPage::Kind(77)));
    assert_eq!(verify(&reseal(33, 0xFF), at), Err(BadPage::Directory));
}
