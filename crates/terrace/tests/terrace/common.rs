//! The binary as tests run it.
#![allow(dead_code, reason = "each test uses some of it")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A directory that goes with the value.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::remove_dir_all(&dir).ok();
        fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }
    pub(crate) fn db(&self) -> PathBuf {
        self.0.join("db")
    }
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
    pub(crate) fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Runs the binary to its end.
pub(crate) fn run(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_terrace"))
        .args(arguments)
        .env_remove("RUST_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that refuses its arguments reads nothing.
    child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
    child.wait_with_output().unwrap()
}

/// What the binary says, which must succeed.
#[track_caller]
pub(crate) fn good(arguments: &[&str], input: &str) -> String {
    let output = run(arguments, input);
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {out}\n{}", String::from_utf8_lossy(&output.stderr));
    out
}

/// A running server, and its address.
pub(crate) struct Served(pub(crate) Child, pub(crate) String);

impl Served {
    pub(crate) fn start(dir: &str) -> Served {
        Served::logging(dir, Stdio::inherit())
    }
    /// `log`: where its log goes.
    pub(crate) fn logging(dir: &str, log: Stdio) -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_terrace"))
            .args(["serve", dir, "--listen", "127.0.0.1:0"])
            .env_remove("RUST_LOG")
            .stderr(log)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        while !said.contains("ready on ") {
            said.clear();
            assert_ne!(lines.read_line(&mut said).unwrap(), 0, "the server ended");
        }
        let address = said.split_whitespace().nth(2).unwrap().trim_end_matches('.').to_string();
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Served(child, address)
    }
    pub(crate) fn sql(&self, sql: &str) -> String {
        good(&["shell", "--connect", &self.1, "--csv", "-c", sql], "")
    }
}

impl Served {
    /// Ends it at once, without its knowing.
    pub(crate) fn crash(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if self.0.try_wait().is_ok_and(|ended| ended.is_some()) {
            return;
        }
        // SAFETY: a system call without pointers, on a child that has not been waited for.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
        self.0.wait().ok();
    }
}
