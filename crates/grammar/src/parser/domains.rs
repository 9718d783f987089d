//! CREATE DOMAIN and ALTER DOMAIN.

use super::Parser;
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::statement::{
    AlterDomain, At, CreateDomain, DomainChange, ObjectKind, Statement, TableConstraint, TableConstraintKind,
};

impl Parser<'_> {
    /// What follows `CREATE DOMAIN`.
    pub(super) fn create_domain(&mut self, at: At) -> Result<Statement> {
        let name = self.any_name()?;
        self.eat_word(K::As);
        let data_type = self.type_name()?;
        let collation = if self.eat_word(K::Collate) { Some(self.any_name()?) } else { None };
        let mut constraints = vec![];
        while let Some(constraint) = self.column_constraint()? {
            constraints.push(constraint);
        }
        Ok(Statement::CreateDomain(Box::new(CreateDomain { at, name, data_type, collation, constraints })))
    }

    /// What follows `ALTER DOMAIN`.
    pub(super) fn alter_domain(&mut self, at: At) -> Result<Statement> {
        let name = self.any_name()?;
        match (self.token().keyword, self.ahead(1).keyword) {
            (Some(K::Owner), _) => return self.owner(at, ObjectKind::Domain, false, name),
            (Some(K::Rename), Some(K::To | K::Constraint)) => return self.rename(at, ObjectKind::Domain, false, name),
            (Some(K::Set), Some(K::Schema)) => return self.set_schema(at, ObjectKind::Domain, false, name),
            _ => {}
        }
        let change = match self.token().keyword {
            Some(K::Set) => {
                self.advance();
                if self.eat_word(K::Default) {
                    DomainChange::Default(Some(self.written(Self::expr)?))
                } else {
                    self.expect_words(&[K::Not, K::Null])?;
                    DomainChange::NotNull(true)
                }
            }
            Some(K::Drop) => {
                self.advance();
                if self.eat_word(K::Default) {
                    DomainChange::Default(None)
                } else if self.eat_word(K::Constraint) {
                    let if_exists = self.eat_words(&[K::If, K::Exists]);
                    let name = self.ident()?;
                    self.cascade();
                    DomainChange::DropConstraint { if_exists, name }
                } else {
                    self.expect_words(&[K::Not, K::Null])?;
                    DomainChange::NotNull(false)
                }
            }
            Some(K::Validate) => {
                self.expect_words(&[K::Validate, K::Constraint])?;
                DomainChange::Validate(self.ident()?)
            }
            Some(K::Add) => {
                self.advance();
                match self.table_constraint()? {
                    Some(TableConstraint {
                        name, kind: TableConstraintKind::Check { expr, .. }, not_valid, ..
                    }) => DomainChange::Check { name, condition: expr, not_valid },
                    _ => return self.refuse_rest(at, "this constraint of a domain", None),
                }
            }
            _ => return Err(self.unexpected()),
        };
        Ok(Statement::AlterDomain(Box::new(AlterDomain { at, name, change })))
    }
}
