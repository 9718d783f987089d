//! Queries: WITH, set operations, and what follows them.

use super::Parser;
use crate::error::{Result, SyntaxError};
use crate::keyword::Keyword as K;
use crate::lexer::Kind;
use crate::statement::{
    At, Body, Cte, Expr, ExprKind, Literal, LockStrength, LockWait, Locking, Query, SetOperator, With,
};

impl Query {
    /// A query without anything around its body.
    pub(super) fn plain(at: At, body: Body) -> Query {
        Query { at, with: None, body, order: vec![], limit: None, with_ties: false, offset: None, locking: vec![] }
    }

    /// Whether there is something around its body.
    fn is_plain(&self) -> bool {
        self.with.is_none()
            && self.order.is_empty()
            && self.limit.is_none()
            && self.offset.is_none()
            && self.locking.is_empty()
    }
}

impl Parser<'_> {
    /// A query.
    pub(super) fn query(&mut self) -> Result<Query> {
        let with = self.maybe_with()?;
        self.query_behind(with)
    }

    /// A query behind its WITH.
    pub(super) fn query_behind(&mut self, with: Option<With>) -> Result<Query> {
        if self.depth == 0 {
            let first = self.tokens[self.next..].iter().find(|token| token.kind != Kind::LeftParen);
            self.first_select = first.map(|token| token.start);
        }
        self.queries += 1;
        self.nested(|parser| {
            let first = parser.query_operand()?;
            let mut query = parser.query_from(first)?;
            if let Some(with) = with {
                if query.with.is_some() {
                    return Err(SyntaxError::new("multiple WITH clauses not allowed", with.at));
                }
                query.at = with.at;
                query.with = Some(with);
            }
            Ok(query)
        })
    }

    /// `(query)`.
    pub(super) fn query_in_parens(&mut self) -> Result<Query> {
        self.expect(Kind::LeftParen)?;
        if !self.at_query() && !self.at(Kind::LeftParen) {
            return Err(self.unexpected());
        }
        let query = self.query()?;
        self.expect(Kind::RightParen)?;
        Ok(query)
    }

    /// What a set operation takes.
    fn query_operand(&mut self) -> Result<Query> {
        let at = self.place();
        match self.token().keyword {
            Some(K::Select) => {
                let select = self.select()?;
                Ok(Query::plain(at, Body::Select(Box::new(select))))
            }
            Some(K::Values) => {
                self.advance();
                let rows = self.list(|parser| parser.list_in_parens(Self::expr))?;
                Ok(Query::plain(at, Body::Values(rows)))
            }
            Some(K::Table) => {
                let select = self.whole_table()?;
                Ok(Query::plain(at, Body::Select(Box::new(select))))
            }
            _ if self.at(Kind::LeftParen) => self.query_in_parens(),
            _ => Err(self.unexpected()),
        }
    }

    /// Whether a query in parentheses goes on behind them.
    pub(super) fn query_goes_on(&self) -> bool {
        self.at_any(&[K::Union, K::Intersect, K::Except, K::Order, K::Limit, K::Offset, K::Fetch, K::For])
    }

    /// A query whose first operand was parsed.
    pub(super) fn query_from(&mut self, first: Query) -> Result<Query> {
        let mut query = self.set_operations(first, false)?;
        self.tail(&mut query)?;
        Ok(query)
    }

    /// UNION and its kind. INTERSECT binds tighter than the others.
    fn set_operations(&mut self, mut left: Query, only_intersect: bool) -> Result<Query> {
        loop {
            let op = match self.token().keyword {
                Some(K::Intersect) => SetOperator::Intersect,
                Some(K::Union) if !only_intersect => SetOperator::Union,
                Some(K::Except) if !only_intersect => SetOperator::Except,
                _ => return Ok(left),
            };
            self.advance();
            let all = self.eat_word(K::All);
            if !all {
                self.eat_word(K::Distinct);
            }
            let mut right = self.nested(Self::query_operand)?;
            if op != SetOperator::Intersect {
                right = self.set_operations(right, true)?;
            }
            left = self.combined(left, op, all, right)?;
        }
    }

    fn combined(&mut self, mut left: Query, new: SetOperator, new_all: bool, right: Query) -> Result<Query> {
        let plain = left.is_plain();
        match &mut left.body {
            Body::Set { op, all, branches } if plain && *op == new && *all == new_all => {
                branches.push(right);
                if new != SetOperator::Union {
                    // Each is joined with those before it.
                    self.joined()?;
                }
            }
            _ => {
                self.higher()?;
                let at = left.at;
                let branches = vec![left, right];
                left = Query::plain(at, Body::Set { op: new, all: new_all, branches });
            }
        }
        Ok(left)
    }

    /// ORDER BY, LIMIT and locks. A query in parentheses may have some of them already.
    fn tail(&mut self, query: &mut Query) -> Result<()> {
        let order = self.maybe_order()?;
        if let Some(first) = order.first() {
            if !query.order.is_empty() {
                return Err(SyntaxError::new("multiple ORDER BY clauses not allowed", first.expr.at));
            }
            query.order = order;
        }
        let locked = self.locking(query)?;
        self.limits(query)?;
        if !locked {
            self.locking(query)?;
        }
        let skips = query.locking.iter().any(|lock| lock.wait == LockWait::SkipLocked);
        match query.with_ties {
            true if query.order.is_empty() => {
                let mut error = SyntaxError::new("WITH TIES cannot be specified without ORDER BY clause", 0);
                error.at = None;
                Err(error)
            }
            true if skips => {
                let mut error = SyntaxError::new("SKIP LOCKED and WITH TIES options cannot be used together", 0);
                error.at = None;
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// LIMIT and OFFSET in any order, each at most once.
    fn limits(&mut self, query: &mut Query) -> Result<()> {
        let (mut limited, mut skipped) = (false, false);
        loop {
            match self.token().keyword {
                Some(K::Limit | K::Fetch) if !limited => {
                    limited = true;
                    self.limit(query)?;
                }
                Some(K::Offset) if !skipped => {
                    skipped = true;
                    self.advance();
                    let offset = self.expr()?;
                    if self.at_any(&[K::Row, K::Rows]) {
                        self.check_row_count(&offset)?;
                        self.advance();
                    }
                    let at = offset.at;
                    if query.offset.replace(offset).is_some() {
                        return Err(SyntaxError::new("multiple OFFSET clauses not allowed", at));
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// LIMIT, or FETCH FIRST.
    fn limit(&mut self, query: &mut Query) -> Result<()> {
        let at = self.place();
        let had = query.limit.is_some();
        if self.advance().keyword == Some(K::Fetch) {
            if !self.eat_word(K::First) {
                self.expect_word(K::Next)?;
            }
            let count = self.fetch_count()?;
            if !self.eat_word(K::Row) {
                self.expect_word(K::Rows)?;
            }
            query.with_ties = self.eat_words(&[K::With, K::Ties]);
            if !query.with_ties {
                self.expect_word(K::Only)?;
            }
            query.limit = Some(count.unwrap_or(Expr { at, kind: ExprKind::Literal(Literal::Int(1)) }));
        } else if !self.eat_word(K::All) {
            query.limit = Some(self.expr()?);
            if self.at(Kind::Comma) {
                return Err(SyntaxError::new("LIMIT #,# syntax is not supported", at)
                    .hint("Use separate LIMIT and OFFSET clauses."));
            }
        }
        match &query.limit {
            Some(limit) if had => Err(SyntaxError::new("multiple LIMIT clauses not allowed", limit.at)),
            _ => Ok(()),
        }
    }

    /// How many rows FETCH takes. None: one.
    fn fetch_count(&mut self) -> Result<Option<Expr>> {
        if self.at_any(&[K::Row, K::Rows]) {
            return Ok(None);
        }
        let signed = matches!(self.token().kind, Kind::Plus | Kind::Minus);
        if signed && !matches!(self.ahead(1).kind, Kind::Integer | Kind::Number) {
            self.advance();
            return Err(self.unexpected());
        }
        let count = if signed { self.simple_expr()? } else { self.primary()? };
        Ok(Some(count))
    }

    /// Before ROWS, there is no room for operators.
    fn check_row_count(&mut self, count: &Expr) -> Result<()> {
        match count.kind {
            ExprKind::Binary { .. } | ExprKind::And(_) | ExprKind::Or(_) | ExprKind::Cast { .. } => {
                Err(self.unexpected())
            }
            _ => Ok(()),
        }
    }

    /// FOR UPDATE and its kind; whether there was one.
    fn locking(&mut self, query: &mut Query) -> Result<bool> {
        let mut any = false;
        while self.at_word(K::For) {
            any = true;
            let at = self.advance().start;
            if self.eat_words(&[K::Read, K::Only]) {
                return Ok(true);
            }
            let strength = match self.token().keyword {
                Some(K::Update) => LockStrength::Update,
                Some(K::Share) => LockStrength::Share,
                Some(K::No) => {
                    self.advance();
                    self.expect_word(K::Key)?;
                    LockStrength::NoKeyUpdate
                }
                Some(K::Key) => {
                    self.advance();
                    LockStrength::KeyShare
                }
                _ => return Err(self.unexpected()),
            };
            let last = match strength {
                LockStrength::Update | LockStrength::NoKeyUpdate => K::Update,
                LockStrength::Share | LockStrength::KeyShare => K::Share,
            };
            self.expect_word(last)?;
            let of = if self.eat_word(K::Of) { self.list(Self::relation_name)? } else { vec![] };
            let wait = match () {
                () if self.eat_word(K::Nowait) => LockWait::NoWait,
                () if self.eat_word(K::Skip) => {
                    self.expect_word(K::Locked)?;
                    LockWait::SkipLocked
                }
                () => LockWait::Wait,
            };
            query.locking.push(Locking { at, strength, of, wait });
        }
        Ok(any)
    }

    /// WITH, or nothing.
    pub(super) fn maybe_with(&mut self) -> Result<Option<With>> {
        let at = self.place();
        if !self.eat_word(K::With) {
            return Ok(None);
        }
        let recursive = self.eat_word(K::Recursive);
        let before = self.queries;
        let ctes = self.list(Self::cte)?;
        self.with += self.queries - before;
        Ok(Some(With { at, recursive, ctes }))
    }

    fn cte(&mut self) -> Result<Cte> {
        let name = self.ident()?;
        let columns = self.maybe_idents_in_parens()?;
        self.expect_word(K::As)?;
        let materialized = match () {
            () if self.eat_word(K::Materialized) => Some(true),
            () if self.eat_word(K::Not) => {
                self.expect_word(K::Materialized)?;
                Some(false)
            }
            () => None,
        };
        self.expect(Kind::LeftParen)?;
        let statement = Box::new(self.nested(Self::preparable)?);
        self.expect(Kind::RightParen)?;
        self.search_and_cycle()?;
        Ok(Cte { name, columns, materialized, statement })
    }

    /// SEARCH and CYCLE, which Terrace has not.
    fn search_and_cycle(&mut self) -> Result<()> {
        if self.at_word(K::Search) {
            let at = self.advance().start;
            if !self.eat_word(K::Depth) {
                self.expect_word(K::Breadth)?;
            }
            self.expect_words(&[K::First, K::By])?;
            self.list(Self::ident)?;
            self.expect_word(K::Set)?;
            self.ident()?;
            self.refuse(at, "SEARCH");
        }
        if self.at_word(K::Cycle) {
            let at = self.advance().start;
            self.list(Self::ident)?;
            self.expect_word(K::Set)?;
            self.ident()?;
            if self.eat_word(K::To) {
                self.primary()?;
                self.expect_word(K::Default)?;
                self.primary()?;
            }
            self.expect_word(K::Using)?;
            self.ident()?;
            self.refuse(at, "CYCLE");
        }
        Ok(())
    }
}
