//! Transactions and settings.

use super::Parser;
use crate::error::{Result, SyntaxError};
use crate::keyword::{Category, Keyword as K};
use crate::lexer::{Kind, Token};
use crate::statement::{
    AlterSystem, At, Discard, Ident, Isolation, LockTables, OfSetting, Set, SetConstraints, SetTransaction, Setting,
    SettingValue, SettingValueKind, Statement, TableLock, Transaction, TransactionKind, TransactionMode,
};

impl Parser<'_> {
    /// What follows LOCK.
    pub(super) fn lock_tables(&mut self, at: At) -> Result<Statement> {
        self.eat_word(K::Table);
        let tables = self.list(|parser| Ok(parser.relation()?.0))?;
        let mode = if self.eat_word(K::In) { self.table_lock()? } else { TableLock::AccessExclusive };
        let nowait = self.eat_word(K::Nowait);
        Ok(Statement::Lock(LockTables { at, tables, mode, nowait }))
    }

    fn table_lock(&mut self) -> Result<TableLock> {
        let modes: [(&[K], TableLock); 8] = [
            (&[K::Access, K::Share], TableLock::AccessShare),
            (&[K::Row, K::Share], TableLock::RowShare),
            (&[K::Row, K::Exclusive], TableLock::RowExclusive),
            (&[K::Share, K::Update, K::Exclusive], TableLock::ShareUpdateExclusive),
            (&[K::Share, K::Row, K::Exclusive], TableLock::ShareRowExclusive),
            (&[K::Share], TableLock::Share),
            (&[K::Exclusive], TableLock::Exclusive),
            (&[K::Access, K::Exclusive], TableLock::AccessExclusive),
        ];
        match modes.iter().find(|(words, _)| self.eat_words(words)) {
            Some((_, mode)) => {
                self.expect_word(K::Mode)?;
                Ok(*mode)
            }
            None => Err(self.unexpected()),
        }
    }

    /// BEGIN, COMMIT and their like; the keyword was consumed.
    pub(super) fn transaction(&mut self, keyword: K, at: At) -> Result<Statement> {
        let kind = match keyword {
            K::Begin => {
                self.work();
                TransactionKind::Begin { start: false, modes: self.transaction_modes()? }
            }
            K::Start => {
                self.expect_word(K::Transaction)?;
                TransactionKind::Begin { start: true, modes: self.transaction_modes()? }
            }
            K::Commit | K::Rollback if self.at_word(K::Prepared) => {
                self.advance();
                self.string()?;
                return self.refuse_rest(at, "two-phase commit", None);
            }
            K::Commit | K::End => {
                self.work();
                TransactionKind::Commit { chain: self.chain_words()? }
            }
            K::Rollback | K::Abort => {
                self.work();
                if keyword == K::Rollback && self.eat_word(K::To) {
                    self.savepoint_word();
                    TransactionKind::RollbackTo(self.ident()?)
                } else {
                    TransactionKind::Rollback { chain: self.chain_words()? }
                }
            }
            K::Savepoint => TransactionKind::Savepoint(self.ident()?),
            _ => {
                self.savepoint_word();
                TransactionKind::Release(self.ident()?)
            }
        };
        Ok(Statement::Transaction(Transaction { at, kind }))
    }

    /// WORK, TRANSACTION, or nothing.
    fn work(&mut self) {
        if !self.eat_word(K::Work) {
            self.eat_word(K::Transaction);
        }
    }

    /// SAVEPOINT before a savepoint's name. It may be the name itself.
    fn savepoint_word(&mut self) {
        if Self::is_column_name(self.ahead(1)) {
            self.eat_word(K::Savepoint);
        }
    }

    /// `AND [NO] CHAIN`, or nothing.
    fn chain_words(&mut self) -> Result<bool> {
        if !self.eat_word(K::And) {
            return Ok(false);
        }
        let no = self.eat_word(K::No);
        self.expect_word(K::Chain)?;
        Ok(!no)
    }

    /// Modes with or without commas, as many as follow.
    fn transaction_modes(&mut self) -> Result<Vec<TransactionMode>> {
        let mut modes = vec![];
        while let Some(mode) = self.transaction_mode()? {
            modes.push(mode);
            if self.eat(Kind::Comma) && !self.at_any(&[K::Isolation, K::Read, K::Deferrable, K::Not]) {
                return Err(self.unexpected());
            }
        }
        Ok(modes)
    }

    fn transaction_mode(&mut self) -> Result<Option<TransactionMode>> {
        let mode = match self.token().keyword {
            Some(K::Isolation) => {
                self.expect_words(&[K::Isolation, K::Level])?;
                TransactionMode::Isolation(self.isolation()?)
            }
            Some(K::Read) => {
                self.advance();
                let only = self.eat_word(K::Only);
                if !only {
                    self.expect_word(K::Write)?;
                }
                TransactionMode::ReadOnly(only)
            }
            Some(K::Deferrable) => {
                self.advance();
                TransactionMode::Deferrable(true)
            }
            Some(K::Not) => {
                self.expect_words(&[K::Not, K::Deferrable])?;
                TransactionMode::Deferrable(false)
            }
            _ => return Ok(None),
        };
        Ok(Some(mode))
    }

    fn isolation(&mut self) -> Result<Isolation> {
        match self.token().keyword {
            Some(K::Serializable) => {
                self.advance();
                Ok(Isolation::Serializable)
            }
            Some(K::Repeatable) => {
                self.expect_words(&[K::Repeatable, K::Read])?;
                Ok(Isolation::RepeatableRead)
            }
            _ => {
                self.expect_word(K::Read)?;
                if self.eat_word(K::Committed) {
                    return Ok(Isolation::ReadCommitted);
                }
                self.expect_word(K::Uncommitted)?;
                Ok(Isolation::ReadUncommitted)
            }
        }
    }

    /// At least one mode.
    fn some_modes(&mut self) -> Result<Vec<TransactionMode>> {
        let modes = self.transaction_modes()?;
        if modes.is_empty() { Err(self.unexpected()) } else { Ok(modes) }
    }

    /// `SET CONSTRAINTS a, b DEFERRED`.
    fn set_constraints(&mut self, at: At) -> Result<Statement> {
        self.expect_word(K::Constraints)?;
        let names = if self.eat_word(K::All) { None } else { Some(self.list(Self::relation_name)?) };
        let deferred = self.eat_word(K::Deferred);
        if !deferred {
            self.expect_word(K::Immediate)?;
        }
        Ok(Statement::SetConstraints(SetConstraints { at, names, deferred }))
    }

    /// What follows SET.
    pub(super) fn set(&mut self, at: At) -> Result<Statement> {
        if self.at_word(K::Constraints) {
            return self.set_constraints(at);
        }
        let named = |parser: &Self| {
            matches!(parser.ahead(1).kind, Kind::Equal | Kind::Dot) || parser.ahead(1).keyword == Some(K::To)
        };
        // LOCAL and SESSION may be the names of settings as well.
        let local = self.at_word(K::Local) && !named(self);
        if local {
            self.advance();
        }
        let next = self.ahead(1).keyword;
        if !local && self.at_word(K::Session) && !matches!(next, Some(K::Authorization)) {
            if next == Some(K::Characteristics) {
                self.next += 2;
                self.expect_words(&[K::As, K::Transaction])?;
                let modes = self.some_modes()?;
                return Ok(Statement::SetTransaction(SetTransaction { at, session: true, modes, snapshot: None }));
            }
            if !named(self) {
                self.advance();
            }
        }
        self.set_rest(at, local)
    }

    fn set_rest(&mut self, at: At, local: bool) -> Result<Statement> {
        let place = self.place();
        let plain = matches!(self.ahead(1).kind, Kind::Equal | Kind::Dot)
            || matches!(self.ahead(1).keyword, Some(K::To | K::From));
        let setting = |name: &str| Setting { at: place, name: name.to_owned() };
        let value = |name: &str, value| Ok(Statement::Set(Set { at, local, name: setting(name), value }));
        match self.token().keyword {
            Some(K::Transaction) if !plain => {
                self.advance();
                let snapshot = if self.eat_word(K::Snapshot) { Some(self.string()?) } else { None };
                let modes = if snapshot.is_some() { vec![] } else { self.some_modes()? };
                Ok(Statement::SetTransaction(SetTransaction { at, session: false, modes, snapshot }))
            }
            Some(K::Time) if self.ahead(1).keyword == Some(K::Zone) => {
                self.next += 2;
                let zone = self.zone()?;
                value("timezone", zone)
            }
            Some(K::Catalog) if !plain => {
                self.advance();
                let place = self.place();
                self.string()?;
                Err(SyntaxError::with_state("0A000", "current database cannot be changed", place))
            }
            Some(K::Schema) if !plain => {
                self.advance();
                let text = self.text_value()?;
                value("search_path", Some(vec![text]))
            }
            Some(K::Names) if !plain => {
                self.advance();
                let names = match self.token().keyword {
                    Some(K::Default) => {
                        self.advance();
                        None
                    }
                    _ if self.at_string() => Some(vec![self.text_value()?]),
                    _ => None,
                };
                value("client_encoding", names)
            }
            Some(K::Role) if !plain => {
                self.advance();
                let role = self.setting_word()?;
                value("role", Some(vec![role]))
            }
            Some(K::Session) if self.ahead(1).keyword == Some(K::Authorization) => {
                self.next += 2;
                let role = match self.eat_word(K::Default) {
                    true => None,
                    false => Some(vec![self.setting_word()?]),
                };
                value("session_authorization", role)
            }
            Some(K::Xml) if self.ahead(1).keyword == Some(K::Option) => self.refuse_rest(at, "XML", None),
            _ => self.set_variable(at, local),
        }
    }

    /// `a.b = 1, 'x'`.
    fn set_variable(&mut self, at: At, local: bool) -> Result<Statement> {
        let name = self.setting()?;
        if self.eat_word(K::From) {
            self.expect_word(K::Current)?;
            return self.refuse_rest(at, "SET FROM CURRENT", None);
        }
        let value = self.setting_values()?;
        Ok(Statement::Set(Set { at, local, name, value }))
    }

    /// `TO a, b`, `= DEFAULT`.
    fn setting_values(&mut self) -> Result<Option<Vec<SettingValue>>> {
        if !self.eat(Kind::Equal) {
            self.expect_word(K::To)?;
        }
        if self.eat_word(K::Default) {
            return Ok(None);
        }
        self.list(Self::setting_value).map(Some)
    }

    /// The name of a setting.
    fn setting(&mut self) -> Result<Setting> {
        let first = self.ident()?;
        let mut name = first.name;
        while self.eat(Kind::Dot) {
            name = format!("{name}.{}", self.ident()?.name);
        }
        Ok(Setting { at: first.at, name })
    }

    fn setting_value(&mut self) -> Result<SettingValue> {
        if matches!(self.token().kind, Kind::Integer | Kind::Number | Kind::Plus | Kind::Minus) {
            let at = self.place();
            return Ok(SettingValue { at, kind: SettingValueKind::Number(self.number_text()?) });
        }
        self.setting_word()
    }

    /// A number as it is written.
    pub(super) fn number_text(&mut self) -> Result<String> {
        let first = self.place();
        self.number_literal()?;
        let end = self.tokens[self.next - 1].end;
        let text = &self.sql[first as usize..end as usize];
        Ok(text.trim_start_matches('+').split_whitespace().collect())
    }

    /// Whether a token can be the value of a setting or an option: any word that is not reserved, and some that are.
    pub(super) fn is_value_word(token: Token) -> bool {
        let more = matches!(token.keyword, Some(K::True | K::False | K::On));
        Self::is_label(token) && (more || token.keyword.is_none_or(|word| word.category() != Category::Reserved))
    }

    /// A word or a string.
    fn setting_word(&mut self) -> Result<SettingValue> {
        if self.at_string() {
            return self.text_value();
        }
        if !Self::is_value_word(self.token()) {
            return Err(self.unexpected());
        }
        let Ident { at, name } = self.label()?;
        Ok(SettingValue { at, kind: SettingValueKind::Text(name) })
    }

    fn text_value(&mut self) -> Result<SettingValue> {
        let at = self.place();
        Ok(SettingValue { at, kind: SettingValueKind::Text(self.string()?) })
    }

    /// What follows TIME ZONE. None: DEFAULT or LOCAL.
    fn zone(&mut self) -> Result<Option<Vec<SettingValue>>> {
        let at = self.place();
        let kind = match self.token().keyword {
            Some(K::Default | K::Local) => {
                self.advance();
                return Ok(None);
            }
            Some(K::Interval) => {
                let mut to = self.type_before_constant()?;
                let text = self.string()?;
                let fields_at = self.place();
                if to.modifiers.is_empty() {
                    self.interval_fields(&mut to)?;
                }
                let allowed = [None, Some("hour"), Some("hour to minute")];
                if !allowed.contains(&to.fields.as_deref()) {
                    let message = "time zone interval must be HOUR or HOUR TO MINUTE";
                    return Err(SyntaxError::new(message, fields_at));
                }
                SettingValueKind::Interval(text, Box::new(to))
            }
            Some(_) => return Err(self.unexpected()),
            None if self.at_string() => SettingValueKind::Text(self.string()?),
            None if Self::is_label(self.token()) => SettingValueKind::Text(self.label()?.name),
            None => SettingValueKind::Number(self.number_text()?),
        };
        Ok(Some(vec![SettingValue { at, kind }]))
    }

    /// What follows RESET or SHOW.
    pub(super) fn of_setting(&mut self, at: At) -> Result<OfSetting> {
        let place = self.place();
        let known = |name: &str| Some(Setting { at: place, name: name.to_owned() });
        let next = self.ahead(1).keyword;
        let (words, name) = match (self.token().keyword, next) {
            (Some(K::All), _) => (1, None),
            (Some(K::Time), Some(K::Zone)) => (2, known("timezone")),
            (Some(K::Session), Some(K::Authorization)) => (2, known("session_authorization")),
            (Some(K::Transaction), Some(K::Isolation)) => {
                self.next += 2;
                self.expect_word(K::Level)?;
                (0, known("transaction_isolation"))
            }
            _ => (0, Some(self.setting()?)),
        };
        self.next += words;
        Ok(OfSetting { at, name })
    }

    /// What follows `ALTER SYSTEM`.
    pub(super) fn alter_system(&mut self, at: At) -> Result<Statement> {
        if self.eat_word(K::Reset) {
            let name = self.of_setting(at)?.name;
            return Ok(Statement::AlterSystem(AlterSystem { at, name, value: None }));
        }
        self.expect_word(K::Set)?;
        let name = Some(self.setting()?);
        let value = self.setting_values()?;
        Ok(Statement::AlterSystem(AlterSystem { at, name, value }))
    }

    /// What follows DISCARD.
    pub(super) fn discard(&mut self) -> Result<Statement> {
        let what = match self.token().keyword {
            Some(K::All) => Discard::All,
            Some(K::Plans) => Discard::Plans,
            Some(K::Sequences) => Discard::Sequences,
            Some(K::Temp | K::Temporary) => Discard::Temporary,
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(Statement::Discard(what))
    }
}
