//! CREATE and DROP of tables and indexes: from the tree to the engine's specifications.
//!
//! A clause that nothing would carry out is refused, never ignored.
use crate::error::unsupported;
use crate::parse::identity::Identity;
use crate::parse::types::of_column;
use crate::statement::target::Target;
use std::sync::Arc;
use terrace_engine::catalog::extras::{Extras, KeyOption};
use terrace_engine::{
    Catalog, ColumnDef, Datum, EngineError, Index, IndexSpec, RelationName, Result, Table, TableSpec,
};
use terrace_grammar::statement::{
    Column, ColumnConstraintKind, CreateTable, Deferral, ExprKind, Ident, Index as KeyIndex, Literal, StorageOption,
    TableConstraint, TableConstraintKind,
};

/// PostgreSQL's limit on the bytes of an identifier.
const NAME_MAX: usize = 63;

/// The keys of a table's definition, before their indexes have names.
pub(crate) struct Key {
    pub(crate) name: Option<String>,
    pub(crate) columns: Vec<usize>,
    pub(crate) primary: bool,
    pub(crate) extras: Option<Box<Extras>>,
}

impl Key {
    /// The columns that the name of a UNIQUE has, if none is given.
    pub(crate) fn named_after(&self) -> impl Iterator<Item = usize> {
        let included = self.extras.as_ref().map_or(&[][..], |extras| &extras.included);
        self.columns.iter().chain(included).copied()
    }

    /// The index, which gets this name.
    pub(crate) fn into_spec(self, name: String) -> IndexSpec {
        let Key { name: _, columns, primary, extras } = self;
        IndexSpec { name, columns, unique: true, primary, extras }
    }
}

/// Builds the specification. Defaults are text; the caller has checked that they can be evaluated.
pub(crate) fn table_spec(create: &CreateTable, catalog: &Catalog) -> Result<TableSpec> {
    let target = Target::of_table(create, catalog)?;
    let name = target.name.clone();
    check_name(&name)?;
    let mut columns: Vec<ColumnDef> = vec![];
    let mut keys: Vec<Key> = vec![];
    for column in &create.columns {
        let definition = column_def(column, columns.len(), &mut keys, catalog)?;
        if columns.iter().any(|c| c.name == definition.name) {
            return Err(EngineError::new("42701", format!("column \"{}\" specified more than once", definition.name)));
        }
        columns.push(definition);
    }
    if create.constraints.iter().any(|c| matches!(c.kind, TableConstraintKind::UsingIndex { .. })) {
        return Err(EngineError::new("0A000", "cannot use an existing index in CREATE TABLE"));
    }
    for constraint in create.constraints.iter().filter(|c| is_key(c)) {
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
        let taken = |n: &str| n == name || target.is_taken(n, catalog) || indexes.iter().any(|i| i.name == n);
        let index_name = match &key.name {
            Some(given) if taken(given) => return Err(duplicate(given)),
            Some(given) => given.clone(),
            None if key.primary => choose_name(&[&name], "pkey", &taken),
            None => {
                let named = key.named_after().map(|at| columns[at].name.as_str());
                choose_name(&[name.as_str()].into_iter().chain(named).collect::<Vec<&str>>(), "key", &taken)
            }
        };
        check_name(&index_name)?;
        indexes.push(key.into_spec(index_name));
    }
    Ok(TableSpec { name, columns, indexes })
}

