//! sqlx's macros: `run` compiles this against the server, where they ask for the types of each statement. What they
//! find is checked by the compiler: it takes no other types.
use chrono::{DateTime, NaiveDate, Utc};
use programs::{Result, checks, same};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use sqlx::PgPool;

async fn pool() -> Result<PgPool> {
    Ok(PgPool::connect(env!("DATABASE_URL")).await?)
}

#[derive(Debug, PartialEq, sqlx::Type)]
#[sqlx(type_name = "mood", rename_all = "snake_case")]
enum Mood {
    Sad,
    VeryHappy,
}

#[derive(Debug)]
struct Pet {
    id: i32,
    name: String,
    weight: Option<Decimal>,
    tags: Vec<String>,
}

async fn macro_query() -> Result {
    let row = sqlx::query!("SELECT id, name, born, added FROM people WHERE name = $1", "Ada")
        .fetch_one(&pool().await?)
        .await?;
    let (id, name, born, added): (i64, String, Option<NaiveDate>, DateTime<Utc>) =
        (row.id, row.name, row.born, row.added);
    same((id, name, born), (1, "Ada".to_owned(), NaiveDate::from_ymd_opt(1815, 12, 10)))?;
    same(added.timestamp() > 0, true)
}

async fn macro_query_as() -> Result {
    let ids = [1, 2];
    let sql = sqlx::query_as!(Pet, "SELECT id, name, weight, tags FROM pets WHERE id = ANY($1) ORDER BY id", &ids[..]);
    let pets = sql.fetch_all(&pool().await?).await?;
    let found: Vec<_> = pets.into_iter().map(|pet| (pet.id, pet.name, pet.weight, pet.tags.len())).collect();
    let weight = Some(Decimal::new(155, 2));
    same(found, [(1, "pet 1".to_owned(), weight, 2), (2, "pet 2".to_owned(), weight, 2)])
}

async fn macro_query_scalar() -> Result {
    let pool = pool().await?;
    let count: Option<i64> = sqlx::query_scalar!("SELECT count(*) FROM pets").fetch_one(&pool).await?;
    let known: i64 = sqlx::query_scalar!(r#"SELECT count(*) AS "count!" FROM pets"#).fetch_one(&pool).await?;
    let about: Option<Value> = sqlx::query_scalar!("SELECT about FROM pets WHERE id = 3").fetch_one(&pool).await?;
    same((count, known, about), (Some(3), 3, Some(json!({"n": 3}))))
}

async fn macro_changes() -> Result {
    let pool = pool().await?;
    let mut tx = pool.begin().await?;
    let insert = sqlx::query!(
        "INSERT INTO pets (id, owner, name, about) VALUES ($1, $2, $3, $4) RETURNING id, tags",
        7,
        2,
        "x",
        json!(1)
    );
    let row = insert.fetch_one(&mut *tx).await?;
    let (id, tags): (i32, Vec<String>) = (row.id, row.tags);
    same((id, tags.len()), (7, 0))?;
    let done = sqlx::query!("UPDATE pets SET weight = $1 WHERE id = $2", Decimal::ONE, id).execute(&mut *tx).await?;
    same(done.rows_affected(), 1)?;
    let gone = sqlx::query!("DELETE FROM pets WHERE id = $1 RETURNING weight", id).fetch_optional(&mut *tx).await?;
    same(gone.and_then(|row| row.weight), Some(Decimal::ONE))
}

async fn macro_own_types() -> Result {
    let pool = pool().await?;
    let sql =
        sqlx::query!(r#"SELECT mood AS "mood: Mood", name AS "name?" FROM people WHERE mood = $1"#, Mood::Sad as Mood);
    let row = sql.fetch_one(&pool).await?;
    let (mood, name): (Option<Mood>, Option<String>) = (row.mood, row.name);
    same((mood, name), (Some(Mood::Sad), Some("Ada".to_owned())))?;
    let happy =
        sqlx::query_scalar!(r#"SELECT $1::mood AS "mood!: Mood""#, Mood::VeryHappy as Mood).fetch_one(&pool).await?;
    same(happy, Mood::VeryHappy)
}

async fn macro_outer_join() -> Result {
    let sql = sqlx::query!("SELECT a.name, b.id AS pet FROM people a FULL JOIN pets b ON b.owner = a.id");
    let rows = sql.fetch_all(&pool().await?).await?;
    let mut found: Vec<(Option<String>, Option<i32>)> = rows.into_iter().map(|row| (row.name, row.pet)).collect();
    found.sort();
    let of = |name: &str, pet| (Some(name.to_owned()), pet);
    same(found, [of("Ada", Some(1)), of("Ada", Some(2)), of("Ada", Some(3)), of("Bob", None)])
}

async fn macro_job_queue() -> Result {
    let sql = sqlx::query!("SELECT id FROM pets WHERE owner = $1 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED", 1);
    same(sql.fetch_one(&pool().await?).await?.id, 1)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    checks!(
        macro_query,
        macro_query_as,
        macro_query_scalar,
        macro_changes,
        macro_own_types,
        macro_outer_join,
        macro_job_queue,
    );
}
