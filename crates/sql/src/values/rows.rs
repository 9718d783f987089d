//! Rows in Arrow: structs.
//!
//! 1. A struct is of a composite type where its first field's metadata has the number of the type's definition
//!    ([`PG_ROW`]); its fields are then the attributes, in order, with their names. Metadata within a type is part of
//!    it: structs of two types, or of two definitions, are of two types for DataFusion.
//! 2. Any other struct is a row of no type (PostgreSQL's `record`), or of a table.
//! 3. Rows are compared by [`crate::functions::rows::keys`].
use super::arrays::{Arrays, is_row, items_of, row_fields};
use super::{ColumnBuilder, array_datum, engine_array, engine_type, field_of};
use crate::cast::{Castable, cast_datum, castable};
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray, StructArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, Fields};
use std::sync::Arc;
use terrace_engine::types::{CompositeType, Record, RecordView};
use terrace_engine::{DataType, Datum, EngineError, Result};

/// Arrow field metadata of the first field of a row: the number of the definition of its type.
const PG_ROW: &str = "pg_row";

pub(crate) fn fields_of(of: CompositeType) -> Fields {
    let field = |(at, (name, data_type)): (usize, (&str, DataType))| -> FieldRef {
        let field = field_of(name, data_type, true);
        if at > 0 {
            return Arc::new(field);
        }
        let mut metadata = field.metadata().clone();
        metadata.insert(PG_ROW.to_owned(), of.number().to_string());
        Arc::new(field.with_metadata(metadata))
    };
    let attributes = of.def().attributes().map(|attribute| (attribute.name.as_str(), attribute.data_type));
    attributes.enumerate().map(field).collect()
}

pub(super) fn arrow_type(of: CompositeType) -> ArrowType {
    ArrowType::Struct(fields_of(of))
}

/// The composite type of a struct's fields (invariant 1).
pub(crate) fn type_of(fields: &Fields) -> Option<CompositeType> {
    let of = CompositeType::from_number(fields.first()?.metadata().get(PG_ROW)?.parse().ok()?)?;
    (of.def().attributes().count() == fields.len()).then_some(of)
}

/// A type as a parameter or a column has it now.
pub(super) fn now(of: CompositeType, wanted: DataType) -> DataType {
    match wanted {
        DataType::Composite(now) if now.is_same(of) => wanted,
        _ => DataType::Composite(of),
    }
}

/// A column of a composite type as it grows.
pub(crate) struct RowBuilder {
    of: CompositeType,
    columns: Vec<ColumnBuilder>,
    valid: Vec<bool>,
}

impl RowBuilder {
    pub(super) fn new(of: CompositeType, rows: usize) -> RowBuilder {
        let columns = of.def().attributes().map(|attribute| ColumnBuilder::new(attribute.data_type, rows)).collect();
        RowBuilder { of, columns, valid: Vec::with_capacity(rows) }
    }

    pub(super) fn push(&mut self, record: Option<RecordView<'_>>) {
        self.valid.push(record.is_some());
        match record {
            Some(record) => {
                // The column's definition counts: the value may have been read by another one.
                let record = record.to_record().renewed(self.of);
                self.columns.iter_mut().zip(record.view().values()).for_each(|(column, value)| column.push(value));
            }
            None => self.columns.iter_mut().for_each(|column| column.push(terrace_engine::DatumRef::Null)),
        }
    }

    pub(super) fn finish(self) -> ArrayRef {
        let nulls = self.valid.contains(&false).then(|| NullBuffer::from(self.valid));
        let columns = self.columns.into_iter().map(ColumnBuilder::finish).collect();
        Arc::new(StructArray::new(fields_of(self.of), columns, nulls))
    }
}

/// A row of a composite type, which is not NULL.
pub(super) fn datum(rows: &StructArray, of: CompositeType, row: usize) -> Datum {
    let values: Vec<Datum> = rows.columns().iter().map(|column| array_datum(column, row)).collect();
    Datum::Record(Record::new(of, &values).expect("a struct's fields are of its type's attributes"))
}

