//! Relations about what goes on: read anew each time a plan that names one runs, so that a plan kept for later shows
//! what is then so. docs/views.md explains their columns.
//!
//! Source of the pg_stat_* and pg_locks shapes: PostgreSQL 15 documentation, chapters 28.2 and 54.13. What Terrace does
//! not count is NULL.
mod tiers;

use super::*;
use crate::observe::{Activity, State, locks_target};
use crate::pgcatalog::system::PgType;
use crate::pgcatalog::{PreparedStatement, schema_of_table};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use std::collections::BTreeMap;
use terrace_engine::advisory::AdvisoryKey;
use terrace_engine::locks::LockMode;
use terrace_engine::status::{LockTarget, Stage, TransactionStatus};
use terrace_storage::{DATA, Distribution, ObjectId};

/// Columns, as in `shapes`.
#[rustfmt::skip]
pub(super) const SHAPES: &[(&str, &str, &str)] = &[
    ("pg_catalog", "pg_stat_activity", "datid:oid datname:name pid:int4 leader_pid:int4 usesysid:oid usename:name \
                                        application_name:text client_addr:text client_hostname:text client_port:int4 \
                                        backend_start:timestamptz xact_start:timestamptz query_start:timestamptz \
                                        state_change:timestamptz wait_event_type:text wait_event:text state:text \
                                        backend_xid:int8 backend_xmin:int8 query_id:int8 query:text backend_type:text"),
    ("pg_catalog", "pg_locks", "locktype:text database:oid relation:oid page:int4 tuple:int4 virtualxid:text \
                                transactionid:int8 classid:oid objid:oid objsubid:int2 virtualtransaction:text \
                                pid:int4 mode:text granted:bool fastpath:bool waitstart:timestamptz"),
    ("pg_catalog", "pg_prepared_statements", "name:text statement:text prepare_time:timestamptz \
                                              parameter_types:_text from_sql:bool generic_plans:int8 \
                                              custom_plans:int8"),
    ("pg_catalog", "pg_stat_database", "datid:oid datname:name numbackends:int4 xact_commit:int8 xact_rollback:int8 \
                                        blks_read:int8 blks_hit:int8 tup_returned:int8 tup_fetched:int8 \
                                        tup_inserted:int8 tup_updated:int8 tup_deleted:int8 conflicts:int8 \
                                        temp_files:int8 temp_bytes:int8 deadlocks:int8 blk_read_time:float8 \
                                        blk_write_time:float8 sessions:int8 stats_reset:timestamptz"),
    ("pg_catalog", "pg_stat_progress_copy", "pid:int4 datid:oid datname:name relid:oid command:text type:text \
                                             bytes_processed:int8 bytes_total:int8 tuples_processed:int8 \
                                             tuples_excluded:int8"),
    ("pg_catalog", "pg_stat_statements", "userid:oid dbid:oid toplevel:bool queryid:int8 query:text calls:int8 \
                                          total_exec_time:float8 min_exec_time:float8 max_exec_time:float8 \
                                          mean_exec_time:float8 rows:int8 shared_blks_hit:int8 shared_blks_read:int8 \
                                          blk_read_time:float8"),
    ("pg_catalog", "pg_stat_user_tables", "relid:oid schemaname:name relname:name seq_scan:int8 seq_tup_read:int8 \
                                           idx_scan:int8 idx_tup_fetch:int8 n_tup_ins:int8 n_tup_upd:int8 \
                                           n_tup_del:int8 n_tup_hot_upd:int8 n_live_tup:int8 n_dead_tup:int8 \
                                           last_vacuum:timestamptz last_autovacuum:timestamptz \
                                           last_analyze:timestamptz last_autoanalyze:timestamptz"),
    ("pg_catalog", "pg_statio_all_tables", "relid:oid schemaname:name relname:name heap_blks_read:int8 \
                                            heap_blks_hit:int8 idx_blks_read:int8 idx_blks_hit:int8 \
                                            toast_blks_read:int8 toast_blks_hit:int8 tidx_blks_read:int8 \
                                            tidx_blks_hit:int8"),
    ("pg_catalog", "pg_statio_user_tables", "relid:oid schemaname:name relname:name heap_blks_read:int8 \
                                             heap_blks_hit:int8 idx_blks_read:int8 idx_blks_hit:int8 \
                                             toast_blks_read:int8 toast_blks_hit:int8 tidx_blks_read:int8 \
                                             tidx_blks_hit:int8"),
    ("pg_catalog", "pg_stat_user_indexes", "relid:oid indexrelid:oid schemaname:name relname:name indexrelname:name \
                                            idx_scan:int8 idx_tup_read:int8 idx_tup_fetch:int8"),
    ("terrace", "status", "version:text started:timestamptz uptime_s:float8 sessions:int8 active:int8 waiting:int8 \
                           statements:int8 failed:int8 statement_ms:float8 committed:int8 rolled_back:int8 \
                           commit_wait_ms:float8"),
    ("terrace", "transactions", "number:int8 xid:int8 pid:int4 isolation:text stage:text age_s:float8 \
                                 waiting_for:text waiting_s:float8 blocked_by:text query:text"),
    ("terrace", "undo", "bytes:int8 limit_bytes:int8 histories:int8 snapshots:int8 oldest_snapshot_s:float8 \
                         snapshot_age_limit_s:float8 snapshots_cancelled:int8 horizon:int8 purge_failures:int8 \
                         last_purge_failure:timestamptz last_purge_error:text"),
    ("terrace", "pool", "page_size:int8 capacity:int8 resident:int8 dirty:int8 hits:int8 random_reads:int8 \
                         sequential_reads:int8 joined:int8 hit_rate:float8 evictions:int8 dirty_evictions:int8 \
                         written:int8"),
    ("terrace", "log", "end_lsn:int8 durable_lsn:int8 redo_lsn:int8 retain_lsn:int8 redo_bytes:int8 redo_bound:int8 \
                        segment_size:int8 segments:int8 free_segments:int8 capacity_segments:int8 reserved_bytes:int8 \
                        unwritten_bytes:int8 waiting:int8 archive:text archived_lsn:int8 unarchived_segments:int8 \
                        archive_failures:int8 last_archive_failure:timestamptz last_archive_error:text"),
    ("terrace", "checkpoints", "recorded:int8 last:timestamptz redo_lsn:int8 redo_bytes:int8 redo_bound:int8 \
                                dirty_pages:int8 pages_written:int8 pages_waiting:int8 rollbacks_left:int8 \
                                restart_estimate_ms:float8"),
    ("terrace", "io", "device:text purpose:text reads:int8 read_bytes:int8 read_ms:float8 writes:int8 \
                       write_bytes:int8 write_ms:float8 syncs:int8 sync_ms:float8"),
    ("terrace", "latencies", "name:text le_ms:float8 count:int8"),
    ("terrace", "percentiles", "name:text count:int8 mean_ms:float8 p50_ms:float8 p90_ms:float8 p99_ms:float8 \
                                p999_ms:float8"),
    ("terrace", "flash_tier", "state:text problem:text write_policy:text replacement:text size_bytes:int8 frames:int8 \
                               used:int8 dirty:int8 hits:int8 misses:int8 hit_rate:float8 dirty_hits:int8 \
                               throttled_reads:int8 admitted_clean:int8 admitted_dirty:int8 rejected_sequential:int8 \
                               rejected_throttled:int8 rejected_policy:int8 rejected_old:int8 rejected_dirty:int8 \
                               rejected_cold:int8 rejected_no_frame:int8 rejected_budget:int8 evicted:int8 \
                               invalidated:int8 forgotten:int8 taken_over:int8 cleaned:int8 cleaning_groups:int8 \
                               cleaned_per_s:float8 time_to_clean_s:float8 oldest_dirty_lsn:int8 redo_lsn:int8 \
                               retain_lsn:int8 bad_frames:int8 device_errors:int8 replayed:int8 written_bytes:int8 \
                               written_per_transaction:float8 written_per_day:float8 write_budget:int8 \
                               write_budget_left:int8 endurance:int8 life_days:float8 found:int8 found_current:int8 \
                               found_dirty:int8 found_bases:int8 found_older:int8 found_unknown:int8 found_lost:int8 \
                               inventory_ms:float8 noting_ms:float8"),
    ("terrace", "statements", "query:text calls:int8 failed:int8 total_ms:float8 mean_ms:float8 min_ms:float8 \
                               max_ms:float8 rows:int8 pages_hit:int8 pages_read:int8 read_ms:float8 read_data:int8 \
                               read_undo:int8 read_flash:int8"),
    ("terrace", "tables", "oid:oid name:name scans:int8 rows_read:int8 index_scans:int8 index_rows_read:int8 \
                           inserted:int8 updated:int8 deleted:int8 pages:int8 bytes:int8 index_bytes:int8"),
    ("terrace", "indexes", "oid:oid name:name table_name:name scans:int8 rows_read:int8 pages:int8 bytes:int8"),
];

