//! What clients send, read from bytes that are not to be trusted: lengths, counts and UTF-8 are checked before use.
use crate::error::protocol;
use bytes::{Buf, Bytes, BytesMut};
use terrace_engine::{EngineError, Result};

/// A message after startup.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    Query(String),
    Parse {
        name: String,
        sql: String,
        types: Vec<u32>,
    },
    Bind {
        portal: String,
        statement: String,
        formats: Vec<i16>,
        values: Vec<Option<Bytes>>,
        result_formats: Vec<i16>,
    },
    Describe(Target),
    Execute {
        portal: String,
        max_rows: u32,
    },
    Close(Target),
    Flush,
    Sync,
    Terminate,
    /// COPY data or its end, sent where no COPY runs: ignored, as PostgreSQL does.
    CopyLeftover,
    /// The client gives up its COPY, and why; ignored where no COPY runs.
    CopyFail(String),
}

#[derive(Debug, PartialEq)]
pub(crate) enum Target {
    Statement(String),
    Portal(String),
}

/// What a connection opens with.
#[derive(Debug, PartialEq)]
pub(crate) enum Opening {
    /// A request to encrypt, with TLS or (not here) GSSAPI.
    Encrypt {
        tls: bool,
    },
    Cancel {
        pid: i32,
        secret: i32,
    },
    Startup {
        minor: u16,
        parameters: Vec<(String, String)>,
    },
}

/// Longest opening packet, as in PostgreSQL.
const MAX_OPENING: usize = 10_000;

/// One typed message's kind and body.
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) body: Bytes,
}

/// Bytes that a message may say that it has, as in PostgreSQL.
const MAX_LENGTH: usize = 0x3fff_ffff;

/// Why there is no next message.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The stream cannot be followed any further.
    Stream(EngineError),
    /// It is still in the stream.
    TooLong(Long),
}

/// A message that is longer than is allowed.
#[derive(Debug, PartialEq)]
pub(crate) struct Long {
    kind: u8,
    /// All of it.
    pub(crate) bytes: usize,
}

impl Long {
    pub(crate) fn is_extended(&self) -> bool {
        is_extended(self.kind)
    }

    pub(crate) fn error(&self, max_message: usize) -> EngineError {
        let (message, what) = match self.kind {
            b'Q' | b'P' => ("a string of statements is too long", "COPY brings in data of any size."),
            b'B' => ("the values for a statement are too long", "Send fewer or shorter values at a time."),
            b'd' => ("a message of COPY data is too long", "Send the data in several messages."),
            _ => ("a message is too long", "Send shorter ones."),
        };
        let detail = format!("The message has {} bytes.", self.bytes);
        let hint = format!("At most {max_message} bytes are taken. {what}");
        EngineError::new("54000", message).with_detail(detail).with_hint(hint)
    }
}

/// Cuts the next message off `input`; `None` until all of it has come.
pub(crate) fn next_frame(input: &mut BytesMut, max_message: usize) -> Result<Option<Frame>, Refused> {
    let Some(&[kind, a, b, c, d]) = input.first_chunk::<5>() else { return Ok(None) };
    if !b"QPBDECHSXdcfpF".contains(&kind) {
        return Err(Refused::Stream(protocol(format!("invalid frontend message type {kind}"))));
    }
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if !(4..=MAX_LENGTH).contains(&length) {
        let detail = format!("A message of {length} bytes was announced.");
        return Err(Refused::Stream(protocol("invalid message length").with_detail(detail)));
    }
    if length > max_message {
        return Err(Refused::TooLong(Long { kind, bytes: 1 + length }));
    }
    if input.len() < 1 + length {
        return Ok(None);
    }
    let mut frame = input.split_to(1 + length).freeze();
    frame.advance(5);
    Ok(Some(Frame { kind, body: frame }))
}

/// Cuts the opening packet off `input`; `None` until all of it has come.
pub(crate) fn next_opening(input: &mut BytesMut) -> Result<Option<Opening>> {
    let Some(length) = input.first_chunk::<4>().map(|l| u32::from_be_bytes(*l) as usize) else { return Ok(None) };
    if !(8..=MAX_OPENING).contains(&length) {
        return Err(protocol("invalid length of startup packet"));
    }
    if input.len() < length {
        return Ok(None);
    }
    let mut packet = Reader(input.split_to(length).freeze());
    packet.0.advance(4);
    let code = packet.u32()?;
    let opening = match (code >> 16, code & 0xffff) {
        (1234, code @ (5679 | 5680)) => Opening::Encrypt { tls: code == 5679 },
        (1234, 5678) => Opening::Cancel { pid: packet.u32()? as i32, secret: packet.u32()? as i32 },
        (3, minor) => {
            let mut parameters = vec![];
            loop {
                let name = packet.string()?;
                if name.is_empty() {
                    break Opening::Startup { minor: minor as u16, parameters };
                }
                parameters.push((name, packet.string()?));
            }
        }
        (major, minor) => {
            let message = format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0");
            return Err(EngineError::new("0A000", message));
        }
    };
    packet.end()?;
    Ok(Some(opening))
}

