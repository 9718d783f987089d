//! Letters that are alike but for their case, as a C library has them.
use crate::common::{Client, answers, database};

/// ILIKE compares small letters, of one character each.
#[tokio::test]
async fn f40_ilike_compares_small_letters() {
    let mut c = Client::new(&database().await);
    answers(
        &mut c,
        &[
            ("SELECT 'İ' ILIKE 'i%', 'Σ' ILIKE 'ς', 'ΑΣ' ILIKE 'ας', 'ſ' ILIKE 's'", "true|false|false|false"),
            ("SELECT 'µ' ILIKE 'μ', 'ϐ' ILIKE 'β', 'ß' ILIKE 'SS', 'Σ' ILIKE 'σ'", "false|false|false|true"),
            ("SELECT 'É' ILIKE 'é%', 'a_b' ILIKE 'A\\_B', 'axb' NOT ILIKE 'A\\_B'", "true|true|true"),
            ("SELECT 'xAb' ILIKE 'xAAB' ESCAPE 'A', 'x%' ILIKE 'XA%' ESCAPE 'A'", "true|true"),
            ("SELECT 'ABC' ~~* 'a%', 'ABC' !~~* 'a%', 'abc' ~~ 'a_c', 'abc' !~~ 'A%'", "true|false|true|true"),
            ("SELECT NULL ILIKE 'a', 'a' ILIKE NULL", "NULL|NULL"),
            ("SELECT 'A'::char(3) ILIKE 'a  ', 'A'::char(3) ILIKE 'a'", "true|false"),
        ],
    )
    .await;
    c.ok("CREATE TABLE t (s text)", "CREATE TABLE").await;
    c.ok("INSERT INTO t VALUES ('İstanbul'), ('ſ'), ('S'), (NULL)", "INSERT 0 4").await;
    c.rows("SELECT s FROM t WHERE s ILIKE 'ISTANBUL'", &["İstanbul"]).await;
    c.rows("SELECT s FROM t WHERE s ILIKE s || '%' AND s ILIKE 's'", &["S"]).await;
    c.fails("SELECT 1 ILIKE '1'", "42883").await;
    c.fails("SELECT 'a' ILIKE 'a\\'", "22025").await;
}

/// A letter of a pattern is itself, its small letter and its capital.
#[tokio::test]
async fn f40_patterns_without_regard_to_case() {
    let mut c = Client::new(&database().await);
    answers(
        &mut c,
        &[
            ("SELECT 'ſ' ~* 's', 'S' ~* 'ſ', 's' ~* 'ſ', 'ſ' !~* 's'", "false|true|false|true"),
            ("SELECT '\u{212a}' ~* 'k', 'k' ~* '\u{212a}', 'K' ~* '\u{212a}'", "false|true|false"),
            ("SELECT 'ς' ~* 'σ', 'Σ' ~* 'ς', 'É' ~* 'é', 'ÄB' ~* '^[ä-ö]b$'", "false|true|true|true"),
            ("SELECT 'ſ' ~* '[a-z]', 'Q' ~* '[a-z]', 'q' ~* '[[:upper:]]', 'B' ~* '[^b]'", "false|true|true|false"),
            // A letter between small and capital is neither.
            ("SELECT 'ǅ' ~* 'ǅ', 'ǆ' ~* 'ǅ', 'ǅ' ~* '[ǅ]', 'ǅ' ~* '[a-ǅ]'", "false|true|false|true"),
            ("SELECT 'A.C' ~* 'a\\.c', 'ABAB' ~* '^(ab){2}$', 'x' ~* '(?i)X', 'x' ~ 'X'", "true|true|true|false"),
            ("SELECT regexp_replace('ſSs', 's', '-', 'gi'), regexp_count('Kk\u{212a}', 'k', 1, 'i')", "ſ--|2"),
            ("SELECT regexp_match('xſS', 's', 'i')::text, regexp_like('ſ', 's', 'i')", "{S}|false"),
        ],
    )
    .await;
}
