//! COPY's data: from the client and to it, from a file and to one. What the data says is `terrace_sql`'s.
//!
//! 1. While data comes in, Flush and Sync are passed over and any message but data, its end and its failure is an error
//!    (08P01).
//! 2. After a COPY failed, what is left of its data is passed over (by the connection's loop).
//! 3. Waiting for data ends at a cancel, at the client's end and at the server's.
//! 4. Rows for a file are put as if they went to the client, with nothing else among them, and lose their messages'
//!    fronts on their way to the file.
use crate::connection::{FLUSH_AT, Wire, complete};
use crate::copy_file::CopyFile;
use crate::copy_parquet::ParquetFile;
use crate::decode;
use crate::encode::{Column, columns, data_row, text_field};
use crate::error::{Failure, protocol};
use crate::frontend::{Message, Refused, next_frame};
use crate::large::{check_length, is_large};
use crate::serve::Shared;
use crate::types;
use bytes::{BufMut, BytesMut};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use futures::StreamExt;
use futures::stream::BoxStream;
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::copy::{CopyDone, CopyInResponse, CopyOutResponse};
use std::pin::pin;
use terrace_engine::{EngineError, Result};
use terrace_sql::copy_binary::{HEADER, TRAILER};
use terrace_sql::observe::CopyProgress;
use terrace_sql::{CopyFormat, CopyIn};

/// Takes the data of `COPY ... FROM STDIN` and completes it.
pub(crate) async fn copy_in(shared: &Shared, wire: &mut Wire, mut copy: Box<CopyIn>) -> Result<(), Failure> {
    let columns = copy.columns();
    let format = i8::from(copy.is_binary());
    copy.reads_fields_by(decode::field);
    wire.put(Answer::CopyInResponse(CopyInResponse::new(format, columns as i16, vec![format.into(); columns])));
    wire.flush().await?;
    loop {
        let next = match next_frame(&mut wire.input, shared.limits.max_message) {
            Ok(next) => next,
            Err(Refused::TooLong(long)) => {
                wire.pass_over(long.bytes, None).await?;
                return Err(long.error(shared.limits.max_message).into());
            }
            Err(Refused::Stream(error)) => return Err(Failure::Fatal(error)),
        };
        let Some(frame) = next else {
            let cancelled = tokio::select! {
                biased;
                error = copy.cancelled() => Some(error),
                read = wire.read(None) => {
                    read?;
                    None
                }
            };
            match cancelled {
                Some(error) => return Err(error.into()),
                None => continue,
            }
        };
        match frame.kind {
            b'd' => copy.data(&frame.body).await?,
            b'c' => {
                wire.put(complete(copy.finish().await?));
                return Ok(());
            }
            b'H' | b'S' => {}
            b'f' => {
                let reason = match frame.decode()? {
                    Message::CopyFail(reason) => reason,
                    _ => unreachable!("this kind is decoded so"),
                };
                return Err(copy.fail(&reason).await.into());
            }
            kind => {
                let message = format!("unexpected message type 0x{kind:02X} during COPY from stdin");
                return Err(protocol(message).into());
            }
        }
    }
}

/// Takes the data of `COPY ... FROM` a file of the server and completes it.
pub(crate) async fn copy_from_file(wire: &mut Wire, mut copy: Box<CopyIn>) -> Result<(), Failure> {
    let path = copy.file().expect("its data lies in a file").to_owned();
    copy.reads_fields_by(decode::field);
    // A file may be a pipe, and make it wait (invariant 3).
    let mut file = unless_cancelled(&copy, wire, CopyFile::open(path)).await?;
    copy.progress().expects(file.bytes());
    loop {
        let part = unless_cancelled(&copy, wire, file.read()).await?;
        if part.is_empty() {
            wire.put(complete(copy.finish().await?));
            return Ok(());
        }
        copy.data(&part).await?;
    }
}

async fn unless_cancelled<T>(
    copy: &CopyIn,
    wire: &mut Wire,
    work: impl Future<Output = Result<T>>,
) -> Result<T, Failure> {
    let work = pin!(work);
    tokio::select! {
        biased;
        error = copy.cancelled() => Err(error.into()),
        done = wire.watch(work) => Ok(done??),
    }
}

/// `COPY ... TO`: rows go to the client, or to a file.
pub(crate) struct CopyOut<'c> {
    pub(crate) shared: &'c Shared,
    pub(crate) schema: &'c SchemaRef,
    pub(crate) format: &'c CopyFormat,
    pub(crate) file: Option<CopyFile>,
    pub(crate) progress: CopyProgress,
}

