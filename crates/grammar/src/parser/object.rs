//! Indexes, sequences, DROP, TRUNCATE, roles.

use super::Parser;
use crate::error::{Result, SyntaxError};
use crate::keyword::{Category, Keyword as K};
use crate::lexer::Kind;
use crate::statement::{
    At, Comment, CreateIndex, CreateSequence, Drop, Expr, Ident, Name, ObjectKind, Role, RoleOption, RoleOptionKind,
    SequenceOption, SequenceOptionKind, Statement, Truncate,
};

impl Parser<'_> {
    /// What follows `CREATE [UNIQUE] INDEX`.
    pub(super) fn create_index(&mut self, at: At, unique: bool) -> Result<Statement> {
        let concurrently = self.eat_word(K::Concurrently);
        let if_not_exists = self.eat_words(&[K::If, K::Not, K::Exists]);
        let name = match if_not_exists || !self.at_word(K::On) {
            true => Some(self.ident()?),
            false => None,
        };
        self.expect_word(K::On)?;
        let (table, only) = self.relation()?;
        let method = if self.eat_word(K::Using) { Some(self.ident()?) } else { None };
        let elements = self.list_in_parens(Self::index_element)?;
        let include = if self.eat_word(K::Include) { self.list_in_parens(Self::index_element)? } else { vec![] };
        let nulls_not_distinct = self.nulls_not_distinct()?;
        let storage = if self.eat_word(K::With) { self.storage()? } else { vec![] };
        self.maybe_tablespace()?;
        let filter = self.maybe_written_where()?;
        Ok(Statement::CreateIndex(Box::new(CreateIndex {
            at,
            unique,
            concurrently,
            if_not_exists,
            name,
            table,
            only,
            method,
            elements,
            include,
            nulls_not_distinct,
            storage,
            filter,
        })))
    }

    /// What follows COMMENT.
    pub(super) fn comment(&mut self, at: At) -> Result<Statement> {
        self.expect_word(K::On)?;
        let kind = match self.token().keyword {
            Some(K::Table) => Some(ObjectKind::Table),
            Some(K::View) => Some(ObjectKind::View),
            Some(K::Index) => Some(ObjectKind::Index),
            Some(K::Sequence) => Some(ObjectKind::Sequence),
            Some(K::Schema) => Some(ObjectKind::Schema),
            Some(K::Type) => Some(ObjectKind::Type),
            Some(K::Domain) => Some(ObjectKind::Domain),
            Some(K::Column) => None,
            Some(K::Constraint) => return self.constraint_comment(at),
            Some(K::Role) => return self.refuse_rest(at, "COMMENT ON ROLE", None),
            _ => return self.refuse_named(at, "COMMENT ON"),
        };
        self.advance();
        let name = match kind {
            Some(ObjectKind::Schema) => Name::one(self.ident()?),
            Some(_) => self.relation_name()?,
            None => self.any_name()?,
        };
        self.comment_text(Comment { at, kind, name, constraint: None, text: None })
    }

    /// At the word CONSTRAINT.
    fn constraint_comment(&mut self, at: At) -> Result<Statement> {
        self.advance();
        let constraint = Some(self.ident()?);
        self.expect_word(K::On)?;
        let of_domain = self.at_word(K::Domain) && self.ahead(1).keyword != Some(K::Is);
        let kind = if of_domain { ObjectKind::Domain } else { ObjectKind::Table };
        if of_domain {
            self.advance();
        }
        let (kind, name) = (Some(kind), self.relation_name()?);
        self.comment_text(Comment { at, kind, name, constraint, text: None })
    }

    fn comment_text(&mut self, of: Comment) -> Result<Statement> {
        self.expect_word(K::Is)?;
        let text = if self.eat_word(K::Null) { None } else { Some(self.string()?) };
        Ok(Statement::Comment(Comment { text, ..of }))
    }

    /// What follows `CREATE SEQUENCE`.
    pub(super) fn create_sequence(&mut self, at: At, temporary: bool) -> Result<Statement> {
        let if_not_exists = self.eat_words(&[K::If, K::Not, K::Exists]);
        let name = self.relation_name()?;
        let options = self.sequence_options()?;
        Ok(Statement::CreateSequence(Box::new(CreateSequence { at, temporary, if_not_exists, name, options })))
    }

    /// Options of a sequence, as many as follow.
    pub(super) fn sequence_options(&mut self) -> Result<Vec<SequenceOption>> {
        let mut options = vec![];
        while let Some(option) = self.sequence_option()? {
            options.push(option);
        }
        Ok(options)
    }

    /// Whether an option of a sequence begins with the word.
    pub(super) fn starts_sequence_option(word: K) -> bool {
        matches!(
            word,
            K::As
                | K::Cache
                | K::Cycle
                | K::No
                | K::Increment
                | K::Maxvalue
                | K::Minvalue
                | K::Owned
                | K::Sequence
                | K::Start
                | K::Restart
        )
    }

    pub(super) fn sequence_option(&mut self) -> Result<Option<SequenceOption>> {
        let at = self.place();
        let Some(keyword) = self.token().keyword else { return Ok(None) };
        if !Self::starts_sequence_option(keyword) {
            return Ok(None);
        }
        self.advance();
        let kind = match keyword {
            K::As => SequenceOptionKind::As(self.type_name()?),
            K::Cache => SequenceOptionKind::Cache(self.number_literal()?),
            K::Cycle => SequenceOptionKind::Cycle(true),
            K::Increment => {
                self.eat_word(K::By);
                SequenceOptionKind::Increment(self.number_literal()?)
            }
            K::Maxvalue => SequenceOptionKind::MaxValue(Some(self.number_literal()?)),
            K::Minvalue => SequenceOptionKind::MinValue(Some(self.number_literal()?)),
            K::Owned => {
                self.expect_word(K::By)?;
                SequenceOptionKind::OwnedBy(self.any_name()?)
            }
            K::Sequence => {
                self.expect_word(K::Name)?;
                SequenceOptionKind::SequenceName(self.any_name()?)
            }
            K::Start => {
                self.eat_word(K::With);
                SequenceOptionKind::Start(self.number_literal()?)
            }
            K::Restart => {
                let with = self.eat_word(K::With);
                let number = matches!(self.token().kind, Kind::Integer | Kind::Number | Kind::Plus | Kind::Minus);
                let value = if with || number { Some(self.number_literal()?) } else { None };
                SequenceOptionKind::Restart(value)
            }
            _ => match self.token().keyword {
                Some(K::Cycle) => {
                    self.advance();
                    SequenceOptionKind::Cycle(false)
                }
                Some(K::Maxvalue) => {
                    self.advance();
                    SequenceOptionKind::MaxValue(None)
                }
                Some(K::Minvalue) => {
                    self.advance();
                    SequenceOptionKind::MinValue(None)
                }
                _ => return Err(self.unexpected()),
            },
        };
        Ok(Some(SequenceOption { at, kind }))
    }

    /// A number, perhaps with a sign.
    pub(super) fn number_literal(&mut self) -> Result<Expr> {
        let signed = matches!(self.token().kind, Kind::Plus | Kind::Minus);
        let number = if signed { self.ahead(1) } else { self.token() };
        if !matches!(number.kind, Kind::Integer | Kind::Number) {
            if signed {
                self.advance();
            }
            return Err(self.unexpected());
        }
        let plus = self.eat(Kind::Plus);
        let minus = !plus && self.at(Kind::Minus);
        if minus {
            return self.signed_number();
        }
        self.primary()
    }

    /// `-1`, and nothing behind it.
    fn signed_number(&mut self) -> Result<Expr> {
        let minus = self.advance();
        let number = self.primary()?;
        Ok(super::expr::signed(self.operator_of(minus), number))
    }

    /// What follows DROP.
    pub(super) fn drop_object(&mut self, at: At) -> Result<Statement> {
        let Some(keyword) = self.token().keyword else { return Err(self.unexpected()) };
        let kind = match keyword {
            K::Table => ObjectKind::Table,
            K::Index => ObjectKind::Index,
            K::Sequence => ObjectKind::Sequence,
            K::View => ObjectKind::View,
            K::Schema => ObjectKind::Schema,
            K::Type => ObjectKind::Type,
            K::Domain => ObjectKind::Domain,
            K::Role | K::Group => ObjectKind::Role,
            K::User if self.ahead(1).keyword != Some(K::Mapping) => ObjectKind::Role,
            _ => return self.refuse_named(at, "DROP"),
        };
        self.advance();
        let concurrently = kind == ObjectKind::Index && self.eat_word(K::Concurrently);
        let if_exists = self.eat_words(&[K::If, K::Exists]);
        let names = match kind {
            ObjectKind::Role => {
                const REFUSAL: (&str, &str) = ("22023", "cannot use special role specifier in DROP ROLE");
                self.list(|parser| parser.plain_role_name(REFUSAL).map(Name::one))?
            }
            ObjectKind::Schema => self.list(|parser| parser.ident().map(Name::one))?,
            _ => self.list(Self::any_name)?,
        };
        let cascade = kind != ObjectKind::Role && self.cascade();
        Ok(Statement::Drop(Drop { at, kind, concurrently, if_exists, names, cascade }))
    }

    /// What follows TRUNCATE.
    pub(super) fn truncate(&mut self, at: At) -> Result<Statement> {
        self.eat_word(K::Table);
        let tables = self.list(Self::relation)?;
        let restart_identity = self.at_word(K::Restart);
        if restart_identity || self.at_word(K::Continue) {
            self.advance();
            self.expect_word(K::Identity)?;
        }
        Ok(Statement::Truncate(Truncate { at, tables, restart_identity, cascade: self.cascade() }))
    }

    /// The name of a role, or CURRENT_USER and its like.
    pub(super) fn role_name(&mut self) -> Result<Ident> {
        if self.at_any(&[K::CurrentRole, K::CurrentUser, K::SessionUser]) {
            return self.label();
        }
        let token = self.token();
        let word = Self::is_label(token) && token.keyword.is_none_or(|word| word.category() != Category::Reserved);
        if !word {
            return Err(self.unexpected());
        }
        let name = self.label()?;
        match name.name.as_str() {
            // In quotes, too.
            "public" | "none" => {
                let mut error = SyntaxError::new(format!("role name \"{}\" is reserved", name.name), name.at);
                error.sqlstate = "42939";
                Err(error)
            }
            _ => Ok(name),
        }
    }

    /// The name of a role that is none of CURRENT_USER's kind. `refusal`: SQLSTATE and message of those.
    fn plain_role_name(&mut self, refusal: (&'static str, &str)) -> Result<Ident> {
        let token = self.token();
        if !self.at_any(&[K::CurrentRole, K::CurrentUser, K::SessionUser]) {
            return self.role_name();
        }
        let message = refusal.1.replace("%s", &self.text(token).to_uppercase());
        let mut error = SyntaxError::new(message, token.start);
        error.sqlstate = refusal.0;
        Err(error)
    }

    /// What follows `CREATE ROLE` or `ALTER ROLE`. None: it is another form of ALTER ROLE.
    pub(super) fn role(&mut self, at: At, user: bool, alter: bool) -> Result<Option<Role>> {
        if alter && self.at_word(K::All) {
            return Ok(None);
        }
        let name = match alter {
            true => self.role_name()?,
            false => self.plain_role_name(("42939", "%s cannot be used as a role name here"))?,
        };
        if alter && self.at_any(&[K::Rename, K::Set, K::Reset, K::In]) {
            if self.eat_word(K::In) && !self.at_word(K::Database) {
                return Err(self.unexpected());
            }
            return Ok(None);
        }
        self.eat_word(K::With);
        let mut options = vec![];
        while !matches!(self.token().kind, Kind::Semicolon | Kind::End) {
            // PostgreSQL takes it and passes it by.
            if !alter && self.eat_word(K::Sysid) {
                self.small_integer()?;
                continue;
            }
            options.push(self.role_option(alter)?);
        }
        Ok(Some(Role { at, name, user, options }))
    }

    fn role_option(&mut self, alter: bool) -> Result<RoleOption> {
        let token = self.token();
        let at = token.start;
        let kind = match token.keyword {
            Some(K::Encrypted | K::Password) => {
                self.eat_word(K::Encrypted);
                self.expect_word(K::Password)?;
                match token.keyword == Some(K::Password) && self.eat_word(K::Null) {
                    true => RoleOptionKind::Password(None),
                    false => RoleOptionKind::Password(Some(self.string()?)),
                }
            }
            Some(K::Unencrypted) => {
                self.expect_words(&[K::Unencrypted, K::Password])?;
                self.string()?;
                let message = "UNENCRYPTED PASSWORD is no longer supported";
                return Err(SyntaxError::with_state("0A000", message, at)
                    .hint("Remove UNENCRYPTED to store the password in encrypted form instead."));
            }
            Some(K::Inherit) => {
                self.advance();
                RoleOptionKind::Inherit(true)
            }
            Some(K::Connection) => {
                self.expect_words(&[K::Connection, K::Limit])?;
                let minus = self.eat(Kind::Minus);
                let limit = self.small_integer()?;
                RoleOptionKind::ConnectionLimit(if minus { -limit } else { limit })
            }
            Some(K::Valid) => {
                self.expect_words(&[K::Valid, K::Until])?;
                RoleOptionKind::ValidUntil(self.string()?)
            }
            Some(K::In) if !alter => {
                self.advance();
                if !self.eat_word(K::Group) {
                    self.expect_word(K::Role)?;
                }
                RoleOptionKind::InRole(self.list(Self::role_name)?)
            }
            Some(K::Role) if !alter => {
                self.advance();
                RoleOptionKind::Roles(self.list(Self::role_name)?)
            }
            Some(K::User) => {
                self.advance();
                RoleOptionKind::Roles(self.list(Self::role_name)?)
            }
            Some(K::Admin) if !alter => {
                self.advance();
                RoleOptionKind::Admin(self.list(Self::role_name)?)
            }
            None if Self::is_label(token) => self.role_word()?,
            _ => return Err(self.unexpected()),
        };
        Ok(RoleOption { at, kind })
    }

    /// `LOGIN`, `NOSUPERUSER`... They are no keywords.
    fn role_word(&mut self) -> Result<RoleOptionKind> {
        let word = self.label()?;
        let (name, on) = match word.name.strip_prefix("no") {
            Some(name) => (name, false),
            None => (word.name.as_str(), true),
        };
        match name {
            "superuser" => Ok(RoleOptionKind::SuperUser(on)),
            "createdb" => Ok(RoleOptionKind::CreateDb(on)),
            "createrole" => Ok(RoleOptionKind::CreateRole(on)),
            "login" => Ok(RoleOptionKind::Login(on)),
            "replication" => Ok(RoleOptionKind::Replication(on)),
            "bypassrls" => Ok(RoleOptionKind::BypassRls(on)),
            "inherit" if !on => Ok(RoleOptionKind::Inherit(false)),
            _ => Err(SyntaxError::new(format!("unrecognized role option \"{}\"", word.name), word.at)),
        }
    }
}
