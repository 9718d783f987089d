//! Literals arrive as they were written, in both protocols, however they are quoted.

use crate::common::{Server, rows, state};
use tokio_postgres::{Client, SimpleQueryMessage};

/// All that is not NUL.
const BYTES: std::ops::RangeInclusive<u8> = 1..=127;

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|b| *b as char).collect()
}

/// As `E'...'` in one of its ways: what needs it is escaped.
fn escaped(value: &str, doubled: bool) -> String {
    let quote = if doubled { "''" } else { "\\'" };
    format!("E'{}'", value.replace('\\', "\\\\").replace('\'', quote))
}

fn plain(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

fn dollars(value: &str) -> String {
    format!("$zz_${value}$zz_$")
}

/// The ways to quote.
const WAYS: [fn(&str) -> String; 4] = [plain, dollars, |value| escaped(value, false), |value| escaped(value, true)];

/// One row through the simple protocol.
async fn simple(client: &Client, sql: &str) -> Vec<Option<String>> {
    let messages = client.simple_query(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let row = messages.iter().find_map(|m| match m {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let row = row.expect("a row");
    (0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect()
}

async fn extended(client: &Client, sql: &str) -> Vec<Option<String>> {
    let row = client.query_one(sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    (0..row.len()).map(|i| row.get(i)).collect()
}

/// Inserts literals through both protocols and asserts that they are these values.
async fn arrive(client: &Client, literals: &[String], values: &[String]) {
    let rows: Vec<String> = literals.iter().enumerate().map(|(id, v)| format!("({id}, {v})")).collect();
    let sql = format!("INSERT INTO arrived VALUES {}", rows.join(", "));
    for protocol in ["simple", "extended"] {
        match protocol {
            "simple" => drop(client.simple_query(&sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"))),
            _ => drop(client.execute(&sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"))),
        }
        let rows = client.query("SELECT v FROM arrived ORDER BY id", &[]).await.unwrap();
        let found: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(found, values, "{protocol}: {sql}");
        client.batch_execute("TRUNCATE arrived").await.unwrap();
    }
}

const ARRIVED: &str = "CREATE TABLE arrived (id int PRIMARY KEY, v text)";

/// Each pair of bytes, quoted in each way, comes back as it was.
#[tokio::test(flavor = "multi_thread")]
async fn p1_every_pair_of_bytes() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute(ARRIVED).await.unwrap();
    for first in BYTES {
        let values: Vec<String> = BYTES.map(|second| text(&[first, second])).collect();
        for quoted in WAYS {
            let literals: Vec<String> = values.iter().map(|value| quoted(value)).collect();
            arrive(&c, &literals, &values).await;
        }
    }
}

/// The same through the planner, of the bytes that mean something to somebody.
#[tokio::test(flavor = "multi_thread")]
async fn p1_pairs_through_the_planner() {
    let server = Server::start().await;
    let c = server.client().await;
    let bytes = b"'\\\"$;-/*\n\r\tbxuU017Eea%_&";
    for first in bytes {
        let values: Vec<String> = bytes.iter().map(|second| text(&[*first, *second])).collect();
        for quoted in WAYS {
            let items: Vec<String> = values.iter().map(|v| format!("{}::text", quoted(v))).collect();
            let sql = format!("SELECT {}", items.join(", "));
            for answers in [simple(&c, &sql).await, extended(&c, &sql).await] {
                assert!(answers.iter().zip(&values).all(|(a, v)| a.as_ref() == Some(v)), "{sql}");
            }
        }
    }
}

/// What `E'\xy'` means in PostgreSQL; `None`: an error, or text that goes on.
fn meaning(first: char, second: char) -> Option<String> {
    let octal = |c: char| c.to_digit(8);
    let second = second.to_string();
    Some(match first {
        'b' => format!("\x08{second}"),
        'f' => format!("\x0c{second}"),
        'n' => format!("\n{second}"),
        'r' => format!("\r{second}"),
        't' => format!("\t{second}"),
        'u' | 'U' => return None,
        'x' => match second.chars().next()?.to_digit(16) {
            Some(0) => return None,
            Some(digit) => char::from_u32(digit)?.to_string(),
            None => format!("x{second}"),
        },
        '0'..='7' => {
            let (high, low) = (octal(first)?, octal(second.chars().next()?));
            let (byte, rest) = low.map_or((high, second.as_str()), |low| (high * 8 + low, ""));
            format!("{}{rest}", char::from_u32(byte).filter(|c| *c != '\0')?)
        }
        other => format!("{other}{second}"),
    })
}

/// Each escape with what follows it, raw.
#[tokio::test(flavor = "multi_thread")]
async fn p1_every_escape() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute(ARRIVED).await.unwrap();
    for first in BYTES.map(char::from) {
        let means = |second: char| (!matches!(second, '\'' | '\\')).then(|| meaning(first, second)).flatten();
        let known: Vec<(char, String)> = BYTES.map(char::from).filter_map(|s| Some((s, means(s)?))).collect();
        let literals: Vec<String> = known.iter().map(|(second, _)| format!("E'\\{first}{second}'")).collect();
        let values: Vec<String> = known.into_iter().map(|(_, value)| value).collect();
        if !values.is_empty() {
            arrive(&c, &literals, &values).await;
        }
    }
    for (sql, expected) in [
        (r"SELECT E'\0'", "22021"),
        (r"SELECT E'\x00'", "22021"),
        (r"SELECT E'\u0000'", "42601"),
        (r"SELECT E'\'", "42601"),
        (r"SELECT E'a\'", "42601"),
        (r"SELECT E'\u00'", "22025"),
    ] {
        assert_eq!(state(c.simple_query(sql).await), expected, "{sql}");
    }
}

/// Strings of many characters that matter, through statements by key and others, beside each other in one text.
#[tokio::test(flavor = "multi_thread")]
async fn p1_nothing_is_injected() {
    let server = Server::start().await;
    let c = server.client().await;
    c.batch_execute(
        "CREATE TABLE acct (name text PRIMARY KEY, pw text); INSERT INTO acct VALUES ('ann', 'x'), ('bob', 'y')",
    )
    .await
    .unwrap();
    // Escaped as clients do it, the name is a backslash.
    for where_ in [r"name = E'\\' and pw = ' or 1=1 --'", r"pw = E'\\' and pw = ' or 1=1 --'"] {
        assert!(rows(&c, &format!("select * from acct where {where_}")).await.unwrap().is_empty(), "{where_}");
        assert!(c.query(&format!("select * from acct where {where_}"), &[]).await.unwrap().is_empty());
        let both = format!("select 1; select * from acct where {where_}");
        assert_eq!(rows(&c, &both).await.unwrap(), ["1"]);
        c.batch_execute(&format!("PREPARE p AS SELECT * FROM acct WHERE {where_}")).await.unwrap();
        assert!(rows(&c, "EXECUTE p").await.unwrap().is_empty());
        c.batch_execute("DEALLOCATE p").await.unwrap();
        assert_eq!(
            rows(&c, &format!("DELETE FROM acct WHERE {where_}; SELECT count(*) FROM acct")).await.unwrap(),
            ["2"]
        );
    }
    assert_eq!(rows(&c, r"select E'a\\b'").await.unwrap(), [r"a\b"]);
    assert_eq!(rows(&c, r"select E'it\'s'; select E'it''s\\'").await.unwrap(), ["it's", r"it's\"]);
    let pieces = ["\\", "'", "''", "\\'", "--", "/*", "*/", ";", "$$", "$1", "E'", "\"", "\n", "\t", "ü", "a"];
    c.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v text, w text)").await.unwrap();
    let mut id = 0i32;
    for one in pieces {
        for two in pieces {
            for three in ["", "\\"] {
                let value = format!("{one}{two}{three}");
                for quoted in [plain(&value), dollars(&value), escaped(&value, false), escaped(&value, true)] {
                    id += 1;
                    let sql = format!(
                        "INSERT INTO t VALUES ({id}, {quoted}, '{id}'); UPDATE t SET w = {quoted} WHERE id = {id}"
                    );
                    c.batch_execute(&sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
                    let row = c.query_one("SELECT v, w FROM t WHERE id = $1", &[&id]).await.unwrap();
                    let found: (String, String) = (row.get(0), row.get(1));
                    assert_eq!(found, (value.clone(), value.clone()), "{sql}");
                }
            }
        }
    }
}

/// What is kept as text and read again: defaults and CHECK constraints.
#[tokio::test(flavor = "multi_thread")]
async fn p1_defaults_and_checks_stay_what_they_were() {
    let server = Server::start().await;
    let c = server.client().await;
    for (n, value) in ["it''s", "\\'", "'", "''", "\\", "a\\'b''c", "\n\t\\n", "--';", "$$", "it's"].iter().enumerate()
    {
        for (m, quoted) in [plain(value), dollars(value), escaped(value, true)].iter().enumerate() {
            let name = format!("d{n}_{m}");
            let sql = format!(
                "CREATE TABLE {name} (id int PRIMARY KEY, v text DEFAULT {quoted} CHECK (v = {quoted}), w text); \
                 ALTER TABLE {name} ALTER COLUMN w SET DEFAULT {quoted}; INSERT INTO {name} (id) VALUES (1)"
            );
            c.batch_execute(&sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
            let row = c.query_one(&format!("SELECT v, w FROM {name}"), &[]).await.unwrap();
            assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), (*value, *value), "{sql}");
            assert_eq!(state(c.batch_execute(&format!("INSERT INTO {name} VALUES (2, 'other')")).await), "23514");
            // Renaming a column writes the constraint anew.
            c.batch_execute(&format!("ALTER TABLE {name} RENAME COLUMN v TO x")).await.unwrap();
            c.batch_execute(&format!("INSERT INTO {name} (id) VALUES (3)")).await.unwrap();
        }
    }
}

/// The other way to read backslashes is refused.
#[tokio::test(flavor = "multi_thread")]
async fn p1_strings_conform() {
    let server = Server::start().await;
    let c = server.client().await;
    for off in ["off", "false", "0", "'no'"] {
        assert_eq!(state(c.batch_execute(&format!("SET standard_conforming_strings = {off}")).await), "0A000");
    }
    c.batch_execute("SET standard_conforming_strings = on").await.unwrap();
    let mut config = server.config();
    config.options("-c standard_conforming_strings=off");
    assert_eq!(state(config.connect(tokio_postgres::NoTls).await.map(|_| ())), "0A000");
    assert_eq!(rows(&c, r"SELECT '\', '\\n'''").await.unwrap(), [r"\|\\n'"]);
}
