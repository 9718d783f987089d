//! Rows on their way to the client.
use crate::connection::{FLUSH_AT, Wire};
use crate::encode::{columns, data_row};
use crate::error::Failure;
use crate::large::{is_large, send_row};
use crate::types::{self, row_description};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use futures::StreamExt;
use futures::stream::BoxStream;
use pgwire::messages::data::RowDescription;
use std::pin::pin;
use terrace_engine::Result;
use terrace_env::{Env, yield_now};
use terrace_sql::Notices;

/// A running query: its stream, and the batch that was begun.
pub(crate) struct Rows {
    schema: SchemaRef,
    stream: BoxStream<'static, Result<RecordBatch>>,
    /// What the query's functions say.
    notices: Notices,
    wires: Vec<types::Wire>,
    binary: Vec<bool>,
    /// A batch and how many of its rows were sent.
    begun: Option<(RecordBatch, usize)>,
    env: Env,
}

/// Bytes of a column that are given back at length.
const HANDED_OVER: usize = 1 << 20;

/// Times that output is flushed before others have the thread.
const FLUSHES: usize = 8;

pub(crate) struct Sent {
    pub(crate) count: u64,
    /// Rows (perhaps none) are still to come.
    pub(crate) suspended: bool,
}

impl Rows {
    /// `binary(i)`: whether column i goes in binary.
    pub(crate) fn new(
        env: &Env,
        schema: SchemaRef,
        stream: BoxStream<'static, Result<RecordBatch>>,
        notices: &Notices,
        binary: impl Fn(usize) -> bool,
    ) -> Rows {
        let wires = schema.fields().iter().map(|f| types::wire(f)).collect();
        let binary = (0..schema.fields().len()).map(binary).collect();
        Rows { schema, stream, notices: notices.clone(), wires, binary, begun: None, env: env.clone() }
    }

    pub(crate) fn description(&self) -> RowDescription {
        row_description(&self.schema, |i| self.binary[i])
    }

    /// Passes over rows, at most so many.
    pub(crate) async fn pass(&mut self, wire: &mut Wire, limit: usize) -> Result<Sent, Failure> {
        let mut count = 0;
        while count < limit {
            let (batch, from) = match self.begun.take() {
                Some(begun) => begun,
                None => match wire.watch(self.stream.next()).await?.transpose()? {
                    Some(batch) => (batch, 0),
                    None => return Ok(Sent { count: count as u64, suspended: false }),
                },
            };
            let passed = (batch.num_rows() - from).min(limit - count);
            count += passed;
            self.begun = (from + passed < batch.num_rows()).then_some((batch, from + passed));
        }
        Ok(Sent { count: count as u64, suspended: true })
    }

    /// Sends up to `limit` rows; waits for the client where it is slower than the query.
    pub(crate) async fn send(&mut self, wire: &mut Wire, limit: usize) -> Result<Sent, Failure> {
        let (mut count, mut flushes) = (0, 0usize);
        loop {
            if self.begun.is_none() {
                let next = wire.watch(self.stream.next()).await?.transpose()?;
                wire.notices(&self.notices.take());
                match next {
                    Some(batch) => self.begun = Some((batch, 0)),
                    None => return Ok(Sent { count: count as u64, suspended: false }),
                }
            }
            let Some((batch, from)) = &mut self.begun else { unreachable!("a batch was just begun") };
            let columns = columns(batch, &self.wires, &self.binary)?;
            let until = batch.num_rows().min(from.saturating_add(limit - count));
            while *from < until {
                if is_large(&columns, *from) {
                    self.env.run_long(pin!(send_row(wire, &columns, *from))).await?;
                } else {
                    data_row(&mut wire.output, &columns, *from)?;
                }
                *from += 1;
                count += 1;
                if wire.output.len() >= FLUSH_AT {
                    wire.flush().await?;
                    flushes += 1;
                    if flushes.is_multiple_of(FLUSHES) {
                        yield_now().await;
                    }
                }
            }
            if *from == batch.num_rows() {
                let sent = self.begun.take();
                if columns.iter().any(|column| column.holds() >= HANDED_OVER) {
                    // Memory goes back to the system page by page.
                    self.env.run_long(pin!(async { drop((columns, sent)) })).await;
                }
            }
            if count == limit {
                return Ok(Sent { count: count as u64, suspended: true });
            }
        }
    }
}
