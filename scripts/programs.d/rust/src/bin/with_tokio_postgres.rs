//! tokio-postgres, as its documentation uses it: statements, values in binary, transactions, pipelines, COPY,
//! notifications, cancelling, portals, types that a user made.
use bytes::Bytes;
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use futures_util::{SinkExt, StreamExt, TryStreamExt, future::poll_fn, stream};
use programs::{Result, checks, same, setting, version};
use rust_decimal::Decimal;
use serde_json::json;
use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;
use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream};
use tokio_postgres::error::{DbError, ErrorPosition, SqlState};
use tokio_postgres::types::{Date, FromSql, FromSqlOwned, Kind, Timestamp, ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, IsolationLevel, NoTls, SimpleQueryMessage};
use uuid::Uuid;

fn config() -> Config {
    let mut config = Config::new();
    config.host(setting("PGHOST")).user(setting("PGUSER")).dbname(setting("PGDATABASE"));
    config.port(setting("PGPORT").parse().expect("a port"));
    config
}

async fn connect() -> Result<Client> {
    let (client, connection) = config().connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

fn failed<T>(result: std::result::Result<T, tokio_postgres::Error>, code: &SqlState) -> Result<DbError> {
    let Err(error) = result else { return Err(format!("no error instead of {}", code.code()).into()) };
    match error.as_db_error() {
        Some(of) if of.code() == code => Ok(of.clone()),
        _ => Err(error.into()),
    }
}

/// The only value of a query.
async fn value<T: FromSqlOwned>(db: &Client, query: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<T> {
    Ok(db.query_one(query, parameters).await?.try_get(0)?)
}

async fn connects() -> Result {
    let mut options = config();
    options.application_name("part").options("-c statement_timeout=7s").connect_timeout(Duration::from_secs(5));
    let (client, connection) = options.connect(NoTls).await?;
    same(connection.parameter("server_encoding"), Some("UTF8"))?;
    same(connection.parameter("application_name"), Some("part"))?;
    tokio::spawn(connection);
    client.check_connection().await?;
    same(value::<String>(&client, "SHOW statement_timeout", &[]).await?, "7s")
}

async fn no_such_database() -> Result {
    failed(config().dbname("nothing").connect(NoTls).await.map(drop), &SqlState::INVALID_CATALOG_NAME).map(drop)
}

async fn tables_and_parameters() -> Result {
    let db = connect().await?;
    db.batch_execute(
        "CREATE TABLE people (id serial PRIMARY KEY, name varchar(10) NOT NULL, born date, \
         score numeric(10, 2) CHECK (score >= 0), added timestamptz NOT NULL DEFAULT now());
         CREATE TABLE pets (id int PRIMARY KEY, owner int NOT NULL REFERENCES people)",
    )
    .await?;
    let insert = db.prepare("INSERT INTO people (name, born, score) VALUES ($1, $2, $3) RETURNING id").await?;
    same(insert.params(), [Type::VARCHAR, Type::DATE, Type::NUMERIC])?;
    let born = NaiveDate::from_ymd_opt(1815, 12, 10);
    let row = db.query_one(&insert, &[&"Ada", &born, &Decimal::new(1230, 2)]).await?;
    same(row.try_get::<_, i32>("id")?, 1)?;
    same(db.execute(&insert, &[&"Bob", &None::<NaiveDate>, &None::<Decimal>]).await?, 1)?;
    let row = db.query_one("SELECT name, born, score, added FROM people WHERE id = $1", &[&1]).await?;
    same((row.try_get("name")?, row.try_get("born")?), (String::from("Ada"), born))?;
    same(row.try_get::<_, Decimal>("score")?.to_string(), "12.30")?;
    same(row.try_get::<_, DateTime<Utc>>("added")? < Utc::now() + Duration::from_secs(60), true)?;
    same(db.query_opt("SELECT 1 FROM people WHERE id = $1", &[&9]).await?.is_none(), true)?;
    same(db.execute("UPDATE people SET score = score + $1 WHERE id = ANY($2)", &[&Decimal::ONE, &vec![1, 2]]).await?, 2)
}

async fn columns_of_a_statement() -> Result {
    let db = connect().await?;
    let statement = db.prepare("SELECT id, name AS called, score, 1 AS one FROM people").await?;
    let table: u32 = value(&db, "SELECT 'people'::regclass::oid", &[]).await?;
    let found: Vec<_> = statement.columns().iter().map(|c| (c.name(), c.table_oid(), c.column_id())).collect();
    same(
        found,
        [
            ("id", Some(table), Some(1)),
            ("called", Some(table), Some(2)),
            ("score", Some(table), Some(4)),
            ("one", None, None),
        ],
    )?;
    let types: Vec<_> = statement.columns().iter().map(|c| (c.type_().clone(), c.type_modifier())).collect();
    same(types, [(Type::INT4, -1), (Type::VARCHAR, 14), (Type::NUMERIC, (10 << 16) + 2 + 4), (Type::INT4, -1)])?;
    let wrong = db.query_one("SELECT 1", &[]).await?.try_get::<_, String>(0);
    same(wrong.is_err(), true)
}

/// A value, and NULL, as a parameter and as a result.
async fn both_ways<T: ToSql + FromSqlOwned + Sync + PartialEq + Debug>(db: &Client, of: &str, wanted: T) -> Result {
    let statement = db.prepare(&format!("SELECT $1::{of}")).await?;
    let found: T = db.query_one(&statement, &[&wanted]).await?.try_get(0)?;
    same(found, wanted).map_err(|error| format!("{of}: {error}"))?;
    let null: Option<T> = db.query_one(&statement, &[&None::<T>]).await?.try_get(0)?;
    same(null.is_none(), true).map_err(|error| format!("{of}: {error}").into())
}

async fn numbers_both_ways() -> Result {
    let db = connect().await?;
    both_ways(&db, "boolean", true).await?;
    both_ways(&db, "smallint", i16::MIN).await?;
    both_ways(&db, "int", i32::MIN).await?;
    both_ways(&db, "bigint", i64::MIN).await?;
    both_ways(&db, "oid", u32::MAX).await?;
    both_ways(&db, "real", 0.1f32).await?;
    both_ways(&db, "double precision", f64::MIN_POSITIVE).await?;
    both_ways(&db, "double precision", f64::NEG_INFINITY).await?;
    for text in ["0", "-1.50", "79228162514264337593543950335", "0.0000000000000000000000000001"] {
        both_ways(&db, "numeric", text.parse::<Decimal>()?).await?;
    }
    Ok(())
}

async fn texts_both_ways() -> Result {
    let db = connect().await?;
    both_ways(&db, "text", "it's é \u{1f600}\n".to_owned()).await?;
    both_ways(&db, "varchar(3)", "abc".to_owned()).await?;
    both_ways(&db, "char(3)", "ab ".to_owned()).await?;
    both_ways(&db, "name", "a name".to_owned()).await?;
    both_ways(&db, "bytea", (0..=255).collect::<Vec<u8>>()).await?;
    both_ways(&db, "uuid", Uuid::from_u128(5)).await?;
    both_ways(&db, "json", json!({"a": [1, null, "é"]})).await?;
    both_ways(&db, "jsonb", json!({"a": [1, null, "é"], "b": 1.5})).await
}

async fn times_both_ways() -> Result {
    let db = connect().await?;
    let day = NaiveDate::from_ymd_opt(2024, 2, 29).ok_or("a day")?;
    let noon = NaiveTime::from_hms_micro_opt(12, 0, 1, 123_456).ok_or("a time")?;
    both_ways(&db, "date", day).await?;
    both_ways(&db, "time", noon).await?;
    both_ways(&db, "timestamp", day.and_time(noon)).await?;
    both_ways(&db, "timestamptz", day.and_time(noon).and_utc()).await?;
    both_ways(&db, "date", Date::<NaiveDate>::PosInfinity).await?;
    both_ways(&db, "timestamp", Timestamp::<NaiveDateTime>::NegInfinity).await?;
    both_ways(&db, "timestamptz", Timestamp::<DateTime<Utc>>::PosInfinity).await
}

async fn arrays_both_ways() -> Result {
    let db = connect().await?;
    both_ways(&db, "int[]", vec![Some(1), None]).await?;
    both_ways(&db, "int[]", Vec::<i32>::new()).await?;
    both_ways(&db, "bigint[]", vec![1i64, 2]).await?;
    both_ways(&db, "text[]", vec!["a, b".to_owned(), "\"\\".to_owned(), "NULL".to_owned()]).await?;
    both_ways(&db, "varchar[]", vec!["a".to_owned()]).await?;
    both_ways(&db, "uuid[]", vec![Uuid::from_u128(1)]).await?;
    both_ways(&db, "numeric[]", vec![Decimal::new(15, 1)]).await?;
    both_ways(&db, "jsonb[]", vec![json!({"a": 1})]).await?;
    both_ways(&db, "date[]", vec![NaiveDate::from_ymd_opt(2000, 1, 1).ok_or("a day")?]).await?;
    both_ways(&db, "float8[]", [1.5f64, 2.5].to_vec()).await?;
    same(
        value::<Vec<i32>>(&db, "SELECT array_agg(n ORDER BY n DESC) FROM unnest($1::int[]) n", &[&[1, 3, 2]]).await?,
        [3, 2, 1],
    )
}

async fn wrong_type_of_a_parameter() -> Result {
    let db = connect().await?;
    let refused = db.query("SELECT $1::int", &[&"text"]).await;
    same(refused.is_err_and(|error| error.as_db_error().is_none()), true)?;
    same(value::<i32>(&db, "SELECT 1", &[]).await?, 1)
}

async fn values_of_one_byte() -> Result {
    both_ways(&connect().await?, "\"char\"", b'x' as i8).await
}

async fn series_of_parameters() -> Result {
    let db = connect().await?;
    same(value::<i64>(&db, "SELECT sum(n) FROM generate_series($1::int, $2::int) n", &[&1, &4]).await?, 10)
}

async fn many_rows_as_a_stream() -> Result {
    let db = connect().await?;
    let rows = db.query_raw("SELECT n + $1, 'row ' || n FROM generate_series(1, 20000) n", &[&0i32]).await?;
    let mut rows = pin!(rows);
    let mut sum = 0i64;
    while let Some(row) = rows.try_next().await? {
        sum += i64::from(row.try_get::<_, i32>(0)?);
        same(row.try_get::<_, &str>(1)?.len() > 4, true)?;
    }
    same(sum, 200_010_000)?;
    same(rows.rows_affected(), Some(20_000))
}

async fn transactions() -> Result {
    let mut db = connect().await?;
    let tx = db.transaction().await?;
    tx.execute("UPDATE people SET name = 'no' WHERE id = 1", &[]).await?;
    tx.rollback().await?;
    let tx = db.transaction().await?;
    tx.execute("UPDATE people SET name = 'dropped' WHERE id = 1", &[]).await?;
    drop(tx);
    same(value::<String>(&db, "SELECT name FROM people WHERE id = 1", &[]).await?, "Ada")?;
    let tx = db.transaction().await?;
    tx.execute("UPDATE people SET name = 'Ada L.' WHERE id = 1", &[]).await?;
    tx.commit().await?;
    same(value::<String>(&db, "SELECT name FROM people WHERE id = 1", &[]).await?, "Ada L.")?;
    let tx = db.transaction().await?;
    failed(tx.execute("SELECT 1 / 0", &[]).await, &SqlState::DIVISION_BY_ZERO)?;
    failed(tx.execute("SELECT 1", &[]).await, &SqlState::IN_FAILED_SQL_TRANSACTION)?;
    tx.commit().await?; // The server says ROLLBACK.
    same(value::<i32>(&db, "SELECT 1", &[]).await?, 1)
}

async fn savepoints() -> Result {
    let mut db = connect().await?;
    let mut tx = db.transaction().await?;
    tx.execute("INSERT INTO pets VALUES (1, 1)", &[]).await?;
    let inner = tx.transaction().await?;
    failed(inner.execute("INSERT INTO pets VALUES (1, 1)", &[]).await, &SqlState::UNIQUE_VIOLATION)?;
    inner.rollback().await?;
    let mut named = tx.savepoint("a_name").await?;
    named.execute("INSERT INTO pets VALUES (2, 1)", &[]).await?;
    let deeper = named.transaction().await?;
    deeper.execute("INSERT INTO pets VALUES (3, 1)", &[]).await?;
    drop(deeper);
    named.commit().await?;
    tx.commit().await?;
    same(value::<Vec<i32>>(&db, "SELECT array_agg(id ORDER BY id) FROM pets", &[]).await?, [1, 2])
}

async fn isolation_levels() -> Result {
    let mut db = connect().await?;
    let levels = [
        (IsolationLevel::ReadCommitted, "read committed"),
        (IsolationLevel::RepeatableRead, "repeatable read"),
        (IsolationLevel::Serializable, "serializable"),
    ];
    for (level, name) in levels {
        let tx = db.build_transaction().isolation_level(level).read_only(true).deferrable(true).start().await?;
        let found: String = tx.query_one("SHOW transaction_isolation", &[]).await?.try_get(0)?;
        same(found, name)?;
        failed(tx.execute("DELETE FROM pets", &[]).await, &SqlState::READ_ONLY_SQL_TRANSACTION)?;
    }
    Ok(())
}

async fn serialization_failures() -> Result {
    let (mut one, mut two) = (connect().await?, connect().await?);
    one.batch_execute(
        "CREATE TABLE doctors (id int PRIMARY KEY, on_call bool); INSERT INTO doctors VALUES (1, true), (2, true)",
    )
    .await?;
    let first = one.build_transaction().isolation_level(IsolationLevel::Serializable).start().await?;
    let second = two.build_transaction().isolation_level(IsolationLevel::Serializable).start().await?;
    for (tx, id) in [(&first, 1), (&second, 2)] {
        tx.query("SELECT count(*) FROM doctors WHERE on_call", &[]).await?;
        tx.execute("UPDATE doctors SET on_call = false WHERE id = $1", &[&id]).await?;
    }
    first.commit().await?;
    failed(second.commit().await, &SqlState::T_R_SERIALIZATION_FAILURE).map(drop)
}

async fn pipelined() -> Result {
    let db = connect().await?;
    let statement = db.prepare("SELECT $1::int * 2").await?;
    let given = |n: &'static i32| -> [&(dyn ToSql + Sync); 1] { [n] };
    let (one, zero, last) = (given(&1), given(&0), given(&21));
    let (a, b, c, d, e) = tokio::join!(
        db.query_one(&statement, &one),
        db.query_one("SELECT pg_sleep(0.05), 'slow'", &[]),
        db.query_one("SELECT 1 / $1::int", &zero),
        db.simple_query("SELECT 1; SELECT 2"),
        db.query_one(&statement, &last),
    );
    failed(c, &SqlState::DIVISION_BY_ZERO)?;
    same((a?.try_get::<_, i32>(0)?, b?.try_get::<_, String>(1)?), (2, "slow".to_owned()))?;
    same((d?.len(), e?.try_get::<_, i32>(0)?), (6, 42))?;
    let many = (0..200).map(|n| {
        let (db, statement) = (&db, &statement);
        async move { db.query_one(statement, &[&n]).await.map(|row| row.get::<_, i32>(0)) }
    });
    let found: Vec<i32> = stream::iter(many).buffered(50).try_collect().await?;
    same(found, (0..200).map(|n| n * 2).collect::<Vec<i32>>())
}

async fn statements_after_ddl() -> Result {
    let db = connect().await?;
    db.batch_execute("CREATE TABLE changing (a int); INSERT INTO changing VALUES (1)").await?;
    let (all, one) = (db.prepare("SELECT * FROM changing").await?, db.prepare("SELECT a FROM changing").await?);
    same(db.query(&all, &[]).await?.len(), 1)?;
    db.batch_execute("ALTER TABLE changing ADD COLUMN b text DEFAULT 'b'").await?;
    same(db.query_one(&one, &[]).await?.try_get::<_, i32>(0)?, 1)?;
    let error = failed(db.query(&all, &[]).await, &SqlState::FEATURE_NOT_SUPPORTED)?;
    same(error.message(), "cached plan must not change result type")
}

async fn statements_are_closed() -> Result {
    let db = connect().await?;
    let count = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%in the lists%'";
    let statement = db.prepare("SELECT 'in the lists', $1::int").await?;
    same(db.query_one(count, &[]).await?.try_get::<_, i64>(0)?, 2)?;
    drop(statement);
    same(db.query_one(count, &[]).await?.try_get::<_, i64>(0)?, 1)?;
    let typed = db.prepare_typed("SELECT $1, $2 + 1", &[Type::TEXT, Type::INT8]).await?;
    same(typed.params(), [Type::TEXT, Type::INT8])
}

async fn typed_queries() -> Result {
    let db = connect().await?;
    let rows = db.query_typed("SELECT $1, $2 + 1", &[(&"a", Type::TEXT), (&1i64, Type::INT8)]).await?;
    same((rows[0].try_get(0)?, rows[0].try_get(1)?), ("a", 2i64))?;
    let sql = "UPDATE people SET score = $1 WHERE id = $2";
    same(db.execute_typed(sql, &[(&Decimal::TEN, Type::NUMERIC), (&1i32, Type::INT4)]).await?, 1)?;
    failed(db.query_typed("SELECT 1 / $1", &[(&0i32, Type::INT4)]).await, &SqlState::DIVISION_BY_ZERO).map(drop)
}

async fn simple_queries() -> Result {
    let db = connect().await?;
    let messages =
        db.simple_query("SELECT 1.50 AS a, NULL AS b; UPDATE people SET name = name; SELECT 1 WHERE false").await?;
    let shown = messages.iter().map(|message| match message {
        SimpleQueryMessage::Row(row) => format!("{:?} {:?}", row.get("a"), row.get(1)),
        SimpleQueryMessage::CommandComplete(rows) => rows.to_string(),
        SimpleQueryMessage::RowDescription(columns) => columns.iter().map(|c| c.name()).collect(),
        _ => "other".to_owned(),
    });
    same(shown.collect::<Vec<_>>(), ["ab", "Some(\"1.50\") None", "1", "2", "?column?", "0"])?;
    failed(db.simple_query("INSERT INTO pets VALUES (8, 1); SELECT 1 / 0").await, &SqlState::DIVISION_BY_ZERO)?;
    same(value::<i64>(&db, "SELECT count(*) FROM pets WHERE id = 8", &[]).await?, 0)
}

async fn portals() -> Result {
    let mut db = connect().await?;
    let tx = db.transaction().await?;
    let portal = tx.bind("SELECT n FROM generate_series(1, 9) n WHERE n <= $1", &[&5]).await?;
    let mut found = vec![];
    for wanted in [2, 2, 1, 0] {
        let rows = tx.query_portal(&portal, 2).await?;
        same(rows.len(), wanted)?;
        found.extend(rows.iter().map(|row| row.get::<_, i32>(0)));
    }
    same(found, [1, 2, 3, 4, 5])?;
    let other = tx.bind("SELECT 1 UNION ALL SELECT 2", &[]).await?;
    same(tx.query_portal(&other, 0).await?.len(), 2)
}

async fn copy_text() -> Result {
    let db = connect().await?;
    db.batch_execute("CREATE TABLE copied (id int PRIMARY KEY, t text, at timestamptz)").await?;
    let mut sink = pin!(db.copy_in::<_, Bytes>("COPY copied (id, t) FROM STDIN").await?);
    for chunk in ["1\tone\n2\t", "\\N\n3\ta\\tb\n"] {
        sink.send(Bytes::from(chunk)).await?;
    }
    same(sink.as_mut().finish().await?, 3)?;
    let sql = "COPY (SELECT id, t FROM copied ORDER BY id) TO STDOUT (FORMAT csv, HEADER, NULL '-')";
    let chunks: Vec<Bytes> = db.copy_out(sql).await?.try_collect().await?;
    same(chunks.concat(), "id,t\n1,one\n2,-\n3,a\tb\n".as_bytes())?;
    let mut sink = pin!(db.copy_in::<_, Bytes>("COPY copied (id) FROM STDIN").await?);
    sink.send(Bytes::from("4\nfive\n")).await?;
    failed(sink.as_mut().finish().await, &SqlState::INVALID_TEXT_REPRESENTATION)?;
    let mut dropped = Box::pin(db.copy_in::<_, Bytes>("COPY copied (id) FROM STDIN").await?);
    dropped.send(Bytes::from("6\n")).await?;
    drop(dropped);
    same(value::<i64>(&db, "SELECT count(*) FROM copied", &[]).await?, 3)
}

async fn copy_binary() -> Result {
    let db = connect().await?;
    let types = [Type::INT4, Type::TEXT, Type::TIMESTAMPTZ];
    let sink = db.copy_in("COPY copied FROM STDIN (FORMAT binary)").await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
    for n in 100..1100 {
        let at = DateTime::from_timestamp(i64::from(n), 0);
        writer.as_mut().write(&[&n, &(n % 7 != 0).then(|| format!("é{n}")), &at]).await?;
    }
    same(writer.finish().await?, 1000)?;
    let stream =
        db.copy_out("COPY (SELECT * FROM copied WHERE id >= 100 ORDER BY id) TO STDOUT (FORMAT binary)").await?;
    let rows: Vec<_> = BinaryCopyOutStream::new(stream, &types).try_collect().await?;
    same(rows.len(), 1000)?;
    for (n, row) in (100..).zip(&rows) {
        same((row.try_get(0)?, row.try_get(1)?), (n, (n % 7 != 0).then(|| format!("é{n}"))))?;
        same(row.try_get::<Option<DateTime<Utc>>>(2)?, DateTime::from_timestamp(i64::from(n), 0))?;
    }
    Ok(())
}

async fn notifications_and_notices() -> Result {
    let (client, mut connection) = config().connect(NoTls).await?;
    let (told, mut messages) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            let _ = told.send(message);
        }
    });
    client.batch_execute("LISTEN news; DROP TABLE IF EXISTS nothing").await?;
    connect().await?.execute("SELECT pg_notify($1, $2)", &[&"news", &"hello"]).await?;
    client.batch_execute("NOTIFY news, 'own'").await?;
    let mut found = vec![];
    while found.len() < 3 {
        match tokio::time::timeout(Duration::from_secs(5), messages.recv()).await?.ok_or("closed")? {
            AsyncMessage::Notification(note) => found.push(format!("{} {}", note.channel(), note.payload())),
            AsyncMessage::Notice(notice) => found.push(format!("{} {}", notice.code().code(), notice.message())),
            _ => {}
        }
    }
    same(found, ["00000 table \"nothing\" does not exist, skipping", "news hello", "news own"])
}

