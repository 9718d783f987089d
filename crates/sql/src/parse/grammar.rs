//! PostgreSQL's grammar of expressions, where the parser's own differs: how tightly operators bind.
//!
//! 1. Levels and sides are those of PostgreSQL's table ("Operator Precedence" in its manual, and the `%left`, `%right`
//!    and `%nonassoc` of its grammar): what is written without parentheses means what it means there.
//! 2. What PostgreSQL's grammar refuses for want of parentheses (`a < b < c`) is refused.
//! 3. What stands behind a column's type is one of PostgreSQL's options.
//! 4. Long chains of OR and AND become trees of small depth: both are associative, also with NULL, and the order stays.
//! 5. Statements stand within others (EXPLAIN, PREPARE) [`STATEMENTS`] deep at most: the tokens do not tell how deep
//!    ([`crate::parse::depth`]).
//! 6. Where the parser tries one reading after another, it does so a bounded number of times (54001): one try may hold
//!    many.
use datafusion::sql::sqlparser::ast::{BinaryOperator, ColumnOption, Expr, Statement, UnaryOperator};
use datafusion::sql::sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use std::any::TypeId;
use std::cell::Cell;

/// The parser's PostgreSQL with this module's rules.
#[derive(Debug)]
pub(crate) struct Grammar;

const BASE: PostgreSqlDialect = PostgreSqlDialect {};

/// Levels, as the parser's dialect numbers them; the sign stands between `COLLATE` and `[`.
const SIGN: u8 = 125;
const OPERATOR: u8 = 70;
const MATCH: u8 = 60;
const COMPARISON: u8 = 50;
const IS: u8 = 40;
const NOT: u8 = 30;
const AND: u8 = 20;
const OR: u8 = 10;

/// Operands of a chain of OR or AND that may lean to the left.
pub(crate) const LEANING: usize = 16;

/// The words that begin an option of a column.
const COLUMN_OPTIONS: &[Keyword] = &[
    Keyword::CHECK,
    Keyword::COLLATE,
    Keyword::DEFAULT,
    Keyword::GENERATED,
    Keyword::NOT,
    Keyword::NULL,
    Keyword::PRIMARY,
    Keyword::REFERENCES,
    Keyword::UNIQUE,
];

type Parsed = Result<Expr, ParserError>;
type ParsedOption = Result<Option<ColumnOption>, ParserError>;

thread_local! {
    /// Operands that may still be begun.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    static ENTERED: Cell<Entered> = const { Cell::new(Entered { statements: 0, again: false }) };
}

/// Statements that are being parsed.
#[derive(Clone, Copy, Default)]
struct Entered {
    statements: usize,
    /// The parser asks again about the one that was entered last.
    again: bool,
}

/// Operands begun for each token, at most; most statements need fewer than one. (`x.case + x.case + ...` is tried as
/// CASE and then as a column: without a bound the tries double with each term.)
const TRIES: usize = 8;

/// Statements within one another: EXPLAIN, PREPARE or DECLARE, and what they are about; one more so that what is wrong
/// is told.
const STATEMENTS: usize = 3;

/// Parses so many tokens within rules 5 and 6.
pub(crate) fn bounded<T>(tokens: usize, parse: impl FnOnce() -> T) -> T {
    struct Restore(usize, Entered);
    impl Drop for Restore {
        fn drop(&mut self) {
            LEFT.set(self.0);
            ENTERED.set(self.1);
        }
    }
    let _restore = Restore(LEFT.replace(1000 + tokens * TRIES), ENTERED.take());
    parse()
}

macro_rules! as_in_postgres {
    ($($method:ident)*) => { $(fn $method(&self) -> bool { BASE.$method() })* };
}

impl Dialect for Grammar {
    /// What the parser asks "is it PostgreSQL?" about stays so.
    fn dialect(&self) -> TypeId {
        TypeId::of::<PostgreSqlDialect>()
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        BASE.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        BASE.is_delimited_identifier_start(c)
    }

    fn is_identifier_start(&self, c: char) -> bool {
        BASE.is_identifier_start(c)
    }

    fn is_identifier_part(&self, c: char) -> bool {
        BASE.is_identifier_part(c)
    }

    fn is_custom_operator_part(&self, c: char) -> bool {
        BASE.is_custom_operator_part(c)
    }

