//! A single SELECT.

use super::{Into, Parser};
use crate::error::{Result, SyntaxError};
use crate::keyword::Keyword as K;
use crate::lexer::Kind;
use crate::statement::{At, Distinct, Expr, ExprKind, FromItem, Group, GroupBy, Item, Select, Written};

impl Parser<'_> {
    pub(super) fn select(&mut self) -> Result<Select> {
        let at = self.expect_word(K::Select)?;
        let distinct = self.distinct()?;
        let required = distinct != Distinct::No;
        let items = match required || self.item_begins() {
            true => self.items()?,
            false => vec![],
        };
        if self.at_word(K::Into) {
            self.select_into(at)?;
        }
        let from = if self.eat_word(K::From) { self.sources()? } else { vec![] };
        let filter = self.maybe_where()?;
        let group = self.maybe_group()?;
        let having = if self.eat_word(K::Having) { Some(self.expr()?) } else { None };
        let windows = self.named_windows()?;
        Ok(Select { at, distinct, items, from, filter, group, having, windows })
    }

    /// `TABLE t`: all rows of a table.
    pub(super) fn whole_table(&mut self) -> Result<Select> {
        let at = self.expect_word(K::Table)?;
        let (name, only) = self.relation()?;
        let star = Item { expr: Expr { at, kind: ExprKind::Star(None) }, alias: None };
        Ok(Select {
            at,
            distinct: Distinct::No,
            items: vec![star],
            from: vec![FromItem::Table { name, only, alias: None }],
            filter: None,
            group: None,
            having: None,
            windows: vec![],
        })
    }

    /// ALL, DISTINCT, DISTINCT ON, or nothing.
    fn distinct(&mut self) -> Result<Distinct> {
        if !self.eat_word(K::Distinct) {
            self.eat_word(K::All);
            return Ok(Distinct::No);
        }
        match self.eat_word(K::On) {
            true => Ok(Distinct::On(self.list_in_parens(Self::expr)?)),
            false => Ok(Distinct::Rows),
        }
    }

    /// Whether the list of a SELECT is not empty.
    fn item_begins(&self) -> bool {
        let ends = [
            K::Into,
            K::From,
            K::Where,
            K::Group,
            K::Having,
            K::Window,
            K::Union,
            K::Intersect,
            K::Except,
            K::Order,
            K::Limit,
            K::Offset,
            K::Fetch,
            K::For,
            K::On,
            K::Returning,
        ];
        !matches!(self.token().kind, Kind::Semicolon | Kind::End | Kind::RightParen) && !self.at_any(&ends)
    }

    /// The list of SELECT or RETURNING.
    pub(super) fn items(&mut self) -> Result<Vec<Item>> {
        let before = self.items.replace(self.depth + 1);
        let items = self.list(Self::item)?;
        self.items = before;
        Ok(items)
    }

    fn item(&mut self) -> Result<Item> {
        let token = self.token();
        if token.kind == Kind::Star {
            self.advance();
            return Ok(Item { expr: Expr { at: token.start, kind: ExprKind::Star(None) }, alias: None });
        }
        let expr = self.expr()?;
        let alias = match () {
            () if self.eat_word(K::As) => Some(self.label()?),
            () if Self::is_bare_label(self.token()) => Some(self.label()?),
            () => None,
        };
        Ok(Item { expr, alias })
    }

    /// WHERE, or nothing.
    /// The same, with its text.
    pub(super) fn maybe_written_where(&mut self) -> Result<Option<Written>> {
        if self.eat_word(K::Where) { self.written(Self::expr).map(Some) } else { Ok(None) }
    }

    pub(super) fn maybe_where(&mut self) -> Result<Option<Expr>> {
        if self.eat_word(K::Where) { self.expr().map(Some) } else { Ok(None) }
    }

    fn maybe_group(&mut self) -> Result<Option<GroupBy>> {
        if !self.eat_word(K::Group) {
            return Ok(None);
        }
        self.expect_word(K::By)?;
        let distinct = self.eat_word(K::Distinct);
        if !distinct {
            self.eat_word(K::All);
        }
        let items = self.list(Self::group)?;
        Ok(Some(GroupBy { distinct, items }))
    }

    fn group(&mut self) -> Result<Group> {
        let token = self.token();
        let called = self.ahead(1).kind == Kind::LeftParen;
        match token.keyword {
            Some(K::Cube) if called => {
                self.advance();
                Ok(Group::Cube(token.start, self.list_in_parens(Self::expr)?))
            }
            Some(K::Rollup) if called => {
                self.advance();
                Ok(Group::Rollup(token.start, self.list_in_parens(Self::expr)?))
            }
            Some(K::Grouping) if self.ahead(1).keyword == Some(K::Sets) => {
                self.next += 2;
                let sets = self.nested(|parser| parser.list_in_parens(Self::group))?;
                Ok(Group::Sets(token.start, sets))
            }
            _ if token.kind == Kind::LeftParen && self.ahead(1).kind == Kind::RightParen => {
                self.next += 2;
                Ok(Group::Empty(token.start))
            }
            _ => self.expr().map(Group::Expr),
        }
    }

    /// INTO of `SELECT ... INTO t`. It makes a table, so it can stand in the statement's first SELECT only.
    fn select_into(&mut self, select_at: At) -> Result<()> {
        let at = self.expect_word(K::Into)?;
        let temporary = self.eat_temporary();
        if !temporary && self.eat_word(K::Unlogged) {
            self.refuse(at, "SELECT INTO UNLOGGED");
        }
        self.eat_word(K::Table);
        let name = self.relation_name()?;
        if self.first_select != Some(select_at) {
            return Err(SyntaxError::new("SELECT ... INTO is not allowed here", name.at()));
        }
        self.into = Some(Into { temporary, name });
        Ok(())
    }

    /// TEMPORARY, as it is written.
    pub(super) fn eat_temporary(&mut self) -> bool {
        match self.token().keyword {
            Some(K::Temporary | K::Temp) => {
                self.advance();
                true
            }
            Some(K::Local | K::Global) if matches!(self.ahead(1).keyword, Some(K::Temporary | K::Temp)) => {
                self.next += 2;
                true
            }
            _ => false,
        }
    }
}
