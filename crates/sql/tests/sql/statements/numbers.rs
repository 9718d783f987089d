//! Numbers: what leaves its type's range, which texts are numbers, powers, oids.
use crate::common::{Client, answers, database, refusals};
use terrace_engine::{DataType, Datum};

async fn client() -> Client {
    let mut c = Client::new(&database().await);
    c.ok("CREATE TABLE t (id int PRIMARY KEY, k smallint, i int, b bigint)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES (1, -32768, -2147483648, -9223372036854775808), (2, 5, 6, 7)", "INSERT 0 2").await;
    c
}

/// One value of a statement whose parameters' types the client states.
async fn stated(c: &mut Client, sql: &str, given: &[(DataType, &str)]) -> Result<String, &'static str> {
    let types: Vec<_> = given.iter().map(|(of, _)| Some(*of)).collect();
    let statement = c.session.prepare(sql, &types).await.map_err(|e| e.state.0)?;
    let values: Vec<Datum> = given.iter().map(|(of, text)| of.parse(text).unwrap()).collect();
    let mut rows = c.rows_of(&statement, values).await.map_err(|e| e.state.0)?;
    Ok(rows.pop().unwrap())
}

/// The least integer has no positive of its type, wherever it is negated.
#[tokio::test]
async fn n42_the_least_integers_are_not_negated() {
    let mut c = client().await;
    for column in ["k", "i", "b"] {
        for sql in [
            "SELECT -{c} FROM t",
            "SELECT -{c} FROM t WHERE id = 1",
            "SELECT abs({c}) FROM t",
            "SELECT {c} / '-1' FROM t",
            "SELECT {c} * '-1' FROM t",
            "SELECT {c} - '1' FROM t",
            "SELECT -coalesce({c}, {c}) FROM t",
            "SELECT -CASE WHEN {c} < 0 THEN {c} ELSE {c} END FROM t",
            "SELECT -min({c}) FROM t",
            "SELECT -(SELECT {c} FROM t WHERE id = 1)",
            "SELECT -lag({c}) OVER (ORDER BY id) FROM t",
            "SELECT id FROM t WHERE -{c} > 0",
            "UPDATE t SET {c} = -{c} WHERE id = 1",
            "UPDATE t SET {c} = -{c}",
            "UPDATE t SET {c} = abs({c}) WHERE id = 1",
            "UPDATE t SET {c} = {c} * -1 WHERE id = 1",
            "UPDATE t SET {c} = {c} / -1 WHERE id = 1",
            "UPDATE t SET id = 3 WHERE id = 1 RETURNING -{c}",
            "INSERT INTO t (id, {c}) VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET {c} = -t.{c}",
        ] {
            c.fails(&sql.replace("{c}", column), "22003").await;
        }
    }
    refusals(
        &mut c,
        &[
            ("SELECT -('-32768'::int2)", "22003"),
            ("SELECT '-32768'::int2 / '-1'::int2", "22003"),
            ("SELECT -('-2147483648'::int4)", "22003"),
            ("SELECT -('-9223372036854775808'::int8)", "22003"),
        ],
    )
    .await;
    answers(&mut c, &[("SELECT k / -1, k % '-1' FROM t WHERE id = 1", "32768|0"), ("SELECT -(-32768)", "32768")]).await;
    for (of, least) in [(DataType::Int2, "-32768"), (DataType::Int4, "-2147483648")] {
        assert_eq!(stated(&mut c, "SELECT -$1", &[(of, least)]).await, Err("22003"));
        assert_eq!(stated(&mut c, "SELECT $1 / '-1'", &[(of, least)]).await, Err("22003"));
    }
}

/// What an operator is given gets its type late: parameters of several types within CASE and nullif.
#[tokio::test]
async fn n77_operators_take_what_their_sides_have_become() {
    use DataType::{Bool, Int2, Int4, Int8, Numeric};
    let mut c = client().await;
    let sql = "SELECT (($1 << $2) / nullif(CASE WHEN $3 THEN $4 ELSE $5 END, 0)) % nullif($6, 0)";
    let given = [(Int2, "3"), (Int4, "2"), (Bool, "t"), (Int2, "2"), (Int4, "3"), (Int4, "5")];
    assert_eq!(stated(&mut c, sql, &given).await.as_deref(), Ok("1"));
    let late = "nullif(CASE WHEN true THEN $1 ELSE $2 END, 0)";
    for (expression, wide, answer) in [
        ("$1 & late", Int8, Ok("3")),
        ("late | $1", Int4, Ok("3")),
        ("late # 1", Int8, Ok("2")),
        ("late << 2", Int8, Ok("12")),
        ("$1 << late", Int8, Err("42883")),
        ("$1 << late", Int4, Ok("24")),
        ("$1 / late", Int4, Ok("1")),
        ("-late", Int8, Ok("-3")),
        ("$1 + late", Numeric(None), Ok("6")),
        ("date '2020-01-01' + late", Int4, Ok("2020-01-04")),
        ("date '2020-01-01' + late", Int8, Err("42883")),
        ("date '2020-01-01' - late", Int8, Err("42883")),
    ] {
        let sql = format!("SELECT {}", expression.replace("late", late));
        assert_eq!(stated(&mut c, &sql, &[(Int2, "3"), (wide, "2")]).await.as_deref().map_err(|e| *e), answer, "{sql}");
    }
}

