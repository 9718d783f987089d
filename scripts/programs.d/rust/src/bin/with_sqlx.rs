//! sqlx, as its documentation uses it: migrations from a folder, a pool, rows as structures, values in binary, types
//! that a user made, nested transactions, COPY, notifications, kinds of errors, and what it asks of a statement
//! (`describe`). The macros, which do so when they are compiled, are in `with_sqlx_macros`.
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use futures_util::{StreamExt, TryStreamExt};
use programs::{Result, checks, same, setting, version};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use sqlx::error::ErrorKind;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::types::{Oid, PgInterval};
use sqlx::postgres::{PgAdvisoryLock, PgConnectOptions, PgDatabaseError, PgListener, PgPoolOptions, PgSslMode};
use sqlx::types::Json;
use sqlx::{
    AssertSqlSafe, Column, ColumnOrigin, ConnectOptions, Connection, Either, Executor, FromRow, PgConnection, PgPool,
    Postgres, QueryBuilder, Row, SqlSafeStr, Statement, TypeInfo,
};
use std::fmt::Debug;
use std::time::Duration;
use uuid::Uuid;

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

fn options() -> PgConnectOptions {
    let port = setting("PGPORT").parse().expect("a port");
    let options =
        PgConnectOptions::new_without_pgpass().host(&setting("PGHOST")).port(port).ssl_mode(PgSslMode::Prefer);
    options.username(&setting("PGUSER")).database(&setting("PGDATABASE"))
}

async fn connect() -> Result<PgConnection> {
    Ok(options().connect().await?)
}

async fn pool(most: u32) -> Result<PgPool> {
    let wait = Duration::from_secs(10);
    Ok(PgPoolOptions::new().max_connections(most).acquire_timeout(wait).connect_with(options()).await?)
}

fn failed<T>(result: std::result::Result<T, sqlx::Error>, code: &str) -> Result<Box<PgDatabaseError>> {
    match result {
        Ok(_) => Err(format!("no error instead of {code}").into()),
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(code) => Ok(error.downcast()),
        Err(error) => Err(error.into()),
    }
}

async fn connects() -> Result {
    let given = options().application_name("part").options([("statement_timeout", "7s")]).statement_cache_capacity(5);
    let mut db = given.connect().await?;
    db.ping().await?;
    let asked = "SELECT current_setting('application_name'), current_setting('statement_timeout')";
    same(sqlx::query_as::<_, (String, String)>(asked).fetch_one(&mut db).await?, ("part".into(), "7s".into()))?;
    db.close().await?;
    failed(options().database("nothing").connect().await, "3D000").map(drop)
}

async fn migrations() -> Result {
    let pool = pool(4).await?;
    // Several programs that begin at a time: a lock lets one after another migrate.
    let (a, b, c) = tokio::join!(MIGRATIONS.run(&pool), MIGRATIONS.run(&pool), MIGRATIONS.run(&pool));
    a.and(b).and(c)?;
    let applied = "SELECT array_agg(version ORDER BY version), bool_and(success) FROM _sqlx_migrations";
    same(sqlx::query_as::<_, (Vec<i64>, bool)>(applied).fetch_one(&pool).await?, (vec![1, 2, 3], true))?;
    MIGRATIONS.undo(&pool, 1).await?;
    failed(sqlx::query("SELECT * FROM pets").execute(&pool).await, "42P01")?;
    same(sqlx::query_as::<_, (Vec<i64>, bool)>(applied).fetch_one(&pool).await?, (vec![1], true))?;
    MIGRATIONS.run(&pool).await?;
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    same(sqlx::query_scalar::<_, i64>(locks).fetch_one(&pool).await?, 0)
}

