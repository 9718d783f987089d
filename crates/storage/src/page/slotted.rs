//! Reading a slotted page. Changing it is `PageOp`'s alone.
pub fn slot_count(_page: &[u8]) -> u16 {
    todo!()
}
/// The cell of a slot; `None` where the slot is empty or beyond the directory.
pub fn cell(_page: &[u8], _slot: u16) -> Option<&[u8]> {
    todo!()
}
/// The special area.
pub fn special(_page: &[u8]) -> &[u8] {
    todo!()
}
/// Offset of the special area from the page's start (for `PageOp::Write`).
pub fn special_offset() -> u16 {
    40
}
/// The largest cell that InsertAt (or Put into a new slot) can take now, compaction included, directory entry deducted.
pub fn room(_page: &[u8]) -> usize {
    todo!()
}
/// The largest cell that Put can store in `slot` now (its present cell's bytes count as free).
pub fn room_in(_page: &[u8], _slot: u16) -> usize {
    todo!()
}
/// The first empty slot, or the directory's end.
pub fn free_slot(_page: &[u8]) -> u16 {
    todo!()
}
