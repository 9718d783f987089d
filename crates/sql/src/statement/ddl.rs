//! CREATE and DROP of tables and indexes: from the AST to the engine's specifications.
//!
//! A statement is taken apart and compared with what was understood of it: whatever else it says is refused, never
//! ignored.
use crate::error::{undefined_column, undefined_table, unsupported};
use crate::parse::types::column_type;
use crate::parse::{fold, object_name};
use datafusion::sql::sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use datafusion::sql::sqlparser::ast::{
    ColumnDef as SqlColumn, ColumnOption, CreateIndex, CreateTable, CreateTableOptions, Expr, Ident, IndexColumn,
    IndexType, SqlOption, TableConstraint,
};
use std::sync::Arc;
use terrace_engine::{Catalog, ColumnDef, Datum, EngineError, Index, IndexSpec, Result, Table, TableSpec};

/// PostgreSQL's limit on the bytes of an identifier.
const NAME_MAX: usize = 63;

/// What a table's definition says about keys, before the indexes are named.
pub(crate) struct Key {
    pub(crate) name: Option<String>,
    pub(crate) columns: Vec<usize>,
    pub(crate) primary: bool,
}

/// Builds the specification. Defaults are text; the caller has checked that they can be evaluated.
pub(crate) fn table_spec(create: &CreateTable, catalog: &Catalog) -> Result<TableSpec> {
    let understood = CreateTableBuilder::new(create.name.clone())
        .columns(create.columns.clone())
        .constraints(create.constraints.clone())
        .if_not_exists(create.if_not_exists)
        .table_options(create.table_options.clone())
        .build();
    if understood != *create {
        let clause = match () {
            _ if create.temporary => "CREATE TEMPORARY TABLE",
            _ if create.query.is_some() => "CREATE TABLE AS",
            _ if create.like.is_some() => "CREATE TABLE LIKE",
            _ if create.inherits.is_some() => "INHERITS",
            _ if create.partition_by.is_some() || create.partition_of.is_some() => "PARTITION BY",
            _ => "an option of this CREATE TABLE",
        };
        return Err(unsupported(clause));
    }
    let name = object_name(&create.name)?;
    check_name(&name)?;
    let mut columns: Vec<ColumnDef> = vec![];
    let mut keys: Vec<Key> = vec![];
    for column in &create.columns {
        let definition = column_def(column, columns.len(), &mut keys)?;
        if columns.iter().any(|c| c.name == definition.name) {
            return Err(EngineError::new("42701", format!("column \"{}\" specified more than once", definition.name)));
        }
        columns.push(definition);
    }
    // `checks` looks at the others.
    for constraint in create.constraints.iter().filter(|c| !matches!(c, TableConstraint::Check(_))) {
        keys.push(table_key(constraint, &columns)?);
    }
    if keys.iter().filter(|k| k.primary).count() > 1 {
        return Err(EngineError::new("42P16", format!("multiple primary keys for table \"{name}\" are not allowed")));
    }
    for key in keys.iter().filter(|k| k.primary) {
        key.columns.iter().for_each(|c| columns[*c].not_null = true);
    }
    keys.sort_by_key(|k| !k.primary);
    let mut indexes: Vec<IndexSpec> = vec![];
    for key in keys {
        let taken = |n: &str| n == name || relation_exists(catalog, n) || indexes.iter().any(|i| i.name == n);
        let index_name = match key.name {
            Some(given) if taken(&given) => return Err(duplicate(&given)),
            Some(given) => given,
            None if key.primary => choose_name(&[&name], "pkey", &taken),
            None => {
                let parts: Vec<&str> =
                    [name.as_str()].into_iter().chain(key.columns.iter().map(|c| columns[*c].name.as_str())).collect();
                choose_name(&parts, "key", &taken)
            }
        };
        check_name(&index_name)?;
        indexes.push(IndexSpec { name: index_name, columns: key.columns, unique: true, primary: key.primary });
    }
    Ok(TableSpec { name, columns, indexes })
}

/// `WITH (fillfactor = n)`: pages are always filled, which is said where anything else is asked for.
pub(crate) fn storage_options(options: &CreateTableOptions) -> Result<Vec<EngineError>> {
    let CreateTableOptions::With(options) = options else {
        return match options {
            CreateTableOptions::None => Ok(vec![]),
            _ => Err(unsupported("an option of this CREATE TABLE")),
        };
    };
    let mut notices = vec![];
    for option in options {
        let SqlOption::KeyValue { key, value } = option else {
            return Err(unsupported(format!("the option {option}")));
        };
        if fold(key) != "fillfactor" {
            return Err(unsupported(format!("the storage parameter \"{}\"", fold(key))));
        }
        match value.to_string().trim_matches('\'').parse::<u32>() {
            Ok(100) => {}
            Ok(10..100) => notices.push(EngineError::new("01000", "pages are always filled: fillfactor has no effect")),
            _ => {
                let message = format!("value {value} out of bounds for option \"fillfactor\"");
                let mut error = EngineError::new("22023", message);
                error.detail = Some("Valid values are between \"10\" and \"100\".".into());
                return Err(error);
            }
        }
    }
    Ok(notices)
}