pub(super) struct Live {
    schema: datafusion::arrow::datatypes::SchemaRef,
    columns: Vec<(&'static str, &'static str)>,
    name: (&'static str, &'static str),
    catalog: Arc<Catalog>,
    system: System,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.name.0, self.name.1)
    }
}

impl Live {
    /// `None`: it is no relation of this kind, or there is no database behind the session (tests of planning).
    pub(super) fn new(catalog: &Arc<Catalog>, system: Option<&System>, schema: &str, name: &str) -> Option<Live> {
        let &(s, n, shape) = SHAPES.iter().find(|(s, n, _)| *s == schema && *n == name)?;
        let columns = columns_of(shape);
        let schema = schema_of(&columns);
        Some(Live { schema, columns, name: (s, n), catalog: catalog.clone(), system: system?.clone() })
    }

    fn rows(&self) -> Vec<Row> {
        let s = &self.system;
        match self.name {
            ("pg_catalog", "pg_stat_activity") => activity(s),
            ("pg_catalog", "pg_locks") => locks(s),
            ("pg_catalog", "pg_prepared_statements") => prepared(s),
            ("pg_catalog", "pg_stat_database") => vec![database(s, &self.catalog)],
            ("pg_catalog", "pg_stat_progress_copy") => {
                s.observed.sessions().iter().filter_map(|a| copying(a)).collect()
            }
            ("pg_catalog", "pg_stat_statements") => pg_statements(s),
            ("pg_catalog", "pg_stat_user_tables") => {
                self.catalog.tables().map(|t| pg_table(&self.catalog, s, t)).collect()
            }
            ("pg_catalog", "pg_statio_all_tables" | "pg_statio_user_tables") => {
                // Which table a page is of is not counted: the blocks are NULL.
                let catalog = &self.catalog;
                let table =
                    |t: &Table| row! { relid: t.oid.0, schemaname: schema_of_table(catalog, t), relname: &*t.name };
                self.catalog.tables().map(|t| table(t)).collect()
            }
            ("pg_catalog", "pg_stat_user_indexes") => {
                self.catalog.tables().flat_map(|t| t.indexes.iter().map(|i| pg_index(&self.catalog, s, t, i))).collect()
            }
            ("terrace", "status") => vec![status(s)],
            ("terrace", "transactions") => transactions(s),
            ("terrace", "undo") => vec![undo(s)],
            ("terrace", "pool") => vec![pool(s)],
            ("terrace", "log") => vec![log(s)],
            ("terrace", "checkpoints") => vec![checkpoints(s)],
            ("terrace", "io") => io(s),
            ("terrace", "latencies") => tiers::latencies(s),
            ("terrace", "percentiles") => tiers::percentiles(s),
            ("terrace", "flash_tier") => vec![tiers::flash_tier(s)],
            ("terrace", "statements") => statements(s),
            ("terrace", "tables") => self.catalog.tables().map(|t| table_row(s, t)).collect(),
            ("terrace", "indexes") => {
                self.catalog.tables().flat_map(|t| t.indexes.iter().map(|i| index_row(s, t, i))).collect()
            }
            (schema, name) => unreachable!("{schema}.{name} is in SHAPES"),
        }
    }
}

