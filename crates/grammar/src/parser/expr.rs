//! Operators and their precedence.
//!
//! Invariants:
//! 1. The levels are those of PostgreSQL's documentation ("Operator Precedence"). Operators of [`Level::Is`],
//!    [`Level::Comparison`] and [`Level::Pattern`] do not associate: `a < b < c` is an error at the second one.
//! 2. AND and OR are flat.

use super::Parser;
use super::primary::Parens;
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::{Kind, Token};
use crate::statement::{At, Call, Expr, ExprKind, Ident, Literal, Match, Members, Operator, Quantifier, Test};

/// How tight operators bind, the loosest first.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) enum Level {
    Or,
    And,
    Not,
    Is,
    Comparison,
    Pattern,
    Escape,
    /// Every operator that has no level of its own.
    Operator,
    Add,
    Multiply,
    Power,
    AtTimeZone,
    Collate,
    Sign,
    Cast,
}

impl Level {
    /// What binds tighter than this.
    fn above(self) -> Level {
        match self {
            Level::Or => Level::And,
            Level::And => Level::Not,
            Level::Not => Level::Is,
            Level::Is => Level::Comparison,
            Level::Comparison => Level::Pattern,
            Level::Pattern => Level::Escape,
            Level::Escape => Level::Operator,
            Level::Operator => Level::Add,
            Level::Add => Level::Multiply,
            Level::Multiply => Level::Power,
            Level::Power => Level::AtTimeZone,
            Level::AtTimeZone => Level::Collate,
            Level::Collate => Level::Sign,
            Level::Sign | Level::Cast => Level::Cast,
        }
    }

    fn associates(self) -> bool {
        !matches!(self, Level::Is | Level::Comparison | Level::Pattern)
    }
}

/// Which operators an expression may have.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Allowed {
    All,
    /// No AND, OR, NOT, IS NULL, IN, LIKE, BETWEEN, COLLATE or AT TIME ZONE: what BETWEEN has before its AND, and what
    /// a column's DEFAULT has.
    Few,
}

/// Whether the operator before may be followed by another one of its level.
#[derive(PartialEq)]
enum Ended {
    /// It ends with an operand, so one of the same level that does not associate is an error.
    ByOperand,
    /// It ends with a word of its own or a parenthesis.
    Closed,
}

