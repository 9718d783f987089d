//! PostgreSQL's regular expressions (advanced ones, the default) as Rust's.
//!
//! 1. What is written means the same after translation, or is refused: 0A000 where Rust's have nothing like it
//!    (look-around, back references, collating elements), 2201B where PostgreSQL takes it for no regular expression.
//! 2. A point and a negated set match a line's end; `^` and `$` are the text's beginning and end; but where flags say
//!    otherwise ([`Mode`]).
//! 3. Without regard to case a letter is a set of two, its small letter and its capital, as in PostgreSQL. (Rust's own
//!    way takes `s` and the long `ſ`, `σ` and `ς` for the same letter too.)
//!
//! Source: PostgreSQL 15 documentation, "POSIX Regular Expressions" (9.7.3).
use super::character_classes as classes;
use super::text::{capital, small};
use std::collections::BTreeSet;
use std::iter::Peekable;
use std::str::Chars;
use terrace_engine::{EngineError, Result};

/// The most that a bound `{m,n}` may say.
const MOST: u32 = 255;

fn invalid(why: &str) -> EngineError {
    EngineError::new("2201B", format!("invalid regular expression: {why}"))
}

fn refused(what: &str) -> EngineError {
    EngineError::unsupported(format!("{what} in a regular expression are not supported"))
}

/// What an escape stands for.
enum Escape {
    One(char),
    /// Rust's text of a set of characters.
    Set(&'static str),
    /// Rust's text of something that holds between characters.
    Between(&'static str),
}

/// A pattern that has been read.
#[derive(Default)]
pub(super) struct Pattern {
    /// As Rust's regular expressions take it.
    pub(super) made: String,
    /// Whether there is a lazy quantifier, a group that keeps what it took, an alternative.
    pub(super) lazy: bool,
    pub(super) groups: bool,
    pub(super) branches: bool,
}

/// What flags say of a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mode {
    /// Small letters and capitals are alike.
    any_case: bool,
    /// A point and a negated set match no line feed.
    within_lines: bool,
    /// `^` and `$` are each line's beginning and end.
    of_lines: bool,
    /// Blanks, and what is behind a `#`, mean nothing.
    expanded: bool,
    /// It is a text, and no pattern.
    literal: bool,
}

impl From<bool> for Mode {
    fn from(any_case: bool) -> Mode {
        Mode { any_case, ..Mode::default() }
    }
}

impl Mode {
    /// Takes a flag in; whether it is done.
    pub(super) fn take(&mut self, flag: char) -> bool {
        match flag {
            'i' | 'c' => self.any_case = flag == 'i',
            'n' | 'm' | 'p' | 'w' | 's' => {
                self.within_lines = matches!(flag, 'n' | 'm' | 'p');
                self.of_lines = matches!(flag, 'n' | 'm' | 'w');
            }
            'x' | 't' => self.expanded = flag == 'x',
            'q' => self.literal = true,
            'e' => {}
            _ => return false,
        }
        true
    }

    pub(super) fn is_expanded(self) -> bool {
        self.expanded
    }
}

struct Translation<'p> {
    rest: Peekable<Chars<'p>>,
    read: Pattern,
    /// Whether a quantifier may follow.
    quantifiable: bool,
    mode: Mode,
}

/// The pattern as Rust's regular expressions take it (invariant 1).
pub(super) fn translated(pattern: &str, mode: impl Into<Mode>) -> Result<Pattern> {
    let mut mode = mode.into();
    if mode.literal {
        let read = Pattern { made: "(?s)".to_owned(), ..Pattern::default() };
        let mut translation = Translation { rest: "".chars().peekable(), read, quantifiable: false, mode };
        pattern.chars().for_each(|c| translation.literal(c));
        return Ok(translation.read);
    }
    if pattern.starts_with("***") {
        return Err(refused("directors (***)"));
    }
    let pattern = match pattern.strip_prefix("(?") {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            let (options, rest) = rest.split_once(')').ok_or_else(|| invalid("parentheses () not balanced"))?;
            if let Some(other) = options.chars().find(|c| *c == 'q' || !mode.take(*c)) {
                return Err(refused(&format!("embedded options like {other}")));
            }
            rest
        }
        _ => pattern,
    };
    let rest = pattern.chars().peekable();
    let made = match (mode.within_lines, mode.of_lines) {
        (false, false) => "(?s)",
        (false, true) => "(?sm)",
        (true, true) => "(?m)",
        (true, false) => "",
    };
    let read = Pattern { made: made.to_owned(), ..Pattern::default() };
    let mut translation = Translation { rest, read, quantifiable: false, mode };
    while let Some(c) = translation.rest.next() {
        translation.take(c)?;
    }
    Ok(translation.read)
}

