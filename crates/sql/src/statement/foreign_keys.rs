//! FOREIGN KEY: its definition, and what a change of referenced rows does to others.
//!
//! 1. The engine finds the rows that have to be changed; they are changed here, because constraints and defaults are
//!    SQL text. It is done at the end of each statement, until the engine finds nothing more.
//! 2. A row that another transaction has changed meanwhile is changed in its newest version, if that still refers to
//!    the key.
//! 3. CASCADE of DROP drops the foreign keys that refer to what goes, and nothing else.
use crate::error::{missing_relation, unsupported};
use crate::parse::qualified::shown_relation;
use crate::parse::relation;
use crate::parse::sequence_calls::sequence_of;
use crate::pgcatalog::SessionInfo;
use crate::statement::checks::Finishing;
use crate::statement::ddl::{check_name, choose_name, position};
use crate::statement::outcome::notice;
use crate::statement::run::Run;
use crate::values::{check_not_null, is_sequence, live_columns};
use std::collections::BTreeSet;
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::{
    Action, Catalog, Change, Consequence, DataType, Datum, EngineError, ForeignKey, Index, RelationName, Result, Table,
    UpdateOutcome, may_refer,
};
use terrace_grammar::statement::{
    ColumnConstraintKind, CreateTable, Deferral, Expr, ExprKind, Ident, Literal, Name, Reference, ReferenceAction,
    TableConstraint, TableConstraintKind,
};
use terrace_storage::ObjectId;

/// PostgreSQL's limit on the columns of a foreign key.
const MAX_COLUMNS: usize = 32;
/// Rows that are checked at a time.
const BATCH: usize = 1024;

/// A foreign key that will be made.
pub(crate) struct NewKey<'n> {
    name: Option<&'n Ident>,
    columns: Vec<&'n Ident>,
    reference: &'n Reference,
    deferral: Deferral,
    not_valid: bool,
}