impl Parser<'_> {
    /// An expression.
    pub(super) fn expr(&mut self) -> Result<Expr> {
        self.operand(Level::Or, Allowed::All)
    }

    /// An expression without logical operators ([`Allowed::Few`]).
    pub(super) fn simple_expr(&mut self) -> Result<Expr> {
        self.operand(Level::Or, Allowed::Few)
    }

    pub(super) fn exprs(&mut self) -> Result<Vec<Expr>> {
        self.list(Self::expr)
    }

    /// An expression of operators of a level and above.
    pub(super) fn operand(&mut self, least: Level, allowed: Allowed) -> Result<Expr> {
        self.nested(|parser| {
            let first = parser.prefixed(allowed)?;
            parser.continued(first, least, allowed)
        })
    }

    /// An operand with the operators before it.
    fn prefixed(&mut self, allowed: Allowed) -> Result<Expr> {
        let token = self.token();
        let at = token.start;
        match token.kind {
            Kind::Minus | Kind::Plus => {
                self.advance();
                let op = self.operator_of(token);
                let arg = self.operand(Level::Sign.above(), allowed)?;
                Ok(signed(op, arg))
            }
            Kind::Operator => {
                self.advance();
                let op = self.operator_of(token);
                self.unary(op, allowed)
            }
            Kind::Word => match token.keyword {
                Some(K::Not) if allowed == Allowed::All => {
                    self.advance();
                    let arg = Box::new(self.operand(Level::Not, allowed)?);
                    Ok(Expr { at, kind: ExprKind::Not(arg) })
                }
                Some(K::Operator) if self.ahead(1).kind == Kind::LeftParen => {
                    let op = self.named_operator()?;
                    self.unary(op, allowed)
                }
                Some(K::Default) if allowed == Allowed::All => {
                    self.advance();
                    Ok(Expr { at, kind: ExprKind::Default })
                }
                _ => self.primary(),
            },
            _ => self.primary(),
        }
    }

    fn unary(&mut self, op: Operator, allowed: Allowed) -> Result<Expr> {
        let at = op.at;
        let arg = Box::new(self.operand(Level::Operator.above(), allowed)?);
        Ok(Expr { at, kind: ExprKind::Unary { op, arg } })
    }

    /// An expression that begins with an operand.
    pub(super) fn continued(&mut self, mut left: Expr, least: Level, allowed: Allowed) -> Result<Expr> {
        let mut last: Option<Level> = None;
        loop {
            let token = self.token();
            let Some(level) = self.level_of(token, allowed) else { return Ok(left) };
            if level < least {
                return Ok(left);
            }
            if last == Some(level) && !level.associates() {
                return Err(self.unexpected());
            }
            self.higher()?;
            let (expr, ended) = self.operation(left, token, level, allowed)?;
            left = expr;
            last = (ended == Ended::ByOperand).then_some(level);
        }
    }

    /// The level of the operator that a token begins.
    fn level_of(&self, token: Token, allowed: Allowed) -> Option<Level> {
        let all = allowed == Allowed::All;
        let level = match token.kind {
            Kind::Less | Kind::Greater | Kind::Equal | Kind::LessEqual | Kind::GreaterEqual | Kind::NotEqual => {
                Level::Comparison
            }
            Kind::Operator => Level::Operator,
            Kind::Plus | Kind::Minus => Level::Add,
            Kind::Star | Kind::Slash | Kind::Percent => Level::Multiply,
            Kind::Caret => Level::Power,
            Kind::Typecast => Level::Cast,
            Kind::Word => match token.keyword? {
                K::Operator if self.ahead(1).kind == Kind::LeftParen => Level::Operator,
                K::Is => Level::Is,
                K::Or if all => Level::Or,
                K::And if all => Level::And,
                K::Isnull | K::Notnull if all => Level::Is,
                // SUBSTRING has a SIMILAR of its own.
                K::Similar if self.substring == Some(self.depth) && self.ahead(1).keyword != Some(K::To) => {
                    return None;
                }
                K::Between | K::In | K::Like | K::Ilike | K::Similar if all => Level::Pattern,
                K::Not if all && self.is_negated_pattern() => Level::Pattern,
                K::At if all && self.ahead(1).keyword == Some(K::Time) => Level::AtTimeZone,
                K::Collate if all => Level::Collate,
                _ => return None,
            },
            _ => return None,
        };
        // A keyword before the end of an item is the item's title: `SELECT 1 is, 2 and FROM t`. ISNULL is none.
        let whole = matches!(token.keyword, Some(K::Isnull | K::Notnull));
        (token.kind != Kind::Word || whole || !self.ends_item(self.ahead(1))).then_some(level)
    }

    /// NOT before BETWEEN, IN, LIKE...
    fn is_negated_pattern(&self) -> bool {
        matches!(self.ahead(1).keyword, Some(K::Between | K::In | K::Like | K::Ilike | K::Similar))
    }

    /// Whether the expression here is an item of SELECT, and no part of one.
    fn in_items(&self) -> bool {
        self.items == Some(self.depth)
    }

    /// Whether a token ends an item of a list and can begin no operand.
    fn ends_item(&self, token: Token) -> bool {
        match token.kind {
            Kind::Comma | Kind::RightParen | Kind::Semicolon | Kind::End => self.in_items(),
            Kind::Word => {
                matches!(token.keyword, Some(K::From | K::Into | K::Where | K::Group | K::Having | K::Union | K::Order))
                    && self.in_items()
            }
            _ => false,
        }
    }

    /// The operator at a token, with the operand before it.
    fn operation(&mut self, left: Expr, token: Token, level: Level, allowed: Allowed) -> Result<(Expr, Ended)> {
        let at = left.at;
        let word_at = token.start;
        if token.kind == Kind::Typecast {
            self.advance();
            let to = Box::new(self.type_name()?);
            return Ok((Expr { at, kind: ExprKind::Cast { arg: Box::new(left), to, word_at } }, Ended::Closed));
        }
        let Some(keyword) = token.keyword else {
            self.advance();
            let op = self.operator_of(token);
            return self.binary(left, op, level, allowed);
        };
        match keyword {
            K::Operator => {
                let op = self.named_operator()?;
                self.binary(left, op, level, allowed)
            }
            K::And | K::Or => self.chain(left, keyword, level),
            K::Is => self.is(left, allowed),
            K::Isnull | K::Notnull => {
                self.advance();
                let negated = keyword == K::Notnull;
                Ok((is_test(left, Test::Null, negated), Ended::Closed))
            }
            K::At => {
                self.advance();
                self.expect_words(&[K::Time, K::Zone])?;
                let zone = self.operand(level.above(), allowed)?;
                let args = Box::new([left, zone]);
                Ok((Expr { at, kind: ExprKind::AtTimeZone { args, word_at } }, Ended::ByOperand))
            }
            K::Collate => {
                self.advance();
                let collation = self.any_name()?;
                let arg = Box::new(left);
                Ok((Expr { at, kind: ExprKind::Collate { arg, collation, word_at } }, Ended::Closed))
            }
            _ => self.pattern(left),
        }
    }

    /// `a AND b AND c`, from the first AND on.
    fn chain(&mut self, left: Expr, keyword: K, level: Level) -> Result<(Expr, Ended)> {
        let at = left.at;
        let mut all = vec![left];
        while self.at_word(keyword) && !self.ends_item(self.ahead(1)) {
            self.advance();
            all.push(self.operand(level.above(), Allowed::All)?);
        }
        let kind = if keyword == K::And { ExprKind::And(all) } else { ExprKind::Or(all) };
        Ok((Expr { at, kind }, Ended::ByOperand))
    }

    /// What follows an operator: an operand, or `ANY (...)`.
    fn binary(&mut self, left: Expr, op: Operator, level: Level, allowed: Allowed) -> Result<(Expr, Ended)> {
        if allowed == Allowed::All && self.at_any(&[K::Any, K::Some, K::All]) {
            return Ok((self.quantified(left, op)?, Ended::Closed));
        }
        let at = left.at;
        let right = self.operand(level.above(), allowed)?;
        Ok((Expr { at, kind: ExprKind::Binary { op, args: Box::new([left, right]) } }, Ended::ByOperand))
    }

    /// `ANY (...)` behind its operator.
    fn quantified(&mut self, left: Expr, op: Operator) -> Result<Expr> {
        let quantifier = if self.advance().keyword == Some(K::All) { Quantifier::All } else { Quantifier::Any };
        let right = match self.parens(false)? {
            Parens::Query(query) => Members::Query(query),
            Parens::Exprs(mut list) => Members::Array(Box::new(list.remove(0))),
        };
        Ok(Expr { at: left.at, kind: ExprKind::Quantified { op, quantifier, left: Box::new(left), right } })
    }

    /// IS and what follows it.
    fn is(&mut self, left: Expr, allowed: Allowed) -> Result<(Expr, Ended)> {
        let at = left.at;
        let word_at = self.advance().start;
        let negated = self.eat_word(K::Not);
        let token = self.token();
        if token.keyword == Some(K::Distinct) {
            self.advance();
            self.expect_word(K::From)?;
            let right = self.operand(Level::Is.above(), allowed)?;
            let args = Box::new([left, right]);
            return Ok((Expr { at, kind: ExprKind::Distinct { args, negated, word_at } }, Ended::ByOperand));
        }
        if token.keyword == Some(K::Document) {
            self.advance();
            self.refuse(word_at, "IS DOCUMENT");
            return Ok((left, Ended::Closed));
        }
        let test = match token.keyword {
            _ if allowed == Allowed::Few => None,
            Some(K::Null) => Some(Test::Null),
            Some(K::True) => Some(Test::True),
            Some(K::False) => Some(Test::False),
            Some(K::Unknown) => Some(Test::Unknown),
            Some(K::Normalized | K::Nfc | K::Nfd | K::Nfkc | K::Nfkd) => {
                return Ok((self.is_normalized(left, word_at, negated)?, Ended::Closed));
            }
            _ => None,
        };
        match test {
            Some(test) => {
                self.advance();
                Ok((is_test(left, test, negated), Ended::Closed))
            }
            None => Err(self.unexpected()),
        }
    }

    /// `IS NFC NORMALIZED`: a function.
    fn is_normalized(&mut self, left: Expr, word_at: At, negated: bool) -> Result<Expr> {
        let at = left.at;
        let mut args = vec![left];
        if !self.at_word(K::Normalized) {
            let form = self.advance();
            let text = Literal::Text(self.text(form).to_ascii_uppercase());
            args.push(Expr { at: form.start, kind: ExprKind::Literal(text) });
        }
        self.expect_word(K::Normalized)?;
        let call = Call::system(word_at, "is_normalized", args);
        let test = Expr { at, kind: ExprKind::Call(Box::new(call)) };
        if !negated {
            return Ok(test);
        }
        self.higher()?;
        Ok(Expr { at, kind: ExprKind::Not(Box::new(test)) })
    }

    /// BETWEEN, IN, LIKE and their like, or NOT before one of them.
    fn pattern(&mut self, left: Expr) -> Result<(Expr, Ended)> {
        let at = left.at;
        let word_at = self.place();
        let negated = self.eat_word(K::Not);
        let keyword = self.advance().keyword;
        match keyword {
            Some(K::Between) => {
                let symmetric = self.eat_word(K::Symmetric);
                if !symmetric {
                    self.eat_word(K::Asymmetric);
                }
                let low = self.simple_expr()?;
                self.expect_word(K::And)?;
                let high = self.operand(Level::Pattern.above(), Allowed::All)?;
                let args = Box::new([left, low, high]);
                let kind = ExprKind::Between { args, negated, symmetric, word_at };
                Ok((Expr { at, kind }, Ended::ByOperand))
            }
            Some(K::In) => {
                let arg = Box::new(left);
                let kind = match self.parens(true)? {
                    Parens::Query(query) => ExprKind::InQuery { arg, query, negated, word_at },
                    Parens::Exprs(list) => ExprKind::InList { arg, list, negated, word_at },
                };
                Ok((Expr { at, kind }, Ended::Closed))
            }
            Some(K::Like) => self.matched(left, Match::Like, negated, word_at),
            Some(K::Ilike) => self.matched(left, Match::ILike, negated, word_at),
            _ => {
                self.expect_word(K::To)?;
                self.matched(left, Match::Similar, negated, word_at)
            }
        }
    }

    /// What follows LIKE, ILIKE or SIMILAR TO.
    fn matched(&mut self, left: Expr, kind: Match, negated: bool, word_at: At) -> Result<(Expr, Ended)> {
        if kind != Match::Similar && self.at_any(&[K::Any, K::Some, K::All]) {
            let symbol = match (kind, negated) {
                (Match::Like, false) => "~~",
                (Match::Like, true) => "!~~",
                (_, false) => "~~*",
                (_, true) => "!~~*",
            };
            let op = Operator { at: word_at, schema: vec![], symbol: symbol.to_owned() };
            return Ok((self.quantified(left, op)?, Ended::Closed));
        }
        let at = left.at;
        let pattern = self.operand(Level::Pattern.above(), Allowed::All)?;
        let escape = match self.eat_word(K::Escape) {
            true => Some(Box::new(self.operand(Level::Pattern.above(), Allowed::All)?)),
            false => None,
        };
        let args = Box::new([left, pattern]);
        Ok((Expr { at, kind: ExprKind::Match { kind, negated, args, escape, word_at } }, Ended::ByOperand))
    }

    /// The operator that a token is.
    pub(super) fn operator_of(&self, token: Token) -> Operator {
        let symbol = if token.kind == Kind::NotEqual { "<>" } else { self.text(token) };
        Operator { at: token.start, schema: vec![], symbol: symbol.to_owned() }
    }

    /// Whether a token is an operator of any kind.
    pub(super) fn is_operator(token: Token) -> bool {
        matches!(
            token.kind,
            Kind::Operator
                | Kind::Plus
                | Kind::Minus
                | Kind::Star
                | Kind::Slash
                | Kind::Percent
                | Kind::Caret
                | Kind::Less
                | Kind::Greater
                | Kind::Equal
                | Kind::LessEqual
                | Kind::GreaterEqual
                | Kind::NotEqual
        )
    }

    /// `OPERATOR(schema.+)`.
    pub(super) fn named_operator(&mut self) -> Result<Operator> {
        let at = self.expect_word(K::Operator)?;
        self.expect(Kind::LeftParen)?;
        let mut op = self.schema_operator()?;
        op.at = at;
        self.expect(Kind::RightParen)?;
        Ok(op)
    }

    /// `schema.+`.
    pub(super) fn schema_operator(&mut self) -> Result<Operator> {
        let mut schema: Vec<Ident> = vec![];
        while !Self::is_operator(self.token()) {
            schema.push(self.ident()?);
            self.expect(Kind::Dot)?;
        }
        let token = self.advance();
        Ok(Operator { schema, ..self.operator_of(token) })
    }
}

fn is_test(arg: Expr, test: Test, negated: bool) -> Expr {
    Expr { at: arg.at, kind: ExprKind::Is { arg: Box::new(arg), test, negated } }
}

/// A sign before an operand. That of a number belongs to the number.
pub(super) fn signed(op: Operator, arg: Expr) -> Expr {
    let at = op.at;
    let minus = op.symbol == "-";
    let kind = match arg.kind {
        ExprKind::Literal(Literal::Int(value)) if minus && value != i64::MIN => ExprKind::Literal(Literal::Int(-value)),
        ExprKind::Literal(Literal::Number(digits)) if minus => ExprKind::Literal(negated(digits)),
        kind => {
            let arg = Box::new(Expr { at: arg.at, kind });
            ExprKind::Unary { op, arg }
        }
    };
    Expr { at, kind }
}

/// A number with the other sign.
fn negated(digits: String) -> Literal {
    let digits = match digits.strip_prefix('-') {
        Some(positive) => positive.to_owned(),
        None => format!("-{digits}"),
    };
    match digits.parse::<i64>() {
        Ok(value) => Literal::Int(value),
        Err(_) => Literal::Number(digits),
    }
}
