//! Which statement goes where. What is not listed is not supported, and says so.
use crate::error::unsupported;
use crate::parse::{object_name, sequence_calls};
use crate::plan::changes::{literal, values_query};
use crate::statement::ddl::{NewIndex, duplicate, find_index, relation_exists};
use crate::statement::outcome::{Done, Outcome, command, notice};
use crate::statement::roles::role_name;
use crate::statement::run::Run;
use crate::statement::{ddl, sequence};
use crate::values::{check_assignable, is_sequence};
use datafusion::sql::sqlparser::ast::{Expr, ObjectName, ObjectType, Statement, Value};
use terrace_engine::{DataType, EngineError, Result};

impl Run<'_> {
    /// Everything that runs in a transaction.
    pub(crate) async fn statement(&self, ast: &Statement) -> Result<Done> {
        let tag: String = match ast {
            Statement::Query(query) if !query.locks.is_empty() => return Box::pin(self.select_locking(query)).await,
            Statement::Query(query) => {
                let with_values = match sequence_calls::calls(query)?.is_empty() {
                    true => None,
                    false => Some(self.with_values(query).await?),
                };
                let tree = self.tree.filter(|_| with_values.is_none());
                let plan = self.plan_either(tree, with_values.as_ref().unwrap_or(ast), None).await?;
                let physical = self.physical(&plan).await?;
                return Ok(Done::Rows(self.stream(physical, None)?));
            }
            Statement::Explain { .. } => return Ok(Done::Rows(Box::pin(self.explain(ast)).await?)),
            Statement::CreateRole(create) => {
                Box::pin(self.create_role(create)).await?;
                "CREATE ROLE".into()
            }
            Statement::AlterRole { name, operation } => {
                Box::pin(self.alter_role(name, operation)).await?;
                "ALTER ROLE".into()
            }
            Statement::Grant(_) => return Err(unsupported("GRANT (every role may use all tables)")),
            Statement::Revoke(_) => return Err(unsupported("REVOKE (every role may use all tables)")),
            Statement::Copy { .. } => return Ok(Done::Copy(Box::pin(self.copy(ast)).await?)),
            Statement::Insert(insert) => return Ok(Box::pin(self.insert(insert)).await?.done("INSERT 0")),
            Statement::Update(update) => return Ok(Box::pin(self.update(update)).await?.done("UPDATE")),
            Statement::Delete(delete) => return Ok(Box::pin(self.delete(delete)).await?.done("DELETE")),
            Statement::CreateTable(create) => return Box::pin(self.create_table(create)).await,
            Statement::CreateIndex(create) => return Box::pin(self.create_index(create)).await,
            Statement::CreateSequence { .. } => {
                let (name, made) = Box::pin(self.create_sequence_statement(ast)).await?;
                let skipped = || notice("42P07", format!("relation \"{name}\" already exists, skipping"));
                let notices = if made { vec![] } else { vec![skipped()] };
                return Ok(Done::Command(Outcome::Command { tag: "CREATE SEQUENCE".into(), notices }));
            }
            Statement::AlterTable(alter) => {
                let notices = Box::pin(self.alter_table(alter)).await?;
                return Ok(Done::Command(Outcome::Command { tag: "ALTER TABLE".into(), notices }));
            }
            Statement::Truncate(truncate) => {
                Box::pin(self.truncate(truncate)).await?;
                "TRUNCATE TABLE".into()
            }
            Statement::Vacuum(vacuum) => {
                Box::pin(self.analyze(vacuum.table_name.as_ref())).await?;
                "VACUUM".into()
            }
            Statement::Analyze(analyze) => {
                Box::pin(self.analyze(analyze.table_name.as_ref())).await?;
                "ANALYZE".into()
            }
            Statement::Drop { object_type, if_exists, names, cascade, purge, temporary, table, .. } => {
                if *purge || *temporary || table.is_some() {
                    return Err(unsupported("this form of DROP"));
                }
                if *cascade {
                    return Err(unsupported("CASCADE"));
                }
                return Box::pin(self.drop(object_type, *if_exists, names)).await;
            }
            other => return Err(unsupported(name_of(other))),
        };
        Ok(Done::Command(command(tag)))
    }

    async fn create_table(&self, create: &datafusion::sql::sqlparser::ast::CreateTable) -> Result<Done> {
        let catalog = self.begin_statement().await;
        let name = object_name(&create.name)?;
        if relation_exists(&catalog, &name) {
            if create.if_not_exists {
                let skipped = notice("42P07", format!("relation \"{name}\" already exists, skipping"));
                return Ok(Done::Command(Outcome::Command { tag: "CREATE TABLE".into(), notices: vec![skipped] }));
            }
            return Err(duplicate(&name));
        }
        let (create, sequences) = sequence::expand(create, &catalog)?;
        let create = &create;
        let spec = ddl::table_spec(create, &catalog)?;
        let checks = self.new_checks(create, &spec).await?;
        let notices = ddl::storage_options(&create.table_options)?;
        for (column, definition) in create.columns.iter().zip(&spec.columns) {
            for option in &column.options {
                if let datafusion::sql::sqlparser::ast::ColumnOption::Default(expr) = &option.option {
                    self.check_default(expr, definition).await?;
                }
            }
        }
        for new in &sequences {
            self.create_sequence(new).await?;
        }
        let run = async {
            let mut slot = self.cell.lock().await;
            let table = slot.open().create_table(spec).await?;
            if !checks.is_empty() {
                slot.open().set_checks(&table, checks).await?;
            }
            Ok(())
        };
        self.cancel.run(run).await?;
        Ok(Done::Command(Outcome::Command { tag: "CREATE TABLE".into(), notices }))
    }

    /// A default must plan without columns, and be of a type that the column takes.
    pub(crate) async fn check_default(&self, expr: &Expr, column: &terrace_engine::ColumnDef) -> Result<()> {
        if let Some(value) = literal(expr, column) {
            return value.map(|_| ());
        }
        if let Some(call) = sequence_calls::call_of(expr) {
            return match (call?, column.data_type) {
                (sequence_calls::Call::Next(_), DataType::Int4 | DataType::Int8) => Ok(()),
                _ => Err(unsupported("this function of a sequence as a default")),
            };
        }
        if expr.to_string().contains('$') && matches!(expr, Expr::Value(v) if matches!(v.value, Value::Placeholder(_)))
        {
            return Err(EngineError::new("42P02", "there is no parameter in a DEFAULT"));
        }
        let query = values_query([expr.clone()].into_iter())?;
        let plan = self.plan(&query, None).await.map_err(|error| match error.state.0 {
            "42703" => EngineError::new("0A000", "cannot use column reference in DEFAULT expression"),
            _ => error,
        })?;
        check_assignable(plan.schema().field(0).data_type(), column, false)
    }

    async fn create_index(&self, create: &datafusion::sql::sqlparser::ast::CreateIndex) -> Result<Done> {
        // The engine takes the lock that CREATE INDEX needs; a weaker one taken here first could deadlock with
        // another's.
        let (table, spec) = match ddl::index_spec(create, &*self.begin_statement().await)? {
            NewIndex::On(table, spec) => (table, spec),
            NewIndex::Exists(name) => {
                let skipped = notice("42P07", format!("relation \"{name}\" already exists, skipping"));
                return Ok(Done::Command(Outcome::Command { tag: "CREATE INDEX".into(), notices: vec![skipped] }));
            }
        };
        let run = async { self.cell.lock().await.open().create_index(&table, spec).await };
        self.cancel.run(run).await?;
        Ok(Done::Command(command("CREATE INDEX")))
    }

    async fn drop(&self, kind: &ObjectType, if_exists: bool, names: &[ObjectName]) -> Result<Done> {
        let mut notices = vec![];
        let tag = format!("DROP {}", if *kind == ObjectType::User { &ObjectType::Role } else { kind });
        for name in names {
            let is_role = matches!(kind, ObjectType::Role | ObjectType::User);
            let name = if is_role { role_name(name)? } else { object_name(name)? };
            let catalog = self.begin_statement().await;
            let dropped = match kind {
                ObjectType::Table => self.drop_table(&name, &catalog).await,
                ObjectType::Index => self.drop_index(&name, &catalog).await,
                ObjectType::Sequence => self.drop_sequence(&name, &catalog).await,
                ObjectType::Role | ObjectType::User => self.drop_role(&name).await,
                other => return Err(unsupported(format!("DROP {other}"))),
            };
            match dropped {
                Err(error) if if_exists && matches!(error.state.0, "42P01" | "42704") => {
                    let kind = kind.to_string().to_lowercase();
                    notices.push(notice("00000", format!("{kind} \"{name}\" does not exist, skipping")));
                }
                other => other?,
            }
        }
        Ok(Done::Command(Outcome::Command { tag, notices }))
    }

    async fn drop_table(&self, name: &str, catalog: &terrace_engine::Catalog) -> Result<()> {
        let Some(table) = catalog.table(name) else {
            if find_index(catalog, name).is_some() {
                return Err(EngineError::new("42809", format!("\"{name}\" is not a table")));
            }
            return Err(EngineError::new("42P01", format!("table \"{name}\" does not exist")));
        };
        if is_sequence(table) {
            return Err(EngineError::new("42809", format!("\"{name}\" is not a table")));
        }
        let run = async { self.cell.lock().await.open().drop_table(table).await };
        self.cancel.run(run).await?;
        self.drop_owned(&table.columns).await
    }

    async fn drop_index(&self, name: &str, catalog: &terrace_engine::Catalog) -> Result<()> {
        let Some((table, index)) = find_index(catalog, name) else {
            if catalog.table(name).is_some() {
                return Err(EngineError::new("42809", format!("\"{name}\" is not an index")));
            }
            return Err(EngineError::new("42704", format!("index \"{name}\" does not exist")));
        };
        if index.primary {
            let message =
                format!("cannot drop index {name} because constraint {name} on table {} requires it", table.name);
            return Err(EngineError::new("2BP01", message));
        }
        let run = async { self.cell.lock().await.open().drop_index(index).await };
        self.cancel.run(run).await
    }
}