/// `WITH (fillfactor = n)`: pages are always filled completely; for another number, a notice says so.
pub(crate) fn storage_options(options: &[StorageOption]) -> Result<Vec<EngineError>> {
    let mut notices = vec![];
    for StorageOption { name, value } in options {
        if name.name != "fillfactor" {
            return Err(unsupported(format!("the storage parameter \"{}\"", name.name)));
        }
        let value = match value.as_ref().map(|value| &value.kind) {
            Some(ExprKind::Literal(Literal::Int(value))) => value.to_string(),
            Some(ExprKind::Literal(Literal::Number(text) | Literal::Text(text))) => text.clone(),
            _ => String::new(),
        };
        match value.parse::<u32>() {
            Ok(100) => {}
            Ok(10..100) => notices.push(EngineError::new("01000", "pages are always filled: fillfactor has no effect")),
            _ => {
                let message = format!("value {value} out of bounds for option \"fillfactor\"");
                let error = EngineError::new("22023", message);
                return Err(error.with_detail("Valid values are between \"10\" and \"100\"."));
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

/// What a key's index is besides its columns, of which there are so many. `included`: where the columns of INCLUDE are.
fn key_extras(
    index: &KeyIndex,
    deferral: Deferral,
    columns: usize,
    included: Vec<usize>,
) -> Result<Option<Box<Extras>>> {
    if !index.storage.is_empty() {
        return Err(unsupported("an option of this index"));
    }
    if !index.nulls_not_distinct && deferral == Deferral::default() && included.is_empty() {
        return Ok(None);
    }
    Ok(Some(Box::new(Extras {
        keys: vec![KeyOption::default(); columns],
        included,
        filtered: false,
        nulls_not_distinct: index.nulls_not_distinct,
        constraint: true,
        deferrable: deferral.deferrable,
        deferred: deferral.initially_deferred,
    })))
}

pub(crate) fn column_def(column: &Column, at: usize, keys: &mut Vec<Key>, catalog: &Catalog) -> Result<ColumnDef> {
    let (data_type, digits, domain) = of_column(&column.data_type, catalog)?;
    let mut definition = ColumnDef {
        name: column.name.name.clone(),
        data_type,
        not_null: false,
        default_sql: None,
        generated: None,
        missing: Datum::Null,
        dropped: false,
        domain,
        digits,
    };
    if column.collation.is_some() {
        return Err(unsupported("COLLATE"));
    }
    let mut null = false;
    for constraint in &column.constraints {
        let name = constraint.name.as_ref().map(|name| name.name.clone());
        let key = |index: &KeyIndex, primary| {
            let extras = key_extras(index, constraint.deferral, 1, vec![])?;
            keys.push(Key { name, columns: vec![at], primary, extras });
            Ok::<(), EngineError>(())
        };
        match &constraint.kind {
            ColumnConstraintKind::Null => null = true,
            ColumnConstraintKind::NotNull => definition.not_null = true,
            ColumnConstraintKind::Default(default) => {
                if definition.default_sql.replace(default.text.clone()).is_some() {
                    let message = format!("multiple default values specified for column \"{}\"", definition.name);
                    return Err(EngineError::new("42601", message));
                }
            }
            ColumnConstraintKind::PrimaryKey(index) => key(index, true)?,
            ColumnConstraintKind::Unique(index) => key(index, false)?,
            // `checks` and `foreign_keys` handle them.
            ColumnConstraintKind::Check { .. } | ColumnConstraintKind::References(_) => {}
            ColumnConstraintKind::Generated(expr) => {
                if definition.generated.replace(expr.text.clone()).is_some() {
                    return Err(clauses_of(&definition, "multiple generation clauses"));
                }
            }
            ColumnConstraintKind::Identity { .. } => return Err(unsupported("GENERATED AS IDENTITY")),
        }
    }
    if definition.generated.is_some() && definition.default_sql.is_some() {
        let kind = if Identity::of(&definition).is_some() { "identity" } else { "default" };
        return Err(clauses_of(&definition, &format!("both {kind} and generation expression")));
    }
    if null && definition.not_null {
        let message = format!("conflicting NULL/NOT NULL declarations for column \"{}\"", definition.name);
        return Err(EngineError::new("42601", message));
    }
    Ok(definition)
}

/// 42601
fn clauses_of(column: &ColumnDef, what: &str) -> EngineError {
    EngineError::new("42601", format!("{what} specified for column \"{}\"", column.name))
}

/// Whether a constraint is PRIMARY KEY or UNIQUE. (`checks` and `foreign_keys` handle the others.)
fn is_key(constraint: &TableConstraint) -> bool {
    matches!(constraint.kind, TableConstraintKind::PrimaryKey { .. } | TableConstraintKind::Unique { .. })
}

/// Of PRIMARY KEY or UNIQUE.
pub(crate) fn table_key(constraint: &TableConstraint, columns: &[ColumnDef]) -> Result<Key> {
    let (names, index, primary) = match &constraint.kind {
        TableConstraintKind::PrimaryKey { columns, index } => (columns, index, true),
        TableConstraintKind::Unique { columns, index } => (columns, index, false),
        TableConstraintKind::ForeignKey { .. }
        | TableConstraintKind::Check { .. }
        | TableConstraintKind::UsingIndex { .. } => {
            unreachable!("the caller handles these")
        }
    };
    let of = |name: &Ident| {
        let missing = || EngineError::new("42703", format!("column \"{}\" named in key does not exist", name.name));
        position(columns, &name.name).ok_or_else(missing)
    };
    let columns = names.iter().map(of).collect::<Result<Vec<usize>>>().and_then(distinct)?;
    let included = index.include.iter().map(of).collect::<Result<Vec<usize>>>()?;
    let extras = key_extras(index, constraint.deferral, columns.len(), included)?;
    Ok(Key { name: constraint.name.as_ref().map(|name| name.name.clone()), columns, primary, extras })
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

/// An index by its name, with its table.
pub(crate) fn find_index<'c>(catalog: &'c Catalog, name: &RelationName) -> Option<(&'c Arc<Table>, &'c Arc<Index>)> {
    let index = catalog.index(name)?;
    catalog.table_by_oid(index.table).map(|table| (table, index))
}

pub(crate) fn duplicate(name: &str) -> EngineError {
    EngineError::new("42P07", format!("relation \"{name}\" already exists"))
}