impl<'n> NewKey<'n> {
    /// Of a constraint of a table, if it is one.
    pub(crate) fn of(constraint: &'n TableConstraint) -> Option<NewKey<'n>> {
        let TableConstraint { at: _, name, kind, deferral, not_valid } = constraint;
        let TableConstraintKind::ForeignKey { columns, reference } = kind else { return None };
        let (name, columns) = (name.as_ref(), columns.iter().collect());
        Some(NewKey { name, columns, reference, deferral: *deferral, not_valid: *not_valid })
    }

    /// Those of a column.
    pub(crate) fn of_column(column: &'n terrace_grammar::statement::Column) -> Vec<NewKey<'n>> {
        let of = |constraint: &'n terrace_grammar::statement::ColumnConstraint| {
            let ColumnConstraintKind::References(reference) = &constraint.kind else { return None };
            let (name, columns) = (constraint.name.as_ref(), vec![&column.name]);
            Some(NewKey { name, columns, reference, deferral: constraint.deferral, not_valid: false })
        };
        column.constraints.iter().filter_map(of).collect()
    }

    /// Those of CREATE TABLE. There are no rows yet, so they hold.
    pub(crate) fn of_table(create: &'n CreateTable) -> Vec<NewKey<'n>> {
        let of_columns = create.columns.iter().flat_map(NewKey::of_column);
        let all = of_columns.chain(create.constraints.iter().filter_map(NewKey::of));
        all.map(|new| NewKey { not_valid: false, ..new }).collect()
    }

    /// The definition, for a table that exists by now.
    fn definition(&self, table: &Table, catalog: &Catalog, info: &SessionInfo) -> Result<ForeignKey> {
        let of = |table: &Table, name: &Ident| {
            let missing = || format!("column \"{}\" referenced in foreign key constraint does not exist", name.name);
            position(&table.columns, &name.name).ok_or_else(|| EngineError::new("42703", missing()))
        };
        info.permit_lookup(catalog, &relation(&self.reference.table)?)?;
        let referenced = referenced(&self.reference.table, catalog)?;
        if table.temporary.is_some() != referenced.temporary.is_some() {
            let kind = if table.temporary.is_some() { "temporary" } else { "permanent" };
            let message = format!("constraints on {kind} tables may reference only {kind} tables");
            return Err(EngineError::new("42P16", message));
        }
        let columns = self.columns.iter().map(|name| of(table, name)).collect::<Result<Vec<usize>>>()?;
        if columns.len() > MAX_COLUMNS {
            let message = format!("cannot have more than {MAX_COLUMNS} keys in a foreign key");
            return Err(EngineError::new("54011", message));
        }
        let named = self.reference.columns.iter().map(|name| of(referenced, name)).collect::<Result<Vec<usize>>>()?;
        let (key, index) = match named.is_empty() {
            true => {
                let none = || format!("there is no primary key for referenced table \"{}\"", referenced.name);
                let index = referenced.primary_key().ok_or_else(|| EngineError::new("42704", none()))?;
                (index.columns.clone(), immediate(referenced, index)?)
            }
            false => (named.clone(), unique_index(referenced, &named)?),
        };
        let named = key.iter().copied();
        info.actor(catalog).permit_columns(catalog, referenced, Rights::REFERENCES, named)?;
        if key.len() != columns.len() {
            let message = "number of referencing and referenced columns for foreign key disagree";
            return Err(EngineError::new("42830", message));
        }
        let name = self.name_for(table, &columns)?;
        for (from, to) in columns.iter().zip(&key) {
            check_types((table, *from), (referenced, *to), &name)?;
        }
        let (on_delete, set) = action(&self.reference.on_delete);
        let on_update = action(&self.reference.on_update).0;
        if columns.iter().any(|at| table.columns[*at].generated.is_some()) {
            refuse_of_generated(on_update, on_delete)?;
        }
        let mut set = set.iter().map(|name| of(table, name)).collect::<Result<Vec<usize>>>()?;
        let mut seen = BTreeSet::new();
        set.retain(|at| seen.insert(*at));
        if let Some(at) = set.iter().find(|at| !columns.contains(at)) {
            let column = &table.columns[*at].name;
            let message = format!("column \"{column}\" referenced in ON DELETE SET action must be part of foreign key");
            return Err(EngineError::new("42P10", message));
        }
        Ok(ForeignKey {
            oid: ObjectId(0),
            name,
            table: table.oid,
            columns,
            referenced: referenced.oid,
            key,
            index,
            on_delete,
            on_update,
            set,
            full: self.reference.full,
            deferrable: self.deferral.deferrable,
            deferred: self.deferral.initially_deferred,
            validated: !self.not_valid,
        })
    }

    fn name_for(&self, table: &Table, columns: &[usize]) -> Result<String> {
        let taken = |name: &str| constraint_exists(table, name);
        let name = match self.name {
            Some(given) if taken(&given.name) => {
                return Err(two_constraints(&given.name, &table.name));
            }
            Some(given) => given.name.clone(),
            None => {
                let columns = columns.iter().map(|at| table.columns[*at].name.as_str());
                choose_name(&[table.name.as_str()].into_iter().chain(columns).collect::<Vec<_>>(), "fkey", &taken)
            }
        };
        check_name(&name)?;
        Ok(name)
    }
}

/// 42710: a constraint of the table has the name.
pub(crate) fn two_constraints(name: &str, table: &str) -> EngineError {
    EngineError::new("42710", format!("constraint \"{name}\" for relation \"{table}\" already exists"))
}

/// Whether a constraint of the table has the name.
pub(crate) fn constraint_exists(table: &Table, name: &str) -> bool {
    table.checks.iter().any(|check| check.name == name)
        || table.foreign_keys.iter().any(|key| key.name == name)
        || table.indexes.iter().any(|index| index.is_constraint() && index.name == name)
}

fn referenced<'c>(name: &Name, catalog: &'c Catalog) -> Result<&'c Arc<Table>> {
    let name = relation(name)?;
    match catalog.table(&name) {
        Some(table) if is_sequence(table) => {
            Err(EngineError::new("42809", format!("referenced relation \"{name}\" is not a table")))
        }
        Some(table) => Ok(table),
        None if catalog.relation_exists(&name) => {
            Err(EngineError::new("42809", format!("referenced relation \"{name}\" is not a table")))
        }
        None => Err(missing_relation(catalog, &name)),
    }
}