impl PartitionStream for Live {
    fn schema(&self) -> &datafusion::arrow::datatypes::SchemaRef {
        &self.schema
    }

    fn execute(&self, _task: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batch = batch(&self.schema, &self.columns, &self.rows());
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), futures::stream::iter([batch])))
    }
}

/// The session's. Which plans they ran with is not counted.
fn prepared(s: &System) -> Vec<Row> {
    let rows = s.prepared.lock();
    let row = |(name, of): (&String, &PreparedStatement)| {
        let types = of.parameters.iter().map(|of| PgType::of(*of).sql_name.to_owned()).collect();
        row! {
            name: name.as_str(), statement: &*of.text, prepare_time: V::Ts(of.at), parameter_types: V::Texts(types),
            from_sql: of.by_prepare, generic_plans: V::Null, custom_plans: V::Null,
        }
    };
    rows.iter().map(row).collect()
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// A moment given as how long ago it is.
fn ago(s: &System, since: std::time::Duration) -> V {
    V::Ts(s.observed.now_micros() - i64::try_from(since.as_micros()).unwrap_or(0))
}

/// Process ids of sessions by their own numbers and by those of their transactions.
fn pids(s: &System) -> BTreeMap<u64, i32> {
    let numbers = |a: &Arc<Activity>| [Some(a.number), a.now().transaction].into_iter().flatten();
    s.observed.sessions().iter().flat_map(|a| numbers(a).map(|number| (number, a.pid))).collect()
}

/// The processes that keep a transaction waiting; a transaction without a session (a rollback going on) has 0.
fn blockers(t: &TransactionStatus, pids: &BTreeMap<u64, i32>) -> Vec<i32> {
    let waiting = t.waiting.iter().flat_map(|w| &w.blocked_by);
    waiting.map(|number| pids.get(number).copied().unwrap_or(0)).collect()
}

/// Whom the session of that process waits for.
pub(crate) fn blocking_pids(s: &System, pid: i32) -> Vec<i32> {
    let pids = pids(s);
    let mine = |t: &TransactionStatus| pids.get(&t.number) == Some(&pid);
    s.engine.transactions().iter().find(|t| mine(t)).map_or(vec![], |t| blockers(t, &pids))
}

/// For whose ends the session of that process waits, to get a safe snapshot.
pub(crate) fn safe_snapshot_blocking_pids(s: &System, pid: i32) -> Vec<i32> {
    let pids = pids(s);
    let mine = pids.iter().filter(|(_, other)| **other == pid).map(|(number, _)| *number);
    let blockers = mine.flat_map(|number| s.engine.safe_snapshot_blockers(number));
    blockers.filter_map(|number| pids.get(&number).copied()).collect()
}

/// A role's; NULL where it is gone.
fn oid_of(s: &System, role: &str) -> V {
    s.engine.catalog().role(role).map_or(V::Null, |role| V::O(role.oid))
}

fn activity(s: &System) -> Vec<Row> {
    let transactions: BTreeMap<u64, TransactionStatus> =
        s.engine.transactions().into_iter().map(|t| (t.number, t)).collect();
    let row = |session: Arc<Activity>| {
        let now = session.now();
        let transaction = now.transaction.and_then(|number| transactions.get(&number));
        let waiting = transaction.and_then(|t| t.waiting.as_ref());
        let (kind, event) = match (waiting, transaction.map(|t| t.stage), now.state) {
            (Some(wait), _, _) => ("Lock", lock_type(&wait.target)),
            (None, Some(Stage::Committing), _) => ("IO", "WALSync"),
            (None, _, State::Active) => match transaction {
                Some(t) if !s.engine.safe_snapshot_blockers(t.number).is_empty() => ("IPC", "SafeSnapshot"),
                _ => ("", ""),
            },
            (None, _, _) => ("Client", "ClientRead"),
        };
        let named = |name: &'static str| if name.is_empty() { V::Null } else { V::from(name) };
        let time = |micros: Option<i64>| micros.map_or(V::Null, V::Ts);
        row! {
            datid: DATABASE_OID, datname: DATABASE, pid: session.pid, leader_pid: V::Null,
            usesysid: oid_of(s, &now.user),
            usename: now.user.as_str(), application_name: now.application_name.as_str(),
            client_addr: now.client.map(|a| a.ip().to_string()),
            client_port: now.client.map_or(V::Null, |a| V::I4(i32::from(a.port()))),
            backend_start: V::Ts(session.started), xact_start: time(now.transaction_start),
            query_start: time(now.query_start), state_change: V::Ts(now.state_change),
            wait_event_type: named(kind), wait_event: named(event), state: now.state.name(),
            backend_xid: transaction.and_then(|t| t.id).map(|id| id.0), backend_xmin: V::Null, query_id: V::Null,
            query: now.query(), backend_type: "client backend",
        }
    };
    s.observed.sessions().into_iter().map(row).collect()
}

fn lock_type(target: &LockTarget) -> &'static str {
    match target {
        LockTarget::Table(_) => "relation",
        LockTarget::Row(..) | LockTarget::RowTurn(..) => "tuple",
        LockTarget::Transaction(_) => "transactionid",
        LockTarget::Advisory(_) => "advisory",
    }
}

