//! Backup and restore of the binary, and its shell: under load, to the end, to points in time, damaged.

use crate::common::{Scratch, Served, good, run};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const SMALL: &str = "[memory]\npool = \"8MB\"\nlog_buffer = \"1MB\"\n[log]\nsegment_size = \"1MB\"\n\
                     redo_bound = \"16MB\"\nretention = \"16MB\"\n";

#[track_caller]
fn bad(arguments: &[&str], input: &str, expected: &str) {
    let output = run(arguments, input);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {err}");
    assert!(err.contains(expected), "{arguments:?} should say {expected:?}, says:\n{err}");
}

fn now() -> String {
    let output = Command::new("date").args(["-u", "+%Y-%m-%d %H:%M:%S.%6N"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

fn make(scratch: &Scratch) -> String {
    fs::create_dir(scratch.0.join("archive")).unwrap();
    let settings = scratch.at("settings.toml");
    fs::write(&settings, format!("{SMALL}archive = \"../archive\"\n")).unwrap();
    let db = scratch.at("db");
    good(&["init", &db, "--config", &settings], "");
    db
}

fn count(dir: &str, sql: &str) -> i64 {
    let out = good(&["shell", dir, "--csv", "-c", sql], "");
    out.lines().nth(1).unwrap().parse().unwrap()
}

/// Inserts rows in order, one commit each, until it is told to stop.
fn insert_until(stop: Arc<AtomicBool>, made: Arc<AtomicU32>, address: String) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut shell = Command::new(env!("CARGO_BIN_EXE_terrace"))
            .args(["shell", "--connect", &address])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut input, output) = (shell.stdin.take().unwrap(), BufReader::new(shell.stdout.take().unwrap()));
        let filler = "x".repeat(3000);
        // Somebody must read the answers, or the shell stops writing them.
        let reader = std::thread::spawn(move || output.lines().map_while(Result::ok).count());
        let mut k = 0;
        while !stop.load(Ordering::Acquire) {
            k += 1;
            writeln!(input, "INSERT INTO t VALUES ({k}, '{filler}');").unwrap();
            made.store(k, Ordering::Release);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        drop(input);
        shell.wait().unwrap();
        reader.join().unwrap();
    })
}

