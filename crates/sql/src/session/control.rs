//! Statements about the session itself: BEGIN, COMMIT and ROLLBACK; SET, RESET and SHOW. Others of the kind are passed
//! on from here.
use crate::access::Actor;
use crate::cancel::CancelToken;
use crate::error::unsupported;
use crate::functions::interval;
use crate::session::Session;
use crate::session::prepared::Prepared;
use crate::statement::foreign_keys;
use crate::statement::kind::{Command, Task};
use crate::statement::outcome::{Outcome, command, notice, text_rows};
use crate::transaction::Block;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use futures::stream;
use std::borrow::Cow;
use std::sync::Arc;
use terrace_engine::types::{Interval, Zone};
use terrace_engine::{Datum, EngineError, Isolation, Result};
use terrace_grammar::statement::{
    Isolation as Level, Maintain, Name, OfSetting, Set, SetConstraints, SetTransaction, SettingValue, SettingValueKind,
    Transaction, TransactionKind, TransactionMode,
};

impl Session {
    /// Carries out a command of the session. It needs no transaction, or begins and ends one. Commits and rollbacks are
    /// never cancelled. What is rare and large is boxed, so that BEGIN and COMMIT move little.
    pub(crate) async fn command(
        &mut self,
        prepared: &Prepared,
        command: Command<'_>,
        parameters: &[Datum],
        token: &Arc<CancelToken>,
    ) -> Result<Outcome> {
        match command {
            Command::Transaction(transaction) => self.transaction_command(transaction).await,
            Command::SetTransaction(set) => Box::pin(self.set_transaction(set)).await,
            Command::SetConstraints(set) => token.run(Box::pin(self.set_constraints(set))).await,
            Command::Set(set) => Box::pin(self.set_statement(set)).await,
            Command::Reset(reset) => self.reset(reset).await,
            Command::Show(show) => {
                let (schema, batch) = self.show(show)?;
                let rows = stream::iter([Ok(batch)]);
                Ok(Outcome::Rows { schema, stream: Box::pin(rows) })
            }
            Command::Listen(channel) => {
                self.ensure_transaction().await;
                self.shared.voice.listen(&channel.name);
                Ok(self::command("LISTEN"))
            }
            Command::Notify(channel, payload) => {
                self.ensure_transaction().await;
                self.shared.voice.say(&channel.name, payload)?;
                Ok(self::command("NOTIFY"))
            }
            Command::Unlisten(channel) => {
                self.ensure_transaction().await;
                self.shared.voice.unlisten(channel.map(|channel| channel.name.as_str()));
                Ok(self::command("UNLISTEN"))
            }
            Command::Discard(what) => Box::pin(self.discard(what)).await,
            Command::Prepare(prepare) => Box::pin(self.prepare_named(prepared, prepare, token)).await,
            Command::Execute(execute) => {
                let inner = prepared.executes.as_ref().expect("an EXECUTE knows what it executes");
                let values = Box::pin(self.arguments(execute, inner, token)).await?;
                match &execute.table {
                    None => Box::pin(self.execute_inner(inner, values, token)).await,
                    Some(table) => Box::pin(self.execute_into(table, inner, values, token)).await,
                }
            }
            Command::ExplainExecute(explain, execute) => Box::pin(self.explain_execute(explain, execute, token)).await,
            Command::Deallocate(name) => self.deallocate(name),
            Command::Declare(declare) => Box::pin(self.declare(prepared, declare, parameters, token)).await,
            Command::Fetch(fetch) => Box::pin(self.fetch(fetch, token)).await,
            Command::Close(name) => self.close_cursor(name),
            Command::Vacuum(vacuum) => Box::pin(self.vacuum_statement(prepared, vacuum, parameters, token)).await,
            Command::Lock(lock) => {
                if !self.shared.block().is_transaction_block() {
                    return Err(EngineError::new("25P01", "LOCK TABLE can only be used in transaction blocks"));
                }
                let done = self.in_transaction(prepared, ("LOCK TABLE", Task::Lock(lock)), parameters, token);
                Ok(Box::pin(done).await?.into_outcome(self, prepared.depth, token))
            }
            Command::AlterSystem(alter) => token.run(Box::pin(self.alter_system(alter))).await,
        }
    }

