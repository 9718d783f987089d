//! Transactions, settings, cursors, prepared statements, COPY, EXPLAIN, maintenance.

use crate::shown::statement;
use terrace_grammar::statement::{
    CopySource, CopyTarget, Direction, Discard, Isolation, Name, NamedOption, OptionValue, SettingValueKind, Statement,
    TransactionKind as T, TransactionMode as Mode,
};

#[test]
fn transactions_have_their_modes() {
    let kind = |sql: &str| match statement(sql) {
        Statement::Transaction(transaction) => transaction.kind,
        other => panic!("{sql} is {other:?}"),
    };
    let modes = vec![Mode::Isolation(Isolation::RepeatableRead), Mode::ReadOnly(true), Mode::Deferrable(false)];
    let sql = "BEGIN WORK ISOLATION LEVEL REPEATABLE READ, READ ONLY NOT DEFERRABLE";
    assert_eq!(kind(sql), T::Begin { start: false, modes });
    assert_eq!(kind("START TRANSACTION"), T::Begin { start: true, modes: vec![] });
    assert_eq!(kind("COMMIT AND CHAIN"), T::Commit { chain: true });
    assert_eq!(kind("END TRANSACTION AND NO CHAIN"), T::Commit { chain: false });
    assert_eq!(kind("ABORT"), T::Rollback { chain: false });
    assert!(matches!(kind("ROLLBACK WORK TO SAVEPOINT a"), T::RollbackTo(name) if name.name == "a"));
    assert!(matches!(kind("ROLLBACK TO savepoint"), T::RollbackTo(name) if name.name == "savepoint"));
    assert!(matches!(kind("RELEASE a"), T::Release(_)));
    assert!(matches!(kind("SAVEPOINT a"), T::Savepoint(_)));
}

#[test]
fn constraints_are_set() {
    let set = |sql: &str| match statement(sql) {
        Statement::SetConstraints(set) => {
            (set.names.map(|names| names.iter().map(Name::shown).collect()), set.deferred)
        }
        other => panic!("{sql} is {other:?}"),
    };
    assert_eq!(set("SET CONSTRAINTS ALL DEFERRED"), (None, true));
    assert_eq!(set("set constraints a, public.b immediate"), (Some(vec!["a".into(), "public.b".into()]), false));
}

/// The name of a setting, whether it is local, and its values.
fn set(sql: &str) -> (String, bool, Option<Vec<String>>) {
    let Statement::Set(set) = statement(sql) else { panic!("{sql}") };
    let shown = |kind: SettingValueKind| match kind {
        SettingValueKind::Text(text) | SettingValueKind::Number(text) => text,
        SettingValueKind::Interval(text, to) => format!("{text} {}", to.fields.unwrap_or_default()),
    };
    let values = set.value.map(|all| all.into_iter().map(|value| shown(value.kind)).collect());
    (set.name.name, set.local, values)
}

#[test]
fn settings_are_set() {
    let some = |values: &[&str]| Some(values.iter().map(|value| (*value).to_owned()).collect());
    for (sql, name, local, values) in [
        ("SET a = 1", "a", false, some(&["1"])),
        ("SET LOCAL a.B TO 'x', y, -1.5", "a.b", true, some(&["x", "y", "-1.5"])),
        ("SET SESSION a TO on", "a", false, some(&["on"])),
        ("SET local = true", "local", false, some(&["true"])),
        ("SET session.a = 1", "session.a", false, some(&["1"])),
        ("SET a TO DEFAULT", "a", false, None),
        ("SET TIME ZONE 'UTC'", "timezone", false, some(&["UTC"])),
        ("SET TIME ZONE -8", "timezone", false, some(&["-8"])),
        ("SET TIME ZONE LOCAL", "timezone", false, None),
        ("SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE", "timezone", false, some(&["+00:00 hour to minute"])),
        ("SET NAMES 'utf8'", "client_encoding", false, some(&["utf8"])),
        ("SET SCHEMA 's'", "search_path", false, some(&["s"])),
        ("SET ROLE r", "role", false, some(&["r"])),
        ("SET SESSION AUTHORIZATION DEFAULT", "session_authorization", false, None),
        ("SET transaction_isolation = 'serializable'", "transaction_isolation", false, some(&["serializable"])),
    ] {
        assert_eq!(set(sql), (name.to_owned(), local, values), "{sql}");
    }
    let Statement::SetTransaction(set) = statement("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE") else {
        panic!("SET TRANSACTION")
    };
    assert!(set.session && set.modes == [Mode::ReadOnly(false)]);
    for (sql, name) in [
        ("SHOW ALL", None),
        ("SHOW a.b", Some("a.b")),
        ("SHOW TIME ZONE", Some("timezone")),
        ("SHOW TRANSACTION ISOLATION LEVEL", Some("transaction_isolation")),
    ] {
        let Statement::Show(show) = statement(sql) else { panic!("{sql}") };
        assert_eq!(show.name.as_ref().map(|name| name.name.as_str()), name, "{sql}");
    }
    assert!(matches!(statement("RESET a"), Statement::Reset(_)));
    assert!(matches!(statement("ALTER SYSTEM SET a = 1"), Statement::AlterSystem(alter) if alter.value.is_some()));
    assert!(matches!(statement("ALTER SYSTEM RESET ALL"), Statement::AlterSystem(alter) if alter.name.is_none()));
    assert!(matches!(statement("DISCARD TEMP"), Statement::Discard(Discard::Temporary)));
}

