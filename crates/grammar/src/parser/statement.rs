//! Which statement a text is.

use super::Parser;
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::Kind;
use crate::statement::{At, CreateTableAs, Refused, Statement};

impl Parser<'_> {
    /// One statement.
    pub(super) fn statement(&mut self) -> Result<Statement> {
        let at = self.place();
        let Some(keyword) = self.token().keyword else { return self.preparable_into(at) };
        if matches!(keyword, K::Select | K::Values | K::Table | K::With | K::Insert | K::Update | K::Delete | K::Merge)
        {
            return self.preparable_into(at);
        }
        if !is_first(keyword) {
            return Err(self.unexpected());
        }
        self.advance();
        match keyword {
            K::Begin | K::Start | K::Commit | K::End | K::Rollback | K::Abort | K::Savepoint | K::Release => {
                self.transaction(keyword, at)
            }
            K::Set => self.set(at),
            K::Reset => Ok(Statement::Reset(self.of_setting(at)?)),
            K::Show => Ok(Statement::Show(self.of_setting(at)?)),
            K::Discard => self.discard(),
            K::Create => self.create(at),
            K::Alter => self.alter(at),
            K::Drop => self.drop_object(at),
            K::Truncate => self.truncate(at),
            K::Prepare => self.prepare(at),
            K::Execute => self.execute(at),
            K::Deallocate => self.deallocate(),
            K::Declare => self.declare(at),
            K::Fetch => self.fetch(at, false),
            K::Move => self.fetch(at, true),
            K::Close => self.close(),
            K::Explain => self.explain(at),
            K::Copy => self.copy(at),
            K::Vacuum => {
                let words = [K::Full, K::Freeze, K::Verbose, K::Analyze];
                Ok(Statement::Vacuum(self.maintain(at, &words)?))
            }
            K::Analyze | K::Analyse => Ok(Statement::Analyze(self.maintain(at, &[K::Verbose])?)),
            K::Listen => Ok(Statement::Listen(self.ident()?)),
            K::Notify => {
                let channel = self.ident()?;
                let payload = if self.eat(Kind::Comma) { self.string()? } else { String::new() };
                Ok(Statement::Notify(channel, payload))
            }
            K::Unlisten => {
                let channel = if self.eat(Kind::Star) { None } else { Some(self.ident()?) };
                Ok(Statement::Unlisten(channel))
            }
            K::Comment => self.comment(at),
            K::Lock => self.lock_tables(at),
            K::Checkpoint => Ok(Statement::Checkpoint(at)),
            K::Grant | K::Revoke => self.grant(at, keyword == K::Revoke),
            _ => self.refuse_rest(at, &keyword.text().to_ascii_uppercase(), None),
        }
    }

    /// What follows CREATE.
    pub(super) fn create(&mut self, at: At) -> Result<Statement> {
        let Some(keyword) = self.token().keyword else { return Err(self.unexpected()) };
        match (keyword, self.ahead(1).keyword) {
            (K::Table, _) => {
                self.advance();
                self.create_table(at, false)
            }
            (K::Temp | K::Temporary, Some(K::Table | K::Sequence)) => self.create_temporary(at),
            (K::Local | K::Global, Some(K::Temp | K::Temporary))
                if matches!(self.ahead(2).keyword, Some(K::Table | K::Sequence)) =>
            {
                self.create_temporary(at)
            }
            (K::Unique, _) => {
                self.expect_words(&[K::Unique, K::Index])?;
                self.create_index(at, true)
            }
            (K::Index, _) => {
                self.advance();
                self.create_index(at, false)
            }
            (K::Sequence, _) => {
                self.advance();
                self.create_sequence(at, false)
            }
            _ if self.at_view() => self.create_view(at),
            (K::Type, _) => {
                self.advance();
                self.create_type(at)
            }
            (K::Domain, _) => {
                self.advance();
                self.create_domain(at)
            }
            (K::Schema, _) => {
                self.advance();
                self.create_schema(at)
            }
            (K::User, Some(K::Mapping)) => self.refuse_rest(at, "CREATE USER MAPPING", None),
            (K::Role | K::User | K::Group, _) => {
                self.advance();
                let role = self.role(at, keyword == K::User, false)?;
                Ok(Statement::CreateRole(role.expect("CREATE has no other form")))
            }
            _ => self.refuse_named(at, "CREATE"),
        }
    }

    /// TEMPORARY, and the table or the sequence that follows.
    fn create_temporary(&mut self, at: At) -> Result<Statement> {
        self.eat_temporary();
        match self.eat_word(K::Table) {
            true => self.create_table(at, true),
            false => {
                self.expect_word(K::Sequence)?;
                self.create_sequence(at, true)
            }
        }
    }

    /// What follows ALTER.
    fn alter(&mut self, at: At) -> Result<Statement> {
        let Some(keyword) = self.token().keyword else { return Err(self.unexpected()) };
        match (keyword, self.ahead(1).keyword) {
            (K::Table, _) => {
                self.advance();
                self.alter_table(at)
            }
            (K::Sequence, _) => {
                self.advance();
                self.alter_sequence(at)
            }
            (K::Index, _) => {
                self.advance();
                self.alter_index(at)
            }
            (K::Schema, _) => {
                self.advance();
                self.alter_schema(at)
            }
            (K::View, _) => {
                self.advance();
                self.alter_view(at)
            }
            (K::System, _) => {
                self.advance();
                self.alter_system(at)
            }
            (K::Type, _) => {
                self.advance();
                self.alter_own_type(at)
            }
            (K::Domain, _) => {
                self.advance();
                self.alter_domain(at)
            }
            (K::Default, Some(K::Privileges)) => {
                self.next += 2;
                self.default_privileges(at)
            }
            (K::User, Some(K::Mapping)) => self.refuse_rest(at, "ALTER USER MAPPING", None),
            (K::Group, _) => {
                self.advance();
                self.alter_group(at)
            }
            (K::Role | K::User, _) => {
                self.advance();
                match self.role(at, false, true)? {
                    Some(role) => Ok(Statement::AlterRole(role)),
                    None => self.refuse_rest(at, "this form of ALTER ROLE", None),
                }
            }
            _ => self.refuse_named(at, "ALTER"),
        }
    }

    /// Refuses CREATE, ALTER or DROP of what Terrace has not, if PostgreSQL has it.
    pub(super) fn refuse_named(&mut self, at: At, verb: &str) -> Result<Statement> {
        let Some(keyword) = self.token().keyword else { return Err(self.unexpected()) };
        if !is_object(keyword) {
            return Err(self.unexpected());
        }
        let mut what = format!("{verb} {}", keyword.text().to_ascii_uppercase());
        let second = self.ahead(1).keyword.filter(|second| is_object(*second) || *second == K::Search);
        if let Some(second) = second {
            what = format!("{what} {}", second.text().to_ascii_uppercase());
        }
        self.refuse_rest(at, &what, None)
    }

    /// Refuses a statement whose rest is not looked at.
    pub(super) fn refuse_rest(&mut self, at: At, what: &str, hint: Option<&str>) -> Result<Statement> {
        self.skip_rest()?;
        self.refuse_with(at, format!("{what} is not supported"), hint);
        let refused: Option<Refused> = self.refused.clone();
        Ok(Statement::Refused(refused.expect("it was just refused")))
    }

    /// Passes by what is left of the statement: up to a semicolon that stands in no parentheses and in no body of a
    /// function.
    pub(super) fn skip_rest(&mut self) -> Result<()> {
        let (mut parens, mut bodies) = (0_usize, 0_usize);
        loop {
            let token = self.token();
            match (token.kind, token.keyword) {
                (Kind::End, _) => return Ok(()),
                (Kind::Broken, _) => return Err(self.unexpected()),
                (Kind::Semicolon, _) if parens == 0 && bodies == 0 => return Ok(()),
                (Kind::LeftParen, _) => parens += 1,
                (Kind::RightParen, _) if parens == 0 => return Ok(()),
                (Kind::RightParen, _) => parens -= 1,
                (_, Some(K::Atomic)) => bodies += 1,
                (_, Some(K::Case)) if bodies > 0 => bodies += 1,
                (_, Some(K::End)) if bodies > 0 => bodies -= 1,
                _ => {}
            }
            self.advance();
        }
    }

    /// The same, where SELECT may be INTO a table.
    fn preparable_into(&mut self, at: At) -> Result<Statement> {
        let statement = self.preparable()?;
        match (self.into.take(), statement) {
            (Some(into), Statement::Query(query)) => Ok(Statement::CreateTableAs(Box::new(CreateTableAs {
                at,
                temporary: into.temporary,
                on_commit: None,
                if_not_exists: false,
                name: into.name,
                columns: vec![],
                storage: vec![],
                query: *query,
                with_data: true,
                select_into: true,
            }))),
            (into, statement) => {
                self.into = into;
                Ok(statement)
            }
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

/// The words with which a statement begins, besides those of queries and changes.
fn is_first(keyword: K) -> bool {
    matches!(
        keyword,
        K::Abort
            | K::Alter
            | K::Analyse
            | K::Analyze
            | K::Begin
            | K::Call
            | K::Checkpoint
            | K::Close
            | K::Cluster
            | K::Comment
            | K::Commit
            | K::Copy
            | K::Create
            | K::Deallocate
            | K::Declare
            | K::Discard
            | K::Do
            | K::Drop
            | K::End
            | K::Execute
            | K::Explain
            | K::Fetch
            | K::Grant
            | K::Import
            | K::Listen
            | K::Load
            | K::Lock
            | K::Move
            | K::Notify
            | K::Prepare
            | K::Reassign
            | K::Refresh
            | K::Reindex
            | K::Release
            | K::Reset
            | K::Revoke
            | K::Rollback
            | K::Savepoint
            | K::Security
            | K::Set
            | K::Show
            | K::Start
            | K::Truncate
            | K::Unlisten
            | K::Vacuum
    )
}

/// What CREATE, ALTER and DROP are about, or a word before it.
fn is_object(keyword: K) -> bool {
    matches!(
        keyword,
        K::Access
            | K::Aggregate
            | K::Cast
            | K::Collation
            | K::Constraint
            | K::Conversion
            | K::Database
            | K::Default
            | K::Domain
            | K::Event
            | K::Extension
            | K::Foreign
            | K::Function
            | K::Global
            | K::Group
            | K::Language
            | K::Large
            | K::Local
            | K::Materialized
            | K::Operator
            | K::Or
            | K::Owned
            | K::Policy
            | K::Procedural
            | K::Procedure
            | K::Publication
            | K::Recursive
            | K::Routine
            | K::Rule
            | K::Schema
            | K::Server
            | K::Statistics
            | K::Subscription
            | K::Table
            | K::Tablespace
            | K::Temp
            | K::Temporary
            | K::Text
            | K::Transform
            | K::Trigger
            | K::Trusted
            | K::Type
            | K::Unlogged
            | K::User
            | K::View
    )
}
