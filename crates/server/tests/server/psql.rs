//! psql's own commands against the server: each script in `psql/` must print exactly its `.out` file. With
//! `TERRACE_BLESS=directory` set, what was printed is written there instead, to be looked at and copied.
use crate::common::{Server, soon};
use std::process::{Command, Stdio};

/// Runs psql (15 or newer, from PATH) on a script; answers what it printed, errors where they happened.
async fn psql(server: &Server, script: &'static str) -> String {
    let port = server.address.port().to_string();
    let run = move || {
        // Standard error goes into standard output, where it happened.
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("psql -X -q -h 127.0.0.1 -p {port} -U terrace -d terrace -v ON_ERROR_STOP=0 2>&1")]);
        shell.env("PSQLRC", "/dev/null").env("LC_ALL", "C.UTF-8").env("PAGER", "cat");
        let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
        use std::io::Write;
        child.stdin.take().expect("it is piped").write_all(script.as_bytes()).expect("psql reads its script");
        let output = child.wait_with_output().expect("psql ends");
        String::from_utf8(output.stdout).expect("psql prints UTF-8")
    };
    #[expect(clippy::disallowed_methods, reason = "tests run on tokio")]
    soon(tokio::task::spawn_blocking(run)).await.expect("psql is installed")
}

/// Where there is no psql (it is not part of a Rust toolchain) these tests say so and pass; the project's CI installs
/// it.
fn psql_is_missing() -> bool {
    let missing = Command::new("psql").arg("--version").output().is_err();
    if missing {
        eprintln!("psql is not in PATH: its commands are not tested");
    }
    missing
}

fn compare(name: &str, printed: &str, wanted: &str) {
    if let Ok(directory) = std::env::var("TERRACE_BLESS") {
        #[expect(clippy::disallowed_methods, reason = "writes what a person then looks at")]
        std::fs::write(format!("{directory}/{name}.out"), printed).expect("a directory to write to");
        return;
    }
    let first = printed.lines().zip(wanted.lines()).position(|(p, w)| p != w);
    assert!(
        printed == wanted,
        "{name}.out differs, first in line {:?}; psql printed:\n{printed}",
        first.map(|i| i + 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn describe() {
    if psql_is_missing() {
        return;
    }
    let server = Server::start().await;
    let printed = psql(&server, include_str!("psql/describe.sql")).await;
    compare("describe", &printed, include_str!("psql/describe.out"));
}

#[tokio::test(flavor = "multi_thread")]
async fn session() {
    if psql_is_missing() {
        return;
    }
    let server = Server::start().await;
    let printed = psql(&server, include_str!("psql/session.sql")).await;
    compare("session", &printed, include_str!("psql/session.out"));
}
