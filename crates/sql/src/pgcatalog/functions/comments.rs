//! What COMMENT has said, as functions answer it.
use super::Call;
use crate::pgcatalog::relations::{constraint_comments, schema_comment};
use datafusion::error::Result;
use terrace_storage::ObjectId;

/// Of an object whose OID is the first argument, or of its column of that number.
fn comment(c: &Call<'_>, row: usize, position: Option<i64>) -> Result<Option<String>> {
    let position = position.and_then(|position| u32::try_from(position).ok());
    let of = c.oid(0, row)?.zip(position);
    Ok(of.and_then(|(oid, position)| c.catalog.comment((ObjectId(oid), position))).map(str::to_owned))
}

/// `col_description(oid, number)`.
pub(super) fn of_column(c: &Call<'_>, row: usize) -> Result<Option<String>> {
    Ok(comment(c, row, c.int(1, row)?)?.filter(|_| c.arguments.len() == 2))
}

/// `obj_description(oid [, catalogue])`.
pub(super) fn of_object(c: &Call<'_>, row: usize) -> Result<Option<String>> {
    let (oid, class) = (c.oid(0, row)?, c.text(1, row)?);
    match class.as_deref() {
        Some("pg_namespace") => Ok(oid.and_then(|oid| schema_comment(c.catalog, oid))),
        Some("pg_constraint") => {
            let found = constraint_comments(c.catalog).into_iter().find(|(own, _)| Some(*own) == oid);
            Ok(found.map(|(_, text)| text.to_owned()))
        }
        class => {
            let is_type = oid.is_some_and(|oid| c.catalog.space_of_type(oid).is_some());
            let of = if is_type { "pg_type" } else { "pg_class" };
            if class.is_none_or(|class| class == of) { comment(c, row, Some(0)) } else { Ok(None) }
        }
    }
}
