//! Queries that outgrow their memory go on in the temp tablespace.

use futures::StreamExt;
use std::fs;
use std::path::{Path, PathBuf};
use terrace::Instance;
use terrace::sql::{Outcome, Session};

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Bytes of files below a directory.
fn bytes_in(dir: &Path) -> u64 {
    let sizes = fs::read_dir(dir).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let kind = entry.metadata().unwrap();
        if kind.is_dir() { bytes_in(&entry.path()) } else { kind.len() }
    });
    sizes.sum()
}

/// Runs a statement; counts its rows, and the most bytes of temporary files seen between batches. The first error's
/// SQLSTATE.
async fn run(session: &mut Session, sql: &str, temp: &Path) -> Result<(usize, u64), &'static str> {
    let statement = session.prepare(sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    match session.execute(&statement, vec![]).await.map_err(|e| e.state.0)? {
        Outcome::Rows { mut stream, .. } => {
            let (mut rows, mut most) = (0, 0);
            while let Some(batch) = stream.next().await {
                rows += batch.map_err(|e| e.state.0)?.num_rows();
                most = most.max(bytes_in(temp));
            }
            Ok((rows, most))
        }
        _ => Ok((0, 0)),
    }
}

const ROWS: usize = 60_000;
/// Long enough that sorting the table takes some 12 MB.
const LOAD: &str = "INSERT INTO t SELECT a.n + 1000 * b.n, 'a value that is long enough to fill the memory of a sort, \
                    with its own number ' || (a.n * 7919 + b.n * 104729) FROM digits a, digits b WHERE b.n = ";

async fn open(dir: &Path) -> (Instance, Session) {
    let instance = Instance::open(dir).await.unwrap();
    let session = instance.sql().session("terrace");
    (instance, session)
}

#[test]
fn sorts_and_aggregates_spill_to_the_temp_tablespace() {
    let scratch = Scratch(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("spill-{}", std::process::id())));
    fs::create_dir_all(scratch.0.join("fast")).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .thread_stack_size(terrace::SQL_STACK)
        .build()
        .unwrap();
    runtime.block_on(async {
        let dir = scratch.0.join("db");
        let settings = scratch.0.join("settings.toml");
        let config = "[memory]\npool = \"16MB\"\nqueries = \"4MB\"\n[log]\nsegment_size = \"4MB\"\n\
                      redo_bound = \"32MB\"\nretention = \"32MB\"\n\
                      [devices.main]\n[devices.fast]\npath = \"../fast\"\n[tablespaces]\ntemp.device = \"fast\"\n";
        fs::write(&settings, config).unwrap();
        Instance::create(&dir, Some(&settings)).await.unwrap();
        let temp = scratch.0.join("fast/temp");
        assert!(temp.is_dir());
        fs::write(temp.join("leftover"), "of a run that was killed").unwrap();
        let (instance, mut session) = open(&dir).await;
        assert_eq!(bytes_in(&temp), 0, "emptied at the start");
        for sql in ["CREATE TABLE digits (n bigint)", "CREATE TABLE t (k bigint PRIMARY KEY, v text)"] {
            run(&mut session, sql, &temp).await.unwrap();
        }
        for thousand in 0..1000 {
            run(&mut session, &format!("INSERT INTO digits VALUES ({thousand})"), &temp).await.unwrap();
        }
        // In parts that fit: what a statement is about to change cannot spill.
        for part in 0..ROWS / 1000 {
            run(&mut session, &format!("{LOAD}{part}"), &temp).await.unwrap();
        }
        let sorted = "SELECT v FROM t ORDER BY v";
        let grouped = "SELECT v, count(*) FROM t GROUP BY v ORDER BY v";
        for sql in [sorted, grouped] {
            let (rows, most) = run(&mut session, sql, &temp).await.unwrap_or_else(|state| panic!("{sql}: {state}"));
            assert_eq!(rows, ROWS, "{sql}");
            assert!(most > 1 << 20, "{sql} spilled {most} bytes");
        }
        assert_eq!(bytes_in(&temp), 0, "a query that ended keeps no files");
        drop(session);
        instance.close().await.unwrap();

        // Where the files may not grow, the query fails and the database goes on.
        let small = config.replace("temp.device", "temp.capacity = \"1MB\"\ntemp.device");
        fs::write(dir.join("terrace.toml"), small).unwrap();
        let (instance, mut session) = open(&dir).await;
        assert_eq!(run(&mut session, sorted, &temp).await, Err("53100"));
        assert_eq!(run(&mut session, "SELECT count(*) FROM t", &temp).await, Ok((1, 0)));
        // What cannot spill says how much there is.
        let join = "SELECT count(*) FROM t a JOIN t b ON a.v = b.v";
        assert_eq!(run(&mut session, join, &temp).await, Err("53200"));
        drop(session);
        instance.close().await.unwrap();
    });
}
