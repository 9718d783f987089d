//! Joins by key answer what the same statements answer when they are planned.
use crate::common::{Client, Reply, database};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use std::collections::BTreeMap;
use terrace_engine::{DataType, Datum};

const TABLES: &[&str] = &[
    "CREATE TABLE firm (id int PRIMARY KEY, name text, boss int, big bigint UNIQUE)",
    "CREATE TABLE staff (firm int, id int, name text, mentor int, day timestamp, PRIMARY KEY (firm, id))",
    "CREATE TABLE badge (number bigint PRIMARY KEY, firm int, staff int, colour text)",
    "CREATE INDEX staff_names ON staff (firm, name)",
    "CREATE INDEX badges ON badge (firm, staff)",
    "INSERT INTO firm VALUES (1, 'a', 2, 10), (2, 'b', NULL, 20), (3, NULL, 9, NULL), (4, 'd', 1, 40)",
    "INSERT INTO staff SELECT f, i, nullif(chr(96 + (f + i) % 5), 'a'), nullif(i - 1, 0), timestamp \
       '2020-01-01' + i * interval '1 day'
       FROM generate_series(1, 3) AS f(f), generate_series(1, 6) AS i(i)",
    "INSERT INTO badge SELECT f * 100 + i * 10 + n, f, nullif(i, 4), CASE n WHEN 1 THEN 'red' ELSE 'blue' END
       FROM generate_series(1, 3) AS f(f), generate_series(2, 6) AS i(i), generate_series(1, 2) AS n(n)",
];

/// Statements with parameters of type int.
const STATEMENTS: &[&str] = &[
    "SELECT firm.name, staff.name FROM firm, staff WHERE firm.id = $1 AND staff.firm = firm.id AND staff.id = \
       firm.boss",
    "SELECT * FROM staff s JOIN firm f ON f.id = s.firm WHERE s.firm = $1",
    "SELECT f.*, day FROM staff s JOIN firm f ON f.id = s.firm WHERE s.firm = $1",
    "SELECT s.name, f.name AS firm FROM firm f JOIN staff s ON s.firm = f.id WHERE f.id = $1 ORDER BY s.name \
       DESC, s.id",
    "SELECT s.id FROM firm f JOIN staff s ON s.firm = f.id AND s.id >= $2 WHERE f.id = $1",
    "SELECT s.id, m.name FROM staff s JOIN staff m ON m.firm = s.firm AND m.id = s.mentor WHERE s.firm = $1 AND \
       s.id < $2",
    "SELECT s.id, m.name FROM staff s LEFT JOIN staff m ON m.firm = s.firm AND m.id = s.mentor WHERE s.firm = $1",
    "SELECT s.id, m.id FROM staff s LEFT JOIN staff m ON m.firm = s.firm AND m.id = s.mentor AND m.name = 'c' \
       WHERE s.firm = $1",
    "SELECT s.id, b.colour FROM staff s LEFT JOIN badge b ON b.firm = s.firm AND b.staff = s.id AND b.number > \
       220 WHERE s.firm = $1
       ORDER BY s.id, b.number",
    "SELECT f.name, s.name, b.number FROM firm f, staff s, badge b WHERE b.number = $1 AND s.firm = b.firm AND \
       s.id = b.staff AND f.id = s.firm",
    "SELECT f.name, b.number FROM firm f JOIN staff s ON s.firm = f.id LEFT JOIN badge b ON b.firm = s.firm AND \
       b.staff = s.id WHERE f.id = $1",
    "SELECT count(*) FROM firm f JOIN staff s ON s.firm = f.id JOIN badge b ON b.firm = s.firm AND b.staff = \
       s.id WHERE f.id = $1",
    "SELECT count(DISTINCT s.name) FROM firm f, staff s WHERE f.id = $1 AND s.firm = f.id AND s.id < $2",
    "SELECT sum(s.mentor) FROM firm f, staff s WHERE f.id = $1 AND s.firm = f.id",
    "SELECT min(number) FROM staff s LEFT JOIN badge b ON b.firm = s.firm AND b.staff = s.id WHERE s.firm = $1 \
       AND s.id >= $2",
    "SELECT f.id + 1, s.day, s.firm::text FROM firm f CROSS JOIN staff s WHERE f.id = $1 AND s.firm = $2",
    "SELECT f.id, g.id FROM firm f, firm g WHERE f.id = $1 AND g.id = $2",
    "SELECT s.id FROM firm f, staff s WHERE f.id = $1 AND s.firm = f.id ORDER BY s.id DESC LIMIT 2",
    "SELECT s.id FROM firm f, staff s WHERE f.id = $1 AND s.firm = f.id AND s.firm = $2 AND f.boss = s.id",
    "SELECT s.id FROM firm f, staff s WHERE f.id = 2 AND s.firm = f.id AND s.name = 'd'",
    "SELECT f.id, name FROM (firm f JOIN badge b ON b.firm = f.id) WHERE b.number = 121",
];

