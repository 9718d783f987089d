//! GRANT and REVOKE, of privileges and of roles, and ALTER GROUP.

use super::Parser;
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::Kind;
use crate::statement::{
    At, DefaultPrivileges, Grant, GrantRole, Granted, Grantee, Ident, ObjectKind, Privilege, Statement,
};

impl Parser<'_> {
    /// What follows GRANT or REVOKE.
    pub(super) fn grant(&mut self, at: At, revoke: bool) -> Result<Statement> {
        let option_for = match (revoke, self.token().keyword, self.ahead(1).keyword) {
            (true, Some(K::Grant), Some(K::Option)) | (true, Some(K::Admin), Some(K::Option)) => {
                let admin = self.at_word(K::Admin);
                self.next += 2;
                self.expect_word(K::For)?;
                Some(admin)
            }
            _ => None,
        };
        let privileges = match self.at_word(K::All) {
            true => {
                self.advance();
                self.eat_word(K::Privileges);
                let columns = if self.at(Kind::LeftParen) { self.list_in_parens(Self::ident)? } else { vec![] };
                vec![Privilege { at, name: None, columns }]
            }
            false => self.list(Self::privilege)?,
        };
        match self.eat_word(K::On) {
            true if option_for == Some(true) => Err(self.unexpected()),
            true => self.grant_on(at, (revoke, option_for.is_some()), privileges),
            false => self.grant_role(at, (revoke, option_for.is_some()), privileges),
        }
    }

    /// A privilege, or the name of a role.
    fn privilege(&mut self) -> Result<Privilege> {
        let token = self.token();
        let reserved = matches!(token.keyword, Some(K::Select | K::References | K::Create));
        let name = if reserved { self.label()? } else { self.role_name()? };
        let columns = if self.at(Kind::LeftParen) { self.list_in_parens(Self::ident)? } else { vec![] };
        Ok(Privilege { at: token.start, name: Some(name), columns })
    }

    fn grant_on(
        &mut self,
        at: At,
        (revoke, option_for): (bool, bool),
        privileges: Vec<Privilege>,
    ) -> Result<Statement> {
        let on = match (self.token().keyword, self.ahead(1).keyword) {
            (Some(K::All), Some(kind @ (K::Tables | K::Sequences))) => {
                self.next += 2;
                self.expect_words(&[K::In, K::Schema])?;
                Granted::AllIn { sequences: kind == K::Sequences, schemas: self.list(Self::ident)? }
            }
            (Some(K::All), Some(K::Functions | K::Procedures | K::Routines)) => {
                return self.refuse_rest(at, "GRANT on functions", None);
            }
            (Some(K::Table), _) => {
                self.advance();
                Granted::Tables(self.list(Self::relation_name)?)
            }
            (Some(K::Sequence), _) => {
                self.advance();
                Granted::Sequences(self.list(Self::relation_name)?)
            }
            (Some(K::Schema), _) => {
                self.advance();
                Granted::Schemas(self.list(Self::ident)?)
            }
            (Some(K::Database), _) => {
                self.advance();
                Granted::Databases(self.list(Self::ident)?)
            }
            (
                Some(
                    word @ (K::Function
                    | K::Procedure
                    | K::Routine
                    | K::Language
                    | K::Type
                    | K::Domain
                    | K::Tablespace
                    | K::Parameter),
                ),
                next,
            ) if next.is_some() || self.ahead(1).kind == Kind::Word => {
                let what = format!("GRANT ON {}", word.text().to_ascii_uppercase());
                return self.refuse_rest(at, &what, None);
            }
            (Some(K::Large), Some(K::Object)) => return self.refuse_rest(at, "GRANT ON LARGE OBJECT", None),
            (Some(K::Foreign), _) => return self.refuse_rest(at, "GRANT ON FOREIGN", None),
            _ => Granted::Tables(self.list(Self::relation_name)?),
        };
        self.expect_word(if revoke { K::From } else { K::To })?;
        let grantees = self.list(Self::grantee)?;
        let with_option = !revoke && self.eat_words(&[K::With, K::Grant, K::Option]);
        let granted_by = self.granted_by()?;
        let cascade = revoke && self.cascade();
        let option = option_for || with_option;
        Ok(Statement::Grant(Box::new(Grant { at, revoke, option, privileges, on, grantees, granted_by, cascade })))
    }

    /// What follows `ALTER DEFAULT PRIVILEGES`.
    pub(super) fn default_privileges(&mut self, at: At) -> Result<Statement> {
        let (mut roles, mut schemas) = (vec![], vec![]);
        loop {
            if self.eat_word(K::For) {
                if !self.eat_word(K::User) {
                    self.expect_word(K::Role)?;
                }
                roles = self.list(Self::role_name)?;
            } else if self.eat_words(&[K::In, K::Schema]) {
                schemas = self.list(Self::ident)?;
            } else {
                break;
            }
        }
        let revoke = self.at_word(K::Revoke);
        if !self.eat_word(K::Revoke) {
            self.expect_word(K::Grant)?;
        }
        let option_for = revoke && self.eat_words(&[K::Grant, K::Option, K::For]);
        let privileges = match self.eat_word(K::All) {
            true => {
                self.eat_word(K::Privileges);
                vec![Privilege { at, name: None, columns: vec![] }]
            }
            false => self.list(Self::privilege)?,
        };
        self.expect_word(K::On)?;
        let on = match self.token().keyword {
            Some(K::Tables) => ObjectKind::Table,
            Some(K::Sequences) => ObjectKind::Sequence,
            Some(K::Schemas) => ObjectKind::Schema,
            Some(word @ (K::Functions | K::Routines | K::Types)) => {
                let what = format!("ALTER DEFAULT PRIVILEGES ON {}", word.text().to_ascii_uppercase());
                return self.refuse_rest(at, &what, None);
            }
            _ => return Err(self.unexpected()),
        };
        self.advance();
        self.expect_word(if revoke { K::From } else { K::To })?;
        let grantees = self.list(Self::grantee)?;
        let option = option_for || (!revoke && self.eat_words(&[K::With, K::Grant, K::Option]));
        let cascade = revoke && self.cascade();
        let (on, granted_by) = (Granted::New(on), None);
        let grant = Grant { at, revoke, option, privileges, on, grantees, granted_by, cascade };
        Ok(Statement::DefaultPrivileges(Box::new(DefaultPrivileges { at, roles, schemas, grant })))
    }

    fn grant_role(&mut self, at: At, (revoke, option_for): (bool, bool), roles: Vec<Privilege>) -> Result<Statement> {
        self.expect_word(if revoke { K::From } else { K::To })?;
        let members = self.list(Self::grantee)?;
        let with_option = !revoke && self.eat_words(&[K::With, K::Admin, K::Option]);
        let granted_by = self.granted_by()?;
        let cascade = revoke && self.cascade();
        let option = option_for || with_option;
        let grant = GrantRole { at, group: false, revoke, option, roles, members, granted_by, cascade };
        Ok(Statement::GrantRole(Box::new(grant)))
    }

    fn grantee(&mut self) -> Result<Grantee> {
        self.eat_word(K::Group);
        let token = self.token();
        let text = self.text(token);
        let is_plain = token.kind == Kind::Word && token.keyword.is_none() && text.eq_ignore_ascii_case("public");
        if is_plain || text == "\"public\"" {
            self.advance();
            return Ok(Grantee::Public);
        }
        self.role_name().map(Grantee::Role)
    }

    fn granted_by(&mut self) -> Result<Option<Ident>> {
        match self.eat_words(&[K::Granted, K::By]) {
            true => self.role_name().map(Some),
            false => Ok(None),
        }
    }

    /// What follows ALTER GROUP.
    pub(super) fn alter_group(&mut self, at: At) -> Result<Statement> {
        let group = self.role_name()?;
        let revoke = match self.token().keyword {
            Some(K::Add) => false,
            Some(K::Drop) => true,
            _ => return self.refuse_rest(at, "this form of ALTER GROUP", None),
        };
        self.advance();
        self.expect_word(K::User)?;
        let members = self.list(Self::role_name)?.into_iter().map(Grantee::Role).collect();
        let roles = vec![Privilege { at: group.at, name: Some(group), columns: vec![] }];
        let (option, granted_by, cascade) = (false, None, false);
        let grant = GrantRole { at, group: true, revoke, option, roles, members, granted_by, cascade };
        Ok(Statement::GrantRole(Box::new(grant)))
    }
}
