//! Arrays: `= ANY` and its kind, columns, changes, parameters.
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
        ("id = ANY('{{1},{2}}')", &["1", "2"]),
        ("id = ANY(ARRAY[[1, 3], [8, 9]])", &["1", "3"]),
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
        ("d = ANY('{2024-02-30}')", "22008"),
    ] {
        c.fails(&format!("SELECT id FROM t WHERE {condition}"), state).await;
    }
}

/// A parameter whose type its place in an array tells.
#[tokio::test]
async fn parameters_within_arrays() {
    let mut c = client().await;
    c.ok("CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE TYPE").await;
    for (sql, of) in [
        ("SELECT (ARRAY[1, 2])[$1]", DataType::Int4),
        ("SELECT ARRAY[$1, 1]", DataType::Int4),
        ("SELECT ARRAY['a', $1]", DataType::Text),
    ] {
        assert_eq!(c.parameters(sql).await, [of], "{sql}");
    }
    for sql in ["SELECT enum_first($1::mood)", "SELECT enum_range($1::mood)"] {
        assert_eq!(c.parameters(sql).await.len(), 1, "{sql}");
    }
    for (sql, oid) in [
        ("SELECT 1 FROM pg_type WHERE oid = ANY ($1::oid[])", 1028),
        ("SELECT 1 FROM pg_type WHERE oid = $1::oid", 26),
        ("SELECT $1::int8", 20),
    ] {
        let prepared = c.session.prepare(sql, &[]).await.expect(sql);
        let catalog = c.session.catalog().await;
        assert_eq!(prepared.parameter_oids(&catalog), [oid], "{sql}");
    }
}

#[tokio::test]
async fn arrays_as_parameters() {
    let mut c = client().await;
    let ints = DataType::Int4.array().unwrap();
    for sql in ["SELECT id FROM t WHERE id = ANY($1)", "SELECT id FROM t WHERE id = ANY($1::int[])"] {
        assert_eq!(c.parameters(sql).await, [ints]);
        let select = c.session.prepare(sql, &[]).await.unwrap();
        for (array, ids) in [("{3,1}", vec!["1", "3"]), ("{}", vec![]), ("{2}", vec!["2"])] {
            assert_eq!(c.rows_of(&select, vec![ints.parse(array).unwrap()]).await.unwrap(), ids, "{sql} {array}");
        }
        assert!(c.rows_of(&select, vec![Datum::Null]).await.unwrap().is_empty());
    }
    c.ok("PREPARE a (int[], text[]) AS SELECT id FROM t WHERE id = ANY($1) AND v <> ALL($2)", "PREPARE").await;
    c.rows("EXECUTE a('{1,2}', '{a}')", &["2"]).await;
    let delete = c.session.prepare("DELETE FROM t WHERE id = ANY($1)", &[]).await.unwrap();
    c.execute(&delete, vec![ints.parse("{1,2}").unwrap()]).await.unwrap();
    c.rows("SELECT id FROM t", &["3"]).await;
}

#[tokio::test]
async fn arrays_as_results() {
    let mut c = client().await;
    c.rows("SELECT ARRAY[1, 2, 3]", &["[1, 2, 3]"]).await;
    c.rows("SELECT ARRAY['a', NULL, v] FROM t WHERE id = 1", &["[a, , a]"]).await;
    c.rows("SELECT ARRAY[id, 2.5, id + 1] FROM t WHERE id < 3 ORDER BY id", &["[1, 2.5, 2]", "[2, 2.5, 3]"]).await;
    c.rows("SELECT ARRAY[d, '2024-12-31'] FROM t WHERE id = 1", &["[2024-01-01, 2024-12-31]"]).await;
    assert_eq!(c.columns("SELECT ARRAY[1]").await[0].0, "array");
    c.rows("SELECT array_agg(id) FROM t", &["[1, 2, 3]"]).await;
    c.fails("SELECT ARRAY[1, 'x']", "22P02").await;
    c.fails("SELECT ARRAY[id, d] FROM t", "42804").await;
    c.rows("SELECT 'abc' SIMILAR TO 'a%'", &["true"]).await;
}

