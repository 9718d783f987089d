//! Rows with large values, which go to the client in pieces: a row of half a gigabyte is never copied as a whole.
use crate::connection::{FLUSH_AT, Wire};
use crate::encode::{Column, Large};
use crate::error::Failure;
use bytes::{BufMut, BytesMut};
use terrace_engine::EngineError;

/// Bytes of values from which on a row is large.
const LARGE: usize = 256 << 10;

/// Bytes of the longest message: what clients take, which is what PostgreSQL sends.
pub(crate) const LONGEST: usize = 0x3fff_ffff;

pub(crate) fn is_large(columns: &[Column], row: usize) -> bool {
    columns.iter().map(|column| column.bytes(row)).sum::<usize>() >= LARGE
}

/// 54000 where a message would be longer than one may be.
pub(crate) fn check_length(bytes: usize) -> Result<(), EngineError> {
    if bytes <= LONGEST {
        return Ok(());
    }
    let message = format!("a row of {bytes} bytes is too long to be sent");
    Err(EngineError::new("54000", message)
        .with_hint(format!("At most {LONGEST} bytes are; ask for parts of its values.")))
}

/// A value, written already or to be written in pieces.
enum Field<'a> {
    /// With its length before it.
    Written(BytesMut),
    Large(Large<'a>),
}

/// Sends one DataRow.
pub(crate) async fn send_row(wire: &mut Wire, columns: &[Column], row: usize) -> Result<(), Failure> {
    let mut fields = vec![];
    for column in columns {
        fields.push(match column.large(row) {
            Some(large) => Field::Large(large),
            None => {
                let mut out = BytesMut::new();
                column.field(&mut out, row)?;
                Field::Written(out)
            }
        });
    }
    let length = |field: &Field<'_>| match field {
        Field::Written(out) => out.len(),
        Field::Large(large) => 4 + large.length(),
    };
    let total = 4 + 2 + fields.iter().map(length).sum::<usize>();
    check_length(total)?;
    wire.output.put_u8(b'D');
    wire.output.put_u32(total as u32);
    wire.output.put_u16(columns.len() as u16);
    for field in &fields {
        match field {
            Field::Written(out) => wire.output.put_slice(out),
            Field::Large(large) => {
                wire.output.put_u32(large.length() as u32);
                for piece in large.pieces(FLUSH_AT) {
                    piece.write(&mut wire.output);
                    if wire.output.len() >= FLUSH_AT {
                        wire.flush().await?;
                    }
                }
            }
        }
        if wire.output.len() >= FLUSH_AT {
            wire.flush().await?;
        }
    }
    Ok(())
}