    async fn vacuum_statement(
        &mut self,
        prepared: &Prepared,
        vacuum: &Maintain,
        parameters: &[Datum],
        token: &Arc<CancelToken>,
    ) -> Result<Outcome> {
        let (rest, mut told) = token.run(Box::pin(self.vacuum(vacuum))).await?;
        let mut done = match &rest {
            None => command("VACUUM"),
            Some(rest) => {
                let done = self.in_transaction(prepared, ("VACUUM", Task::Analyze(rest)), parameters, token);
                Box::pin(done).await?.into_outcome(self, prepared.depth, token)
            }
        };
        if let Outcome::Command { notices, .. } = &mut done {
            told.append(notices);
            *notices = told;
        }
        Ok(done)
    }

    async fn transaction_command(&mut self, transaction: &Transaction) -> Result<Outcome> {
        match &transaction.kind {
            TransactionKind::Begin { start, modes } => {
                self.begin(modes, if *start { "START TRANSACTION" } else { "BEGIN" }).await
            }
            TransactionKind::Commit { chain: true } => Box::pin(self.end_and_chain(true)).await,
            TransactionKind::Rollback { chain: true } => Box::pin(self.end_and_chain(false)).await,
            TransactionKind::Commit { chain: false } => self.end(true).await,
            TransactionKind::Rollback { chain: false } => self.end(false).await,
            TransactionKind::Savepoint(name) => Box::pin(self.savepoint(&name.name)).await,
            TransactionKind::Release(name) => Box::pin(self.release(&name.name)).await,
            TransactionKind::RollbackTo(name) => Box::pin(self.rollback_to(&name.name)).await,
        }
    }

    async fn begin(&mut self, modes: &[TransactionMode], tag: &str) -> Result<Outcome> {
        let isolation = isolation(modes);
        if self.shared.block() == Block::Explicit {
            Box::pin(self.change_modes(modes)).await?;
            let warning = notice("25001", "there is already a transaction in progress");
            return Ok(Outcome::Command { tag: tag.into(), notices: vec![warning] });
        }
        // Statements before it in the same string or pipeline belong to the block, and have decided its isolation.
        let begun = self.shared.cell.lock().await.txn.is_some();
        if begun {
            Box::pin(self.isolate(isolation)).await?;
        }
        if isolation.is_some() {
            self.isolation = isolation;
        }
        self.ensure_transaction().await;
        *self.shared.block.lock() = Block::Explicit;
        self.set_modes(modes, "transaction", true)?;
        Ok(command(tag))
    }

    /// READ ONLY and DEFERRABLE, of the transaction or of those to come: settings whose names begin with `of`.
    fn set_modes(&self, modes: &[TransactionMode], of: &str, local: bool) -> Result<()> {
        let mut settings = self.shared.settings.lock();
        for mode in modes {
            let (name, on) = match mode {
                TransactionMode::ReadOnly(on) => ("read_only", *on),
                TransactionMode::Deferrable(on) => ("deferrable", *on),
                TransactionMode::Isolation(_) => continue,
            };
            settings.set(&format!("{of}_{name}"), if on { "on" } else { "off" }, local)?;
        }
        Ok(())
    }

