//! The system tables: fixed object ids, heaps without indexes, rows of the ordinary format (*format*: changes need a
//! new version).
//!
//! | table | columns |
//! |---|---|
//! | 1 tables | oid, name, rows, pages (of the last ANALYZE) |
//! | 2 columns | table, position, name, type (PostgreSQL's oid; of a domain its base's), length (VARCHAR's; 1 of composite types, and of arrays of a type that a user made; else 0), not_null, default_sql (of a generated column its expression, between `generated always as (` and `) stored`), missing (text form; of an enum its position, of a composite type its bytes), dropped, domain (its oid), digits (that values keep beyond what the type says: of a second, or PostgreSQL's modifier of a numeric) |
//! | 3 indexes | oid, table, name, columns (positions, "0,2", or see [`super::extras`]), unique, primary, root (page), created_by (transaction) |
//! | 4 checks | table, name, sql. Rows of table 0 say that there are foreign keys, views, comments, enums, composite types, temporary tables, privileges, domains, schemas, default privileges, privileges on columns, columns with digits, and generated columns: a program that knows none refuses the row, because it would not check or keep them |
//! | 5 foreign_keys | see [`super::foreign`] |
//! | 6 views, 7 view_uses | see [`super::views`] |
//! | 8 comments | see [`super::comments`] |
//! | 9 enums | see [`super::enums`] |
//! | 10 temporary_tables | see [`super::temporary`] |
//! | 11 access, 12 members | see [`super::access`] |
//! | 13 domains | see [`super::domains`] |
//! | 14 schemas | see [`super::schemas`] |
//! | 15 roles | see [`super::roles`] |
//!
//! Columns at the end of a table may be missing from older rows: they are NULL.
use super::access::{self, ACCESS, MEMBERS};
use super::comments::{self, COMMENTS};
use super::domains::{self, DOMAINS, Domains};
use super::enums::{self, ENUMS, OwnTypes};
use super::extras;
use super::foreign::{self, FOREIGN_KEYS};
use super::schemas::{self, SCHEMAS};
use super::temporary::{self, TEMPORARY_TABLES};
use super::views::{self, VIEW_USES, VIEWS};
use super::{Check, ColumnDef, Index, Statistics, Table};
use crate::error::{EngineError, Result};
use crate::types::{DataType, Datum, DatumRef};
use std::sync::{Arc, LazyLock};
use terrace_storage::{ObjectId, TxnId};

pub const TABLES: ObjectId = ObjectId(1);
pub const COLUMNS: ObjectId = ObjectId(2);
pub(crate) const INDEXES: ObjectId = ObjectId(3);
pub(crate) const CHECKS: ObjectId = ObjectId(4);
/// All that describe tables and views.
pub(crate) const ALL: [ObjectId; 14] = [
    TABLES,
    COLUMNS,
    INDEXES,
    CHECKS,
    FOREIGN_KEYS,
    VIEWS,
    VIEW_USES,
    COMMENTS,
    ENUMS,
    TEMPORARY_TABLES,
    ACCESS,
    MEMBERS,
    DOMAINS,
    SCHEMAS,
];
/// User objects have at least this id.
pub(crate) const FIRST_USER: u32 = 16;

static SYSTEM: LazyLock<[Arc<Table>; 4]> = LazyLock::new(|| {
    use DataType::{Bool, Int4, Int8, Text};
    let table = |oid, name: &str, columns: &[(&str, DataType)]| {
        let columns = columns.iter().map(|(n, t)| ColumnDef::new(n, *t)).collect();
        Arc::new(Table::new(oid, name.into(), columns, Vec::new()))
    };
    [
        table(TABLES, "tables", &[("oid", Int8), ("name", Text), ("rows", Int8), ("pages", Int8)]),
        table(
            COLUMNS,
            "columns",
            &[
                ("table", Int8),
                ("position", Int4),
                ("name", Text),
                ("type", Int8),
                ("length", Int8),
                ("not_null", Bool),
                ("default_sql", Text),
                ("missing", Text),
                ("dropped", Bool),
                ("domain", Int8),
                ("digits", Int4),
            ],
        ),
        table(
            INDEXES,
            "indexes",
            &[
                ("oid", Int8),
                ("table", Int8),
                ("name", Text),
                ("columns", Text),
                ("unique", Bool),
                ("primary", Bool),
                ("root", Int8),
                ("created_by", Int8),
            ],
        ),
        table(CHECKS, "checks", &[("table", Int8), ("name", Text), ("sql", Text)]),
    ]
});

