//! The flash tier as the binary's user changes it: another device, another size, off, by ALTER SYSTEM and by the settings' file.
#![allow(clippy::disallowed_methods, reason = "a test of files and processes")]

mod common;

use common::{Scratch, Served, good};
use std::fs;
use std::time::Duration;

const ROWS: u32 = 20_000;

fn settings(main: &str, other: &str) -> String {
    format!(
        "[memory]\npool = \"8MB\"\nlog_buffer = \"1MB\"\n[log]\nsegment_size = \"1MB\"\nredo_bound = \"16MB\"\nretention = \"16MB\"\n\
         [devices.main]\npath = \".\"\n[devices.one]\npath = {main:?}\n[devices.other]\npath = {other:?}\n[flash_tier]\ndevice = \"one\"\nsize = \"4MB\"\n"
    )
}

/// One value of the tier's view.
fn told(server: &Served, column: &str) -> String {
    let said = server.sql(&format!("SELECT {column} FROM terrace.flash_tier"));
    said.lines().nth(1).expect("one row").to_owned()
}

#[track_caller]
fn whole(server: &Served) {
    let said = server.sql("SELECT count(*), sum(length(body)) FROM t");
    assert_eq!(said.lines().nth(1), Some(&*format!("{ROWS},{}", ROWS * 500)));
}

#[test]
fn a_tier_is_moved_resized_and_switched_off() {
    let scratch = Scratch::new("tier");
    let (db, one, other) = (scratch.at("db"), scratch.at("one"), scratch.at("other"));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&other).unwrap();
    let file = scratch.at("settings.toml");
    fs::write(&file, settings(&one, &other)).unwrap();
    good(&["init", &db, "--config", &file], "");
    let server = Served::start(&db);
    server.sql("CREATE TABLE t (id int PRIMARY KEY, body text)");
    server.sql(&format!("INSERT INTO t SELECT n, repeat('x', 500) FROM generate_series(1, {ROWS}) AS g(n)"));
    whole(&server);
    assert_eq!(told(&server, "state"), "on");
    assert!(scratch.0.join("one/flash").exists());

    server.sql("ALTER SYSTEM SET flash_tier.device = 'other'");
    assert!(scratch.0.join("other/flash").exists(), "the change is complete when the statement returns");
    assert_eq!(told(&server, "state"), "on");
    server.sql("UPDATE t SET body = repeat('y', 500) WHERE id % 7 = 0");
    whole(&server);

    let path = scratch.0.join("db/terrace.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("device = \"other\""), "{text}");
    fs::write(&path, text.replace("size = \"4MB\"", "size = \"6MB\"")).unwrap();
    assert_eq!(server.sql("SELECT pg_reload_conf()").lines().nth(1), Some("t"));
    // It is read soon, not at once.
    let resized = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        told(&server, "size_bytes") == (6 << 20).to_string()
    });
    assert!(resized, "the settings were not read again: {}", told(&server, "size_bytes"));
    whole(&server);

    server.sql("ALTER SYSTEM SET flash_tier.device = ''");
    assert_eq!(told(&server, "state"), "none");
    whole(&server);
    drop(server);
    let server = Served::start(&db);
    whole(&server);
    assert_eq!(told(&server, "state"), "none", "it is kept");
}
