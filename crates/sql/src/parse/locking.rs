//! FOR UPDATE and its weaker forms, as the engine takes them.
use terrace_engine::{LockWait, RowLock};
use terrace_grammar::statement::{LockStrength, LockWait as Wait};

/// What a clause says of the lock, and of waiting for it.
pub(crate) fn stated(strength: LockStrength, wait: Wait) -> (RowLock, LockWait) {
    let lock = match strength {
        LockStrength::KeyShare => RowLock::KeyShare,
        LockStrength::Share => RowLock::Share,
        LockStrength::NoKeyUpdate => RowLock::NoKeyUpdate,
        LockStrength::Update => RowLock::Exclusive,
    };
    let wait = match wait {
        Wait::Wait => LockWait::Wait,
        Wait::NoWait => LockWait::NoWait,
        Wait::SkipLocked => LockWait::Skip,
    };
    (lock, wait)
}
