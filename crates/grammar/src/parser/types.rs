//! The names of types.

use super::Parser;
use crate::error::{Result, SyntaxError};
use crate::keyword::Keyword as K;
use crate::lexer::Kind;
use crate::statement::{At, Expr, ExprKind, Literal, Name, TypeName};

impl TypeName {
    /// A type without anything behind its name.
    pub(crate) fn plain(name: Name) -> TypeName {
        TypeName {
            at: name.at(),
            name,
            modifiers: vec![],
            dimensions: vec![],
            fields: None,
            set_of: false,
            of_column: false,
        }
    }

    fn system(at: At, name: &str) -> TypeName {
        TypeName::plain(Name::system(at, name))
    }
}

impl Parser<'_> {
    /// A type.
    pub(super) fn type_name(&mut self) -> Result<TypeName> {
        let at = self.place();
        let set_of = self.eat_word(K::Setof);
        let mut name = self.simple_type(false)?;
        (name.at, name.set_of) = (at, set_of);
        if self.eat_word(K::Array) {
            let bound = match self.eat(Kind::LeftBracket) {
                true => Some(self.bound()?),
                false => None,
            };
            name.dimensions.push(bound);
            return Ok(name);
        }
        while self.eat(Kind::LeftBracket) {
            let bound = match self.eat(Kind::RightBracket) {
                true => None,
                false => Some(self.bound()?),
            };
            name.dimensions.push(bound);
        }
        Ok(name)
    }

    /// `3]`.
    fn bound(&mut self) -> Result<i32> {
        let bound = self.small_integer()?;
        self.expect(Kind::RightBracket)?;
        Ok(bound)
    }

    /// A number of 32 bits.
    pub(super) fn small_integer(&mut self) -> Result<i32> {
        let token = self.token();
        match (token.kind, self.text(token).parse()) {
            (Kind::Integer, Ok(value)) => {
                self.advance();
                Ok(value)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// A type without bounds of an array. A `constant`'s type without a length has any length.
    fn simple_type(&mut self, constant: bool) -> Result<TypeName> {
        let token = self.token();
        let at = token.start;
        let Some(keyword) = token.keyword else { return self.generic_type() };
        let plain = |parser: &mut Self, name| {
            parser.advance();
            Ok(TypeName::system(at, name))
        };
        match keyword {
            K::Int | K::Integer => plain(self, "int4"),
            K::Smallint => plain(self, "int2"),
            K::Bigint => plain(self, "int8"),
            K::Real => plain(self, "float4"),
            K::Boolean => plain(self, "bool"),
            K::Double => match self.ahead(1).keyword {
                Some(K::Precision) => {
                    self.advance();
                    plain(self, "float8")
                }
                _ => self.generic_type(),
            },
            K::Float => self.float(),
            K::Decimal | K::Dec | K::Numeric => {
                let mut name = plain(self, "numeric")?;
                name.modifiers = self.modifiers()?;
                Ok(name)
            }
            K::Bit => {
                let mut name = plain(self, "bit")?;
                if self.eat_word(K::Varying) {
                    name = TypeName::system(at, "varbit");
                }
                self.length(name, constant, true)
            }
            K::Char | K::Character | K::Nchar | K::National | K::Varchar => self.character(constant),
            K::Timestamp => self.time("timestamp", "timestamptz"),
            K::Time => self.time("time", "timetz"),
            K::Interval => {
                let mut name = plain(self, "interval")?;
                if self.at(Kind::LeftParen) {
                    name.modifiers = self.precision()?;
                } else if !constant {
                    self.interval_fields(&mut name)?;
                }
                Ok(name)
            }
            _ => self.generic_type(),
        }
    }

    /// A type with a name: `text`, `public.mood`, `geometry(3)`.
    fn generic_type(&mut self) -> Result<TypeName> {
        let first = self.function_ident()?;
        let mut name = TypeName::plain(self.more_parts(first)?);
        name.modifiers = self.modifiers()?;
        Ok(name)
    }

    /// `(1, 2)`, or nothing.
    fn modifiers(&mut self) -> Result<Vec<Expr>> {
        if self.at(Kind::LeftParen) { self.list_in_parens(Self::expr) } else { Ok(vec![]) }
    }

    /// `(3)`.
    fn precision(&mut self) -> Result<Vec<Expr>> {
        self.expect(Kind::LeftParen)?;
        let at = self.place();
        let value = self.small_integer()?;
        self.expect(Kind::RightParen)?;
        Ok(vec![integer(at, value)])
    }

    fn float(&mut self) -> Result<TypeName> {
        let at = self.expect_word(K::Float)?;
        if !self.eat(Kind::LeftParen) {
            return Ok(TypeName::system(at, "float8"));
        }
        let bits_at = self.place();
        let bits = self.small_integer()?;
        self.expect(Kind::RightParen)?;
        let wrong = |message| Err(SyntaxError::with_state("22023", message, bits_at));
        match bits {
            ..1 => wrong("precision for type float must be at least 1 bit"),
            1..=24 => Ok(TypeName::system(at, "float4")),
            25..=53 => Ok(TypeName::system(at, "float8")),
            54.. => wrong("precision for type float must be less than 54 bits"),
        }
    }

    fn character(&mut self, constant: bool) -> Result<TypeName> {
        let first = self.advance();
        let at = first.start;
        if first.keyword == Some(K::National) {
            match self.token().keyword {
                Some(K::Char | K::Character) => self.advance(),
                _ => return Err(self.unexpected()),
            };
        }
        let varying = first.keyword == Some(K::Varchar) || self.eat_word(K::Varying);
        let name = TypeName::system(at, if varying { "varchar" } else { "bpchar" });
        self.length(name, constant, false)
    }

    /// The length of a type of bits or characters. Without one, that of a fixed type is 1.
    fn length(&mut self, mut name: TypeName, constant: bool, any: bool) -> Result<TypeName> {
        let fixed = matches!(name.name.last().name.as_str(), "bit" | "bpchar");
        name.modifiers = match self.at(Kind::LeftParen) {
            true if any => self.modifiers()?,
            true => self.precision()?,
            false if fixed && !constant => vec![integer(name.at, 1)],
            false => vec![],
        };
        Ok(name)
    }

    fn time(&mut self, without: &str, with: &str) -> Result<TypeName> {
        let at = self.advance().start;
        let modifiers = if self.at(Kind::LeftParen) { self.precision()? } else { vec![] };
        let zoned = self.at_word(K::With) && self.ahead(1).keyword == Some(K::Time);
        if zoned {
            self.expect_words(&[K::With, K::Time, K::Zone])?;
        } else if self.at_word(K::Without) {
            self.expect_words(&[K::Without, K::Time, K::Zone])?;
        }
        Ok(TypeName { modifiers, ..TypeName::system(at, if zoned { with } else { without }) })
    }

    /// `day to second(3)`, or nothing.
    pub(super) fn interval_fields(&mut self, name: &mut TypeName) -> Result<()> {
        let Some(first @ (K::Year | K::Month | K::Day | K::Hour | K::Minute | K::Second)) = self.token().keyword else {
            return Ok(());
        };
        self.advance();
        let mut last = first;
        if first != K::Second && first != K::Month && self.at_word(K::To) {
            let allowed: &[K] = match first {
                K::Year => &[K::Month],
                K::Day => &[K::Hour, K::Minute, K::Second],
                K::Hour => &[K::Minute, K::Second],
                _ => &[K::Second],
            };
            self.advance();
            if !self.at_any(allowed) {
                return Err(self.unexpected());
            }
            last = self.advance().keyword.unwrap_or(first);
        }
        if last == K::Second && self.at(Kind::LeftParen) {
            name.modifiers = self.precision()?;
        }
        name.fields = Some(match first == last {
            true => first.text().to_owned(),
            false => format!("{} to {}", first.text(), last.text()),
        });
        Ok(())
    }

    /// Whether the keyword here begins a type before a constant, and is no column's name.
    pub(super) fn at_constant_type(&self) -> bool {
        let next = self.ahead(1);
        let string = Self::is_string(next);
        let open = next.kind == Kind::LeftParen;
        match self.token().keyword {
            Some(K::Int | K::Integer | K::Smallint | K::Bigint | K::Real | K::Boolean) => string,
            Some(K::Float | K::Decimal | K::Dec | K::Numeric | K::Interval) => string || open,
            Some(K::Bit | K::Char | K::Character | K::Nchar) => string || open || next.keyword == Some(K::Varying),
            Some(K::Varchar) => string || open,
            Some(K::National) => matches!(next.keyword, Some(K::Char | K::Character)),
            Some(K::Double) => next.keyword == Some(K::Precision),
            Some(K::Time | K::Timestamp) => {
                let zoned = next.keyword == Some(K::With) && self.ahead(2).keyword == Some(K::Time);
                string || open || zoned || next.keyword == Some(K::Without)
            }
            _ => false,
        }
    }

    /// A type that stands before a constant.
    pub(super) fn type_before_constant(&mut self) -> Result<TypeName> {
        self.simple_type(true)
    }

    /// `timestamp '2020-01-01'`, `interval '1' day`.
    pub(super) fn typed_constant(&mut self) -> Result<Expr> {
        let to = self.simple_type(true)?;
        // An interval with a precision of its own has no fields.
        let fields = to.name.last().name == "interval" && to.modifiers.is_empty();
        let mut constant = self.constant_of(to)?;
        if fields && let ExprKind::Cast { to, .. } = &mut constant.kind {
            self.interval_fields(to)?;
        }
        Ok(constant)
    }
}

fn integer(at: At, value: i32) -> Expr {
    Expr { at, kind: ExprKind::Literal(Literal::Int(value.into())) }
}
