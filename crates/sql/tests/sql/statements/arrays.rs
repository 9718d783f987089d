//! `= ANY`, `<> ALL`, `ARRAY[...]`.
use crate::common::{Client, database};
use terrace_engine::{DataType, Datum};

async fn client() -> Client {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, v text, n numeric(6,2), d date, c char(4))", "CREATE TABLE").await;
    c.ok(
        "INSERT INTO t VALUES (1, 'a', 1.5, '2024-01-01', 'x'), (2, 'b,\"', 2.25, '2024-02-29', 'yy'), \
         (3, NULL, NULL, NULL, NULL)",
        "INSERT 0 3",
    )
    .await;
    c
}

#[tokio::test]
async fn membership_in_arrays() {
    let mut c = client().await;
    for (condition, ids) in [
        ("id = ANY(ARRAY[1, 3, 9])", &["1", "3"][..]),
        ("id = ANY('{1,3,9}')", &["1", "3"]),
        ("id = ANY('{1,3,9}'::int[])", &["1", "3"]),
        ("id = ANY((ARRAY['2'])::int[])", &["2"]),
        ("id = SOME('{ 2 }')", &["2"]),
        ("id = ANY('{}')", &[]),
        ("id = ANY(ARRAY[]::int[])", &[]),
        ("id <> ALL('{}')", &["1", "2", "3"]),
        ("id <> ALL('{1,2}'::bigint[])", &["3"]),
        ("id <> ALL(ARRAY[1, 2])", &["3"]),
        ("id <> ALL('{1,NULL}')", &[]),
        ("id = ANY('{1,NULL}')", &["1"]),
        ("id = ANY(NULL)", &[]),
        ("v = ANY('{a,\"b,\\\"\"}')", &["1", "2"]),
        ("v = ANY(ARRAY['a', 'z'])", &["1"]),
        ("n = ANY('{1.50,9}')", &["1"]),
        ("n = ANY('{1.501}')", &[]),
        ("d = ANY('{2024-02-29}')", &["2"]),
        ("c = ANY('{x,yy}')", &["1", "2"]),
        ("id + 1 = ANY('{2,3}')", &["1", "2"]),
        ("NOT (id = ANY('{1}'))", &["2", "3"]),
    ] {
        c.rows(&format!("SELECT id FROM t WHERE {condition}"), ids).await;
    }
    c.ok("UPDATE t SET v = 'u' WHERE id = ANY('{1,2}')", "UPDATE 2").await;
    c.rows("SELECT id, 2 = ANY(ARRAY[id, 2]) FROM t WHERE v = 'u'", &["1|true", "2|true"]).await;
    for (condition, state) in [
        ("id = ANY('{1,x}')", "22P02"),
        ("id = ANY('1,2')", "22P02"),
        ("id = ANY('{1,2')", "22P02"),
        ("id = ANY('{99999999999}')", "22003"),
        ("id = ANY('{{1},{2}}')", "0A000"),
        ("d = ANY('{2024-02-30}')", "22008"),
    ] {
        c.fails(&format!("SELECT id FROM t WHERE {condition}"), state).await;
    }
}

#[tokio::test]
async fn arrays_as_parameters() {
    let mut c = client().await;
    for sql in ["SELECT id FROM t WHERE id = ANY($1)", "SELECT id FROM t WHERE id = ANY($1::int[])"] {
        assert_eq!(c.parameters(sql).await, [DataType::Text], "an array is its text");
        let select = c.session.prepare(sql, &[]).await.unwrap();
        for (array, ids) in [("{3,1}", vec!["1", "3"]), ("{}", vec![]), ("{2}", vec!["2"])] {
            assert_eq!(c.rows_of(&select, vec![Datum::text(array)]).await.unwrap(), ids, "{sql} {array}");
        }
        assert!(c.rows_of(&select, vec![Datum::Null]).await.unwrap().is_empty());
        let error = c.rows_of(&select, vec![Datum::text("{1")]).await.unwrap_err();
        assert_eq!((error.state.0, error.to_string().as_str()), ("22P02", "malformed array literal: \"{1\""));
    }
    c.ok("PREPARE a (int[], text) AS SELECT id FROM t WHERE id = ANY($1) AND v <> ALL($2)", "PREPARE").await;
    c.rows("EXECUTE a('{1,2}', '{a}')", &["2"]).await;
    let delete = c.session.prepare("DELETE FROM t WHERE id = ANY($1)", &[]).await.unwrap();
    c.execute(&delete, vec![Datum::text("{1,2}")]).await.unwrap();
    c.rows("SELECT id FROM t", &["3"]).await;
}

#[tokio::test]
async fn arrays_as_results() {
    let mut c = client().await;
    c.rows("SELECT ARRAY[1, 2, 3]", &["[1, 2, 3]"]).await;
    c.rows("SELECT ARRAY['a', NULL, v] FROM t WHERE id = 1", &["[a, , a]"]).await;
    c.rows(
        "SELECT ARRAY[id, 2.5, id + 1] FROM t WHERE id < 3 ORDER BY id",
        &[
            "[1.000000000000000000, 2.500000000000000000, 2.000000000000000000]",
            "[2.000000000000000000, 2.500000000000000000, 3.000000000000000000]",
        ],
    )
    .await;
    c.rows("SELECT ARRAY[d, '2024-12-31'] FROM t WHERE id = 1", &["[2024-01-01, 2024-12-31]"]).await;
    assert_eq!(c.columns("SELECT ARRAY[1]").await[0].0, "array");
    c.rows("SELECT array_agg(id) FROM t", &["[1, 2, 3]"]).await;
    c.fails("SELECT ARRAY[1, 'x']", "22P02").await;
    c.fails("SELECT ARRAY[id, d] FROM t", "42804").await;
    c.fails("CREATE TABLE a (x int[])", "0A000").await;
    c.fails("SELECT 'abc' SIMILAR TO 'a%'", "0A000").await;
}
