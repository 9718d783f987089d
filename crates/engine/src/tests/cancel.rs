//! Dropping a call at each of its await points, before and after what it waited for has come: whatever it was doing,
//! the transaction can be rolled back or go on, nothing is left behind, nobody waits for ever.
use super::crash::{long, recorded, tiny};
use crate::testing::*;
use crate::txn::{Isolation, LockWait, RowLock, Scan, Txn};
use crate::{ColumnDef, DataType, Database, Datum, EngineConfig, IndexSpec, Result, Table, TableSpec};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use terrace_device::fault::Recorder;
use terrace_env::{BoxFuture, Env, Sim};
use terrace_storage::Rid;

/// Polls a future a number of times, then drops it: `None`. `late`: only when it is woken once more, and does not get
/// to see why.
struct Cut<T> {
    future: Option<BoxFuture<T>>,
    polls: usize,
    late: bool,
}

impl<T> Future for Cut<T> {
    type Output = Option<T>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if self.polls > 0 {
            self.polls -= 1;
            let future = self.future.as_mut().expect("not polled after its end");
            if let Poll::Ready(value) = future.as_mut().poll(cx) {
                self.future = None;
                return Poll::Ready(Some(value));
            }
            if self.polls > 0 || self.late {
                return Poll::Pending;
            }
        }
        self.future = None;
        Poll::Ready(None)
    }
}

fn spec(name: &str) -> TableSpec {
    let columns = vec![ColumnDef::new("id", DataType::Int4).not_null(), ColumnDef::new("v", DataType::Int4)];
    let key = IndexSpec { name: format!("{name}_pkey"), columns: vec![0], unique: true, primary: true, extras: None };
    TableSpec { name: name.into(), columns, indexes: vec![key] }
}

const ROWS: i32 = 24;

/// What is cut: runs in a transaction that has changed row 1 already.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    InsertLong,
    UpdateLongAndKey,
    Delete,
    UpdateAfterWait,
    DeleteAfterTurn,
    LockAfterWait,
    UpdateAfterLock,
    CreateTable,
    CreateIndex,
    DropTable,
    DropIndex,
    RollBackTo,
    Commit,
    CommitAsync,
    RollBack,
}
use Call::*;

struct Machine {
    db: Database,
    t: Arc<Table>,
    env: Env,
}

async fn find(txn: &mut Txn, t: &Table, id: i32) -> (Rid, crate::Version) {
    txn.begin_statement();
    let (rid, _, version) = get(txn, t, id).await.expect("the row is visible");
    (rid, version)
}

/// The statement of a call.
async fn statement(call: Call, txn: &mut Txn, t: &Arc<Table>) -> Result<()> {
    match call {
        InsertLong => txn.insert(t, &long(500, 1, 30_000)).await.map(drop),
        UpdateLongAndKey => {
            let (rid, version) = find(txn, t, 5).await;
            txn.update(t, rid, version, &long(505, 5, 20_000)).await.map(drop)
        }
        Delete => {
            let (rid, version) = find(txn, t, 6).await;
            txn.delete(t, rid, version).await.map(drop)
        }
        UpdateAfterWait | UpdateAfterLock => {
            let (rid, version) = find(txn, t, 2).await;
            txn.update(t, rid, version, &row(2, 77)).await.map(drop)
        }
        DeleteAfterTurn => {
            let (rid, version) = find(txn, t, 2).await;
            txn.delete(t, rid, version).await.map(drop)
        }
        LockAfterWait => {
            let (rid, version) = find(txn, t, 2).await;
            txn.lock_row(t, rid, version, RowLock::Exclusive, LockWait::Wait).await.map(drop)
        }
        CreateTable => txn.create_table(spec("made")).await.map(drop),
        CreateIndex => {
            let index = IndexSpec { name: "t_v".into(), columns: vec![1], unique: false, primary: false, extras: None };
            txn.create_index(t, index).await.map(drop)
        }
        DropTable => {
            let side = txn.catalog().table("side").cloned().expect("it is there");
            txn.drop_table(&side).await
        }
        DropIndex => {
            let side = txn.catalog().table("side").cloned().expect("it is there");
            let index = side.indexes.iter().find(|i| !i.primary).cloned().expect("it is there");
            txn.drop_index(&index).await
        }
        RollBackTo | Commit | CommitAsync | RollBack => unreachable!("not a statement"),
    }
}