async fn cancelled() -> Result {
    let db = connect().await?;
    let token = db.cancel_token();
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        token.cancel_query(NoTls).await
    };
    let (slept, cancelled) = tokio::join!(db.query("SELECT pg_sleep(20)", &[]), cancel);
    cancelled?;
    failed(slept, &SqlState::QUERY_CANCELED)?;
    same(value::<i32>(&db, "SELECT 1", &[]).await?, 1)
}

async fn errors() -> Result {
    let db = connect().await?;
    let run = async |sql: &str, code: &SqlState| failed(db.execute(sql, &[]).await, code);
    let told = |e: &DbError| [e.schema(), e.table(), e.column(), e.constraint()].map(|of| of.map(str::to_owned));
    let of = |words: [&str; 4]| words.map(|word| (!word.is_empty()).then(|| word.to_owned()));
    let unique = run("INSERT INTO people (id, name) VALUES (1, 'x')", &SqlState::UNIQUE_VIOLATION).await?;
    same(told(&unique), of(["public", "people", "", "people_pkey"]))?;
    same(unique.detail(), Some("Key (id)=(1) already exists."))?;
    let null = run("INSERT INTO people (name) VALUES (NULL)", &SqlState::NOT_NULL_VIOLATION).await?;
    same(told(&null), of(["public", "people", "name", ""]))?;
    let check = run("UPDATE people SET score = -1", &SqlState::CHECK_VIOLATION).await?;
    same(told(&check), of(["public", "people", "", "people_score_check"]))?;
    let key = run("INSERT INTO pets VALUES (9, 99)", &SqlState::FOREIGN_KEY_VIOLATION).await?;
    same(told(&key), of(["public", "pets", "", "pets_owner_fkey"]))?;
    let syntax = run("SELECT , 1", &SqlState::SYNTAX_ERROR).await?;
    same(syntax.position().is_some(), true)?;
    let column = run("SELECT id, nothing FROM people", &SqlState::UNDEFINED_COLUMN).await?;
    same((column.severity(), column.position()), ("ERROR", Some(&ErrorPosition::Original(12))))?;
    run("SELECT * FROM nothing", &SqlState::UNDEFINED_TABLE).await?;
    run("SELECT nothing(1)", &SqlState::UNDEFINED_FUNCTION).await?;
    run("SELECT 'x'::int", &SqlState::INVALID_TEXT_REPRESENTATION).await?;
    run("INSERT INTO people (name) VALUES ('longer than ten')", &SqlState::STRING_DATA_RIGHT_TRUNCATION).await?;
    run("SELECT 2147483647 + 1", &SqlState::NUMERIC_VALUE_OUT_OF_RANGE).await.map(drop)
}

