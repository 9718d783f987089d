//! How deep a statement's tree will be, told from its tokens.
//!
//! The parser counts the levels it descends, but chains such as `a OR b OR c` and `q UNION q UNION q` grow to the left without
//! descending, and everything that walks the tree later (clone, drop, planner) recurses over them. So the chains are bounded before
//! there is a tree: the operators since the last separator, summed over the open parentheses, bound the depth from above. (Chains of OR are
//! long in generated statements; [`crate::grammar`] makes trees of small depth of them, so they have a bound of their own.)
//!
//! DataFusion protects most of its recursions, not all; a level may cost 10 KiB of stack. What is deeper than [`SHALLOW`] therefore runs
//! on a stack of its own.
use crate::grammar::LEANING;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::Token;
use futures::future::BoxFuture;
use std::future::poll_fn;
use terrace_engine::{EngineError, Result};

/// Operators in one chain, set operations and joins in one query, each counted along the nesting.
const CHAIN_MAX: usize = 600;

/// A set operation or a join is planned in more frames than an operator is: as many as this many operators.
const QUERY_WEIGHT: usize = 2;

/// ORs in one chain. What plans them takes time that grows faster than their number.
const OR_MAX: usize = 10_000;

/// What one pair of parentheses holds so far.
#[derive(Default, Clone, Copy)]
struct Level {
    /// Since the last comma, clause, AND or OR: operators bind tighter than those.
    operators: usize,
    /// Since the last comma, clause or OR.
    ands: usize,
    /// Since the last comma or clause.
    ors: usize,
    /// UNION, JOIN and the like, and IS (whose `DISTINCT FROM` is no clause): nothing but the parenthesis ends their chain.
    queries: usize,
}

/// Depth that any thread's stack can take.
pub(crate) const SHALLOW: usize = 40;

/// Bytes of the stack for a deep statement: so many, and for each level so many more. Only what is touched becomes memory.
const DEEP_STACK: (usize, usize) = (64 << 20, 96 << 10);

/// Polls a future on a stack that suits a statement of the given depth. (Boxed: a statement's future is a big one, and would be copied
/// from frame to frame.)
pub(crate) async fn on_stack_for<T>(depth: usize, mut work: BoxFuture<'_, T>) -> T {
    if depth <= SHALLOW {
        return work.await;
    }
    let bytes = DEEP_STACK.0 + depth * DEEP_STACK.1;
    poll_fn(|context| stacker::grow(bytes, || work.as_mut().poll(context))).await
}

/// A bound on the tree's depth, at most [`CHAIN_MAX`].
pub(crate) fn measure<'t>(tokens: impl Iterator<Item = &'t Token>) -> Result<usize> {
    let mut deepest = 0;
    let mut levels = vec![Level::default()];
    // The sum over `levels`.
    let mut total = 0;
    for token in tokens {
        let depth = levels.len();
        let top = levels.last_mut().expect("the outermost level is never closed");
        match token {
            Token::LParen | Token::LBracket => {
                total += 1;
                levels.push(Level { operators: 1, ..Level::default() });
            }
            Token::RParen | Token::RBracket if depth > 1 => {
                // What the parentheses held hangs off the chain around them: `(a)::t` goes on.
                let closed = levels.pop().expect("more than one level");
                total -= closed.total();
                // A subscript, or the brackets of an array's type, is a link of a chain: `a[1][2]`.
                if *token == Token::RBracket {
                    levels.last_mut().expect("one level is left").operators += 1;
                    total += 1;
                }
            }
            Token::SemiColon => {
                levels = vec![Level::default()];
                total = 0;
            }
            Token::Comma => total -= top.end_expression(),
            Token::Word(word) => match kind(word.keyword) {
                Kind::Open => {
                    total += 1;
                    levels.push(Level { operators: 1, ..Level::default() });
                }
                Kind::Close if depth > 1 => {
                    let closed = levels.pop().expect("more than one level");
                    total -= closed.total();
                }
                Kind::Close => {}
                Kind::Separator => total -= top.end_expression(),
                Kind::Operator => {
                    top.operators += 1;
                    total += 1;
                }
                Kind::And => {
                    total -= std::mem::take(&mut top.operators);
                    top.ands += 1;
                    total += 1;
                }
                Kind::Or => {
                    total -= top.total();
                    (top.operators, top.ands) = (0, 0);
                    top.ors += 1;
                    total += top.total();
                    if top.ors > OR_MAX {
                        return Err(too_long(OR_MAX));
                    }
                }
                Kind::Query => {
                    top.queries += QUERY_WEIGHT;
                    total += QUERY_WEIGHT;
                }
                Kind::Is => {
                    top.queries += 1;
                    total += 1;
                }
                Kind::Other => {}
            },
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::Placeholder(_)
            | Token::Whitespace(_)
            | Token::Period
            | Token::RParen
            | Token::RBracket
            | Token::EOF => {}
            _ => {
                top.operators += 1;
                total += 1;
            }
        }
        deepest = deepest.max(total);
        if total > CHAIN_MAX {
            return Err(too_long(CHAIN_MAX));
        }
    }
    Ok(deepest)
}

fn too_long(most: usize) -> EngineError {
    EngineError::new("54001", format!("statement chains or nests more than {most} operators"))
        .with_hint("Use IN (...) or a list of VALUES.")
}

impl Level {
    fn total(&self) -> usize {
        // The tree of a chain of ORs leans by at most [`crate::grammar::LEANING`], then doubles with each level.
        let ors = match self.ors {
            few @ 0..=LEANING => few,
            many => LEANING + many.ilog2() as usize,
        };
        self.operators + self.ands + ors + self.queries
    }

    /// Forgets the chain of the expression that ends here; answers its length.
    fn end_expression(&mut self) -> usize {
        let before = self.total();
        (self.operators, self.ands, self.ors) = (0, 0, 0);
        before - self.total()
    }
}

enum Kind {
    Open,
    Close,
    And,
    Or,
    Operator,
    Separator,
    Query,
    Is,
    Other,
}

fn kind(keyword: Keyword) -> Kind {
    use Keyword::*;
    match keyword {
        UNION | INTERSECT | EXCEPT | JOIN => Kind::Query,
        IS => Kind::Is,
        CASE => Kind::Open,
        END => Kind::Close,
        SELECT | FROM | WHERE | HAVING | ORDER | LIMIT | ON | VALUES | WHEN | THEN | ELSE => Kind::Separator,
        AND => Kind::And,
        OR => Kind::Or,
        NOT | DIV | LIKE | ILIKE | RLIKE | REGEXP | SIMILAR | BETWEEN | IN | COLLATE | AT | OVERLAPS | OPERATOR
        | MEMBER | NOTNULL | INTERVAL | ESCAPE => Kind::Operator,
        _ => Kind::Other,
    }
}
