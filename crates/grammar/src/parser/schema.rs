//! CREATE SCHEMA and ALTER SCHEMA, and SET SCHEMA of what a schema has.

use super::Parser;
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::Kind;
use crate::statement::{At, CreateSchema, Name, ObjectKind, SetSchema, Statement};

impl Parser<'_> {
    /// What follows `CREATE SCHEMA`.
    pub(super) fn create_schema(&mut self, at: At) -> Result<Statement> {
        let if_not_exists = self.eat_words(&[K::If, K::Not, K::Exists]);
        let name = if self.at_word(K::Authorization) { None } else { Some(self.ident()?) };
        let owner = if self.eat_word(K::Authorization) { Some(self.role_name()?) } else { None };
        let mut elements = vec![];
        while !matches!(self.token().kind, Kind::Semicolon | Kind::End) {
            let element = self.schema_element()?;
            if matches!(element, Statement::Refused(_)) {
                return Ok(element);
            }
            elements.push(element);
        }
        Ok(Statement::CreateSchema(Box::new(CreateSchema { at, if_not_exists, name, owner, elements })))
    }

    /// CREATE of a table, a view, an index or a sequence, or GRANT.
    fn schema_element(&mut self) -> Result<Statement> {
        let at = self.place();
        if self.eat_word(K::Grant) {
            return self.grant(at, false);
        }
        self.expect_word(K::Create)?;
        let element = [K::Table, K::Temp, K::Temporary, K::Local, K::Global, K::Unlogged, K::View, K::Or, K::Recursive];
        let others = [K::Index, K::Unique, K::Sequence, K::Trigger, K::Constraint];
        if !self.at_any(&element) && !self.at_any(&others) {
            return Err(self.unexpected());
        }
        self.create(at)
    }

    /// What follows `ALTER SCHEMA`.
    pub(super) fn alter_schema(&mut self, at: At) -> Result<Statement> {
        let name = Name::one(self.ident()?);
        match (self.token().keyword, self.ahead(1).keyword) {
            (Some(K::Rename), Some(K::To)) => self.rename(at, ObjectKind::Schema, false, name),
            (Some(K::Owner), _) => self.owner(at, ObjectKind::Schema, false, name),
            _ => Err(self.unexpected()),
        }
    }

    /// `SET SCHEMA b`, where it follows.
    pub(super) fn at_set_schema(&self) -> bool {
        self.at_word(K::Set) && self.ahead(1).keyword == Some(K::Schema)
    }

    /// `SET SCHEMA b`.
    pub(super) fn set_schema(&mut self, at: At, kind: ObjectKind, if_exists: bool, name: Name) -> Result<Statement> {
        self.expect_words(&[K::Set, K::Schema])?;
        Ok(Statement::SetSchema(SetSchema { at, kind, if_exists, name, to: self.ident()? }))
    }
}
