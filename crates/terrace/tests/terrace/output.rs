//! What is written, and output that goes nowhere: a server serves and closes its database, other commands end.

use crate::common::{Scratch, Served, good, run};
use std::fs::OpenOptions;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_full_disk_behind_the_output_stops_nothing() {
    let database = std::env::temp_dir().join(format!("terrace-output-{}", std::process::id()));
    let terrace = || Command::new(env!("CARGO_BIN_EXE_terrace"));
    assert!(terrace().arg("init").arg(&database).stdout(Stdio::null()).status().unwrap().success());
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut server = terrace()
        .args(["--log", "trace", "serve", "--listen", &address.to_string()])
        .arg(&database)
        .stdout(full())
        .stderr(full())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < deadline, "the server answers");
        assert_eq!(server.try_wait().unwrap(), None, "the server runs");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(Command::new("kill").args(["-INT", &server.id().to_string()]).status().unwrap().success());
    assert!(server.wait().unwrap().success(), "the server stops cleanly");
    std::fs::remove_dir_all(&database).unwrap();
}

/// Nobody reads on, as behind `| head`.
#[test]
fn commands_end_quietly_behind_a_closed_pipe() {
    let scratch = Scratch::new("closed-pipe");
    let db = scratch.at("db");
    good(&["init", &db], "");
    for arguments in
        [&["check", &db][..], &["inspect", &db, "control"], &["inspect", &db, "page", "0"], &["lab", "list"]]
    {
        let mut child = Command::new(env!("CARGO_BIN_EXE_terrace"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
        assert_ne!(child.wait().unwrap().code(), Some(101), "{arguments:?}");
    }
}

#[test]
fn messages_can_be_json() {
    let scratch = Scratch::new("json");
    let db = scratch.at("db");
    good(&["init", &db], "");
    let settings = scratch.0.join("db/terrace.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    let text = text.replace("\nformat = \"text\"", "\nformat = \"json\"");
    let text = text.replace("\nmin_duration_statement = \"off\"", "\nmin_duration_statement = \"0ms\"");
    std::fs::write(&settings, text).unwrap();
    let mut server = Served::logging(&db, Stdio::piped());
    let mut log = server.0.stderr.take().unwrap();
    let slow = run(&["shell", "--connect", &server.1, "-c", "SELECT 'a\"\n\\'"], "");
    assert!(slow.status.success(), "{}", String::from_utf8_lossy(&slow.stderr));
    drop(server);
    let mut text = String::new();
    log.read_to_string(&mut text).unwrap();
    assert!(text.contains(r#"SELECT 'a\"\n\\'"#), "{text}");
    for line in text.lines() {
        let begins = line.starts_with("{\"timestamp\":\"20") && line.ends_with('}');
        assert!(begins && line.contains("\"level\":") && line.contains("\"message\":"), "{line}");
    }
}
