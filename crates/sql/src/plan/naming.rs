//! Names of columns in plans. DataFusion demands distinct names within one SELECT, PostgreSQL does not: a name is its
//! title, [`MARK`] and a number, and [`shown`] is the title. And what else a client is told of a result's columns.
use crate::values::PG_ORIGIN;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use std::sync::Arc;

/// No name a user can write contains it.
const MARK: char = '\0';

pub(crate) fn shown(name: &str) -> &str {
    name.split(MARK).next().unwrap_or(name)
}

/// A name of this title that no other has whose number differs.
pub(crate) fn numbered(title: &str, number: usize) -> String {
    debug_assert!(!title.contains(MARK), "{title:?} is a title, not a name");
    format!("{title}{MARK}{number}")
}

/// With the names that the client sees. Any column may be NULL: nothing here depends on it.
pub(crate) fn shown_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|f| f.as_ref().clone().with_name(shown(f.name())).with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Whether results look alike, of whatever tables their columns are.
pub(crate) fn are_alike(one: &Schema, other: &Schema) -> bool {
    let plain = |field: &Arc<Field>| {
        let mut metadata = field.metadata().clone();
        metadata.remove(PG_ORIGIN);
        field.as_ref().clone().with_metadata(metadata)
    };
    one.fields().iter().map(plain).eq(other.fields().iter().map(plain))
}

/// A column of a table or a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    pub(crate) relation: u32,
    /// From 1.
    pub(crate) column: i16,
}

/// Of the columns of a result, by position; none where there are fewer.
#[derive(Clone, Default, Debug)]
pub(crate) struct Origins(pub(crate) Vec<Option<Origin>>);

impl Origin {
    /// `at`: the column's position, from 0.
    pub(crate) fn of(relation: u32, at: usize) -> Option<Origin> {
        i16::try_from(at + 1).ok().map(|column| Origin { relation, column })
    }

    fn label(self, field: Field) -> Field {
        let mut metadata = field.metadata().clone();
        metadata.insert(PG_ORIGIN.to_owned(), format!("{} {}", self.relation, self.column));
        field.with_metadata(metadata)
    }
}

impl Origins {
    /// The fields of a result with their origins. Only what a client is shown has them: in plans, metadata is part of
    /// a type.
    pub(crate) fn label(&self, schema: &Schema) -> SchemaRef {
        let origins = self.0.iter().copied().chain(std::iter::repeat(None));
        let fields = schema.fields().iter().zip(origins).map(|(field, origin)| {
            let field = field.as_ref().clone();
            origin.map_or(field.clone(), |origin| origin.label(field))
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Rows whose schema has the origins.
    pub(crate) fn on(&self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        match self.0.iter().any(Option::is_some) {
            true => Box::pin(RecordBatchStreamAdapter::new(self.label(&rows.schema()), rows)),
            false => rows,
        }
    }
}