/// The oldest unique index of exactly these columns, in any order, whether it stands for a constraint or not.
fn unique_index(table: &Table, columns: &[usize]) -> Result<ObjectId> {
    let repeated = columns.iter().enumerate().any(|(at, column)| columns[..at].contains(column));
    if repeated {
        let message = "foreign key referenced-columns list must not contain duplicates";
        return Err(EngineError::new("42830", message));
    }
    let same = |index: &[usize]| index.len() == columns.len() && index.iter().all(|at| columns.contains(at));
    let all = table.indexes.iter().filter(|index| index.unique && !index.is_partial() && same(&index.columns));
    let found = all.min_by_key(|index| (!index.is_immediate(), index.oid));
    let none = || format!("there is no unique constraint matching given keys for referenced table \"{}\"", table.name);
    immediate(table, found.ok_or_else(|| EngineError::new("42830", none()))?)
}

/// 55000 where two rows may have the key for a while.
fn immediate(table: &Table, index: &Index) -> Result<ObjectId> {
    if index.is_immediate() {
        return Ok(index.oid);
    }
    let kind = if index.primary { "primary key" } else { "unique constraint" };
    let message = format!("cannot use a deferrable {kind} for referenced table \"{}\"", table.name);
    Err(EngineError::new("55000", message))
}

fn check_types((table, from): (&Table, usize), (referenced, to): (&Table, usize), name: &str) -> Result<()> {
    use DataType::*;
    let (a, b) = (table.columns[from].data_type, referenced.columns[to].data_type);
    if may_refer(a, b) {
        return Ok(());
    }
    let times = |t: DataType| matches!(t, Date | Timestamp | Timestamptz);
    let numbers = |t: DataType| matches!(t, Int2 | Int4 | Int8 | Numeric(_));
    // PostgreSQL compares them.
    let compared = times(a) && times(b) || a.is_text() && b.is_text() || numbers(a) && matches!(b, Float4 | Float8);
    if compared {
        return Err(unsupported(format!("a foreign key of {} that refers to {}", a.base_name(), b.base_name())));
    }
    let error = EngineError::new("42804", format!("foreign key constraint \"{name}\" cannot be implemented"));
    Err(error.with_detail(format!(
        "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
        table.columns[from].name,
        referenced.columns[to].name,
        a.base_name(),
        b.base_name()
    )))
}

/// 42601: a generated column gets its value of its row.
fn refuse_of_generated(on_update: Action, on_delete: Action) -> Result<()> {
    let set = |action: Action| matches!(action, Action::SetNull | Action::SetDefault);
    let clause = match (set(on_update) || on_update == Action::Cascade, set(on_delete)) {
        (true, _) => "ON UPDATE",
        (false, true) => "ON DELETE",
        (false, false) => return Ok(()),
    };
    let message = format!("invalid {clause} action for foreign key constraint containing generated column");
    Err(EngineError::new("42601", message))
}

fn action(action: &ReferenceAction) -> (Action, &[Ident]) {
    match action {
        ReferenceAction::NoAction => (Action::NoAction, &[]),
        ReferenceAction::Restrict => (Action::Restrict, &[]),
        ReferenceAction::Cascade => (Action::Cascade, &[]),
        ReferenceAction::SetNull(columns) => (Action::SetNull, columns),
        ReferenceAction::SetDefault(columns) => (Action::SetDefault, columns),
    }
}

/// The foreign keys and unique indexes that SET CONSTRAINTS means by a name. (CHECK cannot be deferred.)
pub(crate) fn of_name(catalog: &Catalog, name: &Name) -> Result<Vec<ObjectId>> {
    let name = relation(name)?;
    let foreign = catalog.tables().flat_map(|table| &table.foreign_keys).filter(|key| key.name == name.name);
    let unique = catalog.tables().flat_map(|table| &table.indexes).filter(|index| index.name == name.name);
    let found: Vec<(ObjectId, bool)> = foreign
        .map(|key| (key.oid, key.deferrable))
        .chain(unique.filter(|index| index.is_constraint()).map(|index| (index.oid, !index.is_immediate())))
        .collect();
    let fixed = || EngineError::new("42809", format!("constraint \"{name}\" is not deferrable"));
    if found.iter().any(|(_, deferrable)| !deferrable) {
        return Err(fixed());
    }
    if !found.is_empty() {
        return Ok(found.iter().map(|(oid, _)| *oid).collect());
    }
    match catalog.tables().any(|table| constraint_exists(table, &name.name)) {
        true => Err(fixed()),
        false => Err(EngineError::new("42704", format!("constraint \"{name}\" does not exist"))),
    }
}

