//! Roles, passwords and TLS.

use crate::common::raw::*;
use crate::common::*;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use terrace_server::{Auth, Limits, Tls, TlsError};
use terrace_sql::{Outcome, SqlDatabase};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

async fn run(db: &SqlDatabase, sql: &str) {
    let mut session = db.session("terrace");
    let statement = session.prepare(sql, &[]).await.unwrap();
    let done = session.execute(&statement, vec![]).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    assert!(matches!(done, Outcome::Command { .. }), "{sql}");
}

async fn guarded() -> Server {
    let db = database().await;
    run(&db, "ALTER ROLE terrace PASSWORD 'sésame'").await;
    Server::of(db, Limits { auth: Auth::Password, ..Limits::default() }).await
}

#[tokio::test]
async fn passwords_are_asked_for() {
    let server = guarded().await;
    let login = async |user: &str, password: &str| {
        let mut config = server.config();
        server.connect(config.user(user).password(password)).await
    };
    let admin = login("terrace", "sésame").await.unwrap();
    assert_eq!(state(login("terrace", "wrong").await.map(drop)), "28P01");
    assert_eq!(state(login("nobody", "wrong").await.map(drop)), "28P01", "no different from a wrong password");
    admin.batch_execute("CREATE USER ann WITH ENCRYPTED PASSWORD 'a'; CREATE ROLE bob PASSWORD 'b'").await.unwrap();
    admin.batch_execute("CREATE ROLE carl LOGIN SUPERUSER").await.unwrap();
    let ann = login("ann", "a").await.unwrap();
    assert_eq!(state(login("bob", "b").await.map(drop)), "28P01", "may not log in");
    assert_eq!(state(login("carl", "").await.map(drop)), "28P01", "has no password");
    assert_eq!(rows(&ann, "SELECT current_user").await.unwrap(), ["ann"]);
    let roles = "SELECT rolname, rolcanlogin, rolsuper, rolpassword FROM pg_roles WHERE rolname NOT LIKE 'pg\\_%' \
                 ORDER BY rolname";
    let expected = ["ann|t|f|********", "bob|f|f|********", "carl|t|t|********", "terrace|t|t|********"];
    assert_eq!(rows(&ann, roles).await.unwrap(), expected);
    ann.batch_execute("ALTER USER ann PASSWORD 'a2'").await.unwrap();
    assert_eq!(state(login("ann", "a").await.map(drop)), "28P01");
    login("ann", "a2").await.unwrap();
    for sql in ["CREATE ROLE x", "ALTER ROLE ann SUPERUSER", "ALTER ROLE bob PASSWORD 'x'", "DROP ROLE bob"] {
        assert_eq!(state(ann.batch_execute(sql).await), "42501", "{sql}");
    }
    for (sql, expected) in [
        ("CREATE ROLE ann", "42710"),
        ("ALTER ROLE nobody LOGIN", "42704"),
        ("DROP ROLE nobody", "42704"),
        ("DROP ROLE terrace", "55006"),
        ("ALTER ROLE terrace NOLOGIN", "0A000"),
        ("CREATE ROLE pg_x", "42939"),
        ("CREATE ROLE y CONNECTION LIMIT 3", "0A000"),
        ("CREATE ROLE y IN ROLE nobody", "42704"),
        ("GRANT SELECT ON t TO ann", "42P01"),
        ("REVOKE ann FROM nobody", "42704"),
        ("CREATE ROLE y PASSWORD 'md5d41d8cd98f00b204e9800998ecf8427e'", "0A000"),
    ] {
        assert_eq!(state(admin.batch_execute(sql).await), expected, "{sql}");
    }
    admin.batch_execute("BEGIN; DROP USER ann, bob; ROLLBACK").await.unwrap();
    login("ann", "a2").await.unwrap();
    admin.batch_execute("DROP USER ann, bob; DROP ROLE IF EXISTS nobody").await.unwrap();
    assert_eq!(state(login("ann", "a2").await.map(drop)), "28P01");
}

#[tokio::test]
async fn this_machine_is_trusted_by_default() {
    let db = database().await;
    run(&db, "CREATE ROLE ann LOGIN PASSWORD 'a'").await;
    run(&db, "CREATE ROLE bob").await;
    let server = Server::of(db, Limits::default()).await;
    let login = async |user: &str| server.connect(server.config().user(user)).await.map(drop);
    login("ann").await.unwrap();
    assert_eq!(state(login("bob").await), "28000");
    assert_eq!(state(login("nobody").await), "28000");
}

