//! What one thread does in a second with an embedded database: look-ups and updates through prepared statements and
//! through the typed table API, 100,000 rows, all in memory. Background work runs on threads of its own.
//!
//! ```sh
//! cargo run --release -p terrace --example rates [-- SECONDS]
//! ```

use terrace::engine::{EngineError, Isolation, Peek};
use terrace::{Database, Datum, Error, Options, Result, params};

const ROWS: i64 = 100_000;

/// Operations a second at random keys (xorshift).
async fn rate<E: std::fmt::Debug>(
    db: &Database,
    seconds: f64,
    mut operation: impl AsyncFnMut(i64) -> Result<(), E>,
) -> f64 {
    let env = db.engine().env();
    let (start, mut count, mut state) = (env.now(), 0u32, 88_172_645_463_325_252_u64);
    let elapsed = || (env.now().0 - start.0) as f64 / 1e9;
    while elapsed() < seconds {
        for _ in 0..256 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            operation((state % ROWS as u64) as i64).await.expect("every key is there");
        }
        count += 256;
    }
    f64::from(count) / elapsed()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let seconds = std::env::args().nth(1).map_or(5.0, |s| s.parse().expect("seconds"));
    let dir = std::env::temp_dir().join(format!("terrace-rates-{}", std::process::id()));
    let db = Database::open(&dir, Options::create()).await?;
    let mut session = db.session()?;
    session.execute("CREATE TABLE t (id bigint PRIMARY KEY, n bigint NOT NULL, filler text NOT NULL)", &[]).await?;
    let fill = format!("INSERT INTO t SELECT i, i, repeat(' ', 84) FROM generate_series(0, {}) AS g(i)", ROWS - 1);
    session.execute(&fill, &[]).await?;

    let select = session.prepare("SELECT n FROM t WHERE id = $1").await?;
    let reads = rate(&db, seconds, async |id| session.query(&select, params![id]).await.map(drop)).await;
    println!("prepared SELECT:                         {reads:>9.0}/s");
    session.execute("SET synchronous_commit = off", &[]).await?;
    let update = session.prepare("UPDATE t SET n = n + 1 WHERE id = $1").await?;
    let updates = rate(&db, seconds, async |id| session.execute(&update, params![id]).await.map(drop)).await;
    println!("prepared UPDATE, commits not waited for:  {updates:>9.0}/s");

    let (table, version) = (db.catalog().table("t").expect("it was made").clone(), db.catalog().version());
    let key = &table.indexes[0];
    let reads =
        rate(&db, seconds, async |id| match db.engine().peek(version, &table, key, &[Datum::Int8(id)], |_| ())? {
            Peek::Found(()) => Ok::<_, EngineError>(()),
            _ => panic!("every key is there, and nobody writes"),
        });
    println!("typed, peek:                             {:>9.0}/s", reads.await);
    let reads = rate(&db, seconds, async |id| {
        let mut txn = db.begin(Isolation::ReadCommitted);
        assert!(txn.get(&table, key, &[Datum::Int8(id)]).await?.is_some());
        txn.commit().await
    });
    println!("typed, a transaction each:               {:>9.0}/s", reads.await);
    let updates = rate(&db, seconds, async |id| {
        let mut txn = db.begin(Isolation::ReadCommitted);
        let (rid, row, version) = txn.get(&table, key, &[Datum::Int8(id)]).await?.expect("every key is there");
        let mut new = row.view(&table).to_datums();
        new[1] = Datum::Int8(id);
        txn.update(&table, rid, version, &new).await?;
        txn.commit_async().await
    });
    println!("typed UPDATE, commits not waited for:    {:>9.0}/s", updates.await);
    drop(session);
    db.close().await?;
    std::fs::remove_dir_all(&dir).map_err(|error| Error::Io { path: dir.display().to_string(), error })
}