/// The definition of a system table.
pub fn table(oid: ObjectId) -> Option<&'static Arc<Table>> {
    match oid {
        super::roles::ROLES => return Some(super::roles::table()),
        FOREIGN_KEYS => return Some(foreign::table()),
        VIEWS | VIEW_USES => return Some(views::table(oid)),
        COMMENTS => return Some(comments::table()),
        ENUMS => return Some(enums::table()),
        TEMPORARY_TABLES => return Some(temporary::table()),
        ACCESS | MEMBERS => return Some(access::table(oid)),
        DOMAINS => return Some(domains::table()),
        SCHEMAS => return Some(schemas::table()),
        _ => {}
    }
    SYSTEM.get((oid.0 as usize).checked_sub(1)?)
}

pub(crate) fn table_row(t: &Table) -> Vec<Datum> {
    let statistic =
        |of: fn(&Statistics) -> u64| t.statistics.as_ref().map_or(Datum::Null, |s| Datum::Int8(of(s) as i64));
    vec![Datum::Int8(t.oid.0 as i64), Datum::text(t.name.as_str()), statistic(|s| s.rows), statistic(|s| s.pages)]
}

pub(crate) fn check_row(table: ObjectId, check: &Check) -> Vec<Datum> {
    vec![Datum::Int8(table.0 as i64), Datum::text(check.name.as_str()), Datum::text(check.sql.as_str())]
}

pub(crate) fn column_row(table: ObjectId, position: usize, c: &ColumnDef) -> Vec<Datum> {
    let opt = |s: Option<String>| s.map_or(Datum::Null, Datum::text);
    let mut row = vec![
        Datum::Int8(table.0 as i64),
        Datum::Int4(position as i32),
        Datum::text(c.name.as_str()),
        Datum::Int8(c.data_type.pg_oid() as i64),
        Datum::Int8(enums::stored_length(c.data_type).into()),
        Datum::Bool(c.not_null),
        opt(c.generated.as_ref().map(|text| format!("{GENERATED}{text}{STORED}")).or_else(|| c.default_sql.clone())),
        opt((!c.missing.is_null()).then(|| enums::stored_text(&c.missing))),
        Datum::Bool(c.dropped),
    ];
    if c.domain.is_some() || c.digits.is_some() {
        row.push(c.domain.as_ref().map_or(Datum::Null, |domain| Datum::Int8(domain.oid.into())));
        row.push(domains::digits_datum(c.digits));
    }
    row
}

/// What stands around the expression of a generated column. No default begins so.
const GENERATED: &str = "generated always as (";
const STORED: &str = ") stored";

/// The default and the expression of a column's text.
fn read_default(text: Option<String>) -> (Option<String>, Option<String>) {
    let inner = |text: &String| Some(text.strip_prefix(GENERATED)?.strip_suffix(STORED)?.to_owned());
    match text.as_ref().and_then(inner) {
        Some(expression) => (None, Some(expression)),
        None => (text, None),
    }
}

/// Rows of enums, of columns without a domain and without digits, of roles without attributes, of views without CHECK
/// OPTION, and of what views read in the schema public, are written as before there were any: older programs read them.
pub(crate) fn may_lack_columns(table: &Table, row: &[Datum]) -> bool {
    let lacks = match table.oid {
        COLUMNS => 2,
        super::roles::ROLES | VIEWS | VIEW_USES | ACCESS | ENUMS | super::domains::DOMAINS => 1,
        _ => return false,
    };
    row.len() == table.columns.len() - lacks
}