pub(crate) fn check_name(name: &str) -> Result<()> {
    match name {
        "" => Err(EngineError::new("42601", "zero-length delimited identifier")),
        long if long.len() > NAME_MAX => {
            Err(EngineError::new("42622", format!("identifier \"{long}\" is longer than {NAME_MAX} bytes")))
        }
        system if system.starts_with("pg_") => {
            Err(EngineError::new("42939", format!("unacceptable name \"{system}\": the prefix \"pg_\" is reserved")))
        }
        _ => Ok(()),
    }
}

pub(crate) fn column_def(column: &SqlColumn, at: usize, keys: &mut Vec<Key>) -> Result<ColumnDef> {
    let name = fold(&column.name);
    match name.as_str() {
        "" => return Err(EngineError::new("42601", "zero-length delimited identifier")),
        long if long.len() > NAME_MAX => {
            return Err(EngineError::new("42622", format!("identifier \"{long}\" is longer than {NAME_MAX} bytes")));
        }
        _ => {}
    }
    let mut definition = ColumnDef {
        name,
        data_type: column_type(&column.data_type)?,
        not_null: false,
        default_sql: None,
        missing: Datum::Null,
        dropped: false,
    };
    let mut null = false;
    for option in &column.options {
        let constraint = option.name.as_ref().map(fold);
        match &option.option {
            ColumnOption::Null => null = true,
            ColumnOption::NotNull => definition.not_null = true,
            ColumnOption::Default(expr) => definition.default_sql = Some(crate::parse::stored::text_of(expr)?),
            ColumnOption::PrimaryKey(key) if key.characteristics.is_none() && key.index_options.is_empty() => {
                keys.push(Key { name: constraint, columns: vec![at], primary: true });
            }
            ColumnOption::Unique(key)
                if key.characteristics.is_none()
                    && key.index_options.is_empty()
                    && !key.nulls_distinct.to_string().contains("NOT") =>
            {
                keys.push(Key { name: constraint, columns: vec![at], primary: false });
            }
            // `checks` looks at it.
            ColumnOption::Check(_) => {}
            ColumnOption::ForeignKey(_) => return Err(unsupported("REFERENCES")),
            ColumnOption::Generated { .. } => return Err(unsupported("GENERATED")),
            ColumnOption::Collation(_) => return Err(unsupported("COLLATE")),
            other => return Err(unsupported(format!("the column option {other}"))),
        }
    }
    if null && definition.not_null {
        let message = format!("conflicting NULL/NOT NULL declarations for column \"{}\"", definition.name);
        return Err(EngineError::new("42601", message));
    }
    Ok(definition)
}

pub(crate) fn table_key(constraint: &TableConstraint, columns: &[ColumnDef]) -> Result<Key> {
    let positions = |key: &[IndexColumn]| -> Result<Vec<usize>> {
        key.iter()
            .map(|c| {
                let ident = plain_column(c)?;
                position(columns, &fold(ident)).ok_or_else(|| {
                    EngineError::new("42703", format!("column \"{}\" named in key does not exist", fold(ident)))
                })
            })
            .collect::<Result<Vec<usize>>>()
            .and_then(distinct)
    };
    let index_name = match constraint {
        TableConstraint::PrimaryKey(key) => key.index_name.as_ref(),
        TableConstraint::Unique(key) => key.index_name.as_ref(),
        _ => None,
    };
    if let Some(name) = index_name {
        return Err(EngineError::new("42601", format!("syntax error at or near \"{name}\"")));
    }
    match constraint {
        TableConstraint::PrimaryKey(key)
            if key.characteristics.is_none() && key.index_options.is_empty() && key.index_type.is_none() =>
        {
            Ok(Key { name: key.name.as_ref().map(fold), columns: positions(&key.columns)?, primary: true })
        }
        TableConstraint::Unique(key)
            if key.characteristics.is_none()
                && key.index_options.is_empty()
                && key.index_type.is_none()
                && !key.nulls_distinct.to_string().contains("NOT") =>
        {
            Ok(Key { name: key.name.as_ref().map(fold), columns: positions(&key.columns)?, primary: false })
        }
        TableConstraint::ForeignKey(_) => Err(unsupported("FOREIGN KEY")),
        TableConstraint::Check(_) => Err(unsupported("CHECK")),
        other => Err(unsupported(format!("the constraint {other}"))),
    }
}

