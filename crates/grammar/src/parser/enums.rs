//! CREATE TYPE and ALTER TYPE, as far as they are about enums and composite types.

use super::Parser;
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::Kind;
use crate::statement::{
    AlterComposite, AlterEnum, At, AttributeChange, CreateComposite, CreateEnum, EnumChange, ObjectKind, Statement,
};

const HINT: &str = "Types of one's own are enums and composite types: CREATE TYPE ... AS ENUM, CREATE TYPE ... AS.";

impl Parser<'_> {
    /// What follows `CREATE TYPE`.
    pub(super) fn create_type(&mut self, at: At) -> Result<Statement> {
        let name = self.any_name()?;
        if self.at_word(K::As) && self.ahead(1).kind == Kind::LeftParen {
            self.next += 2;
            let attributes = if self.at(Kind::RightParen) { vec![] } else { self.list(Self::column_definition)? };
            self.expect(Kind::RightParen)?;
            return Ok(Statement::CreateComposite(CreateComposite { at, name, attributes }));
        }
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
            (Some(K::Rename), Some(K::Attribute)) => {
                self.next += 2;
                let from = self.ident()?;
                self.expect_word(K::To)?;
                let to = self.ident()?;
                // About tables of a type, which there are none of.
                self.cascade();
                let changes = vec![AttributeChange::Rename { from, to }];
                Ok(Statement::AlterComposite(Box::new(AlterComposite { at, name, changes })))
            }
            (Some(K::Add | K::Drop | K::Alter), Some(K::Attribute)) => {
                let changes = self.list(Self::attribute_change)?;
                Ok(Statement::AlterComposite(Box::new(AlterComposite { at, name, changes })))
            }
            (Some(K::Rename | K::Add | K::Set | K::Drop | K::Alter), _) => {
                self.refuse_rest(at, "this form of ALTER TYPE", None)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn attribute_change(&mut self) -> Result<AttributeChange> {
        let change = match self.token().keyword {
            Some(K::Add) if self.ahead(1).keyword == Some(K::Attribute) => {
                self.next += 2;
                AttributeChange::Add(self.column_definition()?)
            }
            Some(K::Drop) if self.ahead(1).keyword == Some(K::Attribute) => {
                self.next += 2;
                let if_exists = self.eat_words(&[K::If, K::Exists]);
                AttributeChange::Drop { if_exists, name: self.ident()? }
            }
            Some(K::Alter) if self.ahead(1).keyword == Some(K::Attribute) => {
                self.next += 2;
                let name = self.ident()?;
                self.eat_words(&[K::Set, K::Data]);
                self.expect_word(K::Type)?;
                let data_type = self.type_name()?;
                let collation = if self.eat_word(K::Collate) { Some(self.any_name()?) } else { None };
                AttributeChange::SetType { name, data_type, collation }
            }
            _ => return Err(self.unexpected()),
        };
        self.cascade();
        Ok(change)
    }
}
