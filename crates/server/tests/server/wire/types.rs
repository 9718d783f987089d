//! Types as clients are told them, and names that are cut.
use crate::common::raw::*;
use crate::common::{Server, state};
use tokio::net::TcpStream;
use tokio_postgres::types::Type;

/// Parse, Bind, Describe and Execute with parameters as texts, in the binary format; the oids of the columns, and the
/// values of the first row.
async fn described(
    raw: &mut TcpStream,
    sql: &str,
    given: &[(u32, &str)],
) -> Result<(Vec<u32>, Vec<Option<Vec<u8>>>), String> {
    let mut parse = [b"\0", sql.as_bytes(), b"\0", &(given.len() as u16).to_be_bytes()[..]].concat();
    let mut bind = [b"\0\0\0\0", &(given.len() as u16).to_be_bytes()[..]].concat();
    for (oid, value) in given {
        parse.extend(oid.to_be_bytes());
        bind.extend((value.len() as u32).to_be_bytes());
        bind.extend(value.as_bytes());
    }
    bind.extend([0, 1, 0, 1]);
    let messages = [
        packet(b'P', &parse),
        packet(b'B', &bind),
        packet(b'D', b"P\0"),
        packet(b'E', b"\0\0\0\0\0"),
        packet(b'S', b""),
    ];
    raw_send(raw, &messages.concat()).await;
    let answered = until_ready(raw).await;
    if let Some(state) = error_state(&answered) {
        return Err(state);
    }
    let body = |kind| &answered.iter().find(|(k, _)| *k == kind).expect("rows").1;
    let mut columns = &body(b'T')[2..];
    let mut oids = vec![];
    while !columns.is_empty() {
        let name = columns.iter().position(|b| *b == 0).unwrap();
        oids.push(u32::from_be_bytes(columns[name + 7..name + 11].try_into().unwrap()));
        columns = &columns[name + 19..];
    }
    let mut row = &body(b'D')[2..];
    let mut values = vec![];
    while !row.is_empty() {
        let length = i32::from_be_bytes(row[..4].try_into().unwrap());
        let value = usize::try_from(length).ok().map(|n| row[4..4 + n].to_vec());
        row = &row[4 + value.as_ref().map_or(0, Vec::len)..];
        values.push(value);
    }
    Ok((oids, values))
}

fn array(oid: u32, items: &[&[u8]]) -> Vec<u8> {
    let mut array: Vec<u8> = [1u32, 0, oid, items.len() as u32, 1].iter().flat_map(|n| n.to_be_bytes()).collect();
    for item in items {
        array.extend((item.len() as u32).to_be_bytes());
        array.extend(*item);
    }
    array
}