/// Bases and underscores are PostgreSQL 16's.
#[tokio::test]
async fn f19_integers_have_digits_alone() {
    let mut c = client().await;
    c.ok("CREATE TABLE s (id int, v text)", "CREATE TABLE").await;
    c.ok("INSERT INTO s VALUES (1, '0x10'), (2, '1_0')", "INSERT 0 2").await;
    for text in ["0x10", "1_0", "0b1", "0o7"] {
        for sql in [
            "SELECT 'x'::int",
            "SELECT 'x'::smallint",
            "SELECT 'x'::text::bigint",
            "SELECT '{x}'::int[]",
            "SELECT 1 = ANY ('{x}')",
            "SELECT id FROM t WHERE id = 'x'",
            "SELECT id FROM t WHERE i + 1 = 'x'",
            "SELECT id FROM t LIMIT 'x'",
            "UPDATE t SET i = 'x' WHERE id = 1",
            "DELETE FROM t WHERE id = 'x'",
            "INSERT INTO t (id) VALUES ('x')",
            "INSERT INTO t (id) SELECT 'x'",
            "SELECT v::int FROM s WHERE id = 1",
            "SELECT v::bigint FROM s WHERE id = 2",
        ] {
            c.fails(&sql.replace("'x'", &format!("'{text}'")).replace("{x}", &format!("{{{text}}}")), "22P02").await;
        }
        for sql in ["SELECT x", "SELECT -x", "SELECT id FROM t WHERE id = x", "INSERT INTO t VALUES (x)"] {
            c.fails(&sql.replace('x', text), "42601").await;
        }
    }
    refusals(&mut c, &[("SELECT 1.5_0", "42601"), ("SELECT .5_0", "42601"), ("SELECT $1_0", "42601")]).await;
    answers(&mut c, &[("SELECT a1_0, \"1_0\", '1_0' FROM (SELECT 1 AS a1_0, 2 AS \"1_0\") q", "1|2|1_0")]).await;
}

#[tokio::test]
async fn f20_oids_have_32_bits() {
    let mut c = client().await;
    answers(
        &mut c,
        &[
            ("SELECT (-1)::oid, 4294967295::oid, '-1'::oid, ' 5'::oid", "4294967295|4294967295|4294967295|5"),
            ("SELECT 5::oid = 5, 5::oid < 6::bigint, NULL::oid", "true|true|NULL"),
            ("SELECT 5::oid::int, 4294967295::oid::bigint, 7::smallint::oid::text", "5|4294967295|7"),
        ],
    )
    .await;
    refusals(
        &mut c,
        &[
            ("SELECT 9223372036854775807::oid", "22003"),
            ("SELECT (-1)::bigint::oid", "22003"),
            ("SELECT '4294967296'::oid", "22003"),
            ("SELECT '1_0'::oid", "22P02"),
            ("SELECT 2.5::oid", "42846"),
            ("SELECT 2.5::float8::oid", "42846"),
            ("SELECT 5::oid + 1", "42883"),
        ],
    )
    .await;
    let columns = c.columns("SELECT 1::oid, id::oid FROM t").await;
    assert_eq!(columns, [("oid".into(), "UInt32".into()), ("id".into(), "UInt32".into())]);
}

#[tokio::test]
async fn f22_a_power_sees_the_digits_of_its_exponent() {
    let mut c = client().await;
    for sql in [
        "SELECT power(-1, 12345678901234567890.123456789)",
        "SELECT (-1) ^ 12345678901234567890.123456789",
        "SELECT (-2.0) ^ 3.00000000000000000001",
        "SELECT (-8.0) ^ 0.5",
        "SELECT power(0.0, -1)",
        "SELECT 0 ^ -1",
    ] {
        c.fails(sql, "2201F").await;
    }
    answers(
        &mut c,
        &[
            (
                "SELECT power(-1, 12345678901234567891), power(-1::numeric, 12345678901234567890)",
                "-1.0000000000000000|1.0000000000000000",
            ),
            (
                "SELECT (-2.0) ^ 3, (-2.0) ^ -3.00, 2 ^ 0.5, power(-2, 3)",
                "-8.0000000000000000|-0.1250000000000000|1.4142135623730950|-8.0",
            ),
        ],
    )
    .await;
}