/// The foreign keys of other tables that refer to a table, where `needed` says that they need what goes; each with the
/// name of its table. `also`: names of tables that go, too.
pub(crate) fn dependents(
    catalog: &Catalog,
    table: &Table,
    also: &[RelationName],
    needed: impl Fn(&ForeignKey) -> bool,
) -> Vec<(Arc<ForeignKey>, Arc<Table>)> {
    let with_table = |key: &Arc<ForeignKey>| Some((key.clone(), catalog.table_by_oid(key.table)?.clone()));
    let others = |(_, referring): &(Arc<ForeignKey>, Arc<Table>)| !also.contains(&referring.full_name());
    table.referenced_by.iter().filter(|key| needed(key)).filter_map(with_table).filter(others).collect()
}

/// 2BP01 where something depends on `what`, of which `object` is needed.
pub(crate) fn refuse_dependents(
    what: &str,
    dependents: &[(Arc<ForeignKey>, Arc<Table>)],
    catalog: &Catalog,
    object: impl Fn(&ForeignKey) -> String,
) -> Result<()> {
    if dependents.is_empty() {
        return Ok(());
    }
    let line = |(key, table): &(Arc<ForeignKey>, Arc<Table>)| {
        let on = shown_relation(table.space, &table.name, catalog);
        format!("constraint {} on table {on} depends on {}", key.name, object(key))
    };
    let lines: Vec<String> = dependents.iter().map(line).collect();
    let them = if what.ends_with("(s)") { "them" } else { "it" };
    let message = format!("cannot drop {what} because other objects depend on {them}");
    let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
    Err(EngineError::new("2BP01", message).with_detail(lines.join("\n")).with_hint(hint))
}

