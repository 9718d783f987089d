//! Prepared statements, cursors, EXPLAIN, VACUUM, ANALYZE and COPY.

use super::Parser;
use crate::error::{Result, SyntaxError};
use crate::keyword::Keyword as K;
use crate::lexer::Kind;
use crate::statement::{
    At, Copy, CopySource, CopyTarget, Declare, Direction, Execute, Explain, Fetch, Ident, Maintain, MaintainedTable,
    NamedOption, OptionValue, Prepare, Statement,
};

impl Parser<'_> {
    /// What follows PREPARE.
    pub(super) fn prepare(&mut self, at: At) -> Result<Statement> {
        if self.at_word(K::Transaction) && Self::is_string(self.ahead(1)) {
            return self.refuse_rest(at, "two-phase commit", None);
        }
        let name = self.ident()?;
        let types = if self.at(Kind::LeftParen) { self.list_in_parens(Self::type_name)? } else { vec![] };
        self.expect_word(K::As)?;
        let (statement, place) = self.placed(Self::preparable)?;
        Ok(Statement::Prepare(Box::new(Prepare { at, name, types, statement, place })))
    }

    /// What follows EXECUTE.
    pub(super) fn execute(&mut self, at: At) -> Result<Statement> {
        let name = self.ident()?;
        let args =
            if self.at(Kind::LeftParen) { self.list_in_parens(|parser| parser.written(Self::expr))? } else { vec![] };
        Ok(Statement::Execute(Execute { at, name, args, table: None }))
    }

    /// What follows DEALLOCATE. None: ALL.
    pub(super) fn deallocate(&mut self) -> Result<Statement> {
        // PREPARE may be the statement's name.
        if self.at_word(K::Prepare) && !matches!(self.ahead(1).kind, Kind::Semicolon | Kind::End) {
            self.advance();
        }
        Ok(Statement::Deallocate(self.all_or_ident()?))
    }

    /// What follows CLOSE. None: ALL.
    pub(super) fn close(&mut self) -> Result<Statement> {
        Ok(Statement::Close(self.all_or_ident()?))
    }

    fn all_or_ident(&mut self) -> Result<Option<Ident>> {
        if self.eat_word(K::All) { Ok(None) } else { self.ident().map(Some) }
    }

    /// What follows DECLARE.
    pub(super) fn declare(&mut self, at: At) -> Result<Statement> {
        let name = self.ident()?;
        let (mut binary, mut insensitive, mut scroll) = (false, false, None);
        loop {
            match self.token().keyword {
                Some(K::Binary) => binary = true,
                Some(K::Insensitive) => insensitive = true,
                Some(K::Asensitive) => {}
                Some(K::Scroll) => scroll = Some(true),
                Some(K::No) if self.ahead(1).keyword == Some(K::Scroll) => {
                    self.advance();
                    scroll = Some(false);
                }
                _ => break,
            }
            self.advance();
        }
        self.expect_word(K::Cursor)?;
        let hold = self.at_word(K::With);
        if hold || self.at_word(K::Without) {
            self.advance();
            self.expect_word(K::Hold)?;
        }
        self.expect_word(K::For)?;
        let (query, place) = self.placed(Self::query)?;
        let query = Box::new(query);
        Ok(Statement::Declare(Box::new(Declare { at, name, binary, insensitive, scroll, hold, query, place })))
    }

    /// What follows FETCH or MOVE.
    pub(super) fn fetch(&mut self, at: At, moves: bool) -> Result<Statement> {
        let direction = self.direction()?;
        // A word before IN, FROM or a cursor is a direction; alone it is the cursor.
        let (direction, cursor) = match direction {
            None => {
                if !self.eat_word(K::From) {
                    self.eat_word(K::In);
                }
                (Direction::Forward(1), self.ident()?)
            }
            Some(direction) => {
                if !self.eat_word(K::From) {
                    self.eat_word(K::In);
                }
                (direction, self.ident()?)
            }
        };
        Ok(Statement::Fetch(Fetch { at, moves, direction, cursor }))
    }

    fn direction(&mut self) -> Result<Option<Direction>> {
        if matches!(self.token().kind, Kind::Integer | Kind::Plus | Kind::Minus) {
            return Ok(Some(Direction::Forward(self.signed_integer()?)));
        }
        let Some(keyword) = self.token().keyword else { return Ok(None) };
        let alone = matches!(self.ahead(1).kind, Kind::Semicolon | Kind::End);
        if alone && keyword != K::All {
            return Ok(None);
        }
        let direction = match keyword {
            K::Next => Direction::Forward(1),
            K::Prior => Direction::Backward(1),
            K::First => Direction::Absolute(1),
            K::Last => Direction::Absolute(-1),
            K::All => Direction::Forward(i64::MAX),
            K::Absolute | K::Relative => {
                self.advance();
                let count = self.signed_integer()?;
                let absolute = keyword == K::Absolute;
                return Ok(Some(if absolute { Direction::Absolute(count) } else { Direction::Relative(count) }));
            }
            K::Forward | K::Backward => {
                self.advance();
                let count = match () {
                    () if self.eat_word(K::All) => i64::MAX,
                    () if matches!(self.token().kind, Kind::Integer | Kind::Plus | Kind::Minus) => {
                        self.signed_integer()?
                    }
                    () => 1,
                };
                let forward = keyword == K::Forward;
                return Ok(Some(if forward { Direction::Forward(count) } else { Direction::Backward(count) }));
            }
            _ => return Ok(None),
        };
        self.advance();
        Ok(Some(direction))
    }

    /// A whole number of 32 bits, perhaps with a sign.
    fn signed_integer(&mut self) -> Result<i64> {
        let minus = self.eat(Kind::Minus);
        if !minus {
            self.eat(Kind::Plus);
        }
        let value = i64::from(self.small_integer()?);
        Ok(if minus { -value } else { value })
    }

    /// What follows EXPLAIN.
    pub(super) fn explain(&mut self, at: At) -> Result<Statement> {
        let query = matches!(self.ahead(1).keyword, Some(K::Select | K::Values | K::With | K::Table))
            || self.ahead(1).kind == Kind::LeftParen;
        let mut options = vec![];
        if self.at(Kind::LeftParen) && !query {
            options = self.options_in_parens()?;
        } else {
            for keyword in [K::Analyze, K::Verbose] {
                if keyword == K::Analyze && self.at_word(K::Analyse) || self.at_word(keyword) {
                    let at = self.advance().start;
                    let name = Ident { at, name: keyword.text().to_owned() };
                    options.push(NamedOption { name, value: OptionValue::None });
                }
            }
        }
        let (statement, place) = self.placed(Self::explainable)?;
        Ok(Statement::Explain(Box::new(Explain { at, options, statement, place })))
    }

    /// What EXPLAIN can explain.
    fn explainable(&mut self) -> Result<Statement> {
        let at = self.place();
        match self.token().keyword {
            Some(K::Declare) => {
                self.advance();
                self.declare(at)
            }
            Some(K::Execute) => {
                self.advance();
                self.execute(at)
            }
            Some(K::Create) => {
                self.advance();
                let kinds = [K::Table, K::Temp, K::Temporary, K::Local, K::Global, K::Unlogged, K::Materialized];
                match self.at_any(&kinds) {
                    true => self.refuse_rest(at, "EXPLAIN of CREATE TABLE AS", None),
                    false => Err(self.unexpected()),
                }
            }
            Some(K::Refresh) => self.refuse_rest(at, "REFRESH", None),
            _ => self.preparable(),
        }
    }

    /// `(a, b on, c 1)`.
    fn options_in_parens(&mut self) -> Result<Vec<NamedOption>> {
        self.list_in_parens(|parser| {
            let token = parser.token();
            if !Self::is_value_word(token) && !matches!(token.keyword, Some(K::Analyze | K::Analyse)) {
                return Err(parser.unexpected());
            }
            let mut name = parser.label()?;
            if name.name == "analyse" {
                name.name = "analyze".to_owned();
            }
            let value = match parser.token().kind {
                Kind::Integer | Kind::Number | Kind::Plus | Kind::Minus => OptionValue::Number(parser.number_text()?),
                _ if parser.at_string() => OptionValue::Text(parser.string()?),
                _ if Self::is_value_word(parser.token()) => OptionValue::Text(parser.label()?.name),
                _ => OptionValue::None,
            };
            Ok(NamedOption { name, value })
        })
    }

    /// What follows VACUUM or ANALYZE: the options may be in parentheses, or these words in this order.
    pub(super) fn maintain(&mut self, at: At, words: &[K]) -> Result<Maintain> {
        let mut options = vec![];
        if self.at(Kind::LeftParen) {
            options = self.options_in_parens()?;
        } else {
            for keyword in words {
                if *keyword == K::Analyze && self.at_word(K::Analyse) || self.at_word(*keyword) {
                    let at = self.advance().start;
                    let name = Ident { at, name: keyword.text().to_owned() };
                    options.push(NamedOption { name, value: OptionValue::None });
                }
            }
        }
        let mut tables = vec![];
        if !matches!(self.token().kind, Kind::Semicolon | Kind::End | Kind::RightParen) {
            tables = self.list(|parser| {
                let (name, only) = parser.relation()?;
                Ok(MaintainedTable { name, only, columns: parser.maybe_idents_in_parens()? })
            })?;
        }
        Ok(Maintain { at, options, tables })
    }

    /// What follows COPY.
    pub(super) fn copy(&mut self, at: At) -> Result<Statement> {
        if self.at(Kind::LeftParen) {
            self.advance();
            let (statement, place) = self.placed(Self::preparable)?;
            self.expect(Kind::RightParen)?;
            self.expect_word(K::To)?;
            let target = self.copy_target()?;
            let options = self.copy_options()?;
            let source = CopySource::Query(Box::new(statement), place);
            return Ok(Statement::Copy(Box::new(Copy { at, source, from: false, target, options, filter: None })));
        }
        let mut options = vec![];
        if self.at_word(K::Binary) {
            let at = self.advance().start;
            options.push(option(at, "format", OptionValue::Text("binary".to_owned())));
        }
        let name = self.relation_name()?;
        let columns = self.maybe_idents_in_parens()?;
        let from = self.eat_word(K::From);
        if !from {
            self.expect_word(K::To)?;
        }
        let target = self.copy_target()?;
        let at_delimiters = self.place();
        if self.at_word(K::Using) || self.at_word(K::Delimiters) {
            self.eat_word(K::Using);
            self.expect_word(K::Delimiters)?;
            options.push(option(at_delimiters, "delimiter", OptionValue::Text(self.string()?)));
        }
        options.extend(self.copy_options()?);
        let filter_at = self.place();
        let filter = self.maybe_where()?;
        if !from && filter.is_some() {
            return Err(SyntaxError::new("WHERE clause not allowed with COPY TO", filter_at)
                .hint("Try the COPY (SELECT ...) TO variant."));
        }
        let source = CopySource::Table { name, columns };
        Ok(Statement::Copy(Box::new(Copy { at, source, from, target, options, filter })))
    }

    fn copy_target(&mut self) -> Result<CopyTarget> {
        match self.token().keyword {
            Some(K::Stdin | K::Stdout) => {
                self.advance();
                Ok(CopyTarget::Client)
            }
            Some(K::Program) => {
                self.advance();
                Ok(CopyTarget::Program(self.string()?))
            }
            _ => Ok(CopyTarget::File(self.string()?)),
        }
    }

    fn copy_options(&mut self) -> Result<Vec<NamedOption>> {
        self.eat_word(K::With);
        if self.at(Kind::LeftParen) {
            return self.list_in_parens(|parser| {
                let name = parser.label()?;
                let value = match parser.token().kind {
                    Kind::Star => {
                        parser.advance();
                        OptionValue::All
                    }
                    Kind::LeftParen => OptionValue::List(parser.list_in_parens(Self::value_word)?),
                    Kind::Integer | Kind::Number | Kind::Plus | Kind::Minus => {
                        OptionValue::Number(parser.number_text()?)
                    }
                    Kind::Comma | Kind::RightParen => OptionValue::None,
                    _ => OptionValue::Text(parser.value_word()?.name),
                };
                Ok(NamedOption { name, value })
            });
        }
        let mut options = vec![];
        while let Some(option) = self.old_copy_option()? {
            options.push(option);
        }
        Ok(options)
    }

    /// A word or a string.
    fn value_word(&mut self) -> Result<Ident> {
        let at = self.place();
        if self.at_string() {
            return Ok(Ident { at, name: self.string()? });
        }
        if !Self::is_value_word(self.token()) {
            return Err(self.unexpected());
        }
        self.label()
    }

    /// An option of COPY as it was before PostgreSQL 9.0.
    fn old_copy_option(&mut self) -> Result<Option<NamedOption>> {
        let at = self.place();
        let Some(keyword) = self.token().keyword else { return Ok(None) };
        let text = |text: &str| OptionValue::Text(text.to_owned());
        let (name, value) = match keyword {
            K::Binary => ("format", text("binary")),
            K::Csv => ("format", text("csv")),
            K::Freeze => ("freeze", text("true")),
            K::Header => ("header", text("true")),
            K::Delimiter | K::Null | K::Quote | K::Escape => {
                self.advance();
                self.eat_word(K::As);
                let value = OptionValue::Text(self.string()?);
                return Ok(Some(option(at, keyword.text(), value)));
            }
            K::Encoding => {
                self.advance();
                return Ok(Some(option(at, "encoding", OptionValue::Text(self.string()?))));
            }
            K::Force => {
                self.advance();
                let name = match () {
                    () if self.eat_word(K::Quote) => "force_quote",
                    () if self.eat_word(K::Null) => "force_null",
                    () => {
                        self.expect_words(&[K::Not, K::Null])?;
                        "force_not_null"
                    }
                };
                let value = match name == "force_quote" && self.eat(Kind::Star) {
                    true => OptionValue::All,
                    false => OptionValue::List(self.list(Self::ident)?),
                };
                return Ok(Some(option(at, name, value)));
            }
            _ => return Ok(None),
        };
        self.advance();
        Ok(Some(option(at, name, value)))
    }
}

fn option(at: At, name: &str, value: OptionValue) -> NamedOption {
    NamedOption { name: Ident { at, name: name.to_owned() }, value }
}