/// An advisory lock's classid, objid and objsubid.
fn parts(key: AdvisoryKey) -> [V; 3] {
    let (class, object, part) = match key {
        AdvisoryKey::One(key) => ((key >> 32) as u32, key as u32, 1),
        AdvisoryKey::Two(first, second) => (first as u32, second as u32, 2),
    };
    [V::O(class), V::O(object), V::I2(part)]
}

fn locks(s: &System) -> Vec<Row> {
    let pids = pids(s);
    let transactions = s.engine.transactions();
    let id_of = |number: u64| transactions.iter().find(|t| t.number == number).and_then(|t| t.id).map(|id| id.0);
    let lock = |number: u64, target: LockTarget, mode: String, wait: Option<V>| {
        let (relation, rid) = match target {
            LockTarget::Table(oid) => (V::O(oid.0), None),
            LockTarget::Row(oid, rid) | LockTarget::RowTurn(oid, rid) => (V::O(oid.0), Some(rid)),
            LockTarget::Transaction(_) | LockTarget::Advisory(_) => (V::Null, None),
        };
        let [class, object, part] = match target {
            LockTarget::Advisory(key) => parts(key),
            _ => [V::Null, V::Null, V::Null],
        };
        let transaction = match target {
            LockTarget::Transaction(number) => id_of(number),
            _ => None,
        };
        row! {
            locktype: lock_type(&target), database: DATABASE_OID, relation: relation,
            page: rid.map_or(V::Null, |r| V::I4(i32::try_from(r.page).unwrap_or(i32::MAX))),
            tuple: rid.map_or(V::Null, |r| V::I4(i32::from(r.slot))), transactionid: transaction, classid: class,
            objid: object, objsubid: part, virtualtransaction: number.to_string(),
            pid: pids.get(&number).map_or(V::Null, |p| V::I4(*p)), mode: mode, granted: wait.is_none(),
            waitstart: wait.unwrap_or(V::Null),
        }
    };
    let mut rows = vec![];
    for held in s.engine.locks() {
        let wait = || {
            let waiting = transactions.iter().find(|t| t.number == held.transaction)?.waiting.as_ref()?;
            Some(ago(s, waiting.since))
        };
        let waiting = (!held.granted).then(|| wait().unwrap_or(V::Null));
        let mode = match (held.target, held.mode) {
            (LockTarget::Advisory(_), LockMode::AccessExclusive) => "ExclusiveLock".to_owned(),
            (_, mode) => format!("{mode:?}Lock"),
        };
        rows.push(lock(held.transaction, held.target, mode, waiting));
    }
    for t in &transactions {
        if t.id.is_some() {
            rows.push(lock(t.number, LockTarget::Transaction(t.number), "ExclusiveLock".into(), None));
        }
        if let Some(wait) = t.waiting.as_ref().filter(|w| matches!(w.target, LockTarget::Transaction(_))) {
            rows.push(lock(t.number, wait.target, "ShareLock".into(), Some(ago(s, wait.since))));
        }
    }
    rows
}