impl Translation<'_> {
    fn take(&mut self, c: char) -> Result<()> {
        match c {
            c if self.mode.expanded && c.is_ascii_whitespace() => {}
            '#' if self.mode.expanded => while self.rest.next().is_some_and(|c| c != '\n') {},
            '\\' => match self.escape()? {
                Escape::One(c) => self.literal(c),
                Escape::Set(set) => {
                    self.read.made.push_str(set);
                    self.quantifiable = true;
                }
                Escape::Between(what) => {
                    self.read.made.push_str(what);
                    self.quantifiable = false;
                }
            },
            '[' => {
                self.set()?;
                self.quantifiable = true;
            }
            '(' => {
                self.read.made.push('(');
                self.quantifiable = false;
                if self.rest.next_if_eq(&'?').is_some() {
                    match self.rest.next() {
                        Some(':') => self.read.made.push_str("?:"),
                        Some('=' | '!' | '<') => return Err(refused("look-around constraints")),
                        _ => return Err(invalid("quantifier operand invalid")),
                    }
                } else {
                    self.read.groups = true;
                }
            }
            '*' | '+' | '?' => self.quantifier(&c.to_string())?,
            '{' if self.rest.peek().is_some_and(char::is_ascii_digit) => {
                let bound = self.bound()?;
                self.quantifier(&bound)?;
            }
            '.' | ')' => {
                self.read.made.push(c);
                self.quantifiable = true;
            }
            '|' | '^' | '$' => {
                self.read.branches |= c == '|';
                self.read.made.push(c);
                self.quantifiable = false;
            }
            other => self.literal(other),
        }
        Ok(())
    }

    fn literal(&mut self, c: char) {
        self.quantifiable = true;
        if self.alike(c).eq([c]) {
            return self.read.made.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
        }
        self.read.made.push('[');
        self.put_member(c);
        self.read.made.push(']');
    }

    /// What a character stands for (invariant 3).
    fn alike(&self, c: char) -> impl Iterator<Item = char> + use<> {
        let (small, capital) = if self.mode.any_case { (small(c), capital(c)) } else { (c, c) };
        std::iter::once(small).chain((capital != small).then_some(capital))
    }

    fn quantifier(&mut self, written: &str) -> Result<()> {
        if !self.quantifiable {
            return Err(invalid("quantifier operand invalid"));
        }
        self.read.made.push_str(written);
        if self.rest.next_if_eq(&'?').is_some() {
            self.read.made.push('?');
            self.read.lazy = true;
        }
        self.quantifiable = false;
        Ok(())
    }

    /// `{m}`, `{m,}` or `{m,n}`, the brace being read.
    fn bound(&mut self) -> Result<String> {
        let wrong = || invalid("invalid repetition count(s)");
        let mut bound = String::from("{");
        loop {
            match self.rest.next() {
                Some(c @ ('0'..='9' | ',')) => bound.push(c),
                Some('}') => break,
                _ => return Err(wrong()),
            }
        }
        let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n <= MOST).ok_or_else(wrong);
        match bound[1..].split_once(',') {
            Some((least, "")) => drop(number(least)?),
            Some((least, most)) if number(least)? <= number(most)? => {}
            Some(_) => return Err(wrong()),
            None => drop(number(&bound[1..])?),
        }
        bound.push('}');
        Ok(bound)
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Result<Escape> {
        let c = self.rest.next().ok_or_else(|| invalid("invalid escape \\ sequence"))?;
        Ok(match c {
            'd' => Escape::Set("[0-9]"),
            'D' => Escape::Set("[^0-9]"),
            's' => Escape::Set(classes::SPACE),
            'S' => Escape::Set(classes::NO_SPACE),
            'w' => Escape::Set(classes::WORD),
            'W' => Escape::Set(classes::NO_WORD),
            'A' => Escape::Between(r"\A"),
            'Z' => Escape::Between(r"\z"),
            'm' => Escape::Between(r"\b{start}"),
            'M' => Escape::Between(r"\b{end}"),
            'y' => Escape::Between(r"\b"),
            'Y' => Escape::Between(r"\B"),
            'a' => Escape::One('\x07'),
            'b' => Escape::One('\x08'),
            'B' => Escape::One('\\'),
            'e' => Escape::One('\x1b'),
            'f' => Escape::One('\x0c'),
            'n' => Escape::One('\n'),
            'r' => Escape::One('\r'),
            't' => Escape::One('\t'),
            'v' => Escape::One('\x0b'),
            'u' => Escape::One(self.hexadecimal(4, 4)?),
            'U' => Escape::One(self.hexadecimal(8, 8)?),
            'x' => Escape::One(self.hexadecimal(1, usize::MAX)?),
            '1'..='9' => return Err(refused("back references")),
            'c' | '0' => return Err(refused(&format!("escapes like \\{c}"))),
            other if other.is_alphanumeric() => return Err(invalid("invalid escape \\ sequence")),
            other => Escape::One(other),
        })
    }

    fn hexadecimal(&mut self, least: usize, most: usize) -> Result<char> {
        let mut digits = String::new();
        while digits.len() < most
            && let Some(digit) = self.rest.next_if(char::is_ascii_hexdigit)
        {
            digits.push(digit);
        }
        let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() >= least);
        code.and_then(char::from_u32).ok_or_else(|| invalid("invalid escape \\ sequence"))
    }

    /// A set of characters, its first bracket being read.
    fn set(&mut self) -> Result<()> {
        self.read.made.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.read.made.push('^');
            if self.mode.within_lines {
                self.read.made.push_str("\\n");
            }
        }
        // A bracket that comes first is one of the set.
        let mut first = true;
        loop {
            if self.rest.peek() == Some(&']') && !first {
                self.rest.next();
                self.read.made.push(']');
                return Ok(());
            }
            let from = self.member()?;
            first = false;
            let Some(from) = from else { continue };
            let mut ahead = self.rest.clone();
            if ahead.next() != Some('-') || ahead.next() == Some(']') {
                self.put_member(from);
                continue;
            }
            self.rest.next();
            match self.member()? {
                Some(to) if from <= to => {
                    self.put(from);
                    self.read.made.push('-');
                    self.put(to);
                    let range = if self.mode.any_case { from..=to } else { from..=from };
                    let others: BTreeSet<char> = range.flat_map(|c| self.alike(c)).collect();
                    others.into_iter().filter(|c| !(from..=to).contains(c)).for_each(|c| self.put(c));
                    // `a-c-e`
                    let mut ahead = self.rest.clone();
                    if ahead.next() == Some('-') && ahead.next() != Some(']') {
                        return Err(invalid("invalid character range"));
                    }
                }
                _ => return Err(invalid("invalid character range")),
            }
        }
    }

    /// The next character of a set; `None`: it was several, and they have been put.
    fn member(&mut self) -> Result<Option<char>> {
        let unbalanced = || invalid("brackets [] not balanced");
        match self.rest.next().ok_or_else(unbalanced)? {
            '\\' => match self.escape()? {
                Escape::One(c) => Ok(Some(c)),
                Escape::Set(set) => {
                    self.read.made.push_str(set);
                    Ok(None)
                }
                Escape::Between(_) => Err(invalid("invalid escape \\ sequence")),
            },
            '[' if matches!(self.rest.peek(), Some('.' | '=')) => Err(refused("collating elements")),
            '[' if self.rest.next_if_eq(&':').is_some() => {
                let mut name = String::new();
                while let Some(c) = self.rest.next_if(|c| *c != ':') {
                    name.push(c);
                }
                if (self.rest.next(), self.rest.next()) != (Some(':'), Some(']')) {
                    return Err(unbalanced());
                }
                match name.as_str() {
                    name if let Some(class) = classes::named(name, self.mode.any_case) => {
                        self.read.made.push_str(class)
                    }
                    "<" | ">" => return Err(refused("[[:<:]] and [[:>:]]")),
                    _ => return Err(invalid("invalid character class")),
                }
                Ok(None)
            }
            other => Ok(Some(other)),
        }
    }

    fn put_member(&mut self, c: char) {
        self.alike(c).for_each(|c| self.put(c));
    }

    fn put(&mut self, c: char) {
        if matches!(c, '[' | ']' | '\\' | '^' | '-' | '&' | '~') {
            self.read.made.push('\\');
        }
        self.read.made.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_the_same() {
        for (pattern, rust) in [
            (r"a.b\.", r"a.b\."),
            (r"\\b", r"\\b"),
            (r"\y\d+\Z", r"\b[0-9]+\z"),
            ("[a[b]", r"[a\[b]"),
            ("[]a-]", r"[\]a\-]"),
            ("[^^a&&b]", r"[^\^a\&\&b]"),
            ("[[:digit:]x]", "[[0-9]x]"),
            ("a{,3}", r"a\{,3\}"),
            ("(?:a){2,3}?", "(?:a){2,3}?"),
            ("(?i)a", "[aA]"),
            ("(?i)1ßσ[a-cς][[:upper:]]", r"1ß[σΣ][a-cABCςΣ][[\p{Alphabetic}\p{Nd}--0-9]]"),
            (r"\x41\u00e4", "Aä"),
            ("a]}", r"a\]\}"),
        ] {
            let made = translated(pattern, false).unwrap().made;
            assert_eq!(made.strip_prefix("(?s)").unwrap_or(&made), rust, "{pattern}");
            regex::Regex::new(&made).unwrap();
        }
    }

    #[test]
    fn what_does_not() {
        for (pattern, state) in [
            ("***=x", "0A000"),
            ("(?b)x", "0A000"),
            ("(?iq)x", "0A000"),
            ("a(?=b)", "0A000"),
            (r"(a)\1", "0A000"),
            ("[[.a.]]", "0A000"),
            ("a**", "2201B"),
            ("a*+", "2201B"),
            ("*a", "2201B"),
            ("^*", "2201B"),
            ("(|*a)", "2201B"),
            ("(?<n>a)", "0A000"),
            ("(?P<n>a)", "0A000"),
            ("[a", "2201B"),
            ("[b-a]", "2201B"),
            ("[a-c-e]", "2201B"),
            ("[[:nope:]]", "2201B"),
            ("a{2,1}", "2201B"),
            ("a{256}", "2201B"),
            (r"\i", "2201B"),
            (r"a\", "2201B"),
        ] {
            assert_eq!(translated(pattern, false).err().unwrap().state.0, state, "{pattern}");
        }
    }
}
