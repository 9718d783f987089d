//! `GET /metrics` as Prometheus asks for it.
use crate::common::{background, database};
use terrace_server::serve_metrics;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn get(address: std::net::SocketAddr, path: &str) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    // In two pieces, as a slow network brings it.
    socket.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n").as_bytes()).await.unwrap();
    socket.flush().await.unwrap();
    tokio::task::yield_now().await;
    socket.write_all(b"\r\n").await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scrape_gets_the_numbers() {
    let db = database().await;
    let mut session = db.session("terrace");
    let statement = session.prepare("CREATE TABLE t (id int PRIMARY KEY)", &[]).await.unwrap();
    session.execute(&statement, vec![]).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = background(serve_metrics(db, listener));
    let answer = get(address, "/metrics").await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{head}");
    for line in [
        "terrace_sessions{state=\"idle\"} 1",
        "terrace_statement_seconds_count 1",
        "terrace_transactions_total{outcome=\"committed\"} 1",
        "terrace_pool_pages{state=\"capacity\"} 4096",
    ] {
        assert!(body.lines().any(|l| l == line), "{line} is not in\n{body}");
    }
    assert!(body.contains("terrace_device_sync_seconds_count{device=\"log\",purpose=\"log\"}"), "{body}");
    // Each sample belongs to a family that was announced.
    let families: Vec<&str> = body.lines().filter_map(|l| l.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for line in body.lines().filter(|l| !l.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap_or("");
        let of = |f: &&&str| name.strip_prefix(**f).is_some_and(|r| ["", "_bucket", "_sum", "_count"].contains(&r));
        assert!(families.iter().any(|f| of(&f)), "{line}");
    }
    assert!(get(address, "/").await.starts_with("HTTP/1.1 404"));
    serving.abort();
}