impl Frame {
    pub(crate) fn decode(self) -> Result<Message> {
        let mut body = Reader(self.body);
        let message = match self.kind {
            b'Q' => Message::Query(body.string()?),
            b'P' => Message::Parse { name: body.string()?, sql: body.string()?, types: body.list(Reader::u32)? },
            b'B' => Message::Bind {
                portal: body.string()?,
                statement: body.string()?,
                formats: body.list(Reader::format)?,
                values: body.list(Reader::value)?,
                result_formats: body.list(Reader::format)?,
            },
            b'D' => Message::Describe(body.target("DESCRIBE")?),
            b'E' => Message::Execute { portal: body.string()?, max_rows: body.u32()?.min(i32::MAX as u32 + 1) },
            b'C' => Message::Close(body.target("CLOSE")?),
            b'H' => Message::Flush,
            b'S' => Message::Sync,
            b'X' => Message::Terminate,
            b'd' | b'c' => return Ok(Message::CopyLeftover),
            b'f' => Message::CopyFail(body.string()?),
            b'p' => return Err(protocol("a password was sent though none was asked for")),
            b'F' => return Err(EngineError::new("0A000", "function calls by message are not supported")),
            kind => return Err(protocol(format!("invalid frontend message type {kind}"))),
        };
        body.end()?;
        Ok(message)
    }

    pub(crate) fn is_extended(&self) -> bool {
        is_extended(self.kind)
    }
}

/// Whether an error in a message of that kind makes the server skip to Sync.
fn is_extended(kind: u8) -> bool {
    b"PBDECH".contains(&kind)
}

/// Reads bytes as an opening and as messages, as far as that goes: for fuzzing.
pub fn decode_all(bytes: &[u8]) {
    let _ = next_opening(&mut BytesMut::from(bytes));
    let mut input = BytesMut::from(bytes);
    while let Ok(Some(frame)) = next_frame(&mut input, 1 << 20) {
        let _ = frame.decode();
    }
}

struct Reader(Bytes);

fn truncated() -> EngineError {
    protocol("insufficient data left in message")
}

impl Reader {
    fn take(&mut self, n: usize) -> Result<Bytes> {
        if self.0.len() < n { Err(truncated()) } else { Ok(self.0.split_to(n)) }
    }
    fn u16(&mut self) -> Result<u16> {
        self.take(2).map(|mut b| b.get_u16())
    }
    fn u32(&mut self) -> Result<u32> {
        self.take(4).map(|mut b| b.get_u32())
    }
    fn string(&mut self) -> Result<String> {
        let end = self.0.iter().position(|b| *b == 0).ok_or_else(|| protocol("invalid string in message"))?;
        let bytes = self.take(end)?;
        self.0.advance(1);
        let text = std::str::from_utf8(&bytes);
        text.map(str::to_owned).map_err(|_| EngineError::not_utf8(&bytes))
    }
    fn format(&mut self) -> Result<i16> {
        match self.u16()? {
            code @ 0..=1 => Ok(code as i16),
            code => Err(EngineError::new("22023", format!("unsupported format code: {code}"))),
        }
    }
    fn value(&mut self) -> Result<Option<Bytes>> {
        match self.u32()? as i32 {
            -1 => Ok(None),
            n => self.take(usize::try_from(n).map_err(|_| truncated())?).map(Some),
        }
    }
    /// A 16-bit count, then so many items. Nothing is allocated for items that are not there.
    fn list<T>(&mut self, item: impl Fn(&mut Reader) -> Result<T>) -> Result<Vec<T>> {
        let count = self.u16()?;
        (0..count).map(|_| item(self)).collect()
    }
    fn target(&mut self, what: &str) -> Result<Target> {
        match self.take(1)?[0] {
            b'S' => Ok(Target::Statement(self.string()?)),
            b'P' => Ok(Target::Portal(self.string()?)),
            kind => Err(protocol(format!("invalid {what} message subtype {kind}"))),
        }
    }
    fn end(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(protocol("invalid message format")) }
    }
}

#[cfg(test)]
mod tests;
