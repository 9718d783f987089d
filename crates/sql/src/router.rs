//! Which statement goes where. What is not listed is not supported, and says so.
use crate::context::CancelToken;
use crate::ddl::{self, NewIndex, duplicate, find_index, relation_exists};
use crate::dml::{delete_query, delete_target, update_query, update_target};
use crate::error::{from_datafusion, unsupported};
use crate::insert::{check_count, insert_columns, insert_target, literal, plain_values, values_query};
use crate::lock_rows::within::refuse_correlated;
use crate::parse::{fold, object_name, type_cast_parameters, type_parameter, undefined_table};
use crate::pgcatalog::SessionInfo;
use crate::planner::{Planner, parameters};
use crate::roles::role_name;
use crate::rows::shown_schema;
use crate::run::{LazyState, Run};
use crate::sequence;
use crate::session::{Block, Outcome, Session};
use crate::values::check_assignable;
use datafusion::arrow::array::{RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::{
    ContextModifier, Expr, Ident, Insert, ObjectName, ObjectType, Query, Reset, Set, Statement, TransactionAccessMode,
    TransactionIsolationLevel, TransactionMode, Value,
};
use futures::stream;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use terrace_engine::{Catalog, DataType, EngineError, Isolation, Result, Table};

pub(crate) enum Done {
    Command(Outcome),
    Rows(SendableRecordBatchStream),
    Copy(crate::copy::Copy),
}

pub(crate) fn command(tag: impl Into<String>) -> Outcome {
    Outcome::Command { tag: tag.into(), notices: vec![] }
}

pub(crate) fn notice(state: &'static str, message: impl Into<String>) -> EngineError {
    EngineError::new(state, message)
}

impl Run<'_> {
    /// Everything that runs in a transaction.
    pub(crate) async fn statement(&self, ast: &Statement) -> Result<Done> {
        let tag: String = match ast {
            Statement::Query(query) if !query.locks.is_empty() => return Box::pin(self.select_locking(query)).await,
            Statement::Query(query) => {
                let with_values = match sequence::calls(query)?.is_empty() {
                    true => None,
                    false => Some(self.with_values(query).await?),
                };
                let plan = self.plan(with_values.as_ref().unwrap_or(ast), None).await?;
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
        if let Some(call) = sequence::call_of(expr) {
            return match (call?, column.data_type) {
                (sequence::Call::Next(_), DataType::Int4 | DataType::Int8) => Ok(()),
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
        // The engine takes the lock that CREATE INDEX needs; a weaker one taken here first could deadlock with another's.
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
        if sequence::is_sequence(table) {
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

/// What a client is told of a statement before it runs.
#[derive(Default)]
pub(crate) struct Described {
    pub(crate) parameters: Vec<DataType>,
    /// The array types of those that are arrays, by number from 1.
    pub(crate) arrays: BTreeMap<usize, u32>,
    pub(crate) columns: Option<SchemaRef>,
}

impl Described {
    pub(crate) fn of(columns: SchemaRef) -> Described {
        Described { columns: Some(columns), ..Described::default() }
    }

    fn planned(plan: &LogicalPlan, types: &[Option<DataType>], columns: Option<SchemaRef>) -> Result<Described> {
        let arrays = crate::arrays::parameter_types(plan).map_err(from_datafusion)?;
        Ok(Described { parameters: parameters(plan, types)?, arrays, columns })
    }
}

/// What statements are described with.
struct Sources<'s> {
    state: &'s LazyState<'s>,
    catalog: &'s Arc<Catalog>,
    info: &'s SessionInfo,
}

impl Sources<'_> {
    fn planner(&self, target: Option<Arc<Table>>) -> Planner<'_> {
        Planner { state: self.state.get(), catalog: self.catalog, info: self.info, young: BTreeSet::new(), target }
    }

    fn table(&self, name: &str) -> Result<Arc<Table>> {
        self.catalog.table(name).cloned().ok_or_else(|| undefined_table(name))
    }

    async fn describe_query(&self, query: &Query, types: &[Option<DataType>]) -> Result<Described> {
        let mut query = Box::new(query.clone());
        query.locks.clear();
        let query = match sequence::calls(&query)?.len() {
            0 => Statement::Query(query),
            n => sequence::replaced(&query, &vec![0; n])?,
        };
        let plan = self.planner(None).plan(query, types).await?.plan;
        // As it will be after type coercion.
        let typed = crate::planner::typed(self.state.get(), plan.clone())?;
        Described::planned(&plan, types, Some(shown_schema(typed.schema().as_arrow())))
    }

    /// UPDATE and DELETE, which change the rows of a query.
    async fn describe_change(
        &self,
        table: Arc<Table>,
        query: Statement,
        condition: &Option<Expr>,
        types: &[Option<DataType>],
    ) -> Result<Described> {
        let plan = self.planner(Some(table)).plan(query, types).await?.plan;
        refuse_correlated(&self.planner(None), condition, types).await?;
        Described::planned(&plan, types, None)
    }

    async fn describe_insert(&self, insert: &Insert, mut types: Vec<Option<DataType>>) -> Result<Described> {
        let table = self.table(&insert_target(insert)?)?;
        let columns = insert_columns(insert, &table)?;
        if let Some(query) = crate::conflict::update_query(insert, &table, &mut types)? {
            let plan = self.planner(Some(table.clone())).plan(query, &types).await?.plan;
            crate::conflict::type_parameters(&plan, &mut types)?;
        }
        let Some(source) = insert.source.as_deref() else { return Ok(Described::default()) };
        let Some(rows) = plain_values(source) else {
            let query = Statement::Query(Box::new(source.clone()));
            let plan = self.planner(None).plan(query, &types).await?.plan;
            return Described::planned(&plan, &types, None);
        };
        let mut others = vec![];
        for row in rows {
            check_count(row.len(), &columns, !insert.columns.is_empty())?;
            for (value, at) in row.iter().zip(&columns) {
                let column = &table.columns[*at];
                if !type_parameter(value, column.data_type, &mut types)
                    && !crate::dml::is_default(value)
                    && literal(value, column).is_none()
                    && sequence::call_of(value).is_none()
                {
                    others.push(value.clone());
                }
            }
        }
        if others.is_empty() && types.iter().all(Option::is_some) {
            return Ok(Described { parameters: types.into_iter().flatten().collect(), ..Described::default() });
        }
        let plan = self.planner(None).plan(values_query(others.into_iter())?, &types).await?.plan;
        Described::planned(&plan, &types, None)
    }
}

impl Session {
    /// Parameters and result columns of a statement.
    pub(crate) async fn describe(&mut self, ast: &Statement, types: &[Option<DataType>]) -> Result<Described> {
        let described = self.describe_source(ast, types).await?;
        let returned = self.describe_returning(ast, &described.parameters).await?;
        Ok(Described { columns: described.columns.or(returned), ..described })
    }

    async fn describe_source(&mut self, ast: &Statement, types: &[Option<DataType>]) -> Result<Described> {
        let mut types = types.to_vec();
        type_cast_parameters(ast, &mut types);
        let catalog = self.catalog().await;
        let state = LazyState::new(&self.database.state, &self.clock);
        let sources = Sources { state: &state, catalog: &catalog, info: &self.info };
        match ast {
            Statement::Query(query) => sources.describe_query(query, &types).await,
            Statement::Update(update) => {
                let target = update_target(update)?;
                let table = sources.table(&target.name)?;
                let (query, assigned) = update_query(update, &target, &table)?;
                for ((_, value), at) in crate::dml::assignments(&update.assignments)?.iter().zip(&assigned) {
                    type_parameter(value, table.columns[*at].data_type, &mut types);
                }
                sources.describe_change(table, query, &update.selection, &types).await
            }
            Statement::Delete(delete) => {
                let target = delete_target(delete)?;
                let table = sources.table(&target.name)?;
                let query = delete_query(delete, &target, &table);
                sources.describe_change(table, query, &delete.selection, &types).await
            }
            Statement::Insert(insert) => sources.describe_insert(insert, types).await,
            Statement::Declare { .. } => {
                let query = crate::cursor::declared(ast).transpose()?.map(|(_, query)| query);
                let query = query.ok_or_else(|| unsupported("this form of DECLARE"))?;
                Ok(Described { columns: None, ..Box::pin(self.describe_source(&query, &types)).await? })
            }
            Statement::Explain { .. } => Ok(Described::of(text_schema(&["QUERY PLAN"]))),
            Statement::ShowVariable { variable } => Ok(Described::of(self.show(variable)?.0)),
            _ => Ok(Described::default()),
        }
    }

    /// What needs no transaction, or makes and ends one. Commits and rollbacks are never cancelled.
    /// `depth`: a bound on the statement's.
    pub(crate) async fn control(
        &mut self,
        ast: &Statement,
        depth: usize,
        token: &Arc<CancelToken>,
    ) -> Result<Option<Outcome>> {
        Ok(Some(match ast {
            Statement::StartTransaction { modes, begin, modifier, statements, exception, .. } => {
                if modifier.is_some() || !statements.is_empty() || exception.is_some() {
                    return Err(unsupported("this form of BEGIN"));
                }
                let tag = if *begin { "BEGIN" } else { "START TRANSACTION" };
                self.begin(modes, tag).await?
            }
            Statement::Commit { chain, modifier, .. } => {
                if *chain || modifier.is_some() {
                    return Err(unsupported("AND CHAIN"));
                }
                self.end(true).await?
            }
            Statement::Savepoint { .. }
            | Statement::ReleaseSavepoint { .. }
            | Statement::Rollback { chain: false, savepoint: Some(_) } => return self.savepoint(ast).await,
            Statement::Rollback { chain, .. } => {
                if *chain {
                    return Err(unsupported("AND CHAIN"));
                }
                self.end(false).await?
            }
            Statement::Prepare { .. } | Statement::Deallocate { .. } | Statement::Discard { .. } => {
                self.manage_statements(ast, depth, token).await?
            }
            Statement::Close { cursor } => self.close_cursor(cursor)?,
            Statement::Vacuum(vacuum) => match token.run(self.vacuum(vacuum)).await? {
                true => command("VACUUM"),
                false => return Ok(None),
            },
            Statement::Pragma { .. } => return token.run(Box::pin(self.alter_system(ast))).await,
            Statement::Set(set) => self.set_statement(set).await?,
            Statement::Reset(reset) => {
                match &reset.reset {
                    Reset::ALL => self.shared.settings.lock().reset_all(),
                    Reset::ConfigurationParameter(name) => {
                        self.shared.settings.lock().reset(&name.to_string(), false)?;
                    }
                }
                command("RESET")
            }
            Statement::ShowVariable { variable } => {
                let (schema, batch) = self.show(variable)?;
                let rows = stream::iter([Ok(batch)]);
                Outcome::Rows { schema, stream: Box::pin(rows) }
            }
            _ => return Ok(None),
        }))
    }

    async fn begin(&mut self, modes: &[TransactionMode], tag: &str) -> Result<Outcome> {
        let isolation = isolation(modes)?;
        if self.shared.block() == Block::Explicit {
            let warning = notice("25001", "there is already a transaction in progress");
            return Ok(Outcome::Command { tag: tag.into(), notices: vec![warning] });
        }
        // Statements before it in the same string or pipeline belong to the block, and have decided its isolation.
        let begun = self.shared.cell.lock().await.txn.is_some();
        if begun {
            self.isolate(isolation).await?;
        }
        if isolation.is_some() {
            self.isolation = isolation;
        }
        self.ensure_transaction().await;
        *self.shared.block.lock() = Block::Explicit;
        if let Some(read_only) = access(modes) {
            self.shared.settings.lock().set("transaction_read_only", read_only, true)?;
        }
        Ok(command(tag))
    }

    /// Gives the open transaction another isolation, as long as nothing has happened in it.
    async fn isolate(&mut self, isolation: Option<Isolation>) -> Result<()> {
        let mut slot = self.shared.cell.lock().await;
        if let Some(wanted) = isolation.filter(|wanted| *wanted != slot.open().isolation()) {
            if slot.open().has_written() || slot.queried || !slot.savepoints.is_empty() {
                let message = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
                return Err(EngineError::new("25001", message));
            }
            if let Some(empty) = slot.txn.replace(self.database.engine.begin(wanted)) {
                empty.rollback().await?;
            }
            slot.number += 1;
        }
        Ok(())
    }

    async fn end(&mut self, commit: bool) -> Result<Outcome> {
        let commits = commit && self.shared.block() != Block::Failed;
        let held = if commits { self.hold_cursors().await } else { Ok(()) };
        let block = std::mem::replace(&mut *self.shared.block.lock(), Block::None);
        self.isolation = None;
        let tag = if commits { "COMMIT" } else { "ROLLBACK" };
        let commits = commits && held.is_ok();
        let committing = if commits { self.transaction().await } else { None };
        self.close_cursors_but_of(committing);
        let result = if commits { self.shared.commit().await } else { self.shared.rollback().await };
        self.end_cursors(committing.filter(|_| result.is_ok()));
        held.and(result)?;
        let outside = notice("25P01", "there is no transaction in progress");
        let notices = if matches!(block, Block::None | Block::Pipeline) { vec![outside] } else { vec![] };
        Ok(Outcome::Command { tag: tag.into(), notices })
    }

    async fn set_statement(&mut self, set: &Set) -> Result<Outcome> {
        match set {
            Set::SingleAssignment { scope, hivevar: false, variable, values } => {
                let local = match scope {
                    Some(ContextModifier::Global) => return Err(unsupported("SET GLOBAL")),
                    scope => *scope == Some(ContextModifier::Local),
                };
                let name = variable.to_string();
                let values: Vec<String> = values.iter().map(setting_value).collect::<Result<_>>()?;
                return self.assign(&name, &values.join(", "), local);
            }
            Set::SetTimeZone { local, value } => return self.assign("TimeZone", &setting_value(value)?, *local),
            Set::SetNames { charset_name, collation_name: None } => {
                return self.assign("client_encoding", &charset_name.value, false);
            }
            Set::SetNamesDefault {} => {}
            Set::SetTransaction { modes, snapshot: None, session } => {
                return self.set_transaction(modes, *session).await;
            }
            other => return Err(unsupported(format!("the statement {other}"))),
        }
        Ok(command("SET"))
    }

    fn assign(&mut self, name: &str, value: &str, local: bool) -> Result<Outcome> {
        let outside = local && self.shared.block() == Block::None;
        let mut settings = self.shared.settings.lock();
        let is_zone = name.eq_ignore_ascii_case("TimeZone");
        match value.to_ascii_lowercase().as_str() {
            "local" if is_zone => settings.reset(name, local)?,
            "default" => settings.reset(name, local)?,
            _ => settings.set(name, value, local)?,
        }
        let outside = outside.then(|| notice("25P01", "SET LOCAL can only be used in transaction blocks"));
        Ok(Outcome::Command { tag: "SET".into(), notices: outside.into_iter().collect() })
    }

    async fn set_transaction(&mut self, modes: &[TransactionMode], session: bool) -> Result<Outcome> {
        let isolation = isolation(modes)?;
        if session {
            if let Some(isolation) = isolation {
                self.shared.settings.lock().set("default_transaction_isolation", isolation_name(isolation), false)?;
            }
            if let Some(read_only) = access(modes) {
                self.shared.settings.lock().set("default_transaction_read_only", read_only, false)?;
            }
            return Ok(command("SET"));
        }
        if self.shared.block() != Block::Explicit {
            let warning = notice("25P01", "SET TRANSACTION can only be used in transaction blocks");
            return Ok(Outcome::Command { tag: "SET".into(), notices: vec![warning] });
        }
        self.isolate(isolation).await?;
        if let Some(read_only) = access(modes) {
            self.shared.settings.lock().set("transaction_read_only", read_only, true)?;
        }
        Ok(command("SET"))
    }

    fn show(&self, variable: &[Ident]) -> Result<(SchemaRef, RecordBatch)> {
        let words: Vec<String> = variable.iter().map(fold).collect();
        let name = words.join("_");
        let one = |name: &str, value: String| text_rows(&[name], vec![vec![value]]);
        match name.as_str() {
            "all" => {
                let settings = self.shared.settings.lock();
                let mut rows: Vec<_> =
                    settings.all().map(|(n, v)| vec![n.to_string(), v.to_string(), String::new()]).collect();
                rows.sort_by_key(|row| row[0].to_lowercase());
                Ok(text_rows(&["name", "setting", "description"], rows))
            }
            "transaction_isolation_level" | "transaction_isolation" => {
                let isolation = self.isolation.unwrap_or_else(|| self.shared.settings.lock().default_isolation());
                Ok(one("transaction_isolation", isolation_name(isolation).into()))
            }
            "session_authorization" => Ok(one("session_authorization", self.info.user.clone())),
            "time_zone" | "timezone" => Ok(one("TimeZone", self.setting("TimeZone")?)),
            _ => {
                let (shown, value) = self.shared.settings.lock().show(&words.join("."))?;
                Ok(one(shown, value))
            }
        }
    }
}

fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadCommitted => "read committed",
        Isolation::RepeatableRead => "repeatable read",
    }
}

fn isolation(modes: &[TransactionMode]) -> Result<Option<Isolation>> {
    let mut isolation = None;
    for mode in modes {
        match mode {
            TransactionMode::IsolationLevel(level) => {
                isolation = Some(match level {
                    TransactionIsolationLevel::ReadUncommitted | TransactionIsolationLevel::ReadCommitted => {
                        Isolation::ReadCommitted
                    }
                    TransactionIsolationLevel::RepeatableRead => Isolation::RepeatableRead,
                    TransactionIsolationLevel::Serializable => {
                        return Err(unsupported("isolation level SERIALIZABLE"));
                    }
                    TransactionIsolationLevel::Snapshot => return Err(unsupported("isolation level SNAPSHOT")),
                });
            }
            TransactionMode::AccessMode(_) => {}
        }
    }
    Ok(isolation)
}

/// READ ONLY or READ WRITE, as a setting.
fn access(modes: &[TransactionMode]) -> Option<&'static str> {
    modes.iter().rev().find_map(|mode| match mode {
        TransactionMode::AccessMode(TransactionAccessMode::ReadOnly) => Some("on"),
        TransactionMode::AccessMode(TransactionAccessMode::ReadWrite) => Some("off"),
        TransactionMode::IsolationLevel(_) => None,
    })
}

/// 25006 for what a read-only transaction may not do.
pub(crate) fn refuse_write(ast: &Statement) -> Result<()> {
    let what = match ast {
        Statement::Query(query) if !query.locks.is_empty() => "SELECT FOR UPDATE".to_string(),
        Statement::Query(query) => match sequence::calls(query)?.iter().find(|call| call.writes()) {
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

fn setting_value(expr: &Expr) -> Result<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Ok(text.clone()),
            Value::Number(text, _) => Ok(text.clone()),
            Value::Boolean(value) => Ok(if *value { "on" } else { "off" }.into()),
            _ => Err(EngineError::new("42601", format!("syntax error at \"{expr}\""))),
        },
        Expr::Identifier(ident) => Ok(ident.value.clone()),
        other => Ok(other.to_string()),
    }
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

pub(crate) fn text_schema(names: &[&str]) -> SchemaRef {
    Arc::new(Schema::new(names.iter().map(|n| Field::new(*n, ArrowType::Utf8, true)).collect::<Vec<_>>()))
}

fn text_rows(names: &[&str], rows: Vec<Vec<String>>) -> (SchemaRef, RecordBatch) {
    let schema = text_schema(names);
    let column = |at: usize| -> Arc<dyn datafusion::arrow::array::Array> {
        Arc::new(rows.iter().map(|row| Some(row[at].as_str())).collect::<StringArray>())
    };
    let columns = (0..names.len()).map(column).collect();
    let batch = RecordBatch::try_new(schema.clone(), columns).expect("columns as the schema says");
    (schema, batch)
}

/// Lines of text as a result of one column.
pub(crate) fn text_stream(name: &str, lines: Vec<String>) -> SendableRecordBatchStream {
    let (schema, batch) = text_rows(&[name], lines.into_iter().map(|line| vec![line]).collect());
    Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter([Ok(batch)])))
}