#[tokio::test]
async fn broken_exchanges_end_the_connection() {
    let server = guarded().await;
    let opening = b"\0\x03\0\0user\0terrace\0database\0terrace\0\0";
    let first = |text: &str| {
        packet(b'p', &[&b"SCRAM-SHA-256\0"[..], &(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat())
    };
    for (bytes, expected) in [
        (packet(b'Q', b"SELECT 1\0"), "08P01"),
        (packet(b'p', b"PLAIN\0\0\0\0\0"), "08P01"),
        (packet(b'p', b"SCRAM-SHA-256\0\0\0\0\xff"), "08P01"),
        (packet(b'p', &[0; 9000]), "08P01"),
        (first("p=tls-unique,,n=,r=abc"), "0A000"),
        (first("n,a=x,n=,r=abc"), "0A000"),
        (first("n,,n=,r="), "08P01"),
        (first("nonsense"), "08P01"),
        ([first("n,,n=,r=abc"), packet(b'p', b"c=biws,r=other,p=AAAA")].concat(), "08P01"),
        ([first("n,,n=,r=abc"), packet(b'p', b"\xff\xff")].concat(), "08P01"),
    ] {
        let mut raw = startup(&server, opening).await;
        raw_send(&mut raw, &bytes).await;
        let answers = messages(&mut raw).await;
        assert_eq!(error_state(&answers).as_deref(), Some(expected), "{bytes:?}");
    }
}

struct Files(PathBuf);

impl Files {
    fn new() -> Files {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("tls-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Files(dir)
    }
    fn put(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

#[tokio::test]
async fn encrypted_connections() {
    let files = Files::new();
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_string()]).unwrap();
    let (chain, key) = (files.put("cert", &cert.pem(), 0o644), files.put("key", &signing_key.serialize_pem(), 0o600));
    assert!(matches!(
        Tls::load(&files.put("open", &signing_key.serialize_pem(), 0o644), &key),
        Err(TlsError::Certificate(..))
    ));
    let open = files.put("open", &signing_key.serialize_pem(), 0o644);
    assert!(matches!(Tls::load(&chain, &open), Err(TlsError::KeyMode(_, 0o644))));
    assert!(matches!(Tls::load(&chain, &files.0.join("none")), Err(TlsError::Key(..))));
    let other = generate_simple_self_signed(["localhost".to_string()]).unwrap().signing_key.serialize_pem();
    assert!(matches!(Tls::load(&chain, &files.put("other", &other, 0o600)), Err(TlsError::Pair(_))));

    let tls = Some(Tls::load(&chain, &key).unwrap());
    let server = Server::of(database().await, Limits { tls, ..Limits::default() }).await;
    let mut raw = TcpStream::connect(server.address).await.unwrap();
    raw.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).await.unwrap();
    assert_eq!(raw.read_u8().await.unwrap(), b'S');
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let connector = TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth()));
    let mut stream = connector.connect(ServerName::try_from("localhost").unwrap(), raw).await.unwrap();
    let opening = b"\0\x03\0\0user\0terrace\0database\0terrace\0\0";
    stream.write_all(&[&(opening.len() as u32 + 4).to_be_bytes(), &opening[..]].concat()).await.unwrap();
    stream.write_all(&packet(b'Q', b"SELECT repeat('x', 100000)\0")).await.unwrap();
    stream.write_all(&packet(b'X', b"")).await.unwrap();
    stream.flush().await.unwrap();
    let mut all = vec![];
    let _ = soon(stream.read_to_end(&mut all)).await;
    assert!(all.windows(1000).any(|w| w.iter().all(|b| *b == b'x')), "rows came through");
    // Clients of this machine may do without; one that sends more before the answer may not.
    assert_eq!(rows(&server.client().await, "SELECT 1").await.unwrap(), ["1"]);
    let mut raw = TcpStream::connect(server.address).await.unwrap();
    raw.write_all(&[0, 0, 0, 8, 4, 210, 22, 47, 1, 2, 3]).await.unwrap();
    assert_eq!(raw.read_u8().await.unwrap(), b'E');
}
