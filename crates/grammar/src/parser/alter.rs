//! ALTER TABLE and ALTER SEQUENCE, and RENAME of all kinds.

use super::Parser;
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::Kind;
use crate::statement::{
    AlterAction, AlterSequence, AlterTable, At, ColumnConstraintKind, Deferral, Ident, Name, ObjectKind, Owner, Rename,
    RenamedPart, Statement,
};

impl Parser<'_> {
    /// What follows `ALTER TABLE`.
    pub(super) fn alter_table(&mut self, at: At) -> Result<Statement> {
        if self.at_word(K::All) {
            return self.refuse_rest(at, "ALTER TABLE ALL", None);
        }
        let if_exists = self.eat_words(&[K::If, K::Exists]);
        let (name, only) = self.relation()?;
        match self.token().keyword {
            Some(K::Rename) => return self.rename(at, ObjectKind::Table, if_exists, name),
            Some(K::Attach | K::Detach) => return self.refuse_rest(at, "a partition of a table", None),
            _ if self.at_set_schema() => return self.set_schema(at, ObjectKind::Table, if_exists, name),
            _ => {}
        }
        let actions = self.list(Self::alter_action)?.into_iter().flatten().collect();
        Ok(Statement::AlterTable(Box::new(AlterTable { at, kind: ObjectKind::Table, if_exists, only, name, actions })))
    }

    /// `RENAME TO b`, `RENAME COLUMN a TO b`, `RENAME CONSTRAINT a TO b`.
    pub(super) fn rename(&mut self, at: At, kind: ObjectKind, if_exists: bool, name: Name) -> Result<Statement> {
        self.expect_word(K::Rename)?;
        let part = match self.token().keyword {
            Some(K::To) => RenamedPart::Whole,
            Some(K::Constraint) => {
                self.advance();
                RenamedPart::Constraint(self.ident()?)
            }
            _ => {
                // COLUMN may be left out. It is no name: it is reserved.
                self.eat_word(K::Column);
                RenamedPart::Column(self.ident()?)
            }
        };
        self.expect_word(K::To)?;
        let to = self.ident()?;
        Ok(Statement::Rename(Rename { at, kind, if_exists, name, part, to }))
    }

    /// `OWNER TO b`.
    pub(super) fn owner(&mut self, at: At, kind: ObjectKind, if_exists: bool, name: Name) -> Result<Statement> {
        self.expect_words(&[K::Owner, K::To])?;
        Ok(Statement::Owner(Owner { at, kind, if_exists, name, to: self.role_name()? }))
    }

    /// What follows `ALTER VIEW`.
    pub(super) fn alter_view(&mut self, at: At) -> Result<Statement> {
        let if_exists = self.eat_words(&[K::If, K::Exists]);
        let name = self.relation_name()?;
        match self.token().keyword {
            Some(K::Owner) => self.owner(at, ObjectKind::View, if_exists, name),
            _ if self.at_set_schema() => self.set_schema(at, ObjectKind::View, if_exists, name),
            Some(K::Rename) => self.rename(at, ObjectKind::View, if_exists, name),
            _ => {
                let actions = self.list(Self::alter_action)?.into_iter().flatten().collect();
                let kind = ObjectKind::View;
                Ok(Statement::AlterTable(Box::new(AlterTable { at, kind, if_exists, only: false, name, actions })))
            }
        }
    }

    /// One action. None: it was refused.
    fn alter_action(&mut self) -> Result<Option<AlterAction>> {
        let at = self.place();
        let Some(keyword) = self.token().keyword else { return Err(self.unexpected()) };
        match keyword {
            K::Add => {
                self.advance();
                self.alter_add()
            }
            K::Drop => {
                self.advance();
                self.alter_drop().map(Some)
            }
            K::Alter if self.ahead(1).keyword == Some(K::Constraint) => {
                self.next += 2;
                let name = self.ident()?;
                let mut deferral = Deferral::default();
                while let Some(said) = self.deferral(Some(deferral))? {
                    deferral = said;
                }
                Ok(Some(AlterAction::AlterConstraint { name, deferral }))
            }
            K::Alter => {
                self.advance();
                self.eat_word(K::Column);
                let column = match self.token().kind {
                    Kind::Integer => return self.alter_refused(at, "SET STATISTICS"),
                    _ => self.ident()?,
                };
                self.alter_column(column)
            }
            K::Validate => {
                self.advance();
                self.expect_word(K::Constraint)?;
                Ok(Some(AlterAction::ValidateConstraint(self.ident()?)))
            }
            K::Owner => {
                self.advance();
                self.expect_word(K::To)?;
                Ok(Some(AlterAction::Owner(self.role_name()?)))
            }
            K::Set if self.ahead(1).kind == Kind::LeftParen => {
                self.advance();
                Ok(Some(AlterAction::SetStorage(self.storage()?)))
            }
            K::Reset => {
                self.advance();
                Ok(Some(AlterAction::ResetStorage(self.storage()?)))
            }
            K::Set
            | K::Cluster
            | K::Inherit
            | K::No
            | K::Of
            | K::Not
            | K::Enable
            | K::Disable
            | K::Replica
            | K::Force
            | K::Options => self.alter_refused(at, "this form of ALTER TABLE"),
            _ => Err(self.unexpected()),
        }
    }

    /// Passes the rest of the statement by.
    fn alter_refused(&mut self, at: At, what: &str) -> Result<Option<AlterAction>> {
        self.skip_rest()?;
        self.refuse(at, what);
        Ok(None)
    }

    /// What follows ADD.
    fn alter_add(&mut self) -> Result<Option<AlterAction>> {
        match self.token().keyword {
            Some(K::Constraint | K::Check | K::Unique | K::Primary | K::Exclude | K::Foreign) => {
                Ok(self.table_constraint()?.map(|constraint| AlterAction::AddConstraint(Box::new(constraint))))
            }
            _ => {
                self.eat_word(K::Column);
                let if_not_exists = self.eat_words(&[K::If, K::Not, K::Exists]);
                let column = Box::new(self.column()?);
                Ok(Some(AlterAction::AddColumn { if_not_exists, column }))
            }
        }
    }

    /// What follows DROP.
    fn alter_drop(&mut self) -> Result<AlterAction> {
        if self.eat_word(K::Constraint) {
            let if_exists = self.eat_words(&[K::If, K::Exists]);
            let name = self.ident()?;
            return Ok(AlterAction::DropConstraint { if_exists, name, cascade: self.cascade() });
        }
        self.eat_word(K::Column);
        let if_exists = self.eat_words(&[K::If, K::Exists]);
        let column = self.ident()?;
        Ok(AlterAction::DropColumn { if_exists, column, cascade: self.cascade() })
    }

    /// CASCADE, RESTRICT, or nothing.
    pub(super) fn cascade(&mut self) -> bool {
        self.eat_word(K::Cascade) || {
            self.eat_word(K::Restrict);
            false
        }
    }

    /// What follows `ALTER COLUMN a`.
    fn alter_column(&mut self, column: Ident) -> Result<Option<AlterAction>> {
        let at = self.place();
        let first = self.token().keyword;
        let second = self.ahead(1).keyword;
        let action = match (first, second) {
            (Some(K::Set), Some(K::Default)) => {
                self.next += 2;
                AlterAction::SetDefault { column, value: self.written(Self::expr)? }
            }
            (Some(K::Drop), Some(K::Default)) => {
                self.next += 2;
                AlterAction::DropDefault { column }
            }
            (Some(K::Set), Some(K::Not)) => {
                self.next += 2;
                self.expect_word(K::Null)?;
                AlterAction::SetNotNull { column }
            }
            (Some(K::Drop), Some(K::Not)) => {
                self.next += 2;
                self.expect_word(K::Null)?;
                AlterAction::DropNotNull { column }
            }
            (Some(K::Drop), Some(K::Expression)) => {
                self.next += 2;
                AlterAction::DropExpression { column, if_exists: self.eat_words(&[K::If, K::Exists]) }
            }
            (Some(K::Drop), Some(K::Identity)) => {
                self.next += 2;
                AlterAction::DropIdentity { column, if_exists: self.eat_words(&[K::If, K::Exists]) }
            }
            (Some(K::Set), Some(K::Data)) | (Some(K::Type), _) => {
                if !self.eat_word(K::Type) {
                    self.next += 2;
                    self.expect_word(K::Type)?;
                }
                self.alter_type(column)?
            }
            (Some(K::Add), Some(K::Generated)) => {
                self.next += 1;
                let constraint = self.column_constraint()?.map(|constraint| constraint.kind);
                let Some(ColumnConstraintKind::Identity { always, options }) = constraint else {
                    return Err(self.unexpected());
                };
                AlterAction::AddIdentity { column, always, options }
            }
            (Some(K::Set), Some(K::Generated)) | (Some(K::Restart), _) => self.set_identity(column)?,
            (Some(K::Set), Some(word)) if Self::starts_sequence_option(word) => self.set_identity(column)?,
            (Some(K::Set | K::Drop | K::Reset | K::Options), _) => {
                return self.alter_refused(at, "this form of ALTER COLUMN");
            }
            _ => return Err(self.unexpected()),
        };
        Ok(Some(action))
    }

    /// SET GENERATED, RESTART and SET of sequence options, any number of them.
    fn set_identity(&mut self, column: Ident) -> Result<AlterAction> {
        let (mut always, mut options) = (None, vec![]);
        loop {
            match (self.token().keyword, self.ahead(1).keyword) {
                (Some(K::Set), Some(K::Generated)) => {
                    self.next += 2;
                    let is_always = self.eat_word(K::Always);
                    if !is_always {
                        self.expect_words(&[K::By, K::Default])?;
                    }
                    always = Some(is_always);
                }
                (Some(K::Set), Some(word)) if Self::starts_sequence_option(word) => {
                    self.advance();
                    options.extend(self.sequence_option()?);
                }
                (Some(K::Restart), _) => options.extend(self.sequence_option()?),
                _ => return Ok(AlterAction::SetIdentity { column, always, options }),
            }
        }
    }

    fn alter_type(&mut self, column: Ident) -> Result<AlterAction> {
        let data_type = Box::new(self.type_name()?);
        let collation = if self.eat_word(K::Collate) { Some(self.any_name()?) } else { None };
        let using = if self.eat_word(K::Using) { Some(self.written(Self::expr)?) } else { None };
        Ok(AlterAction::SetType { column, data_type, collation, using })
    }

    /// What follows `ALTER SEQUENCE`.
    pub(super) fn alter_sequence(&mut self, at: At) -> Result<Statement> {
        let if_exists = self.eat_words(&[K::If, K::Exists]);
        let name = self.relation_name()?;
        match self.token().keyword {
            Some(K::Rename) => return self.rename(at, ObjectKind::Sequence, if_exists, name),
            Some(K::Owner) => return self.owner(at, ObjectKind::Sequence, if_exists, name),
            _ if self.at_set_schema() => return self.set_schema(at, ObjectKind::Sequence, if_exists, name),
            Some(K::Set) => return self.refuse_rest(at, "this form of ALTER SEQUENCE", None),
            _ => {}
        }
        let options = self.sequence_options()?;
        if options.is_empty() {
            return Err(self.unexpected());
        }
        Ok(Statement::AlterSequence(Box::new(AlterSequence { at, if_exists, name, options })))
    }

    /// What follows `ALTER INDEX`.
    pub(super) fn alter_index(&mut self, at: At) -> Result<Statement> {
        let if_exists = self.eat_words(&[K::If, K::Exists]);
        if self.at_word(K::All) {
            return self.refuse_rest(at, "ALTER INDEX ALL", None);
        }
        let name = self.relation_name()?;
        match self.token().keyword {
            Some(K::Rename) => self.rename(at, ObjectKind::Index, if_exists, name),
            Some(K::Set | K::Reset | K::Attach | K::Alter | K::Depends | K::No) => {
                self.refuse_rest(at, "this form of ALTER INDEX", None)
            }
            _ => Err(self.unexpected()),
        }
    }
}