/// 25006 for what a read-only transaction may not do.
pub(crate) fn refuse_write(ast: &Statement) -> Result<()> {
    let what = match ast {
        Statement::Query(query) if !query.locks.is_empty() => "SELECT FOR UPDATE".to_string(),
        Statement::Query(query) => match sequence_calls::calls(query)?.iter().find(|call| call.writes()) {
            Some(_) => "nextval() or setval()".to_string(),
            None => return Ok(()),
        },
        Statement::Explain { analyze: true, statement, .. } => return refuse_write(statement),
        Statement::Explain { .. } | Statement::Copy { to: true, .. } => return Ok(()),
        Statement::Insert(_) => "INSERT".to_string(),
        Statement::Update { .. } => "UPDATE".to_string(),
        Statement::Delete(_) => "DELETE".to_string(),
        Statement::Copy { .. } => "COPY FROM".to_string(),
        other => name_of(other),
    };
    Err(EngineError::new("25006", format!("cannot execute {what} in a read-only transaction")))
}

/// The statement's first words, for "... is not supported yet".
fn name_of(statement: &Statement) -> String {
    let text = statement.to_string();
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    match words.first().copied() {
        Some(
            "SAVEPOINT" | "RELEASE" | "PREPARE" | "EXECUTE" | "DEALLOCATE" | "DECLARE" | "FETCH" | "CLOSE" | "COPY"
            | "VACUUM" | "TRUNCATE" | "LOCK" | "GRANT" | "REVOKE" | "ANALYZE" | "MERGE",
        ) => words[0].to_string(),
        _ => words.join(" "),
    }
}