#[tokio::test]
async fn columns_of_arrays() {
    let mut c = client().await;
    c.ok("CREATE TABLE a (id int PRIMARY KEY, i int[] UNIQUE, v varchar(3)[] DEFAULT '{x}')", "CREATE TABLE").await;
    c.ok("INSERT INTO a (id, i) VALUES (1, '{1,2}'), (2, ARRAY[3]), (3, NULL), (4, '{}')", "INSERT 0 4").await;
    let by_array = ["4|{}|{x}", "1|{1,2}|{x}", "2|{3}|{x}", "3|NULL|{x}"];
    c.rows("SELECT id, i::text, v::text FROM a ORDER BY a.i", &by_array).await;
    c.rows("SELECT id FROM a WHERE i = '{1,2}'", &["1"]).await;
    c.rows("SELECT id FROM a WHERE i > '{1,2}'", &["2"]).await;
    c.rows("SELECT id FROM a WHERE 3 = ANY (i) OR i[2] = 2 ORDER BY id", &["1", "2"]).await;
    c.fails("INSERT INTO a (id, i) VALUES (5, ARRAY[3])", "23505").await;
    c.fails("INSERT INTO a (id, v) VALUES (5, '{long}')", "22001").await;
    c.fails("INSERT INTO a (id, i) VALUES (5, ARRAY['a'])", "42804").await;
    c.fails("UPDATE a SET v[1] = 'long' WHERE id = 1", "22001").await;
    c.ok("UPDATE a SET i[2] = 9, v = v || 'y'::varchar WHERE id = 1", "UPDATE 1").await;
    c.ok("UPDATE a SET i[1] = 7 WHERE id = 3", "UPDATE 1").await;
    for (change, state) in [
        ("i[1] = 1, i = '{2}'", "42601"),
        ("i[NULL] = 1", "22004"),
        ("i[1] = 'x'", "22P02"),
        ("id[1] = 1", "42804"),
        ("i[1] = DEFAULT", "0A000"),
        ("i[0] = 1", "0A000"), // It has an index.
        ("i[1][1] = 1", "2202E"),
        ("i[1:3] = '{1}'", "2202E"),
    ] {
        c.fails(&format!("UPDATE a SET {change} WHERE id = 1"), state).await;
    }
    c.rows("SELECT id, i::text, v::text FROM a WHERE id IN (1, 3) ORDER BY id", &["1|{1,9}|{x,y}", "3|{7}|{x}"]).await;
    let update = c.session.prepare("UPDATE a SET i = $1, v[2] = $2 WHERE id = $3", &[]).await.unwrap();
    assert_eq!(update.parameters[0], DataType::Int4.array().unwrap());
    assert!(update.parameters[1].is_text(), "{:?}", update.parameters);
    let mine = DataType::Int4.array().unwrap().parse("{8,NULL}").unwrap();
    c.execute(&update, vec![mine, Datum::text("z"), Datum::Int4(2)]).await.unwrap();
    c.rows("SELECT i::text, v::text FROM a WHERE id = 2", &["{8,NULL}|{x,z}"]).await;
    c.rows(
        "SELECT id, x, n FROM a, unnest(i) WITH ORDINALITY u(x, n) WHERE id < 3 ORDER BY 1, 3",
        &["1|1|1", "1|9|2", "2|8|1", "2|NULL|2"],
    )
    .await;
    c.rows("SELECT id, x FROM a LEFT JOIN unnest(i) x ON true WHERE id > 2 ORDER BY 1", &["3|7", "4|NULL"]).await;
    c.rows(
        "SELECT ARRAY(SELECT id FROM a ORDER BY id DESC)::text, ARRAY(SELECT id FROM a WHERE false)::text",
        &["{4,3,2,1}|{}"],
    )
    .await;
}
