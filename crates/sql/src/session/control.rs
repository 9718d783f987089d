//! Statements about the session itself: BEGIN, COMMIT and ROLLBACK; SET, RESET and SHOW; and where the others of the
//! kind go.
use crate::cancel::CancelToken;
use crate::error::unsupported;
use crate::parse::fold;
use crate::plan::bind::Tree;
use crate::session::Session;
use crate::statement::describe::{Described, Sources};
use crate::statement::outcome::{Outcome, command, notice, text_rows};
use crate::statement::run::LazyState;
use crate::transaction::Block;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::sql::sqlparser::ast::{
    ContextModifier, Expr, Ident, Reset, Set, Statement, TransactionAccessMode, TransactionIsolationLevel,
    TransactionMode, Value,
};
use futures::stream;
use std::sync::Arc;
use terrace_engine::{DataType, EngineError, Isolation, Result};

impl Session {
    /// Parameters and result columns of a statement.
    pub(crate) async fn describe(
        &mut self,
        ast: &Statement,
        tree: Option<&Tree>,
        types: &[Option<DataType>],
    ) -> Result<Described> {
        if let Statement::ShowVariable { variable } = ast {
            return Ok(Described::of(self.show(variable)?.0));
        }
        let catalog = self.catalog().await;
        let state = LazyState::new(&self.database.state, &self.clock);
        Sources { state: &state, catalog: &catalog, info: &self.info, tree }.describe(ast, types).await
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