fn transactions(s: &System) -> Vec<Row> {
    let sessions: BTreeMap<u64, Arc<Activity>> =
        s.observed.sessions().into_iter().filter_map(|a| Some((a.now().transaction?, a))).collect();
    let pids = pids(s);
    let row = |t: TransactionStatus| {
        let isolation = t.isolation.map(|i| match i {
            terrace_engine::Isolation::ReadCommitted => "read committed",
            terrace_engine::Isolation::RepeatableRead => "repeatable read",
            terrace_engine::Isolation::Serializable => "serializable",
        });
        let stage = match t.stage {
            Stage::Open => "open",
            Stage::Committing => "committing",
            Stage::RollingBack => "rolling back",
        };
        let blocked: Vec<String> = blockers(&t, &pids).iter().map(i32::to_string).collect();
        row! {
            number: t.number, xid: t.id.map(|id| id.0), pid: pids.get(&t.number).map_or(V::Null, |p| V::I4(*p)),
            isolation: isolation, stage: stage, age_s: t.age.as_secs_f64(),
            waiting_for: t.waiting.as_ref().map(|w| locks_target(&s.engine, &w.target)),
            waiting_s: t.waiting.as_ref().map(|w| w.since.as_secs_f64()),
            blocked_by: (!blocked.is_empty()).then(|| blocked.join(",")),
            query: sessions.get(&t.number).map(|a| a.now().query().to_owned()),
        }
    };
    s.engine.transactions().into_iter().map(row).collect()
}