    /// A word that begins an expression of its own is never a column, so that its error is the one that is told.
    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        matches!(keyword, Keyword::CASE | Keyword::CAST | Keyword::ARRAY | Keyword::NOT)
            || BASE.is_reserved_for_identifier(keyword)
    }

    as_in_postgres! {
        supports_unicode_string_literal supports_filter_during_aggregation supports_group_by_expr allow_extract_custom
        allow_extract_single_quotes supports_create_index_with_clause supports_explain_with_utility_options
        supports_listen_notify supports_bitwise_shift_operators supports_comment_on supports_load_extension
        supports_named_fn_args_with_colon_operator supports_empty_projections
        supports_nested_comments supports_string_escape_constant
        supports_array_typedef_with_brackets supports_geometric_types supports_set_names
        supports_alter_column_type_using supports_notnull_operator supports_interval_options
        supports_insert_table_alias supports_create_table_like_parenthesized supports_select_wildcard_with_alias
        supports_comma_separated_trim supports_xml_expressions
    }

    fn parse_statement(&self, parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
        let around = ENTERED.get();
        if around.again {
            ENTERED.set(Entered { again: false, ..around });
            return None;
        }
        if around.statements == STATEMENTS {
            return Some(Err(ParserError::RecursionLimitExceeded));
        }
        ENTERED.set(Entered { statements: around.statements + 1, again: true });
        let parsed = parser.parse_statement();
        ENTERED.set(around);
        Some(parsed)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        BASE.prec_value(precedence)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        let none = self.prec_unknown();
        let level = match &parser.peek_token_ref().token {
            Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk => OPERATOR,
            // Not PostgreSQL's.
            Token::DoubleEq | Token::Spaceship | Token::Assignment | Token::ExclamationMark | Token::AtSign => none,
            Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                Keyword::OPERATOR => OPERATOR,
                Keyword::XOR | Keyword::DIV | Keyword::RLIKE | Keyword::REGEXP | Keyword::MATCH | Keyword::MEMBER => {
                    none
                }
                _ if is_null(parser) => IS,
                _ => return BASE.get_next_precedence(parser),
            },
            _ => return BASE.get_next_precedence(parser),
        };
        Some(Ok(level))
    }

    /// The parser takes some words of other systems (AUTO_INCREMENT, ON UPDATE, AS) and forgets them: it is not asked
    /// about them.
    fn parse_column_option(&self, parser: &mut Parser) -> Result<Option<ParsedOption>, ParserError> {
        Ok(match &parser.peek_token_ref().token {
            Token::Word(word) if !COLUMN_OPTIONS.contains(&word.keyword) => Some(Ok(None)),
            _ => None,
        })
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Parsed> {
        match LEFT.get().checked_sub(1) {
            Some(left) => LEFT.set(left),
            None => return Some(Err(ParserError::RecursionLimitExceeded)),
        }
        let (op, level) = match &parser.peek_token_ref().token {
            Token::Minus => (UnaryOperator::Minus, SIGN),
            Token::Plus => (UnaryOperator::Plus, SIGN),
            Token::Tilde => (UnaryOperator::BitwiseNot, OPERATOR),
            Token::AtSign => (UnaryOperator::PGAbs, OPERATOR),
            Token::PGSquareRoot => (UnaryOperator::PGSquareRoot, OPERATOR),
            Token::PGCubeRoot => (UnaryOperator::PGCubeRoot, OPERATOR),
            Token::Word(word) if word.quote_style.is_none() && word.keyword == Keyword::NOT => {
                (UnaryOperator::Not, NOT)
            }
            Token::Word(word) if word.quote_style.is_none() && word.keyword == Keyword::INTERVAL => {
                return refuse_precision(parser);
            }
            _ => return None,
        };
        parser.advance_token();
        Some(parser.parse_subexpr(level).map(|expr| match (op, expr) {
            (UnaryOperator::Not, Expr::Exists { subquery, negated: false }) => Expr::Exists { subquery, negated: true },
            (op, expr) => Expr::UnaryOp { op, expr: Box::new(expr) },
        }))
    }

    fn parse_infix(&self, parser: &mut Parser, left: &Expr, level: u8) -> Option<Parsed> {
        if stands_alone(left) == Some(level) {
            let token = parser.peek_token_ref();
            return Some(Err(ParserError::ParserError(format!("syntax error at or near \"{token}\""))));
        }
        match level {
            OR => Some(chain(parser, left, BinaryOperator::Or, Keyword::OR)),
            AND => Some(chain(parser, left, BinaryOperator::And, Keyword::AND)),
            COMPARISON => quantified(parser, left),
            MATCH => in_list(parser, left).or_else(|| symmetric(parser, left)),
            IS if is_null(parser) => {
                parser.advance_token();
                Some(Ok(Expr::IsNull(Box::new(left.clone()))))
            }
            IS => distinct(parser, left),
            _ => None,
        }
    }
}