/// Somebody else, who holds row 2 for a while.
async fn other(machine: &Machine, call: Call) {
    let (db, t, env) = (machine.db.clone(), machine.t.clone(), machine.env.clone());
    let wait = Duration::from_micros(400);
    let begin = |db: &Database| db.begin(Isolation::ReadCommitted);
    match call {
        UpdateAfterWait | LockAfterWait | DeleteAfterTurn => {
            let mut holder = begin(&db);
            set(&mut holder, &t, 2, 50).await.unwrap();
            if call == DeleteAfterTurn {
                // One more waits before us.
                let (db, t) = (db.clone(), t.clone());
                env.spawn("waiter", async move {
                    let mut txn = db.begin(Isolation::ReadCommitted);
                    set(&mut txn, &t, 2, 60).await.unwrap();
                    txn.rollback().await.unwrap();
                });
                machine.env.sleep(Duration::from_micros(200)).await;
            }
            machine.env.spawn("holder", async move {
                env.sleep(wait).await;
                holder.rollback().await.unwrap();
            });
        }
        UpdateAfterLock => {
            let mut holder = begin(&db);
            let (rid, version) = find(&mut holder, &t, 2).await;
            holder.lock_row(&t, rid, version, RowLock::Share, LockWait::Wait).await.unwrap();
            machine.env.spawn("holder", async move {
                env.sleep(wait).await;
                drop(holder);
            });
        }
        _ => {}
    }
}

impl Machine {
    async fn new(env: Env) -> Machine {
        let devices = recorded(&env, &Recorder::new(false), None);
        let config = EngineConfig { lock_timeout: Duration::from_secs(5), ..EngineConfig::default() };
        let db = Database::create(env.clone(), devices, tiny(), config).await.unwrap();
        let t = table(&db, "t").await;
        for id in 0..ROWS {
            put(&db, &t, id, id).await;
        }
        let mut txn = db.begin(Isolation::ReadCommitted);
        let side = txn.create_table(spec("side")).await.unwrap();
        for id in 0..40 {
            txn.insert(&side, &[Datum::Int4(id), Datum::Int4(-id)]).await.unwrap();
        }
        let index = IndexSpec { name: "side_v".into(), columns: vec![1], unique: false, primary: false, extras: None };
        txn.create_index(&side, index).await.unwrap();
        txn.commit().await.unwrap();
        Machine { db, t, env }
    }

    /// Cuts `call`; whether it was cut.
    async fn cut(&self, call: Call, polls: usize, late: bool, round: usize) -> bool {
        // Pages must be read again, so that reading is waited for too.
        self.push_pages_out().await;
        other(self, call).await;
        let mut txn = self.db.begin(Isolation::ReadCommitted);
        set(&mut txn, &self.t, 1, 100).await.unwrap();
        let t = self.t.clone();
        let mut changed = false;
        let cut = match call {
            Commit | CommitAsync | RollBack => {
                set(&mut txn, &t, 3, 300).await.unwrap();
                let future: BoxFuture<Result<()>> = Box::pin(async move {
                    match call {
                        Commit => txn.commit().await,
                        CommitAsync => txn.commit_async().await,
                        _ => txn.rollback().await,
                    }
                });
                let result = Cut { future: Some(future), polls, late }.await;
                self.env.sleep(Duration::from_millis(10)).await;
                let mut reader = self.db.begin(Isolation::ReadCommitted);
                let v = value(&mut reader, &t, 1).await;
                let both = (v, value(&mut reader, &t, 3).await);
                assert!([(Some(1), Some(3)), (Some(100), Some(300))].contains(&both), "{both:?}: half a commit");
                changed = v == Some(100);
                if let Some(result) = &result {
                    assert!(result.is_ok() && changed == (call != RollBack), "{result:?}");
                }
                result.is_none()
            }
            _ => {
                let savepoint = txn.savepoint();
                if call == RollBackTo {
                    txn.insert(&t, &long(501, 1, 20_000)).await.unwrap();
                    statement(UpdateLongAndKey, &mut txn, &t).await.unwrap();
                }
                // The transaction comes back whether or not the call ends.
                let slot = Arc::new(tokio::sync::Mutex::new(Some(txn)));
                let (inner, table) = (slot.clone(), t.clone());
                let future: BoxFuture<Result<()>> = Box::pin(async move {
                    let mut slot = inner.lock().await;
                    let txn = slot.as_mut().expect("nobody takes it meanwhile");
                    match call {
                        RollBackTo => txn.rollback_to(savepoint).await,
                        _ => statement(call, txn, &table).await,
                    }
                });
                let result = Cut { future: Some(future), polls, late }.await;
                if let Some(result) = &result {
                    assert!(result.is_ok(), "{result:?}");
                }
                let mut txn = slot.lock().await.take().expect("still there");
                match round % 3 {
                    0 => drop(txn),
                    1 => txn.rollback().await.unwrap(),
                    _ => {
                        txn.rollback_to(savepoint).await.unwrap();
                        assert!(txn.catalog().table("made").is_none() && txn.catalog().table("side").is_some());
                        set(&mut txn, &t, 4, 4).await.unwrap();
                        txn.commit().await.unwrap();
                        changed = true;
                    }
                }
                result.is_none()
            }
        };
        self.verify(call, polls, late, changed).await;
        cut
    }

