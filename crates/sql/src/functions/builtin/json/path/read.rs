//! From a jsonpath's text to its steps.
//!
//! 1. A condition (`a == 1`) is no operand of a comparison or of arithmetic, but in parentheses with steps behind.
//! 2. `@` stands in filters alone, `last` in subscripts alone. 42601
//! 3. A path has at most [`MOST_LEVELS`] levels of parentheses and filters, and at most [`MOST_STEPS`] steps and
//!    operators behind each other, those around them included: who follows it calls itself for each. 54001
use super::{Comparison, JsonPath, Method, Path, Regex, Step, deeper};
use crate::functions::builtin::pattern::translated;
use terrace_engine::types::decimal::Decimal;
use terrace_engine::types::json::Json;
use terrace_engine::{EngineError, Result};

const MOST_LEVELS: u32 = 100;
const MOST_STEPS: u32 = 300;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// Not in quotes.
    Word(String),
    Text(String),
    Number(String),
    Variable(String),
    Mark(&'static str),
    End,
}

/// Longer ones first.
const MARKS: [&str; 29] = [
    "**", "&&", "||", "==", "<>", "!=", "<=", ">=", "<", ">", "!", "$", "@", "?", "%", ".", "[", "]", "{", "}", "(",
    ")", "#", ",", "*", ":", "-", "+", "/",
];

/// Characters that end a word.
fn ends_word(c: char) -> bool {
    "?%$.[]{}()|&!=<>@#,*:-+/\"".contains(c) || is_blank(c)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

struct Lexer<'t> {
    rest: &'t str,
}

