//! CREATE INDEX and DROP INDEX: of columns, of expressions, with a condition, with INCLUDE.
//!
//! 1. An index of an expression, or with a condition, has computed columns ([`crate::statement::computed`]). Where they
//!    are new, the table is this transaction's alone while its rows get their values; otherwise only writers wait.
//! 2. CONCURRENTLY is refused where PostgreSQL refuses it, and otherwise makes the same index: writers wait for it.
use crate::error::{missing_relation, unsupported};
use crate::parse::qualified::shown_relation;
use crate::parse::{relation, shown, stored};
use crate::statement::computed::For;
use crate::statement::ddl::{check_name, choose_name, duplicate, find_index, position};
use crate::statement::dispatch::skip_existing;
use crate::statement::foreign_keys::{dependents, refuse_dependents};
use crate::statement::run::Run;
use std::sync::Arc;
use terrace_engine::catalog::extras::{Extras, KeyOption};
use terrace_engine::{Catalog, ColumnDef, DataType, EngineError, IndexSpec, RelationName, Result, Table};
use terrace_grammar::statement::{CreateIndex, ExprKind, IndexElement, Name, NullsOrder};

/// What an index is on.
enum Key<'c> {
    Column(usize),
    /// An expression.
    Value(&'c str),
}

/// The operator classes of B-trees, and what they order. Texts are ordered by their bytes, as `text_pattern_ops` and
/// its kind order them: so they make the same index. The first of a type is its own.
const CLASSES: [(&str, &[&str]); 20] = [
    ("bool_ops", &["boolean"]),
    ("bpchar_ops", &["character"]),
    ("bpchar_pattern_ops", &["character"]),
    ("bytea_ops", &["bytea"]),
    ("date_ops", &["date"]),
    ("float4_ops", &["real"]),
    ("float8_ops", &["double precision"]),
    ("int2_ops", &["smallint"]),
    ("int4_ops", &["integer"]),
    ("int8_ops", &["bigint"]),
    ("interval_ops", &["interval"]),
    ("numeric_ops", &["numeric"]),
    ("time_ops", &["time without time zone"]),
    ("timestamp_ops", &["timestamp without time zone"]),
    ("timestamptz_ops", &["timestamp with time zone"]),
    ("uuid_ops", &["uuid"]),
    ("text_ops", TEXTS),
    ("text_pattern_ops", TEXTS),
    ("varchar_ops", TEXTS),
    ("varchar_pattern_ops", TEXTS),
];
const TEXTS: &[&str] = &["text", "character varying"];

/// The operator class of a key, if it is not the type's own. 42704, 42804
pub(crate) fn class_of(class: Option<&str>, of: DataType) -> Result<Option<String>> {
    let Some(name) = class else { return Ok(None) };
    let Some((_, types)) = CLASSES.iter().find(|(class, _)| *class == name) else {
        let message = format!("operator class \"{name}\" does not exist for access method \"btree\"");
        return Err(EngineError::new("42704", message));
    };
    let takes = |types: &[&str]| types.contains(&of.base_name());
    let own = CLASSES.iter().find(|(_, types)| takes(types)).map(|(class, _)| *class);
    match takes(types) {
        true => Ok((own != Some(name)).then(|| name.to_owned())),
        // It would order texts without their blanks.
        false if name.starts_with("bpchar") && of.is_text() => Err(unsupported("an operator class of char on a text")),
        false => {
            let message = format!("operator class \"{name}\" does not accept data type {}", of.base_name());
            Err(EngineError::new("42804", message))
        }
    }
}

fn class_name(class: &Name) -> &str {
    match class.parts() {
        [own] => &own.name,
        [schema, own] if schema.name == "pg_catalog" => &own.name,
        // There is none of another schema.
        _ => "",
    }
}

fn option_of(element: &IndexElement, of: DataType) -> Result<KeyOption> {
    if element.collation.is_some() {
        return Err(unsupported("COLLATE in an index"));
    }
    let nulls_first = match element.nulls {
        Some(NullsOrder::First) => true,
        Some(NullsOrder::Last) => false,
        None => element.descending,
    };
    let class = class_of(element.class.as_ref().map(class_name), of)?;
    Ok(KeyOption { descending: element.descending, nulls_first, class })
}

fn refuse_options(create: &CreateIndex) -> Result<()> {
    let method = create.method.as_ref().map(|method| method.name.as_str());
    let refused = [
        (!matches!(method, None | Some("btree")), "an index method other than btree"),
        (!create.storage.is_empty(), "an option of this index"),
    ];
    match refused.iter().find(|(is, _)| *is) {
        Some((_, what)) => Err(unsupported(what)),
        None => Ok(()),
    }
}

/// The table that an index is to be made on.
fn indexed(create: &CreateIndex, catalog: &Catalog) -> Result<Arc<Table>> {
    let name = relation(&create.table)?;
    let missing = || match catalog.view(&name) {
        Some(_) => EngineError::new("42809", format!("cannot create index on relation \"{name}\""))
            .with_detail("This operation is not supported for views."),
        None => missing_relation(catalog, &name),
    };
    catalog.table(&name).cloned().ok_or_else(missing)
}