impl Run<'_> {
    /// Adds foreign keys to a table that this transaction has for itself alone.
    pub(crate) async fn add_foreign_keys(&self, mut table: Arc<Table>, new: &[NewKey<'_>]) -> Result<Arc<Table>> {
        for new in new {
            let catalog = self.begin_statement().await;
            let definition = new.definition(&table, &catalog, self.info)?;
            let add = async { self.cell.lock().await.open().add_foreign_key(&table, definition).await };
            table = self.cancel.run(add).await?;
        }
        Ok(table)
    }

    pub(crate) async fn alter_foreign_key(&self, table: &Table, key: ForeignKey) -> Result<Arc<Table>> {
        let alter = async { self.cell.lock().await.open().alter_foreign_key(table, key).await };
        self.cancel.run(alter).await
    }

    pub(crate) async fn drop_foreign_key(&self, table: &Table, key: ObjectId) -> Result<Arc<Table>> {
        let drop = async { self.cell.lock().await.open().drop_foreign_key(table, key).await };
        self.cancel.run(drop).await
    }

    /// CASCADE (invariant 3): a notice for each foreign key, or one with all.
    pub(crate) async fn drop_dependents(
        &self,
        dependents: &[(Arc<ForeignKey>, Arc<Table>)],
        notices: &mut Vec<EngineError>,
    ) -> Result<()> {
        for (key, table) in dependents {
            let table = self.alone(&table.full_name()).await?;
            self.drop_foreign_key(&table, key.oid).await?;
        }
        let catalog = self.begin_statement().await;
        let name = |(key, table): &(Arc<ForeignKey>, Arc<Table>)| {
            format!("constraint {} on table {}", key.name, shown_relation(table.space, &table.name, &catalog))
        };
        match dependents {
            [] => {}
            [one] => notices.push(notice("00000", format!("drop cascades to {}", name(one)))),
            all => {
                let lines: Vec<String> = all.iter().map(|one| format!("drop cascades to {}", name(one))).collect();
                let message = format!("drop cascades to {} other objects", all.len());
                notices.push(notice("00000", message).with_detail(lines.join("\n")));
            }
        }
        Ok(())
    }

    /// Ends a statement that has changed rows (invariant 1). 23503 where a foreign key does not hold.
    pub(crate) async fn follow_foreign_keys(&self) -> Result<()> {
        if self.earlier.is_some() {
            return Ok(());
        }
        loop {
            let next = async {
                let mut slot = self.cell.lock().await;
                match slot.open() {
                    txn if txn.has_consequences() => txn.next_consequence().await,
                    _ => Ok(None),
                }
            };
            let Some(consequence) = self.cancel.run(Box::pin(next)).await? else { return Ok(()) };
            Box::pin(self.change_referring(consequence)).await?;
        }
    }

    async fn change_referring(&self, consequence: Consequence) -> Result<()> {
        let table = &consequence.table;
        let Change::Set(set) = &consequence.change else {
            for at in 0..consequence.rows.len() {
                self.change_one(&consequence, at, None).await?;
            }
            return Ok(());
        };
        let defaulted: Vec<usize> = set.iter().filter(|(_, value)| value.is_none()).map(|(at, _)| *at).collect();
        let varying = defaulted.iter().any(|at| sequence_of(&table.columns[*at]).is_some())
            || !self.varying_defaults(table, &defaulted).await?.is_empty();
        let mut values = self.set_values(table, set).await?;
        let checking = self.checking(table).await?;
        let mut at = 0;
        for rows in consequence.rows.chunks(BATCH) {
            let mut new = vec![];
            for (number, (_, row, _)) in rows.iter().enumerate() {
                if varying && at + number > 0 {
                    values = self.set_values(table, set).await?;
                }
                let row = with(row.view(table).to_datums(), &values);
                check_not_null(table, &row)?;
                new.push((row, values.clone()));
            }
            if let Some(by) = &checking {
                let mut rows: Vec<&mut Vec<Datum>> = new.iter_mut().map(|(row, _)| row).collect();
                self.finish_by(table, by, &mut rows).await?;
            }
            for (row, values) in new {
                self.change_one(&consequence, at, Some((row, &values, &checking))).await?;
                at += 1;
            }
        }
        Ok(())
    }

    /// The columns that are set, with their values.
    async fn set_values(&self, table: &Arc<Table>, set: &[(usize, Option<Datum>)]) -> Result<Vec<(usize, Datum)>> {
        let known = |(at, value): &(usize, Option<Datum>)| Some((*at, value.clone()?));
        if let Some(all) = set.iter().map(known).collect() {
            return Ok(all);
        }
        let live: Vec<usize> = live_columns(table).map(|(at, _)| at).collect();
        let cell = |at: &usize| match set.iter().any(|(of, value)| of == at && value.is_none()) {
            true => Expr { at: 0, kind: ExprKind::Default },
            false => Expr { at: 0, kind: ExprKind::Literal(Literal::Null) },
        };
        let cells = live.iter().map(cell).collect();
        let defaults = self.value_rows(table, &live, &[cells], None).await?.remove(0);
        Ok(set.iter().map(|(at, value)| (*at, value.clone().unwrap_or_else(|| defaults[*at].clone()))).collect())
    }

    /// Deletes a row, or gives it these values (invariant 2).
    async fn change_one(&self, consequence: &Consequence, at: usize, mut new: Option<NewRow<'_>>) -> Result<()> {
        let table = &consequence.table;
        let (rid, _, mut version) = consequence.rows[at];
        loop {
            let attempt = async {
                let mut slot = self.cell.lock().await;
                match &new {
                    Some((row, ..)) => slot.open().update(table, rid, version, row).await,
                    None => slot.open().delete(table, rid, version).await,
                }
            };
            let (row, newer) = match self.cancel.run(attempt).await? {
                UpdateOutcome::Done | UpdateOutcome::Gone => return Ok(()),
                UpdateOutcome::Changed { row, version } if consequence.applies(&row) => (row, version),
                UpdateOutcome::Changed { .. } => return Ok(()),
            };
            version = newer;
            if let Some((new, values, checking)) = &mut new {
                *new = with(row.view(table).to_datums(), values);
                check_not_null(table, new)?;
                if let Some(by) = checking {
                    self.finish_by(table, by, &mut [new]).await?;
                }
            }
        }
    }
}

/// A row, the values that were put into it, and what checks it.
type NewRow<'r> = (Vec<Datum>, &'r [(usize, Datum)], &'r Option<Finishing>);

fn with(mut row: Vec<Datum>, values: &[(usize, Datum)]) -> Vec<Datum> {
    values.iter().for_each(|(at, value)| row[*at] = value.clone());
    row
}
