//! What views are made of, as functions answer it.
use super::classes::found_class;
use super::{Call, undefined_relation};
use crate::parse::qualified::is_visible;
use crate::pgcatalog::relations::{rule_oid, views};
use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use terrace_grammar::quoted;

/// `pg_get_viewdef(view [, pretty])`, of its OID or its name. What is no view has none.
pub(super) fn of_view(c: &Call<'_>, row: usize) -> Result<Option<String>> {
    let is_name = c.arguments.first().is_some_and(|array| *array.data_type() == DataType::Utf8);
    let oid = match (is_name, c.text(0, row)?) {
        (_, None) => return Ok(None),
        (true, Some(name)) => Some(found_class(c, &name)?.ok_or_else(|| undefined_relation(&name))?),
        (false, Some(_)) => c.oid(0, row)?,
    };
    let view = oid.and_then(|oid| views::by_oid(c.catalog, oid));
    let pretty = match c.arguments.get(1) {
        // A number is the width that is wanted.
        Some(array) if *array.data_type() != DataType::Boolean => true,
        Some(_) => c.text(1, row)?.is_some_and(|pretty| pretty.starts_with('t')),
        None => false,
    };
    Ok(view.map(|view| views::definition(c.catalog, view, pretty)))
}

/// `pg_get_ruledef(rule [, pretty])`: each view has a rule, and there are no others.
pub(super) fn definition(c: &Call<'_>, row: usize) -> Result<Option<String>> {
    let Some(oid) = c.oid(0, row)? else { return Ok(None) };
    let pretty = c.arguments.len() > 1 && c.text(1, row)?.is_some_and(|pretty| pretty.starts_with('t'));
    let Some(view) = c.catalog.views().find(|view| rule_oid(view) == oid) else { return Ok(None) };
    let schema = match pretty && is_visible(view.space, &view.name, c.catalog) {
        true => String::new(),
        false => format!("{}.", quoted(&c.catalog.space_name(view.space))),
    };
    let (name, query) = (quoted(&view.name), views::definition(c.catalog, view, pretty));
    Ok(Some(format!("CREATE RULE \"_RETURN\" AS\n    ON SELECT TO {schema}{name} DO INSTEAD {query}")))
}