fn column(element: &IndexElement, table: &Table) -> Option<Result<usize>> {
    match &element.expr.kind {
        ExprKind::Column(name) if name.parts().len() == 1 => {
            let name = name.last().name.as_str();
            let missing = || EngineError::new("42703", format!("column \"{name}\" does not exist"));
            Some(position(&table.columns, name).ok_or_else(missing))
        }
        _ => None,
    }
}

fn key<'c>(element: &'c IndexElement, table: &Table) -> Result<Key<'c>> {
    match column(element, table) {
        Some(at) => at.map(Key::Column),
        None => Ok(Key::Value(&element.text)),
    }
}

/// Columns of INCLUDE.
fn included(create: &CreateIndex, table: &Table) -> Result<Vec<usize>> {
    let of = |element: &IndexElement| {
        let at = column(element, table)
            .unwrap_or_else(|| Err(EngineError::new("0A000", "expressions are not supported in included columns")))?;
        if element.class.is_some() || element.collation.is_some() {
            let what = if element.collation.is_some() { "a collation" } else { "an operator class" };
            return Err(EngineError::new("42P17", format!("including column does not support {what}")));
        }
        if element.descending || element.nulls.is_some() {
            let what = if element.descending { "ASC/DESC" } else { "NULLS FIRST/LAST" };
            return Err(EngineError::new("42P17", format!("including column does not support {what} options")));
        }
        Ok(at)
    };
    create.include.iter().map(of).collect()
}

/// The parts of a name that is chosen for the index: PostgreSQL numbers those that are alike.
fn parts(create: &CreateIndex, table: &Table) -> Vec<String> {
    let mut parts = vec![table.name.clone()];
    for element in create.elements.iter().chain(&create.include) {
        let name = stored::key_name(&element.expr, &parts[1..]);
        parts.push(name);
    }
    parts
}

