//! The rows of FROM and USING that changed rows were joined with, as far as RETURNING names their columns.
use crate::error::{from_arrow, from_datafusion};
use crate::plan::scan::arrays;
use crate::statement::run::Run;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::interleave_record_batch;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::execution::memory_pool::MemoryReservation;
use std::sync::Arc;
use terrace_engine::{Datum, Result, RowBuf, Table};

/// Rows that are put together at a time.
const ROWS: usize = 1024;

/// Of the rows that a statement has changed, in their order.
pub(crate) struct Beside {
    /// The last columns of the plan's batches.
    batches: Vec<RecordBatch>,
    /// Where each row's are: a batch, and a row of it.
    places: Vec<(usize, usize)>,
    memory: MemoryReservation,
}

impl Beside {
    /// Of changes whose plan answered these batches, in which so many columns come first.
    pub(crate) fn of(run: &Run<'_>, batches: &[RecordBatch], first: usize) -> Result<Beside> {
        let mut made = Beside { batches: vec![], places: vec![], memory: run.memory("rows beside those changed") };
        batches.iter().try_for_each(|batch| made.add(batch, first))?;
        Ok(made)
    }

    fn add(&mut self, batch: &RecordBatch, first: usize) -> Result<()> {
        let columns: Vec<usize> = (first..batch.num_columns()).collect();
        self.batches.push(batch.project(&columns).map_err(from_arrow)?);
        Ok(())
    }

    /// The next row was changed as that row of that batch says.
    pub(crate) fn push(&mut self, batch: usize, row: usize) -> Result<()> {
        self.memory.try_grow(size_of::<(usize, usize)>()).map_err(from_datafusion)?;
        self.places.push((batch, row));
        Ok(())
    }

    /// The next row was changed as the one row says that was evaluated again.
    pub(crate) fn push_again(&mut self, batch: &RecordBatch, first: usize) -> Result<()> {
        self.memory.try_grow(batch.get_array_memory_size()).map_err(from_datafusion)?;
        self.add(batch, first)?;
        self.push(self.batches.len() - 1, 0)
    }

    /// The rows as they are now, each with what stood beside it.
    pub(crate) fn given(&self, table: &Arc<Table>, rows: &[Vec<Datum>]) -> Result<Vec<RecordBatch>> {
        assert_eq!(rows.len(), self.places.len(), "each row that was changed stood beside something");
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        let whole = |(rows, places): (&[Vec<Datum>], &[(usize, usize)])| {
            let rows = rows.iter().map(|row| RowBuf::encode(table, row)).collect::<Result<Vec<RowBuf>>>()?;
            let mut columns = arrays(table, &rows);
            if batches.iter().any(|batch| batch.num_columns() > 0) {
                let beside = interleave_record_batch(&batches, places).map_err(from_arrow)?;
                columns.extend(beside.columns().iter().cloned());
            }
            let size = columns.iter().map(|column| column.get_array_memory_size()).sum();
            self.memory.try_grow(size).map_err(from_datafusion)?;
            let field = |column: &ArrayRef| Field::new("", column.data_type().clone(), true);
            let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<Field>>()));
            let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
            RecordBatch::try_new_with_options(schema, columns, &options).map_err(from_arrow)
        };
        rows.chunks(ROWS).zip(self.places.chunks(ROWS)).map(whole).collect()
    }
}
