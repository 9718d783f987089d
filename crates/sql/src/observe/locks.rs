//! Waits for locks that last: logged once each, with who blocks and what it runs.
use super::Observed;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use terrace_engine::Database;
use terrace_engine::advisory::AdvisoryKey;
use terrace_engine::status::{LockTarget, WaitStatus};

/// How often waits are looked at, at most and at least.
const OFTEN: Duration = Duration::from_millis(50);
const SELDOM: Duration = Duration::from_secs(1);

/// Logs waits that last longer than [`super::LogOptions::lock_wait`]. Runs until it is dropped.
pub async fn watch_locks(engine: Database, observed: Arc<Observed>) {
    let mut logged: BTreeSet<u64> = BTreeSet::new();
    loop {
        let Some(limit) = observed.log().lock_wait else {
            observed.env.sleep(SELDOM).await;
            continue;
        };
        observed.env.sleep((limit / 4).clamp(OFTEN, SELDOM)).await;
        let mut waiting = BTreeSet::new();
        for transaction in engine.transactions() {
            let Some(wait) = transaction.waiting.filter(|w| w.since >= limit) else { continue };
            waiting.insert(transaction.number);
            if !logged.contains(&transaction.number) {
                log(&engine, &observed, transaction.number, &wait);
            }
        }
        logged = waiting;
    }
}

/// What is waited for, in words.
pub(crate) fn target(engine: &Database, target: &LockTarget) -> String {
    let catalog = engine.catalog();
    let table = target.table_name(&catalog).unwrap_or("?");
    match target {
        LockTarget::Table(_) => format!("table {table}"),
        LockTarget::Row(_, rid) | LockTarget::RowTurn(_, rid) => format!("row ({},{}) of {table}", rid.page, rid.slot),
        LockTarget::Transaction(number) => format!("the end of transaction {number}"),
        LockTarget::Advisory(AdvisoryKey::One(key)) => format!("advisory lock {key}"),
        LockTarget::Advisory(AdvisoryKey::Two(first, second)) => format!("advisory lock ({first},{second})"),
    }
}

fn log(engine: &Database, observed: &Observed, number: u64, wait: &WaitStatus) {
    let session = observed.session_of(number);
    let (pid, query) = session.map_or((0, String::new()), |s| (s.pid, s.now().query().to_owned()));
    for blocker in &wait.blocked_by {
        let session = observed.session_of(*blocker);
        let (state, statement) = match &session {
            Some(session) => {
                let now = session.now();
                (now.state.name(), now.query().to_owned())
            }
            None => ("no session", String::new()),
        };
        tracing::info!(
            pid,
            waited_ms = wait.since.as_secs_f64() * 1e3,
            waiting_for = target(engine, &wait.target),
            statement = query,
            blocker_pid = session.as_ref().map_or(0, |s| s.pid),
            blocker_state = state,
            blocker_statement = statement,
            "still waiting for a lock"
        );
    }
}