    async fn push_pages_out(&self) {
        let mut txn = self.db.begin(Isolation::ReadCommitted);
        txn.insert(&self.t, &long(900, 0, 150_000)).await.unwrap();
        txn.rollback().await.unwrap();
    }

    /// Everything is as before, but for row 1 where that was committed; then it is put back.
    async fn verify(&self, call: Call, polls: usize, late: bool, changed: bool) {
        let what = format!("{call:?} cut after {polls} polls, late: {late}");
        self.env.sleep(Duration::from_millis(20)).await;
        let problems = self.db.check().await.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(problems, Vec::<String>::new(), "{what}");
        assert!(self.db.failure().is_none(), "{what}");
        assert_eq!((self.db.locks(), self.db.transactions()), (vec![], vec![]), "{what}");
        assert_eq!(self.db.0.locks.entries(), 0, "{what}");
        let stats = self.db.stats();
        assert_eq!((stats.histories, stats.transactions.active, stats.transactions.snapshots), (0, 0, 0), "{what}");
        let catalog = self.db.catalog();
        let side = catalog.table("side").unwrap_or_else(|| panic!("{what}: a table is gone"));
        assert_eq!((catalog.tables().count(), side.indexes.len()), (2, 2), "{what}");
        let mut txn = self.db.begin(Isolation::ReadCommitted);
        let mut expected: Vec<(i32, i32)> = (0..ROWS).map(|id| (id, id)).collect();
        if changed {
            for id in [1, 3] {
                let v = value(&mut txn, &self.t, id).await.unwrap();
                assert!([id, id * 100].contains(&v), "{what}");
                set(&mut txn, &self.t, id, id).await.unwrap();
            }
        }
        let mut found = all(&mut txn, &self.t, Scan::Full).await;
        txn.commit().await.unwrap();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{what}");
    }
}

/// Cuts a call at every point; how many there were.
fn cut_everywhere(call: Call) -> usize {
    let sim = Sim::new(call as u64, 2);
    let env = sim.env();
    sim.run(async move {
        let machine = Machine::new(env).await;
        let mut cuts = 0;
        for late in [false, true] {
            let mut polls = 0;
            'points: loop {
                // Each way of going on at each of the first points, then one after the other.
                for round in if polls < 12 { 0..3 } else { polls % 3..polls % 3 + 1 } {
                    if !machine.cut(call, polls, late, round).await {
                        break 'points;
                    }
                    cuts += 1;
                }
                polls += 1;
            }
        }
        cuts
    })
}

#[test]
fn a_statement_may_be_dropped_anywhere() {
    for call in [InsertLong, UpdateLongAndKey, Delete] {
        let cuts = cut_everywhere(call);
        assert!(cuts > 5, "{call:?}: {cuts} cuts");
    }
}

#[test]
fn a_wait_may_be_dropped_anywhere() {
    for call in [UpdateAfterWait, DeleteAfterTurn, LockAfterWait, UpdateAfterLock] {
        let cuts = cut_everywhere(call);
        assert!(cuts > 5, "{call:?}: {cuts} cuts");
    }
}

#[test]
fn a_definition_may_be_dropped_anywhere() {
    for call in [CreateTable, CreateIndex, DropTable, DropIndex] {
        let cuts = cut_everywhere(call);
        assert!(cuts > 5, "{call:?}: {cuts} cuts");
    }
}

#[test]
fn an_end_may_be_dropped_anywhere() {
    for call in [RollBackTo, Commit, CommitAsync, RollBack] {
        let cuts = cut_everywhere(call);
        assert!(cuts > 3, "{call:?}: {cuts} cuts");
    }
}
