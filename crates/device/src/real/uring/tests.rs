//! How an operation takes the kernel's answers; the transfers themselves are tested in `file`.

use super::*;

fn reading(len: usize) -> (Operation, oneshot::Receiver<io::Result<IoBuf>>) {
    let (sender, receiver) = oneshot::channel();
    let file = Arc::new(File::open("/dev/null").unwrap());
    let work = Work::Read(IoBuf::zeroed(len), sender);
    (Operation { file, offset: 8192, done: 0, retried: false, work }, receiver)
}

#[test]
fn short_transfers_continue_at_a_sector() {
    let (mut operation, mut receiver) = reading(3 * SECTOR);
    assert!(operation.progress(SECTOR as i32 + 100).is_none());
    assert_eq!(operation.done, SECTOR);
    assert!(operation.progress(2 * SECTOR as i32).unwrap().is_ok());
    operation.finish(Ok(()));
    assert_eq!(receiver.try_recv().unwrap().unwrap().len(), 3 * SECTOR);
}

#[test]
fn interruptions_are_repeated_and_the_end_is_an_error() {
    let (mut operation, _receiver) = reading(SECTOR);
    for errno in [libc::EINTR, libc::EAGAIN, libc::ECANCELED] {
        assert!(operation.progress(-errno).is_none());
    }
    assert!(operation.retried);
    assert_eq!(operation.progress(0).unwrap().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(operation.progress(-libc::ENOSPC).unwrap().unwrap_err().raw_os_error(), Some(libc::ENOSPC));
}

#[test]
fn more_operations_than_the_ring_holds_wait_their_turn() {
    if !available() {
        return; // Forbidden here (a container's seccomp profile): the threads back end is used and tested.
    }
    let file = Arc::new(File::open("/dev/zero").unwrap());
    let answers: Vec<_> =
        (0..3 * u64::from(COMPLETIONS)).map(|_| read(file.clone(), 0, IoBuf::zeroed(SECTOR))).collect();
    for answer in answers {
        let buf = answer.blocking_recv().unwrap().unwrap();
        assert!(buf.iter().all(|b| *b == 0));
    }
}
