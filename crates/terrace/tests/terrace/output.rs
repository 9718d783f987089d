//! A server whose output goes nowhere serves, and closes its database.

use std::fs::OpenOptions;
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