/// The parser would pass over the precision of `interval(2) '1.239 seconds'`.
fn refuse_precision(parser: &Parser) -> Option<Parsed> {
    let next = [1, 2, 3].map(|n| &parser.peek_nth_token_ref(n).token);
    match next {
        [Token::LParen, Token::Number(..), Token::RParen] => {
            let message = "an interval with a precision is not supported";
            Some(Err(ParserError::ParserError(message.to_owned())))
        }
        _ => None,
    }
}

/// `a ISNULL`.
fn is_null(parser: &Parser) -> bool {
    match &parser.peek_token_ref().token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case("isnull"),
        _ => false,
    }
}

/// The level of an expression whose operator takes no operand of the same level without parentheses (rule 2).
fn stands_alone(expr: &Expr) -> Option<u8> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    match expr {
        Expr::BinaryOp { op: Eq | NotEq | Lt | LtEq | Gt | GtEq, .. } => Some(COMPARISON),
        Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..) => Some(IS),
        Expr::Between { .. } | Expr::Like { .. } | Expr::ILike { .. } | Expr::SimilarTo { .. } => Some(MATCH),
        _ => None,
    }
}

/// `left OR b OR c ...` (rule 4), with the parser before its first OR; or the same with AND.
fn chain(parser: &mut Parser, left: &Expr, op: BinaryOperator, keyword: Keyword) -> Parsed {
    let level = if keyword == Keyword::OR { OR } else { AND };
    let mut operands = vec![left.clone()];
    while parser.parse_keyword(keyword) {
        operands.push(parser.parse_subexpr(level)?);
    }
    let join = |left: Expr, right: Expr| Expr::BinaryOp { left: left.into(), op: op.clone(), right: right.into() };
    while operands.len() > LEANING {
        let mut pairs = Vec::with_capacity(operands.len() / 2 + 1);
        let mut rest = operands.into_iter();
        while let Some(first) = rest.next() {
            pairs.push(match rest.next() {
                Some(second) => join(first, second),
                None => first,
            });
        }
        operands = pairs;
    }
    Ok(operands.into_iter().reduce(join).expect("the left operand is there"))
}

/// `left IS [NOT] DISTINCT FROM b`. `None`: another IS.
fn distinct(parser: &mut Parser, left: &Expr) -> Option<Parsed> {
    let distinct = [Keyword::IS, Keyword::DISTINCT, Keyword::FROM];
    let not_distinct = [Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM];
    let made = if parser.parse_keywords(&distinct) {
        Expr::IsDistinctFrom
    } else if parser.parse_keywords(&not_distinct) {
        Expr::IsNotDistinctFrom
    } else {
        return None;
    };
    let left = Box::new(left.clone());
    Some(parser.parse_subexpr(IS).map(|right| made(left, Box::new(right))))
}

/// `left = ANY (...)`: nothing behind the parenthesis belongs to it. `None`: an ordinary comparison.
fn quantified(parser: &mut Parser, left: &Expr) -> Option<Parsed> {
    let keyword = match &parser.peek_nth_token_ref(1).token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => return None,
    };
    if !matches!(keyword, Keyword::ANY | Keyword::ALL | Keyword::SOME) {
        return None;
    }
    let compare_op = match &parser.peek_token_ref().token {
        Token::Eq => BinaryOperator::Eq,
        Token::Neq => BinaryOperator::NotEq,
        Token::Lt => BinaryOperator::Lt,
        Token::LtEq => BinaryOperator::LtEq,
        Token::Gt => BinaryOperator::Gt,
        Token::GtEq => BinaryOperator::GtEq,
        _ => return None,
    };
    parser.advance_token();
    parser.advance_token();
    let left = Box::new(left.clone());
    Some(operand(parser).map(|right| match keyword {
        Keyword::ALL => Expr::AllOp { left, compare_op, right: Box::new(right) },
        _ => Expr::AnyOp { left, compare_op, right: Box::new(right), is_some: keyword == Keyword::SOME },
    }))
}