async fn changed_migration() -> Result {
    let mut db = connect().await?;
    sqlx::query("UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 2").execute(&mut db).await?;
    let refused = matches!(MIGRATIONS.run_direct(None, &mut db, false).await, Err(MigrateError::VersionMismatch(2)));
    let checksum = MIGRATIONS.iter().find(|one| one.version == 2).map(|one| one.checksum.to_vec());
    let put_back = "UPDATE _sqlx_migrations SET checksum = $1 WHERE version = 2";
    sqlx::query(put_back).bind(checksum).execute(&mut db).await?;
    same(refused, true)
}

#[derive(Debug, PartialEq, Clone, Copy, sqlx::Type)]
#[sqlx(type_name = "mood", rename_all = "snake_case")]
enum Mood {
    Sad,
    VeryHappy,
}

#[derive(Debug, PartialEq, Clone, sqlx::Type)]
#[sqlx(type_name = "item")]
struct Item {
    name: String,
    price: Option<Decimal>,
}

#[derive(Debug, PartialEq, Clone, Copy, sqlx::Type)]
#[sqlx(type_name = "percent")]
struct Percent(i32);

#[derive(Debug, PartialEq, Clone, Copy, sqlx::Type)]
#[sqlx(transparent)]
struct PersonId(i64);

#[derive(Debug, PartialEq, FromRow)]
struct Person {
    id: PersonId,
    name: String,
    #[sqlx(rename = "mood")]
    feels: Option<Mood>,
    born: Option<NaiveDate>,
    #[sqlx(default)]
    pets: i64,
}

async fn rows_as_structures() -> Result {
    let pool = pool(1).await?;
    let born = NaiveDate::from_ymd_opt(1815, 12, 10);
    let insert = "INSERT INTO people (name, mood, born) VALUES ($1, $2, $3) RETURNING *";
    let ada: Person =
        sqlx::query_as(insert).bind("Ada").bind(Some(Mood::VeryHappy)).bind(born).fetch_one(&pool).await?;
    same(&ada, &Person { id: PersonId(1), name: "Ada".into(), feels: Some(Mood::VeryHappy), born, pets: 0 })?;
    let bob = sqlx::query(insert).bind("Bob").bind(None::<Mood>).bind(None::<NaiveDate>).execute(&pool).await?;
    same(bob.rows_affected(), 1)?;
    let pet = "INSERT INTO pets (id, owner, name, weight, tags, about) VALUES ($1, $2, $3, $4, $5, $6)";
    for n in 1..=3 {
        let query = sqlx::query(pet).bind(n).bind(ada.id).bind(format!("pet {n}")).bind(Decimal::new(155, 2));
        query.bind(vec!["a", "b, c"]).bind(Json(json!({"n": n}))).execute(&pool).await?;
    }
    let all = "SELECT p.*, (SELECT count(*) FROM pets WHERE owner = p.id) AS pets FROM people p ORDER BY id";
    let people: Vec<Person> = sqlx::query_as(all).fetch_all(&pool).await?;
    same(
        people.iter().map(|p| (p.name.as_str(), p.feels, p.pets)).collect::<Vec<_>>(),
        [("Ada", Some(Mood::VeryHappy), 3), ("Bob", None, 0)],
    )?;
    let none =
        sqlx::query_as::<_, Person>("SELECT * FROM people WHERE id = $1").bind(9i64).fetch_optional(&pool).await?;
    same(none, None)?;
    let row = sqlx::query("SELECT tags, about->'n', weight, weight::text AS shown FROM pets WHERE id = $1")
        .bind(2)
        .fetch_one(&pool)
        .await?;
    same((row.try_get(0)?, row.try_get(1)?), (vec!["a".to_owned(), "b, c".to_owned()], json!(2)))?;
    same(
        (row.try_get::<Decimal, _>("weight")?.to_string(), row.try_get("shown")?),
        ("1.55".to_owned(), "1.55".to_owned()),
    )?;
    same(row.try_get::<i32, _>("tags").is_err(), true)
}