impl Lexer<'_> {
    fn wrong(&self, what: &str) -> EngineError {
        match self.rest.is_empty() {
            true => EngineError::new("42601", format!("{what} at end of jsonpath input")),
            false => EngineError::new("42601", format!("{what} at or near \"{}\" of jsonpath input", self.rest)),
        }
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn skip(&mut self) -> Result<()> {
        loop {
            self.rest = self.rest.trim_start_matches(is_blank);
            let Some(comment) = self.rest.strip_prefix("/*") else { return Ok(()) };
            let Some((_, behind)) = comment.split_once("*/") else {
                return Err(EngineError::new("42601", "unexpected end of comment at end of jsonpath input"));
            };
            self.rest = behind;
        }
    }

    fn token(&mut self) -> Result<Token> {
        self.skip()?;
        let Some(c) = self.rest.chars().next() else { return Ok(Token::End) };
        if c == '"' {
            self.take();
            return self.text().map(Token::Text);
        }
        if c.is_ascii_digit() || (c == '.' && self.rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            return self.number();
        }
        if c == '$' {
            self.take();
            return match self.rest.chars().next() {
                Some('"') => {
                    self.take();
                    self.text().map(Token::Variable)
                }
                Some(next) if !ends_word(next) => self.word().map(Token::Variable),
                _ => Ok(Token::Mark("$")),
            };
        }
        if let Some(mark) = MARKS.iter().find(|mark| self.rest.starts_with(**mark)) {
            self.rest = &self.rest[mark.len()..];
            return Ok(Token::Mark(mark));
        }
        match ends_word(c) {
            true => {
                self.rest = &self.rest[..c.len_utf8()];
                Err(self.wrong("syntax error"))
            }
            false => self.word().map(Token::Word),
        }
    }

    fn word(&mut self) -> Result<String> {
        let mut word = String::new();
        while let Some(c) = self.rest.chars().next().filter(|c| !ends_word(*c))
            && !self.rest.starts_with("/*")
        {
            self.take();
            word.push(if c == '\\' { self.escape()? } else { c });
        }
        Ok(word)
    }

    /// The quote before it being read.
    fn text(&mut self) -> Result<String> {
        let mut text = String::new();
        loop {
            match self.take() {
                None => return Err(self.wrong("unexpected end of quoted string")),
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escape()?),
                Some(c) => text.push(c),
            }
        }
    }

    /// What stands for a character behind a backslash.
    fn escape(&mut self) -> Result<char> {
        let Some(c) = self.take() else { return Err(self.wrong("unexpected end after backslash")) };
        let code = match c {
            'b' => return Ok('\x08'),
            'f' => return Ok('\x0c'),
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            't' => return Ok('\t'),
            'v' => return Ok('\x0b'),
            'x' => self.hexadecimal(2, "invalid hex character sequence")?,
            'u' => match self.unit()? {
                high @ 0xd800..=0xdbff => {
                    let wrong = |message: &str| EngineError::new("22P02", message).with_detail(SURROGATES);
                    let Some(rest) = self.rest.strip_prefix("\\u") else {
                        return Err(wrong("invalid input syntax for type jsonpath"));
                    };
                    self.rest = rest;
                    match self.unit()? {
                        low @ 0xdc00..=0xdfff => 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff),
                        _ => return Err(wrong("invalid input syntax for type jsonpath")),
                    }
                }
                0xdc00..=0xdfff => {
                    let error = EngineError::new("22P02", "invalid input syntax for type jsonpath");
                    return Err(error.with_detail("Unicode low surrogate must follow a high surrogate."));
                }
                unit => unit,
            },
            other => return Ok(other),
        };
        if code == 0 {
            let error = EngineError::new("22P05", "unsupported Unicode escape sequence");
            return Err(error.with_detail("\\u0000 cannot be converted to text."));
        }
        char::from_u32(code).ok_or_else(|| self.wrong("invalid Unicode escape sequence"))
    }

    /// `1234`, or `{1}` to `{123456}`.
    fn unit(&mut self) -> Result<u32> {
        const WRONG: &str = "invalid Unicode escape sequence";
        let Some(rest) = self.rest.strip_prefix('{') else { return self.hexadecimal(4, WRONG) };
        let Some((digits, behind)) = rest.split_once('}').filter(|(digits, _)| (1..=6).contains(&digits.len())) else {
            return Err(self.wrong(WRONG));
        };
        let code = u32::from_str_radix(digits, 16).map_err(|_| self.wrong(WRONG))?;
        self.rest = behind;
        Ok(code)
    }

    fn hexadecimal(&mut self, digits: usize, wrong: &str) -> Result<u32> {
        let digits = self.rest.get(..digits).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(digits) = digits else { return Err(self.wrong(wrong)) };
        self.rest = &self.rest[digits.len()..];
        Ok(u32::from_str_radix(digits, 16).expect("these are digits"))
    }

    /// `1`, `1.5`, `1.`, `.5`, each with an exponent or without. What follows is no letter and no digit.
    fn number(&mut self) -> Result<Token> {
        let from = self.rest;
        let digits = |rest: &str| rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let whole = if from.starts_with('0') { 1 } else { digits(from) };
        let mut length = whole;
        if from[length..].starts_with('.') {
            length += 1 + digits(&from[length + 1..]);
        }
        if let Some(rest) = from[length..].strip_prefix(['e', 'E']) {
            let exponent = rest.strip_prefix(['+', '-']).unwrap_or(rest);
            length = match digits(exponent) {
                0 => {
                    self.rest = &from[..from.len() - exponent.len()];
                    return Err(self.wrong("trailing junk after numeric literal"));
                }
                digits => from.len() - exponent.len() + digits,
            };
        }
        self.rest = &from[length..];
        if let Some(junk) = self.rest.chars().next().filter(|c| !ends_word(*c)) {
            self.rest = &from[..length + junk.len_utf8()];
            return Err(self.wrong("trailing junk after numeric literal"));
        }
        Ok(Token::Number(from[..length].to_owned()))
    }
}

const SURROGATES: &str = "Unicode high surrogate must not follow a high surrogate.";

/// What was read: a condition, or something that gives items (invariant 1).
enum Read {
    Condition(Path),
    Items(Path),
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    next: Token,
    /// What stands from `next` on.
    from: &'t str,
    in_filter: u32,
    in_subscript: u32,
    level: u32,
    steps: u32,
}

/// Reads a path. 42601, 22P02, 2201B, 0A000
pub(super) fn path(text: &str) -> Result<JsonPath> {
    let lexer = Lexer { rest: text };
    let mut parser = Parser { lexer, next: Token::End, from: text, in_filter: 0, in_subscript: 0, level: 0, steps: 0 };
    parser.advance()?;
    if parser.next == Token::End {
        return Err(EngineError::new("22P02", format!("invalid input syntax for type jsonpath: \"{text}\"")));
    }
    let strict = parser.eat_word("strict")?;
    if !strict {
        parser.eat_word("lax")?;
    }
    let (Read::Condition(path) | Read::Items(path)) = parser.either()?;
    match parser.next {
        Token::End => Ok(JsonPath { strict, path }),
        _ => Err(parser.wrong()),
    }
}

