//! Names: which words can be which, and what they are called.

use super::Parser;
use crate::error::{Result, SyntaxError};
use crate::keyword::{Category, Keyword};
use crate::lexer::{Kind, NAME_MAX, Token, decode_unicode};
use crate::statement::{Ident, Name};

/// Cuts a name at [`NAME_MAX`] bytes, between characters.
fn cut(mut name: String) -> String {
    if name.len() > NAME_MAX {
        let end = (0..=NAME_MAX).rev().find(|&end| name.is_char_boundary(end)).expect("zero is a boundary");
        name.truncate(end);
    }
    name
}

impl Parser<'_> {
    /// Whether a token is a name that is no keyword, or a keyword that can be used as one.
    fn is_name(token: Token, allows: impl Fn(Category) -> bool) -> bool {
        match token.kind {
            Kind::Word => token.keyword.is_none_or(|keyword| allows(keyword.category())),
            Kind::Quoted | Kind::UnicodeQuoted => true,
            _ => false,
        }
    }

    /// Whether a token can name a column or a table.
    pub(super) fn is_column_name(token: Token) -> bool {
        Self::is_name(token, |category| matches!(category, Category::Unreserved | Category::Column))
    }

    /// Whether a token can name a function or a type.
    pub(super) fn is_function_name(token: Token) -> bool {
        Self::is_name(token, |category| matches!(category, Category::Unreserved | Category::TypeFunction))
    }

    /// Whether a token can stand behind a dot or AS.
    pub(super) fn is_label(token: Token) -> bool {
        Self::is_name(token, |_| true)
    }

    /// Whether a token can be a title without AS.
    pub(super) fn is_bare_label(token: Token) -> bool {
        Self::is_label(token) && token.keyword.is_none_or(Keyword::is_bare_label)
    }

    /// What a token is called.
    pub(super) fn ident_of(&mut self, token: Token) -> Result<Ident> {
        let text = self.text(token);
        let name = match token.kind {
            Kind::Word => text.to_ascii_lowercase(),
            Kind::Quoted => text[1..text.len() - 1].replace("\"\"", "\""),
            Kind::UnicodeQuoted => {
                let mark = self.unicode_mark()?;
                decode_unicode(&text[3..text.len() - 1], token.start as usize + 3, mark, '"')?
            }
            kind => unreachable!("{kind:?} is no name"),
        };
        Ok(Ident { at: token.start, name: cut(name) })
    }

    /// `UESCAPE 'x'` behind a string or a name with escapes; a backslash where it is not there.
    pub(super) fn unicode_mark(&mut self) -> Result<char> {
        if !self.eat_word(Keyword::Uescape) {
            return Ok('\\');
        }
        let token = self.token();
        if !matches!(token.kind, Kind::Text | Kind::EscapeText | Kind::DollarText) {
            let near = self.text(token);
            return Err(SyntaxError::near("UESCAPE must be followed by a simple string literal", near, token.start));
        }
        let text = self.string_of(token)?;
        let mut characters = text.chars();
        let fits = |mark: &char| !(mark.is_ascii_hexdigit() || mark.is_ascii_whitespace() || "+'\"".contains(*mark));
        match (characters.next().filter(fits), characters.next()) {
            (Some(mark), None) => {
                self.advance();
                Ok(mark)
            }
            _ => Err(SyntaxError::near("invalid Unicode escape character", self.text(token), token.start)),
        }
    }

    fn name_if(&mut self, fits: bool) -> Result<Ident> {
        if !fits {
            return Err(self.unexpected());
        }
        let token = self.advance();
        self.ident_of(token)
    }

    /// The name of a column, a table, a schema or an alias.
    pub(super) fn ident(&mut self) -> Result<Ident> {
        self.name_if(Self::is_column_name(self.token()))
    }

    /// Any word.
    pub(super) fn label(&mut self) -> Result<Ident> {
        self.name_if(Self::is_label(self.token()))
    }

    /// The name of a function's argument.
    pub(super) fn function_ident(&mut self) -> Result<Ident> {
        self.name_if(Self::is_function_name(self.token()))
    }

    /// `.a.b` behind the first part of a name.
    pub(super) fn more_parts(&mut self, first: Ident) -> Result<Name> {
        let mut parts = vec![first];
        while self.eat(Kind::Dot) {
            parts.push(self.label()?);
        }
        Ok(Name::new(parts))
    }

    /// `a`, `a.b`: the name of anything but a table.
    pub(super) fn any_name(&mut self) -> Result<Name> {
        let first = self.ident()?;
        self.more_parts(first)
    }

    /// The name of a table, an index, a sequence, a view.
    pub(super) fn relation_name(&mut self) -> Result<Name> {
        let name = self.any_name()?;
        // As in PostgreSQL, a subscript is read before it is refused.
        if self.at(Kind::LeftBracket) {
            self.subscript()?;
            return Err(self.unexpected());
        }
        Self::check_parts(&name)?;
        Ok(name)
    }

    /// A name has at most a database, a schema and the object's own name.
    pub(super) fn check_parts(name: &Name) -> Result<()> {
        if name.parts().len() <= 3 {
            return Ok(());
        }
        let message = format!("improper qualified name (too many dotted names): {}", name.shown());
        Err(SyntaxError::new(message, name.at()))
    }

    /// `(a, b)`.
    pub(super) fn idents_in_parens(&mut self) -> Result<Vec<Ident>> {
        self.list_in_parens(Self::ident)
    }

    /// `(a, b)`, or nothing.
    pub(super) fn maybe_idents_in_parens(&mut self) -> Result<Vec<Ident>> {
        if self.at(Kind::LeftParen) { self.idents_in_parens() } else { Ok(vec![]) }
    }
}
