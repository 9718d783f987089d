//! Names of columns in plans. DataFusion demands distinct names within one SELECT, PostgreSQL does not: a name is its
//! title, [`MARK`] and a number, and [`shown`] is the title.
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::datatypes::SchemaRef;
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
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}
