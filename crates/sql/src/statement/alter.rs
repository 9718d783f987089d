//! ALTER TABLE.
//!
//! 1. The table is this transaction's alone before the first action is looked at; each action sees what those before it
//!    left.
//! 2. A default given with a new column is evaluated once, for the rows that are there; so it must give the same for
//!    all of them.
use crate::error::{undefined_column, unsupported};
use crate::parse::sequence_calls::call_of;
use crate::parse::{fold, object_name};
use crate::plan::changes::{literal, values_query};
use crate::statement::checks;
use crate::statement::ddl::{
    Key, check_name, choose_name, column_def, duplicate, position, relation_exists, table_key,
};
use crate::statement::insert::is_volatile;
use crate::statement::outcome::notice;
use crate::statement::run::Run;
use crate::values::{assign_array, check_assignable};
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef as SqlColumn, ColumnOption, DropBehavior, Expr,
    Ident, RenameTableNameKind, SqlOption, TableConstraint,
};
use std::sync::Arc;
use terrace_engine::{ColumnDef, Datum, EngineError, IndexSpec, Result, Table};

type Notices = Vec<EngineError>;

impl Run<'_> {
    pub(crate) async fn alter_table(&self, alter: &AlterTable) -> Result<Notices> {
        let AlterTable { name, if_exists, only: _, operations, location, on_cluster, table_type, end_token: _ } = alter;
        if location.is_some() || on_cluster.is_some() || table_type.is_some() {
            return Err(unsupported("this form of ALTER TABLE"));
        }
        let name = object_name(name)?;
        let mut table = match self.alone(&name).await {
            Err(error) if *if_exists && error.state.0 == "42P01" => {
                return Ok(vec![notice("42P01", format!("relation \"{name}\" does not exist, skipping"))]);
            }
            other => other?,
        };
        let mut notices = vec![];
        for operation in operations {
            table = Box::pin(self.alter_one(&table, operation, &mut notices)).await?;
        }
        Ok(notices)
    }

    async fn alter_one(
        &self,
        table: &Arc<Table>,
        operation: &AlterTableOperation,
        notices: &mut Notices,
    ) -> Result<Arc<Table>> {
        use AlterTableOperation as Op;
        match operation {
            Op::AddConstraint { constraint: TableConstraint::Check(check), not_valid: false } => {
                self.add_check(table, check, check.name.as_ref(), None).await
            }
            Op::AddConstraint { constraint, not_valid: false } => {
                self.add_key(table, table_key(constraint, &table.columns)?).await
            }
            Op::AddColumn { if_not_exists, column_def, column_position: None, .. } => {
                self.add_column(table, column_def, *if_not_exists, notices).await
            }
            Op::DropColumn { column_names, if_exists, drop_behavior, .. } => {
                let mut table = table.clone();
                for column in column_names {
                    table = self.drop_column(&table, column, *if_exists, drop_behavior, notices).await?;
                }
                Ok(table)
            }
            Op::DropConstraint { if_exists, name, drop_behavior } => {
                refuse_cascade(drop_behavior)?;
                self.drop_constraint(table, name, *if_exists, notices).await
            }
            Op::RenameColumn { old_column_name, new_column_name } => {
                let at = self.column(table, old_column_name)?;
                let name = fold(new_column_name);
                let checks = checks::renamed(&table.checks, &table.columns[at].name, &name)?;
                let table = self.change_column(table, at, ColumnDef { name, ..table.columns[at].clone() }).await?;
                if checks.is_empty() { Ok(table) } else { self.set_checks(&table, checks).await }
            }
            Op::RenameTable { table_name: RenameTableNameKind::To(name) } => {
                let name = object_name(name)?;
                check_name(&name)?;
                let rename = async { self.cell.lock().await.open().rename_table(table, &name).await };
                self.cancel.run(rename).await
            }
            Op::RenameConstraint { old_name, new_name } => self.rename_constraint(table, old_name, new_name).await,
            Op::AlterColumn { column_name, op } => self.alter_column(table, column_name, op).await,
            Op::SetOptionsParens { options } => {
                let is_fillfactor =
                    |o: &SqlOption| matches!(o, SqlOption::KeyValue { key, .. } if fold(key) == "fillfactor");
                match options.iter().all(is_fillfactor) {
                    true => notices.push(notice("01000", "pages are always filled: fillfactor has no effect")),
                    false => return Err(unsupported("this storage parameter")),
                }
                Ok(table.clone())
            }
            other => Err(unsupported(format!("ALTER TABLE {other}"))),
        }
    }

    async fn drop_constraint(
        &self,
        table: &Arc<Table>,
        name: &Ident,
        if_exists: bool,
        notices: &mut Notices,
    ) -> Result<Arc<Table>> {
        let name = fold(name);
        if table.checks.iter().any(|c| c.name == name) {
            let kept = table.checks.iter().filter(|c| c.name != name).cloned().collect();
            return self.set_checks(table, kept).await;
        }
        match table.indexes.iter().find(|i| i.unique && i.name == name) {
            Some(index) => {
                let drop = async { self.cell.lock().await.open().drop_key(table, index.oid).await };
                self.cancel.run(drop).await
            }
            None if if_exists => {
                notices.push(notice("42704", format!("{}, skipping", undefined_constraint(&name, table).message)));
                Ok(table.clone())
            }
            None => Err(undefined_constraint(&name, table)),
        }
    }

    async fn rename_constraint(&self, table: &Arc<Table>, old_name: &Ident, new_name: &Ident) -> Result<Arc<Table>> {
        let (old, new) = (fold(old_name), fold(new_name));
        check_name(&new)?;
        if let Some(at) = table.checks.iter().position(|c| c.name == old) {
            if table.checks.iter().any(|c| c.name == new) {
                let message = format!("constraint \"{new}\" for relation \"{}\" already exists", table.name);
                return Err(EngineError::new("42710", message));
            }
            let mut checks = table.checks.clone();
            checks[at].name = new;
            return self.set_checks(table, checks).await;
        }
        let index = table.indexes.iter().find(|i| i.unique && i.name == old);
        let oid = index.ok_or_else(|| undefined_constraint(&old, table))?.oid;
        let rename = async { self.cell.lock().await.open().rename_index(table, oid, &new).await };
        self.cancel.run(rename).await
    }

    fn column(&self, table: &Table, name: &Ident) -> Result<usize> {
        let name = fold(name);
        table.column(&name).ok_or_else(|| undefined_column(&name, &table.name))
    }

    async fn change_column(&self, table: &Table, at: usize, column: ColumnDef) -> Result<Arc<Table>> {
        check_name(&column.name)?;
        let change = async { self.cell.lock().await.open().alter_column(table, at, column).await };
        self.cancel.run(change).await
    }

    async fn alter_column(&self, table: &Table, name: &Ident, op: &AlterColumnOperation) -> Result<Arc<Table>> {
        let at = self.column(table, name)?;
        let mut column = table.columns[at].clone();
        match op {
            AlterColumnOperation::SetNotNull => column.not_null = true,
            AlterColumnOperation::DropNotNull => {
                if table.primary_key().is_some_and(|key| key.columns.contains(&at)) {
                    return Err(EngineError::new("42P16", format!("column \"{}\" is in a primary key", column.name)));
                }
                column.not_null = false;
            }
            AlterColumnOperation::SetDefault { value } => {
                self.check_default(value, &column).await?;
                column.default_sql = Some(crate::parse::stored::text_of(value)?);
            }
            AlterColumnOperation::DropDefault => column.default_sql = None,
            AlterColumnOperation::SetDataType { .. } => return Err(unsupported("ALTER COLUMN TYPE")),
            AlterColumnOperation::AddGenerated { .. } => return Err(unsupported("ALTER COLUMN ADD GENERATED")),
        }
        self.change_column(table, at, column).await
    }

    /// PRIMARY KEY or UNIQUE.
    async fn add_key(&self, table: &Arc<Table>, key: Key) -> Result<Arc<Table>> {
        let catalog = self.begin_statement().await;
        let taken = |n: &str| relation_exists(&catalog, n);
        let name = match key.name {
            Some(given) if taken(&given) => return Err(duplicate(&given)),
            Some(given) => given,
            None if key.primary => choose_name(&[&table.name], "pkey", &taken),
            None => {
                let columns = key.columns.iter().map(|c| table.columns[*c].name.as_str());
                choose_name(&[table.name.as_str()].into_iter().chain(columns).collect::<Vec<_>>(), "key", &taken)
            }
        };
        check_name(&name)?;
        let spec = IndexSpec { name, columns: key.columns, unique: true, primary: key.primary };
        let add = async {
            let mut slot = self.cell.lock().await;
            match key.primary {
                true => slot.open().add_primary_key(table, spec).await,
                false => slot.open().create_index(table, spec).await,
            }
        };
        self.cancel.run(add).await
    }

    async fn add_column(
        &self,
        table: &Arc<Table>,
        column: &SqlColumn,
        if_not_exists: bool,
        notices: &mut Notices,
    ) -> Result<Arc<Table>> {
        let mut keys = vec![];
        let mut definition = column_def(column, table.columns.len(), &mut keys)?;
        if table.column(&definition.name).is_some() && if_not_exists {
            let message =
                format!("column \"{}\" of relation \"{}\" already exists, skipping", definition.name, table.name);
            notices.push(notice("42701", message));
            return Ok(table.clone());
        }
        check_name(&definition.name)?;
        for option in &column.options {
            if let ColumnOption::Default(expr) = &option.option {
                self.check_default(expr, &definition).await?;
                definition.missing = self.constant(expr, &definition).await?;
            }
        }
        if keys.iter().any(|key| key.primary) && table.primary_key().is_some() {
            let message = format!("multiple primary keys for table \"{}\" are not allowed", table.name);
            return Err(EngineError::new("42P16", message));
        }
        let add = async { self.cell.lock().await.open().add_column(table, definition).await };
        let mut table = self.cancel.run(add).await?;
        for key in keys {
            table = self.add_key(&table, key).await?;
        }
        for option in &column.options {
            if let ColumnOption::Check(check) = &option.option {
                let name = option.name.as_ref().or(check.name.as_ref());
                table = self.add_check(&table, check, name, Some(&fold(&column.name))).await?;
            }
        }
        Ok(table)
    }

    /// The value of a default for rows that are there (invariant 2).
    async fn constant(&self, expr: &Expr, column: &ColumnDef) -> Result<Datum> {
        if let Some(value) = literal(expr, column) {
            return value;
        }
        if call_of(expr).is_some() {
            return Err(unsupported("a new column with a default that differs from row to row"));
        }
        let plan = self.plan(&values_query([expr.clone()].into_iter())?, None).await?;
        check_assignable(plan.schema().field(0).data_type(), column, false)?;
        if is_volatile(&plan)? {
            return Err(unsupported("a new column with a default that differs from row to row"));
        }
        let batches = self.collect(&plan, None).await?;
        let batch = batches.iter().find(|b| b.num_rows() == 1).expect("a SELECT without FROM gives one row");
        Ok(assign_array(batch.column(0), column)?.pop().expect("one row"))
    }

    async fn drop_column(
        &self,
        table: &Arc<Table>,
        name: &Ident,
        if_exists: bool,
        behavior: &Option<DropBehavior>,
        notices: &mut Notices,
    ) -> Result<Arc<Table>> {
        refuse_cascade(behavior)?;
        let folded = fold(name);
        let Some(at) = position(&table.columns, &folded) else {
            let missing = undefined_column(&folded, &table.name);
            if if_exists {
                notices.push(notice("00000", format!("{}, skipping", missing.message)));
                return Ok(table.clone());
            }
            return Err(missing);
        };
        let checks = checks::without(&table.checks, &folded)?;
        let drop = async { self.cell.lock().await.open().drop_column(table, at).await };
        let dropped = table.columns[at].clone();
        let table = self.cancel.run(drop).await?;
        self.drop_owned(&[dropped]).await?;
        if checks.len() == table.checks.len() { Ok(table) } else { self.set_checks(&table, checks).await }
    }
}

/// Nothing depends on a column or a constraint but what goes with it anyway; still, who writes CASCADE expects more.
fn refuse_cascade(behavior: &Option<DropBehavior>) -> Result<()> {
    match behavior {
        Some(DropBehavior::Cascade) => Err(unsupported("CASCADE")),
        _ => Ok(()),
    }
}

fn undefined_constraint(name: &str, table: &Table) -> EngineError {
    EngineError::new("42704", format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name))
}