impl Parser<'_> {
    fn wrong(&self) -> EngineError {
        match &self.from[..self.from.len() - self.lexer.rest.len()] {
            "" => EngineError::new("42601", "syntax error at end of jsonpath input"),
            next => EngineError::new("42601", format!("syntax error at or near \"{next}\" of jsonpath input")),
        }
    }

    fn advance(&mut self) -> Result<Token> {
        self.lexer.skip()?;
        self.from = self.lexer.rest;
        let next = self.lexer.token()?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    fn eat(&mut self, mark: &str) -> Result<bool> {
        let is = matches!(self.next, Token::Mark(next) if next == mark);
        if is {
            self.advance()?;
        }
        Ok(is)
    }

    fn expect(&mut self, mark: &str) -> Result<()> {
        if self.eat(mark)? { Ok(()) } else { Err(self.wrong()) }
    }

    fn at_word(&self, word: &str) -> bool {
        matches!(&self.next, Token::Word(next) if next.eq_ignore_ascii_case(word))
    }

    fn eat_word(&mut self, word: &str) -> Result<bool> {
        let is = self.at_word(word);
        if is {
            self.advance()?;
        }
        Ok(is)
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word)? { Ok(()) } else { Err(self.wrong()) }
    }

    /// Invariant 3.
    fn nested<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.level == MOST_LEVELS {
            return Err(EngineError::new("54001", format!("a jsonpath has at most {MOST_LEVELS} levels")));
        }
        self.level += 1;
        let done = deeper(|| work(self));
        self.level -= 1;
        done
    }

    /// The same.
    fn count_step(&mut self) -> Result<()> {
        self.steps += 1;
        match self.steps {
            0..=MOST_STEPS => Ok(()),
            _ => Err(EngineError::new("54001", format!("a jsonpath has at most {MOST_STEPS} steps behind each other"))),
        }
    }

    fn either(&mut self) -> Result<Read> {
        self.nested(Self::or)
    }

    fn condition(&mut self) -> Result<Path> {
        match self.either()? {
            Read::Condition(path) => Ok(path),
            Read::Items(_) => Err(self.wrong()),
        }
    }

    fn or(&mut self) -> Result<Read> {
        self.conditions("||", Self::and, Step::Or)
    }

    fn and(&mut self) -> Result<Read> {
        self.conditions("&&", Self::comparison, Step::And)
    }

    /// One condition, or several of them.
    fn conditions(
        &mut self,
        mark: &str,
        one: fn(&mut Self) -> Result<Read>,
        several: fn(Vec<Path>) -> Step,
    ) -> Result<Read> {
        let first = match one(self)? {
            Read::Condition(first) if self.next == Token::Mark("&&") || self.next == Token::Mark("||") => first,
            read => return Ok(read),
        };
        let mut all = vec![first];
        while self.eat(mark)? {
            let Read::Condition(next) = one(self)? else { return Err(self.wrong()) };
            all.push(next);
        }
        let path = if all.len() == 1 { all.remove(0) } else { vec![several(all)] };
        Ok(Read::Condition(path))
    }

    fn comparison(&mut self) -> Result<Read> {
        if self.eat("!")? {
            let denied = match self.at_word("exists") {
                true => self.exists()?,
                false => {
                    self.expect("(")?;
                    let denied = self.condition()?;
                    self.expect(")")?;
                    denied
                }
            };
            return Ok(Read::Condition(vec![Step::Not(denied)]));
        }
        if self.at_word("exists") {
            return self.exists().map(Read::Condition);
        }
        let left = match self.sum()? {
            Read::Items(left) => left,
            condition => return Ok(condition),
        };
        let comparison = match self.next {
            Token::Mark("==") => Comparison::Equal,
            Token::Mark("<>" | "!=") => Comparison::NotEqual,
            Token::Mark("<") => Comparison::Less,
            Token::Mark("<=") => Comparison::LessOrEqual,
            Token::Mark(">") => Comparison::Greater,
            Token::Mark(">=") => Comparison::GreaterOrEqual,
            _ => return self.of_texts(left),
        };
        self.advance()?;
        match self.sum()? {
            Read::Items(right) => Ok(Read::Condition(vec![Step::Compare(comparison, Box::new([left, right]))])),
            Read::Condition(_) => Err(self.wrong()),
        }
    }

    /// `starts with` and `like_regex`, or neither.
    fn of_texts(&mut self, left: Path) -> Result<Read> {
        if self.eat_word("starts")? {
            self.expect_word("with")?;
            let initial = match self.advance()? {
                Token::Text(text) => Step::Literal(Json::Text(text.into())),
                Token::Variable(name) => Step::Variable(name.into()),
                _ => return Err(self.wrong()),
            };
            return Ok(Read::Condition(vec![Step::StartsWith(Box::new([left, vec![initial]]))]));
        }
        if self.eat_word("like_regex")? {
            let regex = self.regex()?;
            return Ok(Read::Condition(vec![Step::LikeRegex(left, regex)]));
        }
        Ok(Read::Items(left))
    }

    fn exists(&mut self) -> Result<Path> {
        self.expect_word("exists")?;
        self.expect("(")?;
        let Read::Items(path) = self.either()? else { return Err(self.wrong()) };
        self.expect(")")?;
        Ok(vec![Step::Exists(path)])
    }

    fn regex(&mut self) -> Result<Regex> {
        let Token::Text(pattern) = self.advance()? else { return Err(self.wrong()) };
        let mut flags = String::new();
        if self.eat_word("flag")? {
            match self.advance()? {
                Token::Text(text) => flags = text,
                _ => return Err(self.wrong()),
            }
        }
        if let Some(other) = flags.chars().find(|flag| !"ismxq".contains(*flag)) {
            let error = EngineError::new("42601", "invalid input syntax for type jsonpath");
            return Err(error.with_detail(format!("unrecognized flag character \"{other}\" in LIKE_REGEX predicate")));
        }
        let has = |flag| flags.contains(flag);
        let escaped = |c: char| if c.is_alphanumeric() { c.to_string() } else { format!("\\{c}") };
        let pattern = match has('q') {
            true => pattern.chars().map(escaped).collect(),
            false if has('x') => {
                let message = "XQuery \"x\" flag (expanded regular expressions) is not implemented";
                return Err(EngineError::new("0A000", message));
            }
            // Without the flag s, what is none of a set is no line's end.
            false if !has('s') && pattern.contains("[^") => {
                let message = "negated sets in like_regex without the flag \"s\" are not supported";
                return Err(EngineError::unsupported(message));
            }
            false => pattern,
        };
        let made = translated(&pattern, has('i'))?.made;
        let made = made.strip_prefix("(?s)").unwrap_or(&made);
        let (dot, lines) = (if has('s') { "(?s)" } else { "" }, if has('m') && !has('q') { "(?m)" } else { "" });
        let regex = regex::Regex::new(&format!("{dot}{lines}{made}"));
        regex.map(Regex).map_err(|e| EngineError::new("2201B", format!("invalid regular expression: {e}")))
    }

    fn sum(&mut self) -> Result<Read> {
        self.operations(|next| matches!(next, Token::Mark("+" | "-")), Self::product)
    }

    fn product(&mut self) -> Result<Read> {
        self.operations(|next| matches!(next, Token::Mark("*" | "/" | "%")), Self::unary)
    }

    /// Invariant 1.
    fn operations(&mut self, is_operator: fn(&Token) -> bool, operand: fn(&mut Self) -> Result<Read>) -> Result<Read> {
        let steps = self.steps;
        let mut left = operand(self)?;
        while is_operator(&self.next) {
            self.count_step()?;
            let Read::Items(path) = left else { return Err(self.wrong()) };
            let Token::Mark(mark) = self.advance()? else { return Err(self.wrong()) };
            let Read::Items(right) = operand(self)? else { return Err(self.wrong()) };
            let sign = mark.chars().next().expect("a mark has a character");
            left = Read::Items(vec![Step::Binary(sign, Box::new([path, right]))]);
        }
        self.steps = steps;
        Ok(left)
    }

    fn unary(&mut self) -> Result<Read> {
        let sign = match self.next {
            Token::Mark("+") => '+',
            Token::Mark("-") => '-',
            _ => return self.accessors(),
        };
        self.advance()?;
        match self.nested(Self::unary)? {
            // A number has its sign.
            Read::Items(path) => Ok(Read::Items(match path.as_slice() {
                [Step::Literal(Json::Number(digits))] if sign == '-' => {
                    vec![Step::Literal(number(&format!("-{digits}"))?)]
                }
                [Step::Literal(Json::Number(_))] => path,
                _ => vec![Step::Unary(sign, path)],
            })),
            Read::Condition(_) => Err(self.wrong()),
        }
    }

    /// Something with the steps behind it.
    fn accessors(&mut self) -> Result<Read> {
        let mut path = match self.primary()? {
            Read::Items(path) => path,
            Read::Condition(condition) => {
                if self.eat_word("is")? {
                    self.expect_word("unknown")?;
                    return Ok(Read::Condition(vec![Step::IsUnknown(condition)]));
                }
                match self.next {
                    Token::Mark("." | "[" | "?") => condition,
                    _ => return Ok(Read::Condition(condition)),
                }
            }
        };
        let steps = self.steps;
        loop {
            self.count_step()?;
            let step = match self.next {
                Token::Mark(".") => {
                    self.advance()?;
                    self.member()?
                }
                Token::Mark("[") => {
                    self.advance()?;
                    self.subscripts()?
                }
                Token::Mark("?") => {
                    self.advance()?;
                    self.expect("(")?;
                    self.in_filter += 1;
                    let filter = self.condition()?;
                    self.in_filter -= 1;
                    self.expect(")")?;
                    Step::Filter(filter)
                }
                _ => {
                    self.steps = steps;
                    return Ok(Read::Items(path));
                }
            };
            path.push(step);
        }
    }

    fn primary(&mut self) -> Result<Read> {
        if self.eat("(")? {
            let inner = self.either()?;
            self.expect(")")?;
            return Ok(inner);
        }
        let invalid = |message: &str| Err(EngineError::new("42601", message));
        let step = match &self.next {
            Token::Text(text) => Step::Literal(Json::Text(text.as_str().into())),
            Token::Number(digits) => Step::Literal(number(digits)?),
            Token::Variable(name) => Step::Variable(name.as_str().into()),
            Token::Mark("$") => Step::Root,
            Token::Mark("@") if self.in_filter == 0 => return invalid("@ is not allowed in root expressions"),
            Token::Mark("@") => Step::Current,
            Token::Word(word) => match word.as_str() {
                "null" => Step::Literal(Json::Null),
                "true" => Step::Literal(Json::Bool(true)),
                "false" => Step::Literal(Json::Bool(false)),
                word if word.eq_ignore_ascii_case("last") && self.in_subscript == 0 => {
                    return invalid("LAST is allowed only in array subscripts");
                }
                word if word.eq_ignore_ascii_case("last") => Step::Last,
                _ => return Err(self.wrong()),
            },
            _ => return Err(self.wrong()),
        };
        self.advance()?;
        Ok(Read::Items(vec![step]))
    }

    /// What follows a point.
    fn member(&mut self) -> Result<Step> {
        match self.advance()? {
            Token::Mark("*") => Ok(Step::AnyKey),
            Token::Mark("**") => self.depths(),
            Token::Text(name) => Ok(Step::Key(name.into())),
            Token::Word(name) if self.next == Token::Mark("(") => {
                let method = match name.to_ascii_lowercase().as_str() {
                    "type" => Method::Type,
                    "size" => Method::Size,
                    "abs" => Method::Abs,
                    "floor" => Method::Floor,
                    "ceiling" => Method::Ceiling,
                    "double" => Method::Double,
                    "keyvalue" | "datetime" => {
                        let message = format!("the method .{name}() of a jsonpath is not supported yet");
                        return Err(EngineError::unsupported(message));
                    }
                    _ => return Err(self.wrong()),
                };
                self.advance()?;
                self.expect(")")?;
                Ok(Step::Method(method))
            }
            Token::Word(name) => Ok(Step::Key(name.into())),
            _ => Err(self.wrong()),
        }
    }

    /// What follows `**`.
    fn depths(&mut self) -> Result<Step> {
        if !self.eat("{")? {
            return Ok(Step::Any(0, u32::MAX));
        }
        let from = self.depth()?;
        let to = if self.eat_word("to")? { self.depth()? } else { from };
        self.expect("}")?;
        Ok(Step::Any(from, to))
    }

    fn depth(&mut self) -> Result<u32> {
        match self.advance()? {
            Token::Word(word) if word.eq_ignore_ascii_case("last") => Ok(u32::MAX),
            Token::Number(digits) => digits.parse().map_err(|_| self.wrong()),
            _ => Err(self.wrong()),
        }
    }

    /// What follows a bracket.
    fn subscripts(&mut self) -> Result<Step> {
        if self.eat("*")? {
            self.expect("]")?;
            return Ok(Step::AnyItem);
        }
        self.in_subscript += 1;
        let mut all = vec![];
        loop {
            let from = self.subscript()?;
            let to = if self.eat_word("to")? { Some(self.subscript()?) } else { None };
            all.push((from, to));
            if !self.eat(",")? {
                break;
            }
        }
        self.in_subscript -= 1;
        self.expect("]")?;
        Ok(Step::Items(all))
    }

    fn subscript(&mut self) -> Result<Path> {
        match self.nested(Self::sum)? {
            Read::Items(path) => Ok(path),
            Read::Condition(_) => Err(self.wrong()),
        }
    }
}

fn number(digits: &str) -> Result<Json> {
    Ok(Json::Number(Decimal::parse(digits)?.to_string().into()))
}
