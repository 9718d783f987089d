//! ALTER SEQUENCE, and what makes a column an identity column or a plain one again.
//!
//! 1. A sequence that is altered gets a new identity with a row of its own, as by TRUNCATE ... RESTART IDENTITY: so it
//!    is transactional, and what was reserved of the old one is given to nobody.
use crate::error::{missing_relation, undefined_column};
use crate::parse::identity::Identity;
use crate::parse::relation;
use crate::parse::sequence_calls::sequence_of;
use crate::statement::ddl::{choose_name, column_def, duplicate};
use crate::statement::outcome::notice;
use crate::statement::run::Run;
use crate::statement::sequence::{
    Limits, NewSequence, Numbering, apart_from_name, int, mark_of, number, numbering, once, only_row, stated_type,
    type_of,
};
use crate::statement::target::Target;
use crate::values::is_owned;
use crate::values::is_sequence;
use std::sync::Arc;
use terrace_engine::{Catalog, ColumnDef, DataType, Datum, EngineError, Result, Table};
use terrace_grammar::statement::{AlterSequence, Column, Ident, Name, SequenceOption, SequenceOptionKind as Kind};

/// The row of a sequence with what the options change of it.
fn changed(sequence: &Table, row: &[Datum], options: &[SequenceOption]) -> Result<Vec<Datum>> {
    once(options)?;
    let before = type_of(sequence, row);
    let stated = stated_type(options)?;
    let of = stated.unwrap_or(before);
    let mut limits = Limits::of_row(row);
    if stated.is_some() {
        limits.follow(before, of);
    }
    let mut restart = None;
    for option in options {
        match &option.kind {
            Kind::Restart(value) => restart = Some(value.as_ref().map(number).transpose()?),
            Kind::OwnedBy(_) | Kind::As(_) => {}
            kind => limits.take(kind)?,
        }
    }
    let settled = limits.settle(of)?;
    let (last, called) = match restart {
        Some(value) => (value.unwrap_or(settled.start), Datum::Bool(false)),
        None => (int(&row[0]), row[1].clone()),
    };
    let outside = |what: &str, bound: i64, than: &str| {
        EngineError::new("22023", format!("RESTART value ({last}) cannot be {than} than {what} ({bound})"))
    };
    if last < settled.min {
        return Err(outside("MINVALUE", settled.min, "less"));
    }
    if last > settled.max {
        return Err(outside("MAXVALUE", settled.max, "greater"));
    }
    Ok(settled.row(Datum::Int8(last), called))
}

/// OWNED BY: whether a column is to own a sequence. 55000 where that is in another schema.
fn owner(options: &[SequenceOption], sequence: &Table, catalog: &Catalog) -> Result<Option<bool>> {
    let named = options.iter().find_map(|option| match &option.kind {
        Kind::OwnedBy(name) => Some(name),
        _ => None,
    });
    let Some(name) = named else { return Ok(None) };
    if name.parts().len() == 1 && name.last().name == "none" {
        return Ok(Some(false));
    }
    let invalid = || {
        let hint = "Specify OWNED BY table.column or OWNED BY NONE.";
        EngineError::new("42601", "invalid OWNED BY option").with_hint(hint)
    };
    let [of @ .., column] = name.parts() else { return Err(invalid()) };
    if of.is_empty() {
        return Err(invalid());
    }
    let table = relation(&Name::new(of.to_vec()))?;
    let found = catalog.table(&table).ok_or_else(|| missing_relation(catalog, &table))?;
    if found.space != sequence.space {
        let message = "sequence must be in same schema as table it is linked to";
        return Err(EngineError::new("55000", message));
    }
    found.column(&column.name).ok_or_else(|| undefined_column(&column.name, &table.name))?;
    Ok(Some(true))
}

/// 0A000: the sequence of an identity column goes with it.
fn refuse_of_identity(sequence: &Table, catalog: &Catalog) -> Result<()> {
    let name = sequence.full_name();
    let numbers = |column: &ColumnDef| !column.dropped && sequence_of(column).is_some_and(|of| of == name);
    let is_identity = |column: &ColumnDef| Identity::of(column).is_some() && numbers(column);
    match catalog.tables().find(|table| table.columns.iter().any(is_identity)) {
        Some(table) => {
            let error = EngineError::new("0A000", "cannot change ownership of identity sequence");
            let detail = format!("Sequence \"{}\" is linked to table \"{}\".", sequence.name, table.name);
            Err(error.with_detail(detail))
        }
        None => Ok(()),
    }
}

