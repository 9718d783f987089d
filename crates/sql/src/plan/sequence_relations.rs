//! `pg_sequence`, `pg_sequences` and `information_schema.sequences`. What they show of a sequence is in its row, so a
//! statement that names them reads the rows of all sequences in their place.
use crate::access::Actor;
use crate::parse::identity::Identity;
use crate::parse::numbered;
use crate::parse::sequence_calls::sequence_of;
use crate::pgcatalog::{DATABASE, schema_of_table};
use crate::values::{is_sequence, sequence_type};
use terrace_engine::catalog::access::Rights;
use terrace_engine::{Catalog, ColumnDef, DataType, Table};

/// What a sequence says of its type; one of before, which says nothing, is an integer's if it ends where these do.
fn type_of<'t>(table: &Table, [short, integer, long]: [&'t str; 3]) -> std::borrow::Cow<'t, str> {
    match sequence_type(table) {
        Some(DataType::Int2) => short.into(),
        Some(DataType::Int4) => integer.into(),
        Some(_) => long.into(),
        None => format!("CASE WHEN max_value = {} THEN {integer} ELSE {long} END", i32::MAX).into(),
    }
}

/// The query that stands for a relation of that name.
pub(crate) fn text_of(schema: &str, relation: &str, catalog: &Catalog, actor: &Actor) -> Option<String> {
    match (schema, relation) {
        ("pg_catalog", "pg_sequence") => Some(all(catalog, |_| true, sequence_row)),
        ("pg_catalog", "pg_sequences") => {
            let row = |table: &Table| {
                let reads = actor.has_any(catalog, table, Rights::SELECT | Rights::USAGE);
                sequences_row(table, &schema_of_table(catalog, table), &catalog.owner_name(table.oid), reads)
            };
            Some(all(catalog, |_| true, row))
        }
        ("information_schema", "sequences") => {
            let numbers_identity = |table: &Table| {
                let of = |column: &ColumnDef| Identity::of(column).and(sequence_of(column));
                let mut all = catalog.tables().flat_map(|table| table.columns.iter().filter_map(of));
                all.any(|name| catalog.table(&name).is_some_and(|found| found.oid == table.oid))
            };
            let is_told = |table: &Table| {
                let any = Rights::SELECT | Rights::UPDATE | Rights::USAGE;
                let may = actor.owns(catalog, table.oid) || actor.has_any(catalog, table, any);
                may && !numbers_identity(table)
            };
            Some(all(catalog, is_told, |table| standard_row(table, &schema_of_table(catalog, table))))
        }
        _ => None,
    }
}

/// The OIDs of all sequences, and what each has given last: NULL where it has given nothing, or the role may not know.
pub(crate) fn last_values(catalog: &Catalog, actor: &Actor) -> String {
    let row = |table: &Table| {
        let reads = actor.has_any(catalog, table, Rights::SELECT | Rights::USAGE);
        let (oid, source) = (table.oid.0, source(table));
        format!("SELECT {oid}::oid AS of, CASE WHEN is_called AND {reads} THEN last_value END AS value FROM {source}")
    };
    all(catalog, |_| true, row)
}

fn all(catalog: &Catalog, is_told: impl Fn(&Table) -> bool, row: impl Fn(&Table) -> String) -> String {
    let is_shown = |table: &Table| is_sequence(table) && is_seen(table, catalog) && is_told(table);
    let rows: Vec<String> = catalog.tables().filter(|table| is_shown(table)).map(|table| row(table)).collect();
    match rows.is_empty() {
        false => rows.join(" UNION ALL "),
        true => format!("{} WHERE false", row(&shape())),
    }
}

/// Stands for a sequence where there is none: only the names and types of its row matter.
fn shape() -> Table {
    Table::new(terrace_storage::ObjectId(0), String::new(), vec![], vec![])
}

/// The rows of other sessions' temporary sequences are theirs alone.
fn is_seen(table: &Table, catalog: &Catalog) -> bool {
    table.temporary.is_none() || Some(table.space) == catalog.own_space()
}

fn quoted(text: &str, mark: char) -> String {
    let doubled: String = text.chars().flat_map(|c| std::iter::repeat_n(c, 1 + usize::from(c == mark))).collect();
    format!("{mark}{doubled}{mark}")
}

/// Where a sequence's row is read from.
fn source(table: &Table) -> String {
    match table.name.as_str() {
        "" => {
            "(SELECT 0::bigint AS last_value, false AS is_called, 0::bigint AS start_value, 0::bigint AS increment_by, \
               0::bigint AS min_value, 0::bigint AS max_value, false AS cycle) AS s"
                .to_owned()
        }
        name => format!("{}.{} AS s", numbered(table.space), quoted(name, '"')),
    }
}

fn sequence_row(table: &Table) -> String {
    format!(
        "SELECT {}::oid AS seqrelid, {} AS seqtypid, start_value AS seqstart, increment_by AS seqincrement, \
         max_value AS seqmax, min_value AS seqmin, \
         1::bigint AS seqcache, cycle AS seqcycle FROM {}",
        table.oid.0,
        type_of(table, ["21::oid", "23::oid", "20::oid"]),
        source(table)
    )
}

/// `reads`: the current role may know what the sequence has given.
fn sequences_row(table: &Table, schema: &str, owner: &str, reads: bool) -> String {
    format!(
        "SELECT {} AS schemaname, {} AS sequencename, {} AS sequenceowner, \
         {} AS data_type, start_value, min_value, \
         max_value, increment_by, cycle, 1::bigint AS cache_size, \
         CASE WHEN is_called AND {reads} THEN last_value END AS last_value FROM {}",
        quoted(schema, '\''),
        quoted(&table.name, '\''),
        quoted(owner, '\''),
        type_of(table, ["'smallint'", "'integer'", "'bigint'"]),
        source(table)
    )
}

/// Of `information_schema`.
fn standard_row(table: &Table, schema: &str) -> String {
    format!(
        "SELECT {} AS sequence_catalog, {} AS sequence_schema, {} AS sequence_name, {} AS data_type, \
         {} AS numeric_precision, 2 AS numeric_precision_radix, 0 AS numeric_scale, start_value::text AS start_value, \
         min_value::text AS minimum_value, max_value::text AS maximum_value, increment_by::text AS increment, \
         CASE WHEN cycle THEN 'YES' ELSE 'NO' END AS cycle_option FROM {}",
        quoted(DATABASE, '\''),
        quoted(schema, '\''),
        quoted(&table.name, '\''),
        type_of(table, ["'smallint'", "'integer'", "'bigint'"]),
        type_of(table, ["16", "32", "64"]),
        source(table)
    )
}