#[derive(Debug, PartialEq, Clone, ToSql, FromSql)]
#[postgres(name = "mood", rename_all = "snake_case")]
enum Mood {
    Sad,
    VeryHappy,
}

#[derive(Debug, PartialEq, Clone, ToSql, FromSql)]
#[postgres(name = "item")]
struct Item {
    name: String,
    mood: Option<Mood>,
    price: Option<Decimal>,
}

#[derive(Debug, PartialEq, ToSql, FromSql)]
#[postgres(name = "percent")]
struct Percent(i32);

async fn enums() -> Result {
    let db = connect().await?;
    db.batch_execute("CREATE TYPE mood AS ENUM ('sad', 'very_happy')").await?;
    both_ways(&db, "mood", Mood::VeryHappy).await?;
    let statement = db.prepare("SELECT $1::mood").await?;
    let of = &statement.params()[0];
    same((of.schema(), of.name()), ("public", "mood"))?;
    same(of.kind(), &Kind::Enum(vec!["sad".to_owned(), "very_happy".to_owned()]))?;
    failed(db.query("SELECT 'glad'::mood", &[]).await, &SqlState::INVALID_TEXT_REPRESENTATION).map(drop)
}

async fn composites() -> Result {
    let db = connect().await?;
    db.batch_execute("CREATE TYPE item AS (name text, mood mood, price numeric)").await?;
    let of = db.prepare("SELECT $1::item").await?.params()[0].clone();
    let Kind::Composite(fields) = of.kind() else { return Err(format!("{:?}", of.kind()).into()) };
    same(fields.iter().map(|field| field.name()).collect::<Vec<_>>(), ["name", "mood", "price"])?;
    both_ways(&db, "item", Item { name: "a, b".into(), mood: Some(Mood::Sad), price: Some(Decimal::new(5, 1)) })
        .await?;
    both_ways(&db, "item", Item { name: String::new(), mood: None, price: None }).await?;
    db.batch_execute("CREATE TABLE orders (id int, item item)").await?;
    let item = Item { name: "é".into(), mood: Some(Mood::VeryHappy), price: None };
    db.execute("INSERT INTO orders VALUES (1, $1)", &[&item]).await?;
    same(value::<String>(&db, "SELECT (item).name FROM orders WHERE item = $1::item", &[&item]).await?, "é")
}