#[test]
fn cursors_go_where_they_are_told() {
    let sql = "DECLARE c BINARY INSENSITIVE NO SCROLL CURSOR WITH HOLD FOR SELECT 1";
    let Statement::Declare(declare) = statement(sql) else { panic!("DECLARE") };
    assert!(declare.binary && declare.insensitive && declare.hold && declare.scroll == Some(false));
    for (sql, moves, direction, cursor) in [
        ("FETCH c", false, Direction::Forward(1), "c"),
        ("FETCH FROM c", false, Direction::Forward(1), "c"),
        ("FETCH NEXT IN c", false, Direction::Forward(1), "c"),
        ("FETCH next", false, Direction::Forward(1), "next"),
        ("MOVE 5 c", true, Direction::Forward(5), "c"),
        ("FETCH -2 FROM c", false, Direction::Forward(-2), "c"),
        ("FETCH ALL FROM c", false, Direction::Forward(i64::MAX), "c"),
        ("FETCH FORWARD 3 c", false, Direction::Forward(3), "c"),
        ("FETCH BACKWARD ALL IN c", false, Direction::Backward(i64::MAX), "c"),
        ("FETCH PRIOR c", false, Direction::Backward(1), "c"),
        ("FETCH LAST c", false, Direction::Absolute(-1), "c"),
        ("FETCH ABSOLUTE 0 c", false, Direction::Absolute(0), "c"),
        ("FETCH RELATIVE -1 c", false, Direction::Relative(-1), "c"),
    ] {
        let Statement::Fetch(fetch) = statement(sql) else { panic!("{sql}") };
        assert_eq!((fetch.moves, fetch.direction, fetch.cursor.name.as_str()), (moves, direction, cursor), "{sql}");
    }
    assert!(matches!(statement("CLOSE ALL"), Statement::Close(None)));
}

#[test]
fn statements_are_prepared_and_explained() {
    let Statement::Prepare(prepare) = statement("PREPARE p (int, text) AS DELETE FROM t WHERE a = $1") else {
        panic!("PREPARE")
    };
    assert!(prepare.types.len() == 2 && matches!(prepare.statement, Statement::Delete(_)));
    assert!(matches!(statement("EXECUTE p (1, 'a')"), Statement::Execute(execute) if execute.args.len() == 2));
    assert!(matches!(statement("DEALLOCATE PREPARE p"), Statement::Deallocate(Some(name)) if name.name == "p"));
    assert!(matches!(statement("DEALLOCATE prepare"), Statement::Deallocate(Some(name)) if name.name == "prepare"));
    assert!(matches!(statement("DEALLOCATE ALL"), Statement::Deallocate(None)));
    let names = |options: &[NamedOption]| -> Vec<String> { options.iter().map(|one| one.name.name.clone()).collect() };
    for (sql, expected) in [
        ("EXPLAIN SELECT 1", vec![]),
        ("EXPLAIN ANALYZE VERBOSE SELECT 1", vec!["analyze", "verbose"]),
        ("EXPLAIN (ANALYZE, BUFFERS off, FORMAT json) (SELECT 1)", vec!["analyze", "buffers", "format"]),
        ("EXPLAIN (SELECT 1)", vec![]),
        ("EXPLAIN INSERT INTO t VALUES (1)", vec![]),
        ("EXPLAIN EXECUTE p", vec![]),
    ] {
        let Statement::Explain(explain) = statement(sql) else { panic!("{sql}") };
        assert_eq!(names(&explain.options), expected, "{sql}");
    }
    let Statement::Vacuum(vacuum) = statement("VACUUM FULL VERBOSE ANALYZE a (b), c") else { panic!("VACUUM") };
    assert_eq!(names(&vacuum.options), ["full", "verbose", "analyze"]);
    assert_eq!((vacuum.tables.len(), vacuum.tables[0].columns.len()), (2, 1));
    let Statement::Analyze(analyze) = statement("ANALYZE (VERBOSE, SKIP_LOCKED true)") else { panic!("ANALYZE") };
    assert_eq!(names(&analyze.options), ["verbose", "skip_locked"]);
}

#[test]
fn copy_has_old_and_new_options() {
    let copy = |sql: &str| match statement(sql) {
        Statement::Copy(copy) => *copy,
        other => panic!("{sql} is {other:?}"),
    };
    let new =
        copy("COPY s.t (a, b) FROM STDIN WITH (FORMAT csv, HEADER, DELIMITER ';', FORCE_NULL (a), X *) WHERE a > 1");
    assert!(new.from && new.target == CopyTarget::Client && new.filter.is_some());
    assert!(matches!(&new.source, CopySource::Table { columns, .. } if columns.len() == 2));
    assert_eq!(new.options[1].value, OptionValue::None);
    assert_eq!(new.options[4].value, OptionValue::All);
    let old = copy("COPY t TO stdout USING DELIMITERS '|' WITH CSV HEADER NULL AS '' FORCE QUOTE *");
    let names: Vec<&str> = old.options.iter().map(|option| option.name.name.as_str()).collect();
    assert_eq!(names, ["delimiter", "format", "header", "null", "force_quote"]);
    assert_eq!(copy("COPY t FROM PROGRAM 'x'").target, CopyTarget::Program("x".to_owned()));
    assert!(matches!(copy("COPY (SELECT 1) TO '/x'").source, CopySource::Query(..)));
}
