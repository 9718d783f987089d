//! What drivers do beyond statements and rows: they follow the session's time zone, send arrays, describe cursors, set
//! options.
use crate::common::raw::*;
use crate::common::{Server, state};
use tokio_postgres::types::Type;

/// `name=value` of each ParameterStatus.
fn statuses(messages: &Messages) -> Vec<String> {
    let of = |body: &[u8]| body.split(|b| *b == 0).take(2).map(String::from_utf8_lossy).collect::<Vec<_>>().join("=");
    messages.iter().filter(|(kind, _)| *kind == b'S').map(|(_, body)| of(body)).collect()
}

/// The text of the first column of each row.
fn firsts(messages: &Messages) -> Vec<String> {
    let value = |body: &[u8]| {
        let length = i32::from_be_bytes(body[2..6].try_into().unwrap());
        String::from_utf8_lossy(&body[6..6 + length as usize]).into_owned()
    };
    messages.iter().filter(|(kind, _)| *kind == b'D').map(|(_, body)| value(body)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_told_of_its_time_zone() {
    let server = Server::start().await;
    let body = b"\0\x03\0\0user\0terrace\0database\0terrace\0TimeZone\0Asia/Tokyo\0options\0-c application_name=a\\ b \
                 --statement-timeout=5s\0\0";
    let mut raw = startup(&server, body).await;
    let opened = statuses(&until_ready(&mut raw).await);
    assert!(opened.contains(&"TimeZone=Asia/Tokyo".to_owned()) && opened.contains(&"application_name=a b".to_owned()));
    raw_query(&mut raw, "SHOW statement_timeout").await;
    assert_eq!(firsts(&until_ready(&mut raw).await), ["5s"]);
    // Each statement of a string is in the zone that holds when it runs.
    raw_query(
        &mut raw,
        "SELECT '2024-07-01 12:00+00'::timestamptz; SET TimeZone = 'Europe/Berlin'; \
                         SELECT '2024-07-01 12:00+00'::timestamptz",
    )
    .await;
    let answer = until_ready(&mut raw).await;
    assert_eq!(firsts(&answer), ["2024-07-01 21:00:00+09", "2024-07-01 14:00:00+02"]);
    assert_eq!(statuses(&answer), ["TimeZone=Europe/Berlin"]);
    raw_query(
        &mut raw,
        "CREATE TABLE t (id int PRIMARY KEY, at timestamptz); INSERT INTO t VALUES (1, '2024-01-01 12:00')",
    )
    .await;
    until_ready(&mut raw).await;
    // By key, twice: the second time the text is known.
    for _ in 0..2 {
        raw_query(&mut raw, "SELECT at FROM t WHERE id = 1").await;
        assert_eq!(firsts(&until_ready(&mut raw).await), ["2024-01-01 12:00:00+01"]);
    }
    raw_query(&mut raw, "COPY t TO STDOUT").await;
    let copied = until_ready(&mut raw).await;
    assert!(copied.contains(&(b'd', b"1\t2024-01-01 12:00:00+01\n".to_vec())), "{copied:?}");
    raw_query(&mut raw, "COPY t FROM STDIN").await;
    raw_send(&mut raw, &[packet(b'd', b"2\t2024-07-01 12:00\n"), packet(b'c', b"")].concat()).await;
    until_ready(&mut raw).await;
    raw_query(&mut raw, "BEGIN; SET LOCAL TimeZone = 'UTC'; SELECT at FROM t WHERE id = 2; ROLLBACK").await;
    let answer = until_ready(&mut raw).await;
    assert_eq!((firsts(&answer), statuses(&answer)), (vec!["2024-07-01 10:00:00+00".to_owned()], vec![]));

    for bad in ["-x", "--nosuch=1", "-c", "-c statement_timeout"] {
        let body = [b"\0\x03\0\0user\0terrace\0database\0terrace\0options\0", bad.as_bytes(), b"\0\0"].concat();
        let mut raw = startup(&server, &body).await;
        let refused = error_state(&messages(&mut raw).await).unwrap();
        assert!(["0A000", "42704"].contains(&refused.as_str()), "{bad}: {refused}");
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn arrays_come_in_binary_and_text() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute(
        "CREATE TABLE t (id bigint PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a\"'), (2, 'b,c'), (3, NULL)",
    )
    .await
    .unwrap();
    let by_id = c.prepare_typed("SELECT v FROM t WHERE id = ANY($1) ORDER BY id", &[Type::INT8_ARRAY]).await.unwrap();
    assert_eq!(by_id.params(), [Type::INT8_ARRAY]);
    for (ids, found) in [(vec![2i64, 1, 9], 2), (vec![], 0), (vec![3], 1)] {
        assert_eq!(c.query(&by_id, &[&ids]).await.unwrap().len(), found, "{ids:?}");
    }
    assert_eq!(c.query(&by_id, &[&vec![Some(1i64), None]]).await.unwrap().len(), 1);
    assert_eq!(c.query(&by_id, &[&None::<Vec<i64>>]).await.unwrap().len(), 0);
    let by_text = c.prepare_typed("SELECT id FROM t WHERE v = ANY($1)", &[Type::TEXT_ARRAY]).await.unwrap();
    let found = c.query(&by_text, &[&vec!["a\"", "b,c", "null", "{}"]]).await.unwrap();
    assert_eq!(found.len(), 2);
    // The type is told where the client does not state it.
    let told = c.prepare("SELECT id FROM t WHERE id = ANY($1) AND v <> ALL($2)").await.unwrap();
    assert_eq!(told.params(), [Type::INT8_ARRAY, Type::TEXT_ARRAY]);
    assert_eq!(c.query(&told, &[&vec![1i64, 2], &vec!["b,c"]]).await.unwrap().len(), 1);
    let results = c.query_one("SELECT ARRAY[1, 2], ARRAY['x', NULL], array_agg(id) FROM t", &[]).await.unwrap();
    assert_eq!(results.get::<_, Vec<i32>>(0), [1, 2]);
    assert_eq!(results.get::<_, Vec<Option<String>>>(1), [Some("x".into()), None]);
    assert_eq!(results.get::<_, Vec<i64>>(2).len(), 3);
    // Malformed bytes of an array.
    let mut raw = session(&server).await;
    let refused = c.prepare_typed("SELECT id FROM t WHERE v = $1", &[Type::TEXT_ARRAY]).await.unwrap_err();
    assert_eq!(refused.code().map(|code| code.code()), Some("42883"));
    let types = [Type::TEXT_ARRAY, Type::TEXT_ARRAY];
    let both = c.prepare_typed("SELECT $1 = $2, array_to_string($1, '-'), $1 || $2", &types).await.unwrap();
    let row = c.query_one(&both, &[&vec!["a", "b"], &vec!["c\""]]).await.unwrap();
    assert_eq!((row.get::<_, bool>(0), row.get::<_, &str>(1)), (false, "a-b"));
    assert_eq!(row.get::<_, Vec<&str>>(2), ["a", "b", "c\""]);
    // Blanks at the end of a char(n) mean nothing.
    let refused = c.prepare_typed("SELECT $1 LIKE 'a_'", &[Type::BPCHAR]).await.unwrap_err();
    assert_eq!(refused.code().map(|code| code.code()), Some("0A000"));
    let padded = c.prepare_typed("SELECT length($1), $1 = $2", &[Type::BPCHAR, Type::BPCHAR]).await.unwrap();
    let row = c.query_one(&padded, &[&"ab  ", &"ab"]).await.unwrap();
    assert_eq!((row.get::<_, i32>(0), row.get::<_, bool>(1)), (2, true));
    let parse = [b"\0SELECT id FROM t WHERE id = ANY($1)\0\0\x01".as_slice(), &1016u32.to_be_bytes()].concat();
    let of = |items: i32, first: i32| {
        let head = [&1i32.to_be_bytes()[..], &[0; 4], &20u32.to_be_bytes()].concat();
        [head, items.to_be_bytes().into(), first.to_be_bytes().into()].concat()
    };
    for (array, state) in [
        (vec![], "22P03"),
        (vec![0; 11], "22P03"),
        (of(i32::MAX, 1), "54000"),
        (of(-1, 1), "54000"),
        (of(1, 0), "22P03"),
    ] {
        let bind =
            [b"\0\0\0\x01\0\x01\0\x01".as_slice(), &(array.len() as u32).to_be_bytes(), &array, b"\0\0"].concat();
        raw_send(&mut raw, &[packet(b'P', &parse), packet(b'B', &bind), packet(b'S', b"")].concat()).await;
        assert_eq!(error_state(&until_ready(&mut raw).await).as_deref(), Some(state), "{array:?}");
    }
    server.stop().await.unwrap();
}

/// As psycopg's named cursors do it: DECLARE, a Describe of the portal of that name, FETCH.
#[tokio::test(flavor = "multi_thread")]
async fn cursors_are_described_as_portals() {
    let server = Server::start().await;
    let mut raw = session(&server).await;
    raw_query(&mut raw, "BEGIN; DECLARE \"c c\" CURSOR FOR SELECT g AS n, 'x' AS t FROM generate_series(1, 5) AS g")
        .await;
    assert_eq!(error_state(&until_ready(&mut raw).await), None);
    raw_send(&mut raw, &[packet(b'D', b"Pc c\0"), packet(b'S', b"")].concat()).await;
    let described = until_ready(&mut raw).await;
    assert_eq!(kinds(&described), "TZ");
    assert_eq!(described[0].1[..4], *b"\0\x02n\0");
    raw_query(&mut raw, "FETCH FORWARD 2 FROM \"c c\"").await;
    let fetched = until_ready(&mut raw).await;
    assert_eq!(firsts(&fetched), ["1", "2"]);
    assert!(fetched.contains(&(b'C', b"FETCH 2\0".to_vec())));
    // Through the extended protocol, row by row: the cursor is busy until the rows were taken.
    let execute = [
        packet(b'P', b"\0FETCH ALL \"c c\"\0\0\0"),
        packet(b'B', b"\0\0\0\0\0\0\0\0"),
        packet(b'E', b"\0\0\0\0\x01"),
        packet(b'H', b""),
    ]
    .concat();
    raw_send(&mut raw, &[execute, packet(b'E', b"\0\0\0\0\0"), packet(b'S', b"")].concat()).await;
    let fetched = until_ready(&mut raw).await;
    assert_eq!(
        (kinds(&fetched).as_str(), firsts(&fetched)),
        ("12DsDDCZ", vec!["3".to_owned(), "4".into(), "5".into()])
    );
    raw_query(&mut raw, "COMMIT").await;
    until_ready(&mut raw).await;
    raw_send(&mut raw, &[packet(b'D', b"Pc c\0"), packet(b'S', b"")].concat()).await;
    assert_eq!(error_state(&until_ready(&mut raw).await).as_deref(), Some("34000"));
    let c = server.client().await;
    assert_eq!(state(c.batch_execute("DECLARE d CURSOR FOR SELECT 1").await), "25P01");
    server.stop().await.unwrap();
}
