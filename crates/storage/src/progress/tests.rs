use super::*;

#[test]
fn says_what_is_counted() {
    let progress = RecoveryProgress::default();
    assert_eq!(progress.state().to_string(), "opening");
    progress.enter(RecoveryPhase::ReadingLog, 300 << 20);
    progress.0.lock().state.done = 120 << 20;
    assert_eq!(progress.state().to_string(), "reading the log, 120 of 300 MiB");
    progress.enter(RecoveryPhase::Redo, 7);
    assert_eq!(progress.state().to_string(), "redo, 0 of 7 pages");
    progress.enter(RecoveryPhase::Open, 0);
    assert_eq!(progress.state().to_string(), "open");
}