/// A value, and NULL, as a parameter and as a result.
async fn both_ways<T>(db: &mut PgConnection, of: &str, wanted: T) -> Result
where
    T: for<'q> sqlx::Encode<'q, Postgres> + for<'r> sqlx::Decode<'r, Postgres> + sqlx::Type<Postgres>,
    T: PartialEq + Debug + Clone + Send + Sync + Unpin + 'static,
{
    let query = || AssertSqlSafe(format!("SELECT $1::{of}"));
    let found: T =
        sqlx::query_scalar(query()).bind(wanted.clone()).fetch_one(&mut *db).await.map_err(|e| format!("{of}: {e}"))?;
    same(found, wanted).map_err(|error| format!("{of}: {error}"))?;
    let null: Option<T> = sqlx::query_scalar(query()).bind(None::<T>).fetch_one(db).await?;
    same(null.is_none(), true).map_err(|error| format!("{of}: {error}").into())
}

async fn values_both_ways() -> Result {
    let db = &mut connect().await?;
    both_ways(db, "bool", true).await?;
    both_ways(db, "smallint", i16::MIN).await?;
    both_ways(db, "int", i32::MIN).await?;
    both_ways(db, "bigint", i64::MIN).await?;
    both_ways(db, "oid", Oid(u32::MAX)).await?;
    both_ways(db, "real", 0.1f32).await?;
    both_ways(db, "double precision", f64::MAX).await?;
    for text in ["0", "-1.50", "79228162514264337593543950335", "0.0000000000000000000000000001"] {
        both_ways(db, "numeric", text.parse::<Decimal>()?).await?;
    }
    both_ways(db, "text", "it's é \u{1f600}\n".to_owned()).await?;
    both_ways(db, "varchar(3)", "abc".to_owned()).await?;
    both_ways(db, "char(3)", "ab ".to_owned()).await?;
    both_ways(db, "name", "a name".to_owned()).await?;
    both_ways(db, "bytea", (0..=255).collect::<Vec<u8>>()).await?;
    both_ways(db, "uuid", Uuid::from_u128(5)).await?;
    both_ways(db, "json", json!({"a": [1, null, "é"]})).await?;
    both_ways(db, "jsonb", Json(vec![("a".to_owned(), 1.5)])).await?;
    let day = NaiveDate::from_ymd_opt(2024, 2, 29).ok_or("a day")?;
    let noon = NaiveTime::from_hms_micro_opt(12, 0, 1, 123_456).ok_or("a time")?;
    both_ways(db, "date", day).await?;
    both_ways(db, "time", noon).await?;
    both_ways(db, "timestamp", day.and_time(noon)).await?;
    both_ways(db, "timestamptz", day.and_time(noon).and_utc()).await?;
    both_ways(db, "interval", PgInterval { months: 14, days: -3, microseconds: 1_500_000 }).await
}

async fn arrays_both_ways() -> Result {
    let db = &mut connect().await?;
    both_ways(db, "int[]", vec![Some(1), None]).await?;
    both_ways(db, "bigint[]", Vec::<i64>::new()).await?;
    both_ways(db, "text[]", vec!["a, b".to_owned(), "\"\\".to_owned(), "NULL".to_owned()]).await?;
    both_ways(db, "uuid[]", vec![Uuid::from_u128(1)]).await?;
    both_ways(db, "numeric[]", vec![Decimal::new(15, 1)]).await?;
    both_ways(db, "timestamptz[]", vec![DateTime::<Utc>::UNIX_EPOCH]).await?;
    both_ways(db, "jsonb[]", vec![Json(1)]).await?;
    both_ways(db, "float8[]", vec![1.5f64]).await?;
    both_ways(db, "bool[]", vec![true, false]).await
}