/// Arrays of parameters, rows and oids are described, and sent, as what they are.
#[tokio::test(flavor = "multi_thread")]
async fn f32_what_is_described_is_sent() {
    let server = Server::start().await;
    let mut raw = session(&server).await;
    for (of, text, oid, value) in [
        (21, "5", 1005, vec![0, 5]),
        (23, "5", 1007, vec![0, 0, 0, 5]),
        (20, "5", 1016, vec![0, 0, 0, 0, 0, 0, 0, 5]),
        (16, "t", 1000, vec![1]),
        (701, "1", 1022, 1f64.to_be_bytes().to_vec()),
        (1700, "5", 1231, vec![0, 1, 0, 0, 0, 0, 0, 0, 0, 5]),
        (25, "ab", 1009, b"ab".to_vec()),
        (17, "ab", 1001, b"ab".to_vec()),
        (1082, "2000-01-02", 1182, vec![0, 0, 0, 1]),
    ] {
        let (oids, values) = described(&mut raw, "SELECT ARRAY[$1]", &[(of, text)]).await.unwrap();
        assert_eq!((oids, values), (vec![oid], vec![Some(array(of, &[&value]))]), "{of}");
    }
    let (oids, values) = described(&mut raw, "SELECT ARRAY[$1 + 1, 2]", &[(20, "5")]).await.unwrap();
    let [six, two] = [6u64, 2].map(u64::to_be_bytes);
    assert_eq!((oids, values), (vec![1016], vec![Some(array(20, &[&six, &two]))]));
    // A row: its fields, each with its type.
    let (oids, values) = described(&mut raw, "SELECT row($1, NULL::text, true)", &[(23, "7")]).await.unwrap();
    let row = [
        &[0, 0, 0, 3][..],
        &[0, 0, 0, 23, 0, 0, 0, 4, 0, 0, 0, 7],
        &[0, 0, 0, 25, 255, 255, 255, 255],
        &[0, 0, 0, 16, 0, 0, 0, 1, 1],
    ];
    assert_eq!((oids, values), (vec![2249], vec![Some(row.concat())]));
    let (oids, values) = described(&mut raw, "SELECT (-1)::oid, $1::oid", &[(23, "-2")]).await.unwrap();
    assert_eq!(oids, [26, 26]);
    assert_eq!(values, [Some(vec![255; 4]), Some(vec![255, 255, 255, 254])]);
    // An array as a parameter.
    for (of, item, items) in [(1007, 23, [&[0, 0, 0, 1][..], &[0, 0, 0, 2]]), (1009, 25, [&b"1"[..], b"2"])] {
        let (oids, values) = described(&mut raw, "SELECT $1", &[(of, "{1,2}")]).await.unwrap();
        assert_eq!((oids, values), (vec![of], vec![Some(array(item, &items))]));
    }
    let (oids, values) = described(&mut raw, "SELECT $1::int4[]", &[(1007, "{7}")]).await.unwrap();
    assert_eq!((oids, values), (vec![1007], vec![Some(array(23, &[&[0, 0, 0, 7]]))]));
}

/// Rows in arrays, and plans.
#[tokio::test(flavor = "multi_thread")]
async fn arrays_of_rows_are_described() {
    let server = Server::start().await;
    let mut raw = session(&server).await;
    let sql = "SELECT array_agg(row($1, NULL::text, true))";
    let (oids, values) = described(&mut raw, sql, &[(23, "7")]).await.unwrap();
    let row = [
        &[0, 0, 0, 3][..],
        &[0, 0, 0, 23, 0, 0, 0, 4, 0, 0, 0, 7],
        &[0, 0, 0, 25, 255, 255, 255, 255],
        &[0, 0, 0, 16, 0, 0, 0, 1, 1],
    ];
    assert_eq!((oids, values), (vec![2287], vec![Some(array(2249, &[&row.concat()]))]));
    let sql = "SELECT coalesce((SELECT array_agg((n, $1::text)) FROM generate_series(1, 0) n), '{}')";
    let (oids, values) = described(&mut raw, sql, &[(25, "x")]).await.unwrap();
    let empty: Vec<u8> = [0u32, 0, 2249].iter().flat_map(|n| n.to_be_bytes()).collect();
    assert_eq!((oids, values), (vec![2287], vec![Some(empty)]));
    assert_eq!(described(&mut raw, "EXPLAIN SELECT 1", &[]).await.unwrap().0, [25]);
    assert_eq!(described(&mut raw, "EXPLAIN (FORMAT JSON) SELECT 1", &[]).await.unwrap().0, [114]);
}

/// A parameter of a domain goes as one of its base type does. One that is not checked is refused.
#[tokio::test(flavor = "multi_thread")]
async fn parameters_of_domains() {
    let server = Server::start().await;
    let client = server.client().await;
    let sql = "CREATE DOMAIN few AS int CHECK (VALUE < 5); CREATE TABLE of_few (id int, a few)";
    client.batch_execute(sql).await.unwrap();
    let few: u32 = client.query_one("SELECT 'few'::regtype::oid", &[]).await.unwrap().get(0);
    let mut raw = session(&server).await;
    for sql in [
        "SELECT $1::few",
        "INSERT INTO of_few (a) VALUES ($1) RETURNING a",
        "UPDATE of_few SET id = 1, a = $1 RETURNING a",
    ] {
        assert_eq!(client.prepare(sql).await.unwrap().params()[0].name(), "few", "{sql}");
        let (oids, values) = described(&mut raw, sql, &[(few, "4")]).await.unwrap();
        assert_eq!((oids, values), (vec![23], vec![Some(vec![0, 0, 0, 4])]), "{sql}");
        assert_eq!(described(&mut raw, sql, &[(few, "5")]).await.unwrap_err(), "23514", "{sql}");
    }
    for sql in ["SELECT $1", "SELECT 1 FROM of_few WHERE a = $1", "SELECT $1::int"] {
        assert_eq!(described(&mut raw, sql, &[(few, "5")]).await.unwrap_err(), "0A000", "{sql}");
    }
}

