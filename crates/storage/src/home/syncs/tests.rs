//! Syncs whose ends the test decides.

use super::*;
use futures::FutureExt;
use terrace_device::MemoryDevice;
use tokio::sync::oneshot::{Receiver, channel};

fn syncs() -> Arc<Syncs> {
    Syncs::new(Arc::new(MemoryDevice::new("data", 1 << 20)), Purpose::Data, crate::testing::safeguards())
}

fn failure() -> Result<(), DeviceError> {
    Err(DeviceError::new("data", "sync", 0, 0, ErrorKind::Medium("sync".into())))
}

async fn ends(answer: Receiver<Result<(), DeviceError>>) -> Result<(), DeviceError> {
    answer.await.expect("the test answers")
}

#[test]
pub(crate) fn a_sync_waits_for_what_becomes_of_the_others() {
    for fails in [false, true] {
        let syncs = syncs();
        let ((end_first, first), (end_second, second)) = (channel(), channel());
        let mut one = Box::pin(syncs.together(|| ends(first)));
        let mut other = Box::pin(syncs.together(|| ends(second)));
        assert!((&mut one).now_or_never().is_none() && (&mut other).now_or_never().is_none());
        end_first.send(Ok(())).unwrap();
        assert!((&mut one).now_or_never().is_none(), "the other may yet fail");
        end_second.send(if fails { failure() } else { Ok(()) }).unwrap();
        let answers = [other.now_or_never().expect("ended"), one.now_or_never().expect("ended")];
        assert!(answers.iter().all(|answer| answer.is_err() == fails), "{answers:?}");
        assert_eq!(syncs.sync().now_or_never().expect("at once").is_err(), fails);
    }
}

#[test]
fn a_sync_does_not_wait_for_one_that_begins_after_its_end() {
    let syncs = syncs();
    let ((end_first, first), (end_second, second)) = (channel(), channel());
    let (_end_third, third) = channel();
    let mut one = Box::pin(syncs.together(|| ends(first)));
    let mut other = Box::pin(syncs.together(|| ends(second)));
    assert!((&mut one).now_or_never().is_none() && (&mut other).now_or_never().is_none());
    end_first.send(Ok(())).unwrap();
    assert!((&mut one).now_or_never().is_none());
    let mut late = Box::pin(syncs.together(|| ends(third)));
    assert!((&mut late).now_or_never().is_none());
    end_second.send(Ok(())).unwrap();
    assert!((&mut other).now_or_never().is_none(), "that one overlaps the late one");
    assert!(matches!((&mut one).now_or_never(), Some(Ok(()))));
}

#[test]
fn a_sync_that_is_given_up_has_failed() {
    let syncs = syncs();
    let (_end, first) = channel();
    let mut one = Box::pin(syncs.together(|| ends(first)));
    assert!((&mut one).now_or_never().is_none());
    drop(one);
    assert!(matches!(syncs.sync().now_or_never(), Some(Err(error)) if error.to_string().contains("given up")));
}
