//! Bytes that no client means: sessions cut, changed and put together at random. The server answers or closes, and
//! serves on.
//!
//! `TERRACE_FUZZ_SEED` and `TERRACE_FUZZ_RUNS` repeat or prolong a run; a failure names its seed.

use crate::common::raw::*;
use crate::common::*;
use rand::prelude::*;
use rand_chacha::ChaCha8Rng;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn openings() -> Vec<Vec<u8>> {
    let startup: &[u8] = b"\0\x03\0\0user\0terrace\0database\0terrace\0\0";
    let packet = |body: &[u8]| [&(body.len() as u32 + 4).to_be_bytes(), body].concat();
    vec![
        packet(startup),
        packet(startup),
        packet(startup),
        packet(&80877103u32.to_be_bytes()),
        packet(b"\x04\xd2\x16\x2e\0\0\0\x01\0\0\0\x02"),
    ]
}

fn parts() -> Vec<Vec<u8>> {
    vec![
        packet(b'Q', b"SELECT 1, 'x', NULL\0"),
        packet(b'Q', b"BEGIN; SELECT * FROM generate_series(1, 3); COMMIT\0"),
        packet(b'Q', b"COPY f (a) FROM STDIN\0"),
        packet(b'Q', b"COPY f TO STDOUT CSV\0"),
        packet(b'd', b"1\n2\n"),
        packet(b'd', b"\\N\tx\r\n\\."),
        packet(b'c', b""),
        packet(b'f', b"why\0"),
        packet(b'P', b"s\0SELECT $1::int + 1\0\0\x01\0\0\0\x17"),
        packet(b'P', b"\0SELECT * FROM generate_series(1, 9)\0\0\0"),
        packet(b'B', b"p\0s\0\0\x01\0\x01\0\x01\0\0\0\x04\0\0\0\x05\0\x01\0\x01"),
        packet(b'B', b"\0\0\0\0\0\0\0\0"),
        packet(b'D', b"Ss\0"),
        packet(b'D', b"P\0"),
        packet(b'E', b"p\0\0\0\0\0"),
        packet(b'E', b"\0\0\0\0\x02"),
        packet(b'C', b"Pp\0"),
        packet(b'H', b""),
        packet(b'S', b""),
        packet(b'p', b"SCRAM-SHA-256\0\0\0\0\x08n,,n=,r=x"),
        packet(b'F', b"\0\0\0\x01\0\0\0\0\0\0"),
        packet(b'X', b""),
    ]
}

fn conversation(rng: &mut ChaCha8Rng) -> Vec<u8> {
    let (openings, parts) = (openings(), parts());
    let mut bytes = openings.choose(rng).unwrap().clone();
    let opening = bytes.len();
    for _ in 0..rng.random_range(0..12) {
        bytes.extend(parts.choose(rng).unwrap());
    }
    // Mostly what comes after the opening: a broken opening ends at once.
    let from = if rng.random_bool(0.8) { opening } else { 0 };
    for _ in 0..rng.random_range(0..4) {
        if bytes.len() <= from {
            break;
        }
        let at = rng.random_range(from..bytes.len());
        match rng.random_range(0..4) {
            0 => bytes[at] = rng.random(),
            1 => bytes[at] ^= 1 << rng.random_range(0..8),
            2 => drop(bytes.remove(at)),
            _ => bytes.insert(at, rng.random()),
        }
    }
    if rng.random_bool(0.2) {
        bytes.truncate(rng.random_range(0..=bytes.len()));
    }
    bytes
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(otherwise)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_conversations_break_nothing() {
    let (seed, runs) = (number("TERRACE_FUZZ_SEED", 1), number("TERRACE_FUZZ_RUNS", 400));
    let server = Server::start().await;
    server.client().await.batch_execute("CREATE TABLE f (a int)").await.unwrap();
    for run in seed..seed + runs {
        let bytes = conversation(&mut ChaCha8Rng::seed_from_u64(run));
        let mut raw = TcpStream::connect(server.address).await.unwrap();
        // The server may have closed already.
        let _ = raw.write_all(&bytes).await;
        let mut answer = vec![];
        // It may rightly wait for more.
        let _ = tokio::time::timeout(Duration::from_millis(15), raw.read_to_end(&mut answer)).await;
        let _ = raw.shutdown().await;
        let closed = tokio::time::timeout(Duration::from_secs(20), raw.read_to_end(&mut answer)).await;
        assert!(closed.is_ok(), "seed {run}: the connection does not end");
        assert!(!answer.windows(5).any(|w| w == b"XX000"), "seed {run}: {}", String::from_utf8_lossy(&answer));
        if run % 50 == 0 {
            assert_eq!(soon(rows(&server.client().await, "SELECT 1")).await.unwrap(), ["1"], "seed {run}");
        }
    }
    soon(server.stop()).await.unwrap();
}
