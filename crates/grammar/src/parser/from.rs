//! FROM: tables, queries, functions and joins.

use super::Parser;
use crate::error::{Result, SyntaxError};
use crate::keyword::{Category, Keyword as K};
use crate::lexer::Kind;
use crate::statement::{
    Alias, At, Body, ColumnDefinition, Expr, ExprKind, FromItem, JoinKind, JoinOn, Name, Query, TableFunction,
};

impl Parser<'_> {
    pub(super) fn sources(&mut self) -> Result<Vec<FromItem>> {
        let mut items = vec![self.source_item()?];
        while self.eat(Kind::Comma) {
            self.joined()?;
            items.push(self.source_item()?);
        }
        Ok(items)
    }

    /// One item between commas.
    pub(super) fn source_item(&mut self) -> Result<FromItem> {
        self.nested(|parser| {
            let first = parser.join_operand()?;
            parser.joins(first)
        })
    }

    /// The joins that follow an item.
    fn joins(&mut self, mut left: FromItem) -> Result<FromItem> {
        loop {
            let at = self.place();
            let natural = self.eat_word(K::Natural);
            let kind = match self.token().keyword {
                Some(K::Cross) if !natural => JoinKind::Cross,
                Some(K::Join | K::Inner) => JoinKind::Inner,
                Some(K::Left) => JoinKind::Left,
                Some(K::Right) => JoinKind::Right,
                Some(K::Full) => JoinKind::Full,
                _ if natural => return Err(self.unexpected()),
                _ => return Ok(left),
            };
            if self.advance().keyword != Some(K::Join) {
                if matches!(kind, JoinKind::Left | JoinKind::Right | JoinKind::Full) {
                    self.eat_word(K::Outer);
                }
                self.expect_word(K::Join)?;
            }
            self.joined()?;
            let right = self.nested(|parser| {
                let right = parser.join_operand()?;
                // What must have a condition takes the joins before it: `a JOIN b JOIN c ON 1 ON 2`.
                if natural || kind == JoinKind::Cross { Ok(right) } else { parser.joins(right) }
            })?;
            let on = match natural {
                true => JoinOn::Natural,
                false if kind == JoinKind::Cross => JoinOn::Nothing,
                false => self.join_on()?,
            };
            left = FromItem::Join { at, kind, sides: Box::new([left, right]), on, alias: None };
        }
    }

    fn join_on(&mut self) -> Result<JoinOn> {
        if self.eat_word(K::On) {
            return Ok(JoinOn::On(Box::new(self.expr()?)));
        }
        self.expect_word(K::Using)?;
        let columns = self.idents_in_parens()?;
        let alias = if self.eat_word(K::As) { Some(self.ident()?) } else { None };
        Ok(JoinOn::Using { columns, alias })
    }

    /// A table, a file, a function, a query or a join in parentheses.
    fn join_operand(&mut self) -> Result<FromItem> {
        let token = self.token();
        let at = token.start;
        let lateral = self.eat_word(K::Lateral);
        match self.token().keyword {
            _ if self.at(Kind::LeftParen) => self.parens_in_from(at, lateral),
            Some(K::Rows) if self.ahead(1).keyword == Some(K::From) => self.rows_from(at, lateral),
            Some(K::Only) if !lateral => {
                let (name, only) = self.relation()?;
                self.table(name, only)
            }
            Some(K::Xmltable) if self.ahead(1).kind == Kind::LeftParen => {
                Err(SyntaxError::with_state("0A000", "XML is not supported", at))
            }
            _ if !lateral && self.at_string() => {
                let (path, alias) = (self.string()?, self.maybe_alias()?);
                Ok(FromItem::File { at, path, alias })
            }
            _ => self.table_or_function(at, lateral),
        }
    }

    fn table_or_function(&mut self, at: At, lateral: bool) -> Result<FromItem> {
        if let Some(call) = self.table_function()? {
            return self.functions(at, lateral, vec![TableFunction { call, columns: vec![] }], false);
        }
        let (name, only) = self.relation()?;
        if lateral {
            return Err(self.unexpected());
        }
        self.table(name, only)
    }

    /// A call of a function in FROM, without a window. None: it is a table.
    pub(super) fn table_function(&mut self) -> Result<Option<Expr>> {
        let token = self.token();
        if let Some(keyword) = token.keyword
            && let Some(call) = self.special(token, keyword)?
        {
            return Ok(Some(call));
        }
        if token.keyword.is_some_and(|keyword| keyword.category() == Category::TypeFunction) {
            let name = Name::one(self.function_ident()?);
            if !self.at(Kind::LeftParen) {
                return Err(self.unexpected());
            }
            return self.windowless(name).map(Some);
        }
        // A name with dots, up to a parenthesis.
        let mut ahead = 1;
        while self.ahead(ahead).kind == Kind::Dot && Self::is_label(self.ahead(ahead + 1)) {
            ahead += 2;
        }
        let callable = if ahead == 1 { Self::is_function_name(token) } else { Self::is_column_name(token) };
        if !callable || self.ahead(ahead).kind != Kind::LeftParen {
            return Ok(None);
        }
        let name = self.any_name()?;
        self.windowless(name).map(Some)
    }

    fn windowless(&mut self, name: Name) -> Result<Expr> {
        let (call, _) = self.application(name)?;
        Ok(Expr { at: call.name.at(), kind: ExprKind::Call(Box::new(call)) })
    }

    /// `t`, `ONLY t`, `t *`; and whether ONLY was there.
    pub(super) fn relation(&mut self) -> Result<(Name, bool)> {
        if !self.eat_word(K::Only) {
            let name = self.relation_name()?;
            self.eat(Kind::Star);
            return Ok((name, false));
        }
        let parens = self.eat(Kind::LeftParen);
        let name = self.relation_name()?;
        if parens {
            self.expect(Kind::RightParen)?;
        }
        Ok((name, true))
    }

    fn table(&mut self, name: Name, only: bool) -> Result<FromItem> {
        let alias = self.maybe_alias()?;
        if self.at_word(K::Tablesample) {
            let at = self.advance().start;
            self.any_name()?;
            self.list_in_parens(Self::expr)?;
            if self.eat_word(K::Repeatable) {
                self.expect(Kind::LeftParen)?;
                self.expr()?;
                self.expect(Kind::RightParen)?;
            }
            self.refuse(at, "TABLESAMPLE");
        }
        Ok(FromItem::Table { name, only, alias })
    }

    /// `AS t (a, b)`, or nothing.
    fn maybe_alias(&mut self) -> Result<Option<Alias>> {
        if !self.eat_word(K::As) && !Self::is_column_name(self.token()) {
            return Ok(None);
        }
        let name = self.ident()?;
        let columns = self.maybe_idents_in_parens()?;
        Ok(Some(Alias { name, columns }))
    }

    /// A query or a join in parentheses.
    fn parens_in_from(&mut self, at: At, lateral: bool) -> Result<FromItem> {
        let inside = self.nested(|parser| {
            parser.expect(Kind::LeftParen)?;
            parser.inside_from()
        })?;
        self.expect(Kind::RightParen)?;
        match inside {
            Inside::Query(query) => self.subquery(at, lateral, *query),
            Inside::Join(_) if lateral => Err(self.unexpected_at(self.next - 1)),
            Inside::Join(mut join) => {
                if let (FromItem::Join { alias, .. }, Some(new)) = (&mut join, self.maybe_alias()?) {
                    *alias = Some(new);
                }
                Ok(join)
            }
        }
    }

    /// What stands in parentheses in FROM.
    fn inside_from(&mut self) -> Result<Inside> {
        if self.at_query() {
            return Ok(Inside::Query(Box::new(self.query()?)));
        }
        let first = match self.at(Kind::LeftParen) {
            false => self.join_operand()?,
            true => {
                let at = self.place();
                let inside = self.nested(|parser| {
                    parser.expect(Kind::LeftParen)?;
                    parser.inside_from()
                })?;
                self.expect(Kind::RightParen)?;
                match inside {
                    Inside::Query(query) if self.at(Kind::RightParen) => return Ok(Inside::Query(query)),
                    Inside::Query(query) if self.query_goes_on() => {
                        return Ok(Inside::Query(Box::new(self.query_from(*query)?)));
                    }
                    Inside::Query(query) => self.subquery(at, false, *query)?,
                    Inside::Join(mut join) => {
                        match (&mut join, self.maybe_alias()?) {
                            (FromItem::Join { alias, .. }, Some(new)) => *alias = Some(new),
                            // `((a JOIN b))` is a join as well.
                            _ if self.at(Kind::RightParen) => return Ok(Inside::Join(join)),
                            _ => {}
                        }
                        join
                    }
                }
            }
        };
        let before = self.next;
        let join = self.joins(first)?;
        // A table alone may not stand in parentheses.
        if self.next == before {
            return Err(self.unexpected());
        }
        Ok(Inside::Join(join))
    }

    /// A query's alias.
    fn subquery(&mut self, at: At, lateral: bool, query: Query) -> Result<FromItem> {
        let Some(alias) = self.maybe_alias()? else {
            if !self.item_ends() {
                return Err(self.unexpected());
            }
            let values = matches!(query.body, Body::Values(_));
            return Err(match values {
                true => SyntaxError::new("VALUES in FROM must have an alias", at)
                    .hint("For example, FROM (VALUES ...) [AS] foo."),
                false => SyntaxError::new("subquery in FROM must have an alias", at)
                    .hint("For example, FROM (SELECT ...) [AS] foo."),
            });
        };
        Ok(FromItem::Query { at, lateral, query: Box::new(query), alias })
    }

    /// Whether an item of FROM can end before the next token.
    fn item_ends(&self) -> bool {
        matches!(self.token().kind, Kind::Comma | Kind::RightParen | Kind::Semicolon | Kind::End)
            || self.query_goes_on()
            || self.at_any(&[K::Where, K::Group, K::Having, K::Window, K::On, K::Using, K::Returning])
            || self.at_any(&[K::Join, K::Inner, K::Left, K::Right, K::Full, K::Cross, K::Natural])
    }

    /// `ROWS FROM (f(), g() AS (a int))`.
    fn rows_from(&mut self, at: At, lateral: bool) -> Result<FromItem> {
        self.expect_words(&[K::Rows, K::From])?;
        let functions = self.list_in_parens(|parser| {
            let Some(call) = parser.table_function()? else {
                // A name that nothing calls: the parenthesis is missing behind it.
                parser.any_name()?;
                return Err(parser.unexpected());
            };
            let columns = match parser.eat_word(K::As) {
                true => parser.list_in_parens(Self::column_definition)?,
                false => vec![],
            };
            Ok(TableFunction { call, columns })
        })?;
        self.functions(at, lateral, functions, true)
    }

    /// What follows functions in FROM.
    fn functions(
        &mut self,
        at: At,
        lateral: bool,
        mut functions: Vec<TableFunction>,
        rows_from: bool,
    ) -> Result<FromItem> {
        let ordinality = self.eat_words(&[K::With, K::Ordinality]);
        let mut alias = None;
        let with_as = self.eat_word(K::As);
        if with_as && self.at(Kind::LeftParen) {
            functions[0].columns = self.list_in_parens(Self::column_definition)?;
        } else if with_as || Self::is_column_name(self.token()) {
            let name = self.ident()?;
            let mut columns = vec![];
            let typed = !matches!(self.ahead(2).kind, Kind::Comma | Kind::RightParen);
            if self.at(Kind::LeftParen) && typed {
                functions[0].columns = self.list_in_parens(Self::column_definition)?;
            } else {
                columns = self.maybe_idents_in_parens()?;
            }
            alias = Some(Alias { name, columns });
        }
        Ok(FromItem::Functions { at, lateral, functions, rows_from, ordinality, alias })
    }

    /// `a int COLLATE "C"`.
    pub(super) fn column_definition(&mut self) -> Result<ColumnDefinition> {
        let name = self.ident()?;
        let data_type = self.type_name()?;
        let collation = if self.eat_word(K::Collate) { Some(self.any_name()?) } else { None };
        Ok(ColumnDefinition { name, data_type, collation })
    }
}

/// What stands in parentheses in FROM.
enum Inside {
    Query(Box<Query>),
    Join(FromItem),
}