pub(crate) fn index_row(i: &Index) -> Vec<Datum> {
    vec![
        Datum::Int8(i.oid.0 as i64),
        Datum::Int8(i.table.0 as i64),
        Datum::text(i.name.as_str()),
        Datum::text(extras::text(i)),
        Datum::Bool(i.unique),
        Datum::Bool(i.primary),
        Datum::Int8(i.root as i64),
        Datum::Int8(i.created_by.0 as i64),
    ]
}

/// What keeps programs away that know no foreign keys.
pub(crate) fn foreign_keys_row() -> Vec<Datum> {
    vec![Datum::Int8(0), Datum::text("foreign keys"), Datum::Null]
}

/// What keeps programs away that know no views.
pub(crate) fn views_row() -> Vec<Datum> {
    vec![Datum::Int8(0), Datum::text("views"), Datum::text("")]
}

/// What keeps programs away that know no WITH CHECK OPTION: rows of views have a column more.
pub(crate) fn checked_views_row() -> Vec<Datum> {
    vec![Datum::Int8(0), Datum::text("checked views"), Datum::text("")]
}

/// Positions of columns, as they are stored: "0,2".
pub(super) fn positions_text(columns: &[usize]) -> String {
    columns.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

pub(super) fn positions(text: &str) -> Option<Vec<usize>> {
    text.split(',').map(|position| position.parse().ok()).collect()
}

pub(super) fn bad(what: &str) -> EngineError {
    EngineError::damaged(format!(
        "the catalogue's table of {what} holds a row that makes no sense; run `terrace check`"
    ))
}

pub(super) fn object(d: &Datum) -> Option<ObjectId> {
    match d {
        Datum::Int8(v) => u32::try_from(*v).ok().map(ObjectId),
        _ => None,
    }
}

pub(crate) fn read_table(row: &[Datum]) -> Result<(ObjectId, String, Option<Statistics>)> {
    let (oid, name, statistics) = match row {
        [oid, Datum::Text(name), Datum::Null, Datum::Null] => (oid, name, None),
        [oid, Datum::Text(name), Datum::Int8(rows), Datum::Int8(pages)] => {
            (oid, name, Some(Statistics { rows: *rows as u64, pages: *pages as u64 }))
        }
        _ => return Err(bad("tables")),
    };
    Ok((object(oid).ok_or_else(|| bad("tables"))?, name.to_string(), statistics))
}

/// `None`: it is a note ([`foreign_keys_row`] and its kind).
pub(crate) fn read_check(row: &[Datum]) -> Result<Option<(ObjectId, Check)>> {
    let own = [foreign_keys_row(), views_row(), comments_row(), enums_row(), domains_row(), digits_row()];
    let notes = own.into_iter().chain([temporary::note_row(), access::note_row(), schemas::note_row()]);
    let own_types = [composites_row(), nested_domains_row(), access::column_note_row(), checked_views_row()];
    let mut notes = notes.chain([access::default_note_row(), generated_row()]).chain(own_types);
    match row {
        note if notes.any(|known| *note == known) => Ok(None),
        [table, Datum::Text(name), Datum::Text(sql)] => {
            let table = object(table).ok_or_else(|| bad("checks"))?;
            Ok(Some((table, Check { name: name.to_string(), sql: sql.to_string() })))
        }
        _ => Err(bad("checks")),
    }
}

/// What keeps programs away that know no comments.
pub(crate) fn comments_row() -> Vec<Datum> {
    vec![Datum::Int8(0), Datum::text("comments"), Datum::text("")]
}

/// What keeps programs away that know no enums.
pub(crate) fn enums_row() -> Vec<Datum> {
    vec![Datum::Int8(0), Datum::text("enums"), Datum::text("")]
}

/// What keeps programs away that know no composite types: they would take them for enums.
pub(crate) fn composites_row() -> Vec<Datum> {
    vec![Datum::Int8(0), Datum::text("composite types"), Datum::text("")]
}

/// What keeps programs away that know no domains.
pub(crate) fn domains_row() -> Vec<Datum> {
    vec![Datum::Int8(0), Datum::text("domains"), Datum::text("")]
}

/// What keeps programs away that would not check what the domains say that a domain is over.
pub(crate) fn nested_domains_row() -> Vec<Datum> {
    vec![Datum::Int8(0), Datum::text("domains over domains"), Datum::text("")]
}

/// What keeps programs away that would not round values to a column's digits.
pub(crate) fn digits_row() -> Vec<Datum> {
    vec![Datum::Int8(0), Datum::text("digits"), Datum::text("")]
}

/// What keeps programs away that would not compute generated columns.
pub(crate) fn generated_row() -> Vec<Datum> {
    vec![Datum::Int8(0), Datum::text("generated columns"), Datum::text("")]
}

/// Table, position, definition. `whole`: refuses types that are not there, of columns that are.
pub(crate) fn read_column(
    row: &[Datum],
    types: &OwnTypes,
    domains: &Domains,
    whole: bool,
) -> Result<(ObjectId, usize, ColumnDef)> {
    let err = || bad("columns");
    let [
        table,
        Datum::Int4(position),
        Datum::Text(name),
        kind,
        length,
        Datum::Bool(not_null),
        default,
        missing,
        Datum::Bool(dropped),
        domain,
        digits,
    ] = row
    else {
        return Err(err());
    };
    let (kind, length) = (object(kind).ok_or_else(err)?.0, object(length).ok_or_else(err)?.0);
    let known = DataType::from_pg_oid(kind, length).or_else(|| enums::type_of(types, kind));
    let data_type = match known {
        Some(known) => known,
        None if *dropped || !whole => enums::stored_type(length),
        None => return Err(err()),
    };
    let text = |d: &Datum| if let DatumRef::Text(s) = d.as_ref() { Some(s.to_string()) } else { None };
    let missing = match text(missing) {
        Some(s) if known.is_some() => enums::read_text(data_type, &s).map_err(|_| err())?,
        _ => Datum::Null,
    };
    let domain = match domain {
        Datum::Null => None,
        domain => {
            let oid = object(domain).ok_or_else(err)?.0;
            let found = domains.values().find(|domain| domain.oid == oid).cloned();
            if found.is_none() && whole && !*dropped {
                return Err(err());
            }
            found
        }
    };
    let (default_sql, generated) = read_default(text(default));
    let column = ColumnDef {
        name: name.to_string(),
        data_type,
        not_null: *not_null,
        default_sql,
        generated,
        missing,
        dropped: *dropped,
        domain,
        digits: domains::read_digits(digits).ok_or_else(err)?,
    };
    Ok((object(table).ok_or_else(err)?, usize::try_from(*position).map_err(|_| err())?, column))
}

pub(crate) fn read_index(row: &[Datum]) -> Result<Index> {
    let err = || bad("indexes");
    let [
        oid,
        table,
        Datum::Text(name),
        Datum::Text(columns),
        Datum::Bool(unique),
        Datum::Bool(primary),
        root,
        Datum::Int8(created_by),
    ] = row
    else {
        return Err(err());
    };
    let (columns, extras) = extras::read(columns).ok_or_else(err)?;
    Ok(Index {
        oid: object(oid).ok_or_else(err)?,
        name: name.to_string(),
        table: object(table).ok_or_else(err)?,
        columns,
        extras,
        unique: *unique,
        primary: *primary,
        root: object(root).ok_or_else(err)?.0,
        created_by: TxnId(*created_by as u64),
    })
}
