//! Rows on their way to the client.
use crate::connection::{FLUSH_AT, Wire};
use crate::encode::{columns, data_row};
use crate::error::Failure;
use crate::types::{self, row_description};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use futures::StreamExt;
use futures::stream::BoxStream;
use pgwire::messages::data::RowDescription;
use terrace_engine::Result;

/// A running query: its stream, and the batch that was begun.
pub(crate) struct Rows {
    schema: SchemaRef,
    stream: BoxStream<'static, Result<RecordBatch>>,
    wires: Vec<types::Wire>,
    binary: Vec<bool>,
    /// A batch and how many of its rows were sent.
    begun: Option<(RecordBatch, usize)>,
}

pub(crate) struct Sent {
    pub(crate) count: u64,
    /// Rows (perhaps none) are still to come.
    pub(crate) suspended: bool,
}

impl Rows {
    /// `binary(i)`: whether column i goes in binary.
    pub(crate) fn new(
        schema: SchemaRef,
        stream: BoxStream<'static, Result<RecordBatch>>,
        binary: impl Fn(usize) -> bool,
    ) -> Rows {
        let wires = schema.fields().iter().map(|f| types::wire(f)).collect();
        let binary = (0..schema.fields().len()).map(binary).collect();
        Rows { schema, stream, wires, binary, begun: None }
    }

    pub(crate) fn description(&self) -> RowDescription {
        row_description(&self.schema, |i| self.binary[i])
    }

    /// Sends up to `limit` rows; waits for the client where it is slower than the query.
    pub(crate) async fn send(&mut self, wire: &mut Wire, limit: usize) -> Result<Sent, Failure> {
        let mut count = 0;
        loop {
            if self.begun.is_none() {
                match wire.watch(self.stream.next()).await?.transpose()? {
                    Some(batch) => self.begun = Some((batch, 0)),
                    None => return Ok(Sent { count: count as u64, suspended: false }),
                }
            }
            let Some((batch, from)) = &mut self.begun else { unreachable!("a batch was just begun") };
            let columns = columns(batch, &self.wires, &self.binary)?;
            let until = batch.num_rows().min(from.saturating_add(limit - count));
            while *from < until {
                data_row(&mut wire.output, &columns, *from)?;
                *from += 1;
                count += 1;
                if wire.output.len() >= FLUSH_AT {
                    wire.flush().await?;
                }
            }
            if *from == batch.num_rows() {
                self.begun = None;
            }
            if count == limit {
                return Ok(Sent { count: count as u64, suspended: true });
            }
        }
    }
}
