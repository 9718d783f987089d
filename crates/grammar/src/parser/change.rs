//! INSERT, UPDATE, DELETE.

use super::Parser;
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::Kind;
use crate::statement::{
    Assignment, At, Body, Conflict, ConflictAction, ConflictTarget, Delete, Distinct, Expr, ExprKind, Ident,
    IndexElement, Insert, Item, Name, Overriding, PARTS_MAX, Query, Refused, Step, Update, With, Written, multiplies,
    with_part,
};
use std::ops::Range;

/// Columns that are assigned to, and which parts of them.
type Targets = (Vec<Ident>, Vec<Vec<Step>>);

/// One item of SET.
enum Set {
    Whole(Assignment),
    /// A part of a column, and its value.
    Part(Ident, Vec<Step>, Expr),
}

impl Set {
    fn of((column, steps): (Ident, Vec<Step>), value: Expr) -> Set {
        match steps.is_empty() {
            true => Set::Whole(Assignment::One { column, value }),
            false => Set::Part(column, steps, value),
        }
    }
}

impl Parser<'_> {
    pub(super) fn insert(&mut self, with: Option<With>) -> Result<Insert> {
        let at = self.expect_word(K::Insert)?;
        self.expect_word(K::Into)?;
        let target = self.relation_name()?;
        let alias = if self.eat_word(K::As) { Some(self.ident()?) } else { None };
        let mut place = 0..0;
        let ((columns, parts), overriding, source) = self.insert_rest(&mut place)?;
        let conflict = match self.at_word(K::On) {
            true => Some(self.conflict(alias.as_ref().unwrap_or(target.last()))?),
            false => None,
        };
        let returning = self.maybe_returning()?;
        Ok(Insert { at, with, target, alias, columns, parts, overriding, source, place, conflict, returning })
    }

    /// The columns and what they get. `place`: to be set to where that stands.
    fn insert_rest(&mut self, place: &mut Range<At>) -> Result<(Targets, Option<Overriding>, Option<Query>)> {
        if self.eat_word(K::Default) {
            self.expect_word(K::Values)?;
            return Ok((Targets::default(), None, None));
        }
        let mut targets = vec![];
        if self.at(Kind::LeftParen) && !self.query_in_parens_follows() {
            targets = self.list_in_parens(Self::target_or_part)?;
        }
        let overriding = self.overriding()?;
        if !self.at_any(&[K::Select, K::Values, K::With, K::Table]) && !self.at(Kind::LeftParen) {
            return Err(self.unexpected());
        }
        let (query, stands) = self.placed(Self::query)?;
        *place = stands;
        Ok((targets.into_iter().unzip(), overriding, Some(query)))
    }

    /// Whether the parenthesis here holds a query, and no columns.
    fn query_in_parens_follows(&self) -> bool {
        let next = self.ahead(1);
        match next.keyword {
            Some(K::Select | K::With | K::Table) => true,
            Some(K::Values) => self.ahead(2).kind == Kind::LeftParen,
            _ => next.kind == Kind::LeftParen,
        }
    }

    fn overriding(&mut self) -> Result<Option<Overriding>> {
        if !self.eat_word(K::Overriding) {
            return Ok(None);
        }
        let kind = match self.eat_word(K::System) {
            true => Overriding::System,
            false => {
                self.expect_word(K::User)?;
                Overriding::User
            }
        };
        self.expect_word(K::Value)?;
        Ok(Some(kind))
    }

    /// `called`: what the statement calls the table.
    fn conflict(&mut self, called: &Ident) -> Result<Conflict> {
        let at = self.expect_word(K::On)?;
        self.expect_word(K::Conflict)?;
        let target_at = self.place();
        let target = match () {
            () if self.at(Kind::LeftParen) => {
                let elements = self.list_in_parens(Self::index_element)?;
                let filter = self.maybe_written_where()?;
                Some(ConflictTarget::Elements { at: target_at, elements, filter })
            }
            () if self.eat_word(K::On) => {
                self.expect_word(K::Constraint)?;
                Some(ConflictTarget::Constraint(self.ident()?))
            }
            () => None,
        };
        self.expect_word(K::Do)?;
        let action = match self.eat_word(K::Nothing) {
            true => ConflictAction::Nothing,
            false => {
                self.expect_words(&[K::Update, K::Set])?;
                let set = self.assignments(called)?;
                ConflictAction::Update { set, filter: self.maybe_where()? }
            }
        };
        Ok(Conflict { at, target, action })
    }

    /// A part of an index: a column, a function, or an expression in parentheses.
    pub(super) fn index_element(&mut self) -> Result<IndexElement> {
        let at = self.place();
        let Written { expr, text } = match self.eat(Kind::LeftParen) {
            true => {
                let written = self.written(Self::expr)?;
                self.expect(Kind::RightParen)?;
                written
            }
            false => self.written(|parser| match parser.table_function()? {
                Some(call) => Ok(call),
                None => Ok(Expr { at, kind: ExprKind::Column(Name::one(parser.ident()?)) }),
            })?,
        };
        let collation = if self.eat_word(K::Collate) { Some(self.any_name()?) } else { None };
        let mut class = None;
        let nulls = self.at_word(K::Nulls) && matches!(self.ahead(1).keyword, Some(K::First | K::Last));
        if Self::is_column_name(self.token()) && !nulls {
            class = Some(self.any_name()?);
            if self.at(Kind::LeftParen) {
                let at = self.place();
                self.storage()?;
                self.refuse(at, "an operator class with parameters");
            }
        }
        let descending = !self.eat_word(K::Asc) && self.eat_word(K::Desc);
        Ok(IndexElement { expr, text, collation, class, descending, nulls: self.nulls_order()? })
    }

    /// The value of an option: a number, a string, a word.
    pub(super) fn option_value(&mut self) -> Result<Expr> {
        let token = self.token();
        match token.kind {
            _ if Self::is_label(token) => {
                Ok(Expr { at: token.start, kind: ExprKind::Column(Name::one(self.label()?)) })
            }
            Kind::Integer | Kind::Number => self.primary(),
            Kind::Plus | Kind::Minus if matches!(self.ahead(1).kind, Kind::Integer | Kind::Number) => {
                self.simple_expr()
            }
            _ if self.at_string() => self.primary(),
            _ => Err(self.unexpected()),
        }
    }

    /// What follows SET. `called`: what the statement calls the table.
    pub(super) fn assignments(&mut self, called: &Ident) -> Result<Vec<Assignment>> {
        let all = self
            .list(|parser| {
                let at = parser.place();
                if parser.at(Kind::LeftParen) {
                    let targets = parser.list_in_parens(Self::target_or_part)?;
                    parser.expect(Kind::Equal)?;
                    let value = parser.expr()?;
                    return Ok(parser.assigned_list(at, targets, value));
                }
                let target = parser.target_or_part()?;
                parser.expect(Kind::Equal)?;
                Ok(vec![Set::of(target, parser.expr()?)])
            })?
            .into_iter()
            .flatten();
        // `a[1] = x, a[2] = y`: the second one goes on from what the first one makes.
        let (mut merged, mut multiplied): (Vec<Assignment>, usize) = (vec![], 0);
        for one in all {
            let (column, steps, value) = match one {
                Set::Whole(whole) => {
                    merged.push(whole);
                    continue;
                }
                Set::Part(column, steps, value) => (column, steps, value),
            };
            multiplied += usize::from(multiplies(&steps));
            if multiplied > PARTS_MAX {
                self.refuse(column.at, "assignment to so many parts of parts by computed subscripts");
                break;
            }
            let earlier = merged.iter().rposition(|one| within(one) == Some(column.name.as_str()));
            let made = match earlier.map(|at| merged.remove(at)) {
                Some(Assignment::One { value, .. }) => value,
                _ => {
                    let whole = Name::new(vec![called.clone(), column.clone()]);
                    Expr { at: column.at, kind: ExprKind::Column(whole) }
                }
            };
            let value = with_part(&column, made, &steps, value);
            merged.push(Assignment::One { column, value });
        }
        Ok(merged)
    }

    /// `(a, b[1]) = (1, 2)`.
    fn assigned_list(&mut self, at: At, targets: Vec<(Ident, Vec<Step>)>, value: Expr) -> Vec<Set> {
        if targets.iter().all(|(_, steps)| steps.is_empty()) {
            let columns = targets.into_iter().map(|(column, _)| column).collect();
            return parted(Assignment::Many { at, columns, value }).into_iter().map(Set::Whole).collect();
        }
        match value.kind {
            ExprKind::Row { fields, .. } if fields.len() == targets.len() => {
                targets.into_iter().zip(fields).map(|(target, value)| Set::of(target, value)).collect()
            }
            _ => {
                self.refuse(at, "assignment of a query's row, or of another number of values, to parts of columns");
                vec![]
            }
        }
    }

    /// A column, or a part of it: `a[1]`, `a['b'][2]`, `a.b[1].c`.
    fn target_or_part(&mut self) -> Result<(Ident, Vec<Step>)> {
        if !matches!(self.ahead(1).kind, Kind::LeftBracket | Kind::Dot) {
            return Ok((self.target()?, vec![]));
        }
        let column = self.ident()?;
        let mut steps = vec![];
        loop {
            if self.eat(Kind::Dot) {
                steps.push(Step::Field(self.label()?));
            } else if self.at(Kind::LeftBracket) {
                let mut subscripts = vec![];
                while self.at(Kind::LeftBracket) {
                    subscripts.push(self.subscript()?);
                }
                steps.push(Step::Item(subscripts));
            } else {
                return Ok((column, steps));
            }
        }
    }

    /// The alias of a table that is changed. SET is none without AS.
    fn target_alias(&mut self) -> Result<Option<Ident>> {
        let bare = Self::is_column_name(self.token()) && !self.at_word(K::Set);
        if self.eat_word(K::As) || bare { self.ident().map(Some) } else { Ok(None) }
    }

    pub(super) fn update(&mut self, with: Option<With>) -> Result<Update> {
        let at = self.expect_word(K::Update)?;
        let (target, only) = self.relation()?;
        let alias = self.target_alias()?;
        self.expect_word(K::Set)?;
        let set = self.assignments(alias.as_ref().unwrap_or(target.last()))?;
        let from = if self.eat_word(K::From) { self.sources()? } else { vec![] };
        let filter = self.maybe_where_or_current()?;
        let returning = self.maybe_returning()?;
        Ok(Update { at, with, target, only, alias, set, from, filter, returning })
    }

    pub(super) fn delete(&mut self, with: Option<With>) -> Result<Delete> {
        let at = self.expect_word(K::Delete)?;
        self.expect_word(K::From)?;
        let (target, only) = self.relation()?;
        let alias = self.target_alias()?;
        let using = if self.eat_word(K::Using) { self.sources()? } else { vec![] };
        let filter = self.maybe_where_or_current()?;
        let returning = self.maybe_returning()?;
        Ok(Delete { at, with, target, only, alias, using, filter, returning })
    }

    /// MERGE, which Terrace has not.
    pub(super) fn merge(&mut self) -> Result<Refused> {
        let at = self.expect_word(K::Merge)?;
        self.expect_word(K::Into)?;
        self.relation()?;
        self.target_alias()?;
        self.expect_word(K::Using)?;
        self.source_item()?;
        self.expect_word(K::On)?;
        self.expr()?;
        loop {
            self.expect_word(K::When)?;
            let matched = !self.eat_word(K::Not);
            self.expect_word(K::Matched)?;
            if self.eat_word(K::And) {
                self.expr()?;
            }
            self.expect_word(K::Then)?;
            self.merge_action(matched)?;
            if !self.at_word(K::When) {
                break;
            }
        }
        let hint = "Use INSERT ... ON CONFLICT, or UPDATE and INSERT in one transaction.";
        self.refuse_with(at, "MERGE is not supported".to_owned(), Some(hint));
        Ok(self.refused.clone().expect("it was just refused"))
    }

    fn merge_action(&mut self, matched: bool) -> Result<()> {
        match self.token().keyword {
            Some(K::Update) if matched => {
                self.advance();
                self.expect_word(K::Set)?;
                // It is refused, whatever the table is called.
                let called = Ident { at: self.place(), name: String::new() };
                self.assignments(&called).map(drop)
            }
            Some(K::Insert) if !matched => {
                self.advance();
                if self.at(Kind::LeftParen) {
                    self.list_in_parens(Self::target)?;
                }
                if self.eat_word(K::Default) {
                    return self.expect_word(K::Values).map(drop);
                }
                self.overriding()?;
                self.expect_word(K::Values)?;
                self.list_in_parens(Self::expr).map(drop)
            }
            Some(K::Delete) if matched => self.expect_word(K::Delete).map(drop),
            Some(K::Do) => self.expect_words(&[K::Do, K::Nothing]),
            _ => Err(self.unexpected()),
        }
    }

    /// WHERE, `WHERE CURRENT OF cursor`, or nothing.
    fn maybe_where_or_current(&mut self) -> Result<Option<Expr>> {
        let current = self.ahead(1).keyword == Some(K::Current) && self.ahead(2).keyword == Some(K::Of);
        if !self.at_word(K::Where) || !current {
            return self.maybe_where();
        }
        let at = self.ahead(1).start;
        self.next += 3;
        Ok(Some(Expr { at, kind: ExprKind::CurrentOf(self.ident()?) }))
    }

    /// RETURNING, or nothing.
    fn maybe_returning(&mut self) -> Result<Vec<Item>> {
        if self.eat_word(K::Returning) { self.items() } else { Ok(vec![]) }
    }
}