async fn own_types_both_ways() -> Result {
    let db = &mut connect().await?;
    both_ways(db, "mood", Mood::VeryHappy).await?;
    both_ways(db, "mood[]", vec![Some(Mood::Sad), None]).await?;
    let item = Item { name: "a, \"b\"".into(), price: Some(Decimal::new(5, 1)) };
    both_ways(db, "item", item.clone()).await?;
    both_ways(db, "item[]", vec![item.clone(), Item { name: String::new(), price: None }]).await?;
    let rows = sqlx::query("SELECT ROW(1, 'x'::text), $1::item").bind(&item).fetch_one(&mut *db).await?;
    same((rows.try_get(0)?, rows.try_get(1)?), ((1, "x".to_owned()), item))?;
    let unknown = sqlx::query("SELECT $1").bind(Nothing::Any).execute(db).await;
    same(matches!(unknown, Err(sqlx::Error::TypeNotFound { type_name }) if type_name == "nothing"), true)
}

async fn domains() -> Result {
    let db = &mut connect().await?;
    let checked = "SELECT $1::percent";
    same(sqlx::query_scalar::<_, i32>(checked).bind(7).fetch_one(&mut *db).await?, 7)?;
    failed(sqlx::query(checked).bind(101).execute(&mut *db).await, "23514")?;
    same(sqlx::query_scalar::<_, i32>(checked).bind(Percent(7)).fetch_one(&mut *db).await?, 7)?;
    failed(sqlx::query(checked).bind(Percent(101)).execute(&mut *db).await, "23514").map(drop)
}

#[derive(sqlx::Type)]
#[sqlx(type_name = "nothing")]
enum Nothing {
    Any,
}

async fn values_of_one_byte() -> Result {
    both_ways(&mut connect().await?, "\"char\"", b'x' as i8).await
}

async fn many_at_once_in_a_pool() -> Result {
    let pool = pool(4).await?;
    let tasks = (0..50).map(|n| {
        let pool = pool.clone();
        tokio::spawn(async move { sqlx::query_scalar::<_, i32>("SELECT $1 * 2").bind(n).fetch_one(&pool).await })
    });
    for (n, task) in tasks.enumerate().collect::<Vec<_>>() {
        same(task.await??, n as i32 * 2)?;
    }
    same(pool.size() <= 4, true)?;
    let held = (pool.acquire().await?, pool.acquire().await?);
    drop(held);
    pool.close().await;
    same(matches!(pool.acquire().await, Err(sqlx::Error::PoolClosed)), true)
}

async fn rows_as_a_stream() -> Result {
    let mut db = connect().await?;
    let (mut rows, mut sum) = (sqlx::query("SELECT n FROM generate_series(1, 20000) n").fetch(&mut db), 0i64);
    while let Some(row) = rows.try_next().await? {
        sum += i64::from(row.try_get::<i32, _>(0)?);
    }
    drop(rows);
    same(sum, 200_010_000)?;
    // One that is given up: its rows are read away before the next statement.
    let first = sqlx::query("SELECT n FROM generate_series(1, 20000) n").fetch(&mut db).next().await;
    same(first.is_some_and(|row| row.is_ok()), true)?;
    same(sqlx::query_scalar::<_, i32>("SELECT 1").fetch_one(&mut db).await?, 1)
}

async fn several_statements() -> Result {
    let mut db = connect().await?;
    let text = "CREATE TEMP TABLE t (a int); INSERT INTO t VALUES (1), (2); SELECT a FROM t; UPDATE t SET a = 3";
    let results: Vec<_> = sqlx::raw_sql(text).fetch_many(&mut db).try_collect().await?;
    let shown = results.iter().map(|one| match one {
        Either::Left(done) => format!("{} rows", done.rows_affected()),
        Either::Right(row) => row.try_get::<i32, _>(0).map_or_else(|e| e.to_string(), |a| a.to_string()),
    });
    same(shown.collect::<Vec<_>>(), ["0 rows", "2 rows", "1", "2", "2 rows", "2 rows"])
}

