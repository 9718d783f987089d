//! Foreign keys in the relations.
use super::super::functions::quote;
use super::*;
use crate::parse::qualified::shown_relation;
use crate::pgcatalog::schema_of_table;
use terrace_engine::{Action, ForeignKey};

/// A foreign key between its two tables.
pub(super) struct Key<'c> {
    catalog: &'c Catalog,
    pub(super) key: &'c ForeignKey,
    pub(super) table: &'c Table,
    pub(super) referenced: &'c Table,
}

/// All, by table.
pub(super) fn keys(catalog: &Catalog) -> impl Iterator<Item = Key<'_>> {
    catalog.tables().flat_map(move |table| table.foreign_keys.iter().filter_map(move |key| of(catalog, table, key)))
}

fn of<'c>(catalog: &'c Catalog, table: &'c Table, key: &'c ForeignKey) -> Option<Key<'c>> {
    Some(Key { catalog, key, table, referenced: catalog.table_by_oid(key.referenced)? })
}

/// `pg_get_constraintdef` of an OID, if a foreign key has it.
pub(crate) fn definition(catalog: &Catalog, oid: u32) -> Option<String> {
    keys(catalog).find(|key| key.key.oid.0 == oid).map(|key| key.definition())
}

fn names(table: &Table, columns: &[usize]) -> String {
    columns.iter().map(|at| quote(&table.columns[*at].name)).collect::<Vec<_>>().join(", ")
}

fn rule(action: Action) -> &'static str {
    match action {
        Action::NoAction => "NO ACTION",
        Action::Restrict => "RESTRICT",
        Action::Cascade => "CASCADE",
        Action::SetNull => "SET NULL",
        Action::SetDefault => "SET DEFAULT",
    }
}

pub(super) fn yes(is: bool) -> &'static str {
    if is { "YES" } else { "NO" }
}

fn column_numbers(columns: &[usize]) -> V {
    V::Shorts(columns.iter().map(|c| *c as i16 + 1).collect())
}

impl Key<'_> {
    fn definition(&self) -> String {
        let Key { catalog, key, table, referenced } = self;
        let (from, to) = (names(table, &key.columns), names(referenced, &key.key));
        let other = shown_relation(referenced.space, &referenced.name, catalog);
        let mut text = format!("FOREIGN KEY ({from}) REFERENCES {other}({to})");
        if key.full {
            text.push_str(" MATCH FULL");
        }
        for (verb, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
            if action != Action::NoAction {
                text.push_str(&format!(" ON {verb} {}", rule(action)));
            }
        }
        if !key.set.is_empty() {
            text.push_str(&format!(" ({})", names(table, &key.set)));
        }
        let rest =
            [(key.deferrable, " DEFERRABLE"), (key.deferred, " INITIALLY DEFERRED"), (!key.validated, " NOT VALID")];
        rest.iter().filter(|(is, _)| *is).for_each(|(_, words)| text.push_str(words));
        text
    }

    /// Of `pg_constraint`.
    pub(super) fn constraint(&self) -> Row {
        let Key { key, table, referenced, .. } = self;
        row! {
            oid: key.oid.0, conname: &*key.name, connamespace: table.space.0.0, contype: "f",
            condeferrable: key.deferrable, condeferred: key.deferred, convalidated: key.validated,
            conrelid: table.oid.0, conindid: key.index.0, confrelid: referenced.oid.0,
            confupdtype: key.on_update.letter(), confdeltype: key.on_delete.letter(),
            confmatchtype: if key.full { "f" } else { "s" }, conislocal: true, connoinherit: true,
            conkey: column_numbers(&key.columns), confkey: column_numbers(&key.key),
            confdelsetcols: if key.set.is_empty() { V::Null } else { column_numbers(&key.set) }, conbin: V::Null,
        }
    }

    /// Of `information_schema.table_constraints`.
    pub(super) fn standard(&self) -> Row {
        let Key { catalog, key, table, .. } = self;
        row! {
            constraint_catalog: DATABASE, constraint_schema: schema_of_table(catalog, table),
            constraint_name: &*key.name,
            table_catalog: DATABASE, table_schema: schema_of_table(catalog, table), table_name: &*table.name,
            constraint_type: "FOREIGN KEY", is_deferrable: yes(key.deferrable),
            initially_deferred: yes(key.deferred), enforced: "YES",
        }
    }

    /// Of `information_schema.referential_constraints`.
    pub(super) fn referential(&self) -> Row {
        let Key { catalog, key, table, referenced } = self;
        row! {
            constraint_catalog: DATABASE, constraint_schema: schema_of_table(catalog, table),
            constraint_name: &*key.name,
            unique_constraint_catalog: DATABASE, unique_constraint_schema: schema_of_table(catalog, referenced),
            unique_constraint_name: referenced.index(key.index).map(|index| index.name.clone()),
            match_option: if key.full { "FULL" } else { "NONE" },
            update_rule: rule(key.on_update), delete_rule: rule(key.on_delete),
        }
    }

    /// Of `information_schema.key_column_usage`.
    pub(super) fn columns(&self) -> Vec<Row> {
        let Key { catalog, key, table, referenced } = self;
        let index = referenced.index(key.index);
        let one = |(n, (column, to)): (i32, (&usize, &usize))| {
            let place = index.and_then(|index| index.columns.iter().position(|at| at == to));
            row! {
                constraint_catalog: DATABASE, constraint_schema: schema_of_table(catalog, table),
                constraint_name: &*key.name,
                table_catalog: DATABASE, table_schema: schema_of_table(catalog, table), table_name: &*table.name,
                column_name: &*table.columns[*column].name, ordinal_position: n,
                position_in_unique_constraint: place.map(|place| place as i32 + 1),
            }
        };
        (1i32..).zip(key.columns.iter().zip(&key.key)).map(one).collect()
    }

    /// Of `information_schema.constraint_column_usage`: the columns that it refers to.
    pub(super) fn used(&self) -> Vec<Row> {
        let Key { catalog, key, table, referenced } = self;
        key.key.iter().map(|at| used(catalog, referenced, *at, (table, &key.name))).collect()
    }
}

/// A column that a constraint uses, of `information_schema.constraint_column_usage`.
pub(super) fn used(catalog: &Catalog, table: &Table, column: usize, (own, constraint): (&Table, &str)) -> Row {
    row! {
        table_catalog: DATABASE, table_schema: schema_of_table(catalog, table), table_name: &*table.name,
        column_name: &*table.columns[column].name, constraint_catalog: DATABASE,
        constraint_schema: schema_of_table(catalog, own), constraint_name: constraint,
    }
}
