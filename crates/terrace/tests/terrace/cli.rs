//! The binary, as a user runs it.

use crate::common::{self, Scratch};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Small enough that a test does not fill the disk.
const SMALL: &str = "[memory]\npool = \"8MB\"\nlog_buffer = \"1MB\"\n[log]\nsegment_size = \"1MB\"\n\
                     redo_bound = \"16MB\"\nretention = \"16MB\"\n";

fn command(arguments: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_terrace"));
    command.arg(arguments[0]).arg(dir).args(&arguments[1..]).env_remove("RUST_LOG");
    command
}

fn terrace(arguments: &[&str], dir: &Path) -> Output {
    command(arguments, dir).stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn succeeds(arguments: &[&str], dir: &Path) -> String {
    let output = terrace(arguments, dir);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?} failed:\n{out}\n{err}");
    out.into_owned()
}

/// Runs into an error; returns what it says.
#[track_caller]
fn refuses(arguments: &[&str], dir: &Path, expected: &[&str]) {
    let output = terrace(arguments, dir);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {err}");
    for text in expected {
        assert!(err.contains(text), "{arguments:?} should say {text:?}, says:\n{err}");
    }
}

fn init(scratch: &Scratch) -> PathBuf {
    let settings = scratch.write("settings.toml", SMALL);
    succeeds(&["init", "--config", settings.to_str().unwrap()], &scratch.db());
    scratch.db()
}

struct Served(Child, String);

impl Served {
    /// Starts a server and waits until it is ready; keeps what it said up to then.
    fn start(dir: &Path) -> Served {
        let mut child = command(&["serve", "--listen", "127.0.0.1:0"], dir).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        while !said.contains("psql -h 127.0.0.1 -p ") {
            assert_ne!(lines.read_line(&mut said).unwrap(), 0, "the server ended: {said}");
        }
        // Somebody must go on reading, or the server's last words have nowhere to go.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Served(child, said)
    }

