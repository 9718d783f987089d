//! What errors of devices say.

use super::*;

#[test]
fn a_device_that_cannot_be_opened_says_why() {
    let said = |operation, kind| DeviceError::new("/db/data", operation, 0, 0, kind).to_string();
    let denied = ErrorKind::Io(std::io::Error::from_raw_os_error(libc::EACCES).to_string());
    assert_eq!(said("open", denied), "cannot open /db/data: Permission denied");
    assert_eq!(said("open", ErrorKind::InUse), "cannot open /db/data: in use by another process");
    assert_eq!(said("sync", ErrorKind::Dead), "device /db/data: sync of 0 bytes at offset 0: the device is gone");
}