    /// Gives the open transaction another isolation, as long as nothing has happened in it.
    async fn isolate(&mut self, isolation: Option<Isolation>) -> Result<()> {
        let mut slot = self.shared.cell.lock().await;
        if let Some(wanted) = isolation.filter(|wanted| *wanted != slot.open().isolation()) {
            if slot.open().has_written() || slot.queried || !slot.savepoints.is_empty() {
                let message = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
                return Err(EngineError::new("25001", message));
            }
            if let Some(empty) = slot.txn.replace(self.new_transaction(wanted)) {
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
        let result = match commits {
            true => Box::pin(self.shared.commit()).await,
            false => self.shared.rollback().await,
        };
        self.end_cursors(committing.filter(|_| result.is_ok()));
        held.and(result)?;
        let outside = notice("25P01", "there is no transaction in progress");
        let notices =
            if matches!(block, Block::None | Block::Pipeline | Block::Message) { vec![outside] } else { vec![] };
        Ok(Outcome::Command { tag: tag.into(), notices })
    }

    /// COMMIT or ROLLBACK AND CHAIN: the next transaction is as this one was. One that fails to commit has no next.
    async fn end_and_chain(&mut self, commit: bool) -> Result<Outcome> {
        if !matches!(self.shared.block(), Block::Explicit | Block::Failed) {
            let name = if commit { "COMMIT" } else { "ROLLBACK" };
            let message = format!("{name} AND CHAIN can only be used in transaction blocks");
            return Err(EngineError::new("25P01", message));
        }
        let isolation = self.isolation.unwrap_or_else(|| self.shared.settings.lock().default_isolation());
        const MODES: [&str; 2] = ["transaction_read_only", "transaction_deferrable"];
        let modes = MODES.map(|name| self.setting(name));
        let ended = self.end(commit).await?;
        self.isolation = Some(isolation);
        self.ensure_transaction().await;
        *self.shared.block.lock() = Block::Explicit;
        for (name, value) in MODES.into_iter().zip(modes) {
            self.shared.settings.lock().set(name, &value?, true)?;
        }
        Ok(ended)
    }

    /// SET ROLE and SET SESSION AUTHORIZATION; `None`: DEFAULT. 42704, 42501
    async fn act_as(&mut self, what: &str, name: Option<&str>, local: bool) -> Result<()> {
        let catalog = self.catalog().await;
        let mut settings = self.shared.settings.lock();
        let found = |name: &str| {
            let missing = || EngineError::new("22023", format!("role \"{name}\" does not exist"));
            catalog.role(name).ok_or_else(missing)
        };
        match (what, name) {
            ("role", None | Some("none")) => settings.set_role(None, local),
            ("role", Some(name)) => {
                let role = found(name)?;
                let session = Actor::named(settings.session_user(), &catalog);
                if !session.is_superuser() && !catalog.with_memberships(session.oid(), false).contains(&role.oid) {
                    return Err(EngineError::new("42501", format!("permission denied to set role \"{name}\"")));
                }
                settings.set_role(Some(name), local);
            }
            (_, None) => settings.set_session_user(None, local),
            (_, Some(name)) => {
                found(name)?;
                if *name != **settings.login() && !Actor::named(settings.login(), &catalog).is_superuser() {
                    return Err(EngineError::new("42501", "permission denied to set session authorization"));
                }
                settings.set_session_user(Some(name), local);
            }
        }
        Ok(())
    }

    async fn set_statement(&mut self, set: &Set) -> Result<Outcome> {
        let name = set.name.name.as_str();
        let outside = set.local && self.shared.block() == Block::None;
        match &set.value {
            value if matches!(name, "role" | "session_authorization") => {
                let value = value.as_ref().and_then(|values| values.first()).map(setting_value).transpose()?;
                self.act_as(name, value.as_deref(), set.local).await?;
            }
            None => {
                self.refuse_writing(name, "").await?;
                self.shared.settings.lock().reset(name, set.local)?;
            }
            Some(values) => {
                if values.len() > 1 && !takes_list(name) {
                    return Err(EngineError::new("22023", format!("SET {name} takes only one argument")));
                }
                let values = values.iter().map(setting_value).collect::<Result<Vec<Cow<'_, str>>>>()?;
                // Each is a name, whatever is in it.
                let joined = match name {
                    "search_path" => values.iter().map(|value| in_list(value)).collect::<Vec<_>>().join(", "),
                    _ => values.join(", "),
                };
                self.refuse_writing(name, &joined).await?;
                self.shared.settings.lock().set(name, &joined, set.local)?;
            }
        }
        self.tell_application()?;
        let outside = outside.then(|| notice("25P01", "SET LOCAL can only be used in transaction blocks"));
        Ok(Outcome::Command { tag: "SET".into(), notices: outside.into_iter().collect() })
    }

    /// 25001 where a transaction that is read-only would become one that writes, and has begun to read.
    async fn refuse_writing(&self, name: &str, value: &str) -> Result<()> {
        let stays = name != "transaction_read_only" || matches!(value.to_ascii_lowercase().as_str(), "on" | "true");
        let (now, before) = {
            let settings = self.shared.settings.lock();
            (settings.read_only(), settings.was_read_only())
        };
        if stays || !now || !self.shared.block().is_transaction_block() {
            return Ok(());
        }
        let refused = |message| Err(EngineError::new("25001", message));
        if before {
            return refused("cannot set transaction read-write mode inside a read-only transaction");
        }
        match self.shared.cell.lock().await.queried {
            true => refused("transaction read-write mode must be set before any query"),
            false => Ok(()),
        }
    }

    async fn reset(&mut self, reset: &OfSetting) -> Result<Outcome> {
        if let Some(name) = &reset.name {
            self.refuse_writing(&name.name, "").await?;
        }
        match &reset.name {
            None => self.shared.settings.lock().reset_all(),
            Some(name) if name.name == "role" => self.shared.settings.lock().set_role(None, false),
            Some(name) if name.name == "session_authorization" => {
                self.shared.settings.lock().set_session_user(None, false);
            }
            Some(name) => self.shared.settings.lock().reset(&name.name, false)?,
        }
        self.tell_application()?;
        Ok(command("RESET"))
    }

    fn tell_application(&self) -> Result<()> {
        self.shared.activity.set_application(&self.setting("application_name")?);
        Ok(())
    }

    /// SET TRANSACTION SNAPSHOT.
    async fn import_snapshot(&mut self, name: &str) -> Result<()> {
        let mut slot = self.shared.cell.lock().await;
        let isolation = slot.open().isolation();
        if slot.open().has_written() || slot.queried || !slot.savepoints.is_empty() {
            return Err(EngineError::new("25001", "SET TRANSACTION SNAPSHOT must be called before any query"));
        }
        match isolation {
            Isolation::RepeatableRead => {}
            Isolation::Serializable => return Err(unsupported("a snapshot for a SERIALIZABLE transaction")),
            Isolation::ReadCommitted => {
                let message =
                    "a snapshot-importing transaction must have isolation level SERIALIZABLE or REPEATABLE READ";
                return Err(EngineError::new("0A000", message));
            }
        }
        slot.queried = true;
        slot.open().import_snapshot(name)
    }

    async fn set_transaction(&mut self, set: &SetTransaction) -> Result<Outcome> {
        let SetTransaction { modes, session, snapshot, at: _ } = set;
        let isolation = isolation(modes);
        if *session {
            if let Some(isolation) = isolation {
                self.shared.settings.lock().set("default_transaction_isolation", isolation_name(isolation), false)?;
            }
            self.set_modes(modes, "default_transaction", false)?;
            return Ok(command("SET"));
        }
        if !self.shared.block().is_transaction_block() {
            let warning = notice("25P01", "SET TRANSACTION can only be used in transaction blocks");
            return Ok(Outcome::Command { tag: "SET".into(), notices: vec![warning] });
        }
        if let Some(snapshot) = snapshot {
            self.import_snapshot(snapshot).await?;
            return Ok(command("SET"));
        }
        self.change_modes(modes).await?;
        Ok(command("SET"))
    }

    /// Those of the transaction that is open.
    async fn change_modes(&mut self, modes: &[TransactionMode]) -> Result<()> {
        let isolation = isolation(modes);
        self.isolate(isolation).await?;
        if isolation.is_some() {
            self.isolation = isolation;
        }
        if modes.iter().any(|mode| matches!(mode, TransactionMode::Deferrable(_))) {
            let slot = self.shared.cell.lock().await;
            if slot.queried || !slot.savepoints.is_empty() {
                let message = "SET TRANSACTION [NOT] DEFERRABLE must be called before any query";
                return Err(EngineError::new("25001", message));
            }
        }
        if modes.contains(&TransactionMode::ReadOnly(false)) {
            self.refuse_writing("transaction_read_only", "off").await?;
        }
        self.set_modes(modes, "transaction", true)
    }

    /// Without a name, all constraints. A name without a schema means each constraint of that name.
    async fn set_constraints(&mut self, set: &SetConstraints) -> Result<Outcome> {
        let in_block = self.shared.block().is_transaction_block();
        self.ensure_transaction().await;
        self.wait_for_snapshot().await;
        let mut slot = self.shared.cell.lock().await;
        slot.queried = true;
        let txn = slot.open();
        txn.begin_statement();
        let catalog = txn.catalog();
        let named = |name: &Name| foreign_keys::of_name(&catalog, name);
        let named = set.names.as_ref().map(|names| names.iter().map(named).collect::<Result<Vec<_>>>()).transpose()?;
        let keys = named.map(|named| named.concat());
        txn.set_constraints(keys.as_deref(), set.deferred).await?;
        let outside = notice("25P01", "SET CONSTRAINTS can only be used in transaction blocks");
        let notices = if in_block { vec![] } else { vec![outside] };
        Ok(Outcome::Command { tag: "SET CONSTRAINTS".into(), notices })
    }

    pub(crate) fn show(&self, show: &OfSetting) -> Result<(SchemaRef, RecordBatch)> {
        let one = |name: &str, value: String| text_rows(&[name], vec![vec![value]]);
        let Some(name) = &show.name else {
            let settings = self.shared.settings.lock();
            let mut rows: Vec<_> =
                settings.all().map(|(n, v)| vec![n.to_string(), v.to_string(), String::new()]).collect();
            rows.sort_by_key(|row| row[0].to_lowercase());
            return Ok(text_rows(&["name", "setting", "description"], rows));
        };
        match name.name.as_str() {
            "transaction_isolation" => {
                let isolation = self.isolation.unwrap_or_else(|| self.shared.settings.lock().default_isolation());
                Ok(one("transaction_isolation", isolation_name(isolation).into()))
            }
            "session_authorization" => Ok(one("session_authorization", self.info.session_user())),
            name => {
                let (shown, value) = self.shared.settings.lock().show(name)?;
                Ok(one(&shown, value))
            }
        }
    }
}

fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadCommitted => "read committed",
        Isolation::RepeatableRead => "repeatable read",
        Isolation::Serializable => "serializable",
    }
}