/// (scans, rows) of all indexes of a table.
fn index_use(s: &System, table: &Table) -> (u64, u64) {
    let used = table.indexes.iter().map(|i| s.engine.usage(i.oid));
    used.fold((0, 0), |(scans, rows), c| (scans + c.scans, rows + c.rows))
}

/// The COPY that a session runs.
fn copying(session: &Activity) -> Option<Row> {
    let copying = session.copying()?;
    Some(row! {
        pid: session.pid, datid: DATABASE_OID, datname: DATABASE, relid: V::O(copying.relation),
        command: if copying.from { "COPY FROM" } else { "COPY TO" }, type: if copying.file { "FILE" } else { "PIPE" },
        bytes_processed: copying.bytes, bytes_total: copying.bytes_total,
        tuples_processed: copying.rows, tuples_excluded: copying.excluded,
    })
}

fn database(s: &System, catalog: &Catalog) -> Row {
    let ended = s.engine.ended();
    let pool = s.engine.pool_status().counters;
    let (mut returned, mut fetched, mut inserted, mut updated, mut deleted) = (0, 0, 0, 0, 0);
    for table in catalog.tables() {
        let counts = s.engine.usage(table.oid);
        returned += counts.rows;
        fetched += index_use(s, table).1;
        inserted += counts.inserted;
        updated += counts.updated;
        deleted += counts.deleted;
    }
    let io = s.engine.store().io();
    let data = || io.iter().filter(|u| u.purpose == terrace_storage::Purpose::Data);
    row! {
        datid: DATABASE_OID, datname: DATABASE, numbackends: s.observed.sessions().len() as i32,
        xact_commit: ended.committed, xact_rollback: ended.rolled_back,
        blks_read: pool.random_reads + pool.sequential_reads, blks_hit: pool.hits, tup_returned: returned,
        tup_fetched: fetched, tup_inserted: inserted, tup_updated: updated, tup_deleted: deleted, conflicts: V::Null,
        temp_files: V::Null, temp_bytes: V::Null, deadlocks: V::Null,
        blk_read_time: ms(data().map(|u| u.reads.nanos).sum()),
        blk_write_time: ms(data().map(|u| u.writes.nanos).sum()),
        sessions: V::Null, stats_reset: V::Ts(s.observed.started),
    }
}