/// Statements that are the planner's.
const OTHERS: &[&str] = &[
    "SELECT s.id FROM firm f JOIN staff s ON s.firm = f.id AND s.id > f.boss WHERE f.id = 1",
    "SELECT 1 FROM firm f JOIN staff s ON s.firm = f.id",
    "SELECT 1 FROM firm f, staff s WHERE f.id = 1 AND s.day = timestamp '2020-01-01'",
    "SELECT 1 FROM firm f JOIN staff s USING (name) WHERE f.id = 1",
    "SELECT f.id FROM firm f LEFT JOIN staff s ON s.firm = f.id WHERE f.id = 1 AND s.id = 2",
    "SELECT f.id FROM firm f RIGHT JOIN staff s ON s.firm = f.id WHERE f.id = 1",
    "SELECT f.id FROM firm f FULL JOIN staff s ON s.firm = f.id WHERE f.id = 1",
    "SELECT 1 FROM firm f, badge b WHERE f.id = 1 AND b.number = f.id",
    "SELECT 1 FROM firm f, staff s WHERE f.id = 1 AND s.firm = f.id FOR UPDATE",
    "SELECT DISTINCT s.name FROM firm f, staff s WHERE f.id = 1 AND s.firm = f.id",
    "SELECT count(*) FROM firm f, staff s WHERE f.id = 1 AND s.firm = f.id LIMIT 0",
    "SELECT 1 FROM firm a, firm b, firm c, firm d WHERE a.id = 1 AND b.id = a.id AND c.id = b.id AND d.id = c.id",
];

/// Statements that PostgreSQL refuses.
const WRONG: &[&str] = &[
    "SELECT name FROM firm f, staff s WHERE f.id = 1 AND s.firm = f.id",
    "SELECT 1 FROM firm f, staff s JOIN badge b ON b.firm = f.id WHERE f.id = 1 AND s.firm = f.id",
    "SELECT 1 FROM firm, firm WHERE id = 1",
    "SELECT 1 FROM firm f, staff f WHERE f.boss = 1 AND f.mentor = 2",
    "SELECT 1 FROM firm f, staff s WHERE firm.id = 1 AND s.firm = f.id",
];

async fn filled() -> Client {
    let mut c = Client::new(&database().await);
    for sql in TABLES {
        c.run(sql).await.unwrap();
    }
    c
}

fn listed<'m>(metadata: impl IntoIterator<Item = (&'m String, &'m String)>) -> String {
    format!("{:?}", metadata.into_iter().collect::<BTreeMap<_, _>>())
}

/// What a statement answers; rows in any order where it asks for none.
async fn told(c: &mut Client, sql: &str, parameters: &[Datum], by_key: bool) -> Vec<String> {
    c.session.run_by_key(by_key);
    let stated = [Some(DataType::Int4), Some(DataType::Int4)];
    let prepared = c.session.prepare(sql, &stated[..parameters.len()]).await.unwrap();
    assert_eq!(prepared.is_by_key(), by_key, "{sql}");
    let fields: Vec<_> = prepared.columns.iter().flat_map(|columns| columns.fields()).collect();
    let mut answer: Vec<String> = match c.execute(&prepared, parameters.to_vec()).await.unwrap() {
        Reply::Rows(rows) => rows.iter().map(|row| format!("{row:?}")).collect(),
        other => panic!("{sql}: {other:?}"),
    };
    if !sql.contains("ORDER BY") {
        answer.sort();
    }
    let schema = prepared.columns.as_ref().expect("a SELECT has columns");
    answer.extend(
        fields.iter().map(|field| format!("{} {} {}", field.name(), field.data_type(), listed(field.metadata()))),
    );
    answer.push(listed(schema.metadata()));
    answer
}

#[tokio::test]
async fn joins_answer_as_planned() {
    let mut c = filled().await;
    let mut random = StdRng::seed_from_u64(3);
    let values: Vec<Datum> =
        [0, 1, 2, 3, 4, 5, 121, 241, i32::MAX].map(Datum::Int4).into_iter().chain([Datum::Null]).collect();
    let mut rows = 0;
    for sql in STATEMENTS {
        let count = (1..=2).filter(|n| sql.contains(&format!("${n}"))).count();
        for _ in 0..12 {
            let parameters: Vec<Datum> = (0..count).map(|_| values.choose(&mut random).unwrap().clone()).collect();
            let planned = told(&mut c, sql, &parameters, false).await;
            let by_key = told(&mut c, sql, &parameters, true).await;
            assert_eq!(planned, by_key, "{sql} {parameters:?}");
            rows += by_key.len();
        }
    }
    assert!(rows > 12 * STATEMENTS.len() * 3, "most find something: {rows}");
}