/// `(a, b) = (SELECT x, y ...)`: each column gets a field of the row `(SELECT (x, y) ...)`, where that has the same
/// meaning.
fn parted(many: Assignment) -> Vec<Assignment> {
    let Assignment::Many { columns, value: Expr { at, kind: ExprKind::Scalar(query) }, .. } = &many else {
        return vec![many];
    };
    let Body::Select(select) = &query.body else { return vec![many] };
    let is_plain =
        |item: &Item| item.alias.is_none() && !matches!(item.expr.kind, ExprKind::Star(_) | ExprKind::AllFields(_));
    let mut keys = query.order.iter().map(|key| &key.expr);
    let numbered = keys.any(|key| matches!(key.kind, ExprKind::Literal(_)));
    let whole = select.items.len() == columns.len() && select.items.iter().all(is_plain);
    if !whole || numbered || select.distinct != Distinct::No || select.group.is_some() {
        return vec![many];
    }
    let (mut query, mut select) = (query.as_ref().clone(), select.as_ref().clone());
    let place = select.at;
    let fields = select.items.drain(..).map(|item| item.expr).collect();
    let row = Expr { at: place, kind: ExprKind::Row { fields, explicit: true } };
    select.items.push(Item { expr: row, alias: None });
    query.body = Body::Select(Box::new(select));
    let row = Expr { at: *at, kind: ExprKind::Scalar(Box::new(query)) };
    let field = |(number, column): (usize, &Ident)| {
        let field = Ident { at: *at, name: format!("f{}", number + 1) };
        let kind = ExprKind::Field { arg: Box::new(row.clone()), field };
        Assignment::One { column: column.clone(), value: Expr { at: *at, kind } }
    };
    columns.iter().enumerate().map(field).collect()
}

/// The column of which an assignment changes a part.
fn within(assignment: &Assignment) -> Option<&str> {
    match assignment {
        Assignment::One { column, value: Expr { kind: ExprKind::With { .. } | ExprKind::WithField { .. }, .. } } => {
            Some(&column.name)
        }
        _ => None,
    }
}
