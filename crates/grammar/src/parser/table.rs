//! CREATE TABLE: columns and constraints.

use super::Parser;
use crate::error::{Result, SyntaxError};
use crate::keyword::Keyword as K;
use crate::lexer::Kind;
use crate::statement::{
    At, Column, ColumnConstraint, ColumnConstraintKind, CreateTable, CreateTableAs, CreateView, Deferral, Execute,
    Expr, Ident, Index, LikeOption, Name, OnCommit, Query, Reference, ReferenceAction, Statement, StorageOption,
    TableConstraint, TableConstraintKind, TableLike, ViewCheck, Written,
};

impl Parser<'_> {
    /// What follows `CREATE TABLE`.
    pub(super) fn create_table(&mut self, at: At, temporary: bool) -> Result<Statement> {
        let if_not_exists = self.eat_words(&[K::If, K::Not, K::Exists]);
        let name = self.relation_name()?;
        let listed = self.at(Kind::LeftParen)
            && Self::is_column_name(self.ahead(1))
            && matches!(self.ahead(2).kind, Kind::Comma | Kind::RightParen);
        if listed || self.at_any(&[K::As, K::Using, K::With, K::On, K::Tablespace]) {
            return self.create_table_as(at, (temporary, if_not_exists), name);
        }
        if self.at_word(K::Of) {
            return self.refuse_rest(at, "CREATE TABLE OF", None);
        }
        if self.at_word(K::Partition) {
            return self.refuse_rest(at, "PARTITION OF", None);
        }
        let mut table = CreateTable {
            at,
            temporary,
            on_commit: None,
            if_not_exists,
            name,
            columns: vec![],
            constraints: vec![],
            likes: vec![],
            storage: vec![],
        };
        self.expect(Kind::LeftParen)?;
        if !self.at(Kind::RightParen) {
            self.list(|parser| parser.table_element(&mut table))?;
        }
        self.expect(Kind::RightParen)?;
        (table.storage, table.on_commit) = self.table_tail()?;
        Ok(Statement::CreateTable(Box::new(table)))
    }

    /// `(a, b) AS SELECT ... WITH NO DATA`.
    fn create_table_as(&mut self, at: At, (temporary, if_not_exists): (bool, bool), name: Name) -> Result<Statement> {
        let columns = if self.at(Kind::LeftParen) { self.list_in_parens(Self::ident)? } else { vec![] };
        let (storage, on_commit) = self.table_options()?;
        self.expect_word(K::As)?;
        let executes = match self.at_word(K::Execute) {
            true => {
                let at = self.expect_word(K::Execute)?;
                Some(self.execute(at)?)
            }
            false => None,
        };
        let query = match executes {
            Some(_) => Query::nothing(at),
            None => self.whole_query()?,
        };
        if let Some(into) = self.into.take() {
            return Err(SyntaxError::new("SELECT ... INTO is not allowed here", into.name.at()));
        }
        let mut with_data = true;
        if self.eat_word(K::With) {
            with_data = !self.eat_word(K::No);
            self.expect_word(K::Data)?;
        }
        let table = Box::new(CreateTableAs {
            at,
            temporary,
            on_commit,
            if_not_exists,
            name,
            columns,
            storage,
            query,
            with_data,
            select_into: false,
        });
        Ok(match executes {
            Some(Statement::Execute(execute)) => Statement::Execute(Execute { table: Some(table), ..execute }),
            _ => Statement::CreateTableAs(table),
        })
    }

    /// A query that is all of what stands there.
    fn whole_query(&mut self) -> Result<Query> {
        match self.at_query() || self.at(Kind::LeftParen) {
            true => self.query(),
            false => Err(self.unexpected()),
        }
    }

    /// Whether what follows CREATE is a view.
    pub(super) fn at_view(&self) -> bool {
        let before = [K::Or, K::Replace, K::Local, K::Global, K::Temp, K::Temporary, K::Recursive];
        let word = |at: &usize| self.ahead(*at).keyword;
        let words = (0..5).find(|at| !word(at).is_some_and(|word| before.contains(&word)));
        words.is_some_and(|at| word(&at) == Some(K::View))
    }

    /// What follows CREATE, where it is a view.
    pub(super) fn create_view(&mut self, at: At) -> Result<Statement> {
        let or_replace = self.eat_word(K::Or);
        if or_replace {
            self.expect_word(K::Replace)?;
        }
        let temporary = self.at_any(&[K::Local, K::Global, K::Temp, K::Temporary]);
        if temporary {
            self.eat_temporary();
        }
        let recursive = self.eat_word(K::Recursive);
        self.expect_word(K::View)?;
        let name = self.relation_name()?;
        let columns = if recursive || self.at(Kind::LeftParen) { self.list_in_parens(Self::ident)? } else { vec![] };
        let options = if self.eat_word(K::With) { self.storage()? } else { vec![] };
        self.expect_word(K::As)?;
        let start = self.place();
        let query = self.whole_query()?;
        let place = start..self.tokens[self.next - 1].end;
        if let Some(into) = self.into.take() {
            return Err(SyntaxError::with_state("0A000", "views must not contain SELECT INTO", into.name.at()));
        }
        let (check_at, mut check) = (self.place(), None);
        if self.eat_word(K::With) {
            let local = !self.eat_word(K::Cascaded) && self.eat_word(K::Local);
            self.expect_words(&[K::Check, K::Option])?;
            if recursive {
                let message = "WITH CHECK OPTION not supported on recursive views";
                return Err(SyntaxError::with_state("0A000", message, check_at));
            }
            check = Some(if local { ViewCheck::Local } else { ViewCheck::Cascaded });
        }
        Ok(Statement::CreateView(Box::new(CreateView {
            at,
            or_replace,
            temporary,
            recursive,
            name,
            columns,
            query,
            place,
            options,
            check,
        })))
    }

    fn table_element(&mut self, table: &mut CreateTable) -> Result<()> {
        match self.token().keyword {
            Some(K::Like) => {
                self.advance();
                let like = self.table_like(table.columns.len())?;
                table.likes.push(like);
            }
            Some(K::Constraint | K::Check | K::Unique | K::Primary | K::Exclude | K::Foreign)
                if self.at_constraint() =>
            {
                let constraint = self.table_constraint()?;
                table.constraints.extend(constraint);
            }
            _ => table.columns.push(self.column()?),
        }
        Ok(())
    }

    /// What follows LIKE. The later of two options holds.
    fn table_like(&mut self, columns_before: usize) -> Result<TableLike> {
        let name = self.relation_name()?;
        let mut including: Vec<LikeOption> = vec![];
        while self.at_any(&[K::Including, K::Excluding]) {
            let takes = self.at_word(K::Including);
            self.advance();
            let word = self.token();
            let text = self.text(word).to_ascii_lowercase();
            let all = word.keyword == Some(K::All);
            let options: Vec<LikeOption> = LikeOption::ALL
                .into_iter()
                .filter(|(name, _)| all || *name == text)
                .map(|(_, option)| option)
                .collect();
            if options.is_empty() || word.keyword.is_none() {
                return Err(self.unexpected());
            }
            self.advance();
            including.retain(|known| !options.contains(known));
            if takes {
                including.extend(options);
            }
        }
        Ok(TableLike { name, columns_before, including })
    }

    /// EXCLUDE may also be the name of a column.
    fn at_constraint(&self) -> bool {
        !self.at_word(K::Exclude) || self.ahead(1).kind == Kind::LeftParen || self.ahead(1).keyword == Some(K::Using)
    }

    /// What follows the columns.
    fn table_tail(&mut self) -> Result<(Vec<StorageOption>, Option<OnCommit>)> {
        let at = self.place();
        if self.eat_word(K::Inherits) {
            self.list_in_parens(Self::relation_name)?;
            self.refuse(at, "INHERITS");
        }
        let at = self.place();
        if self.eat_word(K::Partition) {
            self.expect_word(K::By)?;
            self.ident()?;
            self.list_in_parens(Self::index_element)?;
            self.refuse(at, "PARTITION BY");
        }
        self.table_options()
    }

    /// How a table is stored, and what becomes of it when a transaction commits.
    fn table_options(&mut self) -> Result<(Vec<StorageOption>, Option<OnCommit>)> {
        let (mut storage, mut on_commit) = (vec![], None);
        let at = self.place();
        if self.eat_word(K::Using) {
            self.ident()?;
            self.refuse(at, "USING in CREATE TABLE");
        }
        if self.eat_word(K::Without) {
            self.expect_word(K::Oids)?;
        } else if self.eat_word(K::With) {
            storage = self.storage()?;
        }
        if self.eat_words(&[K::On, K::Commit]) {
            let word = self.token().keyword;
            on_commit = Some(match word {
                Some(K::Drop) => OnCommit::Drop,
                Some(K::Delete) => OnCommit::DeleteRows,
                Some(K::Preserve) => OnCommit::PreserveRows,
                _ => return Err(self.unexpected()),
            });
            self.advance();
            if word != Some(K::Drop) {
                self.expect_word(K::Rows)?;
            }
        }
        self.maybe_tablespace()?;
        Ok((storage, on_commit))
    }

    pub(super) fn maybe_tablespace(&mut self) -> Result<()> {
        let at = self.place();
        if self.eat_word(K::Tablespace) {
            self.ident()?;
            self.refuse(at, "TABLESPACE");
        }
        Ok(())
    }

    /// `(a = 1, b.c = 'x', d)`.
    pub(super) fn storage(&mut self) -> Result<Vec<StorageOption>> {
        self.list_in_parens(|parser| {
            let mut name = parser.label()?;
            if parser.eat(Kind::Dot) {
                name.name = format!("{}.{}", name.name, parser.label()?.name);
            }
            let value = if parser.eat(Kind::Equal) { Some(parser.option_value()?) } else { None };
            Ok(StorageOption { name, value })
        })
    }

    /// A column and what it is bound to.
    pub(super) fn column(&mut self) -> Result<Column> {
        let name = self.ident()?;
        let data_type = self.type_name()?;
        let mut column = Column { name, data_type, collation: None, constraints: vec![] };
        let at = self.place();
        if self.eat_word(K::Compression) {
            if !self.eat_word(K::Default) {
                self.ident()?;
            }
            self.refuse(at, "COMPRESSION");
        }
        loop {
            if self.eat_word(K::Collate) {
                column.collation = Some(self.any_name()?);
            } else if let Some(clause) = self.deferral_clause() {
                use ColumnConstraintKind::{PrimaryKey, References, Unique};
                let at = self.place();
                match column.constraints.last_mut() {
                    Some(last) if matches!(last.kind, PrimaryKey(_) | Unique(_) | References(_)) => {
                        last.deferral = self.deferral(Some(last.deferral))?.unwrap_or_default();
                    }
                    _ => return Err(SyntaxError::new(format!("misplaced {clause} clause"), at)),
                }
            } else if let Some(constraint) = self.column_constraint()? {
                column.constraints.push(constraint);
            } else {
                return Ok(column);
            }
        }
    }

    /// The words of DEFERRABLE and its kind, where they follow.
    fn deferral_clause(&self) -> Option<&'static str> {
        match (self.token().keyword?, self.ahead(1).keyword) {
            (K::Deferrable, _) => Some("DEFERRABLE"),
            (K::Not, Some(K::Deferrable)) => Some("NOT DEFERRABLE"),
            (K::Initially, Some(K::Deferred)) => Some("INITIALLY DEFERRED"),
            (K::Initially, _) => Some("INITIALLY IMMEDIATE"),
            _ => None,
        }
    }

    /// DEFERRABLE and its kind, added to what was said before.
    pub(super) fn deferral(&mut self, before: Option<Deferral>) -> Result<Option<Deferral>> {
        let mut deferral = before.unwrap_or_default();
        let at = self.place();
        let never = self.next >= 2
            && self.tokens[self.next - 1].keyword == Some(K::Deferrable)
            && self.tokens[self.next - 2].keyword == Some(K::Not);
        let contradiction = || Err(SyntaxError::new("constraint declared INITIALLY DEFERRED must be DEFERRABLE", at));
        match self.token().keyword {
            Some(K::Deferrable) => {
                self.advance();
                deferral.deferrable = true;
            }
            Some(K::Not) if self.ahead(1).keyword == Some(K::Deferrable) => {
                if deferral.initially_deferred {
                    return contradiction();
                }
                self.next += 2;
                deferral.deferrable = false;
            }
            Some(K::Initially) => {
                self.advance();
                deferral.initially_deferred = self.eat_word(K::Deferred);
                if !deferral.initially_deferred {
                    self.expect_word(K::Immediate)?;
                }
                if deferral.initially_deferred && never {
                    return contradiction();
                }
                deferral.deferrable |= deferral.initially_deferred;
            }
            _ => return Ok(None),
        }
        Ok(Some(deferral))
    }

    pub(super) fn column_constraint(&mut self) -> Result<Option<ColumnConstraint>> {
        let at = self.place();
        let name = if self.eat_word(K::Constraint) { Some(self.ident()?) } else { None };
        let Some(keyword) = self.token().keyword else {
            return if name.is_some() { Err(self.unexpected()) } else { Ok(None) };
        };
        let starts = [K::Not, K::Null, K::Unique, K::Primary, K::Check, K::Default, K::Generated, K::References];
        if !starts.contains(&keyword) {
            return if name.is_some() { Err(self.unexpected()) } else { Ok(None) };
        }
        self.advance();
        let kind = match keyword {
            K::Not => {
                self.expect_word(K::Null)?;
                ColumnConstraintKind::NotNull
            }
            K::Null => ColumnConstraintKind::Null,
            K::Unique => ColumnConstraintKind::Unique(self.unique_index(true)?),
            K::Primary => {
                self.expect_word(K::Key)?;
                ColumnConstraintKind::PrimaryKey(self.unique_index(false)?)
            }
            K::Check => {
                let expr = self.written_in_parens()?;
                let no_inherit = self.eat_words(&[K::No, K::Inherit]);
                ColumnConstraintKind::Check { expr, no_inherit }
            }
            K::Default => ColumnConstraintKind::Default(self.written(Self::simple_expr)?),
            K::Generated => self.generated()?,
            _ => ColumnConstraintKind::References(self.reference()?),
        };
        Ok(Some(ColumnConstraint { at, name, kind, deferral: Deferral::default() }))
    }

    pub(super) fn expr_in_parens(&mut self) -> Result<Expr> {
        self.expect(Kind::LeftParen)?;
        let expr = self.expr()?;
        self.expect(Kind::RightParen)?;
        Ok(expr)
    }

    fn written_in_parens(&mut self) -> Result<Written> {
        self.expect(Kind::LeftParen)?;
        let written = self.written(Self::expr)?;
        self.expect(Kind::RightParen)?;
        Ok(written)
    }

    fn generated(&mut self) -> Result<ColumnConstraintKind> {
        let at = self.place();
        let always = self.eat_word(K::Always);
        if !always {
            self.expect_words(&[K::By, K::Default])?;
        }
        self.expect_word(K::As)?;
        if !self.eat_word(K::Identity) {
            let expr = self.written_in_parens()?;
            self.expect_word(K::Stored)?;
            if !always {
                let message = "for a generated column, GENERATED ALWAYS must be specified";
                return Err(SyntaxError::new(message, at));
            }
            return Ok(ColumnConstraintKind::Generated(expr));
        }
        let mut options = vec![];
        if self.eat(Kind::LeftParen) {
            options = self.sequence_options()?;
            if options.is_empty() {
                return Err(self.unexpected());
            }
            self.expect(Kind::RightParen)?;
        }
        Ok(ColumnConstraintKind::Identity { always, options })
    }

    /// What follows UNIQUE or PRIMARY KEY of a column.
    fn unique_index(&mut self, unique: bool) -> Result<Index> {
        let nulls_not_distinct = unique && self.nulls_not_distinct()?;
        let mut index = Index { nulls_not_distinct, ..Index::default() };
        self.index_tail(&mut index)?;
        Ok(index)
    }

    /// NULLS NOT DISTINCT; NULLS DISTINCT is what holds anyway.
    pub(super) fn nulls_not_distinct(&mut self) -> Result<bool> {
        if !self.eat_word(K::Nulls) {
            return Ok(false);
        }
        let not = self.eat_word(K::Not);
        self.expect_word(K::Distinct)?;
        Ok(not)
    }

    /// WITH and USING INDEX TABLESPACE of a key.
    fn index_tail(&mut self, index: &mut Index) -> Result<()> {
        if self.eat_word(K::With) {
            index.storage = self.storage()?;
        }
        let at = self.place();
        if self.eat_words(&[K::Using, K::Index]) {
            self.expect_word(K::Tablespace)?;
            self.ident()?;
            self.refuse(at, "TABLESPACE");
        }
        Ok(())
    }

    /// A constraint of a table. None: it was refused.
    pub(super) fn table_constraint(&mut self) -> Result<Option<TableConstraint>> {
        let at = self.place();
        let name = if self.eat_word(K::Constraint) { Some(self.ident()?) } else { None };
        let kind = match self.token().keyword {
            Some(K::Check) => {
                self.advance();
                let expr = self.written_in_parens()?;
                TableConstraintKind::Check { expr, no_inherit: false }
            }
            Some(K::Unique) => {
                self.advance();
                match self.using_index()? {
                    Some(index) => TableConstraintKind::UsingIndex { index, primary: false },
                    None => self.key(true).map(|(columns, index)| TableConstraintKind::Unique { columns, index })?,
                }
            }
            Some(K::Primary) => {
                self.advance();
                self.expect_word(K::Key)?;
                match self.using_index()? {
                    Some(index) => TableConstraintKind::UsingIndex { index, primary: true },
                    None => {
                        self.key(false).map(|(columns, index)| TableConstraintKind::PrimaryKey { columns, index })?
                    }
                }
            }
            Some(K::Foreign) => {
                self.advance();
                self.expect_word(K::Key)?;
                let columns = self.idents_in_parens()?;
                self.expect_word(K::References)?;
                TableConstraintKind::ForeignKey { columns, reference: self.reference()? }
            }
            Some(K::Exclude) => {
                self.exclude_constraint(at)?;
                return self.constraint_refused();
            }
            _ => return Err(self.unexpected()),
        };
        let mut constraint = TableConstraint { at, name, kind, deferral: Deferral::default(), not_valid: false };
        self.constraint_attributes(&mut constraint)?;
        Ok(Some(constraint))
    }

    /// What follows a constraint that was refused.
    fn constraint_refused(&mut self) -> Result<Option<TableConstraint>> {
        while self.deferral(None)?.is_some() {}
        Ok(None)
    }

    fn constraint_attributes(&mut self, constraint: &mut TableConstraint) -> Result<()> {
        loop {
            if let Some(deferral) = self.deferral(Some(constraint.deferral))? {
                constraint.deferral = deferral;
            } else if self.eat_words(&[K::Not, K::Valid]) {
                constraint.not_valid = true;
            } else if self.at_word(K::No) {
                let at = self.place();
                self.expect_words(&[K::No, K::Inherit])?;
                match &mut constraint.kind {
                    TableConstraintKind::Check { no_inherit, .. } => *no_inherit = true,
                    _ => self.refuse(at, "NO INHERIT here"),
                }
            } else {
                return Ok(());
            }
        }
    }

    /// The index that a key uses.
    fn using_index(&mut self) -> Result<Option<Ident>> {
        if !self.eat_word(K::Using) {
            return Ok(None);
        }
        self.expect_word(K::Index)?;
        self.ident().map(Some)
    }

    /// The columns of a key and its index.
    fn key(&mut self, unique: bool) -> Result<(Vec<Ident>, Index)> {
        let nulls_not_distinct = unique && self.nulls_not_distinct()?;
        let columns = self.idents_in_parens()?;
        let include = if self.eat_word(K::Include) { self.idents_in_parens()? } else { vec![] };
        let mut index = Index { nulls_not_distinct, include, ..Index::default() };
        self.index_tail(&mut index)?;
        Ok((columns, index))
    }

    fn exclude_constraint(&mut self, at: At) -> Result<()> {
        self.expect_word(K::Exclude)?;
        if self.eat_word(K::Using) {
            self.ident()?;
        }
        self.list_in_parens(|parser| {
            parser.index_element()?;
            parser.expect_word(K::With)?;
            match parser.at_word(K::Operator) {
                true => parser.named_operator().map(drop),
                false => parser.schema_operator().map(drop),
            }
        })?;
        if self.eat_word(K::Include) {
            self.idents_in_parens()?;
        }
        self.index_tail(&mut Index::default())?;
        if self.eat_word(K::Where) {
            self.expr_in_parens()?;
        }
        self.refuse(at, "EXCLUDE");
        Ok(())
    }

    /// What follows REFERENCES.
    fn reference(&mut self) -> Result<Reference> {
        let table = self.relation_name()?;
        let columns = self.maybe_idents_in_parens()?;
        let mut reference = Reference {
            table,
            columns,
            full: false,
            on_delete: ReferenceAction::NoAction,
            on_update: ReferenceAction::NoAction,
        };
        if self.eat_word(K::Match) {
            let at = self.place();
            match self.token().keyword {
                Some(K::Full) => reference.full = true,
                Some(K::Simple) => {}
                Some(K::Partial) => self.refuse(at, "MATCH PARTIAL"),
                _ => return Err(self.unexpected()),
            }
            self.advance();
        }
        loop {
            let at = self.place();
            if !self.eat_word(K::On) {
                return Ok(reference);
            }
            match self.token().keyword {
                Some(K::Delete) => {
                    self.advance();
                    reference.on_delete = self.reference_action()?;
                }
                Some(K::Update) => {
                    self.advance();
                    reference.on_update = self.reference_action()?;
                    check_update_action(&reference.on_update, at)?;
                }
                _ => return Err(self.unexpected()),
            }
        }
    }

    fn reference_action(&mut self) -> Result<ReferenceAction> {
        match self.token().keyword {
            Some(K::No) => {
                self.expect_words(&[K::No, K::Action])?;
                Ok(ReferenceAction::NoAction)
            }
            Some(K::Restrict) => {
                self.advance();
                Ok(ReferenceAction::Restrict)
            }
            Some(K::Cascade) => {
                self.advance();
                Ok(ReferenceAction::Cascade)
            }
            Some(K::Set) => {
                self.advance();
                match self.eat_word(K::Null) {
                    true => Ok(ReferenceAction::SetNull(self.maybe_idents_in_parens()?)),
                    false => {
                        self.expect_word(K::Default)?;
                        Ok(ReferenceAction::SetDefault(self.maybe_idents_in_parens()?))
                    }
                }
            }
            _ => Err(self.unexpected()),
        }
    }
}

/// Only what a deletion sets may be some of the columns.
fn check_update_action(action: &ReferenceAction, at: At) -> Result<()> {
    let what = match action {
        ReferenceAction::SetNull(columns) if !columns.is_empty() => "NULL",
        ReferenceAction::SetDefault(columns) if !columns.is_empty() => "DEFAULT",
        _ => return Ok(()),
    };
    let message = format!("a column list with SET {what} is only supported for ON DELETE actions");
    Err(SyntaxError::with_state("0A000", message, at))
}