/// The same with literals.
#[tokio::test]
async fn joins_by_text() {
    let mut c = filled().await;
    for sql in STATEMENTS {
        let sql = sql.replace("$1", "2").replace("$2", "-1");
        c.session.run_by_key(true);
        let by_key = c.run(&sql).await.unwrap();
        c.session.run_by_key(false);
        let planned = c.run(&sql).await.unwrap();
        let sorted = |reply: Reply| match reply {
            Reply::Rows(rows) => {
                let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
                rows.sort();
                rows
            }
            other => panic!("{sql}: {other:?}"),
        };
        assert_eq!(sorted(planned), sorted(by_key), "{sql}");
    }
}

#[tokio::test]
async fn what_is_no_join_by_key() {
    let mut c = filled().await;
    c.session.run_by_key(true);
    for sql in OTHERS {
        assert!(!c.session.prepare(sql, &[]).await.unwrap().is_by_key(), "{sql}");
    }
    for sql in WRONG {
        assert!(c.session.prepare(sql, &[]).await.is_err(), "{sql}");
    }
}

async fn pages_hit(c: &mut Client) -> i64 {
    match c.run("SELECT hits FROM terrace.pool").await.unwrap() {
        Reply::Rows(rows) => rows[0].parse().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// A parameter without a stated type that meets two types is the planner's.
#[tokio::test]
async fn parameters_of_two_types() {
    let mut c = filled().await;
    c.session.run_by_key(true);
    for sql in [
        "SELECT 1 FROM firm f JOIN badge b ON b.firm = f.id AND b.number = $1 WHERE f.id = $1",
        "SELECT 1 FROM firm f LEFT JOIN badge b ON b.firm = f.id AND b.number = $1 WHERE f.id = $1",
        "SELECT name FROM firm WHERE id = $1 LIMIT $1",
        "UPDATE firm SET boss = $1, big = big + $1 WHERE id = 1 RETURNING big",
        "INSERT INTO firm (id, big) VALUES ($1, $1)",
    ] {
        assert!(!c.session.prepare(sql, &[]).await.is_ok_and(|prepared| prepared.is_by_key()), "{sql}");
    }
    let same = "SELECT f.name FROM firm f, staff s WHERE f.id = $1 AND s.firm = f.id AND s.id = $1";
    assert!(c.session.prepare(same, &[]).await.unwrap().is_by_key());
}

/// A range that is longer than a statement by key reads is the planner's; so is one that another's rows lead to.
#[tokio::test]
async fn long_ranges() {
    let mut c = filled().await;
    c.run("INSERT INTO staff SELECT 4, i, 'x', i / 2, NULL FROM generate_series(1, 1500) AS i(i)").await.unwrap();
    // Each of 900 rows leads to 900, of which a check leaves one.
    c.run("INSERT INTO firm VALUES (5)").await.unwrap();
    c.run("INSERT INTO staff SELECT 5, i, 'x', i, NULL FROM generate_series(1, 900) AS i(i)").await.unwrap();
    let crossed = "SELECT count(*) FROM staff s, staff m WHERE s.firm = $1 AND m.firm = s.firm AND m.mentor = s.mentor";
    let planned = told(&mut c, crossed, &[Datum::Int4(5)], false).await;
    assert_eq!(planned[0], format!("{:?}", "900"));
    let before = pages_hit(&mut c).await;
    assert_eq!(told(&mut c, crossed, &[Datum::Int4(5)], true).await, planned);
    let hit = pages_hit(&mut c).await - before;
    assert!(hit < 100_000, "{hit} pages hit: the rows read are bounded, not those kept");
    for (sql, count) in [
        ("SELECT count(*) FROM firm f, staff s WHERE f.id = $1 AND s.firm = f.id", "1500"),
        (
            "SELECT max(m.id) FROM staff s LEFT JOIN staff m ON m.firm = s.firm AND m.id = s.mentor WHERE s.firm = $1",
            "750",
        ),
    ] {
        assert_eq!(
            told(&mut c, sql, &[Datum::Int4(4)], true).await[0],
            told(&mut c, sql, &[Datum::Int4(4)], false).await[0]
        );
        let rows = format!("{:?}", c.run(&sql.replace("$1", "4")).await.unwrap());
        assert!(rows.contains(count), "{sql}: {rows}");
    }
}
