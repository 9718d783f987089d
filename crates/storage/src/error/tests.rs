//! What errors say.

use super::*;
use crate::types::DATA;

#[test]
fn a_version_that_nobody_knows_is_not_compared() {
    let said = |expected| StorageError::LostWrite { page: PageId::new(DATA, 334), found: Lsn(9), expected }.to_string();
    assert_eq!(
        said(Some(Lsn(70))),
        "lost write on page 1:334 of tablespace data: its LSN is 0/00000009, the log expects 0/00000046"
    );
    assert_eq!(said(None), "the version on the disk of page 1:334 of tablespace data cannot be known to be current");
}
