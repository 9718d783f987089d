//! Calls of functions, aggregates and window functions.

use super::Parser;
use crate::error::{Result, SyntaxError};
use crate::keyword::Keyword as K;
use crate::lexer::Kind;
use crate::statement::{Argument, At, Call, Expr, ExprKind, Name, NullsOrder, Operator, Sort, TypeName};

impl Call {
    /// A call without anything in it.
    pub(crate) fn plain(name: Name) -> Call {
        Call {
            name,
            args: vec![],
            star: false,
            distinct: false,
            variadic: false,
            order: vec![],
            within: vec![],
            filter: None,
            over: None,
        }
    }

    /// A call of a function of `pg_catalog`.
    pub(crate) fn system(at: At, name: &str, args: Vec<Expr>) -> Call {
        let args = args.into_iter().map(|value| Argument { name: None, value }).collect();
        Call { args, ..Call::plain(Name::system(at, name)) }
    }

    /// Whether there is nothing but arguments without names.
    fn has_plain_args(&self) -> bool {
        !self.args.is_empty()
            && self.args.iter().all(|arg| arg.name.is_none())
            && !(self.distinct || self.variadic)
            && self.order.is_empty()
    }
}

impl Parser<'_> {
    /// A call, from its parenthesis on, with what may follow it.
    pub(super) fn call(&mut self, name: Name) -> Result<Expr> {
        let at = name.at();
        let (mut call, all) = self.application(name)?;
        // A type with a modifier before a constant.
        if self.at_string() && call.has_plain_args() && !all {
            let modifiers = call.args.into_iter().map(|arg| arg.value).collect();
            return self.constant_of(TypeName { modifiers, ..TypeName::plain(call.name) });
        }
        if self.eat_words(&[K::Within, K::Group]) {
            self.within_group(&mut call)?;
        }
        if self.at_word(K::Filter) && self.ahead(1).kind == Kind::LeftParen {
            self.advance();
            self.advance();
            self.expect_word(K::Where)?;
            call.filter = Some(self.expr()?);
            self.expect(Kind::RightParen)?;
        }
        if self.eat_word(K::Over) {
            call.over = Some(self.over()?);
        }
        Ok(Expr { at, kind: ExprKind::Call(Box::new(call)) })
    }

    /// `f(...)`, and whether ALL stands in it.
    pub(super) fn application(&mut self, name: Name) -> Result<(Call, bool)> {
        let mut call = Call::plain(name);
        self.expect(Kind::LeftParen)?;
        let all = self.arguments(&mut call)?;
        self.expect(Kind::RightParen)?;
        Ok((call, all))
    }

    fn arguments(&mut self, call: &mut Call) -> Result<bool> {
        match self.token().kind {
            Kind::RightParen => return Ok(false),
            Kind::Star => {
                self.advance();
                call.star = true;
                return Ok(false);
            }
            _ => {}
        }
        let all = self.eat_word(K::All);
        call.distinct = !all && self.eat_word(K::Distinct);
        let plain = !all && !call.distinct;
        loop {
            call.variadic = plain && self.eat_word(K::Variadic);
            let argument = self.argument()?;
            call.args.push(argument);
            if call.variadic || !self.eat(Kind::Comma) {
                break;
            }
        }
        call.order = self.maybe_order()?;
        Ok(all)
    }

    /// `a`, `name => a`.
    fn argument(&mut self) -> Result<Argument> {
        let named = matches!(self.ahead(1).kind, Kind::Arrow | Kind::ColonEqual);
        let name = match named && Self::is_function_name(self.token()) {
            true => {
                let name = self.function_ident()?;
                self.advance();
                Some(name)
            }
            false => None,
        };
        Ok(Argument { name, value: self.expr()? })
    }

    /// `(ORDER BY ...)` behind WITHIN GROUP.
    fn within_group(&mut self, call: &mut Call) -> Result<()> {
        let at = self.tokens[self.next - 2].start;
        self.expect(Kind::LeftParen)?;
        if !self.at_word(K::Order) {
            return Err(self.unexpected());
        }
        call.within = self.maybe_order()?;
        self.expect(Kind::RightParen)?;
        let wrong = match () {
            () if !call.order.is_empty() => "cannot use multiple ORDER BY clauses with WITHIN GROUP",
            () if call.distinct => "cannot use DISTINCT with WITHIN GROUP",
            () if call.variadic => "cannot use VARIADIC with WITHIN GROUP",
            () => return Ok(()),
        };
        Err(SyntaxError::new(wrong, at))
    }

    /// ORDER BY, or nothing.
    pub(super) fn maybe_order(&mut self) -> Result<Vec<Sort>> {
        if !self.eat_word(K::Order) {
            return Ok(vec![]);
        }
        self.expect_word(K::By)?;
        self.list(|parser| {
            let expr = parser.expr()?;
            let using = match parser.eat_word(K::Using) {
                true => Some(parser.any_operator()?),
                false => None,
            };
            let descending = using.is_none() && !parser.eat_word(K::Asc) && parser.eat_word(K::Desc);
            Ok(Sort { expr, descending, nulls: parser.nulls_order()?, using })
        })
    }

    /// An operator, or `OPERATOR(...)`.
    fn any_operator(&mut self) -> Result<Operator> {
        if self.at_word(K::Operator) {
            return self.named_operator();
        }
        if !Self::is_operator(self.token()) {
            return Err(self.unexpected());
        }
        let token = self.advance();
        Ok(self.operator_of(token))
    }

    /// NULLS FIRST, NULLS LAST, or nothing.
    pub(super) fn nulls_order(&mut self) -> Result<Option<NullsOrder>> {
        if !self.at_word(K::Nulls) {
            return Ok(None);
        }
        let order = match self.ahead(1).keyword {
            Some(K::First) => NullsOrder::First,
            Some(K::Last) => NullsOrder::Last,
            _ => return Ok(None),
        };
        self.next += 2;
        Ok(Some(order))
    }
}