#[test]
fn a_backup_under_load_is_restored_to_its_end_and_to_points_in_time() {
    let scratch = Scratch::new("load");
    let (db, archive) = (make(&scratch), scratch.at("archive"));
    let server = Served::start(&db);
    server.sql("CREATE TABLE t (k bigint PRIMARY KEY, v text); CREATE TABLE marks (name text PRIMARY KEY);");
    let (stop, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let writer = insert_until(stop.clone(), made.clone(), server.1.clone());
    while made.load(Ordering::Acquire) < 300 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let copy = scratch.at("copy");
    let said = good(&["backup", &db, &copy], "");
    assert!(said.contains("up to LSN"), "{said}");
    assert!(good(&["check", &copy], "").contains("a sound backup"));
    bad(&["backup", &db, &copy], "", "not empty");
    stop.store(true, Ordering::Release);
    writer.join().unwrap();

    server.sql("INSERT INTO marks VALUES ('before')");
    std::thread::sleep(std::time::Duration::from_millis(20));
    let point = now();
    std::thread::sleep(std::time::Duration::from_millis(20));
    server.sql("INSERT INTO marks VALUES ('after'); DELETE FROM t;");
    // Push what was done so far out of the open segment.
    for _ in 0..3 {
        server.sql("INSERT INTO t SELECT 1000001, repeat('y', 900000); DELETE FROM t WHERE k > 1000000;");
    }
    drop(server);

    let end = scratch.at("end");
    let said = good(&["restore", &copy, &end], "");
    assert!(said.contains("restored"), "{said}");
    assert!(good(&["check", &end], "").contains("sound"));
    let rows = count(&end, "SELECT count(*) FROM t");
    assert!(rows >= 299, "{rows} rows");
    assert_eq!(count(&end, "SELECT max(k) FROM t"), rows, "a prefix of what was inserted");
    assert_eq!(count(&end, "SELECT count(*) FROM marks"), 0);

    let then = scratch.at("then");
    good(&["restore", &copy, &then, "--archive", &archive, "--to", &point], "");
    assert!(good(&["check", &then], "").contains("sound"));
    assert_eq!(good(&["shell", &then, "--csv", "-c", "SELECT name FROM marks"], ""), "name\nbefore\n");
    assert_eq!(count(&then, "SELECT count(*) FROM t"), i64::from(made.load(Ordering::Acquire)));
    // It goes on as a database of its own, and archives apart.
    good(&["shell", &then, "-c", "INSERT INTO marks VALUES ('restored')"], "");
    assert_eq!(count(&then, "SELECT count(*) FROM marks"), 2);

    bad(&["restore", &copy, &scratch.at("x"), "--to", "2001-01-01 00:00:00"], "", "use an earlier backup");
    bad(
        &["restore", &copy, &scratch.at("x"), "--archive", &archive, "--to", "2999-01-01 00:00:00"],
        "",
        "the log at hand ends",
    );
    bad(&["restore", &copy, &scratch.at("x"), "--to", "yesterday-ish"], "", "timestamp");
    bad(&["restore", &copy, &end], "", "there is a database here already");
    assert!(!scratch.0.join("x").exists(), "a failed restore leaves nothing");
}

#[test]
fn damaged_backups_are_refused() {
    let scratch = Scratch::new("damaged");
    let (db, copy) = (make(&scratch), scratch.at("copy"));
    good(&["shell", &db, "-c", "CREATE TABLE t (k int PRIMARY KEY); INSERT INTO t VALUES (1), (2);"], "");
    good(&["backup", &db, &copy], "");
    let files: Vec<String> = ["data", "undo", "terrace.toml", "manifest.toml"].map(String::from).into();
    let log = fs::read_dir(scratch.0.join("copy/log")).unwrap().next().unwrap().unwrap().path();
    let files = files.iter().map(|name| scratch.0.join("copy").join(name)).chain([log]);
    for path in files {
        let whole = fs::read(&path).unwrap();
        let mut broken = whole.clone();
        let at = whole.len() / 3;
        broken[at] ^= 0x10;
        for (damage, bytes) in [("a bit", &broken[..]), ("its end", &whole[..whole.len() - 2])] {
            fs::write(&path, bytes).unwrap();
            for command in [&["check", &copy][..], &["restore", &copy, &scratch.at("new")]] {
                let output = run(command, "");
                assert_eq!(output.status.code(), Some(1), "{command:?} with {damage} of {} gone", path.display());
            }
        }
        fs::write(&path, whole).unwrap();
    }
    fs::rename(scratch.0.join("copy/manifest.toml"), scratch.0.join("kept")).unwrap();
    bad(&["restore", &copy, &scratch.at("new")], "", "no backup here");
    fs::rename(scratch.0.join("kept"), scratch.0.join("copy/manifest.toml")).unwrap();
    assert!(good(&["check", &copy], "").contains("a sound backup"));
    good(&["restore", &copy, &scratch.at("new")], "");
    assert_eq!(count(&scratch.at("new"), "SELECT count(*) FROM t"), 2);
}

#[test]
fn the_shell_runs_scripts_prints_tables_and_stops_at_errors() {
    let scratch = Scratch::new("shell");
    let db = make(&scratch);
    let script = "CREATE TABLE t (id int PRIMARY KEY,\n  name text);\n\
                  INSERT INTO t VALUES (1, 'one; and'), (2, NULL);\n\\dt\n\\d t\n\\di\n\\x\n\
                  SELECT * FROM t WHERE id = 1;\n\\x\n-- a comment;\nSELECT id, name\nFROM t ORDER BY id;\n";
    let out = good(&["shell", &db], script);
    for expected in [
        "CREATE TABLE\n",
        "INSERT 0 2\n",
        "t_pkey",
        "| integer",
        "-[ RECORD 1 ]-\nid   | 1\nname | one; and\n",
        " id |   name\n",
        "(2 rows)",
    ] {
        assert!(out.contains(expected), "{expected:?} is not in:\n{out}");
    }
    assert_eq!(good(&["shell", &db, "--csv", "-c", "SELECT * FROM t ORDER BY id"], ""), "id,name\n1,one; and\n2,\n");
    bad(&["shell", &db], "SELECT 1 / 0;\nINSERT INTO t VALUES (3, 'three');\n", "22012");
    bad(&["shell", &db, "-c", "SELECT * FROM nowhere"], "", "42P01");
    bad(&["shell", &db, "-c", "\\nonsense"], "", "unknown command");
    bad(&["shell", "--connect", "127.0.0.1:1", "-c", "SELECT 1"], "", "cannot connect");
    assert_eq!(count(&db, "SELECT count(*) FROM t"), 2, "nothing after the error ran");
    fs::write(scratch.0.join("more.sql"), "INSERT INTO t VALUES (3, 'three');\nSELECT count(*) AS n FROM t").unwrap();
    let out = scratch.at("out.txt");
    good(&["shell", &db], &format!("\\o {out}\n\\i {}\n\\timing\n\\q\nSELECT 1;\n", scratch.at("more.sql")));
    let written = fs::read_to_string(&out).unwrap();
    assert!(written.contains(" n\n---\n 3\n(1 row)") && !written.contains("?column?"), "{written}");
}

#[test]
fn the_shell_copies_from_and_to_its_own_files() {
    let scratch = Scratch::new("copy");
    let db = make(&scratch);
    let (from, to) = (scratch.at("from.csv"), scratch.at("to.csv"));
    std::fs::write(&from, "3,three\n4,\"fo,ur\"\n").unwrap();
    // Data follows its statement, up to \.
    let script = "CREATE TABLE t (id int PRIMARY KEY, name text);\nCOPY t FROM STDIN;\n1\tone\n2\t\\N\n\\.\n\
                  SELECT count(*) FROM t;\n";
    let out = good(&["shell", &db], script);
    assert!(out.contains("COPY 2\n") && out.contains("(1 row)"), "{out}");
    assert_eq!(good(&["shell", &db, "-c", &format!("\\copy t from '{from}' with (format csv)")], ""), "COPY 2\n");
    let query = format!("\\copy (SELECT name FROM t WHERE id > 2 ORDER BY id) to {to} csv header");
    assert_eq!(good(&["shell", &db, "-c", &query], ""), "COPY\n");
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "name\nthree\n\"fo,ur\"\n");
    assert_eq!(good(&["shell", &db, "-c", "COPY t (id) TO STDOUT"], ""), "1\n2\n3\n4\n");
    // -c takes its data from standard input.
    assert_eq!(good(&["shell", &db, "-c", "COPY t FROM STDIN"], "5\tfive\n"), "COPY 1\n");
    bad(&["shell", &db, "-c", "COPY t FROM STDIN"], "6\n", "22P04");
    bad(&["shell", &db, "-c", "COPY nowhere FROM STDIN"], "", "42P01");
    bad(&["shell", &db, "-c", "\\copy t from /nowhere/at/all"], "", "/nowhere/at/all");
    bad(&["shell", &db, "-c", "\\copy t"], "", "use \\copy");
    assert_eq!(good(&["shell", &db, "--csv", "-c", "SELECT count(*) FROM t"], ""), "count\n5\n");
}

