//! SQL in a program: `cargo run -p terrace --example embed_sql [DIR]`.

use terrace::arrow::util::pretty::pretty_format_batches;
use terrace::{Database, Options, Result, params};

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).unwrap_or("embedded".into());
    // Any executor will do: the database brings its own threads.
    futures::executor::block_on(run(&dir))
}

async fn run(dir: &str) -> Result<()> {
    let db = Database::open(dir, Options::create()).await?;
    let mut session = db.session()?;
    session.execute("CREATE TABLE IF NOT EXISTS visits (id bigint PRIMARY KEY, page text NOT NULL)", &[]).await?;
    let had = session.execute("SELECT id FROM visits", &[]).await? as i64;
    let insert = session.prepare("INSERT INTO visits VALUES ($1, $2)").await?;
    let mut txn = session.transaction().await?;
    for (number, page) in ["/", "/about", "/"].into_iter().enumerate() {
        txn.execute(&insert, params![had + number as i64, page]).await?;
    }
    txn.commit().await?;
    let batches = session.query("SELECT page, count(*) AS visits FROM visits GROUP BY page ORDER BY page", &[]).await?;
    println!("{}", pretty_format_batches(&batches).expect("columns that print"));
    drop(session);
    db.close().await
}