impl Run<'_> {
    pub(crate) async fn alter_sequence(&self, alter: &AlterSequence) -> Result<Vec<EngineError>> {
        let name = relation(&alter.name)?;
        let catalog = self.begin_statement().await;
        let Some(sequence) = catalog.table(&name) else {
            let missing = missing_relation(&catalog, &name);
            return match alter.if_exists {
                true => Ok(vec![notice("00000", format!("{}, skipping", missing.message))]),
                false => Err(missing),
            };
        };
        self.require_owner_named(&name).await?;
        let owner = owner(&alter.options, sequence, &catalog)?;
        if owner.is_some() {
            refuse_of_identity(sequence, &catalog)?;
        }
        let is_one = |table: &Table| match is_sequence(table) {
            true => Ok(()),
            false => Err(EngineError::new("42809", format!("\"{}\" is not a sequence", table.name))),
        };
        let old = self.alone_if(&name, is_one).await?;
        let mut said = None;
        let change = |row: &[Datum]| {
            let of = stated_type(&alter.options)?.unwrap_or_else(|| type_of(&old, row));
            let row = changed(&old, row, &alter.options)?;
            said = mark_of(owner.unwrap_or_else(|| is_owned(&old)), of, int(&row[5]));
            Ok(row)
        };
        let mut table = self.renewed(&old, change).await?;
        let at = table.columns.len() - 1;
        if table.columns[at].default_sql != said {
            let mark = ColumnDef { default_sql: said, ..table.columns[at].clone() };
            let change = async { self.cell.lock().await.open().alter_column(&table, at, mark).await };
            table = self.cancel.run(change).await?;
        }
        assert!(is_sequence(&table), "it is a sequence as before");
        Ok(vec![])
    }

    /// The sequence with another row (invariant 1). It is locked for this alone.
    pub(crate) async fn renewed(
        &self,
        old: &Arc<Table>,
        mut change: impl FnMut(&[Datum]) -> Result<Vec<Datum>>,
    ) -> Result<Arc<Table>> {
        let renew = async {
            // Nobody reserves meanwhile: who does has locked the sequence, too.
            let reserved = self.reserved(old).await;
            let reserved = reserved.lock().await;
            let mut slot = self.cell.lock().await;
            let txn = slot.open();
            txn.begin_statement();
            let mut row = only_row(txn, old).await?.1;
            if let Some(given) = reserved.given.filter(|_| !reserved.ahead.is_empty()) {
                (row[0], row[1]) = (Datum::Int8(given), Datum::Bool(true));
            }
            let row = change(&row)?;
            let new = txn.truncate_table(old).await?;
            txn.insert(&new, &row).await?;
            // `currval` still answers the value that the session got before.
            if let Some(given) = slot.given.values.get(&old.oid).copied() {
                slot.given.values.insert(new.oid, given);
            }
            Ok(new)
        };
        self.cancel.run(renew).await
    }

    /// ALTER COLUMN ... ADD GENERATED ... AS IDENTITY.
    pub(super) async fn add_identity(
        &self,
        (table, column): (&Arc<Table>, &Ident),
        identity: Identity,
        options: &[SequenceOption],
    ) -> Result<Arc<Table>> {
        let (at, definition) = self.definition(table, column)?;
        let of = || format!("column \"{}\" of relation \"{}\"", definition.name, table.name);
        let refused = |state, message: String| Err(EngineError::new(state, message));
        let numbered = match definition.data_type {
            of @ (DataType::Int2 | DataType::Int4 | DataType::Int8) => of,
            _ => return refused("22023", "identity column type must be smallint, integer, or bigint".into()),
        };
        if !definition.not_null {
            return refused("55000", format!("{} must be declared NOT NULL before identity can be added", of()));
        }
        if Identity::of(&definition).is_some() {
            return refused("55000", format!("{} is already an identity column", of()));
        }
        if definition.default_sql.is_some() || definition.generated.is_some() {
            return refused("55000", format!("{} already has a default value", of()));
        }
        let catalog = self.begin_statement().await;
        let (named, options) = apart_from_name(options)?;
        let taken = |n: &str| catalog.name_taken(table.space, n);
        let name = match named {
            Some(named) if taken(&named) => return Err(duplicate(&named)),
            Some(named) => named,
            None => choose_name(&[&table.name, &definition.name], "seq", &taken),
        };
        let sequence = Target::of_part(table, name);
        let text = numbering(&sequence);
        self.create_sequence(&NewSequence::owned(sequence, numbered, &options)?).await?;
        let default_sql = Some(self.kept_default(&definition, &identity.marked(&text)).await?);
        self.change_column(table, at, ColumnDef { default_sql, ..definition }).await
    }

    /// ADD COLUMN of a serial or identity column: rows that are there get numbers, too. `plain`: the column without
    /// what says that it is numbered.
    pub(super) async fn add_numbered(
        &self,
        table: &Arc<Table>,
        (column, plain): (&Column, Column),
        (numbered, options, identity): Numbering,
        (if_not_exists, notices): (bool, &mut Vec<EngineError>),
    ) -> Result<Arc<Table>> {
        let bare = Column { constraints: vec![], ..plain.clone() };
        let added = Box::pin(self.add_column(table, &bare, if_not_exists, notices)).await?;
        let at = added.columns.len() - 1;
        if added.columns.len() == table.columns.len() {
            return Ok(added);
        }
        let mut keys = vec![];
        let catalog = self.begin_statement().await;
        let given = column_def(&plain, at, &mut keys, &catalog)?;
        if given.default_sql.is_some() || given.generated.is_some() {
            let what = match identity {
                Some(_) => "both default and identity",
                None => "multiple default values",
            };
            let (column, table) = (&column.name.name, &table.name);
            let message = format!("{what} specified for column \"{column}\" of table \"{table}\"");
            return Err(EngineError::new("42601", message));
        }
        if !matches!(given.data_type, DataType::Int2 | DataType::Int4 | DataType::Int8) {
            return Err(EngineError::new("22023", "identity column type must be smallint, integer, or bigint"));
        }
        let (named, options) = apart_from_name(&options)?;
        let taken = |n: &str| catalog.name_taken(table.space, n);
        let name = match named {
            Some(named) if taken(&named) => return Err(duplicate(&named)),
            Some(named) => named,
            None => choose_name(&[&table.name, &given.name], "seq", &taken),
        };
        let sequence = Target::of_part(&added, name);
        let text = numbering(&sequence);
        let text = identity.map_or(text.clone(), |identity| identity.marked(&text));
        self.create_sequence(&NewSequence::owned(sequence, numbered, &options)?).await?;
        let definition = added.columns[at].clone();
        let default_sql = Some(self.kept_default(&definition, &text).await?);
        let table = self.change_column(&added, at, ColumnDef { default_sql, ..definition }).await?;
        self.fill_in(&table, Some(at)).await?;
        let definition = table.columns[at].clone().not_null();
        let table = self.change_column(&table, at, definition).await?;
        self.add_constraints(table, &plain, keys).await
    }

    /// ALTER COLUMN ... SET GENERATED, RESTART, and SET of a sequence's options.
    pub(super) async fn set_identity(
        &self,
        (table, column): (&Arc<Table>, &Ident),
        always: Option<bool>,
        options: &[SequenceOption],
    ) -> Result<Arc<Table>> {
        let (at, definition) = self.definition(table, column)?;
        let Some(before) = Identity::of(&definition) else {
            let message =
                format!("column \"{}\" of relation \"{}\" is not an identity column", definition.name, table.name);
            return Err(EngineError::new("55000", message));
        };
        if !options.is_empty() {
            let name =
                sequence_of(&definition).ok_or_else(|| EngineError::internal("an identity column has a sequence"))?;
            let sequence = self.alone_if(&name, |_| Ok(())).await?;
            self.renewed(&sequence, |row| changed(&sequence, row, options)).await?;
        }
        let after = match always {
            Some(true) => Identity::Always,
            Some(false) => Identity::ByDefault,
            None => before,
        };
        let default_sql = definition.default_sql.as_deref().map(|default| after.marked(before.unmarked(default)));
        self.change_column(table, at, ColumnDef { default_sql, ..definition }).await
    }

    /// ALTER COLUMN ... DROP IDENTITY. Its sequence goes with it.
    pub(super) async fn drop_identity(
        &self,
        (table, column): (&Arc<Table>, &Ident),
        if_exists: bool,
        notices: &mut Vec<EngineError>,
    ) -> Result<Arc<Table>> {
        let (at, definition) = self.definition(table, column)?;
        if Identity::of(&definition).is_none() {
            let message =
                format!("column \"{}\" of relation \"{}\" is not an identity column", definition.name, table.name);
            return match if_exists {
                true => {
                    notices.push(notice("00000", format!("{message}, skipping")));
                    Ok(table.clone())
                }
                false => Err(EngineError::new("55000", message)),
            };
        }
        self.drop_owned(std::slice::from_ref(&definition)).await?;
        self.change_column(table, at, ColumnDef { default_sql: None, ..definition }).await
    }
}