/// Whether this word stands there.
fn is_word(parser: &Parser, at: usize, keyword: Keyword) -> bool {
    matches!(&parser.peek_nth_token_ref(at).token, Token::Word(w) if w.quote_style.is_none() && w.keyword == keyword)
}

/// What follows a query in parentheses that is part of a longer one.
const QUERY_GOES_ON: &[Keyword] = &[
    Keyword::UNION,
    Keyword::INTERSECT,
    Keyword::EXCEPT,
    Keyword::ORDER,
    Keyword::LIMIT,
    Keyword::OFFSET,
    Keyword::FETCH,
];

/// `left [NOT] IN ((SELECT ...), b)`, where the parser takes what begins with a query for one. `None`: another IN.
fn in_list(parser: &mut Parser, left: &Expr) -> Option<Parsed> {
    let negated = is_word(parser, 0, Keyword::NOT);
    let begin = usize::from(negated) + 1;
    let is = |at: usize, token: &Token| parser.peek_nth_token_ref(at).token == *token;
    let nested = is(begin, &Token::LParen) && is(begin + 1, &Token::LParen);
    if !(is_word(parser, begin - 1, Keyword::IN) && nested && is_word(parser, begin + 2, Keyword::SELECT)) {
        return None;
    }
    // What follows the inner pair of parentheses.
    let (mut at, mut depth, mut closed) = (0, 0, false);
    loop {
        match parser.peek_nth_token_no_skip(at).token {
            Token::Whitespace(_) => {}
            Token::EOF => return None,
            // The end, or what goes on with a query.
            Token::RParen if closed => return None,
            Token::Word(word) if closed && QUERY_GOES_ON.contains(&word.keyword) => return None,
            _ if closed => break,
            Token::LParen => depth += 1,
            Token::RParen => {
                depth -= 1;
                closed = depth == 1;
            }
            _ => {}
        }
        at += 1;
    }
    (0..=begin).for_each(|_| parser.advance_token());
    let list = parser.parse_comma_separated(Parser::parse_expr);
    let made = list.and_then(|list| parser.expect_token(&Token::RParen).map(|_| list));
    Some(made.map(|list| Expr::InList { expr: Box::new(left.clone()), list, negated }))
}

/// `left [NOT] BETWEEN SYMMETRIC b AND c`: between them in either order. `None`: another BETWEEN.
fn symmetric(parser: &mut Parser, left: &Expr) -> Option<Parsed> {
    let negated = is_word(parser, 0, Keyword::NOT);
    let begin = usize::from(negated);
    let symmetric = matches!(&parser.peek_nth_token_ref(begin + 1).token,
        Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case("symmetric"));
    if !(is_word(parser, begin, Keyword::BETWEEN) && symmetric) {
        return None;
    }
    (0..begin + 2).for_each(|_| parser.advance_token());
    Some(bounds(parser).map(|(low, high)| {
        let between = |low: &Expr, high: &Expr| Expr::Between {
            expr: Box::new(left.clone()),
            negated,
            low: Box::new(low.clone()),
            high: Box::new(high.clone()),
        };
        let op = if negated { BinaryOperator::And } else { BinaryOperator::Or };
        let (one, other) = (between(&low, &high), between(&high, &low));
        Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(one), op, right: Box::new(other) }))
    }))
}

fn bounds(parser: &mut Parser) -> Result<(Expr, Expr), ParserError> {
    let low = parser.parse_subexpr(MATCH)?;
    parser.expect_keyword(Keyword::AND)?;
    Ok((low, parser.parse_subexpr(MATCH)?))
}

/// What the parentheses of ANY and ALL hold: a query or an expression.
fn operand(parser: &mut Parser) -> Parsed {
    parser.expect_token(&Token::LParen)?;
    let queried = matches!(&parser.peek_token_ref().token,
        Token::Word(w) if matches!(w.keyword, Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::TABLE));
    let operand = if queried { Expr::Subquery(parser.parse_query()?) } else { parser.parse_expr()? };
    parser.expect_token(&Token::RParen)?;
    Ok(operand)
}

#[cfg(test)]
mod tests;
