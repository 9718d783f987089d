//! INSERT, UPDATE, DELETE.

use super::Parser;
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::Kind;
use crate::statement::{
    Assignment, At, Body, Conflict, ConflictAction, ConflictTarget, Delete, Distinct, Expr, ExprKind, Ident,
    IndexElement, Insert, Item, Name, Overriding, Query, Refused, Subscript, Update, With, Written,
};
use std::ops::Range;

/// Columns that are assigned to, and which parts of them.
type Targets = (Vec<Ident>, Vec<Vec<Subscript>>);

/// What an INSERT gives a value to.
struct InsertTarget {
    column: Ident,
    subscripts: Vec<Subscript>,
    field: Option<Ident>,
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
        let (mut targets, at) = (vec![], self.place());
        if self.at(Kind::LeftParen) && !self.query_in_parens_follows() {
            targets = self.list_in_parens(Self::insert_target)?;
        }
        let overriding = self.overriding()?;
        if !self.at_any(&[K::Select, K::Values, K::With, K::Table]) && !self.at(Kind::LeftParen) {
            return Err(self.unexpected());
        }
        let (mut query, stands) = self.placed(Self::query)?;
        *place = stands;
        if targets.iter().all(|target| target.field.is_none()) {
            let columns = targets.into_iter().map(|target| (target.column, target.subscripts)).unzip();
            return Ok((columns, overriding, Some(query)));
        }
        if targets.iter().any(|target| !target.subscripts.is_empty()) {
            self.refuse(at, "INSERT of fields of columns beside items of others");
        }
        let targets: Vec<(Ident, Option<Ident>)> =
            targets.into_iter().map(|target| (target.column, target.field)).collect();
        let columns: Vec<Ident> = match &mut query.body {
            Body::Values(rows) if rows.iter().all(|row| row.len() == targets.len()) => {
                let mut columns = vec![];
                for row in rows {
                    (columns, *row) = with_fields(&targets, std::mem::take(row));
                }
                columns
            }
            _ => {
                self.refuse(at, "INSERT of parts of columns, from a query or of other numbers of values");
                vec![]
            }
        };
        let parts = columns.iter().map(|_| vec![]).collect();
        Ok(((columns, parts), overriding, Some(query)))
    }

    /// A column, and the part or the field of it that is meant.
    fn insert_target(&mut self) -> Result<InsertTarget> {
        if self.ahead(1).kind != Kind::Dot {
            let (column, subscripts) = self.target_or_part()?;
            return Ok(InsertTarget { column, subscripts, field: None });
        }
        let column = self.ident()?;
        self.expect(Kind::Dot)?;
        let (field, at) = (self.label()?, self.place());
        if self.at(Kind::Dot) || self.at(Kind::LeftBracket) {
            self.indirection(Expr { at, kind: ExprKind::Default })?;
            self.refuse(at, "assignment to a part of a part");
        }
        Ok(InsertTarget { column, subscripts: vec![], field: Some(field) })
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
        let mut all = self
            .list(|parser| {
                let at = parser.place();
                if parser.at(Kind::LeftParen) {
                    let columns = parser.list_in_parens(Self::target)?;
                    parser.expect(Kind::Equal)?;
                    return Ok(parted(Assignment::Many { at, columns, value: parser.expr()? }));
                }
                if let (Kind::LeftBracket | Kind::Dot, column) = (parser.ahead(1).kind, parser.token())
                    && Self::is_column_name(column)
                {
                    return Ok(vec![parser.assignment_within(called)?]);
                }
                let column = parser.target()?;
                parser.expect(Kind::Equal)?;
                Ok(vec![Assignment::One { column, value: parser.expr()? }])
            })?
            .concat();
        // `a[1] = x, a[2] = y`: the second one goes on from what the first one makes.
        for later in (1..all.len()).rev() {
            let (before, behind) = all.split_at_mut(later);
            let earlier = before.iter().rposition(|one| within(one).is_some() && within(one) == within(&behind[0]));
            if let Some(earlier) = earlier
                && let Assignment::One { value: made, .. } = all.remove(earlier)
                && let Assignment::One { value, .. } = &mut all[later - 1]
            {
                start_from(value, made);
            }
        }
        Ok(all)
    }

    /// A column, or a part of it: `a[1]`, `a['b'][2]`.
    fn target_or_part(&mut self) -> Result<(Ident, Vec<Subscript>)> {
        if self.ahead(1).kind != Kind::LeftBracket {
            return Ok((self.target()?, vec![]));
        }
        let column = self.ident()?;
        let mut subscripts = vec![];
        while self.at(Kind::LeftBracket) {
            subscripts.push(self.subscript()?);
        }
        let at = self.place();
        if self.at(Kind::Dot) {
            self.indirection(Expr { at, kind: ExprKind::Default })?;
            self.refuse(at, "assignment to a part of a part");
        }
        Ok((column, subscripts))
    }

    /// `a[1] = x`, `a['b'][2] = x`, `a.b = x`.
    fn assignment_within(&mut self, called: &Ident) -> Result<Assignment> {
        if self.ahead(1).kind == Kind::Dot {
            let column = self.ident()?;
            self.expect(Kind::Dot)?;
            return self.assignment_of_field(called, column);
        }
        let (column, subscripts) = self.target_or_part()?;
        self.expect(Kind::Equal)?;
        let whole = Name::new(vec![called.clone(), column.clone()]);
        let arg = Box::new(Expr { at: column.at, kind: ExprKind::Column(whole) });
        let value = Box::new(self.expr()?);
        let at = value.at;
        let kind = ExprKind::With { column: column.clone(), arg, subscripts, value };
        Ok(Assignment::One { value: Expr { at, kind }, column })
    }

    /// What follows `a.`: `b = x`, `b.c = x`.
    fn assignment_of_field(&mut self, called: &Ident, column: Ident) -> Result<Assignment> {
        let whole = Name::new(vec![called.clone(), column.clone()]);
        let mut arg = Expr { at: column.at, kind: ExprKind::Column(whole) };
        let mut fields = vec![];
        loop {
            let field = self.label()?;
            fields.push((arg.clone(), field.clone()));
            if !self.eat(Kind::Dot) {
                break;
            }
            arg = Expr { at: arg.at, kind: ExprKind::Field { arg: Box::new(arg), field } };
        }
        let at = self.place();
        if self.at(Kind::LeftBracket) {
            self.indirection(Expr { at, kind: ExprKind::Default })?;
            self.refuse(at, "assignment to a part of a part");
        }
        self.expect(Kind::Equal)?;
        let mut value = self.expr()?;
        // What becomes of the innermost row, of the row around it, and so on.
        for (arg, field) in fields.into_iter().rev() {
            let kind = ExprKind::WithField { arg: Box::new(arg), field, value: Box::new(value) };
            value = Expr { at: column.at, kind };
        }
        Ok(Assignment::One { column, value })
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

/// The columns of an INSERT that names fields of them, and a row of values for the columns: fields of one column become
/// one value, which begins with a row of NULLs.
fn with_fields(targets: &[(Ident, Option<Ident>)], row: Vec<Expr>) -> (Vec<Ident>, Vec<Expr>) {
    let (mut columns, mut values): (Vec<Ident>, Vec<Expr>) = (vec![], vec![]);
    for ((column, field), value) in targets.iter().zip(row) {
        let Some(field) = field else {
            columns.push(column.clone());
            values.push(value);
            continue;
        };
        let is_part = |(known, value): &(&Ident, &Expr)| {
            known.name == column.name && matches!(value.kind, ExprKind::WithField { .. })
        };
        let before = columns.iter().zip(&values).position(|pair| is_part(&pair));
        let nothing = Expr { at: column.at, kind: ExprKind::Default };
        let arg = Box::new(before.map_or(nothing, |at| values[at].clone()));
        let made =
            Expr { at: column.at, kind: ExprKind::WithField { arg, field: field.clone(), value: Box::new(value) } };
        match before {
            Some(at) => values[at] = made,
            None => {
                columns.push(column.clone());
                values.push(made);
            }
        }
    }
    (columns, values)
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

/// Puts what has been made so far in the place of the column whose part is assigned to.
fn start_from(value: &mut Expr, made: Expr) {
    match &mut value.kind {
        ExprKind::WithField { arg, value, .. } => {
            if let ExprKind::WithField { .. } = value.kind {
                start_from(value, made.clone());
            }
            start_from(arg, made);
        }
        ExprKind::With { arg, .. } | ExprKind::Field { arg, .. } => start_from(arg, made),
        _ => *value = made,
    }
}
