//! CREATE TYPE and ALTER TYPE, as far as they are about enums.

use super::Parser;
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::Kind;
use crate::statement::{AlterEnum, At, CreateEnum, EnumChange, ObjectKind, Statement};

const HINT: &str = "Types of one's own are enums: CREATE TYPE ... AS ENUM.";

impl Parser<'_> {
    /// What follows `CREATE TYPE`.
    pub(super) fn create_type(&mut self, at: At) -> Result<Statement> {
        let name = self.any_name()?;
        if !self.eat_words(&[K::As, K::Enum]) {
            return self.refuse_rest(at, "this form of CREATE TYPE", Some(HINT));
        }
        self.expect(Kind::LeftParen)?;
        let labels = if self.at(Kind::RightParen) { vec![] } else { self.list(Self::string)? };
        self.expect(Kind::RightParen)?;
        Ok(Statement::CreateEnum(CreateEnum { at, name, labels }))
    }

    /// What follows `ALTER TYPE`.
    pub(super) fn alter_own_type(&mut self, at: At) -> Result<Statement> {
        let name = self.any_name()?;
        match (self.token().keyword, self.ahead(1).keyword) {
            (Some(K::Owner), _) => self.owner(at, ObjectKind::Type, false, name),
            (Some(K::Set), Some(K::Schema)) => self.set_schema(at, ObjectKind::Type, false, name),
            (Some(K::Rename), Some(K::To)) => self.rename(at, ObjectKind::Type, false, name),
            (Some(K::Rename), Some(K::Value)) => {
                self.next += 2;
                let from = self.string()?;
                self.expect_word(K::To)?;
                let change = EnumChange::Rename { from, to: self.string()? };
                Ok(Statement::AlterEnum(AlterEnum { at, name, change }))
            }
            (Some(K::Add), Some(K::Value)) => {
                self.next += 2;
                let if_not_exists = self.eat_words(&[K::If, K::Not, K::Exists]);
                let label = self.string()?;
                let behind = self.at_word(K::After);
                let beside = match behind || self.at_word(K::Before) {
                    true => {
                        self.advance();
                        Some((self.string()?, behind))
                    }
                    false => None,
                };
                let change = EnumChange::Add { if_not_exists, label, beside };
                Ok(Statement::AlterEnum(AlterEnum { at, name, change }))
            }
            (Some(K::Rename | K::Add | K::Set | K::Drop | K::Alter), _) => {
                self.refuse_rest(at, "this form of ALTER TYPE", None)
            }
            _ => Err(self.unexpected()),
        }
    }
}
