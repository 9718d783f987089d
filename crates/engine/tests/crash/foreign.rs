//! Foreign keys across crashes: rows that refer to a key are written while other transactions remove it, the power
//! goes, and no row is left without its key.

use crate::Replay;
use crate::world::World;
use std::sync::Arc;
use std::time::Duration;
use terrace_device::fault::Choice;
use terrace_engine::{
    Action, Change, ColumnDef, DataType, Database, Datum, EngineError, ForeignKey, IndexSpec, Isolation, Result, Scan,
    Table, TableSpec, Txn, UpdateOutcome,
};
use terrace_env::Env;
use terrace_storage::{ObjectId, Rid};

const PARENTS: i32 = 8;
const CHILDREN: i32 = 40;

fn random(env: &Env, below: i32) -> i32 {
    (env.random_u64() % below as u64) as i32
}

fn spec(name: &str) -> TableSpec {
    let columns = vec![
        ColumnDef::new("id", DataType::Int4).not_null(),
        ColumnDef::new("v", DataType::Int4),
        ColumnDef::new("t", DataType::Text),
    ];
    let key = IndexSpec { name: format!("{name}_pkey"), columns: vec![0], unique: true, primary: true, extras: None };
    TableSpec { name: name.into(), columns, indexes: vec![key] }
}

/// Tables `pa` and `ch`; `ch.v` refers to `pa.id`, with an index on it or not, and in one of the ways there are.
async fn set_up(db: Database, seed: u64) -> Result<()> {
    let mut txn = db.begin(Isolation::ReadCommitted);
    let pa = txn.create_table(spec("pa")).await?;
    let ch = txn.create_table(spec("ch")).await?;
    let actions = [Action::NoAction, Action::Cascade, Action::SetNull, Action::Restrict];
    let key = ForeignKey {
        oid: ObjectId(0),
        name: "k".into(),
        table: ch.oid,
        columns: vec![1],
        referenced: pa.oid,
        key: vec![0],
        index: pa.indexes[0].oid,
        on_delete: actions[seed as usize % 4],
        on_update: actions[seed as usize / 4 % 4],
        set: vec![],
        full: false,
        deferrable: true,
        deferred: seed / 16 % 2 == 1,
        validated: true,
    };
    let ch = txn.add_foreign_key(&ch, key).await?;
    if !seed.is_multiple_of(3) {
        let index = IndexSpec { name: "ch_v".into(), columns: vec![1], unique: false, primary: false, extras: None };
        txn.create_index(&ch, index).await?;
    }
    for id in 0..PARENTS {
        txn.insert(&pa, &row(id, 0)).await?;
    }
    txn.commit().await
}

fn row(id: i32, v: i32) -> Vec<Datum> {
    vec![Datum::Int4(id), Datum::Int4(v), Datum::text("x".repeat(id as usize % 5 * 60))]
}

async fn find(txn: &mut Txn, table: &Table, id: i32) -> Result<Option<(Rid, Vec<Datum>, terrace_engine::Version)>> {
    let found = txn.get(table, &table.indexes[0], &[Datum::Int4(id)]).await?;
    Ok(found.map(|(rid, row, version)| (rid, row.view(table).to_datums(), version)))
}

/// Changes what the statement entails.
async fn follow(txn: &mut Txn) -> Result<()> {
    while let Some(entailed) = txn.next_consequence().await? {
        for (rid, row, version) in &entailed.rows {
            let outcome = match &entailed.change {
                Change::Delete => txn.delete(&entailed.table, *rid, *version).await?,
                Change::Set(set) => {
                    let mut new = row.view(&entailed.table).to_datums();
                    set.iter().for_each(|(at, value)| new[*at] = value.clone().unwrap_or(Datum::Null));
                    txn.update(&entailed.table, *rid, *version, &new).await?
                }
            };
            if matches!(outcome, UpdateOutcome::Changed { .. }) {
                return Err(EngineError::internal("the row changed meanwhile: once more"));
            }
        }
    }
    Ok(())
}

/// One statement of either table.
async fn statement(env: &Env, txn: &mut Txn, (pa, ch): (&Table, &Table)) -> Result<()> {
    txn.begin_statement();
    let (parent, child) = (random(env, PARENTS), random(env, CHILDREN));
    match random(env, 8) {
        0..=2 => match find(txn, ch, child).await? {
            None => drop(txn.insert(ch, &row(child, parent)).await?),
            Some((rid, _, version)) => drop(txn.update(ch, rid, version, &row(child, parent)).await?),
        },
        3 => {
            if let Some((rid, _, version)) = find(txn, ch, child).await? {
                txn.delete(ch, rid, version).await?;
            }
        }
        kind => match find(txn, pa, parent).await? {
            None => drop(txn.insert(pa, &row(parent, 0)).await?),
            Some((rid, _, version)) if kind < 6 => drop(txn.delete(pa, rid, version).await?),
            // Another key, or another column.
            Some((rid, old, version)) => {
                let Datum::Int4(id) = old[0] else { panic!("a key is a number") };
                let to = if kind == 6 { random(env, PARENTS) } else { id };
                txn.update(pa, rid, version, &row(to, random(env, 100))).await?;
            }
        },
    }
    follow(txn).await
}

