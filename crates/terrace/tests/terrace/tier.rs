//! The flash tier as the binary's user changes it: another device, another size, off, by ALTER SYSTEM and by the
//! settings' file; and as it is lost.

use crate::common::{Scratch, Served, good};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

const ROWS: u32 = 20_000;

fn settings(main: &str, other: &str) -> String {
    format!(
        "[memory]\npool = \"8MB\"\nlog_buffer = \"1MB\"\n[log]\nsegment_size = \"1MB\"\nredo_bound = \"16MB\"\n\
         retention = \"16MB\"\n\
         [devices.main]\npath = \".\"\n[devices.one]\npath = {main:?}\n[devices.other]\npath = {other:?}\n\
         [flash_tier]\ndevice = \"one\"\nsize = \"4MB\"\n"
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

/// A stop leaves changed pages on flash, or writes them home, as it is asked; the rows are there either way.
#[test]
fn a_server_is_stopped_fast_or_clean() {
    let scratch = Scratch::new("stop");
    let (db, one) = (scratch.at("db"), scratch.at("one"));
    fs::create_dir(&one).unwrap();
    let file = scratch.at("settings.toml");
    fs::write(&file, settings(&one, &one)).unwrap();
    good(&["init", &db, "--config", &file], "");
    let server = Served::start(&db);
    server.sql("CREATE TABLE t (id int PRIMARY KEY, body text)");
    server.sql(&format!("INSERT INTO t SELECT n, repeat('x', 500) FROM generate_series(1, {ROWS}) AS g(n)"));
    server.sql("UPDATE t SET body = repeat('y', 500) WHERE id % 3 = 0");
    let control = |server: Served, mode: &[&str]| {
        let said = good(&[&["stop", &db][..], mode].concat(), "");
        assert!(said.contains("stopped"), "{said}");
        drop(server);
        good(&["inspect", &db, "control"], "")
    };
    let said = control(server, &[]);
    assert!(said.contains("did not end cleanly"), "with a tier it is fast: {said}");
    let server = Served::start(&db);
    whole(&server);
    assert_ne!(told(&server, "found"), "0");
    server.sql("UPDATE t SET body = repeat('z', 500) WHERE id % 5 = 0");
    let said = control(server, &["--mode", "clean"]);
    assert!(said.contains("ended cleanly"), "{said}");
    whole(&Served::start(&db));
    let refused = Command::new(env!("CARGO_BIN_EXE_terrace")).args(["stop", &db]).output().unwrap();
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && text.contains("no server takes requests"), "{text}");
}

/// What memory does not hold is in the tier, much of it nowhere else: then the device's bytes change under it, and then
/// they are gone.
#[test]
fn a_tier_whose_device_is_lost_loses_no_row() {
    let scratch = Scratch::new("lost-tier");
    let (db, one) = (scratch.at("db"), scratch.at("one"));
    fs::create_dir(&one).unwrap();
    let file = scratch.at("settings.toml");
    let tier = settings(&one, &scratch.at("one"))
        .replace("size = \"4MB\"", "size = \"16MB\"\nwrite_policy = \"lazy-cleaning\"");
    fs::write(&file, tier).unwrap();
    good(&["init", &db, "--config", &file], "");
    let log = scratch.at("log");
    let server = Served::logging(&db, Stdio::from(fs::File::create(&log).unwrap()));
    server.sql("CREATE TABLE t (id int PRIMARY KEY, body text)");
    server.sql(&format!("INSERT INTO t SELECT n, repeat('x', 500) FROM generate_series(1, {ROWS}) AS g(n)"));
    server.sql("UPDATE t SET body = repeat('y', 500) WHERE id % 3 = 0");
    let changed = |server: &Served| server.sql("SELECT count(*) FROM t WHERE body LIKE 'y%'");
    let before = changed(&server);
    let number = |column: &str| told(&server, column).parse::<u64>().unwrap();
    assert!(number("hits") > 0 && number("used") > 0, "the tier is in use");

    // Garbage: no byte of a frame is believed.
    let flash = scratch.0.join("one/flash");
    let device = fs::OpenOptions::new().write(true).open(&flash).unwrap();
    let size = device.metadata().unwrap().len();
    for at in (65_536..size).step_by(65_536) {
        std::os::unix::fs::FileExt::write_all_at(&device, &[0xA5; 65_536][..(size - at).min(65_536) as usize], at)
            .unwrap();
    }
    whole(&server);
    assert_eq!(changed(&server), before);
    assert!(number("bad_frames") > 0);
    server.sql("UPDATE t SET body = repeat('z', 500) WHERE id % 3 = 1");

    // Nothing at all: the tier is given up, and its dirty pages are made again from the log.
    let given_up = (0..50).any(|_| {
        device.set_len(0).unwrap();
        server.sql("UPDATE t SET body = repeat('z', 500) WHERE id % 3 = 1");
        whole(&server);
        told(&server, "state") == "failed"
    });
    assert!(given_up, "{}", told(&server, "state"));
    assert_ne!(told(&server, "problem"), "");
    assert_eq!(changed(&server), before);
    let said = fs::read_to_string(&log).unwrap();
    assert!(said.contains("a frame of the flash tier") && said.contains("the flash tier is off until"), "{said}");

    // A device in its place, and the end of the server's process: nothing is missing.
    server.sql("ALTER SYSTEM SET flash_tier.device = 'one'");
    assert_eq!(told(&server, "state"), "on");
    server.sql("UPDATE t SET body = repeat('y', 500) WHERE id = 1");
    whole(&server);
    server.crash();
    let server = Served::start(&db);
    whole(&server);
    let more = |said: &str| said.lines().nth(1).unwrap().parse::<u64>().unwrap();
    assert_eq!(more(&changed(&server)), more(&before) + 1);
}