/// 42846, of a row that becomes one of a composite type.
pub(crate) fn cannot_convert(of: CompositeType) -> EngineError {
    let message = format!("cannot cast type record to {}", DataType::Composite(of).base_name());
    EngineError::new("42846", message)
}

/// 42846 where a row has not so many columns as a type.
pub(crate) fn check_count(count: usize, of: CompositeType) -> Result<()> {
    match count.cmp(&of.def().attributes().count()) {
        std::cmp::Ordering::Less => Err(cannot_convert(of).with_detail("Input has too few columns.".to_owned())),
        std::cmp::Ordering::Greater => Err(cannot_convert(of).with_detail("Input has too many columns.".to_owned())),
        std::cmp::Ordering::Equal => Ok(()),
    }
}

/// Whether a row of no type may become one of a type. 42846
pub(crate) fn check_castable(fields: &Fields, of: CompositeType, least: Castable) -> Result<()> {
    check_count(fields.len(), of)?;
    for (number, (field, attribute)) in fields.iter().zip(of.def().attributes()).enumerate() {
        let fits = match (field.data_type(), attribute.data_type, engine_type(field.data_type())) {
            (ArrowType::Null, ..) => true,
            (row, DataType::Composite(of), None) if let Some(fields) = row_fields(row) => {
                check_castable(fields, of, least).is_ok()
            }
            (_, to, Some(from)) => castable(from, to) >= least,
            _ => false,
        };
        if !fits {
            let from = engine_type(field.data_type()).map_or("record", DataType::base_name);
            let to = attribute.data_type.base_name();
            let detail = format!("Cannot cast type {from} to {to} in column {}.", number + 1);
            return Err(cannot_convert(of).with_detail(detail));
        }
    }
    Ok(())
}

/// Rows of no type, or arrays of them, as values of a composite type, or arrays of it; `None`: they are no such rows.
/// The types are castable. `explicit`: as of `cast_datum`.
pub(crate) fn converted(array: &ArrayRef, to: DataType, explicit: bool) -> Result<Option<ArrayRef>> {
    match (array.data_type(), to, to.item()) {
        (row, DataType::Composite(of), _) if is_row(row) && *row != super::arrow_type(to) => {
            if let Some(DataType::Composite(from)) = engine_type(array.data_type())
                && from.is_same(of)
            {
                return Ok(None);
            }
            let rows = array.as_struct();
            check_count(rows.num_columns(), of)?;
            let mut columns = vec![];
            for (column, attribute) in rows.columns().iter().zip(of.def().attributes()) {
                columns.push(as_type(column, attribute.data_type, explicit)?);
            }
            let made = StructArray::try_new(fields_of(of), columns, rows.nulls().cloned());
            Ok(Some(Arc::new(made.map_err(crate::error::from_arrow)?)))
        }
        (given, _, Some(of @ DataType::Composite(_)))
            if let (Some(item), Some(arrays)) = (items_of(given), Arrays::of(array))
                && engine_type(item.data_type()).is_none() =>
        {
            Ok(converted(arrays.lists().values(), of, explicit)?.map(|items| arrays.with_items(items)))
        }
        _ => Ok(None),
    }
}

/// A column as values of one of the engine's types.
fn as_type(column: &ArrayRef, to: DataType, explicit: bool) -> Result<ArrayRef> {
    if let Some(made) = converted(column, to, explicit)? {
        return Ok(made);
    }
    let mut builder = ColumnBuilder::new(to, column.len());
    if column.data_type() == &ArrowType::Null {
        (0..column.len()).for_each(|_| builder.push(terrace_engine::DatumRef::Null));
        return Ok(builder.finish());
    }
    let column = engine_array(column)?;
    for row in 0..column.len() {
        builder.push(cast_datum(array_datum(&column, row), to, explicit)?.as_ref());
    }
    Ok(builder.finish())
}
