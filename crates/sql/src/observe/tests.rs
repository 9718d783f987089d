use super::*;
use statements::MAX_STATEMENTS;
use terrace_storage::Reads;

#[test]
fn literals_become_parameters() {
    for (sql, expected) in [
        ("SELECT  1,\n 'a''b' FROM t", "SELECT $1, $2 FROM t"),
        ("select v1 from t2 where x = $1 and y = 2.5e-3", "select v1 from t2 where x = $1 and y = $2"),
        ("SELECT E'a\\'b', \"c 'd' 1\", $q$ it's $q$, $$x$$", "SELECT $1, \"c 'd' 1\", $2, $3"),
        ("-- a 1\nSELECT /* b /* 2 */ */ .5 + -3", "SELECT $1 + -$2"),
        ("UPDATE t SET v=v+1 WHERE id=42", "UPDATE t SET v=v+$1 WHERE id=$2"),
        ("SELECT 'open", "SELECT..."),
        ("SELECT $tag$ open", "SELECT..."),
        ("SELECT $3 || 'é' || \"ü\"", "SELECT $3 || $4 || \"ü\""),
        ("SELECT 1, 1_000", "SELECT $1,..."),
        ("  ", ""),
        ("$", "$"),
    ] {
        assert_eq!(normalise(sql), expected, "{sql}");
    }
}

#[test]
fn long_texts_are_cut_between_characters() {
    let text = normalise(&format!("SELECT {}", "ü ".repeat(4000)));
    assert!(text.ends_with("...") && text.len() <= 4100, "{}", text.len());
}

#[test]
fn statements_called_least_are_forgotten_first() {
    let statements = Statements::default();
    let often = statements.entry("terrace", "SELECT often");
    (0..5).for_each(|_| often.record(1000, 1, Reads::default(), false));
    for i in 0..MAX_STATEMENTS {
        statements.entry("terrace", &format!("SELECT a{i}")).record(10, 0, Reads::default(), i == 0);
    }
    let all = statements.all();
    assert!(all.len() < MAX_STATEMENTS && all.len() > MAX_STATEMENTS / 2, "{}", all.len());
    let (_, _, totals) = all.iter().find(|(_, text, _)| &**text == "SELECT often").expect("it was called most");
    let expected = StatementTotals { calls: 5, total: 5000, min: 1000, max: 1000, rows: 5, ..Default::default() };
    assert_eq!(*totals, expected);
    statements.clear();
    assert_eq!(statements.all(), vec![]);
    often.record(7, 0, Reads::default(), true);
    assert_eq!(statements.all().len(), 1, "who kept its entry counts on");
}