/// A parameter of type oid has 32 bits, those below zero being the upper half.
#[tokio::test(flavor = "multi_thread")]
async fn f20_oids_as_parameters() {
    let server = Server::start().await;
    let mut raw = session(&server).await;
    for (text, value) in
        [("5", Ok(5u64)), ("-1", Ok(u32::MAX.into())), ("4294967296", Err("22003")), ("1_0", Err("22P02"))]
    {
        let answered = described(&mut raw, "SELECT $1::bigint", &[(26, text)]).await;
        let expected = value.map(|v| (vec![20], vec![Some(v.to_be_bytes().to_vec())])).map_err(str::to_owned);
        assert_eq!(answered, expected, "{text}");
    }
}

/// A parameter that a client states as `character` is a char of no known length: what would count its blanks is
/// refused, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn f34_characters_as_parameters() {
    let server = Server::start().await;
    let mut raw = session(&server).await;
    let sql = "SELECT $1 = 'a  ', $1 = 'a '::text, length($1), $1::text || '|', 'like ~ concat' = 'bytea'";
    let (oids, values) = described(&mut raw, sql, &[(1042, "a ")]).await.unwrap();
    assert_eq!(oids, [16, 16, 23, 25, 16]);
    let expected: [&[u8]; 5] = [&[1], &[0], &[0, 0, 0, 1], b"a|", &[0]];
    assert_eq!(values.iter().flatten().map(Vec::as_slice).collect::<Vec<_>>(), expected);
    // What looks at another text may stand beside it.
    let (_, values) =
        described(&mut raw, "SELECT $1 WHERE 'abc' LIKE 'a%' AND 'b' ~ '.'", &[(1042, "x ")]).await.unwrap();
    assert_eq!(values, [Some(b"x".to_vec())]);
    for sql in [
        "SELECT $1 LIKE 'a'",
        "SELECT $1 ~ 'a'",
        "SELECT octet_length($1)",
        "SELECT concat($1, 'b')",
        "SELECT $1::bytea",
    ] {
        assert_eq!(described(&mut raw, sql, &[(1042, "a ")]).await.unwrap_err(), "0A000", "{sql}");
    }
}

/// A parameter that a client states as `character varying` is none of type text: a char beside it is compared without
/// the blanks at its end.
#[tokio::test(flavor = "multi_thread")]
async fn n117_varchars_as_parameters() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute("CREATE TABLE t (k text PRIMARY KEY, c char(3)); INSERT INTO t VALUES ('a ', 'a')").await.unwrap();
    let mut raw = session(&server).await;
    for (condition, of_varchar, of_text) in [
        ("c = $1 AND c = $2", true, false),
        ("c IN ($1, $2)", true, true),
        ("c = ANY (ARRAY[$1, $2])", true, false),
        ("c = coalesce($1, $2)", true, false),
        ("c IN (coalesce($1, $2), k)", true, false),
        ("c = CASE WHEN k > '' THEN $1 ELSE $2 END", true, false),
        ("c = greatest($1, $2)", true, false),
        ("k = $1 AND k = $2", true, true),
        ("k = coalesce($1, $2)", true, true),
    ] {
        for (oid, wanted) in [(1043, of_varchar), (25, of_text)] {
            let sql = format!("SELECT count(*) FROM t WHERE {condition}");
            let (_, values) = described(&mut raw, &sql, &[(oid, "a "), (oid, "a ")]).await.unwrap();
            assert_eq!(values, [Some(i64::from(wanted).to_be_bytes().to_vec())], "{condition}, {oid}");
        }
    }
}