async fn transactions() -> Result {
    let pool = pool(2).await?;
    let moods = || sqlx::query_scalar::<_, Option<Mood>>("SELECT mood FROM people ORDER BY id").fetch_all(&pool);
    let mut tx = pool.begin().await?;
    sqlx::query("UPDATE people SET mood = 'sad'").execute(&mut *tx).await?;
    drop(tx);
    same(moods().await?, [Some(Mood::VeryHappy), None])?;
    let mut tx = pool.begin().await?;
    sqlx::query("UPDATE people SET mood = 'sad' WHERE name = $1").bind("Ada").execute(&mut *tx).await?;
    tx.commit().await?;
    same(moods().await?, [Some(Mood::Sad), None])?;
    let mut tx = pool.begin_with("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY").await?;
    same(sqlx::query_scalar::<_, String>("SHOW transaction_isolation").fetch_one(&mut *tx).await?, "serializable")?;
    failed(sqlx::query("DELETE FROM pets").execute(&mut *tx).await, "25006")?;
    failed(sqlx::query("SELECT 1").execute(&mut *tx).await, "25P02")?;
    Ok(tx.rollback().await?)
}

async fn nested_transactions() -> Result {
    let mut db = connect().await?;
    let mut tx = db.begin().await?;
    sqlx::query("INSERT INTO people (name) VALUES ('outer')").execute(&mut *tx).await?;
    let mut inner = tx.begin().await?;
    failed(sqlx::query("INSERT INTO people (name) VALUES ('outer')").execute(&mut *inner).await, "23505")?;
    inner.rollback().await?;
    let mut inner = tx.begin().await?;
    sqlx::query("INSERT INTO people (name) VALUES ('inner')").execute(&mut *inner).await?;
    let mut deeper = inner.begin().await?;
    sqlx::query("INSERT INTO people (name) VALUES ('dropped')").execute(&mut *deeper).await?;
    drop(deeper);
    inner.commit().await?;
    tx.commit().await?;
    let gone = sqlx::query_scalar::<_, String>("DELETE FROM people WHERE name NOT IN ('Ada', 'Bob') RETURNING name");
    let mut gone = gone.fetch_all(&mut db).await?;
    gone.sort();
    same(gone, ["inner", "outer"])
}

async fn notifications() -> Result {
    let pool = pool(2).await?;
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.listen_all(["news", "other news"]).await?;
    for channel in ["news", "other news", "nothing"] {
        sqlx::query("SELECT pg_notify($1, $2)").bind(channel).bind("hello").execute(&pool).await?;
    }
    let wait = Duration::from_secs(5);
    let found =
        (tokio::time::timeout(wait, listener.recv()).await??, tokio::time::timeout(wait, listener.recv()).await??);
    same([found.0.channel(), found.1.channel(), found.1.payload()], ["news", "other news", "hello"])?;
    listener.unlisten_all().await?;
    // A connection that is lost is made anew, and listens again.
    listener.listen("news").await?;
    let of_listener = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN \"news\"'";
    same(sqlx::query_scalar::<_, bool>(of_listener).fetch_all(&pool).await?, [true])?;
    same(tokio::time::timeout(wait, listener.try_recv()).await??.is_none(), true)?;
    sqlx::query("NOTIFY news, 'again'").execute(&pool).await?;
    same(tokio::time::timeout(wait, listener.recv()).await??.payload(), "again")
}

async fn copies() -> Result {
    let mut db = connect().await?;
    db.execute("CREATE TEMP TABLE copied (id int PRIMARY KEY, t text)").await?;
    let mut copy = db.copy_in_raw("COPY copied FROM STDIN (FORMAT csv, HEADER)").await?;
    same((copy.num_columns(), copy.is_textual()), (2, true))?;
    copy.send("id,t\n1,one\n2,".as_bytes()).await?.send("\"a, b\"\n".as_bytes()).await?;
    same(copy.finish().await?, 2)?;
    let mut copy = db.copy_in_raw("COPY copied FROM STDIN").await?;
    copy.send("3\tthree\n".as_bytes()).await?;
    copy.abort("no more").await?;
    let mut copy = db.copy_in_raw("COPY copied FROM STDIN").await?;
    copy.send("1\tagain\n".as_bytes()).await?;
    failed(copy.finish().await, "23505")?;
    let out: Vec<_> = db.copy_out_raw("COPY (SELECT * FROM copied ORDER BY id) TO STDOUT").await?.try_collect().await?;
    same(String::from_utf8(out.concat())?, "1\tone\n2\ta, b\n")?;
    let binary = "COPY copied TO STDOUT (FORMAT binary)";
    let out: Vec<_> = db.copy_out_raw(binary).await?.try_collect().await?;
    let mut copy = db.copy_in_raw("COPY copied FROM STDIN (FORMAT binary)").await?;
    copy.send(out.concat()).await?;
    failed(copy.finish().await, "23505").map(drop)
}