/// The last level that is written.
fn isolation(modes: &[TransactionMode]) -> Option<Isolation> {
    modes.iter().rev().find_map(|mode| match mode {
        TransactionMode::Isolation(Level::ReadUncommitted | Level::ReadCommitted) => Some(Isolation::ReadCommitted),
        TransactionMode::Isolation(Level::RepeatableRead) => Some(Isolation::RepeatableRead),
        TransactionMode::Isolation(Level::Serializable) => Some(Isolation::Serializable),
        TransactionMode::ReadOnly(_) | TransactionMode::Deferrable(_) => None,
    })
}

/// Whether a setting is a list.
fn takes_list(name: &str) -> bool {
    matches!(name, "datestyle" | "search_path" | "temp_tablespaces")
}

/// A name as a list of names has it.
fn in_list(name: &str) -> String {
    if name.is_empty() { "\"\"".to_owned() } else { terrace_grammar::quoted(name) }
}

fn setting_value(value: &SettingValue) -> Result<Cow<'_, str>> {
    match &value.kind {
        SettingValueKind::Text(text) | SettingValueKind::Number(text) => Ok(text.into()),
        SettingValueKind::Interval(text, to) => zone_of_interval(text, to.fields.as_deref()).map(Cow::Owned),
    }
}

/// `TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE`, as a zone's name.
fn zone_of_interval(text: &str, fields: Option<&str>) -> Result<String> {
    let hours = text.trim().trim_start_matches(['+', '-']).bytes().all(|b| b.is_ascii_digit());
    if hours && fields == Some("hour to minute") {
        return Err(unsupported("a time zone's interval of minutes alone"));
    }
    let read = Interval::parse(text, fields.and_then(interval::fields))?;
    let not_of_time = [(read.months() != 0, "months"), (read.days() != 0, "days")];
    if let Some((_, what)) = not_of_time.iter().find(|(is, _)| *is) {
        let message = format!("invalid value for parameter \"TimeZone\": \"INTERVAL '{read}'\"");
        let error = EngineError::new("22023", message);
        return Err(error.with_detail(format!("Cannot specify {what} in time zone interval.")));
    }
    let seconds = i32::try_from(read.micros() / 1_000_000).unwrap_or(i32::MAX);
    Ok(Zone::Fixed(seconds).to_string())
}