impl Run<'_> {
    pub(crate) async fn create_index(&self, create: &CreateIndex) -> Result<Vec<EngineError>> {
        let catalog = self.begin_statement().await;
        refuse_options(create)?;
        let table = indexed(create, &catalog)?;
        let actor = self.info.actor(&catalog);
        actor.require_owner_of(&catalog, &table)?;
        actor.permit_beside(&catalog, &table)?;
        let name = match &create.name {
            Some(given) => {
                check_name(&given.name)?;
                if catalog.name_taken(table.space, &given.name) {
                    let exists = || duplicate(&given.name);
                    return if create.if_not_exists { skip_existing(&given.name, true) } else { Err(exists()) };
                }
                given.name.clone()
            }
            None => {
                let parts = parts(create, &table);
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                choose_name(&parts, "idx", &|name| catalog.name_taken(table.space, name))
            }
        };
        Box::pin(self.make_index(create, table, name)).await.map(|()| vec![])
    }

    async fn make_index(&self, create: &CreateIndex, mut table: Arc<Table>, name: String) -> Result<()> {
        let keys = create.elements.iter().map(|element| key(element, &table)).collect::<Result<Vec<Key<'_>>>>()?;
        let included = included(create, &table)?;
        let computes = create.filter.is_some() || keys.iter().any(|key| matches!(key, Key::Value(_)));
        if computes {
            table = self.alone(&table.full_name()).await?;
        }
        let before = table.columns.len();
        let (mut columns, mut options) = (vec![], vec![]);
        for (element, key) in create.elements.iter().zip(keys) {
            let at = match key {
                Key::Column(at) => at,
                Key::Value(text) => self.computed_column(&mut table, text, For::Key).await?,
            };
            if columns.contains(&at) {
                return Err(unsupported("a column that is twice in an index"));
            }
            options.push(option_of(element, table.columns[at].data_type)?);
            columns.push(at);
        }
        if let Some(condition) = &create.filter {
            columns.push(self.computed_column(&mut table, &condition.text, For::Condition).await?);
        }
        if table.columns.len() > before {
            self.fill_computed(&table).await?;
        }
        let filtered = create.filter.is_some();
        let plain = !computes
            && !create.unique
            && included.is_empty()
            && !create.nulls_not_distinct
            && options.iter().all(|option| *option == KeyOption::default());
        let nulls_not_distinct = create.nulls_not_distinct;
        let extras = Extras { keys: options, included, filtered, nulls_not_distinct, ..Extras::default() };
        let extras = (!plain).then(|| extras.into());
        let spec = IndexSpec { name, columns, unique: create.unique, primary: false, extras };
        // The engine takes the lock that CREATE INDEX needs. A weaker lock, taken here first, could lead to a deadlock
        // with another session.
        let make = async { self.cell.lock().await.open().create_index(&table, spec).await };
        self.cancel.run(make).await.map(drop)
    }

    /// The table's computed column for an expression: one that it has, or a new one.
    async fn computed_column(&self, table: &mut Arc<Table>, text: &str, of: For) -> Result<usize> {
        let column = self.new_computed(table, text, of).await?;
        let same = |known: &ColumnDef| known.computed() == column.computed() && known.data_type == column.data_type;
        if let Some(at) = table.columns.iter().position(same) {
            return Ok(at);
        }
        let add = async { self.cell.lock().await.open().add_column(table, column).await };
        *table = self.cancel.run(add).await?;
        Ok(table.columns.len() - 1)
    }

    /// With CASCADE, also the foreign keys that refer to what it makes unique.
    pub(crate) async fn drop_index(
        &self,
        name: &RelationName,
        catalog: &Catalog,
        (cascade, notices): (bool, &mut Vec<EngineError>),
    ) -> Result<()> {
        let Some((table, index)) = find_index(catalog, name) else {
            let other = EngineError::new("42809", format!("\"{}\" is not an index", name.name));
            if catalog.table(name).is_some() {
                return Err(other);
            }
            if catalog.view(name).is_some() {
                return Err(other.with_hint("Use DROP VIEW to remove a view."));
            }
            return Err(EngineError::new("42704", format!("index \"{}\" does not exist", name.name)));
        };
        self.info.actor(catalog).require_dropper(catalog, (table.oid, table.space), ("index", &index.name))?;
        let shown = shown_relation(table.space, &index.name, catalog);
        if index.is_constraint() {
            let (name, on) = (&index.name, shown_relation(table.space, &table.name, catalog));
            let message = format!("cannot drop index {shown} because constraint {name} on table {on} requires it");
            let hint = format!("You can drop constraint {name} on table {on} instead.");
            return Err(EngineError::new("2BP01", message).with_hint(hint));
        }
        let needs = dependents(catalog, table, &[], |key| key.index == index.oid);
        match cascade {
            true => self.drop_dependents(&needs, notices).await?,
            false => refuse_dependents(&format!("index {shown}"), &needs, catalog, |_| format!("index {shown}"))?,
        }
        let run = async { self.cell.lock().await.open().drop_index(index).await };
        self.cancel.run(run).await?;
        self.tidy_index(&table.full_name(), index.extras.is_some()).await
    }

    async fn tidy_index(&self, table: &RelationName, has_extras: bool) -> Result<()> {
        if !has_extras {
            return Ok(());
        }
        let catalog = self.begin_statement().await;
        match catalog.table(table) {
            Some(table) => self.tidy_computed(table.clone()).await.map(drop),
            None => Ok(()),
        }
    }

    /// Drops the indexes that have an expression which names a column: they go with it.
    pub(crate) async fn drop_computed_of(&self, table: &Arc<Table>, column: &str) -> Result<Arc<Table>> {
        let computed = super::computed::computed_of(table, column);
        if computed.is_empty() {
            return Ok(table.clone());
        }
        for index in table.indexes.iter().filter(|index| index.columns.iter().any(|at| computed.contains(at))) {
            let run = async { self.cell.lock().await.open().drop_index(index).await };
            self.cancel.run(run).await?;
        }
        self.tidy_index(&table.full_name(), true).await?;
        self.alone(&table.full_name()).await
    }

    /// The computed and generated columns of a table whose column has got another name.
    pub(crate) async fn rename_computed(&self, mut table: Arc<Table>, from: &str, to: &str) -> Result<Arc<Table>> {
        let texts: Vec<(usize, String)> = table.generated().map(|(at, text)| (at, text.to_owned())).collect();
        for (at, sql) in texts {
            let check = terrace_engine::Check { name: String::new(), sql };
            let renamed = stored::renamed(std::slice::from_ref(&check), from, to)?.remove(0).sql;
            if renamed != check.sql {
                let column = ColumnDef { generated: Some(renamed), ..table.columns[at].clone() };
                table = self.change_column(&table, at, column).await?;
            }
        }
        let texts: Vec<(usize, String)> = table.computed().map(|(at, text)| (at, text.to_owned())).collect();
        for (at, text) in texts {
            let check = terrace_engine::Check { name: String::new(), sql: text.clone() };
            let renamed = stored::renamed(&[check], from, to)?.remove(0).sql;
            if renamed == text {
                continue;
            }
            let name = super::computed::title(&renamed, &table);
            let column = ColumnDef { name, default_sql: Some(renamed), ..table.columns[at].clone() };
            let alter = async { self.cell.lock().await.open().alter_column(&table, at, column).await };
            table = self.cancel.run(alter).await?;
        }
        Ok(table)
    }
}

/// Whether an expression is the same as that of a computed column.
pub(crate) fn is_same(table: &Table, written: &str, computed: &str) -> bool {
    let Ok(text) = stored::constraint(written, &table.name) else { return false };
    let computed = stored::of_computed(computed);
    let shown = |text: &str| shown::value(text, &table.columns, false);
    text == computed || shown(&text).is_some_and(|text| shown(computed) == Some(text))
}