pub(crate) fn position(columns: &[ColumnDef], name: &str) -> Option<usize> {
    columns.iter().position(|c| !c.dropped && c.name == name)
}

fn distinct(columns: Vec<usize>) -> Result<Vec<usize>> {
    let repeated = columns.iter().enumerate().any(|(at, c)| columns[..at].contains(c));
    if repeated {
        return Err(EngineError::new("42701", "column appears twice in a key"));
    }
    Ok(columns)
}

/// An index column that is a column's name and nothing else, ascending.
fn plain_column(column: &IndexColumn) -> Result<&Ident> {
    if column.operator_class.is_some() {
        return Err(unsupported("an operator class"));
    }
    let options = &column.column.options;
    if options.asc == Some(false) {
        return Err(unsupported("DESC in an index"));
    }
    if options.nulls_first == Some(true) || column.column.with_fill.is_some() {
        return Err(unsupported("NULLS FIRST in an index"));
    }
    match &column.column.expr {
        Expr::Identifier(ident) => Ok(ident),
        _ => Err(unsupported("an index on an expression")),
    }
}

/// What CREATE INDEX asks for.
pub(crate) enum NewIndex {
    /// IF NOT EXISTS, and an index of that name does.
    Exists(String),
    On(Arc<Table>, IndexSpec),
}

pub(crate) fn index_spec(create: &CreateIndex, catalog: &Catalog) -> Result<NewIndex> {
    let CreateIndex {
        name,
        table_name,
        using,
        columns,
        unique,
        concurrently,
        if_not_exists,
        include,
        nulls_distinct,
        with,
        predicate,
        index_options,
        alter_options,
    } = create;
    let refused = [
        (!matches!(using, None | Some(IndexType::BTree)), "an index method other than btree"),
        (*concurrently, "CONCURRENTLY"),
        (!include.is_empty(), "INCLUDE"),
        (*nulls_distinct == Some(false), "NULLS NOT DISTINCT"),
        (!with.is_empty() || !index_options.is_empty() || !alter_options.is_empty(), "an option of this index"),
        (predicate.is_some(), "a partial index"),
    ];
    if let Some((_, what)) = refused.iter().find(|(is, _)| *is) {
        return Err(unsupported(what));
    }
    let table_name = object_name(table_name)?;
    let table = catalog.table(&table_name).ok_or_else(|| undefined_table(&table_name))?;
    let positions = columns
        .iter()
        .map(|c| {
            let column = fold(plain_column(c)?);
            position(&table.columns, &column).ok_or_else(|| undefined_column(&column, &table_name))
        })
        .collect::<Result<Vec<usize>>>()
        .and_then(distinct)?;
    let taken = |n: &str| relation_exists(catalog, n);
    let name = match name {
        Some(given) => {
            let given = object_name(given)?;
            check_name(&given)?;
            if taken(&given) {
                return if *if_not_exists { Ok(NewIndex::Exists(given)) } else { Err(duplicate(&given)) };
            }
            given
        }
        None => {
            let columns = positions.iter().map(|c| table.columns[*c].name.as_str());
            let parts: Vec<&str> = [table_name.as_str()].into_iter().chain(columns).collect();
            choose_name(&parts, "idx", &taken)
        }
    };
    Ok(NewIndex::On(table.clone(), IndexSpec { name, columns: positions, unique: *unique, primary: false }))
}

/// `a_b_suffix`, with a number where that is taken, cut to fit.
pub(crate) fn choose_name(parts: &[&str], suffix: &str, taken: &dyn Fn(&str) -> bool) -> String {
    let base = parts.join("_");
    let numbered = |n: usize| {
        let end = if n == 0 { format!("_{suffix}") } else { format!("_{suffix}{n}") };
        let mut cut = base.len().min(NAME_MAX - end.len());
        while !base.is_char_boundary(cut) {
            cut -= 1;
        }
        format!("{}{end}", &base[..cut])
    };
    (0..).map(numbered).find(|name| !taken(name)).expect("some number is free")
}

pub(crate) fn relation_exists(catalog: &Catalog, name: &str) -> bool {
    catalog.name_taken(name)
}

/// An index by its name, with its table.
pub(crate) fn find_index<'c>(catalog: &'c Catalog, name: &str) -> Option<(&'c Arc<Table>, &'c Arc<Index>)> {
    let index = catalog.index(name)?;
    catalog.table_by_oid(index.table).map(|table| (table, index))
}

pub(crate) fn duplicate(name: &str) -> EngineError {
    EngineError::new("42P07", format!("relation \"{name}\" already exists"))
}