    fn stop(mut self) {
        // SAFETY: a system call without pointers, on a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) }, 0);
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_database_is_made_once_and_described() {
    let scratch = Scratch::new("once");
    let dir = init(&scratch);
    assert_eq!(fs::read_to_string(dir.join("terrace.toml")).unwrap(), SMALL);
    refuses(&["init"], &dir, &["there is a database here already", "terrace serve"]);
    assert!(succeeds(&["check"], &dir).contains("sound"));
    let control = succeeds(&["inspect", "control"], &dir);
    assert!(control.contains("page size        8KB") && control.contains("ended cleanly"), "{control}");
    let log = succeeds(&["inspect", "log"], &dir);
    assert!(log.contains("restart begins at"), "{log}");
    let page = succeeds(&["inspect", "page", "0", "--bytes"], &dir);
    assert!(page.contains("page 1:0: sound") && page.contains("FileHeader"), "{page}");
    refuses(&["inspect", "page", "4000000"], &dir, &["beyond the end"]);
    assert!(succeeds(&["inspect", "space"], &dir).contains("owner"));
    succeeds(&["inspect", "tables"], &dir);
}

#[test]
fn directories_that_are_no_database_are_left_alone() {
    let scratch = Scratch::new("other");
    scratch.write("photo.jpg", "precious");
    refuses(&["init"], &scratch.0, &["not empty"]);
    for command in [&["serve"][..], &["check"], &["inspect", "control"]] {
        refuses(command, &scratch.0, &["no database here", "terrace init"]);
        refuses(command, &scratch.0.join("nowhere"), &["no database here"]);
    }
    let names: Vec<_> = fs::read_dir(&scratch.0).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["photo.jpg"], "looking changes nothing");
}

/// It was said that there is no database, and how to make one.
#[test]
fn a_database_without_its_control_file_says_so() {
    let scratch = Scratch::new("no-control");
    let dir = init(&scratch);
    let away = |name: &str| fs::rename(dir.join(name), scratch.0.join(name)).unwrap();
    let back = |name: &str| fs::rename(scratch.0.join(name), dir.join(name)).unwrap();
    let missing = |text: &str| {
        for command in ["serve", "check"] {
            refuses(&[command], &dir, &[text, "is missing: put it back, or restore the database from a backup"]);
        }
    };
    away("control");
    missing("the control file");
    away("terrace.toml");
    missing("the control file");
    back("control");
    missing("terrace.toml");
    back("terrace.toml");
    assert!(succeeds(&["check"], &dir).contains("sound"));
}

#[test]
fn settings_are_checked_before_anything_is_made() {
    let scratch = Scratch::new("settings");
    for (text, expected) in [
        ("[memory]\npol = \"1GB\"\n", &["settings.toml line 2", "memory.pol", "memory.pool"][..]),
        (
            "[tablespaces.data]\ndevice = \"hdd\"\n",
            &["tablespaces.data.device = \"hdd\"", "not defined", "[devices.hdd]"],
        ),
        ("[server]\nlisten = \"0.0.0.0:5433\"\n", &["not a loopback address"]),
    ] {
        let settings = scratch.write("settings.toml", text);
        refuses(&["init", "--config", settings.to_str().unwrap()], &scratch.db(), expected);
        assert!(!scratch.db().exists());
    }
    let settings = scratch.write("settings.toml", "[devices.main]\npath = \"/nowhere/ssd\"\n");
    let expected = ["devices.main.path = \"/nowhere/ssd\"", "does not exist", "make or mount"];
    refuses(&["init", "--config", settings.to_str().unwrap()], &scratch.db(), &expected);
    refuses(&["init", "--config", "/nowhere/settings.toml"], &scratch.db(), &["/nowhere/settings.toml"]);
    assert!(!scratch.db().exists(), "a failed attempt leaves nothing");
    // Nothing stands in the way of another attempt.
    init(&scratch);
}

#[test]
fn a_failed_init_leaves_nothing_and_takes_nothing() {
    let scratch = Scratch::new("failed-init");
    fs::create_dir(scratch.0.join("ssd")).unwrap();
    // Its data tablespace finds no room: everything made before goes, on other devices too.
    let settings = "[devices.main]\n[devices.ssd]\npath = \"../../ssd\"\n[tablespaces]\nlog.device = \"ssd\"\n\
                    data.capacity = \"64KB\"\n";
    let settings = scratch.write("settings.toml", &format!("{SMALL}{settings}"));
    let deep = scratch.0.join("new/db");
    let make = ["init", "--config", settings.to_str().unwrap()];
    refuses(&make, &deep, &["data"]);
    assert!(!scratch.0.join("new").exists());
    assert_eq!(fs::read_dir(scratch.0.join("ssd")).unwrap().count(), 0);
    // An attempt after an interrupted one removes that one's files, and no others.
    fs::create_dir_all(&deep).unwrap();
    scratch.write("new/db/unfinished", "");
    scratch.write(
        "new/db/terrace.toml",
        &format!("{SMALL}[devices.main]\n[devices.ssd]\npath = \"../../ssd\"\n[tablespaces]\nlog.device = \"ssd\"\n"),
    );
    scratch.write("ssd/log", "the beginning of a log");
    fs::create_dir(scratch.0.join("hdd")).unwrap();
    scratch.write("hdd/data", "of somebody else");
    let other = scratch.write(
        "other.toml",
        &format!("{SMALL}[devices.main]\n[devices.hdd]\npath = \"../../hdd\"\n[tablespaces]\ndata.device = \"hdd\"\n"),
    );
    refuses(&["init", "--config", other.to_str().unwrap()], &deep, &["hdd/data exists already"]);
    assert!(scratch.0.join("hdd/data").exists() && !scratch.0.join("ssd/log").exists());
    let plain = scratch.write("plain.toml", SMALL);
    succeeds(&["init", "--config", plain.to_str().unwrap()], &deep);
    assert!(succeeds(&["check"], &deep).contains("sound"));
}

#[test]
fn tablespaces_lie_on_the_devices_that_settings_name() {
    let scratch = Scratch::new("devices");
    let (ssd, hdd) = (scratch.0.join("ssd"), scratch.0.join("hdd"));
    fs::create_dir(&ssd).unwrap();
    fs::create_dir(&hdd).unwrap();
    let devices = format!(
        "{SMALL}[devices.ssd]\npath = {ssd:?}\n[devices.hdd]\npath = {hdd:?}\nbackend = \"threads\"\ndirect = false\n\
         [tablespaces]\n\
         log.device = \"ssd\"\nundo.device = \"ssd\"\ndata.device = \"hdd\"\ntemp.device = \"hdd\"\n"
    );
    let settings = scratch.write("settings.toml", &devices);
    let make = ["init", "--config", settings.to_str().unwrap()];
    succeeds(&make, &scratch.db());
    for file in ["ssd/log", "ssd/double-write", "ssd/undo", "hdd/data", "db/control"] {
        assert!(scratch.0.join(file).exists(), "{file}");
    }
    assert!(succeeds(&["check"], &scratch.db()).contains("sound"));
    refuses(&make, &scratch.0.join("second"), &["exists already", "another database", "devices.*.path", "--config"]);
    // A device that lost its file, or is not mounted.
    fs::rename(hdd.join("data"), scratch.0.join("elsewhere")).unwrap();
    refuses(&["check"], &scratch.db(), &["hdd/data is missing", "tablespaces.data"]);
    fs::remove_dir_all(&hdd).unwrap();
    refuses(&["check"], &scratch.db(), &["devices.hdd.path", "does not exist"]);
}

#[test]
fn a_database_is_used_by_one_process_at_a_time() {
    let scratch = Scratch::new("in-use");
    let dir = init(&scratch);
    let served = Served::start(&dir);
    assert!(served.1.contains("ended cleanly"), "{}", served.1);
    let holder = format!("in use by process {}", served.0.id());
    for command in [&["serve"][..], &["check"], &["inspect", "control"]] {
        refuses(command, &dir, &[&holder]);
    }
    served.stop();
    refuses(&["serve", "--listen", "0.0.0.0:1"], &dir, &["not a loopback address"]);
    assert!(succeeds(&["check"], &dir).contains("the last run ended cleanly"));
    // Killed: the next start says that it recovered.
    let mut served = Served::start(&dir);
    served.0.kill().unwrap();
    served.0.wait().unwrap();
    assert!(Served::start(&dir).1.contains("recovered in "));
}

#[test]
fn settings_that_cannot_be_read_are_named() {
    let scratch = Scratch::new("unreadable");
    let dir = init(&scratch);
    let settings = dir.join("terrace.toml");
    let kept = fs::read(&settings).unwrap();
    fs::write(&settings, b"\xff\xfe").unwrap();
    refuses(&["serve"], &dir, &["terrace.toml", "UTF-8"]);
    fs::write(&settings, "[memory]\npool = 8\npool = 9\n").unwrap();
    refuses(&["check"], &dir, &["terrace.toml", "duplicate key"]);
    fs::remove_file(&settings).unwrap();
    fs::create_dir(&settings).unwrap();
    refuses(&["check"], &dir, &["terrace.toml", "directory"]);
    fs::remove_dir(&settings).unwrap();
    fs::write(&settings, kept).unwrap();
    assert!(succeeds(&["check"], &dir).contains("sound"));
}

/// A session of the shell.
fn shell(served: &Served) -> Command {
    let port = served.1.split("-p ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let mut client = Command::new(env!("CARGO_BIN_EXE_terrace"));
    client.args(["shell", "--connect", &format!("127.0.0.1:{port}"), "--csv"]);
    client
}

/// What a session of its own answers.
#[track_caller]
fn ask(served: &Served, sql: &str) -> String {
    let output = shell(served).args(["-c", sql]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Temporary tables of sessions that a crash ends are gone afterwards, and what they took is used again.
#[test]
fn a_killed_server_leaves_no_temporary_tables() {
    let scratch = Scratch::new("temporary");
    let dir = init(&scratch);
    let make = "CREATE TEMP TABLE t (a bigint PRIMARY KEY, b text, n serial);\n\
                INSERT INTO t (a, b) SELECT i, repeat('x', 500) FROM generate_series(1, 8000) AS g(i);\n";
    let count = "SELECT 'so many: ' || count(*) FROM pg_class WHERE relpersistence = 't'";
    let mut sizes = vec![];
    for round in 0..5 {
        let mut served = Served::start(&dir);
        assert!(ask(&served, count).contains("so many: 0"), "round {round}");
        let mut client = shell(&served).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut statements = client.stdin.take().unwrap();
        statements.write_all(make.as_bytes()).unwrap();
        statements.flush().unwrap();
        let filled = "SELECT 'filled: ' || count(*) FROM pg_stat_user_tables WHERE relname = 't' AND n_tup_ins = 8000";
        while !ask(&served, filled).contains("filled: 1") {
            std::thread::sleep(Duration::from_millis(20));
        }
        // Of the table, its key and its sequence.
        assert!(ask(&served, count).contains("so many: 3"), "round {round}");
        served.0.kill().unwrap();
        served.0.wait().unwrap();
        drop(statements);
        client.wait().unwrap();
        sizes.push(fs::metadata(dir.join("data")).unwrap().len());
    }
    // Each round fills more than 4 MiB. Pages are freed in the background, while the next ones are filled.
    assert!(sizes[4] < sizes[0] + (4 << 20), "the file grows: {sizes:?}");
    let served = Served::start(&dir);
    assert!(ask(&served, count).contains("so many: 0"));
    served.stop();
    assert!(succeeds(&["check"], &dir).contains("sound"));
}

#[test]
fn a_server_killed_while_it_recovers_recovers_again() {
    let scratch = Scratch::new("again");
    let dir = init(&scratch);
    let load = "CREATE TABLE t (a bigint PRIMARY KEY, b text); \
                INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(1, 8000) AS g(i)";
    let mut served = Served::start(&dir);
    ask(&served, load);
    served.0.kill().unwrap();
    served.0.wait().unwrap();
    for attempt in 0..12 {
        let serve = ["serve", "--listen", "127.0.0.1:0"];
        let mut child = command(&serve, &dir).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(attempt * 15));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let served = Served::start(&dir);
    assert!(ask(&served, "SELECT count(*), sum(a), min(length(b)) FROM t").contains("8000,32004000,500"));
    served.stop();
    assert!(succeeds(&["check"], &dir).contains("sound"));
}

#[test]
fn an_interrupted_init_is_refused_and_can_be_repeated() {
    let scratch = Scratch::new("half-made");
    let settings = scratch.write("settings.toml", SMALL);
    let make = ["init", "--config", settings.to_str().unwrap()];
    let mut interrupted = 0;
    for attempt in 0..20 {
        let mut child = command(&make, &scratch.db()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(attempt));
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            break;
        }
        if scratch.db().join("unfinished").exists() {
            interrupted += 1;
            refuses(&["check"], &scratch.db(), &["was interrupted here", "again"]);
            refuses(&["serve"], &scratch.db(), &["was interrupted here"]);
        }
    }
    // However the kills fell, here is one for certain.
    if interrupted == 0 {
        fs::remove_dir_all(scratch.db()).ok();
        fs::create_dir(scratch.db()).unwrap();
        scratch.write("db/unfinished", "");
        scratch.write("db/terrace.toml", SMALL);
        scratch.write("db/log", "the beginning of a log");
        refuses(&["check"], &scratch.db(), &["was interrupted here", "again"]);
    }
    // A kill between two attempts' files leaves nothing at all.
    if scratch.db().join("unfinished").exists() || !scratch.db().join("control").exists() {
        succeeds(&make, &scratch.db());
    }
    assert!(succeeds(&["check"], &scratch.db()).contains("sound"));
}

#[test]
fn files_of_another_database_are_refused() {
    let (one, two) = (Scratch::new("foreign-1"), Scratch::new("foreign-2"));
    let (first, second) = (init(&one), init(&two));
    for file in ["data", "undo", "log"] {
        let kept = second.join("kept");
        fs::rename(second.join(file), &kept).unwrap();
        fs::copy(first.join(file), second.join(file)).unwrap();
        refuses(&["check"], &second, &[file]);
        fs::rename(&kept, second.join(file)).unwrap();
    }
    assert!(succeeds(&["check"], &second).contains("sound"));
}

#[test]
fn the_quickstart_makes_loads_measures_and_reuses() {
    let scratch = Scratch::new("quickstart");
    let run = |extra: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_terrace"));
        command
            .args(["quickstart", "--rows", "3000", "--seconds", "1", "--no-serve", "--dir"])
            .arg(scratch.db())
            .args(extra);
        let output = command.stdin(Stdio::null()).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (good, said) = run(&[]);
    assert!(good, "{said}");
    for expected in ["holds 3000 rows", "read a row by key", "p99", "log on main", "all balances together are 3000000"]
    {
        assert!(said.contains(expected), "{expected:?} is not in:\n{said}");
    }
    let (good, said) = run(&[]);
    assert!(!good && said.contains("--reuse or --replace"), "{said}");
    let (good, said) = run(&["--reuse"]);
    assert!(good && said.contains("ended cleanly") && said.contains("holds 3000 rows"), "{said}");
    let (good, said) = run(&["--replace"]);
    assert!(good && said.contains("made a database"), "{said}");
    assert!(succeeds(&["check"], &scratch.db()).contains("sound (1 tables)"));
}

#[test]
fn experiments_are_named_run_written_down_and_repeatable() {
    let scratch = Scratch::new("lab");
    let lab = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_terrace"));
        let output = command.arg("lab").args(arguments).env_remove("RUST_LOG").stdin(Stdio::null()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let (good, listed, _) = lab(&["list"]);
    for id in ["do/fig3.1-c", "do/3.3", "do/readahead", "terrace/no-cliff", "terrace/ycsb"] {
        assert!(good && listed.contains(id), "{id} is not in:\n{listed}");
    }
    let out = scratch.0.join("reports");
    let (good, said, err) = lab(&["run", "do/readahead", "--seed", "7", "--out", out.to_str().unwrap()]);
    assert!(good && said.contains("read-ahead") && said.contains("holds"), "{said}\n{err}");
    let json = fs::read_to_string(out.join("do-readahead.json")).unwrap();
    for part in
        ["\"seed\": 7", "\"scale\": \"quick\"", "\"config\"", "\"rows\"", "\"paper\"", "\"shapes\"", "\"holds\""]
    {
        assert!(json.contains(part), "{part} is not in:\n{json}");
    }
    assert!(fs::read_to_string(out.join("do-readahead.html")).unwrap().contains("<svg"));
    let again = scratch.0.join("again.json");
    assert!(lab(&["run", "do/readahead", "--seed", "7", "--json", again.to_str().unwrap()]).0);
    assert_eq!(fs::read_to_string(&again).unwrap(), json, "the same seed gives the same bytes");

    let refused = |arguments: &[&str], expected: &str| {
        let (good, _, err) = lab(arguments);
        assert!(!good && err.contains(expected), "{arguments:?} should say {expected:?}, says:\n{err}");
    };
    refused(&["run", "do/fig9"], "there is no experiment \"do/fig9\"; there are do/fig3.1-c");
    refused(&["run", "all", "--json", "all.json"], "take one experiment");
    refused(&["run", "do/readahead", "--json", "nowhere/at/all.json"], "there is no directory nowhere/at");
    refused(&["run", "do/readahead", "--seeds", "0"], "--seeds");
}

#[test]
fn curves_are_drawn_from_lines_of_text() {
    let plot = |arguments: &[&str], input: &str| common::run(&[&["lab", "plot"], arguments].concat(), input);
    let curves = "slow,0,10\nfast,0,2000\nslow,5,12\nfast,5,2100\n";
    let drawn = plot(&["--logarithmic", "--title", "Reads"], curves);
    let text = String::from_utf8(drawn.stdout).unwrap();
    assert!(drawn.status.success() && text.starts_with("<svg"), "{text}");
    for part in ["Reads", "slow", "fast", "10000"] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    for (input, expected) in [("a,1\n", "line 1: \"a,1\""), ("", "nothing to draw"), ("a,1,0\n", "line 1")] {
        let refused = plot(&["--logarithmic"], input);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && said.contains(expected), "{said}");
    }
}
