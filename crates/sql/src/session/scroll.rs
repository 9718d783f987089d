//! Cursors that go back: DECLARE ... SCROLL.
//!
//! 1. What has been read of the query is kept in memory, and counted there (53200 if it does not fit): going back reads
//!    nothing again, so a row is the same each time.
//! 2. A cursor stands before the first row (0), on a row (from 1), or behind the last.
//!
//! Source: PostgreSQL 15 documentation, FETCH.
use crate::error::{from_arrow, from_datafusion};
use datafusion::arrow::array::{RecordBatch, UInt64Array};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::execution::memory_pool::MemoryReservation;
use futures::StreamExt;
use futures::stream::BoxStream;
use terrace_engine::Result;
use terrace_grammar::statement::Direction;

pub(crate) struct Scroll {
    batches: Vec<RecordBatch>,
    /// How many rows there are up to the end of each batch.
    ends: Vec<u64>,
    /// Invariant 2.
    at: u64,
    /// All rows have been read.
    over: bool,
    memory: MemoryReservation,
}

/// What a FETCH answers: these rows, in this order.
struct Rows {
    first: u64,
    count: u64,
    backward: bool,
}

const NONE: Rows = Rows { first: 0, count: 0, backward: false };

fn one(row: u64) -> Rows {
    Rows { first: row, count: 1, backward: false }
}

type Stream = BoxStream<'static, Result<RecordBatch>>;

impl Scroll {
    pub(crate) fn new(memory: MemoryReservation) -> Scroll {
        Scroll { batches: vec![], ends: vec![], at: 0, over: false, memory }
    }

    /// Of rows that were read before, where it stands after them.
    pub(crate) fn of(batches: Vec<RecordBatch>, at: u64, over: bool, memory: MemoryReservation) -> Result<Scroll> {
        let mut scroll = Scroll { at, over, ..Scroll::new(memory) };
        batches.into_iter().try_for_each(|batch| scroll.keep(batch))?;
        Ok(scroll)
    }

    fn keep(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() > 0 {
            self.memory.try_grow(batch.get_array_memory_size()).map_err(from_datafusion)?;
            self.ends.push(self.read() + batch.num_rows() as u64);
            self.batches.push(batch);
        }
        Ok(())
    }

    fn read(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// How many rows there are; at least `wanted` have been read, or all.
    pub(crate) async fn read_to(&mut self, stream: &mut Stream, wanted: u64) -> Result<u64> {
        while !self.over && self.read() < wanted {
            match stream.next().await.transpose()? {
                Some(batch) => self.keep(batch)?,
                None => self.over = true,
            }
        }
        Ok(self.read())
    }

    /// The rows that a FETCH answers.
    pub(crate) async fn fetch(&mut self, stream: &mut Stream, direction: Direction) -> Result<Vec<RecordBatch>> {
        let rows = match direction {
            Direction::Forward(0) | Direction::Backward(0) | Direction::Relative(0) => self.here(),
            Direction::Forward(count @ 1..) => self.forward(stream, count.unsigned_abs()).await?,
            Direction::Backward(count @ ..0) => self.forward(stream, count.unsigned_abs()).await?,
            Direction::Forward(count) | Direction::Backward(count) => self.backward(count.unsigned_abs()),
            Direction::Absolute(0) => {
                self.at = 0;
                NONE
            }
            Direction::Absolute(row @ 1..) => self.to(stream, row.unsigned_abs()).await?,
            Direction::Absolute(row) => {
                let behind = self.read_to(stream, u64::MAX).await? + 1;
                self.back_to(behind.checked_sub(row.unsigned_abs()))
            }
            Direction::Relative(rows @ 1..) => {
                let row = self.at.saturating_add(rows.unsigned_abs());
                self.to(stream, row).await?
            }
            Direction::Relative(rows) => self.back_to(self.at.checked_sub(rows.unsigned_abs())),
        };
        self.answer(&rows)
    }

    /// The row that it stands on.
    fn here(&self) -> Rows {
        if (1..=self.read()).contains(&self.at) { one(self.at) } else { NONE }
    }

    async fn forward(&mut self, stream: &mut Stream, count: u64) -> Result<Rows> {
        let (first, last) = (self.at.saturating_add(1), self.at.saturating_add(count));
        let there = self.read_to(stream, last).await?;
        self.at = if last <= there { last } else { there + 1 };
        Ok(Rows { first, count: (last.min(there) + 1).saturating_sub(first), backward: false })
    }

    fn backward(&mut self, count: u64) -> Rows {
        let first = self.at.saturating_sub(count).max(1);
        let rows = Rows { first, count: self.at.saturating_sub(first), backward: true };
        self.at = self.at.saturating_sub(count);
        rows
    }

    async fn to(&mut self, stream: &mut Stream, row: u64) -> Result<Rows> {
        let there = self.read_to(stream, row).await?;
        self.at = row.min(there + 1);
        Ok(self.here())
    }

    /// `None`: before the first.
    fn back_to(&mut self, row: Option<u64>) -> Rows {
        self.at = row.unwrap_or(0);
        self.here()
    }

    fn answer(&self, rows: &Rows) -> Result<Vec<RecordBatch>> {
        let (mut first, mut left) = (rows.first, rows.count);
        let mut parts = vec![];
        while left > 0 {
            let batch = self.ends.partition_point(|end| *end < first);
            let before = self.ends[batch] - self.batches[batch].num_rows() as u64;
            let at = first - 1 - before;
            let count = left.min(self.ends[batch] - first + 1);
            parts.push(self.batches[batch].slice(at as usize, count as usize));
            (first, left) = (first + count, left - count);
        }
        match (rows.backward, parts.first()) {
            (true, Some(part)) => {
                let all = concat_batches(&part.schema(), &parts).map_err(from_arrow)?;
                let order = UInt64Array::from_iter_values((0..all.num_rows() as u64).rev());
                Ok(vec![take_record_batch(&all, &order).map_err(from_arrow)?])
            }
            _ => Ok(parts),
        }
    }
}
