//! Which statement a text is.

use super::Parser;
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::Kind;
use crate::statement::Statement;

impl Parser<'_> {
    /// One statement.
    pub(super) fn statement(&mut self) -> Result<Statement> {
        match self.token().keyword {
            _ if self.at(Kind::LeftParen) => self.preparable(),
            Some(K::Select | K::Values | K::Table | K::With | K::Insert | K::Update | K::Delete | K::Merge) => {
                self.preparable()
            }
            _ => Err(self.unexpected()),
        }
    }

    /// A query or a change of rows: what WITH and PREPARE can hold.
    pub(super) fn preparable(&mut self) -> Result<Statement> {
        let with = self.maybe_with()?;
        match self.token().keyword {
            Some(K::Insert) => Ok(Statement::Insert(Box::new(self.insert(with)?))),
            Some(K::Update) => Ok(Statement::Update(Box::new(self.update(with)?))),
            Some(K::Delete) => Ok(Statement::Delete(Box::new(self.delete(with)?))),
            Some(K::Merge) => Ok(Statement::Refused(self.merge()?)),
            Some(K::Select | K::Values | K::Table) => Ok(Statement::Query(Box::new(self.query_behind(with)?))),
            _ if self.at(Kind::LeftParen) => Ok(Statement::Query(Box::new(self.query_behind(with)?))),
            _ => Err(self.unexpected()),
        }
    }
}