async fn kinds_of_errors() -> Result {
    let pool = pool(1).await?;
    for (sql, kind, table, constraint) in [
        ("INSERT INTO people (name) VALUES ('Ada')", ErrorKind::UniqueViolation, "people", Some("people_name_key")),
        (
            "INSERT INTO pets (id, owner, name) VALUES (9, 99, 'x')",
            ErrorKind::ForeignKeyViolation,
            "pets",
            Some("pets_owner_fkey"),
        ),
        ("INSERT INTO people (name) VALUES (NULL)", ErrorKind::NotNullViolation, "people", None),
        ("UPDATE pets SET weight = -1", ErrorKind::CheckViolation, "pets", Some("pets_weight_check")),
    ] {
        let Err(sqlx::Error::Database(error)) = sqlx::query(sql).execute(&pool).await else { return Err(sql.into()) };
        same(format!("{:?}", error.kind()), format!("{kind:?}"))?;
        same((error.table(), error.constraint()), (Some(table), constraint))?;
    }
    let unique = failed(sqlx::query("INSERT INTO people (name) VALUES ('Ada')").execute(&pool).await, "23505")?;
    same((unique.detail(), unique.schema()), (Some("Key (name)=(Ada) already exists."), Some("public")))?;
    failed(sqlx::query("SELECT 1 / $1").bind(0).execute(&pool).await, "22012")?;
    failed(sqlx::query("SELECT $1::text::int").bind("x").execute(&pool).await, "22P02")?;
    failed(sqlx::query("SELEKT 1").execute(&pool).await, "42601")?;
    let none = sqlx::query("SELECT 1 WHERE false").fetch_one(&pool).await;
    same(matches!(none, Err(sqlx::Error::RowNotFound)), true)
}

async fn built_queries() -> Result {
    let mut db = connect().await?;
    db.execute("CREATE TEMP TABLE built (id int, name text, at timestamptz)").await?;
    let mut query = QueryBuilder::<Postgres>::new("INSERT INTO built (id, name, at) ");
    query.push_values(0..1000, |mut row, n| {
        row.push_bind(n).push_bind(format!("name {n}")).push_bind(DateTime::from_timestamp(n.into(), 0));
    });
    same(query.build().execute(&mut db).await?.rows_affected(), 1000)?;
    let mut query = QueryBuilder::<Postgres>::new("SELECT count(*) FROM built WHERE (id, name) IN ");
    query.push_tuples([(1, "name 1"), (2, "nothing")], |mut tuple, (id, name)| {
        tuple.push_bind(id).push_bind(name);
    });
    same(query.build_query_scalar::<i64>().fetch_one(&mut db).await?, 1)?;
    let mut query = QueryBuilder::<Postgres>::new("SELECT id FROM built WHERE id = ANY(");
    query.push_bind(vec![7, 9, 5000]).push(") ORDER BY id DESC LIMIT ").push_bind(1i64);
    same(query.build_query_scalar::<i32>().fetch_all(&mut db).await?, [9])?;
    let unnest = "INSERT INTO built (id, name) SELECT * FROM UNNEST($1::int[], $2::text[])";
    let done = sqlx::query(unnest).bind([1, 2]).bind(vec![Some("a"), None]).execute(&mut db).await?;
    same(done.rows_affected(), 2)
}