/// What stands as a condition is boolean.
#[tokio::test(flavor = "multi_thread")]
async fn r7_parameters_as_conditions() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1), (2, 2)").await.unwrap();
    for (sql, found) in [
        ("SELECT id FROM t WHERE $1", 2),
        ("SELECT id FROM t WHERE ($1) AND id = 1", 1),
        ("SELECT id FROM t WHERE NOT $1 OR v = 2", 1),
        ("SELECT id FROM t WHERE CASE WHEN $1 THEN id = 1 END", 1),
        ("SELECT id FROM t WHERE $1 IS TRUE", 2),
        ("SELECT t.id FROM t JOIN t u ON $1", 4),
        ("SELECT count(*) FILTER (WHERE $1) FROM t", 1),
        ("SELECT id FROM t GROUP BY id HAVING $1", 2),
        ("UPDATE t SET v = v WHERE $1 RETURNING id", 2),
        ("DELETE FROM t WHERE $1 AND id > 5 RETURNING id", 0),
    ] {
        let statement = c.prepare(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        assert_eq!(statement.params(), [Type::BOOL], "{sql}");
        assert_eq!(c.query(&statement, &[&true]).await.unwrap().len(), found, "{sql}");
    }
    let both = c.prepare("SELECT $1 || $2").await.unwrap();
    assert_eq!(both.params(), [Type::TEXT, Type::TEXT]);
    assert_eq!(c.query_one(&both, &[&"a", &"b"]).await.unwrap().get::<_, String>(0), "ab");
}

/// Names of more than 63 bytes are cut, with a notice, in both protocols; so two that begin alike are one.
#[tokio::test(flavor = "multi_thread")]
async fn r7_names_are_cut_with_a_notice() {
    let server = Server::start().await;
    let mut raw = session(&server).await;
    let (long, other) = ("x".repeat(70), "x".repeat(63));
    for (sql, notices) in [
        (format!("CREATE TABLE {long} ({long} int)"), 2),
        (format!("INSERT INTO \"{other}y\" VALUES (1)"), 1),
        (format!("SELECT {other} AS \"{long}\" FROM {other}"), 1),
        (format!("SELECT {other} FROM {other}"), 0),
    ] {
        raw_query(&mut raw, &sql).await;
        let answered = until_ready(&mut raw).await;
        assert_eq!(error_state(&answered), None, "{sql}");
        let told: Vec<_> = answered.iter().filter(|(kind, _)| *kind == b'N').collect();
        assert_eq!(told.len(), notices, "{sql}");
        assert!(told.iter().all(|(_, body)| body.starts_with(b"SNOTICE\0") && body.windows(6).any(|w| w == b"C42622")));
    }
    raw_query(&mut raw, &format!("CREATE TABLE {other}z (i int)")).await;
    assert_eq!(error_state(&until_ready(&mut raw).await).as_deref(), Some("42P07"));
    let c = server.client().await;
    let row = c.query_one(&format!("SELECT * FROM {other}abc"), &[]).await.unwrap();
    assert_eq!((row.columns()[0].name(), row.get::<_, i32>(0)), (other.as_str(), 1));
    assert_eq!(state(c.batch_execute(&format!("CREATE TABLE u ({long} int, {other} int)")).await), "42701");
}

/// A parameter in a UNION is what stands in its column elsewhere, or text.
#[tokio::test(flavor = "multi_thread")]
async fn r7_parameters_in_a_union() {
    let server = Server::start().await;
    let c = server.client().await;
    for sql in ["SELECT $1 UNION SELECT 1", "SELECT 1 UNION ALL SELECT $1", "SELECT $1 AS a, 2 UNION ALL SELECT 1, 3"] {
        let statement = c.prepare(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        assert_eq!((statement.params(), statement.columns()[0].type_()), (&[Type::INT4][..], &Type::INT4), "{sql}");
        let rows = c.query(&statement, &[&7]).await.unwrap();
        let mut found: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
        found.sort();
        assert_eq!(found, [1, 7], "{sql}");
    }
    let texts = c.prepare("SELECT $1 UNION ALL SELECT $2").await.unwrap();
    assert_eq!((texts.params(), texts.columns()[0].type_()), (&[Type::TEXT, Type::TEXT][..], &Type::TEXT));
    assert_eq!(c.query(&texts, &[&"a", &"b"]).await.unwrap().len(), 2);
}