async fn client(env: Env, db: Database) {
    loop {
        let isolation = [Isolation::ReadCommitted, Isolation::RepeatableRead][random(&env, 2) as usize];
        let mut txn = db.begin(isolation);
        let catalog = txn.catalog();
        let (Some(pa), Some(ch)) = (catalog.table("pa"), catalog.table("ch")) else { return };
        let mut result = Ok(());
        for _ in 0..1 + random(&env, 4) {
            let mark = txn.savepoint();
            result = statement(&env, &mut txn, (pa, ch)).await;
            if result.is_err() && random(&env, 2) == 0 {
                result = txn.rollback_to(mark).await;
            }
            if result.is_err() {
                break;
            }
        }
        let ended = match result {
            Ok(()) if random(&env, 5) > 0 => txn.commit().await,
            _ => txn.rollback().await,
        };
        if matches!(ended, Err(e) if matches!(e.state.0, "58030" | "57P01")) {
            return; // The power is gone.
        }
        env.sleep(Duration::from_micros(10)).await;
    }
}

async fn values(txn: &mut Txn, table: &Arc<Table>, column: usize) -> Result<Vec<Datum>> {
    let mut scanner = txn.scan(table, Scan::Full);
    let mut values = vec![];
    loop {
        let batch = scanner.next_batch(100).await?;
        if batch.is_empty() {
            return Ok(values);
        }
        values.extend(batch.iter().map(|(_, row, _)| row.view(table).get(column).to_datum()));
    }
}

/// How many rows refer to something, all of which is there.
async fn whole(db: Database) -> Result<usize> {
    let mut txn = db.begin(Isolation::RepeatableRead);
    txn.begin_statement();
    let catalog = txn.catalog();
    let (pa, ch) = (catalog.table("pa").expect("it was made"), catalog.table("ch").expect("it was made"));
    assert_eq!((ch.foreign_keys.len(), pa.referenced_by.len()), (1, 1), "the foreign key is there");
    let keys = values(&mut txn, pa, 0).await?;
    let refer: Vec<Datum> = values(&mut txn, ch, 1).await?.into_iter().filter(|v| *v != Datum::Null).collect();
    let orphans: Vec<&Datum> = refer.iter().filter(|v| !keys.contains(v)).collect();
    assert!(orphans.is_empty(), "rows without their key: {orphans:?}");
    txn.rollback().await?;
    Ok(refer.len())
}

#[test]
fn no_row_is_left_without_its_key() {
    let mut referring = 0;
    for seed in 0..32 {
        let _replay = Replay(seed);
        let world = World::new(seed, None, false);
        let db = world.create().expect("creation on sound devices");
        world.sim.run(set_up(db.clone(), seed)).expect("nothing fails yet");
        let crashes = !seed.is_multiple_of(4);
        if crashes {
            world.recorder.power_off_at(world.recorder.events() + 100 + world.sim.env().random_u64() % 1500);
        }
        let (env, off) = (world.sim.env(), world.recorder.clone());
        world.sim.run({
            let db = db.clone();
            async move {
                for _ in 0..4 {
                    env.spawn("client", client(env.clone(), db.clone()));
                }
                let end = env.now().0 + Duration::from_millis(300).as_nanos() as u64;
                while !off.is_off() && env.now().0 < end {
                    env.sleep(Duration::from_millis(1)).await;
                }
            }
        });
        referring += match crashes {
            false => world.sim.run(whole(db)).unwrap_or_else(|e| panic!("seed {seed}: {e}")),
            true => {
                drop(db);
                let choice = [Choice::None, Choice::Random(seed), Choice::All][seed as usize / 4 % 3];
                let world = World::new(seed, Some(world.crash(choice)), false);
                let db = world.open().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
                let problems = world.sim.run({
                    let db = db.clone();
                    async move { db.check().await }
                });
                assert_eq!(problems.unwrap_or_else(|e| panic!("seed {seed}: {e}")), Vec::<String>::new());
                world.sim.run(whole(db)).unwrap_or_else(|e| panic!("seed {seed}: {e}"))
            }
        };
    }
    assert!(referring > 100, "only {referring} rows referred to anything");
}
