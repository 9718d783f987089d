//! Operands: constants, columns, parentheses, CASE, ARRAY, ROW.

use super::Parser;
use super::expr::{Allowed, Level};
use crate::error::{Result, SyntaxError};
use crate::keyword::{Category, Keyword as K};
use crate::lexer::{Kind, Token, decode, decode_unicode, joined};
use crate::statement::{Call, Expr, ExprKind, Ident, Literal, Name, Query, Subscript, TypeName, When};

/// What stands in a pair of parentheses.
pub(super) enum Parens {
    Query(Box<Query>),
    /// At least one.
    Exprs(Vec<Expr>),
}

impl Parser<'_> {
    /// An operand without operators.
    pub(super) fn primary(&mut self) -> Result<Expr> {
        let token = self.token();
        let at = token.start;
        match token.kind {
            Kind::Integer => {
                self.advance();
                let digits = self.text(token);
                let literal = digits.parse().map_or_else(|_| Literal::Number(digits.to_owned()), Literal::Int);
                Ok(Expr { at, kind: ExprKind::Literal(literal) })
            }
            Kind::Number => {
                self.advance();
                Ok(Expr { at, kind: ExprKind::Literal(Literal::Number(self.text(token).to_owned())) })
            }
            Kind::Text | Kind::EscapeText | Kind::DollarText | Kind::UnicodeText => {
                let text = self.string()?;
                Ok(Expr { at, kind: ExprKind::Literal(Literal::Text(text)) })
            }
            Kind::Bits | Kind::Hex => {
                self.advance();
                let digits = decode(self.sql, token.start as usize + 1, token.end as usize, false)?;
                let hex = token.kind == Kind::Hex;
                Ok(Expr { at, kind: ExprKind::Literal(Literal::Bits { digits, hex }) })
            }
            Kind::Parameter => {
                self.advance();
                // PostgreSQL refuses such a number later, because there is no such parameter.
                let number = self.text(token)[1..].parse().unwrap_or(u32::MAX);
                self.parameters = self.parameters.max(number);
                self.indirection(Expr { at, kind: ExprKind::Parameter(number) })
            }
            Kind::LeftParen => match self.parens(true)? {
                Parens::Query(query) => self.indirection(Expr { at, kind: ExprKind::Scalar(query) }),
                Parens::Exprs(list) => self.in_parens(at, list),
            },
            Kind::Word => self.word(token),
            Kind::Quoted | Kind::UnicodeQuoted => self.named(),
            _ => Err(self.unexpected()),
        }
    }

    /// Whether the next token is a string.
    pub(super) fn at_string(&self) -> bool {
        Self::is_string(self.token())
    }

    pub(super) fn is_string(token: Token) -> bool {
        matches!(token.kind, Kind::Text | Kind::EscapeText | Kind::DollarText | Kind::UnicodeText)
    }

    /// A string.
    pub(super) fn string(&mut self) -> Result<String> {
        if !self.at_string() {
            return Err(self.unexpected());
        }
        let token = self.advance();
        self.string_of(token)
    }

    /// What a string says whose token was consumed.
    pub(super) fn string_of(&mut self, token: Token) -> Result<String> {
        let (start, end) = (token.start as usize, token.end as usize);
        match token.kind {
            Kind::Text => decode(self.sql, start, end, false),
            Kind::EscapeText => {
                let marked = self.sql.as_bytes()[start] != b'\'';
                decode(self.sql, start + usize::from(marked), end, true)
            }
            Kind::DollarText => {
                let tag = self.text(token)[1..].find('$').expect("a dollar ends the tag") + 2;
                Ok(self.sql[start + tag..end - tag].to_owned())
            }
            _ => {
                let mark = self.unicode_mark()?;
                decode_unicode(&joined(self.sql, start + 2, end), start + 3, mark, '\'')
            }
        }
    }

    /// Whether a query begins here. A parenthesis may begin one too.
    pub(super) fn at_query(&self) -> bool {
        match self.token().keyword {
            Some(K::Select | K::With | K::Table) => true,
            // It may be a column's name.
            Some(K::Values) => self.ahead(1).kind == Kind::LeftParen,
            _ => false,
        }
    }

    /// `( ... )`: a query, or expressions; only one of those unless `many`.
    pub(super) fn parens(&mut self, many: bool) -> Result<Parens> {
        self.expect(Kind::LeftParen)?;
        let found = self.nested(|parser| parser.inside_parens(many))?;
        self.expect(Kind::RightParen)?;
        Ok(found)
    }

    fn inside_parens(&mut self, many: bool) -> Result<Parens> {
        if self.at_query() {
            let query = self.query()?;
            return Ok(Parens::Query(Box::new(query)));
        }
        let first = match self.at(Kind::LeftParen) {
            false => self.expr()?,
            true => {
                let at = self.place();
                let operand = match self.parens(true)? {
                    Parens::Query(query) if self.at(Kind::RightParen) => {
                        return Ok(Parens::Query(query));
                    }
                    Parens::Query(query) if self.query_goes_on() => {
                        let query = self.query_from(*query)?;
                        return Ok(Parens::Query(Box::new(query)));
                    }
                    Parens::Query(query) => self.indirection(Expr { at, kind: ExprKind::Scalar(query) })?,
                    Parens::Exprs(list) => self.in_parens(at, list)?,
                };
                self.continued(operand, Level::Or, Allowed::All)?
            }
        };
        let mut list = vec![first];
        while many && self.eat(Kind::Comma) {
            list.push(self.expr()?);
        }
        Ok(Parens::Exprs(list))
    }

    /// What a list in parentheses is: an expression, or a row.
    fn in_parens(&mut self, at: u32, mut list: Vec<Expr>) -> Result<Expr> {
        match list.len() {
            1 => self.indirection(list.remove(0)),
            _ => self.row(Expr { at, kind: ExprKind::Row { fields: list, explicit: false } }),
        }
    }

    /// A row, and OVERLAPS with another one.
    fn row(&mut self, row: Expr) -> Result<Expr> {
        if !self.at_word(K::Overlaps) {
            return Ok(row);
        }
        let word_at = self.advance().start;
        let right = match self.token() {
            token if token.kind == Kind::LeftParen || token.keyword == Some(K::Row) => {
                let right = self.primary()?;
                if !matches!(right.kind, ExprKind::Row { .. }) {
                    // Only a row may stand here, so the parenthesis came too early.
                    return Err(self.unexpected_at(self.next - 1));
                }
                right
            }
            _ => return Err(self.unexpected()),
        };
        let mut args = vec![];
        for (side, row) in [("left", row), ("right", right)] {
            let at = row.at;
            match row.kind {
                ExprKind::Row { fields, .. } if fields.len() == 2 => args.extend(fields),
                _ => {
                    let message = format!("wrong number of parameters on {side} side of OVERLAPS expression");
                    return Err(SyntaxError::new(message, at));
                }
            }
        }
        let call = Call::system(word_at, "overlaps", args);
        Ok(Expr { at: call.args[0].value.at, kind: ExprKind::Call(Box::new(call)) })
    }

    /// An operand that begins with a word.
    fn word(&mut self, token: Token) -> Result<Expr> {
        let at = token.start;
        let Some(keyword) = token.keyword else { return self.named() };
        let called = self.ahead(1).kind == Kind::LeftParen;
        let literal = |parser: &mut Self, literal| {
            parser.advance();
            Ok(Expr { at, kind: ExprKind::Literal(literal) })
        };
        match keyword {
            K::Null => literal(self, Literal::Null),
            K::True => literal(self, Literal::Bool(true)),
            K::False => literal(self, Literal::Bool(false)),
            K::Case => self.case(),
            K::Array => self.array(),
            K::Exists if called => {
                self.advance();
                Ok(Expr { at, kind: ExprKind::Exists(Box::new(self.query_in_parens()?)) })
            }
            K::Row if called => {
                self.advance();
                let fields = self.maybe_exprs_in_parens()?;
                self.row(Expr { at, kind: ExprKind::Row { fields, explicit: true } })
            }
            K::Grouping if called => {
                self.advance();
                let exprs = self.list_in_parens(Self::expr)?;
                Ok(Expr { at, kind: ExprKind::Grouping(exprs) })
            }
            K::Unique => {
                self.advance();
                self.query_in_parens()?;
                let message = "UNIQUE predicate is not yet implemented";
                Err(SyntaxError::with_state("0A000", message, at))
            }
            _ => match self.special(token, keyword)? {
                Some(special) => Ok(special),
                None if self.at_constant_type() => self.typed_constant(),
                None if keyword.category() == Category::Reserved => Err(self.unexpected()),
                None => self.named(),
            },
        }
    }

    /// `(a, b)`, `()`.
    pub(super) fn maybe_exprs_in_parens(&mut self) -> Result<Vec<Expr>> {
        self.expect(Kind::LeftParen)?;
        let exprs = if self.at(Kind::RightParen) { vec![] } else { self.exprs()? };
        self.expect(Kind::RightParen)?;
        Ok(exprs)
    }

    /// A column, a call, or a constant of a named type.
    fn named(&mut self) -> Result<Expr> {
        let token = self.advance();
        let function = Self::is_function_name(token);
        let first = self.ident_of(token)?;
        let at = first.at;
        let mut parts = vec![first];
        if Self::is_column_name(token) {
            while self.at(Kind::Dot) {
                if self.ahead(1).kind == Kind::Star {
                    self.next += 2;
                    return self.after_star(at, Name::new(parts));
                }
                self.advance();
                parts.push(self.label()?);
            }
        } else if !self.at(Kind::LeftParen) && !self.at_string() {
            return Err(self.unexpected());
        }
        let name = Name::new(parts);
        let callable = function || name.parts().len() > 1;
        if callable && self.at(Kind::LeftParen) {
            return self.call(name);
        }
        if callable && self.at_string() {
            return self.constant_of(TypeName::plain(name));
        }
        self.indirection(Expr { at, kind: ExprKind::Column(name) })
    }

    fn after_star(&mut self, at: u32, name: Name) -> Result<Expr> {
        let star = Expr { at, kind: ExprKind::Default };
        if matches!(self.token().kind, Kind::Dot | Kind::LeftBracket) {
            self.indirection(star)?;
            return Err(SyntaxError::near("improper use of \"*\"", self.text(self.token()), self.place()));
        }
        Ok(Expr { at, kind: ExprKind::Star(Some(name)) })
    }

    /// A string that is a constant of a type.
    pub(super) fn constant_of(&mut self, to: TypeName) -> Result<Expr> {
        let at = to.at;
        let string_at = self.place();
        let text = Literal::Text(self.string()?);
        let arg = Box::new(Expr { at: string_at, kind: ExprKind::Literal(text) });
        Ok(Expr { at, kind: ExprKind::Cast { arg, to: Box::new(to), word_at: at } })
    }

    /// Fields and subscripts behind an operand.
    pub(super) fn indirection(&mut self, mut expr: Expr) -> Result<Expr> {
        let mut continues = false;
        loop {
            let at = expr.at;
            let arg = Box::new(expr);
            let kind = match self.token().kind {
                Kind::Dot if self.ahead(1).kind == Kind::Star => {
                    self.next += 2;
                    ExprKind::AllFields(arg)
                }
                Kind::Dot => {
                    self.advance();
                    ExprKind::Field { arg, field: self.label()? }
                }
                Kind::LeftBracket => ExprKind::Subscript { arg, subscript: self.subscript()?, continues },
                _ => return Ok(*arg),
            };
            continues = matches!(kind, ExprKind::Subscript { .. });
            self.higher()?;
            expr = Expr { at, kind };
        }
    }

    /// `[a]`, `[a:b]`.
    pub(super) fn subscript(&mut self) -> Result<Subscript> {
        self.expect(Kind::LeftBracket)?;
        let low = match self.at(Kind::Colon) {
            true => None,
            false => Some(Box::new(self.expr()?)),
        };
        let subscript = match (self.eat(Kind::Colon), low) {
            (false, Some(index)) => Subscript::Index(index),
            (_, low) => {
                let high = match self.at(Kind::RightBracket) {
                    true => None,
                    false => Some(Box::new(self.expr()?)),
                };
                Subscript::Slice(low, high)
            }
        };
        self.expect(Kind::RightBracket)?;
        Ok(subscript)
    }

    fn case(&mut self) -> Result<Expr> {
        let at = self.expect_word(K::Case)?;
        let operand = match self.at_word(K::When) {
            true => None,
            false => Some(Box::new(self.expr()?)),
        };
        let mut whens = vec![];
        while self.at_word(K::When) || whens.is_empty() {
            self.expect_word(K::When)?;
            let condition = self.expr()?;
            self.expect_word(K::Then)?;
            whens.push(When { condition, result: self.expr()? });
        }
        let otherwise = match self.eat_word(K::Else) {
            true => Some(Box::new(self.expr()?)),
            false => None,
        };
        self.expect_word(K::End)?;
        Ok(Expr { at, kind: ExprKind::Case { operand, whens, otherwise } })
    }

    fn array(&mut self) -> Result<Expr> {
        let at = self.expect_word(K::Array)?;
        if self.at(Kind::LeftParen) {
            let query = Box::new(self.query_in_parens()?);
            return Ok(Expr { at, kind: ExprKind::ArrayQuery(query) });
        }
        let elements = self.array_elements()?;
        Ok(Expr { at, kind: ExprKind::Array(elements) })
    }

    /// `[a, b]`, or `[[a], [b]]`.
    fn array_elements(&mut self) -> Result<Vec<Expr>> {
        self.expect(Kind::LeftBracket)?;
        let elements = match self.token().kind {
            Kind::RightBracket => vec![],
            Kind::LeftBracket => self.list(|parser| {
                let at = parser.place();
                let elements = parser.nested(Self::array_elements)?;
                Ok(Expr { at, kind: ExprKind::Array(elements) })
            })?,
            _ => self.exprs()?,
        };
        self.expect(Kind::RightBracket)?;
        Ok(elements)
    }

    /// The name of a column or a field that is assigned to: only whole columns can be.
    pub(super) fn target(&mut self) -> Result<Ident> {
        let column = self.ident()?;
        let at = self.place();
        if self.at(Kind::Dot) || self.at(Kind::LeftBracket) {
            self.indirection(Expr { at, kind: ExprKind::Default })?;
            self.refuse(at, "assignment to a part of a column");
        }
        Ok(column)
    }
}