async fn advisory_locks() -> Result {
    let lock = PgAdvisoryLock::new("the part's lock");
    let held = lock.acquire(connect().await?).await?;
    let other = match lock.try_acquire(connect().await?).await? {
        Either::Left(_) => return Err("taken twice".into()),
        Either::Right(other) => other,
    };
    held.release_now().await?;
    same(lock.try_acquire(other).await?.is_left(), true)
}

async fn statements_after_ddl() -> Result {
    let mut db = connect().await?;
    db.execute("CREATE TABLE changing (a int); INSERT INTO changing VALUES (1)").await?;
    let all = "SELECT * FROM changing";
    same(sqlx::query(all).fetch_one(&mut db).await?.len(), 1)?;
    db.execute("ALTER TABLE changing ADD COLUMN b text DEFAULT 'b'").await?;
    let error = failed(sqlx::query(all).fetch_one(&mut db).await, "0A000")?;
    same(error.message(), "cached plan must not change result type")?;
    db.clear_cached_statements().await?;
    same(sqlx::query(all).fetch_one(&mut db).await?.len(), 2)?;
    db.execute("DROP TABLE changing").await?;
    same(sqlx::query_scalar::<_, i32>("SELECT $1").bind(5).persistent(false).fetch_one(&mut db).await?, 5)
}

async fn prepared_statements() -> Result {
    let mut db = connect().await?;
    let statement =
        (&mut db).prepare("SELECT id, name FROM people WHERE id = $1 AND name <> $2".into_sql_str()).await?;
    let types: Vec<_> = statement.columns().iter().map(|c| c.type_info().name().to_owned()).collect();
    same(types, ["INT8", "TEXT"])?;
    let Some(Either::Left(parameters)) = statement.parameters() else { return Err("no parameters".into()) };
    same(parameters.iter().map(|of| of.name()).collect::<Vec<_>>(), ["INT8", "TEXT"])?;
    let row = statement.query().bind(1i64).bind("x").fetch_one(&mut db).await?;
    same(row.try_get::<String, _>("name")?, "Ada")
}

/// What `describe` finds out of a statement's columns: which may be NULL, and their types.
async fn described(sql: &str) -> Result<(Vec<Option<bool>>, Vec<String>)> {
    let mut db = connect().await?;
    let found = (&mut db).describe(AssertSqlSafe(sql).into_sql_str()).await?;
    let types = found.columns().iter().map(|column| column.type_info().name().to_owned());
    Ok(((0..found.columns().len()).map(|at| found.nullable(at)).collect(), types.collect()))
}

/// Whether the columns of a statement are told as such.
async fn asked(sql: &str, nullable: Vec<Option<bool>>) -> Result {
    let found = described(sql).await.and_then(|found| same(found.0, nullable));
    found.map_err(|error| format!("{sql}: {error}").into())
}

async fn nullable_columns() -> Result {
    let (yes, no) = (Some(true), Some(false));
    for (sql, wanted) in [
        (
            "SELECT id, mood, name AS called, 1 AS one, count(*) OVER () FROM people WHERE id = $1",
            vec![no, yes, no, None, None],
        ),
        ("SELECT a.id, b.name, b.weight FROM people a JOIN pets b ON b.owner = a.id", vec![no, no, yes]),
        ("INSERT INTO people (name) VALUES ($1) RETURNING id, mood", vec![no, yes]),
        ("UPDATE pets SET name = $1 WHERE id = $2 RETURNING pets.*", vec![no, no, no, yes, no, yes]),
        ("DELETE FROM pets WHERE id = ANY($1) RETURNING id", vec![no]),
        ("WITH a AS (SELECT id, name FROM people) SELECT id FROM a", vec![no]),
        ("SELECT id FROM pets ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED", vec![no]),
        ("WITH new AS (INSERT INTO people (name) VALUES ($1) RETURNING id) SELECT id FROM new", vec![no]),
        ("SELECT max(id), owner FROM pets GROUP BY owner", vec![None, no]),
        ("SELECT 1 UNION ALL SELECT id FROM pets", vec![None]),
        ("VALUES ($1::int, $2::text)", vec![None, None]),
        ("SHOW search_path", vec![None]),
        ("CREATE TABLE other (id int)", vec![]),
    ] {
        asked(sql, wanted).await?;
    }
    Ok(())
}