async fn domains() -> Result {
    let db = connect().await?;
    db.batch_execute(
        "CREATE DOMAIN percent AS int CHECK (VALUE BETWEEN 0 AND 100); CREATE TABLE shares (share percent NOT NULL)",
    )
    .await?;
    let of = db.prepare("INSERT INTO shares VALUES ($1)").await?.params()[0].clone();
    same((of.name(), of.kind()), ("percent", &Kind::Domain(Type::INT4)))?;
    db.execute("INSERT INTO shares VALUES ($1)", &[&Percent(7)]).await?;
    same(value::<i32>(&db, "SELECT share FROM shares", &[]).await?, 7)?;
    let wrong =
        failed(db.execute("INSERT INTO shares VALUES ($1)", &[&Percent(101)]).await, &SqlState::CHECK_VIOLATION)?;
    same((wrong.datatype(), wrong.constraint()), (Some("percent"), Some("percent_check")))
}

async fn arrays_of_own_types() -> Result {
    let db = connect().await?;
    both_ways(&db, "mood[]", vec![Some(Mood::Sad), None]).await?;
    let of = db.prepare("SELECT $1::mood[]").await?.params()[0].clone();
    same(matches!(of.kind(), Kind::Array(item) if item.name() == "mood"), true)?;
    let items = vec![Item { name: "x".into(), mood: None, price: Some(Decimal::ONE) }];
    both_ways(&db, "item[]", items).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    println!("version {}", version("tokio-postgres"));
    checks!(
        connects,
        no_such_database,
        tables_and_parameters,
        columns_of_a_statement,
        numbers_both_ways,
        texts_both_ways,
        times_both_ways,
        arrays_both_ways,
        wrong_type_of_a_parameter,
        values_of_one_byte,
        series_of_parameters,
        many_rows_as_a_stream,
        transactions,
        savepoints,
        isolation_levels,
        serialization_failures,
        pipelined,
        statements_after_ddl,
        statements_are_closed,
        typed_queries,
        simple_queries,
        portals,
        copy_text,
        copy_binary,
        notifications_and_notices,
        cancelled,
        errors,
        enums,
        composites,
        domains,
        arrays_of_own_types,
    );
}
