//! Functions that have a grammar of their own.
//!
//! That of XML is not known here: it is refused where it begins (0A000).

use super::Parser;
use crate::error::{Result, SyntaxError};
use crate::keyword::Keyword as K;
use crate::lexer::{Kind, Token};
use crate::statement::{At, Call, Expr, ExprKind, Literal, SpecialFunction as F};

impl Parser<'_> {
    /// What a keyword and the parenthesis behind it call. None: it is a name.
    pub(super) fn special(&mut self, token: Token, keyword: K) -> Result<Option<Expr>> {
        let at = token.start;
        let called = self.ahead(1).kind == Kind::LeftParen;
        let function = match keyword {
            K::CurrentDate => F::CurrentDate,
            K::CurrentTime => F::CurrentTime,
            K::CurrentTimestamp => F::CurrentTimestamp,
            K::Localtime => F::LocalTime,
            K::Localtimestamp => F::LocalTimestamp,
            K::CurrentUser => F::CurrentUser,
            K::CurrentRole => F::CurrentRole,
            K::SessionUser => F::SessionUser,
            K::User => F::User,
            K::CurrentCatalog => F::CurrentCatalog,
            K::CurrentSchema if !called => F::CurrentSchema,
            K::Coalesce if called => F::Coalesce,
            K::Greatest if called => F::Greatest,
            K::Least if called => F::Least,
            K::Nullif if called => F::NullIf,
            K::Cast => return self.cast().map(Some),
            K::Collation if self.ahead(1).keyword == Some(K::For) => return self.collation_for().map(Some),
            K::Extract | K::Overlay | K::Position | K::Substring | K::Trim | K::Normalize | K::Treat if called => {
                self.advance();
                self.expect(Kind::LeftParen)?;
                let expr = self.worded(keyword, at)?;
                self.expect(Kind::RightParen)?;
                return Ok(Some(expr));
            }
            K::Xmlconcat
            | K::Xmlelement
            | K::Xmlexists
            | K::Xmlforest
            | K::Xmlparse
            | K::Xmlpi
            | K::Xmlroot
            | K::Xmlserialize
            | K::Xmltable
                if called =>
            {
                return Err(SyntaxError::with_state("0A000", "XML is not supported", at));
            }
            _ => return Ok(None),
        };
        self.advance();
        let args = match function {
            F::Coalesce | F::Greatest | F::Least => self.list_in_parens(Self::expr)?,
            F::NullIf => {
                self.expect(Kind::LeftParen)?;
                let first = self.expr()?;
                self.expect(Kind::Comma)?;
                let second = self.expr()?;
                self.expect(Kind::RightParen)?;
                vec![first, second]
            }
            F::CurrentTime | F::CurrentTimestamp | F::LocalTime | F::LocalTimestamp if self.at(Kind::LeftParen) => {
                self.advance();
                let place = self.place();
                let precision = Literal::Int(self.small_integer()?.into());
                self.expect(Kind::RightParen)?;
                vec![Expr { at: place, kind: ExprKind::Literal(precision) }]
            }
            _ => vec![],
        };
        Ok(Some(Expr { at, kind: ExprKind::Special { function, args } }))
    }

    /// `CAST(a AS t)`.
    fn cast(&mut self) -> Result<Expr> {
        let at = self.expect_word(K::Cast)?;
        self.expect(Kind::LeftParen)?;
        let arg = Box::new(self.expr()?);
        self.expect_word(K::As)?;
        let to = Box::new(self.type_name()?);
        self.expect(Kind::RightParen)?;
        Ok(Expr { at, kind: ExprKind::Cast { arg, to, word_at: at } })
    }

    /// `COLLATION FOR (a)`.
    fn collation_for(&mut self) -> Result<Expr> {
        let at = self.expect_word(K::Collation)?;
        self.expect_word(K::For)?;
        self.expect(Kind::LeftParen)?;
        let arg = self.expr()?;
        self.expect(Kind::RightParen)?;
        Ok(called(at, "pg_collation_for", vec![arg]))
    }

    /// What stands in the parentheses of a function whose arguments words divide.
    fn worded(&mut self, keyword: K, at: At) -> Result<Expr> {
        match keyword {
            K::Extract => self.extract(at),
            K::Overlay => self.overlay(at),
            K::Position => {
                // The IN is no operator here.
                let needle = self.simple_expr()?;
                self.expect_word(K::In)?;
                let hay = self.simple_expr()?;
                Ok(called(at, "position", vec![hay, needle]))
            }
            K::Substring => self.substring(at),
            K::Trim => self.trim(at),
            K::Normalize => {
                let mut args = vec![self.expr()?];
                if self.eat(Kind::Comma) {
                    if !self.at_any(&[K::Nfc, K::Nfd, K::Nfkc, K::Nfkd]) {
                        return Err(self.unexpected());
                    }
                    let form = self.advance();
                    let text = Literal::Text(self.text(form).to_ascii_uppercase());
                    args.push(Expr { at: form.start, kind: ExprKind::Literal(text) });
                }
                Ok(called(at, "normalize", args))
            }
            _ => {
                let arg = self.expr()?;
                self.expect_word(K::As)?;
                // PostgreSQL calls the function that has the type's name.
                let name = self.type_name()?.name.last().name.clone();
                Ok(called(at, &name, vec![arg]))
            }
        }
    }

    fn extract(&mut self, at: At) -> Result<Expr> {
        let token = self.token();
        let field = match () {
            () if self.at_string() => self.string()?,
            () if token.kind != Kind::Word => {
                if !Self::is_label(token) {
                    return Err(self.unexpected());
                }
                self.label()?.name
            }
            () => match token.keyword {
                None | Some(K::Year | K::Month | K::Day | K::Hour | K::Minute | K::Second) => self.label()?.name,
                Some(_) => return Err(self.unexpected()),
            },
        };
        self.expect_word(K::From)?;
        let field = Expr { at: token.start, kind: ExprKind::Literal(Literal::Text(field)) };
        let from = self.expr()?;
        Ok(called(at, "extract", vec![field, from]))
    }

    fn overlay(&mut self, at: At) -> Result<Expr> {
        let mut args = self.maybe_exprs()?;
        if args.len() == 1 && self.eat_word(K::Placing) {
            args.push(self.expr()?);
            self.expect_word(K::From)?;
            args.push(self.expr()?);
            if self.eat_word(K::For) {
                args.push(self.expr()?);
            }
        }
        Ok(called(at, "overlay", args))
    }

    /// Expressions before a closing parenthesis, or none.
    fn maybe_exprs(&mut self) -> Result<Vec<Expr>> {
        if self.at(Kind::RightParen) { Ok(vec![]) } else { self.exprs() }
    }

    fn substring(&mut self, at: At) -> Result<Expr> {
        let before = self.substring.replace(self.depth + 1);
        let mut args = self.maybe_exprs()?;
        self.substring = before;
        match self.token().keyword {
            _ if args.len() != 1 => {}
            Some(K::From) => {
                self.advance();
                args.push(self.expr()?);
                if self.eat_word(K::For) {
                    args.push(self.expr()?);
                }
            }
            Some(K::For) => {
                self.advance();
                let length = self.expr()?;
                let from = match self.eat_word(K::From) {
                    true => self.expr()?,
                    false => Expr { at: length.at, kind: ExprKind::Literal(Literal::Int(1)) },
                };
                args.extend([from, length]);
            }
            Some(K::Similar) => {
                self.advance();
                args.push(self.expr()?);
                self.expect_word(K::Escape)?;
                args.push(self.expr()?);
            }
            _ => {}
        }
        Ok(called(at, "substring", args))
    }

    fn trim(&mut self, at: At) -> Result<Expr> {
        let name = match self.token().keyword {
            Some(K::Both) => "btrim",
            Some(K::Leading) => "ltrim",
            Some(K::Trailing) => "rtrim",
            _ => "",
        };
        if !name.is_empty() {
            self.advance();
        }
        let name = if name.is_empty() { "btrim" } else { name };
        if self.eat_word(K::From) {
            return Ok(called(at, name, self.exprs()?));
        }
        let first = self.expr()?;
        let mut args;
        if self.eat_word(K::From) {
            args = self.exprs()?;
            args.push(first);
        } else {
            args = vec![first];
            while self.eat(Kind::Comma) {
                args.push(self.expr()?);
            }
        }
        Ok(called(at, name, args))
    }
}

fn called(at: At, name: &str, args: Vec<Expr>) -> Expr {
    Expr { at, kind: ExprKind::Call(Box::new(Call::system(at, name, args))) }
}