impl CopyOut<'_> {
    /// Sends all rows; how many there were.
    pub(crate) async fn send(
        mut self,
        wire: &mut Wire,
        stream: BoxStream<'static, Result<RecordBatch>>,
    ) -> Result<u64, Failure> {
        let (schema, format) = (self.schema, self.format);
        let fields = schema.fields();
        let wires: Vec<types::Wire> = fields.iter().map(|f| types::wire(f)).collect();
        let binary = format.is_binary();
        let kind = i8::from(binary || format.is_parquet());
        match self.file {
            // From here on what is put is data (invariant 4).
            Some(_) => wire.flush().await?,
            None => wire.put(Answer::CopyOutResponse(CopyOutResponse::new(
                kind,
                fields.len() as i16,
                vec![kind.into(); fields.len()],
            ))),
        }
        let count = match format.is_parquet() {
            true => self.parquet(wire, wires, stream).await?,
            false => self.rows(wire, &wires, stream).await?,
        };
        match self.file {
            Some(_) => self.flush(wire).await?,
            None => wire.put(Answer::CopyDone(CopyDone::new())),
        }
        Ok(count)
    }

    /// Sends a Parquet file.
    async fn parquet(
        &mut self,
        wire: &mut Wire,
        wires: Vec<types::Wire>,
        mut stream: BoxStream<'static, Result<RecordBatch>>,
    ) -> Result<u64, Failure> {
        let mut file = ParquetFile::begin(self.schema, wires)?;
        let mut count = 0;
        while let Some(batch) = wire.watch(stream.next()).await?.transpose()? {
            count += batch.num_rows() as u64;
            self.progress.passed(batch.num_rows() as u64, 0);
            self.pass_on(wire, file.add(&batch)?).await?;
        }
        self.pass_on(wire, file.end()?).await?;
        Ok(count)
    }

    async fn pass_on(&mut self, wire: &mut Wire, bytes: Vec<u8>) -> Result<(), Failure> {
        for part in bytes.chunks(FLUSH_AT) {
            send(wire, part);
            self.flush(wire).await?;
        }
        Ok(())
    }

    /// Sends rows in the other formats.
    async fn rows(
        &mut self,
        wire: &mut Wire,
        wires: &[types::Wire],
        mut stream: BoxStream<'static, Result<RecordBatch>>,
    ) -> Result<u64, Failure> {
        let (fields, format, binary) = (self.schema.fields(), self.format, self.format.is_binary());
        let binaries = vec![binary; fields.len()];
        // It goes before the first row, in one message: psycopg 3.1 wants it so.
        let mut header = HEADER.as_slice();
        let (mut line, mut value) = (vec![], BytesMut::new());
        if format.has_header() {
            for (i, field) in fields.iter().enumerate() {
                format.write_name(&mut line, i, fields.len(), field.name());
            }
            send_line(wire, &mut line);
        }
        let mut count = 0;
        while let Some(batch) = wire.watch(stream.next()).await?.transpose()? {
            self.progress.passed(batch.num_rows() as u64, 0);
            let columns = columns(&batch, wires, &binaries)?;
            for row in 0..batch.num_rows() {
                let mut write = async || {
                    if binary {
                        return send_row(wire, std::mem::take(&mut header), &columns, row);
                    }
                    for (i, column) in columns.iter().enumerate() {
                        value.clear();
                        let field = text_field(&mut value, column, row)?.then_some(&value[..]);
                        format.write_field(&mut line, i, columns.len(), field);
                    }
                    check_length(line.len())?;
                    send_line(wire, &mut line);
                    Ok::<(), EngineError>(())
                };
                match is_large(&columns, row) {
                    true => self.shared.env.run_long(pin!(write())).await?,
                    false => write().await?,
                }
                count += 1;
                if wire.output.len() >= FLUSH_AT {
                    self.flush(wire).await?;
                }
            }
        }
        if binary {
            send(wire, &[header, TRAILER].concat());
        }
        Ok(count)
    }

    async fn flush(&mut self, wire: &mut Wire) -> Result<(), Failure> {
        self.progress.passed(0, wire.output.len() as u64);
        let Some(file) = &mut self.file else { return wire.flush().await };
        let mut data = Vec::with_capacity(wire.output.len());
        let mut rest = &wire.output[..];
        while let Some((front, behind)) = rest.split_at_checked(5) {
            assert_eq!(front[0], b'd', "invariant 4: nothing but data goes to a file");
            let length = u32::from_be_bytes(front[1..].try_into().expect("four bytes")) as usize - 4;
            data.extend_from_slice(&behind[..length]);
            rest = &behind[length..];
        }
        wire.output.clear();
        Ok(file.write(data).await?)
    }
}

/// A row of the binary format: what a DataRow is, in a CopyData message, with `before` in front of it.
fn send_row(wire: &mut Wire, before: &[u8], columns: &[Column], row: usize) -> Result<()> {
    let start = wire.output.len();
    data_row(&mut wire.output, columns, row)?;
    if before.is_empty() {
        wire.output[start] = b'd';
        return Ok(());
    }
    // Behind the kind and the length.
    let fields = wire.output.split_off(start + 5);
    wire.output.truncate(start);
    send(wire, &[before, &fields].concat());
    Ok(())
}

fn send(wire: &mut Wire, bytes: &[u8]) {
    wire.output.put_u8(b'd');
    wire.output.put_u32(bytes.len() as u32 + 4);
    wire.output.put_slice(bytes);
}

/// One CopyData message; the line is empty afterwards.
fn send_line(wire: &mut Wire, line: &mut Vec<u8>) {
    line.push(b'\n');
    wire.output.put_u8(b'd');
    wire.output.put_u32(line.len() as u32 + 4);
    wire.output.put_slice(line);
    line.clear();
}
