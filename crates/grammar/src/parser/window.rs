//! Windows and their frames.

use super::Parser;
use crate::error::{Result, SyntaxError};
use crate::keyword::Keyword as K;
use crate::lexer::Kind;
use crate::statement::{At, Exclude, Frame, FrameBound, NamedWindow, Over, Units, Window};

impl Parser<'_> {
    /// What follows OVER.
    pub(super) fn over(&mut self) -> Result<Over> {
        match self.at(Kind::LeftParen) {
            true => Ok(Over::Window(Box::new(self.window()?))),
            false => Ok(Over::Name(self.ident()?)),
        }
    }

    /// WINDOW, or nothing.
    pub(super) fn named_windows(&mut self) -> Result<Vec<NamedWindow>> {
        if !self.eat_word(K::Window) {
            return Ok(vec![]);
        }
        self.list(|parser| {
            let name = parser.ident()?;
            parser.expect_word(K::As)?;
            Ok(NamedWindow { name, window: parser.window()? })
        })
    }

    fn window(&mut self) -> Result<Window> {
        let at = self.expect(Kind::LeftParen)?;
        let clause = self.at_any(&[K::Partition, K::Range, K::Rows, K::Groups]);
        let base = match Self::is_column_name(self.token()) && !clause {
            true => Some(self.ident()?),
            false => None,
        };
        let partition = match self.eat_word(K::Partition) {
            true => {
                self.expect_word(K::By)?;
                self.exprs()?
            }
            false => vec![],
        };
        let order = self.maybe_order()?;
        let frame = self.frame()?;
        self.expect(Kind::RightParen)?;
        Ok(Window { at, base, partition, order, frame })
    }

    fn frame(&mut self) -> Result<Option<Frame>> {
        let units = match self.token().keyword {
            Some(K::Rows) => Units::Rows,
            Some(K::Range) => Units::Range,
            Some(K::Groups) => Units::Groups,
            _ => return Ok(None),
        };
        let at = self.advance().start;
        let (start, end) = match self.eat_word(K::Between) {
            true => {
                let start_at = self.place();
                let start = self.frame_bound()?;
                self.expect_word(K::And)?;
                let end_at = self.place();
                let end = self.frame_bound()?;
                check(&start, start_at, Some((&end, end_at)))?;
                (start, end)
            }
            false => {
                let start_at = self.place();
                let start = self.frame_bound()?;
                check(&start, start_at, None)?;
                (start, FrameBound::CurrentRow)
            }
        };
        let exclude = self.exclude()?;
        Ok(Some(Frame { at, units, start, end, exclude }))
    }

    fn frame_bound(&mut self) -> Result<FrameBound> {
        if self.at_word(K::Unbounded) {
            match self.ahead(1).keyword {
                Some(K::Preceding) => {
                    self.next += 2;
                    return Ok(FrameBound::UnboundedPreceding);
                }
                Some(K::Following) => {
                    self.next += 2;
                    return Ok(FrameBound::UnboundedFollowing);
                }
                _ => {}
            }
        }
        if self.eat_words(&[K::Current, K::Row]) {
            return Ok(FrameBound::CurrentRow);
        }
        let offset = Box::new(self.expr()?);
        match self.token().keyword {
            Some(K::Preceding) => {
                self.advance();
                Ok(FrameBound::Preceding(offset))
            }
            Some(K::Following) => {
                self.advance();
                Ok(FrameBound::Following(offset))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn exclude(&mut self) -> Result<Exclude> {
        if !self.eat_word(K::Exclude) {
            return Ok(Exclude::NoOthers);
        }
        let (exclude, second) = match self.token().keyword {
            Some(K::Current) => (Exclude::CurrentRow, Some(K::Row)),
            Some(K::Group) => (Exclude::Group, None),
            Some(K::Ties) => (Exclude::Ties, None),
            Some(K::No) => (Exclude::NoOthers, Some(K::Others)),
            _ => return Err(self.unexpected()),
        };
        self.advance();
        if let Some(second) = second {
            self.expect_word(second)?;
        }
        Ok(exclude)
    }
}

/// The bounds of a frame are in order. Without an end, it ends at the current row.
fn check(start: &FrameBound, start_at: At, end: Option<(&FrameBound, At)>) -> Result<()> {
    use FrameBound as B;
    let wrong = |message, at| Err(SyntaxError::with_state("42P20", message, at));
    match (start, end) {
        (B::UnboundedFollowing, _) => wrong("frame start cannot be UNBOUNDED FOLLOWING", start_at),
        (B::Following(_), None) => wrong("frame starting from following row cannot end with current row", start_at),
        (_, Some((B::UnboundedPreceding, at))) => wrong("frame end cannot be UNBOUNDED PRECEDING", at),
        (B::CurrentRow, Some((B::Preceding(_), at))) => {
            wrong("frame starting from current row cannot have preceding rows", at)
        }
        (B::Following(_), Some((B::Preceding(_) | B::CurrentRow, at))) => {
            wrong("frame starting from following row cannot have preceding rows", at)
        }
        _ => Ok(()),
    }
}