fn pg_statements(s: &System) -> Vec<Row> {
    let row = |(user, text, t): (Arc<str>, Arc<str>, crate::observe::StatementTotals)| {
        row! {
            userid: oid_of(s, &user), dbid: DATABASE_OID, toplevel: true, queryid: V::Null, query: &*text,
            calls: t.calls,
            total_exec_time: ms(t.total), min_exec_time: ms(t.min), max_exec_time: ms(t.max),
            mean_exec_time: ms(t.total) / t.calls as f64, rows: t.rows, shared_blks_hit: t.reads.hits(),
            shared_blks_read: t.reads.total_pages(), blk_read_time: ms(t.reads.total_nanos()),
        }
    };
    s.observed.statements_by_role().into_iter().map(row).collect()
}

fn statements(s: &System) -> Vec<Row> {
    let row = |(text, t): (Arc<str>, crate::observe::StatementTotals)| {
        let [data, undo, flash] = t.reads.pages;
        row! {
            query: &*text, calls: t.calls, failed: t.failed, total_ms: ms(t.total),
            mean_ms: ms(t.total) / t.calls as f64,
            min_ms: ms(t.min), max_ms: ms(t.max), rows: t.rows, pages_hit: t.reads.hits(),
            pages_read: t.reads.total_pages(), read_ms: ms(t.reads.total_nanos()), read_data: data, read_undo: undo,
            read_flash: flash,
        }
    };
    s.observed.statements().into_iter().map(row).collect()
}

fn pg_table(catalog: &Catalog, s: &System, t: &Table) -> Row {
    let counts = s.engine.usage(t.oid);
    let (scans, rows) = index_use(s, t);
    row! {
        relid: t.oid.0, schemaname: schema_of_table(catalog, t), relname: &*t.name,
        seq_scan: counts.scans, seq_tup_read: counts.rows,
        idx_scan: scans, idx_tup_fetch: rows, n_tup_ins: counts.inserted, n_tup_upd: counts.updated,
        n_tup_del: counts.deleted, n_tup_hot_upd: V::Null, n_live_tup: V::Null, n_dead_tup: V::Null,
    }
}

fn pg_index(catalog: &Catalog, s: &System, t: &Table, i: &Index) -> Row {
    let counts = s.engine.usage(i.oid);
    row! {
        relid: t.oid.0, indexrelid: i.oid.0, schemaname: schema_of_table(catalog, t), relname: &*t.name,
        indexrelname: &*i.name,
        idx_scan: counts.scans, idx_tup_read: counts.rows, idx_tup_fetch: counts.rows,
    }
}

/// Pages and bytes that an object takes on its device.
pub(crate) fn size(s: &System, object: ObjectId) -> (u64, u64) {
    let pages = s.engine.store().space(DATA).page_count(object);
    (pages, pages * s.engine.store().config().page_size as u64)
}

pub(crate) fn indexes_size(s: &System, t: &Table) -> u64 {
    t.indexes.iter().map(|i| size(s, i.oid).1).sum()
}

fn table_row(s: &System, t: &Table) -> Row {
    let counts = s.engine.usage(t.oid);
    let (scans, rows) = index_use(s, t);
    let (pages, bytes) = size(s, t.oid);
    row! {
        oid: t.oid.0, name: &*t.name, scans: counts.scans, rows_read: counts.rows, index_scans: scans,
        index_rows_read: rows, inserted: counts.inserted, updated: counts.updated, deleted: counts.deleted,
        pages: pages,
        bytes: bytes, index_bytes: indexes_size(s, t),
    }
}

fn index_row(s: &System, t: &Table, i: &Index) -> Row {
    let counts = s.engine.usage(i.oid);
    let (pages, bytes) = size(s, i.oid);
    row! {
        oid: i.oid.0, name: &*i.name, table_name: &*t.name, scans: counts.scans, rows_read: counts.rows, pages: pages,
        bytes: bytes,
    }
}

fn status(s: &System) -> Row {
    let sessions = s.observed.sessions();
    let active = sessions.iter().filter(|a| a.now().state == State::Active).count();
    let waiting = s.engine.transactions().iter().filter(|t| t.waiting.is_some()).count();
    let (latency, wait, ended) = (s.observed.latency(), s.engine.commit_wait(), s.engine.ended());
    row! {
        version: crate::settings::SERVER_VERSION, started: V::Ts(s.observed.started),
        uptime_s: (s.observed.now_micros() - s.observed.started) as f64 / 1e6, sessions: sessions.len(), active: active,
        waiting: waiting, statements: latency.count(), failed: s.observed.failed(), statement_ms: ms(latency.nanos),
        committed: ended.committed, rolled_back: ended.rolled_back, commit_wait_ms: ms(wait.nanos),
    }
}