/// A database, its backups and its archived log are their owner's alone, whatever the process would let others do.
#[test]
fn files_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    fn check(path: &Path) {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
        if path.is_dir() {
            fs::read_dir(path).unwrap().for_each(|entry| check(&entry.unwrap().path()));
        }
    }
    let scratch = Scratch::new("modes");
    let (db, backup, copy, archive) =
        (scratch.at("db"), scratch.at("backup"), scratch.at("copy"), scratch.at("archive"));
    let settings = scratch.at("settings.toml");
    fs::create_dir(&archive).unwrap();
    fs::write(&settings, SMALL.replace("[log]\n", &format!("[log]\narchive = {archive:?}\n"))).unwrap();
    good(&["init", &db, "--config", &settings], "");
    let fill =
        "CREATE TABLE t (a int, b text); INSERT INTO t SELECT g, repeat('x', 200) FROM generate_series(1, 40000) g;";
    good(&["shell", &db], fill);
    good(&["backup", &db, &backup], "");
    good(&["restore", &backup, &copy], "");
    let archived: Vec<PathBuf> = fs::read_dir(&archive).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(archived.len(), 1, "the database's own");
    assert!(fs::read_dir(&archived[0]).unwrap().count() > 2, "segments were archived");
    [Path::new(&db), Path::new(&backup), Path::new(&copy), &archived[0]].into_iter().for_each(check);
}
