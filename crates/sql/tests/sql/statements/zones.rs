//! TimeZone: timestamps with time zone are read and shown in the session's.
use crate::common::{Client, database};
use terrace_engine::Datum;

async fn berlin() -> Client {
    let mut c = Client::new(&database().await);
    c.ok("SET TimeZone = 'europe/berlin'", "SET").await;
    c.rows("SHOW TimeZone", &["Europe/Berlin"]).await;
    c
}

#[tokio::test]
async fn a_zone_is_a_setting() {
    let mut c = Client::new(&database().await);
    for (set, shown) in [
        ("SET TIME ZONE 'America/New_York'", "America/New_York"),
        ("SET TIME ZONE -3", "<-03>+03"),
        ("SET TIME ZONE '5.5'", "<+05:30>-05:30"),
        ("SET TimeZone TO 'GMT+2'", "GMT+2"),
        ("SET TIME ZONE LOCAL", "UTC"),
        ("SET TimeZone = 'Asia/Tokyo'", "Asia/Tokyo"),
        ("SET TIME ZONE DEFAULT", "UTC"),
    ] {
        c.ok(set, "SET").await;
        c.rows("SHOW TIME ZONE", &[shown]).await;
    }
    for bad in ["''", "'Mars/Olympus'", "99", "'UTC+1:75'", "'Europe/Berlin '' OR 1=1'"] {
        c.fails(&format!("SET TimeZone = {bad}"), "22023").await;
    }
    let instant = "SELECT ('2024-07-01 12:00:00+00'::timestamptz)::text";
    c.ok("BEGIN", "BEGIN").await;
    c.ok("SET LOCAL TimeZone = 'Europe/Berlin'", "SET").await;
    c.rows(instant, &["2024-07-01 14:00:00+02"]).await;
    c.ok("ROLLBACK", "ROLLBACK").await;
    c.rows(instant, &["2024-07-01 12:00:00+00"]).await;
    c.session.set("TimeZone", "Asia/Kolkata").unwrap();
    c.rows(instant, &["2024-07-01 17:30:00+05:30"]).await;
    c.ok("SET TimeZone = 'UTC'", "SET").await;
    c.ok("RESET TimeZone", "RESET").await;
    c.rows("SELECT current_setting('TimeZone')", &["Asia/Kolkata"]).await;
}

#[tokio::test]
async fn casts_and_literals_are_of_the_session() {
    let mut c = berlin().await;
    for (expression, value) in [
        ("('2024-07-01 12:00'::timestamptz)::text", "2024-07-01 12:00:00+02"),
        ("(timestamptz '2024-01-01 12:00+00')::text", "2024-01-01 13:00:00+01"),
        ("('2024-07-01'::date::timestamptz)::text", "2024-07-01 00:00:00+02"),
        ("('2024-07-01 22:30+00'::timestamptz)::date", "2024-07-02"),
        ("('2024-07-01 22:30+00'::timestamptz)::timestamp", "2024-07-02T00:30:00"),
        ("('2024-07-01 12:00'::timestamp)::timestamptz = '2024-07-01 10:00+00'", "true"),
        ("'2024-07-01 12:00'::timestamp = '2024-07-01 10:00+00'::timestamptz", "true"),
        ("'2024-07-02'::date = '2024-07-01 22:00+00'::timestamptz", "true"),
        // Fields and units of the local time; a day is as long as the clock says.
        ("extract(hour FROM '2024-07-01 22:30+00'::timestamptz)", "0"),
        ("date_part('day', '2024-07-01 22:30+00'::timestamptz)", "2.0"),
        ("extract(epoch FROM '1970-01-01 01:00'::timestamptz)", "0.000000"),
        ("extract(timezone FROM '2024-07-01'::timestamptz)", "7200"),
        ("extract(timezone_hour FROM '2024-01-01'::timestamptz)", "1"),
        ("extract(timezone_minute FROM '2024-01-01'::timestamptz)", "0"),
        ("date_trunc('day', '2024-07-01 22:30+00'::timestamptz)::text", "2024-07-02 00:00:00+02"),
        ("date_trunc('month', '2024-04-01'::date)::text", "2024-04-01 00:00:00+02"),
        ("('2024-03-30 12:00'::timestamptz + interval '1 day')::text", "2024-03-31 12:00:00+02"),
        ("('2024-03-30 12:00'::timestamptz + interval '24 hours')::text", "2024-03-31 13:00:00+02"),
        ("('2024-03-31 12:00'::timestamptz - interval '1 month')::text", "2024-02-29 12:00:00+01"),
        ("(interval '1 hour' + '2024-10-27 02:30'::timestamptz)::text", "2024-10-27 03:30:00+01"),
        ("extract(epoch FROM '2024-03-31 12:00'::timestamptz - '2024-03-30 12:00'::timestamptz)", "82800.000000"),
        ("now()::date = current_date", "true"),
        ("localtimestamp = now()::timestamp", "true"),
    ] {
        c.rows(&format!("SELECT {expression}"), &[value]).await;
    }
    c.fails("SELECT '2024-07-01 25:00'::timestamptz", "22008").await;
    c.fails("SELECT '2024-07-01 12:00 Mars'::timestamptz", "22007").await;
    c.fails("SELECT '294246-12-31'::timestamptz + interval '1000000 years'", "22008").await;
}

