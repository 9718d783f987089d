//! The 32-byte page header: reading, stamping, sealing with a checksum, verifying.
// (owner: storage-B) fn lsn(&[u8])->Lsn, set_lsn, id, kind, owner, seal(&mut [u8]) (stamps CRC), verify(&[u8], PageId)->Result<(), BadPage>
