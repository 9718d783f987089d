//! The protocol in bytes.
use super::{Server, soon};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub fn packet(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut p = vec![kind];
    p.extend((body.len() as u32 + 4).to_be_bytes());
    p.extend(body);
    p
}

pub async fn startup(server: &Server, body: &[u8]) -> TcpStream {
    let mut raw = TcpStream::connect(server.address).await.unwrap();
    raw.write_all(&[&(body.len() as u32 + 4).to_be_bytes(), body].concat()).await.unwrap();
    raw
}

/// A raw session that is ready for a query.
pub async fn session(server: &Server) -> TcpStream {
    let mut raw = startup(server, b"\0\x03\0\0user\0terrace\0database\0terrace\0\0").await;
    until_ready(&mut raw).await;
    raw
}

pub type Messages = Vec<(u8, Vec<u8>)>;

pub async fn message(raw: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let kind = raw.read_u8().await.ok()?;
    let length = raw.read_u32().await.ok()?;
    let mut body = vec![0; length as usize - 4];
    raw.read_exact(&mut body).await.ok()?;
    Some((kind, body))
}

pub async fn until_ready(raw: &mut TcpStream) -> Messages {
    let read = async {
        let mut all = vec![];
        loop {
            let (kind, body) = message(raw).await.expect("the server answers");
            all.push((kind, body));
            if kind == b'Z' {
                return all;
            }
        }
    };
    soon(read).await
}

/// Everything up to the end of the connection.
pub async fn messages(raw: &mut TcpStream) -> Messages {
    let read = async {
        let mut all = vec![];
        while let Some(m) = message(raw).await {
            all.push(m);
        }
        all
    };
    soon(read).await
}

pub fn kinds(messages: &Messages) -> String {
    messages.iter().map(|(kind, _)| *kind as char).collect()
}

/// The SQLSTATE of the first ErrorResponse.
pub fn error_state(messages: &Messages) -> Option<String> {
    let (_, body) = messages.iter().find(|(kind, _)| *kind == b'E')?;
    let field = body.split(|b| *b == 0).find(|f| f.first() == Some(&b'C'))?;
    Some(String::from_utf8_lossy(&field[1..]).into_owned())
}

pub async fn raw_send(raw: &mut TcpStream, bytes: &[u8]) {
    raw.write_all(bytes).await.unwrap();
}

pub async fn raw_query(raw: &mut TcpStream, sql: &str) {
    raw_send(raw, &packet(b'Q', &[sql.as_bytes(), b"\0"].concat())).await;
}
