//! What changes within WITH have returned, as queries beside them read it.
use crate::plan::naming::shown;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use std::sync::Arc;
use terrace_grammar::statement::At;

pub(crate) struct Returned {
    /// Where the change's name stands.
    pub(crate) at: At,
    /// `None`: it has no RETURNING.
    pub(crate) titles: Option<Vec<String>>,
    /// With columns that are numbered, and where they come from.
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

impl Returned {
    /// Of columns as they are described, without rows.
    pub(crate) fn described(at: At, columns: Option<&Schema>) -> Returned {
        let fields = columns.iter().flat_map(|schema| schema.fields().iter());
        let titles = fields.clone().map(|field| shown(field.name()).to_owned()).collect();
        let numbered = |(number, field): (usize, &Arc<Field>)| {
            field.as_ref().clone().with_name(number.to_string()).with_nullable(true)
        };
        let metadata = columns.map(|columns| columns.metadata().clone()).unwrap_or_default();
        let fields = fields.enumerate().map(numbered).collect::<Vec<Field>>();
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        Returned { at, titles: columns.map(|_| titles), schema, batches: vec![] }
    }
}