#[tokio::test]
async fn at_time_zone() {
    let mut c = berlin().await;
    for (expression, value) in [
        ("'2024-07-01 12:00+00'::timestamptz AT TIME ZONE 'America/New_York'", "2024-07-01T08:00:00"),
        ("('2024-07-01 12:00'::timestamp AT TIME ZONE 'America/New_York')::text", "2024-07-01 18:00:00+02"),
        ("'2024-07-01 12:00' AT TIME ZONE 'UTC'", "2024-07-01T10:00:00"),
        ("timezone('Asia/Tokyo', '2024-07-01 12:00+00'::timestamptz)", "2024-07-01T21:00:00"),
        ("'2024-07-01'::date AT TIME ZONE 'UTC'", "2024-06-30T22:00:00"),
        (
            "('2024-07-01 12:00'::timestamp AT TIME ZONE 'Asia/Tokyo') AT TIME ZONE 'Europe/London'",
            "2024-07-01T04:00:00",
        ),
        ("NULL::timestamptz AT TIME ZONE 'UTC'", "NULL"),
        // A zone's last rule goes on for ever: summer in Berlin is two hours ahead of UTC in any year.
        ("'9999-07-01 12:00+00'::timestamptz AT TIME ZONE 'Europe/Berlin'", "9999-07-01T14:00:00"),
        ("'9999-01-01 12:00+00'::timestamptz AT TIME ZONE 'Europe/Berlin'", "9999-01-01T13:00:00"),
        ("('9999-07-01 12:00'::timestamp AT TIME ZONE 'America/New_York')::text", "9999-07-01 18:00:00+02"),
    ] {
        c.rows(&format!("SELECT {expression}"), &[value]).await;
    }
    c.fails("SELECT now() AT TIME ZONE 'Mars/Olympus'", "22023").await;
    c.fails("SELECT 1 AT TIME ZONE 'UTC'", "42883").await;
    assert_eq!(c.columns("SELECT now() AT TIME ZONE 'UTC'").await[0].0, "timezone");
}

/// What a statement by key has kept of a zone is not used in another.
#[tokio::test]
async fn stored_values_by_key_and_by_plan() {
    let mut c = Client::new(&database().await);
    c.ok(
        "CREATE TABLE t (id int PRIMARY KEY, at timestamptz, day date DEFAULT now(), l timestamp DEFAULT now())",
        "CREATE TABLE",
    )
    .await;
    let insert = c.session.prepare("INSERT INTO t (id, at) VALUES ($1, '2024-07-01 12:00')", &[]).await.unwrap();
    let shown = "SELECT id, at::text FROM t ORDER BY id";
    for (id, zone) in (1..).zip(["UTC", "Europe/Berlin", "UTC", "America/New_York"]) {
        c.ok(&format!("SET TimeZone = '{zone}'"), "SET").await;
        c.execute(&insert, vec![Datum::Int4(id)]).await.unwrap();
        // The same text again, in another zone.
        c.text("INSERT INTO t (id, at) VALUES (77, '2024-07-01 12:00')").await.unwrap();
        c.rows(
            "SELECT count(*) FROM t a, t b WHERE a.id = 77 AND b.id <> 77 AND a.at = b.at AND b.l = now()::timestamp",
            &["0"],
        )
        .await;
        // What was prepared once was read then; a text that comes anew is read anew.
        let same = if zone == "UTC" { "1" } else { "0" };
        c.rows(&format!("SELECT count(*) FROM t a, t b WHERE a.id = 77 AND b.id = {id} AND a.at = b.at"), &[same])
            .await;
        c.rows("SELECT id FROM t WHERE at = '2024-07-01 12:00' AND id = 77", &["77"]).await;
        c.ok("DELETE FROM t WHERE id = 77", "DELETE 1").await;
    }
    c.ok("SET TimeZone = 'UTC'", "SET").await;
    let utc: Vec<String> = (1..=4).map(|id| format!("{id}|2024-07-01 12:00:00+00")).collect();
    c.rows(shown, &utc.iter().map(String::as_str).collect::<Vec<_>>()).await;
    c.ok("SET TimeZone = 'Asia/Tokyo'", "SET").await;
    c.ok("BEGIN", "BEGIN").await;
    c.ok("INSERT INTO t (id) VALUES (5)", "INSERT 0 1").await;
    c.rows("SELECT id FROM t WHERE id = 5 AND day = current_date AND l = localtimestamp", &["5"]).await;
    c.ok("ROLLBACK", "ROLLBACK").await;
    c.ok("CREATE TABLE u (at timestamptz CHECK (extract(hour FROM at) < 12))", "CREATE TABLE").await;
    c.ok("INSERT INTO u VALUES ('2024-01-01 11:00')", "INSERT 0 1").await;
    let error = c.fails("INSERT INTO u VALUES ('2024-01-01 11:00+00')", "23514").await;
    assert_eq!(error.detail.as_deref(), Some("Failing row contains (2024-01-01 20:00:00+09)."));
}
