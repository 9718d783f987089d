//! `LIKE t` in CREATE TABLE: what is copied is written as SQL, and read as if it stood there.
//!
//! 1. Columns are copied with their types and NOT NULL; defaults, CHECK constraints, and keys with indexes where they
//!    are asked for. Nothing connects the two tables afterwards.
//! 2. Comments are not copied: where there are some, they are refused (0A000).
//! 3. A default that numbers rows is not copied (0A000): the sequence would be dropped with either table.
use crate::error::{no_table, unsupported};
use crate::parse::identity::Identity;
use crate::parse::qualified::shown_type;
use crate::parse::sequence_calls::sequence_of;
use crate::parse::{self, relation};
use crate::pgcatalog::{constraint_definition, type_with_digits};
use crate::statement::target::Target;
use crate::values::{is_sequence, live_columns};
use std::sync::Arc;
use terrace_engine::catalog::extras::Extras;
use terrace_engine::{Catalog, ColumnDef, DataType, EngineError, Index, Placing, Result, Table};
use terrace_grammar::quoted;
use terrace_grammar::statement::{CreateIndex, CreateTable, LikeOption, Statement, TableLike};
use terrace_storage::ObjectId;

/// The statement without LIKE, and the indexes that are made beside the table's keys.
pub(crate) fn expand(create: &CreateTable, catalog: &Arc<Catalog>) -> Result<(CreateTable, Vec<CreateIndex>)> {
    let mut expanded = create.clone();
    let mut indexes = vec![];
    let (target, place) = (&create.name.last().name, Target::of_table(create, catalog)?);
    // From the last to the first, so that places before it stay.
    for like in std::mem::take(&mut expanded.likes).iter().rev() {
        let (text, others) = copied(like, (target, &place), catalog)?;
        let Statement::CreateTable(part) = read(&text)? else { return Err(broken(&text)) };
        let at = like.columns_before;
        expanded.columns.splice(at..at, part.columns);
        expanded.constraints.extend(part.constraints);
        for text in others {
            let Statement::CreateIndex(index) = read(&text)? else { return Err(broken(&text)) };
            indexes.push(*index);
        }
    }
    Ok((expanded, indexes))
}

fn read(text: &str) -> Result<Statement> {
    parse::statement(text)?.map(|parsed| parsed.into_statement()).ok_or_else(|| broken(text))
}

fn broken(text: &str) -> EngineError {
    EngineError::new("XX000", format!("{text} is no definition"))
}

/// CREATE TABLE of what is copied, and CREATE INDEX for each index that is no key.
fn copied(like: &TableLike, (target, place): (&str, &Target), catalog: &Arc<Catalog>) -> Result<(String, Vec<String>)> {
    let name = relation(&like.name)?;
    let takes = |option| like.including.contains(&option);
    let refuse_comments = |commented: &dyn Fn(ObjectId, u32) -> bool| {
        let copied = catalog.comments().any(|((of, position), _)| commented(of, position));
        match copied && takes(LikeOption::Comments) {
            true => Err(unsupported("LIKE that copies comments").with_hint("Add EXCLUDING COMMENTS.")),
            false => Ok(()),
        }
    };
    if let Some(view) = catalog.view(&name) {
        refuse_comments(&|of, position| of == view.oid && position > 0)?;
        let columns =
            view.columns.iter().map(|column| definition(column, (false, false), catalog)).collect::<Vec<String>>();
        return Ok((create(target, &columns), vec![]));
    }
    let table = catalog.table(&name).ok_or_else(|| no_table(catalog, &name))?;
    if is_sequence(table) {
        return Err(unsupported("LIKE of a sequence"));
    }
    refuse_comments(&|of, position| {
        (of == table.oid && position > 0) || (takes(LikeOption::Indexes) && table.index(of).is_some())
    })?;
    let refused = |column: &ColumnDef| match Identity::of(column) {
        Some(_) => takes(LikeOption::Identity),
        None => takes(LikeOption::Defaults) && sequence_of(column).is_some(),
    };
    if let Some((_, column)) = live_columns(table).find(|(_, column)| refused(column)) {
        let error = unsupported(format!("LIKE that copies the sequence of column \"{}\"", column.name));
        return Err(error.with_hint("Leave its default out, and add one."));
    }
    let with = (takes(LikeOption::Defaults), takes(LikeOption::Generated));
    let mut parts = live_columns(table).map(|(_, c)| definition(c, with, catalog)).collect::<Vec<String>>();
    if takes(LikeOption::Constraints) {
        let checks = table.checks.iter();
        parts.extend(checks.map(|check| format!("CONSTRAINT {} CHECK ({})", quoted(&check.name), check.sql)));
    }
    if let Some(index) = table.indexes.iter().find(|i| takes(LikeOption::Indexes) && !i.is_constraint() && !is_plain(i))
    {
        return Err(unsupported(format!("LIKE that copies index \"{}\"", index.name)));
    }
    let schema = match place.placing {
        Placing::Temporary(_) => "pg_temp".to_owned(),
        Placing::In(space) => parse::numbered(space),
    };
    let on = format!("{schema}.{}", quoted(target));
    let mut others = vec![];
    for index in table.indexes.iter().filter(|_| takes(LikeOption::Indexes)) {
        let unique = if index.unique { "UNIQUE " } else { "" };
        match index.is_constraint() {
            true => parts.push(constraint_definition(table, index)),
            false => others.push(format!("CREATE {unique}INDEX ON {on} {}", columns(table, index))),
        }
    }
    Ok((create(target, &parts), others))
}

fn create(target: &str, parts: &[String]) -> String {
    format!("CREATE TABLE {} ({})", quoted(target), parts.join(", "))
}

/// Names of what is in schemas have them; those in the catalogue's texts stay as they are.
fn definition(column: &ColumnDef, (with_default, with_generated): (bool, bool), catalog: &Arc<Catalog>) -> String {
    let said = catalog.without_path();
    let not_null = if column.not_null { " NOT NULL" } else { "" };
    let default = column
        .default_sql
        .as_ref()
        .filter(|_| with_default && Identity::of(column).is_none())
        .map(|sql| format!(" DEFAULT {sql}"));
    let generated = column.generated.as_ref().filter(|_| with_generated);
    let generated = generated.map(|sql| format!(" GENERATED ALWAYS AS ({sql}) STORED"));
    let default = default.or(generated);
    let data_type = match &column.domain {
        Some(domain) => shown_type(domain.oid, (domain.space, &domain.name), &said),
        None if let Some(shown) = own_name(column.data_type, &said) => shown,
        None => type_with_digits(column.data_type, column.digits),
    };
    format!("{} {data_type}{not_null}{}", quoted(&column.name), default.unwrap_or_default())
}

/// A type that a user made, or the type of its arrays.
fn own_name(of: DataType, catalog: &Catalog) -> Option<String> {
    let (single, brackets) = of.item().map_or((of, ""), |item| (item, "[]"));
    let own = single.own()?;
    let space = catalog.space_of_type(own.oid)?;
    Some(format!("{}{brackets}", shown_type(own.oid, (space, own.name), catalog)))
}

/// Whether an index is its columns, and nothing else.
fn is_plain(index: &Index) -> bool {
    index.extras.as_ref().is_none_or(|extras| **extras == Extras::plain(index.columns.len()))
}

/// The columns of an index, in parentheses.
fn columns(table: &Table, index: &Index) -> String {
    let names: Vec<String> = index.columns.iter().map(|at| quoted(&table.columns[*at].name)).collect();
    format!("({})", names.join(", "))
}
