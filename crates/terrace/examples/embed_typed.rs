//! The typed table API in a program, without SQL: `cargo run -p terrace --example embed_typed [DIR]`.

use std::ops::Bound;
use terrace::engine::{
    ColumnDef, DataType, DatumRef, IndexRange, IndexSpec, Isolation, Scan, ScanDirection, TableSpec,
};
use terrace::{Database, Datum, Options, Result};

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).unwrap_or("embedded".into());
    futures::executor::block_on(run(&dir))
}

async fn run(dir: &str) -> Result<()> {
    let db = Database::open(dir, Options::create()).await?;
    let mut txn = db.begin(Isolation::ReadCommitted);
    let existing = db.catalog().table("scores").cloned();
    let scores = match existing {
        Some(table) => table,
        None => {
            let key =
                IndexSpec { name: "scores_pkey".into(), columns: vec![0], unique: true, primary: true, extras: None };
            let columns =
                vec![ColumnDef::new("player", DataType::Text).not_null(), ColumnDef::new("score", DataType::Int8)];
            txn.create_table(TableSpec { name: "scores".into(), columns, indexes: vec![key] }).await?
        }
    };
    for (player, gain) in [("ada", 3), ("grace", 5)] {
        match txn.get(&scores, &scores.indexes[0], &[player.into()]).await? {
            None => drop(txn.insert(&scores, &[player.into(), Datum::Int8(gain)]).await?),
            Some((rid, row, version)) => {
                let DatumRef::Int8(score) = row.view(&scores).get(1) else { continue };
                txn.update(&scores, rid, version, &[player.into(), Datum::Int8(score + gain)]).await?;
            }
        }
    }
    txn.commit().await?;

    let mut txn = db.begin(Isolation::RepeatableRead);
    let range = IndexRange {
        index: scores.indexes[0].clone(),
        from: Bound::Included(vec!["a".into()]),
        to: Bound::Unbounded,
        direction: ScanDirection::Forward,
    };
    let mut scanner = txn.scan(&scores, Scan::Index(range));
    loop {
        let rows = scanner.next_batch(100).await?;
        if rows.is_empty() {
            break;
        }
        for (_, row, _) in &rows {
            println!("{} {}", row.view(&scores).get(0), row.view(&scores).get(1));
        }
    }
    drop((scanner, txn));
    db.close().await
}