fn undo(s: &System) -> Row {
    let u = s.engine.undo_status();
    let (last, error) = u.last_purge_failure.unzip();
    row! {
        bytes: u.bytes, limit_bytes: u.limit, histories: u.histories, snapshots: u.snapshots,
        oldest_snapshot_s: u.oldest_snapshot.as_secs_f64(), snapshot_age_limit_s: u.snapshot_age_limit.as_secs_f64(),
        snapshots_cancelled: u.snapshots_cancelled, horizon: u.horizon.0, purge_failures: u.purge_failures,
        last_purge_failure: last.map_or(V::Null, V::Ts), last_purge_error: error,
    }
}

fn pool(s: &System) -> Row {
    let p = s.engine.pool_status();
    let c = p.counters;
    let asked = c.hits + c.random_reads + c.sequential_reads;
    row! {
        page_size: p.page_size, capacity: p.capacity, resident: p.resident, dirty: p.dirty, hits: c.hits,
        random_reads: c.random_reads, sequential_reads: c.sequential_reads, joined: c.joined,
        hit_rate: (asked > 0).then(|| c.hits as f64 / asked as f64), evictions: c.evictions,
        dirty_evictions: c.dirty_evictions, written: c.written,
    }
}

fn log(s: &System) -> Row {
    let l = s.engine.log_status();
    let archive = match &l.archive {
        None => "none",
        Some(archive) if archive.refuses => "failing",
        Some(_) => "on",
    };
    let shown = l.archive.as_ref();
    let (last, error) = shown.and_then(|a| a.last_failure.clone()).unzip();
    row! {
        end_lsn: l.end.0, durable_lsn: l.durable.0, redo_lsn: l.redo_lsn.0, retain_lsn: l.retain_lsn.0,
        redo_bytes: l.end.0.saturating_sub(l.redo_lsn.0), redo_bound: l.redo_bound, segment_size: l.segment_size,
        segments: l.segments, free_segments: l.free_segments, capacity_segments: u64::from(l.capacity_segments),
        reserved_bytes: l.reserved_bytes, unwritten_bytes: l.unwritten_bytes, waiting: l.waiting,
        archive: archive, archived_lsn: shown.map(|a| a.lsn.0), unarchived_segments: shown.map(|a| a.lacks),
        archive_failures: shown.map(|a| a.failures), last_archive_failure: last.map_or(V::Null, V::Ts),
        last_archive_error: error,
    }
}

fn checkpoints(s: &System) -> Row {
    let (c, l, p) = (s.engine.checkpoint_status(), s.engine.log_status(), s.engine.pool_status());
    row! {
        recorded: c.count, last: c.last.map_or(V::Null, V::Ts), redo_lsn: l.redo_lsn.0,
        redo_bytes: l.end.0.saturating_sub(l.redo_lsn.0), redo_bound: l.redo_bound, dirty_pages: p.dirty,
        pages_written: p.counters.written + p.counters.dirty_evictions, pages_waiting: s.engine.store().pages_waiting(),
        rollbacks_left: s.engine.losers_left(),
        restart_estimate_ms: ms(s.engine.store().restart_estimate().as_nanos() as u64),
    }
}

fn io(s: &System) -> Vec<Row> {
    let row = |u: terrace_storage::IoUsage| {
        row! {
            device: &*u.device, purpose: u.purpose.name(), reads: u.reads.count(), read_bytes: u.read_bytes,
            read_ms: ms(u.reads.nanos), writes: u.writes.count(), write_bytes: u.write_bytes,
            write_ms: ms(u.writes.nanos),
            syncs: u.syncs.count(), sync_ms: ms(u.syncs.nanos),
        }
    };
    s.engine.store().io().into_iter().map(row).collect()
}
