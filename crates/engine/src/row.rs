//! Row codec: null bitmap, fixed-width columns, then text. A row written before a column was added is shorter: the missing
//! columns are what the table says (`ColumnDef::missing`).
use crate::catalog::Table;
use crate::error::Result;
use crate::types::{Datum, DatumRef};

/// An encoded row.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RowBuf(pub Vec<u8>);

/// Reads columns of an encoded row without copying.
#[derive(Clone, Copy)]
pub struct RowView<'a> {
    pub table: &'a Table,
    pub bytes: &'a [u8],
}

impl RowBuf {
    pub fn encode(_table: &Table, _row: &[Datum]) -> Result<RowBuf> {
        todo!()
    }
    pub fn view<'a>(&'a self, table: &'a Table) -> RowView<'a> {
        RowView { table, bytes: &self.0 }
    }
}

impl<'a> RowView<'a> {
    pub fn get(&self, _column: usize) -> DatumRef<'a> {
        todo!()
    }
    pub fn to_datums(&self) -> Vec<Datum> {
        todo!()
    }
}
