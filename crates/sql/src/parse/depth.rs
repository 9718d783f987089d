//! How deep a statement's tree will be, told from its tokens; and stacks that hold what walks it.
//!
//! The parser counts the levels it descends, but chains such as `a OR b OR c` and `q UNION q UNION q` grow to the left
//! without descending, and everything that walks the tree later (clone, drop, planner) recurses over them. So the
//! tree's height is bounded before there is a tree: an operator may stand above all that its expression has so far.
//! (Chains of OR are long in generated statements; [`crate::parse::grammar`] makes trees of small depth of them, so
//! they have a bound of their own.)
//!
//! 1. What parses, plans, runs or drops a tree has [`stack_for`] its height left of its thread's stack, or gets a stack
//!    of that size.
//! 2. [`stack_for`] is twice what the worst statement of that height takes in a build without optimisation
//!    (`depth/tests.rs`). DataFusion and the parser protect most of their recursions, but not all, and one of their
//!    frames can be larger than the 128 KiB that they look for.
pub(crate) mod doubling;

use crate::parse::grammar::LEANING;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Word};
use terrace_engine::{EngineError, Result};

/// Operators in one chain, set operations and joins in one query, each counted along the nesting.
const CHAIN_MAX: usize = 600;

/// A set operation or a join is planned in more frames than an operator is: as many as this many operators. So is a
/// query in parentheses.
const QUERY_WEIGHT: usize = 2;

/// ORs in one chain. What plans them takes time that grows faster than their number.
const OR_MAX: usize = 10_000;

/// What one pair of parentheses holds so far: heights of what is finished, and the links of chains that are not.
#[derive(Default, Clone, Copy)]
struct Level {
    /// What the parenthesis itself adds.
    opened: usize,
    /// Opened by CASE: END closes it, and nothing else.
    case: bool,
    /// The highest operand since the last comma, clause, AND or OR, and the operators, which bind tighter than those.
    operand: usize,
    operators: usize,
    /// The same of ANDs since the last comma, clause or OR.
    conjunct: usize,
    ands: usize,
    /// Of ORs since the last comma or clause.
    disjunct: usize,
    ors: usize,
    /// The highest expression; UNION, JOIN and the like, and IS (whose `DISTINCT FROM` is no clause): nothing but the
    /// parenthesis ends their chain.
    expression: usize,
    queries: usize,
    /// Of those, what is no query of WITH.
    joined: usize,
    /// Between FROM and what ends it.
    from: bool,
    /// Between WITH and its SELECT.
    with: bool,
    /// A query of WITH.
    of_with: bool,
}

/// A bound on the tree's height, at most [`CHAIN_MAX`].
pub(crate) fn measure<'t>(tokens: impl Iterator<Item = &'t Token>) -> Result<usize> {
    let mut measure =
        Measure { levels: vec![Level::default()], names: false, dotted: false, before: [Keyword::NoKeyword; 2] };
    for token in tokens {
        if let Token::Whitespace(_) = token {
            continue;
        }
        let operator = measure.token(token)?;
        (measure.names, measure.dotted) = (operator, matches!(token, Token::Period));
        let keyword = if let Token::Word(word) = token { word.keyword } else { Keyword::NoKeyword };
        measure.before = [measure.before[1], keyword];
    }
    while measure.levels.len() > 1 {
        measure.fold_in();
    }
    match measure.levels[0].height() {
        high if high > CHAIN_MAX => Err(too_long(CHAIN_MAX)),
        height => Ok(height),
    }
}

/// The parentheses that are open, the outermost first; that one is never closed.
struct Measure {
    levels: Vec<Level>,
    /// Behind an operator or a period a word is a name, whatever else it may be (`t.from + t.from`).
    names: bool,
    /// Right behind a period.
    dotted: bool,
    /// The words right before.
    before: [Keyword; 2],
}

impl Measure {
    fn top(&mut self) -> &mut Level {
        self.levels.last_mut().expect("the outermost level is never closed")
    }