async fn nullable_by_joins() -> Result {
    let (yes, no) = (Some(true), Some(false));
    for (sql, wanted) in [
        // Where PostgreSQL can hash either side, sqlx may take the wrong one. It cannot where no values are equal.
        ("SELECT a.id, b.id, b.weight FROM people a LEFT JOIN pets b ON b.owner > a.id", vec![no, yes, yes]),
        ("SELECT a.id, b.id FROM people a RIGHT JOIN pets b ON b.owner > a.id", vec![yes, no]),
        ("SELECT a.id, b.id FROM people a FULL JOIN pets b ON b.owner = a.id", vec![yes, yes]),
        ("SELECT a.id, b.id FROM people a LEFT JOIN people b ON b.id > a.id", vec![no, yes]),
        (
            "SELECT a.id, b.id, c.name FROM people a LEFT JOIN pets b ON b.owner > a.id \
             LEFT JOIN people c ON c.id > b.id",
            vec![no, yes, yes],
        ),
    ] {
        asked(sql, wanted).await?;
    }
    Ok(())
}

async fn described_types() -> Result {
    let sql =
        "SELECT id, mood, born, added, NULL::item, ARRAY['sad'::mood], 1.5, 'a'::varchar(3), NULL::percent FROM people";
    let (_, types) = described(sql).await?;
    same(types, ["INT8", "mood", "DATE", "TIMESTAMPTZ", "item", "mood[]", "NUMERIC", "VARCHAR", "INT4"])?;
    let mut db = connect().await?;
    let found = (&mut db).describe("SELECT p.name, 1 AS n FROM people p".into_sql_str()).await?;
    let ColumnOrigin::Table(origin) = found.columns()[0].origin() else { return Err("no table".into()) };
    same((&*origin.table, &*origin.name), ("people", "name"))?;
    same(matches!(found.columns()[1].origin(), ColumnOrigin::Expression), true)?;
    let sql = "UPDATE pets SET about = $1, tags = $2 WHERE owner = $3 AND $4::mood IS NOT NULL";
    let found = (&mut db).describe(sql.into_sql_str()).await?;
    let Some(Either::Left(parameters)) = found.parameters() else { return Err("no parameters".into()) };
    same(parameters.iter().map(|of| of.name()).collect::<Vec<_>>(), ["JSONB", "TEXT[]", "INT8", "mood"])
}

async fn json_values() -> Result {
    let mut db = connect().await?;
    let sql =
        "SELECT json_build_object('a', $1, 'b', ARRAY[1, 2]), jsonb_agg(id ORDER BY id), to_jsonb($2::text) FROM pets";
    let row = sqlx::query(sql).bind(1).bind("x").fetch_one(&mut db).await?;
    same(row.try_get::<Value, _>(0)?, json!({"a": 1, "b": [1, 2]}))?;
    same((row.try_get(1)?, row.try_get(2)?), (Json([1, 2, 3]), json!("x")))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    println!("version {}", version("sqlx"));
    checks!(
        connects,
        migrations,
        changed_migration,
        rows_as_structures,
        values_both_ways,
        arrays_both_ways,
        own_types_both_ways,
        domains,
        values_of_one_byte,
        many_at_once_in_a_pool,
        rows_as_a_stream,
        several_statements,
        transactions,
        nested_transactions,
        notifications,
        copies,
        kinds_of_errors,
        built_queries,
        advisory_locks,
        statements_after_ddl,
        prepared_statements,
        nullable_columns,
        nullable_by_joins,
        described_types,
        json_values,
    );
}