    /// Whether it is an operator.
    fn token(&mut self, token: &Token) -> Result<bool> {
        match token {
            Token::LParen | Token::LBracket => {
                let begins = matches!(self.before[1], Keyword::AS | Keyword::MATERIALIZED);
                let with = begins && self.top().with;
                self.levels.push(Level { opened: 1, of_with: with, ..Level::default() });
            }
            Token::RParen => self.close(),
            Token::RBracket => {
                self.close();
                // A subscript, or the brackets of an array's type, is a link of a chain: `a[1][2]`.
                self.top().operators += 1;
            }
            Token::SemiColon => self.top().end_expression(),
            Token::Comma => {
                let top = self.top();
                top.end_expression();
                // What stands beside each other in FROM is joined.
                if top.from {
                    top.add_query();
                }
            }
            Token::Word(word) => return self.word(word),
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::Placeholder(_)
            | Token::EOF => {}
            Token::Period => return Ok(true),
            _ => {
                self.top().operators += 1;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn word(&mut self, word: &Word) -> Result<bool> {
        let names = self.names;
        let named = names || self.before[1] == Keyword::AS;
        let clause = !self.dotted && !matches!(self.before, [Keyword::IS | Keyword::NOT, Keyword::DISTINCT]);
        let top = self.top();
        match kind(word) {
            Kind::Operator => {
                top.operators += 1;
                return Ok(true);
            }
            Kind::Query => {
                top.add_query();
                top.from &= named || matches!(word.keyword, Keyword::JOIN | Keyword::APPLY);
            }
            Kind::Is => top.queries += 1,
            Kind::With => top.with = true,
            Kind::Case => self.levels.push(Level { opened: 1, case: true, ..Level::default() }),
            Kind::End if top.case => self.fold_in(),
            // Behind `*` too.
            Kind::From if clause => {
                if !names {
                    top.end_expression();
                }
                top.from = true;
            }
            Kind::On if !names => top.end_expression(),
            Kind::Separator if !names => {
                top.end_expression();
                top.from &= named;
            }
            Kind::Select if !names => {
                top.end_expression();
                top.from &= named || word.keyword == Keyword::VALUES;
                top.with = false;
                top.opened = top.opened.max(QUERY_WEIGHT);
            }
            Kind::And if !names => {
                top.end_conjunct();
                top.ands += 1;
                return if top.ands > CHAIN_MAX { Err(too_long(CHAIN_MAX)) } else { Ok(true) };
            }
            Kind::Or if !names => {
                top.end_disjunct();
                top.ors += 1;
                return if top.ors > OR_MAX { Err(too_long(OR_MAX)) } else { Ok(true) };
            }
            _ => {}
        }
        Ok(false)
    }

    /// Closes a parenthesis, and the CASEs in it that have no END.
    fn close(&mut self) {
        while self.levels.len() > 1 && self.top().case {
            self.fold_in();
        }
        if self.levels.len() > 1 {
            self.fold_in();
        }
    }

    /// What a level held is an operand of the one around it: `(a)::t` goes on.
    fn fold_in(&mut self) {
        let level = self.levels.pop().expect("only what was opened is closed");
        let around = self.top();
        around.operand = around.operand.max(level.height());
        if level.of_with {
            // Each may read the one before.
            around.queries += 1 + level.joined;
        }
    }
}

fn too_long(most: usize) -> EngineError {
    EngineError::new("54001", format!("statement chains or nests more than {most} operators"))
        .with_hint("Use IN (...) or a list of VALUES.")
}

/// What a chain of ORs or ANDs adds: its tree leans by at most [`crate::parse::grammar::LEANING`], then doubles with
/// each level.
fn balanced(links: usize) -> usize {
    match links {
        few @ 0..=LEANING => few,
        many => LEANING + many.ilog2() as usize,
    }
}

impl Level {
    fn add_query(&mut self) {
        self.queries += QUERY_WEIGHT;
        self.joined += QUERY_WEIGHT;
    }

    fn end_conjunct(&mut self) {
        self.conjunct = self.conjunct.max(self.operand + self.operators);
        (self.operand, self.operators) = (0, 0);
    }

    fn end_disjunct(&mut self) {
        self.end_conjunct();
        self.disjunct = self.disjunct.max(self.conjunct + balanced(self.ands));
        (self.conjunct, self.ands) = (0, 0);
    }

    fn end_expression(&mut self) {
        self.end_disjunct();
        self.expression = self.expression.max(self.disjunct + balanced(self.ors));
        (self.disjunct, self.ors) = (0, 0);
    }

    fn height(mut self) -> usize {
        self.end_expression();
        self.opened + self.expression + self.queries
    }
}

enum Kind {
    Case,
    End,
    And,
    Or,
    Operator,
    /// FROM, and USING of DELETE.
    From,
    /// Ends an expression, and no list of tables.
    On,
    Separator,
    Select,
    With,
    Query,
    Is,
    Other,
}

fn kind(word: &Word) -> Kind {
    use Keyword::*;
    match word.keyword {
        _ if word.quote_style.is_some() => Kind::Other,
        // A statement may stand within another, without parentheses.
        UNION | INTERSECT | EXCEPT | MINUS | JOIN | APPLY | INSERT | UPDATE | DELETE | MERGE => Kind::Query,
        IS => Kind::Is,
        CASE => Kind::Case,
        END => Kind::End,
        SELECT | VALUES => Kind::Select,
        WITH => Kind::With,
        FROM | USING => Kind::From,
        ON | WHEN | THEN | ELSE => Kind::On,
        WHERE | HAVING | ORDER | LIMIT | GROUP | WINDOW | SET | RETURNING => Kind::Separator,
        AND => Kind::And,
        OR => Kind::Or,
        NOT | DIV | LIKE | ILIKE | RLIKE | REGEXP | SIMILAR | BETWEEN | IN | COLLATE | AT | OVERLAPS | OPERATOR
        | MEMBER | NOTNULL | INTERVAL | ESCAPE => Kind::Operator,
        _ if word.value.eq_ignore_ascii_case("isnull") => Kind::Operator,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests;
